//===- VerifyPrograms.cpp - The commands of each program --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// (V11) Each program has a layout, and a name that no other program has. The programs init, step
//       and eval have the same layout. The programs reference and reference_init have the same
//       layout, in which states are not sharded.
// (V12) A slice lies in one arena or in the file, on every rank and in every iteration of its loop.
//       Only slices in loops have a stride other than 0.
// (V13) A launch has one slice for each binding. Each slice is large enough and is aligned to 64
//       bytes. The layout has the scratch memory that the kernel needs. All slices of a launch are
//       in the same arena. On a GPU, this arena is the arena of the device.
// (V14) The groups of a collective are along distinct axes of the mesh, or consist of neighbours on
//       an axis. The sizes of the source and the target follow from the collective's type, count
//       and group size. The source and the target are in the arena of the device. They do not
//       overlap, except in a gather in place.
// (V15) If a list of commands starts a transfer (a collective or copy), it contains exactly one
//       wait for this transfer. Commands between the start and the wait do not write the source and
//       do not access the target.
// (V16) The source and the target of a copy have equal sizes, and are equal or disjoint. At most
//       one of them is in the file.
// (V17) The command `initialise` writes the state of a parameter's unit. The role of this state is
//       `parameter` or `master`.
// (V18) A loop has 1 to 2^20 iterations and does not contain a loop.
//
// The checks take time proportional to the number of commands times the number of transfers in
// flight. WorkLimit limits this product.
//
//===----------------------------------------------------------------------===//

#include "artifact/Artifact.h"
#include "artifact/Snapshot.h"
#include "artifact/Verifier.h"
#include "core/DType.h"
#include "core/Error.h"
#include <algorithm>
#include <set>

using namespace fsdprt;

namespace {
using ull = unsigned long long;
using Commands = flatbuffers::Vector<flatbuffers::Offset<fb::Command>>;

constexpr uint32_t maxIterations = 1u << 20;

template <typename T>
uint32_t count(const flatbuffers::Vector<T> *vector) {
  return vector ? vector->size() : 0;
}

class ProgramVerifier {
public:
  ProgramVerifier(const std::string &file, const fb::Manifest &manifest, const fb::Program &program,
                  const Mesh &mesh, Rules rules, WorkLimit &work, const SnapshotRange &snapshot)
      : rules(rules), file(file), manifest(manifest), program(program), work(work),
        copies(program.layout() == snapshot.layout && program.name()->str() != snapshotProgram
                   ? snapshot
                   : SnapshotRange()),
        layout(*manifest.layouts()->Get(program.layout())),
        mesh(isReferenceProgram(program.name()->str()) ? mesh.solo() : mesh) {}

  void verify() { verifyBlock(program.commands()); }

private:
  /// A transfer in flight: a collective or a copy after its start and before its wait.
  struct Pending {
    const char *what;
    uint32_t id;
    fb::Slice source, target;
  };
  enum Access { reads, writes };

  [[noreturn]] void refuse(const std::string &why) {
    badInput("%s: program '%s', command %u%s: %s", file.c_str(),
             printable(program.name()->str()).c_str(), number,
             label.empty() ? "" : (" ('" + printable(label) + "')").c_str(), why.c_str());
  }

  void verifyBlock(const Commands *commands);
  void verifyCommand(const fb::Command &command);
  const fb::Slice &verifySlice(const fb::Slice *slice, const char *what, uint64_t alignment,
                               Access access);
  void verifyLaunch(const fb::Launch &launch);
  void verifyCollective(const fb::Collective &collective);
  void begin(const char *what, uint32_t id, const fb::Slice &source, const fb::Slice &target);
  void verifyWait(const fb::Wait &wait);
  void verifyCopy(const fb::Copy &copy);
  void verifyInitialise(const fb::Initialise &initialise);
  void verifyLoop(const fb::Loop &loop);
  bool overlap(const fb::Slice &a, const fb::Slice &b) const;
  bool isOwnPiece(const fb::Slice &piece, const fb::Slice &whole,
                  const std::vector<uint32_t> &axes) const;
  uint64_t spanOf(const fb::Slice &slice) const;

  const Rules rules;
  const std::string &file;
  const fb::Manifest &manifest;
  const fb::Program &program;
  WorkLimit &work;
  const SnapshotRange copies; ///< range that the program 'snapshot' writes
  const fb::Layout &layout;
  Mesh mesh;
  uint32_t number = 0; ///< index of the current command; each command in a loop counts once
  std::string label;
  uint32_t iterations = 1;
  bool inLoop = false;
  std::vector<Pending> pending;
};
} // namespace

void ProgramVerifier::verifyBlock(const Commands *commands) {
  size_t outer = pending.size();
  for (uint32_t i = 0; i < count(commands); ++i, ++number)
    verifyCommand(*commands->Get(i));
  if (pending.size() != outer) // (V15)
    refuse(
        format("the block ends without a wait for %s %u", pending.back().what, pending.back().id));
}

void ProgramVerifier::verifyCommand(const fb::Command &command) {
  work.spend(command.label() ? command.label()->size() : 0);
  label = command.label() ? command.label()->str() : std::string();
  if (!command.body())
    refuse("expected a command, found none");
  switch (command.body_type()) {
  case fb::Body::Launch:
    return verifyLaunch(*command.body_as_Launch());
  case fb::Body::Collective:
    return verifyCollective(*command.body_as_Collective());
  case fb::Body::Wait:
    return verifyWait(*command.body_as_Wait());
  case fb::Body::Copy:
    return verifyCopy(*command.body_as_Copy());
  case fb::Body::Fill:
    verifySlice(command.body_as_Fill()->target(), "target", 1, writes);
    return;
  case fb::Body::Initialise:
    return verifyInitialise(*command.body_as_Initialise());
  case fb::Body::Loop:
    return verifyLoop(*command.body_as_Loop());
  default:
    refuse(format("expected a command, found number %d", static_cast<int>(command.body_type())));
  }
}

/// Returns true if `piece` is, on every rank, the part of `whole` that this rank contributes to a
/// gather in place over `axes`.
bool ProgramVerifier::isOwnPiece(const fb::Slice &piece, const fb::Slice &whole,
                                 const std::vector<uint32_t> &axes) const {
  if (axes.size() != 1 || piece.offset() != whole.offset() || piece.stride() != whole.stride() ||
      whole.piece() != 0)
    return false;
  uint64_t number = mesh.getAxes().size(), split = uint64_t(fb::Split::replicate);
  if (axes[0] >= number)
    split += axes[0] - number + 1;
  else if (mesh.getAxes()[axes[0]].name == "shard")
    split = uint64_t(fb::Split::shard);
  return piece.split() == split && piece.piece() == piece.bytes() &&
         mesh.pieces(split) * piece.bytes() == whole.bytes();
}

/// Returns the number of bytes from the beginning of a slice's first piece to the end of its last
/// piece. Each rank has one of these pieces.
uint64_t ProgramVerifier::spanOf(const fb::Slice &slice) const {
  return slice.piece() * (mesh.pieces(slice.split()) - 1) + slice.bytes();
}

bool fsdprt::overlapInLoop(int64_t distance, int64_t step, uint64_t times, uint64_t bytesA,
                           uint64_t bytesB) {
  // The ranges overlap in an iteration if -bytesA < distance < bytesB. First make `step`
  // non-negative. Then find the first iteration in which the distance exceeds -bytesA.
  int64_t last = static_cast<int64_t>(times - 1);
  if (step < 0) {
    distance += last * step;
    step = -step;
  }
  int64_t below = -static_cast<int64_t>(bytesA) - distance, first = 0;
  if (below >= 0)
    first = step == 0 ? last + 1 : below / step + 1;
  return first <= last && distance + first * step < static_cast<int64_t>(bytesB);
}

/// Returns true if two slices may overlap in an iteration of the current loop.
bool ProgramVerifier::overlap(const fb::Slice &a, const fb::Slice &b) const {
  if (a.bytes() == 0 || b.bytes() == 0)
    return false;
  uint64_t step = iterations == 1 ? 0 : a.stride() - b.stride();
  return overlapInLoop(a.offset() - b.offset(), step, iterations, spanOf(a), spanOf(b));
}

/// Checks (V12), (V15) and (V24) for a slice and returns the slice. `what` names the slice in
/// messages.
const fb::Slice &ProgramVerifier::verifySlice(const fb::Slice *slice, const char *what,
                                              uint64_t alignment, Access access) {
  if (!slice)
    refuse(format("expected a %s", what));
  uint64_t sweep, end; // (V12)
  uint64_t splits = uint64_t(fb::Split::replicate) + 1 + mesh.getNeighbours().size();
  if (slice->split() >= splits)
    refuse(format("%s: expected a split below %llu, found %llu", what, (ull)splits,
                  (ull)slice->split()));
  uint64_t last = mesh.pieces(slice->split()) - 1, skip;
  bool isForm = rules == Rules::form;
  bool fits =
      isForm || (!__builtin_mul_overflow(slice->stride(), uint64_t(iterations - 1), &sweep) &&
                 !__builtin_add_overflow(sweep, slice->offset(), &end) &&
                 !__builtin_mul_overflow(slice->piece(), last, &skip) &&
                 !__builtin_add_overflow(end, skip, &end) &&
                 liesInArena(layout, slice->offset(), end, slice->bytes()));
  if (!fits)
    refuse(format("%s: expected a range within the arena's %llu bytes, found [%llu, +%llu) with "
                  "stride %llu, %u times",
                  what, (ull)layout.arena_bytes(), (ull)slice->offset(), (ull)slice->bytes(),
                  (ull)slice->stride(), iterations));
  if (!isForm && slice->offset() < copies.end && copies.begin < end + slice->bytes()) // (V24)
    refuse(format("%s: expected no use of the copy of the state for saves at [%llu, %llu), found "
                  "[%llu, +%llu)",
                  what, (ull)copies.begin, (ull)copies.end, (ull)slice->offset(),
                  (ull)slice->bytes()));
  if (!isForm && (slice->offset() % alignment != 0 || slice->stride() % alignment != 0 ||
                  slice->piece() % alignment != 0))
    refuse(format(
        "%s: expected offset, stride and piece in multiples of %llu, found %llu, %llu and %llu",
        what, (ull)alignment, (ull)slice->offset(), (ull)slice->stride(), (ull)slice->piece()));
  if (!inLoop && slice->stride() != 0)
    refuse(
        format("%s: expected stride 0 outside of a loop, found %llu", what, (ull)slice->stride()));
  work.spend(1 + pending.size());
  for (const Pending &start : pending) // (V15)
    if (overlap(*slice, start.target) || (access == writes && overlap(*slice, start.source)))
      refuse(format("%s: %s a range that %s %u, which has not been waited for, %s", what,
                    access == writes ? "writes" : "reads", start.what, start.id,
                    overlap(*slice, start.target) ? "receives" : "sends"));
  return *slice;
}

void ProgramVerifier::verifyLaunch(const fb::Launch &launch) { // (V13)
  if (launch.kernel() >= count(manifest.kernels()))
    refuse(format("expected one of %u kernels, found number %u", count(manifest.kernels()),
                  launch.kernel()));
  const fb::Kernel &kernel = *manifest.kernels()->Get(launch.kernel());
  work.spend(kernel.name()->size());
  std::string name = printable(kernel.name()->str());
  uint32_t bindings = count(kernel.binding_bytes());
  if ((launch.bindings() ? launch.bindings()->size() : 0) != bindings)
    refuse(format("expected the %u bindings of kernel '%s', found %u", bindings, name.c_str(),
                  launch.bindings() ? launch.bindings()->size() : 0));
  if (!isAligned(launch.bindings()))
    refuse("its bindings are not aligned");
  for (uint32_t i = 0; i < bindings; ++i) {
    std::string what = format("binding %u of kernel '%s'", i, name.c_str());
    bool mayWrite = count(kernel.writes()) != 0 && kernel.writes()->Get(i) != 0;
    const fb::Slice &slice =
        verifySlice(launch.bindings()->Get(i), what.c_str(), 64, mayWrite ? writes : reads);
    if (slice.bytes() < kernel.binding_bytes()->Get(i))
      refuse(format("%s: expected at least %llu bytes, found %llu", what.c_str(),
                    (ull)kernel.binding_bytes()->Get(i), (ull)slice.bytes()));
    if (rules == Rules::all && isInFile(layout, slice.offset()))
      refuse(format("%s: expected a range in an arena, found one in the file", what.c_str()));
    if (rules == Rules::all && manifest.gpu() && isOnHost(layout, slice.offset()))
      refuse(format("%s: expected a range in the device's arena, where kernels of a GPU run, found "
                    "one in the host's; compile the model again",
                    what.c_str()));
    if (rules == Rules::all &&
        isOnHost(layout, slice.offset()) != isOnHost(layout, launch.bindings()->Get(0)->offset()))
      refuse(format("%s: expected a range in the arena of binding 0, the %s", what.c_str(),
                    isOnHost(layout, slice.offset()) ? "device's, found the host's"
                                                     : "host's, found the device's"));
  }
  if (kernel.shared_bytes() > layout.shared_bytes() ||
      kernel.worker_bytes() > layout.worker_bytes())
    refuse(format("kernel '%s' needs %llu bytes of shared scratch and %llu per worker, layout %u "
                  "has %llu and %llu",
                  name.c_str(), (ull)kernel.shared_bytes(), (ull)kernel.worker_bytes(),
                  program.layout(), (ull)layout.shared_bytes(), (ull)layout.worker_bytes()));
}

void ProgramVerifier::verifyCollective(const fb::Collective &collective) { // (V14)
  if (collective.kind() > fb::CollectiveKind::shift ||
      collective.reduction() > fb::Reduction::avg || collective.dtype() > DType::i1)
    refuse(format("expected a kind, a reduction and a dtype, found numbers %d, %d and %d",
                  static_cast<int>(collective.kind()), static_cast<int>(collective.reduction()),
                  static_cast<int>(collective.dtype())));
  bool reduces = collective.kind() == fb::CollectiveKind::reduce_scatter ||
                 collective.kind() == fb::CollectiveKind::all_reduce;
  if (reduces && !isFloat(collective.dtype()))
    refuse(format("expected a float dtype to reduce, found %s", nameOf(collective.dtype())));
  std::vector<uint32_t> axes;
  for (uint32_t i = 0; i < count(collective.axes()); ++i) {
    axes.push_back(collective.axes()->Get(i));
    bool isGroup = count(collective.axes()) == 1 &&
                   axes[0] < mesh.getAxes().size() + mesh.getNeighbours().size();
    if (!isGroup && (axes.back() >= mesh.getAxes().size() || (i > 0 && axes[i] <= axes[i - 1])))
      refuse(format("expected distinct axes of the mesh (%s) in order, found number %u",
                    mesh.text().c_str(), axes.back()));
  }
  uint64_t group = mesh.groupSize(axes), small, large;
  if (__builtin_mul_overflow(collective.count(), sizeOf(collective.dtype()), &small) ||
      __builtin_mul_overflow(small, group, &large))
    refuse(format("its count of %llu elements is too large", (ull)collective.count()));
  bool gathers = collective.kind() == fb::CollectiveKind::all_gather;
  uint64_t sent = collective.kind() == fb::CollectiveKind::reduce_scatter ? large : small,
           received = gathers ? large : small;
  uint64_t alignment = sizeOf(collective.dtype());
  const fb::Slice &source = verifySlice(collective.source(), "source", alignment, reads);
  const fb::Slice &target = verifySlice(collective.target(), "target", alignment, writes);
  if (source.bytes() != sent || target.bytes() != received)
    refuse(format("expected a source of %llu bytes and a target of %llu (%s of %llu elements of %s "
                  "over %llu ranks), found %llu and %llu",
                  (ull)sent, (ull)received, fb::EnumNameCollectiveKind(collective.kind()),
                  (ull)collective.count(), nameOf(collective.dtype()), (ull)group,
                  (ull)source.bytes(), (ull)target.bytes()));
  bool isForm = rules == Rules::form;
  if (!isForm && (!isOnDevice(layout, source.offset()) || !isOnDevice(layout, target.offset())))
    refuse("expected a source and a target on the device, found one on the host or in the file");
  bool same = source.offset() == target.offset() && source.stride() == target.stride() &&
              sent == received && collective.kind() != fb::CollectiveKind::shift &&
              source.piece() == target.piece() && source.split() == target.split();
  if (!isForm && !same && !(gathers && isOwnPiece(source, target, axes)) && overlap(source, target))
    refuse("its source and its target overlap");
  if (collective.root() >= group)
    refuse(format("expected a root below the group's %llu ranks, found %u", (ull)group,
                  collective.root()));
  if (collective.unit() < -1 || collective.unit() >= int64_t(count(manifest.units())))
    refuse(format("expected one of %u units or -1, found %d", count(manifest.units()),
                  collective.unit()));
  if (collective.channel() != 0)
    begin("collective", collective.id(), source, target);
}

/// Adds a started transfer to `pending`, for the check of (V15).
void ProgramVerifier::begin(const char *what, uint32_t id, const fb::Slice &source,
                            const fb::Slice &target) {
  if (rules == Rules::form)
    return;
  work.spend(pending.size());
  for (const Pending &start : pending)
    if (start.id == id)
      refuse(format("%s %u is started again before its wait", start.what, id));
  pending.push_back({what, id, source, target});
}

void ProgramVerifier::verifyWait(const fb::Wait &wait) { // (V15)
  if (rules == Rules::form)
    return;
  work.spend(pending.size());
  auto start = std::find_if(pending.begin(), pending.end(),
                            [&](const Pending &start) { return start.id == wait.id(); });
  if (start == pending.end())
    refuse(format("waits for %u, which has not been started", wait.id()));
  pending.erase(start);
}

void ProgramVerifier::verifyCopy(const fb::Copy &copy) { // (V16)
  const fb::Slice &source = verifySlice(copy.source(), "source", 1, reads);
  const fb::Slice &target = verifySlice(copy.target(), "target", 1, writes);
  if (source.bytes() != target.bytes())
    refuse(format("expected a source and a target of one size, found %llu and %llu bytes",
                  (ull)source.bytes(), (ull)target.bytes()));
  bool same = source.offset() == target.offset() && source.stride() == target.stride() &&
              source.piece() == target.piece() && source.split() == target.split();
  if (rules == Rules::all && !same && overlap(source, target))
    refuse("its source and its target overlap");
  if (rules == Rules::all && isInFile(layout, source.offset()) && isInFile(layout, target.offset()))
    refuse("expected a source or a target in an arena, found both in the file");
  if (copy.channel() != 0)
    begin("copy", copy.id(), source, target);
}

void ProgramVerifier::verifyInitialise(const fb::Initialise &initialise) { // (V17)
  if (initialise.state() >= count(layout.states()) ||
      initialise.param() >= count(manifest.params()))
    refuse(format("expected one of %u states and %u parameters, found numbers %u and %u",
                  count(layout.states()), count(manifest.params()), initialise.state(),
                  initialise.param()));
  const fb::State &state = *layout.states()->Get(initialise.state());
  if (state.unit() != manifest.params()->Get(initialise.param())->unit())
    refuse("its state and its parameter belong to different units");
  if (state.role() != fb::StateRole::parameter && state.role() != fb::StateRole::master)
    refuse("expected a state that holds parameters");
  fb::Slice range(state.offset(), state.elements() * sizeOf(state.dtype()), 0, 0, 0);
  verifySlice(&range, "state", 1, writes);
}

void ProgramVerifier::verifyLoop(const fb::Loop &loop) { // (V18)
  if (inLoop)
    refuse("expected no loop inside of a loop");
  if (loop.count() < 1 || loop.count() > maxIterations)
    refuse(format("expected 1 to %u iterations, found %u", maxIterations, loop.count()));
  inLoop = true;
  iterations = loop.count();
  size_t outer = pending.size();
  ++number;
  for (uint32_t i = 0; i < count(loop.body()); ++i, ++number) {
    const fb::Command &command = *loop.body()->Get(i);
    work.spend(outer);
    if (command.body_type() == fb::Body::Wait && command.body())
      for (size_t p = 0; p < outer; ++p)
        if (pending[p].id == command.body_as_Wait()->id())
          refuse(format("waits in a loop for %s %u, which was started outside", pending[p].what,
                        pending[p].id));
    verifyCommand(command);
  }
  if (pending.size() != outer)
    refuse(format("the loop's body ends without a wait for %s %u", pending.back().what,
                  pending.back().id));
  // The `for` statements in this function and in verifyBlock() both increment `number` after the
  // last command of the body, so one increment is undone.
  --number;
  inLoop = false;
  iterations = 1;
}

/// Checks which programs have the same layout (the second and the third sentence of (V11)).
static void verifySharing(const std::string &file, const fb::Manifest &manifest) {
  int64_t layouts[2] = {-1, -1};
  for (uint32_t i = 0; i < manifest.programs()->size(); ++i) {
    const fb::Program &program = *manifest.programs()->Get(i);
    bool reference = isReferenceProgram(program.name()->str());
    std::string name = printable(program.name()->str());
    int64_t &layout = layouts[reference];
    if (layout >= 0 && layout != program.layout())
      badInput("%s: program '%s': expected layout %lld, as the other programs on that arena, "
               "found %u",
               file.c_str(), name.c_str(), (long long)layout, program.layout());
    layout = program.layout();
    const auto *states = manifest.layouts()->Get(program.layout())->states();
    for (uint32_t s = 0; reference && s < count(states); ++s)
      if (states->Get(s)->split() != fb::Split::whole)
        badInput("%s: program '%s': expected whole states, found a piece in state %u", file.c_str(),
                 name.c_str(), s);
  }
}

void fsdprt::verifyPrograms(const std::string &file, const fb::Manifest &manifest, const Mesh &mesh,
                            Rules rules, WorkLimit &work) {
  std::set<std::string> names;
  if (count(manifest.programs()) == 0)
    badInput("%s: expected at least one program, found none", file.c_str());
  for (uint32_t i = 0; i < manifest.programs()->size(); ++i) {
    const fb::Program &program = *manifest.programs()->Get(i);
    work.spend(program.name() ? program.name()->size() : 0);
    if (!program.name() || program.name()->size() == 0 ||
        !names.insert(program.name()->str()).second)
      badInput("%s: program %u: expected a unique name", file.c_str(), i);
    if (program.layout() >= count(manifest.layouts()))
      badInput("%s: program '%s': expected one of %u layouts, found number %u", file.c_str(),
               printable(program.name()->str()).c_str(), count(manifest.layouts()),
               program.layout());
  }
  verifySharing(file, manifest);
  SnapshotRange snapshot = verifySnapshot(file, manifest, rules, work);
  for (const fb::Program *program : *manifest.programs())
    ProgramVerifier(file, manifest, *program, mesh, rules, work, snapshot).verify();
}
