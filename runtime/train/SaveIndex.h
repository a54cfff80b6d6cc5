//===- SaveIndex.h - The index of a save ------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The file index.json of a save (docs/how-to/save-and-resume.md) holds the run, step and mesh; the
// units with their parameters; the states with their pieces; and the files with their sizes and
// hashes. It ends with a hash of the index itself,
//
//     {"format": "fsdp-save", "version": 1, ..., "sha256": "<64 hexadecimal digits>"}
//
// which is computed with zeros in place of its digits.
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

/// State of a run that is needed to resume it, apart from states and step blocks.
struct RunState {
  uint64_t step = 0; ///< number of completed steps
  uint64_t seed = 0;
  uint64_t nonfiniteSteps = 0; ///< non-finite steps in a row
  LearningRate rate;

  // The source of the samples. Samples of a step depend only on the source, the seed and the step.
  std::string source = "random"; ///< "random", "text", "tokens" or "inputs"
  std::string dataType;          ///< type of the tokens, such as "uint8"; or empty
  std::string dataHash;
  uint64_t tokens = 0, trainTokens = 0;
  bool overfit = false;
  double extraIds = 0, validationFraction = 0;

  /// A file of samples for one input.
  struct Input {
    std::string name, hash;
    uint64_t rows = 0, trainRows = 0;
  };
  std::vector<Input> inputs;
  std::vector<std::string> synthetic; ///< inputs with random values while others have data

  /// Samples of an input in one step, over all ranks and micro-batches.
  struct StepInput {
    std::string name;
    uint64_t samples = 0, elements = 0; ///< `elements` of one sample
  };
  std::vector<StepInput> stepInputs; ///< empty if the save does not say it
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
  /// A state. Piece p of its flat buffer is the tensor `tensor` of the file with index files[p].
  struct State {
    std::string tensor, role, dtype;
    uint64_t unit = 0, elements = 0; ///< `elements` of one piece
    std::vector<uint64_t> files;
  };
  struct File {
    std::string name, sha256;
    uint64_t bytes = 0;
  };

  std::string artifactHash, modelSource, compiler;
  std::vector<std::string> options; ///< of the compiler, as "mesh=shard=2"; empty if unknown
  bool hasDynamicScale = true;      ///< of an artifact: false if its steps keep the loss scale
  RunState run;
  std::array<float, FSDPRT_BLOCK_SIZE> block = {}; ///< step block of rank 0, informative
  std::vector<Axis> mesh;
  std::vector<Unit> units;
  std::vector<State> states;
  std::vector<File> files; ///< files of the ranks, by rank
  std::string sha256;      ///< hash of the index

  std::string meshText() const;
  bool hasLayoutOf(const SaveIndex &other) const;
};

/// Returns the type that has this name in index and files; nothing for another text.
std::optional<DType> dtypeNamed(const std::string &name);

/// Returns the mesh, units and states of an artifact, and the files of the states' pieces.
SaveIndex describeLayout(const fsdprt_artifact *artifact);
std::string rankFileName(uint64_t rank);

/// Returns the text of index.json. Sets index.sha256.
std::string writeIndex(SaveIndex &index);
/// Parses an index. Throws Error if the text is damaged or of an unknown version. `path` is for
/// messages.
SaveIndex readIndex(const std::string &path, const std::string &text);

} // namespace fsdprt

#endif // FSDPRT_TRAIN_SAVEINDEX_H
