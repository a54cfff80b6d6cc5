//===- Programs.cpp - The functions of a training step ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Find the functions with `fsdp.program`, and the mesh of the step.
//  2. Find the units among the arguments of each function.
//  3. Check the results against the units.
//
//===----------------------------------------------------------------------===//

#include "Programs.h"
#include "fsdp/IR/DiagnosticText.h"
#include "fsdp/IR/StepBlock.h"
#include "fsdp/IR/TensorSplit.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

static std::optional<ProgramKind> parseKind(StringRef name) {
  return llvm::StringSwitch<std::optional<ProgramKind>>(name)
      .Case("step", ProgramKind::Step)
      .Case("eval", ProgramKind::Eval)
      .Case("reference", ProgramKind::Reference)
      .Default(std::nullopt);
}

static bool isTrainable(UnitOp unit) {
  return llvm::any_of(unit.getParams().getAsRange<ParamAttr>(),
                      [](ParamAttr param) { return param.getTrainable(); });
}

int64_t Program::countBuffers(UnitOp unit) const {
  return unit->hasAttr(tensorSplitAttr) ? numSlices : 1;
}

/// Returns `shape` with a leading dimension of the parts of a result.
static SmallVector<int64_t> addParts(const Program &program, SmallVector<int64_t> shape) {
  if (program.numParts > 1)
    shape.insert(shape.begin(), program.numParts);
  return shape;
}

/// Finds the units among the arguments of the program.
static LogicalResult readUnits(Program &program, SymbolTable &symbols, MeshOp mesh) {
  func::FuncOp func = program.func;
  for (BlockArgument arg : func.getArguments()) {
    auto name = func.getArgAttrOfType<FlatSymbolRefAttr>(arg.getArgNumber(), FSDPDialect::unitAttr);
    if (!name)
      continue;
    auto unit = symbols.lookup<UnitOp>(name.getValue());
    if (!unit)
      return mlir::emitError(arg.getLoc())
             << "expected " << name << ", the '" << FSDPDialect::unitAttr << "' of argument "
             << arg.getArgNumber() << ", to name an 'fsdp.unit' op, found "
             << describeSymbol(name, symbols.lookup(name.getValue()));
    int64_t size = program.isSharded() ? unit.getPieceSize(unit.getParameterAxes(), mesh)
                                       : program.countBuffers(unit) * unit.getFlatSize();
    auto type = RankedTensorType::get({size}, unit.getDtype());
    if (arg.getType() != type)
      return mlir::emitError(arg.getLoc())
             << "expected the argument for unit '" << unit.getSymName() << "' to have type " << type
             << ", found " << arg.getType();
    program.units.push_back({unit, arg.getArgNumber(), isTrainable(unit)});
  }
  if (program.getTrainable().empty())
    return mlir::emitError(func.getLoc(),
                           "expected at least one trainable parameter, found only frozen ones");
  return success();
}

/// Checks that the results are `leading`, then one gradient per trainable unit (none in eval).
static LogicalResult checkResults(const Program &program, MeshOp mesh, StringRef leading,
                                  GradientForm form) {
  func::FuncOp func = program.func;
  auto units =
      program.kind == ProgramKind::Eval ? SmallVector<UnitArgument>() : program.getTrainable();
  unsigned others = program.numLookups + program.rowOwners.size();
  if (func.getNumResults() != units.size() + others + 1)
    return mlir::emitError(func.getLoc(), "expected ")
           << units.size() + 1 << " results, " << leading
           << " and one gradient per trainable unit, found " << func.getNumResults();
  for (auto [unit, type] :
       llvm::zip_equal(units, func.getResultTypes().drop_front().drop_back(others))) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    UnitOp op = unit.unit;
    int64_t size = !program.isSharded()            ? program.countBuffers(op) * op.getFlatSize()
                   : form == GradientForm::Adjoint ? op.getPieceSize(op.getParameterAxes(), mesh)
                                                   : op.getPieceSize(op.getOptimizerAxes(), mesh);
    if (!tensor || tensor.getShape() != ArrayRef<int64_t>(addParts(program, {size})) ||
        !isa<FloatType>(tensor.getElementType()))
      return mlir::emitError(func.getLoc(), "expected the gradient of unit '")
             << unit.unit.getSymName() << "' to be a 1-D float tensor of " << size
             << " elements, found " << type;
  }
  return success();
}

/// Finds the gradients of looked-up rows among the results of a program. Later, each of these
/// gradients is added to the gradient of a table. Verifies that the two gradients have equal types.
static LogicalResult readRows(Program &program) {
  func::FuncOp func = program.func;
  SmallVector<UnitArgument> units = program.getTrainable();
  for (unsigned i = units.size() + 1 + program.numLookups; i < func.getNumResults(); ++i) {
    auto name = func.getResultAttrOfType<FlatSymbolRefAttr>(i, FSDPDialect::rowsAttr);
    auto owner = llvm::find_if(units, [&](UnitArgument unit) {
      return name && unit.unit.getSymName() == name.getValue();
    });
    if (!name)
      return success(); // checkResults() reports a wrong number of results
    unsigned result = owner - units.begin() + 1;
    if (owner == units.end() || func.getResultTypes()[result] != func.getResultTypes()[i])
      return mlir::emitError(func.getLoc(), "expected result ")
             << i << " to be of the type of the gradient of " << name << ", found "
             << func.getResultTypes()[i];
    program.rowOwners.push_back(result);
  }
  return success();
}

/// Counts the results that are checks of lookups. They are the i64 scalars that follow the loss and
/// the gradients.
static LogicalResult readLookups(Program &program) {
  func::FuncOp func = program.func;
  unsigned first = 1 + (program.kind == ProgramKind::Eval ? 0 : program.getTrainable().size());
  auto scalar =
      RankedTensorType::get(addParts(program, {}), IntegerType::get(func.getContext(), 64));
  for (unsigned i = first; i < func.getNumResults() && func.getResultAttr(i, lookupAttr); ++i) {
    if (func.getResultTypes()[i] != scalar ||
        !isa<DictionaryAttr>(func.getResultAttr(i, lookupAttr)))
      return mlir::emitError(func.getLoc(), "expected result ")
             << i << " with '" << lookupAttr << "' to be " << scalar
             << " and to have a dictionary, found " << func.getResultTypes()[i];
    ++program.numLookups;
  }
  return success();
}

static FailureOr<Program> readProgram(func::FuncOp func, StringAttr name, SymbolTable &symbols,
                                      MeshOp mesh, StringRef leading, GradientForm form) {
  std::optional<ProgramKind> kind = parseKind(name);
  if (!kind)
    return mlir::emitError(func.getLoc(), "expected '")
           << FSDPDialect::programAttr << "' to be \"step\", \"eval\" or \"reference\", found "
           << name;
  if (!func.getBody().hasOneBlock())
    return mlir::emitError(func.getLoc(), "expected @")
           << func.getSymName() << " to have a body of one block, found "
           << describeBody(func.getBody());
  Program program{func, *kind, {}, {}};
  if (*kind == ProgramKind::Reference) {
    program.numSlices = mesh.getAxisSize(tensorAxis);
    program.numParts = form == GradientForm::Adjoint ? mesh.getAxisSize(contextAxis) : 1;
  }
  if (failed(readUnits(program, symbols, mesh)) || failed(readLookups(program)) ||
      (*kind != ProgramKind::Eval && failed(readRows(program))) ||
      failed(checkResults(program, mesh, leading, form)))
    return failure();
  return program;
}

/// Reads the number of terms at each level of the mean. Checks, for each program, the attribute
/// that contains the number of micro-batches.
static LogicalResult readLevels(Programs &programs) {
  auto countOf = [](func::FuncOp func) -> int64_t {
    auto attr = func->getAttrOfType<IntegerAttr>(FSDPDialect::microBatchesAttr);
    return attr ? attr.getInt() : 1;
  };
  BatchLevels &levels = programs.levels;
  levels.replicate = programs.mesh.getAxisSize("replicate");
  levels.shard = programs.mesh.getAxisSize("shard");
  levels.context = programs.mesh.getAxisSize(contextAxis);
  for (const Program &program : programs.list)
    if (program.kind == ProgramKind::Step) {
      levels.accumulate = countOf(program.func);
      levels.sumFirst = func::FuncOp(program.func)->hasAttr(FSDPDialect::noSyncAttr);
    }
  if (levels.accumulate < 1)
    return mlir::emitError(programs.mesh.getLoc(), "expected '")
           << FSDPDialect::microBatchesAttr << "' of the step to be at least 1, found "
           << levels.accumulate;
  for (const Program &program : programs.list) {
    int64_t expected = levels.accumulate;
    if (!program.isSharded())
      expected *= levels.replicate * levels.shard / levels.context;
    int64_t found = countOf(program.func);
    if (found != expected && program.kind != ProgramKind::Eval)
      return mlir::emitError(func::FuncOp(program.func).getLoc(), "expected '")
             << FSDPDialect::microBatchesAttr << "' to be " << expected
             << ", the number of micro-batches of the step times the number of ranks that read "
                "different samples, found "
             << found;
  }
  return success();
}

int64_t fsdp::countSamples(func::FuncOp func) {
  int64_t samples = 0;
  for (BlockArgument arg : func.getArguments()) {
    auto name = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(), FSDPDialect::batchAttr);
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!name || !type || type.getRank() == 0)
      continue;
    if (name.getValue() == "tokens")
      return type.getDimSize(0);
    if (samples == 0)
      samples = type.getDimSize(0);
  }
  return std::max<int64_t>(samples, 1);
}

Value fsdp::createAllReduce(OpBuilder &builder, Location loc, Value value, MeshOp mesh,
                            StringRef axis, ReductionKind kind) {
  return AllReduceOp::create(
      builder, loc, value.getType(), value, FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
      builder.getStrArrayAttr({axis}), ReductionKindAttr::get(builder.getContext(), kind));
}

/// Returns the mesh of the step. Fails with an error unless there is exactly one step.
static FailureOr<MeshOp> readMesh(ModuleOp module, SymbolTable &symbols) {
  MeshOp found;
  func::FuncOp first;
  for (auto func : module.getOps<func::FuncOp>()) {
    auto name = func->getAttrOfType<StringAttr>(FSDPDialect::programAttr);
    if (!name || parseKind(name) != ProgramKind::Step)
      continue;
    if (first) {
      InFlightDiagnostic diag =
          mlir::emitError(
              func.getLoc(),
              "expected only one function with the program 'step', found a second one, @")
          << func.getSymName();
      diag.attachNote(first.getLoc()) << "the first one is @" << first.getSymName();
      return diag;
    }
    first = func;
    auto mesh = func->getAttrOfType<FlatSymbolRefAttr>(FSDPDialect::meshAttr);
    found = mesh ? symbols.lookup<MeshOp>(mesh.getValue()) : MeshOp();
    if (!found)
      return mlir::emitError(func.getLoc(), "expected attribute '")
             << FSDPDialect::meshAttr << "' to name an 'fsdp.mesh' op, found "
             << (mesh ? describeSymbol(mesh, symbols.lookup(mesh.getValue()))
                      : std::string("no attribute"));
  }
  if (!found)
    return mlir::emitError(module.getLoc(), "expected a function of program 'step'; run Shard "
                                            "and Differentiate first");
  return found;
}

FailureOr<Programs> fsdp::readPrograms(ModuleOp module, StringRef leading, GradientForm form) {
  Programs programs;
  SymbolTable symbols(module);
  FailureOr<MeshOp> mesh = readMesh(module, symbols);
  if (failed(mesh))
    return failure();
  programs.mesh = *mesh;
  for (auto func : module.getOps<func::FuncOp>()) {
    auto name = func->getAttrOfType<StringAttr>(FSDPDialect::programAttr);
    if (!name)
      continue;
    FailureOr<Program> program = readProgram(func, name, symbols, *mesh, leading, form);
    if (failed(program))
      return failure();
    programs.list.push_back(std::move(*program));
  }
  if (failed(readLevels(programs)))
    return failure();
  return programs;
}
