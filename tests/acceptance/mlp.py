"""The MLP 784-256-10 in three forms (apps/examples/mlp.cc): equal results, those of NumPy, and the functions that TVM's
LegalizeOps and zero pipeline make of it.

usage: mlp.py BIN_DIR [TEST ...]    exits 77 (skipped) without numpy and onnx; TVM is compared with when it is there"""
import pathlib, re, shutil, subprocess, sys, tempfile, unittest

try:
    import numpy as np, onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)
try:
    import tvm
    from tvm import relax
    from tvm.relax.frontend import nn
except ImportError:
    tvm = None

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
SHAPES = {"fc1_weight": (256, 784), "fc1_bias": (256,), "fc2_weight": (10, 256), "fc2_bias": (10,)}


def tvm_functions(transform):
    """Names with op_pattern, sorted, of the MLP exported by TVM's nn; forward is called main there too."""

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.relu, self.fc2 = nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)

        def main(self, x):
            return self.fc2(self.relu(self.fc1(x)))

    module, _ = Mlp().export_tvm({"main": {"x": nn.spec.Tensor((1, 784), "float32")}})
    module = transform(module)
    names = []
    for var, function in module.functions.items():
        pattern = (function.attrs or {}).get("op_pattern")
        names.append(var.name_hint + (f"(op_pattern={int(pattern)})" if pattern is not None else ""))
    return sorted(names)


class Mlp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-mlp-"))
        random = np.random.default_rng(0)
        cls.values = {name: (random.standard_normal(shape) / 16).astype(np.float32) for name, shape in SHAPES.items()}
        cls.values["x"] = random.random((1, 784), dtype=np.float32)
        np.savez(cls.dir / "params.npz", **cls.values)
        nodes = [helper.make_node("Gemm", ["x", "fc1_weight", "fc1_bias"], ["h"], transB=1),
                 helper.make_node("Relu", ["h"], ["r"]),
                 helper.make_node("Gemm", ["r", "fc2_weight", "fc2_bias"], ["y"], transB=1)]
        value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        weights = [numpy_helper.from_array(cls.values[name], name) for name in SHAPES]
        graph = helper.make_graph(nodes, "mlp", [value("x", (1, 784))], [value("y", (1, 10))], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
        onnx.save(model, cls.dir / "mlp.onnx")
        run = subprocess.run([BIN / "mlp", cls.dir / "mlp.onnx", DATA / "mlp_call_tir.py", cls.dir / "params.npz",
                              cls.dir / "results.npz"], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        cls.printed = run.stdout
        cls.results = np.load(cls.dir / "results.npz")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def functions(self, form, when):
        line = re.search(f"^{form} after {when}: (.*)$", self.printed, re.M).group(1)
        return line.split()

    def calls(self, form, when):
        return int(re.search(f"^{form} main after {when}: (\\d+) calls$", self.printed, re.M).group(1))

    def test_results(self):
        v = {name: array.astype(np.float64) for name, array in self.values.items()}
        hidden = np.maximum(v["x"] @ v["fc1_weight"].T + v["fc1_bias"], 0)
        expected = hidden @ v["fc2_weight"].T + v["fc2_bias"]
        names = [form + bound for form in ("nn", "onnx", "script") for bound in ("", "_bound")]
        self.assertEqual(sorted(self.results.files), names)
        for form in ("onnx", "nn", "script"):
            np.testing.assert_array_equal(self.results[form], self.results["nn"], form)
            np.testing.assert_array_equal(self.results[form + "_bound"], self.results["nn_bound"], form)
            np.testing.assert_allclose(self.results[form], expected, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(self.results[form + "_bound"], expected, rtol=1e-5, atol=1e-5)

    def test_functions(self):
        legal = "add add1 main matmul matmul1 relu transpose transpose1".split()
        fused = "fused_matmul1_add1 fused_matmul_add_relu main transpose(op_pattern=2) transpose1(op_pattern=2)".split()
        for form in ("onnx", "nn", "script"):
            self.assertEqual(self.functions(form, "legalize"), legal, form)
            self.assertEqual(self.functions(form, "zero"), fused, form)
            self.assertEqual(self.calls(form, "zero"), 4, form)
            self.assertEqual(self.functions(form, "zero, parameters bound"), fused[:3], form)
            self.assertEqual(self.calls(form, "zero, parameters bound"), 2, form)

    @unittest.skipIf(tvm is None, "no tvm")
    def test_functions_are_tvms(self):
        self.assertEqual(self.functions("nn", "legalize"), tvm_functions(relax.transform.LegalizeOps()))
        self.assertEqual(self.functions("nn", "zero"), tvm_functions(relax.get_pipeline("zero")))


if __name__ == "__main__":
    unittest.main()
