"""Networks that quantise on the way, node by node: each result is what exact arithmetic gives for the operands that the
compiled model itself gave.

usage: quantised_networks.py BIN_DIR [MODEL.onnx [DIM=SIZE ...]]    exits 77 (skipped) without numpy and onnx

The result of such a network says little of whether it was computed rightly. A float that lies between two integers is
rounded to one of them, so that one unit in its last place may become a step of 1/255 of the greatest number, and this
grows from layer to layer. A published encoder of eight layers moves by up to 0.9 of its greatest result when one ulp is
added to its embeddings, whoever evaluates it. Every step by itself is judged well, though: integers must be equal, and
floats within rounding. Each model is compiled twice: with every result given back, and with those alone that are
quantised, so that what lies between them is fused. Weights use all eight bits, with which products that saturate at 16
bits show."""
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    from onnx_nodes import Nodes
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

ROUNDING = 64 * 2.0 ** -23  # of the greatest element
OPSET = 18
FIRST_DEQUANTIZE = 19  # the earliest that onnx.reference knows
SIZES = ({"b": 1, "s": 1}, {"b": 1, "s": 8}, {"b": 3, "s": 33})
WIDTH, HEADS, HIDDEN, LAYERS = 64, 4, 200, 2


class Network(Nodes):
    """Layers of a transformer whose products are of 8-bit integers, as onnxruntime.quantization writes them."""

    def __init__(self, seed):
        super().__init__(seed)
        x = "x"
        for _ in range(LAYERS):
            x = self.add("Add", x, self.attention(x))
            x = self.add("Add", x, self.feed_forward(x))
        self.outputs = [x]

    def normalised(self, x):
        """A root mean square norm, whose weights make a few columns large, as trained ones do."""
        square = self.add("ReduceMean", self.add("Pow", x, self.constant(np.float32(2))), self.constant([-1]))
        root = self.add("Sqrt", self.add("Add", square, self.constant(np.float32(1e-6))))
        weights = np.exp(self.rng.standard_normal(WIDTH)).astype(np.float32)
        return self.add("Mul", self.add("Div", x, root), self.constant(weights))

    def quantised(self, x):
        return self.add("DynamicQuantizeLinear", x, outputs=3)

    def product(self, quantised, num_rows, num_columns):
        """x [.., rows] * w [rows, columns] of signed weights, or unsigned ones with a zero point."""
        number, scale, zero = quantised
        dtype = np.dtype(self.rng.choice(["i1", "u1"]))
        bounds = np.iinfo(dtype)
        weights = self.rng.integers(bounds.min, bounds.max + 1, (num_rows, num_columns)).astype(dtype)
        middle = np.asarray(0 if dtype == np.int8 else 131, dtype)
        total = self.add("MatMulInteger", number, self.constant(weights), zero, self.constant(middle))
        by = self.add("Mul", scale, self.constant(np.float32(1 / (74 * num_rows ** 0.5))))
        return self.add("Mul", self.add("Cast", total, to=TensorProto.FLOAT), by)

    def attention(self, x):
        quantised = self.quantised(self.normalised(x))
        heads = []
        for _ in range(3):
            row = self.add("Reshape", self.product(quantised, WIDTH, WIDTH), self.constant([0, 0, HEADS, -1]))
            heads.append(self.add("Transpose", row, perm=[0, 2, 3, 1] if len(heads) == 1 else [0, 2, 1, 3]))
        scores = self.add("MatMul", heads[0], heads[1])
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), heads[2])
        mixed = self.add("Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]), self.constant([0, 0, -1]))
        return self.product(self.quantised(mixed), WIDTH, WIDTH)

    def feed_forward(self, x):
        quantised = self.quantised(self.normalised(x))
        gate = self.add("Tanh", self.product(quantised, WIDTH, HIDDEN))
        gated = self.add("Mul", gate, self.product(quantised, WIDTH, HIDDEN))
        return self.product(self.quantised(gated), HIDDEN, WIDTH)

    def model(self):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", "s", WIDTH])
        graph = helper.make_graph(self.nodes, "network", [x], [onnx.ValueInfoProto(name=o) for o in self.outputs],
                                  self.initializers())
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def constants_of(graph):
    made = {node.output[0]: numpy_helper.to_array(node.attribute[0].t) for node in graph.node
            if node.op_type == "Constant"}
    return {**{i.name: numpy_helper.to_array(i) for i in graph.initializer}, **made}


def with_outputs(model, names):
    """The model with these results given back, and nothing else."""
    infos = {info.name: info for info in onnx.shape_inference.infer_shapes(model).graph.value_info}
    infos |= {info.name: info for info in model.graph.output}
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    del changed.graph.output[:]
    changed.graph.output.extend(infos.get(name, onnx.ValueInfoProto(name=name)) for name in names)
    return changed


def evaluated(node, operands):
    """The results of one node by the specification's formulas. ONNX Runtime is no judge: its products of 8-bit integers
    saturate on CPUs that have no instruction for them."""
    given = {name: value for name, value in zip(node.input, operands) if name}
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
              for name, value in given.items()]
    graph = helper.make_graph([node], "one", inputs, [onnx.ValueInfoProto(name=o) for o in node.output if o])
    opset = FIRST_DEQUANTIZE if node.op_type == "DequantizeLinear" else OPSET
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    with np.errstate(all="ignore"):
        return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, given)]


def problem_of(got, want):
    """None, or how far a result is from what its operands give."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype} {got.shape}, expected {want.dtype} {want.shape}"
    if got.dtype.kind != "f":
        return f"{(got != want).sum()} of {got.size} integers differ" if (got != want).any() else None
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    greatest = np.abs(want[np.isfinite(want)]).max(initial=0)
    with np.errstate(all="ignore"):
        distance = np.where(same, 0, np.abs(got.astype(np.float64) - want))
    if not distance.max(initial=0) <= ROUNDING * greatest:
        return f"apart by {distance.max():.3g}, the greatest is {greatest:.3g}"
    return None


def run(bin_dir, executable, directory, feeds):
    given, results = directory / "in.npz", directory / "out.npz"
    np.savez(given, **feeds)
    subprocess.run([bin_dir / "vm-run", executable, given, "--output", f"@{results}"], check=True, timeout=300)
    with np.load(results) as file:
        return dict(file)


def judge(model, feeds, got):
    """Each result that was given back beside what its operands make: where they were given back, too, those."""
    values = {**constants_of(model.graph), **feeds, **got}
    problems = []
    for node in model.graph.node:
        if node.op_type == "Constant":
            continue
        for name, want in zip(node.output, evaluated(node, [values.get(name) for name in node.input])):
            problem = problem_of(got[name], want) if name in got else None
            if problem:
                problems.append(f"{node.op_type} {name}: {problem}")
            values.setdefault(name, want)
    return problems


def check(bin_dir, label, model, calls):
    results = [o for node in model.graph.node if node.op_type != "Constant" for o in node.output if o]
    steps = [node for node in model.graph.node if node.op_type in ("DynamicQuantizeLinear", "QuantizeLinear")]
    borders = list(dict.fromkeys([name for node in steps for name in (node.input[0], *node.output) if name]
                                 + [output.name for output in model.graph.output]))
    assert steps, f"{label}: nothing is quantised"
    failed = 0
    for form, names in ("node by node", results), ("between quantisations", borders):
        with tempfile.TemporaryDirectory() as folder:
            directory = pathlib.Path(folder)
            path, executable = directory / "model.onnx", directory / "model.ingot"
            onnx.save(with_outputs(model, names), path)
            subprocess.run([bin_dir / "vm-compile", path, "-o", executable], check=True, timeout=300,
                           env={**os.environ, "INGOT_CACHE": "off"}, stderr=subprocess.DEVNULL)
            problems = [problem for feeds in calls
                        for problem in judge(model, feeds, run(bin_dir, executable, directory, feeds))]
        failed += bool(problems)
        print(f"{'FAIL' if problems else 'ok  '} {label}, {form}: {len(names)} results, {len(calls)} calls")
        for problem in problems[:10]:
            print("    " + problem)
    return failed


def feeds_of(model, sizes):
    """Small integers, masks of ones, normally distributed floats; 1 for dims that have no size."""
    feeds, rng = {}, np.random.default_rng(sum(sizes.values()))
    for info in model.graph.input:
        dims = [sizes.get(d.dim_param, 1) if d.dim_param else d.dim_value for d in info.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        if dtype.kind == "f":
            feeds[info.name] = rng.standard_normal(dims).astype(dtype)
        else:
            feeds[info.name] = (np.ones(dims) if "mask" in info.name else rng.integers(0, 32, dims)).astype(dtype)
    return feeds


def main():
    bin_dir = pathlib.Path(sys.argv[1]).resolve()
    if len(sys.argv) > 2:
        model = onnx.load(sys.argv[2])
        sizes = {dim: int(size) for dim, size in (argument.split("=") for argument in sys.argv[3:])}
        return check(bin_dir, pathlib.Path(sys.argv[2]).name, model, [feeds_of(model, sizes)])
    model = Network(seed=0).model()
    return check(bin_dir, "encoder of two layers", model, [feeds_of(model, sizes) for sizes in SIZES])


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
