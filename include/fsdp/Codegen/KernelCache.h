//===- KernelCache.h - Kernels that were compiled before --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A folder of machine code that outlives the process. Any number of compilers may
// use it at once: a file appears whole or not at all.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_KERNELCACHE_H
#define FSDP_CODEGEN_KERNELCACHE_H

#include "fsdp/Codegen/Codegen.h"
#include <atomic>
#include <mutex>

namespace mlir::fsdp {

/// Names files by all that decides what is in them: this build of the compiler and of LLVM, the
/// target, the kernel. Its functions may be called by several threads at once.
class KernelCache {
public:
  using Object = SmallVector<char, 0>;

  /// Makes `folder` where it is missing. A diagnostic at `loc` where that cannot be.
  static FailureOr<std::unique_ptr<KernelCache>> open(StringRef folder, Location loc);
  /// Deletes what was not used for long, and what is too much in all.
  ~KernelCache();

  /// The object of `kernel`, with the phases and the scratch that lowering it gave in `info`: from
  /// the folder, or of `compile`, which is then kept. A file that is damaged is written anew.
  FailureOr<Object> get(func::FuncOp kernel, const CpuTarget &target, KernelInfo &info,
                        function_ref<FailureOr<Object>(func::FuncOp, KernelInfo &)> compile);

  /// Calls of get() so far, and those of them that the folder answered.
  unsigned numAsked() const { return asked; }
  unsigned numFound() const { return found; }

  /// One warning at `loc` when a file could not be written.
  void warnOfFailedWrites(Location loc) const;

private:
  KernelCache(StringRef folder, StringRef compiler) : folder(folder), compiler(compiler) {}

  std::string getPath(func::FuncOp kernel, const CpuTarget &target) const;
  bool read(StringRef path, KernelInfo &info, Object &object) const;
  void write(StringRef path, const KernelInfo &info, const Object &object);

  std::string folder, compiler;
  std::atomic<unsigned> asked = 0, found = 0;
  std::mutex lock;
  std::string failure; ///< of the first write that failed; guarded by `lock`
};

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_KERNELCACHE_H
