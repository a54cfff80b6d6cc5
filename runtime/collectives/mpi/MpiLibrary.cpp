//===- MpiLibrary.cpp - The process's MPI library ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Loads the MPI module, initialises MPI and finalises MPI. A process that has failed ends without a
// call of MPI_Finalize. In this case mpirun kills the other processes.
//
//===----------------------------------------------------------------------===//

#include "collectives/mpi/MpiLibrary.h"
#include "core/FutexEvent.h"
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <thread>

using namespace fsdprt;

static constexpr double secondsToFinalize = 30;

namespace {
/// Ends the process if this object still exists after `seconds`.
class Deadline {
public:
  Deadline(double seconds, std::string message)
      : limit(monotonicSeconds() + seconds), message(std::move(message)),
        thread([this] { watch(); }) {}
  ~Deadline() {
    over = true;
    event.notify();
    thread.join();
  }

private:
  void watch() {
    while (!over) {
      uint32_t seen = event.read();
      if (over)
        return;
      if (monotonicSeconds() > limit) {
        std::fprintf(stderr, "error: %s\n", message.c_str());
        _exit(FSDPRT_HUNG);
      }
      event.sleep(seen, 100);
    }
  }

  double limit;
  std::string message;
  std::atomic<bool> over{false};
  FutexEvent event;
  std::thread thread;
};
} // namespace

/// Returns the folder that contains the executable file of this program.
static std::string programFolder() {
  char path[PATH_MAX];
  ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  std::string text(path, size > 0 ? static_cast<size_t>(size) : 0);
  return text.substr(0, text.rfind('/'));
}

static const fsdprt_mpi_table *loadTable() {
  std::vector<std::string> places;
  if (const char *chosen = std::getenv("FSDPRT_MPI_MODULE"))
    places = {chosen};
  else
    for (const char *folder : {"/../lib", ""})
      places.push_back(programFolder() + folder + "/fsdprt_mpi.so");
  std::string problem;
  for (const std::string &place : places) {
    if (access(place.c_str(), F_OK) != 0)
      continue;
    // RTLD_GLOBAL is needed because MPI libraries load plugins that use symbols of the library.
    void *module = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL);
    void *symbol = module ? dlsym(module, FSDPRT_MPI_TABLE_NAME) : nullptr;
    if (!symbol) {
      problem = dlerror();
      continue;
    }
    const fsdprt_mpi_table *table = reinterpret_cast<fsdprt_mpi_table_get_function>(symbol)();
    if (table->version != FSDPRT_MPI_TABLE_VERSION)
      failed("%s: expected version %u of the MPI module, found %u; build both together",
             place.c_str(), FSDPRT_MPI_TABLE_VERSION, table->version);
    return table;
  }
  if (!problem.empty())
    failed("cannot load MPI: %s", problem.c_str());
  std::string list;
  for (const std::string &place : places)
    list += (list.empty() ? "" : " nor ") + place;
  failed("cannot find MPI: found neither %s; install an MPI that CMake finds (libopenmpi-dev) and "
         "build again, or set FSDPRT_MPI_MODULE to the module's path",
         list.c_str());
}

MpiLibrary &MpiLibrary::get(double seconds) {
  static MpiLibrary *library = new MpiLibrary(seconds);
  return *library;
}

MpiLibrary::MpiLibrary(double seconds) : table(loadTable()) {
  {
    const char *rank = std::getenv("OMPI_COMM_WORLD_RANK");
    Deadline deadline(
        seconds,
        format("%s%s: not all ranks arrived in MPI_Init within %g s; look for a rank that has not "
               "started or is stopped, or allow more time",
               rank ? "rank " : "a rank", rank ? rank : "", seconds));
    check(table->init(&ownRank, &ranks, &mostTag), "MPI_Init");
  }
  char text[256];
  table->describe(text, sizeof text);
  version = text;
  on_exit(finalizeAtExit, this);
}

void MpiLibrary::finalizeAtExit(int status, void *object) {
  auto *library = static_cast<MpiLibrary *>(object);
  if (status != 0 || library->skipsFinalize)
    return;
  Deadline deadline(secondsToFinalize,
                    format("rank %u: the other ranks did not call MPI_Finalize within %g s",
                           library->rank(), secondsToFinalize));
  library->table->finalize();
}

void MpiLibrary::fail(int code, const char *what) const {
  char text[512];
  table->explain(code, text, sizeof text);
  throw Error(FSDPRT_LOST,
              format("rank %u: MPI reports for %s: %s", rank(), what, printable(text).c_str()));
}

fsdprt_mpi_handle MpiLibrary::makeWorld(double seconds) {
  std::lock_guard<std::mutex> lock(mutex);
  // `made` is static: if this function throws, MPI may still write to `made` later.
  alignas(8) static thread_local fsdprt_mpi_handle made;
  fsdprt_mpi_handle request;
  check(table->world(&made, &request), "creating a communicator");
  for (double limit = monotonicSeconds() + seconds; !isDone(&request, 1); usleep(200))
    if (monotonicSeconds() > limit)
      throw Error(FSDPRT_HUNG, format("rank %u: not all ranks created the communicator within %g s",
                                      rank(), seconds));
  return made;
}

fsdprt_mpi_handle MpiLibrary::makeGroup(const std::vector<uint32_t> &members, int tag,
                                        double seconds) {
  std::lock_guard<std::mutex> lock(mutex);
  std::string names;
  for (uint32_t member : members)
    names += (names.empty() ? "" : ", ") + std::to_string(member);
  Deadline deadline(seconds,
                    format("rank %u: not all of the ranks %s created their group within %g s",
                           rank(), names.c_str(), seconds));
  fsdprt_mpi_handle made;
  check(table->subgroup(std::vector<int>(members.begin(), members.end()).data(),
                        static_cast<int>(members.size()), tag, &made),
        "creating a group");
  return made;
}
