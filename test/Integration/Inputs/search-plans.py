"""Checks --search on a model: usage MODEL RANKS LIMIT CLUSTER [options]

1. The pruned search and the search with --search-all find the same best plan, in the same first row of the table. The pruned search plans fewer
   candidates, and prints the same table when it is repeated on one processor: other processors only plan ahead.
2. Each of a sample of rows, compiled by hand with --explain, has the time and the arena of the row. No row is faster than the best.
3. The configuration file of -o compiles to the plan of the first row.
"""
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

model, ranks, limit, cluster, *rest = sys.argv[1:]
ROW = re.compile(r"^ +([0-9.]+) ms +([0-9]+)  (compute|links|memory|host link) +(--.*)$", re.M)


DEFAULTS = ("--sequence-parallel=false", "--context-attention=gather")  # refused for meshes without their axes


def compile_step(*options, code=0, before=()):
    names = {option.split("=")[0] for option in options}
    kept = [option for option in rest if option.split("=")[0] not in names]  # a row may replace --grad-accum
    if not any(option.startswith("--search") for option in options):
        kept = [option for option in kept if option not in DEFAULTS]
    done = subprocess.run([*before, "fsdp-compile", model, *kept, *options], capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(f"fsdp-compile {' '.join(options)}: expected exit code {code}, found {done.returncode}\n{done.stderr}")
    if "internal error" in done.stderr:
        sys.exit(done.stderr)
    return done.stdout


def explain(*options):
    plan = json.loads(compile_step(*options, "--explain=json"))
    return f"{1e3 * plan['schedule']['scheduled_seconds']:.3f}", str(plan["memory"]["peak"]), plan


def numbers(table):
    refused = re.search(r"; (\d+) refused$", table, re.M)
    found = re.search(r"^(\d+) candidates, (\d+) planned", table, re.M)
    return [int(found[1]), int(found[2]) + (int(refused[1]) if refused else 0)]


search = [f"--search={ranks}", f"--cluster={cluster}"] + ([f"--memory-limit={limit}"] if limit != "0" else [])
base = search[1:]
pruned = compile_step(*search, "-o", "best.json")
cpus = os.sched_getaffinity(0)
pool = ThreadPoolExecutor(len(cpus))  # for compilations that use one processor
repeated = pool.submit(compile_step, *search, before=("taskset", "-c", str(min(cpus))))
whole = compile_step(*search, "--search-all")
if repeated.result() != pruned:
    sys.exit("a search on one processor prints another table")
rows, all_rows = ROW.findall(pruned), ROW.findall(whole)
if rows[0] != all_rows[0]:
    sys.exit(f"pruned and exhaustive search differ:\n{rows[0]}\n{all_rows[0]}")
if any(row not in all_rows for row in rows):
    sys.exit("the pruned table has a row that the exhaustive table does not have")
candidates, planned = numbers(pruned)
if numbers(whole) != [candidates, candidates]:
    sys.exit(f"expected that --search-all plans all {candidates} candidates, found {numbers(whole)}")
if limit != "0" and planned >= candidates:
    sys.exit(f"expected that the search leaves out candidates, found {planned} of {candidates} planned")
best = rows[0]
step = max(1, len(all_rows) // 12)
sample = all_rows[::step]  # begins with the best row
plans = list(pool.map(lambda row: explain(*base, *row[3].split()), sample))
for row, (time, bytes_, _) in zip(sample, plans):
    if (time, bytes_) != row[:2]:
        sys.exit(f"{row[3]}: the table has {row[:2]}, --explain has {(time, bytes_)}")
    if float(time) < float(best[0]):
        sys.exit(f"{row[3]} takes {time} ms, which is less than {best[0]} ms of the best plan")
by_hand = plans[0][2]
done = subprocess.run(["fsdp-compile", model, "--config=best.json", "--explain=json"], capture_output=True, text=True)
if done.returncode or json.loads(done.stdout) != by_hand:
    sys.exit(f"the plan of best.json is not that of {best[3]}\n{done.stderr}")
print(f"{candidates} candidates, {planned} planned, best {best[0]} ms: same as of all")
