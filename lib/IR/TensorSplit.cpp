//===- TensorSplit.cpp - Parameters of which a rank has a slice -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/IR/TensorSplit.h"

using namespace mlir;
using namespace mlir::fsdp;

int64_t TensorSplit::getSize() const {
  int64_t size = 0;
  for (int64_t block : blocks)
    size += block;
  return size;
}

TensorSplit TensorSplit::divide(int64_t ranks) const {
  TensorSplit part{dim, {}};
  for (int64_t block : blocks)
    part.blocks.push_back(block / ranks);
  return part;
}

DenseI64ArrayAttr TensorSplit::toAttribute(MLIRContext *context) const {
  SmallVector<int64_t> numbers{dim};
  llvm::append_range(numbers, blocks);
  return DenseI64ArrayAttr::get(context, numbers);
}

std::optional<TensorSplit> TensorSplit::parse(Attribute attr) {
  auto numbers = dyn_cast_or_null<DenseI64ArrayAttr>(attr);
  if (!numbers || numbers.size() < 2 || numbers[0] < 0 ||
      llvm::any_of(numbers.asArrayRef().drop_front(), [](int64_t block) { return block < 1; }))
    return std::nullopt;
  return TensorSplit{numbers[0], llvm::to_vector(numbers.asArrayRef().drop_front())};
}

std::optional<TensorSplit> fsdp::getTensorSplit(UnitOp unit, StringRef name) {
  auto splits = unit->getAttrOfType<DictionaryAttr>(tensorSplitAttr);
  return splits ? TensorSplit::parse(splits.get(name)) : std::nullopt;
}

bool fsdp::isPartitioned(MeshOp mesh) { return mesh && mesh.getNumReaders() > 1; }

SmallVector<int64_t> fsdp::getWholeShape(UnitOp unit, ParamAttr param) {
  auto shape = llvm::to_vector(param.getType().getShape());
  if (std::optional<TensorSplit> split = getTensorSplit(unit, param.getName()))
    shape[split->dim] = split->getSize();
  return shape;
}

LogicalResult fsdp::verifyTensorSplits(UnitOp unit) {
  Attribute attr = unit->getAttr(tensorSplitAttr);
  if (!attr)
    return success();
  auto splits = dyn_cast<DictionaryAttr>(attr);
  if (!splits)
    return unit.emitOpError("expected '")
           << tensorSplitAttr << "' to be a dictionary, found " << attr;
  for (NamedAttribute entry : splits) {
    auto params = unit.getParams().getAsRange<ParamAttr>();
    auto param = llvm::find_if(params, [&](ParamAttr p) { return p.getName() == entry.getName(); });
    if (param == params.end())
      return unit.emitOpError("'")
             << tensorSplitAttr << "' expected names of parameters of the unit, found "
             << entry.getName();
    std::optional<TensorSplit> split = TensorSplit::parse(entry.getValue());
    RankedTensorType type = (*param).getType();
    int64_t slice = split && split->dim < type.getRank() ? type.getDimSize(split->dim) : 0;
    if (!split || slice == 0 || split->getSize() % slice != 0 ||
        llvm::any_of(split->blocks,
                     [&](int64_t block) { return block % (split->getSize() / slice) != 0; }))
      return unit.emitOpError("'")
             << tensorSplitAttr << "' of " << entry.getName()
             << " expected a dimension of its slice " << type
             << " and sizes of blocks that as many ranks divide, found " << entry.getValue();
  }
  return success();
}
