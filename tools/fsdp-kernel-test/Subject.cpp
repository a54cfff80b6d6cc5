//===- Subject.cpp - Compiled kernels that can be run -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Subject.h"
#include "llvm/ADT/StringExtras.h"
#include <dlfcn.h>
#include <fstream>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::fsdp;

using Kernel = void (*)(void *const *, int64_t, int64_t, void *);

/// Returns the flags of the first processor in /proc/cpuinfo.
static SmallVector<std::string> readFlags() {
  SmallVector<std::string> flags;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; flags.empty() && std::getline(file, line);)
    if (StringRef(line).starts_with("flags"))
      for (StringRef flag : llvm::split(line, ' '))
        flags.push_back(flag.str());
  return flags;
}

FailureOr<CpuTarget> fsdp::findRunnableTarget(StringRef option, StringRef name, Location loc) {
  FailureOr<CpuTarget> target = CpuTarget::get(name, loc);
  if (failed(target))
    return failure();
  SmallVector<std::string> flags = readFlags();
  for (const std::string &feature : target->isa)
    if (!llvm::is_contained(flags, feature))
      return emitError(loc) << "--" << option << "=" << name << ": this processor cannot run its "
                            << "code, which needs " << feature << "; choose native or x86-64-v3";
  return target;
}

CpuSubject::CpuSubject(const Image &image) : image(image) {
  int file = memfd_create("kernels", 0);
  if (write(file, image.elf.data(), image.elf.size()) == static_cast<ssize_t>(image.elf.size()))
    handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    llvm::errs() << "error: cannot load the image: " << dlerror() << "\n";
  // The file is not closed, because the file of a later image could then have the same path, and
  // dlopen would return this image.
}

/// Runs the range of a phase in one or more calls. `split` selects the number and the order of
/// these calls.
static void runPieces(const PhaseInfo &phase, Split split,
                      llvm::function_ref<void(int64_t, int64_t)> run) {
  int64_t tiles = llvm::divideCeil(phase.extent, phase.tile);
  if (split == Split::Whole) {
    run(0, tiles);
  } else if (split == Split::Three) {
    for (int64_t i = 0; i < 3; ++i)
      run(tiles * i / 3, tiles * (i + 1) / 3);
  } else {
    int64_t step = std::max<int64_t>(1, tiles / 64);
    for (int64_t i = (tiles - 1) / step * step; i >= 0; i -= step)
      run(i, std::min(i + step, tiles));
  }
}

bool CpuSubject::run(size_t index, std::vector<Buffer> &bindings, Split split) {
  const KernelInfo &info = image.kernels[index];
  std::vector<void *> pointers;
  for (Buffer &buffer : bindings)
    pointers.push_back(buffer.data());
  constexpr char nan = char(0xFF); // in each float type, a value whose bytes are all 0xFF is NaN
  Buffer shared(info.sharedBytes, nan), worker(info.workerBytes, nan);
  if (info.sharedBytes)
    pointers.push_back(shared.data());
  for (const PhaseInfo &phase : info.phases) {
    auto kernel = reinterpret_cast<Kernel>(dlsym(handle, phase.symbol.c_str()));
    if (!kernel) {
      llvm::errs() << "error: no symbol " << phase.symbol << "\n";
      return false;
    }
    runPieces(phase, split, [&](int64_t first, int64_t last) {
      if (first < last)
        kernel(pointers.data(), first * phase.tile, std::min(last * phase.tile, phase.extent),
               worker.data());
    });
  }
  if (!shared.intact() || !worker.intact()) {
    llvm::errs() << "error: @" << info.name << " writes beyond its scratch\n";
    return false;
  }
  return true;
}

void CpuSubject::describe(size_t index, llvm::raw_ostream &os) const {
  const KernelInfo &info = image.kernels[index];
  os << "phases";
  for (const PhaseInfo &phase : info.phases)
    os << " " << phase.extent << "/" << phase.tile;
  os << ", shared " << info.sharedBytes << ", worker " << info.workerBytes;
}

static decltype(EmulatorTensorMap::type) typeOf(const GpuTensorMap &map) {
  return map.type == GpuTensorType::BF16  ? EmulatorTensorMap::BF16
         : map.type == GpuTensorType::F16 ? EmulatorTensorMap::F16
                                          : EmulatorTensorMap::TF32;
}

bool EmulatedSubject::run(size_t index, std::vector<Buffer> &bindings, Split) {
  const GpuKernel &kernel = image.kernels[index];
  std::vector<EmulatorBinding> all;
  for (auto [number, buffer] : llvm::enumerate(bindings))
    all.push_back({"binding " + std::to_string(number), buffer.data(), buffer.bytes});
  std::vector<EmulatorLaunch> launches;
  for (const GpuLaunch &launch : kernel.launches) {
    EmulatorLaunch &own = launches.emplace_back();
    own = {launch.symbol,
           static_cast<uint32_t>(launch.blocks),
           static_cast<uint32_t>(launch.threads),
           static_cast<uint32_t>(launch.cluster),
           static_cast<uint64_t>(launch.sharedBytes),
           {}};
    auto all = [](ArrayRef<int64_t> numbers) {
      return std::vector<int64_t>(numbers.begin(), numbers.end());
    };
    for (const GpuTensorMap &map : launch.maps)
      own.maps.push_back({static_cast<size_t>(map.binding), static_cast<uint64_t>(map.offset),
                          typeOf(map), all(map.sizes), all(map.strides), all(map.box)});
  }
  std::string problem = device.run(launches, all, kernel.scratchBytes, counts);
  if (!problem.empty())
    llvm::errs() << "error: @" << kernel.info.name << ": " << problem << "\n";
  return problem.empty();
}

void EmulatedSubject::describe(size_t index, llvm::raw_ostream &os) const {
  const GpuKernel &kernel = image.kernels[index];
  os << "launches";
  for (const GpuLaunch &launch : kernel.launches)
    os << " " << launch.blocks << "x" << launch.threads << "+" << launch.sharedBytes;
  os << ", scratch " << kernel.scratchBytes << ", bank conflicts " << counts.bankConflicts << " of "
     << counts.sharedPasses;
}
