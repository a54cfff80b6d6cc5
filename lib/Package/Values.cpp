//===- Values.cpp - Initial values of a model -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   fsdp.values = {head = dense_resource<w>,        | w, 64-byte aligned | zeros | ln |
//                  ln = dense<1.0>,             =>    ^ head, wte           ^ one element
//                  wte = dense_resource<w.1>}
//
// Values are stored with the element type that they have in the model. The runtime converts floats
// to the type of the parameter. A boolean takes one byte. If two parameters have equal bytes (w and
// w.1 above), the bytes are stored once. Values are written from the memory of the parser, so that
// the weights of a model are in memory only once. The time is O(bytes).
//
//===----------------------------------------------------------------------===//

#include "Values.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdprt/artifact_header.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr char zeros[FSDPRT_ARTIFACT_VALUE_ALIGNMENT] = {};

/// Returns the bytes of all elements, or the bytes of one element if `value` is a splat. Returns an
/// empty range if the values are missing.
static ArrayRef<char> getBytes(ElementsAttr value) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    return blob ? blob->getData() : ArrayRef<char>();
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  return dense ? dense.getRawData() : ArrayRef<char>();
}

/// Returns true if values of type `element` can initialise a parameter of type `param`.
static bool isTaken(Type element, Type param) {
  if (isa<IntegerType>(param))
    return element == param;
  return element.isF64() || element.isF32() || element.isF16() || element.isBF16();
}

/// If `value` stores booleans as bits, returns a byte per boolean. Otherwise returns no bytes.
static std::vector<char> unpackBits(ElementsAttr value) {
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense || !dense.getElementType().isInteger(1))
    return {};
  if (dense.isSplat())
    return {static_cast<char>(dense.getSplatValue<bool>())};
  auto bits = dense.getValues<bool>();
  return std::vector<char>(bits.begin(), bits.end());
}

/// Checks that a parameter's values are present, have its shape, and are convertible to its type.
static LogicalResult check(UnitOp unit, ParamAttr param, Attribute attr) {
  Location loc = unit.getLoc();
  RankedTensorType expected = param.getType().clone(getWholeShape(unit, param));
  auto value = dyn_cast<ElementsAttr>(attr);
  auto type = value ? dyn_cast<RankedTensorType>(value.getShapedType()) : RankedTensorType();
  Type element = param.getType().getElementType();
  if (!type || type.getShape() != expected.getShape() || !isTaken(type.getElementType(), element)) {
    InFlightDiagnostic diag = emitError(loc)
                              << "parameter '" << param.getName() << "': expected values in ";
    if (isa<IntegerType>(element))
      diag << element;
    else
      diag << "f64, f32, f16 or bf16";
    return diag << " for " << expected << ", found "
                << (value ? Attribute(TypeAttr::get(value.getType())) : attr);
  }
  if (isa<DenseElementsAttr>(value) && type.getElementType().isInteger(1))
    return success(); // the parser has checked the size
  ArrayRef<char> bytes = getBytes(value);
  uint64_t all = getStorageBytes(type), each = all / type.getNumElements(), found = bytes.size();
  if (type.getElementType().isInteger(1) &&
      llvm::any_of(bytes, [](char c) { return c != 0 && c != 1; }))
    return emitError(loc) << "parameter '" << param.getName()
                          << "': expected a byte of 0 or 1 for each boolean";
  if (found != all && !(isa<DenseElementsAttr>(value) && value.isSplat() && found == each))
    return emitError(loc) << "parameter '" << param.getName() << "': expected " << all
                          << " bytes of values for " << type << ", found " << found;
  return success();
}

namespace {
/// Appends byte ranges to the section, and stores equal ranges only once.
class Section {
public:
  explicit Section(Values &values) : values(values) {}

  uint64_t add(ArrayRef<char> bytes) {
    SmallVector<std::pair<ArrayRef<char>, uint64_t>, 1> &alike =
        known[llvm::xxh3_64bits(llvm::toStringRef(bytes))];
    for (auto &[other, offset] : alike)
      if (other == bytes)
        return offset;
    if (uint64_t gap =
            llvm::offsetToAlignment(values.size, llvm::Align(FSDPRT_ARTIFACT_VALUE_ALIGNMENT)))
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
      if (failed(check(unit, param, attr)))
        return failure();
      auto value = cast<ElementsAttr>(attr);
      ArrayRef<char> bytes = getBytes(value);
      if (std::vector<char> unpacked = unpackBits(value); !unpacked.empty())
        bytes = values.unpacked.emplace_back(std::move(unpacked));
      values.places[param.getName()] = {value.getElementType(), section.add(bytes), bytes.size()};
    }
  return values;
}
