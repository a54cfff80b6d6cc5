//===- CpuFeatures.cpp - Features of this processor -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An entry of the table contains a feature's name, and the leaf, subleaf, register and bit of CPUID
// that report the feature. The last member of an entry is a mask of the bits of XCR0 that the
// operating system must set: bits 1-2 for AVX, bits 1-2 and 5-7 for AVX-512, bits 17-18 for AMX.
//
//===----------------------------------------------------------------------===//

#include "artifact/CpuFeatures.h"
#include "core/Error.h"
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

using namespace fsdprt;

#if defined(__x86_64__)

namespace {
enum Register { eax, ebx, ecx, edx };
enum State : uint32_t { none = 0, avx = 0x6, avx512 = 0xe6, amx = 0x60000 };
struct Entry {
  const char *name;
  uint32_t leaf, subleaf;
  Register reg;
  int bit;
  State state;
};
} // namespace

static constexpr Entry entries[] = {
    {"fpu", 1, 0, edx, 0, none},
    {"cx8", 1, 0, edx, 8, none},
    {"cmov", 1, 0, edx, 15, none},
    {"mmx", 1, 0, edx, 23, none},
    {"fxsr", 1, 0, edx, 24, none},
    {"sse", 1, 0, edx, 25, none},
    {"sse2", 1, 0, edx, 26, none},
    {"pni", 1, 0, ecx, 0, none},
    {"pclmulqdq", 1, 0, ecx, 1, none},
    {"ssse3", 1, 0, ecx, 9, none},
    {"fma", 1, 0, ecx, 12, avx},
    {"cx16", 1, 0, ecx, 13, none},
    {"sse4_1", 1, 0, ecx, 19, none},
    {"sse4_2", 1, 0, ecx, 20, none},
    {"movbe", 1, 0, ecx, 22, none},
    {"popcnt", 1, 0, ecx, 23, none},
    {"aes", 1, 0, ecx, 25, none},
    {"xsave", 1, 0, ecx, 26, none},
    {"avx", 1, 0, ecx, 28, avx},
    {"f16c", 1, 0, ecx, 29, avx},
    {"rdrand", 1, 0, ecx, 30, none},
    {"fsgsbase", 7, 0, ebx, 0, none},
    {"bmi1", 7, 0, ebx, 3, none},
    {"avx2", 7, 0, ebx, 5, avx},
    {"bmi2", 7, 0, ebx, 8, none},
    {"avx512f", 7, 0, ebx, 16, avx512},
    {"avx512dq", 7, 0, ebx, 17, avx512},
    {"rdseed", 7, 0, ebx, 18, none},
    {"adx", 7, 0, ebx, 19, none},
    {"avx512ifma", 7, 0, ebx, 21, avx512},
    {"clflushopt", 7, 0, ebx, 23, none},
    {"clwb", 7, 0, ebx, 24, none},
    {"avx512cd", 7, 0, ebx, 28, avx512},
    {"sha_ni", 7, 0, ebx, 29, none},
    {"avx512bw", 7, 0, ebx, 30, avx512},
    {"avx512vl", 7, 0, ebx, 31, avx512},
    {"avx512vbmi", 7, 0, ecx, 1, avx512},
    {"avx512_vbmi2", 7, 0, ecx, 6, avx512},
    {"gfni", 7, 0, ecx, 8, none},
    {"vaes", 7, 0, ecx, 9, avx},
    {"vpclmulqdq", 7, 0, ecx, 10, avx},
    {"avx512_vnni", 7, 0, ecx, 11, avx512},
    {"avx512_bitalg", 7, 0, ecx, 12, avx512},
    {"avx512_vpopcntdq", 7, 0, ecx, 14, avx512},
    {"movdiri", 7, 0, ecx, 27, none},
    {"movdir64b", 7, 0, ecx, 28, none},
    {"avx512_vp2intersect", 7, 0, edx, 8, avx512},
    {"amx_bf16", 7, 0, edx, 22, amx},
    {"avx512_fp16", 7, 0, edx, 23, avx512},
    {"amx_tile", 7, 0, edx, 24, amx},
    {"amx_int8", 7, 0, edx, 25, amx},
    {"avx_vnni", 7, 1, eax, 4, avx},
    {"avx512_bf16", 7, 1, eax, 5, avx512},
    {"amx_fp16", 7, 1, eax, 21, amx},
    {"avx_ifma", 7, 1, eax, 23, avx},
    {"avx_vnni_int8", 7, 1, edx, 4, avx},
    {"avx_ne_convert", 7, 1, edx, 5, avx},
    {"lahf_lm", 0x80000001, 0, ecx, 0, none},
    {"abm", 0x80000001, 0, ecx, 5, none},
    {"sse4a", 0x80000001, 0, ecx, 6, none},
    {"3dnowprefetch", 0x80000001, 0, ecx, 8, none},
    {"clzero", 0x80000008, 0, ebx, 0, none},
};

static bool systemSaves(State state, const Processor &processor) {
  if (state == none)
    return true;
  uint32_t registers[4];
  if (!processor.cpuid(1, 0, registers) || !(registers[ecx] >> 27 & 1))
    return false;
  return (processor.savedStates() & state) == state;
}

Feature fsdprt::cpuFeature(const char *name, const Processor &processor) {
  for (const Entry &entry : entries) {
    if (std::strcmp(entry.name, name) != 0)
      continue;
    uint32_t registers[4];
    bool present = processor.cpuid(entry.leaf, entry.subleaf, registers) &&
                   (registers[entry.reg] >> entry.bit & 1) && systemSaves(entry.state, processor);
    return present ? Feature::present : Feature::absent;
  }
  return Feature::unknown;
}

static bool askThis(uint32_t leaf, uint32_t subleaf, uint32_t (&r)[4]) {
  return __get_cpuid_count(leaf, subleaf, &r[eax], &r[ebx], &r[ecx], &r[edx]) != 0;
}

static uint32_t statesSavedHere() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

static Feature featureOfThis(const char *name) {
  return cpuFeature(name, {askThis, statesSavedHere});
}

#else // On other processors, the line "Features" of /proc/cpuinfo lists the features.

#include <cstdio>

static Feature featureOfThis(const char *name) {
  std::FILE *file = std::fopen("/proc/cpuinfo", "r");
  if (!file)
    return Feature::unknown;
  char line[4096];
  Feature found = Feature::unknown;
  while (found == Feature::unknown && std::fgets(line, sizeof line, file))
    if (std::strncmp(line, "Features", 8) == 0) {
      found = Feature::absent;
      for (char *word = std::strtok(line + 8, " :\t\n"); word;
           word = std::strtok(nullptr, " :\t\n"))
        if (std::strcmp(word, name) == 0)
          found = Feature::present;
    }
  std::fclose(file);
  return found;
}

#endif

static bool isHidden(const char *name) {
  const char *variable = std::getenv("FSDPRT_HIDE_FEATURES");
  std::istringstream names(variable ? variable : "");
  bool hidden = false;
  for (std::string word; std::getline(names, word, ',');) {
    if (featureOfThis(word.c_str()) == Feature::unknown)
      badInput("the environment's FSDPRT_HIDE_FEATURES: expected names of processor features "
               "separated by commas, found '%s'",
               printable(word).c_str());
    hidden |= word == name;
  }
  return hidden;
}

Feature fsdprt::cpuFeature(const char *name) {
  Feature feature = featureOfThis(name);
  return feature == Feature::present && isHidden(name) ? Feature::absent : feature;
}
