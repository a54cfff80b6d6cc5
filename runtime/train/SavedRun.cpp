//===- SavedRun.cpp - The save that a run resumes from ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. The candidates are the save that 'latest' names, then the folder's other saves, newest first.
//  2. The index of a candidate is checked against its own hash and, if 'latest' names the save,
//     against the hash in 'latest'. Artifact, mesh and layout must be those of this run. The files
//     are opened, and their sizes and hashes are checked against the index.
//  3. The first undamaged candidate is used. Another artifact or mesh is an error.
//  4. States are read from the descriptors of the checked files. A file that has changed after the
//     reads is an error.
//
//===----------------------------------------------------------------------===//

#include "train/SavedRun.h"
#include "io/Safetensors.h"
#include "train/Handles.h"
#include "train/ParallelFor.h"
#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr size_t chunkBytes = 1 << 20;

//===- A file -------------------------------------------------------------===//

/// Returns a tensor of a rank's file. Throws Error unless the tensor has the given type and size.
static const Tensor &tensorOf(const SafetensorsFile &file, const std::string &name,
                              const std::string &dtype, uint64_t elements) {
  auto found = file.getTensors().find(name);
  if (found == file.getTensors().end() || found->second.dtype != dtype ||
      found->second.shape != std::vector<uint64_t>{elements})
    badInput("%s: expected a tensor '%s' of %llu x %s", file.getPath().c_str(),
             printable(name).c_str(), (ull)elements, dtype.c_str());
  return found->second;
}

/// A rank's file. The first thread that needs it opens and checks it.
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

SavedRun::SavedRun() = default;
SavedRun::~SavedRun() = default;

//===- Finding an undamaged save ------------------------------------------===//

/// Throws `error` with the names of the other saves in the folder appended.
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

void SavedRun::checkLayout(const std::string &artifactFile, const fsdprt_artifact *artifact) const {
  std::string file = folder + "/index.json";
  SaveIndex wanted = describeLayout(artifact);
  if (index.meshText() != wanted.meshText())
    badInput("%s: saved on mesh %s, but %s is for mesh %s; resume with an artifact for the same "
             "mesh, or load only the weights of an --export with --init",
             folder.c_str(), index.meshText().c_str(), artifactFile.c_str(),
             wanted.meshText().c_str());
  if (index.artifactHash != wanted.artifactHash)
    badInput(
        "%s: saved by another artifact: expected the one from '%s' with SHA-256 %s, found %s "
        "with %s; resume with that artifact, or load only the weights of an --export with --init",
        folder.c_str(), printable(index.modelSource).c_str(), printable(index.artifactHash).c_str(),
        artifactFile.c_str(), wanted.artifactHash.c_str());
  if (!index.hasLayoutOf(wanted))
    badInput("%s: its units or states are not those of %s", file.c_str(), artifactFile.c_str());
  for (uint64_t rank = 0; rank < index.files.size(); ++rank)
    if (index.files[rank].name != rankFileName(rank))
      badInput("%s: expected the name %s for the file of rank %llu, found '%s'", file.c_str(),
               rankFileName(rank).c_str(), (ull)rank, printable(index.files[rank].name).c_str());
}

/// Checks all files. For a large save, a process that has only `rank` checks only that rank's file.
void SavedRun::checkFiles(std::optional<uint32_t> rank) {
  files.clear();
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < index.files.size(); ++i) {
    files.push_back(std::make_unique<File>(pathOf(index.files[i]), index, i));
    bytes += index.files[i].bytes;
  }
  bool all = !rank || bytes <= wholeLimit;
  onThreads(all ? files.size() : 1, [&](size_t i) { files[all ? i : *rank]->checked(); });
}

/// Returns true if a candidate can be used. Otherwise it is damaged, and `problem` is set.
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
    checkFiles(rank);
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

//===- Loading ------------------------------------------------------------===//

void SavedRun::load(fsdprt_session *session, bool reference) const {
  auto loadBlock = [&](uint32_t into, size_t rank) {
    float block[FSDPRT_BLOCK_SIZE];
    const SafetensorsFile &file = files[rank]->checked();
    file.read(tensorOf(file, saveBlockName, "F32", FSDPRT_BLOCK_SIZE), 0, block, sizeof block);
    call(fsdprt_session_write_block, session, into, static_cast<const float *>(block));
  };
  // Loads the part of piece `piece` that rank `into` holds.
  auto loadPiece = [&](uint32_t into, uint64_t i, uint64_t piece) {
    const SaveIndex::State &state = index.states[i];
    fsdprt_state_memory memory = memoryOf(session, into, i);
    uint64_t size = safetensorsSize(state.dtype), first = piece * state.elements;
    uint64_t begin = std::max(first, memory.first),
             end = std::min(first + state.elements, memory.first + memory.elements);
    if (begin >= end)
      return;
    const SafetensorsFile &file = files[state.files[piece]]->checked();
    const Tensor &tensor = tensorOf(file, state.tensor, state.dtype, state.elements);
    std::vector<std::byte> part(std::min<uint64_t>((end - begin) * size, chunkBytes));
    for (uint64_t count; begin < end; begin += count) {
      count = std::min<uint64_t>(end - begin, part.size() / size);
      file.read(tensor, (begin - first) * size, part.data(), count * size);
      call(fsdprt_session_write_state, session, into, i, begin - memory.first, count,
           static_cast<const void *>(part.data()));
    }
  };
  fsdprt_session_info placed = {};
  placed.struct_size = sizeof placed;
  fsdprt_session_get_info(session, &placed);
  onThreads(placed.local_ranks, [&](size_t rank) {
    rank += placed.first_rank;
    loadBlock(static_cast<uint32_t>(rank), rank);
    for (uint64_t i = 0; i < index.states.size(); ++i)
      for (uint64_t piece = 0; piece < index.states[i].files.size(); ++piece)
        loadPiece(static_cast<uint32_t>(rank), i, piece);
  });
  if (reference)
    loadBlock(FSDPRT_REFERENCE, 0);
  for (uint64_t i = 0; reference && i < index.states.size(); ++i)
    for (uint64_t piece = 0; piece < index.states[i].files.size(); ++piece)
      loadPiece(FSDPRT_REFERENCE, i, piece);
  for (const auto &file : files)
    if (file->isOpen())
      file->checked().getFile().expectUnchanged(/*strictly=*/true);
}
