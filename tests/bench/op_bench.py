#!/usr/bin/env python3
"""Times single operators and small groups of them beside ONNX Runtime, on models that it makes.

usage: tests/bench/op_bench.py [--only REGEX] [--rounds 5] [--seconds 0.15] [--keep DIR]
                               [--bin build/release/bin] [--max-ratio R]
Every case is an ONNX model of a few nodes at a shape that networks have. It is compiled, its outputs are compared with
ONNX Runtime's, and then both take turns on one thread (ONNX Runtime with IO binding); a figure is the minimum over all
rounds, a ratio below 1 says that Ingot is faster. Dimensions of the cases
named *_dyn are symbolic. Exits 1 when outputs differ, or a ratio is beyond --max-ratio.
Needs numpy, onnx and onnxruntime from PyPI."""
import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FLOAT = TensorProto.FLOAT
DTYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "i32": TensorProto.INT32, "i64": TensorProto.INT64}


class Case:
    """inputs: name -> (dtype, dims[, highest integer]); nodes: (op, inputs, outputs, attributes); constants: name ->
    array. A string as a dimension is symbolic and stands for its value in `symbols`."""

    def __init__(self, inputs, nodes, outputs, constants=None, symbols=None):
        self.inputs, self.nodes, self.outputs = inputs, nodes, outputs
        self.constants, self.symbols = constants or {}, symbols or {}

    def model(self):
        values = lambda names: [helper.make_tensor_value_info(n, 0, None) for n in names]
        graph = helper.make_graph(
            [helper.make_node(op, ins, outs, **attributes) for op, ins, outs, attributes in self.nodes], "case",
            [helper.make_tensor_value_info(n, DTYPES[spec[0]], spec[1]) for n, spec in self.inputs.items()], [],
            [numpy_helper.from_array(a, n) for n, a in self.constants.items()])
        graph.output.extend(onnx.ValueInfoProto(name=n) for n in self.outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        inferred = {v.name: v for v in onnx.shape_inference.infer_shapes(model).graph.output}
        del graph.output[:]
        del model.graph.output[:]
        model.graph.output.extend(inferred[n] for n in self.outputs)
        return model

    def feed(self):
        rng = numpy.random.default_rng(0)
        feed = {}
        for name, (dtype, dims, *high) in self.inputs.items():
            dims = [self.symbols.get(d, d) for d in dims]
            if dtype in ("i32", "i64"):
                feed[name] = rng.integers(0, (high or [100])[0], dims).astype("int" + dtype[1:])
            else:
                feed[name] = rng.standard_normal(dims).astype("float" + dtype[1:])
        return feed


def unary(op, dims, dtype="f32", constants=None, extra=(), **attributes):
    return Case({"x": (dtype, dims)}, [(op, ["x", *extra], ["y"], attributes)], ["y"], constants)


def binary(op, a, b, dtype="f32"):
    return Case({"a": (dtype, a), "b": (dtype, b)}, [(op, ["a", "b"], ["y"], {})], ["y"])


def ints(*values):
    return numpy.array(values, numpy.int64)


def floats(*dims):
    return numpy.random.default_rng(1).standard_normal(dims).astype(numpy.float32)


def reduce(op, dims, axes, dtype="f32", keep=1):
    return Case({"x": (dtype, dims)}, [(op, ["x", "axes"], ["y"], {"keepdims": keep})], ["y"], {"axes": ints(*axes)})


def layer_norm(dims, symbols=None):
    n = dims[-1] if isinstance(dims[-1], int) else symbols[dims[-1]]
    return Case({"x": ("f32", dims)}, [("LayerNormalization", ["x", "w", "b"], ["y"], {"axis": -1})], ["y"],
                {"w": floats(n), "b": floats(n)}, symbols)


def layer_norm_residual(dims):
    return Case({"x": ("f32", dims), "r": ("f32", dims)},
                [("Add", ["x", "r"], ["s"], {}), ("LayerNormalization", ["s", "w", "b"], ["y"], {"axis": -1})],
                ["s", "y"], {"w": floats(dims[-1]), "b": floats(dims[-1])})


def masked_softmax(heads, n):
    return Case({"x": ("f32", [1, heads, n, n]), "m": ("f32", [1, 1, 1, n])},
                [("Mul", ["x", "scale"], ["s"], {}), ("Add", ["s", "m"], ["t"], {}),
                 ("Softmax", ["t"], ["y"], {"axis": -1})], ["y"], {"scale": numpy.float32(0.125)})


def gelu(dims):
    return Case({"x": ("f32", dims)}, [("Div", ["x", "r2"], ["a"], {}), ("Erf", ["a"], ["b"], {}),
                                       ("Add", ["b", "one"], ["c"], {}), ("Mul", ["x", "c"], ["d"], {}),
                                       ("Mul", ["d", "half"], ["y"], {})], ["y"],
                {"r2": numpy.float32(math.sqrt(2)), "one": numpy.float32(1), "half": numpy.float32(0.5)})


def concat(axis, *shapes):
    names = [f"x{i}" for i in range(len(shapes))]
    return Case({n: ("f32", s) for n, s in zip(names, shapes)}, [("Concat", names, ["y"], {"axis": axis})], ["y"])


def concat_norm_relu(parts, channels, size):
    names = [f"x{i}" for i in range(parts)]
    total = parts * channels
    return Case({n: ("f32", [1, channels, size, size]) for n in names},
                [("Concat", names, ["c"], {"axis": 1}), ("Mul", ["c", "s"], ["m"], {}), ("Add", ["m", "b"], ["a"], {}),
                 ("Relu", ["a"], ["y"], {})], ["y"],
                {"s": floats(total, 1, 1), "b": floats(total, 1, 1)})


def group_norm(groups, channels, size):
    return Case({"x": ("f32", [1, channels, size, size])},
                [("Reshape", ["x", "r"], ["g"], {}), ("InstanceNormalization", ["g", "one", "zero"], ["n"], {}),
                 ("Reshape", ["n", "back"], ["m"], {}), ("Mul", ["m", "w"], ["p"], {}), ("Add", ["p", "b"], ["y"], {})],
                ["y"], {"r": ints(0, groups, -1), "back": ints(1, channels, size, size),
                        "one": numpy.ones(groups, numpy.float32), "zero": numpy.zeros(groups, numpy.float32),
                        "w": floats(channels, 1, 1), "b": floats(channels, 1, 1)})


def silu(dims):
    return Case({"x": ("f32", dims)}, [("Sigmoid", ["x"], ["s"], {}), ("Mul", ["x", "s"], ["y"], {})], ["y"])


def rms_norm(rows, width):
    return Case({"x": ("f32", [1, rows, width])},
                [("Pow", ["x", "two"], ["q"], {}), ("ReduceMean", ["q", "axes"], ["v"], {}),
                 ("Add", ["v", "eps"], ["e"], {}), ("Sqrt", ["e"], ["r"], {}), ("Div", ["x", "r"], ["n"], {}),
                 ("Mul", ["n", "w"], ["y"], {})], ["y"],
                {"two": numpy.float32(2), "axes": ints(-1), "eps": numpy.float32(1e-5), "w": floats(width)})


def split(dims, axis, parts):
    outputs = [f"y{i}" for i in range(parts)]
    return Case({"x": ("f32", dims)}, [("Split", ["x"], outputs, {"axis": axis, "num_outputs": parts})], outputs)


def slices(dims, starts, ends, axes, steps):
    return Case({"x": ("f32", dims)}, [("Slice", ["x", "s", "e", "a", "t"], ["y"], {})], ["y"],
                {"s": ints(*starts), "e": ints(*ends), "a": ints(*axes), "t": ints(*steps)})


def take(rows, width, count):
    return Case({"i": ("i64", [1, count], rows)}, [("Gather", ["w", "i"], ["y"], {"axis": 0})], ["y"],
                {"w": floats(rows, width)})


def to_heads(batch, n, heads, size):
    return Case({"x": ("f32", [batch, n, heads * size])},
                [("Reshape", ["x", "shape"], ["s"], {}), ("Transpose", ["s"], ["y"], {"perm": [0, 2, 1, 3]})], ["y"],
                {"shape": ints(batch, n, heads, size)})


def from_heads(batch, n, heads, size):
    return Case({"x": ("f32", [batch, heads, n, size])},
                [("Transpose", ["x"], ["t"], {"perm": [0, 2, 1, 3]}), ("Reshape", ["t", "shape"], ["y"], {})], ["y"],
                {"shape": ints(batch, n, heads * size)})


def channel_shuffle(groups, channels, size):
    return Case({"x": ("f32", [1, groups * channels, size, size])},
                [("Reshape", ["x", "a"], ["s"], {}), ("Transpose", ["s"], ["t"], {"perm": [0, 2, 1, 3, 4]}),
                 ("Reshape", ["t", "b"], ["y"], {})], ["y"],
                {"a": ints(1, groups, channels, size, size), "b": ints(1, groups * channels, size, size)})


def chain(length, dims):
    nodes = [(("Sin", "Cos")[i % 2], [f"v{i}"], [f"v{i + 1}"], {}) for i in range(length)]
    return Case({"v0": ("f32", dims)}, nodes, [f"v{length}"])


CASES = {
    # Elementwise.
    "add_64x112x112": binary("Add", [1, 64, 112, 112], [1, 64, 112, 112]),
    "add_1024x7x7": binary("Add", [1, 1024, 7, 7], [1, 1024, 7, 7]),
    "add_channel_256x14x14": binary("Add", [1, 256, 14, 14], [1, 256, 1, 1]),
    "mul_gate_1152x7x7": binary("Mul", [1, 1152, 7, 7], [1, 1152, 1, 1]),
    "add_bias_128x768": binary("Add", [1, 128, 768], [768]),
    "add_outer_512x512": binary("Add", [512, 1], [1, 512]),
    "relu_256x56x56": unary("Relu", [1, 256, 56, 56]),
    "sigmoid_96x112x112": unary("Sigmoid", [1, 96, 112, 112]),
    "tanh_128x3072": unary("Tanh", [1, 128, 3072]),
    "exp_128x3072": unary("Exp", [1, 128, 3072]),
    "gelu_128x3072": gelu([1, 128, 3072]),
    "silu_96x112x112": silu([1, 96, 112, 112]),
    "pow3_128x3072": Case({"x": ("f32", [1, 128, 3072])}, [("Pow", ["x", "p"], ["y"], {})], ["y"],
                          {"p": numpy.float32(3)}),
    "sqrt_7": unary("Sqrt", [1, 7]),
    "add_i32_128x768": binary("Add", [128, 768], [128, 768], "i32"),
    "cast_f16_128x768": unary("Cast", [128, 768], to=TensorProto.FLOAT16),
    "chain_100": chain(100, [1]),
    "add_dyn": Case({"a": ("f32", ["n", "m"]), "b": ("f32", ["n", "m"])}, [("Add", ["a", "b"], ["y"], {})], ["y"],
                    symbols={"n": 128, "m": 770}),
    # Rows.
    "softmax_12x128x128": unary("Softmax", [1, 12, 128, 128], axis=-1),
    "softmax_1000": unary("Softmax", [1, 1000], axis=-1),
    "softmax_12x63": unary("Softmax", [1, 12, 1, 63], axis=-1),
    "softmax_axis1_64x50": unary("Softmax", [1, 64, 50], axis=1),
    "softmax_masked_12x128": masked_softmax(12, 128),
    "softmax_50257": unary("Softmax", [1, 50257], axis=-1),
    "log_softmax_128x1000": unary("LogSoftmax", [128, 1000], axis=-1),
    "layer_norm_128x768": layer_norm([1, 128, 768]),
    "layer_norm_residual_128x768": layer_norm_residual([1, 128, 768]),
    "layer_norm_56x56x96": layer_norm([1, 56, 56, 96]),
    "instance_norm_64x56x56": Case({"x": ("f32", [1, 64, 56, 56])},
                                   [("InstanceNormalization", ["x", "w", "b"], ["y"], {})], ["y"],
                                   {"w": floats(64), "b": floats(64)}),
    "group_norm_32x320x32": group_norm(32, 320, 32),
    "rms_norm_128x2048": rms_norm(128, 2048),
    "softmax_dyn": Case({"x": ("f32", [1, 12, "n", "m"])}, [("Softmax", ["x"], ["y"], {"axis": -1})], ["y"],
                        symbols={"n": 128, "m": 127}),
    "layer_norm_dyn": layer_norm([1, "n", 768], {"n": 128}),
    # Reductions.
    "mean_2048x7x7": reduce("ReduceMean", [1, 2048, 7, 7], [2, 3]),
    "global_average_pool_1280x7x7": unary("GlobalAveragePool", [1, 1280, 7, 7]),
    "sum_last_1024x1024": reduce("ReduceSum", [1024, 1024], [1]),
    "sum_first_1024x1024": reduce("ReduceSum", [1024, 1024], [0]),
    "sum_middle_16x128x64": reduce("ReduceSum", [16, 128, 64], [1]),
    "sum_all_1024x1024": reduce("ReduceSum", [1024, 1024], [0, 1]),
    "max_last_128x768": reduce("ReduceMax", [128, 768], [1]),
    "sum_i32_last_128x768": reduce("ReduceSum", [128, 768], [1], "i32"),
    "sum_sym_last": Case({"x": ("f32", ["n", "m"])}, [("ReduceSum", ["x", "axes"], ["y"], {})], ["y"],
                         {"axes": ints(1)}, {"n": 128, "m": 1001}),
    # Data movement.
    "transpose_0213_128x12x64": unary("Transpose", [1, 128, 12, 64], perm=[0, 2, 1, 3]),
    "transpose_0231_12x128x64": unary("Transpose", [1, 128, 12, 64], perm=[0, 2, 3, 1]),
    "transpose_1024x1024": unary("Transpose", [1024, 1024], perm=[1, 0]),
    "transpose_50x77": unary("Transpose", [50, 77], perm=[1, 0]),
    "nchw_to_nhwc_64x56x56": unary("Transpose", [1, 64, 56, 56], perm=[0, 2, 3, 1]),
    "nhwc_to_nchw_96x56x56": unary("Transpose", [1, 56, 56, 96], perm=[0, 3, 1, 2]),
    "to_heads_128x12x64": to_heads(1, 128, 12, 64),
    "from_heads_128x12x64": from_heads(1, 128, 12, 64),
    "channel_shuffle_2x58x28": channel_shuffle(2, 58, 28),
    "concat_channels_28x28": concat(1, [1, 256, 28, 28], [1, 32, 28, 28]),
    "concat_last_64x2": concat(-1, [1, 12, 128, 32], [1, 12, 128, 32]),
    "concat_past_63x1": concat(2, [1, 12, 63, 64], [1, 12, 1, 64]),
    "concat_norm_relu_12x32x28": concat_norm_relu(12, 32, 28),
    "argmax_128x1000": unary("ArgMax", [128, 1000], axis=-1),
    "split_3x768": split([1, 64, 2304], 2, 3),
    "split_channels_2x58": split([1, 116, 28, 28], 1, 2),
    "slice_64x112x112": slices([1, 64, 112, 112], [8, 3], [56, 100], [1, 3], [1, 1]),
    "slice_step2_64x112x112": slices([1, 64, 112, 112], [0, 0], [112, 112], [2, 3], [2, 2]),
    "pad_64x56x56": Case({"x": ("f32", [1, 64, 56, 56])}, [("Pad", ["x", "p"], ["y"], {})], ["y"],
                         {"p": ints(0, 0, 1, 1, 0, 0, 1, 1)}),
    "pad_3x224x224": Case({"x": ("f32", [1, 3, 224, 224])}, [("Pad", ["x", "p"], ["y"], {})], ["y"],
                          {"p": ints(0, 0, 3, 3, 0, 0, 3, 3)}),
    "take_30522x768_128": take(30522, 768, 128),
    "where_12x128x128": Case({"x": ("f32", [1, 12, 128, 128]), "m": ("i32", [1, 1, 128, 128], 2)},
                             [("Cast", ["m"], ["c"], {"to": TensorProto.BOOL}),
                              ("Where", ["c", "x", "low"], ["y"], {})], ["y"], {"low": numpy.float32(-1e9)}),
    "expand_64x56x56": Case({"x": ("f32", [1, 64, 1, 1])}, [("Expand", ["x", "s"], ["y"], {})], ["y"],
                            {"s": ints(1, 64, 56, 56)}),
}


class Ort:
    def __init__(self, path, feed, outputs):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.outputs = dict(zip(outputs, session.run(outputs, feed)))
        binding = session.io_binding()
        self.values = {n: onnxruntime.OrtValue.ortvalue_from_numpy(v) for n, v in feed.items()}
        for name, value in self.values.items():
            binding.bind_ortvalue_input(name, value)
        for name, value in self.outputs.items():
            value = self.values[name + "/out"] = onnxruntime.OrtValue.ortvalue_from_numpy(value.copy())
            binding.bind_ortvalue_output(name, value)
        self.run = lambda: session.run_with_iobinding(binding)

    def least(self, seconds):
        best, end = math.inf, time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            self.run()
            best = min(best, time.perf_counter() - start)
        return best


class Ingot:
    def __init__(self, tools, folder, case):
        self.tools, self.folder = tools, folder
        # Made by vm-bench, which aligns them: what lies unaligned in a file would be copied in every call.
        self.inputs = []
        for name, (dtype, dims, *high) in case.inputs.items():
            shape = "x".join(str(case.symbols.get(d, d)) for d in dims)
            values = f"randint:0,{(high or [100])[0]}" if dtype[0] == "i" else "rand"
            self.inputs += ["--input", f"{name}={shape}x{dtype}={values}"]
        self.path = folder / "model.ingot"
        self.call("vm-compile", folder / "model.onnx", "-o", self.path)
        self.call("vm-run", self.path, folder / "inputs.npz", "--expect", f"@{folder}/outputs.npz", "--rtol", "1e-3",
                  "--atol", "1e-5")

    def call(self, tool, *arguments):
        process = subprocess.run([self.tools / tool, *map(str, arguments)], capture_output=True, text=True)
        if process.returncode != 0:
            raise RuntimeError(f"{tool}: "
                               + (process.stderr.strip().splitlines() or [f"exit {process.returncode}"])[-1])
        return process.stdout

    def least(self, seconds):
        text = self.call("vm-bench", self.path, *self.inputs, "--warmup", "20ms", "--min-time",
                         f"{int(seconds * 1000)}ms", "--json", "-")
        return json.loads(text)["benchmarks"][0]["min_time"] * 1e-9


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.15)
    parser.add_argument("--keep", type=pathlib.Path, help="leave the models here")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--max-ratio", type=float)
    options = parser.parse_args()
    failed, ratios = False, []
    print(f"{'case':32} {'ort us':>10} {'ingot us':>10} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as scratch:
        for name, case in CASES.items():
            if not re.search(options.only, name):
                continue
            folder = (options.keep or pathlib.Path(scratch)) / name
            folder.mkdir(parents=True, exist_ok=True)
            onnx.save(case.model(), folder / "model.onnx")
            feed = case.feed()
            ort = Ort(folder / "model.onnx", feed, case.outputs)
            numpy.savez(folder / "inputs.npz", **feed)
            numpy.savez(folder / "outputs.npz", **ort.outputs)
            try:
                ingot = Ingot(options.bin, folder, case)
                peer = ours = math.inf
                for _ in range(options.rounds):
                    peer = min(peer, ort.least(options.seconds))
                    ours = min(ours, ingot.least(options.seconds))
            except RuntimeError as error:
                failed = True
                print(f"{name:32} FAILED {error}", flush=True)
                continue
            ratio = ours / peer
            ratios.append(ratio)
            failed |= options.max_ratio is not None and ratio > options.max_ratio
            print(f"{name:32} {peer * 1e6:10.1f} {ours * 1e6:10.1f} {ratio:7.2f}{'  slower' * (ratio > 1.05)}",
                  flush=True)
    if ratios:
        print(f"{'geometric mean':32} {'':10} {'':10} {math.exp(sum(map(math.log, ratios)) / len(ratios)):7.2f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
