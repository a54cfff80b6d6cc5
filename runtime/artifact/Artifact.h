//===- Artifact.h - A checked .fsdp file ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An object of class Artifact exists only after the verifier has checked the whole file. If the
// artifact is opened with Rules::form, the code of the kernels is not loaded, and the ranges that
// commands access are not checked. The file is copied into private memory, so that later changes of
// the file have no effect.
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
  /// open() reads an artifact from a file, and fromMemory() copies an artifact from memory. Both
  /// functions check the artifact and throw Error on failure. If `verifyKey` is not empty, a file
  /// PATH.sig must contain a signature of the artifact PATH. The PEM file `verifyKey` contains the
  /// public key.
  static std::unique_ptr<Artifact> open(const std::string &path, Rules rules = Rules::all,
                                        const std::string &verifyKey = "");
  static std::unique_ptr<Artifact> fromMemory(const void *bytes, size_t size,
                                              const std::string &name, Rules rules = Rules::all);

  const std::string &getFile() const { return file; }
  const fb::Manifest &manifest() const { return *root; }
  const fsdprt_artifact_header &getHeader() const { return header; }
  const Mesh &getMesh() const { return mesh; }
  /// Returns true if the programs can be run, and false if the artifact was compiled with --no-code
  /// and therefore contains no code of its kernels.
  bool hasCode() const {
    return header.image_size != 0 || !root->kernels() || root->kernels()->size() == 0;
  }
  /// Returns the compiled functions of kernel `i`, one per phase. Only artifacts for a CPU have
  /// such functions.
  const std::vector<KernelPhase> &kernel(uint32_t i) const { return kernels[i]; }
  /// Returns the description of the code for a GPU, or null if the artifact is for a CPU.
  const fb::Gpu *gpu() const { return root->gpu(); }
  /// cubin() and ptx() return the machine code and the PTX of an artifact for a GPU. If the
  /// artifact contains no such code, they return an empty text.
  std::string_view cubin() const {
    const fb::Gpu &gpu = *root->gpu();
    return {reinterpret_cast<const char *>(bytes.get() + header.image_offset + gpu.cubin_offset()),
            gpu.cubin_bytes()};
  }
  std::string_view ptx() const {
    return {reinterpret_cast<const char *>(bytes.get() + header.image_offset),
            root->gpu()->ptx_bytes()};
  }
  /// Returns the stored initial values of a parameter. The address is a multiple of 64 bytes.
  const std::byte *values(const fb::Value &value) const {
    return bytes.get() + header.values_offset + value.offset();
  }
  /// Returns the size T of the mesh axis "tensor" if the ranks have slices of the parameters of a
  /// unit, and otherwise 1.
  uint64_t slicesOf(uint32_t unit) const { return slices[unit]; }
  /// Return the number of different pieces of a state, and the index of the piece that `rank` has.
  /// The pieces of ranks with coordinate t on the axis "tensor" precede those with t + 1.
  uint64_t piecesOf(const fb::State &state) const {
    return mesh.pieces(static_cast<uint64_t>(state.split())) * slicesOf(state.unit());
  }
  uint64_t pieceOf(const fb::State &state, uint64_t rank) const;
  /// Returns the number of slices of parameters whose flat buffers are in a state, one after
  /// another. A state of a rank has one slice, and a state of the reference all slices.
  uint64_t slicesIn(const fb::State &state) const;
  /// Returns the program `name`, or null if no such program exists.
  const fb::Program *program(const char *name) const;

private:
  Artifact() = default;
  void check(Rules rules);
  void checkHeader(const void *beginning);
  void checkSection(const char *what, uint64_t offset, uint64_t bytes, uint64_t alignment,
                    uint64_t &end);
  void checkHash();
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
  std::vector<uint64_t> slices; ///< for each unit: the result of slicesOf()
  std::unique_ptr<Image> image;
  std::vector<std::vector<KernelPhase>> kernels;
};

/// Returns true if `name` is a program of the unsharded reference, which has one rank.
bool isReferenceProgram(const std::string &name);

} // namespace fsdprt

#endif // FSDPRT_ARTIFACT_ARTIFACT_H
