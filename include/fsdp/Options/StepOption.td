//===- StepOption.td - Options of passes that are rows ------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_OPTIONS_STEPOPTION_TD
#define FSDP_OPTIONS_STEPOPTION_TD

include "mlir/Pass/PassBase.td"

/// An option that has the name of a row of Options.def. Its default and its meaning are that row's; the pipelines set
/// it by its name.
class StepOption<string member, string name, string type>
    : Option<member, name, type, "::mlir::fsdp::getDefault<" # type # ">(\"" # name # "\")",
             "As --" # name # " of fsdp-compile (docs/reference/options.md).">;

#endif // FSDP_OPTIONS_STEPOPTION_TD
