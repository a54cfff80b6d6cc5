//===- RendezvousFrame.h - Messages of the rendezvous ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Frames have a fixed size and begin with a magic number. Data without this magic number is from
// another program. Any process may connect and send any bytes, so a reader terminates all texts of
// a frame that it has received completely.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_LAUNCH_RENDEZVOUSFRAME_H
#define FSDPRT_LAUNCH_RENDEZVOUSFRAME_H

#include "launch/Environment.h"
#include <cstdint>
#include <string>

namespace fsdprt {

/// A message between a rank and the host, before the rank has its channel to the host.
struct Frame {
  enum Kind : uint32_t { hello = 1, missing, welcome, refusal };
  static constexpr char expected[] = "fsdpmt2"; // magic number of frame format 2

  char magic[8] = {};
  uint32_t interface = 0, kind = 0, rank = 0, ranks = 0, process = 0;
  int32_t status = 0;
  double secondsLeft = 0; ///< seconds until the rank stops waiting
  /// Results of machineIdentity() and machineName() in the process that sends the frame.
  char machine[128] = {}, host[64] = {};
  char job[160] = {}, session[64] = {}; ///< members of LaunchPlace
  char text[1024] = {};

  static Frame make(Kind kind);
  /// Sets the members that identify this process.
  void introduce(const LaunchPlace &place);
  bool isOurs() const;
  /// Returns `text` with each control character replaced by '?'.
  std::string words() const;
};

/// Reads a frame, which may arrive in several parts.
class FrameReader {
public:
  enum class State { partial, complete, foreign, end };
  /// Reads the bytes that have arrived, without waiting for more.
  State read(int file);
  const Frame &get() const { return frame; }
  void clear() { got = 0; }
  bool hasSome() const { return got > 0; }

private:
  Frame frame;
  size_t got = 0;
};

/// Sends a frame and returns false on failure. Never waits, because all frames of a rendezvous fit
/// into the buffer of a socket.
bool sendFrame(int file, const Frame &frame);

} // namespace fsdprt

#endif // FSDPRT_LAUNCH_RENDEZVOUSFRAME_H
