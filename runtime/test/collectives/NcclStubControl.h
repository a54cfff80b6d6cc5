//===- NcclStubControl.h - Control of the NCCL stub by tests ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_COLLECTIVES_NCCLSTUBCONTROL_H
#define FSDPRT_TEST_COLLECTIVES_NCCLSTUBCONTROL_H

#include "testing/nccl/NcclStub.h"
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <initializer_list>
#include <string>

namespace fsdprt::test {

/// The functions by which a test controls the stub. The functions are looked up in the library that
/// the runtime loads.
struct Stub {
  template <typename Function>
  static Function *function(const char *name) {
    static void *library = dlopen(FSDPRT_NCCL_STUB_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<Function *>(dlsym(library, name));
  }
  static void set(const char *name, int64_t value) {
    function<decltype(fsdprt_nccl_stub_set)>("fsdprt_nccl_stub_set")(name, value);
  }
  static void reset() { function<void()>("fsdprt_nccl_stub_reset")(); }
  static uint64_t calls(const char *of) {
    return function<decltype(fsdprt_nccl_stub_calls)>("fsdprt_nccl_stub_calls")(of);
  }
  static uint64_t count(const char *name) { return function<uint64_t()>(name)(); }
  static uint64_t made() { return count("fsdprt_nccl_stub_made"); }
  static uint64_t living() { return count("fsdprt_nccl_stub_living"); }
  static std::string firstViolation() {
    const char *first = nullptr;
    uint64_t number =
        function<decltype(fsdprt_nccl_stub_violations)>("fsdprt_nccl_stub_violations")(&first);
    return number ? first : "";
  }
};

/// Expects the status of `outcome`, and each of `parts` in its text.
template <typename Outcome>
void expectText(const Outcome &outcome, fsdprt_status status,
                std::initializer_list<const char *> parts) {
  EXPECT_EQ(outcome.status, status) << outcome.text;
  for (const char *part : parts)
    EXPECT_NE(outcome.text.find(part), std::string::npos)
        << "expected '" << part << "', found: " << outcome.text;
}

} // namespace fsdprt::test

#endif // FSDPRT_TEST_COLLECTIVES_NCCLSTUBCONTROL_H
