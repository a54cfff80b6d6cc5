//===- Launcher.cpp - A process for each rank -------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Fork and execute this program for each rank. Ranks die with it (PR_SET_PDEATHSIG).
//  2. Bring them together (ShmHost).
//  3. Every 50 ms: messages, ended processes, hearts, signals. The first thing that is wrong is the reason: it sets
//     the board's failure flag, which ends the other ranks' waits.
//  4. All have to be gone: those that do not end by themselves in some seconds are killed.
//
// A heart counts as still for each of this process's own looks at it that finds it so: when the whole machine
// stands, nobody is blamed.
//
//===----------------------------------------------------------------------===//

#include "Launcher.h"
#include "Interrupt.h"
#include "artifact/Artifact.h"
#include "collectives/ShmHost.h"
#include "device/Futex.h"
#include "io/SaveFolder.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr double lookSeconds = 0.05;
static constexpr double graceSeconds = 10; // for ranks to end by themselves

static uint32_t countCollectives(const flatbuffers::Vector<flatbuffers::Offset<fb::Command>> *commands) {
  uint32_t count = 0;
  for (uint32_t i = 0; commands && i < commands->size(); ++i) {
    const fb::Loop *loop = commands->Get(i)->body_as_Loop();
    count += loop ? countCollectives(loop->body()) : commands->Get(i)->body_as_Collective() != nullptr;
  }
  return count;
}

static uint32_t countCollectives(const Artifact &artifact) {
  uint32_t count = 0;
  for (const fb::Program *program : *artifact.manifest().programs())
    if (!isReferenceProgram(program->name()->str()))
      count += countCollectives(program->commands());
  return count;
}

static uint32_t ranksOf(const Artifact &artifact, const Options &options) {
  uint64_t ranks = artifact.getMesh().ranks();
  if (options.ranks != 0 && options.ranks != ranks)
    badInput("%s: compiled for %llu rank%s (mesh %s), asked to run on %llu; run with --ranks=%llu or compile with "
             "another --mesh",
             artifact.getFile().c_str(), (ull)ranks, ranks == 1 ? "" : "s", artifact.getMesh().text().c_str(),
             (ull)options.ranks, (ull)ranks);
  return static_cast<uint32_t>(ranks);
}

namespace {
class Launcher {
public:
  /// `resume`: where to go on after a restart, or empty.
  Launcher(const Options &options, char **argv, std::string resume)
      : options(options), argv(argv), resume(std::move(resume)), artifact(Artifact::open(options.artifact)),
        host(ranksOf(*artifact, options), countCollectives(*artifact)), watch(host.getBoard().watch(0)),
        children(host.ranks()) {
    watch->setWords(&artifact->manifest());
  }
  /// None of its children is left.
  ~Launcher();
  int run();

private:
  struct Child {
    pid_t process = -1;
    bool ended = false;
    int status = 0;
    uint64_t heartbeat = 0;
    double still = 0; ///< seconds
  };
  void start(uint32_t rank);
  void reap();
  void judgeEnd(uint32_t rank);
  void takeFailures();
  void watchArrival();
  void blameMissing(const std::string &missing, double limit);
  void watchHearts();
  void forwardSignal();
  void blame(Error error);
  std::string writeFlightRecord();
  void kill(uint32_t rank, int signal);
  bool allEnded() const;
  std::string whereabouts(uint32_t rank);

  const Options &options;
  char **argv;
  std::string resume;
  std::unique_ptr<const Artifact> artifact;
  ShmHost host;
  std::unique_ptr<Watch> watch;
  std::vector<Child> children;
  std::optional<Error> reason;
  double lastLook = 0, lastArrival = 0, blamedAt = 0;
  std::string lastMissing;
  int forwarded = 0;
  bool endedEarly = false; ///< by that signal, which ranks obey at once before the first step
};
} // namespace

//===- Starting -----------------------------------------------------------===//

void Launcher::start(uint32_t rank) {
  int end = host.takeEndOf(rank);
  std::string rankOption = "--launched-rank=" + std::to_string(rank);
  std::string channelOption = "--launched-channel=" + std::to_string(end);
  std::vector<char *> arguments;
  for (char **argument = argv; *argument; ++argument)
    arguments.push_back(*argument);
  arguments.insert(arguments.end(), {rankOption.data(), channelOption.data()});
  std::string resumeOption = "--launched-resume=" + resume;
  if (!resume.empty())
    arguments.push_back(resumeOption.data());
  arguments.push_back(nullptr);
  pid_t parent = getpid(), process = fork();
  if (process < 0)
    failed("cannot start a process for rank %u: %s", rank, strerror(errno));
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
      _exit(FSDPRT_LOST);
    std::signal(SIGINT, SIG_IGN); // control-C is for the launcher, which tells the ranks
    fcntl(end, F_SETFD, 0);
    execv("/proc/self/exe", arguments.data());
    _exit(FSDPRT_FAILED);
  }
  close(end);
  children[rank].process = process;
}

Launcher::~Launcher() {
  for (uint32_t rank = 0; rank < children.size(); ++rank) {
    kill(rank, SIGKILL);
    if (!children[rank].ended && children[rank].process > 0)
      waitpid(children[rank].process, nullptr, 0);
  }
}

//===- Watching -----------------------------------------------------------===//

bool Launcher::allEnded() const {
  for (const Child &child : children)
    if (!child.ended)
      return false;
  return true;
}

void Launcher::kill(uint32_t rank, int signal) {
  if (!children[rank].ended && children[rank].process > 0)
    ::kill(children[rank].process, signal);
}

std::string Launcher::whereabouts(uint32_t rank) {
  uint32_t last = watch->lastCollective(rank);
  const Board &board = host.getBoard();
  std::string text = watch->whereabouts(rank);
  if (last < board.collectives())
    text += ", which began " + printable(board.name(last), strnlen(board.name(last), Board::nameBytes - 1)) + " last";
  return text;
}

/// The first reason counts; ranks that only end because of another have none.
void Launcher::blame(Error error) {
  if (reason || error.status == FSDPRT_ABANDONED)
    return;
  reason = std::move(error);
  if (reason->status == FSDPRT_LOST || reason->status == FSDPRT_HUNG)
    reason->message += writeFlightRecord();
  blamedAt = monotonicSeconds();
  host.getBoard().header().failed.store(1, std::memory_order_release);
  host.refuse(Abandoned());
}

/// Returns the words about it.
std::string Launcher::writeFlightRecord() {
  const Board &board = host.getBoard();
  std::string path = flightRecordPath(options);
  std::string text = watch->record(reason->message, [&](uint32_t collective) {
    return collective < board.collectives() ? std::string(board.name(collective)) : std::string();
  });
  std::FILE *file = std::fopen(path.c_str(), "we");
  bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if ((file && std::fclose(file) != 0) || !written)
    return format("; %s: cannot write the last collectives of all ranks: %s", path.c_str(), strerror(errno));
  return "; the last collectives of all ranks are in " + path;
}

void Launcher::takeFailures() {
  if (host.getRefusal())
    blame(*host.getRefusal());
  for (uint32_t rank = 0; rank < children.size(); ++rank)
    if (const std::optional<Error> &failure = host.failureOf(rank))
      blame(*failure);
}

void Launcher::reap() {
  for (uint32_t rank = 0; rank < children.size(); ++rank) {
    Child &child = children[rank];
    if (child.ended || waitpid(child.process, &child.status, WNOHANG) != child.process)
      continue;
    child.ended = true;
    host.serve(0); // its last words
    takeFailures();
    judgeEnd(rank);
  }
}

void Launcher::judgeEnd(uint32_t rank) {
  Child &child = children[rank];
  if (host.getBoard().desk(rank).finished.load(std::memory_order_acquire) || host.failureOf(rank))
    return;
  std::string where = whereabouts(rank);
  if (WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGTERM && forwarded && !reason) {
    endedEarly = true;
    blame({FSDPRT_FAILED, "interrupted before the first step"});
  } else if (WIFSIGNALED(child.status))
    blame({FSDPRT_LOST, format("rank %u (process %d) was killed by signal %d (%s): %s", rank, child.process,
                               WTERMSIG(child.status), strsignal(WTERMSIG(child.status)), where.c_str())});
  else
    blame({FSDPRT_LOST, format("rank %u (process %d) ended with exit code %d before the run did: %s", rank,
                               child.process, WEXITSTATUS(child.status), where.c_str())});
}

/// From the first rank that arrives all others have the time limit; and as long behind each further one.
void Launcher::watchArrival() {
  if (host.areConnected() || reason)
    return;
  std::string missing = host.missing();
  double now = monotonicSeconds();
  if (missing != lastMissing) {
    lastMissing = missing;
    lastArrival = now;
  }
  bool noneCame = static_cast<size_t>(std::count(missing.begin(), missing.end(), ',')) + 1 == children.size();
  double limit = options.timeoutSeconds * (noneCame ? 10 : 1);
  if (now - lastArrival > limit)
    return blameMissing(missing, limit);
}

void Launcher::blameMissing(const std::string &missing, double limit) {
  blame({FSDPRT_HUNG, format("rank%s %s did not arrive within %g s", missing.find(',') == missing.npos ? "" : "s",
                             missing.c_str(), limit)});
  for (uint32_t rank = 0; rank < children.size(); ++rank)
    if ((", " + missing + ",").find(", " + std::to_string(rank) + ",") != std::string::npos)
      kill(rank, SIGKILL); // nothing less reaches one that is stopped
}

void Launcher::watchHearts() {
  double now = monotonicSeconds(), since = std::min(now - lastLook, 2 * lookSeconds);
  lastLook = now;
  for (uint32_t rank = 0; rank < children.size(); ++rank) {
    Child &child = children[rank];
    uint64_t beats = host.getBoard().desk(rank).heartbeat.load(std::memory_order_relaxed);
    bool beatsOn = beats == 0 || beats != child.heartbeat || child.ended;
    child.still = beatsOn ? 0 : child.still + since;
    child.heartbeat = beats;
    if (child.still <= options.heartbeatSeconds)
      continue;
    std::string where = whereabouts(rank);
    blame({FSDPRT_HUNG, format("rank %u (process %d) has given no sign of life for %.1f s: %s", rank, child.process,
                               child.still, where.c_str())});
    kill(rank, SIGKILL); // nothing less reaches one that is stopped
  }
}

void Launcher::forwardSignal() {
  if (!interruptSignal() || forwarded)
    return;
  forwarded = interruptSignal();
  for (uint32_t rank = 0; rank < children.size(); ++rank)
    kill(rank, SIGTERM);
}

int Launcher::run() {
  for (uint32_t rank = 0; rank < children.size(); ++rank)
    start(rank);
  lastLook = lastArrival = monotonicSeconds();
  while (!allEnded()) {
    host.serve(lookSeconds);
    takeFailures();
    reap();
    forwardSignal();
    watchArrival();
    watchHearts();
    if (reason && monotonicSeconds() - blamedAt > graceSeconds)
      for (uint32_t rank = 0; rank < children.size(); ++rank)
        kill(rank, SIGKILL);
  }
  if (reason && !endedEarly)
    throw *reason;
  if (forwarded && (endedEarly || WEXITSTATUS(children[0].status) > 128))
    return 128 + forwarded;
  if (WIFSIGNALED(children[0].status)) { // its reader has gone
    std::signal(WTERMSIG(children[0].status), SIG_DFL);
    std::raise(WTERMSIG(children[0].status));
  }
  return WEXITSTATUS(children[0].status);
}

/// The folder of saves, when there is one to go on from.
static std::string lastSave(const Options &options) {
  try {
    findSave(options.save);
    return options.save;
  } catch (const Error &) {
    return "";
  }
}

int fsdprt::launch(const Options &options, char **argv) {
  catchInterrupts(false);
  std::string resume;
  for (uint64_t restarts = 0;; ++restarts) {
    Launcher launcher(options, argv, resume);
    try {
      return launcher.run();
    } catch (const Error &error) {
      bool lost = error.status == FSDPRT_LOST || error.status == FSDPRT_HUNG;
      if (!lost || !options.restart || interruptSignal() || restarts == options.mostRestarts)
        throw;
      resume = lastSave(options);
      std::fprintf(stderr, "fsdp-run: %s\nfsdp-run: restarting %s%s (%llu of at most %llu)\n", error.what(),
                   resume.empty() ? "from the beginning" : "from the last save in ", resume.c_str(),
                   (ull)restarts + 1, (ull)options.mostRestarts);
    }
  }
}

void fsdprt::tellLauncher(int channel, fsdprt_status status, const char *message) {
  Message failure;
  failure.kind = Message::failure;
  failure.status = status;
  std::strncpy(failure.text, message, sizeof failure.text - 1);
  if (!Channel(channel).send(failure))
    std::fprintf(stderr, "fsdp-run: error: %s\n", message);
}
