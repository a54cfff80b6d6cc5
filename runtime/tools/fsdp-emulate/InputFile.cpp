//===- InputFile.cpp - Reading whole files ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads in chunks, because the number of bytes in a pipe is unknown. Stops at the limit, because a
// device may provide any number of bytes.
//
//===----------------------------------------------------------------------===//

#include "InputFile.h"
#include "emulator/ptx/Source.h"
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

using namespace fsdprt;
using namespace fsdprt::emulate;

std::string fsdprt::emulate::readFile(const std::string &path, uint64_t most,
                                      const std::string &where) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path.c_str(), "rb"),
                                                        std::fclose);
  if (!file)
    badInput("%scannot open %s: %s", where.c_str(), quoted(path).c_str(), std::strerror(errno));
  std::string text;
  char piece[1 << 16];
  while (size_t count = std::fread(piece, 1, sizeof piece, file.get())) {
    text.append(piece, count);
    if (text.size() > most)
      badInput("%sexpected %s at most in %s, found more", where.c_str(), bytesText(most).c_str(),
               quoted(path).c_str());
  }
  if (std::ferror(file.get()))
    badInput("%scannot read %s: %s", where.c_str(), quoted(path).c_str(), std::strerror(errno));
  return text;
}
