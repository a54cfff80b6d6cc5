//===- ParameterList.cpp - --params and --params-file -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses `--params` and the JSON file of `--params-file` (the sidecar):
//
//   params  = "auto" | item {"," item}          item = N | N "-" M | NAME-WITH-*
//   sidecar = [ {"index": 3, "rename": "h.0.w",
//                "init": {"kind": "normal", "a": 0, "b": 0.02}, "frozen": true}, ... ]
//
// An entry of the sidecar identifies a value by "index" (position in the file), by "name", or by
// "resource" (key of a dense_resource constant).
//
//===----------------------------------------------------------------------===//

#include "Interface/ParameterList.h"
#include "fsdp/Analysis/LocatedJson.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

std::string SidecarEntry::describe() const {
  if (index)
    return "index " + std::to_string(*index);
  return name.empty() ? "resource '" + resource + "'" : "name '" + name + "'";
}

static FailureOr<ParameterItem> parseItem(StringRef text, Location loc) {
  ParameterItem item;
  item.text = text.str();
  auto [first, last] = text.split('-');
  if (llvm::all_of(first, llvm::isDigit) && llvm::all_of(last, llvm::isDigit) && !first.empty()) {
    bool range = text.contains('-');
    if (first.getAsInteger(10, item.first) || (range ? last : first).getAsInteger(10, item.last) ||
        item.last < item.first)
      return emitError(loc) << "--params: expected N or N-M with N <= M, found '" << text << "'";
    return item;
  }
  llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(text);
  if (!glob)
    return emitError(loc) << "--params: '" << text
                          << "' is not a name: " << llvm::toString(glob.takeError());
  item.name = std::move(*glob);
  return item;
}

namespace {
using Kind = JsonValue::Kind;

/// Reads the sidecar. Emits errors at their position in the file.
class SidecarReader {
public:
  SidecarReader(StringRef file, Location loc) : file(file), loc(loc) {}
  LogicalResult read(std::vector<SidecarEntry> &entries);

private:
  InFlightDiagnostic fail(unsigned line, unsigned column) {
    return emitError(FileLineColLoc::get(loc.getContext(), file, line, column))
           << "--params-file: ";
  }
  InFlightDiagnostic fail(const JsonValue &at) { return fail(at.line, at.column); }

  /// If `object` has a member `name`, sets `text` to its text. Emits an error if the member is not
  /// of the JSON kind `kind`, which `expected` describes.
  LogicalResult readText(const JsonValue &object, StringRef name, Kind kind, StringRef expected,
                         std::string &text);
  LogicalResult readNumber(const JsonValue &object, StringRef name, double &number);
  FailureOr<InitAttr> readInit(const JsonValue &value);
  FailureOr<SidecarEntry> readEntry(const JsonValue &value);

  StringRef file;
  Location loc;
};
} // namespace

LogicalResult SidecarReader::readText(const JsonValue &object, StringRef name, Kind kind,
                                      StringRef expected, std::string &text) {
  const JsonMember *member = object.find(name);
  if (!member)
    return success();
  if (!member->value.is(kind))
    return fail(member->value) << "\"" << name << "\": expected " << expected << ", found "
                               << member->value.describe();
  text = member->value.text;
  return success();
}

LogicalResult SidecarReader::readNumber(const JsonValue &object, StringRef name, double &number) {
  const JsonMember *member = object.find(name);
  if (!member)
    return success();
  const JsonValue &value = member->value;
  if ((!value.is(Kind::number) && !value.is(Kind::integer)) ||
      StringRef(value.text).getAsDouble(number))
    return fail(value) << "\"" << name << "\": expected a number, found " << value.describe();
  return success();
}

/// Reads an initial value: {"kind": "normal", "a": 0, "b": 0.02}.
FailureOr<InitAttr> SidecarReader::readInit(const JsonValue &value) {
  const JsonMember *kind = value.find("kind");
  std::optional<InitKind> parsed = kind ? symbolizeInitKind(kind->value.text) : std::nullopt;
  if (!parsed)
    return fail(value) << "\"init\" expected {\"kind\": \"constant\"|\"normal\"|\"uniform\", "
                          "\"a\": number, \"b\": number}";
  double a = 0, b = 0;
  if (failed(readNumber(value, "a", a)) || failed(readNumber(value, "b", b)))
    return failure();
  return InitAttr::get(loc.getContext(), *parsed, APFloat(a), APFloat(b));
}

FailureOr<SidecarEntry> SidecarReader::readEntry(const JsonValue &value) {
  if (!value.is(Kind::object))
    return fail(value) << "expected a list of objects";
  SidecarEntry entry;
  std::string index, frozen;
  if (failed(readText(value, "index", Kind::integer, "an integer", index)) ||
      failed(readText(value, "name", Kind::string, "a string", entry.name)) ||
      failed(readText(value, "resource", Kind::string, "a string", entry.resource)) ||
      failed(readText(value, "rename", Kind::string, "a string", entry.rename)) ||
      failed(readText(value, "frozen", Kind::boolean, "true or false", frozen)))
    return failure();
  entry.frozen = frozen == "true";
  if (int64_t number; !index.empty()) {
    if (StringRef(index).getAsInteger(10, number))
      return fail(value.find("index")->value)
             << "\"index\": expected an integer of at most 64 bits";
    entry.index = number;
  }
  if (entry.index.has_value() + !entry.name.empty() + !entry.resource.empty() != 1)
    return fail(value) << "each entry expected exactly one of \"index\", \"name\" and \"resource\"";
  for (const JsonMember &field : value.members)
    if (!llvm::is_contained({"index", "name", "resource", "rename", "init", "frozen"},
                            StringRef(field.name)))
      return fail(field.line, field.column)
             << "unknown field \"" << shortText(field.name) << "\" at " << entry.describe();
  if (const JsonMember *init = value.find("init")) {
    FailureOr<InitAttr> parsed = readInit(init->value);
    if (failed(parsed))
      return failure();
    entry.init = *parsed;
  }
  return entry;
}

LogicalResult SidecarReader::read(std::vector<SidecarEntry> &entries) {
  JsonProblem problem;
  std::optional<JsonValue> list = readJson(file.str(), problem);
  if (!list) {
    StringRef why = problem.message;
    if (why.consume_front("cannot be read: "))
      return emitError(loc) << "--params-file: cannot read '" << file << "': " << why;
    if (!problem.line)
      return emitError(loc) << "--params-file: '" << file << "' is " << why;
    return fail(problem.line, problem.column) << "'" << file << "': " << why;
  }
  if (!list->is(Kind::array))
    return fail(*list) << "expected a list of objects in '" << file << "', found "
                       << list->describe();
  for (const JsonValue &value : list->elements) {
    FailureOr<SidecarEntry> entry = readEntry(value);
    if (failed(entry))
      return failure();
    entries.push_back(std::move(*entry));
  }
  return success();
}

FailureOr<ParameterList> ParameterList::parse(StringRef params, StringRef file, Location loc) {
  ParameterList list;
  SmallVector<StringRef> pieces;
  list.isAuto = params.trim() == "auto";
  if (list.isAuto)
    params = "";
  params.split(pieces, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef piece : pieces) {
    FailureOr<ParameterItem> item = parseItem(piece.trim(), loc);
    if (failed(item))
      return failure();
    list.items.push_back(std::move(*item));
  }
  if (!file.empty() && failed(SidecarReader(file, loc).read(list.sidecar)))
    return failure();
  return list;
}

bool ParameterList::lists(int64_t position, StringRef name) {
  bool listed = listsName(name);
  for (ParameterItem &item : items)
    if (!item.name && position >= item.first && position <= item.last)
      item.used = listed = true;
  return listed;
}

bool ParameterList::listsName(StringRef name) {
  bool listed = false;
  for (ParameterItem &item : items)
    if (item.name && !name.empty() && item.name->match(name))
      item.used = listed = true;
  return listed;
}

SidecarEntry *ParameterList::findSidecar(std::optional<int64_t> position, StringRef name,
                                         StringRef resource) {
  for (SidecarEntry &entry : sidecar) {
    bool hit = entry.index ? position && *entry.index == *position
                           : (!entry.name.empty() && entry.name == name) ||
                                 (!entry.resource.empty() && entry.resource == resource);
    if (hit) {
      entry.used = true;
      return &entry;
    }
  }
  return nullptr;
}
