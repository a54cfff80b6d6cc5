//===- InputStream.cpp - Bytes of a file or a pipe ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// If a named pipe were opened without O_NONBLOCK, open(2) would wait until a process opens the pipe
// for writing. With O_NONBLOCK, read(2) returns 0 while no process has opened the pipe for writing.
// read(2) fails with EAGAIN while a process has opened the pipe for writing but the pipe is empty.
//
//===----------------------------------------------------------------------===//

#include "fsdpcommon/InputStream.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

static constexpr int pauseMicroseconds = 20000, pausesWithoutWriter = 500,
                     millisecondsWithoutData = 600000;

/// Returns a text such as "16 MiB", or "5 bytes" if `bytes` is not a multiple of 1 MiB.
static std::string sizeText(uint64_t bytes) {
  bool isRound = bytes >> 20 && bytes % (1 << 20) == 0;
  return isRound ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes) + " bytes";
}

static std::string readAll(int file, bool isPipe, uint64_t most, std::string &bytes) {
  char part[1 << 16];
  int pauses = 0;
  bool began = false;
  for (uint64_t total = 0; total <= most;) {
    ssize_t count = ::read(file, part, sizeof part);
    if (count > 0) {
      began = true;
      total += static_cast<uint64_t>(count);
      bytes.append(part, static_cast<size_t>(count));
    } else if (count == 0) {
      if (began || !isPipe)
        return "";
      if (++pauses > pausesWithoutWriter)
        return "cannot be read: no process has written to this pipe within 10 seconds";
      ::usleep(pauseMicroseconds);
    } else if (errno == EAGAIN) {
      pollfd waiting{file, POLLIN, 0};
      if (::poll(&waiting, 1, millisecondsWithoutData) == 0)
        return "cannot be read: no data within 600 seconds";
      // A process has opened the pipe for writing. From now on, a result of 0 means the end of the
      // data.
      began = true;
    } else if (errno != EINTR) {
      return std::string("cannot be read: ") + std::strerror(errno);
    }
  }
  return "larger than " + sizeText(most);
}

std::string fsdpcommon::readInput(const std::string &path, uint64_t most, std::string &bytes) {
  int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0)
    return std::string("cannot be read: ") + std::strerror(errno);
  struct stat status;
  std::string why;
  if (::fstat(file, &status) != 0)
    why = std::string("cannot be read: ") + std::strerror(errno);
  else if (S_ISBLK(status.st_mode) || (S_ISCHR(status.st_mode) && !::isatty(file)))
    why = "cannot be read: expected a file or a pipe, found a device";
  else
    why = readAll(file, S_ISFIFO(status.st_mode), most, bytes);
  ::close(file);
  return why;
}
