"""TVM as an outside oracle of the text form: modules that the PyPI package apache-tvm prints are read, verified,
printed and read back after every pass, compiled for the CPU, and give TVM's results.

usage: tvm_modules.py BIN_DIR [--short] [--models DIR] [--only TEXT] [--keep DIR] [--cache DIR]

Six families: ONNX models through TVM's importer, parameters kept as inputs, as they are and after its `zero`
pipeline; operators, as TVM's graph functions name them and as it legalises them by its TOPI; operators that are
composed of others here (tvm_operators.py); graphs after each stage of TVM's build; tensor functions in TVMScript
(tvm_scripts.py), and functions that its DLight scheduled for a GPU, which the interpreter runs. Besides, a part of
tvm_corpus.py is read without being run: at least 95 % of it. --short: a few of each, unless INGOT_LONG_TESTS is set.
ONNX models are that of tests/data and every NAME/model.onnx below --models (a folder as scripts/bench_peers takes it).

A result is right when it differs from TVM's by at most 1e-5 of the largest value there. Deep networks of random
weights amplify the rounding of float32 until two right answers are further apart than that (ResNet-50: TVM's own is
2e-5 from the exact one). So where a model's results differ by more, they are judged by the same model in float64,
weights and inputs too: there ours and TVM's must agree within 1e-5, TVM's float32 result must be further than half of
1e-5 from that (else float32 is no excuse), and ours must be within 1e-4 of it.
Exits 77 (skipped) without apache-tvm, onnx and numpy."""
import argparse, hashlib, os, pathlib, re, sys, tempfile, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "acceptance"))
from tools import Tools

try:
    import numpy as np
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax import op as R
    from tvm.relax.frontend import detach_params
    from tvm.relax.frontend.onnx import from_onnx
    from tvm.s_tir import dlight
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

import tvm_corpus
import tvm_operators
import tvm_scripts

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
TOLERANCE = 1e-5
ROUNDED = 1e-4  # of float32 results, from those in float64, where TVM's are off by more than TOLERANCE / 2
SIZES = {"n": 5, "m": 3}  # of symbolic dims

# A schedule for a GPU needs a target's numbers, not a GPU.
GPU = {"kind": "cuda", "max_num_threads": 1024, "max_shared_memory_per_block": 49152, "thread_warp_size": 32}


# Modules that TVM prints and cannot compile itself, and what ours refuse in them: here a call of R.call_packed that
# stands in a dataflow block.
REFUSED = {"gpt2_decode_dyn": "a call with effects in a dataflow block"}


class TvmLimit(Exception):
    """What TVM's importer does not take."""


def last_line(error):
    return f"{type(error).__name__}: {str(error).strip().splitlines()[-1][:120]}"


class Case:
    """A module of TVM with its inputs (by name, in order) and the parameters that are bound at compile time."""

    def __init__(self, name, module, inputs, params=None, gpu=None, wide=None, source=None):
        self.name, self.module, self.inputs, self.params, self.gpu = name, module, inputs, params or {}, gpu
        self.wide = wide  # makes the same case in float64
        self.source = source or module  # what TVM compiles, where that is another module than the one that is read


# ---- ONNX models


@relax.expr_functor.mutator
class ConstantLifter(relax.PyExprMutator):
    """Constants that TVM's text would leave out become parameters."""

    def __init__(self, module):
        super().__init__(module)
        self.lifted = []

    def visit_call_(self, call):
        return super().visit_call_(relax.Call(call.op, [self.lift(arg) for arg in call.args], call.attrs, call.ty_args))

    def lift(self, expr):
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self.lift(field) for field in expr.fields])
        if not isinstance(expr, tvm.ir.expr.GenericConst) or expr.value.numpy().ndim == 0:
            return expr
        var = relax.Var(f"lifted{len(self.lifted)}", expr.ty)
        self.lifted.append((var, expr.value.numpy()))
        return var


def lift_constants(module):
    lifter = ConstantLifter(module)
    main = module["main"]
    body = lifter.visit_expr(main.body)
    if not lifter.lifted:
        return module, []
    params = [*main.params, *(var for var, _ in lifter.lifted)]
    function = relax.Function(params, body, main.ret_ty, main.is_pure, main.attrs)
    module.update_func(module.get_global_var("main"), function)
    return module, [value for _, value in lifter.lifted]


def widen(tensor):
    if tensor.data_type == onnx.TensorProto.FLOAT:
        values = onnx.numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))


def widen_graph(graph):
    """float32 becomes float64 everywhere."""
    for tensor in graph.initializer:
        widen(tensor)
    for value in [*graph.input, *graph.output, *graph.value_info]:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    for node in graph.node:
        for attribute in node.attribute:
            widen(attribute.t)
            widen_graph(attribute.g)
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == onnx.TensorProto.FLOAT:
                attribute.i = onnx.TensorProto.DOUBLE


def onnx_case(path, suffix, is_wide=False):
    """The case of one ONNX model; None where TVM's passes fail."""
    name = path.parent.name if path.name == "model.onnx" else path.stem
    given = path.parent / "inputs.npz"
    values = dict(np.load(given)) if given.exists() else {"image": np.load(DATA / "digits_test.npz")["image"][:3]}
    model = onnx.load(path)
    if is_wide:
        widen_graph(model.graph)
        values = {key: value.astype(np.float64 if value.dtype == np.float32 else value.dtype)
                  for key, value in values.items()}
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]  # to TVM both would be parameters
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    try:
        module, params = detach_params(from_onnx(model, keep_params_in_input=True))
    except Exception as error:  # whatever TVM's importer raises
        raise TvmLimit(last_line(error)) from error
    try:
        if suffix:
            module = relax.get_pipeline("zero")(module)
        module, lifted = lift_constants(module)
    except Exception as error:  # whatever TVM's passes raise
        print(f"  TVM cannot: {name}{suffix}: {last_line(error)}", flush=True)
        return None
    arrays = [value.numpy() for value in params.get("main", [])] + lifted
    names = [var.name for var in module["main"].params]
    count = len(names) - len(arrays)
    wide = None if is_wide else lambda: onnx_case(path, suffix, True)
    inputs = {key: values[key] for key in names[:count]}
    case_name = name + suffix + ("_float64" if is_wide else "")
    return Case(case_name, module, inputs, dict(zip(names[count:], arrays)), wide=wide)


def onnx_cases(path):
    for suffix in ("", "_zero"):
        case = onnx_case(path, suffix)
        if case is not None:
            yield case


# ---- Operators


def var(name, shape, dtype="float32"):
    symbols = var.symbols
    dims = [symbols.setdefault(d, tvm.tirx.Var(d, "int64")) if isinstance(d, str) else d for d in shape]
    return relax.Var(name, relax.TensorType(dims, dtype))


def value_of(dtype, shape, rng, low=None, high=None):
    shape = [SIZES[d] if isinstance(d, str) else d for d in shape]
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("int") or dtype.startswith("uint"):
        return rng.integers(0 if low is None else low, 4 if high is None else high, shape).astype(dtype)
    return rng.uniform(-2 if low is None else low, 2 if high is None else high, shape).astype(dtype)


X = ("n", 24)


def binary(function, low=None):
    return [("x", X, "float32", low), ("y", X, "float32", low)], function


def unary(function, low=None):
    return [("x", X, "float32", low)], function


def on(shape, function, dtype="float32"):
    return [("x", shape, dtype)], function


# name: inputs (name, shape, dtype, low), and what is made of them.
OPERATORS = {
    "add": binary(R.add),
    "divide": binary(R.divide, 0.5),
    "power": binary(R.power, 0.5),
    "maximum": binary(R.maximum),
    "floor_divide": ([("x", X, "int32", 1), ("y", X, "int32", 1)], R.floor_divide),
    "less": binary(R.less),
    "broadcast_multiply": ([("x", ("n", 1, 4), "float32"), ("y", (3, 4), "float32")], R.multiply),
    "exp": unary(R.exp),
    "log": unary(R.log, 0.1),
    "sqrt": unary(R.sqrt, 0.1),
    "tanh": unary(R.tanh),
    "sigmoid": unary(R.sigmoid),
    "erf": unary(R.erf),
    "round": unary(R.round),
    "relu": unary(R.nn.relu),
    "gelu": unary(R.nn.gelu),
    "silu": unary(R.nn.silu),
    "softmax": unary(lambda x: R.nn.softmax(x, axis=-1)),
    "log_softmax": unary(lambda x: R.nn.log_softmax(x, axis=-1)),
    "clip": unary(lambda x: R.clip(x, -0.5, 0.75)),
    "astype": unary(lambda x: R.astype(x, "int32")),
    "sum": unary(lambda x: R.sum(x, axis=1)),
    "mean": unary(lambda x: R.mean(x, axis=0, keepdims=True)),
    "max": unary(lambda x: R.max(x)),
    "argmax": unary(lambda x: R.argmax(x, axis=1)),
    "variance": unary(lambda x: R.variance(x, axis=1)),
    "cumsum": on((4, 6), lambda x: R.cumsum(x, axis=1)),
    "matmul": ([("x", ("n", 16), "float32"), ("y", (16, 12), "float32")], R.matmul),
    "batched_matmul": ([("x", (2, "n", 8), "float32"), ("y", (2, 8, "m"), "float32")], R.matmul),
    "conv1d": ([("x", (1, 4, 10), "float32"), ("w", (6, 4, 3), "float32")], lambda x, w: R.nn.conv1d(x, w, padding=1)),
    "conv2d": ([("x", ("n", 3, 8, 8), "float32"), ("w", (4, 3, 3, 3), "float32")],
               lambda x, w: R.nn.conv2d(x, w, padding=1)),
    "conv2d_grouped": ([("x", (1, 4, 7, 7), "float32"), ("w", (4, 1, 3, 3), "float32")],
                       lambda x, w: R.nn.conv2d(x, w, strides=2, padding=1, groups=4)),
    "conv2d_transpose": ([("x", (1, 3, 5, 5), "float32"), ("w", (3, 2, 3, 3), "float32")],
                         lambda x, w: R.nn.conv2d_transpose(x, w, strides=2)),
    "max_pool2d": on(("n", 3, 8, 8), lambda x: R.nn.max_pool2d(x, (3, 3), strides=2, padding=1)),
    "avg_pool2d": on((2, 3, 8, 8), lambda x: R.nn.avg_pool2d(x, (2, 2), strides=2)),
    "adaptive_avg_pool2d": on((2, 3, 8, 8), lambda x: R.nn.adaptive_avg_pool2d(x, 1)),
    "layer_norm": ([("x", X, "float32"), ("g", (24,), "float32"), ("b", (24,), "float32")],
                   lambda x, g, b: R.nn.layer_norm(x, g, b, axes=-1)),
    "rms_norm": ([("x", X, "float32"), ("g", (24,), "float32")], lambda x, g: R.nn.rms_norm(x, g, axes=-1)),
    "group_norm": ([("x", (2, 4, 5), "float32"), ("g", (4,), "float32"), ("b", (4,), "float32")],
                   lambda x, g, b: R.nn.group_norm(x, g, b, num_groups=2, channel_axis=1, axes=[2])),
    "attention": ([("q", (1, 8, 2, 16), "float32"), ("k", (1, 8, 2, 16), "float32"), ("v", (1, 8, 2, 16), "float32")],
                  lambda q, k, v: R.nn.attention(q, k, v, causal_mask="TopLeft")),
    "permute_dims": on(("n", 3, "m"), lambda x: R.permute_dims(x, [2, 0, 1])),
    "reshape": on((4, 6), lambda x: R.reshape(x, (2, 12))),
    "concat": ([("x", X, "float32"), ("y", X, "float32")], lambda x, y: R.concat([x, y], axis=1)),
    "split": on((6, "n"), lambda x: R.split(x, 3, axis=0)),
    "strided_slice": on((8, "n"), lambda x: R.strided_slice(x, [0], [1], [7], [2])),
    "take": ([("x", X, "float32"), ("i", (7,), "int64")], lambda x, i: R.take(x, i, axis=1)),
    "gather_elements": ([("x", (4, 5), "float32"), ("i", (4, 2), "int64")],
                        lambda x, i: R.gather_elements(x, i, axis=1)),
    "where": ([("c", X, "bool"), ("x", X, "float32"), ("y", X, "float32")], R.where),
    "tile": on((2, "n"), lambda x: R.tile(x, (3, 2))),
    "repeat": on((2, "n"), lambda x: R.repeat(x, 2, axis=1)),
    "flip": on((4, "n"), lambda x: R.flip(x, axis=1)),
    "tril": on((5, 5), lambda x: R.tril(x, 1)),
    "pad": on((2, 5), lambda x: R.nn.pad(x, (1, 2, 0, 3))),
    "resize2d": on((1, 2, 4, 4), lambda x: R.image.resize2d(x, (8, 8), method="linear")),
    "resize2d_nearest": on((1, 2, 3, 5), lambda x: R.image.resize2d(x, (6, 15), method="nearest_neighbor")),
    "resize2d_cubic": on((1, 4, 5, 2), lambda x: R.image.resize2d(x, (7, 9), layout="NHWC", method="cubic",
                                                                  coordinate_transformation_mode="align_corners")),
    "adaptive_avg_pool2d_windows": on((2, 3, 8, 6), lambda x: R.nn.adaptive_avg_pool2d(x, (4, 2))),
    "stack": ([("x", X, "float32"), ("y", X, "float32")], lambda x, y: R.stack([x, y], axis=1)),
    "std": unary(lambda x: R.std(x, axis=1)),
    "zeros_like": unary(R.zeros_like),
    "ones_like": unary(lambda x: R.ones_like(x, "int32")),
    "full_like": unary(lambda x: R.full_like(x, relax.const(2.5, "float32"))),
    "quantize": ([("x", (2, 3, 4), "float32"), ("s", (3,), "float32", 0.02), ("z", (3,), "int8", -100, 100)],
                 lambda x, s, z: R.quantize(x, s, z, 1, "int8")),
    "dequantize": ([("x", (2, 4), "int8", -128, 127), ("s", (4,), "float32"), ("z", (4,), "int8", -100, 100)],
                   lambda x, s, z: R.dequantize(x, s, z, -1, "float32")),
    "one_hot": ([("i", ("n",), "int64")],
                lambda i: R.one_hot(i, relax.prim_value(1), relax.prim_value(0), depth=4, axis=-1)),
}
SHORT_OPERATORS = ["add", "erf", "softmax", "argmax", "cumsum", "batched_matmul", "conv2d", "split"]

# Functions for a GPU: the operator, and the rules of DLight that may take it.
GPU_FUNCTIONS = ["add", "exp", "gelu", "softmax", "log_softmax", "sum", "mean", "max", "matmul", "batched_matmul",
                 "conv2d", "max_pool2d", "layer_norm", "rms_norm", "permute_dims", "concat", "take", "where"]
SHORT_GPU_FUNCTIONS = ["add", "softmax", "matmul"]


def graph_of(name):
    inputs, function = OPERATORS[name]
    var.symbols = {}
    rng = np.random.default_rng(len(name))
    params = [var(item[0], item[1], item[2]) for item in inputs]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(function(*params))
        builder.emit_func_output(result)
    values = {item[0]: value_of(item[2], item[1], rng, *item[3:]) for item in inputs}
    return builder.get(), values


def legalized(name):
    module, values = graph_of(name)
    return relax.transform.LegalizeOps()(module), values


def operator_cases(name):
    """The operator itself, and what TVM's TOPI makes of it."""
    return [Case("graph_" + name, *graph_of(name)), Case("op_" + name, *legalized(name))]


def gpu_case(name):
    module, values = legalized(name)
    target = tvm.target.Target(GPU, host="llvm")
    rules = dlight.gpu
    with target:
        schedule = dlight.ApplyDefaultSchedule(rules.Matmul(), rules.GEMV(), rules.Reduction(),
                                               rules.GeneralReduction(), rules.Transpose(), rules.Fallback())
        scheduled = schedule(legalized(name)[0])  # in place
    functions = [g.name_hint for g, f in scheduled.functions.items() if isinstance(f, tvm.tirx.PrimFunc)]
    assert "blockIdx.x" in scheduled.script(), f"{name}: DLight did not schedule it"
    return Case("gpu_" + name, scheduled, values, gpu=(functions[0], module))


# ---- What TVM gives


def leaves(value):
    if hasattr(value, "numpy"):
        return [value.numpy()]
    return [leaf for item in value for leaf in leaves(item)]


def run_tvm(module, arguments, cache):
    """The results, from the cache (a folder, or None) where it has this module with these arguments."""
    if cache is None:
        return compile_and_run(module, arguments)
    key = hashlib.sha256(f"{tvm.__version__}\n{module.script()}".encode())
    for value in arguments:
        key.update(f"{value.dtype}{value.shape}".encode())
        key.update(np.ascontiguousarray(value).tobytes())
    path = cache / f"{key.hexdigest()}.npz"
    if not path.exists():
        partial = path.with_suffix(".partial.npz")
        np.savez(partial, *compile_and_run(module, arguments))
        partial.rename(path)
    with np.load(path) as file:
        return [file[name] for name in file.files]


def compile_and_run(module, arguments):
    executable = tvm.compile(module, target="llvm")
    machine = relax.VirtualMachine(executable, tvm.cpu())
    return leaves(machine["main"](*(tvm.runtime.tensor(np.array(value, order="C")) for value in arguments)))


# ---- What ours give


def distance(a, b):
    """The greatest difference, as a part of b's greatest value; a NaN is one only beside another."""
    if b.size == 0 or np.array_equal(a, b):
        return 0.0
    a, b = a.astype(np.float64), b.astype(np.float64)
    if np.array_equal(np.isnan(a), np.isnan(b)):
        a, b = np.nan_to_num(a, nan=0.0), np.nan_to_num(b, nan=0.0)
    return float(np.max(np.abs(a - b)) / max(np.max(np.abs(b)), np.finfo(np.float32).tiny))


def furthest(mine, theirs):
    return max((distance(a, b) for a, b in zip(mine, theirs)), default=0.0)


class Check:
    def __init__(self, bin_dir, directory, cache):
        self.dir, self.tools, self.cache = directory, Tools(bin_dir), cache

    def tool(self, name, *args):
        result = self.tools(name, *args)
        if result.returncode != 0:
            raise AssertionError(f"{name} {' '.join(map(str, args))}\n{result.stderr[:1500]}")

    def load(self, expected):
        with np.load(self.dir / "out.npz") as file:
            got = [file[key] for key in file.files]
        assert len(got) == len(expected), f"{len(got)} results, TVM gives {len(expected)}"
        for mine, theirs in zip(got, expected):
            assert mine.shape == theirs.shape and mine.dtype == theirs.dtype, (
                f"{mine.dtype}{mine.shape}, TVM gives {theirs.dtype}{theirs.shape}")
        return got

    def run(self, case):
        """What to say of a case that is right."""
        if isinstance(case, Script):
            return self.run_script(case)
        text = self.dir / f"{case.name}.py"
        text.write_text(tvm_corpus.printed(case.module))
        is_lowered = case.gpu or case.source is not case.module  # bindings are in no dataflow block
        self.tool("read_script", text, *([] if is_lowered else ["passes"]))
        got, expected = self.interpret(case, text) if case.gpu else self.compile(case, text)
        worst = furthest(got, expected)
        if worst <= TOLERANCE:
            return f"{worst:.1e}"
        difference = f"differs from TVM's by {worst:.1e} of the largest value"
        wide = case.wide() if case.wide else None
        assert wide is not None, difference
        text = self.dir / f"{wide.name}.py"
        text.write_text(wide.module.script())
        ours, exact = self.compile(wide, text)
        apart, theirs_off, ours_off = furthest(ours, exact), furthest(expected, exact), furthest(got, exact)
        report = (f"{difference}; in float64 by {apart:.1e}, from which TVM's float32 is off by {theirs_off:.1e}, "
                  f"ours by {ours_off:.1e}")
        assert apart <= TOLERANCE and theirs_off > TOLERANCE / 2 and ours_off <= ROUNDED, report
        return report

    def run_script(self, case):
        text = self.dir / f"{case.name}.py"
        text.write_text(case.module.script())
        np.savez(self.dir / "buffers.npz", **{f"b{i}": value for i, value in enumerate(case.values)})
        files = [self.dir / "buffers.npz", self.dir / "out.npz"]
        self.tool("read_script", text, "interpret", "main", *files, len(case.values) - 1)
        expected = case.expected()
        worst = furthest(self.load(expected), expected)
        assert worst <= TOLERANCE, f"differs from TVM's by {worst:.1e} of the largest value"
        return f"{worst:.1e}"

    def compile(self, case, text):
        """Our results and TVM's."""
        options = []
        if case.params:
            names = re.findall(r"([^\s(),:]+): R\.Tensor", re.search(r"def main\((.*)\) ->", text.read_text()).group(1))
            bound = dict(zip(names[len(case.inputs):], case.params.values()))
            np.savez(self.dir / "params.npz", **bound)
            options = ["--params", self.dir / "params.npz"]
        self.tool("vm-compile", text, *options, "-o", self.dir / "case.ingot")
        np.savez(self.dir / "inputs.npz", **case.inputs)
        self.tool("vm-run", self.dir / "case.ingot", self.dir / "inputs.npz", "--output", f"@{self.dir}/out.npz")
        try:
            expected = run_tvm(case.source, [*case.inputs.values(), *case.params.values()], self.cache)
        except Exception as error:  # whatever TVM's build raises
            raise TvmLimit(last_line(error)) from error
        return self.load(expected), expected

    def interpret(self, case, text):
        function, unscheduled = case.gpu
        expected = run_tvm(unscheduled, list(case.inputs.values()), self.cache)
        buffers = {f"b{i}": value for i, value in enumerate([*case.inputs.values(), *map(np.zeros_like, expected)])}
        np.savez(self.dir / "buffers.npz", **buffers)
        files = [self.dir / "buffers.npz", self.dir / "out.npz"]
        self.tool("read_script", text, "interpret", function, *files, len(expected))
        return self.load(expected), expected


# ---- What TVM's operators are composed of here, and its modules after every stage of its build

# TVM has no definition of these: graphs of the frontends do not run them.
NOT_RUN = set("""dropout start_checkpoint end_checkpoint no_grad stop_lift_params pixel_shuffle""".split())
COMPOSED = set("""adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d affine_grid argmax argmin atan2
attention_bias avg_pool2d_backward batch_flatten bitwise_and bitwise_or bitwise_xor bucketize collapse_sum_like collapse_sum_to
cross_entropy_with_logits cumprod cumsum ewise_fma eye_like full get_valid_counts grid_sample hamming_window index_put
index_tensor log_add_exp max_pool2d_backward median meshgrid multibox_transform_loc multinomial_from_uniform nll_loss
nll_loss_backward outer prelu resize3d roi_align roi_pool size slice_scatter split take take_backward view""".split())
SHORT_COMPOSED = {"nll_loss", "nll_loss_backward"}
STAGED = ["mlp", "pieces", "views", "network"]
KEPT_STAGES = ("CallTIRRewrite", "StaticPlanBlockMemory", "KillAfterLastUse", "LowerRuntimeBuiltin",
               "AttachGlobalSymbol")


def composed_cases(names):
    for _, name, module, inputs in tvm_operators.modules(names):
        if not isinstance(module, Exception) and tvm_corpus.printed(module) is not None:
            values = {param.name: value for param, value in zip(inputs.params, inputs.values())}
            yield Case("composed_" + name, module, values)


def staged_cases(name):
    for symbolic in (False, True):
        source, values = tvm_corpus.graph_and_values(tvm_corpus.GRAPHS[name], symbolic)
        inputs = {f"x{i}": value for i, value in enumerate(values)}
        for label, module in tvm_corpus.stages(source, f"staged_{name}{'_sym' if symbolic else ''}"):
            if label.endswith(KEPT_STAGES):
                yield Case(label, module, inputs, source=source)


# ---- Tensor functions in TVMScript that TVM compiles for the CPU

RUN_SCRIPTS = ("shifted retyped retyped_narrow retyped_store shared_pool let variables vectors reduction_block "
               "sub_region two_outputs zero_rank double_buffer").split()
SHORT_SCRIPTS = ["retyped_narrow", "shared_pool", "variables"]


class Script:
    """A tensor function that reads its first buffer and writes the others."""

    def __init__(self, name):
        self.name, self.module = f"script_{name}", tvm_scripts.TENSOR_MODULES[name]
        rng = np.random.default_rng(len(name))
        function = self.module["main"]
        self.values = []
        for param in function.params:
            dims = [int(dim) for dim in param.ty.shape]
            self.values.append(tvm_operators.drawn(rng, dims, str(param.ty.dtype), None, None))

    def expected(self):
        executable = tvm.compile(self.module, target="llvm")
        tensors = [tvm.runtime.tensor(value) for value in self.values]
        executable["main"](*tensors)
        return [tensor.numpy() for tensor in tensors[1:]]


def all_cases(options):
    """(family, name, function that makes the cases)"""
    models = [DATA / "digits.onnx"]
    if options.models:
        models += sorted(pathlib.Path(options.models).glob("*/model.onnx"))
    for path in models:
        yield "onnx", str(path), lambda path=path: onnx_cases(path)
    for name in OPERATORS if options.full else SHORT_OPERATORS:
        yield "op", "op_" + name, lambda name=name: operator_cases(name)
    for name in sorted((COMPOSED if options.full else SHORT_COMPOSED) - NOT_RUN):
        yield "composed", "composed_" + name, lambda name=name: composed_cases({name})
    for name in STAGED if options.full else STAGED[:1]:
        yield "staged", "staged_" + name, lambda name=name: staged_cases(name)
    for name in RUN_SCRIPTS if options.full else SHORT_SCRIPTS:
        yield "script", "script_" + name, lambda name=name: [Script(name)]
    for name in GPU_FUNCTIONS if options.full else SHORT_GPU_FUNCTIONS:
        yield "gpu", "gpu_" + name, lambda name=name: [gpu_case(name)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--models", help="a folder of NAME/model.onnx with NAME/inputs.npz")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--keep", type=pathlib.Path, help="where the texts go")
    parser.add_argument("--cache", type=pathlib.Path, help="where TVM's results are kept, for later runs: compiling by "
                        "TVM is most of the time")
    options = parser.parse_args()
    options.full = not options.short or bool(os.environ.get("INGOT_LONG_TESTS"))
    counts, failed = {}, []
    with tempfile.TemporaryDirectory(prefix="ingot-tvm-") as temporary:
        directory = options.keep or pathlib.Path(temporary)
        directory.mkdir(exist_ok=True)
        if options.cache:
            options.cache.mkdir(exist_ok=True)
        check = Check(options.bin.resolve(), directory, options.cache)
        for family, name, make in all_cases(options):
            if options.only not in name:
                continue
            try:
                for case in make():
                    start = time.time()
                    refused = REFUSED.get(case.name)
                    try:
                        report = check.run(case)
                        counts[family] = counts.get(family, 0) + 1
                        print(f"  ok {case.name}: {report}, {time.time() - start:.1f} s", flush=True)
                    except TvmLimit as error:
                        print(f"  TVM cannot: {case.name}: {error}", flush=True)
                    except AssertionError as error:
                        if refused and refused in str(error):
                            print(f"  refused by name: {case.name}: {refused}", flush=True)
                            continue
                        failed.append(case.name)
                        print(f"FAIL {case.name}: {error}", flush=True)
            except TvmLimit as error:
                print(f"  TVM cannot: {name}: {error}", flush=True)
        if not options.only:
            total, good = tvm_corpus.short(options.bin.resolve(), directory)
            if good < 0.95 * total:
                failed.append("corpus")
            print(f"{good} of {total} modules of the corpus read ({100 * good / total:.1f} %)")
    summary = ", ".join(f"{count} {family}" for family, count in counts.items())
    print(f"{sum(counts.values())} modules of TVM {tvm.__version__} read, verified and right ({summary}); "
          f"{len(failed)} failed" + (": " + " ".join(failed) if failed else ""))
    return 1 if failed or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
