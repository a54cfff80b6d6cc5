//===- LibraryGemmTest.cpp - Library GEMMs on the emulator -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares products of the cuBLASLt stub with products that the test computes. The stub runs on the
// emulated CUDA driver, and also checks the arguments of its functions.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/LibraryGemm.h"
#include "core/DType.h"
#include "core/Error.h"
#include "testing/toy/ToyModel.h"
#include <cmath>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <random>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
enum Binding : uint32_t {
  lhsBinding,
  rhsBinding,
  resultBinding,
  addendBinding,
  biasBinding,
  auxBinding,
  numBindings
};

struct Case {
  const char *name = "";
  DType factors = DType::bf16, result = DType::bf16;
  uint64_t m = 13, n = 24, k = 9, batches = 1;
  bool transposesLhs = false, transposesRhs = false, adds = false, addsInPlace = false,
       hasBias = false, hasAux = false;
  fb::Activation activation = fb::Activation::none;
};

std::ostream &operator<<(std::ostream &os, const Case &c) { return os << c.name; }

constexpr fb::Activation gelu = fb::Activation::gelu, geluGradient = fb::Activation::gelu_gradient;
Case with(const char *name, void (*change)(Case &)) {
  Case made;
  made.name = name;
  change(made);
  return made;
}

const Case cases[] = {
    with("plain", [](Case &) {}),
    with("f16", [](Case &c) { c.factors = c.result = DType::f16; }),
    with("f32", [](Case &c) { c.factors = c.result = DType::f32, c.transposesLhs = true; }),
    with("wide", [](Case &c) { c.result = DType::f32, c.transposesRhs = c.adds = true; }),
    with("transposed", [](Case &c) { c.transposesLhs = c.transposesRhs = true; }),
    with("batches", [](Case &c) { c.m = 5, c.batches = 3, c.transposesRhs = c.adds = true; }),
    with("accumulate",
         [](Case &c) { c.result = DType::f32, c.transposesLhs = c.addsInPlace = true; }),
    with("bias", [](Case &c) { c.adds = c.hasBias = true; }),
    with("gelu", [](Case &c) { c.hasBias = true, c.activation = gelu; }),
    with("argument", [](Case &c) { c.hasBias = c.hasAux = true, c.activation = gelu; }),
    with("gradient",
         [](Case &c) { c.transposesRhs = c.hasAux = true, c.activation = geluGradient; }),
    with("row", [](Case &c) { c.m = 1, c.n = 8, c.hasBias = true; }),
    with("number", [](Case &c) { c.m = c.n = 1, c.k = 33; }),
};

/// A binding that contains a matrix or a batch of matrices. There is padding between the rows of a
/// matrix.
struct Tensor {
  fb::MatrixT matrix;
  uint64_t rows, cols;
  std::vector<float> values; // [batch][row][col]
  std::vector<std::byte> bytes;

  float &at(uint64_t batch, uint64_t i, uint64_t j) {
    return values[(batch * rows + i) * cols + j];
  }
  std::byte *place(uint64_t batch, uint64_t i, uint64_t j) {
    uint64_t element = batch * matrix.batch_stride +
                       (matrix.transposed ? j * matrix.leading + i : i * matrix.leading + j);
    return bytes.data() + matrix.offset + element * sizeOf(matrix.dtype);
  }
};

class ProductTest : public testing::TestWithParam<Case> {
protected:
  static Tensor make(uint32_t binding, DType dtype, uint64_t batches, uint64_t rows, uint64_t cols,
                     bool isTransposed = false);
  void build();
  std::vector<std::byte> run();
  float expected(uint64_t batch, uint64_t i, uint64_t j, float *argument);

  std::array<Tensor, numBindings> tensors;
};
} // namespace

Tensor ProductTest::make(uint32_t binding, DType dtype, uint64_t batches, uint64_t rows,
                         uint64_t cols, bool isTransposed) {
  Tensor tensor;
  tensor.rows = rows, tensor.cols = cols;
  tensor.matrix.binding = binding;
  tensor.matrix.dtype = dtype;
  tensor.matrix.offset = binding == auxBinding ? 0 : 16;
  tensor.matrix.transposed = isTransposed;
  tensor.matrix.leading = ((isTransposed ? rows : cols) + 7) / 8 * 8 + 8;
  uint64_t outer = isTransposed ? cols : rows;
  tensor.matrix.batch_stride = batches > 1 ? outer * tensor.matrix.leading : 0;
  tensor.values.resize(batches * rows * cols);
  tensor.bytes.resize(tensor.matrix.offset +
                      batches * outer * tensor.matrix.leading * sizeOf(dtype));
  std::mt19937 random(binding + 1);
  std::uniform_real_distribution<float> draw(-1, 1);
  for (uint64_t b = 0; b < batches; ++b)
    for (uint64_t i = 0; i < rows; ++i)
      for (uint64_t j = 0; j < cols; ++j) {
        storeElement(dtype, draw(random), tensor.place(b, i, j));
        tensor.at(b, i, j) = static_cast<float>(loadElement(dtype, tensor.place(b, i, j)));
      }
  return tensor;
}

void ProductTest::build() {
  const Case &c = GetParam();
  tensors[lhsBinding] = make(lhsBinding, c.factors, c.batches, c.m, c.k, c.transposesLhs);
  tensors[rhsBinding] = make(rhsBinding, c.factors, c.batches, c.k, c.n, c.transposesRhs);
  for (uint32_t binding : {resultBinding, addendBinding, auxBinding})
    tensors[binding] = make(binding, c.result, c.batches, c.m, c.n);
  tensors[biasBinding] = make(biasBinding, c.result, 1, 1, c.n);
}

/// Returns the expected element (i, j) of the result. Sets `argument` to the value to which the
/// activation function is applied.
float ProductTest::expected(uint64_t batch, uint64_t i, uint64_t j, float *argument) {
  const Case &c = GetParam();
  double sum = 0;
  for (uint64_t l = 0; l < c.k; ++l)
    sum += double(tensors[lhsBinding].at(batch, i, l)) * tensors[rhsBinding].at(batch, l, j);
  if (c.adds || c.addsInPlace)
    sum += tensors[c.adds ? addendBinding : resultBinding].at(batch, i, j);
  if (c.hasBias)
    sum += tensors[biasBinding].at(0, 0, j);
  *argument = static_cast<float>(sum);
  double x = c.activation == geluGradient ? tensors[auxBinding].at(batch, i, j) : sum,
         scale = std::sqrt(2 / M_PI);
  double t = std::tanh(scale * (x + 0.044715 * x * x * x));
  if (c.activation == gelu)
    return static_cast<float>(x / 2 * (1 + t));
  if (c.activation == geluGradient)
    return static_cast<float>(
        sum * ((1 + t) / 2 + x / 2 * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x)));
  return static_cast<float>(sum);
}

namespace {
/// Device memory that contains the bindings, followed by the workspace.
class DeviceMemory {
public:
  explicit DeviceMemory(const CudaDriver &cuda) : cuda(cuda) {
    void *library = dlopen(FSDPRT_EMULATED_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    toDevice = reinterpret_cast<decltype(toDevice)>(dlsym(library, "cuMemcpyHtoD_v2"));
    toHost = reinterpret_cast<decltype(toHost)>(dlsym(library, "cuMemcpyDtoH_v2"));
    allocate = reinterpret_cast<decltype(allocate)>(dlsym(library, "cuMemAlloc_v2"));
  }
  ~DeviceMemory() {
    for (void *pointer : pointers)
      cuda.memFree(reinterpret_cast<CudaPointer>(pointer));
  }
  void add(const void *data, size_t bytes) {
    CudaPointer address = 0;
    ASSERT_EQ(allocate(&address, bytes), cudaOk);
    pointers.push_back(reinterpret_cast<void *>(address));
    ASSERT_EQ(toDevice(address, data, bytes), cudaOk);
  }
  void read(size_t index, std::vector<std::byte> &into) const {
    ASSERT_EQ(toHost(into.data(), reinterpret_cast<CudaPointer>(pointers[index]), into.size()),
              cudaOk);
  }
  void *const *bindings() const { return pointers.data(); }

private:
  const CudaDriver &cuda;
  CudaResult (*toDevice)(CudaPointer, const void *, size_t);
  CudaResult (*toHost)(void *, CudaPointer, size_t);
  CudaResult (*allocate)(CudaPointer *, size_t);
  std::vector<void *> pointers;
};
} // namespace

/// Returns an artifact with two kernels, which compute the same product.
static std::shared_ptr<const Artifact> artifactOf(const Case &c,
                                                  std::array<Tensor, numBindings> &tensors) {
  fb::ManifestT manifest = toyManifest({});
  manifest.gpu = std::make_unique<fb::GpuT>();
  manifest.gpu->chip = "sm_80";
  manifest.kernels.clear();
  for (const char *name : {"first", "second"}) {
    auto phase = std::make_unique<fb::PhaseT>();
    phase->symbol = name;
    phase->extent = phase->tile = 1;
    phase->product = std::make_unique<fb::ProductT>();
    fb::ProductT &product = *phase->product;
    product.m = c.m, product.n = c.n, product.k = c.k, product.batches = c.batches;
    product.activation = c.activation;
    auto matrix = [&](uint32_t binding) {
      return std::make_unique<fb::MatrixT>(tensors[binding].matrix);
    };
    product.lhs = matrix(lhsBinding);
    product.rhs = matrix(rhsBinding);
    product.result = matrix(resultBinding);
    if (c.adds || c.addsInPlace)
      product.addend = matrix(c.adds ? addendBinding : resultBinding);
    if (c.hasBias)
      product.bias = matrix(biasBinding);
    if (c.hasAux)
      product.aux = matrix(auxBinding);
    auto kernel = std::make_unique<fb::KernelT>();
    kernel->name = name;
    kernel->shared_bytes = 4096;
    for (const Tensor &tensor : tensors)
      kernel->binding_bytes.push_back(tensor.bytes.size());
    kernel->writes.assign(numBindings, 0);
    kernel->writes[resultBinding] = 1;
    kernel->writes[auxBinding] = c.activation == gelu;
    kernel->phases.push_back(std::move(phase));
    manifest.kernels.push_back(std::move(kernel));
  }
  manifest.programs.resize(1);
  manifest.programs.front()->commands.clear();
  std::vector<std::byte> file = pack(manifest, {});
  return Artifact::fromMemory(file.data(), file.size(), "product.fsdp", Rules::form);
}

namespace {
/// Selects the emulated driver and the stub by environment variables.
struct Environment {
  Environment() {
    setenv("FSDPRT_CUDA_LIBRARY", FSDPRT_EMULATED_CUDA_LIBRARY, 1);
    setenv("FSDPRT_CUBLASLT_LIBRARY", FSDPRT_CUBLASLT_STUB_LIBRARY, 1);
  }
  ~Environment() {
    unsetenv("FSDPRT_CUDA_LIBRARY");
    unsetenv("FSDPRT_CUBLASLT_LIBRARY");
    unsetenv("FSDPRT_CUBLASLT_STUB_NONE");
    unsetenv("FSDPRT_CUBLASLT_STUB_VERSION");
  }
};

struct Device {
  Device() : cuda("a test", CudaDriver::Use::kernels) {
    int device = 0;
    cuda.check(cuda.deviceGet(&device, 0), "get a GPU");
    cuda.check(cuda.primaryContextRetain(&context, device), "use a GPU");
    cuda.contextSetCurrent(context);
    cuda.check(cuda.streamCreate(&stream, cudaStreamNonBlocking), "make a stream");
  }
  ~Device() {
    cuda.streamDestroy(stream);
    cuda.primaryContextRelease(0);
  }
  CudaDriver cuda;
  CudaContext context = nullptr;
  CudaStream stream = nullptr;
};
} // namespace

/// Returns the tolerance for a value that was rounded to its type twice.
static float allowed(DType dtype, float value) {
  return (dtype == DType::f32   ? 1e-5f
          : dtype == DType::f16 ? 2e-3f
                                : 1e-2f) *
         (1 + std::fabs(value));
}

TEST_P(ProductTest, IsWhatTheLibraryIsAskedFor) {
  build();
  Environment environment;
  Device device;
  const Case &c = GetParam();
  std::shared_ptr<const Artifact> artifact = artifactOf(c, tensors);
  auto plans = std::make_shared<LibraryGemmPlans>(*artifact);
  LibraryGemm products(plans, *artifact);
  DeviceMemory memory(device.cuda);
  for (const Tensor &tensor : tensors)
    memory.add(tensor.bytes.data(), tensor.bytes.size());
  std::vector<std::byte> scratch(4096);
  memory.add(scratch.data(), scratch.size());
  const fb::Kernel &kernel = *artifact->manifest().kernels()->Get(1);
  products.launch(kernel, *kernel.phases()->Get(0), memory.bindings(), device.stream);
  while (device.cuda.streamQuery(device.stream) == cudaNotReady) {
  }
  Tensor &result = tensors[resultBinding], &aux = tensors[auxBinding];
  memory.read(resultBinding, result.bytes);
  memory.read(auxBinding, aux.bytes);
  for (uint64_t b = 0; b < c.batches; ++b)
    for (uint64_t i = 0; i < c.m; ++i)
      for (uint64_t j = 0; j < c.n; ++j) {
        float argument, wanted = expected(b, i, j, &argument);
        EXPECT_NEAR(loadElement(c.result, result.place(b, i, j)), wanted, allowed(c.result, wanted))
            << b << " " << i << " " << j;
        if (c.activation == gelu && c.hasAux)
          EXPECT_NEAR(loadElement(c.result, aux.place(b, i, j)), argument,
                      allowed(c.result, argument))
              << i << " " << j;
      }
}

INSTANTIATE_TEST_SUITE_P(All, ProductTest, testing::ValuesIn(cases),
                         [](const auto &info) { return std::string(info.param.name); });

class ProductErrors : public ProductTest {};

TEST_P(ProductErrors, NameTheProduct) {
  build();
  Environment environment;
  Device device;
  std::shared_ptr<const Artifact> artifact = artifactOf(GetParam(), tensors);
  auto refusal = [&] {
    try {
      LibraryGemmPlans plans(*artifact);
    } catch (const Error &error) {
      return error.message;
    }
    return std::string();
  };
  setenv("FSDPRT_CUBLASLT_STUB_NONE", "24", 1);
  EXPECT_EQ(refusal(), "product.fsdp: kernel 'first': expected an algorithm of cuBLASLt for 13 x 9 "
                       "(bf16) by 9 x 24 (bf16), 1 time, to bf16, with 4.0 KiB "
                       "(4,096 bytes) of workspace, found none (cuBLASLt reports error 15, 'not "
                       "supported'); compile with --gemm=nvptx");
  unsetenv("FSDPRT_CUBLASLT_STUB_NONE");
  setenv("FSDPRT_CUBLASLT_STUB_REFUSES", "1", 1);
  EXPECT_NE(
      refusal().find("product.fsdp: cannot initialise cuBLASLt, '" FSDPRT_CUBLASLT_STUB_LIBRARY
                     "': cuBLASLt reports error 1"),
      std::string::npos)
      << refusal();
  unsetenv("FSDPRT_CUBLASLT_STUB_REFUSES");
  setenv("FSDPRT_CUBLASLT_STUB_VERSION", "110800", 1);
  EXPECT_NE(refusal().find("expected cuBLASLt 12.0 or later, found 11.8 in '"), std::string::npos)
      << refusal();
  setenv("FSDPRT_CUBLASLT_LIBRARY", "/none", 1);
  EXPECT_NE(refusal().find("product.fsdp needs cuBLASLt: expected '/none', found none"),
            std::string::npos)
      << refusal();
}

INSTANTIATE_TEST_SUITE_P(All, ProductErrors, testing::Values(cases[0]),
                         [](const auto &info) { return std::string(info.param.name); });
