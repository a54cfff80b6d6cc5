//===- SharedLibrary.cpp - A library loaded at run time ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "core/SharedLibrary.h"
#include "core/Error.h"
#include <cstdlib>
#include <dlfcn.h>

using namespace fsdprt;

SharedLibrary::SharedLibrary(const char *user, const char *what, const char *variable,
                             const char *usual, const char *orElse) {
  const char *given = std::getenv(variable);
  bool isGiven = given && *given;
  path = isGiven ? given : usual;
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle)
    return;
  std::string names = "'" + printable(path) + "'", why = printable(dlerror());
  if (!isGiven && orElse) {
    path = orElse;
    handle = dlopen(orElse, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    names += format(" or '%s'", orElse);
  }
  if (!handle)
    badInput("%s needs %s: expected %s, found none (%s); install it, or set %s to its path", user,
             what, names.c_str(), why.c_str(), variable);
}

void *SharedLibrary::symbol(const char *name, bool isNeeded) const {
  void *found = dlsym(handle, name);
  if (!found && isNeeded)
    badInput("expected a function %s in '%s', found none", name, printable(path).c_str());
  return found;
}
