//===- RankFile.cpp - A file for a rank's offloaded state -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Direct I/O copies only whole blocks, and only between the disk and memory that is aligned to
// blocks:
//
//   range    |  x|xxxxxxxx|xxxxxxxx|xx  |        blocks of 4 KiB
//            bounce  direct (or bounce)  bounce
//
//  1. A block of which only a part is copied goes through a bounce buffer. Before such a block is
//     written, read the whole block into the bounce buffer.
//  2. Whole blocks are copied directly if the memory is aligned to blocks, and otherwise through
//     the bounce buffer.
//
// If the file system does not support direct I/O, the same steps copy through the page cache.
//
//===----------------------------------------------------------------------===//

#include "device/RankFile.h"
#include "core/Error.h"
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr uint64_t blockBytes = 4096, bounceBytes = uint64_t(1) << 20,
                          mostAtOnce = uint64_t(1) << 30;

std::string fsdprt::temporaryDirectory() {
  const char *given = std::getenv("TMPDIR");
  return given && *given ? given : "/tmp";
}

RankFile::RankFile(const std::string &directory, uint32_t rank, uint64_t bytes)
    : directory(directory), rank(rank), size((bytes + blockBytes - 1) / blockBytes * blockBytes),
      bounce(static_cast<std::byte *>(std::aligned_alloc(blockBytes, bounceBytes)), std::free) {
  if (!bounce)
    failed("cannot allocate %s for the file of rank %u", bytesText(bounceBytes).c_str(), rank);
  // Fill the buffer with zeros, so that its pages are allocated before the first step.
  std::memset(bounce.get(), 0, bounceBytes);
  open();
  try {
    preallocate();
  } catch (...) {
    ::close(file);
    throw;
  }
  int flags = fcntl(file, F_GETFL);
  direct = flags >= 0 && fcntl(file, F_SETFL, flags | O_DIRECT) == 0;
}

RankFile::~RankFile() { ::close(file); }

/// Opens a file that has no name. If the file system does not support such files, creates a file
/// and removes its name.
void RankFile::open() {
  file = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0)
    return;
  int reason = errno;
  if (reason == EOPNOTSUPP || reason == EISDIR || reason == EINVAL) {
    std::string name = directory + "/fsdp-offload-XXXXXX";
    file = mkostemp(name.data(), O_CLOEXEC);
    reason = errno;
    if (file >= 0 && ::unlink(name.c_str()) == 0)
      return;
    if (file >= 0)
      ::close(file);
  }
  badInput("%s: cannot create the file for the offloaded state of rank %u: %s",
           printable(directory).c_str(), rank, strerror(reason));
}

void RankFile::preallocate() {
  int reason;
  do
    reason = posix_fallocate(file, 0, static_cast<off_t>(size));
  while (reason == EINTR);
  if (reason != 0)
    failed("%s: cannot allocate %s for the offloaded state of rank %u: %s",
           printable(directory).c_str(), bytesText(size).c_str(), rank, strerror(reason));
}

void RankFile::fail(const char *doing, uint64_t offset, uint64_t bytes, int reason) const {
  failed("%s: cannot %s [%llu, +%llu) of the file for the offloaded state of rank %u: %s",
         printable(directory).c_str(), doing, (ull)offset, (ull)bytes, rank,
         reason ? strerror(reason) : "unexpected end of file");
}

/// One step of a copy. The step handles a range of whole blocks. It skips the first `skip` bytes of
/// the range, and copies the `bytes` bytes that follow. The range begins at offset `base` of the
/// file and has `span` bytes.
struct RankFile::Piece {
  uint64_t base, span, skip, bytes;
  bool bounces;
  bool isPartial() const { return bytes != span; }
};

RankFile::Piece RankFile::nextPiece(uint64_t offset, const void *memory, uint64_t bytes) const {
  uint64_t skip = offset % blockBytes;
  if (skip != 0 || bytes < blockBytes)
    return {offset - skip, blockBytes, skip, std::min(bytes, blockBytes - skip), true};
  bool bounces = reinterpret_cast<uintptr_t>(memory) % blockBytes != 0;
  uint64_t whole = std::min(bytes / blockBytes * blockBytes, bounces ? bounceBytes : mostAtOnce);
  return {offset, whole, 0, whole, bounces};
}

void RankFile::readExactly(uint64_t offset, std::byte *to, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    ssize_t now = pread(file, to + done, bytes - done, static_cast<off_t>(offset + done));
    if (now < 0 && errno == EINTR)
      continue;
    if (now <= 0)
      fail("read", offset, bytes, now < 0 ? errno : 0);
    done += static_cast<uint64_t>(now);
  }
}

/// Throws Error if another program has made the file shorter. Without this check, a write after the
/// new end would make the file longer again, and reads of the lost bytes would return zeros.
void RankFile::checkWhole(uint64_t offset, uint64_t bytes) const {
  struct stat status;
  if (fstat(file, &status) != 0)
    fail("write", offset, bytes, errno);
  if (static_cast<uint64_t>(status.st_size) < size)
    fail("write", offset, bytes, 0);
}

void RankFile::writeExactly(uint64_t offset, const std::byte *from, uint64_t bytes) {
  checkWhole(offset, bytes);
  for (uint64_t done = 0; done < bytes;) {
    ssize_t now = pwrite(file, from + done, bytes - done, static_cast<off_t>(offset + done));
    if (now < 0 && errno == EINTR)
      continue;
    if (now <= 0)
      fail("write", offset, bytes, now < 0 ? errno : ENOSPC);
    done += static_cast<uint64_t>(now);
  }
  // Check again, because another program may have made the file shorter during the copy.
  checkWhole(offset, bytes);
}

void RankFile::read(uint64_t offset, void *memory, uint64_t bytes) {
  std::lock_guard lock(mutex);
  for (auto *to = static_cast<std::byte *>(memory); bytes > 0;) {
    Piece piece = nextPiece(offset, to, bytes);
    readExactly(piece.base, piece.bounces ? bounce.get() : to, piece.span);
    if (piece.bounces)
      std::memcpy(to, bounce.get() + piece.skip, piece.bytes);
    offset += piece.bytes;
    to += piece.bytes;
    bytes -= piece.bytes;
  }
}

void RankFile::write(uint64_t offset, const void *memory, uint64_t bytes) {
  std::lock_guard lock(mutex);
  for (const auto *from = static_cast<const std::byte *>(memory); bytes > 0;) {
    Piece piece = nextPiece(offset, from, bytes);
    if (piece.isPartial())
      readExactly(piece.base, bounce.get(), piece.span);
    if (piece.bounces)
      std::memcpy(bounce.get() + piece.skip, from, piece.bytes);
    writeExactly(piece.base, piece.bounces ? bounce.get() : from, piece.span);
    offset += piece.bytes;
    from += piece.bytes;
    bytes -= piece.bytes;
  }
}
