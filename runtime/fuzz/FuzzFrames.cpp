//===- FuzzFrames.cpp - Fuzz the messages of ranks --------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The first byte of the input selects how the other bytes are tested. They are tested as frames of
// the rendezvous (sent in several parts) or as a message of a channel.
//
//===----------------------------------------------------------------------===//

#include "collectives/Channel.h"
#include "fuzz/Fuzzing.h"
#include "launch/Rendezvous.h"
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>

using namespace fsdprt;

/// Ends the process with an error if a text in a frame is not zero-terminated, or if a function of
/// the frame returns an invalid result.
static void useFrame(const Frame &frame) {
  for (auto [text, size] :
       {std::pair(frame.machine, sizeof frame.machine), std::pair(frame.host, sizeof frame.host),
        std::pair(frame.job, sizeof frame.job), std::pair(frame.session, sizeof frame.session),
        std::pair(frame.text, sizeof frame.text)})
    if (strnlen(text, size) == size)
      std::abort();
  if (!frame.isOurs())
    std::abort();
  if (std::string words = frame.words(); !words.empty())
    fuzz::expectReadable(words);
  if (!failureStatus(frame.status))
    std::abort();
}

static void readFrames(const uint8_t *data, size_t size) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    std::abort();
  Descriptor sender(ends[0]), receiver(ends[1]);
  FrameReader reader;
  for (size_t at = 0, piece = 1; at < size; at += piece, piece *= 2) {
    piece = std::min(piece, size - at);
    if (send(sender.get(), data + at, piece, MSG_NOSIGNAL) != static_cast<ssize_t>(piece))
      std::abort();
    for (;;) {
      FrameReader::State state = reader.read(receiver.get());
      if (state == FrameReader::State::foreign || state == FrameReader::State::end)
        return;
      if (state == FrameReader::State::partial)
        break;
      useFrame(reader.get());
      reader.clear();
    }
  }
}

static void readMessage(const uint8_t *data, size_t size) {
  int ends[2];
  Channel::pair(ends);
  Channel sender(ends[0]), receiver(ends[1]);
  if (send(sender.descriptor(), data, size, MSG_NOSIGNAL) < 0)
    return;
  Message message;
  int attached = -1;
  if (receiver.receive(message, attached, 0.01) == Channel::Received::message &&
      strnlen(message.text, sizeof message.text) == sizeof message.text)
    std::abort();
  if (attached >= 0)
    close(attached);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  constexpr size_t most = 32 << 10;
  if (size < 2 || size > most)
    return 0;
  fuzz::tryToRead([&] {
    if (data[0] % 2)
      readMessage(data + 1, size - 1);
    else
      readFrames(data + 1, size - 1);
  });
  return 0;
}
