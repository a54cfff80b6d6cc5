//===- SaveIndex.h - The index of a save ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The file index.json of a save (docs/how-to/save-and-resume.md) describes the run, the step and
// the mesh. It lists units and their parameters, states and their pieces, and files with their
// sizes and hashes. The last member of index.json is the hash of index.json itself.
//
//     {"format": "fsdp-save", "version": 1, ..., "sha256": "<64 hexadecimal digits>"}
//
// To compute this hash, its 64 digits are replaced by zeros.
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

/// The part of a save that does not belong to a single rank. Everything else is in the states and
/// step blocks of the ranks.
struct RunState {
  uint64_t step = 0; ///< number of completed steps
  uint64_t seed = 0;
  uint64_t nonfiniteSteps = 0; ///< number of consecutive non-finite steps directly before the save
  LearningRate rate;

  // The next members describe the source from which the samples are read. The samples of a step
  // depend only on this source, the seed and the number of the step.
  std::string source = "random"; ///< type of source: "random", "text", "tokens" or "inputs"
  /// type of the tokens, such as "uint8"; empty if the source has no tokens
  std::string dataType;
  std::string dataHash;
  uint64_t tokens = 0, trainTokens = 0;
  bool overfit = false;
  double extraIds = 0, validationFraction = 0;

  /// A file that contains the samples of one input. `hash` is the SHA-256 of this file.
  struct Input {
    std::string name, hash;
    uint64_t rows = 0, trainRows = 0;
  };
  std::vector<Input> inputs;
  /// names of the inputs of --synthetic, whose values are random
  std::vector<std::string> synthetic;

  /// Number of samples of an input in one step, over all ranks and micro-batches.
  struct StepInput {
    std::string name;
    uint64_t samples = 0, elements = 0; ///< `elements`: number of elements of one sample
  };
  std::vector<StepInput> stepInputs; ///< inputs; empty if the save lists none
};

struct SaveIndex {
  /// The version of a save in which a unit has several slices. Other saves have version 1, so that
  /// older readers can read them.
  static constexpr uint64_t version = 2;

  struct Axis {
    std::string name;
    uint64_t size = 0;
  };
  struct Param {
    std::string name, dtype;
    uint64_t offset = 0; ///< offset in the flat buffer of the unit, in elements
    std::vector<uint64_t> shape;
    /// If the slices of the unit have parts of the parameter: the dimension that is split, and the
    /// sizes of its blocks (core/SlicedShape.h). Otherwise `blocks` is empty.
    uint64_t splitDim = 0;
    std::vector<uint64_t> blocks = {};
  };
  /// A unit. It has a flat buffer for each of its slices, which are those of the coordinates on the
  /// axis "tensor". A unit without split parameters has one slice.
  struct Unit {
    std::string name, dtype;
    uint64_t shards = 0, shardSize = 0;
    std::vector<Param> params;
    uint64_t slices = 1;
  };
  /// A state. Its flat buffer consists of the flat buffers of all slices of its unit. Piece p of
  /// the state's flat buffer is tensor `tensor` in the file of rank files[p].
  struct State {
    std::string tensor, role, dtype;
    uint64_t unit = 0, elements = 0; ///< `elements`: number of elements of one piece
    std::vector<uint64_t> files;
  };
  struct File {
    std::string name, sha256;
    uint64_t bytes = 0;
  };

  std::string artifactHash, modelSource, compiler;
  /// compiler options, each as a text such as "mesh=shard=2"; empty if the options are unknown
  std::vector<std::string> options;
  bool hasDynamicScale = true; ///< false if the loss scale of the artifact is fixed
  RunState run;
  std::array<float, FSDPRT_BLOCK_SIZE> block = {}; ///< step block of rank 0
  std::vector<Axis> mesh;
  std::vector<Unit> units;
  std::vector<State> states;
  std::vector<File> files; ///< files of the ranks, in the order of the ranks
  std::string sha256;      ///< hash of index.json

  std::string meshText() const;
  bool hasLayoutOf(const SaveIndex &other) const;
  uint64_t versionOf() const; ///< the oldest version whose readers understand the layout
};

/// Returns the type that is called `name` in index.json and in safetensors files, or nullopt.
std::optional<DType> dtypeNamed(const std::string &name);

/// Returns an index that contains the mesh, the units and the states of an artifact, and the names
/// of the files of all ranks.
SaveIndex describeLayout(const fsdprt_artifact *artifact);
std::string rankFileName(uint64_t rank);

/// Returns the text of index.json for `index`, and sets index.sha256.
std::string writeIndex(SaveIndex &index);
/// Parses the text of index.json. Throws Error if the text is damaged, or if it was written in an
/// unknown version of the format. `path` is used only in messages.
SaveIndex readIndex(const std::string &path, const std::string &text);

} // namespace fsdprt

#endif // FSDPRT_TRAIN_SAVEINDEX_H
