"""Random chains of convolutions, pools and element-wise operators over images whose number, height and width (or height
alone) only the call knows, at sizes from 1 to some tiles of columns and their rests, beside ONNX Runtime; and networks of
pictures that are computed in one way where these are small and in another where they are large (split_by_size), on both
sides of the limit. Calls for which a window does not fit into the padded image are left out: ONNX Runtime rounds such an
extent towards zero.

usage: free_images.py BIN_DIR [--seed S] [--count N] [--target SPEC]    exits 77 (skipped) without numpy, onnx and
onnxruntime; INGOT_LONG_TESTS=1 makes --count 400"""
import argparse, json, os, pathlib, sys, tempfile

from tools import Tools

try:
    import numpy as np, onnx, onnxruntime
    from onnx import helper, numpy_helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

TOLERANCE = 1e-4


class Chain:
    """A model, and the windows (kernel, stride, dilation, padding before and behind) of its axes in order."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.windows = [], [], []
        self.channels = self.pick(1, 3, 8, 16, 17, 32, 48)
        self.width = int(self.rng.integers(8, 60)) if self.rng.random() < 0.2 else None
        dims = ["n", self.channels, "h", self.width or "w"]
        value = "x"
        for i in range(int(self.rng.integers(1, 5))):
            value = self.follow(self.window(value, f"v{i}"))
        graph = helper.make_graph(self.nodes, "chain", [helper.make_tensor_value_info("x", 1, dims)],
                                  [helper.make_tensor_value_info(value, 1, None)], self.weights)
        self.model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])

    def pick(self, *values):
        return values[int(self.rng.integers(len(values)))]

    def window(self, value, name):
        kind = self.pick("Conv", "Conv", "Depthwise", "Grouped", "Pointwise", "MaxPool", "AveragePool")
        pair = lambda low, high: [int(v) for v in self.rng.integers(low, high, 2)]
        kernel, strides, dilations = pair(1, 5), pair(1, 4), pair(1, 3)
        if kind == "Pointwise":
            kernel = strides = dilations = [1, 1]
        if kind.endswith("Pool"):
            dilations = [1, 1]
        pads = [int(self.rng.integers(0, (kernel[i % 2] - 1) * dilations[i % 2] + 1)) for i in range(4)]
        self.windows.append([(kernel[i], strides[i], dilations[i], pads[i], pads[2 + i]) for i in range(2)])
        attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads}
        if kind.endswith("Pool"):
            self.nodes.append(helper.make_node(kind, [value], [name], **attributes))
            return name
        groups = {"Depthwise": self.channels, "Grouped": 4 if self.channels % 4 == 0 else 1}.get(kind, 1)
        outputs = self.channels if groups > 1 else self.pick(8, 16, 20, 32, 64)
        dims = [outputs, self.channels // groups, *kernel]
        self.weight(name + "_w", self.rng.standard_normal(dims) / np.sqrt(np.prod(dims[1:])))
        inputs = [value, name + "_w"]
        if self.rng.random() < 0.7:
            self.weight(name + "_b", self.rng.standard_normal(outputs))
            inputs.append(name + "_b")
        self.nodes.append(helper.make_node("Conv", inputs, [name], dilations=dilations, group=groups, **attributes))
        self.channels = outputs
        return name

    def weight(self, name, values):
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))

    def follow(self, value):
        if self.rng.random() < 0.6:
            self.nodes.append(helper.make_node(self.pick("Relu", "Sigmoid", "HardSwish"), [value], [value + "_a"]))
            value += "_a"
        if self.rng.random() < 0.3:
            self.nodes.append(helper.make_node("Add", [value, value], [value + "_s"]))
            value += "_s"
        return value

    def fits(self, extents):
        for axes in self.windows:
            for i, (kernel, stride, dilation, before, behind) in enumerate(axes):
                room = extents[i] + before + behind - ((kernel - 1) * dilation + 1)
                if room < 0:
                    return False
                extents[i] = room // stride + 1
        return True

    def draw(self, images):
        dims = [int(self.rng.integers(1, 45)), self.width or int(self.rng.integers(1, 70))]
        channels = self.model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
        if not self.fits(list(dims)):
            return None
        return self.rng.standard_normal([images, channels, *dims]).astype(np.float32)


class Network(Chain):
    """Convolutions of 3 x 3 taps behind one with a large stride: an image has few tiles or many."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.windows, self.width = [], [], [], None
        self.channels = self.pick(1, 3, 4)
        dims = ["n", self.channels, "h", "w"]
        stride = self.pick(12, 14, 16)
        value = self.convolution("x", "stem", self.pick(16, 32, 40), stride, stride, 0)
        for i in range(int(self.rng.integers(1, 4))):
            value = self.convolution(self.follow(value), f"v{i}", self.pick(16, 24, 48), 3, 1, 1)
        results = [self.pick(self.chosen, self.repeated, lambda last: last)(value)]
        # What is given twice, what others read, and the input: none of it may be written in place.
        results += [name for name in ("v0", value, "x") if self.rng.random() < 0.4 and name not in results]
        if self.rng.random() < 0.4:
            self.nodes.append(helper.make_node("Identity", [results[0]], ["again"]))
            results.append("again")
        graph = helper.make_graph(self.nodes, "network", [helper.make_tensor_value_info("x", 1, dims)],
                                  [onnx.ValueInfoProto(name=name) for name in results], self.weights)
        self.model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])

    def same_size(self, value, name):
        """A convolution of as many channels, whose windows all fit, as a list of nodes."""
        self.weight(name + "_w", self.rng.standard_normal([self.channels] * 2 + [3, 3]) / (3 * np.sqrt(self.channels)))
        return [helper.make_node("Conv", [value, name + "_w"], [name], pads=[1] * 4)]

    def chosen(self, value):
        """By the data, in a branch of each form."""
        self.weights.append(numpy_helper.from_array(np.float32(0), "zero"))
        self.nodes += [helper.make_node("ReduceSum", [value], ["sum"], keepdims=0),
                       helper.make_node("Greater", ["sum", "zero"], ["is_positive"])]
        branches = {"then_branch": self.same_size(value, "then"),
                    "else_branch": [helper.make_node("Neg", [value], ["otherwise"])]}
        graphs = {name: helper.make_graph(nodes, name, [], [onnx.ValueInfoProto(name=nodes[-1].output[0])])
                  for name, nodes in branches.items()}
        self.nodes.append(helper.make_node("If", ["is_positive"], ["y"], **graphs))
        return "y"

    def repeated(self, value):
        self.weights += [numpy_helper.from_array(np.int64(2), "trips"), numpy_helper.from_array(np.bool_(True), "on")]
        body = self.same_size("state", "next") + [helper.make_node("Identity", ["goes_on"], ["still"])]
        info = helper.make_tensor_value_info
        graph = helper.make_graph(body, "body", [info("trip", 7, []), info("goes_on", 9, []), info("state", 1, None)],
                                  [onnx.ValueInfoProto(name=name) for name in ("still", "next")])
        self.nodes.append(helper.make_node("Loop", ["trips", "on", value], ["y"], body=graph))
        return "y"

    def convolution(self, value, name, outputs, kernel, stride, pad):
        self.windows.append([(kernel, stride, 1, pad, pad)] * 2)
        self.weight(name + "_w", self.rng.standard_normal([outputs, self.channels, kernel, kernel]) /
                    (kernel * np.sqrt(self.channels)))
        self.nodes.append(helper.make_node("Conv", [value, name + "_w"], [name], kernel_shape=[kernel] * 2,
                                           strides=[stride] * 2, pads=[pad] * 4))
        self.channels = outputs
        return name

    def draw(self, images):
        dims = self.pick((112, 112), (113, 112), (16, 784), (16, 785), *self.rng.integers(16, 300, (4, 2)).tolist())
        channels = self.model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
        return self.rng.standard_normal([images, channels, *dims]).astype(np.float32)


def problem_of_form(tool, folder):
    """A network has two ways and one memory plan, which says all that a call takes."""
    after = tool("vm-compile", folder / "model.onnx", "-o", folder / "again.ingot", "--print-after", "split_by_size")
    if "main_small" not in after.stderr:
        return "one way to compute small and large pictures"
    functions = json.loads(tool("vm-inspect", folder / "again.ingot", "--json", "-").stdout)["functions"]
    if any(node.op_type == "Loop" for node in onnx.load(folder / "model.onnx").graph.node):  # its body is a function
        return None
    if len(functions) != 1 or functions[0]["memory"]["calls"]:
        return "several functions, whose memory no peak counts"


def problem_of(tool, folder, chain, target):
    """How many calls were compared, and what is wrong with one."""
    onnx.save(chain.model, folder / "model.onnx")
    made = tool("vm-compile", folder / "model.onnx", "-o", folder / "model.ingot",
                *(["--target", target] if target else []))
    if made.returncode != 0:
        return 0, f"vm-compile exit {made.returncode}: {made.stderr}"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(chain.model.SerializeToString(), options, ["CPUExecutionProvider"])
    compared = 0
    for images in (1, 1, 1, 2, 0):
        x = chain.draw(images)
        if x is None:
            continue
        np.save(folder / "x.npy", x)
        ran = tool("vm-run", folder / "model.ingot", folder / "x.npy", "--output", f"@{folder / 'y.npz'}")
        if ran.returncode != 0:
            return compared, f"{x.shape}: vm-run exit {ran.returncode}: {ran.stderr}"
        results = np.load(folder / "y.npz")
        for output, want in zip(chain.model.graph.output, session.run(None, {"x": x})):
            got = results[output.name]
            if got.shape != want.shape:
                return compared, f"{x.shape}, {output.name}: shape {got.shape}, expected {want.shape}"
            error = np.abs(got - want).max(initial=0)
            if not error <= TOLERANCE * max(1.0, np.abs(want).max(initial=0)):
                return compared, f"{x.shape}, {output.name}: error {error}"
        compared += 1
    return compared, None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=400 if os.environ.get("INGOT_LONG_TESTS") else 24)
    parser.add_argument("--target")
    options = parser.parse_args()
    tool, failures, calls = Tools(options.bin_dir, timeout=120), 0, 0
    with tempfile.TemporaryDirectory() as directory:
        for seed in range(options.seed, options.seed + options.count):
            kind = Network if seed % 4 == 0 else Chain
            compared, problem = problem_of(tool, pathlib.Path(directory), kind(seed), options.target)
            if kind is Network and problem is None:
                problem = problem_of_form(tool, pathlib.Path(directory))
            calls += compared
            failures += problem is not None
            if problem is not None:
                print(f"seed {seed}: {problem}", flush=True)
    print(f"{options.count} chains, {calls} calls compared, {failures} failures")
    return 1 if failures or calls < options.count else 0


if __name__ == "__main__":
    sys.exit(main())
