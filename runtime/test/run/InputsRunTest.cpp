//===- InputsRunTest.cpp - fsdp-run with files of inputs --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests the output and the errors of fsdp-run with --input, --synthetic and --text. fsdp-run must
// report which inputs are random.
//
//===----------------------------------------------------------------------===//

#include "test/run/RunFixture.h"

using namespace fsdprt;
using namespace fsdprt::test;

namespace {
class RunInputs : public Run {
protected:
  void SetUp() override {
    Run::SetUp();
    write("ids.bin", 40, 0);
    write("tgt.bin", 40, 1);
    write("other.bin", 40, 2);
    write("short.bin", 8, 0);
  }

  void write(const std::string &name, int64_t rows, int64_t first) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < 4 * rows; ++i)
      ids.push_back((first + i) % 256);
    writeFile(at(name), ids.data(), ids.size() * 8);
  }

  std::string firstLine(const std::string &output) { return output.substr(0, output.find('\n')); }
  std::string lastLine(const std::string &output) {
    size_t end = output.find_last_not_of('\n'), begin = output.rfind('\n', end);
    return output.substr(begin + 1, end - begin);
  }
};
} // namespace

TEST_F(RunInputs, SaysWhatIsRandom) {
  Result result = run("toy2.fsdp --steps=2");
  EXPECT_NE(firstLine(result.output).find(", on random data"), std::string::npos) << result.output;
  EXPECT_EQ(lastLine(result.output),
            "note: this was a run on random data: its loss says nothing about a model")
      << result.output;
  EXPECT_NE(result.output.find("parameters: 2 trained (102 elements), 0 frozen, 0 constant\n"),
            std::string::npos)
      << result.output;
  result = run("toy2.fsdp --steps=2 --input ids=ids.bin --synthetic=tgt");
  EXPECT_NE(firstLine(result.output).find(", on random data for tgt"), std::string::npos)
      << result.output;
  EXPECT_NE(lastLine(result.output).find("random data for tgt"), std::string::npos)
      << result.output;
  result = run("toy2.fsdp --steps=2 --input ids=ids.bin --input=tgt=tgt.bin");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(result.output.find("random"), std::string::npos) << result.output;
  EXPECT_NE(
      result.output.find("samples: 36 to train on, 4 to validate; sample i is row i of ids, tgt\n"),
      std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("validation loss"), std::string::npos) << result.output;
}

TEST_F(RunInputs, RefusesWhatIsNotFed) {
  expect(2,
         "input 'tgt' would be random ids, although other inputs have data; feed it with "
         "--input tgt=FILE, or allow this with --synthetic=tgt",
         "toy2.fsdp --input ids=ids.bin");
  expect(2, "toy2.fsdp has no input 'labels'; it has ids, tgt", "toy2.fsdp --input labels=ids.bin");
  expect(2, "has no input 'labels'", "toy2.fsdp --synthetic labels");
  expect(2, "input 'ids' is named twice", "toy2.fsdp --input ids=ids.bin --synthetic ids");
  expect(2, "input 'ids' is named twice", "toy2.fsdp --input ids=ids.bin --input ids=tgt.bin");
  expect(2, "input 'tgt' comes from --text", "toy2.fsdp --text=ids.bin --input tgt=tgt.bin");
  expect(2, "expected NAME=FILE, found 'ids'", "toy2.fsdp --input ids");
  expect(2, "expected NAME=FILE, found 'ids='", "toy2.fsdp --input ids=");
  expect(2, "nosuch.bin: cannot open", "toy2.fsdp --input ids=nosuch.bin --synthetic tgt");
  expect(2, "expected 40 samples for input 'tgt', as many as ids.bin has for 'ids', found 8",
         "toy2.fsdp --input ids=ids.bin --input tgt=short.bin");
  expect(2, "nothing to validate on: expected --data, --text or --input",
         "toy2.fsdp --val-every=1");
}

TEST_F(RunInputs, IsTheSameForAnyRanks) {
  std::string both = " --input ids=ids.bin --input tgt=tgt.bin";
  expect(0, "check against unsharded passed",
         "toy3.fsdp --steps=5 --check-against=unsharded --assert-no-allocations" + both);
  expect(0, "3 steps in", "toy2.fsdp --steps=3 --metrics=a.jsonl" + both);
  expect(0, "3 steps in", "toy2.fsdp --steps=3 --metrics=b.jsonl --processes" + both);
  std::string a = text("a.jsonl"), b = text("b.jsonl");
  EXPECT_EQ(a.substr(0, a.find("\"tokens_per")), b.substr(0, b.find("\"tokens_per")));
  expect(0, "3 steps in",
         "toy2.fsdp --steps=3 --metrics=c.jsonl --input ids=ids.bin --input tgt=other.bin");
  std::string c = text("c.jsonl");
  EXPECT_NE(a.substr(0, a.find("\"tokens_per")), c.substr(0, c.find("\"tokens_per")));
}

TEST_F(RunInputs, ResumesOnTheSameSamples) {
  std::string both = " --input ids=ids.bin --input tgt=tgt.bin ";
  expect(0, "", "toy2.fsdp --steps=6 --export=whole.safetensors" + both);
  expect(0, "saved step 3", "toy2.fsdp --steps=3 --save=s" + both);
  EXPECT_NE(text("s/step-00000003/index.json").find("\"samples\":40"), std::string::npos);
  expect(0, "resumed after step 3",
         "toy2.fsdp --steps=6 --resume=s --export=again.safetensors" + both);
  EXPECT_EQ(text("whole.safetensors"), text("again.safetensors"));
  expect(2, "not the samples of",
         "toy2.fsdp --steps=6 --resume=s --input ids=ids.bin --input tgt=other.bin");
  expect(2, "give that file with --input tgt=FILE",
         "toy2.fsdp --steps=6 --resume=s --input ids=ids.bin --synthetic tgt");
  expect(2, "trained on a file for input 'ids'", "toy2.fsdp --steps=6 --resume=s");
  expect(2, "trained on the first 36 samples, found 20",
         "toy2.fsdp --steps=6 --resume=s --val-fraction=0.5" + both);
  expect(0, "resumed after step 3",
         "toy2.fsdp --steps=6 --resume=s --other-data --input ids=ids.bin --input tgt=other.bin");
}
