//===- FuzzImport.cpp - Fuzz the import of models ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses text or bytecode as fsdp-compile does, and runs the passes of Import on what is accepted.
//
// A crash of MLIR's parser is no finding: fsdp-compile reports it and ends (ParserGuard). Neither
// is an allocation of more than 1 GiB by the parser, which ParserGuard turns into such a crash. So
// that one does not end the fuzzer, it defines _exit, and goes on with the next input. A crash of a
// pass is a finding.
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
#include <csetjmp>
#include <csignal>
#include <sanitizer/allocator_interface.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

using namespace mlir;

static sigjmp_buf afterCrash;
static volatile bool isParsing = false;

extern "C" void _exit(int status) {
  if (isParsing)
    siglongjmp(afterCrash, 1);
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
  return 0;
}

namespace {
/// The handlers of signals, and their stack, that ParserGuard replaces.
class Handlers {
public:
  Handlers() {
    for (int number : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGTRAP, SIGFPE, SIGPROF})
      sigaction(number, nullptr, &actions[number]);
    sigaltstack(nullptr, &stack);
  }
  void restore() {
    for (int number : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGTRAP, SIGFPE, SIGPROF})
      sigaction(number, &actions[number], nullptr);
    sigaltstack(&stack, nullptr);
    itimerval none{};
    setitimer(ITIMER_PROF, &none, nullptr);
  }

private:
  struct sigaction actions[NSIG];
  stack_t stack;
};
} // namespace

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

/// Parses as fsdp-compile does, with low limits. Returns null if the input is refused. Sets
/// `isCrash` if the parser crashes.
static OwningOpRef<ModuleOp> parse(const uint8_t *data, size_t size, MLIRContext &context,
                                   bool &isCrash) {
  fsdp::ParseLimits limits;
  limits.nesting = 32;
  limits.ops = 2000;
  limits.seconds = 3;
  StringRef text(reinterpret_cast<const char *>(data), size);
  static Handlers handlers;
  if (sigsetjmp(afterCrash, /*savemask=*/1)) {
    isParsing = false;
    handlers.restore();
    isCrash = true;
    return nullptr;
  }
  isParsing = true;
  OwningOpRef<ModuleOp> module =
      fsdp::parseModel(llvm::MemoryBuffer::getMemBufferCopy(text, "fuzz.mlir"), &context, limits);
  isParsing = false;
  return module;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  constexpr unsigned mostRuns = 500; // the context keeps every attribute
  static Importer *importer = nullptr;
  if (importer && importer->runs == mostRuns) {
    delete importer;
    importer = nullptr;
  }
  if (!importer)
    importer = new Importer;
  ++importer->runs;
  bool isCrash = false;
  OwningOpRef<ModuleOp> module = parse(data, size, importer->context, isCrash);
  if (module)
    (void)importer->passes.run(*module);
  if (isCrash) // it leaves the context in any state, so it is not used again, nor deleted
    importer = nullptr;
  return 0;
}
