//===- SharedLibrary.h - A library loaded at run time -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_SHAREDLIBRARY_H
#define FSDPRT_CORE_SHAREDLIBRARY_H

#include <string>

namespace fsdprt {

/// A library that is loaded by dlopen(). The library is never unloaded, because threads may run its
/// code.
class SharedLibrary {
public:
  /// Opens the library whose path is the value of the environment variable `variable`. If the
  /// variable is not set, opens the library `usual`, and if this fails, the library `orElse`.
  /// Throws Error if no library can be opened. The message says that `user` needs `what`.
  SharedLibrary(const char *user, const char *what, const char *variable, const char *usual,
                const char *orElse = nullptr);
  const std::string &getPath() const { return path; }

  /// Sets `function` to the address of the symbol `name`. If the symbol is missing, throws Error if
  /// `isNeeded` is true, and otherwise sets `function` to null.
  template <typename Function>
  void find(const char *name, bool isNeeded, Function &function) const {
    function = reinterpret_cast<Function>(symbol(name, isNeeded));
  }

private:
  void *symbol(const char *name, bool isNeeded) const;

  std::string path;
  void *handle;
};

} // namespace fsdprt

#endif // FSDPRT_CORE_SHAREDLIBRARY_H
