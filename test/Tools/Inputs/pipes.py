"""Gives each tool a named pipe that no process writes or reads, and an endless device, as each of its files.

    pipes.py FOLDER MODEL

The expected result is an exit code of the project within LIMIT seconds, and a message that names the file: no
tool waits for the other end of a pipe without a limit, and none reads a device until memory is exhausted.
Prints a line per case that fails, and the number of cases. Exit codes: 0, 1.
"""

import concurrent.futures
import os
import pathlib
import resource
import subprocess
import sys

LIMIT = 60  # seconds; a tool waits up to 10 s for a process that reads a pipe
MEMORY = 8 << 30

folder, model = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
folder.mkdir(parents=True, exist_ok=True)
for old in folder.iterdir():
    old.unlink()
os.chdir(folder)
pathlib.Path("text").write_bytes(bytes(range(64)) * 64)
pathlib.Path("k.ptx").write_text(".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\nret;\n}\n")
subprocess.run(["fsdp-compile", model, "--mesh=shard=2", "-o", "m.fsdp"], check=True, stderr=subprocess.DEVNULL)
subprocess.run(["fsdp-compile", model, "--mesh=shard=2", "--compile-to=plan", "-o", "plan.mlir"], check=True, stderr=subprocess.DEVNULL)
subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", "key.pem"], check=True, stderr=subprocess.DEVNULL)

COMPILE, RUN = ["fsdp-compile", model, "--mesh=shard=2"], ["fsdp-run", "m.fsdp", "--steps=1"]
# Commands; FILE stands for the pipe or device.
INPUTS = [
    ["fsdp-compile", "FILE", "-o", "x.fsdp"],
    COMPILE + ["--params-file=FILE", "-o", "x.fsdp"],
    COMPILE + ["--config=FILE", "-o", "x.fsdp"],
    COMPILE + ["--wrap=FILE", "-o", "x.fsdp"],
    COMPILE + ["--cluster=FILE", "--overlap", "-o", "x.fsdp"],
    COMPILE + ["--sign-key=FILE", "-o", "x.fsdp"],
    COMPILE + ["--what-if=model=FILE"],
    ["fsdp-opt", "FILE"],
    ["fsdp-gradcheck", "FILE"],
    ["fsdp-kernel-test", "FILE"],
    ["fsdp-emulate", "FILE"],
    ["fsdp-emulate", "k.ptx", "--arg=@FILE"],
    ["fsdp-modelgen", "--hf-config=FILE", "-o", "x.mlir"],
    ["fsdp-run", "FILE"],
    RUN + ["--text=FILE"],
    RUN + ["--data=FILE"],
    RUN + ["--input", "tokens=FILE", "--synthetic=targets"],
    RUN + ["--init=FILE"],
    RUN + ["--resume=FILE"],
    RUN + ["--config=FILE"],
    ["fsdp-run", "m.fsdp", "--simulate=FILE"],
    RUN + ["--verify-key=FILE"],
]
OUTPUTS = [
    COMPILE + ["-o", "FILE"],
    COMPILE + ["--report=FILE"],
    COMPILE + ["--compile-to=plan", "-o", "FILE"],
    ["fsdp-opt", model, "-o", "FILE"],
    ["fsdp-modelgen", "gpt2", "--layers=1", "--hidden=16", "--heads=2", "--vocab=23", "--seq=6", "-o", "FILE"],
    ["fsdp-kernel-test", "plan.mlir", "--save-image=FILE"],
    ["fsdp-emulate", "k.ptx", "--arg=u64:4", "--save=0:FILE"],
    RUN + ["--export=FILE"],
    RUN + ["--metrics=FILE"],
    RUN + ["--trace=FILE"],
    ["fsdp-run", "m.fsdp", "--steps=2", "--profile", "--profile-file=FILE"],
]


def restrict():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY * 4, MEMORY * 4))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def attempt(case):
    """Returns what is wrong with a case, or nothing."""
    number, (command, file) = case
    if file == "pipe":
        file = f"pipe.{number}"  # of this case alone, so that no other command opens its other end
        os.mkfifo(file)
    words = [str(word).replace("FILE", file) for word in command]
    try:
        result = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL,
                                preexec_fn=restrict, errors="replace")
    except subprocess.TimeoutExpired:
        return f"{' '.join(words)}: did not end within {LIMIT} s"
    message = (result.stdout + result.stderr).strip()
    if result.returncode not in (1, 2):
        return f"{' '.join(words)}: exit code {result.returncode}: {message[-200:]}"
    if file not in message and "named pipe" not in message:
        return f"{' '.join(words)}: the message does not name the file: {message[-200:]}"
    return None


cases = [(command, file) for command in INPUTS for file in ("pipe", "/dev/zero")]
cases += [(command, "pipe") for command in OUTPUTS]
# Tools wait 10 s for the other end of a pipe without using the processor.
with concurrent.futures.ThreadPoolExecutor(len(cases)) as pipes, concurrent.futures.ThreadPoolExecutor(2) as devices:
    results = [(pipes if case[1] == "pipe" else devices).submit(attempt, (number, case)) for number, case in enumerate(cases)]
problems = [result.result() for result in results if result.result()]
print(*problems, sep="\n")
print(f"{len(cases)} cases, {len(problems)} failed")
sys.exit(bool(problems))
