//===- StatisticLayout.h - llvm::Statistic as libLLVM has it ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Gives llvm::Statistic, and so mlir::Pass::Statistic, the members that the installed LLVM was
// built with: llvm/ADT/Statistic.h leaves them out where NDEBUG is defined. Distributions define
// it; this project does not, because LLVM's headers then check indices and casts. CMake includes
// this file at the beginning of each source of the compiler (-include) where LLVM was built without
// assertions.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_STATISTICLAYOUT_H
#define FSDP_STATISTICLAYOUT_H

#ifndef NDEBUG
// What Statistic.h includes comes first: only Statistic.h itself is to see NDEBUG.
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/Compiler.h"
#include <atomic>
#include <memory>
#include <vector>
#define NDEBUG
#include "llvm/ADT/Statistic.h"
#undef NDEBUG
#endif

#endif // FSDP_STATISTICLAYOUT_H
