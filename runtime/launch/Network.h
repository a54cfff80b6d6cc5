//===- Network.h - System calls of the rendezvous ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rendezvous uses only this interface to listen, to connect, to wait, and to read the clock. A
// test can therefore replace the clock and run the processes in all possible orders (test/explore).
// Reads from sockets and writes to sockets do not use this interface.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_NETWORK_H
#define FSDPRT_LAUNCH_NETWORK_H

#include <cstddef>
#include <poll.h>
#include <sys/socket.h>

namespace fsdprt {

class Network {
public:
  virtual ~Network();
  /// Returns the time of a monotonic clock in seconds.
  virtual double now();
  virtual void sleep(double seconds);
  /// Waits until at least one of `count` descriptors is ready, but at most for `seconds`. Returns
  /// the number of descriptors that are ready.
  virtual int poll(pollfd *wanted, size_t count, double seconds);
  /// Returns a descriptor that listens at an address. On failure, sets errno and returns -1.
  virtual int listen(const sockaddr_storage &address, socklen_t bytes, int type);
  virtual int accept(int listener, int flags);
  /// Connects a socket. Returns 0 or -1, as connect(2) does.
  virtual int connect(int file, const sockaddr_storage &address, socklen_t bytes);

  /// Returns the network that the rendezvous currently uses.
  static Network &get();
  /// Replaces the network that get() returns, for tests. If `network` is null, get() returns the
  /// network of the operating system again.
  static void replace(Network *network);
};

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_NETWORK_H
