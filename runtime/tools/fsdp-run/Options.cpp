//===- Options.cpp - Command line of fsdp-run -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ConfigFile.h"
#include "OptionChecks.h"
#include "fsdpcommon/ShortText.h"
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

using namespace fsdprt;

static const char *const description =
    R"(Trains a model that fsdp-compile compiled. Ranks are threads, processes, or GPUs.

Examples:
  fsdp-run gpt.fsdp --text=book.txt --steps=300           train on the bytes of a text
  fsdp-run gpt.fsdp --data=train.bin --metrics=run.jsonl  train on token ids; one JSON object per step
  fsdp-run vit.fsdp --input images=x.npy --input labels=y.npy   train on samples: one per row of each file
  fsdp-run gpt.fsdp --overfit --steps=50                  train on one random batch: the loss must go to 0
  fsdp-run gpt.fsdp --check-against=unsharded --steps=20  compare bit for bit with one unsharded rank
  fsdp-run gpt.fsdp --init=model.safetensors --export=tuned.safetensors --text=book.txt
  fsdp-run gpt.fsdp --text=book.txt --steps=900 --save=run1 --save-every=100              save every 100 steps
  fsdp-run gpt.fsdp --text=book.txt --steps=900 --save=run1 --save-every=100 --resume=run1  resume that run
  fsdp-run gpt.fsdp --text=book.txt --processes           one process per rank instead of threads
  mpirun -n 2 fsdp-run gpt.fsdp --text=book.txt           ranks on one machine or several: docs/how-to/launch.md
  fsdp-run gpt.fsdp --text=book.txt --processes --save=run1 --save-every=100 --on-failure=restart
  fsdp-run gpt.fsdp --processes --save=run1 --save-every=100 --on-failure=restart --elastic=2:4
  fsdp-run gpt.fsdp --profile --steps=20                  print the time of each kernel
  fsdp-run gpt.fsdp --simulate=examples/clusters/8xH200.json  estimate the step time on another cluster
  fsdp-run gpt.fsdp --device=emulate --steps=2            run GPU kernels in the checking emulator
  fsdp-run gpt.fsdp --device=null                         check the programs for races and deadlocks
  fsdp-run gpt.fsdp --dump                                print the programs without running them

The number of ranks is fixed when the model is compiled (fsdp-compile --mesh=shard=N).
Without --text, --data and --input the inputs are random and differ in each step. This is enough to measure time and memory.
With data, every input needs a file or must be named in --synthetic.
Control-C ends the run after the current step and writes --save and --export. A second control-C ends it at once.
Exit codes: 0 success, 1 the run or its check failed, 2 bad usage or input, 3 a rank was lost, 4 a rank hangs,
130 ended by control-C.)";

static void addData(CLI::App &app, Options &options) {
  auto *data =
      app.add_option("--data", options.data,
                     "File of token ids: llm.c format, or raw little-endian ids of --token-dtype")
          ->type_name("FILE");
  app.add_option("--text", options.text, "File whose bytes are the token ids")
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
         "Samples of input NAME, one per row of the file: .npy, .safetensors or raw. May be "
         "repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=FILE");
  app.add_option(
         "--synthetic", options.synthetic,
         "Fill input NAME with random values although other inputs have data (repeat for each "
         "input)")
      ->allow_extra_args(false)
      ->type_name("NAME");
  app.add_option_function<std::string>(
         "--token-dtype",
         [&](const std::string &name) {
           options.tokenType = name == "uint8"    ? TokenType::u8
                               : name == "uint16" ? TokenType::u16
                                                  : TokenType::u32;
         },
         "Type of raw token ids: uint8, uint16 or uint32 (default: the narrowest that fits)")
      ->check(oneOf({"uint8", "uint16", "uint32"}))
      ->needs(data)
      ->type_name("TYPE");
  auto *overfit = app.add_flag("--overfit", options.overfit, "Use the same batch in every step");
  auto *fraction =
      app.add_option("--val-fraction", options.validationFraction,
                     "Fraction at the end of the tokens or samples that is kept for validation")
          ->check(number("a number from 0 to 0.9",
                         [](double value) { return value >= 0 && value <= 0.9; }))
          ->capture_default_str()
          ->type_name("PART");
  auto *every = app.add_option("--val-every", options.validateEvery,
                               "Validate every K steps (default 0: only at the end)")
                    ->check(wholeNumber(0))
                    ->type_name("K");
  for (CLI::Option *option : {fraction, every})
    option->excludes(overfit);
  app.add_option("--val-batches", options.validationBatches,
                 "Batches per validation; 0: no validation (default: all, at most 20)")
      ->check(wholeNumber(0))
      ->type_name("N");
}

static void addTraining(CLI::App &app, Options &options) {
  app.add_option("--steps", options.steps, "Number of optimizer steps")
      ->capture_default_str()
      ->check(wholeNumber(1))
      ->type_name("N");
  app.add_option("--lr", options.lr, "Learning rate (default: the rate in the artifact)")
      ->check(aRate())
      ->type_name("RATE");
  app.add_option("--warmup", options.warmupSteps,
                 "Steps in which the learning rate rises from 0 (default 0)")
      ->check(wholeNumber(0))
      ->type_name("STEPS");
  app.add_option(
         "--lr-decay-steps", options.decaySteps,
         "Step at which a half cosine reaches --min-lr (default: no decay; with --min-lr: the "
         "last step)")
      ->check(wholeNumber(1))
      ->type_name("STEP");
  app.add_option("--min-lr", options.minimumLr, "Learning rate after the decay (default 0)")
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
         "Non-finite loss or norm: stop, skip, or stop after N in a row (default: stop; dynamic "
         "scale: 50)")
      ->type_name("stop|skip|N");
  app.add_option("--seed", options.seed,
                 "Seed of initial values and sampling (default: the model's seed, else 0)")
      ->check(wholeNumber(0))
      ->type_name("N");
  app.add_option("--init", options.init,
                 "Initial values: a .safetensors file, or the .index.json of a sharded one")
      ->type_name("FILE");
  app.add_option("--export", options.exportTo,
                 "Write the trained parameters to this .safetensors file")
      ->type_name("FILE");
}

static void addSaving(CLI::App &app, Options &options) {
  auto *save =
      app.add_option(
             "--save", options.save,
             "Folder for saves of the complete training state, written at the end of the run")
          ->type_name("DIR");
  app.add_option("--save-every", options.saveEvery,
                 "Save every K steps (default 0: only at the end)")
      ->check(wholeNumber(0))
      ->needs(save)
      ->type_name("K");
  app.add_option("--keep", options.keep,
                 "Number of saves to keep; older ones are removed (default: all)")
      ->check(wholeNumber(1))
      ->needs(save)
      ->type_name("N");
  app.add_flag("--wait-for-saves", options.waitForSaves,
               "Write each save before the next step, even if the artifact has --async-save")
      ->needs(save);
  auto *resume =
      app.add_option("--resume", options.resume,
                     "Resume from a save, or the newest save in a folder, of this or another mesh")
          ->type_name("DIR")
          ->excludes("--init");
  app.add_flag("--other-data", options.otherData,
               "Allow --resume with other tokens than those of the saved run")
      ->needs(resume);
}

static void addExecution(CLI::App &app, Options &options) {
  app.add_option(
         "--ranks", options.ranks,
         "Number of ranks; must equal the mesh size the artifact was compiled for (default: "
         "that size)")
      ->check(wholeNumber(1))
      ->type_name("N");
  app.add_option(
         "--threads-per-rank", options.threadsPerRank,
         "Compute threads per rank; results are equal for any number (default: the number in "
         "the artifact)")
      ->check(wholeNumber(1, 1024))
      ->type_name("N");
  app.add_option(
         "--device", options.device,
         "cpu, cuda, emulate (checks GPU kernels) or null (checks the programs, runs no kernel)")
      ->check(oneOf({"cpu", "cuda", "emulate", "null"}))
      ->capture_default_str()
      ->type_name("WHERE");
  app.add_flag(
      "--cuda-graph", options.cudaGraph,
      "With --device=cuda: record the step as one CUDA graph and launch that in each step");
  app.add_option("--gemm", options.gemm,
                 "GEMM backend that the GPU artifact must use: nvptx, cublaslt or auto (either)")
      ->check(oneOf({"nvptx", "cublaslt", "auto"}))
      ->type_name("WHO");
  app.add_option("--peer", options.peers, "With --device=null: a rank that runs another artifact")
      ->type_name("RANK=FILE")
      ->group(""); // hidden: for tests
  app.add_option(
         "--backend", options.backend,
         "Communication: local (threads), shm, mpi or nccl (default: local, or by the launcher)")
      ->check(oneOf({"local", "shm", "mpi", "nccl"}))
      ->type_name("HOW");
  app.add_option("--nccl-windows", options.ncclWindows,
                 "Register arenas as symmetric windows of NCCL: auto (if it can), on or off")
      ->check(oneOf({"auto", "on", "off"}))
      ->type_name("WHEN");
  app.add_option("--nccl-cta-policy", options.ncclCtaPolicy,
                 "Policy of NCCL for multiprocessors: default, efficiency, or zero (copy engines)")
      ->check(oneOf({"default", "efficiency", "zero"}))
      ->type_name("POLICY");
  app.add_option("--nccl-max-ctas", options.ncclMaxCtas,
                 "Multiprocessors that a collective over NCCL may use (default: NCCL's choice)")
      ->check(wholeNumber(1, 32))
      ->type_name("N");
  app.add_flag("--processes", options.processes,
               "Start one process per rank on this machine: docs/how-to/launch.md");
  app.add_option("--launched-rank", options.launchedRank)
      ->group(""); // hidden: fsdp-run passes it to the process of a rank
  app.add_option("--launched-channel", options.launchedChannel)
      ->group(""); // hidden: fsdp-run passes the descriptor of a channel
  for (auto [name, text] : {std::pair("--launched-resume", &options.launchedResume),
                            std::pair("--launched-artifact", &options.launchedArtifact)})
    app.add_option(name, *text)->group(""); // hidden: for processes that restart
  app.add_option(
         "--link-bandwidth", options.linkBandwidth,
         "Slow collectives down to this bandwidth of a link, in bytes per second (default: no "
         "limit)")
      ->check(number("a finite number of at least 1000 bytes per second",
                     [](double value) { return value >= 1000 && std::isfinite(value); }))
      ->type_name("BYTES");
  app.add_option("--offload-dir", options.offloadDirectory,
                 "Folder for temporary files of offloaded state (default: TMPDIR, or /tmp)")
      ->type_name("DIR");
  app.add_option("--timeout-seconds", options.timeoutSeconds,
                 "Seconds without progress until the watchdog ends the run; 2 s and 5 % more if no "
                 "rank waits")
      ->check(number("a finite number above 0",
                     [](double value) { return value > 0 && std::isfinite(value); }))
      ->capture_default_str()
      ->type_name("S");
}

static void addProcesses(CLI::App &app, Options &options) {
  app.add_option("--mpi-reduce", options.mpiReduce,
                 "With MPI: sum in rank order (ordered) or by the MPI library (library)")
      ->check(oneOf({"ordered", "library"}))
      ->capture_default_str()
      ->type_name("HOW");
  app.add_option("--rendezvous-timeout", options.rendezvousSeconds,
                 "Time limit for all processes of a launcher to arrive, in seconds")
      ->check(number("a finite number above 0",
                     [](double value) { return value > 0 && std::isfinite(value); }))
      ->capture_default_str()
      ->type_name("S");
  app.add_option("--heartbeat-seconds", options.heartbeatSeconds,
                 "Time after which a process without a heartbeat is lost, in seconds (over MPI: 3)")
      ->check(number("a finite number of at least 0.5",
                     [](double value) { return value >= 0.5 && std::isfinite(value); }))
      ->capture_default_str()
      ->type_name("S");
  app.add_option_function<std::string>(
         "--on-failure", [&](const std::string &text) { options.restart = text == "restart"; },
         "With --processes, if a rank is lost or hangs: stop, or restart all ranks (default: stop)")
      ->check(oneOf({"stop", "restart"}))
      ->type_name("stop|restart");
  auto *elastic =
      app.add_option_function<std::string>(
             "--elastic",
             [&](const std::string &text) {
               if (std::string problem = parseRange(text, options.leastRanks, options.mostRanks);
                   !problem.empty())
                 throw CLI::ValidationError("--elastic", problem);
             },
             "Restart on the ranks that are left, with artifacts for MIN to MAX ranks")
          ->type_name("MIN:MAX");
  app.add_option("--elastic-artifacts", options.elasticFolder,
                 "Folder of the artifacts for --elastic (default: the folder of the artifact)")
      ->needs(elastic)
      ->type_name("DIR");
  app.add_option("--max-restarts", options.mostRestarts, "Maximum number of restarts")
      ->check(wholeNumber(1))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--flight-record", options.flightRecord,
                 "File for the last collectives of all ranks, written if a rank is lost or hangs")
      ->type_name("FILE");
  app.add_option("--inject-rank-fault", options.rankFault)->group(""); // hidden: for tests
}

static void addReports(CLI::App &app, Options &options) {
  app.add_option("--metrics", options.metrics, "Write one JSON object per step to this file")
      ->type_name("FILE");
  app.add_option("--tensorboard", options.tensorboard,
                 "Write the metrics as a TensorBoard event file in this folder")
      ->type_name("DIR");
  app.add_flag("--dump", options.dump, "Print programs, layouts and kernels, and exit");
  app.add_option_function<std::string>(
         "--check-against", [&](const std::string &) { options.check = true; },
         "unsharded: also run one unsharded rank; exit 1 unless all values are equal bit for bit")
      ->check(oneOf({"unsharded"}))
      ->type_name("WHAT");
  auto *profile = app.add_flag("--profile", options.profile,
                               "Print the time of each kernel on rank 0, without the first step");
  app.add_option("--profile-file", options.profileFile,
                 "Write the profile as JSON, with bytes and multiply-adds of each kernel")
      ->needs(profile)
      ->type_name("FILE.json");
  app.add_option("--simulate", options.simulate,
                 "Estimate the step time on this cluster without running kernels; --trace writes a "
                 "timeline")
      ->type_name("CLUSTER.json");
  auto *trace =
      app.add_option("--trace", options.trace,
                     "Write the timeline of all ranks in the last steps, for ui.perfetto.dev")
          ->type_name("FILE.json");
  app.add_option("--trace-steps", options.traceSteps, "Number of last steps in the trace")
      ->check(wholeNumber(1, 10000))
      ->capture_default_str()
      ->needs(trace)
      ->type_name("N");
  app.add_option(
         "--only-kinds", options.onlyKinds,
         "Run only kernels of these kinds, such as contract, to measure their time; results "
         "are wrong")
      ->type_name("KIND,...")
      ->group(""); // hidden: for benchmarks
  app.add_option("--random-extra-ids", options.extraIds,
                 "Fraction of random ids that the loss ignores, if the model has such an id")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("PART")
      ->group(""); // hidden: for tests
  app.add_flag(
      "--restrict-calls", options.restrictCalls,
      "Exit 1 if a kernel makes a system call that training does not need; CPU ranks only");
  app.add_flag("--assert-no-allocations", options.assertNoAllocations,
               "Exit 1 if a step allocates memory; with --device=cuda this includes driver "
               "allocations");
  app.add_option("--inject-fault", options.fault, "Inject a fault that a check must detect")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Options::Fault>{
          {"skip-shard-element", Options::Fault::skipShardElement},
          {"drop-gradient", Options::Fault::dropGradient},
          {"allocate", Options::Fault::allocate}}))
      ->group(""); // hidden: for tests
}

bool fsdprt::parseOptions(int argc, char **argv, Options &options, int &exitCode) {
  CLI::App app(description, "fsdp-run");
  app.set_version_flag("--version", std::string("fsdp-run ") + fsdprt_version());
  app.add_option("artifact", options.artifact, "A model compiled by fsdp-compile")
      ->required()
      ->type_name("FILE.fsdp");
  app.add_option("--verify-key", options.verifyKey,
                 "Refuse the artifact unless FILE.fsdp.sig is its signature by this Ed25519 key")
      ->type_name("PUBLIC.pem");
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
    if (options.elasticFolder.empty())
      options.elasticFolder = std::filesystem::path(options.artifact).parent_path().string();
    if (!options.launchedArtifact.empty()) {
      options.artifact = options.launchedArtifact;
      options.ranks = 0; // The option --ranks applies only to the first start.
    }
  } catch (const CLI::ParseError &error) {
    // If the exit code of the exception is 0, the user has asked for --help or --version.
    if (error.get_exit_code() == 0) {
      exitCode = app.exit(error);
      if (!std::cout.flush()) {
        std::fprintf(stderr, "fsdp-run: error: cannot write the output: %s\n", strerror(errno));
        exitCode = FSDPRT_FAILED;
      }
      return false;
    }
    problem = error.what();
  }
  if (!problem)
    return true;
  std::fprintf(stderr, "fsdp-run: error: %s (see --help)\n",
               fsdpcommon::printableMessage(*problem).c_str());
  options.problem = *problem;
  exitCode = FSDPRT_BAD_INPUT;
  return false;
}
