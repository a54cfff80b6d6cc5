"""Checks what needs no launch: the driver encodes each tensor map, and loads each module of machine code and of PTX."""
from artifact import read_code
from driver import NO_BINARY, CudaError

PLACE_BYTES = 1 << 20  # bytes of device memory whose address stands for each binding: the driver does not check the extent of a tensor


def encode_maps(driver, job):
    """Encodes all tensor maps of an artifact or of a folder of kernels, also after one was refused."""
    code, count, refused = read_code(job["path"]), 0, []
    address = driver.allocate(PLACE_BYTES)
    for launch in code.launches:
        for number, each in enumerate(launch["maps"]):
            count += 1
            try:
                driver.tensor_map(address + each["offset"], each["dtype"], each["sizes"], each["strides"], each["box"])
            except CudaError as error:
                members = ", ".join(f"{name} {each[name]}" for name in ("dtype", "sizes", "strides", "box", "offset"))
                refused.append(f"{launch['entry']}, map {number}: {error}; {members}")
    driver.free(address)
    more = f"; and {len(refused) - 3} more" if len(refused) > 3 else ""
    return {"status": "refused" if refused else "ok", "count": count, "refused": len(refused), "text": "; ".join(refused[:3]) + more}


def load_code(driver, job):
    """Loads the machine code ("cubin") or the PTX ("ptx") of an artifact or of a folder of kernels, and looks up the function of each launch."""
    code = read_code(job["path"])
    image = code.cubin if job["form"] == "cubin" else code.ptx
    if not image:
        return {"status": "absent", "text": "the build had no ptxas"}
    try:
        module = driver.load(image)
    except CudaError as error:
        if job["form"] == "cubin" and error.number == NO_BINARY:
            return {"status": "other chip", "text": f"{error}; PTX is loaded instead"}
        return {"status": "refused", "text": f"{job['path']}: {error}"}
    for launch in code.launches:
        driver.function(module, launch["entry"], launch.get("sharedBytes", 0))
    driver.unload(module)
    return {"status": "ok", "count": len(code.launches), "text": ""}

