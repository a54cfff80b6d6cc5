//===- SystemCalls.cpp - Restriction of system calls ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// libseccomp builds the filters. A forbidden system call raises SIGSYS, whose handler prints the
// name of the call. A filter cannot check the flags of clone3(), because they are in memory. The
// filter therefore makes clone3() fail with ENOSYS, and the C library then calls clone().
//
//===----------------------------------------------------------------------===//

#include "core/SystemCalls.h"
#include "core/Error.h"
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <type_traits>
#include <unistd.h>

using namespace fsdprt;

namespace {
struct Release {
  void operator()(void *filter) const { seccomp_release(filter); }
};
using Filter = std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, Release>;
} // namespace

/// System calls that no thread needs after the creation of a session.
static const char *const forbiddenInProcess[] = {"execve",
                                                 "execveat",
                                                 "fork",
                                                 "vfork",
                                                 "ptrace",
                                                 "process_vm_readv",
                                                 "process_vm_writev",
                                                 "pidfd_getfd",
                                                 "socket",
                                                 "socketpair",
                                                 "connect",
                                                 "bind",
                                                 "listen",
                                                 "accept",
                                                 "accept4",
                                                 "bpf",
                                                 "perf_event_open",
                                                 "userfaultfd",
                                                 "io_uring_setup",
                                                 "mount",
                                                 "umount2",
                                                 "pivot_root",
                                                 "chroot",
                                                 "setns",
                                                 "unshare",
                                                 "setuid",
                                                 "setgid",
                                                 "setreuid",
                                                 "setregid",
                                                 "setresuid",
                                                 "setresgid",
                                                 "setgroups",
                                                 "capset",
                                                 "init_module",
                                                 "finit_module",
                                                 "delete_module",
                                                 "kexec_load",
                                                 "kexec_file_load",
                                                 "reboot",
                                                 "keyctl",
                                                 "add_key",
                                                 "request_key",

                                                 "modify_ldt",
                                                 "personality"};

/// System calls that a thread with a filter may make. The thread needs these calls to run kernels
/// and to wait. All other calls are forbidden.
static const char *const allowedInThread[] = {"futex",
                                              "clock_gettime",
                                              "clock_nanosleep",
                                              "nanosleep",
                                              "sched_yield",
                                              "munmap",
                                              "madvise",
                                              "brk",
                                              "exit",
                                              "exit_group",
                                              "rt_sigreturn",
                                              "rt_sigprocmask",
                                              "sigaltstack",
                                              "gettid",
                                              "getpid",
                                              "tgkill",
                                              "restart_syscall",
                                              "rseq",
                                              "set_robust_list",
                                              "getcpu",
                                              "sched_getaffinity",
                                              "gettimeofday",
                                              "getrandom"};

static const char *const allowedWithFile[] = {"pread64",   "pwrite64", "preadv", "pwritev",
                                              "fdatasync", "fsync",    "fstat",  "newfstatat"};

/// Names of the system calls, by their numbers. The names are collected in advance, because the
/// signal handler cannot allocate memory.
static constexpr int mostCalls = 512;
static const char *names[mostCalls];

static void collectNames() {
  for (int number = 0; number < mostCalls; ++number)
    // This text is never freed.
    names[number] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
}

/// Handler of SIGSYS. Prints the name of the system call and ends the process. If several threads
/// make forbidden calls, prints only the first call. The other threads wait until the process ends.
static void refuse(int, siginfo_t *info, void *) {
  static std::atomic_flag refused = ATOMIC_FLAG_INIT;
  while (refused.test_and_set())
    ::sched_yield();
  int number = info->si_syscall;
  const char *name = number >= 0 && number < mostCalls ? names[number] : nullptr;
  const char *const parts[] = {"fsdp-run: error: --restrict-calls: refused the system call '",
                               name ? name : "unknown",
                               "'\nfsdp-run: note: the artifact's kernels need no such call: find "
                               "out who compiled the artifact\n"};
  char text[256] = "";
  size_t size = 0;
  for (const char *part : parts)
    for (const char *c = part; *c && size < sizeof text; ++c)
      text[size++] = *c;
  (void)!::write(STDERR_FILENO, text, size);
  ::_exit(FSDPRT_FAILED);
}

[[noreturn]] static void failFilter(const char *what, int error) {
  failed(
      "--restrict-calls: cannot %s a filter of system calls: %s; the kernel needs seccomp filters",
      what, strerror(-error));
}

static Filter makeFilter(uint32_t otherwise) {
  Filter filter(seccomp_init(otherwise));
  if (!filter)
    failFilter("create", -ENOMEM);
  return filter;
}

/// Adds a rule for the system call `call`. Does nothing if the architecture lacks the call.
template <typename... Comparisons>
static void add(const Filter &filter, uint32_t action, const char *call, Comparisons... where) {
  int number = seccomp_syscall_resolve_name(call);
  if (number == __NR_SCMP_ERROR)
    return;
  int error = seccomp_rule_add(filter.get(), action, number, sizeof...(where), where...);
  // libseccomp returns EACCES if `action` is the default action, which needs no rule.
  if (error != 0 && error != -EACCES)
    failFilter("build", error);
}

static void load(const Filter &filter) {
  if (int error = seccomp_load(filter.get()); error != 0)
    failFilter("install", error);
}

static void installHandler() {
  static std::once_flag once;
  std::call_once(once, [] {
    collectNames();
    struct sigaction action = {};
    action.sa_sigaction = refuse;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSYS, &action, nullptr);
  });
}

void fsdprt::restrictProcess() {
  static std::mutex mutex;
  static bool isInstalled = false;
  std::lock_guard lock(mutex);
  if (isInstalled)
    return;
  installHandler();
  Filter filter = makeFilter(SCMP_ACT_ALLOW);
  for (const char *call : forbiddenInProcess)
    add(filter, SCMP_ACT_TRAP, call);
  add(filter, SCMP_ACT_TRAP, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  add(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3");
  for (const char *call : {"mmap", "mprotect", "pkey_mprotect"})
    add(filter, SCMP_ACT_TRAP, call, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
  if (int error = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1); error != 0)
    failFilter("build", error);
  load(filter);
  isInstalled = true;
}

void fsdprt::restrictThread(bool usesFile) {
  installHandler();
  Filter filter = makeFilter(SCMP_ACT_TRAP);
  for (const char *call : allowedInThread)
    add(filter, SCMP_ACT_ALLOW, call);
  if (usesFile)
    for (const char *call : allowedWithFile)
      add(filter, SCMP_ACT_ALLOW, call);
  for (const char *call : {"mmap", "mprotect"})
    add(filter, SCMP_ACT_ALLOW, call, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
  add(filter, SCMP_ACT_ALLOW, "mremap");
  // The handler of SIGSYS writes its message to stderr.
  add(filter, SCMP_ACT_ALLOW, "write", SCMP_A0(SCMP_CMP_EQ, STDERR_FILENO, 0));
  load(filter);
}
