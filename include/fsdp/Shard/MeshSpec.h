//===- MeshSpec.h - The device mesh of --mesh -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_SHARD_MESHSPEC_H
#define FSDP_SHARD_MESHSPEC_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"

namespace mlir {
namespace fsdp {

/// Sizes of the axes of a mesh. Each size is a list of factors, outermost first.
struct MeshSpec {
  SmallVector<int64_t> replicate = {1};
  SmallVector<int64_t> shard = {1};
  SmallVector<int64_t> context = {1};
  SmallVector<int64_t> tensor = {1};

  /// Returns the number of ranks over which units are sharded: those of `shard` and `context`.
  int64_t getShards() const;
  /// Returns the number of ranks that read the same samples: those of `context` and `tensor`.
  int64_t getReaders() const;
  /// Returns the axes of the mesh, outermost first. The ranks of `context` are neighbours on the
  /// axis `shard`. The mesh has an axis `tensor` only if that axis has more than one rank.
  SmallVector<Attribute> getAxes(MLIRContext *context) const;
  /// Declares the mesh `@mesh`.
  void declare(OpBuilder &builder, Location loc) const;
};

/// Greatest number of ranks of a mesh.
constexpr int64_t kMaxRanks = 1 << 16;

/// Parses `[replicate=R,]shard=S[,context=C][,tensor=T]`. The axes may occur in any order. The size
/// of an axis is a number such as `4`, or a product of factors such as `2x4`. Reports errors
/// through `emitError`.
FailureOr<MeshSpec> parseMeshSpec(StringRef text, function_ref<InFlightDiagnostic()> emitError);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_SHARD_MESHSPEC_H
