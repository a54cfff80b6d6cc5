//===- Channel.cpp - Messages between two processes -------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The sockets have the type SOCK_SEQPACKET, so that a reader receives whole messages. SCM_RIGHTS
// transfers descriptors.
//
//===----------------------------------------------------------------------===//

#include "collectives/Channel.h"
#include "core/Error.h"
#include "core/FutexEvent.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>

using namespace fsdprt;

Channel::~Channel() {
  if (file >= 0)
    close(file);
}

void Channel::pair(int (&ends)[2]) {
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    failed("cannot create a socket for a rank: %s", strerror(errno));
}

static constexpr size_t wordsAt = offsetof(Message, text);

bool Channel::send(const Message &message, int attached) {
  size_t bytes = wordsAt + strnlen(message.text, sizeof message.text - 1) + 1;
  iovec part = {const_cast<Message *>(&message), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (attached >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr *rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &attached, sizeof attached);
  }
  ssize_t sent;
  do
    sent = sendmsg(file, &header, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes);
}

bool Channel::isClosed() const {
  pollfd wanted = {file, 0, 0};
  return ::poll(&wanted, 1, 0) > 0 && (wanted.revents & (POLLHUP | POLLERR)) != 0;
}

Channel::Received Channel::receive(Message &message, int &attached, double seconds) {
  attached = -1;
  for (double limit = monotonicSeconds() + seconds;;) {
    pollfd wanted = {file, POLLIN, 0};
    double left = std::clamp(limit - monotonicSeconds(), 0.0, 3600.0);
    int ready = ::poll(&wanted, 1, static_cast<int>(left * 1000));
    if (ready > 0)
      break;
    if (ready == 0 || errno != EINTR)
      return Received::nothing;
  }
  iovec part = {&message, sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got;
  do
    got = recvmsg(file, &header, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  for (cmsghdr *rights = CMSG_FIRSTHDR(&header); rights; rights = CMSG_NXTHDR(&header, rights))
    if (rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS)
      std::memcpy(&attached, CMSG_DATA(rights), sizeof attached);
  if (got <= static_cast<ssize_t>(wordsAt))
    return Received::end;
  message.text[static_cast<size_t>(got) - wordsAt - 1] = '\0';
  return Received::message;
}
