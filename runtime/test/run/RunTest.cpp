//===- RunTest.cpp - fsdp-run as a process ----------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests the exit codes, messages and metrics of fsdp-run, and import and export of weights. Also
// tests runs with planted faults and runs on a full disk.
//
//===----------------------------------------------------------------------===//

#include "io/Safetensors.h"
#include "test/run/RunFixture.h"
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>

using namespace fsdprt;
using namespace fsdprt::test;

TEST_F(Run, ChecksAgainstUnsharded) {
  for (const char *ranks : {"1", "2", "3", "4"})
    expect(
        0, "check against unsharded passed: 20 steps",
        std::string("toy") + ranks + ".fsdp --ranks=" + ranks +
            " --steps=20 --check-against=unsharded --assert-no-allocations --threads-per-rank=2");
}

TEST_F(Run, FindsPlantedFaults) {
  for (const char *fault : {"skip-shard-element", "drop-gradient"})
    for (const char *ranks : {"1", "2", "3"})
      expect(1, "check against unsharded failed",
             std::string("toy") + ranks +
                 ".fsdp --steps=3 --check-against=unsharded --inject-fault=" + fault);
  expect(1, "expected no allocation",
         "toy2.fsdp --steps=3 --assert-no-allocations --inject-fault=allocate");
}

TEST_F(Run, Profiles) {
  Result result = run("toy2.fsdp --steps=6 --profile --assert-no-allocations --threads-per-rank=2");
  EXPECT_EQ(result.code, 0) << result.output;
  for (const char *words :
       {"profile: 5 steps of ", "  between commands\n", "  loss row, first: loss\n",
        "  all_gather collective, first: gather root\n", "  update map, first: update\n",
        "no memory was allocated"})
    EXPECT_NE(result.output.find(words), std::string::npos) << words << "\n" << result.output;
  expect(2, "expected --steps=2 or more, found '1'", "toy2.fsdp --steps=1 --profile");
  expect(0, "check against unsharded passed",
         "toy3.fsdp --steps=3 --profile --check-against=unsharded");
}

TEST_F(Run, Traces) {
  expect(0, "trace: the last 3 steps of 2 ranks in t.json",
         "toy2.fsdp --steps=9 --trace=t.json --trace-steps=3 --assert-no-allocations");
  expect(0, "trace: the last 2 steps of 3 ranks in t.json",
         "toy3.fsdp --steps=2 --trace=t.json --profile --check-against=unsharded "
         "--assert-no-allocations");
  expect(2, "--trace-steps requires --trace", "toy2.fsdp --trace-steps=3");
  expect(2, "t.json: --trace and --metrics are the same file",
         "toy2.fsdp --trace=t.json --metrics=t.json");
  expect(1, "No space left", "toy2.fsdp --steps=2 --trace=/dev/full");
}

TEST_F(Run, OnlyKinds) {
  Result result = run("toy2.fsdp --steps=6 --only-kinds=row --profile --metrics=times.jsonl");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("only with kernels of kind row"), std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("  loss row, first: loss\n"), std::string::npos) << result.output;
  for (const char *words : {"loss 0", "norm", "gradient map", "collective"})
    EXPECT_EQ(result.output.find(words), std::string::npos) << words << "\n" << result.output;
  EXPECT_EQ(text("times.jsonl").rfind("{\"step\":1,\"tokens_per_second\":", 0), 0u);
  expect(2, "has no kernel of kind 'contract'; its kinds: map, row",
         "toy2.fsdp --only-kinds=contract");
  expect(2, "cannot be combined with --check-against",
         "toy2.fsdp --only-kinds=row --check-against=unsharded");
  expect(2, "cannot be combined with --export",
         "toy2.fsdp --only-kinds=row --export=w.safetensors");
}

TEST_F(Run, WritesMetrics) {
  expect(0, "3 steps in", "toy2.fsdp --steps=3 --metrics=m.jsonl --overfit --lr=0.25 --seed=7");
  std::string metrics = text("m.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 3);
  EXPECT_EQ(metrics.rfind("{\"step\":1,\"loss\":", 0), 0u) << metrics;
  for (const char *key :
       {"\"grad_norm\":", "\"lr\":0.25,", "\"tokens_per_second\":", "\"peak_bytes\":2688,",
        "\"planned_bytes\":2688,", "\"reduce_scatter_bytes\":", "\"cpu_ms\":"})
    EXPECT_NE(metrics.find(key), std::string::npos) << metrics;
  expect(0, "",
         "toy2.fsdp --steps=3 --metrics=again.jsonl --overfit --lr=0.25 --seed=7 "
         "--threads-per-rank=3");
  std::string again = text("again.jsonl"); // equals `metrics` except for the speeds
  EXPECT_EQ(again.substr(0, again.find("\"tokens_per")),
            metrics.substr(0, metrics.find("\"tokens_per")));
}

TEST_F(Run, TrainsOnText) {
  std::string words;
  for (int i = 0; i < 500; ++i)
    words += "the quick brown fox ";
  writeFile(at("book.txt"), words.data(), words.size());
  expect(
      0, "validation loss",
      "toy2.fsdp --text=book.txt --steps=5 --val-every=2 --val-batches=3 --assert-no-allocations");
  expect(0, "10,000 uint8 in book.txt: 9,000 to train on, 1,000 to validate",
         "toy2.fsdp --data=book.txt --steps=2");
  writeFile(at("short.txt"), words.data(), 4);
  expect(2, "expected at least 5 tokens", "toy2.fsdp --text=short.txt --steps=2");
  writeFile(at("empty.txt"), "", 0);
  expect(2, "empty.txt: expected tokens, found an empty file", "toy2.fsdp --text=empty.txt");
  expect(2, "nothing to validate on", "toy2.fsdp --steps=2 --val-batches=3");
  uint16_t ids[16] = {1, 2, 300};
  writeFile(at("ids.bin"), ids, sizeof ids);
  expect(2, "ids.bin: token 2 (byte offset 4): expected an id in [0, 256), found 300",
         "toy2.fsdp --data=ids.bin --token-dtype=uint16");
}

TEST_F(Run, WeightsInAndOut) {
  expect(0, "weights: written to a.safetensors",
         "toy2.fsdp --steps=4 --export=a.safetensors --lr=0");
  expect(0, "", "toy3.fsdp --steps=4 --export=b.safetensors --lr=0");
  EXPECT_EQ(text("a.safetensors"),
            text("b.safetensors")); // Initial values do not depend on the number of ranks.
  expect(0, "weights: 2 parameters from a.safetensors",
         "toy4.fsdp --seed=99 --init=a.safetensors --steps=1 --export=c.safetensors --lr=0");
  EXPECT_EQ(text("a.safetensors"), text("c.safetensors"));
  expect(0, "check against unsharded passed",
         "toy2.fsdp --init=a.safetensors --check-against=unsharded --steps=3");
  SafetensorsFile file(at("a.safetensors"));
  EXPECT_EQ(file.getTensors().at("w").shape, (std::vector<uint64_t>{13, 7}));
}

TEST_F(Run, ValuesOfTheModel) {
  for (int shards : {1, 2, 3}) {
    ToyOptions options;
    options.shards = shards;
    options.values = true;
    fb::ManifestT manifest = toyManifest(options);
    auto all = pack(manifest);
    writeFile(at("all" + std::to_string(shards) + ".fsdp"), all.data(), all.size());
    manifest.params[0]->value.reset();
    auto some = pack(manifest);
    writeFile(at("some" + std::to_string(shards) + ".fsdp"), some.data(), some.size());
  }
  const std::string still = " --steps=1 --lr=0 --export=";
  for (const char *ranks : {"1", "2", "3"}) {
    expect(0, "weights: 2 parameters from the model's own values\n",
           "all" + std::string(ranks) + ".fsdp" + still + ranks);
    EXPECT_EQ(text(ranks), text("1"));
    expect(0, "check against unsharded passed",
           "all" + std::string(ranks) + ".fsdp --steps=3 --check-against=unsharded");
  }
  // Without --seed, the run uses the seed of the model.
  expect(
      0,
      "weights: 1 parameter from the model's own values, 1 from their distributions with seed 7\n",
      "some2.fsdp" + still + "a");
  expect(0, "with seed 7\n", "some2.fsdp --seed=7" + still + "b");
  expect(0, "with seed 8\n", "some2.fsdp --seed=8" + still + "c");
  EXPECT_EQ(text("a"), text("b"));
  EXPECT_NE(text("a"), text("c"));
  // Values of --init replace the model's values. If neither --init nor the model has values for a
  // parameter, the run fails.
  float ones[91];
  std::fill_n(ones, 91, 1.0f);
  auto write = [&](const char *file, const char *name, std::vector<uint64_t> shape, size_t size) {
    std::vector<SafetensorsWriter::Entry> entries = {{name, "F32", shape}};
    SafetensorsWriter writer(at(file), entries);
    writer.write(ones, size * 4);
    writer.commit();
  };
  write("w.safetensors", "w", {13, 7}, 91);
  write("b.safetensors", "b", {11}, 11);
  expect(0, "weights: 1 parameter from w.safetensors, 1 from the model's own values\n",
         "some3.fsdp --init=w.safetensors" + still + "out.safetensors");
  SafetensorsFile out(at("out.safetensors"));
  float w, b;
  out.read(out.getTensors().at("w"), 90 * 4, &w, 4);
  out.read(out.getTensors().at("b"), 4, &b, 4);
  EXPECT_EQ(w, 1.0f);
  EXPECT_EQ(b, 1.0f + 0x1p-7f);
  expect(0, "weights: 1 parameter from b.safetensors, 1 from the model's own values",
         "all2.fsdp --init=b.safetensors --steps=2 --check-against=unsharded");
  expect(2, "missing: 'w'", "some3.fsdp --init=b.safetensors");
}

TEST_F(Run, WeightsWithOtherNamesAndTypes) {
  std::vector<uint16_t> data(91 + 11 + 9, 0x3f80);
  std::vector<SafetensorsWriter::Entry> entries = {{"transformer.w", "BF16", {13, 7}},
                                                   {"transformer.b", "BF16", {11}},
                                                   {"transformer.h.0.attn.bias", "BF16", {9}}};
  auto write = [&](const char *name) {
    SafetensorsWriter writer(at(name), entries);
    size_t bytes = 0;
    for (const auto &entry : entries) {
      size_t elements = 2;
      for (uint64_t dim : entry.shape)
        elements *= dim;
      bytes += elements;
    }
    writer.write(data.data(), bytes);
    writer.commit();
  };
  write("ones.safetensors");
  expect(0, "weights: 2 parameters",
         "toy2.fsdp --init=ones.safetensors --steps=1 --lr=0 --export=out.safetensors");
  SafetensorsFile out(at("out.safetensors"));
  float first;
  out.read(out.getTensors().at("b"), 0, &first, 4);
  EXPECT_EQ(first, 1);
  std::string index = R"({"weight_map":{"transformer.w":"ones.safetensors"}})";
  writeFile(at("model.safetensors.index.json"), index.data(), index.size());
  expect(0, "weights: 2 parameters", "toy2.fsdp --init=model.safetensors.index.json --steps=1");
  for (auto &entry : entries)
    if (entry.name == "transformer.b")
      entry.name = "transformer.c";
    else if (entry.name == "transformer.w")
      entry.shape = {7, 13};
  write("bad.safetensors");
  Result bad = run("toy2.fsdp --init=bad.safetensors --steps=1");
  EXPECT_EQ(bad.code, 2);
  for (const char *words : {"'w': expected shape 13x7, found 7x13", "missing: 'b'",
                            "not a parameter of the model: 'transformer.c' (11)"})
    EXPECT_NE(bad.output.find(words), std::string::npos) << bad.output;
}

TEST_F(Run, BadUsage) {
  expect(2, "compiled for 2 ranks (mesh replicate=1,shard=2), asked to run on 3",
         "toy2.fsdp --ranks=3");
  expect(2, "no.fsdp: cannot open the artifact: No such file", "no.fsdp");
  expect(2, "--nonsense", "toy2.fsdp --nonsense");
  expect(2, "artifact is required", "");
  expect(2, "--steps", "toy2.fsdp --steps=0");
  expect(2, "scratch memory for 4 threads", "toy2.fsdp --threads-per-rank=5");
  expect(2, "No such file", "toy2.fsdp --text=missing.txt");
  expect(2, "No such file", "toy2.fsdp --init=missing.safetensors");
  expect(0, "Examples:", "--help");
  for (const char *hidden : {"--launched-rank=0", "--launched-channel=1",
                             "--launched-rank=0 --launched-channel=0", "--launched-resume=x"})
    expect(2, "are for processes started by fsdp-run itself",
           std::string("toy2.fsdp --steps=1 ") + hidden);
  expect(0, "fsdp-run 0.", "--version");
  for (const char *hidden : {"inject-fault", "only-kinds"})
    EXPECT_EQ(run("--help").output.find(hidden), std::string::npos);
  expect(0, "all_gather     f32 x 64 over shard", "toy2.fsdp --dump");
  expect(0, "kernel 1 'loss' (row): scratch 64 shared", "toy2.fsdp --dump");
}

TEST_F(Run, RefusesNumbersOutOfRange) {
  for (const char *option : {"--steps", "--ranks", "--threads-per-rank", "--lr-decay-steps"})
    for (const char *value : {"0", "-1", "1.5", "99999999999999999999", "x", "0x10", "'1 '", "nan"})
      expect(2, "fsdp-run: error: " + std::string(option) + ": expected a whole number ",
             std::string("toy2.fsdp ") + option + "=" + value);
  for (const char *option : {"--seed", "--warmup", "--val-every", "--val-batches"})
    for (const char *value : {"-1", "18446744073709551616", "1e3"})
      expect(2,
             "expected a whole number of at least 0 that fits 64 bits, found '" +
                 std::string(value) + "'",
             std::string("toy2.fsdp --text=t ") + option + "=" + value);
  for (const char *option : {"--lr", "--min-lr", "--val-fraction", "--timeout-seconds"})
    for (const char *value : {"nan", "-nan", "inf", "-1", "1e400", "1x"})
      expect(2, "fsdp-run: error: " + std::string(option) + ": expected a",
             std::string("toy2.fsdp ") + option + "='" + value + "'");
  expect(2, "--val-fraction: expected a number from 0 to 0.9, found '0.91'",
         "toy2.fsdp --val-fraction=0.91");
  expect(2, "--token-dtype: expected uint8, uint16 or uint32, found '3'",
         "toy2.fsdp --data=t --token-dtype=3");
  expect(2, "--device: expected cpu, cuda, emulate or null, found 'tpu'", "toy2.fsdp --device=tpu");
  EXPECT_EQ(run("--help").output.find("->"), std::string::npos);
}

TEST_F(Run, NamesTheFileOfItsOptions) {
  for (auto [content, says] :
       {std::pair("{\"steps\": }", ":1:11: not JSON: "),
        std::pair("[1]", ": expected an object of options, found a list of 1"),
        std::pair("{\"stebs\": 2}", ":1:2: unknown key 'stebs'; did you mean 'steps'?"),
        std::pair("{\"steps\": [2]}", ":1:11: 'steps': expected a word, a number, true or false, "
                                      "found a list of 1")}) {
    writeFile(at("run.json"), content, std::strlen(content));
    expect(2, std::string("fsdp-run: error: --config=run.json") + says,
           "toy2.fsdp --config=run.json");
  }
  expect(2, "missing.json", "toy2.fsdp --config=missing.json");
}

TEST_F(Run, RefusesLinksThatNeverEnd) {
  for (const char *rate : {"1", "999", "0", "-1", "nan", "inf"})
    expect(2, "--link-bandwidth: expected a finite number of at least 1000 bytes per second, found",
           std::string("toy2.fsdp --link-bandwidth=") + rate);
  expect(0, "step 1/1", "toy2.fsdp --steps=1 --link-bandwidth=1e9");
}

TEST_F(Run, RefusesOptionsWithoutEffect) {
  expect(2, "--overfit", "toy2.fsdp --text=t --overfit --val-every=2");
  expect(2, "--token-dtype requires --data", "toy2.fsdp --token-dtype=uint8");
  expect(2, "--val-every: nothing to validate on: expected --data, --text or --input",
         "toy2.fsdp --val-every=2");
  expect(2, "--val-fraction: nothing to validate on", "toy2.fsdp --val-fraction=0.2");
  expect(2, "--warmup: expected at most the 2 of --steps, found '3'",
         "toy2.fsdp --steps=2 --warmup=3");
  expect(2, "--lr-decay-steps: expected at least the 2 of --warmup, found '1'",
         "toy2.fsdp --steps=4 --warmup=2 --lr-decay-steps=1");
  expect(2, "--min-lr: expected at most the learning rate, 0.1, found 0.2",
         "toy2.fsdp --min-lr=0.2");
  std::string words(39, 'a');
  writeFile(at("little.txt"), words.data(), words.size());
  const char *why = "--val-fraction=0.1 of 39 tokens is less than a sample and its targets";
  expect(2, std::string("nothing to validate on: ") + why,
         "toy2.fsdp --text=little.txt --val-every=1");
  expect(0, std::string("note: there will be no validation: ") + why,
         "toy2.fsdp --text=little.txt --steps=1");
}

TEST_F(Run, RefusesWeightsThatAreNotFinite) {
  auto write = [&](const char *dtype, uint64_t at64, double value) {
    std::vector<SafetensorsWriter::Entry> entries = {{"b", dtype, {11}}, {"w", dtype, {13, 7}}};
    SafetensorsWriter writer(at("odd.safetensors"), entries);
    for (uint64_t i = 0; i < 102; ++i) {
      double wide = i == at64 ? value : 0.5;
      float narrow = static_cast<float>(wide);
      dtype == std::string("F64") ? writer.write(&wide, 8) : writer.write(&narrow, 4);
    }
    writer.commit();
  };
  const char *try1 = "toy2.fsdp --steps=1 --init=odd.safetensors";
  write("F32", 0, 0.25);
  expect(0, "weights: 2 parameters", try1);
  write("F32", 11 + 5, std::nan(""));
  expect(2, "'w': expected finite values; element 5 is nan", try1);
  write("F32", 3, -HUGE_VAL);
  expect(2, "'b': expected finite values; element 3 is -inf", try1);
  write("F64", 4, 1e300);
  expect(2, "'b': expected finite values; element 4, 1e+300, is too large for f32", try1);
}

TEST_F(Run, SaysWhenWhatItExportsIsNotFinite) {
  expect(0,
         "warning: n.safetensors: 2 of 2 parameters are not finite, the first: 'b', element 0 is ",
         "toy2.fsdp --steps=30 --lr=1e30 --export=n.safetensors");
  EXPECT_EQ(run("toy2.fsdp --steps=2 --export=n.safetensors").output.find("warning"),
            std::string::npos);
}

TEST_F(Run, KeepsItsInputs) {
  expect(0, "", "toy2.fsdp --steps=1 --export=w.safetensors");
  ASSERT_EQ(
      std::system(
          ("cd " + folder +
           " && ln toy2.fsdp other.fsdp && cp w.safetensors x.safetensors.tmp && echo text > t.txt")
              .c_str()),
      0);
  std::string before = text("toy2.fsdp");
  expect(2, "./toy2.fsdp: --export would overwrite the artifact", "toy2.fsdp --export=./toy2.fsdp");
  expect(2, "other.fsdp: --export would overwrite the artifact", "toy2.fsdp --export=other.fsdp");
  expect(2, "toy2.fsdp: --metrics would overwrite the artifact", "toy2.fsdp --metrics=toy2.fsdp");
  expect(2, "t.txt: --metrics would overwrite --text", "toy2.fsdp --text=t.txt --metrics=t.txt");
  // The temporary file has a unique name, so that the input x.safetensors.tmp is not overwritten.
  expect(0, "written to x.safetensors",
         "toy2.fsdp --steps=1 --init=x.safetensors.tmp --export=x.safetensors");
  EXPECT_EQ(bash("cmp w.safetensors x.safetensors.tmp"), 0);
  expect(2, "new: --export and --metrics are the same file",
         "toy2.fsdp --export=new --metrics=./new");
  EXPECT_EQ(text("toy2.fsdp"), before);
  expect(0, "written to w.safetensors",
         "toy2.fsdp --steps=1 --init=w.safetensors --export=w.safetensors");
  expect(0, "2 steps", "toy2.fsdp --steps=2 --export=/dev/null --metrics=/dev/null");
}

TEST_F(Run, ChecksOutputsBeforeItTrains) {
  for (const char *path : {".", "/no/such/folder/x", "/proc/x"})
    for (const char *option : {"--export", "--metrics", "--flight-record"}) {
      Result result = run(std::string("toy2.fsdp --steps=2 ") + option + "=" + path);
      EXPECT_EQ(result.code, 2) << result.output;
      EXPECT_NE(result.output.find("cannot write"), std::string::npos) << result.output;
      EXPECT_EQ(result.output.find("step"), std::string::npos) << result.output;
    }
}

TEST_F(Run, EndsOnRequestWithItsWeights) {
  // If this test runs in the background, SIGINT is ignored. fsdp-run would inherit this setting.
  std::signal(SIGINT, SIG_DFL);
  for (auto [signal, code] : {std::pair("INT", 130), std::pair("TERM", 143)}) {
    int status = bash("set -m; rm -f log e.safetensors; " FSDP_RUN
                      " toy2.fsdp --steps=1000000000 --metrics=m.jsonl"
                      " --export=e.safetensors >log 2>&1 & job=$!; until grep -qs '^step 1/' log; "
                      "do sleep 0.02; done;"
                      " kill -" +
                      std::string(signal) + " $job; wait $job");
    std::string log = text("log");
    EXPECT_EQ(status, code) << log;
    for (const char *words :
         {"interrupted after step ", " of 1000000000", "weights: written to e.safetensors"})
      EXPECT_NE(log.find(words), std::string::npos) << log;
    std::string metrics = text("m.jsonl");
    std::string last = "interrupted after step " +
                       std::to_string(std::count(metrics.begin(), metrics.end(), '\n'));
    EXPECT_NE(log.find(last + " of"), std::string::npos) << log;
    EXPECT_EQ(SafetensorsFile(at("e.safetensors")).getTensors().size(), 2u);
  }
}

TEST_F(Run, EndsQuietlyWithItsReader) {
  int status =
      bash(FSDP_RUN " toy2.fsdp --steps=1000000000 --export=p.safetensors 2>err | head -n 1 >first;"
                    " exit ${PIPESTATUS[0]}");
  EXPECT_EQ(status, 128 + SIGPIPE);
  EXPECT_EQ(text("err"), "");
  EXPECT_EQ(SafetensorsFile(at("p.safetensors")).getTensors().size(), 2u);
  EXPECT_EQ(run("toy2.fsdp --dump | head -c 10").output.find("error"), std::string::npos);
}

TEST_F(Run, FullDisk) {
  expect(1, "No space left", "toy2.fsdp --steps=2 --metrics=/dev/full");
  expect(1, "No space left", "toy2.fsdp --steps=2 --export=/dev/full");
  expect(1, "No space left", "toy2.fsdp --steps=2 > /dev/full");
  expect(1, "could not be written", "toy2.fsdp --dump > /dev/full");
  expect(2, "cannot write", "toy2.fsdp --steps=2 --metrics=/no/such/folder/m.jsonl");
  expect(2, "cannot write", "toy2.fsdp --steps=2 --export=/no/such/folder/w.safetensors");
}
