//===- ExplainParameters.cpp - Explain parameters ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Counts the parameters of all units, and the constants that Import did not make parameters.
//
//===----------------------------------------------------------------------===//

#include "ExplainUnits.h"
#include "fsdp/IR/ModelConstants.h"
#include "fsdp/IR/TensorSplit.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct ParameterCounts {
  int64_t trained = 0, trainedElements = 0, frozen = 0, frozenElements = 0;
};
} // namespace

static ParameterCounts countParameters(ModuleOp module) {
  ParameterCounts counts;
  for (auto unit : module.getOps<UnitOp>())
    for (auto param : unit.getParams().getAsRange<ParamAttr>()) {
      bool isTrained = param.getTrainable();
      ++(isTrained ? counts.trained : counts.frozen);
      (isTrained ? counts.trainedElements : counts.frozenElements) +=
          ShapedType::getNumElements(getWholeShape(unit, param));
    }
  return counts;
}

static ArrayRef<Attribute> getConstants(ModuleOp module) {
  auto constants = module->getAttrOfType<ArrayAttr>(constantsAttr);
  return constants ? constants.getValue() : ArrayRef<Attribute>();
}

void fsdp::writeParameters(ModuleOp module, llvm::json::OStream &json) {
  ParameterCounts counts = countParameters(module);
  json.attributeObject("parameters", [&] {
    json.attribute("trained", counts.trained);
    json.attribute("trained_elements", counts.trainedElements);
    json.attribute("frozen", counts.frozen);
    json.attribute("frozen_elements", counts.frozenElements);
    json.attributeArray("constants", [&] {
      for (Attribute name : getConstants(module))
        if (auto text = dyn_cast<StringAttr>(name))
          json.value(text.getValue());
    });
  });
}

void fsdp::writeParameters(ModuleOp module, raw_ostream &os) {
  ParameterCounts counts = countParameters(module);
  os << "Parameters: " << counts.trained << " trained (" << counts.trainedElements << " elements), "
     << counts.frozen << " frozen (" << counts.frozenElements << "), "
     << getConstants(module).size() << " constant\n\n";
}
