//===- TileData.cpp - Permission to use AMX ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The tile registers are a state component of XSAVE. Linux enables this component for a process
// only on request, by the system call arch_prctl (see Documentation/arch/x86/xstate.rst in the
// sources of Linux). Linux before 5.16 has no such request and does not enable the component.
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
