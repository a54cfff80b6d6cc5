//===- Rendezvous.cpp - Connecting ranks of other launchers ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements frames, addresses and the rank's part of the rendezvous. A rank tries to connect until
// its time limit, because rank 0 may start later. After the time limit, the rank reports the
// problem of its last attempt. After a refusal by the host, the rank does not try again.
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

//===- Frames -------------------------------------------------------------===//

Frame Frame::make(Kind kind) {
  Frame frame;
  std::memcpy(frame.magic, expected, sizeof expected);
  frame.kind = kind;
  frame.interface = fsdprt_abi_version();
  return frame;
}

void Frame::introduce(const LaunchPlace &place) {
  rank = place.rank;
  ranks = place.ranks;
  process = static_cast<uint32_t>(getpid());
  std::strncpy(machine, machineIdentity().c_str(), sizeof machine - 1);
  std::strncpy(host, machineName().c_str(), sizeof host - 1);
  std::strncpy(job, place.job.c_str(), sizeof job - 1);
  std::strncpy(session, place.session.c_str(), sizeof session - 1);
}

bool Frame::isOurs() const { return std::memcmp(magic, expected, sizeof expected) == 0; }

FrameReader::State FrameReader::read(int file) {
  while (got < sizeof frame) {
    ssize_t more =
        recv(file, reinterpret_cast<char *>(&frame) + got, sizeof frame - got, MSG_DONTWAIT);
    if (more < 0 && errno == EINTR)
      continue;
    if (more < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      break;
    if (more <= 0)
      return got ? State::foreign : State::end;
    got += static_cast<size_t>(more);
  }
  size_t begun = std::min(got, sizeof frame.magic);
  if (std::memcmp(frame.magic, Frame::expected, begun) != 0)
    return State::foreign;
  if (got < sizeof frame)
    return State::partial;
  for (char *text : {frame.machine + sizeof frame.machine, frame.host + sizeof frame.host,
                     frame.job + sizeof frame.job, frame.session + sizeof frame.session,
                     frame.text + sizeof frame.text})
    text[-1] = '\0';
  return State::complete;
}

bool fsdprt::sendFrame(int file, const Frame &frame) {
  return send(file, &frame, sizeof frame, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof frame);
}

std::string Frame::words() const {
  std::string result = text;
  for (char &c : result)
    c = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return result;
}

//===- Addresses ----------------------------------------------------------===//

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

/// Returns the boot id of the kernel and the network namespace. Processes that have the same boot
/// id and namespace can share memory and abstract names.
std::string fsdprt::machineIdentity() {
  char network[64] = "";
  [[maybe_unused]] ssize_t size = readlink("/proc/self/ns/net", network, sizeof network - 1);
  return readLine("/proc/sys/kernel/random/boot_id") + " " + network;
}

std::string fsdprt::machineName() {
  char name[64] = "";
  gethostname(name, sizeof name - 1);
  return printable(name, strlen(name));
}

std::optional<int> fsdprt::processBehind(int file) {
  ucred who = {};
  socklen_t bytes = sizeof who;
  if (getsockopt(file, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0 || who.uid != geteuid())
    return std::nullopt;
  return who.pid;
}

//===- A rank -------------------------------------------------------------===//

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
  bool answered = false; ///< true if a frame was received on the last connection
};
} // namespace

/// Returns true if both ends of a TCP connection are the same socket. This happens if no process
/// listens at the port, and the kernel chooses the same port for the connecting socket.
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
  setsockopt(file.get(), SOL_SOCKET, SO_REUSEADDR, &yes,
             sizeof yes); // Lets rank 0 of another run listen at the port.
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
  // Wait one second longer than the time limit, because the host's refusal lists the missing ranks.
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
  } catch (const Error &error) { // refusal, or data of another program
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
  } catch (const Error &) { // ignored: the host cannot be reached
  }
}

int fsdprt::attendRendezvous(const LaunchPlace &place, double seconds) {
  return Attempt(place, seconds).attend();
}
