//===- ShmHost.h - Connects the processes of a machine ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The host is the process that supervises the ranks. ShmHost creates the control block and a
// channel to each rank. It compares the agreements of the ranks before they allocate memory, and
// sends the descriptor of each arena to all ranks. Later it receives the failures of ranks.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_SHM_SHMHOST_H
#define FSDPRT_COLLECTIVES_SHM_SHMHOST_H

#include "collectives/Channel.h"
#include "collectives/shm/SharedControlBlock.h"
#include <optional>
#include <poll.h>

namespace fsdprt {

class ShmHost {
public:
  /// `collectives` is the largest number of collectives in a program.
  ShmHost(uint32_t ranks, uint32_t collectives);
  /// Uses existing channels. Takes ownership of `ends`, the descriptors of the host's ends by rank.
  ShmHost(const std::vector<int> &ends, uint32_t collectives);

  SharedControlBlock &getBoard() { return block; }
  uint32_t ranks() const { return static_cast<uint32_t>(members.size()); }
  /// Returns the descriptor of the rank's end of its channel. The caller must pass it to the
  /// process of the rank and close it in this process.
  int takeEndOf(uint32_t rank);
  /// Handles messages of ranks. Waits at most `seconds` for the first message.
  void serve(double seconds);
  bool areConnected() const { return connected; }
  /// Sends a refusal to all ranks that are not connected yet, so that their waits end.
  void refuse(const Error &reason);
  /// Sends the reason why the run ends to all ranks, and later to each rank that reports a failure.
  void tell(const Error &reason);
  /// Returns true if the rank's end of its channel is closed, because the process has ended.
  bool isGone(uint32_t rank) const { return members[rank].gone; }
  const std::optional<Error> &failureOf(uint32_t rank) const { return members[rank].failure; }
  const std::optional<Error> &getRefusal() const { return refused; }
  /// Returns the ranks that have not sent the expected message yet, as text such as "1, 3".
  std::string missing() const;

private:
  struct Member {
    explicit Member(int descriptor) : channel(descriptor) {}
    Channel channel;
    int otherEnd = -1, arena = -1;
    std::optional<Message> hello, memory;
    std::optional<Error> failure;
    bool gone = false;
  };
  void take(uint32_t rank, const Message &message, int attached);
  void welcomeAll();
  void introduceAll();

  SharedControlBlock block;
  std::vector<Member> members;
  std::vector<pollfd> wanted;
  std::optional<Error> refused;
  std::optional<Message> verdict;
  bool welcomed = false, connected = false;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_SHM_SHMHOST_H
