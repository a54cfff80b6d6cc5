//===- RepeatedGathersTest.cpp - Which gathers may be kept ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RepeatedGathers.h"
#include "fsdp/IR/FSDP.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Returns the number of gathers that repeat another one. `body` computes %first and %second from
/// %p, and both are gathered.
static size_t countRepeated(const std::string &body) {
  MLIRContext context;
  context.loadDialect<FSDPDialect, func::FuncDialect>();
  std::string text = R"mlir(
fsdp.mesh @mesh [#fsdp.axis<"shard", [2]>]
fsdp.unit @u shards 2 x 64 : f32 reshard true [
  #fsdp.param<"w", tensor<128xf32>, 0, trainable = true, decay = true, init = <normal, 0.0, 0.5>>]
func.func private @cast(%x: tensor<64xf32>, %o: tensor<64xf32> {fsdp.out = 0 : i64}) -> tensor<64xf32>
    attributes {fsdp.kernel}
func.func private @over(%x: tensor<64xf32> {fsdp.inout = 0 : i64}) -> tensor<64xf32> attributes {fsdp.kernel}
func.func private @both(%x: tensor<64xf32>, %o: tensor<64xf32> {fsdp.out = 0 : i64}, %q: tensor<64xf32> {fsdp.out = 1 : i64})
    -> (tensor<64xf32>, tensor<64xf32>) attributes {fsdp.kernel}
func.func @step(%p: tensor<64xf32>, %other: tensor<64xf32>) -> (tensor<128xf32>, tensor<128xf32>)
    attributes {fsdp.program = "step", fsdp.mesh = @mesh} {
)mlir" + body + R"mlir(
  %a = fsdp.unshard %first @u site 0 : tensor<64xf32> -> tensor<128xf32>
  %b = fsdp.unshard %second @u site 1 : tensor<64xf32> -> tensor<128xf32>
  return %a, %b : tensor<128xf32>, tensor<128xf32>
})mlir";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module) {
    ADD_FAILURE() << text;
    return 0;
  }
  return findRepeatedGathers(module->lookupSymbol<func::FuncOp>("step").getBody().front()).size();
}

static std::string call(const std::string &results, const std::string &kernel,
                        const std::string &input, const std::string &inplace,
                        const std::string &types = "tensor<64xf32>") {
  return "  " + results + " = fsdp.kernel_call @" + kernel + "(" + input + ") inplace [" + inplace +
         "] : (tensor<64xf32>) -> (" + types + ")\n";
}

TEST(RepeatedGathers, TakeTheSameShard) {
  EXPECT_EQ(countRepeated(call("%first", "cast", "%p", "-1") + call("%second", "cast", "%p", "-1")),
            1u);
  EXPECT_EQ(
      countRepeated(call("%first", "cast", "%p", "-1") + call("%second", "cast", "%other", "-1")),
      0u);
  EXPECT_EQ(
      countRepeated(call("%first", "cast", "%p", "-1") + call("%second", "cast", "%first", "-1")),
      0u);
}

TEST(RepeatedGathers, TakeTheSameResultOfAKernel) {
  const char *two = "tensor<64xf32>, tensor<64xf32>";
  EXPECT_EQ(countRepeated(call("%first, %x", "both", "%p", "-1, -1", two) +
                          call("%second, %y", "both", "%p", "-1, -1", two)),
            1u);
  EXPECT_EQ(countRepeated(call("%first, %x", "both", "%p", "-1, -1", two) +
                          call("%y, %second", "both", "%p", "-1, -1", two)),
            0u);
  EXPECT_EQ(countRepeated(call("%first, %second", "both", "%p", "-1, -1", two)), 0u);
}

TEST(RepeatedGathers, TakeNothingThatIsWrittenOver) {
  EXPECT_EQ(countRepeated(call("%first", "over", "%p", "0") + call("%second", "over", "%p", "0")),
            0u);
}
