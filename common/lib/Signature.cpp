//===- Signature.cpp - Ed25519 signatures of artifacts ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// libsodium signs and verifies. No ASN.1 parser is needed, because RFC 8410 allows one DER encoding
// of an Ed25519 key: a fixed prefix (below in hexadecimal) and the 32 bytes of the key.
//
//   -----BEGIN PRIVATE KEY-----   302e020100300506032b657004220420 and the seed
//   -----BEGIN PUBLIC KEY-----    302a300506032b6570032100 and the point
//
//===----------------------------------------------------------------------===//

#include "fsdpcommon/Signature.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace fsdpcommon;

namespace {
/// The parts of a key file that surround the key: the first and the last line of the PEM file, and
/// the DER prefix before the 32 bytes of the key.
struct KeyForm {
  const char *begin, *end, *what, *command;
  std::vector<unsigned char> prefix;
};
/// Contains the 32 bytes of a key. The destructor overwrites them.
struct Key {
  unsigned char bytes[32] = {};
  ~Key() { sodium_memzero(bytes, sizeof bytes); }
};
} // namespace

static constexpr size_t maxKeyBytes = 4096;

static const KeyForm &privateForm() {
  static const KeyForm form = {"-----BEGIN PRIVATE KEY-----",
                               "-----END PRIVATE KEY-----",
                               "a private key of Ed25519",
                               "openssl genpkey -algorithm ed25519 -out key.pem",
                               {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65,
                                0x70, 0x04, 0x22, 0x04, 0x20}};
  return form;
}

static const KeyForm &publicForm() {
  static const KeyForm form = {
      "-----BEGIN PUBLIC KEY-----",
      "-----END PUBLIC KEY-----",
      "a public key of Ed25519",
      "openssl pkey -in key.pem -pubout -out public.pem",
      {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00}};
  return form;
}

/// Reads a regular file that has at most `most` bytes. Returns an error, or "" on success.
static std::string readFile(const std::string &path, size_t most, std::string &content) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (file < 0)
    return path + ": cannot open it: " + std::strerror(errno);
  bool isFile = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  content.resize(most + 1);
  ssize_t got = isFile ? ::read(file, content.data(), content.size()) : -1;
  ::close(file);
  if (got < 0)
    return path + ": expected a file that can be read";
  content.resize(got);
  return "";
}

/// Reads a key from a PEM file. Returns an error, or "" on success.
static std::string readKey(const std::string &path, const KeyForm &form, Key &key) {
  std::string text;
  if (std::string error = readFile(path, maxKeyBytes, text); !error.empty())
    return error;
  std::string expected =
      path + ": expected " + form.what + " in PEM, as '" + form.command + "' writes it";
  size_t begin = text.find(form.begin), end = text.find(form.end);
  if (text.size() > maxKeyBytes || begin == std::string::npos || end == std::string::npos ||
      end < begin)
    return expected;
  begin += std::strlen(form.begin);
  std::vector<unsigned char> der(form.prefix.size() + sizeof key.bytes);
  size_t length = 0;
  const char *rest = nullptr;
  bool decodes = sodium_base642bin(der.data(), der.size(), text.data() + begin, end - begin,
                                   " \r\n", &length, &rest, sodium_base64_VARIANT_ORIGINAL) == 0;
  sodium_memzero(text.data(), text.size());
  bool fits = decodes && length == der.size() && rest == text.data() + end &&
              std::memcmp(der.data(), form.prefix.data(), form.prefix.size()) == 0;
  if (fits)
    std::memcpy(key.bytes, der.data() + form.prefix.size(), sizeof key.bytes);
  sodium_memzero(der.data(), der.size());
  return fits ? "" : expected;
}

std::string fsdpcommon::checkPrivateKey(const std::string &key) {
  struct stat status;
  Key seed;
  bool isPipe = ::stat(key.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
  return isPipe ? "" : readKey(key, privateForm(), seed);
}

std::string fsdpcommon::signHeader(const fsdprt_artifact_header &header, const std::string &key,
                                   Signature &signature) {
  Key seed;
  if (std::string error = readKey(key, privateForm(), seed); !error.empty())
    return error;
  unsigned char point[crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES];
  bool works = sodium_init() >= 0 && crypto_sign_seed_keypair(point, secret, seed.bytes) == 0 &&
               crypto_sign_detached(signature.data(), nullptr,
                                    reinterpret_cast<const unsigned char *>(&header), sizeof header,
                                    secret) == 0;
  sodium_memzero(secret, sizeof secret);
  return works ? "" : key + ": cannot sign with this key";
}

std::string fsdpcommon::verifyHeader(const fsdprt_artifact_header &header, const std::string &file,
                                     const std::string &key) {
  Key point;
  if (std::string error = readKey(key, publicForm(), point); !error.empty())
    return error;
  std::string signature;
  if (std::string error = readFile(file, sizeof(Signature), signature); !error.empty())
    return error + "; fsdp-compile --sign-key writes the signature of an artifact";
  if (signature.size() != sizeof(Signature))
    return file + ": expected a signature of " + std::to_string(sizeof(Signature)) + " bytes";
  if (sodium_init() < 0 ||
      crypto_sign_verify_detached(reinterpret_cast<const unsigned char *>(signature.data()),
                                  reinterpret_cast<const unsigned char *>(&header), sizeof header,
                                  point.bytes) != 0)
    return file + ": not a signature of this artifact by the key in " + key +
           "; the artifact or its signature was changed, or another key signed it";
  return "";
}
