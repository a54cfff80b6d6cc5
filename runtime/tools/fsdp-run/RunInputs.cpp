//===- RunInputs.cpp - Files that a run reads while it goes on ---*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Before ranks take memory they compare the contents of their inputs. In a run the inputs of a step
// are read first; then each process looks whether a file has changed since it was opened, and tells
// the others. The step runs only where no file has changed in any process, so the state behind the
// last step depends on the content of the start alone. It is saved and exported as at the end of
// any run.
//
//===----------------------------------------------------------------------===//

#include "Trainer.h"
#include <cstdio>
#include <cstring>

using namespace fsdprt;
using ull = unsigned long long;

/// Returns what the ranks of several processes compare, before they take memory.
std::vector<Content> Trainer::contents() const {
  std::vector<Content> all;
  if (tokens) {
    const InputFile &file = tokens->getFile();
    std::string whole = state.dataHash.empty()
                            ? ""
                            : format("%llu bytes with SHA-256 ", (ull)file.size()) + state.dataHash;
    all.push_back(
        {options.text.empty() ? "--data" : "--text",
         std::string(tokens->typeName()) + ", " + (whole.empty() ? tokens->comparison() : whole),
         file.getPath()});
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputFiles[i])
      all.push_back({"--input " + std::string(inputs[i].name), inputFiles[i]->comparison(),
                     inputFiles[i]->getPath()});
  if (resumed.isOpen())
    all.push_back({"the save to go on from", resumed.sha256(), resumed.getFolder()});
  if (!initial.getFiles().empty())
    all.push_back({"--init", initial.comparison(), initial.getPath()});
  return all;
}

/// Says of which files ranks have compared only a part.
void Trainer::announceSamples() {
  auto announce = [&](const InputFile &file) {
    char text[32];
    if (!file.isCompared())
      printer.line(
          "note: %s has %s: ranks compared its size and a sample of %llu MiB, and not every byte",
          file.getPath().c_str(), shortBytes(file.size(), text),
          (ull)(InputFile::sampleBlocks * InputFile::sampleBlockBytes >> 20));
  };
  if (processes == 1)
    return;
  if (tokens && state.dataHash.empty())
    announce(tokens->getFile());
  for (const auto &file : inputFiles)
    if (file && state.inputs.empty())
      announce(file->getFile());
  for (const auto &file : initial.getFiles())
    announce(file->getFile());
}

/// Returns whether the inputs are in place. Otherwise, in all processes alike, the run ends with
/// what it has.
bool Trainer::writeInputs(uint64_t number, bool validating) {
  if (!batches->readFiles()) {
    copyInputs(number, validating);
    return true;
  }
  try {
    copyInputs(number, validating);
    batches->expectUnchanged();
  } catch (const InputChanged &change) {
    std::strncpy(spoiled, change.what(), sizeof spoiled - 1);
  }
  agree();
  return !agreed.spoiled;
}

/// Ends a run whose inputs have changed. All processes report the first one's reason.
void Trainer::failSpoiled() {
  std::vector<char> all(sizeof spoiled * processes);
  call(fsdprt_session_exchange, session.get(), static_cast<const void *>(spoiled), sizeof spoiled,
       static_cast<void *>(all.data()));
  std::string reason;
  for (uint32_t i = 0; i < processes && reason.empty(); ++i)
    if (all[i * sizeof spoiled])
      reason = (processes > 1 ? format("rank %u: ", i) : "") + &all[i * sizeof spoiled];
  bool kept = saver.isOpen() || !options.exportTo.empty();
  failed("%s; the run ended after step %llu of %llu, the last one with the content of the start%s",
         reason.c_str(), (ull)stepsDone, (ull)options.steps,
         kept ? "" : "; without --save or --export the weights are lost");
}
