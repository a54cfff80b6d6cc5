//===- ProcessLauncher.cpp - A process for each rank ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//  1. Fork and execute this program for each rank. If this process ends, the kernel kills the ranks
//     (PR_SET_PDEATHSIG).
//  2. Connect the ranks (ShmHost).
//  3. Every 50 ms, handle messages, ended processes, heartbeats and signals (ProcessSupervisor.h).
//  4. Wait until all ranks have ended. After an error, kill ranks that do not end within 10 s.
//
//===----------------------------------------------------------------------===//

#include "launch/ProcessLauncher.h"
#include "fsdpcommon/ShortText.h"
#include "launch/Interrupts.h"
#include "launch/ProcessSupervisor.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

using namespace fsdprt;
using ull = unsigned long long;

namespace {
class Launcher final : public ProcessSupervisor {
public:
  /// `restart` is the result of planRestart(). At the first start, restart.artifact is empty.
  Launcher(const LaunchOptions &options, char **argv, const Restart &restart)
      : ProcessSupervisor(options, {}), argv(argv), restart(restart), children(host.ranks()) {}
  /// Kills the remaining children and waits for them.
  ~Launcher() override;
  int run();
  /// Returns the number of ranks that were not lost, because they finished or reported a failure.
  uint64_t countLeft();

private:
  struct Child {
    pid_t process = -1;
    bool ended = false;
    int status = 0;
  };
  void start(uint32_t rank);
  void reap();
  void judgeEnd(uint32_t rank);
  void forwardSignal();
  void kill(uint32_t rank, int signal) override;
  bool hasEnded(uint32_t rank) const override { return children[rank].ended; }
  int processOf(uint32_t rank) const override { return children[rank].process; }
  void tell(const Error &) override { host.refuse(Abandoned()); }

  char **argv;
  const Restart &restart;
  std::vector<Child> children;
  int forwarded = 0;
  /// True if a rank ended before the first step because of a signal that the launcher forwarded.
  bool endedEarly = false;
};
} // namespace

void Launcher::start(uint32_t rank) {
  int end = host.takeEndOf(rank);
  std::string rankOption = "--launched-rank=" + std::to_string(rank);
  std::string channelOption = "--launched-channel=" + std::to_string(end);
  std::vector<char *> arguments;
  for (char **argument = argv; *argument; ++argument)
    arguments.push_back(*argument);
  arguments.insert(arguments.end(), {rankOption.data(), channelOption.data()});
  std::string resumeOption = "--launched-resume=" + restart.resume;
  if (!restart.resume.empty())
    arguments.push_back(resumeOption.data());
  std::string artifactOption = "--launched-artifact=" + restart.artifact;
  if (!restart.artifact.empty())
    arguments.push_back(artifactOption.data());
  arguments.push_back(nullptr);
  pid_t parent = getpid(), process = fork();
  if (process < 0)
    failed("cannot start a process for rank %u: %s", rank, strerror(errno));
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
      _exit(FSDPRT_LOST);
    // If the user interrupts the program at a terminal, the terminal sends SIGINT or SIGHUP to the
    // ranks as well as to the launcher. The ranks ignore both signals, because the launcher sends
    // SIGTERM to the ranks when it receives one of these signals.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGHUP, SIG_IGN);
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

void Launcher::kill(uint32_t rank, int signal) {
  if (!children[rank].ended && children[rank].process > 0)
    ::kill(children[rank].process, signal);
}

void Launcher::reap() {
  for (uint32_t rank = 0; rank < children.size(); ++rank) {
    Child &child = children[rank];
    if (child.ended || waitpid(child.process, &child.status, WNOHANG) != child.process)
      continue;
    child.ended = true;
    host.serve(0); // Receives the last messages that the child has sent.
    takeFailures();
    judgeEnd(rank);
  }
}

void Launcher::judgeEnd(uint32_t rank) {
  Child &child = children[rank];
  if (hasReported(rank))
    return;
  std::string where = describeProgress(rank);
  if (WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGTERM && forwarded && !reason) {
    endedEarly = true;
    setReason({FSDPRT_FAILED, "interrupted before the first step"});
  } else if (WIFSIGNALED(child.status))
    setReason({FSDPRT_LOST,
               format("rank %u (process %d) was killed by signal %d (%s): %s", rank, child.process,
                      WTERMSIG(child.status), strsignal(WTERMSIG(child.status)), where.c_str())});
  else
    setReason(
        {FSDPRT_LOST, format("rank %u (process %d) ended with exit code %d before the run did: %s",
                             rank, child.process, WEXITSTATUS(child.status), where.c_str())});
}

void Launcher::forwardSignal() {
  if (!interruptSignal() || forwarded)
    return;
  forwarded = interruptSignal();
  for (uint32_t rank = 0; rank < children.size(); ++rank)
    kill(rank, SIGTERM);
}

uint64_t Launcher::countLeft() {
  uint64_t left = 0;
  for (uint32_t rank = 0; rank < children.size(); ++rank)
    left += hasReported(rank);
  return left;
}

int Launcher::run() {
  for (uint32_t rank = 0; rank < children.size(); ++rank)
    start(rank);
  begin(/*startedRanks=*/true);
  while (!allEnded()) {
    host.serve(pollSeconds);
    takeFailures();
    reap();
    forwardSignal();
    checkArrival();
    checkHeartbeats();
    killStragglers();
  }
  if (reason && !endedEarly)
    throw *reason;
  if (endedEarly)
    std::fprintf(stderr, "%s: ended before the first step\n", options.program);
  if (forwarded && (endedEarly || WEXITSTATUS(children[0].status) > 128))
    return 128 + forwarded;
  // If a signal such as SIGPIPE has ended rank 0, the launcher ends itself by the same signal.
  if (WIFSIGNALED(children[0].status)) {
    std::signal(WTERMSIG(children[0].status), SIG_DFL);
    std::raise(WTERMSIG(children[0].status));
  }
  return WEXITSTATUS(children[0].status);
}

int fsdprt::launch(const LaunchOptions &options, char **argv,
                   const std::function<Restart(uint64_t left)> &planRestart) {
  catchInterrupts(Interrupts::said);
  LaunchOptions current = options;
  Restart restart;
  for (uint64_t restarts = 0;; ++restarts) {
    Launcher launcher(current, argv, restart);
    try {
      return launcher.run();
    } catch (Error &error) {
      bool lost = error.status == FSDPRT_LOST || error.status == FSDPRT_HUNG;
      if (!lost || !options.restart || interruptSignal() || restarts == options.mostRestarts)
        throw;
      try {
        restart = planRestart(launcher.countLeft());
      } catch (const Error &problem) {
        throw Error(error.status, error.message + "; no restart: " + problem.message);
      }
      std::string where;
      if (restart.artifact != current.artifact)
        where = format(" on %llu rank%s with %s", (ull)restart.ranks, restart.ranks == 1 ? "" : "s",
                       restart.artifact.c_str());
      std::fprintf(
          stderr, "%s: %s\n%s: restarting %s%s%s (%llu of at most %llu)\n", options.program,
          fsdpcommon::printableMessage(error.what()).c_str(), options.program,
          restart.resume.empty() ? "from the beginning" : "from the last save in ",
          restart.resume.c_str(), where.c_str(), (ull)restarts + 1, (ull)options.mostRestarts);
      current.artifact = restart.artifact;
      current.ranks = 0; // The option --ranks applies only to the first start.
    }
  }
}

Message fsdprt::failureOf(fsdprt_status status, const char *message) {
  Message failure;
  failure.kind = Message::failure;
  failure.status = status;
  std::strncpy(failure.text, message, sizeof failure.text - 1);
  return failure;
}

void fsdprt::reportToLauncher(const LaunchOptions &options, int channel, fsdprt_status status,
                              const char *message) {
  Message failure = failureOf(status, message);
  if (!Channel(channel).send(failure))
    std::fprintf(stderr, "%s: error: %s\n", options.program,
                 fsdpcommon::printableMessage(message).c_str());
}
