//===- Values.cpp - Initial values that came with a model -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   fsdp.values = {head = dense_resource<w>,        | w, 64-byte aligned | zeros | ln |
//                  ln = dense<1.0>,             =>    ^ head, wte           ^ one element
//                  wte = dense_resource<w.1>}
//
// Values keep the element type of the file; the runtime converts. Equal bytes (w and
// w.1 above) are stored once. Nothing is copied here: the pieces are written from
// where the parser put them, so that a model's weights are in memory once. O(bytes).
//
//===----------------------------------------------------------------------===//

#include "Values.h"
#include "fsdprt/artifact_header.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr char zeros[FSDPRT_ARTIFACT_VALUE_ALIGNMENT] = {};

/// The bytes of all elements, or of the one that all are; empty when they are not there.
static ArrayRef<char> getBytes(ElementsAttr value) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    return blob ? blob->getData() : ArrayRef<char>();
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  return dense ? dense.getRawData() : ArrayRef<char>();
}

/// Equal shape, elements that are there and can be converted.
static LogicalResult check(ParamAttr param, Attribute attr, Location loc) {
  auto value = dyn_cast<ElementsAttr>(attr);
  auto type = value ? dyn_cast<RankedTensorType>(value.getShapedType()) : RankedTensorType();
  if (!type || type.getShape() != param.getType().getShape() ||
      !(type.getElementType().isF64() || type.getElementType().isF32() || type.getElementType().isF16() ||
        type.getElementType().isBF16()))
    return emitError(loc) << "parameter '" << param.getName() << "': expected values in f64, f32, f16 or bf16 for "
                          << param.getType() << ", found " << (value ? Attribute(TypeAttr::get(value.getType())) : attr);
  uint64_t each = type.getElementTypeBitWidth() / 8, all = type.getNumElements() * each;
  uint64_t found = getBytes(value).size();
  if (found != all && !(isa<DenseElementsAttr>(value) && value.isSplat() && found == each))
    return emitError(loc) << "parameter '" << param.getName() << "': expected " << all << " bytes of values for " << type
                          << ", found " << found;
  return success();
}

namespace {
/// Puts pieces one behind the other, each distinct content once.
class Section {
public:
  explicit Section(Values &values) : values(values) {}

  uint64_t add(ArrayRef<char> bytes) {
    SmallVector<std::pair<ArrayRef<char>, uint64_t>, 1> &alike = known[llvm::xxh3_64bits(llvm::toStringRef(bytes))];
    for (auto &[other, offset] : alike)
      if (other == bytes)
        return offset;
    if (uint64_t gap = llvm::offsetToAlignment(values.size, llvm::Align(FSDPRT_ARTIFACT_VALUE_ALIGNMENT)))
      append(ArrayRef(zeros).take_front(gap));
    alike.push_back({bytes, values.size});
    append(bytes);
    return alike.back().second;
  }

private:
  void append(ArrayRef<char> bytes) {
    values.pieces.push_back(bytes);
    values.size += bytes.size();
  }

  Values &values;
  llvm::DenseMap<uint64_t, SmallVector<std::pair<ArrayRef<char>, uint64_t>, 1>> known;
};
} // namespace

FailureOr<Values> fsdp::collectValues(ModuleOp module) {
  Values values;
  auto given = module->getAttrOfType<DictionaryAttr>(FSDPDialect::valuesAttr);
  Section section(values);
  for (auto unit : module.getOps<UnitOp>())
    for (auto param : unit.getParams().getAsRange<ParamAttr>()) {
      Attribute attr = given ? given.get(param.getName()) : Attribute();
      if (!attr || param.getType().getNumElements() == 0)
        continue;
      if (failed(check(param, attr, unit.getLoc())))
        return failure();
      auto value = cast<ElementsAttr>(attr);
      ArrayRef<char> bytes = getBytes(value);
      values.places[param.getName()] = {value.getElementType(), section.add(bytes), bytes.size()};
    }
  return values;
}
