"""Float8, float4 and integers of two and four bits: conversions from and to every other dtype, over all codes and all
sixteen-bit floats, beside ml_dtypes and ONNX's rules; quantised forms, bit casts, constants, control flow and movement
of such elements, with lengths that fill the last byte in part; and what is refused of them by name.

usage: packed_elements.py BIN_DIR    exits 77 (skipped) without numpy, ml_dtypes and onnx"""
import itertools, json, pathlib, struct, sys, tempfile, unittest

from tools import Tools

try:
    import ml_dtypes
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

np.seterr(all="ignore")
TOOL = Tools(sys.argv.pop(1))
UNSUPPORTED, BAD = 8, 3
OPSET = 26

# By ONNX's name: NumPy's dtype, the name in safetensors files (integers of less than a byte have one each there).
SMALL = {"INT2": ("int2", "I8"), "UINT2": ("uint2", "U8"), "INT4": ("int4", "I8"), "UINT4": ("uint4", "U8"),
         "FLOAT4E2M1": ("float4_e2m1fn", "F4"), "FLOAT8E4M3FN": ("float8_e4m3fn", "F8_E4M3"),
         "FLOAT8E4M3FNUZ": ("float8_e4m3fnuz", "F8_E4M3FNUZ"), "FLOAT8E5M2": ("float8_e5m2", "F8_E5M2"),
         "FLOAT8E5M2FNUZ": ("float8_e5m2fnuz", "F8_E5M2FNUZ"), "FLOAT8E8M0": ("float8_e8m0fnu", "F8_E8M0")}
OTHER = {"FLOAT": ("float32", "F32"), "FLOAT16": ("float16", "F16"), "BFLOAT16": ("bfloat16", "BF16"),
         "DOUBLE": ("float64", "F64"), "INT8": ("int8", "I8"), "UINT8": ("uint8", "U8"), "INT16": ("int16", "I16"),
         "UINT16": ("uint16", "U16"), "INT32": ("int32", "I32"), "UINT32": ("uint32", "U32"),
         "INT64": ("int64", "I64"), "UINT64": ("uint64", "U64"), "BOOL": ("bool", "BOOL")}
EVERY = {**SMALL, **OTHER}
INTEGERS = ("INT2", "UINT2", "INT4", "UINT4")
FLOAT8 = ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ")
POWERS = "FLOAT8E8M0"


def dtype_of(name):
    text = EVERY[name][0]
    return np.dtype(getattr(ml_dtypes, text, None) or text)


def bits_of(name):
    return 2 if name.endswith("INT2") else 4 if name in (*INTEGERS, "FLOAT4E2M1") else 8


def number_of(name):
    return getattr(TensorProto, name)


def all_codes(name, count=None):
    """Every element of a small dtype, as often as count asks for."""
    codes = np.arange(2 ** bits_of(name), dtype=np.uint8)
    if name in ("INT2", "INT4"):
        codes = codes.astype(dtype_of(name)).view(np.uint8)
    return np.resize(codes, count or codes.size).view(dtype_of(name))


def halves(dtype):
    return np.arange(1 << 16, dtype=np.uint16).view(dtype)


def wide(array):
    """What a file has: the dtype's name, the elements' bytes."""
    name = next(n for n, (text, _) in EVERY.items() if np.dtype(getattr(ml_dtypes, text, None) or text) == array.dtype)
    if name in INTEGERS:
        array = array.astype(np.int8 if name.startswith("I") else np.uint8)
    raw = np.ascontiguousarray(array).tobytes()
    if name == "FLOAT4E2M1":
        codes = np.frombuffer(raw + b"\0" * (len(raw) % 2), np.uint8) & 15
        raw = (codes[::2] | codes[1::2] << 4).tobytes()
    return EVERY[name][1], raw


def save(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        kind, raw = wide(array)
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load(path):
    raw = path.read_bytes()
    size, = struct.unpack_from("<Q", raw)
    names = {kind: name for name, (_, kind) in reversed(EVERY.items())} | {"I8": "INT8", "U8": "UINT8"}
    tensors = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        begin, end = entry["data_offsets"]
        part, kind, shape = raw[8 + size + begin:8 + size + end], names[entry["dtype"]], entry["shape"]
        if kind == "FLOAT4E2M1":
            pairs = np.frombuffer(part, np.uint8)
            part = np.stack([pairs & 15, pairs >> 4], -1).reshape(-1)[:int(np.prod(shape))].tobytes()
        tensors[name] = np.frombuffer(part, dtype_of(kind)).reshape(shape)
    return tensors


def same(got, expected):
    """Equal bits, but for which NaN it is and, of float4, the sign of zero that stands for NaN."""
    got, expected = got.reshape(-1), expected.reshape(-1)
    if got.dtype.kind in "iub":
        return got == expected.astype(got.dtype)
    nan = np.isnan(got.astype(np.float64)) & np.isnan(expected.astype(np.float64))
    word = np.dtype(f"u{got.itemsize}")
    return nan | (got.view(word) == expected.astype(got.dtype).view(word))


def to_powers(x, saturate, mode):
    """The specification's table, by float64 and its exponents."""
    size = np.abs(x.astype(np.float32).astype(np.float64))
    exponent = np.floor(np.log2(np.where((size > 0) & np.isfinite(size), size, 1)))
    exponent = np.where(2.0**exponent > size, exponent - 1, exponent)
    part = size / 2.0**exponent
    step = {"up": part > 1, "down": np.zeros(x.shape, bool), "nearest": part >= 1.5}[mode]
    code = exponent + step + 127
    code = np.where(size == 0, -1, np.where(np.isinf(size), 300, code))
    if saturate:
        code = np.clip(code, 0, 254)
    else:
        code = np.where((code < 0) | (code > 254) | (size < 2.0**-127), 255, code)
    return np.where(np.isnan(x.astype(np.float64)), 255, code).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)


def to_odd(x):
    """float64 as float32, the last bit set where anything was cut off, so that it can be rounded again: ml_dtypes rounds
    float64 twice."""
    near = x.astype(np.float32)
    bits = near.view(np.uint32) - (np.abs(near.astype(np.float64)) > np.abs(x)).astype(np.uint32)
    return np.where(np.isfinite(x) & (near.astype(np.float64) != x), (bits | 1).view(np.float32), near)


def cast(x, to, saturate=1, mode="up"):
    if to == POWERS:
        return to_powers(x, saturate, mode)
    dtype = dtype_of(to)
    if to.startswith("FLOAT") and x.dtype == np.float64:
        x = to_odd(x)
    if to == "FLOAT4E2M1" and x.dtype.kind not in "iub":
        return np.where(np.isnan(x.astype(np.float64)), np.float32(-0.0), x.astype(np.float32)).astype(dtype)
    if to in FLOAT8 and saturate:
        finite = ml_dtypes.finfo(dtype)
        source = x if x.dtype.kind not in "iub" else x.astype(np.float32)
        return np.where(np.isnan(source.astype(np.float64)), source,
                        np.clip(source.astype(np.float64), float(finite.min), float(finite.max)).astype(source.dtype)
                        ).astype(dtype)
    return x.astype(dtype)


def model_of(nodes, inputs, outputs, initializers=(), opset=OPSET):
    """inputs, outputs: {name: (ONNX's dtype, dims)}"""
    info = lambda named: [helper.make_tensor_value_info(n, number_of(t), d) for n, (t, d) in named.items()]
    graph = helper.make_graph(nodes, "one", info(inputs), info(outputs), list(initializers))
    return helper.make_model(graph, ir_version=11, opset_imports=[helper.make_opsetid("", opset)])


class PackedElements(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.rng = np.random.default_rng(5)

    def compile(self, model, *options):
        onnx.save(model, self.folder / "m.onnx")
        return TOOL("vm-compile", "--target", "cpu:x86-64-v3", self.folder / "m.onnx", "-o", self.folder / "m.ingot",
                    *options)

    def run_vm(self, feeds, *options):
        save(self.folder / "in.safetensors", feeds)
        ran = TOOL("vm-run", self.folder / "m.ingot", *([self.folder / "in.safetensors"] if feeds else []), "--output",
                   f"@{self.folder / 'out.safetensors'}", *options)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return load(self.folder / "out.safetensors")

    def outputs_of(self, model, feeds, *options):
        made = self.compile(model, *options)
        self.assertEqual(made.returncode, 0, made.stderr)
        return self.run_vm(feeds)

    def check(self, got, expected, what):
        self.assertEqual(got.shape, expected.shape, what)
        agrees = same(got, expected)
        if not agrees.all():
            at = int(np.argmin(agrees))
            self.fail(f"{what}: element {at} is {got.reshape(-1)[at]}, expected {expected.reshape(-1)[at]}; "
                      f"{(~agrees).sum()} of {agrees.size} differ")

    def test_every_code_is_the_number_that_it_stands_for(self):
        for name in SMALL:
            targets = ["FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE"] + (["INT8", "INT32", "INT64"] if "INT" in name else [])
            nodes = [helper.make_node("Cast", ["x"], [t], to=number_of(t)) for t in targets]
            model = model_of(nodes, {"x": (name, ["n"])}, {t: (t, ["n"]) for t in targets})
            self.assertEqual(self.compile(model).returncode, 0)
            for count in (1, 2, 3, 5, 7, 16, 257):
                x = all_codes(name, count)
                got = self.run_vm({"x": x})
                for target in targets:
                    with self.subTest(name=name, to=target, count=count):
                        self.check(got[target], x.astype(dtype_of(target)), name)

    def test_every_sixteen_bit_float_is_rounded_as_the_rules_say(self):
        for source in "FLOAT16", "BFLOAT16":
            x = halves(dtype_of(source))
            nodes, expected = [], {}
            for target in SMALL:
                # The numbers beyond 2^31 have no low bits, and float4's NaN is a zero of either sign.
                nodes.append(helper.make_node("Cast", ["x"], [target], to=number_of(target)))
                expected[target] = cast(x, target)
            for target in FLOAT8:
                nodes.append(helper.make_node("Cast", ["x"], [target + "_open"], to=number_of(target), saturate=0))
                expected[target + "_open"] = cast(x, target, saturate=0)
            for mode, saturate in itertools.product(("up", "down", "nearest"), (0, 1)):
                name = f"{POWERS}_{mode}_{saturate}"
                nodes.append(helper.make_node("Cast", ["x"], [name], to=number_of(POWERS), round_mode=mode,
                                              saturate=saturate))
                expected[name] = cast(x, POWERS, saturate, mode)
            outputs = {n: (next(s for s in sorted(SMALL, key=len, reverse=True) if n.startswith(s)), ["n"])
                       for n in expected}
            got = self.outputs_of(model_of(nodes, {"x": (source, ["n"])}, outputs), {"x": x})
            for name, wanted in expected.items():
                with self.subTest(source=source, to=name):
                    self.check(got[name], wanted, name)

    def test_other_numbers_are_rounded_once(self):
        """float32, float64 and integers: numbers halfway between two of the small ones, and those beside them."""
        ties = np.concatenate([np.sort(np.unique(all_codes(n).astype(np.float64)))[:-1] for n in SMALL if n != POWERS])
        ties = ties[np.isfinite(ties)]
        ties = np.unique(np.concatenate([ties, (ties[1:] + ties[:-1]) / 2]))
        near = np.concatenate([ties, np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf),
                               [0.0, -0.0, np.nan, np.inf]])
        integers = np.arange(-300, 300)
        for source, x in {"FLOAT": near.astype(np.float32), "DOUBLE": near, "INT8": integers.astype(np.int8),
                          "UINT8": integers.astype(np.uint8), "INT32": integers.astype(np.int32) * 1001,
                          "INT64": integers.astype(np.int64) << 30, "UINT16": integers.astype(np.uint16),
                          "BOOL": integers % 2 == 0}.items():
            targets = [t for t in SMALL if t != POWERS]
            nodes = [helper.make_node("Cast", ["x"], [t], to=number_of(t)) for t in targets]
            model = model_of(nodes, {"x": (source, ["n"])}, {t: (t, ["n"]) for t in targets})
            got = self.outputs_of(model, {"x": x})
            for target in targets:
                with self.subTest(source=source, to=target):
                    y = x.astype(np.float32) if target.startswith("FLOAT") and x.dtype.kind in "iub" else x
                    self.check(got[target], cast(y, target), target)

    def test_a_small_dtype_becomes_another_one(self):
        names = [name for name in SMALL if name != POWERS]
        for source in names:
            x = all_codes(source)
            targets = [name for name in names if name != source]
            nodes = [helper.make_node("Cast", ["x"], [t], to=number_of(t)) for t in targets]
            nodes += [helper.make_node("CastLike", ["x", t + "_like"], [t + "_too"]) for t in targets]
            likes = [numpy_helper.from_array(all_codes(t, 3), t + "_like") for t in targets]
            outputs = {t + end: (t, ["n"]) for end in ("", "_too") for t in targets}
            got = self.outputs_of(model_of(nodes, {"x": (source, ["n"])}, outputs, likes), {"x": x})
            for target in targets:
                with self.subTest(source=source, to=target):
                    expected = cast(x.astype(np.float32), target)
                    self.check(got[target], expected, "Cast")
                    self.check(got[target + "_too"], expected, "CastLike")

    def test_numbers_are_quantised_and_back(self):
        x = np.concatenate([self.rng.normal(0, 3, 58), [0.25, -0.25, 3.5, 1e6, -1e6]]).astype(np.float32).reshape(7, 9)
        for name in (*INTEGERS, "FLOAT4E2M1", *FLOAT8):
            for axis, shape in (1, ()), (0, (7,)), (1, (9,)), ("blocks", (7, 3)):
                scale = self.rng.choice([0.25, 0.5, 1, 2], shape).astype(np.float32)
                zero = (self.rng.integers(0, 2, shape) if name in INTEGERS else np.zeros(shape)).astype(dtype_of(name))
                attributes = {"axis": 1, "block_size": 3} if axis == "blocks" else {"axis": axis}
                given = [numpy_helper.from_array(scale, "scale"), numpy_helper.from_array(np.asarray(zero), "zero")]
                nodes = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], **attributes),
                         helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], **attributes)]
                types = {"q": (name, ["n", 9] if axis != 0 else [7, 9]), "y": ("FLOAT", None)}
                types["y"] = ("FLOAT", types["q"][1])
                model = model_of(nodes, {"x": ("FLOAT", types["q"][1])}, types, given, opset=25)
                with self.subTest(name=name, axis=axis):
                    expected = ReferenceEvaluator(model).run(None, {"x": x})
                    got = self.outputs_of(model, {"x": x})
                    self.check(got["q"], expected[0], "QuantizeLinear")
                    self.check(got["y"], expected[1], "DequantizeLinear")

    def test_bits_are_seen_as_another_dtype(self):
        by_width = {2: ["INT2", "UINT2"], 4: ["INT4", "UINT4", "FLOAT4E2M1"], 8: ["INT8", "UINT8", *FLOAT8, POWERS],
                    16: ["FLOAT16", "BFLOAT16", "INT16", "UINT16"], 32: ["FLOAT", "INT32", "UINT32"],
                    64: ["DOUBLE", "INT64", "UINT64"]}
        as_codes = lambda codes, name: codes.astype(dtype_of(name)) if name in ("INT2", "INT4") else codes.view(
            dtype_of(name))
        for width, names in by_width.items():
            if width <= 8:
                codes = np.arange(2**width, dtype=np.uint8)
            else:
                codes = self.rng.integers(0, 2**(width - 1), 77).astype(f"u{width // 8}")
            for source in names:
                targets = [name for name in names if name != source]
                nodes = [helper.make_node("BitCast", ["x"], [t], to=number_of(t)) for t in targets]
                model = model_of(nodes, {"x": (source, ["n", "m"])}, {t: (t, ["n", "m"]) for t in targets})
                got = self.outputs_of(model, {"x": as_codes(codes, source).reshape(1, -1)})
                for target in targets:
                    with self.subTest(source=source, to=target):
                        self.check(got[target], as_codes(codes, target).reshape(1, -1), "BitCast")
        model = model_of([helper.make_node("BitCast", ["x"], ["y"], to=number_of("INT8"))], {"x": ("INT4", [3])},
                         {"y": ("INT8", [3])})
        self.refused("int4 is not as wide as int8", model, BAD)

    def test_elements_move(self):
        """Lengths of three, five and seven: the last byte of a row, and of the whole, is filled in part."""
        for name in (*INTEGERS, "FLOAT4E2M1"):
            x, y = all_codes(name, 15).reshape(3, 5), all_codes(name, 10)[::-1].reshape(2, 5)
            constant = numpy_helper.from_array(np.ascontiguousarray(y), "c")
            ints = lambda name, *values: numpy_helper.from_array(np.array(values, np.int64), name)
            nodes = [helper.make_node("Identity", ["x"], ["same"]), helper.make_node("Transpose", ["x"], ["turned"]),
                     helper.make_node("Concat", ["x", "c"], ["joined"], axis=0),
                     helper.make_node("Slice", ["joined", "one", "end", "zero_axis"], ["part"]),
                     helper.make_node("Gather", ["x", "places"], ["rows"], axis=1),
                     helper.make_node("Reshape", ["part", "flat"], ["line"]),
                     helper.make_node("Identity", ["c"], ["given"])]
            model = model_of(nodes, {"x": (name, ["n", 5])},
                             {"same": (name, ["n", 5]), "turned": (name, [5, "n"]), "joined": (name, None),
                              "rows": (name, ["n", 3]), "line": (name, None), "given": (name, [2, 5])},
                             [constant, ints("one", 1), ints("end", 4), ints("zero_axis", 0), ints("places", 4, 0, 2),
                              ints("flat", -1)])
            with self.subTest(name=name):
                got = self.outputs_of(model, {"x": x})
                joined = np.concatenate([x, y])
                for key, wanted in {"same": x, "turned": x.T, "joined": joined, "rows": x[:, [4, 0, 2]],
                                    "line": joined[1:4].reshape(-1), "given": y}.items():
                    self.check(got[key], np.ascontiguousarray(wanted), key)
                empty = self.run_vm({"x": x[:0]})
                self.check(empty["joined"], np.ascontiguousarray(y), "no rows")

    def test_branches_and_loops_carry_them(self):
        for name in ("INT4", "UINT2", "FLOAT4E2M1"):
            with self.subTest(name=name):
                info = lambda n, dims=("n",): helper.make_tensor_value_info(n, number_of(name), list(dims))
                other = numpy_helper.from_array(all_codes(name, 5)[::-1].copy(), "other")
                branch = lambda source, n: helper.make_graph([helper.make_node("Identity", [source], [n])], n, [],
                                                             [info(n)])
                body = helper.make_graph(
                    [helper.make_node("Concat", ["carried", "x"], ["longer"], axis=0),
                     helper.make_node("Identity", ["going"], ["goes"])], "body",
                    [helper.make_tensor_value_info("trip", TensorProto.INT64, []),
                     helper.make_tensor_value_info("going", TensorProto.BOOL, []), info("carried", ("m",))],
                    [helper.make_tensor_value_info("goes", TensorProto.BOOL, []), info("longer", ("k",))])
                nodes = [helper.make_node("If", ["c"], ["chosen"], then_branch=branch("x", "a"),
                                          else_branch=branch("other", "b")),
                         helper.make_node("Loop", ["trips", "", "x"], ["grown"], body=body),
                         helper.make_node("Cast", ["chosen"], ["number"], to=TensorProto.FLOAT)]
                trips = numpy_helper.from_array(np.array(2, np.int64), "trips")
                model = model_of(nodes, {"x": (name, ["n"]), "c": ("BOOL", [])},
                                 {"chosen": (name, None), "grown": (name, None), "number": ("FLOAT", None)},
                                 [other, trips])
                x = all_codes(name, 5)
                made = self.compile(model)
                self.assertEqual(made.returncode, 0, made.stderr)
                for condition in True, False:
                    got = self.run_vm({"x": x, "c": np.array(condition)})
                    wanted = x if condition else all_codes(name, 5)[::-1].copy()
                    self.check(got["chosen"], wanted, "If")
                    self.check(got["number"], wanted.astype(np.float32), "If")
                    self.check(got["grown"], np.concatenate([x, x, x]), "Loop")

    def test_how_tools_take_and_give_them(self):
        model = model_of([helper.make_node("Identity", ["x"], ["y"])], {"x": ("INT4", ["n"])}, {"y": ("INT4", ["n"])})
        self.assertEqual(self.compile(model).returncode, 0)
        run = lambda *words: TOOL("vm-run", self.folder / "m.ingot", *words)
        ran = run("--input", "x=3xi4=-8 7 1")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("int4[3]", ran.stdout)
        self.assertIn("[-8", ran.stdout)
        np.save(self.folder / "x.npy", np.array([-8, 7, 3], np.int8))
        expect = ["--expect", f"@{self.folder / 'x.npy'}"]
        ran = run(self.folder / "x.npy", "--output", f"@{self.folder / 'y.npz'}", *expect)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        y = np.load(self.folder / "y.npz")["y"]
        self.assertEqual((y.dtype, y.tolist()), (np.int8, [-8, 7, 3]))
        made = TOOL("vm-compile", self.folder / "m.onnx", "--emit=relax", "-o", self.folder / "m.py")
        self.assertEqual(made.returncode, 0, made.stderr)
        made = TOOL("vm-compile", "--validate", self.folder / "m.py", "-o", self.folder / "m.ingot")
        self.assertEqual(made.returncode, 0, made.stderr)
        ran = run(self.folder / "x.npy", *expect)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        np.save(self.folder / "x.npy", np.array([0, 8], np.int8))
        ran = run(self.folder / "x.npy")
        self.assertEqual(ran.returncode, BAD)
        self.assertIn("element 1 of int8[2] is 8, which is no int4", ran.stderr)
        for name in ("INT4", "FLOAT4E2M1"):  # --params, and a golden case with its reference evaluation
            model = model_of([helper.make_node("Concat", ["x", "w"], ["y"], axis=0)],
                             {"x": (name, ["n"]), "w": (name, [3])}, {"y": (name, None)})
            save(self.folder / "w.safetensors", {"w": all_codes(name, 3)})
            got = self.outputs_of(model, {"x": all_codes(name, 4)}, "--params", self.folder / "w.safetensors")["y"]
            self.check(got, np.concatenate([all_codes(name, 4), all_codes(name, 3)]), "--params")
            save(self.folder / "case.safetensors", {"x": all_codes(name, 5), "w": all_codes(name, 3)})
            made = self.compile(model, "--golden", self.folder / "case.safetensors")
            self.assertEqual(made.returncode, 0, made.stderr)
            ran = run("--self-test")
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def refused(self, text, model, code=UNSUPPORTED):
        made = self.compile(model)
        self.assertEqual(made.returncode, code, made.stderr)
        self.assertIn(text, made.stderr)

    def test_what_is_refused(self):
        for name in (*INTEGERS, "FLOAT4E2M1"):
            model = model_of([helper.make_node("Add", ["x", "x"], ["y"])], {"x": (name, [3])}, {"y": (name, [3])})
            self.refused(f"elements of {EVERY[name][0]}", model)
            model = model_of([helper.make_node("SequenceConstruct", ["x"], ["s"]),
                              helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)], {"x": (name, [3])},
                             {"y": (name, [3])})
            self.refused(f"elements of {EVERY[name][0]}", model)
            model = model_of([helper.make_node("ScatterElements", ["x", "i", "x"], ["y"], reduction="add")],
                             {"x": (name, [3]), "i": ("INT64", [3])}, {"y": (name, [3])})
            self.refused(f'reduction "add" of elements of {EVERY[name][0]}', model)
        model = model_of([helper.make_node("Concat", ["x", "z"], ["y"], axis=0)],
                         {"x": ("INT4", [3]), "z": ("INT2", [3])}, {"y": ("INT4", [6])})
        self.refused("inputs of int4 and int2", model, BAD)


if __name__ == "__main__":
    unittest.main()
