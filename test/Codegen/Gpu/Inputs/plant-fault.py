"""Plants a fault into the PTX of a bundle's only kernel, and runs that through the emulated CUDA driver: argument 1 is the library, 2 the bundle, 3
a regular expression, 4 what to put for each match. Without the last two it is run as it is."""
import os
import pathlib
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
try:
    driver = Driver(library)
    with Bundle(driver, folder) as bundle:
        kernel = bundle.kernel(next(iter(bundle.kernels)))
        addresses = []
        for binding in kernel.bindings:
            size = ITEM_BYTES[binding["dtype"]]
            for extent in binding["shape"]:
                size *= extent
            addresses.append(driver.allocate(size))
            if not binding["out"]:
                driver.fill(addresses[-1], 0, size)
        kernel.prepare(addresses)()
        driver.synchronise()
    print("nothing found")
except CudaError as error:
    print(error)
finally:
    path.write_text(text)
