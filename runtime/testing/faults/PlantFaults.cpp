//===- PlantFaults.cpp - Plants faults in artifacts -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads an artifact that the compiler has written, plants one fault in the program `step`, and
// writes the artifact to a file for fsdp-run. With the argument `every`, plants each kind of fault
// at each place that allows it, one at a time, and counts how many of these faults the null device
// finds.
//
//===----------------------------------------------------------------------===//

#include "core/Error.h"
#include "fsdprt/artifact_header.h"
#include "null/NullDevice.h"
#include "testing/toy/ToyModel.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
using Block = std::vector<std::unique_ptr<fb::CommandT>>;

/// A command of `step`, with its position in a block and its number in the program.
struct Place {
  Block *block;
  size_t index;
  uint32_t number;

  fb::CommandT &command() const { return *(*block)[index]; }
};

struct Subject {
  fb::ManifestT manifest;
  std::vector<Place> places; // commands of `step`, indexed by number

  explicit Subject(const Artifact &artifact) {
    artifact.manifest().UnPackTo(&manifest);
    if (fb::ProgramT *program = step())
      collect(program->commands);
  }
  fb::ProgramT *step() {
    for (auto &program : manifest.programs)
      if (program->name == "step")
        return program.get();
    return nullptr;
  }
  fb::LayoutT &layout() { return *manifest.layouts[step()->layout]; }
  uint32_t stepNumber() {
    for (uint32_t i = 0;; ++i)
      if (manifest.programs[i].get() == step())
        return i;
  }

private:
  void collect(Block &block) {
    for (size_t i = 0; i < block.size(); ++i) {
      places.push_back({&block, i, static_cast<uint32_t>(places.size())});
      if (fb::LoopT *loop = block[i]->body.AsLoop())
        collect(loop->body);
    }
  }
};

/// Returns the slices that a command accesses. Each slice has a flag, which is true if the command
/// writes the slice.
std::vector<std::pair<fb::Slice *, bool>> slicesOf(const fb::ManifestT &manifest,
                                                   fb::CommandT &command) {
  std::vector<std::pair<fb::Slice *, bool>> slices;
  if (fb::LaunchT *launch = command.body.AsLaunch())
    for (size_t i = 0; i < launch->bindings.size(); ++i)
      slices.push_back({&launch->bindings[i], manifest.kernels[launch->kernel]->writes[i] != 0});
  else if (fb::CollectiveT *collective = command.body.AsCollective())
    slices = {{collective->source.get(), false}, {collective->target.get(), true}};
  else if (fb::CopyT *copy = command.body.AsCopy())
    slices = {{copy->source.get(), false}, {copy->target.get(), true}};
  else if (fb::FillT *fill = command.body.AsFill())
    slices = {{fill->target.get(), true}};
  return slices;
}

bool meet(const fb::Slice &a, const fb::Slice &b) {
  return a.offset() < b.offset() + b.bytes() && b.offset() < a.offset() + a.bytes();
}

std::optional<uint32_t> startedBy(const fb::CommandT &command) {
  const fb::CollectiveT *collective = command.body.AsCollective();
  const fb::CopyT *copy = command.body.AsCopy();
  if (collective && collective->channel)
    return collective->id;
  return copy && copy->channel ? std::optional(copy->id) : std::nullopt;
}

void remove(const Place &place) {
  place.block->erase(place.block->begin() + static_cast<ptrdiff_t>(place.index));
}

/// Replaces a command by an empty fill, so that other commands keep their numbers.
void blank(const Place &place) {
  fb::FillT nothing;
  nothing.target = std::make_unique<fb::Slice>(0, 0, 0, 0, 0);
  place.command().body.Set(std::move(nothing));
}

/// Plants a fault at a place. Returns false if the place does not allow the fault.
using Plant = std::function<bool(Subject &, const Place &)>;

bool dropWait(Subject &, const Place &place) {
  if (!place.command().body.AsWait())
    return false;
  remove(place);
  return true;
}

bool dropStart(Subject &, const Place &place) {
  if (!startedBy(place.command()))
    return false;
  blank(place);
  return true;
}

/// Moves the first tensor map of a launch to the end of its binding.
bool moveMap(Subject &subject, const Place &place) {
  fb::LaunchT *launch = place.command().body.AsLaunch();
  if (!launch)
    return false;
  fb::KernelT &kernel = *subject.manifest.kernels[launch->kernel];
  for (auto &phase : kernel.phases)
    if (phase->grid && !phase->grid->maps.empty()) {
      fb::TensorMapT &map = *phase->grid->maps.front();
      map.offset += (map.binding < kernel.binding_bytes.size() ? kernel.binding_bytes[map.binding]
                                                               : kernel.shared_bytes) /
                    64 * 64;
      return true;
    }
  return false;
}

/// Makes a transfer synchronous. The command that waits for the transfer then waits for a transfer
/// that was not started.
bool dropToken(Subject &, const Place &place) {
  if (!startedBy(place.command()))
    return false;
  if (fb::CollectiveT *collective = place.command().body.AsCollective())
    collective->channel = 0;
  else
    place.command().body.AsCopy()->channel = 0;
  return true;
}

/// Moves the wait for a transfer behind the first command that accesses the target of the transfer
/// or writes the source of the transfer.
bool delayWait(Subject &subject, const Place &place) {
  std::optional<uint32_t> id = startedBy(place.command());
  if (!id)
    return false;
  auto moved = slicesOf(subject.manifest, place.command());
  Block &block = *place.block;
  size_t wait = place.index;
  while (wait < block.size() &&
         !(block[wait]->body.AsWait() && block[wait]->body.AsWait()->id == *id))
    ++wait;
  for (size_t i = wait + 1; i < block.size(); ++i)
    for (auto [slice, writes] : slicesOf(subject.manifest, *block[i]))
      if (meet(*slice, *moved[1].first) || (writes && meet(*slice, *moved[0].first))) {
        std::rotate(block.begin() + static_cast<ptrdiff_t>(wait),
                    block.begin() + static_cast<ptrdiff_t>(wait) + 1,
                    block.begin() + static_cast<ptrdiff_t>(i) + 1);
        return true;
      }
  return false;
}

fb::BufferT *bufferOf(Subject &subject, const fb::Slice &slice, uint32_t number) {
  for (auto &buffer : subject.layout().buffers) {
    bool lives =
        buffer->program == UINT32_MAX || (buffer->program == subject.stepNumber() &&
                                          buffer->first <= number && number <= buffer->last);
    if (lives && buffer->offset <= slice.offset() &&
        slice.offset() < buffer->offset + buffer->bytes)
      return buffer.get();
  }
  return nullptr;
}

/// Moves a range so that the range ends 64 bytes after the end of its buffer. The range must still
/// begin in this buffer, since a range that is entirely within another live buffer would not be a
/// fault.
bool moveRange(Subject &subject, const Place &place, size_t which) {
  auto slices = slicesOf(subject.manifest, place.command());
  if (which >= slices.size() || slices[which].first->bytes() == 0)
    return false;
  fb::Slice &slice = *slices[which].first;
  fb::BufferT *buffer = bufferOf(subject, slice, place.number);
  if (!buffer)
    return false;
  uint64_t end = slice.offset() + slice.bytes(),
           over = buffer->offset + (buffer->bytes + 63) / 64 * 64 + 64 - end;
  uint64_t offset = slice.offset() + (over + 63) / 64 * 64;
  if (offset >= buffer->offset + buffer->bytes)
    return false;
  slice = at(slice, offset);
  return true;
}

bool misalign(Subject &, const Place &place, size_t which) {
  fb::LaunchT *launch = place.command().body.AsLaunch();
  if (!launch || which >= launch->bindings.size())
    return false;
  launch->bindings[which] = at(launch->bindings[which], launch->bindings[which].offset() + 4);
  return true;
}

bool dropProducer(Subject &subject, const Place &place) {
  for (auto [slice, writes] : slicesOf(subject.manifest, place.command())) {
    fb::BufferT *buffer = writes ? bufferOf(subject, *slice, place.number) : nullptr;
    bool isMade = buffer && buffer->program != UINT32_MAX && buffer->first == place.number &&
                  buffer->last > place.number;
    if (!isMade || startedBy(place.command()))
      continue;
    blank(place);
    return true;
  }
  return false;
}

/// Moves the buffer whose lifetime begins at the command to the address of another live buffer.
bool moveBuffer(Subject &subject, const Place &place) {
  for (auto &buffer : subject.layout().buffers) {
    if (buffer->program != subject.stepNumber() || buffer->first != place.number ||
        buffer->bytes == 0)
      continue;
    for (auto &other : subject.layout().buffers) {
      bool meets = other->program == buffer->program && other->first < buffer->first &&
                   buffer->first <= other->last;
      if (!meets || other == buffer)
        continue;
      uint64_t from = buffer->offset, to = other->offset;
      for (const Place &user : subject.places)
        if (buffer->first <= user.number && user.number <= buffer->last)
          for (auto [slice, writes] : slicesOf(subject.manifest, user.command()))
            if (from <= slice->offset() && slice->offset() < from + buffer->bytes)
              *slice = at(*slice, slice->offset() - from + to);
      buffer->offset = to;
      return true;
    }
  }
  return false;
}

/// Exchanges a collective with the next collective of the block. Commands between the two
/// collectives do not move.
bool swapCollectives(Subject &, const Place &place) {
  if (!place.command().body.AsCollective())
    return false;
  Block &block = *place.block;
  for (size_t i = place.index + 1; i < block.size(); ++i)
    if (block[i]->body.AsCollective()) {
      std::swap(block[place.index], block[i]);
      return true;
    }
  return false;
}

/// Exchanges a launch with the next launch if the next launch reads the result of the first launch.
bool swapDependent(Subject &subject, const Place &place) {
  Block &block = *place.block;
  fb::CommandT &first = place.command();
  if (!first.body.AsLaunch() || place.index + 1 >= block.size() ||
      !block[place.index + 1]->body.AsLaunch())
    return false;
  for (auto [made, writes] : slicesOf(subject.manifest, first)) {
    fb::BufferT *buffer = writes ? bufferOf(subject, *made, place.number) : nullptr;
    if (!buffer || buffer->program == UINT32_MAX || buffer->first != place.number)
      continue;
    for (auto [read, alsoWrites] : slicesOf(subject.manifest, *block[place.index + 1]))
      if (!alsoWrites && meet(*made, *read)) {
        std::swap(block[place.index], block[place.index + 1]);
        return true;
      }
  }
  return false;
}

std::shared_ptr<const Artifact> rebuild(const fb::ManifestT &manifest) {
  std::vector<std::byte> file = pack(manifest, {});
  return Artifact::fromMemory(file.data(), file.size(), "planted", Rules::form);
}

/// Returns the first finding of the null device, or an empty string.
std::string firstFinding(const Subject &subject, const Artifact *sound = nullptr) {
  NullOptions options;
  options.steps = 2;
  std::shared_ptr<const Artifact> planted = rebuild(subject.manifest);
  // The last rank runs the artifact with the fault, and all other ranks run `sound`.
  if (sound)
    options.peers[sound->getMesh().ranks() - 1] = planted;
  NullResult result = walkPrograms(sound ? *sound : *planted, options);
  return result.findings.empty() ? "" : result.findings[0].text;
}

/// Plants a kind of fault at each place, one at a time. Returns the number of faults that the null
/// device did not find.
size_t plantEach(const Artifact &artifact, const char *name, const Plant &plant,
                 bool onPeer = false) {
  size_t planted = 0, found = 0, places = Subject(artifact).places.size();
  std::string example;
  for (size_t i = 0; i < places; ++i) {
    Subject subject(artifact);
    if (!plant(subject, subject.places[i]))
      continue;
    std::string finding = firstFinding(subject, onPeer ? &artifact : nullptr);
    ++planted;
    found += !finding.empty();
    if (finding.empty())
      std::printf("%s: at command %zu: not found\n", name, i);
    else if (example.empty())
      example = finding;
  }
  std::printf("%s: %zu planted, %zu found%s%s\n", name, planted, found,
              example.empty() ? "" : ", such as ", example.c_str());
  return planted - found;
}

size_t shrink(const Artifact &artifact, const char *name, uint64_t fb::LayoutT::*arena) {
  Subject subject(artifact);
  uint64_t &bytes = subject.layout().*arena;
  if (bytes < 4096)
    return 0;
  bytes -= arena == &fb::LayoutT::arena_bytes ? 64 : 4096;
  if (arena == &fb::LayoutT::arena_bytes && subject.layout().workspace)
    bytes = std::min(bytes, subject.layout().workspace->offset() - 64);
  std::string finding = firstFinding(subject);
  std::printf("%s: 1 planted, %d found%s%s\n", name, !finding.empty(),
              finding.empty() ? "" : ", such as ", finding.c_str());
  return finding.empty();
}

size_t plantEvery(const Artifact &artifact) {
  size_t missed = 0;
  missed += plantEach(artifact, "drop a wait", dropWait);
  missed += plantEach(artifact, "drop a start", dropStart);
  missed += plantEach(artifact, "drop a token", dropToken);
  missed += plantEach(artifact, "wait too late", delayWait);
  missed += plantEach(artifact, "swap two launches", swapDependent);
  missed += plantEach(artifact, "drop a producer", dropProducer);
  missed += plantEach(artifact, "move a buffer", moveBuffer);
  for (size_t which = 0; which < 3; ++which) {
    auto move = [&](Subject &subject, const Place &place) {
      return moveRange(subject, place, which);
    };
    auto tilt = [&](Subject &subject, const Place &place) {
      return misalign(subject, place, which);
    };
    missed += plantEach(artifact, format("move range %zu", which).c_str(), move);
    missed += plantEach(artifact, format("misalign binding %zu", which).c_str(), tilt);
  }
  if (artifact.manifest().gpu())
    missed += plantEach(artifact, "move a tensor map", moveMap);
  if (artifact.getMesh().ranks() > 1)
    missed += plantEach(artifact, "change a peer's order", swapCollectives, true);
  missed += shrink(artifact, "shrink the device's arena", &fb::LayoutT::arena_bytes);
  missed += shrink(artifact, "shrink the host's arena", &fb::LayoutT::host_bytes);
  missed += shrink(artifact, "shrink the file", &fb::LayoutT::file_bytes);
  return missed;
}

/// Lets all ranks receive the tensor of the first rank instead of that of the rank before.
bool changeSender(const Place &place) {
  fb::CollectiveT *collective = place.command().body.AsCollective();
  if (!collective || collective->kind != fb::CollectiveKind::shift)
    return false;
  collective->kind = fb::CollectiveKind::broadcast;
  return true;
}

bool plantOne(Subject &subject, const std::string &fault, size_t number) {
  if (number >= subject.places.size())
    return false;
  const Place &place = subject.places[number];
  if (fault == "wait-late")
    return delayWait(subject, place);
  if (fault == "drop-token")
    return dropToken(subject, place);
  if (fault == "drop-producer")
    return dropProducer(subject, place);
  if (fault == "move-range")
    return moveRange(subject, place, 0);
  if (fault == "move-map")
    return moveMap(subject, place);
  if (fault == "swap-collectives")
    return swapCollectives(subject, place);
  if (fault == "wrong-sender")
    return changeSender(place);
  return false;
}
} // namespace

/// Returns the code of the kernels of an artifact.
static std::vector<std::byte> readImage(const char *path) {
  std::ifstream file(path, std::ios::binary);
  fsdprt_artifact_header header = {};
  file.read(reinterpret_cast<char *>(&header), sizeof header);
  std::vector<std::byte> image(header.image_size);
  file.seekg(static_cast<std::streamoff>(header.image_offset));
  file.read(reinterpret_cast<char *>(image.data()), static_cast<std::streamsize>(image.size()));
  return image;
}

int main(int argc, char **argv) {
  try {
    if (argc == 3 && std::string(argv[2]) == "every")
      return plantEvery(*Artifact::open(argv[1], Rules::form)) ? 1 : 0;
    if (argc == 5 || argc == 6) {
      Subject subject(*Artifact::open(argv[1], Rules::form));
      size_t first = std::strtoull(argv[4], nullptr, 10),
             last = argc == 6 ? first + 1 : subject.places.size();
      // Plant the fault at the first place from `first` on that allows the fault.
      for (size_t at = first; at < last; ++at)
        if (plantOne(subject, argv[3], at)) {
          std::vector<std::byte> file = pack(subject.manifest, readImage(argv[1]));
          writeFile(argv[2], file.data(), file.size());
          std::printf("planted at command %zu\n", at);
          return 0;
        }
      std::fputs("no place allows this fault\n", stderr);
      return 1;
    }
  } catch (const Error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  std::fputs(
      "usage: fsdprt-plant IN.fsdp every\n"
      "         plants every known fault, and counts those that the null device finds\n"
      "       fsdprt-plant IN.fsdp OUT.fsdp "
      "wait-late|drop-token|drop-producer|move-range|move-map|swap-collectives|wrong-sender "
      "NUMBER [only]\n"
      "         plants one fault at the first command from NUMBER on that allows it; with 'only', "
      "at NUMBER\n",
      argc == 2 ? stdout : stderr);
  return argc == 2 ? 0 : 2;
}
