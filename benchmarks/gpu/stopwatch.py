"""Times work on the context's default stream by two CUDA events."""
import ctypes
import statistics

ROUND_SECONDS = 0.02  # duration of the calls of a round
MOST_CALLS = 1000     # calls of a round at most


class Stopwatch:
    def __init__(self, driver):
        self.driver, self.events = driver, [ctypes.c_void_p() for _ in range(2)]
        for event in self.events:
            driver.call("cuEventCreate", ctypes.byref(event), 0)

    def milliseconds(self, body, calls=1):
        """Returns the mean milliseconds of a call."""
        self.driver.call("cuEventRecord", self.events[0], None)
        for _ in range(calls):
            body()
        self.driver.call("cuEventRecord", self.events[1], None)
        self.driver.synchronise()
        found = ctypes.c_float()
        self.driver.call("cuEventElapsedTime", ctypes.byref(found), *self.events)
        return found.value / calls


def measure_rounds(milliseconds, body, rounds):
    """Returns the milliseconds of a call of `body` in each round. `milliseconds(body, calls)` returns the mean of several calls. Two calls before the
    first round give the number of calls of a round."""
    milliseconds(body, 1)
    calls = max(1, min(MOST_CALLS, int(ROUND_SECONDS * 1e3 / max(milliseconds(body, 2), 1e-3))))
    return [milliseconds(body, calls) for _ in range(rounds)]


def summarise(times):
    """Returns the median, and the spread from the first to the last decile as a fraction of the median."""
    median, ordered = statistics.median(times), sorted(times)
    return {"ms": median, "spread": (ordered[-1 - len(ordered) // 10] - ordered[len(ordered) // 10]) / median if median else 0.0}
