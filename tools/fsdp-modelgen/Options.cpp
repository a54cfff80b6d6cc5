//===- Options.cpp - The command line of fsdp-modelgen ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// At first, a configuration contains the defaults of the family, or the content of config.json.
// Then the options replace fields, and `ModelConfig::resolve` checks the configuration.
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "HuggingFace.h"
#include "fsdp/Tools/ToolMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::modelgen;
namespace cl = llvm::cl;

static constexpr llvm::StringLiteral overview =
    R"(fsdp-modelgen: write the loss function of a transformer as MLIR

  The function takes the parameters (under their Hugging Face names), token ids and
  targets, and returns the mean cross-entropy. fsdp-compile compiles a training step from it.

  Defaults come from a family or a config.json; options override single sizes:

    fsdp-modelgen gpt2 -o gpt2.mlir                          GPT-2, 124M parameters
    fsdp-modelgen gpt2 --layers=4 --hidden=128 --heads=4 --vocab=256 --seq=128 --batch=8 -o small.mlir
    fsdp-modelgen llama --dtype=bf16 -o llama.mlir           Llama, 7B parameters
    fsdp-modelgen llama --layers=2 --hidden=64 --heads=4 --kv-heads=2 --vocab=256 --seq=32 -o tiny.mlir
    fsdp-modelgen --hf-config=config.json --seq=512 -o model.mlir

  Exit codes: 0 written, 1 writing failed, 2 bad options, config or place to write.
)";

namespace {
/// Contains an option for each field of the configuration. A field of the configuration is changed
/// only if its option is given.
struct CommandLine {
  using Int = cl::opt<int64_t>;
  using Real = cl::opt<double>;
  using Flag = cl::opt<bool>;

  cl::OptionCategory model{"Model"}, batch{"Batch, numbers, output"};

  cl::opt<std::string> family{cl::Positional, cl::desc("[gpt2|llama]"), cl::cat(model)};
  cl::opt<std::string> hfConfig{
      "hf-config", cl::value_desc("config.json"), cl::cat(model),
      cl::desc("take the model from a Hugging Face config (gpt2, llama, mistral, qwen2)")};
  cl::list<std::string> ignoredKeys{"ignore-key", cl::value_desc("key"), cl::CommaSeparated,
                                    cl::cat(model),
                                    cl::desc("accept this unknown key of config.json")};
  Int layers{"layers", cl::value_desc("n"), cl::desc("transformer blocks (gpt2: 12, llama: 32)"),
             cl::cat(model)};
  Int hidden{"hidden", cl::value_desc("n"),
             cl::desc("width of the residual stream (gpt2: 768, llama: 4096)"), cl::cat(model)};
  Int heads{"heads", cl::value_desc("n"), cl::desc("query heads (gpt2: 12, llama: 32)"),
            cl::cat(model)};
  Int kvHeads{"kv-heads", cl::value_desc("n"), cl::cat(model),
              cl::desc("key/value heads, a divisor of heads (default: heads; llama)")};
  Int headDim{"head-dim", cl::value_desc("n"), cl::cat(model),
              cl::desc("width of a head (default: hidden / heads; llama)")};
  Int intermediate{"intermediate", cl::value_desc("n"), cl::cat(model),
                   cl::desc("width inside the MLP (default: 4·hidden; llama: 8/3·hidden, up to "
                            "a multiple of 256)")};
  Int vocab{"vocab", cl::value_desc("n"), cl::desc("vocabulary size (gpt2: 50257, llama: 32000)"),
            cl::cat(model)};
  Int positions{"positions", cl::value_desc("n"), cl::cat(model),
                cl::desc("learned positions (gpt2; default: seq when --seq is given, else 1024)")};
  Flag tie{"tie-embeddings", cl::desc("output head shares the embedding (default: gpt2)"),
           cl::cat(model)};
  Flag noTie{"no-tie", cl::desc("separate parameter for the output head (default: llama)"),
             cl::cat(model)};
  Flag qkvBias{"qkv-bias", cl::desc("biases of q, k and v (llama)"), cl::cat(model)};
  Flag attentionBias{"attention-bias", cl::desc("biases of q, k, v and o (llama)"), cl::cat(model)};
  Flag mlpBias{"mlp-bias", cl::desc("biases of the MLP (llama)"), cl::cat(model)};
  Real epsilon{"eps", cl::value_desc("x"),
               cl::desc("added to the variance (gpt2: 1e-5, llama: 1e-6)"), cl::cat(model)};
  Real ropeTheta{"rope-theta", cl::value_desc("x"),
                 cl::desc("base of the rotary frequencies (llama: 10000)"), cl::cat(model)};
  Real initRange{"init-range", cl::value_desc("x"),
                 cl::desc("standard deviation of initial weights (0.02)"), cl::cat(model)};

  Real dropout{"dropout", cl::value_desc("p"), cl::cat(model),
               cl::desc("probability that training drops an element of attention weights and "
                        "residuals (default 0)")};

  Int seq{"seq", cl::value_desc("n"),
          cl::desc("tokens per sequence (default: positions, at most 2048)"), cl::cat(batch)};
  Int batchSize{"batch", cl::value_desc("n"), cl::desc("sequences per rank and step (default: 1)"),
                cl::cat(batch)};
  cl::opt<DType> dtype{
      "dtype", cl::desc("type of parameters and activations (default: f32)"), cl::cat(batch),
      cl::init(DType::F32),
      cl::values(clEnumValN(DType::F32, "f32", "everything in f32"),
                 clEnumValN(DType::F64, "f64", "everything in f64, for checks of gradients"),
                 clEnumValN(DType::BF16, "bf16", "bf16; sums, statistics, softmax and loss in f32"),
                 clEnumValN(DType::F16, "f16", "f16; sums, statistics, softmax and loss in f32"))};
  Int seed{"seed", cl::value_desc("n"), cl::cat(batch),
           cl::desc("seed of the initial values if fsdp-run gives none (attribute fsdp.seed)")};

  cl::opt<std::string> output{"o", cl::value_desc("file"),
                              cl::desc("output file; - is stdout (default)"), cl::init("-"),
                              cl::cat(batch)};

  std::vector<std::string> errors, notes;

  std::optional<ModelConfig> configure();

private:
  std::optional<Family> chosenFamily();
  void overrideSizes(ModelConfig &config);
  void overrideFlags(ModelConfig &config);
  void refuseOptionsOfOtherFamily(Family family);
};
} // namespace

std::optional<Family> CommandLine::chosenFamily() {
  for (Family known : {Family::GPT2, Family::Llama})
    if (family == nameOf(known))
      return known;
  if (!family.empty())
    errors.push_back("unknown family '" + family + "'; expected gpt2 or llama");
  return std::nullopt;
}

/// If the option is given, sets `target` to the value of the option.
template <typename Target, typename Option>
static void overrideWith(Target &target, const Option &option) {
  if (option.getNumOccurrences())
    target = option.getValue();
}

void CommandLine::overrideSizes(ModelConfig &config) {
  bool reshaped = hidden.getNumOccurrences() || heads.getNumOccurrences();
  if (reshaped) // the following fields are derived again from the new sizes
    config.headDim = std::nullopt;
  if (heads.getNumOccurrences())
    config.kvHeads = std::nullopt;
  if (hidden.getNumOccurrences())
    config.intermediate = std::nullopt;
  if (seq.getNumOccurrences() && hfConfig.empty())
    config.positions = std::max<int64_t>(1, seq);
  overrideWith(config.layers, layers);
  overrideWith(config.hidden, hidden);
  overrideWith(config.heads, heads);
  overrideWith(config.kvHeads, kvHeads);
  overrideWith(config.headDim, headDim);
  overrideWith(config.intermediate, intermediate);
  overrideWith(config.vocab, vocab);
  overrideWith(config.positions, positions);
  overrideWith(config.seq, seq);
  overrideWith(config.batch, batchSize);
  overrideWith(config.dtype, dtype);
  overrideWith(config.seed, seed);
  overrideWith(config.epsilon, epsilon);
  overrideWith(config.ropeTheta, ropeTheta);
  overrideWith(config.initRange, initRange);
  overrideWith(config.attentionDropout, dropout);
  overrideWith(config.residualDropout, dropout);
  if (config.family == Family::GPT2)
    overrideWith(config.embeddingDropout, dropout);
}

void CommandLine::overrideFlags(ModelConfig &config) {
  if (tie && noTie)
    errors.push_back("--tie-embeddings and --no-tie contradict each other; give one");
  config.tied = tie || (config.tied && !noTie);
  config.qkvBias |= qkvBias || attentionBias;
  config.outBias |= attentionBias;
  config.mlpBias |= mlpBias;
}

void CommandLine::refuseOptionsOfOtherFamily(Family family) {
  if (family == Family::Llama) {
    if (positions.getNumOccurrences())
      errors.push_back("--positions applies to gpt2 only: rotary positions are not learned");
    return;
  }
  for (const cl::Option *option : std::initializer_list<const cl::Option *>{
           &kvHeads, &headDim, &qkvBias, &attentionBias, &mlpBias, &ropeTheta})
    if (option->getNumOccurrences())
      errors.push_back("--" + option->ArgStr.str() + " applies to llama only");
}

std::optional<ModelConfig> CommandLine::configure() {
  std::optional<Family> chosen = chosenFamily();
  if (!errors.empty())
    return std::nullopt;
  if (!chosen && hfConfig.empty()) {
    errors.push_back("expected a family (gpt2 or llama) or --hf-config=config.json; see --help");
    return std::nullopt;
  }
  ModelConfig config;
  if (!hfConfig.empty()) {
    HuggingFaceResult read = readHuggingFaceConfig(hfConfig, ignoredKeys);
    errors = read.errors;
    notes = read.notes;
    config = read.config;
    if (errors.empty() && chosen && *chosen != config.family)
      errors.push_back("config.json holds a " + std::string(nameOf(config.family)) +
                       " model, not '" + family + "'; leave one of them out");
  } else {
    config = ModelConfig::defaults(*chosen);
    if (!ignoredKeys.empty())
      errors.push_back("--ignore-key has no effect without --hf-config");
  }
  if (!errors.empty())
    return std::nullopt;
  overrideSizes(config);
  overrideFlags(config);
  refuseOptionsOfOtherFamily(config.family);
  if (errors.empty())
    errors = config.resolve();
  if (!errors.empty())
    return std::nullopt;
  return config;
}

std::optional<Request> modelgen::parseCommandLine(int argc, char **argv) {
  cl::ResetCommandLineParser(); // this call unregisters the options of LLVM
  CommandLine line;
  cl::SetVersionPrinter([](raw_ostream &os) { os << "fsdp-modelgen " FSDP_VERSION "\n"; });
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs()))
    return std::nullopt;
  if (auto problem = findRepeatedOption(llvm::ArrayRef(argv, argc).drop_front())) {
    llvm::errs() << "fsdp-modelgen: error: " << *problem << "\n";
    return std::nullopt;
  }
  std::optional<ModelConfig> config = line.configure();
  for (const std::string &note : line.notes)
    llvm::errs() << "fsdp-modelgen: note: " << note << "\n";
  for (const std::string &error : line.errors)
    llvm::errs() << "fsdp-modelgen: error: " << error << "\n";
  if (!config)
    return std::nullopt;
  return Request{*config, line.output, line.hfConfig};
}
