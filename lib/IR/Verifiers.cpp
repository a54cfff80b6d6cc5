//===- Verifiers.cpp - Verifiers of the tensor-level ops --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// (C1), (S1), ... refer to the constraints that the descriptions of the ops list.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/DiagnosticText.h"
#include "fsdp/IR/StopGradient.h"
#include "fsdp/IR/TensorSplit.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the unit that an op names. Emits an error (C1) if no unit has this name.
static FailureOr<UnitOp> lookUpUnit(Operation *op, FlatSymbolRefAttr name,
                                    SymbolTableCollection &tables) {
  auto unit = tables.lookupNearestSymbolFrom<UnitOp>(op, name);
  if (!unit)
    return emitWrongSymbol(op, name, "an 'fsdp.unit'", tables);
  return unit;
}

/// Verifies that all `types` have the same element type, and have the shapes of the parameters with
/// the numbers `indices`. Error messages call the values of these types by the noun `what`, which
/// is "result", "operand" or "token value".
static LogicalResult checkParams(Operation *op, UnitOp unit, TypeRange types,
                                 ArrayRef<int64_t> indices, StringRef what) {
  Type element;
  for (auto [position, found, index] : llvm::enumerate(types, indices)) {
    ParamAttr param = unit.getParam(index);
    auto type = dyn_cast<RankedTensorType>(found);
    if (!type || type.getShape() != param.getType().getShape()) {
      InFlightDiagnostic diag = op->emitOpError("expected ")
                                << what << " " << position << " to have the shape of parameter '"
                                << param.getName() << "' (" << param.getType() << "), found "
                                << found;
      diag.attachNote(unit.getLoc()) << "the unit is declared here";
      return diag;
    }
    if (element && type.getElementType() != element)
      return op->emitOpError("expected ") << what << "s with the same element type, found "
                                          << element << " and " << type.getElementType();
    element = type.getElementType();
  }
  return success();
}

/// Verifies that a shard is 1-D and that its size divides the flat size of the unit.
static LogicalResult checkShard(Operation *op, UnitOp unit, Type shard) {
  auto type = dyn_cast<RankedTensorType>(shard);
  if (!type || type.getRank() != 1 || !isa<FloatType, IntegerType>(type.getElementType()))
    return op->emitOpError("expected a 1-D shard of floats or integers, found ") << shard;
  int64_t size = type.getDimSize(0);
  if (size == unit.getFlatSize() || (size > 0 && unit.getFlatSize() % size == 0))
    return success();
  InFlightDiagnostic diag = op->emitOpError("expected a shard whose size divides the ")
                            << unit.getFlatSize() << " elements of the flat buffer of @"
                            << unit.getSymName() << ", found " << size << " elements";
  diag.attachNote(unit.getLoc()) << "the unit is declared here";
  return diag;
}

/// Verifies that `shard` is a shard of a unit, and that `params` are the types of all parameters of
/// this unit. Error messages call the values of these types by the noun `what`.
static LogicalResult checkWhole(Operation *op, FlatSymbolRefAttr name, Type shard, TypeRange params,
                                StringRef what, SymbolTableCollection &tables) {
  FailureOr<UnitOp> unit = lookUpUnit(op, name, tables); // (C1)
  if (failed(unit))
    return failure();
  if (params.size() != unit->getNumParams()) // (C2)
    return op->emitOpError("expected ")
           << describeCount(unit->getNumParams(), what, (what + "s").str())
           << ", one per parameter "
           << "of " << name << ", found " << params.size();
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, params.size()));
  if (failed(checkParams(op, *unit, params, all, what))) // (C2)
    return failure();
  return checkShard(op, *unit, shard); // (C3)
}

static LogicalResult checkReduceScatter(Operation *op, FlatSymbolRefAttr name, TypeRange grads,
                                        ArrayRef<int64_t> params, Type shard,
                                        SymbolTableCollection &tables) {
  FailureOr<UnitOp> unit = lookUpUnit(op, name, tables); // (C1)
  if (failed(unit))
    return failure();
  if (params.size() != grads.size()) // (C2)
    return op->emitOpError("expected ") << describeCount(params.size(), "operand", "operands")
                                        << ", one per entry of 'params', found " << grads.size();
  int64_t last = -1;
  for (int64_t index : params) {
    if (index < 0 || index >= unit->getNumParams()) // (C2)
      return op->emitOpError("'params' contains index ")
             << index << "; expected indices of parameters, which are less than "
             << unit->getNumParams() << " for " << name;
    if (index <= last) // (C2)
      return op->emitOpError("expected the indices in 'params' to increase, found [")
             << params << "]";
    last = index;
  }
  if (failed(checkParams(op, *unit, grads, params, "operand"))) // (C3)
    return failure();
  return checkShard(op, *unit, shard); // (C4)
}

LogicalResult UnshardOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkWhole(*this, getUnitAttr(), getShard().getType(), getResultTypes(), "result", tables);
}

LogicalResult ShardOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkWhole(*this, getUnitAttr(), getShard().getType(), getOperandTypes(), "operand",
                    tables);
}

LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkReduceScatter(*this, getUnitAttr(), getGrads().getTypes(), getParams(),
                            getShard().getType(), tables);
}

/// Verifies the types of a lookup in the table of a unit: `rows` must match `ids`, and `shard` must
/// be a shard of the unit or its whole flat buffer.
static LogicalResult checkTable(Operation *op, FlatSymbolRefAttr name, Type rows, Type ids,
                                Type shard, SymbolTableCollection &tables) {
  FailureOr<UnitOp> unit = lookUpUnit(op, name, tables);
  if (failed(unit))
    return failure();
  if (!unit->getRows()) { // (C1)
    InFlightDiagnostic diag = op->emitOpError("expected ")
                              << name << " to be a unit with 'rows', found a unit without it";
    diag.attachNote(unit->getLoc()) << "the unit is declared here";
    return diag;
  }
  SmallVector<int64_t> shape(cast<RankedTensorType>(ids).getShape());
  shape.push_back(unit->getParam(0).getType().getDimSize(1));
  if (cast<RankedTensorType>(rows).getShape() != ArrayRef(shape)) // (C2)
    return op->emitOpError("expected rows of type ")
           << cast<RankedTensorType>(rows).clone(shape) << ", found " << rows;
  int64_t size = cast<RankedTensorType>(shard).getDimSize(0);
  if (size == int64_t(unit->getShardSize()) || size == unit->getFlatSize()) // (C3)
    return success();
  return op->emitOpError("expected the shard tensor to have ")
         << unit->getShardSize() << " elements (one shard of " << name << ") or "
         << unit->getFlatSize() << " (the flat buffer of " << name << "), found " << size;
}

LogicalResult UnshardRowsOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkTable(*this, getUnitAttr(), getRows().getType(), getIds().getType(),
                    getShard().getType(), tables);
}

LogicalResult ReduceRowsOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkTable(*this, getUnitAttr(), getRows().getType(), getIds().getType(),
                    getShard().getType(), tables);
}

/// Verifies (C1) and (C2) of a collective. Returns the number of ranks in a group of the
/// collective.
static FailureOr<int64_t> checkGroup(Operation *op, FlatSymbolRefAttr name, ArrayAttr axes,
                                     SymbolTableCollection &tables) {
  auto mesh = tables.lookupNearestSymbolFrom<MeshOp>(op, name);
  if (!mesh) // (C1)
    return emitWrongSymbol(op, name, "an 'fsdp.mesh'", tables);
  llvm::StringMap<StringAttr> seen;
  int64_t ranks = 1;
  for (auto axis : axes.getAsRange<StringAttr>()) {
    if (!mesh.hasAxis(axis)) { // (C2)
      InFlightDiagnostic diag =
          op->emitOpError("expected axes of ")
          << name << ", or groups \"AXIS:N\" whose N divides the size of the axis, found " << axis;
      diag.attachNote(mesh.getLoc()) << "the mesh is declared here";
      return diag;
    }
    StringRef base = axis.getValue() == contextAxis ? "shard" : axis.getValue().split(':').first;
    auto [other, isNew] = seen.try_emplace(base, axis);
    if (!isNew) // (C2)
      return op->emitOpError("expected each axis once, whole or as groups, found ")
             << axis << " after " << other->second;
    ranks *= mesh.getAxisSize(axis.getValue());
  }
  return ranks;
}

static LogicalResult checkGathered(Operation *op, int64_t ranks, Type from, Type to) {
  auto in = cast<RankedTensorType>(from), out = dyn_cast<RankedTensorType>(to);
  if (out && out.getRank() == 1 && out.getDimSize(0) == in.getDimSize(0) * ranks &&
      in.getElementType() == out.getElementType()) // (C3)
    return success();
  return op->emitOpError("expected a result of type ")
         << in.clone({in.getDimSize(0) * ranks}) << ", the inputs of " << ranks
         << " ranks one after another, found " << to;
}

static LogicalResult checkRoot(Operation *op, int64_t ranks, uint64_t root) {
  if (root < static_cast<uint64_t>(ranks)) // (C3)
    return success();
  return op->emitOpError("expected 'root' to be the index of a rank in its group, from 0 to ")
         << ranks - 1 << ", found " << static_cast<int64_t>(root);
}

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkGroup(*this, getMeshAttr(), getAxes(), tables);
}

LogicalResult ReduceCotangentOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkGroup(*this, getMeshAttr(), getAxes(), tables);
}

LogicalResult ShareCotangentOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkGroup(*this, getMeshAttr(), getAxes(), tables);
}

LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<int64_t> ranks = checkGroup(*this, getMeshAttr(), getAxes(), tables);
  return failed(ranks) ? failure()
                       : checkGathered(*this, *ranks, getInput().getType(), getResult().getType());
}

/// Verifies that `piece` is one of `ranks` equal pieces of `whole` (C3).
static LogicalResult checkPieces(Operation *op, Value whole, Value piece,
                                 FailureOr<int64_t> ranks) {
  if (failed(ranks))
    return failure();
  auto from = cast<RankedTensorType>(whole.getType()), to = cast<RankedTensorType>(piece.getType());
  if (from.getDimSize(0) != to.getDimSize(0) * *ranks ||
      from.getElementType() != to.getElementType()) {
    int64_t size = from.getDimSize(0);
    if (size % *ranks != 0)
      return op->emitOpError("expected an input that ")
             << *ranks << " ranks can divide equally, found " << from;
    return op->emitOpError("expected a result of type ")
           << from.clone({size / *ranks}) << ", the input divided among " << *ranks
           << " ranks, found " << to;
  }
  return success();
}

LogicalResult FlatReduceScatterOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkPieces(*this, getInput(), getResult(),
                     checkGroup(*this, getMeshAttr(), getAxes(), tables)); // (C3)
}

LogicalResult OwnPieceOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkPieces(*this, getInput(), getResult(),
                     checkGroup(*this, getMeshAttr(), getAxes(), tables)); // (C3)
}

LogicalResult BroadcastOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<int64_t> ranks = checkGroup(*this, getMeshAttr(), getAxes(), tables);
  return failed(ranks) ? failure() : checkRoot(*this, *ranks, getRoot());
}

LogicalResult ShiftOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkGroup(*this, getMeshAttr(), getAxes(), tables);
}

/// Verifies (S1) and (S2) of an asynchronous collective. Returns the types of the values that its
/// token represents. If `count` is set, verifies that the token represents `count` values.
template <typename Op>
static FailureOr<ArrayRef<Type>> checkStart(Op op, std::optional<size_t> count = 1) {
  if (static_cast<int64_t>(op.getChannel()) < 1 || static_cast<int64_t>(op.getId()) < 0) // (S1)
    return op.emitOpError(
               "expected a channel of at least 1 and an id of at least 0, found channel ")
           << static_cast<int64_t>(op.getChannel()) << " and id "
           << static_cast<int64_t>(op.getId());
  Value token = op.getToken();
  auto await = token.hasOneUse() ? dyn_cast<AwaitOp>(*token.user_begin()) : AwaitOp();
  if (!await || await->getBlock() != op->getBlock()) { // (S2)
    InFlightDiagnostic diag = op.emitOpError(
        "expected one use of the token, by an 'fsdp.await' in the same block; found ");
    if (await)
      diag << "an 'fsdp.await' in another block";
    else
      diag << describeCount(llvm::range_size(token.getUses()), "use", "uses");
    for (Operation *user : token.getUsers())
      diag.attachNote(user->getLoc()) << "used here";
    return diag;
  }
  ArrayRef<Type> types = cast<TokenType>(token.getType()).getTypes();
  if (count && types.size() != *count)
    return op.emitOpError("expected the type of the token to contain ")
           << describeCount(*count, "type", "types") << ", found " << types.size() << " in "
           << token.getType();
  return types;
}

LogicalResult AwaitOp::verify() {
  ArrayRef<Type> types = cast<TokenType>(getToken().getType()).getTypes();
  if (getResultTypes() != types) // (C1)
    return emitOpError("expected results of types ") << types << ", found " << getResultTypes();
  Operation *start = getToken().getDefiningOp();
  if (!isa_and_nonnull<UnshardStartOp, ReduceScatterStartOp, AllReduceStartOp, AllGatherStartOp,
                       BroadcastStartOp, ShiftStartOp>(start) ||
      start->getBlock() != (*this)->getBlock()) // (C2)
    return emitOpError("expected the token of a collective that was started in the same block, "
                       "found ")
           << (!start                                     ? std::string("a block argument")
               : start->getBlock() != (*this)->getBlock() ? "a collective of another block"
                                                          : describeOp(start));
  return success();
}

LogicalResult UnshardStartOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<ArrayRef<Type>> types = checkStart(*this, std::nullopt);
  return failed(types) ? failure()
                       : checkWhole(*this, getUnitAttr(), getShard().getType(), *types,
                                    "token value", tables);
}

LogicalResult ReduceScatterStartOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<ArrayRef<Type>> types = checkStart(*this);
  if (failed(types))
    return failure();
  return checkReduceScatter(*this, getUnitAttr(), getGrads().getTypes(), getParams(),
                            types->front(), tables);
}

/// The token of `op` represents a value of the type `result`. Verifies that the input of `op` has
/// this type.
template <typename Op>
static LogicalResult checkSameType(Op op, Type result) {
  if (result == op.getInput().getType())
    return success();
  return op.emitOpError("expected a token whose value has the type of the input, ")
         << op.getInput().getType() << ", found " << result;
}

template <typename Op>
static LogicalResult checkSameStart(Op op, SymbolTableCollection &tables) {
  FailureOr<ArrayRef<Type>> types = checkStart(op);
  if (failed(types) || failed(checkGroup(op, op.getMeshAttr(), op.getAxes(), tables)))
    return failure();
  return checkSameType(op, types->front());
}

LogicalResult AllReduceStartOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkSameStart(*this, tables);
}

LogicalResult ShiftStartOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkSameStart(*this, tables);
}

LogicalResult AllGatherStartOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<ArrayRef<Type>> types = checkStart(*this);
  FailureOr<int64_t> ranks = checkGroup(*this, getMeshAttr(), getAxes(), tables);
  if (failed(types) || failed(ranks))
    return failure();
  return checkGathered(*this, *ranks, getInput().getType(), types->front());
}

LogicalResult BroadcastStartOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<int64_t> ranks = checkGroup(*this, getMeshAttr(), getAxes(), tables);
  bool isWrong = failed(ranks) || failed(checkRoot(*this, *ranks, getRoot()));
  return isWrong ? failure() : checkSameStart(*this, tables);
}

/// Verifies that `rows` has the element type of `table`, and the shape of `ids` followed by the
/// number of columns of `table`.
static LogicalResult checkRows(Operation *op, Value table, Value ids, Value rows) {
  auto tableType = cast<RankedTensorType>(table.getType()),
       rowsType = cast<RankedTensorType>(rows.getType());
  SmallVector<int64_t> shape(cast<RankedTensorType>(ids.getType()).getShape());
  shape.push_back(tableType.getDimSize(1));
  auto expected = RankedTensorType::get(shape, tableType.getElementType());
  if (rowsType != expected)
    return op->emitOpError("expected rows of type ") << expected << ", found " << rowsType;
  return success();
}

LogicalResult GatherRowsOp::verify() {
  return checkRows(*this, getTable(), getIds(), getResult()); // (C2), (C3)
}

LogicalResult ScatterAddRowsOp::verify() {
  if (getInit() && getInit().getType() != getResult().getType()) // (C3)
    return emitOpError("expected init of type ")
           << getResult().getType() << ", found " << getInit().getType();
  return checkRows(*this, getResult(), getIds(), getUpdates()); // (C2)
}

/// Verifies (C1) of the cross-entropy ops.
static LogicalResult checkRowCounts(Operation *op, Value logits, Value targets, Value lse) {
  int64_t rows = cast<RankedTensorType>(logits.getType()).getDimSize(0);
  for (auto [v, what] : {std::pair(targets, "targets"), std::pair(lse, "normalizers (lse)")})
    if (int64_t found = cast<RankedTensorType>(v.getType()).getDimSize(0); found != rows)
      return op->emitOpError("expected ")
             << rows << " " << what << ", one per row of the logits, found " << found;
  return success();
}

LogicalResult CrossEntropyOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (!getMeshAttr() && !getAxesAttr() && !getCoordinate())
    return success();
  if (!getMeshAttr() || !getAxesAttr() || !getCoordinate()) // (C4)
    return emitOpError("expected 'mesh', 'axes' and the coordinate of the rank, or none of them");
  return checkGroup(*this, getMeshAttr(), getAxesAttr(), tables);
}

LogicalResult CrossEntropyOp::verify() {
  return checkRowCounts(*this, getLogits(), getTargets(), getLse());
}

LogicalResult CrossEntropyGradOp::verify() {
  if (cast<RankedTensorType>(getResult().getType()).getShape() !=
      cast<RankedTensorType>(getLogits().getType()).getShape()) // (C4)
    return emitOpError("expected the shape of the logits, ")
           << getLogits().getType() << ", found " << getResult().getType();
  return checkRowCounts(*this, getLogits(), getTargets(), getLse());
}

/// Returns the number of rows and the number of columns of the matrices in `v`. If `swap` is set,
/// returns these two numbers in the opposite order.
static std::pair<int64_t, int64_t> matrixOf(Value v, bool swap) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(v.getType()).getShape().take_back(2);
  return swap ? std::pair(shape[1], shape[0]) : std::pair(shape[0], shape[1]);
}

LogicalResult GemmOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType()), b = cast<RankedTensorType>(getB().getType()),
       c = cast<RankedTensorType>(getC().getType());
  if (!a.hasStaticShape() || !b.hasStaticShape() || !c.hasStaticShape()) // (C1)
    return emitOpError("expected A, B and C of static shape, found ")
           << a << ", " << b << " and " << c;
  if (a.getRank() < 2 || a.getRank() != b.getRank() || a.getRank() != c.getRank()) // (C1)
    return emitOpError("expected A, B and C to have the same number of dimensions, at least 2; "
                       "found ")
           << a.getRank() << " (A), " << b.getRank() << " (B) and " << c.getRank() << " (C)";
  if (a.getShape().drop_back(2) != c.getShape().drop_back(2) ||
      b.getShape().drop_back(2) != c.getShape().drop_back(2)) // (C2)
    return emitOpError("expected A, B and C to be equal in all dimensions but the last two, found ")
           << a << ", " << b << " and " << c;
  auto [m, k] = matrixOf(getA(), getTransposeA());
  auto [k2, n] = matrixOf(getB(), getTransposeB());
  if (k != k2 || matrixOf(getC(), false) != std::pair(m, n)) // (C3)
    return emitOpError("expected A, B and C to be matrices of M x K, K x N and M x N")
           << (getTransposeA() || getTransposeB() ? " after 'transpose'" : "") << ", found " << m
           << " x " << k << ", " << k2 << " x " << n << " and " << c.getDimSize(c.getRank() - 2)
           << " x " << c.getDimSize(c.getRank() - 1);
  Type element = a.getElementType();
  Type sum = element.getIntOrFloatBitWidth() < 32 ? Type(Float32Type::get(getContext())) : element;
  if (b.getElementType() != element) // (C4)
    return emitOpError("expected A and B to have the same element type, found ")
           << element << " (A) and " << b.getElementType() << " (B)";
  if (c.getElementType() != element && c.getElementType() != sum) { // (C4)
    InFlightDiagnostic diag = emitOpError("expected C to have the element type ") << element;
    if (sum != element)
      diag << " (that of A and B) or " << sum;
    return diag << ", found " << c.getElementType();
  }
  if (getResult().getType() != c) // (C5)
    return emitOpError("expected a result of type ") << c << ", found " << getResult().getType();
  if (getBias() && getBias().getType() != RankedTensorType::get({n}, c.getElementType())) // (C6)
    return emitOpError("expected a bias of ")
           << n << " elements of " << c.getElementType() << ", found " << getBias().getType();
  for (auto [name, factor] : {std::pair("alpha", getAlphaAttr()), std::pair("beta", getBetaAttr())})
    if (!factor.getValue().isFinite()) // (C7)
      return emitOpError("expected a finite ") << name << ", found " << describeNumber(factor);
  return success();
}

LogicalResult DispatchOp::verify() {
  Block &body = getBody().front();
  if (body.getArgumentTypes() != getOperandTypes()) // (C1)
    return emitOpError("expected block arguments of types (")
           << getOperandTypes() << "), found (" << body.getArgumentTypes() << ")";
  Operation *end = body.getTerminator();
  if (!isa<YieldOp>(end) || end->getOperandTypes() != getResultTypes()) // (C2)
    return emitOpError(
               "expected the body to end with an 'fsdp.yield' whose operands have the types (")
           << getResultTypes() << "), found '" << end->getName() << "' with operands of types ("
           << end->getOperandTypes() << ")";
  if (getInplace().size() != getNumResults()) // (C3)
    return emitOpError("'inplace' expected ") << describeCount(getNumResults(), "entry", "entries")
                                              << ", one per result, found " << getInplace().size();
  llvm::SmallDenseSet<int64_t> taken;
  for (auto [result, operand] : llvm::zip_equal(getResults(), getInplace())) {
    if (operand == -1)
      continue;
    if (operand < 0 || operand >= getNumOperands()) // (C3)
      return emitOpError("'inplace' contains ")
             << operand << "; expected -1 or indices of operands, which are less than "
             << getNumOperands();
    if (!taken.insert(operand).second) // (C3)
      return emitOpError("'inplace' contains operand ")
             << operand << " twice; expected each operand at most once";
    if (getOperand(operand).getType() != result.getType()) // (C3)
      return emitOpError("result of type ")
             << result.getType() << " cannot be written over operand " << operand << " of type "
             << getOperand(operand).getType();
  }
  for (Type type : llvm::concat<const Type>(getOperandTypes(), getResultTypes()))
    if (!cast<RankedTensorType>(type).hasStaticShape()) // (C4)
      return emitOpError("expected static shapes, found ") << type;
  return success();
}
