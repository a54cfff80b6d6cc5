//===- MpiLibrary.h - The process's MPI --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Loaded when it is first asked for, from $FSDPRT_MPI_MODULE, or fsdprt_mpi.so in ../lib or . of
// the program.
//
// MPI calls that wait for other processes and cannot be asked to return (init, finalize, making a
// group) run under a deadline: when it is over the process says so and ends, since nothing else
// could be done.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_COLLECTIVES_MPI_MPILIBRARY_H
#define FSDPRT_COLLECTIVES_MPI_MPILIBRARY_H

#include "collectives/mpi/MpiTable.h"
#include "core/Error.h"
#include <atomic>
#include <mutex>
#include <vector>

namespace fsdprt {

class MpiLibrary {
public:
  /// The first call initialises it, and waits at most `seconds` for the others. Throws Error when
  /// there is none.
  static MpiLibrary &get(double seconds);
  MpiLibrary(const MpiLibrary &) = delete;
  MpiLibrary &operator=(const MpiLibrary &) = delete;

  uint32_t rank() const { return static_cast<uint32_t>(ownRank); }
  uint32_t size() const { return static_cast<uint32_t>(ranks); }
  uint32_t highestTag() const { return static_cast<uint32_t>(mostTag); }
  /// "Open MPI v4.1.4".
  const std::string &getVersion() const { return version; }

  /// To be held by every call of the table.
  std::mutex &getMutex() { return mutex; }
  const fsdprt_mpi_table *operator->() const { return table; }
  fsdprt_mpi_handle noRequest() const { return table->no_request; }
  /// Throws Error for what is not 0.
  void check(int code, const char *what) const {
    if (code != 0)
      fail(code, what);
  }
  bool isDone(fsdprt_mpi_handle *requests, size_t count) const {
    int done = 0;
    check(table->test(requests, static_cast<int>(count), &done), "a message");
    return done != 0;
  }
  /// A communicator of all processes that nobody else uses. All call it.
  fsdprt_mpi_handle makeWorld(double seconds);
  /// One of some of them, who all call it.
  fsdprt_mpi_handle makeGroup(const std::vector<uint32_t> &members, int tag, double seconds);
  /// From here on the process ends without taking leave of MPI, which might wait for ever.
  void giveUp(bool forGood = true) { givenUp = forGood; }

private:
  explicit MpiLibrary(double seconds);
  [[noreturn]] void fail(int code, const char *what) const;
  static void finalizeAtExit(int status, void *library);

  const fsdprt_mpi_table *table = nullptr;
  std::mutex mutex;
  std::string version;
  std::atomic<bool> givenUp{false};
  int ownRank = 0, ranks = 1, mostTag = 0;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_MPI_MPILIBRARY_H
