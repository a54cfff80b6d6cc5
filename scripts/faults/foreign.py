"""Rows in which another program connects to rank 0, or listens on rank 0's port."""
import socket
import struct
import threading
import time

from faults.bench import Failed, Job, Row, free_port

TEXT = "--text=a.txt"


def connect(port, seconds=20):
    """Waits until rank 0 listens, and connects to it."""
    until = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection(("localhost", port), timeout=5)
        except OSError:
            if time.monotonic() > until:
                raise Failed("rank 0 does not listen") from None
            time.sleep(0.02)


def visited(act):
    """While rank 0 waits for rank 1, calls act(port), which connects to rank 0. Then rank 1 is started. The run must succeed."""
    def run(bench):
        job = Job(bench, "env").start(TEXT, "--steps=4", only=[0])
        kept = act(job.port)
        since = time.monotonic()
        job.start(TEXT, "--steps=4", only=[1])
        job.codes(0)
        if not job.processes[0].when("^step 4/4"):
            raise Failed(f"rank 0 did not train:\n{job.output()}")
        bench.expect_clean()
        for connection in kept:
            connection.close()
        return time.monotonic() - since
    return run


def silent(port):
    return [connect(port) for _ in range(3)]


def says(data):
    def act(port):
        connection = connect(port)
        connection.sendall(data)
        return [connection]
    return act


def many(port):
    """Makes more connections than rank 0 accepts, and sends nothing over them."""
    first = connect(port)
    rest = []
    for _ in range(200):
        rest.append(connect(port))
    return [first, *rest]


class Listener:
    """Runs a server on the port of rank 0. The server calls answer(connection) for each connection."""

    def __init__(self, answer):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("localhost", 0))
        self.socket.listen(16)
        self.port = self.socket.getsockname()[1]
        self.kept = []
        threading.Thread(target=self._serve, args=(answer,), daemon=True).start()

    def _serve(self, answer):
        while True:
            try:
                connection, _ = self.socket.accept()
                self.kept.append(connection)
                answer(connection)
            except OSError:
                return

    def close(self):
        self.socket.close()
        for connection in self.kept:
            connection.close()


def frame(kind, status, text):
    """Returns the bytes of a message of the rendezvous (runtime/launch/Rendezvous.h)."""
    return struct.pack("8s5Iid128s64s160s64s1024s", b"fsdpmt2\0", 0, kind, 0, 2, 0, status, 0, b"", b"", b"", b"", text)


def false_rank0(answer, code, pattern, limit):
    def run(bench):
        listener = Listener(answer)
        try:
            job = Job(bench, "env", port=listener.port).start(TEXT, "--steps=4", "--rendezvous-timeout=1", only=[1])
            return job.check(code, pattern, job.processes[1].begun, limit)
        finally:
            listener.close()
    return run


def real_rank0_meets_listener(bench):
    listener = Listener(lambda connection: None)
    try:
        job = Job(bench, "env", port=listener.port).start(TEXT, "--steps=4", only=[0])
        return job.check(2, r"error: .*rank 0 cannot listen at .*another process uses it; choose another MASTER_PORT",
                         job.processes[0].begun)
    finally:
        listener.close()


def nobody(bench):
    job = Job(bench, "env", port=free_port()).start(TEXT, "--steps=4", "--rendezvous-timeout=1", only=[1])
    return job.check(4, r"error: .*rank 0 was not found at localhost:\d+ .* within 1 s: no process listens there",
                     job.processes[1].begun, 0)


def rank1_missing(bench):
    job = Job(bench, "env").start(TEXT, "--steps=4", "--rendezvous-timeout=1", only=[0])
    return job.check(4, r"error: .*rank 1 of 2 did not arrive within 1 s", job.processes[0].begun, 0)


def rows():
    group = "Other programs that connect to rank 0"
    fine = "code 0: the connections are ignored"
    for name, planted, act in (
            ("silent", "three connections that send nothing", silent),
            ("http", "an HTTP request", says(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")),
            ("garbage", "4000 random bytes", says(bytes((i * i * 31 + i) % 251 for i in range(4000)))),
            ("cut", "the first half of a frame", says(frame(1, 0, b"")[:700])),
            ("welcome", "a frame that only rank 0 may send", says(frame(3, 0, b"nowhere"))),
            ("many", "200 connections", many)):
        yield Row(f"foreign/env/{name}", group, planted, fine, visited(act), short=name in ("silent", "http"))
    group = "Listeners in the place of rank 0"
    answers = [
        ("silent", "accepts and sends nothing", lambda c: None, 4, r"rank 0 was not found at .*does not answer", 0),
        ("http", "answers HTTP", lambda c: c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"), 2,
         r"expected rank 0, found another program that listens there", 0.5),
        ("closes", "accepts and closes", lambda c: c.close(), 4, r"rank 0 was not found at .*closes the connection", 0),
        ("refuses-0", "refuses with status 0", lambda c: c.sendall(frame(4, 0, b"no thanks")), 1, "no thanks", 0.5),
        ("refuses-255", "refuses with status 255", lambda c: c.sendall(frame(4, 255, b"no thanks")), 1, "no thanks", 0.5),
        ("welcomes", "welcomes to a socket that does not exist", lambda c: c.sendall(frame(3, 0, b"fsdp-run/none")), (1, 2, 3),
         r"error: .*(expected rank 0 of job|cannot connect to the Unix socket 'fsdp-run/none')", 0.5),
    ]
    for name, planted, answer, code, pattern, limit in answers:
        text = f"code {code}" if isinstance(code, int) else "code 1, 2 or 3"
        yield Row(f"listener/env/{name}", group, planted, f"{text}: the reason", false_rank0(answer, code, pattern, limit), limit,
                  short=name == "refuses-0")
    yield Row("listener/env/before-rank-0", group, "another program has the port when rank 0 starts",
              "code 2 after 5 s: another process uses it", real_rank0_meets_listener)
    yield Row("missing/env/rank-0", "Missing ranks", "rank 0 is not started, --rendezvous-timeout=1",
              "code 4: rank 0 was not found", nobody)
    yield Row("missing/env/rank-1", "Missing ranks", "rank 1 is not started, --rendezvous-timeout=1",
              "code 4: rank 1 did not arrive", rank1_missing)


ROWS = list(rows())
