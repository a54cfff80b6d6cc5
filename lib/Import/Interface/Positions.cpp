//===- Positions.cpp - Positions in the exported file -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Interface/Positions.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fsdp;

ElementsAttr fsdp::constantValue(Operation *op) {
  ElementsAttr value;
  if (op->getNumResults() != 1 || !op->hasTrait<OpTrait::ConstantLike>() ||
      !matchPattern(op, m_Constant(&value)))
    return nullptr;
  return value;
}

bool fsdp::isTable(Operation *op) {
  ElementsAttr value = constantValue(op);
  auto type = value ? dyn_cast<RankedTensorType>(op->getResult(0).getType()) : nullptr;
  if (!type || type.getRank() == 0 || isa<IndexType>(type.getElementType()) ||
      op->getParentOfType<func::FuncOp>() != op->getParentOp())
    return false;
  return isa<DenseResourceElementsAttr>(value) || !value.isSplat();
}

StringRef fsdp::resourceKey(Operation *op) {
  auto value = dyn_cast_or_null<DenseResourceElementsAttr>(constantValue(op));
  return value ? value.getRawHandle().getKey() : StringRef();
}

bool fsdp::isElided(Operation *op) {
  auto value = dyn_cast_or_null<DenseResourceElementsAttr>(constantValue(op));
  return value && !value.getRawHandle().getBlob();
}

static func::FuncOp owner(BlockArgument arg) {
  return cast<func::FuncOp>(arg.getOwner()->getParentOp());
}

void fsdp::setPosition(BlockArgument arg, int64_t position) {
  owner(arg).setArgAttr(arg.getArgNumber(), positionAttr,
                        Builder(arg.getContext()).getI64IntegerAttr(position));
}

void fsdp::setPosition(Operation *constant, int64_t position) {
  constant->setDiscardableAttr(positionAttr,
                               Builder(constant->getContext()).getI64IntegerAttr(position));
}

int64_t fsdp::getPosition(BlockArgument arg) {
  auto position = owner(arg).getArgAttrOfType<IntegerAttr>(arg.getArgNumber(), positionAttr);
  return position ? position.getInt() : arg.getArgNumber();
}

std::optional<int64_t> fsdp::getPosition(Operation *constant) {
  auto position = constant->getAttrOfType<IntegerAttr>(positionAttr);
  return position ? std::optional<int64_t>(position.getInt()) : std::nullopt;
}

/// Converts `params['h'][0]["w"]` and `params.h[0].w` to `h.0.w`. Keeps text without brackets.
static std::string dottedPath(StringRef text) {
  size_t bracket = text.find('[');
  if (bracket == StringRef::npos)
    return text.str();
  StringRef head = text.take_front(bracket);
  std::string path = head.contains('.') ? head.split('.').second.str() : "";
  for (StringRef rest = text.drop_front(bracket); !rest.empty();) {
    StringRef piece;
    if (rest.consume_front("[")) {
      std::tie(piece, rest) = rest.split(']');
      piece = piece.trim("'\"");
    } else {
      rest.consume_front(".");
      size_t end = rest.find_first_of(".[");
      piece = rest.take_front(end);
      rest = rest.drop_front(piece.size());
    }
    if (!piece.empty())
      path += (path.empty() ? "" : ".") + piece.str();
  }
  return path;
}

std::string fsdp::nameFromLocation(Location loc) {
  std::string name;
  loc->walk([&](Location inner) {
    auto named = dyn_cast<NameLoc>(inner);
    if (!named)
      return WalkResult::advance();
    name = dottedPath(named.getName().getValue());
    return WalkResult::interrupt();
  });
  return name;
}

func::FuncOp fsdp::getEntry(Operation *module) {
  for (auto func : cast<ModuleOp>(module).getOps<func::FuncOp>())
    if (func.isPublic() && !func.isExternal())
      return func;
  return nullptr;
}
