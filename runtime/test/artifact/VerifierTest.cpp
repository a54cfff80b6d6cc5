//===- VerifierTest.cpp - Rules of the verifier -----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests, for each rule of the verifier, the message with which the verifier refuses a manifest that
// breaks only this rule. The rules are one table, which a parametrised test reads; therefore
// the file is long.
//
//===----------------------------------------------------------------------===//

#include "test/artifact/Refusal.h"
#include "testing/toy/ToyModel.h"
#include <cmath>
#include <functional>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
struct Rule {
  const char *name, *words;
  std::function<void(fb::ManifestT &)> breakIt;
};

fb::ProgramT &program(fb::ManifestT &m, const char *name) {
  for (auto &program : m.programs)
    if (program->name == name)
      return *program;
  std::abort();
}
fb::CommandT &command(fb::ManifestT &m, const char *name, size_t i) {
  return *program(m, name).commands[i];
}
fb::CollectiveT &collective(fb::ManifestT &m, size_t i) {
  return *command(m, "step", i).body.AsCollective();
}
fb::LaunchT &launch(fb::ManifestT &m, size_t i) { return *command(m, "step", i).body.AsLaunch(); }
fb::LoopT &loop(fb::ManifestT &m) { return *command(m, "reference", 2).body.AsLoop(); }
fb::Slice moved(const fb::Slice &s, uint64_t offset) {
  return {offset, s.bytes(), s.stride(), 0, 0};
}
fb::Slice sized(const fb::Slice &s, uint64_t bytes) {
  return {s.offset(), bytes, s.stride(), 0, 0};
}
fb::Slice strided(const fb::Slice &s, uint64_t stride) {
  return {s.offset(), s.bytes(), stride, 0, 0};
}

fb::ValueT &value(fb::ManifestT &m, size_t i) { return *m.params[i]->value; }

constexpr uint64_t huge = ~uint64_t(0) - 63;

void addNeighbours(fb::ManifestT &m, uint32_t axis, uint64_t size) {
  m.neighbours.push_back(std::make_unique<fb::NeighboursT>());
  m.neighbours.back()->axis = axis;
  m.neighbours.back()->size = size;
}

/// Adds a host arena, and moves the range of a binding or an operand into this arena.
void moveToHost(fb::ManifestT &m, fb::Slice &slice) {
  m.layouts[0]->host_bytes = 1 << 20;
  slice = moved(slice, (m.layouts[0]->arena_bytes + 4095) / 4096 * 4096);
}

/// Adds an offload file for each rank and moves the range of a binding or an operand into this
/// file.
void moveToFile(fb::ManifestT &m, fb::Slice &slice) {
  m.layouts[0]->file_bytes = 1 << 20;
  slice = moved(slice, (m.layouts[0]->arena_bytes + 4095) / 4096 * 4096);
}

/// Adds the program 'snapshot' and the host memory that it uses.
fb::ProgramT &addSnapshot(fb::ManifestT &m) {
  ToyOptions options;
  options.replicas = m.mesh[0]->factors[0];
  options.shards = m.mesh[1]->factors[0];
  options.snapshot = true;
  fb::ManifestT with = toyManifest(options);
  m.layouts[0]->host_bytes = with.layouts[0]->host_bytes;
  for (auto &each : with.programs)
    if (each->name == "snapshot")
      m.programs.push_back(std::move(each));
  return *m.programs.back();
}
fb::CopyT &snapshotCopy(fb::ManifestT &m, size_t state) {
  return *command(m, "snapshot", state).body.AsCopy();
}

fb::LookupT *addLookup(fb::ManifestT &m) {
  m.lookups.push_back(std::make_unique<fb::LookupT>());
  fb::LookupT *lookup = m.lookups[0].get();
  lookup->location = "model.mlir:3:4";
  lookup->extent = 8;
  lookup->what = "rows of the table";
  return lookup;
}

/// Changes the types of all parameters to integers. States keep their float types.
void makeIntegers(fb::ManifestT &m) {
  m.units[0]->dtype = fb::DType::i16;
  for (auto &param : m.params) {
    param->dtype = fb::DType::i16;
    param->trainable = false;
    param->init = fb::InitKind::constant;
    param->a = -7;
    param->value.reset();
  }
}

fb::CopyT copyOf(const fb::Slice &source, const fb::Slice &target) {
  fb::CopyT copy;
  copy.source = std::make_unique<fb::Slice>(source);
  copy.target = std::make_unique<fb::Slice>(target);
  return copy;
}

/// Returns an asynchronous copy, for which a later command must wait.
fb::CopyT startedCopy(const fb::Slice &source = {0, 64, 0, 0, 0},
                      const fb::Slice &target = {64, 64, 0, 0, 0}) {
  fb::CopyT copy = copyOf(source, target);
  copy.id = 500;
  copy.channel = 3;
  return copy;
}

fb::CostT &cost(fb::ManifestT &m) {
  m.kernels[0]->phases[0]->cost = std::make_unique<fb::CostT>();
  return *m.kernels[0]->phases[0]->cost;
}
fb::GridT &grid(fb::ManifestT &m) { return *m.kernels[0]->phases[0]->grid; }

fb::TensorMapT &addMaps(fb::ManifestT &m, int count) {
  for (int i = 0; i < count; ++i) {
    auto map = std::make_unique<fb::TensorMapT>();
    map->sizes = {64, 8};
    map->strides = {128};
    map->box = {64, 8};
    grid(m).maps.push_back(std::move(map));
  }
  return *grid(m).maps.front();
}

/// Inserts a kernel before all other kernels. The new kernel computes the bf16 product of two 2 x 2
/// matrices. No command launches this kernel.
fb::ProductT &makeProduct(fb::ManifestT &m) {
  makeGpu(m);
  auto kernel = std::make_unique<fb::KernelT>(*m.kernels[0]);
  kernel->name = "product";
  kernel->binding_bytes = {64, 64, 64};
  kernel->writes = {false, false, true};
  kernel->reads.clear();
  fb::PhaseT &phase = *kernel->phases[0];
  kernel->phases.resize(1);
  phase.grid.reset();
  phase.product = std::make_unique<fb::ProductT>();
  fb::ProductT &product = *phase.product;
  product.m = product.n = product.k = 2;
  uint32_t binding = 0;
  for (auto *matrix : {&product.lhs, &product.rhs, &product.result}) {
    *matrix = std::make_unique<fb::MatrixT>();
    (*matrix)->binding = binding++;
    (*matrix)->dtype = fb::DType::bf16;
    (*matrix)->leading = 2;
  }
  m.kernels[0] = std::move(kernel);
  return product;
}

const Rule rules[] = {
    {"V1Factor", "expected factors from 1", [](auto &m) { m.mesh[1]->factors = {0}; }},
    {"V1Factors", "expected factors", [](auto &m) { m.mesh[1]->factors = {}; }},
    {"V1Many", "at most 16384 ranks", [](auto &m) { m.mesh[1]->factors = {4096, 4096}; }},
    {"V1Twice", "two axes called 'shard'", [](auto &m) { m.mesh[0]->name = "shard"; }},
    {"V1Axes", "expected a mesh of at most 64 axes and 64 neighbours, found 65 and 0",
     [](auto &m) {
       while (m.mesh.size() < 65) {
         m.mesh.push_back(std::make_unique<fb::AxisT>(*m.mesh[0]));
         m.mesh.back()->name = "axis" + std::to_string(m.mesh.size());
       }
     }},
    {"V1None", "mesh with at least one axis", [](auto &m) { m.mesh.clear(); }},
    {"V1NeighboursSize", "neighbours 0: expected a number that divides an axis", [](auto &m) { addNeighbours(m, 1, 3); }},
    {"V1Context", "expected 'context' to divide the 2 ranks of axis 'shard', found 3", [](auto &m) { m.context = 3; }},
    {"V1ContextNone", "expected 'context' to divide the 2 ranks of axis 'shard', found 0", [](auto &m) { m.context = 0; }},
    {"V1NeighboursNone", "neighbours 0: expected a number that divides an axis", [](auto &m) { addNeighbours(m, 1, 0); }},
    {"V1NeighboursAxis", "found 1 on number 2", [](auto &m) { addNeighbours(m, 2, 1); }},
    {"V2Shards", "expected 1 shard or 2", [](auto &m) { m.units[0]->shards = 3; }},
    {"V2Size", "expected a shard size", [](auto &m) { m.units[0]->shard_size = 0; }},
    {"V2DType", "expected floats in a unit of floats, integers in one of integers",
     [](auto &m) { m.units[0]->dtype = fb::DType::i32; }},
    {"V2DTypeNumber", "expected a dtype, found number 200", [](auto &m) { m.units[0]->dtype = static_cast<fb::DType>(200); }},
    {"V3Unit", "expected one of 1 units, found number 7", [](auto &m) { m.params[0]->unit = 7; }},
    {"V3DType", "expected a dtype and a kind of initial values", [](auto &m) { m.params[1]->dtype = static_cast<fb::DType>(99); }},
    {"V3Name", "parameter 1: expected a name", [](auto &m) { m.params[1]->name = ""; }},
    {"V3Bounds", "within the 128 of unit 'root'", [](auto &m) { m.params[1]->offset = 120; }},
    {"V3Overflow", "within the 128 of unit 'root'",
     [](auto &m) { m.params[1]->shape = {uint64_t(1) << 33, uint64_t(1) << 33}; }},
    {"V3Overlap", "parameters 'w' and 'b' overlap", [](auto &m) { m.params[1]->offset = 34; }},
    {"V3Twice", "two parameters are called 'w'", [](auto &m) { m.params[1]->name = "w"; }},
    {"V3Init", "kind of initial values", [](auto &m) { m.params[1]->init = static_cast<fb::InitKind>(9); }},
    {"V3Trained", "expected integers of its unit's dtype, not trained",
     [](auto &m) {
       makeIntegers(m);
       m.params[0]->trainable = true;
     }},
    {"V3Normal", "all initialised to one value that i16 can hold",
     [](auto &m) {
       makeIntegers(m);
       m.params[0]->init = fb::InitKind::normal;
     }},
    {"V3Large", "all initialised to one value that i16 can hold",
     [](auto &m) {
       makeIntegers(m);
       m.params[0]->a = 32768;
     }},
    {"V3IntegerValue", "expected values of i16, found number 3",
     [](auto &m) {
       auto kept = value(m, 1);
       makeIntegers(m);
       m.params[1]->value = std::make_unique<fb::ValueT>(kept);
     }},
    {"V3ValueType", "expected values of a float dtype, found number 4",
     [](auto &m) { value(m, 1).dtype = fb::DType::i64; }},
    {"V3ValueTypeNumber", "expected values of a float dtype", [](auto &m) { value(m, 1).dtype = fb::DType(200); }},
    {"V3ValueBytes", "expected the bytes of one or of 11 values of dtype bf16, found 20",
     [](auto &m) { value(m, 1).bytes = 20; }},
    {"V3ValueAlign", "expected its values at a multiple of 64", [](auto &m) { value(m, 1).offset = 66; }},
    {"V3ValueBounds", "within the file's 150 bytes of values", [](auto &m) { value(m, 1).offset = 192; }},
    {"V3ValueOverflow", "within the file's 150 bytes of values", [](auto &m) { value(m, 1).offset = huge; }},
    {"V4Phases", "expected 1 to 64 phases", [](auto &m) { m.kernels[0]->phases.clear(); }},
    {"V4Tile", "expected an extent and a tile", [](auto &m) { m.kernels[0]->phases[0]->tile = 0; }},
    {"V4Writes", "expected 'writes' for each", [](auto &m) { m.kernels[0]->writes.pop_back(); }},
    {"V4Reads", "expected 'reads' for each", [](auto &m) { m.kernels[0]->reads.push_back(true); }},
    {"V4Symbol", "expected function 'nothing'", [](auto &m) { m.kernels[0]->phases[0]->symbol = "nothing"; }},
    {"V19Grid", "expected a launch on a GPU, found a function of a CPU", [](auto &m) { makeGpu(m), m.kernels[0]->phases[0]->grid.reset(); }},
    {"V19NoGpu", "expected a function of a CPU, found a launch on a GPU", [](auto &m) { makeGpu(m), m.gpu.reset(); }},
    {"V19Blocks", "expected 1 to 2^31 - 1 blocks", [](auto &m) { makeGpu(m), grid(m).blocks = 0; }},
    {"V19Extent", "as many as its extent", [](auto &m) { makeGpu(m), ++grid(m).blocks; }},
    {"V19Threads", "expected 1 to 1024 threads", [](auto &m) { makeGpu(m), grid(m).threads = 1025; }},
    {"V19Shared", "at most 232448 bytes of shared memory", [](auto &m) { makeGpu(m), grid(m).shared_bytes = huge; }},
    {"V19Cluster", "expected clusters of 1 to 16 blocks", [](auto &m) { makeGpu(m), grid(m).cluster = 0; }},
    {"V19Clusters", "that divide",
     [](auto &m) {
       makeGpu(m);
       m.kernels[0]->phases[0]->extent = grid(m).blocks = 5;
       grid(m).cluster = 2;
     }},
    {"V19Maps", "expected at most 16 tensor maps", [](auto &m) { makeGpu(m), addMaps(m, 17); }},
    {"V19MapBinding", "tensor map 0: expected one of", [](auto &m) { makeGpu(m), addMaps(m, 1).binding = 99; }},
    {"V19MapType", "expected elements of bf16, f16 or f32", [](auto &m) { makeGpu(m), addMaps(m, 1).dtype = fb::DType::f64; }},
    {"V19MapRank", "expected sizes and box of 1 to 5 dimensions", [](auto &m) { makeGpu(m), addMaps(m, 1).sizes.clear(); }},
    {"V19MapStrides", "and strides of all but the first", [](auto &m) { makeGpu(m), addMaps(m, 1).strides.clear(); }},
    {"V19MapBox", "expected boxes of 1 to 256 elements, found 257", [](auto &m) { makeGpu(m), addMaps(m, 1).box[1] = 257; }},
    {"V19MapBounds", "tensor map 0: expected an end within the ", [](auto &m) { makeGpu(m), addMaps(m, 1).sizes[1] = 1 << 20; }},
    {"V19MapBegin", "bytes of binding 0, found ", [](auto &m) { makeGpu(m), addMaps(m, 1).offset = 1 << 20; }},
    {"V19MapEnd", "found more than 2^64", [](auto &m) { makeGpu(m), addMaps(m, 1).strides[0] = huge; }},
    {"V19MapScratch", "bytes of scratch, found ",
     [](auto &m) {
       makeGpu(m);
       m.kernels[0]->shared_bytes = 64;
       addMaps(m, 1).binding = static_cast<uint32_t>(m.kernels[0]->binding_bytes.size());
     }},
    {"V19MapAlign", "multiples of 16 bytes", 
     [](auto &m) {
       makeGpu(m);
       addMaps(m, 1).strides = {24};
       grid(m).maps[0]->sizes = {1, 1};
     }},
    {"V19Cost", "expected clocks and bytes of a cost from 0 to 1e18, found -1", [](auto &m) { makeGpu(m), cost(m).tensor = -1; }},
    {"V19CostNan", "expected clocks and bytes of a cost from 0 to 1e18, found ", [](auto &m) { makeGpu(m), cost(m).clocks = std::nan(""); }},
    {"V19CostLarge", "expected clocks and bytes of a cost from 0 to 1e18, found 1e+19", [](auto &m) { makeGpu(m), cost(m).bytes = 1e19; }},
    {"V19CostBalance", "expected the balance of a cost above 0 and at most 1, found 0", [](auto &m) { makeGpu(m), cost(m).balance = 0; }},
    {"V19CostCpu", "expected a function of a CPU, found the cost", [](auto &m) { cost(m); }},
    {"V19Chip", "expected the name of the GPU's chip", [](auto &m) { makeGpu(m), m.gpu->chip = ""; }},
    {"V20Text", "expected PTX within the image's", [](auto &m) { makeGpu(m), m.gpu->ptx_bytes = 0; }},
    {"V20TextEnd", "expected PTX within the image's", [](auto &m) { makeGpu(m), m.gpu->ptx_bytes = huge; }},
    {"V20Code", "expected machine code after the PTX",
     [](auto &m) { makeGpu(m), m.gpu->cubin_offset = 32, m.gpu->cubin_bytes = 8; }},
    {"V20CodeEnd", "expected machine code after the PTX",
     [](auto &m) { makeGpu(m), m.gpu->cubin_offset = 64, m.gpu->cubin_bytes = huge; }},
    {"V21Cpu", "expected a function of a CPU, found a product", [](auto &m) { makeProduct(m), m.gpu.reset(); }},
    {"V21Both", "or a product of a library, found both", [](auto &m) { makeProduct(m).m = 1, m.kernels[0]->phases[0]->grid = std::make_unique<fb::GridT>(); }},
    {"V21Size", "expected sizes of 1 to 2^31 - 1, found 0", [](auto &m) { makeProduct(m).k = 0; }},
    {"V21Large", "expected sizes of 1 to 2^31 - 1", [](auto &m) { makeProduct(m).batches = huge; }},
    {"V21Factor", "rhs: expected a matrix, found none", [](auto &m) { makeProduct(m).rhs.reset(); }},
    {"V21Binding", "lhs: expected one of", [](auto &m) { makeProduct(m).lhs->binding = 99; }},
    {"V21Type", "lhs: expected f32, bf16 or f16, found number 0", [](auto &m) { makeProduct(m).lhs->dtype = fb::DType::f64; }},
    {"V21Types", "expected factors of one type", [](auto &m) { makeProduct(m).lhs->dtype = fb::DType::f32; }},
    {"V21Addend", "expected addend, bias and aux in the result's bf16, found f32",
     [](auto &m) {
       fb::ProductT &product = makeProduct(m);
       product.addend = std::make_unique<fb::MatrixT>(*product.result);
       product.addend->dtype = fb::DType::f32;
     }},
    {"V21Rows", "result: expected rows at least 2 elements", [](auto &m) { makeProduct(m).result->leading = 1; }},
    {"V21Stride", "and batches", [](auto &m) { makeProduct(m).result->batch_stride = huge; }},
    {"V21Offset", "an offset in whole elements, found 1", [](auto &m) { makeProduct(m).lhs->offset = 1; }},
    {"V21Result", "expected the factors alone to be transposed", [](auto &m) { makeProduct(m).result->transposed = true; }},
    {"V21Activation", "expected an activation, found number 9", [](auto &m) { makeProduct(m).activation = static_cast<fb::Activation>(9); }},
    {"V21Slope", "aux: expected a matrix, found none", [](auto &m) { makeProduct(m).activation = fb::Activation::gelu_gradient; }},
    {"V21Aux", "expected an auxiliary matrix with an activation only",
     [](auto &m) {
       fb::ProductT &product = makeProduct(m);
       product.aux = std::make_unique<fb::MatrixT>(*product.result);
     }},
    {"V21AuxRows", "aux: expected rows a multiple of 8 elements apart",
     [](auto &m) {
       fb::ProductT &product = makeProduct(m);
       product.activation = fb::Activation::gelu;
       product.aux = std::make_unique<fb::MatrixT>(*product.result);
     }},
    {"V21SlopeAddend", "expected neither bias nor addend with the derivative of GELU",
     [](auto &m) {
       fb::ProductT &product = makeProduct(m);
       product.activation = fb::Activation::gelu_gradient;
       product.addend = std::make_unique<fb::MatrixT>(*product.result);
     }},
    {"V21AddendPlace", "addend: expected the result's own elements in the result's binding",
     [](auto &m) {
       fb::ProductT &product = makeProduct(m);
       product.addend = std::make_unique<fb::MatrixT>(*product.result);
       product.addend->offset = 2;
     }},
    {"V21Batches", "expected a bias or an activation for one batch only",
     [](auto &m) {
       makeProduct(m).activation = fb::Activation::gelu;
       m.kernels[0]->phases[0]->product->batches = 2;
     }},
    {"V21Writes", "result: expected a binding that the kernel writes", [](auto &m) { makeProduct(m), m.kernels[0]->writes[2] = false; }},
    {"V21Shared", "lhs: expected another binding than that of result",
     [](auto &m) {
       fb::ProductT &product = makeProduct(m);
       product.lhs->binding = product.result->binding;
     }},
    {"V21Bounds", "lhs: expected it within the 64 bytes of binding 0", [](auto &m) { makeProduct(m).lhs->leading = 64; }},
    {"V21Begin", "rhs: expected it within the 64 bytes of binding 1", [](auto &m) { makeProduct(m).rhs->offset = huge; }},
    {"V9GpuScratch", "expected the workspace of a GPU's kernels at a multiple of 256",
     [](auto &m) {
       makeGpu(m);
       *m.layouts[0]->workspace = moved(*m.layouts[0]->workspace, 64);
     }},
    {"V5Unknown", "which this runtime cannot query", [](auto &m) { m.isa = {"avx1024"}; }},
    {"V6Align", "expected a multiple of 64", [](auto &m) { m.layouts[0]->states[0]->offset = 4; }},
    {"V6Bounds", "within the arena's", [](auto &m) { m.layouts[0]->states[0]->offset = huge; }},
    {"V6Overlap", "overlap in the arena", [](auto &m) { m.layouts[0]->states[1]->offset = 0; }},
    {"V6Arena", "within the arena's 64 bytes", [](auto &m) { m.layouts[0]->arena_bytes = 64; }},
    {"V6ArenaSize", "expected an arena of at most", [](auto &m) { m.layouts[0]->arena_bytes = huge; }},
    {"V6Block", "step block: expected at least 64",
     [](auto &m) { *m.layouts[0]->block = sized(*m.layouts[0]->block, 32); }},
    {"V6NoBlock", "step block: expected at least 64", [](auto &m) { m.layouts[0]->block.reset(); }},
    {"V7Unit", "expected one of 1 units", [](auto &m) { m.layouts[0]->states[0]->unit = 1; }},
    {"V7Integers", "only the parameter for a unit of integers", [](auto &m) { makeIntegers(m); }},
    {"V7Role", "a role and a dtype",
     [](auto &m) { m.layouts[0]->states[0]->role = static_cast<fb::StateRole>(17); }},
    {"V7Split", "expected pieces over no axis, 'shard', or 'shard' and 'replicate', found number 3",
     [](auto &m) { m.layouts[0]->states[0]->split = fb::Split::replicate; }},
    {"V7Elements", "expected the 64 elements", [](auto &m) { m.layouts[0]->states[0]->elements = 128; }},
    {"V7Twice", "has another state of this role",
     [](auto &m) { m.layouts[0]->states[1]->role = fb::StateRole::parameter; }},
    {"V8Role", "expected a role and a dtype, found numbers 9", [](auto &m) { m.layouts[0]->inputs[0]->role = static_cast<fb::InputRole>(9); }},
    {"V8Bytes", "expected the bytes of its shape", [](auto &m) { m.layouts[0]->inputs[0]->bytes = 32; }},
    {"V8Micro", "leading dimension of its 3", [](auto &m) { m.layouts[0]->inputs[0]->micro_batches = 3; }},
    {"V8NoMicro", "leading dimension of its 0", [](auto &m) { m.layouts[0]->inputs[0]->micro_batches = 0; }},
    {"V8Limit", "expected a limit of at most", [](auto &m) { m.layouts[0]->inputs[0]->limit = huge; }},
    {"V8Extra", "expected extra ids outside of a limit, found 3 with limit 256",
     [](auto &m) { m.layouts[0]->inputs[1]->extra_ids = {-100, 3}; }},
    {"V8ExtraNoLimit", "expected extra ids outside of a limit", [](auto &m) { m.layouts[0]->inputs[1]->limit = 0; }},
    {"V8ExtraMany", "at most 64 extra ids", [](auto &m) { m.layouts[0]->inputs[1]->extra_ids.assign(65, -1); }},
    {"V9Workers", "expected 1 to 4096 workers", [](auto &m) { m.layouts[0]->workers = 0; }},
    {"V9Scratch", "expected a workspace for", [](auto &m) { m.layouts[0]->worker_bytes = 1 << 20; }},
    {"V9Unit", "scratch in multiples of 64 bytes", [](auto &m) { m.layouts[0]->worker_bytes = 32; }},
    {"V9Overlap", "overlap in the arena",
     [](auto &m) { *m.layouts[0]->workspace = moved(*m.layouts[0]->workspace, m.layouts[0]->states[0]->offset); }},
    {"V9Overflow", "expected a workspace for", [](auto &m) { m.layouts[0]->worker_bytes = huge; }},
    {"V9RankBytes", "rank block: expected at least 32 bytes",
     [](auto &m) { *m.layouts[0]->rank = sized(*m.layouts[0]->rank, 16); }},
    {"V9RankFile", "rank block: expected a range in the device's arena", [](auto &m) { moveToFile(m, *m.layouts[0]->rank); }},
    {"V9Buffer", "buffer 0: expected a category and a range within the arena",
     [](auto &m) {
       m.layouts[0]->buffers.push_back(std::make_unique<fb::BufferT>());
       m.layouts[0]->buffers[0]->offset = m.layouts[0]->arena_bytes;
       m.layouts[0]->buffers[0]->bytes = 64;
     }},
    {"V9Piece", "the rank block and the workspace to be no pieces",
     [](auto &m) {
       fb::Slice &s = *m.layouts[0]->workspace;
       s = fb::Slice(s.offset(), s.bytes(), 0, 64, huge);
     }},
    {"V9Rank", "the rank block and the workspace to be no pieces",
     [](auto &m) { m.layouts[0]->rank = std::make_unique<fb::Slice>(0, 0, 0, 64, huge); }},
    {"V10Threads", "expected 1 to 4 threads per rank, found 0", [](auto &m) { m.threads_per_rank = 0; }},
    {"V24Missing", "expected a copy of each of 2 states, found 1 commands", [](auto &m) { addSnapshot(m).commands.pop_back(); }},
    {"V24Command", "command 1: expected a copy of state 1 on no channel", [](auto &m) { addSnapshot(m).commands[1]->body.Set(fb::FillT()); }},
    {"V24Channel", "command 0: expected a copy of state 0 on no channel", [](auto &m) { addSnapshot(m), snapshotCopy(m, 0).channel = 1; }},
    {"V24Order", "command 0: expected a copy of state 0 at offset", [](auto &m) { auto &p = addSnapshot(m); std::swap(p.commands[0], p.commands[1]); }},
    {"V24Part", "of state 0, found", [](auto &m) { addSnapshot(m), *snapshotCopy(m, 0).target = sized(*snapshotCopy(m, 0).target, 64); }},
    {"V24Device", "expected a target in the host's arena", [](auto &m) { addSnapshot(m), *snapshotCopy(m, 0).target = moved(*snapshotCopy(m, 0).target, 64); }},
    {"V24Overlap", "two copies overlap",
     [](auto &m) { addSnapshot(m), *snapshotCopy(m, 1).target = moved(*snapshotCopy(m, 1).target, snapshotCopy(m, 0).target->offset() + 64); }},
    {"V24State", "state 0 overlaps the copies", // state 0 is moved between the two copies
     [](auto &m) {
       addSnapshot(m);
       fb::CopyT &copy = snapshotCopy(m, 0);
       uint64_t first = copy.target->offset(), bytes = copy.target->bytes();
       m.layouts[0]->host_bytes += 2 * bytes;
       *snapshotCopy(m, 1).target = moved(*snapshotCopy(m, 1).target, first + 2 * bytes);
       *copy.source = moved(*copy.source, first + bytes);
       m.layouts[0]->states[0]->offset = first + bytes;
     }},
    {"V24Used", "expected no use of the copy of the state for saves",
     [](auto &m) {
       addSnapshot(m);
       fb::FillT fill;
       fill.target = std::make_unique<fb::Slice>(*snapshotCopy(m, 1).target);
       command(m, "init", 2).body.Set(std::move(fill));
     }},
    {"V22Location", "location of lookup 0: expected a name", [](auto &m) { addLookup(m)->location = ""; }},
    {"V22What", "description of lookup 0: expected a name", [](auto &m) { addLookup(m)->what = ""; }},
    {"V22Extent", "lookup 0: expected an extent from 1 to 2^63 - 1, found 0", [](auto &m) { addLookup(m)->extent = 0; }},
    {"V22ExtentHuge", "lookup 0: expected an extent from 1 to 2^63 - 1", [](auto &m) { addLookup(m)->extent = ~uint64_t(0); }},
    {"V11Layout", "expected one of 2 layouts", [](auto &m) { program(m, "step").layout = 9; }},
    {"V11Names", "expected a unique name", [](auto &m) { program(m, "step").name = "eval"; }},
    {"V11Shared", "as the other programs on that arena", [](auto &m) { program(m, "eval").layout = 1; }},
    {"V11Whole", "expected whole states, found a piece in state 0",
     [](auto &m) {
       m.layouts[1]->states[0]->split = fb::Split::shard;
       m.layouts[1]->states[0]->elements /= 2;
     }},
    {"V11None", "at least one program", [](auto &m) { m.programs.clear(); }},
    {"V6Host", "expected a host arena of at most 2^48 bytes", [](auto &m) { m.layouts[0]->host_bytes = huge; }},
    {"V6HostBounds", "within the arena's",
     [](auto &m) {
       m.layouts[0]->host_bytes = 64;
       m.layouts[0]->states[0]->offset = (m.layouts[0]->arena_bytes + 4095) / 4096 * 4096;
     }},
    {"V6HostBlock", "expected a range in the device's arena", [](auto &m) { moveToHost(m, *m.layouts[0]->block); }},
    {"V6HostWorkspace", "expected the workspace on the device", [](auto &m) { moveToHost(m, *m.layouts[0]->workspace); }},
    {"V6File", "expected a file of at most 2^48 bytes", [](auto &m) { m.layouts[0]->file_bytes = huge; }},
    {"V6FileBounds", "within the arena's",
     [](auto &m) {
       m.layouts[0]->file_bytes = 64;
       m.layouts[0]->states[0]->offset = (m.layouts[0]->arena_bytes + 4095) / 4096 * 4096;
     }},
    {"V6FileBlock", "expected a range in the device's arena", [](auto &m) { moveToFile(m, *m.layouts[0]->block); }},
    {"V6FileWorkspace", "expected the workspace on the device", [](auto &m) { moveToFile(m, *m.layouts[0]->workspace); }},
    {"V8File", "expected a range in an arena, found one in the file",
     [](auto &m) {
       m.layouts[0]->file_bytes = 1 << 20;
       m.layouts[0]->inputs[0]->offset = (m.layouts[0]->arena_bytes + 4095) / 4096 * 4096;
     }},
    {"V13File", "expected a range in an arena, found one in the file",
     [](auto &m) { moveToFile(m, launch(m, 13).bindings[1]); }},
    {"V16File", "expected a source or a target in an arena, found both in the file",
     [](auto &m) {
       fb::CopyT copy = startedCopy();
       copy.channel = 0;
       moveToFile(m, *copy.source);
       moveToFile(m, *copy.target);
       command(m, "step", 13).body.Set(std::move(copy));
     }},
    {"V13Arenas", "expected a range in the arena of binding 0",
     [](auto &m) { moveToHost(m, launch(m, 13).bindings[1]); }},
    {"V13GpuArenas", "expected a range in the device's arena, where kernels of a GPU run, found one in the host's",
     [](auto &m) {
       makeGpu(m);
       for (fb::Slice &binding : launch(m, 13).bindings)
         moveToHost(m, binding);
     }},
    {"V14Arenas", "expected a source and a target on the device",
     [](auto &m) {
       for (auto &command : program(m, "step").commands)
         if (command->body.type == fb::Body::Collective)
           return moveToHost(m, *command->body.AsCollective()->source);
     }},
    {"V12Bounds", "expected a range within the arena's",
     [](auto &m) { launch(m, 2).bindings[0] = moved(launch(m, 2).bindings[0], huge); }},
    {"V12Size", "expected a range within the arena's",
     [](auto &m) { launch(m, 2).bindings[0] = sized(launch(m, 2).bindings[0], huge); }},
    {"V12Stride", "expected stride 0 outside of a loop",
     [](auto &m) { launch(m, 2).bindings[0] = strided(launch(m, 2).bindings[0], 64); }},
    {"V12Loop", "with stride 64000",
     [](auto &m) {
       auto &b = loop(m).body[0]->body.AsLaunch()->bindings[1];
       b = strided(b, 64000);
     }},
    {"V12Wrap", "expected a range within",
     [](auto &m) {
       auto &b = loop(m).body[0]->body.AsLaunch()->bindings[1];
       b = strided(b, huge);
     }},
    {"V12Split", "expected a split below 5, found 5",
     [](auto &m) {
       addNeighbours(m, 1, 2);
       fb::Slice &s = launch(m, 2).bindings[0];
       s = fb::Slice(s.offset(), s.bytes(), 0, 64, 5);
     }},
    {"V13Kernel", "kernels, found number 99", [](auto &m) { launch(m, 2).kernel = 99; }},
    {"V13Count", "expected the 4 bindings of kernel 'gradient', found 3",
     [](auto &m) { launch(m, 2).bindings.pop_back(); }},
    {"V13None", "expected a command, found none", [](auto &m) { command(m, "step", 2).body.Reset(); }},
    {"V13Align", "multiples of 64", [](auto &m) { launch(m, 2).bindings[0] = moved(launch(m, 2).bindings[0], 8); }},
    {"V13Bytes", "expected at least 512 bytes, found 508",
     [](auto &m) { launch(m, 2).bindings[0] = sized(launch(m, 2).bindings[0], 508); }},
    {"V13Shared", "bytes of shared scratch", [](auto &m) { m.kernels[1]->shared_bytes = 128; }},
    {"V14Kind", "expected a kind, a reduction",
     [](auto &m) { collective(m, 0).kind = static_cast<fb::CollectiveKind>(44); }},
    {"V14DType", "expected a float dtype to reduce", [](auto &m) { collective(m, 4).dtype = fb::DType::i32; }},
    {"V14Axis", "found number 2", [](auto &m) { collective(m, 0).axes = {2}; }},
    {"V14Axes", "found number 1", [](auto &m) { collective(m, 0).axes = {1, 1}; }},
    {"V14Neighbours", "found number 3",
     [](auto &m) {
       addNeighbours(m, 1, 2);
       collective(m, 0).axes = {3};
     }},
    {"V14NeighboursAlone", "found number 2",
     [](auto &m) {
       addNeighbours(m, 1, 2);
       collective(m, 0).axes = {0, 2};
     }},
    {"V14NeighboursGroup", "over 1 ranks",
     [](auto &m) {
       addNeighbours(m, 1, 1);
       collective(m, 0).axes = {2};
     }},
    {"V14Count", "expected a source of 260 bytes", [](auto &m) { collective(m, 0).count = 65; }},
    {"V14Large", "is too large", [](auto &m) { collective(m, 0).count = huge; }},
    {"V14Group", "expected a source of 256 bytes and a target of 256", [](auto &m) { collective(m, 0).axes = {0}; }},
    {"V14Overlap", "its source and its target overlap",
     [](auto &m) { *collective(m, 0).target = moved(*collective(m, 0).target, 192); }},
    {"V14Root", "expected a root below", [](auto &m) { collective(m, 0).root = 2; }},
    {"V14Unit", "expected one of 1 units or -1", [](auto &m) { collective(m, 0).unit = 1; }},
    {"V15NoStart", "which has not been started", [](auto &m) { command(m, "step", 1).body.AsWait()->id = 77; }},
    {"V15NoWait", "ends without a wait for collective 0", [](auto &m) { program(m, "step").commands.resize(1); }},
    {"V15Race", "that collective 0, which has not been waited for, receives",
     [](auto &m) { std::swap(program(m, "step").commands[1], program(m, "step").commands[2]); }},
    {"V15CopyNoWait", "ends without a wait for copy 500", [](auto &m) { command(m, "init", 2).body.Set(startedCopy()); }},
    {"V15CopyRace", "reads a range that copy 500, which has not been waited for, receives",
     [](auto &m) {
       command(m, "init", 1).body.Set(startedCopy());
       command(m, "init", 2).body.Set(copyOf({64, 64, 0, 0, 0}, {128, 64, 0, 0, 0}));
     }},
    {"V15CopySource", "writes a range that copy 500, which has not been waited for, sends",
     [](auto &m) {
       command(m, "init", 1).body.Set(startedCopy());
       fb::FillT fill;
       fill.target = std::make_unique<fb::Slice>(0, 64, 0, 0, 0);
       command(m, "init", 2).body.Set(std::move(fill));
     }},
    {"V15CopyRaceInALoop", "reads a range that copy 500, which has not been waited for, receives",
     [](auto &m) { // In iteration 4, the second copy reads the target of the first copy.
       loop(m).count = 4;
       loop(m).body[0]->body.Set(startedCopy({0, 64, 0, 0, 0}, {256, 64, 0, 0, 0}));
       loop(m).body[1]->body.Set(copyOf({64, 64, 64, 0, 0}, {512, 64, 0, 0, 0}));
     }},
    {"V15CopySourceInALoop", "writes a range that copy 500, which has not been waited for, sends",
     [](auto &m) { // The source of the copy has a larger stride than the target of the fill.
       loop(m).count = 3;
       loop(m).body[0]->body.Set(startedCopy({0, 64, 192, 0, 0}, {1024, 64, 0, 0, 0}));
       fb::FillT fill;
       fill.target = std::make_unique<fb::Slice>(256, 64, 64, 0, 0);
       loop(m).body[1]->body.Set(std::move(fill));
     }},
    {"V15CopyTwice", "copy 500 is started again",
     [](auto &m) {
       command(m, "init", 1).body.Set(startedCopy());
       command(m, "init", 2).body.Set(startedCopy({128, 64, 0, 0, 0}, {192, 64, 0, 0, 0}));
     }},
    {"V16Sizes", "of one size", [](auto &m) { command(m, "init", 2).body.Set(copyOf({0, 64, 0, 0, 0}, {64, 32, 0, 0, 0})); }},
    {"V16Overlap", "overlap", [](auto &m) { command(m, "init", 2).body.Set(copyOf({0, 64, 0, 0, 0}, {32, 64, 0, 0, 0})); }},
    {"V16OverlapInALoop", "its source and its target overlap", // an overlap in iteration 3
     [](auto &m) { loop(m).count = 3, loop(m).body[0]->body.Set(copyOf({0, 64, 64, 0, 0}, {128, 64, 0, 0, 0})); }},
    {"V16OverlapOfPieces", "its source and its target overlap", // an overlap on ranks of shard 1
     [](auto &m) { command(m, "init", 2).body.Set(copyOf({0, 64, 0, 64, 1}, {64, 64, 0, 0, 0})); }},
    {"V14OverlapOfPieces", "its source and its target overlap", // the offset of the source does not
                                                                // depend on the iteration
     [](auto &m) {
       fb::CollectiveT gather = collective(m, 0);
       gather.channel = 0;
       gather.source = std::make_unique<fb::Slice>(1024, 256, 0, 256, 1);
       gather.target = std::make_unique<fb::Slice>(1024, 512, 512, 0, 0);
       fb::LoopT loop;
       loop.count = 2;
       loop.body.push_back(std::make_unique<fb::CommandT>());
       loop.body[0]->body.Set(std::move(gather));
       auto &step = program(m, "step").commands;
       step[0]->body.Set(std::move(loop));
       step.erase(step.begin() + 1);
     }},
    {"V16NoSource", "expected a source", [](auto &m) { command(m, "init", 2).body.Set(fb::CopyT()); }},
    {"V17State", "states and 2 parameters", [](auto &m) { command(m, "init", 0).body.AsInitialise()->param = 2; }},
    {"V17Role", "expected a state that holds parameters",
     [](auto &m) { command(m, "init", 0).body.AsInitialise()->state = 1; }},
    {"V17Unit", "its state and its parameter belong to different units",
     [](auto &m) {
       m.units.push_back(std::make_unique<fb::UnitT>(*m.units[0]));
       m.units[1]->name = "other";
       m.params[1]->unit = 1;
     }},
    {"V18Count", "expected 1 to 1048576 iterations", [](auto &m) { loop(m).count = 0; }},
    {"V18Nested", "expected no loop inside of a loop", [](auto &m) { loop(m).body[0]->body.Set(fb::LoopT()); }},
    {"V18WaitOutside", "waits in a loop for copy 500, which was started outside",
     [](auto &m) {
       command(m, "reference", 0).body.Set(startedCopy());
       fb::WaitT wait;
       wait.id = 500;
       loop(m).body[0]->body.Set(wait);
     }},
    {"V18Wait", "ends without a wait",
     [](auto &m) { // A collective starts in a loop, and the wait for it follows the loop.
       auto &step = program(m, "step").commands;
       fb::LoopT loop;
       loop.count = 1;
       loop.body.push_back(std::move(step[0]));
       step[0] = std::make_unique<fb::CommandT>();
       step[0]->body.Set(std::move(loop));
     }},
};
} // namespace

class VerifierRule : public testing::TestWithParam<Rule> {};
TEST_P(VerifierRule, IsChecked) {
  ToyOptions options;
  options.values = true;
  auto manifest = toyManifest(options);
  GetParam().breakIt(manifest);
  EXPECT_NE(refusal(pack(manifest)).find(GetParam().words), std::string::npos)
      << refusal(pack(manifest));
}
INSTANTIATE_TEST_SUITE_P(All, VerifierRule, testing::ValuesIn(rules),
                         [](const auto &info) { return info.param.name; });
