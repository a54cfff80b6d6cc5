# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``pip install ./python`` in a fresh virtual environment, with and without the toolchain."""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from fsdp_mlir import tools

SOURCE = pathlib.Path(__file__).resolve().parents[1]
MLIR = pathlib.Path("/usr/lib/llvm-22/lib/cmake/mlir/MLIRConfig.cmake")
pytestmark = [pytest.mark.long,
              pytest.mark.skipif(not (SOURCE / "native").exists(), reason="the sources are not here")]
NO_INDEX = ("Could not find a version that satisfies", "Failed to establish a new connection")
# This program finds the tools, compiles a model and trains it. The program prints the folder of the tools and two
# losses.
PROGRAM = """
import pathlib, subprocess, sys, tempfile
import numpy as np
import fsdp_mlir as fm
from fsdp_mlir import tools

print(pathlib.Path(tools.find_tool("fsdp-compile")).parents[1])
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "gpt.mlir"
    subprocess.run([tools.find_tool("fsdp-modelgen"), "gpt2", "--layers=1", "--hidden=16",
                    "--heads=2", "--vocab=32", "--seq=8", "--batch=2", "-o", path], check=True)
    step = fm.compile(fm.Model.load(path), mesh="shard=2", optimizer=fm.AdamW(lr=1e-2))
    batch = np.arange(32).reshape(4, 8), np.arange(1, 33).reshape(4, 8) % 32
    with step.train(ranks=2) as run:
        print(run.step(batch).loss, run.step(batch).loss)
"""


class Environment:
    """A virtual environment that sees the system's packages but no variables of this project."""

    def __init__(self, folder):
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", folder], check=True)
        # NumPy of the running interpreter, which may belong to another virtual environment.
        site, = (folder / "lib").glob("python*/site-packages")
        (site / "numpy.pth").write_text(str(pathlib.Path(np.__file__).parents[1]))
        hidden = ("PYTHONPATH", "CC", "CXX", "CMAKE_ARGS")
        self.variables = {name: value for name, value in os.environ.items()
                          if not name.startswith("FSDP_") and name not in hidden}

    def run(self, *words, **variables):
        return subprocess.run([self.folder / "bin/python", *words], cwd=self.folder, text=True,
                              env={**self.variables, **variables}, capture_output=True)

    def install(self, *options, **variables):
        """Installs the package. Skips the test if pip cannot connect to a package index."""
        done = self.run("-m", "pip", "install", "--no-deps", SOURCE, *options,
                        CMAKE_BUILD_PARALLEL_LEVEL="2", **variables)
        if done.returncode and any(text in done.stdout + done.stderr for text in NO_INDEX):
            pytest.skip("pip finds no scikit-build-core: no access to a package index")
        return done

    def package(self):
        done = self.run("-c", "import fsdp_mlir; print(fsdp_mlir.__path__[0])")
        assert done.returncode == 0, done.stderr
        found = pathlib.Path(done.stdout.strip())
        assert self.folder in found.parents, "the package of the environment"
        return found


@pytest.fixture
def environment(tmp_path):
    return Environment(tmp_path / "venv")


def check_training(environment, home, **variables):
    """Checks that the package uses the tools of ``home``, and that the loss of a model falls."""
    done = environment.run("-c", PROGRAM, **variables)
    assert done.returncode == 0, done.stderr
    where, losses = done.stdout.splitlines()[-2:]
    assert pathlib.Path(where).resolve() == home.resolve()
    first, second = map(float, losses.split())
    assert second < first


@pytest.mark.skipif(not (MLIR.exists() and shutil.which("flatc") and shutil.which("cmake")),
                    reason="needs the toolchain: MLIR 22, flatc and CMake")
def test_the_tools_are_built_into_the_package(environment):
    build = environment.folder / "build"
    done = environment.install(f"--config-settings=build-dir={build}", FSDP_MLIR_NATIVE="1")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    check_training(environment, environment.package() / "native")
    clang = shutil.which("clang++-22")
    assert not clang or f"={clang}\n" in (build / "CMakeCache.txt").read_text(), "the compiler"


def test_without_a_compiler_the_package_is_python(environment):
    """Checks that the package is installed even if the tools cannot be built. The package then finds tools
    elsewhere."""
    done = environment.install(CC="/nonexistent/cc", CXX="/nonexistent/c++")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert not (environment.package() / "native").exists()
    missing = environment.run("-c", PROGRAM, PATH="/usr/bin:/bin")
    assert missing.returncode == 1 and "FSDP_MLIR_HOME" in missing.stderr
    home = pathlib.Path(tools.find_tool("fsdp-compile")).parents[1]
    check_training(environment, home, FSDP_MLIR_HOME=str(home))


def test_a_failed_build_is_an_error_on_request(environment):
    done = environment.install(CC="/nonexistent/cc", CXX="/nonexistent/c++", FSDP_MLIR_NATIVE="1")
    assert done.returncode == 1 and "CMake configuration failed" in done.stdout + done.stderr


def test_no_build_on_request(environment):
    done = environment.install(FSDP_MLIR_NATIVE="0")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert not (environment.package() / "native").exists()
