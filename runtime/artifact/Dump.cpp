//===- Dump.cpp - An artifact as text ---------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes the header, the mesh, the units with their parameters, the layouts, the kernels and the
// programs of an artifact. A program is written with one line for each command:
//
//     program 'step' on layout 0
//         3  all_gather    f32 x 640 over shard  [0, +2560) -> [4096, +5120)  id 0 channel 1  ; h.0
//         4  launch        k_3f2a [4096, +2048) [8192, +512)
//
//===----------------------------------------------------------------------===//

#include "artifact/Dump.h"
#include "artifact/Arenas.h"
#include "core/DType.h"
#include "core/Error.h"

using namespace fsdprt;
using ull = unsigned long long;

namespace {
class Dumper {
public:
  Dumper(const Artifact &artifact, const std::function<bool(const std::string &)> &write)
      : artifact(artifact), manifest(artifact.manifest()), write(write) {}

  bool run() {
    header();
    units();
    for (uint32_t i = 0; i < count(manifest.layouts()); ++i)
      layout(*manifest.layouts()->Get(i), i);
    for (uint32_t i = 0; i < count(manifest.kernels()); ++i)
      kernel(*manifest.kernels()->Get(i), i);
    for (const fb::Program *program : *manifest.programs()) {
      put(format("\nprogram '%s' on layout %u\n", text(program->name()).c_str(),
                 program->layout()));
      number = 0;
      commands(program->commands(), "  ");
    }
    return good;
  }

private:
  template <typename T>
  static uint32_t count(const flatbuffers::Vector<T> *vector) {
    return vector ? vector->size() : 0;
  }
  static std::string text(const flatbuffers::String *string) {
    return string ? printable(string->str()) : "";
  }
  /// Returns the name of axis `number` of the mesh. If `number` denotes groups of neighbours, for
  /// example of 2 neighbours on the axis `shard`, returns a text such as "shard:2".
  std::string axis(uint32_t number) const {
    uint32_t axes = count(manifest.mesh());
    if (number < axes)
      return text(manifest.mesh()->Get(number)->name());
    const fb::Neighbours &some = *manifest.neighbours()->Get(number - axes);
    if (manifest.context() > 1 && some.size() == manifest.context())
      return "context";
    return text(manifest.mesh()->Get(some.axis())->name()) + format(":%llu", (ull)some.size());
  }
  std::string split(uint64_t number) const {
    uint64_t first = uint64_t(fb::Split::replicate) + 1;
    return number < first ? fb::EnumNameSplit(static_cast<fb::Split>(number))
                          : axis(static_cast<uint32_t>(count(manifest.mesh()) + number - first));
  }
  std::string slice(const fb::Slice *range) const {
    std::string result = format("[%llu, +%llu)", (ull)range->offset(), (ull)range->bytes());
    if (range->stride())
      result += format(" by %llu", (ull)range->stride());
    if (range->piece())
      result += format(" piece %llu of %s", (ull)range->piece(), split(range->split()).c_str());
    return result;
  }
  static std::string shape(const flatbuffers::Vector<uint64_t> *dims) {
    std::string result;
    for (uint32_t i = 0; i < count(dims); ++i)
      result += std::to_string(dims->Get(i)) + "x";
    return result;
  }
  /// Returns a text that describes the initial values of a parameter.
  static std::string start(const fb::Param &param) {
    if (const fb::Value *value = param.value())
      return format("values [%llu, +%llu) %s", (ull)value->offset(), (ull)value->bytes(),
                    nameOf(value->dtype()));
    return format("%s(%g, %g)", fb::EnumNameInitKind(param.init()), param.a(), param.b());
  }
  void put(const std::string &piece) { good = good && write(piece); }

  void header();
  void units();
  void layout(const fb::Layout &layout, uint32_t index);
  void kernel(const fb::Kernel &kernel, uint32_t index);
  void commands(const flatbuffers::Vector<flatbuffers::Offset<fb::Command>> *list,
                const std::string &indent);
  std::string command(const fb::Command &command) const;
  std::string collective(const fb::Collective &collective) const;

  const Artifact &artifact;
  const fb::Manifest &manifest;
  const std::function<bool(const std::string &)> &write;
  uint32_t number = 0;
  bool good = true;
};
} // namespace

void Dumper::header() {
  const fsdprt_artifact_header &head = artifact.getHeader();
  std::string hash;
  for (uint8_t byte : head.sha256)
    hash += format("%02x", byte);
  put(format("artifact '%s', format %u, %llu bytes (manifest %llu, image %llu, values "
             "%llu)\nsha256 %s\ncompiler '%s', source '%s', "
             "target '%s'\n",
             artifact.getFile().c_str(), head.version, (ull)head.file_size, (ull)head.manifest_size,
             (ull)head.image_size, (ull)head.values_size, hash.c_str(),
             text(manifest.compiler()).c_str(), text(manifest.source()).c_str(),
             text(manifest.target()).c_str()));
  std::string isa;
  for (uint32_t i = 0; i < count(manifest.isa()); ++i)
    isa += " " + text(manifest.isa()->Get(i));
  if (const fb::Gpu *gpu = artifact.gpu())
    isa = format(" a GPU, %s (%llu bytes of PTX, %llu of machine code)", text(gpu->chip()).c_str(),
                 (ull)gpu->ptx_bytes(), (ull)gpu->cubin_bytes());
  put(format("mesh %s, %u thread(s) per rank, %llu tokens per rank and step\nneeds%s\n",
             artifact.getMesh().text().c_str(), manifest.threads_per_rank(),
             (ull)manifest.tokens_per_rank(),
             isa.empty() ? " no special processor features" : isa.c_str()));
  if (const fb::Optimizer *optimizer = manifest.optimizer())
    put(format("optimizer %s: lr %g, betas %g %g, eps %g, weight decay %g, momentum %g, clip %g\n",
               text(optimizer->kind()).c_str(), optimizer->lr(), optimizer->beta1(),
               optimizer->beta2(), optimizer->eps(), optimizer->weight_decay(),
               optimizer->momentum(), optimizer->clip_grad_norm()));
  for (uint32_t i = 0; i < count(manifest.options()); ++i)
    put((i ? " --" : "compiled with --") + text(manifest.options()->Get(i)) +
        (i + 1 == count(manifest.options()) ? "\n" : ""));
  for (uint32_t i = 0; i < count(manifest.lookups()); ++i) {
    const fb::Lookup &lookup = *manifest.lookups()->Get(i);
    put(format("checked lookup %u at %s: index in [0, %llu), the %s\n", i,
               text(lookup.location()).c_str(), (ull)lookup.extent(), text(lookup.what()).c_str()));
  }
}

void Dumper::units() {
  for (uint32_t u = 0; u < count(manifest.units()); ++u) {
    const fb::Unit &unit = *manifest.units()->Get(u);
    put(format("\nunit %u '%s': %llu shard(s) of %llu x %s\n", u, text(unit.name()).c_str(),
               (ull)unit.shards(), (ull)unit.shard_size(), nameOf(unit.dtype())));
    for (uint32_t p = 0; p < count(manifest.params()); ++p) {
      const fb::Param &param = *manifest.params()->Get(p);
      if (param.unit() != u)
        continue;
      std::string split;
      if (param.split())
        split = format(" (dimension %u split over tensor in %u block(s))", param.split()->dim(),
                       count(param.split()->blocks()));
      put(format("  %8llu  '%s' %s%s%s%s%s  %s\n", (ull)param.offset(), text(param.name()).c_str(),
                 shape(param.shape()).c_str(), nameOf(param.dtype()), split.c_str(),
                 param.trainable() ? "" : " frozen", param.decay() ? " decay" : "",
                 start(param).c_str()));
    }
  }
}

void Dumper::layout(const fb::Layout &layout, uint32_t index) {
  put(format("\nlayout %u: arena of %llu bytes, block %s, workspace %s for %u worker(s): %llu "
             "shared, %llu each\n",
             index, (ull)layout.arena_bytes(), slice(layout.block()).c_str(),
             layout.workspace() ? slice(layout.workspace()).c_str() : "none", layout.workers(),
             (ull)layout.shared_bytes(), (ull)layout.worker_bytes()));
  if (layout.host_bytes())
    put(format("  host arena: %llu bytes at offset %llu\n", (ull)layout.host_bytes(),
               (ull)hostBegin(layout)));
  if (layout.file_bytes())
    put(format("  file of each rank: %llu bytes at offset %llu\n", (ull)layout.file_bytes(),
               (ull)fileBegin(layout)));
  for (uint32_t i = 0; i < count(layout.states()); ++i) {
    const fb::State &state = *layout.states()->Get(i);
    put(format("  state %u: %s of '%s', %llu x %s at %llu%s\n", i,
               fb::EnumNameStateRole(state.role()),
               text(manifest.units()->Get(state.unit())->name()).c_str(), (ull)state.elements(),
               nameOf(state.dtype()), (ull)state.offset(),
               (std::string(", ") + fb::EnumNameSplit(state.split())).c_str()));
  }
  for (uint32_t i = 0; i < count(layout.inputs()); ++i) {
    const fb::Input &input = *layout.inputs()->Get(i);
    put(format("  input %u: %s '%s', %s%s at %llu", i, fb::EnumNameInputRole(input.role()),
               text(input.name()).c_str(), shape(input.shape()).c_str(), nameOf(input.dtype()),
               (ull)input.offset()));
    put(input.limit() ? format(", ids below %llu", (ull)input.limit()) : "");
    for (uint32_t k = 0; k < count(input.extra_ids()); ++k)
      put(format(" or %lld", (long long)input.extra_ids()->Get(k)));
    put("\n");
  }
  for (uint32_t i = 0; i < count(layout.buffers()); ++i) {
    const fb::Buffer &buffer = *layout.buffers()->Get(i);
    std::string when = ", always";
    if (buffer.program() < count(manifest.programs()))
      when = format(", commands %u to %u of '%s'", buffer.first(), buffer.last(),
                    text(manifest.programs()->Get(buffer.program())->name()).c_str());
    put(format("  buffer [%llu, +%llu) %s '%s'%s\n", (ull)buffer.offset(), (ull)buffer.bytes(),
               fb::EnumNameCategory(buffer.category()), text(buffer.name()).c_str(), when.c_str()));
  }
}

/// Returns a text that describes the epilogue of a matrix product by cuBLASLt.
static std::string afterSums(const fb::Product &product) {
  std::string text = product.addend() ? ", added" : "";
  text += product.bias() ? ", bias" : "";
  if (product.activation() != fb::Activation::none)
    text += std::string(", ") + fb::EnumNameActivation(product.activation()) +
            (product.aux() ? " with its argument" : "");
  return text;
}

void Dumper::kernel(const fb::Kernel &kernel, uint32_t index) {
  std::string kind = kernel.kind() ? " (" + text(kernel.kind()) + ")" : "";
  put(format("%skernel %u '%s'%s: scratch %llu shared, %llu per worker; bindings of",
             index ? "" : "\n", index, text(kernel.name()).c_str(), kind.c_str(),
             (ull)kernel.shared_bytes(), (ull)kernel.worker_bytes()));
  for (uint32_t i = 0; i < count(kernel.binding_bytes()); ++i)
    put(format(" %s%llu", count(kernel.writes()) && kernel.writes()->Get(i) ? "w" : "",
               (ull)kernel.binding_bytes()->Get(i)));
  put(" bytes;");
  for (uint32_t i = 0; i < count(kernel.phases()); ++i) {
    const fb::Phase &phase = *kernel.phases()->Get(i);
    put(" " + text(phase.symbol()));
    if (const fb::Grid *grid = phase.grid())
      put(format(" in %u blocks of %u threads with %llu bytes, %u together", grid->blocks(),
                 grid->threads(), (ull)grid->shared_bytes(), grid->cluster()));
    else if (const fb::Product *product = phase.product())
      put(format(" by cuBLASLt, %llu x %llu x %llu, %llu time%s%s", (ull)product->m(),
                 (ull)product->n(), (ull)product->k(), (ull)product->batches(),
                 product->batches() == 1 ? "" : "s", afterSums(*product).c_str()));
    else
      put(format(" over %llu by %llu", (ull)phase.extent(), (ull)phase.tile()));
  }
  for (auto [products, of] :
       {std::pair(kernel.multiply_adds(), ""), std::pair(kernel.bf16_multiply_adds(), " of bf16")})
    if (products)
      put(format("; %llu multiply-adds%s", (ull)products, of));
  put("\n");
}

std::string Dumper::collective(const fb::Collective &collective) const {
  std::string axes;
  for (uint32_t i = 0; i < count(collective.axes()); ++i) {
    axes += (i ? "," : "") + axis(collective.axes()->Get(i));
  }
  bool reduces = collective.kind() == fb::CollectiveKind::reduce_scatter ||
                 collective.kind() == fb::CollectiveKind::all_reduce;
  return format(
      "%-14s %s%s x %llu over %s  %s -> %s  id %u%s", fb::EnumNameCollectiveKind(collective.kind()),
      reduces ? (std::string(fb::EnumNameReduction(collective.reduction())) + " ").c_str() : "",
      nameOf(collective.dtype()), (ull)collective.count(), axes.c_str(),
      slice(collective.source()).c_str(), slice(collective.target()).c_str(), collective.id(),
      collective.channel() ? format(" on channel %u", collective.channel()).c_str() : "");
}

std::string Dumper::command(const fb::Command &command) const {
  if (const fb::Launch *launch = command.body_as_Launch()) {
    std::string result = format("%-14s %s", "launch",
                                text(manifest.kernels()->Get(launch->kernel())->name()).c_str());
    for (uint32_t i = 0; launch->bindings() && i < launch->bindings()->size(); ++i)
      result += " " + slice(launch->bindings()->Get(i));
    return result;
  }
  if (const fb::Collective *body = command.body_as_Collective())
    return collective(*body);
  if (const fb::Wait *wait = command.body_as_Wait())
    return format("%-14s id %u", "wait", wait->id());
  if (const fb::Copy *copy = command.body_as_Copy())
    return format(
        "%-14s %s -> %s%s", "copy", slice(copy->source()).c_str(), slice(copy->target()).c_str(),
        copy->channel() ? format("  id %u on channel %u", copy->id(), copy->channel()).c_str()
                        : "");
  if (const fb::Fill *fill = command.body_as_Fill())
    return format("%-14s %s", "fill", slice(fill->target()).c_str());
  if (const fb::Initialise *initialise = command.body_as_Initialise())
    return format("%-14s '%s' in state %u", "initialise",
                  text(manifest.params()->Get(initialise->param())->name()).c_str(),
                  initialise->state());
  return format("%-14s %u times", "loop", command.body_as_Loop()->count());
}

void Dumper::commands(const flatbuffers::Vector<flatbuffers::Offset<fb::Command>> *list,
                      const std::string &indent) {
  for (uint32_t i = 0; i < count(list); ++i) {
    const fb::Command &entry = *list->Get(i);
    std::string label = entry.label() && entry.label()->size() ? "  ; " + text(entry.label()) : "";
    put(format("%s%5u  %s%s\n", indent.c_str(), number++, command(entry).c_str(), label.c_str()));
    if (const fb::Loop *loop = entry.body_as_Loop())
      commands(loop->body(), indent + "  ");
  }
}

bool fsdprt::dumpArtifact(const Artifact &artifact,
                          const std::function<bool(const std::string &)> &write) {
  return Dumper(artifact, write).run();
}
