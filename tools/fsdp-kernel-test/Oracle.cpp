//===- Oracle.cpp - Inputs and expected results -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Oracle.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/Import/Traps.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <random>
#include <unistd.h>

using namespace mlir;
using namespace mlir::fsdp;

DenseElementsAttr fsdp::valuesOf(BlockArgument argument) {
  auto kernel = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return kernel.getArgAttrOfType<DenseElementsAttr>(argument.getArgNumber(), "fsdp.values");
}

std::optional<std::pair<std::string, int64_t>> fsdp::sourceOf(func::FuncOp kernel,
                                                              unsigned number) {
  auto from = kernel.getArgAttrOfType<ArrayAttr>(number, "fsdp.from");
  if (!from || from.size() != 2 || !isa<StringAttr>(from[0]) || !isa<IntegerAttr>(from[1]))
    return std::nullopt;
  return std::pair(cast<StringAttr>(from[0]).str(), cast<IntegerAttr>(from[1]).getInt());
}

/// Rounds a number to `bits` significant bits.
static double roundTo(double value, int64_t bits) {
  int exponent;
  double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, int(bits))), exponent - int(bits));
}

static bool hasAttention(func::FuncOp kernel) {
  auto isAttention = [](Operation *op) {
    return isa<AttentionOp, AttentionGradOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
  };
  return kernel.walk(isAttention).wasInterrupted();
}

static LogicalResult verifyArgument(func::FuncOp kernel, BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  if (!type || !type.hasStaticShape() || !isStoredElement(type.getElementType()))
    return kernel.emitError("argument ") << number
                                         << ": expected a tensor of a static shape with elements "
                                            "of f64, f32, f16 or bf16, or with "
                                            "integers of 1, 8, 16, 32 or 64 bits, found "
                                         << argument.getType();
  if (type.getNumElements() == 0 && hasAttention(kernel))
    return kernel.emitError("argument ")
           << number << ": expected at least one element for attention, found " << type;
  if (Attribute values = kernel.getArgAttr(number, "fsdp.values"))
    if (auto dense = dyn_cast<DenseElementsAttr>(values); !dense || dense.getType() != type)
      return kernel.emitError("argument ")
             << number << ": expected fsdp.values = dense<..> : " << type << ", found " << values;
  if (Attribute range = kernel.getArgAttr(number, "fsdp.range")) {
    auto bounds = dyn_cast<ArrayAttr>(range);
    if (!bounds || bounds.size() != 2 || !llvm::all_of(bounds, llvm::IsaPred<FloatAttr>))
      return kernel.emitError("argument ")
             << number << ": expected fsdp.range = [lo, hi] of two floats, found " << range;
    double lo = cast<FloatAttr>(bounds[0]).getValueAsDouble(),
           hi = cast<FloatAttr>(bounds[1]).getValueAsDouble();
    if (!std::isfinite(lo) || !std::isfinite(hi) || lo > hi)
      return kernel.emitError("argument ")
             << number << ": expected fsdp.range = [lo, hi] of finite lo <= hi, found " << range;
  }
  if (Attribute bits = kernel.getArgAttr(number, "fsdp.bits"))
    if (auto integer = dyn_cast<IntegerAttr>(bits);
        !integer || integer.getInt() < 1 || integer.getInt() > 53)
      return kernel.emitError("argument ")
             << number << ": expected fsdp.bits = n from 1 to 53, found " << bits;
  if (Attribute limit = kernel.getArgAttr(number, "fsdp.limit"))
    if (auto integer = dyn_cast<IntegerAttr>(limit); !integer || integer.getInt() <= 0)
      return kernel.emitError("argument ")
             << number << ": expected fsdp.limit = n, a positive integer, found " << limit;
  return success();
}

/// Verifies that kernels can compute with the results of `op`.
static LogicalResult verifyResults(Operation *op) {
  for (Type type : op->getResultTypes())
    if (!isComputedElement(getElementTypeOrSelf(type)))
      return op->emitError(
                 "expected results of f64, f32, f16, bf16 or integers of at most 64 bits, "
                 "found ")
             << type;
  return success();
}

LogicalResult fsdp::verifyArguments(ArrayRef<func::FuncOp> kernels) {
  for (func::FuncOp kernel : kernels) {
    for (BlockArgument argument : kernel.getArguments())
      if (failed(verifyArgument(kernel, argument)))
        return failure();
    if (kernel.walk([](Operation *op) { return WalkResult(verifyResults(op)); }).wasInterrupted())
      return failure();
  }
  return success();
}

LogicalResult fsdp::verifyRuns(ArrayRef<func::FuncOp> kernels) {
  auto memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  for (func::FuncOp kernel : kernels) {
    double bytes = 0;
    for (Type type : kernel.getArgumentTypes())
      bytes += static_cast<double>(getStorageBytes(cast<RankedTensorType>(type)));
    if (bytes > memory)
      return kernel.emitError("expected arguments that fit the memory of this machine, ")
             << llvm::formatv("{0:f1} GiB, found {1:f1} GiB; use smaller tensors, or compile only "
                              "(--emit)",
                              memory / (1 << 30), bytes / (1 << 30))
                    .str();
    if (kernel.walk([](Operation *op) { return WalkResult(refuseTraps(op)); }).wasInterrupted())
      return failure();
  }
  return success();
}

LogicalResult fsdp::verifySources(ArrayRef<func::FuncOp> kernels) {
  std::map<std::pair<std::string, int64_t>, Type> results;
  for (func::FuncOp kernel : kernels) {
    for (BlockArgument argument : kernel.getArguments()) {
      if (!kernel.getArgAttr(argument.getArgNumber(), "fsdp.from"))
        continue;
      auto source = sourceOf(kernel, argument.getArgNumber());
      if (!source)
        return kernel.emitError("argument ")
               << argument.getArgNumber() << ": expected fsdp.from = [\"kernel\", result], found "
               << kernel.getArgAttr(argument.getArgNumber(), "fsdp.from");
      auto found = results.find(*source);
      if (found == results.end() || found->second != argument.getType())
        return kernel.emitError("argument ") << argument.getArgNumber() << ": expected a kernel '"
                                             << source->first << "' before this one with a result "
                                             << source->second << " of type " << argument.getType();
    }
    for (BlockArgument argument : kernel.getArguments())
      if (auto number = kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), outAttr))
        results[{kernel.getName().str(), number.getInt()}] = argument.getType();
  }
  return success();
}

std::vector<Buffer> fsdp::makeInputs(func::FuncOp kernel, Oracle *oracle, unsigned draw) {
  std::vector<Buffer> buffers;
  std::mt19937_64 random(0x5eed + draw);
  for (BlockArgument argument : kernel.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    Type element = type.getElementType();
    double lo = -1, hi = 1;
    if (auto range = kernel.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), "fsdp.range")) {
      lo = cast<FloatAttr>(range[0]).getValueAsDouble();
      hi = cast<FloatAttr>(range[1]).getValueAsDouble();
    }
    int64_t limit = 2;
    if (auto attr = kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), "fsdp.limit"))
      limit = attr.getInt();
    int64_t bits = 53;
    if (auto attr = kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), "fsdp.bits"))
      bits = attr.getInt();
    auto source = sourceOf(kernel, argument.getArgNumber());
    if (source && oracle) {
      buffers.push_back(oracle->resultOf(*source, draw));
      continue;
    }
    buffers.emplace_back(getStorageBytes(type));
    DenseElementsAttr values = valuesOf(argument);
    if (values && !kernel.getArgAttr(argument.getArgNumber(), outAttr)) {
      fill(buffers.back(), values);
      continue;
    }
    ElementCodec codec(element);
    bool poisoned = kernel.getArgAttr(argument.getArgNumber(), outAttr) && isa<FloatType>(element);
    for (int64_t i = 0, count = type.getNumElements(); i < count; ++i) {
      double value = poisoned ? std::numeric_limits<double>::quiet_NaN()
                     : isa<FloatType>(element)
                         ? roundTo(std::uniform_real_distribution<double>(lo, hi)(random), bits)
                         : static_cast<double>(random() % limit);
      codec.write(buffers.back().data() + i * codec.size, value);
    }
  }
  return buffers;
}

bool Oracle::run(size_t index, std::vector<Buffer> &bindings, unsigned draw) {
  func::FuncOp kernel = kernels[index];
  if (!subject.run(index, bindings, Split::Whole))
    return false;
  for (BlockArgument argument : kernel.getArguments())
    if (auto number = kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), outAttr))
      found.emplace(std::tuple(kernel.getName().str(), number.getInt(), draw),
                    bindings[argument.getArgNumber()]);
  return true;
}

Buffer Oracle::resultOf(const std::pair<std::string, int64_t> &source, unsigned draw) {
  std::tuple place(source.first, source.second, draw);
  if (auto known = found.find(place); known != found.end())
    return known->second;
  size_t index =
      llvm::find_if(kernels, [&](func::FuncOp k) { return k.getName() == source.first; }) -
      kernels.begin();
  std::vector<Buffer> bindings = makeInputs(kernels[index], this, draw);
  run(index, bindings, draw);
  return found.at(place);
}
