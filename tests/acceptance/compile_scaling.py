"""Compile time over the size of the model: each family of models (operators of very many inputs or outputs, long
chains, diamonds, wide graphs, control flow in rows and in depth, many weights, symbols and functions) is compiled at n,
2n and 4n. The time must grow about as the graph does: an exponent that is clearly above 1 fails, as do crashes,
refusals, and executables that the loader refuses. Further models declare tensors of 2^31 and more elements, or of rank
8; compiling them must take neither the memory nor the time of such tensors.

usage: compile_scaling.py BIN_DIR [--full] [--only NAME] [--report FILE]    exits 77 (skipped) without numpy and onnx

Times are processor times of the compiler, so that other work on the machine matters little. The short form
takes small sizes; --full takes those that real exporters reach: 1,000 inputs or outputs and 100,000 nodes. --report
writes the families' rows as a table in Markdown, which tests/README.md has."""
import os, pathlib, resource, subprocess, sys, tempfile, time

try:
    import numpy as np, onnx
    from onnx import TensorProto as T, helper, numpy_helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

NODE = helper.make_node
I64 = lambda *values: np.array(values, np.int64)
# An exponent of 1.5 from n to 4n is eight times the time: clearly worse than linear, above what noise makes of 4.
LARGEST_EXPONENT = 1.5
# Below this many seconds (less the time of the smallest model) fixed costs hide the growth.
SMALLEST_SECONDS = 0.8
LARGEST_MEMORY = 8 << 30
TIMEOUT = {False: 120, True: 570}
# What vm-compile still refuses, by name. Each must fail, so that the list shrinks.
REFUSED = {}


def value(name, dims, dtype=T.FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


def model(nodes, inputs, outputs, init=None, opset=17):
    graph = helper.make_graph(nodes, "g", [value(k, d) if not isinstance(d, onnx.ValueInfoProto) else d
                                           for k, d in inputs.items()],
                              [onnx.ValueInfoProto(name=o) for o in outputs],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in (init or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def many_inputs(op, dims, **attrs):
    return lambda n: model([NODE(op, [f"x{i}" for i in range(n)], ["y"], **attrs)],
                           {f"x{i}": dims for i in range(n)}, ["y"])


def concat_symbols(n):
    """Each input has a symbol of its own along the axis: the result's extent is the sum of them all."""
    return model([NODE("Concat", [f"x{i}" for i in range(n)], ["c"], axis=0), NODE("Relu", ["c"], ["y"])],
                 {f"x{i}": [f"N{i}", 2] for i in range(n)}, ["y"])


def split(n):
    return model([NODE("Split", ["x"], [f"y{i}" for i in range(n)], axis=0, num_outputs=n)], {"x": [n * 2, 3]},
                 [f"y{i}" for i in range(n)], opset=18)


def split_sum(n):
    return model([NODE("Split", ["x"], [f"t{i}" for i in range(n)], axis=1, num_outputs=n),
                  NODE("Sum", [f"t{i}" for i in range(n)], ["y"])], {"x": ["N", n * 2]}, ["y"], opset=18)


def split_concat(n):
    return model([NODE("Split", ["x"], [f"t{i}" for i in range(n)], axis=1, num_outputs=n),
                  NODE("Concat", [f"t{i}" for i in reversed(range(n))], ["y"], axis=1)], {"x": ["N", n * 2]}, ["y"],
                 opset=18)


def slices_concat(n):
    nodes, init = [], {"o": I64(1)}
    for i in range(n):
        init.update({f"b{i}": I64(i), f"e{i}": I64(i + 1)})
        nodes.append(NODE("Slice", ["x", f"b{i}", f"e{i}", "o"], [f"t{i}"]))
    return model(nodes + [NODE("Concat", [f"t{i}" for i in range(n)], ["y"], axis=1)], {"x": ["N", n]}, ["y"], init)


def chain(*ops):
    """Element-wise operators one after the other."""
    def build(n):
        names = ["x"] + [f"t{i}" for i in range(n - 1)] + ["y"]
        return model([NODE(ops[i % len(ops)], [names[i]], [names[i + 1]]) for i in range(n)], {"x": ["N", 4]}, ["y"])
    return build


def diamonds(op, function="Tanh"):
    """v + f(v): as a tree its size doubles at each step."""
    def build(n):
        nodes, v = [], "x"
        for i in range(n):
            nodes += [NODE(function, [v], [f"t{i}"]), NODE(op, [f"t{i}", v], [f"a{i}"])]
            v = f"a{i}"
        return model(nodes, {"x": ["N", 4]}, [v])
    return build


def residual_matmuls(n):
    nodes, v = [], "x"
    for i in range(n):
        nodes += [NODE("MatMul", [v, "w"], [f"m{i}"]), NODE("Relu", [f"m{i}"], [f"r{i}"]),
                  NODE("Add", [f"r{i}", v], [f"a{i}"])]
        v = f"a{i}"
    return model(nodes, {"x": ["N", 8]}, [v], {"w": np.ones((8, 8), np.float32)})


def dense_net(n):
    """Each layer reads all before it, through a concatenation that grows."""
    nodes, v = [], "x"
    for i in range(n):
        nodes += [NODE("MatMul", [v, f"w{i}"], [f"m{i}"]), NODE("Concat", [v, f"m{i}"], [f"c{i}"], axis=1)]
        v = f"c{i}"
    return model(nodes, {"x": ["N", 4]}, [v], {f"w{i}": np.ones((4 + i, 1), np.float32) for i in range(n)})


def wide(n):
    nodes = []
    for i in range(n):
        nodes += [NODE("Mul", ["x", f"w{i}"], [f"m{i}"]), NODE("Tanh", [f"m{i}"], [f"t{i}"])]
    return model(nodes + [NODE("Sum", [f"t{i}" for i in range(n)], ["y"])], {"x": ["N", 4]}, ["y"],
                 {f"w{i}": np.full(4, i, np.float32) for i in range(n)})


def wide_outputs(n):
    return model([NODE("Tanh" if i % 2 else "Exp", ["x"], [f"y{i}"]) for i in range(n)], {"x": ["N", 4]},
                 [f"y{i}" for i in range(n)])


def separate(n):
    """As many inputs and outputs as nodes."""
    return model([NODE("Tanh", [f"x{i}"], [f"y{i}"]) for i in range(n)], {f"x{i}": [3, 2] for i in range(n)},
                 [f"y{i}" for i in range(n)])


def initialisers(n):
    nodes, v = [], "x"
    for i in range(n):
        nodes.append(NODE("Add", [v, f"w{i}"], [f"a{i}"]))
        v = f"a{i}"
    return model(nodes, {"x": ["N", 32]}, [v], {f"w{i}": np.full(32, i, np.float32) for i in range(n)})


def constants_alone(n):
    """What folds away."""
    nodes, v = [], "w"
    for i in range(n):
        nodes.append(NODE("Add", [v, "w"], [f"a{i}"]))
        v = f"a{i}"
    return model(nodes + [NODE("Add", ["x", v], ["y"])], {"x": ["N", 4]}, ["y"], {"w": np.ones(4, np.float32)})


def symbols(n):
    return model([NODE("Relu", [f"x{i}"], [f"y{i}"]) for i in range(n)], {f"x{i}": [f"N{i}", 4] for i in range(n)},
                 [f"y{i}" for i in range(n)])


def unlike_pairs(n):
    """Each sum has two symbols of its own, which nothing proves equal: n comparisons at run time."""
    inputs = {f"{x}{i}": [f"{x}{i}", 4] for i in range(n) for x in "ab"}
    return model([NODE("Add", [f"a{i}", f"b{i}"], [f"y{i}"]) for i in range(n)], inputs, [f"y{i}" for i in range(n)])


def unlike_alive(n):
    """n tensors of unlike symbolic sizes are alive at the same time."""
    nodes = [NODE("Softmax", [f"x{i}"], [f"s{i}"]) for i in range(n)]
    nodes += [NODE("Softmax", [f"s{i}"], [f"y{i}"], axis=0) for i in reversed(range(n))]
    return model(nodes, {f"x{i}": [f"N{i}", 4] for i in range(n)}, [f"y{i}" for i in range(n)])


def data_dependent(n):
    """Each extent is a symbol that the data decide."""
    nodes, v = [], "x"
    for i in range(n):
        nodes += [NODE("Compress", [v, "c"], [f"c{i}"], axis=0), NODE("Tanh", [f"c{i}"], [f"t{i}"])]
        v = f"t{i}"
    return model(nodes, {"x": ["N", 4], "c": value("c", ["M"], T.BOOL)}, [v])


def broadcasts(n):
    """A sum of n tensors whose extents may each be 1, one after the other."""
    nodes, v = [], "x0"
    for i in range(1, n + 1):
        nodes.append(NODE("Add", [v, f"x{i}"], [f"a{i}"]))
        v = f"a{i}"
    return model(nodes, {f"x{i}": [f"N{i}", 4] for i in range(n + 1)}, [v])


def shape_chain(n):
    """Reshapes by computed shapes, one after the other."""
    nodes, v = [], "x"
    for i in range(n):
        nodes += [NODE("Shape", [v], [f"s{i}"]), NODE("Gather", [f"s{i}", "k"], [f"g{i}"]),
                  NODE("Concat", [f"g{i}", "m"], [f"c{i}"], axis=0), NODE("Reshape", [v, f"c{i}"], [f"r{i}"]),
                  NODE("Tanh", [f"r{i}"], [f"t{i}"])]
        v = f"t{i}"
    return model(nodes, {"x": ["N", 2, 4]}, [v], {"k": I64(0), "m": I64(-1)})


def growing(n):
    """Concatenations whose symbolic extent grows: (i + 1) * N."""
    nodes, v = [], "x"
    for i in range(n):
        nodes += [NODE("Concat", [v, "x"], [f"c{i}"], axis=0), NODE("Relu", [f"c{i}"], [f"r{i}"])]
        v = f"r{i}"
    return model(nodes, {"x": ["N", 2]}, [v])


def halves(n):
    """Pooling that halves a symbolic extent each time: floor((floor((N + 1) / 2) + 1) / 2) and so on."""
    nodes, v = [], "x"
    for i in range(n):
        nodes += [NODE("MaxPool", [v], [f"p{i}"], kernel_shape=[3], strides=[2], pads=[1, 1]),
                  NODE("Relu", [f"p{i}"], [f"r{i}"])]
        v = f"r{i}"
    return model(nodes, {"x": [1, 2, "N"]}, [v])


def branch(name, op, read):
    return helper.make_graph([NODE(op, [read], [name])], name, [], [value(name, None)])


def ifs(n):
    nodes, v = [], "x"
    for i in range(n):
        nodes.append(NODE("If", ["c"], [f"a{i}"], then_branch=branch(f"t{i}", "Neg", v),
                          else_branch=branch(f"e{i}", "Relu", v)))
        v = f"a{i}"
    return model(nodes, {"x": ["N", 4], "c": value("c", [], T.BOOL)}, [v])


def deep_ifs(n):
    graph = branch("t0", "Neg", "x")
    for i in range(1, n):
        node = NODE("If", ["c"], [f"t{i}"], then_branch=graph, else_branch=branch(f"e{i}", "Relu", "x"))
        graph = helper.make_graph([node], f"b{i}", [], [value(f"t{i}", None)])
    node = NODE("If", ["c"], ["y"], then_branch=graph, else_branch=branch("e", "Relu", "x"))
    return model([node], {"x": ["N", 4], "c": value("c", [], T.BOOL)}, ["y"])


def loop_body(i, inner):
    nodes = [NODE("Identity", [f"c{i}"], [f"d{i}"])]
    nodes += inner or [NODE("Tanh", [f"v{i}"], [f"w{i}"])]
    return helper.make_graph(nodes, f"body{i}", [value(f"i{i}", [], T.INT64), value(f"c{i}", [], T.BOOL),
                                                 value(f"v{i}", None)],
                             [value(f"d{i}", [], T.BOOL), value(f"w{i}", None)])


def loops(n):
    nodes, v = [], "x"
    for i in range(n):
        nodes.append(NODE("Loop", ["m", "t", v], [f"a{i}"], body=loop_body(i, None)))
        v = f"a{i}"
    return model(nodes, {"x": ["N", 4], "m": value("m", [], T.INT64)}, [v], {"t": np.array(True)})


def deep_loops(n):
    inner = None
    for i in range(n):
        body = loop_body(i, inner)
        inner = [NODE("Loop", ["m", "t", f"v{i + 1}" if i + 1 < n else "x"], [f"w{i + 1}" if i + 1 < n else "y"],
                      body=body)]
    return model(inner, {"x": ["N", 4], "m": value("m", [], T.INT64)}, ["y"], {"t": np.array(True)})


def transposes(n):
    nodes, v = [], "x"
    for i in range(n):
        nodes += [NODE("Transpose", [v], [f"t{i}"], perm=[1, 0]), NODE("Softmax", [f"t{i}"], [f"s{i}"])]
        v = f"s{i}"
    return model(nodes, {"x": ["N", "N"]}, [v])


def convolutions(n):
    nodes, v = [], "x"
    for i in range(n):
        nodes += [NODE("Conv", [v, "w"], [f"c{i}"], pads=[1, 1, 1, 1]), NODE("Add", [f"c{i}", v], [f"r{i}"]),
                  NODE("Relu", [f"r{i}"], [f"a{i}"])]
        v = f"a{i}"
    return model(nodes, {"x": [1, 16, 8, 8]}, [v], {"w": np.ones((16, 16, 3, 3), np.float32)})


def sequence(n):
    return model([NODE("SequenceConstruct", [f"x{i}" for i in range(n)], ["s"]),
                  NODE("ConcatFromSequence", ["s"], ["y"], axis=0)], {f"x{i}": [2, 2] for i in range(n)}, ["y"])


def einsum_symbols(n):
    """Unlike functions: each product has a width of its own."""
    nodes = [NODE("MatMul", ["x", f"w{i}"], [f"y{i}"]) for i in range(n)]
    return model(nodes, {"x": ["N", 4]}, [f"y{i}" for i in range(n)],
                 {f"w{i}": np.ones((4, 100 + i), np.float32) for i in range(n)})


# Columns: name, n of the short form, n of the full form (0: not part of it), model. Measured at n, 2n and 4n.
FAMILIES = [
    ("Concat of n inputs", 64, 250, many_inputs("Concat", [1, 2], axis=0)),
    ("Concat of n inputs, last axis", 0, 250, many_inputs("Concat", ["N", 2], axis=1)),
    ("Concat of n symbols", 16, 200, concat_symbols),  # a formula nests at most 1,000 deep
    ("Sum of n inputs", 64, 250, many_inputs("Sum", ["N", 2])),
    ("Max of n inputs", 64, 250, many_inputs("Max", [2, 3])),
    ("Mean of n inputs", 0, 250, many_inputs("Mean", [2, 3])),
    ("Split into n", 64, 250, split),
    ("Split into n, Sum", 50, 250, split_sum),
    ("Split into n, Concat", 64, 250, split_concat),
    ("n Slices, Concat", 64, 250, slices_concat),
    ("sequence of n", 64, 250, sequence),
    ("chain of n Tanh, Relu", 500, 25000, chain("Tanh", "Relu")),
    ("chain of n Softmax", 500, 25000, chain("Softmax")),
    ("chain of n Softmax, Tanh, Exp", 0, 25000, chain("Softmax", "Tanh", "Exp")),
    ("n diamonds v + tanh(v)", 20, 250, diamonds("Add")),
    ("n diamonds v * tanh(v)", 0, 250, diamonds("Mul")),
    ("n diamonds v * sin(v)", 8, 100, diamonds("Mul", "Sin")),  # a sine branches, so that copies of it are not joined
    ("n residual products", 100, 5000, residual_matmuls),
    ("n residual convolutions", 25, 1000, convolutions),
    ("n Transposes, Softmax", 100, 5000, transposes),
    ("dense net of n", 10, 50, dense_net),
    ("n branches, Sum", 50, 250, wide),
    ("n outputs", 64, 250, wide_outputs),
    ("n inputs, n outputs", 64, 250, separate),
    ("n initialisers", 100, 5000, initialisers),
    ("n constants folded", 100, 5000, constants_alone),
    ("n symbols", 32, 250, symbols),
    ("n unlike pairs", 64, 250, unlike_pairs),
    ("n unlike extents alive", 32, 250, unlike_alive),
    ("n extents by data", 32, 1000, data_dependent),
    ("n broadcasts in a row", 2, 2, broadcasts),
    ("n computed shapes", 50, 1000, shape_chain),
    ("n growing extents", 8, 50, growing),
    ("n halved extents", 3, 8, halves),
    ("n Ifs in a row", 50, 1000, ifs),
    ("Ifs n deep", 5, 7, deep_ifs),
    ("n Loops in a row", 25, 250, loops),
    ("Loops n deep", 3, 7, deep_loops),
    ("n unlike products", 5, 50, einsum_symbols),
]


def large(op, dims, *constants, opset=17, outputs=1, **attrs):
    init = {f"k{i}": c for i, c in enumerate(constants)}
    return lambda: model([NODE(op, ["x", *init], [f"y{i}" for i in range(outputs)], **attrs)], {"x": dims},
                         [f"y{i}" for i in range(outputs)], init, opset)


def filled(dims):
    return lambda: model([NODE("ConstantOfShape", ["s"], ["c"]), NODE("Add", ["x", "c"], ["y"])], {"x": dims}, ["y"],
                         {"s": I64(*dims)})


BIG, WIDE = 2**31, [2**16, 2**15]
EIGHT = [2, 3, 2, 3, 2, 3, 2, 3]
# Compiled alone: 2^31 elements that nobody may allocate, and rank 8.
SINGLE = [
    ("2^31: Relu", large("Relu", [BIG])),
    ("2^31: Transpose", large("Transpose", WIDE, perm=[1, 0])),
    ("2^31: Reshape", large("Reshape", WIDE, I64(-1))),
    ("2^31: ReduceSum", large("ReduceSum", WIDE, I64(1))),
    ("2^31: Softmax", large("Softmax", WIDE)),
    ("2^31: Expand", lambda: model([NODE("Expand", ["x", "s"], ["y"])], {"x": [1, 1]}, ["y"], {"s": I64(*WIDE)})),
    ("2^31: Tile", lambda: model([NODE("Tile", ["x", "s"], ["y"])], {"x": [1, 4]}, ["y"], {"s": I64(2**20, 2**10)})),
    ("2^31: filled, added", filled(WIDE)),
    ("2^31: filled alone", lambda: model([NODE("ConstantOfShape", ["s"], ["c"]), NODE("Relu", ["c"], ["r"]),
                                          NODE("ReduceSum", ["r"], ["t"], keepdims=0), NODE("Add", ["x", "t"], ["y"])],
                                         {"x": [2]}, ["y"], {"s": I64(*WIDE)})),
    ("2^31: a weight expanded", lambda: model([NODE("Expand", ["w", "s"], ["e"]), NODE("MatMul", ["x", "e"], ["y"])],
                                              {"x": [4, 2**16]}, ["y"], {"w": np.ones((1, 1), np.float32),
                                                                         "s": I64(*WIDE)})),
    ("2^31: Range", lambda: model([NODE("Range", ["a", "b", "o"], ["r"]), NODE("Gather", ["r", "i"], ["y"])],
                                  {"i": value("i", [3], T.INT64)}, ["y"],
                                  {"a": np.int64(0), "b": np.int64(BIG), "o": np.int64(1)})),
    ("2^31: Concat", lambda: model([NODE("Concat", ["x", "x"], ["y"], axis=0)], {"x": WIDE}, ["y"])),
    ("2^31: Slice", large("Slice", WIDE, I64(1), I64(5), I64(0))),
    ("2^31: Gather", large("Gather", WIDE, I64(1, 5))),
    ("2^31: Pad", large("Pad", WIDE, I64(1, 1, 1, 1))),
    ("2^31: MatMul", lambda: model([NODE("MatMul", ["x", "w"], ["y"])], {"x": WIDE, "w": [2**15, 2**16]}, ["y"])),
    ("2^31: Conv", lambda: model([NODE("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])], {"x": [1, 16, 2**14, 2**13]},
                                 ["y"], {"w": np.ones((16, 16, 3, 3), np.float32)})),
    ("2^31: MaxPool", large("MaxPool", [1, 16, 2**14, 2**13], kernel_shape=[2, 2], strides=[2, 2])),
    ("2^31: Resize", lambda: model([NODE("Resize", ["x", "", "s"], ["y"], mode="linear")], {"x": [1, 1, 2**15, 2**14]},
                                   ["y"], {"s": np.float32([1, 1, 2, 2])})),
    ("2^31: CumSum", large("CumSum", WIDE, np.int64(1))),
    ("2^31: TopK", large("TopK", WIDE, I64(5), outputs=2)),
    ("2^31: OneHot", lambda: model([NODE("OneHot", ["x", "n", "v"], ["y"])], {"x": value("x", [2**15], T.INT64)}, ["y"],
                                   {"n": np.int64(2**16), "v": np.float32([0, 1])})),
    ("2^31: EyeLike", large("EyeLike", [2**16, 2**15])),
    ("2^31: Trilu", large("Trilu", [2**16, 2**15])),
    ("rank 8: Tanh", large("Tanh", EIGHT)),
    ("rank 8: Transpose", large("Transpose", EIGHT, perm=[7, 0, 6, 1, 5, 2, 4, 3])),
    ("rank 8: ReduceMean", large("ReduceMean", EIGHT, axes=[0, 3, 6])),
    ("rank 8: Softmax", large("Softmax", EIGHT, axis=3)),
    ("rank 8: Concat", lambda: model([NODE("Concat", ["x", "x", "x"], ["y"], axis=5)], {"x": EIGHT}, ["y"])),
    ("rank 8: Add", lambda: model([NODE("Add", ["x", "w"], ["y"])], {"x": list("abcdefgh"), "w": list("efgh")}, ["y"])),
    ("rank 8: Pad", large("Pad", EIGHT, I64(*[1] * 16))),
    ("rank 8: Slice", large("Slice", EIGHT, I64(*[1] * 8), I64(*[2] * 8))),
    ("rank 8: MatMul", lambda: model([NODE("MatMul", ["x", "w"], ["y"])], {"x": EIGHT, "w": EIGHT[:6] + [3, 4]},
                                     ["y"])),
]


class Compiler:
    def __init__(self, bin_dir, folder, timeout):
        self.bin, self.dir, self.timeout = pathlib.Path(bin_dir).resolve(), pathlib.Path(folder), timeout

    def limits(self):
        resource.setrlimit(resource.RLIMIT_AS, (LARGEST_MEMORY, LARGEST_MEMORY))

    def __call__(self, made):
        """Seconds of the processor's time, or a text that says what went wrong."""
        onnx.save(made, self.dir / "m.onnx")
        (self.dir / "m.ingot").unlink(missing_ok=True)
        with open(self.dir / "errors", "w+") as errors:
            process = subprocess.Popen([self.bin / "vm-compile", "--target", "cpu:x86-64-v3", "--threads", "1",
                                        self.dir / "m.onnx", "-o", self.dir / "m.ingot"], stdout=errors, stderr=errors,
                                       preexec_fn=self.limits)
            start, pid = time.monotonic(), 0
            while not pid:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if not pid and time.monotonic() - start > self.timeout:
                    process.kill()
                    os.wait4(process.pid, 0)
                    process.returncode = -9
                    return f"more than {self.timeout} s"
                time.sleep(0.01)
            process.returncode = os.waitstatus_to_exitcode(status)
            errors.seek(0)
            text = errors.read().strip()[-300:]
        if process.returncode:
            return f"vm-compile ends with {process.returncode}: {text}"
        looked = subprocess.run([self.bin / "vm-inspect", self.dir / "m.ingot"], capture_output=True, text=True)
        if looked.returncode:
            return f"the file does not load: {looked.stderr.strip()[-300:]}"
        return usage.ru_utime + usage.ru_stime


def exponent(times, base):
    """Of the time over n from n to 4n, less the time of the smallest model; nothing where it is too short."""
    first, last = (max(t - base, 0.02) for t in (times[0], times[-1]))
    return None if last < SMALLEST_SECONDS else np.log(last / first) / np.log(4)


def main():
    arguments = sys.argv[1:]
    full = "--full" in arguments
    only = arguments[arguments.index("--only") + 1] if "--only" in arguments else ""
    report = open(arguments[arguments.index("--report") + 1], "w") if "--report" in arguments else None
    failures = 0

    def say(line):
        print(line, flush=True)

    def tell(*cells):
        if report:
            print("|", " | ".join(map(str, cells)), "|", file=report, flush=True)

    def judged(name, wrong):
        """Whether this is a failure, and what the line ends with."""
        if name not in REFUSED:
            return bool(wrong), f"  FAIL {wrong}" if wrong else ""
        if not wrong or "ends with 8" not in wrong:
            return True, f"  FAIL {wrong or 'works: take it out of REFUSED'}"
        return False, f"  refused: {REFUSED[name]}"

    with tempfile.TemporaryDirectory() as folder:
        compile = Compiler(arguments[0], folder, TIMEOUT[full])
        base = compile(chain("Tanh")(1))
        say(f"the smallest model: {base:.2f} s")
        say(f"{'family':34} {'n':>7} {'n s':>8} {'2n s':>8} {'4n s':>8} {'exponent':>9}")
        tell("model", "n", "n: s", "2n: s", "4n: s", "exponent")
        tell(*["---"] * 6)
        for name, short_n, full_n, build in FAMILIES:
            n = full_n if full else short_n
            if not n or only not in name:
                continue
            times = []
            for factor in (1, 2, 4):
                times.append(compile(build(n * factor)))
                if isinstance(times[-1], str):
                    break
            wrong = times[-1] if isinstance(times[-1], str) else None
            grows = None if wrong else exponent(times, base)
            for _ in range(2):  # other work on the machine disturbs a measurement, but not every one
                if grows is not None and grows > LARGEST_EXPONENT:
                    times = [min(t, compile(build(n * factor))) for t, factor in zip(times, (1, 2, 4))]
                    grows = exponent(times, base)
            if grows is not None and grows > LARGEST_EXPONENT:
                wrong = "grows clearly faster than the graph"
            shown = [f"{t:8.2f}" if not isinstance(t, str) else f"{'-':>8}" for t in times] + ["        "] * 3
            failed, remark = judged(name, wrong)
            tell(name, n, *[cell.strip() for cell in shown[:3]], "" if grows is None else f"{grows:.2f}")
            say(f"{name:34} {n:7} {' '.join(shown[:3])} {'' if grows is None else f'{grows:.2f}':>9}{remark}")
            failures += failed
        for name, build in SINGLE:
            if only not in name:
                continue
            seconds = compile(build())
            wrong = seconds if isinstance(seconds, str) else "takes too long" if seconds > base + 10 else None
            failed, remark = judged(name, wrong)
            say(f"{name:34} {'':7} {'' if isinstance(seconds, str) else f'{seconds:8.2f}'}{remark}")
            failures += failed
    say(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
