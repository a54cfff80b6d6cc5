//===- InputFile.h - Reading whole files ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_EMULATE_INPUTFILE_H
#define FSDP_EMULATE_INPUTFILE_H

#include <cstdint>
#include <string>

namespace fsdprt::emulate {

/// Returns the content of a file. Throws Error if the file cannot be read or has more than `most`
/// bytes. The message of the error begins with `where`.
std::string readFile(const std::string &path, uint64_t most, const std::string &where);

} // namespace fsdprt::emulate

#endif // FSDP_EMULATE_INPUTFILE_H
