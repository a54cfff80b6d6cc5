//===- ParseModel.h - Reading a model from a file ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_IMPORT_PARSEMODEL_H
#define FSDP_IMPORT_PARSEMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mlir::fsdp {

/// Limits on a model. The nesting is limited because the parser and the passes recurse once per
/// level. The number of ops is limited because each op takes memory.
struct ParseLimits {
  int64_t bytes = INT64_C(16) << 30;
  /// Largest depth to which brackets in the text, regions, attributes and types may be nested. An
  /// affine map may have up to 4 · `nesting` operators.
  int64_t nesting = 256;
  int64_t ops = 1'000'000;
  /// Limit on the CPU time of the parser in seconds. The limit increases by one second per MiB of
  /// the file.
  unsigned seconds = 5;
  /// Whether error messages name the options of fsdp-compile that raise the limits.
  bool areOptions = false;
};

/// Opens a file or a pipe. The path "-" stands for the standard input. If `path` is a named pipe,
/// the time to wait for a writer is limited (fsdpcommon/InputStream.h). Returns null and sets `why`
/// if `path` cannot be opened, or if a pipe has more than `most` bytes.
std::unique_ptr<llvm::MemoryBuffer> openModel(StringRef path, uint64_t most, std::string &why);

/// Reads the model in the file `path`, which contains text or bytecode. Returns null after an
/// error. If this version of MLIR cannot parse the file, the error has notes that explain how to
/// export a model that it can parse.
OwningOpRef<ModuleOp> parseModel(StringRef path, MLIRContext *context,
                                 const ParseLimits &limits = {});
/// Reads a model that is already in memory. A zero byte must follow the contents of `file`.
OwningOpRef<ModuleOp> parseModel(std::unique_ptr<llvm::MemoryBuffer> file, MLIRContext *context,
                                 const ParseLimits &limits = {});

/// Registers two dialects with which MLIR can parse the ops of StableHLO and CHLO, in generic and
/// in custom form. The dialects do not register these ops. The pass fsdp-lower-stablehlo identifies
/// the parsed ops by their names.
void registerHloDialects(DialectRegistry &registry);

} // namespace mlir::fsdp

#endif // FSDP_IMPORT_PARSEMODEL_H
