//===- WrapPolicy.cpp - Layers from the names of parameters -----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An exported model contains no modules. This file finds its layers in the names of parameters:
//
//   transformer.h.3.attn.c_attn.weight      layer `transformer.h.3`
//   encoder/h_3/attn/kernel                 layer `encoder/h_3`
//   wte.weight, param.12, cst_48            no layer
//
//  1. A layer is the prefix of a name up to and including the first component that is a number. The
//     last component of a name does not count (as in `param.12`).
//  2. In a model that is wrapped in a list, step 1 assigns all parameters to one layer. In this
//     case, repeat step 1 with the next number in each name.
//  3. If step 1 finds no layer, use components that end in a number (`h_3`, `fc2`) instead. The
//     name of a layer without the number at its end is the stem of the layer. A layer of step 3
//     counts only if at least two layers have its stem, and all layers with this stem have
//     matrices. (For example, `ln_1` and `ln_2` have no matrices.)
//
// The time is O(total length of the names). The experts of a layer are not separate layers, but
// belong to the layer.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Shard/WrapPolicy.h"
#include "fsdp/Shard/NamePattern.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::fsdp;

static bool isNumber(StringRef component) {
  return !component.empty() && llvm::all_of(component, llvm::isDigit);
}

static bool endsInNumber(StringRef component) {
  return !component.empty() && llvm::isDigit(component.back());
}

/// Beginning at byte `from` of `name`, finds the first component that `accept` accepts. Returns the
/// prefix of `name` that ends with this component. Returns an empty string if `accept` accepts no
/// component before the last one.
static StringRef prefixUpTo(StringRef name, size_t from, function_ref<bool(StringRef)> accept) {
  for (size_t begin = from; begin < name.size();) {
    size_t end = componentEnd(name, begin);
    if (end == name.size())
      return {};
    if (accept(name.slice(begin, end)))
      return name.take_front(end);
    begin = end + 1;
  }
  return {};
}

/// Finds layers by steps 1 and 2.
static SmallVector<StringRef> findNumbered(ArrayRef<NamedParam> params) {
  SmallVector<StringRef> layers;
  for (size_t from = 0;;) {
    auto next = llvm::map_to_vector(
        params, [&](const NamedParam &param) { return prefixUpTo(param.name, from, isNumber); });
    bool anything = llvm::any_of(next, [](StringRef l) { return !l.empty(); });
    if (!anything)
      return layers; // the layers that the previous iteration found
    layers = next;
    if (!llvm::all_equal(layers))
      return layers;
    from = layers.front().size() + 1;
  }
}

/// Finds layers by step 3.
static SmallVector<StringRef> findSuffixed(ArrayRef<NamedParam> params) {
  auto layers = llvm::map_to_vector(
      params, [&](const NamedParam &param) { return prefixUpTo(param.name, 0, endsInNumber); });
  // Collect the layers of each stem and, separately, those layers of each stem that have a matrix.
  llvm::StringMap<llvm::StringSet<>> members, withMatrix;
  auto stemOf = [](StringRef layer) { return layer.rtrim("0123456789"); };
  for (auto [param, layer] : llvm::zip_equal(params, layers)) {
    members[stemOf(layer)].insert(layer);
    if (param.rank >= 2)
      withMatrix[stemOf(layer)].insert(layer);
  }
  for (StringRef &layer : layers) {
    size_t count = members[stemOf(layer)].size();
    if (count < 2 || withMatrix[stemOf(layer)].size() != count)
      layer = {};
  }
  return layers;
}

SmallVector<StringRef> mlir::fsdp::findLayers(ArrayRef<NamedParam> params) {
  if (params.empty())
    return {};
  SmallVector<StringRef> layers = findNumbered(params);
  return layers.empty() ? findSuffixed(params) : layers;
}

FailureOr<SmallVector<StringRef>>
mlir::fsdp::matchLayers(ArrayRef<NamedParam> params, StringRef patterns,
                        function_ref<InFlightDiagnostic()> emitError) {
  SmallVector<StringRef> layers(params.size()), texts;
  auto names = llvm::map_to_vector(params, [](const NamedParam &param) { return param.name; });
  patterns.split(texts, ',');
  for (StringRef text : texts) {
    auto pattern = PrefixPattern::parse(text, "transformer-layer pattern", emitError);
    if (failed(pattern))
      return failure();
    bool matched = false;
    for (auto [name, layer] : llvm::zip_equal(names, layers)) {
      StringRef prefix = pattern->match(name);
      matched |= !prefix.empty();
      if (layer.empty())
        layer = prefix;
    }
    if (!matched) {
      emitError() << "transformer-layer pattern '" << text << "' matches no parameter"
                  << describeNames(names);
      return failure();
    }
  }
  return layers;
}
