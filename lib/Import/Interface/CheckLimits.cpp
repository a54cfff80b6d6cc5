//===- CheckLimits.cpp - Limits of a model's file ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Text is checked before it is parsed, because the parser recurses for each bracket and for each
// operator of an affine expression. The IR is checked after parsing for two reasons: it may come
// from bytecode, and printing, walks and affine simplification recurse too.
//
//   module            count ops; the depth of regions, on a stack of our own
//   attribute, type   depth of each once (they are unique), after the depths of their elements
//   affine map, set   depth of each expression once, likewise
//
// The time is linear in the size of the text and in the numbers of ops and attributes.
//
//===----------------------------------------------------------------------===//

#include "Interface/CheckLimits.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/IntegerSet.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::fsdp;

static InFlightDiagnostic advise(InFlightDiagnostic error, StringRef option,
                                 const ParseLimits &limits) {
  if (limits.areOptions)
    error.attachNote() << option << " raises this limit";
  return error;
}

LogicalResult fsdp::checkFileSize(uint64_t bytes, StringRef name, const ParseLimits &limits,
                                  MLIRContext *context) {
  if (bytes <= static_cast<uint64_t>(limits.bytes))
    return success();
  return advise(emitError(FileLineColLoc::get(context, name, 0, 0))
                    << "expected a file of at most " << limits.bytes << " bytes, found " << bytes,
                "--max-input-bytes", limits);
}

/// Returns the first opening bracket that is nested in at least `most` others, or null. Skips
/// strings and comments, and the '<' and '>' of comparisons and arrows.
static const char *findTooDeep(StringRef text, int64_t most) {
  int64_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i], next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        i += text[i] == '\\';
    } else if (c == '/' && next == '/') {
      i = std::min(text.find('\n', i), text.size());
    } else if ((c == '-' && next == '>') || (StringRef("<>").contains(c) && next == '=')) {
      ++i;
    } else if (StringRef("([{<").contains(c)) {
      if (++depth > most)
        return text.data() + i;
    } else if (StringRef(")]}>").contains(c)) {
      depth -= depth > 0;
    }
  }
  return nullptr;
}

/// Finds the first affine map or set with more than `most` operators. Returns a pointer to the
/// first operator after `most` operators. Returns null if no map or set has so many operators.
static const char *findTooLong(StringRef text, int64_t most) {
  size_t next = 0;
  auto findBegin = [&] {
    return std::min(text.find("affine_map<", next), text.find("affine_set<", next));
  };
  for (size_t begin = findBegin(); begin != StringRef::npos; begin = findBegin()) {
    int64_t depth = 0, operators = 0;
    for (next = begin + StringLiteral("affine_map").size(); next < text.size(); ++next) {
      char c = text[next];
      bool isArrow =
          c == '>' && (text[next - 1] == '-' || (next + 1 < text.size() && text[next + 1] == '='));
      depth += c == '<' && text.substr(next + 1, 1) != "=";
      if (c == '>' && !isArrow && --depth == 0)
        break;
      operators += c == '+' || c == '-' || c == '*' || text.substr(next).starts_with("div ") ||
                   text.substr(next).starts_with(" mod ");
      if (operators > most)
        return text.data() + next;
      if (c == '\n' && depth == 0)
        break;
    }
  }
  return nullptr;
}

LogicalResult fsdp::checkText(StringRef text, StringRef name, const llvm::SourceMgr &sources,
                              const ParseLimits &limits, MLIRContext *context) {
  auto locate = [&](const char *at) {
    auto [line, column] = sources.getLineAndColumn(llvm::SMLoc::getFromPointer(at));
    return FileLineColLoc::get(context, name, line, column);
  };
  if (const char *bracket = findTooDeep(text, limits.nesting))
    return advise(emitError(locate(bracket))
                      << "expected brackets nested at most " << limits.nesting << " deep",
                  "--max-nesting", limits);
  if (const char *op = findTooLong(text, 4 * limits.nesting))
    return advise(emitError(locate(op)) << "expected at most " << 4 * limits.nesting
                                        << " operators in an affine map or set",
                  "--max-nesting", limits);
  return success();
}

namespace {
/// An attribute, a type or an affine expression. The MLIR context contains each such object once.
struct Unique {
  enum class Kind { attribute, type, expression } kind;
  const void *pointer;

  Unique(Attribute attribute) : kind(Kind::attribute), pointer(attribute.getAsOpaquePointer()) {}
  Unique(Type type) : kind(Kind::type), pointer(type.getAsOpaquePointer()) {}
  Unique(AffineExpr expr) : kind(Kind::expression), pointer(expr.getAsOpaquePointer()) {}
};

/// Computes depths. The depth of an object is 1 + the largest depth of the objects to which it
/// refers. Visits each object once, with an explicit stack.
class Depths {
public:
  /// Returns the depth of `object`. An object that refers to no other object has depth 1.
  int64_t of(Unique object);

  /// Returns the greatest depth of an expression in the maps and sets that the method of() has
  /// visited.
  int64_t deepestExpression() {
    int64_t deepest = 0;
    // Expressions contain no maps, so the method of() does not append to `expressions` here.
    for (AffineExpr expr : expressions)
      deepest = std::max(deepest, of(expr));
    expressions.clear();
    return deepest;
  }

private:
  SmallVector<Unique> elementsOf(Unique object);

  struct Entry {
    Unique object;
    bool isEntered;
  };
  SmallVector<Entry> stack;
  /// Depths of the visited objects. The depth of an object on the stack is 0.
  llvm::DenseMap<const void *, int64_t> depths;
  SmallVector<AffineExpr> expressions; ///< expressions in visited maps and sets, whose depths are
                                       ///< not computed yet
};
} // namespace

SmallVector<Unique> Depths::elementsOf(Unique object) {
  SmallVector<Unique> elements;
  if (object.kind == Unique::Kind::expression) {
    auto expr = AffineExpr(static_cast<AffineExpr::ImplType *>(const_cast<void *>(object.pointer)));
    if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr))
      elements = {binary.getLHS(), binary.getRHS()};
    return elements;
  }
  auto addAttribute = [&](Attribute attribute) {
    if (attribute)
      elements.push_back(attribute);
  };
  auto addType = [&](Type type) {
    if (type)
      elements.push_back(type);
  };
  if (object.kind == Unique::Kind::type) {
    Type::getFromOpaquePointer(object.pointer).walkImmediateSubElements(addAttribute, addType);
    return elements;
  }
  Attribute attribute = Attribute::getFromOpaquePointer(object.pointer);
  attribute.walkImmediateSubElements(addAttribute, addType);
  if (auto map = dyn_cast<AffineMapAttr>(attribute))
    llvm::append_range(expressions, map.getValue().getResults());
  else if (auto set = dyn_cast<IntegerSetAttr>(attribute))
    llvm::append_range(expressions, set.getValue().getConstraints());
  return elements;
}

int64_t Depths::of(Unique object) {
  stack.push_back({object, false});
  while (!stack.empty()) {
    auto [top, isEntered] = stack.back();
    if (!isEntered && !depths.try_emplace(top.pointer, 0).second) {
      stack.pop_back();
      continue;
    }
    SmallVector<Unique> elements = elementsOf(top);
    if (!isEntered) {
      stack.back().isEntered = true;
      for (Unique element : elements)
        if (!depths.contains(element.pointer))
          stack.push_back({element, false});
      continue;
    }
    // A type may contain itself. The depth of an element that is still on the stack counts as 0.
    int64_t deepest = 0;
    for (Unique element : elements)
      deepest = std::max(deepest, depths.lookup(element.pointer));
    depths[top.pointer] = deepest + 1;
    stack.pop_back();
  }
  return depths.lookup(object.pointer);
}

/// Returns the ops of a module and their nesting depths. An op precedes the ops in its regions.
/// Stops after `most` ops.
static SmallVector<std::pair<Operation *, int64_t>> listOps(ModuleOp module, int64_t most) {
  SmallVector<std::pair<Operation *, int64_t>> ops = {{module, 0}};
  for (size_t next = 0; next < ops.size() && static_cast<int64_t>(ops.size()) <= most; ++next) {
    auto [op, depth] = ops[next];
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Operation &inner : block)
          ops.push_back({&inner, depth + 1});
  }
  return ops;
}

LogicalResult fsdp::checkModule(ModuleOp module, const ParseLimits &limits) {
  auto ops = listOps(module, limits.ops);
  if (static_cast<int64_t>(ops.size()) > limits.ops)
    return advise(emitError(module.getLoc())
                      << "expected at most " << limits.ops << " operations, found more",
                  "--max-ops", limits);
  Depths depths;
  for (auto [op, depth] : ops) {
    if (depth > limits.nesting)
      return advise(emitError(op->getLoc())
                        << "expected regions nested at most " << limits.nesting << " deep",
                    "--max-nesting", limits);
    int64_t deepest =
        std::max(depths.of(op->getAttrDictionary()), depths.of(LocationAttr(op->getLoc())));
    for (Type type : op->getResultTypes())
      deepest = std::max(deepest, depths.of(type));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          deepest = std::max(
              {deepest, depths.of(argument.getType()), depths.of(LocationAttr(argument.getLoc()))});
    // Emit the error at the module, because the location may itself be nested too deep to print.
    if (deepest > limits.nesting + 2)
      return advise(emitError(module.getLoc()) << "expected attributes, types and locations nested "
                                                  "at most "
                                               << limits.nesting << " deep",
                    "--max-nesting", limits);
    if (depths.deepestExpression() > 4 * limits.nesting)
      return advise(emitError(module.getLoc()) << "expected affine maps and sets with at most "
                                               << 4 * limits.nesting << " nested operators",
                    "--max-nesting", limits);
  }
  return success();
}

void fsdp::eraseDeep(ModuleOp module) {
  auto ops = listOps(module, std::numeric_limits<int64_t>::max());
  for (auto [op, depth] : llvm::reverse(ops)) {
    op->dropAllUses();
    op->erase();
  }
}
