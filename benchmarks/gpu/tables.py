"""Writes the checks and times of kernels as JSON and as Markdown."""
import json
import statistics

GOALS = {"forward": 0.9, "backward": 0.85, "product": 0.95}  # required ratio of a kernel's speed to the speed of the fastest other library


def summary(times, flops, peak):
    median = statistics.median(times)
    ordered = sorted(times)
    spread = (ordered[-1 - len(ordered) // 10] - ordered[len(ordered) // 10]) / median
    return {"ms": median, "spread": spread, "tflops": flops / median / 1e9, "of_peak": flops / median / 1e9 / peak if peak else None}


def row_of(case, direction, chip, times, flops, peak, refusals):
    found = {name: summary(each, flops, peak) for name, each in times.items()}
    theirs = {name: each for name, each in found.items() if name != "ours"}
    best = min(theirs, key=lambda name: theirs[name]["ms"]) if theirs else None
    return {"case": case, "direction": direction, "chip": chip, "times": found, "refusals": refusals, "best_peer": best,
            "ratio": theirs[best]["ms"] / found["ours"]["ms"] if best else None}


def markdown(report):
    lines = [f"# Kernels on {report['device']}", "",
             f"{report['date']}; driver's code: {', '.join(f'{chip} from {source}' for chip, source in report['sources'].items())}; "
             f"{report['software']}.", ""]
    if report.get("clocks"):
        lines += [f"Clocks (SM MHz, memory MHz, W, C) before and after: {report['clocks'][0]}; {report['clocks'][1]}.", ""]
    wrong = [each for each in report["checks"] if not each["ok"]]
    lines += [f"{len(report['checks'])} kernels compared with float64: {len(report['checks']) - len(wrong)} within the rule, {len(wrong)} not.", ""]
    for each in wrong:
        if not each["worst"]:
            lines.append(f"- **{each['chip']} {each['direction']} {each['name']}** gives no result: {'; '.join(each['problems'])}")
            continue
        lines.append(f"- **{each['chip']} {each['direction']} {each['name']}**: {each['worst']['result']} is off by {each['worst']['error']:.3g}, "
                     f"allowed {each['worst']['allowed']:.3g} {'; '.join(each['problems'])}")
    if report["rows"]:
        lines += ["", f"Peak of products in this run (cuBLAS, 8192 cubed, bf16): {report['peak']:.0f} TFLOP/s. Medians of {report['rounds']} rounds; "
                  "spread is from the first to the last decile. TFLOP/s count 4 operations per pair, key and column (10 backward), half where causal; of products 2 m n k.", "",
                  "| chip | direction | case | ours, ms | spread | TFLOP/s | of peak | best peer | ms | spread | ratio | others |",
                  "|---|---|---|---|---|---|---|---|---|---|---|---|"]
        lines += [table_line(row) for row in report["rows"]]
    for sanitizer, verdict in report.get("sanitizer", {}).items():
        lines += ["", f"compute-sanitizer {sanitizer}: {verdict}"]
    return "\n".join(lines) + "\n"


def table_line(row):
    ours, best = row["times"]["ours"], row["best_peer"]
    others = [f"{name} {each['ms']:.3f}" for name, each in row["times"].items() if name not in ("ours", best)]
    others += [f"{name}: {why}" for name, why in row["refusals"].items()]
    cells = [row["chip"], row["direction"], row["case"]["name"], f"{ours['ms']:.3f}", f"{100 * ours['spread']:.1f} %", f"{ours['tflops']:.0f}",
             f"{100 * ours['of_peak']:.0f} %"]
    cells += [best, f"{row['times'][best]['ms']:.3f}", f"{100 * row['times'][best]['spread']:.1f} %", f"{row['ratio']:.2f}"] if best else ["", "", "", ""]
    return "| " + " | ".join(cells + ["; ".join(others).replace("|", "/")]) + " |"


def goals(rows):
    """Returns a sentence for each kernel that has a goal: bf16 attention with head dimension 128 and 8,192 tokens, and bf16 products with m = n = k =
    8,192."""
    sentences = []
    for row in rows:
        case, goal = row["case"], GOALS[row["direction"]]
        if row["direction"] == "product":
            counts, what = case["m"] == case["n"] == case["k"] == 8192 and case["epilogue"] == "none", case["transposes"]
        else:
            counts, what = case["d"] == 128 and case["s"] == 8192 and case["score"] == "none" and case["mask"] != "documents", case["mask"]
        if counts and row["ratio"]:
            verdict = "met" if row["ratio"] >= goal else "missed"
            sentences.append(f"{row['chip']} {row['direction']} {what}: {row['ratio']:.2f} of the best peer, goal {goal}: {verdict}")
    return sentences


def write(report, folder):
    (folder / "gpu.json").write_text(json.dumps(report, indent=1) + "\n")
    (folder / "gpu.md").write_text(markdown(report))
