"""Tests runs on meshes with the axes tensor and context through the runtime's C interface."""

import ctypes
import subprocess

import numpy as np
import pytest

import fsdp_mlir as fm
from fsdp_mlir import tools
from fsdp_mlir.checkpoint.formats import open_checkpoint

SHAPE = ["--layers=1", "--hidden=32", "--heads=2", "--vocab=64", "--seq=8", "--batch=2"]
OPTIONS = {"optimizer": fm.SGD(lr=0.1, momentum=0.9)}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("tensor") / "model.mlir"
    subprocess.run([tools.find_tool("fsdp-modelgen"), "gpt2", *SHAPE, "-o", path], check=True,
                   capture_output=True)
    return path


@pytest.fixture(scope="module", params=["tensor", "context"])
def split(request, source):
    return fm.compile(source, mesh={"shard": 2, request.param: 2}, **OPTIONS)


def make_batch(ranks):
    tokens = np.random.default_rng(1).integers(0, 64, (2 * ranks, 9))
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def test_ranks_of_the_axis_read_the_same_examples(source, split):
    """A batch has the examples of the axis shard. Losses and weights are those of that axis alone."""
    assert split.ranks == 4 and split.tokens_per_step == 32
    other = fm.compile(source, mesh="shard=2", **OPTIONS)
    batch = make_batch(2)
    with split.train() as run, other.train() as reference:
        for _ in range(3):
            a, b = run.step(batch, lr=0.1), reference.step(batch, lr=0.1)
            assert a.loss == pytest.approx(b.loss, rel=2e-6)
            assert a.grad_norm == pytest.approx(b.grad_norm, rel=2e-6)
            assert a.tokens == b.tokens
        expected = dict(reference.parameters())
        for name, value in run.parameters():
            difference = np.linalg.norm(value - expected[name])
            assert difference <= 2e-6 * np.linalg.norm(expected[name]), name
        assert run.evaluate(batch) == pytest.approx(reference.evaluate(batch), rel=2e-6)


class StateMemory(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("data", ctypes.c_void_p),
                ("dtype", ctypes.c_int32), ("first", ctypes.c_uint64),
                ("elements", ctypes.c_uint64)]


def read_states(run, rank):
    """Returns the bits of all states of a rank, which are f32."""
    get_memory = ctypes.CDLL(str(tools.find_library())).fsdprt_session_get_memory
    states = []
    for index in range(100):
        memory = StateMemory(ctypes.sizeof(StateMemory))
        if get_memory(run._session, ctypes.c_uint32(rank), ctypes.c_uint64(index),
                      ctypes.byref(memory), None):
            break
        states.append(ctypes.string_at(memory.data, 4 * memory.elements))
    return states


def test_whole_parameters_stay_equal(source):
    """States of whole parameters have equal bits on all ranks of the axis after a few steps."""
    split = fm.compile(source, mesh={"shard": 2, "tensor": 2}, **OPTIONS)
    with split.train() as run:
        for _ in range(3):
            run.step(make_batch(2), lr=0.1)
        states = [read_states(run, rank) for rank in range(4)]
    same = [a == b for a, b in zip(states[0], states[1])]
    assert same == [a == b for a, b in zip(states[2], states[3])]
    # Parameters and momentum of the units @root, @root.tensor, @h.0 and @h.0.tensor. The units
    # @root.tensor (the rows of the vocabulary) and @h.0.tensor have slices.
    assert sorted(same) == [False] * 4 + [True] * 4
    assert states[0] != states[2]


def test_weights_move_between_meshes(source, split):
    with split.train(seed=5) as run:
        weights = dict(run.parameters())
    with fm.compile(source, **OPTIONS).train(seed=5) as run:
        for name, value in run.parameters():
            assert np.array_equal(value, weights[name]), name
        changed = {name: value + 1 for name, value in weights.items()}
        run.load_state_dict(changed)
    with split.train(weights=changed) as run:
        for name, value in run.parameters():
            assert np.array_equal(value, changed[name]), name


def test_saves_move_between_meshes(source, split, tmp_path):
    """A save of the axis is what export writes, and another mesh resumes it with its momentum."""
    with split.train() as run:
        for _ in range(2):
            run.step(make_batch(2), lr=0.1)
        run.save(tmp_path / "saves")
        expected = dict(run.parameters())
        loss = run.step(make_batch(2), lr=0.1).loss
    saved = open_checkpoint(tmp_path / "saves")
    for name, value in expected.items():
        data = b"".join(bytes(piece) for piece in saved.pieces(name))
        assert data == np.ascontiguousarray(value).tobytes(), name
    with fm.compile(source, mesh="shard=2", **OPTIONS).train(resume=tmp_path / "saves") as run:
        for name, value in run.parameters():
            assert np.array_equal(value, expected[name]), name
        assert run.step(make_batch(2), lr=0.1).loss == pytest.approx(loss, rel=2e-6)
        assert run.steps == 3
