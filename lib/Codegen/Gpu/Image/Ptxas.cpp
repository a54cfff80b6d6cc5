//===- Ptxas.cpp - Assembles PTX to a cubin ---------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs NVIDIA's assembler on files in a temporary folder, with a time limit, and reads its output:
//
//   ptxas info    : Compiling entry function 'k' for 'sm_80'       the entry that follows
//       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads    spills
//   ptxas info    : Used 213 registers, used 1 barriers, 388 bytes cmem[0]
//   ptxas info    : (C7510) Potential Performance Loss: ..         warning
//   ptxas k.ptx, line 12; error : ..                                error
//
// Entries are first assembled without a bound on the number of blocks per multiprocessor. ptxas
// then uses few registers, so that many blocks fit, and may spill. An entry that spills then gets a
// bound on the blocks. The bound allows a few more registers per thread. If the entry still spills,
// its bound becomes 1. Each time, all entries are assembled again.
//
//===----------------------------------------------------------------------===//

#include "BoundedProcess.h"
#include "GpuLowering.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELFTypes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include <cstring>

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

/// Returns the number before the text `what` in a line, or 0 if there is none.
static int64_t numberBefore(StringRef line, StringRef what) {
  SmallVector<StringRef> found;
  int64_t number = 0;
  if (llvm::Regex("([0-9]+) " + what.str()).match(line, &found))
    found[1].getAsInteger(10, number);
  return number;
}

static void readReports(StringRef log, GpuImage &image) {
  SmallVector<StringRef> lines, found;
  log.split(lines, '\n', -1, /*KeepEmpty=*/false);
  EntryReport *entry = nullptr;
  image.reports.clear();
  for (StringRef line : lines) {
    if (llvm::Regex("Compiling entry function '([^']*)'").match(line, &found)) {
      entry = &image.reports.emplace_back();
      entry->symbol = found[1].str();
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

static void warnOfSerialised(StringRef log, Location loc) {
  SmallVector<StringRef> lines;
  log.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines)
    if (llvm::Regex("\\((C7[0-9]+)\\)").match(line))
      emitWarning(loc) << "ptxas: " << line.substr(line.find('(')).trim();
}

/// An entry that spilled gets `roomRegisters` additional registers per thread. A multiprocessor
/// runs at most `mostBlocks` blocks.
static constexpr int64_t roomRegisters = 16, mostBlocks = 32;

/// Maps each entry that has a bound to this bound: how many blocks of the entry must fit a
/// multiprocessor.
using Bounds = llvm::StringMap<int64_t>;

/// Returns the position at which the body of an entry begins in the PTX. Returns npos if the PTX
/// has no such entry or if the entry already has a bound.
static size_t findUnbound(StringRef ptx, StringRef symbol) {
  size_t begin = ptx.find((".entry " + symbol + "(").str()), body = ptx.find("\n{", begin);
  if (begin == StringRef::npos || body == StringRef::npos)
    return StringRef::npos;
  StringRef head = ptx.slice(begin, body);
  return head.contains(".minnctapersm") || head.contains(".maxnreg") ? StringRef::npos : body;
}

/// For entries that spill, adds a bound or lowers the bound, so that they get more registers.
/// Returns true if any bound has changed.
static bool widen(const GpuImage &image, StringRef ptx, const GpuTarget &target, Bounds &bounds) {
  llvm::StringMap<int64_t> threads;
  for (const GpuKernel &kernel : image.kernels)
    for (const GpuLaunch &launch : kernel.launches)
      threads[launch.symbol] = launch.threads;
  bool any = false;
  for (const EntryReport &entry : image.reports) {
    if (!(entry.spillStoreBytes + entry.spillLoadBytes) || !threads.contains(entry.symbol) ||
        findUnbound(ptx, entry.symbol) == StringRef::npos)
      continue;
    int64_t registers = threads[entry.symbol] * llvm::alignTo(entry.registers + roomRegisters, 8);
    auto [bound, isNew] = bounds.try_emplace(
        entry.symbol, std::clamp<int64_t>(target.registersPerSm / registers, 1, mostBlocks));
    any |= isNew || bound->second > 1;
    if (!isNew)
      bound->second = 1;
  }
  return any;
}

static std::string withBounds(StringRef ptx, const Bounds &bounds) {
  std::string text = ptx.str();
  for (const auto &[symbol, blocks] : bounds)
    text.insert(findUnbound(text, symbol), "\n.minnctapersm " + std::to_string(blocks));
  return text;
}

static LogicalResult checkSpills(const GpuImage &image, SpillPolicy policy, Location loc) {
  bool fine = true;
  for (const EntryReport &entry : image.reports) {
    if (policy == SpillPolicy::Ignore ||
        !(entry.spillStoreBytes + entry.spillLoadBytes + entry.stackBytes))
      continue;
    auto severity =
        policy == SpillPolicy::Error ? DiagnosticSeverity::Error : DiagnosticSeverity::Warning;
    InFlightDiagnostic diag = loc->getContext()->getDiagEngine().emit(loc, severity);
    diag << "'" << entry.symbol << "' spills: " << entry.spillStoreBytes << " bytes stored, "
         << entry.spillLoadBytes << " bytes loaded, " << entry.stackBytes
         << " bytes of stack, with " << entry.registers << " registers";
    fine &= policy != SpillPolicy::Error;
  }
  return success(fine);
}

static std::string readAll(StringRef path) {
  auto buffer =
      llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// Maximum sizes in bytes: of a file that ptxas writes, of the text that ptxas prints, and of the
/// part of this text that a diagnostic contains. For the largest models, the machine code and the
/// text have some MiB each.
static constexpr uint64_t mostFileBytes = uint64_t(1) << 30;
static constexpr size_t mostLogBytes = size_t(16) << 20, mostNoteBytes = size_t(16) << 10;

/// Attaches the beginning of the output of ptxas to a diagnostic.
static void attachLog(InFlightDiagnostic &diag, StringRef log, Location loc) {
  log = log.trim();
  Diagnostic &note = diag.attachNote(loc);
  if (log.empty())
    note << "ptxas printed nothing";
  else if (log.size() <= mostNoteBytes)
    note << log;
  else
    note << log.take_front(mostNoteBytes) << "\n.. and " << log.size() - mostNoteBytes
         << " more bytes";
}

/// Emits an error that describes how ptxas ended, unless it succeeded.
static LogicalResult checkEnd(const ProcessEnd &end, StringRef ptxas, const CodegenOptions &options,
                              Location loc) {
  auto error = [&]() -> InFlightDiagnostic {
    return std::move(emitError(loc) << "'" << ptxas << "' ");
  };
  switch (end.kind) {
  case ProcessEnd::NotBegun:
    return error() << "cannot be run: " << std::strerror(end.number);
  case ProcessEnd::TimedOut: {
    InFlightDiagnostic diag = error() << "timed out after " << options.ptxasTimeout << " s";
    diag.attachNote(loc) << "raise the limit with --ptxas-timeout=SECONDS";
    return diag;
  }
  case ProcessEnd::WroteTooMuch: {
    InFlightDiagnostic diag = error() << "was stopped: expected at most " << mostLogBytes
                                      << " bytes of output, found more";
    attachLog(diag, end.text, loc);
    return diag;
  }
  case ProcessEnd::Signalled: {
    InFlightDiagnostic diag = error() << "was ended by signal " << end.number << " ("
                                      << strsignal(end.number) << ")";
    attachLog(diag, end.text, loc);
    return diag;
  }
  case ProcessEnd::Exited:
    break;
  }
  if (end.number == 0)
    return success();
  // A shell exits with this code if it cannot find a command.
  constexpr int noCommand = 127;
  InFlightDiagnostic diag = error()
                            << (end.number == noCommand ? "cannot find a program that it runs"
                                                        : "rejects the generated PTX")
                            << " (exit code " << end.number << ")";
  attachLog(diag, end.text, loc);
  return diag;
}

/// Emits an error unless the bytes begin with the ELF header of a CUDA file.
static LogicalResult checkCubin(StringRef bytes, StringRef ptxas, Location loc) {
  using Header = llvm::object::ELF64LE::Ehdr;
  // The fields of the header have an alignment of 1, so that the bytes may have any address.
  auto header = reinterpret_cast<const Header *>(bytes.data());
  std::string found;
  if (bytes.empty())
    found = "nothing";
  else if (bytes.size() < sizeof(Header) || !header->checkMagic() ||
           header->getFileClass() != llvm::ELF::ELFCLASS64)
    found = std::to_string(bytes.size()) + " bytes that are not a 64-bit ELF file";
  else if (header->e_machine != llvm::ELF::EM_CUDA)
    found = "an ELF file of machine " + std::to_string(header->e_machine);
  else
    return success();
  return emitError(loc)
         << "'" << ptxas
         << "' ended without an error, but wrote no cubin: expected an ELF file of machine "
         << static_cast<int>(llvm::ELF::EM_CUDA) << ", found " << found;
}

/// Writes the text to a file, or emits an error.
static LogicalResult writeSource(StringRef text, StringRef path, Location loc) {
  std::error_code ec;
  llvm::raw_fd_ostream os(path, ec);
  if (!ec)
    os << text;
  os.close();
  if (!ec && !(ec = os.error()))
    return success();
  os.clear_error();
  return emitError(loc) << "cannot write '" << path << "': " << ec.message();
}

/// Assembles the PTX of the image by means of files in `folder`, and sets the cubin and the
/// reports. Returns the output of ptxas.
static FailureOr<std::string> run(GpuImage &image, StringRef ptxas, const CodegenOptions &options,
                                  const std::string &folder, Location loc) {
  std::string source = folder + "/kernels.ptx", cubin = folder + "/kernels.cubin";
  if (failed(writeSource(image.ptx, source, loc)))
    return failure();
  std::string arguments[] = {ptxas.str(), "-v", "-arch=" + image.chip, "-O3", source, "-o", cubin};
  ProcessEnd end = runBounded(
      arguments, {static_cast<unsigned>(options.ptxasTimeout), mostLogBytes, mostFileBytes});
  if (failed(checkEnd(end, ptxas, options, loc)))
    return failure();
  std::string bytes = readAll(cubin);
  if (failed(checkCubin(bytes, ptxas, loc)))
    return failure();
  image.cubin.assign(bytes.begin(), bytes.end());
  readReports(end.text, image);
  return end.text;
}

LogicalResult fsdp::assemble(GpuImage &image, StringRef ptxas, const GpuTarget &target,
                             const CodegenOptions &options, Location loc) {
  SmallString<128> folder;
  if (std::error_code ec = llvm::sys::fs::createUniqueDirectory("fsdp-ptxas", folder))
    return emitError(loc) << "cannot make the temporary folder '" << folder.str()
                          << "': " << ec.message();
  llvm::scope_exit remove([&] { (void)llvm::sys::fs::remove_directories(folder); });
  FailureOr<std::string> text = run(image, ptxas, options, folder.str().str(), loc);
  Bounds bounds;
  for (const std::string unbound = image.ptx;
       succeeded(text) && widen(image, unbound, target, bounds);) {
    image.ptx = withBounds(unbound, bounds);
    text = run(image, ptxas, options, folder.str().str(), loc);
  }
  if (failed(text))
    return failure();
  warnOfSerialised(*text, loc);
  if (image.reports.empty() && options.spills == SpillPolicy::Error)
    return emitError(loc)
           << "'" << ptxas
           << "' printed no register counts; --spills=error reads the output of ptxas -v";
  countInstructions(image);
  return checkSpills(image, options.spills, loc);
}
