//===- Mpi.cpp - Ranks as processes of an MPI job ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The time limit of a wait begins again whenever a process for which the rank waits makes progress.
// A process makes progress if the heartbeat counter of its rank changes, or if a message of a
// collective arrives from it. Between programs, a heartbeat message also counts as progress.
//
//===----------------------------------------------------------------------===//

#include "collectives/mpi/Mpi.h"
#include "core/Agreement.h"
#include <algorithm>
#include <cstring>
#include <sched.h>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr uint32_t idleMilliseconds = 50, busyMilliseconds = 1;
static constexpr double secondsToTellFailure = 2, pollSeconds = 0.02;
// maximum number of bytes in a message of collect()
static constexpr size_t pieceBytes = 32 << 20;

MpiCommunicator::MpiCommunicator(Mesh newMesh, uint32_t rank, MpiReduce reduce,
                                 const std::string &agreement, double timeoutSeconds,
                                 double meetingSeconds, double heartbeatSeconds)
    : Communicator(std::move(newMesh), LocalRanks{0, 1}, nullptr),
      mpi(MpiLibrary::get(meetingSeconds)), reduce(reduce), meetingSeconds(meetingSeconds),
      heartbeatSeconds(heartbeatSeconds) {
  localRange.first = mpi.rank();
  if (mpi.size() != ranks())
    badInput("expected %u processes, one for each rank of mesh %s, found %u from %s; start with "
             "mpirun -n %u",
             ranks(), mesh.text().c_str(), mpi.size(), mpi.getVersion().c_str(), ranks());
  if (mpi.rank() != rank)
    badInput("expected rank %u of %u, as the environment says, found rank %u from %s", rank,
             ranks(), mpi.rank(), mpi.getVersion().c_str());
  watchdog = std::make_unique<Watchdog>(ranks(), timeoutSeconds);
  world = mpi.makeWorld(meetingSeconds);
  {
    std::lock_guard<std::mutex> lock(mpi.getMutex());
    heartbeat = std::make_unique<MpiHeartbeat>(mpi, *watchdog, world, heartbeatTag);
  }
  requests.assign(size_t(2) * ranks(), mpi.noRequest());
  lastSign.resize(ranks());
  service = std::thread([this] { serve(); });
  try {
    agree(agreement);
  } catch (...) {
    sayGoodbye();
    endService();
    throw;
  }
}

/// If this process has not called leave(), tells the other processes that it has failed.
MpiCommunicator::~MpiCommunicator() {
  if (!left) {
    watchdog->fail();
    mpi.skipFinalize();
    for (double limit = monotonicSeconds() + secondsToTellFailure; monotonicSeconds() < limit;
         usleep(1000)) {
      std::lock_guard<std::mutex> lock(mpi.getMutex());
      if (heartbeat->isFailureTold())
        break;
    }
  }
  endService();
  std::lock_guard<std::mutex> lock(mpi.getMutex());
  for (const auto &operation : operations)
    operation->abandon();
  heartbeat.reset();
}

void MpiCommunicator::sayGoodbye() {
  try {
    {
      std::lock_guard<std::mutex> lock(mpi.getMutex());
      heartbeat->leave();
    }
    endingEvent.notify();
    await(
        nullptr, [&] { return heartbeat->haveAllLeft(); }, [&] { return heardFromAll(); },
        [&] { throw Error(FSDPRT_HUNG, "not all ranks left in order"); });
    left = true;
  } catch (const Error &) {
    // An error has occurred, so do not wait for the other processes to leave.
    watchdog->fail();
  }
}

void MpiCommunicator::endService() {
  ending = true;
  endingEvent.notify();
  service.join();
}

void MpiCommunicator::agree(const std::string &agreement) {
  std::vector<char> mine(Agreement::limit + 1), all(mine.size() * ranks());
  std::memcpy(mine.data(), agreement.data(), std::min(agreement.size(), Agreement::limit));
  exchange(mine.data(), mine.size(), all.data());
  std::vector<std::string> texts;
  for (uint32_t rank = 0; rank < ranks(); ++rank)
    texts.push_back(&all[rank * mine.size()]);
  compareAgreements(texts);
}

/// Returns a text with those properties of a collective that must be equal on all ranks.
static std::string textOf(const CollectiveKey &key) {
  std::string axes;
  for (uint32_t axis : key.axes)
    axes += (axes.empty() ? "" : ",") + std::to_string(axis);
  return format("%s %s of %llu x %s over axes %s, root %u, id %u",
                fb::EnumNameReduction(key.reduction), fb::EnumNameCollectiveKind(key.kind),
                (ull)key.count, nameOf(key.dtype), axes.c_str(), key.root, key.id);
}

void MpiCommunicator::checkSchedule() {
  uint64_t hash = 0xcbf29ce484222325;
  for (const Collective &each : collectives)
    for (char c : textOf(each.key) + "\n")
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::vector<uint64_t> all(ranks());
  exchange(&hash, sizeof hash, all.data());
  // Do not continue before all ranks have received all hashes. Otherwise a rank that detects a
  // difference could end early, and the other ranks would report a lost rank instead.
  barrier();
  for (uint32_t rank = 1; rank < ranks(); ++rank)
    if (all[rank] != all[0])
      badInput("rank %u has other collectives than rank 0: expected hash %016llx, found %016llx; "
               "start all ranks with the same artifact",
               rank, (ull)all[0], (ull)all[rank]);
}

fsdprt_mpi_handle MpiCommunicator::groupOver(const std::vector<uint32_t> &members) {
  for (const auto &[known, group] : groups)
    if (known == members)
      return group;
  groups.emplace_back(
      members, mpi.makeGroup(members, static_cast<int>(firstTag + groups.size()), meetingSeconds));
  return groups.back().second;
}

void MpiCommunicator::makeFlights() {
  uint64_t laneBytes = 0;
  for (uint32_t i = 0; i < numCollectives(); ++i) {
    const Collective &each = collectives[i];
    const std::vector<uint32_t> &members = membersOf(i, firstRank());
    operations.push_back(std::make_unique<MpiCollective>(mpi, each.key, members,
                                                         each.groups->index[firstRank()], world,
                                                         static_cast<int>(firstTag + i)));
    if (reduce == MpiReduce::library && operations[i]->canUseLibrary())
      operations[i]->useLibrary(groupOver(members));
    laneBytes = std::max(laneBytes, operations[i]->laneBytes());
  }
  // Lock the mutex, because the service thread reads `lanes` and `inFlight`.
  std::lock_guard<std::mutex> lock(mpi.getMutex());
  lanes.reserve(laneBytes);
  inFlight.reserve(operations.size());
}

void MpiCommunicator::connect() {
  if (numCollectives() + firstTag > mpi.highestTag())
    failed("%s has tags for %u collectives; the artifact has %llu", mpi.getVersion().c_str(),
           mpi.highestTag() - firstTag, (ull)numCollectives());
  checkSchedule();
  makeFlights();
  barrier();
}

/// Advances all collectives in flight. Returns true if at least one of them has made progress. The
/// caller must hold the mutex of the library.
bool MpiCommunicator::advanceAll(WorkerPool *pool) {
  bool moved = false;
  for (MpiCollective *operation : inFlight)
    moved |= operation->advance(lanes, pool);
  if (!moved)
    return false;
  inFlight.erase(std::remove_if(inFlight.begin(), inFlight.end(),
                                [](MpiCollective *each) { return each->isDone(); }),
                 inFlight.end());
  busy = !inFlight.empty();
  ++progress;
  watchdog->beat(firstRank());
  return true;
}

/// Records an error if another rank no longer sends heartbeats. This happens if the process of that
/// rank is stopped, or if the connection to it is cut. serve() reports the error to the other
/// processes.
void MpiCommunicator::checkHeartbeats() {
  std::optional<uint32_t> rank = heartbeat->silent(heartbeatSeconds);
  if (!rank || silence || watchdog->hasFailed())
    return;
  silence = Error(FSDPRT_HUNG, format("rank %u has sent no heartbeat for %g s: %s", *rank,
                                      heartbeatSeconds, describeProgress(*rank).c_str()));
  watchdog->fail(FSDPRT_HUNG);
}

void MpiCommunicator::serve() {
  while (!ending) {
    uint32_t seen = endingEvent.read();
    try {
      std::lock_guard<std::mutex> lock(mpi.getMutex());
      if (!problem) {
        heartbeat->beat();
        checkHeartbeats();
        advanceAll(nullptr);
      }
    } catch (const Error &error) {
      std::lock_guard<std::mutex> lock(mpi.getMutex());
      problem = error;
      watchdog->fail(error.status);
    }
    if (!ending)
      endingEvent.sleep(seen, busy ? busyMilliseconds : idleMilliseconds);
  }
}

void MpiCommunicator::poll() {
  {
    std::lock_guard<std::mutex> lock(mpi.getMutex());
    if (problem)
      throw Error(*problem);
    if (silence)
      throw Error(*silence);
  }
  Communicator::poll();
}

Abandoned MpiCommunicator::abandoned() const {
  {
    // If this process has detected missing heartbeats itself, return this error, which says more
    // than the status that another rank may have sent.
    std::lock_guard<std::mutex> lock(mpi.getMutex());
    if (silence)
      return Abandoned(silence->status, silence->what());
  }
  uint32_t heard = watchdog->failure();
  return heard ? Abandoned(static_cast<fsdprt_status>(heard)) : Abandoned();
}

template <typename Done, typename Beats, typename Late>
void MpiCommunicator::await(WorkerPool *pool, Done done, Beats beats, Late late) {
  ProgressTimeout progressTimeout(*watchdog);
  double looked = monotonicSeconds();
  for (uint32_t round = 1;; ++round) {
    bool moved;
    {
      std::lock_guard<std::mutex> lock(mpi.getMutex());
      moved = !problem && advanceAll(pool);
      if (done())
        return;
    }
    if (moved) {
      round = 0;
      continue;
    }
    // Check for failures after every 64 rounds. On a loaded machine, 64 rounds may take as long as
    // the time limit, so also check if pollSeconds have passed since the last check.
    if (double now = monotonicSeconds(); round % 64 == 0 || now - looked > pollSeconds) {
      looked = now;
      poll();
      if (progressTimeout.hasExpired(beats()))
        late();
    }
    round < 256 ? void(sched_yield()) : void(usleep(round < 4096 ? 50 : 500));
  }
}

void MpiCommunicator::begin(uint32_t collective, uint32_t rank, const std::byte *source,
                            std::byte *target) {
  std::lock_guard<std::mutex> lock(mpi.getMutex());
  MpiCollective &operation = *operations[collective];
  const std::vector<uint32_t> &members = membersOf(collective, rank);
  auto dropped = std::find(members.begin(), members.end(), collectives[collective].dropped);
  if (dropped != members.end())
    operation.drop(static_cast<uint32_t>(dropped - members.begin()));
  operation.start(source, target);
  operation.advance(lanes, nullptr);
  if (operation.isDone())
    return;
  inFlight.push_back(&operation);
  if (!busy.exchange(true))
    endingEvent.notify();
}

void MpiCommunicator::finish(uint32_t collective, uint32_t rank, WorkerPool &pool) {
  MpiCollective &operation = *operations[collective];
  const std::vector<uint32_t> *missing = nullptr;
  auto beats = [&] {
    std::lock_guard<std::mutex> lock(mpi.getMutex());
    missing = &operation.missing();
    uint64_t sum = progress;
    for (uint32_t member : *missing)
      sum += watchdog->beats(member);
    return sum;
  };
  await(
      &pool, [&] { return operation.isDone(); }, beats,
      [&] { reportMissing(collective, rank, *missing); });
}

uint64_t MpiCommunicator::heardFromAll() const {
  uint64_t sum = 0;
  for (uint32_t rank = 0; rank < ranks(); ++rank)
    sum += rank == firstRank() ? 0 : heartbeat->heard(rank);
  return sum;
}

/// Waits until `count` messages are complete. `messages` contains either a single message, or a
/// receive and a send for each rank, in the order of the ranks. Throws Error if a process has sent
/// no heartbeat for as long as the time limit.
void MpiCommunicator::awaitMessages(fsdprt_mpi_handle *messages, size_t count, const char *why) {
  std::fill(lastSign.begin(), lastSign.end(), Sign{0, 0});
  PollClock clock;
  uint64_t calls = 0;
  auto lookAround = [&] {
    double now = clock.read();
    for (uint32_t rank = 0; rank < ranks(); ++rank) {
      if (uint64_t heard = heartbeat->heard(rank);
          heard != lastSign[rank].heard || rank == firstRank())
        lastSign[rank] = {heard, now};
      if (now - lastSign[rank].at > watchdog->timeoutSeconds())
        throw Error(FSDPRT_HUNG,
                    format("rank %u waited %g s to %s for %s; its process sent no heartbeat",
                           firstRank(), watchdog->timeoutSeconds(), why,
                           describeProgress(rank).c_str()));
    }
    return ++calls;
  };
  await(nullptr, [&] { return mpi.isDone(messages, count); }, lookAround, [] {});
}

void MpiCommunicator::exchange(const void *mine, size_t bytes, void *all) {
  bytes = std::min(bytes, exchangeLimit);
  if (bytes)
    std::memcpy(static_cast<std::byte *>(all) + firstRank() * bytes, mine, bytes);
  {
    std::lock_guard<std::mutex> lock(mpi.getMutex());
    for (uint32_t rank = 0; rank < ranks(); ++rank) {
      if (rank == firstRank())
        continue;
      void *into = static_cast<std::byte *>(all) + rank * bytes;
      int size = static_cast<int>(bytes), peer = static_cast<int>(rank);
      mpi.check(mpi->receive(world, into, size, peer, exchangeTag, &requests[2 * rank]),
                "a receive");
      mpi.check(mpi->send(world, mine, size, peer, exchangeTag, &requests[2 * rank + 1]), "a send");
    }
  }
  awaitMessages(requests.data(), requests.size(), "meet between programs");
}

void MpiCommunicator::collect(uint32_t rank, const void *data, size_t bytes, void *into) {
  if (rank == 0 && isRoot() && bytes)
    std::memcpy(into, data, bytes);
  if (rank == 0 || (!isRoot() && rank != firstRank()))
    return;
  for (size_t done = 0, part; done < bytes; done += part) {
    part = std::min(bytes - done, pieceBytes);
    fsdprt_mpi_handle request;
    {
      std::lock_guard<std::mutex> lock(mpi.getMutex());
      int size = static_cast<int>(part);
      if (isRoot())
        mpi.check(mpi->receive(world, static_cast<std::byte *>(into) + done, size,
                               static_cast<int>(rank), collectTag, &request),
                  "a receive");
      else
        mpi.check(mpi->send(world, static_cast<const std::byte *>(data) + done, size, 0, collectTag,
                            &request),
                  "a send");
    }
    awaitMessages(&request, 1, isRoot() ? "collect" : "send");
  }
}

void MpiCommunicator::leave() {
  barrier();
  sayGoodbye();
}
