//===- StepOption.td - Pass options from Options.def -------*- tablegen -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_OPTIONS_STEPOPTION_TD
#define FSDP_OPTIONS_STEPOPTION_TD

include "mlir/Pass/PassBase.td"

/// A pass option that has the name of a row of Options.def. The row defines the default and the
/// meaning of the option. The pipelines set the pass option to the value of the option with this
/// row.
class StepOption<string member, string name, string type>
    : Option<member, name, type, "::mlir::fsdp::getDefault<" # type # ">(\"" # name # "\")",
             "Same as fsdp-compile --" # name # ": docs/reference/options.md.">;

#endif // FSDP_OPTIONS_STEPOPTION_TD
