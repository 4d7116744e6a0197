"""Operators that sum windows of an axis, of axes so long that a matrix [in, out] would need tens of GB: they are
compiled and run in memory that is in proportion to the axes, and only the windows that hold an infinity meet it.

usage: long_windows.py BIN_DIR    exits 77 (skipped) without numpy and onnx"""
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
MEMORY = 1 << 30
IN, OUT = 200_000, 100_003
PLACE = 77_777  # of the infinity

ADAPTIVE = """from tvm.script import relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 2, {n}), dtype="float32")):
        R.func_attr({{"global_symbol": "main"}})
        with R.dataflow():
            y = R.nn.adaptive_avg_pool1d(x, output_size=[{out}])
            R.output(y)
        return y
"""


def limit_memory():
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def resize(length):
    graph = helper.make_graph(
        [helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear", antialias=1, axes=[2])], "resize",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, length])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, OUT])],
        [numpy_helper.from_array(np.array([OUT]), "sizes")])
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 19)])


def triangles(x):
    """The antialiased resize: weights of a triangle around each place, as wide as an element of the result."""
    scale = OUT / IN
    places = (np.arange(OUT) + 0.5) / scale - 0.5
    first = np.floor(places - 1 / scale).astype(np.int64) + 1
    sums, total = np.zeros([2, OUT]), np.zeros(OUT)
    for tap in range(6):
        weights = np.maximum(1 - np.abs(first + tap - places) * scale, 0)
        elements = x[0, :, np.clip(first + tap, 0, IN - 1)].T.astype(np.float64)
        sums += np.where(weights > 0, weights * elements, 0)
        total += weights
    return (sums / total)[None]


def means(x):
    sums = np.pad(np.cumsum(x[0], axis=1, dtype=np.float64), ((0, 0), (1, 0)))
    i = np.arange(OUT)
    begin, end = i * IN // OUT, -(-(i + 1) * IN // OUT)
    return ((sums[:, end] - sums[:, begin]) / (end - begin))[None]


class LongWindows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.x = np.random.default_rng(5).uniform(-1, 1, [1, 2, IN]).astype(np.float32)

    def tool(self, *command):
        ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120,
                             preexec_fn=limit_memory)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def run_with(self, x):
        np.savez(self.folder / "in.npz", x=x)
        self.tool(BIN / "vm-run", self.folder / "model.ingot", self.folder / "in.npz", "--output",
                  f"@{self.folder / 'out.npz'}")
        return next(iter(np.load(self.folder / "out.npz").values()))

    def check(self, model, expected, reach):
        """reach: how many windows at most hold an element."""
        self.tool(BIN / "vm-compile", model, "-o", self.folder / "model.ingot")
        finite = self.run_with(self.x)
        np.testing.assert_allclose(finite, expected(self.x), rtol=1e-5, atol=1e-5)
        self.x[0, 1, PLACE] = np.inf
        spread = self.run_with(self.x)
        changed = ~np.isfinite(spread)
        self.assertTrue(0 < changed.sum() <= reach, changed.sum())
        np.testing.assert_array_equal(spread[~changed], finite[~changed])

    def test_adaptive_means(self):
        (self.folder / "module.py").write_text(ADAPTIVE.format(n=IN, out=OUT))
        self.check(self.folder / "module.py", means, 2)

    def test_antialiased_resize(self):
        for length in (IN, "length"):
            with self.subTest(length):
                self.x[0, 1, PLACE] = 0.5
                onnx.save(resize(length), self.folder / "model.onnx")
                self.check(self.folder / "model.onnx", triangles, 2)

    def test_a_large_matrix_of_the_mel_scale_is_not_made_while_compiling(self):
        values = [np.int64(1 << 16), np.int64(1 << 16), np.int64(48000), np.float32(0), np.float32(24000)]
        names = [f"c{i}" for i in range(5)]
        graph = helper.make_graph([helper.make_node("MelWeightMatrix", names, ["y"])], "mel", [],
                                  [onnx.ValueInfoProto(name="y")],
                                  [numpy_helper.from_array(np.array(v), n) for v, n in zip(values, names)])
        onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 20)]),
                  self.folder / "model.onnx")
        self.tool(BIN / "vm-compile", self.folder / "model.onnx", "-o", self.folder / "model.ingot")


if __name__ == "__main__":
    unittest.main()
