//===- Network.cpp - System calls of the rendezvous -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "launch/Network.h"
#include "core/FutexEvent.h"
#include <cerrno>
#include <unistd.h>

using namespace fsdprt;

Network::~Network() = default;

double Network::now() { return monotonicSeconds(); }

void Network::sleep(double seconds) { usleep(static_cast<useconds_t>(seconds * 1e6)); }

int Network::poll(pollfd *wanted, size_t count, double seconds) {
  return ::poll(wanted, count, static_cast<int>(seconds * 1000));
}

int Network::listen(const sockaddr_storage &address, socklen_t bytes, int type) {
  int file = socket(address.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1;
  if (file < 0)
    return -1;
  if (address.ss_family != AF_UNIX)
    setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(file, reinterpret_cast<const sockaddr *>(&address), bytes) == 0 &&
      ::listen(file, SOMAXCONN) == 0)
    return file;
  int reason = errno;
  close(file);
  errno = reason;
  return -1;
}

int Network::accept(int listener, int flags) { return accept4(listener, nullptr, nullptr, flags); }

int Network::connect(int file, const sockaddr_storage &address, socklen_t bytes) {
  return ::connect(file, reinterpret_cast<const sockaddr *>(&address), bytes);
}

static Network *replacement = nullptr;

Network &Network::get() {
  static Network system;
  return replacement ? *replacement : system;
}

void Network::replace(Network *network) { replacement = network; }
