"""Small ONNX models and TVMScript texts that ask the compiler for much memory, time or depth: it refuses them by name or
compiles them, and ends with a documented exit code within some seconds of the processor and some of the memory. The
files are made here.

usage: hostile_models.py BIN_DIR [NAME ...]    exits 77 (skipped) without numpy and onnx"""
import os, pathlib, resource, subprocess, sys, tempfile

try:
    import numpy as np, onnx
    from onnx import TensorProto as T, helper, numpy_helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv[1]).resolve()
SECONDS = 10
BYTES = 2 << 30
COMPILED, UNREADABLE, UNSUPPORTED = 0, 3, 8
NODE = helper.make_node


def value(name, dims, dtype=T.FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


def model(nodes, inputs, outputs=("y",), init=(), sparse=()):
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs],
                              [numpy_helper.from_array(np.array(v), k) for k, v in dict(init).items()],
                              sparse_initializer=sparse)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def dim_text(text):
    """A dim that is written as arithmetic on another."""
    return model([NODE("Identity", ["z"], ["y"])], [value("x", ["a"]), value("z", [text])])


def concat(n):
    return model([NODE("Concat", [f"x{i}" for i in range(n)], ["y"], axis=0)],
                 [value(f"x{i}", [f"s{i}"]) for i in range(n)])


def sparse(n, elements):
    tensors = [helper.make_sparse_tensor(helper.make_tensor(f"s{i}", T.FLOAT, [1], [1.0]),
                                         helper.make_tensor(f"i{i}", T.INT64, [1], [0]), [elements]) for i in range(n)]
    return model([NODE("Gather", [f"s{i}", "at"], [f"y{i}"]) for i in range(n)], [value("at", [1], T.INT64)],
                 [f"y{i}" for i in range(n)], sparse=tensors)


def windows(n, size):
    nodes = [NODE("HannWindow", ["n"], [f"t{i}"]) for i in range(n)]
    nodes += [NODE("Add", [f"t{i}", "x"], [f"y{i}"]) for i in range(n)]
    return model(nodes, [value("x", [1])], [f"y{i}" for i in range(n)], {"n": np.int64(size)})


def eye(n):
    nodes = [NODE("Expand", ["q", "s"], ["t"]), NODE("EyeLike", ["t"], ["u"]), NODE("ReduceSum", ["u"], ["y"])]
    return model(nodes, [value("x", [1])], init={"s": np.array([n, n]), "q": np.array([1.0], np.float32)})


def unique(n):
    """The different elements of a constant."""
    nodes = [NODE("Unique", ["c"], ["u", "f", "i", "n"]), NODE("Gather", ["u", "x"], ["y"])]
    return model(nodes, [value("x", [1], T.INT64)], init={"c": np.arange(n)[::-1].copy()})


def suppression(n):
    """Boxes that do not overlap, all of them constants."""
    corner = np.arange(n, dtype=np.float32)[None, :, None]
    boxes = np.concatenate([corner, corner, corner + 1, corner + 1], axis=2)
    nodes = [NODE("NonMaxSuppression", ["b", "s", "k"], ["p"]), NODE("Gather", ["p", "x"], ["y"])]
    return model(nodes, [value("x", [1], T.INT64)],
                 init={"b": boxes, "s": np.ones((1, 1, n), np.float32), "k": np.array([n])})


def places(dims):
    """Where a constant of booleans is true."""
    nodes = [NODE("NonZero", ["c"], ["p"]), NODE("Gather", ["p", "x"], ["y"])]
    return model(nodes, [value("x", [1], T.INT64)], init={"c": np.ones(dims, bool)})


def same_identifiers(n):
    """Symbols whose names differ in characters that no identifier has."""
    signs = "!#$%&'(),.:;<=>?@[]^`{|}~"
    names = ["_" + a + b + c for a in signs for b in signs for c in signs][:n]
    return model([NODE("Identity", ["x0"], ["y"])],
                 [value(f"x{i}", names[8 * i:8 * i + 8]) for i in range(n // 8)])


def zero_lengths(n):
    return model([NODE("Reshape", ["x0", "q"], [f"y{i}"]) for i in range(n)],
                 [value(f"x{i}", [0], T.INT64) for i in range(n)], ["y0"], {"q": np.array([-1])})


def relax(params, lines, result):
    body = "\n".join("        " + line for line in [*lines, f"return {result}"])
    return f'''from tvm.script import ir as I, relax as R, tir as T
@I.ir_module
class Module:
    @R.function
    def main({params}) -> R.Tensor(ndim=1, dtype="float32"):
{body}
'''


def slice_of(name, source):
    return f"{name} = R.strided_slice({source}, axes=[0], begin=[0], end=[9223372036854775807], strides=[3])"


VECTOR = 'x: R.Tensor(("n",), dtype="float32")'


def doubled(n):
    """Each dim has the one before twice."""
    lines = []
    for i in range(n):
        before = f"c{i - 1}" if i else "x"
        lines += [slice_of(f"s{i}", before), f"c{i} = R.concat((s{i}, {before}), axis=0)"]
    return relax(VECTOR, lines, f"c{n - 1}")


def slices(n):
    return relax(VECTOR, [slice_of(f"v{i}", f"v{i - 1}" if i else "x") for i in range(n)], f"v{n - 1}")


def concats(n):
    params = ", ".join(f'x{i}: R.Tensor(("n{i}",), dtype="float32")' for i in range(n))
    lines = [f"c{i} = R.concat(({f'c{i - 1}' if i > 1 else 'x0'}, x{i}), axis=0)" for i in range(1, n)]
    return relax(params, lines, f"c{n - 1}")


def tir(*lines):
    body = "\n".join("        " + line for line in lines)
    return f'''from tvm.script import ir as I, relax as R, tir as T
@I.ir_module
class Module:
    @T.prim_func
    def f(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
{body}
    @R.function
    def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
        cls = Module
        y = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
        return y
'''


LOOP = ["for i in range(4):", "    y[i] = x[i]"]
STEP = "    y[i % 4] = x[i % 4] + T.float32(1)"


def lets(n):
    return tir(*[f"v{i}: T.int32 = " + (f"v{i - 1} + 1" if i else "1") for i in range(n)], *LOOP)


def grid(n):
    return tir(f"for {', '.join(f'i{k}' for k in range(n))} in T.grid({', '.join(['2'] * n)}):", "    y[i0] = x[i0]")


def alternatives(n):
    cases = [line for k in range(n) for line in (f"    elif i == {k}:", "        y[i] = x[i]")]
    return tir("for i in range(4):", "    if i == 4:", "        y[i] = x[i]", *cases)


# What the file is, and how compiling it must end.
CASES = {
    "sum.onnx": (lambda: dim_text("a" + "+a" * 20000), {COMPILED}),
    "quotient.onnx": (lambda: dim_text("a" + "//a" * 20000), {COMPILED}),
    "short_sum.onnx": (lambda: dim_text("a" + "+a" * 400), {COMPILED}),
    "concat_20000.onnx": (lambda: concat(20000), {UNREADABLE, UNSUPPORTED}),
    "concat_2000.onnx": (lambda: concat(2000), {UNREADABLE, UNSUPPORTED}),
    "concat_300.onnx": (lambda: concat(300), {COMPILED}),
    "sparse.onnx": (lambda: sparse(5, 1 << 28), {UNSUPPORTED}),
    "small_sparse.onnx": (lambda: sparse(5, 1 << 20), {COMPILED}),
    "windows.onnx": (lambda: windows(24, 1 << 24), {UNSUPPORTED}),
    "small_windows.onnx": (lambda: windows(2, 1 << 16), {COMPILED}),
    "eye.onnx": (lambda: eye(16384), {COMPILED}),
    "unique.onnx": (lambda: unique(1 << 17), {COMPILED}),
    "large_unique.onnx": (lambda: unique(1 << 22), {COMPILED}),
    "suppression.onnx": (lambda: suppression(1000), {COMPILED}),
    "large_suppression.onnx": (lambda: suppression(50000), {COMPILED}),
    "places.onnx": (lambda: places((2,) * 5 + (1 << 15, 1, 4)), {COMPILED}),
    "large_places.onnx": (lambda: places((1 << 24,)), {COMPILED}),
    "same_identifiers.onnx": (lambda: same_identifiers(8000), {COMPILED}),
    "zero_lengths.onnx": (lambda: zero_lengths(10000), {COMPILED, UNREADABLE}),
    "doubled.py": (lambda: doubled(13), {UNREADABLE}),
    "slices.py": (lambda: slices(1000), {COMPILED}),
    "few_slices.py": (lambda: slices(20), {COMPILED}),
    "concats.py": (lambda: concats(200), {COMPILED}),
    "very_many_concats.py": (lambda: concats(1200), {UNREADABLE}),
    "lets.py": (lambda: lets(30000), {UNREADABLE}),
    "fewer_lets.py": (lambda: lets(8000), {UNREADABLE}),
    "few_lets.py": (lambda: lets(100), {COMPILED}),
    "attributes.py": (lambda: tir(*[f'T.attr(0, "k", {i})' for i in range(12000)], *LOOP), {UNREADABLE}),
    "attribute_dict.py": (lambda: tir("T.attr({" + ", ".join(f'"k{i}": 1' for i in range(12000)) + "})", *LOOP),
                          {UNREADABLE}),
    "asserts.py": (lambda: tir(*['assert x[0] == x[0], "m"'] * 30000, *LOOP), {UNREADABLE}),
    "alternatives.py": (lambda: alternatives(30000), {UNREADABLE}),
    "unrolled.py": (lambda: tir("for i in T.unroll(20000):", STEP), {COMPILED}),
    "unrolled_in_unrolled.py": (lambda: tir("for j in T.unroll(300):", "    for i in T.unroll(300):", "    " + STEP),
                                {COMPILED}),
    "vectorized.py": (lambda: tir("for i in T.vectorized(4096):", STEP), {COMPILED}),
    "grid.py": (lambda: grid(400), {UNREADABLE}),
    "small_grid.py": (lambda: grid(12), {COMPILED}),
}


def main():
    failures, slowest = [], (0.0, "")
    names = sys.argv[2:] or list(CASES)
    os.environ["INGOT_CACHE"] = "off"
    with tempfile.TemporaryDirectory(prefix="ingot-hostile-") as folder:
        for name in names:
            make, expected = CASES[name]
            path = pathlib.Path(folder, name)
            content = make()
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

            def limit():
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + 1, SECONDS + 1))
                resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))

            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            out = subprocess.run([BIN / "vm-compile", path, "-o", path.with_suffix(".ingot")], preexec_fn=limit,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            slowest = max(slowest, (seconds, name))
            said = out.stderr.decode(errors="replace")[-300:].strip()
            if sys.argv[2:]:
                print(f"{name}: {len(content)} bytes, exit code {out.returncode}, {seconds:.2f} s: {said}")
            if out.returncode not in expected or seconds > SECONDS:
                failures.append(f"{name} ({len(content)} bytes): exit code {out.returncode}, expected "
                                f"{sorted(expected)}, after {seconds:.2f} s: {said}")
    for failure in failures:
        print("FAILED", failure)
    print(f"{len(names)} files, {len(failures)} failures, the slowest {slowest[0]:.2f} s ({slowest[1]})")
    return 1 if failures else 0


sys.exit(main())
