//===- ShmHost.h - Brings processes of a machine together -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The process that starts the ranks has one: it makes the control block and a channel to each rank,
// compares what they say of themselves, before any of them takes memory, and hands each rank's
// arena to all. Later it gets their failures.
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
  /// `collectives` is the most that the programs have.
  ShmHost(uint32_t ranks, uint32_t collectives);
  /// Of ranks that have their ends already: these are the others, which are taken.
  ShmHost(const std::vector<int> &ends, uint32_t collectives);

  SharedControlBlock &getBoard() { return block; }
  uint32_t ranks() const { return static_cast<uint32_t>(members.size()); }
  /// The rank's end of its channel, to be given to it and closed here.
  int takeEndOf(uint32_t rank);
  /// Takes what ranks have sent, waiting at most so long.
  void serve(double seconds);
  bool areConnected() const { return connected; }
  /// Ends the waits of ranks that are not connected yet.
  void refuse(const Error &reason);
  /// Tells all ranks why the run ends, and each again that says that it has failed.
  void tell(const Error &reason);
  /// Its end of the channel is closed: the process is gone.
  bool isGone(uint32_t rank) const { return members[rank].gone; }
  /// A message that the rank sent when it failed; or why all were refused.
  const std::optional<Error> &failureOf(uint32_t rank) const { return members[rank].failure; }
  const std::optional<Error> &getRefusal() const { return refused; }
  /// The ranks that have not come as far as the others wait for: "1, 3".
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
