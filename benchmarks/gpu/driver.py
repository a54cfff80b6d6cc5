"""CUDA's driver interface, as much as launching kernels takes. Any library that has it will do: libcuda.so.1, or the emulator's
libfsdp-emulated-cuda.so."""
import ctypes

MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
CAPABILITY = (75, 76)   # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR


class CudaError(Exception):
    pass


class Driver:
    def __init__(self, library):
        try:
            self.library = ctypes.CDLL(library)
        except OSError as error:
            raise CudaError(f"no CUDA driver: {error}") from None
        self.call("cuInit", 0)
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        if count.value == 0:
            raise CudaError(f"{library} finds no GPU")
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(result, ctypes.byref(text))
            raise CudaError(f"{name}: error {result}: {(text.value or b'unknown').decode()}")

    def name(self):
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, 256, self.device)
        return text.value.decode()

    def capability(self):
        """(9, 0) for sm_90."""
        return tuple(self.attribute(number) for number in CAPABILITY)

    def attribute(self, number):
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, self.device)
        return value.value

    def allocate(self, size):
        address = ctypes.c_ulonglong()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        return address.value

    def free(self, address):
        self.call("cuMemFree_v2", ctypes.c_ulonglong(address))

    def upload(self, address, data):
        self.call("cuMemcpyHtoD_v2", ctypes.c_ulonglong(address), ctypes.c_char_p(data), ctypes.c_size_t(len(data)))

    def download(self, address, size):
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, ctypes.c_ulonglong(address), ctypes.c_size_t(size))
        return data.raw

    def fill(self, address, byte, size):
        self.call("cuMemsetD8_v2", ctypes.c_ulonglong(address), ctypes.c_ubyte(byte), ctypes.c_size_t(size))

    def synchronise(self):
        self.call("cuCtxSynchronize")

    def load(self, image):
        """A module of a cubin's or PTX's bytes."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(image + b"\0"))
        return module

    def unload(self, module):
        self.call("cuModuleUnload", module)

    def function(self, module, name, shared):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared > 48 * 1024:
            self.call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, shared)
        return function

    def launch(self, function, blocks, threads, shared, arguments):
        """`arguments`: ctypes values, or bytes objects of parameters that are larger."""
        addresses = (ctypes.c_void_p * len(arguments))(*[ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments])
        self.call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, shared, None, addresses, None)
