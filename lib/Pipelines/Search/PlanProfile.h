//===- PlanProfile.h - Measures of a plan, and bounds from them -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef FSDP_PIPELINES_SEARCH_PLANPROFILE_H
#define FSDP_PIPELINES_SEARCH_PLANPROFILE_H

#include "FixedKernels.h"
#include "SearchSpace.h"
#include "fsdp/Analysis/Timeline.h"
#include "fsdp/IR/FSDP.h"
#include "llvm/Support/JSON.h"
#include <map>

namespace mlir::fsdp {

/// Properties of a candidate that determine the commands of its forward and backward. The forwards
/// and backwards of two candidates with equal structures differ only in the sizes of collectives.
struct PlanStructure {
  /// Sharding of parameters and gradients, gathers in the backward, and tables whose lookups
  /// exchange rows.
  std::string sharding;
  std::string checkpointing;
  bool offloadsActivations = false;
  int state = 0; ///< axes over which optimizer state is split; 0 if these have one rank
  ActivationSplit split;
  /// Each rank keeps 1/keptGathers of gathered parameters until the backward. 0: it keeps nothing.
  int64_t keptGathers = 0;
  bool gathersAgain = false; ///< whether the backward gathers parameters from all ranks again
  bool splitsParameters = false, splitsGradients = false;
  MeshRanks mesh;

  bool operator==(const PlanStructure &other) const {
    return sharding == other.sharding && checkpointing == other.checkpointing &&
           offloadsActivations == other.offloadsActivations && split == other.split;
  }
};
/// Returns the structures of the candidates of a search.
class StructureReader {
public:
  /// `imported` is the module after the phase import. It must outlive this object.
  explicit StructureReader(ModuleOp imported) : imported(imported) {}
  PlanStructure read(const Candidate &candidate);

private:
  const std::string &describeTables(const StepOptions &options, const MeshRanks &mesh, int state);

  ModuleOp imported;
  std::map<std::pair<int64_t, int64_t>, std::string> tables; ///< by ranks that split tables
};

/// Lower bounds of the time of a step in seconds, and of the size of the arena in bytes.
struct PlanBounds {
  double seconds = 0;
  double fittingSeconds = 0; ///< bound of the time if the arena fits the memory limit
  int64_t bytes = 0;

  double getSeconds() const { return std::max(seconds, fittingSeconds); }

  /// Takes the larger one of each bound.
  void raise(const PlanBounds &other) {
    seconds = std::max(seconds, other.seconds);
    fittingSeconds = std::max(fittingSeconds, other.fittingSeconds);
    bytes = std::max(bytes, other.bytes);
  }
};

/// Parts of a plan that other candidates have as well.
class PlanProfile {
public:
  PlanProfile() = default;
  /// Measures the program `step` of a planned module.
  PlanProfile(ModuleOp planned, const Candidate &candidate, PlanStructure structure,
              const Cluster &cluster);

  /// Returns bounds for a candidate whose structure is `structure`. Without `withTime`, the bound
  /// of the time is 0.
  PlanBounds getBounds(const Candidate &candidate, const PlanStructure &structure,
                       const Cluster &cluster, bool withTime = true) const;

  llvm::json::Value toJson() const;
  static PlanProfile fromJson(const llvm::json::Object &object);

private:
  void addForeignBounds(PlanBounds &bounds, const Candidate &candidate, const PlanStructure &other,
                        bool isPart, int64_t parts, const Cluster &cluster) const;
  std::pair<bool, bool> compareKept(llvm::StringRef its) const;
  double getSharedTransfers(const Candidate &candidate, const PlanStructure &other,
                            const Cluster &cluster) const;
  /// Transfers of a candidate, and their parts in the main block.
  struct Jobs {
    SmallVector<LinkJob> all, ofBlock;
    /// Of `ofBlock`, the occupied part of the multiprocessors.
    SmallVector<double> occupied;
    /// Bytes that a transfer holds, and its seconds.
    SmallVector<std::pair<double, double>> held;
  };
  Jobs getJobs(const PlanStructure &other, const Cluster &cluster) const;
  double getSecondsBeside(const Jobs &jobs, const Cluster &cluster) const;
  double getCrowdedSeconds(Jobs &jobs, double space) const;

  /// A collective on parameters or gradients of a unit, or an exchange of activations.
  struct Transfer {
    bool overShard = false, overReplicate = false;
    int64_t within = 0;   ///< size of a group of neighbours on `shard`, or 0
    bool isTwice = false; ///< all-reduce
    /// Payload in bytes without padding. If `isPiece`, the payload is a piece of the unit, and
    /// `bytes` is the sum over all ranks of the axis `shard`.
    double bytes = 0;
    bool isPiece = false;
    /// Seconds of kernels that must precede or follow the transfer.
    double head = 0, tail = 0;
    double turns = 1;
    /// Turns in a micro-batch that every sharding has: a gather of parameters, or a reduction of
    /// gradients if these are split.
    double sharedTurns = 0;
    bool isGather = false;
    /// Whether the main block has the transfer.
    bool isInBlock = false;
    /// Bytes of the arena that the transfer needs in addition to those of a kernel beside it.
    double held = 0;
    /// Of an exchange, which is the same on every mesh: its seconds, and its multiprocessors.
    double exchange = 0, multiprocessors = 0;

    /// Returns the seconds of a turn on another mesh.
    double getSeconds(const MeshRanks &mesh, const Cluster &cluster) const;
    /// Returns the part of the multiprocessors that it occupies there.
    double getOccupied(const MeshRanks &mesh, const Cluster &cluster) const;
    /// Returns the ranks of its ring, and the distance of two neighbours.
    std::pair<int64_t, int64_t> getRing(const MeshRanks &mesh) const;
  };
  /// Bytes of a state over all its pieces. Each rank has all of `whole`.
  struct StateBytes {
    int64_t split = 0, whole = 0;
  };

  /// Returns the parts of the multiprocessors that transfers occupy on the links of each level.
  static SmallVector<double> getOccupiedParts(const Cluster &cluster);
  /// Describes a collective on a unit that runs `turns` times.
  static Transfer describe(CollectiveOp collective, UnitOp unit, const MeshRanks &mesh,
                           double turns);
  struct Visit;
  void addStates(ModuleOp planned, LayoutOp layout, const Candidate &candidate);
  void addCommands(ModuleOp planned, LayoutOp layout, ProgramOp step, const Candidate &candidate,
                   const Cluster &cluster);

  PlanStructure structure;
  /// Seconds of those kernels whose times do not depend on the mesh, without and with their waits
  /// for collectives of activations.
  double fixedSeconds = 0, stalledSeconds = 0;
  /// Seconds of multiply-adds.
  double productSeconds = 0;
  /// Seconds of those kernels that every sharding has, with their waits for activations. Bounds of
  /// them for programs that split rows (index 1), have a ring (2), or both (3) as well.
  std::array<double, 4> sharedSeconds = {};
  /// Seconds of copies of activations between device and host.
  double hostSeconds = 0;
  /// Peak of the bytes that kernels of forward and backward need at a time, without states; of
  /// these, activations that every sharding has; of these, those that many kernels outlast.
  int64_t liveBytes = 0, sharedBytes = 0, keptBytes = 0;
  /// Bytes of the parameters that the backward gathers again.
  int64_t regathered = 0;
  StateBytes parameters, optimizer, masters;
  std::vector<Transfer> transfers;
  MainBlock block;
  std::vector<Crowd> crowds; ///< the kernels with most bytes first
  /// The last group for which getSharedTransfers was called, and its result.
  mutable std::optional<unsigned> lastGroup;
  mutable double lastSeconds = 0;
  /// Results of compareKept() by policy.
  mutable llvm::StringMap<std::pair<bool, bool>> keptOf;
};

} // namespace mlir::fsdp

#endif // FSDP_PIPELINES_SEARCH_PLANPROFILE_H
