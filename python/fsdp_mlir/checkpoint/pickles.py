# Part of fsdp-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads and writes the pickles of PyTorch's checkpoints as plain data, without executing them.

Python's unpickler imports modules and calls functions that a pickle names. The reader here
interprets the opcodes itself, without imports and calls. A global is the name of a class or
function. If it is in the caller's list, it becomes a ``Name``; any other global is an error. A call
or a new object becomes an ``Object`` that contains the callee's name, the arguments and the state.
"""

from __future__ import annotations

import pickletools
import struct
from typing import Any, Collection

from .tensors import CheckpointError


class Name:
    """A global that a pickle names, for example torch.float32."""

    def __init__(self, module: str, name: str):
        self.module, self.name = module, name

    @property
    def text(self) -> str:
        return f"{self.module}.{self.name}"


class Object:
    """Records a call of ``kind``, or the creation of an object of the class ``kind``. The opcode
    BUILD sets the member ``state``."""

    def __init__(self, kind: Name | None, args: Any = (), state: Any = None, new: bool = False):
        self.kind, self.args, self.state, self.new = kind, args, state, new

    def get(self, name: str, default: Any = None) -> Any:
        """Returns the attribute ``name`` from the state of the object."""
        return self.state.get(name, default) if isinstance(self.state, dict) else default

    def is_a(self, *names: str) -> bool:
        return self.kind is not None and self.kind.name in names


class _Mark:
    pass


_MARK = _Mark()
_VALUES = {"BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT", "SHORT_BINUNICODE",
           "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8"}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Machine:
    """Reads a pickle with a stack and a memo, as Python's unpickler does, but records calls as data
    instead of executing them."""

    def __init__(self, names: Collection[str]):
        self.names, self.stack, self.memory = names, [], {}

    def run(self, data: bytes) -> Any:
        for opcode, argument, _ in pickletools.genops(data):
            name = opcode.name
            if name == "STOP":
                return self.pop()
            if name in ("PROTO", "FRAME"):
                continue
            if name in _VALUES:
                self.stack.append(argument)
            elif name in _CONSTANTS:
                self.stack.append(_CONSTANTS[name])
            elif name in _TUPLES:
                self.stack.append(tuple(self.pops(_TUPLES[name])))
            elif method := getattr(self, "op_" + name.lower(), None):
                method(argument)
            else:
                raise ValueError(f"found the opcode {name}, which checkpoints do not have")
        raise ValueError("found no end")

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise ValueError("found a mark in place of a value")
        return value

    def pops(self, number: int) -> list:
        return [self.pop() for _ in range(number)][::-1]

    def to_mark(self) -> list:
        found = []
        while (value := self.stack.pop()) is not _MARK:
            found.append(value)
        return found[::-1]

    def top(self, kind: type) -> Any:
        if not isinstance(self.stack[-1], kind):
            raise ValueError(f"expected {kind.__name__}, found {type(self.stack[-1]).__name__}")
        return self.stack[-1]

    def add(self, pairs: list) -> None:
        target = self.top(dict)
        if len(pairs) % 2:
            raise ValueError("found a key without a value")
        for key, value in zip(pairs[::2], pairs[1::2]):
            # A key that is a tuple could be nested so deeply that hashing it overflows the stack.
            if not isinstance(key, (str, int, Object)):
                raise ValueError(f"expected a text as key, found {type(key).__name__}")
            target[key] = value

    def name(self, module: Any, name: Any) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise ValueError("expected texts as module and name")
        text = f"{module}.{name}"
        if text not in self.names:
            raise ValueError(f"it names '{text:.100}', which a checkpoint of tensors does not "
                             "need; nothing of it was run")
        self.stack.append(Name(module, name))

    def call(self, new: bool) -> None:
        kind, args = self.pops(2)
        if not isinstance(kind, Name) or not isinstance(args, tuple):
            raise ValueError("expected a name and its arguments")
        self.stack.append(Object(kind, args, new=new))

    def op_mark(self, _):
        self.stack.append(_MARK)

    def op_tuple(self, _):
        self.stack.append(tuple(self.to_mark()))

    def op_empty_list(self, _):
        self.stack.append([])

    def op_append(self, _):
        value = self.pop()
        self.top(list).append(value)

    def op_appends(self, _):
        values = self.to_mark()
        self.top(list).extend(values)

    def op_empty_dict(self, _):
        self.stack.append({})

    def op_setitem(self, _):
        self.add(self.pops(2))

    def op_setitems(self, _):
        self.add(self.to_mark())

    def op_memoize(self, _):
        self.memory[len(self.memory)] = self.stack[-1]

    def op_binput(self, index):
        self.memory[index] = self.stack[-1]

    op_long_binput = op_binput

    def op_binget(self, index):
        self.stack.append(self.memory[index])

    op_long_binget = op_binget

    def op_global(self, argument):
        self.name(*argument.split(" ", 1))

    def op_stack_global(self, _):
        self.name(*self.pops(2))

    def op_newobj(self, _):
        self.call(new=True)

    def op_reduce(self, _):
        self.call(new=False)

    def op_build(self, _):
        state = self.pop()
        self.top(Object).state = state

    def op_binpersid(self, _):
        self.stack.append(Object(None, self.pop()))


def read(where: str, data: bytes, names: Collection[str]) -> Any:
    """Returns the content of a pickle as data. ``names`` are the globals that the pickle may name.

    If the pickle is damaged or names other globals, raises CheckpointError with ``where`` as the
    location.
    """
    try:
        return _Machine(names).run(data)
    except (ValueError, IndexError, KeyError, TypeError, struct.error, OverflowError,
            Warning) as error:
        reason = str(error) if type(error) is ValueError else f"it is damaged ({error})"
        raise CheckpointError(f"{where}: {reason}") from None


def write(value: Any) -> bytes:
    """Returns a pickle (protocol 2) of data: constants, tuples, lists, dicts, Name and Object."""
    parts: list[bytes] = [b"\x80\x02"]
    _write(value, parts.append)
    return b"".join(parts) + b"."


def _write(value: Any, put) -> None:
    if value is None or value is True or value is False:
        put({None: b"N", True: b"\x88", False: b"\x89"}[value])
    elif isinstance(value, int):
        if 0 <= value < 1 << 31:
            put(b"J" + struct.pack("<i", value))
        else:
            data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            put(b"\x8a" + bytes([len(data)]) + data)
    elif isinstance(value, str):
        text = value.encode()
        put(b"X" + struct.pack("<I", len(text)) + text)
    elif isinstance(value, tuple):
        put(b"(")
        for one in value:
            _write(one, put)
        put(b"t")
    elif isinstance(value, list):
        put(b"](")
        for one in value:
            _write(one, put)
        put(b"e")
    elif isinstance(value, dict):
        put(b"}(")
        for key, one in value.items():
            _write(key, put)
            _write(one, put)
        put(b"u")
    elif isinstance(value, Name):
        put(f"c{value.module}\n{value.name}\n".encode())
    else:
        _write_object(value, put)


def _write_object(value: Object, put) -> None:
    if value.kind is None:
        _write(value.args, put)
        put(b"Q")
        return
    _write(value.kind, put)
    _write(value.args, put)
    put(b"\x81" if value.new else b"R")
    if value.state is not None:
        _write(value.state, put)
        put(b"b")
