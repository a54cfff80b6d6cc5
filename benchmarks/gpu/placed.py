"""Memory on the device for the bindings of a kernel. Results are filled with NaN, and bytes follow each result that must not change. Needs numpy."""
import ctypes

import numpy as np

from attention import to_f32
from bundle import ITEM_BYTES

GUARD = 256  # bytes after each binding; those after a result must not change


class Placed:
    """The bindings of a kernel on the device. `inputs` are the bits of its operands, in order. With `shared`, another Placed of the same kernel, the
    operands are those of that Placed."""

    def __init__(self, driver, kernel, inputs, shared=None):
        self.driver, self.addresses, self.results, self.owned = driver, [], [], []
        for number, binding in enumerate(kernel.bindings):
            size = ITEM_BYTES[binding["dtype"]] * int(np.prod(binding["shape"], dtype=np.int64))
            if shared and not binding["out"]:
                self.addresses.append(shared.addresses[number])
                continue
            address = driver.allocate(size + GUARD)
            self.addresses.append(address)
            self.owned.append(address)
            if binding["out"]:
                self.results.append((address, size, binding))
                continue
            data = np.ascontiguousarray(inputs[number])
            if data.nbytes != size:
                raise ValueError(f"{kernel.name}: expected {size} bytes as input of binding {number}, found {data.nbytes}")
            driver.call("cuMemcpyHtoD_v2", ctypes.c_ulonglong(address), ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(size))
        self.clear()
        driver.synchronise()  # other streams do not wait for the default stream

    def clear(self, stream=None):
        """Fills the results, and the bytes after them, with NaN."""
        for address, size, _ in self.results:
            self.driver.call("cuMemsetD8Async", ctypes.c_ulonglong(address), ctypes.c_ubyte(0xff), ctypes.c_size_t(size + GUARD), stream)

    def download(self):
        """Waits for the device. Returns the results as arrays of float32, and a message for each result after whose end bytes have changed."""
        self.driver.synchronise()
        found, problems = [], []
        for address, size, binding in self.results:
            data = np.empty(size + GUARD, np.uint8)
            self.driver.call("cuMemcpyDtoH_v2", ctypes.c_void_p(data.ctypes.data), ctypes.c_ulonglong(address), ctypes.c_size_t(size + GUARD))
            if (data[size:] != 0xff).any():
                problems.append("writes after a result")
            bits = data[:size].view({2: np.uint16, 4: np.float32}[ITEM_BYTES[binding["dtype"]]])
            found.append(to_f32(bits, binding["dtype"]).reshape(binding["shape"]))
        return found, problems

    def free(self):
        for address in self.owned:
            self.driver.free(address)
