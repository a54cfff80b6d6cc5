//===- NamePattern.h - Patterns for names of parameters ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_SHARD_NAMEPATTERN_H
#define FSDP_SHARD_NAMEPATTERN_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/Support/GlobPattern.h"
#include <memory>

namespace mlir {
namespace fsdp {

/// Characters that separate the components of a name.
constexpr llvm::StringLiteral kSeparators = "./";

/// Returns the end of the component of `name` that starts at `begin`.
inline size_t componentEnd(StringRef name, size_t begin) {
  return std::min(name.find_first_of(kSeparators, begin), name.size());
}

/// A pattern such as `encoder.*.block_[0-9]`, which consists of one glob per component and matches
/// the beginning of a name. `*` does not match separators.
class PrefixPattern {
public:
  /// Parses `text`. Reports errors through `emitError`; `what` names the pattern in the message.
  static FailureOr<PrefixPattern> parse(StringRef text, const Twine &what,
                                        function_ref<InFlightDiagnostic()> emitError);
  /// Returns the prefix of `name` that the pattern matches; empty if it does not match.
  StringRef match(StringRef name) const;
  StringRef getText() const { return *text; }

private:
  std::shared_ptr<const std::string> text; ///< text that owns the characters of the globs
  SmallVector<llvm::GlobPattern> components;
};

/// Returns the set of `names` that the patterns select, such as `h.0,*.bias` for --freeze. A
/// pattern is a glob that matches a whole name, or the part of a name before a separator; `*` also
/// matches separators. Emits an error about `option` if a pattern matches no name.
FailureOr<llvm::BitVector> selectNames(ArrayRef<StringRef> names, StringRef patterns,
                                       StringRef option,
                                       function_ref<InFlightDiagnostic()> emitError);

/// Returns text such as "; names look like 'a' and 'b'" for errors about patterns.
std::string describeNames(ArrayRef<StringRef> names);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_SHARD_NAMEPATTERN_H
