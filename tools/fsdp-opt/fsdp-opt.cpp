//===- fsdp-opt.cpp - Run passes on IR --------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Pipelines/Registration.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::fsdp::registerDialects(registry);
  mlir::registerAllPasses();
  mlir::fsdp::registerPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "fsdp-opt: run passes of fsdp-mlir (--fsdp-...) and of MLIR on IR, one at a time\n", registry));
}
