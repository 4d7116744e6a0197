"""com.microsoft's operators: what is not supported of them is refused by its name, and never left out in silence. (Their
results: tests/fuzz/generate_contrib.py. An LSTM of quantised weights: here, beside ONNX Runtime's own rounding.)

usage: microsoft_ops.py BIN_DIR    exits 77 (skipped) without numpy, onnx and onnxruntime"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

onnxruntime.set_default_logger_severity(4)
BIN = pathlib.Path(sys.argv.pop(1)).resolve()
UNSUPPORTED = 8
F32, U8, I32 = TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT32


def model_of(op, inputs, outputs=("y",), constants=None, **attributes):
    """A model of one node. inputs: (element type, dims) by name, in the node's order; "" leaves one out."""
    infos = [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items() if kind is not None]
    names = [name if kind is not None or name in (constants or {}) else "" for name, kind in inputs.items()]
    node = helper.make_node(op, names, list(outputs), domain="com.microsoft", name="n", **attributes)
    graph = helper.make_graph([node], "one", infos, [onnx.ValueInfoProto(name=name) for name in outputs if name],
                              [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()])
    return helper.make_model(graph, ir_version=9,
                             opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])


def matrix(*dims):
    return F32, list(dims)


HEADS = {"q": matrix("B", "S", 8), "k": matrix("B", "S", 8), "v": matrix("B", "S", 8)}
CACHE = {"pk": None, "pv": None, "l": (I32, ["B"]), "t": (I32, [1])}
WEIGHTS = {"a": matrix("N", 16), "b": (U8, [2, 1, 8]), "s": matrix(2, 1)}

# (what the message names, the model)
REFUSED = [
    ('the attribute "beta"', lambda: model_of("QuickGelu", {"x": matrix(2, 3)}, beta=1.0)),
    ('the activation "Erf"', lambda: model_of("FusedGemm", {"a": matrix("N", 3), "b": matrix(3, 4)},
                                              activation="Erf")),
    ('the activation "Gelu"', lambda: model_of("FusedConv", {"x": matrix(1, 2, 5, 5), "w": matrix(4, 2, 3, 3)},
                                               activation="Gelu")),
    ("ceil_mode beside count_include_pad", lambda: model_of("QLinearAveragePool", {
        "x": (U8, [1, 2, 5, 5]), "s": (F32, []), "z": (U8, []), "t": (F32, []), "u": (U8, [])}, kernel_shape=[2, 2],
        ceil_mode=1, count_include_pad=1)),
    ("inv_std_var", lambda: model_of("SkipLayerNormalization", {n: matrix(*d) for n, d in {
        "x": (1, 2, 4), "s": (1, 2, 4), "g": (4,)}.items()}, ["y", "", "d"])),
    ("do_rotary", lambda: model_of("Attention", {"x": matrix("B", "S", 4), "w": matrix(4, 24)}, num_heads=1,
                                   do_rotary=1)),
    ("past_present_share_buffer", lambda: model_of("Attention", {"x": matrix("B", "S", 4), "w": matrix(4, 24)},
                                                   num_heads=1, past_present_share_buffer=1)),
    ("rotary_embedding_dim", lambda: model_of("Attention", {"x": matrix("B", "S", 4), "w": matrix(4, 24)},
                                              num_heads=1, rotary_embedding_dim=32)),
    ("an operand of rank 5", lambda: model_of("MultiHeadAttention", {"q": matrix("B", "S", 1, 3, 8)}, num_heads=1)),
    ("the output qk", lambda: model_of("MultiHeadAttention", HEADS, ["y", "", "", "qk"], num_heads=1)),
    ("is_packed_batching", lambda: model_of("RotaryEmbedding", {
        "x": matrix("B", "S", 8), "p": (TensorProto.INT64, [1]), "c": matrix(9, 4), "s": matrix(9, 4)},
        is_packed_batching=1)),
    *((f'the attribute "{name}"', lambda name=name: model_of(
        "GroupQueryAttention", HEADS | CACHE, num_heads=1, kv_num_heads=1, **{name: 1}))
      for name in ("causal", "kv_cache_bit_width", "qk_output", "sliding_window_cache")),
    ("local_window_size of 4", lambda: model_of("GroupQueryAttention", HEADS | CACHE, num_heads=1, kv_num_heads=1,
                                                local_window_size=4)),
    ("smooth_softmax", lambda: model_of("GroupQueryAttention", HEADS | CACHE, num_heads=1, kv_num_heads=1,
                                        smooth_softmax=1)),
    ("weights that are packed for a device", lambda: model_of("MatMulNBits", WEIGHTS, K=16, N=2, bits=4,
                                                              block_size=16, weight_prepacked=1)),
    ("numbers of 3 bits", lambda: model_of("MatMulNBits", WEIGHTS, K=16, N=2, bits=3, block_size=16)),
    ("packed bytes that are not gathered by rows", lambda: model_of("GatherBlockQuantized", {
        "d": (U8, [8, 16]), "i": (TensorProto.INT64, ["N"]), "s": matrix(8, 2)}, block_size=16, gather_axis=1)),
    ("the attribute \"activation\"", lambda: model_of("NhwcConv", {"x": matrix(1, 5, 5, 2), "w": matrix(4, 2, 3, 3)},
                                                    activation="Relu")),
    ("no operator of this name", lambda: model_of("NoSuchOperator", {"x": matrix(2)})),
]


class MicrosoftOps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compile(self, model):
        onnx.save(model, self.folder / "model.onnx")
        return subprocess.run([BIN / "vm-compile", self.folder / "model.onnx", "-o", self.folder / "model.ingot"],
                              capture_output=True, text=True, timeout=120)

    def test_what_is_not_supported_is_refused_by_name(self):
        for text, model in REFUSED:
            with self.subTest(text):
                made = self.compile(model())
                self.assertEqual(made.returncode, UNSUPPORTED, made.stderr)
                self.assertIn(text, made.stderr)

    def test_an_lstm_of_quantised_weights_is_as_near_as_its_rounding(self):
        """Its states are not rounded at each step here: the result lies between ONNX Runtime's and the exact one."""
        rng = np.random.default_rng(0)
        hidden, width = 32, 16
        weights = {}
        for name, rows in (("w", width), ("r", hidden)):
            weights[name] = rng.integers(-128, 128, [1, rows, 4 * hidden]).astype(np.int8)
            weights[name + "s"] = (rng.random([1, 4 * hidden]) / 300).astype(np.float32)
            weights[name + "z"] = np.zeros([1, 4 * hidden], np.int8)
        inputs = {"x": matrix("T", 1, width), "w": None, "r": None, "b": None, "l": None, "h": None, "c": None,
                  "p": None, "ws": None, "wz": None, "rs": None, "rz": None}
        model = model_of("DynamicQuantizeLSTM", inputs, ["y", "yh", "yc"], weights, hidden_size=hidden)
        made = self.compile(model)
        self.assertEqual(made.returncode, 0, made.stderr)
        plain = helper.make_node("LSTM", ["x", "w", "r"], ["y", "yh", "yc"], hidden_size=hidden)
        exact = helper.make_model(helper.make_graph(
            [plain], "one", list(model.graph.input), list(model.graph.output),
            [numpy_helper.from_array(np.transpose(weights[n] * weights[n + "s"][:, None], (0, 2, 1)).copy(), n)
             for n in ("w", "r")]), ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
        for steps in (1, 20):
            x = rng.standard_normal([steps, 1, width]).astype(np.float32)
            np.savez(self.folder / "in.npz", x=x)
            ran = subprocess.run([BIN / "vm-run", self.folder / "model.ingot", self.folder / "in.npz", "--output",
                                  f"@{self.folder / 'out.npz'}"], capture_output=True, text=True, timeout=60)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            got = np.load(self.folder / "out.npz")
            for name, rounded, true in zip(("y", "yh", "yc"), *(onnxruntime.InferenceSession(
                    m.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
                    for m in (model, exact))):
                rounding = np.abs(rounded - true).max()
                self.assertGreater(rounding, 0)
                self.assertLessEqual(np.abs(got[name] - true).max(), rounding + 1e-5)
                self.assertLessEqual(np.abs(got[name] - rounded).max(), 1.5 * rounding + 1e-5)


if __name__ == "__main__":
    unittest.main()
