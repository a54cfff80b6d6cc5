//===- MpiCollective.cpp - A collective as messages -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All messages of a collective have the same tag. MPI delivers the messages of one sender in the
// order in which they were sent. A rank that is ahead of others may therefore already send messages
// of the next run of the collective.
//
// If a large all_reduce is in place, a rank must not receive data into memory from which it still
// sends. In the first half of the all_reduce, the rank writes only its own segment and sends only
// the other segments. In the second half, the rank receives the other segments. This half begins
// only after all sends of the first half are complete.
//
//===----------------------------------------------------------------------===//

#include "collectives/mpi/MpiCollective.h"
#include "collectives/local/Reduce.h"
#include <algorithm>
#include <climits>
#include <cstring>
#include <iterator>

using namespace fsdprt;
using fb::CollectiveKind;

// segment boundaries are multiples of this number of elements
static constexpr uint64_t pieceTile = 16;
// Least number of bytes of a sum that is divided among threads.
static constexpr uint64_t parallelBytes = 64 << 10;

void MpiLanes::reserve(uint64_t laneBytes) {
  memory.resize(laneBytes * count);
  for (uint32_t i = 0; i < count && laneBytes; ++i)
    free.push_back(memory.data() + i * laneBytes);
}

std::byte *MpiLanes::take() {
  if (free.empty())
    return nullptr;
  std::byte *lane = free.back();
  free.pop_back();
  return lane;
}

MpiCollective::MpiCollective(MpiLibrary &mpi, const CollectiveKey &key,
                             const std::vector<uint32_t> &members, uint32_t own,
                             fsdprt_mpi_handle over, int tag)
    : mpi(mpi), key(key), members(members), group(static_cast<uint32_t>(members.size())), own(own),
      over(over), tag(tag), elementBytes(sizeOf(key.dtype)), sources(members.size()) {
  for (Direction *direction : {&sends, &receives})
    direction->requests.assign(size_t(2) * group, mpi.noRequest());
  lacking.reserve(group);
}

bool MpiCollective::canUseLibrary() const {
  return isSum() && group > 1 && (key.dtype == DType::f32 || key.dtype == DType::f64) &&
         key.count > 0 && key.count <= INT_MAX / group;
}

uint64_t MpiCollective::laneBytes() const {
  if (!isSum() || group == 1)
    return 0;
  uint64_t row =
      key.kind == CollectiveKind::all_reduce && isSmall() ? smallBytes : MpiLanes::chunkBytes;
  return std::min(row, (key.count * elementBytes + 63) / 64 * 64) * group * 2;
}

/// In a large all_reduce, member j sums only a range of the elements. Sets `first` and `count` to
/// this range.
void MpiCollective::pieceOf(uint32_t j, uint64_t &first, uint64_t &count) const {
  uint64_t end;
  WorkerPool::split(key.count, pieceTile, group, j, first, end);
  count = first < end ? end - first : 0;
}

/// Returns true if member `to` receives data from member `from`.
bool MpiCollective::reaches(uint32_t from, uint32_t to) const {
  return from != to && (!key.hasOneSender() || from == key.senderFor(to, group));
}

uint64_t MpiCollective::sendBytes(uint32_t j) const {
  uint64_t first, count = key.count;
  if (!reaches(own, j))
    return 0;
  if (key.kind == CollectiveKind::all_reduce && (phase == Phase::spread || !isSmall()))
    pieceOf(phase == Phase::spread ? own : j, first, count);
  return count * elementBytes;
}

const std::byte *MpiCollective::sendFrom(uint32_t j) const {
  uint64_t first = 0, count;
  if (key.kind == CollectiveKind::reduce_scatter)
    first = j * key.count;
  else if (key.kind == CollectiveKind::all_reduce && (phase == Phase::spread || !isSmall()))
    pieceOf(phase == Phase::spread ? own : j, first, count);
  return (phase == Phase::spread ? target : source) + first * elementBytes;
}

uint64_t MpiCollective::receiveBytes(uint32_t j) const {
  uint64_t first, count = key.count;
  if (!reaches(j, own))
    return 0;
  if (key.kind == CollectiveKind::all_reduce && (phase == Phase::spread || !isSmall()))
    pieceOf(phase == Phase::spread ? j : own, first, count);
  return count * elementBytes;
}

std::byte *MpiCollective::receiveInto(uint32_t j, uint64_t row) const {
  if (phase == Phase::sum)
    return lane + (row % 2 * group + j) * chunk;
  uint64_t first = key.kind == CollectiveKind::all_gather ? j * key.count : 0, count;
  if (phase == Phase::spread)
    pieceOf(j, first, count);
  return target + first * elementBytes + row * chunk;
}

uint64_t MpiCollective::rowsFor(uint64_t (MpiCollective::*bytesOf)(uint32_t) const) const {
  uint64_t most = 0;
  for (uint32_t j = 0; j < group; ++j)
    most = std::max(most, (this->*bytesOf)(j));
  return (most + chunk - 1) / chunk;
}

void MpiCollective::start(const std::byte *newSource, std::byte *newTarget) {
  source = newSource;
  target = newTarget;
  if (library && dropped == UINT32_MAX)
    return startLibrary();
  if (isSum() && group > 1)
    return enter(Phase::sum);
  bool receivesAll = key.hasOneSender() && own != key.senderFor(own, group);
  std::byte *to =
      target + (key.kind == CollectiveKind::all_gather ? own * key.count * elementBytes : 0);
  if (isSum())
    reduceInOrder(key.dtype, key.reduction == fb::Reduction::avg,
                  own == dropped ? sources.data() : &source, 1, 0, key.count, target);
  else if (!receivesAll && to != source && key.count != 0)
    std::memcpy(to, source, key.count * elementBytes);
  enter(Phase::move);
}

/// Computes the size of the chunks and the numbers of rows for a phase. In the phase `sum`, chunks
/// must be so small that they fit in the cache and in a lane.
void MpiCollective::plan() {
  chunk = largeChunkBytes;
  if (phase == Phase::sum)
    chunk = std::max<uint64_t>(laneBytes() / group / 2, 64);
  sends.rows = rowsFor(&MpiCollective::sendBytes);
  receives.rows = rowsFor(&MpiCollective::receiveBytes);
  for (Direction *direction : {&sends, &receives})
    direction->posted = direction->finished = 0;
}

void MpiCollective::enter(Phase next) {
  phase = next;
  if (phase != Phase::done)
    plan();
}

void MpiCollective::goOn() {
  bool spreads = phase == Phase::sum && key.kind == CollectiveKind::all_reduce && !isSmall();
  enter(spreads ? Phase::spread : Phase::done);
}

bool MpiCollective::advance(MpiLanes &lanes, WorkerPool *pool) {
  bool moved = false;
  if (phase == Phase::library && mpi.isDone(&libraryRequest, 1)) {
    scaleSum();
    phase = Phase::done;
    return true;
  }
  while (phase == Phase::move || phase == Phase::sum || phase == Phase::spread) {
    bool sent = advanceSends(), received = advanceReceives(lanes, pool);
    moved |= sent || received;
    if (sends.finished < sends.rows || receives.finished < receives.rows)
      return moved;
    if (lane)
      lanes.giveBack(std::exchange(lane, nullptr));
    goOn();
  }
  return moved;
}

void MpiCollective::post(Direction &direction, bool sending) {
  uint64_t row = direction.posted++;
  fsdprt_mpi_handle *requests = rowOf(direction, row);
  for (uint32_t j = 0; j < group; ++j) {
    uint64_t all = sending ? sendBytes(j) : receiveBytes(j);
    if (all <= row * chunk)
      continue;
    int bytes = static_cast<int>(std::min(all - row * chunk, chunk)),
        peer = static_cast<int>(members[j]);
    if (sending)
      mpi.check(mpi->send(over, sendFrom(j) + row * chunk, bytes, peer, tag, &requests[j]),
                "a send");
    else
      mpi.check(mpi->receive(over, receiveInto(j, row), bytes, peer, tag, &requests[j]),
                "a receive");
  }
}

bool MpiCollective::advanceSends() {
  bool moved = false;
  while (true) {
    for (; sends.posted < sends.rows && sends.posted < sends.finished + 2; moved = true)
      post(sends, true);
    if (sends.finished == sends.posted || !mpi.isDone(rowOf(sends, sends.finished), group))
      return moved;
    ++sends.finished;
    moved = true;
  }
}

bool MpiCollective::advanceReceives(MpiLanes &lanes, WorkerPool *pool) {
  bool moved = false;
  if (phase == Phase::sum && receives.rows && !lane && !(lane = lanes.take()))
    return false;
  while (true) {
    for (; receives.posted < receives.rows && receives.posted < receives.finished + 2; moved = true)
      post(receives, false);
    if (receives.finished == receives.posted ||
        !mpi.isDone(rowOf(receives, receives.finished), group))
      return moved;
    bool mustBeSent = phase == Phase::sum && isInPlace() && isSmall();
    if (mustBeSent && sends.finished < sends.rows)
      return moved;
    if (phase == Phase::sum)
      addUp(receives.finished, pool);
    ++receives.finished;
    moved = true;
  }
}

/// Adds up the chunks of the row with index `row`. The chunks of other members are in the lane, and
/// the chunk of the rank is in its own source.
void MpiCollective::addUp(uint64_t row, WorkerPool *pool) {
  uint64_t first = 0, count = key.count;
  if (key.kind == CollectiveKind::all_reduce && !isSmall())
    pieceOf(own, first, count);
  uint64_t from = key.kind == CollectiveKind::reduce_scatter ? own * key.count : first;
  uint64_t done = row * chunk / elementBytes,
           elements = std::min(count - done, chunk / elementBytes);
  for (uint32_t j = 0; j < group; ++j)
    sources[j] = j == own ? source + (from + done) * elementBytes : receiveInto(j, row);
  if (dropped < group)
    sources[dropped] = nullptr;
  std::byte *to = target + (first + done) * elementBytes;
  auto part = [&](uint64_t begin, uint64_t end) {
    reduceInOrder(key.dtype, key.reduction == fb::Reduction::avg, sources.data(), group,
                  begin * elementBytes, end - begin, to + begin * elementBytes);
  };
  if (!pool || pool->size() == 1 || elements * elementBytes < parallelBytes)
    return part(0, elements);
  pool->run([&](uint32_t worker) {
    uint64_t begin, end;
    WorkerPool::split(elements, pieceTile, pool->size(), worker, begin, end);
    if (begin < end)
      part(begin, end);
  });
}

void MpiCollective::startLibrary() {
  bool wide = key.dtype == DType::f64;
  int count = static_cast<int>(key.count);
  auto sum = key.kind == CollectiveKind::all_reduce ? mpi->all_reduce : mpi->reduce_scatter;
  mpi.check(sum(library, source, target, count, wide, &libraryRequest), "a sum");
  phase = Phase::library;
}

template <typename Float>
static void scale(void *data, uint64_t count, uint32_t group) {
  auto *values = static_cast<Float *>(data);
  for (uint64_t i = 0; i < count; ++i)
    values[i] *= Float(1) / static_cast<Float>(group);
}

/// If the collective is an average, multiplies the sum that the MPI library has computed by 1/n,
/// where n is the number of members.
void MpiCollective::scaleSum() {
  if (key.reduction == fb::Reduction::avg)
    key.dtype == DType::f64 ? scale<double>(target, key.count, group)
                            : scale<float>(target, key.count, group);
}

const std::vector<uint32_t> &MpiCollective::missing() {
  lacking.clear();
  for (uint32_t j = 0; j < group; ++j) {
    bool waits = false;
    for (const Direction *direction : {&receives, &sends})
      for (uint64_t row = direction->finished; row < direction->posted; ++row)
        waits |= direction->requests[row % 2 * group + j] != mpi.noRequest();
    if (waits)
      lacking.push_back(members[j]);
  }
  // If the MPI library computes the sum, the library does not report the members for which it
  // waits. In this case, return all members except this rank.
  if (lacking.empty())
    std::copy_if(members.begin(), members.end(), std::back_inserter(lacking),
                 [&](uint32_t member) { return member != members[own]; });
  return lacking;
}

void MpiCollective::abandon() {
  for (fsdprt_mpi_handle &request : receives.requests)
    mpi->cancel(&request);
}
