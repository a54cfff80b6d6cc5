//===- ParamSlice.cpp - The part of a parameter that a rank has -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "artifact/ParamSlice.h"
#include "artifact/Artifact.h"
#include "artifact/Verifier.h"

using namespace fsdprt;

static std::vector<uint64_t> listOf(const flatbuffers::Vector<uint64_t> *sizes) {
  return sizes ? std::vector<uint64_t>(sizes->begin(), sizes->end()) : std::vector<uint64_t>();
}

ParamSlice::ParamSlice(const fb::Param &param, const Mesh &mesh)
    : SlicedShape(listOf(param.shape()), param.split() ? param.split()->dim() : 0,
                  param.split() ? listOf(param.split()->blocks()) : std::vector<uint64_t>(),
                  mesh.sizeOf("tensor")) {}

std::string fsdprt::problemOfSplit(const fb::Param &param, const Mesh &mesh) {
  const auto *blocks = param.split()->blocks();
  return SlicedShape::problemOf(listOf(param.shape()), param.split()->dim(),
                                isAligned(blocks) ? listOf(blocks) : std::vector<uint64_t>(),
                                mesh.sizeOf("tensor"));
}

bool fsdprt::isReferenceLayout(const fb::Manifest &manifest, uint32_t index, WorkLimit &work) {
  for (uint32_t i = 0; manifest.programs() && i < manifest.programs()->size(); ++i) {
    const fb::Program &program = *manifest.programs()->Get(i);
    work.spend(1);
    if (program.layout() == index && program.name() && isReferenceProgram(program.name()->str()))
      return true;
  }
  return false;
}
