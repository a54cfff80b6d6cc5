//===- Artifact.cpp - A checked .fsdp file ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// 1. read        reads the whole file to 64-byte aligned memory
// 2. header      checks magic, version, sizes, bounds of sections, then the hash
// 3. manifest    checks with FlatBuffers' own verifier, then every rule of Verifier.h
// 4. image       Image.cpp loads it; each phase's symbol is looked up. Without an image, programs
//                can be read but not run
//
//===----------------------------------------------------------------------===//

#include "artifact/Artifact.h"
#include "core/Error.h"
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

std::unique_ptr<Artifact> Artifact::open(const std::string &path, Rules rules) {
  // Without O_NONBLOCK, opening a named pipe that has no writer would wait.
  Descriptor descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status;
  if (descriptor.fd < 0 || fstat(descriptor.fd, &status) != 0)
    badInput("%s: cannot open the artifact: %s", path.c_str(), strerror(errno));
  if (!S_ISREG(status.st_mode))
    badInput("%s: expected an artifact, found something that is not a file", path.c_str());
  std::unique_ptr<Artifact> artifact(new Artifact);
  artifact->file = path;
  artifact->size = status.st_size;
  artifact->bytes.reset(allocate(artifact->size, path));
  for (size_t done = 0; done < artifact->size;) {
    ssize_t got = ::read(descriptor.fd, artifact->bytes.get() + done, artifact->size - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      badInput("%s: cannot read the artifact: %s", path.c_str(),
               got < 0 ? strerror(errno) : "the file shrank while it was read");
    done += got;
  }
  artifact->check(rules);
  return artifact;
}

std::unique_ptr<Artifact> Artifact::fromMemory(const void *bytes, size_t size,
                                               const std::string &name, Rules rules) {
  std::unique_ptr<Artifact> artifact(new Artifact);
  artifact->file = name;
  artifact->size = size;
  artifact->bytes.reset(allocate(size, name));
  if (size)
    std::memcpy(artifact->bytes.get(), bytes, size);
  artifact->check(rules);
  return artifact;
}

static bool inside(uint64_t offset, uint64_t bytes, uint64_t limit) {
  return bytes <= limit && offset <= limit - bytes;
}

void Artifact::checkHeader() {
  const char *name = file.c_str();
  if (size < sizeof header)
    badInput("%s: expected an artifact, which begins with %zu bytes of header, found %zu bytes",
             name, sizeof header, size);
  std::memcpy(&header, bytes.get(), sizeof header);
  if (std::memcmp(header.magic, FSDPRT_ARTIFACT_MAGIC, sizeof header.magic) != 0)
    badInput("%s: expected an artifact of fsdp-compile, which begins with \"" FSDPRT_ARTIFACT_MAGIC
             "\", found \"%s\"",
             name, printable(header.magic, sizeof header.magic).c_str());
  if (header.version < FSDPRT_ARTIFACT_PLAIN_VERSION || header.version > FSDPRT_ARTIFACT_VERSION)
    badInput(
        "%s: expected format version %u or %u, found %u; compile the model again with this release",
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
  if (header.manifest_offset % FSDPRT_ARTIFACT_MANIFEST_ALIGNMENT != 0 ||
      header.manifest_offset < sizeof header ||
      !inside(header.manifest_offset, header.manifest_size, size))
    badInput("%s: the manifest [%llu, +%llu) is not an aligned part of the file's %zu bytes", name,
             (unsigned long long)header.manifest_offset, (unsigned long long)header.manifest_size,
             size);
  bool absent = header.image_offset == 0 && header.image_size == 0;
  if (!absent && (header.image_offset % FSDPRT_ARTIFACT_IMAGE_ALIGNMENT != 0 ||
                  header.image_offset < header.manifest_offset + header.manifest_size ||
                  !inside(header.image_offset, header.image_size, size)))
    badInput("%s: the image [%llu, +%llu) is not an aligned part of the file's %zu bytes after "
             "the manifest",
             name, (unsigned long long)header.image_offset, (unsigned long long)header.image_size,
             size);
  bool plain = header.values_offset == 0 && header.values_size == 0;
  uint64_t before = std::max(header.manifest_offset + header.manifest_size,
                             header.image_offset + header.image_size);
  if (!plain &&
      (header.version == FSDPRT_ARTIFACT_PLAIN_VERSION || header.values_size == 0 ||
       header.values_offset % FSDPRT_ARTIFACT_VALUES_ALIGNMENT != 0 ||
       header.values_offset < before || !inside(header.values_offset, header.values_size, size)))
    badInput("%s: the values [%llu, +%llu) are not an aligned part of the file's %zu bytes after "
             "the image",
             name, (unsigned long long)header.values_offset, (unsigned long long)header.values_size,
             size);
  uint8_t digest[32];
  fsdprt_sha256_artifact(bytes.get(), size, digest);
  if (std::memcmp(digest, header.sha256, sizeof digest) != 0)
    badInput("%s: the file's content does not match its SHA-256; it was changed or damaged after "
             "it was compiled",
             name);
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
      phases.push_back({reinterpret_cast<KernelFunction>(const_cast<void *>(function)),
                        phase->extent(), phase->tile()});
    }
    kernels.push_back(std::move(phases));
  }
}

void Artifact::check(Rules rules) {
  checkHeader();
  const auto *manifestBytes =
      reinterpret_cast<const uint8_t *>(bytes.get() + header.manifest_offset);
  if (header.manifest_size >= uint64_t(1) << 30)
    badInput("%s: expected a manifest of less than 1 GiB, found %llu bytes", file.c_str(),
             (unsigned long long)header.manifest_size);
  flatbuffers::Verifier verifier(manifestBytes, header.manifest_size, /*max_depth=*/64,
                                 /*max_tables=*/50'000'000);
  // The check of the identifier reads 8 bytes.
  if (header.manifest_size < 8 || !fb::VerifyManifestBuffer(verifier))
    badInput("%s: the manifest is not a well-formed FlatBuffer of this release's schema",
             file.c_str());
  root = fb::GetManifest(manifestBytes);
  mesh = verifyManifest(file, *root, header.values_size, rules);
  if (root->gpu())
    verifyGpuImage(file, *root->gpu(), header.image_size);
  else if (rules == Rules::all)
    resolveKernels();
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
