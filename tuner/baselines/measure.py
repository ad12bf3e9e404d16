#!/usr/bin/env python3
"""Times PyTorch (eager and torch.compile) and, where installed, Liger, FlashInfer, QuACK on the workloads of rowtune.

    python3 measure.py --shapes llm --out others.jsonl [--op softmax,rmsnorm] [--dtype bf16,f32] [--impl torch,liger]
    rowtune baseline others.jsonl

The method is rowtune's (kernels/cuda/cuda_bench.cpp): CUDA graphs of many launches, the median of replays; in the regime
`cold` inputs, weights and outputs rotate through slots that together hold five times the L2, or, where a thousand slots
hold less, another buffer is written and read before each replay. Outputs that a library allocates itself are kept until the graph is
complete, so no address comes again within a graph. What a library does not offer, or refuses, is said on standard error
and left out. Each result is checked against fp32 PyTorch first.
"""

import argparse
import importlib
import json
import math
import statistics
import sys
import time

import torch
import torch.nn.functional as F

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
OPERATIONS = ["softmax", "log_softmax", "layernorm", "rmsnorm", "fused_add_rmsnorm"]
EPS = {"layernorm": 1e-5, "rmsnorm": 1e-6, "fused_add_rmsnorm": 1e-6}

ATTENTION = ["1048576x16", "262144x64", "131072x128", "32768x512", "4096x1000", "16384x1024"]
HIDDEN = [f"{r}x{c}" for c in (2048, 4096, 5120, 7168, 8192, 16384) for r in (1, 16, 512, 8192)]
LONG = ["256x5120", "65536x256", "32768x1024", "2048x32768", "512x131072"]
LONG_SCORES = ["8192x4096", "4096x8192", "2048x32768", "512x131072"]
LOGITS = [f"{r}x{c}" for c in (32000, 50257, 128256, 152064) for r in (1, 8, 64, 256)] + ["64x50000", "1x1048576"]
ODD = ["4097x1023", "4097x4095", "8192x769", "8192x1153"]
SHAPES = {  # as in tuner/shapes.cpp
    "llm": {op: (ATTENTION + LONG_SCORES + LOGITS if "softmax" in op else HIDDEN + LONG) + ODD for op in OPERATIONS},
    "quick": {op: (["256x1000", "4096x64", "4x32000"] if "softmax" in op else ["256x1000", "16x4096", "129x769"]) for op in OPERATIONS},
}


def tell(text):
    print(text, file=sys.stderr, flush=True)


# What a library does with one slot: a function of a dict of tensors that returns its output(s).


def torch_eager(op):
    def run(t):
        if op == "softmax":
            return torch.softmax(t["x"], -1)
        if op == "log_softmax":
            return torch.log_softmax(t["x"], -1)
        n = t["x"].shape[-1:]
        if op == "layernorm":
            return F.layer_norm(t["x"], n, t["w"], t["b"], EPS[op])
        if op == "rmsnorm":
            return F.rms_norm(t["x"], n, t["w"], EPS[op])
        residual = t["x"] + t["r"]
        return F.rms_norm(residual, n, t["w"], EPS[op]), residual

    return run


def torch_compiled(op):
    torch._dynamo.reset()  # one static shape at a time
    eager = torch_eager(op)
    return torch.compile(lambda t: eager(t), fullgraph=True, dynamic=False)


def liger(op):
    if op == "softmax":
        softmax = importlib.import_module("liger_kernel.ops.softmax")
        return lambda t: softmax._softmax_forward(t["x"])[0]
    if op == "layernorm":
        forward = importlib.import_module("liger_kernel.ops.layer_norm").layer_norm_forward
        return lambda t: forward(t["x"], t["w"], t["b"], EPS[op])[0]
    if op == "rmsnorm":
        forward = importlib.import_module("liger_kernel.ops.rms_norm").rms_norm_forward
        return lambda t: forward(t["x"], t["w"], EPS[op], 0.0, "llama", None)[0]
    if op == "fused_add_rmsnorm":
        forward = importlib.import_module("liger_kernel.ops.fused_add_rms_norm").fused_add_rms_norm_forward
        return lambda t: forward(t["x"], t["r"], t["w"], EPS[op], 0.0, "llama")[:2]
    return None


def flashinfer(op):
    norm = importlib.import_module("flashinfer.norm")
    if op == "rmsnorm":
        return lambda t: norm.rmsnorm(t["x"], t["w"], EPS[op])
    if op == "fused_add_rmsnorm":

        def run(t):
            norm.fused_add_rmsnorm(t["x"], t["r"], t["w"], EPS[op])  # in place
            return t["x"], t["r"]

        run.in_place = True
        return run
    return None


def quack(op):
    if op == "softmax":
        forward = importlib.import_module("quack.softmax").softmax_fwd
        return lambda t: forward(t["x"])
    if op == "rmsnorm":
        forward = importlib.import_module("quack.rmsnorm").rmsnorm
        return lambda t: forward(t["x"], t["w"], eps=EPS[op])
    return None


LIBRARIES = {
    "torch": (torch_eager, None),
    "torch.compile": (torch_compiled, None),
    "liger": (liger, "liger_kernel"),
    "flashinfer": (flashinfer, "flashinfer"),
    "quack": (quack, "quack"),
}


def version_of(package):
    if package is None:
        return torch.__version__
    try:
        from importlib.metadata import version

        return version({"liger_kernel": "liger-kernel", "quack": "quack-kernels", "flashinfer": "flashinfer-python"}[package])
    except Exception:
        return getattr(importlib.import_module(package), "__version__", "unknown")


def matrices(op):
    """Matrices read and written, for the estimate of the time and the size of a slot."""
    return 4 if op == "fused_add_rmsnorm" else 2


def slot(op, dtype, rows, cols, seed):
    g = torch.Generator(device="cuda").manual_seed(seed)
    t = {"x": torch.randn(rows, cols, generator=g, device="cuda", dtype=dtype)}
    if op in EPS:
        t["w"] = 1 + 0.1 * torch.randn(cols, generator=g, device="cuda", dtype=dtype)
    if op == "layernorm":
        t["b"] = 0.1 * torch.randn(cols, generator=g, device="cuda", dtype=dtype)
    if op == "fused_add_rmsnorm":
        t["r"] = torch.randn(rows, cols, generator=g, device="cuda", dtype=dtype)
    return t


def right(op, got, t, dtype):
    """Whether the first output is what fp32 PyTorch says, within a few units of the dtype."""
    rows = slice(0, min(64, t["x"].shape[0]))
    part = {k: (v[rows] if v.dim() == 2 else v) for k, v in t.items()}
    if op == "fused_add_rmsnorm":
        part["x"], part["r"] = (part["x"].float() + part["r"].float()).to(dtype), torch.zeros_like(part["r"])
    want = torch_eager(op)({k: v.float() for k, v in part.items()})
    want = want[0] if isinstance(want, tuple) else want
    got = (got[0] if isinstance(got, (tuple, list)) else got)[rows].float()
    unit = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[dtype]
    return bool(((got - want).abs() <= unit * want.abs().clamp(min=unit if "soft" not in op else 0) + (unit if op in EPS or op == "log_softmax" else 1e-7)).all())


def time_one(run, op, dtype, rows, cols, regime, replays):
    """Median and 95 % interval of microseconds per launch."""
    properties = torch.cuda.get_device_properties(0)
    element = torch.empty((), dtype=dtype).element_size()
    bytes_moved = matrices(op) * rows * cols * element
    estimate = 1.2 + bytes_moved / 4.8e6  # microseconds: a launch, and a copy at about the peak
    wanted = max(4, min(1000, int(1000 / estimate) + 1))
    if regime == "cold":
        slots = max(2, min(1000, math.ceil(5 * properties.L2_cache_size / bytes_moved)))
        flush = slots * bytes_moved < 5 * properties.L2_cache_size  # the slots do not push each other out
        launches = slots if flush else math.ceil(max(wanted, slots) / slots) * slots
    else:
        slots, launches, flush = 1, wanted, False
    tensors = [slot(op, dtype, rows, cols, i) for i in range(slots)]
    check = {k: v.clone() for k, v in tensors[0].items()}
    if not right(op, run(check), tensors[0], dtype):
        raise RuntimeError("the result is wrong")
    for t in tensors[:3]:
        run({k: v.clone() for k, v in t.items()})
    torch.cuda.synchronize()
    graph, keep = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        for i in range(launches):
            out = run(tensors[i % slots])
            if regime == "cold":
                keep.append(out)
    scratch = torch.ones(properties.L2_cache_size // 2, dtype=torch.float32, device="cuda") if flush else None
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    samples = []
    for i in range(replays + 3):
        if flush:
            scratch.fill_(1.0)
            scratch.sum()
        start.record()
        graph.replay()
        stop.record()
        stop.synchronize()
        if i >= 3:
            samples.append(start.elapsed_time(stop) * 1e3 / launches)
    samples.sort()
    n = len(samples)
    k = max(0, int(n / 2 - 0.98 * math.sqrt(n)) - 1)  # order statistics around the median
    return statistics.median(samples), samples[k], samples[n - 1 - k]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default="llm", help="llm, quick, or RxC,RxC,...")
    parser.add_argument("--op", default=",".join(OPERATIONS))
    parser.add_argument("--dtype", default="bf16,f16,f32")
    parser.add_argument("--regime", default="cold", choices=["cold", "warm"])
    parser.add_argument("--impl", default=",".join(LIBRARIES))
    parser.add_argument("--replays", type=int, default=15)
    parser.add_argument("--budget", type=float, default=1e9, help="seconds; what is left then is said")
    parser.add_argument("--out", required=True)
    return parser.parse_args()


def installed(names):
    """Name, maker and version of the libraries that are here."""
    found = []
    for name in names:
        make, package = LIBRARIES[name]
        try:
            if package:
                importlib.import_module(package)
            found.append((name, make, version_of(package)))
        except Exception as e:
            tell(f"skipped {name}: {package} cannot be imported ({type(e).__name__}: {e})")
    return found


def workloads(args, op):
    for dtype in args.dtype.split(","):
        for shape in SHAPES[args.shapes][op] if args.shapes in SHAPES else args.shapes.split(","):
            yield dtype, shape


def measured(make, op, dtype, shape, args):
    """Median and interval of one workload; None, said on standard error, where the library refuses it."""
    try:
        rows, cols = map(int, shape.split("x"))
        return time_one(make(op), op, DTYPES[dtype], rows, cols, args.regime, args.replays)
    except Exception as e:
        tell(f"skipped {op} {dtype} {shape}: {type(e).__name__}: {str(e).splitlines()[0][:160]}")
        torch.cuda.synchronize()
        return None
    finally:
        torch.cuda.empty_cache()


def main():
    args = parse_arguments()
    if not torch.cuda.is_available():
        tell("no CUDA device that PyTorch can use: nothing to measure")
        return 3
    began, written, left_out = time.time(), 0, 0
    with open(args.out, "w") as out:
        # One library after the other: what was compiled stays loaded.
        for name, make, version in installed(args.impl.split(",")):
            tell(f"{name} {version}")
            for op in args.op.split(","):
                if make(op) is None:
                    tell(f"skipped {op}: it has none")
                    continue
                for dtype, shape in workloads(args, op):
                    if time.time() - began > args.budget:
                        left_out += 1
                        continue
                    times = measured(make, op, dtype, shape, args)
                    if times is None:
                        continue
                    median, low, high = (round(t, 4) for t in times)
                    line = {
                        "device_model": torch.cuda.get_device_name(0),
                        "op": op,
                        "dtype": dtype,
                        "shape": shape,
                        "regime": args.regime,
                        "impl": name,
                        "version": version,
                        "time_us": median,
                        "time_lo_us": low,
                        "time_hi_us": high,
                        "method": f"CUDA graph, median of {args.replays} replays, {args.regime} rotation",
                    }
                    out.write(json.dumps(line) + "\n")
                    out.flush()
                    written += 1
    tell(f"{written} times written to {args.out} in {time.time() - began:.0f} s")
    if left_out > 0:
        tell(f"{left_out} left out by --budget")
    return 0


if __name__ == "__main__":
    sys.exit(main())
