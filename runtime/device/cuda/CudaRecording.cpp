//===- CudaRecording.cpp - A CUDA graph of all ranks' commands ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The capture begins on the compute stream of the first rank. A stream becomes part of the capture
// when it waits for an event on a stream that is already captured.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/CudaRecording.h"
#include "core/Error.h"

using namespace fsdprt;

CudaRecording::CudaRecording(std::vector<const CudaQueue *> given) : queues(std::move(given)) {
  for (const CudaQueue *queue : queues)
    marks.push_back(std::make_unique<CudaMark>(*queue));
}

CudaRecording::~CudaRecording() {
  if (!runs)
    return;
  first().use();
  first().driver().graphExecDestroy(runs);
}

void CudaRecording::begin() {
  first().use();
  first().driver().check(
      first().driver().streamBeginCapture(first().stream(CudaQueue::compute), cudaCaptureRelaxed),
      "begin the capture of a graph");
  marks[0]->record(CudaQueue::compute);
  for (size_t i = 1; i < queues.size(); ++i)
    marks[0]->hold(*queues[i], CudaQueue::compute);
}

void CudaRecording::end() {
  const CudaDriver &cuda = first().driver();
  for (size_t i = 1; i < queues.size(); ++i) {
    marks[i]->record(CudaQueue::compute);
    marks[i]->hold(first(), CudaQueue::compute);
  }
  first().use();
  CudaGraph graph = nullptr;
  cuda.check(cuda.streamEndCapture(first().stream(CudaQueue::compute), &graph),
             "end the capture of a graph");
  CudaResult result = cuda.graphInstantiate(&runs, graph, 0);
  cuda.graphDestroy(graph);
  if (result != cudaOk)
    runs = nullptr;
  cuda.check(result, "instantiate a graph");
  cuda.check(cuda.graphUpload(runs, first().stream(CudaQueue::compute)),
             "upload a graph to its GPU");
}

void CudaRecording::cancel() noexcept {
  CudaGraph graph = nullptr;
  first().use();
  first().driver().streamEndCapture(first().stream(CudaQueue::compute), &graph);
  if (graph)
    first().driver().graphDestroy(graph);
}

void CudaRecording::launch() const {
  first().use();
  first().driver().check(first().driver().graphLaunch(runs, first().stream(CudaQueue::compute)),
                         "launch a graph");
}
