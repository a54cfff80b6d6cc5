//===- SharedLibrary.h - A library that is found at run time ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_CORE_SHAREDLIBRARY_H
#define FSDPRT_CORE_SHAREDLIBRARY_H

#include <string>

namespace fsdprt {

/// Never unloaded: such libraries have threads of their own.
class SharedLibrary {
public:
  /// Opens what the environment's `variable` names, or `usual`, or `orElse`. `user` needs `what`,
  /// for messages. Throws Error when there is none.
  SharedLibrary(const char *user, const char *what, const char *variable, const char *usual,
                const char *orElse = nullptr);
  const std::string &getPath() const { return path; }

  /// Throws Error when a function that is needed is missing.
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
