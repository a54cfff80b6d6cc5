//===- LinkImage.cpp - Objects to a shared object ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs the linker inside this process on files in a temporary folder, and removes the folder
// afterwards. Undefined symbols are errors, so no kernel can call code outside the image. The image
// contains neither paths of files nor times.
//
//===----------------------------------------------------------------------===//

#include "CpuLowering.h"
#include "lld/Common/Driver.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// A temporary folder, which the destructor removes together with its contents.
struct TemporaryFolder {
  SmallString<128> path;
  ~TemporaryFolder() {
    if (!path.empty())
      llvm::sys::fs::remove_directories(path);
  }
  std::string file(const Twine &name) const {
    SmallString<128> result(path);
    llvm::sys::path::append(result, name);
    return std::string(result);
  }
};
} // namespace

FailureOr<std::vector<char>> fsdp::linkImage(ArrayRef<Object> objects,
                                             ArrayRef<StringRef> libraries, Location loc) {
  TemporaryFolder folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("fsdp-link", folder.path))
    return emitError(loc) << "cannot make the temporary folder '" << folder.path.str()
                          << "' for the linker: " << error.message();
  std::string output = folder.file("image.so");
  SmallVector<std::string> arguments = {"ld.lld",
                                        "-shared",
                                        "--no-undefined",
                                        "-Bsymbolic",
                                        "--build-id=none",
                                        "--strip-all",
                                        "--threads=1",
                                        "-z",
                                        "separate-code",
                                        "-z",
                                        "noexecstack",
                                        "-z",
                                        "now",
                                        "-z",
                                        "max-page-size=4096",
                                        "-o",
                                        output};
  for (auto [index, object] : llvm::enumerate(objects)) {
    arguments.push_back(folder.file(std::to_string(index) + ".o"));
    std::error_code error;
    llvm::raw_fd_ostream file(arguments.back(), error);
    if (!error) {
      file.write(object.data(), object.size());
      file.close();
      error = file.error();
    }
    if (error) {
      file.clear_error();
      return emitError(loc) << "cannot write an object for the linker to " << arguments.back()
                            << ": " << error.message();
    }
  }
  for (StringRef library : libraries)
    arguments.push_back(library.str());

  SmallVector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  {
    // Only one thread links at a time, because the linker has global state.
    static std::mutex oneLinkAtATime;
    std::lock_guard<std::mutex> lock(oneLinkAtATime);
    lld::Result result = lld::lldMain(pointers, stream, stream, {{lld::Gnu, &lld::elf::link}});
    if (result.retCode != 0)
      return emitError(loc) << "the kernels cannot be linked: " << StringRef(messages).trim();
  }
  auto buffer =
      llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return emitError(loc) << "cannot read the linked image: " << buffer.getError().message();
  return std::vector<char>((*buffer)->getBufferStart(), (*buffer)->getBufferEnd());
}
