//===- TrainingRun.cpp - Shared state of a training run ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "train/TrainingRun.h"
#include "core/NumberText.h"

using namespace fsdprt;

fsdprt_session_info TrainingRun::measure() const {
  fsdprt_session_info placed = {};
  placed.struct_size = sizeof placed;
  fsdprt_session_get_info(session.get(), &placed);
  return placed;
}

void TrainingRun::setRate(uint32_t rank, float lr) const {
  float block[FSDPRT_BLOCK_SIZE];
  call(fsdprt_session_read_block, static_cast<const fsdprt_session *>(session.get()), rank,
       static_cast<float *>(block));
  block[FSDPRT_BLOCK_LR] = lr;
  call(fsdprt_session_write_block, session.get(), rank, static_cast<const float *>(block));
}

void TrainingRun::announceComparison(const InputFile &file) const {
  char text[32];
  if (!file.isCompared())
    reporter.line("note: %s has %s: ranks compared only its size and a sample of %llu MiB",
                  file.getPath().c_str(), shortBytes(file.size(), text),
                  static_cast<unsigned long long>(
                      InputFile::sampleBlocks * InputFile::sampleBlockBytes >> 20));
}
