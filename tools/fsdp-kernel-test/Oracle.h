//===- Oracle.h - Inputs of kernels, and what must come out -----*- C++ -*-===//
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

/// The attribute `fsdp.values` of an argument, none when its type is another.
DenseElementsAttr valuesOf(BlockArgument argument);

/// The kernel and the result that an argument takes its values from (fsdp.from).
std::optional<std::pair<std::string, int64_t>> sourceOf(func::FuncOp kernel, unsigned number);

/// Arguments are tensors of static shapes, each fsdp.range has two floats and each fsdp.limit is
/// positive.
LogicalResult verifyArguments(ArrayRef<func::FuncOp> kernels);

/// Each fsdp.from names a result of a kernel before, of the argument's type.
LogicalResult verifySources(ArrayRef<func::FuncOp> kernels);

/// Kernels that compute slowly in f64, on inputs by number of the draw.
class Oracle {
  Subject &subject;
  ArrayRef<func::FuncOp> kernels;
  /// Results of other kernels that arguments may take, by kernel, result and draw.
  std::map<std::tuple<std::string, int64_t, unsigned>, Buffer> found;

public:
  Oracle(Subject &subject, ArrayRef<func::FuncOp> kernels) : subject(subject), kernels(kernels) {}
  Buffer resultOf(const std::pair<std::string, int64_t> &source, unsigned draw);
  bool run(size_t index, std::vector<Buffer> &bindings, unsigned draw);
};

/// Seeded values of all bindings. `oracle`: null where its results do not matter.
std::vector<Buffer> makeInputs(func::FuncOp kernel, Oracle *oracle, unsigned draw);

} // namespace mlir::fsdp

#endif // FSDP_TOOLS_KERNELTEST_ORACLE_H
