//===- HandMade.cpp - Handwritten programs for the null device --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/null/HandMade.h"

using namespace fsdprt;
using namespace fsdprt::test;

template <typename Body>
static void add(HandMade::Block &to, Body body, const std::string &label) {
  auto command = std::make_unique<fb::CommandT>();
  command->body.Set(std::move(body));
  command->label = label;
  to.push_back(std::move(command));
}

HandMade::HandMade(uint64_t shards, uint64_t replicas) {
  for (auto [name, size] : {std::pair("replicate", replicas), std::pair("shard", shards)}) {
    auto axis = std::make_unique<fb::AxisT>();
    axis->name = name;
    axis->factors = {size};
    manifest.mesh.push_back(std::move(axis));
  }
  auto unit = std::make_unique<fb::UnitT>();
  unit->name = "u";
  unit->shards = shards;
  unit->shard_size = shardBytes / 4;
  unit->dtype = fb::DType::f32;
  manifest.units.push_back(std::move(unit));
  auto param = std::make_unique<fb::ParamT>();
  param->name = "w";
  param->shape = {shards * shardBytes / 4};
  param->dtype = fb::DType::f32;
  manifest.params.push_back(std::move(param));
  auto layout = std::make_unique<fb::LayoutT>();
  auto state = std::make_unique<fb::StateT>();
  state->dtype = fb::DType::f32;
  state->elements = shardBytes / 4;
  state->split = fb::Split::shard;
  layout->states.push_back(std::move(state));
  auto input = std::make_unique<fb::InputT>();
  input->name = "ids";
  input->dtype = fb::DType::i64;
  input->shape = {8};
  input->offset = 256;
  input->bytes = 64;
  layout->inputs.push_back(std::move(input));
  layout->block = std::make_unique<fb::Slice>(320, 64, 0, 0, 0);
  layout->rank = std::make_unique<fb::Slice>(384, 64, 0, 0, 0);
  layout->workspace = std::make_unique<fb::Slice>(0, 0, 0, 0, 0);
  layout->workers = 1;
  layout->arena_bytes = firstFree;
  for (auto [name, begin, bytes] :
       {std::tuple("u parameter", 0, 256), std::tuple("ids", 256, 64),
        std::tuple("step block", 320, 64), std::tuple("rank block", 384, 64)}) {
    auto buffer = std::make_unique<fb::BufferT>();
    buffer->name = name;
    buffer->offset = begin;
    buffer->bytes = bytes;
    buffer->program = buffer->last = UINT32_MAX;
    layout->buffers.push_back(std::move(buffer));
  }
  manifest.layouts.push_back(std::move(layout));
  for (const char *name : {"init", "step"}) {
    auto program = std::make_unique<fb::ProgramT>();
    program->name = name;
    manifest.programs.push_back(std::move(program));
  }
  add(init(), fb::InitialiseT(), "w");
  manifest.optimizer = std::make_unique<fb::OptimizerT>();
}

fb::Slice HandMade::buffer(const char *name, uint64_t bytes, uint32_t first, uint32_t last) {
  auto made = std::make_unique<fb::BufferT>();
  made->name = name;
  made->offset = end;
  made->bytes = bytes;
  made->program = 1;
  made->first = first;
  made->last = last;
  layout().buffers.push_back(std::move(made));
  fb::Slice slice(end, bytes, 0, 0, 0);
  end += (bytes + 63) / 64 * 64;
  layout().arena_bytes = end;
  return slice;
}

uint32_t HandMade::launch(Block &to, const char *label, std::vector<fb::Slice> reads,
                          std::vector<fb::Slice> writes, std::vector<fb::Slice> updates) {
  auto kernel = std::make_unique<fb::KernelT>();
  kernel->name = label;
  auto phase = std::make_unique<fb::PhaseT>();
  phase->symbol = "none";
  phase->extent = phase->tile = 1;
  kernel->phases.push_back(std::move(phase));
  fb::LaunchT body;
  body.kernel = static_cast<uint32_t>(manifest.kernels.size());
  auto bind = [&](const std::vector<fb::Slice> &slices, bool isRead, bool isWritten) {
    for (const fb::Slice &slice : slices) {
      body.bindings.push_back(slice);
      kernel->binding_bytes.push_back(slice.bytes());
      kernel->reads.push_back(isRead);
      kernel->writes.push_back(isWritten);
    }
  };
  bind(reads, true, false);
  bind(writes, false, true);
  bind(updates, true, true);
  manifest.kernels.push_back(std::move(kernel));
  add(to, std::move(body), label);
  return static_cast<uint32_t>(to.size() - 1);
}

void HandMade::collective(Block &to, fb::CollectiveKind kind, uint32_t id, fb::Slice source,
                          fb::Slice target, uint64_t count, uint32_t channel,
                          std::vector<uint32_t> axes) {
  fb::CollectiveT body;
  body.kind = kind;
  body.source = std::make_unique<fb::Slice>(source);
  body.target = std::make_unique<fb::Slice>(target);
  body.dtype = fb::DType::f32;
  body.count = count;
  body.axes = std::move(axes);
  body.id = id;
  body.channel = channel;
  add(to, std::move(body), "u");
}

void HandMade::gather(Block &to, uint32_t id, fb::Slice source, fb::Slice target,
                      uint32_t channel) {
  collective(to, fb::CollectiveKind::all_gather, id, source, target, source.bytes() / 4, channel);
}

void HandMade::copy(Block &to, uint32_t id, fb::Slice source, fb::Slice target, uint32_t channel) {
  fb::CopyT body;
  body.source = std::make_unique<fb::Slice>(source);
  body.target = std::make_unique<fb::Slice>(target);
  body.id = id;
  body.channel = channel;
  add(to, std::move(body), "c");
}

void HandMade::wait(Block &to, uint32_t id) {
  fb::WaitT body;
  body.id = id;
  add(to, std::move(body), "");
}

void HandMade::fill(Block &to, fb::Slice target) {
  fb::FillT body;
  body.target = std::make_unique<fb::Slice>(target);
  add(to, std::move(body), "f");
}

std::shared_ptr<const Artifact> HandMade::artifact() const {
  std::vector<std::byte> file = pack(manifest, {});
  return Artifact::fromMemory(file.data(), file.size(), "hand", Rules::form);
}

std::string HandMade::findings() const {
  std::string text;
  for (const Finding &finding : walk().findings)
    text += finding.text + "\n";
  return text;
}

HandMade test::soundStep(uint32_t channel) {
  HandMade hand;
  fb::Slice full = hand.buffer("full", 512, 0, 2), gradient = hand.buffer("gradient", 512, 2, 4),
            shard = hand.buffer("shard", 256, 3, 5);
  hand.gather(hand.step(), 7, hand.parameter(), full, channel);
  channel ? hand.wait(hand.step(), 7) : hand.fill(hand.step(), fb::Slice(0, 0, 0, 0, 0));
  hand.launch(hand.step(), "forward", {hand.ids(), full}, {gradient});
  hand.collective(hand.step(), fb::CollectiveKind::reduce_scatter, 8, gradient, shard, 64, channel);
  channel ? hand.wait(hand.step(), 8) : hand.fill(hand.step(), fb::Slice(0, 0, 0, 0, 0));
  hand.launch(hand.step(), "update", {shard}, {}, {hand.parameter()});
  return hand;
}
