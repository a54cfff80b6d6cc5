//===- Artifact.h - A .fsdp file that has been checked ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Nothing behind this class sees a byte that the verifier has not been over. With Rules::form there
// is no code, and what its commands touch may be anywhere.
//
// The file is read into memory of our own, so that it cannot change after the check.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_ARTIFACT_ARTIFACT_H
#define FSDPRT_ARTIFACT_ARTIFACT_H

#include "artifact/Image.h"
#include "artifact/Mesh.h"
#include "artifact/Verifier.h"
#include "fsdprt/artifact_generated.h"
#include "fsdprt/artifact_header.h"
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fsdprt {

using KernelFunction = void (*)(void *const *bindings, int64_t begin, int64_t end, void *workspace);

struct KernelPhase {
  KernelFunction function;
  uint64_t extent, tile;
};

class Artifact {
public:
  static std::unique_ptr<Artifact> open(const std::string &path, Rules rules = Rules::all);
  static std::unique_ptr<Artifact> fromMemory(const void *bytes, size_t size,
                                              const std::string &name, Rules rules = Rules::all);

  const std::string &getFile() const { return file; }
  const fb::Manifest &manifest() const { return *root; }
  const fsdprt_artifact_header &getHeader() const { return header; }
  const Mesh &getMesh() const { return mesh; }
  /// Whether its programs can run: fsdp-compile --no-code leaves the kernels' code out.
  bool hasCode() const {
    return header.image_size != 0 || !root->kernels() || root->kernels()->size() == 0;
  }
  /// The phases of kernel i. Needs code for a CPU.
  const std::vector<KernelPhase> &kernel(uint32_t i) const { return kernels[i]; }
  /// Null when its kernels are for a CPU.
  const fb::Gpu *gpu() const { return root->gpu(); }
  /// The kernels' text, of an artifact for a GPU that has code.
  /// Empty where there is none.
  std::string_view cubin() const {
    const fb::Gpu &gpu = *root->gpu();
    return {reinterpret_cast<const char *>(bytes.get() + header.image_offset + gpu.cubin_offset()),
            gpu.cubin_bytes()};
  }
  std::string_view ptx() const {
    return {reinterpret_cast<const char *>(bytes.get() + header.image_offset),
            root->gpu()->ptx_bytes()};
  }
  /// The values of a parameter; 64-byte aligned.
  const std::byte *values(const fb::Value &value) const {
    return bytes.get() + header.values_offset + value.offset();
  }
  /// Null when there is none.
  const fb::Program *program(const char *name) const;

private:
  Artifact() = default;
  void check(Rules rules);
  void checkHeader();
  void resolveKernels();

  struct Free {
    void operator()(void *memory) const;
  };
  std::string file;
  std::unique_ptr<std::byte, Free> bytes;
  size_t size = 0;
  fsdprt_artifact_header header = {};
  const fb::Manifest *root = nullptr;
  Mesh mesh;
  std::unique_ptr<Image> image;
  std::vector<std::vector<KernelPhase>> kernels;
};

/// True for the programs that run on the one unsharded rank.
bool isReferenceProgram(const std::string &name);

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_ARTIFACT_H
