//===- InsertUnshard.cpp - Insert gathers before uses -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   before   @loss(w0, b0, w1, x)        ... use w0 ... use w1 ... use b0
//   after    @loss(shard of @u, x)  unshard @u ... w0 ... w1 ... b0
//
//  1. Clone @loss to @reference, unless the mesh has an axis `tensor` or `context`.
//  2. In the two functions, insert an argument for every unit, in the order of the units. In @loss,
//     the argument is the shard of a rank. In @reference, the argument is the whole flat buffer.
//     Insert an unshard directly before the first op that uses a parameter of the unit, directly or
//     in a region. Lookups in the table of a unit with `rows` become unshard_rows. With no_sync,
//     these lookups are kept, because no_sync sums the gradients of the whole table over the
//     micro-batches before it reduces them.
//  3. Erase the parameter arguments and mark the programs.
//
// The time is O(parameters + uses). The stage Differentiate adds gathers for the backward, and the
// stage Plan chooses when to gather.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/DiagnosticText.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdp/Options/PassConfiguration.h"
#include "fsdp/Shard/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_INSERTUNSHARDPASS
#include "fsdp/Shard/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct InsertUnshardPass : fsdp::impl::InsertUnshardPassBase<InsertUnshardPass> {
  using InsertUnshardPassBase::InsertUnshardPassBase;
  void runOnOperation() override;

private:
  LogicalResult checkArguments(func::FuncOp func);
  LogicalResult convert(func::FuncOp func, bool whole);
  bool insertUnshard(func::FuncOp func, UnitOp unit, Value shard,
                     const llvm::StringMap<BlockArgument> &arguments);

  SmallVector<UnitOp> units;
  MeshOp mesh;
  bool noSync = false; ///< whether gradients of micro-batches are summed before they are reduced
};
} // namespace

/// Verifies that the parameter arguments are exactly the parameters of the units.
LogicalResult InsertUnshardPass::checkArguments(func::FuncOp func) {
  llvm::StringMap<RankedTensorType> declared;
  for (UnitOp unit : units)
    for (auto param : unit.getParams().getAsRange<ParamAttr>())
      declared[param.getName()] = param.getType();
  unsigned found = 0;
  for (BlockArgument arg : func.getArguments()) {
    auto name = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::paramAttr);
    if (!name)
      continue;
    ++found;
    RankedTensorType stored = declared.lookup(name);
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!stored || !type || stored.getShape() != type.getShape()) {
      InFlightDiagnostic diag = mlir::emitError(arg.getLoc());
      diag << "expected a unit that declares parameter " << name << " with type " << arg.getType()
           << ", found ";
      if (stored)
        diag << "type " << stored;
      else
        diag << "none";
      return diag << "; run fsdp-form-units on this module first";
    }
  }
  if (found == 0)
    return mlir::emitError(func.getLoc(), "expected arguments with '")
           << FSDPDialect::paramAttr << "'";
  if (found != declared.size())
    return mlir::emitError(func.getLoc(), "expected an argument for each of the ")
           << declared.size() << " parameters of the units, found "
           << describeCount(found, "argument", "arguments");
  return success();
}

/// Returns the first op of the function's block that uses one of `values`, directly or in a region.
/// Returns null if no op uses them.
static Operation *findFirstUser(ArrayRef<Value> values, Block &body) {
  Operation *first = nullptr;
  for (Value value : values)
    for (Operation *user : value.getUsers()) {
      Operation *op = body.findAncestorOpInBlock(*user);
      if (!first || op->isBeforeInBlock(first))
        first = op;
    }
  return first;
}

/// Replaces each lookup in `table`, the table of a unit with `rows`, by an unshard_rows of `shard`.
/// The unshard_rows gathers only the rows at the ids.
static void unshardRows(UnitOp unit, Value table, Value shard) {
  for (Operation *user : llvm::make_early_inc_range(table.getUsers()))
    if (auto lookup = dyn_cast<GatherRowsOp>(user)) {
      OpBuilder builder(lookup);
      Value rows = UnshardRowsOp::create(builder, lookup.getLoc(), lookup.getResult().getType(),
                                         shard, lookup.getIds(), unit.getSymName());
      lookup.getResult().replaceAllUsesWith(rows);
      lookup.erase();
    }
}

/// Inserts the unshard of a unit. Returns false if no op uses its parameters.
bool InsertUnshardPass::insertUnshard(func::FuncOp func, UnitOp unit, Value shard,
                                      const llvm::StringMap<BlockArgument> &arguments) {
  SmallVector<Value> params;
  SmallVector<Type> types;
  for (auto param : unit.getParams().getAsRange<ParamAttr>()) {
    params.push_back(arguments.lookup(param.getName()));
    // Take the type from the argument, because the unit's stored type may be wider.
    types.push_back(params.back().getType());
  }
  if (unit.getRows() && !noSync)
    unshardRows(unit, params.front(), shard);
  Operation *first = findFirstUser(params, func.getBody().front());
  if (!first)
    return false;
  OpBuilder builder(first);
  auto unshard = UnshardOp::create(builder, first->getLoc(), types, shard,
                                   FlatSymbolRefAttr::get(unit.getSymNameAttr()),
                                   /*site=*/0);
  for (auto [param, full] : llvm::zip_equal(params, unshard.getResults()))
    param.replaceAllUsesWith(full);
  return true;
}

/// Replaces the parameters of `func` by one shard per unit, or one flat buffer per unit if `whole`.
LogicalResult InsertUnshardPass::convert(func::FuncOp func, bool whole) {
  llvm::StringMap<BlockArgument> arguments;
  for (BlockArgument arg : func.getArguments())
    if (auto name = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::paramAttr))
      arguments[name] = arg;

  MLIRContext *context = &getContext();
  for (auto [index, unit] : llvm::enumerate(units)) {
    int64_t size = whole ? unit.getFlatSize() : unit.getPieceSize(unit.getParameterAxes(), mesh);
    auto type = RankedTensorType::get({size}, unit.getDtype());
    NamedAttribute name(StringAttr::get(context, FSDPDialect::unitAttr),
                        FlatSymbolRefAttr::get(unit.getSymNameAttr()));
    if (failed(func.insertArgument(index, type, DictionaryAttr::get(context, name), unit.getLoc())))
      return failure();
    bool used = insertUnshard(func, unit, func.getArgument(index), arguments);
    if (used && !whole)
      ++numGathers;
  }
  llvm::BitVector erased(func.getNumArguments());
  for (unsigned i = 0, e = func.getNumArguments(); i < e; ++i)
    erased[i] = !!func.getArgAttr(i, FSDPDialect::paramAttr);
  return func.eraseArguments(erased);
}

void InsertUnshardPass::runOnOperation() {
  ModuleOp module = getOperation();
  units = llvm::to_vector(module.getOps<UnitOp>());
  auto fail = [&](const Twine &message) {
    mlir::emitError(module.getLoc(), message);
    signalPassFailure();
  };
  auto loss = module.lookupSymbol<func::FuncOp>("loss");
  mesh = module.lookupSymbol<MeshOp>("mesh");
  if (!loss || !mesh || !module.lookupSymbol<MeshOp>("solo") || units.empty())
    return fail("expected a function '@loss', the meshes '@mesh' and '@solo' and units, found no " +
                Twine(!loss           ? "function '@loss'"
                      : !mesh         ? "mesh '@mesh'"
                      : units.empty() ? "unit"
                                      : "mesh '@solo'") +
                "; run fsdp-form-units first");
  if (module.lookupSymbol("reference"))
    return fail("expected no symbol '@reference' yet");
  if (gradAccum < 1 || gradAccum > 1 << 20)
    return fail("grad-accum: expected a number in [1, 1048576], found " +
                Twine(gradAccum.getValue()));
  auto when = readOption<GradSync>(module.getLoc(), "grad-sync", gradSync);
  if (failed(when))
    return signalPassFailure();
  if (gradAccum == 1 && *when != GradSync::Auto)
    mlir::emitWarning(module.getLoc())
        << "grad-sync '" << gradSync
        << "' has no effect: a step has one micro-batch; grad-accum sets the number";
  if (!loss.getBody().hasOneBlock() || failed(checkArguments(loss)))
    return signalPassFailure();

  // With Auto, replicated gradients are summed over micro-batches and then reduced. Sharded
  // gradients are reduced in each micro-batch, which needs less memory.
  bool pieces = llvm::any_of(units, [](UnitOp unit) { return !unit.getGradientAxes().empty(); });
  noSync = gradAccum > 1 && (*when == GradSync::Last || (*when == GradSync::Auto && !pieces));
  // One rank cannot run the program of a rank of these axes, which has slices of values.
  func::FuncOp reference;
  if (!isPartitioned(mesh)) {
    reference = cast<func::FuncOp>(loss->clone());
    reference.setSymName("reference");
    module.insert(std::next(loss->getIterator()), reference);
  }
  if (failed(convert(loss, /*whole=*/false)) ||
      (reference && failed(convert(reference, /*whole=*/true))))
    return signalPassFailure();

  Builder builder(&getContext());
  auto mark = [&](func::FuncOp func, StringRef program, StringRef meshName) {
    func->setAttr(FSDPDialect::programAttr, builder.getStringAttr(program));
    func->setAttr(FSDPDialect::meshAttr, FlatSymbolRefAttr::get(&getContext(), meshName));
  };
  mark(loss, "step", "mesh");
  if (noSync)
    loss->setAttr(FSDPDialect::noSyncAttr, builder.getUnitAttr());
  if (gradAccum > 1)
    loss->setAttr(FSDPDialect::microBatchesAttr, builder.getI64IntegerAttr(gradAccum));
  if (!reference)
    return;
  mark(reference, "reference", "solo");
  if (noSync)
    reference->setAttr(FSDPDialect::noSyncAttr, builder.getUnitAttr());
  reference->setAttr(FSDPDialect::microBatchesAttr,
                     builder.getI64IntegerAttr(gradAccum * mesh.getNumRanks()));
}
