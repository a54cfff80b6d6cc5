"""Stands for peers.py: libraries that take a microsecond, or do what FAKE_PEER says, a comma-separated list of NAME:hang (in the forward), NAME:crash, NAME:error,
NAME:refuse, or `absent` for a module that cannot start. `delete:FILE` deletes a file."""
import os
import pathlib
import sys
import time

PLANTED = dict(each.partition(":")[::2] for each in os.environ.get("FAKE_PEER", "").split(",") if each)


class Refused(Exception):
    pass


def about():
    if "absent" in PLANTED:
        raise Refused("no such library here")
    return "fake libraries 1.0"


def prepare(name, case, direction):
    if "delete" in PLANTED:
        pathlib.Path(PLANTED["delete"]).unlink(missing_ok=True)
    planted = PLANTED.get(name)
    if planted == "hang" and direction == "forward":
        time.sleep(1000)
    if planted == "crash":
        print("cannot go on", file=sys.stderr)
        os.abort()
    if planted == "error":
        raise RuntimeError("an unexpected error")
    if planted == "refuse":
        raise Refused(f"{name} has no {direction} of {case['dtype']}")
    return lambda: None


def milliseconds(body, calls=1):
    return 0.001


def release():
    pass
