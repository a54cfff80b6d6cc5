//===- NamePattern.h - Patterns over names of parameters --------*- C++ -*-===//
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

/// Between the components of a name.
constexpr llvm::StringLiteral kSeparators = "./";

/// End of the component of `name` that starts at `begin`.
inline size_t componentEnd(StringRef name, size_t begin) {
  return std::min(name.find_first_of(kSeparators, begin), name.size());
}

/// `encoder.*.block_[0-9]`: a glob per component, matched against the beginning of
/// a name. `*` stays within one component.
class PrefixPattern {
public:
  /// What is wrong with `text` is said through `emitError`; `what` says whose it is.
  static FailureOr<PrefixPattern> parse(StringRef text, const Twine &what,
                                        function_ref<InFlightDiagnostic()> emitError);
  /// The prefix of `name` that the whole pattern matches; empty when it does not.
  StringRef match(StringRef name) const;
  StringRef getText() const { return *text; }

private:
  std::shared_ptr<const std::string> text; ///< the globs point into it
  SmallVector<llvm::GlobPattern> components;
};

/// Which of `names` a list of patterns selects, as --freeze gives them: `h.0,*.bias`.
/// A pattern is a glob over a whole name or over its beginning up to a separator; `*`
/// matches separators, too. Each must match something.
FailureOr<llvm::BitVector> selectNames(ArrayRef<StringRef> names, StringRef patterns,
                                       StringRef option,
                                       function_ref<InFlightDiagnostic()> emitError);

/// "; names look like 'a' and 'b'", for a pattern that matches nothing.
std::string describeNames(ArrayRef<StringRef> names);

} // namespace fsdp
} // namespace mlir

#endif // FSDP_SHARD_NAMEPATTERN_H
