//===- MeshSpec.cpp - The device mesh of --mesh -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Shard/MeshSpec.h"
#include "fsdp/IR/TensorSplit.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Parses `2x4` as {2, 4}. Fails unless every factor is at least 1.
static LogicalResult parseFactors(StringRef text, SmallVectorImpl<int64_t> &factors) {
  SmallVector<StringRef> parts;
  text.split(parts, 'x');
  factors.clear();
  for (StringRef part : parts) {
    int64_t factor;
    if (part.getAsInteger(10, factor) || factor < 1)
      return failure();
    factors.push_back(factor);
  }
  return success();
}

int64_t MeshSpec::getShards() const { return llvm::product_of(shard) * llvm::product_of(context); }

int64_t MeshSpec::getReaders() const {
  return llvm::product_of(context) * llvm::product_of(tensor);
}

SmallVector<Attribute> MeshSpec::getAxes(MLIRContext *mlir) const {
  SmallVector<int64_t> shards = shard;
  if (llvm::product_of(context) > 1)
    llvm::append_range(shards, context);
  SmallVector<Attribute> axes{AxisAttr::get(mlir, "replicate", replicate),
                              AxisAttr::get(mlir, "shard", shards)};
  if (llvm::product_of(tensor) > 1)
    axes.push_back(AxisAttr::get(mlir, tensorAxis, tensor));
  return axes;
}

void MeshSpec::declare(OpBuilder &builder, Location loc) const {
  int64_t ranks = llvm::product_of(context);
  MeshOp::create(builder, loc, "mesh", builder.getArrayAttr(getAxes(builder.getContext())),
                 ranks > 1 ? builder.getI64IntegerAttr(ranks) : IntegerAttr());
}

FailureOr<MeshSpec> mlir::fsdp::parseMeshSpec(StringRef text,
                                              function_ref<InFlightDiagnostic()> emitError) {
  MeshSpec mesh;
  SmallVector<StringRef> axes, seen;
  text.split(axes, ',');
  for (StringRef axis : axes) {
    auto [name, size] = axis.split('=');
    SmallVector<int64_t> *factors = llvm::StringSwitch<SmallVector<int64_t> *>(name)
                                        .Case("replicate", &mesh.replicate)
                                        .Case("shard", &mesh.shard)
                                        .Case(contextAxis, &mesh.context)
                                        .Case(tensorAxis, &mesh.tensor)
                                        .Default(nullptr);
    if (!factors) {
      emitError() << "mesh '" << text
                  << "': expected sizes of the axes 'replicate', 'shard', 'context' and 'tensor', "
                     "as in 'replicate=2,shard=4', found '"
                  << axis << "'";
      return failure();
    }
    if (llvm::is_contained(seen, name)) {
      emitError() << "mesh '" << text << "': axis '" << name << "' is given twice";
      return failure();
    }
    seen.push_back(name);
    if (failed(parseFactors(size, *factors))) {
      emitError() << "mesh '" << text << "': expected the size of axis '" << name
                  << "' to be a number of at least 1, or factors such as '2x4', found '" << size
                  << "'";
      return failure();
    }
  }
  int64_t ranks = 1;
  for (int64_t factor :
       llvm::concat<int64_t>(mesh.replicate, mesh.shard, mesh.context, mesh.tensor)) {
    if (factor > kMaxRanks || (ranks *= factor) > kMaxRanks) {
      emitError() << "mesh '" << text << "': expected at most " << kMaxRanks
                  << " ranks in all axes together, found more";
      return failure();
    }
  }
  return mesh;
}
