//===- CommandLine.cpp - The command line of fsdp-compile ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "AlsoMesh.h"
#include "fsdp/Analysis/TargetInfo.h"
#include "fsdp/Pipelines/Compiler.h"
#include "fsdp/Plan/Checkpointing.h"
#include "fsdp/Tools/ToolMain.h"
#include "fsdpcommon/ShortText.h"
#include "fsdpcommon/Signature.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include <cstdlib>

using namespace mlir;
using namespace mlir::fsdp;
namespace cl = llvm::cl;

static constexpr const char *overview =
    R"(fsdp-compile: compile the fully sharded training step of a model

Reads a loss function as MLIR (linalg on tensors, from fsdp-modelgen or an exporter) and writes the
training step, its kernels and its memory plan to one file, which fsdp-run executes.

EXAMPLES
  fsdp-compile gpt.mlir --mesh=shard=2 -o gpt.fsdp --explain      train with: fsdp-run gpt.fsdp
  fsdp-compile gpt2.mlir --attach-loss=cross_entropy --buffer=0=causal -o gpt2.fsdp   logits, a mask
  fsdp-compile gpt.mlir --config=config.json -o gpt.fsdp          options in a file
  fsdp-compile gpt.mlir --mesh=shard=4 --also-mesh=shard=3,shard=2 -o gpt.fsdp   also gpt.shard3.fsdp
  fsdp-compile gpt.mlir --mesh=shard=2 --param-dtype=bf16 --target=sm_80 -o gpt.fsdp     for GPUs
  fsdp-compile gpt.mlir --mesh=shard=2 --compile-to=differentiate -o -     the IR after a stage
  fsdp-compile gpt.mlir --search=8 --cluster=8xH100 --memory-limit=20G -o best.json   the fastest plan

)";

static constexpr const char *overviewEnd =
    "All options: --help-hidden and docs/reference/options.md.\n"
    "How to mark a model: docs/explanation/guide/models-and-derivatives.md.\n"
    "Exit codes: 0 compiled, 1 a kernel could not be compiled, the plan is above --memory-limit, "
    "or "
    "the\noutput could not be written, 2 bad usage or model.\n";

static constexpr const char *modelHelp = R"(THE MODEL
  One public function of static shapes that returns the loss (or logits, with --attach-loss).
  Attributes of its arguments:
    fsdp.param = "h.0.weight"   a parameter; without any: --params, --params-file, or all floats
                                before the first integers
    fsdp.init = #fsdp.init<normal, 0.0, 0.02>   how it starts (constant, normal, uniform); inferred
                                from its uses
    fsdp.frozen                 it is not trained
    fsdp.unit = "name"          the unit that it belongs to
    fsdp.batch = "tokens"       a batch input; fsdp-run feeds text to tokens and targets
    fsdp.limit = 256 : i64      its ids are in [0, 256): checked before each step; inferred from
                                lookups

  --params-file names what cannot be marked, one entry per argument or constant:
    [{"index": 3, "rename": "h.0.weight", "init": {"kind": "normal", "a": 0, "b": 0.02},
      "frozen": true}, ...]
  "index" counts the arguments from 0; "name" (of its location) or "resource" (of a constant) point
  as well.

  --buffer=INDEX=... counts the arguments from 0 as they are in the file; where none has that place,
  the tables among the constants in order of appearance. NAME is the argument's location, fsdp.batch,
  or the constant's resource. CONTENT: causal (a mask), zeros, ones, a FILE of raw little-endian
  values, or keep (a constant stays as it is).

  Patterns of --freeze, --ignore-params and --transformer-layer name parameters or what names begin
  with, * being any part of one component: h.0 is all of layer 0, *.bias every bias, h.*.attn the
  attention of every layer.

  --wrap=FILE.json lists units; the first match wins. A pattern is a unit per name that it stands for
  (["h.0", "h.1"]: two layers; ["h.0.*"]: each module of layer 0); {"unit": "first", "params":
  ["wte.*", "h.0.*"]} puts all into one.

  --mesh=replicate=2,shard=4 has 8 ranks. A size may have factors, outermost first: shard=2x4.
  --also-mesh=shard=6,replicate=2,shard=2,tensor=4 writes two more artifacts: the axes of a mesh are
  in the order replicate, shard, tensor, and each mesh has a shard or a tensor.

)";

bool fsdp::printedHelp(ArrayRef<char *> arguments) {
  for (StringRef argument : arguments.drop_front()) {
    StringRef name = argument.ltrim('-');
    bool all = name == "help-hidden";
    if (!argument.starts_with("-") || !(all || name == "help" || name == "h"))
      continue;
    llvm::outs() << overview << (all ? modelHelp : "");
    printOptionHelp(llvm::outs(), all);
    llvm::outs() << "\n" << overviewEnd;
    return true;
  }
  return false;
}

namespace {
/// Declares the rows of the table of options as options of llvm::cl. The destructor unregisters
/// these options, because the linker, which runs in this process, resets all registered options.
class ClOptions {
public:
  cl::opt<std::string> input{cl::Positional, cl::init("-")};
  cl::opt<bool> listsKeys{"config-keys", cl::Hidden}, listsOptions{"options-page", cl::Hidden};
  /// Tests compile IR with planted faults, which an earlier stage would refuse.
  cl::opt<std::string> compileFrom{"compile-from", cl::Hidden};

  ClOptions() {
    for (const OptionRow &row : getOptionRows()) {
      auto expects = row.alone ? cl::ValueOptional : cl::ValueRequired;
      if (row.kind == OptionKind::list)
        options.push_back(std::make_unique<cl::list<std::string>>(row.name, expects));
      else
        options.push_back(std::make_unique<cl::opt<std::string>>(row.name, expects));
    }
  }

  ~ClOptions() {
    for (cl::Option *option :
         std::initializer_list<cl::Option *>{&input, &listsKeys, &listsOptions, &compileFrom})
      option->removeArgument();
    for (auto &option : options)
      option->removeArgument();
  }

  /// Sets those fields of `options` for which the command line contains an option. Returns an error
  /// if a value is not valid, and otherwise nothing.
  std::optional<std::string> read(StepOptions &options) const {
    for (auto [row, option] : llvm::zip_equal(getOptionRows(), this->options)) {
      if (!option->getNumOccurrences())
        continue;
      std::vector<std::string> values;
      if (row.kind == OptionKind::list)
        values = *static_cast<cl::list<std::string> *>(option.get());
      else
        values = {static_cast<cl::opt<std::string> *>(option.get())->getValue()};
      for (StringRef value : values)
        if (auto problem =
                setOption(options, row.name, value.empty() && row.alone ? *row.alone : value,
                          OptionOrigin::CommandLine))
          return problem;
    }
    return std::nullopt;
  }

private:
  std::vector<std::unique_ptr<cl::Option>> options;
};
} // namespace

void fsdp::printUsageError(const Twine &message, const FileOptions &file) {
  llvm::errs() << "fsdp-compile: " << fsdpcommon::printableMessage(message.str()) << "\n";
  file.noteOrigin(message.str());
}

std::optional<CommandLine> fsdp::readCommandLine(int argc, char **argv) {
  ClOptions parsed;
  ArrayRef<char *> arguments(argv + 1, argc - 1);
  std::string errors;
  llvm::raw_string_ostream errorStream(errors);
  if (!cl::ParseCommandLineOptions(argc, argv, "", &errorStream)) {
    llvm::errs() << fsdpcommon::printableMessage(errors);
    return std::nullopt;
  }
  auto fail = [](const Twine &message, const FileOptions &file = {}) {
    printUsageError(message, file);
    return std::nullopt;
  };
  CommandLine line;
  line.compileFrom = parsed.compileFrom;
  line.listsKeys = parsed.listsKeys;
  line.listsOptions = parsed.listsOptions;
  if (std::optional<std::string> problem = findRepeatedOption(arguments))
    return fail(*problem);
  for (StringRef argument : arguments)
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1 &&
        argument != "--explain=")
      return fail(argument + ": expected a value");
  StepOptions &options = line.options;
  options.driver.input = parsed.input;
  options.driver.compiler = "fsdp-compile " FSDP_VERSION " (LLVM " LLVM_VERSION_STRING ")";
  if (std::optional<std::string> problem = parsed.read(options))
    return fail(*problem);
  std::optional<std::string> cache;
  if (options.isGiven("kernel-cache"))
    cache = options.codegen.kernelCache;
  options.codegen.kernelCache = chooseKernelCache(
      cache, [](const cl::Option &option) { return findOption(option.ArgStr) != nullptr; });
  if (line.listsKeys || line.listsOptions)
    return line;
  if (!options.driver.config.empty() && !line.file.read(options))
    return std::nullopt;
  inferOptions(options);
  if (!line.compileFrom.empty() &&
      !llvm::is_contained({"shard", "differentiate", "update", "fuse"}, line.compileFrom))
    return fail("--compile-from=" + line.compileFrom +
                ": expected shard, differentiate, update or fuse");
  std::optional<std::string> problem = checkValues(options);
  if (!problem)
    problem = findUnread(options);
  if (!problem)
    problem = checkUsage(options);
  if (problem)
    return fail(*problem, line.file);
  return line;
}

/// Returns the names of all stages as the text "import, shard, ..., plan or codegen".
static std::string listStages() {
  std::string names;
  for (const Phase &phase : getPhases())
    if (phase.mnemonic != "package")
      names += (names.empty()                 ? ""
                : phase.mnemonic == "codegen" ? " or "
                                              : ", ") +
               phase.mnemonic.str();
  return names;
}

/// Returns an error about an option that --search does not support, or nothing.
static std::optional<std::string> checkSearch(const StepOptions &options) {
  const DriverOptions &driver = options.driver;
  for (auto [isGiven, name] : std::initializer_list<std::pair<bool, StringRef>>{
           {driver.explain != ExplainKind::None, "--explain"},
           {!driver.report.empty(), "--report"},
           {!driver.whatIf.empty(), "--what-if"},
           {driver.emit != EmitKind::None, "--emit"},
           {!driver.compileTo.empty(), "--compile-to"},
           {!driver.alsoMesh.empty(), "--also-mesh"},
           {!driver.signKey.empty(), "--sign-key"},
           {driver.noCode, "--no-code"},
           {!driver.dumpPhasesTo.empty(), "--dump-phases-to"},
           {driver.timing, "--timing"}})
    if (isGiven)
      return "--search prints a table, and -o writes the best plan's options: remove " +
             name.str() + ", or give it when you compile with --config=OUT.json";
  if (options.isGiven("overlap") && !options.plan.overlap)
    return "--search compares plans with --overlap: remove --overlap=false";
  if (StringRef(driver.output).ends_with(".fsdp"))
    return "-o " + driver.output +
           " with --search: expected a file for --config, such as best.json";
  if (!driver.output.empty() && options.plan.checkpointing == "auto")
    return "--search: the file of -o cannot set --activation-checkpointing=auto, because \"auto\" "
           "leaves an option of --config to its default: remove one of the two options";
  return std::nullopt;
}

/// Returns an error if options that concern the output contradict each other, and otherwise
/// nothing.
static std::optional<std::string> checkOutputs(const StepOptions &options) {
  const DriverOptions &driver = options.driver;
  bool explains = driver.explain != ExplainKind::None, reports = !driver.report.empty(),
       asks = !driver.whatIf.empty(), emits = driver.emit != EmitKind::None,
       writes = !driver.output.empty(), stops = !driver.compileTo.empty(),
       searches = driver.search > 0;
  if (searches)
    if (std::optional<std::string> problem = checkSearch(options))
      return problem;
  if (emits && (writes || stops || explains || reports || asks))
    return "--emit prints kernels only: remove -o, --compile-to, --explain, "
           "--report and --what-if";
  if (asks && (writes || stops || reports))
    return "--what-if writes no plan: remove -o, --report and --compile-to";
  if (!writes && (!(explains || reports || asks || emits || searches) || stops))
    return "no output: give -o OUT.fsdp, or --explain or --report for the plan alone" +
           std::string(driver.input == "-"
                           ? "; the model comes from stdin when no IN.mlir is given, see --help"
                           : "");
  if (driver.output == "-" && explains)
    return "-o - and --explain both write to stdout: give -o OUT.fsdp";
  if (reports && driver.report == driver.output)
    return "--report=" + driver.report + ": expected another file than that of -o";
  for (StringRef path : {driver.report, driver.output})
    if (!path.empty())
      if (std::optional<std::string> problem = whyNotWritable(path, driver.input))
        return problem;
  if (!driver.signKey.empty())
    if (std::string problem = fsdpcommon::checkPrivateKey(driver.signKey); !problem.empty())
      return "--sign-key=" + problem;
  return std::nullopt;
}

std::optional<std::string> fsdp::checkUsage(const StepOptions &options) {
  StringRef last = options.driver.compileTo;
  if (!last.empty() && (last == "package" || llvm::none_of(getPhases(), [&](const Phase &phase) {
                          return phase.mnemonic == last;
                        })))
    return "--compile-to=" + last.str() + ": expected " + listStages();
  if (std::optional<std::string> problem = findUnknownTarget(options))
    return problem;
  if (!options.codegen.isForCpu() && last == "codegen")
    return "--compile-to=codegen contradicts --target=" + options.codegen.target +
           ": it prints kernels for a CPU; to print kernels for a GPU, give --emit=kernel-mlir";
  const std::string &checkpointing = options.plan.checkpointing;
  if (std::string problem; !CheckpointingPolicy::parse(checkpointing, problem))
    return "--activation-checkpointing=" + checkpointing + ": " + problem;
  if (std::optional<std::string> problem = checkOutputs(options))
    return problem;
  return checkAlsoMesh(options);
}
