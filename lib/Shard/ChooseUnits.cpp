//===- ChooseUnits.cpp - Apply the wrap policy ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Assigns each parameter to a unit by --auto-wrap-policy:
//
//   transformer   one unit per layer, found by numbers in names or by pattern (WrapPolicy.cpp)
//   size          one unit per module of at least N elements (GroupBySize.cpp)
//   manual        the units that a file lists (ManualWrap.cpp)
//   none          the root alone
//
// An attribute `fsdp.unit = "name"` of a parameter takes precedence over the policy.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Options/PassConfiguration.h"
#include "fsdp/Shard/NamePattern.h"
#include "fsdp/Shard/WrapPolicy.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::fsdp;

LogicalResult mlir::fsdp::checkWrapOptions(const WrapOptions &options, Location loc) {
  auto needs = [&](StringRef option, StringRef policy) {
    return emitError(loc) << option << " needs auto-wrap-policy " << policy << ", found '"
                          << options.policy << "'";
  };
  if (failed(readOption<WrapPolicy>(loc, "auto-wrap-policy", options.policy)))
    return failure();
  if (options.policy != "transformer" && !options.layerPattern.empty())
    return needs("transformer-layer", "'transformer'");
  if (options.policy != "manual" && !options.wrapFile.empty())
    return needs("wrap", "'manual'");
  if (options.minNumParams < 0)
    return emitError(loc) << "min-num-params: expected at least 0, found " << options.minNumParams;
  if (options.policy != "transformer" && options.policy != "size" && options.minNumParams > 0)
    return needs("min-num-params", "'size' or 'transformer'");
  return success();
}

/// Returns the number of bytes that are gathered at the same time. These are the bytes of the root
/// and of the two largest other units: one of the two is in use while the other is being gathered.
static int64_t countGathered(ArrayRef<NamedParam> params, ArrayRef<StringRef> units) {
  llvm::MapVector<StringRef, int64_t> bytes;
  int64_t root = 0;
  for (auto [param, unit] : llvm::zip_equal(params, units))
    (unit.empty() ? root : bytes[unit]) += param.bytes;
  auto sizes = llvm::map_to_vector(bytes, [](auto &entry) { return entry.second; });
  llvm::sort(sizes, std::greater<int64_t>());
  for (int64_t size : ArrayRef(sizes).take_front(2))
    root += size;
  return root;
}

/// Warns that the whole model is one unit if one unit per layer would need less memory.
static void warnOfOneUnit(ArrayRef<NamedParam> params, const Twine &policy, Location loc) {
  int64_t whole = countGathered(params, SmallVector<StringRef>(params.size()));
  int64_t layered = countGathered(params, findLayers(params));
  if (layered < whole)
    emitWarning(loc) << "auto-wrap-policy " << policy << ": the whole model is one unit, so "
                     << whole
                     << " bytes of parameters are gathered at once on every rank; a unit per layer "
                        "('transformer') "
                        "would need "
                     << layered;
}

static FailureOr<SmallVector<StringRef>> findTransformerLayers(ArrayRef<NamedParam> params,
                                                               StringRef pattern, Location loc) {
  if (!pattern.empty())
    return matchLayers(params, pattern, [&] { return emitError(loc); });
  SmallVector<StringRef> layers = findLayers(params);
  if (llvm::all_of(layers, [](StringRef l) { return l.empty(); }))
    emitRemark(loc)
        << "no layer found in the names of the parameters ('" << params.front().name
        << "'): the model is one unit, which is gathered as a whole; name the parameters "
           "or give transformer-layer";
  return layers;
}

static FailureOr<SmallVector<StringRef>>
applyPolicy(ArrayRef<NamedParam> params, const WrapOptions &options, bool gathers, Location loc) {
  if (options.policy == "transformer")
    return findTransformerLayers(params, options.layerPattern, loc);
  if (options.policy == "size") {
    int64_t minimum = options.minNumParams ? options.minNumParams : kDefaultMinNumParams;
    SmallVector<StringRef> units = groupBySize(params, minimum);
    if (gathers && llvm::all_of(units, [](StringRef unit) { return unit.empty(); }))
      warnOfOneUnit(params, "'size' with min-num-params " + Twine(minimum), loc);
    return units;
  }
  if (options.policy == "manual" && !options.wrapFile.empty())
    return wrapManually(params, options.wrapFile, loc);
  bool marked = llvm::any_of(params, [](const NamedParam &p) { return p.unit.has_value(); });
  if (options.policy == "manual" && !marked)
    return emitError(loc) << "auto-wrap-policy 'manual' needs a list of units: give "
                             "wrap=FILE.json, or mark parameters "
                             "with {fsdp.unit = \"name\"}";
  if (gathers && options.policy == "none" && !marked)
    warnOfOneUnit(params, "'none'", loc);
  return SmallVector<StringRef>(params.size());
}

FailureOr<SmallVector<StringRef>> mlir::fsdp::chooseUnits(ArrayRef<NamedParam> params,
                                                          const WrapOptions &options, bool gathers,
                                                          Location loc) {
  FailureOr<SmallVector<StringRef>> units = applyPolicy(params, options, gathers, loc);
  if (failed(units))
    return failure();
  for (auto [param, unit] : llvm::zip_equal(params, *units)) {
    if (param.unit)
      unit = *param.unit;
    if (unit == "root")
      unit = {};
  }
  return units;
}
