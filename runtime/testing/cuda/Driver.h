//===- Driver.h - Emulated CUDA driver --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Emulates devices, contexts, allocations and streams. The operations of a stream run as late as
// possible:
//
//   call    adds an operation after the last one of its stream and the events it waits for
//   wait    (synchronise, or a synchronous copy) runs only the operations that precede it
//   query   runs the same operations as a wait, for half a second at most
//
// If an event is missing in a program, the results of the program are therefore wrong. Footprints.h
// also reports accesses that are not ordered. With FSDPRT_EMULATED_CUDA_ORDER=N, a wait runs ready
// operations in a random order with seed N, and the clusters and warps of a kernel alternate at
// random. FSDPRT_EMULATED_CUDA_FAULT plants a fault: with hang:N,
// kernel number N never ends; with fail:N, kernel number N fails; with slow:N, each kernel takes N
// ms longer; with unordered, streams ignore events. With hang:ENTRY and fail:ENTRY the fault is in
// each launch of an entry; calls that wait for a hanging launch do not return. With crash:ENTRY the
// process ends. With flip:ENTRY a bit of the results of every second launch changes. If one of
// these variables has any other value, cuInit fails, so that typing errors are detected.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TESTING_CUDA_DRIVER_H
#define FSDPRT_TESTING_CUDA_DRIVER_H

#include "core/Error.h"
#include "emulator/Emulator.h"
#include "testing/cuda/Footprints.h"
#include "testing/cuda/Peers.h"
#include <chrono>
#include <cstdio>
#include <functional>
#include <mutex>
#include <random>
#include <set>

namespace fsdprt::emulated {

using namespace fsdprt::emulate;
using Address = unsigned long long;

enum Result : int {
  success = 0,
  invalidValue = 1,
  outOfMemory = 2,
  notInitialised = 3,
  invalidContext = 201,
  noBinary = 209,
  invalidPtx = 218,
  invalidHandle = 400,
  notFound = 500,
  notReady = 600,
  peerAlreadyEnabled = 704,
  launchFailed = 719,
  captureUnsupported = 900,
  captureInvalidated = 901,
  captureMerge = 902,
  captureUnmatched = 903,
  captureUnjoined = 904,
  captureIsolation = 905,
  capturedEvent = 907
};

/// The exception of a wrong call of a driver function. `result` is the result code of the call.
class Misuse : public Error {
public:
  Misuse(Result result, const std::string &text) : Error(FSDPRT_BAD_INPUT, text), result(result) {}
  Result result;
};

struct Operation;
using OperationRef = std::shared_ptr<Operation>;
struct Operation {
  std::shared_ptr<const std::string> name;
  uint32_t stream = 0, time = 0;
  Clock clock;
  std::function<std::vector<Touched>()> body; ///< null if it only orders other operations

  /// These functions are set if the operation waits for peers. `begin` is called when the operation
  /// is submitted. `begin` returns the function `attempt`, which returns true when the work has
  /// ended.
  std::function<std::function<bool()>()> begin;
  std::function<bool()> attempt;
  std::vector<OperationRef> after;
  bool isDone = false, hangs = false;
};

struct Context {
  int device = 0;
  unsigned users = 0;
};

struct Stream;
/// Records the operations of some streams instead of executing them.
struct Capture {
  Stream *origin;
  std::vector<OperationRef> operations;
  std::set<Stream *> streams;
  bool isInvalid = false;
};
struct Stream {
  Context *context = nullptr;
  uint32_t number = 0;
  OperationRef last; ///< last operation of the stream or of its current capture
  OperationRef lastBefore;
  std::shared_ptr<Capture> capture;
};
struct Event : std::enable_shared_from_this<Event> {
  Context *context = nullptr;
  OperationRef recorded;
  std::weak_ptr<Capture> capture;
  bool isCaptured = false;
  std::chrono::steady_clock::time_point time;
};
struct Graph {
  std::vector<OperationRef> operations;
};
struct ExecutableGraph {
  Context *context = nullptr;
  std::vector<OperationRef> operations;
  std::map<uint32_t, uint32_t> streams; ///< new number of each captured stream, for launches
  OperationRef last;
};

struct LoadedModule;
struct Entry {
  LoadedModule *module;
  std::string name;
  uint64_t dynamicShared;
};
/// A module. The code of a module occupies device memory only after a function of the module has
/// been looked up or launched, as with CUDA_MODULE_LOADING=LAZY, which is the default of CUDA.
struct LoadedModule {
  LoadedModule(Context *context, std::string text, std::shared_ptr<Memory> memory)
      : context(context), bytes(text.size()),
        emulator("module.ptx", std::move(text), std::move(memory)) {}
  Context *context;
  uint64_t bytes;
  bool isLoaded = false;
  Emulator emulator;
  std::map<std::string, Entry> entries;
};

/// Host memory that acts as device memory, in a range that only emulated allocations use.
class HostMapping {
public:
  explicit HostMapping(size_t bytes);
  ~HostMapping();
  HostMapping(const HostMapping &) = delete;
  HostMapping &operator=(const HostMapping &) = delete;
  void *memory;
  size_t bytes;
};
enum class MemoryKind { device, managed, pinned };
struct Allocation {
  Storage *storage;
  MemoryKind kind;
  int device;
  std::unique_ptr<HostMapping> mapping;
};

class Driver {
public:
  static Driver &only();

  std::mutex mutex;
  bool isReady = false, hasFailed = false;

  //===- Devices and memory ---------------------------------------------------===//

  std::shared_ptr<Memory> memory = std::make_shared<Memory>();
  std::map<uint64_t, Allocation> allocations;
  std::vector<Context> contexts;
  Context &current() const;
  uint64_t usedBytes(int device) const;
  void expectRoom(int device, uint64_t bytes) const;
  uint64_t add(Allocation allocation);
  void free(uint64_t address, bool isPinned);
  /// Returns the allocation that contains [address, address + count), or throws Misuse.
  Storage &range(uint64_t address, uint64_t count, const char *what);

  //===- Handles --------------------------------------------------------------===//

  std::map<LoadedModule *, std::unique_ptr<LoadedModule>> modules;
  std::map<Stream *, std::unique_ptr<Stream>> streams;
  std::map<Event *, std::shared_ptr<Event>> events;
  std::map<Graph *, std::unique_ptr<Graph>> graphs;
  std::map<ExecutableGraph *, std::unique_ptr<ExecutableGraph>> executables;
  /// Returns the stream of a handle. A null handle denotes the current context's own stream.
  Stream &streamOf(void *handle);
  Event &eventOf(void *handle);
  Stream &makeStream(Context &context);

  //===- Work -----------------------------------------------------------------===//

  OperationRef enqueue(Stream &stream, std::string name, std::function<std::vector<Touched>()> body,
                       OperationRef alsoAfter = nullptr,
                       std::function<std::function<bool()>()> begin = nullptr);
  /// Returns true if `operation` is done or null. The last operation of an empty stream is null.
  bool isOver(const OperationRef &operation) const { return !operation || operation->isDone; }
  /// Executes an operation and the work that precedes it, for at most `limit`. Later work of the
  /// host is then ordered after the operation.
  /// Without a limit, the call does not return if the kernel hang:ENTRY precedes the operation.
  void await(const OperationRef &operation, std::chrono::milliseconds limit = forever);
  /// Returns true if the operation was done before the call. Otherwise executes the operation
  /// within the time limit of a query, and returns false.
  bool query(const OperationRef &operation);
  void awaitAll();
  OperationRef launchGraph(ExecutableGraph &graph, Stream &stream);
  uint32_t newStreamNumber() { return ++lastStream; }
  void reset();
  /// Returns true with CUDA_LAUNCH_BLOCKING=1: as with NVIDIA's driver, a launch then returns only
  /// after the kernel has ended.
  bool blocksLaunches() const { return isBlocking; }
  bool ignoresEvents() const { return fault == "unordered"; }
  /// Returns true if the fault `kind` is planted in this launch of a kernel. If the fault is given
  /// by a number, counts kernels.
  bool isFaulty(const char *kind, const std::string &entry);
  static constexpr std::chrono::milliseconds forever = std::chrono::hours(1000);
  /// Flips a bit of what a kernel has written, in every second call.
  void flipSecond(const std::vector<Touched> &touched);
  /// Returns a seed for the order of a kernel's clusters and warps, or 0 for the fixed order.
  uint32_t drawSeed() { return isRandom ? static_cast<uint32_t>(random()) : 0; }
  std::chrono::milliseconds delay() const {
    return std::chrono::milliseconds(fault == "slow" ? faultAt : 0);
  }

private:
  Driver();
  void submit(const OperationRef &operation);
  /// Executes an operation. Returns false if the operation cannot end now.
  bool execute(Operation &operation);
  using Time = std::chrono::steady_clock::time_point;
  void executeBefore(const OperationRef &operation, Time limit);
  void executeAny(const OperationRef &until, Time limit);
  bool executeOther();

  std::map<Context *, Stream *> ownStreams;
  std::map<uint32_t, uint32_t> times; // number of submitted operations of each stream
  uint32_t lastStream = 0;
  std::vector<OperationRef> pending;
  Clock host;
  Footprints footprints;
  bool isRandom = false, isBlocking = false;
  std::minstd_rand random;
  std::string fault, faultyEntry;
  uint64_t faultAt = 0, kernels = 0;
};

Context *&currentContext();
int capability();
uint64_t memoryBytes();
/// Returns a message about the first environment variable that has an invalid value. Returns "" if
/// all values are valid.
std::string wrongVariable();

/// Runs the body of a driver function. If the body throws an exception, prints the exception.
/// Returns the result code of the exception, or `onError` if the exception has no result code.
template <typename Body>
Result call(Result onError, Body body) {
  Driver &driver = Driver::only();
  std::lock_guard lock(driver.mutex);
  if (!driver.isReady)
    return notInitialised;
  if (driver.hasFailed)
    return launchFailed;
  try {
    return body(driver);
  } catch (const Misuse &error) {
    std::fprintf(stderr, "emulated CUDA: %s\n", error.what());
    return error.result;
  } catch (const std::bad_alloc &) {
    return outOfMemory;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "emulated CUDA: %s\n", error.what());
    return driver.hasFailed ? launchFailed : onError;
  }
}

} // namespace fsdprt::emulated

#endif // FSDPRT_TESTING_CUDA_DRIVER_H
