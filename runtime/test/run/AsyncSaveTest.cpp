//===- AsyncSaveTest.cpp - Saves while training continues -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests three levels: the class BackgroundTask, the class Saver in the process of the test, and
// runs of fsdp-run. Saves that are written while training continues must be equal to saves that are
// complete before the next step. SaveCallsTest.cpp contains tests that kill a run at every system
// call of a save.
//
//===----------------------------------------------------------------------===//

#include "core/AllocationCount.h"
#include "core/Error.h"
#include "fsdprt/train.h"
#include "test/Sanitized.h"
#include "test/run/RunFixture.h"
#include "train/BackgroundTask.h"
#include "train/Handles.h"
#include "train/SaveFolder.h"
#include "train/Saver.h"
#include <csignal>
#include <future>
#include <sys/resource.h>

using namespace fsdprt;
using namespace fsdprt::test;

TEST(BackgroundTask, EndsBeforeItsResultIsUsed) {
  BackgroundTask task;
  EXPECT_TRUE(task.hasEnded());
  std::promise<void> gate;
  int value = 0;
  bool uncounted = false;
  task.start([&, open = gate.get_future().share()](const BackgroundTask::Cancelled &) {
    open.wait();
    value = 7;
    uncounted = areAllocationsUncounted;
  });
  EXPECT_FALSE(task.hasEnded());
  EXPECT_FALSE(task.hasFailed());
  gate.set_value();
  task.finish();
  EXPECT_EQ(value, 7);
  EXPECT_TRUE(uncounted);
  EXPECT_FALSE(areAllocationsUncounted);
  EXPECT_TRUE(task.hasEnded());
}

TEST(BackgroundTask, ThrowsItsErrorOnce) {
  BackgroundTask task;
  task.start([](const BackgroundTask::Cancelled &) { failed("file: cannot write"); });
  while (!task.hasEnded())
    sched_yield();
  EXPECT_TRUE(task.hasFailed());
  EXPECT_THROW(task.finish(), Error);
  EXPECT_FALSE(task.hasFailed());
  task.finish();
  // After a failure, the task can be started again.
  int calls = 0;
  task.start([&](const BackgroundTask::Cancelled &) { ++calls; });
  task.finish();
  EXPECT_EQ(calls, 1);
}

TEST(BackgroundTask, IsCancelledByItsDestructor) {
  bool sawEnd = false;
  {
    BackgroundTask task;
    task.start([&](const BackgroundTask::Cancelled &cancelled) {
      while (!cancelled)
        sched_yield();
      sawEnd = true;
      failed("an error that nobody reads");
    });
  }
  EXPECT_TRUE(sawEnd);
}

namespace {
class AsyncSaver : public Run {
protected:
  AsyncSaver() { useFastFiles(); }
  void SetUp() override {
    Run::SetUp();
    open("async2.fsdp");
  }
  void open(const std::string &name) {
    session.reset();
    fsdprt_artifact *opened = nullptr;
    call(fsdprt_artifact_open, at(name).c_str(), &opened);
    artifact.reset(opened);
    fsdprt_session_options options = {};
    options.struct_size = sizeof options;
    options.device = "cpu";
    options.backend = "local";
    options.channel = -1;
    fsdprt_session *made = nullptr;
    call(fsdprt_session_create, static_cast<const fsdprt_artifact *>(artifact.get()),
         static_cast<const fsdprt_session_options *>(&options), &made);
    session.reset(made);
    call(fsdprt_session_run, session.get(), "init");
  }
  /// Sets all elements of parameter 0.
  void fill(float value) {
    std::vector<float> values(91, value);
    call(fsdprt_session_write_param, session.get(), uint64_t(0), FSDPRT_PARAMETER, uint64_t(0),
         uint64_t(91), static_cast<const void *>(values.data()), FSDPRT_F32);
  }
  /// Returns the value of all elements of parameter 0 in a save.
  float valueIn(const std::string &save) {
    fsdprt_resumed resumed = {};
    resumed.struct_size = sizeof resumed;
    call(fsdprt_saves_resume, static_cast<const fsdprt_artifact *>(artifact.get()), session.get(),
         save.c_str(), "async2.fsdp", 0, &resumed);
    std::vector<float> values(91);
    call(fsdprt_session_read_param, static_cast<const fsdprt_session *>(session.get()), 0u,
         uint64_t(0), FSDPRT_PARAMETER, uint64_t(0), uint64_t(91),
         static_cast<void *>(values.data()), values.size() * sizeof(float));
    EXPECT_EQ(values, std::vector<float>(91, values[0]));
    return values[0];
  }
  static RunState stepNumber(uint64_t step) {
    RunState state;
    state.step = step;
    return state;
  }
  void start(Saver &saver, uint64_t step) {
    saver.start(stepNumber(step), session.get(), [] {});
  }
  FinishedSave pollToTheEnd(Saver &saver) {
    for (;;)
      if (std::optional<FinishedSave> done = saver.poll(session.get()))
        return *done;
      else
        sched_yield();
  }
  std::string list() {
    EXPECT_EQ(bash("ls -A s > list"), 0);
    return text("list");
  }
  void openIn(Saver &saver) { saver.open(at("s"), "", false, 0, artifact.get(), std::nullopt); }

  ArtifactHandle artifact;
  SessionHandle session;
};

/// As long as the object exists, files that this process writes cannot become larger than `bytes`.
class FileLimit {
public:
  explicit FileLimit(uint64_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit small = {bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, SIG_DFL);
  }

private:
  rlimit before;
};
} // namespace

TEST_F(AsyncSaver, HasTheStatesOfItsStart) {
  Saver saver;
  openIn(saver);
  EXPECT_FALSE(saver.poll(session.get()));
  fill(3);
  start(saver, 1);
  EXPECT_TRUE(saver.isBusy());
  fill(4); // as the next step would change the parameter
  FinishedSave done = pollToTheEnd(saver);
  EXPECT_EQ(done.step, 1u);
  EXPECT_GT(done.bytes, 1000u);
  EXPECT_FALSE(saver.isBusy());
  EXPECT_FALSE(saver.wait(session.get()));
  EXPECT_EQ(list(), "latest\nstep-00000001\n");
  EXPECT_EQ(valueIn(at("s")), 3);
}

TEST_F(AsyncSaver, IsNoSaveBeforeItsEndIsSeen) {
  Saver saver;
  openIn(saver);
  start(saver, 1);
  EXPECT_EQ(list(), ".step-00000001.tmp\n");
  std::optional<FinishedSave> done = saver.wait(session.get());
  ASSERT_TRUE(done);
  EXPECT_EQ(done->step, 1u);
  EXPECT_EQ(list(), "latest\nstep-00000001\n");
}

TEST_F(AsyncSaver, LeavesNothingWhenItIsDestroyed) {
  {
    Saver saver;
    openIn(saver);
    saver.save(stepNumber(1), session.get(), [] {});
    fill(9);
    start(saver, 2);
  }
  EXPECT_EQ(list(), "latest\nstep-00000001\n");
}

TEST_F(AsyncSaver, ReportsItsFailureAtTheNextStep) {
  Saver saver;
  openIn(saver);
  fill(1);
  saver.save(stepNumber(1), session.get(), [] {});
  {
    FileLimit limit(100);
    start(saver, 2);
    try {
      pollToTheEnd(saver);
      FAIL() << "expected an error";
    } catch (const Error &error) {
      EXPECT_EQ(error.status, FSDPRT_FAILED);
      EXPECT_EQ(std::string(error.what()),
                "step 2 could not be saved: " + at("s/.step-00000002.tmp/rank-00000.safetensors") +
                    ": cannot write: File too large; earlier saves are untouched");
    }
  }
  EXPECT_FALSE(saver.isBusy());
  EXPECT_EQ(list(), "latest\nstep-00000001\n");
  // After the cause of the failure has been removed, the saver works again.
  fill(5);
  start(saver, 3);
  EXPECT_EQ(saver.wait(session.get())->step, 3u);
  EXPECT_EQ(valueIn(at("s")), 5);
}

TEST_F(AsyncSaver, OfTheCInterfaceWaitsForTheSaveInFlight) {
  fsdprt_saver *saver = nullptr;
  std::string folder = at("s");
  call(fsdprt_saver_open, static_cast<const fsdprt_artifact *>(artifact.get()),
       static_cast<const fsdprt_session *>(session.get()), folder.c_str(),
       static_cast<const fsdprt_resumed *>(nullptr), uint64_t(0), &saver);
  int32_t busy = -1;
  call(fsdprt_saver_poll, saver, session.get(), &busy);
  EXPECT_EQ(busy, 0);
  call(fsdprt_saver_wait, saver, session.get());
  for (uint64_t step : {1, 2, 3}) {
    fill(static_cast<float>(step));
    call(fsdprt_saver_start, saver, session.get(), step, uint64_t(0));
    if (step > 1) {
      EXPECT_EQ(bash("test -e s/step-0000000" + std::to_string(step - 1)), 0);
    }
  }
  fill(4);
  call(fsdprt_saver_save, saver, session.get(), uint64_t(4), uint64_t(0));
  call(fsdprt_saver_start, saver, session.get(), uint64_t(5), uint64_t(0));
  fsdprt_saver_close(saver);
  EXPECT_EQ(list(), "latest\nstep-00000001\nstep-00000002\nstep-00000003\nstep-00000004\n");
  for (int step : {1, 2, 3, 4})
    EXPECT_EQ(valueIn(folder + "/step-0000000" + std::to_string(step)), step);
}

TEST_F(AsyncSaver, NeedsMemoryInThePlan) {
  fsdprt_artifact_info info = {};
  info.struct_size = sizeof info;
  fsdprt_artifact_get_info(artifact.get(), &info);
  EXPECT_EQ(info.snapshot_bytes, 2u * 64 * 4);
  open("toy2.fsdp");
  fsdprt_artifact_get_info(artifact.get(), &info);
  EXPECT_EQ(info.snapshot_bytes, 0u);
  fsdprt_state_memory memory = {};
  memory.struct_size = sizeof memory;
  try {
    call(fsdprt_session_get_snapshot, static_cast<const fsdprt_session *>(session.get()), 0u,
         uint64_t(0), &memory);
    FAIL() << "expected an error";
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("compile with --async-save"), std::string::npos)
        << error.what();
  }
}

namespace {
class AsyncRun : public Run {
protected:
  AsyncRun() { useFastFiles(); }
};
} // namespace

TEST_F(AsyncRun, LeavesTheSameFiles) {
  // When the thread of a save starts, sanitizers allocate memory. The thread can exclude only its
  // own later allocations from the count.
  std::string check = isSanitized ? "" : " --assert-no-allocations";
  for (std::string ranks : {"1", "2", "4"}) {
    std::string common =
        "async" + ranks + ".fsdp --steps=9 --save-every=2 --metrics=m" + ranks + check;
    expect(0, "saved step 9", common + " --save=a" + ranks + " --wait-for-saves --export=a.st");
    expect(0, "4 saves while training continued", common + " --save=b" + ranks + " --export=b.st");
    EXPECT_NE(text("m" + ranks).find("\"save_stall_ms\":"), std::string::npos);
    expect(0, "saved step 9", common + " --save=c" + ranks + " --export=c.st --processes");
    for (std::string other : {"b", "c"}) {
      EXPECT_EQ(bash("diff -r a" + ranks + " " + other + ranks), 0) << ranks << other;
      EXPECT_EQ(bash("cmp a.st " + other + ".st"), 0) << ranks << other;
    }
    // If a run resumes from a save that was written while training continued, its results are the
    // same.
    expect(0, "resumed after step 4",
           common + " --resume=b" + ranks + "/step-00000004 --save=d" + ranks + " --export=d.st");
    EXPECT_EQ(bash("cmp a.st d.st"), 0);
    EXPECT_EQ(bash("diff -r a" + ranks + "/step-00000009 d" + ranks + "/step-00000009"), 0);
  }
}

TEST_F(AsyncRun, KeepsTheNewestSaves) {
  expect(0, "saved step 8", "async2.fsdp --steps=8 --save-every=1 --keep=2 --save=s");
  EXPECT_EQ(bash("[ \"$(ls -A s)\" = \"latest\nstep-00000007\nstep-00000008\" ]"), 0);
}

TEST_F(AsyncRun, EndsWithTheErrorOfAnotherProcess) {
  // The only file that cannot be written is rank 1's file of the second save.
  Result result = run("async2.fsdp --steps=2000 --save-every=2 --save=s --processes",
                      "LD_PRELOAD=" FSDPRT_FAILPOINT " FAIL_HOW=full FAIL_AT=1 FAIL_IN=s"
                      "/.step-00000004.tmp/rank-00001");
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_NE(result.output.find("step 4 could not be saved: rank 1: s/.step-00000004.tmp/"
                               "rank-00001.safetensors: cannot write: No space left on device; "
                               "earlier saves are untouched"),
            std::string::npos)
      << result.output;
  EXPECT_EQ(bash("[ \"$(ls -A s)\" = \"latest\nstep-00000002\" ]"), 0);
  expect(0, "resumed after step 2", "async2.fsdp --steps=4 --save=s --resume=s --processes");
}
