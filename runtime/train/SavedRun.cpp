//===- SavedRun.cpp - The save that a run resumes from ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. The first candidate is the save that 'latest' names. The other saves of the folder follow,
//     from the newest to the oldest.
//  2. The index of a candidate contains a hash of itself, which must be correct. If 'latest' names
//     the candidate, this hash must also equal the hash in 'latest'. The states in the index are
//     matched with the states of this run (SaveMapping.h). The files of the candidate are opened,
//     and their sizes and hashes are checked.
//  3. The first undamaged candidate is used. If it is of another model or optimizer, open() fails.
//  4. Each rank reads its pieces of the states through the descriptors of the checked files. If a
//     file has changed since it was opened, load() fails.
//
// If the save is of the same artifact, its content is loaded bit for bit, including step blocks and
// padding. If the save is of another artifact, its values are converted to the dtypes of this run.
// In this case all ranks load the step block of rank 0, except for the results of checked lookups
// and for a fixed loss scale.
//
//===----------------------------------------------------------------------===//

#include "train/SavedRun.h"
#include "io/Safetensors.h"
#include "train/Handles.h"
#include "train/ParallelFor.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr size_t chunkBytes = 1 << 20;

/// Returns the tensor `name` in the file of a rank. Throws Error if there is no such tensor, or if
/// its dtype is not `dtype`, or if it does not have `elements` elements.
static const Tensor &tensorOf(const SafetensorsFile &file, const std::string &name,
                              const std::string &dtype, uint64_t elements) {
  auto found = file.getTensors().find(name);
  if (found == file.getTensors().end() || found->second.dtype != dtype ||
      found->second.shape != std::vector<uint64_t>{elements})
    badInput("%s: expected a tensor '%s' of %llu x %s", file.getPath().c_str(),
             printable(name).c_str(), (ull)elements, dtype.c_str());
  return found->second;
}

/// A rank's file. The first thread that calls checked() opens the file and checks it.
class SavedRun::File {
public:
  File(std::string path, const SaveIndex &index, uint64_t rank)
      : path(std::move(path)), index(index), rank(rank) {}

  const SafetensorsFile &checked() const {
    // std::call_once is not used, because check() throws, and an exception cannot leave
    // pthread_once in a program that links libgcc statically.
    std::lock_guard<std::mutex> lock(mutex);
    if (!file)
      check();
    return *file;
  }
  bool isOpen() const { return file != nullptr; }

private:
  void check() const {
    const SaveIndex::File &about = index.files[rank];
    InputFile opened(path, "a file of the save");
    if (opened.size() != about.bytes)
      badInput("%s: expected %llu bytes, found %llu; it is cut short or was replaced", path.c_str(),
               (ull)about.bytes, (ull)opened.size());
    std::string hash = opened.sha256();
    if (hash != about.sha256)
      badInput("%s: expected SHA-256 %s, found %s; it is damaged or was replaced", path.c_str(),
               printable(about.sha256).c_str(), hash.c_str());
    auto parsed = std::make_unique<SafetensorsFile>(std::move(opened));
    tensorOf(*parsed, saveBlockName, "F32", FSDPRT_BLOCK_SIZE);
    for (const auto &[name, state] : statesOf(index, rank))
      tensorOf(*parsed, name, index.states[state].dtype, index.states[state].elements);
    file = std::move(parsed);
  }

  std::string path;
  const SaveIndex &index;
  uint64_t rank;
  mutable std::mutex mutex;
  mutable std::unique_ptr<SafetensorsFile> file;
};

SavedRun::SavedRun(uint64_t limit) : limit(limit) {}
SavedRun::~SavedRun() = default;

/// Appends the names of the other saves in the same folder to the message of `error`, and throws
/// `error`.
void SavedRun::refuse(const Error &error) const {
  std::string others;
  for (const std::string &other : savesBeside(folder))
    if (others.size() < 200)
      others += (others.empty() ? "; other saves: " : ", ") + other;
  throw Error(error.status, error.what() + others);
}

static constexpr uint64_t mostIndexBytes = uint64_t(1) << 30;

void SavedRun::readIndexOf(const FoundSave &found) {
  std::string file = folder + "/index.json";
  index = readIndex(file, InputFile(file, "the index of the save").readAll(mostIndexBytes));
  if (!found.indexHash.empty() && found.indexHash != index.sha256)
    badInput(
        "%s: 'latest' in the same folder expects SHA-256 %s, found %s; one of them is damaged or "
        "was replaced",
        folder.c_str(), found.indexHash.c_str(), index.sha256.c_str());
}

void SavedRun::checkLayout(const std::string &artifactFile, const fsdprt_artifact *artifact) {
  std::string file = folder + "/index.json";
  wanted = describeLayout(artifact);
  mapping = SaveMapping(index, wanted, folder, artifactFile);
  if (isSameArtifact() && !mapping.isSameLayout())
    badInput("%s: its units or states are not those of %s", file.c_str(), artifactFile.c_str());
  for (uint64_t rank = 0; rank < index.files.size(); ++rank)
    if (index.files[rank].name != rankFileName(rank))
      badInput("%s: expected the name %s for the file of rank %llu, found '%s'", file.c_str(),
               rankFileName(rank).c_str(), (ull)rank, printable(index.files[rank].name).c_str());
}

/// Returns the indices of the files from which a rank loads its states and its step block.
std::set<uint64_t> SavedRun::filesOf(const fsdprt_artifact *artifact, uint32_t rank) const {
  std::set<uint64_t> numbers;
  if (isSameArtifact())
    numbers.insert(rank);
  for (uint64_t state = 0; state < wanted.states.size(); ++state) {
    uint64_t piece = 0, elements = wanted.states[state].elements;
    fsdprt_artifact_get_piece(artifact, state, rank, &piece);
    numbers.merge(mapping.filesOf(index, state, piece * elements, (piece + 1) * elements));
  }
  return numbers;
}

/// Checks all files. If the save is large and `rank` is set, checks only the files that this rank
/// reads.
void SavedRun::checkFiles(const fsdprt_artifact *artifact, std::optional<uint32_t> rank) {
  files.clear();
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < index.files.size(); ++i) {
    files.push_back(std::make_unique<File>(pathOf(index.files[i]), index, i));
    bytes += index.files[i].bytes;
  }
  bool all = !rank || bytes <= limit;
  std::set<uint64_t> read;
  if (!all)
    read = filesOf(artifact, *rank);
  for (uint64_t i = 0; all && i < files.size(); ++i)
    read.insert(i);
  std::vector<uint64_t> numbers(read.begin(), read.end());
  if (!numbers.empty())
    onThreads(numbers.size(), [&](size_t i) { files[numbers[i]]->checked(); });
}

/// Returns true if the candidate `found` is undamaged. Otherwise sets `problem` and returns false.
/// Throws Error if the candidate belongs to another model or to another optimizer.
bool SavedRun::tryOne(const FoundSave &found, const std::string &artifactFile,
                      const fsdprt_artifact *artifact, std::optional<uint32_t> rank,
                      Error &problem) {
  folder = found.folder;
  try {
    readIndexOf(found);
  } catch (const Error &error) {
    problem = error;
    return false;
  }
  checkLayout(artifactFile, artifact);
  try {
    checkFiles(artifact, rank);
  } catch (const Error &error) {
    problem = error;
    return false;
  }
  return true;
}

void SavedRun::open(const std::string &path, const std::string &artifactFile,
                    const fsdprt_artifact *artifact, std::optional<uint32_t> rank) {
  SaveChoice choice = findSaves(path);
  whyNotLast = choice.problem;
  std::optional<Error> first;
  for (const FoundSave &found : choice.saves) {
    Error problem(FSDPRT_BAD_INPUT, "");
    if (tryOne(found, artifactFile, artifact, rank, problem))
      return;
    if (!first)
      first = problem;
    whyNotLast += (whyNotLast.empty() ? "" : "; ") + problem.message;
    if (!choice.isFolder)
      break;
  }
  folder = choice.saves[0].folder;
  if (choice.isFolder && choice.saves.size() > 1)
    badInput("%s: all of its %zu saves are damaged: %s", path.c_str(), choice.saves.size(),
             whyNotLast.c_str());
  refuse(*first);
}

/// Converts `count` floating-point values. If a finite value becomes infinite in the conversion,
/// stops there and returns the index of this value. Otherwise returns `count`.
static uint64_t convert(DType from, const std::byte *data, DType to, std::byte *into,
                        uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    double value = loadElement(from, data + i * sizeOf(from));
    storeElement(to, value, into + i * sizeOf(to));
    if (std::isfinite(value) && !std::isfinite(loadElement(to, into + i * sizeOf(to))))
      return i;
  }
  return count;
}

struct SavedRun::Loading {
  const SavedRun &save;
  fsdprt_session *session;
  uint32_t into;  ///< rank, or FSDPRT_REFERENCE
  uint64_t state; ///< index of the state in the list of the artifact
  std::vector<std::byte> part, converted;

  void run() {
    fsdprt_state_memory memory = memoryOf(session, into, state);
    save.mapping.forRanges(state, memory.first, memory.first + memory.elements,
                           [&](const StateRange &range) { loadRange(range, memory.first); });
  }

private:
  /// Loads a range of the flat buffer of the state, in chunks that each lie in a single piece of
  /// the save. `held` is the index in the flat buffer at which the piece of the rank begins.
  void loadRange(const StateRange &range, uint64_t held) {
    const SaveIndex::State &from = save.index.states[range.from];
    uint64_t size = safetensorsSize(from.dtype);
    part.resize(chunkBytes);
    for (uint64_t begin = range.begin, count; begin < range.end; begin += count) {
      uint64_t place = range.fromBegin + (begin - range.begin), piece = place / from.elements,
               offset = place % from.elements;
      count = std::min({range.end - begin, from.elements - offset, chunkBytes / size});
      const SafetensorsFile &file = save.files[from.files[piece]]->checked();
      file.read(tensorOf(file, from.tensor, from.dtype, from.elements), offset * size, part.data(),
                count * size);
      write(range, from.dtype, begin, begin - held, count);
    }
  }

  /// Converts the first `count` elements of `part` from `dtype`, and writes them to the rank's
  /// piece. The first of these elements is element `at` of the piece, and element `flat` of the
  /// flat buffer.
  void write(const StateRange &range, const std::string &dtype, uint64_t flat, uint64_t at,
             uint64_t count) {
    const SaveIndex::State &to = save.wanted.states[state];
    const std::byte *data = part.data();
    if (to.dtype != dtype) {
      DType type = *dtypeNamed(to.dtype);
      converted.resize(count * sizeOf(type));
      uint64_t bad = convert(*dtypeNamed(dtype), data, type, converted.data(), count);
      if (bad < count)
        badInput("%s: %s of '%s': element %llu is too large for %s; resume with an artifact that "
                 "keeps it in %s",
                 save.folder.c_str(), to.role.c_str(), printable(std::string(range.param)).c_str(),
                 (ull)(range.index + flat + bad - range.begin), to.dtype.c_str(), dtype.c_str());
      data = converted.data();
    }
    call(fsdprt_session_write_state, session, into, state, at, count,
         static_cast<const void *>(data));
  }
};

/// Loads the step block of rank `into`, which may also be the reference. If the save is of the same
/// artifact, loads the saved step block of `rank`. Otherwise loads only some slots, from the saved
/// step block of rank 0.
void SavedRun::loadBlock(fsdprt_session *session, uint32_t into, uint32_t rank) const {
  float block[FSDPRT_BLOCK_SIZE];
  if (isSameArtifact()) {
    const SafetensorsFile &file = files[rank]->checked();
    file.read(tensorOf(file, saveBlockName, "F32", FSDPRT_BLOCK_SIZE), 0, block, sizeof block);
  } else {
    call(fsdprt_session_read_block, static_cast<const fsdprt_session *>(session), into,
         static_cast<float *>(block));
    for (size_t slot :
         {FSDPRT_BLOCK_LR, FSDPRT_BLOCK_STEP, FSDPRT_BLOCK_CLIP, FSDPRT_BLOCK_TOKENS,
          FSDPRT_BLOCK_FINITE, FSDPRT_BLOCK_LOSS, FSDPRT_BLOCK_GRAD_NORM, FSDPRT_BLOCK_SKIPPED})
      block[slot] = index.block[slot];
    // A fixed loss scale is not loaded, because it is a constant of the program.
    if (wanted.hasDynamicScale && index.block[FSDPRT_BLOCK_LOSS_SCALE] > 0 &&
        index.block[FSDPRT_BLOCK_GROWTH] >= 0)
      for (size_t slot : {FSDPRT_BLOCK_LOSS_SCALE, FSDPRT_BLOCK_GROWTH})
        block[slot] = index.block[slot];
  }
  call(fsdprt_session_write_block, session, into, static_cast<const float *>(block));
}

void SavedRun::loadStates(fsdprt_session *session, uint32_t into) const {
  for (uint64_t state = 0; state < wanted.states.size(); ++state)
    Loading{*this, session, into, state, {}, {}}.run();
}

void SavedRun::load(fsdprt_session *session, bool reference) const {
  fsdprt_session_info placed = {};
  placed.struct_size = sizeof placed;
  fsdprt_session_get_info(session, &placed);
  onThreads(placed.local_ranks, [&](size_t i) {
    uint32_t rank = placed.first_rank + static_cast<uint32_t>(i);
    loadBlock(session, rank, rank);
    loadStates(session, rank);
  });
  if (reference) {
    loadBlock(session, FSDPRT_REFERENCE, 0);
    loadStates(session, FSDPRT_REFERENCE);
  }
  for (const auto &file : files)
    if (file->isOpen())
      file->checked().getFile().expectUnchanged(/*strictly=*/true);
}

/// Returns a text such as "a step has 9 samples of 'tokens', in the saved run 12". Returns an empty
/// text if a step has the same inputs in both runs, or if one of the runs has no list of inputs.
static std::string stepChange(const RunState &saved, const RunState &own) {
  for (const RunState::StepInput &mine : own.stepInputs)
    for (const RunState::StepInput &input : saved.stepInputs) {
      if (input.name != mine.name ||
          (input.samples == mine.samples && input.elements == mine.elements))
        continue;
      bool longer = input.elements != mine.elements;
      std::string name = "'" + printable(mine.name) + "'";
      return longer ? format("a sample of %s has %llu elements, in the saved run %llu",
                             name.c_str(), (ull)mine.elements, (ull)input.elements)
                    : format("a step has %llu samples of %s, in the saved run %llu",
                             (ull)mine.samples, name.c_str(), (ull)input.samples);
    }
  return "";
}

/// Returns those compiler options of `some` that `other` does not have, as a text such as
/// "--mesh=shard=4 --overlap=true".
static std::string optionsWithout(const SaveIndex &some, const SaveIndex &other) {
  std::string text;
  for (const std::string &option : some.options)
    if (std::find(other.options.begin(), other.options.end(), option) == other.options.end())
      text += (text.empty() ? "--" : " --") + printable(option);
  return text;
}

/// Returns a text such as ", compiled with --overlap=true" that describes how the options of the
/// two artifacts differ. The caller appends this text to "another artifact".
static std::string compileChange(const SaveIndex &saved, const SaveIndex &wanted) {
  std::string model;
  if (saved.modelSource != wanted.modelSource)
    model = ", from '" + printable(saved.modelSource) + "'";
  std::string there = optionsWithout(saved, wanted), here = optionsWithout(wanted, saved);
  if (there.empty() && here.empty())
    return model + (saved.meshText() == wanted.meshText() ? "" : ", for mesh " + saved.meshText());
  if (there.empty())
    return model + ", compiled without " + here;
  return model + ", compiled with " + there + (here.empty() ? "" : " instead of " + here);
}

std::string SavedRun::remark(const RunState &own) const {
  if (isSameArtifact())
    return "";
  std::string text = "the save is of another artifact" + compileChange(index, wanted),
              change = stepChange(index.run, own), conversions = mapping.conversions();
  text += conversions.empty() ? ": states are equal element for element"
                              : ": states are equal element for element, but " + conversions;
  if (!change.empty())
    return text + "; " + change + ", so steps differ from those of the saved run";
  if (!conversions.empty())
    return text + "; losses differ by this rounding";
  if (index.meshText() != wanted.meshText())
    return text + "; sums over ranks are in another order, so the last digits of losses differ";
  return text + "; losses have equal bits if both artifacts compute in equal types and order";
}
