//===- VerifyManifest.cpp - Mesh, units, parameters, kernels, layouts -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// (V1)  The mesh has 1 to 64 axes and at most 16384 ranks. Axes have distinct names, and sizes of
//       at least 1. The manifest lists at most 64 sizes of groups of neighbours on an axis, each of
//       which divides the size of the axis. "tensor" is the last axis. `context` divides "shard".
// (V2) A unit has a dtype, and a size that does not overflow. The number of shards is 1 or the size
//       of the axis "shard".
// (V3)  A parameter lies in its unit, does not overlap other parameters, and has a unique name. If
//       the file stores initial values of a parameter, it stores either one value for all elements
//       or one value per element. Stored values are floats if the parameter has floats, are aligned
//       to 64 bytes, and lie in the file's section of values. The split of a parameter is valid for
//       the axis "tensor" of the mesh (ParamSlice.h).
// (V4) A kernel has 1 to 64 phases. The extent and the tile of a phase are at least 1. The kernel
//       has a size for each binding.
// (V5)  The processor has every feature that the image needs.
// (V6) In a layout, the states, inputs, step block, rank block and workspace lie in an arena or in
//       the file, are aligned to 64 bytes, and do not overlap.
// (V7)  The number of elements of a state is the number of elements of its unit, divided by the
//       number of pieces into which the state is split. The reference has all slices of a unit.
//       No two states of a layout have the same unit and role.
// (V8)  The size of an input is the size of a tensor that has the shape and the type of the input.
//       If a step has several micro-batches, the leading dimension of the shape is the number of
//       micro-batches. If the ids of an input have a limit, the type of the input can represent
//       this limit. Only an input with a limit has extra ids. No extra id is in [0, limit).
// (V9)  A layout has at least one worker. The workspace has space for the shared scratch memory and
//       for the scratch memory of every worker. In the slices of the workspace and the rank block,
//       `stride` and `piece` are 0. On a GPU, the workspace begins at a multiple of 256 bytes.
// (V10) threads_per_rank is between 1 and the number of workers of each layout.
// (V22) The manifest has at most 2^20 checked lookups. Each lookup has a location, a description,
//       and an extent from 1 to 2^63 - 1.
//
// Linear in the size of the manifest, apart from sorting. WorkLimit limits repeated reads.
//
//===----------------------------------------------------------------------===//

#include "artifact/CpuFeatures.h"
#include "artifact/ParamSlice.h"
#include "artifact/Verifier.h"
#include "core/DType.h"
#include "core/Error.h"
#include "fsdpcommon/TileData.h"
#include "fsdprt/artifact_header.h"
#include <algorithm>
#include <set>

using namespace fsdprt;

static constexpr uint64_t maxRanks = 16384, maxWorkers = 4096, maxElements = uint64_t(1) << 48,
                          maxAxes = 64;

bool fsdprt::elementsOf(const flatbuffers::Vector<uint64_t> *shape, uint64_t &elements) {
  elements = 1;
  if (!isAligned(shape))
    return false;
  for (uint32_t i = 0; shape && i < shape->size(); ++i)
    if (__builtin_mul_overflow(elements, shape->Get(i), &elements))
      return false;
  return elements <= maxElements;
}

namespace {
using ull = unsigned long long;

class ManifestVerifier {
public:
  ManifestVerifier(const std::string &file, const fb::Manifest &manifest, uint64_t valuesBytes,
                   Rules rules, WorkLimit &work)
      : file(file), manifest(manifest), valuesBytes(valuesBytes), rules(rules), work(work) {}

  Mesh verify() {
    verifyMesh();
    verifyUnits();
    verifyParams();
    verifyKernels();
    if (rules == Rules::all)
      verifyFeatures();
    for (uint32_t i = 0; i < count(manifest.layouts()); ++i)
      verifyLayout(*manifest.layouts()->Get(i), i);
    verifyLookups();
    return mesh;
  }

private:
  struct Range {
    uint64_t begin, end;
    std::string what;
  };

  template <typename T>
  static uint32_t count(const flatbuffers::Vector<T> *vector) {
    return vector ? vector->size() : 0;
  }

  template <typename... Arguments>
  [[noreturn]] void refuse(const char *text, Arguments... arguments) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    badInput("%s: manifest: %s", file.c_str(), format(text, arguments...).c_str());
#pragma GCC diagnostic pop
  }

  std::string nameOrRefuse(const flatbuffers::String *name, const char *what, uint32_t index) {
    work.spend(name ? name->size() : 0);
    if (!name || name->size() == 0 || std::find(name->begin(), name->end(), '\0') != name->end())
      refuse("%s %u: expected a name", what, index);
    return name->str();
  }

  void verifyMesh();
  void verifyUnits();
  void verifyParams();
  void verifyValue(const fb::Value &value, DType dtype, const std::string &name, uint64_t elements);
  void verifyKernels();
  void verifyFeatures();
  void verifyLookups();
  void verifyLayout(const fb::Layout &layout, uint32_t index);
  void verifyStates(const fb::Layout &layout, uint32_t index);
  void verifyInputs(const fb::Layout &layout, uint32_t index);
  void verifyBlock(const fb::Layout &layout, const fb::Slice *slice, uint64_t least,
                   std::string what);
  void claim(const fb::Layout &layout, uint64_t offset, uint64_t bytes, std::string what);

  const std::string &file;
  const fb::Manifest &manifest;
  const uint64_t valuesBytes;
  const Rules rules;
  WorkLimit &work;
  Mesh mesh;
  std::vector<Range> ranges;
  std::set<uint32_t> sliced; ///< units of which ranks have slices
};
} // namespace

void ManifestVerifier::verifyMesh() { // (V1)
  std::vector<Mesh::Axis> axes;
  std::set<std::string> names;
  uint64_t ranks = 1;
  if (count(manifest.mesh()) > maxAxes || count(manifest.neighbours()) > maxAxes)
    refuse("expected a mesh of at most %llu axes and %llu neighbours, found %u and %u",
           (ull)maxAxes, (ull)maxAxes, count(manifest.mesh()), count(manifest.neighbours()));
  for (uint32_t i = 0; i < count(manifest.mesh()); ++i) {
    const fb::Axis &axis = *manifest.mesh()->Get(i);
    std::string name = nameOrRefuse(axis.name(), "mesh axis", i);
    if (names.count("tensor"))
      refuse("expected 'tensor' to be the last axis of the mesh, found '%s' after it",
             printable(name).c_str());
    if (!names.insert(name).second)
      refuse("the mesh has two axes called '%s'", printable(name).c_str());
    uint64_t size = 1;
    if (!isAligned(axis.factors()))
      refuse("mesh axis '%s': its factors are not aligned", printable(name).c_str());
    for (uint32_t f = 0; f < count(axis.factors()); ++f) {
      uint64_t factor = axis.factors()->Get(f);
      if (factor < 1 || factor > maxRanks)
        refuse("mesh axis '%s': expected factors from 1 to %llu, found %llu",
               printable(name).c_str(), (ull)maxRanks, (ull)factor);
      size = std::min(size * factor, maxRanks + 1);
    }
    ranks *= size;
    if (count(axis.factors()) == 0 || ranks > maxRanks)
      refuse("mesh axis '%s': expected factors and at most %llu ranks in all",
             printable(name).c_str(), (ull)maxRanks);
    axes.push_back({std::move(name), size});
  }
  if (axes.empty())
    refuse("expected a mesh with at least one axis");
  std::vector<Mesh::Neighbours> neighbours;
  for (uint32_t i = 0; i < count(manifest.neighbours()); ++i) {
    const fb::Neighbours &some = *manifest.neighbours()->Get(i);
    if (some.axis() >= axes.size() || some.size() == 0 || axes[some.axis()].size % some.size() != 0)
      refuse("neighbours %u: expected a number that divides an axis of the mesh (%s), found %llu "
             "on number %u",
             i, Mesh(axes).text().c_str(), (ull)some.size(), some.axis());
    neighbours.push_back({some.axis(), some.size()});
  }
  mesh = Mesh(std::move(axes), std::move(neighbours), manifest.context());
  if (manifest.context() == 0 || mesh.sizeOf("shard") % manifest.context() != 0)
    refuse("expected 'context' to divide the %llu ranks of axis 'shard', found %llu",
           (ull)mesh.sizeOf("shard"), (ull)manifest.context());
}

void ManifestVerifier::verifyUnits() { // (V2)
  uint64_t shards = mesh.sizeOf("shard");
  for (uint32_t i = 0; i < count(manifest.units()); ++i) {
    const fb::Unit &unit = *manifest.units()->Get(i);
    std::string name = printable(nameOrRefuse(unit.name(), "unit", i));
    if (unit.dtype() > DType::i1)
      refuse("unit '%s': expected a dtype, found number %d", name.c_str(),
             static_cast<int>(unit.dtype()));
    if (unit.shards() != 1 && unit.shards() != shards)
      refuse("unit '%s': expected 1 shard or %llu as the mesh (%s), found %llu", name.c_str(),
             (ull)shards, mesh.text().c_str(), (ull)unit.shards());
    if (unit.shard_size() == 0 || unit.shard_size() > maxElements)
      refuse("unit '%s': expected a shard size from 1 to 2^48 elements, found %llu", name.c_str(),
             (ull)unit.shard_size());
  }
}

void ManifestVerifier::verifyParams() { // (V3)
  std::set<std::string> names;
  std::vector<std::vector<Range>> used(count(manifest.units()));
  for (uint32_t i = 0; i < count(manifest.params()); ++i) {
    const fb::Param &param = *manifest.params()->Get(i);
    std::string raw = nameOrRefuse(param.name(), "parameter", i), name = printable(raw);
    if (!names.insert(raw).second)
      refuse("two parameters are called '%s'", name.c_str());
    if (param.unit() >= used.size())
      refuse("parameter '%s': expected one of %zu units, found number %u", name.c_str(),
             used.size(), param.unit());
    if (param.dtype() > DType::i1 || param.init() > fb::InitKind::uniform)
      refuse(
          "parameter '%s': expected a dtype and a kind of initial values, found numbers %d and %d",
          name.c_str(), static_cast<int>(param.dtype()), static_cast<int>(param.init()));
    work.spend(count(param.shape()));
    const fb::Unit &unit = *manifest.units()->Get(param.unit());
    if (isFloat(param.dtype()) != isFloat(unit.dtype()))
      refuse("parameter '%s': expected floats in a unit of floats, integers in one of integers",
             name.c_str());
    if (!isFloat(param.dtype()) &&
        (param.dtype() != unit.dtype() || param.trainable() ||
         param.init() != fb::InitKind::constant || !isHeldBy(param.dtype(), param.a())))
      refuse("parameter '%s': expected integers of its unit's dtype, not trained, all initialised "
             "to one value that %s can hold",
             name.c_str(), nameOf(param.dtype()));
    uint64_t elements, flat = unit.shards() * unit.shard_size();
    bool fits = elementsOf(param.shape(), elements);
    uint64_t whole = elements;
    if (fits && param.split()) {
      if (std::string problem = problemOfSplit(param, mesh); !problem.empty())
        refuse("parameter '%s': %s", name.c_str(), problem.c_str());
      elements /= mesh.sizeOf("tensor");
      sliced.insert(param.unit());
    }
    if (!fits || !isInside(param.offset(), elements, flat))
      refuse(
          "parameter '%s': expected its elements, from element %llu, within the %llu of unit '%s'",
          name.c_str(), (ull)param.offset(), (ull)flat, printable(unit.name()->str()).c_str());
    if (param.value())
      verifyValue(*param.value(), param.dtype(), name, whole);
    if (elements)
      used[param.unit()].push_back({param.offset(), param.offset() + elements, name});
  }
  for (auto &unit : used) {
    std::sort(unit.begin(), unit.end(),
              [](const Range &a, const Range &b) { return a.begin < b.begin; });
    for (size_t i = 1; i < unit.size(); ++i)
      if (unit[i].begin < unit[i - 1].end)
        refuse("parameters '%s' and '%s' overlap", unit[i - 1].what.c_str(), unit[i].what.c_str());
  }
}

void ManifestVerifier::verifyValue(const fb::Value &value, DType dtype, const std::string &name,
                                   uint64_t elements) { // (V3)
  if (value.dtype() > DType::i1 ||
      (isFloat(dtype) ? !isFloat(value.dtype()) : value.dtype() != dtype))
    refuse("parameter '%s': expected values of %s, found number %d", name.c_str(),
           isFloat(dtype) ? "a float dtype" : nameOf(dtype), static_cast<int>(value.dtype()));
  uint64_t each = sizeOf(value.dtype());
  if (elements == 0 || (value.bytes() != each && value.bytes() != elements * each))
    refuse("parameter '%s': expected the bytes of one or of %llu values of dtype %s, found %llu",
           name.c_str(), (ull)elements, nameOf(value.dtype()), (ull)value.bytes());
  if (value.offset() % FSDPRT_ARTIFACT_VALUE_ALIGNMENT != 0 ||
      !isInside(value.offset(), value.bytes(), valuesBytes))
    refuse("parameter '%s': expected its values at a multiple of 64 within the file's %llu bytes "
           "of values, found [%llu, +%llu)",
           name.c_str(), (ull)valuesBytes, (ull)value.offset(), (ull)value.bytes());
}

void ManifestVerifier::verifyKernels() { // (V4)
  for (uint32_t i = 0; i < count(manifest.kernels()); ++i) {
    const fb::Kernel &kernel = *manifest.kernels()->Get(i);
    std::string name = printable(nameOrRefuse(kernel.name(), "kernel", i));
    if (count(kernel.phases()) < 1 || count(kernel.phases()) > 64)
      refuse("kernel '%s': expected 1 to 64 phases, found %u", name.c_str(),
             count(kernel.phases()));
    if (!isAligned(kernel.binding_bytes()))
      refuse("kernel '%s': the sizes of its bindings are not aligned", name.c_str());
    for (uint32_t p = 0; p < count(kernel.phases()); ++p) {
      const fb::Phase &phase = *kernel.phases()->Get(p);
      work.spend(name.size() + count(kernel.binding_bytes()));
      nameOrRefuse(phase.symbol(), ("the function of kernel '" + name + "', phase").c_str(), p);
      if (phase.extent() < 1 || phase.tile() < 1 || phase.extent() > maxElements ||
          phase.tile() > maxElements)
        refuse("kernel '%s', phase %u: expected an extent and a tile from 1 to 2^48, found %llu "
               "and %llu",
               name.c_str(), p, (ull)phase.extent(), (ull)phase.tile());
      std::string problem = problemOfPhase(kernel, phase, manifest.gpu() != nullptr); // (V19)
      if (problem.empty() && rules == Rules::all)
        problem = problemOfPlaces(kernel, phase);
      if (!problem.empty())
        refuse("kernel '%s', phase %u: %s", name.c_str(), p, problem.c_str());
    }
    if (count(kernel.writes()) != 0 && count(kernel.writes()) != count(kernel.binding_bytes()))
      refuse("kernel '%s': expected 'writes' for each of %u bindings, found %u", name.c_str(),
             count(kernel.binding_bytes()), count(kernel.writes()));
    if (count(kernel.reads()) != 0 && count(kernel.reads()) != count(kernel.binding_bytes()))
      refuse("kernel '%s': expected 'reads' for each of %u bindings, found %u", name.c_str(),
             count(kernel.binding_bytes()), count(kernel.reads()));
  }
}

void ManifestVerifier::verifyFeatures() { // (V5)
  std::string missing;
  for (uint32_t i = 0; i < count(manifest.isa()); ++i) {
    std::string name = nameOrRefuse(manifest.isa()->Get(i), "processor feature", i);
    Feature feature = cpuFeature(name.c_str());
    if (feature == Feature::unknown)
      refuse("the kernels need the processor feature '%s', which this runtime cannot query",
             printable(name).c_str());
    if (feature == Feature::absent)
      missing += (missing.empty() ? "" : " ") + printable(name);
    else if (name == "amx_tile" && !fsdpcommon::requestTileData())
      refuse(
          "the kernels need AMX, and the operating system denied this process the tile registers "
          "(arch_prctl ARCH_REQ_XCOMP_PERM); compile the model with --target-cpu=x86-64-v4, or "
          "allow the request");
  }
  if (!missing.empty())
    refuse("the kernels need processor features that this machine lacks: %s; compile the model for "
           "this machine",
           missing.c_str());
}

/// Checks that a range of `bytes` bytes at `offset` lies in an arena or in the file. Adds the range
/// to `ranges`, whose elements must not overlap.
void ManifestVerifier::claim(const fb::Layout &layout, uint64_t offset, uint64_t bytes,
                             std::string what) { // (V6)
  if (rules == Rules::form)
    return;
  if (offset % 64 != 0 || !liesInArena(layout, offset, offset, bytes))
    refuse("%s: expected a multiple of 64 and a range within the arena's %llu bytes, found [%llu, "
           "+%llu)",
           what.c_str(), (ull)layout.arena_bytes(), (ull)offset, (ull)bytes);
  if (bytes)
    ranges.push_back({offset, offset + bytes, std::move(what)});
}

void ManifestVerifier::verifyStates(const fb::Layout &layout, uint32_t index) { // (V7)
  std::set<std::pair<uint32_t, fb::StateRole>> seen;
  for (uint32_t i = 0; i < count(layout.states()); ++i) {
    const fb::State &state = *layout.states()->Get(i);
    std::string what = format("layout %u, state %u", index, i);
    if (state.unit() >= count(manifest.units()) || state.role() > fb::StateRole::master ||
        state.dtype() > DType::i1)
      refuse("%s: expected one of %u units, a role and a dtype, found numbers %u, %d and %d",
             what.c_str(), count(manifest.units()), state.unit(), static_cast<int>(state.role()),
             static_cast<int>(state.dtype()));
    if (!seen.insert({state.unit(), state.role()}).second)
      refuse("%s: its unit has another state of this role", what.c_str());
    const fb::Unit &unit = *manifest.units()->Get(state.unit());
    bool isKept = state.role() == fb::StateRole::parameter && state.dtype() == unit.dtype();
    if (isFloat(unit.dtype()) ? !isFloat(state.dtype()) : !isKept)
      refuse("%s: expected floats for a unit of floats, and only the parameter for a unit of "
             "integers",
             what.c_str());
    if (state.split() > fb::Split::shard_replicate)
      refuse(
          "%s: expected pieces over no axis, 'shard', or 'shard' and 'replicate', found number %d",
          what.c_str(), static_cast<int>(state.split()));
    uint64_t pieces = mesh.pieces(static_cast<uint64_t>(state.split())),
             flat = unit.shards() * unit.shard_size();
    bool hasSlices = sliced.count(state.unit()) && isReferenceLayout(manifest, index, work);
    uint64_t elements = flat / pieces * (hasSlices ? mesh.sizeOf("tensor") : 1);
    if (state.elements() != elements || flat % pieces != 0)
      refuse("%s: expected the %llu elements of unit '%s', found %llu", what.c_str(), (ull)elements,
             printable(unit.name()->str()).c_str(), (ull)state.elements());
    claim(layout, state.offset(), elements * sizeOf(state.dtype()), what);
  }
}

void ManifestVerifier::verifyInputs(const fb::Layout &layout, uint32_t index) { // (V8)
  for (uint32_t i = 0; i < count(layout.inputs()); ++i) {
    const fb::Input &input = *layout.inputs()->Get(i);
    std::string what = format("layout %u, input '%s'", index,
                              printable(nameOrRefuse(input.name(), "input", i)).c_str());
    if (input.role() > fb::InputRole::other || input.dtype() > DType::i1)
      refuse("%s: expected a role and a dtype, found numbers %d and %d", what.c_str(),
             static_cast<int>(input.role()), static_cast<int>(input.dtype()));
    uint64_t elements;
    work.spend(count(input.shape()));
    if (!elementsOf(input.shape(), elements) || elements * sizeOf(input.dtype()) != input.bytes())
      refuse("%s: expected the bytes of its shape and dtype, found %llu", what.c_str(),
             (ull)input.bytes());
    if (input.micro_batches() < 1 ||
        (input.micro_batches() > 1 &&
         (count(input.shape()) == 0 || input.shape()->Get(0) != input.micro_batches())))
      refuse("%s: expected a leading dimension of its %u micro-batches", what.c_str(),
             input.micro_batches());
    bool isId = input.dtype() >= DType::i64 && input.dtype() <= DType::i8;
    uint64_t most = isId ? (uint64_t(1) << (sizeOf(input.dtype()) * 8 - 1)) : 0;
    if (input.limit() > most)
      refuse("%s: expected a limit of at most %llu for dtype %s, found %llu", what.c_str(),
             (ull)most, nameOf(input.dtype()), (ull)input.limit());
    if (!isAligned(input.extra_ids()) || count(input.extra_ids()) > 64)
      refuse("%s: expected at most 64 extra ids, aligned, found %u", what.c_str(),
             count(input.extra_ids()));
    for (uint32_t k = 0; k < count(input.extra_ids()); ++k) {
      int64_t id = input.extra_ids()->Get(k);
      if (input.limit() == 0 || (id >= 0 && static_cast<uint64_t>(id) < input.limit()))
        refuse("%s: expected extra ids outside of a limit, found %lld with limit %llu",
               what.c_str(), (long long)id, (ull)input.limit());
    }
    if (rules == Rules::all && isInFile(layout, input.offset()))
      refuse("%s: expected a range in an arena, found one in the file", what.c_str());
    claim(layout, input.offset(), input.bytes(), what);
  }
}

void ManifestVerifier::verifyBlock(const fb::Layout &layout, const fb::Slice *slice, uint64_t least,
                                   std::string what) {
  if (!slice || slice->bytes() < least || slice->stride() != 0 || slice->piece() != 0)
    refuse("%s: expected at least %llu bytes", what.c_str(), (ull)least);
  if (rules == Rules::all && !isOnDevice(layout, slice->offset()))
    refuse("%s: expected a range in the device's arena", what.c_str());
  claim(layout, slice->offset(), slice->bytes(), std::move(what));
}

void ManifestVerifier::verifyLayout(const fb::Layout &layout, uint32_t index) {
  ranges.clear();
  if (layout.arena_bytes() > maxArenaBytes)
    refuse("layout %u: expected an arena of at most 2^48 bytes, found %llu", index,
           (ull)layout.arena_bytes());
  if (layout.host_bytes() > maxArenaBytes)
    refuse("layout %u: expected a host arena of at most 2^48 bytes, found %llu", index,
           (ull)layout.host_bytes());
  if (layout.file_bytes() > maxArenaBytes)
    refuse("layout %u: expected a file of at most 2^48 bytes, found %llu", index,
           (ull)layout.file_bytes());
  verifyStates(layout, index);
  verifyInputs(layout, index);
  verifyBlock(layout, layout.block(), 64, format("layout %u, step block", index));
  if (layout.rank() && layout.rank()->bytes() != 0) // The rank block is optional.
    verifyBlock(layout, layout.rank(), 32, format("layout %u, rank block", index));
  for (const fb::Slice *slice : {layout.rank(), layout.workspace()})
    if (slice && (slice->stride() != 0 || slice->piece() != 0))
      refuse("layout %u: expected the rank block and the workspace to be no pieces", index);
  uint64_t workspace = layout.workspace() ? layout.workspace()->bytes() : 0; // (V9)
  if (layout.workers() < 1 || layout.workers() > maxWorkers || layout.shared_bytes() % 64 != 0 ||
      layout.worker_bytes() % 64 != 0)
    refuse("layout %u: expected 1 to %llu workers and scratch in multiples of 64 bytes, found %u, "
           "%llu shared and %llu each",
           index, (ull)maxWorkers, layout.workers(), (ull)layout.shared_bytes(),
           (ull)layout.worker_bytes());
  if (layout.shared_bytes() > workspace ||
      layout.worker_bytes() > (workspace - layout.shared_bytes()) / layout.workers())
    refuse("layout %u: expected a workspace for %llu shared bytes and %u workers with %llu each, "
           "found %llu bytes",
           index, (ull)layout.shared_bytes(), layout.workers(), (ull)layout.worker_bytes(),
           (ull)workspace);
  if (rules == Rules::all && layout.workspace() &&
      !isOnDevice(layout, layout.workspace()->offset()))
    refuse("layout %u: expected the workspace on the device", index);
  if (rules == Rules::all && manifest.gpu() && workspace &&
      layout.workspace()->offset() % gpuScratchAlignment != 0)
    refuse("layout %u: expected the workspace of a GPU's kernels at a multiple of %llu, found %llu",
           index, (ull)gpuScratchAlignment, (ull)layout.workspace()->offset());
  if (layout.workspace())
    claim(layout, layout.workspace()->offset(), workspace, format("layout %u, workspace", index));
  if (manifest.threads_per_rank() < 1 || manifest.threads_per_rank() > layout.workers()) // (V10)
    refuse("expected 1 to %u threads per rank, found %u", layout.workers(),
           manifest.threads_per_rank());
  std::sort(ranges.begin(), ranges.end(),
            [](const Range &a, const Range &b) { return a.begin < b.begin; });
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end)
      refuse("%s and %s overlap in the arena", ranges[i - 1].what.c_str(), ranges[i].what.c_str());
  for (uint32_t i = 0; i < count(layout.buffers()); ++i) {
    const fb::Buffer &buffer = *layout.buffers()->Get(i);
    bool fits = rules == Rules::form ||
                liesInArena(layout, buffer.offset(), buffer.offset(), buffer.bytes());
    if (buffer.category() > fb::Category::snapshot || !fits)
      refuse("layout %u, buffer %u: expected a category and a range within the arena", index, i);
  }
}

void ManifestVerifier::verifyLookups() { // (V22)
  if (count(manifest.lookups()) > 1u << 20)
    refuse("expected at most 2^20 checked lookups, found %u", count(manifest.lookups()));
  for (uint32_t i = 0; i < count(manifest.lookups()); ++i) {
    const fb::Lookup &lookup = *manifest.lookups()->Get(i);
    nameOrRefuse(lookup.location(), "location of lookup", i);
    nameOrRefuse(lookup.what(), "description of lookup", i);
    if (lookup.extent() < 1 || lookup.extent() > static_cast<uint64_t>(INT64_MAX))
      refuse("lookup %u: expected an extent from 1 to 2^63 - 1, found %llu", i,
             (ull)lookup.extent());
  }
}

Mesh fsdprt::verifyManifest(const std::string &file, const fb::Manifest &manifest,
                            uint64_t manifestBytes, uint64_t valuesBytes, Rules rules) {
  WorkLimit work(file, manifestBytes);
  Mesh mesh = ManifestVerifier(file, manifest, valuesBytes, rules, work).verify();
  verifyPrograms(file, manifest, mesh, rules, work);
  return mesh;
}
