//===- MpiLibrary.h - The process's MPI library -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The MPI module is loaded when it is first needed. The module is the file that the environment
// variable FSDPRT_MPI_MODULE names. If this variable is not set, the module is the file
// fsdprt_mpi.so in the folder of the program, or in the folder ../lib relative to it.
//
// The calls that initialise MPI, finalise MPI or create a group wait for other processes. These
// waits cannot be interrupted. If one of the calls does not return within its time limit, the
// process prints a message and exits.
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
  /// Returns the library. The first call initialises MPI. The first call waits for the other
  /// processes for at most `seconds`. Throws Error if the MPI module cannot be found or loaded.
  static MpiLibrary &get(double seconds);
  MpiLibrary(const MpiLibrary &) = delete;
  MpiLibrary &operator=(const MpiLibrary &) = delete;

  uint32_t rank() const { return static_cast<uint32_t>(ownRank); }
  uint32_t size() const { return static_cast<uint32_t>(ranks); }
  uint32_t highestTag() const { return static_cast<uint32_t>(mostTag); }
  /// Returns the name and version of the MPI library, such as "Open MPI v4.1.4".
  const std::string &getVersion() const { return version; }

  /// Returns the mutex that a thread must hold while it calls a function of the MPI table.
  std::mutex &getMutex() { return mutex; }
  const fsdprt_mpi_table *operator->() const { return table; }
  fsdprt_mpi_handle noRequest() const { return table->no_request; }
  /// Throws Error if `code`, an MPI error code, is not 0. `what` names the operation.
  void check(int code, const char *what) const {
    if (code != 0)
      fail(code, what);
  }
  bool isDone(fsdprt_mpi_handle *requests, size_t count) const {
    int done = 0;
    check(table->test(requests, static_cast<int>(count), &done), "a message");
    return done != 0;
  }
  /// Creates an MPI communicator of all processes. All processes must call makeWorld().
  fsdprt_mpi_handle makeWorld(double seconds);
  /// Creates an MPI communicator of `members`. All members must call makeGroup().
  fsdprt_mpi_handle makeGroup(const std::vector<uint32_t> &members, int tag, double seconds);
  /// If `skip` is true, the process will not call MPI_Finalize at its end, because this call might
  /// not return after a failure.
  void skipFinalize(bool skip = true) { skipsFinalize = skip; }

private:
  explicit MpiLibrary(double seconds);
  [[noreturn]] void fail(int code, const char *what) const;
  static void finalizeAtExit(int status, void *library);

  const fsdprt_mpi_table *table = nullptr;
  std::mutex mutex;
  std::string version;
  std::atomic<bool> skipsFinalize{false};
  int ownRank = 0, ranks = 1, mostTag = 0;
};

} // namespace fsdprt

#endif // FSDPRT_COLLECTIVES_MPI_MPILIBRARY_H
