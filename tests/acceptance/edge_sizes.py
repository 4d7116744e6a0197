"""Operators at sizes 0 and 1: each dimension of each operator's inputs in turn, then several and all of them, beside
ONNX Runtime. A dimension is written into the model in one form, and left symbolic and bound when it is called in the
other. What ONNX Runtime computes, Ingot must compile and compute alike; what it refuses, Ingot may refuse too; nothing
may crash or hang.

usage: edge_sizes.py BIN_DIR [--full] [--only NAME] [--seed S]   exits 77 (skipped) without numpy, onnx and onnxruntime

The short form tries the sizes of all dimensions at once, and each dimension alone at one of the two sizes, which the
seed draws (left out: from the commit's hash; printed); --full tries both, pairs of dimensions and more rows."""
import itertools, os, pathlib, pickle, random, subprocess, sys, tempfile

try:
    import numpy as np, onnx, onnxruntime
    from onnx import TensorProto as T, helper, numpy_helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fuzz"))
from graph_fuzz import commit_seed  # noqa: E402

NODE = helper.make_node
DEFAULT = {letter: 2 + i % 4 for i, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
I64 = lambda *values: np.array(values, np.int64)
TIMEOUT = 60
# Cases (by how their names begin) in which the two differ for a reason.
DIFFERENT = [
    ("Compress static a=0", "reading an axis that is known to have no elements is refused when compiling"),
    ("Loop of 0 ", "without trips ONNX Runtime forgets the shape of what is stacked, which the graph states"),
    ("ReduceMean", "the mean of nothing is NaN, as NumPy's; ONNX leaves it open, ONNX Runtime gives 0"),
    ("MatMulInteger", "sums of nothing are 0; ONNX Runtime leaves what was in memory"),
    ("MaxPool 1x1", "a window with a stride over nothing has no place; ONNX Runtime rounds towards one"),
    ("AveragePool 1x1", "a window with a stride over nothing has no place; ONNX Runtime rounds towards one"),
    ("MeanVarianceNormalization", "of one element: 0 by ONNX's formula, NaN in ONNX Runtime where rounding makes the "
                                  "variance negative"),
]


class Case:
    """Inputs as NAME="letters" (float32) or NAME=("letters", dtype); `init` maps names to constants, or to functions of
    the sizes (such a case is tried with static dims alone)."""

    def __init__(self, name, nodes, outputs=("y",), init=None, opset=17, sizes=None, high=None, is_static_only=False,
                 **inputs):
        self.name, self.nodes, self.outputs, self.init, self.opset = name, nodes, outputs, init or {}, opset
        self.inputs = {k: v if isinstance(v, tuple) else (v, "float32") for k, v in inputs.items()}
        self.letters = sorted({c for dims, _ in self.inputs.values() for c in dims if c.isalpha()})
        self.sizes, self.high = {**DEFAULT, **(sizes or {})}, high
        self.is_static_only = is_static_only or any(callable(v) for v in self.init.values())

    def dims(self, text, sizes):
        return [sizes[c] if c.isalpha() else int(c) for c in text]

    def model(self, sizes, symbolic):
        graph_inputs = []
        for name, (text, dtype) in self.inputs.items():
            dims = [c if c.isalpha() else int(c) for c in text] if symbolic else self.dims(text, sizes)
            graph_inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)),
                                                              dims))
        init = [numpy_helper.from_array(np.asarray(v(sizes) if callable(v) else v), k) for k, v in self.init.items()]
        graph = helper.make_graph(self.nodes, "g", graph_inputs, [onnx.ValueInfoProto(name=o) for o in self.outputs],
                                  init)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)

    def feed(self, sizes):
        rng = np.random.default_rng(7)
        feed = {}
        for name, (text, dtype) in self.inputs.items():
            dims = self.dims(text, sizes)
            if dtype == "bool":
                feed[name] = rng.integers(0, 2, dims).astype(bool)
            elif np.issubdtype(np.dtype(dtype), np.integer):
                feed[name] = rng.integers(0, max(self.high or 3, 1), dims).astype(dtype)
            else:
                feed[name] = rng.standard_normal(dims).astype(dtype)
        return feed


def unary(op, **attrs):
    return Case(op, [NODE(op, ["x"], ["y"], **attrs)], x="abc")


def reduction(op, axes, keepdims=1):
    return Case(f"{op} {axes} keepdims={keepdims}", [NODE(op, ["x"], ["y"], axes=axes, keepdims=keepdims)], opset=11,
                x="abc")


def cases(full):
    unaries = "Abs Erf Exp Neg Relu Sigmoid Softplus Tanh".split()
    if full:
        unaries += ("Acos Asin Atan Ceil Celu Cos Elu Floor HardSigmoid HardSwish Identity IsNaN LeakyRelu Log Mish "
                    "Reciprocal Round Selu Sign Sin Softsign Sqrt Tan ThresholdedRelu").split()
    yield from map(unary, unaries)
    for op in ["Add", "Mul", "Div"] + (["Sub", "Pow", "Max", "Min", "Mean", "Sum"] if full else []):
        yield Case(op, [NODE(op, ["x", "w"], ["y"])], x="abc", w="abc")
        yield Case(op + " broadcast", [NODE(op, ["x", "w"], ["y"])], x="abc", w="b1")
        yield Case(op + " rows", [NODE(op, ["x", "w"], ["y"])], x="abc", w="c")
    yield Case("Greater", [NODE("Greater", ["x", "w"], ["y"])], x="ab", w="ab")
    yield Case("Where", [NODE("Where", ["m", "x", "w"], ["y"])], m=("ab", "bool"), x="ab", w="b")
    yield Case("Sum of three", [NODE("Sum", ["x", "w", "v"], ["y"])], x="ab", w="ab", v="b")
    yield Case("chain", [NODE("Tanh", ["x"], ["t"]), NODE("Add", ["t", "x"], ["u"]), NODE("Exp", ["u"], ["y"])],
               x="abc")
    # Movement.
    for perm in ([1, 0, 2], [2, 1, 0], [0, 2, 1], [1, 2, 0]):
        yield Case(f"Transpose {perm}", [NODE("Transpose", ["x"], ["y"], perm=perm)], x="abc",
                   sizes={"a": 9, "b": 17, "c": 20})
    for perm in ([0, 3, 2, 1], [0, 2, 3, 1], [0, 3, 1, 2], [3, 2, 1, 0]) if full else ([0, 3, 2, 1], [0, 2, 3, 1]):
        yield Case(f"Transpose {perm}", [NODE("Transpose", ["x"], ["y"], perm=perm)], x="abcd",
                   sizes={"a": 3, "b": 17, "c": 28, "d": 28})
    yield Case("Transpose + arithmetic", [NODE("Transpose", ["x"], ["t"], perm=[0, 2, 1]), NODE("Relu", ["t"], ["r"]),
                                          NODE("Add", ["r", "w"], ["y"])], x="abc", w="cb",
               sizes={"a": 2, "b": 17, "c": 19})
    for axis in (0, 1):
        yield Case(f"Concat {axis}", [NODE("Concat", ["x", "x"], ["y"], axis=axis)], x="ab")
        yield Case(f"Concat two {axis}", [NODE("Concat", ["x", "w"], ["y"], axis=axis)], x="ab",
                   w="cb" if axis == 0 else "ac")
    yield Case("Concat + Relu", [NODE("Relu", ["x"], ["r"]), NODE("Concat", ["r", "w", "r"], ["c"], axis=1),
                                 NODE("Tanh", ["c"], ["y"])], x="ab", w="ac")
    yield Case("Reshape flat", [NODE("Reshape", ["x", "s"], ["y"])], init={"s": I64(-1)}, x="abc")
    yield Case("Reshape 0 -1", [NODE("Reshape", ["x", "s"], ["y"])], init={"s": I64(0, -1)}, x="abc")
    yield Case("Reshape + Transpose", [NODE("Reshape", ["x", "s"], ["r"]), NODE("Transpose", ["r"], ["y"])],
               init={"s": I64(0, -1)}, x="abc")
    yield Case("Flatten", [NODE("Flatten", ["x"], ["y"], axis=1)], x="abc")
    yield Case("Unsqueeze", [NODE("Unsqueeze", ["x", "s"], ["y"])], init={"s": I64(0, 2)}, x="ab")
    yield Case("Expand", [NODE("Shape", ["w"], ["s"]), NODE("Expand", ["x", "s"], ["y"])], x="1b", w="ab")
    yield Case("Tile", [NODE("Tile", ["x", "s"], ["y"])], init={"s": I64(2, 3)}, x="ab")
    yield Case("Tile by 0", [NODE("Tile", ["x", "s"], ["y"])], init={"s": I64(2, 0)}, x="ab")
    yield Case("Slice", [NODE("Slice", ["x", "s", "e"], ["y"])], init={"s": I64(0, 1), "e": I64(99, 99)}, x="ab")
    yield Case("Slice of nothing", [NODE("Slice", ["x", "s", "e"], ["y"])], init={"s": I64(1, 1), "e": I64(1, 99)},
               x="ab")
    yield Case("Slice backwards", [NODE("Slice", ["x", "s", "e", "a", "t"], ["y"])],
               init={"s": I64(-1), "e": I64(-2**62), "a": I64(1), "t": I64(-1)}, x="ab")
    yield Case("Split", [NODE("Split", ["x"], ["y", "z"], axis=0)], ("y", "z"), x="ab", opset=13, sizes={"a": 4})
    yield Case("Split by sizes", [NODE("Split", ["x", "s"], ["y", "z"], axis=0)], ("y", "z"), init={"s": I64(0, 4)},
               x="4b", opset=13)
    yield Case("Pad", [NODE("Pad", ["x", "p"], ["y"])], init={"p": I64(1, 2, 0, 1)}, x="ab")
    yield Case("Pad edge", [NODE("Pad", ["x", "p"], ["y"], mode="edge")], init={"p": I64(1, 2, 0, 1)}, x="ab")
    yield Case("Gather", [NODE("Gather", ["x", "i"], ["y"])], x="ab", i=("cd", "int64"), high=1)
    yield Case("Gather axis 1", [NODE("Gather", ["x", "i"], ["y"], axis=1)], x="ab", i=("c", "int64"), high=1)
    yield Case("Gather by nothing", [NODE("Gather", ["x", "i"], ["y"])], init={"i": np.zeros(0, np.int64)}, x="ab")
    yield Case("Gather by nothing 2d", [NODE("Gather", ["x", "i"], ["y"], axis=1)],
               init={"i": np.zeros((2, 0), np.int64)}, x="ab")
    yield Case("GatherElements", [NODE("GatherElements", ["x", "i"], ["y"], axis=0)], x="ab", i=("cb", "int64"), high=1)
    yield Case("GatherND", [NODE("GatherND", ["x", "i"], ["y"])], x="ab", i=("c1", "int64"), high=1)
    yield Case("ScatterElements", [NODE("ScatterElements", ["x", "i", "u"], ["y"], axis=0)], x="ab", i=("cb", "int64"),
               u="cb", high=1, sizes={"c": 1})
    yield Case("ScatterND", [NODE("ScatterND", ["x", "i", "u"], ["y"])], x="ab", i=("c1", "int64"), u="cb", high=1,
               sizes={"c": 1})
    yield Case("Compress", [NODE("Compress", ["x", "m"], ["y"], axis=0)], x="ab", m=("a", "bool"))
    yield Case("NonZero", [NODE("NonZero", ["x"], ["y"])], x="ab")
    yield Case("OneHot", [NODE("OneHot", ["i", "n", "v"], ["y"])], init={"n": np.int64(3), "v": np.float32([0, 1])},
               i=("ab", "int64"))
    yield Case("Trilu", [NODE("Trilu", ["x"], ["y"], upper=0)], x="abc")
    yield Case("CumSum", [NODE("CumSum", ["x", "n"], ["y"])], init={"n": np.int64(1)}, x="abc")
    yield Case("ReverseSequence", [NODE("ReverseSequence", ["x", "n"], ["y"], batch_axis=0, time_axis=1)], x="abc",
               n=("a", "int64"), high=1)
    yield Case("DepthToSpace", [NODE("DepthToSpace", ["x"], ["y"], blocksize=2)], x="a8bc")
    yield Case("SpaceToDepth", [NODE("SpaceToDepth", ["x"], ["y"], blocksize=2)], x="ab46")
    yield Case("TopK", [NODE("TopK", ["x", "k"], ["y", "z"])], ("y", "z"), init={"k": I64(1)}, x="ab")
    yield Case("TopK of 0", [NODE("TopK", ["x", "k"], ["y", "z"])], ("y", "z"), init={"k": I64(0)}, x="ab")
    yield Case("ArgMax", [NODE("ArgMax", ["x"], ["y"], axis=1)], x="abc")
    yield Case("Unique", [NODE("Unique", ["x"], ["y"])], x="a")
    yield Case("Range", [NODE("Shape", ["x"], ["s"]), NODE("Squeeze", ["s"], ["n"]), NODE("Range", ["o", "n", "d"],
               ["y"])], init={"o": np.int64(0), "d": np.int64(1)}, x="a")
    yield Case("ConstantOfShape", [NODE("Shape", ["x"], ["s"]), NODE("ConstantOfShape", ["s"], ["y"])], x="ab")
    yield Case("EyeLike", [NODE("EyeLike", ["x"], ["y"])], x="ab", is_static_only=True)
    yield Case("Shape, Size", [NODE("Shape", ["x"], ["y"]), NODE("Size", ["x"], ["z"])], ("y", "z"), x="ab")
    # Reductions and what is built on them.
    ops = "ReduceSum ReduceMean ReduceMax ReduceL2 ReduceProd".split() if not full else (
        "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp "
        "ReduceSumSquare").split()
    for op in ops:
        for axes in ([0], [2], [0, 1, 2]) if not full else ([0], [1], [2], [0, 2], [1, 2], [0, 1, 2]):
            yield reduction(op, axes, 1 if axes != [2] else 0)
    for op in ("Softmax", "LogSoftmax") + (("Hardmax",) if full else ()):
        for axis in (1, -1):
            yield Case(f"{op} {axis}", [NODE(op, ["x"], ["y"], axis=axis)], x="abc")
    yield Case("LayerNormalization", [NODE("LayerNormalization", ["x", "s", "b"], ["y"])], x="abc", s="c", b="c")
    yield Case("LpNormalization", [NODE("LpNormalization", ["x"], ["y"])], x="ab")
    yield Case("MeanVarianceNormalization", [NODE("MeanVarianceNormalization", ["x"], ["y"])], x="abcd")
    yield Case("InstanceNormalization", [NODE("InstanceNormalization", ["x", "s", "b"], ["y"])], x="abcd", s="b", b="b")
    yield Case("BatchNormalization", [NODE("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"])], x="abcd",
               init={k: (lambda sizes: np.ones(sizes["b"], np.float32)) for k in "sbmv"})
    # Products.
    yield Case("MatMul", [NODE("MatMul", ["x", "w"], ["y"])], x="ab", w="bc", sizes={"a": 7, "b": 19, "c": 18})
    yield Case("MatMul batch", [NODE("MatMul", ["x", "w"], ["y"])], x="abc", w="acd", sizes={"b": 7, "c": 9, "d": 17})
    yield Case("MatMul vector", [NODE("MatMul", ["x", "w"], ["y"])], x="ab", w="b")
    yield Case("MatMul weights", [NODE("MatMul", ["x", "w"], ["t"]), NODE("Relu", ["t"], ["y"])], x="ab",
               init={"w": lambda s: np.ones((s["b"], 17), np.float32)})
    yield Case("MatMul no columns", [NODE("MatMul", ["x", "w"], ["y"])], x="a4",
               init={"w": np.ones((4, 0), np.float32)})
    yield Case("Gemm", [NODE("Gemm", ["x", "w", "b"], ["y"], transB=1)], x="ab", w="cb", b="c")
    yield Case("Gemm transA", [NODE("Gemm", ["x", "w"], ["y"], transA=1, alpha=0.5)], x="ba", w="bc")
    yield Case("Einsum", [NODE("Einsum", ["x", "w"], ["y"], equation="abc,cd->abd")], x="abc", w="cd")
    yield Case("MatMulInteger", [NODE("MatMulInteger", ["x", "w"], ["y"])], x=("ab", "uint8"), w=("bc", "uint8"))
    # Windows.
    for kernel, pads in (((3, 3), [1, 1, 1, 1]), ((1, 1), [0, 0, 0, 0])):
        weights = lambda s, k=kernel: np.ones((16, s["b"], *k), np.float32)
        yield Case(f"Conv {kernel}", [NODE("Conv", ["x", "w"], ["t"], pads=pads), NODE("Relu", ["t"], ["y"])],
                   x="abcd", init={"w": weights}, sizes={"b": 16, "c": 9, "d": 10})
        yield Case(f"Conv {kernel}, weights given", [NODE("Conv", ["x", "w"], ["y"], pads=pads)], x="abcd",
                   w=f"eb{kernel[0]}{kernel[1]}", sizes={"b": 16, "c": 9, "d": 10, "e": 16})
    for name, attrs in (("whole width", {}), ("stride", {"strides": [2, 2], "pads": [0, 1, 0, 1]})):
        width = lambda s: np.ones((16, 1, 3, max(s["d"], 1)), np.float32)
        yield Case("Conv, " + name, [NODE("Conv", ["x", "w"], ["t"], **attrs), NODE("Relu", ["t"], ["y"])], x="a1cd",
                   init={"w": width}, sizes={"c": 12, "d": 64})
    yield Case("Conv symbolic, width 1", [NODE("Conv", ["x", "w"], ["t"]), NODE("Relu", ["t"], ["y"])],
               init={"w": np.ones((16, 1, 3, 8), np.float32)}, x="a1c8", sizes={"c": 12})
    yield Case("Conv 1d", [NODE("Conv", ["x", "w"], ["y"])], init={"w": np.ones((8, 4, 3), np.float32)}, x="a4c",
               sizes={"c": 9})
    yield Case("Conv depthwise", [NODE("Conv", ["x", "w"], ["y"], group=16, pads=[1, 1, 1, 1])],
               init={"w": np.ones((16, 1, 3, 3), np.float32)}, x="aecd", sizes={"e": 16, "c": 5})
    yield Case("ConvTranspose", [NODE("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])],
               init={"w": np.ones((4, 8, 2, 2), np.float32)}, x="a4cd")
    for op in ("MaxPool", "AveragePool"):
        yield Case(op, [NODE(op, ["x"], ["y"], kernel_shape=[2, 2], pads=[0, 0, 1, 1])], x="abcd")
        yield Case(op + " 1x1", [NODE(op, ["x"], ["y"], kernel_shape=[1, 1], strides=[2, 2])], x="abcd")
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        yield Case(op, [NODE(op, ["x"], ["y"])], x="abcd")
    yield Case("LRN", [NODE("LRN", ["x"], ["y"], size=3)], x="abcd")
    for mode in ("nearest", "linear"):
        yield Case(f"Resize {mode}", [NODE("Resize", ["x", "", "s"], ["y"], mode=mode)],
                   init={"s": np.float32([1, 1, 2, 1.5])}, x="abcd", is_static_only=True)
        yield Case(f"Resize {mode} to 0", [NODE("Resize", ["x", "", "", "s"], ["y"], mode=mode)],
                   init={"s": I64(1, 2, 3, 0)}, x="12cd")
        yield Case(f"Resize {mode} to 1", [NODE("Resize", ["x", "", "", "s"], ["y"], mode=mode)],
                   init={"s": I64(1, 2, 3, 1)}, x="12cd")
        yield Case(f"Resize {mode} to nothing", [NODE("Resize", ["x", "", "s"], ["y"], mode=mode)],
                   init={"s": np.float32([1, 1, 1, 0.2])}, x="ab3d", is_static_only=True)
    yield Case("GridSample", [NODE("GridSample", ["x", "g"], ["y"])], x="abcd", g="aef2")
    # Attention, recurrence, quantisation, control flow.
    yield Case("attention", [NODE("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]), NODE("MatMul", ["q", "t"], ["s"]),
                             NODE("Softmax", ["s"], ["p"]), NODE("MatMul", ["p", "v"], ["y"])], q="abcd", k="abed",
               v="abed")
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        weights = {"w": np.ones((1, gates * 4, 3), np.float32), "r": np.ones((1, gates * 4, 4), np.float32)}
        yield Case(op, [NODE(op, ["x", "w", "r"], ["y", "h"], hidden_size=4)], ("y", "h"), init=weights, x="ab3")
    yield Case("QuantizeLinear", [NODE("QuantizeLinear", ["x", "s", "z"], ["q"]),
                                  NODE("DequantizeLinear", ["q", "s", "z"], ["y"])],
               init={"s": np.float32(0.1), "z": np.uint8(128)}, x="ab")
    yield Case("DynamicQuantizeLinear", [NODE("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])], ("y", "s", "z"),
               x="ab")
    branch = lambda out, op: helper.make_graph([NODE(op, ["x"], [out])], out, [],
                                               [helper.make_tensor_value_info(out, T.FLOAT, None)])
    yield Case("If", [NODE("ReduceSum", ["x"], ["t"], keepdims=0), NODE("Greater", ["t", "o"], ["c"]),
                      NODE("If", ["c"], ["y"], then_branch=branch("t1", "Neg"), else_branch=branch("e1", "Relu"))],
               init={"o": np.float32(0)}, x="ab")
    body = helper.make_graph([NODE("Identity", ["c"], ["c2"]), NODE("Add", ["v", "v"], ["v2"]),
                              NODE("Identity", ["v"], ["o"])], "body",
                             [helper.make_tensor_value_info("i", T.INT64, []),
                              helper.make_tensor_value_info("c", T.BOOL, []),
                              helper.make_tensor_value_info("v", T.FLOAT, None)],
                             [helper.make_tensor_value_info("c2", T.BOOL, []),
                              helper.make_tensor_value_info("v2", T.FLOAT, None),
                              helper.make_tensor_value_info("o", T.FLOAT, None)])
    for trips in (0, 1, 3):
        yield Case(f"Loop of {trips}", [NODE("Loop", ["n", "t", "x"], ["y", "z"], body=body)], ("y", "z"),
                   init={"n": np.int64(trips), "t": np.array(True)}, x="ab")


def assignments(case, full, drawn):
    """The sizes of the letters, edge cases first and then the ordinary ones."""
    seen = []
    groups = [case.letters] + [[letter] for letter in case.letters]
    if full:
        groups += list(map(list, itertools.combinations(case.letters, 2)))
    for group in groups:
        if full and len(group) == 2:
            every = itertools.product((0, 1), repeat=2)
        elif full or len(group) != 1:
            every = [(size,) * len(group) for size in (0, 1)]
        else:
            every = [(drawn.randrange(2),)]
        for values in every:
            sizes = {**case.sizes, **dict(zip(group, values))}
            if sizes not in seen:
                seen.append(sizes)
    return seen + [dict(case.sizes)]


class Sweep:
    def __init__(self, bin_dir, folder, drawn):
        self.drawn = drawn
        self.bin, self.dir = pathlib.Path(bin_dir).resolve(), pathlib.Path(folder)
        self.checked = self.refused = 0
        self.failures, self.different = [], {}

    def tool(self, name, *args):
        try:
            return subprocess.run([self.bin / name, *map(str, args)], capture_output=True, text=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess([], -99, "", f"more than {TIMEOUT} s")

    def fail(self, what, why):
        reason = next((reason for start, reason in DIFFERENT if what.startswith(start)), None)
        if reason and "crashed" not in why:
            self.different[reason] = self.different.get(reason, 0) + 1
            return
        self.failures.append(f"{what}: {why}")
        print("FAIL", self.failures[-1], flush=True)

    def compile(self, model):
        onnx.save(model, self.dir / "m.onnx")
        return self.tool("vm-compile", "--target", "cpu:x86-64-v3", self.dir / "m.onnx", "-o", self.dir / "m.ingot")

    def expected(self, model, feed):
        """What ONNX Runtime computes, or None where it refuses the model or the call."""
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        file = self.dir / "expected"
        file.unlink(missing_ok=True)
        child = os.fork()  # it aborts on some empty tensors
        if child == 0:
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                results = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feed)
                file.write_bytes(pickle.dumps(results))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return pickle.loads(file.read_bytes()) if file.exists() else None

    def check(self, case, sizes, what, model, made, expected=None):
        """Returns what ONNX Runtime computes, unless it is given already."""
        feed = case.feed(sizes)
        if expected is None:
            expected = self.expected(model, feed)
        self.compare(case, feed, what, made, expected)
        return expected

    def compare(self, case, feed, what, made, expected):
        if made.returncode < 0:
            return self.fail(what, f"vm-compile crashed or hung ({made.returncode}) {made.stderr.strip()[-200:]}")
        if made.returncode != 0:
            if expected is not None:
                self.fail(what, f"refused, while ONNX Runtime gives {[e.shape for e in expected]}: "
                                f"{made.stderr.strip()[-200:]}")
            else:
                self.refused += 1
            return
        np.savez(self.dir / "in.npz", **feed)
        ran = self.tool("vm-run", self.dir / "m.ingot", self.dir / "in.npz", "--output", f"@{self.dir / 'out.npz'}")
        if ran.returncode < 0:
            return self.fail(what, f"vm-run crashed or hung ({ran.returncode})")
        if expected is None:
            self.refused += 1
            return
        if ran.returncode != 0:
            return self.fail(what, f"vm-run refuses what ONNX Runtime runs: {ran.stderr.strip()[-200:]}")
        got = np.load(self.dir / "out.npz")
        self.checked += 1
        for name, value in zip(case.outputs, expected):
            value = np.asarray(value)
            if got[name].shape != value.shape or got[name].dtype != value.dtype:
                return self.fail(what, f"{name}: {got[name].dtype}{got[name].shape}, ONNX Runtime "
                                       f"{value.dtype}{value.shape}")
            if not np.allclose(got[name], value, rtol=1e-3, atol=1e-4, equal_nan=True):
                return self.fail(what, f"{name}: {got[name].ravel()[:4]}, ONNX Runtime {value.ravel()[:4]}")

    def run(self, case, full):
        every, expected = assignments(case, full, self.drawn), []
        for sizes in every:
            model = case.model(sizes, symbolic=False)
            what = f"{case.name} static " + " ".join(f"{k}={sizes[k]}" for k in case.letters)
            expected.append(self.check(case, sizes, what, model, self.compile(model)))
        if case.is_static_only or not case.letters:
            return
        model = case.model(None, symbolic=True)
        made = self.compile(model)
        for sizes, same in zip(every, expected):
            what = f"{case.name} symbolic " + " ".join(f"{k}={sizes[k]}" for k in case.letters)
            self.check(case, sizes, what, model, made, same)


def main():
    arguments = sys.argv[1:]
    full = "--full" in arguments
    only = arguments[arguments.index("--only") + 1] if "--only" in arguments else ""
    seed = int(arguments[arguments.index("--seed") + 1]) if "--seed" in arguments else commit_seed()
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        sweep = Sweep(arguments[0], folder, random.Random(seed))
        for case in cases(full):
            if only in case.name:
                sweep.run(case, full)
        for reason, count in sweep.different.items():
            print(f"{count} differ: {reason}")
        print(f"{sweep.checked} calls as ONNX Runtime's, {sweep.refused} that it refuses, "
              f"{len(sweep.failures)} failures")
        return 1 if sweep.failures else 0


if __name__ == "__main__":
    sys.exit(main())
