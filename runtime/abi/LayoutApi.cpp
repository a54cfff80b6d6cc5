//===- LayoutApi.cpp - Units and states in the C interface ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements the C functions that describe the mesh, the units and the sharded states of an
// artifact. Saves contain this layout, so that they can be read without the artifact.
//
//===----------------------------------------------------------------------===//

#include "abi/Guard.h"
#include "abi/Structs.h"

using namespace fsdprt;

/// Returns state `index` of the program 'step', or null if the state or the program does not exist.
static const fb::State *stateAt(const Artifact &artifact, uint64_t index) {
  const fb::Program *step = artifact.program("step");
  const auto *states =
      step ? artifact.manifest().layouts()->Get(step->layout())->states() : nullptr;
  return states && index < states->size() ? states->Get(static_cast<uint32_t>(index)) : nullptr;
}

fsdprt_status fsdprt_artifact_get_axis(const fsdprt_artifact *handle, uint64_t index,
                                       fsdprt_axis_info *info) {
  const auto &axes = handle->artifact->getMesh().getAxes();
  if (index >= axes.size())
    return FSDPRT_BAD_INPUT;
  fsdprt_axis_info filled = {};
  filled.name = axes[index].name.c_str();
  filled.size = axes[index].size;
  giveStruct(filled, info);
  return FSDPRT_OK;
}

fsdprt_status fsdprt_artifact_get_unit(const fsdprt_artifact *handle, uint64_t index,
                                       fsdprt_unit_info *info) {
  const auto *units = handle->artifact->manifest().units();
  if (!units || index >= units->size())
    return FSDPRT_BAD_INPUT;
  const fb::Unit &unit = *units->Get(static_cast<uint32_t>(index));
  fsdprt_unit_info filled = {};
  filled.name = unit.name()->c_str();
  filled.dtype = static_cast<fsdprt_dtype>(unit.dtype());
  filled.shards = unit.shards();
  filled.shard_size = unit.shard_size();
  filled.slices = handle->artifact->slicesOf(static_cast<uint32_t>(index));
  giveStruct(filled, info);
  return FSDPRT_OK;
}

fsdprt_status fsdprt_artifact_get_state(const fsdprt_artifact *handle, uint64_t index,
                                        fsdprt_state_info *info) {
  const fb::State *state = stateAt(*handle->artifact, index);
  if (!state)
    return FSDPRT_BAD_INPUT;
  fsdprt_state_info filled = {};
  filled.unit = state->unit();
  filled.role = static_cast<fsdprt_state_role>(state->role());
  filled.dtype = static_cast<fsdprt_dtype>(state->dtype());
  filled.pieces = handle->artifact->piecesOf(*state);
  filled.elements = state->elements();
  giveStruct(filled, info);
  return FSDPRT_OK;
}

fsdprt_status fsdprt_artifact_get_piece(const fsdprt_artifact *handle, uint64_t index,
                                        uint64_t rank, uint64_t *piece) {
  const fb::State *state = stateAt(*handle->artifact, index);
  if (!state || rank >= handle->artifact->getMesh().ranks())
    return FSDPRT_BAD_INPUT;
  *piece = handle->artifact->pieceOf(*state, rank);
  return FSDPRT_OK;
}

fsdprt_status fsdprt_session_read_state(const fsdprt_session *handle, uint32_t rank, uint64_t index,
                                        uint64_t first, uint64_t count, void *data,
                                        fsdprt_error *error) {
  return guard(error,
               [&] { handle->session->moveState(rank, index, first, count, data, nullptr); });
}

fsdprt_status fsdprt_session_write_state(fsdprt_session *handle, uint32_t rank, uint64_t index,
                                         uint64_t first, uint64_t count, const void *data,
                                         fsdprt_error *error) {
  return guard(error,
               [&] { handle->session->moveState(rank, index, first, count, nullptr, data); });
}

fsdprt_status fsdprt_session_get_memory(const fsdprt_session *handle, uint32_t rank, uint64_t index,
                                        fsdprt_state_memory *memory, fsdprt_error *error) {
  return guard(error, [&] {
    fsdprt_state_memory filled = {};
    handle->session->memoryOf(rank, index, filled);
    giveStruct(filled, memory);
  });
}

fsdprt_status fsdprt_session_get_snapshot(const fsdprt_session *handle, uint32_t rank,
                                          uint64_t index, fsdprt_state_memory *memory,
                                          fsdprt_error *error) {
  return guard(error, [&] {
    fsdprt_state_memory filled = {};
    handle->session->snapshotOf(rank, index, filled);
    giveStruct(filled, memory);
  });
}
