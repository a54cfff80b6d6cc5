//===- CublasLtStubKernels.cpp - Kernels of the cuBLASLt stub ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each thread computes one element of the result. The thread adds the products in the order of k.
//
//===----------------------------------------------------------------------===//

#include "testing/cublaslt/CublasLtStubKernels.h"
#include <cstdlib>
#include <dlfcn.h>
#include <vector>

using namespace fsdprt;
using namespace fsdprt::test;

/// Names of the kernel's parameters, in order. Each parameter has 8 bytes.
static const char *const names[] = {"a",      "b",    "c",    "d",       "bias",   "aux",
                                    "m",      "n",    "k",    "batches", "arow",   "acol",
                                    "abatch", "brow", "bcol", "bbatch",  "crow",   "ccol",
                                    "cbatch", "drow", "dcol", "dbatch",  "auxcol", "flags"};

static const char *nameOf(LtType type) {
  return type == ltF32 ? "f32" : type == ltF16 ? "f16" : "bf16";
}
static int bytesOf(LtType type) { return type == ltF32 ? 4 : 2; }

static std::string load(LtType type, const std::string &into, const std::string &address) {
  if (type == ltF32)
    return "  ld.global.f32 " + into + ", [" + address + "];\n";
  std::string half = "  ld.global.b16 %h1, [" + address + "];\n";
  if (type == ltF16)
    return half + "  cvt.f32.f16 " + into + ", %h1;\n";
  return half + "  mov.b16 %h2, 0;\n  mov.b32 %r9, {%h2, %h1};\n  mov.b32 " + into + ", %r9;\n";
}

static std::string store(LtType type, const std::string &value, const std::string &address) {
  if (type == ltF32)
    return "  st.global.f32 [" + address + "], " + value + ";\n";
  return std::string("  cvt.rn.") + nameOf(type) + ".f32 %h1, " + value + ";\n  st.global.b16 [" +
         address + "], %h1;\n";
}

/// Returns PTX that sets `into` to the address of element (i, j) of `matrix`, whose elements have
/// `bytes` bytes. %rd40 contains the index of the matrix in the batch.
static std::string place(const std::string &matrix, const std::string &i, const std::string &j,
                         int bytes, const std::string &into) {
  std::string text = "  mul.lo.u64 " + into + ", %rd40, %" + matrix + "batch;\n";
  if (!i.empty())
    text += "  mad.lo.u64 " + into + ", " + i + ", %" + matrix + "row, " + into + ";\n";
  if (!j.empty())
    text += "  mad.lo.u64 " + into + ", " + j + ", %" + matrix + "col, " + into + ";\n";
  return text + "  mul.lo.u64 " + into + ", " + into + ", " + std::to_string(bytes) +
         ";\n  add.u64 " + into + ", " + into + ", %" + matrix + ";\n";
}

/// PTX that computes %f3 = tanh(sqrt(2/pi) (x + 0.044715 x^3)), where x is the value of %f1.
/// Afterwards, %f2 contains x^2.
static const char *const tanhText = R"(  mul.f32 %f2, %f1, %f1;
  mul.f32 %f3, %f2, 0f3D372713;
  fma.rn.f32 %f3, %f3, %f1, %f1;
  mul.f32 %f3, %f3, 0f3F4C422A;
  tanh.approx.f32 %f3, %f3;
)";

static std::string entry(LtType factors, LtType result) {
  std::string text =
      std::string(".visible .entry product_") + nameOf(factors) + "_" + nameOf(result) + "(\n";
  for (const char *name : names)
    text += std::string("  .param .u64 p_") + name +
            (name == names[std::size(names) - 1] ? ")\n{\n" : ",\n");
  text += "  .reg .u64 %rd<64>;\n  .reg .u32 %r<16>;\n  .reg .f32 %f<16>;\n  .reg .b16 %h<4>;\n  "
          ".reg .pred %p<8>;\n";
  for (const char *name : names)
    text += std::string("  .reg .u64 %") + name + ";\n";
  for (const char *name : names)
    text += std::string("  ld.param.u64 %") + name + ", [p_" + name + "];\n";
  text += R"(  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd1, %r1, %r2;
  cvt.u64.u32 %rd2, %r3;
  add.u64 %rd1, %rd1, %rd2;
  mul.lo.u64 %rd3, %m, %n;
  mul.lo.u64 %rd4, %rd3, %batches;
  setp.ge.u64 %p1, %rd1, %rd4;
  @%p1 bra DONE;
  div.u64 %rd40, %rd1, %rd3;
  rem.u64 %rd5, %rd1, %rd3;
  rem.u64 %rd41, %rd5, %m;
  div.u64 %rd42, %rd5, %m;
)";
  int in = bytesOf(factors), out = bytesOf(result);
  text += place("a", "%rd41", "", in, "%rd10") + place("b", "", "%rd42", in, "%rd11");
  text += "  mul.lo.u64 %rd12, %acol, " + std::to_string(in) + ";\n  mul.lo.u64 %rd13, %brow, " +
          std::to_string(in) + ";\n";
  text += "  mov.f32 %f1, 0f00000000;\n  mov.u64 %rd14, 0;\nLOOP:\n" +
          load(factors, "%f4", "%rd10") + load(factors, "%f5", "%rd11");
  text += R"(  fma.rn.f32 %f1, %f4, %f5, %f1;
  add.u64 %rd10, %rd10, %rd12;
  add.u64 %rd11, %rd11, %rd13;
  add.u64 %rd14, %rd14, 1;
  setp.lt.u64 %p2, %rd14, %k;
  @%p2 bra LOOP;
)";
  auto when = [&](uint32_t flag, const char *label, const std::string &body) {
    text += "  and.b64 %rd15, %flags, " + std::to_string(flag) +
            ";\n  setp.eq.u64 %p3, %rd15, 0;\n  @%p3 bra " + label + ";\n" + body + label + ":\n";
  };
  std::string rows = std::to_string(out);
  when(StubProduct::adds, "ADDED",
       place("c", "%rd41", "%rd42", out, "%rd16") + load(result, "%f4", "%rd16") +
           "  add.f32 %f1, %f1, %f4;\n");
  when(StubProduct::hasBias, "BIASED",
       "  mul.lo.u64 %rd16, %rd41, " + rows + ";\n  add.u64 %rd16, %rd16, %bias;\n" +
           load(result, "%f4", "%rd16") + "  add.f32 %f1, %f1, %f4;\n");
  text += "  mad.lo.u64 %rd17, %rd42, %auxcol, %rd41;\n  mul.lo.u64 %rd17, %rd17, " + rows +
          ";\n  add.u64 %rd17, %rd17, %aux;\n";
  when(StubProduct::storesArgument, "STORED", store(result, "%f1", "%rd17"));
  when(StubProduct::isGelu, "CURVED",
       std::string(tanhText) + "  add.f32 %f3, %f3, 0f3F800000;\n  mul.f32 %f1, %f1, 0f3F000000;\n "
                               " mul.f32 %f1, %f1, %f3;\n");
  // The derivative of GELU is (1 + t) / 2 + x / 2 (1 - t^2) sqrt(2/pi) (1 + 3 * 0.044715 x^2), with
  // t = %f3.
  when(StubProduct::isGradient, "SLOPED",
       "  mov.f32 %f6, %f1;\n" + load(result, "%f1", "%rd17") + tanhText +
           R"(  fma.rn.f32 %f7, %f2, 0f3E095D4F, 0f3F800000;
  mul.f32 %f7, %f7, 0f3F4C422A;
  mul.f32 %f7, %f7, %f1;
  mul.f32 %f8, %f3, %f3;
  sub.f32 %f8, 0f3F800000, %f8;
  mul.f32 %f7, %f7, %f8;
  add.f32 %f7, %f7, %f3;
  add.f32 %f7, %f7, 0f3F800000;
  mul.f32 %f7, %f7, 0f3F000000;
  mul.f32 %f1, %f6, %f7;
)");
  return text + place("d", "%rd41", "%rd42", out, "%rd18") + store(result, "%f1", "%rd18") +
         "DONE:\n  ret;\n}\n";
}

std::string StubKernels::load() {
  const char *given = std::getenv("FSDPRT_CUDA_LIBRARY");
  void *driver = dlopen(given && *given ? given : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver)
    return "no driver is loaded";
  auto loadData = reinterpret_cast<CudaResult (*)(CudaModule *, const void *)>(
      dlsym(driver, "cuModuleLoadData"));
  getFunction = reinterpret_cast<decltype(getFunction)>(dlsym(driver, "cuModuleGetFunction"));
  launchKernel = reinterpret_cast<decltype(launchKernel)>(dlsym(driver, "cuLaunchKernel"));
  if (!loadData || !getFunction || !launchKernel)
    return "the driver lacks functions that load modules or launch kernels";
  std::string text = ".version 7.1\n.target sm_80\n.address_size 64\n";
  for (LtType type : {ltF32, ltF16, ltBF16}) {
    text += entry(type, type);
    if (type != ltF32)
      text += entry(type, ltF32);
  }
  return loadData(&module, text.c_str()) == cudaOk ? "" : "the driver rejects the stub's kernels";
}

std::string StubKernels::launch(const StubProduct &product, LtType factors, LtType result,
                                CudaStream stream) {
  CudaFunction function = nullptr;
  std::string name = std::string("product_") + nameOf(factors) + "_" + nameOf(result);
  if (getFunction(&function, module, name.c_str()) != cudaOk)
    return "the stub has no kernel " + name;
  std::vector<uint64_t> values;
  for (const void *pointer : product.pointers)
    values.push_back(reinterpret_cast<uint64_t>(pointer));
  for (uint64_t size : {product.m, product.n, product.k, product.batches})
    values.push_back(size);
  for (const StubStrides &strides : {product.a, product.b, product.c, product.d})
    for (uint64_t stride : {strides.row, strides.col, strides.batch})
      values.push_back(stride);
  values.push_back(product.auxLeading);
  values.push_back(product.flags);
  std::vector<void *> arguments;
  for (uint64_t &value : values)
    arguments.push_back(&value);
  constexpr uint64_t threads = 128;
  auto blocks =
      static_cast<unsigned>((product.m * product.n * product.batches + threads - 1) / threads);
  return launchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, arguments.data(),
                      nullptr) == cudaOk
             ? ""
             : "the launch of a product failed";
}
