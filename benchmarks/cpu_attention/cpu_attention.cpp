//===- cpu_attention.cpp - Rates of attention kernels -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiles the forward and the backward pass of attention with the compiler's passes (Fuse, kernels
// of Plan, Codegen), and measures the times of fused and unfused kernels:
//
//   peak      multiply-adds on 16 independent registers, or vdpbf16ps
//   fused     one kernel per direction
//   unfused   --fuse-attention=false: all scores in memory
//
// The forward has 4 · batches · heads · queries · keys · head dimension FLOPs, or half as many with
// a causal mask. The backward has 2.5 times as many FLOPs. Prints the milliseconds and the FLOP
// rate of the best run, and the FLOP rate divided by the peak rate of all threads. With the option
// --cpu-time, the time of a phase is the CPU time of its busiest thread, and the printed time is
// the sum over the phases of all kernels. Option --json prints one object per line, for compare.py.
//
//===----------------------------------------------------------------------===//

#include "Workers.h"
#include "fsdp/Codegen/Codegen.h"
#include "fsdp/Codegen/Passes.h"
#include "fsdp/Fuse/Passes.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/Options/Options.h"
#include "fsdp/Plan/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/JSON.h"
#include <dlfcn.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::fsdp;

using Function = void (*)(void *const *, int64_t, int64_t, void *);

static bool useCpuTime = false;

namespace {
struct Problem {
  std::string dtype, mask; // `mask` is full, causal or window
  bool backward;
  int64_t heads, kvHeads, length, dim;
  double flops() const {
    double whole = 4.0 * heads * length * length * dim * (backward ? 2.5 : 1);
    double band = std::min<double>(window, length);
    return mask == "full" ? whole : mask == "causal" ? whole / 2 : whole * band / length;
  }
  static constexpr int64_t window = 256;
};
} // namespace

static std::string print(const Problem &p) {
  auto tensor = [&](int64_t heads, std::string rest, std::string type) {
    return "tensor<1x" + std::to_string(heads) + "x" + std::to_string(p.length) + rest + "x" +
           type + ">";
  };
  std::string dim = "x" + std::to_string(p.dim), q = tensor(p.heads, dim, p.dtype),
              k = tensor(p.kvHeads, dim, p.dtype);
  std::string lse = tensor(p.heads, "", "f32"),
              scale = std::to_string(1 / std::sqrt(double(p.dim))), mask;
  if (p.mask != "full") {
    mask = "mask_mod(%b: index, %h: index, %i: index, %j: index) {\n%causal = arith.cmpi sge, %i, "
           "%j : index\n";
    if (p.mask == "window")
      mask += "%w = arith.constant " + std::to_string(Problem::window) +
              " : index\n%far = arith.subi %i, %j : index\n" +
              "%near = arith.cmpi slt, %far, %w : index\n%keep = arith.andi %causal, %near : "
              "i1\nfsdp.yield %keep : i1 }";
    else
      mask += "fsdp.yield %causal : i1 }";
  }
  if (!p.backward)
    return "func.func @f(%q: " + q + ", %k: " + k + ", %v: " + k + ") -> (" + q + ", " + lse +
           ") {\n" + "%o, %lse = fsdp.attention %q, %k, %v scale " + scale + " : " + q + ", " + k +
           ", " + k + " -> " + q + ", " + lse + " " + mask + "\nreturn %o, %lse : " + q + ", " +
           lse + "\n}";
  return "func.func @f(%q: " + q + ", %k: " + k + ", %v: " + k + ", %o: " + q + ", %lse: " + lse +
         ", %do: " + q + ") -> (" + q + ", " + k + ", " + k + ") {\n" +
         "%dq, %dk, %dv = fsdp.attention_grad %q, %k, %v, %o, %lse, %do scale " + scale + " : " +
         q + ", " + k + ", " + k + ", " + q + ", " + lse + ", " + q + " -> " + q + ", " + k + ", " +
         k + " " + mask + "\nreturn %dq, %dk, %dv : " + q + ", " + k + ", " + k + "\n}";
}

namespace {
/// A compiled function whose operations are calls of kernels. Owns memory for its values.
class Program {
public:
  static std::unique_ptr<Program> compile(MLIRContext &context, const CpuTarget &target,
                                          const Problem &problem, bool fuse);
  /// Runs all kernels in order and returns the seconds.
  double run(Workers &workers);
  double compileSeconds = 0;
  int64_t bytes = 0; ///< bytes of intermediate values and of scratch memory
  size_t launches() const { return calls.size(); }

private:
  struct Launch {
    const KernelInfo *kernel;
    std::vector<Function> functions;
    std::vector<void *> bindings;
  };
  void *valueOf(Value value);
  bool addCall(KernelCallOp call, void *image);

  OwningOpRef<ModuleOp> module;
  Image image;
  DenseMap<Value, void *> values;
  std::vector<Launch> calls;
  std::vector<void *> scratch;
  void *shared = nullptr;
};
} // namespace

static void fillValues(void *memory, RankedTensorType type) {
  uint32_t state = 1;
  bool bf16 = type.getElementType().isBF16();
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    state = state * 1664525 + 1013904223;
    float value =
        // Tensors of rank 3 are log-sum-exps, which are usually near 8 for long rows.
        float(int32_t(state)) * 0x1p-31f + (type.getRank() == 3 ? 8 : 0);
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if (bf16)
      static_cast<uint16_t *>(memory)[i] = bits >> 16;
    else
      static_cast<float *>(memory)[i] = value;
  }
}

/// Returns the address of the memory of a value. A view and its source have the same memory.
void *Program::valueOf(Value value) {
  void *&place = values[value];
  if (place)
    return place;
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return values[value] = valueOf(op->getOperand(0));
  auto type = cast<RankedTensorType>(value.getType());
  void *memory = allocate(getStorageBytes(type) + 64);
  if (!op)
    fillValues(memory, type);
  else
    bytes += getStorageBytes(type);
  return values[value] = memory;
}

bool Program::addCall(KernelCallOp call, void *handle) {
  Launch launch;
  for (const KernelInfo &info : image.kernels)
    if (info.name == call.getKernel())
      launch.kernel = &info;
  for (const PhaseInfo &phase : launch.kernel->phases)
    launch.functions.push_back(reinterpret_cast<Function>(dlsym(handle, phase.symbol.c_str())));
  for (Value input : call.getInputs())
    launch.bindings.push_back(valueOf(input));
  for (auto [result, operand] : llvm::zip_equal(call.getResults(), call.getInplace())) {
    if (operand >= 0)
      values[result] = launch.bindings[operand];
    else
      launch.bindings.push_back(valueOf(result));
  }
  calls.push_back(std::move(launch));
  return true;
}

std::unique_ptr<Program> Program::compile(MLIRContext &context, const CpuTarget &target,
                                          const Problem &problem, bool fuse) {
  auto program = std::make_unique<Program>();
  program->module = parseSourceString<ModuleOp>(print(problem), &context);
  if (!program->module)
    return nullptr;
  PassManager pm(&context);
  StepOptions options;
  options.fuse.fuseAttention = fuse;
  buildFusePipeline(pm, options);
  pm.addPass(createOutlineKernelsPass());
  if (failed(pm.run(*program->module)))
    return nullptr;
  double start = seconds();
  FailureOr<Image> image = compileCpuImage(*program->module, target);
  program->compileSeconds = seconds() - start;
  if (failed(image))
    return nullptr;
  program->image = std::move(*image);
  int file = memfd_create("attention", 0);
  std::vector<char> &elf = program->image.elf;
  if (write(file, elf.data(), elf.size()) != ssize_t(elf.size()))
    return nullptr;
  void *handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return nullptr;
  auto function = *program->module->getOps<func::FuncOp>().begin();
  for (auto call : function.getOps<KernelCallOp>())
    program->addCall(call, handle);
  int64_t worker = 0, common = 0;
  for (const KernelInfo &info : program->image.kernels) {
    worker = std::max(worker, info.workerBytes);
    common = std::max(common, info.sharedBytes);
  }
  program->bytes += worker + common;
  for (int i = 0; i < 2; ++i)
    program->scratch.push_back(allocate(worker + 64));
  program->shared = allocate(common + 64);
  for (Launch &launch : program->calls)
    if (launch.kernel->sharedBytes)
      launch.bindings.push_back(program->shared);
  return program;
}

double Program::run(Workers &workers) {
  double start = seconds(), busiest = 0;
  for (Launch &launch : calls)
    for (auto [phase, function] : llvm::zip_equal(launch.kernel->phases, launch.functions)) {
      int64_t tiles = llvm::divideCeil(phase.extent, phase.tile), count = workers.count();
      std::vector<double> busy(count, 0.0);
      workers.run([&, &phase = phase, function = function](int worker) {
        double before = threadSeconds();
        int64_t begin = tiles * worker / count * phase.tile;
        int64_t end = std::min(phase.extent, tiles * (worker + 1) / count * phase.tile);
        if (begin < end)
          function(launch.bindings.data(), begin, end, scratch[worker]);
        busy[worker] = threadSeconds() - before;
      });
      busiest += *std::max_element(busy.begin(), busy.end());
    }
  return useCpuTime ? busiest : seconds() - start;
}

namespace {
struct Result {
  /// `peak` is in GFLOP/s per thread, and the other members are in seconds.
  double peak = 0, best = 1e30, bestUnfused = 1e30;
};
struct Options {
  int rounds = 3;
  bool unfused = true, json = false;
  std::string dtype, mask, direction;
  int64_t length = 4096, dim = 64, heads = 12, kvHeads = 0;
};
} // namespace

static void printRow(const Problem &problem, int threads, const Result &result,
                     const Program &fused, const Program *unfused) {
  double rate = problem.flops() / result.best / 1e9;
  printf("| %s | %s | %s | %ldx%ldx%ldx%ld | %d | %.0f | %.2f | %.0f | %.1f %% | ",
         problem.backward ? "backward" : "forward", problem.dtype.c_str(), problem.mask.c_str(),
         long(problem.heads), long(problem.kvHeads), long(problem.length), long(problem.dim),
         threads, threads * result.peak, result.best * 1e3, rate,
         100 * rate / (threads * result.peak));
  if (unfused)
    printf("%.2f | %.2f | %ld | ", result.bestUnfused * 1e3, result.bestUnfused / result.best,
           long(unfused->bytes >> 20));
  else
    printf("| | | ");
  printf("%ld | %.0f |\n", long(fused.bytes >> 20), fused.compileSeconds * 1e3);
}

/// Prints a result as a JSON object on one line. Its member `peak` is the sum over all threads.
static void printJson(const Problem &problem, int threads, const Result &result,
                      const Program *unfused) {
  llvm::json::Object row{{"direction", problem.backward ? "backward" : "forward"},
                         {"dtype", problem.dtype},
                         {"mask", problem.mask},
                         {"threads", threads},
                         {"flops", problem.flops()},
                         {"peak", threads * result.peak * 1e9},
                         {"seconds", result.best}};
  if (unfused)
    row["unfused_seconds"] = result.bestUnfused;
  llvm::outs() << llvm::json::Value(std::move(row)) << "\n";
  llvm::outs().flush();
}

static void measure(MLIRContext &context, const CpuTarget &target, const Problem &problem,
                    const Options &options) {
  bool unfused = options.unfused && problem.mask == "causal";
  std::unique_ptr<Program> fused = Program::compile(context, target, problem, true), whole;
  if (unfused)
    whole = Program::compile(context, target, problem, false);
  if (!fused || (unfused && !whole)) {
    fprintf(stderr, "%s %s: does not compile\n", problem.dtype.c_str(), problem.mask.c_str());
    exit(1);
  }
  PeakKind kind = problem.dtype == "bf16" ? peakOf(target) : PeakKind::F32;
  for (int threads : {1, 2}) {
    Result result;
    for (int round = 0; round < options.rounds; ++round) {
      Workers workers(threads);
      result.peak = std::max(result.peak, measurePeaks(workers, kind));
      int runs = std::clamp(int(2e10 / problem.flops()), 1, 10);
      fused->run(workers); // the first run of new threads is slower
      for (int run = 0; run < runs; ++run)
        result.best = std::min(result.best, fused->run(workers));
      if (whole)
        result.bestUnfused = std::min(result.bestUnfused, whole->run(workers));
      result.peak = std::max(result.peak, measurePeaks(workers, kind));
    }
    if (options.json)
      printJson(problem, threads, result, whole.get());
    else
      printRow(problem, threads, result, *fused, whole.get());
    fflush(stdout);
  }
}

static bool parse(StringRef option, Options &options) {
  if (option.consume_front("--rounds="))
    return !option.getAsInteger(10, options.rounds);
  if (option.consume_front("--length="))
    return !option.getAsInteger(10, options.length);
  if (option.consume_front("--dim="))
    return !option.getAsInteger(10, options.dim);
  if (option.consume_front("--heads="))
    return !option.getAsInteger(10, options.heads);
  if (option.consume_front("--kv-heads="))
    return !option.getAsInteger(10, options.kvHeads);
  if (option.consume_front("--only="))
    options.dtype = option.str();
  else if (option.consume_front("--mask="))
    options.mask = option.str();
  else if (option.consume_front("--direction="))
    options.direction = option.str();
  else if (option == "--cpu-time")
    useCpuTime = true;
  else if (option == "--fused-only")
    options.unfused = false;
  else if (option == "--json")
    options.json = true;
  else
    return false;
  return true;
}

static void printHeading(const CpuTarget &target, int rounds) {
  printf("cpu %s, %u-bit vectors; best of %d rounds\n\n", target.tune.c_str(), target.vectorBits,
         rounds);
  printf("| direction | type | mask | H x Hkv x S x D | threads | peak GFLOP/s | fused ms | "
         "GFLOP/s | of peak | unfused ms | ratio | "
         "unfused MiB | fused MiB | compile ms "
         "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

int main(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i)
    if (!parse(argv[i], options))
      return fprintf(stderr,
                     "usage: cpu_attention [--rounds=N] [--length=S] [--dim=D] [--heads=H] "
                     "[--kv-heads=H] [--cpu-time]\n"
                     "  [--fused-only] [--json] [--only=f32|bf16] [--mask=full|causal|window]\n"
                     "  [--direction=forward|backward]\n"),
             2;
  registerTargets();
  DialectRegistry registry;
  registry.insert<FSDPDialect, func::FuncDialect, linalg::LinalgDialect, tensor::TensorDialect,
                  arith::ArithDialect, math::MathDialect, scf::SCFDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  FailureOr<CpuTarget> target = CpuTarget::get("native", UnknownLoc::get(&context));
  if (failed(target))
    return 1;
  if (!options.json)
    printHeading(*target, options.rounds);
  auto isWanted = [](const std::string &only, StringRef value) {
    return only.empty() || only == value;
  };
  int64_t kvHeads = options.kvHeads ? options.kvHeads : options.heads;
  for (std::string type : {"f32", "bf16"})
    for (bool backward : {false, true})
      for (std::string which : {"full", "causal", "window"})
        if (isWanted(options.dtype, type) && isWanted(options.mask, which) &&
            isWanted(options.direction, backward ? "backward" : "forward"))
          measure(context, *target,
                  {type, which, backward, options.heads, kvHeads, options.length, options.dim},
                  options);
}
