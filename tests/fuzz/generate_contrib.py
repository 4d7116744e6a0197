"""com.microsoft's operators: what onnxruntime.quantization and ONNX Runtime's optimisers write."""
import numpy as np

from generate_quantised import SCALES, convolved, quantised, scale_and_zero
from graph import Skip
from oracle import MICROSOFT
from registry import generates
from tensors import BOOL, F32, F64, I16, I32, I64, I8, U16, U8

MS = MICROSOFT + "."


def microsoft(*names, weight=1):
    return generates(*(MS + name for name in names), weight=weight)


# ---- products of integers

@microsoft("MatMulIntegerToFloat", "DynamicQuantizeMatMul", weight=2)
def product_to_float(g):
    k, n = g.choice([3, 8, 17]), g.choice([1, 4, 16])
    other = g.choice([U8, I8])
    b = g.constant(g.rng.integers(0 if other == U8 else -9, 9, [k, n]), other)
    width = g.choice([[], [1], [n]])
    b_scale, b_zero = g.constant(g.rng.choice(SCALES, width), F32), g.constant(g.rng.integers(0, 4, width), other)
    b_zero = b_zero if g.coin(0.7) else None
    bias = g.constant(g.rng.integers(-4, 5, [n]), F32) if g.coin() else None
    if g.coin():
        a_dtype = g.choice([U8, I8])
        a = quantised(g, g.choice([["N", k], [4, k], [2, 3, k]]), a_dtype)
        a_scale, a_zero = scale_and_zero(g, a_dtype)
        return g.emit(MS + "MatMulIntegerToFloat",
                      [a, b, a_scale, b_scale, a_zero if g.coin(0.7) else None, b_zero, bias])
    return g.emit(MS + "DynamicQuantizeMatMul", [ranged(g, g.choice([["N", k], [4, k]])), b, b_scale, b_zero, bias])


def ranged(g, dims, parts=1):
    """Numbers that dynamic quantisation does not round: multiples of 1/64, of which the range is 0 to 255/64, in each
    of the parts of the first axis that are quantised alone."""
    v = g.add_input(dims, F32, True, 0, 255, wild=False)
    for i, array in enumerate(v.arrays):
        if array.size < 2 * parts:
            raise Skip
        array = array.astype(np.float64).reshape(parts, -1) / 64
        array[:, 0], array[:, 1] = 0, 255 / 64
        v.arrays[i] = array.reshape(v.arrays[i].shape).astype(np.float32)
    return v


@microsoft("QGemm")
def qgemm(g):
    dtype, other = g.choice([U8, I8]), I8
    k, n = g.choice([3, 8, 17]), g.choice([1, 4, 16])
    trans_a, trans_b = g.choice([None, 0, 1]), g.choice([None, 0, 1])
    a = quantised(g, [k, 4] if trans_a else g.choice([["N", k], [4, k]]), dtype)
    b = g.constant(g.rng.integers(-9, 9, [n, k] if trans_b else [k, n]), other)
    width = g.choice([[], [n]])
    b_scale, b_zero = g.constant(g.rng.choice(SCALES, width), F32), g.constant(g.rng.integers(-2, 3, width), other)
    a_scale, a_zero = scale_and_zero(g, dtype)
    c = g.constant(g.rng.integers(-20, 20, g.choice([[n], [1, n], [1]])), I32) if g.coin() else None
    y = [g.scalar(g.choice([1.0, 2.0, 4.0])), g.scalar(g.choice([0, 5]), dtype)] if g.coin(0.7) else [None, None]
    g.emit(MS + "QGemm", [a, a_scale, a_zero, b, b_scale, b_zero, c, *y], transA=trans_a, transB=trans_b,
           alpha=g.choice([None, 1.0, 0.5]))


# ---- between quantisers

def operand(g, dims, dtype):
    """A quantised tensor, its scale and its zero point, which may be left out."""
    scale, zero = scale_and_zero(g, dtype)
    return [quantised(g, dims, dtype), scale, zero if g.coin(0.8) else None]


def result(g, dtype):
    return [g.scalar(g.choice([1.0, 0.5, 0.25])), g.scalar(g.choice([0, 5]), dtype) if g.coin(0.8) else None]


@microsoft("QLinearAdd", "QLinearMul", weight=2)
def qlinear_binary(g):
    dtype = g.choice([U8, I8])
    dims, other = g.choice([([4, "N", 8], [4, "N", 8]), (["N", 3, 8], [8]), ([2, "S", 8], [1, "S", 1]),
                            ([2, 8, 4], [1, 8, 1]), (["N"], ["N"])])
    g.emit(MS + g.choice(["QLinearAdd", "QLinearMul"]),
           [*operand(g, dims, dtype), *operand(g, other, dtype), *result(g, dtype)])


@microsoft("QLinearSigmoid", "QLinearLeakyRelu")
def qlinear_activation(g):
    dtype, dims = g.choice([U8, I8]), g.choice([["N", 8], [2, "S", 3], [5]])
    if g.coin():
        scale = g.scalar(1 / 256)
        zero = g.scalar(0 if dtype == U8 else -128, dtype)
        return g.emit(MS + "QLinearSigmoid", [*operand(g, dims, dtype), scale, zero])
    y = [g.scalar(g.choice([1.0, 0.5, 0.25])), g.scalar(g.choice([0, 5]), dtype)]  # (ONNX Runtime needs the last one)
    return g.emit(MS + "QLinearLeakyRelu", [*operand(g, dims, dtype), *y],
                  alpha=g.choice([None, 0.5, 0.25]))


@microsoft("QLinearSoftmax")
def qlinear_softmax(g):
    dtype, dims = g.choice([U8, I8]), g.choice([["N", 8], [2, "S", 3], [2, 3, 4]])
    scale, zero = g.scalar(1 / 256), g.scalar(0 if dtype == U8 else -128, dtype)
    axis = g.choice([-1, len(dims) - 1, 1, 0])
    g.emit(MS + "QLinearSoftmax", [*operand(g, dims, dtype), scale, zero], opset=g.choice([11, 13, 17]), axis=axis)


@microsoft("QLinearConcat")
def qlinear_concat(g):
    dtype = g.choice([U8, I8])
    y_scale, y_zero = scale_and_zero(g, dtype)
    parts = [operand(g, dims, dtype) for dims in g.choice([(["N", 4], ["N", 8]), ([2, "S"], [2, "S"], [2, 3])])]
    if any(part[2] is None for part in parts):
        return
    g.emit(MS + "QLinearConcat", [y_scale, y_zero, *sum(parts, [])], axis=g.choice([1, -1]))


@microsoft("QLinearConv", "NhwcMaxPool", weight=2)
def channels_last(g):
    """What ONNX Runtime's optimiser makes of quantised pictures."""
    dtype = g.choice([U8, I8])
    x, w, attributes = convolved(g, dtype, I8)
    n, c, h, s = [d if isinstance(d, int) else name for d, name in zip(x.dims(), ("N", None, None, "S"))]
    last = g.choice([None, 0, 1])
    if last or g.coin(0.3):
        x = quantised(g, [n, h, s, c], dtype)
        if g.coin(0.3) or not last:
            del attributes["group"]
            attributes["kernel_shape"] = w.dims()[2:]
            if 1 in w.dims()[2:]:
                attributes["pads"] = None
            if x.shortest(2) < 3:  # (Windows longer than the data: disputes.py.)
                raise Skip
            return g.emit(MS + "NhwcMaxPool", [x], ceil_mode=g.choice([None, 0, 1]), **attributes)
    x_scale, x_zero = scale_and_zero(g, dtype)
    w_scale = g.constant(g.rng.choice(SCALES, g.choice([[], [4]])), F32)
    w_zero = g.constant(np.zeros(w_scale.arrays[0].shape), I8)
    y = [g.scalar(g.choice([1.0, 2.0, 4.0])), g.scalar(g.choice([0, 5]), dtype)]
    bias = g.constant(g.rng.integers(-20, 20, [4]), I32) if g.coin() else None
    return g.emit(MS + "QLinearConv", [x, x_scale, x_zero, w, w_scale, w_zero, *y, bias], channels_last=last,
                  **attributes)


@microsoft("QLinearWhere")
def qlinear_where(g):
    dtype = g.choice([U8, I8])
    dims = g.choice([["N", 4], [2, "S"], [6]])
    condition = g.add_input(dims, BOOL, True, 0, 1)
    x, y = operand(g, dims, dtype), operand(g, dims[-1:] if g.coin(0.3) else dims, dtype)
    if x[2] is None or y[2] is None:
        raise Skip
    g.emit(MS + "QLinearWhere", [condition, *x, *y, g.scalar(g.choice([1.0, 0.5])), g.scalar(g.choice([0, 5]), dtype)])


@microsoft("QuantizeLinear", "DequantizeLinear", weight=2)
def sixteen_bits(g):
    """What the quantiser writes where the opset lacks 16 bits."""
    v = g.pick((F32,), rank=(1, 2, 3), test=lambda v: v.exact and v.finite)
    dtype = g.choice([U8, I8, U16, I16])
    axis = g.integer(0, len(v.dims()) - 1)
    width = v.dims()[axis] if g.coin(0.4) and isinstance(v.dims()[axis], int) and v.dims()[axis] > 0 else None
    scale = g.constant(g.rng.choice(SCALES, [] if width is None else [width]), F32)
    zero = g.constant(g.rng.integers(0, 4, scale.arrays[0].shape), dtype)
    along = {} if width is None else {"axis": axis}
    q = g.emit(MS + "QuantizeLinear", [v, scale, zero], **along)
    g.emit(MS + "DequantizeLinear", [q, scale, zero], **along)


# ---- other names of ONNX's own operators

@microsoft("Trilu", "GatherND", "GridSample")
def other_names(g):
    kind = g.integer(0, 2)
    if kind == 0:
        k = g.constant(np.array(g.integer(-2, 2)), I64) if g.coin() else None
        return g.emit(MS + "Trilu", [g.pick((F32,), rank=(2, 3)), k], upper=g.choice([None, 0, 1]))
    if kind == 1:
        v = g.add_input(["N", 5], F32, False)
        return g.emit(MS + "GatherND", [g.emit("Transpose", [v]), g.constant(g.rng.integers(0, 5, [3, 1]), I64)])
    picture = g.add_input(["N", 2, 5, 4], F32, False, wild=False)
    grid = g.add_input(["N", 3, 2, 2], F32, True, -4, 4, wild=False)
    return g.emit(MS + "GridSample", [picture, grid], mode=g.choice([None, "bilinear", "nearest"]),
                  padding_mode=g.choice([None, "zeros", "border"]), align_corners=g.choice([None, 0, 1]))


@microsoft("CDist")
def distances(g):
    k, dtype = g.choice([1, 3, 8]), g.choice([F32, F64])
    a, b = g.add_input(["N", k], dtype, True, -4, 4, wild=False), g.constant(g.rng.integers(-4, 5, [5, k]), dtype)
    if not a.full:
        raise Skip
    g.emit(MS + "CDist", [a, b], metric=g.choice(["euclidean", "sqeuclidean"]))


@microsoft("QLinearAveragePool", "QLinearGlobalAveragePool", weight=2)
def qlinear_pool(g):
    dtype, last = g.choice([U8, I8]), g.choice([None, 0, 1])
    h, w = g.choice([4, 8]), g.choice([8, "S"])
    x = operand(g, ["N", h, w, 4] if last else ["N", 4, h, w], dtype)
    if x[0].shortest(2 if last else 3) < 2:  # (Windows longer than the data: disputes.py.)
        raise Skip
    x = x[:2] + [x[2] or g.scalar(0, dtype)]
    y = [g.scalar(g.choice([0.5, 0.25])), g.scalar(3, dtype)]
    if g.coin():
        return g.emit(MS + "QLinearGlobalAveragePool", [*x, *y], channels_last=last)
    pads = [g.choice([0, 1]) for _ in range(4)] if g.coin() else None
    counts = g.choice([None, 0, 1])
    ceil = g.choice([None, 0, 1]) if not counts or w == 8 else None
    return g.emit(MS + "QLinearAveragePool", [*x, *y], channels_last=last, kernel_shape=[2, g.choice([1, 2])],
                  strides=g.choice([None, [1, 2]]), pads=pads, count_include_pad=counts,
                  ceil_mode=ceil,
                  auto_pad=None if pads or counts and ceil else g.choice(["NOTSET", "SAME_UPPER", "VALID"]))


@microsoft("DynamicQuantizeLSTM", weight=2)
def lstm(g):
    """Without a rounding of states: of one step from a state that is not rounded, or without a recurrence."""
    hidden, width, batch = g.choice([2, 5, 16]), g.choice([3, 8]), g.choice([1, 2])
    directions = 2 if g.coin(0.4) else 1
    is_one = g.coin()
    def weights(rows, zero_only):
        low, high = (0, 1) if zero_only else (-9, 10)
        by_column = g.coin()
        shape = [directions, 4 * hidden] if by_column else [directions]
        zero = g.constant(np.zeros(shape) if zero_only else g.rng.integers(-2, 3, shape[:1]).reshape(
            [directions] + [1] * (len(shape) - 1)) * np.ones(shape), I8)
        return (g.constant(g.rng.integers(low, high, [directions, rows, 4 * hidden]), I8),
                g.constant(g.rng.choice([0.0625, 0.03125], shape), F32), zero)
    w, w_scale, w_zero = weights(width, False)
    r, r_scale, r_zero = weights(hidden, not is_one)
    x = ranged(g, [1 if is_one else g.choice(["N", 3]), batch, width])
    bias = g.weight([directions, 8 * hidden], whole=False, scale=1) if g.coin() else None
    lengths = g.constant([x.shortest(0)] * batch, I32) if g.coin(0.3) else None
    h = ranged(g, [directions, batch, hidden], directions) if is_one or g.coin(0.3) else None
    c = g.weight([directions, batch, hidden], whole=False, scale=1) if g.coin() else None
    peepholes = g.weight([directions, 3 * hidden], whole=False, scale=1) if g.coin(0.3) else None
    names = {"activations": ["Sigmoid", "Tanh", "Tanh"] * directions} if g.coin(0.3) else {}
    if not names and g.coin(0.3):
        names = {"activations": ["HardSigmoid", "Tanh", "LeakyRelu"] * directions,
                 "activation_alpha": [0.25, 0.5] * directions, "activation_beta": [0.5] * directions}
    g.emit(MS + "DynamicQuantizeLSTM", [x, w, r, bias, lengths, h, c, peepholes, w_scale, w_zero, r_scale, r_zero], 3,
           hidden_size=hidden, direction="bidirectional" if directions == 2 else g.choice([None, "reverse", "forward"]),
           clip=g.choice([None, None, 2.0]), input_forget=g.choice([None, 0, 1]), **names)


# ---- fused operators

@microsoft("Gelu", "BiasGelu", "FastGelu", "QuickGelu", weight=2)
def gelus(g):
    op = g.choice(["Gelu", "BiasGelu", "FastGelu", "QuickGelu"])
    v = g.pick((F32,), rank=(1, 2, 3), test=lambda v: v.finite and isinstance(v.dims()[-1], int) and v.full)
    bias = [g.weight([v.dims()[-1]])] if op == "BiasGelu" or op == "FastGelu" and g.coin() else []
    g.emit(MS + op, [v, *bias], alpha=g.choice([None, 1.5]) if op == "QuickGelu" else None)


@microsoft("FusedMatMul", "TransposeMatMul", weight=2)
def fused_matmul(g):
    k, n = g.choice([3, 8]), g.choice([1, 4, 16])
    flags = {name: g.choice([None, 0, 1]) for name in ("transA", "transB", "transBatchA", "transBatchB")}
    if g.coin():  # matrices have no batches
        flags.update(transBatchA=None, transBatchB=None)
        a, b = [k, "N"] if flags["transA"] else ["N", k], [n, k] if flags["transB"] else [k, n]
    else:
        a = laid([2, 3, 5, k], flags["transA"], flags["transBatchA"])
        b = laid([2, 3, k, n], flags["transB"], flags["transBatchB"])
    is_older = flags["transBatchA"] is None and flags["transBatchB"] is None and g.coin()
    g.emit(MS + ("TransposeMatMul" if is_older else "FusedMatMul"), [g.add_input(a, F32), g.add_input(b, F32)],
           alpha=g.choice([None, 0.5, 1.0]), **flags)


def laid(dims, swaps, batches):
    """[batch, batch, rows, columns] as the flags say: the last two axes swapped, then the rows in front."""
    dims = dims[:2] + dims[:1:-1] if swaps else dims
    return [dims[2], *dims[:2], dims[3]] if batches else dims


ACTIVATIONS = {"Relu": {}, "Tanh": {}, "Sigmoid": {}, "Softplus": {}, "LeakyRelu": {"alpha": 0.1},
               "Elu": {"alpha": 0.5}, "HardSigmoid": {"alpha": 0.2, "beta": 0.5}, "Selu": {"alpha": 1.5, "gamma": 1.1}}


@microsoft("FusedGemm", weight=2)
def fused_gemm(g):
    k, n = g.choice([3, 8]), g.choice([4, 16])
    name = g.choice(ACTIVATIONS)
    parameters = {"activation_" + key: number for key, number in ACTIVATIONS[name].items()}
    trans_a, trans_b = g.choice([None, 0, 1]), g.choice([None, 0, 1])
    g.emit(MS + "FusedGemm",
           [g.add_input([k, "N"] if trans_a else ["N", k], F32), g.weight([n, k] if trans_b else [k, n]),
            g.weight([n]) if g.coin() else None], activation=name, transA=trans_a, transB=trans_b,
           alpha=g.choice([None, 0.5]), beta=g.choice([None, 2.0]), **parameters)


@microsoft("FusedConv", weight=2)
def fused_conv(g):
    x, w, attributes = convolved(g, F32, F32)
    name = g.choice([None, "Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"])
    numbers = {"LeakyRelu": [0.1], "Clip": [-1.0, 2.0], "HardSigmoid": [0.2, 0.5]}.get(name)
    inputs = [x, w, g.weight([4]) if g.coin(0.7) else None]
    if name in (None, "Relu") and g.coin(0.4):
        inputs[2] = inputs[2] or g.weight([4])
        inputs.append(g.emit("Conv", inputs, **attributes))
    g.emit(MS + "FusedConv", inputs, activation=name, activation_params=numbers, **attributes)


@microsoft("NhwcConv")
def nhwc_conv(g):
    x, w, attributes = convolved(g, F32, F32)
    n, c, h, s = [d if isinstance(d, int) else name for d, name in zip(x.dims(), ("N", None, None, "S"))]
    picture = g.add_input([n, h, s, c], F32, True, wild=False)
    last = g.emit("Transpose", [w], perm=[0, 2, 3, 1])
    g.emit(MS + "NhwcConv", [picture, last, g.weight([4]) if g.coin(0.7) else None], **attributes)


@generates(MS + "SkipLayerNormalization", MS + "SkipSimplifiedLayerNormalization", "SimplifiedLayerNormalization",
           weight=3)
def skip_normalization(g):
    h = g.choice([4, 8, 17])
    op = g.choice(["SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "SimplifiedLayerNormalization"])
    x = g.add_input([g.choice(["N", 2]), "S", h], F32, False, wild=False)
    gamma, epsilon = g.weight([h], whole=False, scale=1), {"epsilon": g.choice([None, 1e-5, 1e-3])}
    if op == "SimplifiedLayerNormalization":
        return g.emit(op, [x, gamma], axis=g.choice([None, -1, 2]), stash_type=g.choice([None, 1]), **epsilon)
    skip = g.add_input([d if isinstance(d, int) else {2: "N", h: h}.get(d, "S") for d in x.declared] if x.declared
                       else dims_of(x), F32, False, wild=False)
    beta = [g.weight([h], whole=False, scale=1) if g.coin() else None] if op == "SkipLayerNormalization" else []
    bias = g.weight([h], whole=False, scale=1) if g.coin() else None
    wanted = {"results": 4, "unused": (1, 2)} if g.coin() else {}
    return g.emit(MS + op, [x, skip, gamma, *beta, bias], **wanted, **epsilon)


def dims_of(v):
    """The dims of an input by the symbols' names, as it was added with N and S."""
    return [d if isinstance(d, int) else name for d, name in zip(v.dims(), ("N", "S", None))]


@microsoft("EmbedLayerNormalization", weight=2)
def embed_normalization(g):
    h, rows = g.choice([4, 8]), 20
    ids = g.add_input(["N", g.choice(["S", 4])], I32, True, 0, 9)
    names = [a.shape for a in ids.arrays]
    def like(low, high):
        return g.keep(type(ids)(g.fresh("x"), [g.rng.integers(low, high, s).astype(np.int32) for s in names],
                                g.zeros(), "input"))
    segments = like(0, 2) if g.coin(0.6) else None
    tables = [g.weight([n, h], whole=False, scale=1) for n in (rows, rows, 2)]
    for table in tables:
        table.kind = "constant"
    mask = like(0, 2) if g.coin() else None
    places = like(0, rows) if g.coin(0.4) else None
    outputs = {"results": 3} if g.coin() else {"results": 2}
    counts = mask is not None or places is not None
    g.emit(MS + "EmbedLayerNormalization",
           [ids, segments, *tables[:2], tables[2] if segments is not None else None,
            g.weight([h], whole=False, scale=1), g.weight([h], whole=False, scale=1), mask, places],
           epsilon=g.choice([None, 1e-5]), mask_index_type=g.choice([None, 1]) if counts else None,
           **outputs)


@microsoft("QEmbedLayerNormalization")
def quantised_embedding(g):
    h, rows, dtype = g.choice([4, 8]), 20, U8
    ids = g.add_input(["N", g.choice(["S", 4])], I32, True, 0, 9)
    def like(high):
        return g.keep(type(ids)(g.fresh("x"), [g.rng.integers(0, high, a.shape).astype(np.int32) for a in ids.arrays],
                                g.zeros(), "input"))
    segments = like(2) if g.coin(0.6) else None
    tables = [g.constant(g.rng.integers(0, 256, dims), dtype) for dims in ([rows, h], [rows, h], [2, h], [h], [h])]
    scales = [g.scalar(g.choice([0.25, 0.5])) for _ in tables]
    zeros = [g.scalar(g.integer(100, 140), dtype) for _ in tables]
    if segments is None:
        tables[2] = scales[2] = zeros[2] = None
    mask = like(2) if g.coin() else None
    g.emit(MS + "QEmbedLayerNormalization", [ids, segments, *tables, mask, *scales, *zeros], 2,
           epsilon=g.choice([None, 1e-5]))


# ---- attention

def full(v):
    """ONNX Runtime's attention divides by the number of sequences."""
    if not v.full:
        raise Skip
    return v


def normal(g, dims):
    return full(g.add_input(dims, F32, False, wild=False))


def scale_or_none(g):
    return g.choice([None, None, 0.5])


def key_mask(g, batch, keys):
    """Flags of keys, of which each row has one."""
    mask = g.add_input([batch, keys], I32, True, 0, 1)
    for array in mask.arrays:
        if not array.shape[1]:
            raise Skip
        array[array < 0] = 1
        array[:, 0] = 1
    return mask


@microsoft("MultiHeadAttention", weight=3)
def multi_head_attention(g):
    heads, depth = g.choice([1, 2, 4]), g.choice([2, 8])
    hidden, keys = heads * depth, g.choice(["S", 3, 5])
    q, k, v = [normal(g, ["N", length, hidden]) for length in (g.choice(["S", 3]), keys, keys)]
    bias = g.weight([3 * hidden], whole=False, scale=1) if g.coin(0.4) else None
    past = [normal(g, ["N", heads, 4, depth]) for _ in range(2)] if g.coin(0.3) else [None, None]
    mask = key_mask(g, "N", keys) if past[0] is None and g.coin(0.4) else None
    if bias is not None:
        bias.kind = "constant"
    g.emit(MS + "MultiHeadAttention", [q, k, v, bias, mask, None, *past], 3 if past[0] is not None else 1,
           num_heads=heads, scale=scale_or_none(g), mask_filter_value=g.choice([None, -5000.0]) if mask else None,
           unidirectional=g.choice([None, 0, 1]) if keys == "S" and q.dims()[1] == k.dims()[1] else None)


@microsoft("Attention", weight=3)
def attention(g):
    heads, depth, width = g.choice([1, 2, 4]), g.choice([2, 8]), g.choice([4, 6])
    hidden = heads * depth
    x = normal(g, ["N", g.choice(["S", 3]), width])
    length = "S" if not isinstance(x.dims()[1], int) else x.dims()[1]
    sizes = g.choice([None, [hidden, hidden, hidden], [hidden, hidden, 2 * hidden]])
    total = sum(sizes or [hidden] * 3)
    w, b = g.weight([width, total], whole=False), g.weight([total], whole=False, scale=1) if g.coin(0.8) else None
    for value in (w, b):
        if value is not None:
            value.kind = "constant"
    past = normal(g, [2, "N", heads, 4, depth]) if sizes is None and g.coin(0.3) else None
    mask = key_mask(g, "N", length) if past is None and g.coin(0.4) else None
    g.emit(MS + "Attention", [x, w, b, mask, past], 2 if past is not None else 1, num_heads=heads,
           qkv_hidden_sizes=sizes, scale=scale_or_none(g), unidirectional=g.choice([None, 0, 1]),
           mask_filter_value=g.choice([None, -5000.0]) if mask else None)


@microsoft("QAttention", weight=2)
def qattention(g):
    heads, depth, width = g.choice([1, 2]), g.choice([2, 8]), g.choice([4, 8])
    hidden = heads * depth
    x = full(quantised(g, ["N", g.choice(["S", 3]), width], U8))
    w = g.constant(g.rng.integers(-9, 10, [width, 3 * hidden]), I8)
    x_scale, x_zero = scale_and_zero(g, U8)
    w_scale = g.constant(g.rng.choice(SCALES, g.choice([[], [3 * hidden]])), F32)
    w_zero = g.constant(np.zeros(w_scale.arrays[0].shape), I8)
    b = g.constant(g.rng.standard_normal([3 * hidden]), F32)
    length = "S" if not isinstance(x.dims()[1], int) else x.dims()[1]
    mask = key_mask(g, "N", length) if g.coin(0.4) else None
    g.emit(MS + "QAttention", [x, w, b, x_scale, w_scale, mask, x_zero, w_zero], num_heads=heads,
           scale=scale_or_none(g), unidirectional=g.choice([None, 0, 1]),
           mask_filter_value=g.choice([None, -5000.0]) if mask else None)


def angles(g, rows, half):
    return [g.constant(g.rng.standard_normal([rows, half]), F32) for _ in range(2)]


@microsoft("RotaryEmbedding", weight=2)
def rotary(g):
    heads, depth = g.choice([1, 2, 4]), g.choice([4, 8])
    flat = g.coin(0.7)
    x = normal(g, ["N", "S", heads * depth] if flat else ["N", heads, "S", depth])
    lengths = [a.shape[1 if flat else 2] for a in x.arrays]
    if g.coin():
        positions = g.ints(g.choice([0, 3]))
    else:
        positions = g.add_input(["N", "S"], I64, True, 0, 19)
        for array in positions.arrays:
            array[array < 0] = 0
    part = depth // 2 if g.coin(0.3) else None
    if max(lengths) + 3 > 32:
        raise Skip
    caches = angles(g, 32, (part or depth) // 2)
    g.emit(MS + "RotaryEmbedding", [x, positions, *caches], interleaved=g.choice([None, 0, 1]),
           num_heads=heads if part or g.coin() else None, rotary_embedding_dim=part, scale=g.choice([None, 1.0]))


@microsoft("GroupQueryAttention", weight=3)
def group_query_attention(g):
    groups, kv_heads, depth = g.choice([1, 2]), g.choice([1, 2]), g.choice([8, 16])
    heads, length, past = groups * kv_heads, g.choice([1, 3, 5]), g.choice([None, 4])
    joined = g.coin(0.3)
    q = normal(g, ["N", length, (heads + 2 * kv_heads if joined else heads) * depth])
    k, v = (None, None) if joined else [normal(g, ["N", length, kv_heads * depth]) for _ in range(2)]
    if past and length > 1:  # (ONNX Runtime takes one new word, or the first ones)
        raise Skip
    total = length + (past or 0)
    cache = [normal(g, ["N", kv_heads, past, depth]) for _ in range(2)] if past else [None, None]
    seqlens = g.keep(type(q)(g.fresh("x"), [np.full([row["N"]], total - 1, np.int32) for row in g.symbols], g.zeros(),
                             "input"))
    rotates = g.choice([None, 0, 1])
    caches = angles(g, 32, depth // 2) if rotates else [None, None]
    sink = g.constant(g.rng.standard_normal([heads]), F32) if g.coin(0.3) else None
    tail = [*caches, None, None, sink] if sink is not None else caches
    g.emit(MS + "GroupQueryAttention", [q, k, v, *cache, seqlens, g.constant(total, I32), *tail], 3, num_heads=heads,
           kv_num_heads=kv_heads, scale=scale_or_none(g), do_rotary=rotates, softcap=g.choice([None, None, 5.0]),
           rotary_interleaved=g.choice([None, 0, 1]) if rotates else None,
           local_window_size=g.choice([None, -1, 1, 2, 4]), smooth_softmax=g.choice([None, 0, 1]))


# ---- blocks

@microsoft("MatMulNBits", weight=2)
def matmul_n_bits(g):
    bits, block, k, n = g.choice([4, 4, 8]), g.choice([16, 32]), g.choice([16, 32, 40, 64]), g.choice([1, 8, 17])
    blocks = -(-k // block)
    a = g.add_input(g.choice([["N", k], [2, "S", k]]), F32, True, wild=False)
    b = g.constant(g.rng.integers(0, 256, [n, blocks, block * bits // 8]), U8)
    scales = g.constant(g.rng.choice(SCALES, [n, blocks]), F32)
    zero = g.constant(g.rng.integers(0, 256, [n, (blocks * bits + 7) // 8]), U8) if g.coin() else None
    bias = g.constant(g.rng.integers(-4, 5, [n]), F32) if g.coin(0.4) else None
    # (Beside zero points: disputes.py.)
    group = g.constant(g.rng.integers(0, blocks, [k]), I32) if zero is None and g.coin(0.4) else None
    g.emit(MS + "MatMulNBits", [a, b, scales, zero, group, bias], K=k, N=n, bits=bits, block_size=block,
           accuracy_level=g.choice([None, 0, 1]))


@microsoft("GatherBlockQuantized")
def gather_block_quantized(g):
    bits, block, blocks, rows = g.choice([4, 8]), g.choice([16, 32]), g.choice([1, 2, 3]), 9
    table = g.constant(g.rng.integers(0, 256, [rows, blocks * block * bits // 8]), U8)
    scales = g.constant(g.rng.choice(SCALES, [rows, blocks]), F32)
    zero = g.constant(g.rng.integers(0, 256, [rows, (blocks * bits + 7) // 8]), U8) if g.coin() else None
    places = g.add_input(g.choice([["N"], ["N", "S"], [3]]), g.choice([I64, I32]), True, 0, rows - 1)
    g.emit(MS + "GatherBlockQuantized", [table, places, scales, zero], bits=bits, block_size=block,
           gather_axis=g.choice([None, 0]), quantize_axis=g.choice([1, -1, None]))
