//===- SaveCrashTest.cpp - Power failures while a run saves -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. fsdp-run saves several times, and FileRecorder.c records its calls.
//  2. For each call, CrashStates.h computes the trees that a power failure after this call may
//     leave.
//  3. SavedRun opens each distinct tree. If fsdp-run had printed "saved step N" before the failure,
//     SavedRun must find the save of step N or a later save. Otherwise, SavedRun need not find a
//     save. A save that SavedRun finds must be equal to the save of a run without a failure. A new
//     run must be able to save to the tree.
//
// Other tests plant a mistake (an omitted fsync or an early rename), and check that step 3 finds
// the mistake.
//
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "core/HashText.h"
#include "test/explore/CrashStates.h"
#include "test/run/RunFixture.h"
#include "train/Handles.h"
#include "train/SaveFolder.h"
#include "train/SaveIndex.h"
#include "train/SavedRun.h"
#include <algorithm>
#include <cstring>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
/// Recorded calls of a run, and the files on the disk before the run.
struct Recording {
  Tree before;
  uint64_t saved = 0; ///< step of the last complete save in `before`
  std::vector<FileOp> ops;
};

class SaveCrash : public Run {
protected:
  void SetUp() override {
    Run::SetUp();
    expect(0, "saved step 4", "toy2.fsdp --steps=4 --save-every=1 --save=whole");
    for (uint64_t step = 1; step <= 4; ++step)
      golden[step] =
          readIndex("index.json", text("whole/" + saveName(step) + "/index.json")).sha256;
    call(fsdprt_artifact_open, at("toy2.fsdp").c_str(), &artifact);
  }
  void TearDown() override {
    fsdprt_artifact_close(artifact);
    Run::TearDown();
  }

  /// Records the calls of an fsdp-run that saves to disk/saves. `saved` is the step of a complete
  /// save that the folder already contains.
  Recording record(const std::string &options, uint64_t saved = 0) {
    bash("mkdir -p disk; rm -f ops");
    Recording recording = {readTree(at("disk")), saved, {}};
    Result result =
        run("toy2.fsdp --steps=4 --save-every=1 --save=disk/saves " + options,
            "LD_PRELOAD=" FSDPRT_RECORDER " RECORD_IN=" + at("disk") + " RECORD_TO=" + at("ops"));
    EXPECT_EQ(result.code, 0) << result.output;
    recording.ops = readOps(at("ops"));
    return recording;
  }

  /// Reads the tree that a power failure left. Returns the description of a problem, or an empty
  /// text.
  std::string judge(const Tree &tree, uint64_t saved) {
    writeTree(at("crash"), tree);
    std::string found, saves = at("crash") + "/saves";
    SavedRun run;
    try {
      run.open(saves, at("toy2.fsdp"), artifact, std::nullopt);
    } catch (const Error &error) {
      return saved ? "no save is found, though step " + std::to_string(saved) +
                         " was saved: " + error.what()
                   : "";
    }
    uint64_t step = run.state().step;
    if (step < saved)
      return "step " + std::to_string(step) + " is found, though step " + std::to_string(saved) +
             " was saved";
    if (run.sha256() != golden[step])
      return "step " + std::to_string(step) + " differs from the save of an undisturbed run";
    try {
      SaveFolder().open(saves, run.getFolder(), !run.fallback().empty());
    } catch (const Error &error) {
      return std::string("a run cannot go on saving: ") + error.what();
    }
    return "";
  }

  /// Calls judge() for all trees that a power failure may leave after each call. Returns the first
  /// problem, or an empty text if there is no problem.
  std::string explore(const Recording &recording) {
    Disk disk(recording.before);
    std::string problem;
    uint64_t saved = recording.saved;
    for (size_t i = 0; problem.empty() && i <= recording.ops.size(); ++i) {
      disk.forEachState([&](const Tree &tree) {
        std::string key = std::to_string(saved);
        for (const auto &[name, content] : tree)
          key += "|" + name + "=" +
                 (content ? std::to_string(std::hash<std::string>()(*content)) : "folder");
        auto [verdict, isNew] = verdicts.try_emplace(sha256Text(key.data(), key.size()));
        if (isNew)
          verdict->second = judge(tree, saved);
        problem = verdict->second;
        return problem.empty();
      });
      if (!problem.empty())
        problem += "; a power failure after call " + std::to_string(i) +
                   (i ? ", " + recording.ops[i - 1].text(at("disk")) : std::string());
      if (i == recording.ops.size())
        break;
      const FileOp &op = recording.ops[i];
      if (op.kind == 's')
        saved = std::stoull(op.data.substr(sizeof "saved step"));
      else
        disk.perform(op, at("disk"));
    }
    return problem;
  }

  /// Checks that the model has the same files as the file system, so that no call was missed.
  void expectComplete(const Recording &recording) {
    Disk disk(recording.before);
    for (const FileOp &op : recording.ops)
      if (op.kind != 's')
        disk.perform(op, at("disk"));
    EXPECT_EQ(disk.current(), readTree(at("disk")));
    EXPECT_EQ(std::count_if(recording.ops.begin(), recording.ops.end(),
                            [](const FileOp &op) { return op.kind == 's'; }),
              static_cast<ptrdiff_t>(4 - recording.saved));
  }

  /// Explores a run that resumes from step 1 and saves step 2 again. Before the run, 'latest' names
  /// step `latest`, and the shell command `damage` changes `disk`.
  void expectReplaced(uint64_t latest, const std::string &damage, const std::string &options) {
    bash("mkdir disk; cp -r whole disk/saves; rm -r disk/saves/step-0000000[34]; " + damage);
    std::string line = saveName(latest) + " " + golden[latest] + "\n";
    writeFile(at("disk/saves/latest"), line.data(), line.size());
    Recording recording = record("--resume=disk/saves" + options, 1);
    expectComplete(recording);
    EXPECT_EQ(explore(recording), "");
  }

  std::map<uint64_t, std::string> golden; ///< hash of the index of each step
  fsdprt_artifact *artifact = nullptr;
  /// Results of judge(). The key is a hash of the tree and of the step that was saved.
  std::map<std::string, std::string> verdicts;
};
} // namespace

TEST_F(SaveCrash, NothingIsLost) {
  for (const char *options : {"", "--keep=1", "--keep=2 --processes"}) {
    bash("rm -rf disk");
    Recording recording = record(options);
    expectComplete(recording);
    EXPECT_EQ(explore(recording), "") << options;
  }
  std::printf("%zu states\n", verdicts.size());
  EXPECT_GT(verdicts.size(), 500u);
}

// A process died between the two renames of a save: the folder contains the save of step 2, but
// 'latest' names step 1. The run computes step 2 again.
TEST_F(SaveCrash, ReplacesASaveThatLatestDoesNotName) { expectReplaced(1, "true", ""); }

// The newest save is damaged. The run resumes from step 1 and replaces step 2.
TEST_F(SaveCrash, ReplacesADamagedSave) {
  expectReplaced(2, "truncate -s 99 disk/saves/step-00000002/rank-00001.safetensors", " --keep=1");
}

// Omits calls of fsync. A power failure can lose a save if a save does not flush one of its files,
// its own folder, or the parent of the folder of saves. If a single call that flushes the folder of
// saves or 'latest' is omitted, no save is lost, because a run without a valid 'latest' uses the
// newest undamaged save. If all calls that flush the folder of saves are omitted, a power failure
// can lose a save.
TEST_F(SaveCrash, FindsEveryMissingFlush) {
  Recording recording = record("--keep=1");
  auto isFlushOfSaves = [&](const FileOp &op) {
    return op.kind == 'f' && op.path == at("disk/saves");
  };
  size_t planted = 0;
  for (size_t i = 0; i < recording.ops.size(); ++i) {
    const FileOp &op = recording.ops[i];
    if (op.kind != 'f' || isFlushOfSaves(op) || op.path.find("/latest.") != op.path.npos)
      continue;
    Recording mutant = recording;
    mutant.ops.erase(mutant.ops.begin() + static_cast<ptrdiff_t>(i));
    EXPECT_NE(explore(mutant), "") << "without call " << i << ", " << op.text(at("disk"));
    ++planted;
  }
  EXPECT_EQ(planted, 4u * 4 + 1);
  Recording mutant = recording;
  mutant.ops.erase(std::remove_if(mutant.ops.begin(), mutant.ops.end(), isFlushOfSaves),
                   mutant.ops.end());
  EXPECT_NE(explore(mutant), "") << "without all flushes of the folder of saves";
  std::printf("%zu calls of fsync, %zu states\n", planted, verdicts.size());
}

// Moves the flush of a file of the second save to a place after the rename of the second save and
// the removal of the first save. A power failure can then lose both saves. A flush between the
// rename and the removal would lose no save, because a run would still find the first save.
TEST_F(SaveCrash, FindsAnEarlyRename) {
  Recording recording = record("--keep=1");
  std::vector<FileOp> &ops = recording.ops;
  auto flush = std::find_if(ops.begin(), ops.end(), [](const FileOp &op) {
    return op.kind == 'f' && op.path.find("/.step-00000002.tmp/rank-00000") != op.path.npos;
  });
  ASSERT_NE(flush, ops.end());
  FileOp late = *flush;
  late.path.replace(late.path.find("/.step-00000002.tmp/"), std::strlen("/.step-00000002.tmp/"),
                    "/step-00000002/");
  ops.erase(flush);
  auto said = std::find_if(ops.begin(), ops.end(), [](const FileOp &op) {
    return op.kind == 's' && op.data.rfind("saved step 2", 0) == 0;
  });
  ASSERT_NE(said, ops.end());
  ops.insert(said, late);
  EXPECT_NE(explore(recording).find("no save is found, though step 1 was saved"),
            std::string::npos);
}
