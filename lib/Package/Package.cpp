//===- Package.cpp - Artifact files -----------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     0        128 (64-byte aligned)         (4096)            (4096)
//     | header | manifest: FlatBuffer "FSDP" | image: ELF .so | values |
//
// 1. Append the manifest (Manifest.cpp). Append the image, which begins at a page boundary.
// 2. Append the initial values of parameters that the model contains (Values.cpp). These values are
//    written from their original memory, without a copy.
// 3. Write the header with a hash of all bytes of the file. For the hash, the bytes of the hash
//    itself count as zero.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Package/Package.h"
#include "Manifest.h"
#include "fsdp/Analysis/Packing.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdp/Tools/ToolMain.h"
#include "fsdpcommon/Signature.h"
#include "fsdprt/artifact_header.h"
#include "fsdprt/sha256.h"
#include <cstring>

using namespace mlir;
using namespace mlir::fsdp;

static_assert(bufferAlignment == FSDPRT_BUFFER_ALIGNMENT,
              "the runtime must round buffers as the plan does");

/// Returns the oldest version of the format whose readers understand the artifact.
static uint32_t chooseVersion(ModuleOp module, uint64_t valuesSize) {
  if (llvm::any_of(module.getOps<MeshOp>(), isPartitioned))
    return FSDPRT_ARTIFACT_VERSION;
  return valuesSize ? FSDPRT_ARTIFACT_VALUES_VERSION : FSDPRT_ARTIFACT_PLAIN_VERSION;
}

/// Returns the header without its hash. The values are the last section of the file.
static fsdprt_artifact_header layOut(uint32_t version, uint64_t manifestSize, uint64_t imageSize,
                                     uint64_t valuesSize) {
  fsdprt_artifact_header header = {};
  std::memcpy(header.magic, FSDPRT_ARTIFACT_MAGIC, sizeof(header.magic));
  header.version = version;
  header.header_size = FSDPRT_ARTIFACT_HEADER_SIZE;
  header.manifest_offset =
      llvm::alignTo(FSDPRT_ARTIFACT_HEADER_SIZE, FSDPRT_ARTIFACT_MANIFEST_ALIGNMENT);
  header.manifest_size = manifestSize;
  header.file_size = header.manifest_offset + header.manifest_size;
  if (imageSize) {
    header.image_offset = llvm::alignTo(header.file_size, FSDPRT_ARTIFACT_IMAGE_ALIGNMENT);
    header.image_size = imageSize;
    header.file_size = header.image_offset + header.image_size;
  }
  if (valuesSize) {
    header.values_offset = llvm::alignTo(header.file_size, FSDPRT_ARTIFACT_VALUES_ALIGNMENT);
    header.values_size = valuesSize;
    header.file_size = header.values_offset + header.values_size;
  }
  return header;
}

LogicalResult fsdp::verifyRanks(ModuleOp module) {
  for (auto mesh : module.getOps<MeshOp>())
    if (mesh.getNumRanks() > maxRuntimeRanks)
      return emitError(mesh.getLoc())
             << "an artifact is for at most " << maxRuntimeRanks << " ranks, found "
             << mesh.getNumRanks() << "; --explain without -o plans for more";
  return success();
}

FailureOr<ArtifactPieces> fsdp::buildArtifact(ModuleOp module, const CompiledKernels &kernels,
                                              const StepOptions &options) {
  const Image &image = kernels.image;
  if (failed(verifyRanks(module)))
    return failure();
  FailureOr<Values> values = collectValues(module);
  if (failed(values))
    return failure();
  FailureOr<std::vector<char>> manifest = buildManifest(module, kernels, *values, options);
  if (failed(manifest))
    return failure();
  fsdprt_artifact_header header =
      layOut(chooseVersion(module, values->size), manifest->size(), image.elf.size(), values->size);
  ArtifactPieces file;
  file.values = std::move(values->pieces);
  file.unpacked = std::move(values->unpacked);
  file.head.assign(header.file_size - header.values_size, 0);
  std::vector<char> &head = file.head;
  llvm::copy(*manifest, head.begin() + header.manifest_offset);
  llvm::copy(image.elf, head.begin() + header.image_offset);
  std::memcpy(head.data(), &header, sizeof(header));
  fsdprt_sha256 hash; // the hash in the header is still zero here
  fsdprt_sha256_begin(&hash);
  fsdprt_sha256_update(&hash, head.data(), head.size());
  for (ArrayRef<char> piece : file.values)
    fsdprt_sha256_update(&hash, piece.data(), piece.size());
  uint8_t digest[FSDPRT_ARTIFACT_HASH_SIZE];
  fsdprt_sha256_end(&hash, digest);
  std::memcpy(head.data() + FSDPRT_ARTIFACT_HASH_OFFSET, digest, sizeof(digest));
  return file;
}

static LogicalResult writePieces(StringRef path, ArrayRef<ArrayRef<char>> pieces, Location loc) {
  std::string problem = writeOutput(path, pieces);
  return problem.empty() ? success() : LogicalResult(emitError(loc, problem));
}

LogicalResult fsdp::writeFile(StringRef path, ArrayRef<char> bytes, Location loc) {
  return writePieces(path, ArrayRef<ArrayRef<char>>{bytes}, loc);
}

LogicalResult fsdp::writeFile(StringRef path, const ArtifactPieces &file, Location loc) {
  SmallVector<ArrayRef<char>> pieces{file.head};
  llvm::append_range(pieces, file.values);
  return writePieces(path, pieces, loc);
}

LogicalResult fsdp::packArtifact(ModuleOp module, const CompiledKernels &kernels,
                                 const StepOptions &options, StringRef path) {
  FailureOr<ArtifactPieces> file = buildArtifact(module, kernels, options);
  if (failed(file))
    return failure();
  fsdpcommon::Signature signature;
  if (const std::string &key = options.driver.signKey; !key.empty()) {
    fsdprt_artifact_header header;
    std::memcpy(&header, file->head.data(), sizeof header);
    if (std::string error = fsdpcommon::signHeader(header, key, signature); !error.empty())
      return emitError(module.getLoc(), "--sign-key=") << error;
  }
  if (failed(writeFile(path, *file, module.getLoc())))
    return failure();
  if (options.driver.signKey.empty())
    return success();
  return writeFile(fsdpcommon::signatureFile(path.str()),
                   ArrayRef(reinterpret_cast<const char *>(signature.data()), signature.size()),
                   module.getLoc());
}
