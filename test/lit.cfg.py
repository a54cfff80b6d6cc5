import ctypes
import os
import shutil
import subprocess
import sys

import lit.formats

config.name = "fsdp"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
# lit begins with the longest tests. Before the first run it reads their seconds from .lit_test_times.txt in this folder.
config.test_exec_root = os.path.join(config.fsdp_obj_root, "test")
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.fsdp_obj_root, "bin"), config.llvm_tools_dir, config.environment["PATH"]]
)
config.environment["FSDP_SOURCE"] = config.fsdp_src_root
# Tests compile the same kernels repeatedly. Tests of compilation itself do not use the cache.
config.environment["FSDP_KERNEL_CACHE"] = os.path.join(config.test_exec_root, "kernel-cache")
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%S_ROOT", config.fsdp_src_root))
config.substitutions.append(("%tools", os.path.join(config.fsdp_obj_root, "bin")))
config.substitutions.append(("%lib", os.path.join(config.fsdp_obj_root, "lib")))

# IR of third-party models, which is not in the repository. Tests that need it are skipped without it.
models = os.environ.get("FSDP_MODELS", os.path.join(config.fsdp_src_root, "..", "shared", "models"))
if os.path.isdir(models):
    config.available_features.add("third-party-models")
    config.substitutions.append(("%models", os.path.abspath(models)))
# mpi: ranks started by mpirun; network-namespaces: hosts emulated by namespaces, which needs root.
if shutil.which("mpirun") and os.path.exists(os.path.join(config.fsdp_obj_root, "lib", "fsdprt_mpi.so")):
    config.available_features.add("mpi")
probe = ["unshare", "-n", "-u", "true"]
if shutil.which("ip") and shutil.which("tc") and subprocess.call(probe, stderr=subprocess.DEVNULL) == 0:
    config.available_features.add("network-namespaces")
# %cpu: this machine without AMX, whose products of bf16 have an arithmetic of their own; %amx: this machine, or the same
# arithmetic as loops where it has no AMX.
flags = open("/proc/cpuinfo").read() if os.path.exists("/proc/cpuinfo") else ""
arch_prctl, request_permission, tile_data = 158, 0x1023, 18
amx = "amx_bf16" in flags and ctypes.CDLL(None).syscall(arch_prctl, request_permission, tile_data) == 0
if "avx512_bf16" in flags: # Without it LLVM calls a library function for conversions to bf16, which kernels do not have.
    config.available_features.add("avx512bf16")
config.substitutions.append(("%cpu", "x86-64-v4" if amx else "native"))
config.substitutions.append(("%amx", "native" if amx else "amx-loops"))
if not amx:
    config.available_features.add("no-amx")
if subprocess.call([sys.executable, "-c", "import numpy"], stderr=subprocess.DEVNULL) == 0:
    config.available_features.add("numpy")
# NVIDIA's assembler: ptxas-13.0.88, the version of the register tables; ptxas-sm_100a if it supports that chip.
for ptxas in filter(None, [shutil.which("ptxas"), shutil.which("ptxas", path="/usr/local/cuda/bin")]):
    version = subprocess.run([ptxas, "--version"], capture_output=True, text=True).stdout
    config.available_features.update("ptxas-" + v[1:] for v in version.split() if v.startswith("V"))
    if "sm_100a" in subprocess.run([ptxas, "--help"], capture_output=True, text=True).stdout:
        config.available_features.add("ptxas-sm_100a")
if not os.path.exists("/usr/local/cuda/bin/ptxas"):
    config.available_features.add("no-cuda")
# %no-spills: an option of fsdp-kernel-test that assembles emulated kernels and fails if registers spill. It is empty for other versions of ptxas,
# which may allocate registers differently.
hasPtxas = "ptxas-13.0.88" in config.available_features
config.substitutions.append(("%no-spills", "--spills=error" if hasPtxas else ""))
# Sanitizers write each report to a file, because `not` takes their exit code for the failure that a test expects.
# scripts/test fails when there is a report. LLVM is not instrumented: its inlined allocators would poison memory that
# the library's code does not unpoison. Leaks are not reported, because the tools end without freeing the IR.
if config.fsdp_sanitize:
    config.available_features.add("sanitizers")
    reports = os.path.join(config.test_exec_root, "sanitizer-reports")
    os.makedirs(reports, exist_ok=True)
    common = "log_exe_name=1:log_path=" + os.path.join(reports, "report")
    config.environment["ASAN_OPTIONS"] = "allow_user_poisoning=0:detect_leaks=0:" + common
    config.environment["UBSAN_OPTIONS"] = "print_stacktrace=1:" + common
# Integration tests that take more than a few seconds: scripts/test runs them, ninja check-fsdp does not.
if lit_config.params.get("long") or lit_config.params.get("all"):
    config.available_features.add("long")
if lit_config.params.get("all"):
    config.available_features.add("all")
