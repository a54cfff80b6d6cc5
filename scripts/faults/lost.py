"""Rows in which a rank, a launcher or a host process is killed or stopped."""
import os
import signal
import time

from faults.bench import Failed, Job, Row, end_of, send, state

FOREVER = ["--text=a.txt", "--steps=1000000000"]
LIMIT = {"processes": 2.5, "env": 2.5, "mpi": 5}
KINDS = {"kill -9": signal.SIGKILL, "abort": signal.SIGABRT}
# Messages about the loss of rank {r}. The launcher of fsdp-run, the host process, or mpirun of Open MPI prints these messages.
NAMES = {
    "processes": r"error: rank {r} \(process \d+\) was killed by signal {n} ",
    "env": r"error: rank \d: rank {r} \(process \d+\) is gone; it was killed or ended before the run did",
    "mpi": r"rank {r} with PID|(error: .*rank {r}\b)",
}


def lost(how, kind, rank):
    def run(bench):
        job = Job(bench, how).start(*FOREVER).reach()
        since = send(job.pid(rank), KINDS[kind])
        # If a signal killed a rank, mpirun exits with 128 plus the number of the signal.
        code = {"processes": 3, "env": 3, "mpi": 128 + KINDS[kind]}[how]
        pattern = NAMES[how].format(r=rank, n=int(KINDS[kind]))
        return job.check(code, pattern, since, LIMIT[how], but=(rank,) if how == "env" else ())
    return run


def exits(how, rank):
    """Ends a rank with exit code 0 in the middle of the run."""
    def run(bench):
        job = Job(bench, how).start(*FOREVER, f"--inject-rank-fault=exit:{rank}:compute:20")
        since = end_of(job.early_pid(rank))
        pattern = NAMES[how].format(r=rank, n=0) if how != "processes" else \
            rf"error: rank {rank} \(process \d+\) ended with exit code 0 before the run did"
        return job.check((1,) if how == "mpi" else 3, pattern, since, LIMIT[how], but=(rank,) if how == "env" else ())
    return run


def stopped(how, rank):
    def run(bench):
        job = Job(bench, how).start(*FOREVER).reach()
        pid = job.pid(rank)
        since = send(pid, signal.SIGSTOP)
        pattern = rf"error: .*rank {rank} \(process \d+\) has sent no heartbeat for" if how != "mpi" else \
            rf"error: .*rank {rank}\b.*sent no heartbeat"
        return job.check(4, pattern, since, LIMIT[how], but=(rank,) if how == "env" else ())
    return run


def lost_before_all_met(bench):
    """Kills rank 1 while it waits for rank 2, which has not been started."""
    job = Job(bench, "env", ranks=3).start(*FOREVER, only=[0, 1])
    time.sleep(1.2)  # in this time, the host prints twice which ranks are missing
    since = send(job.pid(1), signal.SIGKILL)
    return job.check(3, r"rank 1 \(process \d+ on .*\) was lost before all ranks had met", since, 2.5, but=(1,))


def thread_process(number):
    """Kills the process of a run in which all ranks are threads of one process. No process is left that could print a message, so only the exit code
    is checked."""
    def run(bench):
        job = Job(bench, "threads").start(*FOREVER).reach()
        since = send(job.pid(-1), number)
        job.codes(-number)
        bench.expect_clean()
        return job.processes[-1].ended - since
    return run


def thread_hangs(how):
    def run(bench):
        job = Job(bench, how).start(*FOREVER, "--timeout-seconds=2", "--inject-rank-fault=hang:1:compute:3")
        since = job.processes[-1].begun
        return job.check(4, r"error: step 3: rank 0 waited 2 s at collective .* for rank 1 .*it made no progress",
                         since, 0)
    return run


def command_killed(how):
    """Kills the process that started the ranks, and measures the time until the processes of all ranks have ended."""
    def run(bench):
        job = Job(bench, how).start(*FOREVER).reach()
        since = send(job.processes[-1].popen.pid, signal.SIGKILL)
        job.codes(-signal.SIGKILL)
        bench.expect_clean()
        return time.monotonic() - since
    return run


def launcher_stopped(bench):
    job = Job(bench, "processes").start(*FOREVER).reach()
    since = send(job.processes[-1].popen.pid, signal.SIGSTOP)
    return job.check(-signal.SIGKILL, r"error: .*the process that started the ranks .* has sent no heartbeat for", since, 2.5)


def host_of(bench):
    for pid in bench.marked():
        if state(pid)[1] == "fsdp-host":
            return pid
    raise Failed("there is no process 'fsdp-host'")


def host(number, code, pattern):
    def run(bench):
        job = Job(bench, "env").start(*FOREVER).reach()
        since = send(host_of(bench), number)
        return job.check(code, pattern, since, 2.5)
    return run


def mpirun_stopped(bench):
    """Stops mpirun for 3 s. The ranks must not stop. Then continues mpirun, and ends the run by sending SIGTERM to a rank."""
    job = Job(bench, "mpi").start(*FOREVER).reach()
    command = job.processes[-1].popen.pid
    send(command, signal.SIGSTOP)
    time.sleep(3)
    if any(state(job.pid(rank))[0] in "ZT" for rank in (0, 1)):
        raise Failed("a rank ended although only mpirun was stopped")
    send(command, signal.SIGCONT)
    since = send(job.pid(0), signal.SIGTERM)
    job.codes(143)
    bench.expect_clean()
    return time.monotonic() - since


def rows():
    words = {"processes": "code 3: rank was killed by signal", "env": "code 3: rank is gone",
             "mpi": "code 128 + signal; mpirun names the rank"}
    for how in ("processes", "env", "mpi"):
        needs = "mpi" if how == "mpi" else ""
        for rank in (0, 1):
            for kind in KINDS:
                yield Row(f"lost/{how}/{kind.replace(' ', '')}-{rank}", "Lost ranks", f"{kind} of rank {rank}", words[how],
                          lost(how, kind, rank), LIMIT[how], needs, short=rank == 1 and kind == "kill -9" and how != "mpi")
            yield Row(f"lost/{how}/exit-{rank}", "Lost ranks", f"rank {rank} calls exit(0) in a step",
                      "code 1; mpirun names the rank" if how == "mpi" else "code 3: rank ended before the run did",
                      exits(how, rank), LIMIT[how], needs)
            yield Row(f"stopped/{how}/{rank}", "Stopped ranks", f"SIGSTOP of rank {rank}",
                      "code 4: rank has sent no heartbeat", stopped(how, rank), LIMIT[how], needs,
                      short=rank == 1 and how != "env")
    yield Row("lost/env/before-meeting", "Lost ranks", "kill -9 of rank 1 while rank 2 is missing",
              "code 3: rank 1 was lost before all ranks had met", lost_before_all_met, 2.5)
    for name, number in (("kill", signal.SIGKILL), ("abort", signal.SIGABRT)):
        yield Row(f"lost/threads/{name}", "Lost ranks", f"{name} of the process of all ranks",
                  f"ends by signal {int(number)}; the shell names it", thread_process(number), 2.5)
    for how in ("threads", "processes"):
        yield Row(f"hang/{how}", "Hanging ranks", "rank 1 makes no progress, --timeout-seconds=2",
                  "code 4: rank 0 waited 2 s for rank 1", thread_hangs(how))
    yield Row("launcher/processes/kill", "Launchers and hosts", "kill -9 of the launcher", "the shell names it; ranks end",
              command_killed("processes"), 2.5, short=True)
    yield Row("launcher/processes/stop", "Launchers and hosts", "SIGSTOP of the launcher",
              "a rank names the launcher and ends it; ranks end", launcher_stopped, 2.5, short=True)
    gone = r"error: .*the process that watches the ranks \(started by rank 0\) is gone"
    yield Row("host/env/kill", "Launchers and hosts", "kill -9 of the host", "code 3: the process that watches the ranks is gone",
              host(signal.SIGKILL, 3, gone), 2.5)
    still = r"error: .*the process that watches the ranks .* has sent no heartbeat for"
    yield Row("host/env/stop", "Launchers and hosts", "SIGSTOP of the host",
              "code 4: the process that watches the ranks has sent no heartbeat", host(signal.SIGSTOP, 4, still), 2.5,
              short=True)
    yield Row("launcher/mpi/kill", "Launchers and hosts", "kill -9 of mpirun", "the shell names it; ranks end",
              command_killed("mpi"), 5, "mpi")
    yield Row("launcher/mpi/stop", "Launchers and hosts", "SIGSTOP of mpirun for 3 s, then SIGTERM to rank 0",
              "ranks go on; code 143", mpirun_stopped, 0, "mpi")


ROWS = list(rows())
