//===- Ptxas.cpp - PTX to a cubin -------------------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs NVIDIA's assembler on files of a temporary folder, with a limit of time, and reads
// what it prints:
//
//   ptxas info    : Compiling entry function 'k' for 'sm_80'       the entry that follows
//       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 213 registers, used 1 barriers, 388 bytes cmem[0]
//   ptxas info    : (C7510) Potential Performance Loss: ..         warning
//   ptxas k.ptx, line 12; error : ..                                error
//
//===----------------------------------------------------------------------===//

#include "GpuLowering.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace mlir::fsdp;

std::string fsdp::findPtxas() {
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  SmallVector<std::string> folders;
  for (const char *name : {"CUDA_HOME", "CUDA_PATH"})
    if (auto value = llvm::sys::Process::GetEnv(name))
      folders.push_back(*value);
  folders.push_back("/usr/local/cuda");
  for (const std::string &folder : folders)
    if (auto found = llvm::sys::findProgramByName("ptxas", {folder + "/bin"}))
      return *found;
  return {};
}

//===----------------------------------------------------------------------===//
// The log
//===----------------------------------------------------------------------===//

/// The number before `what`, 0 when there is none.
static int64_t numberBefore(StringRef line, StringRef what) {
  SmallVector<StringRef> found;
  int64_t number = 0;
  if (llvm::Regex("([0-9]+) " + what.str()).match(line, &found))
    found[1].getAsInteger(10, number);
  return number;
}

static void readLog(StringRef log, GpuImage &image, Location loc) {
  SmallVector<StringRef> lines, found;
  log.split(lines, '\n', -1, /*KeepEmpty=*/false);
  EntryReport *entry = nullptr;
  for (StringRef line : lines) {
    if (llvm::Regex("Compiling entry function '([^']*)'").match(line, &found)) {
      entry = &image.reports.emplace_back();
      entry->symbol = found[1].str();
    } else if (llvm::Regex("\\((C7[0-9]+)\\)").match(line, &found)) {
      emitWarning(loc) << "ptxas: " << line.substr(line.find('(')).trim();
    }
    if (!entry)
      continue;
    if (line.contains("bytes stack frame")) {
      entry->stackBytes = numberBefore(line, "bytes stack frame");
      entry->spillStoreBytes = numberBefore(line, "bytes spill stores");
      entry->spillLoadBytes = numberBefore(line, "bytes spill loads");
    } else if (line.contains("registers")) {
      entry->registers = numberBefore(line, "registers");
      entry->barriers = numberBefore(line, "barriers");
      entry->sharedBytes = numberBefore(line, "bytes smem");
    }
  }
}

static LogicalResult checkSpills(const GpuImage &image, SpillPolicy policy, Location loc) {
  bool fine = true;
  for (const EntryReport &entry : image.reports) {
    if (policy == SpillPolicy::Ignore || !(entry.spillStoreBytes + entry.spillLoadBytes + entry.stackBytes))
      continue;
    auto severity = policy == SpillPolicy::Error ? DiagnosticSeverity::Error : DiagnosticSeverity::Warning;
    InFlightDiagnostic diag = loc->getContext()->getDiagEngine().emit(loc, severity);
    diag << "'" << entry.symbol << "' spills: " << entry.spillStoreBytes << " bytes stored, " << entry.spillLoadBytes
         << " bytes loaded, " << entry.stackBytes << " bytes of stack, with " << entry.registers << " registers";
    fine &= policy != SpillPolicy::Error;
  }
  return success(fine);
}

//===----------------------------------------------------------------------===//
// The run
//===----------------------------------------------------------------------===//

static std::string readAll(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

LogicalResult fsdp::assemble(GpuImage &image, StringRef ptxas, const GpuOptions &options, Location loc) {
  SmallString<128> folder;
  if (std::error_code ec = llvm::sys::fs::createUniqueDirectory("fsdp-ptxas", folder))
    return emitError(loc) << "cannot make a temporary folder: " << ec.message();
  llvm::scope_exit remove([&] { (void)llvm::sys::fs::remove_directories(folder); });
  std::string source = (folder + "/kernels.ptx").str(), cubin = (folder + "/kernels.cubin").str(), log = (folder + "/log").str();
  {
    std::error_code ec;
    llvm::raw_fd_ostream os(source, ec);
    if (!ec)
      os << image.ptx;
    os.close();
    if (ec || (ec = os.error())) {
      os.clear_error();
      return emitError(loc) << "cannot write '" << source << "': " << ec.message();
    }
  }
  std::string arch = "-arch=" + image.chip, problem;
  StringRef arguments[] = {ptxas, "-v", arch, "-O3", source, "-o", cubin};
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(log), StringRef(log)};
  int status = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt, redirects, options.assemblerSeconds, 0, &problem);
  std::string text = readAll(log);
  if (status < 0)
    return emitError(loc) << "'" << ptxas << "' did not end: "
                          << (status == -2 ? "no result within " + std::to_string(options.assemblerSeconds) + " s, or a signal" : problem);
  if (status) {
    InFlightDiagnostic diag = emitError(loc) << "'" << ptxas << "' rejects the generated PTX";
    diag.attachNote(loc) << StringRef(text).trim();
    return diag;
  }
  readLog(text, image, loc);
  std::string bytes = readAll(cubin);
  image.cubin.assign(bytes.begin(), bytes.end());
  countInstructions(image);
  return checkSpills(image, options.spills, loc);
}
