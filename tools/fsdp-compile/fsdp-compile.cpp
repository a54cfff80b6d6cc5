//===- fsdp-compile.cpp - Compile a training step ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Explain.h"
#include "fsdp/Codegen/CpuTarget.h"
#include "fsdp/Package/Package.h"
#include "fsdp/Pipelines/Compiler.h"
#include "fsdp/Pipelines/Config.h"
#include "fsdp/Pipelines/Registration.h"
#include "fsdp/Tools/ToolMain.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"
#include <cmath>
#include <csignal>

using namespace mlir;
using namespace mlir::fsdp;

/// The options of LLVM, which say what they take.
namespace cl {
using namespace llvm::cl;

static std::vector<ConfigOption> &kinds() {
  static std::vector<ConfigOption> kinds;
  return kinds;
}

template <typename T>
struct opt : llvm::cl::opt<T> {
  template <typename... Modifiers>
  explicit opt(const Modifiers &...modifiers) : llvm::cl::opt<T>(modifiers...) {
    constexpr ConfigKind kind = std::is_same_v<T, bool>           ? ConfigKind::flag
                                : std::is_integral_v<T>           ? ConfigKind::integer
                                : std::is_floating_point_v<T>     ? ConfigKind::number
                                                                  : ConfigKind::word;
    if (this->hasArgStr())
      kinds().push_back({this->ArgStr.str(), kind});
  }
  using llvm::cl::opt<T>::operator=;
};

template <typename T>
struct list : llvm::cl::list<T> {
  template <typename... Modifiers>
  explicit list(const Modifiers &...modifiers) : llvm::cl::list<T>(modifiers...) {
    kinds().push_back({this->ArgStr.str(), ConfigKind::list});
  }
};
} // namespace cl

static constexpr int badUsage = 2;

static const char *overview = R"(fsdp-compile: compile the fully sharded training step of a model

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

  --mesh=replicate=2,shard=4 has 8 ranks. A size may have factors, outermost first: shard=2x4.

EXIT CODES
  0 compiled, 1 the kernels or the output failed, 2 bad usage or input

Exit codes: 0 compiled, 1 the output could not be written or a kernel not be compiled, 2 bad usage or model.
)";

namespace {
/// The command line. Local, so that no global option is left behind.
struct CommandLine {
  cl::OptionCategory model{"Model"}, sharding{"Sharding"}, precision{"Precision"}, training{"Training"}, output{"Output"};

  cl::opt<std::string> input{cl::Positional, cl::desc("IN.mlir"), cl::init("-"), cl::cat(model)};
  cl::opt<std::string> config{"config",
                              cl::desc("JSON file of options, of a Hugging Face fsdp_config, or of DeepSpeed;"
                                       " the command line wins"),
                              cl::value_desc("FILE.json"), cl::cat(model)};
  cl::opt<bool> configKeys{"config-keys", cl::desc("Print the keys that --config understands"), cl::Hidden,
                           cl::cat(output)};
  cl::opt<std::string> entry{"entry", cl::desc("Function to train (default: the only public one)"), cl::cat(model)};
  cl::opt<std::string> params{
      "params", cl::desc("Which arguments are parameters: positions and names, e.g. 0-148,150,h.*"), cl::cat(model)};
  cl::opt<std::string> paramsFile{
      "params-file", cl::desc("JSON sidecar: names, initial values and frozen flags of parameters"), cl::cat(model)};
  cl::list<std::string> buffers{
      "buffer", cl::desc("Content of a buffer: NAME|INDEX=causal|zeros|ones|keep|FILE (repeat per buffer)"), cl::cat(model)};
  cl::opt<std::string> attachLoss{"attach-loss", cl::desc("Loss behind logits: cross_entropy"), cl::cat(model)};
  cl::opt<std::string> ignoreIndex{
      "ignore-index", cl::desc("With --attach-loss: value of the targets that do not count, such as -100"),
      cl::value_desc("N"), cl::cat(model)};

  cl::opt<std::string> mesh{"mesh", cl::desc("Ranks per axis: [replicate=R,]shard=S (default shard=1); S may be 2x4"),
                            cl::init("shard=1"), cl::cat(sharding)};
  cl::opt<std::string> strategy{"sharding-strategy",
                                cl::desc("no_shard, zero1, zero2, shard_grad_op, full_shard (default), hybrid_shard, "
                                         "hybrid_shard_zero2 or hfsdp"),
                                cl::init("full_shard"),
                                cl::cat(sharding)};
  cl::opt<std::string> policy{"auto-wrap-policy",
                              cl::desc("transformer: one unit per layer (default); size: modules of --min-num-params;"
                                       " manual: those of --wrap; none: the whole model is one unit"),
                              cl::init("transformer"), cl::cat(sharding)};
  cl::opt<std::string> layer{"transformer-layer", cl::desc("Prefix pattern of a layer's parameters, e.g. h.*"),
                             cl::cat(sharding)};
  cl::opt<std::string> wrapFile{"wrap", cl::desc("JSON list of units: patterns, the first match wins"),
                                cl::value_desc("FILE.json"), cl::cat(sharding)};
  cl::opt<int64_t> minNumParams{"min-num-params",
                                cl::desc("size: elements of the smallest unit (default 100000000); transformer:"
                                         " merge layers up to this many"),
                                cl::init(0), cl::cat(sharding)};
  cl::opt<std::string> reshard{"reshard-after-forward",
                               cl::desc("Gather parameters again in the backward: true (default) or false"),
                               cl::ValueOptional, cl::init("true"), cl::cat(sharding)};

  cl::opt<std::string> reshardRoot{"reshard-root",
                                   cl::desc("The root unit: gathered again in the backward (forward), kept until then "
                                            "(backward, default), or gathered once per step (step)"),
                                   cl::init("backward"), cl::cat(sharding)};
  cl::opt<std::string> paramStorage{"param-storage",
                                    cl::desc("Trained parameters of less than f32: kept in f32 and cast where they are "
                                             "gathered (master, default), or as they are beside f32 masters (both)"),
                                    cl::init("master"), cl::cat(sharding)};
  cl::opt<std::string> gradSync{"grad-sync",
                                cl::desc("Gradients cross ranks with each micro-batch (each) or once per step (last); "
                                         "auto (default): each where they are sharded"),
                                cl::init("auto"), cl::cat(training)};
  cl::opt<std::string> ignore{"ignore-params",
                              cl::desc("Parameters that every rank keeps whole, whatever the strategy: patterns"),
                              cl::value_desc("PATTERNS"), cl::cat(sharding)};
  cl::opt<std::string> freeze{"freeze", cl::desc("Parameters that are not trained: patterns, e.g. h.0,*.bias"),
                              cl::value_desc("PATTERNS"), cl::cat(training)};

  cl::opt<std::string> paramDtype{
      "param-dtype", cl::desc("Parameters and activations of an f32 model: f32 (default), bf16 or f16"),
      cl::cat(precision)};
  cl::opt<std::string> reduceDtype{
      "reduce-dtype", cl::desc("Type in which gradients cross ranks: f32 (default), f64, bf16 or f16"), cl::cat(precision)};
  cl::opt<std::string> gradDivide{"grad-divide",
                                  cl::desc("What the sum of gradients over ranks and micro-batches is divided by: average "
                                           "(their number, default), sum (nothing), or a number"),
                                  cl::init("average"), cl::cat(training)};
  cl::opt<std::string> lossScale{
      "loss-scale", cl::desc("Factor of the loss, so that f16 gradients do not vanish: dynamic (default with f16), none"
                             " (default else), or a number"),
      cl::cat(precision)};
  cl::opt<double> lossScaleInit{"loss-scale-init", cl::desc("The dynamic loss scale at the start (default 65536)"),
                                cl::init(65536), cl::cat(precision)};
  cl::opt<int64_t> growthInterval{"loss-scale-growth-interval",
                                  cl::desc("Good steps after which the dynamic loss scale doubles (default 2000)"),
                                  cl::init(2000), cl::cat(precision)};
  cl::opt<std::string> outputDtype{
      "output-dtype", cl::desc("What the loss is computed from: f32 (default), or the --param-dtype"), cl::cat(precision)};

  cl::opt<std::string> optimizer{"optimizer", cl::desc("adamw (default) or sgd"), cl::init("adamw"), cl::cat(training)};
  cl::opt<double> lr{"lr", cl::desc("Learning rate that fsdp-run starts from (default 3e-4)"), cl::init(3e-4),
                     cl::cat(training)};
  cl::opt<double> beta1{"beta1", cl::desc("AdamW: decay of the first moment (default 0.9)"), cl::init(0.9),
                        cl::cat(training)};
  cl::opt<double> beta2{"beta2", cl::desc("AdamW: decay of the second moment (default 0.999)"), cl::init(0.999),
                        cl::cat(training)};
  cl::opt<double> eps{"eps", cl::desc("AdamW: added to the root (default 1e-8)"), cl::init(1e-8), cl::cat(training)};
  cl::opt<double> decay{"weight-decay", cl::desc("Decoupled decay of tensors of rank 2 and more (default 0.01)"),
                        cl::init(0.01), cl::cat(training)};
  cl::opt<double> momentum{"momentum", cl::desc("SGD: momentum (default 0)"), cl::init(0.0), cl::cat(training)};
  cl::opt<double> clip{"clip-grad-norm", cl::desc("Largest global gradient norm; 0: no clipping (default)"),
                       cl::init(0.0), cl::cat(training)};

  cl::opt<unsigned> accum{"grad-accum", cl::desc("Micro-batches whose gradients a step accumulates (default 1)"),
                          cl::init(1), cl::cat(training)};

  cl::opt<std::string> outFile{"o", cl::desc("The artifact, or IR with --compile-to; - is stdout"),
                               cl::value_desc("OUT.fsdp"), cl::cat(output)};
  cl::opt<std::string> target{"target", cl::desc("cpu (default), or reference: the slow oracle"), cl::init("cpu"),
                              cl::cat(output)};
  cl::opt<std::string> targetCpu{"target-cpu", cl::desc("CPU to compile for, e.g. x86-64-v3 (default: this one)"),
                                 cl::cat(output)};
  cl::opt<unsigned> threads{"threads-per-rank", cl::desc("Worker threads of a rank's kernels (default 1)"), cl::init(1),
                            cl::cat(output)};
  cl::opt<std::string> explain{"explain", cl::desc("Print memory, units and communication: text (default) or json; dtypes:"
                                                  " in which types each part of the step computes"),
                               cl::ValueOptional, cl::init(""), cl::cat(output)};
  cl::opt<std::string> compileTo{"compile-to", cl::desc("Stop behind a phase and write its IR:"
                                                        " import|shard|differentiate|update|fuse|plan|codegen"),
                                 cl::value_desc("PHASE"), cl::cat(output)};
  cl::opt<std::string> dumpTo{"dump-phases-to", cl::desc("Write the IR after each phase to DIR/NN.phase.mlir"),
                              cl::value_desc("DIR"), cl::cat(output)};
  cl::opt<bool> timing{"timing", cl::desc("Print the time of each phase on stderr"), cl::cat(output)};
  cl::opt<bool> remarks{"remarks", cl::desc("Print remarks: what was inferred, and what blocked what"), cl::cat(output)};
};
} // namespace

/// As cl::opt<bool> reads it.
static std::optional<bool> readBool(StringRef text) {
  return llvm::StringSwitch<std::optional<bool>>(text)
      .Cases({"", "true", "TRUE", "True", "1"}, true)
      .Cases({"false", "FALSE", "False", "0"}, false)
      .Default(std::nullopt);
}

static CompileOptions fill(const CommandLine &line) {
  CompileOptions options;
  options.import.entry = line.entry;
  options.import.params = line.params;
  options.import.paramsFile = line.paramsFile;
  options.import.buffers.assign(line.buffers.begin(), line.buffers.end());
  options.import.attachLoss = line.attachLoss;
  options.import.ignoreIndex = line.ignoreIndex;
  options.shard.paramDtype = line.paramDtype;
  options.shard.outputDtype = line.outputDtype;
  options.differentiate.reduceDtype = line.reduceDtype;
  if (!line.lossScale.empty())
    options.differentiate.lossScale = line.lossScale == "none" ? "off" : "on";
  options.update.lossScale = line.lossScale == "none" ? std::string() : line.lossScale.getValue();
  options.update.gradDivide = line.gradDivide;
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
  options.shard.gradSync = line.gradSync;
  options.shard.paramStorage = line.paramStorage;
  options.shard.freeze = line.freeze;
  options.shard.ignore = line.ignore;
  options.shard.reshardAfterForward = readBool(line.reshard).value_or(true);
  options.shard.gradAccum = line.accum;
  options.shard.remarks = line.remarks;
  options.update.optimizer = line.optimizer;
  options.update.beta1 = line.beta1;
  options.update.beta2 = line.beta2;
  options.update.eps = line.eps;
  options.update.weightDecay = line.decay;
  options.update.momentum = line.momentum;
  options.update.clipGradNorm = line.clip;
  options.target = line.target;
  options.targetCpu = line.targetCpu;
  options.threadsPerRank = line.threads;
  options.learningRate = line.lr;
  options.dumpDirectory = line.dumpTo;
  options.timing = line.timing;
  options.source = line.input;
  options.compiler = "fsdp-compile " FSDP_VERSION " (LLVM " LLVM_VERSION_STRING ")";
  return options;
}

/// "file:line:column", or nothing for a location without one.
static void printLocation(Location loc, llvm::raw_ostream &os) {
  if (auto file = dyn_cast<FileLineColLoc>(loc); file && file.getLine() == 0) // the module
    os << file.getFilename().getValue() << ": ";
  else if (file)
    os << file.getFilename().getValue() << ":" << file.getLine() << ":" << file.getColumn() << ": ";
  else if (auto named = dyn_cast<NameLoc>(loc))
    printLocation(named.getChildLoc(), os);
  else if (auto fused = dyn_cast<FusedLoc>(loc))
    printLocation(fused.getLocations().front(), os);
  else if (auto call = dyn_cast<CallSiteLoc>(loc))
    printLocation(call.getCallee(), os);
}

static void noteOrigin(StringRef message);

static void printDiagnostic(Diagnostic &diag, bool remarks) {
  if (diag.getSeverity() == DiagnosticSeverity::Remark && !remarks)
    return;
  static constexpr StringLiteral names[] = {"note", "warning", "error", "remark"};
  printLocation(diag.getLocation(), llvm::errs());
  llvm::errs() << names[static_cast<unsigned>(diag.getSeverity())] << ": " << diag << "\n";
  noteOrigin(diag.str());
  for (Diagnostic &note : diag.getNotes()) {
    printLocation(note.getLocation(), llvm::errs());
    llvm::errs() << "note: " << note << "\n";
  }
}

static int usageError(const Twine &message) {
  llvm::errs() << "fsdp-compile: " << message << "\n";
  noteOrigin(message.str());
  return badUsage;
}

/// Numbers of the optimizer, and options that the chosen one does not read.
static std::optional<std::string> checkOptimizer(const CommandLine &line) {
  auto found = [](const cl::opt<double> &option) {
    std::string text;
    llvm::raw_string_ostream(text) << "--" << option.ArgStr << "=" << llvm::format("%g", option.getValue()) << ": expected ";
    return text;
  };
  for (const cl::opt<double> *number : {&line.lr, &line.eps, &line.decay, &line.clip})
    if (!(*number >= 0 && std::isfinite(*number)))
      return found(*number) + "a finite number of at least 0";
  for (const cl::opt<double> *number : {&line.beta1, &line.beta2, &line.momentum})
    if (!(*number >= 0 && *number < 1))
      return found(*number) + "a number from 0 up to, but not 1";
  StringRef optimizer = line.optimizer;
  if (optimizer != "adamw" && optimizer != "sgd")
    return "--optimizer=" + line.optimizer + ": expected adamw or sgd";
  return std::nullopt;
}

/// Options of the command line (files may say more) that the other optimizer reads.
static std::optional<std::string> findUnread(const CommandLine &line, ArrayRef<StringRef> given) {
  bool isAdam = line.optimizer == "adamw";
  for (StringRef option : given)
    if ((option == "momentum") == isAdam)
      return "--" + option.str() + " is of " + (isAdam ? "sgd" : "adamw") + ", and --optimizer=" + line.optimizer +
             " does not read it: leave it out";
  return std::nullopt;
}

/// Options that need no IR to be found wrong.
static std::optional<std::string> checkUsage(const CommandLine &line) {
  bool known = line.compileTo.empty() || line.compileTo == "codegen" ||
               llvm::any_of(getPhases(), [&](const Phase &p) { return p.mnemonic == line.compileTo; });
  if (!known)
    return "--compile-to=" + line.compileTo +
           ": expected import, shard, differentiate, update, fuse, plan or codegen";
  if (line.explain.getNumOccurrences() && line.explain != "" && line.explain != "text" && line.explain != "json" &&
      line.explain != "dtypes")
    return "--explain=" + line.explain + ": expected text, json or dtypes";
  if (int64_t number; line.ignoreIndex.getNumOccurrences()) {
    if (StringRef(line.ignoreIndex).getAsInteger(10, number))
      return "--ignore-index=" + line.ignoreIndex + ": expected an integer";
    if (line.attachLoss.empty())
      return std::string("--ignore-index is of the loss that --attach-loss=cross_entropy adds; a loss in the model "
                         "brings its own");
  }
  if (line.target != "cpu" && line.target != "reference")
    return "--target=" + line.target + ": expected cpu or reference";
  if (!readBool(line.reshard))
    return "--reshard-after-forward=" + line.reshard + ": expected true or false, found " + line.reshard;
  if (line.accum < 1 || line.accum > 65536)
    return "--grad-accum=" + std::to_string(line.accum) + ": expected 1 to 65536";
  if (line.threads < 1 || line.threads > 1024)
    return "--threads-per-rank=" + std::to_string(line.threads) + ": expected 1 to 1024";
  if (line.explain.getNumOccurrences() && !line.compileTo.empty())
    return "--explain needs the whole way: leave out --compile-to";
  if (line.outFile.empty() && (!line.explain.getNumOccurrences() || !line.compileTo.empty()))
    return "no output: give -o OUT.fsdp, or --explain for the plan alone" +
           (line.input == "-" ? std::string("; the model comes from stdin when no IN.mlir is given, see --help") : std::string());
  if (line.outFile == "-" && line.explain.getNumOccurrences())
    return "-o - and --explain both write to stdout: give -o OUT.fsdp";
  if (std::optional<std::string> problem = checkOptimizer(line))
    return problem;
  return line.outFile.empty() ? std::nullopt : whyNotWritable(line.outFile, line.input);
}

/// Writes `module` to the file that -o names.
static LogicalResult writeModule(ModuleOp module, StringRef path) {
  std::error_code ec;
  llvm::ToolOutputFile out(path, ec, llvm::sys::fs::OF_None);
  if (!ec) {
    module.print(out.os());
    out.os().flush();
    ec = out.os().error();
    out.os().clear_error();
  }
  if (ec)
    return emitError(UnknownLoc::get(module.getContext())) << "cannot write '" << path << "': " << ec.message();
  out.keep();
  return success();
}

//===----------------------------------------------------------------------===//
// The file of options
//===----------------------------------------------------------------------===//

/// Where options come from that the command line does not give.
static Config fileOptions;
static std::string fileName;

static void printPlace(const ConfigOrigin &place, StringRef severity) {
  llvm::errs() << fileName << ":";
  if (place.line)
    llvm::errs() << place.line << ":" << place.column << ":";
  llvm::errs() << " " << severity << ": ";
}

/// Says which key an error about an option is due to: its text begins with the option's name.
static void noteOrigin(StringRef message) {
  message.consume_front("--");
  for (const ConfigSetting &setting : fileOptions.settings) {
    StringRef rest = message;
    if (rest.consume_front(setting.option) && !rest.empty() && !llvm::isAlnum(rest.front()) && rest.front() != '-') {
      printPlace(setting.origin, "note");
      llvm::errs() << "\"" << setting.origin.key << "\" says --" << setting.option << "="
                   << llvm::join(setting.values, ",") << "\n";
    }
  }
}

/// Sets what the file says and the command line does not. False when an error was printed.
static bool readFileOptions(CommandLine &line) {
  auto report = [&](bool isError, const ConfigOrigin &place, const Twine &message) {
    if (!isError && !line.remarks)
      return;
    printPlace(place, isError ? "error" : "remark");
    llvm::errs() << (place.key.empty() ? "" : "\"" + place.key + "\": ") << message << "\n";
  };
  fileName = line.config;
  std::optional<Config> config = readConfig(line.config, cl::kinds(), report);
  if (!config)
    return false;
  fileOptions.batch = config->batch;
  fileOptions.ranks = config->ranks;
  fileOptions.totalBatch = config->totalBatch;
  auto &registered = cl::getRegisteredOptions();
  for (ConfigSetting &setting : config->settings) {
    cl::Option *option = registered.lookup(setting.option);
    if (!option || option->getNumOccurrences() > 0) {
      report(false, setting.origin, "the command line wins with --" + setting.option);
      continue;
    }
    for (auto [index, value] : llvm::enumerate(setting.values))
      if (option->addOccurrence(index + 1, setting.option, value)) { // has said why
        report(true, setting.origin, "expected a value of --" + setting.option + ", found " + value);
        return false;
      }
    fileOptions.settings.push_back(std::move(setting));
  }
  return true;
}

/// Ranks of a mesh in words; what is no mesh is refused by Shard.
static int64_t countRanks(StringRef mesh) {
  int64_t ranks = 1;
  SmallVector<StringRef> axes, factors;
  mesh.split(axes, ',');
  for (StringRef axis : axes)
    axis.split('=').second.split(factors, 'x');
  for (StringRef factor : factors)
    if (int64_t size = 0; !factor.getAsInteger(10, size) && size > 0 && ranks < (1 << 20))
      ranks *= std::min<int64_t>(size, 1 << 20);
  return ranks;
}

/// What the file says about batches and ranks against the model and the mesh.
static LogicalResult checkFileBatch(ModuleOp imported, CompileOptions &options, bool accumulationGiven) {
  auto report = [](bool, const ConfigOrigin &place, const Twine &message) {
    printPlace(place, "error");
    llvm::errs() << "\"" << place.key << "\": " << message << "\n";
  };
  int64_t batch = 0, accumulation = accumulationGiven ? options.shard.gradAccum : 0;
  for (auto func : imported.getOps<func::FuncOp>())
    for (BlockArgument argument : func.isPublic() ? func.getArguments() : ArrayRef<BlockArgument>())
      if (auto type = dyn_cast<RankedTensorType>(argument.getType());
          type && type.getRank() > 0 && !batch && func.getArgAttr(argument.getArgNumber(), FSDPDialect::batchAttr))
        batch = type.getDimSize(0);
  if (!checkBatch(fileOptions, countRanks(options.shard.mesh), batch, accumulation, report))
    return failure();
  options.shard.gradAccum = std::max<int64_t>(accumulation, 1);
  return success();
}

/// The model planned once more, with gradients that cross ranks at another time.
static FailureOr<ChoiceReport> planOtherwise(StringRef input, CompileOptions options, StringRef sync,
                                             MLIRContext &context) {
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); }); // said before
  OwningOpRef<ModuleOp> module = input == "-" ? nullptr : parseModel(input, &context);
  options.shard.gradSync = sync.str();
  options.timing = false;
  options.dumpDirectory.clear();
  if (!module || failed(runPhases(*module, options, "")) || failed(compileKernels(*module, options, /*code=*/false)))
    return failure();
  return measureChoice(*module, ("--grad-sync=" + sync).str(), /*isTaken=*/false);
}

/// Both ways to accumulate over micro-batches, the one of `planned` among them.
static SmallVector<ChoiceReport> compareAccumulation(ModuleOp planned, StringRef input, const CompileOptions &options,
                                                     MLIRContext &context) {
  if (options.shard.gradAccum < 2)
    return {};
  std::string asked = options.shard.gradSync;
  FailureOr<ChoiceReport> other = planOtherwise(input, options, asked == "last" ? "each" : "last", context);
  if (failed(other))
    return {};
  ChoiceReport own = measureChoice(planned, asked == "last" ? "--grad-sync=last" : "--grad-sync=each", true);
  if (asked == "auto" && other->arenaBytes == own.arenaBytes && other->reducedBytes == own.reducedBytes) {
    own.option = other->option; // the other is what was chosen
    other = planOtherwise(input, options, "each", context);
    if (failed(other))
      return {};
  }
  SmallVector<ChoiceReport> choices{own, *other};
  llvm::sort(choices, [](const ChoiceReport &a, const ChoiceReport &b) { return a.option < b.option; });
  return choices;
}

static int compile(const CommandLine &line) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false); // users know their model, not our IR
  bool remarks = line.remarks;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diag) {
    printDiagnostic(diag, remarks);
    return success();
  });
  OwningOpRef<ModuleOp> module = parseModel(line.input, &context);
  if (!module)
    return badUsage;
  CompileOptions options = fill(line);
  // The linker, which runs in this process, resets the options of the command line.
  const std::string input = line.input, outFile = line.outFile, compileTo = line.compileTo;
  const bool explains = line.explain.getNumOccurrences(), json = line.explain == "json", onlyDtypes = line.explain == "dtypes";
  if (failed(CpuTarget::get(options.targetCpu, module->getLoc())))
    return badUsage;
  if (!line.config.empty())
    options.afterImport = [&, given = line.accum.getNumOccurrences() > 0](ModuleOp imported) {
      return checkFileBatch(imported, options, given);
    };
  SmallVector<DtypeRow> dtypes;
  if (failed(runPhases(*module, options, compileTo, explains ? &dtypes : nullptr)))
    return badUsage;
  if (!compileTo.empty() && compileTo != "codegen") // IR
    return outFile.empty() || succeeded(writeModule(*module, outFile)) ? 0 : 1;
  if (compileTo == "codegen")
    return failed(lowerKernels(*module, options)) || failed(writeModule(*module, outFile)) ? 1 : 0;
  if (!outFile.empty() && failed(verifyRanks(*module)))
    return badUsage;
  FailureOr<Image> image = compileKernels(*module, options, /*code=*/!outFile.empty());
  if (failed(image))
    return 1;
  if (explains)
    onlyDtypes ? writeDtypes(dtypes, /*all=*/true, llvm::outs())
               : explain(*module, llvm::outs(), json, compareAccumulation(*module, input, options, context), dtypes);
  return outFile.empty() || succeeded(writeArtifact(*module, *image, options, outFile)) ? 0 : 1;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  startTool("fsdp-compile");
  std::signal(SIGXFSZ, SIG_IGN); // a file-size limit is an error of the write
  CommandLine line;
  setVersion("fsdp-compile");
  cl::HideUnrelatedOptions({&line.model, &line.sharding, &line.precision, &line.training, &line.output});
  std::string errors;
  llvm::raw_string_ostream errorStream(errors);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &errorStream)) {
    llvm::errs() << errors;
    return badUsage;
  }
  for (StringRef argument : ArrayRef(argv + 1, argc - 1))
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1 && argument != "--explain=")
      return usageError(argument + ": expected a value");
  SmallVector<StringRef> given;
  for (const cl::opt<double> *number : {&line.momentum, &line.beta1, &line.beta2, &line.eps})
    if (number->getNumOccurrences())
      given.push_back(number->ArgStr);
  if (line.configKeys) {
    printConfigKeys(llvm::outs());
    for (const std::string &target : getConfigTargets())
      if (!llvm::is_contained({"batch", "ranks", "total-batch"}, target) && !cl::getRegisteredOptions().count(target))
        llvm::errs() << "fsdp-compile: no such option: --" << target << "\n";
    return 0;
  }
  if (!line.config.empty() && !readFileOptions(line))
    return badUsage;
  if (std::optional<std::string> problem = checkUsage(line))
    return usageError(*problem);
  if (std::optional<std::string> problem = findUnread(line, given))
    return usageError(*problem);
  return compile(line);
}
