//===- CpuBinding.h - One CPU for each thread -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// If the ranks of this machine have exactly one thread for each CPU that the process may use, each
// thread is bound to a CPU of its own. Otherwise no thread is bound. If another process uses a CPU,
// the operating system often moves a thread that is not bound to the CPU of another thread. Both
// threads then take twice as long, and the step waits for them. Transfer workers are never bound.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_CPUBINDING_H
#define FSDPRT_CORE_CPUBINDING_H

#include <cstdint>
#include <vector>

namespace fsdprt {

class CpuBinding {
public:
  /// Binds no thread.
  CpuBinding() = default;
  /// Binds threads if the calling thread may use exactly `threads` CPUs, the number of threads of
  /// all ranks on this machine. Thread 0 of this process gets CPU number `first` of them.
  CpuBinding(uint64_t threads, uint64_t first);

  /// Binds the calling thread, which is thread `number` of this process. Does nothing if the kernel
  /// refuses.
  void bind(uint32_t number) const;
  bool isActive() const { return !cpus.empty(); }

private:
  std::vector<uint32_t> cpus; ///< CPU of each thread of this process, from the first one
};

} // namespace fsdprt

#endif // FSDPRT_CORE_CPUBINDING_H
