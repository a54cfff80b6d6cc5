//===- Engine.h - Compiled functions of tensors -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_GRADCHECK_ENGINE_H
#define FSDP_GRADCHECK_ENGINE_H

#include "GuardAccesses.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fsdp::gradcheck {

/// Contains the bytes of one tensor. The elements of the tensor are read and written as doubles.
class Buffer {
public:
  explicit Buffer(RankedTensorType type);

  RankedTensorType getType() const { return type; }
  int64_t size() const { return type.getNumElements(); }
  double get(int64_t i) const;
  void set(int64_t i, double value);
  void *data() { return bytes.data(); }

private:
  RankedTensorType type;
  unsigned elementSize;
  std::vector<char> bytes;
};

/// Contains all public functions of a module, compiled by MLIR's own passes and linked with libm.
class Engine {
public:
  /// Compiles a module. Reports an error and returns null on failure.
  static std::unique_ptr<Engine> create(OwningOpRef<ModuleOp> module);
  /// Runs a function. Arguments and results are in the order of the function's type. Fails with a
  /// diagnostic if an index is out of range or an integer division is undefined.
  LogicalResult call(StringRef name, MutableArrayRef<Buffer> arguments,
                     MutableArrayRef<Buffer> results);

private:
  std::unique_ptr<ExecutionEngine> engine;
  std::vector<Guard> guards;
};

} // namespace mlir::fsdp::gradcheck

#endif // FSDP_GRADCHECK_ENGINE_H
