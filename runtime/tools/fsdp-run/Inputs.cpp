//===- Inputs.cpp - What feeds the inputs of a run --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     tokens, targets     --text or --data
//     any input           --input NAME=FILE
//     no file at all      random ids and numbers for every input
//
// Beside a file, an input that none feeds would be random: that is an error, unless
// --synthetic names it. The first and the last line of a run say which inputs are random.
//
//===----------------------------------------------------------------------===//

#include "Trainer.h"
#include <algorithm>
#include <set>

using namespace fsdprt;
using ull = unsigned long long;

static std::string join(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : ", ") + word;
  return text;
}

static bool contains(const std::vector<std::string> &words, const std::string &word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Returns what an input holds that no file feeds. Ids without a limit are 0, because others could
/// be out of range.
static const char *describeSynthetic(const fsdprt_input_info &input) {
  if (input.dtype <= FSDPRT_BF16)
    return "random numbers";
  return input.limit ? "random ids" : "0 throughout";
}

/// Refuses names of no input, and inputs that two options feed.
void Trainer::checkInputNames() const {
  std::vector<std::string> known;
  for (const fsdprt_input_info &input : inputs)
    known.push_back(printable(input.name));
  std::set<std::string> fed;
  auto check = [&](const char *option, const std::string &name) {
    auto found = std::find_if(inputs.begin(), inputs.end(),
                              [&](const auto &input) { return name == input.name; });
    if (found == inputs.end())
      badInput("%s: %s has no input '%s'; it has %s", option, options.artifact.c_str(),
               printable(name).c_str(), known.empty() ? "none" : join(known).c_str());
    if (!fed.insert(name).second)
      badInput("%s: input '%s' is named twice, by --input or --synthetic; expected one of them",
               option, printable(name).c_str());
    if ((!options.text.empty() || !options.data.empty()) && found->role != FSDPRT_OTHER)
      badInput("%s: input '%s' comes from %s, which has tokens and targets; leave one of the "
               "options out",
               option, printable(name).c_str(), options.text.empty() ? "--data" : "--text");
  };
  for (const Options::InputSource &input : options.inputs)
    check("--input", input.name);
  for (const std::string &name : options.synthetic)
    check("--synthetic", name);
}

void Trainer::openInputFiles() {
  inputFiles.resize(inputs.size());
  for (const Options::InputSource &source : options.inputs)
    for (size_t i = 0; i < inputs.size(); ++i)
      if (source.name == inputs[i].name)
        inputFiles[i] =
            std::make_unique<SampleFile>(source.path, inputs[i], sampleShapeOf(inputs, i).row);
}

/// Refuses inputs that would be random beside real data, unless they are named in --synthetic.
void Trainer::checkFed() const {
  if (!options.hasData())
    return;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const fsdprt_input_info &input = inputs[i];
    if (batches->isFromFile(i) || contains(options.synthetic, input.name))
      continue;
    std::string name = printable(input.name);
    badInput("input '%s' would be %s beside the data that other inputs have; feed it with --input "
             "%s=FILE, or say "
             "that it is meant with --synthetic=%s",
             name.c_str(), describeSynthetic(input), name.c_str(), name.c_str());
  }
}

void Trainer::openInputs() {
  uint64_t limit = 0;
  fsdprt_input_info input = {};
  for (uint64_t i = 0; input.struct_size = sizeof input,
                fsdprt_artifact_get_input(artifact, "step", i, &input) == FSDPRT_OK;
       ++i) {
    inputs.push_back(input);
    bool ids = input.role != FSDPRT_OTHER && input.limit != 0;
    limit = ids && limit ? std::min(limit, input.limit) : ids ? input.limit : limit;
    if (input.role == FSDPRT_TOKENS && !tokensPerStep)
      tokensPerStep = input.bytes /
                      (input.dtype == FSDPRT_I64   ? 8
                       : input.dtype == FSDPRT_I32 ? 4
                                                   : 2) *
                      info.ranks;
  }
  if (info.tokens_per_rank)
    tokensPerStep = info.tokens_per_rank * info.ranks;
  checkInputNames();
  if (!options.text.empty())
    tokens = std::make_unique<TokenFile>(options.text, TokenType::u8, limit);
  else if (!options.data.empty())
    tokens = std::make_unique<TokenFile>(options.data, options.tokenType, limit);
  openInputFiles();
  BatchOptions batch;
  batch.seed = options.seed.value_or(info.seed);
  batch.overfit = options.overfit;
  batch.extraIds = options.extraIds;
  batch.validationFraction = options.overfit ? 0 : options.validationFraction;
  std::vector<const SampleFile *> files;
  for (const auto &file : inputFiles)
    files.push_back(file.get());
  batches = std::make_unique<Batches>(inputs, tokens.get(), info.ranks, batch, files);
  checkFed();
  bool canValidate = options.hasData() && options.onlyKinds.empty() &&
                     fsdprt_artifact_has_program(artifact, "eval");
  uint64_t whole = canValidate ? batches->validationBatches() : 0;
  validationBatches =
      std::min(whole, options.validationBatches.value_or(std::min<uint64_t>(whole, 20)));
  if ((options.validationBatches.value_or(0) > 0 || options.validateEvery) &&
      validationBatches == 0)
    badInput("nothing to validate on: %s", whyNothingToValidate().c_str());
}

std::string Trainer::whyNothingToValidate() const {
  if (!fsdprt_artifact_has_program(artifact, "eval"))
    return format("%s has no program 'eval'", options.artifact.c_str());
  if (!options.onlyKinds.empty() || options.validationBatches == uint64_t(0))
    return "the options say so";
  if (!tokens)
    return format("--val-fraction=%g of %llu samples is none", options.validationFraction,
                  (ull)(batches->trainRows() + batches->validationRows()));
  return format("--val-fraction=%g of %llu tokens is less than a sample and its targets",
                options.validationFraction, (ull)tokens->size());
}

/// Returns `text` if all inputs are random, "`text` for a, b" if some are, or an empty text.
std::string Trainer::describeRandom(const char *text) const {
  std::vector<std::string> random;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!batches->isFromFile(i))
      random.push_back(printable(inputs[i].name));
  if (random.empty())
    return "";
  return random.size() == inputs.size() ? text : text + (" for " + join(random));
}

/// Says how many parameters are trained, and what else the model has.
void Trainer::announceParameters() {
  uint64_t trained = 0, frozen = 0, elements = 0;
  fsdprt_param_info param = {};
  for (uint64_t i = 0; param.struct_size = sizeof param,
                fsdprt_artifact_get_param(artifact, i, &param) == FSDPRT_OK;
       ++i) {
    ++(param.trainable ? trained : frozen);
    elements += param.trainable ? param.elements : 0;
  }
  char a[32], b[32], c[32], d[32];
  printer.line("parameters: %s trained (%s elements), %s frozen, %s constant", grouped(trained, a),
               grouped(elements, b), grouped(frozen, c), grouped(info.constants, d));
}

/// Says which files of rows there are, and how rows are drawn.
void Trainer::announceRows(const std::string &windows) {
  char a[32], b[32], c[32];
  std::vector<std::string> drawn;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputFiles[i])
      continue;
    printer.line("input %s: %s sample%s in %s%s", printable(inputs[i].name).c_str(),
                 grouped(inputFiles[i]->getRows(), a), inputFiles[i]->getRows() == 1 ? "" : "s",
                 inputFiles[i]->getPath().c_str(),
                 batches->isFixed(i) ? ", the same at every step" : "");
    if (!batches->isFixed(i))
      drawn.push_back(printable(inputs[i].name));
  }
  if (drawn.empty())
    return;
  printer.line("samples: %s to train on, %s to validate; sample i is row i of %s",
               grouped(batches->trainRows(), b), grouped(batches->validationRows(), c),
               join(drawn).c_str());
  if (!windows.empty())
    printer.line("note: the window of %s that a step draws and the row of %s are unrelated",
                 windows.c_str(), join(drawn).c_str());
}

void Trainer::announceInputs() {
  char a[32], b[32], c[32];
  const std::string &file = options.text.empty() ? options.data : options.text;
  if (tokens)
    printer.line("tokens: %s %s in %s: %s to train on, %s to validate", grouped(tokens->size(), a),
                 tokens->typeName(), file.c_str(), grouped(batches->trainTokens(), b),
                 grouped(batches->validationTokens(), c));
  announceRows(file);
  if (options.hasData() && !options.overfit && validationBatches == 0)
    printer.line("note: there will be no validation: %s", whyNothingToValidate().c_str());
  if (std::string random = describeRandom("inputs: random"); !random.empty())
    printer.line("%s%s", random.c_str(), options.overfit ? ", the same at every step" : "");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!batches->isFromFile(i) && describeSynthetic(inputs[i]) == std::string("0 throughout"))
      printer.line("note: input '%s' is 0 throughout, since the model gives its ids no limit",
                   printable(inputs[i].name).c_str());
}
