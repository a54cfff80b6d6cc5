//===- ShmHost.cpp - Connects the processes of a machine --------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements the part of the host in the protocol that Channel.h describes.
//
//===----------------------------------------------------------------------===//

#include "collectives/shm/ShmHost.h"
#include "core/Agreement.h"
#include <algorithm>
#include <cerrno>
#include <cstring>

using namespace fsdprt;
using ull = unsigned long long;

ShmHost::ShmHost(uint32_t ranks, uint32_t collectives) : block(ranks, collectives) {
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    int ends[2];
    Channel::pair(ends);
    members.emplace_back(ends[0]);
    members.back().otherEnd = ends[1];
  }
}

ShmHost::ShmHost(const std::vector<int> &ends, uint32_t collectives)
    : block(static_cast<uint32_t>(ends.size()), collectives) {
  for (int end : ends)
    members.emplace_back(end);
}

int ShmHost::takeEndOf(uint32_t rank) { return std::exchange(members[rank].otherEnd, -1); }

void ShmHost::serve(double seconds) {
  wanted.clear();
  for (const Member &member : members)
    wanted.push_back({member.gone ? -1 : member.channel.descriptor(), POLLIN, 0});
  if (::poll(wanted.data(), wanted.size(), static_cast<int>(seconds * 1000)) <= 0)
    return;
  for (uint32_t rank = 0; rank < members.size(); ++rank)
    while (!members[rank].gone) {
      Message message;
      int attached;
      Channel::Received got = members[rank].channel.receive(message, attached, 0);
      members[rank].gone = got == Channel::Received::end;
      if (got != Channel::Received::message)
        break;
      take(rank, message, attached);
    }
}

template <typename Members, typename What>
static bool have(const Members &members, What what) {
  return std::all_of(members.begin(), members.end(),
                     [&](const auto &member) { return (member.*what).has_value(); });
}

void ShmHost::take(uint32_t rank, const Message &message, int attached) {
  Member &member = members[rank];
  switch (message.kind) {
  case Message::hello:
    member.hello = message;
    break;
  case Message::arena:
    member.memory = message;
    member.arena = attached;
    break;
  case Message::failure:
    if (!member.failure)
      member.failure = Error(message.status == FSDPRT_ABANDONED ? FSDPRT_ABANDONED
                                                                : failureStatus(message.status),
                             message.text);
    if (verdict)
      member.channel.send(*verdict);
    break;
  default:
    break;
  }
  if (!welcomed && !refused && have(members, &Member::hello))
    welcomeAll();
  if (welcomed && !connected && !refused && have(members, &Member::memory))
    introduceAll();
}

void ShmHost::welcomeAll() {
  const Message &first = *members[0].hello;
  std::vector<std::string> agreements;
  for (uint32_t rank = 0; rank < members.size(); ++rank) {
    const Message &hello = *members[rank].hello;
    if (hello.rank != rank || hello.ranks != ranks())
      return refuse({FSDPRT_BAD_INPUT, format("expected rank %u of %u, found rank %u of %llu", rank,
                                              ranks(), hello.rank, (ull)hello.ranks)});
    if (hello.version != first.version)
      return refuse({FSDPRT_BAD_INPUT,
                     format("rank %u runs version %#llx, rank 0 version %#llx; start all ranks "
                            "from one installation",
                            rank, (ull)hello.version, (ull)first.version)});
    agreements.push_back(hello.text);
  }
  try {
    compareAgreements(agreements);
  } catch (const Error &difference) {
    return refuse(difference);
  }
  Message welcome;
  welcome.kind = Message::welcome;
  for (Member &member : members)
    member.channel.send(welcome, block.descriptor());
  welcomed = true;
}

void ShmHost::introduceAll() {
  const Message &first = *members[0].memory;
  for (uint32_t rank = 0; rank < members.size(); ++rank) {
    const Message &memory = *members[rank].memory;
    if (memory.schedule != first.schedule)
      return refuse({FSDPRT_BAD_INPUT,
                     format("rank %u has other collectives than rank 0: expected hash %016llx, "
                            "found %016llx; start all ranks with the same artifact",
                            rank, (ull)first.schedule, (ull)memory.schedule)});
    if (members[rank].arena < 0)
      return refuse(
          {FSDPRT_FAILED,
           format("rank %u sent no descriptor of its arena; check the limit of open files", rank)});
  }
  for (Member &to : members)
    for (uint32_t rank = 0; rank < members.size(); ++rank) {
      Message peer;
      peer.kind = Message::peer;
      peer.rank = rank;
      peer.bytes = members[rank].memory->bytes;
      to.channel.send(peer, members[rank].arena);
    }
  for (Member &member : members)
    close(std::exchange(member.arena, -1));
  connected = true;
}

static Message refusalOf(const Error &reason) {
  Message message;
  message.kind = Message::refusal;
  message.status = reason.status;
  std::strncpy(message.text, reason.what(), sizeof message.text - 1);
  return message;
}

void ShmHost::refuse(const Error &reason) {
  if (refused || connected)
    return;
  Message message = refusalOf(reason);
  for (Member &member : members)
    member.channel.send(message);
  refused = reason;
}

void ShmHost::tell(const Error &reason) {
  verdict = refusalOf(reason);
  for (Member &member : members)
    member.channel.send(*verdict);
}

std::string ShmHost::missing() const {
  std::string names;
  for (uint32_t rank = 0; rank < members.size(); ++rank)
    if (!(welcomed ? members[rank].memory : members[rank].hello))
      names += (names.empty() ? "" : ", ") + std::to_string(rank);
  return names;
}
