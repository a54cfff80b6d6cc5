"""The cases that are checked and timed. The name of a kernel in the bundle consists of a prefix for the direction and the name of the case."""


def case(dtype, b, h, hkv, s, keys, d, score="none", mask="none", dv=None):
    dv = dv or d
    return {"name": f"{dtype}_{b}x{h}x{hkv}_{s}x{keys}_{d}x{dv}_{score}_{mask}", "dtype": dtype, "b": b, "h": h, "hkv": hkv,
            "s": s, "keys": keys, "d": d, "dv": dv, "score": score, "mask": mask}


def product(dtype, transposes, m, n, k, epilogue="none"):
    return {"kind": "product", "name": f"{transposes}_{dtype}_0x{m}x{n}x{k}_{epilogue}_{dtype}", "dtype": dtype, "transposes": transposes,
            "m": m, "n": n, "k": k, "epilogue": epilogue}


def tiny():
    """Yields cases that are small enough for an emulator. They cover lengths that are not multiples of tile sizes, query heads that share keys, each
    score function and each mask."""
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


def headline():
    """Yields (direction, case) of the kernels whose times are compared first."""
    full, causal = case("bf16", 2, 16, 16, 8192, 8192, 128), case("bf16", 2, 16, 16, 8192, 8192, 128, "none", "causal")
    shared = case("bf16", 1, 64, 8, 8192, 8192, 128, "none", "causal")
    yield "forward", full
    yield "backward", full
    yield "product", product("bf16", "nt", 8192, 8192, 8192)
    for direction in ("forward", "backward"):
        yield direction, causal
        yield direction, shared
    yield "product", product("bf16", "nt", 16384, 8192, 2048, "residual")


def smoke():
    """Yields (direction, case, streams) of the kernels that run repeatedly and must give equal bits. They depend on what only hardware tests: the order in
    which blocks add to dQ, alone and beside a second launch; O in Q's memory; barriers of clusters."""
    full, shared = case("bf16", 2, 16, 16, 8192, 8192, 128), case("bf16", 1, 64, 8, 8192, 8192, 128, "none", "causal")
    yield "forward", full, 1
    yield "product", product("bf16", "nt", 8192, 8192, 8192), 1
    for each in (full, shared):
        yield "backward", each, 1
        yield "backward", each, 2


def timed():
    """Yields the timed cases, those of headline() included. Cases of attention have 16,384 tokens, and their heads together have 2,048 columns, as in the
    papers on FlashAttention; or one sequence with 64 query heads and 8 key/value heads. Cases with a score function have sequences of 8,192 tokens.
    Products are m = n = k = 8192 with each transposition, smaller cubes, and the products of a layer."""
    for transposes in ("nn", "nt", "tn"):
        yield product("bf16", transposes, 8192, 8192, 8192)
    for size in ((4096, 4096, 4096), (2048, 2048, 2048), (16384, 4096, 4096), (4096, 14336, 4096), (4096, 4096, 14336)):
        yield product("bf16", "nt", *size)
    yield product("bf16", "nt", 8192, 8192, 8192, "bias")
    yield product("bf16", "nt", 16384, 8192, 2048, "residual")
    for length in (2048, 8192):
        for mask in ("none", "causal"):
            yield case("bf16", 1, 64, 8, length, length, 128, "none", mask)
    for d in (64, 128):
        for length in (2048, 4096, 8192, 16384):
            for mask in ("none", "causal"):
                yield case("bf16", 16384 // length, 2048 // d, 2048 // d, length, length, d, "none", mask)
        for score in ("softcap", "alibi"):
            yield case("bf16", 2, 2048 // d, 2048 // d, 8192, 8192, d, score, "causal")
        yield case("bf16", 2, 2048 // d, 2048 // d, 8192, 8192, d, "none", "documents")


def directions(each):
    return ("product",) if each.get("kind") == "product" else ("forward", "backward")


def firsts(groups):
    """Returns {"headline": [[direction, name]], "smoke": [[direction, name, streams]]} for a bundle with these groups. Without the timed cases, the tiny ones
    stand for them, so that all parts of the suite can be rehearsed."""
    if names := {each["name"] for each in groups.get("timed", [])}:
        return {"headline": [[direction, each["name"]] for direction, each in headline() if each["name"] in names],
                "smoke": [[direction, each["name"], streams] for direction, each, streams in smoke() if each["name"] in names]}
    tiny_ones = [(direction, each["name"]) for each in groups.get("tiny", []) for direction in directions(each)]
    return {"headline": [list(each) for each in tiny_ones], "smoke": [[*each, 2 if each[0] == "backward" else 1] for each in tiny_ones]}
