//===- FuzzImport.cpp - Fuzz the import of models ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses text as fsdp-compile does, and runs the passes of Import on what is accepted. Bytecode is
// skipped: MLIR's reader, which is not instrumented, writes outside its memory on damaged bytecode,
// and AddressSanitizer then stops the process at a later, unrelated place.
//
// A crash of MLIR's parser is no finding: fsdp-compile reports it and ends (ParserGuard). Neither
// is an allocation of more than 1 GiB by the parser, which ParserGuard turns into such a crash.
// After a crash, the memory of the process can be in any state. So the target, which defines the
// `_exit` that ParserGuard calls, adds the hash of the input to the file FSDP_FUZZ_SKIP and ends
// with exit code 76. scripts/fuzz then starts the target again, and the target skips the inputs of
// that file.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/FSDP.h"
#include "fsdp/Import/ParseModel.h"
#include "fsdp/Import/Passes.h"
#include "fsdp/Options/Options.h"
#include "fuzz/Fuzzing.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/xxhash.h"
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sanitizer/allocator_interface.h>
#include <set>
#include <sys/syscall.h>
#include <unistd.h>

using namespace mlir;

static volatile bool isParsing = false;
static uint64_t currentHash = 0;
static constexpr int crashedParser = 76;

/// Returns the name of the file of hashes of inputs that are skipped, or null.
static const char *skipFile() { return std::getenv("FSDP_FUZZ_SKIP"); }

static std::set<uint64_t> &skippedInputs() {
  static std::set<uint64_t> hashes;
  return hashes;
}

/// Called by ParserGuard's handler of signals.
extern "C" void _exit(int status) {
  if (isParsing) {
    status = crashedParser;
    int file = skipFile() ? open(skipFile(), O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;
    [[maybe_unused]] ssize_t written = write(file, &currentHash, sizeof currentHash);
  }
  for (;;)
    syscall(SYS_exit_group, status);
}

/// Called after each allocation. Ends the parser as the limit of ParserGuard does, which sanitizers
/// do not allow.
static void limitAllocation(const volatile void *, size_t size) {
  if (isParsing && size > size_t(1) << 30)
    raise(SIGABRT);
}

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  __sanitizer_install_malloc_and_free_hooks(limitAllocation, [](const volatile void *) {});
  if (FILE *file = skipFile() ? std::fopen(skipFile(), "re") : nullptr) {
    uint64_t hash = 0;
    while (std::fread(&hash, sizeof hash, 1, file) == 1)
      skippedInputs().insert(hash);
    std::fclose(file);
  }
  return 0;
}

namespace {
/// A context and the passes of Import. Making them takes longer than a run.
struct Importer {
  Importer() : context(getRegistry(), MLIRContext::Threading::DISABLED), passes(&context) {
    context.getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
      std::string text = diagnostic.str();
      return success();
    });
    fsdp::buildImportPipeline(passes, fsdp::StepOptions());
  }

  static const DialectRegistry &getRegistry() {
    static DialectRegistry *registry = [] {
      auto *all = new DialectRegistry;
      registerAllDialects(*all);
      registerAllExtensions(*all);
      all->insert<fsdp::FSDPDialect>();
      return all;
    }();
    return *registry;
  }

  MLIRContext context;
  PassManager passes;
  unsigned runs = 0;
};
} // namespace

/// Parses as fsdp-compile does, with low limits. Returns null if the input is refused.
static OwningOpRef<ModuleOp> parse(llvm::StringRef text, MLIRContext &context) {
  fsdp::ParseLimits limits;
  limits.nesting = 32;
  limits.ops = 2000;
  limits.seconds = 3;
  isParsing = true;
  OwningOpRef<ModuleOp> module =
      fsdp::parseModel(llvm::MemoryBuffer::getMemBufferCopy(text, "fuzz.mlir"), &context, limits);
  isParsing = false;
  return module;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  if (text.starts_with("ML\xefR"))
    return -1;
  currentHash = llvm::xxh3_64bits(text);
  if (skippedInputs().count(currentHash))
    return 0;
  constexpr unsigned mostRuns = 500; // the context keeps every attribute
  static Importer *importer = nullptr;
  if (importer && importer->runs == mostRuns) {
    delete importer;
    importer = nullptr;
  }
  if (!importer)
    importer = new Importer;
  ++importer->runs;
  OwningOpRef<ModuleOp> module = parse(text, importer->context);
  if (module)
    (void)importer->passes.run(*module);
  return 0;
}
