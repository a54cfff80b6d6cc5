//===- Artifact.cpp - A checked .fsdp file ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Check the magic number, the version, the sizes and the ranges of sections in the header.
//  2. Read the whole file into memory that is aligned to 64 bytes, and check the file's hash.
//  3. Check the manifest with the verifier of FlatBuffers, and then with the rules in Verify*.cpp.
//  4. Load the image of compiled code (Image.cpp), and find the function of each kernel phase in
//     it. If a file has no image, its programs can be read but not run.
//
// (V23) The function of a phase has a launch record (fsdprt/launch_record.h) with the extent and
//       the tile of the phase, and the sizes of scratch memory and bindings of the kernel.
//
//===----------------------------------------------------------------------===//

#include "artifact/Artifact.h"
#include "core/Error.h"
#include "fsdpcommon/Signature.h"
#include "fsdprt/launch_record.h"
#include "fsdprt/sha256.h"
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsdprt;

static std::byte *allocate(size_t size, const std::string &file) {
  void *memory = std::aligned_alloc(64, (size + 64) / 64 * 64);
  if (!memory)
    failed("%s: out of memory for its %s", file.c_str(), bytesText(size).c_str());
  return static_cast<std::byte *>(memory);
}

void Artifact::Free::operator()(void *memory) const { std::free(memory); }

namespace {
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
};
} // namespace

/// Reads the next `size` bytes of the file into the memory at `to`. Throws Error on failure.
static void readBytes(int fd, std::byte *to, size_t size, const std::string &path) {
  for (size_t done = 0; done < size;) {
    ssize_t got = ::read(fd, to + done, size - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      badInput("%s: cannot read the artifact: %s", path.c_str(),
               got < 0 ? strerror(errno) : "the file shrank while it was read");
    done += got;
  }
}

std::unique_ptr<Artifact> Artifact::open(const std::string &path, Rules rules,
                                         const std::string &verifyKey) {
  // Without O_NONBLOCK, opening a named pipe would wait for a process that writes to it.
  Descriptor descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status;
  if (descriptor.fd < 0 || fstat(descriptor.fd, &status) != 0)
    badInput("%s: cannot open the artifact: %s", path.c_str(), strerror(errno));
  if (!S_ISREG(status.st_mode))
    badInput("%s: expected an artifact, found something that is not a file", path.c_str());
  std::unique_ptr<Artifact> artifact(new Artifact);
  artifact->file = path;
  artifact->size = status.st_size;
  std::byte beginning[sizeof artifact->header];
  size_t begun = std::min(artifact->size, sizeof beginning);
  readBytes(descriptor.fd, beginning, begun, path);
  artifact->checkHeader(beginning);
  if (!verifyKey.empty())
    if (std::string error =
            fsdpcommon::verifyHeader(artifact->header, fsdpcommon::signatureFile(path), verifyKey);
        !error.empty())
      badInput("%s", error.c_str());
  artifact->bytes.reset(allocate(artifact->size, path));
  std::memcpy(artifact->bytes.get(), beginning, begun);
  readBytes(descriptor.fd, artifact->bytes.get() + begun, artifact->size - begun, path);
  artifact->check(rules);
  return artifact;
}

std::unique_ptr<Artifact> Artifact::fromMemory(const void *bytes, size_t size,
                                               const std::string &name, Rules rules) {
  std::unique_ptr<Artifact> artifact(new Artifact);
  artifact->file = name;
  artifact->size = size;
  artifact->checkHeader(bytes);
  artifact->bytes.reset(allocate(size, name));
  std::memcpy(artifact->bytes.get(), bytes, size);
  artifact->check(rules);
  return artifact;
}

/// Checks the header. `beginning` points to the first min(size, sizeof header) bytes of the file.
void Artifact::checkHeader(const void *beginning) {
  const char *name = file.c_str();
  if (size < sizeof header)
    badInput("%s: expected an artifact, which begins with %zu bytes of header, found %zu bytes",
             name, sizeof header, size);
  std::memcpy(&header, beginning, sizeof header);
  if (std::memcmp(header.magic, FSDPRT_ARTIFACT_MAGIC, sizeof header.magic) != 0)
    badInput("%s: expected an artifact of fsdp-compile, which begins with \"" FSDPRT_ARTIFACT_MAGIC
             "\", found \"%s\"",
             name, printable({header.magic, sizeof header.magic}).c_str());
  if (header.version < FSDPRT_ARTIFACT_PLAIN_VERSION || header.version > FSDPRT_ARTIFACT_VERSION)
    badInput(
        "%s: expected format version %u to %u, found %u; compile the model again with this release",
        name, FSDPRT_ARTIFACT_PLAIN_VERSION, FSDPRT_ARTIFACT_VERSION, header.version);
  if (header.header_size != sizeof header)
    badInput("%s: expected a header of %zu bytes, found %u", name, sizeof header,
             header.header_size);
  if (header.file_size != size)
    badInput("%s: expected %llu bytes, as its header says, found %zu; the file is cut short or was "
             "changed",
             name, (unsigned long long)header.file_size, size);
  for (uint8_t byte : header.reserved)
    if (byte != 0)
      badInput("%s: expected zeros in the header's reserved bytes", name);
  if (header.manifest_size >= uint64_t(1) << 30)
    badInput("%s: expected a manifest of less than 1 GiB, found %llu bytes", name,
             (unsigned long long)header.manifest_size);
  uint64_t end = sizeof header;
  checkSection("manifest", header.manifest_offset, header.manifest_size,
               FSDPRT_ARTIFACT_MANIFEST_ALIGNMENT, end);
  if (header.image_offset != 0 || header.image_size != 0)
    checkSection("image", header.image_offset, header.image_size, FSDPRT_ARTIFACT_IMAGE_ALIGNMENT,
                 end);
  if (header.values_offset != 0 || header.values_size != 0) {
    if (header.version == FSDPRT_ARTIFACT_PLAIN_VERSION || header.values_size == 0)
      badInput("%s: expected format version %u or later and at least one byte of values, found "
               "version %u and %llu bytes",
               name, FSDPRT_ARTIFACT_VALUES_VERSION, header.version,
               (unsigned long long)header.values_size);
    checkSection("values", header.values_offset, header.values_size,
                 FSDPRT_ARTIFACT_VALUES_ALIGNMENT, end);
  }
  if (end != size)
    badInput("%s: expected the end of the file at byte %llu, after its last part, found %zu bytes",
             name, (unsigned long long)end, size);
}

/// Checks that the section `what` lies in the file. The section must begin at the first multiple of
/// `alignment` at or after `end`, which is the end of the previous section. Then sets `end` to the
/// end of the checked section.
void Artifact::checkSection(const char *what, uint64_t offset, uint64_t bytes, uint64_t alignment,
                            uint64_t &end) {
  uint64_t expected = (end + alignment - 1) / alignment * alignment;
  if (offset != expected || offset > size || bytes > size - offset)
    badInput("%s: expected the %s at byte %llu and within the file's %zu bytes, found [%llu, "
             "+%llu)",
             file.c_str(), what, (unsigned long long)expected, size, (unsigned long long)offset,
             (unsigned long long)bytes);
  end = offset + bytes;
}

void Artifact::checkHash() {
  uint8_t digest[32];
  fsdprt_sha256_artifact(bytes.get(), size, digest);
  if (std::memcmp(digest, header.sha256, sizeof digest) != 0)
    badInput("%s: the file's content does not match its SHA-256; it was changed or damaged after "
             "it was compiled",
             file.c_str());
}

/// Returns the 64-bit words that the launch record of a phase must contain.
static std::vector<uint64_t> recordOf(const fb::Kernel &kernel, const fb::Phase &phase) {
  std::vector<uint64_t> record = {phase.extent(), phase.tile(), kernel.shared_bytes(),
                                  kernel.worker_bytes(), 0};
  for (uint32_t i = 0; kernel.binding_bytes() && i < kernel.binding_bytes()->size(); ++i)
    record.push_back(kernel.binding_bytes()->Get(i));
  record[4] = record.size() - 5;
  return record;
}

static std::string textOfRecord(const uint64_t *record) {
  std::string text = format("extent %llu, tile %llu, scratch of %llu and %llu bytes, bindings of",
                            (unsigned long long)record[0], (unsigned long long)record[1],
                            (unsigned long long)record[2], (unsigned long long)record[3]);
  constexpr uint64_t most = 8;
  for (uint64_t i = 0; i < std::min(record[4], most); ++i)
    text += " " + std::to_string(record[5 + i]);
  return text + (record[4] > most ? " … bytes" : " bytes");
}

/// Checks (V23). `object` contains the launch records of a function. Returns an empty text if one
/// of these records equals `needed`, and otherwise a text that describes the difference.
static std::string problemOfLaunch(Image::Words object, const std::vector<uint64_t> &needed) {
  constexpr uint64_t mostRecords = 64;
  size_t at = 1;
  for (uint64_t i = 0; object.size && i < std::min(object.data[0], mostRecords); ++i) {
    if (object.size - at < 5 || object.size - at - 5 < object.data[at + 4])
      break;
    size_t size = 5 + object.data[at + 4];
    if (size == needed.size() && std::equal(needed.begin(), needed.end(), object.data + at))
      return "";
    at += size;
  }
  if (at == 1)
    return "expected a record of the launch that its code is for, found none; compile the model "
           "again with this release";
  return "its code is for " + textOfRecord(object.data + 1) + "; found " +
         textOfRecord(needed.data());
}

void Artifact::resolveKernels() {
  if (header.image_size == 0)
    return;
  image = std::make_unique<Image>(file, bytes.get() + header.image_offset, header.image_size);
  const auto *tables = root->kernels();
  for (uint32_t i = 0; tables && i < tables->size(); ++i) {
    const fb::Kernel &table = *tables->Get(i);
    std::vector<KernelPhase> phases;
    for (const fb::Phase *phase : *table.phases()) {
      const void *function = image->function(phase->symbol()->str());
      if (!function)
        badInput("%s: kernel %u ('%s'): expected function '%s' in the image, found none",
                 file.c_str(), i, printable(table.name()->str()).c_str(),
                 printable(phase->symbol()->str()).c_str());
      std::string problem = problemOfLaunch(
          image->words(phase->symbol()->str() + FSDPRT_LAUNCH_SUFFIX), recordOf(table, *phase));
      if (!problem.empty())
        badInput("%s: kernel %u ('%s'), phase %zu: %s", file.c_str(), i,
                 printable(table.name()->str()).c_str(), phases.size(), problem.c_str());
      phases.push_back({reinterpret_cast<KernelFunction>(const_cast<void *>(function)),
                        phase->extent(), phase->tile()});
    }
    kernels.push_back(std::move(phases));
  }
}

void Artifact::check(Rules rules) {
  checkHash();
  const auto *manifestBytes =
      reinterpret_cast<const uint8_t *>(bytes.get() + header.manifest_offset);
  // A table and the reference to it take at least 8 bytes together, so a manifest that refers once
  // to each table has at most max_tables tables. The verifier counts a table once per reference.
  flatbuffers::Verifier verifier(manifestBytes, header.manifest_size, /*max_depth=*/64,
                                 /*max_tables=*/header.manifest_size / 8 + 1);

  // VerifyManifestBuffer() reads the first 8 bytes even if the manifest is shorter.
  if (header.manifest_size < 8 || !fb::VerifyManifestBuffer(verifier))
    badInput("%s: the manifest is not a well-formed FlatBuffer of this release's schema",
             file.c_str());
  root = fb::GetManifest(manifestBytes);
  mesh = verifyManifest(file, *root, header.manifest_size, header.values_size, rules);
  slices.resize(root->units() ? root->units()->size() : 0, 1);
  for (uint32_t i = 0; root->params() && i < root->params()->size(); ++i)
    if (root->params()->Get(i)->split())
      slices[root->params()->Get(i)->unit()] = mesh.sizeOf("tensor");
  if (root->gpu())
    verifyGpuImage(file, *root->gpu(), header.image_size);
  else if (rules == Rules::all)
    resolveKernels();
}

uint64_t Artifact::pieceOf(const fb::State &state, uint64_t rank) const {
  uint64_t split = static_cast<uint64_t>(state.split()), piece = mesh.pieceOf(split, rank);
  bool isSliced = slicesOf(state.unit()) > 1;
  return isSliced ? mesh.indexOn("tensor", rank) * mesh.pieces(split) + piece : piece;
}

uint64_t Artifact::slicesIn(const fb::State &state) const {
  const fb::Unit &unit = *manifest().units()->Get(state.unit());
  uint64_t flat = std::max<uint64_t>(1, unit.shards() * unit.shard_size());
  return std::max<uint64_t>(1, state.elements() / flat);
}

const fb::Program *Artifact::program(const char *name) const {
  for (const fb::Program *program : *root->programs())
    if (std::strcmp(program->name()->c_str(), name) == 0)
      return program;
  return nullptr;
}

bool fsdprt::isReferenceProgram(const std::string &name) {
  return name == "reference" || name == "reference_init";
}
