"""Runs jobs within a number of seconds and writes a row for each.

1. Jobs run in their order. A job whose part has used its share of the time (`by`) is put off; those that were put off run at the end.
2. A job has its own time limit, or the seconds that are left. If fewer are left than it needs at least, it is left out.
3. After a hang or the end of a process, a new process asks the device for a sign of life. If none comes, all other jobs are left out.
4. A kernel that hangs or ends its process is not run again.
"""
import time

import rows as row_kinds

ENDING_SECONDS = 12   # kept for ending processes and for writing the page
PING_SECONDS = 30
STARTS = 3            # failed starts after which a kind of process is given up; at once if it says what is missing
FATAL = ("hang", "crash")


class Clock:
    """Counts the seconds of the suite."""

    def __init__(self, seconds):
        self.began, self.seconds = time.monotonic(), seconds

    def used(self):
        return time.monotonic() - self.began

    def left(self):
        return max(0.0, self.seconds - self.used())


def key_of(job):
    return (job["chip"], job.get("direction"), job["name"])


def is_fatal(job, status):
    """Returns true if a kernel that has this status is not run again. One that hangs beside itself may end alone."""
    return status in FATAL and "case" in job and job["child"] == "kernels" and job.get("streams", 1) == 1


def reason_of(job, status):
    return f"{job['part']}, {job['what']}: {status}"


class Schedule:
    """`children` maps kinds of processes to objects with run(job, seconds), which returns {"status", "text", ...}. `earlier` are the rows of a continued
    run. `save` writes the page after each part."""

    def __init__(self, jobs, earlier, clock, rows, children, predictions, say, save):
        self.jobs, self.clock, self.rows, self.children, self.predictions, self.say = jobs, clock, rows, children, predictions, say
        self.save, self.part = save, None
        self.failed_starts, self.lost, self.left_out = {}, None, []
        self.dead = {key_of(row): reason_of(row, row["status"]) for row in earlier if is_fatal(row, row["status"])}

    def run(self):
        pending = self.jobs
        for is_last in (False, True):
            put_off = []
            for job in pending:
                if not is_last and self.clock.used() > job["by"] * self.clock.seconds:
                    put_off.append(job)
                else:
                    self.run_or_leave(job)
            pending = put_off
        for job, text in self.left_out:
            self.write(job, {"status": "left out", "text": text})

    def run_or_leave(self, job):
        if self.lost:
            self.left_out.append((job, self.lost))
        elif "case" in job and job["child"] == "kernels" and (reason := self.dead.get(key_of(job))):
            self.write(job, {"status": "skipped", "text": reason})
        elif self.clock.left() < job["least"]:
            self.left_out.append((job, "no time was left"))
        else:
            self.run_job(job)

    def run_job(self, job):
        if self.part not in (None, job["part"]):
            self.save()
        self.part = job["part"]
        count, text = self.failed_starts.get(job.get("needs", job["child"]), (0, ""))
        if count >= STARTS:
            return self.write(job, {"status": "absent", "text": text})
        seconds = min(job["limit"], self.clock.left())
        began = time.monotonic()
        result = self.children[job["child"]].run(job, seconds)
        result["seconds"] = round(time.monotonic() - began, 3)
        status = result["status"]
        if status == "hang" and result.pop("waited") < job["limit"]:
            result["status"] = "out of time"
        if status == "no start":
            self.count_start(job, result)
        if is_fatal(job, result["status"]):
            self.dead[key_of(job)] = reason_of(job, status)
        self.write(job, result)
        if status in ("hang", "crash") and job["child"] != "peers":
            self.ping()

    def count_start(self, job, result):
        """Counts a failed start. Other libraries may be absent. Without a process for our own kernels nothing can be measured."""
        counted = self.failed_starts.setdefault(job["child"], [0, ""])
        counted[0], counted[1] = STARTS if result.pop("final", False) else counted[0] + 1, result["text"]
        if job["child"] == "peers":
            result["status"] = "absent"
        elif counted[0] >= STARTS:
            self.lost = f"no process can use the device: {result['text']}"

    def ping(self):
        """Ends the suite if the device gives no sign of life."""
        seconds = min(PING_SECONDS, self.clock.left())
        job = {"id": f"device/{time.time():.3f}", "part": "device", "what": "ping", "name": "", "chip": "", "kind": "ping", "child": "kernels"}
        if seconds < 1:
            return
        result = self.children["kernels"].run(job, seconds)
        if result["status"] != "ok":
            self.lost = f"the device does not answer: {result['text']}"
            self.write(job, {"status": "lost", "text": self.lost})

    def write(self, job, result):
        members = {name: job.get(name) for name in ("id", "part", "what", "name", "chip", "kind", "child", "case", "direction", "peer", "who", "gemm", "tool", "graph", "streams")}
        row = {**{name: value for name, value in members.items() if value is not None}, **result, "at": round(self.clock.used(), 1)}
        if predicted := self.predictions.of(job):
            row["predicted"] = predicted
        self.rows.add(row)
        if row["status"] not in row_kinds.LEFT:
            self.say(f"{row['at']:6.1f} s {row_kinds.describe(row)}")
