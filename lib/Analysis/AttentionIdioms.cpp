//===- AttentionIdioms.cpp - Names for functions of attention ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Derives the name of a mask from its formula (MaskFormula.h). In the following table, a row q may
// read a key k if the condition on the left holds, where n and w are constants:
//
//   q >= k                causal                  q + (Sk - Sq) >= k    causal to the end
//   k >= q - w            window of w + 1         k < n                 first n keys
//   q / n == k / n        chunks of n             causal or first n     prefix-LM with n keys
//   data[q] == data[k]    document                window or first n     window, or n sink keys
//
// Derives the names of the operations that score_mod applies to the score, beginning with the last
// operation. In the following table, the value x depends on the score, and the value m does not:
//
//   c · tanh(x / c)       softcap c               x + m[h] · (k - q)    ALiBi
//   x + t[.., f(k - q)]   relative bias           x + t[b, h, q, k]     bias of each score
//   x · m                 scale                   select(c, x, -big)    mask in the score
//
// Only messages contain the names. Code generation does not use them.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/AttentionIdioms.h"
#include "MaskFormula.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;
using Symbol = TileExpr::Symbol;

static SmallVector<int64_t> extentsOf(AttentionOp op) {
  ArrayRef<int64_t> q = cast<RankedTensorType>(op.getQ().getType()).getShape();
  return {q[0], q[1], q[2], cast<RankedTensorType>(op.getK().getType()).getDimSize(2)};
}

namespace {
/// The sum `row · q + column · k + offset`. `hasRest` is true if the sum has further terms besides
/// these three.
struct Linear {
  int64_t row = 0, column = 0, offset = 0;
  bool hasRest = false;
};

class MaskNames {
public:
  explicit MaskNames(AttentionOp op) : extents(extentsOf(op)), reader(op.getMaskMod(), extents) {
    formula = reader.read(op.getMaskMod().front().getTerminator()->getOperand(0));
  }
  std::string name() { return nameOf(formula); }

private:
  std::string nameOf(const MaskFormula &f);
  std::string nameAtom(TileExpr atom);
  std::string nameChunks(TileExpr atom, bool isEqual);
  std::string nameEquation(TileExpr atom);
  std::string nameUnknown(const MaskFormula &f);
  std::string nameAll(ArrayRef<MaskFormula> parts);
  std::string nameAny(ArrayRef<MaskFormula> parts);

  SmallVector<int64_t> extents;
  MaskReader reader;
  MaskFormula formula = MaskFormula::of(true);
};
} // namespace

static Linear linearOf(TileExpr atom) {
  Linear linear;
  linear.offset = atom.offset();
  for (auto &[factor, term] : atom.terms())
    if (term.kind() == TileExpr::Kind::Symbol && term.asSymbol() == Symbol::Row)
      linear.row = factor;
    else if (term.kind() == TileExpr::Kind::Symbol && term.asSymbol() == Symbol::Column)
      linear.column = factor;
    else
      linear.hasRest = true;
  return linear;
}

static std::string textOf(TileExpr atom) {
  std::string text;
  llvm::raw_string_ostream os(text);
  atom.print(os, "t");
  return text + " >= 0";
}

/// Returns the name of `atom >= 0` or, if `isEqual` is set, of `atom == 0`. Returns an empty name
/// if `atom` is not of the form q / n - k / n.
std::string MaskNames::nameChunks(TileExpr atom, bool isEqual) {
  TileExpr row, column;
  for (auto &[factor, term] : atom.terms()) {
    if (term.kind() != TileExpr::Kind::FloorDiv || std::abs(factor) != 1)
      return "";
    Linear inner = linearOf(term.operands()[0]);
    if (inner.hasRest || inner.offset != 0 || std::abs(inner.row + inner.column) != 1)
      return "";
    (inner.row ? row : column) = term;
  }
  if (!row || !column || row.divisor() != column.divisor() || atom.offset() != 0)
    return "";
  return (isEqual ? "chunks of " : "causal by blocks of ") + std::to_string(row.divisor());
}

std::string MaskNames::nameAtom(TileExpr atom) {
  Linear a = linearOf(atom);
  std::string n = std::to_string(a.offset + 1);
  if (atom.contains([](TileExpr e) { return e.kind() == TileExpr::Kind::Opaque; }))
    return "data compared";
  if (a.hasRest) {
    if (!a.row && !a.column &&
        llvm::all_of(atom.terms(), [](auto &t) { return t.expr.kind() == TileExpr::Kind::Scalar; }))
      return "a flag per batch or head";
    bool isLength = atom.terms().size() == 2 && a.row == 0 && a.column == -1;
    std::string chunks = nameChunks(atom, false);
    return isLength ? "first keys, by a length" : chunks.empty() ? textOf(atom) : chunks;
  }
  if (a.row == 1 && a.column == -1) {
    if (a.offset == 0)
      return "causal";
    if (a.offset == extents[3] - extents[2])
      return "causal to the end";
    return a.offset > 0 ? "up to " + std::to_string(a.offset) + " keys ahead"
                        : "keys at least " + std::to_string(-a.offset) + " back";
  }
  if (a.row == -1 && a.column == 1)
    return a.offset < 0 ? "keys at least " + std::to_string(-a.offset) + " ahead"
                        : "window of " + n;
  if (a.row == 0 && a.column == -1)
    return "first " + n + " keys";
  if (a.row == 0 && a.column == 1)
    return "keys from " + std::to_string(-a.offset);
  return textOf(atom);
}

std::string MaskNames::nameUnknown(const MaskFormula &f) {
  if (!f.source)
    return "data";
  std::string negation = f.negated ? "not " : "";
  if (auto cmp = f.source.getDefiningOp<arith::CmpIOp>()) {
    const RegionDependence &dependence = reader.getDependence();
    Dependence lhs = dependence.of(cmp.getLhs()), rhs = dependence.of(cmp.getRhs());
    bool isSides =
        (lhs | rhs) == Dependence::Both && lhs != Dependence::Both && rhs != Dependence::Both;
    if (isSides && cmp.getPredicate() == arith::CmpIPredicate::eq)
      return f.negated ? "other documents" : "document";
    return isSides ? "data of row and key compared" : negation + "data compared";
  }
  Value source = f.source;
  if (auto cmp = source.getDefiningOp<arith::CmpFOp>())
    source = cmp.getLhs();
  return negation + (source.getDefiningOp<tensor::ExtractOp>() ? "table" : "data");
}

/// Returns the name of the equation `atom == 0`, or an empty name if the equation has no common
/// name.
std::string MaskNames::nameEquation(TileExpr atom) {
  auto terms = atom.terms();
  bool isData = terms.size() == 2 && terms[0].factor == -terms[1].factor && atom.offset() == 0;
  for (auto &[factor, term] : terms)
    isData &= term.kind() == TileExpr::Kind::Opaque;
  if (isData && (reader.getDependence().of(terms[0].expr.value()) |
                 reader.getDependence().of(terms[1].expr.value())) == Dependence::Both)
    return "document";
  return nameChunks(atom, true);
}

std::string MaskNames::nameAll(ArrayRef<MaskFormula> parts) {
  SmallVector<std::string> names;
  for (unsigned i = 0; i < parts.size(); ++i) {
    // The conditions a >= 0 and -a >= 0 together mean a == 0.
    bool isEquation = i + 1 < parts.size() && parts[i].kind == MaskFormula::Atom &&
                      parts[i + 1].kind == MaskFormula::Atom &&
                      parts[i].atom == parts[i + 1].atom * -1;
    std::string equation = isEquation ? nameEquation(parts[i].atom) : "";
    if (!equation.empty()) {
      names.push_back(equation);
      ++i;
      continue;
    }
    std::string name = nameOf(parts[i]);
    names.push_back(parts[i].kind == MaskFormula::Or && name.find(" or ") != std::string::npos
                        ? "(" + name + ")"
                        : name);
  }
  return llvm::join(names, ", ");
}

std::string MaskNames::nameAny(ArrayRef<MaskFormula> parts) {
  SmallVector<std::string> names =
      llvm::map_to_vector(parts, [&](const MaskFormula &p) { return nameOf(p); });
  auto startsWith = [&](StringRef prefix) {
    return llvm::find_if(names, [&](StringRef name) { return name.starts_with(prefix); });
  };
  auto *first = startsWith("first "), *causal = startsWith("causal"),
       *window = startsWith("window of ");
  if (names.size() == 2 && first != names.end() && causal != names.end())
    return StringRef(*first).contains("length") ? "prefix-LM"
                                                : "prefix-LM with " + first->substr(6);
  if (first != names.end() && window != names.end() && !StringRef(*first).contains("length")) {
    std::string count = first->substr(6);
    *first = count.substr(0, count.size() - 4) + "sink keys";
  }
  for (auto [name, part] : llvm::zip_equal(names, parts))
    if (part.kind == MaskFormula::And)
      name = "(" + name + ")";
  return llvm::join(names, " or ");
}

std::string MaskNames::nameOf(const MaskFormula &f) {
  switch (f.kind) {
  case MaskFormula::True:
    return "";
  case MaskFormula::False:
    return "everything masked";
  case MaskFormula::Unknown:
    return nameUnknown(f);
  case MaskFormula::Atom:
    return nameAtom(f.atom);
  case MaskFormula::And:
    return nameAll(f.parts);
  case MaskFormula::Or:
    return nameAny(f.parts);
  }
  llvm_unreachable("all kinds are above");
}

std::string fsdp::nameMask(AttentionOp op) {
  return op.getMaskMod().empty() ? "" : MaskNames(op).name();
}

namespace {
class ScoreNames {
public:
  explicit ScoreNames(AttentionOp op) : region(op.getScoreMod()), reader(region, extentsOf(op)) {
    // Collect the values that depend on the score.
    for (Operation &o : region.front())
      if (llvm::any_of(o.getOperands(), [&](Value v) { return holdsScore(v); }))
        scored.insert(o.result_begin(), o.result_end());
  }
  std::string name();

private:
  bool holdsScore(Value v) { return v == region.getArgument(0) || scored.contains(v); }
  /// Returns true if `v` can be computed from k - q and from values that depend on neither k nor q.
  bool isOfDistance(Value v);
  std::string nameTerm(Value m);
  std::string nameTable(tensor::ExtractOp extract);
  /// Returns the name of the operation that `op` applies to the score, and the operand of `op` that
  /// depends on the score.
  std::pair<std::string, Value> step(Operation *op);
  std::optional<std::pair<double, Value>> matchSoftcap(Operation *op);

  Region &region;
  MaskReader reader;
  DenseSet<Value> scored;
};
} // namespace

static std::optional<double> constantOf(Value v) {
  FloatAttr attr;
  return matchPattern(v, m_Constant(&attr)) ? std::optional(attr.getValueAsDouble()) : std::nullopt;
}

static std::string shortest(double v) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", v);
  return text;
}

bool ScoreNames::isOfDistance(Value v) {
  if (reader.getDependence().of(v) == Dependence::None)
    return true;
  if (v.getType().isIntOrIndex())
    if (TileExpr expr = reader.readInteger(v)) {
      Linear linear = linearOf(expr);
      bool isLeaf = expr.kind() == TileExpr::Kind::Opaque;
      if (!isLeaf && !linear.hasRest)
        return linear.row + linear.column == 0;
    }
  Operation *op = v.getDefiningOp();
  return op && !isa<tensor::ExtractOp>(op) &&
         llvm::all_of(op->getOperands(), [&](Value o) { return isOfDistance(o); });
}

std::string ScoreNames::nameTable(tensor::ExtractOp extract) {
  static constexpr StringRef names[] = {"batch", "head", "row", "key"};
  SmallVector<StringRef> dims;
  bool isRelative = false, isOther = false;
  for (Value index : extract.getIndices()) {
    auto argument = dyn_cast<BlockArgument>(index);
    if (argument)
      dims.push_back(names[argument.getArgNumber() - 1]);
    else if (reader.getDependence().of(index) == Dependence::Both && isOfDistance(index))
      isRelative = true;
    else if (reader.getDependence().of(index) != Dependence::None)
      isOther = true;
  }
  if (isRelative && !isOther)
    return "relative bias";
  return isOther ? "gathered bias" : dims.empty() ? "bias" : "bias per " + llvm::join(dims, ", ");
}

/// Returns the name of the addend `m`, which does not depend on the score.
std::string ScoreNames::nameTerm(Value m) {
  Operation *op = m.getDefiningOp();
  while (isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(op))
    op = op->getOperand(0).getDefiningOp();
  if (auto extract = dyn_cast_or_null<tensor::ExtractOp>(op))
    return nameTable(extract);
  Dependence dependence = reader.getDependence().of(m);
  if (isa_and_nonnull<arith::MulFOp>(op))
    for (unsigned i : {0, 1})
      if (reader.getDependence().of(op->getOperand(i)) == Dependence::None &&
          dependence == Dependence::Both && isOfDistance(op->getOperand(1 - i)))
        return "ALiBi";
  if (dependence == Dependence::Both && isOfDistance(m))
    return "bias by distance";
  return "bias";
}

/// Returns c and x if `op` computes c · tanh(x / c), and else nothing.
std::optional<std::pair<double, Value>> ScoreNames::matchSoftcap(Operation *op) {
  if (!isa<arith::MulFOp>(op))
    return std::nullopt;
  for (unsigned i : {0, 1}) {
    std::optional<double> cap = constantOf(op->getOperand(1 - i));
    auto tanh = op->getOperand(i).getDefiningOp<math::TanhOp>();
    Operation *inner = tanh ? tanh.getOperand().getDefiningOp() : nullptr;
    if (!cap || !isa_and_nonnull<arith::MulFOp, arith::DivFOp>(inner))
      continue;
    bool divides = isa<arith::DivFOp>(inner);
    for (unsigned j : {1, 0}) {
      std::optional<double> c = divides && j == 0 ? std::nullopt : constantOf(inner->getOperand(j));
      if (c && std::abs((divides ? *c : 1 / *c) / *cap - 1) < 1e-5)
        return std::pair(*cap, inner->getOperand(1 - j));
    }
  }
  return std::nullopt;
}

std::pair<std::string, Value> ScoreNames::step(Operation *op) {
  if (auto softcap = matchSoftcap(op))
    return {"softcap " + shortest(softcap->first), softcap->second};
  unsigned holding = 0, last = 0;
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (holdsScore(operand))
      ++holding, last = i;
  if (holding != 1)
    return {"other", Value()};
  Value score = op->getOperand(last);
  if (isa<arith::AddFOp, arith::SubFOp>(op))
    return {nameTerm(op->getOperand(1 - last)), score};
  if (isa<arith::MulFOp, arith::DivFOp>(op) && (last == 0 || isa<arith::MulFOp>(op))) {
    Dependence by = reader.getDependence().of(op->getOperand(1 - last));
    return {by == Dependence::None ? "scale" : "gate", score};
  }
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    std::optional<double> other = constantOf(op->getOperand(3 - last));
    return {other && *other <= -1e4 ? "mask in the score" : "choice", score};
  }
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return {"", score};
  return {op->getName().stripDialect().str(), score};
}

std::string ScoreNames::name() {
  SmallVector<std::string> names;
  Value v = region.front().getTerminator()->getOperand(0);
  while (v && v != region.getArgument(0)) {
    if (!holdsScore(v)) {
      names.push_back("no score");
      break;
    }
    auto [name, inner] = step(v.getDefiningOp());
    if (!name.empty())
      names.push_back(name);
    v = inner;
  }
  std::reverse(names.begin(), names.end());
  return llvm::join(names, ", ");
}

std::string fsdp::nameScore(AttentionOp op) {
  return op.getScoreMod().empty() ? "" : ScoreNames(op).name();
}
