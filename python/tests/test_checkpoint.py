"""Tests fsdp-ckpt: formats, conversions and damaged files."""

import json
import os
import pickle
import random
import shutil
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from fsdp_mlir import checkpoint, safetensors
from fsdp_mlir.arrays import as_bf16
from fsdp_mlir.checkpoint import tensors
from fsdp_mlir.checkpoint.tensors import Entry, convert_piece


def content(path):
    """Returns {name: (type, shape, bytes)} for the tensors of a checkpoint."""
    source = checkpoint.open_checkpoint(path)
    assert list(source.problems()) == [] and list(source.warnings()) == []
    return {name: (e.dtype, e.shape, b"".join(p.tobytes() for p in source.pieces(name)))
            for name, e in source.entries.items()}


def run(capsys, *arguments):
    """Returns the exit code and the output of fsdp-ckpt."""
    try:
        code = checkpoint.main([str(a) for a in arguments])
    except SystemExit as error:
        code = error.code
    out = capsys.readouterr()
    return code, out.out + out.err


@pytest.fixture
def values():
    r = np.random.default_rng(3)
    return {"layer.0.weight": r.standard_normal((17, 5)).astype(np.float32),
            "layer.0.bias": as_bf16(r.integers(0, 1 << 16, 5).astype(np.uint16)),
            "half": r.standard_normal(6).astype(np.float16), "count": np.array(7, np.int64),
            "mask": np.array([True, False, True]), "double": r.standard_normal((2, 1, 3)),
            "empty": np.zeros((0, 4), np.float32), "bytes": np.arange(7, dtype=np.uint8),
            "unicode \u00e9": np.arange(4, dtype=np.int32), "short": np.arange(3, dtype=np.int16)}


@pytest.fixture
def single(tmp_path, values):
    safetensors.write(tmp_path / "in.safetensors", values, {"format": "pt", "origin": "test"})
    return tmp_path / "in.safetensors"


@pytest.mark.parametrize("most", ["1", "100", "5G"])
def test_every_format_round_trips(tmp_path, single, capsys, most):
    expected = content(single)
    for number, to in enumerate(["sharded", "dcp", "sharded", "dcp", "safetensors"]):
        target = tmp_path / f"{number}{'.safetensors' if to == 'safetensors' else ''}"
        source = tmp_path / str(number - 1) if number else single
        code, text = run(capsys, "convert", source, target, f"--to={to}",
                         f"--max-shard-bytes={most}")
        assert code == 0, text
        assert content(target) == expected
        assert run(capsys, "verify", target)[0] == 0
    assert not list(tmp_path.glob("*.tmp")) and not list(tmp_path.glob(".*"))
    found = safetensors.read(tmp_path / "4.safetensors")
    assert {n: v.tobytes() for n, v in found.items()} == {n: v[2] for n, v in expected.items()}


def test_inspect_prints_types_shapes_and_bytes(single, capsys):
    code, text = run(capsys, "inspect", single)
    assert code == 0 and "10 tensors" in text and "metadata origin: test" in text
    line = next(line for line in text.splitlines() if line.startswith("layer.0.weight"))
    assert line.split() == ["layer.0.weight", "f32", "[17,", "5]", "340", "bytes"]


def test_module_has_the_command(single):
    done = subprocess.run([sys.executable, "-m", "fsdp_mlir", "ckpt", "verify", single],
                          capture_output=True, text=True)
    assert done.returncode == 0 and "10 tensors are whole" in done.stdout, done.stderr


def test_paths_and_usage(tmp_path, single, capsys):
    assert run(capsys, "inspect", tmp_path)[0] == 0  # the folder contains one checkpoint
    for arguments in (["inspect", tmp_path / "none"], ["convert", single, single], [],
                      ["convert", single, tmp_path / "x", "--max-shard-bytes=0"],
                      ["convert", single, tmp_path / "x", "--to=npz"]):
        code, text = run(capsys, *arguments)
        assert code == 2 and "Traceback" not in text, text
    shutil.copy(single, tmp_path / "second.safetensors")
    code, text = run(capsys, "verify", tmp_path)
    assert code == 2 and "found 2 .safetensors files" in text


# --- Conversion of values and names


def as_numbers(array, dtype):
    return (np.frombuffer(array, np.uint16).astype(np.uint32) << 16).view(np.float32) \
        if dtype == "BF16" else np.frombuffer(array, np.float16 if dtype == "F16" else np.float32)


def test_dtype_rounds_to_nearest_even():
    entry = Entry("x", "F32", (8,))
    bits = np.array([0x3f808000, 0x3f818000, 0x3f808001, 0x3f807fff, 0x80000000, 0x7f800000,
                     0xff800000, 0x00000001], np.uint32)
    found = convert_piece(bits.view(np.uint8), entry, "BF16").view(np.uint16)
    assert [hex(v) for v in found] == [hex(v) for v in (0x3f80, 0x3f82, 0x3f81, 0x3f80, 0x8000,
                                                        0x7f80, 0xff80, 0x0000)]
    nan = convert_piece(np.array([0x7f800001, 0xffffffff], np.uint32).view(np.uint8), entry, "BF16")
    assert np.isnan(as_numbers(nan.tobytes(), "BF16")).all()
    back = convert_piece(found.view(np.uint8), Entry("x", "BF16", (8,)), "F32")
    assert np.array_equal(back.view(np.uint32) >> 16, found)


@pytest.mark.parametrize("value,dtype", [(65520, "F16"), (-1e6, "F16"), (3.4e38, "BF16")])
def test_a_value_out_of_range_is_refused(value, dtype):
    values = np.array([0, value], np.float32).view(np.uint8)
    with pytest.raises(checkpoint.CheckpointError, match="tensor 'x': its value .* out of the ran"):
        convert_piece(values, Entry("x", "F32", (2,)), dtype)


def test_dtype_of_all_floats(tmp_path, single, capsys):
    code, text = run(capsys, "convert", single, tmp_path / "x.safetensors", "--dtype=f32")
    assert code == 0, text
    found, old = content(tmp_path / "x.safetensors"), content(single)
    assert found["half"][0] == "F32" and found["mask"][0] == "BOOL" and found["count"][0] == "I64"
    assert np.array_equal(as_numbers(found["half"][2], "F32"), as_numbers(old["half"][2], "F16"))
    assert np.array_equal(np.frombuffer(found["double"][2], np.float32),
                          np.frombuffer(old["double"][2], np.float64).astype(np.float32))


def test_rename(tmp_path, single, capsys):
    names = tmp_path / "names.json"
    names.write_text(json.dumps({"layer.*": "model.layers.*", "layer.0.bias": None, "half": "h"}))
    code, text = run(capsys, "convert", single, tmp_path / "x", f"--rename={names}")
    found = content(tmp_path / "x")
    assert code == 0 and {"model.layers.0.weight", "h", "count"} <= set(found)
    assert "layer.0.bias" not in found and len(found) == 9
    for rules, message in (({"gone": "x"}, "expected a tensor for 'gone'"),
                           ({"half": "count"}, "expected one tensor 'count'"),
                           ({"half*": "x"}, "both with '*'"), ({"half": 3}, "names and new names"),
                           ([], "a JSON object"), ({"half": "__metadata__"}, "expected a name")):
        names.write_text(json.dumps(rules))
        code, text = run(capsys, "convert", single, tmp_path / "y", f"--rename={names}")
        assert code in (1, 2) and message in text and not (tmp_path / "y").exists(), text


# --- Damage


def index_of(tmp_path, single):
    checkpoint.convert(single, tmp_path / "s", max_shard_bytes=100)
    return tmp_path / "s" / "model.safetensors.index.json"


def test_index_with_missing_and_extra_tensors(tmp_path, single, capsys):
    path = index_of(tmp_path, single)
    index = json.loads(path.read_text())
    file = index["weight_map"].pop("half")
    index["weight_map"]["gone"] = file
    index["metadata"]["total_size"] += 4
    path.write_text(json.dumps(index))
    code, text = run(capsys, "verify", path.parent)
    assert code == 1 and f"{file}: found tensor 'half', which the index lacks" in text
    assert f"{file}: expected tensor 'gone'" in text
    for option in ([], ["--no-verify"]):
        assert run(capsys, "convert", path, tmp_path / "t", *option)[0] == 1
    os.remove(path.with_name(file))
    code, text = run(capsys, "verify", path)
    assert code == 1 and "expected this file of the index, found none" in text


def test_a_wrong_total_size_is_a_warning(tmp_path, single, capsys):
    path = index_of(tmp_path, single)
    text = path.read_text()
    path.write_text(text.replace('"total_size": ', '"total_size": 1'))
    code, text = run(capsys, "verify", path)
    assert code == 0 and "warning" in text and "total_size: expected" in text


@pytest.mark.parametrize("old,new,message", [
    (b'"shape":[6]', b'"shape":[5]', "expected 10 bytes for F16 [5], found 12"),
    (b'"dtype":"F16"', b'"dtype":"F99"', "expected a dtype of"),
    (b'"half"', b'"mask"', "found 'mask' twice"),
    (b'"shape":[6]', b'"shape":[x]', "expected JSON"),
    (b'[17,5]', b'[-1,5]', "expected whole numbers"),
    (b'"data_offsets"', b'"data_0ffsets"', "expected dtype, shape and data_offsets")])
def test_a_damaged_header_is_refused(single, capsys, old, new, message):
    data = single.read_bytes()
    assert old in data
    single.write_bytes(data.replace(old, new))
    for command in ("verify", "inspect"):
        code, text = run(capsys, command, single)
        assert code == 1 and str(single) in text and message in text, text


def test_a_file_that_is_too_short_or_too_long(single, capsys):
    data = single.read_bytes()
    for damaged in (data[:-1], data + b"x", data[:100], data[:4], b""):
        single.write_bytes(damaged)
        code, text = run(capsys, "verify", single)
        assert code == 1 and "expected" in text and "found" in text


def test_damage_is_never_a_traceback(tmp_path, single, capsys):
    """Flips, cuts and swaps bytes of the files of a checkpoint. Reading the changed files must
    raise an error that names the path, or return the same content."""
    r = random.Random(5)
    checkpoint.convert(single, tmp_path / "sharded", max_shard_bytes=200)
    checkpoint.convert(single, tmp_path / "dcp", to="dcp", max_shard_bytes=200)
    expected = content(single)
    refused = 0
    for folder in ("sharded", "dcp"):
        for path in sorted((tmp_path / folder).iterdir()):
            data = path.read_bytes()
            for _ in range(150):
                damaged = bytearray(data)
                for _ in range(r.choice([1, 1, 3])):
                    damaged[r.randrange(len(damaged))] = r.choice([0, 255, r.randrange(256)])
                if r.random() < 0.2:
                    damaged = damaged[:r.randrange(len(damaged))]
                path.write_bytes(damaged)
                code, text = run(capsys, "verify", tmp_path / folder)
                assert code in (0, 1) and (code == 0 or str(tmp_path) in text), text
                refused += code
                if code == 0 and folder == "dcp":
                    found = {n: v[1:] for n, v in content(tmp_path / "dcp").items()}
                    assert set(found) != set(expected) or \
                        all(found[n][1] == expected[n][2] for n in found)
                run(capsys, "inspect", tmp_path / folder)
                shutil.rmtree(tmp_path / "out", ignore_errors=True)
                assert run(capsys, "convert", tmp_path / folder, tmp_path / "out",
                           "--no-verify")[0] in (0, 1)
            path.write_bytes(data)
    assert refused > 300


# --- Pickles


class Evil:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_no_code_of_metadata_is_run(tmp_path, capsys, protocol):
    mark = tmp_path / "ran"
    for number, call in enumerate([(os.system, (f"touch {mark}",)), (eval, ("1+1",)),
                                   (getattr, (os, "system")), (open, (str(mark), "w"))]):
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            (folder / ".metadata").write_bytes(pickle.dumps({"a": Evil(*call)}, protocol))
        except TypeError:
            continue  # the module os cannot be pickled
        for command in ("inspect", "verify"):
            code, text = run(capsys, command, folder)
            assert code == 1 and (folder / ".metadata").as_posix() in text
            assert "nothing of it was run" in text or "opcode" in text, text
        assert run(capsys, "convert", folder, tmp_path / "x")[0] == 1
    assert not mark.exists() and not (tmp_path / "x").exists()


def test_no_code_of_a_tensor_is_run(tmp_path, single, capsys):
    """The file data.pkl inside a .distcp file is read as data as well."""
    checkpoint.convert(single, tmp_path / "dcp", to="dcp")
    mark = tmp_path / "ran"
    evil = pickle.dumps(Evil(os.system, (f"touch {mark}",)), 2)
    path = next((tmp_path / "dcp").glob("*.distcp"))
    data = path.read_bytes()
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("archive/data.pkl", evil)
        archive.writestr("archive/data/0", b"")
    bad = (tmp_path / "evil.zip").read_bytes()
    assert len(bad) < len(data)
    source = checkpoint.open_checkpoint(tmp_path / "dcp")
    (_, begin, length) = source._storage["layer.0.weight", (0, 0)]
    assert len(bad) <= length  # pads in front, because a zip archive is located from its end
    path.write_bytes(data[:begin] + b"\0" * (length - len(bad)) + bad + data[begin + length:])
    code, text = run(capsys, "verify", tmp_path / "dcp")
    assert code == 1 and "tensor 'layer.0.weight'" in text, text
    assert not mark.exists()


def test_a_file_outside_of_the_folder_is_refused(tmp_path, single, capsys):
    checkpoint.convert(single, tmp_path / "dcp", to="dcp")
    path = tmp_path / "dcp" / ".metadata"
    path.write_bytes(path.read_bytes().replace(b"__0_0.distcp", b"../_0.distcp"))
    code, text = run(capsys, "verify", tmp_path / "dcp")
    assert code == 1 and "expected names of files beside it, found '../_0.distcp'" in text


def bomb(levels):
    """Returns a pickle of ``levels`` nested pairs, each of which contains the inner pair twice."""
    return b"\x80\x04)" + b"".join(
        b"q" + bytes([0]) + b"h\x00\x86" for _ in range(levels)) + b"X\x01\0\0\0x\x93."


@pytest.mark.parametrize("data", [
    bomb(200), b"\x80\x04" + b")" + b"\x85" * 300_000 + b".", b"\x80\x04" + b"(" * 100_000 + b".",
    b"\x80\x04}" + b")" + b"\x85" * 300_000 + b"Ns.", b"\x80\x04N0.", b"\x80\x04h\x07.",
    b"\x80\x04\x8b\xff\xff\xff\x7f.", b"\x80\x04]a.", b"\x80\x04(e.", b"c\n\n.", b"."])
def test_hostile_pickles_are_refused(tmp_path, capsys, data):
    (tmp_path / ".metadata").write_bytes(data)
    code, text = run(capsys, "verify", tmp_path)
    assert code == 1 and str(tmp_path / ".metadata") in text and len(text) < 2000, text


def test_written_pickles_are_those_of_python():
    from fsdp_mlir.checkpoint import pickles

    value = {"a": (0, 1, 255, 1 << 31, 1 << 40, (1 << 62) - 1, -1, -(1 << 33), True, False, None),
             "b": ["\u00e9", [], {}, ()]}
    assert pickle.loads(pickles.write(value)) == value
    assert pickles.read("x", pickle.dumps(value, 4), ()) == value


# --- Saves of this project


@pytest.fixture(scope="module")
def saved(request, tmp_path_factory):
    from fsdp_mlir import tools

    try:
        tools.find_library()
        tools.find_tool("fsdp-compile")
    except tools.ToolNotFoundError as error:
        pytest.skip(str(error))
    step, folder = request.getfixturevalue("step"), tmp_path_factory.mktemp("save")
    with step.train(ranks=2) as run_:
        text = np.random.default_rng(7).integers(0, 64, (4, 17))
        run_.step((text[:, :-1].copy(), text[:, 1:].copy()))
        run_.save(folder / "run")
        run_.export(folder / "export.safetensors")
    return folder


@pytest.mark.parametrize("to", ["safetensors", "sharded", "dcp"])
def test_a_save_converts_to_what_export_writes(saved, tmp_path, capsys, to):
    code, text = run(capsys, "convert", saved / "run", tmp_path / "x", f"--to={to}")
    assert code == 0, text
    assert content(tmp_path / "x") == content(saved / "export.safetensors")


def test_a_save_of_bf16_has_the_masters(model, tmp_path, saved, capsys):
    import fsdp_mlir as fm

    step = fm.compile(model, mesh="shard=3", param_dtype="bf16", optimizer=fm.AdamW(lr=1e-3))
    with step.train(ranks=3) as run_:
        run_.save(tmp_path / "run")
        run_.export(tmp_path / "export.safetensors")
    assert content(tmp_path / "run") == content(tmp_path / "export.safetensors")
    code, text = run(capsys, "inspect", tmp_path / "run")
    assert code == 0 and "first_moment" in text and "save of fsdp-run" in text


def test_a_damaged_save_is_refused(saved, tmp_path, capsys):
    save = next((saved / "run").glob("step-*"))
    for name, change, message in (
            ("index.json", lambda b: b.replace(b'"offset":0', b'"offset":1', 1),
             "does not match the SHA-256"),
            ("index.json", lambda b: b[:-9], "expected"),
            ("rank-00001.safetensors", lambda b: b[:-1] + bytes([b[-1] ^ 1]),
             "expected the SHA-256"),
            ("rank-00000.safetensors", lambda b: b[:-1], "bytes, found"),
            ("../latest", lambda b: b[:20], "latest")):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(saved / "run", tmp_path / "run")
        path = tmp_path / "run" / save.name / name
        path.write_bytes(change(path.read_bytes()))
        code, text = run(capsys, "verify", tmp_path / "run")
        assert code == 1 and message in text and str(tmp_path) in text, text
        assert run(capsys, "convert", tmp_path / "run", tmp_path / "x")[0] == 1
    shutil.rmtree(tmp_path / "run")
    shutil.copytree(saved / "run", tmp_path / "run")
    os.remove(tmp_path / "run" / save.name / "rank-00001.safetensors")
    code, text = run(capsys, "verify", tmp_path / "run")
    assert code == 1 and "rank-00001.safetensors" in text


def test_memory_is_that_of_pieces(tmp_path):
    """Converting a tensor of 256 MiB to another type allocates less than 150 MiB."""
    path = tmp_path / "big.safetensors"
    size = 64 << 20
    header = json.dumps({"x": {"dtype": "F32", "shape": [size], "data_offsets": [0, 4 * size]}})
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode())
        file.truncate(8 + len(header) + 4 * size)
    program = ("import sys, re\nfrom fsdp_mlir import checkpoint\n"
               "status = lambda: open('/proc/self/status').read()\n"
               "anon = lambda: int(re.search(r'RssAnon:\\s+(\\d+)', status())[1])\n"
               "from fsdp_mlir.checkpoint import conversion\n"
               "peak, inner, before = [0], conversion.convert_piece, anon()\n"
               "def watch(*a):\n    r = inner(*a); peak[0] = max(peak[0], anon()); return r\n"
               "conversion.convert_piece = watch\n"
               "checkpoint.convert(sys.argv[1], sys.argv[2], dtype='bf16', verify=False)\n"
               "print(peak[0] - before)")
    done = subprocess.run([sys.executable, "-c", program, path, tmp_path / "out.safetensors"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.safetensors").stat().st_size > 2 * size
    assert int(done.stdout) < 150 << 10


def test_pieces_are_whole_elements():
    assert all(tensors.PIECE_BYTES % size == 0 for size in tensors.ITEM_SIZES.values())
