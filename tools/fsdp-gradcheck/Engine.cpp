//===- Engine.cpp - Compiled functions of tensors ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. Convert arguments and results to memrefs, which are passed as plain pointers.
// 2. Decompose softmax and fsdp ops into loops (Decompose.cpp), and bufferize.
// 3. Turn every allocation into a global buffer, so that calls allocate no memory.
// 4. Add checks of indices and divisors (GuardAccesses.cpp).
// 5. Lower linalg to loops, math ops to calls of libm, and all ops to LLVM. The JIT does not
//    optimise, because compiling takes most of the time.
//
// These steps use only two parts of the compiler under test: the lowering of fsdp.random, and the
// lowering of ops that compute gradients.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"
#include "Decompose.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/TargetSelect.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::gradcheck;

static unsigned sizeOf(Type element) {
  return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

Buffer::Buffer(RankedTensorType type)
    : type(type), elementSize(sizeOf(type.getElementType())),
      bytes(elementSize * type.getNumElements()) {}

double Buffer::get(int64_t i) const {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + i * elementSize, elementSize);
  if (auto f = dyn_cast<FloatType>(type.getElementType())) {
    APFloat value(f.getFloatSemantics(), APInt(f.getWidth(), bits));
    bool lost;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    return value.convertToDouble();
  }
  return APInt(8 * elementSize, bits).getSExtValue();
}

void Buffer::set(int64_t i, double v) {
  uint64_t bits = static_cast<int64_t>(v);
  if (auto f = dyn_cast<FloatType>(type.getElementType())) {
    APFloat value(v);
    bool lost;
    value.convert(f.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
    bits = value.bitcastToAPInt().getZExtValue();
  }
  std::memcpy(bytes.data() + i * elementSize, &bits, elementSize);
}

/// Returns a symbol for a function. The symbol differs from the names of all functions in libm.
static std::string symbolOf(StringRef function) { return ("checked." + function).str(); }

/// Converts a function on tensors to a function on memrefs.
static void exposeBuffers(func::FuncOp func) {
  Block &block = func.getBody().front();
  OpBuilder b(func.getContext());
  b.setInsertionPointToStart(&block);
  auto memrefOf = [](Type type) -> Type {
    auto tensor = cast<RankedTensorType>(type);
    return MemRefType::get(tensor.getShape(), tensor.getElementType());
  };
  SmallVector<Type> types;
  for (BlockArgument argument : block.getArguments()) {
    Type tensor = argument.getType();
    argument.setType(memrefOf(tensor));
    types.push_back(argument.getType());
    auto read =
        bufferization::ToTensorOp::create(b, func.getLoc(), tensor, argument, /*restrict=*/true);
    argument.replaceAllUsesExcept(read, read);
  }
  Operation *terminator = block.getTerminator();
  b.setInsertionPoint(terminator);
  for (Value result : terminator->getOperands()) {
    Type type = memrefOf(result.getType());
    types.push_back(type);
    Value out = block.addArgument(type, func.getLoc());
    bufferization::MaterializeInDestinationOp::create(b, func.getLoc(), Type(), result, out,
                                                      /*restrict=*/true,
                                                      /*writable=*/true);
  }
  terminator->setOperands({});
  // The last argument is memory. A guard that fails writes the fault to this memory.
  types.push_back(MemRefType::get({2}, b.getI64Type()));
  block.addArgument(types.back(), func.getLoc());
  func.removeArgAttrsAttr();
  func.removeResAttrsAttr();
  func.setFunctionType(b.getFunctionType(types, {}));
  func->setAttr("llvm.emit_c_interface", b.getUnitAttr());
}

/// Replaces each memref.alloc by a global buffer, and each memref.copy by loops.
static void simplifyMemory(ModuleOp module) {
  SymbolTable symbols(module);
  OpBuilder b(module.getContext());
  module.walk([&](Operation *op) {
    b.setInsertionPoint(op);
    if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
      MemRefType type =
          MemRefType::get(alloc.getType().getShape(), alloc.getType().getElementType());
      auto global =
          memref::GlobalOp::create(b, op->getLoc(), "buffer", b.getStringAttr("private"), type,
                                   b.getUnitAttr(), /*constant=*/false, IntegerAttr());
      global->remove();
      symbols.insert(global, module.getBody()->begin());
      alloc.replaceAllUsesWith(
          memref::GetGlobalOp::create(b, op->getLoc(), type, global.getSymName()).getResult());
      op->erase();
    } else if (auto copy = dyn_cast<memref::CopyOp>(op)) {
      linalg::makeMemRefCopyOp(b, op->getLoc(), copy.getSource(), copy.getTarget());
      op->erase();
    }
  });
}

static void buildBufferization(PassManager &pm) {
  pm.addPass(createConvertTensorToLinalgPass()); // lowers tensor.pad
  pm.addPass(bufferization::createEmptyTensorToAllocTensorPass());
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.functionBoundaryTypeConversion = bufferization::LayoutMapOption::IdentityLayoutMap;
  pm.addPass(bufferization::createOneShotBufferizePass(bufferize));
}

static void buildLowering(PassManager &pm) {
  pm.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  SmallVector<std::string> narrow{"bf16", "f16"};
  emulate.sourceTypeStrs = narrow;
  emulate.targetTypeStr = "f32";
  pm.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  // Conversions of math ops to bf16 must exist before the next pass expands them, because
  // processors without such an instruction would need a function that the C library lacks.
  pm.addPass(math::createMathExtendToSupportedTypes());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  pm.addPass(arith::createArithExpandOpsPass(expand));
  pm.addPass(memref::createFoldMemRefAliasOpsPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  math::MathExpandOpsPassOptions notInLibm;
  SmallVector<std::string> names{"rsqrt", "fpowi"};
  notInLibm.opMnemonics = names;
  pm.addPass(math::createMathExpandOpsPass(notInLibm));
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions func;
  func.useBarePtrCallConv = true;
  pm.addPass(createConvertFuncToLLVMPass(func));
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

std::unique_ptr<Engine> Engine::create(OwningOpRef<ModuleOp> module) {
  for (auto func : module->getOps<func::FuncOp>()) {
    func.setSymName(symbolOf(func.getName()));
    exposeBuffers(func);
  }
  if (failed(decomposeRaisedOps(*module)))
    return nullptr;
  MLIRContext *context = module->getContext();
  PassManager bufferize(context), lower(context);
  lower.enableVerifier(false);
  buildBufferization(bufferize);
  buildLowering(lower);
  if (failed(bufferize.run(*module)))
    return nullptr;
  simplifyMemory(*module);
  auto result = std::make_unique<Engine>();
  for (auto func : module->getOps<func::FuncOp>())
    if (!func.isExternal() && failed(guardAccesses(func, result->guards)))
      return nullptr;
  if (failed(lower.run(*module)))
    return nullptr;

  static bool initialized =
      !llvm::InitializeNativeTarget() && !llvm::InitializeNativeTargetAsmPrinter();
  (void)initialized;
  registerBuiltinDialectTranslation(*context);
  registerLLVMDialectTranslation(*context);
  ExecutionEngineOptions options;
  auto transformer = makeOptimizingTransformer(0, 0, nullptr);
  options.transformer = transformer;
  options.jitCodeGenOptLevel = llvm::CodeGenOptLevel::None;
  options.enableGDBNotificationListener = options.enablePerfNotificationListener = false;
  llvm::Expected<std::unique_ptr<ExecutionEngine>> made = ExecutionEngine::create(*module, options);
  if (!made) {
    module->emitError("cannot compile: ") << llvm::toString(made.takeError());
    return nullptr;
  }
  result->engine = std::move(*made);
  return result;
}

LogicalResult Engine::call(StringRef name, MutableArrayRef<Buffer> arguments,
                           MutableArrayRef<Buffer> results) {
  SmallVector<void *> pointers;
  for (Buffer &buffer : arguments)
    pointers.push_back(buffer.data());
  for (Buffer &buffer : results)
    pointers.push_back(buffer.data());
  int64_t fault[2] = {0, 0};
  pointers.push_back(fault);
  SmallVector<void *> packed;
  for (void *&pointer : pointers)
    packed.push_back(&pointer);
  if (llvm::Error error = engine->invokePacked(symbolOf(name), packed)) {
    llvm::errs() << "fsdp-gradcheck: error: '" << name
                 << "' does not run: " << llvm::toString(std::move(error)) << "\n";
    return failure();
  }
  if (!fault[0])
    return success();
  report(guards[fault[0] - 1], fault[1]);
  return failure();
}
