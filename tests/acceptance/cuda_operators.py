#!/usr/bin/env python3
"""Operators whose inputs have free axes alone, compiled for CUDA: launches, workspace and results of several symbols at
once. None that a CPU runs is refused, and what runs on the stand-in GPU gives the CPU's results.

usage: cuda_operators.py BIN_DIR STANDIN_DIR [--part N] [--only TEXT] [--compile]

STANDIN_DIR has libcuda.so.1 and a vm-run with the device cuda. --part N: every N-th case alone, from one on that the
commit's hash chooses (all where INGOT_LONG_TESTS is set); --compile: nothing runs. Exit code 77 (skipped) without numpy and
onnx."""
import argparse
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent / "fuzz"))
try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    from graph_fuzz import commit_seed
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

FLOAT, INT32, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL
DTYPES = {FLOAT: np.float32, INT32: np.int32, INT64: np.int64, BOOL: np.bool_}
AXES = ["a", "b", "c", "d", "e"]
PLACES, BATCHES = ["h", "w", "d"], ["a", "b", "c"]
CASES = {}


def weights(*shape):
    return (np.random.default_rng(1).standard_normal(shape) * 0.3).astype(np.float32)


def case(name, nodes, inputs, constants=(), outputs=("y",), least=1):
    """nodes: (operator, inputs, outputs, attributes); inputs: (name, dtype, dims); least: of the sizes that are drawn."""
    CASES[name] = nodes, inputs, constants, outputs, least


def one(name, op, inputs, constants=(), outputs=("y",), least=1, order=None, **attributes):
    names = order or [i[0] for i in inputs] + [c[0] for c in constants]
    case(name, [(op, names, list(outputs), attributes)], inputs, constants, outputs, least)


def windows():
    """Of one to three axes: strides, padding by numbers and by names, dilations, rounding up."""
    forms = {"plain": (3, 1, {}), "strided": (3, 2, lambda n: {"pads": [1] * 2 * n}),
             "same": (3, 2, {"auto_pad": "SAME_UPPER"}), "single": (1, 1, {}),
             "dilated": (3, 2, lambda n: {"pads": [2] * 2 * n, "dilations": [2] * n})}
    for rank, (form, (taps, stride, more)) in itertools.product((1, 2, 3), forms.items()):
        attributes = {"kernel_shape": [taps] * rank, "strides": [stride] * rank, **(more(rank) if callable(more) else more)}
        for groups in (1, 4):
            one(f"conv{rank}d_{form}_{groups}", "Conv", [("x", FLOAT, ["n", 4] + PLACES[:rank])],
                [("w", weights(8, 4 // groups, *[taps] * rank)), ("b", weights(8))], least=5, group=groups, **attributes)
        for op in ("MaxPool", "AveragePool", "LpPool"):
            one(f"{op}{rank}d_{form}", op, [("x", FLOAT, ["n", "c"] + PLACES[:rank])], least=5, **attributes)
        one(f"ceil{rank}d_{form}", "MaxPool", [("x", FLOAT, ["n", "c"] + PLACES[:rank])], least=5,
            **{**attributes, **({} if "auto_pad" in attributes else {"ceil_mode": 1})})
    for rank in (1, 2, 3):
        image = [("x", FLOAT, ["n", 4] + PLACES[:rank])]
        one(f"conv_transpose{rank}d", "ConvTranspose", image, [("w", weights(4, 3, *[3] * rank))], strides=[2] * rank)
        one(f"instance_norm{rank}d", "InstanceNormalization", image, [("s", weights(4)), ("b", weights(4))])
        for mode in ("nearest", "linear"):
            one(f"resize{rank}d_{mode}", "Resize", image, [("s", np.array([1, 1] + [1.7] * rank, np.float32))],
                order=["x", "", "s"], mode=mode)


def along_axes():
    for rank, axis in ((rank, axis) for rank in range(1, 6) for axis in range(rank)):
        x, tag = [("x", FLOAT, AXES[:rank])], f"_{rank}_{axis}"
        for op in ("Softmax", "LogSoftmax", "ArgMax", "Hardmax"):
            one(op + tag, op, x, axis=axis)
        one("CumSum" + tag, "CumSum", x, [("k", np.int64(axis))], exclusive=rank % 2, reverse=axis % 2)
        one("TopK" + tag, "TopK", x, [("k", np.array([3]))], outputs=("y", "i"), least=3, axis=axis)
        places = [("i", INT64, ["p", "q", "r", "s", "t"][:rank])]
        one("Gather" + tag, "Gather", x + [("i", INT64, ["p", "q"])], axis=axis, least=2)
        one("GatherElements" + tag, "GatherElements", [("x", FLOAT, AXES[:rank]), ("i", INT64, AXES[:rank])], axis=axis, least=2)
        one("ScatterElements" + tag, "ScatterElements",
            x + [("i", INT64, AXES[:rank]), ("u", FLOAT, AXES[:rank])], axis=axis, reduction="add", least=2)
        one("Concat" + tag, "Concat",
            x + [("z", FLOAT, AXES[:axis] + ["q"] + AXES[axis + 1:rank])], order=["x", "z", "x"], axis=axis)
        one("Compress" + tag, "Compress", x + [("i", BOOL, [AXES[axis]])], axis=axis)
        one("LayerNormalization" + tag, "LayerNormalization", x + [("g", FLOAT, AXES[axis:rank])], axis=axis)
        one("RMSNormalization" + tag, "RMSNormalization", x + [("g", FLOAT, AXES[axis:rank])], axis=axis)


def whole_tensors():
    for rank in range(1, 6):
        x = [("x", FLOAT, AXES[:rank])]
        for axes in (axes for n in range(1, rank + 1) for axes in itertools.combinations(range(rank), n)):
            for op in ("ReduceSum", "ReduceMax", "ReduceLogSumExp"):
                one(f"{op}_{rank}_{''.join(map(str, axes))}", op, x, [("k", np.array(axes))], keepdims=len(axes) % 2)
        if rank < 5:
            for perm in itertools.permutations(range(rank)):
                one(f"Transpose_{''.join(map(str, perm))}", "Transpose", x, perm=perm)
        for mode in ("constant", "reflect", "edge", "wrap"):
            one(f"Pad_{mode}_{rank}", "Pad", x, [("p", np.array([1] * rank + [2] * rank))], least=4, mode=mode)
        one(f"Slice_{rank}", "Slice", x, [("s", np.array([1] * rank)), ("e", np.array([-1] * rank)),
                                          ("k", np.arange(rank)), ("t", np.array([2] * rank))], least=3)
        one(f"Tile_{rank}", "Tile", x, [("s", np.array([2] * rank))])
        one(f"NonZero_{rank}", "NonZero", x)
        one(f"Add_{rank}", "Add", x + [("z", FLOAT, [f"{name}2" if i else name for i, name in enumerate(AXES[:rank])])])
        case(f"sort_of_joined_{rank}",
             [("Concat", ["x"] * rank + ["z", "x"], ["j"], {"axis": 0}), ("Shape", ["j"], ["k"], {"start": 0, "end": 1}),
              ("TopK", ["j", "k"], ["y", "i"], {"axis": 0})], x + [("z", FLOAT, ["q"] + AXES[1:rank])], least=8,
             outputs=("y", "i"))
        one(f"ScatterND_{rank}", "ScatterND",
            x + [("i", INT64, ["p", "q", 1]), ("u", FLOAT, ["p", "q"] + AXES[1:rank])], reduction="add", least=2)
        case(f"sort_{rank}", [("Shape", ["x"], ["k"], {"start": rank - 1}), ("TopK", ["x", "k"], ["y", "i"], {})], x,
             outputs=("y", "i"))


def products():
    for a, b in itertools.product(range(1, 6), repeat=2):
        left = BATCHES[5 - a:] + ["m", "k"] if a > 1 else ["k"]  # axes that broadcast are the same from the end on
        right = BATCHES[5 - b:] + ["k", "n"] if b > 1 else ["k"]
        one(f"MatMul_{a}_{b}", "MatMul", [("x", FLOAT, left), ("z", FLOAT, right)])
    for groups, extra in itertools.product((1, 2), ({}, {"is_causal": 1}, {"softcap": 2.0})):
        keys = [(name, FLOAT, ["b", 4 // groups, "t", 16]) for name in "kv"]
        one(f"Attention_{groups}_{'_'.join(extra)}", "Attention", [("q", FLOAT, ["b", 4, "s", 16])] + keys, **extra)
    for (op, gates), directions in itertools.product((("LSTM", 4), ("GRU", 3), ("RNN", 1)), (1, 2)):
        constants = [("w", weights(directions, gates * 5, 6)), ("r", weights(directions, gates * 5, 5))]
        direction = "bidirectional" if directions == 2 else "forward"
        for lengths in (False, True):
            inputs = [("x", FLOAT, ["s", "b", 6])] + ([("l", INT32, ["b"])] if lengths else [])
            one(f"{op}_{direction}_{lengths}", op, inputs, constants, hidden_size=5, direction=direction,
                order=["x", "w", "r", ""] + (["l"] if lengths else []))
    one("GridSample_2", "GridSample", [("x", FLOAT, ["n", "c", "h", "w"]), ("g", FLOAT, ["n", "p", "q", 2])])
    one("GridSample_3", "GridSample", [("x", FLOAT, ["n", "c", "h", "w", "d"]), ("g", FLOAT, ["n", "p", "q", "r", 3])])
    one("Det", "Det", [("x", FLOAT, ["a", "n", "n"])])


def model(nodes, inputs, constants, outputs):
    graph = helper.make_graph(
        [helper.make_node(op, *names, **attributes) for op, *names, attributes in nodes], "g",
        [helper.make_tensor_value_info(*info) for info in inputs], [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def drawn(inputs, least, rng):
    """Indices are legal for every axis: they are below the least size."""
    sizes, values = {}, {}
    for name, dtype, dims in inputs:
        shape = [dim if isinstance(dim, int) else sizes.setdefault(dim, int(rng.integers(least, least + 5))) for dim in dims]
        if any(isinstance(dim, str) and dim.endswith("2") for dim in dims):  # of a broadcast
            shape = [sizes[dim[0]] if dim.endswith("2") else size for dim, size in zip(dims, shape)]
        values[name] = (rng.standard_normal(shape).astype(np.float32) if dtype == FLOAT
                        else rng.integers(0, max(least, 1), shape).astype(DTYPES[dtype]) if dtype != BOOL
                        else rng.random(shape) < 0.6)
    return values


class Tools:
    def __init__(self, bin_dir, standin, folder):
        self.bin, self.standin, self.folder = bin_dir, standin, folder
        self.environment = {**os.environ, "INGOT_CACHE": "off", "LD_LIBRARY_PATH": str(standin)}

    def compile(self, target):
        """What the compiler says against it."""
        done = subprocess.run([self.bin / "vm-compile", self.folder / "m.onnx", "--target", target, "-o",
                               self.folder / f"{target[:3]}.ingot"], capture_output=True, text=True, env=self.environment)
        return "" if done.returncode == 0 else f"vm-compile exits {done.returncode}: {done.stderr.strip()[-300:]}"

    def differences(self, values):
        np.savez(self.folder / "in.npz", **values)
        outputs, inputs = self.folder / "out.npz", self.folder / "in.npz"
        for command in ([self.bin / "vm-run", self.folder / "cpu.ingot", inputs, "--output", f"@{outputs}"],
                        [self.standin / "vm-run", self.folder / "cud.ingot", inputs, "--expect", f"@{outputs}", "--rtol",
                         "1e-3", "--atol", "1e-4"]):
            done = subprocess.run(command, capture_output=True, text=True, env=self.environment)
            if done.returncode != 0:
                return f"{command[0].parent.name}/vm-run exits {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}"
        return ""


def check(tools, name, only_compile):
    nodes, inputs, constants, outputs, least = CASES[name]
    onnx.save(model(nodes, inputs, constants, outputs), tools.folder / "m.onnx")
    problem, refused = tools.compile("cuda:sm_80,sm_90"), tools.compile("cpu:x86-64-v3")
    if refused:
        return f"a CPU does not run it: {refused}"
    if problem or only_compile:
        return problem
    rng = np.random.default_rng(len(name))
    return next(filter(None, (tools.differences(drawn(inputs, least, rng)) for _ in range(2))), "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("standin", type=pathlib.Path)
    parser.add_argument("--part", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    for make in (windows, along_axes, whole_tensors, products):
        make()
    part = 1 if os.environ.get("INGOT_LONG_TESTS") else options.part
    names = [name for name in sorted(CASES) if options.only in name][commit_seed() % part::part]
    problems = 0
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(options.bin_dir.resolve(), options.standin.resolve(), pathlib.Path(folder))
        for name in names:
            problem = check(tools, name, options.compile)
            if problem:
                problems += 1
                print(f"{name}: {problem}", flush=True)
    print(f"{len(names)} of {len(CASES)} cases, {problems} problems")
    return 1 if problems or not names else 0


if __name__ == "__main__":
    sys.exit(main())
