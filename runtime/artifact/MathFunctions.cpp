//===- MathFunctions.cpp - C library functions for kernels ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "artifact/MathFunctions.h"
#include <cmath>
#include <cstring>

using namespace fsdprt;

namespace {
struct Entry {
  std::string_view name;
  const void *address;
};
} // namespace

// UNARY() and BINARY() each add two functions: a function for `double`, such as exp, and a function
// for `float`, such as expf.
#define UNARY(name)                                                                                \
  {#name, reinterpret_cast<const void *>(static_cast<double (*)(double)>(::name))}, {              \
    #name "f", reinterpret_cast<const void *>(static_cast<float (*)(float)>(::name##f))            \
  }
#define BINARY(name)                                                                               \
  {#name, reinterpret_cast<const void *>(static_cast<double (*)(double, double)>(::name))}, {      \
    #name "f", reinterpret_cast<const void *>(static_cast<float (*)(float, float)>(::name##f))     \
  }

static const Entry entries[] = {
    UNARY(exp),
    UNARY(exp2),
    UNARY(expm1),
    UNARY(log),
    UNARY(log2),
    UNARY(log10),
    UNARY(log1p),
    UNARY(sin),
    UNARY(cos),
    UNARY(tan),
    UNARY(sinh),
    UNARY(cosh),
    UNARY(tanh),
    UNARY(asin),
    UNARY(acos),
    UNARY(atan),
    UNARY(erf),
    UNARY(erfc),
    UNARY(sqrt),
    UNARY(cbrt),
    UNARY(floor),
    UNARY(ceil),
    UNARY(trunc),
    UNARY(round),
    UNARY(rint),
    UNARY(fabs),
    UNARY(nearbyint),
    BINARY(pow),
    BINARY(fmod),
    BINARY(atan2),
    BINARY(fmin),
    BINARY(fmax),
    {"fma", reinterpret_cast<const void *>(static_cast<double (*)(double, double, double)>(::fma))},
    {"fmaf", reinterpret_cast<const void *>(static_cast<float (*)(float, float, float)>(::fmaf))},
    {"memcpy", reinterpret_cast<const void *>(&::memcpy)},
    {"memmove", reinterpret_cast<const void *>(&::memmove)},
    {"memset", reinterpret_cast<const void *>(&::memset)},
};

const void *fsdprt::findMathFunction(std::string_view name) {
  for (const Entry &entry : entries)
    if (entry.name == name)
      return entry.address;
  return nullptr;
}
