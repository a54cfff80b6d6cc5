//===- Rendezvous.h - Connecting ranks of other launchers --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Connects processes that initially know only their own rank and the address of the host.
// Afterwards each rank has a channel to the host. Ranks that `fsdp-run --processes` starts have the
// same kind of channel.
//
//     rank                                        host, on the machine of rank 0
//     connect, until a process listens
//     hello (rank, ranks, job, machine)    -->    checks that it is a missing rank of this job
//                                          <--    missing (which ranks), every half second
//                                                 waits for all, checks that they share a machine
//                                          <--    welcome (name of a Unix socket), or refusal
//     connect to that socket, send rank    -->    checks the user; this is the rank's channel
//
// The messages are frames (RendezvousFrame.h). Unix sockets have abstract names, so that no files
// remain. If the rendezvous fails, the host sends the reason to all ranks. If a process that
// belongs to another job connects, the host rejects this process and continues the rendezvous.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_RENDEZVOUS_H
#define FSDPRT_LAUNCH_RENDEZVOUS_H

#include "collectives/Channel.h"
#include "core/Error.h"
#include "launch/Environment.h"
#include "launch/RendezvousFrame.h"
#include <memory>
#include <set>
#include <sys/socket.h>
#include <vector>

namespace fsdprt {

class Descriptor {
public:
  explicit Descriptor(int file = -1) : file(file) {}
  ~Descriptor();
  Descriptor(Descriptor &&other) noexcept : file(other.release()) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(file, other.file);
    return *this;
  }
  int get() const { return file; }
  bool isOpen() const { return file >= 0; }
  int release() { return std::exchange(file, -1); }

private:
  int file;
};

/// An address to listen at or to connect to, and a text for messages.
struct MeetingAddress {
  sockaddr_storage address = {};
  socklen_t bytes = 0;
  std::string text;

  static MeetingAddress abstract(const std::string &name);
  /// Returns the address that place.meetingName names. If this name is empty, returns all addresses
  /// of the machine place.address. Throws Error if the host name does not exist. If the lookup
  /// fails for another reason, sets `problem` and returns no address. The caller may try again.
  static std::vector<MeetingAddress> of(const LaunchPlace &place, std::string &problem);
};

/// Connects to an address as the rank of `place`. Returns the message with which the process that
/// listens there refuses the connection. Returns an empty text if that process does not refuse the
/// connection, or is not fsdp-run.
std::string askWhoListens(const MeetingAddress &address, const LaunchPlace &place);

/// Returns a text that identifies this machine. Two processes that can share memory get the same
/// text.
std::string machineIdentity();
std::string machineName();
/// Returns the id of the process at the other end of a Unix socket, or nullopt if that process
/// belongs to another user.
std::optional<int> processBehind(int file);

/// Connects this rank and returns the descriptor of its channel to the host. If ranks are still
/// missing after `seconds`, throws Error with the numbers of these ranks.
int attendRendezvous(const LaunchPlace &place, double seconds);

/// Reports to the other ranks that this rank has failed with `reason`. Tries to do so for at most
/// `seconds`.
void refuseRendezvous(const LaunchPlace &place, const Error &reason, double seconds);

class RendezvousHost {
public:
  /// Listens at `place`, or throws Error. If another process already listens there and `asks` is
  /// true, calls askWhoListens(). That process then notices that there is a second rank 0.
  RendezvousHost(const LaunchPlace &place, double seconds, bool asks = true);
  int listener() const { return listening.get(); }

  struct Member {
    Descriptor channel;
    int process = 0;
  };
  /// Connects all ranks and returns one Member per rank, in the order of ranks. On failure, calls
  /// refuse() and throws Error.
  std::vector<Member> gather();
  /// Sends `reason` to the connected ranks. If the status of `reason` is FSDPRT_BAD_INPUT, also
  /// sends it to ranks that connect during the next seconds. Does not wait for the ranks in `told`.
  void refuse(const Error &reason, std::set<uint32_t> told = {});

private:
  struct Guest {
    explicit Guest(Descriptor connection) : connection(std::move(connection)) {}
    Descriptor connection;
    FrameReader reader;
    bool isKnown = false;
    Frame hello;
  };
  void await(double until);
  void acceptAll();
  void readAll();
  std::string otherJob(const Frame &hello) const;
  bool turnAway(const Guest &guest);
  void admit(Guest &guest);
  [[noreturn]] void takeRefusal(Guest &guest);
  void checkMachines() const;
  void tellMissing();
  std::set<uint32_t> findEnded(const std::vector<Member> &members);
  void acceptMembers(int door, std::vector<Member> &members);
  void welcome(std::vector<Member> &members);
  std::string missing() const;
  uint32_t numKnown() const;
  const Guest *find(uint32_t rank) const;

  LaunchPlace place;
  std::string turnedAway; ///< text about the last rejected process of another job
  double limit, seconds, lastTold = 0;
  Descriptor listening;
  std::vector<std::unique_ptr<Guest>> guests;
};

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_RENDEZVOUS_H
