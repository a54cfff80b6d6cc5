//===- CommandGraphTest.cpp - Which command must follow which ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Random programs of fills, copies and loops. The test lists the bytes that each command accesses,
// over all iterations and ranks. The graph must order two commands that access a common byte if one
// writes it.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/CommandGraph.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <random>
#include <set>

using namespace mlir;
using namespace mlir::fsdp;

static constexpr int64_t ranks = 3, iterations = 4, second = 4096;

namespace {
/// The bytes that a command reads and writes. Bytes of buffer @b are numbered from `second`.
struct Bytes {
  std::set<int64_t> read, written;
  bool isSpread = false; ///< A slice has a step or a piece: the graph may be conservative.
};
} // namespace

static bool meets(const std::set<int64_t> &a, const std::set<int64_t> &b) {
  return llvm::any_of(a, [&](int64_t byte) { return b.count(byte) != 0; });
}

/// Returns true if the two commands must keep their order.
static bool conflict(const Bytes &a, const Bytes &b) {
  return meets(a.written, b.written) || meets(a.written, b.read) || meets(a.read, b.written);
}

namespace {
/// Writes a random program and records the bytes that its commands access.
class Writer {
public:
  explicit Writer(unsigned seed) : random(seed) {}

  std::string write() {
    std::string text = "fsdp.mesh @mesh [#fsdp.axis<\"shard\", [" + std::to_string(ranks) +
                       "]>]\nfsdp.layout @arena arena 0 {\n  fsdp.buffer @a \"a\" activations "
                       "4096\n  fsdp.buffer @b "
                       "\"b\" activations 4096\n}\n"
                       "fsdp.program @step layout @arena mesh @mesh {\n";
    for (int i = 0; i < 10; ++i) {
      commands.emplace_back();
      if (below(4) == 0) {
        text += "  fsdp.loop " + std::to_string(iterations) + " {\n";
        for (int64_t inner = below(2); inner >= 0; --inner)
          text += command(/*inLoop=*/true);
        text += "  }\n";
      } else {
        text += command(/*inLoop=*/false);
      }
    }
    return text + "}\n";
  }

  std::vector<Bytes> commands;

private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random() % n); }

  /// Returns the text of a random slice of a buffer, and adds its bytes to the last command.
  std::string slice(int64_t buffer, bool inLoop, bool writes, int64_t bytes) {
    int64_t offset = below(64), step = inLoop && below(2) ? below(12) + 1 : 0,
            piece = below(3) == 0 ? below(20) + 1 : 0;
    Bytes &touched = commands.back();
    for (int64_t k = 0; k < (step ? iterations : 1); ++k)
      for (int64_t rank = 0; rank < (piece ? ranks : 1); ++rank)
        for (int64_t byte = 0; byte < bytes; ++byte)
          (writes ? touched.written : touched.read)
              .insert(buffer * second + offset + k * step + rank * piece + byte);
    touched.isSpread |= step || piece;
    std::string text = std::string(buffer ? "@b" : "@a") + "[" + std::to_string(offset) + ", " +
                       std::to_string(bytes) + "]";
    if (step)
      text += " step " + std::to_string(step);
    if (piece)
      text += " piece " + std::to_string(piece) + " of [\"shard\"]";
    return text;
  }

  std::string command(bool inLoop) {
    int64_t bytes = below(8) + 1, buffer = below(2);
    if (below(2))
      return "    fsdp.fill " + slice(buffer, inLoop, true, bytes) + "\n";
    std::string source = slice(buffer, inLoop, false, bytes);
    return "    fsdp.copy " + source + " -> " + slice(1 - buffer, inLoop, true, bytes) + "\n";
  }

  std::mt19937 random;
};
} // namespace

TEST(CommandGraph, KeepsTheOrderOfCommandsThatMeet) {
  MLIRContext context;
  context.loadDialect<FSDPDialect>();
  unsigned numOrdered = 0, numSpread = 0, numFree = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    Writer writer(seed);
    std::string text = writer.write();
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    SymbolTableCollection tables;
    auto program = *module->getOps<ProgramOp>().begin();
    CommandGraph graph(program.getBody().front(), tables);
    ASSERT_EQ(graph.getCommands().size(), writer.commands.size());
    for (unsigned later = 0; later < writer.commands.size(); ++later)
      for (unsigned earlier = 0; earlier < later; ++earlier) {
        const Bytes &a = writer.commands[earlier], &b = writer.commands[later];
        bool isOrdered = llvm::is_contained(graph.getBefore(later), earlier),
             mustBe = conflict(a, b);
        EXPECT_EQ(isOrdered, llvm::is_contained(graph.getAfter(earlier), later));
        EXPECT_TRUE(isOrdered || !mustBe) << "commands " << earlier << " and " << later << " of\n"
                                          << text;
        if (!a.isSpread && !b.isSpread)
          EXPECT_EQ(isOrdered, mustBe) << "commands " << earlier << " and " << later << " of\n"
                                       << text;
        numOrdered += mustBe;
        numSpread += mustBe && (a.isSpread || b.isSpread);
        numFree += !mustBe;
      }
  }
  // The programs contain enough pairs of each kind.
  EXPECT_GT(numOrdered, 500u);
  EXPECT_GT(numSpread, 300u);
  EXPECT_GT(numFree, 500u);
}
