//===- Saver.cpp - Saving a run ---------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A save has three parts: begin() creates the temporary folder, each process writes the files of
// its ranks, and commit() completes the save. After each part, the processes exchange the results
// of this part.
//
// If the steps wait for the save, several threads of a process write it. If the save is written
// while steps run, only one thread per process writes it, so that the steps slow down less. If a
// process fails in a part, the other processes cancel their threads.
//
//===----------------------------------------------------------------------===//

#include "train/Saver.h"
#include "core/AllocationCount.h"
#include "core/FutexEvent.h"
#include "io/OutputFile.h"
#include "train/Handles.h"
#include "train/ParallelFor.h"
#include <cstring>

using namespace fsdprt;
using ull = unsigned long long;

struct Saver::Word {
  int32_t status = FSDPRT_OK;
  char text[1024] = {};
  char sha256[65] = {}; ///< SHA-256 of the file of the rank
  uint64_t bytes = 0;
};

void Saver::open(const std::string &newPath, const std::string &resumed, bool fellBack,
                 uint64_t newKeep, const fsdprt_artifact *artifact,
                 std::optional<uint32_t> newRank) {
  path = newPath;
  keep = newKeep;
  rank = newRank;
  layout = describeLayout(artifact);
  if (isRoot())
    folder.open(path, resumed, fellBack);
}

std::vector<Saver::Word> Saver::meet(const Word &mine, fsdprt_session *session) const {
  std::vector<Word> words(rank ? layout.files.size() : 1, mine);
  call(fsdprt_session_exchange, session, static_cast<const void *>(&mine), sizeof mine,
       static_cast<void *>(words.data()));
  // Several processes may have failed. The error of a process that was cancelled because of another
  // error is only used if there is no other error.
  for (bool cancelled : {false, true})
    for (size_t i = 0; i < words.size(); ++i)
      if (words[i].status != FSDPRT_OK && (words[i].status == FSDPRT_ABANDONED) == cancelled)
        throw Error(static_cast<fsdprt_status>(words[i].status),
                    rank ? format("rank %zu: %s", i, words[i].text) : std::string(words[i].text));
  return words;
}

/// Calls part(word) and returns `word`. If part() throws an exception, `word` contains this error.
template <typename Word, typename Part>
static Word tried(Part part) {
  Word word;
  try {
    part(word);
  } catch (const Error &error) {
    word.status = error.status;
    std::strncpy(word.text, error.what(), sizeof word.text - 1);
  } catch (const std::exception &error) {
    word.status = FSDPRT_FAILED;
    std::strncpy(word.text, error.what(), sizeof word.text - 1);
  }
  return word;
}

/// Calls part(). If part() throws Error, cancels the save, removes its temporary folder and throws
/// Error.
template <typename Part>
auto Saver::orAbandon(uint64_t step, Part part) {
  try {
    return part();
  } catch (const Error &error) {
    task.cancel();
    flight.reset();
    folder.abandon();
    if (error.status == FSDPRT_ABANDONED)
      throw;
    throw Error(error.status == FSDPRT_BAD_INPUT ? FSDPRT_FAILED : error.status,
                format("step %llu could not be saved: %s; earlier saves are untouched", (ull)step,
                       error.what()));
  }
}

SaveIndex Saver::describe(const RunState &run, const fsdprt_session *session) const {
  SaveIndex index = layout;
  index.run = run;
  call(fsdprt_session_read_block, session, rank.value_or(0), index.block.data());
  return index;
}

std::vector<RankSave> Saver::collect(const SaveIndex &index, const fsdprt_session *session,
                                     bool isCopy) const {
  std::vector<RankSave> ranks;
  for (uint64_t i = 0, count = rank ? 1 : index.files.size(); i < count; ++i)
    ranks.emplace_back(layout, static_cast<uint32_t>(firstFile() + i), index.run.step, session,
                       isCopy);
  return ranks;
}

std::string Saver::begin(uint64_t step, fsdprt_session *session) {
  std::string to;
  Word mine = tried<Word>([&](Word &word) {
    if (!isRoot())
      return;
    to = folder.begin(step);
    if (to.size() >= sizeof word.text)
      failed("%s: its path is too long", to.c_str());
    std::strncpy(word.text, to.c_str(), sizeof word.text - 1);
  });
  return meet(mine, session)[0].text;
}

/// Exchanges the sizes and the hashes of the files between the processes. If the word `mine` of any
/// process contains an error, throws this error in all processes.
void Saver::shareHashes(Word &mine, SaveIndex &index, fsdprt_session *session) const {
  if (rank) {
    std::strncpy(mine.sha256, index.files[*rank].sha256.c_str(), sizeof mine.sha256 - 1);
    mine.bytes = index.files[*rank].bytes;
  }
  std::vector<Word> words = meet(mine, session);
  for (size_t i = 0; rank && i < words.size(); ++i) {
    index.files[i].sha256 = words[i].sha256;
    index.files[i].bytes = words[i].bytes;
  }
}

/// In the process of rank 0, completes a save whose files are written. Returns its size in bytes.
uint64_t Saver::commit(const std::string &to, SaveIndex &index) {
  std::string text = writeIndex(index);
  OutputFile file;
  file.openNew(to + "/index.json");
  file.write(text.data(), text.size());
  file.commit();
  folder.commit(index.run.step, index.sha256, keep);
  uint64_t bytes = text.size();
  for (const SaveIndex::File &each : index.files)
    bytes += each.bytes;
  return bytes;
}

uint64_t Saver::save(const RunState &run, fsdprt_session *session,
                     const std::function<void()> &begun) {
  return orAbandon(run.step, [&] {
    SaveIndex index = describe(run, session);
    std::string to = begin(run.step, session);
    begun();
    Word mine = tried<Word>([&](Word &) {
      std::vector<RankSave> ranks = collect(index, session, false);
      onThreads(ranks.size(), [&](size_t i) { ranks[i].write(to, index.files[firstFile() + i]); });
    });
    shareHashes(mine, index, session);
    mine = tried<Word>([&](Word &word) { word.bytes = isRoot() ? commit(to, index) : 0; });
    return meet(mine, session)[0].bytes;
  });
}

void Saver::start(const RunState &run, fsdprt_session *session,
                  const std::function<void()> &begun) {
  UncountedAllocations uncounted;
  orAbandon(run.step, [&] {
    double began = monotonicSeconds();
    call(fsdprt_session_run, session, "snapshot");
    flight.emplace();
    flight->began = began;
    flight->index = describe(run, session);
    flight->folder = begin(run.step, session);
    begun();
    Word mine = tried<Word>([&](Word &) {
      flight->ranks = collect(flight->index, session, true);
      task.start([this](const BackgroundTask::Cancelled &cancelled) {
        for (size_t i = 0; i < flight->ranks.size(); ++i)
          flight->ranks[i].write(flight->folder, flight->index.files[firstFile() + i], &cancelled);
      });
    });
    meet(mine, session);
  });
}

std::optional<FinishedSave> Saver::poll(fsdprt_session *session) {
  if (!flight)
    return std::nullopt;
  UncountedAllocations uncounted;
  enum Sign : uint8_t { running, ended, broken };
  Sign mine = task.hasFailed() ? broken : task.hasEnded() ? ended : running;
  std::vector<Sign> signs(rank ? layout.files.size() : 1, mine);
  if (rank)
    call(fsdprt_session_exchange, session, static_cast<const void *>(&mine), sizeof mine,
         static_cast<void *>(signs.data()));
  bool isBroken = false, isRunning = false;
  for (Sign sign : signs) {
    isBroken |= sign == broken;
    isRunning |= sign == running;
  }
  if (isRunning && !isBroken)
    return std::nullopt;
  if (isBroken)
    task.stopEarly();
  return advance(session);
}

std::optional<FinishedSave> Saver::wait(fsdprt_session *session) {
  UncountedAllocations uncounted;
  std::optional<FinishedSave> finished;
  while (flight)
    finished = advance(session);
  return finished;
}

/// Waits until the current part of the save has ended. Then starts the next part. If there is no
/// next part, returns the complete save.
std::optional<FinishedSave> Saver::advance(fsdprt_session *session) {
  uint64_t step = flight->index.run.step;
  return orAbandon(step, [&]() -> std::optional<FinishedSave> {
    Word mine = tried<Word>([&](Word &) { task.finish(); });
    if (flight->isCommitting) {
      mine.bytes = flight->bytes;
      FinishedSave finished = {step, meet(mine, session)[0].bytes,
                               monotonicSeconds() - flight->began};
      flight.reset();
      return finished;
    }
    shareHashes(mine, flight->index, session);
    flight->isCommitting = true;
    mine = tried<Word>([&](Word &) {
      if (isRoot())
        task.start([this](const BackgroundTask::Cancelled &) {
          flight->bytes = commit(flight->folder, flight->index);
        });
    });
    meet(mine, session);
    return std::nullopt;
  });
}
