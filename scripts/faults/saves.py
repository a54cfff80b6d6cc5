"""Rows with a fault during a save: killed and stopped ranks, failing writes, folders without permission.

After the fault, another run resumes from the saves that are left. The weights of this run must be bit for bit equal to the weights of a run
without a fault.
"""
import signal
import time

from faults.bench import Failed, Job, Row, end_of

HOWS = ("threads", "processes", "env", "mpi")
STEPS = "--steps=6"
SAVING = ["--text=a.txt", STEPS, "--save=saves", "--save-every=1"]
WHOLE = [r"saves(/(latest|step-\d+(/(rank-\d+\.safetensors|index\.json))?))?", r"(mine|whole)\.st"]


def expect_recovery(bench):
    """Resumes from the saves, or begins a new run if there are none. Compares the weights with the weights of a run without a fault."""
    bench.fsdp_run("m2.fsdp", "--text=a.txt", STEPS, "--export=whole.st")
    saved = (bench.folder / "saves").is_dir() and any(p.name.startswith("step-") for p in (bench.folder / "saves").iterdir())
    resume = ["--resume=saves"] if saved else []
    if saved or not (bench.folder / "saves").exists():
        bench.fsdp_run("m2.fsdp", *SAVING, *resume, "--export=mine.st")
    else:
        bench.fsdp_run("m2.fsdp", *SAVING, "--export=mine.st")
    if (bench.folder / "mine.st").read_bytes() != (bench.folder / "whole.st").read_bytes():
        raise Failed("the weights after the resume differ from those of an undisturbed run")
    bench.expect_clean(WHOLE)


def inside(how, kind, rank):
    """Kills or stops the rank `rank` while it writes its third save."""
    def run(bench):
        job = Job(bench, how).start(*SAVING, f"--inject-rank-fault={kind}:{rank}:save:3")
        pid = job.early_pid(rank)
        since = end_of(pid) if kind == "kill" else stop_of(pid)
        one = how == "env"
        pattern = {"kill": {"processes": rf"error: rank {rank} \(process \d+\) was killed by signal 9",
                            "env": rf"error: .*rank {rank} \(process \d+\) is gone", "mpi": rf"rank {rank}\b"},
                   "stop": {"processes": rf"error: rank {rank} \(process \d+\) has sent no heartbeat",
                            "env": rf"error: .*rank {rank} \(process \d+\) has sent no heartbeat",
                            "mpi": rf"error: .*rank {rank}\b.*sent no heartbeat"}}[kind][how]
        code = 4 if kind == "stop" else 137 if how == "mpi" else 3
        limit = 5 if how == "mpi" else 2.5
        seconds = job.named(pattern, since, limit, but=(rank,) if one else ())
        slow = job.slow
        job.codes(code, but=(rank,) if one else ())
        expect_recovery(bench)
        if slow:
            raise Failed(slow, slow=True)
        return seconds
    return run


def stop_of(pid):
    """Waits until a process is in the state "stopped". Returns the time."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "T":
                    return time.monotonic()
        except OSError:
            break
        time.sleep(0.002)
    raise Failed(f"process {pid} did not stop")


def whole_process_killed(bench):
    """In a run whose ranks are threads of one process, kills this process while it writes its third save."""
    job = Job(bench, "threads").start(*SAVING, "--inject-rank-fault=kill:1:save:3")
    job.codes(-signal.SIGKILL)
    expect_recovery(bench)
    return None


def failing(how, fault, words, rank=0):
    """Makes all writes of the rank `rank` in the folder of saves fail, beginning with the tenth write."""
    def run(bench):
        job = Job(bench, how, LD_PRELOAD=bench.library("libfsdprt_failpoint.so"), FAIL_IN="saves",
                  FAIL_AT="10", FAIL_HOW=fault, **({} if how == "threads" else {"FAIL_RANK": str(rank)}))
        job.start(*SAVING)
        job.named(rf"error: .*step \d could not be saved: .*{words}; earlier saves are untouched", 0, 0)
        job.codes(1)
        expect_recovery(bench)
        return None
    return run


def read_only(how):
    """Mounts the folder of saves as a read-only file system."""
    def run(bench):
        (bench.folder / "saves").mkdir()
        bench.kept("saves")
        inner = "mount --bind saves saves && mount -o remount,bind,ro saves && exec \"$@\""
        tool = bench.tool("fsdp-run")
        command = ["unshare", "-m", "sh", "-c", inner, "sh", tool, "m2.fsdp", *SAVING]
        text = bench.call(*command, *(["--processes"] if how == "processes" else []), code=2)
        if "saves: cannot write to the folder: Read-only file system" not in text:
            raise Failed(f"expected a message about the read-only folder, found:\n{text}")
        bench.expect_clean()
        return None
    return run


def too_large(bench):
    """Limits files to 64 KiB (ulimit -f). The ranks are threads, because the control block that processes share is larger than this limit."""
    command = ["bash", "-c", "ulimit -f 64; exec \"$@\"", "sh", bench.tool("fsdp-run"), "m2.fsdp", *SAVING]
    text = bench.call(*command, code=1)
    if "File too large; earlier saves are untouched" not in text:
        raise Failed(f"expected 'File too large', found:\n{text}")
    expect_recovery(bench)


def rows():
    group = "Faults while a run saves"
    for how in HOWS:
        needs = "mpi" if how == "mpi" else ""
        for rank in (0, 1):
            if how == "threads":
                continue
            limit = 5 if how == "mpi" else 2.5
            yield Row(f"save/{how}/kill-{rank}", group, f"kill -9 of rank {rank} inside of a save",
                      "code 137; the resumed run has the same bits" if how == "mpi" else "code 3: rank; the resumed run has the same bits",
                      inside(how, "kill", rank), limit, needs, short=rank == 1 and how == "processes")
            yield Row(f"save/{how}/stop-{rank}", group, f"SIGSTOP of rank {rank} inside of a save",
                      "code 4: rank; the resumed run has the same bits", inside(how, "stop", rank), limit, needs)
        for fault, words, planted in (("full", "No space left on device", "the disk is full"),
                                      ("io", "Input/output error", "writes fail with an I/O error")):
            for rank in (0, 1) if how != "threads" else (0,):
                yield Row(f"save/{how}/{fault}-{rank}", group, f"{planted}, for rank {rank}" if how != "threads" else planted,
                          "code 1: step could not be saved; the resumed run has the same bits", failing(how, fault, words, rank), 0, needs,
                          short=how == "processes" and rank == 1)
    yield Row("save/threads/kill", group, "kill -9 of the process inside of a save", "the shell names it; the resumed run has the same bits",
              whole_process_killed)
    yield Row("save/threads/file-size", group, "files may have 64 KiB (ulimit -f)", "code 1: file too large", too_large)
    for how in ("threads", "processes"):
        yield Row(f"save/{how}/read-only", group, "the folder is read-only", "code 2, at the start", read_only(how), 0, "root")


ROWS = list(rows())
