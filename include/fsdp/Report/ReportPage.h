//===- ReportPage.h - Report a plan as an HTML page -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_REPORT_REPORTPAGE_H
#define FSDP_REPORT_REPORTPAGE_H

#include "fsdp/Analysis/Cluster.h"
#include "fsdp/Analysis/DtypeFlow.h"
#include "fsdp/Report/KernelReport.h"

namespace mlir::fsdp {

/// Writes the program `step` of a planned module with workspace as one self-contained HTML page:
/// - a diagram of the buffers of the arena over the commands, with details of the buffer under the
///   mouse pointer
/// - a timeline of compute and communication, with times that are estimated for `cluster`
/// - on a GPU, the times of kernels, by the clocks of their plans
/// - tables of the units, the bytes sent, and the types of the computation
///
/// `title` is the title of the page.
void writeReport(ModuleOp planned, const Cluster &cluster, ArrayRef<DtypeRow> dtypes,
                 const KernelReport &kernels, StringRef title, raw_ostream &os);

} // namespace mlir::fsdp

#endif // FSDP_REPORT_REPORTPAGE_H
