//===- ManifestKernels.cpp - Kernels and lookups of a manifest --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Adds two lists to the manifest: the kernels with their phases, GPU grids and library products,
// and the lookups that are checked at run time.
//
//===----------------------------------------------------------------------===//

#include "ManifestBuilder.h"
#include "fsdp/Analysis/MultiplyAdds.h"
#include "fsdp/IR/StepBlock.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::fsdp;

static fb::DType dtypeOf(GpuTensorType type) {
  return type == GpuTensorType::BF16  ? fb::DType::bf16
         : type == GpuTensorType::F16 ? fb::DType::f16
                                      : fb::DType::f32;
}

/// Adds the grid of a phase of a GPU kernel. Returns null for a CPU kernel, and for a phase that a
/// library computes.
Offset<fb::Grid> ManifestBuilder::addGrid(const PhaseInfo &phase) {
  if (!gpuCode.isPresent() || gpuCode.products.contains(phase.symbol))
    return {};
  const GpuGrid &grid = gpuCode.grids.at(phase.symbol);
  auto numbers = [&](ArrayRef<int64_t> values) {
    return builder.CreateVector(std::vector<uint64_t>(values.begin(), values.end()));
  };
  std::vector<Offset<fb::TensorMap>> maps;
  for (const GpuTensor &tensor : grid.tensors) {
    auto sizes = numbers(tensor.sizes), strides = numbers(tensor.strides);
    auto box = builder.CreateVector(std::vector<uint32_t>(tensor.box.begin(), tensor.box.end()));
    maps.push_back(fb::CreateTensorMap(builder, tensor.binding, tensor.offset, dtypeOf(tensor.type),
                                       sizes, strides, box));
  }
  auto mapsVector = maps.empty() ? Offset<flatbuffers::Vector<Offset<fb::TensorMap>>>()
                                 : builder.CreateVector(maps);
  return fb::CreateGrid(builder, grid.blocks, grid.threads, grid.sharedBytes, mapsVector,
                        grid.cluster);
}

FailureOr<Offset<fb::Matrix>> ManifestBuilder::addMatrix(const GpuMatrix &matrix, Location loc) {
  FailureOr<fb::DType> dtype = getDType(matrix.type, loc);
  if (failed(dtype))
    return failure();
  return fb::CreateMatrix(builder, matrix.binding, matrix.offset, *dtype, matrix.leading,
                          matrix.batchStride, matrix.isTransposed);
}

/// If a library computes the phase, adds the phase's product. Returns null for other phases.
FailureOr<Offset<fb::Product>> ManifestBuilder::addProduct(const PhaseInfo &phase, Location loc) {
  if (!gpuCode.isPresent() || !gpuCode.products.contains(phase.symbol))
    return Offset<fb::Product>();
  const GpuProduct &product = gpuCode.products.at(phase.symbol);
  std::vector<Offset<fb::Matrix>> matrices;
  for (const GpuMatrix *matrix :
       {&product.lhs, &product.rhs, &product.result, product.addend ? &*product.addend : nullptr,
        product.bias ? &*product.bias : nullptr, product.aux ? &*product.aux : nullptr}) {
    FailureOr<Offset<fb::Matrix>> added = matrix ? addMatrix(*matrix, loc) : Offset<fb::Matrix>();
    if (failed(added))
      return failure();
    matrices.push_back(*added);
  }
  return fb::CreateProduct(builder, product.m, product.n, product.k, product.batches, matrices[0],
                           matrices[1], matrices[2], matrices[3], matrices[4], matrices[5],
                           static_cast<fb::Activation>(product.activation));
}

/// Adds the cost of a phase on a GPU. Returns null on a CPU.
Offset<fb::Cost> ManifestBuilder::addCost(const PhaseInfo &phase) {
  auto found = gpuCode.costs.find(phase.symbol);
  if (found == gpuCode.costs.end())
    return {};
  const GpuCost &cost = found->second;
  return fb::CreateCost(builder, cost.clocks, cost.units.tensor, cost.units.issue,
                        cost.units.special, cost.units.shared, cost.units.cache, cost.bytes,
                        cost.balance);
}

LogicalResult ManifestBuilder::addKernels() {
  llvm::StringMap<const KernelInfo *> known;
  for (const KernelInfo &kernel : image.kernels)
    known[kernel.name] = &kernel;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function->hasAttr(kernelAttr))
      continue;
    const KernelInfo *kernel = known.lookup(function.getName());
    if (!kernel || kernel->bindingBytes.size() != function.getNumArguments() ||
        kernel->phases.empty())
      return function.emitError("expected the image to hold code for this kernel with ")
             << function.getNumArguments() << " bindings, found "
             << (kernel ? "another signature" : "none");
    std::vector<Offset<fb::Phase>> phases;
    for (const PhaseInfo &phase : kernel->phases) {
      auto symbol = addString(phase.symbol);
      FailureOr<Offset<fb::Product>> product = addProduct(phase, function.getLoc());
      if (failed(product))
        return failure();
      Offset<fb::Grid> grid = addGrid(phase);
      phases.push_back(fb::CreatePhase(builder, symbol, phase.extent, phase.tile, grid, *product,
                                       addCost(phase)));
    }
    std::vector<uint64_t> bytes(kernel->bindingBytes.begin(), kernel->bindingBytes.end());
    std::vector<uint8_t> writes(kernel->writes.begin(), kernel->writes.end());
    std::vector<uint8_t> reads(kernel->reads.begin(), kernel->reads.end());
    auto phasesVector = builder.CreateVector(phases);
    auto bytesVector = builder.CreateVector(bytes);
    auto writesVector = builder.CreateVector(writes), readsVector = builder.CreateVector(reads);
    auto kind = function->getAttrOfType<StringAttr>(kindAttr);
    MultiplyAdds work = countMultiplyAdds(function);
    Offset<flatbuffers::String> kindText = kind ? addString(kind) : Offset<flatbuffers::String>();
    kernels.push_back(fb::CreateKernel(builder, addString(kernel->name), phasesVector, bytesVector,
                                       writesVector, kernel->sharedBytes, kernel->workerBytes,
                                       kindText, work.wide, work.bf16, countMovedBytes(function),
                                       readsVector));
  }
  return success();
}

/// Adds the lookups that are checked in each step. Returns null if no lookups are checked.
FailureOr<Offset<flatbuffers::Vector<Offset<fb::Lookup>>>> ManifestBuilder::addLookups() {
  std::vector<Offset<fb::Lookup>> lookups;
  auto list = module->getAttrOfType<ArrayAttr>(lookupsAttr);
  for (Attribute attr : list ? list.getValue() : ArrayRef<Attribute>()) {
    auto lookup = dyn_cast<DictionaryAttr>(attr);
    auto location = lookup ? lookup.getAs<StringAttr>("location") : StringAttr();
    auto extent = lookup ? lookup.getAs<IntegerAttr>("extent") : IntegerAttr();
    auto what = lookup ? lookup.getAs<StringAttr>("what") : StringAttr();
    if (!location || !extent || extent.getInt() < 1 || !what)
      return emitError(module.getLoc(),
                       "expected dictionaries with 'location', 'extent' and 'what' in '")
             << lookupsAttr << "', found " << attr;
    lookups.push_back(fb::CreateLookup(builder, addString(location.getValue()), extent.getInt(),
                                       addString(what.getValue())));
  }
  return lookups.empty() ? Offset<flatbuffers::Vector<Offset<fb::Lookup>>>()
                         : builder.CreateVector(lookups);
}
