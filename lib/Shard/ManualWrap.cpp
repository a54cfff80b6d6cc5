//===- ManualWrap.cpp - Units listed in a file ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   ["h.*.attn", "h.*", {"unit": "ends", "params": ["wte", "lm_head"]}]
//
//   h.0.attn.w  h.0.attn      h.0.mlp.w  h.0      wte.weight  ends     ln_f.w  root
//
//  1. Read the list. An entry is a pattern, or a name and patterns.
//  2. Assign each parameter to the first entry with a pattern that matches the parameter's name.
//     The name of the unit is the name of the entry or, if the entry has no name, the prefix that
//     the pattern matches.
//  3. Report an error if no parameter is assigned to an entry.
//
// O(entries · parameters).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/LocatedJson.h"
#include "fsdp/Shard/NamePattern.h"
#include "fsdp/Shard/WrapPolicy.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fsdp;
using Kind = JsonValue::Kind;

namespace {

struct Entry {
  Location loc;
  StringAttr unit; ///< name of the unit; null if a pattern determines the name
  SmallVector<PrefixPattern> patterns = {};
  bool used = false;
};

class WrapFile {
public:
  WrapFile(StringRef path, Location origin) : path(path), origin(origin) {}
  LogicalResult read();
  FailureOr<SmallVector<StringRef>> apply(ArrayRef<NamedParam> params);

private:
  Location at(unsigned line, unsigned column) const {
    return FileLineColLoc::get(origin.getContext(), path, line, column);
  }
  InFlightDiagnostic fail(const JsonValue &value) {
    return emitError(at(value.line, value.column)) << "wrap: ";
  }
  LogicalResult readEntry(const JsonValue &value);
  LogicalResult readPattern(const JsonValue &value, Entry &entry);
  LogicalResult checkUsed(ArrayRef<NamedParam> params, ArrayRef<const Entry *> owners);

  StringRef path;
  Location origin;
  SmallVector<Entry> entries;
};

} // namespace

LogicalResult WrapFile::readPattern(const JsonValue &value, Entry &entry) {
  if (!value.is(Kind::string))
    return fail(value) << "expected a pattern such as \"h.*\", found " << value.describe();
  auto emit = [&] { return emitError(at(value.line, value.column)); };
  FailureOr<PrefixPattern> pattern = PrefixPattern::parse(value.text, "wrap: pattern", emit);
  if (failed(pattern))
    return failure();
  entry.patterns.push_back(std::move(*pattern));
  return success();
}

LogicalResult WrapFile::readEntry(const JsonValue &value) {
  Entry entry{at(value.line, value.column), {}};
  if (value.is(Kind::object)) {
    for (const JsonMember &member : value.members)
      if (member.name != "unit" && member.name != "params")
        return emitError(at(member.line, member.column))
               << "wrap: unknown key \"" << shortText(member.name)
               << "\"; expected \"unit\" and \"params\"";
    const JsonMember *unit = value.find("unit"), *params = value.find("params");
    if (!unit || !params)
      return fail(value) << "expected both \"unit\" and \"params\", as in {\"unit\": \"ends\", "
                            "\"params\": [\"wte\"]}";
    if (!unit->value.is(Kind::string) || unit->value.text.empty())
      return fail(unit->value) << "expected the name of a unit, found " << unit->value.describe();
    if (!params->value.is(Kind::array) || params->value.elements.empty())
      return fail(params->value) << "expected a list of patterns, found "
                                 << (params->value.is(Kind::array) ? "an empty one"
                                                                   : params->value.describe());
    entry.unit = StringAttr::get(origin.getContext(), unit->value.text);
    for (const JsonValue &pattern : params->value.elements)
      if (failed(readPattern(pattern, entry)))
        return failure();
  } else if (failed(readPattern(value, entry))) {
    return failure();
  }
  entries.push_back(std::move(entry));
  return success();
}

LogicalResult WrapFile::read() {
  JsonProblem problem;
  std::optional<JsonValue> list = readJson(path.str(), problem);
  if (!list)
    return emitError(problem.line ? at(problem.line, problem.column) : origin)
           << "wrap: '" << path << "': " << problem.message;
  if (!list->is(Kind::array) || list->elements.empty())
    return fail(*list) << "expected a list of patterns such as [\"h.*\"], found "
                       << (list->is(Kind::array) ? "an empty one" : list->describe());
  for (const JsonValue &value : list->elements)
    if (failed(readEntry(value)))
      return failure();
  return success();
}

/// Reports an entry to which no parameter is assigned, and a pattern that matches no parameter.
/// `owners` contains the entry of each parameter, or null for a parameter with the attribute
/// `fsdp.unit`.
LogicalResult WrapFile::checkUsed(ArrayRef<NamedParam> params, ArrayRef<const Entry *> owners) {
  auto names = llvm::map_to_vector(params, [](const NamedParam &param) { return param.name; });
  for (const Entry &entry : entries) {
    auto matchesNone = [&](const PrefixPattern &pattern) {
      return llvm::all_of(names, [&](StringRef name) { return pattern.match(name).empty(); });
    };
    if (auto idle = llvm::find_if(entry.patterns, matchesNone); idle != entry.patterns.end())
      return emitError(entry.loc) << "wrap: pattern '" << idle->getText()
                                  << "' matches no parameter" << describeNames(names);
    if (entry.used)
      continue;
    for (const PrefixPattern &pattern : entry.patterns)
      for (auto [param, owner] : llvm::zip_equal(params, owners)) {
        if (pattern.match(param.name).empty())
          continue;
        InFlightDiagnostic diag = emitError(entry.loc)
                                  << "wrap: no parameter is left for this unit: every parameter "
                                  << "that '" << pattern.getText() << "' matches, such as '"
                                  << param.name << "', is in another unit";
        if (owner)
          diag.attachNote(owner->loc) << "it is in the unit of this entry, the first that matches; "
                                         "put the narrower pattern "
                                         "first";
        else
          diag.attachNote(origin)
              << "the attribute 'fsdp.unit' of the parameter takes precedence over the list";
        return diag;
      }
  }
  return success();
}

FailureOr<SmallVector<StringRef>> WrapFile::apply(ArrayRef<NamedParam> params) {
  SmallVector<StringRef> units(params.size());
  SmallVector<const Entry *> owners(params.size());
  for (auto [index, param] : llvm::enumerate(params)) {
    if (param.unit)
      continue;
    for (Entry &entry : entries) {
      StringRef name = param.name;
      auto match = llvm::find_if(entry.patterns,
                                 [&](const PrefixPattern &p) { return !p.match(name).empty(); });
      if (match == entry.patterns.end())
        continue;
      units[index] = entry.unit ? entry.unit.getValue() : match->match(name);
      owners[index] = &entry;
      entry.used = true;
      break;
    }
  }
  if (failed(checkUsed(params, owners)))
    return failure();
  return units;
}

FailureOr<SmallVector<StringRef>> mlir::fsdp::wrapManually(ArrayRef<NamedParam> params,
                                                           StringRef path, Location loc) {
  WrapFile file(path, loc);
  if (failed(file.read()))
    return failure();
  return file.apply(params);
}
