//===- SaveMapping.cpp - States of an artifact in a save --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. If units, states and mesh of the save and the artifact are equal, each state is one range.
//  2. Otherwise the index of the save is checked. All parameters must have different names, and
//     each parameter must lie in the flat buffer of its unit, with a valid split. No two states may
//     have the same unit and role. The list of files must contain every file that a state refers
//     to.
//  3. The save and the artifact must have the same parameters, with the same names and shapes. The
//     dtype of a parameter may differ if both dtypes are float types.
//  4. For each state of each parameter, one part is added. A state whose role is parameter or
//     master is loaded from the first of these states that the save has: the state with the same
//     role and dtype, the master, or the parameter. A moment is loaded from the saved state that
//     has the same role. The save and the artifact must have the same optimizer states.
//
// If the save does not fit the artifact, a single Error reports all differences. If several
// parameters have the same problem with a state, the problem is reported once.
//
//===----------------------------------------------------------------------===//

#include "train/SaveMapping.h"
#include "core/DType.h"
#include "core/Error.h"
#include <algorithm>
#include <optional>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr size_t mostProblems = 10;

/// Returns a shape as text such as "24x72", or "a scalar".
static std::string shapeText(const std::vector<uint64_t> &shape) {
  std::string text;
  for (uint64_t size : shape)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "a scalar" : text;
}

/// Returns the number of elements of a shape, or nullopt if the number does not fit in 64 bits.
static std::optional<uint64_t> elementsOf(const std::vector<uint64_t> &shape) {
  uint64_t elements = 1;
  for (uint64_t size : shape)
    if (__builtin_mul_overflow(elements, size, &elements))
      return std::nullopt;
  return elements;
}

static bool isFloatName(const std::string &dtype) {
  std::optional<DType> type = dtypeNamed(dtype);
  return type && isFloat(*type);
}

/// Returns true if the dtype `to` cannot represent all values of the dtype `from`, so that some
/// values must be rounded.
static bool isRounded(const std::string &from, const std::string &to) {
  if (from == "F64" || to == from)
    return to != from;
  return from == "F32" ? to != "F64" : to != "F32" && to != "F64";
}

namespace {
using Key = std::pair<uint64_t, std::string>; // unit and role

/// A parameter of a layout, with the index of the unit that contains it.
struct Place {
  uint64_t unit;
  const SaveIndex::Param *param;
  SlicedShape shape;
};

/// Parameters and states of a layout. `params` maps the name of a parameter to its place, and
/// `states` maps the unit and the role of a state to its index.
struct Layout {
  std::map<std::string, Place> params;
  std::map<Key, uint64_t> states;
};
} // namespace

/// Returns the product of two sizes. Throws Error if the product does not fit in 64 bits.
static uint64_t product(uint64_t a, uint64_t b, const std::string &file) {
  uint64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result))
    badInput("%s: expected sizes whose product fits 64 bits, found %llu and %llu", file.c_str(),
             (ull)a, (ull)b);
  return result;
}

/// Returns the place of a parameter. Throws Error if its split is invalid, or if a slice of it does
/// not lie in the `sliceSize` elements of a slice of its unit.
static Place placeOf(const SaveIndex &index, uint64_t unit, const SaveIndex::Param &param,
                     uint64_t sliceSize, const std::string &file) {
  std::optional<uint64_t> elements = elementsOf(param.shape);
  std::string name = printable(param.name), problem;
  if (elements && !param.blocks.empty())
    problem =
        SlicedShape::problemOf(param.shape, param.splitDim, param.blocks, index.units[unit].slices);
  if (!problem.empty())
    badInput("%s: parameter '%s': %s", file.c_str(), name.c_str(), problem.c_str());
  if (elements) {
    SlicedShape shape(param.shape, param.splitDim, param.blocks, index.units[unit].slices);
    if (shape.elements() <= sliceSize && param.offset <= sliceSize - shape.elements())
      return {unit, &param, shape};
  }
  badInput("%s: parameter '%s' is not in the %llu elements of its unit", file.c_str(), name.c_str(),
           (ull)sliceSize);
}

/// Lists the parameters and states of an index. Throws Error if the index contradicts itself.
static Layout listLayout(const SaveIndex &index, const std::string &file) {
  Layout layout;
  // For each unit: number of elements in the smallest flat buffer of its states.
  std::vector<uint64_t> sizes(index.units.size(), UINT64_MAX);
  for (uint64_t i = 0; i < index.states.size(); ++i) {
    const SaveIndex::State &state = index.states[i];
    uint64_t slices = state.unit < index.units.size() ? index.units[state.unit].slices : 0;
    bool known = slices && state.files.size() % slices == 0 && dtypeNamed(state.dtype) &&
                 std::all_of(state.files.begin(), state.files.end(),
                             [&](uint64_t number) { return number < index.files.size(); });
    if (!known || !layout.states.emplace(Key(state.unit, state.role), i).second)
      badInput("%s: state '%s': expected a unit and files of the index, a known dtype, and no "
               "other state of that unit and role",
               file.c_str(), printable(state.tensor).c_str());
    sizes[state.unit] =
        std::min(sizes[state.unit], product(state.elements, state.files.size(), file) / slices);
  }
  for (uint64_t unit = 0; unit < index.units.size(); ++unit)
    for (const SaveIndex::Param &param : index.units[unit].params)
      if (!layout.params.emplace(param.name, placeOf(index, unit, param, sizes[unit], file)).second)
        badInput("%s: parameter '%s' is listed twice", file.c_str(), printable(param.name).c_str());
  return layout;
}

class SaveMapping::Matching {
public:
  Matching(SaveMapping &to, const SaveIndex &saved, const SaveIndex &wanted, std::string save,
           std::string artifact)
      : to(to), saved(saved), wanted(wanted), save(std::move(save)), artifact(std::move(artifact)),
        there(listLayout(saved, this->save + "/index.json")),
        here(listLayout(wanted, this->artifact)) {}
  void run();

private:
  void compareParams();
  void compareState(const std::string &name, uint64_t unit, const SaveIndex::State &state);
  void compareStates();
  void addParts(uint64_t state);
  std::optional<uint64_t> sourceOf(uint64_t unit, const SaveIndex::State &state) const;
  void noteChange(const SaveIndex::State &from, const SaveIndex::State &state);
  void refuse() const;

  SaveMapping &to;
  const SaveIndex &saved, &wanted;
  std::string save, artifact;
  Layout there, here;
  std::vector<std::string> differing, missing, extra; ///< problems of parameters
  /// For each problem with a state: the names of the parameters that have this problem.
  std::map<std::string, std::vector<std::string>> ofStates;
};

/// Compares the parameters of the save and of the artifact (step 3 of the file header).
void SaveMapping::Matching::compareParams() {
  for (const auto &[name, place] : here.params) {
    auto found = there.params.find(name);
    const SaveIndex::Param &param = *place.param;
    std::string quoted = "'" + printable(name) + "'";
    if (found == there.params.end())
      missing.push_back("missing from the save: " + quoted + " (" + shapeText(param.shape) + ")");
    else if (found->second.param->shape != param.shape)
      differing.push_back(quoted + ": expected shape " + shapeText(param.shape) + ", found " +
                          shapeText(found->second.param->shape));
    else if (isFloatName(param.dtype) ? !isFloatName(found->second.param->dtype)
                                      : param.dtype != found->second.param->dtype)
      differing.push_back(quoted + ": expected " +
                          (isFloatName(param.dtype) ? "a float dtype" : param.dtype) + ", found " +
                          printable(found->second.param->dtype));
  }
  for (const auto &[name, place] : there.params)
    if (here.params.count(name) == 0)
      extra.push_back("not a parameter of " + artifact + ": '" + printable(name) + "' (" +
                      shapeText(place.param->shape) + ")");
}

static bool isOfOptimizer(const std::string &role) {
  return role != "parameter" && role != "master";
}

/// Returns the index of the saved state from which `state` is loaded, for a parameter that is in
/// unit `unit` of the save. Returns nullopt if the save has no such state.
std::optional<uint64_t> SaveMapping::Matching::sourceOf(uint64_t unit,
                                                        const SaveIndex::State &state) const {
  auto find = [&](const std::string &role) {
    auto found = there.states.find(Key(unit, role));
    return found == there.states.end() ? std::nullopt : std::optional(found->second);
  };
  std::optional<uint64_t> same = find(state.role), master = find("master");
  if (isOfOptimizer(state.role) || (same && saved.states[*same].dtype == state.dtype))
    return same;
  return master ? master : find("parameter");
}

/// Adds a problem if the part of `state` that belongs to the parameter `name` cannot be loaded. In
/// the save, this parameter is in unit `unit`.
void SaveMapping::Matching::compareState(const std::string &name, uint64_t unit,
                                         const SaveIndex::State &state) {
  std::optional<uint64_t> from = sourceOf(unit, state);
  if (!from)
    return ofStates["the save has no " + state.role].push_back(name);
  const std::string &dtype = saved.states[*from].dtype;
  if (dtype != state.dtype && !(isFloatName(dtype) && isFloatName(state.dtype)))
    ofStates["expected " + state.role + " of " + state.dtype + ", found " + printable(dtype)]
        .push_back(name);
}

/// Adds a problem for each state that cannot be loaded. Also adds a problem for each optimizer
/// state that the save has but the artifact does not have.
void SaveMapping::Matching::compareStates() {
  for (const auto &[name, place] : here.params) {
    uint64_t unit = there.params.at(name).unit;
    for (const auto &[key, state] : here.states)
      if (key.first == place.unit)
        compareState(name, unit, wanted.states[state]);
    for (const auto &[key, state] : there.states)
      if (key.first == unit && isOfOptimizer(key.second) &&
          here.states.count(Key(place.unit, key.second)) == 0)
        ofStates[artifact + " keeps no " + printable(key.second)].push_back(name);
  }
}

/// If the dtypes of `from` and `state` differ, records this change. Ignores a state whose role is
/// parameter if its unit has a master, because each step computes the parameter from the master.
void SaveMapping::Matching::noteChange(const SaveIndex::State &from,
                                       const SaveIndex::State &state) {
  bool derived = state.role == "parameter" && here.states.count(Key(state.unit, "master"));
  if (from.dtype != state.dtype && !derived)
    to.changes.insert({from.dtype, state.dtype, state.role});
}

/// Adds the parts from which state `number` is loaded (step 4 at the top of this file).
void SaveMapping::Matching::addParts(uint64_t number) {
  const SaveIndex::State &state = wanted.states[number];
  for (const SaveIndex::Param &param : wanted.units[state.unit].params) {
    const Place &place = there.params.at(param.name), &own = here.params.at(param.name);
    if (!place.shape.wholeElements())
      continue;
    uint64_t from = *sourceOf(place.unit, state);
    noteChange(saved.states[from], state);
    auto sliceSize = [](const SaveIndex &index, const SaveIndex::State &of) {
      return of.elements * of.files.size() / index.units[of.unit].slices;
    };
    to.parts[number].push_back(
        {{own.shape, param.offset, sliceSize(wanted, state)},
         {place.shape, place.param->offset, sliceSize(saved, saved.states[from])},
         from,
         param.name});
  }
}

void SaveMapping::Matching::refuse() const {
  std::vector<std::string> all = differing;
  all.insert(all.end(), missing.begin(), missing.end());
  all.insert(all.end(), extra.begin(), extra.end());
  for (const auto &[problem, names] : ofStates)
    all.push_back(problem + ": '" + printable(names[0]) + "'" +
                  (names.size() > 1 ? format(" and %zu more", names.size() - 1) : ""));
  std::string report;
  for (size_t i = 0; i < std::min(all.size(), mostProblems); ++i)
    report += "\n  " + all[i];
  if (all.size() > mostProblems)
    report += format("\n  and %zu more", all.size() - mostProblems);
  badInput("%s: not a save of the model and optimizer in %s:%s\nnote: resume with an artifact of "
           "the model that was saved, from '%s', or load an --export of that run with --init",
           save.c_str(), artifact.c_str(), report.c_str(), printable(saved.modelSource).c_str());
}

void SaveMapping::Matching::run() {
  compareParams();
  if (differing.empty() && missing.empty() && extra.empty())
    compareStates();
  if (!differing.empty() || !missing.empty() || !extra.empty() || !ofStates.empty())
    refuse();
  for (uint64_t state = 0; state < wanted.states.size(); ++state)
    addParts(state);
}

SaveMapping::SaveMapping(const SaveIndex &saved, const SaveIndex &wanted, const std::string &save,
                         const std::string &artifact)
    : sameLayout(saved.hasLayoutOf(wanted)), parts(wanted.states.size()) {
  if (!sameLayout)
    Matching(*this, saved, wanted, save, artifact).run();
  for (uint64_t i = 0; sameLayout && i < parts.size(); ++i) {
    uint64_t elements = wanted.states[i].elements * wanted.states[i].files.size();
    Slices whole{SlicedShape({elements}, 0, {}, 1), 0, elements};
    parts[i] = {{whole, whole, i, ""}};
  }
}

void SaveMapping::forRanges(uint64_t state, uint64_t begin, uint64_t end,
                            const std::function<void(const StateRange &)> &each) const {
  if (begin >= end)
    return;
  StateRange last;
  auto add = [&](const StateRange &range) {
    if (last.end == range.begin && last.from == range.from && last.param == range.param &&
        last.fromBegin + (last.end - last.begin) == range.fromBegin && last.begin < last.end) {
      last.end = range.end;
      return;
    }
    if (last.begin < last.end)
      each(last);
    last = range;
  };
  for (const Part &part : parts[state]) {
    const Slices &here = part.here, &there = part.there;
    for (uint64_t slice = begin / here.sliceSize; slice * here.sliceSize < end; ++slice) {
      uint64_t first = slice * here.sliceSize + here.offset; // of the parameter in this slice
      uint64_t from = std::max(begin, first), to = std::min(end, first + here.shape.elements());
      if (from >= to)
        continue;
      here.shape.forSlice(
          slice, from - first, to - from, [&](uint64_t whole, uint64_t held, uint64_t count) {
            there.shape.forWhole(
                whole, count,
                [&](uint64_t coordinate, uint64_t saved, uint64_t index, uint64_t length) {
                  uint64_t at = first + held + (index - whole);
                  add({at, at + length, part.from,
                       coordinate * there.sliceSize + there.offset + saved, index, part.param});
                });
          });
    }
  }
  if (last.begin < last.end)
    each(last);
}

std::set<uint64_t> SaveMapping::filesOf(const SaveIndex &saved, uint64_t state, uint64_t begin,
                                        uint64_t end) const {
  std::set<uint64_t> files;
  forRanges(state, begin, end, [&](const StateRange &range) {
    const SaveIndex::State &from = saved.states[range.from];
    for (uint64_t at = range.begin; at < range.end;) {
      uint64_t place = range.fromBegin + (at - range.begin), piece = place / from.elements;
      files.insert(from.files[piece]);
      at += (piece + 1) * from.elements - place;
    }
  });
  return files;
}

std::string SaveMapping::conversions() const {
  std::map<std::pair<std::string, std::string>, std::string> roles;
  for (const auto &[from, into, role] : changes) {
    std::string &list = roles[{from, into}];
    list += (list.empty() ? "" : ", ") + role;
  }
  std::string text;
  for (const auto &[types, list] : roles)
    text += (text.empty() ? "" : "; ") + list +
            (isRounded(types.first, types.second) ? " rounded from " : " widened from ") +
            types.first + " to " + types.second;
  return text;
}
