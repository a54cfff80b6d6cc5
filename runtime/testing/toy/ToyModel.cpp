//===- ToyModel.cpp - A small handwritten artifact --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements ToyModel.h. The layouts of the two arenas are:
//
//     ranks      p m | tokens targets | block rank workspace | full gradient shard loss squares
//     reference  p m | tokens targets (micro-batches) | block workspace | gradient sum loss ...
//
//===----------------------------------------------------------------------===//

#include "testing/toy/ToyModel.h"
#include "fsdprt/artifact_header.h"
#include "fsdprt/sha256.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
/// Returns the size of a shard: 128 / `shards` elements, rounded up to a multiple of 16.
uint64_t shardSizeFor(uint64_t shards) { return (128 + shards * 16 - 1) / (shards * 16) * 16; }

struct Offsets {
  uint64_t end = 0;
  fb::Slice take(uint64_t bytes) {
    fb::Slice result(end, bytes, 0, 0, 0);
    end += (bytes + 63) / 64 * 64;
    return result;
  }
};

enum Kernels : uint32_t {
  gradientKernel,
  lossKernel,
  sumKernel,
  meanKernel,
  squareKernel,
  updateKernel,
  finishKernel,
  reportKernel,
  sumOneKernel,
  meanOneKernel,
  updateAllKernel
};

class Builder {
public:
  explicit Builder(const ToyOptions &options)
      : options(options), ranks(options.replicas * options.shards),
        shardSize(shardSizeFor(options.shards)), flat(options.shards * shardSize) {}

  fb::ManifestT build() {
    manifest.compiler = "toy";
    manifest.source = "toy.mlir";
    manifest.target = "cpu";
    manifest.tokens_per_rank = 8;
    manifest.threads_per_rank = 1;
    addAxis("replicate", options.replicas);
    addAxis("shard", options.shards);
    addUnit();
    addKernels();
    manifest.optimizer = std::make_unique<fb::OptimizerT>();
    manifest.optimizer->kind = "sgd";
    manifest.optimizer->lr = 0.1;
    addRanks();
    addReference();
    return std::move(manifest);
  }

private:
  void addAxis(const char *name, uint64_t size) {
    auto axis = std::make_unique<fb::AxisT>();
    axis->name = name;
    axis->factors = {size};
    manifest.mesh.push_back(std::move(axis));
  }

  void addUnit() {
    auto unit = std::make_unique<fb::UnitT>();
    unit->name = "root";
    unit->shards = options.shards;
    unit->shard_size = shardSize;
    unit->dtype = fb::DType::f32;
    manifest.units.push_back(std::move(unit));
    addParam("w", 0, {13, 7}, fb::InitKind::normal, 0, 0.5);
    addParam("b", 96, {11}, fb::InitKind::uniform, -1, 1);
  }

  void addParam(const char *name, uint64_t offset, std::vector<uint64_t> shape, fb::InitKind kind,
                double a, double b) {
    auto param = std::make_unique<fb::ParamT>();
    param->name = name;
    param->offset = offset;
    param->shape = std::move(shape);
    param->dtype = fb::DType::f32;
    param->trainable = true;
    param->decay = param->shape.size() > 1;
    param->init = kind;
    param->a = a;
    param->b = b;
    manifest.params.push_back(std::move(param));
  }

  fb::KernelT &addKernel(const char *name, const char *symbol, uint64_t extent, uint64_t tile,
                         std::vector<uint64_t> bytes, std::vector<bool> writes) {
    auto kernel = std::make_unique<fb::KernelT>();
    kernel->name = name;
    kernel->kind = "map";
    addPhase(*kernel, symbol, extent, tile);
    kernel->binding_bytes = std::move(bytes);
    kernel->writes.assign(writes.begin(), writes.end());
    manifest.kernels.push_back(std::move(kernel));
    return *manifest.kernels.back();
  }

  static void addPhase(fb::KernelT &kernel, const char *symbol, uint64_t extent, uint64_t tile) {
    auto phase = std::make_unique<fb::PhaseT>();
    phase->symbol = symbol;
    phase->extent = extent;
    phase->tile = tile;
    kernel.phases.push_back(std::move(phase));
  }

  void addKernels() {
    uint64_t bytes = flat * 4;
    std::string meanSymbol = "toy_mean" + std::to_string(ranks);
    addKernel("gradient", "toy_gradient", flat, 16, {bytes, 64, 64, bytes},
              {false, false, false, true});
    fb::KernelT &loss =
        addKernel("loss", "toy_loss_parts", flat / 16, 1, {bytes, bytes, 4}, {false, false, true});
    addPhase(loss, "toy_loss_sum", flat / 16, flat / 16);
    loss.kind = "row";
    loss.shared_bytes = 64;
    loss.worker_bytes = 64;
    addKernel("add", "toy_add", flat, 8, {bytes, bytes}, {true, false});
    addKernel("mean", meanSymbol.c_str(), flat, 8, {bytes}, {true});
    addKernel("square", "toy_square", shardSize, shardSize, {shardSize * 4, 4}, {false, true});
    addKernel("update", "toy_update", shardSize, 4,
              {shardSize * 4, shardSize * 4, shardSize * 4, 64}, {true, true, false, false});
    addKernel("finish", "toy_finish", options.shards, options.shards, {options.shards * 64, 4, 64},
              {false, false, true});
    addKernel("report", "toy_report", 1, 1, {4, 64}, {false, true});
    addKernel("add_one", "toy_add", 1, 1, {4, 4}, {true, false});
    addKernel("mean_one", meanSymbol.c_str(), 1, 1, {4}, {true});
    addKernel("update_all", "toy_update", flat, 4, {bytes, bytes, bytes, 64},
              {true, true, false, false});
  }

  std::unique_ptr<fb::LayoutT> newLayout(Offsets &offsets, bool whole, uint32_t microBatches) {
    auto layout = std::make_unique<fb::LayoutT>();
    uint64_t elements = whole ? flat : shardSize;
    p = offsets.take(elements * 4);
    m = offsets.take(elements * 4);
    for (auto [slice, role] :
         {std::pair(p, fb::StateRole::parameter), std::pair(m, fb::StateRole::momentum)}) {
      auto state = std::make_unique<fb::StateT>();
      state->role = role;
      state->dtype = fb::DType::f32;
      state->offset = slice.offset();
      state->elements = elements;
      state->split = whole ? fb::Split::whole : fb::Split::shard;
      layout->states.push_back(std::move(state));
    }
    for (auto [name, role, slice] : {std::tuple("ids", fb::InputRole::tokens, &tokens),
                                     std::tuple("tgt", fb::InputRole::targets, &targets)}) {
      auto input = std::make_unique<fb::InputT>();
      input->name = name;
      input->role = role;
      input->dtype = fb::DType::i64;
      input->shape = {2, 4};
      if (microBatches > 1)
        input->shape.insert(input->shape.begin(), microBatches);
      input->micro_batches = microBatches;
      input->limit = 256;
      *slice = offsets.take(uint64_t(64) * microBatches);
      input->offset = slice->offset();
      input->bytes = slice->bytes();
      layout->inputs.push_back(std::move(input));
    }
    block = offsets.take(64);
    layout->block = std::make_unique<fb::Slice>(block);
    layout->rank = std::make_unique<fb::Slice>(offsets.take(32));
    layout->shared_bytes = 64;
    layout->worker_bytes = 64;
    layout->workers = options.workers;
    layout->workspace = std::make_unique<fb::Slice>(offsets.take(64 + 64 * options.workers));
    return layout;
  }

  using Commands = std::vector<std::unique_ptr<fb::CommandT>>;

  template <typename Body>
  static void add(Commands &to, Body body, const char *label) {
    auto command = std::make_unique<fb::CommandT>();
    command->body.Set(std::move(body));
    command->label = label;
    to.push_back(std::move(command));
  }

  static void launch(Commands &to, uint32_t kernel, std::vector<fb::Slice> bindings,
                     const char *label) {
    fb::LaunchT body;
    body.kernel = kernel;
    body.bindings = std::move(bindings);
    add(to, std::move(body), label);
  }

  void collective(Commands &to, fb::CollectiveKind kind, fb::Slice source, fb::Slice target,
                  uint64_t count, std::vector<uint32_t> axes, const char *label) {
    fb::CollectiveT body;
    body.kind = kind;
    body.reduction = fb::Reduction::avg;
    body.source = std::make_unique<fb::Slice>(source);
    body.target = std::make_unique<fb::Slice>(target);
    body.dtype = fb::DType::f32;
    body.count = count;
    body.axes = std::move(axes);
    body.id = nextId++;
    body.channel = options.asynchronous ? 1 : 0;
    fb::WaitT wait;
    wait.id = body.id;
    add(to, std::move(body), label);
    if (options.asynchronous)
      add(to, std::move(wait), label);
  }

  static void fill(Commands &to, fb::Slice target) {
    fb::FillT body;
    body.target = std::make_unique<fb::Slice>(target);
    add(to, std::move(body), "zero");
  }

  void addProgram(const char *name, uint32_t layout, Commands commands) {
    auto program = std::make_unique<fb::ProgramT>();
    program->name = name;
    program->layout = layout;
    program->commands = std::move(commands);
    manifest.programs.push_back(std::move(program));
  }

  Commands initialisation() {
    Commands commands;
    for (uint32_t param : {0u, 1u}) {
      fb::InitialiseT body;
      body.param = param;
      add(commands, std::move(body), "init");
    }
    fill(commands, m);
    return commands;
  }

  void addRanks() {
    Offsets offsets;
    auto layout = newLayout(offsets, false, 1);
    fb::Slice full = offsets.take(flat * 4), gradient = offsets.take(flat * 4),
              shard = offsets.take(shardSize * 4);
    fb::Slice loss = offsets.take(4), mean = offsets.take(4), square = offsets.take(64),
              squares = offsets.take(64 * options.shards);
    layout->arena_bytes = offsets.end;
    manifest.layouts.push_back(std::move(layout));
    addProgram("init", 0, initialisation());
    Commands step, eval;
    for (Commands *to : {&step, &eval}) {
      collective(*to, fb::CollectiveKind::all_gather, p, full, shardSize, {1}, "gather root");
      launch(*to, gradientKernel, {full, tokens, targets, gradient}, "gradient");
      launch(*to, lossKernel, {gradient, full, loss}, "loss");
      collective(*to, fb::CollectiveKind::all_reduce, loss, mean, 1, {0, 1}, "mean loss");
    }
    launch(eval, reportKernel, {mean, block}, "report");
    collective(step, fb::CollectiveKind::reduce_scatter, gradient, shard, shardSize, {1},
               "scatter root");
    collective(step, fb::CollectiveKind::all_reduce, shard, shard, shardSize, {0},
               "mean over replicas");
    launch(step, squareKernel, {shard, square}, "norm");
    collective(step, fb::CollectiveKind::all_gather, square, squares, 16, {1}, "norms");
    launch(step, updateKernel, {p, m, shard, block}, "update");
    launch(step, finishKernel, {squares, mean, block}, "finish");
    addProgram("step", 0, std::move(step));
    addProgram("eval", 0, std::move(eval));
    if (options.snapshot)
      addSnapshot();
  }

  /// Adds memory in the host arena for copies of both states, and the program that copies them.
  void addSnapshot() {
    fb::LayoutT &layout = *manifest.layouts[0];
    uint64_t begin = (layout.arena_bytes + FSDPRT_HOST_ARENA_ALIGNMENT - 1) /
                     FSDPRT_HOST_ARENA_ALIGNMENT * FSDPRT_HOST_ARENA_ALIGNMENT;
    Offsets host;
    Commands commands;
    for (const fb::Slice &state : {p, m}) {
      fb::CopyT copy;
      copy.source = std::make_unique<fb::Slice>(state);
      copy.target =
          std::make_unique<fb::Slice>(test::at(state, begin + host.take(state.bytes()).offset()));
      add(commands, std::move(copy), "snapshot");
    }
    layout.host_bytes = host.end;
    addProgram("snapshot", 0, std::move(commands));
  }

  void addReference() {
    Offsets offsets;
    auto layout = newLayout(offsets, true, static_cast<uint32_t>(ranks));
    fb::Slice gradient = offsets.take(flat * 4), sum = offsets.take(flat * 4),
              loss = offsets.take(4), mean = offsets.take(4);
    fb::Slice squares = offsets.take(64 * options.shards);
    layout->arena_bytes = offsets.end;
    manifest.layouts.push_back(std::move(layout));
    addProgram("reference_init", 1, initialisation());
    Commands commands;
    fill(commands, sum);
    fill(commands, mean);
    fb::LoopT loop;
    loop.count = static_cast<uint32_t>(ranks);
    fb::Slice ids(tokens.offset(), 64, 64, 0, 0), tgt(targets.offset(), 64, 64, 0, 0);
    launch(loop.body, gradientKernel, {p, ids, tgt, gradient}, "gradient");
    launch(loop.body, lossKernel, {gradient, p, loss}, "loss");
    launch(loop.body, sumKernel, {sum, gradient}, "accumulate");
    launch(loop.body, sumOneKernel, {mean, loss}, "accumulate loss");
    add(commands, std::move(loop), "micro-batches");
    launch(commands, meanKernel, {sum}, "mean");
    launch(commands, meanOneKernel, {mean}, "mean loss");
    for (uint64_t s = 0; s < options.shards; ++s)
      launch(commands, squareKernel,
             {fb::Slice(sum.offset() + s * shardSize * 4, shardSize * 4, 0, 0, 0),
              fb::Slice(squares.offset() + s * 64, 64, 0, 0, 0)},
             "norm");
    launch(commands, updateAllKernel, {p, m, sum, block}, "update");
    launch(commands, finishKernel, {squares, mean, block}, "finish");
    addProgram("reference", 1, std::move(commands));
  }

  const ToyOptions options;
  uint64_t ranks, shardSize, flat;
  fb::ManifestT manifest;
  fb::Slice p, m, tokens, targets, block; // slices of the current layout
  uint32_t nextId = 0;
};
} // namespace

static void addToyValues(fb::ManifestT &manifest) {
  manifest.seed = 7;
  for (auto &layout : manifest.layouts)
    layout->inputs[1]->extra_ids = {-100};
  for (size_t i = 0; i < manifest.params.size(); ++i) {
    auto &value = manifest.params[i]->value = std::make_unique<fb::ValueT>();
    value->dtype = i == 0 ? fb::DType::f64 : fb::DType::bf16;
    value->offset = 64 + 64 * i;
    value->bytes = i == 0 ? 8 : 2 * 11;
  }
}

fb::ManifestT test::toyManifest(const ToyOptions &options) {
  fb::ManifestT manifest = Builder(options).build();
  if (options.values)
    addToyValues(manifest);
  return manifest;
}

std::vector<std::byte> test::readFile(const std::string &path) {
  std::vector<std::byte> result;
  if (std::FILE *file = std::fopen(path.c_str(), "rb")) {
    std::byte buffer[4096];
    for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;)
      result.insert(result.end(), buffer, buffer + got);
    std::fclose(file);
  }
  return result;
}

void test::writeFile(const std::string &path, const void *data, size_t size) {
  std::FILE *file = std::fopen(path.c_str(), "wb");
  if (!file || std::fwrite(data, 1, size, file) != size || std::fclose(file) != 0)
    std::abort();
}

const std::vector<std::byte> &test::toyImage() {
  static const std::vector<std::byte> image = readFile(FSDPRT_TOY_IMAGE);
  return image;
}

void test::seal(std::vector<std::byte> &file) {
  if (file.size() >= FSDPRT_ARTIFACT_HEADER_SIZE)
    fsdprt_sha256_artifact(file.data(), file.size(),
                           reinterpret_cast<uint8_t *>(file.data()) + FSDPRT_ARTIFACT_HASH_OFFSET);
}

std::vector<std::byte> test::toyValues() {
  std::vector<std::byte> values(128 + 2 * 11);
  std::memcpy(values.data() + 64, &toyValue, sizeof toyValue);
  for (uint16_t i = 0; i < 11; ++i) {
    // The first value is 1. Each of the other values is the next bf16 number after the previous
    // value.
    uint16_t bits = static_cast<uint16_t>(0x3f80 + i);
    std::memcpy(values.data() + 128 + 2 * i, &bits, sizeof bits);
  }
  return values;
}

static uint64_t alignTo(uint64_t size, uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

std::vector<std::byte> test::pack(const fb::ManifestT &manifest,
                                  const std::vector<std::byte> &image,
                                  const std::vector<std::byte> &values) {
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishManifestBuffer(builder, fb::Manifest::Pack(builder, &manifest));
  fsdprt_artifact_header header = {};
  std::memcpy(header.magic, FSDPRT_ARTIFACT_MAGIC, sizeof header.magic);
  header.version = values.empty() ? FSDPRT_ARTIFACT_PLAIN_VERSION : FSDPRT_ARTIFACT_VALUES_VERSION;
  header.header_size = sizeof header;
  header.manifest_offset = sizeof header;
  header.manifest_size = builder.GetSize();
  header.file_size = header.manifest_offset + header.manifest_size;
  if (!image.empty()) {
    header.image_offset = alignTo(header.file_size, FSDPRT_ARTIFACT_IMAGE_ALIGNMENT);
    header.image_size = image.size();
    header.file_size = header.image_offset + header.image_size;
  }
  if (!values.empty()) {
    header.values_offset = alignTo(header.file_size, FSDPRT_ARTIFACT_VALUES_ALIGNMENT);
    header.values_size = values.size();
    header.file_size = header.values_offset + header.values_size;
  }
  std::vector<std::byte> file(header.file_size);
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + header.manifest_offset, builder.GetBufferPointer(), builder.GetSize());
  if (!image.empty())
    std::memcpy(file.data() + header.image_offset, image.data(), image.size());
  if (!values.empty())
    std::memcpy(file.data() + header.values_offset, values.data(), values.size());
  seal(file);
  return file;
}

void test::makeGpu(fb::ManifestT &manifest) {
  manifest.gpu = std::make_unique<fb::GpuT>();
  manifest.gpu->chip = "sm_80";
  manifest.gpu->ptx_bytes = 64;
  for (auto &kernel : manifest.kernels)
    for (auto &phase : kernel->phases) {
      phase->grid = std::make_unique<fb::GridT>();
      phase->grid->blocks = static_cast<uint32_t>(phase->extent);
      phase->grid->threads = 32;
    }
  for (auto &layout : manifest.layouts)
    if (layout->workspace) {
      *layout->workspace = at(*layout->workspace, alignTo(layout->arena_bytes, 256));
      layout->arena_bytes = layout->workspace->offset() + layout->workspace->bytes();
    }
}

std::vector<std::byte> test::pack(const fb::ManifestT &manifest) {
  bool any = false;
  for (const auto &param : manifest.params)
    any |= param->value != nullptr;
  return pack(manifest, imageFor(manifest), any ? toyValues() : std::vector<std::byte>());
}
