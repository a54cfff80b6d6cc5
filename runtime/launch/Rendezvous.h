//===- Rendezvous.h - Connecting ranks of other launchers --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Connects processes that initially have only their rank and the host's address. Afterwards, each
// rank has a channel to the host, as do the ranks that `fsdp-run --processes` starts.
//
//     rank                                        host, on the machine of rank 0
//     connect, until a process listens
//     hello (rank, ranks, job, machine)    -->    checks that it is a missing rank of this job
//                                          <--    missing (which ranks), every half second
//                                                 waits for all, checks that they share a machine
//                                          <--    welcome (name of a Unix socket), or refusal
//     connect to that socket, send rank    -->    checks the user; this is the rank's channel
//
// Frames have a fixed size and begin with a magic number. Data without the magic number is from
// another program. Unix sockets have abstract names, so that no files remain. If the rendezvous
// fails, the host sends the reason to all ranks. If a process of another job connects, the host
// rejects the process, and the rendezvous continues.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_RENDEZVOUS_H
#define FSDPRT_LAUNCH_RENDEZVOUS_H

#include "collectives/Channel.h"
#include "core/Error.h"
#include "launch/Environment.h"
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

/// Message between a rank and the host before the rank has its channel.
struct Frame {
  enum Kind : uint32_t { hello = 1, missing, welcome, refusal };
  static constexpr char expected[] = "fsdpmt2"; // The digit is the version of the frame format.

  char magic[8] = {};
  uint32_t interface = 0, kind = 0, rank = 0, ranks = 0, process = 0;
  int32_t status = 0;
  double secondsLeft = 0;                ///< time until the rank stops waiting
  char machine[128] = {}, host[64] = {}; ///< results of machineIdentity() and machineName()
  char job[160] = {}, session[64] = {};  ///< members of LaunchPlace
  char text[1024] = {};

  static Frame make(Kind kind);
  /// Sets the members that identify this process.
  void introduce(const LaunchPlace &place);
  bool isOurs() const;
  /// Returns `text` without control characters.
  std::string words() const;
};

/// Reads a frame, which may arrive in several parts.
class FrameReader {
public:
  enum class State { partial, complete, foreign, end };
  /// Reads the available bytes without waiting.
  State read(int file);
  const Frame &get() const { return frame; }
  void clear() { got = 0; }
  bool hasSome() const { return got > 0; }

private:
  Frame frame;
  size_t got = 0;
};

/// Sends a frame without waiting, because all frames of a rendezvous fit in the buffer of a socket.
/// Returns false on failure.
bool sendFrame(int file, const Frame &frame);

/// An address to listen at or to connect to, and a text for messages.
struct MeetingAddress {
  sockaddr_storage address = {};
  socklen_t bytes = 0;
  std::string text;

  static MeetingAddress abstract(const std::string &name);
  /// Returns the address for place.meetingName or, if this name is empty, all addresses of the host
  /// place.address. Throws Error if the host name does not exist. If the lookup fails for another
  /// reason, sets `problem` and returns no address, because a later call may succeed.
  static std::vector<MeetingAddress> of(const LaunchPlace &place, std::string &problem);
};

/// Connects to an address as the rank of `place`, and returns the message with which the listening
/// process refuses the connection. Returns an empty text if that process is not fsdp-run.
std::string askWhoListens(const MeetingAddress &address, const LaunchPlace &place);

/// Returns a text that identifies this machine. Processes that can share memory get equal texts.
std::string machineIdentity();
/// Returns the host name, for messages.
std::string machineName();
/// Returns the id of the process at the other end of a Unix socket, or nullopt if that process
/// belongs to another user.
std::optional<int> processBehind(int file);

/// Connects this rank and returns the descriptor of its channel to the host. If ranks are still
/// missing after `seconds`, throws Error with the numbers of these ranks.
int attendRendezvous(const LaunchPlace &place, double seconds);

/// Reports to the other ranks that this rank has failed with `reason`. Tries for at most `seconds`.
void refuseRendezvous(const LaunchPlace &place, const Error &reason, double seconds);

class RendezvousHost {
public:
  /// Listens at `place`, or throws Error. If another process listens there and `asks` is true,
  /// calls askWhoListens(), so that the other process detects a second rank 0.
  RendezvousHost(const LaunchPlace &place, double seconds, bool asks = true);
  int listener() const { return listening.get(); }

  struct Member {
    Descriptor channel;
    int process = 0;
  };
  /// Connects all ranks and returns one Member per rank, in the order of ranks. On failure, calls
  /// refuse() and throws Error.
  std::vector<Member> gather();
  /// Sends `reason` to the connected ranks and, if its status is FSDPRT_BAD_INPUT, to ranks that
  /// connect within some seconds. `told` are the ranks that need no message.
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
  std::string turnedAway; ///< last rejected process of another job, for messages
  double limit, seconds, lastTold = 0;
  Descriptor listening;
  std::vector<std::unique_ptr<Guest>> guests;
};

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_RENDEZVOUS_H
