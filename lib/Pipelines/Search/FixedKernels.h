//===- FixedKernels.h - Kernels that all meshes have ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PIPELINES_SEARCH_FIXEDKERNELS_H
#define FSDP_PIPELINES_SEARCH_FIXEDKERNELS_H

#include "fsdp/Analysis/Commands.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/Memory.h"

namespace mlir::fsdp {

/// The loop that contains the kernels of activations, or the program if it has no loop.
struct MainBlock {
  double turns = 0;             ///< 0 if the program has several loops
  double before = 0, after = 0; ///< fixed seconds before and after the block
  double seconds = 0;           ///< fixed seconds of a turn
  /// For each part p of the multiprocessors that transfers may occupy, the fixed seconds of the
  /// program with waits for activations, of which only (1 - p) counts, and the part p of those
  /// `seconds` in which occupied multiprocessors delay no kernel.
  struct Beside {
    double seconds = 0, absorbed = 0;
  };
  std::vector<Beside> beside;
};

/// Kernels beside which at least `bytes` bytes of transient buffers are alive.
struct Crowd {
  double bytes = 0, seconds = 0;
};

/// Returns the part of the flat buffer of a unit that is no padding.
double getFilledPart(UnitOp unit);
/// Returns the number of elements of the parameters of a unit without padding.
int64_t countElements(UnitOp unit);

/// The time of a sequence of kernels that wait only for collectives of activations.
class Waits {
public:
  void add(ArrayRef<Access> accesses, double own) {
    for (const Access &access : accesses)
      seconds = std::max(seconds, ready.lookup(access.slice.getBuffer().getValue()));
    seconds += own;
    for (const Access &access : accesses)
      if (access.writes)
        ready[access.slice.getBuffer().getValue()] = seconds;
  }
  void addExchange(CollectiveOp op, double own) {
    double end = ready.lookup(op.getSource().getBuffer().getValue()) + own;
    double &target = ready[op.getTarget().getBuffer().getValue()];
    target = std::max(target, end);
  }
  bool isReady(SliceAttr slice) const { return ready.contains(slice.getBuffer().getValue()); }
  /// Ignores earlier kernels and exchanges: nothing waits for their results.
  void forget() { ready.clear(); }
  double seconds = 0; ///< end of the last kernel

private:
  llvm::StringMap<double> ready; ///< time at which a buffer has its content
};

/// The time of a kernel, and parts of this time.
struct KernelSeconds {
  double seconds = 0;
  double products = 0; ///< seconds of the multiply-adds
  double idle = 0;     ///< seconds of the launch
  /// Seconds of the memory traffic, and how much longer than the arithmetic this traffic takes.
  std::pair<double, double> memory;
  bool isInBlock = false; ///< whether the kernel is in the main block
};

/// Times and buffers of the fixed kernels of a program, in the order of the program.
class FixedKernels {
public:
  FixedKernels(ModuleOp planned, LayoutOp layout, bool splitsParameters, int64_t tensor,
               ArrayRef<double> occupied);

  BufferOp getBuffer(SliceAttr slice) {
    return buffers.lookup<BufferOp>(slice.getBuffer().getValue());
  }

  /// Returns whether the times of a kernel with these accesses do not depend on the mesh. A kernel
  /// of activations may read a scalar, such as a coordinate of its rank.
  bool isFixed(ArrayRef<Access> accesses);

  /// Adds a fixed kernel.
  void add(ArrayRef<Access> accesses, const KernelSeconds &kernel);

  /// Adds a collective of activations: kernels wait for its target.
  void addExchange(CollectiveOp op, double seconds, bool isContext, bool isInBlock);

  /// Returns the fixed seconds up to the end of the last kernel that has written to the buffer.
  double getHead(SliceAttr slice) const {
    return uses.lookup(slice.getBuffer().getValue()).written;
  }
  /// Returns the fixed seconds from the first kernel on that accesses the buffer and has at least
  /// the number `number`.
  double getTail(SliceAttr slice, unsigned number) const;
  double getSeconds() const { return now; }
  /// Returns the fixed seconds with the waits for collectives of activations.
  double getStalledSeconds() const { return stalled.seconds; }
  /// Returns these seconds for the kernels that every sharding has (PlanProfile::sharedSeconds).
  std::array<double, 4> getSharedSeconds() const {
    return {shared[0].seconds, shared[1].seconds, shared[2].seconds, shared[3].seconds};
  }
  unsigned getNumber() const { return begins.size(); } ///< number of the next kernel

  /// Returns the block, of which one turn is measured. It runs `turns` times.
  MainBlock getBlock(double turns) const;

  bool isTransient(SliceAttr slice) {
    BufferOp buffer = getBuffer(slice);
    return !buffer.isPersistent() && getMemory(buffer) == Memory::device;
  }
  /// Returns whether no kernel before the one with the number `number` accesses the buffer.
  bool isUnusedBefore(SliceAttr slice, unsigned number) const {
    auto own = uses.find(slice.getBuffer().getValue());
    return own == uses.end() || own->second.numbers.empty() ||
           own->second.numbers.front() >= number;
  }
  /// Returns whether the last kernel that accesses the buffer writes it, and has a number below
  /// `number`. Returns true if no kernel accesses the buffer.
  bool isUnusedFrom(SliceAttr slice, unsigned number) const;

  /// Notes which part of a buffer of a unit is no padding.
  void setFilled(SliceAttr slice, double part) { filledOf[slice.getBuffer().getValue()] = part; }
  /// Notes a copy of a part of a buffer.
  void addCopy(CopyOp copy) {
    wholes[copy.getTarget().getBuffer().getValue()] = copy.getSource().getBuffer().getValue();
  }
  /// Adds the memory of a buffer that collectives read. Each element of `reads` is the buffer that
  /// a collective writes, and the number of the kernel that follows the collective. A rank has the
  /// source or a target at all kernels from the first one that may need it to the last one that
  /// reads a target.
  void addKept(SliceAttr source, ArrayRef<std::pair<SliceAttr, unsigned>> reads);

  /// Returns the bytes of transient buffers beside each kernel, or those of activations that every
  /// sharding has. Each is alive from its first to its last kernel, which have at least `least`
  /// kernels between them.
  std::vector<double> getLive(bool onlyShared = false, unsigned least = 0);
  /// Returns the peak of these bytes.
  int64_t getLiveBytes(bool onlyShared = false, unsigned least = 0) {
    return static_cast<int64_t>(*llvm::max_element(getLive(onlyShared, least)));
  }

  /// Returns the seconds of kernels by a lower bound of the bytes that are alive beside them.
  std::vector<Crowd> getCrowds();

private:
  /// Returns the bytes of a buffer without padding.
  double getFilledBytes(BufferOp buffer) const;
  /// Notes that the next kernel or exchange is in the main block.
  void enter(bool isInBlock);

  /// Numbers of the kernels that access a buffer, the fixed seconds up to the last write, and
  /// whether every sharding has the kernel that writes it.
  struct Uses {
    SmallVector<unsigned> numbers;
    double written = 0;
    unsigned lastWriter = 0;
    bool isShared = false;
  };
  SymbolTable buffers;
  bool splitsParameters;
  double tensor;                    ///< ranks of the axis
  double filled = 1;                ///< least part of a unit that is no padding
  llvm::StringMap<double> filledOf; ///< this part for buffers of a known unit
  llvm::StringMap<Uses> uses;
  SmallVector<double> begins; ///< fixed seconds before each kernel
  double now = 0;
  Waits stalled;
  ArrayRef<double> occupied; ///< parts of the multiprocessors that transfers occupy
  std::vector<Waits> slowed; ///< for each of these parts
  std::vector<double> blockAbsorbed = std::vector<double>(slowed.size(), 0);
  std::optional<double> blockBegin; ///< fixed seconds before the main block
  double blockSeconds = 0;
  std::array<Waits, 4> shared;
  /// Bytes that collectives need from the kernel `first` to the one before `last`.
  struct Kept {
    unsigned first, last;
    double bytes;
  };
  std::vector<Kept> kept;
  llvm::StringMap<StringRef> wholes; ///< by name of a copy
};

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_SEARCH_FIXEDKERNELS_H
