//===- Rendezvous.h - How processes of other launchers meet ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Processes that know their rank and a place to meet, and nothing of each other, get what fsdp-run
// --processes gives to those that it starts: one end of a Unix socket each, whose other ends one
// process has, the host.
//
//     rank                                        host, of the machine where rank 0 is
//     connect, until somebody listens
//     hello (rank, ranks, job, machine)    -->    is it one of this job that is missing?
//                                          <--    missing (which ranks), every half second
//                                                 all there, all of one machine?
//                                          <--    welcome (name of a Unix socket),  or refusal
//     connect to that, say the rank        -->    the same user? then this is the rank's channel
//
// Frames are of a fixed size and begin with a magic number, so that something else at the other end
// is told from it. Unix sockets have abstract names: nothing is left in the file system. What is
// refused, all ranks are told. A process of another job is turned away alone, and changes nothing
// for the ranks of this one.
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

/// A descriptor that is closed.
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

/// What the two sides say to each other until each rank has its channel.
struct Frame {
  enum Kind : uint32_t { hello = 1, missing, welcome, refusal };
  static constexpr char expected[] = "fsdpmt2"; // the digit is the version of the frames

  char magic[8] = {};
  uint32_t interface = 0, kind = 0, rank = 0, ranks = 0, process = 0;
  int32_t status = 0;
  double secondsLeft = 0;                // of the rank's progress timeout
  char machine[128] = {}, host[64] = {}; // host is for people
  char job[160] = {}, session[64] = {};  // Environment.h
  char text[1024] = {};

  static Frame make(Kind kind);
  /// Says who this process is, at a place.
  void introduce(const LaunchPlace &place);
  bool isOurs() const;
  /// The text in full, but no control characters.
  std::string words() const;
};

/// A frame that comes in pieces.
class FrameReader {
public:
  enum class State { partial, complete, foreign, end };
  /// Takes what is there without waiting.
  State read(int file);
  const Frame &get() const { return frame; }
  /// Begins anew.
  void clear() { got = 0; }
  bool hasSome() const { return got > 0; }

private:
  Frame frame;
  size_t got = 0;
};

/// Sends without waiting: frames are few, and smaller than a socket's buffer.
bool sendFrame(int file, const Frame &frame);

/// An address to listen at or to connect to, and its words.
struct MeetingAddress {
  sockaddr_storage address = {};
  socklen_t bytes = 0;
  std::string text;

  static MeetingAddress abstract(const std::string &name);
  /// All that a place's MASTER_ADDR stands for, or its abstract name. Throws Error when it does not
  /// resolve; none, and `problem`, when that may change.
  static std::vector<MeetingAddress> of(const LaunchPlace &place, std::string &problem);
};

/// Asks whoever listens at an address who that is, as rank 0 of a place would. Empty: no process of
/// fsdp-run answers.
std::string askWhoListens(const MeetingAddress &address, const LaunchPlace &place);

/// This machine: what may share memory has the same. For people: its name.
std::string machineIdentity();
std::string machineName();
/// The process at the other end of a Unix socket; nothing when it is of another user.
std::optional<int> processBehind(int file);

/// Meets the other ranks; returns this rank's end of its channel. Throws Error, with the ranks that
/// are missing, when that takes more than `seconds`.
int attendRendezvous(const LaunchPlace &place, double seconds);

/// Tells the others, if they are met within `seconds`, that this rank does not come, and why.
void refuseRendezvous(const LaunchPlace &place, const Error &reason, double seconds);

/// What the host does.
class RendezvousHost {
public:
  /// Listens. Throws Error when that cannot be. `asks`: when another process listens there, asks it
  /// who it is, and thereby tells it that there are two ranks 0.
  RendezvousHost(const LaunchPlace &place, double seconds, bool asks = true);
  int listener() const { return listening.get(); }

  struct Member {
    Descriptor channel;
    int process = 0;
  };
  /// Brings all ranks together: one member for each, in order. Throws Error, which those that came
  /// have been told.
  std::vector<Member> gather();
  /// Tells those that have come, and those that come soon, that there will be no meeting; the ranks
  /// `told` need not be.
  void refuse(const Error &reason, std::set<uint32_t> told = {});

private:
  struct Guest {
    explicit Guest(Descriptor connection) : connection(std::move(connection)) {}
    Descriptor connection;
    FrameReader reader;
    bool isKnown = false;
    Frame hello;
  };
  void await(int extra, double until);
  void acceptAll();
  void readAll();
  std::string otherJob(const Frame &hello) const;
  bool turnAway(const Guest &guest);
  void admit(Guest &guest);
  [[noreturn]] void takeRefusal(Guest &guest);
  void checkMachines() const;
  void tellMissing();
  void welcome(std::vector<Member> &members);
  std::string missing() const;
  uint32_t numKnown() const;
  const Guest *find(uint32_t rank) const;

  LaunchPlace place;
  std::string turnedAway; ///< the last process of another job
  double limit, seconds, lastTold = 0;
  Descriptor listening;
  std::vector<std::unique_ptr<Guest>> guests;
};

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_RENDEZVOUS_H
