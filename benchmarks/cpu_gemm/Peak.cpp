//===- Peak.cpp - Peak rate of multiply-adds on registers -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Peak.h"
#include "fsdpcommon/TileData.h"
#include <cstdint>
#include <ctime>
#include <immintrin.h>

static constexpr int chains = 16;
static constexpr int64_t steps = 2000000;

template <typename Body>
static double rate(Body body, double flopsPerStep) {
  auto now = [] { // Measures CPU time, so that other processes do not lower the peak.
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
  };
  double start = now();
  body();
  return steps * flopsPerStep / (now() - start) / 1e9;
}

__attribute__((target("avx512f"))) static void runWide() {
  __m512 sums[chains], a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(1e-3f);
  for (int i = 0; i < chains; ++i)
    sums[i] = _mm512_set1_ps(float(i));
  for (int64_t step = 0; step < steps; ++step)
    for (int i = 0; i < chains; ++i) {
      sums[i] = _mm512_fmadd_ps(sums[i], a, b);
      asm volatile("" : "+v"(sums[i]));
    }
}

__attribute__((target("avx2,fma"))) static void runNarrow() {
  constexpr int narrowChains = 12; // the sums occupy 12 of the 16 registers
  __m256 sums[narrowChains], a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(1e-3f);
  for (int i = 0; i < narrowChains; ++i)
    sums[i] = _mm256_set1_ps(float(i));
  for (int64_t step = 0; step < steps; ++step)
    for (int i = 0; i < narrowChains; ++i) {
      sums[i] = _mm256_fmadd_ps(sums[i], a, b);
      asm volatile("" : "+v"(sums[i]));
    }
}

__attribute__((target("avx512f,avx512bf16"))) static void runPairs() {
  __m512 sums[chains];
  __m512bh a = (__m512bh)_mm512_set1_epi16(0x3f00), b = (__m512bh)_mm512_set1_epi16(0x3c00);
  for (int i = 0; i < chains; ++i)
    sums[i] = _mm512_set1_ps(float(i));
  for (int64_t step = 0; step < steps; ++step)
    for (int i = 0; i < chains; ++i) {
      sums[i] = _mm512_dpbf16_ps(sums[i], a, b);
      asm volatile("" : "+v"(sums[i]));
    }
}

// Adds products of 16 x 32 and 32 x 16 elements to four tiles of sums in each step.
__attribute__((target("amx-tile,amx-bf16"))) static void runTiles() {
  alignas(64) uint8_t config[64] = {1}; // palette 1
  for (int tile = 0; tile < 8; ++tile) {
    config[16 + 2 * tile] = 64; // bytes of a row
    config[48 + tile] = 16;     // rows
  }
  _tile_loadconfig(config);
  _tile_zero(4);
  _tile_zero(5);
  for (int64_t step = 0; step < steps / 8; ++step) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_release();
}

double measurePeak(PeakKind kind) {
  switch (kind) {
  case PeakKind::Tiles:
    return fsdpcommon::requestTileData() ? rate(runTiles, 4.0 * 16 * 16 * 32 * 2 / 8) : 0;
  case PeakKind::Dots:
    return rate(runPairs, chains * 16 * 4);
  case PeakKind::F32:
    break;
  }
  if (__builtin_cpu_supports("avx512f"))
    return rate(runWide, chains * 16 * 2);
  return rate(runNarrow, 12 * 8 * 2);
}
