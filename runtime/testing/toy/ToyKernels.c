/*===- ToyKernels.c - The kernels of the toy model ----------------*- C -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This file is compiled to a shared object that uses no C library, like the images of the compiler.
// `table` contains pointers, so that the loader must apply relocations. LaunchRecords.cpp fills in
// the launch records, which depend on the sizes of the model.
//
//===----------------------------------------------------------------------===*/

#include <stdint.h>

typedef void *const *Bindings;

/* The records are not all zero, so that they have bytes in the file. */
#define LAUNCHES(NAME) uint64_t NAME##_launches[48] __asm__(#NAME ".launch") = {0, 1}
LAUNCHES(toy_gradient);
LAUNCHES(toy_loss_parts);
LAUNCHES(toy_loss_sum);
LAUNCHES(toy_add);
LAUNCHES(toy_mean1);
LAUNCHES(toy_mean2);
LAUNCHES(toy_mean3);
LAUNCHES(toy_mean4);
LAUNCHES(toy_mean5);
LAUNCHES(toy_mean6);
LAUNCHES(toy_square);
LAUNCHES(toy_update);
LAUNCHES(toy_finish);
LAUNCHES(toy_report);
LAUNCHES(toy_hang);
LAUNCHES(toy_call);

/* (w, tokens i64[8], targets i64[8], gradient): computes a gradient with which the update moves w
 * towards a number computed from the ids. */
void toy_gradient(Bindings b, int64_t begin, int64_t end, void *workspace) {
  const float *w = b[0];
  const int64_t *tokens = b[1], *targets = b[2];
  float *gradient = b[3];
  for (int64_t i = begin; i < end; ++i)
    gradient[i] = w[i] - 0.01f * (float)(tokens[i % 8] + 2 * targets[(i / 8) % 8]);
}

/* (gradient, w, loss, shared scratch): sums of 16 squares each, then the sum of these sums. */
void toy_loss_parts(Bindings b, int64_t begin, int64_t end, void *workspace) {
  const float *gradient = b[0];
  float *parts = b[3];
  for (int64_t p = begin; p < end; ++p) {
    float sum = 0;
    for (int i = 0; i < 16; ++i)
      sum += gradient[p * 16 + i] * gradient[p * 16 + i];
    parts[p] = sum;
    *(float *)workspace = sum; /* The scratch memory of the worker must be writable. */
  }
}
void toy_loss_sum(Bindings b, int64_t begin, int64_t end, void *workspace) {
  float *loss = b[2];
  const float *parts = b[3];
  float sum = 0;
  for (int64_t p = begin; p < end; ++p)
    sum += parts[p];
  *loss = 0.5f * sum;
}

/* (sum, x): sum += x */
void toy_add(Bindings b, int64_t begin, int64_t end, void *workspace) {
  float *sum = b[0];
  const float *x = b[1];
  for (int64_t i = begin; i < end; ++i)
    sum[i] += x[i];
}

/* (x, factor[1]): x *= factor */
static const float thirds[] = {1.0f, 1.0f / 2, 1.0f / 3, 1.0f / 4, 1.0f / 5, 1.0f / 6};
static const float *const table[] = {thirds,     thirds + 1, thirds + 2,
                                     thirds + 3, thirds + 4, thirds + 5};
#define TOY_MEAN(N)                                                                                \
  void toy_mean##N(Bindings b, int64_t begin, int64_t end, void *workspace) {                      \
    float *x = b[0];                                                                               \
    const float *const volatile *row = table;                                                      \
    for (int64_t i = begin; i < end; ++i)                                                          \
      x[i] *= *row[N - 1];                                                                         \
  }
TOY_MEAN(1)
TOY_MEAN(2)
TOY_MEAN(3)
TOY_MEAN(4)
TOY_MEAN(5)
TOY_MEAN(6)

/* (gradient shard, sum of squares): sums the squares of one chunk. */
void toy_square(Bindings b, int64_t begin, int64_t end, void *workspace) {
  const float *gradient = b[0];
  float *square = b[1], sum = 0;
  for (int64_t i = begin; i < end; ++i)
    sum += gradient[i] * gradient[i];
  *square = sum;
}

/* (w, m, gradient, block): m = m / 2 + gradient; w -= block[0] * m. */
void toy_update(Bindings b, int64_t begin, int64_t end, void *workspace) {
  float *w = b[0], *m = b[1];
  const float *gradient = b[2], *block = b[3];
  for (int64_t i = begin; i < end; ++i) {
    m[i] = 0.5f * m[i] + gradient[i];
    w[i] -= block[0] * m[i];
  }
}

/* (squares, one in 16 floats; loss; block): adds squares, and stores their root and the loss. */
void toy_finish(Bindings b, int64_t begin, int64_t end, void *workspace) {
  const float *squares = b[0], *loss = b[1];
  float *block = b[2], sum = 0;
  for (int64_t i = begin; i < end; ++i)
    sum += squares[i * 16];
  block[1] += 1;
  block[7] = *loss;
  block[8] = __builtin_sqrtf(sum);
}

/* (loss, block): stores the loss in the block. */
void toy_report(Bindings b, int64_t begin, int64_t end, void *workspace) {
  ((float *)b[1])[7] = *(const float *)b[0];
}

/* (block): increments block[9], and does not return while block[9] is at least 2. */
void toy_hang(Bindings b, int64_t begin, int64_t end, void *workspace) {
  volatile float *block = b[0];
  block[9] += 1;
  while (block[9] >= 2)
    ;
}

/* (block): opens a socket, a system call that kernels may not use. */
void toy_call(Bindings b, int64_t begin, int64_t end, void *workspace) {
#ifdef __x86_64__
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(41L), "D"(1L), "S"(1L), "d"(0L)
                   : "rcx", "r11", "memory");
  ((volatile float *)b[0])[9] = (float)result;
#endif
}
