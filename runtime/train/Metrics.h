//===- Metrics.h - Machine-readable numbers of a step -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes the metrics of each step as a line of JSON (--metrics) and as an event of TensorBoard
// (--tensorboard). In an event, the tag of a metric contains a group, for example "train/loss". In
// JSON, the key of the same metric is the tag without its group, for example "loss".
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_METRICS_H
#define FSDPRT_TRAIN_METRICS_H

#include "io/EventFile.h"

namespace fsdprt {

class Metrics {
public:
  /// Opens the JSON file `lines`, and opens an event file in the folder `events`. If one of these
  /// paths is empty, writes nothing to this file or folder. If `stepsBefore` is not 0 and the JSON
  /// file exists, its lines up to this step are kept.
  void open(const std::string &lines, const std::string &events, uint64_t stepsBefore);
  bool isOpen() const { return lines.isOpen() || events.isOpen(); }
  void commit();

  /// begin(), calls of add() and end() write the metrics of one step without allocating memory.
  void begin(uint64_t step);
  void add(const char *tag, uint64_t value);
  void add(const char *tag, float value);
  void add(const char *tag, double value);
  void end();

private:
  template <typename Float>
  void addReal(const char *tag, Float value);
  void addKey(const char *tag);
  size_t capacity() const { return sizeof text - 3 - used; }

  OutputFile lines;
  EventFile events;
  char text[1024];
  size_t used = 0;
};

} // namespace fsdprt

#endif // FSDPRT_TRAIN_METRICS_H
