"""Checks that fsdp-ckpt and torch.distributed.checkpoint read the checkpoints that the other
program has written."""

import os
import subprocess
import sys

import pytest

from fsdp_mlir import checkpoint
from fsdp_mlir.checkpoint import torch_files
from test_checkpoint import content, run


@pytest.fixture
def dcp():
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available():
        pytest.skip("this torch has no distributed package")
    return pytest.importorskip("torch.distributed.checkpoint")


def torch_values():
    import torch

    torch.manual_seed(1)
    values = {"w": torch.randn(5, 3), "t": torch.randn(4, 6).t(), "b": torch.randn(7).bfloat16(),
              "h": torch.randn(2, 2).half(), "n": torch.arange(5), "s": torch.tensor(2.5),
              "d": torch.randn(3).double(), "m": torch.tensor([True, False]),
              "e": torch.zeros(0, 3), "part": torch.arange(20.)[3:9:2],
              "u": torch.arange(4).to(torch.uint16), "p": torch.nn.Parameter(torch.randn(3))}
    return values | {"f8": torch.randn(6).to(torch.float8_e4m3fn)}


def raw(tensor):
    import torch

    tensor = tensor.detach().contiguous()
    return tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


@pytest.mark.filterwarnings("ignore")
def test_reads_what_torch_writes(tmp_path, dcp, capsys):
    values = torch_values()
    dcp.save({"model": values, "step": 3}, checkpoint_id=tmp_path / "dcp")
    found = content(tmp_path / "dcp")
    assert set(found) == {f"model.{name}" for name in values}
    for name, value in values.items():
        dtype, shape, data = found[f"model.{name}"]
        assert torch_files.TORCH_NAMES[dtype] == str(value.dtype)[6:]
        assert shape == tuple(value.shape) and data == raw(value), name
    code, text = run(capsys, "inspect", tmp_path / "dcp")
    assert "no tensor, left out by convert: step" in text
    for path in (tmp_path / "dcp").glob("*.distcp"):
        data = path.read_bytes()
        place = data.index(raw(values["w"]))
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1:])
    code, text = run(capsys, "verify", tmp_path / "dcp")
    assert code == 1 and "tensor 'model.w'" in text and "CRC-32" in text
    assert run(capsys, "convert", tmp_path / "dcp", tmp_path / "x")[0] == 1


@pytest.mark.filterwarnings("ignore")
def test_torch_reads_what_is_written(tmp_path, dcp):
    import torch

    values = torch_values()
    dcp.save(values, checkpoint_id=tmp_path / "0")
    checkpoint.convert(tmp_path / "0", tmp_path / "x.safetensors")
    checkpoint.convert(tmp_path / "x.safetensors", tmp_path / "1", to="dcp", max_shard_bytes=64)
    assert len(list((tmp_path / "1").glob("*.distcp"))) > 2
    found = {name: torch.zeros_like(value).detach() for name, value in values.items()}
    dcp.load(found, checkpoint_id=tmp_path / "1")
    for name, value in values.items():
        assert found[name].dtype == value.dtype and raw(found[name]) == raw(value), name
    from torch.distributed.checkpoint import format_utils

    format_utils.dcp_to_torch_save(tmp_path / "1", tmp_path / "x.pt")
    found = torch.load(tmp_path / "x.pt", weights_only=True)
    assert list(found) and all(raw(found[name]) == raw(value) for name, value in values.items())


_RANKS = """
import os, sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.tensor import DTensor, Shard, Replicate, distribute_tensor, init_device_mesh
rank = int(sys.argv[2])
dist.init_process_group("gloo", rank=rank, world_size=2, init_method=f"file://{sys.argv[1]}/store")
mesh = init_device_mesh("cpu", (2,))
torch.manual_seed(1)
values = {"rows": torch.randn(7, 3), "columns": torch.randn(4, 5), "all": torch.randn(6)}
places = {"rows": Shard(0), "columns": Shard(1), "all": Replicate()}
dcp.save({n: distribute_tensor(v, mesh, [places[n]]) for n, v in values.items()},
         checkpoint_id=sys.argv[1] + "/dcp")
if rank == 0:
    torch.save(values, sys.argv[1] + "/values.pt")
dist.barrier()
"""


def test_shards_of_two_ranks(tmp_path, dcp, capsys):
    import torch

    ranks = [subprocess.Popen([sys.executable, "-W", "ignore", "-c", _RANKS, tmp_path, str(rank)])
             for rank in range(2)]
    assert [rank.wait(120) for rank in ranks] == [0, 0]
    values = torch.load(tmp_path / "values.pt")
    found = content(tmp_path / "dcp")
    assert {name: data[2] for name, data in found.items()} == \
        {name: raw(value) for name, value in values.items()}
    assert found["rows"][1] == (7, 3) and found["columns"][1] == (4, 5)
    os.remove(tmp_path / "dcp" / "__1_0.distcp")
    code, text = run(capsys, "verify", tmp_path / "dcp")
    assert code == 1 and "__1_0.distcp" in text and "No such file" in text
