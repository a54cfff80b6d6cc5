//===- RendezvousFrame.cpp - Messages of the rendezvous ----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The bytes of the struct are sent unchanged as a frame. The host refuses a process that was built
// with another version of the runtime's interface.
//
//===----------------------------------------------------------------------===//

#include "launch/RendezvousFrame.h"
#include "fsdpcommon/ShortText.h"
#include "launch/Rendezvous.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>

using namespace fsdprt;

Frame Frame::make(Kind kind) {
  Frame frame;
  std::memcpy(frame.magic, expected, sizeof expected);
  frame.kind = kind;
  frame.interface = fsdprt_abi_version();
  return frame;
}

void Frame::introduce(const LaunchPlace &place) {
  rank = place.rank;
  ranks = place.ranks;
  process = static_cast<uint32_t>(getpid());
  std::strncpy(machine, machineIdentity().c_str(), sizeof machine - 1);
  std::strncpy(host, machineName().c_str(), sizeof host - 1);
  std::strncpy(job, place.job.c_str(), sizeof job - 1);
  std::strncpy(session, place.session.c_str(), sizeof session - 1);
}

bool Frame::isOurs() const { return std::memcmp(magic, expected, sizeof expected) == 0; }

FrameReader::State FrameReader::read(int file) {
  while (got < sizeof frame) {
    ssize_t more =
        recv(file, reinterpret_cast<char *>(&frame) + got, sizeof frame - got, MSG_DONTWAIT);
    if (more < 0 && errno == EINTR)
      continue;
    if (more < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      break;
    if (more <= 0)
      return got ? State::foreign : State::end;
    got += static_cast<size_t>(more);
  }
  size_t begun = std::min(got, sizeof frame.magic);
  if (std::memcmp(frame.magic, Frame::expected, begun) != 0)
    return State::foreign;
  if (got < sizeof frame)
    return State::partial;
  for (char *text : {frame.machine + sizeof frame.machine, frame.host + sizeof frame.host,
                     frame.job + sizeof frame.job, frame.session + sizeof frame.session,
                     frame.text + sizeof frame.text})
    text[-1] = '\0';
  return State::complete;
}

bool fsdprt::sendFrame(int file, const Frame &frame) {
  return send(file, &frame, sizeof frame, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof frame);
}

std::string Frame::words() const { return fsdpcommon::shortText(text, sizeof text); }
