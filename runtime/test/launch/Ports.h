//===- Ports.h - Ports of a test on this machine -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_LAUNCH_PORTS_H
#define FSDPRT_TEST_LAUNCH_PORTS_H

#include "core/FutexEvent.h"
#include "launch/Rendezvous.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <random>
#include <set>

namespace fsdprt::test {

inline sockaddr_in local(uint32_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

/// Listens at a free port below the ephemeral ports, which connections of other tests could take.
inline Descriptor listenSomewhere(uint32_t &port) {
  static std::random_device random;
  static std::set<uint32_t> given;
  while (true) {
    port = 10000 + random() % 20000;
    Descriptor file(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = local(port);
    if (given.insert(port).second &&
        bind(file.get(), reinterpret_cast<sockaddr *>(&address), sizeof address) == 0 &&
        listen(file.get(), 8) == 0)
      return file;
  }
}

/// Returns a port without a listener.
inline uint32_t freePort() {
  uint32_t port;
  listenSomewhere(port);
  return port;
}

/// Waits for a listener at the port.
inline Descriptor connectTo(uint32_t port) {
  for (double limit = monotonicSeconds() + 30; monotonicSeconds() < limit; usleep(20000)) {
    Descriptor file(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = local(port);
    if (connect(file.get(), reinterpret_cast<sockaddr *>(&address), sizeof address) == 0)
      return file;
  }
  return Descriptor();
}

} // namespace fsdprt::test

#endif // FSDPRT_TEST_LAUNCH_PORTS_H
