/*===- FileRecorder.c - Records the file operations of a process -*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This library is preloaded with LD_PRELOAD. It records each successful call that changes or
// flushes a file below the folder RECORD_IN (an absolute path). Records are appended to the file
// RECORD_TO in the order in which the calls return. Several processes may append to the same file.
// The library also records each line on standard output that begins with "saved step". A record,
// which CrashStates.h reads, consists of
//
//     kind (1) | path bytes (4) | second path bytes (4) | offset (8) | data bytes (8) | the bytes
//
//===----------------------------------------------------------------------===*/

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define NEXT(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))
#define PATH 1024

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static int isBelow(const char *path) {
  const char *folder = getenv("RECORD_IN");
  size_t length = folder ? strlen(folder) : 0;
  return length && strncmp(path, folder, length) == 0 && (path[length] == '/' || !path[length]);
}

/* Sets `path` to the absolute path of `name`. `name` may be relative to an open folder. */
static void resolve(int folder, const char *name, char *path) {
  char base[PATH] = "";
  if (name[0] == '/') {
    snprintf(path, PATH, "%s", name);
    return;
  }
  if (folder == AT_FDCWD) {
    if (!getcwd(base, sizeof base))
      abort();
  } else {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t size = readlink(link, base, sizeof base - 1);
    base[size > 0 ? size : 0] = 0;
  }
  while (strncmp(name, "./", 2) == 0)
    name += 2;
  if (snprintf(path, PATH, "%s%s%s", base, *name ? "/" : "", name) >= PATH)
    abort();
}

/* Appends a record with one call of writev. */
static void record(char kind, const char *path, const char *other, uint64_t offset,
                   const void *data, uint64_t size) {
  int error = errno;
  uint32_t lengths[2] = {(uint32_t)strlen(path), (uint32_t)strlen(other)};
  uint64_t numbers[2] = {offset, size};
  struct iovec parts[] = {{&kind, 1},
                          {lengths, sizeof lengths},
                          {numbers, sizeof numbers},
                          {(void *)path, lengths[0]},
                          {(void *)other, lengths[1]},
                          {(void *)data, size}};
  size_t total = 1 + sizeof lengths + sizeof numbers + lengths[0] + lengths[1] + size;
  int log = NEXT(open)(getenv("RECORD_TO"), O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (log < 0 || writev(log, parts, 6) != (ssize_t)total)
    abort();
  NEXT(close)(log);
  errno = error;
}

/* Records a call on a path, if the path is below the folder. */
static void note(char kind, int folder, const char *name, uint64_t offset, const void *data,
                 uint64_t size) {
  char path[PATH];
  int error = errno;
  resolve(folder, name, path);
  if (isBelow(path))
    record(kind, path, "", offset, data, size);
  errno = error;
}

static void noteTwo(char kind, int fromFolder, const char *from, int toFolder, const char *to) {
  char first[PATH], second[PATH];
  resolve(fromFolder, from, first);
  resolve(toFolder, to, second);
  if (isBelow(second))
    record(kind, first, second, 0, "", 0);
}

/* Calls the real function under the lock, so that records have the order of the calls. */
#define CALLED(type, expression)                                                                   \
  pthread_mutex_lock(&guard);                                                                      \
  type result = (expression);

#define DONE                                                                                       \
  pthread_mutex_unlock(&guard);                                                                    \
  return result

static int opened(int folder, const char *path, int flags, mode_t mode) {
  if (!(flags & (O_CREAT | O_TRUNC)))
    return NEXT(openat)(folder, path, flags, mode);
  struct stat status;
  int existed = fstatat(folder, path, &status, 0) == 0;
  CALLED(int, NEXT(openat)(folder, path, flags, mode));
  if (result >= 0 && !existed)
    note('c', folder, path, 0, "", 0);
  else if (result >= 0 && (flags & O_TRUNC) && S_ISREG(status.st_mode))
    note('t', folder, path, 0, "", 0);
  DONE;
}

#define MODE                                                                                       \
  va_list arguments;                                                                               \
  va_start(arguments, flags);                                                                      \
  mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;                                   \
  va_end(arguments)

int open(const char *path, int flags, ...) {
  MODE;
  return opened(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  MODE;
  return opened(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
  MODE;
  return opened(folder, path, flags, mode);
}

ssize_t write(int fd, const void *data, size_t size) {
  if (fd == 1 && size > 10 && memcmp(data, "saved step", 10) == 0)
    record('s', "", "", 0, data, size);
  CALLED(ssize_t, NEXT(write)(fd, data, size));
  off_t end = fd > 2 && result > 0 ? lseek(fd, 0, SEEK_CUR) : -1;
  if (end >= 0)
    note('w', fd, "", (uint64_t)(end - result), data, (uint64_t)result);
  DONE;
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  CALLED(ssize_t, NEXT(pwrite)(fd, data, size, offset));
  if (result > 0)
    note('w', fd, "", (uint64_t)offset, data, (uint64_t)result);
  DONE;
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
  return pwrite(fd, data, size, offset);
}
int ftruncate(int fd, off_t size) {
  CALLED(int, NEXT(ftruncate)(fd, size));
  if (result == 0)
    note('t', fd, "", (uint64_t)size, "", 0);
  DONE;
}
int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }
int fsync(int fd) {
  CALLED(int, NEXT(fsync)(fd));
  if (result == 0)
    note('f', fd, "", 0, "", 0);
  DONE;
}
int fdatasync(int fd) {
  CALLED(int, NEXT(fdatasync)(fd));
  if (result == 0)
    note('f', fd, "", 0, "", 0);
  DONE;
}
int mkdir(const char *path, mode_t mode) {
  CALLED(int, NEXT(mkdir)(path, mode));
  if (result == 0)
    note('m', AT_FDCWD, path, 0, "", 0);
  DONE;
}
int rename(const char *from, const char *to) {
  CALLED(int, NEXT(rename)(from, to));
  if (result == 0)
    noteTwo('r', AT_FDCWD, from, AT_FDCWD, to);
  DONE;
}
int renameat(int fromFolder, const char *from, int toFolder, const char *to) {
  CALLED(int, NEXT(renameat)(fromFolder, from, toFolder, to));
  if (result == 0)
    noteTwo('r', fromFolder, from, toFolder, to);
  DONE;
}
int link(const char *from, const char *to) {
  CALLED(int, NEXT(link)(from, to));
  if (result == 0)
    noteTwo('l', AT_FDCWD, from, AT_FDCWD, to);
  DONE;
}
int unlinkat(int folder, const char *path, int flags) {
  CALLED(int, NEXT(unlinkat)(folder, path, flags));
  if (result == 0)
    note('u', folder, path, 0, "", 0);
  DONE;
}
int unlink(const char *path) {
  CALLED(int, NEXT(unlink)(path));
  if (result == 0)
    note('u', AT_FDCWD, path, 0, "", 0);
  DONE;
}
int rmdir(const char *path) {
  CALLED(int, NEXT(rmdir)(path));
  if (result == 0)
    note('u', AT_FDCWD, path, 0, "", 0);
  DONE;
}
int remove(const char *path) {
  CALLED(int, NEXT(remove)(path));
  if (result == 0)
    note('u', AT_FDCWD, path, 0, "", 0);
  DONE;
}
