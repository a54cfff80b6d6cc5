"""Reads the tables that --emit=clocks prints."""
import collections
import json


def read_seconds(path, cluster, kernel_of):
    """Returns the clock rate of the file `cluster`, and {kernel: seconds} of its launches, one after the other. `kernel_of` maps the name of a launch to
    the name of its kernel."""
    device = json.load(open(cluster))["device"]
    seconds = collections.Counter()
    for line in open(path):
        words = line.split()
        if words[0] == "launch":
            columns = words[1:]
            continue
        row = dict(zip(columns, map(float, words[1:])))
        seconds[kernel_of(words[0])] += max(row["clocks"] / device["clocks_per_second"], row["bytes"] / device["bytes_per_second"])
    return device["clocks_per_second"], seconds
