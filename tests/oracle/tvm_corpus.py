"""Modules that TVM's own tools make, read by this compiler's text form: how many are read, of each family, and why not.

usage: tvm_corpus.py BIN_DIR [--only FAMILY/NAME] [--keep DIR [--reuse]]

Families: operators (tvm_operators.py) as graphs and legalised; every stage of TVM's default build over several graphs;
its graph transforms; gradients, losses and optimisers; layers of its frontend; tensor expressions, schedules, DLight,
search spaces and lowering passes; functions in TVMScript that use what no tool of TVM makes. Each module that is well
formed for TVM is printed, and read_script reads it, verifies it, prints it and reads that back. It fails where less than 95 % are
read, or an operator of TVM has no row. tvm_modules.py runs a part of it. Exits 77 (skipped) without apache-tvm."""

import argparse, collections, concurrent.futures, importlib.metadata, os, pathlib, re, subprocess, sys, tempfile

try:
    import numpy as np
    import tvm
    from tvm import relax, s_tir, te, tirx, topi
    from tvm.relax import op as R
    from tvm.relax import transform as passes
    from tvm.relax.frontend import nn
    from tvm.script import ir as I
    from tvm.script import relax as RS
    from tvm.script import tirx as T
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)
import tvm_operators

# ---- Graphs that passes work on


def graph_and_values(function, symbolic=False, attrs=None):
    """The graph that a function of (parameters, emit) makes, and values for its parameters."""
    inputs = tvm_operators.Inputs(symbolic)
    # The function makes its parameters, so it is run once to learn them.
    probe = relax.BlockBuilder()
    with probe.function("probe", []):
        with probe.dataflow():
            function(inputs, probe.emit)
            probe.emit_output(relax.const(0))
        probe.emit_func_output(relax.Tuple([]))
    made = iter(inputs.params)

    def known(*_):
        return next(made)

    known.dim = inputs.dim
    builder = relax.BlockBuilder()
    with builder.function("main", inputs.params, attrs=attrs):
        with builder.dataflow():
            value = function(known, builder.emit)
            if isinstance(value, list):
                output = relax.Tuple([builder.emit_output(item) for item in value])
            else:
                output = builder.emit_output(value)
        builder.emit_func_output(output)
    return builder.get(), inputs.values()


def graph(function, symbolic=False, attrs=None):
    return graph_and_values(function, symbolic, attrs)[0]


def mlp(v, e):
    x = e(R.matmul(v(("n", 16)), v((16, 32))))
    x = e(R.nn.relu(e(R.add(x, v((32,))))))
    return e(R.nn.softmax(e(R.add(e(R.matmul(x, v((32, 8)))), v((8,))))))


def network(v, e):
    x = e(R.nn.relu(e(R.nn.conv2d(v(("n", 3, 8, 8)), v((8, 3, 3, 3)), padding=1))))
    x = e(R.nn.max_pool2d(x, (2, 2), strides=(2, 2)))
    x = e(R.add(x, e(R.nn.conv2d(x, v((8, 8, 3, 3)), padding=1))))
    x = e(R.reshape(e(R.mean(x, [2, 3])), (v.dim("n"), 8)))
    return e(R.matmul(x, v((8, 4))))


def attention(v, e):
    x = v(("n", 8, 16))
    q, k, w = (e(R.matmul(x, v((16, 16)))) for _ in range(3))
    heads = [e(R.reshape(t, (v.dim("n"), 8, 4, 4))) for t in (q, k, w)]
    y = e(R.nn.attention(*heads))
    return e(R.nn.layer_norm(e(R.add(x, e(R.reshape(y, (v.dim("n"), 8, 16))))), v((16,)), v((16,)), -1))


def views(v, e):
    x = e(R.exp(v((4, "n"))))
    x = e(R.reshape(x, (v.dim("n"), 4)))
    y = e(R.expand_dims(e(R.permute_dims(x)), 0))
    return e(R.squeeze(e(R.add(y, y)), [0]))


def pieces(v, e):
    parts = e(R.split(v((6, "n")), 3))
    a, b, c = (e(relax.TupleGetItem(parts, i)) for i in range(3))
    return [e(R.concat([e(R.add(a, b)), c])), e(R.exp(b))]


def twice(v, e):
    x, y = v((4, 4)), v((4, 4))
    a, b = e(R.add(x, y)), e(R.add(x, y))
    unused = e(R.exp(a))
    return e(R.multiply(e(R.add(a, b)), e(R.add(a, relax.const(1.0, "float32")))))


def ordered(v, e):
    x = e(R.sort(v((3, "n")), 1))
    y = e(R.topk(x, 2, 1))
    return [e(R.cumsum(x, 1)), e(relax.TupleGetItem(y, 0))]


def normalised(v, e):
    x = v((2, 4, 6, 6))
    y = e(R.nn.batch_norm(e(R.nn.conv2d(x, v((4, 4, 3, 3)), padding=1)), v((4,)), v((4,)), v((4,)), v((4,)), 1))
    return e(R.nn.relu(e(relax.TupleGetItem(y, 0))))


GRAPHS = {
    "mlp": mlp,
    "network": network,
    "attention": attention,
    "views": views,
    "pieces": pieces,
    "twice": twice,
    "ordered": ordered,
    "normalised": normalised,
}

STAGES = [
    relax.backend.DispatchSampling,
    relax.backend.DispatchSortScan,
    passes.LegalizeOps,
    passes.RewriteDataflowReshape,
    passes.ToNonDataflow,
    passes.RemovePurityChecking,
    passes.CallTIRRewrite,
    passes.StaticPlanBlockMemory,
    passes.RewriteCUDAGraph,
    passes.LowerAllocTensor,
    passes.KillAfterLastUse,
    passes.LowerRuntimeBuiltin,
    passes.ComputePrimValue,
    passes.VMShapeLower,
    passes.AttachGlobalSymbol,
]


def stages(module, prefix):
    """The module after every stage of TVM's default build."""
    with tvm.target.Target("llvm"):
        for stage in STAGES:
            module = stage()(module)
            yield f"{prefix}_{stage.__name__}", module


def staged_graphs():
    for name, function in GRAPHS.items():
        for symbolic in (False, True):
            yield from stages(graph(function, symbolic), name + ("_sym" if symbolic else ""))
    bounded = graph(mlp, True).with_attr("x", 1)
    main = bounded["main"].with_attr("tir_var_upper_bound", {"n": 16})
    bounded.update_func(bounded.get_global_var("main"), main)
    yield from stages(bounded, "mlp_bounded")
    for name, module in scripts().items():
        yield from attempt(lambda: stages(module, name))


def attempt(make):
    """What an iterator gives before TVM refuses."""
    try:
        yield from make()
    except Exception as error:  # whatever TVM raises
        yield "", error


# ---- Graph transforms


def legalised(function, symbolic=False):
    return passes.LegalizeOps()(graph(function, symbolic))


def fused(function, symbolic=False):
    return passes.FuseOps()(passes.AnnotateTIROpPattern()(legalised(function, symbolic)))


def transforms():
    plain = [
        passes.Normalize(),
        passes.CanonicalizeBindings(),
        passes.EliminateCommonSubexpr(),
        passes.DeadCodeElimination(),
        passes.ToMixedPrecision(),
        passes.ToMixedPrecision("float16"),
        passes.DecomposeOpsForInference(),
        passes.DecomposeOpsForTraining(),
        passes.FoldConstant(),
        passes.LegalizeOps(),
        passes.ToNonDataflow(),
        passes.AdjustMatmulOrder(),
        passes.ExpandMatmulOfSum(),
        passes.CombineParallelMatmul(),
        passes.FastMathTransform(),
        passes.FoldBatchnormToConv2D(),
        passes.FuseTransposeMatmul(),
        passes.RemoveRedundantReshape(),
        passes.ReorderPermuteDimsAfterConcat(),
        passes.ReorderTakeAfterMatmul(),
        passes.TopologicalSort(),
        passes.BundleModelParams(),
        passes.LiftTransformParams(),
        passes.LiftTransformParams(shared_transform=True),
        passes.LazyGetInput(),
        passes.LazySetOutput(),
        passes.LazyTransformParams(),
        passes.DataflowUseInplaceCalls(),
        passes.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]}),
        passes.ConvertLayout({"relax.nn.conv2d": ["NCHW16c", "OIHW16i16o"]}),
        passes.AttachGlobalSymbol(),
        passes.RemoveUnusedParameters(),
        passes.RemoveUnusedOutputs(),
        passes.ExpandTupleArguments(),
        passes.InlinePrivateFunctions(),
        passes.RewriteDataflowReshape(),
        passes.ComputePrimValue(),
        passes.BindSymbolicVars({"n": tvm.tirx.IntImm("int64", 5)}),
    ]
    lowered = [
        passes.AnnotateTIROpPattern(),
        passes.AttachAttrLayoutFreeBuffers(),
        passes.CallTIRRewrite(),
        passes.SplitLayoutRewritePreproc(),
        passes.SpecializePrimFuncBasedOnCallSite(),
        passes.DataflowUseInplaceCalls(),
        passes.RewriteDataflowReshape(),
        passes.OptimizeLayoutTransform(),
        passes.FoldConstant(),
    ]
    for name, function in GRAPHS.items():
        for symbolic in (False, True):
            suffix = "_sym" if symbolic else ""
            for i, step in enumerate(plain):
                yield from one(
                    f"{name}{suffix}_{step.info.name}_{i}", lambda: step(graph(function, symbolic, {"num_input": 1}))
                )
            for i, step in enumerate(lowered):
                yield from one(
                    f"{name}{suffix}_lowered_{step.info.name}_{i}", lambda: step(legalised(function, symbolic))
                )
            yield from one(f"{name}{suffix}_FuseOps", lambda: fused(function, symbolic))
            yield from one(f"{name}{suffix}_FuseTIR", lambda: passes.FuseTIR()(fused(function, symbolic)))
            yield from one(f"{name}{suffix}_zero", lambda: relax.get_pipeline("zero")(graph(function, symbolic)))
    from tvm.relax.dpl import is_op, wildcard

    patterns = [
        ("own.conv_relu", is_op("relax.nn.relu")(is_op("relax.nn.conv2d")(wildcard(), wildcard()))),
        ("own.matmul", is_op("relax.matmul")(wildcard(), wildcard())),
    ]
    for name, function in GRAPHS.items():
        for annotate in (False, True):
            yield from one(
                f"{name}_FuseOpsByPattern_{annotate}",
                lambda: passes.FuseOpsByPattern(patterns, annotate_codegen=annotate)(graph(function)),
            )
        yield from one(
            f"{name}_MergeCompositeFunctions",
            lambda: passes.MergeCompositeFunctions()(passes.FuseOpsByPattern(patterns)(graph(function))),
        )
    for name, module in scripts().items():
        for i, step in enumerate(
            [
                passes.Normalize(),
                passes.LambdaLift(),
                passes.ConvertToDataflow(),
                passes.CanonicalizeBindings(),
                passes.LegalizeOps(),
                passes.ExpandTupleArguments(),
                passes.RemoveUnusedOutputs(),
                passes.RemoveUnusedParameters(),
                passes.InlinePrivateFunctions(),
                passes.DeadCodeElimination(),
                passes.EliminateCommonSubexpr(),
                passes.RealizeVDevice(),
                passes.NormalizeGlobalVar(),
                passes.AllocateWorkspace(),
                passes.ToNonDataflow(),
                passes.VMShapeLower(),
                passes.CallTIRRewrite(),
            ]
        ):
            yield from one(f"{name}_{step.info.name}_{i}", lambda: step(module))


def one(name, make):
    try:
        yield name, make()
    except Exception as error:  # whatever TVM raises
        yield name, error


# ---- Training


def training():
    def loss_graph(kind):
        def function(v, e):
            x = e(R.add(e(R.matmul(v((3, 4)), v((4, 5)))), v((5,))))
            if kind == "nll":
                return e(R.nn.nll_loss(e(R.nn.log_softmax(x)), v((3,), "int64")))
            if kind == "cross_entropy":
                return e(R.nn.cross_entropy_with_logits(x, v((3, 5))))
            if kind == "pool":
                y = e(R.nn.max_pool2d(e(R.reshape(x, (1, 1, 3, 5))), (2, 2)))
                return e(R.sum(e(R.nn.avg_pool2d(y, (2, 2)))))
            if kind == "take":
                return e(R.sum(e(R.take(x, v((2,), "int64"), axis=1))))
            if kind == "shapes":
                y = e(R.concat(e(R.split(e(R.permute_dims(x)), 5)), 1))
                return e(
                    R.sum(
                        e(
                            R.cumsum(
                                e(R.reshape(e(R.broadcast_to(y, (2,) + tuple(int(d) for d in y.ty.shape))), (-1,))), 0
                            )
                        )
                    )
                )
            if kind == "activations":
                for f in (
                    R.nn.relu,
                    R.nn.silu,
                    R.sigmoid,
                    R.tanh,
                    R.exp,
                    R.nn.softmax,
                    R.nn.log_softmax,
                    R.abs,
                    R.square,
                    R.sin,
                    R.cos,
                ):
                    x = e(f(x))
                return e(R.mean(x))
            if kind == "checkpoints":
                x = e(R.grad.start_checkpoint(x))
                x = e(R.grad.end_checkpoint(e(R.exp(e(R.sin(x))))))
                return e(R.sum(e(R.multiply(x, e(R.grad.no_grad(x))))))
            if kind == "conv":
                y = e(R.nn.conv2d(v((2, 3, 6, 6)), v((4, 3, 3, 3)), padding=1))
                return e(R.sum(e(R.variance(y, [1]))))
            y = e(R.where(e(R.less(x, v((3, 5)))), x, v((3, 5))))
            return e(R.sum(e(R.maximum(y, e(R.divide(x, v((3, 5))))))))

        return function

    for kind in ("nll", "cross_entropy", "pool", "take", "shapes", "activations", "checkpoints", "conv", "other"):
        yield from one(kind, lambda: graph(loss_graph(kind)))
        yield from one(kind + "_gradient", lambda: passes.Gradient("main")(graph(loss_graph(kind))))
        yield from one(
            kind + "_legalised", lambda: passes.LegalizeOps()(passes.Gradient("main")(graph(loss_graph(kind))))
        )
        yield from one(
            kind + "_stages", lambda: list(stages(passes.Gradient("main")(graph(loss_graph(kind))), ""))[-1][1]
        )
    from tvm.relax.training import loss, optimizer

    shapes = relax.TensorType((3, 5), "float32")
    targets = relax.TensorType((3,), "int64")
    for reduction in ("mean", "sum", "none"):
        for name, made, args in [
            ("l1", loss.L1Loss, (shapes, shapes)),
            ("mse", loss.MSELoss, (shapes, shapes)),
            ("cross", loss.CrossEntropyLoss, (shapes, targets)),
            ("categorical", loss.CategoricalCrossEntropyLoss, (shapes, shapes)),
        ]:
            yield from one(f"loss_{name}_{reduction}", lambda: tvm.IRModule({"main": made(reduction)(*args)}))
    params = [relax.Var("w", shapes), relax.Var("b", relax.TensorType((5,), "float32"))]
    for name, made in [
        ("sgd", lambda: optimizer.SGD(0.1)),
        ("sgd_decay", lambda: optimizer.SGD(0.1, 0.01)),
        ("momentum", lambda: optimizer.MomentumSGD(0.1, 0.9)),
        ("nesterov", lambda: optimizer.MomentumSGD(0.1, 0.9, 0.1, 0.02, True)),
        ("adam", lambda: optimizer.Adam(0.01)),
        ("adam_decay", lambda: optimizer.Adam(0.01, (0.8, 0.85), 1e-7, 0.1)),
    ]:
        yield from one("optimizer_" + name, lambda: tvm.IRModule({"main": made().init(params).get_function()}))


# ---- Layers


def layers():
    def export(model, spec):
        module, _ = model.export_tvm(spec=spec)
        return module

    image = nn.spec.Tensor([1, 3, 8, 8], "float32")
    vector = nn.spec.Tensor([1, 16], "float32")
    tokens = nn.spec.Tensor([1, "seq"], "int32")

    class Block(nn.Module):
        def __init__(self):
            self.up, self.down, self.norm = nn.Linear(16, 64), nn.Linear(64, 16), nn.RMSNorm(16, -1, 1e-5)

        def forward(self, x: nn.Tensor):
            return x + self.down(nn.op.silu(self.up(self.norm(x))))

    class Decoder(nn.Module):
        def __init__(self):
            self.embed = nn.Embedding("vocab", 16)
            self.q = nn.Linear(16, 16, bias=False)
            self.cache = nn.KVCache(8, [2, 8])

        def forward(self, x: nn.Tensor, length: tirx.Var):
            h = self.embed(x)
            q = nn.op.reshape(self.q(h), (x.shape[1], 2, 8))
            self.cache.append(q)
            return self.cache.view(length)

    class Ops(nn.Module):
        def forward(self, x: nn.Tensor):
            y = nn.op.concat([x, nn.op.relu(x)], 1)
            y = nn.op.unsqueeze(nn.op.sum(nn.op.square(y), axis=-1, keepdims=True), 0)
            a, b = nn.op.split(y, 2, axis=1) if y.shape[1] != 1 else (y, y)
            return nn.op.softmax(nn.op.add(a, b)), nn.op.topk(x, 2)

    class Own(nn.Module):
        def forward(self, x: nn.Tensor):
            def scaled(a):
                return te.compute(a.shape, lambda *i: a(*i) * 2.0, name="scaled")

            nn.op.print_(x)
            return nn.op.tensor_expr_op(scaled, "scaled", [x])

    for name, model, spec in [
        ("block", Block, {"forward": {"x": vector}}),
        ("ops", Ops, {"forward": {"x": vector}}),
        ("own", Own, {"forward": {"x": vector}}),
        ("linear", lambda: nn.Linear(16, "out"), {"forward": {"x": vector}}),
        ("conv1d", lambda: nn.Conv1D(3, 4, 3), {"forward": {"x": nn.spec.Tensor([1, 3, 9], "float32")}}),
        ("conv2d", lambda: nn.Conv2D(3, 4, 3, padding=1), {"forward": {"x": image}}),
        (
            "conv_transpose1d",
            lambda: nn.ConvTranspose1D(3, 4, 3),
            {"forward": {"x": nn.spec.Tensor([1, 3, 9], "float32")}},
        ),
        ("layer_norm", lambda: nn.LayerNorm(16), {"forward": {"x": vector}}),
        ("group_norm", lambda: nn.GroupNorm(1, 3), {"forward": {"x": image}}),
        ("embedding", lambda: nn.Embedding(100, 16), {"forward": {"x": tokens}}),
    ]:
        yield from one(name, lambda: export(model(), spec))
        yield from one(name + "_legalised", lambda: passes.LegalizeOps()(export(model(), spec)))
    # Effects: a cache of keys and values, and prints in order.
    yield from one(
        "decoder",
        lambda: Decoder().export_tvm(
            spec={"forward": {"x": nn.spec.Tensor([1, "seq"], "int32"), "length": int}}, debug=True
        )[0],
    )
    yield from one("own_debug", lambda: Own().export_tvm(spec={"forward": {"x": vector}}, debug=True)[0])


# ---- Tensor functions


def placeholder(dims, dtype="float32", name="x"):
    return te.placeholder(dims, dtype, name=name)


def workloads():
    x, y = placeholder((8, 16), name="x"), placeholder((16, 12), name="y")
    n = te.var("n", "int64")
    image, kernel = placeholder((1, 4, 10, 10), name="image"), placeholder((8, 4, 3, 3), name="kernel")
    yield "matmul", [x, y, topi.matmul(x, y)]
    s = placeholder((n, 16), name="s")
    yield "matmul_sym", [s, y, topi.matmul(s, y)]
    for name in ("exp tanh sigmoid relu erf log sqrt floor round abs sign isnan isfinite rsqrt tan sinh asinh").split():
        function = getattr(topi, name, None) or getattr(topi.nn, name)
        yield name, [x, function(x)]
    for name in "add subtract multiply maximum minimum power floor_divide less equal".split():
        yield name, (
            [x, placeholder((16,), name="z"), getattr(topi, name)(x, placeholder((16,), name="z"))]
            if False
            else binary_te(name)
        )
    for name in "sum max min prod argmax argmin".split():
        yield name, [x, getattr(topi, name)(x, 1)]
        yield name + "_all", [x, getattr(topi, name)(x)]
    yield "softmax", [x, topi.nn.softmax(x)]
    yield "log_softmax", [x, topi.nn.log_softmax(x)]
    yield "conv2d", [image, kernel, topi.nn.conv2d_nchw(image, kernel, 1, 1, 1)]
    yield "pool", [image, topi.nn.pool2d(image, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max")]
    yield "avg_pool", [image, topi.nn.pool2d(image, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "avg")]
    yield "transpose", [x, topi.transpose(x)]
    yield "reshape", [x, topi.reshape(x, (4, 32))]
    yield "concat", [x, y, topi.concatenate([topi.reshape(x, (128,)), topi.reshape(y, (192,))])]
    yield "take", [x, placeholder((3,), "int64", "i"), None]
    yield "cumsum", [x, topi.cumsum(x, 1)]
    yield "sort", [x, topi.sort(x)]
    yield "argsort", [x, topi.argsort(x)]
    yield "topk", [x, *topi.topk(x, 3)]
    yield "pad", [x, topi.nn.pad(x, [1, 0], [0, 2])]
    yield "tile", [x, topi.tile(x, (2, 2))]
    yield "where", where_te()
    yield "resize", [image, topi.image.resize2d(image, [0.0] * 4, (20, 20))]
    yield "scatter", [x, topi.strided_slice(x, [0, 1], [8, 15], [2, 3])]
    yield "layer_norm", norm_te()
    k = te.reduce_axis((0, 16), "k")
    yield "reduce_custom", [x, te.compute((8,), lambda i: te.sum(x[i, k] * x[i, k], axis=k), name="squares")]
    scan = te.compute(
        (8, 16),
        lambda i, j: tirx.if_then_else(tirx.all(i > 0, j < 15), x[i, j], tirx.const(0, "float32")),
        name="guarded",
    )
    yield "guarded", [x, scan]
    yield "extern", extern_te(x)
    q = placeholder((8,), "int32", "q")
    yield "q_multiply_shift", [
        q,
        te.compute(
            (8,),
            lambda i: tirx.q_multiply_shift(
                q[i], tirx.const(1395864371, "int32"), tirx.const(31, "int32"), tirx.const(-2, "int32")
            ),
            name="q",
        ),
    ]
    yield "per_axis", [
        q,
        te.compute(
            (8,),
            lambda i: tirx.q_multiply_shift_per_axis(
                q[i], q[i], q[i], q[i], tirx.const(31, "int32"), tirx.const(True, "bool"), tirx.const(True, "bool")
            ),
            name="q",
        ),
    ]


def binary_te(name):
    x, z = placeholder((8, 16), name="x"), placeholder((16,), name="z")
    return [x, z, getattr(topi, name)(x, z)]


def where_te():
    c, x, z = placeholder((8, 16), "bool", "c"), placeholder((8, 16), name="x"), placeholder((8, 16), name="z")
    return [c, x, z, topi.where(c, x, z)]


def norm_te():
    x, g, b = placeholder((8, 16), name="x"), placeholder((16,), name="g"), placeholder((16,), name="b")
    return [x, g, b, topi.nn.layer_norm(x, g, b, [1], 1e-5)]


def extern_te(x):
    def body(ins, outs):
        return tirx.call_packed("own.function", ins[0], outs[0])

    return [x, te.extern((8, 16), [x], body, name="outside", dtype="float32")]


def functions():
    """(name, tensor function)"""
    made = attempt(workloads)
    for name, tensors in made:
        if isinstance(tensors, Exception):
            yield name, tensors
            continue
        if tensors[-1] is None:
            tensors[-1] = topi.take(tensors[0], tensors[1], axis=1)
        yield from one(name, lambda: te.create_prim_func(tensors))
    from tvm.s_tir.meta_schedule.testing import te_workload

    for name, (make, params) in te_workload.CONFIGS.items():
        yield from one("workload_" + name, lambda: te.create_prim_func(make(*params[0])))


def tensor_functions():
    for name, function in functions():
        if isinstance(function, Exception):
            yield name, function
            continue
        yield name, tvm.IRModule({"main": function.with_attr("global_symbol", "main")})


def schedules():
    """One module per primitive."""

    def start(name="matmul"):
        function = dict(functions_of)[name]
        return s_tir.Schedule(tvm.IRModule({"main": function.with_attr("global_symbol", "main")}))

    functions_of = [
        item for item in functions() if not isinstance(item[1], Exception) and not item[0].startswith("workload_")
    ]

    def block_of(sch):
        names = [b for b in sch.get_child_blocks(sch.get_sblock("root"))]
        return names[-1]

    def tiled(sch):
        block = block_of(sch)
        loops = sch.get_loops(block)
        a, b = sch.split(loops[0], [None, 4])
        c, d = sch.split(loops[1], [None, 4])
        sch.reorder(a, c, b, d)
        return block, (a, c, b, d)

    def primitive(name, function, of="matmul"):
        def make():
            sch = start(of)
            function(sch)
            return sch.mod

        return one(name, make)

    gpu = lambda sch: (
        lambda block, l: (sch.bind(l[0], "blockIdx.x"), sch.bind(l[2], "threadIdx.x"), sch.bind(l[3], "threadIdx.y"))
    )(*tiled(sch))
    yield from primitive("split", tiled)
    yield from primitive("split_uneven", lambda s: s.split(s.get_loops(block_of(s))[0], [None, 3]))
    yield from primitive("fuse", lambda s: s.fuse(*s.get_loops(block_of(s))[:2]))
    yield from primitive("parallel", lambda s: s.parallel(tiled(s)[1][0]))
    yield from primitive("vectorize", lambda s: s.vectorize(tiled(s)[1][3]), "exp")
    yield from primitive("unroll", lambda s: s.unroll(tiled(s)[1][2]))
    yield from primitive("bind", gpu)
    yield from primitive("decompose_reduction", lambda s: s.decompose_reduction(block_of(s), tiled(s)[1][0]))
    yield from primitive("cache_read", lambda s: s.cache_read(block_of(s), 0, "shared"))
    yield from primitive("cache_write", lambda s: s.cache_write(block_of(s), 0, "local"))
    yield from primitive(
        "compute_at", lambda s: s.compute_at(s.cache_read(block_of(s), 0, "shared"), s.get_loops(block_of(s))[0])
    )
    yield from primitive(
        "reverse_compute_at", lambda s: s.reverse_compute_at(s.cache_write(block_of(s), 0, "local"), tiled(s)[1][1])
    )
    yield from primitive(
        "rfactor", lambda s: s.rfactor(s.split(s.get_loops(block_of(s))[1], [None, 4])[1], 0), "reduce_custom"
    )
    yield from primitive(
        "compute_inline", lambda s: s.compute_inline(s.get_child_blocks(s.get_sblock("root"))[0]), "pad"
    )
    yield from primitive("inline_softmax", lambda s: s.compute_inline(s.get_sblock("T_softmax_exp")), "softmax")
    yield from primitive("blockize", lambda s: s.blockize(tiled(s)[1][2]))
    yield from primitive(
        "annotate",
        lambda s: (
            s.annotate(tiled(s)[1][0], "pragma_auto_unroll_max_step", 16),
            s.annotate(block_of(s), "meta_schedule.tiling_structure", "SSRSRS"),
        ),
    )
    yield from primitive(
        "annotate_list", lambda s: s.annotate(s.get_loops(block_of(s))[0], "software_pipeline_stage", [0, 1])
    )
    yield from primitive(
        "storage_align", lambda s: s.storage_align(s.cache_read(block_of(s), 0, "shared"), 0, 0, 32, 8)
    )
    yield from primitive(
        "set_scope",
        lambda s: (
            s.set_scope(s.cache_write(block_of(s), 0, "global"), 0, "local")
            if False
            else s.cache_write(block_of(s), 0, "global")
        ),
    )
    yield from primitive("reindex", lambda s: s.reindex(block_of(s), ("read", 0)), "conv2d")
    yield from primitive(
        "transform_layout", lambda s: s.transform_layout(block_of(s), ("read", 0), lambda i, j: (j // 4, i, j % 4))
    )
    yield from primitive(
        "transform_layout_pad",
        lambda s: s.transform_layout(block_of(s), ("write", 0), lambda i, j: (i, j // 5, j % 5), pad_value=0.0),
    )
    yield from primitive(
        "transform_block_layout", lambda s: s.transform_block_layout(block_of(s), lambda i, j: (i * 16 + j,)), "exp"
    )
    yield from primitive("pad_einsum", lambda s: s.pad_einsum(block_of(s), [16, 16, 16]))
    yield from primitive("add_unit_loop", lambda s: s.add_unit_loop(block_of(s)))
    yield from primitive(
        "decompose_padding",
        lambda s: s.decompose_padding(
            s.get_child_blocks(s.get_sblock("root"))[0], s.get_loops(s.get_child_blocks(s.get_sblock("root"))[0])[0]
        ),
        "pad",
    )
    yield from primitive("loop_partition", lambda s: s.loop_partition(s.get_loops(block_of(s))[0], [3, None]))
    yield from primitive("read_at", lambda s: s.read_at(s.get_loops(block_of(s))[0], block_of(s), 0, "shared"))
    yield from primitive("write_at", lambda s: s.write_at(s.get_loops(block_of(s))[0], block_of(s), 0, "local"))
    yield from primitive("cache_index", lambda s: s.cache_index(block_of(s), "local"), "resize")
    yield from primitive("cache_inplace", lambda s: s.cache_inplace(block_of(s), 0, "local"), "exp")
    yield from primitive(
        "annotate_buffer_access",
        lambda s: s.annotate_buffer_access(block_of(s), 0, "read", lambda i, j: ((i, i + 1), (j, j + 1))),
        "exp",
    )
    yield from primitive("reorder_block_iter_var", lambda s: s.reorder_block_iter_var(block_of(s), [1, 0, 2]))
    yield from primitive(
        "unsafe_set_dtype",
        lambda s: s.unsafe_set_dtype(s.get_child_blocks(s.get_sblock("root"))[0], 0, "float16"),
        "pad",
    )
    yield from primitive("rolling_buffer", lambda s: None, "pool")
    yield from primitive("tensorize", lambda s: (lambda b, l: (s.decompose_reduction(b, l[1])))(*tiled(s)))


GPU = {
    "kind": "cuda",
    "max_num_threads": 1024,
    "max_shared_memory_per_block": 49152,
    "thread_warp_size": 32,
    "arch": "sm_80",
}


def gpu_functions():
    from tvm.s_tir import dlight

    rules = dlight.gpu
    target = tvm.target.Target(GPU, host="llvm")
    for name, function in functions():
        if isinstance(function, Exception):
            continue

        def scheduled(lower=False):
            module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
            with target:
                return dlight.ApplyDefaultSchedule(
                    rules.Matmul(),
                    rules.GEMV(),
                    rules.Reduction(),
                    rules.GeneralReduction(),
                    rules.Transpose(),
                    rules.Fallback(),
                )(module)

        yield from one(name, scheduled)


def spaces():
    """Designs that TVM's search tries."""
    from tvm.s_tir import meta_schedule as ms

    for kind in ("llvm", "cuda"):
        target = (
            tvm.target.Target({"kind": "llvm", "mcpu": "skylake-avx512", "num-cores": 4})
            if kind == "llvm"
            else tvm.target.Target(GPU, host="llvm")
        )
        for name in ("matmul", "conv2d", "softmax", "layer_norm", "sum", "exp", "pool", "reduce_custom"):
            function = dict((n, f) for n, f in functions() if not n.startswith("workload_"))[name]
            try:
                module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
                context = ms.TuneContext(
                    mod=module, target=target, space_generator=ms.space_generator.PostOrderApply(), rand_state=1
                )
                designs = context.generate_design_space()
            except Exception as error:  # whatever TVM raises
                yield f"{kind}_{name}", error
                continue
            for i, design in enumerate(designs[:4]):
                yield f"{kind}_{name}_{i}", design.mod


def pipelines():
    """Functions after every pass that lowers them."""
    S, X = s_tir.transform, tirx.transform
    cpu = [
        S.CanonicalizeLoop(),
        S.LowerCrossThreadReduction(),
        S.LowerInitBlock(),
        S.PlanAndUpdateBufferAllocationLocation(),
        S.ConvertBlocksToOpaque(),
        S.UnifyThreadBinding(),
        S.CompactBufferAllocation(),
        S.LowerMatchBuffer(),
        S.InjectSoftwarePipeline(),
        S.LowerOpaqueBlock(),
        X.FlattenBuffer(),
        X.NarrowDataType(32),
        S.LoopPartition(),
        X.VectorizeLoop(),
        S.InjectVirtualThread(),
        S.InjectDoubleBuffer(),
        X.StorageRewrite(),
        S.HoistIfThenElse(),
        X.UnrollLoop(),
        S.RenormalizeSplitPattern(),
        X.StmtSimplify(),
        X.RemoveNoOp(),
        S.RewriteUnsafeSelect(),
        X.CommonSubexprElim(),
    ]
    host = [
        X.BindTarget(tvm.target.Target("llvm")),
        X.AnnotateEntryFunc(),
        X.SplitHostDevice(),
        X.MakePackedAPI(),
        X.LowerTVMBuiltin(),
        X.LowerIntrin(),
    ]
    chosen = {"matmul", "softmax", "pad", "concat", "extern", "guarded", "matmul_sym", "sum", "conv2d", "argmax"}
    for name, function in functions():
        if name not in chosen or isinstance(function, Exception):
            continue

        def lowered():
            module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
            for step in cpu:
                module = step(module)
                yield f"{name}_{step.info.name}", module
            for step in host:
                module = step(module)
                yield f"{name}_host_{step.info.name}", module

        yield from attempt(lowered)
    from tvm.s_tir import dlight

    target = tvm.target.Target(GPU, host="llvm")
    device = [
        S.LowerThreadAllreduce(),
        S.ThreadSync("shared"),
        S.ThreadSync("warp"),
        S.InferFragment(),
        X.LowerWarpMemory(),
        S.MergeSharedMemoryAllocations(),
    ]
    for name, function in functions():
        if name not in {"matmul", "softmax", "sum", "exp", "conv2d"} or isinstance(function, Exception):
            continue

        def lowered():
            module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
            rules = dlight.gpu
            with target:
                module = dlight.ApplyDefaultSchedule(
                    rules.Matmul(), rules.Reduction(), rules.GeneralReduction(), rules.Fallback()
                )(module)
                for step in [
                    X.BindTarget(target),
                    *cpu,
                    *device,
                    S.DecorateDeviceScope() if False else X.AnnotateEntryFunc(),
                ]:
                    module = step(module)
                    yield f"gpu_{name}_{step.info.name}", module

        yield from attempt(lowered)


def onnx_graphs():
    import onnx
    from tvm.relax.frontend.onnx import from_onnx

    data = pathlib.Path(__file__).resolve().parent.parent / "data"
    for path in sorted(data.glob("*.onnx")):

        def made():
            return from_onnx(onnx.load(path), keep_params_in_input=True)

        yield from one(path.stem, made)
        yield from one(path.stem + "_zero", lambda: relax.get_pipeline("zero")(made()))


# ---- What no tool makes: written in TVMScript


def scripts():
    from tvm_scripts import GRAPH_MODULES

    return GRAPH_MODULES


def script_graphs():
    yield from scripts().items()


def script_functions():
    from tvm_scripts import TENSOR_MODULES

    S, X = s_tir.transform, tirx.transform
    for name, module in TENSOR_MODULES.items():
        yield name, module
        has_blocks = "T.sblock" in module.script()
        for step in (
            X.StmtSimplify(),
            X.RemoveNoOp(),
            X.FlattenBuffer(),
            X.UnrollLoop(),
            X.VectorizeLoop(),
            X.StorageRewrite(),
            S.LowerOpaqueBlock(),
            X.LowerIntrin() if False else X.CommonSubexprElim(),
            X.RemoveAssume(),
            X.ForceNarrowIndexToInt32(),
            X.BF16ComputeLegalize(),
            S.HoistIfThenElse(),
            S.LoopPartition(),
            X.ConvertSSA(),
            X.PointerValueTypeRewrite(),
        ):
            if not (has_blocks and step.info.name == "tirx.FlattenBuffer"):  # they are lowered first
                yield from one(f"{name}_{step.info.name}", lambda: step(module))


def operators():
    for operator, name, module, _ in tvm_operators.modules():
        yield name, module


def legalised_operators():
    for operator, name, module, _ in tvm_operators.modules():
        if not isinstance(module, Exception):
            yield from one(name, lambda: passes.LegalizeOps()(module))


FAMILIES = {
    "operator": operators,
    "legalised": legalised_operators,
    "stage": staged_graphs,
    "transform": transforms,
    "training": training,
    "layer": layers,
    "tensor": tensor_functions,
    "schedule": schedules,
    "gpu": gpu_functions,
    "space": spaces,
    "lowering": pipelines,
    "onnx": onnx_graphs,
    "script_graph": script_graphs,
    "script_tensor": script_functions,
}


def well_formed(module):
    """TVM raises an error for what it calls ill-formed."""
    try:
        relax.analysis.well_formed(module)
        for function in module.functions.values():
            if isinstance(function, tirx.PrimFunc) and function.attrs and function.attrs.get("s_tir"):
                s_tir.analysis.verify_well_formed(function)
        return True
    except Exception:  # whatever TVM raises
        return False


def shows_constants():
    """TVM 0.27 beside apache-tvm-ffi 0.1.15 crashes when it is asked to print the constants of a module."""
    version = importlib.metadata.version("apache-tvm-ffi")
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3]) < (0, 1, 15)


def printed(module):
    """The module's text; nothing where it has constants that cannot be shown."""
    text = module.script()
    if 'metadata["' not in text:
        return text
    return module.script(show_meta=True) if shows_constants() else None


class Corpus:
    """Writes modules, each text once, and counts what becomes of them."""

    def __init__(self, directory):
        self.directory, self.seen, self.written = directory, set(), []
        self.refused, self.ill, self.unshown = (collections.Counter() for _ in range(3))

    def add(self, family, name, module):
        if isinstance(module, Exception):
            self.refused[family] += 1
            if os.environ.get("INGOT_SHOW_TVM_ERRORS"):
                print("TVM:", family, name, type(module).__name__, str(module).strip().splitlines()[-1][:150])
            return
        if not well_formed(module):
            self.ill[family] += 1
            return
        text = printed(module)
        if text is None:
            self.unshown[family] += 1
            return
        key = re.sub(r"\s+", " ", text)
        if key in self.seen:
            return
        self.seen.add(key)
        path = self.directory / f"{family}__{re.sub('[^A-Za-z0-9_]', '_', name)}.py"
        path.write_text(text)
        self.written.append((family, path))

    def read(self, tool):
        """Reads all of them by one tool per core; gives the error of each, or nothing."""
        paths = [path for _, path in self.written]
        parts = [paths[i::2] for i in range(2)]

        def run(part):
            lines = []
            while len(lines) < len(part):
                result = subprocess.run([tool, "each", *part[len(lines) :]], capture_output=True, text=True, timeout=1200)
                lines += ["" if line == "ok" else line for line in result.stdout.splitlines()]
                if len(lines) < len(part):  # a crash; on with the next one
                    lines.append(f"read_script ended with {result.returncode}: {result.stderr[-200:]}")
            return lines

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(run, parts))
        errors = {path: error for part, found in zip(parts, results) for path, error in zip(part, found)}
        return [errors[path] for path in paths]


def reason_of(error):
    lines = error.split("\t")
    first = next((line for line in lines if "error:" in line), lines[0])
    return re.sub(r"^.*?error: ", "", first)[:150]


def report(corpus, errors, verbose=True):
    """Prints why modules are not read, and shares; gives the number of modules and of those that are read."""
    counts, reasons = collections.defaultdict(lambda: [0, 0]), collections.defaultdict(list)
    for (family, path), error in zip(corpus.written, errors):
        counts[family][0] += 1
        counts[family][1] += not error
        if error:
            reasons[reason_of(error)].append(path.stem)
    for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])) if verbose else ():
        print(f"{len(names):4} {reason}   [{' '.join(names[:3])}]")
    for family, (total, good) in counts.items():
        print(
            f"  {family:14} {good:4} of {total:4} read; TVM refused {corpus.refused[family]}, ill-formed "
            f"{corpus.ill[family]}, constants that it cannot show {corpus.unshown[family]}"
        )
    return sum(c[0] for c in counts.values()), sum(c[1] for c in counts.values())


def short(bin_dir, directory):
    """A part that takes half a minute: every operator as a graph, three graphs through the build, what is written in
    TVMScript. Gives the number of modules and of those that are read."""
    corpus = Corpus(directory)
    for family, name, module in [("operator", n, m) for n, m in operators()] + [
        ("script_graph", n, m) for n, m in script_graphs()
    ]:
        corpus.add(family, name, module)
    for name in ("mlp", "pieces"):
        for symbolic in (False, True):
            for label, module in attempt(lambda: stages(graph(GRAPHS[name], symbolic), f"{name}_{symbolic}")):
                corpus.add("stage", label, module)
    for name, module in scripts().items():
        for label, made in attempt(lambda: stages(module, name)):
            corpus.add("stage", label, made)
    from tvm_scripts import TENSOR_MODULES

    for name, module in TENSOR_MODULES.items():
        corpus.add("script_tensor", name, module)
    return report(corpus, corpus.read(bin_dir / "read_script"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--reuse", action="store_true", help="read what --keep has already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ingot-corpus-") as temporary:
        directory = options.keep or pathlib.Path(temporary)
        directory.mkdir(exist_ok=True)
        corpus = Corpus(directory)
        if options.reuse:
            corpus.written = [(path.name.split("__")[0], path) for path in sorted(directory.glob("*.py"))]
        else:
            family_only, _, name_only = options.only.partition("/")
            for family, make in FAMILIES.items():
                if family_only in ("", family):
                    for name, module in make():
                        if name_only in name:
                            corpus.add(family, name, module)
        total, good = report(corpus, corpus.read(options.bin / "read_script"))
    unnamed = tvm_operators.unnamed()
    if unnamed:
        print("operators of TVM without a row:", " ".join(unnamed))
        return 1
    print(f"{good} of {total} modules of TVM {tvm.__version__} read ({100 * good / max(total, 1):.1f} %)")
    return 0 if total and good >= 0.95 * total else 1


if __name__ == "__main__":
    sys.exit(main())
