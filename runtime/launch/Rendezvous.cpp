//===- Rendezvous.cpp - Connecting ranks of other launchers ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements addresses and the rank's part of the rendezvous. Rank 0 may start later than this
// rank, so this rank tries again to connect until its time limit. When the time limit has passed,
// the rank reports why its last attempt failed. If the host refuses the rank, the rank does not try
// again.
//
//===----------------------------------------------------------------------===//

#include "launch/Rendezvous.h"
#include "launch/Network.h"
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

using namespace fsdprt;

static constexpr double retrySeconds = 0.1, connectSeconds = 5, askSeconds = 2;

Descriptor::~Descriptor() {
  if (file >= 0)
    close(file);
}

MeetingAddress MeetingAddress::abstract(const std::string &name) {
  MeetingAddress result;
  auto &address = reinterpret_cast<sockaddr_un &>(result.address);
  address.sun_family = AF_UNIX;
  // The first byte of an abstract name is 0.
  size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  result.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  result.text = "the Unix socket '" + printable(name) + "'";
  return result;
}

std::vector<MeetingAddress> MeetingAddress::of(const LaunchPlace &place, std::string &problem) {
  if (!place.meetingName.empty())
    return {abstract(place.meetingName)};
  addrinfo wanted = {}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  int status =
      getaddrinfo(place.address.c_str(), std::to_string(place.port).c_str(), &wanted, &found);
  if (status == EAI_AGAIN) {
    problem = gai_strerror(status);
    return {};
  }
  if (status != 0)
    badInput("MASTER_ADDR: expected the name or address of rank 0's machine, found '%s': %s",
             printable(place.address).c_str(), gai_strerror(status));
  std::unique_ptr<addrinfo, void (*)(addrinfo *)> owner(found, freeaddrinfo);
  std::vector<MeetingAddress> result;
  for (const addrinfo *each = found; each; each = each->ai_next) {
    result.emplace_back();
    result.back().bytes = each->ai_addrlen;
    std::memcpy(&result.back().address, each->ai_addr, each->ai_addrlen);
    result.back().text = format("%s:%u", printable(place.address).c_str(), place.port);
  }
  return result;
}

static std::string readLine(const char *path) {
  char text[96] = "";
  Descriptor file(open(path, O_RDONLY | O_CLOEXEC));
  ssize_t size = file.isOpen() ? read(file.get(), text, sizeof text - 1) : 0;
  return std::string(text, strcspn(text, "\n") * (size > 0));
}

/// Returns a text that consists of the boot id of the kernel and the network namespace of this
/// process. Two processes that have the same boot id and the same network namespace can share
/// memory and can connect through abstract Unix sockets.
std::string fsdprt::machineIdentity() {
  char network[64] = "";
  [[maybe_unused]] ssize_t size = readlink("/proc/self/ns/net", network, sizeof network - 1);
  return readLine("/proc/sys/kernel/random/boot_id") + " " + network;
}

std::string fsdprt::machineName() {
  char name[64] = "";
  gethostname(name, sizeof name - 1);
  return printable(name);
}

std::optional<int> fsdprt::processBehind(int file) {
  ucred who = {};
  socklen_t bytes = sizeof who;
  if (getsockopt(file, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0 || who.uid != geteuid())
    return std::nullopt;
  return who.pid;
}

namespace {
class Attempt {
public:
  Attempt(const LaunchPlace &place, double seconds)
      : place(place), seconds(seconds), limit(Network::get().now() + seconds) {}
  int attend();
  void refuse(const Error &reason);
  Descriptor connectTo(const MeetingAddress &address);
  std::optional<Frame> askOn(int connection);
  bool wasAnswered() const { return answered; }

private:
  double left() const { return limit - Network::get().now(); }
  Descriptor connectToAny();
  int join(const Frame &welcome);
  [[noreturn]] void giveUp() const;

  const LaunchPlace &place;
  double seconds, limit;
  std::string where, problem = "no connection was tried", missing;
  bool answered = false; ///< true if the last connection delivered a frame
};
} // namespace

/// Returns true if a TCP connection connects a socket with itself. This can happen if no process
/// listens at the port, and the kernel chooses this port for the connecting socket.
static bool isToItself(int connection) {
  sockaddr_storage own = {}, peer = {};
  socklen_t ownBytes = sizeof own, peerBytes = sizeof peer;
  return getsockname(connection, reinterpret_cast<sockaddr *>(&own), &ownBytes) == 0 &&
         getpeername(connection, reinterpret_cast<sockaddr *>(&peer), &peerBytes) == 0 &&
         own.ss_family != AF_UNIX && ownBytes == peerBytes &&
         std::memcmp(&own, &peer, ownBytes) == 0;
}

/// Closes a connection with a TCP reset, so that its port does not remain in the state TIME_WAIT.
static void drop(Descriptor connection) {
  linger now = {1, 0};
  setsockopt(connection.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

/// Connects to an address. On failure, sets `problem` and returns a Descriptor that is not open.
Descriptor Attempt::connectTo(const MeetingAddress &address) {
  Descriptor file(socket(address.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  where = address.text;
  int error = 0, yes = 1;
  // With SO_REUSEADDR, a connection of this socket that is in state TIME_WAIT does not stop rank 0
  // of another run from listening at the port.
  setsockopt(file.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (Network::get().connect(file.get(), address.address, address.bytes) != 0)
    error = errno;
  if (error == EINPROGRESS) {
    pollfd wanted = {file.get(), POLLOUT, 0};
    double wait = std::clamp(left(), 0.0, connectSeconds);
    socklen_t bytes = sizeof error;
    if (Network::get().poll(&wanted, 1, wait) <= 0)
      error = ETIMEDOUT;
    else
      getsockopt(file.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  }
  if (error == 0 && address.address.ss_family == AF_UNIX && !processBehind(file.get()))
    badInput("%s, where ranks meet: expected a process of this user, found one of another user",
             where.c_str());
  if (error == 0 && isToItself(file.get())) {
    drop(std::move(file));
    error = ECONNREFUSED;
  } else if (error == 0) {
    return file;
  }
  problem = error == ECONNREFUSED ? "no process listens there" : strerror(error);
  return Descriptor();
}

Descriptor Attempt::connectToAny() {
  std::vector<MeetingAddress> addresses = MeetingAddress::of(place, problem);
  where = format("%s:%u", printable(place.address).c_str(), place.port);
  for (const MeetingAddress &address : addresses)
    if (Descriptor file = connectTo(address); file.isOpen())
      return file;
  return Descriptor();
}

/// Sends a hello frame and waits for a welcome frame. Returns nullopt if the other end closes the
/// connection without an answer. Throws Error if the host sends a refusal.
std::optional<Frame> Attempt::askOn(int connection) {
  Frame hello = Frame::make(Frame::hello);
  hello.introduce(place);
  hello.secondsLeft = left();
  answered = false;
  problem = "a process listens there, but does not answer";
  FrameReader reader;
  // The wait may end one second after the time limit, so that the host's refusal, which lists the
  // missing ranks, can still arrive.
  for (bool sent = sendFrame(connection, hello); left() > -1;) {
    pollfd wanted = {connection, POLLIN, 0};
    Network::get().poll(&wanted, 1, 0.1);
    FrameReader::State state = sent ? reader.read(connection) : FrameReader::State::end;
    if (state == FrameReader::State::partial)
      continue;
    if (state == FrameReader::State::foreign)
      badInput("%s, where ranks meet (MASTER_ADDR, MASTER_PORT): expected rank 0, found another "
               "program that listens there; choose another MASTER_PORT",
               where.c_str());
    if (state == FrameReader::State::end && answered)
      throw Error(FSDPRT_LOST, "the process that connects the ranks (started by rank 0) is gone");
    if (state == FrameReader::State::end) {
      problem = "a process listens there, but closes the connection";
      return std::nullopt;
    }
    Frame frame = reader.get();
    reader.clear();
    answered = true;
    if (frame.kind == Frame::refusal)
      throw Error(failureStatus(frame.status), frame.words());
    if (frame.kind == Frame::welcome && place.job != frame.job)
      badInput(
          "%s, where ranks meet (MASTER_ADDR, MASTER_PORT): expected rank 0 of job %s, found a "
          "process of job %s; choose another MASTER_PORT",
          where.c_str(), printable(place.job).c_str(), printable(frame.job).c_str());
    if (frame.kind == Frame::welcome)
      return frame;
    missing = frame.words();
  }
  giveUp();
}

int Attempt::join(const Frame &welcome) {
  MeetingAddress address = MeetingAddress::abstract(welcome.text);
  Descriptor channel(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (Network::get().connect(channel.get(), address.address, address.bytes) != 0)
    failed("cannot connect to %s of the rendezvous: %s", address.text.c_str(), strerror(errno));
  if (!processBehind(channel.get()))
    badInput("%s of the rendezvous: expected a process of this user, found one of another user",
             address.text.c_str());
  Message message;
  message.kind = Message::join;
  message.rank = place.rank;
  Channel end(channel.release());
  if (!end.send(message))
    throw Error(FSDPRT_LOST, "the process that connects the ranks (started by rank 0) is gone");
  return end.release();
}

void Attempt::giveUp() const {
  if (!missing.empty())
    throw Error(FSDPRT_HUNG, format("%s did not arrive within %g s", missing.c_str(), seconds));
  throw Error(FSDPRT_HUNG,
              format("rank 0 was not found at %s (MASTER_ADDR, MASTER_PORT) within %g s: %s",
                     where.c_str(), seconds, problem.c_str()));
}

int Attempt::attend() {
  while (true) {
    if (Descriptor connection = connectToAny(); connection.isOpen())
      if (std::optional<Frame> welcome = askOn(connection.get()))
        return join(*welcome);
    if (left() <= 0)
      giveUp();
    Network::get().sleep(retrySeconds);
  }
}

void Attempt::refuse(const Error &reason) {
  Frame frame = Frame::make(Frame::refusal);
  frame.introduce(place);
  frame.status = reason.status;
  std::strncpy(frame.text, reason.what(), sizeof frame.text - 1);
  for (; left() > 0; Network::get().sleep(retrySeconds)) {
    Descriptor connection = connectToAny();
    if (!connection.isOpen() || !sendFrame(connection.get(), frame))
      continue;
    // Wait until the host has read the frame. The host then answers or closes the connection.
    pollfd wanted = {connection.get(), POLLIN, 0};
    Network::get().poll(&wanted, 1, std::max(left(), 0.0));
    return;
  }
}

std::string fsdprt::askWhoListens(const MeetingAddress &address, const LaunchPlace &place) {
  Attempt attempt(place, askSeconds);
  try {
    Descriptor connection = attempt.connectTo(address);
    if (connection.isOpen())
      attempt.askOn(connection.get());
  } catch (const Error &error) { // The host refuses the connection, or is not fsdp-run.
    return attempt.wasAnswered() ? error.what() : "";
  }
  return "";
}

void fsdprt::refuseRendezvous(const LaunchPlace &place, const Error &reason, double seconds) {
  try {
    if (place.rank == 0)
      RendezvousHost(place, seconds, /*asks=*/false).refuse(reason, /*told=*/{0});
    else
      Attempt(place, seconds).refuse(reason);
  } catch (const Error &) { // The error is ignored, because the host cannot be reached.
  }
}

int fsdprt::attendRendezvous(const LaunchPlace &place, double seconds) {
  return Attempt(place, seconds).attend();
}
