/*===- FailPoint.c - Fails or kills a process at its k-th file operation -*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This library is preloaded with LD_PRELOAD. It counts the calls that change files below the folder
// FAIL_IN. With FAIL_HOW=kill, the process is killed before call number FAIL_AT. With
// FAIL_HOW=full, call number FAIL_AT and all later calls that need disk space fail with ENOSPC.
// With FAIL_HOW=io, they fail with EIO. With FAIL_HOW=replace, the file FAIL_OTHER is opened
// instead of existing files of the folder. The library writes a line for each call to the file
// FAIL_LOG. If FAIL_RANK is set, the library has an effect only in this rank.
//
//===----------------------------------------------------------------------===*/

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static int calls;
static char names[1024][256]; /* names of open files below FAIL_IN, by descriptor */

#define NEXT(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

/* Returns 1 if FAIL_RANK is unset or equals the rank of this process. */
static int isMeant(void) {
  static int known; /* 0: not computed yet, 1: the ranks differ, 2: the ranks are equal */
  const char *rank = getenv("FAIL_RANK");
  if (!rank || known)
    return known != 1;
  char line[4096], wanted[64];
  snprintf(wanted, sizeof wanted, "--launched-rank=%s", rank);
  int fd = NEXT(open)("/proc/self/cmdline", O_RDONLY);
  ssize_t size = fd >= 0 ? read(fd, line, sizeof line - 1) : 0;
  if (fd >= 0)
    NEXT(close)(fd);
  line[size > 0 ? size : 0] = 0;
  const char *own = getenv("RANK"); /* set by launchers such as torchrun */
  if (!own)
    own = getenv("OMPI_COMM_WORLD_RANK");
  known = own && strcmp(own, rank) == 0 ? 2 : 1;
  for (ssize_t i = 0; i < size; i += (ssize_t)strlen(line + i) + 1)
    if (strcmp(line + i, wanted) == 0)
      known = 2;
  return known == 2;
}

static int isBelow(const char *path) {
  const char *folder = getenv("FAIL_IN");
  if (!isMeant())
    return 0;
  return folder && path && strstr(path, folder) != NULL;
}

/* Counts a call. Returns 1 if the call must fail. */
static int passes(const char *what, const char *path, int needsRoom) {
  const char *at = getenv("FAIL_AT"), *how = getenv("FAIL_HOW"), *log = getenv("FAIL_LOG");
  pthread_mutex_lock(&guard);
  int number = ++calls, limit = at ? atoi(at) : 0;
  if (log) {
    char line[400];
    int size = snprintf(line, sizeof line, "%s %s\n", what, path);
    int fd = NEXT(open)(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd >= 0) {
      if (NEXT(write)(fd, line, (size_t)size) < 0)
        abort();
      NEXT(close)(fd);
    }
  }
  if (limit && number >= limit && how && strcmp(how, "kill") == 0)
    raise(SIGKILL);
  pthread_mutex_unlock(&guard);
  int fails = how && (strcmp(how, "full") == 0 || strcmp(how, "io") == 0);
  if (!limit || number < limit || !needsRoom || !fails)
    return 0;
  errno = strcmp(how, "io") == 0 ? EIO : ENOSPC;
  return 1;
}

int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  const char *how = getenv("FAIL_HOW");
  if (isBelow(path) && !(flags & O_CREAT) && how && strcmp(how, "replace") == 0)
    path = getenv("FAIL_OTHER");
  if (isBelow(path) && (flags & O_CREAT) && passes("open", path, 1))
    return -1;
  int fd = NEXT(open)(path, flags, mode);
  if (fd >= 0 && fd < 1024)
    snprintf(names[fd], sizeof names[fd], "%s", isBelow(path) ? path : "");
  return fd;
}

int close(int fd) {
  if (fd >= 0 && fd < 1024)
    names[fd][0] = 0;
  return NEXT(close)(fd);
}

ssize_t write(int fd, const void *data, size_t size) {
  if (fd >= 0 && fd < 1024 && names[fd][0] && passes("write", names[fd], 1))
    return -1;
  return NEXT(write)(fd, data, size);
}

int fsync(int fd) {
  if (fd >= 0 && fd < 1024 && names[fd][0] && passes("fsync", names[fd], 1))
    return -1;
  return NEXT(fsync)(fd);
}

int mkdir(const char *path, mode_t mode) {
  if (isBelow(path) && passes("mkdir", path, 1))
    return -1;
  return NEXT(mkdir)(path, mode);
}

int rename(const char *from, const char *to) {
  if (isBelow(to) && passes("rename", to, 1))
    return -1;
  return NEXT(rename)(from, to);
}

int unlinkat(int folder, const char *path, int flags) {
  passes("unlinkat", path, 0); /* Counts all folders, because only saves remove files. */
  return NEXT(unlinkat)(folder, path, flags);
}

int unlink(const char *path) {
  if (isBelow(path))
    passes("unlink", path, 0);
  return NEXT(unlink)(path);
}
