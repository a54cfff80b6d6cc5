//===- NcclRank.cpp - One rank's NCCL communicators -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The event of a collective is recorded only when the NCCL call of this collective is no longer in
// progress. Before that, NCCL may not have put the work on the stream yet, so that the event would
// precede the work.
//
//===----------------------------------------------------------------------===//

#include "collectives/nccl/NcclRank.h"
#include <tuple>
#include <utility>

using namespace fsdprt;

NcclRank::NcclRank(const NcclLibrary &nccl, const CudaDriver &cuda, int device, size_t lanes)
    : nccl(nccl), cuda(cuda), device(device), lanes(lanes) {
  expect(cuda.primaryContextRetain(&context, device));
}

NcclRank::~NcclRank() {
  if (!hasExpired)
    abort();
  useDevice();
  for (Flight &flight : flights)
    for (CudaEvent event : {flight.event, flight.beganAt})
      if (event)
        cuda.eventDestroy(event);
  for (CudaStream stream : streams)
    if (stream && !queue)
      cuda.streamDestroy(stream);
  if (pinned)
    cuda.memHostUnregister(pinned);
  if (zeroMemory)
    cuda.memFree(zeroMemory);
  cuda.primaryContextRelease(device);
}

void NcclRank::useDevice() const { cuda.contextSetCurrent(context); }

void NcclRank::expect(NcclResult result, NcclComm comm) const {
  if (result == ncclOk || result == ncclInProgress)
    return;
  throw NcclFailure(result == ncclRemoteError ? FSDPRT_LOST : FSDPRT_FAILED,
                    nccl.reason(result, comm));
}

void NcclRank::expect(CudaResult result) const {
  if (result != cudaOk)
    throw NcclFailure(FSDPRT_FAILED, cuda.reason(result));
}

template <typename Call>
void NcclRank::onEveryComm(Call call) {
  for (Lane &lane : lanes)
    if (lane.comm)
      call(lane.comm);
  if (all)
    call(all);
}

void NcclRank::joinAll(const NcclId &id, uint32_t ranks, uint32_t rank, NcclConfig config) {
  useDevice();
  expect(
      nccl.commInitRankConfig(&all, static_cast<int>(ranks), id, static_cast<int>(rank), &config),
      nullptr);
}

void NcclRank::joinLane(size_t lane, uint32_t color, uint32_t key) {
  useDevice();
  expect(nccl.commSplit(all, static_cast<int>(color), static_cast<int>(key), &lanes[lane].comm,
                        nullptr),
         all);
}

bool NcclRank::isSettled(NcclComm comm) const {
  NcclResult state = ncclOk;
  expect(nccl.commGetAsyncError(comm, &state), comm);
  expect(state, comm);
  return state != ncclInProgress;
}

bool NcclRank::isSettled() {
  useDevice();
  // While a call on the communicator `all` is in progress, the communicators of the lanes may not
  // exist yet.
  if (!isSettled(all))
    return false;
  for (const Lane &lane : lanes)
    if (lane.comm && !isSettled(lane.comm))
      return false;
  return true;
}

NcclResult NcclRank::registerWindow(size_t lane, const ArenaMemory &memory) {
  useDevice();
  NcclResult result = nccl.windowRegister(lanes[lane].comm, memory.base, memory.bytes,
                                          &lanes[lane].window, ncclWindowSymmetric);
  if (result == ncclInvalidArgument || result == ncclInvalidUsage)
    return result;
  expect(result, lanes[lane].comm);
  return ncclOk;
}

void NcclRank::dropWindows() {
  useDevice();
  for (Lane &lane : lanes)
    if (NcclWindow window = std::exchange(lane.window, nullptr))
      expect(nccl.windowDeregister(lane.comm, window), lane.comm);
}

void NcclRank::adopt(const ArenaMemory &memory) {
  useDevice();
  queue = memory.queue;
  uint32_t type = 0;
  bool isKnown = cuda.pointerGetAttribute(&type, cudaPointerMemoryType,
                                          reinterpret_cast<CudaPointer>(memory.base)) == cudaOk;
  if (!isKnown)
    return pin(memory);
  if (type != cudaMemoryOnDevice || !nccl.commRegister)
    return;
  for (Lane &lane : lanes) {
    if (lane.window)
      continue;
    NcclResult result = nccl.commRegister(lane.comm, memory.base, memory.bytes, &lane.registration);
    // The result ncclInvalidArgument means that NCCL cannot register the memory. This result is not
    // an error.
    if (result != ncclInvalidArgument)
      expect(result, lane.comm);
  }
}

/// If the arena is in pageable host memory, as with the device 'cpu', and the GPU cannot access
/// such memory, pins the arena.
void NcclRank::pin(const ArenaMemory &memory) {
  int canReach = 0;
  expect(cuda.deviceGetAttribute(&canReach, cudaPageableMemoryAccess, device));
  if (canReach)
    return;
  CudaPointer seen = 0;
  CudaResult result = cuda.memHostRegister(memory.base, memory.bytes, cudaPortableMapped);
  if (result == cudaOk) {
    pinned = memory.base;
    result = cuda.memHostGetDevicePointer(&seen, memory.base, 0);
  }
  if (result != cudaOk || seen != reinterpret_cast<CudaPointer>(memory.base))
    badInput("backend 'nccl': expected arenas of device 'cpu' in memory that CUDA device %d can "
             "access, found %s that it cannot (%s); use another --backend",
             device, bytesText(memory.bytes).c_str(),
             result != cudaOk ? cuda.reason(result).c_str() : "its address there differs");
}

void NcclRank::prepare(std::vector<NcclCall> calls, const std::vector<bool> &reduces) {
  useDevice();
  for (size_t i = 0; i < lanes.size(); ++i)
    lanes[i].reduces = reduces[i];
  if (queue)
    std::tie(streams[0], streams[1]) =
        std::pair(queue->stream(CudaQueue::gather), queue->stream(CudaQueue::reduce));
  else
    for (CudaStream &stream : streams)
      expect(cuda.streamCreate(&stream, cudaStreamNonBlocking));
  waiting.resize(calls.size() + 1);
  flights = std::vector<Flight>(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    flights[i].call = calls[i];
    for (CudaEvent *event : {&flights[i].event, &flights[i].beganAt})
      expect(cuda.eventCreate(event, cudaEventNoTiming));
  }
}

void NcclRank::finalize() {
  std::lock_guard<std::mutex> guard(lock);
  if (hasExpired)
    return;
  dropWindows();
  for (Lane &lane : lanes)
    if (lane.registration)
      nccl.commDeregister(lane.comm, lane.registration);
  onEveryComm([&](NcclComm comm) { expect(nccl.commFinalize(comm), comm); });
}

void NcclRank::destroy() {
  std::lock_guard<std::mutex> guard(lock);
  if (hasExpired)
    return;
  hasExpired = true;
  useDevice();
  onEveryComm([&](NcclComm comm) { nccl.commDestroy(comm); });
}

void NcclRank::abort() noexcept {
  std::lock_guard<std::mutex> guard(lock);
  if (hasExpired)
    return;
  hasExpired = true;
  useDevice();
  onEveryComm([&](NcclComm comm) { nccl.commAbort(comm); });
}

void NcclRank::begin(uint32_t collective, const std::byte *source, std::byte *target) noexcept {
  std::lock_guard<std::mutex> guard(lock);
  Flight &flight = flights[collective];
  flight.source = source;
  flight.target = target;
  flight.state = State::queued;
  flight.joinsNext = joins;
  joins = false;
  waiting[tail++ % waiting.size()] = collective;
  flight.begun.fetch_add(1, std::memory_order_release);
  try {
    if (queue && !hasExpired)
      holdLane(flight);
    flight.span.from = stamp(flight);
    pump();
  } catch (const NcclFailure &reason) {
    failure = reason;
  }
}

/// Makes the stream of a collective wait for all work that is on the compute stream of the rank at
/// this time.
void NcclRank::holdLane(const Flight &flight) const {
  useDevice();
  expect(cuda.eventRecord(flight.beganAt, queue->stream(CudaQueue::compute)));
  expect(queue->driver().streamWaitEvent(streamOf(flight), flight.beganAt, 0));
}

uint32_t NcclRank::stamp(const Flight &flight) const {
  return queue && !hasExpired
             ? queue->stamp(lanes[flight.call.lane].reduces ? CudaQueue::reduce : CudaQueue::gather)
             : 0;
}

/// Sends to the next member, and receives from the member before, in one group of NCCL.
NcclResult NcclRank::shift(const Flight &flight, NcclComm comm, CudaStream stream) const {
  const NcclCall &call = flight.call;
  NcclGroup group(nccl);
  NcclResult result = nccl.send(flight.source, call.count, call.type, call.next, comm, stream);
  if (result == ncclOk || result == ncclInProgress)
    result = nccl.receive(flight.target, call.count, call.type, call.root, comm, stream);
  NcclResult ended = group.end();
  return result == ncclOk || result == ncclInProgress ? ended : result;
}

NcclResult NcclRank::issue(const Flight &flight) const {
  const NcclCall &call = flight.call;
  NcclComm comm = lanes[call.lane].comm;
  CudaStream stream = streamOf(flight);
  switch (call.kind) {
  case fb::CollectiveKind::all_gather:
    return nccl.allGather(flight.source, flight.target, call.count, call.type, comm, stream);
  case fb::CollectiveKind::reduce_scatter:
    return nccl.reduceScatter(flight.source, flight.target, call.count, call.type, call.operation,
                              comm, stream);
  case fb::CollectiveKind::all_reduce:
    return nccl.allReduce(flight.source, flight.target, call.count, call.type, call.operation, comm,
                          stream);
  case fb::CollectiveKind::broadcast:
    return nccl.broadcast(flight.source, flight.target, call.count, call.type, call.root, comm,
                          stream);
  case fb::CollectiveKind::shift:
    return shift(flight, comm, stream);
  }
  return ncclInvalidUsage;
}

/// The next launch consists of consecutive collectives of `waiting`, beginning at `head`. Returns
/// the position after the last collective of this launch. Returns nullopt if the rank has not yet
/// started all collectives of the launch.
std::optional<uint64_t> NcclRank::endOfLaunch() const {
  uint64_t last = head;
  while (flightAt(last).joinsNext)
    if (++last == tail)
      return std::nullopt;
  return last + 1;
}

NcclResult NcclRank::issueLaunch(uint64_t end) {
  if (end == head + 1) {
    flightAt(head).state = State::issuing;
    return issue(flightAt(head));
  }
  NcclGroup group(nccl);
  for (uint64_t place = head; place != end; ++place) {
    flightAt(place).state = State::issuing;
    if (NcclResult result = issue(flightAt(place)); result != ncclOk && result != ncclInProgress)
      return result;
  }
  return group.end();
}

/// Issues the queued launches in order. Stops before a launch whose collectives have not all been
/// started, and after a launch whose NCCL call is still in progress.
void NcclRank::pump() {
  if (hasExpired || failure)
    return;
  useDevice();
  while (head != tail) {
    std::optional<uint64_t> end = endOfLaunch();
    if (!end)
      return;
    NcclComm comm = lanes[flightAt(head).call.lane].comm;
    if (flightAt(head).state == State::queued)
      expect(issueLaunch(*end), comm);
    if (!isSettled(comm))
      return;
    for (; head != *end; ++head) {
      Flight &flight = flightAt(head);
      flight.span.to = stamp(flight);
      expect(cuda.eventRecord(flight.event, streamOf(flight)));
      flight.state = State::issued;
    }
  }
}

void NcclRank::checkLanes() const {
  for (const Lane &lane : lanes) {
    NcclResult state = ncclOk;
    expect(nccl.commGetAsyncError(lane.comm, &state), lane.comm);
    expect(state, lane.comm);
  }
}

void NcclRank::check() {
  std::lock_guard<std::mutex> guard(lock);
  if (failure)
    throw *failure;
  if (hasExpired)
    return;
  pump();
  checkLanes();
}

void NcclRank::expectAlive() const {
  if (failure)
    throw *failure;
  if (hasExpired)
    throw Abandoned();
}

bool NcclRank::isOrdered(uint32_t collective) {
  std::lock_guard<std::mutex> guard(lock);
  expectAlive();
  pump();
  Flight &flight = flights[collective];
  checkLanes();
  if (flight.state != State::issued)
    return false;
  expect(queue->driver().streamWaitEvent(queue->stream(CudaQueue::compute), flight.event, 0));
  flight.state = State::idle;
  return true;
}

bool NcclRank::isComplete(uint32_t collective) {
  std::lock_guard<std::mutex> guard(lock);
  expectAlive();
  pump();
  Flight &flight = flights[collective];
  CudaResult result = flight.state == State::issued ? cuda.eventQuery(flight.event) : cudaNotReady;
  if (result == cudaNotReady) {
    checkLanes();
    return false;
  }
  expect(result);
  flight.state = State::idle;
  return true;
}

const std::byte *NcclRank::zeros(size_t bytes) {
  std::lock_guard<std::mutex> guard(lock);
  useDevice();
  if (bytes > zeroBytes) {
    if (zeroMemory)
      cuda.memFree(zeroMemory);
    zeroMemory = 0;
    expect(cuda.memAlloc(&zeroMemory, bytes));
    zeroBytes = bytes;
    // The sum that reads the zeros is enqueued later on the same stream as the memset, so it runs
    // after the memset.
    expect(cuda.memsetAsync(zeroMemory, 0, bytes, streams[1]));
  }
  return reinterpret_cast<const std::byte *>(zeroMemory);
}
