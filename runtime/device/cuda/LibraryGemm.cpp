//===- LibraryGemm.cpp - Matrix products by cuBLASLt ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     artifact                       cuBLASLt
//     result = lhs · rhs, m x n      D = A · B, n x m: A is rhs, transposed if rhs is transposed;
//                                    B is lhs, transposed if lhs is transposed; C is the addend
//     bias, along a row              bias, along a column of D
//
// The alignments of the matrices determine which algorithms are possible. A binding is aligned to
// 64 bytes. A matrix that begins at an offset in its binding may have a smaller alignment. If an
// algorithm uses split-k, it adds its partial sums in a fixed order.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/LibraryGemm.h"
#include "core/DType.h"
#include "core/Error.h"
#include <algorithm>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr uint64_t bindingAlignment = 64;
static constexpr float one = 1, zero = 0;

static LtType typeOf(DType type) {
  return type == DType::bf16 ? ltBF16 : type == DType::f16 ? ltF16 : ltF32;
}

static uint64_t alignmentOf(const fb::Matrix &matrix) {
  uint64_t lowest = matrix.offset() & (~matrix.offset() + 1);
  return lowest == 0 ? bindingAlignment : std::min(lowest, bindingAlignment);
}

using ProductVisitor = std::function<void(const fb::Kernel &, const fb::Phase &)>;
static void forEachProduct(const fb::Manifest &manifest, const ProductVisitor &visit) {
  for (uint32_t i = 0; manifest.kernels() && i < manifest.kernels()->size(); ++i)
    for (const fb::Phase *phase : *manifest.kernels()->Get(i)->phases())
      if (phase->product())
        visit(*manifest.kernels()->Get(i), *phase);
}

bool fsdprt::hasProducts(const fb::Manifest &manifest) {
  bool found = false;
  forEachProduct(manifest, [&](const fb::Kernel &, const fb::Phase &) { found = true; });
  return found;
}

static std::string textOf(const fb::Product &product) {
  static const char *const activations[] = {"", ", GELU", ", the derivative of GELU"};
  auto types = [](const fb::Matrix &matrix) {
    return std::string(nameOf(matrix.dtype())) + (matrix.transposed() ? " transposed" : "");
  };
  return format("%llu x %llu (%s) by %llu x %llu (%s), %llu time%s, to %s%s%s%s", (ull)product.m(),
                (ull)product.k(), types(*product.lhs()).c_str(), (ull)product.k(), (ull)product.n(),
                types(*product.rhs()).c_str(), (ull)product.batches(),
                product.batches() == 1 ? "" : "s", nameOf(product.result()->dtype()),
                product.addend() ? ", added" : "", product.bias() ? ", a bias" : "",
                activations[static_cast<int>(product.activation())]);
}

struct LibraryGemm::Call {
  Call(const CublasLt &library, const fb::Product &product);
  ~Call();
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  void place(LtProductAttribute pointer, const void *address) const;

  const CublasLt &library;
  const fb::Product &product;
  LtProduct descriptor = nullptr;
  LtMatrix a = nullptr, b = nullptr, c = nullptr, d = nullptr;

private:
  template <typename T>
  void set(LtProductAttribute attribute, T value) const {
    library.check(library.productSet(descriptor, attribute, &value, sizeof value),
                  "describe a matrix product");
  }
  LtMatrix describe(const fb::Matrix &matrix, uint64_t rows, uint64_t cols) const;
};

/// Creates the cuBLASLt layout of a matrix that has `rows` rows and `cols` columns. If the matrix
/// is transposed, the columns of the layout are the columns of the matrix. Otherwise the columns of
/// the layout are the rows of the matrix.
LtMatrix LibraryGemm::Call::describe(const fb::Matrix &matrix, uint64_t rows, uint64_t cols) const {
  LtMatrix made = nullptr;
  bool isTransposed = matrix.transposed();
  library.check(library.matrixCreate(&made, typeOf(matrix.dtype()), isTransposed ? rows : cols,
                                     isTransposed ? cols : rows,
                                     static_cast<int64_t>(matrix.leading())),
                "describe a matrix");
  if (product.batches() > 1) {
    auto batches = static_cast<int32_t>(product.batches());
    auto stride = static_cast<int64_t>(matrix.batch_stride());
    library.check(library.matrixSet(made, ltBatchCount, &batches, sizeof batches),
                  "describe a matrix");
    library.check(library.matrixSet(made, ltBatchStride, &stride, sizeof stride),
                  "describe a matrix");
  }
  return made;
}

LibraryGemm::Call::Call(const CublasLt &library, const fb::Product &product)
    : library(library), product(product) {
  library.check(library.productCreate(&descriptor, ltComputeF32, ltF32),
                "describe a matrix product");
  set(ltTransposeA, product.rhs()->transposed() ? ltTransposed : ltAsIs);
  set(ltTransposeB, product.lhs()->transposed() ? ltTransposed : ltAsIs);
  int epilogue = product.bias() ? ltBias : 0;
  if (product.activation() == fb::Activation::gelu)
    epilogue |= ltGelu | (product.aux() ? ltAux : 0);
  else if (product.activation() == fb::Activation::gelu_gradient)
    epilogue |= ltGeluGradient;
  set(ltEpilogue, epilogue ? epilogue : static_cast<int>(ltPlain));
  if (product.aux())
    set(ltAuxLeading, static_cast<int64_t>(product.aux()->leading()));
  a = describe(*product.rhs(), product.k(), product.n());
  b = describe(*product.lhs(), product.m(), product.k());
  c = describe(product.addend() ? *product.addend() : *product.result(), product.m(), product.n());
  d = describe(*product.result(), product.m(), product.n());
}

LibraryGemm::Call::~Call() {
  for (LtMatrix matrix : {a, b, c, d})
    if (matrix)
      library.matrixDestroy(matrix);
  if (descriptor)
    library.productDestroy(descriptor);
}

void LibraryGemm::Call::place(LtProductAttribute pointer, const void *address) const {
  set(pointer, address);
}

LibraryGemmPlans::LibraryGemmPlans(const Artifact &artifact)
    : library(artifact.getFile().c_str()), artifact(artifact) {
  if (LtStatus status = library.create(&handle.value); status != ltOk)
    failed("%s: cannot initialise cuBLASLt, '%s': %s", artifact.getFile().c_str(),
           printable(library.getPath()).c_str(), library.reason(status).c_str());
  forEachProduct(artifact.manifest(),
                 [this](const fb::Kernel &kernel, const fb::Phase &phase) { plan(kernel, phase); });
}

/// Returns the matrix C of a product: the addend, or the result if there is no addend.
static const fb::Matrix *addendOf(const fb::Product &product) {
  return product.addend() ? product.addend() : product.result();
}

/// Returns all properties of a product on which the choice of an algorithm may depend.
static std::vector<uint64_t> keyOf(const fb::Product &product, uint64_t workspace) {
  std::vector<uint64_t> key{product.m(),
                            product.n(),
                            product.k(),
                            product.batches(),
                            static_cast<uint64_t>(product.activation()),
                            workspace};
  for (const fb::Matrix *matrix : {product.lhs(), product.rhs(), product.result(),
                                   addendOf(product), product.bias(), product.aux()}) {
    key.push_back(matrix != nullptr);
    if (matrix)
      key.insert(key.end(), {static_cast<uint64_t>(matrix->dtype()), matrix->transposed(),
                             matrix->leading(), matrix->batch_stride(), alignmentOf(*matrix)});
  }
  return key;
}

namespace {
struct Preference {
  explicit Preference(const CublasLt &library) : library(library) {
    library.check(library.preferenceCreate(&value), "set preferences of a matrix product");
  }
  ~Preference() { library.preferenceDestroy(value); }
  template <typename T>
  void set(int attribute, T number) {
    library.check(library.preferenceSet(value, static_cast<LtPreferenceAttribute>(attribute),
                                        &number, sizeof number),
                  "set preferences of a matrix product");
  }
  const CublasLt &library;
  LtPreference value = nullptr;
};
} // namespace

/// Returns an arbitrary address that has the alignment of the matrix. To choose an algorithm,
/// cuBLASLt needs only the alignment of the address.
static const void *standIn(const fb::Matrix &matrix) {
  return reinterpret_cast<const void *>((uintptr_t(1) << 20) + alignmentOf(matrix));
}

void LibraryGemmPlans::plan(const fb::Kernel &kernel, const fb::Phase &phase) {
  const fb::Product &product = *phase.product();
  auto [entry, isNew] = algorithms.try_emplace(keyOf(product, kernel.shared_bytes()));
  byPhase[&phase] = &entry->second;
  if (!isNew)
    return;
  LibraryGemm::Call call(library, product);
  if (product.bias())
    call.place(ltBiasPointer, standIn(*product.bias()));
  if (product.aux())
    call.place(ltAuxPointer, standIn(*product.aux()));
  Preference preference(library);
  preference.set(ltMaxWorkspace, kernel.shared_bytes());
  preference.set(ltReductionMask, ltReduceInComputeType);
  int matrix = ltMinAlignmentA;
  for (const fb::Matrix *of : {product.rhs(), product.lhs(), addendOf(product), product.result()})
    preference.set(matrix++, static_cast<uint32_t>(alignmentOf(*of)));
  LtHeuristic found = {};
  int count = 0;
  LtStatus status = library.getHeuristic(handle.value, call.descriptor, call.a, call.b, call.c,
                                         call.d, preference.value, 1, &found, &count);
  if (status == ltOk && count > 0)
    status = found.state;
  if (status != ltOk || count < 1)
    badInput("%s: kernel '%s': expected an algorithm of cuBLASLt for %s, with %s of workspace, "
             "found none%s; compile with --gemm=nvptx",
             artifact.getFile().c_str(), printable(kernel.name()->str()).c_str(),
             textOf(product).c_str(), bytesText(kernel.shared_bytes()).c_str(),
             status == ltOk ? "" : (" (" + library.reason(status) + ")").c_str());
  entry->second = found.algorithm;
}

LibraryGemm::LibraryGemm(std::shared_ptr<const LibraryGemmPlans> given, const Artifact &artifact)
    : plans(std::move(given)) {
  forEachProduct(artifact.manifest(), [this](const fb::Kernel &, const fb::Phase &phase) {
    calls.emplace(&phase, std::make_unique<Call>(plans->library, *phase.product()));
  });
}

LibraryGemm::~LibraryGemm() = default;

void LibraryGemm::launch(const fb::Kernel &kernel, const fb::Phase &phase, void *const *bindings,
                         CudaStream stream) {
  const Call &call = *calls.at(&phase);
  const fb::Product &product = call.product;
  auto addressOf = [&](const fb::Matrix &matrix) {
    return static_cast<void *>(static_cast<std::byte *>(bindings[matrix.binding()]) +
                               matrix.offset());
  };
  if (product.bias())
    call.place(ltBiasPointer, addressOf(*product.bias()));
  if (product.aux())
    call.place(ltAuxPointer, addressOf(*product.aux()));
  uint64_t workspace = kernel.shared_bytes();
  void *scratch = workspace ? bindings[kernel.binding_bytes()->size()] : nullptr;
  void *result = addressOf(*product.result());
  LtStatus status = plans->library.multiply(
      plans->getHandle(), call.descriptor, &one, addressOf(*product.rhs()), call.a,
      addressOf(*product.lhs()), call.b, product.addend() ? &one : &zero,
      product.addend() ? addressOf(*product.addend()) : result, call.c, result, call.d,
      &plans->algorithmOf(phase), scratch, workspace, stream);
  if (status != ltOk)
    failed("kernel '%s': cannot multiply %s: %s", printable(kernel.name()->str()).c_str(),
           textOf(product).c_str(), plans->library.reason(status).c_str());
}
