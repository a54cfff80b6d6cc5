"""The sections of the page on single kernels: what the smoke jobs found, times beside other libraries and predictions, comparisons with float64."""
import rows as row_kinds
from markdown import number, share, table

GOALS = {"forward": 0.9, "backward": 0.85, "product": 0.95}  # required ratio of a kernel's speed to the speed of the fastest other library


def smoke_section(results):
    lines = smoke_counts(results)
    repeats = results.of("repeat") + results.of("training", "run", part="smoke")
    if repeats:
        cells = [[row["name"], row["chip"], row["what"], row["status"], row.get("runs", ""), row.get("streams", ""), row["text"]] for row in repeats]
        lines += ["Kernels that run repeatedly, each run compared on the device with the first, which is compared with float64; and runs of `fsdp-run`.", "",
                  *table(["name", "code", "what", "status", "runs", "streams", ""], cells), ""]
    return ["## Smoke", "", *lines] if lines else []


def smoke_counts(results):
    """Returns a table of how many tensor maps were encoded and how many modules were loaded."""
    cells = []
    for what, found in (("tensor maps", results.of("maps")), ("load cubin", results.of("load", what="load cubin")),
                        ("load ptx", results.of("load", what="load ptx"))):
        for chip in sorted({row["chip"] for row in found}):
            mine = [row for row in found if row["chip"] == chip]
            status = {}
            for row in mine:
                status[row["status"]] = status.get(row["status"], 0) + 1
            cells.append([what, chip, len(mine), sum(row.get("count", 0) for row in mine), ", ".join(f"{count} {each}" for each, count in status.items())])
    return [*table(["what", "code", "files", "maps or functions", "status"], cells), ""] if cells else []


def key_of(row):
    return row["direction"], row["name"]


def peers_of(results, row):
    return [each for each in results.rows if each["child"] == "peers" and key_of(each) == key_of(row)]


def best_of(results, row):
    """Returns the fastest other library for a kernel, or None."""
    timed = [peer for peer in peers_of(results, row) if peer.get("ms")]
    return min(timed, key=lambda peer: peer["ms"]) if timed else None


def times_section(results, part, title):
    """Returns the table of a part. Other libraries are those of all parts."""
    rows = results.of("time", part=part)
    if not rows:
        return []
    cells = [time_cells(results, row) for row in rows]
    return [f"## {title}", "", "Medians of rounds; spread is from the first to the last decile. TFLOP/s count 4 operations per pair of query and key and column (10 backward), half "
            "where causal; of products 2 m n k. Predicted: by the clocks of the plan; measured over predicted is the ratio of TFLOP/s. Ratio: the time of the best other "
            "library over ours.", "",
            *table(["code", "direction", "case", "ms", "spread", "TFLOP/s", "predicted TFLOP/s", "measured over predicted", "best other", "ms", "ratio", "others", "MHz, memory MHz, W, C", ""], cells), ""]


def time_cells(results, row):
    ms, best, predicted = row.get("ms"), best_of(results, row), row.get("predicted", {}).get("ms")
    rate = lambda each: row["flops"] / each / 1e9 if each and row.get("flops") else None
    others = [f"{peer['peer']} {peer['ms']:.3f}" if peer.get("ms") else f"{peer['peer']}: {peer['text']}" for peer in peers_of(results, row) if peer is not best]
    ratio = best["ms"] / ms if best and ms else None
    return [row["chip"], row["direction"], row["name"], number(ms), share(row.get("spread")), number(rate(ms), ".0f"), number(rate(predicted), ".0f"),
            number(predicted / ms if predicted and ms else None, ".2f"), best["peer"] if best else "", number(best["ms"]) if best else "", number(ratio, ".2f"),
            "; ".join(others), row.get("clocks") or "", "" if row["status"] == "ok" else f"**{row['status']}** {row['text'][:200]}"]


def goals(results):
    """Returns a sentence for each headline kernel that was timed beside another library."""
    sentences = []
    for row in results.of("time", part="headline"):
        best = best_of(results, row)
        if best and row.get("ms"):
            ratio, goal = best["ms"] / row["ms"], GOALS[row["direction"]]
            sentences.append(f"{row['chip']} {row['direction']} {row['name']}: {ratio:.2f} of {best['peer']}, goal {goal}: {'met' if ratio >= goal else 'missed'}")
    return sentences


def checks_section(results):
    rows = results.of("check")
    if not rows:
        return []
    wrong = [row for row in rows if row["status"] in row_kinds.WRONG]
    done = [row for row in rows if row["status"] not in row_kinds.LEFT]
    sources = sorted({f"{row['chip']} from {row['source']}" for row in done if row.get("source")})
    return ["## Comparisons with float64", "",
            f"{len(done)} kernels compared by the rule of flash-attention's tests, {len(wrong)} wrong or without a result ({', '.join(sources)}).", ""]
