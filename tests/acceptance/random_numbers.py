"""ONNX's random operators: the bits of the generator, distributions, seeds, and that calls repeat.

usage: random_numbers.py BIN_DIR    exits 77 (skipped) without numpy and onnx"""
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
UNSUPPORTED = 8
COUNT = 200000


def mix(x):
    """The generator's mixing of 32-bit words (compiler/importer/ops/random.cc)."""
    x = x.astype(np.uint32)
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7feb352d)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846ca68b)
    return x ^ (x >> np.uint32(16))


def uniform(seed, count):
    """What a node with this seed draws from [0, 1)."""
    with np.errstate(over="ignore"):
        key = mix(mix(np.array([seed], np.float32).view(np.uint32)) + np.uint32(0x85ebca6b))
        bits = mix(np.arange(count, dtype=np.uint32) * np.uint32(0x9e3779b1) + key)
    return (bits >> np.uint32(8)).astype(np.float32) * np.float32(2.0 ** -24)


class RandomNumbers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compile(self, nodes, outputs, inputs=()):
        graph = helper.make_graph(nodes, "random", list(inputs), [onnx.ValueInfoProto(name=name) for name in outputs])
        onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 20)]),
                  self.folder / "model.onnx")
        return subprocess.run([BIN / "vm-compile", self.folder / "model.onnx", "-o", self.folder / "model.ingot"],
                              capture_output=True, text=True)

    def run_model(self, **inputs):
        np.savez(self.folder / "in.npz", **inputs)
        arguments = [self.folder / "in.npz"] if inputs else []
        run = subprocess.run([BIN / "vm-run", self.folder / "model.ingot", *arguments, "--output",
                              f"@{self.folder / 'out.npz'}"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        with np.load(self.folder / "out.npz") as outputs:
            return dict(outputs)

    def outputs(self, nodes, outputs, inputs=(), **values):
        compiled = self.compile(nodes, outputs, inputs)
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        return self.run_model(**values)

    def check_distribution(self, x, cumulative):
        """Kolmogorov and Smirnov's statistic is below its 1 in 10,000 quantile."""
        x = np.sort(x.astype(np.float64).ravel())
        ranks = np.arange(1, x.size + 1) / x.size
        distance = np.abs(cumulative(x) - ranks).max()
        self.assertLess(distance, 2.23 / math.sqrt(x.size))

    def check_independent(self, x):
        """Neighbours, and neighbours some steps apart, are not correlated."""
        x = x.astype(np.float64).ravel() - x.mean()
        for lag in (1, 2, 3, 16, 256):
            self.assertLess(abs(np.mean(x[:-lag] * x[lag:]) / x.var()), 5 / math.sqrt(x.size), lag)

    def test_uniform_numbers_are_those_of_the_generator(self):
        nodes = [helper.make_node("RandomUniform", [], ["x"], shape=[7, 11], seed=3.0),
                 helper.make_node("RandomUniform", [], ["y"], shape=[77], seed=3.0, low=-2.0, high=6.0)]
        got = self.outputs(nodes, ["x", "y"])
        expected = uniform(3.0, 77)
        np.testing.assert_array_equal(got["x"], expected.reshape(7, 11))
        np.testing.assert_allclose(got["y"], expected * 8 - 2, rtol=1e-6, atol=1e-6)

    def test_a_symbolic_shape_draws_the_same_numbers(self):
        like = helper.make_tensor_value_info("like", TensorProto.FLOAT, ["n", 3, "m"])
        nodes = [helper.make_node("RandomUniformLike", ["like"], ["x"], seed=-1.5)]
        got = self.outputs(nodes, ["x"], [like], like=np.zeros([5, 3, 7], np.float32))
        np.testing.assert_array_equal(got["x"], uniform(-1.5, 105).reshape(5, 3, 7))
        np.testing.assert_array_equal(self.run_model(like=np.zeros([0, 3, 7], np.float32))["x"].shape, [0, 3, 7])

    def test_distributions(self):
        nodes = [helper.make_node("RandomUniform", [], ["u"], shape=[COUNT], low=1.0, high=3.0),
                 helper.make_node("RandomNormal", [], ["n"], shape=[COUNT], mean=-1.0, scale=2.0),
                 helper.make_node("RandomNormal", [], ["m"], shape=[COUNT], mean=-1.0, scale=2.0)]
        got = self.outputs(nodes, ["u", "n", "m"])
        self.assertGreaterEqual(got["u"].min(), 1)
        self.assertLessEqual(got["u"].max(), 3)
        self.check_distribution(got["u"], lambda x: (x - 1) / 2)
        normal = np.vectorize(lambda x: 0.5 * (1 + math.erf((x + 1) / (2 * math.sqrt(2)))))
        for name in ("n", "m"):
            self.check_distribution(got[name], normal)
            self.check_independent(got[name])
        self.check_independent(got["u"])
        # Nodes without a seed differ.
        self.assertLess(abs(np.corrcoef(got["n"], got["m"])[0, 1]), 5 / math.sqrt(COUNT))

    def test_dtypes_and_repeated_calls(self):
        for dtype in (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE):
            like = helper.make_tensor_value_info("like", dtype, ["n"])
            x = np.zeros([1000], helper.tensor_dtype_to_np_dtype(dtype))
            got = self.outputs([helper.make_node("RandomNormalLike", ["like"], ["x"])], ["x"], [like], like=x)["x"]
            self.assertEqual(got.dtype, x.dtype)
            self.assertTrue(np.isfinite(got).all())
            self.assertAlmostEqual(float(got.astype(np.float64).std()), 1, delta=0.15)
            np.testing.assert_array_equal(got, self.run_model(like=x)["x"])

    def test_bernoulli(self):
        p = helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n", 4])
        nodes = [helper.make_node("Bernoulli", ["p"], ["x"], dtype=TensorProto.INT64)]
        probabilities = np.tile(np.array([0, 0.25, 0.9, 1], np.float32), [COUNT // 4, 1])
        got = self.outputs(nodes, ["x"], [p], p=probabilities)["x"]
        self.assertEqual(got.dtype, np.int64)
        for column, expected in enumerate(probabilities[0]):
            error = 5 * math.sqrt(expected * (1 - expected) / len(got))
            self.assertLessEqual(abs(got[:, column].mean() - expected), error)

    def dropout(self, dtype=TensorProto.FLOAT, constants=(), inputs=(), **attributes):
        """A node of x [n, 3], and of a ratio and a mode that are constants or inputs."""
        kinds = {"ratio": TensorProto.FLOAT, "mode": TensorProto.BOOL}
        values = {name: value for name, value in constants}
        nodes = [helper.make_node("Constant", [], [name], value=helper.make_tensor(name, kinds[name], [], [value]))
                 for name, value in constants]
        names = ["x"] + [name if name in values or name in inputs else "" for name in kinds]
        nodes.append(helper.make_node("Dropout", names, ["y", "mask"], **attributes))
        infos = [helper.make_tensor_value_info("x", dtype, ["n", 3])]
        infos += [helper.make_tensor_value_info(name, kinds[name], []) for name in inputs]
        return self.compile(nodes, ["y", "mask"], infos)

    def check_dropped(self, x, got, ratio):
        """Elements are dropped with the probability `ratio`, independently, and what is left keeps the mean."""
        mask = got["mask"]
        self.assertEqual((mask.dtype, mask.shape, got["y"].dtype), (np.bool_, x.shape, x.dtype))
        self.assertLess(abs(mask.mean() - (1 - ratio)), 5 * math.sqrt(ratio * (1 - ratio) / mask.size))
        self.check_independent(mask)
        np.testing.assert_allclose(got["y"].astype(np.float64), np.where(mask, x.astype(np.float64) / (1 - ratio), 0),
                                   rtol=2e-3 if x.dtype == np.float16 else 1e-6)

    def test_dropout_in_training(self):
        for dtype in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE):
            x = np.random.default_rng(1).uniform(1, 2, [20000, 3]).astype(helper.tensor_dtype_to_np_dtype(dtype))
            made = self.dropout(dtype, [("ratio", 0.25), ("mode", True)], seed=7)
            self.assertEqual(made.returncode, 0, made.stderr)
            got = self.run_model(x=x)
            self.check_dropped(x, got, 0.25)
            np.testing.assert_array_equal(got["mask"], self.run_model(x=x)["mask"])
        self.dropout(dtype, [("ratio", 0.25), ("mode", True)], seed=8)
        self.assertTrue((self.run_model(x=x)["mask"] != got["mask"]).any())

    def test_a_ratio_and_a_mode_that_run_time_knows(self):
        x = np.random.default_rng(1).uniform(1, 2, [20000, 3]).astype(np.float32)
        made = self.dropout(inputs=["ratio", "mode"], seed=1)
        self.assertEqual(made.returncode, 0, made.stderr)
        for ratio in (0.1, 0.5):
            got = self.run_model(x=x, ratio=np.float32(ratio), mode=np.bool_(True))
            self.check_dropped(x, got, ratio)
        for ratio, mode in ((0.0, True), (0.5, False), (1.0, False)):
            got = self.run_model(x=x, ratio=np.float32(ratio), mode=np.bool_(mode))
            np.testing.assert_array_equal(got["y"], x)
            self.assertTrue(got["mask"].all())

    def test_dropout_at_inference_keeps_the_data(self):
        for constants in ([], [("ratio", 0.75)], [("ratio", 0.0), ("mode", True)], [("ratio", 2.0), ("mode", False)]):
            made = self.dropout(constants=constants)
            self.assertEqual(made.returncode, 0, made.stderr)
            x = np.arange(6, dtype=np.float32).reshape(2, 3)
            np.testing.assert_array_equal(self.run_model(x=x)["y"], x)
        for ratio in (1.0, -0.5, math.nan):
            refused = self.dropout(constants=[("ratio", ratio), ("mode", True)])
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("a ratio of", refused.stderr)
        self.assertIn("seed", self.dropout(constants=[("mode", True)], seed=1.5).stderr)

    def test_multinomial(self):
        scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 3])
        nodes = [helper.make_node("Multinomial", ["scores"], ["x"], sample_size=50000, dtype=TensorProto.INT64)]
        weights = np.array([[1, 2, 5], [0, 3, 1]])
        with np.errstate(divide="ignore"):
            got = self.outputs(nodes, ["x"], [scores], scores=np.log(weights).astype(np.float32))["x"]
        self.assertEqual(got.shape, (2, 50000))
        for row, weight in zip(got, weights):
            for c, expected in enumerate(weight / weight.sum()):
                self.assertLessEqual(abs(np.mean(row == c) - expected), 5 * math.sqrt(expected * (1 - expected) / 50000))

    def test_a_loop_would_repeat_its_numbers(self):
        body = helper.make_graph(
            [helper.make_node("RandomNormal", [], ["r"], shape=[2]), helper.make_node("Identity", ["c"], ["more"])],
            "body", [helper.make_tensor_value_info("i", TensorProto.INT64, []),
                     helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
            [onnx.ValueInfoProto(name="more"), helper.make_tensor_value_info("r", TensorProto.FLOAT, [2])])
        trips = helper.make_tensor_value_info("trips", TensorProto.INT64, [])
        compiled = self.compile([helper.make_node("Loop", ["trips", ""], ["all"], body=body)], ["all"], [trips])
        self.assertEqual(compiled.returncode, UNSUPPORTED, compiled.stderr)
        self.assertIn("random numbers in a branch or in the body of a loop", compiled.stderr)


if __name__ == "__main__":
    unittest.main()
