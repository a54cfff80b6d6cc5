"""Checks the properties of a trace on which viewers rely, and prints its lanes.

Slices of a thread nest; all ranks have the same steps and the same slices; the lanes are compute, gather and reduce;
launches and waits lie in their step; the wait of a collective ends with it; the overlap agrees with the other numbers.

usage: check_trace.py TRACE.json
"""
import collections, json, sys

trace = json.load(open(sys.argv[1]))
slices = [e for e in trace["traceEvents"] if e["ph"] == "X"]
lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
ranks = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
assert all(name == f"rank {rank}" for rank, name in ranks.items())

threads = collections.defaultdict(list)
for e in slices:
    threads[e["pid"], e["tid"]].append(e)
for thread, events in threads.items():
    stack = []
    for e in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        while stack and stack[-1] <= e["ts"] + 1e-6:
            stack.pop()
        assert not stack or e["ts"] + e["dur"] <= stack[-1] + 1e-6, (lanes[thread], e)
        stack.append(e["ts"] + e["dur"])

names = {rank: sorted((e["name"], lanes[e["pid"], e["tid"]].split()[0]) for e in slices if e["pid"] == rank) for rank in ranks}
assert all(n == names[0] for n in names.values())
for rank in ranks:
    for step in [e for e in threads[rank, 0] if e["name"].startswith("step ")]:
        inside = sum(e["dur"] for e in threads[rank, 0] if e["args"].get("step") == int(step["name"][5:]))
        assert 0 < inside <= step["dur"] * 1.001, (step, inside)
totals = collections.Counter()
for e in slices:
    lane = lanes[e["pid"], e["tid"]].split()[0]
    if lane != "compute":
        totals[lane, "in"] += e["dur"]
        totals[lane, "waited"] += e["args"]["waited_us"]
        assert e["args"]["bytes"] > 0 and 0 <= e["args"]["overlap"] <= 1
for lane, other in trace["otherData"].items():
    assert abs(other["in_flight_ms"] - totals[lane, "in"] / 1e3) < 1e-3, lane
    assert abs(other["overlap"] - (1 - totals[lane, "waited"] / totals[lane, "in"])) < 1e-6
print(len(ranks), "ranks:", " ".join(sorted({n for n, _ in names[0] if n.startswith("step")})))
for lane in ("compute", "gather", "reduce"):
    print(f"{lane}:", ", ".join(dict.fromkeys(n for n, l in names[0] if l == lane)))
