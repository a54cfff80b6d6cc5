//===- Signature.h - Ed25519 signatures of artifacts ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A signature signs the 128 bytes of an artifact's header. The header contains the SHA-256 of the
// whole file, so the signature protects the whole file. The file OUT.fsdp.sig contains the 64 bytes
// of the signature. Keys are PEM files, as written by `openssl genpkey -algorithm ed25519` and
// `openssl pkey -pubout`.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPCOMMON_SIGNATURE_H
#define FSDPCOMMON_SIGNATURE_H

#include "fsdprt/artifact_header.h"
#include <array>
#include <string>

namespace fsdpcommon {

using Signature = std::array<unsigned char, 64>;

inline std::string signatureFile(const std::string &artifact) { return artifact + ".sig"; }

/// Returns an error if the PEM file `key` has no private key, and "" otherwise. Does not read a
/// pipe, whose content can be read only once.
std::string checkPrivateKey(const std::string &key);

/// Signs a header with the private key in the PEM file `key`. Returns an error, or "" on success.
std::string signHeader(const fsdprt_artifact_header &header, const std::string &key,
                       Signature &signature);

/// Verifies the signature in `file` with the public key in the PEM file `key`. Returns an empty
/// text if the signature belongs to the header, and otherwise an error.
std::string verifyHeader(const fsdprt_artifact_header &header, const std::string &file,
                         const std::string &key);

} // namespace fsdpcommon

#endif // FSDPCOMMON_SIGNATURE_H
