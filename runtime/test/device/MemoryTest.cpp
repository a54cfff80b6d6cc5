//===- MemoryTest.cpp - Memory limits of a run -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests how much memory the runtime considers available under the limits of control groups. Some
// tests write files that imitate control groups of version 1 and 2. Another test creates a real
// control group if the system allows it. A run under a memory limit must either succeed or be
// refused before its first step. The system must not kill the run.
//
//===----------------------------------------------------------------------===//

#include "core/MemoryLimits.h"
#include "fsdprt/fsdprt.h"
#include "test/Sanitized.h"
#include "test/run/RunFixture.h"
#include <fstream>
#include <functional>

using namespace fsdprt;
using namespace fsdprt::test;

static constexpr uint64_t mebibyte = uint64_t(1) << 20;

namespace {
/// Creates a folder that memoryLeft() reads instead of the root folder of the machine. According to
/// the files in the folder, 1 GiB of memory is available on the machine.
class ControlGroups : public Run {
protected:
  void SetUp() override {
    Run::SetUp();
    write("/proc/meminfo", "MemTotal: 2097152 kB\nMemFree: 1 kB\nMemAvailable: 1048576 kB\n");
  }
  void write(const std::string &path, const std::string &content) {
    std::string file = at("root") + path;
    ASSERT_EQ(std::system(("mkdir -p " + file.substr(0, file.rfind('/'))).c_str()), 0);
    std::ofstream(file) << content;
  }
  /// Writes the files of a control group of version 2. All numbers are in MiB, and "max" means that
  /// there is no limit. `cached` is the part of `used` that consists of cached files.
  void group2(const std::string &name, const std::string &limit, uint64_t used,
              uint64_t cached = 0) {
    std::string folder = "/sys/fs/cgroup" + name;
    write(folder + "/memory.max",
          limit == "max" ? "max\n" : std::to_string(std::stoull(limit) * mebibyte) + "\n");
    write(folder + "/memory.current", std::to_string(used * mebibyte) + "\n");
    write(folder + "/memory.stat", "anon 5\nfile 7\ninactive_file " +
                                       std::to_string(cached * mebibyte / 2) + "\nactive_file " +
                                       std::to_string(cached * mebibyte / 2) + "\n");
  }
  void expectLeft(uint64_t mebibytes, const std::string &says) {
    MemoryLeft left = memoryLeft(at("root"));
    EXPECT_EQ(left.bytes, mebibytes * mebibyte);
    EXPECT_EQ(left.says, says);
  }
};
} // namespace

TEST_F(ControlGroups, TheMachineAlone) {
  expectLeft(1024, "the machine has");
  write("/proc/self/cgroup", "0::/\n"); // The root group has no limit.
  expectLeft(1024, "the machine has");
  write("/proc/self/cgroup", "no line of this kind\n\n0:\n");
  expectLeft(1024, "the machine has");
  EXPECT_EQ(memoryLeft(at("nothing")).bytes, UINT64_MAX);
}

TEST_F(ControlGroups, Version2) {
  write("/proc/self/cgroup", "0::/job/step\n");
  group2("/job/step", "300", 100);
  expectLeft(200,
             "the control group /job/step (memory.max of 300.0 MiB (314,572,800 bytes)) leaves");
  group2("/job/step", "300", 100, 60); // The OS can free memory that caches files.
  expectLeft(260,
             "the control group /job/step (memory.max of 300.0 MiB (314,572,800 bytes)) leaves");
  group2("/job/step", "300", 400);
  expectLeft(0, "the control group /job/step (memory.max of 300.0 MiB (314,572,800 bytes)) leaves");
  group2("/job/step", "max", 100);
  expectLeft(1024, "the machine has");
  group2("/job/step", "9000", 100); // The limit exceeds the machine's memory.
  expectLeft(1024, "the machine has");
}

TEST_F(ControlGroups, TheGroupsAboveCount) {
  write("/proc/self/cgroup", "0::/job/step/task\n");
  group2("/job/step/task", "max", 1);
  group2("/job/step", "500", 100);
  group2("/job", "600", 350);
  expectLeft(250, "the control group /job (memory.max of 600.0 MiB (629,145,600 bytes)) leaves");
}

// In a container, /proc/self/cgroup can contain a path that exists only outside of the container.
TEST_F(ControlGroups, AContainersOwnIsItsRoot) {
  write("/proc/self/cgroup", "0::/system.slice/docker-0123.scope\n");
  group2("", "200", 50);
  expectLeft(150, "the control group / (memory.max of 200.0 MiB (209,715,200 bytes)) leaves");
  write("/proc/self/cgroup", "0::/../outside\n");
  expectLeft(150, "the control group / (memory.max of 200.0 MiB (209,715,200 bytes)) leaves");
}

TEST_F(ControlGroups, Version1) {
  write("/proc/self/cgroup", "9:name=systemd:/user\n4:cpu,memory:/job/step\n3:cpuset:/job\n0::/\n");
  std::string folder = "/sys/fs/cgroup/memory/job/step";
  write(folder + "/memory.limit_in_bytes", std::to_string(300 * mebibyte) + "\n");
  write(folder + "/memory.usage_in_bytes", std::to_string(120 * mebibyte) + "\n");
  write(folder + "/memory.stat", "cache 9\ninactive_file 1\ntotal_inactive_file " +
                                     std::to_string(15 * mebibyte) + "\ntotal_active_file " +
                                     std::to_string(5 * mebibyte) + "\n");
  expectLeft(200, "the control group /job/step (memory.limit_in_bytes of 300.0 MiB (314,572,800 "
                  "bytes)) leaves");
  write(folder + "/memory.limit_in_bytes",
        "9223372036854771712\n"); // in version 1 of control groups, this number means no limit
  expectLeft(1024, "the machine has");
}

namespace {
class LimitedRun : public Run {
protected:
  static constexpr uint64_t arena = 64 * mebibyte;

  void SetUp() override {
    Run::SetUp();
    ToyOptions options;
    options.shards = 2;
    auto manifest = toyManifest(options);
    manifest.layouts[0]->arena_bytes = arena;
    auto file = pack(manifest);
    writeFile(at("toybig.fsdp"), file.data(), file.size());
    for (const char *mount : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
      std::string folder = std::string(mount) + "/fsdprt-test-" + std::to_string(getpid());
      if (bash("mkdir " + folder + " 2>/dev/null") != 0)
        continue;
      for (const char *name : {"/memory.limit_in_bytes", "/memory.max"})
        if (bash("test -w " + folder + name) == 0) {
          group = folder, limit = folder + name;
          return;
        }
      bash("rmdir " + folder);
    }
  }
  void TearDown() override {
    if (!group.empty())
      EXPECT_EQ(
          bash("for i in $(seq 50); do rmdir " + group + " && exit 0; sleep 0.1; done; exit 1"), 0);
    Run::TearDown();
  }

  /// Runs fsdp-run under memory limits that exceed the size of the arenas by 0, `step`, 2 * `step`
  /// and so on up to `most` MiB. Each run must either succeed or be refused with a message that
  /// contains `words`. At least one run must succeed, and at least one run must be refused.
  /// `restrict` returns the shell command that limits memory to a number of bytes.
  void sweep(uint64_t step, uint64_t most, const std::vector<std::string> &words,
             const std::function<std::string(uint64_t)> &restrict) {
    for (std::string how : {"", " --processes"}) {
      int refused = 0, fine = 0;
      for (uint64_t room = 0; room <= most; room += step) {
        std::string limits = restrict(2 * arena + room * mebibyte);
        EXPECT_EQ(bash("(" + limits + "; exec timeout 120 " FSDP_RUN " toybig.fsdp --steps=2" +
                       how + ") > log 2>&1; echo $? > code"),
                  0);
        std::string code = text("code"), log = text("log");
        ++(code == "0\n" ? fine : refused);
        if (code == "0\n")
          continue;
        EXPECT_EQ(code, "1\n") << room << " MiB beside them:\n" << log;
        for (const std::string &word : words)
          EXPECT_NE(log.find(word), std::string::npos) << room << "\n" << log;
      }
      EXPECT_GT(refused, 0) << how;
      EXPECT_GT(fine, 0) << how;
    }
  }

  std::string group, limit; ///< paths of a control group and of its limit file; or empty
};
} // namespace

TEST_F(LimitedRun, IsRefusedOrEndsWell) {
  if (group.empty())
    GTEST_SKIP() << "no control group for memory can be made here";
  sweep(8, 96, {"toybig.fsdp: the plan needs 128.0 MiB", "the control group /fsdprt-test-"},
        [&](uint64_t bytes) {
          EXPECT_EQ(bash("echo " + std::to_string(bytes) + " > " + limit), 0);
          return "echo $BASHPID > " + group + "/cgroup.procs";
        });
}

TEST_F(LimitedRun, AddressSpaceIsRefusedOrEndsWell) {
  if (isSanitized)
    GTEST_SKIP() << "a sanitizer needs address space of its own";
  sweep(16, 192, {"the limit of this process (ulimit -v) leaves"},
        [](uint64_t bytes) { return "ulimit -v " + std::to_string(bytes / 1024); });
}

TEST_F(LimitedRun, TakesNoMoreFromStepToStep) {
  if (isThreadSanitized)
    GTEST_SKIP() << "the memory of ThreadSanitizer grows, too";
  for (std::string how : {"", " --processes"}) {
    expect(0, "other memory of the process: ", "toy3.fsdp --steps=200" + how);
    expect(0, "memory besides the arenas: grew by 0 bytes after the first step",
           "toy3.fsdp --steps=200" + how);
  }
}
