"""Rows in which fsdp-run restarts: after a lost rank, with a damaged save, and with fewer ranks."""
import os
import signal
import time

from faults.bench import Failed, Job, Row, end_of, send, state

GROUP = "Restarts"
# With this limit of the bandwidth, a step takes at least 20 ms, so the fault occurs before the end of the run.
SLOW = ["--text=a.txt", "--steps=120", "--link-bandwidth=10000000", "--save=saves", "--save-every=10", "--keep=6",
        "--on-failure=restart"]
WHOLE = [r"saves(/(latest|step-\d+(/(rank-\d+\.safetensors|index\.json))?))?", r"(mine|whole)\.st"]


def expect_bits(job):
    """Checks that a run ended normally, and that its weights are bit for bit equal to the weights of a run without a fault."""
    bench = job.codes(0).bench
    bench.fsdp_run("m2.fsdp", "--text=a.txt", "--steps=120", "--export=whole.st")
    if (bench.folder / "mine.st").read_bytes() != (bench.folder / "whole.st").read_bytes():
        raise Failed("the weights after the restart differ from those of an undisturbed run")


def restarts(kind, fault):
    def run(bench):
        job = Job(bench, "processes").start(*SLOW, "--export=mine.st").reach(r"^saved step [0-9]+0:")
        since = send(job.pid(1), fault)
        seconds = job.named(r"restarting from the last save in saves", since, 2.5)
        expect_bits(job)
        job.finish(0, files=WHOLE)
        return seconds
    return run


def damaged(what):
    """Stops all processes, damages the newest save, and kills both ranks."""
    def run(bench):
        job = Job(bench, "processes").start(*SLOW, "--export=mine.st").reach(r"^saved step [3-9]0:|^saved step [0-9]+0:")
        launcher = job.processes[-1].popen.pid
        job.processes[-1].when(r"^saved step 30:")
        ranks = [job.pid(0), job.pid(1)]
        send(launcher, signal.SIGSTOP)
        for pid in ranks:
            send(pid, signal.SIGSTOP)
        time.sleep(0.05)
        saves = bench.folder / "saves"
        newest = saves / (saves / "latest").read_text().split()[0]
        what(saves, newest)
        since = send(ranks[1], signal.SIGKILL)
        send(ranks[0], signal.SIGKILL)  # otherwise rank 0 might complete another save
        send(launcher, signal.SIGCONT)
        seconds = job.named(r"restarting from the last save in saves", since, 2.5)
        job.named(r"warning: saves/.*resuming from saves/step-\d+, the newest undamaged save", 0, 0)
        expect_bits(job)
        job.finish(0, files=WHOLE)
        return seconds
    return run


def flip(saves, newest):
    with open(newest / "rank-00001.safetensors", "r+b") as file:
        file.seek(5000)
        byte = file.read(1)
        file.seek(5000)
        file.write(bytes([byte[0] ^ 1]))


def cut(saves, newest):
    os.truncate(newest / "rank-00000.safetensors", 1000)


def unindexed(saves, newest):
    (newest / "index.json").unlink()


def elastic(kind, fault):
    """Causes a fault in a run of three ranks. The run has artifacts for three and for two ranks."""
    def run(bench):
        job = Job(bench, "processes", ranks=3).start(*SLOW, "--elastic=2:3").reach(r"^saved step [0-9]+0:")
        since = send(job.pid(2), fault)
        seconds = job.named(r"restarting from the last save in saves on 2 ranks with (\./)?m2\.fsdp", since, 2.5)
        job.named(r"^step 120/120", 0, 0)
        job.finish(0, files=WHOLE)
        return seconds
    return run


def below_minimum(bench):
    """Kills one of two ranks. There is no artifact for a single rank, so the run cannot restart."""
    options = ["--text=a.txt", "--steps=100000000", "--save=saves", "--save-every=1000000",
               "--on-failure=restart", "--elastic=2:3"]
    job = Job(bench, "processes").start(*options).reach()
    since = send(job.pid(1), signal.SIGKILL)
    return job.check(3, r"rank 1 .*was killed by signal 9.*; no restart: ", since, 2.5, files=["saves"])


def under_launcher(bench):
    """Starts two processes with the artifact for three ranks. These processes must use the artifact for two ranks instead."""
    job = Job(bench, "env").start("--text=a.txt", "--steps=4", "--elastic=2:3", artifact="m3.fsdp")
    job.named(r"m2\.fsdp", 0, 0, but=(1,))
    job.codes(0)
    bench.expect_clean()
    return None


def at_most(bench):
    """Kills a rank after each start, until --max-restarts is reached."""
    job = Job(bench, "processes").start("--text=a.txt", "--steps=10", "--save=saves", "--save-every=100", "--on-failure=restart",
                                        "--max-restarts=2", "--inject-rank-fault=kill:1:compute:2")
    for number in (1, 2):
        job.named(rf"restarting from the beginning \({number} of at most 2\)", 0, 0)
    job.check(3, r"error: rank 1 .*was killed by signal 9", 0, files=["saves"])


def rows():
    for name, number in (("kill", signal.SIGKILL), ("stop", signal.SIGSTOP)):
        yield Row(f"restart/processes/{name}", GROUP, f"{'kill -9' if name == 'kill' else 'SIGSTOP'} of rank 1, --on-failure=restart",
                  "code 0: the same bits", restarts(name, number), 2.5, short=name == "kill")
        yield Row(f"elastic/processes/{name}", GROUP, f"{'kill -9' if name == 'kill' else 'SIGSTOP'} of rank 2 of 3, --elastic=2:3",
                  "code 0: goes on with 2 ranks", elastic(name, number), 2.5, short=name == "kill")
    for name, planted, what in (("flip", "a bit of the newest save is changed", flip), ("cut", "a file of the newest save is cut", cut),
                                ("index", "the newest save has no index", unindexed)):
        yield Row(f"restart/processes/damaged-{name}", GROUP, f"kill -9 of both ranks; {planted}",
                  "code 0: the save before; the same bits", damaged(what), 2.5, short=name == "flip")
    yield Row("elastic/processes/minimum", GROUP, "kill -9 of rank 1 of 2, --elastic=2:3", "code 3: no restart", below_minimum, 2.5)
    yield Row("elastic/env/two-of-three", GROUP, "2 processes of an artifact for 3 ranks, --elastic=2:3",
              "code 0: the artifact for 2 ranks", under_launcher)
    yield Row("restart/processes/at-most", GROUP, "a loss at each start, --max-restarts=2", "code 3 after two restarts", at_most)


ROWS = list(rows())
