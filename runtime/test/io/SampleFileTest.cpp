//===- SampleFileTest.cpp - Samples of inputs in files ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests valid and malformed NumPy headers. Also tests files whose shape, type or ids do not fit the
// input, and the order in which rows are read.
//
//===----------------------------------------------------------------------===//

#include "io/SampleFile.h"
#include "core/Error.h"
#include "io/Batches.h"
#include "testing/toy/ToyModel.h"
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <unistd.h>

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
/// A file in the build folder. The destructor removes the file.
struct Scratch {
  std::string path;
  explicit Scratch(const std::string &bytes, const std::string &extension = "")
      : path(FSDPRT_SCRATCH "/input." + std::to_string(getpid()) + "." + std::to_string(counter++) +
             extension) {
    writeFile(path, bytes.data(), bytes.size());
  }
  ~Scratch() { unlink(path.c_str()); }
  static int counter;
};
int Scratch::counter = 0;

std::string refusal(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    EXPECT_EQ(error.status, FSDPRT_BAD_INPUT) << error.what();
    return error.message;
  }
  return "";
}

/// The description of an input, and the shape to which it points.
struct TestInput {
  std::vector<uint64_t> shape;
  fsdprt_input_info info = {};

  TestInput(const char *name, fsdprt_dtype dtype, std::vector<uint64_t> dims, uint64_t limit = 0,
            fsdprt_input_role role = FSDPRT_OTHER)
      : shape(std::move(dims)) {
    info.struct_size = sizeof info;
    info.name = name;
    info.role = role;
    info.dtype = dtype;
    info.rank = static_cast<uint32_t>(shape.size());
    info.shape = shape.data();
    info.bytes = sizeOf(static_cast<DType>(dtype));
    for (uint64_t dim : shape)
      info.bytes *= dim;
    info.micro_batches = 1;
    info.limit = limit;
  }
};

template <typename T>
std::string bytesOf(const std::vector<T> &values) {
  return std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
}

std::string npy(const std::string &dictionary, const std::string &elements, int major = 1) {
  std::string text = dictionary + "\n";
  std::string bytes = "\x93NUMPY" + std::string(1, char(major)) + std::string(1, '\0');
  uint32_t length = static_cast<uint32_t>(text.size());
  bytes.append(reinterpret_cast<const char *>(&length), major == 1 ? 2 : 4);
  return bytes + text + elements;
}

std::string npyOf(const std::string &descr, const std::string &shape, const std::string &elements) {
  return npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }",
             elements);
}

/// Returns the error for an input whose samples have the shape `row`.
std::string refusalOf(const std::string &bytes, const TestInput &input, std::vector<uint64_t> row,
                      const std::string &extension = ".npy") {
  Scratch file(bytes, extension);
  std::string message = refusal([&] { SampleFile(file.path, input.info, row); });
  EXPECT_TRUE(message.empty() || message.rfind(file.path + ": ", 0) == 0) << message;
  return message;
}
} // namespace

#define EXPECT_SAYS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)

TEST(SampleFile, ReadsNumpy) {
  TestInput ids("ids", FSDPRT_I64, {2, 3}, 100);
  std::vector<int32_t> values = {1, 2, 3, 4, 5, 99};
  for (int major : {1, 2, 3}) {
    Scratch file(
        npy("{\"shape\": (2,3), 'fortran_order':False,'descr':'<i4'}", bytesOf(values), major));
    SampleFile read(file.path, ids.info, {3});
    EXPECT_EQ(read.getRows(), 2u);
    int64_t row[3];
    read.copyRow(1, reinterpret_cast<std::byte *>(row));
    EXPECT_EQ(row[0], 4);
    EXPECT_EQ(row[2], 99);
  }
}

TEST(SampleFile, ConvertsFloats) {
  TestInput x("x", FSDPRT_F32, {4, 2});
  std::vector<double> wide = {0.5, -2, 3, 1e300};
  EXPECT_SAYS(refusalOf(npyOf("<f8", "(2, 2)", bytesOf(wide)), x, {2}),
              "element 3, 1e+300, is too large for input 'x' of f32");
  wide[3] = 0.25;
  Scratch file(npyOf("<f8", "(2, 2)", bytesOf(wide)));
  SampleFile read(file.path, x.info, {2});
  float row[2];
  read.copyRow(1, reinterpret_cast<std::byte *>(row));
  EXPECT_EQ(row[0], 3);
  EXPECT_EQ(row[1], 0.25f);
  EXPECT_SAYS(refusalOf(npyOf("<i4", "(2, 2)", std::string(16, '\0')), x, {2}),
              "is of f32: expected a file of F64, F32, F16 or BF16, found I32");
}

TEST(SampleFile, RefusesMalformedHeaders) {
  TestInput x("x", FSDPRT_F32, {2, 2});
  std::string data(16, '\0'), good = npyOf("<f4", "(2, 2)", data);
  EXPECT_EQ(refusalOf(good, x, {2}), "");
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(refusalOf(good.substr(0, length), x, {2}), "") << length;
  EXPECT_NE(refusalOf(good + "x", x, {2}), "");
  // Damaged files may be refused or accepted, but must not crash the process.
  for (size_t at = 0; at < good.size() - data.size(); ++at)
    for (int value : {0, 1, 0x7f, 0xff, int('('), int('9'), int('}'), int('\'')}) {
      std::string damaged = good;
      damaged[at] = static_cast<char>(value);
      refusalOf(damaged, x, {2});
    }
  auto says = [&](const std::string &dictionary, const char *words) {
    EXPECT_SAYS(refusalOf(npy(dictionary, data), x, {2}), words);
  };
  says("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 2)}",
       "expected little-endian numbers, such as '<f4', '<i8' or '|b1', found '>f4'");
  says("{'descr': '<c8', 'fortran_order': False, 'shape': (2, 2)}", "found '<c8'");
  says("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 2)}", "found records");
  says("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", "found Fortran order");
  says("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 2)}", "expected True or False");
  says("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 2)}",
       "expected a whole number in shape");
  says("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 2)}",
       "does not fit 64 bits");
  says("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, "
       "9223372036854775807)}",
       "its shape overflows");
  says("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
       "its shape overflows");
  says("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
       "says 24 bytes of elements, found 16");
  says("{'descr': '<f4', 'fortran_order': False, 'shape': "
       "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
       "at most 32 dimensions");
  says("{'descr': '<f4', 'fortran_order': False}", "expected descr, fortran_order and shape");
  says("{'descr': '<f4', 'descr': '<f4', 'shape': (2, 2)}", "expected 'descr' once");
  says("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), 'x': 1}", "found 'x'");
  says("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)} more",
       "expected nothing after the dictionary");
  says("{'descr': '<f4", "expected a closing quote, found the header's end");
  says("", "expected '{', found its end");
  EXPECT_SAYS(refusalOf(npy("{}", data, 9), x, {2}),
              "expected an .npy file of version 1, 2 or 3, found version 9");
  EXPECT_SAYS(refusalOf("text", x, {2}), "expected an .npy file, which begins with");
}

TEST(SampleFile, RefusesWhatDoesNotFit) {
  TestInput images("images", FSDPRT_F32, {4, 2, 2}), labels("labels", FSDPRT_I32, {4}, 10),
      mask("mask", FSDPRT_I1, {4, 2});
  EXPECT_SAYS(refusalOf(npyOf("<f4", "(3, 4)", std::string(48, '\0')), images, {2, 2}),
              "input 'images' expected a file of shape Nx2x2, N samples of at least 1, found 3x4");
  EXPECT_SAYS(refusalOf(npyOf("<f4", "(0, 2, 2)", ""), images, {2, 2}), "found 0x2x2");
  EXPECT_SAYS(refusalOf(npyOf("<f4", "()", std::string(4, '\0')), images, {2, 2}),
              "found a scalar");
  EXPECT_SAYS(
      refusalOf(std::string(20, '\0'), images, {2, 2}, ".bin"),
      "expected a raw file of a multiple of 16 bytes, for samples of 2x2 in F32, found 20 bytes");
  EXPECT_SAYS(refusalOf("", images, {2, 2}, ".bin"), "expected samples, found an empty file");
  EXPECT_SAYS(refusalOf(npyOf("<i8", "(3,)", bytesOf<int64_t>({0, 9, 10})), labels, {}),
              "element 0 of sample 2: input 'labels' expected an id in [0, 9], found 10");
  EXPECT_SAYS(refusalOf(npyOf("<i8", "(1,)", bytesOf<int64_t>({-1})), labels, {}), "found -1");
  EXPECT_SAYS(refusalOf(npyOf("<u8", "(1,)", bytesOf<uint64_t>({1ull << 63})), labels, {}),
              "expected an id in [0, 9]");
  labels.info.limit = 0;
  EXPECT_SAYS(refusalOf(npyOf("<i8", "(1,)", bytesOf<int64_t>({1ll << 31})), labels, {}),
              "expected an integer in [-2147483648, 2147483647], found 2147483648");
  EXPECT_EQ(refusalOf(npyOf("|u1", "(2,)", std::string("\xff\x01", 2)), labels, {}), "");
  EXPECT_SAYS(refusalOf(npyOf("<f4", "(2,)", std::string(8, '\0')), labels, {}),
              "is of i32: expected a file of integers, found F32");
  EXPECT_EQ(refusalOf(npyOf("|b1", "(1, 2)", std::string("\1\0", 2)), mask, {2}), "");
  EXPECT_SAYS(refusalOf(npyOf("|u1", "(1, 2)", std::string("\2\0", 2)), mask, {2}),
              "expected an integer in [0, 1], found 2");
  int64_t extra = -100;
  labels.info.limit = 10;
  labels.info.extra_ids = &extra;
  labels.info.num_extra_ids = 1;
  EXPECT_EQ(refusalOf(npyOf("<i2", "(2,)", bytesOf<int16_t>({-100, 9})), labels, {}), "");
}

TEST(SampleFile, ReadsSafetensors) {
  TestInput ids("ids", FSDPRT_I64, {2, 2}, 10);
  std::vector<int64_t> values = {1, 2, 3, 4, 5, 6, 7, 8};
  std::string header =
      R"({"ids":{"dtype":"I64","shape":[2,2],"data_offsets":[32,64]},"y":{"dtype":"I64","shape":[4],"data_offsets":[0,32]}})";
  auto write = [&](const std::string &text) {
    uint64_t length = text.size();
    return std::string(reinterpret_cast<const char *>(&length), 8) + text + bytesOf(values);
  };
  Scratch file(write(header), ".safetensors");
  SampleFile read(file.path, ids.info, {2});
  int64_t row[2];
  read.copyRow(1, reinterpret_cast<std::byte *>(row));
  EXPECT_EQ(row[0], 7);
  EXPECT_EQ(read.sha256().size(), 64u);
  ids.info.name = "z";
  EXPECT_SAYS(refusalOf(write(header), ids, {2}, ".safetensors"),
              "expected a tensor 'z', or one tensor alone, found 2 without that name");
}

TEST(SampleFile, DrawsOneRowForAllInputs) {
  std::vector<int64_t> xs, ys;
  for (int i = 0; i < 20; ++i) {
    xs.insert(xs.end(), {i, 100 + i});
    ys.push_back(i);
  }
  Scratch xFile(bytesOf(xs)), yFile(bytesOf(ys)), table(bytesOf<int64_t>({7, 8, 9}));
  TestInput x("x", FSDPRT_I64, {4, 2}), y("y", FSDPRT_I64, {4}), t("t", FSDPRT_I64, {3});
  SampleFile xs1(xFile.path, x.info, {2}), ys1(yFile.path, y.info, {}),
      table1(table.path, t.info, {});
  BatchOptions options;
  options.validationFraction = 0.25;
  Batches batches({x.info, y.info, t.info}, nullptr, 2, options, {&xs1, &ys1, &table1});
  EXPECT_EQ(batches.trainRows(), 15u);
  EXPECT_EQ(batches.validationRows(), 5u);
  EXPECT_EQ(batches.validationBatches(), 1u); // a batch has 8 samples
  EXPECT_TRUE(batches.isFixed(2));
  std::set<int64_t> drawn;
  for (uint64_t step = 0; step < 40; ++step)
    for (uint64_t rank : {0, 1}) {
      auto *a = static_cast<const int64_t *>(batches.train(step, rank, 0, 0));
      auto *b = static_cast<const int64_t *>(batches.train(step, rank, 0, 1));
      auto *c = static_cast<const int64_t *>(batches.train(step, rank, 0, 2));
      EXPECT_EQ(c[2], 9);
      for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(a[2 * i], b[i]);
        EXPECT_EQ(a[2 * i + 1], 100 + b[i]);
        drawn.insert(b[i]);
      }
    }
  EXPECT_EQ(drawn.size(), 15u);
  EXPECT_EQ(*drawn.rbegin(), 14);
  auto *last = static_cast<const int64_t *>(batches.validation(0, 1, 0, 1));
  EXPECT_EQ(last[0], 15 + 4);
  EXPECT_EQ(last[1], 15); // After the last sample, the batch continues with the first sample.
}

TEST(SampleFile, RefusesUnequalSamples) {
  Scratch xFile(bytesOf(std::vector<int64_t>(10))), yFile(bytesOf(std::vector<int64_t>(6)));
  TestInput x("x", FSDPRT_I64, {4, 2}), y("y", FSDPRT_I64, {4}), t("t", FSDPRT_I64, {3});
  SampleFile xs(xFile.path, x.info, {2}), ys(yFile.path, y.info, {}), ts(yFile.path, t.info, {});
  auto refuse = [](std::vector<fsdprt_input_info> inputs, std::vector<const SampleFile *> files) {
    return refusal([&] { Batches(inputs, nullptr, 1, {}, files); });
  };
  EXPECT_SAYS(refuse({x.info, y.info}, {&xs, &ys}), "expected 5 samples for input 'y'");
  EXPECT_SAYS(
      refuse({x.info, t.info}, {&xs, &ts}),
      "input 't' has leading dimension 3, other inputs have 4 samples, so it is the same at "
      "every step: expected a file of 3 rows, found 6");
  // One-dimensional targets contain windows one after another. Each of these windows is as long as
  // a window of tokens.
  TestInput tokens("tokens", FSDPRT_I64, {4, 2}, 0, FSDPRT_TOKENS),
      flat("targets", FSDPRT_I64, {8}, 0, FSDPRT_TARGETS);
  EXPECT_EQ(sampleShapeOf({tokens.info, flat.info}, 1).samples, 4u);
  EXPECT_EQ(sampleShapeOf({tokens.info, flat.info}, 1).row, std::vector<uint64_t>{2});
}
