"""Runs every command that reads or writes files beside a process that changes these files.

    hostile_neighbour.py FOLDER SEED ROUNDS MODEL

The neighbour removes, cuts, overwrites, renames and replaces files and folders, by links to a victim
outside, by named pipes and by folders, as fast as it can. Each command must end within a time limit
by an exit code of the project, never by a signal, and the victim must stay as it was. What a command
prints must be UTF-8 without control characters, although it quotes overwritten files. After the
neighbour has ended, each command must succeed in the same folder, once what blocks a name is gone.
Prints the number of commands by exit code, and "the victim is unchanged". Exit codes: 0, 1.
"""

import collections
import os
import pathlib
import random
import shutil
import stat
import subprocess
import sys

LIMIT = 90  # seconds for a command
CODES = {0, 1, 2, 3, 4}


def mutate(folder, victim, seed):
    """Changes files of the folder for ever."""
    draw = random.Random(seed)
    while True:
        paths = [path for path in folder.rglob("*") if not path.name.startswith("keep.")]
        if not paths:
            continue
        path = draw.choice(paths)
        try:
            change(draw, path, folder, victim)
        except OSError:
            pass  # the command was faster


def open_own(path):
    """Opens a file, but never the victim behind a link."""
    return open(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "wb")


def change(draw, path, folder, victim):
    action = draw.randrange(8)
    if action == 0:
        path.unlink()
    elif action == 1:
        with open_own(path) as file:
            file.truncate(draw.randrange(max(1, os.fstat(file.fileno()).st_size)))
    elif action == 2:
        with open_own(path) as file:
            file.seek(draw.randrange(4096))
            file.write(draw.randbytes(16))
    elif action == 3:
        path.rename(folder / f"{draw.randrange(4)}.{path.name[-40:]}")
    elif action == 4:
        path.unlink()
        path.symlink_to(victim)
    elif action == 5:
        path.unlink()
        os.mkfifo(path)
    elif action == 6:
        path.unlink()
        path.mkdir()
    else:
        shutil.rmtree(path)


def is_text(printed):
    """Returns whether the bytes are UTF-8 without control characters."""
    try:
        return all(line.isprintable() for line in printed.decode().split("\n"))
    except UnicodeDecodeError:
        return False


def clear(folder):
    """Removes what is not a kept input."""
    for path in folder.iterdir():
        if path.name.startswith("keep."):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def restore(folder):
    """Writes the text that the neighbour changes, where a file can be written."""
    try:
        (folder / "copy.txt").unlink(missing_ok=True)
        shutil.copyfile(folder / "keep.txt", folder / "copy.txt")
    except OSError:
        pass  # the neighbour made it a folder or a pipe


def commands(folder, model):
    """Returns commands that together use every kind of file. Inputs named keep.* are not changed."""
    artifact, text = folder / "keep.fsdp", folder / "keep.txt"
    run = ["fsdp-run", artifact, "--text", text]
    return [
        ["fsdp-compile", model, "--mesh=shard=2", "-o", folder / "a.fsdp", "--report", folder / "r.html"],
        ["fsdp-compile", model, "--mesh=shard=2", "-o", folder / "b.fsdp",
         "--kernel-cache", folder / "cache", "--dump-phases-to", folder / "phases"],
        ["fsdp-run", folder / "a.fsdp", "--steps=2"],
        run + ["--steps=6", "--save", folder / "saves", "--save-every=1", "--export", folder / "w.safetensors"],
        run + ["--steps=6", "--metrics", folder / "m.jsonl", "--trace", folder / "t.json", "--tensorboard", folder / "tb"],
        run + ["--steps=6", "--profile", "--profile-file", folder / "p.json"],
        run + ["--steps=6", "--init", folder / "w.safetensors"],
        run + ["--steps=12", "--resume", folder / "saves", "--save", folder / "saves", "--save-every=1"],
        run + ["--steps=6", "--processes", "--save", folder / "saves2", "--save-every=2", "--flight-record", folder / "f.json"],
        ["fsdp-run", artifact, "--text", folder / "copy.txt", "--steps=6"],
    ]


def main():
    folder, seed, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    model = pathlib.Path(sys.argv[4]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    outside = folder.parent / (folder.name + "-victim")
    folder.mkdir(parents=True)
    outside.write_bytes(b"victim " * 1000)
    outside.chmod(0o600)
    before = (outside.read_bytes(), stat.S_IMODE(outside.stat().st_mode))
    (folder / "keep.txt").write_bytes(bytes(range(64)) * 256)
    subprocess.run(["fsdp-compile", model, "--mesh=shard=2", "-o", folder / "keep.fsdp"], check=True,
                   stderr=subprocess.DEVNULL)
    counts, wrong = collections.Counter(), []

    def execute(command):
        try:
            done = subprocess.run(list(map(str, command)), capture_output=True, timeout=LIMIT,
                                  stdin=subprocess.DEVNULL, cwd=folder.parent)
        except subprocess.TimeoutExpired:
            wrong.append(f"took over {LIMIT} s: {' '.join(map(str, command))}")
            return None
        if os.environ.get("VERBOSE"):
            print(done.returncode, " ".join(map(str, command))[:100], flush=True)
        counts[done.returncode] += 1
        if done.returncode not in CODES:
            wrong.append(f"ended with {done.returncode}: {' '.join(map(str, command))}\n{done.stderr}")
        if not is_text(done.stdout) or not is_text(done.stderr):
            wrong.append(f"printed bytes of a file: {' '.join(map(str, command))}\n{done.stderr}")
        return done

    for turn in range(rounds):
        neighbour = os.fork()
        if neighbour == 0:
            mutate(folder, outside, seed + turn)
        for command in commands(folder, model):
            restore(folder)
            execute(command)
        os.kill(neighbour, 9)
        os.waitpid(neighbour, 0)
    clear(folder)
    shutil.copyfile(folder / "keep.txt", folder / "copy.txt")
    for command in commands(folder, model):
        done = execute(command)
        if done and done.returncode != 0:
            wrong.append(f"failed without the neighbour: {' '.join(map(str, command))}\n{done.stderr}")
    print("commands by exit code:", ", ".join(f"{code}: {counts[code]}" for code in sorted(counts)))
    if (outside.read_bytes(), stat.S_IMODE(outside.stat().st_mode)) != before:
        wrong.append("the victim was changed")
    print("\n".join(wrong) if wrong else "the victim is unchanged")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
