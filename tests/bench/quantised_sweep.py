#!/usr/bin/env python3
"""Times quantised operators beside ONNX Runtime at sizes that a seed draws, static and symbolic.

usage: tests/bench/quantised_sweep.py [--seed 0] [--only REGEX] [--forms static,symbolic] [--rounds 4] [--seconds 0.1]
                                      [--bin build/release/bin] [--target cpu] [--max-ratio R] [--keep DIR]
Each case is an ONNX model of one node. It is compiled, its outputs are compared with ONNX Runtime's (quantised results
may differ by 1), or with onnx.reference's where these differ, and both take turns on one thread; a figure is the minimum
over all rounds, a ratio below 1 says that Ingot is faster. In the symbolic form batches, rows, heights and widths are
free. Weights have seven bits: with eight, ONNX Runtime's sums saturate on CPUs without VNNI. Exits 1 when outputs
differ, a model is refused, or a ratio is beyond --max-ratio. Needs numpy, onnx and onnxruntime from PyPI."""
import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TYPES = {"u8": np.uint8, "i8": np.int8, "f32": np.float32, "i32": np.int32, "i64": np.int64, "f32u": np.float32}
RANGES = {"u8": (0, 256), "i8": (-128, 128), "i32": (-100, 100), "i64": (0, 100)}  # f32: normal; f32u: from 0 to 1


def onnx_type(kind):
    return helper.np_dtype_to_tensor_dtype(np.dtype(TYPES[kind]))


def drawn(rng, kind, dims):
    """kind: a name of TYPES, or such a name and the number that integers stay below."""
    name, low_high = (kind, RANGES.get(kind)) if isinstance(kind, str) else (kind[0], (0, kind[1]))
    values = (rng.integers(*low_high, dims) if low_high else
              rng.random(dims) if name == "f32u" else rng.standard_normal(dims))
    return values.astype(TYPES[name])


class Graph:
    """Some nodes. inputs: name -> (type, dims, axes that are free in the symbolic form); constants: name -> array;
    outputs: name -> type."""

    def __init__(self, nodes, inputs, constants, outputs, tolerance):
        self.nodes, self.inputs, self.constants, self.tolerance = nodes, inputs, constants, tolerance
        self.out_types, self.outputs = outputs, list(outputs)

    def model(self, symbolic):
        infos = []
        for name, (kind, dims, free) in self.inputs.items():
            shape = [free.get(axis, size) if symbolic else size for axis, size in enumerate(dims)]
            infos.append(helper.make_tensor_value_info(name, onnx_type(kind if isinstance(kind, str) else kind[0]),
                                                       shape))
        graph = helper.make_graph(self.nodes, "case", infos, [helper.make_tensor_value_info(y, onnx_type(kind), None)
                                                              for y, kind in self.out_types.items()],
                                  [numpy_helper.from_array(np.asarray(a), n) for n, a in self.constants.items()])
        return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 20),
                                                                    helper.make_opsetid("com.microsoft", 1)])

    def feed(self):
        rng = np.random.default_rng(1)
        return {name: drawn(rng, kind, dims) for name, (kind, dims, _) in self.inputs.items()}

    def sizes(self):
        dims = ["x".join(map(str, dims)) for _, dims, _ in self.inputs.values()]
        dims += ["x".join(map(str, a.shape)) for a in map(np.asarray, self.constants.values()) if a.ndim > 1]
        groups = [a.i for node in self.nodes for a in node.attribute if a.name == "group" and a.i > 1]
        return " ".join(dims + [f"groups {count}" for count in groups])


class Case(Graph):
    """One node."""

    def __init__(self, op, inputs, names, constants, out, domain="", tolerance=1, **attributes):
        super().__init__([helper.make_node(op, names, ["y0"], domain=domain, **attributes)], inputs, constants,
                         {"y0": out}, tolerance)


class Converted:
    """A model that was made elsewhere, of one input whose first axis counts rows."""

    def __init__(self, model, rows, count, tolerance):
        self.original, self.rows, self.tolerance = model, np.resize(rows, (count, rows.shape[1])), tolerance
        self.outputs = [output.name for output in model.graph.output]

    def model(self, symbolic):
        model = onnx.ModelProto.FromString(self.original.SerializeToString())
        if not symbolic:
            model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = len(self.rows)
        return model

    def feed(self):
        return {self.original.graph.input[0].name: self.rows}

    def sizes(self):
        return "x".join(map(str, self.rows.shape)) + f" nodes {len(self.original.graph.node)}"


# ---- Cases: functions of a random generator
def whole(rng, low, high):
    """An integer between low and high, as likely in each octave."""
    return int(round(math.exp(rng.uniform(math.log(low), math.log(high)))))


def weights(rng, kind, dims):
    return rng.integers(*{"i8": (-64, 64), "u8": (64, 192)}[kind], dims).astype(TYPES[kind])


def scales(rng, count):
    return np.float32(rng.uniform(0.01, 0.02)) if count is None else rng.uniform(0.01, 0.02, count).astype(np.float32)


def zero(rng, kind, symmetric=False):
    return TYPES[kind](0 if symmetric and kind == "i8" else 128 if symmetric else rng.integers(3, 120))


IMAGE = {0: "n", 2: "h", 3: "w"}


def window(rng, spatial, kernel, stride=1, dilation=1, groups=1):
    return dict(kernel_shape=[kernel] * spatial, strides=[stride] * spatial, dilations=[dilation] * spatial,
                pads=[dilation * (kernel // 2)] * 2 * spatial, group=groups)


def conv(integer, kernel, stride=1, dilation=1, depthwise=False, grouped=False, few=False, spatial=2):
    def make(rng):
        size = whole(rng, 7, {1: 500, 2: 64, 3: 16}[spatial])
        c = 3 if few else whole(rng, 16, 256)
        o = whole(rng, 16, 256)
        groups = 1
        if depthwise:
            groups = o = c
        elif grouped:
            groups = int(rng.choice([2, 4, 8]))
            c, o = groups * whole(rng, 8, 40), groups * whole(rng, 8, 40)
        if few:
            size *= 3
        x_kind, w_kind = ("u8", "i8") if integer or rng.random() < 0.7 else ("i8", "i8")
        free = {0: "n", **{2 + i: "dhw"[3 - spatial + i] for i in range(spatial)}}
        x = {"x": (x_kind, [1, c] + [size] * spatial, free)}
        attributes = window(rng, spatial, kernel, stride, dilation, groups)
        w = weights(rng, w_kind, [o, c // groups] + [kernel] * spatial)
        if integer:
            return Case("ConvInteger", x, ["x", "w", "xz"], {"w": w, "xz": zero(rng, x_kind)}, "i32", tolerance=0,
                        **attributes)
        constants = {"xs": scales(rng, None), "xz": zero(rng, x_kind), "w": w, "ws": scales(rng, o),
                     "wz": np.zeros(o, w.dtype), "ys": np.float32(0.02 * math.sqrt(w[0].size) * 4),
                     "yz": zero(rng, x_kind), "b": rng.integers(-999, 999, o).astype(np.int32)}
        return Case("QLinearConv", x, ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], constants, x_kind,
                    **attributes)
    return make


def product(op, many):
    def make(rng):
        m, k, n = whole(rng, 64, 512) if many else whole(rng, 1, 8), whole(rng, 64, 1024), whole(rng, 64, 1024)
        a_kind, b_kind = "u8", "i8"
        b = weights(rng, b_kind, [k, n])
        a = {"a": (a_kind, [m, k], {0: "m"})}
        if op == "MatMulInteger":
            return Case(op, a, ["a", "b", "az"], {"b": b, "az": zero(rng, a_kind)}, "i32", tolerance=0)
        if op == "DynamicQuantizeMatMul":
            constants = {"b": b, "bs": scales(rng, None), "bz": zero(rng, b_kind, True)}
            return Case(op, {"a": ("f32", [m, k], {0: "m"})}, ["a", "b", "bs", "bz"], constants, "f32", "com.microsoft",
                        tolerance=0.02)
        constants = {"as": scales(rng, None), "az": zero(rng, a_kind), "b": b, "bs": scales(rng, None),
                     "bz": zero(rng, b_kind, True), "ys": np.float32(0.02 * math.sqrt(k) * 4), "yz": zero(rng, a_kind)}
        return Case(op, a, ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], constants, a_kind)
    return make


def binary(op):
    def make(rng):
        kind = str(rng.choice(["u8", "i8"]))
        dims = [1, whole(rng, 8, 128), whole(rng, 7, 64), whole(rng, 7, 64)]
        constants = {name: scales(rng, None) for name in ("as", "bs", "ys")}
        constants.update({name: zero(rng, kind) for name in ("az", "bz", "yz")})
        return Case(op, {"a": (kind, dims, IMAGE), "b": (kind, dims, IMAGE)},
                    ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], constants, kind, "com.microsoft")
    return make


def unary(op, **attributes):
    def make(rng):
        kind = str(rng.choice(["u8", "i8"]))
        dims = [1, whole(rng, 8, 128), whole(rng, 7, 64), whole(rng, 7, 64)]
        constants = {"xs": scales(rng, None), "xz": zero(rng, kind),
                     "ys": np.float32(1 / 256 if op == "QLinearSigmoid" else 0.02), "yz": zero(rng, kind)}
        return Case(op, {"x": (kind, dims, IMAGE)}, ["x", "xs", "xz", "ys", "yz"], constants, kind, "com.microsoft",
                    **attributes)
    return make


def quantize(op):
    def make(rng):
        dims = [1, whole(rng, 8, 128), whole(rng, 7, 64), whole(rng, 7, 64)]
        kind = str(rng.choice(["u8", "i8"]))
        constants = {"s": scales(rng, None), "z": zero(rng, kind)}
        if op == "QuantizeLinear":
            return Case(op, {"x": ("f32", dims, IMAGE)}, ["x", "s", "z"], constants, kind)
        return Case(op, {"x": (kind, dims, IMAGE)}, ["x", "s", "z"], constants, "f32", tolerance=1e-5)
    return make


def antialias(mode):
    def make(rng):
        c, h, w = whole(rng, 1, 32), whole(rng, 24, 256), whole(rng, 24, 256)
        scale = np.array([1, 1, rng.uniform(0.2, 1.6), rng.uniform(0.2, 1.6)], np.float32)
        return Case("Resize", {"x": ("f32", [1, c, h, w], IMAGE)}, ["x", "", "scales"], {"scales": scale}, "f32",
                    tolerance=1e-3, mode=mode, antialias=1)
    return make


def lstm(rng):
    steps, width, hidden = whole(rng, 4, 64), whole(rng, 16, 256), whole(rng, 16, 256)
    constants = {"w": weights(rng, "i8", [1, width, 4 * hidden]), "r": weights(rng, "i8", [1, hidden, 4 * hidden]),
                 "b": rng.uniform(-0.1, 0.1, [1, 8 * hidden]).astype(np.float32),
                 "ws": np.full(1, 0.004, np.float32), "wz": np.zeros(1, np.int8), "rs": np.full(1, 0.004, np.float32),
                 "rz": np.zeros(1, np.int8)}
    return Case("DynamicQuantizeLSTM", {"x": ("f32", [steps, 1, width], {0: "s"})},
                ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"], constants, "f32", "com.microsoft",
                tolerance=0.1, hidden_size=hidden)


CASES = {"qlinear_add": binary("QLinearAdd"), "qlinear_mul": binary("QLinearMul"),
         "qlinear_sigmoid": unary("QLinearSigmoid"), "qlinear_leaky_relu": unary("QLinearLeakyRelu", alpha=0.1),
         "qlinear_global_pool": unary("QLinearGlobalAveragePool"),
         "qlinear_average_pool": unary("QLinearAveragePool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
         "quantize": quantize("QuantizeLinear"), "dequantize": quantize("DequantizeLinear"),
         "antialias_linear": antialias("linear"), "antialias_cubic": antialias("cubic"), "dynamic_lstm": lstm}
for prefix, integer in (("qlinear_conv", False), ("conv_integer", True)):
    CASES.update({f"{prefix}_1x1": conv(integer, 1), f"{prefix}_3x3": conv(integer, 3),
                  f"{prefix}_3x3_strided": conv(integer, 3, stride=2),
                  f"{prefix}_3x3_dilated": conv(integer, 3, dilation=2),
                  f"{prefix}_5x5": conv(integer, 5), f"{prefix}_few": conv(integer, 3, stride=2, few=True),
                  f"{prefix}_depthwise": conv(integer, 3, depthwise=True),
                  f"{prefix}_grouped": conv(integer, 3, grouped=True),
                  f"{prefix}_1d": conv(integer, 5, spatial=1), f"{prefix}_3d": conv(integer, 3, spatial=3)})
for operator in ("MatMulInteger", "QLinearMatMul", "DynamicQuantizeMatMul"):
    CASES.update({f"{operator}_many": product(operator, True), f"{operator}_few": product(operator, False)})


# ---- Runs
class Ort:
    def __init__(self, path, feed, outputs):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        for name, value in feed.items():
            self.binding.bind_cpu_input(name, value)
        for name in outputs:
            self.binding.bind_output(name)
        self.results = self.session.run(outputs, feed)

    def least(self, seconds):
        best, end = math.inf, time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            self.session.run_with_iobinding(self.binding)
            best = min(best, time.perf_counter() - start)
        return best


def greatest_difference(a, b):
    if a.shape != b.shape:
        return math.inf
    return np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0)


class Ingot:
    def __init__(self, tools, target, folder, model, feed, case, expected):
        self.tools, self.path = tools, folder / "model.ingot"
        self.call("vm-compile", folder / "model.onnx", "-o", self.path, "--target", target)
        np.savez(folder / "inputs.npz", **feed)
        self.call("vm-run", self.path, folder / "inputs.npz", "--output", f"@{folder}/outputs.npz")
        results = np.load(folder / "outputs.npz")
        for place, (name, peer) in enumerate(zip(case.outputs, expected)):
            if results[name].shape != peer.shape:
                raise RuntimeError(f"{name} has the shape {results[name].shape}, not {peer.shape}")
            difference = greatest_difference(results[name], peer)
            # ONNX Runtime has mistakes of its own: onnx.reference decides.
            if not difference <= case.tolerance and not greatest_difference(
                    results[name], ReferenceEvaluator(model).run(None, feed)[place]) <= case.tolerance:
                raise RuntimeError(f"{name} differs by {difference}")
        self.inputs = ["--input", f"@{folder}/inputs.npz"]

    def call(self, tool, *arguments):
        process = subprocess.run([self.tools / tool, *map(str, arguments)], capture_output=True, text=True,
                                 env={**os.environ, "INGOT_CACHE": "off"})
        if process.returncode != 0:
            last = (process.stderr.strip().splitlines() or [f"exit {process.returncode}"])[-1]
            raise RuntimeError(f"{tool}: {last}")
        return process.stdout

    def least(self, seconds):
        text = self.call("vm-bench", self.path, *self.inputs, "--warmup", "20ms", "--min-time",
                         f"{int(seconds * 1000)}ms", "--json", "-")
        return json.loads(text)["benchmarks"][0]["min_time"] * 1e-9


def main(cases, doc):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--forms", default="static,symbolic")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--target", default="cpu", help="as vm-compile takes it; cpu:x86-64-v3 is AVX2 alone")
    parser.add_argument("--max-ratio", type=float)
    parser.add_argument("--keep", type=pathlib.Path, help="leave the models here")
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    failed, ratios = False, {form: [] for form in options.forms.split(",")}
    print(f"{'case':24} {'sizes':36} {'form':8} {'ort us':>9} {'ingot us':>9} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as scratch:
        for index, (name, make) in enumerate(cases.items()):
            if not re.search(options.only, name):
                continue
            case = make(np.random.default_rng([options.seed, index]))
            for form in ratios:
                folder = (options.keep or pathlib.Path(scratch)) / f"{name}_{form}"
                folder.mkdir(parents=True, exist_ok=True)
                model = case.model(form == "symbolic")
                onnx.save(model, folder / "model.onnx")
                feed = case.feed()
                start = f"{name:24} {case.sizes():36} {form:8}"
                try:
                    ort = Ort(folder / "model.onnx", feed, case.outputs)
                except Exception as error:  # ONNX Runtime has no kernel for every form
                    print(f"{start} ONNX Runtime refuses: {str(error).splitlines()[0][:60]}", flush=True)
                    continue
                try:
                    ingot = Ingot(options.bin, options.target, folder, model, feed, case, ort.results)
                    peer = ours = math.inf
                    for _ in range(options.rounds):
                        peer, ours = min(peer, ort.least(options.seconds)), min(ours, ingot.least(options.seconds))
                except RuntimeError as error:
                    failed = True
                    print(f"{start} FAILED {error}", flush=True)
                    continue
                ratio = ours / peer
                ratios[form].append(ratio)
                failed |= options.max_ratio is not None and ratio > options.max_ratio
                print(f"{start} {peer * 1e6:9.1f} {ours * 1e6:9.1f} {ratio:6.2f}{'  slower' * (ratio > 1.3)}",
                      flush=True)
    for form, values in ratios.items():
        if values:
            mean = math.exp(sum(map(math.log, values)) / len(values))
            print(f"{form}: geometric mean {mean:.2f}, greatest {max(values):.2f}, beyond 1.3: "
                  f"{sum(v > 1.3 for v in values)} of {len(values)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(CASES, __doc__))
