//===- Cluster.cpp - Machines and what connects them ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "fsdp/Analysis/Cluster.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>

using namespace mlir::fsdp;
using llvm::StringRef;

const Cluster &mlir::fsdp::getCpuCluster() {
  static const Cluster cluster{"cpu", 110e9, 220e9,
                               15e9,  1e-6,  {{"memory", Link().ranks, 8e9, 10e-6}}};
  return cluster;
}

const Cluster &mlir::fsdp::getGpuCluster() {
  static const Cluster cluster{
      gpuClusterName.str(), 30e12, 397e12, 3e12, 4e-6, {{"NVLink", 8, 370.8e9, 3.4e-6}}};
  return cluster;
}

double mlir::fsdp::getRingSeconds(const Cluster &cluster, double bytes, int64_t ranks,
                                  int64_t stride, unsigned rounds) {
  if (ranks < 2)
    return 0;
  double bandwidth = std::numeric_limits<double>::infinity(), latency = 0;
  int64_t inner = 1,
          steps =
              ranks - 1; // ranks that the levels so far join; steps of the ring not yet attributed
  for (const Link &link : cluster.links) {
    // Members of the group that the levels below join, and those that this one does.
    int64_t below = std::clamp<int64_t>(inner / stride, 1, ranks);
    int64_t here = std::clamp<int64_t>(link.ranks / stride, 1, ranks);
    if (here > below) {
      bandwidth = std::min(bandwidth, link.bytesPerSecond * static_cast<double>(below));
      // Of the whole ring, the steps between the blocks below within each block here.
      int64_t crossings = std::min(steps, (ranks + below - 1) / below - (ranks + here - 1) / here);
      latency += static_cast<double>(crossings) * link.seconds;
      steps -= crossings;
    }
    inner = link.ranks;
  }
  double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return rounds * (bytes * share / bandwidth + latency);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

namespace {

/// Reads an object whose members are known by name; the first problem stays.
class ClusterReader {
public:
  explicit ClusterReader(JsonProblem &problem) : problem(problem) {}

  bool fail(const JsonValue &at, const llvm::Twine &message) {
    if (problem.message.empty())
      problem = {at.line, at.column, message.str()};
    return false;
  }

  /// Whether `value` is an object of nothing but `known`, all of which without '?' are there.
  bool isObject(const JsonValue &value, StringRef what, llvm::ArrayRef<StringRef> known) {
    if (!value.is(JsonValue::Kind::object))
      return fail(value, what + ": expected an object, found " + value.describe());
    for (const JsonMember &member : value.members)
      if (llvm::none_of(known, [&](StringRef name) { return name.trim('?') == member.name; }))
        return fail(member.value,
                    what + ": unknown member \"" + member.name + "\"; expected " + list(known));
    for (StringRef name : known)
      if (!name.ends_with("?") && !value.find(name))
        return fail(value, what + ": expected a member \"" + name + "\"");
    return true;
  }

  /// `range`: in words what `least` and `most` are.
  bool readNumber(const JsonValue &object, StringRef name, double least, double most,
                  StringRef range, double &number) {
    const JsonValue &value = object.find(name)->value;
    bool isNumber = value.is(JsonValue::Kind::integer) || value.is(JsonValue::Kind::number);
    if (!isNumber || StringRef(value.text).getAsDouble(number) ||
        !(number >= least && number <= most))
      return fail(value, "\"" + name + "\": expected a number from " + range + ", found " +
                             value.describe());
    return true;
  }
  /// Of something per second. The least keeps times finite.
  bool readRate(const JsonValue &object, StringRef name, double &rate) {
    return readNumber(object, name, 1, 1e24, "1 to 1e24", rate);
  }
  bool readSeconds(const JsonValue &object, StringRef name, double &seconds) {
    return readNumber(object, name, 0, 1e6, "0 to 1e6", seconds);
  }

  bool readDevice(const JsonValue &device, Cluster &cluster) {
    return isObject(device, "\"device\"",
                    {"f32_multiply_adds_per_second", "bf16_multiply_adds_per_second",
                     "bytes_per_second", "launch_seconds", "collective_seconds?", "kinds?",
                     "host_bytes_per_second?", "file_bytes_per_second?"}) &&
           readRate(device, "f32_multiply_adds_per_second", cluster.wideMultiplyAdds) &&
           readRate(device, "bf16_multiply_adds_per_second", cluster.narrowMultiplyAdds) &&
           readRate(device, "bytes_per_second", cluster.memoryBytesPerSecond) &&
           readSeconds(device, "launch_seconds", cluster.launchSeconds) &&
           (!device.find("host_bytes_per_second") ||
            readRate(device, "host_bytes_per_second", cluster.hostBytesPerSecond)) &&
           (!device.find("file_bytes_per_second") ||
            readRate(device, "file_bytes_per_second", cluster.fileBytesPerSecond));
  }

  bool readLink(const JsonValue &value, bool isLast, Cluster &cluster) {
    Link link;
    if (!isObject(value, "a link",
                  {"name", "ranks?", "bytes_per_second", "seconds", "protocols?",
                   "switch_all_reduce?"}) ||
        !readRate(value, "bytes_per_second", link.bytesPerSecond) ||
        !readSeconds(value, "seconds", link.seconds))
      return false;
    const JsonValue &name = value.find("name")->value;
    if (!name.is(JsonValue::Kind::string))
      return fail(name, "\"name\": expected a string, found " + name.describe());
    link.name = name.text;
    int64_t inner = cluster.links.empty() ? 1 : cluster.links.back().ranks;
    const JsonMember *ranks = value.find("ranks");
    if (!ranks && !isLast)
      return fail(value, "only the last link may be without \"ranks\"");
    if (ranks && (!ranks->value.is(JsonValue::Kind::integer) ||
                  StringRef(ranks->value.text).getAsInteger(10, link.ranks) ||
                  link.ranks <= inner || link.ranks % inner != 0))
      return fail(ranks->value, "\"ranks\": expected " +
                                    (inner == 1 ? "a whole number of at least 2"
                                                : "a multiple of the " + std::to_string(inner) +
                                                      " ranks of the link before it, and more") +
                                    ", found " + ranks->value.describe());
    cluster.links.push_back(link);
    return true;
  }

  bool read(const JsonValue &root, Cluster &cluster) {
    if (!isObject(root, "a cluster", {"name", "device", "links", "comment?", "protocols?"}))
      return false;
    const JsonValue &name = root.find("name")->value, &links = root.find("links")->value;
    if (!name.is(JsonValue::Kind::string))
      return fail(name, "\"name\": expected a string, found " + name.describe());
    cluster.name = name.text;
    if (!links.is(JsonValue::Kind::array) || links.elements.empty())
      return fail(links,
                  "\"links\": expected a list of at least one link, found " + links.describe());
    for (const JsonValue &link : links.elements)
      if (!readLink(link, &link == &links.elements.back(), cluster))
        return false;
    return readDevice(root.find("device")->value, cluster);
  }

private:
  static std::string list(llvm::ArrayRef<StringRef> names) {
    std::string text;
    for (StringRef name : names)
      text += (text.empty() ? "\"" : ", \"") + name.trim('?').str() + "\"";
    return text;
  }

  JsonProblem &problem;
};

} // namespace

std::optional<Cluster> mlir::fsdp::readCluster(StringRef path, JsonProblem &problem) {
  std::optional<JsonValue> root = readJson(path, problem);
  Cluster cluster;
  if (!root || !ClusterReader(problem).read(*root, cluster))
    return std::nullopt;
  return cluster;
}
