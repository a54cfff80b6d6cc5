//===- NamePattern.cpp - Patterns for names of parameters -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   pattern      kind     matches
//   h.*          prefix   h.0 of h.0.attn.weight; the match is the name of a unit
//   *.bias       names    h.0.attn.bias, the whole name
//   h.0          names    h.0.attn.weight, which begins with h.0; but not h.01.w
//
//===----------------------------------------------------------------------===//

#include "fsdp/Shard/NamePattern.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

FailureOr<PrefixPattern> PrefixPattern::parse(StringRef given, const Twine &what,
                                              function_ref<InFlightDiagnostic()> emitError) {
  PrefixPattern pattern;
  pattern.text = std::make_shared<const std::string>(given);
  StringRef text = *pattern.text;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = componentEnd(text, begin);
    StringRef part = text.slice(begin, end);
    auto glob = llvm::GlobPattern::create(part);
    if (!glob || part.empty()) {
      std::string why = "it has an empty component";
      if (!glob)
        why = llvm::toString(glob.takeError());
      emitError() << what << " '" << text << "' cannot be read: " << why;
      return failure();
    }
    pattern.components.push_back(std::move(*glob));
    begin = end + 1;
  }
  return pattern;
}

StringRef PrefixPattern::match(StringRef name) const {
  size_t begin = 0;
  for (const llvm::GlobPattern &component : components) {
    size_t end = componentEnd(name, begin);
    if (begin >= name.size() || !component.match(name.slice(begin, end)))
      return {};
    begin = end + 1;
  }
  return name.take_front(begin - 1);
}

std::string mlir::fsdp::describeNames(ArrayRef<StringRef> names) {
  if (names.empty())
    return "";
  std::string text = "; names look like '" + names.front().str() + "'";
  if (names.size() > 1)
    text += " and '" + names.back().str() + "'";
  return text;
}

bool mlir::fsdp::matchesBeginning(const llvm::GlobPattern &glob, StringRef name) {
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = componentEnd(name, begin);
    if (glob.match(name.take_front(end)))
      return true;
    begin = end + 1;
  }
  return false;
}

FailureOr<llvm::BitVector> mlir::fsdp::selectNames(ArrayRef<StringRef> names, StringRef patterns,
                                                   StringRef option,
                                                   function_ref<InFlightDiagnostic()> emitError) {
  llvm::BitVector selected(names.size());
  if (patterns.empty())
    return selected;
  SmallVector<StringRef> texts;
  patterns.split(texts, ',');
  for (StringRef text : texts) {
    text = text.trim();
    auto glob = llvm::GlobPattern::create(text);
    if (!glob) {
      emitError() << option << ": pattern '" << text
                  << "' cannot be read: " << llvm::toString(glob.takeError());
      return failure();
    }
    if (text.empty()) {
      emitError() << option << ": expected patterns with a comma between them, found an empty "
                  << "pattern in '" << patterns << "'";
      return failure();
    }
    bool matched = false;
    for (auto [index, name] : llvm::enumerate(names))
      if (matchesBeginning(*glob, name)) {
        selected.set(index);
        matched = true;
      }
    if (!matched) {
      emitError() << option << ": pattern '" << text << "' matches no parameter"
                  << describeNames(names);
      return failure();
    }
  }
  return selected;
}
