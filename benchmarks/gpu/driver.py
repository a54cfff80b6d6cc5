"""Calls functions of CUDA's driver API to launch kernels. These functions are in libcuda.so.1 or the emulator's libfsdp-emulated-cuda.so."""
import ctypes

MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
CAPABILITY = (75, 76)   # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
NO_BINARY = 209         # CUDA_ERROR_NO_BINARY_FOR_GPU

# Size of a CUtensorMap, whose alignment is 64 bytes.
MAP_BYTES = 128
MAP_TYPES = {"f16": 6, "bf16": 9, "tf32": 11}  # CU_TENSOR_MAP_DATA_TYPE_FLOAT16, _BFLOAT16, _TFLOAT32
MAP_SWIZZLE_128, MAP_PROMOTE_256 = 3, 3  # CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B


CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: the number of the attribute, and a union of 64 bytes for its value."""
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.POINTER(LaunchAttribute)), ("count", ctypes.c_uint)]


class CudaError(Exception):
    """The error that a call of the driver failed. `number` is the driver's error number, or None."""

    def __init__(self, text, number=None):
        super().__init__(text)
        self.number = number


class Driver:
    def __init__(self, file):
        try:
            self.driver = ctypes.CDLL(file)
        except OSError as error:
            raise CudaError(f"no CUDA driver: {error}") from None
        if not hasattr(self.driver, "cuInit"):
            raise CudaError(f"{file}: expected a library with CUDA's driver API, found no function cuInit")
        self.call("cuInit", 0)
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        if count.value == 0:
            raise CudaError(f"{file}: expected a GPU, found none")
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)

    def close(self):
        """Releases the context. This object cannot be used afterwards."""
        self.call("cuDevicePrimaryCtxRelease_v2", self.device)

    def call(self, name, *arguments):
        if result := getattr(self.driver, name)(*arguments):
            self.check(name, result)

    def check(self, name, result):
        """Throws the error number `result` of a function of the driver."""
        text = ctypes.c_char_p()
        self.driver.cuGetErrorString(result, ctypes.byref(text))
        raise CudaError(f"{name}: error {result}: {(text.value or b'unknown').decode()}", result)

    def version(self):
        """Returns the version of CUDA that the driver supports, such as "13.0"."""
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return f"{number.value // 1000}.{number.value % 1000 // 10}"

    def name(self):
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, 256, self.device)
        return text.value.decode()

    def capability(self):
        """Returns the compute capability of the device, such as (9, 0) for sm_90."""
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
        """Loads a module from the bytes of a cubin or of PTX."""
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

    def tensor_map(self, address, dtype, sizes, strides, box):
        """Returns a tensor map as a kernel argument. The sizes and the box are counted in elements. Strides are in bytes, and begin with the stride
        of dimension 1."""
        room = ctypes.create_string_buffer(MAP_BYTES + 64)
        found = (ctypes.c_char * MAP_BYTES).from_buffer(room, -ctypes.addressof(room) % 64)
        rank = len(sizes)
        numbers = lambda kind, values: (kind * max(len(values), 1))(*values)
        self.call("cuTensorMapEncodeTiled", found, MAP_TYPES[dtype], rank, ctypes.c_void_p(address), numbers(ctypes.c_uint64, sizes),
                  numbers(ctypes.c_uint64, strides), numbers(ctypes.c_uint32, box), numbers(ctypes.c_uint32, [1] * rank), 0,
                  MAP_SWIZZLE_128, MAP_PROMOTE_256, 0)
        return found

    def stream(self):
        """Creates a stream, which does not wait for the context's default stream."""
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), 1)
        return stream

    def prepare(self, function, blocks, threads, shared, arguments, cluster=1, stream=None):
        """Returns a function that launches `function`. `arguments` are ctypes values, or ctypes arrays for parameters larger than 8 bytes. All
        structures of the launch are made here, so that the returned function makes one call."""
        addresses = (ctypes.c_void_p * len(arguments))(*[ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments])
        if cluster == 1:
            entry, words = self.driver.cuLaunchKernel, (function, *map(ctypes.c_uint, (blocks, 1, 1, threads, 1, 1, shared)), stream, addresses, None)
        else:
            attribute = LaunchAttribute(id=CLUSTER_DIMENSION, value=(cluster, 1, 1))
            config = LaunchConfig(grid=(blocks, 1, 1), block=(threads, 1, 1), shared=shared, stream=stream, attributes=ctypes.pointer(attribute), count=1)
            entry, words = self.driver.cuLaunchKernelEx, (ctypes.byref(config), function, addresses, None)

        def launch(kept=arguments):  # the structures refer to the arguments, which have to live as long
            if result := entry(*words):
                self.check(entry.__name__, result)

        return launch
