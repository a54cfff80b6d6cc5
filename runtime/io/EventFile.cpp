//===- EventFile.cpp - Scalars for TensorBoard ------------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Encodes protobuf messages without the protobuf library. A field is a varint with the field number
// and the wire type, followed by a value. The value is a varint, or 4 or 8 bytes, or a length that
// is followed by that many bytes.
//
//===----------------------------------------------------------------------===//

#include "io/EventFile.h"
#include "core/Error.h"
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <unistd.h>

using namespace fsdprt;
using ull = unsigned long long;
namespace fs = std::filesystem;

static std::array<uint32_t, 256> makeTable() {
  std::array<uint32_t, 256> table;
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit)
      value = value & 1 ? value >> 1 ^ 0x82f63b78 : value >> 1;
    table[i] = value;
  }
  return table;
}

uint32_t fsdprt::crc32c(const void *data, size_t size) {
  static const std::array<uint32_t, 256> table = makeTable();
  const auto *bytes = static_cast<const uint8_t *>(data);
  uint32_t crc = ~0u;
  for (size_t i = 0; i < size; ++i)
    crc = table[(crc ^ bytes[i]) & 255] ^ crc >> 8;
  return ~crc;
}

uint32_t fsdprt::maskedCrc32c(const void *data, size_t size) {
  uint32_t crc = crc32c(data, size);
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}

namespace {
enum WireType { varint = 0, eightBytes = 1, lengthAndBytes = 2, fourBytes = 5 };

/// Appends protobuf fields to a buffer of fixed size.
class Message {
public:
  Message(char *to, size_t room, size_t &used) : to(to), room(room), used(used) {}

  void number(uint32_t field, uint64_t value) {
    putVarint(field << 3 | varint);
    putVarint(value);
  }
  void real(uint32_t field, double value) {
    putVarint(field << 3 | eightBytes);
    put(&value, sizeof value);
  }
  void real(uint32_t field, float value) {
    putVarint(field << 3 | fourBytes);
    put(&value, sizeof value);
  }
  void bytes(uint32_t field, const void *data, size_t size) {
    putVarint(field << 3 | lengthAndBytes);
    putVarint(size);
    put(data, size);
  }

private:
  void putVarint(uint64_t value) {
    char byte;
    for (; value > 127; value >>= 7)
      put(&(byte = static_cast<char>(value | 128)), 1);
    put(&(byte = static_cast<char>(value)), 1);
  }
  void put(const void *data, size_t size) {
    if (size > room - used)
      failed("an event has more scalars than its %zu bytes hold", room);
    std::memcpy(to + used, data, size);
    used += size;
  }
  char *to;
  size_t room;
  size_t &used;
};
} // namespace

static double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void EventFile::expectFolder(const std::string &folder) {
  std::error_code error;
  fs::path at = fs::absolute(folder, error);
  while (!fs::exists(at, error) && at.has_relative_path())
    at = at.parent_path();
  if (!fs::is_directory(at, error))
    badInput("%s: cannot write: %s", folder.c_str(), strerror(ENOTDIR));
  if (access(at.c_str(), W_OK | X_OK) != 0)
    badInput("%s: cannot write: %s", folder.c_str(), strerror(errno));
}

void EventFile::open(const std::string &folder, uint64_t firstStep) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    badInput("%s: cannot create the folder: %s", folder.c_str(), error.message().c_str());
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  double time = now();
  file.open(format("%s/events.out.tfevents.%010llu.%s.%d.fsdp-run", folder.c_str(), (ull)time, host,
                   (int)getpid()),
            false);
  static constexpr char version[] = "brain.Event:2";
  eventSize = 0;
  Message first(event, sizeof event, eventSize);
  first.real(1, time);
  first.bytes(3, version, sizeof version - 1);
  writeRecord(event, eventSize);
  if (firstStep <= 1)
    return;
  eventSize = valuesSize = 0;
  Message(values, sizeof values, valuesSize).number(1, 1);
  Message start(event, sizeof event, eventSize);
  start.real(1, time);
  start.number(2, firstStep);
  start.bytes(7, values, valuesSize);
  writeRecord(event, eventSize);
}

void EventFile::begin(uint64_t step) {
  eventSize = valuesSize = 0;
  Message message(event, sizeof event, eventSize);
  message.real(1, now());
  message.number(2, step);
}

void EventFile::add(const char *tag, float value) {
  char scalar[256];
  size_t size = 0;
  Message inner(scalar, sizeof scalar, size);
  inner.bytes(1, tag, std::strlen(tag));
  inner.real(2, value);
  Message(values, sizeof values, valuesSize).bytes(1, scalar, size);
}

void EventFile::end() {
  Message(event, sizeof event, eventSize).bytes(5, values, valuesSize);
  writeRecord(event, eventSize);
}

void EventFile::writeRecord(const char *data, size_t size) {
  char record[sizeof event + 16];
  uint64_t length = size;
  uint32_t crc = maskedCrc32c(&length, sizeof length);
  std::memcpy(record, &length, 8);
  std::memcpy(record + 8, &crc, 4);
  std::memcpy(record + 12, data, size);
  crc = maskedCrc32c(data, size);
  std::memcpy(record + 12 + size, &crc, 4);
  file.write(record, size + 16);
}
