//===- Sm90Builder.cpp - Instructions that sm_90 adds to sm_80 --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A product is emitted as one inline assembly: a fence, a wgmma for each step of k, and a commit.
// In the assembly of the product and of the wait, each sum is both an operand and a result, and
// both share a register. Otherwise LLVM and ptxas would not take into account that the sums change
// between product and wait. Offsets are added to a descriptor inside the assembly, because LLVM
// would otherwise keep the descriptors of all steps in registers.
//
// A matrix descriptor (9.7.15.5.1.2.2, "Matrix Descriptor Format") has units of 16 bytes:
//
//   bits     0 .. 13   address in shared memory
//           16 .. 29   distance between panels; unused if columns extend along k
//                      (then one panel per step)
//           32 .. 45   distance between groups of eight rows: 1024 bytes
//           62 .. 63   1: 128-byte swizzle
//
// The place to which a chunk is swizzled depends on bits 7 .. 9 of its address. A step within a
// panel may therefore start at any multiple of 32 bytes in a row, or at any multiple of eight rows.
//
//===----------------------------------------------------------------------===//

#include "Sm90Builder.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Maximum time in nanoseconds for which a wait suspends a thread before the thread checks again.
static constexpr int64_t waitNanoseconds = 10'000'000;
/// Number of 16-bit values of k that one wgmma instruction multiplies, and size of all its values
/// of k in bytes.
static constexpr int64_t stepCols = 16, stepBytes = 32;

static std::string registerOf(Type type) { return type.isF32() ? "=f," : "=r,"; }

/// Returns the constraints "0,1,.." for `count` operands that share registers with the results.
static std::string tied(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += std::to_string(i) + ",";
  return text;
}

Value Sm90Builder::uniform(Value value) {
  return NVVM::ShflOp::create(*this, loc, value.getType(), i32(-1), value, i32(0), i32(31),
                              NVVM::ShflKind::idx, UnitAttr());
}

Value Sm90Builder::blockAgain() {
  return assembly("mov.u32 $0, %ctaid.x;", "=r", {}, {getI32Type()})[0];
}

Value Sm90Builder::isElected() {
  return NVVM::ElectSyncOp::create(*this, loc, getI1Type(), Value());
}

void Sm90Builder::giveRegisters(int64_t count) {
  NVVM::SetMaxRegisterOp::create(*this, loc, static_cast<uint32_t>(count),
                                 NVVM::SetMaxRegisterAction::decrease);
}

void Sm90Builder::takeRegisters(int64_t count) {
  NVVM::SetMaxRegisterOp::create(*this, loc, static_cast<uint32_t>(count),
                                 NVVM::SetMaxRegisterAction::increase);
}

void Sm90Builder::syncNamed(Value number, int64_t count) {
  NVVM::BarrierOp::create(*this, loc, Type(), number, i32(count), NVVM::BarrierReductionAttr(),
                          Value());
}

void Sm90Builder::arriveNamed(Value number, int64_t count) {
  NVVM::BarrierArriveOp::create(*this, loc, number, i32(count));
}

void Sm90Builder::initBarrier(Value barrier, int64_t count) {
  NVVM::MBarrierInitOp::create(*this, loc, barrier, i32(count), Value());
}

void Sm90Builder::fenceBarriers() { NVVM::FenceMbarrierInitOp::create(*this, loc); }

void Sm90Builder::wait(Value barrier, Value parity) {
  NVVM::MBarrierTryWaitParityOp::create(*this, loc, barrier, parity, i32(waitNanoseconds));
}

void Sm90Builder::expect(Value barrier, int64_t bytes) {
  NVVM::MBarrierArriveExpectTxOp::create(*this, loc, Type(), barrier, i32(bytes),
                                         NVVM::MemScopeKind::CTA, /*relaxed=*/false, Value());
}

void Sm90Builder::arrive(Value barrier) {
  NVVM::MBarrierArriveOp::create(*this, loc, getI64Type(), barrier, Value());
}

void Sm90Builder::fenceAsync() {
  auto space = NVVM::SharedSpaceAttr::get(getContext(), NVVM::SharedSpace::shared_cta);
  NVVM::FenceProxyOp::create(*this, loc, NVVM::ProxyKind::async_shared, space);
}

void Sm90Builder::prefetchMap(Value map) {
  NVVM::PrefetchOp::create(*this, loc, NVVM::PrefetchCacheLevelAttr(),
                           NVVM::CacheEvictionPriorityAttr(), map, Value(), getUnitAttr());
}

void Sm90Builder::copyBox(Value target, Value map, ValueRange coordinates, Value barrier) {
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      *this, loc, target, map, coordinates, barrier, ValueRange(), Value(), Value(),
      NVVM::TMALoadMode::TILE, /*isCTAOnly=*/true, NVVM::CTAGroupKindAttr(), Value());
}

void Sm90Builder::copyBulk(Value target, Value source, Value bytes, Value barrier) {
  NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(*this, loc, target, source, barrier, bytes,
                                                   Value(), Value());
}

void Sm90Builder::storeMatrices(Value place, ArrayRef<Value> words) {
  NVVM::StMatrixOp::create(*this, loc, place, words, NVVM::MMALayout::row,
                           NVVM::LdStMatrixShapeAttr::get(getContext(), 8, 8),
                           NVVM::LdStMatrixEltType::B16);
}

Value Sm90Builder::matrixRowOfThread(Value threadOfGroup) {
  Value lane = rem(threadOfGroup, 32), row = add(mul(div(threadOfGroup, 32), 16), rem(lane, 16)),
        chunk = createOrFold<arith::XOrIOp>(loc, div(lane, 16), rem(lane, 8));
  return add(mul(row, panelBytes), mul(chunk, 16));
}

void Sm90Builder::storeBox(Value map, ValueRange coordinates, Value source) {
  NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(*this, loc, map, source, coordinates, Value(),
                                                     NVVM::TMAStoreMode::TILE, Value());
}

void Sm90Builder::storeBulk(Value target, Value source, Value bytes) {
  NVVM::CpAsyncBulkSharedCTAToGlobalOp::create(*this, loc, target, source, bytes, Value(), Value());
}

void Sm90Builder::addBulk(Value target, Value source, Value bytes) {
  Value from = LLVM::PtrToIntOp::create(*this, loc, getI32Type(), source),
        to = LLVM::PtrToIntOp::create(*this, loc, getI64Type(), target);
  assembly("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [$0], [$1], $2;",
           "l,r,r,~{memory}", {to, from, bytes}, {});
}

void Sm90Builder::commitStores() { NVVM::CpAsyncBulkCommitGroupOp::create(*this, loc); }

void Sm90Builder::waitForStores(int64_t pending, bool sourceOnly) {
  NVVM::CpAsyncBulkWaitGroupOp::create(*this, loc, static_cast<uint32_t>(pending),
                                       sourceOnly ? getUnitAttr() : UnitAttr());
}

static LLVM::LLVMPointerType clusterPointer(MLIRContext *context) {
  return LLVM::LLVMPointerType::get(context,
                                    static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
}

Value Sm90Builder::blockInCluster() {
  return NVVM::BlockInClusterIdXOp::create(*this, loc, getI32Type());
}

void Sm90Builder::clusterBarrier() {
  NVVM::ClusterArriveOp::create(*this, loc, UnitAttr());
  NVVM::ClusterWaitOp::create(*this, loc, UnitAttr());
}

void Sm90Builder::copyBoxToCluster(Value target, Value map, ValueRange coordinates, Value barrier,
                                   int64_t blocks) {
  Value to = LLVM::AddrSpaceCastOp::create(*this, loc, clusterPointer(getContext()), target);
  Value mask = arith::ConstantIntOp::create(*this, loc, (INT64_C(1) << blocks) - 1, 16);
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      *this, loc, to, map, coordinates, barrier, ValueRange(), mask, Value(),
      NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false, NVVM::CTAGroupKindAttr(), Value());
}

void Sm90Builder::arriveIn(Value barrier, Value number) {
  Value there = NVVM::MapaOp::create(*this, loc, clusterPointer(getContext()), barrier, number);
  // With .release.cluster, ptxas would fence all memory of the GPU before each arrival.
  Value address = LLVM::PtrToIntOp::create(*this, loc, getI64Type(), there);
  assembly("mbarrier.arrive.shared::cluster.b64 _, [$0];", "l,~{memory}", address, {});
}

void Sm90Builder::fenceGlobal() {
  NVVM::FenceProxyOp::create(*this, loc, NVVM::ProxyKind::async_global, NVVM::SharedSpaceAttr());
}

void Sm90Builder::waitForValue(Value place, Value value) {
  Value address = LLVM::PtrToIntOp::create(*this, loc, getI64Type(), place);
  assembly("{\n.reg .pred p;\n.reg .b32 v;\nagain:\nld.acquire.gpu.global.b32 v, "
           "[$0];\nsetp.ne.s32 p, v, $1;\n@p bra again;\n}",
           "l,r,~{memory}", {address, value}, {});
}

void Sm90Builder::increment(Value place) {
  Value address = LLVM::PtrToIntOp::create(*this, loc, getI64Type(), place);
  assembly("red.release.gpu.global.add.u32 [$0], 1;", "l,~{memory}", address, {});
}

Value Sm90Builder::describe(Value place, int64_t panelDistance) {
  constexpr uint64_t swizzle128 = UINT64_C(1) << 62, eightRows = UINT64_C(8 * panelBytes / 16)
                                                                 << 32;
  constexpr int64_t addressBits = 18;
  uint64_t rest = swizzle128 | eightRows | static_cast<uint64_t>(panelDistance / 16) << 16;
  Value address = LLVM::PtrToIntOp::create(*this, loc, getI32Type(), place);
  address = div(rem(address, INT64_C(1) << addressBits), 16);
  Value wide = arith::ExtUIOp::create(*this, loc, getI64Type(), address);
  return arith::OrIOp::create(*this, loc, wide, constant(static_cast<int64_t>(rest)));
}

SharedFactor Sm90Builder::factorAlong(Value place, int64_t rows, int64_t k, int64_t elementBytes) {
  SharedFactor factor{describe(place, 16), {}, /*across=*/false};
  for (int64_t at = 0; at < k * elementBytes; at += stepBytes)
    factor.steps.push_back(at / panelBytes * rows * panelBytes + at % panelBytes);
  return factor;
}

SharedFactor Sm90Builder::factorAcross(Value place, int64_t rows, int64_t k) {
  SharedFactor factor{describe(place, rows * panelBytes), {}, /*across=*/true};
  for (int64_t row = 0; row < k; row += stepCols)
    factor.steps.push_back(row * panelBytes);
  return factor;
}

/// Returns a list of `count` operands of inline assembly: "{$first, $first+1, ..}".
static std::string operandsFrom(size_t first, size_t count) {
  std::string text = "{";
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + "}";
}

/// Returns the instruction "add.s64 name, $operand, bytes / 16;", which sets the register `name` to
/// the descriptor in `operand` plus `bytes` bytes.
static std::string stepTo(StringRef name, size_t operand, int64_t bytes) {
  return ("add.s64 " + name + ", $" + Twine(operand) + ", " + Twine(bytes / 16) + ";\n").str();
}

SmallVector<Value> Sm90Builder::multiply(ArrayRef<Value> sums, ArrayRef<Value> registers,
                                         const SharedFactor *lhs, const SharedFactor &rhs,
                                         int64_t cols, Type element) {
  size_t count = cols / 2, first = count + sums.size();
  bool isWide = element.isF32();
  StringRef type = isWide ? "tf32" : element.isBF16() ? "bf16" : "f16";
  std::string shape =
      ("m64n" + Twine(cols) + (isWide ? "k8" : "k16") + ".f32." + type + "." + type).str();
  std::string constraints;
  for (size_t i = 0; i < count; ++i)
    constraints += "=f,";
  constraints += tied(sums.size());
  SmallVector<Value> operands(sums);
  llvm::append_range(operands, registers);
  for (size_t i = 0; i < registers.size(); ++i)
    constraints += "r,";
  for (const SharedFactor *factor : {lhs, &rhs})
    if (factor) {
      operands.push_back(factor->descriptor);
      constraints += "l,";
    }
  std::string text = "{\n.reg .b64 a, b;\n.reg .pred zero, sum;\nsetp.ne.b32 zero, 0, "
                     "0;\nsetp.eq.b32 sum, 0, 0;\nwgmma.fence.sync.aligned;\n";
  for (auto [i, step] : llvm::enumerate(rhs.steps)) {
    if (lhs)
      text += stepTo("a", first, lhs->steps[i]);
    text += stepTo("b", first + registers.size() + (lhs ? 1 : 0), step);
    text += "wgmma.mma_async.sync.aligned." + shape + " " + operandsFrom(0, count) + ", " +
            (lhs ? "a" : operandsFrom(first + 4 * i, 4)) + ", b, " +
            (i == 0 && sums.empty() ? "zero" : "sum") + ", 1, 1";
    if (!isWide) // TF32 factors cannot be transposed.
      text += std::string(lhs ? lhs->across ? ", 1" : ", 0" : "") + (rhs.across ? ", 1" : ", 0");
    text += ";\n";
  }
  text += "wgmma.commit_group.sync.aligned;\n}";
  return assembly(text, constraints + "~{memory}", operands,
                  SmallVector<Type>(count, getF32Type()));
}

SmallVector<Value> Sm90Builder::multiply(ArrayRef<Value> sums, const SharedFactor &lhs,
                                         const SharedFactor &rhs, int64_t cols, Type element) {
  return multiply(sums, {}, &lhs, rhs, cols, element);
}

SmallVector<Value> Sm90Builder::multiply(ArrayRef<Value> sums, ArrayRef<Value> lhs,
                                         const SharedFactor &rhs, int64_t cols, Type element) {
  return multiply(sums, lhs, nullptr, rhs, cols, element);
}

SmallVector<Value> Sm90Builder::waitForSums(ArrayRef<Value> values, int64_t pending) {
  std::string constraints;
  SmallVector<Type> types;
  for (Value value : values) {
    constraints += registerOf(value.getType());
    types.push_back(value.getType());
  }
  return assembly("wgmma.wait_group.sync.aligned " + Twine(pending) + ";",
                  constraints + tied(values.size()) + "~{memory}", values, types);
}
