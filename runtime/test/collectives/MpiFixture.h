//===- MpiFixture.h - fsdp-run under mpirun ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A fixture for tests in which mpirun starts fsdp-run for each rank. If one rank must be treated
// differently, mpirun starts a script that starts fsdp-run.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TEST_COLLECTIVES_MPIFIXTURE_H
#define FSDPRT_TEST_COLLECTIVES_MPIFIXTURE_H

#include "test/Sanitized.h"
#include "test/run/RunFixture.h"

namespace fsdprt::test {

/// Runs fsdp-run under mpirun. Without MPI, tests of this fixture are skipped.
class MpiRun : public Run {
protected:
  void SetUp() override {
#ifndef FSDPRT_MPIEXEC
    GTEST_SKIP() << "there is no MPI";
#endif
    Run::SetUp();
    std::string words;
    for (int i = 0; i < 3000; ++i)
      words += static_cast<char>('a' + i * i % 23);
    writeFile(at("words"), words.data(), words.size());
  }
  void TearDown() override {
    if (!folder.empty())
      Run::TearDown();
  }
  static std::string mpi(int ranks, const std::string &wrapper = "") {
#ifdef FSDPRT_MPIEXEC
    // Sanitizers must report neither the leaks nor the lock orders of the code of Open MPI.
    std::string mpiexec =
        isSanitized ? "env " FSDPRT_MPI_SANITIZERS " " FSDPRT_MPIEXEC : FSDPRT_MPIEXEC;
    return mpiexec + " --oversubscribe --allow-run-as-root --bind-to none -n " +
           std::to_string(ranks) + " " + wrapper;
#else
    return wrapper;
#endif
  }
  void expectMpi(int ranks, int code, const std::string &words, const std::string &arguments,
                 const std::string &wrapper = "") {
    Result result = run(arguments + " --timeout-seconds=120", mpi(ranks, wrapper));
    EXPECT_EQ(result.code, code) << arguments << "\n" << result.output;
    EXPECT_NE(result.output.find(words), std::string::npos) << arguments << "\n" << result.output;
  }
  void script(const std::string &name, const std::string &lines) {
    writeFile(at(name), lines.data(), lines.size());
  }
  void expectSame(const std::string &a, const std::string &b) {
    EXPECT_EQ(bash("diff -r " + a + " " + b), 0) << a << " and " << b;
  }
};

} // namespace fsdprt::test

#endif // FSDPRT_TEST_COLLECTIVES_MPIFIXTURE_H
