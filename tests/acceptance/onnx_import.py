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

    def run_beside_peer(self, proto, feeds):
        """None where the model refuses the inputs when it runs; otherwise it gives what ONNX Runtime gives."""
        np.savez(self.dir / "in.npz", **feeds)
        ran = tool("vm-run", self.dir / "m.ingot", self.dir / "in.npz", "--output", f"@{self.dir / 'out.npz'}")
        if ran.returncode != 0:
            self.assertIn(ran.returncode, (1, 3), ran.stderr)  # no crash
            return None
        session = onnxruntime.InferenceSession(proto.SerializeToString())
        [expected] = session.run(None, feeds)
        got = np.load(self.dir / "out.npz")[proto.graph.output[0].name]
        self.assertEqual(got.shape, expected.shape)
        np.testing.assert_allclose(got, expected, 1e-4, 1e-5)
        return got

    def test_open_dims(self):
        """Dims that nobody proved equal: 1 broadcasts where the operator broadcasts, all else is refused."""
        random = np.random.default_rng(7)
        f = lambda *dims: random.standard_normal(dims).astype(np.float32)
        node, ints = helper.make_node, lambda name, *v: numpy_helper.from_array(np.array(v, np.int64), name)
        attention = [("q", ["B", 2, "S", 4]), ("k", ["B", 2, "T", 4]), ("v", ["B", 2, "T", 4])]
        qkv = lambda b, s, t: dict(q=f(b, 2, s, 4), k=f(b, 2, t, 4), v=f(b, 2, t, 4))
        last = [node("Slice", ["x", "a", "b", "o"], ["l"]), node("Sub", ["x", "l"], ["y"])]
        token = [node("Expand", ["t", "ns"], ["tn"]), node("Concat", ["tn", "x"], ["c"], axis=1),
                 node("Shape", ["c"], ["cs"]), node("Slice", ["cs", "zero", "two"], ["cs2"]),
                 node("Concat", ["cs2", "rest"], ["to"], axis=0), node("Reshape", ["c", "to"], ["y"])]
        # nodes, inputs, weights, opset, inputs that are taken, inputs that are refused
        cases = {
            "add": ([node("Add", ["x", "z"], ["y"])], [("x", ["N"]), ("z", ["M"])], [], 18,
                    [dict(x=f(n), z=f(m)) for n, m in ((5, 5), (1, 5), (5, 1), (1, 1), (0, 1), (33, 33))],
                    [dict(x=f(5), z=f(4)), dict(x=f(2), z=f(4)), dict(x=f(0), z=f(4))]),
            "chain": ([node("Add", ["x", "z"], ["a"]), node("Mul", ["a", "x"], ["b"]), node("Tanh", ["b"], ["t"]),
                       node("Add", ["t", "z"], ["y"])], [("x", ["N", "K"]), ("z", ["M", "L"])], [], 18,
                      [dict(x=f(n, k), z=f(m, l)) for n, k, m, l in ((3, 19, 3, 19), (1, 19, 3, 19), (3, 1, 1, 19),
                                                                     (3, 19, 3, 1), (1, 1, 1, 1))],
                      [dict(x=f(3, 19), z=f(2, 19)), dict(x=f(3, 19), z=f(3, 18))]),
            "weight": ([node("Mul", ["x", "w"], ["y"])], [("x", ["N", "K"])], [numpy_helper.from_array(f(7), "w")], 18,
                       [dict(x=f(3, 7)), dict(x=f(3, 1))], [dict(x=f(3, 6)), dict(x=f(3, 8))]),
            "batches": ([node("MatMul", ["x", "z"], ["y"])], [("x", ["N", 3, "K"]), ("z", ["M", "L", 5])], [], 18,
                        [dict(x=f(n, 3, 6), z=f(m, 6, 5)) for n, m in ((4, 4), (1, 4), (4, 1))],
                        [dict(x=f(4, 3, 6), z=f(3, 6, 5)), dict(x=f(4, 3, 6), z=f(4, 5, 5)),
                         dict(x=f(4, 3, 6), z=f(4, 1, 5))]),
            "where": ([node("Where", ["c", "x", "z"], ["y"])],
                      [("c", ["A"], TensorProto.BOOL), ("x", ["N"]), ("z", ["M"])], [], 18,
                      [dict(c=np.arange(a) % 2 == 0, x=f(n), z=f(m)) for a, n, m in ((6, 6, 6), (1, 6, 1), (6, 1, 1),
                                                                                    (1, 1, 6))],
                      [dict(c=np.ones(5, bool), x=f(6), z=f(6)), dict(c=np.ones(6, bool), x=f(6), z=f(2))]),
            "mask": ([node("Attention", ["q", "k", "v", "m"], ["y"])], attention + [("m", ["A", 1, "S", "T"])], [], 23,
                     [dict(qkv(2, 3, 5), m=f(1, 1, 3, 5)), dict(qkv(2, 3, 5), m=f(2, 1, 3, 5)),
                      dict(qkv(200, 3, 2), m=f(1, 1, 3, 2))],
                     [dict(qkv(3, 3, 5), m=f(2, 1, 3, 5)), dict(qkv(1, 3, 5), m=f(2, 1, 3, 5))]),
            "last": (last, [("x", ["N", "S", 4])], [ints("a", -1), ints("b", 2**63 - 1), ints("o", 1)], 18,
                     [dict(x=f(2, s, 4)) for s in (5, 1, 40)], []),
            "squeeze": ([node("Slice", ["x", "z", "o", "o"], ["l"]), node("Squeeze", ["l", "o"], ["y"])],
                        [("x", ["N", "S", 4])], [ints("z", 0), ints("o", 1)], 18,
                        [dict(x=f(2, s, 4)) for s in (5, 1)], [dict(x=f(2, 0, 4))]),
            "table": ([node("Shape", ["x"], ["s"]), node("Slice", ["w", "z", "s", "z"], ["y"])], [("x", ["N"])],
                      [numpy_helper.from_array(f(8), "w"), ints("z", 0)], 18,
                      [dict(x=f(n)) for n in (3, 8, 20, 0)], []),
            "positions": ([node("Shape", ["x"], ["s"]), node("Slice", ["w", "z", "s", "z"], ["p"]),
                           node("Add", ["x", "p"], ["y"])], [("x", ["N"])],
                          [numpy_helper.from_array(f(8), "w"), ints("z", 0)], 18,
                          [dict(x=f(n)) for n in (3, 8, 1)], [dict(x=f(9))]),
            "grid": ([node("GridSample", ["x", "g"], ["y"])], [("x", ["N", 1, 4, 4]), ("g", ["M", 2, 2, "C"])], [], 18,
                     [dict(x=f(2, 1, 4, 4), g=f(2, 2, 2, 2))],
                     [dict(x=f(5000, 1, 4, 4), g=f(1, 2, 2, 2)), dict(x=f(2, 1, 4, 4), g=f(2, 2, 2, 3))]),
            "groups": ([node("Conv", ["x", "w"], ["y"], group=2)], [("x", ["N", "C", 8, 8]), ("w", ["O", "I", 3, 3])],
                       [], 18, [dict(x=f(1, 6, 8, 8), w=f(4, 3, 3, 3))],
                       [dict(x=f(1, 6, 8, 8), w=f(101, 3, 3, 3)), dict(x=f(1, 6, 8, 8), w=f(4, 2, 3, 3))]),
            "gather": ([node("GatherElements", ["x", "i"], ["y"], axis=0)],
                       [("x", ["N", "K"]), ("i", ["M", "L"], INT64)], [], 18,
                       [dict(x=f(4, 6), i=np.ones((9, 6), np.int64)), dict(x=f(4, 6), i=np.ones((2, 3), np.int64))],
                       [dict(x=f(4, 6), i=np.ones((2, 7), np.int64))]),
            "token": (token, [("x", ["N", "P", 3, 4])], [numpy_helper.from_array(f(1, 1, 3, 4), "t"), ints("rest", -1),
                                                        ints("ns", 1, 1, 3, 4), ints("zero", 0), ints("two", 2)], 18,
                      [dict(x=f(1, p, 3, 4)) for p in (5, 1)], [dict(x=f(2, 5, 3, 4))]),
        }
        for name, (nodes, inputs, weights, opset, taken, refused) in cases.items():
            proto = model(nodes, inputs, [("y", None)], weights, opset)
            path = self.save(proto)
            with self.subTest(name):
                self.check(tool("vm-compile", path, "-o", self.dir / "m.ingot"), 0)
                for feeds in taken:
                    with self.subTest(name, dims={k: v.shape for k, v in feeds.items()}):
                        self.assertIsNotNone(self.run_beside_peer(proto, feeds), "refused")
                for feeds in refused:
                    with self.subTest(name, refused={k: v.shape for k, v in feeds.items()}):
                        self.assertIsNone(self.run_beside_peer(proto, feeds), "not refused")

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

    def test_dims_that_no_tensor_has_are_bad_input(self):
        for dims in [-5], [1 << 62, 4], [1 << 32, 1 << 32], [(1 << 63) - 1]:
            weight = onnx.TensorProto(name="w", data_type=1, dims=dims, raw_data=bytes(16))
            graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g",
                                      [helper.make_tensor_value_info("x", 1, [4])],
                                      [helper.make_tensor_value_info("y", 1, [4])], [weight])
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), self.dir / "dims.onnx")
            ran = subprocess.run([BIN / "vm-compile", self.dir / "dims.onnx", "-o", self.dir / "dims.ingot"],
                                 capture_output=True, text=True)
            self.assertEqual(ran.returncode, 3, f"{dims}: {ran.stderr}")

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
            self.check(result, code, *(["dims_of_add", "dimension 0 is m + 2 = 6, expected n = 5"] if code else []))

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
             (2, 3), (3, 2), (2, 3), (2, 2), "dimension 0 is m = 2, expected k = 3"),
            (node("Concat", ["x", "z"], ["y"], axis=0), ["n", "k"], ["m", "p"],
             (2, 3), (1, 3), (2, 3), (1, 2), "[m, k] with k = 3"),
            (node("Conv", ["x", "w"], ["y"]), ["n", "c", 1, 1], None,
             (2, 2, 1, 1), None, (2, 3, 1, 1), None, "expected float32[n, 2, 1, 1] with n = 2"),
            (node("LayerNormalization", ["x", "z"], ["y"]), ["n", "k"], ["m"],
             (2, 3), (3,), (2, 3), (2,), "dimension 0 is m = 2, expected k = 3"),
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

    def test_an_initialiser_that_is_an_input_too(self):
        value = np.float32([1, 2, 4])
        path = self.save(model([helper.make_node("Add", ["x", "w"], ["y"])], [("x", ["n", 3]), ("w", [3])],
                               [("y", None)], [numpy_helper.from_array(value, "w")]))
        x, other = np.ones((2, 3), np.float32), np.float32([8, 16, 32])
        for options, feeds, want in (
                ((), {"x": x}, x + value),
                ((), {"x": x, "w": other}, None),
                (("--input-shape", "w=3"), {"x": x, "w": other}, x + other),
                (("--input-shape", "w=3"), {"x": x}, None),
                (("--params", str(self.dir / "w.npz")), {"x": x}, x + other)):
            with self.subTest(options=options, feeds=list(feeds)):
                np.savez(self.dir / "w.npz", w=other)
                np.savez(self.dir / "in.npz", **feeds)
                self.check(tool("vm-compile", path, "-o", self.dir / "m.ingot", *options), 0)
                result = tool("vm-run", self.dir / "m.ingot", self.dir / "in.npz", "--output", f"@{self.dir / 'y.npz'}")
                if want is None:
                    self.check(result, 2, '"w"')
                else:
                    self.check(result, 0)
                    np.testing.assert_array_equal(np.load(self.dir / "y.npz")["y"], want)

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
