//===- CommandLine.h - The options of fsdp-compile --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_COMPILE_COMMANDLINE_H
#define FSDP_TOOLS_COMPILE_COMMANDLINE_H

#include "fsdp/Pipelines/Compiler.h"
#include "fsdp/Pipelines/Config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

/// The options of LLVM, which say what they take.
namespace mlir::fsdp::cl {
using namespace llvm::cl;

/// The options made so far, for files that set them.
inline std::vector<ConfigOption> &kinds() {
  static std::vector<ConfigOption> kinds;
  return kinds;
}

/// Numbers, with our words for what is none.
template <typename T>
struct NumberParser : llvm::cl::basic_parser<T> {
  explicit NumberParser(llvm::cl::Option &option)
      : llvm::cl::basic_parser<T>(option), option(option) {}

  /// For --print-options.
  operator llvm::cl::parser<T>() const { return llvm::cl::parser<T>(option); }

  bool parse(llvm::cl::Option &option, llvm::StringRef name, llvm::StringRef text, T &value) {
    bool failed;
    if constexpr (std::is_integral_v<T>)
      failed = text.getAsInteger(0, value);
    else
      failed = !llvm::to_float(text, value);
    if (failed)
      llvm::errs() << "fsdp-compile: --" << name << "=" << text << ": expected "
                   << (std::is_integral_v<T> ? "an integer of at most 64 bits" : "a number")
                   << "\n";
    return failed;
  }
  llvm::StringRef getValueName() const override { return std::is_integral_v<T> ? "N" : "number"; }

private:
  llvm::cl::Option &option;
};
template <typename T>
using ParserOf = std::conditional_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>,
                                    NumberParser<T>, llvm::cl::parser<T>>;

template <typename T>
struct opt : llvm::cl::opt<T, false, ParserOf<T>> {
  template <typename... Modifiers>
  explicit opt(const Modifiers &...modifiers) : llvm::cl::opt<T, false, ParserOf<T>>(modifiers...) {
    constexpr ConfigKind kind = std::is_same_v<T, bool>       ? ConfigKind::flag
                                : std::is_integral_v<T>       ? ConfigKind::integer
                                : std::is_floating_point_v<T> ? ConfigKind::number
                                                              : ConfigKind::word;
    if (this->hasArgStr())
      kinds().push_back({this->ArgStr.str(), kind});
  }
  using llvm::cl::opt<T, false, ParserOf<T>>::operator=;
};

template <typename T>
struct list : llvm::cl::list<T> {
  template <typename... Modifiers>
  explicit list(const Modifiers &...modifiers) : llvm::cl::list<T>(modifiers...) {
    kinds().push_back({this->ArgStr.str(), ConfigKind::list});
  }
};
} // namespace mlir::fsdp::cl

namespace mlir::fsdp {

/// The command line. Local, so that no global option is left behind.
struct CommandLine {
  cl::OptionCategory model{"Model"}, sharding{"Sharding"}, precision{"Precision"},
      training{"Training"}, output{"Output"};

  cl::opt<std::string> input{cl::Positional, cl::desc("IN.mlir"), cl::init("-"), cl::cat(model)};
  cl::opt<std::string> config{
      "config",
      cl::desc("JSON file of options, of a Hugging Face fsdp_config, or of DeepSpeed;"
               " the command line wins"),
      cl::value_desc("FILE.json"), cl::cat(model)};
  cl::opt<bool> configKeys{"config-keys", cl::desc("Print the keys that --config understands"),
                           cl::Hidden, cl::cat(output)};
  cl::opt<std::string> entry{"entry", cl::desc("Function to train (default: the only public one)"),
                             cl::cat(model)};
  cl::opt<std::string> params{
      "params",
      cl::desc(
          "Parameters: positions and names, e.g. 0-148,150,h.*; auto: guess without a warning"),
      cl::cat(model)};
  cl::opt<std::string> paramsFile{
      "params-file", cl::desc("JSON sidecar: names, initial values and frozen flags of parameters"),
      cl::cat(model)};
  cl::list<std::string> batch{
      "batch", cl::desc("Name of a batch input: INDEX=NAME, e.g. 3=labels (repeat per input)"),
      cl::value_desc("INDEX=NAME"), cl::cat(model)};
  cl::list<std::string> buffers{
      "buffer",
      cl::desc("Content of a buffer: NAME|INDEX=causal|zeros|ones|keep|FILE (repeat per buffer)"),
      cl::cat(model)};
  cl::opt<std::string> attachLoss{"attach-loss", cl::desc("Loss behind logits: cross_entropy"),
                                  cl::cat(model)};
  cl::opt<std::string> ignoreIndex{
      "ignore-index",
      cl::desc("With --attach-loss: value of the targets that do not count, such as -100"),
      cl::value_desc("N"), cl::cat(model)};
  cl::opt<std::string> raiseAttention{
      "raise-attention",
      cl::desc("Products around a softmax become one op, masks and score functions its regions: "
               "true (default), false, or "
               "assume-keys: also where finite numbers mask and a row might keep no key"),
      cl::value_desc("HOW"), cl::init(ImportOptions().raiseAttention), cl::cat(model)};

  cl::opt<std::string> mesh{
      "mesh", cl::desc("Ranks per axis: [replicate=R,]shard=S (default shard=1); S may be 2x4"),
      cl::init("shard=1"), cl::cat(sharding)};
  cl::opt<std::string> strategy{
      "sharding-strategy",
      cl::desc("no_shard, zero1, zero2, shard_grad_op, full_shard (default), hybrid_shard, "
               "hybrid_shard_zero2 or hfsdp"),
      cl::init("full_shard"), cl::cat(sharding)};
  cl::opt<std::string> policy{
      "auto-wrap-policy",
      cl::desc("transformer: one unit per layer (default); size: modules of --min-num-params;"
               " manual: those of --wrap; none: the whole model is one unit"),
      cl::init("transformer"), cl::cat(sharding)};
  cl::opt<std::string> layer{"transformer-layer",
                             cl::desc("Prefix pattern of a layer's parameters, e.g. h.*"),
                             cl::cat(sharding)};
  cl::opt<std::string> wrapFile{"wrap",
                                cl::desc("JSON list of units: patterns, the first match wins"),
                                cl::value_desc("FILE.json"), cl::cat(sharding)};
  cl::opt<int64_t> minNumParams{
      "min-num-params",
      cl::desc("size: elements of the smallest unit (default 100000000); transformer:"
               " merge layers up to this many"),
      cl::init(0), cl::cat(sharding)};
  cl::opt<std::string> reshard{
      "reshard-after-forward",
      cl::desc("Gather parameters again in the backward: true (default), false, or N: each rank"
               " keeps an N-th part and gathers among N neighbours"),
      cl::ValueOptional, cl::init("true"), cl::cat(sharding)};

  cl::opt<std::string> reshardRoot{
      "reshard-root",
      cl::desc("The root unit: gathered again in the backward (forward), kept until then "
               "(backward, default), or gathered once per step (step)"),
      cl::init("backward"), cl::cat(sharding)};
  cl::opt<std::string> gatherRows{
      "gather-rows",
      cl::desc("Lookups in a table of the root take the rows they need from the ranks that "
               "have them: auto (default, where that moves at most half of a table of "
               "1 MiB or more), always or never. Sums have another order then, so the last "
               "digits of the table's gradient differ"),
      cl::init("auto"), cl::cat(sharding)};
  cl::opt<std::string> paramStorage{
      "param-storage",
      cl::desc("Trained parameters of less than f32: kept in f32 and cast where they are "
               "gathered (master, default), or as they are beside f32 masters (both)"),
      cl::init("master"), cl::cat(sharding)};
  cl::opt<std::string> gradSync{
      "grad-sync",
      cl::desc("Gradients cross ranks with each micro-batch (each) or once per step (last); "
               "auto (default): each where they are sharded. The order of sums is another, and so "
               "are last digits"),
      cl::init("auto"), cl::cat(training)};
  cl::opt<std::string> ignore{
      "ignore-params",
      cl::desc("Parameters that every rank keeps whole, whatever the strategy: patterns"),
      cl::value_desc("PATTERNS"), cl::cat(sharding)};
  cl::opt<std::string> freeze{
      "freeze", cl::desc("Parameters that are not trained: patterns, e.g. h.0,*.bias"),
      cl::value_desc("PATTERNS"), cl::cat(training)};

  cl::opt<std::string> paramDtype{
      "param-dtype",
      cl::desc("Parameters and activations of an f32 model: f32 (default), bf16 or f16"),
      cl::cat(precision)};
  cl::opt<std::string> reduceDtype{
      "reduce-dtype",
      cl::desc("Type in which gradients cross ranks: f32 (default), f64, bf16 or f16"),
      cl::cat(precision)};
  cl::opt<std::string> gradDivide{
      "grad-divide",
      cl::desc("What the sum of gradients over ranks and micro-batches is divided by: average "
               "(their number, default), tokens (weighted by how many targets count), "
               "sum (nothing), or a number"),
      cl::init("average"), cl::cat(training)};
  cl::opt<double> gradPredivide{
      "grad-predivide",
      cl::desc("Divide gradients by this number before they are rounded to the --reduce-dtype"
               " and summed, and multiply the sum by it (default 1)"),
      cl::init(1.0), cl::cat(precision)};
  cl::opt<std::string> lossScale{"loss-scale",
                                 cl::desc("Factor of the loss, so that f16 gradients do not "
                                          "vanish: dynamic (default with f16), none"
                                          " (default else), or a number"),
                                 cl::cat(precision)};
  cl::opt<double> lossScaleInit{"loss-scale-init",
                                cl::desc("The dynamic loss scale at the start (default 65536)"),
                                cl::init(65536), cl::cat(precision)};
  cl::opt<int64_t> growthInterval{
      "loss-scale-growth-interval",
      cl::desc("Good steps after which the dynamic loss scale doubles (default 2000)"),
      cl::init(2000), cl::cat(precision)};
  cl::opt<std::string> outputDtype{
      "output-dtype",
      cl::desc("What the loss is computed from: f32 (default), or the --param-dtype"),
      cl::cat(precision)};

  cl::opt<std::string> optimizer{"optimizer", cl::desc("adamw (default) or sgd"), cl::init("adamw"),
                                 cl::cat(training)};
  cl::opt<double> lr{"lr", cl::desc("Learning rate that fsdp-run starts from (default 3e-4)"),
                     cl::init(3e-4), cl::cat(training)};
  cl::opt<double> beta1{"beta1", cl::desc("AdamW: decay of the first moment (default 0.9)"),
                        cl::init(0.9), cl::cat(training)};
  cl::opt<double> beta2{"beta2", cl::desc("AdamW: decay of the second moment (default 0.999)"),
                        cl::init(0.999), cl::cat(training)};
  cl::opt<double> eps{"eps", cl::desc("AdamW: added to the root (default 1e-8)"), cl::init(1e-8),
                      cl::cat(training)};
  cl::opt<double> decay{"weight-decay",
                        cl::desc("Decoupled decay of tensors of rank 2 and more (default 0.01)"),
                        cl::init(0.01), cl::cat(training)};
  cl::opt<double> momentum{"momentum", cl::desc("SGD: momentum (default 0)"), cl::init(0.0),
                           cl::cat(training)};
  cl::opt<std::string> stateDtype{
      "optimizer-state-dtype",
      cl::desc("What moments and momentum are kept in: f32 (default) or bf16"), cl::init("f32"),
      cl::cat(precision)};
  cl::opt<std::string> stateRounding{"optimizer-state-rounding",
                                     cl::desc("How bf16 moments are rounded: stochastic (default: "
                                              "right on average), or nearest (loses small steps)"),
                                     cl::init("stochastic"), cl::cat(precision)};
  cl::opt<double> clip{"clip-grad-norm",
                       cl::desc("Largest global gradient norm; 0: no clipping (default)"),
                       cl::init(0.0), cl::cat(training)};

  cl::opt<int64_t> accum{"grad-accum",
                         cl::desc("Micro-batches whose gradients a step accumulates (default 1)"),
                         cl::init(1), cl::cat(training)};

  cl::opt<int64_t> maxChunkBytes{
      "max-chunk-bytes",
      cl::desc("Largest part of logits, and of what else is used up row by row, that is in memory"
               " at a time, in bytes (default 33554432; for GPUs 268435456 and no fewer than 2048"
               " rows; 0: all)"),
      cl::init(cpuChunks.maxBytes), cl::value_desc("BYTES"), cl::cat(output)};
  cl::opt<std::string> memoryLimit{
      "memory-limit",
      cl::desc("Fail when a rank's arena would be larger: bytes, or with k, M or G for 1024,"
               " its square, its cube"),
      cl::value_desc("BYTES"), cl::cat(output)};
  cl::opt<std::string> outFile{"o", cl::desc("The artifact, or IR with --compile-to; - is stdout"),
                               cl::value_desc("OUT.fsdp"), cl::cat(output)};
  cl::opt<bool> noCode{
      "no-code",
      cl::desc("Leave the machine code out of the artifact: for fsdp-run --simulate, --dump and "
               "--device=null, in a fraction of the time"),
      cl::init(false), cl::cat(output)};
  cl::opt<bool> fuseAttention{
      "fuse-attention",
      cl::desc(
          "Attention as one kernel, tile by tile (default); =false: its scores whole in memory"),
      cl::init(true), cl::cat(output)};
  cl::opt<std::string> checkpointing{
      "activation-checkpointing",
      cl::desc("What of a unit's forward the backward computes again, instead of keeping it: none "
               "(default), full (all but what "
               "units hand on), selective=KINDS (keeps results of these kinds of kernels: "
               "contract, attention, row, map, "
               "column, scatter, copy; several with +; contract/2: of the first of each 2 in a "
               "unit), auto (what fits into "
               "--memory-limit at the least estimated time; it also decides which gathered "
               "parameters stay for the backward, "
               "without --reshard-after-forward, and with --offload=activations which of these "
               "wait on the host)"),
      cl::init("none"), cl::cat(sharding)};
  cl::opt<std::string> offload{
      "offload",
      cl::desc("What lies in the host's memory instead of the arena: none (default), or "
               "parameters, gradients, optimizer (the "
               "update then runs on the host, for a GPU --target there; optimizer:file keeps its "
               "state in a file of each rank) and activations that wait "
               "for the backward; several with +"),
      cl::init("none"), cl::value_desc("KINDS"), cl::cat(sharding)};
  cl::opt<std::string> offloadMinBytes{
      "offload-min-bytes",
      cl::desc("Activations of fewer bytes stay (default 1M), with --offload=activations"),
      cl::value_desc("BYTES"), cl::init("1M"), cl::cat(sharding)};
  cl::opt<bool> overlap{
      "overlap",
      cl::desc("Collectives, and copies of what is offloaded, run beside compute: gathers start "
               "ahead, reductions are waited for late"),
      cl::init(false), cl::cat(sharding)};
  cl::opt<std::string> forwardPrefetch{"forward-prefetch",
                                       cl::desc("Gathers of the forward started ahead of the one "
                                                "in use: auto (default: as hides them) or N"),
                                       cl::init("auto"), cl::cat(sharding)};
  cl::opt<std::string> backwardPrefetch{"backward-prefetch", cl::desc("The same in the backward"),
                                        cl::init("auto"), cl::cat(sharding)};
  cl::opt<std::string> copyPrefetch{
      "copy-prefetch",
      cl::desc("The same of copies between the arenas of the device and the host, with --offload"),
      cl::init("auto"), cl::cat(sharding)};
  cl::opt<std::string> bucketBytes{
      "bucket-bytes",
      cl::desc("Collectives of one kind start as one launch, up to these bytes of gathered "
               "parameters, or of gradients to "
               "be reduced (default 0: each alone; with --overlap): gathers early for it, "
               "reductions late"),
      cl::init("0"), cl::value_desc("BYTES"), cl::cat(sharding)};
  cl::opt<std::string> cluster{
      "cluster",
      cl::desc("Machines that times are estimated for (a file as in examples/clusters, or 8xH100, "
               "the default for GPUs; else CPU ranks)"),
      cl::value_desc("FILE.json"), cl::cat(sharding)};
  cl::opt<std::string> target{"target",
                              cl::desc("cpu (default), reference: the slow oracle, or a GPU: "
                                       "sm_80, sm_90a or sm_100a (docs/GpuKernels.md)"),
                              cl::init("cpu"), cl::cat(output)};
  cl::opt<std::string> emit{"emit",
                            cl::desc("Print the kernels that there are for a GPU --target, instead "
                                     "of an artifact: ptx, kernel-mlir "
                                     "(before their lowering) or sass-stats (what ptxas says of "
                                     "them); see docs/GpuKernels.md"),
                            cl::value_desc("WHAT"), cl::cat(output)};
  cl::opt<std::string> spills{
      "spills", cl::desc("GPU kernels whose registers spill: ignore, warn (default) or error"),
      cl::init("warn"), cl::cat(output)};
  cl::opt<int> ptxasTimeout{"ptxas-timeout", cl::desc("Seconds that ptxas may take (default 120)"),
                            cl::init(120), cl::cat(output)};
  cl::opt<std::string> gemm{
      "gemm",
      cl::desc("Who computes matrix products on a GPU: nvptx, kernels of our own; cublaslt, "
               "NVIDIA's library, where it has what "
               "is behind the sums; auto (default): nvptx; see docs/GpuKernels.md"),
      cl::init("auto"), cl::value_desc("WHO"), cl::cat(output)};
  cl::opt<std::string> gemmWorkspace{
      "gemm-workspace-bytes",
      cl::desc("Scratch that cuBLASLt has in the arena (default: 32m, and 4m for sm_80)"),
      cl::init(""), cl::value_desc("BYTES"), cl::cat(output)};
  cl::opt<std::string> targetCpu{"target-cpu",
                                 cl::desc("CPU to compile for, e.g. x86-64-v3 (default: this one)"),
                                 cl::cat(output)};
  cl::opt<std::string> kernelCache{"kernel-cache",
                                   cl::desc("Keep the machine code of CPU kernels in this folder, "
                                            "and take from it what was compiled before "
                                            "(default: what FSDP_KERNEL_CACHE names; else none)"),
                                   cl::value_desc("DIR"), cl::cat(output)};
  cl::opt<int64_t> threads{"threads-per-rank",
                           cl::desc("Worker threads of a rank's kernels (default 1)"), cl::init(1),
                           cl::cat(output)};
  cl::opt<std::string> explain{
      "explain",
      cl::desc("Print memory, units and communication: text (default) or json; dtypes:"
               " in which types each part of the step computes"),
      cl::ValueOptional, cl::init(""), cl::cat(output)};
  cl::list<std::string> whatIf{
      "what-if",
      cl::desc("Compare this plan with others, all with --overlap and without code: options that "
               "are other there, such as mesh=shard=64,param-dtype=bf16; "
               "model=FILE for another batch; freeze=h.0,*.bias: a part without = goes on with the "
               "value. As often as there are questions"),
      cl::value_desc("OPTION=VALUE,.."), cl::cat(output)};
  cl::opt<std::string> report{"report",
                              cl::desc("Write the plan as one page for a browser: the arena over "
                                       "the step, lanes, units, traffic, types"),
                              cl::value_desc("FILE.html"), cl::cat(output)};
  cl::opt<std::string> compileTo{"compile-to",
                                 cl::desc("Stop behind a phase and write its IR:"
                                          " import|shard|differentiate|update|fuse|plan|codegen"),
                                 cl::value_desc("PHASE"), cl::cat(output)};
  cl::opt<std::string> dumpTo{"dump-phases-to",
                              cl::desc("Write the IR after each phase to DIR/NN.phase.mlir"),
                              cl::value_desc("DIR"), cl::cat(output)};
  cl::opt<bool> timing{"timing", cl::desc("Print the time of each phase on stderr"),
                       cl::cat(output)};
  cl::opt<bool> remarks{"remarks",
                        cl::desc("Print remarks: what was inferred, and what blocked what"),
                        cl::cat(output)};
};

/// What `--help` prints above the options.
extern const char *const overview;

/// The options as the compiler takes them.
CompileOptions fill(const CommandLine &line);

/// What is wrong with options that need no IR to be found wrong; their text begins with the
/// option's name.
std::optional<std::string> checkUsage(const CommandLine &line);

/// What is wrong when an option that may be given once is given again.
std::optional<std::string> findRepeated(llvm::ArrayRef<char *> arguments);

/// What is wrong with options that another option, an optimizer or a strategy, makes meaningless.
/// Files may say more than is read.
std::optional<std::string> checkUnread(const CommandLine &line,
                                       llvm::function_ref<bool(llvm::StringRef)> isFromFile);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_COMPILE_COMMANDLINE_H
