"""Networks over volumes beside ONNX Runtime: convolutions, pools, sums and concatenations drawn from a seed, with any
kernel, stride, dilation, padding and group along each of the three axes, of static sizes and of free ones, which are
called with several, for CPUs with AVX2 and with AVX-512.

usage: volumes.py BIN_DIR [SEED ...]    seeds left out: six that are always the same, and two from the commit's hash;
exits 77 (skipped) without numpy, onnx and onnxruntime"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent / "fuzz"))
try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    from graph_fuzz import commit_seed
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv[1]).resolve()
SEEDS = [int(seed) for seed in sys.argv[2:]] or [*range(6), commit_seed(), commit_seed() + 1]
FREE = ["batch", "frames", "height", "width"]


class Network:
    """A chain of nodes over values whose sizes are followed, so that no window is longer than its padded data."""
    def __init__(self, rng):
        self.rng, self.nodes, self.weights = rng, [], []
        self.channels = int(rng.choice([1, 3, 16, 20, 32]))
        self.sizes = [int(rng.integers(1, 3)), *(int(rng.integers(low, 12)) for low in (1, 3, 3))]
        self.shape = [self.sizes[0], self.channels, *self.sizes[1:]]
        self.last, self.dims = "x", list(self.shape)

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        values = self.rng.standard_normal(shape) / max(1, np.prod(shape[1:]))**0.5
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def add(self, op, *inputs, **attributes):
        name = f"y{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [self.last, *inputs], [name], **attributes))
        self.last = name

    def window(self, most):
        """A window along each axis: taps, strides, padding and dilation, and how long the result is."""
        taps, strides, dilations, before, after, out = [], [], [], [], [], []
        for size in self.dims[2:]:
            tap, dilation = int(self.rng.integers(1, most + 1)), int(self.rng.choice([1, 1, 1, 2, 4]))
            pads = [int(self.rng.integers(0, (tap - 1) * dilation // 2 + 1)) for _ in range(2)]
            reach = (tap - 1) * dilation + 1
            if size + sum(pads) < reach:
                tap, dilation, pads, reach = 1, 1, [0, 0], 1
            stride = int(self.rng.choice([1, 1, 2]))
            taps.append(tap), strides.append(stride), dilations.append(dilation)
            before.append(pads[0]), after.append(pads[1])
            out.append((size + sum(pads) - reach) // stride + 1)
        return dict(kernel_shape=taps, strides=strides, dilations=dilations, pads=before + after), out

    def convolution(self):
        attributes, out = self.window(3)
        channels = self.dims[1]
        groups = int(self.rng.choice([g for g in (1, 1, 2, 4, channels) if channels % g == 0]))
        outputs = channels if groups == channels else groups * int(self.rng.choice([1, 5, 16, 24, 32]))
        self.add("Conv", self.weight(outputs, channels // groups, *attributes["kernel_shape"]), self.weight(outputs),
                 group=groups, **attributes)
        self.dims = [self.dims[0], outputs, *out]
        if self.rng.random() < 0.7:
            self.add("Relu")

    def pool(self):
        attributes, out = self.window(2)
        kind = str(self.rng.choice(["MaxPool", "AveragePool"]))
        if kind == "AveragePool":
            del attributes["dilations"]
            attributes["pads"] = [0] * 6
            attributes["kernel_shape"] = [min(tap, size) for tap, size in zip(attributes["kernel_shape"], self.dims[2:])]
            out = [(size - tap) // stride + 1
                   for size, tap, stride in zip(self.dims[2:], attributes["kernel_shape"], attributes["strides"])]
        self.add(kind, **attributes)
        self.dims[2:] = out

    def branch(self):
        """A second convolution of one tap of the same value, added or put beside it."""
        before, channels = self.last, self.dims[1]
        self.add("Conv", self.weight(channels, channels, 1, 1, 1))
        if self.rng.random() < 0.5:
            self.add("Add", before)
        else:
            self.add("Concat", before, axis=1)
            self.dims[1] *= 2

    def model(self, free):
        for _ in range(int(self.rng.integers(2, 5))):
            kind = self.rng.random()
            self.convolution() if kind < 0.6 else self.pool() if kind < 0.8 else self.branch()
        if self.rng.random() < 0.5:
            self.add("GlobalAveragePool")
        shape = [FREE[0], self.channels, *FREE[1:]] if free else self.shape
        graph = helper.make_graph(self.nodes, "volumes", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None)], self.weights)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


class Volumes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def tool(self, *command):
        ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def check(self, seed, free, target):
        rng = np.random.default_rng(seed)
        network = Network(rng)
        onnx.save(network.model(free), self.folder / "model.onnx")
        self.tool(BIN / "vm-compile", self.folder / "model.onnx", "-o", self.folder / "model.ingot", "--target", target)
        peer = onnxruntime.InferenceSession(str(self.folder / "model.onnx"), providers=["CPUExecutionProvider"])
        for more in (0, 1, 5) if free else (0, ):
            shape = [size if axis == 1 else size + more for axis, size in enumerate(network.shape)]
            x = rng.standard_normal(shape).astype(np.float32)
            np.savez(self.folder / "in.npz", x=x)
            self.tool(BIN / "vm-run", self.folder / "model.ingot", self.folder / "in.npz", "--output",
                      f"@{self.folder / 'out.npz'}")
            with np.load(self.folder / "out.npz") as results:
                got = results[network.last]
            want = peer.run(None, {"x": x})[0]
            self.assertEqual(got.shape, want.shape)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * max(1, np.abs(want).max(initial=0)))

    def test_networks(self):
        with open("/proc/cpuinfo") as cpu:
            targets = ["cpu:x86-64-v3"] + (["cpu:x86-64-v4"] if "avx512vl" in cpu.read() else [])
        for seed in SEEDS:
            for free in (False, True):
                for target in targets:
                    with self.subTest(seed=seed, free=free, target=target):
                        self.check(seed, free, target)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
