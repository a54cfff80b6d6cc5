//===- EmulateFixture.h - Small PTX programs in tests -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_EMULATOR_EMULATEFIXTURE_H
#define FSDPRT_TEST_EMULATOR_EMULATEFIXTURE_H

#include "emulator/Emulator.h"
#include <gtest/gtest.h>

namespace fsdprt::test {

using emulate::Emulator;
using emulate::Launch;

/// Returns a module with one function `k`, which loads its 64-bit parameters p0, p1, ... to %rd0,
/// %rd1, ...
inline std::string kernel(const std::string &body, unsigned parameters = 1,
                          const std::string &globals = "") {
  std::string text =
      ".version 8.6\n.target sm_90a\n.address_size 64\n" + globals + "\n.visible .entry k(";
  for (unsigned i = 0; i < parameters; ++i)
    text += std::string(i ? ", " : "") + ".param .u64 p" + std::to_string(i);
  text += ")\n{\n.reg .pred %p<20>;\n.reg .b16 %h<20>;\n.reg .b32 %r<100>;\n.reg .b64 %rd<40>;\n";
  for (unsigned i = 0; i < parameters; ++i)
    text += "ld.param.b64 %rd" + std::to_string(i) + ", [p" + std::to_string(i) + "];\n";
  return text + body + "\nret;\n}\n";
}

/// Returns the message of the Error that `action` throws, or "" if `action` throws no Error.
template <typename Action>
std::string messageOf(Action action) {
  try {
    action();
  } catch (const Error &error) {
    return error.message;
  }
  return "";
}

/// Runs `body` in one block and returns the `count` elements of memory to which %rd0 points.
template <typename T>
std::vector<T> runBlock(const std::string &body, size_t count, unsigned threads = 32,
                        const std::string &globals = "") {
  std::vector<T> out(count);
  Emulator emulator("test.ptx", kernel(body, 1, globals));
  Launch launch;
  launch.entry = "k";
  launch.block[0] = threads;
  launch.stepLimit = 1 << 23;
  launch.argument(emulator.memory().attach("out", out.data(), count * sizeof(T)).base);
  emulator.launch(launch);
  return out;
}

inline std::string errorOfBlock(const std::string &body, unsigned threads = 32,
                                const std::string &globals = "") {
  return messageOf([&] { runBlock<uint32_t>(body, 4096, threads, globals); });
}

/// PTX that sets %r0 to %tid.x, and %rd10 to the address of element %tid.x of the array at %rd0.
/// The elements of the array have 4 bytes.
inline const char *const outElement =
    "mov.u32 %r0, %tid.x;\nmul.wide.u32 %rd9, %r0, 4;\nadd.s64 %rd10, %rd0, %rd9;\n";

template <typename T>
const char *bitsType() {
  return sizeof(T) == 2 ? "b16" : sizeof(T) == 4 ? "b32" : "b64";
}

/// Runs the instruction `op`, whose operands are %d, %a, %b and %c. In thread i, the operands are
/// the elements with index i of a, b and c. Returns the results of all threads.
template <typename D, typename A, typename B, typename C>
std::vector<D> runOp(const std::string &op, const std::vector<A> &a, const std::vector<B> &b,
                     const std::vector<C> &c) {
  std::string body = std::string(".reg .") + bitsType<D>() + " %d;\n.reg ." + bitsType<A>() +
                     " %a;\n.reg ." + bitsType<B>() + " %b;\n.reg ." + bitsType<C>() +
                     " %c;\n.reg .pred %q;\n" +
                     "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r0, %r1, 32, %r0;\n";
  auto load = [&](const char *name, const char *type, size_t size, int parameter) {
    std::string p = std::to_string(parameter);
    body += "mad.wide.u32 %rd" + p + "9, %r0, " + std::to_string(size) + ", %rd" + p +
            ";\nld.global." + type + " %" + name + ", [%rd" + p + "9];\n";
  };
  load("a", bitsType<A>(), sizeof(A), 1);
  load("b", bitsType<B>(), sizeof(B), 2);
  load("c", bitsType<C>(), sizeof(C), 3);
  body += op + "\nmad.wide.u32 %rd8, %r0, " + std::to_string(sizeof(D)) + ", %rd0;\nst.global." +
          bitsType<D>() + " [%rd8], %d;\n";
  size_t count = (a.size() + 31) / 32 * 32;
  auto padded = [&](auto values) {
    values.resize(count);
    return values;
  };
  auto pa = padded(a);
  auto pb = padded(b);
  auto pc = padded(c);
  std::vector<D> out(count);
  Emulator emulator("op.ptx", kernel(body, 4));
  Launch launch;
  launch.entry = "k";
  launch.block[0] = 32;
  launch.grid[0] = count / 32;
  auto attach = [&](auto &values) {
    launch.argument(
        emulator.memory().attach("values", values.data(), count * sizeof values[0]).base);
  };
  attach(out);
  attach(pa);
  attach(pb);
  attach(pc);
  emulator.launch(launch);
  out.resize(a.size());
  return out;
}

/// Compares the results of the instruction `op` with expected(a, b, c) for all combinations of
/// elements of `as`, `bs` and `cs`.
template <typename D, typename A, typename B, typename C, typename Expected>
void expectOp(const std::string &op, const std::vector<A> &as, const std::vector<B> &bs,
              const std::vector<C> &cs, Expected expected) {
  std::vector<A> a;
  std::vector<B> b;
  std::vector<C> c;
  for (A x : as)
    for (B y : bs)
      for (C z : cs)
        a.push_back(x), b.push_back(y), c.push_back(z);
  std::vector<D> found = runOp<D>(op, a, b, c);
  for (size_t k = 0; k < found.size(); ++k) {
    D wanted = expected(a[k], b[k], c[k]);
    ASSERT_EQ(std::memcmp(&found[k], &wanted, sizeof wanted), 0)
        << op << " of " << +a[k] << ", " << +b[k] << ", " << +c[k] << ": expected " << +wanted
        << ", found " << +found[k];
  }
}

inline testing::AssertionResult says(const std::string &message, const std::string &part) {
  if (message.find(part) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected '" << part << "' in '" << message << "'";
}

/// `tile` is PTX that declares shared memory. `tileElement` is PTX that sets %r2 to the address of
/// the thread's word in this memory.
inline const char *const tile = ".shared .align 4 .b8 tile[4096];";
inline const std::string tileElement =
    std::string(outElement) + "mov.u32 %r1, tile; mad.lo.u32 %r2, %r0, 4, %r1;\n";

} // namespace fsdprt::test

#endif // FSDPRT_TEST_EMULATOR_EMULATEFIXTURE_H
