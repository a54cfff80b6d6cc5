//===- ParseModel.cpp - Read a foreign file ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Files come from exporters built on other versions of MLIR, with dialects that
// are not linked here. The parser's own errors stay; one more says what they mean.
// The parser calls itself for each bracket: how deep they are nested is counted before.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Import/Pipeline.h"
#include "Advice.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr StringRef textOfAnotherVersion =
    "the text is of another version of MLIR: this compiler reads that of LLVM 22; export with a matching release, or in "
    "generic form (print_generic_op_form=True)";

/// The first bracket that is nested deeper than `most`; null when there is none. Those of strings and
/// comments do not count, nor do comparisons and arrows.
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

/// An op of the same dialect that is spelt almost like this one; empty when there is none.
static std::string findSimilar(StringRef op, MLIRContext *context) {
  std::string best;
  unsigned least = 3;
  for (RegisteredOperationName known : context->getRegisteredOperations())
    if (known.getDialectNamespace() == op.split('.').first)
      if (unsigned distance = op.edit_distance(known.getStringRef(), true, least); distance < least) {
        least = distance;
        best = known.getStringRef().str();
      }
  return best;
}

/// What a parser error says about where the file comes from; empty when nothing.
static std::string explain(StringRef message, MLIRContext *context) {
  // custom op 'linalg.contact' is unknown (tried 'func.linalg.contact' as well)
  if (StringRef rest = message; rest.consume_front("custom op '") && rest.contains("is unknown"))
    if (std::string similar = findSimilar(rest.take_until([](char c) { return c == '\''; }), context); !similar.empty())
      return "did you mean '" + similar + "'?";
  // Dialect `stablehlo' not found for custom op 'stablehlo.add'
  if (message.contains_insensitive("dialect") && message.contains("not found")) {
    StringRef rest = message.drop_front(message.find_first_of("`'") + 1);
    StringRef dialect = rest.take_until([](char c) { return c == '\'' || c == '`'; });
    if (StringRef op = message.rsplit(" op '").second; !op.empty())
      if (StringRef advice = adviceForOp(op.take_until([](char c) { return c == '\''; })); !advice.empty())
        return advice.str();
    return adviceForDialect(dialect).str();
  }
  bool old = message.contains("output_shape") || message.contains("is unknown") || message.contains("unregistered") ||
             message.contains("expected 'into'") || message.contains("dispatching");
  return old ? textOfAnotherVersion.str() : "";
}

OwningOpRef<ModuleOp> fsdp::parseModel(StringRef path, MLIRContext *context) {
  constexpr unsigned deepest = 256;
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
  if (const char *bracket = text.starts_with(bytecode) ? nullptr : findTooDeep(text, deepest)) {
    auto [line, column] = sources.getLineAndColumn(llvm::SMLoc::getFromPointer(bracket));
    emitError(FileLineColLoc::get(context, name, line, column))
        << "expected brackets nested at most " << deepest << " deep";
    return nullptr;
  }
  // Ops and attributes of unknown dialects in generic form get located errors later.
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
      return failure(); // whoever listens outside shows it
    });
    module = parseSourceFile<ModuleOp>(sources, ParserConfig(context));
  }
  if (!module && !advice.empty())
    emitError(where) << advice;
  context->allowUnregisteredDialects(allowed);
  return module;
}
