//===- FuzzJson.cpp - Fuzz the JSON reader and cluster files ----*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//===----------------------------------------------------------------------===//

#include "fsdpcommon/ClusterFile.h"
#include "fsdpcommon/LocatedJson.h"
#include "fuzz/Fuzzing.h"

using namespace fsdprt;
using namespace fsdpcommon;

/// Converts each value to numbers, and checks that the value's description is readable.
static void visit(const JsonValue &value) {
  value.asSigned();
  value.asUnsigned();
  value.asDouble();
  fuzz::expectReadable(value.describe());
  for (const JsonValue &element : value.elements)
    visit(element);
  for (const JsonMember &member : value.members)
    visit(member.value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  JsonProblem problem;
  std::string_view text(reinterpret_cast<const char *>(data), size);
  if (auto root = parseJson(text, problem))
    visit(*root);
  else
    fuzz::expectReadable(problem.message);
  static fuzz::MemoryFile file;
  file.write(data, size);
  problem = {};
  if (!readCluster(file.getPath(), problem))
    fuzz::expectReadable(problem.message);
  return 0;
}
