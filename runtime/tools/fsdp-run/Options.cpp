//===- Options.cpp - What fsdp-run is asked to do ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Help begins with examples; wrong usage ends with exit code 2.
//
//===----------------------------------------------------------------------===//

#include "ConfigFile.h"
#include "OptionChecks.h"
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>

using namespace fsdprt;

static const char *const description =
    R"(Trains a compiled model, one thread or more per rank, one process or one per rank.

Examples:
  fsdp-run gpt.fsdp --text=book.txt --steps=300           train on the bytes of a text
  fsdp-run gpt.fsdp --data=train.bin --metrics=run.jsonl  train on token ids, a JSON object per step
  fsdp-run vit.fsdp --input images=x.npy --input labels=y.npy   train on samples: row i of each file is one
  fsdp-run gpt.fsdp --overfit --steps=50                  one fixed batch of random tokens: the loss has to vanish
  fsdp-run gpt.fsdp --check-against=unsharded --steps=20  the same bits as one rank without sharding?
  fsdp-run gpt.fsdp --init=model.safetensors --export=tuned.safetensors --text=book.txt
  fsdp-run gpt.fsdp --text=book.txt --steps=900 --save=run1 --save-every=100              save every 100 steps, and last
  fsdp-run gpt.fsdp --text=book.txt --steps=900 --save=run1 --save-every=100 --resume=run1  go on where that ended
  fsdp-run gpt.fsdp --text=book.txt --processes           a process for each rank instead of threads
  mpirun -n 2 fsdp-run gpt.fsdp --text=book.txt           ranks on one machine or several: docs/Launch.md
  fsdp-run gpt.fsdp --text=book.txt --processes --save=run1 --save-every=100 --on-failure=restart
  fsdp-run gpt.fsdp --profile --steps=20                  where the time of a step goes, by kernel
  fsdp-run gpt.fsdp --simulate=examples/clusters/8xH200.json  the time of a step on a cluster that is not there
  fsdp-run gpt.fsdp --device=emulate --steps=2            compiled for a GPU, run by an emulator with all of its checks
  fsdp-run gpt.fsdp --device=null                         is there a race, a read of nothing, a deadlock in the programs?
  fsdp-run gpt.fsdp --dump                                the programs, without running them

A model is compiled for a number of ranks (fsdp-compile --mesh=shard=N); --ranks, when given, has to be that.
Without --text, --data or --input it trains on random ids and numbers, new ones at every step: good for times and memory.
Beside data, every input has to be fed, or to be named in --synthetic.
Control-C ends the run behind the current step; --save and --export are written. A second one ends it at once.
Exit codes: 0 fine, 1 the run or its check failed, 2 bad usage or input, 3 a rank was lost, 4 a rank hangs,
130 ended by control-C.)";

//===- Options ------------------------------------------------------------===//

static void addData(CLI::App &app, Options &options) {
  auto *data =
      app.add_option(
             "--data", options.data,
             "File of token ids: with llm.c's header, or raw little-endian (see --token-dtype)")
          ->type_name("FILE");
  app.add_option("--text", options.text, "File whose bytes are the tokens")
      ->type_name("FILE")
      ->excludes(data);
  app.add_option_function<std::vector<std::string>>(
         "--input",
         [&](const std::vector<std::string> &texts) {
           for (const std::string &text : texts) {
             size_t equals = text.find('=');
             if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
               throw CLI::ValidationError("--input", "expected NAME=FILE, found '" + text + "'");
             options.inputs.push_back({text.substr(0, equals), text.substr(equals + 1)});
           }
         },
         "File of samples for the input NAME (repeat per input): .npy, .safetensors, or raw. A "
         "file has N samples of "
         "the input's shape without its leading dimension, which is the batch: Nx8 for 16x8. A "
         "sample of tokens "
         "and targets is a whole row of ids")
      ->allow_extra_args(false)
      ->type_name("NAME=FILE");
  app.add_option(
         "--synthetic", options.synthetic,
         "Input NAME is random beside the data of --text, --data or --input (repeat per input)")
      ->allow_extra_args(false)
      ->type_name("NAME");
  app.add_option_function<std::string>(
         "--token-dtype",
         [&](const std::string &name) {
           options.tokenType = name == "uint8"    ? TokenType::u8
                               : name == "uint16" ? TokenType::u16
                                                  : TokenType::u32;
         },
         "Ids of a raw file: uint8, uint16 or uint32 (default: the narrowest that holds the "
         "model's ids)")
      ->check(oneOf({"uint8", "uint16", "uint32"}))
      ->needs(data)
      ->type_name("TYPE");
  auto *overfit = app.add_flag("--overfit", options.overfit, "The same batch at every step");
  auto *fraction = app.add_option("--val-fraction", options.validationFraction,
                                  "Last part of the tokens or samples, kept for validation")
                       ->check(number("a number from 0 to 0.9",
                                      [](double value) { return value >= 0 && value <= 0.9; }))
                       ->capture_default_str()
                       ->type_name("PART");
  auto *every = app.add_option("--val-every", options.validateEvery,
                               "Validate every K steps too (default 0: at the end only)")
                    ->check(wholeNumber(0))
                    ->type_name("K");
  for (CLI::Option *option : {fraction, every})
    option->excludes(overfit);
  app.add_option("--val-batches", options.validationBatches,
                 "Batches of a validation; 0: none (default: all of that part, at most 20)")
      ->check(wholeNumber(0))
      ->type_name("N");
}

static void addTraining(CLI::App &app, Options &options) {
  app.add_option("--steps", options.steps, "Optimizer steps")
      ->capture_default_str()
      ->check(wholeNumber(1))
      ->type_name("N");
  app.add_option("--lr", options.lr, "Learning rate (default: the one compiled in)")
      ->check(aRate())
      ->type_name("RATE");
  app.add_option("--warmup", options.warmupSteps,
                 "Steps over which the rate rises from 0 (default 0)")
      ->check(wholeNumber(0))
      ->type_name("STEPS");
  app.add_option("--lr-decay-steps", options.decaySteps,
                 "Step at which a half cosine reaches --min-lr (default: none; with --min-lr: the "
                 "last step)")
      ->check(wholeNumber(1))
      ->type_name("STEP");
  app.add_option("--min-lr", options.minimumLr, "Rate after the decay (default 0)")
      ->check(aRate())
      ->type_name("RATE");
  app.add_option_function<std::string>(
         "--on-nonfinite",
         [&](const std::string &text) {
           uint64_t count = 0;
           auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
           if (text == "stop" || text == "skip")
             options.nonfiniteSteps = text == "stop" ? 0 : UINT64_MAX;
           else if (problem == std::errc() && end == text.data() + text.size() && count > 0)
             options.nonfiniteSteps = count - 1;
           else
             throw CLI::ValidationError(
                 "--on-nonfinite", "expected stop, skip or a number above 0, found '" + text + "'");
         },
         "When loss or gradient norm is not finite, nothing is updated: stop at once, skip the "
         "step, or stop at N such "
         "steps in a row (default: stop; 50 with a dynamic loss scale)")
      ->type_name("stop|skip|N");
  app.add_option("--seed", options.seed,
                 "Of initial values and samples; the same for any number of ranks (default: the "
                 "model's, else 0)")
      ->check(wholeNumber(0))
      ->type_name("N");
  app.add_option("--init", options.init,
                 "Initial values: a .safetensors file, or the .index.json of several; what it "
                 "lacks comes from the "
                 "model's own values, if it has any")
      ->type_name("FILE");
  app.add_option("--export", options.exportTo, "Write the trained parameters as .safetensors")
      ->type_name("FILE");
}

static void addSaving(CLI::App &app, Options &options) {
  auto *save =
      app.add_option(
             "--save", options.save,
             "Save all that a run needs to go on, at its end, into this folder: docs/Saving.md")
          ->type_name("DIR");
  app.add_option("--save-every", options.saveEvery,
                 "Save every K steps too (default 0: at the end only)")
      ->check(wholeNumber(0))
      ->needs(save)
      ->type_name("K");
  app.add_option("--keep", options.keep,
                 "Keep the N newest saves, and remove older ones (default: keep all)")
      ->check(wholeNumber(1))
      ->needs(save)
      ->type_name("N");
  auto *resume =
      app.add_option(
             "--resume", options.resume,
             "Go on from the last save in this folder, or from this save, bit for bit; --steps "
             "counts from the first run's start; seed and rates come from it where none are given")
          ->type_name("DIR")
          ->excludes("--init");
  app.add_flag("--other-data", options.otherData,
               "Go on although the tokens are not those of the save")
      ->needs(resume);
}

static void addExecution(CLI::App &app, Options &options) {
  app.add_option("--ranks", options.ranks,
                 "Has to be what the model was compiled for (default: that)")
      ->check(wholeNumber(1))
      ->type_name("N");
  app.add_option("--threads-per-rank", options.threadsPerRank,
                 "Threads that compute for each rank; their number changes no bit of the result "
                 "(default: as compiled)")
      ->check(wholeNumber(1, 1024))
      ->type_name("N");
  app.add_option("--device", options.device,
                 "Where ranks compute: cpu; cuda: an NVIDIA GPU; emulate: a GPU that is emulated, "
                 "with all checks of docs/Emulator.md, for small models; or null: nowhere, all "
                 "commands of all ranks are walked, and races, reads of what "
                 "nothing has written, ranges out of place and collectives that do not meet are "
                 "reported: docs/NullDevice.md")
      ->check(oneOf({"cpu", "cuda", "emulate", "null"}))
      ->capture_default_str()
      ->type_name("WHERE");
  app.add_flag("--cuda-graph", options.cudaGraph,
               "On --device=cuda: record the step of all ranks as one CUDA graph, and launch that "
               "at every step");
  app.add_option("--gemm", options.gemm,
                 "On a GPU: who computes matrix products, which fsdp-compile --gemm decides; an "
                 "artifact in which it is not so is refused: nvptx "
                 "(generated kernels alone), cublaslt (that library has some) or auto (either)")
      ->check(oneOf({"nvptx", "cublaslt", "auto"}))
      ->type_name("WHO");
  app.add_option("--peer", options.peers, "On the null device: a rank that runs another artifact")
      ->type_name("RANK=FILE")
      ->group(""); // for tests
  app.add_option(
         "--backend", options.backend,
         "How ranks meet: local (threads of this process), shm (a process for each rank, on "
         "one machine; those that a launcher started, else the same as --processes), mpi "
         "(processes that "
         "mpirun starts), or nccl (over NCCL: threads, or with --processes or a launcher "
         "processes) (default: mpi "
         "under mpirun, shm under torchrun and in a step of Slurm, else local)")
      ->check(oneOf({"local", "shm", "mpi", "nccl"}))
      ->type_name("HOW");
  app.add_flag("--processes", options.processes,
               "Start a process for each rank on this machine: docs/Launch.md");
  app.add_option("--launched-rank", options.launchedRank)
      ->group(""); // of a process that fsdp-run starts
  app.add_option("--launched-channel", options.launchedChannel)->group(""); // to the one that did
  app.add_option("--launched-resume", options.launchedResume)->group("");   // after a restart
  app.add_option("--link-bandwidth", options.linkBandwidth,
                 "Let collectives take as long as links of so many bytes per second would "
                 "(default: as fast as it goes)")
      ->check(number("a finite number of at least 1000 bytes per second",
                     [](double value) { return value >= 1000 && std::isfinite(value); }))
      ->type_name("BYTES");
  app.add_option("--offload-dir", options.offloadDirectory,
                 "Folder for the files of state that was offloaded (--offload=optimizer:file), "
                 "which have no name and go away with the run "
                 "(default: TMPDIR, or /tmp)")
      ->type_name("DIR");
  app.add_option("--timeout-seconds", options.timeoutSeconds,
                 "Patience with a rank that makes no progress (2 s and 5 % more where no other "
                 "rank waits for it)")
      ->check(number("a finite number above 0",
                     [](double value) { return value > 0 && std::isfinite(value); }))
      ->capture_default_str()
      ->type_name("S");
}

static void addProcesses(CLI::App &app, Options &options) {
  app.add_option("--mpi-reduce", options.mpiReduce,
                 "With MPI: sums in rank order (ordered, the bits of every other backend), or the "
                 "library's own (library)")
      ->check(oneOf({"ordered", "library"}))
      ->capture_default_str()
      ->type_name("HOW");
  app.add_option("--rendezvous-timeout", options.rendezvousSeconds,
                 "How long a process that a launcher started waits for the others to arrive")
      ->check(number("a finite number above 0",
                     [](double value) { return value > 0 && std::isfinite(value); }))
      ->capture_default_str()
      ->type_name("S");
  app.add_option(
         "--heartbeat-seconds", options.heartbeatSeconds,
         "Between processes of one machine: how long that of a rank may give no sign of life")
      ->check(number("a finite number of at least 0.5",
                     [](double value) { return value >= 0.5 && std::isfinite(value); }))
      ->capture_default_str()
      ->type_name("S");
  app.add_option_function<std::string>(
         "--on-failure", [&](const std::string &text) { options.restart = text == "restart"; },
         "With --processes, when a rank is lost or hangs: stop, or restart all from the last save "
         "of --save (default: "
         "stop)")
      ->check(oneOf({"stop", "restart"}))
      ->type_name("stop|restart");
  app.add_option("--max-restarts", options.mostRestarts, "Restarts before it is given up")
      ->check(wholeNumber(1))
      ->capture_default_str()
      ->type_name("N");
  app.add_option(
         "--flight-record", options.flightRecord,
         "Where the last collectives of all ranks are written when one is lost or hangs (default: "
         "fsdp-run-PROCESS.flight.json in $TMPDIR or /tmp)")
      ->type_name("FILE");
  app.add_option("--inject-rank-fault", options.rankFault)->group(""); // for tests: RankFault.h
}

static void addReports(CLI::App &app, Options &options) {
  app.add_option("--metrics", options.metrics, "Write one JSON object per step")->type_name("FILE");
  app.add_option("--tensorboard", options.tensorboard,
                 "Write the same numbers as an event file for TensorBoard into this folder")
      ->type_name("DIR");
  app.add_flag("--dump", options.dump, "Print programs, layouts and kernels, and end");
  app.add_option_function<std::string>(
         "--check-against", [&](const std::string &) { options.check = true; },
         "unsharded: run one rank without sharding beside it; exit 1 unless losses, norms and all "
         "values agree bit for "
         "bit")
      ->check(oneOf({"unsharded"}))
      ->type_name("WHAT");
  auto *profile =
      app.add_flag("--profile", options.profile,
                   "Print where the time of the steps after the first went, by kernel, on rank 0");
  app.add_option("--profile-file", options.profileFile,
                 "Write the same numbers as JSON, with bytes and multiply-adds of each kernel")
      ->needs(profile)
      ->type_name("FILE.json");
  app.add_option("--simulate", options.simulate,
                 "Run no kernel: print how long a step takes on the cluster that this file "
                 "describes, with --trace as "
                 "lanes: docs/Simulator.md")
      ->type_name("CLUSTER.json");
  auto *trace =
      app.add_option(
             "--trace", options.trace,
             "Write when each command of the last steps ran, on all ranks, for ui.perfetto.dev")
          ->type_name("FILE.json");
  app.add_option("--trace-steps", options.traceSteps, "Steps that are kept for it")
      ->check(wholeNumber(1, 10000))
      ->capture_default_str()
      ->needs(trace)
      ->type_name("N");
  app.add_option(
         "--only-kinds", options.onlyKinds,
         "Run only the launches of these kinds of kernels, such as contract: times, not results")
      ->type_name("KIND,...")
      ->group(""); // for benchmarks
  app.add_option("--random-extra-ids", options.extraIds,
                 "Part of random ids that are one that the model ignores, where it has any")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("PART")
      ->group(""); // for tests
  app.add_flag(
      "--assert-no-allocations", options.assertNoAllocations,
      "Exit 1 when a step allocates memory; with --device=cuda what the driver allocates counts");
  app.add_option("--inject-fault", options.fault, "Plant a fault that a check has to find")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Options::Fault>{
          {"skip-shard-element", Options::Fault::skipShardElement},
          {"drop-gradient", Options::Fault::dropGradient},
          {"allocate", Options::Fault::allocate}}))
      ->group(""); // for tests
}

bool fsdprt::parseOptions(int argc, char **argv, Options &options, int &exitCode) {
  CLI::App app(description, "fsdp-run");
  app.set_version_flag("--version", std::string("fsdp-run ") + fsdprt_version());
  app.add_option("artifact", options.artifact, "A model compiled by fsdp-compile")
      ->required()
      ->type_name("FILE.fsdp");
  addData(app, options);
  addTraining(app, options);
  addSaving(app, options);
  addExecution(app, options);
  addProcesses(app, options);
  addReports(app, options);
  addConfigFile(app);
  std::optional<std::string> problem;
  try {
    app.parse(argc, argv);
    for (const char *name :
         {"--warmup", "--lr-decay-steps", "--val-fraction", "--overfit", "--random-extra-ids"})
      if (app.count(name))
        options.given.insert(name);
    if (options.isNull() && !app.count("--steps"))
      options.steps = nullSteps;
    options.backendGiven = app.count("--backend") != 0;
    options.heartbeatGiven = app.count("--heartbeat-seconds") != 0;
    options.processesGiven = options.processes;
    if (options.processes && !options.backendGiven)
      options.backend = "shm";
    options.processes |= options.backend == "shm";
    options.control = options.backend != "nccl" ? options.backend
                      : options.processes       ? "shm"
                                                : "local";
    options.runs = !options.dump && options.simulate.empty() && !options.isNull();
    problem = contradiction(app, options);
    if (!options.launchedResume.empty()) {
      options.resume = options.launchedResume;
      options.init.clear();
    }
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) { // --help, --version
      exitCode = app.exit(error);
      if (!std::cout.flush()) { // what it printed
        std::fprintf(stderr, "fsdp-run: error: cannot write the output: %s\n", strerror(errno));
        exitCode = FSDPRT_FAILED;
      }
      return false;
    }
    problem = error.what();
  }
  if (!problem)
    return true;
  std::fprintf(stderr, "fsdp-run: error: %s (see --help)\n", problem->c_str());
  options.problem = *problem;
  exitCode = FSDPRT_BAD_INPUT;
  return false;
}
