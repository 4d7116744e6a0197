"""Axes, steps and lengths that are plain inputs, which only a call knows: models of random operators, ranks and dims,
half of them symbolic, beside ONNX Runtime for several axes each, and calls that have to be refused: axes out of range,
equal axes, a step of 0, an axis to squeeze that is not 1.

usage: runtime_axes.py BIN_DIR [--seed S] [--count N]    exits 77 (skipped) without numpy, onnx and onnxruntime"""
import argparse, os, pathlib, random, subprocess, sys, tempfile

try:
    import numpy as np, onnx, onnxruntime
    from onnx import helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

os.environ["INGOT_CACHE"] = "off"
onnxruntime.set_default_logger_severity(4)
REFUSED = 3, 8  # exit codes of vm-compile: bad input, and what is not supported
REFUSALS = 2, 3  # exit codes of vm-run: a negative dim, and other bad input
REDUCTIONS = ["ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
              "ReduceSum", "ReduceSumSquare"]
I64 = np.int64


class Case:
    """A model of one node, the calls that it must compute, and those that it must refuse."""

    def __init__(self, draw, op):
        self.draw, self.op, self.attributes, self.elements = draw, op, {}, {}
        self.rank = draw.randint(1, 4)
        self.dims = [draw.randint(1, 5) for _ in range(self.rank)]
        self.calls, self.refused = [], []
        self.bad = lambda count, rank: [[rank] * count, [-rank - 1] * count] + ([[0] * count] if count > 1 else [])
        getattr(self, "make_" + ("reduction" if op in REDUCTIONS else op.lower()))()

    def x(self, dims=None):
        values = np.random.default_rng(self.draw.randrange(1 << 30)).standard_normal(dims or self.dims)
        return values.astype(np.float32)

    def some_axes(self, count, rank, ordered):
        axes = self.draw.sample(range(rank), count)
        axes = axes if ordered or self.draw.random() < 0.5 else sorted(axes)
        return [axis - rank if self.draw.random() < 0.3 else axis for axis in axes]

    def make_reduction(self):
        count = self.draw.randint(1, self.rank)
        self.attributes = {"keepdims": self.draw.randint(0, 1), "noop_with_empty_axes": self.draw.randint(0, 1)}
        is_free = self.attributes["keepdims"] == 1 and self.draw.random() < 0.4  # the number of axes is an input's, too
        self.elements = {"axes": (np.int64, [None if is_free else count])}
        for _ in range(4):
            number = self.draw.randint(0, self.rank) if is_free else count
            self.calls.append({"x": self.x(), "axes": np.array(self.some_axes(number, self.rank, False), I64)})
        self.refused = [{"x": self.x(), "axes": np.array(bad, I64)} for bad in self.bad(count, self.rank)]

    def make_cumsum(self):
        self.attributes = {"exclusive": self.draw.randint(0, 1), "reverse": self.draw.randint(0, 1)}
        kind, dims = self.draw.choice([np.int32, np.int64]), self.draw.choice([[], [1]])
        self.elements = {"axes": (kind, dims)}
        for axis in range(-self.rank, self.rank):
            self.calls.append({"x": self.x(), "axes": np.full(dims, axis, kind)})
        self.refused = [{"x": self.x(), "axes": np.full(dims, axis, kind)} for axis in (self.rank, -self.rank - 1)]

    def make_squeeze(self):
        ones = self.draw.randint(1, self.rank)
        self.dims = [1] * ones + [self.draw.randint(2, 5) for _ in range(self.rank - ones)]
        self.draw.shuffle(self.dims)
        count = self.draw.randint(1, ones)
        self.elements = {"axes": (np.int64, [count])}
        places = [axis for axis, dim in enumerate(self.dims) if dim == 1]
        for _ in range(3):
            axes = [axis - self.rank * self.draw.randint(0, 1) for axis in self.draw.sample(places, count)]
            self.calls.append({"x": self.x(), "axes": np.array(axes, I64)})
        others = [axis for axis, dim in enumerate(self.dims) if dim != 1]
        bad = self.bad(count, self.rank) + ([others[:1] + places[:count - 1]] if others else [])
        self.refused = [{"x": self.x(), "axes": np.array(axes, I64)} for axes in bad]

    def make_unsqueeze(self):
        count = self.draw.randint(1, 2)
        self.elements = {"axes": (np.int64, [count])}
        whole = self.rank + count
        for _ in range(4):
            self.calls.append({"x": self.x(), "axes": np.array(self.some_axes(count, whole, False), I64)})
        self.refused = [{"x": self.x(), "axes": np.array(axes, I64)} for axes in self.bad(count, whole)]

    def make_pad(self):
        count = self.draw.randint(1, self.rank)
        self.attributes = {"mode": self.draw.choice(["constant", "edge"])}
        self.elements = {"pads": (np.int64, [2 * count]), "value": (np.float32, []), "axes": (np.int64, [count])}
        pads = lambda: np.array([self.draw.randint(0, 3) for _ in range(2 * count)], I64)
        for _ in range(4):
            self.calls.append({"x": self.x(), "pads": pads(), "value": np.array(self.draw.random(), np.float32),
                               "axes": np.array(self.some_axes(count, self.rank, True), I64)})
        self.refused = [{"x": self.x(), "pads": pads(), "value": np.array(0, np.float32), "axes": np.array(axes, I64)}
                        for axes in self.bad(count, self.rank)]

    def make_slice(self):
        self.dims = [self.draw.randint(0, 7) for _ in range(self.rank)]
        count = self.draw.randint(1, self.rank)
        names = ["starts", "ends"] + ["axes"] * self.draw.randint(0, 1)
        names += ["steps"] if names[-1] != "axes" or self.draw.random() < 0.7 else []
        self.elements = {name: (np.int64, [count]) for name in names}
        if "axes" not in names:
            self.elements = {"starts": self.elements["starts"], "ends": self.elements["ends"], "": None,
                             "steps": self.elements["steps"]}
        far = [-(1 << 63), -(1 << 31), (1 << 31) - 1, (1 << 63) - 1]
        place = lambda: self.draw.choice(far) if self.draw.random() < 0.2 else self.draw.randint(-9, 9)
        step = lambda: (self.draw.choice(far[1:]) if self.draw.random() < 0.1 else
                        self.draw.choice([-3, -2, -1, -1, 1, 1, 2, 3, 8]))

        def call(axes=None, steps=None):
            values = {"x": self.x(), "starts": [place() for _ in range(count)], "ends": [place() for _ in range(count)],
                      "axes": axes or self.some_axes(count, self.rank, True),
                      "steps": steps or [step() for _ in range(count)]}
            if steps is None:  # backwards, the largest end is the last element, which ONNX Runtime takes for no end
                values["ends"] = [min(end, 99) if by < 0 else end for end, by in zip(values["ends"], values["steps"])]
            return {k: np.array(v, I64) if k != "x" else v for k, v in values.items() if k in ["x", *names]}

        self.calls = [call() for _ in range(8)]
        if "axes" in names:
            self.refused = [call(axes=axes) for axes in self.bad(count, self.rank)]
        if "steps" in names:
            self.refused.append(call(steps=[0] * count))

    def make_dft(self):
        self.rank = self.draw.randint(3, 4)
        self.dims = [self.draw.randint(2, 6) for _ in range(self.rank - 1)] + [2]
        self.elements = {"": None, "axes": (np.int64, [])}
        for axis in [*range(self.rank - 1), -2]:
            self.calls.append({"x": self.x(), "axes": np.array(axis, I64)})
        self.refused = [{"x": self.x(), "axes": np.array(axis, I64)} for axis in (-1, self.rank - 1, self.rank)]

    def make_hannwindow(self):
        self.attributes = {"periodic": self.draw.randint(0, 1)}
        self.elements, self.dims, self.rank = {}, [], 0
        self.calls = [{"x": np.array(size, I64)} for size in (self.draw.randint(2, 9), 16, 400)]
        self.refused = [{"x": np.array(-1, I64)}]

    def model(self, is_symbolic):
        dims = [f"d{i}" if is_symbolic and self.draw.random() < 0.7 else dim for i, dim in enumerate(self.dims)]
        if self.op == "DFT":
            dims = self.dims  # a transform has a known length
        kind = helper.np_dtype_to_tensor_dtype(self.calls[0]["x"].dtype)
        inputs = [helper.make_tensor_value_info("x", kind, dims)]
        for name, what in self.elements.items():
            if what is not None:
                inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(what[0])),
                                                            what[1]))
        node = helper.make_node(self.op, ["x", *self.elements], ["y"], **self.attributes)
        graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def check(tools, directory, draw, op):
    """What differs in one random model; an empty string if nothing does."""
    case = Case(draw, op)
    is_symbolic = draw.random() < 0.5
    model = case.model(is_symbolic)
    what = f"{op} of {case.dims}{' (symbolic)' if is_symbolic else ''}, {case.attributes}"
    onnx.save(model, directory / "m.onnx")
    made = subprocess.run([tools / "vm-compile", directory / "m.onnx", "-O1", "-o", directory / "m.ingot"],
                          capture_output=True, text=True)
    if made.returncode != 0:
        return f"{what}: {made.stderr}"
    session = onnxruntime.InferenceSession(model.SerializeToString())

    def run(values):
        np.savez(directory / "in.npz", **values)
        return subprocess.run([tools / "vm-run", directory / "m.ingot", directory / "in.npz", "--output",
                               f"@{directory / 'out.npz'}"], capture_output=True, text=True)

    for values in case.calls:
        wanted = session.run(None, values)[0]
        ran = run(values)
        given = {k: v.tolist() for k, v in values.items() if k != "x"}
        if ran.returncode != 0:
            return f"{what}: {given}: {ran.stderr}"
        (got,) = np.load(directory / "out.npz").values()
        if got.shape != wanted.shape or not np.allclose(got, wanted, 1e-4, 1e-4, equal_nan=True):
            return f"{what}: {given}: {got.shape} {got.ravel()[:8]}, wanted {wanted.shape} {wanted.ravel()[:8]}"
    for values in case.refused:
        ran = run(values)
        if ran.returncode not in REFUSALS:
            return f"{what}: not refused: { {k: v.tolist() for k, v in values.items() if k != 'x'} }"
    return ""


def from_shapes(tools):
    """How many of the models differ from ONNX Runtime whose axes, steps, sizes or data are lengths of other inputs."""
    nodes = {"a size": [helper.make_node("Squeeze", ["shape"], ["k"]), helper.make_node("HannWindow", ["k"], ["y"])],
             "axes": [helper.make_node("ReduceSum", ["x", "shape"], ["y"], keepdims=0)],
             "steps": [helper.make_node("Slice", ["x", "s", "e", "s", "shape"], ["y"])],
             "data": [helper.make_node("Unsqueeze", ["shape", "a"], ["u"]),
                      helper.make_node("Add", ["u", "shape"], ["v"]),
                      helper.make_node("Cast", ["v"], ["y"], to=onnx.TensorProto.FLOAT)]}
    tensor = lambda name, dims, kind=onnx.TensorProto.FLOAT: helper.make_tensor_value_info(name, kind, dims)
    numbers = [helper.make_tensor(name, onnx.TensorProto.INT64, [1], [value]) for name, value in [("s", 0), ("e", 9)]]
    found = 0
    for name, own in nodes.items():
        inputs = [tensor("x", ["n", "m"]), tensor("z", ["k"])]
        inputs += [tensor("a", [1], onnx.TensorProto.INT64)] if name == "data" else []
        graph = helper.make_graph([helper.make_node("Shape", ["z"], ["shape"]), *own], "g", inputs, [tensor("y", None)],
                                  numbers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        values = {"x": np.arange(15, dtype=np.float32).reshape(5, 3), "z": np.zeros(1 if name == "axes" else 2, np.float32)}
        values |= {"a": np.array([-1], I64)} if name == "data" else {}
        wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, values)[0]
        with tempfile.TemporaryDirectory() as directory:
            model_file, file, inputs, out = (pathlib.Path(directory, n) for n in ("m.onnx", "m.ingot", "i.npz", "o.npz"))
            onnx.save(model, model_file)
            np.savez(inputs, **values)
            ran = subprocess.run([tools / "vm-compile", model_file, "-O1", "-o", file], capture_output=True, text=True)
            if ran.returncode == 0:
                ran = subprocess.run([tools / "vm-run", file, inputs, "--output", f"@{out}"], capture_output=True, text=True)
            if ran.returncode != 0 or not np.allclose(np.load(out)["y"], wanted, 1e-5, 1e-6):
                found += 1
                print(f"FAILED: {name} out of a shape: {ran.stderr}")
    return found


def hostile(tools):
    """How many of the models are not refused whose axes are more than any rank has, or in too many ways."""
    found = 0
    for op, dims, axes in [("Unsqueeze", [], [1000]), ("Unsqueeze", [], [10_000_000]), ("Unsqueeze", [2, 3], [7]),
                           ("Slice", [2] * 8, [8]), ("ReduceSum", [2, 3], [3]), ("Squeeze", [1, 2], ["k"])]:
        tensor = lambda name, dims, kind=onnx.TensorProto.INT64: helper.make_tensor_value_info(name, kind, dims)
        names = ["x", "s", "e", "axes"] if op == "Slice" else ["x", "axes"]
        for outputs in ["y"], []:
            inputs = [tensor("x", dims, onnx.TensorProto.FLOAT), *(tensor(name, axes) for name in names[1:])]
            results = [tensor("x" if not outputs else "y", None, onnx.TensorProto.FLOAT)]
            graph = helper.make_graph([helper.make_node(op, names, outputs)], "g", inputs, results)
            with tempfile.TemporaryDirectory() as directory:
                path = pathlib.Path(directory, "m.onnx")
                onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
                made = subprocess.run([tools / "vm-compile", path, "--check"], capture_output=True, text=True)
            if made.returncode not in REFUSED:
                found += 1
                print(f"FAILED: {op} of {dims} with axes {axes}, {outputs}: exit {made.returncode}: {made.stderr}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=400 if os.environ.get("INGOT_LONG_TESTS") else 32)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    kinds = ["Slice", "Slice", "Pad", "Squeeze", "Unsqueeze", "CumSum", "DFT", "HannWindow"]
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        for i in range(arguments.count):
            op = draw.choice(REDUCTIONS) if i % 3 == 0 else kinds[i % len(kinds)]
            found = check(arguments.bin.resolve(), pathlib.Path(directory), draw, op)
            if found:
                failed += 1
                print("FAILED:", found)
    failed += hostile(arguments.bin.resolve()) + from_shapes(arguments.bin.resolve())
    print(f"{arguments.count - failed} of {arguments.count} models right")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
