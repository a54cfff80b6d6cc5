"""Tests .safetensors files and the conversion of arrays."""

import json

import numpy as np
import pytest

from fsdp_mlir import arrays, safetensors


def test_round_trip(tmp_path):
    values = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array(7, np.int64),
              "c": arrays.as_bf16(np.array([0x3f80, 0xc000], np.uint16)),
              "empty": np.zeros((0, 4), np.float16)}
    safetensors.write(tmp_path / "x.safetensors", values, {"format": "pt"})
    found = safetensors.read(tmp_path / "x.safetensors")
    assert list(found) == list(values)
    for name, value in values.items():
        assert found[name].dtype == value.dtype and found[name].shape == value.shape
        assert np.array_equal(found[name], value)
    assert isinstance(found["c"], arrays.Bf16)
    assert list(arrays.bf16_to_f32(found["c"])) == [1.0, -2.0]


def test_sharded_index(tmp_path):
    safetensors.write(tmp_path / "1.safetensors", {"a": np.ones(3, np.float32)})
    safetensors.write(tmp_path / "2.safetensors", {"b": np.zeros(2, np.float32)})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}))
    assert sorted(safetensors.read(index)) == ["a", "b"]
    index.write_text(json.dumps({"weight_map": {"c": "1.safetensors"}}))
    with pytest.raises(safetensors.FileError, match="tensor 'c' is in none of its files"):
        safetensors.read(index)
    index.write_text(json.dumps({"weight_map": {"c": "../1.safetensors"}}))
    with pytest.raises(safetensors.FileError, match="expected names of files beside it"):
        safetensors.read(index)


@pytest.mark.parametrize("damage", [
    lambda b: b[:4], lambda b: b[:30], lambda b: b"\xff" * 8 + b[8:], lambda b: b[:8] + b"[" + b[9:],
    lambda b: b.replace(b"[0,12]", b"[0,99]"), lambda b: b.replace(b"F32", b"F99"), lambda b: b""])
def test_damaged_files_are_refused(tmp_path, damage):
    path = tmp_path / "x.safetensors"
    safetensors.write(path, {"a": np.ones(3, np.float32)})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(safetensors.FileError, match="x.safetensors"):
        safetensors.read(path)
