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

REFUSALS = 1, 2, 3  # exit codes of vm-run: a failed assertion, a negative dim, and other bad input

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

    def call_vm(self, feeds):
        np.savez(self.folder / "in.npz", **feeds)
        return subprocess.run([BIN / "vm-run", self.folder / "model.ingot", self.folder / "in.npz", "--output",
                               f"@{self.folder / 'out.npz'}"], capture_output=True, text=True, timeout=60)

    def run_vm(self, feeds):
        ran = self.call_vm(feeds)
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

    def test_triangles_of_any_diagonal(self):
        x, least, most = self.rng.random((3, 5), np.float32), -2**63, 2**63 - 1
        for upper in 0, 1:
            inputs = [helper.make_tensor_value_info("x", 1, ["n", "m"]), helper.make_tensor_value_info("k", 7, [])]
            graph = helper.make_graph([helper.make_node("Trilu", ["x", "k"], ["y"], upper=upper)], "one", inputs,
                                      [onnx.ValueInfoProto(name="y")])
            made = self.compile(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 20)]))
            self.assertEqual(made.returncode, 0, made.stderr)
            triangle = np.triu if upper else np.tril
            for k in least, least + 1, -4, 0, 2, most - 1, most:
                got = self.run_vm({"x": x, "k": np.array(k, np.int64)})
                np.testing.assert_array_equal(got, triangle(x, max(-9, min(k, 9))), f"{k}")
            for k in least, most:
                model = model_of("Trilu", x, ["n", "m"], [np.array(k, np.int64)], upper=upper)
                self.check(model, x, triangle(x, max(-9, min(k, 9))))

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

    def check_transform(self, dims, axis, dtype=np.float32, length=None, inverse=0, onesided=0, free=(), is_compiled=False,
                        is_given=False):
        """A DFT beside numpy's, in float64. is_given: the length is an input."""
        x = self.rng.standard_normal(dims).astype(dtype)
        z = x[..., 0].astype(np.float64) + (1j * x[..., 1] if dims[-1] == 2 else 0)
        n = length or (2 * (dims[axis] - 1) if inverse and onesided else dims[axis])
        if inverse and onesided:
            expected = np.fft.irfft(z, n, axis)[..., None]
        else:
            y = np.fft.ifft(z, n, axis) if inverse else np.fft.fft(z, n, axis)
            if onesided:
                y = y[tuple(slice(n // 2 + 1) if a == axis else slice(None) for a in range(y.ndim))]
            expected = np.stack([y.real, y.imag], -1)
        names = ["x", "length" if length else "", "axis"]
        node = helper.make_node("DFT", names, ["y"], inverse=inverse, onesided=onesided)
        infos = [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype),
                                               [f"d{i}" if i in free else d for i, d in enumerate(dims)])]
        numbers = [numpy_helper.from_array(np.int64(axis).reshape(()), "axis")]
        if is_given:
            infos.append(helper.make_tensor_value_info("length", onnx.TensorProto.INT64, []))
        elif length:
            numbers.append(numpy_helper.from_array(np.int64(length).reshape(()), "length"))
        graph = helper.make_graph([node], "one", infos, [onnx.ValueInfoProto(name="y")], numbers)
        if not is_compiled:
            made = self.compile(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 20)]))
            self.assertEqual(made.returncode, 0, made.stderr)
        got = self.run_vm({"x": x} | ({"length": np.int64(length)} if is_given else {}))
        self.assertEqual((got.shape, got.dtype), (expected.shape, x.dtype))
        rounding = {np.float16: 1e-3, np.float32: 2e-6, np.float64: 1e-12}[dtype]
        self.assertLess(np.abs(got - expected).max(), rounding * max(1, np.abs(expected).max()))

    def test_transforms_as_long_as_an_axis(self):
        for parts, inverse, onesided in [(1, 0, 1), (2, 0, 0), (2, 1, 0)]:
            for n in (1, 2, 9, 128, 501):
                with self.subTest(n, parts=parts, inverse=inverse, onesided=onesided):
                    self.check_transform([2, n, 3, parts], 1, np.float64 if inverse else np.float32, inverse=inverse,
                                         onesided=onesided, free=(0, 1), is_compiled=n > 1)

    def test_numbers_of_one_side_of_a_spectrum_as_long_as_an_axis(self):
        for n in (2, 3, 9, 128):
            self.check_transform([2, n, 3, 2], 1, inverse=1, onesided=1, free=(0, 1), is_compiled=n > 2)

    def test_transforms_of_lengths_that_are_given(self):
        """The rows are cut, or filled up with zeros."""
        for parts, inverse, onesided in [(1, 0, 0), (1, 0, 1), (2, 1, 0), (2, 1, 1)]:
            for i, (rows, length) in enumerate(((9, 9), (9, 16), (9, 5), (3, 1), (1, 7), (9, 17))):
                with self.subTest(length, rows=rows, parts=parts, inverse=inverse, onesided=onesided):
                    self.check_transform([2, rows, 3, parts], 1, np.float64, length, inverse, onesided, free=(0, 1),
                                         is_compiled=i > 0, is_given=True)
        for length in (-1, -2 ** 63):
            ran = self.call_vm({"x": np.zeros([2, 9, 3, 2]), "length": np.int64(length)})
            self.assertIn(ran.returncode, REFUSALS, ran.stderr)

    def test_frames_of_steps_and_lengths_that_are_given(self):
        signal = self.rng.standard_normal([2, 50, 1]).astype(np.float32)
        for has_window, has_length in ((True, False), (True, True), (False, True)):
            inputs = {"x": (onnx.TensorProto.FLOAT, ["N", "L", 1]), "step": (onnx.TensorProto.INT64, [])}
            inputs |= {"w": (onnx.TensorProto.FLOAT, ["W"])} if has_window else {}
            inputs |= {"n": (onnx.TensorProto.INT64, [])} if has_length else {}
            node = helper.make_node("STFT", [name if name in inputs else "" for name in ("x", "step", "w", "n")], ["y"],
                                    onesided=1)
            graph = helper.make_graph([node], "one", [helper.make_tensor_value_info(k, *v) for k, v in inputs.items()],
                                      [onnx.ValueInfoProto(name="y")])
            model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
            made = self.compile(model)
            self.assertEqual(made.returncode, 0, made.stderr)
            for step, length in ((8, 16), (5, 7), (1, 50)):
                window = self.rng.standard_normal(length).astype(np.float32) if has_window else np.ones(length)
                given = {"x": signal, "step": np.int64(step), "w": window.astype(np.float32), "n": np.int64(length)}
                got = self.run_vm({name: given[name] for name in inputs})
                frames = [signal[:, i:i + length, 0] * window for i in range(0, 50 - length + 1, step)]
                expected = np.fft.rfft(np.stack(frames, 1), axis=-1)
                np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], expected, atol=1e-4)
            wrong = given | {"step": np.int64(0)}
            ran = self.call_vm({name: wrong[name] for name in inputs})
            self.assertIn(ran.returncode, REFUSALS, ran.stderr)

    def test_transforms_of_any_constant_length(self):
        forms = [(1, 0, 0), (1, 0, 1), (2, 0, 0), (2, 1, 0), (2, 1, 1)]  # components, inverse, onesided
        for n, chosen in [(1, forms), (2, forms), (3, forms[2:]), (128, forms[1::3]), (129, forms), (251, forms[::2]),
                          (257, forms), (384, forms[1:3]), (2 * 521, forms[3:]), (4099, forms[::2]),
                          (12000, forms[1:2])]:
            for parts, inverse, onesided in chosen:
                with self.subTest(n, parts=parts, inverse=inverse, onesided=onesided):
                    length = n if inverse and onesided else None
                    dims = [2, n // 2 + 1 if length else n, parts]
                    self.check_transform(dims, 1, length=length, inverse=inverse, onesided=onesided)
        self.check_transform([1, 65536, 1], 1)

    def test_transforms_of_other_axes_and_dtypes(self):
        for dtype in (np.float16, np.float32, np.float64):
            for dims, axis, free in (([5, 3, 4, 2], 0, (1, 2)), ([2, 130, 7, 1], 1, (0, 2)), ([2, 3, 9, 2], 2, (0, 1))):
                self.check_transform(dims, axis, dtype, free=free)
                self.check_transform(dims, axis, dtype, inverse=1, free=free)
        # Rows that only run time knows, cut or filled up to a length.
        for rows in (1, 6, 30):
            for length in (6, 7):
                self.check_transform([2, rows, 2], 1, length=length, free=(0, 1))
                self.check_transform([2, rows, 2], 1, length=length, inverse=1, onesided=1, free=(0, 1))

    def node_model(self, op, inputs, outputs=1, domain="", opset=27, inits=(), **attributes):
        """A model of one node of inputs, {name: (dtype, dims)}; "-" is one that is left out."""
        names = ["" if name.startswith("-") else name for name in inputs]
        infos = [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()
                 if kind is not None and not name.startswith("-")]
        made = ["y"] + [f"y{k}" for k in range(1, outputs)]
        graph = helper.make_graph([helper.make_node(op, names, made, domain=domain, **attributes)], "one", infos,
                                  [onnx.ValueInfoProto(name=name) for name in made], list(inits))
        imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
        return helper.make_model(graph, ir_version=10, opset_imports=imports)

    def test_what_linear_attention_refuses(self):
        number = onnx.TensorProto.FLOAT
        def model(rule="gated_delta", width=8, decay=2, beta=2, query=16, past=None, domain="", **more):
            inputs = {"q": (number, [1, "T", query]), "k": (number, [1, "T", width]), "v": (number, [1, "T", 6]),
                      "p" if past else "-p": (number, past), "d" if decay else "-d": (number, [1, "T", decay]),
                      "b" if beta else "-b": (number, [1, "T", beta])}
            return self.node_model("LinearAttention", inputs, 2, domain, update_rule=rule,
                                   **{"q_num_heads": 4, "kv_num_heads": 2, **more})
        made = self.compile(model())
        self.assertEqual(made.returncode, 0, made.stderr)
        self.refused("update_rule", model("other"), BAD)
        self.refused("decay", model("delta"), BAD)
        self.refused("decay", model(decay=None), BAD)
        self.refused("rates", model("gated"), BAD)
        self.refused("kv_num_heads", model(kv_num_heads=3), BAD)
        self.refused("kv_num_heads", model(q_num_heads=0), BAD)
        self.refused("number of heads", model(query=18), BAD)
        self.refused("heads of unknown depth", model(query="w"), [UNSUPPORTED])
        self.refused("factors", model(decay=5), (*BAD, 2, 4, 5, 6, 7))
        self.refused("state_window", model(domain="com.microsoft", state_window=2), [UNSUPPORTED])
        self.refused("other_attribute", model(other_attribute=2), [UNSUPPORTED])

    def flex_model(self, dims=(2, 4, 3, 8), dtype=onnx.TensorProto.FLOAT, **attributes):
        inputs = {"q": (dtype, dims), "k": (dtype, [2, 2, "S", 8]), "v": (dtype, [2, 2, "S", 5]),
                  "bias": (onnx.TensorProto.FLOAT, ["S"])}
        model = self.node_model("FlexAttention", inputs, 1, "ai.onnx.preview", **attributes)
        del model.graph.node[0].input[3]
        return model

    def modification(self, nodes, kind=onnx.TensorProto.FLOAT, count=1):
        infos = [helper.make_tensor_value_info(f"x{i}", kind, [None] * 4) for i in range(count)]
        return helper.make_graph(nodes, "change", infos, [helper.make_tensor_value_info("z", kind, [None] * 4)])

    def test_graphs_change_the_scores_of_flex_attention(self):
        node = helper.make_node
        outer = self.modification([node("Add", ["x0", "bias"], ["z"])])  # reads a value of the model
        half = self.modification([node("Mul", ["x0", "x0"], ["z"])])
        made = self.compile(self.flex_model(score_mod=outer, prob_mod=half, scale=0.5))
        self.assertEqual(made.returncode, 0, made.stderr)
        for keys in (1, 7):
            q, k, v, bias = (self.rng.standard_normal(dims).astype(np.float32)
                             for dims in ([2, 4, 3, 8], [2, 2, keys, 8], [2, 2, keys, 5], [keys]))
            scores = 0.5 * q @ np.repeat(k, 2, axis=1).swapaxes(2, 3) + bias
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            shares = (shares / shares.sum(-1, keepdims=True)) ** 2
            np.testing.assert_allclose(self.run_vm({"q": q, "k": k, "v": v, "bias": bias}),
                                       shares @ np.repeat(v, 2, axis=1), rtol=1e-4, atol=1e-5)
        self.refused("score_mod gives", self.flex_model(score_mod=self.modification(
            [node("Cast", ["x0"], ["z"], to=onnx.TensorProto.DOUBLE)])), BAD)
        self.refused("prob_mod gives", self.flex_model(prob_mod=self.modification(
            [node("ReduceMax", ["x0"], ["z"], keepdims=0)])), BAD)
        self.refused("prob_mod has not one input", self.flex_model(prob_mod=self.modification(
            [node("Add", ["x0", "x1"], ["z"])], count=2)), BAD)
        self.refused("NoSuchOperator", self.flex_model(score_mod=self.modification(
            [node("NoSuchOperator", ["x0"], ["z"])])), [UNSUPPORTED])
        self.refused("a rank of 4", self.flex_model(dims=(4, 3, 8)), BAD)
        self.refused("no multiple", self.flex_model(dims=(2, 3, 3, 8)), BAD)
        self.refused("an unknown number of heads", self.flex_model(dims=(2, "h", 3, 8)), [UNSUPPORTED])
        self.refused("softmax_precision", self.flex_model(softmax_precision=int(onnx.TensorProto.INT32)), BAD)

    def test_what_optimizers_refuse(self):
        number, training = onnx.TensorProto.FLOAT, "ai.onnx.preview.training"
        def model(op="Momentum", tensors=("x", "g", "v"), outputs=2, **attributes):
            inputs = {"r": (number, []), "t": (onnx.TensorProto.INT64, []), **{t: (number, ["N", 2]) for t in tensors}}
            return self.node_model(op, inputs, outputs, training, **attributes)
        numbers = dict(alpha=0.5, beta=0.5, norm_coefficient=0.0)
        self.refused("mode", model(mode="other", **numbers), BAD)
        self.refused("mode", model(**numbers), BAD)
        self.refused("norm_coefficient", model(mode="standard", alpha=0.5, beta=0.5), BAD)
        self.refused("equally long lists", model(tensors=("x", "g"), mode="standard", **numbers), BAD)
        self.refused("equally long lists", model("Adam", outputs=3), BAD)
        self.refused("other_attribute", model("Adagrad", other_attribute=1.0), [UNSUPPORTED])

    def test_determinants(self):
        for dtype, rounding in ((np.float16, 1e-2), (np.float32, 1e-5), (np.float64, 1e-12)):
            for dims, free in (([3, 3], []), ([2, 5, 9, 9], ["a", "b", "n", "n"]), ([4, 17, 17], ["a", 17, 17])):
                x = (0.35 * self.rng.standard_normal(dims)).astype(dtype)
                kind = helper.np_dtype_to_tensor_dtype(x.dtype)
                made = self.compile(self.node_model("Det", {"x": (kind, free or dims)}, opset=22))
                self.assertEqual(made.returncode, 0, made.stderr)
                expected = np.linalg.det(x.astype(np.float64))
                got = self.run_vm({"x": x})
                self.assertEqual((got.shape, got.dtype), (expected.shape, x.dtype))
                np.testing.assert_allclose(got, expected, rtol=50 * rounding, atol=rounding * np.abs(expected).max())
        for dims, text in (([3], "a rank of 1"), ([2, 3], "square"), ([0, 2, 4], "square")):
            self.refused(text, self.node_model("Det", {"x": (onnx.TensorProto.FLOAT, dims)}, opset=22), (1, 2, 3, 4, 5))

    def test_an_aspect_ratio_of_free_images_is_kept(self):
        axes = dict(axes=[2, 3], mode="linear")
        for policy in ("not_larger", "not_smaller"):
            for antialias in (0, 1):
                inputs = {"x": (onnx.TensorProto.FLOAT, [1, 2, "h", "w"]), "-roi": None, "-scales": None,
                          "z": (onnx.TensorProto.INT64, [2])}
                more = dict(keep_aspect_ratio_policy=policy, antialias=antialias, **axes)
                made = self.compile(self.node_model("Resize", inputs, opset=19, **more))
                self.assertEqual(made.returncode, 0, made.stderr)
                for h, w, sizes in ((6, 8, [3, 8]), (5, 3, [10, 2]), (4, 4, [7, 9]), (9, 6, [3, 3])):
                    x = self.rng.standard_normal([1, 2, h, w]).astype(np.float32)
                    known = self.node_model("Resize", {"x": (onnx.TensorProto.FLOAT, x.shape), "-roi": None,
                                                       "-scales": None, "z": None}, opset=19,
                                            inits=[numpy_helper.from_array(np.array(sizes), "z")], **more)
                    expected = onnxruntime.InferenceSession(known.SerializeToString()).run(None, {"x": x})[0]
                    got = self.run_vm({"x": x, "z": np.array(sizes)})
                    self.assertEqual(got.shape, expected.shape)
                    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)

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
            ("numbers, and a pool of strings", {"pool_strings": ["a"]}, BAD),
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
