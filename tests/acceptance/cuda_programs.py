#!/usr/bin/env python3
"""Models compiled for CUDA run on the stand-in GPU and give what they give on the CPU.

usage: cuda_programs.py BIN_DIR STANDIN_DIR DIGITS.onnx DIGITS.npz    exits 77 (skipped) without numpy and onnx

STANDIN_DIR has libcuda.so.1 and a vm-run with the device cuda. Every model has a dim that is free, and runs at several
sizes: convolutions with a residual connection, a layer of a transformer, branches and loops whose values cross between
host and GPU, a look-up, and recurrent layers with a scan, a top-k and a shape that data decide."""
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    from onnx_nodes import Nodes
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

TOLERANCE = 1e-3
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Graph(Nodes):
    def weights(self, *shape):
        """Random ones, of a scale that keeps that of what they are multiplied with."""
        fan_in = max(1, int(np.prod(shape[1:])))
        return self.constant((self.rng.standard_normal(shape) / fan_in ** 0.5).astype(np.float32))

    def model(self, inputs, outputs, opset=20):
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info(name, dtype, dims) for name, dtype, dims in inputs],
            [helper.make_tensor_value_info(name, dtype, None) for name, dtype in outputs], self.initializers())
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def residual():
    g = Graph(1)
    x = g.add("Relu", g.add("Conv", "x", g.weights(16, 3, 3, 3), g.weights(16), pads=[1, 1, 1, 1]))
    y = g.add("Relu", g.add("Conv", x, g.weights(16, 16, 3, 3), pads=[1, 1, 1, 1]))
    y = g.add("Conv", y, g.weights(16, 1, 3, 3), pads=[1, 1, 1, 1], group=16)
    y = g.add("MaxPool", g.add("Add", x, y), kernel_shape=[2, 2], strides=[2, 2])
    y = g.add("Flatten", g.add("GlobalAveragePool", y))
    y = g.add("Softmax", g.add("Gemm", y, g.weights(16, 5), g.weights(5)), axis=1)
    feeds = [{"x": (FLOAT, (b, 3, h, w))} for b, h, w in ((1, 8, 8), (2, 7, 13))]
    return g.model([("x", FLOAT, ["b", 3, "h", "w"])], [(y, FLOAT)]), feeds


def transformer():
    g = Graph(2)
    width, heads = 32, 4
    shape = g.constant(np.array([0, 0, heads, width // heads]))
    normal = g.add("LayerNormalization", "x", g.constant(np.ones(width, np.float32)), g.weights(width))
    split = [g.add("Transpose", g.add("Reshape", g.add("MatMul", normal, g.weights(width, width)), shape),
                   perm=[0, 2, 1, 3]) for _ in range(3)]
    scores = g.add("MatMul", split[0], g.add("Transpose", split[1], perm=[0, 1, 3, 2]))
    mixed = g.add("MatMul", g.add("Softmax", g.add("Mul", scores, g.constant(np.float32(0.35)))), split[2])
    joined = g.add("Reshape", g.add("Transpose", mixed, perm=[0, 2, 1, 3]), g.constant(np.array([0, 0, width])))
    x = g.add("Add", "x", joined)
    y = g.add("Gelu", g.add("MatMul", x, g.weights(width, 64)))
    x = g.add("Add", x, g.add("MatMul", y, g.weights(64, width)))
    feeds = [{"x": (FLOAT, (b, s, width))} for b, s in ((1, 1), (2, 9))]
    return g.model([("x", FLOAT, ["b", "s", width])], [(x, FLOAT)]), feeds


def branches():
    """Which branch runs depends on a sum that the GPU computes; both give a tensor that it goes on with."""
    g = Graph(4)

    def branch(op, name):
        return helper.make_graph([helper.make_node(op, ["y"], [name])], name, [],
                                 [helper.make_tensor_value_info(name, FLOAT, None)])

    g.nodes.append(helper.make_node("Tanh", ["x"], ["y"]))
    condition = g.add("Greater", g.add("ReduceSum", "y", keepdims=0), g.constant(np.float32(0)))
    chosen = g.add("If", condition, then_branch=branch("Exp", "a"), else_branch=branch("Neg", "b"))
    result = g.add("Add", chosen, "y")
    feeds = [{"x": (FLOAT, (n,))} for n in (1, 2, 3, 4, 100)]
    return g.model([("x", FLOAT, ["n"])], [(result, FLOAT), (condition, BOOL)]), feeds


def loop():
    g = Graph(5)
    body = helper.make_graph(
        [helper.make_node("MatMul", ["v", "w"], ["product"]), helper.make_node("Tanh", ["product"], ["next"]),
         helper.make_node("Identity", ["c"], ["go_on"])], "body",
        [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("c", BOOL, []),
         helper.make_tensor_value_info("v", FLOAT, ["n", 8])],
        [helper.make_tensor_value_info("go_on", BOOL, []), helper.make_tensor_value_info("next", FLOAT, ["n", 8])],
        [numpy_helper.from_array(g.rng.standard_normal((8, 8)).astype(np.float32), "w")])
    result = g.add("Loop", g.constant(np.int64(4)), "", "x", body=body)
    feeds = [{"x": (FLOAT, (n, 8))} for n in (1, 7)]
    return g.model([("x", FLOAT, ["n", 8])], [(g.add("Relu", result), FLOAT)]), feeds


def mlp():
    g = Graph(13)
    hidden = g.add("Relu", g.add("Gemm", "x", g.weights(256, 784), g.weights(256), transB=1))
    y = g.add("Gemm", hidden, g.weights(10, 256), g.weights(10), transB=1)
    feeds = [{"x": (FLOAT, (b, 784))} for b in (1, 3)]
    return g.model([("x", FLOAT, ["b", 784])], [(y, FLOAT)]), feeds


def look_up():
    g = Graph(6)
    rows = g.add("Gather", g.weights(10, 16), "i")
    feeds = [{"i": (INT64, (n,))} for n in (1, 20)]
    return g.model([("i", INT64, ["n"])], [(g.add("Sigmoid", rows), FLOAT)]), feeds


def one_row():
    """Normalisations of a whole tensor, of one axis and of two."""
    g = Graph(10)
    x = g.add("Softmax", "x", axis=0)
    y = g.add("LayerNormalization", "y", g.constant(np.ones((1, 1), np.float32)), axis=0)
    z = g.add("LayerNormalization", g.weights(5, 40), g.constant(np.ones((5, 40), np.float32)), axis=0)
    z = g.add("Add", g.add("Softmax", g.add("ReduceSum", "y", g.constant(np.array([1])), keepdims=0), axis=0), g.add("ReduceSum", z, keepdims=0))
    feeds = [{"x": (FLOAT, (n,)), "y": (FLOAT, (a, b))} for n, a, b in ((1, 1, 1), (100, 3, 70))]
    return g.model([("x", FLOAT, ["n"]), ("y", FLOAT, ["a", "b"])], [(x, FLOAT), (y, FLOAT), (z, FLOAT)]), feeds


def sized_by_data():
    """Results whose shapes the data of another input decide."""
    g = Graph(9)
    y = g.add("Relu", g.add("Tile", g.add("Tanh", "x"), "repeats"))
    feeds = [{"x": (FLOAT, (2, n)), "repeats": (INT64, (2,))} for n in (3, 7)]
    return g.model([("x", FLOAT, [2, "n"]), ("repeats", INT64, [2])], [(y, FLOAT), (g.add("Tile", "x", "repeats"), FLOAT)]), feeds


def recurrent():
    """Layers whose steps depend on each other, then what goes along an axis in order, and a shape that data decide."""
    g = Graph(8)
    width, hidden = 6, 9

    def layer(op, x, gates, inputs):
        directions = 2
        weights = [g.weights(directions, gates * hidden, n) for n in (inputs, hidden)]
        y = g.add(op, x, *weights, g.weights(directions, 2 * gates * hidden), hidden_size=hidden,
                  direction="bidirectional")
        return g.add("Reshape", g.add("Transpose", y, perm=[0, 2, 1, 3]), g.constant(np.array([0, 0, 2 * hidden])))

    x = layer("LSTM", "x", 4, width)
    x = g.add("CumSum", layer("GRU", x, 3, 2 * hidden), g.constant(np.int64(0)))
    top, places = g.add("TopK", x, g.constant(np.array([5])), axis=2, outputs=2)
    positive = g.add("NonZero", g.add("Greater", x, g.constant(np.float32(0))))
    feeds = [{"x": (FLOAT, (s, b, width))} for s, b in ((1, 1), (7, 3))]
    return g.model([("x", FLOAT, ["s", "b", width])], [(x, FLOAT), (top, FLOAT), (places, INT64), (positive, INT64)]), feeds


class Tools:
    def __init__(self, bin_dir, standin, folder):
        self.bin_dir, self.standin, self.folder = bin_dir, standin, folder
        self.environment = dict(os.environ, INGOT_CACHE="off", LD_LIBRARY_PATH=str(standin))

    def compile(self, model, target, *options):
        file = self.folder / f"{target.split(':')[0]}.ingot"
        done = subprocess.run([self.bin_dir / "vm-compile", model, "--target", target, "-o", file, *options],
                              env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return file

    def show(self, model, target, *options):
        """The program's text."""
        return subprocess.run([self.bin_dir / "vm-compile", model, "--target", target, "--emit=bytecode", *options],
                              env=self.environment, capture_output=True, text=True).stdout

    def run(self, program, inputs, *options):
        """The outputs, or the failure's exit status and text."""
        outputs = self.folder / "outputs.npz"
        outputs.unlink(missing_ok=True)
        done = subprocess.run([self.standin / "vm-run", program, inputs, "--output", f"@{outputs}", *options],
                              env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            return done.returncode, done.stderr
        with np.load(outputs) as arrays:
            return {name: arrays[name] for name in arrays.files}

    def run_both(self, programs, feeds):
        inputs = self.folder / "inputs.npz"
        np.savez(inputs, **feeds)
        return [self.run(program, inputs) for program in programs]


def nothing():
    """Reductions of no rows, of some, and products over nothing."""
    g = Graph(11)
    outputs = [(g.add(op, "x", g.constant(np.array([0])), keepdims=0), FLOAT)
               for op in ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceL1")]
    outputs += [(g.add("Softmax", "z", axis=1), FLOAT), (g.add("ReduceSum", "z", g.constant(np.array([1]))), FLOAT),
                (g.add("MatMul", "y", "x"), FLOAT)]
    feeds = [{"x": (FLOAT, (a, b)), "y": (FLOAT, (1, a)), "z": (FLOAT, (3, a, 4))} for a, b in ((0, 5), (3, 300), (0, 1))]
    return g.model([("x", FLOAT, ["a", "b"]), ("y", FLOAT, [1, "a"]), ("z", FLOAT, [3, "a", 4])], outputs), feeds


def heads():
    """Attention whose tiles fill shared memory, of a few queries and of more."""
    g = Graph(12)
    y = g.add("Attention", "q", "k", "v")
    feeds = [{"q": (FLOAT, (1, 32, s, 128)), "k": (FLOAT, (1, 32, t, 128)), "v": (FLOAT, (1, 32, t, 128))}
             for s, t in ((1, 5), (17, 3))]
    return g.model([("q", FLOAT, [1, 32, "s", 128]), ("k", FLOAT, [1, 32, "t", 128]), ("v", FLOAT, [1, 32, "t", 128])],
                   [(y, FLOAT)], opset=23), feeds


def values(rng, dtype, shape):
    return rng.integers(0, 10, shape) if dtype == INT64 else rng.standard_normal(shape).astype(np.float32)


def difference(expected, got):
    if isinstance(expected, tuple) or isinstance(got, tuple):
        return f"failed: {expected}, {got}"
    for name, array in expected.items():
        if got[name].shape != array.shape or not np.allclose(got[name], array, TOLERANCE, TOLERANCE):
            return f"{name} differs"
    return None


def check_models(tools):
    problems = 0
    for make in (mlp, residual, transformer, branches, loop, look_up, one_row, sized_by_data, recurrent, nothing, heads):
        model, sizes = make()
        file = tools.folder / "model.onnx"
        onnx.save(model, file)
        programs = [tools.compile(file, target) for target in ("cpu", "cuda:sm_80")]
        rng = np.random.default_rng(7)
        for size in sizes:
            feeds = {name: values(rng, *form) for name, form in size.items()}
            problem = difference(*tools.run_both(programs, feeds))
            if problem is not None:
                problems += 1
                print(f"{make.__name__} {size}: {problem}")
    return problems


# Parameters and results of a function that another one calls, too, stay on the host; those of others do not.
CALLED = """@I.ir_module
class Module:
    @R.function
    def twice(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y: R.Tensor((4,), "float32") = R.add(x, x)
        return y

    @R.function
    def shifted(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
        y: R.Tensor((4,), "float32") = R.exp(x)
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
        cls = Module
        if c:
            a: R.Tensor((4,), "float32") = cls.twice(x)
            r: R.Tensor((4,), "float32") = a
        else:
            b: R.Tensor((4,), "float32") = R.negative(x)
            r: R.Tensor((4,), "float32") = b
        return r
"""
SIGNATURES = ("@twice export (x: float32[4]) -> (output: float32[4])",
              "@shifted export (x: float32[4]@1, c: bool[]) -> (output: float32[4]@1)",
              "@main export (x: float32[4], c: bool[]) -> (output: float32[4]@1)")


def check_both(tools, model, data):
    """Files with kernels for both run on both kinds of machines, as programs, too."""
    file, program = tools.folder / "both.ingot", tools.folder / "both"
    targets = ("--target", "cpu:x86-64-v2,x86-64-v3", "--target", "cuda:sm_80", "--target", "cuda:sm_90")
    with np.load(data) as arrays:
        np.savez(tools.folder / "images.npz", image=arrays["image"][:5])
        np.savez(tools.folder / "results.npz", probabilities=arrays["probabilities"][:5])
    called = tools.folder / "called.ingot"
    (tools.folder / "module.py").write_text(CALLED)
    for source, options, output in ((model, (), file), (tools.folder / "module.py", (), called),
                                    (model, ("--emit=program", "--launcher", tools.standin / "launcher"), program)):
        subprocess.run([tools.bin_dir / "vm-compile", source, *targets, *options, "-o", output], check=True,
                       env=tools.environment, capture_output=True)
    compare = (tools.folder / "images.npz", "--expect", f"@{tools.folder / 'results.npz'}", "--atol", "1e-3")
    entry = ("--input", "x=4xf32=1 2 3 4", "--input", "c=bool=false", "--entry")
    run, cpu_run, inspect = tools.standin / "vm-run", tools.bin_dir / "vm-run", tools.standin / "vm-inspect"
    runs = [  # command, whether there is a driver, exit status, a part of what it prints
        ((run, file, *compare), False, 0, ""),
        ((run, file, *compare), True, 0, ""),
        ((run, file, *compare, "--device", "cpu"), True, 0, ""),
        ((run, file, *compare, "--device", "cuda:0"), True, 0, ""),
        ((run, file, *compare, "--device", "cuda:0"), False, 2, "no driver"),
        ((run, file, *compare, "--device", "cuda:0", "--profile"), True, 0, ""),
        ((tools.standin / "vm-bench", file, "--input", "5x1x8x8xf32=rand", "--device", "cuda", "--iters", "1"), True, 0,
         ""),
        ((cpu_run, file, *compare), True, 0, ""),
        ((cpu_run, file, *compare, "--device", "cuda:0"), True, 4, "contexts run on the device cpu alone"),
        ((program, *compare), False, 0, ""),
        ((program, *compare, "--device", "cuda:0"), True, 0, ""),
        ((program, *compare, "--device", "cuda:0"), False, 2, "no driver"),
        ((run, called, *entry, "shifted"), False, 0, "20.08"),
        ((run, called, *entry, "shifted", "--device", "cuda:0"), True, 0, "20.08"),
        ((run, called, *entry, "main", "--device", "cuda:0"), True, 0, "-3."),
        ((inspect, file, "--doctor"), True, 0, "for --device cuda; here: stand-in sm_80"),
        ((inspect, file, "--doctor"), False, 0, "for --device cuda; here: cuda: no driver"),
        ((tools.bin_dir / "vm-inspect", file, "--verify"), False, 0, ""),
    ]
    problems = 0
    for command, has_driver, status, text in runs:
        environment = tools.environment if has_driver else {**tools.environment, "LD_LIBRARY_PATH": ""}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != status or text not in done.stdout + done.stderr:
            problems += 1
            print(f"{command}, driver: {has_driver}: {done.returncode}, not {status}: {done.stdout}{done.stderr}")
    return problems


def check_machine_code(tools, model, data):
    """Assemblers in place of NVIDIA's: one whose code the stand-in runs, one whose code it does not take, one that fails,
    none."""
    with np.load(data) as arrays:
        np.savez(tools.folder / "images.npz", image=arrays["image"][:5])
        np.savez(tools.folder / "results.npz", probabilities=arrays["probabilities"][:5])
    problems = []

    def assembler(name, *lines):
        path = tools.folder / name
        path.write_text("\n".join(("#!/bin/sh", "arch=$1 from=$2 to=$4", *lines)))
        path.chmod(0o755)
        return path

    def compiled(name, ptxas):
        file = tools.folder / name
        command = [tools.bin_dir / "vm-compile", model, "--target", "cuda:sm_80", "--ptxas", ptxas, "-o", file]
        return file, subprocess.run(command, env=tools.environment, capture_output=True, text=True)

    def ran(file):
        command = [tools.standin / "vm-run", file, tools.folder / "images.npz", "--device", "cuda:0", "--atol", "1e-3",
                   "--expect", f"@{tools.folder / 'results.npz'}"]
        return subprocess.run(command, env=tools.environment, capture_output=True, text=True)

    good = assembler("good", '[ "$arch" = -arch=sm_80 ] || exit 7', '(printf "\\177ELF stand-in "; cat "$from") > "$to"')
    foreign = assembler("foreign", 'printf "\\177ELF of a later toolkit" > "$to"')
    for ptxas in (good, foreign):
        file, done = compiled(ptxas.name + ".ingot", ptxas)
        outcome = done if done.returncode else ran(file)
        if outcome.returncode:
            problems.append(f"{ptxas.name}: {outcome.returncode}: {outcome.stdout}{outcome.stderr}")
        text = subprocess.run([tools.bin_dir / "vm-inspect", file, "--disasm"], capture_output=True, text=True)
        if text.stdout.find('image "sm_80 cubin" cubin "sm_80"') > text.stdout.find('image "sm_80" ptx "sm_80"'):
            problems.append("machine code stands behind PTX, or is missing")
    failing = assembler("failing", "echo no such register", "exit 3")
    for ptxas, said in ((failing, "no such register"), (tools.folder / "nowhere", "No such file")):
        file, done = compiled("none.ingot", ptxas)
        if done.returncode == 0 or said not in done.stderr or file.exists():
            problems.append(f"{ptxas.name}: {done.returncode}: {done.stderr}")
    for problem in problems:
        print(problem)
    return len(problems)


def check_placement(tools):
    file = tools.folder / "module.py"
    file.write_text(CALLED)
    text = tools.show(file, "cuda:sm_80")
    problems = [f"no function {signature}" for signature in SIGNATURES if f"function {signature} {{" not in text]
    programs = [tools.compile(file, target) for target in ("cpu", "cuda:sm_80")]
    for condition in (True, False):
        feeds = {"x": np.arange(4, dtype=np.float32), "c": np.array(condition)}
        problem = difference(*tools.run_both(programs, feeds))
        if problem is not None:
            problems.append(f"a function of the program, {condition}: {problem}")
    for problem in problems:
        print(problem)
    return len(problems)


def check_digits(tools, model, data):
    """All of the test images, of which the model takes 441 for what they are."""
    program = tools.compile(model, "cuda:sm_80,sm_90")
    with np.load(data) as arrays:
        labels, expected = arrays["label"], arrays["probabilities"]
        np.savez(tools.folder / "images.npz", image=arrays["image"])
    got = tools.run(program, tools.folder / "images.npz", "--device", "cuda:0")
    problem = difference({"probabilities": expected}, got)
    if problem is None and (right := int((got["probabilities"].argmax(axis=1) == labels).sum())) != 441:
        problem = f"{right} are right, not 441"
    if problem is not None:
        print(f"digits: {problem}")
    return problem is not None


def check_tutorial(tools):
    """The function of the tutorial of primitives whose loops are bound to blocks and threads by hand."""
    results = tools.folder / "bound.npz"
    printed = subprocess.run([tools.bin_dir / "tutorial_primitives", "bind", results], check=True, capture_output=True,
                             text=True).stdout
    function = printed[printed.index("@T.prim_func"):].replace("def main(", "def product(")
    (tools.folder / "bound.py").write_text("@I.ir_module\nclass Module:\n" + "".join(
        f"    {line}\n" for line in function.splitlines()) + """
    @R.function
    def main(a: R.Tensor((37, 23), "float32"), b: R.Tensor((23, 30), "float32")) -> R.Tensor((37, 30), "float32"):
        c = R.call_tir(Module.product, (a, b), out_sinfo=R.Tensor((37, 30), "float32"))
        return c
""")
    with np.load(results) as arrays:
        np.savez(tools.folder / "inputs.npz", a=arrays["a"], b=arrays["b"])
        got = tools.run(tools.compile(tools.folder / "bound.py", "cuda:sm_80"), tools.folder / "inputs.npz")
        problem = difference({"output": arrays["c"]}, got)
    if problem is not None:
        print(f"the tutorial's bound loops: {problem}")
    return problem is not None


def check_architectures(tools):
    """A product that is large enough for wgmma: sm_90a has it, other GPUs that run the same file have not."""
    half = TensorProto.FLOAT16
    infos = [helper.make_tensor_value_info(name, half, dims)
             for name, dims in (("a", [2048, 72]), ("b", [72, 1016]), ("y", [2048, 1016]))]
    nodes = [helper.make_node("MatMul", ["a", "b"], ["s"]), helper.make_node("Relu", ["s"], ["y"])]
    model, results = tools.folder / "large.onnx", tools.folder / "large.npz"
    onnx.save(helper.make_model(helper.make_graph(nodes, "large", infos[:2], infos[2:]),
                                opset_imports=[helper.make_opsetid("", 20)], ir_version=9), model)
    inputs = ("--input", "a=rand", "--input", "b=rand", "--seed", "3")
    subprocess.run([tools.bin_dir / "vm-run", tools.compile(model, "cpu"), *inputs, "--output", f"@{results}"], check=True,
                   env=tools.environment, capture_output=True)
    program = tools.compile(model, "cuda:sm_80,sm_90,sm_90a")
    problems = 0
    for architecture in ("sm_90", "sm_90a"):
        ptx = subprocess.run([tools.bin_dir / "vm-compile", model, "--target", f"cuda:{architecture}", "--emit=ptx"],
                             env=tools.environment, capture_output=True, text=True, check=True)
        if ("wgmma.mma_async" in ptx.stdout) != (architecture == "sm_90a"):
            problems += 1
            print(f"{architecture}: wgmma is missing, or where no GPU has it")
    for architecture in ("90", "100"):
        done = subprocess.run([tools.standin / "vm-run", program, *inputs, "--device", "cuda:0", "--expect",
                               f"@{results}", "--atol", "1e-2"], capture_output=True, text=True,
                              env={**tools.environment, "INGOT_STANDIN_SM": architecture})
        if done.returncode != 0:
            problems += 1
            print(f"a large product on sm_{architecture}: {done.stdout}{done.stderr}")
    return problems


def check_tf32(tools):
    """Products of float32 are rounded where --fast-math=tf32 permits it, within its bound, and nowhere else; compiled
    kernels of both are kept apart."""
    rng = np.random.default_rng(7)
    g = Graph(7)
    kernel, matrix = (rng.standard_normal(shape).astype(np.float32) for shape in ((12, 16, 3, 3), (12, 20)))
    y = g.add("Conv", "x", g.constant(kernel), pads=[1, 1, 1, 1])
    y = g.add("MatMul", g.add("Transpose", g.add("Flatten", y, axis=2), perm=[1, 0]), g.constant(matrix))
    model = tools.folder / "rounded.onnx"
    onnx.save(g.model([("x", FLOAT, [1, 16, "h", "w"])], [(y, FLOAT)]), model)
    x = rng.standard_normal((1, 16, 7, 9)).astype(np.float32)
    around = np.pad(x[0], ((0, 0), (1, 1), (1, 1)))

    def products(image, weights, columns):
        windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float64), (3, 3), axis=(1, 2))
        return np.einsum("chwij,ocij->hwo", windows, weights).reshape(63, 12) @ columns

    exact = products(around, kernel, matrix)
    magnitudes = products(abs(around), abs(kernel), abs(matrix))
    cache, problems = f"--cache={tools.folder / 'cache'}", []
    environment = {name: value for name, value in tools.environment.items() if name != "INGOT_CACHE"}
    for options, least, most in (((), 0, 1e-6), (("--fast-math=tf32",), 1e-5, 2 ** -9), ((), 0, 1e-6)):
        program, inputs, results = (tools.folder / name for name in ("rounded.ingot", "x.npz", "y.npz"))
        np.savez(inputs, x=x)
        done = subprocess.run([tools.bin_dir / "vm-compile", model, "-o", program, "--target", "cuda:sm_80", cache,
                               "--explain", *options], env=environment, capture_output=True, text=True)
        if done.stderr.count("tf32_products ") != (3 if options else 0):  # two functions, and their number
            problems.append(f"{options}: {done.stderr}")
        subprocess.run([tools.standin / "vm-run", program, "--input", f"@{inputs}", "--output", f"@{results}", "--device",
                        "cuda:0"], env=tools.environment, capture_output=True, check=True)
        with np.load(results) as arrays:
            error = (abs(next(iter(arrays.values())) - exact) / magnitudes).max()
        if not least <= error <= most:
            problems.append(f"{options}: off by {error} of the sum of magnitudes")
    for problem in problems:
        print(problem)
    return len(problems)


def check_states(tools):
    """A cache that grows step by step lies on the GPU, and steps of several sizes append to it there."""
    nodes = [helper.make_node("Concat", ["past", "x"], ["present"], axis=1),
             helper.make_node("Transpose", ["present"], ["t"], perm=[0, 2, 1]),
             helper.make_node("MatMul", ["x", "t"], ["s"]), helper.make_node("Softmax", ["s"], ["p"], axis=-1),
             helper.make_node("MatMul", ["p", "present"], ["y"])]
    infos = [helper.make_tensor_value_info(name, FLOAT, dims) for name, dims in (
        ("x", [2, "n", 8]), ("past", [2, "p", 8]), ("y", [2, "n", 8]), ("present", [2, "q", 8]))]
    model, states = tools.folder / "cache.onnx", tools.folder / "states.npz"
    onnx.save(helper.make_model(helper.make_graph(nodes, "cache", infos[:2], infos[2:]),
                                opset_imports=[helper.make_opsetid("", 20)], ir_version=9), model)
    options = ("--state", "past=present", "--dim", "p=0..15", "--dim", "n=1..9")
    problems, results = [], []
    for target in ("cpu", "cuda:sm_80"):
        program = tools.compile(model, target, *options)
        text = tools.show(model, target, *options)
        if f"state @past float32[2, 24, 8] device {int(target != 'cpu')} grows axis 1 by @p" not in text:
            problems.append(f"the cache is elsewhere for {target}")
        rng, steps = np.random.default_rng(3), []
        for step, length in enumerate((3, 1, 4, 9, 1)):
            inputs = tools.folder / "inputs.npz"
            np.savez(inputs, x=rng.standard_normal((2, length, 8)).astype(np.float32))
            load = ("--state-load", states) if step > 0 else ()
            steps.append(tools.run(program, inputs, "--state-save", states, *load))
        results.append(steps)
    for step, (expected, got) in enumerate(zip(*results)):
        if step < 4 and (problem := difference(expected, got)) is not None:
            problems.append(f"step {step}: {problem}")
    for steps in results:  # 17 before the last one
        if not isinstance(steps[4], tuple) or steps[4][0] != 3 or "p is 17" not in steps[4][1]:
            problems.append(f"beyond the bound: {steps[4]}")
    for problem in problems:
        print(problem)
    return len(problems)


def check_devices(tools, model):
    """--device chooses the GPU; what a file or a machine lacks is said."""
    file = tools.compile(model, "cuda:sm_80")
    runs = [  # tool, options, variables, exit status, a part of what it says
        ("vm-run", ("--device", "cuda:0"), {}, 0, ""),
        ("vm-run", ("--device", "cuda:1"), {"INGOT_STANDIN_DEVICES": "2"}, 0, ""),
        ("vm-run", ("--device", "cuda:1"), {}, 2, "cuda:1: no such device; there is 1"),
        ("vm-run", ("--device", "cpu"), {}, 4, "there are no kernels for cpu; they are for CUDA: sm_80"),
        ("vm-run", (), {"LD_LIBRARY_PATH": ""}, 2, "cuda: no driver: libcuda.so.1: cannot open"),
        ("vm-run", (), {"INGOT_STANDIN_DEVICES": "0"}, 2, "cuda: no GPU: CUDA_ERROR_NO_DEVICE"),
        ("vm-run", (), {"INGOT_STANDIN_DRIVER": "11010"}, 2, "one for CUDA 11.1; CUDA 11.2 or later is needed"),
        ("vm-run", (), {"INGOT_STANDIN_MEMORY": "1000"}, 6, "cuda:0: out of memory"),
        ("vm-bench", ("--device", "cuda:0", "--iters", "1", "--warmup", "0s"), {}, 0, ""),
    ]
    problems = 0
    for tool, options, variables, status, text in runs:
        inputs = ("--input", "1x1x8x8xf32=zeros")
        done = subprocess.run([tools.standin / tool, file, *inputs, *options], env={**tools.environment, **variables},
                              capture_output=True, text=True)
        if done.returncode != status or text not in done.stderr:
            problems += 1
            print(f"{tool} {options} {variables}: {done.returncode}, not {status}: {done.stderr}")
    return problems


def main():
    bin_dir, standin, model, data = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(bin_dir, standin, pathlib.Path(folder))
        problems = check_devices(tools, model) + check_placement(tools) + check_models(tools) + check_states(tools)
        problems += check_machine_code(tools, model, data)
        problems += check_architectures(tools) + check_tf32(tools) + check_tutorial(tools)
        return problems + check_both(tools, model, data) + check_digits(tools, model, data)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
