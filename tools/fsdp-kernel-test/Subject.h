//===- Subject.h - Compiled kernels that can be run -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_KERNELTEST_SUBJECT_H
#define FSDP_TOOLS_KERNELTEST_SUBJECT_H

#include "Buffers.h"
#include "EmulatorDevice.h"
#include "fsdp/Codegen/Codegen.h"
#include "fsdp/Codegen/CpuTarget.h"
#include "fsdp/Codegen/Gpu/GpuImage.h"

namespace mlir::fsdp {

/// Selects the calls into which the range of a phase is divided: one call, three calls, or many
/// calls in reverse order.
enum class Split { Whole, Three, Reverse };

class Subject {
public:
  virtual ~Subject() = default;
  virtual const KernelInfo &info(size_t index) const = 0;
  /// Runs kernel `index` on these bindings. After an error, prints the error and returns false.
  virtual bool run(size_t index, std::vector<Buffer> &bindings, Split split) = 0;
  /// Prints the kernel's phases or launches, and its scratch bytes.
  virtual void describe(size_t index, llvm::raw_ostream &os) const = 0;
  /// Returns true if the range of a kernel can be split into several calls.
  virtual bool canSplit() const { return true; }
};

/// Returns CpuTarget::get() for the option `option` with the value `name`. Also emits an error if
/// this machine lacks a feature of the CPU, because kernels would end this process by a signal.
FailureOr<CpuTarget> findRunnableTarget(StringRef option, StringRef name, Location loc);

/// Runs the kernels of a CPU image in this process. The ranges that several workers would run in
/// parallel are run one after the other.
class CpuSubject : public Subject {
public:
  explicit CpuSubject(const Image &image);
  bool isLoaded() const { return handle; }
  const KernelInfo &info(size_t index) const override { return image.kernels[index]; }
  bool run(size_t index, std::vector<Buffer> &bindings, Split split) override;
  void describe(size_t index, llvm::raw_ostream &os) const override;

private:
  void *handle = nullptr;
  const Image &image;
};

/// Runs the kernels of a GPU image in the PTX emulator. The emulator checks every memory access.
class EmulatedSubject : public Subject {
public:
  explicit EmulatedSubject(const GpuImage &image) : image(image), device(image.ptx) {}
  const KernelInfo &info(size_t index) const override { return image.kernels[index].info; }
  bool run(size_t index, std::vector<Buffer> &bindings, Split split) override;
  void describe(size_t index, llvm::raw_ostream &os) const override;
  bool canSplit() const override { return false; }

private:
  const GpuImage &image;
  EmulatorDevice device;
  EmulatorCounts counts; ///< counters of the last kernel run
};

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_KERNELTEST_SUBJECT_H
