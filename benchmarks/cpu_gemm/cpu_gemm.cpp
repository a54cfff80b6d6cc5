//===- cpu_gemm.cpp - Rates of contraction kernels --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiles matrix products with the compiler's passes, loads the image, and times in each round:
//
//   peak     the instructions of the kernel's products on independent registers
//   fsdp     kernel of fsdp-mlir, including packing
//   oneDNN   matmul on the same plain arrays, if oneDNN was found at build time
//
// These are the products of a linear layer with M tokens, K inputs and N outputs:
//
//   NT  Y[M, N]  = X[M, K] · W[N, K]ᵀ      NN  Y[M, N] = X[M, K] · W[K, N]
//   TN  dW[N, K] = dY[M, N]ᵀ · X[M, K]
//
// Prints the best and the median GFLOP/s of all runs, and the ratio of the best rate to the peak
// rate. The peak rate is the rate of the fastest thread times the number of threads. Because clock
// rates vary, the peak is measured before and after each round, on the threads of the round. All
// arrays are in huge pages. With --cpu-time, a time is the CPU time of the busiest thread, and
// oneDNN is measured with one thread only. This option is useful on machines with other jobs.
//
//===----------------------------------------------------------------------===//

#include "Peak.h"
#include "Workers.h"
#include "fsdp/Codegen/Codegen.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// A matrix product C[m, n] = Σ a(m, k) · b(k, n). Both inputs are bf16 or both are f32. C is f32.
struct Product {
  std::string form; // NT, NN or TN
  bool bf16;
  int64_t m, n, k;
  double flops() const { return 2.0 * m * n * k; }
  bool lhsTransposed() const { return form[0] == 'T'; }
  bool rhsTransposed() const { return form[1] == 'T'; }
};

using Function = void (*)(void *const *, int64_t, int64_t, void *);
} // namespace

static bool useCpuTime = false;

static std::string printKernel(const Product &p) {
  char text[2048];
  std::string m = std::to_string(p.m), n = std::to_string(p.n), k = std::to_string(p.k);
  std::string in = p.bf16 ? "bf16" : "f32";
  std::string a = "tensor<" + (p.lhsTransposed() ? k + "x" + m : m + "x" + k) + "x" + in + ">";
  std::string b = "tensor<" + (p.rhsTransposed() ? n + "x" + k : k + "x" + n) + "x" + in + ">";
  std::string c = "tensor<" + m + "x" + n + "xf32>";
  snprintf(text, sizeof text, R"(
func.func private @gemm(%%a: %s, %%b: %s, %%c: %s {fsdp.out = 0}) -> %s attributes {fsdp.kernel, fsdp.kind = "contract"} {
  %%zero = arith.constant 0.0 : f32
  %%empty = tensor.empty() : %s
  %%init = linalg.fill ins(%%zero : f32) outs(%%empty : %s) -> %s
  %%r = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (%s)>, affine_map<(m, n, k) -> (%s)>,
      affine_map<(m, n, k) -> (m, n)>] ins(%%a, %%b : %s, %s) outs(%%init : %s) -> %s
  return %%r : %s
})",
           a.c_str(), b.c_str(), c.c_str(), c.c_str(), c.c_str(), c.c_str(), c.c_str(),
           p.lhsTransposed() ? "k, m" : "m, k", p.rhsTransposed() ? "n, k" : "k, n", a.c_str(),
           b.c_str(), c.c_str(), c.c_str(), c.c_str());
  return text;
}

namespace {
/// A compiled kernel of this project, with its scratch memory.
class OwnKernel {
public:
  static std::unique_ptr<OwnKernel> compile(MLIRContext &context, const CpuTarget &target,
                                            const Product &product) {
    auto kernel = std::make_unique<OwnKernel>();
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(printKernel(product), &context);
    if (!module)
      return nullptr;
    double start = seconds();
    FailureOr<Image> image = compileCpuImage(*module, target);
    kernel->compileSeconds = seconds() - start;
    if (failed(image))
      return nullptr;
    kernel->info = image->kernels.front();
    int file = memfd_create("gemm", 0);
    if (write(file, image->elf.data(), image->elf.size()) != ssize_t(image->elf.size()))
      return nullptr;
    void *handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      return nullptr;
    for (const PhaseInfo &phase : kernel->info.phases)
      kernel->functions.push_back(reinterpret_cast<Function>(dlsym(handle, phase.symbol.c_str())));
    for (int i = 0; i < 2; ++i)
      kernel->scratch.push_back(allocate(kernel->info.workerBytes + 64));
    kernel->shared = allocate(kernel->info.sharedBytes + 64);
    return kernel;
  }
  ~OwnKernel() {
    for (void *memory : scratch)
      free(memory);
    free(shared);
  }
  /// Runs all phases of the kernel and returns the seconds.
  double run(Workers &workers, void *a, void *b, void *c) {
    void *bindings[] = {a, b, c, shared};
    double start = seconds(), busiest = 0;
    for (auto [phase, function] : llvm::zip_equal(info.phases, functions)) {
      int64_t tiles = llvm::divideCeil(phase.extent, phase.tile), count = workers.count();
      std::vector<double> busy(count, 0.0);
      workers.run([&, &phase = phase, function = function](int worker) {
        double before = threadSeconds();
        int64_t begin = tiles * worker / count * phase.tile;
        int64_t end = std::min(phase.extent, tiles * (worker + 1) / count * phase.tile);
        if (begin < end)
          function(bindings, begin, end, scratch[worker]);
        busy[worker] = threadSeconds() - before;
      });
      busiest += *std::max_element(busy.begin(), busy.end());
    }
    return useCpuTime ? busiest : seconds() - start;
  }
  KernelInfo info;
  double compileSeconds = 0;

private:
  std::vector<Function> functions;
  std::vector<void *> scratch;
  void *shared = nullptr;
};

struct Timing {
  std::vector<double> rates;
  void add(double rate) { rates.push_back(rate); }
  double best() const { return rates.empty() ? 0 : *std::max_element(rates.begin(), rates.end()); }
  double median() {
    std::sort(rates.begin(), rates.end());
    return rates.empty() ? 0 : rates[rates.size() / 2];
  }
};
} // namespace

/// Returns an array of `count` values in [-1, 1), as bf16 or f32.
static void *makeInput(int64_t count, bool bf16) {
  auto *memory = static_cast<char *>(allocate(count * (bf16 ? 2 : 4)));
  uint32_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    float value = float(int32_t(state)) * 0x1p-31f;
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if (bf16)
      reinterpret_cast<uint16_t *>(memory)[i] = bits >> 16;
    else
      memcpy(memory + 4 * i, &value, 4);
  }
  return memory;
}

static void measure(MLIRContext &context, const CpuTarget &target, const Product &product,
                    int rounds) {
  std::unique_ptr<OwnKernel> own = OwnKernel::compile(context, target, product);
  if (!own) {
    printf("%s: does not compile\n", product.form.c_str());
    return;
  }
  void *a = makeInput(product.m * product.k, product.bf16),
       *b = makeInput(product.n * product.k, product.bf16);
  auto *c = static_cast<float *>(allocate(product.m * product.n * 4));
  int runs = std::clamp(int(4e10 / product.flops()), 1, 20);
  PeakKind kind = product.bf16 ? peakOf(target) : PeakKind::F32;
  for (int threads : {1, 2}) {
    double peak = 0;
    Timing fsdp, library;
    bool timed = threads == 1 || !useCpuTime;
    for (int round = 0; round < rounds; ++round) {
      {
        Workers workers(threads);
        peak = std::max(peak, measurePeaks(workers, kind));
        for (int run = 0; run < runs; ++run)
          fsdp.add(product.flops() / own->run(workers, a, b, c) / 1e9);
        peak = std::max(peak, measurePeaks(workers, kind));
      }
      if (timed)
        for (double time :
             timeLibrary(product.bf16, product.lhsTransposed(), product.rhsTransposed(), product.m,
                         product.n, product.k, a, b, c, threads, runs, useCpuTime))
          library.add(product.flops() / time / 1e9);
    }
    printf("| %s | %s | %ldx%ldx%ld | %d | %.0f | %.0f / %.0f | %.1f %% |",
           product.bf16 ? "bf16" : "f32", product.form.c_str(), long(product.m), long(product.k),
           long(product.n), threads, threads * peak, fsdp.best(), fsdp.median(),
           100 * fsdp.best() / (threads * peak));
    if (library.rates.empty())
      printf(" | | |");
    else
      printf(" %.0f / %.0f | %.1f %% | %.2f |", library.best(), library.median(),
             100 * library.best() / (threads * peak), fsdp.best() / library.best());
    printf(" %.0f | %ld |\n", own->compileSeconds * 1e3, long(own->info.workerBytes >> 10));
    fflush(stdout);
  }
  free(a);
  free(b);
  free(c);
}

int main(int argc, char **argv) {
  int rounds = 3;
  bool large = true;
  std::string only, form;
  for (int i = 1; i < argc; ++i) {
    StringRef option = argv[i];
    if (option.consume_front("--rounds="))
      option.getAsInteger(10, rounds);
    else if (option == "--cpu-time")
      useCpuTime = true;
    else if (option == "--small")
      large = false;
    else if (option.consume_front("--form="))
      form = option.str();
    else if (option.consume_front("--only="))
      only = option.str();
    else
      return fprintf(stderr,
                     "usage: cpu_gemm [--rounds=N] [--small] [--cpu-time] [--only=f32|bf16] "
                     "[--form=NT|NN|TN]\n"),
             2;
  }
  DialectRegistry registry;
  registry.insert<FSDPDialect, func::FuncDialect, linalg::LinalgDialect, tensor::TensorDialect,
                  arith::ArithDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  FailureOr<CpuTarget> target = CpuTarget::get("native", UnknownLoc::get(&context));
  if (failed(target))
    return 1;
  printf("cpu %s, %u-bit vectors, %s; GFLOP/s best / median of %d rounds in turns\n\n",
         target->tune.c_str(), target->vectorBits, describeLibrary().c_str(), rounds);
  printf("| type | form | m x k x n | threads | peak | fsdp | of peak | oneDNN | of peak | fsdp / "
         "oneDNN | compile ms | scratch KiB |\n");
  printf("|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  // Each entry has the numbers of tokens, inputs and outputs.
  std::vector<std::array<int64_t, 3>> layers = {
      {1024, 768, 768}, {1024, 768, 3072}, {1024, 3072, 768}};
  if (large)
    layers.push_back({1024, 768, 50257});
  for (bool bf16 : {false, true}) {
    if ((!only.empty() && (only == "bf16") != bf16) ||
        (bf16 && target->bf16 == Bf16Products::Widened))
      continue;
    for (auto [tokens, inputs, outputs] : layers) {
      for (const Product &product : {Product{"NT", bf16, tokens, outputs, inputs},
                                     Product{"NN", bf16, tokens, outputs, inputs},
                                     Product{"TN", bf16, outputs, inputs, tokens}})
        if (form.empty() || form == product.form)
          measure(context, *target, product, rounds);
    }
  }
}
