//===- NcclLibrary.cpp - What is used of NCCL and CUDA ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Libraries are never unloaded: they have threads of their own.
//
//===----------------------------------------------------------------------===//

#include "collectives/NcclLibrary.h"
#include "core/Error.h"
#include <cstdlib>
#include <dlfcn.h>

using namespace fsdprt;

static std::string pathOf(const char *variable, const char *usual) {
  const char *given = std::getenv(variable);
  return given && *given ? given : usual;
}

static void *open(const std::string &path, const char *what, const char *variable) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library)
    badInput("backend 'nccl' needs %s: expected '%s', found none (%s); install it, or set %s to its path", what,
             printable(path).c_str(), printable(dlerror()).c_str(), variable);
  return library;
}

template <typename Function>
static void find(void *library, const std::string &path, const char *name, bool isNeeded, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function && isNeeded)
    badInput("expected a function %s in '%s', found none", name, printable(path).c_str());
}

NcclLibrary::NcclLibrary() : path(pathOf("FSDPRT_NCCL_LIBRARY", "libnccl.so.2")) {
  void *library = open(path, "NCCL", "FSDPRT_NCCL_LIBRARY");
  find(library, path, "ncclGetVersion", true, getVersion);
  NcclResult result = getVersion(&code);
  if (result != ncclOk)
    badInput("expected the version of '%s', found error %d", printable(path).c_str(), static_cast<int>(result));
  if (code < oldest)
    badInput("expected NCCL %s or later, found %s in '%s'; install a newer one, or set FSDPRT_NCCL_LIBRARY to its path",
             versionText(oldest).c_str(), versionText(code).c_str(), printable(path).c_str());
#define FSDPRT_NEEDED(NAME, member, ...) find(library, path, #NAME, true, member);
#define FSDPRT_OPTIONAL(NAME, member, ...) find(library, path, #NAME, false, member);
  FSDPRT_NCCL_FUNCTIONS(FSDPRT_NEEDED, FSDPRT_OPTIONAL)
}

std::string NcclLibrary::versionText(int code) {
  int major = code < 10000 ? code / 1000 : code / 10000, rest = code < 10000 ? code % 1000 : code % 10000;
  return format("%d.%d.%d", major, rest / 100, rest % 100);
}

std::string NcclLibrary::text() const { return "NCCL " + versionText(code) + " (" + printable(path) + ")"; }

std::string NcclLibrary::reason(NcclResult result, NcclComm comm) const {
  const char *meaning = getErrorString(result), *last = getLastError(comm);
  std::string text = format("NCCL reports error %d, '%s'", static_cast<int>(result), meaning ? meaning : "");
  if (last && *last)
    text += " (" + printable(last) + ")";
  return text + "; NCCL_DEBUG=INFO says more";
}

CudaDriver::CudaDriver() {
  std::string path = pathOf("FSDPRT_CUDA_LIBRARY", "libcuda.so.1");
  void *library = open(path, "CUDA's driver", "FSDPRT_CUDA_LIBRARY");
  FSDPRT_CUDA_FUNCTIONS(FSDPRT_NEEDED)
  check(init(0), "find devices");
  check(deviceGetCount(&count), "count devices");
  if (count < 1)
    badInput("backend 'nccl' needs a CUDA device: expected at least one, found none (CUDA_VISIBLE_DEVICES hides some)");
}

std::string CudaDriver::versionText() const {
  int code = 0;
  check(driverGetVersion(&code), "ask for the driver's version");
  return format("%d.%d", code / 1000, code % 1000 / 10);
}

std::string CudaDriver::reason(CudaResult result) const {
  const char *meaning = nullptr;
  getErrorString(result, &meaning);
  return format("CUDA reports error %d, '%s'", static_cast<int>(result), meaning ? meaning : "");
}

void CudaDriver::check(CudaResult result, const char *what) const {
  if (result != cudaOk)
    failed("cannot %s: %s", what, reason(result).c_str());
}
