"""Launches kernels, and compares heads or rows of their results with results computed in float64."""
import numpy as np

from attention import Problem, allowed, to_bits, to_f32
from bundle import ITEM_BYTES
from products import Product

GUARD = 256  # bytes after each binding; those after a result must not change


def place(driver, kernel, inputs):
    """Allocates the bindings on the device. Copies the inputs to the device, and fills the results with NaN. GUARD bytes follow each binding."""
    addresses, results = [], []
    for number, binding in enumerate(kernel.bindings):
        size = ITEM_BYTES[binding["dtype"]] * int(np.prod(binding["shape"], dtype=np.int64))
        address = driver.allocate(size + GUARD)
        if binding["out"]:
            driver.fill(address, 0xff, size + GUARD)
            results.append((address, size, binding))
        else:
            data = np.ascontiguousarray(inputs[number]).tobytes()
            if len(data) != size:
                raise SystemExit(f"{kernel.name}: expected {size} bytes as input of binding {number}, found {len(data)}")
            driver.upload(address, data)
        addresses.append(address)
    return addresses, results


def run(driver, kernel, inputs):
    """Runs a kernel. Returns the results of the kernel as float32, and a message for each result after whose end the kernel has changed bytes."""
    addresses, results = place(driver, kernel, inputs)
    kernel.prepare(addresses)()
    driver.synchronise()
    found, problems = [], []
    for address, size, binding in results:
        data = driver.download(address, size + GUARD)
        if set(data[size:]) != {0xff}:
            problems.append("writes after a result")
        bits = np.frombuffer(data[:size], dtype={2: np.uint16, 4: np.float32}[ITEM_BYTES[binding["dtype"]]])
        found.append(to_f32(bits, binding["dtype"]).reshape(binding["shape"]))
    for address in addresses:
        driver.free(address)
    return found, problems


def heads_of(case, all_heads):
    """Returns the (batch, head) pairs to compare: all pairs, or those of the query heads that share the last batch's last key/value head."""
    group = case["h"] // case["hkv"]
    every = [(b, h) for b in range(case["b"]) for h in range(case["h"])]
    return every if all_heads else every[-group:]


def compare(name, found, exact, low, case, verdicts):
    factor = 3 if case.get("score") == "softcap" else 2
    dtype = "f32" if name in ("lse", "dslope") else case["dtype"]
    finite = np.isfinite(exact)
    error, limit = 0.0, allowed(exact[finite], low[finite], dtype, factor)
    if finite.any():
        error = np.abs(found[finite] - exact[finite]).max()
    same = np.array_equal(found[~finite], exact[~finite])
    verdicts.append({"result": name, "error": float(error), "allowed": float(limit), "ok": bool(error <= limit and same)})


def check_forward(driver, bundle, case, all_heads):
    problem, verdicts = Problem(case), []
    kernel = bundle.kernel("fwd_" + case["name"])
    (o, lse), problems = run(driver, kernel, problem.inputs())
    kernel.release()
    for b, h in heads_of(case, all_heads):
        exact, low = problem.forward(b, h), problem.forward(b, h, np.float32, problem.low())
        compare("o", o[b, h], exact[0], low[0], case, verdicts)
        compare("lse", lse[b, h], exact[1], low[1], case, verdicts)
    return verdicts, problems


def check_backward(driver, bundle, case, all_heads):
    """Checks a backward kernel. Its inputs O and LSE are computed in float64 for all heads, because the kernel reads all heads."""
    problem, verdicts = Problem(case), []
    o, lse = np.zeros(problem.do.shape, np.float32), np.zeros(problem.q.shape[:3], np.float32)
    chosen, weights = set(heads_of(case, all_heads)), {}
    for b, h in heads_of(case, True):
        o[b, h], lse[b, h], kept = problem.forward(b, h)
        if (b, h) in chosen:
            weights[b, h] = kept
    o = to_f32(to_bits(o, case["dtype"]), case["dtype"])
    kernel = bundle.kernel("bwd_" + case["name"])
    found, problems = run(driver, kernel, problem.gradient_inputs(o, lse))
    kernel.release()
    slopes = np.zeros((case["h"], 2))
    for b, kv in sorted({(b, h * case["hkv"] // case["h"]) for b, h in chosen}):
        compare_gradients(problem, b, kv, o, weights, found, verdicts, slopes)
    if case["score"] == "alibi" and all_heads:
        compare("dslope", found[3], slopes[:, 0], slopes[:, 1], case, verdicts)
    return verdicts, problems


def compare_gradients(problem, b, kv, o, weights, found, verdicts, slopes):
    case, sums = problem.case, {}
    for h in (h for h in range(case["h"]) if h * case["hkv"] // case["h"] == kv):
        low_weights = problem.forward(b, h, np.float32, problem.low())[2]
        parts = (problem.backward(b, h, o[b, h], weights[b, h]),
                 problem.backward(b, h, o[b, h], low_weights, np.float32, problem.low()))
        compare("dq", found[0][b, h], parts[0][0], parts[1][0], case, verdicts)
        slopes[h] += (parts[0][3], parts[1][3])
        for name, number in (("dk", 1), ("dv", 2)):
            exact, low = sums.get(name, (0, 0))
            sums[name] = (exact + parts[0][number], low + parts[1][number])
    for number, name in enumerate(("dk", "dv"), start=1):
        compare(name, found[number][b, kv], *sums[name], case, verdicts)


def check_product(driver, bundle, case, all_rows):
    problem, verdicts = Product(case), []
    kernel = bundle.kernel(case["name"])
    (result,), problems = run(driver, kernel, problem.inputs())
    kernel.release()
    rows = problem.rows(all_rows)
    compare("c", result[rows], problem.result(rows), problem.low(rows), case, verdicts)
    if not np.isfinite(result).all():
        problems.append("results that are not finite")
    return verdicts, problems


CHECKS = {"forward": check_forward, "backward": check_backward, "product": check_product}


def check(driver, bundle, case, direction, everything):
    """Checks a kernel. Returns {name, direction, chip, ok, worst, problems}."""
    verdicts, problems = CHECKS[direction](driver, bundle, case, everything)
    worst = max(verdicts, key=lambda v: v["error"] / v["allowed"] if v["ok"] and v["allowed"] else 0.0 if v["ok"] else np.inf)
    return {"name": case["name"], "direction": direction, "chip": bundle.chip, "problems": sorted(set(problems)),
            "worst": worst, "ok": all(v["ok"] for v in verdicts) and not problems}
