//===- ParseModel.cpp - Read an exported model ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A model may be written by an exporter with another version of MLIR, and in dialects that are not
// linked here. If the parser fails, a second error explains the probable cause.
//
// 1. Check the limits of the text (CheckLimits.cpp).
// 2. Parse the text. If the parser crashes, an error names the file (ParserGuard).
// 3. Check the limits of the IR, because a bytecode file may exceed them.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Import/ParseModel.h"
#include "Interface/Advice.h"
#include "Interface/CheckLimits.h"
#include "fsdp/Analysis/ParserGuard.h"
#include "fsdp/IR/CheckTexts.h"
#include "fsdpcommon/InputStream.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr StringRef textOfAnotherVersion =
    "the text was written by another version of MLIR: this compiler reads that of LLVM 22; export "
    "with a matching release, or in generic form (print_generic_op_form=True)";

/// Returns the name of the registered op of the same dialect that is most similar to `op`. Returns
/// an empty string if all edit distances are above 2.
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

/// Returns an explanation of the parser error `message`. The explanation names a similar op, gives
/// advice on a dialect, or states that the MLIR version differs. Returns an empty string for
/// unknown messages.
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

std::unique_ptr<llvm::MemoryBuffer> fsdp::openModel(StringRef path, uint64_t most,
                                                    std::string &why) {
  llvm::sys::fs::file_status status;
  if (path == "-" || llvm::sys::fs::status(path, status) ||
      status.type() == llvm::sys::fs::file_type::regular_file ||
      status.type() == llvm::sys::fs::file_type::directory_file)
    return openInputFile(path, &why);
  std::string bytes;
  std::string problem = fsdpcommon::readInput(path.str(), most, bytes);
  if (!problem.empty()) {
    why = "'" + path.str() + "': " + problem;
    return nullptr;
  }
  return llvm::MemoryBuffer::getMemBufferCopy(bytes, path);
}

OwningOpRef<ModuleOp> fsdp::parseModel(StringRef path, MLIRContext *context,
                                       const ParseLimits &limits) {
  uint64_t bytes = 0;
  if (path != "-" && !llvm::sys::fs::file_size(path, bytes) &&
      failed(checkFileSize(bytes, path, limits, context)))
    return nullptr;
  std::string whyNot;
  std::unique_ptr<llvm::MemoryBuffer> file = openModel(path, limits.bytes, whyNot);
  if (!file) {
    emitError(UnknownLoc::get(context)) << whyNot;
    return nullptr;
  }
  return parseModel(std::move(file), context, limits);
}

OwningOpRef<ModuleOp> fsdp::parseModel(std::unique_ptr<llvm::MemoryBuffer> file,
                                       MLIRContext *context, const ParseLimits &limits) {
  StringRef text = file->getBuffer();
  llvm::SourceMgr sources;
  std::string name = file->getBufferIdentifier().str();
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  if (failed(checkFileSize(text.size(), name, limits, context)))
    return nullptr;
  constexpr StringLiteral bytecode = "ML\xefR";
  if (!text.starts_with(bytecode) && failed(checkText(text, name, sources, limits, context)))
    return nullptr;
  // Allow unknown dialects, because RefuseForeign.cpp emits errors for their ops in generic form.
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
      return failure(); // the outer handlers print the diagnostic
    });
    ParserGuard guard("", name, text.size(), limits.seconds);
    module = parseSourceFile<ModuleOp>(sources, ParserConfig(context));
  }
  if (!module && !advice.empty())
    emitError(where) << advice;
  context->allowUnregisteredDialects(allowed);
  if (module && (failed(checkModule(*module, limits)) || failed(checkTexts(*module)))) {
    eraseDeep(module.release());
    return nullptr;
  }
  return module;
}
