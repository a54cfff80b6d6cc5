//===- Weights.cpp - Parameters from and to files ---------------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tensors in files have the Hugging Face names of parameters, with or without the prefixes of
// wrappers ("module.", "transformer.", "model."). Import ignores causal masks and rotary
// frequencies. It also ignores an output head that repeats the values of a tied embedding.
//
// Import rejects non-finite values, and values that are outside of the range of the parameter's
// type, because training cannot recover from such values. Export writes non-finite values and
// prints a warning.
//
//===----------------------------------------------------------------------===//

#include "train/Weights.h"
#include "core/DType.h"
#include "train/SaveIndex.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>

using namespace fsdprt;
using ull = unsigned long long;

static constexpr uint64_t chunkElements = 1 << 20;

static bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Returns `name` without the prefixes of wrappers.
static std::string bareName(std::string name) {
  for (bool again = true; again;) {
    again = false;
    for (const char *prefix : {"_orig_mod.", "module.", "transformer.", "model."})
      if (name.rfind(prefix, 0) == 0) {
        name.erase(0, std::strlen(prefix));
        again = true;
      }
  }
  return name;
}

static bool isKnownBuffer(const std::string &name) {
  for (const char *end :
       {".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq", ".position_ids"})
    if (endsWith(name, end))
      return true;
  return false;
}

static bool dtypeOf(const std::string &name, fsdprt_dtype &dtype) {
  static const std::pair<const char *, fsdprt_dtype> known[] = {
      {"F64", FSDPRT_F64}, {"F32", FSDPRT_F32}, {"F16", FSDPRT_F16}, {"BF16", FSDPRT_BF16},
      {"I64", FSDPRT_I64}, {"I32", FSDPRT_I32}, {"I16", FSDPRT_I16}, {"I8", FSDPRT_I8},
      {"U8", FSDPRT_I8},   {"BOOL", FSDPRT_I1}};
  for (auto [text, type] : known)
    if (name == text) {
      dtype = type;
      return true;
    }
  return false;
}

static const char *safetensorsName(fsdprt_dtype dtype) {
  static const char *const names[] = {"F64", "F32", "F16", "BF16", "I64",
                                      "I32", "I16", "I8",  "BOOL"};
  return names[dtype];
}

/// Returns true if a parameter of type `to` can be imported from values of type `from`. This is
/// possible if both types are floating-point types, or if they are equal.
static bool isTaken(fsdprt_dtype from, fsdprt_dtype to) {
  return isFloat(static_cast<DType>(to)) ? isFloat(static_cast<DType>(from)) : from == to;
}

/// Divides the elements of a tensor into consecutive ranges, and calls each(first, count, data) for
/// each range. An element has a size of `width` bytes.
template <typename Each>
static void forParts(const SafetensorsFile &file, const Tensor &tensor, uint64_t width, Each each) {
  uint64_t elements = (tensor.end - tensor.begin) / width;
  std::vector<std::byte> part(std::min(elements, chunkElements) * width);
  for (uint64_t first = 0, count; first < elements; first += count) {
    count = std::min(elements - first, chunkElements);
    file.read(tensor, first * width, part.data(), count * width);
    each(first, count, part.data());
  }
}

static bool isBoolean(const SafetensorsFile &file, const Tensor &tensor) {
  bool all = true;
  forParts(file, tensor, 1, [&](uint64_t, uint64_t count, const std::byte *data) {
    all &= std::all_of(data, data + count,
                       [](std::byte b) { return b == std::byte{0} || b == std::byte{1}; });
  });
  return all;
}

static std::string shapeText(const std::vector<uint64_t> &shape) {
  std::string text;
  for (uint64_t dim : shape)
    text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text.empty() ? "a scalar" : text;
}

/// Returns a text such as "element 5 is nan" for the first of `count` elements that is not finite
/// after conversion to the type `to`. Returns an empty text if all elements are finite.
static std::string firstNotFinite(const std::byte *data, fsdprt_dtype from, fsdprt_dtype to,
                                  uint64_t count, uint64_t firstIndex = 0) {
  DType source = static_cast<DType>(from), target = static_cast<DType>(to);
  if (!isFloat(source))
    return "";
  for (uint64_t i = 0; i < count; ++i) {
    double value = loadElement(source, data + i * sizeOf(source));
    if (target != source && std::isfinite(value)) {
      std::byte stored[8];
      storeElement(target, value, stored);
      if (!std::isfinite(loadElement(target, stored)))
        return format("element %llu, %g, is too large for %s", (ull)(firstIndex + i), value,
                      nameOf(target));
    }
    if (!std::isfinite(value))
      return format("element %llu is %s", (ull)(firstIndex + i),
                    std::isnan(value) ? "nan"
                    : value < 0       ? "-inf"
                                      : "inf");
  }
  return "";
}

/// Returns the result of firstNotFinite() for all elements of a tensor in a file.
static std::string firstNotFinite(const SafetensorsFile &file, const Tensor &tensor,
                                  fsdprt_dtype from, fsdprt_dtype to) {
  std::string problem;
  forParts(file, tensor, safetensorsSize(tensor.dtype),
           [&](uint64_t first, uint64_t count, const std::byte *data) {
             if (problem.empty())
               problem = firstNotFinite(data, from, to, count, first);
           });
  return problem;
}

static bool isSame(const SafetensorsFile &file, const Tensor &tensor, const SafetensorsFile &other,
                   const Tensor &otherTensor) {
  bool same = true;
  std::vector<std::byte> beside(chunkElements);
  forParts(file, tensor, 1, [&](uint64_t first, uint64_t count, const std::byte *data) {
    other.read(otherTensor, first, beside.data(), count);
    same &= std::memcmp(data, beside.data(), count) == 0;
  });
  return same;
}

namespace {
struct Source {
  const SafetensorsFile *file;
  const Tensor *tensor;
  bool used = false;
};

/// Assigns the tensors in the files of --init to the parameters of an artifact.
class Import {
public:
  Import(const InitialWeights &weights, const fsdprt_artifact *artifact)
      : weights(weights), artifact(artifact) {}
  void list();
  void match();
  WeightSources load(fsdprt_session *session) const;

private:
  void addProblem(const std::string &problem) {
    if (problems++ < 10)
      report += "\n  " + problem;
  }
  void matchOne(const fsdprt_param_info &param);
  bool repeatsTiedEmbedding(const std::string &name, const Source &source) const;

  const InitialWeights &weights;
  const fsdprt_artifact *artifact;
  std::map<std::string, Source> sources;
  /// The tensor of each parameter, or null if the parameter keeps the values of the artifact.
  std::vector<const Source *> chosen;
  std::string report;
  uint64_t problems = 0;
};
} // namespace

void InitialWeights::open(const std::string &given) {
  path = given;
  std::vector<std::string> paths = {path};
  if (endsWith(path, ".json"))
    paths = readSafetensorsIndex(path);
  for (const std::string &name : paths)
    files.push_back(std::make_unique<SafetensorsFile>(name));
}

std::string InitialWeights::comparison() const {
  if (files.size() == 1)
    return files[0]->getFile().comparison();
  std::string all;
  for (const auto &file : files) {
    std::string name = file->getPath();
    all += name.substr(name.rfind('/') + 1) + ": " + file->getFile().comparison() + "\n";
  }
  return format("%zu files with hash ", files.size()) + sha256Text(all.data(), all.size());
}

void Import::list() {
  for (const auto &file : weights.getFiles())
    for (const auto &[tensorName, tensor] : file->getTensors())
      if (!sources.emplace(tensorName, Source{file.get(), &tensor}).second)
        badInput("%s: tensor '%s' is in another file too", file->getPath().c_str(),
                 printable(tensorName).c_str());
}

void Import::matchOne(const fsdprt_param_info &param) {
  std::string name = param.name;
  auto found = sources.find(name);
  if (found == sources.end()) {
    std::vector<std::map<std::string, Source>::iterator> candidates;
    for (auto at = sources.begin(); at != sources.end(); ++at)
      if (bareName(at->first) == bareName(name))
        candidates.push_back(at);
    if (candidates.size() == 1)
      found = candidates[0];
  }
  if (found == sources.end() && param.has_values)
    return chosen.push_back(nullptr);
  if (found == sources.end())
    return addProblem("missing: '" + printable(name) + "'");
  found->second.used = true;
  const Tensor &tensor = *found->second.tensor;
  std::vector<uint64_t> shape(param.shape, param.shape + param.rank);
  fsdprt_dtype dtype;
  if (tensor.shape != shape)
    addProblem("'" + printable(name) + "': expected shape " + shapeText(shape) + ", found " +
               shapeText(tensor.shape));
  else if (!dtypeOf(tensor.dtype, dtype) || !isTaken(dtype, param.dtype))
    addProblem("'" + printable(name) + "': expected " +
               (isFloat(static_cast<DType>(param.dtype)) ? "F64, F32, F16 or BF16"
                                                         : safetensorsName(param.dtype)) +
               ", found " + tensor.dtype);
  else if (param.dtype == FSDPRT_I1 && !isBoolean(*found->second.file, tensor))
    addProblem("'" + printable(name) + "': expected a byte of 0 or 1 for each boolean");
  else if (std::string problem = firstNotFinite(*found->second.file, tensor, dtype, param.dtype);
           !problem.empty())
    addProblem("'" + printable(name) + "': expected finite values; " + problem);
  chosen.push_back(&found->second);
}

/// Returns true if `source` is an output head that has the same values as a tied embedding. Some
/// checkpoints store such a head in addition to the embedding.
bool Import::repeatsTiedEmbedding(const std::string &name, const Source &source) const {
  if (!endsWith(name, "lm_head.weight"))
    return false;
  for (const Source *other : chosen)
    if (other && other->tensor->dtype == source.tensor->dtype &&
        other->tensor->shape == source.tensor->shape &&
        isSame(*other->file, *other->tensor, *source.file, *source.tensor))
      return true;
  return false;
}

void Import::match() {
  fsdprt_param_info param = {};
  for (uint64_t i = 0; param.struct_size = sizeof param,
                fsdprt_artifact_get_param(artifact, i, &param) == FSDPRT_OK;
       ++i)
    matchOne(param);
  for (const auto &[name, source] : sources)
    if (!source.used && !isKnownBuffer(name) && !repeatsTiedEmbedding(name, source))
      addProblem("not a parameter of the model: '" + printable(name) + "' (" +
                 shapeText(source.tensor->shape) + ")");
  if (problems > 10)
    report += format("\n  and %llu more", (ull)(problems - 10));
  if (problems)
    badInput("%s: the weights do not match the model:%s", weights.getPath().c_str(),
             report.c_str());
}

WeightSources Import::load(fsdprt_session *session) const {
  WeightSources sources;
  for (uint64_t i = 0; i < chosen.size(); ++i) {
    ++(chosen[i] ? sources.fromFile : sources.fromModel);
    if (!chosen[i])
      continue;
    fsdprt_dtype dtype = FSDPRT_F32;
    const Tensor &tensor = *chosen[i]->tensor;
    dtypeOf(tensor.dtype, dtype);
    forParts(*chosen[i]->file, tensor, safetensorsSize(tensor.dtype),
             [&](uint64_t first, uint64_t count, const std::byte *data) {
               call(fsdprt_session_write_param, session, i, FSDPRT_PARAMETER, first, count,
                    static_cast<const void *>(data), dtype);
             });
  }
  for (const auto &file : weights.getFiles())
    file->getFile().expectUnchanged(/*strictly=*/true);
  return sources;
}

WeightSources fsdprt::modelWeights(const fsdprt_artifact *artifact) {
  WeightSources sources;
  fsdprt_param_info param = {};
  for (uint64_t i = 0; param.struct_size = sizeof param,
                fsdprt_artifact_get_param(artifact, i, &param) == FSDPRT_OK;
       ++i)
    sources.fromModel += param.has_values != 0;
  return sources;
}

WeightSources fsdprt::importWeights(const InitialWeights &weights, const fsdprt_artifact *artifact,
                                    fsdprt_session *session) {
  Import import(weights, artifact);
  import.list();
  import.match();
  return import.load(session);
}

namespace {
struct Exported {
  uint64_t param;
  fsdprt_state_role role;
  fsdprt_dtype dtype;
  uint64_t elements;
};
} // namespace

void fsdprt::exportWeights(const std::string &path, const TrainingRun &run) {
  const fsdprt_artifact *artifact = run.artifact;
  const fsdprt_session *session = run.session.get();
  std::vector<SafetensorsWriter::Entry> entries;
  std::map<std::string, Exported> byName;
  fsdprt_param_info param = {};
  for (uint64_t i = 0; param.struct_size = sizeof param,
                fsdprt_artifact_get_param(artifact, i, &param) == FSDPRT_OK;
       ++i) {
    fsdprt_dtype dtype;
    fsdprt_state_role role = FSDPRT_MASTER;
    if (fsdprt_session_get_state(session, i, role, &dtype) != FSDPRT_OK) {
      role = FSDPRT_PARAMETER;
      if (fsdprt_session_get_state(session, i, role, &dtype) != FSDPRT_OK)
        badInput("%s: parameter '%s' has no state to export", path.c_str(), param.name);
    }
    entries.push_back(
        {param.name, safetensorsName(dtype), {param.shape, param.shape + param.rank}});
    byName[param.name] = {i, role, dtype, param.elements};
  }
  std::optional<SafetensorsWriter> writer;
  if (run.isRoot)
    writer.emplace(path, entries);
  else
    // All processes must use the same order of entries. The process of rank 0 writes the entries in
    // the order of the file, into which safetensorsHeader() sorts them.
    safetensorsHeader(entries, {});
  std::vector<std::byte> chunk(chunkElements * 8);
  uint64_t damaged = 0;
  std::string firstDamage;
  for (const SafetensorsWriter::Entry &entry : entries) {
    const Exported &what = byName.at(entry.name);
    std::string problem;
    for (uint64_t first = 0; first < what.elements; first += chunkElements) {
      uint64_t count = std::min(chunkElements, what.elements - first);
      size_t size = count * sizeOf(static_cast<DType>(what.dtype));
      call(fsdprt_session_read_param, session, 0u, what.param, what.role, first, count,
           static_cast<void *>(chunk.data()), size);
      if (!run.isRoot)
        continue;
      writer->write(chunk.data(), size);
      if (problem.empty())
        problem = firstNotFinite(chunk.data(), what.dtype, what.dtype, count, first);
    }
    if (!problem.empty() && damaged++ == 0)
      firstDamage = "'" + printable(entry.name) + "', " + problem;
  }
  if (writer)
    writer->commit();
  if (damaged)
    run.reporter.warning("%s: %llu of %zu parameters are not finite, the first: %s", path.c_str(),
                         (ull)damaged, entries.size(), firstDamage.c_str());
}
