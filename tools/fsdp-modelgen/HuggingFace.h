//===- HuggingFace.h - Read a Hugging Face config.json ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_MODELGEN_HUGGINGFACE_H
#define FSDP_MODELGEN_HUGGINGFACE_H

#include "ModelConfig.h"
#include "llvm/ADT/ArrayRef.h"

namespace mlir::fsdp::modelgen {

struct HuggingFaceResult {
  ModelConfig config;
  std::vector<std::string> errors; // errors in the file; if there is an error, the file is refused
  std::vector<std::string> notes;  // parts of the file that the model omits
};

/// Reads `path`, which is a file or a folder with config.json. If a key is missing, the default of
/// the model type applies. Reports an error for each key that is not supported, unless the key is
/// known not to affect the model or is in `ignored`.
HuggingFaceResult readHuggingFaceConfig(StringRef path, ArrayRef<std::string> ignored);

} // namespace mlir::fsdp::modelgen

#endif // FSDP_MODELGEN_HUGGINGFACE_H
