//===- SaveBundle.cpp - Kernels for a machine without a compiler -*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "SaveBundle.h"
#include "fsdp/Tools/ToolMain.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fsdp;

static bool writeFile(StringRef folder, StringRef name,
                      llvm::function_ref<void(raw_ostream &)> write) {
  SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  std::string text;
  llvm::raw_string_ostream os(text);
  write(os);
  std::string problem = writeOutput(path, text);
  if (!problem.empty())
    llvm::errs() << "error: " << problem << "\n";
  return problem.empty();
}

/// Writes the member "bindings", in the order of the kernel's arguments.
static void writeBindings(llvm::json::OStream &json, func::FuncOp kernel) {
  json.attributeArray("bindings", [&] {
    for (BlockArgument argument : kernel.getArguments()) {
      auto type = cast<RankedTensorType>(argument.getType());
      json.object([&] {
        std::string element;
        llvm::raw_string_ostream(element) << type.getElementType();
        json.attribute("dtype", element);
        json.attributeArray("shape", [&] {
          for (int64_t extent : type.getShape())
            json.value(extent);
        });
        json.attribute("out", kernel.getArgAttr(argument.getArgNumber(), "fsdp.out") != nullptr);
      });
    }
  });
}

static void writeNumbers(llvm::json::OStream &json, StringRef name, ArrayRef<int64_t> numbers) {
  json.attributeArray(name, [&] {
    for (int64_t number : numbers)
      json.value(number);
  });
}

static StringRef nameOf(GpuTensorType type) {
  return type == GpuTensorType::BF16 ? "bf16" : type == GpuTensorType::F16 ? "f16" : "tf32";
}

static void writeMaps(llvm::json::OStream &json, ArrayRef<GpuTensorMap> maps) {
  json.attributeArray("maps", [&] {
    for (const GpuTensorMap &map : maps)
      json.object([&] {
        json.attribute("binding", map.binding);
        json.attribute("offset", map.offset);
        json.attribute("dtype", nameOf(map.type));
        writeNumbers(json, "sizes", map.sizes);
        writeNumbers(json, "strides", map.strides);
        writeNumbers(json, "box", map.box);
      });
  });
}

static void writeKernel(llvm::json::OStream &json, const GpuKernel &kernel, func::FuncOp function) {
  json.object([&] {
    json.attribute("name", kernel.info.name);
    json.attribute("scratchBytes", kernel.scratchBytes);
    writeBindings(json, function);
    json.attributeArray("launches", [&] {
      for (const GpuLaunch &launch : kernel.launches)
        json.object([&] {
          json.attribute("entry", launch.symbol);
          json.attribute("blocks", launch.blocks);
          json.attribute("threads", launch.threads);
          json.attribute("sharedBytes", launch.sharedBytes);
          json.attribute("cluster", launch.cluster);
          writeMaps(json, launch.maps);
        });
    });
  });
}

static void writeEntry(llvm::json::OStream &json, const EntryReport &entry) {
  json.object([&] {
    json.attribute("name", entry.symbol);
    json.attribute("registers", entry.registers);
    json.attribute("spillBytes", entry.spillStoreBytes + entry.spillLoadBytes);
    json.attribute("sharedBytes", entry.sharedBytes);
  });
}

bool saveBundle(const GpuImage &image, ModuleOp module, StringRef folder) {
  if (std::error_code error = llvm::sys::fs::create_directories(folder)) {
    llvm::errs() << "error: cannot create the folder " << folder << ": " << error.message() << "\n";
    return false;
  }
  auto describe = [&](raw_ostream &os) {
    llvm::json::OStream json(os, 1);
    json.object([&] {
      json.attribute("chip", image.chip);
      json.attributeArray("kernels", [&] {
        for (const GpuKernel &kernel : image.kernels)
          writeKernel(json, kernel, module.lookupSymbol<func::FuncOp>(kernel.info.name));
      });
      json.attributeArray("entries", [&] {
        for (const EntryReport &entry : image.reports)
          writeEntry(json, entry);
      });
    });
    os << "\n";
  };
  return writeFile(folder, "kernels.json", describe) &&
         writeFile(folder, "kernels.ptx", [&](raw_ostream &os) { os << image.ptx; }) &&
         (image.cubin.empty() || writeFile(folder, "kernels.cubin", [&](raw_ostream &os) {
            os.write(image.cubin.data(), image.cubin.size());
          }));
}
