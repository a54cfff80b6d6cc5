//===- Channel.h - Messages between two processes ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One end of a Unix socket pair; a message may carry a descriptor. What a rank and the process that
// started it say to each other:
//
//     rank                                      host
//     hello (version, ranks, agreement)  -->    all there, all the same?
//                                        <--    welcome + control block, or refusal
//     arena (bytes, schedule) + memfd    -->    all there, the same schedule?
//                                        <--    a peer + memfd, for every rank, or refusal
//     failure (status, text)             -->    at any time
//
// and join (rank), by which a rank that another launcher started takes its end
// (launch/Rendezvous.h).
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
  char text[6144] = {}; // as much of it is sent as is used
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
  /// The other end is gone.
  bool isClosed() const;
  /// Both ends of a new one. Neither is inherited by other programs.
  static void pair(int (&ends)[2]);

  /// Returns false when the other end is gone.
  bool send(const Message &message, int attached = -1);
  enum class Received { message, nothing, end };
  /// Waits at most so long. `attached` becomes the descriptor that came along, or -1.
  Received receive(Message &message, int &attached, double seconds);

private:
  int file;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_CHANNEL_H
