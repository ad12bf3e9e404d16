#!/usr/bin/env python3
"""Plants each of the faults of faults.py in a copy of the kernel headers and shows that the emulated tests fail.

The kernels are a shared library that the test program links; each fault compiles that library anew, part by part, and
runs the same program with it (LD_PRELOAD). Prints a table of faults and the tests that caught them. Exit: 0 when the unchanged
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


def check(headers: pathlib.Path) -> int:
    """Plants every fault and compiles none."""
    failed = 0
    for fault in FAULTS:
        with tempfile.TemporaryDirectory(prefix="mutant_") as folder:
            try:
                plant(headers, pathlib.Path(folder), fault)
            except SystemExit as error:
                print(error)
                failed += 1
    print(f"{len(FAULTS) - failed} of {len(FAULTS)} faults can be planted")
    return 1 if failed else 0


class Kernels:
    """The generated sources: parts, and what lists the kernels of one part or of all. Lists see no kernel header, so
    they are compiled once."""

    def __init__(self, args, folder: pathlib.Path):
        self.args = args
        self.parts = [s for s in args.sources if not s.endswith("_list.cpp")]
        whole = next(s for s in args.sources if s.endswith("_list.cpp"))
        self.lists = []
        for i in range(len(self.parts)):
            text = pathlib.Path(whole).read_text()
            for other in range(len(self.parts)):
                if other != i:
                    text = text.replace(f"    add_kernels_{other}(all);\n", "")
            path = folder / f"list_{i}.cpp"
            path.write_text(text)
            self.lists.append(path)
        self.lists.append(whole)
        self.lists = [self.compile(source, folder / f"list_{i}.o", None) for i, source in enumerate(self.lists)]

    def compile(self, source, to: pathlib.Path, planted: pathlib.Path | None) -> pathlib.Path:
        include = [f"-I{planted}"] if planted else []
        subprocess.run([self.args.compiler, *shlex.split(self.args.flags), *include, f"-I{self.args.root}",
                        f"-I{self.args.root}/kernels/include", "-w", "-O0", "-fPIC", "-c", "-o", str(to), str(source)],
                       check=True, capture_output=True, text=True)
        return to

    def link(self, objects, to: pathlib.Path) -> pathlib.Path:
        subprocess.run([self.args.compiler, "-shared", "-o", str(to), *map(str, objects)], check=True,
                       capture_output=True, text=True)
        return to


# What a part of the kernels can be tested by: the others want certain kernels, or all algorithms.
PART_FILTER = "Spec/*:Properties.*-Properties.NothingToDo*"


def first_failure(args, library: pathlib.Path, tests: str | None) -> str:
    """The first test that fails, with what it said; empty when all pass."""
    environment = {**os.environ, "LD_PRELOAD": str(library), "GTEST_FAIL_FAST": "1", "GTEST_COLOR": "no"}
    if tests:
        environment["GTEST_FILTER"] = tests
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


def try_fault(args, kernels: Kernels, fault) -> tuple[str, str, float]:
    """(outcome, detail, seconds). Most faults show in the first part of the kernels: the others are compiled only when
    it passes, and all tests run on all of them at the end."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant_", dir=args.work) as folder:
        into = pathlib.Path(folder)
        plant(pathlib.Path(args.root) / "kernels/include/rowtune", into, fault)
        objects, failure = [], ""
        try:
            for i, part in enumerate(kernels.parts):
                objects.append(kernels.compile(part, into / f"part_{i}.o", into))
                library = kernels.link([kernels.lists[i], objects[-1]], into / "part.so")
                failure = first_failure(args, library, PART_FILTER)
                if failure:
                    break
            else:
                failure = first_failure(args, kernels.link([kernels.lists[-1], *objects], into / "all.so"), None)
        except subprocess.CalledProcessError as error:
            said = error.stderr.strip().splitlines()
            return "does not compile", said[0] if said else "", time.monotonic() - start
        return ("caught" if failure else "SURVIVED"), failure, time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", required=True, help="the project's folder")
    parser.add_argument("--check", action="store_true", help="only show that the headers have the text of every fault")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--flags", default="", help="language and floating-point flags")
    parser.add_argument("--program", help="the test program over the kernels' shared library")
    parser.add_argument("--work", default=tempfile.gettempdir())
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=int, default=300, help="seconds for the tests of one fault")
    parser.add_argument("--only", default="", help="only faults whose description contains this")
    parser.add_argument("sources", nargs="*", help="the generated kernels")
    args = parser.parse_args()
    if args.check:
        return check(pathlib.Path(args.root) / "kernels/include/rowtune")

    with tempfile.TemporaryDirectory(prefix="lists_", dir=args.work) as folder:
        return run(args, Kernels(args, pathlib.Path(folder)))


def run(args, kernels: Kernels) -> int:
    outcome, detail, seconds = try_fault(args, kernels, None)
    if outcome != "SURVIVED":
        print(f"the unchanged headers: {outcome}: {detail}")
        return 1
    print(f"The unchanged headers pass ({seconds:.0f} s). Faults and the tests that catch them:\n", flush=True)
    faults = [f for f in FAULTS if args.only in f.what]
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda f: try_fault(args, kernels, f), faults)
        for fault, (outcome, detail, seconds) in zip(faults, results):
            missed += outcome != "caught"
            print(f"{outcome:9} {fault.header:14} {fault.what}\n{'':24} {detail[:230]} ({seconds:.0f} s)", flush=True)
    print(f"\n{len(faults) - missed} of {len(faults)} faults caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
