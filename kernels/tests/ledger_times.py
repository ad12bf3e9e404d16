#!/usr/bin/env python3
"""The reports of the public ledger that are about time: no cliff between neighbouring shapes. Wants a GPU.

usage: ledger_times.py ROWTUNE [DATABASE]

Tunes the shapes with the program given, and compares the time of the chosen configs per byte moved. Exit: 0 when no
pair is further apart than it may be, 1 otherwise.
"""

import json
import subprocess
import sys

# Report; operation; dtypes; the shape that was fast, the shape that was slow; how many times slower a byte may be.
PAIRS = [
    ("pytorch 144645", "softmax", "f32,f16,bf16", "4096x1024", "4096x1025", 1.25),
    ("pytorch 144645", "layernorm", "f32,f16,bf16", "4096x1024", "4096x1025", 1.25),
    ("Fuser 566", "layernorm", "f16,bf16", "8192x7168", "8192x7296", 1.25),
    ("TileOPs 1716", "rmsnorm", "f16,bf16", "8192x1024", "8192x1152", 1.25),
    ("Fast-LLM 499", "rmsnorm", "bf16", "16384x2048", "32768x1024", 1.25),
    ("Fast-LLM 499", "layernorm", "bf16", "16384x2048", "32768x1024", 1.25),
]


def elements(shape):
    rows, cols = shape.split("x")
    return int(rows) * int(cols)


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    program, database = sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "ledger_times.db"
    worse = 0
    print(f"{'report':16} {'workload':22} {'us':>9} {'us':>9} {'per byte':>9} {'allowed':>8}")
    for report, op, dtypes, fast, slow, allowed in PAIRS:
        subprocess.run([program, "tune", "--op", op, "--dtype", dtypes, "--shapes", f"{fast},{slow}", "--budget", "60s",
                        "--quiet", "--db", database], check=True, stdout=subprocess.DEVNULL)
        for dtype in dtypes.split(","):
            times = []
            for shape in (fast, slow):
                answer = subprocess.run([program, "best", "--op", op, "--dtype", dtype, "--shape", shape, "--format",
                                         "json", "--db", database], check=True, capture_output=True, text=True)
                times.append(json.loads(answer.stdout)[0]["time_us"])
            ratio = times[1] / elements(slow) / (times[0] / elements(fast))
            ok = ratio <= allowed
            worse += not ok
            print(f"{report:16} {op + ' ' + dtype:22} {times[0]:9.2f} {times[1]:9.2f} {ratio:9.3f} {allowed:8.2f}"
                  f"{'' if ok else '  CLIFF'}  {fast} -> {slow}")
    print("no cliffs" if worse == 0 else f"{worse} cliffs")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
