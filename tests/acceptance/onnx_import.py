"""The import of ONNX models end to end: the support report, options that fix and bound dimensions and bind inputs, and
weights in other files or beyond 2 GiB.

usage: onnx_import.py BIN_DIR [TEST ...]    exits 77 (skipped) without numpy, onnx and onnxruntime"""
import json, os, pathlib, shutil, subprocess, sys, tempfile, unittest

from tools import Tools

try:
    import numpy as np, onnx, onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


tool = Tools(BIN)


def model(nodes, inputs, outputs, weights=(), opset=18):
    value = lambda v: helper.make_tensor_value_info(v[0], v[2] if len(v) > 2 else FLOAT, v[1])
    graph = helper.make_graph(nodes, "g", [value(v) for v in inputs], [value(v) for v in outputs], list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def external(name, dims, location, offset=0, length=None):
    tensor = TensorProto(name=name, data_type=FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in [("location", location), ("offset", offset), ("length", length)]:
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    return tensor


class OnnxImport(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-import-"))

    def tearDown(self):
        shutil.rmtree(self.dir)

    def save(self, proto, name="m.onnx"):
        path = self.dir / name
        path.write_bytes(proto.SerializeToString())
        return path

    def check(self, result, code, *messages):
        self.assertEqual(result.returncode, code, result.stderr)
        for message in messages:
            self.assertIn(message, result.stdout + result.stderr)

    def signature(self, path, *options):
        self.check(tool("vm-compile", *options, path, "-o", self.dir / "m.ingot"), 0)
        return tool("vm-inspect", self.dir / "m.ingot").stdout

    def test_report(self):
        nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("NoSuchOp", ["a"], ["b"], name="strange"),
                 helper.make_node("Other", ["b"], ["y"], name="custom", domain="acme")]
        proto = model(nodes, [("x", ["batch", 3])], [("y", None)])
        proto.opset_import.append(helper.make_opsetid("acme", 2))
        path = self.save(proto)
        self.check(tool("vm-compile", "--check", path), 8, "Relu x 1", "unsupported: NoSuchOp", "strange",
                   "float32[batch, 3]", "acme.Other")
        result = tool("vm-compile", "--check", "--json", "-", path)
        self.assertEqual(result.returncode, 8)
        report = json.loads(result.stdout)
        self.assertEqual([(u["op"], u["node"], u["opset"]) for u in report["unsupported"]],
                         [("NoSuchOp", "strange", 18), ("Other", "custom", 2)])
        self.check(tool("vm-compile", path, "-o", self.dir / "m.ingot"), 8, "2 operators are not supported")
        self.assertFalse((self.dir / "m.ingot").exists())

    def test_dimensions(self):
        path = self.save(model([helper.make_node("Add", ["x", "y"], ["z"])], [("x", ["n", "m"]), ("y", ["n", "m"])],
                               [("z", None)]))
        self.assertIn("float32[n, m]", self.signature(path))
        self.assertIn("float32[4, m]", self.signature(path, "--dim", "n=4"))
        self.assertIn("float32[4, 5]", self.signature(path, "--input-shape", "x=4,5"))
        self.assertIn("float32[rows, m]", self.signature(path, "--input-shape", "x=rows,?"))
        self.signature(path, "--dim", "n=1..8")
        np.savez(self.dir / "nine.npz", x=np.ones((9, 2), np.float32), y=np.ones((9, 2), np.float32))
        self.check(tool("vm-run", self.dir / "m.ingot", self.dir / "nine.npz"), 3, "9")
        for option, value, message in [("--dim", "k=4", 'no input has a symbolic dimension "k"'),
                                       ("--dim", "n=4..1", "expected"),
                                       ("--input-shape", "z=4,5", 'no input "z"'), ("--input-shape", "x=4", "rank 2")]:
            self.check(tool("vm-compile", option, value, path, "-o", self.dir / "m.ingot"), 2, message)

    def test_bound_inputs(self):
        path = self.save(model([helper.make_node("Reshape", ["x", "to"], ["y"])], [("x", [3, 4]), ("to", [2], INT64)],
                               [("y", None)]))
        self.check(tool("vm-compile", path, "-o", self.dir / "m.ingot"), 0)  # the shape comes with the call
        ran = tool("vm-run", self.dir / "m.ingot", "--input", "x=zeros", "--input", "to=2xi64=4 3", "--output",
                   f"y=@{self.dir / 'y.npy'}")
        self.check(ran, 0)
        self.assertEqual(np.load(self.dir / "y.npy").shape, (4, 3))
        np.savez(self.dir / "params.npz", to=np.array([2, -1]))
        self.assertIn("float32[2, 6]", self.signature(path, "--params", self.dir / "params.npz"))
        np.savez(self.dir / "params.npz", two=np.array([2, -1]))
        self.check(tool("vm-compile", path, "--params", self.dir / "params.npz", "-o", self.dir / "m.ingot"), 2,
                   'no input "two"')

    def with_external(self, tensor):
        nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
        return self.save(model(nodes, [("x", [4])], [("y", [4])], [tensor]))

    def test_external_data(self):
        weights = np.arange(6, dtype=np.float32)
        (self.dir / "sub").mkdir()
        (self.dir / "sub" / "w.bin").write_bytes(weights.tobytes())
        path = self.with_external(external("w", [4], "sub/w.bin", 8, 16))
        self.check(tool("vm-compile", path, "-o", self.dir / "m.ingot"), 0)
        ran = tool("vm-run", self.dir / "m.ingot", "--input", "x=4xf32=1 1 1 1", "--output", f"y=@{self.dir / 'y.npy'}")
        self.check(ran, 0)
        np.testing.assert_array_equal(np.load(self.dir / "y.npy"), weights[2:] + 1)
        # The file's folder counts, not the working directory.
        here = subprocess.run([BIN / "vm-compile", "--check", "m.onnx"], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(here.returncode, 0, here.stderr)

    def test_external_data_that_is_refused(self):
        outside = pathlib.Path(tempfile.mkdtemp(prefix="ingot-outside-"))
        self.addCleanup(shutil.rmtree, outside)
        (outside / "w.bin").write_bytes(bytes(16))
        (self.dir / "w.bin").write_bytes(bytes(16))
        os.symlink(outside / "w.bin", self.dir / "link.bin")
        os.symlink(outside, self.dir / "folder")
        os.mkfifo(self.dir / "pipe")
        for location, code in [(f"../{outside.name}/w.bin", 3), (outside / "w.bin", 3), ("a/../../w.bin", 3),
                               ("link.bin", 3), ("folder/w.bin", 3), ("pipe", 3), (".", 3), ("absent.bin", 3), ("", 3)]:
            with self.subTest(location=str(location)):
                self.check(tool("vm-compile", "--check", self.with_external(external("w", [4], str(location)))), code)
        for offset, length in [(4, 16), (2**63 - 1, 16), (-1, 16), ("0x10", 16), (0, 12), (0, 2**62), (0, -16),
                               (2**64, 16)]:
            with self.subTest(offset=offset, length=length):
                self.check(tool("vm-compile", "--check",
                                self.with_external(external("w", [4], "w.bin", offset, length))), 3)

    def test_more_than_two_gib(self):
        count = 600 * 2**20  # floats: 2.3 GiB, in a file of holes
        with open(self.dir / "w.bin", "wb") as file:
            file.truncate(4 * count)
        nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
        path = self.save(model(nodes, [("x", [1])], [("y", None)], [external("w", [count], "w.bin")]))
        self.check(tool("vm-compile", "--check", path), 0, "all operators are supported")
        # The same inside of the model: protobuf could not hold it.
        small = model(nodes, [("x", [1])], [("y", None)])
        tensor = TensorProto(name="w", data_type=FLOAT, dims=[count]).SerializeToString()

        def varint(value):
            out = bytearray()
            while value > 127:
                out.append(value & 127 | 128)
                value >>= 7
            return bytes(out + bytes([value]))

        graph = small.graph.SerializeToString()
        raw = bytes([9 << 3 | 2]) + varint(4 * count)
        initializer = bytes([5 << 3 | 2]) + varint(len(tensor) + len(raw) + 4 * count) + tensor + raw
        small.ClearField("graph")
        with open(self.dir / "large.onnx", "wb") as file:
            file.write(small.SerializeToString() + bytes([7 << 3 | 2])
                       + varint(len(graph) + len(initializer) + 4 * count))
            file.write(graph + initializer)
            file.truncate(file.tell() + 4 * count)
        self.check(tool("vm-compile", "--check", self.dir / "large.onnx"), 0, "all operators are supported")

    def test_unlike_dimensions_of_operands_are_compared(self):
        more = numpy_helper.from_array(np.ones((2, 3), np.float32), "more")
        nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Concat", ["y", "more"], ["b"], axis=0),
                 helper.make_node("Add", ["a", "b"], ["z"])]
        path = self.save(model(nodes, [("x", ["n", 3]), ("y", ["m", 3])], [("z", None)], [more]))
        self.assertIn("x: float32[n, 3], y: float32[m, 3]", self.signature(path))
        for rows, code in ((3, 0), (4, 3)):
            x, y = np.full((5, 3), -1, np.float32), np.ones((rows, 3), np.float32)
            np.savez(self.dir / "in.npz", x=x, y=y)
            np.savez(self.dir / "out.npz", z=np.ones((5, 3), np.float32))
            result = tool("vm-run", self.dir / "m.ingot", self.dir / "in.npz", "--expect", f"@{self.dir / 'out.npz'}")
            self.check(result, code, *(["expected float32[n, 3] with n = 5, got float32[6, 3]"] if code else []))

    def test_dims_that_operands_share_are_compared(self):
        node = helper.make_node
        weight = numpy_helper.from_array(np.ones((2, 2, 1, 1), np.float32), "w")
        # The node, what its inputs' dims are called, shapes that fit, shapes that do not, and what is said then.
        cases = [
            (node("MatMul", ["x", "z"], ["y"]), ["n", "k"], ["m", "p"],
             (2, 3), (3, 2), (2, 3), (2, 2), "[k, p] with k = 3"),
            (node("Gemm", ["x", "z"], ["y"], transB=1), ["n", "k"], ["m", "p"],
             (2, 3), (4, 3), (2, 3), (4, 4), "with k = 3"),
            (node("Einsum", ["x", "z"], ["y"], equation="ij,jk->ik"), ["n", "k"], ["m", "p"],
             (2, 3), (3, 2), (2, 3), (2, 2), "[k, p] with k = 3"),
            (node("Concat", ["x", "z"], ["y"], axis=0), ["n", "k"], ["m", "p"],
             (2, 3), (1, 3), (2, 3), (1, 2), "[m, k] with k = 3"),
            (node("Conv", ["x", "w"], ["y"]), ["n", "c", 1, 1], None,
             (2, 2, 1, 1), None, (2, 3, 1, 1), None, "expected float32[n, 2, 1, 1] with n = 2"),
            (node("LayerNormalization", ["x", "z"], ["y"]), ["n", "k"], ["m"],
             (2, 3), (3,), (2, 3), (2,), "[k] with k = 3"),
            ([node("SequenceConstruct", ["x", "z"], ["s"]), node("ConcatFromSequence", ["s"], ["y"], axis=0)],
             ["n", "k"], ["m", "p"], (2, 3), (1, 3), (2, 3), (1, 2), "[m, k] with k = 3"),
            (node("InstanceNormalization", ["x", "z", "z"], ["y"]), ["n", "k", 4], ["m"],
             (2, 3, 4), (3,), (2, 3, 4), (2,), "[k] with k = 3"),
        ]
        rng = np.random.default_rng(3)
        for op, x_dims, z_dims, *tensors, message in cases:
            inputs = [("x", x_dims)] + ([("z", z_dims)] if z_dims else [])
            nodes = op if isinstance(op, list) else [op]
            path = self.save(model(nodes, inputs, [("y", None)], [] if z_dims else [weight]))
            self.signature(path)
            for (x, z), code in zip((tensors[:2], tensors[2:]), (0, 3)):
                feeds = {"x": rng.standard_normal(x).astype(np.float32)}
                if z:
                    feeds["z"] = rng.standard_normal(z).astype(np.float32)
                np.savez(self.dir / "in.npz", **feeds)
                if code == 0:
                    peer = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
                    np.savez(self.dir / "out.npz", y=peer.run(None, feeds)[0])
                result = tool("vm-run", self.dir / "m.ingot", self.dir / "in.npz", "--expect",
                              f"@{self.dir / 'out.npz'}", "--rtol", "1e-4", "--atol", "1e-4")
                self.check(result, code, *([message] if code else []))

    def test_a_weight_sliced_up_to_a_dimension_bounds_it(self):
        table = numpy_helper.from_array(np.arange(32, dtype=np.float32).reshape(8, 4), "table")
        zero, axis = (numpy_helper.from_array(np.array([v]), name) for name, v in (("zero", 0), ("axis", 0)))
        nodes = [helper.make_node("Shape", ["x"], ["length"], start=0, end=1),
                 helper.make_node("Slice", ["table", "zero", "length", "axis"], ["rows"]),
                 helper.make_node("Add", ["x", "rows"], ["y"])]
        path = self.save(model(nodes, [("x", ["n", 4])], [("y", None)], [table, zero, axis]))
        self.assertIn("n: 0 to 8", self.signature(path))
        for rows, code in ((3, 0), (8, 0), (9, 3)):
            np.savez(self.dir / "in.npz", x=np.zeros((rows, 4), np.float32))
            np.savez(self.dir / "out.npz", y=np.arange(rows * 4, dtype=np.float32).reshape(rows, 4))
            result = tool("vm-run", self.dir / "m.ingot", self.dir / "in.npz", "--expect", f"@{self.dir / 'out.npz'}")
            self.check(result, code, *(["n is 9, expected 0..8"] if code else []))

    def test_peak_of_memory(self):
        nodes = [helper.make_node("Transpose", ["x"], ["a"]), helper.make_node("Softmax", ["a"], ["b"]),
                 helper.make_node("Transpose", ["b"], ["c"]), helper.make_node("Softmax", ["c"], ["y"])]
        path = self.save(model(nodes, [("x", ["n", 100])], [("y", None)]))
        text = self.signature(path)
        self.assertIn("nothing says what n is", text)
        self.assertIn("memory: arenas of n * 768 + (n + 3) // 4 * 128 bytes, results of n * 400 bytes", text)
        report = lambda *args: json.loads(tool("vm-inspect", self.dir / "m.ingot", "--json", "-", *args).stdout)
        small, large = (report("--dim", f"n={n}")["functions"][0]["memory"] for n in (10, 1000))
        self.assertEqual(report("--input-shape", "x=10,100")["functions"][0]["memory"], small)
        self.assertGreater(large["peak"], 50 * small["peak"])
        self.assertIn("float32[", large["dominated_by"])
        self.check(tool("vm-inspect", self.dir / "m.ingot", "--dim", "m=3"), 3, 'no dimension "m"')
        np.savez(self.dir / "in.npz", x=np.zeros((1000, 100), np.float32))
        self.check(tool("vm-run", self.dir / "m.ingot", self.dir / "in.npz", "--max-memory", "1000000"), 6,
                   "an arena of 800000", "of which the largest tensor at the peak is", "float32[", "limit 1000000")
        self.signature(path, "--dim", "n=1..1000")
        bounded = report()["functions"][0]["memory"]
        self.assertTrue(bounded["arenas"].isdigit())
        self.assertEqual(bounded["at"], {"n": 1000})
        self.check(tool("vm-run", self.dir / "m.ingot", self.dir / "in.npz", "--max-memory", bounded["peak"] * 2,
                        "--output", f"@{self.dir / 'y.npy'}"), 0)

    def test_options_leave_the_model_alone(self):
        path = self.save(model([helper.make_node("Relu", ["x"], ["y"])], [("x", ["n"])], [("y", None)]))
        for option in (["--target", "cpu:x86-64-v3"], ["--dim", "n=3"], ["--input-shape", "x=3"],
                       ["--print-after", "import"]):
            self.check(tool("vm-compile", *option, path, "-o", self.dir / "m.ingot"), 0)


if __name__ == "__main__":
    unittest.main()
