"""Control flow through the tools: ONNX's If, Loop and Scan in many forms beside ONNX Runtime, and recursion from text
up to the VM's limit.

usage: control_flow.py BIN_DIR [TEST ...]    exits 77 (skipped) without numpy, onnx and onnxruntime"""
import pathlib, sys, tempfile, unittest

from tools import Tools

try:
    import numpy as np, onnx, onnxruntime
    from onnx import TensorProto as T, helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
NODE, VALUE = helper.make_node, helper.make_tensor_value_info


tool = Tools(BIN, timeout=300)

def constant(name, value):
    return NODE("Constant", [], [name], value=onnx.numpy_helper.from_array(np.asarray(value)))


def graph(name, nodes, inputs, outputs):
    return helper.make_graph(nodes, name, inputs, outputs)


class ControlFlow(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def agrees(self, nodes, inputs, outputs, *feeds, opset=18):
        """Compiles once, at two levels, and compares every feed's results with ONNX Runtime's."""
        model = helper.make_model(graph("g", nodes, inputs, outputs), opset_imports=[helper.make_opsetid("", opset)],
                                  ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, self.dir / "m.onnx")
        session = onnxruntime.InferenceSession(self.dir / "m.onnx", providers=["CPUExecutionProvider"])
        names = [output.name for output in outputs]
        for level in ("-O0", "-O2"):
            made = tool("vm-compile", level, "--target", "cpu:x86-64-v3", self.dir / "m.onnx", "-o",
                        self.dir / "m.ingot")
            self.assertEqual(made.returncode, 0, made.stderr)
            for feed in feeds:
                np.savez(self.dir / "in.npz", **feed)
                # ONNX Runtime gives a scanned output without rows dims of 0.
                expected = {name: value for name, value in zip(names, session.run(names, feed)) if value.size > 0}
                np.savez(self.dir / "out.npz", **expected)
                ran = tool("vm-run", self.dir / "m.ingot", self.dir / "in.npz", "--expect", f"@{self.dir / 'out.npz'}",
                           "--rtol", "1e-5", "--atol", "1e-6")
                self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        # Compiling the text gives the same bytes.
        text = tool("vm-compile", self.dir / "m.onnx", "--emit=relax", "-o", self.dir / "t.py")
        self.assertEqual(text.returncode, 0, text.stderr)
        for source, out in ((self.dir / "m.onnx", "a"), (self.dir / "t.py", "b")):
            made = tool("vm-compile", "--target", "cpu:x86-64-v3", source, "-o", self.dir / out)
            self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual((self.dir / "a").read_bytes(), (self.dir / "b").read_bytes())

    def test_if_captures_and_gives_several_results(self):
        f32 = lambda name: VALUE(name, T.FLOAT, ["n"])
        then = graph("t", [NODE("Add", ["x", "x"], ["t0"]), NODE("Exp", ["t0"], ["t1"]), NODE("Neg", ["x"], ["t2"])],
                     [], [f32("t1"), f32("t2")])
        other = graph("e", [NODE("Mul", ["h", "x"], ["e0"]), NODE("Identity", ["h"], ["e1"])], [],
                      [f32("e0"), f32("e1")])
        nodes = [NODE("Abs", ["x"], ["h"]), NODE("If", ["c"], ["a", "b"], then_branch=then, else_branch=other),
                 NODE("Sub", ["a", "b"], ["y"])]
        x = np.array([1, -2, 3], np.float32)
        self.agrees(nodes, [VALUE("c", T.BOOL, []), f32("x")], [f32("y"), f32("a")], {"c": np.array(True), "x": x},
                    {"c": np.array(False), "x": x})

    def test_if_of_unlike_shapes(self):
        then = graph("t", [NODE("Concat", ["x", "x"], ["t0"], axis=0)], [], [VALUE("t0", T.FLOAT, None)])
        other = graph("e", [NODE("Identity", ["x"], ["e0"])], [], [VALUE("e0", T.FLOAT, None)])
        nodes = [NODE("If", ["c"], ["a"], then_branch=then, else_branch=other), NODE("Exp", ["a"], ["y"])]
        x = np.array([[1, 2], [3, 4]], np.float32)
        self.agrees(nodes, [VALUE("c", T.BOOL, [1]), VALUE("x", T.FLOAT, [2, 2])], [VALUE("y", T.FLOAT, [None, 2])],
                    {"c": np.array([True]), "x": x}, {"c": np.array([False]), "x": x})

    def loop(self, body_nodes, carried, scans, with_limit=True, condition="keep"):
        """Nodes of a Loop over these carried values and scanned outputs, which are (name in the body, type, dims)."""
        ins = [VALUE("i", T.INT64, []), VALUE("go", T.BOOL, [])] + [VALUE(f"{n}_in", t, d) for n, t, d in carried]
        if condition == "keep":
            body_nodes = [*body_nodes, NODE("Identity", ["go"], ["go_out"])]
        outs = [VALUE("go_out", T.BOOL, [])] + [VALUE(f"{n}_out", t, d) for n, t, d in carried]
        outs += [VALUE(*s) for s in scans]
        body = graph("body", body_nodes, ins, outs)
        return NODE("Loop", ["m" if with_limit else "", "c", *(n for n, _, _ in carried)],
                    [f"{n}_last" for n, _, _ in carried] + [f"{s[0]}_all" for s in scans], body=body)

    def test_loop_with_a_limit_stacks_rows(self):
        nodes = [self.loop([NODE("Mul", ["v_in", "w"], ["s"]), NODE("Add", ["s", "v_in"], ["v_out"]),
                            NODE("Cast", ["i"], ["fi"], to=T.FLOAT), NODE("Add", ["v_out", "fi"], ["row"])],
                           [("v", T.FLOAT, ["n"])], [("row", T.FLOAT, ["n"])])]
        inputs = [VALUE("m", T.INT64, []), VALUE("c", T.BOOL, []), VALUE("v", T.FLOAT, ["n"]),
                  VALUE("w", T.FLOAT, ["n"])]
        outputs = [VALUE("v_last", T.FLOAT, ["n"]), VALUE("row_all", T.FLOAT, [None, "n"])]
        feed = lambda m, c, n: {"m": np.array(m), "c": np.array(c), "v": np.linspace(-1, 1, n, dtype=np.float32),
                                "w": np.full(n, 0.5, np.float32)}
        self.agrees(nodes, inputs, outputs, feed(5, True, 3), feed(0, True, 2), feed(3, False, 4), feed(20, True, 1))

    def test_loop_that_its_body_ends(self):
        nodes = [constant("limit", np.array(50, np.float32)),
                 self.loop([NODE("Add", ["v_in", "v_in"], ["v_out"]), NODE("ReduceSum", ["v_out"], ["sum"], keepdims=0),
                            NODE("Less", ["sum", "limit"], ["go_out"]), NODE("Neg", ["v_in"], ["row"])],
                           [("v", T.FLOAT, [2])], [("row", T.FLOAT, [2])], with_limit=False, condition="own")]
        inputs = [VALUE("c", T.BOOL, []), VALUE("v", T.FLOAT, [2])]
        outputs = [VALUE("v_last", T.FLOAT, [2]), VALUE("row_all", T.FLOAT, [None, 2])]
        v = np.array([1, 2], np.float32)
        self.agrees(nodes, inputs, outputs, {"c": np.array(True), "v": v}, {"c": np.array(False), "v": v},
                    {"c": np.array(True), "v": v * 100})

    def test_loop_that_carries_a_growing_tensor(self):
        nodes = [constant("m", np.array(3)), constant("c", np.array(True)),
                 self.loop([NODE("Concat", ["v_in", "w"], ["v_out"], axis=0)], [("v", T.FLOAT, [None, 2])], []),
                 NODE("Exp", ["v_last"], ["y"])]
        inputs = [VALUE("v", T.FLOAT, ["n", 2]), VALUE("w", T.FLOAT, [1, 2])]
        feed = {"v": np.ones((2, 2), np.float32), "w": np.zeros((1, 2), np.float32)}
        self.agrees(nodes, inputs, [VALUE("y", T.FLOAT, [None, 2])], feed)

    def test_loop_in_a_loop_and_an_if_in_it(self):
        inner = graph("inner", [NODE("Add", ["u_in", "w"], ["u_out"]), NODE("Identity", ["go2"], ["go2_out"])],
                      [VALUE("j", T.INT64, []), VALUE("go2", T.BOOL, []), VALUE("u_in", T.FLOAT, [2])],
                      [VALUE("go2_out", T.BOOL, []), VALUE("u_out", T.FLOAT, [2])])
        then = graph("t", [NODE("Loop", ["two", "", "v_in"], ["t0"], body=inner)], [], [VALUE("t0", T.FLOAT, [2])])
        other = graph("e", [NODE("Neg", ["v_in"], ["e0"])], [], [VALUE("e0", T.FLOAT, [2])])
        nodes = [constant("two", np.array(2)), constant("one", np.array(1)),
                 self.loop([NODE("Mod", ["i", "two"], ["odd"]), NODE("Equal", ["odd", "one"], ["is_odd"]),
                            NODE("If", ["is_odd"], ["v_out"], then_branch=then, else_branch=other)],
                           [("v", T.FLOAT, [2])], [])]
        inputs = [VALUE("m", T.INT64, []), VALUE("c", T.BOOL, []), VALUE("v", T.FLOAT, [2]), VALUE("w", T.FLOAT, [2])]
        feed = lambda m: {"m": np.array(m), "c": np.array(True), "v": np.array([1, 2], np.float32),
                          "w": np.array([10, 20], np.float32)}
        self.agrees(nodes, inputs, [VALUE("v_last", T.FLOAT, [2])], feed(1), feed(4), feed(7))

    def test_scan_axes_and_directions(self):
        body = graph("body", [NODE("Add", ["s_in", "a"], ["s_out"]), NODE("Mul", ["s_out", "b"], ["row"]),
                              NODE("Neg", ["a"], ["other"])],
                     [VALUE("s_in", T.FLOAT, [3]), VALUE("a", T.FLOAT, [3]), VALUE("b", T.FLOAT, [3])],
                     [VALUE("s_out", T.FLOAT, [3]), VALUE("row", T.FLOAT, [3]), VALUE("other", T.FLOAT, [3])])
        nodes = [NODE("Scan", ["s", "x", "z"], ["last", "rows", "others"], body=body, num_scan_inputs=2,
                      scan_input_axes=[1, 0],
                      scan_input_directions=[1, 0], scan_output_axes=[0, -1], scan_output_directions=[1, 0])]
        inputs = [VALUE("s", T.FLOAT, [3]), VALUE("x", T.FLOAT, [3, "t"]), VALUE("z", T.FLOAT, ["t", 3])]
        outputs = [VALUE("last", T.FLOAT, [3]), VALUE("rows", T.FLOAT, ["t", 3]), VALUE("others", T.FLOAT, [3, "t"])]
        rng = np.random.default_rng(0)
        feed = lambda t: {"s": rng.random(3, np.float32), "x": rng.random((3, t), np.float32),
                          "z": rng.random((t, 3), np.float32)}
        self.agrees(nodes, inputs, outputs, feed(4), feed(1), feed(9))

    RECURSIVE = """
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

@I.ir_module
class Module:
    @R.function
    def main(steps: R.Prim(value="k"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        k = T.int64()
        cls = Module
        if R.prim_value(k > 0):
            below: R.Tensor((2,), "float32") = cls.main(R.prim_value(k - 1), x)
            r: R.Tensor((2,), "float32") = R.add(below, R.const(1.0, "float32"))
        else:
            r: R.Tensor((2,), "float32") = x
        return r

    @R.function
    def turns(steps: R.Prim(value="k"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        k = T.int64()
        cls = Module
        if R.prim_value(k > 0):
            y: R.Tensor((2,), "float32") = R.add(x, R.const(1.0, "float32"))
            r: R.Tensor((2,), "float32") = cls.turns(R.prim_value(k - 1), y)
        else:
            r: R.Tensor((2,), "float32") = x
        return r
"""

    def test_recursion(self):
        (self.dir / "m.py").write_text(self.RECURSIVE)
        made = tool("vm-compile", self.dir / "m.py", "-o", self.dir / "m.ingot")
        self.assertEqual(made.returncode, 0, made.stderr)
        def run(entry, k, *expected):
            np.savez(self.dir / "out.npz", output=np.array(expected, np.float32))
            check = ["--expect", f"@{self.dir / 'out.npz'}"] if expected else []
            return tool("vm-run", self.dir / "m.ingot", "--entry", entry, "--input", f"steps={k}", "--input",
                        "x=2xf32=1 2", *check)

        deep = run("main", 9000, 9001, 9002)
        self.assertEqual(deep.returncode, 0, deep.stdout + deep.stderr)
        endless = run("main", 10**6)
        self.assertEqual(endless.returncode, 1)
        self.assertIn("calls nest too deep", endless.stderr)
        turns = run("turns", 10**6, 10**6 + 1, 10**6 + 2)
        self.assertEqual(turns.returncode, 0, turns.stdout + turns.stderr)

    def test_inputs_of_any_type(self):
        (self.dir / "m.py").write_text("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Any) -> R.Tensor(("n",), "float32"):
        return y
""")
        made = tool("vm-compile", self.dir / "m.py", "-o", self.dir / "m.ingot")
        self.assertEqual(made.returncode, 0, made.stderr)
        np.savez(self.dir / "out.npz", output=np.array([1, 2], np.float32))
        ran = tool("vm-run", self.dir / "m.ingot", "--input", "x=2xf32=0 0", "--input", "y=2xf32=1 2", "--expect",
                   f"@{self.dir / 'out.npz'}")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        longer = tool("vm-run", self.dir / "m.ingot", "--input", "x=2xf32=0 0", "--input", "y=3xf32=1 2 3")
        self.assertEqual(longer.returncode, 3, longer.stderr)
        self.assertIn("expected float32[n] with n = 2, got float32[3]", longer.stderr)


if __name__ == "__main__":
    unittest.main()
