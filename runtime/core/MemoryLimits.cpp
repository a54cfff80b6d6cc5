//===- MemoryLimits.cpp - Available memory ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// /proc/self/cgroup names the control group of this process. With version 2 of control groups, the
// line for group /a/b is "0::/a/b". With version 1, the line of the memory controller is
// "4:memory:/a/b". The group and each of its parent groups may have a limit. The processes of a
// group may still allocate the group's limit minus the group's usage. Cached files do not count as
// usage, because the kernel can evict them. In a container, the path in the line may exist only on
// the host. Groups that do not exist are skipped. The root group is always checked, because a
// container sees its own group as the root group.
//
//===----------------------------------------------------------------------===//

#include "core/MemoryLimits.h"
#include "core/Error.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace fsdprt;

/// Finds the first line of a file that consists of `key` and a number, and sets `value` to this
/// number. Returns false if the file has no such line.
static bool readNumber(const std::string &path, const char *key, uint64_t &value) {
  std::FILE *file = std::fopen(path.c_str(), "re");
  if (!file)
    return false;
  char line[256];
  bool found = false;
  size_t length = std::strlen(key);
  while (!found && std::fgets(line, sizeof line, file))
    found = std::strncmp(line, key, length) == 0 && std::sscanf(line + length, "%lu", &value) == 1;
  std::fclose(file);
  return found;
}

namespace {
/// Names of files and keys in one version of control groups. The folder `mount` belongs to the root
/// group. The folder of each group contains the files `limit` and `usage`.
struct Hierarchy {
  const char *mount, *limit, *usage;
  const char *cached[2]; ///< keys in memory.stat for the sizes of cached files
};
} // namespace

static constexpr Hierarchy version2 = {
    "/sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file ", "active_file "}};
static constexpr Hierarchy version1 = {"/sys/fs/cgroup/memory",
                                       "memory.limit_in_bytes",
                                       "memory.usage_in_bytes",
                                       {"total_inactive_file ", "total_active_file "}};

/// Computes how many bytes the processes of `group` may still allocate. Replaces `least` if the
/// number in `least` is larger.
static void consider(const Hierarchy &names, const std::string &root, const std::string &group,
                     MemoryLeft &least) {
  std::string folder = root + names.mount + group + "/";
  uint64_t limit, used, cached = 0, bytes;
  if (!readNumber(folder + names.limit, "", limit) || !readNumber(folder + names.usage, "", used))
    return; // the group does not exist, or its limit is "max"
  for (const char *key : names.cached)
    cached += readNumber(folder + "memory.stat", key, bytes) ? bytes : 0;
  used -= std::min(used, cached);
  bytes = limit > used ? limit - used : 0;
  if (bytes < least.bytes)
    least = {bytes,
             format("the control group %s (%s of %s) leaves", group.empty() ? "/" : group.c_str(),
                    names.limit, bytesText(limit).c_str())};
}

/// Sets `group` to the path in `line`, a line of /proc/self/cgroup such as "4:memory:/a/b". Returns
/// the names of the version of control groups that wrote the line, or null if the line is not about
/// memory.
static const Hierarchy *hierarchyOf(const std::string &line, std::string &group) {
  size_t first = line.find(':'), second = line.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos)
    return nullptr;
  group = line.substr(second + 1);
  std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
  return controllers == ",,"                                 ? &version2
         : controllers.find(",memory,") != std::string::npos ? &version1
                                                             : nullptr;
}

static void considerGroups(const std::string &root, MemoryLeft &least) {
  std::FILE *file = std::fopen((root + "/proc/self/cgroup").c_str(), "re");
  if (!file)
    return;
  char text[4608]; // A line consists of a number, controllers and a path.
  while (std::fgets(text, sizeof text, file)) {
    std::string line(text, std::strcspn(text, "\n")), group;
    const Hierarchy *names = hierarchyOf(line, group);
    if (!names)
      continue;
    while (!group.empty() && group.back() == '/')
      group.pop_back();
    for (;; group.erase(group.rfind('/'))) {
      consider(*names, root, group, least);
      if (group.find('/') == std::string::npos)
        break;
    }
  }
  std::fclose(file);
}

MemoryLeft fsdprt::memoryLeft(const std::string &root) {
  MemoryLeft least = {UINT64_MAX, "the machine has"};
  uint64_t kilobytes;
  if (readNumber(root + "/proc/meminfo", "MemAvailable:", kilobytes))
    least.bytes = kilobytes * 1024;
  considerGroups(root, least);
  return least;
}

uint64_t fsdprt::addressSpaceLeft() {
  rlimit limit = {};
  uint64_t mapped;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      !readNumber("/proc/self/status", "VmSize:", mapped))
    return UINT64_MAX;
  mapped *= 1024;
  return limit.rlim_cur > mapped ? limit.rlim_cur - mapped : 0;
}

uint64_t fsdprt::threadStackBytes() {
  rlimit limit = {};
  bool known = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known ? limit.rlim_cur : uint64_t(8) << 20;
}

/// Returns the value of the line `name` in /proc/self/status, in bytes, or 0 if the file has no
/// such line. Allocates no memory.
static uint64_t readStatus(const char *name) {
  char text[4096];
  int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t size = file >= 0 ? read(file, text, sizeof text - 1) : -1;
  if (file >= 0)
    close(file);
  text[std::max<ssize_t>(size, 0)] = '\0';
  const char *line = std::strstr(text, name);
  return line ? std::strtoull(line + std::strlen(name), nullptr, 10) * 1024 : 0;
}

uint64_t fsdprt::privateBytes() { return readStatus("\nVmData:"); }

uint64_t fsdprt::peakResidentBytes() { return readStatus("\nVmHWM:"); }
