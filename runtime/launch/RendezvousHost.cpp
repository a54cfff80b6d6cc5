//===- RendezvousHost.cpp - Host for ranks of other launchers ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One loop handles all connections. Connections that have sent no data are ignored, and connections
// that have sent data other than frames are closed. The rendezvous fails if a rank is lost before
// all ranks have connected, or if the frame of a rank contradicts the frame of another rank. The
// host then sends the reason to the ranks that are connected. For some seconds, it also sends the
// reason to ranks that connect later. If a process belongs to another job, the host sends it a
// message and rejects it. Such a process cannot make the rendezvous fail.
//
//===----------------------------------------------------------------------===//

#include "launch/Network.h"
#include "launch/Rendezvous.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

using namespace fsdprt;

static constexpr double tellSeconds = 0.5;
static constexpr double joinSeconds = 10;      // seconds until all ranks must have a channel
static constexpr double lingerSeconds = 3;     // seconds for which refuse() waits for further ranks
static constexpr double occupiedSeconds = 5;   // seconds to wait if the port is in use
static constexpr double askAfterSeconds = 0.2; // seconds until askWhoListens() is called
static constexpr size_t mostStrangers = 64;    // largest number of connections without a rank

// Begins the message to a process that has the same rank as an earlier process.
static constexpr const char twinWords[] = "two processes have rank ";

static Descriptor listenAt(const MeetingAddress &address, int type) {
  return Descriptor(Network::get().listen(address.address, address.bytes, type));
}

RendezvousHost::RendezvousHost(const LaunchPlace &place, double seconds, bool asks)
    : place(place), limit(Network::get().now() + seconds), seconds(seconds) {
  std::string where, answer;
  bool asked = !asks;
  double begun = Network::get().now();
  for (double deadline = std::min(limit, Network::get().now() + occupiedSeconds);
       !listening.isOpen();) {
    int problem = EAGAIN;
    std::string unknown;
    std::vector<MeetingAddress> addresses = MeetingAddress::of(place, unknown);
    for (const MeetingAddress &address : addresses) {
      where = address.text;
      listening = listenAt(address, SOCK_STREAM);
      problem = errno;
      if (listening.isOpen())
        return;
    }
    if (problem == EADDRNOTAVAIL)
      badInput("rank 0 must listen at %s (MASTER_ADDR, MASTER_PORT), which is no address of this "
               "machine (%s); start rank 0 on the machine of MASTER_ADDR",
               where.c_str(), machineName().c_str());
    if (problem != EADDRINUSE && problem != EAGAIN)
      badInput("rank 0 cannot listen at %s (MASTER_ADDR, MASTER_PORT): %s", where.c_str(),
               strerror(problem));
    bool isLate = Network::get().now() > deadline;
    bool mayAsk = !asked || (isLate && !answer.empty());
    if (problem == EADDRINUSE && mayAsk && Network::get().now() > begun + askAfterSeconds) {
      asked = true;
      answer = askWhoListens(addresses.back(), place);
      if (answer.compare(0, std::strlen(twinWords), twinWords) == 0)
        isLate = true; // Another process of this job is rank 0 and uses the port.
    }
    // Read the clock again, because `deadline` may have passed during askWhoListens().
    isLate = isLate || Network::get().now() > deadline;
    if (isLate && problem == EADDRINUSE)
      badInput("rank 0 cannot listen at %s (MASTER_ADDR, MASTER_PORT): another process uses it; "
               "choose another MASTER_PORT%s%s",
               where.c_str(), answer.empty() ? "" : "; that process reports: ", answer.c_str());
    if (Network::get().now() > limit)
      badInput("MASTER_ADDR: the name '%s' could not be resolved within %g s: %s",
               printable(place.address).c_str(), seconds, unknown.c_str());
    Network::get().sleep(0.1);
  }
}

const RendezvousHost::Guest *RendezvousHost::find(uint32_t rank) const {
  for (const auto &guest : guests)
    if (guest->isKnown && guest->hello.rank == rank)
      return guest.get();
  return nullptr;
}

uint32_t RendezvousHost::numKnown() const {
  return static_cast<uint32_t>(std::count_if(guests.begin(), guests.end(),
                                             [](const auto &guest) { return guest->isKnown; }));
}

/// Returns a text such as "ranks 1, 3 of 4" that lists the missing ranks. The text also names the
/// last process that was rejected, and the number of connections that have sent no rank, if any.
std::string RendezvousHost::missing() const {
  std::string names;
  uint32_t count = 0;
  for (uint32_t rank = 0; rank < place.ranks; ++rank)
    if (!find(rank) && ++count <= 16)
      names += (names.empty() ? "" : ", ") + std::to_string(rank);
  if (count > 16)
    names += format(" and %u more", count - 16);
  std::string text = format("rank%s %s of %u", count == 1 ? "" : "s", names.c_str(), place.ranks);
  if (!turnedAway.empty())
    text += " (" + turnedAway + " was turned away)";
  if (size_t strangers = guests.size() - numKnown())
    text +=
        format(" (%zu connection%s did not identify a rank)", strangers, strangers == 1 ? "" : "s");
  return text;
}

/// Waits until a descriptor is ready. Stops waiting at the time `until` or after tellSeconds.
static void awaitAny(std::vector<pollfd> wanted, double until) {
  double wait = std::clamp(until - Network::get().now(), 0.0, tellSeconds);
  Network::get().poll(wanted.data(), wanted.size(), wait + 0.001);
}

/// Waits until a process connects or sends data. Stops waiting at the time `until` or after
/// tellSeconds.
void RendezvousHost::await(double until) {
  std::vector<pollfd> wanted = {{listening.get(), POLLIN, 0}};
  for (const auto &guest : guests)
    wanted.push_back({guest->connection.get(), POLLIN, 0});
  awaitAny(std::move(wanted), until);
}

void RendezvousHost::acceptAll() {
  for (int file;
       (file = Network::get().accept(listening.get(), SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
    if (guests.size() - numKnown() >= mostStrangers)
      guests.erase(std::find_if(guests.begin(), guests.end(),
                                [](const auto &guest) { return !guest->isKnown; }));
    Descriptor connection(file);
    if (place.meetingName.empty() || processBehind(file))
      guests.push_back(std::make_unique<Guest>(std::move(connection)));
  }
}

/// Returns true if `frame` may be the first frame of a rank. The first frame is a hello, or, if the
/// rank reports its own failure, a refusal.
static bool isHello(const Frame &frame) {
  return frame.kind == Frame::hello || frame.kind == Frame::refusal;
}

void RendezvousHost::readAll() {
  for (size_t i = 0; i < guests.size();) {
    Guest &guest = *guests[i];
    FrameReader::State state = guest.reader.read(guest.connection.get());
    if (state == FrameReader::State::end && guest.isKnown)
      throw Error(FSDPRT_LOST,
                  format("rank %u (process %u on %s) was lost before all ranks had met",
                         guest.hello.rank, guest.hello.process,
                         printable(guest.hello.host).c_str()));
    if (state == FrameReader::State::complete && guest.isKnown)
      // This frame is ignored, because a rank needs to send only one frame, and the host has
      // already handled the first frame of this rank.
      guest.reader.clear();
    else if (state == FrameReader::State::complete &&
             (!isHello(guest.reader.get()) || turnAway(guest)))
      state = FrameReader::State::foreign;
    else if (state == FrameReader::State::complete && guest.reader.get().kind == Frame::refusal)
      takeRefusal(guest);
    else if (state == FrameReader::State::complete)
      admit(guest);
    if (state == FrameReader::State::end || state == FrameReader::State::foreign)
      guests.erase(guests.begin() + static_cast<ptrdiff_t>(i));
    else
      ++i;
  }
}

/// Marks a rank that reports a failure as connected, and throws the error that the rank has sent.
void RendezvousHost::takeRefusal(Guest &guest) {
  guest.hello = guest.reader.get();
  guest.isKnown = true;
  throw Error(failureStatus(guest.hello.status), guest.hello.words());
}

static std::string nameOf(const Frame &hello) {
  return format("process %u on %s", hello.process, printable(hello.host).c_str());
}

static std::string jobWords(const std::string &job) {
  return job.empty() ? "a job without an id" : "job " + printable(job);
}

/// Returns the reason why the sender of `hello` belongs to another job, or an empty text if the
/// sender may belong to this job. If neither process has a job id and both are on the same machine,
/// the sender belongs to this job only if both processes belong to the same session. If they are on
/// different machines, checkMachines() refuses the sender later.
std::string RendezvousHost::otherJob(const Frame &hello) const {
  std::string job = hello.job, who = format("rank %u (%s)", hello.rank, nameOf(hello).c_str());
  if (job != place.job)
    return format(
        "%s is of %s, but ranks of %s meet here; choose another MASTER_PORT for one of the jobs",
        who.c_str(), jobWords(job).c_str(), jobWords(place.job).c_str());
  if (!job.empty() || place.session == hello.session || machineIdentity() != hello.machine)
    return "";
  return format("%s was started in session %s, but rank 0 in session %s, and neither has a job id; "
                "set FSDP_RUN_JOB_ID to the same text for all ranks of a job, or choose another "
                "MASTER_PORT for one of the jobs",
                who.c_str(), printable(hello.session).c_str(), printable(place.session).c_str());
}

/// If a process belongs to another job, sends it a refusal and returns true.
bool RendezvousHost::turnAway(const Guest &guest) {
  const Frame &hello = guest.reader.get();
  std::string reason = otherJob(hello);
  if (reason.empty())
    return false;
  Frame frame = Frame::make(Frame::refusal);
  frame.status = FSDPRT_BAD_INPUT;
  std::strncpy(frame.text, ("MASTER_ADDR, MASTER_PORT: " + reason).c_str(), sizeof frame.text - 1);
  sendFrame(guest.connection.get(), frame);
  bool bySession = place.job.empty() && !*hello.job;
  turnedAway = format("rank %u, %s, of %s,", hello.rank, nameOf(hello).c_str(),
                      bySession ? "another session" : jobWords(hello.job).c_str());
  return true;
}

/// Accepts a rank. Throws Error if the frame is invalid, or contradicts rank 0 or an earlier rank.
/// The rank is already marked as connected in this case, so that refuse() sends the error to it as
/// well.
void RendezvousHost::admit(Guest &guest) {
  const Frame &hello = guest.hello = guest.reader.get();
  guest.reader.clear();
  const Guest *twin = find(hello.rank);
  guest.isKnown = true;
  if (hello.secondsLeft > 0)
    // The rendezvous must end before any rank stops waiting.
    limit = std::min(limit, Network::get().now() + hello.secondsLeft);
  if (hello.interface != fsdprt_abi_version())
    badInput("rank %u (%s) has interface %u.%u of the runtime, rank 0 %u.%u; start all ranks from "
             "one installation",
             hello.rank, nameOf(hello).c_str(), hello.interface >> 16, hello.interface & 0xffff,
             fsdprt_abi_version() >> 16, fsdprt_abi_version() & 0xffff);
  if (hello.ranks != place.ranks)
    badInput("ranks do not agree: the number of ranks (WORLD_SIZE) is %u on rank 0 and %u on rank "
             "%u (%s)",
             place.ranks, hello.ranks, hello.rank, nameOf(hello).c_str());
  if (twin)
    badInput(
        "%s%u of %u: %s, and %s; give each process its own RANK, and each job its own MASTER_PORT "
        "or FSDP_RUN_JOB_ID",
        twinWords, hello.rank, hello.ranks, nameOf(twin->hello).c_str(), nameOf(hello).c_str());
  if (hello.rank >= place.ranks)
    badInput("%s: expected a rank below the number of ranks, found rank %u of %u",
             nameOf(hello).c_str(), hello.rank, hello.ranks);
}

void RendezvousHost::checkMachines() const {
  std::string list;
  bool differ = false;
  for (uint32_t rank = 0; rank < place.ranks; ++rank) {
    const Frame &hello = find(rank)->hello;
    differ |= std::strcmp(hello.machine, find(0)->hello.machine) != 0;
    if (rank < 64)
      list += format("%srank %u on %s", rank ? ", " : "", rank, printable(hello.host).c_str());
  }
  if (differ)
    badInput("ranks of several machines (or containers with their own network) need MPI to reach "
             "each other: start with mpirun, or srun --mpi=pmix and --backend=mpi; found %s",
             list.c_str());
}

void RendezvousHost::tellMissing() {
  if (Network::get().now() - lastTold < tellSeconds)
    return;
  lastTold = Network::get().now();
  Frame frame = Frame::make(Frame::missing);
  std::strncpy(frame.text, missing().c_str(), sizeof frame.text - 1);
  for (const auto &guest : guests)
    if (guest->isKnown)
      sendFrame(guest->connection.get(), frame);
}

/// Returns a random name for a socket, so that only processes with the welcome frame can connect.
static std::string secretName() {
  uint64_t words[2] = {};
  if (getrandom(words, sizeof words, 0) != static_cast<ssize_t>(sizeof words))
    failed("cannot draw random numbers: %s", strerror(errno));
  return format("fsdp-run/%016llx%016llx", static_cast<unsigned long long>(words[0]),
                static_cast<unsigned long long>(words[1]));
}

/// Returns the ranks that have closed their connection but have no channel yet. Before a rank
/// closes its connection, it sends a message to `door`, the socket at which channels are created. A
/// rank that has closed its connection without this message is lost.
std::set<uint32_t> RendezvousHost::findEnded(const std::vector<Member> &members) {
  std::set<uint32_t> ended;
  for (const auto &guest : guests)
    if (guest->isKnown && !members[guest->hello.rank].channel.isOpen() &&
        guest->reader.read(guest->connection.get()) != FrameReader::State::partial)
      ended.insert(guest->hello.rank);
  return ended;
}

void RendezvousHost::acceptMembers(int door, std::vector<Member> &members) {
  for (int file; (file = Network::get().accept(door, SOCK_CLOEXEC)) >= 0;) {
    Channel channel(file);
    std::optional<int> process = processBehind(file);
    int attached;
    Message message;
    if (!process || channel.receive(message, attached, 1) != Channel::Received::message ||
        message.kind != Message::join || message.rank >= place.ranks ||
        members[message.rank].channel.isOpen())
      continue;
    members[message.rank].channel = Descriptor(channel.release());
    members[message.rank].process = *process;
  }
}

void RendezvousHost::welcome(std::vector<Member> &members) {
  Frame frame = Frame::make(Frame::welcome);
  frame.introduce(place);
  std::strncpy(frame.text, secretName().c_str(), sizeof frame.text - 1);
  MeetingAddress address = MeetingAddress::abstract(frame.text);
  Descriptor door = listenAt(address, SOCK_SEQPACKET);
  if (!door.isOpen())
    failed("cannot listen at %s: %s", address.text.c_str(), strerror(errno));
  for (const auto &guest : guests)
    if (guest->isKnown)
      sendFrame(guest->connection.get(), frame);
  members.resize(place.ranks);
  auto hasJoined = [](const Member &member) { return member.channel.isOpen(); };
  for (double until = Network::get().now() + joinSeconds;
       !std::all_of(members.begin(), members.end(), hasJoined);) {
    // If a rank already has a channel, its connection is not polled, because nobody reads this
    // connection any longer and poll() would return at once.
    std::vector<pollfd> wanted = {{door.get(), POLLIN, 0}};
    for (const auto &guest : guests)
      if (guest->isKnown && !hasJoined(members[guest->hello.rank]))
        wanted.push_back({guest->connection.get(), POLLIN, 0});
    awaitAny(std::move(wanted), until);
    std::set<uint32_t> ended = findEnded(members);
    acceptMembers(door.get(), members);
    for (uint32_t rank = 0; rank < place.ranks; ++rank)
      if (!hasJoined(members[rank]) && (ended.count(rank) || Network::get().now() > until))
        throw Error(FSDPRT_LOST, format("rank %u (%s) was lost after all ranks had met", rank,
                                        nameOf(find(rank)->hello).c_str()));
  }
}

/// After FSDPRT_BAD_INPUT, waits some seconds for further ranks, which would fail with the same
/// error. After any other status, returns without waiting, because a rank that connects later may
/// belong to another attempt to start the job.
void RendezvousHost::refuse(const Error &reason, std::set<uint32_t> told) {
  Frame frame = Frame::make(Frame::refusal);
  frame.status = reason.status;
  std::strncpy(frame.text, reason.what(), sizeof frame.text - 1);
  bool staysTrue = reason.status == FSDPRT_BAD_INPUT;
  for (double until = Network::get().now() + lingerSeconds; Network::get().now() < until;) {
    for (auto guest = guests.begin(); guest != guests.end();) {
      Guest &each = **guest;
      FrameReader::State state =
          each.isKnown ? FrameReader::State::complete : each.reader.read(each.connection.get());
      const Frame &said = each.isKnown ? each.hello : each.reader.get();
      if (state == FrameReader::State::complete &&
          (each.isKnown || (isHello(said) && !turnAway(each)))) {
        sendFrame(each.connection.get(), frame);
        if (said.rank < place.ranks)
          told.insert(said.rank);
      }
      guest = state == FrameReader::State::partial ? guest + 1 : guests.erase(guest);
    }
    if (told.size() >= place.ranks || !staysTrue)
      return;
    await(until);
    acceptAll();
  }
}

std::vector<RendezvousHost::Member> RendezvousHost::gather() {
  std::vector<Member> members;
  try {
    while (numKnown() < place.ranks) {
      await(limit);
      acceptAll();
      readAll();
      if (numKnown() < place.ranks && Network::get().now() > limit)
        throw Error(FSDPRT_HUNG,
                    format("%s did not arrive within %g s", missing().c_str(), seconds));
      if (numKnown() < place.ranks)
        tellMissing();
    }
    checkMachines();
    welcome(members);
  } catch (const Error &reason) {
    refuse(reason);
    throw;
  }
  listening = Descriptor();
  guests.clear();
  return members;
}
