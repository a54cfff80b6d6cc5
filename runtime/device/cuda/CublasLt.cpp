//===- CublasLt.cpp - Declarations of cuBLASLt ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "device/cuda/CublasLt.h"
#include "core/Error.h"

using namespace fsdprt;

CublasLt::CublasLt(const char *user) {
  SharedLibrary library(user, "cuBLASLt", "FSDPRT_CUBLASLT_LIBRARY", "libcublasLt.so.13",
                        "libcublasLt.so.12");
#define FSDPRT_NEEDED(NAME, member, ...) library.find(#NAME, true, member);
  FSDPRT_CUBLASLT_FUNCTIONS(FSDPRT_NEEDED)
  path = library.getPath();
  if (size_t version = getVersion(); version < oldest)
    badInput("expected cuBLASLt 12.0 or later, found %zu.%zu in '%s'; install a newer one, or set "
             "FSDPRT_CUBLASLT_LIBRARY to its path",
             version / 10000, version % 10000 / 100, printable(library.getPath()).c_str());
}

std::string CublasLt::reason(LtStatus status) const {
  const char *meaning = getStatusString(status);
  return format("cuBLASLt reports error %d, '%s'", static_cast<int>(status),
                meaning ? meaning : "");
}

void CublasLt::check(LtStatus status, const std::string &what) const {
  if (status != ltOk)
    failed("cannot %s: %s", what.c_str(), reason(status).c_str());
}
