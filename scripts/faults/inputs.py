"""Rows in which input files change during the run, or an input is a named pipe."""
import os
import time

from faults.bench import Failed, Job, Row

HOWS = ("threads", "processes", "env", "mpi")


def changed(how, change, code, pattern, limit):
    """Changes the file of tokens while a run uses it. Before the run ends because of the change, it must save the steps that it took before the
    change."""
    def run(bench):
        text = bench.folder / "t.txt"
        text.write_bytes((bench.folder / "a.txt").read_bytes())
        bench.kept("t.txt")
        job = Job(bench, how).start("--text=t.txt", "--steps=1000000000", "--save=saves").reach()
        since = time.monotonic()
        change(text)
        seconds = job.check(code, pattern, since, limit, files=[r"saves(/(latest|step-\d+(/[^/.]+(\.safetensors|\.json))?))?"])
        bench.fsdp_run("m2.fsdp", "--text=a.txt", "--resume=saves", "--other-data", "--steps=1", code=2)  # has later steps
        return seconds
    return run


def cut(text):
    os.truncate(text, 99)


def rewrite(text):
    """Changes the content of a file but not its size."""
    with open(text, "r+b") as file:
        file.write(bytes((5 * i) % 97 for i in range(5000)))


def grow(text):
    with open(text, "ab") as file:
        file.write(b"more")


def replaced(how, remove):
    """Replaces or removes the path of an input file that the run has opened. The run must continue with the file that it opened."""
    def run(bench):
        text = bench.folder / "t.txt"
        text.write_bytes((bench.folder / "a.txt").read_bytes())
        bench.kept("t.txt")
        steps = "--steps=600" if how != "mpi" else "--steps=100"
        bench.fsdp_run("m2.fsdp", "--text=a.txt", steps, "--export=whole.st")
        bench.kept("whole.st")
        job = Job(bench, how).start("--text=t.txt", steps, "--export=mine.st")
        job.reach(r"^step 1/")
        if remove:
            text.unlink()
        else:
            os.replace(bench.folder / "b.txt", text)
        job.codes(0)
        if (bench.folder / "mine.st").read_bytes() != (bench.folder / "whole.st").read_bytes():
            raise Failed("the weights are not those of the file that was opened")
        bench.expect_clean(["mine.st"])
        return None
    return run


def pipe(how, options, code, pattern):
    """Passes as an input a named pipe that no process opens for writing."""
    def run(bench):
        os.mkfifo(bench.folder / "pipe")
        bench.kept("pipe")
        artifact = "pipe" if options == ["artifact"] else None
        job = Job(bench, how).start(*(["--text=a.txt"] if artifact else options), "--steps=4", artifact=artifact)
        return job.check(code, pattern, max(process.begun for process in job.processes.values()), 1)
    return run


def rows():
    group = "Inputs that change"
    for how in HOWS:
        needs = "mpi" if how == "mpi" else ""
        ended = r"(error|warning): .*t\.txt: .*changed while it was in use.*; the run ended after step"
        for name, planted, change in (("cut", "the token file is cut", cut), ("rewritten", "the token file is rewritten in place", rewrite),
                                      ("grown", "the token file grows", grow)):
            yield Row(f"input/{how}/{name}", group, planted, "code 1: file changed, with a save",
                      changed(how, change, 1, ended, 0), 0, needs,
                      short=how == "processes" and name != "grown")
        yield Row(f"input/{how}/removed", group, "the token file is removed", "code 0: the weights of the opened file",
                  replaced(how, True), 0, needs)
        yield Row(f"input/{how}/replaced", group, "another file takes the name of the token file",
                  "code 0: the weights of the opened file", replaced(how, False), 0, needs)
    for how in ("threads", "env"):
        for name, options in (("text", ["--text=pipe"]), ("init", ["--text=a.txt", "--init=pipe"]),
                              ("resume", ["--text=a.txt", "--resume=pipe"]), ("artifact", ["artifact"])):
            yield Row(f"pipe/{how}/{name}", "Named pipes as inputs", f"a named pipe as {'artifact' if name == 'artifact' else '--' + name}",
                      "code 2: the file's name, at once", pipe(how, options, 2, r"error: .*pipe"), 1,
                      short=how == "threads" and name == "text")


ROWS = list(rows())
