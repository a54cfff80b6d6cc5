//===- OutlineKernels.cpp - One function per distinct dispatch --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The layers of a model are alike. Most dispatches therefore have the same body as another
// dispatch, and use the same kernel.
//
//   %y = fsdp.dispatch (%a) inplace [-1]      %y = fsdp.kernel_call @k_1f..(%a) inplace [-1]
//        attributes {kind = "map"} {
//   ^bb0(%x: tensor<8xf32>):             =>
//     ...                                     func.func private @k_1f..(%x: tensor<8xf32>,
//     fsdp.yield %r : tensor<8xf32>               %out: tensor<8xf32> {fsdp.out = 0})
//   }                                         { ... return %r }
//
// 1. Build a function from the dispatch's block. For each result that is not in place, add an
//    argument for its destination. The body does not use this argument.
// 2. Of all functions that are equal but for locations, keep the first one, and erase the others.
//    Functions are compared only if the hashes of their ops are equal.
// 3. Print the function that is kept without locations, under a fixed name, and name it k_<hash of
//    the text>. The name therefore does not depend on other kernels. For large tables of constants,
//    a hash is printed.
//
// Takes O(size of the dispatches) time. Dispatches with different constants have different kernels.
//
//===----------------------------------------------------------------------===//

#include "fsdp/IR/DispatchKernel.h"
#include "fsdp/IR/Kernels.h"
#include "fsdp/Plan/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MD5.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_OUTLINEKERNELSPASS
#include "fsdp/Plan/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static std::string hashText(StringRef text) {
  llvm::MD5 md5;
  md5.update(text);
  llvm::MD5::MD5Result digest;
  md5.final(digest);
  return llvm::toHex(ArrayRef<uint8_t>(digest).take_front(8), /*LowerCase=*/true);
}

namespace {

/// Prints kernels (step 3). Computes the hash of a table of constants only once, even if many
/// dispatches contain the table.
class StructurePrinter {
public:
  std::string print(func::FuncOp kernel) {
    std::string text;
    llvm::raw_string_ostream os(text);
    kernel->print(os, OpPrintingFlags()
                          .useLocalScope()
                          .printGenericOpForm()
                          .enableDebugInfo(false)
                          .elideLargeElementsAttrs(largestPrinted));
    kernel->walk([&](Operation *op) {
      op->getAttrDictionary().walk([&](ElementsAttr attr) {
        if (!attr.isSplat() && attr.getNumElements() > largestPrinted)
          os << "\n" << getDigest(attr);
      });
    });
    return text;
  }

private:
  static constexpr int64_t largestPrinted = 64;

  StringRef getDigest(Attribute attr) {
    std::string &digest = digests[attr];
    if (digest.empty()) {
      std::string text;
      llvm::raw_string_ostream(text) << attr;
      digest = hashText(text);
    }
    return digest;
  }

  DenseMap<Attribute, std::string> digests;
};

/// Finds kernels that are equal but for locations (step 2).
class KernelSet {
public:
  /// Returns the kernel of the set that is equal to `kernel`, or null after adding `kernel`.
  func::FuncOp findOrAdd(func::FuncOp kernel) {
    SmallVector<func::FuncOp> &similar = kernels[hash(kernel)];
    for (func::FuncOp known : similar)
      if (isEqual(kernel, known))
        return known;
    similar.push_back(kernel);
    return {};
  }

private:
  static llvm::hash_code hash(func::FuncOp kernel) {
    llvm::hash_code code = llvm::hash_value(kernel.getFunctionType().getAsOpaquePointer());
    kernel.getBody().walk([&](Operation *op) {
      code = llvm::hash_combine(code, op->getName(), op->getDiscardableAttrDictionary(),
                                op->hashProperties(), op->getResultTypes());
    });
    return code;
  }

  static bool isEqual(func::FuncOp a, func::FuncOp b) {
    return a.getFunctionType() == b.getFunctionType() &&
           a.getArgAttrsAttr() == b.getArgAttrsAttr() &&
           a->getDiscardableAttrDictionary() == b->getDiscardableAttrDictionary() &&
           OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(),
                                                      OperationEquivalence::IgnoreLocations);
  }

  DenseMap<llvm::hash_code, SmallVector<func::FuncOp>> kernels;
};

class OutlineKernelsPass : public fsdp::impl::OutlineKernelsPassBase<OutlineKernelsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    StructurePrinter printer;
    KernelSet kernels;
    SmallVector<DispatchOp> dispatches;
    module.walk([&](DispatchOp op) { dispatches.push_back(op); });
    for (DispatchOp dispatch : dispatches) {
      SmallVector<NamedAttribute> attributes;
      for (NamedAttribute attr : dispatch->getDiscardableAttrs())
        if (attr.getName() != dispatchKindAttr)
          attributes.push_back(attr);
      func::FuncOp built = buildKernel(dispatch), kernel = kernels.findOrAdd(built);
      if (kernel) {
        built.erase();
      } else { // add the kernel at the end of the module, in the order of the first uses
        kernel = built;
        kernel.setName("k_" + hashText(printer.print(kernel)));
        // insert() renames the kernel if another symbol has the same name.
        symbols.insert(kernel, module.getBody()->end());
        ++numKernels;
      }
      OpBuilder builder(dispatch);
      auto call = KernelCallOp::create(builder, dispatch.getLoc(), dispatch.getResultTypes(),
                                       FlatSymbolRefAttr::get(kernel.getNameAttr()),
                                       dispatch.getInputs(), dispatch.getInplaceAttr());
      call->setDiscardableAttrs(attributes);
      dispatch.replaceAllUsesWith(call.getResults());
      dispatch.erase();
      ++numCalls;
    }
  }
};

} // namespace
