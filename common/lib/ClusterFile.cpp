//===- ClusterFile.cpp - Descriptions of clusters ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The functions of ClusterReader return false on an error. `problem` contains the first error.
//
//===----------------------------------------------------------------------===//

#include "fsdpcommon/ClusterFile.h"
#include "fsdpcommon/KernelKinds.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>

using namespace fsdpcommon;
using Kind = JsonValue::Kind;

namespace {

/// The name of a member that an object may have.
struct Member {
  const char *name;
  bool required = true;
};

class ClusterReader {
public:
  explicit ClusterReader(JsonProblem &problem) : problem(problem) {}
  bool read(const JsonValue &root);
  Cluster cluster;

private:
  using Text = std::string;

  bool fail(const JsonValue &at, const Text &message) {
    if (problem.message.empty())
      // The message may contain names from the file, so its length is limited.
      problem = {at.line, at.column, shortText(message, 1000)};
    return false;
  }
  bool isObject(const JsonValue &value, const Text &what, const std::vector<Member> &known);
  bool readNumber(const JsonValue &object, const Text &what, const char *name, double least,
                  double most, const char *range, double &number);
  bool readWhole(const JsonValue &value, const Text &what, const Text &expected,
                 uint64_t multipleOf, uint64_t above, uint64_t &number);
  bool readMultiprocessors(const JsonValue &object, const Text &what, uint64_t &number) {
    const JsonMember *member = object.find("multiprocessors");
    return !member || readWhole(member->value, what + ": \"multiprocessors\"",
                                "a whole number from 1 to 2^32", 1, 0, number);
  }
  bool readName(const JsonValue &object, const Text &what, Text &name);
  const std::vector<JsonValue> *readList(const JsonValue &object, const Text &what,
                                         const char *name);

  /// Reads a rate per second. The lower limit of 1 keeps quotients by the rate finite.
  bool readRate(const JsonValue &object, const Text &what, const char *name, double &rate) {
    return readNumber(object, what, name, 1, 1e24, "1 to 1e24", rate);
  }
  bool readSeconds(const JsonValue &object, const Text &what, const char *name, double &seconds) {
    return readNumber(object, what, name, 0, 1e6, "0 to 1e6", seconds);
  }

  bool readDevice(const JsonValue &device);
  bool readChip(const JsonValue &device, const Text &what);
  bool readKinds(const JsonValue &kinds);
  bool readProtocols(const JsonValue &root);
  bool readLink(const JsonValue &value, bool isLast);
  bool readLinkProtocols(const JsonValue &value, const Text &what, ClusterLink &link);
  bool readSwitch(const JsonValue &value, const Text &what, SwitchReduce &result);
  bool readCopyEngines(const JsonValue &value, const Text &what, CopyEngines &result);

  JsonProblem &problem;
};

} // namespace

bool ClusterReader::isObject(const JsonValue &value, const Text &what,
                             const std::vector<Member> &known) {
  if (!value.is(Kind::object))
    return fail(value, what + ": expected an object, found " + value.describe());
  Text names;
  for (const Member &member : known)
    names += (names.empty() ? "\"" : ", \"") + Text(member.name) + "\"";
  for (const JsonMember &member : value.members)
    if (std::none_of(known.begin(), known.end(),
                     [&](const Member &one) { return one.name == member.name; }))
      return fail(member.value,
                  what + ": unknown member \"" + member.name + "\"; expected " + names);
  for (const Member &member : known)
    if (member.required && !value.find(member.name))
      return fail(value, what + ": expected a member \"" + member.name + "\"");
  return true;
}

/// Reads a number in [least, most]. Error messages call this range `range`. If the object has no
/// such member, leaves `number` unchanged.
bool ClusterReader::readNumber(const JsonValue &object, const Text &what, const char *name,
                               double least, double most, const char *range, double &number) {
  const JsonMember *member = object.find(name);
  if (!member)
    return true;
  const JsonValue &value = member->value;
  bool isNumber = value.is(Kind::integer) || value.is(Kind::number);
  number = isNumber ? std::strtod(value.text.c_str(), nullptr) : NAN;
  if (!(number >= least && number <= most))
    return fail(value, what + ": \"" + name + "\": expected a number from " + range + ", found " +
                           value.describe());
  return true;
}

/// Reads a whole number that is a multiple of `multipleOf`, larger than `above`, and at most 2^32.
bool ClusterReader::readWhole(const JsonValue &value, const Text &what, const Text &expected,
                              uint64_t multipleOf, uint64_t above, uint64_t &number) {
  bool isWhole = value.is(Kind::integer) && value.text.front() != '-';
  number = isWhole ? std::strtoull(value.text.c_str(), nullptr, 10) : 0;
  if (number <= above || number % multipleOf != 0 || number > (uint64_t(1) << 32))
    return fail(value, what + ": expected " + expected + ", found " + value.describe());
  return true;
}

bool ClusterReader::readName(const JsonValue &object, const Text &what, Text &name) {
  const JsonValue &value = object.find("name")->value;
  if (!value.is(Kind::string))
    return fail(value, what + ": \"name\": expected a string, found " + value.describe());
  if (std::any_of(value.text.begin(), value.text.end(),
                  [](unsigned char c) { return c < ' ' || c == 0x7f; }))
    return fail(value,
                what + ": \"name\": expected no control characters, found " + value.describe());
  name = value.text;
  return true;
}

/// Returns the elements of a list. If the list is empty or the value is not a list, reports an
/// error and returns null.
const std::vector<JsonValue> *ClusterReader::readList(const JsonValue &object, const Text &what,
                                                      const char *name) {
  const JsonValue &value = object.find(name)->value;
  if (value.is(Kind::array) && !value.elements.empty())
    return &value.elements;
  fail(value, what + ": \"" + name + "\": expected a non-empty list, found " + value.describe());
  return nullptr;
}

bool ClusterReader::readDevice(const JsonValue &device) {
  const Text what = "\"device\"";
  if (!isObject(device, what,
                {{"f32_multiply_adds_per_second"},
                 {"bf16_multiply_adds_per_second"},
                 {"bytes_per_second"},
                 {"launch_seconds"},
                 {"chip", false},
                 {"clocks_per_second", false},
                 {"multiprocessors", false},
                 {"collective_seconds", false},
                 {"kinds", false},
                 {"host_bytes_per_second", false},
                 {"file_bytes_per_second", false}}) ||
      !readRate(device, what, "f32_multiply_adds_per_second", cluster.wideMultiplyAdds) ||
      !readRate(device, what, "bf16_multiply_adds_per_second", cluster.narrowMultiplyAdds) ||
      !readRate(device, what, "bytes_per_second", cluster.memoryBytesPerSecond) ||
      !readSeconds(device, what, "launch_seconds", cluster.launchSeconds) ||
      !readSeconds(device, what, "collective_seconds", cluster.collectiveSeconds) ||
      !readRate(device, what, "host_bytes_per_second", cluster.hostBytesPerSecond) ||
      !readRate(device, what, "file_bytes_per_second", cluster.fileBytesPerSecond))
    return false;
  if (!readChip(device, what) || !readMultiprocessors(device, what, cluster.multiprocessors))
    return false;
  for (const ClusterLink &link : cluster.links)
    if (uint64_t most = std::max(link.multiprocessors, link.switchReduce.multiprocessors);
        most && most >= cluster.multiprocessors)
      return fail(device, what + ": \"multiprocessors\": expected more than the " +
                              std::to_string(most) + " that collectives over link \"" + link.name +
                              "\" or its switch occupy, found " +
                              (cluster.multiprocessors ? std::to_string(cluster.multiprocessors)
                                                       : Text("no such member")));
  const JsonMember *kinds = device.find("kinds");
  return !kinds || readKinds(kinds->value);
}

/// Returns true if `name` is a target of ptxas, such as "sm_80" or "sm_90a".
static bool namesChip(const std::string &name) {
  size_t digits = name.rfind("sm_", 0) == 0 ? 3 : name.size();
  size_t end = name.find_first_not_of("0123456789", digits);
  return digits < name.size() && end != digits &&
         (end == name.npos || name.substr(end) == "a" || name.substr(end) == "f");
}

/// Reads the chip and its clock rate, which need each other.
bool ClusterReader::readChip(const JsonValue &device, const Text &what) {
  const JsonMember *chip = device.find("chip"), *clocks = device.find("clocks_per_second");
  if (!chip != !clocks)
    return fail(device, what + ": expected both \"chip\" and \"clocks_per_second\", or neither");
  if (!chip)
    return true;
  if (!chip->value.is(Kind::string) || !namesChip(chip->value.text))
    return fail(chip->value, what + ": \"chip\": expected a name such as \"sm_90a\", found " +
                                 chip->value.describe());
  cluster.chip = chip->value.text;
  return readRate(device, what, "clocks_per_second", cluster.clocksPerSecond);
}

bool ClusterReader::readKinds(const JsonValue &kinds) {
  if (!kinds.is(Kind::object))
    return fail(kinds, "\"kinds\": expected an object, found " + kinds.describe());
  Text names;
  for (const char *name : kernelKinds)
    names += (names.empty() ? "" : ", ") + Text(name);
  for (const JsonMember &kind : kinds.members) {
    Text what = "kind \"" + kind.name + "\"";
    if (std::find(std::begin(kernelKinds), std::end(kernelKinds), kind.name) ==
        std::end(kernelKinds))
      return fail(kind.value, what + ": unknown; expected " + names);
    KindRate &rates = cluster.kinds[kind.name];
    if (!isObject(kind.value, what,
                  {{"multiply_adds_per_second", false}, {"bytes_per_second", false}}) ||
        !readRate(kind.value, what, "multiply_adds_per_second", rates.multiplyAdds) ||
        !readRate(kind.value, what, "bytes_per_second", rates.bytesPerSecond))
      return false;
  }
  return true;
}

bool ClusterReader::readProtocols(const JsonValue &root) {
  if (!root.find("protocols"))
    return true;
  const std::vector<JsonValue> *protocols = readList(root, "a cluster", "protocols");
  if (!protocols)
    return false;
  for (const JsonValue &protocol : *protocols) {
    Text name;
    double seconds = 0;
    if (!isObject(protocol, "a protocol", {{"name"}, {"seconds"}}) ||
        !readName(protocol, "a protocol", name) ||
        !readSeconds(protocol, "protocol \"" + name + "\"", "seconds", seconds))
      return false;
    if (!cluster.protocols.emplace(name, seconds).second)
      return fail(protocol, "protocol \"" + name + "\" is given twice");
  }
  return true;
}

bool ClusterReader::readSwitch(const JsonValue &value, const Text &what, SwitchReduce &result) {
  if (!isObject(value, what,
                {{"least_ranks"},
                 {"seconds"},
                 {"bytes_per_second"},
                 {"round_seconds"},
                 {"rounds"},
                 {"multiprocessors", false}}) ||
      !readMultiprocessors(value, what, result.multiprocessors) ||
      !readWhole(value.find("least_ranks")->value, what + ": \"least_ranks\"",
                 "a whole number from 2 to 2^32", 1, 1, result.leastRanks) ||
      !readSeconds(value, what, "seconds", result.seconds) ||
      !readRate(value, what, "bytes_per_second", result.bytesPerSecond) ||
      !readSeconds(value, what, "round_seconds", result.roundSeconds))
    return false;
  const std::vector<JsonValue> *rounds = readList(value, what, "rounds");
  if (!rounds)
    return false;
  for (const JsonValue &round : *rounds) {
    RoundSize size;
    if (!isObject(round, what + ": a round", {{"from_bytes"}, {"bytes"}}) ||
        !readNumber(round, what, "from_bytes", 0, 1e24, "0 to 1e24", size.fromBytes) ||
        !readNumber(round, what, "bytes", 1024, 1e24, "1024 to 1e24", size.bytes))
      return false;
    const JsonValue &from = round.find("from_bytes")->value;
    if (result.rounds.empty() ? size.fromBytes != 0
                              : size.fromBytes <= result.rounds.back().fromBytes)
      return fail(from, what +
                            ": \"from_bytes\": expected 0 in the first round and more in each, "
                            "found " +
                            from.describe());
    result.rounds.push_back(size);
  }
  return true;
}

bool ClusterReader::readCopyEngines(const JsonValue &value, const Text &what, CopyEngines &result) {
  if (!cluster.links.empty())
    return fail(value, what + ": expected it in the first link only");
  return isObject(value, what, {{"seconds"}, {"bytes_per_second"}}) &&
         readSeconds(value, what, "seconds", result.seconds) &&
         readRate(value, what, "bytes_per_second", result.bytesPerSecond);
}

bool ClusterReader::readLinkProtocols(const JsonValue &value, const Text &what, ClusterLink &link) {
  const std::vector<JsonValue> *protocols = readList(value, what, "protocols");
  if (!protocols)
    return false;
  for (const JsonValue &protocol : *protocols) {
    Text name;
    if (!isObject(protocol, what + ": a protocol", {{"name"}, {"seconds"}, {"bytes_per_second"}}) ||
        !readName(protocol, what, name))
      return false;
    Text where = what + ": protocol \"" + name + "\"";
    if (!cluster.protocols.count(name))
      return fail(protocol, where + ": expected one of the cluster's \"protocols\"");
    LinkRate rate;
    if (!readSeconds(protocol, where, "seconds", rate.stepSeconds) ||
        !readRate(protocol, where, "bytes_per_second", rate.bytesPerSecond))
      return false;
    if (!link.protocols.emplace(name, rate).second)
      return fail(protocol, where + " is given twice");
  }
  return true;
}

bool ClusterReader::readLink(const JsonValue &value, bool isLast) {
  ClusterLink link;
  if (!isObject(value, "a link",
                {{"name"},
                 {"ranks", false},
                 {"bytes_per_second"},
                 {"seconds"},
                 {"protocols", false},
                 {"multiprocessors", false},
                 {"copy_engines", false},
                 {"switch_all_reduce", false}}) ||
      !readName(value, "a link", link.name))
    return false;
  const Text what = "link \"" + link.name + "\"";
  if (!readMultiprocessors(value, what, link.multiprocessors) ||
      !readSeconds(value, what, "seconds", link.plain.stepSeconds) ||
      !readRate(value, what, "bytes_per_second", link.plain.bytesPerSecond))
    return false;
  uint64_t inner = cluster.links.empty() ? 1 : cluster.links.back().ranks;
  const JsonMember *ranks = value.find("ranks"), *reduce = value.find("switch_all_reduce"),
                   *engines = value.find("copy_engines");
  if (!ranks && !isLast)
    return fail(value, what + ": only the last link may omit \"ranks\"");
  Text expected = inner == 1 ? "a whole number from 2 to 2^32"
                             : "a multiple of the " + std::to_string(inner) +
                                   " ranks of the previous link, larger, and at most 2^32";
  if ((ranks &&
       !readWhole(ranks->value, what + ": \"ranks\"", expected, inner, inner, link.ranks)) ||
      (value.find("protocols") && !readLinkProtocols(value, what, link)) ||
      (engines &&
       !readCopyEngines(engines->value, what + ": \"copy_engines\"", link.copyEngines)) ||
      (reduce && !readSwitch(reduce->value, what + ": \"switch_all_reduce\"", link.switchReduce)))
    return false;
  cluster.links.push_back(std::move(link));
  return true;
}

bool ClusterReader::read(const JsonValue &root) {
  if (!isObject(root, "a cluster",
                {{"name"}, {"device"}, {"links"}, {"comment", false}, {"protocols", false}}) ||
      !readName(root, "a cluster", cluster.name) || !readProtocols(root))
    return false;
  const std::vector<JsonValue> *links = readList(root, "a cluster", "links");
  if (!links)
    return false;
  for (const JsonValue &link : *links)
    if (!readLink(link, &link == &links->back()))
      return false;
  return readDevice(root.find("device")->value);
}

std::optional<Cluster> fsdpcommon::readCluster(const std::string &path, JsonProblem &problem) {
  std::optional<JsonValue> root = readJson(path, problem);
  if (!root)
    return std::nullopt;
  ClusterReader reader(problem);
  reader.cluster.file = path;
  if (!reader.read(*root))
    return std::nullopt;
  return std::move(reader.cluster);
}
