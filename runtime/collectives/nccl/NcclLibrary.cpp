//===- NcclLibrary.cpp - Declarations of NCCL -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "collectives/nccl/NcclLibrary.h"
#include "core/Error.h"

using namespace fsdprt;

NcclLibrary::NcclLibrary() {
  SharedLibrary library("backend 'nccl'", "NCCL", "FSDPRT_NCCL_LIBRARY", "libnccl.so.2");
  path = library.getPath();
  library.find("ncclGetVersion", true, getVersion);
  NcclResult result = getVersion(&code);
  if (result != ncclOk)
    badInput("expected the version of '%s', found error %d", printable(path).c_str(),
             static_cast<int>(result));
  if (code < oldest)
    badInput("expected NCCL %s or later, found %s in '%s'; install a newer one, or set "
             "FSDPRT_NCCL_LIBRARY to its path",
             versionText(oldest).c_str(), versionText(code).c_str(), printable(path).c_str());
#define FSDPRT_NEEDED(NAME, member, ...) library.find(#NAME, true, member);
#define FSDPRT_OPTIONAL(NAME, member, ...) library.find(#NAME, false, member);
  FSDPRT_NCCL_FUNCTIONS(FSDPRT_NEEDED, FSDPRT_OPTIONAL)
  FSDPRT_NCCL_WINDOW_FUNCTIONS(FSDPRT_OPTIONAL)
}

std::string NcclLibrary::versionText(int code) {
  int major = code < 10000 ? code / 1000 : code / 10000,
      rest = code < 10000 ? code % 1000 : code % 10000;
  return format("%d.%d.%d", major, rest / 100, rest % 100);
}

std::string NcclLibrary::text() const {
  return "NCCL " + versionText(code) + " (" + printable(path) + ")";
}

std::string NcclLibrary::reason(NcclResult result, NcclComm comm) const {
  const char *meaning = getErrorString(result), *last = getLastError(comm);
  std::string text =
      format("NCCL reports error %d, '%s'", static_cast<int>(result), meaning ? meaning : "");
  if (last && *last)
    text += " (" + printable(last) + ")";
  return text + "; set NCCL_DEBUG=INFO for details";
}
