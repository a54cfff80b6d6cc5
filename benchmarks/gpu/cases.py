"""The cases that are checked and timed. The name of a kernel in the bundle is a prefix for its direction followed by the name of its case."""


def case(dtype, b, h, hkv, s, keys, d, score="none", mask="none", dv=None):
    dv = dv or d
    return {"name": f"{dtype}_{b}x{h}x{hkv}_{s}x{keys}_{d}x{dv}_{score}_{mask}", "dtype": dtype, "b": b, "h": h, "hkv": hkv,
            "s": s, "keys": keys, "d": d, "dv": dv, "score": score, "mask": mask}


def product(dtype, transposes, m, n, k, epilogue="none"):
    return {"kind": "product", "name": f"{transposes}_{dtype}_0x{m}x{n}x{k}_{epilogue}_{dtype}", "dtype": dtype, "transposes": transposes,
            "m": m, "n": n, "k": k, "epilogue": epilogue}


def tiny():
    """Yields cases that are small enough for an emulator: lengths that are not multiples of tile sizes, query heads that share keys, each score function
    and each mask."""
    yield product("bf16", "nt", 520, 2056, 72)
    yield product("f16", "tn", 264, 4104, 40, "bias")
    yield case("bf16", 1, 2, 1, 37, 53, 64)
    yield case("bf16", 1, 2, 2, 70, 70, 64, "softcap", "causal")
    yield case("f16", 1, 2, 1, 65, 130, 128, "none", "documents")
    yield case("bf16", 1, 2, 2, 33, 40, 96, "alibi", "causal")


def checked():
    for dtype in ("bf16", "f16"):
        for transposes in ("nn", "nt", "tn", "tt"):
            for size in ((2048, 2048, 2048), (1000, 1208, 520), (333, 517, 129), (16, 4096, 1024)):
                yield product(dtype, transposes, *size)
        yield product(dtype, "nt", 1000, 1208, 520, "bias")
    for dtype in ("bf16", "f16"):
        for d in (64, 128):
            for score in ("none", "softcap", "alibi"):
                for mask in ("none", "causal", "documents"):
                    yield case(dtype, 2, 4, 2, 333, 520, d, score, mask)
        yield case(dtype, 1, 2, 2, 1024, 1024, 96, "none", "causal")
        yield case(dtype, 1, 2, 1, 200, 1, 64)
        yield case(dtype, 1, 2, 1, 300, 100, 64, "none", "causal")  # the first 200 queries have no key


def timed():
    """Yields the timed cases. Cases of attention have 16,384 tokens, and their heads together have 2,048 columns, as in the papers on FlashAttention.
    Cases with a score function have sequences of 8,192 tokens. Products are m = n = k = 8192 with each transposition, smaller cubes, and the products
    of a layer."""
    for transposes in ("nn", "nt", "tn"):
        yield product("bf16", transposes, 8192, 8192, 8192)
    for size in ((4096, 4096, 4096), (2048, 2048, 2048), (16384, 4096, 4096), (4096, 14336, 4096), (4096, 4096, 14336)):
        yield product("bf16", "nt", *size)
    yield product("bf16", "nt", 8192, 8192, 8192, "bias")
    for d in (64, 128):
        for length in (2048, 4096, 8192, 16384):
            for mask in ("none", "causal"):
                yield case("bf16", 16384 // length, 2048 // d, 2048 // d, length, length, d, "none", mask)
        for score in ("softcap", "alibi"):
            yield case("bf16", 2, 2048 // d, 2048 // d, 8192, 8192, d, score, "causal")
        yield case("bf16", 2, 2048 // d, 2048 // d, 8192, 8192, d, "none", "documents")
