"""Kills runs at random moments while they save in a thread, and compares what they leave with a run that was never ended.

    whole    the process of all ranks is killed; the run is started again with --resume
    rank     one of two processes is killed; --on-failure=restart starts both again
    elastic  one of the processes is killed; --elastic goes on with those that are left, or the run is started again on all

After a kill of a whole run, every folder step-* must be a whole save, and 'latest' must name one that is not older than
before. When a run has reached its last step, its weights and its last save must equal those of the run that was never
ended, bit for bit. An elastic run is compared with runs of the same numbers of ranks that end in order where it changed.

usage: kill-saves.py FOLDER [--kills=N] [--seconds=S] [--seed=K] [--modes=whole,rank,elastic] [--artifacts=DIR]
"""
import argparse, hashlib, json, os, pathlib, random, re, shutil, signal, subprocess, sys, time

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--kills", type=int, default=30, help="number of kills (default 30)")
parser.add_argument("--seconds", type=float, default=1e9, help="end after this time with fewer kills")
parser.add_argument("--seed", type=int, default=1, help="of the moments")
parser.add_argument("--modes", default="whole,rank,elastic")
parser.add_argument("--artifacts", type=pathlib.Path, help="folder with m.fsdp for 4 ranks, m.shard3.fsdp and m.shard2.fsdp")
given = parser.parse_args()
moments = random.Random(given.seed)
modes = given.modes.split(",")
STEPS, EVERY = 48, 2
# fsdp-run ends by SIGKILL if rank 0's process is killed after the run is complete.
AT_THE_END = (0, -signal.SIGKILL)
counts = {"whole": 0, "rank": 0, "elastic": 0}
in_flight = finished = changes = 0
deadline = time.monotonic() + given.seconds


def call(*command, cwd=given.folder):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600, cwd=cwd)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\nexit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def prepare():
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    text = " ".join(str(i * i % 977) for i in range(4000))
    (given.folder / "book.txt").write_text("".join(chr(33 + ord(c) % 34) for c in text))
    if given.artifacts:
        for name in ARTIFACTS.values():
            shutil.copy(given.artifacts / name, given.folder)
        return
    call("fsdp-modelgen", "gpt2", "--layers=1", "--hidden=24", "--heads=2", "--vocab=67", "--seq=7", "--batch=1", "-o", "m.mlir")
    call("fsdp-compile", "m.mlir", "--mesh=shard=4", "--also-mesh=shard=3,shard=2", "--grad-accum=3", "--async-save", "-o", "m.fsdp")


ARTIFACTS = {4: "m.fsdp", 3: "m.shard3.fsdp", 2: "m.shard2.fsdp"}
COMMON = ["--text=book.txt", "--lr=0.01", "--seed=3"]


def command(ranks, save, steps=STEPS, every=EVERY, resume=False, extra=()):
    line = ["fsdp-run", ARTIFACTS[ranks], *COMMON, f"--steps={steps}", f"--save={save}", f"--save-every={every}", "--keep=2"]
    if resume:
        line.append(f"--resume={save}")
    return line + [f"--export={save}.st", *extra]


def has_save(folder):
    return folder.exists() and any(each.name.startswith("step-") for each in folder.iterdir())


def check_saves(folder, least):
    """Every save is whole. Returns the step that a resume would take."""
    global in_flight
    if not folder.exists():
        return 0
    names = sorted(each.name for each in folder.iterdir())
    in_flight += any(name.startswith(".step-") for name in names)
    hashes = {}
    for name in names:
        if not name.startswith("step-"):
            continue
        index = json.loads((folder / name / "index.json").read_text())
        for file in index["files"]:
            content = (folder / name / file["name"]).read_bytes()
            if len(content) != file["bytes"] or hashlib.sha256(content).hexdigest() != file["sha256"]:
                raise SystemExit(f"{folder}/{name}/{file['name']}: is damaged")
        hashes[name] = index["sha256"]
    if (folder / "latest").exists():
        name, digest = (folder / "latest").read_text().split()
        if hashes.get(name) != digest:
            raise SystemExit(f"{folder}/latest: names {name}, which is missing or has another hash")
    else:
        name = max(hashes, default="step-0")
    step = int(name[5:])
    if step < least:
        raise SystemExit(f"{folder}/latest: went back from step {least} to {step}")
    return step


def content(save):
    """The files of the last save of a folder, and the exported weights, as hashes."""
    last = given.folder / save / f"step-{STEPS:08d}"
    files = [*sorted(last.glob("rank-*")), given.folder / f"{save}.st"]
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


def is_over():
    return sum(counts.values()) >= given.kills or time.monotonic() > deadline


def kill_whole(golden, span):
    """A run of one process with four ranks, killed again and again until it is done."""
    global finished
    folder, step = given.folder / "w", 0
    shutil.rmtree(folder, ignore_errors=True)
    while True:
        run = subprocess.Popen(command(4, "w", resume=has_save(folder)), cwd=given.folder, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        try:
            text, _ = run.communicate(timeout=None if is_over() else moments.uniform(0, span))
        except subprocess.TimeoutExpired:
            run.kill()
            text, _ = run.communicate()
        if run.returncode == -signal.SIGKILL:
            counts["whole"] += 1
            step = check_saves(folder, step)
            continue
        if run.returncode:
            raise SystemExit(f"whole: exit {run.returncode}\n{text[-2000:]}")
        break
    if content("w") != golden:
        raise SystemExit("whole: the weights differ from those of the run that was never ended")
    finished += 1


def children(pid):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def kill_ranks(mode, run, span, most):
    """Kills ranks of a run at random moments, `most` times. Returns the output of the run."""
    while run.poll() is None:
        if most == 0 or is_over():
            break
        time.sleep(moments.uniform(0, span))
        ranks = children(run.pid)
        if not ranks:
            continue
        try:
            os.kill(moments.choice(ranks), signal.SIGKILL)
        except ProcessLookupError:
            continue
        counts[mode] += 1
        most -= 1
    run.wait(timeout=300)
    return (given.folder / "log").read_text()


def start(line):
    """Starts a run whose output goes to a file, so that it never waits for a reader."""
    with open(given.folder / "log", "w") as log:
        return subprocess.Popen(line, cwd=given.folder, stdout=log, stderr=subprocess.STDOUT)


def kill_rank(golden, span):
    """A run with a process per rank that restarts by itself."""
    global finished
    shutil.rmtree(given.folder / "r", ignore_errors=True)
    line = command(2, "r", extra=["--processes", "--on-failure=restart", "--max-restarts=1000"])
    run = start(line)
    text = kill_ranks("rank", run, span, most=12)
    if run.returncode not in AT_THE_END:
        raise SystemExit(f"rank: exit {run.returncode}\n{text[-2000:]}")
    check_saves(given.folder / "r", STEPS)
    if content("r") != golden:
        raise SystemExit("rank: the weights differ from those of the run that was never ended")
    finished += 1


def segments(text):
    """(ranks, first step) of the parts of an elastic run, from its output. Leaves out parts that were killed before a step."""
    ranks, parts = 4, [(4, 0)]
    for line in text.splitlines():
        if "restarting from" in line:
            found = re.search(r" on (\d+) ranks", line)
            ranks = int(found[1]) if found else ranks
            parts.append((ranks, 0 if "from the beginning" in line else None))
        elif found := re.search(r"^resumed after step (\d+) ", line):
            parts[-1] = (ranks, int(found[1]))
    return [part for part in parts if part[1] is not None]


def kill_elastic(span):
    """A run that goes on with the ranks that are left. Its reference ends in order where the number of ranks changed."""
    global finished, changes
    for name in ("e", "f"):
        shutil.rmtree(given.folder / name, ignore_errors=True)
    run = start(command(4, "e", extra=["--processes", "--on-failure=restart", "--elastic=2:4", "--max-restarts=1000"]))
    text = kill_ranks("elastic", run, span, most=2)
    if run.returncode not in AT_THE_END:
        raise SystemExit(f"elastic: exit {run.returncode}\n{text[-3000:]}")
    parts = segments(text)
    parts = [part for i, part in enumerate(parts) if i + 1 == len(parts) or parts[i + 1][1] > part[1]]
    for (ranks, first), (_, end) in zip(parts, parts[1:] + [(0, STEPS)]):
        if end > first:
            call(*command(ranks, "f", steps=end, every=0, resume=first > 0))
    changes += len({ranks for ranks, _ in parts}) - 1
    if content("e") != content("f"):
        raise SystemExit(f"elastic: the weights differ from those of runs with {parts}\n{text[-3000:]}")
    finished += 1


prepare()
call(*command(4, "golden4", extra=["--wait-for-saves"]))
call(*command(2, "golden2", extra=["--wait-for-saves"]))
whole, pair = content("golden4"), content("golden2")
begin = time.monotonic()
call(*command(4, "timed"))
span = 0.7 * (time.monotonic() - begin)
lap = 0
while not is_over():
    mode = modes[lap % len(modes)]
    lap += 1
    try:
        if mode == "whole":
            kill_whole(whole, span)
        elif mode == "rank":
            kill_rank(pair, span)
        else:
            kill_elastic(span)
    except SystemExit:
        print(f"found after {counts}, {finished} finished runs", file=sys.stderr)
        raise
print(f"{sum(counts.values())} kills: {counts['whole']} of a whole run, {counts['rank']} of a rank, "
      f"{counts['elastic']} of a rank of an elastic run with {changes} changes of the number of ranks", flush=True)
print(f"{in_flight} whole runs were killed during a save; every earlier save was whole")
print(f"{finished} runs reached the last step: the same bits as the runs that were never ended")
