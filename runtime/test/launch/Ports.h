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
#include <string>
#include <sys/un.h>
#include <vector>

namespace fsdprt::test {

inline sockaddr_in local(uint32_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

/// Claims a port. While this process runs, the function returns false in all other processes that
/// try to claim the port. The claim is a socket whose name contains the port number. The system
/// closes the socket when the process ends.
inline bool claimPort(uint32_t port) {
  static std::vector<Descriptor> claims;
  Descriptor claim(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  std::string text = "fsdp-test-port-" + std::to_string(port);
  // The name begins with a zero byte, so the socket has no file.
  text.copy(name.sun_path + 1, sizeof name.sun_path - 1);
  socklen_t size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  if (bind(claim.get(), reinterpret_cast<sockaddr *>(&name), size) != 0)
    return false;
  claims.push_back(std::move(claim));
  return true;
}

/// Listens at a free port that no other test has claimed. The number of the port is below the
/// system's ephemeral ports.
inline Descriptor listenSomewhere(uint32_t &port) {
  static std::random_device random;
  while (true) {
    port = 10000 + random() % 20000;
    if (!claimPort(port))
      continue;
    Descriptor file(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = local(port);
    if (bind(file.get(), reinterpret_cast<sockaddr *>(&address), sizeof address) == 0 &&
        listen(file.get(), 8) == 0)
      return file;
  }
}

/// Returns a port at which no process listens, and claims this port for this process.
inline uint32_t freePort() {
  uint32_t port;
  listenSomewhere(port);
  return port;
}

/// Connects to a port. Waits up to 30 s until a process listens there.
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
