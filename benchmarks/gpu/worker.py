"""Runs checks in a separate process. A kernel that faults makes the context of its process unusable, so a new process runs the remaining checks. A process
that gives no result in time is killed."""
import multiprocessing

SECONDS = 900  # time limit of a check; large checks compare heads with thousands of keys on the host


def failed(job, text):
    """Returns a result, in the form of check(), for a kernel whose check failed to return one."""
    return {"name": job["case"]["name"], "direction": job["direction"], "chip": job["chip"], "problems": [text], "worst": None, "ok": False, "source": None}


class Checker:
    """Runs checks; opens a bundle once for consecutive jobs that share it."""

    def __init__(self, file):
        from driver import Driver
        self.driver, self.folder, self.bundle = Driver(file), None, None

    def check(self, job):
        from bundle import Bundle
        from check import check
        if job["folder"] != self.folder:
            self.folder, self.bundle = None, None
            self.bundle = Bundle(self.driver, job["folder"])
            self.folder = job["folder"]
        return {**check(self.driver, self.bundle, job["case"], job["direction"], job["everything"]), "source": self.bundle.source}

    def is_usable(self):
        """Returns true if the context can still run kernels after a failure."""
        from driver import CudaError
        try:
            self.driver.synchronise()
            return True
        except CudaError:
            return False


def work(connection, file, jobs):
    """Sends a result for each job, until the context is unusable."""
    from driver import CudaError
    checker = Checker(file)
    for job in jobs:
        try:
            result = checker.check(job)
        except (CudaError, OSError) as error:
            result = failed(job, str(error))
        connection.send(result)
        if not result["ok"] and not checker.is_usable():
            return


def check_all(file, jobs, seconds=SECONDS):
    """Yields the result of each job, in order."""
    context = multiprocessing.get_context("spawn")
    done = 0
    while done < len(jobs):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(theirs, file, jobs[done:]), daemon=True)
        process.start()
        theirs.close()
        begun = done
        try:
            while done < len(jobs):
                if not ours.poll(seconds):
                    raise TimeoutError(f"no result within {seconds} s")
                result = ours.recv()
                done += 1
                yield result
        except (EOFError, TimeoutError) as error:
            process.kill()
            process.join()
            # A process that ended after a result had an unusable context. A process that ended
            # without a result failed in this job.
            if isinstance(error, TimeoutError) or done == begun:
                yield failed(jobs[done], str(error) or f"its process ended with status {process.exitcode}")
                done += 1
        process.join()
