//===- ParseModel.cpp - Read a foreign file ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Files come from exporters built on other versions of MLIR, with dialects that
// are not linked here. The parser's own errors stay; one more says what they mean.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Import/Pipeline.h"
#include "Advice.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr StringRef textOfAnotherVersion =
    "the text is of another version of MLIR: this compiler reads that of LLVM 22; export with a matching release, or in "
    "generic form (print_generic_op_form=True)";

/// What a parser error says about where the file comes from; empty when nothing.
static std::string explain(StringRef message) {
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
  // Ops and attributes of unknown dialects in generic form get located errors later.
  bool allowed = context->allowsUnregisteredDialects();
  context->allowUnregisteredDialects(true);
  OwningOpRef<ModuleOp> module;
  std::string advice;
  Location where = UnknownLoc::get(context);
  {
    ScopedDiagnosticHandler listener(context, [&](Diagnostic &diag) {
      if (diag.getSeverity() == DiagnosticSeverity::Error && advice.empty()) {
        advice = explain(diag.str());
        where = diag.getLocation();
      }
      return failure(); // whoever listens outside shows it
    });
    module = parseSourceFile<ModuleOp>(path, ParserConfig(context));
  }
  if (!module && !advice.empty())
    emitError(where) << advice;
  context->allowUnregisteredDialects(allowed);
  return module;
}
