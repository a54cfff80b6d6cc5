//===- CudaHeartbeat.cpp - Progress of a GPU --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A kernel, and not a copy, writes the heartbeat, so that the compute stream contains no copies.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/CudaHeartbeat.h"
#include "device/cuda/CudaSums.h"

using namespace fsdprt;

CudaHeartbeat::CudaHeartbeat(const CudaQueue &queue) : queue(queue) {
  queue.use();
  void *memory = nullptr;
  queue.driver().check(
      queue.driver().memHostAlloc(&memory, (1 + numbers) * sizeof(float), cudaPortableMapped),
      "pin memory for a GPU's heartbeat");
  word = static_cast<float *>(memory);
  for (uint32_t i = 0; i <= numbers; ++i)
    word[i] = static_cast<float>(i);
}

CudaHeartbeat::~CudaHeartbeat() {
  queue.use();
  queue.driver().memFreeHost(word);
}

/// Sets the heartbeat to 0. During this call no kernel writes `word`, but other threads may read
/// it.
__attribute__((no_sanitize("thread"))) void CudaHeartbeat::begin() {
  *static_cast<volatile float *>(word) = 0;
  counted = 0;
}

void CudaHeartbeat::count() {
  if (++counted % launches != 0)
    return;
  CudaSums::Sources number;
  number.add(reinterpret_cast<CudaPointer>(word + 1 + (counted / launches - 1) % numbers));
  queue.use();
  queue.getSums().launch(queue.stream(CudaQueue::compute), DType::f32, /*isAverage=*/false, number,
                         1, reinterpret_cast<CudaPointer>(word));
}

/// Returns the heartbeat. The GPU may write the heartbeat during this call.
__attribute__((no_sanitize("thread"))) uint32_t CudaHeartbeat::read() const {
  return static_cast<uint32_t>(*static_cast<const volatile float *>(word));
}
