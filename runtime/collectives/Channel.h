//===- Channel.h - Messages between two processes ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A channel is a pair of Unix sockets that are connected with each other. Each of two processes has
// one of the sockets. A message may carry a file descriptor. A rank and the host, which is the
// process that supervises the ranks, exchange these messages:
//
//     rank                                      host
//     hello (version, ranks, agreement)  -->    waits for the hellos of all ranks, compares them
//                                        <--    welcome + control block, or refusal
//     arena (bytes, schedule) + memfd    -->    waits for all ranks, compares the schedules
//                                        <--    one peer + memfd per rank, or refusal
//     failure (status, text)             -->    at any time
//
// If a launcher other than the host has started the rank, the rank connects to a socket of the
// host. The first message of the rank is then `join`, which contains the number of the rank, and
// the connection becomes the channel of the rank (launch/Rendezvous.h).
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_CHANNEL_H
#define FSDPRT_COLLECTIVES_CHANNEL_H

#include <cstddef>
#include <cstdint>
#include <utility>

namespace fsdprt {

struct Message {
  enum Kind : uint32_t { hello = 1, welcome, arena, peer, refusal, failure, join };
  uint32_t kind = 0, rank = 0;
  uint64_t version = 0, ranks = 0, bytes = 0, schedule = 0;
  int32_t status = 0;
  char text[6144] = {}; ///< The text is sent only up to its terminating zero.
};

class Channel {
public:
  explicit Channel(int descriptor) : file(descriptor) {}
  ~Channel();
  Channel(Channel &&other) noexcept : file(other.file) { other.file = -1; }
  Channel(const Channel &) = delete;
  Channel &operator=(const Channel &) = delete;

  int descriptor() const { return file; }
  int release() { return std::exchange(file, -1); }
  /// Returns true if the other process has closed its end of the channel.
  bool isClosed() const;
  /// Creates a channel and sets `ends` to its descriptors. If the process executes another program,
  /// that program does not inherit the descriptors. Throws Error if no channel can be created.
  static void pair(int (&ends)[2]);

  /// Sends a message with the descriptor `attached`, or without a descriptor if `attached` is -1.
  /// Returns false if the other process has closed its end.
  bool send(const Message &message, int attached = -1);
  enum class Received { message, nothing, end };
  /// Waits for a message for at most `seconds`. Sets `attached` to the descriptor that the message
  /// carries, or to -1 if the message carries none.
  Received receive(Message &message, int &attached, double seconds);

private:
  int file;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_CHANNEL_H
