//===- StatisticLayout.h - llvm::Statistic as libLLVM has it ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Gives llvm::Statistic, and therefore also mlir::Pass::Statistic, the same memory layout as in the
// installed build of LLVM. The header llvm/ADT/Statistic.h omits some members if NDEBUG is defined.
// Distributions build LLVM with NDEBUG. This project is built without NDEBUG, because LLVM's
// headers then check indices and casts. If LLVM was built without assertions, CMake includes this
// file at the beginning of each source of the compiler (-include).
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_STATISTICLAYOUT_H
#define FSDP_STATISTICLAYOUT_H

#ifndef NDEBUG
// Include the headers that Statistic.h includes before NDEBUG is defined. NDEBUG then affects only
// Statistic.h itself.
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
