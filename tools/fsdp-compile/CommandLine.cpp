//===- CommandLine.cpp - The options of fsdp-compile ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "fsdp/Plan/Checkpointing.h"
#include "fsdp/Tools/ToolMain.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/Format.h"
#include <cmath>
#include <cstdlib>
#include <limits>

using namespace mlir;
using namespace mlir::fsdp;

const char *const fsdp::overview =
    R"(fsdp-compile: compile the fully sharded training step of a model

Takes a loss function as MLIR (linalg on tensors; what fsdp-modelgen writes, or an
importer), writes the whole step (backward, optimizer, collectives, memory plan),
compiles its kernels and packs one file that fsdp-run trains with.

EXAMPLES
  A GPT for two ranks, and what it will use:
    fsdp-modelgen gpt2 --layers=4 --hidden=128 --heads=4 --vocab=256 --seq=64 --batch=8 -o gpt.mlir
    fsdp-compile gpt.mlir --mesh=shard=2 -o gpt.fsdp --explain
    fsdp-run gpt.fsdp --ranks=2 --text=input.txt --steps=200

  A foreign module that returns logits and holds a mask of unknown content:
    fsdp-compile gpt2.mlir --attach-loss=cross_entropy --buffer=0=causal --mesh=shard=2 -o gpt2.fsdp

  The options in a file, or those of Hugging Face or DeepSpeed (docs/Configuration.md):
    fsdp-compile gpt.mlir --config=config.json -o gpt.fsdp

  The IR after a phase:
    fsdp-compile gpt.mlir --mesh=shard=2 --compile-to=differentiate -o -

  For GPUs; the kernels alone, as text:
    fsdp-compile gpt.mlir --mesh=shard=2 --param-dtype=bf16 --target=sm_80 -o gpt.fsdp
    fsdp-compile gpt.mlir --mesh=shard=2 --param-dtype=bf16 --target=sm_80 --emit=ptx

THE MODEL
  One public function of static shapes that returns the loss (or logits, with --attach-loss). Attributes of its arguments:
    fsdp.param = "h.0.weight"   a parameter; without any: --params, --params-file, or all floats before the first integers
    fsdp.init = #fsdp.init<normal, 0.0, 0.02>   how it starts (constant, normal, uniform); inferred from its uses
    fsdp.frozen                 it is not trained
    fsdp.unit = "name"          the unit that it belongs to
    fsdp.batch = "tokens"       a batch input; fsdp-run feeds text to tokens and targets
    fsdp.limit = 256 : i64      its ids are in [0, 256): checked before each step; inferred from lookups

  --params-file names what cannot be marked, one entry per argument or constant:
    [{"index": 3, "rename": "h.0.weight", "init": {"kind": "normal", "a": 0, "b": 0.02}, "frozen": true}, ...]
  "index" counts the arguments from 0; "name" (of its location) or "resource" (of a constant) point as well.

  --buffer=INDEX=... counts the arguments from 0 as they are in the file; where none has that place, the tables among
  the constants in order of appearance. NAME is the argument's location, fsdp.batch, or the constant's resource.
  CONTENT: causal (a mask), zeros, ones, a FILE of raw little-endian values, or keep (a constant stays as it is).

  Patterns of --freeze, --ignore-params and --transformer-layer name parameters or what names begin with, * being any
  part of one component: h.0 is all of layer 0, *.bias every bias, h.*.attn the attention of every layer.

  --wrap=FILE.json lists units; the first match wins. A pattern is a unit per name that it stands for (["h.0", "h.1"]:
  two layers; ["h.0.*"]: each module of layer 0); {"unit": "first", "params": ["wte.*", "h.0.*"]} puts all into one.

  --mesh=replicate=2,shard=4 has 8 ranks. A size may have factors, outermost first: shard=2x4.

Exit codes: 0 compiled, 1 a kernel could not be compiled, the plan is above --memory-limit, or the output could not be
written, 2 bad usage or model.
)";

/// `true`, `false` or a number of ranks, however they are written.
static std::optional<std::string> spellReshard(StringRef text) {
  int64_t ranks;
  if (text.empty() || text.equals_insensitive("true"))
    return "true";
  if (text.equals_insensitive("false"))
    return "false";
  if (text.getAsInteger(10, ranks) || ranks < 1)
    return std::nullopt;
  return std::to_string(ranks);
}

/// `auto` or a number of gathers.
static std::optional<int64_t> readPrefetch(StringRef text) {
  int64_t gathers;
  if (text == "auto")
    return -1;
  if (text.getAsInteger(10, gathers) || gathers < 0)
    return std::nullopt;
  return gathers;
}

/// A number of bytes of at least 1, as `900000`, `512k`, `13.5M` or `2G`.
static std::optional<int64_t> parseBytes(StringRef text) {
  int64_t number, unit = 1;
  double fraction;
  if (text.consume_back_insensitive("k"))
    unit = int64_t(1) << 10;
  else if (text.consume_back_insensitive("M"))
    unit = int64_t(1) << 20;
  else if (text.consume_back_insensitive("G"))
    unit = int64_t(1) << 30;
  // Digits on both sides of a dot, and a unit: what is left of a byte is dropped.
  if (unit > 1 && text.contains('.') && text.find_first_not_of("0123456789.") == StringRef::npos &&
      !text.starts_with(".") && !text.ends_with(".") && !text.getAsDouble(fraction)) {
    double bytes = fraction * static_cast<double>(unit);
    return bytes >= 1 && bytes < 0x1p63 ? std::optional(static_cast<int64_t>(bytes)) : std::nullopt;
  }
  if (text.getAsInteger(10, number) || number < 1 ||
      number > std::numeric_limits<int64_t>::max() / unit)
    return std::nullopt;
  return number * unit;
}

/// What is wrong with a number of bytes. `orZero`: 0 means none.
static std::optional<std::string> checkBytes(const cl::opt<std::string> &option,
                                             bool orZero = false) {
  StringRef text = option.getValue();
  if (parseBytes(text) || (orZero && text == "0"))
    return std::nullopt;
  StringRef digits = text.rtrim("kKmMgG");
  bool isLarge = !digits.empty() && text.size() - digits.size() < 2 &&
                 llvm::all_of(
                     digits, [](char c) { return llvm::isDigit(c) || c == '.'; }) &&
                 digits.count('.') < 2 && digits.split('.').first.ltrim('0').size() > 8;
  return "--" + option.ArgStr.str() + "=" + text.str() + ": expected a number of bytes of " +
         (isLarge ? "at most 9223372036854775807, which are 8 EiB"
                  : (orZero ? "at least 0" : "at least 1") +
                        std::string(", also as 512k, 13.5M or 2G"));
}

/// None where an option of LLVM's own is given, which might change code that the cache takes for
/// the same.
static std::string chooseKernelCache(const CommandLine &line) {
  const cl::OptionCategory *ours[] = {&line.model, &line.sharding, &line.precision, &line.training,
                                      &line.output};
  for (const auto &[name, option] : cl::getRegisteredOptions())
    if (option->getNumOccurrences() &&
        llvm::none_of(option->Categories, [&](cl::OptionCategory *category) {
          return llvm::is_contained(ours, category);
        }))
      return "";
  if (line.kernelCache.getNumOccurrences())
    return line.kernelCache;
  const char *folder = std::getenv("FSDP_KERNEL_CACHE");
  return folder ? folder : "";
}

CompileOptions fsdp::fill(const CommandLine &line) {
  CompileOptions options;
  options.import.entry = line.entry;
  options.import.params = line.params;
  options.import.paramsFile = line.paramsFile;
  options.import.batch.assign(line.batch.begin(), line.batch.end());
  options.import.buffers.assign(line.buffers.begin(), line.buffers.end());
  options.import.attachLoss = line.attachLoss;
  options.import.ignoreIndex = line.ignoreIndex;
  options.import.raiseAttention = line.raiseAttention;
  options.shard.paramDtype = line.paramDtype;
  options.shard.outputDtype = line.outputDtype;
  options.differentiate.reduceDtype = line.reduceDtype;
  if (!line.lossScale.empty())
    options.differentiate.lossScale = line.lossScale == "none" ? "off" : "on";
  options.update.lossScale = line.lossScale == "none" ? std::string() : line.lossScale.getValue();
  options.update.gradDivide = line.gradDivide;
  options.differentiate.weighLoss = line.gradDivide == "tokens";
  options.update.gradPredivide = line.gradPredivide;
  options.differentiate.gradPredivide = line.gradPredivide;
  options.update.reduceDtype = line.reduceDtype;
  options.update.lossScaleInit = line.lossScaleInit;
  options.update.lossScaleGrowthInterval = line.growthInterval;
  options.shard.mesh = line.mesh;
  options.shard.strategy = line.strategy;
  options.shard.policy = line.policy;
  options.shard.layerPattern = line.layer;
  options.shard.wrapFile = line.wrapFile;
  options.shard.minNumParams = line.minNumParams;
  if (!line.wrapFile.empty() && !line.policy.getNumOccurrences())
    options.shard.policy = "manual";
  options.shard.reshardRoot = line.reshardRoot;
  options.shard.gatherRows = line.gatherRows;
  options.shard.gradSync = line.gradSync;
  options.shard.paramStorage = line.paramStorage;
  options.shard.freeze = line.freeze;
  options.shard.ignore = line.ignore;
  options.shard.reshardAfterForward = spellReshard(line.reshard).value_or("true");
  options.shard.gradAccum = line.accum;
  options.fuse.fuseAttention = line.fuseAttention;
  options.shard.remarks = line.remarks;
  options.update.optimizer = line.optimizer;
  options.update.beta1 = line.beta1;
  options.update.beta2 = line.beta2;
  options.update.eps = line.eps;
  options.update.weightDecay = line.decay;
  options.update.momentum = line.momentum;
  options.update.stateDtype = line.stateDtype;
  options.update.stateRounding = line.stateRounding;
  options.update.clipGradNorm = line.clip;
  if (line.maxChunkBytes.getNumOccurrences())
    options.fuse.chunks = ChunkLimits{line.maxChunkBytes, cpuChunks.minRows};
  options.fuse.remarks = line.remarks;
  options.plan.memoryLimit = parseBytes(line.memoryLimit).value_or(0);
  options.plan.checkpointing = line.checkpointing;
  options.plan.keepGathers = line.reshard.getNumOccurrences() == 0;
  options.plan.offload = line.offload;
  options.plan.offloadMinBytes = parseBytes(line.offloadMinBytes).value_or(0);
  options.plan.overlap = line.overlap;
  options.plan.forwardPrefetch = readPrefetch(line.forwardPrefetch).value_or(-1);
  options.plan.backwardPrefetch = readPrefetch(line.backwardPrefetch).value_or(-1);
  options.plan.bucketBytes = parseBytes(line.bucketBytes).value_or(0);
  options.plan.copyPrefetch = readPrefetch(line.copyPrefetch).value_or(-1);
  options.plan.cluster = line.cluster;
  options.target = line.target;
  options.targetCpu = line.targetCpu;
  options.kernelCache = chooseKernelCache(line);
  options.gpu.assemblerSeconds = line.ptxasTimeout;
  options.gpu.spills = line.spills == "ignore"  ? SpillPolicy::Ignore
                       : line.spills == "error" ? SpillPolicy::Error
                                                : SpillPolicy::Warn;
  options.gpu.gemm = line.gemm == "nvptx"      ? GemmSource::Nvptx
                     : line.gemm == "cublaslt" ? GemmSource::CublasLt
                                               : GemmSource::Auto;
  options.gpu.gemmWorkspace = parseBytes(line.gemmWorkspace).value_or(0);
  options.threadsPerRank = line.threads;
  options.learningRate = line.lr;
  options.dumpDirectory = line.dumpTo;
  options.timing = line.timing;
  options.source = line.input;
  options.compiler = "fsdp-compile " FSDP_VERSION " (LLVM " LLVM_VERSION_STRING ")";
  return options;
}

static constexpr double smallestNumber = 1e-30, largestNumber = 1e30;

std::optional<std::string> fsdp::findRepeated(ArrayRef<char *> arguments) {
  for (StringRef argument : arguments) {
    StringRef name = argument.ltrim('-').split('=').first;
    cl::Option *option =
        argument.starts_with("-") ? cl::getRegisteredOptions().lookup(name) : nullptr;
    if (option && option->getNumOccurrencesFlag() == cl::Optional &&
        option->getNumOccurrences() > 1)
      return (name.size() == 1 ? "-" : "--") + name.str() + ": expected at most once, found " +
             std::to_string(option->getNumOccurrences()) + " times";
  }
  return std::nullopt;
}

/// Numbers of the optimizer, and options that the chosen one does not read.
static std::optional<std::string> checkOptimizer(const CommandLine &line) {
  auto found = [](const cl::opt<double> &option) {
    std::string text;
    llvm::raw_string_ostream(text)
        << "--" << option.ArgStr << "=" << llvm::format("%g", option.getValue()) << ": expected ";
    return text;
  };
  for (const cl::opt<double> *number : {&line.lr, &line.eps, &line.decay, &line.clip}) {
    if (!(*number >= 0 && std::isfinite(*number)))
      return found(*number) + "a finite number of at least 0";
    if (*number > largestNumber || (*number > 0 && *number < smallestNumber))
      return found(*number) + "0 or a number from 1e-30 to 1e30, which f32 can hold";
  }
  if (line.eps == 0)
    return found(line.eps) +
           "a number above 0: where a gradient is always 0, AdamW would divide 0 by 0";
  if (!(line.gradPredivide >= smallestNumber && line.gradPredivide <= largestNumber))
    return found(line.gradPredivide) + "a number from 1e-30 to 1e30, such as the number of ranks";
  for (const cl::opt<double> *number : {&line.beta1, &line.beta2, &line.momentum})
    if (!(*number >= 0 && *number < 1))
      return found(*number) + "a number from 0 up to, but not 1";
  StringRef optimizer = line.optimizer;
  if (optimizer != "adamw" && optimizer != "sgd")
    return "--optimizer=" + line.optimizer + ": expected adamw or sgd";
  return std::nullopt;
}

/// Options of schedules and estimates, where there are none. Plans of --what-if are scheduled.
static std::optional<std::string> checkUnscheduled(const CommandLine &line,
                                                   llvm::function_ref<bool(StringRef)> isFromFile) {
  auto isGiven = [&](const cl::opt<std::string> &option) {
    return option.getNumOccurrences() > 0 && !isFromFile(option.ArgStr);
  };
  bool schedules = line.overlap || !line.whatIf.empty();
  for (const cl::opt<std::string> *option :
       {&line.forwardPrefetch, &line.backwardPrefetch, &line.copyPrefetch, &line.bucketBytes})
    if (isGiven(*option) && !schedules)
      return "--" + option->ArgStr.str() + " is of --overlap, which is not asked for";
  if (isGiven(line.copyPrefetch) && line.offload == "none" && line.whatIf.empty())
    return std::string("--copy-prefetch is of --offload, which is not asked for");
  if (isGiven(line.cluster) && !schedules && line.checkpointing != "auto" && line.report.empty())
    return std::string("--cluster is for the estimates of --overlap, "
                       "--activation-checkpointing=auto, --report and --what-if, none of "
                       "which is asked for");
  return std::nullopt;
}

std::optional<std::string> fsdp::checkUnread(const CommandLine &line,
                                             llvm::function_ref<bool(StringRef)> isFromFile) {
  bool isAdam = line.optimizer == "adamw";
  for (const cl::opt<double> *option : {&line.momentum, &line.beta1, &line.beta2, &line.eps})
    if (option->getNumOccurrences() > 0 && !isFromFile(option->ArgStr) &&
        (option == &line.momentum) == isAdam)
      return "--" + option->ArgStr.str() + " is of " + (isAdam ? "sgd" : "adamw") +
             ", and --optimizer=" + line.optimizer + " does not read it: leave it out";
  if (std::optional<std::string> problem = checkUnscheduled(line, isFromFile))
    return problem;
  const cl::Option *ofCpus[] = {&line.threads, &line.targetCpu, &line.kernelCache};
  for (const cl::Option *option : ofCpus)
    if (option->getNumOccurrences() && !isFromFile(option->ArgStr) &&
        GpuTarget::isKnown(line.target))
      return "--" + option->ArgStr.str() + " is of kernels for a CPU, and --target=" + line.target +
             " compiles none: leave it out";
  bool keeps = llvm::is_contained(
      {"no_shard", "ddp", "zero1", "zero2", "shard_grad_op", "hybrid_shard_zero2"}, line.strategy);
  if (keeps && line.reshard.getNumOccurrences() > 0 && !isFromFile(line.reshard.ArgStr) &&
      spellReshard(line.reshard) != "false" && spellReshard(line.reshard) != "1")
    return "--reshard-after-forward=" + spellReshard(line.reshard).value_or("") +
           " contradicts --sharding-strategy=" + line.strategy +
           ", which keeps parameters whole until the backward: full_shard, hybrid_shard and hfsdp "
           "gather them again";
  return std::nullopt;
}

/// What is wrong with options of ptxas where none is run.
static std::optional<std::string> checkAssembler(const CommandLine &line) {
  std::string reason;
  if (!GpuTarget::isKnown(line.target))
    reason = " is of GPU kernels: give --target=" + GpuTarget::getNames();
  else if (line.noCode)
    reason = " is of machine code, which --no-code leaves out";
  else if (line.emit == "kernel-mlir")
    reason = " is of machine code, which --emit=kernel-mlir does not write";
  else if (line.emit.empty() && (line.outFile.empty() || !line.compileTo.empty()))
    reason = " is of machine code: give -o OUT.fsdp or --emit";
  for (const cl::Option *option : {static_cast<const cl::Option *>(&line.spills),
                                   static_cast<const cl::Option *>(&line.ptxasTimeout)})
    if (option->getNumOccurrences() && !reason.empty())
      return "--" + option->ArgStr.str() + reason;
  return std::nullopt;
}

/// Of --target, --emit and --spills.
static std::optional<std::string> checkTarget(const CommandLine &line) {
  bool isGpu = GpuTarget::isKnown(line.target);
  if (line.target != "cpu" && line.target != "reference" && !isGpu)
    return "--target=" + line.target + ": expected cpu, reference, " + GpuTarget::getNames();
  if (!line.emit.empty() && line.emit != "ptx" && line.emit != "kernel-mlir" &&
      line.emit != "sass-stats")
    return "--emit=" + line.emit + ": expected ptx, kernel-mlir or sass-stats";
  if (!line.emit.empty() && !isGpu)
    return "--emit=" + line.emit + " is of GPU kernels: give --target=" + GpuTarget::getNames();
  if (isGpu && line.compileTo == "codegen")
    return std::string("--compile-to=codegen prints kernels for a CPU: give --emit=kernel-mlir for "
                       "those of a GPU");
  if (line.spills != "ignore" && line.spills != "warn" && line.spills != "error")
    return "--spills=" + line.spills + ": expected ignore, warn or error";
  if (line.ptxasTimeout < 1 || line.ptxasTimeout > 86400)
    return "--ptxas-timeout=" + std::to_string(line.ptxasTimeout) + ": expected 1 to 86400 seconds";
  if (line.gemm != "nvptx" && line.gemm != "cublaslt" && line.gemm != "auto")
    return "--gemm=" + line.gemm + ": expected nvptx, cublaslt or auto";
  if (line.gemmWorkspace.getNumOccurrences() && line.gemm != "cublaslt")
    return std::string("--gemm-workspace-bytes is cuBLASLt's: give --gemm=cublaslt");
  if (line.gemm.getNumOccurrences() && !isGpu)
    return "--gemm is of GPU kernels: give --target=" + GpuTarget::getNames();
  if (std::optional<std::string> problem = checkAssembler(line))
    return problem;
  if (!line.emit.empty() &&
      (!line.outFile.empty() || !line.compileTo.empty() || line.explain.getNumOccurrences() ||
       !line.report.empty() || !line.whatIf.empty()))
    return std::string("--emit prints kernels and nothing else: leave out -o, --compile-to, "
                       "--explain, --report and --what-if");
  return std::nullopt;
}

std::optional<std::string> fsdp::checkUsage(const CommandLine &line) {
  bool known =
      line.compileTo.empty() || line.compileTo == "codegen" ||
      llvm::any_of(getPhases(), [&](const Phase &p) { return p.mnemonic == line.compileTo; });
  if (!known)
    return "--compile-to=" + line.compileTo +
           ": expected import, shard, differentiate, update, fuse, plan or codegen";
  if (line.explain.getNumOccurrences() && line.explain != "" && line.explain != "text" &&
      line.explain != "json" && line.explain != "dtypes")
    return "--explain=" + line.explain + ": expected text, json or dtypes";
  if (int64_t number; line.ignoreIndex.getNumOccurrences()) {
    if (StringRef(line.ignoreIndex).getAsInteger(10, number))
      return "--ignore-index=" + line.ignoreIndex + ": expected an integer";
    if (line.attachLoss.empty())
      return std::string("--ignore-index is of the loss that --attach-loss=cross_entropy adds; a "
                         "loss in the model "
                         "brings its own");
  }
  if (std::optional<std::string> problem = checkTarget(line))
    return problem;
  if (line.raiseAttention != "true" && line.raiseAttention != "false" &&
      line.raiseAttention != "assume-keys")
    return "--raise-attention=" + line.raiseAttention + ": expected true, false or assume-keys";
  if (!spellReshard(line.reshard))
    return "--reshard-after-forward=" + line.reshard +
           ": expected true, false or a number of ranks of at least 1, found " + line.reshard;
  if (std::string problem; !CheckpointingPolicy::parse(line.checkpointing, problem))
    return "--activation-checkpointing=" + line.checkpointing + ": " + problem;
  if (line.checkpointing == "auto" && line.memoryLimit.empty())
    return std::string(
        "--activation-checkpointing=auto chooses what fits into --memory-limit: give one");
  std::optional<OffloadKinds> offload = OffloadKinds::parse(line.offload);
  if (!offload || line.offload.empty())
    return "--offload=" + line.offload +
           ": expected none, or each once of parameters, gradients, optimizer (or optimizer:file) "
           "and activations, with + between";
  if (std::optional<std::string> problem = checkBytes(line.offloadMinBytes))
    return problem;
  if (line.offloadMinBytes.getNumOccurrences() && !offload->activations)
    return std::string("--offload-min-bytes is of --offload=activations, which is not asked for");
  for (const cl::opt<std::string> *option :
       {&line.forwardPrefetch, &line.backwardPrefetch, &line.copyPrefetch})
    if (!readPrefetch(*option))
      return "--" + option->ArgStr.str() + "=" + *option + ": expected auto or a number of " +
             (option == &line.copyPrefetch ? "copies" : "gathers") + " of at least 0";
  if (std::optional<std::string> problem = line.gemmWorkspace.empty()
                                               ? std::nullopt
                                               : checkBytes(line.gemmWorkspace, /*orZero=*/false))
    return problem;
  if (std::optional<std::string> problem = checkBytes(line.bucketBytes, /*orZero=*/true))
    return problem;
  if (line.accum < 1 || line.accum > 65536)
    return "--grad-accum=" + std::to_string(line.accum) + ": expected 1 to 65536";
  if (line.maxChunkBytes < 0)
    return "--max-chunk-bytes=" + std::to_string(line.maxChunkBytes) +
           ": expected a number of bytes, or 0 for no limit";
  if (std::optional<std::string> problem =
          line.memoryLimit.empty() ? std::nullopt : checkBytes(line.memoryLimit))
    return problem;
  if (!line.memoryLimit.empty() && !line.compileTo.empty())
    return std::string("--memory-limit is held against the whole plan: leave out --compile-to");
  if (double scale;
      !line.lossScale.empty() && line.lossScale != "dynamic" && line.lossScale != "none" &&
      !(llvm::to_float(line.lossScale, scale) && scale >= smallestNumber && scale <= largestNumber))
    return "--loss-scale=" + line.lossScale +
           ": expected dynamic, none or a number from 1e-30 to 1e30";
  if (line.threads < 1 || line.threads > 1024)
    return "--threads-per-rank=" + std::to_string(line.threads) + ": expected 1 to 1024";
  if (line.explain.getNumOccurrences() && !line.compileTo.empty())
    return "--explain needs the whole way: leave out --compile-to";
  if (!line.report.empty() && !line.compileTo.empty())
    return "--report needs the whole way: leave out --compile-to";
  if (!line.whatIf.empty() &&
      (!line.outFile.empty() || !line.compileTo.empty() || !line.report.empty()))
    return std::string(
        "--what-if compares plans and writes none: leave out -o, --report and --compile-to");
  if (!line.whatIf.empty() && line.explain.getNumOccurrences())
    return std::string("--what-if prints a table of its own: leave out --explain");
  bool tells = line.explain.getNumOccurrences() || !line.report.empty() || !line.whatIf.empty() ||
               !line.emit.empty();
  if (line.outFile.empty() && (!tells || !line.compileTo.empty()))
    return "no output: give -o OUT.fsdp, or --explain or --report for the plan alone" +
           (line.input == "-"
                ? std::string("; the model comes from stdin when no IN.mlir is given, see --help")
                : std::string());
  if (line.noCode && (line.outFile.empty() || !line.compileTo.empty()))
    return std::string("--no-code is about the artifact of -o OUT.fsdp, which is not asked for");
  if (line.noCode && line.target == "reference")
    return std::string("--no-code leaves out what --target=reference asks for: give one of them");
  if (line.outFile == "-" && line.explain.getNumOccurrences())
    return "-o - and --explain both write to stdout: give -o OUT.fsdp";
  if (std::optional<std::string> problem = checkOptimizer(line))
    return problem;
  if (!line.report.empty() && line.report == line.outFile)
    return "--report=" + line.report + ": is what -o names, too";
  if (std::optional<std::string> problem =
          line.report.empty() ? std::nullopt : whyNotWritable(line.report, line.input))
    return problem;
  return line.outFile.empty() ? std::nullopt : whyNotWritable(line.outFile, line.input);
}
