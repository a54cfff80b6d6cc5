//===- GroupBySize.cpp - Units of a minimum size ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Groups parameters by the algorithm of FSDP's size_based_auto_wrap_policy. The components of a
// parameter's name, except the last one, are modules.
//
//   minimum 100      model 190            root:      model.norm, model.layers.2.*
//                    |- norm 10           units:     model.layers.0, model.layers.1
//                    `- layers 180        `layers` has children that are numbers
//                       |- 0  100         alone: a list, which is never a unit
//                       |- 1  ...
//
//  visit(module):
//  1. Count the elements of all parameters in the module, including its inner modules. If the count
//     is less than the minimum, leave these parameters to the parent of the module.
//  2. Visit the children.
//  3. Consider the parameters of the module itself and the parameters that the children have left
//     to it. If these parameters have together at least the minimum number of elements, and the
//     module is not a list, they become a unit. Otherwise leave them to the parent.
//
// The time is O(total length of the names). Components of a name after the 64th are ignored.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Shard/NamePattern.h"
#include "fsdp/Shard/WrapPolicy.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr unsigned maxDepth = 64;

namespace {
class SizeGrouping {
public:
  SizeGrouping(ArrayRef<NamedParam> params, int64_t minimum)
      : params(params), minimum(minimum), units(params.size()) {}

  /// Visits the module with the parameters `members`. The first `begin` bytes of the names of these
  /// parameters are equal: the name of the module and a separator. Returns the number of elements
  /// of those parameters that became part of a unit.
  int64_t visit(ArrayRef<unsigned> members, size_t begin, unsigned depth);
  SmallVector<StringRef> take() { return std::move(units); }

private:
  ArrayRef<NamedParam> params;
  int64_t minimum;
  SmallVector<StringRef> units;
};
} // namespace

int64_t SizeGrouping::visit(ArrayRef<unsigned> members, size_t begin, unsigned depth) {
  int64_t total = 0, wrapped = 0;
  for (unsigned member : members)
    total += params[member].elements;
  if (total < minimum || depth == maxDepth)
    return 0;
  llvm::MapVector<StringRef, SmallVector<unsigned>> children;
  bool isList = true;
  for (unsigned member : members) {
    StringRef name = params[member].name;
    size_t end = componentEnd(name, begin);
    StringRef component = name.slice(begin, end);
    isList &= end < name.size() && !component.empty() && llvm::all_of(component, llvm::isDigit);
    if (end < name.size())
      children[component].push_back(member);
  }
  for (auto &[component, child] : children)
    wrapped += visit(child, begin + component.size() + 1, depth + 1);
  if (begin == 0 || isList || total - wrapped < minimum)
    return wrapped;
  for (unsigned member : members)
    if (units[member].empty())
      units[member] = params[member].name.take_front(begin - 1);
  return total;
}

SmallVector<StringRef> mlir::fsdp::groupBySize(ArrayRef<NamedParam> params, int64_t minimum) {
  SizeGrouping grouping(params, minimum);
  grouping.visit(llvm::to_vector(llvm::seq<unsigned>(0, params.size())), 0, 0);
  return grouping.take();
}
