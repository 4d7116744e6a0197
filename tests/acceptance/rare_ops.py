"""Operators of ONNX that few models have, beside ONNX Runtime, or the specification's formula where it differs; and what
is not supported of them is refused by its name.

usage: rare_ops.py BIN_DIR    exits 77 (skipped) without numpy, onnx and onnxruntime"""
import itertools
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

onnxruntime.set_default_logger_severity(4)
BIN = pathlib.Path(sys.argv.pop(1)).resolve()
UNSUPPORTED, BAD = 8, (1, 3)


def model_of(op, x=None, dims=None, constants=(), **attributes):
    """A model of one node of x, whose dims may be names, and of constants."""
    names = (["x"] if x is not None else []) + [f"c{i}" for i in range(len(constants))]
    inputs = [] if x is None else [
        helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), dims or x.shape)]
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "one", inputs,
                              [onnx.ValueInfoProto(name="y")],
                              [numpy_helper.from_array(np.array(c), f"c{i}") for i, c in enumerate(constants)])
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 20)])


def columns_to_image(x, image, block, strides, dilations, pads):
    """The specification's sum, block by block."""
    rank, size = len(image), int(np.prod(block))
    padded = [n + a + b for n, a, b in zip(image, pads[:rank], pads[rank:])]
    counts = [(n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(padded, dilations, block, strides)]
    y = np.zeros([x.shape[0], x.shape[1] // size, *padded])
    parts = x.reshape([x.shape[0], x.shape[1] // size, *block, *counts])
    for k in itertools.product(*map(range, block)):
        for at in itertools.product(*map(range, counts)):
            place = tuple(a * s + i * d for a, s, i, d in zip(at, strides, k, dilations))
            y[(..., *place)] += parts[(..., *k, *at)]
    return y[(..., *[slice(p, p + n) for p, n in zip(pads, image)])]


class RareOps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.rng = np.random.default_rng(7)

    def compile(self, model):
        onnx.save(model, self.folder / "model.onnx")
        return subprocess.run([BIN / "vm-compile", self.folder / "model.onnx", "-o", self.folder / "model.ingot"],
                              capture_output=True, text=True, timeout=240)

    def run_vm(self, feeds):
        np.savez(self.folder / "in.npz", **feeds)
        ran = subprocess.run([BIN / "vm-run", self.folder / "model.ingot", self.folder / "in.npz", "--output",
                              f"@{self.folder / 'out.npz'}"], capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return np.load(self.folder / "out.npz")["y"]

    def check(self, model, x, expected=None):
        made = self.compile(model)
        self.assertEqual(made.returncode, 0, made.stderr)
        feeds = {} if x is None else {"x": x}
        got = self.run_vm(feeds)
        if expected is None:
            expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)[0]
        self.assertEqual((got.shape, got.dtype), (expected.shape, expected.dtype))
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)

    def refused(self, text, model, codes):
        made = self.compile(model)
        self.assertIn(made.returncode, codes, made.stderr)
        self.assertIn(text, made.stderr)

    def test_deformable_convolutions_of_free_images(self):
        for channels, outputs, group, offset_group, kernel, strides, dilations, pads, size in [
            (8, 6, 2, 4, [3, 2], [2, 1], [1, 2], [1, 0, 2, 1], [7, 6]),
            (4, 5, 1, 1, [3, 3], [1, 1], [1, 1], [1, 1, 1, 1], [5, 9]),
            (3, 3, 3, 3, [1, 1], [1, 2], [1, 1], [0, 0, 0, 0], [1, 4]),
        ]:
            with self.subTest(kernel=kernel, group=group):
                out = [(n + pads[i] + pads[2 + i] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
                       for i, n in enumerate(size)]
                taps = offset_group * kernel[0] * kernel[1]
                floats = lambda *dims: self.rng.standard_normal(dims).astype(np.float32)
                feeds = {"x": floats(2, channels, *size), "o": 3 * floats(2, 2 * taps, *out), "m": floats(2, taps, *out)}
                weights = {"w": floats(outputs, channels // group, *kernel), "b": floats(outputs)}
                node = helper.make_node("DeformConv", ["x", "w", "o", "b", "m"], ["y"], group=group, pads=pads,
                                        offset_group=offset_group, strides=strides, dilations=dilations)
                inputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT,
                                                        ["n", value.shape[1], name + "h", name + "w"])
                          for name, value in feeds.items()]
                graph = helper.make_graph([node], "one", inputs, [onnx.ValueInfoProto(name="y")],
                                          [numpy_helper.from_array(value, name) for name, value in weights.items()])
                model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 19)])
                made = self.compile(model)
                self.assertEqual(made.returncode, 0, made.stderr)
                expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)[0]
                np.testing.assert_allclose(self.run_vm(feeds), expected, rtol=1e-4, atol=1e-4)

    def test_columns_become_an_image(self):
        for image, block, strides, dilations, pads in [
            ([6, 7], [2, 3], [2, 1], [1, 2], [1, 0, 2, 3]),
            ([9], [3], [2], [2], [1, 1]),
            ([4, 5, 6], [2, 2, 2], [1, 2, 1], [1, 1, 2], [0, 1, 0, 1, 0, 1]),
            ([4, 5], [2, 2], [3, 3], [1, 1], [0, 0, 0, 0]),
            ([1, 1], [1, 1], [1, 1], [1, 1], [0, 0, 0, 0]),
        ]:
            with self.subTest(image, block=block):
                rank = len(image)
                count = [(n + pads[i] + pads[rank + i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1
                         for i, n in enumerate(image)]
                shape = [3, 2 * int(np.prod(block)), int(np.prod(count))]
                for dtype in (np.float32, np.float64):
                    x = self.rng.standard_normal(shape).astype(dtype)
                    x[0, 0, 0] = np.inf  # which nothing but its own places may see
                    expected = columns_to_image(x, image, block, strides, dilations, pads).astype(dtype)
                    more = dict(constants=(image, block), strides=strides, dilations=dilations, pads=pads)
                    self.check(model_of("Col2Im", x, ["N", *shape[1:]], **more), x, expected)
                    self.check(model_of("Col2Im", x, ["N", shape[1], "L"], **more), x, expected)
                self.assertEqual(self.run_vm({"x": x[:0]}).shape, (0, 2, *image))

    def test_matrices_of_the_mel_scale(self):
        for bins, length, rate, low, high in ((8, 16, 8192, 0.0, 4096.0), (40, 400, 16000, 20.0, 7600.0),
                                              (1, 64, 8000, 125.0, 4000.0), (80, 1024, 44100, 0.0, 22050.0)):
            with self.subTest(bins, length=length):
                constants = [np.int64(bins), np.int64(length), np.int64(rate), np.float32(low), np.float32(high)]
                self.check(model_of("MelWeightMatrix", constants=constants), None)
        constants = [np.int64(8), np.int64(16), np.int64(8000), np.float32(0), np.float32(9000)]
        self.refused("above half", model_of("MelWeightMatrix", constants=constants), BAD)

    def test_ngrams_of_numbers(self):
        more = dict(ngram_counts=[0, 3, 9], ngram_indexes=[1, 0, 6, 2, 4, 3, 8], weights=[0.5, 2.0, 3, 4, 0.25, 6, 7],
                    pool_int64s=[1, 2, 3, 1, 2, 0, 1, 3, 3, 1, 2, 3])
        for mode in ("TF", "IDF", "TFIDF"):
            for shortest, longest, skips in ((1, 1, 0), (1, 2, 0), (2, 2, 3), (1, 3, 1), (3, 3, 9)):
                for shape in ([5, 9], [9], [4, 1]):
                    with self.subTest(mode, shortest=shortest, longest=longest, skips=skips, shape=shape):
                        x = self.rng.integers(0, 4, shape).astype(self.rng.choice([np.int32, np.int64]))
                        dims = ["N", *shape[1:]] if len(shape) == 2 else shape
                        self.check(model_of("TfIdfVectorizer", x, dims, mode=mode, min_gram_length=shortest,
                                            max_gram_length=longest, max_skip_count=skips, **more), x)
        lengths = dict(mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=0)
        x = np.zeros([2, 4], np.int64)
        for text, changed, codes in [
            ("pool_strings", {"pool_strings": ["a"]}, (UNSUPPORTED,)),
            ("two n-grams", {"ngram_indexes": [1, 0, 6, 2, 4, 3, 1]}, (UNSUPPORTED,)),
            ("ngram_counts", {"ngram_counts": [0, 3, 10]}, BAD),
            ("ngram_indexes", {"ngram_indexes": [1, 0]}, BAD),
            ("weights", {"weights": [1.0]}, BAD),
        ]:
            with self.subTest(text):
                self.refused(text, model_of("TfIdfVectorizer", x, **lengths, **{**more, **changed}), codes)
        self.refused("symbolic length", model_of("TfIdfVectorizer", x, ["N", "C"], **lengths, **more), (UNSUPPORTED,))


if __name__ == "__main__":
    unittest.main()
