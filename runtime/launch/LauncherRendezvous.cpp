//===- LauncherRendezvous.cpp - Ranks started by another launcher *- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The host is a separate process that supervises the ranks, so that the loss of any rank, including
// rank 0, can be reported. The host is not the parent of the ranks. When a rank ends, the kernel
// closes the channel of this rank, and the host detects that the channel is closed. The host sends
// the first error to all ranks. A rank that fails requests the first error from the host, so that
// all ranks report the same error.
//
//===----------------------------------------------------------------------===//

#include "launch/LauncherRendezvous.h"
#include "core/FutexEvent.h"
#include "fsdpcommon/ShortText.h"
#include "launch/ProcessLauncher.h"
#include "launch/ProcessSupervisor.h"
#include "launch/Rendezvous.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

using namespace fsdprt;

static constexpr double verdictSeconds = 5; // longest wait of askHost() for an answer
static constexpr double refusalSeconds = 3;
// time in seconds for which rank 0 waits for the host to end
static constexpr double hostEndSeconds = 1;

namespace {
class Host final : public ProcessSupervisor {
public:
  Host(const LaunchOptions &options, std::vector<RendezvousHost::Member> &met);
  void run();

private:
  struct Member {
    int process;
    /// A pidfd of the process. The kernel may reuse the id of a process, but a pidfd always refers
    /// to the same process.
    Descriptor handle;
    bool ended = false;
  };
  static std::vector<int> endsOf(const std::vector<RendezvousHost::Member> &met);
  void findLost();
  void kill(uint32_t rank, int signal) override;
  bool hasEnded(uint32_t rank) const override { return members[rank].ended; }
  int processOf(uint32_t rank) const override { return members[rank].process; }
  void tell(const Error &error) override { host.tell(error); }

  std::vector<Member> members;
};
} // namespace

std::vector<int> Host::endsOf(const std::vector<RendezvousHost::Member> &met) {
  std::vector<int> ends;
  for (const RendezvousHost::Member &member : met)
    ends.push_back(dup(member.channel.get()));
  return ends;
}

Host::Host(const LaunchOptions &options, std::vector<RendezvousHost::Member> &met)
    : ProcessSupervisor(options, endsOf(met)) {
  for (RendezvousHost::Member &member : met) {
    Descriptor handle(
        member.process > 0 ? static_cast<int>(syscall(SYS_pidfd_open, member.process, 0)) : -1);
    members.push_back({member.process, std::move(handle)});
  }
}

void Host::kill(uint32_t rank, int signal) {
  if (!members[rank].ended && members[rank].handle.isOpen())
    syscall(SYS_pidfd_send_signal, members[rank].handle.get(), signal, nullptr, 0);
}

void Host::findLost() {
  for (uint32_t rank = 0; rank < members.size(); ++rank) {
    Member &member = members[rank];
    if (member.ended || !host.isGone(rank))
      continue;
    member.ended = true;
    if (!hasReported(rank))
      setReason(
          {FSDPRT_LOST,
           format("rank %u (process %d) is gone; it was killed or ended before the run did: %s",
                  rank, member.process, describeProgress(rank).c_str())});
  }
}

void Host::run() {
  begin(/*startedRanks=*/false);
  while (!allEnded()) {
    host.serve(pollSeconds);
    takeFailures();
    findLost();
    checkArrival();
    checkHeartbeats();
    killStragglers();
  }
}

/// Prepares this process to be the host: ignores the signals that the ranks handle, and closes all
/// inherited descriptors except `listener`.
static void becomeHost(int listener) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    std::signal(signal, SIG_IGN);
  prctl(PR_SET_NAME, "fsdp-host");
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int file : {0, 1, 2})
    dup2(nothing, file);
  syscall(SYS_close_range, 3, listener - 1, 0);
  syscall(SYS_close_range, listener + 1, ~0U, 0);
}

[[noreturn]] static void runHost(const LaunchOptions &options, RendezvousHost &rendezvous) {
  becomeHost(rendezvous.listener());
  try {
    std::vector<RendezvousHost::Member> met = rendezvous.gather();
    try {
      Host host(options, met);
      met.clear();
      host.run();
    } catch (const Error &error) { // If Host() throws, `met` still has the channels of the ranks.
      Message message = failureOf(error.status, error.what());
      message.kind = Message::refusal;
      for (RendezvousHost::Member &member : met)
        Channel(member.channel.release()).send(message);
    }
    // The exception is ignored, because gather() has already sent the error to the ranks.
  } catch (const std::exception &) {
  }
  _exit(0);
}

void fsdprt::rendezvous(LaunchOptions &options) {
  if (options.place->rank == 0) {
    RendezvousHost rendezvous(*options.place, options.rendezvousSeconds);
    pid_t process = fork();
    if (process < 0)
      failed("cannot start the process that connects the ranks: %s", strerror(errno));
    if (process == 0)
      runHost(options, rendezvous);
  }
  options.launchedChannel = attendRendezvous(*options.place, options.rendezvousSeconds);
}

void fsdprt::reportToPeers(const LaunchPlace &place, const Error &error) {
  if (place.ranks > 1 && !place.hasMpi && place.saysWhere())
    refuseRendezvous(place, Error(error.status, format("rank %u: ", place.rank) + error.what()),
                     refusalSeconds);
}

/// Lets the host continue if a signal such as SIGSTOP has stopped it. A stopped host would not
/// detect that ranks end, and would never end itself.
static void continueHost(int channel) {
  if (std::optional<int> host = processBehind(channel); host && *host > 0)
    ::kill(*host, SIGCONT);
}

void fsdprt::leaveRendezvous(const LaunchOptions &options, int channel) {
  continueHost(channel);
  shutdown(channel, SHUT_RDWR);
  for (double limit = monotonicSeconds() + hostEndSeconds;
       options.place->rank == 0 && monotonicSeconds() < limit; usleep(2000))
    if (waitpid(-1, nullptr, WNOHANG) != 0)
      return;
}

Error fsdprt::askHost(const LaunchOptions &options, int channel, fsdprt_status status,
                      const char *message) {
  continueHost(channel);
  std::string self = format("rank %u: ", options.place->rank), text = message;
  Channel end(dup(channel));
  bool told = end.send(failureOf(status, (self + text).c_str()));
  Message verdict;
  int attached;
  for (double limit = monotonicSeconds() + verdictSeconds;
       monotonicSeconds() < limit && verdict.kind != Message::refusal;) {
    Channel::Received got = end.receive(verdict, attached, limit - monotonicSeconds());
    if (attached >= 0)
      close(attached);
    if (got == Channel::Received::end)
      told = false;
    if (got != Channel::Received::message)
      break;
  }
  if (verdict.kind == Message::refusal) {
    text = verdict.text;
    status = failureStatus(verdict.status);
  } else if (!told && status == FSDPRT_ABANDONED) {
    text = "the process that watches the ranks (started by rank 0) is gone";
    status = FSDPRT_LOST;
  }
  if (text.compare(0, self.size(), self) != 0)
    text = self + text;
  return Error(status == FSDPRT_ABANDONED ? status : failureStatus(status), text);
}

int fsdprt::reportToHost(const LaunchOptions &options, int channel, fsdprt_status status,
                         const char *message) {
  Error failure = askHost(options, channel, status, message);
  std::fprintf(stderr, "%s: error: %s\n", options.program,
               fsdpcommon::printableMessage(failure.what()).c_str());
  return failure.status;
}
