//===- CublasLtStub.cpp - A stub of cuBLASLt --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements the functions of cuBLASLt that the runtime calls, using the driver that
// FSDPRT_CUDA_LIBRARY names. A product is a PTX kernel with one thread per element, launched on the
// caller's stream. The stub checks requirements of the library's documentation: descriptors,
// leading dimensions, combinations of types, and the alignment that the caller stated to the
// heuristic. The stub rejects a product whose arguments differ from the arguments for which the
// heuristic has chosen the algorithm of the product.
//
//   FSDPRT_CUBLASLT_STUB_VERSION   result of cublasLtGetVersion (default: 130000)
//   FSDPRT_CUBLASLT_STUB_REFUSES   if 1, cublasLtCreate fails
//   FSDPRT_CUBLASLT_STUB_NONE      number n of columns for which products have no algorithm
//   FSDPRT_CUBLASLT_STUB_LOG       file to which the stub appends a line per used algorithm
//
//===----------------------------------------------------------------------===//

#include "device/cuda/CublasLt.h"
#include "testing/cublaslt/CublasLtStubKernels.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
constexpr uint64_t magic = 0x46534450;

struct Matrix {
  LtType type;
  uint64_t rows, cols;
  int64_t leading, batchStride = 0;
  int32_t batches = 1;
};

struct Product {
  int32_t transposeA = ltAsIs, transposeB = ltAsIs;
  int epilogue = ltPlain;
  const void *bias = nullptr, *aux = nullptr;
  int64_t auxLeading = 0;
};

struct Preference {
  uint64_t workspace = 0;
  uint32_t reductions = 7, alignments[4] = {256, 256, 256, 256};
};

template <typename T, typename Handle>
T &from(Handle handle) {
  return *reinterpret_cast<T *>(handle);
}

/// Writes the reason of a failure to stderr, since a status cannot contain a text. Returns the
/// status.
LtStatus refuse(const std::string &what, LtStatus status = ltInvalidValue) {
  std::fprintf(stderr, "cuBLASLt stub: %s\n", what.c_str());
  return status;
}

template <typename T>
bool copyTo(T &into, const void *value, size_t size) {
  if (size != sizeof into || !value)
    return false;
  std::memcpy(&into, value, size);
  return true;
}

uint64_t alignmentOf(const void *pointer) {
  auto address = reinterpret_cast<uintptr_t>(pointer);
  return address & (~address + 1);
}

/// The properties of a call on which an algorithm depends.
struct Call {
  const Product &product;
  const Matrix &a, &b, &c, &d;
  uint64_t m() const { return d.rows; }
  uint64_t n() const { return d.cols; }
  uint64_t k() const { return product.transposeA == ltAsIs ? a.cols : a.rows; }
  uint64_t hash() const;
  std::string problem() const;
};

uint64_t Call::hash() const {
  uint64_t value = magic;
  auto mix = [&](uint64_t number) { value = (value ^ number) * 0x100000001b3; };
  for (const Matrix *matrix : {&a, &b, &c, &d})
    for (auto number :
         {uint64_t(matrix->type), matrix->rows, matrix->cols, uint64_t(matrix->leading),
          uint64_t(matrix->batchStride), uint64_t(matrix->batches)})
      mix(number);
  for (int64_t number : {int64_t(product.transposeA), int64_t(product.transposeB),
                         int64_t(product.epilogue), product.auxLeading})
    mix(static_cast<uint64_t>(number));
  return value;
}

std::string Call::problem() const {
  uint64_t aRows = product.transposeA == ltAsIs ? a.rows : a.cols,
           bRows = product.transposeB == ltAsIs ? b.rows : b.cols;
  uint64_t bCols = product.transposeB == ltAsIs ? b.cols : b.rows;
  if (aRows != m() || bRows != k() || bCols != n() || c.rows != m() || c.cols != n())
    return "matrix sizes that do not match";
  for (const Matrix *matrix : {&a, &b, &c, &d})
    if (matrix->leading < static_cast<int64_t>(matrix->rows) || matrix->batches != d.batches)
      return "a leading dimension below the number of rows, or different numbers of batches";
  if (a.type != b.type || c.type != d.type || (d.type != a.type && d.type != ltF32))
    return "a combination of types that is not supported";
  constexpr int aux = ltAux, gelu = ltGelu, gradient = ltGeluGradient, bias = ltBias,
                plain = ltPlain;
  int known[] = {plain, bias, gelu, gelu | bias, gelu | aux, gelu | aux | bias, gradient};
  bool isKnown = false;
  for (int each : known)
    isKnown |= each == product.epilogue;
  if (!isKnown)
    return "unknown epilogue " + std::to_string(product.epilogue);
  bool hasBias = product.epilogue == bias || product.epilogue == (gelu | bias) ||
                 product.epilogue == (gelu | aux | bias);
  bool hasAux = (product.epilogue & aux) != 0;
  if (hasBias != (product.bias != nullptr) || hasAux != (product.aux != nullptr))
    return "an epilogue without its pointer, or a pointer without its epilogue";
  if (hasAux && (product.auxLeading % 8 != 0 || product.auxLeading < static_cast<int64_t>(m()) ||
                 alignmentOf(product.aux) < 16))
    return "an auxiliary matrix whose leading dimension is not a multiple of 8, or misaligned";
  return "";
}

/// Returns an algorithm, which consists of a magic number, the hash of the call, the size of the
/// workspace, and the alignments.
LtAlgorithm algorithmFor(const Call &call, const Preference &preference) {
  LtAlgorithm algorithm = {{magic, call.hash(), preference.workspace / 2}};
  for (int i = 0; i < 4; ++i)
    algorithm.data[3 + i] = preference.alignments[i];
  return algorithm;
}

uint64_t numberIn(const char *variable, uint64_t otherwise) {
  const char *given = std::getenv(variable);
  return given && *given ? std::strtoull(given, nullptr, 10) : otherwise;
}

void log(const Call &call) {
  const char *path = std::getenv("FSDPRT_CUBLASLT_STUB_LOG");
  std::FILE *file = path ? std::fopen(path, "a") : nullptr;
  if (!file)
    return;
  std::fprintf(file, "%llu x %llu x %llu, %d times, types %d %d, epilogue %d, call %llx\n",
               (unsigned long long)call.m(), (unsigned long long)call.n(),
               (unsigned long long)call.k(), call.d.batches, call.a.type, call.d.type,
               call.product.epilogue, (unsigned long long)call.hash());
  std::fclose(file);
}
} // namespace

extern "C" {
size_t cublasLtGetVersion() { return numberIn("FSDPRT_CUBLASLT_STUB_VERSION", 130000); }

const char *cublasLtGetStatusString(LtStatus status) {
  return status == ltNotSupported ? "not supported" : status == ltOk ? "success" : "invalid value";
}

LtStatus cublasLtCreate(LtHandle *handle) {
  if (numberIn("FSDPRT_CUBLASLT_STUB_REFUSES", 0))
    return refuse("creation fails as requested", ltNotInitialised);
  auto *kernels = new StubKernels();
  *handle = reinterpret_cast<LtHandle>(kernels);
  std::string problem = kernels->load();
  return problem.empty() ? ltOk : refuse(problem, ltNotInitialised);
}

LtStatus cublasLtDestroy(LtHandle handle) {
  delete &from<StubKernels>(handle);
  return ltOk;
}

LtStatus cublasLtMatmulDescCreate(LtProduct *product, int compute, LtType scale) {
  if (compute != ltComputeF32 || scale != ltF32)
    return refuse("expected a product that is computed and scaled in f32", ltNotSupported);
  *product = reinterpret_cast<LtProduct>(new Product());
  return ltOk;
}

LtStatus cublasLtMatmulDescDestroy(LtProduct product) {
  delete &from<Product>(product);
  return ltOk;
}

LtStatus cublasLtMatmulDescSetAttribute(LtProduct handle, LtProductAttribute attribute,
                                        const void *value, size_t size) {
  Product &product = from<Product>(handle);
  bool isSet = false;
  switch (attribute) {
  case ltTransposeA:
    isSet = copyTo(product.transposeA, value, size);
    break;
  case ltTransposeB:
    isSet = copyTo(product.transposeB, value, size);
    break;
  case ltEpilogue:
    isSet = copyTo(product.epilogue, value, size);
    break;
  case ltBiasPointer:
    isSet = copyTo(product.bias, value, size);
    break;
  case ltAuxPointer:
    isSet = copyTo(product.aux, value, size);
    break;
  case ltAuxLeading:
    isSet = copyTo(product.auxLeading, value, size);
    break;
  }
  return isSet ? ltOk
               : refuse("attribute " + std::to_string(attribute) + " of a product, of " +
                        std::to_string(size) + " bytes");
}

LtStatus cublasLtMatrixLayoutCreate(LtMatrix *matrix, LtType type, uint64_t rows, uint64_t cols,
                                    int64_t leading) {
  if (type != ltF32 && type != ltF16 && type != ltBF16)
    return refuse("unknown matrix type " + std::to_string(type));
  *matrix = reinterpret_cast<LtMatrix>(new Matrix{type, rows, cols, leading});
  return ltOk;
}

LtStatus cublasLtMatrixLayoutDestroy(LtMatrix matrix) {
  delete &from<Matrix>(matrix);
  return ltOk;
}

LtStatus cublasLtMatrixLayoutSetAttribute(LtMatrix handle, LtMatrixAttribute attribute,
                                          const void *value, size_t size) {
  Matrix &matrix = from<Matrix>(handle);
  bool isSet = attribute == ltBatchCount    ? copyTo(matrix.batches, value, size)
               : attribute == ltBatchStride ? copyTo(matrix.batchStride, value, size)
                                            : false;
  return isSet ? ltOk : refuse("unknown matrix attribute " + std::to_string(attribute));
}

LtStatus cublasLtMatmulPreferenceCreate(LtPreference *preference) {
  *preference = reinterpret_cast<LtPreference>(new Preference());
  return ltOk;
}

LtStatus cublasLtMatmulPreferenceDestroy(LtPreference preference) {
  delete &from<Preference>(preference);
  return ltOk;
}

LtStatus cublasLtMatmulPreferenceSetAttribute(LtPreference handle, int attribute, const void *value,
                                              size_t size) {
  Preference &preference = from<Preference>(handle);
  bool isSet = attribute == ltMaxWorkspace    ? copyTo(preference.workspace, value, size)
               : attribute == ltReductionMask ? copyTo(preference.reductions, value, size)
               : attribute >= ltMinAlignmentA && attribute < ltMinAlignmentA + 4
                   ? copyTo(preference.alignments[attribute - ltMinAlignmentA], value, size)
                   : false;
  return isSet ? ltOk : refuse("unknown preference attribute " + std::to_string(attribute));
}

LtStatus cublasLtMatmulAlgoGetHeuristic(LtHandle, LtProduct product, LtMatrix a, LtMatrix b,
                                        LtMatrix c, LtMatrix d, LtPreference handle, int wanted,
                                        LtHeuristic *results, int *count) {
  const Preference &preference = from<Preference>(handle);
  Call call{from<Product>(product), from<Matrix>(a), from<Matrix>(b), from<Matrix>(c),
            from<Matrix>(d)};
  *count = 0;
  if (wanted < 1)
    return refuse("expected at least one requested algorithm");
  if (std::string problem = call.problem(); !problem.empty())
    return refuse(problem);
  if (preference.reductions & ~ltReduceInComputeType)
    return refuse("expected reductions in f32 and in a fixed order");
  if (numberIn("FSDPRT_CUBLASLT_STUB_NONE", 0) == call.m())
    return ltNotSupported;
  log(call);
  results[0] = {};
  results[0].algorithm = algorithmFor(call, preference);
  results[0].workspaceBytes = preference.workspace / 2;
  *count = 1;
  return ltOk;
}

LtStatus cublasLtMatmul(LtHandle handle, LtProduct product, const void *alpha, const void *a,
                        LtMatrix aMatrix, const void *b, LtMatrix bMatrix, const void *beta,
                        const void *c, LtMatrix cMatrix, void *d, LtMatrix dMatrix,
                        const LtAlgorithm *algorithm, void *workspace, size_t workspaceBytes,
                        CudaStream stream) {
  Call call{from<Product>(product), from<Matrix>(aMatrix), from<Matrix>(bMatrix),
            from<Matrix>(cMatrix), from<Matrix>(dMatrix)};
  if (std::string problem = call.problem(); !problem.empty())
    return refuse(problem);
  if (!algorithm || algorithm->data[0] != magic || algorithm->data[1] != call.hash())
    return refuse("an algorithm that the heuristic gave for another call");
  if (workspaceBytes < algorithm->data[2] || (workspaceBytes && alignmentOf(workspace) < 256))
    return refuse("a workspace that is too small, or not aligned to 256 bytes");
  const void *pointers[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (!pointers[i] || alignmentOf(pointers[i]) < algorithm->data[3 + i])
      return refuse("a pointer with less alignment than the algorithm requires");
  float one = *static_cast<const float *>(alpha), addend = *static_cast<const float *>(beta);
  if (one != 1 || (addend != 0 && addend != 1))
    return refuse("expected scales 1, and 0 or 1", ltNotSupported);
  StubProduct stub;
  stub.pointers = {a, b, c, d, call.product.bias, call.product.aux};
  stub.m = call.m(), stub.n = call.n(), stub.k = call.k();
  stub.batches = static_cast<uint64_t>(call.d.batches);
  auto strides = [](const Matrix &matrix, bool isTransposed) {
    auto leading = static_cast<uint64_t>(matrix.leading),
         batch = static_cast<uint64_t>(matrix.batchStride);
    return isTransposed ? StubStrides{leading, 1, batch} : StubStrides{1, leading, batch};
  };
  stub.a = strides(call.a, call.product.transposeA == ltTransposed);
  stub.b = strides(call.b, call.product.transposeB == ltTransposed);
  stub.c = strides(call.c, false);
  stub.d = strides(call.d, false);
  stub.auxLeading = static_cast<uint64_t>(call.product.auxLeading);
  bool isGradient = call.product.epilogue == ltGeluGradient,
       isGelu = (call.product.epilogue & ltGelu) != 0;
  stub.flags = (addend != 0 ? StubProduct::adds : 0) |
               (call.product.bias ? StubProduct::hasBias : 0) | (isGelu ? StubProduct::isGelu : 0) |
               (isGelu && call.product.aux ? StubProduct::storesArgument : 0) |
               (isGradient ? StubProduct::isGradient : 0);
  std::string problem = from<StubKernels>(handle).launch(stub, call.a.type, call.d.type, stream);
  return problem.empty() ? ltOk : refuse(problem, ltExecutionFailed);
}
}
