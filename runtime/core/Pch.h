//===- Pch.h - The precompiled header of the runtime ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Includes headers of the C++ library that many files of the runtime use. CMake precompiles this
// file and makes the compiler include it in each source.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_PCH_H
#define FSDPRT_CORE_PCH_H

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#endif // FSDPRT_CORE_PCH_H
