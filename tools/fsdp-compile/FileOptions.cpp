//===- FileOptions.cpp - Options of a configuration file --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "FileOptions.h"
#include "fsdp/IR/FSDP.h"
#include "fsdp/Options/OptionTable.h"
#include "fsdpcommon/ShortText.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::fsdp;
using fsdpcommon::printableMessage;

void FileOptions::printPlace(const ConfigOrigin &place, StringRef severity) const {
  llvm::errs() << printableMessage(path) << ":";
  if (place.line)
    llvm::errs() << place.line << ":" << place.column << ":";
  llvm::errs() << " " << severity << ": ";
}

void FileOptions::noteOrigin(StringRef message) const {
  message.consume_front("--");
  for (const ConfigSetting &setting : config.settings) {
    StringRef rest = message;
    if (rest.consume_front(setting.option) && !rest.empty() && !llvm::isAlnum(rest.front()) &&
        rest.front() != '-') {
      printPlace(setting.origin, "note");
      llvm::errs() << "\"" << setting.origin.key << "\" says --" << setting.option << "="
                   << printableMessage(llvm::join(setting.values, ",")) << "\n";
    }
  }
}

bool FileOptions::read(StepOptions &options) {
  auto report = [&](bool isError, const ConfigOrigin &place, const Twine &message) {
    if (!isError && !options.driver.remarks)
      return;
    printPlace(place, isError ? "error" : "remark");
    std::string text = (place.key.empty() ? "" : "\"" + place.key + "\": ") + message.str();
    llvm::errs() << printableMessage(text) << "\n";
  };
  path = options.driver.config;
  std::optional<Config> found = readConfig(path, report);
  if (!found)
    return false;
  std::vector<ConfigSetting> settings(found->settings.begin(), found->settings.end());
  config = std::move(*found);
  config.settings.clear();
  for (ConfigSetting &setting : settings) {
    if (options.isGiven(setting.option)) {
      report(false, setting.origin, "overridden by --" + setting.option + " on the command line");
      continue;
    }
    config.settings.push_back(std::move(setting));
    const ConfigSetting &set = config.settings.back();
    for (StringRef value : set.values)
      if (auto problem = setOption(options, set.option, value, OptionOrigin::File)) {
        llvm::errs() << "fsdp-compile: " << printableMessage(*problem) << "\n";
        noteOrigin(*problem);
        return false;
      }
  }
  return true;
}

int64_t fsdp::countDataRanks(StringRef mesh) {
  int64_t ranks = 1;
  SmallVector<StringRef> axes, factors;
  mesh.split(axes, ',');
  for (StringRef axis : axes)
    if (!axis.starts_with("tensor=") && !axis.starts_with("context="))
      axis.split('=').second.split(factors, 'x');
  for (StringRef factor : factors)
    if (int64_t size = 0; !factor.getAsInteger(10, size) && size > 0 && ranks < (1 << 20))
      ranks *= std::min<int64_t>(size, 1 << 20);
  return ranks;
}

LogicalResult FileOptions::checkBatch(ModuleOp imported, StepOptions &options) const {
  auto report = [&](bool, const ConfigOrigin &place, const Twine &message) {
    printPlace(place, "error");
    llvm::errs() << "\"" << place.key << "\": " << message << "\n";
  };
  int64_t batch = 0, accumulation = options.isGiven("grad-accum") ? options.shard.gradAccum : 0;
  for (auto func : imported.getOps<func::FuncOp>())
    for (BlockArgument argument : func.isPublic() ? func.getArguments() : ArrayRef<BlockArgument>())
      if (auto type = dyn_cast<RankedTensorType>(argument.getType());
          type && type.getRank() > 0 && !batch &&
          func.getArgAttr(argument.getArgNumber(), FSDPDialect::batchAttr))
        batch = type.getDimSize(0);
  if (!fsdp::checkBatch(config, countDataRanks(options.shard.mesh), batch, accumulation, report))
    return failure();
  options.shard.gradAccum = std::max<int64_t>(accumulation, 1);
  return success();
}
