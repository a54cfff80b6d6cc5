"""Runs a command and says whether it and its child processes take at most SECONDS of user and system time.

usage: compile_time.py SECONDS COMMAND..
"""
import resource
import subprocess
import sys


def main():
    most, command = float(sys.argv[1]), sys.argv[2:]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = used.ru_utime + used.ru_stime
    print(f"{seconds:.1f} s, {'within' if seconds <= most else 'not within'} {most:g} s")


if __name__ == "__main__":
    main()
