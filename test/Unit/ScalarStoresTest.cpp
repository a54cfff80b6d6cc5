//===- ScalarStoresTest.cpp - Masked stores of one lane ---------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Codegen/Kernel/Lowering.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"
#include "gtest/gtest.h"

/// Returns the body of a function after scalariseStores(). The function stores %v with `mask`.
static std::string rewritten(const std::string &mask) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  std::string text =
      "define void @f(ptr %p, <4 x i16> %v, <4 x i1> %m) {\n"
      "call void @llvm.masked.store.v4i16.p0(<4 x i16> %v, ptr align 8 %p, <4 x i1> " +
      mask + ")\nret void\n}\n";
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, problem, context);
  if (!module)
    return problem.getMessage().str();
  mlir::fsdp::scalariseStores(*module);
  EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
  std::string body;
  llvm::raw_string_ostream stream(body);
  for (llvm::Instruction &instruction : module->getFunction("f")->getEntryBlock())
    stream << instruction << "\n";
  return body;
}

TEST(ScalarStores, StoresTheOnlyLane) {
  EXPECT_EQ(rewritten("<i1 true, i1 false, i1 false, i1 false>"),
            "  %1 = extractelement <4 x i16> %v, i64 0\n"
            "  %2 = getelementptr inbounds i16, ptr %p, i64 0\n"
            "  store i16 %1, ptr %2, align 8\n"
            "  ret void\n");
  EXPECT_EQ(rewritten("<i1 false, i1 false, i1 true, i1 false>"),
            "  %1 = extractelement <4 x i16> %v, i64 2\n"
            "  %2 = getelementptr inbounds i16, ptr %p, i64 2\n"
            "  store i16 %1, ptr %2, align 4\n"
            "  ret void\n");
}

TEST(ScalarStores, KeepsOtherMasks) {
  for (const char *mask :
       {"%m", "zeroinitializer", "splat (i1 true)", "<i1 true, i1 false, i1 false, i1 true>",
        "<i1 true, i1 undef, i1 false, i1 false>"})
    EXPECT_NE(rewritten(mask).find("call void @llvm.masked.store"), std::string::npos) << mask;
}
