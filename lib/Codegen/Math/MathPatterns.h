//===- MathPatterns.h - Expansions of math and of 16-bit floats -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_CODEGEN_MATH_MATHPATTERNS_H
#define FSDP_LIB_CODEGEN_MATH_MATHPATTERNS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::fsdp {

/// Expands 2^x for an f32 or a vector of f32 with x < 2^7, in fewer ops than the expansion of
/// math.exp2. Results below 2^-125 become 0.
Value expandSmallExp2(OpBuilder &b, Location loc, Value x);
/// Adds patterns that expand math ops without library calls; see ExpandMath.cpp.
void populateExpandMathPatterns(RewritePatternSet &patterns);
/// Adds patterns that rewrite bf16 and f16 arithmetic as f32 arithmetic with exact conversions; see
/// LegaliseFloats.cpp.
void populateLegaliseFloatsPatterns(RewritePatternSet &patterns);
/// Replaces the type bf16 by i16. The ops that compute in bf16 must have been rewritten before this
/// function is called.
void storeBf16AsBits(ModuleOp module);

} // namespace mlir::fsdp

#endif // FSDP_LIB_CODEGEN_MATH_MATHPATTERNS_H
