"""The sections of the page on whole steps: their times beside PyTorch, their kernels beside floors and predictions, losses and memory, compute-sanitizer."""
import statistics

import models
import shares
import steps as step_times
from markdown import mebibytes, number, share, table

RANKS_TEXT = "With several ranks, which share the GPU, `bits` says whether parameters, optimizer states and losses are those of one unsharded rank."


def training_section(results):
    """Returns the section on losses and memory."""
    rows = results.of("training", part="training")
    cells = []
    for row in rows:
        bits = row.get("equal_bits")
        cells.append([row["chip"], row["name"], row["what"], len(row.get("losses", [])), row.get("against", ""), number(row.get("difference"), ".2g"),
                      "" if bits is None else "equal" if bits else "not equal", row.get("planned_bytes") or "", row.get("measured_bytes") or "", mebibytes(row.get("beside_bytes")),
                      "" if row.get("grown_bytes") is None else row["grown_bytes"], row["status"], row["text"]])
    columns = ["code", "model", "what", "steps", "beside", "worst", "bits", "planned, bytes", "arena, bytes", "beside the arenas", "grew by, bytes", "status", ""]
    return ["## Losses and memory", "", "Losses of each step beside those of the CPU's artifact of the same model, seed and tokens, or beside those of one rank. bf16, masters in f32. "
            f"{RANKS_TEXT} The arena has to be the plan to the byte, and what is in use beside the arenas not to grow after the first step.", "",
            *table(columns, cells), ""] if rows else []


def medians(results):
    """Returns {(model, who): (milliseconds over all turns, a row)} of the contenders that were timed."""
    turns = {}
    for row in results.of("step", "torch step"):
        turns.setdefault((row["name"], row["who"]), []).append(row)
    return {key: (statistics.median(ms for row in rows for ms in row["times"]), rows[0]) for key, rows in
            ((key, [row for row in rows if row.get("ms")]) for key, rows in turns.items()) if rows}


def step_cells(row, ratios):
    cells = [row["chip"], row["name"], row["who"], number(row.get("ms"), ".2f"), share(row.get("spread")), number(row.get("predicted", {}).get("ms"), ".2f"),
             number(row.get("tokens_per_second"), ",.0f"), number(row.get("tflops"), ".1f"), share(row.get("utilisation"))]
    peak = row.get("peak_bytes")
    return cells + [number(ratios.get((row["name"], row["who"], who)), ".2f") for who in step_times.PEERS] + [number(peak / 2**30 if peak else None, ".1f"), row["status"], row["text"]]


def ratios_of(results):
    """Returns {(model, who, peer): how many times as fast as a peer of PyTorch an artifact is}."""
    found = medians(results)
    return {(model, who, peer): found[model, peer][0] / ms for (model, who), (ms, _) in found.items() for peer in step_times.PEERS
            if who not in step_times.PEERS and (model, peer) in found}


def steps_section(results):
    rows, ratios = results.of("step", "torch step"), ratios_of(results)
    if not rows:
        return []
    peak = step_times.peak_of(results.device)
    peak = f"{peak} TFLOP/s, this chip's for dense bf16 by its data sheet" if peak else "a peak that is not known for this chip"
    columns = ["code", "model", "what", "ms", "spread", "predicted ms", "tokens/s", "TFLOP/s", "MFU", *(f"of {who}" for who in step_times.PEERS), "arena or peak, GiB", "status", ""]
    return ["## Time of a step", "", "bf16, masters in f32, AdamW, one rank; PyTorch: `fully_shard` with the same types, fused AdamW, its default attention, each block and the head "
            f"with the loss compiled, or nothing (eager). Each row is a process of its own. Model FLOP utilisation (MFU) is tokens/s times FLOPs of a token over {peak}. "
            f"{models.FLOPS_RULE}. The last ratios are PyTorch's time over ours, over all turns: above 1 is faster than PyTorch; the goal is {step_times.GOAL} of what it compiles.", "",
            *table(columns, [step_cells(row, ratios) for row in rows]), ""]


def rates_of(results):
    """Returns the measured bytes per second of a copy, and the FLOP/s of a product and whether they are measured; None for what is not known."""
    copies = [row for row in results.of("copies") if row["status"] == "ok"]
    products = [row for row in results.rows if row.get("peer") == "cuBLASLt" and row.get("ms") and is_peak(row["case"])]
    peak = step_times.peak_of(results.device)
    rate = max((2.0 * row["case"]["m"] ** 3 / row["ms"] * 1e3 for row in products), default=None)
    return copies[0] if copies else None, rate or (peak * 1e12 if peak else None), rate is not None


def is_peak(case):
    return case["m"] == case["n"] == case["k"] == 8192 and case["epilogue"] == "none"


def profiled(results):
    """Returns (row, rows of its kernels) for each profiled artifact, and the copy; nothing if the bandwidth was not measured."""
    copy, products, _ = rates_of(results)
    rows = [row for row in results.of("profile") if "profile" in row] if copy else []
    return [(row, shares.kernels_of(row, copy["bytes_per_second"], products)) for row in rows]


def shares_section(results):
    """Returns the section on kernels and their floors."""
    if not results.of("profile"):
        return []
    copy, products, is_measured = rates_of(results)
    rate = f"{products / 1e12:.0f} TFLOP/s of bf16 {'as cuBLASLt has them here at 8192 cubed' if is_measured else 'by the data sheet'}" if products else \
        "products at a rate that is not known, so by bytes alone"
    lines = ["## Kernels beside their floors", ""]
    if copy:
        lines += [f"Each launch between two events of its stream, one by one (`fsdp-run --profile`); events around nothing are {1e3 * copy['event_ms']:.1f} us apart. Floor: what a "
                  f"kernel reads and writes at {copy['bytes_per_second'] / 1e12:.2f} TB/s, of a copy within the GPU's memory here, or its products at {rate}, the larger. What is in a "
                  "cache may be faster than its floor.", ""]
    kernels = {row["id"]: rows for row, rows in profiled(results)}
    for row in results.of("profile"):
        lines += [f"### {row['name']}, {row['gemm']}, {row['chip']}", ""]
        lines += artifact_lines(row, kernels[row["id"]]) if row["id"] in kernels else [f"No times: {row['status']} {row['text']}", ""]
    return lines


def artifact_lines(row, rows):
    found, predicted = row["profile"], row.get("predicted", {}).get("kernels", {})
    head = f"A step of {found['nanoseconds'] / found['steps'] / 1e6:.2f} ms, with each command waited for."
    cells = [[each["name"], each["kind"], each["first"], f"{each['runs']:.0f}", f"{each['microseconds']:.1f}", number(predicted.get(each["name"], {}).get("us"), ".1f"),
              predicted.get(each["name"], {}).get("bound", ""), f"{each['ms']:.3f}", f"{each['bytes'] / 1e6:.1f}", f"{each['flops'] / 1e9:.2f}", each["bound"], share(each["share"])]
             for each in rows[:shares.SHOWN]]
    lines = [head, "", *table(["kind", "runs", "ms of a step", "floor, ms", "share of floor"],
                              [[each["kind"], f"{each['runs']:.0f}", number(each["ms"]), number(each["floor_ms"]), share(each["share"])] for each in shares.sum_by_kind(rows)]), "",
             *table(["kernel", "kind", "first", "runs", "us each", "predicted us", "predicted bound", "ms of a step", "MB", "GFLOP", "floor by", "share of floor"], cells)]
    rest = rows[shares.SHOWN:]
    return lines + (["", f"And {len(rest)} others, {sum(each['ms'] for each in rest):.3f} ms of a step."] if rest else []) + [""]


def sanitizer_section(results):
    rows = results.of("sanitizer")
    return ["## compute-sanitizer", "", *table(["tool", "what", "status", ""], [[row["tool"], row["name"], row["status"], row["text"]] for row in rows]), ""] if rows else []


def summary(results):
    """Returns lines of text on steps and on the kernel that is furthest above its floor."""
    lines, best = [], {}
    for (model, who, peer), ratio in ratios_of(results).items():
        if ratio > best.get((model, peer), (0, ""))[0]:
            best[model, peer] = (ratio, who)
    lines += [f"step of {model}: {ratio:.2f} of {peer} ({who})" for (model, peer), (ratio, who) in best.items()]
    if lost := shares.most_lost(profiled(results)):
        excess, kernel, row = lost
        lines.append(f"largest excess: {kernel['name']} ({kernel['kind']}, first: {kernel['first']}) of {row['name']}, {row['gemm']}: {excess:.3f} ms of a step above its floor; "
                     f"share of floor {share(kernel['share'])}")
    return lines
