"""Runs checks of kernels in a separate process. If a kernel faults, the CUDA context of the process becomes unusable, so a new process runs the
remaining checks. A process that sends no result within the time limit is killed."""
import multiprocessing

SECONDS = 900  # time limit of a check, which may compute attention over thousands of keys on the host


def failed(job, text):
    """Returns a failed result with the same members as a result of check(). This result is used if the check of a kernel raised an error or ended the
    process."""
    return {"name": job["case"]["name"], "direction": job["direction"], "chip": job["chip"], "problems": [text], "worst": None, "ok": False, "source": None}


class Checker:
    """Runs checks. Consecutive jobs of the same case and the same chip share an open bundle."""

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
        """Returns true if the CUDA context can still run kernels after a failed check."""
        from driver import CudaError
        try:
            self.driver.synchronise()
            return True
        except CudaError:
            return False


def work(connection, file, jobs):
    """Runs the jobs in order and sends the result of each job through `connection`. Returns early if the CUDA context becomes unusable."""
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
            # If the process sent at least one result before it ended, it ended because its context had become unusable, and a new process runs the
            # remaining jobs. If the process sent no result, this job ended the process.
            if isinstance(error, TimeoutError) or done == begun:
                yield failed(jobs[done], str(error) or f"its process ended with status {process.exitcode}")
                done += 1
        process.join()
