//===- PeakRates.cpp - Peak rates of the machine ----------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Each thread repeats a loop for a fixed time and counts its bytes or multiply-adds.
//  2. To measure the bandwidth of memory, the loop copies between two buffers that are larger than
//     the caches of the thread. To measure multiply-adds, the loop computes twelve independent sums
//     in the widest vector registers. A processor that has two units, each with a latency of four
//     cycles, needs at least eight independent sums to keep both units busy. For bf16, the loop
//     uses the tile registers of AMX if the processor has them and the operating system allows
//     their use. Otherwise it uses the instruction vdpbf16ps if the processor has it. As a bf16 is
//     also an f32, the rate for bf16 is at least the rate for f32.
//  3. The result is the highest rate of three rounds, because other processes only lower a rate.
//
//===----------------------------------------------------------------------===//

#include "PeakRates.h"
#include "core/FutexEvent.h"
#include "fsdpcommon/TileData.h"
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#define FSDP_TARGET(features) __attribute__((target(features)))
#endif

using namespace fsdprt;

static constexpr double secondsPerRound = 0.02;
static constexpr size_t bufferBytes = 16 << 20;
static constexpr int sums = 12, steps = 20000;

double PeakRates::floor(uint64_t movedBytes, uint64_t products, uint64_t bf16Products) const {
  double computing = static_cast<double>(products) / multiplyAdds +
                     static_cast<double>(bf16Products) / bf16MultiplyAdds;
  return std::max(static_cast<double>(movedBytes) / bytes, computing);
}

/// addPlain() and the functions below return the number of multiply-adds that they compute.
static uint64_t addPlain() {
  float sum[sums] = {};
  for (int i = 0; i < steps; ++i)
    for (float &each : sum) {
      each = each * 0.5f + 1.0f;
      asm volatile("" : "+m"(each));
    }
  return uint64_t(sums) * steps;
}

#if defined(__x86_64__)
FSDP_TARGET("avx2,fma") static uint64_t addAvx2() {
  __m256 sum[sums], half = _mm256_set1_ps(0.5f);
  for (__m256 &each : sum)
    each = half;
  for (int i = 0; i < steps; ++i)
    for (__m256 &each : sum) {
      each = _mm256_fmadd_ps(each, half, half);
      asm volatile("" : "+x"(each));
    }
  return uint64_t(sums) * steps * 8;
}

FSDP_TARGET("avx512f") static uint64_t addAvx512() {
  __m512 sum[sums], half = _mm512_set1_ps(0.5f);
  for (__m512 &each : sum)
    each = half;
  for (int i = 0; i < steps; ++i)
    for (__m512 &each : sum) {
      each = _mm512_fmadd_ps(each, half, half);
      asm volatile("" : "+v"(each));
    }
  return uint64_t(sums) * steps * 16;
}

FSDP_TARGET("avx512f,avx512bf16") static uint64_t addBf16() {
  __m512 sum[sums];
  __m512i bits = _mm512_set1_epi16(0x3c00);
  __m512bh pairs;
  std::memcpy(&pairs, &bits, sizeof pairs);
  for (__m512 &each : sum)
    each = _mm512_setzero_ps();
  for (int i = 0; i < steps; ++i)
    for (__m512 &each : sum) {
      each = _mm512_dpbf16_ps(each, pairs, pairs);
      asm volatile("" : "+v"(each));
    }
  return uint64_t(sums) * steps * 32;
}

/// Adds products to four tiles of sums, as the generated kernels do. Each instruction adds the
/// products of 32 pairs to each of 16 x 16 sums.
FSDP_TARGET("amx-tile,amx-bf16") static uint64_t addTiles() {
  // Select palette 1 of AMX, and configure all tiles with 16 rows of 64 bytes.
  alignas(64) uint8_t config[64] = {1};
  for (int tile = 0; tile < 8; ++tile) {
    config[16 + 2 * tile] = 64;
    config[48 + tile] = 16;
  }
  _tile_loadconfig(config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  for (int i = 0; i < steps; ++i) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_release();
  return uint64_t(4) * steps * 16 * 16 * 32;
}
#endif

/// Measures three rounds and returns the highest rate. The rate of a round is the sum of the rates
/// of all threads, in bytes or multiply-adds per nanosecond. work(thread) returns the number of
/// bytes or multiply-adds of one call.
template <typename Work>
static double measure(uint32_t threads, Work work) {
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    std::vector<double> rates(threads);
    std::atomic<uint32_t> ready{0};
    auto run = [&](uint32_t thread) {
      // The first call is not measured, because it maps pages, and the clock rate may rise during
      // it.
      work(thread);
      ++ready;
      while (ready < threads)
        std::this_thread::yield();
      double start = monotonicSeconds(), now = start, done = 0;
      for (; now - start < secondsPerRound; now = monotonicSeconds())
        done += static_cast<double>(work(thread));
      rates[thread] = done / ((now - start) * 1e9);
    };
    std::vector<std::thread> others;
    for (uint32_t thread = 1; thread < threads; ++thread)
      others.emplace_back(run, thread);
    run(0);
    for (std::thread &other : others)
      other.join();
    double sum = 0;
    for (double rate : rates)
      sum += rate;
    best = std::max(best, sum);
  }
  return best;
}

PeakRates fsdprt::measurePeakRates(uint32_t threads, double share) {
  threads = std::min(threads, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::unique_ptr<char[]>> buffers;
  for (uint32_t i = 0; i < threads; ++i) {
    buffers.emplace_back(new char[2 * bufferBytes]);
    std::memset(buffers.back().get(), 1, 2 * bufferBytes);
  }
  PeakRates peak;
  peak.bytes = measure(threads, [&](uint32_t thread) {
    char *buffer = buffers[thread].get();
    std::memcpy(buffer, buffer + bufferBytes, bufferBytes);
    asm volatile("" : : "r"(buffer) : "memory");
    return 2 * bufferBytes;
  });
  uint64_t (*add)() = addPlain, (*addNarrow)() = nullptr;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f"))
    add = addAvx512;
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    add = addAvx2;
  if (__builtin_cpu_supports("amx-bf16") && fsdpcommon::requestTileData())
    addNarrow = addTiles;
  else if (__builtin_cpu_supports("avx512bf16"))
    addNarrow = addBf16;
#endif
  peak.multiplyAdds = measure(threads, [&](uint32_t) { return add(); });
  peak.bf16MultiplyAdds = peak.multiplyAdds;
  if (addNarrow)
    peak.bf16MultiplyAdds =
        std::max(peak.bf16MultiplyAdds, measure(threads, [&](uint32_t) { return addNarrow(); }));
  // With tiles, a product of two f32 takes six products of bf16.
  peak.multiplyAdds = std::max(peak.multiplyAdds, peak.bf16MultiplyAdds / 6);
  for (double *rate : {&peak.bytes, &peak.multiplyAdds, &peak.bf16MultiplyAdds})
    *rate /= share;
  return peak;
}
