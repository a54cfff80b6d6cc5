"""Checks, repeats and times a kernel of a bundle. Each function returns the members of a row."""
import ctypes
import functools
import json
import subprocess
import time

from bundle import Bundle
from check import SUBJECTS, verdict
from differences import Differences
from placed import GUARD, Placed
from stopwatch import Stopwatch, measure_rounds, summarise

CHUNK_SECONDS = 0.5  # duration of the runs between two looks at the clock


@functools.lru_cache(maxsize=2)
def subject_of(text):
    """Returns the check of a kernel and its operands. Drawing those of a large kernel takes seconds, and it is often run more than once in a row."""
    direction, case, spots = json.loads(text)
    subject = SUBJECTS[direction](case, spots)
    return subject, subject.inputs()


class Opened:
    """A kernel with its operands on the device."""

    def __init__(self, driver, job):
        self.driver = driver
        with Bundle(driver, job["path"]) as bundle:
            self.source = bundle.source
            self.subject, inputs = subject_of(json.dumps([job["direction"], job["case"], job["spots"]]))
            self.kernel = bundle.kernel(self.subject.prefix + job["case"]["name"])
            self.module, bundle.module = bundle.module, None
        self.placed = Placed(driver, self.kernel, inputs)

    def check(self, stream=None):
        """Runs the kernel once and compares its results."""
        self.kernel.prepare(self.placed.addresses, stream)()
        return verdict(self.subject, *self.placed.download())

    def close(self):
        self.placed.free()
        self.kernel.release()
        self.driver.unload(self.module)


def check_kernel(driver, job):
    opened = Opened(driver, job)
    row = {**opened.check(), "source": opened.source}
    opened.close()
    return row


class Lane:
    """A stream on which a kernel is run repeatedly. Each run is compared with the first results."""

    def __init__(self, opened, first, differences):
        driver, self.placed = opened.driver, Placed(opened.driver, opened.kernel, [], opened.placed)
        self.stream = driver.stream()
        self.launch = opened.kernel.prepare(self.placed.addresses, self.stream)
        counter = differences.counter()
        self.compare = [differences.prepare(mine, right, size + GUARD, counter, self.stream)
                        for (mine, size, _), (right, _, _) in zip(self.placed.results, first.results)]

    def run(self):
        self.placed.clear(self.stream)
        self.launch()
        for compare in self.compare:
            compare()


def repeat_kernel(driver, job):
    """Checks a kernel, then runs it `runs` times, or as often as `seconds` allow, on each of `streams` streams at once, and expects equal bits."""
    opened = Opened(driver, job)
    row = {**opened.check(), "source": opened.source, "streams": job["streams"], "runs": 0}
    if row["status"] == "ok":
        differences = Differences(driver)
        lanes = [Lane(opened, opened.placed, differences) for _ in range(job["streams"])]
        row["runs"], row["seconds_of_runs"] = run_lanes(driver, lanes, job["runs"], job["seconds"])
        row["differing_words"] = differences.found()
        for lane in lanes:
            lane.placed.free()
        differences.release()
        if row["differing_words"]:
            row["status"], row["text"] = "unequal", f"{row['differing_words']} words of 4 bytes differ from the first run in {row['runs']} runs"
    opened.close()
    return row


def run_lanes(driver, lanes, runs, seconds):
    """Returns the number of runs of each lane, and how many seconds they took."""
    began, done, chunk = time.monotonic(), 0, 1
    while done < runs and time.monotonic() - began < seconds:
        count = min(chunk, runs - done)
        at = time.monotonic()
        for _ in range(count):
            for lane in lanes:
                lane.run()
        driver.synchronise()
        done += count
        if time.monotonic() - at < CHUNK_SECONDS:
            chunk *= 2
    return done, time.monotonic() - began


def read_clocks():
    """Returns the clocks in MHz of multiprocessors and memory, the power in W and the temperature in C, or None without nvidia-smi."""
    query = ["nvidia-smi", "--query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu", "--format=csv,noheader,nounits"]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=10).stdout.strip().splitlines()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return None


def time_kernel(driver, job):
    """Checks a kernel, then times it in rounds."""
    opened = Opened(driver, job)
    row = {**opened.check(), "source": opened.source}
    times = measure_rounds(Stopwatch(driver).milliseconds, opened.kernel.prepare(opened.placed.addresses), job["rounds"])
    row.update(summarise(times), flops=opened.subject.flops(), clocks=read_clocks() if job["part"] == "headline" else None)
    opened.close()
    return row


def measure_copies(driver, job):
    """Measures the bytes per second that a copy within the device's memory reads and writes, and the time between two events without work."""
    count, watch = job["bytes"], Stopwatch(driver)
    source, target = driver.allocate(count), driver.allocate(count)
    driver.fill(source, 0x5a, count)
    copy = lambda: driver.call("cuMemcpyDtoDAsync_v2", ctypes.c_ulonglong(target), ctypes.c_ulonglong(source), ctypes.c_size_t(count), None)
    watch.milliseconds(copy)
    found = summarise([watch.milliseconds(copy) for _ in range(job["rounds"])])
    nothing = summarise([watch.milliseconds(lambda: None) for _ in range(job["rounds"])])
    driver.free(source)
    driver.free(target)
    return {"status": "ok", "text": "", "bytes_per_second": 2e3 * count / max(found["ms"], 1e-6), "spread": found["spread"], "event_ms": nothing["ms"]}
