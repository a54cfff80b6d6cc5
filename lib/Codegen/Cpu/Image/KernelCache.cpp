//===- KernelCache.cpp - Cache of compiled kernels on disk ------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The cache has one file per kernel. The name of a file is a hash of everything that determines the
// kernel's code:
//
//     build ids of the compiler and its libraries   ─┐
//     lowering: for a CPU, or of the reference       ├─ SHA-256 ─> llvmcache-4f1c…
//     triple, CPU, features, tuning of the target    │
//     the printed kernel (its name is a hash too)   ─┘
//
//     llvmcache-4f1c…:   hash of the rest, 16 digits │
//                        {"key": "4f1c…", "phases": .., "shared": .., "worker": ..}   │ newline │
//                        ELF object
//
//  1. Read the file. A file counts as missing if its hash is wrong, if it contains another key, or
//     if it is a symbolic link. It also counts as missing if a user other than root and the current
//     user owns the file or can write to it.
//  2. If the file is missing, compile the kernel, write a temporary file and rename it. If two
//     compilers write the file at the same time, both write the same bytes.
//  3. At the end, LLVM's pruning deletes files that were not used for a week. If the folder has
//     more than 4 GiB, it also deletes the least recently used files.
//
// GPU kernels are not cached, because all GPU kernels of a program are compiled in one module.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Codegen/KernelCache.h"
#include "fsdp/Analysis/LocatedJson.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/xxhash.h"
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::fsdp;

static constexpr StringLiteral layout = "fsdp kernel cache 3";
static constexpr StringLiteral prefix = "llvmcache-"; // the prefix that LLVM's pruning requires
static constexpr uint64_t mostBytes = UINT64_C(4) << 30;
static constexpr size_t hashDigits = 16;

/// Returns the build id from the notes of a loaded object, or an empty string if there is none.
static StringRef findBuildId(const dl_phdr_info &object) {
  for (const ElfW(Phdr) &segment : ArrayRef(object.dlpi_phdr, object.dlpi_phnum)) {
    if (segment.p_type != PT_NOTE)
      continue;
    StringRef notes(reinterpret_cast<const char *>(object.dlpi_addr + segment.p_vaddr),
                    segment.p_memsz);
    while (notes.size() >= sizeof(ElfW(Nhdr))) {
      const auto *note = reinterpret_cast<const ElfW(Nhdr) *>(notes.data());
      uint64_t name = llvm::alignTo(note->n_namesz, 4),
               size = sizeof(*note) + name + llvm::alignTo(note->n_descsz, 4);
      if (size > notes.size())
        break;
      if (note->n_type == NT_GNU_BUILD_ID &&
          notes.substr(sizeof(*note), note->n_namesz) == StringRef("GNU", 4))
        return notes.substr(sizeof(*note) + name, note->n_descsz);
      notes = notes.drop_front(size);
    }
  }
  return "";
}

/// Appends the identity of a loaded object: its build id, or the size and modification time of its
/// file. If the file does not exist, returns 1, which ends the iteration over objects.
static int addObject(dl_phdr_info *object, size_t, void *to) {
  auto &text = *static_cast<std::string *>(to);
  StringRef path = object->dlpi_name, id = findBuildId(*object);
  // Skip the vDSO, which belongs to the operating system and not to the compiler.
  if (path.contains("vdso"))
    return 0;
  text += "\n";
  if (!id.empty()) {
    text += id;
    return 0;
  }
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path.empty() ? "/proc/self/exe" : path, status))
    return 1;
  text += path.str() + " " + std::to_string(status.getSize()) + " " +
          std::to_string(status.getLastModificationTime().time_since_epoch().count());
  return 0;
}

FailureOr<std::unique_ptr<KernelCache>> KernelCache::open(StringRef folder, Location loc) {
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    return emitError(loc) << "cannot make the folder '" << folder
                          << "' for compiled kernels: " << error.message();
  if (!llvm::sys::fs::is_directory(folder))
    return emitError(loc) << "expected a folder for compiled kernels, found the file '" << folder
                          << "'";
  std::string compiler(layout);
  if (dl_iterate_phdr(addObject, &compiler))
    return emitError(loc)
           << "cannot identify this build of the compiler, so kernels cannot be cached in '"
           << folder << "'";
  return std::unique_ptr<KernelCache>(new KernelCache(folder, compiler));
}

KernelCache::~KernelCache() {
  llvm::CachePruningPolicy policy;
  policy.MaxSizeBytes = mostBytes;
  llvm::pruneCache(folder, policy);
}

std::string KernelCache::getKey(func::FuncOp kernel, StringRef lowering,
                                const CpuTarget &target) const {
  std::string text = compiler;
  llvm::raw_string_ostream os(text);
  os << "\n" << lowering;
  for (StringRef part : {StringRef(target.triple), StringRef(target.cpu),
                         StringRef(target.features), StringRef(target.tune)})
    os << "\n" << part;
  os << "\n"
     << target.vectorBits << " " << static_cast<int>(target.bf16) << " " << target.hasDistantCache
     << "\n";
  kernel->print(os, OpPrintingFlags().printGenericOpForm());
  // Append the data of resource constants, because print() prints only the names of resources.
  kernel->walk([&](Operation *op) {
    op->getAttrDictionary().walk([&](DenseResourceElementsAttr constant) {
      if (const AsmResourceBlob *blob = constant.getRawHandle().getBlob())
        os << "\n" << StringRef(blob->getData().data(), blob->getData().size());
    });
  });
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)), /*LowerCase=*/true);
}

std::string KernelCache::getPath(StringRef key) const {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, prefix + key);
  return path.str().str();
}

static std::string getHash(StringRef bytes) {
  std::string digits;
  llvm::raw_string_ostream(digits)
      << llvm::format_hex_no_prefix(llvm::xxh3_64bits(bytes), hashDigits);
  return digits;
}

/// Returns the content of a file if only this user or root can have written it, otherwise null.
/// Sets `isForeign` if another user can have written the file.
static std::unique_ptr<llvm::MemoryBuffer> readOwnFile(const std::string &path, bool &isForeign) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  // A symbolic link counts as a file that another user can have written.
  isForeign = file < 0 && errno == ELOOP;
  if (file < 0)
    return nullptr;
  struct stat status;
  bool isKnown = ::fstat(file, &status) == 0;
  isForeign = !isKnown || !S_ISREG(status.st_mode) ||
              (status.st_uid != ::geteuid() && status.st_uid != 0) ||
              (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  std::unique_ptr<llvm::MemoryBuffer> content;
  if (!isForeign)
    if (auto buffer = llvm::MemoryBuffer::getOpenFile(
            file, path, status.st_size, /*RequiresNullTerminator=*/false, /*IsVolatile=*/true))
      content = std::move(*buffer);
  ::close(file);
  return content;
}

/// Reads the JSON text of a file into `info`. Returns false if the text has another key or is
/// malformed.
static bool readFacts(StringRef text, StringRef key, KernelInfo &info) {
  JsonProblem problem;
  std::optional<JsonValue> facts = parseJson(text, problem);
  const JsonMember *own = facts ? facts->find("key") : nullptr;
  if (!own || own->value.text != key)
    return false;
  auto readNumber = [](const JsonValue &object, StringRef name, int64_t &number) {
    const JsonMember *member = object.find(name);
    std::optional<int64_t> value = member ? member->value.asSigned() : std::nullopt;
    number = value.value_or(0);
    return value.has_value();
  };
  const JsonMember *phases = facts->find("phases");
  info.phases.clear();
  for (const JsonValue &phase : phases ? phases->value.elements : std::vector<JsonValue>()) {
    PhaseInfo &added = info.phases.emplace_back();
    const JsonMember *symbol = phase.find("symbol");
    if (!symbol || !readNumber(phase, "extent", added.extent) ||
        !readNumber(phase, "tile", added.tile))
      return false;
    added.symbol = symbol->value.text;
  }
  return !info.phases.empty() && readNumber(*facts, "shared", info.sharedBytes) &&
         readNumber(*facts, "worker", info.workerBytes);
}

bool KernelCache::read(StringRef key, KernelInfo &info, Object &object) {
  bool isForeign;
  std::unique_ptr<llvm::MemoryBuffer> file = readOwnFile(getPath(key), isForeign);
  foreign += isForeign;
  if (!file)
    return false;
  StringRef digits = file->getBuffer().take_front(hashDigits),
            rest = file->getBuffer().drop_front(digits.size());
  if (digits != getHash(rest))
    return false;
  auto [facts, code] = rest.split('\n');
  KernelInfo stored;
  if (!readFacts(facts, key, stored))
    return false;
  info.phases = std::move(stored.phases);
  info.sharedBytes = stored.sharedBytes;
  info.workerBytes = stored.workerBytes;
  object.assign(code.begin(), code.end());
  return true;
}

void KernelCache::write(StringRef key, const KernelInfo &info, const Object &object) {
  llvm::json::Array phases;
  for (const PhaseInfo &phase : info.phases)
    phases.push_back(llvm::json::Object{
        {"symbol", phase.symbol}, {"extent", phase.extent}, {"tile", phase.tile}});
  llvm::json::Object facts{{"key", key},
                           {"phases", std::move(phases)},
                           {"shared", info.sharedBytes},
                           {"worker", info.workerBytes}};
  std::string rest;
  llvm::raw_string_ostream(rest) << llvm::json::Value(std::move(facts)) << '\n'
                                 << StringRef(object.data(), object.size());
  auto write = [&]() -> llvm::Error {
    // Only the owner may write the file, whatever the umask allows.
    auto mode = static_cast<unsigned>(llvm::sys::fs::all_read | llvm::sys::fs::owner_write);
    std::string path = getPath(key);
    llvm::Expected<llvm::sys::fs::TempFile> file =
        llvm::sys::fs::TempFile::create(path + ".tmp-%%%%%%", mode);
    if (!file)
      return file.takeError();
    llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
    os << getHash(rest) << rest;
    os.flush();
    std::error_code error = os.error();
    // The error is cleared because the stream's destructor would otherwise end the process.
    os.clear_error();
    if (!error)
      return file->keep(path);
    return llvm::joinErrors(llvm::errorCodeToError(error), file->discard());
  };
  if (llvm::Error error = write()) {
    std::lock_guard<std::mutex> guard(lock);
    std::string why = llvm::toString(std::move(error));
    if (failure.empty())
      failure = why;
  }
}

FailureOr<KernelCache::Object>
KernelCache::get(func::FuncOp kernel, StringRef lowering, const CpuTarget &target, KernelInfo &info,
                 function_ref<FailureOr<Object>(func::FuncOp, KernelInfo &)> compile) {
  ++asked;
  std::string key = getKey(kernel, lowering, target);
  Object object;
  if (read(key, info, object)) {
    ++found;
    return object;
  }
  FailureOr<Object> compiled = compile(kernel, info);
  if (succeeded(compiled))
    write(key, info, *compiled);
  return compiled;
}

void KernelCache::warnOfFiles(Location loc) const {
  if (foreign > 0)
    emitWarning(loc) << "files of compiled kernels in '" << folder << "' are not used ("
                     << foreign.load()
                     << "): another user owns or can write them, or they are links";
  if (!failure.empty())
    emitWarning(loc) << "cannot write compiled kernels to '" << folder << "': " << failure;
}
