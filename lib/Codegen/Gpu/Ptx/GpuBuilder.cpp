//===- GpuBuilder.cpp - Builder for GPU code --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "GpuBuilder.h"
#include "Codegen/Kernel/Lowering.h"
#include "fsdp/Codegen/Gpu/GpuImage.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::fsdp;

static constexpr unsigned globalSpace = 1, sharedSpace = 3;
/// Alignment of bindings in the arena, in bytes.
static constexpr int64_t bindingAlignment = 64;

Value fsdp::callIntrinsic(OpBuilder &b, Location loc, StringRef name, ValueRange arguments) {
  return LLVM::CallIntrinsicOp::create(b, loc, arguments.front().getType(), b.getStringAttr(name),
                                       arguments)
      .getResult(0);
}

/// Returns a name for the shared memory such that no kernel has a name that begins with the
/// returned name. The returned name also differs from the names of all launches, because these
/// begin with the name of a kernel.
static std::string nameShared(func::FuncOp kernel) {
  std::string name = "shared";
  auto functions = kernel->getParentOfType<ModuleOp>().getOps<func::FuncOp>();
  while (llvm::any_of(functions,
                      [&](func::FuncOp function) { return function.getName().starts_with(name); }))
    name += '$';
  return name;
}

/// Returns the global that stands for the dynamic shared memory of a launch. The size of this
/// memory is determined when the kernel is launched.
static LLVM::GlobalOp getShared(OpBuilder &b, ModuleOp entries, func::FuncOp kernel) {
  for (auto global : entries.getOps<LLVM::GlobalOp>())
    if (global.getAddrSpace() == sharedSpace && global.getLinkage() == LLVM::Linkage::External)
      return global;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entries.getBody());
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
  return LLVM::GlobalOp::create(b, entries.getLoc(), type, /*isConstant=*/false,
                                LLVM::Linkage::External, nameShared(kernel), Attribute(),
                                /*alignment=*/1024, sharedSpace);
}

/// Adds the attributes of an argument that is a tensor map, which has 128 bytes.
static void describeMap(OpBuilder &b, LLVM::LLVMFuncOp entry, unsigned argument) {
  auto bytes = LLVM::LLVMArrayType::get(b.getI8Type(), 128);
  entry.setArgAttr(argument, LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(bytes));
  entry.setArgAttr(argument, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(64));
  entry.setArgAttr(argument, NVVM::NVVMDialect::getGridConstantAttrName(), b.getUnitAttr());
}

static void describe(OpBuilder &b, LLVM::LLVMFuncOp entry, func::FuncOp kernel, int64_t threads,
                     int64_t minBlocks, int64_t maps) {
  entry->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  entry->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                 b.getDenseI32ArrayAttr({static_cast<int32_t>(threads), 1, 1}));
  entry->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), b.getI32IntegerAttr(minBlocks));
  for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
    if (i >= entry.getNumArguments() - maps) {
      describeMap(b, entry, i);
      continue;
    }
    entry.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    entry.setArgAttr(i, LLVM::LLVMDialect::getNoUndefAttrName(), b.getUnitAttr());
    entry.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                     b.getI64IntegerAttr(bindingAlignment));
    bool written = i >= kernel.getNumArguments() || kernel.getArgAttr(i, outAttr) ||
                   kernel.getArgAttr(i, inoutAttr);
    if (!written)
      entry.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(), b.getUnitAttr());
  }
}

void GpuBuilder::enter(ModuleOp entries, func::FuncOp kernel, StringRef symbol, int64_t minBlocks,
                       bool scratch, int64_t maps, int64_t cluster) {
  LLVM::GlobalOp shared = getShared(*this, entries, kernel);
  auto pointer = LLVM::LLVMPointerType::get(getContext(), globalSpace);
  SmallVector<Type> types(kernel.getNumArguments() + scratch, pointer);
  types.append(maps, LLVM::LLVMPointerType::get(getContext()));
  setInsertionPointToEnd(entries.getBody());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(getContext()), types);
  auto entry = LLVM::LLVMFuncOp::create(*this, loc, symbol, type);
  describe(*this, entry, kernel, threads, minBlocks, maps);
  if (cluster > 1)
    entry->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                   getDenseI32ArrayAttr({static_cast<int32_t>(cluster), 1, 1}));
  Block *block = entry.addEntryBlock(*this);
  setInsertionPointToStart(block);
  bindings.clear();
  for (BlockArgument argument : kernel.getArguments())
    bindings[argument] = {block->getArgument(argument.getArgNumber()),
                          cast<RankedTensorType>(argument.getType()).getElementType(), constant(0)};
  scratchBase = scratch ? Value(block->getArgument(kernel.getNumArguments())) : Value();
  tensorMaps.assign(block->args_end() - maps, block->args_end());
  sharedBase = LLVM::AddressOfOp::create(*this, loc, shared);
}

void GpuBuilder::leave() { LLVM::ReturnOp::create(*this, loc, ValueRange()); }

Pointer GpuBuilder::destination(func::FuncOp kernel, Value result) const {
  for (OpOperand &operand : kernel.front().getTerminator()->getOpOperands())
    if (operand.get() == result)
      return binding(getDestination(kernel, operand.getOperandNumber()));
  return {};
}

Value GpuBuilder::i32(int64_t value) { return arith::ConstantIntOp::create(*this, loc, value, 32); }

Value GpuBuilder::number(double value) {
  return arith::ConstantOp::create(*this, loc, getF32FloatAttr(static_cast<float>(value)));
}

Value GpuBuilder::to64(Value value) {
  return createOrFold<arith::ExtSIOp>(loc, getI64Type(), value);
}
Value GpuBuilder::to32(Value value) {
  return createOrFold<arith::TruncIOp>(loc, getI32Type(), value);
}
Value GpuBuilder::thread() { return NVVM::ThreadIdXOp::create(*this, loc, getI32Type()); }
Value GpuBuilder::block() { return NVVM::BlockIdXOp::create(*this, loc, getI32Type()); }

void GpuBuilder::barrier() { NVVM::BarrierOp::create(*this, loc); }
void GpuBuilder::syncWarp() { NVVM::SyncWarpOp::create(*this, loc, i32(-1)); }

void GpuBuilder::endBlock(bool productsRun, MutableArrayRef<Value> sums) {
  // ptxas waits for wgmma in flight before an instruction that ends the program (warning C7517).
  // `trap` ends it, `brkpt` does not. Without products `trap` is better, because no value has to
  // stay in a register across it.
  std::string results, operands;
  for (size_t i = 0; i < sums.size(); ++i) {
    results += "=f,";
    operands += std::to_string(i) + ",";
  }
  SmallVector<Type> types(sums.size(), getF32Type());
  SmallVector<Value> after = assembly(
      Twine("{ .reg .pred never; .reg .b32 number; mov.u32 number, %smid; "
            "setp.eq.u32 never, number, 0xffffffff; @never ") +
          (productsRun ? "brkpt; }" : "trap; }"),
      StringRef(results + operands).drop_back(!sums.empty()), SmallVector<Value>(sums), types);
  llvm::copy(after, sums.begin());
}

Value GpuBuilder::opaque(Value value) {
  if (value.getType().isInteger(64))
    return assembly("mov.b64 $0, $1;", "=l,l", value, {getI64Type()})[0];
  return assembly("mov.b32 $0, $1;", "=r,r", value, {getI32Type()})[0];
}

SmallVector<Value> GpuBuilder::assembly(const Twine &text, const Twine &constraints,
                                        ValueRange operands, TypeRange results) {
  SmallVector<Type> types;
  if (results.size() == 1)
    types.push_back(results.front());
  else if (!results.empty())
    types.push_back(LLVM::LLVMStructType::getLiteral(getContext(), llvm::to_vector(results)));
  auto dialect = LLVM::AsmDialectAttr::get(getContext(), LLVM::AsmDialect::AD_ATT);
  auto op = LLVM::InlineAsmOp::create(
      *this, loc, types, operands, text.str(), constraints.str(), /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::TailCallKind::None, dialect, ArrayAttr());
  if (results.size() == 1)
    return {op.getResult(0)};
  SmallVector<Value> values;
  for (size_t i = 0; i < results.size(); ++i)
    values.push_back(LLVM::ExtractValueOp::create(*this, loc, op.getResult(0), i));
  return values;
}

Value GpuBuilder::exchange(Value value, int64_t bits) {
  return NVVM::ShflOp::create(*this, loc, value.getType(), i32(-1), value, i32(bits), i32(31),
                              NVVM::ShflKind::bfly, UnitAttr());
}

Value GpuBuilder::overQuad(Value value, function_ref<Value(Value, Value)> combine) {
  for (int64_t bits : {1, 2})
    value = combine(value, exchange(value, bits));
  return value;
}

Value GpuBuilder::overWarp(Value value, function_ref<Value(Value, Value)> combine) {
  for (int64_t bits : {1, 2, 4, 8, 16})
    value = combine(value, exchange(value, bits));
  return value;
}

Value GpuBuilder::sharedAt(int64_t bytes) { return shiftBytes(sharedBase, bytes); }

Value GpuBuilder::shiftBytes(Value pointer, Value bytes) {
  return LLVM::GEPOp::create(*this, loc, pointer.getType(), getI8Type(), pointer,
                             ValueRange{bytes});
}

Value GpuBuilder::shiftBytes(Value pointer, int64_t bytes) {
  if (!bytes)
    return pointer;
  return LLVM::GEPOp::create(*this, loc, pointer.getType(), getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
}

Value GpuBuilder::roundToTF32(Value number) {
  return NVVM::ConvertFloatToTF32Op::create(*this, loc, getI32Type(), number,
                                            NVVM::FPRoundingMode::RNA);
}

std::pair<Value, Value> GpuBuilder::splitToTF32(Value number) {
  auto round = [&](Value x) -> Value {
    return arith::AndIOp::create(*this, loc, roundToTF32(x), i32(~INT64_C(0x1fff)));
  };
  Value high = round(number);
  Value rest = subf(number, arith::BitcastOp::create(*this, loc, getF32Type(), high));
  return {high, round(rest)};
}

Value GpuBuilder::pack(Value low, Value high, Type element) {
  auto pair = VectorType::get({2}, element);
  auto nearest = NVVM::FPRoundingMode::RN;
  Value packed;
  if (element.isBF16())
    packed = NVVM::ConvertF32x2ToBF16x2Op::create(*this, loc, pair, high, low, Value(), nearest);
  else
    packed = NVVM::ConvertF32x2ToF16x2Op::create(*this, loc, pair, high, low, Value(), nearest);
  return LLVM::BitcastOp::create(*this, loc, getI32Type(), packed);
}

SmallVector<Value> GpuBuilder::loadMatrices(Value place, bool transposed) {
  SmallVector<Type> words(4, getI32Type());
  auto all = LLVM::LLVMStructType::getLiteral(getContext(), words);
  auto layout = transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row;
  Value loaded = NVVM::LdMatrixOp::create(*this, loc, all, place, 4, layout,
                                          NVVM::LdStMatrixShapeAttr::get(getContext(), 8, 8),
                                          NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> result;
  for (int64_t i = 0; i < 4; ++i)
    result.push_back(LLVM::ExtractValueOp::create(*this, loc, loaded, i));
  return result;
}

void GpuBuilder::storePair(Value first, Value second, const Pointer &place) {
  if (!place.type.isF32()) {
    LLVM::StoreOp::create(*this, loc, pack(first, second, place.type), address(place),
                          /*alignment=*/4);
    return;
  }
  Value both = LLVM::PoisonOp::create(*this, loc, VectorType::get({2}, place.type));
  both = LLVM::InsertElementOp::create(*this, loc, both, first, i32(0));
  both = LLVM::InsertElementOp::create(*this, loc, both, second, i32(1));
  LLVM::StoreOp::create(*this, loc, both, address(place), /*alignment=*/8);
}
