//===- InputFile.cpp - An input file that may change while in use --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// comparison() hashes evenly spaced blocks of a large file. The first block is at the beginning of
// the file and the last block is at its end.
//
//===----------------------------------------------------------------------===//

#include "io/InputFile.h"
#include "core/HashText.h"
#include "fsdprt/sha256.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr size_t chunkBytes = 1 << 20;

InputFile::InputFile(const std::string &path, const char *what) : path(path) {
  // Without O_NONBLOCK, opening a named pipe would wait for a process that writes to it.
  file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    badInput("%s: cannot open %s: %s", path.c_str(), what, strerror(errno));
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(file);
    badInput("%s: expected %s, found something that is not a file", path.c_str(), what);
  }
  version = look();
}

InputFile::~InputFile() {
  if (file >= 0)
    ::close(file);
}

InputFile &InputFile::operator=(InputFile &&other) noexcept {
  std::swap(path, other.path);
  std::swap(file, other.file);
  std::swap(version, other.version);
  return *this;
}

InputFile::Version InputFile::look() const {
  struct stat status;
  if (fstat(file, &status) != 0)
    throw InputChanged(format("%s: cannot query the open file: %s", path.c_str(), strerror(errno)));
  return {static_cast<uint64_t>(status.st_size), static_cast<uint64_t>(status.st_nlink),
          status.st_mtim, status.st_ctim};
}

void InputFile::refuseChange(const Version &now) const {
  if (now.size != version.size)
    throw InputChanged(
        format("%s: the file changed while it was in use: expected %llu bytes, found %llu",
               path.c_str(), (ull)version.size, (ull)now.size));
  throw InputChanged(format("%s: the file changed while it was in use: another process wrote to it",
                            path.c_str()));
}

static bool isSame(const timespec &a, const timespec &b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

void InputFile::expectUnchanged(bool strictly) const {
  if (file < 0)
    return;
  Version now = look();
  bool touched = strictly && now.names == version.names && !isSame(now.changed, version.changed);
  if (now.size != version.size || !isSame(now.modified, version.modified) || touched)
    refuseChange(now);
}

void InputFile::expectContent(const std::string &content) const {
  expectUnchanged();
  Version now = look();
  if (isSame(now.changed, version.changed))
    return;
  if (comparison() != content)
    refuseChange(now);
  version = now;
}

void InputFile::read(uint64_t offset, void *into, size_t bytes) const {
  auto *to = static_cast<char *>(into);
  while (bytes > 0) {
    ssize_t got = ::pread(file, to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      failed("%s: cannot read byte %llu: %s", path.c_str(), (ull)offset, strerror(errno));
    if (got == 0)
      refuseChange(look());
    to += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
}

std::string InputFile::readAll(uint64_t most) const {
  if (size() > most)
    badInput("%s: expected a file of at most %s, found %s", path.c_str(), bytesText(most).c_str(),
             bytesText(size()).c_str());
  std::string text(size(), '\0');
  read(0, text.data(), text.size());
  return text;
}

/// Returns one SHA-256 over `count` blocks of `bytes` bytes each. Block i begins at offsetOf(i).
template <typename Offset>
static std::string hashBlocks(const InputFile &file, uint64_t count, uint64_t bytes,
                              Offset offsetOf) {
  fsdprt_sha256 hash;
  uint8_t digest[32];
  std::vector<std::byte> chunk(std::min<uint64_t>(chunkBytes, std::max<uint64_t>(bytes, 1)));
  fsdprt_sha256_begin(&hash);
  for (uint64_t i = 0; i < count; ++i)
    for (uint64_t done = 0, part; done < bytes; done += part) {
      part = std::min<uint64_t>(bytes - done, chunk.size());
      file.read(offsetOf(i) + done, chunk.data(), part);
      fsdprt_sha256_update(&hash, chunk.data(), part);
    }
  fsdprt_sha256_end(&hash, digest);
  return hexText(digest);
}

std::string InputFile::sha256() const {
  return hashBlocks(*this, 1, size(), [](uint64_t) { return uint64_t(0); });
}

std::string InputFile::comparison() const {
  if (isCompared())
    return format("%llu bytes with SHA-256 ", (ull)size()) + sha256();
  uint64_t last = size() - sampleBlockBytes;
  std::string hash = hashBlocks(*this, sampleBlocks, sampleBlockBytes, [&](uint64_t i) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(last) * i / (sampleBlocks - 1));
  });
  return format("%llu bytes with SHA-256 of a sample ", (ull)size()) + hash;
}
