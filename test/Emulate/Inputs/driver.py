"""Launches halves.ptx and ranks.ptx through the emulated CUDA driver: argument 1 is the library, the others are the PTX."""
import ctypes
import os
import pathlib
import struct
import sys

sys.path.insert(0, os.path.join(os.environ["FSDP_SOURCE"], "benchmarks", "gpu"))
from driver import CudaError, Driver  # noqa: E402


def refused(body):
    try:
        body()
    except CudaError as error:
        return str(error)
    return "not refused"


driver = Driver(sys.argv[1])
print(driver.name(), driver.capability())
text = pathlib.Path(sys.argv[2]).read_bytes()
module = driver.load(text)
other = driver.load(text)  # both in one memory
function = driver.function(module, "exchange", 0)
x, n = driver.allocate(64 * 4), ctypes.c_uint(64)


def run(which, count=n):
    driver.prepare(which, 1, 64, 0, [ctypes.c_ulonglong(x), count])()
    driver.synchronise()
    return struct.unpack("64I", driver.download(x, 64 * 4))


driver.upload(x, struct.pack("64I", *[7] * 64))
print(*run(function)[:8])
driver.fill(x, 0, 64 * 4)
print(*run(driver.function(other, "exchange", 0))[-8:])
clusters = driver.load(pathlib.Path(sys.argv[3]).read_bytes())


def ranks(name, cluster):
    driver.prepare(driver.function(clusters, name, 0), 8, 1, 0, [ctypes.c_ulonglong(x)], cluster)()
    return struct.unpack("8I", driver.download(x, 32))


print(*ranks("ranks", 1))
print(*ranks("ranks", 2))
print(*ranks("ranks_of_four", 1))
print(refused(lambda: driver.function(module, "thirds", 0)))
print(refused(lambda: driver.load(b"\x7fELF machine code")))
print(refused(lambda: driver.load(b".version nonsense")))
print(refused(lambda: driver.upload(x + 4, bytes(64 * 4))))
print(refused(lambda: driver.download(x - 4, 4)))
print(refused(lambda: driver.free(x + 4)))
print(refused(lambda: driver.prepare(function, 1, 64, 49153, [ctypes.c_ulonglong(x), n])()))
driver.free(x)
print(refused(lambda: run(function)))
print(refused(lambda: driver.synchronise()))
print(refused(lambda: Driver("./nowhere.so")))
