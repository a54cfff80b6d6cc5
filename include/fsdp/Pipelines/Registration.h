//===- Registration.h - Dialects and passes of the project ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PIPELINES_REGISTRATION_H
#define FSDP_PIPELINES_REGISTRATION_H

namespace mlir {
class DialectRegistry;
namespace fsdp {
/// Registers the fsdp dialect, all dialects of MLIR, and the extensions of dialects.
void registerDialects(DialectRegistry &registry);
void registerPasses();
} // namespace fsdp
} // namespace mlir

#endif // FSDP_PIPELINES_REGISTRATION_H
