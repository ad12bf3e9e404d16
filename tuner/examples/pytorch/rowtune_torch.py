"""A dispatch table's kernels on PyTorch tensors, through ctypes: softmax, log_softmax, layer_norm, rms_norm,
fused_add_rms_norm over the last dimension. Load once with Rowtune("librowtune_table.so"); forward only.

Launches on the current stream, allocates only outputs and, where a kernel needs it, a workspace for each stream; may be
captured into a CUDA graph after a first call outside of one."""

import ctypes

import torch

KINDS = ("exact", "near", "out of range", "other device", "not tuned")
DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}


class Call(ctypes.Structure):
    _fields_ = (
        [(name, ctypes.c_void_p) for name in ("input", "residual", "weight", "bias", "output", "residual_out")]
        + [(name, ctypes.c_longlong) for name in ("rows", "cols", "input_stride", "residual_stride", "output_stride",
                                                  "residual_out_stride")]
        + [("eps", ctypes.c_float), ("weight_plus_one", ctypes.c_int), ("workspace", ctypes.c_void_p),
           ("workspace_bytes", ctypes.c_size_t), ("stream", ctypes.c_void_p)])


def matrix(x):
    """x as rows of contiguous elements: without a copy where its leading dimensions merge into one."""
    if x.dim() == 0:
        raise ValueError("rowtune: a tensor of at least one dimension is needed")
    if x.dim() == 2 and x.stride(-1) == 1 and x.stride(0) >= x.size(1):
        return x
    return x.contiguous().view(-1, x.size(-1))


class Rowtune:
    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        self._workspaces = {}
        self._functions = {}
        self.last_match = None  # how the last call was answered: one of KINDS

    def _functions_of(self, operation, dtype):
        key = operation, dtype
        if key not in self._functions:
            if dtype not in DTYPES:
                raise TypeError(f"rowtune: {operation} takes float32, float16 or bfloat16 tensors, not {dtype}")
            name = f"rowtune_{operation}_{DTYPES[dtype]}"
            launch, workspace = getattr(self._library, name), getattr(self._library, name + "_workspace")
            launch.argtypes, launch.restype = [ctypes.POINTER(Call), ctypes.POINTER(ctypes.c_int)], ctypes.c_int
            workspace.argtypes, workspace.restype = [ctypes.POINTER(Call)], ctypes.c_size_t
            self._functions[key] = launch, workspace
        return self._functions[key]

    def has(self, operation, dtype):
        return hasattr(self._library, f"rowtune_{operation}_{DTYPES[dtype]}")

    def prepare(self, operation, dtype):
        """Loads the kernels: before the first call that must be quick."""
        error = getattr(self._library, f"rowtune_{operation}_{DTYPES[dtype]}_prepare")()
        if error:
            raise RuntimeError(f"rowtune: loading the kernels of {operation}: CUDA error {error}")

    def _workspace(self, device, stream, size):
        key = device, stream
        have = self._workspaces.get(key)
        if have is None or have.numel() < size:
            # Zeroed once; grown outside of a capture only.
            have = self._workspaces[key] = torch.zeros(max(size, 1 << 16), dtype=torch.uint8, device=device)
        return have

    def run(self, operation, x, output, weight=None, bias=None, residual=None, residual_out=None, eps=1e-6,
            weight_plus_one=False):
        for name, t in (("output", output), ("weight", weight), ("bias", bias), ("residual", residual),
                        ("residual_out", residual_out)):
            if t is not None and (t.dtype != x.dtype or t.device != x.device):
                raise TypeError(f"rowtune: {name} must have the input's dtype and device")
        launch, workspace_bytes = self._functions_of(operation, x.dtype)
        stream = torch.cuda.current_stream(x.device).cuda_stream
        address = lambda t: t.data_ptr() if t is not None else None
        stride = lambda t: t.stride(0) if t is not None and t.size(0) > 1 else 0
        call = Call(address(x), address(residual), address(weight), address(bias), address(output),
                    address(residual_out), x.size(0), x.size(1), stride(x), stride(residual), stride(output),
                    stride(residual_out), eps, int(weight_plus_one), None, 0, stream)
        with torch.cuda.device(x.device):
            size = workspace_bytes(ctypes.byref(call))
            if size:
                workspace = self._workspace(x.device, stream, size)
                call.workspace, call.workspace_bytes = workspace.data_ptr(), workspace.numel()
            kind = ctypes.c_int()
            error = launch(ctypes.byref(call), ctypes.byref(kind))
        if error:
            raise RuntimeError(f"rowtune: {operation} on {tuple(x.shape)}: CUDA error {error}")
        self.last_match = KINDS[kind.value]
        return output

    def _over_rows(self, operation, x, out, **options):
        rows = matrix(x)
        into = torch.empty_like(rows, memory_format=torch.contiguous_format) if out is None else matrix(out)
        if out is not None and into.data_ptr() != out.data_ptr():
            raise ValueError("rowtune: out must be rows of contiguous elements")
        self.run(operation, rows, into, **options)
        return into.view(x.shape) if out is None else out

    def softmax(self, x, out=None):
        return self._over_rows("softmax", x, out)

    def log_softmax(self, x, out=None):
        return self._over_rows("log_softmax", x, out)

    def layer_norm(self, x, weight=None, bias=None, eps=1e-5, out=None):
        return self._over_rows("layernorm", x, out, weight=weight, bias=bias, eps=eps)

    def rms_norm(self, x, weight=None, eps=1e-6, out=None, weight_plus_one=False):
        return self._over_rows("rmsnorm", x, out, weight=weight, eps=eps, weight_plus_one=weight_plus_one)

    def fused_add_rms_norm(self, x, residual, weight=None, eps=1e-6, weight_plus_one=False):
        """In place: residual becomes residual + x, and x the normalised result. Both contiguous."""
        if not x.is_contiguous() or not residual.is_contiguous():
            raise ValueError("rowtune: fused_add_rms_norm works in place on contiguous tensors")
        rows, residual_rows = x.view(-1, x.size(-1)), residual.view(-1, x.size(-1))
        self.run("fused_add_rmsnorm", rows, rows, weight=weight, residual=residual_rows, residual_out=residual_rows,
                 eps=eps, weight_plus_one=weight_plus_one)
        return x, residual
