//===- TileData.cpp - Permission to use AMX ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The tile registers are a dynamic state of XSAVE, which a process requests by arch_prctl
// (Documentation/arch/x86/xstate.rst of Linux). Kernels before 5.16 have no such request and do not
// enable the state.
//
//===----------------------------------------------------------------------===//

#include "fsdpcommon/TileData.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

static constexpr int requestPermission = 0x1023; // ARCH_REQ_XCOMP_PERM
static constexpr int tileData = 18;              // XFEATURE_XTILEDATA

bool fsdpcommon::requestTileData() {
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

#else

bool fsdpcommon::requestTileData() { return false; }

#endif
