//===- VerifySharded.cpp - Verify the result of Shard -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Meshes: @mesh has the axes replicate and shard; @solo has one rank.
//  2. Units: the number of shards is the size of the axis shard. Sizes and offsets are aligned. In
//     each unit, parameters with weight decay precede parameters without weight decay. All or none
//     of the parameters are frozen.
//  3. Programs: the arguments of step and reference are first the buffers of the units, in order,
//     then the batch. Each buffer is read by at most one unshard of site 0, and otherwise only by
//     lookups of rows.
//
// Reports all errors of a module, but checks nothing else if the meshes are wrong.
//
//===----------------------------------------------------------------------===//

#include "Partition/VerifyPartition.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/Shard/Layout.h"
#include "fsdp/Shard/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYSHARDEDPASS
#include "fsdp/Shard/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct VerifyShardedPass : fsdp::impl::VerifyShardedPassBase<VerifyShardedPass> {
  using VerifyShardedPassBase::VerifyShardedPassBase;
  void runOnOperation() override {
    failed = false;
    checkMeshes();
    if (failed)
      return signalPassFailure();
    units = llvm::to_vector(getOperation().getOps<UnitOp>());
    for (UnitOp unit : units)
      checkUnit(unit);
    checkProgram("step", "mesh");
    if (isPartitioned(mesh) && !failed)
      failed = mlir::failed(verifyPartition(getOperation(), mesh));
    if (!isPartitioned(mesh))
      checkProgram("reference", "solo");
    if (failed)
      signalPassFailure();
  }

private:
  InFlightDiagnostic fail(Location loc) {
    failed = true;
    return mlir::emitError(loc) << "after Shard: expected ";
  }
  void checkMeshes();
  void checkUnit(UnitOp unit);
  void checkProgram(StringRef program, StringRef meshName);
  void checkShardArgument(func::FuncOp func, unsigned index);
  void checkReaders(BlockArgument shard, UnitOp unit);

  bool failed = false;
  MeshOp mesh;
  SmallVector<UnitOp> units;
};
} // namespace

void VerifyShardedPass::checkMeshes() {
  ModuleOp module = getOperation();
  mesh = module.lookupSymbol<MeshOp>("mesh");
  auto solo = module.lookupSymbol<MeshOp>("solo");
  if (!mesh || !solo) {
    fail(module.getLoc()) << "the meshes '@mesh' and '@solo'";
    return;
  }
  auto names = llvm::map_to_vector(mesh.getAxes().getAsRange<AxisAttr>(),
                                   [](AxisAttr axis) { return axis.getName(); });
  if (names.size() > 2 && names.back() == tensorAxis)
    names.pop_back();
  if (ArrayRef<StringRef>(names) != ArrayRef<StringRef>({"replicate", "shard"}))
    fail(mesh.getLoc()) << "the axes 'replicate' and 'shard', and optionally 'tensor', in this "
                           "order";
  if (solo.getNumRanks() != 1)
    fail(solo.getLoc()) << "one rank in '@solo', found " << solo.getNumRanks();
}

void VerifyShardedPass::checkUnit(UnitOp unit) {
  if (int64_t(unit.getShards()) != mesh.getAxisSize("shard"))
    fail(unit.getLoc()) << mesh.getAxisSize("shard") << " shards, as the mesh has, found "
                        << unit.getShards();
  if (unit.getShardSize() < 1 || unit.getShardSize() % kShardAlignment != 0)
    fail(unit.getLoc()) << "a shard size that is a multiple of " << kShardAlignment << ", found "
                        << unit.getShardSize();
  bool decay = true;
  for (auto param : unit.getParams().getAsRange<ParamAttr>()) {
    int64_t alignment =
        getOffsetAlignment(getStorageBytes(RankedTensorType::get({1}, unit.getDtype())));
    if (param.getOffset() % alignment != 0)
      fail(unit.getLoc()) << "parameter '" << param.getName() << "' at a multiple of " << alignment
                          << ", found offset " << param.getOffset();
    if (param.getDecay() && !decay)
      fail(unit.getLoc()) << "parameter '" << param.getName()
                          << "', which has decay, before those without";
    decay = param.getDecay();
    if (param.getTrainable() != unit.getParam(0).getTrainable())
      fail(unit.getLoc()) << "trainable and frozen parameters in units of "
                             "their own, found both";
    if (getTensorSplit(unit, param.getName()).has_value() !=
        getTensorSplit(unit, unit.getParam(0).getName()).has_value())
      fail(unit.getLoc()) << "split and whole parameters in units of their own, found both";
  }
}

void VerifyShardedPass::checkReaders(BlockArgument shard, UnitOp unit) {
  unsigned readers = 0;
  for (Operation *user : shard.getUsers()) {
    if (auto lookup = dyn_cast<UnshardRowsOp>(user);
        lookup && lookup.getUnit() == unit.getSymName())
      continue;
    auto unshard = dyn_cast<UnshardOp>(user);
    if (!unshard || unshard.getUnit() != unit.getSymName() || unshard.getSite() != 0 ||
        ++readers > 1)
      fail(user->getLoc()) << "one 'fsdp.unshard' of site 0 to read the shard "
                              "of unit '"
                           << unit.getSymName() << "', found another reader";
  }
}

void VerifyShardedPass::checkProgram(StringRef program, StringRef meshName) {
  func::FuncOp found;
  for (auto func : getOperation().getOps<func::FuncOp>()) {
    auto name = func->getAttrOfType<StringAttr>(FSDPDialect::programAttr);
    if (!name || name.getValue() != program)
      continue;
    if (found)
      fail(func.getLoc()) << "one program '" << program << "', found another";
    found = func;
  }
  if (!found) {
    fail(getOperation().getLoc()) << "a function of program '" << program << "'";
    return;
  }
  auto on = found->getAttrOfType<FlatSymbolRefAttr>(FSDPDialect::meshAttr);
  if (!on || on.getValue() != meshName)
    fail(found.getLoc()) << "'" << FSDPDialect::meshAttr << "' to be @" << meshName;
  if (found.getNumArguments() < units.size())
    fail(found.getLoc()) << "an argument per unit";
  for (unsigned i = 0, e = found.getNumArguments(); i < e; ++i)
    checkShardArgument(found, i);
}

/// Verifies that argument `index` is the buffer of unit `index`, or is a batch argument.
void VerifyShardedPass::checkShardArgument(func::FuncOp func, unsigned index) {
  BlockArgument arg = func.getArgument(index);
  auto named = func.getArgAttrOfType<FlatSymbolRefAttr>(index, FSDPDialect::unitAttr);
  if (index >= units.size()) {
    bool isInput = func.getArgAttr(index, FSDPDialect::batchAttr) ||
                   func.getArgAttr(index, FSDPDialect::keyAttr);
    if (named || !isInput)
      fail(arg.getLoc()) << "'" << FSDPDialect::batchAttr << "' on argument " << index << " of '@"
                         << func.getSymName() << "', after the last unit";
    return;
  }
  UnitOp unit = units[index];
  bool whole = func->getAttrOfType<StringAttr>(FSDPDialect::programAttr).getValue() == "reference";
  auto type = RankedTensorType::get(
      {whole ? int64_t(unit.getFlatSize()) : unit.getPieceSize(unit.getParameterAxes(), mesh)},
      unit.getDtype());
  if (!named || named.getAttr() != unit.getSymNameAttr() || arg.getType() != type) {
    fail(arg.getLoc()) << "argument " << index << " of '@" << func.getSymName() << "' to be unit '"
                       << unit.getSymName() << "' as " << type << ", found " << arg.getType();
    return;
  }
  ++numChecked;
  checkReaders(arg, unit);
}
