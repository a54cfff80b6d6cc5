//===- EmitObject.cpp - Phase functions to an object file -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiles one kernel: translates the LLVM dialect to LLVM IR, adds a wrapper with the ABI of
// docs/explanation/pipeline.md §7 around each phase, optimises, and emits machine code.
//
//   @k(ptr bindings, i64 begin, i64 end, ptr workspace) {                ; the wrapper
//     call @k.body(bindings[0], bindings[1], ..., begin, end, workspace)   ; inlined
//   }
//   @k.launch = constant [n x i64] [...]            ; fsdprt/launch_record.h
//
// LLVM's loop unrolling is switched off: if short loops over columns were unrolled, LICM would
// hoist every vector of weights out of the loop over rows, and registers would spill. LLVM may not
// use library functions, because LLVM would otherwise turn loops into calls of memset and memcpy.
//
//===----------------------------------------------------------------------===//

#include "CpuLowering.h"
#include "fsdprt/launch_record.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Marks the pointers to bindings as not aliased, never undefined and aligned to 64 bytes.
static void describeArguments(llvm::Function &body) {
  llvm::LLVMContext &context = body.getContext();
  for (llvm::Argument &argument : body.args()) {
    if (!argument.getType()->isPointerTy())
      continue;
    argument.addAttr(llvm::Attribute::NoAlias);
    argument.addAttr(llvm::Attribute::NoUndef);
    argument.addAttr(llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
  }
}

static void addWrapper(llvm::Module &module, StringRef symbol) {
  llvm::Function *body = module.getFunction(symbol);
  body->setName(symbol + ".body");
  body->setLinkage(llvm::GlobalValue::InternalLinkage);
  body->addFnAttr(llvm::Attribute::AlwaysInline);
  describeArguments(*body);
  llvm::LLVMContext &context = module.getContext();
  auto *ptr = llvm::PointerType::get(context, 0);
  auto *i64 = llvm::Type::getInt64Ty(context);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {ptr, i64, i64, ptr}, false);
  auto *wrapper = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, module);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "", wrapper));
  SmallVector<llvm::Value *> arguments;
  unsigned bindings = body->arg_size() - 3;
  for (unsigned i = 0; i < bindings; ++i)
    arguments.push_back(b.CreateLoad(ptr, b.CreateConstGEP1_64(ptr, wrapper->getArg(0), i)));
  arguments.append({wrapper->getArg(1), wrapper->getArg(2), wrapper->getArg(3)});
  b.CreateCall(body, arguments);
  b.CreateRetVoid();
}

/// Adds the launch record of a phase: a constant that describes the launch of the phase.
static void addLaunchRecord(llvm::Module &module, const KernelInfo &info, const PhaseInfo &phase) {
  SmallVector<int64_t> words = {
      /*records=*/1,    phase.extent,
      phase.tile,       info.sharedBytes,
      info.workerBytes, static_cast<int64_t>(info.bindingBytes.size())};
  llvm::append_range(words, info.bindingBytes);
  SmallVector<uint64_t> bits(words.begin(), words.end());
  llvm::Constant *content =
      llvm::ConstantDataArray::get(module.getContext(), ArrayRef<uint64_t>(bits));
  auto *record = new llvm::GlobalVariable(module, content->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::ExternalLinkage, content,
                                          phase.symbol + FSDPRT_LAUNCH_SUFFIX);
  record->setAlignment(llvm::Align(8));
}

static void setFunctionAttributes(llvm::Module &module, const CpuTarget &target) {
  std::string bits = std::to_string(target.vectorBits);
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("prefer-vector-width", bits);
    function.addFnAttr("min-legal-vector-width", bits);
    function.addFnAttr("tune-cpu", target.tune);
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

FailureOr<Object> fsdp::emitObject(ModuleOp module, const KernelInfo &info, const CpuTarget &target,
                                   Effort effort) {
  // Remove the argument attributes of the FSDP dialect, because the translation would emit a
  // warning for each of them.
  module.walk([](FunctionOpInterface function) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      for (NamedAttribute mark : SmallVector<NamedAttribute>(function.getArgAttrs(i)))
        if (mark.getName().strref().starts_with("fsdp."))
          function.removeArgAttr(i, mark.getName());
  });
  llvm::LLVMContext context;
  context.setDiscardValueNames(true);
  std::unique_ptr<llvm::Module> ir = translateModuleToLLVMIR(module, context, info.name);
  if (!ir)
    return module.emitError("kernel '") << info.name << "' cannot be written as LLVM IR";
  std::unique_ptr<llvm::TargetMachine> machine = target.createTargetMachine();
  if (!machine)
    return module.emitError("this LLVM has no code generator for ") << target.triple;
  ir->setTargetTriple(machine->getTargetTriple());
  ir->setDataLayout(machine->createDataLayout());
  for (const PhaseInfo &phase : info.phases) {
    addWrapper(*ir, phase.symbol);
    addLaunchRecord(*ir, info, phase);
  }
  setFunctionAttributes(*ir, target);
  optimise(*ir, *machine, effort);

  Object object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emitter;
  if (machine->addPassesToEmitFile(emitter, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return module.emitError("this LLVM cannot write objects for ") << target.triple;
  emitter.run(*ir);
  return object;
}
