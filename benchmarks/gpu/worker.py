"""A child process of the suite: runs jobs one after another. After a CUDA error from which the context does not recover, it ends.

    python3 worker.py DESCRIPTOR kernels DRIVER      jobs that use the driver alone
    python3 worker.py DESCRIPTOR peers MODULE.py     jobs that time another library

A job is a JSON object in a line of the standard input. The result, also one line, is written to the file descriptor. The first line says that the
process is ready.
"""
import importlib.util
import json
import os
import sys


class Kernels:
    """Runs jobs with kernels of a bundle."""

    def __init__(self, file):
        from driver import Driver
        self.driver = Driver(file)

    def about(self):
        return {"device": self.driver.name(), "cuda": self.driver.version(), "capability": self.driver.capability()}

    def run(self, job):
        import launches
        import loading
        functions = {"maps": loading.encode_maps, "load": loading.load_code, "check": launches.check_kernel, "repeat": launches.repeat_kernel,
                     "time": launches.time_kernel, "copies": launches.measure_copies, "ping": lambda driver, job: {"status": "ok", "text": ""}}
        found = functions[job["kind"]](self.driver, job)
        self.driver.synchronise()
        return found

    def is_usable(self):
        from driver import CudaError
        try:
            self.driver.synchronise()
            return True
        except CudaError:
            return False


class Peers:
    """Runs jobs that time another library. The module has the functions of peers.py that are used here."""

    def __init__(self, file):
        spec = importlib.util.spec_from_file_location("peers", file)
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.text = self.module.about()

    def about(self):
        return {"software": self.text}

    def run(self, job):
        from stopwatch import measure_rounds, summarise
        try:
            body = self.module.prepare(job["peer"], job["case"], job["direction"])
        except self.module.Refused as error:
            return {"status": "absent", "text": str(error)}
        times = measure_rounds(self.module.milliseconds, body, job["rounds"])
        del body
        self.module.release()
        return {"status": "ok", "text": "", **summarise(times)}

    def is_usable(self):
        return False  # an unexpected error of another library may be one of its CUDA context


def describe(error):
    """Returns the text of an error, with its type unless that is one of the suite's own."""
    name = type(error).__name__
    return str(error) if name in ("CudaError", "BundleError", "Refused") else f"{name}: {error}".strip()


def main():
    output = os.fdopen(int(sys.argv[1]), "w")

    def send(found):
        output.write(json.dumps(found) + "\n")
        output.flush()

    try:
        runner = {"kernels": Kernels, "peers": Peers}[sys.argv[2]](sys.argv[3])
        send({"ready": runner.about()})
    except Exception as error:  # every failure of a start is reported as such
        send({"failed": describe(error)})
        return
    for line in sys.stdin:
        try:
            send(runner.run(json.loads(line)))
        except Exception as error:  # errors of other libraries have many types
            usable = runner.is_usable()
            send({"status": "error", "text": describe(error)[:600], "ends": not usable})
            if not usable:
                return


if __name__ == "__main__":
    main()
