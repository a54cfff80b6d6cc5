//===- ManifestBuilder.h - Builds the tables of a manifest ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Manifest.cpp describes the algorithm.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_LIB_PACKAGE_MANIFESTBUILDER_H
#define FSDP_LIB_PACKAGE_MANIFESTBUILDER_H

#include "Manifest.h"
#include "fsdp/IR/Memory.h"
#include "fsdp/IR/TensorSplit.h"
#include "fsdprt/artifact_generated.h"
#include "fsdprt/artifact_header.h"

namespace mlir::fsdp {

namespace fb = fsdprt::fb;

template <typename T>
using Offset = flatbuffers::Offset<T>;

class ManifestBuilder {
public:
  ManifestBuilder(ModuleOp module, const CompiledKernels &compiled, const Values &values,
                  const StepOptions &options)
      : module(module), image(compiled.image), gpuCode(compiled.gpu), values(values),
        options(options) {}

  FailureOr<std::vector<char>> build();

private:
  LogicalResult number();
  Offset<flatbuffers::String> addString(StringRef text) {
    return builder.CreateString(text.data(), text.size());
  }

  FailureOr<fb::DType> getDType(Type type, Location loc);
  std::vector<Offset<fb::Axis>> addMesh();
  std::vector<Offset<fb::Neighbours>> addNeighbours();
  LogicalResult addUnits();
  FailureOr<Offset<fb::Value>> addValue(StringRef param, Location loc);
  FailureOr<Offset<fb::Layout>> addLayout(LayoutOp layout);
  LogicalResult addSlots(LayoutOp layout, std::vector<Offset<fb::State>> &states,
                         std::vector<Offset<fb::Input>> &inputs);
  FailureOr<Offset<fb::Program>> addProgram(ProgramOp program);
  FailureOr<std::vector<Offset<fb::Command>>> addBlock(Block &block, LayoutOp layout);
  FailureOr<Offset<fb::Command>> addCommand(Operation &op, LayoutOp layout);
  FailureOr<Offset<fb::Collective>> addCollective(CollectiveOp op, LayoutOp layout);
  Offset<fb::Grid> addGrid(const PhaseInfo &phase);
  Offset<fb::Cost> addCost(const PhaseInfo &phase);
  FailureOr<Offset<fb::Matrix>> addMatrix(const GpuMatrix &matrix, Location loc);
  FailureOr<Offset<fb::Product>> addProduct(const PhaseInfo &phase, Location loc);
  LogicalResult addKernels();

  /// Returns the fb::Split of a value that is split over the mesh axes `axes`, outermost first.
  uint64_t getSplit(ArrayAttr axes) {
    if (!axes || axes.empty())
      return uint64_t(fb::Split::whole);
    if (axes.size() == 2)
      return uint64_t(fb::Split::shard_replicate);
    StringRef axis = cast<StringAttr>(axes[0]);
    if (axis.contains(':') || axis == contextAxis)
      return uint64_t(fb::Split::replicate) + 1 + getNeighbours(axis);
    return uint64_t(axis == "shard" ? fb::Split::shard : fb::Split::replicate);
  }
  /// Returns the index that a group such as "shard:2" or "context" has in `neighbours`. Adds a new
  /// group to this list.
  uint64_t getNeighbours(StringRef axis) {
    auto found = llvm::find(neighbours, axis);
    if (found == neighbours.end())
      found = neighbours.insert(found, axis.str());
    return found - neighbours.begin();
  }
  /// Returns the fb::Split value of a state that is split into `pieces` pieces.
  fb::Split getSplit(int64_t pieces) {
    if (pieces == 1)
      return fb::Split::whole;
    return pieces == mesh.getAxisSize("shard") ? fb::Split::shard : fb::Split::shard_replicate;
  }
  BufferOp getBuffer(LayoutOp layout, FlatSymbolRefAttr name) {
    return tables.lookupSymbolIn<BufferOp>(layout, name);
  }
  /// Returns the offset of a buffer. A manifest uses one range of offsets for all memories: first
  /// the device's arena, then the host's arena, then the rank's file.
  uint64_t getOffset(LayoutOp layout, BufferOp buffer) {
    uint64_t host = llvm::alignTo(layout.getArenaBytes(), FSDPRT_HOST_ARENA_ALIGNMENT);
    Memory memory = getMemory(buffer);
    uint64_t begin = memory == Memory::device ? 0
                     : memory == Memory::host
                         ? host
                         : llvm::alignTo(host + layout.getHostBytes(), FSDPRT_HOST_ARENA_ALIGNMENT);
    return begin + *buffer.getOffset();
  }
  fb::Slice getSlice(LayoutOp layout, SliceAttr slice) {
    return {getOffset(layout, getBuffer(layout, slice.getBuffer())) + slice.getOffset(),
            static_cast<uint64_t>(slice.getBytes()), static_cast<uint64_t>(slice.getStride()),
            static_cast<uint64_t>(slice.getPiece()), getSplit(slice.getAxes())};
  }
  fb::Slice getWhole(LayoutOp layout, FlatSymbolRefAttr name) {
    if (!name)
      return {0, 0, 0, 0, 0};
    BufferOp buffer = getBuffer(layout, name);
    return {getOffset(layout, buffer), buffer.getBytes(), 0, 0, 0};
  }
  /// Returns the number of elements of the input `tokens` or, if there is no such input, of the
  /// first input.
  uint64_t countTokens();
  Offset<flatbuffers::Vector<Offset<flatbuffers::String>>> addOptions();
  FailureOr<Offset<flatbuffers::Vector<Offset<fb::Lookup>>>> addLookups();

  ModuleOp module;
  const Image &image;
  const GpuCode &gpuCode;
  const Values &values;
  const StepOptions &options;
  SymbolTableCollection tables;
  flatbuffers::FlatBufferBuilder builder;

  MeshOp mesh;
  /// `indices` contains the index of each unit, layout and kernel among the symbols of its
  /// kind. `firstParams` contains the index of the first parameter of each unit.
  llvm::DenseMap<Attribute, unsigned> indices, firstParams;
  std::vector<Offset<fb::Unit>> units;
  std::vector<Offset<fb::Param>> params;
  std::vector<Offset<fb::Kernel>> kernels;
  /// Groups of neighbours, such as "shard:2" or "context", that collectives or pieces use.
  std::vector<std::string> neighbours;
};

} // namespace mlir::fsdp

#endif // FSDP_LIB_PACKAGE_MANIFESTBUILDER_H
