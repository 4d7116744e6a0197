"""Pipelines, passes and their options, kernels as text, and weights as inputs, through vm-compile.

usage: passes.py BIN_DIR [TEST ...]    exits 77 (skipped) without numpy and onnx"""
import json, pathlib, shutil, sys, tempfile, unittest

from tools import Tools

try:
    import numpy as np, onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
MLP = pathlib.Path(__file__).resolve().parent.parent / "data" / "mlp_call_tir.py"


tool = Tools(BIN)

class Passes(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-passes-"))
        value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        random = np.random.default_rng(0)
        self.w, self.b = random.random((3, 4), dtype=np.float32), random.random(4, dtype=np.float32)
        self.x = random.random((2, 3), dtype=np.float32)
        nodes = [helper.make_node("Gemm", ["x", "layer.w", "layer.b"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
        weights = [numpy_helper.from_array(self.w, "layer.w"), numpy_helper.from_array(self.b, "layer.b")]
        graph = helper.make_graph(nodes, "g", [value("x", ["n", 3])], [value("y", ["n", 4])], weights)
        self.model = self.dir / "m.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), self.model)
        np.savez(self.dir / "x.npz", x=self.x)
        np.savez(self.dir / "y.npz", y=np.maximum(self.x @ self.w + self.b, 0))

    def tearDown(self):
        shutil.rmtree(self.dir)

    def good(self, *args):
        result = tool("vm-compile", *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def bad(self, message, *args):
        result = tool("vm-compile", *args)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(message, result.stderr)

    def runs(self, exe, *inputs):
        result = tool("vm-run", exe, *inputs, "--expect", f"@{self.dir}/y.npz", "--rtol", "1e-5")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_pipelines(self):
        exe = self.dir / "m.ingot"
        for choice in (["--pipeline=zero"], ["--pipeline=default"], ["--passes=legalize"],
                       ["--passes", "normalize,legalize,default_schedule"], ["--disable-pass=fuse_ops"], ["-O0"]):
            self.good(self.model, "-o", exe, *choice)
            self.runs(exe, self.dir / "x.npz")
        times = lambda *args: self.good(self.model, "-o", exe, "--time-passes", *args).stderr.splitlines()
        names = lambda *args: [line.split()[-1] for line in times(*args)]
        self.assertIn("fuse_ops", names("--pipeline=zero"))
        self.assertNotIn("lift_params", names("--pipeline=zero"))
        self.assertNotIn("fuse_ops", names("--disable-pass=fuse_ops"))
        printed = self.good("--list-pipelines").stdout
        self.assertTrue(printed.startswith("default  "))
        self.assertIn("\nzero  ", printed)
        self.assertIn("fold_constants.max_bytes=268435456", self.good("--list-passes").stdout)
        self.bad('there is no pipeline "zeroo"; did you mean "zero"?', self.model, "-o", exe, "--pipeline=zeroo")
        self.bad('there is no pass "legalise"; did you mean "legalize"?', self.model, "-o", exe, "--passes=legalise")
        self.bad("choose one", self.model, "-o", exe, "--passes=legalize", "--pipeline=zero")
        self.bad('--disable-pass: there is no pass "fuse"', self.model, "-o", exe, "--disable-pass=fuse")

    def test_rewrites(self):
        exe = self.dir / "m.ingot"
        self.good(self.model, "-o", exe, "--strict-math")
        self.runs(exe, self.dir / "x.npz")
        self.good(self.model, "-o", exe, "--fast-math=reassociate,overflow")
        self.runs(exe, self.dir / "x.npz")
        listed = self.good("--list-rewrites").stdout
        self.assertRegex(listed, r"(?m)^winograd +bounded +3 x 3 convolutions")
        module = self.dir / "silu.py"
        module.write_text("""@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
        with R.dataflow():
            s = R.sigmoid(x)
            y = R.multiply(x, s)
            R.output(y)
        return y
""")
        told = self.good(module, "-o", exe, "--explain").stderr
        self.assertRegex(told, r"(?m)^silu +rounding_only +multiply  module.py:\d+:\d+$")
        self.assertIn("rewrites: none", self.good(module, "-o", exe, "--explain", "--strict-math").stderr)
        report = json.loads(self.good(module, "-o", exe, "--explain", "--json", "-").stdout)
        self.assertEqual([row["rewrite"] for row in report["rewrites"]], ["silu"])
        self.assertEqual(report["rewrites"][0]["class"], "rounding_only")
        self.assertRegex(told, r"(?m)^kernel \w+ for x86-64-v4: .* predicted .* GFLOP/s")
        self.assertEqual([k["target"] for k in report["kernels"]], ["x86-64-v3", "x86-64-v4"])
        part, = report["kernels"][0]["parts"]
        self.assertEqual((part["rule"], part["serial_scalar"]), ("elementwise", False))
        self.assertIn({"rule": "inline", "why": "it writes a result of the kernel", "other_kind": False},
                      part["declined"])
        self.bad("exclude each other", self.model, "-o", exe, "--strict-math", "--fast-math")
        self.bad('did you mean "overflow"?', self.model, "-o", exe, "--fast-math=overflo")

    def test_print_after(self):
        exe = self.dir / "m.ingot"
        printed = self.good(self.model, "-o", exe, "--progress=never", "--print-after=legalize",
                            "--print-after", "fuse_ops").stderr
        after = dict(part.split("\n", 1) for part in printed.split("# after ")[1:])
        self.assertEqual(list(after), ["legalize", "fuse_ops"])
        self.assertIn("def matmul(", after["legalize"])
        self.assertNotIn("def fused_", after["legalize"])
        self.assertIn("def fused_", after["fuse_ops"])
        for text in after.values():  # each is a model of its own
            again = self.dir / "again.py"
            again.write_text(text)
            self.good(again, "-o", exe)
            self.runs(exe, self.dir / "x.npz")
        every = self.good(self.model, "-o", exe, "--pipeline=zero", "--print-after=all", "--time-passes").stderr
        names = [part.split("\n", 1)[0] for part in every.split("# after ")[1:]]
        times = [line.split()[-1] for line in every.splitlines() if " ms " in line and line.endswith(tuple(names))]
        self.assertEqual(names[0], "import")
        self.assertIn("fuse_tir", names)
        self.assertEqual(names, times)
        self.bad('there is no pass "fuse_op"; did you mean "fuse_ops"?', self.model, "-o", exe, "--print-after=fuse_op")

    def test_options(self):
        small = self.good(self.model, "--pipeline=zero", "--emit=tir", "--pass-option", "fuse_ops.max_group=1").stdout
        self.assertNotIn("def fused_", small)
        self.assertIn("def fused_", self.good(self.model, "--pipeline=zero", "--emit=tir").stdout)
        self.bad("--pass-option: there is no pass option", self.model, "--emit=tir", "--pass-option", "fuse_ops.max=1")
        self.bad("expected a whole number >= 0", self.model, "--emit=tir", "--pass-option", "fuse_ops.max_group=x")
        self.bad('there is no schedule rule "gem"; did you mean "gemm"?', self.model, "-o", self.dir / "m.ingot",
                 "--passes=legalize,default_schedule", "--pass-option", "default_schedule.rules=gem")

    def test_kernels(self):
        kernel = "fused_matmul_add_relu"
        options = [MLP, "--pipeline=zero", "--target=cpu:x86-64-v3", "--kernel", kernel]
        self.assertIn(f"# {kernel} for x86-64-v3: ", self.good(*options, "--emit=schedule").stdout)
        self.assertIn("sch.get_block(", self.good(*options, "--emit=schedule").stdout)
        self.assertIn(f"{kernel}:", self.good(*options, "--emit=asm").stdout)
        llvm = self.good(*options, "--emit=llvm").stdout
        self.assertIn(f"@{kernel}(", llvm)
        self.assertNotIn("@transpose(", llvm)
        tir = self.good(*options, "--emit=tir").stdout
        self.assertIn(f"def {kernel}(", tir)
        self.assertNotIn("def main(", tir)
        result = tool("vm-compile", MLP, "--pipeline=zero", "--emit=asm", "--kernel", "fused_matmul_add_rel")
        self.assertIn(f'did you mean "{kernel}"?', result.stderr)
        self.assertNotEqual(result.returncode, 0)
        self.bad("--kernel chooses", MLP, "-o", self.dir / "m.ingot", "--kernel", kernel)

    def test_weights_as_inputs(self):
        weights, exe = self.dir / "w.safetensors", self.dir / "m.ingot"
        self.good(self.model, "--emit-params", weights, "-o", exe)
        self.assertIn("layer.w: float32[3, 4]", tool("vm-run", exe, self.dir / "x.npz").stderr)
        self.runs(exe, self.dir / "x.npz", weights)
        # Without a file to write to the weights are inputs all the same, in order of use.
        self.good(self.model, "--keep-params-in-input", "-o", exe)
        self.assertIn("layer.b: float32[4]", tool("vm-run", exe, self.dir / "x.npz").stderr)
        self.runs(exe, self.dir / "x.npz", weights)
        text = self.good(self.model, "--keep-params-in-input", "--emit=relax").stdout
        self.assertIn('"num_input": 1', text)
        self.assertNotIn("metadata", text)
        # Bound again, from the other file format, it is the model as it was.
        np.savez(self.dir / "w.npz", **{"layer.w": self.w, "layer.b": self.b})
        self.good(self.model, "--keep-params-in-input", "--params", self.dir / "w.npz", "-o", exe)
        self.runs(exe, self.dir / "x.npz")
        np.savez(self.dir / "half.npz", **{"layer.w": self.w})
        self.good(self.model, "--keep-params-in-input", "--params", self.dir / "half.npz", "-o", exe)
        np.savez(self.dir / "xb.npz", **{"x": self.x, "layer.b": self.b})
        self.runs(exe, self.dir / "xb.npz")


if __name__ == "__main__":
    unittest.main()
