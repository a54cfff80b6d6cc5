"""Plants a fault in the PTX of a bundle's only kernel, and runs it in the emulated CUDA driver. Arguments: the library, the bundle, a regular
expression, the replacement of each match. Without the last two the PTX is not changed. If no fault is found, compares the results."""
import os
import pathlib
import random
import re
import sys

sys.path.insert(0, os.path.join(os.environ["FSDP_SOURCE"], "benchmarks", "gpu"))
from bundle import ITEM_BYTES, Bundle  # noqa: E402
from driver import CudaError, Driver  # noqa: E402

library, folder = sys.argv[1], pathlib.Path(sys.argv[2])
(folder / "kernels.cubin").unlink(missing_ok=True)
path, text = folder / "kernels.ptx", (folder / "kernels.ptx").read_text()
if len(sys.argv) > 3:
    changed, count = re.subn(sys.argv[3], sys.argv[4], text)
    if not count:
        sys.exit(f"no '{sys.argv[3]}' in the text")
    path.write_text(changed)


def draw(size):
    """Draws bf16 numbers with magnitudes from 1/2 to 2; read as f32 they are about the same."""
    random_bytes = random.Random(1).choices(range(256), k=size)
    random_bytes[1::2] = [0x3F if byte < 128 else 0xBF for byte in random_bytes[1::2]]
    return bytes(random_bytes)


def run():
    """Runs the kernel and returns its results, binding by binding."""
    driver = Driver(library)
    with Bundle(driver, folder) as bundle:
        kernel = bundle.kernel(next(iter(bundle.kernels)))
        addresses, outs = [], []
        for binding in kernel.bindings:
            size = ITEM_BYTES[binding["dtype"]]
            for extent in binding["shape"]:
                size *= extent
            addresses.append(driver.allocate(size))
            if binding["out"]:
                outs.append((addresses[-1], size))
            else:
                driver.upload(addresses[-1], draw(size))
        kernel.prepare(addresses)()
        driver.synchronise()
        return [bytes(driver.download(*out)) for out in outs]


try:
    found = run()
    path.write_text(text)
    print("nothing found" if len(sys.argv) == 3 or found == run() else "nothing found, but results differ")
except CudaError as error:
    print(error)
finally:
    path.write_text(text)
