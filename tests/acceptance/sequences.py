"""ONNX's sequences and optional values through the tools: made, changed and taken apart at fixed and at data-dependent
positions, carried through loops, chosen by branches, given and printed by vm-run; results beside ONNX Runtime's.

usage: sequences.py BIN_DIR [TEST ...]    exits 77 (skipped) without numpy, onnx and onnxruntime"""
import pathlib, sys, tempfile, unittest

try:
    import numpy as np, onnx, onnxruntime
    from onnx import TensorProto as T, helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

from tools import Tools

tool = Tools(pathlib.Path(sys.argv.pop(1)).resolve(), timeout=300)
NODE, VALUE = helper.make_node, helper.make_tensor_value_info


def sequence(name, dims=None, type=T.FLOAT):
    return helper.make_tensor_sequence_value_info(name, type, dims)


def constant(name, value):
    return NODE("Constant", [], [name], value=onnx.numpy_helper.from_array(np.asarray(value)))


def flat(name, value, empty=True):
    if empty and isinstance(value, list) and not value:
        return {name: np.empty(0, np.float32)}
    if isinstance(value, list):
        return {k: v for i, part in enumerate(value) for k, v in flat(f"{name}.{i}", part).items()}
    return {name: np.asarray(value)}


def f32(*shape):
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


class Sequences(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def build(self, nodes, inputs, outputs, opset=17):
        graph = helper.make_graph(nodes, "g", inputs, outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        onnx.save(model, self.dir / "m.onnx")
        return model

    def compile(self, *options, code=0):
        made = tool("vm-compile", *options, "--target", "cpu:x86-64-v3", self.dir / "m.onnx", "-o",
                    self.dir / "m.ingot")
        self.assertEqual(made.returncode, code, made.stderr)
        return made

    def run_with(self, feed, expected=None, code=0):
        tensors = {k: v for name, value in feed.items() for k, v in flat(name, value, empty=False).items()}
        np.savez(self.dir / "in.npz", **tensors)
        arguments = [self.dir / "in.npz"] if tensors else []
        arguments += [w for name, value in feed.items() if isinstance(value, list) and not value
                      for w in ("--input", name + "=()")]
        if expected is not None:
            np.savez(self.dir / "out.npz",
                     **{k: v for name, value in expected.items() for k, v in flat(name, value).items()})
            arguments += ["--expect", f"@{self.dir / 'out.npz'}"]
        ran = tool("vm-run", self.dir / "m.ingot", *arguments)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        return ran

    def agrees(self, nodes, inputs, outputs, *feeds, opset=17):
        self.build(nodes, inputs, outputs, opset)
        session = onnxruntime.InferenceSession(self.dir / "m.onnx", providers=["CPUExecutionProvider"])
        names = [output.name for output in outputs]
        for level in ("-O0", "-O2"):
            self.compile(level)
            for feed in feeds:
                self.run_with(feed, dict(zip(names, session.run(names, feed))))
        text = tool("vm-compile", self.dir / "m.onnx", "--emit=relax", "-o", self.dir / "t.py")
        self.assertEqual(text.returncode, 0, text.stderr)
        for source, out in (("m.onnx", "a"), ("t.py", "b")):
            made = tool("vm-compile", "--target", "cpu:x86-64-v3", self.dir / source, "-o", self.dir / out)
            self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual((self.dir / "a").read_bytes(), (self.dir / "b").read_bytes())
        return text

    def test_known_sequences_leave_nothing_behind(self):
        nodes = [constant("two", np.array(2, np.int64)), constant("last", np.array(-1, np.int64)),
                 constant("first", np.array(0, np.int64)),
                 NODE("SplitToSequence", ["x", "two"], ["s"], axis=1), NODE("SequenceAt", ["s", "last"], ["a"]),
                 NODE("SequenceInsert", ["s", "a", "first"], ["t"]), NODE("SequenceErase", ["t"], ["u"]),
                 NODE("ConcatFromSequence", ["u"], ["y"], axis=1), NODE("SequenceLength", ["u"], ["n"])]
        self.agrees(nodes, [VALUE("x", T.FLOAT, [3, 5])], [VALUE("y", T.FLOAT, None), VALUE("n", T.INT64, [])],
                    {"x": f32(3, 5)})
        shown = tool("vm-inspect", self.dir / "m.ingot", "--disasm")
        self.assertNotIn("sequence_", shown.stdout)

    def test_places_that_data_decide(self):
        nodes = [NODE("SequenceInsert", ["s", "x", "i"], ["t"]), NODE("SequenceErase", ["t", "j"], ["u"]),
                 NODE("SequenceAt", ["u", "i"], ["a"]), NODE("Exp", ["a"], ["e"]), NODE("SequenceLength", ["u"], ["n"]),
                 NODE("ConcatFromSequence", ["u"], ["c"], axis=0), NODE("SequenceInsert", ["u", "e"], ["v"])]
        inputs = [sequence("s", ["n", 2]), VALUE("x", T.FLOAT, ["k", 2]), VALUE("i", T.INT64, []),
                  VALUE("j", T.INT64, [])]
        outputs = [sequence("v"), VALUE("e", T.FLOAT, None), VALUE("n", T.INT64, []), VALUE("c", T.FLOAT, None)]
        feed = lambda i, j: {"s": [f32(1, 2), f32(3, 2)], "x": -f32(2, 2), "i": np.array(i, np.int64),
                             "j": np.array(j, np.int64)}
        self.agrees(nodes, inputs, outputs, feed(0, 2), feed(-1, 0), feed(1, -1))
        outside = self.run_with(feed(5, 0), code=3)
        self.assertIn("place 5 of a sequence of 2 elements", outside.stderr)
        ranks = self.run_with({**feed(0, 2), "s": [f32(1), f32(3, 2)]}, code=3)
        self.assertIn("builtin sequence_", ranks.stderr)

    def test_stacking(self):
        nodes = [NODE("ConcatFromSequence", ["s"], ["c"], axis=-1, new_axis=1)]
        self.agrees(nodes, [sequence("s", ["n"])], [VALUE("c", T.FLOAT, None)], {"s": [f32(3)]},
                    {"s": [f32(2), f32(2), -f32(2)]})
        differ = self.run_with({"s": [f32(2), f32(3)]}, code=3)
        self.assertIn("sequence_concat", differ.stderr)

    def test_pieces_that_data_decide(self):
        nodes = [NODE("SplitToSequence", ["x", "k"], ["s"], axis=0),
                 NODE("SplitToSequence", ["x"], ["t"], axis=0, keepdims=0)]
        inputs = [VALUE("x", T.FLOAT, ["n", 3]), VALUE("k", T.INT64, [])]
        self.agrees(nodes, inputs, [sequence("s"), sequence("t")], {"x": f32(5, 3), "k": np.array(2, np.int64)},
                    {"x": f32(4, 3), "k": np.array(9, np.int64)}, {"x": f32(1, 3), "k": np.array(1, np.int64)})
        nodes = [NODE("SplitToSequence", ["x", "k"], ["s"], axis=1)]
        inputs = [VALUE("x", T.FLOAT, [2, "n"]), VALUE("k", T.INT64, [2])]
        self.agrees(nodes, inputs, [sequence("s")], {"x": f32(2, 5), "k": np.array([2, 3])},
                    {"x": f32(2, 1), "k": np.array([1, 0])})
        self.run_with({"x": f32(2, 5), "k": np.array([2, 2])}, code=3)

    def loop(self, body_nodes, outputs, carried):
        body = helper.make_graph([NODE("Identity", ["c"], ["c2"]), *body_nodes], "b",
                                 [VALUE("i", T.INT64, []), VALUE("c", T.BOOL, []), *carried],
                                 [VALUE("c2", T.BOOL, []), *outputs])
        return body

    def test_a_loop_that_fills_a_sequence(self):
        body = self.loop([NODE("Add", ["i", "one"], ["end"]), NODE("Unsqueeze", ["end", "zero"], ["ends"]),
                          NODE("Slice", ["x", "zero", "ends"], ["part"]),
                          NODE("SequenceInsert", ["s_in", "part"], ["s_out"]),
                          NODE("Mul", ["v_in", "two"], ["v_out"])],
                         [sequence("s_out"), VALUE("v_out", T.FLOAT, [3])],
                         [sequence("s_in"), VALUE("v_in", T.FLOAT, [3])])
        nodes = [constant("one", np.array(1, np.int64)), constant("zero", np.array([0])),
                 constant("two", np.array(2, np.float32)),
                 NODE("SequenceEmpty", [], ["empty"]), NODE("Loop", ["n", "", "empty", "v"], ["s", "w"], body=body),
                 NODE("ConcatFromSequence", ["s"], ["c"], axis=0), NODE("SequenceInsert", ["s", "w"], ["all"])]
        inputs = [VALUE("x", T.FLOAT, [6]), VALUE("n", T.INT64, []), VALUE("v", T.FLOAT, [3])]
        self.agrees(nodes, inputs, [sequence("s"), VALUE("c", T.FLOAT, None), sequence("all")],
                    {"x": f32(6), "n": np.array(1, np.int64), "v": f32(3)},
                    {"x": f32(6), "n": np.array(5, np.int64), "v": f32(3)})
        empty = self.run_with({"x": f32(6), "n": np.array(0, np.int64), "v": f32(3)}, code=3)
        self.assertIn("a sequence without elements", empty.stderr)

    def test_what_a_loop_puts_in_is_not_written_again(self):
        body = self.loop([NODE("Add", ["v_in", "one"], ["v_out"]),
                          NODE("SequenceInsert", ["s_in", "v_out"], ["s_out"])],
                         [sequence("s_out", [4]), VALUE("v_out", T.FLOAT, [4])],
                         [sequence("s_in", [4]), VALUE("v_in", T.FLOAT, [4])])
        nodes = [constant("one", np.array(1, np.float32)), NODE("SequenceEmpty", [], ["empty"]),
                 NODE("Loop", ["n", "", "empty", "v"], ["s", "w"], body=body), NODE("Neg", ["w"], ["m"])]
        inputs = [VALUE("n", T.INT64, []), VALUE("v", T.FLOAT, [4])]
        self.agrees(nodes, inputs, [sequence("s"), VALUE("m", T.FLOAT, [4])], {"n": np.array(4, np.int64), "v": f32(4)})

    def test_a_loop_over_the_elements(self):
        body = self.loop([NODE("SequenceAt", ["s", "i"], ["e"]), NODE("ReduceSum", ["e"], ["sum"], keepdims=0),
                          NODE("Add", ["a_in", "sum"], ["a_out"])],
                         [VALUE("a_out", T.FLOAT, [])], [VALUE("a_in", T.FLOAT, [])])
        nodes = [NODE("SequenceLength", ["s"], ["n"]), constant("zero", np.array(0, np.float32)),
                 NODE("Loop", ["n", "", "zero"], ["y"], body=body)]
        self.agrees(nodes, [sequence("s", ["k"])], [VALUE("y", T.FLOAT, [])], {"s": [f32(3), f32(1), f32(5)]},
                    {"s": [f32(2)]})
        self.run_with({"s": []}, {"y": np.array(0, np.float32)})

    def test_branches(self):
        then = helper.make_graph([NODE("SequenceConstruct", ["x", "x"], ["t"])], "t", [], [sequence("t")])
        other = helper.make_graph([NODE("Neg", ["x"], ["m"]), NODE("SequenceConstruct", ["m"], ["e"])], "e", [],
                                  [sequence("e")])
        nodes = [NODE("If", ["c"], ["s"], then_branch=then, else_branch=other),
                 NODE("SequenceAt", ["s", "last"], ["y"]),
                 NODE("SequenceLength", ["s"], ["n"])]
        nodes.insert(0, constant("last", np.array(-1, np.int64)))
        inputs = [VALUE("c", T.BOOL, []), VALUE("x", T.FLOAT, ["k"])]
        self.agrees(nodes, inputs, [sequence("s"), VALUE("y", T.FLOAT, None), VALUE("n", T.INT64, [])],
                    {"c": np.array(True), "x": f32(3)}, {"c": np.array(False), "x": f32(2)})

    def optional(self, name, dims, type=T.FLOAT):
        return helper.make_value_info(name, helper.make_optional_type_proto(helper.make_tensor_type_proto(type, dims)))

    def test_optional_tensors(self):
        then = helper.make_graph([NODE("OptionalGetElement", ["o"], ["t"])], "t", [], [VALUE("t", T.FLOAT, None)])
        other = helper.make_graph([NODE("Identity", ["x"], ["e"])], "e", [], [VALUE("e", T.FLOAT, None)])
        nodes = [NODE("OptionalHasElement", ["o"], ["has"]),
                 NODE("If", ["has"], ["y"], then_branch=then, else_branch=other)]
        self.build(nodes, [self.optional("o", [None]), VALUE("x", T.FLOAT, ["n"])],
                   [VALUE("y", T.FLOAT, None), VALUE("has", T.BOOL, [])], opset=18)
        self.compile()
        self.run_with({"o": [f32(3)], "x": -f32(2)}, {"y": f32(3), "has": np.array(True)})
        self.run_with({"o": [], "x": -f32(2)}, {"y": -f32(2), "has": np.array(False)})
        self.build([NODE("OptionalGetElement", ["o"], ["y"])], [self.optional("o", [None])],
                   [VALUE("y", T.FLOAT, None)], opset=18)
        self.compile()
        none = self.run_with({"o": []}, code=3)
        self.assertIn("place 0 of a sequence of 0 elements", none.stderr)

    def test_sequence_map(self):
        body = helper.make_graph([NODE("Mul", ["a", "f"], ["p"]), NODE("ReduceMax", ["p"], ["q"], keepdims=0)], "b",
                                 [VALUE("a", T.FLOAT, ["k"]), VALUE("f", T.FLOAT, [])],
                                 [VALUE("p", T.FLOAT, None), VALUE("q", T.FLOAT, None)])
        nodes = [NODE("SequenceMap", ["s", "g"], ["ps", "qs"], body=body)]
        self.build(nodes, [sequence("s", ["k"]), VALUE("g", T.FLOAT, [])], [sequence("ps"), sequence("qs")])
        self.compile()
        s = [f32(3), -f32(2)]
        expected = [2 * part for part in s]
        self.run_with({"s": s, "g": np.array(2, np.float32)}, {"ps": expected, "qs": [part.max() for part in expected]})

    def test_values_on_the_command_line(self):
        self.build([NODE("SequenceInsert", ["s", "x"], ["t"])], [sequence("s"), VALUE("x", T.FLOAT, ["n"])],
                   [sequence("t")])
        self.compile()
        given = ["--input", "s.1=f32=7", "--input", "s.0=2xf32=1 2", "--input", "x=1xf32=5"]
        ran = tool("vm-run", self.dir / "m.ingot", *given)
        self.assertEqual(ran.stdout, "t.0: float32[2]\n[1. 2.]\nt.1: float32[]\n7.0\nt.2: float32[1]\n[5.]\n")
        written = tool("vm-run", self.dir / "m.ingot", *given, "--output", f"@{self.dir / 'o.npz'}")
        self.assertEqual(written.returncode, 0, written.stderr)
        self.assertEqual(sorted(np.load(self.dir / "o.npz")), ["t.0", "t.1", "t.2"])
        timed = tool("vm-bench", self.dir / "m.ingot", *given, "--iters", "2")
        self.assertEqual(timed.returncode, 0, timed.stderr)
        for wrong, message in ((["--input", "s.1=f32=7"], "element 0 is missing before element 1"),
                               (["--input", "s=()", "--input", "s.0=f32=1"], "given twice"),
                               ([], 'no value for input "s"')):
            ran = tool("vm-run", self.dir / "m.ingot", *wrong, "--input", "x=1xf32=5")
            self.assertEqual(ran.returncode, 2, ran.stderr)
            self.assertIn(message, ran.stderr)
        whole = tool("vm-run", self.dir / "m.ingot", "--input", "s=f32=7", "--input", "x=1xf32=5")
        self.assertEqual(whole.returncode, 3)
        self.assertIn("expected a sequence, got float32[]", whole.stderr)
        np.savez(self.dir / "short.npz", **{"t.0": f32(2)})
        differs = tool("vm-run", self.dir / "m.ingot", *given, "--expect", f"@{self.dir / 'short.npz'}")
        self.assertEqual(differs.returncode, 1)
        self.assertIn("expected 1 tensors, got 3", differs.stderr)
        self.build([NODE("SequenceEmpty", [], ["t"])], [], [sequence("t")])
        self.compile()
        self.assertEqual(tool("vm-run", self.dir / "m.ingot").stdout, "t: ()\n")

    def test_an_expected_sequence_without_elements(self):
        self.build([NODE("SequenceErase", ["s"], ["t"])], [sequence("s")], [sequence("t")])
        self.compile()
        self.run_with({"s": [f32(2)]}, {"t": []})
        written = tool("vm-run", self.dir / "m.ingot", "--input", "s.0=f32=7", "--output", f"@{self.dir / 'o.npz'}")
        self.assertEqual((written.returncode, np.load(self.dir / "o.npz")["t"].shape), (0, (0,)), written.stderr)
        left = self.run_with({"s": [f32(2), f32(2)]}, {"t": []}, code=1)
        self.assertIn('output "t": expected 0 tensors, got 1', left.stderr)
        missing = self.run_with({"s": [f32(2)]}, {"t": [f32(2)]}, code=1)
        self.assertIn('output "t": expected 1 tensors, got 0', missing.stderr)


if __name__ == "__main__":
    unittest.main()
