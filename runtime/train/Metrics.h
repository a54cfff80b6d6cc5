//===- Metrics.h - Machine-readable numbers of a step -----------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes the metrics of each step to a line of JSON (--metrics) and to an event (--tensorboard). In
// an event, a metric has a tag such as "train/loss". In JSON, the key of this metric is "loss", the
// tag without its group.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_TRAIN_METRICS_H
#define FSDPRT_TRAIN_METRICS_H

#include "io/EventFile.h"

namespace fsdprt {

class Metrics {
public:
  /// Opens the JSON file `lines` and the folder `events` of event files. An empty path means no
  /// output. If `stepsBefore` is not 0, keeps lines of an existing JSON file up to this step.
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
