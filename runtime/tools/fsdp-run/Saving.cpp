//===- Saving.cpp - A run's state to and from a folder ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank's file holds its step block, and of each state the piece that it holds, unless a lower
// rank holds the same. Files are written and read on several threads, hashed on
// the way; states go from and to the arenas without a copy between.
//
//===----------------------------------------------------------------------===//

#include "Saving.h"
#include "Handles.h"
#include "fsdprt/sha256.h"
#include "io/OutputFile.h"
#include "io/Safetensors.h"
#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <thread>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr const char blockName[] = "step_block";
static constexpr size_t chunkBytes = 1 << 20; // hashed while it is in the cache

/// Runs each(i) for i below `count` on as many threads as there are processors; throws the first exception.
template <typename Each>
static void onThreads(size_t count, Each each) {
  std::atomic<size_t> next{0};
  std::vector<std::exception_ptr> problems(count);
  auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < count;)
      try {
        each(i);
      } catch (...) {
        problems[i] = std::current_exception();
      }
  };
  std::vector<std::thread> threads(std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency())) - 1);
  for (std::thread &thread : threads)
    thread = std::thread(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  for (const std::exception_ptr &problem : problems)
    if (problem)
      std::rethrow_exception(problem);
}

//===- Writing ------------------------------------------------------------===//

namespace {
/// A file that is hashed as it is written.
class HashedFile {
public:
  explicit HashedFile(const std::string &path) : file(path, false) { fsdprt_sha256_begin(&hash); }
  void write(const void *data, size_t size) {
    const auto *from = static_cast<const std::byte *>(data);
    for (size_t done = 0, part; done < size; done += part) {
      part = std::min(size - done, chunkBytes);
      fsdprt_sha256_update(&hash, from + done, part);
      file.write(from + done, part);
    }
    bytes += size;
  }
  void finish(SaveIndex::File &about) {
    uint8_t digest[32];
    fsdprt_sha256_end(&hash, digest);
    about.sha256 = hexText(digest);
    about.bytes = bytes;
    file.commit();
  }

private:
  OutputFile file;
  fsdprt_sha256 hash;
  uint64_t bytes = 0;
};
} // namespace

static fsdprt_state_memory memoryOf(const fsdprt_session *session, uint32_t rank, uint64_t state) {
  fsdprt_state_memory memory = {};
  memory.struct_size = sizeof memory;
  call(fsdprt_session_get_memory, session, rank, state, &memory);
  return memory;
}

/// Piece by piece: it may lie in a file.
static void writeState(const fsdprt_session *session, uint32_t rank, uint64_t state, uint64_t each, HashedFile &file) {
  uint64_t elements = memoryOf(session, rank, state).elements;
  std::vector<std::byte> piece(std::min(elements * each, uint64_t(1) << 20));
  for (uint64_t first = 0; first < elements; first += piece.size() / each) {
    uint64_t count = std::min(piece.size() / each, elements - first);
    call(fsdprt_session_read_state, session, rank, state, first, count, static_cast<void *>(piece.data()));
    file.write(piece.data(), count * each);
  }
}

/// The states of which `rank` writes a piece.
static std::map<std::string, uint64_t> statesOf(const SaveIndex &layout, uint64_t rank) {
  std::map<std::string, uint64_t> states;
  for (uint64_t i = 0; i < layout.states.size(); ++i)
    for (uint64_t file : layout.states[i].files)
      if (file == rank)
        states[layout.states[i].tensor] = i;
  return states;
}

static void writeRank(const SaveIndex &layout, uint32_t rank, uint64_t step, const std::string &folder,
                      const fsdprt_session *session, SaveIndex::File &about) {
  std::map<std::string, uint64_t> states = statesOf(layout, rank);
  std::vector<TensorEntry> entries = {{blockName, "F32", {FSDPRT_BLOCK_SIZE}}};
  for (const auto &[name, state] : states)
    entries.push_back({name, layout.states[state].dtype, {layout.states[state].elements}});
  std::string header = safetensorsHeader(entries, {{"format", "fsdp-save"},
                                                   {"step", std::to_string(step)},
                                                   {"rank", std::to_string(rank)},
                                                   {"ranks", std::to_string(layout.files.size())}});
  HashedFile file(folder + "/" + about.name);
  file.write(header.data(), header.size());
  for (const TensorEntry &entry : entries) {
    if (auto state = states.find(entry.name); state != states.end()) {
      writeState(session, rank, state->second, safetensorsSize(entry.dtype), file);
      continue;
    }
    float block[FSDPRT_BLOCK_SIZE];
    call(fsdprt_session_read_block, session, rank, static_cast<float *>(block));
    file.write(block, sizeof block);
  }
  file.finish(about);
}

//===- A save, by all processes -------------------------------------------===//

/// What a process says behind its part of a save.
struct Saver::Word {
  int32_t status = FSDPRT_OK;
  char text[1024] = {};
  char sha256[65] = {}; // of its rank's file
  uint64_t bytes = 0;
};

void Saver::open(const std::string &newPath, const std::string &resumed, uint64_t newKeep,
                 const fsdprt_artifact *artifact, std::optional<uint32_t> newRank) {
  path = newPath;
  keep = newKeep;
  rank = newRank;
  layout = describeLayout(artifact);
  if (isRoot())
    folder.open(path, resumed);
}

std::vector<Saver::Word> Saver::meet(const Word &mine, fsdprt_session *session) const {
  std::vector<Word> words(rank ? layout.files.size() : 1, mine);
  call(fsdprt_session_exchange, session, static_cast<const void *>(&mine), sizeof mine,
       static_cast<void *>(words.data()));
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i].status != FSDPRT_OK)
      throw Error(static_cast<fsdprt_status>(words[i].status),
                  rank ? format("rank %zu: %s", i, words[i].text) : std::string(words[i].text));
  return words;
}

/// Runs part(), and keeps what it throws in the word that all processes get.
template <typename Word, typename Part>
static Word tried(Part part) {
  Word word;
  try {
    part(word);
  } catch (const Error &error) {
    word.status = error.status;
    std::strncpy(word.text, error.what(), sizeof word.text - 1);
  }
  return word;
}

std::string Saver::begin(uint64_t step, fsdprt_session *session) {
  std::string to;
  Word mine = tried<Word>([&](Word &word) {
    if (!isRoot())
      return;
    to = folder.begin(step);
    if (to.size() >= sizeof word.text)
      failed("%s: its name is too long to save there", to.c_str());
    std::strncpy(word.text, to.c_str(), sizeof word.text - 1);
  });
  return meet(mine, session)[0].text;
}

void Saver::writeRanks(const std::string &to, uint64_t step, SaveIndex &index, fsdprt_session *session) {
  auto write = [&](size_t of) {
    writeRank(layout, static_cast<uint32_t>(of), step, to, session, index.files[of]);
  };
  Word mine = tried<Word>([&](Word &word) {
    if (!rank)
      return onThreads(index.files.size(), write);
    write(*rank);
    std::strncpy(word.sha256, index.files[*rank].sha256.c_str(), sizeof word.sha256 - 1);
    word.bytes = index.files[*rank].bytes;
  });
  std::vector<Word> words = meet(mine, session);
  for (size_t i = 0; rank && i < words.size(); ++i) {
    index.files[i].sha256 = words[i].sha256;
    index.files[i].bytes = words[i].bytes;
  }
}

uint64_t Saver::commit(const std::string &to, SaveIndex &index, fsdprt_session *session) {
  Word mine = tried<Word>([&](Word &word) {
    if (!isRoot())
      return;
    std::string text = writeIndex(index);
    OutputFile file(to + "/index.json", false);
    file.write(text.data(), text.size());
    file.commit();
    folder.commit(index.run.step, index.sha256, keep);
    word.bytes = text.size();
    for (const SaveIndex::File &each : index.files)
      word.bytes += each.bytes;
  });
  return meet(mine, session)[0].bytes;
}

uint64_t Saver::save(const RunState &run, fsdprt_session *session) {
  try {
    SaveIndex index = layout;
    index.run = run;
    call(fsdprt_session_read_block, static_cast<const fsdprt_session *>(session), rank.value_or(0),
         index.block.data());
    std::string to = begin(run.step, session);
    fault.strike();
    writeRanks(to, run.step, index, session);
    return commit(to, index, session);
  } catch (const Error &error) {
    folder.abandon();
    if (error.status == FSDPRT_ABANDONED)
      throw;
    throw Error(error.status == FSDPRT_BAD_INPUT ? FSDPRT_FAILED : error.status,
                format("step %llu could not be saved: %s; saves from before are untouched", (ull)run.step,
                       error.what()));
  }
}

//===- Reading ------------------------------------------------------------===//

/// Throws the error again, with what else there is to go on from.
void SavedRun::refuse(const Error &error) const {
  std::string others;
  for (const std::string &other : savesBeside(folder))
    if (others.size() < 200)
      others += (others.empty() ? "; other saves: " : ", ") + other;
  throw Error(error.status, error.what() + others);
}

void SavedRun::open(const std::string &path, const std::string &artifactFile, const fsdprt_artifact *artifact) {
  FoundSave found = findSave(path);
  folder = found.folder;
  std::string file = folder + "/index.json";
  try {
    MappedFile text(file, "the index of the save");
    index = readIndex(file, std::string(reinterpret_cast<const char *>(text.data()), text.size()));
    if (!found.indexHash.empty() && found.indexHash != index.sha256)
      badInput("%s: 'latest' beside it expects SHA-256 %s, found %s; one of them is damaged or was replaced",
               folder.c_str(), found.indexHash.c_str(), index.sha256.c_str());
  } catch (const Error &error) {
    refuse(error);
  }
  SaveIndex wanted = describeLayout(artifact);
  if (index.meshText() != wanted.meshText())
    badInput("%s: saved on mesh %s, but %s is for mesh %s; go on with an artifact for the same mesh, or take the "
             "weights alone from an --export with --init",
             folder.c_str(), index.meshText().c_str(), artifactFile.c_str(), wanted.meshText().c_str());
  if (index.artifactHash != wanted.artifactHash)
    badInput("%s: saved by another artifact: expected the one from '%s' with SHA-256 %s, found %s with %s; go on "
             "with that one, or take the weights alone from an --export with --init",
             folder.c_str(), printable(index.modelSource).c_str(), printable(index.artifactHash).c_str(),
             artifactFile.c_str(), wanted.artifactHash.c_str());
  if (!index.hasLayoutOf(wanted))
    badInput("%s: its units or states are not those of %s", file.c_str(), artifactFile.c_str());
  for (uint64_t rank = 0; rank < index.files.size(); ++rank)
    if (index.files[rank].name != rankFileName(rank))
      badInput("%s: expected the name %s for the file of rank %llu, found '%s'", file.c_str(),
               rankFileName(rank).c_str(), (ull)rank, printable(index.files[rank].name).c_str());
}

void SavedRun::verifyFile(const SaveIndex::File &about) const {
  std::string path = pathOf(about);
  MappedFile file(path, "a file of the save");
  if (file.size() != about.bytes)
    badInput("%s: expected %llu bytes, found %llu; it is cut short or was replaced", path.c_str(), (ull)about.bytes,
             (ull)file.size());
  std::string hash = sha256Text(file.data(), file.size());
  if (hash != about.sha256)
    badInput("%s: expected SHA-256 %s, found %s; it is damaged or was replaced", path.c_str(),
             printable(about.sha256).c_str(), hash.c_str());
}

/// A tensor of a rank's file; throws Error unless it is there as the layout says.
static const std::byte *tensorOf(const SafetensorsFile &file, const std::string &name, const std::string &dtype,
                                 uint64_t elements) {
  auto found = file.getTensors().find(name);
  if (found == file.getTensors().end() || found->second.dtype != dtype ||
      found->second.shape != std::vector<uint64_t>{elements})
    badInput("%s: expected a tensor '%s' of %llu x %s", file.getPath().c_str(), printable(name).c_str(), (ull)elements,
             dtype.c_str());
  return file.data(found->second);
}

void SavedRun::verify(std::optional<uint32_t> only) const {
  try {
    onThreads(only ? 1 : index.files.size(), [&](size_t rank) {
      rank = only.value_or(rank);
      verifyFile(index.files[rank]);
      SafetensorsFile file(pathOf(index.files[rank]));
      tensorOf(file, blockName, "F32", FSDPRT_BLOCK_SIZE);
      for (const auto &[name, state] : statesOf(index, rank))
        tensorOf(file, name, index.states[state].dtype, index.states[state].elements);
    });
  } catch (const Error &error) {
    refuse(error);
  }
}

void SavedRun::load(fsdprt_session *session, bool reference) const {
  std::vector<SafetensorsFile> files;
  for (const SaveIndex::File &file : index.files)
    files.emplace_back(pathOf(file));
  auto loadBlock = [&](uint32_t into, size_t rank) {
    float block[FSDPRT_BLOCK_SIZE];
    std::memcpy(block, tensorOf(files[rank], blockName, "F32", FSDPRT_BLOCK_SIZE), sizeof block);
    call(fsdprt_session_write_block, session, into, static_cast<const float *>(block));
  };
  /// The part of piece `piece` that `into` holds.
  auto loadPiece = [&](uint32_t into, uint64_t i, uint64_t piece) {
    const SaveIndex::State &state = index.states[i];
    fsdprt_state_memory memory = memoryOf(session, into, i);
    uint64_t size = safetensorsSize(state.dtype), first = piece * state.elements;
    uint64_t begin = std::max(first, memory.first),
             end = std::min(first + state.elements, memory.first + memory.elements);
    const std::byte *from = tensorOf(files[state.files[piece]], state.tensor, state.dtype, state.elements);
    if (begin < end)
      call(fsdprt_session_write_state, session, into, i, begin - memory.first, end - begin,
           static_cast<const void *>(from + (begin - first) * size));
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
  if (!reference)
    return;
  loadBlock(FSDPRT_REFERENCE, 0);
  for (uint64_t i = 0; i < index.states.size(); ++i)
    for (uint64_t piece = 0; piece < index.states[i].files.size(); ++piece)
      loadPiece(FSDPRT_REFERENCE, i, piece);
}
