"""Reads tensor maps and code of artifacts for a GPU (.fsdp). The format is described in docs/reference/artifact.md: a header, a manifest (a FlatBuffer with
the schema runtime/schema/artifact.fbs) and an image.

The tables of a FlatBuffer are read by the numbers of their fields, which never change: a new field gets a new number at the end.
"""
import pathlib
import struct

from bundle import BundleError, read_code_file, read_description

HEADER = "<8sIIQQQQ"  # magic, version, size of the header, size of the file, offset and size of the manifest, offset of the image

# Numbers of the fields that are read here, in the order of the schema.
MANIFEST_KERNELS, MANIFEST_GPU = 8, 15
KERNEL_PHASES = 1
PHASE_SYMBOL, PHASE_GRID = 0, 3
GRID_MAPS, GRID_CLUSTER = 3, 4
MAP_BINDING, MAP_OFFSET, MAP_DTYPE, MAP_SIZES, MAP_STRIDES, MAP_BOX = range(6)
GPU_CHIP, GPU_PTX_BYTES, GPU_CUBIN_OFFSET, GPU_CUBIN_BYTES = range(4)
DTYPES = {1: "tf32", 2: "f16", 3: "bf16"}


class Table:
    """A table of a FlatBuffer: its fields by number."""

    def __init__(self, data, at):
        self.data, self.at = data, at
        self.fields = at - struct.unpack_from("<i", data, at)[0]
        self.count = (struct.unpack_from("<H", data, self.fields)[0] - 4) // 2

    def place(self, number):
        """Returns the position of a field, or None if the table does not have the field."""
        offset = struct.unpack_from("<H", self.data, self.fields + 4 + 2 * number)[0] if number < self.count else 0
        return self.at + offset if offset else None

    def number(self, number, form, default=0):
        place = self.place(number)
        return default if place is None else struct.unpack_from("<" + form, self.data, place)[0]

    def target(self, number):
        place = self.place(number)
        return None if place is None else place + struct.unpack_from("<I", self.data, place)[0]

    def table(self, number):
        target = self.target(number)
        return None if target is None else Table(self.data, target)

    def text(self, number):
        target = self.target(number)
        size = struct.unpack_from("<I", self.data, target)[0]
        return bytes(self.data[target + 4:target + 4 + size]).decode()

    def numbers(self, number, form):
        target = self.target(number)
        if target is None:
            return []
        count = struct.unpack_from("<I", self.data, target)[0]
        return list(struct.unpack_from(f"<{count}{form}", self.data, target + 4))

    def tables(self, number):
        target = self.target(number)
        if target is None:
            return []
        places = [target + 4 + 4 * i for i in range(struct.unpack_from("<I", self.data, target)[0])]
        return [Table(self.data, place + struct.unpack_from("<I", self.data, place)[0]) for place in places]


def map_of(table):
    """Returns a tensor map as a dict with the members that kernels.json has."""
    return {"binding": table.number(MAP_BINDING, "I"), "offset": table.number(MAP_OFFSET, "Q"), "dtype": DTYPES.get(table.number(MAP_DTYPE, "B", 3)),
            "sizes": table.numbers(MAP_SIZES, "Q"), "strides": table.numbers(MAP_STRIDES, "Q"), "box": table.numbers(MAP_BOX, "I")}


class Artifact:
    """The launches and the code of an artifact: `launches` is a list of {"entry", "cluster", "maps"}; `ptx` and `cubin` are bytes, and `cubin` is empty if
    the artifact has no machine code. Throws BundleError if the file is not an artifact for a GPU."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise BundleError(f"cannot read {path}: {error.strerror}") from None
        try:
            self.read(data)
        except (struct.error, ValueError, AttributeError, IndexError, TypeError):
            raise BundleError(f"{path}: expected an artifact for a GPU, found another file") from None

    def read(self, data):
        magic, _, _, _, manifest_offset, _, image = struct.unpack_from(HEADER, data)
        if magic != b"FSDPMLIR":
            raise ValueError(magic)
        manifest = Table(data, manifest_offset + struct.unpack_from("<I", data, manifest_offset)[0])
        gpu = manifest.table(MANIFEST_GPU)
        self.chip = gpu.text(GPU_CHIP)
        cubin = image + gpu.number(GPU_CUBIN_OFFSET, "Q")
        self.ptx, self.cubin = data[image:image + gpu.number(GPU_PTX_BYTES, "Q")], data[cubin:cubin + gpu.number(GPU_CUBIN_BYTES, "Q")]
        phases = [phase for kernel in manifest.tables(MANIFEST_KERNELS) for phase in kernel.tables(KERNEL_PHASES) if phase.table(PHASE_GRID)]
        self.launches = [{"entry": phase.text(PHASE_SYMBOL), "cluster": phase.table(PHASE_GRID).number(GRID_CLUSTER, "I", 1),
                          "maps": [map_of(each) for each in phase.table(PHASE_GRID).tables(GRID_MAPS)]} for phase in phases]


class KernelFolder:
    """The launches and the code of a folder CASE/CHIP, with the members of Artifact."""

    def __init__(self, path):
        folder = pathlib.Path(path)
        description = read_description(folder)
        self.chip = description["chip"]
        self.launches = [launch for kernel in description["kernels"] for launch in kernel["launches"]]
        self.ptx = read_code_file(folder / "kernels.ptx")
        self.cubin = read_code_file(folder / "kernels.cubin") if (folder / "kernels.cubin").exists() else b""


def read_code(path):
    """Reads the launches and the code of an artifact or of a folder of kernels."""
    return KernelFolder(path) if pathlib.Path(path).is_dir() else Artifact(path)
