//===- ToolMain.cpp - Common parts of command-line tools --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// If an LLVM stream has an unchecked error, its destructor ends the process with a message about
// LLVM. The handler in this file reports the failed write instead, with exit code 1. (A closed pipe
// ends the process earlier, by SIGPIPE and without a message.)
//
//===----------------------------------------------------------------------===//

#include "fsdp/Tools/ToolMain.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

using namespace mlir;
namespace sys = llvm::sys;

/// Reports an error without LLVM's streams, because the failed stream is being destroyed.
static void reportFatal(void *name, const char *reason, bool) {
  llvm::StringRef why = reason;
  why.consume_front("IO failure on output stream: ");
  std::string text = std::string(static_cast<const char *>(name)) +
                     ": error: " + (why == reason ? "" : "cannot write the output: ") + why.str() +
                     "\n";
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

void fsdp::startTool(const char *name) {
  // If SIGXFSZ is ignored, a write beyond a file-size limit fails and does not end the process.
  std::signal(SIGXFSZ, SIG_IGN);
  llvm::install_fatal_error_handler(reportFatal, const_cast<char *>(name));
  // After --help, llvm::cl ends the process itself, so stdout is flushed at exit.
  static const char *tool = name;
  // Construct llvm::outs() first, so that it outlives the exit handler.
  llvm::outs();
  std::atexit([] {
    llvm::outs().flush();
    if (!llvm::outs().has_error())
      return;
    std::string reason = "IO failure on output stream: " + llvm::outs().error().message();
    reportFatal(const_cast<char *>(tool), reason.c_str(), false);
    ::_exit(1);
  });
}

static void printVersion(llvm::raw_ostream &os, const char *name) {
  os << name << " " FSDP_VERSION " (LLVM/MLIR " LLVM_VERSION_STRING ")\n";
}

void fsdp::setVersion(const char *name) {
  llvm::cl::SetVersionPrinter([name](llvm::raw_ostream &os) { printVersion(os, name); });
}

bool fsdp::printedHelp(int argc, char **argv, const char *name, llvm::StringRef text) {
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef argument = argv[i];
    if (argument == "--help" || argument == "-help" || argument == "-h") {
      llvm::outs() << text;
      return true;
    }
    if (argument == "--version" || argument == "-version") {
      printVersion(llvm::outs(), name);
      return true;
    }
  }
  return false;
}

/// Tries to open `path` for writing. If this creates the file, removes the file. Returns errno or
/// 0.
static int tryToOpen(const std::string &path) {
  int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  bool made = descriptor >= 0;
  if (!made && errno == EEXIST)
    descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0)
    return errno;
  ::close(descriptor);
  if (made)
    ::unlink(path.c_str());
  return 0;
}

std::optional<std::string> fsdp::findRepeatedOption(llvm::ArrayRef<char *> arguments) {
  namespace cl = llvm::cl;
  for (llvm::StringRef argument : arguments) {
    llvm::StringRef name = argument.ltrim('-').split('=').first;
    cl::Option *option =
        argument.starts_with("-") ? cl::getRegisteredOptions().lookup(name) : nullptr;
    if (option && option->getNumOccurrencesFlag() == cl::Optional &&
        option->getNumOccurrences() > 1)
      return (name.size() == 1 ? "-" : "--") + name.str() + ": expected at most once, found " +
             std::to_string(option->getNumOccurrences()) + " times";
  }
  return std::nullopt;
}

std::string fsdp::chooseKernelCache(const std::optional<std::string> &given,
                                    llvm::function_ref<bool(const llvm::cl::Option &)> isOwn) {
  for (const auto &[name, option] : llvm::cl::getRegisteredOptions())
    if (option->getNumOccurrences() && !isOwn(*option))
      return "";
  const char *folder = std::getenv("FSDP_KERNEL_CACHE");
  return given ? *given : folder ? folder : "";
}

std::optional<std::string> fsdp::whyNotWritable(llvm::StringRef path, llvm::StringRef input) {
  if (path == "-")
    return std::nullopt;
  auto because = [&](const std::string &why) {
    return "cannot write '" + path.str() + "': " + why;
  };
  sys::fs::file_status status;
  bool exists = !sys::fs::status(path, status);
  if (exists && sys::fs::is_directory(status))
    return because("it is a directory; give the name of a file");
  bool same = false;
  if (exists && sys::fs::is_regular_file(status) && !input.empty() && input != "-" &&
      !sys::fs::equivalent(path, input, same) && same)
    return because("it is the input");
  // Open regular files only, because opening a pipe would wait for a reader of the pipe.
  int error = exists && !sys::fs::is_regular_file(status)
                  ? (::access(path.str().c_str(), W_OK) == 0 ? 0 : errno)
                  : tryToOpen(path.str());
  return error ? std::optional(because(std::generic_category().message(error))) : std::nullopt;
}
