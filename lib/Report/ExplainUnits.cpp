//===- ExplainUnits.cpp - Explain units in text or JSON ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   root            4 parameters ...          Components of names nest. A component
//   transformer                               that is no unit is a heading. Units that
//     h                                       differ in their number only share
//       0 .. 11    12 parameters ...          one line.
//
// The time is O(total length of the names).
//
//===----------------------------------------------------------------------===//

#include "ExplainUnits.h"
#include "fsdp/Analysis/Commands.h"
#include "fsdp/IR/Kernels.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::fsdp;

static std::string describeReshard(UnitOp unit, bool gathered, bool again) {
  if (!gathered)
    return "never gathered";
  if (unit.getHoisted())
    return "gathered once per step";
  if (!again)
    return "kept until the backward";
  std::string among =
      unit.getWithin() ? " among " + std::to_string(*unit.getWithin()) + " ranks" : "";
  return "gathered again" + among + " in the backward";
}

SmallVector<UnitReport> fsdp::measureUnits(ModuleOp module) {
  llvm::MapVector<StringAttr, UnitReport> reports;
  for (auto unit : module.getOps<UnitOp>()) {
    UnitReport &report = reports[unit.getSymNameAttr()];
    report.unit = unit;
    for (auto param : unit.getParams().getAsRange<ParamAttr>()) {
      report.elements += param.getType().getNumElements();
      report.trained += param.getTrainable() ? param.getType().getNumElements() : 0;
    }
    int64_t width = getStorageBytes(RankedTensorType::get({1}, unit.getDtype()));
    report.paddingBytes = (unit.getFlatSize() - report.elements) * width;
  }
  ProgramOp step;
  for (auto program : module.getOps<ProgramOp>())
    if (program.getSymName() == "step")
      step = program;
  if (!step)
    return {};
  auto layout = SymbolTable::lookupNearestSymbolFrom<LayoutOp>(step, step.getLayoutAttr());
  for (auto state : layout.getOps<StateSlotOp>())
    if (auto found = reports.find(state.getUnitAttr().getAttr()); found != reports.end())
      (state.getRole() == StateRole::parameter ? found->second.shardBytes
                                               : found->second.optimizerBytes) +=
          getStorageBytes(state.getTensorType());
  step.walk([&](CollectiveOp op) {
    if (op.getKind() != CollectiveKind::all_gather || !op.getUnitAttr() || op.getRows())
      return;
    auto found = reports.find(op.getUnitAttr().getAttr());
    // Count only gathers for a use of the unit, not gathers that write updated parameters to the
    // state.
    if (found == reports.end() ||
        !SymbolTable::lookupNearestSymbolFrom(layout, op.getTarget().getBuffer()))
      return;
    UnitReport &report = found->second;
    ++report.gathers;
    report.gatherType = op.getDtype();
    report.gatheredBytes = std::max<int64_t>(report.gatheredBytes, op.getTarget().getBytes());
    if (report.gathers > 1 && report.unit.getWithin())
      report.keptBytes = report.gatheredBytes / *report.unit.getWithin();
  });
  SmallVector<UnitReport> list;
  for (auto &[name, report] : reports) {
    report.reshard =
        describeReshard(report.unit, !report.unit.getParameterAxes().empty() && report.gathers > 0,
                        report.unit.getReshard() && report.gathers > 1);
    list.push_back(report);
  }
  return list;
}

void fsdp::writeUnits(ArrayRef<UnitReport> units, llvm::json::OStream &json) {
  auto writeAxes = [&](StringRef name, ArrayRef<StringRef> axes) {
    json.attributeArray(name, [&] {
      for (StringRef axis : axes)
        json.value(axis);
    });
  };
  json.attributeArray("units", [&] {
    for (const UnitReport &report : units)
      json.object([&] {
        UnitOp unit = report.unit;
        json.attribute("name", unit.getSymName());
        json.attribute("parameters", static_cast<int64_t>(unit.getNumParams()));
        json.attribute("elements", report.elements);
        json.attribute("trained_elements", report.trained);
        json.attribute("dtype", printType(unit.getDtype()));
        json.attribute("gather_dtype",
                       printType(report.gatherType ? report.gatherType : unit.getDtype()));
        json.attribute("shard_bytes", report.shardBytes);
        json.attribute("optimizer_bytes", report.optimizerBytes);
        json.attribute("gathered_bytes", report.gatheredBytes);
        json.attribute("kept_bytes", report.keptBytes);
        json.attribute("padding_bytes", report.paddingBytes);
        json.attribute("reshard", report.reshard);
        json.attributeObject("placement", [&] {
          writeAxes("parameters", unit.getParameterAxes());
          writeAxes("gradients", unit.getGradientAxes());
          writeAxes("optimizer", unit.getOptimizerAxes());
        });
      });
  });
}

namespace {
/// A node of the tree of units. Each component of a unit's name is a node.
struct Node {
  llvm::MapVector<StringRef, std::unique_ptr<Node>> children;
  const UnitReport *unit = nullptr;

  /// Returns true if the two nodes are units, have no children, and differ only in their names.
  bool isLike(const Node &other) const {
    return unit && other.unit && children.empty() && other.children.empty() &&
           unit->isLike(*other.unit);
  }
};
} // namespace

bool UnitReport::isLike(const UnitReport &other) const {
  auto a = unit, b = other.unit;
  return a.getNumParams() == b.getNumParams() && elements == other.elements &&
         trained == other.trained && a.getDtype() == b.getDtype() &&
         shardBytes == other.shardBytes && paddingBytes == other.paddingBytes &&
         gatheredBytes == other.gatheredBytes && reshard == other.reshard;
}

static void writeUnit(const UnitReport &report, StringRef name, unsigned times, raw_ostream &os) {
  UnitOp unit = report.unit;
  os << llvm::left_justify(name, 28)
     << llvm::format(" %3u parameters %14lld x ", unit.getNumParams(),
                     static_cast<long long>(report.elements))
     << llvm::left_justify(printType(unit.getDtype()), 5)
     << llvm::right_justify(formatSize(report.shardBytes), 11) << " owned"
     << llvm::right_justify(formatSize(report.gatheredBytes), 11) << " gathered"
     << llvm::right_justify(formatSize(report.paddingBytes), 11) << " padding  " << report.reshard;
  if (report.keptBytes)
    os << ", " << formatSize(report.keptBytes) << " kept until then";
  if (report.trained == 0 && report.elements > 0)
    os << ", frozen";
  if (times > 1)
    os << ", each of " << times;
  os << "\n";
}

static void writeNode(const Node &node, unsigned depth, raw_ostream &os) {
  auto end = node.children.end();
  for (auto child = node.children.begin(); child != end;) {
    auto next = std::next(child);
    while (next != end && next->second->isLike(*child->second))
      ++next;
    unsigned times = std::distance(child, next);
    std::string name(2 * depth + 2, ' ');
    name += child->first;
    if (times > 1)
      name += " .. " + std::prev(next)->first.str();
    const Node *inner = child->second.get();
    // If a node is not a unit and has a single child that is not a unit either, print the two nodes
    // on one line.
    while (times == 1 && !inner->unit && inner->children.size() == 1 &&
           !inner->children.front().second->unit) {
      name += "." + inner->children.front().first.str();
      inner = inner->children.front().second.get();
    }
    if (inner->unit)
      writeUnit(*inner->unit, name, times, os);
    else
      os << name << "\n";
    if (times == 1)
      writeNode(*inner, depth + 1, os);
    child = next;
  }
}

void fsdp::writeUnits(ArrayRef<UnitReport> units, raw_ostream &os) {
  os << "\nUnits\n";
  Node root;
  for (const UnitReport &report : units) {
    Node *node = &root;
    SmallVector<StringRef> components;
    StringRef name = UnitOp(report.unit).getSymName();
    // Limit the depth of the tree, because deeper levels would not fit on a line.
    name.split(components, '.', /*MaxSplit=*/16);
    for (StringRef component : components) {
      std::unique_ptr<Node> &child = node->children[component];
      if (!child)
        child = std::make_unique<Node>();
      node = child.get();
    }
    node->unit = &report;
  }
  writeNode(root, 0, os);
}
