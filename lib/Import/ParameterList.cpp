//===- ParameterList.cpp - Which arguments are parameters -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The grammar of `--params` and the JSON sidecar:
//
//   params  = "auto" | item {"," item}          item = N | N "-" M | NAME-WITH-*
//   sidecar = [ {"index": 3, "rename": "h.0.w",
//                "init": {"kind": "normal", "a": 0, "b": 0.02}, "frozen": true}, ... ]
//
// An entry of the sidecar points by "index" (position in the file), "name", or
// "resource" (the key of a dense_resource constant).
//
//===----------------------------------------------------------------------===//

#include "ParameterList.h"
#include "fsdp/Analysis/LocatedJson.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

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

/// {"kind": "normal", "a": 0, "b": 0.02}
static FailureOr<InitAttr> parseInit(const llvm::json::Value &value, Location loc) {
  const llvm::json::Object *object = value.getAsObject();
  std::optional<llvm::StringRef> kind = object ? object->getString("kind") : std::nullopt;
  std::optional<InitKind> parsed = kind ? symbolizeInitKind(*kind) : std::nullopt;
  if (!parsed)
    return emitError(loc)
           << "--params-file: \"init\" expected {\"kind\": \"constant\"|\"normal\"|\"uniform\", "
              "\"a\": number, \"b\": number}";
  double a = object->getNumber("a").value_or(0), b = object->getNumber("b").value_or(0);
  return InitAttr::get(loc.getContext(), *parsed, APFloat(a), APFloat(b));
}

static FailureOr<SidecarEntry> parseEntry(const llvm::json::Value &value, Location loc) {
  const llvm::json::Object *object = value.getAsObject();
  if (!object)
    return emitError(loc) << "--params-file: expected a list of objects";
  SidecarEntry entry;
  entry.index = object->getInteger("index");
  entry.name = object->getString("name").value_or("").str();
  entry.resource = object->getString("resource").value_or("").str();
  entry.rename = object->getString("rename").value_or("").str();
  entry.frozen = object->getBoolean("frozen").value_or(false);
  if (entry.index.has_value() + !entry.name.empty() + !entry.resource.empty() != 1)
    return emitError(loc) << "--params-file: each entry expected exactly one of \"index\", "
                             "\"name\" and \"resource\"";
  for (const auto &field : *object)
    if (!llvm::is_contained({"index", "name", "resource", "rename", "init", "frozen"},
                            StringRef(field.first)))
      return emitError(loc) << "--params-file: unknown field \"" << StringRef(field.first)
                            << "\" at " << entry.describe();
  if (const llvm::json::Value *init = object->get("init")) {
    FailureOr<InitAttr> parsed = parseInit(*init, loc);
    if (failed(parsed))
      return failure();
    entry.init = *parsed;
  }
  return entry;
}

static LogicalResult readSidecar(StringRef file, std::vector<SidecarEntry> &entries, Location loc) {
  auto buffer = llvm::MemoryBuffer::getFile(file);
  if (!buffer)
    return emitError(loc) << "--params-file: cannot read '" << file
                          << "': " << buffer.getError().message();
  // LLVM's parser calls itself for each bracket, so the depth is limited first.
  if (JsonProblem problem; !parseJson((*buffer)->getBuffer(), problem))
    return emitError(FileLineColLoc::get(loc.getContext(), file, problem.line, problem.column))
           << "--params-file: '" << file << "' is not JSON: " << problem.message;
  llvm::Expected<llvm::json::Value> json = llvm::json::parse((*buffer)->getBuffer());
  if (!json)
    return emitError(loc) << "--params-file: '" << file
                          << "' is not JSON: " << llvm::toString(json.takeError());
  const llvm::json::Array *list = json->getAsArray();
  if (!list)
    return emitError(loc) << "--params-file: expected a list of objects in '" << file << "'";
  for (const llvm::json::Value &value : *list) {
    FailureOr<SidecarEntry> entry = parseEntry(value, loc);
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
  if (!file.empty() && failed(readSidecar(file, list.sidecar, loc)))
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
