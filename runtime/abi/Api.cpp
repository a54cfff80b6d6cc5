//===- Api.cpp - The C interface --------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements the C interface. Each function calls its C++ counterpart in guard(), which catches
// exceptions and returns their status and message. takeStruct() copies a struct from the caller,
// and giveStruct() copies a struct to the caller.
//
//===----------------------------------------------------------------------===//

#include "abi/Guard.h"
#include "abi/Structs.h"
#include "artifact/Arenas.h"
#include "artifact/Dump.h"
#include "artifact/Snapshot.h"
#include "io/OutputFile.h"
#include <cstdio>

using namespace fsdprt;

uint32_t fsdprt_abi_version(void) { return FSDPRT_ABI_MAJOR << 16 | FSDPRT_ABI_MINOR; }
const char *fsdprt_version(void) { return FSDPRT_VERSION_STRING; }

fsdprt_status fsdprt_artifact_open(const char *path, fsdprt_artifact **out, fsdprt_error *error) {
  return guard(error, [&] { *out = new fsdprt_artifact{Artifact::open(path)}; });
}

fsdprt_status fsdprt_artifact_open_signed(const char *path, const char *public_key,
                                          fsdprt_artifact **out, fsdprt_error *error) {
  return guard(error,
               [&] { *out = new fsdprt_artifact{Artifact::open(path, Rules::all, public_key)}; });
}

fsdprt_status fsdprt_artifact_open_memory(const void *bytes, size_t size, const char *name,
                                          fsdprt_artifact **out, fsdprt_error *error) {
  return guard(error, [&] { *out = new fsdprt_artifact{Artifact::fromMemory(bytes, size, name)}; });
}

void fsdprt_artifact_close(fsdprt_artifact *artifact) { delete artifact; }

static const char *orEmpty(const flatbuffers::String *text) { return text ? text->c_str() : ""; }

void fsdprt_artifact_get_info(const fsdprt_artifact *handle, fsdprt_artifact_info *info) {
  const Artifact &artifact = *handle->artifact;
  const fb::Manifest &manifest = artifact.manifest();
  fsdprt_artifact_info filled = {};
  filled.compiler = orEmpty(manifest.compiler());
  filled.source = orEmpty(manifest.source());
  filled.target = orEmpty(manifest.target());
  filled.optimizer = manifest.optimizer() ? orEmpty(manifest.optimizer()->kind()) : "";
  filled.lr = manifest.optimizer() ? manifest.optimizer()->lr() : 0;
  filled.ranks = artifact.getMesh().ranks();
  filled.data_ranks = artifact.getMesh().dataRanks();
  filled.params = manifest.params() ? manifest.params()->size() : 0;
  for (uint64_t i = 0; i < filled.params; ++i)
    filled.parameter_elements += elementsOf(*manifest.params()->Get(i));
  filled.tokens_per_rank = manifest.tokens_per_rank();
  filled.image_bytes = artifact.getHeader().image_size;
  filled.threads_per_rank = manifest.threads_per_rank();
  for (const fb::Program *program : *manifest.programs()) {
    const fb::Layout &layout = *manifest.layouts()->Get(program->layout());
    bool reference = isReferenceProgram(program->name()->str());
    (reference ? filled.reference_arena_bytes : filled.arena_bytes) = mappedBytes(layout);
    if (reference)
      continue;
    filled.workers = layout.workers();
    filled.host_bytes = layout.host_bytes();
    filled.file_bytes = layout.file_bytes();
  }
  filled.snapshot_bytes = snapshotBytes(manifest);
  filled.seed = manifest.seed();
  filled.constants = manifest.constants();
  filled.loss_scale = static_cast<uint32_t>(manifest.loss_scale());
  std::memcpy(filled.sha256, artifact.getHeader().sha256, sizeof filled.sha256);
  giveStruct(filled, info);
}

int32_t fsdprt_artifact_has_program(const fsdprt_artifact *handle, const char *name) {
  return handle->artifact->program(name) != nullptr;
}

const char *fsdprt_artifact_get_option(const fsdprt_artifact *handle, uint64_t index) {
  const auto *options = handle->artifact->manifest().options();
  return options && index < options->size() ? options->Get(static_cast<uint32_t>(index))->c_str()
                                            : nullptr;
}

fsdprt_status fsdprt_artifact_get_param(const fsdprt_artifact *handle, uint64_t index,
                                        fsdprt_param_info *info) {
  const fb::Manifest &manifest = handle->artifact->manifest();
  if (!manifest.params() || index >= manifest.params()->size())
    return FSDPRT_BAD_INPUT;
  const fb::Param &param = *manifest.params()->Get(index);
  fsdprt_param_info filled = {};
  filled.name = param.name()->c_str();
  filled.unit = manifest.units()->Get(param.unit())->name()->c_str();
  filled.dtype = static_cast<fsdprt_dtype>(param.dtype());
  filled.rank = param.shape() ? param.shape()->size() : 0;
  filled.shape = param.shape() ? param.shape()->data() : nullptr;
  filled.elements = elementsOf(param);
  filled.trainable = param.trainable();
  filled.has_values = param.value() != nullptr;
  filled.unit_index = param.unit();
  filled.unit_offset = param.offset();
  if (param.split()) {
    filled.split_dim = param.split()->dim();
    filled.num_split_blocks = param.split()->blocks()->size();
    filled.split_blocks = param.split()->blocks()->data();
  }
  giveStruct(filled, info);
  return FSDPRT_OK;
}

fsdprt_status fsdprt_artifact_get_input(const fsdprt_artifact *handle, const char *program,
                                        uint64_t index, fsdprt_input_info *info) {
  const fb::Program *of = handle->artifact->program(program);
  const auto *inputs =
      of ? handle->artifact->manifest().layouts()->Get(of->layout())->inputs() : nullptr;
  if (!inputs || index >= inputs->size())
    return FSDPRT_BAD_INPUT;
  const fb::Input &input = *inputs->Get(index);
  fsdprt_input_info filled = {};
  filled.name = input.name()->c_str();
  filled.role = static_cast<fsdprt_input_role>(input.role());
  filled.dtype = static_cast<fsdprt_dtype>(input.dtype());
  filled.rank = input.shape() ? input.shape()->size() : 0;
  filled.shape = input.shape() ? input.shape()->data() : nullptr;
  filled.bytes = input.bytes();
  filled.micro_batches = input.micro_batches();
  filled.limit = input.limit();
  filled.extra_ids = input.extra_ids() ? input.extra_ids()->data() : nullptr;
  filled.num_extra_ids = input.extra_ids() ? input.extra_ids()->size() : 0;
  giveStruct(filled, info);
  return FSDPRT_OK;
}

fsdprt_status fsdprt_artifact_dump(const fsdprt_artifact *handle,
                                   int32_t (*write)(void *, const char *, size_t), void *user,
                                   fsdprt_error *error) {
  return guard(error, [&] {
    if (!dumpArtifact(*handle->artifact, [&](const std::string &text) {
          return write(user, text.data(), text.size()) == 0;
        }))
      failed("%s: the dump could not be written: the callback 'write' failed",
             handle->artifact->getFile().c_str());
  });
}

fsdprt_status fsdprt_session_create(const fsdprt_artifact *artifact,
                                    const fsdprt_session_options *options, fsdprt_session **out,
                                    fsdprt_error *error) {
  return guard(error, [&] {
    fsdprt_session_options taken = takeStruct(options);
    *out = new fsdprt_session{std::make_unique<Session>(artifact->artifact, taken)};
  });
}

void fsdprt_session_destroy(fsdprt_session *session) { delete session; }

void fsdprt_session_get_info(const fsdprt_session *handle, fsdprt_session_info *info) {
  const Session &session = *handle->session;
  fsdprt_session_info filled = {};
  filled.ranks = session.getRanks().ranks();
  filled.threads_per_rank = session.getRanks().threadsPerRank();
  filled.arena_bytes = session.getRanks().arenaBytes();
  filled.reference_arena_bytes = session.getReference() ? session.getReference()->arenaBytes() : 0;
  filled.peak_bytes = session.getRanks().peakBytes();
  std::copy_n(session.getRanks().collectiveBytes(), 4, filled.collective_bytes);
  filled.shift_bytes = session.getRanks().collectiveBytes()[4];
  filled.first_rank = session.getRanks().firstRank();
  filled.local_ranks = session.getRanks().localRanks();
  filled.processes = session.getRanks().getCommunicator().processes();
  filled.meeting = session.getRanks().getCommunicator().text();
  if (const RankFile *file = session.getFile()) {
    filled.file_bytes = file->bytes();
    filled.file_is_direct = file->isDirect();
  }
  giveStruct(filled, info);
}

fsdprt_status fsdprt_session_get_gpu_memory(const fsdprt_session *handle, uint64_t *beside,
                                            fsdprt_error *error) {
  return guard(error, [&] { *beside = handle->session->gpuBytesBeside(); });
}

fsdprt_status fsdprt_session_run(fsdprt_session *handle, const char *program, fsdprt_error *error) {
  return guard(error, [&] { handle->session->run(program); });
}

fsdprt_status fsdprt_session_exchange(fsdprt_session *handle, const void *mine, size_t size,
                                      void *all, fsdprt_error *error) {
  return guard(error, [&] { handle->session->exchange(mine, size, all); });
}

fsdprt_status fsdprt_session_find_nonfinite(fsdprt_session *handle, const char *program, char *text,
                                            size_t size, fsdprt_error *error) {
  return guard(error, [&] {
    std::string found = handle->session->findNonfinite(program);
    if (size)
      std::snprintf(text, size, "%s", found.c_str());
  });
}

fsdprt_status fsdprt_session_collect(fsdprt_session *handle, uint32_t rank, const void *data,
                                     size_t size, void *into, fsdprt_error *error) {
  return guard(error, [&] { handle->session->collect(rank, data, size, into); });
}

fsdprt_status fsdprt_session_leave(fsdprt_session *handle, fsdprt_error *error) {
  return guard(error, [&] { handle->session->getRanks().getCommunicator().leave(); });
}

fsdprt_status fsdprt_session_fail(fsdprt_session *handle, fsdprt_status status,
                                  fsdprt_error *error) {
  return guard(error, [&] {
    if (status == FSDPRT_OK)
      badInput("status: expected a failure, found FSDPRT_OK");
    handle->session->getRanks().getCommunicator().abort(status);
  });
}

fsdprt_status fsdprt_session_write_flight_record(const fsdprt_session *handle, const char *path,
                                                 const char *reason, fsdprt_error *error) {
  return guard(error, [&] {
    Communicator &communicator = handle->session->getRanks().getCommunicator();
    std::string text = communicator.getWatchdog().record(
        reason, [&](uint32_t collective) { return communicator.describe(collective); });
    OutputFile file(path, /*atomic=*/true);
    file.write(text.data(), text.size());
    file.commit();
  });
}

fsdprt_status fsdprt_session_write_input(fsdprt_session *handle, uint32_t rank, uint64_t index,
                                         uint32_t microBatch, const void *data, size_t size,
                                         fsdprt_error *error) {
  return guard(error, [&] { handle->session->writeInput(rank, index, microBatch, data, size); });
}

fsdprt_status fsdprt_session_read_block(const fsdprt_session *handle, uint32_t rank,
                                        float block[FSDPRT_BLOCK_SIZE], fsdprt_error *error) {
  return guard(error, [&] { handle->session->readBlock(rank, block); });
}

fsdprt_status fsdprt_session_write_block(fsdprt_session *handle, uint32_t rank,
                                         const float block[FSDPRT_BLOCK_SIZE],
                                         fsdprt_error *error) {
  return guard(error, [&] { handle->session->writeBlock(rank, block); });
}

fsdprt_status fsdprt_session_get_state(const fsdprt_session *handle, uint64_t param,
                                       fsdprt_state_role role, fsdprt_dtype *dtype) {
  return guard(nullptr, [&] {
    const Session &session = *handle->session;
    const fb::State *state =
        session.state(session.getRanks(), param, static_cast<fb::StateRole>(role));
    if (!state)
      badInput("the parameter has no state of this role");
    *dtype = static_cast<fsdprt_dtype>(state->dtype());
  });
}

static fb::StateRole roleOf(fsdprt_state_role role) {
  if (role < FSDPRT_PARAMETER || role > FSDPRT_MASTER)
    badInput("role: expected an fsdprt_state_role, found %d", static_cast<int>(role));
  return static_cast<fb::StateRole>(role);
}

fsdprt_status fsdprt_session_read_param(const fsdprt_session *handle, uint32_t rank, uint64_t param,
                                        fsdprt_state_role role, uint64_t first, uint64_t count,
                                        void *data, size_t size, fsdprt_error *error) {
  return guard(error, [&] {
    handle->session->readParam(rank, param, roleOf(role), first, count, data, size);
  });
}

fsdprt_status fsdprt_session_write_param(fsdprt_session *handle, uint64_t param,
                                         fsdprt_state_role role, uint64_t first, uint64_t count,
                                         const void *data, fsdprt_dtype dtype,
                                         fsdprt_error *error) {
  return guard(error, [&] {
    handle->session->writeParam(param, roleOf(role), first, count, data, static_cast<DType>(dtype));
  });
}

fsdprt_status fsdprt_session_poke_shard(fsdprt_session *handle, uint32_t rank, uint64_t param,
                                        void (*change)(void *, void *, size_t), void *user,
                                        fsdprt_error *error) {
  return guard(error, [&] { handle->session->pokeShard(rank, param, change, user); });
}

fsdprt_status fsdprt_session_clear_profile(fsdprt_session *handle, fsdprt_error *error) {
  return guard(error, [&] { handle->session->profile().clear(); });
}

fsdprt_status fsdprt_session_visit_profile(const fsdprt_session *handle,
                                           int32_t (*visit)(void *, const fsdprt_profile_entry *),
                                           void *user, uint64_t *total, fsdprt_error *error) {
  return guard(error, [&] {
    const Profile &profile = handle->session->profile();
    if (total)
      *total = profile.totalNanoseconds();
    for (const fsdprt_profile_entry &entry : profile.entries())
      if (visit(user, &entry) != 0)
        return;
  });
}

fsdprt_status fsdprt_session_visit_trace(const fsdprt_session *handle,
                                         int32_t (*visit)(void *, const fsdprt_trace_event *),
                                         void *user, fsdprt_error *error) {
  return guard(error, [&] {
    handle->session->trace().visit(
        [&](const fsdprt_trace_event &event) { return visit(user, &event) == 0; });
  });
}

fsdprt_status fsdprt_session_compare(const fsdprt_session *handle, fsdprt_comparison *result,
                                     fsdprt_error *error) {
  return guard(error, [&] {
    fsdprt_comparison filled = {};
    handle->session->compare(filled);
    giveStruct(filled, result);
  });
}
