//===- Oracle.h - Inputs and expected results -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_TOOLS_KERNELTEST_ORACLE_H
#define FSDP_TOOLS_KERNELTEST_ORACLE_H

#include "Subject.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <map>

namespace mlir::fsdp {

/// Returns the attribute `fsdp.values` of an argument, or null if it has no value of this type.
DenseElementsAttr valuesOf(BlockArgument argument);

/// Returns the kernel and the index of the result that argument `number` gets (attribute
/// fsdp.from).
std::optional<std::pair<std::string, int64_t>> sourceOf(func::FuncOp kernel, unsigned number);

/// Checks that arguments are tensors of static shape, that each fsdp.range has two floats, and that
/// each fsdp.limit is positive.
LogicalResult verifyArguments(ArrayRef<func::FuncOp> kernels);

/// Checks that each fsdp.from names a result of an earlier kernel, and that their types are equal.
LogicalResult verifySources(ArrayRef<func::FuncOp> kernels);

/// Runs the reference kernels in f64, and stores results that later kernels get as inputs.
class Oracle {
  Subject &subject;
  ArrayRef<func::FuncOp> kernels;
  /// Results by the kernel's name, the index of the result, and the number of the draw of inputs.
  std::map<std::tuple<std::string, int64_t, unsigned>, Buffer> found;

public:
  Oracle(Subject &subject, ArrayRef<func::FuncOp> kernels) : subject(subject), kernels(kernels) {}
  Buffer resultOf(const std::pair<std::string, int64_t> &source, unsigned draw);
  bool run(size_t index, std::vector<Buffer> &bindings, unsigned draw);
};

/// Returns values of all bindings. `draw` seeds the random values. `oracle` may be null if no
/// argument gets a result of another kernel.
std::vector<Buffer> makeInputs(func::FuncOp kernel, Oracle *oracle, unsigned draw);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_KERNELTEST_ORACLE_H
