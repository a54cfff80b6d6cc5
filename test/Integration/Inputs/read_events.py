"""Reads TensorBoard event files by the definition of their format alone, and compares them with lines of metrics.

A record is u64 length, u32 masked CRC-32C of it, the bytes, u32 masked CRC-32C of those. The checksum is computed
bit by bit here, by polynomial division.

usage: read_events.py METRICS.jsonl EVENTS...     several files: a run, and runs resumed from its saves
"""
import json, math, struct, sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    data, at = open(path, "rb").read(), 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked(data[at:at + 8]), "checksum of a length"
        payload = data[at + 12:at + 12 + length]
        assert len(payload) == length
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(payload), "checksum of a record"
        at += length + 16
        yield payload


def fields(data):
    """Yields (number, value) of the fields of a protobuf message: integers, floats, and bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        elif key & 7 == 1:
            (value,) = struct.unpack_from("<d", data, at)
            at += 8
        elif key & 7 == 5:
            (value,) = struct.unpack_from("<f", data, at)
            at += 4
        else:
            assert key & 7 == 2, f"wire type {key & 7}"
            length = varint()
            assert at + length <= len(data)
            value = data[at:at + length]
            at += length
        yield key >> 3, value


def steps(paths):
    """Returns {step: {tag: value}}, without steps that the start of a later session discards."""
    result = {}
    for path in paths:
        events = [dict(fields(r)) for r in records(path)]
        assert events[0][3] == b"brain.Event:2"
        times = [e[1] for e in events]
        assert times == sorted(times) and 1e9 < times[0] < 1e11
        for event in events[1:]:
            if 7 in event:
                assert dict(fields(event[7])) == {1: 1}
                result = {s: v for s, v in result.items() if s < event[2]}
                continue
            values = [dict(fields(v)) for number, v in fields(event[5]) if number == 1]
            result[event[2]] = {v[1].decode(): v[2] for v in values}
    return result


assert crc32c(b"123456789") == 0xE3069283
found = steps(sys.argv[2:])
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [line["step"] for line in lines] == sorted(found), (lines, found)
for line in lines:
    scalars = {tag.split("/")[1]: value for tag, value in found[line["step"]].items()}
    assert set(scalars) == set(line) - {"step"}, (scalars, line)
    for key, value in scalars.items():
        wanted = float("nan") if line[key] is None else struct.unpack("<f", struct.pack("<f", line[key]))[0]
        assert value == wanted or math.isnan(wanted) and not math.isfinite(value), (key, value, line)
print(f"{len(lines)} steps of {len(scalars)} scalars:", " ".join(sorted(found[lines[-1]["step"]])))
