"""Rows in which two ranks have different values of something that must be equal in all ranks: artifact, options, files, job, or number of ranks."""
import time

from faults.bench import Job, Row

LIMIT = 0.5


def disagree(how, options, first, second, pattern):
    """Returns a function that starts two ranks with `options`. `first` and `second` are further settings of rank 0 and of rank 1."""
    def run(bench):
        job = Job(bench, how).start(*options, each={0: first, 1: second})
        # With MPI, the time is measured from the moment at which mpirun has started both processes.
        since = max(process.begun for process in job.processes.values()) if how == "env" else started(bench, job)
        return job.check(2, pattern, since, LIMIT)
    return run


def started(bench, job):
    """Returns the time at which both ranks of mpirun exist."""
    until = time.monotonic() + 10
    while time.monotonic() < until and job.processes[-1].ended is None:
        try:
            job.pid(0), job.pid(1)
            break
        except Exception:
            time.sleep(0.01)
    return time.monotonic()


TEXT = "--text=a.txt"
# Each entry contains a name, the difference, the options of both ranks, additional settings of rank 0, additional settings of rank 1, and the
# expected message.
DIFFERENT = [
    ("artifact", "another artifact on rank 1", [TEXT, "--steps=4"], {}, {"artifact": "other2.fsdp"},
     r"error: .*the artifact.* is '[^']*' .*on rank 0 and '[^']*'.* on rank 1"),
    ("option", "--lr=0.1 on rank 1", [TEXT, "--steps=4"], {"options": []}, {"options": ["--lr=0.1"]},
     r"error: .*--lr.* is '[^']*' on rank 0 and '0\.1\d*' on rank 1"),
    ("steps", "--steps=5 on rank 1", [TEXT], {"options": ["--steps=4"]}, {"options": ["--steps=5"]},
     r"error: .*--steps is '4' on rank 0 and '5' on rank 1"),
    ("text", "another --text on rank 1", ["--steps=4"], {"options": [TEXT]}, {"options": ["--text=b.txt"]},
     r"error: .*the content of --text is '.*' \(a.txt\) on rank 0 and '.*' \(b.txt\) on rank 1"),
    ("init", "another --init on rank 1", [TEXT, "--steps=4"], {"options": ["--init=w1.st"]}, {"options": ["--init=w2.st"]},
     r"error: .*the content of --init is '.*' \(w1.st\) on rank 0 and '.*' \(w2.st\) on rank 1"),
    ("resume", "another --resume on rank 1", [TEXT, "--steps=4", "--other-data", "--seed=1"], {"options": ["--resume=s1"]},
     {"options": ["--resume=s2"]},
     r"error: .*the content of the save to resume from is '.*' \(s1/.*\) on rank 0 and '.*' \(s2/.*\) on rank 1"),
    ("missing", "a --text on rank 1 that does not exist", ["--steps=4"], {"options": [TEXT]}, {"options": ["--text=none.txt"]},
     r"error: .*rank 1: .*none\.txt"),
]


def job_ids(bench):
    job = Job(bench, "env").start(TEXT, "--steps=4", "--rendezvous-timeout=3", each={
        0: {"env": {"FSDP_RUN_JOB_ID": "A"}}, 1: {"env": {"FSDP_RUN_JOB_ID": "B"}}})
    seconds = job.named(r"is of job 'B' .*ranks of job 'A' ", max(p.begun for p in job.processes.values()), LIMIT, but=(0,))
    slow = job.slow
    # Rank 0 rejects the process with rank 1 of another job, and continues to wait for rank 1 of its own job. When this wait ends, the error of rank 0
    # names the rejected process.
    job.named(r"rank 1 of 2 \(rank 1, process \d+ on .*, of job 'B' .* was turned away\) did not arrive within 3 s", 0, 0, but=(1,))
    job.codes(2, but=(0,)).codes(4, but=(1,))
    job.slow = slow
    return job.check((2, 4), "error:", 0) and seconds


def numbered(first, second, code, pattern, world=None):
    """Starts two processes that are given the ranks `first` and `second`."""
    def run(bench):
        job = Job(bench, "env").start(TEXT, "--steps=4", number={0: first, 1: second}, world=world)
        return job.check(code, pattern, max(p.begun for p in job.processes.values()), LIMIT)
    return run


def alone_of_three(bench):
    """A launcher starts 3 ranks of an artifact for 2 ranks."""
    job = Job(bench, "env", ranks=3).start(TEXT, "--steps=4", artifact="m2.fsdp")
    return job.check(2, r"error: .*m2\.fsdp: compiled for 2 ranks.*3", max(p.begun for p in job.processes.values()), LIMIT)


def rows():
    for how in ("env", "mpi"):
        for name, planted, options, first, second, pattern in DIFFERENT:
            yield Row(f"disagree/{how}/{name}", "Ranks that disagree", planted, "code 2: both values and ranks",
                      disagree(how, options, first, second, pattern), LIMIT,
                      "mpi" if how == "mpi" else "",
                      short=how == "env" and name in ("artifact", "text", "resume"))
    yield Row("disagree/env/job", "Ranks that disagree", "another job id at the address on rank 1",
              "code 2: both jobs; rank 0 waits for its own rank 1", job_ids, LIMIT, short=True)
    twice = r"error: .*two processes have rank {0} of 2: process \d+ on .*, and process \d+ on "
    yield Row("disagree/env/twice-0", "Ranks that disagree", "RANK=0 given twice", "code 2: both processes",
              numbered(0, 0, 2, twice.format(0)), LIMIT)
    yield Row("disagree/env/twice-1", "Ranks that disagree", "RANK=1 given twice, no RANK=0 before",
              "code 4: rank 0 was not found", missing_zero, 0)
    yield Row("disagree/env/world", "Ranks that disagree", "WORLD_SIZE=3 on rank 1", "code 2: both numbers",
              numbered(0, 1, 2, r"error: .*(WORLD_SIZE|number of ranks|compiled for 2 ranks).*3", world={1: 3}), LIMIT)
    yield Row("disagree/env/too-many", "Ranks that disagree", "3 processes of an artifact for 2 ranks",
              "code 2: both numbers", alone_of_three, LIMIT, short=True)


def missing_zero(bench):
    job = Job(bench, "env").start(TEXT, "--steps=4", "--rendezvous-timeout=1", number={0: 1, 1: 1})
    return job.check(4, r"error: .*rank 0 was not found at localhost:\d+", max(p.begun for p in job.processes.values()))


ROWS = list(rows())
