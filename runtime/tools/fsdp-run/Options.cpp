//===- Options.cpp - What fsdp-run is asked to do ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Help begins with examples; wrong usage ends with exit code 2.
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "fsdprt/fsdprt.h"
#include <CLI/CLI.hpp>

using namespace fsdprt;

static const char *const description = R"(Trains a compiled model, one thread or more per rank.

Examples:
  fsdp-run gpt.fsdp --text=book.txt --steps=300           train on the bytes of a text
  fsdp-run gpt.fsdp --data=train.bin --metrics=run.jsonl  train on token ids, a JSON object per step
  fsdp-run gpt.fsdp --overfit --steps=50                  one fixed batch of random tokens: the loss has to vanish
  fsdp-run gpt.fsdp --check-against=unsharded --steps=20  the same bits as one rank without sharding?
  fsdp-run gpt.fsdp --init=model.safetensors --export=tuned.safetensors --text=book.txt
  fsdp-run gpt.fsdp --profile --steps=20                  where the time of a step goes, by kernel
  fsdp-run gpt.fsdp --dump                                the programs, without running them

A model is compiled for a number of ranks (fsdp-compile --mesh=shard=N); --ranks, when given, has to be that.
Exit codes: 0 fine, 1 the run or its check failed, 2 bad usage or input.)";

static void addData(CLI::App &app, Options &options) {
  auto *data = app.add_option("--data", options.data,
                              "File of token ids: with llm.c's header, or raw little-endian (see --token-dtype)")
                   ->type_name("FILE");
  app.add_option("--text", options.text, "File whose bytes are the tokens")->type_name("FILE")->excludes(data);
  app.add_option("--token-dtype", options.tokenType,
                 "Ids of a raw file: uint8, uint16 or uint32 (default: the narrowest that holds the model's ids)")
      ->transform(CLI::CheckedTransformer(std::map<std::string, TokenType>{{"uint8", TokenType::u8},
                                                                           {"uint16", TokenType::u16},
                                                                           {"uint32", TokenType::u32}},
                                          CLI::ignore_case))
      ->type_name("TYPE");
  app.add_flag("--overfit", options.overfit, "The same batch at every step");
  app.add_option("--val-fraction", options.validationFraction, "Last part of the tokens, kept for validation")
      ->check(CLI::Range(0.0, 0.9))
      ->capture_default_str()
      ->type_name("PART");
  app.add_option("--val-every", options.validateEvery, "Validate every K steps too (0: at the end only)")
      ->type_name("K");
  app.add_option("--val-batches", options.validationBatches,
                 "Batches of a validation; 0: none (default: all of that part, at most 20)")
      ->type_name("N");
}

static void addTraining(CLI::App &app, Options &options) {
  app.add_option("--steps", options.steps, "Optimizer steps")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app.add_option("--lr", options.lr, "Learning rate (default: the one compiled in)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("RATE");
  app.add_option("--warmup", options.warmupSteps, "Steps over which the rate rises from 0")->type_name("STEPS");
  app.add_option("--lr-decay-steps", options.decaySteps,
                 "Step at which a half cosine reaches --min-lr (default: none; with --min-lr: the last step)")
      ->type_name("STEP");
  app.add_option("--min-lr", options.minimumLr, "Rate after the decay")
      ->check(CLI::NonNegativeNumber)
      ->type_name("RATE");
  app.add_option("--seed", options.seed, "Of initial values and samples; the same for any number of ranks (default: the model's, else 0)")
      ->type_name("N");
  app.add_option("--init", options.init, "Initial values: a .safetensors file, or the .index.json of several; what it lacks comes from the "
                 "model's own values, if it has any")
      ->type_name("FILE");
  app.add_option("--export", options.exportTo, "Write the trained parameters as .safetensors")->type_name("FILE");
}

static void addExecution(CLI::App &app, Options &options) {
  app.add_option("--ranks", options.ranks, "Has to be what the model was compiled for (default: that)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app.add_option("--threads-per-rank", options.threadsPerRank, "Changes no bit of the result (default: as compiled)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app.add_option("--device", options.device, "Where ranks compute")
      ->check(CLI::IsMember({"cpu"}))
      ->capture_default_str();
  app.add_option("--backend", options.backend, "How ranks meet: local (threads of this process)")
      ->check(CLI::IsMember({"local"}))
      ->capture_default_str();
  app.add_option("--timeout-seconds", options.timeoutSeconds, "Patience with a rank that makes no progress")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->type_name("S");
}

static void addReports(CLI::App &app, Options &options) {
  app.add_option("--metrics", options.metrics, "Write one JSON object per step")->type_name("FILE");
  app.add_flag("--dump", options.dump, "Print programs, layouts and kernels, and end");
  app.add_option_function<std::string>(
         "--check-against", [&](const std::string &) { options.check = true; },
         "unsharded: run one rank without sharding beside it; exit 1 unless losses, norms and all values agree bit for "
         "bit")
      ->check(CLI::IsMember({"unsharded"}))
      ->type_name("WHAT");
  app.add_flag("--profile", options.profile,
               "Print where the time of the steps after the first went, by kernel, on rank 0");
  app.add_option("--only-kinds", options.onlyKinds,
                 "Run only the launches of these kinds of kernels, such as contract: times, not results")
      ->type_name("KIND,...")
      ->group(""); // for benchmarks
  app.add_option("--random-extra-ids", options.extraIds,
                 "Part of random ids that are one that the model ignores, where it has any")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("PART")
      ->group(""); // for tests
  app.add_flag("--assert-no-allocations", options.assertNoAllocations, "Exit 1 when a step allocates memory");
  app.add_option("--inject-fault", options.fault, "Plant a fault that a check has to find")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Fault>{{"skip-shard-element", Fault::skipShardElement},
                                                                       {"drop-gradient", Fault::dropGradient},
                                                                       {"allocate", Fault::allocate}}))
      ->group(""); // for tests
}

bool fsdprt::parseOptions(int argc, char **argv, Options &options, int &exitCode) {
  CLI::App app(description, "fsdp-run");
  app.set_version_flag("--version", std::string("fsdp-run ") + fsdprt_version());
  app.add_option("artifact", options.artifact, "A model compiled by fsdp-compile")->required()->type_name("FILE.fsdp");
  addData(app, options);
  addTraining(app, options);
  addExecution(app, options);
  addReports(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    exitCode = app.exit(error) == 0 ? 0 : FSDPRT_BAD_INPUT;
    return false;
  }
  return true;
}
