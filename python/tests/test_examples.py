# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the programs of examples/, whose losses must fall. Each takes less than two minutes."""

import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
LIMIT_SECONDS = 120
PROGRAMS = {"torch_finetune.py": ("torch", "transformers", "iree.compiler"), "jax_train.py": ("jax",)}


def test_all_programs_are_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PROGRAMS)


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_learns(name):
    for package in PROGRAMS[name]:
        pytest.importorskip(package)
    done = subprocess.run([sys.executable, EXAMPLES / name, "--steps=100"], capture_output=True,
                          text=True, timeout=LIMIT_SECONDS)
    assert done.returncode == 0, done.stderr[-2000:]
    losses = [float(found) for found in re.findall(r"^step +\d+  loss ([\d.]+)", done.stdout, re.M)]
    assert len(losses) == 5, "of steps 1, 25, 50, 75 and 100"
    assert 5.3 < losses[0] < 5.8, "a model that knows nothing of 256 bytes has a loss of ln 256 = 5.55"
    assert losses[-1] < 3.5, losses
    if name == "jax_train.py":
        own = float(re.search(r"^loss of the tree in JAX: ([\d.]+)", done.stdout, re.M)[1])
        assert own == pytest.approx(losses[-1], abs=1.0), "the weights came back"
    else:
        assert "The compiler " in done.stdout.splitlines()[-1]
