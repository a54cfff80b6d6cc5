//===- EmulateMatrixTest.cpp - Matrix instructions against C++ --*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests instructions on matrices. Some functions compute which elements of a matrix a lane has.
// They follow the lists of elements in PTX ISA.
//
//===----------------------------------------------------------------------===//

#include "emulator/arithmetic/Formats.h"
#include "test/emulator/EmulateFixture.h"
#include <random>

using namespace fsdprt::test;
using namespace fsdprt::emulate;

namespace {
struct Product {
  const char *opcode;
  unsigned rows, inner, aRegisters, bRegisters, sumRegisters;
  char type; ///< h for f16, b for bf16, t for tf32, d for f64
  bool isHalfSum = false;
};

/// Returns the row and the column of element i of A in a lane, according to the lists in PTX ISA,
/// "Matrix Fragments for mma.m16n8k16" and similar sections.
std::pair<unsigned, unsigned> placeOfA(const Product &p, unsigned lane, unsigned i) {
  unsigned group = lane / 4, inGroup = lane % 4;
  // The elements are a0 to a3 for k8, and a0 to a7 for k16.
  if (p.type == 'h' || p.type == 'b')
    return {i % 4 < 2 ? group : group + 8, inGroup * 2 + (i & 1) + (i < 4 ? 0 : 8)};
  if (p.type == 't')
    return {i == 0 || i == 2 ? group : group + 8, i < 2 ? inGroup : inGroup + 4};
  return {group, inGroup};
}
std::pair<unsigned, unsigned> placeOfB(const Product &p, unsigned lane, unsigned i) {
  unsigned group = lane / 4, inGroup = lane % 4;
  if (p.type == 'h' || p.type == 'b')
    return {inGroup * 2 + (i & 1) + (i < 2 ? 0 : 8), group};
  return {p.type == 't' && i ? inGroup + 4 : inGroup, group};
}
std::pair<unsigned, unsigned> placeOfSum(const Product &, unsigned lane, unsigned i) {
  return {i < 2 ? lane / 4 : lane / 4 + 8, lane % 4 * 2 + (i & 1)};
}

uint64_t bitsOfNumber(char type, double value) {
  switch (type) {
  case 'h':
    return encode(value, formatF16, Rounding::NearestEven, false);
  case 'b':
    return encode(value, formatBF16, Rounding::NearestEven, false);
  case 'd':
    return bitsAs<uint64_t>(value);
  default:
    return bitsAs<uint32_t>(float(value));
  }
}
double numberOfBits(char type, uint64_t bits) {
  switch (type) {
  case 'h':
    return decode(bits, formatF16);
  case 'b':
    return decode(bits, formatBF16);
  case 'd':
    return bitsAs<double>(bits);
  default:
    return bitsAs<float>(uint32_t(bits));
  }
}

class ProductTest : public testing::TestWithParam<Product> {};
} // namespace

/// Returns a kernel that loads A, B and C and stores D. The memory contains first A, then B, C and
/// D. Each matrix is stored register by register: first register 0 of all lanes, then register 1 of
/// all lanes.
static std::string program(const Product &p) {
  bool isDouble = p.type == 'd';
  std::string type = isDouble ? "b64" : "b32", reg = isDouble ? "%rd1" : "%r1",
              body = "mov.u32 %r0, %tid.x;\n", lists[3];
  unsigned counts[] = {p.aRegisters, p.bRegisters, p.sumRegisters}, size = isDouble ? 8 : 4,
           offset = 0;
  for (unsigned m = 0; m < 3; ++m) {
    for (unsigned r = 0; r < counts[m]; ++r, offset += 32 * size) {
      std::string name = reg + std::to_string(m) + std::to_string(r);
      body += ".reg ." + type + " " + name + ";\nmad.wide.u32 %rd1, %r0, " + std::to_string(size) +
              ", %rd0;\nld.global." + type + " " + name + ", [%rd1+" + std::to_string(offset) +
              "];\n";
      lists[m] += (r ? ", " : "") + name;
    }
    lists[m] = "{" + lists[m] + "}";
  }
  body += std::string(p.opcode) + " " + lists[2] + ", " + lists[0] + ", " + lists[1] + ", " +
          lists[2] + ";\n";
  for (unsigned r = 0; r < p.sumRegisters; ++r, offset += 32 * size)
    body += "st.global." + type + " [%rd1+" + std::to_string(offset) + "], " + reg + "2" +
            std::to_string(r) + ";\n";
  return body;
}

TEST_P(ProductTest, IsTheSumOfProducts) {
  const Product &p = GetParam();
  unsigned size = p.type == 'd' ? 8 : 4, perRegister = p.type == 'h' || p.type == 'b' ? 2 : 1;
  unsigned words = 32 * (p.aRegisters + p.bRegisters + 2 * p.sumRegisters);
  std::vector<uint8_t> memory(words * size);
  std::mt19937 random(11);
  auto draw = [&] { return double(int(random() % 2001) - 1000) / 256; };
  double a[16][16], b[16][8], c[16][8];
  auto put = [&](unsigned reg, unsigned lane, unsigned part, char type, uint64_t bits) {
    unsigned bytes = type == 'd' ? 8 : type == 'h' || type == 'b' ? 2 : 4;
    std::memcpy(&memory[(reg * 32 + lane) * size + part * bytes], &bits, bytes);
  };
  char sumType = p.isHalfSum ? 'h' : p.type == 'd' ? 'd' : 'f';
  unsigned perSum = p.isHalfSum ? 2 : 1;
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < p.aRegisters * perRegister; ++i) {
      auto [row, column] = placeOfA(p, lane, i);
      uint64_t bits = bitsOfNumber(p.type, draw());
      a[row][column] = numberOfBits(p.type, bits);
      put(i / perRegister, lane, i % perRegister, p.type, bits);
    }
    for (unsigned i = 0; i < p.bRegisters * perRegister; ++i) {
      auto [row, column] = placeOfB(p, lane, i);
      uint64_t bits = bitsOfNumber(p.type, draw());
      b[row][column] = numberOfBits(p.type, bits);
      put(p.aRegisters + i / perRegister, lane, i % perRegister, p.type, bits);
    }
    for (unsigned i = 0; i < p.sumRegisters * perSum; ++i) {
      auto [row, column] = placeOfSum(p, lane, i);
      uint64_t bits = bitsOfNumber(sumType, draw());
      c[row][column] = numberOfBits(sumType, bits);
      put(p.aRegisters + p.bRegisters + i / perSum, lane, i % perSum, sumType, bits);
    }
  }
  Emulator emulator("mma.ptx", kernel(program(p)));
  Launch launch;
  launch.entry = "k", launch.block[0] = 32;
  launch.argument(emulator.memory().attach("memory", memory.data(), memory.size()).base);
  EXPECT_EQ(emulator.launch(launch).multiplyAdds, p.rows * p.inner * 8u);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < p.sumRegisters * perSum; ++i) {
      auto [row, column] = placeOfSum(p, lane, i);
      double sum = c[row][column]; // The sum is exact in double.
      for (unsigned k = 0; k < p.inner; ++k)
        sum += a[row][k] * b[k][column];
      uint64_t bits = 0, wanted = bitsOfNumber(sumType, sum);
      unsigned bytes = sumType == 'd' ? 8 : sumType == 'h' ? 2 : 4;
      std::memcpy(
          &bits,
          &memory[((p.aRegisters + p.bRegisters + p.sumRegisters + i / perSum) * 32 + lane) * size +
                  i % perSum * bytes],
          bytes);
      ASSERT_EQ(bits, wanted) << "row " << row << " column " << column << ": "
                              << numberOfBits(sumType, bits) << " for " << sum;
    }
}

INSTANTIATE_TEST_SUITE_P(
    EmulateMatrix, ProductTest,
    testing::Values(
        Product{"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, 4, 2, 4, 'b'},
        Product{"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, 2, 1, 4, 'b'},
        Product{"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16, 16, 4, 2, 4, 'h'},
        Product{"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", 16, 16, 4, 2, 2, 'h', true},
        Product{"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", 16, 8, 2, 1, 2, 'h', true},
        Product{"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, 4, 2, 4, 't'},
        Product{"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", 16, 4, 2, 1, 4, 't'},
        Product{"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 8, 4, 1, 1, 2, 'd'}),
    [](const auto &info) {
      std::string name = info.param.opcode + 17;
      for (char &c : name)
        c = c == '.' ? '_' : c;
      return name;
    });

static const char *const aligned = ".shared .align 16 .b8 tile[1024];";
/// PTX that fills four 8 x 8 matrices. Element (row, column) of matrix number `matrix` is 100 *
/// matrix + 8 * row + column.
static const std::string filled = std::string(outElement) + R"(
  mov.u32 %r1, tile; mad.lo.u32 %r2, %r0, 16, %r1; mov.u32 %r3, 0;
  fill: shr.u32 %r4, %r0, 3; and.b32 %r5, %r0, 7; mul.lo.u32 %r6, %r4, 100; mad.lo.u32 %r6, %r5, 8, %r6; add.u32 %r6, %r6, %r3;
  mad.lo.u32 %r7, %r3, 2, %r2; st.shared.b16 [%r7], %r6; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 8; @%p1 bra fill;
)";

static std::vector<uint32_t> loaded(const std::string &load, const std::string &select) {
  return runBlock<uint32_t>(filled + "bar.warp.sync -1;\n" + load + "\nst.global.b32 [%rd10], " +
                                select + ";",
                            32, 32, aligned);
}

TEST(EmulateMatrix, LoadsRowsAndColumns) {
  for (unsigned m = 0; m < 4; ++m) {
    std::string reg = "%r2" + std::to_string(m);
    std::vector<uint32_t> rows =
        loaded("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r2];", reg);
    std::vector<uint32_t> columns = loaded(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r20, %r21, %r22, %r23}, [%r2];", reg);
    for (unsigned lane = 0; lane < 32; ++lane) {
      unsigned first = 100 * m + 8 * (lane / 4) + 2 * (lane % 4),
               down = 100 * m + 8 * (2 * (lane % 4)) + lane / 4;
      EXPECT_EQ(rows[lane], (first + 1) << 16 | first);
      EXPECT_EQ(columns[lane], (down + 8) << 16 | down);
    }
  }
  EXPECT_EQ(loaded("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r2];", "%r20")[5],
            (11u << 16) | 10);
}

TEST(EmulateMatrix, StoresWhatItLoads) {
  std::string body = filled + R"(
    bar.warp.sync -1;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r2];
    movmatrix.sync.aligned.m8n8.trans.b16 %r20, %r20;
    stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r2+512], {%r20, %r21, %r22, %r23};
    bar.warp.sync -1;
    mad.lo.u32 %r3, %r0, 4, %r1; ld.shared.b32 %r4, [%r3+512]; ld.shared.b32 %r5, [%r3+640]; st.global.b32 [%rd10], %r4; st.global.b32 [%rd10+128], %r5;)";
  std::vector<uint32_t> found = runBlock<uint32_t>(body, 64, 32, aligned);
  for (unsigned word = 0; word < 32; ++word) {
    unsigned row = word / 4, column = word % 4 * 2;
    EXPECT_EQ(found[word], (8 * row + column + 1) << 16 | (8 * row + column));
    EXPECT_EQ(found[32 + word], (100 + 8 * (column + 1) + row) << 16 | (100 + 8 * column + row));
  }
}

static std::string errorOfLoad(const std::string &load) {
  return messageOf([&] { loaded(load, "%r20"); });
}

TEST(EmulateMatrix, AddressesAreChecked) {
  EXPECT_NE(errorOfLoad("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r2+4];")
                .find("is not aligned to 16 bytes"),
            std::string::npos);
  EXPECT_NE(errorOfLoad("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r2+1024];")
                .find("out of bounds"),
            std::string::npos);
  EXPECT_NE(errorOfLoad("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r2+512];")
                .find("never written"),
            std::string::npos);
  EXPECT_NE(errorOfLoad("ldmatrix.sync.aligned.m8n8.x1.b16 {%r20}, [%rd0];")
                .find("is not in shared memory"),
            std::string::npos);
  EXPECT_NE(errorOfLoad("@%p1 bra skip; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r2]; "
                        "skip: setp.lt.u32 %p1, %r0, 5; @%p1 "
                        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r2];")
                .find("all 32 lanes have to take part"),
            std::string::npos);
}

/// Thread t copies 16 bytes to shared memory, and then reads the 16 bytes that thread t ^ `away`
/// has copied.
static std::string asyncExchange(const std::string &wait, const std::string &away) {
  return std::string(outElement) + R"(
    mov.u32 %r1, tile; mad.lo.u32 %r2, %r0, 16, %r1; mad.wide.u32 %rd11, %r0, 16, %rd0;
    cp.async.cg.shared.global [%r2], [%rd11], 16;
    cp.async.commit_group;)" +
         wait + "\nxor.b32 %r3, %r0, " + away +
         "; mad.lo.u32 %r4, %r3, 16, %r1; ld.shared.b32 %r5, [%r4+4];\n" +
         "bar.sync 0; st.global.b32 [%rd10], %r5;";
}

static std::string errorOfExchange(const std::string &wait, const std::string &away) {
  return errorOfBlock(asyncExchange(wait, away), 64, aligned);
}

TEST(EmulateAsyncCopy, WaitsAndBarriersAreNeeded) {
  EXPECT_EQ(errorOfExchange("cp.async.wait_group 0; bar.sync 0;", "32"), "");
  EXPECT_EQ(errorOfExchange("cp.async.wait_all; bar.sync 0;", "32"), "");
  EXPECT_EQ(errorOfExchange("cp.async.wait_group 0;", "0"), "");
  EXPECT_EQ(errorOfExchange("cp.async.wait_group 0; bar.warp.sync -1;", "1"), "");
  auto races = [&](const std::string &wait, const std::string &away, const std::string &text) {
    std::string message = errorOfExchange(wait, away);
    EXPECT_NE(message.find(text), std::string::npos) << wait << " " << away << ": " << message;
  };
  races("", "0",
        "data race: reads 4 bytes at shared memory + 0x4, which lane 0 of the same warp "
        "asynchronously writes at line");
  races("cp.async.wait_group 1;", "0", "asynchronously writes");
  races("bar.sync 0;", "32", "asynchronously writes");
  races("cp.async.wait_group 0;", "1", "asynchronously writes");
  races("cp.async.wait_group 0; bar.warp.sync -1;", "32", "shared memory + 0x204");
}

TEST(EmulateAsyncCopy, GroupsCompleteInOrder) {
  auto body = [](const std::string &left, const std::string &offset) {
    return std::string(outElement) + R"(
      mov.u32 %r1, tile; mad.lo.u32 %r2, %r0, 16, %r1; mad.wide.u32 %rd11, %r0, 16, %rd0;
      cp.async.ca.shared.global [%r2], [%rd11], 16; cp.async.commit_group;
      cp.async.ca.shared.global [%r2+512], [%rd11], 8, 4; cp.async.commit_group;
      cp.async.wait_group )" +
           left + "; ld.shared.v2.b32 {%r3, %r4}, [%r2+" + offset +
           "]; add.u32 %r3, %r3, %r4; st.global.b32 [%rd10+2048], %r3;";
  };
  EXPECT_EQ(errorOfBlock(body("1", "0"), 32, aligned), "");
  EXPECT_EQ(errorOfBlock(body("0", "512"), 32, aligned), "");
  EXPECT_NE(errorOfBlock(body("1", "512"), 32, aligned).find("asynchronously writes"),
            std::string::npos);
}

TEST(EmulateAsyncCopy, BytesThatAreNotReadAreZero) {
  std::vector<uint32_t> found = runBlock<uint32_t>(R"(
    st.global.v4.b32 [%rd0], {1, 2, 3, 4};
    cp.async.ca.shared.global [tile], [%rd0], 16, 6; cp.async.wait_all;
    ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [tile]; st.global.v4.b32 [%rd0+16], {%r1, %r2, %r3, %r4};)",
                                                   8, 1, aligned);
  EXPECT_EQ(found, (std::vector<uint32_t>{1, 2, 3, 4, 1, 2, 0, 0}));
}
