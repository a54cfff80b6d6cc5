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

/// Returns the attribute `fsdp.values` of an argument, or null if it has no such attribute.
DenseElementsAttr valuesOf(BlockArgument argument);

/// The attribute fsdp.from of argument `number` names a result of a kernel. The argument gets the
/// values of this result. Returns the name of this kernel and the index of the result.
std::optional<std::pair<std::string, int64_t>> sourceOf(func::FuncOp kernel, unsigned number);

/// Checks that all arguments are tensors of static shape with elements, that each fsdp.values has
/// the argument's type, that each fsdp.range contains two finite floats in order, that each
/// fsdp.bits is from 1 to 53, and that each fsdp.limit is positive.
LogicalResult verifyArguments(ArrayRef<func::FuncOp> kernels);

/// Checks that the arguments of each kernel fit the memory of this machine. Also checks that no op
/// of a kernel may divide by 0, because such a division would end this process.
LogicalResult verifyRuns(ArrayRef<func::FuncOp> kernels);

/// Checks that each fsdp.from names a result of an earlier kernel that has the argument's type.
LogicalResult verifySources(ArrayRef<func::FuncOp> kernels);

/// Runs the reference kernels in f64. Stores the results that later kernels get as inputs.
class Oracle {
  Subject &subject;
  ArrayRef<func::FuncOp> kernels;
  /// Stored results. The key consists of the name of the kernel, the index of the result, and the
  /// number of the draw of inputs.
  std::map<std::tuple<std::string, int64_t, unsigned>, Buffer> found;

public:
  Oracle(Subject &subject, ArrayRef<func::FuncOp> kernels) : subject(subject), kernels(kernels) {}
  Buffer resultOf(const std::pair<std::string, int64_t> &source, unsigned draw);
  bool run(size_t index, std::vector<Buffer> &bindings, unsigned draw);
};

/// Returns the values of all bindings of a kernel before its run. `draw` is the seed of the random
/// values. `oracle` may be null if no argument gets the result of another kernel.
std::vector<Buffer> makeInputs(func::FuncOp kernel, Oracle *oracle, unsigned draw);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_KERNELTEST_ORACLE_H
