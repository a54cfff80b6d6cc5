//===- VerifyLibraryGemm.cpp - Matrix products of a library -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// (V21) The sizes of a product are 1 to 2^31 - 1. Both factors have the same type: f32, bf16 or
//       f16. The result, addend, bias and auxiliary matrix all have the type of the factors, or all
//       have type f32. The rows of each matrix do not overlap one another. A product with a bias or
//       an activation has one batch. A product with an auxiliary matrix has the activation GELU or
//       its derivative. A product with the derivative of GELU has no bias and no addend. Each
//       matrix lies in its binding. The result and the stored argument of GELU are in bindings that
//       the kernel writes. The factors are in bindings that the kernel does not write.
//
//===----------------------------------------------------------------------===//

#include "artifact/Verifier.h"
#include "core/DType.h"
#include "core/Error.h"
#include <array>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr uint64_t maxSize = (uint64_t(1) << 31) - 1, maxStride = uint64_t(1) << 48,
                          auxUnit = 8;

namespace {
struct Operand {
  const char *name;
  const fb::Matrix *matrix;
  uint64_t rows, cols;
  bool isNeeded, isWritten;
};
} // namespace

static std::array<Operand, 6> operandsOf(const fb::Product &p) {
  bool storesArgument = p.activation() == fb::Activation::gelu;
  return {{{"lhs", p.lhs(), p.m(), p.k(), true, false},
           {"rhs", p.rhs(), p.k(), p.n(), true, false},
           {"result", p.result(), p.m(), p.n(), true, true},
           {"addend", p.addend(), p.m(), p.n(), false, false},
           {"bias", p.bias(), 1, p.n(), false, false},
           {"aux", p.aux(), p.m(), p.n(), p.activation() == fb::Activation::gelu_gradient,
            storesArgument}}};
}

static std::string problemOf(const Operand &operand, const fb::Kernel &kernel) {
  const fb::Matrix *matrix = operand.matrix;
  if (!matrix)
    return operand.isNeeded ? "expected a matrix, found none" : "";
  uint32_t bindings = kernel.binding_bytes() ? kernel.binding_bytes()->size() : 0;
  if (matrix->binding() >= bindings)
    return format("expected one of %u bindings, found number %u", bindings, matrix->binding());
  if (matrix->dtype() != DType::f32 && matrix->dtype() != DType::bf16 &&
      matrix->dtype() != DType::f16)
    return format("expected f32, bf16 or f16, found number %d", static_cast<int>(matrix->dtype()));
  uint64_t least = matrix->transposed() ? operand.rows : operand.cols;
  if (matrix->leading() < least || matrix->leading() > maxStride ||
      matrix->batch_stride() > maxStride)
    return format(
        "expected rows at least %llu elements and at most 2^48 apart, found %llu, and batches %llu",
        (ull)least, (ull)matrix->leading(), (ull)matrix->batch_stride());
  if (matrix->offset() % sizeOf(matrix->dtype()) != 0)
    return format("expected an offset in whole elements, found %llu bytes", (ull)matrix->offset());
  return "";
}

static std::string problemOfTypes(const fb::Product &product) {
  DType factor = product.lhs()->dtype(), result = product.result()->dtype();
  if (product.rhs()->dtype() != factor || (result != factor && result != DType::f32))
    return format("expected factors of one type and a result in that or f32, found %s and %s to %s",
                  nameOf(factor), nameOf(product.rhs()->dtype()), nameOf(result));
  for (const fb::Matrix *other : {product.addend(), product.bias(), product.aux()})
    if (other && other->dtype() != result)
      return format("expected addend, bias and aux in the result's %s, found %s", nameOf(result),
                    nameOf(other->dtype()));
  return "";
}

static std::string problemOfForm(const fb::Product &product) {
  for (uint64_t size : {product.m(), product.n(), product.k(), product.batches()})
    if (size < 1 || size > maxSize)
      return format("expected sizes of 1 to 2^31 - 1, found %llu", (ull)size);
  if (product.activation() > fb::Activation::gelu_gradient)
    return format("expected an activation, found number %d",
                  static_cast<int>(product.activation()));
  bool isGradient = product.activation() == fb::Activation::gelu_gradient;
  if (product.aux() && product.activation() == fb::Activation::none)
    return "expected an auxiliary matrix with an activation only";
  if (isGradient && (product.bias() || product.addend()))
    return "expected neither bias nor addend with the derivative of GELU";
  if (product.batches() > 1 && (product.bias() || product.activation() != fb::Activation::none))
    return "expected a bias or an activation for one batch only";
  return "";
}

static std::string problemOfSharing(const fb::Kernel &kernel, const fb::Product &product) {
  for (const Operand &written : operandsOf(product)) {
    if (!written.matrix || !written.isWritten)
      continue;
    uint32_t binding = written.matrix->binding();
    if (kernel.writes() && kernel.writes()->size() != 0 &&
        (binding >= kernel.writes()->size() || !kernel.writes()->Get(binding)))
      return format("%s: expected a binding that the kernel writes, found number %u", written.name,
                    binding);
    for (const Operand &other : operandsOf(product)) {
      bool isAddend =
          other.matrix && other.matrix == product.addend() && written.matrix == product.result();
      if (isAddend &&
          (other.matrix->offset() != written.matrix->offset() ||
           other.matrix->leading() != written.matrix->leading() ||
           other.matrix->batch_stride() != written.matrix->batch_stride()) &&
          other.matrix->binding() == binding)
        return "addend: expected the result's own elements in the result's binding";
      if (other.matrix && other.matrix != written.matrix && !isAddend &&
          other.matrix->binding() == binding)
        return format("%s: expected another binding than that of %s", other.name, written.name);
    }
  }
  return "";
}

std::string fsdprt::problemOfProduct(const fb::Kernel &kernel, const fb::Product &product) {
  if (std::string problem = problemOfForm(product); !problem.empty())
    return problem;
  for (const Operand &operand : operandsOf(product))
    if (std::string problem = problemOf(operand, kernel); !problem.empty())
      return std::string(operand.name) + ": " + problem;
  for (const fb::Matrix *matrix :
       {product.result(), product.addend(), product.aux(), product.bias()})
    if (matrix && matrix->transposed())
      return "expected the factors alone to be transposed";
  if (product.aux() && product.aux()->leading() % auxUnit != 0)
    return format("aux: expected rows a multiple of %llu elements apart, found %llu", (ull)auxUnit,
                  (ull)product.aux()->leading());
  if (std::string problem = problemOfTypes(product); !problem.empty())
    return problem;
  return problemOfSharing(kernel, product);
}

std::string fsdprt::problemOfMatrices(const fb::Kernel &kernel, const fb::Product &product) {
  for (const Operand &operand : operandsOf(product)) {
    if (!operand.matrix)
      continue;
    const fb::Matrix &matrix = *operand.matrix;
    uint64_t outer = matrix.transposed() ? operand.cols : operand.rows,
             inner = matrix.transposed() ? operand.rows : operand.cols;
    auto elements = static_cast<unsigned __int128>(product.batches() - 1) * matrix.batch_stride() +
                    static_cast<unsigned __int128>(outer - 1) * matrix.leading() + inner;
    uint64_t limit = kernel.binding_bytes()->Get(matrix.binding());
    if (elements * sizeOf(matrix.dtype()) + matrix.offset() > limit)
      return format("%s: expected it within the %llu bytes of binding %u", operand.name, (ull)limit,
                    matrix.binding());
  }
  return "";
}
