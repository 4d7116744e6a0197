"""Makes the small ONNX models of this folder, and for those that import, inputs and ONNX Runtime's outputs (NAME.npz).

They are committed; run it again after a change, with PyPI's onnx and onnxruntime."""
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T, helper as h, numpy_helper as nh

here = pathlib.Path(__file__).parent
F = T.FLOAT


def info(name, shape, dtype=F):
    return h.make_tensor_value_info(name, dtype, shape)


def weight(name, *shape, dtype=np.float32):
    values = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape) / 8
    return nh.from_array(values.astype(dtype), name)


def ints(name, *values):
    return nh.from_array(np.array(values, dtype=np.int64), name)


def save(file, nodes, inputs, outputs, weights=(), opset=18, values=(), extra_opsets=(), functions=(), dim=2, **more):
    graph = h.make_graph(nodes, "g", inputs, outputs, list(weights), value_info=list(values))
    opsets = [h.make_opsetid("", opset)] + [h.make_opsetid(d, v) for d, v in extra_opsets]
    model = h.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="make_models.py", functions=functions)
    if not file.startswith("bad-"):
        save_values(file, model, dim)
    (here / more.get("location", "none")).unlink(missing_ok=True)  # a writer of external data appends
    onnx.save(model, here / file, **more)


def save_values(file, model, dim):
    """Random inputs (symbolic dimensions are `dim`) and what ONNX Runtime computes from them."""
    random = np.random.default_rng(0)
    weights = {w.name for w in model.graph.initializer}
    feeds = {}
    for i in model.graph.input:
        if i.name in weights:
            continue
        shape = [d.dim_value or dim * len(d.dim_param.split("+")) for d in i.type.tensor_type.shape.dim]
        dtype = h.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
        values = random.standard_normal(shape) * 2
        feeds[i.name] = np.asarray(values > 0 if dtype == bool else values, dtype=dtype)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    outputs = dict(zip([o.name for o in model.graph.output], session.run(None, feeds)))
    np.savez(here / (file[: -len(".onnx")] + ".npz"), **{"in:" + k: v for k, v in feeds.items()},
             **{"out:" + k: v for k, v in outputs.items()})


n = h.make_node

# Elementwise operators over a symbolic dimension; names that are no identifiers; two results.
save("elementwise.onnx",
     [n("Add", ["x:0", "y"], ["/sum"], name="add one"), n("Relu", ["/sum"], ["r"], name="relu"),
      n("Identity", ["r"], ["same"]), n("Mul", ["same", "same"], ["square"]), n("Tanh", ["square"], ["t"])],
     [info("x:0", ["batch", 3]), info("y", ["batch", 3])], [info("t", None), info("r", None)])

# Initialisers in typed fields, and every kind of Constant node.
half = h.make_tensor("half", T.FLOAT16, [2], np.array([0.5, 1.5], np.float16))
save("constants.onnx",
     [n("Constant", [], ["c"], value=h.make_tensor("c", F, [2], [1.0, 2.0])),
      n("Constant", [], ["f"], value_float=2.5), n("Constant", [], ["fs"], value_floats=[1.0, -1.0]),
      n("Add", ["x", "c"], ["a"]), n("Mul", ["a", "f"], ["b"]), n("Sub", ["b", "fs"], ["d"]),
      n("Cast", ["half"], ["h"], to=F), n("Div", ["d", "h"], ["y"]), n("Constant", [], ["k"], value_ints=[3, 4])],
     [info("x", [2])], [info("y", [2]), info("k", [2], T.INT64)], [half])

save("conv.onnx",
     [n("Conv", ["x", "w", "b"], ["c"], name="conv", auto_pad="SAME_UPPER", strides=[2, 2]),
      n("MaxPool", ["c"], ["p"], name="pool", kernel_shape=[3, 3], pads=[1, 0, 1, 0], ceil_mode=1),
      n("Conv", ["p", "v"], ["y"], name="grouped", group=2, dilations=[1, 1])],
     [info("x", ["batch", 2, 9, 8])], [info("y", None)],
     [weight("w", 4, 2, 3, 3), weight("b", 4), weight("v", 4, 2, 1, 1)])

save("gemm.onnx",
     [n("Gemm", ["x", "w", "b"], ["g"], name="gemm", transB=1, alpha=0.5, beta=2.0),
      n("Gemm", ["g", "z"], ["y"], name="no bias", transA=1, alpha=3.0)],
     [info("x", ["m", 3]), info("z", ["m", 5])], [info("y", None)], [weight("w", 4, 3), weight("b", 4)])

save("shapes.onnx",
     [n("Reshape", ["x", "to"], ["r"]), n("Flatten", ["x"], ["f"], axis=2), n("Transpose", ["x"], ["t"]),
      n("Transpose", ["x"], ["u"], perm=[0, 2, 1]), n("Unsqueeze", ["r", "axes"], ["s"]),
      n("Squeeze", ["s", "axes"], ["q"])],
     [info("x", ["batch", 4, 6])], [info(name, None) for name in "ftuq"], [ints("to", 0, -1), ints("axes", 1)])

save("softmax_7.onnx", [n("Softmax", ["x"], ["y"], name="matrix"), n("Softmax", ["y"], ["z"], name="last", axis=2)],
     [info("x", ["n", 2, 3])], [info("z", None)], opset=7)
save("softmax_13.onnx", [n("Softmax", ["x"], ["y"], name="last"), n("Softmax", ["y"], ["z"], name="first", axis=0)],
     [info("x", ["n", 2, 3])], [info("z", None)], opset=13)

save("batch_norm.onnx", [n("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"], epsilon=0.5),
                         n("Dropout", ["y"], ["z"])],
     [info("x", ["n", 2, 3, 3])] + [info(name, [2]) for name in "sbmv"], [info("z", None)],
     [weight(name, 2) for name in "sbmv"], opset=9)

# Operators that map to a row as they are, and their relatives.
unary = ["Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Neg", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Tan", "Tanh",
         "Gelu", "LeakyRelu"]
save("unary.onnx", [n(op, ["x"], [op.lower()]) for op in unary] +
     [n("Abs", ["x"], ["p"]), n("Sqrt", ["p"], ["sqrt"]), n("Log", ["p"], ["log"]),
      n("Gelu", ["x"], ["gelu_tanh"], approximate="tanh"), n("LeakyRelu", ["x"], ["leaky_half"], alpha=0.5)],
     [info("x", ["n", 5])],
     [info(name, None) for name in [op.lower() for op in unary] + ["sqrt", "log", "gelu_tanh", "leaky_half"]], opset=20)
compare = ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"]
logical = ["And", "Or", "Xor"]
save("binary.onnx", [n(op, ["x", "y"], [op.lower()]) for op in ["Add", "Sub", "Mul", "Div"]] +
     [n(op, ["x", "y"], [op.lower()]) for op in compare]
     + [n(op, ["less", "greaterorequal"], [op.lower()]) for op in logical] +
     [n("Not", ["less"], ["not"]), n("Where", ["less", "x", "y"], ["where"]), n("Max", ["x", "y", "z"], ["max"]),
      n("Min", ["x", "y"], ["min"]), n("Sum", ["x", "y", "z"], ["sum"]), n("Max", ["x"], ["one"]),
      n("Pow", ["x", "two"], ["pow"]), n("Div", ["i", "j"], ["idiv"]), n("Clip", ["x", "low", "high"], ["clip"]),
      n("Clip", ["x", "", "high"], ["clip_high"])],
     [info("x", ["n", 3, 4]), info("y", [3, 1]), info("z", ["n", 1, 4]), info("i", [2, 6], T.INT32)],
     [info(name, None) for name in ["add", "sub", "mul", "div", "where", "max", "min", "sum", "one", "pow", "clip",
                                    "clip_high"]] +
     [info(name, None, T.BOOL) for name in [op.lower() for op in compare + logical] + ["not"]] +
     [info("idiv", None, T.INT32)],
     [nh.from_array(np.array(2, np.int64), "two"), nh.from_array(np.array([3, -2, 1, 5, -1, 4], np.int32), "j"),
      nh.from_array(np.array(-1, np.float32), "low"), nh.from_array(np.array(0.5, np.float32), "high")])
save("reduce.onnx", [n("ReduceSum", ["x", "axes"], ["sum"]), n("ReduceMean", ["x", "axes"], ["mean"], keepdims=0),
                     n("ReduceMax", ["x"], ["max"]), n("ReduceMin", ["x", "axes"], ["min"]),
                     n("ReduceProd", ["x", "axes"], ["prod"], keepdims=0),
                     n("ReduceSum", ["x"], ["same"], noop_with_empty_axes=1), n("LogSoftmax", ["x"], ["ls"], axis=1),
                     n("GlobalAveragePool", ["x"], ["gap"])],
     [info("x", ["n", 3, 4])],
     [info(name, None) for name in ["sum", "mean", "max", "min", "prod", "same", "ls", "gap"]],
     [ints("axes", 1, -1)])
save("pools.onnx",
     [n("AveragePool", ["x"], ["a"], kernel_shape=[2, 2], strides=[2, 2]),
      n("AveragePool", ["x"], ["b"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
      n("AveragePool", ["x"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
      n("MaxPool", ["x"], ["d"], kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1),
      n("MaxPool", ["x"], ["e"], kernel_shape=[3, 3], auto_pad="SAME_LOWER"),
      n("MaxPool", ["x"], ["f"], kernel_shape=[2, 2], dilations=[2, 2])],
     [info("x", ["n", 2, 7, 6])], [info(name, None) for name in "abcdef"])
# Activations, normalisations, and the windows of convolutions and pools in one, two and three dimensions.
activations = [("Celu", {"alpha": 0.5}), ("Elu", {"alpha": 2.0}), ("HardSigmoid", {"alpha": 0.25}), ("HardSwish", {}),
               ("Mish", {}), ("Selu", {}), ("Shrink", {"lambd": 1.0, "bias": 0.25}), ("Softplus", {}), ("Softsign", {}),
               ("ThresholdedRelu", {"alpha": 0.75}), ("Reciprocal", {}), ("Hardmax", {}), ("LogSoftmax", {"axis": 0})]
save("activations.onnx", [n(op, ["x"], [op.lower()], **attrs) for op, attrs in activations] +
     [n("PRelu", ["x", "slope"], ["prelu"]), n("PRelu", ["x", "x"], ["prelu_full"])],
     [info("x", ["n", 5])],
     [info(name, None) for name in [op.lower() for op, _ in activations] + ["prelu", "prelu_full"]],
     [weight("slope", 5)], opset=20)
save("norms.onnx",
     [n("LayerNormalization", ["x", "s", "b"], ["ln", "mean", "inv"], axis=2),
      n("LayerNormalization", ["x", "t"], ["ln_all"], axis=1, epsilon=0.25),
      n("RMSNormalization", ["x", "t"], ["rms"]), n("InstanceNormalization", ["x", "c", "d"], ["in"]),
      n("GroupNormalization", ["x", "c", "d"], ["gn"], num_groups=2), n("LRN", ["x"], ["lrn"], size=3, alpha=0.5),
      n("LpNormalization", ["x"], ["lp1"], p=1, axis=1), n("LpNormalization", ["x"], ["lp2"]),
      n("MeanVarianceNormalization", ["x"], ["mvn"])],
     [info("x", ["n", 4, 3, 5])],
     [info(name, None) for name in ["ln", "mean", "inv", "ln_all", "rms", "in", "gn", "lrn", "lp1", "lp2", "mvn"]],
     [weight("s", 3, 5), weight("b", 3, 5), weight("t", 5), weight("c", 4), weight("d", 4)], opset=23)
save("group_norm_18.onnx", [n("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)], [info("x", ["n", 4, 3])],
     [info("y", None)], [weight("s", 2), weight("b", 2)], opset=18)
save("reduce_more.onnx",
     [n(op, ["x", "axes"], [op.lower()], keepdims=0) for op in ["ReduceL1", "ReduceL2", "ReduceLogSumExp",
                                                                "ReduceSumSquare"]] +
     [n("ReduceL2", ["x"], ["all"]), n("ReduceLogSumExp", ["x"], ["lse"]),
      n("ReduceSumSquare", ["x", "none"], ["squares"], noop_with_empty_axes=1),
      n("Exp", ["x"], ["e"]), n("ReduceLogSum", ["e", "axes"], ["log_sum"]), n("GlobalMaxPool", ["x"], ["gmp"]),
      n("GlobalLpPool", ["x"], ["glp"], p=3)],
     [info("x", ["n", 3, 4])],
     [info(name, None) for name in ["reducel1", "reducel2", "reducelogsumexp", "reducesumsquare", "all", "lse",
                                    "squares", "log_sum", "gmp", "glp"]],
     [ints("axes", -1), ints("none")])
save("windows.onnx",
     [n("Conv", ["x1", "w1"], ["c1"], strides=[2], pads=[1, 2], dilations=[2]),
      n("Conv", ["x3", "w3", "b"], ["c3"], auto_pad="SAME_LOWER", group=2),
      n("Conv", ["x2", "w2"], ["c2"], group=4, auto_pad="SAME_UPPER"),
      n("MaxPool", ["x1"], ["m1"], kernel_shape=[3], strides=[2], ceil_mode=1),
      n("AveragePool", ["x3"], ["a3"], kernel_shape=[2, 3, 2], pads=[1, 1, 0, 0, 1, 1], count_include_pad=1),
      n("AveragePool", ["x2"], ["a2"], kernel_shape=[2, 2], strides=[3, 3], pads=[1, 1, 1, 1], ceil_mode=1),
      n("LpPool", ["x2"], ["l2"], kernel_shape=[2, 2], p=3),
      n("ConvTranspose", ["x1", "w1"], ["t1"], strides=[3], pads=[1, 0], output_padding=[1]),
      n("ConvTranspose", ["x2", "w2", "b"], ["t2"], group=4, strides=[2, 2], auto_pad="SAME_UPPER"),
      n("ConvTranspose", ["x2", "v2"], ["t2s"], strides=[3, 2], output_shape=[12, 9]),
      n("ConvTranspose", ["x3", "v3"], ["t3"], group=2, dilations=[1, 2, 1])],
     [info("x1", ["n", 4, 9]), info("x2", ["n", 4, 4, 5]), info("x3", ["n", 4, 3, 4, 5])],
     [info(name, None) for name in ["c1", "c2", "c3", "m1", "a3", "a2", "l2", "t1", "t2", "t2s", "t3"]],
     [weight("w1", 4, 4, 3), weight("w2", 4, 1, 3, 3), weight("v2", 4, 2, 3, 3), weight("w3", 4, 2, 2, 3, 2),
      weight("v3", 4, 1, 2, 2, 1), weight("b", 4)])
# Resampling and quantised numbers.
floats = lambda name, *values: nh.from_array(np.array(values, np.float32), name)
save("resize.onnx",
     [n("Resize", ["x", "", "", "to"], ["nearest"]),
      n("Resize", ["x", "", "s"], ["linear"], mode="linear", axes=[2, 3]),
      n("Resize", ["x", "", "s2"], ["cubic"], mode="cubic", axes=[2, 3], exclude_outside=1),
      n("Resize", ["x", "", "", "sq"], ["ratio"], axes=[3, 2], keep_aspect_ratio_policy="not_larger", mode="linear"),
      n("Resize", ["x", "", "twice"], ["up"], coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
      n("Resize", ["x", "roi", "", "to"], ["crop"], mode="linear", coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=1.0),
      n("GridSample", ["x", "g"], ["grid"], padding_mode="border"), n("AffineGrid", ["t", "size"], ["affine"])],
     [info("x", [2, 2, 4, 5]), info("g", [2, 3, 2, 2]), info("t", [2, 2, 3])],
     [info(name, None) for name in ["nearest", "linear", "cubic", "ratio", "up", "crop", "grid", "affine"]],
     [ints("to", 2, 2, 7, 3), floats("s", 1.5, 2.0), floats("s2", 2.0, 4.0), ints("sq", 8, 9),
      floats("twice", 1, 1, 2, 2), ints("size", 2, 2, 3, 4),
      floats("roi", 0, 0, 0.25, -0.25, 1, 1, 0.75, 0.5)], opset=20)
save("upsample_9.onnx", [n("Upsample", ["x", "s"], ["y"]), n("Upsample", ["x", "s"], ["z"], mode="linear")],
     [info("x", ["n", 2, 3, 4])], [info("y", None), info("z", None)], [floats("s", 1, 1, 2, 3)], opset=9)
q = lambda name, dtype, *values: nh.from_array(np.array(values, dtype), name)
save("quantized.onnx",
     [n("QuantizeLinear", ["x", "xs", "xz"], ["xq"]), n("QuantizeLinear", ["x", "cs"], ["xc"], axis=1),
      n("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]), n("DequantizeLinear", ["xc", "cs"], ["xcd"], axis=1),
      n("DynamicQuantizeLinear", ["x"], ["dq", "dscale", "dzero"]),
      n("MatMulInteger", ["xq", "w", "xz", "wz"], ["mi"]),
      n("QLinearMatMul", ["xq", "xs", "xz", "w", "cs3", "wz", "ys", "xz"], ["qm"]),
      n("Reshape", ["xq", "to"], ["image"]), n("ConvInteger", ["image", "k", "xz"], ["ci"], pads=[1, 1, 1, 1]),
      n("QLinearConv", ["image", "xs", "xz", "k", "cs3", "kz", "ys", "xz", "kb"], ["qc"])],
     [info("x", [6, 4])],
     [info("xq", None, T.UINT8), info("xc", None, T.UINT8), info("xd", None), info("xcd", None),
      info("dq", None, T.UINT8),
      info("dscale", None), info("dzero", None, T.UINT8), info("mi", None, T.INT32), info("qm", None, T.UINT8),
      info("ci", None, T.INT32), info("qc", None, T.UINT8)],
     [nh.from_array(np.array(0.05, np.float32), "xs"), nh.from_array(np.array(120, np.uint8), "xz"),
      floats("cs", 0.01, 0.02, 0.03, 0.04), floats("cs3", 0.01, 0.02, 0.03),
      nh.from_array(np.array(0.5, np.float32), "ys"),
      nh.from_array((np.arange(12).reshape(4, 3) * 7 - 40).astype(np.int8), "w"), q("wz", np.int8, 1, -2, 3),
      ints("to", 1, 2, 3, 4),
      nh.from_array((np.arange(24).reshape(3, 2, 2, 2) * 5 - 60).astype(np.int8), "k"), q("kz", np.int8, 0, 0, 0),
      q("kb", np.int32, 10, -20, 30)], opset=19)
save("losses.onnx",
     [n("NegativeLogLikelihoodLoss", ["x", "t", "w"], ["nll"], ignore_index=1),
      n("NegativeLogLikelihoodLoss", ["x", "t"], ["none"], reduction="none"),
      n("SoftmaxCrossEntropyLoss", ["x", "t", "w"], ["sce", "log"]),
      n("SoftmaxCrossEntropyLoss", ["x", "t"], ["sum"], reduction="sum")],
     [info("x", [3, 4, 2])], [info(name, None) for name in ["nll", "none", "sce", "log", "sum"]],
     [floats("w", 1.0, 0.5, 2.0, 0.25), nh.from_array(np.array([[0, 1], [2, 3], [1, 0]], np.int64), "t")], opset=13)
save("join.onnx", [n("Concat", ["x", "y", "x"], ["c"], axis=-1), n("Expand", ["y", "to"], ["e"])],
     [info("x", ["n", 3]), info("y", ["n", 1])], [info("c", None), info("e", None)], [ints("to", 4, 1, 3)])

# Chains of shape arithmetic: targets of Reshape and Expand, factors, and results that are shapes.
save("shape_chains.onnx",
     [n("Shape", ["x"], ["s"]), n("Gather", ["s", "zero"], ["b"], axis=0), n("Slice", ["s", "one", "two"], ["t"]),
      n("Unsqueeze", ["b", "zero_axis"], ["b1"]), n("Concat", ["b1", "t", "heads"], ["to"], axis=0),
      n("Reshape", ["x", "to"], ["r"]),
      n("Split", ["s"], ["p0", "p1", "p2"], axis=0, num_outputs=3), n("Squeeze", ["p1"], ["length"]),
      n("Cast", ["length"], ["length_f"], to=F), n("Mul", ["x", "length_f"], ["scaled"]),
      n("Mul", ["b", "length"], ["rows"]), n("Add", ["rows", "one0"], ["rows1"]),
      n("Reshape", ["rows", "zero_axis_list"], ["rows_1d"]), n("Concat", ["rows_1d", "minus"], ["flat_to"], axis=0),
      n("Reshape", ["x", "flat_to"], ["flat"]),
      n("ConstantOfShape", ["four"], ["ones"], value=h.make_tensor("v", T.INT64, [1], [1])),
      n("Concat", ["minus", "s"], ["wish"], axis=0), n("Equal", ["wish", "minus"], ["free"]),
      n("Where", ["free", "ones", "wish"], ["chosen"]), n("Expand", ["x", "chosen"], ["e"]),
      n("Size", ["x"], ["size"]), n("Sub", ["size", "rows1"], ["left"]),
      n("Shape", ["x"], ["tail"], start=-2), n("ReduceProd", ["tail"], ["volume"], keepdims=0),
      n("Div", ["volume", "two0"], ["half"]), n("Cast", ["half"], ["half_i"], to=T.INT32),
      n("Shape", ["w"], ["ws"]), n("Gather", ["ws", "zero"], ["w0"]), n("Cast", ["w0"], ["w0_f"], to=F),
        n("Sqrt", ["w0_f"], ["root_w"]), n("Div", ["scaled", "root_w"], ["normal"])],
     [info("x", ["batch", "seq", 6]), info("w", [4, 2])],
     [info(name, None) for name in ["r", "scaled", "flat", "e", "normal"]] +
     [info(name, None, T.INT64) for name in ["s", "left", "tail", "rows1"]] + [info("half_i", None, T.INT32)],
     [nh.from_array(np.array(0, np.int64), "zero"), nh.from_array(np.array(1, np.int64), "one0"),
      nh.from_array(np.array(2, np.int64), "two0"), ints("one", 1), ints("two", 2), ints("zero_axis", 0),
      ints("four", 4), ints("heads", 2, 3), ints("minus", -1), ints("zero_axis_list", 1)])

# Functions of the model: attributes of the call, defaults, optional inputs, one function in another, and a branch.
own = [h.make_opsetid("", 18), h.make_opsetid("own", 1)]


def leaf(name, type, reference):
    attribute = onnx.AttributeProto(name=name, type=type, ref_attr_name=reference)
    return attribute


# Attention in both forms of its operands: grouped heads, masks, a cache; rotated positions in halves and in pairs.
save("attention.onnx",
     [n("Attention", ["q", "k", "v", "mask"], ["y"], is_causal=1, scale=0.5),
      n("Attention", ["q", "k", "v", "seen"], ["capped"], softcap=1.5),
      n("Attention", ["q3", "k3", "v3", "", "past_k", "past_v"], ["y3", "present_k", "present_v"], q_num_heads=4,
        kv_num_heads=2)],
     [info("q", ["n", 4, 3, 8]), info("k", ["n", 2, 5, 8]), info("v", ["n", 2, 5, 6]), info("mask", [3, 5]),
      info("seen", ["n", 1, 3, 5], T.BOOL), info("q3", [2, 3, 32]), info("k3", [2, 3, 16]), info("v3", [2, 3, 16]),
      info("past_k", [2, 2, "past", 8]), info("past_v", [2, 2, "past", 8])],
     [info(name, None) for name in ["y", "capped", "y3", "present_k", "present_v"]], opset=23)
save("rotary.onnx",
     [n("RotaryEmbedding", ["x", "cos", "sin"], ["y"]), n("RotaryEmbedding", ["x3", "cos", "sin"], ["y3"], num_heads=2),
      n("RotaryEmbedding", ["x", "cos2", "sin2"], ["pairs"], interleaved=1, rotary_embedding_dim=4)],
     [info("x", ["n", 2, 3, 8]), info("x3", ["n", 3, 16])] +
     [info(name, ["n", 3, 4]) for name in ["cos", "sin"]] + [info(name, ["n", 3, 2]) for name in ["cos2", "sin2"]],
     [info(name, None) for name in ["y", "y3", "pairs"]], opset=23)
# Recurrent layers: both directions with lengths and peepholes, batch first, symbolic sizes; weights that are inputs.
def small(name, *shape):
    return nh.from_array((np.random.default_rng(len(name)).standard_normal(shape) * 0.4).astype(np.float32), name)


lengths = nh.from_array(np.array([3, 5], np.int32), "lengths")
save("recurrent.onnx",
     [n("LSTM", ["x", "lw", "lrr", "lbbb", "lengths", "", "", "lppppp"], ["ly", "lh", "lc"], direction="bidirectional",
        hidden_size=5),
      n("GRU", ["x", "gw", "grr", "gbbb", "lengths"], ["gy", "gh"], direction="reverse", hidden_size=5,
        linear_before_reset=1),
      n("RNN", ["x", "rw", "rrr", "rbbb"], ["ry"], hidden_size=5, activations=["LeakyRelu"], activation_alpha=[0.1])],
     [info("x", [5, 2, 3])], [info(name, None) for name in ("ly", "lh", "lc", "gy", "gh", "ry")],
     [small("lw", 2, 20, 3), small("lrr", 2, 20, 5), small("lbbb", 2, 40), small("lppppp", 2, 15),
      small("gw", 1, 15, 3),
      small("grr", 1, 15, 5), small("gbbb", 1, 30), small("rw", 1, 5, 3), small("rrr", 1, 5, 5), small("rbbb", 1, 10),
      lengths], opset=14)
save("recurrent_symbolic.onnx",
     [n("LSTM", ["x", "w", "r", "", "", "h", "c"], ["y", "yh", "yc"], hidden_size=16),
      n("GRU", ["x", "v", "s"], ["z", "zh"], hidden_size=16)],
     [info("x", ["steps", "batch", 3]), info("h", [1, "batch", 16]), info("c", [1, "batch", 16]),
      info("v", [1, 48, 3])],
     [info(name, None) for name in ("y", "yh", "yc", "z", "zh")],
     [small("w", 1, 64, 3), small("r", 1, 64, 16), small("s", 1, 48, 16)], opset=14)
# The size of a kernel that the weights' dims do not say.
save("implied_dims.onnx", [n("Conv", ["x", "w"], ["y"], name="conv", kernel_shape=[2, 2])],
     [info("x", ["n", 3, 5, 5]), info("w", [4, 3, "h", "k"])], [info("y", None)])

save("einsum.onnx",
     [n("Einsum", ["x", "y"], ["product"], equation="bhqd,bhkd->bhqk"),
      n("Einsum", ["x", "y"], ["outer"], equation="bhqd,bhkd->qbk"),
      n("Einsum", ["x"], ["sums"], equation="...d->..."), n("Einsum", ["x", "v"], ["scaled"], equation="...d,d->d..."),
      n("Einsum", ["s", "s"], ["trace"], equation="ii,jj")],
     [info("x", ["b", 2, 3, 4]), info("y", ["b", 2, 5, 4]), info("s", [3, 3])],
     [info(name, None) for name in ("product", "outer", "sums", "scaled", "trace")], [weight("v", 4)])
save("matmul_shapes.onnx",
     [n("MatMul", ["v", "m"], ["vm"]), n("MatMul", ["m", "v"], ["mv"]), n("MatMul", ["v", "v"], ["vv"]),
      n("MatMul", ["b", "m"], ["bm"]), n("MatMul", ["b", "v"], ["bv"]), n("MatMul", ["v", "b"], ["vb"]),
      n("MatMul", ["b", "t"], ["bt"]), n("MatMul", ["t", "w"], ["tw"]),
      n("Gemm", ["m", "m", "v"], ["row"], transA=1), n("Gemm", ["m", "m", "one"], ["scalar"], transB=1, beta=0.5)],
     [info("v", [4]), info("m", [4, 4]), info("b", ["n", 1, 4, 4]), info("t", [3, 4, 4])],
     [info(name, None) for name in ("vm", "mv", "vv", "bm", "bv", "vb", "bt", "tw", "row", "scalar")],
     [weight("w", 4, 2), weight("one")])

scaled = n("Constant", [], ["s"])
scaled.attribute.append(leaf("value_float", onnx.AttributeProto.FLOAT, "by"))
softened = n("LeakyRelu", ["x"], ["y"])
softened.attribute.append(leaf("alpha", onnx.AttributeProto.FLOAT, "slope"))  # absent in one call: its own default
scale = h.make_function("own", "Scale", ["x", "bias"], ["y"], [scaled, n("Mul", ["x", "s"], ["m"]),
                                                               n("Max", ["m", "bias"], ["y"])], own,
                        attribute_protos=[h.make_attribute("by", 2.0)])
soft = h.make_function("own", "Soft", ["x", "floor"], ["y", "twice"],
                       [softened, n("Scale", ["y", "floor"], ["twice"], domain="own", by=3.0)], own,
                       attributes=["slope"])
branch = [h.make_graph([n(op, ["y", "z"], ["r"])], op, [], [info("r", None)]) for op in ("Add", "Sub")]
save("functions.onnx",
     [n("Soft", ["x", "low"], ["y", "z"], name="first", domain="own", slope=0.5),
      n("Soft", ["z", "low"], ["u", "unused"], name="second", domain="own"),
      n("Scale", ["u", "low"], ["v"], domain="own"),
      n("Shape", ["x"], ["s"]), n("Gather", ["s", "last"], ["width"]), n("Equal", ["width", "four"], ["is_four"]),
      n("If", ["is_four"], ["w"], name="choice", then_branch=branch[0], else_branch=branch[1])],
     [info("x", ["n", 4])], [info("y", None), info("v", None), info("w", None)],
     [nh.from_array(np.array(-1, np.float32), "low"), nh.from_array(np.array(1, np.int64), "last"),
      nh.from_array(np.array(4, np.int64), "four")], extra_opsets=[("own", 1)], functions=[scale, soft])
again = h.make_function("own", "Again", ["x"], ["y"], [n("Relu", ["x"], ["r"]), n("Once", ["r"], ["y"], domain="own")],
                        own)
once = h.make_function("own", "Once", ["x"], ["y"], [n("Again", ["x"], ["y"], domain="own")], own)
save("bad-recursion.onnx", [n("Once", ["x"], ["y"], name="start", domain="own")], [info("x", [3])], [info("y", [3])],
     extra_opsets=[("own", 1)], functions=[again, once])
doubling = [h.make_function("own", f"F{i}", ["x"], ["y"],
                            [n(f"F{i + 1}" if i < 40 else "Relu", ["x"], ["t"], domain="own" if i < 40 else ""),
                                                            n(f"F{i + 1}" if i < 40 else "Relu", ["t"], ["y"],
                                                              domain="own" if i < 40 else "")], own)
            for i in range(41)]
save("bad-doubling.onnx", [n("F0", ["x"], ["y"], name="start", domain="own")], [info("x", [3])], [info("y", [3])],
     extra_opsets=[("own", 1)], functions=doubling)

# A branch that data choose, a loop with a scanned output, and a scan from the last row on.
turn = h.make_graph([n("Add", ["v_in", "x"], ["v_out"]), n("Identity", ["go"], ["go_out"]),
                     n("Neg", ["v_out"], ["row"])], "turn",
                    [info("i", [], T.INT64), info("go", [], T.BOOL), info("v_in", ["n", 2])],
                    [info("go_out", [], T.BOOL), info("v_out", ["n", 2]), info("row", ["n", 2])])
step = h.make_graph([n("Mul", ["s_in", "r"], ["s_out"]), n("Add", ["s_out", "r"], ["t"])], "step",
                    [info("s_in", [2]), info("r", [2])], [info("s_out", [2]), info("t", [2])])
chosen = [h.make_graph([n(op, ["x"], ["c"])], op, [], [info("c", ["n", 2])]) for op in ("Exp", "Abs")]
save("control_flow.onnx",
     [n("If", ["yes"], ["a"], name="choice", then_branch=chosen[0], else_branch=chosen[1]),
      n("Loop", ["three", "", "a"], ["b", "rows"], name="loop", body=turn),
      n("Scan", ["start", "b"], ["last", "all"], name="scan", body=step, num_scan_inputs=1, scan_input_directions=[1])],
     [info("x", ["n", 2]), info("yes", [], T.BOOL)],
     [info("rows", None), info("last", None), info("all", None)],
     [nh.from_array(np.array(3, np.int64), "three"), nh.from_array(np.array([1, 2], np.float32), "start")])

# A sequence that the graph says whole, and one that a loop fills.
fill = h.make_graph([n("Identity", ["go"], ["go_out"]), n("Cast", ["i"], ["f"], to=F), n("Mul", ["x", "f"], ["part"]),
                     n("SequenceInsert", ["s_in", "part"], ["s_out"])], "fill",
                    [info("i", [], T.INT64), info("go", [], T.BOOL),
                     h.make_tensor_sequence_value_info("s_in", F, None)],
                    [info("go_out", [], T.BOOL), h.make_tensor_sequence_value_info("s_out", F, None)])
save("sequences.onnx",
     [n("SplitToSequence", ["x"], ["columns"], name="split", axis=1),
      n("SequenceAt", ["columns", "last"], ["column"], name="pick"),
      n("SequenceEmpty", [], ["nothing"], name="empty"), n("Loop", ["three", "", "nothing"], ["grown"], name="loop",
                                                           body=fill),
      n("SequenceErase", ["grown", "zero"], ["rest"], name="erase"),
      n("ConcatFromSequence", ["rest"], ["all"], name="join", axis=0, new_axis=1),
      n("SequenceAt", ["rest", "last"], ["one"], name="at"), n("SequenceLength", ["rest"], ["count"], name="count")],
     [info("x", ["n", 2])], [info("column", None), info("all", None), info("one", None), info("count", [], T.INT64)],
     [nh.from_array(np.array(value, np.int64), name) for name, value in (("three", 3), ("zero", 0), ("last", -1))])

# Operators that are several rows: bits, remainders, blocks of space and depth, windows, constants.
save("composite.onnx",
     [n("Mod", ["i", "j"], ["mod"]), n("Mod", ["x", "y"], ["fmod"], fmod=1), n("Pow", ["j", "two"], ["ipow"]),
      n("BitwiseAnd", ["i", "j"], ["band"]), n("BitwiseOr", ["i", "j"], ["bor"]), n("BitwiseXor", ["i", "j"], ["bxor"]),
      n("BitShift", ["u", "us"], ["left"], direction="LEFT"), n("BitShift", ["u", "us"], ["right"], direction="RIGHT"),
      n("Div", ["x", "zero"], ["inf"]), n("IsInf", ["inf"], ["is_inf"]),
      n("IsInf", ["inf"], ["is_pos"], detect_negative=0),
      n("IsInf", ["inf"], ["is_neg"], detect_positive=0), n("Mean", ["x", "y", "x"], ["mean"]),
      n("CastLike", ["x", "i"], ["like"]), n("SpaceToDepth", ["image"], ["depth"], blocksize=2),
      n("DepthToSpace", ["image"], ["space"], blocksize=2),
      n("DepthToSpace", ["image"], ["crd"], blocksize=2, mode="CRD"),
      n("EyeLike", ["square"], ["eye"], k=1, dtype=T.INT32), n("HannWindow", ["seven"], ["hann"]),
      n("HammingWindow", ["seven"], ["hamming"], periodic=0), n("BlackmanWindow", ["seven"], ["blackman"]),
      n("Shape", ["x"], ["sx"]), n("ConstantOfShape", ["sx"], ["filled"], value=h.make_tensor("v", F, [1], [2.5])),
      n("Dropout", ["x"], ["same", "mask"])],
     [info("x", ["n", 4]), info("y", [4]), info("i", [6], T.INT32), info("image", [1, 4, 4, 6]),
      info("square", [3, 5])],
     [info(k, None, T.INT32) for k in ["mod", "ipow", "band", "bor", "bxor", "like", "eye"]] +
     [info(k, None) for k in ["fmod", "mean", "depth", "space", "crd", "hann", "hamming", "blackman", "filled", "same"]]
     + [info(k, None, T.BOOL) for k in ["is_inf", "is_pos", "is_neg", "mask"]] +
     [info(k, None, T.UINT8) for k in ["left", "right"]],
     [nh.from_array(np.array([3, -2, 1, 5, -1, 4], np.int32), "j"), nh.from_array(np.array(2, np.int32), "two"),
      nh.from_array(np.array([16, 4, 255], np.uint8), "u"), nh.from_array(np.array([1, 7, 3], np.uint8), "us"),
      nh.from_array(np.array(0, np.float32), "zero"), nh.from_array(np.array(7, np.int64), "seven")])

# Sparse constants; external data; dimensions that are arithmetic on others.
sparse = h.make_sparse_tensor(h.make_tensor("sv", F, [2], [1.5, -2.0]), h.make_tensor("si", T.INT64, [2], [1, 5]),
                              [2, 3])
save("sparse.onnx", [n("Constant", [], ["c"], sparse_value=sparse), n("Add", ["x", "c"], ["y"])], [info("x", [2, 3])],
     [info("y", None)])
save("external.onnx", [n("MatMul", ["x", "w"], ["m"]), n("Add", ["m", "b"], ["y"])], [info("x", ["n", 16])],
     [info("y", None)], [weight("w", 16, 8), weight("b", 8)], save_as_external_data=True, location="external.bin",
     size_threshold=0)
save("dims.onnx", [n("Concat", ["past", "now"], ["all"], axis=0), n("Add", ["all", "mask"], ["y"])],
     [info("mask", ["past + now", 3]), info("past", ["past", 3]), info("now", ["now", 3])], [info("y", None)])

save("bounds.onnx", [n("Relu", ["x"], ["y"]), n("Relu", ["z"], ["w"])],
     [info("x", ["batch", "seq len"]), info("z", ["batch", None])], [info("y", None), info("w", None)])

# A convolution of one channel in long frames is a product of the frames.
save("spectrum.onnx", [n("Conv", ["x", "w", "b"], ["y"], strides=[64], pads=[32, 0], name="frames")],
     [info("x", [1, 1, "n"])], [info("y", None)], [weight("w", 32, 1, 128), weight("b", 32)], dim=200)

# As many elements as the data say, and what comes behind them; the same of constants.
save("counted.onnx",
     [n("Greater", ["x", "zero"], ["positive"]), n("NonZero", ["positive"], ["places"]),
      n("Transpose", ["places"], ["rows"], perm=[1, 0]), n("GatherND", ["x", "rows"], ["picked"]),
      n("Exp", ["picked"], ["e"]), n("ReduceSum", ["e", "first"], ["total"], keepdims=0),
      n("Shape", ["picked"], ["how_many"]),
      n("Compress", ["x", "chosen"], ["some"], axis=0), n("MatMul", ["some", "w"], ["product"]),
      n("Relu", ["product"], ["r"]), n("Concat", ["r", "r"], ["twice"], axis=0),
      n("Compress", ["x", "positions"], ["flat"]),
      n("Round", ["x"], ["whole"]), n("Unique", ["whole"], ["u", "ui", "uv", "uc"]),
      n("Unique", ["whole"], ["v", "", "vv"], sorted=0), n("Unique", ["ids"], ["slices", "", "", "sc"], axis=1),
      n("NonZero", ["mask"], ["known"]), n("Gather", ["x", "sc"], ["gathered"], axis=1, name="by counts")],
     [info("x", ["n", 5]), info("chosen", ["n"], T.BOOL)],
     [info(k, None) for k in ["picked", "total", "some", "twice", "flat", "u", "v", "gathered"]] +
     [info(k, None, T.INT64) for k in ["places", "how_many", "ui", "uv", "uc", "vv", "sc", "known"]] +
     [info("slices", None, T.INT64)],
     [nh.from_array(np.array(0, np.float32), "zero"), ints("first", 0), weight("w", 5, 3),
      nh.from_array(np.array([0, 1, 1, 0, 0, 0, 0, 1], bool), "positions"),
      nh.from_array(np.array([[1, 0, 1, 1], [2, 3, 2, 2]], np.int64), "ids"),
      nh.from_array(np.array([[1, 0], [1, 1]], bool), "mask")])
save("boxes.onnx",
     [n("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["kept"]),
      n("NonMaxSuppression", ["boxes", "scores", "most", "iou"], ["centred"], center_point_box=1),
      n("NonMaxSuppression", ["boxes", "scores"], ["nothing"]),
      n("Gather", ["kept", "two"], ["which"], axis=1), n("Gather", ["boxes", "which"], ["of_kept"], axis=1)],
     [info("boxes", [2, "n", 4]), info("scores", [2, 3, "n"])],
     [info(k, None, T.INT64) for k in ["kept", "centred", "nothing"]] + [info("of_kept", None)],
     [ints("most", 4), nh.from_array(np.array([0.25], np.float32), "iou"),
      nh.from_array(np.array([-0.5], np.float32), "least"), nh.from_array(np.array(2, np.int64), "two")], dim=12)

# Shapes that the values of inputs decide. The inputs are what save_values rounds random numbers to; Abs and Mod make
# lengths of them.
save("data_shapes.onnx",
     [n("Abs", ["seed"], ["positive"]), n("Mod", ["positive", "three"], ["small"]),
      n("Add", ["small", "one"], ["size"]), n("Gather", ["size", "zero"], ["length"], axis=0),
      n("ConstantOfShape", ["size"], ["filled"], value=h.make_tensor("v", F, [1], [2.5])),
      n("Expand", ["column", "size"], ["expanded"]), n("Tile", ["x", "size"], ["tiled"]),
      n("Reshape", ["tiled", "rest"], ["flat"]), n("Gather", ["size", "first"], ["size0"], axis=0),
      n("Concat", ["rest", "size0"], ["to"], axis=0), n("Reshape", ["tiled", "to"], ["reshaped"]),
      n("Range", ["zero", "length", "one0"], ["range"]), n("Cast", ["length"], ["limit"], to=F),
      n("Range", ["start", "limit", "half"], ["fractions"]),
      n("Unsqueeze", ["length", "first"], ["k"]), n("TopK", ["x", "k"], ["top", "places"], axis=1),
      n("Slice", ["x", "back", "far", "axis1"], ["fixed"]), n("Neg", ["k"], ["from_end"]),
      n("Slice", ["x", "from_end", "far", "axis1"], ["last"]), n("Slice", ["x", "first", "k", "axis1"], ["front"]),
      n("OneHot", ["ids", "k", "onoff"], ["hot"]), n("Pad", ["x", "pads", "limit"], ["padded"]),
      n("Transpose", ["expanded"], ["expanded_t"]), n("MatMul", ["expanded", "expanded_t"], ["product"])],
     [info("seed", [2], T.INT64), info("x", [2, 6]), info("column", [1, 1])],
     [info(k, None) for k in ["filled", "expanded", "tiled", "flat", "reshaped", "fractions", "top", "last", "front",
                              "hot", "padded",
                              "product", "fixed"]] + [info(k, None, T.INT64) for k in ["range", "places"]],
     [ints("three", 3), ints("one", 2, 3), ints("rest", -1), ints("first", 0), ints("axis1", 1), ints("back", -2),
      ints("far", 2**31), ints("pads", 0, 1, 0, 2),
      nh.from_array(np.array(0, np.int64), "zero"), nh.from_array(np.array(1, np.int64), "one0"),
      nh.from_array(np.array(0.25, np.float32), "start"), nh.from_array(np.array(0.5, np.float32), "half"),
      nh.from_array(np.array([0, 1, -1], np.int64), "ids"), nh.from_array(np.array([0.5, 3], np.float32), "onoff")])
# Axes and steps that a call gives: each way to choose them is a branch. (Random numbers make 0 and -1 of the axes.)
save("axes_of_calls.onnx",
     [n("ReduceMax", ["x", "axes"], ["r"], keepdims=0), n("ReduceSum", ["x", "some"], ["s"]),
      n("Unsqueeze", ["x", "axes"], ["u"]), n("Slice", ["x", "starts", "ends", "axis1", "steps"], ["parts"])],
     [info("x", ["n", 3]), info("axes", [1], T.INT64), info("some", ["k"], T.INT64), info("starts", [1], T.INT64),
      info("steps", [1], T.INT64)], [info(k, None) for k in ["r", "s", "u", "parts"]],
     [ints("axis1", 1), ints("ends", 3)], dim=1)
save("windows_of_images.onnx",
     [n("MaxPool", ["x"], ["m", "mi"], kernel_shape=[2, 2], strides=[2, 2]), n("MaxUnpool", ["m", "mi"], ["u"],
                                                                              kernel_shape=[2, 2], strides=[2, 2]),
      n("MaxPool", ["x"], ["p", "pi"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], storage_order=1),
      n("RoiAlign", ["x", "rois", "batch"], ["r"], output_height=2, output_width=3, spatial_scale=0.5,
        sampling_ratio=0),
      n("Resize", ["x", "", "scales"], ["a"], mode="linear", antialias=1),
      n("Resize", ["x", "", "", "sizes"], ["c"], mode="cubic", antialias=1)],
     [info("x", [2, 3, 8, 6])], [info(k, None) for k in ["m", "u", "p", "r", "a", "c"]] +
     [info(k, None, T.INT64) for k in ["mi", "pi"]],
     [nh.from_array(np.array([[0, 0, 9, 11], [2, 3, 4, 4.5]], np.float32), "rois"), ints("batch", 1, 0),
      nh.from_array(np.array([1, 1, 0.5, 0.6], np.float32), "scales"), ints("sizes", 2, 3, 3, 4)], opset=19)

# Weights of four bits and of eight-bit floats.
int4 = h.make_tensor("w4", T.INT4, [4, 3], np.array([-8, 7, 1, 0, -1, 3, 5, -4, 2, -7, 6, -2], np.int8))
uint4 = h.make_tensor("u4", T.UINT4, [4, 3], np.array([0, 15, 1, 8, 9, 3, 5, 4, 2, 7, 6, 14], np.uint8))
save("four_bits.onnx",
     [n("DequantizeLinear", ["w4", "scales"], ["w"], axis=1), n("MatMul", ["x", "w"], ["y"]),
      n("DequantizeLinear", ["u4", "scale", "zero4"], ["u"]), n("MatMul", ["x", "u"], ["z"]),
      n("Cast", ["x"], ["e"], to=T.FLOAT8E4M3FN), n("Cast", ["e"], ["back"], to=F),
      n("Cast", ["x"], ["e5"], to=T.FLOAT8E5M2), n("Cast", ["e5"], ["back5"], to=F)],
     [info("x", ["n", 4])], [info(k, None) for k in ["y", "z", "back", "back5"]],
     [int4, uint4, nh.from_array(np.array([0.5, 0.25, 2], np.float32), "scales"),
      nh.from_array(np.array(0.125, np.float32), "scale"),
      h.make_tensor("zero4", T.UINT4, [], np.array([8], np.uint8))],
     opset=21)

save("bad-unsupported.onnx",
     [n("Relu", ["x"], ["a"], name="fine"), n("MyOp", ["a"], ["b"], name="custom", domain="acme"),
      n("StringConcat", ["b", "x"], ["c"], name="concatenate"), n("Relu", ["c"], ["d"], name="after"),
      n("Cast", ["d"], ["e"], name="to string", to=T.STRING), n("NonZero", ["d"], ["y"])],
     [info("x", ["batch", 3])], [info("y", None)], values=[info("c", ["batch", 3])], extra_opsets=[("acme", 1)])
save("bad-undefined.onnx", [n("Add", ["x", "y"], ["z"], name="add")], [info("x", [3])], [info("z", [3])])
save("bad-twice.onnx", [n("Relu", ["x"], ["y"]), n("Relu", ["x"], ["y"])], [info("x", [3])], [info("y", [3])])
save("bad-attribute.onnx", [n("Flatten", ["x"], ["y"], name="flat", axis="1")], [info("x", [3, 4])], [info("y", None)])
save("bad-axis.onnx", [n("Flatten", ["x"], ["y"], name="flat", axis=5)], [info("x", [3, 4])], [info("y", None)])
save("bad-shapes.onnx", [n("Add", ["x", "y"], ["z"], name="sum")], [info("x", [3, 4]), info("y", [5])],
     [info("z", None)])
save("bad-output.onnx", [n("Relu", ["x"], ["y"])], [info("x", [3])], [info("z", [3])])
save("bad-output-type.onnx", [n("Relu", ["x"], ["y"])], [info("x", [3])], [info("y", [3], T.INT64)])
save("bad-opset.onnx", [n("Add", ["x", "x"], ["y"])], [info("x", [3])], [info("y", [3])], opset=6)
save("bad-reshape.onnx", [n("Reshape", ["x", "to"], ["y"], name="reshape")], [info("x", [3, 4])], [info("y", None)],
     [ints("to", 5, -1)])
save("bad-rank.onnx", [n("Unsqueeze", ["x", "axes"], ["y"], name="many")], [info("x", [2])], [info("y", None)],
     [ints("axes", *range(9))])
save("bad-count.onnx", [n("Expand", ["x", "to"], ["y"], name="large")], [info("x", [1])], [info("y", None)],
     [ints("to", 2**62, 8)])
save("bad-dynamic-reshape.onnx", [n("Reshape", ["x", "to"], ["y"], name="reshape")],
     [info("x", [3, 4]), info("to", ["rank"], T.INT64)], [info("y", None)])
short = h.make_tensor("w", F, [2], [1.0, 2.0])
short.dims[0] = 3
save("bad-tensor.onnx", [n("Add", ["x", "w"], ["y"])], [info("x", [3])], [info("y", None)], [short])
huge = h.make_tensor("w", F, [2], [1.0, 2.0])
huge.dims[:] = [2**32, 2**32]
save("bad-huge.onnx", [n("Add", ["x", "w"], ["y"])], [info("x", [3])], [info("y", None)], [huge])
outside = T(name="w", data_type=F, dims=[2], data_location=T.EXTERNAL)
outside.external_data.add(key="location", value="../weights.bin")
save("bad-external.onnx", [n("Add", ["x", "w"], ["y"])], [info("x", [2])], [info("y", None)], [outside])
far = T(name="w", data_type=F, dims=[2], data_location=T.EXTERNAL)
far.external_data.add(key="location", value="external.bin")
far.external_data.add(key="offset", value=str(2**63 - 1))
save("bad-external-offset.onnx", [n("Add", ["x", "w"], ["y"])], [info("x", [2])], [info("y", None)], [far])
