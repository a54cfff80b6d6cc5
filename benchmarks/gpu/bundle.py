"""Reads bundles that benchmarks/gpu/build has written. A folder CASE/CHIP/ contains kernels.ptx, kernels.json (the launches) and, if ptxas was
available, kernels.cubin."""
import ctypes
import json
import pathlib
import re

from driver import NO_BINARY, CudaError

MEMBERS = {"groups": {"name": str}, "models": {"name": str, "ranks": list, "gemm": list, "steps": int}}  # required members of each case and model, with their types
# What check_form() expects in kernels.json: a dict names the members of an object, a list has the form of each element.
MAP = {"binding": int, "offset": int, "dtype": str, "sizes": [int], "strides": [int], "box": [int]}
LAUNCH = {"entry": str, "blocks": int, "threads": int, "sharedBytes": int, "cluster": int, "maps": [MAP]}
KERNEL = {"name": str, "scratchBytes": int, "bindings": [{"dtype": str, "shape": [int], "out": bool}], "launches": [LAUNCH]}
ITEM_BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "bf16": 2, "f16": 2, "i8": 1, "i1": 1}


class BundleError(Exception):
    """A file of a bundle is missing, or does not have the form that benchmarks/gpu/build writes."""


def read_json(path, expected):
    """Reads a JSON object from a file. Throws BundleError if the object lacks a member of `expected`, which maps names to types."""
    try:
        found = json.loads(pathlib.Path(path).read_text())
    except OSError as error:
        raise BundleError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise BundleError(f"{path}: expected JSON, as benchmarks/gpu/build writes it: {error}") from None
    for name, kind in expected.items():
        if not isinstance(found, dict) or not isinstance(found.get(name), kind):
            raise BundleError(f"{path}: expected an object with \"{name}\", as benchmarks/gpu/build writes it")
    return found


def read_bundle(folder):
    """Reads and checks bundle.json."""
    path = pathlib.Path(folder) / "bundle.json"
    if not path.exists():
        raise BundleError(f"{path}: expected a bundle, found no file; build one with benchmarks/gpu/build OUT")
    description = read_json(path, {"chips": list, "built": str, "headline": list, "smoke": list, **{name: dict for name in MEMBERS}})
    for chip in description["chips"]:
        if not isinstance(chip, str) or not re.fullmatch(r"sm_\d+a?", chip):
            raise BundleError(f"{path}: expected chips such as sm_90a, found {json.dumps(chip)}")
    for name, members in MEMBERS.items():
        for group in description[name].values():
            for each in group if isinstance(group, list) else [group]:
                if not isinstance(each, dict) or any(not isinstance(each.get(member), kind) for member, kind in members.items()):
                    raise BundleError(f"{path}: {name}: expected objects with {', '.join(members)}, found {json.dumps(each)[:80]}")
                if any(not isinstance(ranks, int) for ranks in each.get("ranks", [])):
                    raise BundleError(f"{path}: {name}: expected ranks that are integers, found {json.dumps(each['ranks'])[:80]}")
    for name, kinds in (("smoke", [str, str, int]), ("headline", [str, str])):
        for each in description[name]:
            if not isinstance(each, list) or [type(value) for value in each] != kinds:
                raise BundleError(f"{path}: {name}: expected lists of {', '.join(kind.__name__ for kind in kinds)}, found {json.dumps(each)[:80]}")
    return description


def read_losses(path, steps):
    """Reads the losses of a training run on the CPU from a file, one loss per step."""
    losses = read_json(path, {"losses": list})["losses"]
    if len(losses) != steps:
        raise BundleError(f"{path}: expected {steps} losses, found {len(losses)}")
    wrong = [each for each in losses if isinstance(each, bool) or not isinstance(each, (int, float)) or not each]
    if wrong:
        raise BundleError(f"{path}: expected losses that are numbers and not 0, found {json.dumps(wrong[0])[:80]}")
    return losses


def check_form(path, place, value, form):
    """Throws BundleError if a value does not have a form, such as KERNEL."""
    kind = form if isinstance(form, type) else type(form)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise BundleError(f"{path}: {place}: expected {kind.__name__}, found {json.dumps(value)[:80]}")
    if kind is list:
        for number, each in enumerate(value):
            check_form(path, f"{place}[{number}]", each, form[0])
    elif kind is dict:
        for name, each in form.items():
            if name not in value:
                raise BundleError(f"{path}: {place}: expected the member \"{name}\", found {', '.join(value) or 'no members'}")
            check_form(path, f"{place}.{name}", value[name], each)


def read_description(folder):
    """Reads and checks the file kernels.json in the folder of one case and chip."""
    path = pathlib.Path(folder) / "kernels.json"
    description = read_json(path, {"chip": str, "kernels": list})
    check_form(path, "kernels", description["kernels"], [KERNEL])
    return description


def read_code_file(path):
    """Reads a file of PTX or machine code. Throws BundleError if the file is empty."""
    try:
        code = path.read_bytes()
    except OSError as error:
        raise BundleError(f"cannot read {path}: {error.strerror}") from None
    if not code:
        raise BundleError(f"{path}: expected code, found an empty file; build the bundle again")
    return code


class Kernel:
    """A kernel that is loaded in a CUDA context."""

    def __init__(self, driver, module, description):
        self.driver, self.description, self.name = driver, description, description["name"]
        self.bindings = description["bindings"]
        self.functions = [driver.function(module, each["entry"], each["sharedBytes"]) for each in description["launches"]]
        self.scratches = []

    def prepare(self, addresses, stream=None):
        """Returns a function that launches the kernel with bindings at `addresses`, and with scratch memory of its own."""
        places = list(addresses)
        if self.description["scratchBytes"]:
            self.scratches.append(self.driver.allocate(self.description["scratchBytes"]))
            places.append(self.scratches[-1])
        ready = []
        for function, each in zip(self.functions, self.description["launches"]):
            arguments = [ctypes.c_ulonglong(place) for place in places]
            arguments += [self.driver.tensor_map(places[each["binding"]] + each["offset"], each["dtype"], each["sizes"], each["strides"],
                                                 each["box"]) for each in each["maps"]]
            ready.append(self.driver.prepare(function, each["blocks"], each["threads"], each["sharedBytes"], arguments, each["cluster"], stream))

        def run():
            for launch in ready:
                launch()

        return run if len(ready) > 1 else ready[0]

    def release(self):
        for scratch in self.scratches:
            self.driver.free(scratch)
        self.scratches = []


class Bundle:
    """The loaded kernels of a case for one chip."""

    def __init__(self, driver, folder):
        folder = pathlib.Path(folder)
        self.driver = driver
        self.description = read_description(folder)
        self.chip = self.description["chip"]
        self.kernels = {each["name"]: each for each in self.description["kernels"]}
        self.module, self.source = self.load(folder)

    def load(self, folder):
        """Loads kernels.cubin, or kernels.ptx if the device does not accept that machine code. Returns the module, and "machine code" or "PTX"."""
        code = folder / "kernels.cubin"
        if code.exists():
            try:
                return self.load_file(code), "machine code"
            except CudaError as error:
                if error.number != NO_BINARY:
                    raise
        return self.load_file(folder / "kernels.ptx"), "PTX"

    def load_file(self, path):
        try:
            return self.driver.load(read_code_file(path))
        except CudaError as error:
            raise CudaError(f"{path}: {error}", error.number) from None

    def kernel(self, name):
        return Kernel(self.driver, self.module, self.kernels[name])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if not error[0] and self.module:
            self.driver.unload(self.module)


def runs_on(chip, capability):
    """Returns true if a device with a compute capability can run code for a chip. PTX for sm_80 runs on 8.0 and later, and code for sm_90a runs only
    on 9.0."""
    number = int("".join(c for c in chip if c.isdigit()))
    own = capability[0] * 10 + capability[1]
    return own == number if chip.endswith("a") else own >= number
