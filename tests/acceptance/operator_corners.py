"""Single operators at the corners of their attributes, beside ONNX Runtime: negative and absent axes, uneven and empty
parts, clamped bounds, automatic padding, rounding modes, reductions over nothing, NaN and infinities, sizes 0 and 1,
dims with and without symbols, several opsets.

usage: operator_corners.py BIN_DIR [--seed N] [--count N] [--only Op,Op] [--short] [--show] [--standin DIR]
Exits 77 without onnx and onnxruntime.

One generator per operator draws its inputs and attributes from a seed; every draw is a model of one node. What ONNX
Runtime refuses is no legal model, unless it only lacks a kernel: then onnx.reference says what is right. Of a legal one
vm-compile and vm-run must give the same values, dtype and shape, or vm-compile must refuse it as unsupported (exit
code 8) for a reason that REFUSALS lists. Where the two oracles disagree, both are shown, and the specification decided:
QUIRKS lists those cases. Several draws share a model, so that a process is not started for each; they are taken apart
when something is wrong with them.

Random choices come from one seed (--seed); a failure prints the case as it is needed to see it again with --only."""
import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnx.reference
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"SKIP: {error}")
    sys.exit(77)

F32, F64, F16, I64, I32, I8, U8, BOOL = (np.dtype(t) for t in ("f4", "f8", "f2", "i8", "i4", "i1", "u1", "?"))
INT_MAX, INT_MIN = 2**63 - 1, -2**63
UNSUPPORTED = 8  # vm-compile's exit code
SYMBOLS = "NSTUVWXYZ"
# What needs a constant dim: a number of classes, of coordinates, of parts.
STATIC = ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "ScatterND", "GatherND", "EyeLike", "Tile", "Expand",
          "CenterCropPad", "Squeeze", "ConvTranspose", "Conv", "Attention", "RotaryEmbedding")

# What vm-compile may refuse, by operator and text: limits that compiler/importer states.
REFUSALS = (
    ("*", "symbolic"),
    ("*", "not constants?"),
    ("*", "of rank"),
    ("Resize", "interpolation of u?int8"),
    ("Resize", "antialias with the places of tf_crop_and_resize"),
    ("*", "known shape"),
)

# Draws where ONNX Runtime is not followed: operator, condition on the case, why.
QUIRKS = (
    ("ReduceM(ax|in)", lambda c: c.has_nan(),
     "which NaN wins depends on where ONNX Runtime's vectors begin; numpy's rule"),
    ("(Global)?MaxPool", lambda c: c.has_nan(), "the same"),
    ("ReduceMean", lambda c: c.inputs[0].size == 0 and c.inputs[0].dtype.kind == "f",
     "the mean of nothing is undefined: NaN, in ONNX Runtime 0"),
    ("AffineGrid", lambda c: c.attrs["align_corners"] == 1 and 1 in c.inputs[1].tolist()[2:],
     "the middle of an axis of 1 is 0 in the specification's function body, -1 in ONNX Runtime"),
    ("NonZero", lambda c: c.inputs[0].ndim == 0, "a scalar has no axes: the specification says [0, n]"),
    ("Resize", lambda c: c.attrs["mode"] == "nearest" and len(c.inputs) == 4,
     "places of lengths on borders of elements, which a rounding decides"),
    ("Resize", lambda c: len(c.inputs) == 3 and c.attrs["coordinate_transformation_mode"] in (
        "half_pixel_symmetric", "align_corners", "tf_crop_and_resize", "pytorch_half_pixel"),
     "whether a length counts before its rounding or after it is not said"),
    ("Resize", lambda c: c.attrs["coordinate_transformation_mode"] == "tf_crop_and_resize" and any(
        (begin, end) != (0, 1) for begin, end in zip(*c.inputs[1].reshape(2, -1).tolist())),
     "ONNX Runtime takes all of an axis whose scale is 1 though a part is cut out"),
)


class Case:
    """One node, its inputs as arrays by name; those in `constants` are initialisers."""

    def __init__(self, op, inputs, attrs=None, constants=(), outputs=1, opset=None, rtol=1e-4, atol=1e-5, symbolic=None,
                 front=()):
        self.op, self.attrs, self.outputs, self.opset = op, attrs or {}, outputs, opset
        self.inputs = inputs  # a list; None: left out
        self.constants = set(constants)  # places of inputs
        self.rtol, self.atol = rtol, atol
        self.symbolic = symbolic  # names of dims by their size
        # What is done to the first input before: (operator, attributes, a constant or None).
        self.front = list(front)

    def has_nan(self):
        return any(x is not None and x.dtype.kind == "f" and np.isnan(x).any() for x in self.inputs)

    def describe(self):
        def text(i, x):
            if x is None:
                return "-"
            kind = "const" if i in self.constants else "input"
            values = np.array2string(x.ravel()[:12], threshold=12, separator=",", max_line_width=1000)
            return f"{kind} {x.dtype}{list(x.shape)}={values}"
        inputs = "; ".join(text(i, x) for i, x in enumerate(self.inputs))
        before = " behind " + ", ".join(op for op, _, _ in self.front) if self.front else ""
        return f"{self.op}{before} opset {self.opset} {self.attrs} ({inputs}) symbols {self.symbolic}"

    def nodes(self, prefix):
        names = ["" if x is None else f"{prefix}_x{i}" for i, x in enumerate(self.inputs)]
        while names and not names[-1]:
            names.pop()
        nodes = []
        for i, (op, attrs, constant) in enumerate(self.front):
            given = [names[0]] + ([f"{prefix}_f{i}"] if constant is not None else [])
            names[0] = f"{prefix}_t{i}"
            nodes.append(helper.make_node(op, given, [names[0]], **attrs))
        nodes.append(helper.make_node(self.op, names, [f"{prefix}_y{i}" for i in range(self.outputs)], **self.attrs))
        return nodes

    def front_constants(self, prefix):
        return {f"{prefix}_f{i}": constant for i, (_, _, constant) in enumerate(self.front) if constant is not None}

    def feeds(self, prefix):
        return {f"{prefix}_x{i}": x for i, x in enumerate(self.inputs) if x is not None and i not in self.constants}


def model_of(cases, opset):
    nodes, inputs, initialisers, outputs = [], [], [], []
    for number, case in enumerate(cases):
        prefix = f"c{number}"
        nodes += case.nodes(prefix)
        initialisers += [numpy_helper.from_array(x, name) for name, x in case.front_constants(prefix).items()]
        for i, x in enumerate(case.inputs):
            if x is None:
                continue
            name = f"{prefix}_x{i}"
            if i in case.constants:
                initialisers.append(numpy_helper.from_array(x, name))
                continue
            dims = [f"{prefix}{case.symbolic[d]}" if case.symbolic and d in case.symbolic else d for d in x.shape]
            inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), dims))
        outputs += [onnx.ValueInfoProto(name=f"{prefix}_y{i}") for i in range(case.outputs)]
    graph = helper.make_graph(nodes, "corners", inputs, outputs, initialisers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


# ---- oracles
def expected(case):
    """The outputs, or None and why the case says nothing."""
    model = model_of([case], case.opset)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, case.feeds("c0")), "onnxruntime"
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error):
            return None, str(error)
    try:
        with np.errstate(all="ignore"):
            return onnx.reference.ReferenceEvaluator(model).run(None, case.feeds("c0")), "onnx.reference"
    except Exception as error:
        return None, str(error)


def reference(case):
    try:
        with np.errstate(all="ignore"):
            return onnx.reference.ReferenceEvaluator(model_of([case], case.opset)).run(None, case.feeds("c0"))
    except Exception:
        return None


def difference(case, want, got):
    if len(want) != len(got):
        return "another number of outputs"
    for i, (w, g) in enumerate(zip(want, got)):
        w = np.asarray(w)
        if w.dtype != g.dtype or w.shape != g.shape:
            return f"output {i}: {w.dtype}{list(w.shape)} expected, {g.dtype}{list(g.shape)} given"
        if w.dtype.kind == "f":
            loose = 40 if w.dtype == F16 else 1
            same = np.isclose(w.astype(F64), g.astype(F64), case.rtol * loose, case.atol * loose, equal_nan=True)
        else:
            same = w == g
        if not np.all(same):
            at = np.unravel_index(np.argmin(same), w.shape) if w.shape else ()
            return f"output {i}{[int(a) for a in at]}: {w[at]} expected, {g[at]} given ({np.sum(~same)} of {w.size})"
    return ""


# ---- our side
class Tools:
    """standin: a folder with a vm-run for the device cuda and the driver that is loaded in place of a GPU's."""

    def __init__(self, bin_dir, folder, standin=None):
        self.bin, self.folder = bin_dir, pathlib.Path(folder)
        self.target, self.run_dir, self.environment = "cpu:x86-64-v3", bin_dir, None
        if standin:
            self.target, self.run_dir = "cuda:sm_80", standin.resolve()
            self.environment = {**os.environ, "LD_LIBRARY_PATH": str(self.run_dir), "INGOT_STANDIN_QUIET": "1"}

    def run(self, cases, opset):
        """(outputs per case, "") or (None, what went wrong)"""
        path = self.folder / "model.onnx"
        onnx.save(model_of(cases, opset), path)
        executable, inputs, outputs = (self.folder / name for name in ("model.ingot", "in.npz", "out.npz"))
        outputs.unlink(missing_ok=True)
        np.savez(inputs, **{k: v for n, case in enumerate(cases) for k, v in case.feeds(f"c{n}").items()})
        for command in ([self.bin / "vm-compile", "--target", self.target, path, "-o", executable],
                        [self.run_dir / "vm-run", executable, inputs, "--output", f"@{outputs}"]):
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=self.environment)
            except subprocess.TimeoutExpired:
                return None, f"{command[0].name}: more than 60 s"
            if done.returncode:
                return None, f"{command[0].name} exits {done.returncode}: {done.stderr.strip()[-300:]}"
        data = np.load(outputs)
        return [[data[f"c{n}_y{i}"] for i in range(case.outputs)] for n, case in enumerate(cases)], ""


# ---- what generators draw with
class Draw:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.np = np.random.default_rng(seed)

    def pick(self, *values):
        return self.r.choice(values)

    def chance(self, p):
        return self.r.random() < p

    def int(self, low, high):
        return self.r.randint(low, high)

    def dims(self, rank=None, low=1, high=5, empty=0.06):
        rank = self.int(1, 4) if rank is None else rank
        return [0 if self.chance(empty) else self.int(low, high) for _ in range(rank)]

    def data(self, dims, dtype=F32, special=0.15):
        dtype = np.dtype(dtype)
        if dtype == BOOL:
            return self.np.integers(0, 2, dims).astype(BOOL)
        if dtype.kind in "iu":
            return self.np.integers(0 if dtype.kind == "u" else -9, 10, dims).astype(dtype)
        x = (self.np.integers(-32, 33, dims) / 8).astype(dtype)
        if x.size and self.chance(special):
            for _ in range(self.int(1, 3)):
                x.ravel()[self.r.randrange(x.size)] = self.pick(np.nan, np.inf, -np.inf, -0.0)
        return x

    def finite(self, dims, dtype=F32):
        return self.data(dims, dtype, special=0)

    def axis(self, rank):
        return self.int(-rank, rank - 1)

    def axes(self, rank, least=0):
        chosen = self.r.sample(range(rank), self.int(min(least, rank), rank))
        return [a - rank if self.chance(0.4) else a for a in chosen]

    def number(self):
        return self.pick(F32, F32, F32, I64, I32, F16, F64)

    def ints(self, values):
        return np.array(values, I64)


GENERATORS = {}


def corner(*names):
    def register(function):
        for name in names:
            GENERATORS[name] = function
        return function
    return register


@corner("Clip")
def clip(d, op):
    dtype = d.pick(F32, F32, F16, F64, I32, I64, I8, U8)
    bounds = []
    for _ in range(2):
        value = d.pick(0, 1, 2, 5) if dtype.kind == "u" else d.pick(-3, 0, 1, 2)
        if dtype.kind == "f":
            value = d.pick(value, value + 0.5, np.inf, -np.inf, np.nan)
        bounds.append(None if d.chance(0.15) else np.array(value, dtype))
    if dtype == F32 and d.chance(0.2):
        attrs = {k: float(v) for k, v in zip(("min", "max"), bounds) if v is not None}
        return Case(op, [d.data(d.dims(), F32)], attrs, opset=d.pick(7, 9))
    return Case(op, [d.data(d.dims(), dtype), *bounds], constants=d.pick((1, 2), (), (1,)), opset=d.pick(13, 17))


@corner("Slice")
def slice_(d, op):
    dims = d.dims(d.int(1, 3))
    axes = d.axes(len(dims), 1)
    bound = lambda: d.pick(d.int(-8, 8), d.int(-8, 8), d.int(-8, 8), INT_MAX, INT_MIN, INT_MIN + 1, 2**31 - 1, -2**31)
    starts, ends = [bound() for _ in axes], [bound() for _ in axes]
    x = d.data(dims, d.pick(F32, I64, BOOL))
    if d.chance(0.15):
        return Case(op, [x.astype(F32)], {"axes": axes, "starts": starts, "ends": ends}, opset=9)
    steps = [d.pick(1, 1, 2, 3, -1, -2, -3, INT_MAX, INT_MIN + 1) for _ in axes]
    dtype = I64
    if d.chance(0.2):
        limit = lambda v: [max(min(a, 2**31 - 1), -2**31) for a in v]
        starts, ends, steps, dtype = limit(starts), limit(ends), limit(steps), I32
    inputs = [x, *(np.array(v, dtype) for v in (starts, ends, axes, steps))]
    if d.chance(0.1):
        inputs = inputs[:3] + [None] * 2 if len(axes) == len(dims) else inputs
    return Case(op, inputs, constants=(1, 2, 3, 4), opset=d.pick(11, 13))


@corner("Compress")
def compress(d, op):
    dims = d.dims(d.int(1, 3))
    x = d.data(dims, d.pick(F32, I64))
    attrs = {"axis": d.axis(len(dims))} if d.chance(0.7) else {}
    extent = dims[attrs["axis"]] if attrs else int(np.prod(dims))
    condition = d.data([max(0, extent + d.pick(-2, -1, 0, 1, 3))], BOOL)
    return Case(op, [x, condition], attrs, constants=d.pick((), (1,)), opset=d.pick(9, 11))


@corner("ArgMax", "ArgMin")
def arg(d, op):
    dims = d.dims(d.int(1, 4), empty=0.02)
    x = d.data(dims, d.pick(F32, F32, F64, I32, I64, I8, U8), special=0.5)
    attrs = {"keepdims": d.int(0, 1), "select_last_index": d.int(0, 1)}
    if d.chance(0.8):
        attrs["axis"] = d.axis(len(dims))
    return Case(op, [x], attrs, opset=d.pick(12, 13))


@corner("TopK")
def topk(d, op):
    dims = d.dims(d.int(1, 3), empty=0)
    axis = d.axis(len(dims))
    if d.chance(0.3):
        dims[axis] = d.int(90, 200)  # from 96 on rows are sorted by bytes
    x = d.data(dims, d.pick(F32, F32, F64, I32, I64), special=0.4)
    k = d.ints([d.int(0, dims[axis])])
    return Case(op, [x, k], {"axis": axis, "largest": d.int(0, 1), "sorted": 1}, constants=(1,), outputs=2, opset=11)


@corner("ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
        "ReduceLogSumExp", "ReduceSumSquare")
def reduce(d, op):
    dims = d.dims(d.int(0, 4), empty=0.04)
    floats = op in ("ReduceLogSum", "ReduceLogSumExp", "ReduceL2")
    x = d.data(dims, d.pick(F32, F32, F16) if floats else d.pick(F32, F32, I32, I64, F16), special=0.1)
    if x.dtype == F16 and op in ("ReduceL2", "ReduceLogSum") and d.chance(0.5):
        x *= F16.type(8192)  # steps that float16 does not hold, of which the result is one that it does
    attrs = {"keepdims": d.int(0, 1)}
    axes = d.axes(len(dims))
    if d.chance(0.3) and op != "ReduceSum":
        if axes:
            attrs["axes"] = axes
        return Case(op, [x], attrs, opset=d.pick(11, 13), rtol=1e-3)
    attrs["noop_with_empty_axes"] = d.int(0, 1)
    given = d.pick(d.ints(axes), None) if not axes or d.chance(0.1) else d.ints(axes)
    return Case(op, [x, given], attrs, constants=(1,), opset=d.pick(18, 20) if op != "ReduceSum" else 13, rtol=1e-3)


@corner("MaxPool", "AveragePool", "LpPool")
def pool(d, op):
    rank = d.pick(1, 2, 2, 3)
    kernel = [d.int(1, 3) for _ in range(rank)]
    # (Windows longer than the data: ONNX Runtime rounds a quotient below 0 towards zero.)
    x = d.data([d.int(1, 2), d.int(1, 3), *(d.int(max(3, 2 * k - 1), 7) for k in kernel)], special=0.1)
    attrs = {"kernel_shape": kernel}
    opset = d.pick(18, 19, 22)
    if d.chance(0.7):
        attrs["strides"] = [d.int(1, 3) for _ in range(rank)]
    auto = d.pick("NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    if auto.startswith("SAME"):  # ONNX Runtime leaves dilations out, and pads by less than nothing for long strides
        attrs["strides"] = [d.int(1, k) for k in kernel]
    elif d.chance(0.3):
        attrs["dilations"] = [d.int(1, 2) for _ in range(rank)]
    if auto != "NOTSET" or d.chance(0.2):
        attrs["auto_pad"] = auto
    if auto == "NOTSET" and d.chance(0.7):
        attrs["pads"] = [d.int(0, k - 1) for k in kernel * 2]
    if d.chance(0.4):
        attrs["ceil_mode"] = 1
    if op == "AveragePool":
        attrs["count_include_pad"] = d.int(0, 1)
    if op == "LpPool":
        attrs["p"] = d.int(1, 3)
    outputs = 1
    if op == "MaxPool" and d.chance(0.4):
        outputs = 2
        attrs["storage_order"] = d.int(0, 1)
    return Case(op, [x], attrs, outputs=outputs, opset=opset, rtol=1e-3)


@corner("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool")
def global_pool(d, op):
    x = d.data([d.int(1, 3), d.int(1, 3), *(d.int(1, 5) for _ in range(d.int(1, 3)))], d.pick(F32, F32, F16))
    if x.dtype == F16 and d.chance(0.5):
        x *= F16.type(64)
    x = np.maximum(x, np.finfo(x.dtype).min)  # (where ONNX Runtime's greatest element starts, instead of -inf)
    return Case(op, [x], {"p": d.int(1, 3)} if op == "GlobalLpPool" else {}, opset=13, rtol=1e-3)


@corner("Conv")
def conv(d, op):
    rank = d.pick(1, 2, 2, 3)
    groups = d.pick(1, 1, 2)
    kernel = [d.int(1, 3) for _ in range(rank)]
    w = d.finite([groups * d.int(1, 3), d.int(1, 3), *kernel])
    x = d.finite([d.int(1, 2), groups * w.shape[1], *(d.int(5, 8) for _ in range(rank))])
    attrs = {"group": groups}
    if d.chance(0.3):
        attrs["kernel_shape"] = kernel
    if d.chance(0.6):
        attrs["strides"] = [d.int(1, 3) for _ in range(rank)]
    if d.chance(0.4):
        attrs["dilations"] = [d.int(1, 2) for _ in range(rank)]
    auto = d.pick("NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    if auto != "NOTSET":
        attrs["auto_pad"] = auto
    elif d.chance(0.7):
        attrs["pads"] = [d.int(0, 2) for _ in range(2 * rank)]
    bias = d.finite([w.shape[0]]) if d.chance(0.5) else None
    return Case(op, [x, w, bias], attrs, constants=d.pick((1, 2), ()), opset=d.pick(11, 22))


@corner("ConvTranspose")
def conv_transpose(d, op):
    rank = d.pick(1, 2, 2, 3)
    groups = d.pick(1, 1, 2)
    kernel = [d.int(1, 4) for _ in range(rank)]
    x = d.finite([d.int(1, 2), groups * d.int(1, 2), *(d.int(1, 4) for _ in range(rank))])
    w = d.finite([x.shape[1], d.int(1, 3), *kernel])
    strides = [d.int(1, 3) for _ in range(rank)]
    dilations = [d.pick(1, 1, 2) for _ in range(rank)]
    attrs = {"group": groups, "strides": strides, "dilations": dilations}
    if d.chance(0.3):
        attrs["output_padding"] = [d.int(0, max(s, g) - 1) for s, g in zip(strides, dilations)]
    choice = d.pick("pads", "shape", "shape", "auto", "none")
    if choice == "pads":
        attrs["pads"] = [d.int(0, 2) for _ in range(2 * rank)]
    elif choice == "shape":
        natural = [s * (n - 1) + (k - 1) * g + 1 for s, n, k, g in zip(strides, x.shape[2:], kernel, dilations)]
        attrs["output_shape"] = [max(1, n + d.int(-2, 2)) for n in natural]
        if d.chance(0.3):
            attrs["auto_pad"] = d.pick("SAME_UPPER", "SAME_LOWER")
    elif choice == "auto":
        attrs["auto_pad"] = d.pick("SAME_UPPER", "SAME_LOWER", "VALID")
        # (A kernel shorter than its stride: the specification gives input * stride elements, ONNX Runtime fewer.)
        attrs["strides"] = [min(s, (k - 1) * g + 1) for s, k, g in zip(strides, kernel, dilations)]
        attrs.pop("output_padding", None)
    bias = d.finite([groups * w.shape[1]]) if d.chance(0.4) else None
    return Case(op, [x, w, bias], attrs, constants=d.pick((1, 2), ()), opset=11)


@corner("Pad")
def pad(d, op):
    dims = d.dims(d.int(1, 4), low=2, empty=0.03)
    mode = d.pick("constant", "constant", "edge", "reflect", "wrap")
    x = d.data(dims, d.pick(F32, F32, I64, I32, F64))
    axes = d.axes(len(dims), 1)
    most = 3 if mode != "reflect" else 1
    opset = d.pick(13, 18, 19)
    if opset < 18:
        axes = list(range(len(dims)))
    pads = [d.int(-1 if d.chance(0.2) else 0, most) for _ in range(2 * len(axes))]
    value = np.array(d.int(-5, 5), x.dtype) if d.chance(0.6) and mode == "constant" else None
    if value is not None and x.dtype == I64 and d.chance(0.5):
        value = np.array(2**60 + d.int(-3, 3))  # no double holds most of these
    inputs = [x, d.ints(pads), value]
    if opset >= 18:
        inputs.append(d.ints(axes))
    if mode == "wrap":
        opset = 19
    return Case(op, inputs, {"mode": mode}, constants=d.pick((1, 2, 3), (1, 3)), opset=opset)


@corner("Resize")
def resize(d, op):
    rank = d.pick(1, 2, 2)
    dims = [1, d.int(1, 2), *(d.int(1, 6) for _ in range(rank))]
    x = d.finite(dims, d.pick(F32, F32, U8))
    mode = d.pick("nearest", "linear", "cubic") if rank < 3 else "linear"
    attrs = {"mode": mode, "coordinate_transformation_mode": d.pick(
        "half_pixel", "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_crop_and_resize",
        "half_pixel_symmetric")}
    if mode == "nearest":
        attrs["nearest_mode"] = d.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic":
        x = x.astype(F32)
        attrs["cubic_coeff_a"] = d.pick(-0.75, -0.5)
        attrs["exclude_outside"] = d.int(0, 1)
    of_bytes = mode == "linear" and x.dtype == U8  # sums that are exact, of which the fraction is cut off
    if of_bytes:
        attrs["coordinate_transformation_mode"] = d.pick("half_pixel", "asymmetric")
    roi = None
    if attrs["coordinate_transformation_mode"] == "tf_crop_and_resize":
        starts = [0.0, 0.0, *(d.pick(0, 0.25, -0.5) for _ in range(rank))]
        ends = [1.0, 1.0, *(d.pick(1, 0.75, 1.5) for _ in range(rank))]
        roi = np.array(starts + ends, F32)
        attrs["extrapolation_value"] = 7.0
    if d.chance(0.5) or of_bytes:
        factors = (0.5, 1.0, 2.0) if of_bytes else (0.5, 0.6, 1.0, 1.5, 2.0, 2.6)
        scales = np.array([1, 1, *(d.pick(*factors) for _ in range(rank))], F32)
        inputs = [x, roi, scales]
    else:
        sizes = d.ints([*dims[:2], *(d.int(1, 9) for _ in range(rank))])
        inputs = [x, roi, None, sizes]
    constants = (1, 2, 3)
    if d.chance(0.15) and mode != "nearest" and x.dtype == F32:
        attrs["antialias"] = 1
    elif d.chance(0.25):
        constants = (1,)
    return Case(op, inputs, attrs, constants=constants, opset=d.pick(18, 19), rtol=1e-3, atol=1e-4)


@corner("Gather")
def gather(d, op):
    dims = d.dims(d.int(1, 3), empty=0)
    axis = d.axis(len(dims))
    extent = dims[axis]
    places = d.np.integers(-extent, extent, d.dims(d.int(0, 2))).astype(d.pick(I64, I32))
    return Case(op, [d.data(dims, d.number()), places], {"axis": axis}, constants=d.pick((), (1,)), opset=13)


@corner("GatherElements")
def gather_elements(d, op):
    dims = d.dims(d.int(1, 3), empty=0)
    axis = d.axis(len(dims))
    own = [d.int(1, n) for n in dims]
    own[axis] = d.int(0, 5)
    places = d.np.integers(-dims[axis], dims[axis], own).astype(d.pick(I64, I32))
    return Case(op, [d.data(dims, d.number()), places], {"axis": axis}, constants=d.pick((), (1,)), opset=13)


@corner("GatherND")
def gather_nd(d, op):
    dims = d.dims(d.int(1, 4), empty=0)
    batch = d.int(0, len(dims) - 1)
    width = d.int(1, len(dims) - batch)
    lead = dims[:batch] + d.dims(d.int(0 if batch else 1, 2), empty=0.02)
    places = np.stack([d.np.integers(-n, n, lead) for n in dims[batch:batch + width]], -1).astype(I64)
    return Case(op, [d.data(dims, d.number()), places], {"batch_dims": batch}, constants=d.pick((), (1,)), opset=13)


@corner("ScatterElements")
def scatter_elements(d, op):
    dims = d.dims(d.int(1, 3), empty=0)
    axis = d.axis(len(dims))
    reduction = d.pick("none", "add", "mul", "max", "min")
    own = [d.int(1, n) for n in dims]
    if reduction == "none":  # places differ, so that the order says nothing
        lead = [1 if i == axis % len(dims) else n for i, n in enumerate(own)]
        count = d.int(1, dims[axis])
        own[axis] = count
        places = np.empty(own, I64)
        for index in np.ndindex(*lead):
            at = list(index)
            at[axis] = slice(None)
            places[tuple(at)] = d.r.sample(range(dims[axis]), count)
        places = np.where(d.np.integers(0, 2, own), places, places - dims[axis])
    else:
        own[axis] = d.int(1, 5)
        places = d.np.integers(-dims[axis], dims[axis], own)
    dtype = d.pick(F32, I64, I32)
    return Case(op, [d.finite(dims, dtype), places.astype(I64), d.finite(own, dtype)],
                {"axis": axis, "reduction": reduction}, constants=d.pick((), (1,)), opset=18)


@corner("ScatterND")
def scatter_nd(d, op):
    dims = d.dims(d.int(1, 3), empty=0)
    width = d.int(1, len(dims))
    reduction = d.pick("none", "add", "mul", "max", "min")
    every = list(np.ndindex(*dims[:width]))
    count = d.int(1, min(len(every), 4))
    chosen = d.r.sample(every, count) if reduction == "none" else [d.r.choice(every) for _ in range(count)]
    places = np.array(chosen, I64).reshape(count, width)
    places = np.where(d.np.integers(0, 2, places.shape), places, places - np.array(dims[:width]))
    dtype = d.pick(F32, I64, I32)
    return Case(op, [d.finite(dims, dtype), places.astype(I64), d.finite([count, *dims[width:]], dtype)],
                {"reduction": reduction}, constants=d.pick((), (1,)), opset=18)


@corner("OneHot")
def one_hot(d, op):
    dims = d.dims(d.int(0, 2))
    depth = d.int(1, 5)
    indices = d.np.integers(-depth - 2, depth + 2, dims).astype(d.pick(I64, F32, I32))
    values = d.data([2], d.pick(F32, I64, F32))
    deep = np.array([depth] if d.chance(0.5) else depth, d.pick(I64, F32))
    return Case(op, [indices, deep, values], {"axis": d.int(-len(dims) - 1, len(dims))}, constants=d.pick((1,), (1, 2)),
                opset=11)


@corner("CumSum")
def cumsum(d, op):
    dims = d.dims(d.int(1, 3))
    axis = np.array(d.axis(len(dims)), d.pick(I64, I32))
    return Case(op, [d.data(dims, d.pick(F32, F64, I32, I64)), axis if d.chance(0.5) else axis.reshape(1)],
                {"exclusive": d.int(0, 1), "reverse": d.int(0, 1)}, constants=(1,), opset=14)


@corner("Mod")
def mod(d, op):
    dtype = d.pick(F32, F64, F16, I32, I64, I8, U8)
    dims = d.dims(2, empty=0.02)
    x, y = d.data(dims, dtype), d.data(d.pick(dims, [1], [dims[-1]]), dtype)
    if dtype.kind != "f":
        y[y == 0] = 3
    return Case(op, [x, y], {"fmod": 1 if dtype.kind == "f" else d.int(0, 1)}, opset=13)


@corner("BitShift")
def bit_shift(d, op):
    dtype = d.pick(U8, np.dtype("u2"), np.dtype("u4"), np.dtype("u8"))
    x = d.np.integers(0, 2 ** min(8 * dtype.itemsize, 62), [3, 4]).astype(dtype)
    y = d.np.integers(0, 8 * dtype.itemsize, d.pick([3, 4], [4], [1])).astype(dtype)
    return Case(op, [x, y], {"direction": d.pick("LEFT", "RIGHT")}, opset=11)


@corner("Einsum")
def einsum(d, op):
    equation, shapes = d.pick(
        ("ij,jk->ik", ("ij", "jk")), ("ij,jk", ("ij", "jk")), ("ii->i", ("ii",)), ("ii", ("ii",)), ("ij->ji", ("ij",)),
        ("ij->", ("ij",)), ("bij,bjk->bik", ("bij", "bjk")), ("...ij,...jk->...ik", ("bij", "bjk")), ("i,j->ij", ("i",
                                                                                                                  "j")),
        ("...i->...", ("bji",)), ("ij,ij->", ("ij", "ij")), ("ibh,hnd->ibnd", ("ibh", "hnd")), (" i j , j -> i ",
                                                                                                ("ij", "j")),
        ("ba", ("ba",)), ("bhwc,hkc->bhwk", ("bhwc", "hkc")), ("i,i,i->i", ("i", "i", "i")), ("iji->j", ("iji",)))
    sizes = {c: d.int(1, 4) for c in "abcdefghijklmnopqrstuvwxyz"}
    return Case(op, [d.finite([sizes[c] for c in shape]) for shape in shapes], {"equation": equation}, opset=12,
                rtol=1e-3)


@corner("Split")
def split(d, op):
    dims = d.dims(d.int(1, 3))
    axis = d.axis(len(dims))
    extent = dims[axis]
    parts = d.int(1, 4)
    x = d.data(dims, d.pick(F32, I64))
    if d.chance(0.5):
        cuts = sorted(d.int(0, extent) for _ in range(parts - 1))
        lengths = [b - a for a, b in zip([0, *cuts], [*cuts, extent])]
        if d.chance(0.3):
            return Case(op, [x], {"axis": axis, "split": lengths}, outputs=parts, opset=11)
        return Case(op, [x, d.ints(lengths)], {"axis": axis}, constants=(1,), outputs=parts, opset=d.pick(13, 18))
    if d.chance(0.5):
        return Case(op, [x], {"axis": axis, "num_outputs": parts}, outputs=parts, opset=18)
    return Case(op, [x], {"axis": axis}, outputs=parts, opset=13)


@corner("Tile")
def tile(d, op):
    dims = d.dims(d.int(0, 3))
    return Case(op, [d.data(dims, d.number()), d.ints([d.int(0, 3) for _ in dims])], constants=d.pick((1,), ()),
                opset=13)


@corner("Expand")
def expand(d, op):
    dims = d.dims(d.int(0, 3), high=3)
    shape = [d.int(1, 3) for _ in range(d.int(0, 2))] + [n if d.chance(0.5) else d.pick(1, n, 2) for n in dims]
    shape = shape[d.int(0, 1):]
    return Case(op, [d.data(dims, d.number()), d.ints(shape)], constants=(1,), opset=13)


@corner("Range")
def range_(d, op):
    dtype = d.pick(F32, I64, I32, F64)
    values = [d.int(-6, 6), d.int(-6, 6), d.pick(-3, -2, -1, 1, 2, 3)]
    if dtype.kind == "f" and d.chance(0.5):
        values = [v + d.pick(0, 0.25, 0.5) for v in values]
    return Case(op, [np.array(v, dtype) for v in values], constants=d.pick((0, 1, 2), ()), opset=11)


@corner("EyeLike")
def eye_like(d, op):
    attrs = {"k": d.int(-4, 4)}
    if d.chance(0.5):
        attrs["dtype"] = d.pick(TensorProto.FLOAT, TensorProto.INT64, TensorProto.DOUBLE, TensorProto.INT32)
    return Case(op, [d.data(d.dims(2), d.pick(F32, I64))], attrs, opset=9)


@corner("Shape")
def shape(d, op):
    attrs = {}
    if d.chance(0.7):
        attrs["start"] = d.int(-6, 6)
    if d.chance(0.7):
        attrs["end"] = d.int(-6, 6)
    return Case(op, [d.data(d.dims(d.int(0, 4)))], attrs, opset=15)


@corner("Unique")
def unique(d, op):
    dims = d.dims(d.int(1, 3), high=4, empty=0)
    x = d.np.integers(0, 3, dims).astype(d.pick(F32, I64))
    attrs = {"sorted": d.int(0, 1)}
    if d.chance(0.6):
        attrs["axis"] = d.axis(len(dims))
    return Case(op, [x], attrs, outputs=4, opset=11)


@corner("Trilu")
def trilu(d, op):
    dims = d.dims(d.int(2, 4))
    k = np.array(d.int(-5, 5), I64) if d.chance(0.8) else None
    return Case(op, [d.data(dims, d.number()), k], {"upper": d.int(0, 1)}, constants=(1,), opset=14)


@corner("Transpose")
def transpose(d, op):
    dims = d.dims(d.int(0, 4))
    attrs = {}
    if d.chance(0.8):
        attrs["perm"] = d.r.sample(range(len(dims)), len(dims))
    return Case(op, [d.data(dims, d.number())], attrs if dims else {}, opset=13)


@corner("Reshape")
def reshape(d, op):
    dims = d.dims(d.int(1, 3))
    count = int(np.prod(dims))
    zero = 0
    target = d.pick([-1], [1, -1], [count], [0, -1], [-1, 1, 1], list(reversed(dims)), [*dims[:1], -1], [0] * len(dims))
    if 0 in dims and d.chance(0.5):
        zero = 1
    attrs = {"allowzero": zero} if zero else {}
    return Case(op, [d.data(dims, d.number()), d.ints(target)], attrs, constants=(1,), opset=14)


@corner("Flatten")
def flatten(d, op):
    dims = d.dims(d.int(0, 4))
    return Case(op, [d.data(dims, d.number())], {"axis": d.int(-len(dims), len(dims))} if d.chance(0.9) else {},
                opset=13)


@corner("Squeeze")
def squeeze(d, op):
    dims = [d.pick(1, 1, 2, 3) for _ in range(d.int(1, 4))]
    ones = [i - (len(dims) if d.chance(0.4) else 0) for i, n in enumerate(dims) if n == 1]
    axes = d.ints(d.r.sample(ones, d.int(0, len(ones)))) if d.chance(0.7) else None
    if axes is not None and not len(axes):
        axes = None
    return Case(op, [d.data(dims), axes], constants=(1,), opset=13)


@corner("Unsqueeze")
def unsqueeze(d, op):
    dims = d.dims(d.int(0, 3))
    count = d.int(1, 2)
    return Case(op, [d.data(dims), d.ints(d.axes(len(dims) + count, count)[:count])], constants=(1,), opset=13)


@corner("Concat")
def concat(d, op):
    dims = d.dims(d.int(1, 3))
    axis = d.axis(len(dims))
    parts = []
    for _ in range(d.int(1, 4)):
        own = list(dims)
        own[axis] = d.int(0, 4)
        parts.append(d.data(own))
    return Case(op, parts, {"axis": axis}, opset=13)


@corner("Softmax", "LogSoftmax", "Hardmax")
def softmax(d, op):
    dims = d.dims(d.int(1, 4))
    x = d.data(dims, special=0.2 if op != "Hardmax" else 0)
    return Case(op, [x], {"axis": d.axis(len(dims))} if d.chance(0.8) else {}, opset=d.pick(11, 13), rtol=1e-3)


@corner("DepthToSpace", "SpaceToDepth")
def depth(d, op):
    block = d.int(1, 3)
    if op == "DepthToSpace":
        x = d.data([d.int(1, 2), block * block * d.int(1, 2), d.int(1, 3), d.int(1, 3)])
        return Case(op, [x], {"blocksize": block, "mode": d.pick("DCR", "CRD")}, opset=13)
    return Case(op, [d.data([d.int(1, 2), d.int(1, 2), block * d.int(1, 3), block * d.int(1, 3)])],
                {"blocksize": block},
                opset=13)


@corner("ReverseSequence")
def reverse_sequence(d, op):
    batch = d.int(0, 1)
    dims = d.dims(d.int(2, 3), empty=0)
    lengths = d.np.integers(1, dims[1 - batch] + 1, [dims[batch]]).astype(I64)
    return Case(op, [d.data(dims), lengths], {"batch_axis": batch, "time_axis": 1 - batch}, opset=10)


@corner("NonZero")
def non_zero(d, op):
    return Case(op, [d.data(d.dims(d.int(0, 3)), d.pick(F32, BOOL, I64), special=0)], opset=13)


@corner("NonMaxSuppression")
def nms(d, op):
    boxes, classes, batches = d.int(1, 6), d.int(1, 2), d.int(1, 2)
    corners = d.np.uniform(0, 4, [batches, boxes, 4]).astype(F32)
    scores = d.np.permutation(batches * classes * boxes).reshape(batches, classes, boxes).astype(F32) / 8
    most = d.ints([d.int(0, 4)]) if d.chance(0.8) else None
    overlap = np.array([d.pick(0.0, 0.3, 0.5, 1.0)], F32) if d.chance(0.8) else None
    least = np.array([d.pick(0.2, 0.5)], F32) if d.chance(0.4) else None
    if d.chance(0.3):
        corners[..., 2:] = np.abs(corners[..., 2:]) + 0.25
        return Case(op, [corners, scores, most, overlap, least], {"center_point_box": 1}, constants=(2, 3, 4), opset=11)
    return Case(op, [corners, scores, most, overlap, least], constants=(2, 3, 4), opset=11)


@corner("Where")
def where(d, op):
    dims = d.dims(3, high=3)
    some = lambda: [n if d.chance(0.7) else 1 for n in dims][d.int(0, 2):]
    dtype = d.number()
    return Case(op, [d.data(some(), BOOL), d.data(some(), dtype), d.data(some(), dtype)], opset=9)


@corner("Max", "Min", "Sum", "Mean")
def variadic(d, op):
    dims = d.dims(2, high=3)
    dtype = d.pick(F32, F32, F64) if op in ("Sum", "Mean") else d.pick(F32, F32, I32, I64, F64)
    parts = [d.data([n if d.chance(0.8) else 1 for n in dims][d.int(0, 1):], dtype, 0.3) for _ in range(d.int(1, 4))]
    return Case(op, parts, opset=13)


@corner("Add", "Sub", "Mul", "Div", "Pow", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
def binary(d, op):
    dims = d.dims(3, high=3)
    some = lambda: [n if d.chance(0.7) else 1 for n in dims][d.int(0, 2):]
    dtype = d.pick(F32, F32, F64, I32, I64)
    x, y = d.data(some(), dtype), d.data(some(), dtype)
    if op == "Div" and dtype.kind == "i":
        y[y == 0] = 2
    if op == "Pow":
        if dtype.kind == "i":
            x, y = np.abs(x) % 4, np.abs(y) % 5
        else:
            x, y = d.data(x.shape, dtype, 0.5), d.data(y.shape, dtype, 0.5)
            y = y if d.chance(0.4) else np.array(d.pick(0, 0.5, -0.5, 1, 2, 3, -1, -2, 1 / 3, np.inf, -np.inf,
                                                        np.nan), dtype)
    constants = d.pick((), (), (1,), (0,))
    return Case(op, [x, y], constants=constants, opset=d.pick(13, 15), rtol=1e-3)


UNARY = ("Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Log Neg Reciprocal Round Sigmoid Sign Sin "
         "Sinh Softplus Softsign Sqrt Tan Tanh Relu HardSwish Mish IsNaN IsInf Elu Selu Celu LeakyRelu ThresholdedRelu "
         "HardSigmoid Shrink Gelu").split()


@corner(*UNARY)
def unary(d, op):
    x = d.data(d.dims(), F32 if not d.chance(0.1) else F64, special=0.4)
    attrs = {}
    if op in ("Elu", "Celu", "LeakyRelu", "ThresholdedRelu", "Selu", "HardSigmoid") and d.chance(0.7):
        attrs["alpha"] = d.pick(0.0, 0.1, 1.5, 2.0) if op != "Celu" else d.pick(0.1, 1.5, 2.0)
    if op == "Selu" and d.chance(0.5):
        attrs["gamma"] = 1.25
    if op == "HardSigmoid" and d.chance(0.5):
        attrs["beta"] = d.pick(0.0, 0.25)
    if op == "Shrink":
        attrs = {"lambd": d.pick(0.5, 1.0, 0.0), "bias": d.pick(0.0, 0.5, -1.0)}
        if d.chance(0.3):
            x = d.data(d.dims(), d.pick(I32, I64, I8))
    if op == "IsInf":
        attrs = {"detect_negative": d.int(0, 1), "detect_positive": d.int(0, 1)}
    if op == "Gelu":
        attrs = {"approximate": d.pick("none", "tanh")}
    opset = {"HardSwish": 14, "Mish": 18, "Gelu": 20}.get(op, 13)
    return Case(op, [x], attrs, opset=opset, rtol=2e-3, atol=2e-5)


@corner("PRelu")
def prelu(d, op):
    dims = d.dims(d.int(1, 4))
    slope = d.finite([n if d.chance(0.6) else 1 for n in dims][d.int(0, len(dims) - 1):])
    return Case(op, [d.data(dims), slope], constants=d.pick((), (1,)), opset=16)


@corner("Cast")
def cast(d, op):
    kinds = [F32, F64, F16, I64, I32, I8, U8, BOOL]
    source = d.pick(*kinds)
    to = d.pick(*kinds)
    x = d.data(d.dims(), source, special=0.3 if to.kind == "f" or to == BOOL else 0)
    if to == U8 and source != BOOL:
        x = np.abs(x)
    return Case(op, [x], {"to": helper.np_dtype_to_tensor_dtype(to)}, opset=13)


@corner("Gemm")
def gemm(d, op):
    m, k, n = (d.int(1, 5) for _ in range(3))
    attrs = {"transA": d.int(0, 1), "transB": d.int(0, 1), "alpha": d.pick(1.0, 0.5, 0.0), "beta": d.pick(1.0, 2.0,
                                                                                                          0.0)}
    a = d.finite([k, m] if attrs["transA"] else [m, k])
    b = d.finite([n, k] if attrs["transB"] else [k, n])
    c = d.pick(None, d.finite([n]), d.finite([m, 1]), d.finite([1, n]), d.finite([]), d.finite([m, n]))
    return Case(op, [a, b, c], attrs, constants=d.pick((), (1, 2)), opset=13, rtol=1e-3)


@corner("MatMul")
def matmul(d, op):
    m, k, n, b = (d.int(1, 4) for _ in range(4))
    shapes = d.pick(([k], [k]), ([k], [k, n]), ([m, k], [k]), ([b, m, k], [k, n]), ([k], [b, k, n]),
                    ([b, m, k], [b, k, n]), ([1, m, k], [b, k, n]), ([b, m, k], [k]), ([m, 0], [0, n]),
                    ([b, 1, m, k], [3, k, n]))
    return Case(op, [d.finite(s) for s in shapes], constants=d.pick((), (1,)), opset=13, rtol=1e-3)


@corner("LayerNormalization")
def layer_norm(d, op):
    dims = d.dims(d.int(1, 4), low=2, empty=0)
    axis = d.axis(len(dims))
    own = dims[axis:]
    inputs = [d.finite(dims), d.finite(own), d.finite(own) if d.chance(0.6) else None]
    outputs = d.pick(1, 1, 3)
    return Case(op, inputs, {"axis": axis, "epsilon": d.pick(1e-5, 0.1)}, outputs=outputs, opset=17, rtol=2e-3,
                atol=1e-3)


@corner("InstanceNormalization", "GroupNormalization")
def instance_norm(d, op):
    groups = d.int(1, 2)
    channels = groups * d.int(1, 2)
    x = d.finite([d.int(1, 2), channels, *(d.int(2, 4) for _ in range(d.int(1, 3)))])
    scale, bias = d.finite([channels]), d.finite([channels])
    if op == "GroupNormalization":
        return Case(op, [x, scale, bias], {"num_groups": groups}, opset=21, rtol=2e-3, atol=1e-3)
    return Case(op, [x, scale, bias], {"epsilon": d.pick(1e-5, 0.1)}, opset=6 + 1, rtol=2e-3, atol=1e-3)


@corner("BatchNormalization")
def batch_norm(d, op):
    channels = d.int(1, 3)
    x = d.finite([d.int(1, 2), channels, *(d.int(1, 4) for _ in range(d.int(0, 3)))])
    params = [d.finite([channels]) for _ in range(3)] + [np.abs(d.finite([channels]))]
    return Case(op, [x, *params], {"epsilon": d.pick(1e-5, 0.1)}, constants=d.pick((), (1, 2, 3, 4)), opset=15,
                rtol=2e-3,
                atol=1e-3)


@corner("LRN")
def lrn(d, op):
    x = d.finite([d.int(1, 2), d.int(1, 6), *(d.int(1, 3) for _ in range(2))])
    attrs = {"size": d.pick(1, 3, 5), "alpha": d.pick(0.0001, 0.5), "beta": 0.75, "bias": d.pick(1.0, 2.0)}
    return Case(op, [x], attrs, opset=13, rtol=1e-3)


@corner("LpNormalization", "MeanVarianceNormalization")
def lp_norm(d, op):
    dims = d.dims(d.int(1, 4) if op == "LpNormalization" else 4, empty=0)
    if op == "LpNormalization":
        x = d.finite(dims, d.pick(F32, F32, F16)) * np.float16(d.pick(1, 512))
        return Case(op, [x], {"axis": d.axis(len(dims)), "p": d.int(1, 2)}, opset=1 + 12, rtol=1e-3)
    axes = sorted(d.r.sample(range(4), d.int(1, 4)))
    x = d.finite([n + 1 for n in dims], d.pick(F32, F32, F16))
    # (Of numbers that are all the same, ONNX Runtime's variance may be below 0.)
    ramp = 16 * np.arange(x.shape[axes[0]]).reshape([-1 if i == axes[0] else 1 for i in range(4)])
    return Case(op, [(x + ramp).astype(x.dtype)], {"axes": axes}, opset=13, rtol=2e-3, atol=1e-3)


@corner("LSTM", "GRU", "RNN")
def recurrent(d, op):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    steps, batch, width, hidden = d.int(1, 4), d.int(1, 3), d.int(1, 4), d.int(1, 5)
    direction = d.pick("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    wrong = d.pick(0, 0, 0, 1, 2)
    x = d.finite([steps, batch, width])
    w = d.finite([ways, gates * hidden, width + wrong]) / 4
    r = d.finite([ways, gates * hidden, hidden]) / 4
    b = d.finite([ways, 2 * gates * hidden]) / 4 if d.chance(0.5) else None
    lengths = d.np.integers(0 if d.chance(0.2) else 1, steps + 1, [batch]).astype(I32) if d.chance(0.4) else None
    h = d.finite([ways, batch, hidden]) / 4 if d.chance(0.4) else None
    inputs = [x, w, r, b, lengths, h]
    attrs = {"hidden_size": hidden, "direction": direction}
    if op == "LSTM":
        inputs += [d.finite([ways, batch, hidden]) / 4 if d.chance(0.4) else None]
        inputs += [d.finite([ways, 3 * hidden]) / 4 if d.chance(0.3) else None]
        if d.chance(0.2):
            attrs["input_forget"] = 1
    if op == "GRU":
        attrs["linear_before_reset"] = d.int(0, 1)
    if d.chance(0.2):
        attrs["clip"] = d.pick(0.5, 1.0)
    if op == "RNN" and d.chance(0.4):
        attrs["activations"] = [d.pick("Relu", "Tanh", "Sigmoid", "Softsign")] * ways
    return Case(op, inputs, attrs, constants=d.pick((), (1, 2, 3, 7)), outputs=3 if op == "LSTM" else 2, opset=14,
                rtol=2e-3,
                atol=1e-4)


@corner("DynamicQuantizeLinear")
def dynamic_quantize(d, op):
    x = d.pick(d.finite(d.dims()), np.zeros(d.dims(), F32), np.full(d.dims(), 3, F32), np.full(d.dims(), -2, F32),
               d.np.uniform(-1, 1, [7]).astype(F32))
    return Case(op, [x], outputs=3, opset=11)


@corner("QuantizeLinear", "DequantizeLinear")
def quantize(d, op):
    dims = d.dims(d.int(1, 4), empty=0.03)
    axis = d.axis(len(dims))
    per_axis = d.chance(0.5)
    own = [dims[axis]] if per_axis else []
    scale = (2.0 ** d.np.integers(-2, 2, own)).astype(F32)
    zero = d.np.integers(0, 5, own).astype(d.pick(U8, I8)) if d.chance(0.7) else None
    attrs = {"axis": axis} if per_axis else {}
    if op == "QuantizeLinear":
        x = d.data(dims, F32, special=0) * d.pick(1, 100)
        return Case(op, [x, scale, zero], attrs, constants=d.pick((), (1, 2)), opset=13)
    x = d.data(dims, zero.dtype if zero is not None else U8)
    return Case(op, [x, scale, zero], attrs, constants=d.pick((), (1, 2)), opset=13)


@corner("GridSample")
def grid_sample(d, op):
    n = d.int(1, 2)
    x = d.finite([n, d.int(1, 2), d.int(1, 4), d.int(1, 4)])
    grid = (d.np.integers(-12, 13, [n, d.int(1, 3), d.int(1, 3), 2]) / 8 + 1 / 64).astype(F32)
    attrs = {"mode": d.pick("bilinear", "nearest", "bicubic"), "padding_mode": d.pick("zeros", "border", "reflection"),
             "align_corners": d.int(0, 1)}
    return Case(op, [x, grid], attrs, opset=16, rtol=1e-3, atol=1e-4)


@corner("RoiAlign")
def roi_align(d, op):
    x = d.finite([2, d.int(1, 2), d.int(2, 5), d.int(2, 5)])
    count = d.int(1, 3)
    low = d.np.uniform(-1, 2, [count, 2])
    rois = np.concatenate([low, low + d.np.uniform(0.1, 3, [count, 2])], 1).astype(F32)
    attrs = {"output_height": d.int(1, 3), "output_width": d.int(1, 3), "sampling_ratio": d.int(0, 2),
             "mode": d.pick("avg", "avg", "max"),
             "spatial_scale": d.pick(1.0, 0.5), "coordinate_transformation_mode": d.pick("half_pixel",
                                                                                         "output_half_pixel")}
    return Case(op, [x, rois, d.np.integers(0, 2, [count]).astype(I64)], attrs, opset=16, rtol=1e-3, atol=1e-4)


@corner("CenterCropPad")
def center_crop_pad(d, op):
    dims = d.dims(d.int(1, 3), empty=0)
    axes = sorted(d.axes(len(dims), 1), key=lambda a: a % len(dims))
    return Case(op, [d.finite(dims), d.ints([d.int(1, 7) for _ in axes])], {"axes": axes}, constants=(1,), opset=18)


@corner("Size", "Identity")
def whole(d, op):
    return Case(op, [d.data(d.dims(d.int(0, 3)), d.number())], opset=13)


@corner("ConstantOfShape")
def constant_of_shape(d, op):
    attrs = {}
    if d.chance(0.8):
        attrs["value"] = numpy_helper.from_array(np.array([d.int(-3, 3)], d.number()))
    return Case(op, [d.ints(d.dims(d.int(0, 3), empty=0.2))], attrs, constants=d.pick((0,), ()), opset=9)


@corner("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(d, op):
    classes = d.int(2, 4)
    rest = [d.int(1, 3) for _ in range(d.int(0, 2))]
    x = d.finite([d.int(1, 3), classes, *rest])
    target = d.np.integers(0, classes, [x.shape[0], *rest]).astype(I64)
    attrs = {"reduction": d.pick("none", "sum", "mean")}
    if d.chance(0.4):
        attrs["ignore_index"] = d.int(0, classes - 1)
    weight = np.abs(d.finite([classes])) + F32.type(0.5) if d.chance(0.5) else None
    return Case(op, [x, target, weight], attrs, opset=13, rtol=1e-3)


@corner("MatMulInteger")
def matmul_integer(d, op):
    m, k, n = (d.int(1, 4) for _ in range(3))
    a, b = d.data([m, k], d.pick(U8, I8)), d.data([k, n], d.pick(U8, I8))
    za = np.array(d.int(0, 5), a.dtype) if d.chance(0.6) else None
    zb = d.np.integers(0, 5, d.pick([], [n])).astype(b.dtype) if d.chance(0.6) else None
    return Case(op, [a, b, za, zb], opset=10)


@corner("And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
def logic(d, op):
    dims = d.dims(3, high=3)
    some = lambda: [n if d.chance(0.7) else 1 for n in dims][d.int(0, 2):]
    dtype = d.pick(I32, I64, U8, I8) if op.startswith("Bitwise") else BOOL
    return Case(op, [d.data(some(), dtype), d.data(some(), dtype)], opset=18)


@corner("Not", "BitwiseNot")
def complement(d, op):
    return Case(op, [d.data(d.dims(), BOOL if op == "Not" else d.pick(I32, I64, U8, I8))], opset=18)


@corner("BlackmanWindow", "HammingWindow", "HannWindow")
def window(d, op):
    attrs = {"periodic": d.int(0, 1)}
    if d.chance(0.5):
        attrs["output_datatype"] = d.pick(TensorProto.FLOAT, TensorProto.DOUBLE)
    return Case(op, [np.array(d.int(1, 9), I64)], attrs, constants=(0,), opset=17)


@corner("Scatter")
def scatter(d, op):
    case = scatter_elements(d, "ScatterElements")
    while case.attrs.pop("reduction") != "none":
        case = scatter_elements(d, "ScatterElements")
    case.op, case.opset = op, 9
    return case


@corner("Dropout")
def dropout(d, op):
    inputs = [d.data(d.dims())]
    if d.chance(0.5):
        inputs += [np.array(0.25, F32), np.array(False)]
    return Case(op, inputs, constants=(1, 2), outputs=d.int(1, 2), opset=13)


@corner("MaxUnpool")
def max_unpool(d, op):
    kernel = [d.int(1, 3), d.int(1, 3)]
    strides = [d.int(1, 3), d.int(1, 3)]
    places = [d.int(1, 3), d.int(1, 3)]
    size = [(n - 1) * s + k for n, s, k in zip(places, strides, kernel)]
    dims = [1, 2, *places]
    count = int(np.prod(dims))
    indices = np.array(d.r.sample(range(2 * int(np.prod(size))), count), I64).reshape(dims) if (
        count <= 2 * int(np.prod(size))) else np.zeros(dims, I64)
    return Case(op, [d.finite(dims), indices], {"kernel_shape": kernel, "strides": strides}, opset=11)


@corner("Upsample")
def upsample(d, op):
    x = d.finite([1, d.int(1, 2), d.int(1, 4), d.int(1, 4)])
    scales = np.array([1, 1, d.pick(1, 1.5, 2, 3), d.pick(1, 1.5, 2)], F32)
    return Case(op, [x, scales], {"mode": d.pick("nearest", "linear")}, constants=(1,), opset=9, rtol=1e-3)


@corner("ConvInteger", "QLinearConv")
def conv_integer(d, op):
    groups = d.pick(1, 1, 2)
    w = d.data([groups * d.int(1, 2), d.int(1, 2), d.int(1, 3), d.int(1, 3)],
               U8 if op == "ConvInteger" else d.pick(U8, I8))
    x = d.data([d.int(1, 2), groups * w.shape[1], d.int(3, 5), d.int(3, 5)], U8)
    attrs = {"group": groups, "strides": [d.int(1, 2), d.int(1, 2)], "pads": [d.int(0, 1) for _ in range(4)]}
    zero = lambda dtype: np.array(d.int(0, 5), dtype)
    if op == "ConvInteger":
        return Case(op, [x, w, zero(U8), zero(w.dtype)], attrs, constants=(1, 2, 3), opset=10)
    scale = lambda own: np.full(own, 0.5, F32)
    own = d.pick([], [w.shape[0]])
    bias = d.data([w.shape[0]], I32) if d.chance(0.5) else None
    weight_zero = np.full(own, 0 if w.dtype == I8 else d.int(0, 5), w.dtype)
    inputs = [x, scale([]), zero(U8), w, scale(own), weight_zero, np.array(2, F32), zero(U8), bias]
    return Case(op, inputs, attrs, constants=range(1, 9), opset=10)


@corner("QLinearMatMul")
def qlinear_matmul(d, op):
    m, k, n = (d.int(1, 4) for _ in range(3))
    zero = lambda: np.array(d.int(0, 5), U8)
    half = np.array(0.5, F32)
    inputs = [d.data([m, k], U8), half, zero(), d.data([k, n], U8), half, zero(), np.array(2, F32), zero()]
    return Case(op, inputs, constants=d.pick((), (3,)), opset=10)


@corner("RMSNormalization")
def rms_norm(d, op):
    dims = d.dims(d.int(1, 4), low=2, empty=0)
    axis = d.axis(len(dims))
    return Case(op, [d.finite(dims), d.finite(dims[axis:])], {"axis": axis}, opset=23, rtol=2e-3, atol=1e-4)


@corner("Swish")
def swish(d, op):
    return Case(op, [d.data(d.dims())], {"alpha": d.pick(1.0, 0.5, 0.0)}, opset=24, rtol=1e-3)


@corner("CastLike")
def cast_like(d, op):
    return Case(op, [d.finite(d.dims(), d.pick(F32, I64, I32)), d.finite([1], d.pick(F32, I64, F64, I32))], opset=15)


@corner("AffineGrid")
def affine_grid(d, op):
    size = [d.int(1, 2), 1, d.int(1, 3), d.int(1, 3)]
    return Case(op, [d.finite([size[0], 2, 3]), d.ints(size)], {"align_corners": d.int(0, 1)}, constants=(1,), opset=20,
                rtol=1e-3, atol=1e-4)


@corner("Attention")
def attention(d, op):
    b, h, g, s, t, e = d.int(1, 2), d.int(1, 2), d.int(1, 2), d.int(1, 3), d.int(1, 4), d.int(1, 4)
    q, k, v = d.finite([b, h * g, s, e]), d.finite([b, h, t, e]), d.finite([b, h, t, d.int(1, 4)])
    attrs = {}
    if d.chance(0.4):
        attrs["is_causal"] = 1
    if d.chance(0.3):
        attrs["scale"] = d.pick(0.5, 1.0)
    if d.chance(0.3):
        attrs["softcap"] = 2.0
    mask = d.pick(None, d.finite([s, t]), d.finite([1, 1, s, t]), d.finite([b, 1, s, t]), d.data([s, t], BOOL))
    if mask is not None and mask.dtype == BOOL:
        mask[..., 0] = True
    return Case(op, [q, k, v, mask], attrs, opset=23, rtol=2e-3, atol=1e-3)


@corner("RotaryEmbedding")
def rotary(d, op):
    b, h, s, half = d.int(1, 2), d.int(1, 2), d.int(1, 3), d.int(1, 3)
    x = d.finite([b, h, s, 2 * half])
    most = s + d.int(0, 2)
    cos, sin = d.finite([most, half]), d.finite([most, half])
    places = d.np.integers(0, most, [b, s]).astype(I64)
    return Case(op, [x, cos, sin, places], {"interleaved": d.int(0, 1)}, opset=23, rtol=1e-3)


# ---- cases that once were wrong, and models that must be refused
def findings():
    """(case, whether it is legal)"""
    ones, ramp = np.ones((8, 8), F32), np.arange(3, dtype=F32)
    number = lambda v: np.array(v, F32)
    vector = lambda *v: np.array(v, I64)
    d = Draw(7)
    image, kernel = d.finite([1, 16, 8, 8]), d.finite([16, 16, 3, 3])
    yield Case("Trilu", [ones], front=[("Relu", {}, None), ("Reshape", {}, vector(4, 16))], opset=17), True
    yield Case("Trilu", [image], front=[("Conv", {}, kernel)], opset=17, symbolic={1: "N"}, rtol=1e-3), True
    slopes = d.finite([6])
    yield Case("PRelu", [d.finite([2, 6, 6]), slopes], front=[("Neg", {}, None), ("Reshape", {}, vector(12, 6))],
               constants=(1,), opset=17), True
    yield Case("Clip", [ramp, number(2), number(1)], constants=(1, 2), opset=17), True
    yield Case("Clip", [ramp, number(2), number(1)], opset=17), True
    yield Case("Slice", [ramp, vector(-5), vector(INT_MIN), vector(0), vector(-2)], constants=(1, 2, 3, 4),
               opset=17), True
    yield Case("Slice", [ramp, vector(0), vector(3), vector(0), vector(INT_MAX)], constants=(1, 2, 3, 4),
               opset=17), True
    yield Case("Slice", [ramp, vector(-5), vector(INT_MIN), vector(0), vector(-2)], constants=(1, 2, 3, 4), opset=17,
               symbolic={3: "N"}), True
    for length in (3, 4, 6):
        yield Case("Compress", [d.finite([4, 5]), np.ones(length, BOOL)], {"axis": 0}, opset=17,
                   symbolic={4: "N", length: "L"} if length != 4 else {4: "N"}), True
    first_nan, later_nan = number([np.nan, 1, 0]), number([2, np.nan, 0])
    for op in ("ArgMin", "ArgMax"):
        for x in (first_nan, later_nan):
            yield Case(op, [x], {"axis": 0}, opset=17), True
    yield Case("DynamicQuantizeLinear", [np.zeros(5, F32)], outputs=3, opset=17), True
    for shape in ([9, 9], [10, 11], [7, 8]):
        yield Case("ConvTranspose", [d.finite([1, 2, 3, 3]), d.finite([2, 2, 3, 3])],
                   {"strides": [3, 3], "output_shape": shape}, constants=(1,), opset=17), True
        yield Case("ConvTranspose", [d.finite([1, 2, 3, 3]), d.finite([2, 2, 3, 3])],
                   {"strides": [3, 3], "output_shape": shape}, constants=(1,), opset=17, symbolic={1: "N"}), True
    for shape, attrs in (([9, 9], {}), ([10, 8], {}), ([7, 8], {"auto_pad": "SAME_UPPER"}),
                         ([7, 8], {"output_padding": [1, 1]})):
        for height, width in ((3, 3), (2, 3)):
            yield Case("ConvTranspose", [d.finite([1, 2, height, width]), d.finite([2, 2, 3, 3])],
                       {"strides": [3, 3] if height == 3 else [5, 3], "output_shape": shape, **attrs},
                       constants=(1,), opset=17, symbolic={3: "W", 2: "H"} if height == 2 else {3: "W"}), True
    grid = number([[[[-0.48, 1.39], [0.3, -1.2]]]])
    yield Case("GridSample", [d.finite([1, 2, 3, 2]), grid], {"mode": "bicubic", "padding_mode": "border"},
               opset=16), True
    for name in (None, {3: "I"}, {3: "I", 6: "J"}):  # W has more columns than X
        for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
            yield Case(op, [d.finite([5, 1, 3]), d.finite([1, 2 * gates, 6]), d.finite([1, 2 * gates, 2])],
                       {"hidden_size": 2},
                       opset=17, symbolic=name, constants=() if name is None or 6 in name else (1, 2)), False


# The range of every bound and step about a small axis, all against the specification's own words: starts and ends
# count from the end where negative; going on, both are limited to [0, n]; going back, starts to [0, n - 1] and ends to
# [-1, n - 1].
def sliced(x, start, end, step):
    n = len(x)
    start, end = (v + n if v < 0 else v for v in (start, end))
    if step > 0:
        return x[min(max(start, 0), n):min(max(end, 0), n):step]
    places = range(min(max(start, 0), n - 1), min(max(end, -1), n - 1), step)
    return x[list(places)] if n else x


def check_slices(tools):
    problems = []
    for n in (0, 1, 3):
        x = np.arange(n, dtype=F32) + 1
        bounds = (INT_MIN, *range(-n - 2, n + 3), INT_MAX)
        cases = [Case("Slice", [x, *(np.array([v], I64) for v in (start, end, 0, step))], constants=(1, 2, 3, 4),
                      opset=13)
                 for start in bounds for end in bounds for step in (1, 2, -1, -2)]
        for at in range(0, len(cases), 100):
            some = cases[at:at + 100]
            got, problem = tools.run(some, 13)
            if got is None:
                problems.append(f"slices of {n} elements: {problem}")
                continue
            for case, values in zip(some, got):
                start, end, _, step = (int(v[0]) for v in case.inputs[1:])
                want = sliced(x, start, end, step)
                if values[0].shape != want.shape or not np.array_equal(values[0], want):
                    problems.append(f"slice [{start}:{end}:{step}] of {x}: {values[0]}, not {want}")
    return problems


# ---- the walk
def draw(op, seed):
    d = Draw(f"{op}/{seed}" if isinstance(seed, str) else seed)
    case = GENERATORS[op](d, op)
    case.inputs = [None if x is None else np.ascontiguousarray(x) if x.shape else np.asarray(x) for x in case.inputs]
    first = case.inputs[0]
    if first is not None and 0 not in case.constants and first.dtype == F32 and first.ndim and d.chance(0.25):
        # A view of something computed: what moves past the operator must not change what it gives.
        other = d.pick(first.shape[::-1], [first.size], [1, *first.shape])
        case.front = [("Neg", {}, None), ("Reshape", {}, d.ints(first.shape))]
        case.inputs[0] = np.ascontiguousarray(first.reshape(other))
        if 0 in first.shape:
            case.front, case.inputs[0] = [], first
    elif d.chance(0.4) and op not in STATIC:  # every dim of such a size is one symbol; 1 would mean another broadcast
        sizes = {n for i,
                 x in enumerate(case.inputs) if x is not None and i not in case.constants for n in x.shape if n > 1}
        chosen = d.r.sample(sorted(sizes), d.int(0, len(sizes)))
        case.symbolic = {n: SYMBOLS[i % len(SYMBOLS)] for i, n in enumerate(chosen)} or None
    return case


def is_listed(case, message):
    return any(name in ("*", case.op) and re.search(text, message) for name, text in REFUSALS)


def judge(case, want, got):
    """ "" or what is wrong, where a quirk of ONNX Runtime's is none"""
    problem = difference(case, want, got)
    if not problem:
        return ""
    other = reference(case)
    for pattern, holds, _ in QUIRKS:
        if re.fullmatch(pattern, case.op) and holds(case):
            says_so = other is not None and not difference(case, other, got)
            return "" if says_so or case.has_nan() else problem + " (onnx.reference differs too)"
    says = "nothing" if other is None else "the same as we do" if not difference(case, other, got) else "otherwise"
    return f"{problem}; onnx.reference says {says}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200, help="draws per operator")
    parser.add_argument("--only", default="")
    parser.add_argument("--short", action="store_true", help="12 draws per operator")
    parser.add_argument("--show", action="store_true", help="also what is refused")
    parser.add_argument("--standin", type=pathlib.Path, help="kernels for CUDA, on the GPU of this folder that is not there")
    options = parser.parse_args()
    count = 12 if options.short else options.count
    names = [n for n in options.only.split(",") if n] or sorted(GENERATORS)
    totals = {"same": 0, "illegal": 0, "refused": 0, "wrong": 0}
    failures, refusals = [], {}
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(options.bin_dir.resolve(), folder, options.standin)
        if not options.only:
            failures += check_slices(tools)
            for case, is_legal in findings():
                want, source = expected(case)
                got, problem = tools.run([case], case.opset)
                if is_legal != (want is not None):
                    problem = f"the oracle takes it for {'illegal' if is_legal else 'legal'}: {source}"
                elif is_legal and got is not None:
                    problem = difference(case, want, got[0])
                elif not is_legal:
                    problem = "not refused" if got is not None else "" if " exits 3:" in problem else problem
                totals["wrong" if problem else "same"] += 1
                if problem:
                    failures.append(f"finding: {case.describe()}\n    {problem}")
            for failure in failures:
                print(failure, flush=True)
        for op in names:
            batches, drawn = {}, 0
            for i in range(count):
                d = random.Random(f"{options.seed}/{op}/{i}").randrange(2**32)
                case = draw(op, d)
                want, source = expected(case)
                if want is None:
                    totals["illegal"] += 1
                    continue
                drawn += 1
                batches.setdefault(case.opset, []).append((case, want))
            if not drawn:
                failures.append(f"{op}: no legal case was drawn")
            for opset, pairs in batches.items():
                for at in range(0, len(pairs), 12):
                    some = pairs[at:at + 12]
                    got, problem = tools.run([case for case, _ in some], opset)
                    if got is not None and all(not difference(c, w, g) for (c, w), g in zip(some, got)):
                        totals["same"] += len(some)
                        continue
                    for case, want in some:
                        got, problem = tools.run([case], opset)
                        if got is not None:
                            problem = judge(case, want, got[0])
                        elif f"exits {UNSUPPORTED}" in problem and is_listed(case, problem):
                            totals["refused"] += 1
                            refusals.setdefault((op, problem), case)
                            continue
                        totals["wrong" if problem else "same"] += 1
                        if problem:
                            failures.append(f"{case.describe()}\n    {problem}")
                            print(failures[-1], flush=True)
    if options.show:
        for (op, problem), case in sorted(refusals.items(), key=lambda item: item[0]):
            print(f"refused: {case.describe()}\n    {problem}")
    print(", ".join(f"{n} {what}" for what, n in totals.items()), f"(seed {options.seed})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
