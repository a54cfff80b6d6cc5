//===- CompileImage.cpp - Compiles the kernels of a module to one image --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Clone each kernel into a module of its own. The kernels keep the order of the module.
//  2. Lower each clone and emit its object, or read the object from the cache. The threads of the
//     context process several kernels in parallel, because kernels are independent.
//  3. Link the objects in order.
//
// measureCpuKernels() lowers kernels only until their scratch sizes are known.
//
//===----------------------------------------------------------------------===//

#include "CpuLowering.h"
#include "fsdp/Codegen/Codegen.h"
#include "fsdp/Codegen/KernelCache.h"
#include "mlir/IR/Threading.h"

using namespace mlir;
using namespace mlir::fsdp;

FailureOr<Image> fsdp::compileImage(ModuleOp module, const CpuTarget &target,
                                    const ObjectLowering &lowering, KernelCache *cache) {
  MLIRContext *context = module.getContext();
  loadCpuDialects(*context);
  SmallVector<OwningOpRef<ModuleOp>> modules;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function->hasAttr(kernelAttr))
      continue;
    modules.push_back(ModuleOp::create(function.getLoc()));
    modules.back()->push_back(function.clone());
  }
  Image image;
  image.isa = target.isa;
  image.kernels.resize(modules.size());
  SmallVector<Object> objects(modules.size());
  auto one = [&](size_t index) -> LogicalResult {
    auto kernel = *modules[index]->getOps<func::FuncOp>().begin();
    if (failed(describeKernel(kernel, image.kernels[index])) || failed(verifyFloatContract(kernel)))
      return failure();
    KernelInfo &info = image.kernels[index];
    FailureOr<Object> object =
        cache ? cache->get(kernel, lowering.name, target, info, lowering.compile)
              : lowering.compile(kernel, info);
    if (failed(object))
      return failure();
    objects[index] = std::move(*object);
    return success();
  };
  if (failed(failableParallelForEachN(context, 0, modules.size(), one)))
    return failure();
  if (cache)
    cache->warnOfFiles(module.getLoc());
  FailureOr<std::vector<char>> elf = linkImage(objects, lowering.libraries, module.getLoc());
  if (failed(elf))
    return failure();
  image.elf = std::move(*elf);
  return image;
}

FailureOr<Image> fsdp::compileCpuImage(ModuleOp module, const CpuTarget &target,
                                       KernelCache *cache) {
  auto compile = [&](func::FuncOp kernel, KernelInfo &info) -> FailureOr<Object> {
    auto parent = kernel->getParentOfType<ModuleOp>();
    if (failed(lowerKernel(kernel, target, info)) || failed(lowerToLLVMDialect(parent)))
      return failure();
    return emitObject(parent, info, target);
  };
  return compileImage(module, target, {"cpu", compile}, cache);
}

FailureOr<Image> fsdp::measureCpuKernels(ModuleOp module, const CpuTarget &target) {
  loadCpuDialects(*module.getContext());
  Image image;
  image.isa = target.isa;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function->hasAttr(kernelAttr))
      continue;
    OwningOpRef<ModuleOp> own = ModuleOp::create(function.getLoc());
    own->push_back(function.clone());
    auto kernel = *own->getOps<func::FuncOp>().begin();
    KernelInfo &info = image.kernels.emplace_back();
    if (failed(describeKernel(kernel, info)) || failed(verifyFloatContract(kernel)) ||
        failed(lowerKernel(kernel, target, info)))
      return failure();
  }
  return image;
}
