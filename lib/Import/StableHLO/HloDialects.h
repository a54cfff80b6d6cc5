//===- HloDialects.h - Text of StableHLO and CHLO ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IMPORT_STABLEHLO_HLODIALECTS_H
#define FSDP_IMPORT_STABLEHLO_HLODIALECTS_H

#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"

namespace mlir::fsdp {

/// Parses the ops of StableHLO or CHLO, in generic and in custom form, as unregistered ops. Their
/// attributes become builtin attributes: an enumeration becomes a string, and a struct becomes a
/// dictionary of `array<i64>`, integers and strings.
class HloDialect : public Dialect {
public:
  Attribute parseAttribute(DialectAsmParser &parser, Type type) const override;
  std::optional<ParseOpHook> getParseOperationHook(StringRef opName) const override;

protected:
  HloDialect(StringRef name, MLIRContext *context, TypeID id);
};

class StablehloDialect : public HloDialect {
public:
  static constexpr StringLiteral getDialectNamespace() { return "stablehlo"; }
  explicit StablehloDialect(MLIRContext *context)
      : HloDialect(getDialectNamespace(), context, TypeID::get<StablehloDialect>()) {}
};

class ChloDialect : public HloDialect {
public:
  static constexpr StringLiteral getDialectNamespace() { return "chlo"; }
  explicit ChloDialect(MLIRContext *context)
      : HloDialect(getDialectNamespace(), context, TypeID::get<ChloDialect>()) {}
};

/// Parses the part of an op in custom form that follows the op's name.
ParseResult parseHloOp(OpAsmParser &parser, OperationState &state);

/// Parses the dimension numbers of a convolution to a dictionary. Its keys are the field names of
/// StableHLO's attribute ("input_batch_dimension", ..). An example of the text is "[b, 0, 1, f]x[0,
/// 1, i, o]->[b, 0, 1, f]".
FailureOr<Attribute> parseConvolutionDimensions(AsmParser &parser);

/// Parses a value in the text of an attribute: an integer, a word, "<..>", a list, or an attribute
/// of MLIR. A list of integers becomes `array<i64>`.
FailureOr<Attribute> parseHloValue(AsmParser &parser);

} // namespace mlir::fsdp

#endif // FSDP_IMPORT_STABLEHLO_HLODIALECTS_H
