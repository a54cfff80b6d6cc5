"""Runs the tools of build/bin, whose output the pictures show."""
import os
import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent.parent


class Tools:
    """Runs commands in a temporary folder. With the option CPU, plans are the same on every machine."""
    CPU = "--target-cpu=x86-64-v3"

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.environment = dict(os.environ)
        self.environment["PATH"] = os.pathsep.join([str(root / "build/bin"), os.environ.get("PATH", "")])

    def run(self, *command):
        """Runs a command and returns its output. If the command fails, exits with the messages of the command."""
        try:
            done = subprocess.run([str(part) for part in command], cwd=self.folder, env=self.environment,
                                  capture_output=True, text=True, timeout=120)
        except FileNotFoundError:
            sys.exit(f"scripts/draw-pictures: expected {command[0]} in build/bin, found none; run scripts/setup first")
        except subprocess.TimeoutExpired:
            sys.exit(f"scripts/draw-pictures: {' '.join(map(str, command))} took more than 120 s")
        if done.returncode:
            sys.exit(f"scripts/draw-pictures: {' '.join(map(str, command))} failed\n{done.stderr}")
        return done.stdout

    def read(self, name):
        return (self.folder / name).read_text()

    def model(self, name, *options):
        """Writes a model with fsdp-modelgen, and returns the path of the model."""
        self.run("fsdp-modelgen", *options, "-o", name)
        return self.folder / name


def expect(found, what):
    """Returns `found`. If `found` is empty, the format of a tool's output has changed, and the script exits with an error."""
    if not found:
        sys.exit(f"scripts/draw-pictures: expected {what} in the output of a tool, found none")
    return found
