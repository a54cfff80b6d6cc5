//===- Cluster.cpp - Machines and what connects them ------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every member is known by name and has its range: a file with a misspelt one is refused.
// The compiler reads the same files (lib/Analysis/Cluster.cpp), and needs fewer of the members.
//
//===----------------------------------------------------------------------===//

#include "simulate/Cluster.h"
#include "core/JsonText.h"
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

using namespace fsdprt;
using nlohmann::json;

double Cluster::kernelSeconds(const std::string &kind, uint64_t multiplyAdds,
                              uint64_t bf16MultiplyAdds, uint64_t bytes) const {
  double wide = wideMultiplyAdds, narrow = narrowMultiplyAdds, memory = memoryBytesPerSecond;
  auto known = kinds.find(kind);
  if (known != kinds.end() && known->second.multiplyAdds > 0)
    wide = narrow = known->second.multiplyAdds;
  if (known != kinds.end() && known->second.bytesPerSecond > 0)
    memory = known->second.bytesPerSecond;
  double products =
      static_cast<double>(multiplyAdds) / wide + static_cast<double>(bf16MultiplyAdds) / narrow;
  return launchSeconds + std::max(products, static_cast<double>(bytes) / memory);
}

namespace {

class ClusterReader {
public:
  explicit ClusterReader(const std::string &path) { cluster.file = path; }
  Cluster read(const json &root);

private:
  [[noreturn]] void refuse(const std::string &what) const {
    badInput("%s: %s", cluster.file.c_str(), what.c_str());
  }
  static std::string show(const json &value) {
    return printable(value.dump(-1, ' ', false, json::error_handler_t::replace));
  }

  void expectMembers(const json &value, const std::string &what,
                     const std::vector<std::string> &known) const;
  double number(const json &object, const std::string &what, const char *name, double least,
                double most, const char *range) const;
  /// Of something per second. The least keeps times finite.
  double rate(const json &object, const std::string &what, const char *name) const {
    return number(object, what, name, 1, 1e24, "1 to 1e24");
  }
  double seconds(const json &object, const std::string &what, const char *name) const {
    return number(object, what, name, 0, 1e6, "0 to 1e6");
  }
  uint64_t wholeNumber(const json &value, const std::string &what, const std::string &expected,
                       uint64_t multipleOf, uint64_t above) const;
  std::string text(const json &object, const std::string &what) const;
  const json &list(const json &object, const std::string &what, const char *name) const;

  void readDevice(const json &device);
  void readProtocols(const json &root);
  void readLink(const json &value, bool isLast);
  SwitchReduce readSwitch(const json &value, const std::string &what) const;

  Cluster cluster;
};

} // namespace

/// `known`: those that end in '?' may be absent.
void ClusterReader::expectMembers(const json &value, const std::string &what,
                                  const std::vector<std::string> &known) const {
  if (!value.is_object())
    refuse(what + ": expected an object, found " + show(value));
  std::string names;
  for (const std::string &name : known)
    names += (names.empty() ? "\"" : ", \"") + name.substr(0, name.find('?')) + "\"";
  for (const auto &member : value.items())
    if (std::none_of(known.begin(), known.end(), [&](const std::string &name) {
          return name.substr(0, name.find('?')) == member.key();
        }))
      refuse(what + ": unknown member \"" + printable(member.key()) + "\"; expected " + names);
  for (const std::string &name : known)
    if (name.back() != '?' && !value.contains(name))
      refuse(what + ": expected a member \"" + name + "\"");
}

/// `range`: in words what `least` and `most` are.
double ClusterReader::number(const json &object, const std::string &what, const char *name,
                             double least, double most, const char *range) const {
  const json &value = object.at(name);
  double found = value.is_number() ? value.get<double>() : NAN;
  if (!(found >= least && found <= most))
    refuse(what + ": \"" + name + "\": expected a number from " + range + ", found " + show(value));
  return found;
}

uint64_t ClusterReader::wholeNumber(const json &value, const std::string &what,
                                    const std::string &expected, uint64_t multipleOf,
                                    uint64_t above) const {
  bool fits = value.is_number_unsigned();
  uint64_t found = fits ? value.get<uint64_t>() : 0;
  if (!fits || found <= above || found % multipleOf != 0 || found > (uint64_t(1) << 32))
    refuse(what + ": expected " + expected + ", found " + show(value));
  return found;
}

std::string ClusterReader::text(const json &object, const std::string &what) const {
  const json &value = object.at("name");
  if (!value.is_string())
    refuse(what + ": \"name\": expected a string, found " + show(value));
  return printable(value.get<std::string>());
}

const json &ClusterReader::list(const json &object, const std::string &what,
                                const char *name) const {
  const json &value = object.at(name);
  if (!value.is_array() || value.empty())
    refuse(what + ": \"" + name + "\": expected a list that is not empty, found " + show(value));
  return value;
}

void ClusterReader::readDevice(const json &device) {
  const std::string what = "\"device\"";
  expectMembers(device, what,
                {"f32_multiply_adds_per_second", "bf16_multiply_adds_per_second",
                 "bytes_per_second", "launch_seconds", "collective_seconds?", "kinds?",
                 "host_bytes_per_second?", "file_bytes_per_second?"});
  cluster.wideMultiplyAdds = rate(device, what, "f32_multiply_adds_per_second");
  cluster.narrowMultiplyAdds = rate(device, what, "bf16_multiply_adds_per_second");
  cluster.memoryBytesPerSecond = rate(device, what, "bytes_per_second");
  cluster.launchSeconds = seconds(device, what, "launch_seconds");
  if (device.contains("collective_seconds"))
    cluster.collectiveSeconds = seconds(device, what, "collective_seconds");
  if (device.contains("host_bytes_per_second"))
    cluster.hostBytesPerSecond = rate(device, what, "host_bytes_per_second");
  if (device.contains("file_bytes_per_second"))
    cluster.fileBytesPerSecond = rate(device, what, "file_bytes_per_second");
  if (!device.contains("kinds"))
    return;
  if (!device.at("kinds").is_object())
    refuse("\"kinds\": expected an object, found " + show(device.at("kinds")));
  for (const auto &[kind, rates] : device.at("kinds").items()) {
    std::string name = "kind \"" + printable(kind) + "\"";
    expectMembers(rates, name, {"multiply_adds_per_second?", "bytes_per_second?"});
    for (const char *member : {"multiply_adds_per_second", "bytes_per_second"})
      if (rates.contains(member))
        (*member == 'm' ? cluster.kinds[kind].multiplyAdds : cluster.kinds[kind].bytesPerSecond) =
            rate(rates, name, member);
  }
}

void ClusterReader::readProtocols(const json &root) {
  if (!root.contains("protocols"))
    return;
  for (const json &protocol : list(root, "a cluster", "protocols")) {
    expectMembers(protocol, "a protocol", {"name", "seconds"});
    std::string name = text(protocol, "a protocol");
    if (!cluster.protocols.emplace(name, seconds(protocol, "protocol \"" + name + "\"", "seconds"))
             .second)
      refuse("protocol \"" + name + "\" is there twice");
  }
}

SwitchReduce ClusterReader::readSwitch(const json &value, const std::string &what) const {
  expectMembers(value, what,
                {"least_ranks", "seconds", "bytes_per_second", "round_seconds", "rounds"});
  SwitchReduce result;
  result.leastRanks = wholeNumber(value.at("least_ranks"), what + ": \"least_ranks\"",
                                  "a whole number of at least 2", 1, 1);
  result.seconds = seconds(value, what, "seconds");
  result.bytesPerSecond = rate(value, what, "bytes_per_second");
  result.roundSeconds = seconds(value, what, "round_seconds");
  for (const json &round : list(value, what, "rounds")) {
    expectMembers(round, what + ": a round", {"from_bytes", "bytes"});
    RoundSize size{number(round, what, "from_bytes", 0, 1e24, "0 to 1e24"),
                   number(round, what, "bytes", 1024, 1e24, "1024 to 1e24")};
    if (result.rounds.empty() ? size.fromBytes != 0
                              : size.fromBytes <= result.rounds.back().fromBytes)
      refuse(what + ": \"from_bytes\": expected 0 in the first round and more in each, found " +
             show(round.at("from_bytes")));
    result.rounds.push_back(size);
  }
  return result;
}

void ClusterReader::readLink(const json &value, bool isLast) {
  expectMembers(
      value, "a link",
      {"name", "ranks?", "bytes_per_second", "seconds", "protocols?", "switch_all_reduce?"});
  ClusterLink link;
  link.name = text(value, "a link");
  std::string what = "link \"" + link.name + "\"";
  link.plain = {seconds(value, what, "seconds"), rate(value, what, "bytes_per_second")};
  uint64_t inner = cluster.links.empty() ? 1 : cluster.links.back().ranks;
  if (!value.contains("ranks") && !isLast)
    refuse(what + ": only the last link may be without \"ranks\"");
  if (value.contains("ranks"))
    link.ranks = wholeNumber(value.at("ranks"), what + ": \"ranks\"",
                             inner == 1 ? "a whole number of at least 2"
                                        : "a multiple of the " + std::to_string(inner) +
                                              " ranks of the link before it, and more",
                             inner, inner);
  if (value.contains("protocols"))
    for (const json &protocol : list(value, what, "protocols")) {
      expectMembers(protocol, what + ": a protocol", {"name", "seconds", "bytes_per_second"});
      std::string name = text(protocol, what), where = what + ": protocol \"" + name + "\"";
      if (!cluster.protocols.count(name))
        refuse(where + ": expected one of the cluster's \"protocols\"");
      LinkRate found{seconds(protocol, where, "seconds"),
                     rate(protocol, where, "bytes_per_second")};
      if (!link.protocols.emplace(name, found).second)
        refuse(where + " is there twice");
    }
  if (value.contains("switch_all_reduce"))
    link.switchReduce = readSwitch(value.at("switch_all_reduce"), what + ": \"switch_all_reduce\"");
  cluster.links.push_back(std::move(link));
}

Cluster ClusterReader::read(const json &root) {
  expectMembers(root, "a cluster", {"name", "device", "links", "comment?", "protocols?"});
  cluster.name = text(root, "a cluster");
  readProtocols(root);
  const json &links = list(root, "a cluster", "links");
  for (const json &link : links)
    readLink(link, &link == &links.back());
  readDevice(root.at("device"));
  return std::move(cluster);
}

Cluster fsdprt::readCluster(const std::string &path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    badInput("%s: expected a cluster, found something that is not a file",
             path.c_str()); // a named pipe would wait
  std::ifstream file(path);
  std::stringstream content;
  if (!file || !(content << file.rdbuf()))
    badInput("%s: cannot read the cluster: expected a file such as examples/clusters/8xH200.json",
             path.c_str());
  std::vector<std::set<std::string>> members; // of the objects that are open
  auto check = [&](int, json::parse_event_t event, json &parsed) {
    if (event == json::parse_event_t::object_start)
      members.emplace_back();
    else if (event == json::parse_event_t::object_end)
      members.pop_back();
    else if (event == json::parse_event_t::key &&
             !members.back().insert(parsed.get<std::string>()).second)
      badInput("%s: member \"%s\" is there twice in one object", path.c_str(),
               printable(parsed.get<std::string>()).c_str());
    return true;
  };
  json root;
  checkJsonDepth(path, content.str().data(), content.str().size());
  try {
    root = json::parse(content.str(), check);
  } catch (const json::exception &error) {
    badInput("%s: expected a cluster in JSON: %s", path.c_str(),
             whyNotJson(content.str(), error).c_str());
  }
  return ClusterReader(path).read(root);
}
