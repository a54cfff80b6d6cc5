//===- GpuFactory.cpp - Makes emulated GPUs, where a program can -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "device/GpuFactory.h"
#include <atomic>

using namespace fsdprt;

static std::atomic<GpuFactory> emulatedGpus{nullptr};

void fsdprt::registerEmulatedGpus(GpuFactory factory) { emulatedGpus = factory; }

GpuFactory fsdprt::getEmulatedGpus() { return emulatedGpus; }
