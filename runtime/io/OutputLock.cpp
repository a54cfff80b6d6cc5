//===- OutputLock.cpp - Exclusive use of an output file ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// bind(2) fails if another process has bound a socket to the same name. The option SO_PEERCRED of a
// connection to that socket then contains the id of the process.
//
//===----------------------------------------------------------------------===//

#include "io/OutputLock.h"
#include "core/Error.h"
#include "core/HashText.h"
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

using namespace fsdprt;
using ull = unsigned long long;
namespace fs = std::filesystem;

/// Returns the abstract socket name for a file, or an empty text for a device or pipe.
static std::string nameOf(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    return "";
  std::error_code error;
  fs::path file = fs::absolute(path, error).lexically_normal();
  if (error || stat(file.parent_path().c_str(), &status) != 0)
    return "";
  std::string where =
      format("%llu:%llu/", (ull)status.st_dev, (ull)status.st_ino) + file.filename().string();
  return "fsdp-run/output/" + sha256Text(where.data(), where.size());
}

/// Returns a text with the id of the process that has bound a socket, such as " (process 42)".
/// Returns an empty text if the process is unknown.
static std::string ownerOf(const sockaddr_un &address, socklen_t bytes) {
  int file = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  ucred who = {};
  socklen_t size = sizeof who;
  bool known = connect(file, reinterpret_cast<const sockaddr *>(&address), bytes) == 0 &&
               getsockopt(file, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.pid > 0;
  if (file >= 0)
    ::close(file);
  return known ? format(" (process %d)", static_cast<int>(who.pid)) : "";
}

OutputLock::OutputLock(const std::string &path, const char *option) {
  std::string name = nameOf(path);
  if (name.empty())
    return;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // The first byte of an abstract name is 0.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  socklen_t bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0)
    failed("%s: cannot create a socket: %s", path.c_str(), strerror(errno));
  if (bind(socket, reinterpret_cast<const sockaddr *>(&address), bytes) == 0) {
    listen(socket, 8);
    return;
  }
  bool taken = errno == EADDRINUSE;
  ::close(std::exchange(socket, -1));
  if (taken)
    badInput("%s: another run%s writes this file; choose another file for %s, or wait until that "
             "run has ended",
             path.c_str(), ownerOf(address, bytes).c_str(), option);
}

OutputLock::~OutputLock() {
  if (socket >= 0)
    ::close(socket);
}
