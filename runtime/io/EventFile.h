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
// Each record is an Event in protobuf's wire format. The first record has the file's version. If a
// run resumes from a save, the second record is a session start at the first step. TensorBoard then
// hides older events of that step and later steps.
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

/// Return the CRC-32C (Castagnoli) of a range, and the masked CRC for records: rotated, plus a
/// constant.
uint32_t crc32c(const void *data, size_t size);
uint32_t maskedCrc32c(const void *data, size_t size);

class EventFile {
public:
  /// Throws Error if open() would fail.
  static void expectFolder(const std::string &folder);
  /// Creates the folder and a file in it, whose name contains the time, the host and the process.
  /// `firstStep` > 1 means that the run resumes.
  void open(const std::string &folder, uint64_t firstStep);
  bool isOpen() const { return file.isOpen(); }

  /// Write one event by calls in this order. Allocate no memory. Throw Error if the event exceeds 4
  /// KiB.
  void begin(uint64_t step);
  void add(const char *tag, float value);
  void end();
  void commit() { file.commit(); }

private:
  void writeRecord(const char *data, size_t size);

  OutputFile file;
  char event[4096], values[4096 - 128]; // encoded event, and its summary
  size_t eventSize = 0, valuesSize = 0;
};

} // namespace fsdprt

#endif // FSDPRT_IO_EVENTFILE_H
