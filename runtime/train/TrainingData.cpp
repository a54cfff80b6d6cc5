//===- TrainingData.cpp - Inputs of a training run --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements TrainingData.h. The inputs of the reference program are the batches of all ranks.
//
//===----------------------------------------------------------------------===//

#include "train/TrainingData.h"
#include "core/NumberText.h"
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

/// Describes the values of an input for which no file is given. If the model sets no limit for the
/// ids of an input, all ids of this input are 0, because other ids could be out of range.
static const char *describeSynthetic(const fsdprt_input_info &input) {
  if (input.dtype <= FSDPRT_BF16)
    return "random numbers";
  return input.limit ? "random ids" : "0 throughout";
}

/// Throws Error if an option names an unknown input, or if two options name the same input.
void TrainingData::checkNames() const {
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
      badInput("%s: input '%s' comes from %s, which has tokens and targets; omit one of the "
               "options",
               option, printable(name).c_str(), options.text.empty() ? "--data" : "--text");
  };
  for (const TrainingOptions::InputSource &input : options.inputs)
    check("--input", input.name);
  for (const std::string &name : options.synthetic)
    check("--synthetic", name);
}

void TrainingData::openFiles() {
  files.resize(inputs.size());
  for (const TrainingOptions::InputSource &source : options.inputs)
    for (size_t i = 0; i < inputs.size(); ++i)
      if (source.name == inputs[i].name)
        files[i] =
            std::make_unique<SampleFile>(source.path, inputs[i], sampleShapeOf(inputs, i).row);
}

/// Throws Error if some inputs have data and another input has neither data nor --synthetic.
void TrainingData::checkFed() const {
  if (!options.hasData())
    return;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const fsdprt_input_info &input = inputs[i];
    if (batches->isFromFile(i) || contains(options.synthetic, input.name))
      continue;
    std::string name = printable(input.name);
    badInput(
        "input '%s' would be %s, although other inputs have data; feed it with --input %s=FILE, "
        "or allow this with --synthetic=%s",
        name.c_str(), describeSynthetic(input), name.c_str(), name.c_str());
  }
}

/// Makes a list of the inputs of the program 'step'. Sets `limit` to the least limit for ids among
/// the inputs that are tokens or targets.
void TrainingData::listInputs(uint64_t &limit) {
  fsdprt_input_info input = {};
  for (uint64_t i = 0; input.struct_size = sizeof input,
                fsdprt_artifact_get_input(run.artifact, "step", i, &input) == FSDPRT_OK;
       ++i) {
    inputs.push_back(input);
    bool ids = input.role != FSDPRT_OTHER && input.limit != 0;
    limit = ids && limit ? std::min(limit, input.limit) : ids ? input.limit : limit;
    if (input.role == FSDPRT_TOKENS && !stepTokens)
      stepTokens = input.bytes /
                   (input.dtype == FSDPRT_I64   ? 8
                    : input.dtype == FSDPRT_I32 ? 4
                                                : 2) *
                   run.info.data_ranks;
  }
  if (run.info.tokens_per_rank)
    stepTokens = run.info.tokens_per_rank * run.info.data_ranks;
}

TrainingData::TrainingData(const TrainingRun &run) : run(run), options(run.options) {
  uint64_t limit = 0;
  listInputs(limit);
  checkNames();
  if (!options.text.empty())
    tokens = std::make_unique<TokenFile>(options.text, TokenType::u8, limit);
  else if (!options.data.empty())
    tokens = std::make_unique<TokenFile>(options.data, options.tokenType, limit);
  openFiles();
  BatchOptions batch;
  batch.seed = options.seed.value_or(run.info.seed);
  batch.overfit = options.overfit;
  batch.extraIds = options.extraIds;
  batch.validationFraction = options.overfit ? 0 : options.validationFraction;
  std::vector<const SampleFile *> rows;
  for (const auto &file : files)
    rows.push_back(file.get());
  batches = std::make_unique<Batches>(inputs, tokens.get(), run.info.data_ranks, batch, rows);
  checkFed();
  planValidation();
}

void TrainingData::planValidation() {
  bool canValidate = options.hasData() && options.onlyKinds.empty() &&
                     fsdprt_artifact_has_program(run.artifact, "eval");
  uint64_t whole = canValidate ? batches->validationBatches() : 0;
  batchesToValidate =
      std::min(whole, options.validationBatches.value_or(std::min<uint64_t>(whole, 20)));
  if ((options.validationBatches.value_or(0) > 0 || options.validateEvery) &&
      batchesToValidate == 0)
    badInput("nothing to validate on: %s", whyNothingToValidate().c_str());
}

uint64_t TrainingData::samples() const {
  return tokens ? tokens->size() : batches->trainRows() + batches->validationRows();
}

std::string TrainingData::whyNothingToValidate() const {
  if (!fsdprt_artifact_has_program(run.artifact, "eval"))
    return format("%s has no program 'eval'", options.artifact.c_str());
  if (!options.onlyKinds.empty() || options.validationBatches == uint64_t(0))
    return "the options exclude it";
  if (!tokens)
    return format("--val-fraction=%g of %llu samples is none", options.validationFraction,
                  (ull)(batches->trainRows() + batches->validationRows()));
  return format("--val-fraction=%g of %llu tokens is less than a sample and its targets",
                options.validationFraction, (ull)tokens->size());
}

std::string TrainingData::describeRandom(const char *text) const {
  std::vector<std::string> random;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!batches->isFromFile(i))
      random.push_back(printable(inputs[i].name));
  if (random.empty())
    return "";
  return random.size() == inputs.size() ? text : text + (" for " + join(random));
}

/// Reports the files of --input, and describes how samples are drawn from these files.
void TrainingData::announceRows(const std::string &windows) const {
  char a[32], b[32], c[32];
  std::vector<std::string> drawn;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!files[i])
      continue;
    run.reporter.line("input %s: %s sample%s in %s%s", printable(inputs[i].name).c_str(),
                      grouped(files[i]->getRows(), a), files[i]->getRows() == 1 ? "" : "s",
                      files[i]->getPath().c_str(),
                      batches->isFixed(i) ? ", the same at every step" : "");
    if (!batches->isFixed(i))
      drawn.push_back(printable(inputs[i].name));
  }
  if (drawn.empty())
    return;
  run.reporter.line("samples: %s to train on, %s to validate; sample i is row i of %s",
                    grouped(batches->trainRows(), b), grouped(batches->validationRows(), c),
                    join(drawn).c_str());
  if (!windows.empty())
    run.reporter.line("note: the window of %s that a step draws and the row of %s are unrelated",
                      windows.c_str(), join(drawn).c_str());
}

void TrainingData::announce() const {
  char a[32], b[32], c[32];
  const std::string &file = options.text.empty() ? options.data : options.text;
  if (tokens)
    run.reporter.line("tokens: %s %s in %s: %s to train on, %s to validate",
                      grouped(tokens->size(), a), tokens->typeName(), file.c_str(),
                      grouped(batches->trainTokens(), b), grouped(batches->validationTokens(), c));
  announceRows(file);
  if (options.hasData() && !options.overfit && batchesToValidate == 0)
    run.reporter.line("note: there will be no validation: %s", whyNothingToValidate().c_str());
  if (std::string random = describeRandom("inputs: random"); !random.empty())
    run.reporter.line("%s%s", random.c_str(), options.overfit ? ", the same at every step" : "");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!batches->isFromFile(i) && describeSynthetic(inputs[i]) == std::string("0 throughout"))
      run.reporter.line(
          "note: input '%s' is 0 throughout, because the model sets no limit for its ids",
          printable(inputs[i].name).c_str());
}

void TrainingData::addContents(const RunState &state, std::vector<Content> &all) const {
  if (tokens) {
    const InputFile &file = tokens->getFile();
    std::string whole = state.dataHash.empty()
                            ? ""
                            : format("%llu bytes with SHA-256 ", (ull)file.size()) + state.dataHash;
    all.push_back(
        {options.text.empty() ? "--data" : "--text",
         std::string(tokens->typeName()) + ", " + (whole.empty() ? tokens->comparison() : whole),
         file.getPath()});
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (files[i])
      all.push_back(
          {"--input " + std::string(inputs[i].name), files[i]->comparison(), files[i]->getPath()});
}

void TrainingData::announceComparison(const RunState &state) const {
  if (tokens && state.dataHash.empty())
    run.announceComparison(tokens->getFile());
  for (const auto &file : files)
    if (file && state.inputs.empty())
      run.announceComparison(file->getFile());
}

void TrainingData::describe(RunState &state) const {
  state.overfit = options.overfit;
  state.extraIds = options.extraIds;
  state.validationFraction = options.validationFraction;
  state.synthetic = options.synthetic;
  std::sort(state.synthetic.begin(), state.synthetic.end());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (files[i])
      state.inputs.push_back({inputs[i].name, files[i]->sha256(), files[i]->getRows(),
                              batches->isFixed(i) ? files[i]->getRows() : batches->trainRows()});
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!batches->isFixed(i))
      state.stepInputs.push_back(
          {inputs[i].name, batches->samplesPerStep(i), batches->elementsPerSample(i)});
  if (!state.inputs.empty())
    state.source = "inputs";
  if (!tokens)
    return;
  state.source = options.text.empty() ? "tokens" : "text";
  state.dataType = tokens->typeName();
  state.dataHash = tokens->sha256();
  state.tokens = tokens->size();
  state.trainTokens = batches->trainTokens();
}

/// Throws Error if this run and the saved run have different files of --input or inputs of
/// --synthetic.
void TrainingData::expectInputsOf(const RunState &saved, const RunState &own, const char *folder,
                                  const char *advice) const {
  auto find = [](const std::vector<RunState::Input> &list,
                 const std::string &name) -> const RunState::Input * {
    for (const RunState::Input &input : list)
      if (input.name == name)
        return &input;
    return nullptr;
  };
  for (const RunState::Input &mine : own.inputs)
    if (!find(saved.inputs, mine.name))
      badInput("--input: the run of %s had no file for input '%s'; omit the option, %s", folder,
               mine.name.c_str(), advice);
  for (const RunState::Input &input : saved.inputs) {
    std::string name = printable(input.name);
    const RunState::Input *mine = find(own.inputs, input.name);
    if (!mine)
      badInput(
          "%s: its run trained on a file for input '%s'; give that file with --input %s=FILE, %s",
          folder, name.c_str(), name.c_str(), advice);
    if (mine->hash != input.hash || mine->rows != input.rows)
      badInput("--input %s: not the samples of %s: expected %llu with SHA-256 %s, found %llu with "
               "%s; give that file, %s",
               name.c_str(), folder, (ull)input.rows, printable(input.hash).c_str(),
               (ull)mine->rows, mine->hash.c_str(), advice);
    if (mine->trainRows != input.trainRows)
      badInput(
          "--val-fraction: the run of %s trained on the first %llu samples, found %llu; omit the "
          "option, %s",
          folder, (ull)input.trainRows, (ull)mine->trainRows, advice);
  }
  if (saved.synthetic != own.synthetic)
    badInput(
        "--synthetic: expected the inputs that were random in the run of %s; give the same, %s",
        folder, advice);
}

void TrainingData::expectDataOf(const RunState &saved, const RunState &own,
                                const std::string &folderName) const {
  const char *folder = folderName.c_str();
  const std::string &file = options.text.empty() ? options.data : options.text;
  const char *advice = "or resume with other samples by --other-data";
  if (options.otherData)
    return;
  if (saved.dataHash.empty() != own.dataHash.empty())
    badInput("%s: its run trained on %s; %s, %s", folder,
             !saved.dataHash.empty() ? "a file of tokens"
             : saved.inputs.empty()  ? "random ids"
                                     : "files of samples",
             saved.dataHash.empty() ? "omit --text and --data"
                                    : "give that file with --text or --data",
             advice);
  expectInputsOf(saved, own, folder, advice);
  if (saved.dataHash != own.dataHash || saved.dataType != own.dataType)
    badInput("%s: not the tokens of %s: expected %llu of type %s with SHA-256 %s, found %llu of "
             "type %s with %s; give that file, %s",
             file.c_str(), folder, (ull)saved.tokens, printable(saved.dataType).c_str(),
             printable(saved.dataHash).c_str(), (ull)own.tokens, own.dataType.c_str(),
             own.dataHash.c_str(), advice);
  if (saved.trainTokens != own.trainTokens)
    badInput("--val-fraction: the run of %s trained on the first %llu tokens, found %llu; omit the "
             "option, %s",
             folder, (ull)saved.trainTokens, (ull)own.trainTokens, advice);
  if (saved.overfit != own.overfit)
    badInput("--overfit: the run of %s used new samples at every step; omit the option, %s", folder,
             advice);
  if (saved.extraIds != own.extraIds)
    badInput("--random-extra-ids: the run of %s had %g, found %g; omit the option, %s", folder,
             saved.extraIds, own.extraIds, advice);
}

void TrainingData::writeInputs(uint64_t number, bool validating, bool reference) {
  const uint64_t readers = run.info.ranks / run.info.data_ranks; // ranks with the same samples
  for (uint32_t rank = reference ? 0 : run.firstRank; rank < (reference ? run.ranks : run.lastRank);
       ++rank)
    for (size_t i = 0; i < inputs.size(); ++i)
      for (uint32_t k = 0; k < inputs[i].micro_batches; ++k) {
        const void *data = validating ? batches->validation(number, rank / readers, k, i)
                                      : batches->train(number, rank / readers, k, i);
        if (rank >= run.firstRank && rank < run.lastRank)
          call(fsdprt_session_write_input, run.session.get(), rank, uint64_t(i), k, data,
               batches->bytes(i));
        if (reference && rank % readers == 0)
          call(fsdprt_session_write_input, run.session.get(), FSDPRT_REFERENCE, uint64_t(i),
               rank / readers * inputs[i].micro_batches + k, data, batches->bytes(i));
      }
}
