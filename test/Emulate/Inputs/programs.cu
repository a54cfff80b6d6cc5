// Small CUDA programs, for clang without CUDA's headers and for nvcc.
#ifdef __clang__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define TID __nvvm_read_ptx_sreg_tid_x()
#define TID_Y __nvvm_read_ptx_sreg_tid_y()
#define BLOCK __nvvm_read_ptx_sreg_ctaid_x()
#define BLOCK_Y __nvvm_read_ptx_sreg_ctaid_y()
#define THREADS __nvvm_read_ptx_sreg_ntid_x()
#define BLOCKS __nvvm_read_ptx_sreg_nctaid_x()
#define SHUFFLE_XOR(value, mask) __nvvm_shfl_sync_bfly_f32(0xffffffff, value, mask, 31)
#define ATOMIC_ADD(address, value) __atomic_fetch_add(address, value, __ATOMIC_RELAXED)
#define EXP2(x) __nvvm_ex2_approx_f(x)
#define NOINLINE __attribute__((noinline))
#else
#define TID threadIdx.x
#define TID_Y threadIdx.y
#define BLOCK blockIdx.x
#define BLOCK_Y blockIdx.y
#define THREADS blockDim.x
#define BLOCKS gridDim.x
#define SHUFFLE_XOR(value, mask) __shfl_xor_sync(0xffffffff, value, mask)
#define ATOMIC_ADD(address, value) atomicAdd(address, value)
#define EXP2(x) exp2f(x)
#define NOINLINE __noinline__
#endif

// Each block adds up its part: lanes by shuffles, warps through shared memory, blocks by atomics.
extern "C" __global__ void sum(const float *in, float *out, int n) {
  __shared__ float partial[32];
  float total = 0;
  for (int i = BLOCK * THREADS + TID; i < n; i += BLOCKS * THREADS)
    total += in[i];
  for (int mask = 16; mask; mask /= 2)
    total += SHUFFLE_XOR(total, mask);
  if (TID % 32 == 0)
    partial[TID / 32] = total;
  __syncthreads();
  if (TID >= 32)
    return;
  total = TID < THREADS / 32 ? partial[TID] : 0;
  for (int mask = 16; mask; mask /= 2)
    total += SHUFFLE_XOR(total, mask);
  if (TID == 0)
    ATOMIC_ADD(out, total);
}

// Tiles of 32 x 32, by blocks of 32 x 8.
extern "C" __global__ void transpose(const float *in, float *out, int rows, int columns) {
  __shared__ float tile[32][33];
  for (int y = TID_Y; y < 32; y += 8)
    if (BLOCK * 32 + TID < columns && BLOCK_Y * 32 + y < rows)
      tile[y][TID] = in[(BLOCK_Y * 32 + y) * columns + BLOCK * 32 + TID];
  __syncthreads();
  for (int y = TID_Y; y < 32; y += 8)
    if (BLOCK_Y * 32 + TID < rows && BLOCK * 32 + y < columns)
      out[(BLOCK * 32 + y) * rows + BLOCK_Y * 32 + TID] = tile[TID][y];
}

__device__ NOINLINE int classify(int value) {
  switch (value % 7) {
  case 0:
    return value / 3;
  case 1:
    return value * 5 + 1;
  case 2:
    return value ^ 0x55;
  case 3:
    return value << 2;
  case 4:
    return -value;
  default:
    return value & 15;
  }
}

extern "C" __global__ void histogram(const int *in, int *out, int n) {
  __shared__ int bins[16];
  if (TID < 16)
    bins[TID] = 0;
  __syncthreads();
  int i = BLOCK * THREADS + TID;
  if (i < n)
    ATOMIC_ADD(&bins[classify(in[i]) & 15], 1);
  __syncthreads();
  if (TID < 16)
    ATOMIC_ADD(&out[TID], bins[TID]);
}

// Lanes that loop for different times.
extern "C" __global__ void collatz(int *out, int n) {
  int i = BLOCK * THREADS + TID;
  if (i >= n)
    return;
  long long x = i + 1;
  int steps = 0;
  while (x != 1) {
    x = x % 2 ? 3 * x + 1 : x / 2;
    ++steps;
  }
  out[i] = steps;
}

// One warp per row, kept in local memory.
extern "C" __global__ void softmax(const float *in, float *out, int columns, int rotate) {
  float own[8];
  const float *row = in + BLOCK * columns;
  float most = -1e30f, total = 0;
  for (int k = 0; k < 8; ++k) {
    own[(k + rotate) % 8] = k * 32 + (int)TID < columns ? row[k * 32 + TID] : -1e30f;
    most = most > own[(k + rotate) % 8] ? most : own[(k + rotate) % 8];
  }
  for (int mask = 16; mask; mask /= 2) {
    float other = SHUFFLE_XOR(most, mask);
    most = most > other ? most : other;
  }
  for (int k = 0; k < 8; ++k) {
    own[k] = EXP2((own[k] - most) * 1.44269504f);
    total += own[k];
  }
  for (int mask = 16; mask; mask /= 2)
    total += SHUFFLE_XOR(total, mask);
  for (int k = 0; k < 8; ++k)
    if (k * 32 + TID < columns)
      out[BLOCK * columns + k * 32 + TID] = own[(k + rotate) % 8] / total;
}
