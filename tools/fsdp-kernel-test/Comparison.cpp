//===- Comparison.cpp - Compare a kernel with the oracle --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Comparison.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the allowed error of a result. It depends on the type of the result. If the kernel,
/// unlike the oracle, rounds intermediate values to a coarser type, the allowed error depends on
/// the coarser type instead.
static double boundOf(const Bounds &bounds, func::FuncOp kernel, Type element) {
  if (bounds.tolerance)
    return *bounds.tolerance;
  if (!isa<FloatType>(element))
    return 0;
  kernel.walk([&](arith::TruncFOp op) {
    Type type = getElementTypeOrSelf(op.getType());
    if (type.isBF16() || (type.isF16() && !element.isBF16()) || (type.isF32() && element.isF64()))
      element = type;
  });
  if (element.isF64())
    return 1e-12;
  if (element.isF32())
    return 4e-6;
  return element.isBF16() ? 1.6e-2 : element.isF16() ? 2e-3 : 0;
}

/// Returns the largest relative difference between two buffers. The difference of two elements is
/// divided by the larger of two numbers: the absolute value of the expected element, and
/// `floorShare` times the root mean square of the tensor.
static double compare(Buffer &got, Buffer &expected, RankedTensorType type, double floorShare,
                      int64_t *where) {
  ElementCodec codec(type.getElementType());
  double squares = 0, worst = 0;
  int64_t finite = 0, count = type.getNumElements();
  for (int64_t i = 0; i < count; ++i)
    if (double v = codec.read(expected.data() + i * codec.size); std::isfinite(v)) {
      squares += v * v;
      ++finite;
    }
  double floor = floorShare * std::sqrt(squares / std::max<int64_t>(finite, 1)) + 1e-300;
  for (int64_t i = 0; i < count; ++i) {
    double x = codec.read(got.data() + i * codec.size);
    double y = codec.read(expected.data() + i * codec.size);
    double difference = differenceOf(x, y),
           error = difference > 0 ? difference / std::max(std::fabs(y), floor) : 0;
    if (!(error <= worst)) {
      worst = error;
      *where = i;
      if (std::isnan(error))
        return std::numeric_limits<double>::infinity();
    }
  }
  return worst;
}

static bool sameBits(std::vector<Buffer> &a, std::vector<Buffer> &b, StringRef name,
                     StringRef what) {
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(a, b)))
    if (memcmp(std::get<0>(pair).data(), std::get<1>(pair).data(), std::get<0>(pair).bytes)) {
      llvm::errs() << "error: @" << name << " gives different bits in binding " << index << " "
                   << what << "\n";
      return false;
    }
  return true;
}

/// Number of draws of inputs over which errors are compared if a result has few independent errors.
/// In a single draw, the oracle that computes in the kernel's types may by chance have no errors.
static constexpr unsigned pooledDraws = 16;

/// Returns true if a result has at most 16 independent errors. Gradients of attention are sums over
/// scores: rounding a score or its weight changes all elements that the score contributes to by the
/// same factor. There are no more independent errors than scores then.
static bool hasFewErrors(func::FuncOp kernel, RankedTensorType type) {
  int64_t errors = type.getNumElements();
  kernel.walk([&](AttentionGradOp op) {
    ArrayRef<int64_t> q = op.getQ().getType().getShape(), k = op.getK().getType().getShape();
    errors = std::min(errors, q[0] * q[1] * q[2] * k[2]);
  });
  return errors <= 16;
}

namespace {
/// Errors of a result over all elements and draws. `kernel` is the root mean square of the kernel's
/// errors. `low` is the root mean square of the errors of the oracle in the kernel's types.
/// `rounding` is the largest rounding error.
struct PooledError {
  double kernel = 0, low = 0, rounding = 0;
};
} // namespace

/// Returns the sum of the squared differences of all elements.
static double sumSquares(Buffer &got, Buffer &expected, RankedTensorType type) {
  ElementCodec codec(type.getElementType());
  double sum = 0;
  for (int64_t i = 0, count = type.getNumElements(); i < count; ++i) {
    double difference = differenceOf(codec.read(got.data() + i * codec.size),
                                     codec.read(expected.data() + i * codec.size));
    sum += difference * difference;
  }
  return sum;
}

/// Returns the errors of the binding `number` over `pooledDraws` draws of inputs. The first of
/// these draws is the draw that all other checks use.
static PooledError poolErrors(func::FuncOp kernel, Subject &subject, Oracle &oracle, Subject &rough,
                              size_t index, unsigned number) {
  PooledError pooled;
  auto type = cast<RankedTensorType>(kernel.getArgument(number).getType());
  double values = static_cast<double>(pooledDraws) * static_cast<double>(type.getNumElements());
  for (unsigned draw = 0; draw < pooledDraws; ++draw) {
    std::vector<Buffer> expected = makeInputs(kernel, &oracle, draw), got = expected,
                        low = expected;
    if (!oracle.run(index, expected, draw) || !subject.run(index, got, Split::Whole) ||
        !rough.run(index, low, Split::Whole))
      return {std::numeric_limits<double>::infinity(), 0, 0};
    pooled.kernel += sumSquares(got[number], expected[number], type) / values;
    pooled.low += sumSquares(low[number], expected[number], type) / values;
    pooled.rounding =
        std::max(pooled.rounding, measureError(got[number], expected[number], type).second);
  }
  return {std::sqrt(pooled.kernel), std::sqrt(pooled.low), pooled.rounding};
}

bool fsdp::givesSameBits(Trial &trial, Subject &other, Split split, const std::string &how) {
  std::vector<Buffer> again = trial.inputs;
  return other.run(trial.index, again, split) && sameBits(trial.got, again, trial.name(), how);
}

bool fsdp::givesSameBitsInParts(Trial &trial) {
  if (!trial.subject.canSplit())
    return true;
  bool fine = true;
  for (Split split : {Split::Three, Split::Reverse})
    fine &= givesSameBits(trial, trial.subject, split, "when its range is split");
  return fine;
}

/// Returns the elements of a result whose values are undefined. If the kernel inserts a slice into
/// an empty tensor, the elements outside the slice are undefined.
static SmallVector<int64_t> findOpen(func::FuncOp kernel, BlockArgument argument) {
  auto out = kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), outAttr);
  auto insert = out ? kernel.front()
                          .getTerminator()
                          ->getOperand(out.getInt())
                          .getDefiningOp<tensor::InsertSliceOp>()
                    : nullptr;
  if (!insert || !insert.getDest().getDefiningOp<tensor::EmptyOp>() || !insert.hasUnitStride() ||
      insert.getSourceType().getRank() != insert.getDestType().getRank())
    return {};
  SmallVector<int64_t> strides = computeStrides(insert.getDestType().getShape()), open;
  for (int64_t i = 0; i < insert.getDestType().getNumElements(); ++i)
    for (auto [at, begin, size] : llvm::zip_equal(
             delinearize(i, strides), insert.getStaticOffsets(), insert.getStaticSizes()))
      if (at < begin || at >= begin + size) {
        open.push_back(i);
        break;
      }
  return open;
}

/// Sets the undefined elements (findOpen()) to zero in all buffers, so that these elements are
/// equal.
static void forgetOpen(Trial &trial, BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  auto type = cast<RankedTensorType>(argument.getType());
  size_t size = trial.got[number].bytes / std::max<int64_t>(type.getNumElements(), 1);
  for (int64_t i : findOpen(trial.kernel, argument))
    for (std::vector<Buffer> *each : {&trial.got, &trial.expected, &trial.low})
      if (!each->empty())
        memset((*each)[number].data() + i * size, 0, size);
}

/// Returns true if the kernel changed no bytes except its results.
static bool keepsWithin(Trial &trial, unsigned number) {
  Buffer &got = trial.got[number], &input = trial.inputs[number];
  bool isIntact = got.intact(), isSame = trial.subject.info(trial.index).writes[number] ||
                                         !memcmp(got.data(), input.data(), got.bytes);
  if (!isIntact)
    llvm::errs() << "error: @" << trial.name() << " writes after the end of binding " << number
                 << "\n";
  if (!isSame)
    llvm::errs() << "error: @" << trial.name() << " changes input " << number << "\n";
  return isIntact && isSame;
}

/// Returns true if kernel and oracle write the values that the attribute `fsdp.values` gives.
static bool givesValues(Trial &trial, BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  DenseElementsAttr values = valuesOf(argument);
  if (!values || !trial.kernel.getArgAttr(number, outAttr))
    return true;
  Buffer given(trial.got[number].bytes);
  fill(given, values);
  bool fine = true;
  for (auto [whose, buffer] : {std::pair("the kernel", &trial.got[number]),
                               std::pair("the oracle", &trial.expected[number])}) {
    int64_t at = 0;
    if (compare(*buffer, given, cast<RankedTensorType>(argument.getType()), trial.bounds.floor,
                &at) == 0)
      continue;
    ElementCodec codec(cast<RankedTensorType>(argument.getType()).getElementType());
    llvm::errs() << "error: " << whose << " of @" << trial.name()
                 << " does not give the values of binding " << number << ": element " << at
                 << llvm::format(": expected %e, found %e\n",
                                 codec.read(given.data() + at * codec.size),
                                 codec.read(buffer->data() + at * codec.size));
    fine = false;
  }
  return fine;
}

/// Returns true if the error of the kernel is at most --error-factor times the error of the oracle
/// in the kernel's own types.
static bool isWithinFactor(Trial &trial, BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  auto type = cast<RankedTensorType>(argument.getType());
  auto [error, rounding] = measureError(trial.got[number], trial.expected[number], type);
  double lowError = measureError(trial.low[number], trial.expected[number], type).first;
  // If the error of the oracle in the kernel's types is infinite, this error counts as zero.
  double allowed = *trial.bounds.errorFactor * (std::isfinite(lowError) ? lowError : 0) + rounding;
  if (error > allowed && std::isfinite(error) && hasFewErrors(trial.kernel, type)) {
    PooledError pooled =
        poolErrors(trial.kernel, trial.subject, trial.oracle, *trial.rough, trial.index, number);
    error = pooled.kernel;
    allowed =
        *trial.bounds.errorFactor * (std::isfinite(pooled.low) ? pooled.low : 0) + pooled.rounding;
  }
  trial.worst = std::max(trial.worst, error / (allowed + 1e-300));
  if (error <= allowed)
    return true;
  llvm::errs() << llvm::format(
      "error: @%s binding %u has an error of %.3g, expected at most %.3g\n", trial.name().c_str(),
      number, error, allowed);
  return false;
}

/// Returns true if the error is at most --tolerance or, without this option, at most the bound of
/// the element type.
static bool isWithinBound(Trial &trial, BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  auto type = cast<RankedTensorType>(argument.getType());
  int64_t where = 0;
  double error =
      compare(trial.got[number], trial.expected[number], type, trial.bounds.floor, &where);
  trial.worst = std::max(trial.worst, error);
  if (!(error > boundOf(trial.bounds, trial.kernel, type.getElementType())))
    return true;
  ElementCodec codec(type.getElementType());
  llvm::errs() << "error: @" << trial.name() << " binding " << number << " element " << where
               << ": expected " << codec.read(trial.expected[number].data() + where * codec.size)
               << ", found " << codec.read(trial.got[number].data() + where * codec.size) << "\n";
  return false;
}

bool fsdp::isAsExpected(Trial &trial) {
  bool fine = true;
  for (BlockArgument argument : trial.kernel.getArguments()) {
    fine &= keepsWithin(trial, argument.getArgNumber());
    if (!trial.subject.info(trial.index).writes[argument.getArgNumber()])
      continue;
    forgetOpen(trial, argument);
    fine &= givesValues(trial, argument);
    Type element = getElementTypeOrSelf(argument.getType());
    bool isRough = trial.rough && isa<FloatType>(element) && !element.isF64();
    fine &= isRough ? isWithinFactor(trial, argument) : isWithinBound(trial, argument);
  }
  return fine;
}
