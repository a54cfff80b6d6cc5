//===- MemoryLimit.cpp - Check the arena against a limit --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   error: a rank's arena takes 8.0 GiB .., --memory-limit allows 6.0 GiB ..;
//          memory peaks at command ..
//   note: activations: 6.0 GiB in 210 buffers, the largest 48.0 MiB .. here; ..
//
// The notes describe categories of buffers, not single buffers. A model has many buffers of similar
// size, so a list of the largest buffers would not explain the peak. A note counts only buffers
// that are live at the command with the most live bytes.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/MemoryLimit.h"
#include "fsdp/Analysis/Commands.h"
#include "fsdp/Analysis/PlanMeasures.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Number of categories for which the error has a note.
static constexpr unsigned maxCategories = 3;

/// Returns advice on options that reduce the memory of a category.
static StringRef advise(Category category, bool severalRanks) {
  switch (category) {
  case Category::parameters:
    return "more ranks on the shard axis (--mesh=shard=N) each keep less; --offload=parameters "
           "keeps them on the host";
  case Category::optimizer:
    return "more ranks on the shard axis (--mesh=shard=N) each keep less; --offload=optimizer "
           "keeps it on the host; --optimizer-state-dtype=bf16 or --optimizer=sgd needs less";
  case Category::gradients:
    return severalRanks ? "more ranks on the shard axis each keep less, and --grad-sync=each "
                          "reduces them with every "
                          "micro-batch"
                        : "more ranks on the shard axis (--mesh=shard=N) each keep less";
  case Category::activations:
    return "--activation-checkpointing=full computes them again; --offload=activations keeps "
           "them on the host; a smaller batch in the model, with --grad-accum=N for as many tokens "
           "per step; --param-dtype=bf16 halves them";
  case Category::gathered:
  case Category::staging:
    return "smaller units (--auto-wrap-policy) and --reshard-after-forward=true gather less at a "
           "time";
  case Category::workspace:
    return "fewer --threads-per-rank need less scratch; so does a smaller --gemm-workspace-bytes "
           "with cuBLASLt";
  case Category::inputs:
    return "a smaller batch in the model";
  case Category::control:
    return "it steers the step";
  case Category::snapshot:
    return "without --async-save there is no copy of the state";
  }
  llvm_unreachable("a category without advice");
}

static bool isInFile(Location loc) {
  bool found = false;
  loc->walk([&](Location part) {
    auto file = dyn_cast<FileLineColLoc>(part);
    found |= file && file.getLine() > 0;
    return WalkResult::advance();
  });
  return found;
}

/// Attaches a note on one category. The note states the bytes of the category and its largest
/// buffer, and gives advice.
static void addNote(InFlightDiagnostic &diag, const MemoryReport &memory, Category category,
                    bool severalRanks) {
  BufferOp largest;
  int64_t number = 0;
  for (BufferOp buffer : memory.peakBuffers)
    if (buffer.getCategory() == category) {
      largest = largest ? largest : buffer;
      ++number;
    }
  std::string text =
      (stringifyCategory(category) + ": " + formatSize(memory.getAtPeak(category))).str();
  std::optional<Location> place;
  if (largest) {
    bool located = isInFile(largest.getLoc());
    if (located && category == Category::activations)
      place = largest.getLoc();
    text += (number == 1 ? " in one buffer, "
                         : " in " + std::to_string(number) + " buffers, the largest ") +
            (number == 1 ? "" : formatSize(largest.getBytes()) + " of ") + "'" +
            largest.getLabel().str() + "'" + (place ? " here" : "");
  }
  diag.attachNote(place) << text << "; " << advise(category, severalRanks);
}

LogicalResult fsdp::checkMemoryLimit(ModuleOp planned, int64_t limit) {
  MemoryReport memory = measureMemory(planned);
  bool isAsked = limit > 0 && limit < kMaxArenaBytes;
  limit = isAsked ? limit : kMaxArenaBytes;
  if (memory.peak <= limit)
    return success();
  bool severalRanks =
      llvm::any_of(planned.getOps<MeshOp>(), [](MeshOp mesh) { return mesh.getNumRanks() > 1; });
  InFlightDiagnostic diag = planned.emitError("a rank's arena takes ");
  diag << memory.peak << " bytes (" << formatSize(memory.peak) << "), "
       << (isAsked ? "--memory-limit allows " : "artifacts may have at most ") << limit << " ("
       << formatSize(limit) << ")";
  if (memory.peakCommand)
    diag << "; memory peaks at command " << memory.peakNumber << " of @"
         << memory.peakCommand->getParentOfType<ProgramOp>().getSymName() << " ("
         << describeCommand(memory.peakCommand) << ")";
  SmallVector<Category> order;
  for (unsigned category = 0; category < numCategories; ++category)
    if (memory.atPeak[category] > 0)
      order.push_back(static_cast<Category>(category));
  llvm::stable_sort(
      order, [&](Category a, Category b) { return memory.getAtPeak(a) > memory.getAtPeak(b); });
  for (Category category : ArrayRef(order).take_front(maxCategories))
    addNote(diag, memory, category, severalRanks);
  return failure();
}
