"""Shared fixtures: a small model of fsdp-modelgen, compiled for one and two ranks."""

import subprocess

import numpy as np
import pytest

import fsdp_mlir as fm
from fsdp_mlir import tools

LONG = "a long test; scripts/test --all, or pytest --long, runs it"
SHAPE = ["--layers=2", "--hidden=32", "--heads=2", "--vocab=64", "--seq=16", "--batch=2"]


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="also run tests that take minutes")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes minutes; runs with --long")


def pytest_collection_modifyitems(config, items):
    for item in items:
        if "long" in item.keywords and not config.getoption("--long"):
            item.add_marker(pytest.mark.skip(reason=LONG))


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "gpt.mlir"
    subprocess.run([tools.find_tool("fsdp-modelgen"), "gpt2", *SHAPE, "-o", path], check=True)
    return fm.Model.load(path)


@pytest.fixture(scope="session")
def step(model):
    return fm.compile(model, mesh="shard=2", optimizer=fm.AdamW(lr=1e-3))


@pytest.fixture(scope="session")
def single(model):
    return fm.compile(model, optimizer=fm.AdamW(lr=1e-3))


@pytest.fixture
def batches():
    """Returns a function that makes batches of tokens and targets for a number of ranks. Calls with
    the same arguments return equal batches."""

    def make(ranks, steps=4):
        random = np.random.default_rng(7)
        text = random.integers(0, 64, (steps, ranks * 2, 17))
        return [(one[:, :-1].copy(), one[:, 1:].copy()) for one in text]

    return make
