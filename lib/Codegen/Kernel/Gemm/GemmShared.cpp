//===- GemmShared.cpp - Target-independent parts of contraction kernels --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// setDigits() computes the digits of a flat index from the innermost to the outermost digit.
// emitMaps() emits the elementwise ops in the order of the kernel. Each result of an elementwise op
// becomes one SSA value.
//
//===----------------------------------------------------------------------===//

#include "GemmShared.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gemm;

Type gemm::getValueType(const Access &access) {
  return access.maps.empty() ? access.elementType
                             : getElementTypeOrSelf(access.maps.back()->getResult(0).getType());
}

int64_t gemm::product(const Problem &problem, ArrayRef<int> digits) {
  int64_t size = 1;
  for (int i : digits)
    size *= problem.digits[i].size;
  return size;
}

/// Removes the float extensions at the end of an access. They are not needed, because extensions
/// are exact and the products are computed in the wider type.
static void dropExtensions(Access &access) {
  while (!access.maps.empty()) {
    Block *body = access.maps.back().getBlock();
    auto extension = dyn_cast<arith::ExtFOp>(body->front());
    if (!extension || extension.getIn() != body->getArgument(0) ||
        extension->getNextNode() != body->getTerminator())
      return;
    access.maps.pop_back();
  }
}

/// Returns true if the kernel can be computed tile by tile although it writes to its arguments in
/// place. Returns false if a written argument is also a factor of the contraction, or if a tile
/// would read elements that another tile writes.
static bool isSafeInPlace(const Problem &problem) {
  for (const StoreStep &store : problem.stores) {
    int written = store.dest.access.binding;
    if (problem.lhs.access.binding == written || problem.rhs.access.binding == written)
      return false;
    auto isSafe = [&](const Operand &read) {
      return read.access.binding != written ||
             (read.access.offset == store.dest.access.offset && read.strides == store.dest.strides);
    };
    if (!isSafe(problem.init) || !llvm::all_of(problem.loads, isSafe))
      return false;
  }
  return true;
}

/// Returns true if the sum of a factor overwrites nothing that the kernel reads except its initial
/// value, and if nothing else overwrites this value.
static bool isSumSafeInPlace(const Problem &problem) {
  const FactorSum &sum = *problem.factorSum;
  int written = sum.dest.access.binding;
  auto isOther = [&](const Operand &read) { return read.access.binding != written; };
  if (!isOther(problem.lhs) || !isOther(problem.rhs) || !isOther(problem.init) ||
      !llvm::all_of(problem.loads, isOther))
    return false;
  return llvm::none_of(problem.stores, [&](const StoreStep &store) {
    return sum.init.access.binding >= 0 && store.dest.access.binding == sum.init.access.binding;
  });
}

FailureOr<Problem> gemm::analyseTileable(func::FuncOp kernel, bool allowsFactorSum) {
  FailureOr<Problem> problem = analyse(kernel);
  if (succeeded(problem) && problem->factorSum && (!allowsFactorSum || !isSumSafeInPlace(*problem)))
    return failure();
  if (failed(problem) || !isSafeInPlace(*problem) ||
      llvm::any_of(problem->digits, [](Digit digit) { return digit.size == 0; }))
    return failure();
  dropExtensions(problem->lhs.access);
  dropExtensions(problem->rhs.access);
  return problem;
}

void gemm::orient(Problem &problem) {
  auto isContiguous = [&](Role role) {
    int votes = 0;
    int inner = problem.digitsOf(role).back();
    for (const StoreStep &store : problem.stores)
      votes += 2 * (store.dest.strides[inner] == 1);
    for (const Operand &load : problem.loads)
      votes += load.strides[inner] == 1;
    return votes;
  };
  int rows = isContiguous(Role::M), cols = isContiguous(Role::N);
  if (rows == cols) {
    rows = product(problem, problem.digitsOf(Role::M)) > 1;
    cols = product(problem, problem.digitsOf(Role::N)) > 1;
  }
  if (rows <= cols)
    return;
  std::swap(problem.lhs, problem.rhs);
  if (problem.factorSum)
    problem.factorSum->ofLhs = !problem.factorSum->ofLhs;
  for (Digit &digit : problem.digits)
    digit.role = digit.role == Role::M ? Role::N : digit.role == Role::N ? Role::M : digit.role;
}

Value gemm::emitOffset(CodeBuilder &b, ArrayRef<int64_t> strides, const Position &position) {
  Value offset = b.constant(0);
  for (auto [stride, value] : llvm::zip_equal(strides, position)) {
    if (stride == 0 || !value)
      continue;
    Value wide = value.getType().isInteger(64)
                     ? value
                     : b.createOrFold<arith::ExtSIOp>(b.loc, b.getI64Type(), value);
    offset = b.add(offset, b.mul(wide, stride));
  }
  return offset;
}

void gemm::setDigits(CodeBuilder &b, const Problem &problem, Position &position, Value flat,
                     ArrayRef<int> digits) {
  for (int digit : llvm::reverse(digits)) {
    int64_t size = problem.digits[digit].size;
    bool first = digit == digits.front();
    position[digit] = first ? flat : b.rem(flat, size);
    if (!first)
      flat = b.div(flat, size);
  }
}

DenseMap<Value, Value> gemm::emitMaps(CodeBuilder &b, const Problem &problem, Value sums,
                                      int64_t lanes, function_ref<Value(unsigned)> load,
                                      function_ref<Value(unsigned, unsigned)> index) {
  DenseMap<Value, Value> values;
  values[problem.root()] = b.convertFloat(sums, getElementTypeOrSelf(problem.root().getType()));
  for (auto [number, map] : llvm::enumerate(problem.maps)) {
    SmallVector<Value> inputs;
    for (auto [operand, own] : llvm::zip_equal(map.op->getOperands(), map.loadOf))
      inputs.push_back(own < 0 ? values.lookup(problem.key(operand)) : load(own));
    SmallVector<Value> results = b.inlineBody(
        map.op, inputs, lanes, [&, number = number](unsigned loop) { return index(number, loop); });
    for (auto [result, value] : llvm::zip_equal(map.op->getResults(), results))
      values[result] = value;
  }
  return values;
}
