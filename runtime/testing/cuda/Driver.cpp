//===- Driver.cpp - Emulated CUDA driver ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Operations are executed with an explicit stack, since a chain of operations, each of which waits
// for the previous one, may be too long for recursion.
//
//===----------------------------------------------------------------------===//

#include "testing/cuda/Driver.h"
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <sys/mman.h>
#include <thread>
#include <utility>

using namespace fsdprt;
using namespace fsdprt::emulated;

static constexpr uint64_t granularity = uint64_t(2) << 20, contextBytes = uint64_t(300) << 20;
static constexpr std::chrono::milliseconds queryLimit(500);
static constexpr uint64_t mostDevices = 64, leastCapability = 10, mostCapability = 999;

static uint64_t numberIn(const char *variable, uint64_t otherwise) {
  const char *given = std::getenv(variable);
  return given && *given ? std::strtoull(given, nullptr, 10) : otherwise;
}

static bool isNumber(const std::string &text, uint64_t least, uint64_t most) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= least &&
         number <= most;
}

/// Returns true for the name of an entry of a module, which does not begin with a digit.
static bool isEntryName(const std::string &text) {
  auto isPart = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '$'; };
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), isPart);
}

static bool isFault(const std::string &text) {
  size_t colon = text.find(':');
  std::string kind = text.substr(0, colon);
  if (colon == std::string::npos)
    return kind == "unordered";
  std::string which = text.substr(colon + 1);
  bool isCounted = kind == "hang" || kind == "fail", isNamed = kind == "crash" || kind == "flip";
  return ((isCounted || kind == "slow") && isNumber(which, 1, UINT64_MAX)) ||
         ((isCounted || isNamed) && isEntryName(which));
}

std::string emulated::wrongVariable() {
  struct Variable {
    const char *name;
    uint64_t least, most;
  };
  static constexpr Variable numbers[] = {{"DEVICES", 0, mostDevices},
                                         {"CAPABILITY", leastCapability, mostCapability},
                                         {"BYTES", 0, INT64_MAX},
                                         {"ORDER", 0, UINT32_MAX},
                                         {"NO_PEERS", 1, 1}};
  auto valueOf = [](const char *name) {
    const char *given = std::getenv((std::string("FSDPRT_EMULATED_CUDA_") + name).c_str());
    return std::string(given ? given : "");
  };
  for (const Variable &each : numbers)
    if (std::string value = valueOf(each.name);
        !value.empty() && !isNumber(value, each.least, each.most))
      return format("FSDPRT_EMULATED_CUDA_%s: expected %s, found '%s'", each.name,
                    each.least == each.most
                        ? format("%llu", static_cast<unsigned long long>(each.least)).c_str()
                        : format("a number from %llu to %llu",
                                 static_cast<unsigned long long>(each.least),
                                 static_cast<unsigned long long>(each.most))
                              .c_str(),
                    printable(value).c_str());
  if (std::string value = valueOf("FAULT"); !value.empty() && !isFault(value))
    return format("FSDPRT_EMULATED_CUDA_FAULT: expected unordered, or hang:N, fail:N or slow:N "
                  "with N of at least 1, or hang:ENTRY, fail:ENTRY, crash:ENTRY or flip:ENTRY, "
                  "found '%s'",
                  printable(value).c_str());
  return {};
}

Driver &Driver::only() {
  // The driver is never destroyed, because a thread may wait for a kernel while the process exits.
  static Driver *driver = new Driver;
  return *driver;
}

Driver::Driver() {
  contexts.resize(
      std::clamp<uint64_t>(numberIn("FSDPRT_EMULATED_CUDA_DEVICES", 1), 0, mostDevices));
  for (size_t i = 0; i < contexts.size(); ++i)
    contexts[i].device = static_cast<int>(i);
  isBlocking = numberIn("CUDA_LAUNCH_BLOCKING", 0) == 1;
  isRandom = std::getenv("FSDPRT_EMULATED_CUDA_ORDER") != nullptr;
  const char *planted = std::getenv("FSDPRT_EMULATED_CUDA_FAULT");
  fault = planted ? planted : "";
  if (size_t colon = fault.find(':'); colon != std::string::npos) {
    faultAt = std::strtoull(fault.c_str() + colon + 1, nullptr, 10);
    faultyEntry = faultAt ? "" : fault.substr(colon + 1);
    fault.resize(colon);
  }
  random.seed(static_cast<uint32_t>(numberIn("FSDPRT_EMULATED_CUDA_ORDER", 1)));
}

Context *&emulated::currentContext() {
  static thread_local Context *current = nullptr;
  return current;
}

Context &Driver::current() const {
  if (!currentContext() || currentContext()->users == 0)
    throw Misuse(invalidContext, "the thread has no current context");
  return *currentContext();
}

HostMapping::HostMapping(size_t bytes) : bytes(bytes) {
  // Addresses from 0x58 << 40 on are outside the shadow memory of sanitizers.
  static uint64_t next = uint64_t(0x58) << 40;
  memory = mmap(reinterpret_cast<void *>(next), bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (memory == MAP_FAILED)
    throw std::bad_alloc();
  next += (bytes + (2 << 20)) >> 20 << 20;
}

HostMapping::~HostMapping() { munmap(memory, bytes); }

static uint64_t rounded(uint64_t bytes) {
  return (bytes + granularity - 1) / granularity * granularity;
}

/// Returns the number of bytes that the context, the code and the allocations of a device occupy.
uint64_t Driver::usedBytes(int device) const {
  uint64_t used = contexts[static_cast<size_t>(device)].users ? contextBytes : 0;
  for (const auto &[address, each] : allocations)
    used +=
        each.device == device && each.kind != MemoryKind::pinned ? rounded(each.storage->size) : 0;
  for (const auto &[handle, module] : modules)
    used += module->context->device == device && module->isLoaded ? rounded(module->bytes) : 0;
  return used;
}

/// Returns ten times the compute capability. This is the value of FSDPRT_EMULATED_CUDA_CAPABILITY,
/// or 90 if this variable is not set.
int emulated::capability() {
  return static_cast<int>(std::clamp<uint64_t>(numberIn("FSDPRT_EMULATED_CUDA_CAPABILITY", 90),
                                               leastCapability, mostCapability));
}

/// Returns the memory of a device in bytes. This is the value of FSDPRT_EMULATED_CUDA_BYTES, or 80
/// GiB if this variable is not set.
uint64_t emulated::memoryBytes() {
  return numberIn("FSDPRT_EMULATED_CUDA_BYTES", uint64_t(80) << 30);
}

void Driver::expectRoom(int device, uint64_t bytes) const {
  if (usedBytes(device) + rounded(bytes) > memoryBytes())
    throw std::bad_alloc();
}

uint64_t Driver::add(Allocation allocation) {
  uint64_t address = allocation.storage->base;
  allocation.storage->touched.assign(allocation.storage->size, 0);
  allocations.emplace(address, std::move(allocation));
  return address;
}

/// Frees an allocation after all pending work, because the work may use the allocation.
void Driver::free(uint64_t address, bool isPinned) {
  auto found = allocations.find(address);
  if (found == allocations.end() || (found->second.kind == MemoryKind::pinned) != isPinned)
    throw Misuse(invalidValue,
                 format("frees 0x%llx, which is not the address of such an allocation",
                        static_cast<unsigned long long>(address)));
  awaitAll();
  footprints.forget(address, address + found->second.storage->size);
  memory->release(*found->second.storage);
  allocations.erase(found);
}

Storage &Driver::range(uint64_t address, uint64_t count, const char *what) {
  Storage *storage = memory->find(address);
  if (!storage || !allocations.count(storage->base) ||
      count > storage->base + storage->size - address)
    throw Misuse(invalidValue, format("%s %llu bytes at 0x%llx, which are not in one allocation",
                                      what, static_cast<unsigned long long>(count),
                                      static_cast<unsigned long long>(address)));
  return *storage;
}

Stream &Driver::makeStream(Context &context) {
  auto made = std::make_unique<Stream>();
  made->context = &context;
  made->number = newStreamNumber();
  Stream &stream = *made;
  streams.emplace(&stream, std::move(made));
  return stream;
}

Stream &Driver::streamOf(void *handle) {
  Context &context = current();
  if (!handle) {
    Stream *&own = ownStreams[&context];
    if (!own)
      own = &makeStream(context);
    return *own;
  }
  auto found = streams.find(static_cast<Stream *>(handle));
  if (found == streams.end())
    throw Misuse(invalidHandle, "uses an unknown stream");
  if (found->second->context != &context)
    throw Misuse(invalidHandle,
                 format("uses stream %u of device %d while the current context is of device %d",
                        found->second->number, found->second->context->device, context.device));
  return *found->second;
}

Event &Driver::eventOf(void *handle) {
  current();
  auto found = events.find(static_cast<Event *>(handle));
  if (found == events.end())
    throw Misuse(invalidHandle, "uses an unknown event");
  return *found->second;
}

OperationRef Driver::enqueue(Stream &stream, std::string name,
                             std::function<std::vector<Touched>()> body, OperationRef alsoAfter,
                             std::function<std::function<bool()>()> begin) {
  auto made = std::make_shared<Operation>();
  made->name = std::make_shared<const std::string>(std::move(name));
  made->stream = stream.number;
  made->body = std::move(body);
  made->begin = std::move(begin);
  for (const OperationRef &before : {stream.last, alsoAfter})
    if (before)
      made->after.push_back(before);
  stream.last = made;
  if (stream.capture)
    stream.capture->operations.push_back(made);
  else
    submit(made);
  return made;
}

void Driver::submit(const OperationRef &operation) {
  operation->time = ++times[operation->stream];
  operation->clock = host;
  for (const OperationRef &before : operation->after)
    operation->clock.learn(before->clock);
  operation->clock.set(operation->stream, operation->time);
  if (operation->begin)
    operation->attempt = operation->begin();
  pending.push_back(operation);
}

bool Driver::execute(Operation &operation) {
  if (operation.hangs || (operation.attempt && !operation.attempt()))
    return false;
  try {
    if (operation.body)
      footprints.add({operation.stream, operation.time, operation.name}, operation.clock,
                     operation.body());
  } catch (...) {
    hasFailed = true;
    throw;
  }
  operation.isDone = true;
  operation.after.clear();
  operation.body = nullptr;
  operation.begin = nullptr;
  operation.attempt = nullptr;
  return true;
}

bool Driver::isFaulty(const char *kind, const std::string &entry) {
  if (fault != kind)
    return false;
  return faultyEntry.empty() ? ++kernels == faultAt : faultyEntry == entry;
}

void Driver::flipSecond(const std::vector<Touched> &touched) {
  auto written = std::find_if(touched.begin(), touched.end(), [](auto &t) { return t.isWrite; });
  if (++kernels % 2 != 0 || written == touched.end())
    return;
  Storage &storage = range(written->begin, 1, "flips");
  storage.bytes[written->begin - storage.base] ^= 1;
}

void Driver::executeBefore(const OperationRef &operation, Time limit) {
  for (std::vector<OperationRef> stack{operation}; !stack.empty();) {
    OperationRef top = stack.back();
    size_t height = stack.size();
    for (const OperationRef &before : top->after)
      if (!before->isDone)
        stack.push_back(before);
    if (stack.size() != height)
      continue;
    stack.pop_back();
    // The operation may wait for peers, which in turn may wait for work of another stream.
    if (!top->isDone && !execute(*top)) {
      if (!executeOther())
        return;
      stack = {operation};
    }
    if (std::chrono::steady_clock::now() > limit)
      return;
  }
}

/// Returns true if the operation is not done, but all operations that precede it are done.
static bool mayBegin(const Operation &operation) {
  return !operation.isDone &&
         std::all_of(operation.after.begin(), operation.after.end(),
                     [](const OperationRef &before) { return before->isDone; });
}

/// Tries to execute ready operations, first those that wait for peers. A peer may wait for a
/// collective whose operands kernels on another stream compute. Returns true as soon as one of
/// these operations has ended.
bool Driver::executeOther() {
  for (bool waits : {true, false})
    for (size_t i = 0; i < pending.size(); ++i)
      if (OperationRef each = pending[i];
          bool(each->attempt) == waits && mayBegin(*each) && execute(*each))
        return true;
  return false;
}

void Driver::executeAny(const OperationRef &until, Time limit) {
  std::set<Operation *> stuck;
  while (!until->isDone && std::chrono::steady_clock::now() <= limit) {
    std::vector<Operation *> ready;
    for (const OperationRef &each : pending)
      if (mayBegin(*each) && !stuck.count(each.get()))
        ready.push_back(each.get());
    if (ready.empty())
      return;
    Operation &drawn = *ready[random() % ready.size()];
    if (execute(drawn))
      stuck.clear();
    else
      stuck.insert(&drawn);
  }
}

void Driver::await(const OperationRef &operation, std::chrono::milliseconds most) {
  if (!operation)
    return;
  if (!operation->isDone) {
    Time limit = std::chrono::steady_clock::now() + most;
    if (isRandom)
      executeAny(operation, limit);
    else
      executeBefore(operation, limit);
    pending.erase(std::remove_if(pending.begin(), pending.end(),
                                 [](const OperationRef &each) { return each->isDone; }),
                  pending.end());
  }
  bool isHung = !operation->isDone && fault == "hang" && !faultyEntry.empty();
  while (isHung && most == forever)
    std::this_thread::sleep_for(forever);
  if (operation->isDone)
    host.learn(operation->clock);
}

bool Driver::query(const OperationRef &operation) {
  bool wasOver = isOver(operation);
  await(operation, queryLimit);
  return wasOver;
}

void Driver::awaitAll() {
  for (size_t left = pending.size() + 1; !pending.empty() && pending.size() < left;) {
    left = pending.size();
    await(OperationRef(pending.back()));
  }
  for (const auto &[handle, stream] : streams)
    if (const OperationRef &last = stream->capture ? stream->lastBefore : stream->last)
      host.learn(last->clock);
}

void Driver::reset() {
  pending.clear();
  footprints = {};
  hasFailed = false;
  for (auto &[handle, stream] : streams) {
    stream->last = stream->lastBefore = nullptr;
    stream->capture = nullptr;
  }
}

OperationRef Driver::launchGraph(ExecutableGraph &graph, Stream &stream) {
  std::map<Operation *, OperationRef> made;
  auto end = std::make_shared<Operation>();
  for (const OperationRef &each : graph.operations) {
    auto copy = std::make_shared<Operation>(*each);
    uint32_t &number = graph.streams[each->stream];
    number = number ? number : newStreamNumber();
    copy->stream = number;
    for (OperationRef &before : copy->after)
      before = made.at(before.get());
    // An operation that has no predecessors in the graph must run after the earlier work of the
    // stream and after the last launch of the graph.
    if (copy->after.empty())
      for (const OperationRef &before : {stream.last, graph.last})
        if (before)
          copy->after.push_back(before);
    submit(copy);
    made[each.get()] = copy;
    end->after.push_back(copy);
  }
  end->name = std::make_shared<const std::string>("a graph");
  end->stream = stream.number;
  for (const OperationRef &before : {stream.last, graph.last})
    if (before)
      end->after.push_back(before);
  submit(end);
  stream.last = graph.last = end;
  return end;
}
