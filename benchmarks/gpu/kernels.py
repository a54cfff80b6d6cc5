"""Checks the kernels of a bundle against float64, and compares their times with other libraries."""
import subprocess

from bundle import Bundle, read_description

PREFIXES = {"forward": "fwd_", "backward": "bwd_", "product": ""}  # The name of a kernel is this prefix, followed by the name of its case.


def kernels_of(driver, group, description, chips, arguments):
    """Yields (bundle, case, direction) for each selected kernel."""
    for case in description["groups"].get(group, []):
        for chip in chips if arguments.only in case["name"] else []:
            with Bundle(driver, arguments.bundle / case["name"] / chip) as bundle:
                for direction, prefix in PREFIXES.items():
                    if prefix + case["name"] in bundle.kernels:
                        yield bundle, case, direction


def jobs_of(description, chips, arguments):
    """Returns the selected checks as dicts of case, chip and direction. Throws BundleError."""
    jobs = []
    for group in arguments.groups.split(","):
        for case in description["groups"].get(group, []):
            for chip in chips if arguments.only in case["name"] else []:
                folder = arguments.bundle / case["name"] / chip
                names = {kernel["name"] for kernel in read_description(folder)["kernels"]}
                jobs += [{"case": case, "chip": chip, "direction": direction, "folder": str(folder), "everything": group != "timed"}
                         for direction, prefix in PREFIXES.items() if prefix + case["name"] in names]
    return jobs


def check_all(description, chips, arguments, sources):
    import worker
    checks = []
    for last in worker.check_all(arguments.driver, jobs_of(description, chips, arguments)):
        checks.append(last)
        where = f"{last['chip']} {last['direction']} {last['name']}"
        if not last["worst"]:
            print(f"{where}: FAILED, {'; '.join(last['problems'])}", flush=True)
            continue
        sources[last["chip"]] = last["source"]
        print(f"{where}: {'ok' if last['ok'] else 'WRONG'}, worst {last['worst']['result']} {last['worst']['error']:.3g} of "
              f"{last['worst']['allowed']:.3g} {'; '.join(last['problems'])}", flush=True)
    return checks


def clocks():
    query = ["nvidia-smi", "--query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu", "--format=csv,noheader,nounits"]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=30).stdout.strip().splitlines()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return "unknown"


def prepare_case(case, direction):
    """Returns four values: the kernel's inputs; the FLOPs of one call; a dict of functions that compute the case in other libraries; and a dict of
    the reasons why other libraries refuse the case."""
    import numpy as np

    import peers
    from attention import Problem
    from products import Product
    if direction == "product":
        problem = Product(case)
        return problem.inputs(), problem.flops(), *peers.products(case)
    problem = Problem(case)
    o, lse = np.zeros(problem.do.shape, np.float32), np.full(problem.q.shape[:3], 4.0, np.float32)
    inputs = problem.inputs() if direction == "forward" else problem.gradient_inputs(o, lse)
    return inputs, problem.flops(direction == "backward"), *peers.contenders(case, problem, direction)


def time_case(driver, bundle, case, direction, arguments, peak):
    import peers
    import tables
    from check import place
    kernel = bundle.kernel(PREFIXES[direction] + case["name"])
    inputs, flops, ready, refusals = prepare_case(case, direction)
    addresses, _ = place(driver, kernel, inputs)
    times = peers.compare_times({"ours": kernel.prepare(addresses), **ready}, arguments.rounds)
    for address in addresses:
        driver.free(address)
    kernel.release()
    return tables.row_of(case, direction, bundle.chip, times, flops, peak, refusals)


def time_all(driver, description, chips, arguments, failed, clock):
    """Times the kernels except those in `failed`, a set of (chip, direction, name). Returns three values: a row of times for each kernel; the TFLOP/s
    of cuBLAS for a product of 8192 x 8192 matrices; and the number of kernels that were not timed because the time limit was reached."""
    import peers
    body, flops = peers.product(8192)
    times = peers.compare_times({"cuBLAS": body}, arguments.rounds)["cuBLAS"]
    peak, rows, left = flops / min(times) / 1e9, [], 0
    for bundle, case, direction in kernels_of(driver, "timed", description, chips, arguments):
        if (bundle.chip, direction, case["name"]) in failed:
            continue
        if not clock.left():
            left += 1
            continue
        rows.append(time_case(driver, bundle, case, direction, arguments, peak))
        print(f"{bundle.chip} {direction} {case['name']}: {rows[-1]['times']['ours']['tflops']:.0f} TFLOP/s, "
              f"{rows[-1]['ratio'] or 0:.2f} of {rows[-1]['best_peer']}", flush=True)
    return rows, peak, left
