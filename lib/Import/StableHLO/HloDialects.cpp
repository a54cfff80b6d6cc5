//===- HloDialects.cpp - Attributes of StableHLO and CHLO -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The project does not link StableHLO. Instead, two dialects without registered ops parse the text
// of StableHLO. The compiler can thus read a file of `jax.export` without another tool:
//
//   #stablehlo<comparison_direction LT>               ->  "LT"
//   #stablehlo.dot<lhs_contracting_dimensions = [2]>  ->  {lhs_contracting_dimensions = array<..>}
//   #stablehlo.conv<[b, f]x[i, o]->[b, f]>            ->  {input_batch_dimension = 0, ..}
//
// ParseHlo.cpp parses the custom forms of ops, and LowerStablehlo.cpp lowers the ops.
//
//===----------------------------------------------------------------------===//

#include "StableHLO/HloDialects.h"
#include "fsdp/Import/ParseModel.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace mlir::fsdp;

HloDialect::HloDialect(StringRef name, MLIRContext *context, TypeID id)
    : Dialect(name, context, id) {
  allowUnknownOperations();
}

std::optional<Dialect::ParseOpHook> HloDialect::getParseOperationHook(StringRef) const {
  return ParseOpHook(parseHloOp);
}

/// Parses the elements of a list after its opening bracket.
static FailureOr<Attribute> parseList(AsmParser &parser) {
  SmallVector<Attribute> elements;
  SmallVector<int64_t> integers;
  while (failed(parser.parseOptionalRSquare())) {
    if (!elements.empty() && parser.parseComma())
      return failure();
    FailureOr<Attribute> element = parseHloValue(parser);
    if (failed(element))
      return failure();
    elements.push_back(*element);
    if (auto integer = dyn_cast<IntegerAttr>(*element))
      integers.push_back(integer.getValue().getSExtValue());
  }
  Builder &b = parser.getBuilder();
  if (integers.size() == elements.size())
    return Attribute(b.getDenseI64ArrayAttr(integers));
  return Attribute(b.getArrayAttr(elements));
}

/// Parses what follows the opening bracket of a struct or an enumeration: "word>", "word word>" or
/// "key = value, ..>".
static FailureOr<Attribute> parseStruct(AsmParser &parser) {
  Builder &b = parser.getBuilder();
  NamedAttrList fields;
  while (failed(parser.parseOptionalGreater())) {
    StringRef key, word;
    if ((!fields.empty() && parser.parseComma()) || parser.parseKeyword(&key))
      return failure();
    if (succeeded(parser.parseOptionalEqual())) {
      FailureOr<Attribute> value = parseHloValue(parser);
      if (failed(value))
        return failure();
      fields.set(key, *value);
      continue;
    }
    Attribute single = b.getStringAttr(succeeded(parser.parseOptionalKeyword(&word)) ? word : key);
    if (parser.parseGreater())
      return failure();
    return single;
  }
  return Attribute(fields.getDictionary(b.getContext()));
}

FailureOr<Attribute> fsdp::parseHloValue(AsmParser &parser) {
  Builder &b = parser.getBuilder();
  StringRef word;
  APInt integer;
  if (succeeded(parser.parseOptionalLSquare()))
    return parseList(parser);
  if (succeeded(parser.parseOptionalLess()))
    return parseStruct(parser);
  if (OptionalParseResult parsed = parser.parseOptionalInteger(integer); parsed.has_value()) {
    if (failed(*parsed))
      return failure();
    return Attribute(b.getI64IntegerAttr(integer.sextOrTrunc(64).getSExtValue()));
  }
  Attribute attribute;
  if (OptionalParseResult parsed = parser.parseOptionalAttribute(attribute); parsed.has_value()) {
    if (failed(*parsed))
      return failure();
    return attribute;
  }
  if (parser.parseKeyword(&word))
    return failure();
  return Attribute(b.getStringAttr(word));
}

/// Parses one of the three lists of a convolution's dimensions. Sets `named` to the numbers of the
/// two dimensions that have a letter. Sets `spatial` to the numbers of the spatial dimensions, in
/// order.
static ParseResult parseDimensions(AsmParser &parser, ArrayRef<StringRef> letters,
                                   MutableArrayRef<int64_t> named, SmallVector<int64_t> &spatial) {
  SmallVector<std::pair<int64_t, int64_t>> order;
  int64_t position = 0;
  ParseResult result = parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    int64_t number, here = position++;
    StringRef word;
    if (OptionalParseResult parsed = parser.parseOptionalInteger(number); parsed.has_value()) {
      order.push_back({number, here});
      return ParseResult(*parsed);
    }
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseKeyword(&word))
      return ParseResult(failure());
    for (auto [letter, target] : llvm::zip(letters, named))
      if (letter == word) {
        target = here;
        return ParseResult(success());
      }
    return ParseResult(parser.emitError(at) << "expected '" << letters[0] << "', '" << letters[1]
                                            << "' or a number, found '" << word << "'");
  });
  llvm::sort(order);
  for (auto [number, here] : order)
    spatial.push_back(here);
  return result;
}

FailureOr<Attribute> fsdp::parseConvolutionDimensions(AsmParser &parser) {
  Builder &b = parser.getBuilder();
  NamedAttrList fields;
  struct Part {
    StringRef prefix, first, second;
    StringRef firstLetter, secondLetter;
  };
  const Part parts[] = {{"input", "batch", "feature", "b", "f"},
                        {"kernel", "input_feature", "output_feature", "i", "o"},
                        {"output", "batch", "feature", "b", "f"}};
  for (const Part &part : parts) {
    if ((part.prefix == "kernel" && parser.parseKeyword("x")) ||
        (part.prefix == "output" && parser.parseArrow()))
      return failure();
    int64_t named[2] = {-1, -1};
    SmallVector<int64_t> spatial;
    SMLoc at = parser.getCurrentLocation();
    if (parseDimensions(parser, {part.firstLetter, part.secondLetter}, named, spatial))
      return failure();
    if (named[0] < 0 || named[1] < 0) {
      parser.emitError(at) << "expected the dimensions '" << part.firstLetter << "' and '"
                           << part.secondLetter << "'";
      return failure();
    }
    auto set = [&](StringRef name, Attribute value) {
      fields.set((part.prefix + "_" + name).str(), value);
    };
    set(part.first.str() + "_dimension", b.getI64IntegerAttr(named[0]));
    set(part.second.str() + "_dimension", b.getI64IntegerAttr(named[1]));
    set("spatial_dimensions", b.getDenseI64ArrayAttr(spatial));
  }
  return Attribute(fields.getDictionary(b.getContext()));
}

Attribute HloDialect::parseAttribute(DialectAsmParser &parser, Type) const {
  StringRef name, word;
  // #stablehlo<comparison_direction LT>
  if (StringRef spec = parser.getFullSymbolSpec(); spec.starts_with("<") || spec.contains(' ')) {
    if (parser.parseKeyword(&name))
      return {};
    if (succeeded(parser.parseOptionalKeyword(&word)))
      return parser.getBuilder().getStringAttr(word);
    if (parser.parseLess())
      return {};
  } else if (parser.parseKeyword(&name) || parser.parseLess()) {
    return {};
  }
  if (name == "conv" && succeeded(parser.parseOptionalKeyword("raw"))) {
    FailureOr<Attribute> fields = parseStruct(parser);
    return failed(fields) ? Attribute() : *fields;
  }
  if (name == "conv") {
    FailureOr<Attribute> fields = parseConvolutionDimensions(parser);
    return failed(fields) || parser.parseGreater() ? Attribute() : *fields;
  }
  FailureOr<Attribute> fields = parseStruct(parser);
  return failed(fields) ? Attribute() : *fields;
}

void fsdp::registerHloDialects(DialectRegistry &registry) {
  registry.insert<StablehloDialect, ChloDialect>();
}
