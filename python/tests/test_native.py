"""Compares the structures of native.py with the structures of the C headers."""

import ctypes
import pathlib
import re

import pytest

from fsdp_mlir import native

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "runtime/include/fsdprt"
TYPES = {"size_t": ctypes.c_size_t, "uint64_t": ctypes.c_uint64, "uint32_t": ctypes.c_uint32,
         "int64_t": ctypes.c_int64, "int32_t": ctypes.c_int32, "uint8_t": ctypes.c_uint8,
         "double": ctypes.c_double, "char": ctypes.c_char, "const char *": ctypes.c_char_p,
         "const uint64_t *": ctypes.POINTER(ctypes.c_uint64),
         "const int64_t *": ctypes.POINTER(ctypes.c_int64)}
ENUMS = ("fsdprt_status", "fsdprt_dtype", "fsdprt_state_role", "fsdprt_input_role")
pytestmark = pytest.mark.skipif(not INCLUDE.exists(), reason="the headers are not here")


def header():
    text = "".join((INCLUDE / name).read_text() for name in ("fsdprt.h", "train.h"))
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def members(name):
    """Returns [(type, name)] for the members of a structure in the headers."""
    body = re.search(r"typedef struct %s \{(.*?)\} %s;" % (name, name), header(), re.S)[1]
    found = []
    for declaration in body.split(";"):
        words = " ".join(declaration.split())
        if not words:
            continue
        kind, _, names = re.match(r"((?:const )?\w+)( )(.*)", words).groups()
        for one in names.split(","):
            one = one.strip()
            pointer, one = one.startswith("*"), one.lstrip("*").strip()
            ctype = TYPES[kind + " *"] if pointer else (
                ctypes.c_int32 if kind in ENUMS else TYPES[kind])
            if match := re.match(r"(\w+)\[(\d+)\]", one):
                one, ctype = match[1], ctype * int(match[2])
            found.append((one, ctype))
    return found


@pytest.mark.parametrize("name", sorted(native.STRUCTS))
def test_struct_is_that_of_the_header(name):
    own = [(field, kind) for field, kind in native.STRUCTS[name]._fields_]
    assert own == members(name)


def test_numbers_are_those_of_the_header():
    text = header()
    for index, dtype in enumerate(native.DTYPES):
        assert re.search(r"FSDPRT_%s = %d\b" % (dtype.upper(), index), text)
    for index, role in enumerate(native.ROLES):
        assert re.search(r"FSDPRT_%s = %d\b" % (role.upper(), index), text)
    for name in ("LR", "STEP", "LOSS_SCALE", "GROWTH", "TOKENS", "FINITE", "LOSS", "GRAD_NORM"):
        assert re.search(r"FSDPRT_BLOCK_%s =\s+%d\b" % (name, getattr(native, "BLOCK_" + name)),
                         text)
    assert re.search(r"FSDPRT_ABI_MAJOR %d\b" % native.ABI_MAJOR, text)


def test_every_function_is_in_the_library():
    library = native.library()
    for name in native._CALLS:
        assert callable(getattr(library, name.removeprefix("fsdprt_")))
