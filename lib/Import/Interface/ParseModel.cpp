//===- ParseModel.cpp - Read an exported model ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Models come from exporters of other versions of MLIR, with dialects that are not linked here.
// After the parser's own error, a second one explains the probable cause. The parser recurses for
// each bracket and for each operator of an affine expression, so text with too many of them is
// rejected first. If the parser crashes on other text, an error names the file (ParserGuard).
//
//===----------------------------------------------------------------------===//

#include "fsdp/Import/ParseModel.h"
#include "Interface/Advice.h"
#include "fsdp/Analysis/ParserGuard.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr StringRef textOfAnotherVersion =
    "the text was written by another version of MLIR: this compiler reads that of LLVM 22; export "
    "with a matching release, or in generic form (print_generic_op_form=True)";

/// Returns the first bracket that is nested deeper than `most`; null if there is none. Ignores
/// strings, comments, comparisons and arrows.
static const char *findTooDeep(StringRef text, unsigned most) {
  unsigned depth = 0;
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

/// Returns operator `most` + 1 of an affine map or set; null if none has more than `most`
/// operators.
static const char *findTooLong(StringRef text, unsigned most) {
  size_t next = 0;
  auto findBegin = [&] {
    return std::min(text.find("affine_map<", next), text.find("affine_set<", next));
  };
  for (size_t begin = findBegin(); begin != StringRef::npos; begin = findBegin()) {
    unsigned depth = 0, operators = 0;
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

/// Emits an error and returns true if the text might exhaust the parser's stack.
static bool refuseDeepText(StringRef text, StringRef name, const llvm::SourceMgr &sources,
                           MLIRContext *context) {
  constexpr unsigned deepest = 256, longest = 1024;
  auto locate = [&](const char *at) {
    auto [line, column] = sources.getLineAndColumn(llvm::SMLoc::getFromPointer(at));
    return FileLineColLoc::get(context, name, line, column);
  };
  if (const char *bracket = findTooDeep(text, deepest)) {
    emitError(locate(bracket)) << "expected brackets nested at most " << deepest << " deep";
    return true;
  }
  if (const char *op = findTooLong(text, longest)) {
    emitError(locate(op)) << "expected at most " << longest << " operators in an affine map or set";
    return true;
  }
  return false;
}

/// Returns the registered op of the same dialect with the most similar name, at an edit distance of
/// at most 2; empty if there is none.
static std::string findSimilar(StringRef op, MLIRContext *context) {
  std::string best;
  unsigned least = 3;
  for (RegisteredOperationName known : context->getRegisteredOperations())
    if (known.getDialectNamespace() == op.split('.').first)
      if (unsigned distance = op.edit_distance(known.getStringRef(), true, least);
          distance < least) {
        least = distance;
        best = known.getStringRef().str();
      }
  return best;
}

/// Returns an explanation of a parser error: a similar op, advice on a dialect, or a different
/// version of MLIR as the cause. Returns an empty string if no explanation applies.
static std::string explain(StringRef message, MLIRContext *context) {
  // Message: custom op 'linalg.contact' is unknown (tried 'func.linalg.contact' as well)
  if (StringRef rest = message; rest.consume_front("custom op '") && rest.contains("is unknown"))
    if (std::string similar =
            findSimilar(rest.take_until([](char c) { return c == '\''; }), context);
        !similar.empty())
      return "did you mean '" + similar + "'?";
  // Message: Dialect `stablehlo' not found for custom op 'stablehlo.add'
  if (message.contains_insensitive("dialect") && message.contains("not found")) {
    StringRef rest = message.drop_front(message.find_first_of("`'") + 1);
    StringRef dialect = rest.take_until([](char c) { return c == '\'' || c == '`'; });
    if (StringRef op = message.rsplit(" op '").second; !op.empty())
      if (StringRef advice = adviceForOp(op.take_until([](char c) { return c == '\''; }));
          !advice.empty())
        return advice.str();
    return adviceForDialect(dialect).str();
  }
  bool old = message.contains("output_shape") || message.contains("is unknown") ||
             message.contains("unregistered") || message.contains("expected 'into'") ||
             message.contains("dispatching");
  return old ? textOfAnotherVersion.str() : "";
}

OwningOpRef<ModuleOp> fsdp::parseModel(StringRef path, MLIRContext *context) {
  std::string whyNot;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(path, &whyNot);
  if (!file) {
    emitError(UnknownLoc::get(context)) << whyNot;
    return nullptr;
  }
  StringRef text = file->getBuffer();
  llvm::SourceMgr sources;
  std::string name = file->getBufferIdentifier().str();
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  constexpr StringLiteral bytecode = "ML\xefR";
  if (!text.starts_with(bytecode) && refuseDeepText(text, name, sources, context))
    return nullptr;
  // RefuseForeign.cpp reports ops of unknown dialects in generic form.
  bool allowed = context->allowsUnregisteredDialects();
  context->allowUnregisteredDialects(true);
  OwningOpRef<ModuleOp> module;
  std::string advice;
  Location where = UnknownLoc::get(context);
  {
    ScopedDiagnosticHandler listener(context, [&](Diagnostic &diag) {
      if (diag.getSeverity() == DiagnosticSeverity::Error && advice.empty()) {
        advice = explain(diag.str(), context);
        where = diag.getLocation();
      }
      return failure(); // the outer handlers report the diagnostic
    });
    ParserGuard guard("", name);
    module = parseSourceFile<ModuleOp>(sources, ParserConfig(context));
  }
  if (!module && !advice.empty())
    emitError(where) << advice;
  context->allowUnregisteredDialects(allowed);
  return module;
}
