/*===- Sha256.c - SHA-256 (FIPS 180-4) ----------------------------*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The code follows the steps of the standard. It processes blocks of 64 bytes. For each block it
// computes a schedule of 64 words and applies 64 rounds to the state, which has eight words. After
// the data, it appends the number of bits of the data. If the processor has SHA instructions, they
// are used.
//
//===----------------------------------------------------------------------===*/

#include "fsdprt/sha256.h"
#include "fsdprt/artifact_header.h"
#include <string.h>

/* A constant is the first 32 bits of the fractional part of the cube root of a prime. */
static const uint32_t roundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotateRight(uint32_t value, int by) { return value >> by | value << (32 - by); }

static void schedule(const uint8_t *block, uint32_t words[64]) {
  for (int i = 0; i < 16; ++i)
    words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    uint32_t a = words[i - 15], b = words[i - 2];
    uint32_t s0 = rotateRight(a, 7) ^ rotateRight(a, 18) ^ a >> 3;
    uint32_t s1 = rotateRight(b, 17) ^ rotateRight(b, 19) ^ b >> 10;
    words[i] = words[i - 16] + s0 + words[i - 7] + s1;
  }
}

static void compressPlain(uint32_t state[8], const uint8_t *block) {
  uint32_t words[64];
  schedule(block, words);
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (int i = 0; i < 64; ++i) {
    uint32_t s1 = rotateRight(e, 6) ^ rotateRight(e, 11) ^ rotateRight(e, 25);
    uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + roundConstants[i] + words[i];
    uint32_t s0 = rotateRight(a, 2) ^ rotateRight(a, 13) ^ rotateRight(a, 22);
    uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1;
    d = c, c = b, b = a, a = t1 + t2;
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d;
  state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

#if defined(__x86_64__) && !defined(FSDPRT_SHA256_PORTABLE)
#include <cpuid.h>
#include <immintrin.h>

static int hasInstructions(void) {
  static int known; /* 0 until determined */
  if (!__atomic_load_n(&known, __ATOMIC_RELAXED)) {
    unsigned a, b = 0, c = 0, d, sse4 = 0;
    __get_cpuid(1, &a, &b, &sse4, &d);
    b = 0;
    __get_cpuid_count(7, 0, &a, &b, &c, &d);
    __atomic_store_n(&known, (b & bit_SHA) && (sse4 & bit_SSE4_1) && (sse4 & bit_SSSE3) ? 2 : 1,
                     __ATOMIC_RELAXED);
  }
  return __atomic_load_n(&known, __ATOMIC_RELAXED) == 2;
}

/* Two registers contain the state words (a, b, e, f) and (c, d, g, h), with the highest element
 * first. Four other registers contain the last 16 words of the schedule, from which the next four
 * words are computed. */
__attribute__((target("sha,sse4.1,ssse3"))) static void compressFast(uint32_t state[8],
                                                                     const uint8_t *block) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
  __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
  __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
  const __m128i abefBefore = abef, cdghBefore = cdgh;
  __m128i words[4];
  for (int i = 0; i < 4; ++i)
    words[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(block + 16 * i)), swap);
  for (int i = 0; i < 16; ++i) {
    __m128i now = words[i % 4];
    __m128i sum = _mm_add_epi32(now, _mm_loadu_si128((const __m128i *)(roundConstants + 4 * i)));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    if (i >= 12)
      continue;
    __m128i next = _mm_sha256msg1_epu32(now, words[(i + 1) % 4]);
    next = _mm_add_epi32(next, _mm_alignr_epi8(words[(i + 3) % 4], words[(i + 2) % 4], 4));
    words[i % 4] = _mm_sha256msg2_epu32(next, words[(i + 3) % 4]);
  }
  abef = _mm_add_epi32(abef, abefBefore);
  cdgh = _mm_add_epi32(cdgh, cdghBefore);
  low = _mm_shuffle_epi32(abef, 0x1b);
  high = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xf0));
  _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(high, low, 8));
}

static void compress(uint32_t state[8], const uint8_t *block) {
  hasInstructions() ? compressFast(state, block) : compressPlain(state, block);
}
#else
static void compress(uint32_t state[8], const uint8_t *block) { compressPlain(state, block); }
#endif

void fsdprt_sha256_begin(fsdprt_sha256 *hash) {
  /* A word is the first 32 bits of the fractional part of the square root of a prime. */
  static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, initial, sizeof initial);
  hash->bytes = 0;
}

void fsdprt_sha256_update(fsdprt_sha256 *hash, const void *data, size_t size) {
  const uint8_t *bytes = (const uint8_t *)data;
  size_t waiting = hash->bytes % 64;
  hash->bytes += size;
  if (waiting + size < 64) {
    if (size)
      memcpy(hash->block + waiting, bytes, size);
    return;
  }
  if (waiting) {
    memcpy(hash->block + waiting, bytes, 64 - waiting);
    compress(hash->state, hash->block);
    bytes += 64 - waiting;
    size -= 64 - waiting;
  }
  for (; size >= 64; bytes += 64, size -= 64)
    compress(hash->state, bytes);
  if (size)
    memcpy(hash->block, bytes, size);
}

void fsdprt_sha256_end(fsdprt_sha256 *hash, uint8_t digest[32]) {
  static const uint8_t padding[64] = {0x80};
  uint64_t bits = hash->bytes * 8;
  uint8_t length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = (uint8_t)(bits >> (56 - 8 * i));
  fsdprt_sha256_update(hash, padding, 1 + (119 - hash->bytes % 64) % 64);
  fsdprt_sha256_update(hash, length, sizeof length);
  for (int i = 0; i < 32; ++i)
    digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void fsdprt_sha256_artifact(const void *file, size_t size, uint8_t digest[32]) {
  static const uint8_t zeros[FSDPRT_ARTIFACT_HASH_SIZE];
  const uint8_t *bytes = (const uint8_t *)file;
  const size_t behind = FSDPRT_ARTIFACT_HASH_OFFSET + FSDPRT_ARTIFACT_HASH_SIZE;
  fsdprt_sha256 hash;
  fsdprt_sha256_begin(&hash);
  fsdprt_sha256_update(&hash, bytes, FSDPRT_ARTIFACT_HASH_OFFSET);
  fsdprt_sha256_update(&hash, zeros, sizeof zeros);
  fsdprt_sha256_update(&hash, bytes + behind, size - behind);
  fsdprt_sha256_end(&hash, digest);
}
