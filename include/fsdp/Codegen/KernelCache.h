//===- KernelCache.h - Cache of compiled kernels on disk --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A folder of object files that later compilations reuse. Several compilers may use the folder at
// once, because files are written atomically.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_CODEGEN_KERNELCACHE_H
#define FSDP_CODEGEN_KERNELCACHE_H

#include "fsdp/Codegen/Codegen.h"
#include <atomic>
#include <mutex>

namespace mlir::fsdp {

/// Caches object files. The name of a file is a hash of everything that determines the object: the
/// builds of the compiler and of LLVM, the lowering (for a CPU, or to the loops of the reference),
/// the target and the kernel. Code from a file becomes part of artifacts. Therefore a file is
/// ignored unless only root and the current user can have written it. The class is thread-safe.
class KernelCache {
public:
  using Object = SmallVector<char, 0>;

  /// Creates `folder` if it does not exist. Emits a diagnostic at `loc` if this fails.
  static FailureOr<std::unique_ptr<KernelCache>> open(StringRef folder, Location loc);
  /// Deletes files that were not used for a long time. Then deletes the least recently used files
  /// until the folder is below its size limit.
  ~KernelCache();

  /// Returns the object of `kernel` and sets `info` to the phases and scratch sizes of the kernel.
  /// If the folder contains the object, reads the object and `info` from there. Otherwise calls
  /// `compile` and stores the result. If the file in the folder is damaged, replaces the file.
  /// `lowering` is the name of the lowering that `compile` uses.
  FailureOr<Object> get(func::FuncOp kernel, StringRef lowering, const CpuTarget &target,
                        KernelInfo &info,
                        function_ref<FailureOr<Object>(func::FuncOp, KernelInfo &)> compile);

  /// Return the number of calls of get(), and the number of calls that found the object in the
  /// folder.
  unsigned numAsked() const { return asked; }
  unsigned numFound() const { return found; }

  /// Emits a warning at `loc` if some files could not be written. Emits another warning if some
  /// files were ignored because other users could have written them.
  void warnOfFiles(Location loc) const;

private:
  KernelCache(StringRef folder, StringRef compiler) : folder(folder), compiler(compiler) {}

  std::string getKey(func::FuncOp kernel, StringRef lowering, const CpuTarget &target) const;
  std::string getPath(StringRef key) const;
  bool read(StringRef key, KernelInfo &info, Object &object);
  void write(StringRef key, const KernelInfo &info, const Object &object);

  std::string folder, compiler;
  std::atomic<unsigned> asked = 0, found = 0, foreign = 0;
  std::mutex lock;
  std::string failure; ///< message of the first write that failed; guarded by `lock`
};

} // namespace mlir::fsdp

#endif // FSDP_CODEGEN_KERNELCACHE_H
