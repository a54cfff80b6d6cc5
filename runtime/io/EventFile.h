//===- EventFile.h - Scalars for TensorBoard --------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An event file is a sequence of records (TFRecord),
//
//     | u64 length | u32 masked CRC-32C of length | length bytes | u32 masked CRC-32C of bytes |
//
// The bytes of each record are an Event in protobuf's wire format. The first Event contains the
// version of the format. If a run resumes from a save, the second Event contains a SessionLog and
// the number of the run's first step. TensorBoard then hides older events of this step and of later
// steps.
//
//     Event   { 1: double wall_time  2: int64 step  3: string file_version
//               5: Summary  7: SessionLog }
//     Summary { 1: Value { 1: string tag  2: float simple_value } ... }
//     SessionLog { 1: enum status (START = 1) }
//
//===----------------------------------------------------------------------===//

#ifndef FSDPRT_IO_EVENTFILE_H
#define FSDPRT_IO_EVENTFILE_H

#include "io/OutputFile.h"

namespace fsdprt {

/// Returns the CRC-32C (Castagnoli) of a range of bytes.
uint32_t crc32c(const void *data, size_t size);
/// Returns the CRC-32C of a range of bytes as records store it: rotated, and with a constant added.
uint32_t maskedCrc32c(const void *data, size_t size);

class EventFile {
public:
  /// Throws Error if open() would fail for `folder`.
  static void expectFolder(const std::string &folder);
  /// Creates the folder and a new file in it. The name of the file contains the time, the host name
  /// and the process id. If `firstStep` is above 1, also writes the event of a run that resumes
  /// from a save.
  void open(const std::string &folder, uint64_t firstStep);
  bool isOpen() const { return file.isOpen(); }

  /// A call of begin(), calls of add() and a call of end() write one event. The functions throw
  /// Error if the event exceeds 4 KiB, and otherwise allocate no memory.
  void begin(uint64_t step);
  void add(const char *tag, float value);
  void end();
  void commit() { file.commit(); }

private:
  void writeRecord(const char *data, size_t size);

  OutputFile file;
  char event[4096], values[4096 - 128]; ///< encoded Event, and its encoded Summary
  size_t eventSize = 0, valuesSize = 0;
};

} // namespace fsdprt

#endif // FSDPRT_IO_EVENTFILE_H
