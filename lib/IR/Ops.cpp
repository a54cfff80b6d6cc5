//===- Ops.cpp - Assembly formats and methods of the ops --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/IR/FSDP.h"
#include "fsdp/IR/TensorSplit.h"

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// Slices: @buffer[offset, bytes] step N piece N of ["shard"]
//===----------------------------------------------------------------------===//

static ParseResult parseSlice(OpAsmParser &parser, SliceAttr &slice) {
  FlatSymbolRefAttr buffer;
  int64_t offset, bytes, stride = 0, piece = 0;
  ArrayAttr axes;
  if (parser.parseAttribute(buffer) || parser.parseLSquare() || parser.parseInteger(offset) ||
      parser.parseComma() || parser.parseInteger(bytes) || parser.parseRSquare())
    return failure();
  if (succeeded(parser.parseOptionalKeyword("step")) && parser.parseInteger(stride))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("piece")) &&
      (parser.parseInteger(piece) || parser.parseKeyword("of") || parser.parseAttribute(axes)))
    return failure();
  slice = SliceAttr::get(parser.getContext(), buffer, offset, bytes, stride, piece, axes);
  return success();
}

static void printSlice(OpAsmPrinter &printer, Operation *, SliceAttr slice) {
  printer << slice.getBuffer() << '[' << slice.getOffset() << ", " << slice.getBytes() << ']';
  if (slice.getStride())
    printer << " step " << slice.getStride();
  if (slice.getPiece())
    printer << " piece " << slice.getPiece() << " of " << slice.getAxes();
}

static ParseResult parseSlices(OpAsmParser &parser, ArrayAttr &slices) {
  SmallVector<Attribute> list;
  auto parseOne = [&]() -> ParseResult {
    SliceAttr slice;
    if (parseSlice(parser, slice))
      return failure();
    list.push_back(slice);
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne))
    return failure();
  slices = parser.getBuilder().getArrayAttr(list);
  return success();
}

static void printSlices(OpAsmPrinter &printer, Operation *op, ArrayAttr slices) {
  printer << '(';
  llvm::interleaveComma(slices.getAsRange<SliceAttr>(), printer,
                        [&](SliceAttr slice) { printSlice(printer, op, slice); });
  printer << ')';
}

//===----------------------------------------------------------------------===//
// Regions of attention: name(%s: f32, %b: index, ..) { .. } The regions are isolated from above, so
// values in them may have the same names as values outside.
//===----------------------------------------------------------------------===//

/// Parses named regions. The regions may occur in any order, and each region may occur at most
/// once.
static ParseResult parseRegions(OpAsmParser &parser,
                                ArrayRef<std::pair<StringRef, Region *>> regions) {
  SmallVector<StringRef> names = llvm::to_vector(llvm::make_first_range(regions));
  for (;;) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    if (failed(parser.parseOptionalKeyword(&name, names)))
      return success();
    Region &region =
        *llvm::find_if(regions, [&](auto known) { return known.first == name; })->second;
    if (!region.empty())
      return parser.emitError(loc)
             << "has a second region '" << name << "'; expected at most one; merge the two";
    SmallVector<OpAsmParser::Argument> arguments;
    if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren, /*allowType=*/true) ||
        parser.parseRegion(region, arguments, /*enableNameShadowing=*/true))
      return failure();
  }
}

static void printFunction(OpAsmPrinter &printer, StringRef name, Region &region) {
  if (region.empty())
    return;
  printer << ' ' << name << '(';
  llvm::interleaveComma(region.getArguments(), printer,
                        [&](BlockArgument a) { printer.printRegionArgument(a); });
  printer << ") ";
  printer.printRegion(region, /*printEntryBlockArgs=*/false);
}

static ParseResult parseFunctions(OpAsmParser &parser, Region &scoreMod, Region &maskMod,
                                  Region &weightMod) {
  return parseRegions(
      parser, {{"score_mod", &scoreMod}, {"mask_mod", &maskMod}, {"weight_mod", &weightMod}});
}

static void printFunctions(OpAsmPrinter &printer, Operation *, Region &scoreMod, Region &maskMod,
                           Region &weightMod) {
  printFunction(printer, "score_mod", scoreMod);
  printFunction(printer, "mask_mod", maskMod);
  printFunction(printer, "weight_mod", weightMod);
}

static ParseResult parseGradFunctions(OpAsmParser &parser, Region &scoreMod, Region &maskMod,
                                      Region &weightMod, Region &scoreGrad) {
  return parseRegions(parser, {{"score_mod", &scoreMod},
                               {"mask_mod", &maskMod},
                               {"weight_mod", &weightMod},
                               {"score_grad", &scoreGrad}});
}

static void printGradFunctions(OpAsmPrinter &printer, Operation *op, Region &scoreMod,
                               Region &maskMod, Region &weightMod, Region &scoreGrad) {
  printFunctions(printer, op, scoreMod, maskMod, weightMod);
  printFunction(printer, "score_grad", scoreGrad);
}

#define GET_OP_CLASSES
#include "fsdp/IR/FSDPOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Await: %token : type
//===----------------------------------------------------------------------===//

ParseResult AwaitOp::parse(OpAsmParser &parser, OperationState &state) {
  OpAsmParser::UnresolvedOperand token;
  TokenType type;
  if (parser.parseOperand(token) || parser.parseOptionalAttrDict(state.attributes) ||
      parser.parseColonType(type) || parser.resolveOperand(token, type, state.operands))
    return failure();
  state.addTypes(type.getTypes());
  return success();
}

void AwaitOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getToken();
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getToken().getType();
}

/// Splits "shard:2" into "shard" and 2. The number is 0 for a whole axis, and -1 for malformed
/// text.
static std::pair<StringRef, int64_t> splitAxis(StringRef name) {
  auto [axis, count] = name.split(':');
  int64_t ranks = 0;
  if (axis.size() != name.size() && (count.getAsInteger(10, ranks) || ranks < 1))
    ranks = -1;
  return {axis, ranks};
}

static AxisAttr findAxis(MeshOp mesh, StringRef name) {
  for (auto axis : mesh.getAxes().getAsRange<AxisAttr>())
    if (axis.getName() == name)
      return axis;
  return {};
}

bool MeshOp::hasAxis(StringRef name) {
  if (name == contextAxis)
    return getContextSize().has_value();
  auto [base, ranks] = splitAxis(name);
  AxisAttr axis = findAxis(*this, base);
  return axis && (ranks == 0 || (ranks > 0 && axis.getSize() % ranks == 0));
}

int64_t MeshOp::getAxisSize(StringRef name) {
  if (!hasAxis(name))
    return 1;
  if (name == contextAxis)
    return *getContextSize();
  auto [base, ranks] = splitAxis(name);
  return ranks ? ranks : findAxis(*this, base).getSize();
}

std::string MeshOp::getNeighbours(StringRef axis, int64_t ranks) {
  return ranks == getAxisSize(axis) ? axis.str() : (axis + ":" + Twine(ranks)).str();
}

int64_t MeshOp::getNumReaders() { return getAxisSize(contextAxis) * getAxisSize(tensorAxis); }

int64_t MeshOp::getNumRanks() {
  int64_t ranks = 1;
  for (auto axis : getAxes().getAsRange<AxisAttr>())
    ranks *= axis.getSize();
  return ranks;
}

static SmallVector<StringRef> getNames(ArrayAttr axes) {
  return llvm::to_vector(axes.getAsValueRange<StringAttr>());
}

SmallVector<StringRef> UnitOp::getParameterAxes() {
  return getPlacement() ? getNames(getPlacement()->getParameters())
                        : SmallVector<StringRef>{"shard"};
}

SmallVector<StringRef> UnitOp::getGradientAxes() {
  return getPlacement() ? getNames(getPlacement()->getGradients())
                        : SmallVector<StringRef>{"shard"};
}

SmallVector<StringRef> UnitOp::getOptimizerAxes() {
  return getPlacement() ? getNames(getPlacement()->getOptimizer())
                        : SmallVector<StringRef>{"shard"};
}

int64_t UnitOp::getPieceSize(ArrayRef<StringRef> axes, MeshOp mesh) {
  int64_t pieces = 1;
  for (StringRef axis : axes)
    pieces *= mesh.getAxisSize(axis);
  return getFlatSize() / pieces;
}
