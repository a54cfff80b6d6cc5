//===- Reference.cpp - The slow oracle --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiles kernels for the reference target, mainly with upstream passes. Every op becomes a loop
// nest with its own buffer. One worker runs all loops, math ops become calls of libm functions, and
// no optimisation changes values. The lowering to loops is independent of the other targets, so
// that a comparison with the reference also finds errors in their lowerings. LLVM's optimisations
// are skipped for short kernels, because most reference images run only once and should compile
// fast. They keep the value of each operation, so that long kernels have the same bits with them.
//
//  1. If `widen` is true, every float becomes f64. The bindings keep their types: the kernel
//     converts its arguments at its beginning and its results at its end.
//  2. Gathers, scatters and composite ops become linalg.generic ops and loops.
//  3. Sums of products loop over the last dimension of the result innermost (OrderLoops.cpp).
//  4. Upstream passes bufferise the kernel and lower it to loops and to the LLVM dialect. Buffers
//     become slices of the shared scratch memory.
//
//===----------------------------------------------------------------------===//

#include "Codegen/Cpu/Image/CpuLowering.h"
#include "Codegen/Kernel/Attention/AttentionKernel.h"
#include "Codegen/Reference/OrderLoops.h"
#include "fsdp/Codegen/Codegen.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// 1. Widening
//===----------------------------------------------------------------------===//

static Type widenType(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(widenType(tensor.getElementType()));
  return isa<FloatType>(type) ? Float64Type::get(type.getContext()) : type;
}

static TypedAttr widenConstant(TypedAttr attr) {
  auto f64 = Float64Type::get(attr.getContext());
  auto widen = [](APFloat value) {
    bool lost;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    return value;
  };
  if (auto number = dyn_cast<FloatAttr>(attr))
    return FloatAttr::get(f64, widen(number.getValue()));
  if (auto dense = dyn_cast<DenseFPElementsAttr>(attr)) {
    auto type = cast<ShapedType>(widenType(dense.getType()));
    if (dense.isSplat())
      return DenseElementsAttr::get(type, widen(dense.getSplatValue<APFloat>()));
    SmallVector<APFloat> values;
    for (const APFloat &value : dense.getValues<APFloat>())
      values.push_back(widen(value));
    return DenseElementsAttr::get(type, values);
  }
  return attr;
}

/// Converts a scalar between float types. Converts between 16-bit types and f64 by way of f32,
/// because no instruction converts directly, and not every libgcc has a function for the
/// conversion.
static Value convertScalar(OpBuilder &b, Location loc, Value x, Type to) {
  unsigned from = x.getType().getIntOrFloatBitWidth(), width = to.getIntOrFloatBitWidth();
  if (from == width)
    return x;
  if (from + width == 80)
    x = convertScalar(b, loc, x, b.getF32Type());
  if (from < width)
    return arith::ExtFOp::create(b, loc, to, x);
  return arith::TruncFOp::create(b, loc, to, x);
}

/// Converts `value` to the element type of `to`, element by element.
static Value convert(OpBuilder &b, Location loc, Value value, RankedTensorType to) {
  auto from = cast<RankedTensorType>(value.getType());
  if (from == to)
    return value;
  Value empty = tensor::EmptyOp::create(b, loc, to.getShape(), to.getElementType());
  AffineMap identity = b.getMultiDimIdentityMap(to.getRank());
  return linalg::GenericOp::create(
             b, loc, to, value, empty, {identity, identity},
             SmallVector<utils::IteratorType>(to.getRank(), utils::IteratorType::parallel),
             [&](OpBuilder &nested, Location loc, ValueRange args) {
               linalg::YieldOp::create(nested, loc,
                                       convertScalar(nested, loc, args[0], to.getElementType()));
             })
      .getResult(0);
}

/// Returns true if the kernel converts between floats and their bits, because widening would change
/// these bits.
static bool takesBits(func::FuncOp kernel) {
  return kernel
      .walk([](arith::BitcastOp op) {
        return isa<FloatType>(getElementTypeOrSelf(op.getIn().getType())) ||
                       isa<FloatType>(getElementTypeOrSelf(op.getType()))
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

static void widenKernel(func::FuncOp kernel) {
  if (takesBits(kernel))
    return;
  Block &body = kernel.front();
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) {
    if (op != kernel)
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    for (Value result : op->getResults())
      result.setType(widenType(result.getType()));
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        argument.setType(widenType(argument.getType()));
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      constant.setValueAttr(widenConstant(constant.getValue()));
  }
  auto ret = cast<func::ReturnOp>(body.getTerminator());
  OpBuilder end(ret), start(&body, body.begin());
  for (OpOperand &operand : ret->getOpOperands())
    if (!isa<BlockArgument>(operand.get()))
      operand.set(
          convert(end, ret.getLoc(), operand.get(),
                  cast<RankedTensorType>(kernel.getResultTypes()[operand.getOperandNumber()])));
  for (BlockArgument argument : kernel.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    auto wide = cast<RankedTensorType>(widenType(type));
    if (wide == type)
      continue;
    Value converted = convert(start, kernel.getLoc(), argument, wide);
    argument.replaceUsesWithIf(converted, [&](OpOperand &use) {
      return use.getOwner() != converted.getDefiningOp() && use.getOwner() != ret;
    });
  }
  // Removes the float conversions whose source and result now have the same type.
  for (Operation *op : ops)
    if (isa<arith::ExtFOp, arith::TruncFOp>(op) &&
        op->getOperand(0).getType() == op->getResult(0).getType()) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    }
}

//===----------------------------------------------------------------------===//
// 2. Ops of this project
//===----------------------------------------------------------------------===//

/// Emits a gather as tensor.generate.
static Value expandGather(OpBuilder &b, GatherRowsOp op) {
  auto generate = tensor::GenerateOp::create(
      b, op.getLoc(), op.getResult().getType(), ValueRange(),
      [&](OpBuilder &nested, Location loc, ValueRange at) {
        Value id = tensor::ExtractOp::create(nested, loc, op.getIds(), at.drop_back());
        Value row = arith::IndexCastOp::create(nested, loc, nested.getIndexType(), id);
        Value x = tensor::ExtractOp::create(nested, loc, op.getTable(), ValueRange{row, at.back()});
        tensor::YieldOp::create(nested, loc, x);
      });
  return generate;
}

/// Emits a scatter as a loop nest with one loop per dimension of the updates and a scalar addition
/// inside. The loops update a buffer, because an update of a tensor would copy the tensor each
/// time.
static Value expandScatter(OpBuilder &b, ScatterAddRowsOp op) {
  Location loc = op.getLoc();
  RankedTensorType type = op.getResult().getType();
  Value table = op.getInit();
  if (!table) {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
    table = tensor::SplatOp::create(b, loc, zero, type);
  }
  Value sums = bufferization::AllocTensorOp::create(b, loc, type, ValueRange(), table);
  Value buffer = bufferization::ToBufferOp::create(
      b, loc, MemRefType::get(type.getShape(), type.getElementType()), sums);
  SmallVector<Value> lower, upper, step;
  for (int64_t size : cast<RankedTensorType>(op.getUpdates().getType()).getShape()) {
    lower.push_back(arith::ConstantIndexOp::create(b, loc, 0));
    upper.push_back(arith::ConstantIndexOp::create(b, loc, size));
    step.push_back(arith::ConstantIndexOp::create(b, loc, 1));
  }
  scf::buildLoopNest(
      b, loc, lower, upper, step, [&](OpBuilder &nested, Location loc, ValueRange at) {
        Value id = tensor::ExtractOp::create(nested, loc, op.getIds(), at.drop_back());
        Value row = arith::IndexCastOp::create(nested, loc, nested.getIndexType(), id);
        SmallVector<Value> place = {row, at.back()};
        Value old = memref::LoadOp::create(nested, loc, buffer, place);
        Value update = tensor::ExtractOp::create(nested, loc, op.getUpdates(), at);
        Value sum = arith::AddFOp::create(nested, loc, old, update);
        memref::StoreOp::create(nested, loc, sum, buffer, place);
      });
  return bufferization::ToTensorOp::create(b, loc, type, buffer, /*restrict=*/true,
                                           /*writable=*/true);
}

static LogicalResult expandOps(func::FuncOp kernel) {
  decomposeAttention(kernel);
  IRRewriter rewriter(kernel.getContext());
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    rewriter.setInsertionPoint(op);
    FailureOr<SmallVector<Value>> values = failure();
    if (auto gather = dyn_cast<GatherRowsOp>(op))
      values = SmallVector<Value>{expandGather(rewriter, gather)};
    else if (auto scatter = dyn_cast<ScatterAddRowsOp>(op))
      values = SmallVector<Value>{expandScatter(rewriter, scatter)};
    else if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
      if (FailureOr<SmallVector<Value>> parts = concat.decomposeOperation(rewriter);
          succeeded(parts))
        values = *parts;
    } else if (auto aggregate = dyn_cast<linalg::AggregatedOpInterface>(op))
      values = aggregate.decomposeOperation(rewriter);
    else
      continue;
    if (failed(values))
      return op->emitError("the reference target cannot lower this op to loops");
    rewriter.replaceOp(op, *values);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// 4. Buffers and loops
//===----------------------------------------------------------------------===//

/// Stores results to their destinations at the end of the kernel.
static void storeResults(func::FuncOp kernel) {
  auto ret = cast<func::ReturnOp>(kernel.front().getTerminator());
  OpBuilder b(ret);
  SmallVector<Value> values;
  for (Value value : ret.getOperands()) {
    // Saves the value before any destination is written, because the value may be in a destination.
    auto type = cast<RankedTensorType>(value.getType());
    values.push_back(
        bufferization::AllocTensorOp::create(b, ret.getLoc(), type, ValueRange(), value));
  }
  for (auto [index, value] : llvm::enumerate(values)) {
    auto type = cast<RankedTensorType>(value.getType());
    Value buffer = bufferization::ToBufferOp::create(
        b, ret.getLoc(), MemRefType::get(type.getShape(), type.getElementType()),
        getDestination(kernel, index));
    auto store =
        bufferization::MaterializeInDestinationOp::create(b, ret.getLoc(), Type(), value, buffer);
    store.setWritable(true);
  }
  ret.getOperandsMutable().clear();
  kernel.setType(FunctionType::get(kernel.getContext(), kernel.getArgumentTypes(), {}));
}

/// Lowers a kernel on tensors to a function on buffers with a range and a scratch argument.
static LogicalResult bufferiseReference(ModuleOp module, KernelInfo &info) {
  PassManager pm(module.getContext());
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion = bufferization::LayoutMapOption::IdentityLayoutMap;
  // Every op gets its own buffer.
  options.copyBeforeWrite = true;
  options.allowReturnAllocsFromLoops = true;
  pm.addPass(bufferization::createOneShotBufferizePass(options));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createConvertBufferizationToMemRefPass());
  if (failed(runLowering(pm, module)))
    return failure();
  auto function = *module.getOps<func::FuncOp>().begin();
  OpBuilder b(module.getContext());
  auto bytes = MemRefType::get({ShapedType::kDynamic}, b.getI8Type());
  unsigned bindings = function.getNumArguments();
  for (Type type : {Type(bytes), Type(b.getIndexType()), Type(b.getIndexType()), Type(bytes)})
    (void)function.insertArgument(function.getNumArguments(), type, {}, function.getLoc());
  function.walk([](memref::DeallocOp op) { op.erase(); });
  info.sharedBytes = 64;
  bool fixed = true;
  function.walk([&](memref::AllocOp op) {
    if (!op.getType().hasStaticShape()) {
      op.emitError("expected temporaries of static size in a kernel, found ") << op.getType();
      fixed = false;
      return;
    }
    b.setInsertionPoint(op);
    Value offset = arith::ConstantIndexOp::create(b, op.getLoc(), info.sharedBytes);
    info.sharedBytes += llvm::alignTo(getStorageBytes(op.getType()), 64);
    Value view = memref::ViewOp::create(b, op.getLoc(), op.getType(),
                                        function.getArgument(bindings), offset, ValueRange());
    op.replaceAllUsesWith(view);
    op.erase();
  });
  info.phases.push_back({info.name, 1, 1});
  return success(fixed);
}

/// Expands copies of buffers to loops, because they would otherwise become calls of memrefCopy.
static void expandCopies(ModuleOp module) {
  SmallVector<memref::CopyOp> copies;
  module.walk([&](memref::CopyOp op) { copies.push_back(op); });
  for (memref::CopyOp op : copies) {
    OpBuilder b(op);
    auto type = cast<MemRefType>(op.getTarget().getType());
    SmallVector<Value> lower, upper, step;
    for (int64_t size : type.getShape()) {
      lower.push_back(arith::ConstantIndexOp::create(b, op.getLoc(), 0));
      upper.push_back(arith::ConstantIndexOp::create(b, op.getLoc(), size));
      step.push_back(arith::ConstantIndexOp::create(b, op.getLoc(), 1));
    }
    scf::buildLoopNest(b, op.getLoc(), lower, upper, step,
                       [&](OpBuilder &nested, Location loc, ValueRange at) {
                         Value x = memref::LoadOp::create(nested, loc, op.getSource(), at);
                         memref::StoreOp::create(nested, loc, x, op.getTarget(), at);
                       });
    op.erase();
  }
}

namespace {
/// Expands clamp as min(max(x, low), high). The upstream expansion exchanges the bounds.
struct ClampAsExtremes : OpRewritePattern<math::ClampFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ClampFOp op, PatternRewriter &rewriter) const override {
    Value atLeast = arith::MaximumFOp::create(rewriter, op.getLoc(), op.getValue(), op.getMin());
    rewriter.replaceOpWithNewOp<arith::MinimumFOp>(op, atLeast, op.getMax());
    return success();
  }
};
} // namespace

static LogicalResult lowerReference(ModuleOp module) {
  MLIRContext *context = module.getContext();
  RewritePatternSet patterns(context);
  math::populateExpansionPatterns(patterns, {"rsqrt", "fpowi"});
  patterns.add<ClampAsExtremes>(context);
  if (failed(applyPatternsGreedily(module, std::move(patterns))))
    return module.emitError("the reference target's expansion did not converge");
  PassManager pm(context);
  pm.addPass(createConvertLinalgToLoopsPass());
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"bf16", "f16"};
  emulate.targetTypeStr = "f32";
  pm.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  pm.addPass(math::createMathExtendToSupportedTypes());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  pm.addPass(arith::createArithExpandOpsPass(expand));
  addLLVMConversions(pm, /*useLibm=*/true);
  return runLowering(pm, module);
}

FailureOr<Image> fsdp::compileReferenceImage(ModuleOp module, const CpuTarget &target, bool widen,
                                             KernelCache *cache) {
  // Functions of the C library remain undefined symbols of the image, which the loader resolves.
  // The linker needs libm and libc as arguments, so that it accepts these symbols.
  SmallVector<StringRef> libraries;
  for (StringRef path :
       {"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6", "/usr/lib/libm.so.6",
        "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"})
    if (llvm::sys::fs::exists(path))
      libraries.push_back(path);
  auto compile = [&](func::FuncOp kernel, KernelInfo &info) -> FailureOr<Object> {
    auto parent = kernel->getParentOfType<ModuleOp>();
    kernel.setPublic();
    if (widen)
      widenKernel(kernel);
    storeResults(kernel);
    if (failed(expandOps(kernel)))
      return failure();
    // Without optimisations, this many iterations take longer than optimisations. The pipeline of
    // -O3 would take longer than it saves.
    constexpr int64_t shortest = 1 << 24;
    Effort effort = orderLoops(kernel) >= shortest ? Effort::Short : Effort::None;
    if (failed(bufferiseReference(parent, info)))
      return failure();
    expandCopies(parent);
    for (auto phase : parent.getOps<func::FuncOp>())
      makeScratchStatic(phase);
    if (failed(lowerReference(parent)))
      return failure();
    return emitObject(parent, info, target, effort);
  };
  StringRef name = widen ? "reference in f64" : "reference";
  return compileImage(module, target, {name, compile, libraries}, cache);
}
