//===- ParseHlo.cpp - Custom forms of StableHLO's ops -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses the custom form of an op to the same op with the same attributes as the generic form:
//
//   stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (A, B) -> C
//   "stablehlo.dot_general"(%a, %b) {dot_dimension_numbers = {lhs_contracting_dimensions = ..}} :
//   ..
//
//  1. The text of most ops is a list of items. An item is an operand, a word such as LT, "key =
//     value", or the ranges of a slice. The table `keys` maps the keys of each op to attribute
//     names.
//  2. The text ends with a function type, or with one type "T" that all operands and results have.
//     In select, the type of the predicate precedes "T".
//  3. Separate functions parse constant, reduce, convolution, custom_call and composite.
//  4. Ops of control flow are refused with advice, because no pass reads their regions.
//
//===----------------------------------------------------------------------===//

#include "Interface/Advice.h"
#include "StableHLO/HloDialects.h"
#include "fsdp/IR/DiagnosticText.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// A key in the custom form of `op`, and the attribute of the generic form that the key sets.
struct Key {
  StringRef op, key, attribute;
};

/// The operands and words of one op, in the order of the text.
struct Items {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<StringRef> words;
};
} // namespace

static const Key keys[] = {
    {"broadcast_in_dim", "dims", "broadcast_dimensions"},
    {"transpose", "dims", "permutation"},
    {"reverse", "dims", "dimensions"},
    {"iota", "dim", "iota_dimension"},
    {"concatenate", "dim", "dimension"},
    {"pad", "low", "edge_padding_low"},
    {"pad", "high", "edge_padding_high"},
    {"pad", "interior", "interior_padding"},
    {"dynamic_slice", "sizes", "slice_sizes"},
    {"dot_general", "precision", "precision_config"},
    {"dot", "precision", "precision_config"},
};

static StringRef attributeOf(StringRef op, StringRef key) {
  for (const Key &entry : keys)
    if (entry.op == op && entry.key == key)
      return entry.attribute;
  return key;
}

/// Parses ranges such as "[0:2, 0:8:2]" after the opening bracket, and sets the three attributes of
/// a slice.
static ParseResult parseRanges(OpAsmParser &parser, NamedAttrList &attributes) {
  SmallVector<int64_t> starts, limits, strides;
  while (failed(parser.parseOptionalRSquare())) {
    int64_t start, limit, stride = 1;
    if ((!starts.empty() && parser.parseComma()) || parser.parseInteger(start) ||
        parser.parseColon() || parser.parseInteger(limit) ||
        (succeeded(parser.parseOptionalColon()) && parser.parseInteger(stride)))
      return failure();
    starts.push_back(start);
    limits.push_back(limit);
    strides.push_back(stride);
  }
  Builder &b = parser.getBuilder();
  attributes.set("start_indices", b.getDenseI64ArrayAttr(starts));
  attributes.set("limit_indices", b.getDenseI64ArrayAttr(limits));
  attributes.set("strides", b.getDenseI64ArrayAttr(strides));
  return success();
}

/// Parses the value of `key`. The value "[..] x [..]" of a dot product sets one list for the left
/// and one for the right operand.
static ParseResult parseKeyed(OpAsmParser &parser, StringRef op, StringRef key,
                              NamedAttrList &attributes) {
  FailureOr<Attribute> value = parseHloValue(parser);
  if (failed(value))
    return failure();
  if (failed(parser.parseOptionalKeyword("x"))) {
    attributes.set(attributeOf(op, key), *value);
    return success();
  }
  FailureOr<Attribute> other = parseHloValue(parser);
  if (failed(other))
    return failure();
  // batching_dims and contracting_dims
  StringRef kind = key.drop_back(StringRef("_dims").size());
  constexpr StringLiteral numbers = "dot_dimension_numbers";
  NamedAttrList fields(dyn_cast_or_null<DictionaryAttr>(attributes.get(numbers)));
  fields.set(("lhs_" + kind + "_dimensions").str(), *value);
  fields.set(("rhs_" + kind + "_dimensions").str(), *other);
  attributes.set(numbers, fields.getDictionary(parser.getContext()));
  return success();
}

/// Parses the items up to the attribute dictionary or the types.
static ParseResult parseItems(OpAsmParser &parser, StringRef op, Items &items,
                              NamedAttrList &attributes) {
  bool first = true;
  while (true) {
    if (succeeded(parser.parseOptionalLSquare())) {
      if (parseRanges(parser, attributes))
        return failure();
      continue;
    }
    bool comma = succeeded(parser.parseOptionalComma());
    OpAsmParser::UnresolvedOperand operand;
    StringRef word;
    OptionalParseResult parsed = parser.parseOptionalOperand(operand);
    if (parsed.has_value()) {
      if (failed(*parsed))
        return failure();
      items.operands.push_back(operand);
    } else if (succeeded(parser.parseOptionalKeyword(&word))) {
      if (failed(parser.parseOptionalEqual()))
        items.words.push_back(word);
      else if (parseKeyed(parser, op, word, attributes))
        return failure();
    } else if (comma && !first) {
      return parser.emitError(parser.getCurrentLocation(), "expected an operand or an attribute");
    } else {
      return success();
    }
    first = false;
  }
}

/// Parses a colon, the types of `count` operands, and the types of the results.
static ParseResult parseTypes(OpAsmParser &parser, StringRef op, size_t count,
                              SmallVector<Type> &operands, SmallVector<Type> &results) {
  SMLoc at = parser.getCurrentLocation();
  if (parser.parseColon())
    return failure();
  if (succeeded(parser.parseOptionalLParen())) {
    if (failed(parser.parseOptionalRParen()) &&
        (parser.parseTypeList(operands) || parser.parseRParen()))
      return failure();
    if (parser.parseArrowTypeList(results))
      return failure();
  } else if (parser.parseTypeList(operands)) {
    return failure();
  } else if (succeeded(parser.parseOptionalArrow())) {
    if (parser.parseTypeList(results))
      return failure();
  } else if (op == "return") {
    // no result
  } else if (op == "optimization_barrier") {
    results = operands;
  } else {
    results.push_back(operands.back());
    if (op == "select" && operands.size() == 2)
      operands.push_back(operands.back());
    if (operands.size() == 1)
      operands.assign(count, operands.front());
  }
  if (operands.size() != count)
    return parser.emitError(at) << "expected " << describeCount(count, "type", "types")
                                << ", one per operand, found " << operands.size();
  return success();
}

/// Parses the types, and adds operands and results to the op.
static ParseResult finish(OpAsmParser &parser, StringRef op, const Items &items,
                          OperationState &state) {
  SmallVector<Type> operandTypes, resultTypes;
  SMLoc at = parser.getCurrentLocation();
  if (parseTypes(parser, op, items.operands.size(), operandTypes, resultTypes) ||
      parser.resolveOperands(items.operands, operandTypes, at, state.operands))
    return failure();
  state.addTypes(resultTypes);
  return success();
}

/// Parses "dense<..> : T".
static ParseResult parseConstant(OpAsmParser &parser, OperationState &state) {
  TypedAttr value;
  if (parser.parseOptionalAttrDict(state.attributes) || parser.parseAttribute(value))
    return failure();
  state.attributes.set("value", value);
  state.addTypes(value.getType());
  return success();
}

/// Adds a body to a reduction. The body applies the op `reducer` to two scalars of type `element`.
static void addReducer(OpAsmParser &parser, OperationState &state, OperationName reducer,
                       Type element) {
  OpBuilder b(parser.getContext());
  auto scalar = RankedTensorType::get({}, element);
  Block *body =
      b.createBlock(state.addRegion(), {}, {scalar, scalar}, {state.location, state.location});
  OperationState combine(state.location, reducer);
  combine.addOperands(body->getArguments());
  combine.addTypes(scalar);
  OperationState end(state.location, "stablehlo.return");
  end.addOperands(b.create(combine)->getResults());
  b.create(end);
}

/// Parses "(%a init: %b), (%c init: %d) applies OP across dimensions = [1] : T". Without "applies
/// OP", a body follows the types: "reducer(%x: T, %y: T) (%z: T, %w: T) { .. }".
static ParseResult parseReduce(OpAsmParser &parser, OperationState &state) {
  Items items;
  SmallVector<OpAsmParser::UnresolvedOperand> inits;
  do {
    OpAsmParser::UnresolvedOperand &value = items.operands.emplace_back();
    OpAsmParser::UnresolvedOperand &init = inits.emplace_back();
    if (parser.parseLParen() || parser.parseOperand(value) || parser.parseKeyword("init") ||
        parser.parseColon() || parser.parseOperand(init) || parser.parseRParen())
      return failure();
  } while (succeeded(parser.parseOptionalComma()));
  items.operands.append(inits);
  std::optional<OperationName> reducer;
  if (succeeded(parser.parseOptionalKeyword("applies"))) {
    FailureOr<OperationName> name = parser.parseCustomOperationName();
    if (failed(name))
      return failure();
    reducer = *name;
  }
  if (parser.parseKeyword("across") || parser.parseKeyword("dimensions") || parser.parseEqual())
    return failure();
  FailureOr<Attribute> dimensions = parseHloValue(parser);
  if (failed(dimensions) || parser.parseOptionalAttrDict(state.attributes) ||
      finish(parser, "reduce", items, state))
    return failure();
  state.attributes.set("dimensions", *dimensions);
  if (reducer) {
    addReducer(parser, state, *reducer, getElementTypeOrSelf(state.operands.front().getType()));
    return success();
  }
  // The text lists the body's arguments in pairs, one pair for each input. In the op, the first
  // arguments of all pairs come before the second arguments.
  SmallVector<OpAsmParser::Argument> lhs, rhs;
  if (parser.parseKeyword("reducer"))
    return failure();
  for (size_t i = 0; i < inits.size(); ++i)
    if (parser.parseLParen() || parser.parseArgument(lhs.emplace_back(), /*allowType=*/true) ||
        parser.parseComma() || parser.parseArgument(rhs.emplace_back(), /*allowType=*/true) ||
        parser.parseRParen())
      return failure();
  lhs.append(rhs);
  return parser.parseRegion(*state.addRegion(), lhs);
}

/// Parses "(%a, %b) dim_numbers = .., window = {stride = [..], ..} {..} : T".
static ParseResult parseConvolution(OpAsmParser &parser, OperationState &state) {
  Items items;
  if (parser.parseOperandList(items.operands, 2, AsmParser::Delimiter::Paren) ||
      parser.parseKeyword("dim_numbers") || parser.parseEqual())
    return failure();
  FailureOr<Attribute> numbers = parseConvolutionDimensions(parser);
  if (failed(numbers) || parser.parseComma() || parser.parseKeyword("window") ||
      parser.parseEqual() || parser.parseLBrace())
    return failure();
  const std::pair<StringRef, StringRef> names[] = {{"stride", "window_strides"},
                                                   {"pad", "padding"},
                                                   {"lhs_dilate", "lhs_dilation"},
                                                   {"rhs_dilate", "rhs_dilation"},
                                                   {"reverse", "window_reversal"}};
  for (bool first = true; failed(parser.parseOptionalRBrace()); first = false) {
    StringRef key;
    if ((!first && parser.parseComma()) || parser.parseKeyword(&key) || parser.parseEqual())
      return failure();
    FailureOr<Attribute> value = parseHloValue(parser);
    if (failed(value))
      return failure();
    for (auto [text, attribute] : names)
      if (text == key)
        state.attributes.set(attribute, *value);
  }
  state.attributes.set("dimension_numbers", *numbers);
  return failure(parser.parseOptionalAttrDict(state.attributes) ||
                 finish(parser, "convolution", items, state));
}

/// Parses "@target(%a) {..} : T" or, for a composite, ""name" %a {..} : T".
static ParseResult parseCall(OpAsmParser &parser, StringRef op, OperationState &state) {
  Items items;
  StringAttr name;
  if (op == "custom_call") {
    if (parser.parseSymbolName(name) ||
        parser.parseOperandList(items.operands, AsmParser::Delimiter::Paren))
      return failure();
    state.attributes.set("call_target_name", name);
  } else if (parser.parseAttribute(name) || parser.parseOperandList(items.operands)) {
    return failure();
  }
  return failure(parser.parseOptionalAttrDict(state.attributes) ||
                 finish(parser, op, items, state));
}

ParseResult fsdp::parseHloOp(OpAsmParser &parser, OperationState &state) {
  StringRef name = state.name.getStringRef(), op = state.name.stripDialect();
  if (op == "constant")
    return parseConstant(parser, state);
  if (op == "reduce")
    return parseReduce(parser, state);
  if (op == "convolution")
    return parseConvolution(parser, state);
  if (op == "custom_call" || op == "composite")
    return parseCall(parser, op, state);
  if (llvm::is_contained({"while", "case", "if"}, op))
    return parser.emitError(parser.getNameLoc())
           << "is control flow, which is not compiled; " << adviceForOp(name);
  Items items;
  bool bracket = succeeded(parser.parseOptionalLParen());
  if (parseItems(parser, op, items, state.attributes) || (bracket && parser.parseRParen()) ||
      parser.parseOptionalAttrDict(state.attributes) || finish(parser, op, items, state))
    return failure();
  Builder &b = parser.getBuilder();
  if (op == "compare" && !items.words.empty()) {
    state.attributes.set("comparison_direction", b.getStringAttr(items.words[0]));
    if (items.words.size() > 1)
      state.attributes.set("compare_type", b.getStringAttr(items.words[1]));
  } else if (!items.words.empty()) {
    return parser.emitError(parser.getNameLoc())
           << "has the word '" << items.words[0]
           << "', which this reader does not know; print the module in generic form";
  }
  return success();
}
