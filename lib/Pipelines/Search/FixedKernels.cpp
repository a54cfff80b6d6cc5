//===- FixedKernels.cpp - Kernels that all meshes have --------------------===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Times and buffers of those kernels of a plan that do not depend on the mesh. A buffer is alive
// from its first to its last kernel. A buffer that only collectives read, such as a piece of
// gathered parameters, is alive until the kernel that reads the result. O(commands).
//
//===----------------------------------------------------------------------===//

#include "FixedKernels.h"
#include <numeric>

using namespace mlir;
using namespace mlir::fsdp;

int64_t fsdp::countElements(UnitOp unit) {
  int64_t elements = 0;
  for (auto param : unit.getParams().getAsRange<ParamAttr>())
    elements += param.getType().getNumElements();
  return elements;
}

double fsdp::getFilledPart(UnitOp unit) {
  return unit.getFlatSize()
             ? static_cast<double>(countElements(unit)) / static_cast<double>(unit.getFlatSize())
             : 1;
}

FixedKernels::FixedKernels(ModuleOp planned, LayoutOp layout, bool splitsParameters, int64_t tensor,
                           ArrayRef<double> occupied)
    : buffers(layout), splitsParameters(splitsParameters), tensor(static_cast<double>(tensor)),
      occupied(occupied), slowed(occupied.size()) {
  for (auto unit : planned.getOps<UnitOp>())
    filled = std::min(filled, getFilledPart(unit));
}

bool FixedKernels::isFixed(ArrayRef<Access> accesses) {
  auto is = [&](const Access &access, Category category) {
    return getBuffer(access.slice).getCategory() == category;
  };
  return llvm::none_of(accesses,
                       [&](const Access &access) {
                         return is(access, Category::gradients) ||
                                is(access, Category::optimizer) ||
                                (is(access, Category::control) && access.writes) ||
                                (is(access, Category::parameters) && splitsParameters);
                       }) &&
         llvm::any_of(accesses,
                      [&](const Access &access) { return !is(access, Category::control); });
}

void FixedKernels::add(ArrayRef<Access> accesses, const KernelSeconds &kernel) {
  auto [seconds, products, idle, memory, isInBlock] = kernel;
  enter(isInBlock);
  blockSeconds += isInBlock ? seconds : 0;
  for (auto [part, waits, absorbed] : llvm::zip_equal(occupied, slowed, blockAbsorbed)) {
    waits.add(accesses, seconds);
    absorbed += isInBlock ? part * idle + std::min(part * memory.first, memory.second) : 0;
  }
  auto isOfSamples = [&](const Access &access) {
    Category category = getBuffer(access.slice).getCategory();
    return category == Category::activations || category == Category::inputs;
  };
  // Every sharding has the kernels that read samples, but may write their gradients elsewhere.
  bool isShared = llvm::any_of(accesses, [&](const Access &access) {
    return !access.writes && isOfSamples(access) &&
           (getBuffer(access.slice).getCategory() == Category::inputs ||
            uses[access.slice.getBuffer().getValue()].isShared);
  });
  bool writesShared = llvm::all_of(
      accesses, [&](const Access &access) { return !access.writes || isOfSamples(access); });
  if (isShared) {
    double own = writesShared ? seconds : std::min(seconds, products);
    for (auto [way, waits] : llvm::enumerate(shared))
      waits.add(accesses, way == 0       ? own
                          : products > 0 ? std::min(own, products)
                                         : own * (way == 1 ? 1 / tensor : 0));
  }
  stalled.add(accesses, seconds);
  for (const Access &access : accesses) {
    Uses &own = uses[access.slice.getBuffer().getValue()];
    own.numbers.push_back(begins.size());
    if (access.writes) {
      own.lastWriter = own.numbers.back();
      own.written = now + seconds;
      own.isShared |= isShared;
    }
  }
  begins.push_back(now);
  now += seconds;
}

void FixedKernels::addExchange(CollectiveOp op, double seconds, bool isContext, bool isInBlock) {
  stalled.addExchange(op, seconds);
  enter(isInBlock);
  // An exchange whose source no kernel of the block writes may run before all kernels.
  for (auto [part, waits] : llvm::zip_equal(occupied, slowed))
    if (waits.isReady(op.getSource()))
      waits.addExchange(op, seconds * (1 - part));
  // A reduce-scatter, which takes half of the time, begins the exchange of rows.
  for (auto [way, waits] : llvm::enumerate(shared))
    waits.addExchange(op, seconds * (way == 0 ? 1 : isContext ? way == 1 : way & 1 ? 0.5 : 1));
  uses[op.getTarget().getBuffer().getValue()].isShared |=
      uses[op.getSource().getBuffer().getValue()].isShared;
}

double FixedKernels::getTail(SliceAttr slice, unsigned number) const {
  auto own = uses.find(slice.getBuffer().getValue());
  if (own == uses.end())
    return 0;
  const unsigned *first = llvm::lower_bound(own->second.numbers, number);
  return first == own->second.numbers.end() ? 0 : now - begins[*first];
}

MainBlock FixedKernels::getBlock(double turns) const {
  MainBlock block{turns, blockBegin.value_or(0), 0, blockSeconds / turns, {}};
  block.after = now - block.before - blockSeconds;
  for (auto [waits, absorbed] : llvm::zip_equal(slowed, blockAbsorbed))
    block.beside.push_back({waits.seconds, absorbed / turns});
  return block;
}

bool FixedKernels::isUnusedFrom(SliceAttr slice, unsigned number) const {
  auto own = uses.find(slice.getBuffer().getValue());
  return own == uses.end() || own->second.numbers.empty() ||
         (own->second.numbers.back() < number &&
          own->second.numbers.back() == own->second.lastWriter);
}

void FixedKernels::addKept(SliceAttr source, ArrayRef<std::pair<SliceAttr, unsigned>> reads) {
  if (!isTransient(source))
    return;
  StringRef name = source.getBuffer().getValue();
  auto whole = wholes.find(name);
  if (whole != wholes.end() && uses[name].numbers.empty())
    name = whole->second;
  const Uses &own = uses[name];
  unsigned first = own.numbers.empty() ? begins.size() : own.numbers.back() + 1, last = 0;
  double bytes = getFilledBytes(getBuffer(source));
  for (auto [target, number] : reads) {
    const Uses &its = uses[target.getBuffer().getValue()];
    if (its.numbers.empty() || its.numbers.front() < number ||
        (!own.numbers.empty() && own.numbers.back() >= number))
      return;
    first = std::min(first, its.numbers.front());
    last = std::max(last, its.numbers.front());
    bytes = std::min(bytes, getFilledBytes(getBuffer(target)));
  }
  if (first < last)
    kept.push_back({first, last, bytes});
}

std::vector<double> FixedKernels::getLive(bool onlyShared, unsigned least) {
  std::vector<double> change(begins.size() + 1, 0);
  for (const Kept &own : onlyShared ? ArrayRef<Kept>() : ArrayRef<Kept>(kept)) {
    change[own.first] += own.bytes;
    change[own.last] -= own.bytes;
  }
  for (const auto &[name, own] : uses) {
    auto buffer = buffers.lookup<BufferOp>(name);
    Category category = buffer.getCategory();
    bool isPadded = category == Category::gathered || category == Category::staging;
    if (own.numbers.empty() || buffer.isPersistent() || getMemory(buffer) != Memory::device ||
        (!isPadded && category != Category::activations) ||
        (onlyShared && (isPadded || !own.isShared)) ||
        own.numbers.back() - own.numbers.front() < least)
      continue;
    double bytes = isPadded ? getFilledBytes(buffer) : static_cast<double>(buffer.getBytes());
    change[own.numbers.front()] += bytes;
    change[own.numbers.back() + 1] -= bytes;
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  for (double &bytes : change)
    bytes *= 1 - 1e-9; // the sum is rounded
  return change;
}

std::vector<Crowd> FixedKernels::getCrowds() {
  static constexpr size_t levels = 64;
  std::vector<double> live = getLive();
  double peak = *llvm::max_element(live);
  std::vector<Crowd> crowds;
  for (size_t level = levels; level-- > 0 && peak > 0;)
    crowds.push_back({peak * static_cast<double>(level) / levels, 0});
  for (size_t kernel = 0; kernel < begins.size() && peak > 0; ++kernel) {
    auto level = static_cast<size_t>(std::max(live[kernel], 0.0) / peak * levels);
    double end = kernel + 1 < begins.size() ? begins[kernel + 1] : now;
    crowds[levels - 1 - std::min(level, levels - 1)].seconds += end - begins[kernel];
  }
  llvm::erase_if(crowds, [](const Crowd &crowd) { return crowd.seconds == 0; });
  return crowds;
}

double FixedKernels::getFilledBytes(BufferOp buffer) const {
  auto found = filledOf.find(buffer.getSymName());
  return static_cast<double>(buffer.getBytes()) *
         (found == filledOf.end() ? filled : found->second);
}

void FixedKernels::enter(bool isInBlock) {
  if (!isInBlock || blockBegin)
    return;
  blockBegin = now;
  for (Waits &waits : slowed)
    waits.forget();
}
