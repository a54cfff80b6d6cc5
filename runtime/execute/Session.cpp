//===- Session.cpp - What the C interface works on --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Before memory is taken: the mesh is compared with the ranks asked for, the threads
// with the workers there is scratch for, and the arenas with what the machine has.
//
// Parameters are addressed by (parameter, element). Element e of parameter p is
// element p.offset + e of its unit's flat buffer; a rank's shard holds a range of that.
//
//===----------------------------------------------------------------------===//

#include "execute/Session.h"
#include "artifact/Arenas.h"
#include "core/Error.h"
#include "execute/MemoryFit.h"
#include "execute/NonFiniteSearch.h"
#include "execute/Placement.h"
#include "execute/SessionHooks.h"
#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>
#include <thread>

using namespace fsdprt;
using ull = unsigned long long;

uint64_t fsdprt::elementsOf(const fb::Param &param) {
  uint64_t elements = 1;
  for (uint32_t i = 0; param.shape() && i < param.shape()->size(); ++i)
    elements *= param.shape()->Get(i);
  return elements;
}

/// The layout of the programs of one kind; null when there are none.
static const fb::Layout *layoutOf(const Artifact &artifact, bool reference) {
  for (const fb::Program *program : *artifact.manifest().programs())
    if (isReferenceProgram(program->name()->str()) == reference)
      return artifact.manifest().layouts()->Get(program->layout());
  return nullptr;
}

/// The kinds of kernels in "map,row". Throws Error when one of them is not in the artifact.
static std::vector<std::string> checkKinds(const Artifact &artifact, const char *text) {
  std::set<std::string> known;
  const auto *kernels = artifact.manifest().kernels();
  for (uint32_t i = 0; kernels && i < kernels->size(); ++i)
    if (kernels->Get(i)->kind())
      known.insert(kernels->Get(i)->kind()->str());
  std::string list;
  for (const std::string &kind : known)
    list += (list.empty() ? "" : ", ") + printable(kind);
  std::vector<std::string> kinds;
  std::istringstream stream(text);
  for (std::string kind; std::getline(stream, kind, ',');) {
    if (!known.count(kind))
      badInput("%s: has no kernel of kind '%s'; its kinds: %s", artifact.getFile().c_str(),
               printable(kind).c_str(), list.empty() ? "none" : list.c_str());
    kinds.push_back(kind);
  }
  if (kinds.empty())
    badInput("expected kinds of kernels with commas between, found '%s'", printable(text).c_str());
  return kinds;
}

/// Of this process and its machine. Over MPI others may be elsewhere: they count where the launcher
/// says that they are not.
static MemoryDemand demandOf(const Artifact &artifact, const fb::Layout &layout,
                             const fb::Layout *reference, const fsdprt_session_options &options,
                             uint32_t threadsPerRank) {
  uint64_t ranks = artifact.getMesh().ranks();
  bool threads = isControl(options, "local"), mapsPeers = !isControl(options, "mpi"),
       isOnGpu = isDevice(options, "cuda");
  MemoryDemand demand;
  demand.arena = isOnGpu ? layout.host_bytes() : mappedBytes(layout);
  demand.reference = !reference ? 0 : isOnGpu ? reference->host_bytes() : mappedBytes(*reference);
  demand.ranksOnMachine =
      mapsPeers ? ranks : std::clamp<uint64_t>(options.ranks_on_machine, 1, ranks);
  demand.ranksMapped = mapsPeers ? ranks : 1;
  demand.processes = threads ? 1 : demand.ranksOnMachine;
  // Of collectives, of copies to the host and back, and of the file.
  uint64_t transferWorkers = 1 + (layout.host_bytes() != 0) + (layout.file_bytes() != 0);
  demand.threads = (threads ? ranks : 1) * (threadsPerRank + transferWorkers);
  return demand;
}

SessionHooks &fsdprt::nextSessionHooks() {
  thread_local SessionHooks hooks;
  return hooks;
}

Session::Session(std::shared_ptr<const Artifact> shared, const fsdprt_session_options &options)
    : artifact(*shared) {
  SessionHooks hooks = std::exchange(nextSessionHooks(), {});
  checkPlace(artifact, options);
  if (options.cuda_graph && hooks.seesCommands)
    badInput("the commands of a CUDA graph are not seen one by one: no planted fault");
  const fb::Layout *layout = layoutOf(artifact, false);
  const fb::Layout *whole = options.with_reference ? layoutOf(artifact, true) : nullptr;
  if (!layout)
    badInput("%s: has no program to run on ranks", artifact.getFile().c_str());
  if (options.with_reference && !whole)
    badInput("%s: has no program 'reference'", artifact.getFile().c_str());
  RankGroupOptions group;
  group.threadsPerRank =
      options.threads_per_rank ? options.threads_per_rank : artifact.manifest().threads_per_rank();
  group.timeoutSeconds = options.timeout_seconds > 0 ? options.timeout_seconds : 60;
  group.seed = options.seed;
  group.device = !artifact.gpu()             ? DeviceKind::cpu
                 : isDevice(options, "cuda") ? DeviceKind::cuda
                                             : DeviceKind::emulated;
  group.cudaGraph = options.cuda_graph != 0;
  if (group.threadsPerRank > layout->workers())
    badInput("%s: has scratch memory for %u threads per rank, asked to run with %u; compile with "
             "more --threads-per-rank",
             artifact.getFile().c_str(), layout->workers(), group.threadsPerRank);
  if (!hooks.onlyKinds.empty()) {
    if (whole)
      badInput("with some kinds of kernels only there is nothing to compare with the reference");
    group.onlyKinds = checkKinds(artifact, hooks.onlyKinds.c_str());
  }
  group.offloadDirectory =
      options.offload_directory ? options.offload_directory : temporaryDirectory();
  group.linkBytesPerSecond = options.link_bytes_per_second;
  checkFits(artifact, demandOf(artifact, *layout, whole, options, group.threadsPerRank));
  const fb::Program *step = artifact.program("step");
  group.stepsBefore = options.steps_before;
  const Mesh &mesh = artifact.getMesh();
  ranks = std::make_unique<RankGroup>(
      shared, makeCommunicator(artifact, options, group.timeoutSeconds, group.threadsPerRank),
      *layout, false, group);
  if (step && (options.profile || options.trace_runs)) {
    timer = std::make_shared<CommandTimer>(*ranks, ranks->instructionsOf(*step),
                                           options.profile != 0, options.trace_runs);
    ranks->attach(timer);
  }
  if (hooks.prepare)
    hooks.prepare(*ranks);
  if (!whole)
    return;
  // Alone while it runs: it may use the threads of all ranks. Their number changes no bit.
  uint64_t threads = std::min<uint64_t>(std::thread::hardware_concurrency(),
                                        uint64_t(group.threadsPerRank) * ranks->ranks());
  group.threadsPerRank = static_cast<uint32_t>(std::clamp<uint64_t>(threads, 1, whole->workers()));
  // Others may wait for this process's rank meanwhile.
  auto watchdog = ranks->getCommunicator().getWatchdog().alone(ranks->firstRank());
  reference = std::make_unique<RankGroup>(
      shared, makeSoloCommunicator(artifact, options, std::move(watchdog), group.threadsPerRank),
      *whole, true, group);
}

Session::~Session() {
  for (std::unique_ptr<RankGroup> *group : {&ranks, &reference})
    if (*group && (*group)->hasHung())
      (void)group->release(); // a thread that hangs still uses it
}

const RankGroup &Session::group(uint32_t rank) const {
  if (rank == FSDPRT_REFERENCE) {
    if (!reference)
      badInput("the session was made without the reference");
    return *reference;
  }
  if (rank >= ranks->ranks())
    badInput("expected a rank below %u, found %u", ranks->ranks(), rank);
  return *ranks;
}

Profile &Session::profile() const {
  if (!timer || !timer->getProfile())
    badInput("the session was made without a profile");
  return *timer->getProfile();
}

const Trace &Session::trace() const {
  if (!timer || !timer->getTrace())
    badInput("the session was made without a trace");
  if (ranks->getCommunicator().processes() > 1)
    timer->getTrace()->collect(ranks->getCommunicator());
  return *timer->getTrace();
}

uint32_t Session::checkRank(uint32_t rank) const {
  if (!group(rank).isLocal(rank) && rank != FSDPRT_REFERENCE)
    badInput("rank %u is in another process; this one has rank %u", rank, ranks->firstRank());
  return rank == FSDPRT_REFERENCE ? 0 : rank;
}

uint64_t Session::gpuBytesBeside() const {
  uint64_t bytes = ranks->deviceBytesBeside();
  return bytes - std::min(bytes, reference ? reference->arenaBytes() : 0);
}

void Session::exchange(const void *mine, size_t size, void *all) {
  if (size > Communicator::exchangeLimit)
    badInput("expected at most %zu bytes to exchange, found %zu", Communicator::exchangeLimit,
             size);
  ranks->getCommunicator().exchange(mine, size, all);
}

void Session::collect(uint32_t rank, const void *data, size_t size, void *into) {
  group(rank);
  ranks->getCommunicator().collect(rank, data, size, into);
}

const fb::Param &Session::param(uint64_t index) const {
  const auto *params = artifact.manifest().params();
  if (!params || index >= params->size())
    badInput("expected one of %u parameters, found number %llu", params ? params->size() : 0,
             (ull)index);
  return *params->Get(index);
}

void Session::run(const char *name) {
  const fb::Program *program = artifact.program(name);
  if (!program)
    badInput("%s: has no program '%s'", artifact.getFile().c_str(), printable(name).c_str());
  RankGroup *group = isReferenceProgram(name) ? reference.get() : ranks.get();
  if (!group)
    badInput("the session was made without the reference");
  group->run(*program);
  if (artifact.manifest().lookups() && group->checksLookups())
    checkLookups(*group, isReferenceProgram(name) ? FSDPRT_REFERENCE : ranks->firstRank());
}

std::string Session::findNonfinite(const char *name) {
  const fb::Program *program = artifact.program(name);
  if (!program || isReferenceProgram(name))
    badInput("%s: has no program '%s' to run on ranks", artifact.getFile().c_str(),
             printable(name).c_str());
  auto search = std::make_shared<NonFiniteSearch>(ranks->firstRank(), ranks->localRanks());
  ranks->runAgain(*program, search);
  NonFiniteSource mine = search->result(), earliest;
  Communicator &communicator = ranks->getCommunicator();
  std::vector<NonFiniteSource> all(communicator.processes());
  communicator.exchange(&mine, sizeof mine, all.data());
  for (const NonFiniteSource &source : all) {
    if (source.number < earliest.number)
      earliest = source;
    else if (source.number == earliest.number)
      earliest.ranks += source.ranks;
  }
  if (earliest.ranks == 0)
    return "";
  std::string who =
      earliest.ranks == 1 ? "rank " + std::to_string(earliest.first)
      : earliest.ranks == ranks->ranks()
          ? "all ranks"
          : format("%u ranks, rank %u the first of them,", earliest.ranks, earliest.first);
  return format("%s gave the first such number to %s", who.c_str(),
                communicator.describe(earliest.collective).c_str());
}

void Session::readBlock(uint32_t rank, float *block) const {
  const RankGroup &on = group(rank);
  on.read(checkRank(rank), on.getLayout().block()->offset(), block,
          FSDPRT_BLOCK_SIZE * sizeof(float));
}

void Session::writeBlock(uint32_t rank, const float *block) {
  const RankGroup &on = group(rank);
  on.write(checkRank(rank), on.getLayout().block()->offset(), block,
           FSDPRT_BLOCK_SIZE * sizeof(float));
}

//===- Inputs -------------------------------------------------------------===//

/// One of the values that the model keeps from its lookups itself.
static bool isExtraId(const fb::Input &input, int64_t id) {
  const auto *extra = input.extra_ids();
  return extra && std::find(extra->begin(), extra->end(), id) != extra->end();
}

static std::string extraIdsText(const fb::Input &input) {
  std::string text;
  for (uint32_t i = 0; input.extra_ids() && i < input.extra_ids()->size(); ++i)
    text += " or " + std::to_string(input.extra_ids()->Get(i));
  return text;
}

template <typename Id>
static void checkIds(const fb::Input &input, const void *data, size_t size) {
  const auto *ids = static_cast<const Id *>(data);
  for (size_t i = 0; i < size / sizeof(Id); ++i)
    if ((ids[i] < 0 || static_cast<uint64_t>(ids[i]) >= input.limit()) && !isExtraId(input, ids[i]))
      badInput("input '%s': expected ids in [0, %llu)%s, found %lld at element %zu",
               printable(input.name()->str()).c_str(), (ull)input.limit(),
               extraIdsText(input).c_str(), (long long)ids[i], i);
}

void Session::writeInput(uint32_t rank, uint64_t index, uint32_t microBatch, const void *data,
                         size_t size) {
  const RankGroup &on = group(rank);
  const auto *inputs = on.getLayout().inputs();
  if (!inputs || index >= inputs->size())
    badInput("expected one of %u inputs, found number %llu", inputs ? inputs->size() : 0,
             (ull)index);
  const fb::Input &input = *inputs->Get(index);
  uint64_t each = input.bytes() / input.micro_batches();
  if (microBatch >= input.micro_batches() || size != each)
    badInput("input '%s': expected %llu bytes for one of %u micro-batches, found %zu for number %u",
             printable(input.name()->str()).c_str(), (ull)each, input.micro_batches(), size,
             microBatch);
  if (input.limit() != 0) {
    switch (input.dtype()) {
    case DType::i64:
      checkIds<int64_t>(input, data, size);
      break;
    case DType::i32:
      checkIds<int32_t>(input, data, size);
      break;
    case DType::i16:
      checkIds<int16_t>(input, data, size);
      break;
    case DType::i8:
      checkIds<int8_t>(input, data, size);
      break;
    default:
      break;
    }
  }
  on.write(checkRank(rank), input.offset() + microBatch * each, data, size);
}

//===- States -------------------------------------------------------------===//

const fb::State *Session::state(const RankGroup &group, uint64_t index, fb::StateRole role) const {
  const auto *states = group.getLayout().states();
  for (uint32_t i = 0; states && i < states->size(); ++i)
    if (states->Get(i)->unit() == param(index).unit() && states->Get(i)->role() == role)
      return states->Get(i);
  return nullptr;
}

static void checkElements(const fb::Param &param, uint64_t first, uint64_t count) {
  uint64_t elements = elementsOf(param);
  if (count > elements || first > elements - count)
    badInput("parameter '%s': expected elements within its %llu, found [%llu, +%llu)",
             printable(param.name()->str()).c_str(), (ull)elements, (ull)first, (ull)count);
}

namespace {
/// What a rank holds of elements [first, first + count) of a flat buffer.
struct Overlap {
  uint64_t begin, end; // in the flat buffer
  Overlap(const RankGroup &group, const fb::State &state, uint32_t rank, uint64_t first,
          uint64_t count)
      : begin(std::max(first, group.firstElement(state, rank))),
        end(std::min(first + count, group.firstElement(state, rank) + state.elements())) {}
  /// Where that begins in what the rank holds, in bytes; and how many there are.
  uint64_t first(const RankGroup &group, const fb::State &state, uint32_t rank) const {
    return (begin - group.firstElement(state, rank)) * sizeOf(state.dtype());
  }
  uint64_t bytes(const fb::State &state) const { return (end - begin) * sizeOf(state.dtype()); }
  std::vector<std::byte> read(const RankGroup &group, const fb::State &state, uint32_t rank) const {
    std::vector<std::byte> content(bytes(state));
    group.readState(rank, state, first(group, state, rank), content.size(), content.data());
    return content;
  }
};
} // namespace

void Session::readParam(uint32_t rank, uint64_t index, fb::StateRole role, uint64_t first,
                        uint64_t count, void *data, size_t size) const {
  const RankGroup &on = group(rank);
  const fb::Param &which = param(index);
  checkElements(which, first, count);
  const fb::State *from = state(on, index, role);
  if (!from)
    badInput("parameter '%s' has no state '%s'", printable(which.name()->str()).c_str(),
             fb::EnumNameStateRole(role));
  uint64_t each = sizeOf(from->dtype()), flat = which.offset() + first;
  if (size != count * each)
    badInput("parameter '%s': expected room for %llu bytes, found %zu",
             printable(which.name()->str()).c_str(), (ull)(count * each), size);
  for (uint64_t next = flat; next < flat + count;) {
    uint32_t r = 0;
    auto part = [&] { return Overlap(on, *from, r, next, flat + count - next); };
    while (r < on.ranks() && (part().begin != next || part().begin >= part().end))
      ++r;
    if (r == on.ranks())
      failed("parameter '%s': no rank has element %llu", printable(which.name()->str()).c_str(),
             (ull)(next - which.offset()));
    std::vector<std::byte> content;
    const std::byte *held = nullptr;
    if (on.isLocal(r) && on.memoryOf(r, *from)) {
      held = on.memoryOf(r, *from) + part().first(on, *from, r);
    } else if (on.isLocal(r)) {
      content = part().read(on, *from, r);
      held = content.data();
    }
    uint64_t end = part().end;
    on.getCommunicator().collect(r, held, (end - next) * each,
                                 static_cast<std::byte *>(data) + (next - flat) * each);
    next = end;
  }
}

void Session::writeInto(RankGroup &on, const fb::State &to, const fb::Param &which, uint64_t first,
                        uint64_t count, const void *data, DType type) {
  uint64_t flat = which.offset() + first;
  for (uint32_t r = on.firstRank(); r < on.firstRank() + on.localRanks(); ++r) {
    Overlap part(on, to, r, flat, count);
    if (part.begin >= part.end)
      continue;
    const std::byte *from =
        static_cast<const std::byte *>(data) + (part.begin - flat) * sizeOf(type);
    uint64_t place = part.first(on, to, r);
    if (type == to.dtype()) {
      on.writeState(r, to, place, part.bytes(to), from);
      continue;
    }
    std::vector<std::byte> content(part.bytes(to));
    std::byte *into = content.data();
    for (uint64_t i = part.begin; i < part.end;
         ++i, from += sizeOf(type), into += sizeOf(to.dtype()))
      storeElement(to.dtype(), loadElement(type, from), into);
    on.writeState(r, to, place, content.size(), content.data());
  }
}

void Session::writeParam(uint64_t index, fb::StateRole role, uint64_t first, uint64_t count,
                         const void *data, DType type) {
  const fb::Param &which = param(index);
  checkElements(which, first, count);
  if (isFloat(which.dtype()) ? !isFloat(type) : type != which.dtype())
    badInput("parameter '%s': expected values of %s, found %s",
             printable(which.name()->str()).c_str(),
             isFloat(which.dtype()) ? "a float dtype" : nameOf(which.dtype()), nameOf(type));
  bool wrote = false;
  for (RankGroup *on : {ranks.get(), reference.get()}) {
    if (!on)
      continue;
    for (fb::StateRole into : {role, fb::StateRole::master}) {
      bool alsoMaster = role == fb::StateRole::parameter && into == fb::StateRole::master;
      const fb::State *to = into == role || alsoMaster ? state(*on, index, into) : nullptr;
      if (!to)
        continue;
      writeInto(*on, *to, which, first, count, data, type);
      wrote = true;
    }
  }
  if (!wrote)
    badInput("parameter '%s' has no state '%s'", printable(which.name()->str()).c_str(),
             fb::EnumNameStateRole(role));
}

void Session::pokeShard(uint32_t rank, uint64_t index, void (*change)(void *, void *, size_t),
                        void *user) {
  const RankGroup &on = group(rank);
  const fb::State *held = state(on, index, fb::StateRole::parameter);
  if (!held)
    badInput("the parameter has no state");
  Overlap part(on, *held, checkRank(rank), param(index).offset(), elementsOf(param(index)));
  if (part.begin >= part.end)
    badInput("rank %u holds no element of parameter '%s'", rank,
             printable(param(index).name()->str()).c_str());
  uint64_t first = part.first(on, *held, checkRank(rank)), size = sizeOf(held->dtype());
  std::byte element[8];
  on.readState(checkRank(rank), *held, first, size, element);
  change(user, element, size);
  on.writeState(checkRank(rank), *held, first, size, element);
}

//===- Comparison ---------------------------------------------------------===//

/// True when every element of every parameter in this state, of which `piece` is the rank's and
/// `all` the reference's, is the same; else fills in the first that is not.
bool Session::compareState(uint32_t rank, const fb::State &held, const std::byte *all,
                           const std::byte *piece, fsdprt_comparison &result) const {
  const auto *params = artifact.manifest().params();
  uint64_t each = sizeOf(held.dtype()), pieceBegin = ranks->firstElement(held, rank);
  uint64_t &counter = held.role() == fb::StateRole::parameter ? result.parameter_elements
                                                              : result.optimizer_elements;
  for (uint32_t p = 0; params && p < params->size(); ++p) {
    const fb::Param &which = *params->Get(p);
    if (which.unit() != held.unit())
      continue;
    Overlap part(*ranks, held, rank, which.offset(), elementsOf(which));
    if (part.begin >= part.end)
      continue;
    const std::byte *a = piece + (part.begin - pieceBegin) * each;
    const std::byte *b = all + part.begin * each;
    for (uint64_t i = part.begin; i < part.end; ++i, a += each, b += each) {
      if (std::memcmp(a, b, each) == 0)
        continue;
      result.equal = 0;
      result.rank = rank;
      result.param = p;
      result.element = i - which.offset();
      result.role = static_cast<fsdprt_state_role>(held.role());
      result.sharded = loadElement(held.dtype(), a);
      result.unsharded = loadElement(held.dtype(), b);
      return false;
    }
    counter += part.end - part.begin;
  }
  return true;
}

const fb::State *Session::wholeOf(const fb::State &held) const {
  const auto *wholes = reference->getLayout().states();
  for (uint32_t w = 0; wholes && w < wholes->size(); ++w)
    if (wholes->Get(w)->unit() == held.unit() && wholes->Get(w)->role() == held.role() &&
        wholes->Get(w)->dtype() == held.dtype())
      return wholes->Get(w);
  return nullptr;
}

/// Pieces of other processes are brought here one by one; all of them, for these send them in any
/// case.
void Session::compare(fsdprt_comparison &result) const {
  Communicator &communicator = ranks->getCommunicator();
  if (!reference && communicator.isRoot())
    badInput("the session was made without the reference");
  result.equal = 1;
  result.parameter_elements = result.optimizer_elements = 0;
  const auto *states = ranks->getLayout().states();
  std::vector<std::byte> buffer;
  for (uint32_t s = 0; states && s < states->size(); ++s) {
    const fb::State &held = *states->Get(s);
    const fb::State *whole = reference ? wholeOf(held) : nullptr;
    if (reference && !whole)
      badInput("%s: state %u has no counterpart of its dtype in the reference",
               artifact.getFile().c_str(), s);
    std::vector<std::byte> copied;
    const std::byte *all = whole ? reference->memoryOf(0, *whole) : nullptr;
    if (whole && !all) {
      copied.resize(whole->elements() * sizeOf(whole->dtype()));
      reference->readState(0, *whole, 0, copied.size(), copied.data());
      all = copied.data();
    }
    uint64_t bytes = held.elements() * sizeOf(held.dtype());
    for (uint32_t rank = 0; rank < ranks->ranks(); ++rank) {
      const std::byte *piece = nullptr;
      std::vector<std::byte> content;
      if (ranks->isLocal(rank) && !(piece = ranks->memoryOf(rank, held))) {
        content.resize(bytes);
        ranks->readState(rank, held, 0, bytes, content.data());
        piece = content.data();
      }
      if (communicator.processes() > 1 && (!communicator.isRoot() || !piece)) {
        buffer.resize(communicator.isRoot() ? bytes : 0);
        communicator.collect(rank, piece, bytes, buffer.data());
        piece = buffer.data();
      }
      if (reference && result.equal)
        compareState(rank, held, all, piece, result);
    }
  }
}
