//===- Queues.cpp - Emulated streams, events and graphs ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A capture includes the stream on which it began, and each stream that waits for an event of the
// capture. When the capture ends, the first stream must have waited for the other streams. While a
// stream is captured, no work of this stream is executed.
//
//===----------------------------------------------------------------------===//

#include "testing/cuda/Driver.h"
#include <algorithm>

using namespace fsdprt;
using namespace fsdprt::emulated;

using Clockwork = std::chrono::steady_clock;
static constexpr unsigned nonBlocking = 1;

static void join(Stream &stream, const std::shared_ptr<Capture> &capture) {
  stream.lastBefore = stream.last;
  stream.last = nullptr;
  stream.capture = capture;
  capture->streams.insert(&stream);
}

static void leaveAll(const std::shared_ptr<Capture> &capture) {
  for (Stream *stream : capture->streams) {
    stream->last = stream->lastBefore;
    stream->capture = nullptr;
  }
}

/// Invalidates the capture of a stream and throws, because the host must not wait for the stream.
static void expectNoCapture(Stream &stream, const char *what) {
  if (!stream.capture)
    return;
  stream.capture->isInvalid = true;
  throw Misuse(captureUnsupported,
               format("%s stream %u while it is captured", what, stream.number));
}

/// Returns `end` and all operations that precede it.
static std::set<const Operation *> before(const OperationRef &end) {
  std::set<const Operation *> found;
  std::vector<const Operation *> stack;
  if (end)
    stack.push_back(end.get());
  while (!stack.empty()) {
    const Operation *top = stack.back();
    stack.pop_back();
    if (found.insert(top).second)
      for (const OperationRef &each : top->after)
        stack.push_back(each.get());
  }
  return found;
}

static Result expectJoined(const Capture &capture) {
  std::set<const Operation *> joined = before(capture.origin->last);
  for (const OperationRef &each : capture.operations)
    if (each->body && !joined.count(each.get())) {
      std::fprintf(stderr,
                   "emulated CUDA: a capture ends, and %s (stream %u) is not joined to the stream "
                   "that it began on\n",
                   each->name->c_str(), each->stream);
      return captureUnjoined;
    }
  return success;
}

static void waitFor(Driver &driver, Stream &stream, Event &event) {
  if (!event.recorded)
    throw Misuse(invalidValue,
                 format("stream %u waits for an event that was never recorded", stream.number));
  std::shared_ptr<Capture> capture = event.capture.lock();
  if (event.isCaptured && !capture)
    throw Misuse(capturedEvent,
                 format("stream %u waits for an event of a capture that has ended", stream.number));
  if (capture && stream.capture && stream.capture != capture)
    throw Misuse(captureMerge,
                 format("stream %u, which is captured, waits for an event of another capture",
                        stream.number));
  if (!capture && stream.capture) {
    stream.capture->isInvalid = true;
    throw Misuse(
        captureIsolation,
        format("stream %u, which is captured, waits for an event from before", stream.number));
  }
  if (capture && !stream.capture)
    join(stream, capture);
  if (driver.ignoresEvents())
    return;
  driver.enqueue(stream, "a wait for an event", nullptr, event.recorded);
}

extern "C" {

Result cuStreamCreate(void **stream, unsigned flags) {
  return call(invalidValue, [&](Driver &driver) {
    if (flags != nonBlocking)
      throw Misuse(invalidValue,
                   "makes a stream that waits for the context's own, which is not emulated");
    *stream = &driver.makeStream(driver.current());
    return success;
  });
}
Result cuStreamCreateWithPriority(void **stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}
Result cuStreamDestroy_v2(void *stream) {
  return call(invalidValue, [&](Driver &driver) {
    Stream &found = driver.streamOf(stream);
    expectNoCapture(found, "destroys");
    driver.await(found.last);
    driver.streams.erase(&found);
    return success;
  });
}
Result cuStreamQuery(void *stream) {
  return call(invalidValue, [&](Driver &driver) {
    Stream &found = driver.streamOf(stream);
    expectNoCapture(found, "queries");
    return driver.query(found.last) ? success : notReady;
  });
}
Result cuStreamGetCtx(void *stream, void **context) {
  return call(invalidValue, [&](Driver &driver) {
    *context = driver.streamOf(stream).context;
    return success;
  });
}
Result cuStreamSynchronize(void *stream) {
  return call(invalidValue, [&](Driver &driver) {
    Stream &found = driver.streamOf(stream);
    expectNoCapture(found, "waits for");
    driver.await(found.last);
    return success;
  });
}
Result cuStreamWaitEvent(void *stream, void *event, unsigned) {
  return call(invalidValue, [&](Driver &driver) {
    waitFor(driver, driver.streamOf(stream), driver.eventOf(event));
    return success;
  });
}
Result cuCtxSynchronize() {
  return call(launchFailed, [](Driver &driver) {
    driver.current();
    driver.awaitAll();
    return success;
  });
}

Result cuEventCreate(void **event, unsigned) {
  return call(invalidValue, [&](Driver &driver) {
    auto made = std::make_shared<Event>();
    made->context = &driver.current();
    *event = made.get();
    driver.events[made.get()] = std::move(made);
    return success;
  });
}
Result cuEventDestroy_v2(void *event) {
  return call(invalidValue, [&](Driver &driver) {
    driver.events.erase(&driver.eventOf(event));
    return success;
  });
}
Result cuEventRecord(void *event, void *stream) {
  return call(invalidValue, [&](Driver &driver) {
    Stream &on = driver.streamOf(stream);
    std::shared_ptr<Event> found = driver.eventOf(event).shared_from_this();
    if (found->context != on.context)
      throw Misuse(invalidHandle, format("records an event of device %d on stream %u of device %d",
                                         found->context->device, on.number, on.context->device));
    // `noted` is weak, because an operation of an abandoned capture never runs.
    auto note = [noted = std::weak_ptr<Event>(found)] {
      if (std::shared_ptr<Event> event = noted.lock())
        event->time = Clockwork::now();
      return std::vector<Touched>();
    };
    found->recorded = driver.enqueue(on, "an event", note);
    found->capture = on.capture;
    found->isCaptured = on.capture != nullptr;
    return success;
  });
}
Result cuEventQuery(void *event) {
  return call(invalidValue, [&](Driver &driver) {
    Event &found = driver.eventOf(event);
    if (found.isCaptured)
      throw Misuse(capturedEvent, "queries an event of a capture");
    return driver.query(found.recorded) ? success : notReady;
  });
}
Result cuEventSynchronize(void *event) {
  return call(invalidValue, [&](Driver &driver) {
    Event &found = driver.eventOf(event);
    if (found.isCaptured)
      throw Misuse(capturedEvent, "waits for an event of a capture");
    driver.await(found.recorded);
    return success;
  });
}
Result cuEventElapsedTime_v2(float *milliseconds, void *from, void *to) {
  return call(invalidValue, [&](Driver &driver) {
    Event &first = driver.eventOf(from), &second = driver.eventOf(to);
    if (!first.recorded || !second.recorded)
      throw Misuse(invalidHandle,
                   "asks for the time between events of which one was never recorded");
    if (!first.recorded->isDone || !second.recorded->isDone)
      return notReady;
    *milliseconds = std::chrono::duration<float, std::milli>(second.time - first.time).count();
    return success;
  });
}
Result cuEventElapsedTime(float *milliseconds, void *from, void *to) {
  return cuEventElapsedTime_v2(milliseconds, from, to);
}

Result cuStreamBeginCapture_v2(void *stream, int) {
  return call(invalidValue, [&](Driver &driver) {
    Stream &found = driver.streamOf(stream);
    if (!stream || found.capture)
      throw Misuse(captureUnsupported,
                   "begins to capture the context's own stream, or one that is captured");
    auto capture = std::make_shared<Capture>();
    capture->origin = &found;
    join(found, capture);
    return success;
  });
}
Result cuStreamEndCapture(void *stream, void **graph) {
  return call(invalidValue, [&](Driver &driver) {
    Stream &found = driver.streamOf(stream);
    std::shared_ptr<Capture> capture = found.capture;
    *graph = nullptr;
    if (!capture || capture->origin != &found)
      throw Misuse(captureUnmatched,
                   format("ends a capture that did not begin on stream %u", found.number));
    Result result = capture->isInvalid ? captureInvalidated : expectJoined(*capture);
    leaveAll(capture);
    if (result != success)
      return result;
    auto made = std::make_unique<Graph>();
    made->operations = std::move(capture->operations);
    *graph = made.get();
    driver.graphs.emplace(made.get(), std::move(made));
    return success;
  });
}
Result cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long) {
  return call(invalidValue, [&](Driver &driver) {
    auto found = driver.graphs.find(static_cast<Graph *>(graph));
    if (found == driver.graphs.end())
      throw Misuse(invalidHandle, "instantiates an unknown graph");
    auto made = std::make_unique<ExecutableGraph>();
    made->context = &driver.current();
    made->operations = found->second->operations;
    *executable = made.get();
    driver.executables.emplace(made.get(), std::move(made));
    return success;
  });
}
static ExecutableGraph &executableOf(Driver &driver, void *handle) {
  auto found = driver.executables.find(static_cast<ExecutableGraph *>(handle));
  if (found == driver.executables.end())
    throw Misuse(invalidHandle, "uses a graph that was not instantiated");
  return *found->second;
}
Result cuGraphUpload(void *executable, void *stream) {
  return call(invalidValue, [&](Driver &driver) {
    executableOf(driver, executable);
    driver.streamOf(stream);
    return success;
  });
}
Result cuGraphLaunch(void *executable, void *stream) {
  return call(launchFailed, [&](Driver &driver) {
    Stream &found = driver.streamOf(stream);
    expectNoCapture(found, "launches a graph on");
    driver.launchGraph(executableOf(driver, executable), found);
    return success;
  });
}
Result cuGraphExecDestroy(void *executable) {
  return call(invalidValue, [&](Driver &driver) {
    driver.executables.erase(&executableOf(driver, executable));
    return success;
  });
}
Result cuGraphDestroy(void *graph) {
  return call(invalidValue, [&](Driver &driver) {
    return driver.graphs.erase(static_cast<Graph *>(graph)) ? success : invalidHandle;
  });
}
}
