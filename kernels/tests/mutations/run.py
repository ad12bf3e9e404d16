#!/usr/bin/env python3
"""Plants each of the faults of faults.py in a copy of the kernel headers and shows that the emulated tests fail.

The kernels are a shared library that the test program links; each fault compiles that library anew and runs the same
program with it (LD_PRELOAD). Prints a table of faults and the tests that caught them. Exit: 0 when the unchanged
headers pass and every fault is caught, 1 otherwise.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the tests leave nothing in the source tree
from faults import FAULTS  # noqa: E402


def plant(headers: pathlib.Path, into: pathlib.Path, fault) -> None:
    shutil.copytree(headers, into / "rowtune")
    if fault is None:
        return
    path = into / "rowtune" / fault.header
    text = path.read_text()
    if text.count(fault.old) != fault.times:
        raise SystemExit(f"fault '{fault.what}': its text occurs {text.count(fault.old)} times in {fault.header}, "
                         f"not {fault.times}; faults.py must follow the header")
    path.write_text(text.replace(fault.old, fault.new))


def build(args, into: pathlib.Path) -> str:
    """The library over the planted headers; what the compiler says when it refuses them."""
    command = [args.compiler, *shlex.split(args.flags), f"-I{into}", f"-I{args.root}", f"-I{args.root}/kernels/include",
               "-w", "-O0", "-fPIC", "-shared", "-o", str(into / "mutant.so"), *args.sources]
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr


def first_failure(args, into: pathlib.Path) -> str:
    """The first test that fails, with what it said; empty when all pass."""
    environment = {**os.environ, "LD_PRELOAD": str(into / "mutant.so"), "GTEST_FAIL_FAST": "1", "GTEST_COLOR": "no"}
    try:
        done = subprocess.run([args.program], capture_output=True, text=True, env=environment, timeout=args.timeout,
                              errors="replace")
    except subprocess.TimeoutExpired:
        return f"(all) did not end in {args.timeout} s"
    if done.returncode == 0:
        return ""
    name = re.search(r"\[  FAILED  \] (\S+)", done.stdout)
    said = re.search(r'Which is: "(.*)"', done.stdout)
    text = said.group(1) if said else f"ended with {done.returncode}"
    return f"{name.group(1).rstrip(',') if name else '(crash)'}: {text}"


def try_fault(args, fault) -> tuple[str, str, float]:
    """(outcome, detail, seconds)"""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant_", dir=args.work) as folder:
        into = pathlib.Path(folder)
        plant(pathlib.Path(args.root) / "kernels/include/rowtune", into, fault)
        refused = build(args, into)
        if refused:
            return "does not compile", refused.strip().splitlines()[0] if refused.strip() else "", time.monotonic() - start
        failure = first_failure(args, into)
        return ("caught" if failure else "SURVIVED"), failure, time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", required=True, help="the project's folder")
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--flags", default="", help="language and floating-point flags")
    parser.add_argument("--program", required=True, help="the test program over the kernels' shared library")
    parser.add_argument("--work", default=tempfile.gettempdir())
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=int, default=300, help="seconds for the tests of one fault")
    parser.add_argument("--only", default="", help="only faults whose description contains this")
    parser.add_argument("sources", nargs="+", help="the generated kernels")
    args = parser.parse_args()

    outcome, detail, seconds = try_fault(args, None)
    if outcome != "SURVIVED":
        print(f"the unchanged headers: {outcome}: {detail}")
        return 1
    print(f"The unchanged headers pass ({seconds:.0f} s). Faults and the tests that catch them:\n", flush=True)
    faults = [f for f in FAULTS if args.only in f.what]
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda f: try_fault(args, f), faults)
        for fault, (outcome, detail, seconds) in zip(faults, results):
            missed += outcome != "caught"
            print(f"{outcome:9} {fault.header:14} {fault.what}\n{'':24} {detail[:230]} ({seconds:.0f} s)", flush=True)
    print(f"\n{len(faults) - missed} of {len(faults)} faults caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
