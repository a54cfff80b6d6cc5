//===- Package.cpp - Programs and code into one file ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//     0        128 (64-byte aligned)          (4096-byte aligned)
//     | header | manifest: FlatBuffer "FSDP" | zeros | image: ELF .so |
//
//  1. The workspace goes behind the buffers of each layout, once the kernels are known:
//     the shared scratch of the launch that needs most, and per worker the same.
//  2. The manifest (Manifest.cpp), then the image on a page of its own.
//  3. The header with the hash of everything, its own field as zero.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Package/Package.h"
#include "Manifest.h"
#include "fsdp/Analysis/Packing.h"
#include "fsdp/IR/FSDP.h"
#include "fsdprt/artifact_header.h"
#include "fsdprt/sha256.h"
#include "llvm/ADT/StringSet.h"
#include <cstring>

using namespace mlir;
using namespace mlir::fsdp;

/// Kernels that the programs over `layout` launch.
static llvm::StringSet<> getKernels(ModuleOp module, LayoutOp layout) {
  llvm::StringSet<> names;
  for (auto program : module.getOps<ProgramOp>())
    if (program.getLayout() == layout.getSymName())
      program.walk([&](LaunchOp launch) { names.insert(launch.getKernel()); });
  return names;
}

/// Where the buffers of a layout end.
static int64_t getEnd(LayoutOp layout) {
  int64_t end = 0;
  for (auto buffer : layout.getOps<BufferOp>())
    end = std::max(end, static_cast<int64_t>(*buffer.getOffset() + buffer.getBytes()));
  return llvm::alignTo(end, bufferAlignment);
}

void fsdp::addWorkspace(ModuleOp module, const Image &image, unsigned workers) {
  for (auto layout : module.getOps<LayoutOp>()) {
    llvm::StringSet<> names = getKernels(module, layout);
    int64_t shared = 0, worker = 0;
    for (const KernelInfo &kernel : image.kernels) {
      if (!names.contains(kernel.name))
        continue;
      shared = std::max(shared, static_cast<int64_t>(llvm::alignTo(kernel.sharedBytes, bufferAlignment)));
      worker = std::max(worker, static_cast<int64_t>(llvm::alignTo(kernel.workerBytes, bufferAlignment)));
    }
    int64_t bytes = shared + workers * worker;
    int64_t offset = llvm::alignTo(getEnd(layout), bytes ? pageAlignment : bufferAlignment);
    layout.setWorkspaceOffset(offset);
    layout.setSharedBytes(shared);
    layout.setWorkerBytes(worker);
    layout.setWorkers(workers);
    layout.setArenaBytes(offset + bytes);
  }
}

FailureOr<std::vector<char>> fsdp::buildArtifact(ModuleOp module, const Image &image, const PackageOptions &options) {
  FailureOr<std::vector<char>> manifest = buildManifest(module, image, options);
  if (failed(manifest))
    return failure();
  fsdprt_artifact_header header = {};
  std::memcpy(header.magic, FSDPRT_ARTIFACT_MAGIC, sizeof(header.magic));
  header.version = FSDPRT_ARTIFACT_VERSION;
  header.header_size = FSDPRT_ARTIFACT_HEADER_SIZE;
  header.manifest_offset = llvm::alignTo(FSDPRT_ARTIFACT_HEADER_SIZE, FSDPRT_ARTIFACT_MANIFEST_ALIGNMENT);
  header.manifest_size = manifest->size();
  header.file_size = header.manifest_offset + header.manifest_size;
  if (!image.elf.empty()) {
    header.image_offset = llvm::alignTo(header.file_size, FSDPRT_ARTIFACT_IMAGE_ALIGNMENT);
    header.image_size = image.elf.size();
    header.file_size = header.image_offset + header.image_size;
  }
  std::vector<char> file(header.file_size, 0);
  llvm::copy(*manifest, file.begin() + header.manifest_offset);
  llvm::copy(image.elf, file.begin() + header.image_offset);
  std::memcpy(file.data(), &header, sizeof(header));
  uint8_t digest[FSDPRT_ARTIFACT_HASH_SIZE];
  fsdprt_sha256_artifact(file.data(), file.size(), digest);
  std::memcpy(file.data() + FSDPRT_ARTIFACT_HASH_OFFSET, digest, sizeof(digest));
  return file;
}

LogicalResult fsdp::packArtifact(ModuleOp module, const Image &image, const PackageOptions &options, StringRef path) {
  addWorkspace(module, image, options.threadsPerRank);
  FailureOr<std::vector<char>> file = buildArtifact(module, image, options);
  return failed(file) ? failure() : writeFile(path, *file, module.getLoc());
}
