//===- ShmHost.h - Connects the processes of a machine ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The host is the process that supervises the ranks. ShmHost creates the control block, and a
// channel to each rank. Before the ranks allocate memory, ShmHost compares their agreements. Later
// it sends the descriptor of each arena to all ranks. During the run, it receives the failures that
// ranks report.
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
  /// `collectives` is the number of collectives in the program that has the most collectives.
  ShmHost(uint32_t ranks, uint32_t collectives);
  /// Uses existing channels. `ends` contains, for each rank, the descriptor of the host's end.
  /// Takes ownership of the descriptors.
  ShmHost(const std::vector<int> &ends, uint32_t collectives);

  SharedControlBlock &getBoard() { return block; }
  uint32_t ranks() const { return static_cast<uint32_t>(members.size()); }
  /// Returns the descriptor of the rank's end of its channel. The caller must pass this descriptor
  /// to the process of the rank, and must then close it in this process.
  int takeEndOf(uint32_t rank);
  /// Receives messages from ranks and handles these messages. If no message is available, waits for
  /// a message for at most `seconds`.
  void serve(double seconds);
  bool areConnected() const { return connected; }
  /// Sends a refusal to all ranks that are not connected yet. These ranks then stop waiting.
  void refuse(const Error &reason);
  /// Sends the reason why the run ends to all ranks. Later, also sends this reason to each rank
  /// that reports a failure.
  void tell(const Error &reason);
  /// Returns true if the rank's end of the channel is closed, which means that the rank's process
  /// has ended.
  bool isGone(uint32_t rank) const { return members[rank].gone; }
  const std::optional<Error> &failureOf(uint32_t rank) const { return members[rank].failure; }
  const std::optional<Error> &getRefusal() const { return refused; }
  /// Returns the ranks from which the next message has not arrived yet, as a text such as "1, 3".
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
