//===- WriteOutput.cpp - Write a file as a whole or not at all --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. A new file, or a regular file: write a temporary file beside it, wait until the bytes are on
//     disk, and rename. On failure, remove the temporary file: the output keeps its old content.
//     If the path is a symbolic link, the file that the link names is replaced, not the link.
//  2. A device or a pipe: write in place. On failure, remove nothing.
//
//===----------------------------------------------------------------------===//

#include "fsdp/Tools/ToolMain.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <fcntl.h>
#include <unistd.h>

using namespace llvm;

static std::string cannotWrite(StringRef path, const Twine &why) {
  return ("cannot write '" + path + "': " + why).str();
}

/// Writes the byte ranges and, if the descriptor is a file, waits until they are on disk. Does not
/// close the descriptor.
static std::error_code writeAll(int descriptor, ArrayRef<ArrayRef<char>> pieces) {
  llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/false, /*unbuffered=*/true);
  for (ArrayRef<char> piece : pieces)
    os.write(piece.data(), piece.size());
  std::error_code error = os.error();
  // Clear the error, because the destructor of a stream with an error ends the process.
  os.clear_error();
  if (!error && ::fsync(descriptor) != 0 && errno != EINVAL &&
      errno != EROFS) // fsync() fails on devices and pipes
    error = std::error_code(errno, std::generic_category());
  return error;
}

/// Opens a device or a pipe. Waits at most 10 seconds for a process that reads a named pipe.
static int openInPlace(StringRef path, std::error_code &error) {
  int descriptor = -1;
  for (unsigned attempt = 0; descriptor < 0; ++attempt) {
    descriptor = ::open(path.str().c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0 && (errno != ENXIO || attempt == 500)) {
      error = std::error_code(errno, std::generic_category());
      return -1;
    }
    if (descriptor < 0)
      ::usleep(20000);
  }
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return descriptor;
}

/// Writes to a device or a pipe.
static std::string writeInPlace(StringRef path, ArrayRef<ArrayRef<char>> pieces) {
  std::error_code error;
  int descriptor = openInPlace(path, error);
  if (error == std::errc::no_such_device_or_address)
    return cannotWrite(path, "it is a named pipe that no process reads");
  if (error)
    return cannotWrite(path, error.message());
  error = writeAll(descriptor, pieces);
  ::close(descriptor);
  return error ? cannotWrite(path, error.message()) : "";
}

std::string mlir::fsdp::writeOutput(StringRef path, ArrayRef<ArrayRef<char>> pieces) {
  if (path == "-") {
    std::error_code error = writeAll(STDOUT_FILENO, pieces);
    return error ? cannotWrite("-", error.message()) : "";
  }
  llvm::sys::fs::file_status status;
  if (!llvm::sys::fs::status(path, status)) {
    if (llvm::sys::fs::is_directory(status))
      return cannotWrite(path, "it is a directory; give the name of a file");
    if (!llvm::sys::fs::is_regular_file(status))
      return writeInPlace(path, pieces);
  }
  SmallString<256> target;
  if (llvm::sys::fs::real_path(path, target))
    target = path; // the file does not exist yet
  llvm::Expected<llvm::sys::fs::TempFile> file =
      llvm::sys::fs::TempFile::create(target + ".tmp-%%%%%%");
  if (!file)
    return cannotWrite(path, llvm::toString(file.takeError()));
  if (std::error_code error = writeAll(file->FD, pieces)) {
    llvm::consumeError(file->discard());
    return cannotWrite(path, error.message());
  }
  if (llvm::Error error = file->keep(target)) {
    llvm::consumeError(file->discard());
    return cannotWrite(path, llvm::toString(std::move(error)));
  }
  return "";
}
