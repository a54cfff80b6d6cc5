//===- Grid.cpp - A launch --------------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks that the launch suits the function, and then runs the clusters one after another or, in a
// random order, several at the same time. A cluster may wait for clusters with lower numbers.
//
//===----------------------------------------------------------------------===//

#include "emulator/machine/Machine.h"

using namespace fsdprt;
using namespace fsdprt::emulate;

static constexpr uint64_t maxSharedBytes = 227 << 10, maxThreads = 1024, maxCluster = 16;
/// The CUDA programming guide states these limits of grids and blocks under "Technical
/// Specifications per Compute Capability".
static constexpr uint32_t maxGrid[3] = {0x7fffffff, 65535, 65535}, maxBlock[3] = {1024, 1024, 64};

static Dim dimOf(const uint32_t (&sizes)[3]) { return {sizes[0], sizes[1], sizes[2]}; }

static std::string text(const uint32_t (&sizes)[3]) {
  return format("%u,%u,%u", sizes[0], sizes[1], sizes[2]);
}

Grid::Grid(const Program &program, Memory &memory, const Variables &variables, const Launch &launch,
           Counters &counters)
    : program(program), memory(memory), variables(variables), launch(launch), counters(counters),
      grid(dimOf(launch.grid)), block(dimOf(launch.block)), cluster(dimOf(launch.cluster)),
      executed(program.code.size()), stepsLeft(launch.stepLimit),
      sharedBytes(program.sharedBytes + launch.dynamicSharedBytes) {
  checkShape();
  passArguments();
}

static void checkSizes(const char *name, const char *what, const uint32_t (&sizes)[3],
                       const uint32_t (&most)[3]) {
  for (int i = 0; i < 3; ++i)
    if (sizes[i] > most[i])
      badInput("launch of %s: a %s of %s, expected %s at most", name, what, text(sizes).c_str(),
               text(most).c_str());
}

/// Checks the sizes of grid, block and cluster (PTX ISA, "Performance-Tuning Directives: .reqntid,
/// .maxntid" and "Cluster Dimension Directives").
void Grid::checkShape() const {
  const char *name = launch.entry.c_str();
  const Function &entry = *program.entry;
  for (const uint32_t (*sizes)[3] : {&launch.grid, &launch.block, &launch.cluster})
    for (uint32_t size : *sizes)
      if (!size)
        badInput("launch of %s: the sizes of grid, block and cluster have to be 1 at least", name);
  if (block.count() > maxThreads)
    badInput("launch of %s: a block of %s has more than %llu threads", name,
             text(launch.block).c_str(), static_cast<unsigned long long>(maxThreads));
  checkSizes(name, "grid", launch.grid, maxGrid);
  checkSizes(name, "block", launch.block, maxBlock);
  if (entry.requiredThreads[0] &&
      !std::equal(launch.block, launch.block + 3, entry.requiredThreads))
    badInput("launch of %s: a block of %s, but the function requires %s (.reqntid)", name,
             text(launch.block).c_str(), text(entry.requiredThreads).c_str());
  if (entry.maxThreads[0] && block.count() > dimOf(entry.maxThreads).count())
    badInput("launch of %s: a block of %s, but the function takes %s at most (.maxntid)", name,
             text(launch.block).c_str(), text(entry.maxThreads).c_str());
  if (entry.requiredCluster[0] &&
      !std::equal(launch.cluster, launch.cluster + 3, entry.requiredCluster))
    badInput("launch of %s: a cluster of %s, but the function requires %s (.reqnctapercluster)",
             name, text(launch.cluster).c_str(), text(entry.requiredCluster).c_str());
  if (cluster.count() > maxCluster)
    badInput("launch of %s: a cluster of %s has more than %llu blocks", name,
             text(launch.cluster).c_str(), static_cast<unsigned long long>(maxCluster));
  for (int i = 0; i < 3; ++i)
    if (launch.grid[i] % launch.cluster[i])
      badInput("launch of %s: a grid of %s is no multiple of a cluster of %s", name,
               text(launch.grid).c_str(), text(launch.cluster).c_str());
  if (launch.dynamicSharedBytes > maxSharedBytes || sharedBytes > maxSharedBytes)
    badInput("launch of %s: %s of shared memory, but %s at most", name,
             bytesText(program.sharedBytes + launch.dynamicSharedBytes).c_str(),
             bytesText(maxSharedBytes).c_str());
}

void Grid::passArguments() {
  const auto &wanted = program.entry->parameters;
  if (launch.arguments.size() != wanted.size())
    badInput("launch of %s: expected %zu arguments, found %zu", launch.entry.c_str(), wanted.size(),
             launch.arguments.size());
  parameters.name = "the parameters";
  parameters.resize(program.parameterBytes);
  parameters.isReadOnly = true;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto &bytes = launch.arguments[i];
    if (bytes.size() != wanted[i]->bytes)
      badInput("launch of %s: expected %llu bytes for argument %zu (%s), found %zu",
               launch.entry.c_str(), static_cast<unsigned long long>(wanted[i]->bytes), i,
               std::string(wanted[i]->name).c_str(), bytes.size());
    uint64_t offset = program.parameterOffsets.at(wanted[i]);
    std::copy(bytes.begin(), bytes.end(), parameters.own.begin() + offset);
    std::fill_n(parameters.written.begin() + offset, bytes.size(), 1);
  }
}

void Grid::countOpcodes() {
  for (size_t i = 0; i < executed.size(); ++i)
    if (executed[i]) {
      counters.instructions += executed[i];
      counters.opcodes[std::string(program.code[i].opcode)] += executed[i];
    }
}

/// Runs the clusters. At most one runs at a time or, if the order is random, at most four.
void Grid::runClusters() {
  constexpr size_t together = 4;
  std::minstd_rand random(launch.seed);
  std::vector<std::unique_ptr<Cluster>> running;
  uint64_t clusters = grid.count() / cluster.count();
  for (uint64_t next = 0; next < clusters || !running.empty();) {
    while (next < clusters && running.size() < (launch.seed ? together : 1))
      running.push_back(std::make_unique<Cluster>(*this, next++));
    auto drawn = running.begin() + (launch.seed ? random() % running.size() : 0);
    if (!(*drawn)->runRound(launch.seed ? &random : nullptr))
      running.erase(drawn);
  }
}

void Grid::run() {
  memory.firstGroup = memory.nextGroup;
  try {
    runClusters();
  } catch (Error &error) {
    // The running program caused the error, so the error is not reported as a wrong input of the
    // launch.
    error.status = FSDPRT_FAILED;
    throw;
  }
  countOpcodes();
}
