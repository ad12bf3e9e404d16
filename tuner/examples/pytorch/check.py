"""Checks a dispatch table's kernels against PyTorch and times both, cold, in CUDA graphs.

usage: check.py librowtune_table.so [--quick] [--dtypes bf16,f16,f32]; exits 1 when a result is wrong."""

import argparse
import statistics
import sys

import torch
import torch.nn.functional as F

from rowtune_torch import DTYPES, Rowtune

SHAPES = {
    "softmax": [(131072, 128), (32768, 512), (4096, 1000), (4097, 4095), (256, 32000), (64, 50257), (8, 128256),
                (1, 152064)],
    "layernorm": [(16, 4096), (512, 4096), (8192, 4096), (8192, 8192), (2048, 32768), (8192, 769)],
    "rmsnorm": [(1, 4096), (16, 4096), (512, 4096), (8192, 4096), (8192, 7168), (8192, 16384), (4097, 4095)],
}


def functions(table, operation, dtype, cols):
    """Ours, PyTorch's, and the reference in double."""
    weight = 1 + 0.1 * torch.randn(cols, device="cuda", dtype=torch.float32)
    bias = 0.1 * torch.randn(cols, device="cuda", dtype=torch.float32)
    weight, bias = weight.to(dtype), bias.to(dtype)
    if operation == "softmax":
        return (lambda x, y: table.softmax(x, out=y), lambda x: torch.softmax(x, -1),
                lambda x: torch.softmax(x.double(), -1))
    if operation == "layernorm":
        return (lambda x, y: table.layer_norm(x, weight, bias, 1e-5, out=y),
                lambda x: F.layer_norm(x, (cols,), weight, bias, 1e-5),
                lambda x: F.layer_norm(x.double(), (cols,), weight.double(), bias.double(), 1e-5))
    return (lambda x, y: table.rms_norm(x, weight, 1e-6, out=y), lambda x: F.rms_norm(x, (cols,), weight, 1e-6),
            lambda x: F.rms_norm(x.double(), (cols,), weight.double(), 1e-6))


def is_right(got, want, dtype):
    """Half an ulp of the dtype and the error of fp32 arithmetic in between; a NaN is wrong."""
    ulp = {torch.float32: 2.0**-23, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}[dtype]
    scale = want.abs().amax()
    error = (got.double() - want).abs()
    return bool((error <= 0.5 * ulp * want.abs() + 4e-6 * scale + 2.0**-24).all())


def cold_time(call, rows, cols, dtype, quick):
    """Median microseconds of a call in a graph that walks through buffers of five times the L2 together."""
    bytes_of_slot = 2 * rows * cols * dtype.itemsize
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    slots = min(max(2, 5 * l2 // bytes_of_slot + 1), 500)
    inputs = [torch.randn(rows, cols, device="cuda", dtype=torch.float32).to(dtype) for _ in range(slots)]
    outputs = [torch.empty_like(x) for x in inputs]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call(inputs[0], outputs[0])
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        keep = []
        with torch.cuda.graph(graph, stream=stream):
            for x, y in zip(inputs, outputs):
                keep.append(call(x, y))
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        times = []
        for i in range(10 if quick else 40):
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            if i >= 3:
                times.append(begin.elapsed_time(end) * 1e3 / slots)
    del keep, graph, inputs, outputs
    torch.cuda.empty_cache()
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shared_object", help="librowtune_table.so, as build.sh leaves it")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--dtypes", default="bf16,f16,f32")
    options = parser.parse_args()
    table = Rowtune(options.shared_object)
    by_name = {name: dtype for dtype, name in DTYPES.items()}
    torch.manual_seed(1)
    print(f"{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}; cold, microseconds")
    print(f"{'operation':10} {'dtype':5} {'shape':>14} {'rowtune':>9} {'pytorch':>9} {'speedup':>8}  match")
    wrong = slower = count = 0
    for operation, shapes in SHAPES.items():
        for dtype in (by_name[name] for name in options.dtypes.split(",")):
            if not table.has(operation, dtype):
                continue
            table.prepare(operation, dtype)
            for rows, cols in shapes:
                ours, theirs, exact = functions(table, operation, dtype, cols)
                x = torch.randn(rows, cols, device="cuda", dtype=torch.float32).to(dtype)
                y = torch.empty_like(x)
                ours(x, y)
                some = torch.randint(rows, (min(rows, 256),), device="cuda")
                right = is_right(y[some], exact(x[some]), dtype)
                # Rows of a larger matrix, starting at an odd element.
                wide = torch.randn(min(rows, 64), cols + 5, device="cuda", dtype=torch.float32).to(dtype)[:, 3:3 + cols]
                narrow = torch.empty(wide.shape, device="cuda", dtype=dtype)
                ours(wide, narrow)
                right &= is_right(narrow, exact(wide), dtype)
                ours(x, y)
                match = table.last_match
                times = (cold_time(ours, rows, cols, dtype, options.quick),
                         cold_time(lambda a, b: theirs(a), rows, cols, dtype, options.quick))
                count += 1
                wrong += not right
                slower += times[0] > times[1]
                print(f"{operation:10} {DTYPES[dtype]:5} {f'{rows}x{cols}':>14} {times[0]:9.2f} {times[1]:9.2f} "
                      f"{times[1] / times[0]:7.2f}x  {match}{'' if right else '  WRONG'}", flush=True)
    print(f"{count} shapes: {wrong} wrong, {slower} slower than PyTorch")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
