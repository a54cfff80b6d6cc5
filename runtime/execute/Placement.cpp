//===- Placement.cpp - Devices and backends of a session -------*- C++ -*-===//
// Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for licence information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "execute/Placement.h"
#include "artifact/CpuFeatures.h"
#include "collectives/local/Local.h"
#include "collectives/local/LocalCuda.h"
#include "collectives/mpi/Mpi.h"
#include "collectives/nccl/Nccl.h"
#include "collectives/shm/Shm.h"
#include "core/Agreement.h"
#include "core/Error.h"
#include "device/DeviceFactory.h"
#include "device/cuda/LibraryGemm.h"
#include <algorithm>
#include <cstring>

using namespace fsdprt;
using ull = unsigned long long;

static bool isBackend(const fsdprt_session_options &options, const char *name) {
  return std::strcmp(options.backend ? options.backend : "local", name) == 0;
}

/// Returns the name of the backend that connects the ranks. If `options` select the backend nccl,
/// NCCL only runs collectives, and another backend connects the ranks.
static const char *controlOf(const fsdprt_session_options &options) {
  if (isBackend(options, "nccl"))
    return options.control ? options.control : "local";
  return options.backend ? options.backend : "local";
}

bool fsdprt::isControl(const fsdprt_session_options &options, const char *name) {
  return std::strcmp(controlOf(options), name) == 0;
}

static void checkBackend(const fsdprt_session_options &options) {
  const char *const known[] = {"local", "shm", "mpi"};
  auto isKnown = [&](auto is) {
    return std::any_of(std::begin(known), std::end(known),
                       [&](const char *name) { return is(options, name); });
  };
  if (!isKnown(isBackend) && !isBackend(options, "nccl"))
    badInput("expected collectives 'local' (ranks are threads of one process), 'shm' (one process "
             "per rank), 'mpi' (processes started by mpirun) or 'nccl' (any of these, with "
             "collectives over NCCL), found '%s'",
             printable(options.backend).c_str());
  if (!isKnown(isControl))
    badInput("expected 'local', 'shm' or 'mpi' to connect ranks for NCCL, found '%s'",
             printable(controlOf(options)).c_str());
}

bool fsdprt::isDevice(const fsdprt_session_options &options, const char *name) {
  return std::strcmp(options.device ? options.device : "cpu", name) == 0;
}

/// Throws Error if `options` require a GEMM backend that the artifact does not use.
static void checkLibraryGemm(const Artifact &artifact, const fsdprt_session_options &options) {
  const char *file = artifact.getFile().c_str();
  std::string wanted = options.gemm ? options.gemm : "auto";
  if (wanted != "nvptx" && wanted != "cublaslt" && wanted != "auto")
    badInput("gemm: expected 'nvptx', 'cublaslt' or 'auto', found '%s'", printable(wanted).c_str());
  bool areProducts = hasProducts(artifact.manifest());
  if (areProducts && isDevice(options, "emulate"))
    badInput("%s: has matrix products of cuBLASLt, which is not emulated; compile with "
             "--gemm=nvptx",
             file);
  if (areProducts && wanted == "nvptx")
    badInput("%s: expected generated kernels only, for --gemm=nvptx, found matrix products of "
             "cuBLASLt; compile with --gemm=nvptx",
             file);
  if (!areProducts && wanted == "cublaslt")
    badInput("%s: expected a matrix product of cuBLASLt, for --gemm=cublaslt, found none; "
             "compile with --gemm=cublaslt",
             file);
}

void fsdprt::checkPlace(const Artifact &artifact, const fsdprt_session_options &options) {
  const char *file = artifact.getFile().c_str();
  if (!artifact.hasCode())
    badInput("%s: expected the kernels' code, found none: it was compiled with --no-code, for "
             "--simulate, --dump and --device=null",
             file);
  bool emulates = isDevice(options, "emulate"), isGpu = emulates || isDevice(options, "cuda");
  if (!isGpu && !isDevice(options, "cpu"))
    badInput("expected device 'cpu', 'cuda' or 'emulate', found '%s'",
             printable(options.device).c_str());
  const fb::Gpu *gpu = artifact.gpu();
  if (gpu && !isGpu)
    badInput("%s: compiled for %s, a GPU, asked to run on the CPU; run with --device=cuda or "
             "--device=emulate, or compile with --target=cpu",
             file, printable(gpu->chip()->str()).c_str());
  if (!gpu && isGpu)
    badInput("%s: compiled for the CPU, asked to run on an %s GPU; compile with --target=sm_80 or "
             "later, or run with --device=cpu",
             file, emulates ? "emulated" : "NVIDIA");
  if (emulates && !hasEmulatedDevices())
    badInput("%s: this program contains no GPU emulator; run with --device=cuda", file);
  checkLibraryGemm(artifact, options);
  if (isDevice(options, "cuda") && !isControl(options, "local") && !isBackend(options, "nccl"))
    badInput("%s: ranks on GPUs are threads of one process, or processes over NCCL: expected "
             "--backend=local or nccl, found '%s'",
             file, printable(controlOf(options)).c_str());
  checkBackend(options);
  if (options.cuda_graph && (!isDevice(options, "cuda") || options.profile || options.trace_runs))
    badInput(
        "a CUDA graph needs device 'cuda', and its commands cannot be observed one by one: use "
        "neither profile nor trace");
  uint64_t ranks = artifact.getMesh().ranks();
  if (options.ranks != 0 && options.ranks != ranks)
    badInput("%s: compiled for %llu rank%s (mesh %s), asked to run on %llu; run with --ranks=%llu "
             "or compile with another --mesh",
             file, (ull)ranks, ranks == 1 ? "" : "s", artifact.getMesh().text().c_str(),
             (ull)options.ranks, (ull)ranks);
}

/// Returns the agreement (core/Agreement.h): the values that must be equal in all processes.
/// Processes compare their agreements when they connect, before they allocate memory.
static std::string agreementOf(const Artifact &artifact, const fsdprt_session_options &options) {
  Agreement agreement;
  std::string hash, features;
  for (uint8_t byte : artifact.getHeader().sha256)
    hash += format("%02x", byte);
  for (const char *name :
       {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "amx_bf16"})
    if (cpuFeature(name) == Feature::present)
      features += std::string(features.empty() ? "" : " ") + name;
  agreement.add("the runtime's version", fsdprt_version());
  agreement.add("the runtime's interface",
                format("%u.%u", fsdprt_abi_version() >> 16, fsdprt_abi_version() & 0xffff));
  agreement.add("the mesh", artifact.getMesh().text());
  agreement.add("the artifact's SHA-256", hash);
  agreement.add("the list of processor features", features);
  agreement.add("the seed", std::to_string(options.seed));
  // options.agreement contains the lines that the caller adds. The number of runs to trace must be
  // equal on all ranks, because it determines the size of the exchanged records.
  Agreement exchanged;
  exchanged.add("the number of runs to trace", std::to_string(options.trace_runs));
  return agreement.text() + (options.agreement ? options.agreement : "") + exchanged.text();
}

static std::unique_ptr<Communicator> makeControl(const Artifact &artifact,
                                                 const fsdprt_session_options &options,
                                                 double timeoutSeconds, uint32_t spins) {
  const Mesh &mesh = artifact.getMesh();
  if (isControl(options, "local") && isDevice(options, "cuda") && !isBackend(options, "nccl"))
    return std::make_unique<LocalCuda>(mesh, timeoutSeconds, spins);
  if (isControl(options, "local"))
    return std::make_unique<LocalCommunicator>(mesh, timeoutSeconds, spins);
  if (options.rank >= mesh.ranks())
    badInput("expected a rank below %llu, found %u", (ull)mesh.ranks(), options.rank);
  if (isControl(options, "mpi"))
    return std::make_unique<MpiCommunicator>(
        mesh, options.rank, options.own_sums ? MpiReduce::library : MpiReduce::ordered,
        agreementOf(artifact, options), timeoutSeconds,
        options.meeting_seconds > 0 ? options.meeting_seconds : 60,
        options.heartbeat_seconds > 0 ? options.heartbeat_seconds : 3);
  return std::make_unique<ShmCommunicator>(mesh, options.rank, options.channel,
                                           agreementOf(artifact, options), timeoutSeconds, spins);
}

/// Reads what `options` ask of NCCL. Throws Error.
static NcclSettings ncclSettingsOf(const fsdprt_session_options &options) {
  NcclSettings settings;
  std::string windows = options.nccl_windows ? options.nccl_windows : "auto",
              policy = options.nccl_cta_policy ? options.nccl_cta_policy : "default";
  using Windows = NcclSettings::Windows;
  if (windows != "auto" && windows != "on" && windows != "off")
    badInput("windows of NCCL: expected 'auto', 'on' or 'off', found '%s'",
             printable(windows).c_str());
  settings.windows = windows == "on"    ? Windows::on
                     : windows == "off" ? Windows::off
                                        : Windows::automatic;
  if (policy != "default" && policy != "efficiency" && policy != "zero")
    badInput("CTA policy of NCCL: expected 'default', 'efficiency' or 'zero', found '%s'",
             printable(policy).c_str());
  if (policy != "default")
    settings.ctaPolicy = policy == "zero" ? ncclPolicyZero : ncclPolicyEfficiency;
  if (options.nccl_max_ctas > NcclSettings::mostCTAs)
    badInput("expected at most %d multiprocessors for a collective of NCCL, found %u",
             NcclSettings::mostCTAs, options.nccl_max_ctas);
  if (options.nccl_max_ctas)
    settings.maxCTAs = static_cast<int>(options.nccl_max_ctas);
  return settings;
}

std::unique_ptr<Communicator> fsdprt::makeCommunicator(const Artifact &artifact,
                                                       const fsdprt_session_options &options,
                                                       double timeoutSeconds,
                                                       uint32_t threadsPerRank) {
  uint32_t spins = spinsFor(static_cast<uint32_t>(artifact.getMesh().ranks()) * threadsPerRank);
  std::unique_ptr<Communicator> control = makeControl(artifact, options, timeoutSeconds, spins);
  if (!isBackend(options, "nccl"))
    return control;
  std::optional<uint32_t> localRank;
  if (options.local_rank)
    localRank = options.local_rank - 1;
  return std::make_unique<NcclCommunicator>(std::move(control), spins, localRank,
                                            isDevice(options, "cuda"), ncclSettingsOf(options));
}

std::unique_ptr<Communicator> fsdprt::makeSoloCommunicator(const Artifact &artifact,
                                                           const fsdprt_session_options &options,
                                                           std::unique_ptr<Watchdog> watchdog,
                                                           uint32_t threads) {
  Mesh mesh = artifact.getMesh().solo();
  if (isDevice(options, "cuda"))
    return std::make_unique<LocalCuda>(mesh, std::move(watchdog), spinsFor(threads));
  return std::make_unique<LocalCommunicator>(mesh, std::move(watchdog), spinsFor(threads));
}
