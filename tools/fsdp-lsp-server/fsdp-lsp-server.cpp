//===- fsdp-lsp-server.cpp - Editor support for our IR ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs MLIR's language server with the fsdp dialect registered. The text of --help describes how
// editors are set up.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Pipelines/Registration.h"
#include "fsdp/Tools/ToolMain.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

static constexpr llvm::StringLiteral overview =
    R"(fsdp-lsp-server: editor support for .mlir files with the fsdp dialect

  Speaks the language server protocol on stdin and stdout: an editor starts it. It shows errors while
  one types, the definition and uses of a value, an op's documentation and types, and completes names.

SET-UP
  VS Code: install the extension "MLIR" (llvm-vs-code-extensions.vscode-mlir), and in settings.json
    "mlir.server_path": "/path/to/build/bin/fsdp-lsp-server"

  Neovim 0.11 and later, in init.lua:
    vim.lsp.config("fsdp", { cmd = { "/path/to/build/bin/fsdp-lsp-server" }, filetypes = { "mlir" } })
    vim.lsp.enable("fsdp")

  Emacs with eglot:
    (add-to-list 'eglot-server-programs '(mlir-mode . ("/path/to/build/bin/fsdp-lsp-server")))

OPTIONS
  --log=error|info|verbose   level of the log on stderr (default info)
  --pretty                   indent the JSON
  --lit-test                 short for --input-style=delimited --pretty --log=verbose: sessions as tests
  --input-style=standard|delimited
                             messages with their length before them (default), or between lines of // -----
  --version

Exit codes: 0 the editor ended the session, 1 the session or the command line was wrong.
)";

int main(int argc, char **argv) {
  mlir::fsdp::startTool("fsdp-lsp-server");
  if (mlir::fsdp::printedHelp(argc, argv, "fsdp-lsp-server", overview))
    return 0;
  mlir::DialectRegistry registry;
  mlir::fsdp::registerDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
