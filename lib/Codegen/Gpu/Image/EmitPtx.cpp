//===- EmitPtx.cpp - Entries to PTX -----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Translates NVVM to LLVM IR, optimises, and emits PTX. LLVM's loop unrolling is switched off: the
// builders have already unrolled all loops that benefit, and more unrolling would only cost
// registers. LLVM may not use library functions, because no library defines them on the GPU.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Kernel/Lowering.h"
#include "GpuLowering.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::fsdp;

FailureOr<std::string> fsdp::emitPtx(ModuleOp entries, const GpuTarget &target) {
  llvm::LLVMContext context;
  context.setDiscardValueNames(true);
  std::unique_ptr<llvm::Module> ir = translateModuleToLLVMIR(entries, context, "kernels");
  if (!ir)
    return entries.emitError("the kernels cannot be written as LLVM IR");
  std::unique_ptr<llvm::TargetMachine> machine = target.createTargetMachine();
  if (!machine)
    return entries.emitError("this LLVM has no code generator for PTX");
  ir->setTargetTriple(machine->getTargetTriple());
  ir->setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : *ir)
    if (!function.isDeclaration())
      function.addFnAttr(llvm::Attribute::NoUnwind);
  optimise(*ir, *machine);

  SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager emitter;
  if (machine->addPassesToEmitFile(emitter, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return entries.emitError("this LLVM cannot write PTX");
  emitter.run(*ir);
  return text.str().str();
}
