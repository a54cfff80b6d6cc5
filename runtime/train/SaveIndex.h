//===- SaveIndex.h - The index of a save ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The file index.json of a save (docs/how-to/save-and-resume.md) lists the run, step and mesh; the
// units with their parameters; the states with their pieces; and the files with their sizes and
// hashes. The last member of index.json is a hash of index.json itself,
//
//     {"format": "fsdp-save", "version": 1, ..., "sha256": "<64 hexadecimal digits>"}
//
// which is computed while its 64 digits are zeros.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_SAVEINDEX_H
#define FSDPRT_TRAIN_SAVEINDEX_H

#include "core/DType.h"
#include "core/HashText.h"
#include "fsdprt/fsdprt.h"
#include "train/LearningRate.h"
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace fsdprt {

/// The data of a run that a save contains besides the states and step blocks of the ranks.
struct RunState {
  uint64_t step = 0; ///< number of completed steps
  uint64_t seed = 0;
  uint64_t nonfiniteSteps = 0; ///< number of non-finite steps just before the save
  LearningRate rate;

  // The next members describe the source of the samples. The samples of a step depend only on this
  // source, the seed and the number of the step.
  std::string source = "random"; ///< type of source: "random", "text", "tokens" or "inputs"
  std::string dataType;          ///< type of the tokens, such as "uint8"; empty without tokens
  std::string dataHash;
  uint64_t tokens = 0, trainTokens = 0;
  bool overfit = false;
  double extraIds = 0, validationFraction = 0;

  /// A file with samples of one input. `hash` is the SHA-256 of the file.
  struct Input {
    std::string name, hash;
    uint64_t rows = 0, trainRows = 0;
  };
  std::vector<Input> inputs;
  std::vector<std::string> synthetic; ///< inputs of --synthetic, which have random values

  /// Number of samples of an input in one step, over all ranks and micro-batches.
  struct StepInput {
    std::string name;
    uint64_t samples = 0, elements = 0; ///< `elements`: elements per sample
  };
  std::vector<StepInput> stepInputs; ///< empty if the save has no such list
};

struct SaveIndex {
  static constexpr uint64_t version = 1;

  struct Axis {
    std::string name;
    uint64_t size = 0;
  };
  struct Param {
    std::string name, dtype;
    uint64_t offset = 0; ///< offset in the unit's flat buffer, in elements
    std::vector<uint64_t> shape;
  };
  struct Unit {
    std::string name, dtype;
    uint64_t shards = 0, shardSize = 0;
    std::vector<Param> params;
  };
  /// A state. Piece p of its flat buffer is the tensor `tensor` in the file of rank files[p].
  struct State {
    std::string tensor, role, dtype;
    uint64_t unit = 0, elements = 0; ///< `elements`: elements per piece
    std::vector<uint64_t> files;
  };
  struct File {
    std::string name, sha256;
    uint64_t bytes = 0;
  };

  std::string artifactHash, modelSource, compiler;
  std::vector<std::string> options; ///< compiler options, as "mesh=shard=2"; empty if unknown
  bool hasDynamicScale = true;      ///< false if the artifact's loss scale is fixed
  RunState run;
  std::array<float, FSDPRT_BLOCK_SIZE> block = {}; ///< step block of rank 0
  std::vector<Axis> mesh;
  std::vector<Unit> units;
  std::vector<State> states;
  std::vector<File> files; ///< files of the ranks, by rank
  std::string sha256;      ///< hash of the index

  std::string meshText() const;
  bool hasLayoutOf(const SaveIndex &other) const;
};

/// Returns the type that is called `name` in index.json and in safetensors files, or nullopt.
std::optional<DType> dtypeNamed(const std::string &name);

/// Returns an index with the mesh, units and states of an artifact, and with the names of the files
/// of the ranks.
SaveIndex describeLayout(const fsdprt_artifact *artifact);
std::string rankFileName(uint64_t rank);

/// Returns `index` as text of index.json, and sets index.sha256.
std::string writeIndex(SaveIndex &index);
/// Parses the text of index.json. Throws Error if the text is damaged or of an unknown version.
/// `path` is used in messages only.
SaveIndex readIndex(const std::string &path, const std::string &text);

} // namespace fsdprt

#endif // FSDPRT_TRAIN_SAVEINDEX_H
