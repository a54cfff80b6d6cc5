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

/// A pattern such as `encoder.*.block_[0-9]`. The pattern consists of one glob per component of a
/// name. The pattern matches a name if its globs match the first components of the name. `*` does
/// not match separators.
class PrefixPattern {
public:
  /// Parses `text`. Reports errors through `emitError`. Error messages use the text `what` as the
  /// name of the pattern.
  static FailureOr<PrefixPattern> parse(StringRef text, const Twine &what,
                                        function_ref<InFlightDiagnostic()> emitError);
  /// Returns the prefix of `name` that the pattern matches. Returns an empty string if the pattern
  /// does not match `name`.
  StringRef match(StringRef name) const;
  StringRef getText() const { return *text; }

private:
  std::shared_ptr<const std::string> text; ///< text that owns the characters of the globs
  SmallVector<llvm::GlobPattern> components;
};

/// Returns the set of those `names` that the comma-separated `patterns` select. An example is
/// `h.0,*.bias` for the option --freeze. A pattern is a glob. A pattern selects a name if it
/// matches the whole name, or the part of the name before a separator, such as a dot. The
/// character `*` also matches separators. Emits an error about `option` if a pattern matches no
/// name.
FailureOr<llvm::BitVector> selectNames(ArrayRef<StringRef> names, StringRef patterns,
                                       StringRef option,
                                       function_ref<InFlightDiagnostic()> emitError);

/// Returns true if `glob` matches `name`, or the part of `name` before some separator.
bool matchesBeginning(const llvm::GlobPattern &glob, StringRef name);

/// Returns a text such as "; names look like 'a' and 'b'", which is appended to errors about
/// patterns.
std::string describeNames(ArrayRef<StringRef> names);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_SHARD_NAMEPATTERN_H
