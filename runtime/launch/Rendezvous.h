//===- Rendezvous.h - Connecting ranks of other launchers --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Processes that only know their rank and an address are connected like the processes that fsdp-run
// --processes starts: each has one end of a Unix socket, and one process, the host, has the other
// ends.
//
//     rank                                        host, on the machine of rank 0
//     connect, until a process listens
//     hello (rank, ranks, job, machine)    -->    checks that it is a missing rank of this job
//                                          <--    missing (which ranks), every half second
//                                                 waits for all, checks that they share a machine
//                                          <--    welcome (name of a Unix socket), or refusal
//     connect to that socket, send rank    -->    checks the user; this is the rank's channel
//
// Frames have a fixed size and begin with a magic number; data without it comes from another
// program. Unix sockets have abstract names, so that nothing is left in the file system. All ranks
// are told the reason of a refusal. A process of another job is rejected, and the rendezvous goes
// on.
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

/// Owns a descriptor and closes it.
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

/// Message between a rank and the host until each rank has its channel.
struct Frame {
  enum Kind : uint32_t { hello = 1, missing, welcome, refusal };
  static constexpr char expected[] = "fsdpmt2"; // The digit is the version of the frames.

  char magic[8] = {};
  uint32_t interface = 0, kind = 0, rank = 0, ranks = 0, process = 0;
  int32_t status = 0;
  double secondsLeft = 0;                // seconds until the rank's time limit
  char machine[128] = {}, host[64] = {}; // host: machine name, for messages
  char job[160] = {}, session[64] = {};  // see Environment.h
  char text[1024] = {};

  static Frame make(Kind kind);
  /// Sets the fields that identify this process.
  void introduce(const LaunchPlace &place);
  bool isOurs() const;
  /// Returns the whole text, without control characters.
  std::string words() const;
};

/// Reads a frame that may arrive in pieces.
class FrameReader {
public:
  enum class State { partial, complete, foreign, end };
  /// Reads the available bytes without waiting.
  State read(int file);
  const Frame &get() const { return frame; }
  /// Starts a new frame.
  void clear() { got = 0; }
  bool hasSome() const { return got > 0; }

private:
  Frame frame;
  size_t got = 0;
};

/// Sends a frame without waiting, because the few frames fit a socket's buffer. Returns false on
/// failure.
bool sendFrame(int file, const Frame &frame);

/// An address to listen at or connect to, and its text for messages.
struct MeetingAddress {
  sockaddr_storage address = {};
  socklen_t bytes = 0;
  std::string text;

  static MeetingAddress abstract(const std::string &name);
  /// Returns the addresses of MASTER_ADDR, or the abstract name of a place. Throws Error if the
  /// name does not exist. If a later lookup may succeed, returns no address and sets `problem`.
  static std::vector<MeetingAddress> of(const LaunchPlace &place, std::string &problem);
};

/// Connects to an address as rank 0 of a place would, and returns the refusal of the process that
/// listens there. Returns an empty text if fsdp-run does not listen there.
std::string askWhoListens(const MeetingAddress &address, const LaunchPlace &place);

/// Returns an identity of this machine, equal for processes that may share memory.
std::string machineIdentity();
/// Returns the machine's name, for messages.
std::string machineName();
/// Returns the process at the other end of a Unix socket, or nothing if it belongs to another user.
std::optional<int> processBehind(int file);

/// Connects to the other ranks and returns this rank's end of its channel. After `seconds` throws
/// Error, which names the missing ranks.
int attendRendezvous(const LaunchPlace &place, double seconds);

/// Tells the other ranks that this rank fails, and why, if it can reach them within `seconds`.
void refuseRendezvous(const LaunchPlace &place, const Error &reason, double seconds);

/// The host's side of the rendezvous.
class RendezvousHost {
public:
  /// Listens at the place; throws Error if it cannot. If another process listens there and `asks`
  /// is true, asks for that process's identity, which also tells it that there are two ranks 0.
  RendezvousHost(const LaunchPlace &place, double seconds, bool asks = true);
  int listener() const { return listening.get(); }

  struct Member {
    Descriptor channel;
    int process = 0;
  };
  /// Connects all ranks and returns a member for each, in the order of ranks. On failure tells the
  /// connected ranks, and throws Error.
  std::vector<Member> gather();
  /// Tells the connected ranks, and those that connect soon, that the rendezvous fails. Does not
  /// wait for the ranks in `told`.
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
