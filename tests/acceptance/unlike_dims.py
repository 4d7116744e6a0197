"""Symbolic dims that contradict each other when a model is called: each case names sizes for which the operator's
definition allows the call, which must give ONNX Runtime's results, and sizes for which it does not: vm-run has to refuse
them, as no result would be right. The operators are those that the importer spells out in others, so that the table of
op/assumed_dims.h alone does not see what they forbid.

usage: unlike_dims.py BIN_DIR    exits 77 (skipped) without numpy, onnx and onnxruntime"""
import functools, pathlib, subprocess, sys, tempfile

try:
    import numpy as np, onnx, onnxruntime
    from onnx import helper, numpy_helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

NODE = helper.make_node
I64 = lambda *values: np.array(values, np.int64)
BAD_INPUT = 3  # exit code of vm-run
FLOAT, U8, I32, INT = np.float32, np.uint8, np.int32, np.int64
MICROSOFT = functools.partial(NODE, outputs=["y"], domain="com.microsoft")
NUMBER = np.array(0.1, np.float32)


def some(*dims, dtype=U8):
    return np.random.default_rng(3).integers(0, 200, dims).astype(dtype)


# Columns: name, node, opset, inputs (their dims as letters and digits, dtype), constants, sizes that are allowed, sizes
# that are not (a string of letters and digits gives each letter its size: "a2b3").
CASES = [
    ("Gemm", NODE("Gemm", ["x", "w", "b"], ["y"]), 17, {"x": ("ab", FLOAT), "w": ("bc", FLOAT), "b": ("de", FLOAT)}, {},
     ["a2b3c4d2e4", "a2b3c4d1e4", "a2b3c4d1e1"], ["a1b3c4d2e4", "a2b3c1d1e4", "a2b3c4d3e4"]),
    ("QuantizeLinear", NODE("QuantizeLinear", ["x", "s", "z"], ["y"], axis=1), 17,
     {"x": ("ab", FLOAT), "s": ("c", FLOAT), "z": ("c", U8)}, {}, ["a2b3c3"], ["a2b1c3", "a2b3c2"]),
    ("DequantizeLinear", NODE("DequantizeLinear", ["x", "s", "z"], ["y"], axis=0), 17,
     {"x": ("ab", U8), "s": ("c", FLOAT), "z": ("c", U8)}, {}, ["a3b2c3"], ["a1b2c3", "a3b2c2"]),
    ("AffineGrid", NODE("AffineGrid", ["t", "s"], ["y"]), 20, {"t": ("a23", FLOAT)}, {"s": I64(2, 3, 4, 5)}, ["a2"],
     ["a1", "a3"]),
    ("MaxUnpool", NODE("MaxUnpool", ["x", "i"], ["y"], kernel_shape=[2, 2], strides=[2, 2]), 17,
     {"x": ("abcd", FLOAT), "i": ("efgh", INT)}, {}, ["a1b1c1d1e1f1g1h1"], ["a4b2c2d1e2f2g2h2", "a1b4c4d4e4f4g1h4"]),
    ("TensorScatter", NODE("TensorScatter", ["x", "u", "w"], ["y"]), 24,
     {"x": ("abcd", FLOAT), "u": ("efgh", FLOAT), "w": ("i", INT)}, {}, [],
     ["a4b2c4d2e2f2g1h2i2", "a2b2c4d2e2f1g1h2i2", "a2b2c4d2e2f2g1h1i2", "a2b2c4d2e2f2g1h2i3"]),
    ("Expand by symbols", [NODE("Shape", ["w"], ["s"]), NODE("Expand", ["x", "s"], ["y"])], 17,
     {"x": ("ab", FLOAT), "w": ("cd", FLOAT)}, {},
     ["a2b3c2d3", "a1b3c2d3", "a2b3c1d3", "a1b1c2d3", "a2b3c1d1", "a0b1c0d3"], ["a2b3c3d3", "a2b3c2d4", "a3b1c2d2"]),
    ("Expand of a number", [NODE("Shape", ["w"], ["s"]), NODE("Expand", ["x", "s"], ["y"])], 17,
     {"x": ("4", FLOAT), "w": ("c", FLOAT)}, {}, ["c4", "c1"], ["c5", "c2"]),
    ("Expand to a number", NODE("Expand", ["x", "s"], ["y"]), 17, {"x": ("ab", FLOAT)}, {"s": I64(3, 1)},
     ["a3b2", "a1b5"], ["a2b2"]),
    # A bias is a number for each column or channel and no number for all; a zero point may be one.
    ("MatMulNBits", MICROSOFT("MatMulNBits", ["x", "w", "s", "", "", "b"], K=16, N=8, block_size=16, bits=4), 17,
     {"b": ("a", FLOAT)}, {"x": some(3, 16, dtype=FLOAT) / 99, "w": some(8, 1, 8), "s": some(8, dtype=FLOAT) / 999},
     [], ["a1", "a4"]),
    ("MatMulIntegerToFloat", MICROSOFT("MatMulIntegerToFloat", ["x", "w", "s", "s", "", "z", "b"]), 17,
     {"x": ("a4", U8), "z": ("b", U8), "b": ("c", FLOAT)}, {"w": some(4, 8), "s": NUMBER},
     ["a3b8c8", "a3b1c8"], ["a3b1c1", "a3b4c8"]),
    ("DynamicQuantizeMatMul", MICROSOFT("DynamicQuantizeMatMul", ["x", "w", "s", "z", "b"]), 17,
     {"x": ("a4", FLOAT), "b": ("c", FLOAT)}, {"w": some(4, 8), "s": NUMBER, "z": some(8)}, ["a3c8"], ["a3c1"]),
    ("SkipLayerNormalization", MICROSOFT("SkipLayerNormalization", ["x", "x", "g", "", "b"]), 17,
     {"x": ("a38", FLOAT), "b": ("c", FLOAT)}, {"g": some(8, dtype=FLOAT) / 99}, ["a2c8"], ["a2c1"]),
    ("Skip of SkipGroupNorm", MICROSOFT("SkipGroupNorm", ["x", "g", "g", "s"], groups=1, activation=0), 17,
     {"x": ("a224", FLOAT), "s": ("bcde", FLOAT)}, {"g": some(4, dtype=FLOAT)}, [], ["a2b1c2d2e4", "a2b2c2d2e1"]),
    ("QLinearConv", NODE("QLinearConv", ["x", "s", "z", "w", "t", "z", "s", "z", "b"], ["y"]), 17,
     {"x": ("a433", U8), "t": ("b", FLOAT), "b": ("c", I32)},
     {"s": NUMBER, "z": np.array(3, U8), "w": some(8, 4, 3, 3)}, ["a1b8c8", "a1b1c8"], ["a1b8c1", "a1b4c8"]),
    ("Zero points of MatMulInteger", NODE("MatMulInteger", ["x", "w", "", "z"], ["y"]), 17,
     {"x": ("a4", U8), "z": ("bc", U8)}, {"w": some(4, 8)}, ["a3b1c8"], ["a3b4c8", "a3b4c1", "a3b1c1"]),
    ("Target of a loss", NODE("NegativeLogLikelihoodLoss", ["x", "t"], ["y"]), 17,
     {"x": ("ab", FLOAT), "t": ("c", INT)}, {}, ["a4b5c4", "a1b5c1"], ["a4b5c1", "a1b5c4"]),
    ("Targets of a loss", NODE("SoftmaxCrossEntropyLoss", ["x", "t", "w"], ["y"]), 17,
     {"x": ("abc", FLOAT), "t": ("de", INT), "w": ("f", FLOAT)}, {}, ["a4b5c3d4e3f5"],
     ["a4b5c3d4e1f5", "a4b5c3d1e3f5", "a4b5c3d4e3f1"]),
    ("Squeeze of all", NODE("Squeeze", ["x"], ["y"]), 17, {"x": ("a1b", FLOAT)}, {},
     ["a2b3", "a1b3", "a2b1", "a1b1"], []),
]


def sizes_of(text):
    return {text[i]: int(text[i + 1]) for i in range(0, len(text), 2)}


def feed_of(inputs, sizes):
    rng = np.random.default_rng(5)
    dims = lambda text: [sizes[c] if c.isalpha() else int(c) for c in text]
    return {name: (rng.standard_normal(dims(text)) if dtype == FLOAT else np.zeros(dims(text))).astype(dtype)
            for name, (text, dtype) in inputs.items()}


def main():
    bin_dir, failures, checked = pathlib.Path(sys.argv[1]).resolve(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: str(pathlib.Path(folder) / name)
        for name, nodes, opset, inputs, init, allowed, forbidden in CASES:
            values = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)),
                                                    [c if c.isalpha() else int(c) for c in text])
                      for k, (text, dtype) in inputs.items()]
            graph = helper.make_graph(nodes if isinstance(nodes, list) else [nodes], "g", values,
                                      [onnx.ValueInfoProto(name="y")],
                                      [numpy_helper.from_array(v, k) for k, v in init.items()])
            versions = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
            model = helper.make_model(graph, opset_imports=versions, ir_version=10)
            onnx.save(model, path("m.onnx"))
            made = subprocess.run([bin_dir / "vm-compile", "--target", "cpu:x86-64-v3", path("m.onnx"), "-o",
                                   path("m.ingot")], capture_output=True, text=True)
            if made.returncode:
                print(f"FAIL {name}: {made.stderr.strip()[-300:]}")
                failures += 1
                continue
            for text in allowed + forbidden:
                feed = feed_of(inputs, sizes_of(text))
                np.savez(path("in.npz"), **feed)
                ran = subprocess.run([bin_dir / "vm-run", path("m.ingot"), path("in.npz"), "--output",
                                      "@" + path("out.npz")], capture_output=True, text=True)
                checked += 1
                why = ""
                if text in forbidden:
                    if ran.returncode == 0:
                        why = f"is not refused, gives {np.load(path('out.npz'))['y'].shape}"
                    elif ran.returncode != BAD_INPUT:
                        why = f"is refused by exit code {ran.returncode}: {ran.stderr.strip()[-300:]}"
                elif ran.returncode:
                    why = f"is refused: {ran.stderr.strip()[-300:]}"
                else:
                    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feed)[0]
                    got = np.load(path("out.npz"))["y"]
                    if got.shape != expected.shape or not np.allclose(got, expected, atol=1e-5):
                        why = f"gives {got.shape}, ONNX Runtime {expected.shape}, or other values"
                if why:
                    print(f"FAIL {name} {text}: {why}")
                    failures += 1
    print(f"{checked} calls, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
