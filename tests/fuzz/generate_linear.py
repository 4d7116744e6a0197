"""Products and windows: MatMul, Gemm, Einsum, convolutions, pooling, normalisations, attention (as an operator and as
exporters write it out), and the recurrent operators."""
import numpy as np

from registry import generates
from tensors import BFLOAT16, BOOL, F16, F32, F64, FLOATS, I32, I64, U8, is_float

IMAGE = (F32, F32, F32, F64, F16)


def channels_known(v):
    return isinstance(v.dims()[1], int) and v.dims()[1] > 0


def image(g, dtypes=IMAGE, ranks=(3, 4), test=lambda v: True, least=1):
    """Batch, channels and one to three axes of a picture, which may be symbols."""
    def make():
        rank = g.choice(ranks)
        sizes = [g.choice([7, 8, 9, 14, "S"]) if least == 1 else g.choice([7, 8, 14]) for _ in range(rank - 2)]
        return [g.choice([1, "N", 2]), g.choice([1, 3, 4, 8, 16, 17]), *sizes]
    return g.pick(dtypes, rank=ranks, make=make, test=lambda v: channels_known(v) and test(v))


@generates("MatMul", weight=5)
def matmul(g):
    v = g.pick((F32, F32, F64, F16, BFLOAT16, I32), rank=(1, 2, 3, 4), test=lambda v: isinstance(v.dims()[-1], int))
    k = v.dims()[-1]
    def fits(o):
        return (o.dtype == v.dtype and o.rank > 1 and o.dims()[-2] == k and all(
            all(x == y or x == 1 or y == 1 for x, y in zip(a.shape[:-2][::-1], b.shape[:-2][::-1]))
            for a, b in zip(v.arrays, o.arrays)))
    found = [o for o in g.values.values() if fits(o)]
    if found and g.coin():
        other = g.choice(found)
    else:
        n = g.choice([1, 2, 5, 8, 16, 17, 33])
        other = g.weight(g.choice([[k, n], [k, n], [k], [1, k, n]] if v.rank > 1 else [[k, n], [k]]), v.dtype)
    y = g.emit("MatMul", [v, other])
    if g.coin(0.4) and y.rank and isinstance(y.dims()[-1], int):
        g.emit("Add", [y, g.weight([y.dims()[-1]], v.dtype)])


@generates("MatMul", "Transpose")
def self_product(g):
    v = g.pick((F32, F64), rank=(2, 3, 4))
    perm = list(range(v.rank))
    perm[-1], perm[-2] = perm[-2], perm[-1]
    t = g.emit("Transpose", [v], perm=perm)
    g.emit("MatMul", [v, t] if g.coin() else [t, v])


@generates("Gemm", weight=2)
def gemm(g):
    trans_a, trans_b = g.choice([None, 0, 1]), g.choice([None, 0, 1])
    v = g.pick((F32, F32, F64, F16), rank=2, test=lambda v: isinstance(v.dims()[0 if trans_a else 1], int))
    k, n = v.dims()[0 if trans_a else 1], g.choice([1, 3, 8, 16, 20])
    c = g.choice([None, [n], [1, n], [], [1]])
    if c is None and g.opset < 11:
        c = [n]
    g.emit("Gemm", [v, g.weight([n, k] if trans_b else [k, n], v.dtype),
                    None if c is None else g.weight(c, v.dtype)], transA=trans_a, transB=trans_b,
           alpha=g.choice([None, 1.0, 0.5]), beta=g.choice([None, 2.0, 0.0]))


@generates("Einsum")
def einsum(g):
    if g.opset < 12:
        return None
    v = g.pick((F32, F64), rank=3, test=lambda v: v.full)
    if g.coin() and isinstance(v.dims()[2], int):
        w = g.weight([v.dims()[2], g.choice([3, 8])], v.dtype)
        return g.emit("Einsum", [v, w], equation=g.choice(["bij,jk->bik", "bij,jk->kbi", "bij,jk->ik", "...j,jk",
                                                           "bij,jk", "b i j, j k -> b k i"]))
    equations = ["bij->bji", "bij->b", "bij->ji", "...j->...", "bij,bij->bi", "bij,bkj->bik"]
    equation = g.choice(equations)
    return g.emit("Einsum", [v, v] if "," in equation else [v], equation=equation)


def window(g, v, kernel, dilate=True):
    """Strides, dilations and pads, or auto_pad, of a window."""
    attributes = {"strides": [g.choice([1, 1, 2, 3]) for _ in kernel] if g.coin(0.8) else None,
                  "dilations": [g.choice([1, 1, 2]) for _ in kernel] if g.coin(0.6) and dilate else None}
    if g.coin(0.2):
        attributes.update(auto_pad=g.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]), dilations=None)
    elif g.coin(0.8):
        attributes["pads"] = [g.choice([0, 1, 1, 2]) for _ in range(2 * len(kernel))]
    return attributes


@generates("Conv", weight=5)
def conv(g):
    v = image(g, ranks=(3, 4, 4, 4, 5))
    c, spatial = v.dims()[1], v.rank - 2
    group = g.choice([1, 1, 1, c] + [d for d in (2, 4) if c % d == 0])
    out = group * g.choice([1, 1, 2, 4, 8, 16] if group < 8 else [1, 2])
    kernel = [g.choice([1, 1, 2, 3, 3, 5] if spatial < 3 else [1, 2, 3]) for _ in range(spatial)]
    inputs = [v, g.weight([out, c // group] + kernel, v.dtype)] + ([g.weight([out], v.dtype)] if g.coin(0.6) else [])
    y = g.emit("Conv", inputs, group=group if group > 1 or g.coin() else None,
               kernel_shape=kernel if g.coin() else None, **window(g, v, kernel))
    shape = [out] + [1] * spatial
    if g.coin(0.3):
        y = g.emit("Mul", [y, g.weight(shape, v.dtype)])
    if g.coin(0.3):
        y = g.emit("Add", [y, g.weight([1] + shape, v.dtype)])
    if g.coin(0.4):
        g.emit(g.choice(["Relu", "Sigmoid", "Tanh", "LeakyRelu"]), [y])


@generates("DeformConv")
def deform_conv(g):
    if g.opset < 19:
        return None
    v = g.pick((F32,), rank=4, test=lambda v: v.full and v.finite and all(isinstance(d, int) for d in v.dims()),
               make=lambda: [2, 4, g.choice([5, 9]), 6], wild=False)
    n, c, *spatial = v.dims()
    group, offset_group = (g.choice([d for d in (1, 2, 4) if c % d == 0]) for _ in range(2))
    kernel, strides, dilations = ([g.choice([1, 2, 3]) for _ in range(2)] for _ in range(3))
    pads = [g.choice([0, 1, 2]) for _ in range(4)]
    slack = [d + pads[i] + pads[2 + i] - (kernel[i] - 1) * dilations[i] - 1 for i, d in enumerate(spatial)]
    if min(slack) < 0:
        return None
    out = [a // s + 1 for a, s in zip(slack, strides)]
    taps = offset_group * kernel[0] * kernel[1]
    offsets = g.constant(g.rng.uniform(-3, 3, [n, 2 * taps, *out]), F32)
    offsets.kind = g.choice(["input", "constant"])
    channels = group * g.choice([1, 3])
    inputs = [v, g.weight([channels, c // group] + kernel, F32), offsets]
    if g.coin():
        inputs.append(g.weight([channels], F32))
        if g.coin():
            inputs.append(g.constant(g.rng.uniform(0, 1, [n, taps, *out]), F32))
    g.emit("DeformConv", inputs, group=group if group > 1 else None, kernel_shape=kernel if g.coin() else None,
           offset_group=offset_group if offset_group > 1 else None, pads=pads, strides=strides, dilations=dilations)


@generates("ConvTranspose", weight=2)
def conv_transpose(g):
    v = image(g, (F32, F32, F64))
    c, spatial = v.dims()[1], v.rank - 2
    group = g.choice([1, 1, 2]) if c % 2 == 0 else 1
    kernel = [g.choice([1, 2, 3, 4]) for _ in range(spatial)]
    strides = [g.choice([1, 2, 3]) for _ in kernel]
    attributes = {"strides": strides, "dilations": [g.choice([1, 1, 2]) for _ in kernel] if g.coin() else None}
    kind = g.choice(["pads", "pads", "auto", "shape"])
    if kind == "pads":
        attributes.update(pads=[g.choice([0, 0, 1]) for _ in range(2 * spatial)],
                          output_padding=[g.random.randrange(s) for s in strides] if g.coin() else None)
    elif kind == "auto":
        # (Of kernels shorter than their stride: disputes.py.)
        attributes.update(auto_pad=g.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]), dilations=None,
                          strides=[min(s, k) for s, k in zip(strides, kernel)])
    elif all(isinstance(d, int) for d in v.dims()[2:]):
        reach = attributes["dilations"] or [1] * spatial
        full = [s * (d - 1) + (k - 1) * r + 1 for s, d, k, r in zip(strides, v.dims()[2:], kernel, reach)]
        attributes["output_shape"] = [max(1, f - g.choice([0, 1, 2])) for f in full]
        attributes["auto_pad"] = g.choice([None, "SAME_UPPER", "SAME_LOWER"]) if g.opset >= 11 else None
    out = g.choice([1, 2, 3, 8])
    inputs = [v, g.weight([c, out] + kernel, v.dtype)] + ([g.weight([out * group], v.dtype)] if g.coin(0.4) else [])
    g.emit("ConvTranspose", inputs, group=group if group > 1 else None, kernel_shape=kernel if g.coin() else None,
           **attributes)


@generates("CausalConvWithState")
def causal_conv(g):
    g.schema("CausalConvWithState")
    v = g.pick((F32,), rank=3, test=channels_known, make=lambda: ["N", 4, "S"])
    c, k = v.dims()[1], g.choice([1, 2, 4])
    bias = g.weight([c]) if g.coin() else None
    g.emit("CausalConvWithState", [v, g.weight([c, 1, k]), bias], 2, activation=g.choice([None, "silu", "none"]))


def dilations(g, v, kernel):
    """None, or 1 or 2 per spatial axis, so that no window is longer than the data (disputes.py)."""
    if g.coin(0.7):
        return None
    return [g.choice([1, 2]) if 2 * (k - 1) + 1 <= v.shortest(2 + i) else 1 for i, k in enumerate(kernel)]


@generates("MaxPool", "AveragePool", "LpPool", weight=3)
def pool(g):
    op = g.choice(["MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"])
    v = image(g, (F32, F32, F64), (3, 4, 4, 5),
              test=lambda v: v.full and ((op != "MaxPool" and v.dtype == F32) or v.finite))
    spatial = v.rank - 2
    # Windows no longer than the data: beyond, ONNX Runtime rounds (size - reach) / stride towards zero.
    kernel = [g.choice([k for k in (1, 2, 3, 5) if k <= v.shortest(2 + i)]) for i in range(spatial)]
    attributes = {"kernel_shape": kernel, "strides": [g.choice([1, 2, 3]) for _ in kernel] if g.coin(0.8) else None}
    if g.coin(0.2):
        short = any(k < s for k, s in zip(kernel, attributes["strides"] or kernel))
        attributes["auto_pad"] = g.choice(["VALID", "NOTSET"] + ([] if short else ["SAME_UPPER", "SAME_LOWER"]))
    else:
        attributes["pads"] = [g.random.randrange((k + 1) // 2) for k in kernel] * 2 if g.coin(0.8) else None
        if (g.opset >= 10 and op == "MaxPool") or (g.opset >= 19 and op == "AveragePool"):
            attributes["ceil_mode"] = g.choice([None, 0, 1])
    if op != "MaxPool" and g.opset >= (19 if op == "AveragePool" else 18) and "auto_pad" not in attributes:
        if op == "LpPool":
            attributes["ceil_mode"] = g.choice([None, 0, 1])
        if not attributes.get("ceil_mode"):
            attributes["dilations"] = dilations(g, v, kernel)
    if op == "LpPool":
        return g.emit(op, [v], p=g.choice([None, 1, 2, 3]), **attributes)
    if op == "AveragePool":
        return g.emit(op, [v], count_include_pad=g.choice([None, 0, 1]), **attributes)
    if g.opset >= 10 and "auto_pad" not in attributes and not attributes.get("ceil_mode"):
        attributes["dilations"] = dilations(g, v, kernel)
    two = g.opset >= 8 and not v.whole and g.coin(0.2) and v.finite
    return g.emit(op, [v], 2 if two else 1, storage_order=g.choice([None, 0, 1]) if two else None, **attributes)


@generates("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(g):
    op = g.choice(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
    v = image(g, (F32, F64) if op == "GlobalAveragePool" else (F32,), (3, 4),
              test=lambda v: v.full and (op != "GlobalMaxPool" or v.finite))
    g.emit(op, [v], p=g.choice([None, 1, 3]) if op == "GlobalLpPool" else None)


@generates("MaxUnpool", "MaxPool")
def max_unpool(g):
    if g.opset < 9:
        return None
    v = g.pick((F32,), rank=4, test=lambda v: v.finite and v.exact and all(
        isinstance(d, int) and d % 2 == 0 and d for d in v.dims()[2:]) and channels_known(v), make=[2, 3, 4, 6])
    y, index = g.emit("MaxPool", [v], 2, kernel_shape=[2, 2], strides=[2, 2])
    shape = g.ints(*[d if isinstance(d, int) else 1 for d in v.dims()])
    known = all(isinstance(d, int) for d in v.dims())
    if not known or g.coin(0.3):
        shape = g.emit("Add", [g.emit("Shape", [v]), g.ints(0, 0, g.choice([0, 1]), g.choice([0, 2]))])
    return g.emit("MaxUnpool", [y, index, shape if g.coin() else None], kernel_shape=[2, 2],
                  strides=[2, 2], pads=g.choice([None, [0, 0, 0, 0]]))


@generates("MaxPool")
def pool_places(g):
    """Where maxima lie, by windows whose padding follows from the data's length."""
    if g.opset < 8:
        return None
    v = image(g, (F32, F32, U8) if g.opset >= 12 else (F32,), (3, 4), test=lambda v: v.full and v.finite and v.exact)
    kernel = [g.choice([2, 3]) for _ in range(v.rank - 2)]
    if any(v.shortest(2 + i) < k for i, k in enumerate(kernel)):
        return None
    g.emit("MaxPool", [v], 2, kernel_shape=kernel, auto_pad=g.choice(["SAME_UPPER", "SAME_LOWER"]),
           strides=[g.choice([1, 2]) for _ in kernel])


@generates("BatchNormalization", weight=2)
def batch_norm(g):
    v = g.pick((F32, F32, F64), rank=(2, 3, 4), test=channels_known, make=lambda: ["N", 4, 7, "S"])
    c = v.dims()[1]
    spread = g.positive([c], v.dtype)
    g.emit("BatchNormalization", [v] + [g.weight([c], v.dtype, False, scale=1) for _ in range(3)] + [spread],
           epsilon=g.choice([None, 1e-3]), momentum=g.choice([None, 0.8]),
           training_mode=g.choice([None, 0]) if g.opset >= 14 else None, spatial=g.choice([None, 1]) if g.opset < 9
           else None)


@generates("LayerNormalization", "RMSNormalization", weight=2)
def layer_norm(g):
    op = g.choice(["LayerNormalization", "RMSNormalization"])
    g.schema(op)
    v = g.pick((F32, F64, F16), rank=(2, 3, 4), test=lambda v: v.full and isinstance(v.dims()[-1], int)
               and v.dims()[-1] >= 4, make=lambda: ["N", "S", 8])
    axis = g.choice([a for a in range(v.rank) if all(isinstance(d, int) for d in v.dims()[a:])])
    dims = v.dims()[axis:]
    inputs = [v, g.weight(dims, v.dtype, False, scale=1)]
    if op[0] == "L" and g.coin(0.7):
        inputs.append(g.weight(dims, v.dtype, False, scale=1))
    outputs = g.choice([1, 1, 3]) if op[0] == "L" and v.dtype == F32 else 1
    g.emit(op, inputs, outputs, axis=g.choice([axis, axis - v.rank]) if axis != v.rank - 1 or g.coin() else None,
           epsilon=g.choice([None, 1e-3]), stash_type=g.choice([None, 1]))


@generates("InstanceNormalization", "GroupNormalization", "LRN", "LpNormalization", "MeanVarianceNormalization",
           weight=2)
def other_norms(g):
    op = g.choice(["InstanceNormalization", "GroupNormalization", "LRN", "LpNormalization",
                   "MeanVarianceNormalization"])
    if op == "LpNormalization":
        v = g.pick((F32, F64), rank=(1, 2, 3, 4), test=lambda v: v.full)
        v = g.emit("Add", [v, g.scalar(0.25, v.dtype)])  # 0 / 0 is not defined
        return g.emit(op, [v], axis=g.choice([None, g.axis(v)]), p=g.choice([None, 1, 2]))
    # A mean of fewer numbers may be as large as each of them: the difference's rounding is divided by sqrt(epsilon).
    v = image(g, (F32,), (3, 4) if op[0] in "IG" else (4,),
              test=lambda v: all(np.prod(a.shape[2:]) >= 4 for a in v.arrays) and v.full, least=4)
    c = v.dims()[1]
    if op == "LRN":
        return g.emit(op, [v], size=g.choice([1, 3, 5]), alpha=g.choice([None, 0.01]), beta=g.choice([None, 0.5]),
                      bias=g.choice([None, 2.0]))
    if op == "MeanVarianceNormalization":
        return g.emit(op, [v], axes=g.choice([None, [0, 2, 3], [1], [-1, 2]])) if g.opset >= 9 else None
    weights = [g.weight([c], F32, False, scale=1) for _ in range(2)]
    if op == "InstanceNormalization":
        return g.emit(op, [v, *weights], epsilon=g.choice([None, 1e-3]))
    if g.opset < 21:
        return None
    return g.emit(op, [v, *weights], num_groups=g.choice([d for d in range(1, c + 1) if c % d == 0]),
                  epsilon=g.choice([None, 1e-3]), stash_type=g.choice([None, 1]))


@generates("MatMul", "Softmax", "Where", weight=3)
def written_attention(g):
    """softmax(q k^T * c + mask) v as exporters write it."""
    v = g.pick((F32, F32, F64), rank=3, test=lambda v: v.full and isinstance(v.dims()[2], int) and v.dims()[2] % 2 == 0
               and v.dims()[2] > 0, make=lambda: ["N", "S", 8])
    d = v.dims()[2]
    heads = g.choice([h for h in (1, 2, 4) if d % h == 0])
    def head(x):
        split = g.emit("Reshape", [g.emit("MatMul", [x, g.weight([d, d], v.dtype)]), g.ints(0, 0, heads, d // heads)])
        return g.emit("Transpose", [split], perm=[0, 2, 1, 3])
    q, k, w = (head(v) for _ in range(3))
    scores = g.emit("MatMul", [q, g.emit("Transpose", [k], perm=[0, 1, 3, 2])])
    scores = g.emit(g.choice(["Mul", "Div"]), [scores, g.scalar(g.choice([0.5, 2.0, 1.0]), v.dtype)])
    kind = g.choice(["none", "add", "where", "where"])
    if kind == "add":
        scores = g.emit("Add", [scores, g.partner(scores)])
    elif kind == "where":
        length = v.dims()[1]
        mask = g.add_input([next((s for s in ("S", "N", "P") if tuple(r[s] for r in g.symbols) == length), 1)
                            if not isinstance(length, int) else length], BOOL)
        hidden = g.scalar(g.choice([-1e9, -1e4, -np.inf, 0.0, -3.4e38]), v.dtype)
        scores = g.emit("Where", [mask, scores, hidden] if g.coin() else [mask, hidden, scores])
    y = g.emit("MatMul", [g.emit("Softmax", [scores], axis=-1 if g.opset >= 11 else 3), w])
    g.emit("Reshape", [g.emit("Transpose", [y], perm=[0, 2, 1, 3]), g.ints(0, 0, d)])


@generates("Attention", weight=2)
def attention(g):
    g.schema("Attention")
    heads, groups, width = g.choice([1, 2, 4]), g.choice([1, 2]), g.choice([4, 8])
    flat = g.coin(0.4)
    value_width = g.choice([width, 8])
    batch, keys = g.choice([1, 2, "N"]), g.choice([3, "S"])
    queries = g.choice([2, 5, "S"])
    def operand(length, count, size):
        return g.add_input([batch, length, count * size] if flat else [batch, count, length, size], F32, False)
    inputs = [operand(queries, heads * groups, width), operand(keys, heads, width), operand(keys, heads, value_width)]
    past = not flat and g.coin(0.2)
    def total(name):
        return 4 + name if past and isinstance(name, int) else name
    mask = None
    if g.coin(0.6) and not (past and keys == "S"):
        part = [queries, total(keys)]
        mask = g.add_input(g.choice([part, [1, 1, *part], [batch, 1, *part]]), g.choice([F32, BOOL]), False)
    inputs.append(mask)
    if past:
        inputs += [g.add_input([batch, heads, 4, width], F32, False), g.add_input([batch, heads, 4, value_width], F32,
                                                                                  False)]
    outputs = 3 if past else g.choice([1, 1, 4])
    windows = {name: g.choice([None, 1, 3]) for name in ("left_window_size", "right_window_size")
               if name in g.schema("Attention").attributes and not past}
    is_causal = g.choice([None, 0, 1])
    if mask or is_causal or any(windows.values()):  # -inf beside hidden scores: 0, NaN or a mean of hidden values
        for value in inputs[:2]:
            for array in value.arrays:
                array[np.isinf(array)] = np.nan
    g.emit("Attention", inputs, outputs, **windows, unused=(1, 2) if outputs == 4 else (),
           is_causal=is_causal, scale=g.choice([None, 0.5]), softcap=g.choice([None, 0.0, 2.0]),
           q_num_heads=heads * groups if flat else None, kv_num_heads=heads if flat else None,
           softmax_precision=g.choice([None, 1]),
           qk_matmul_output_mode=g.choice([0, 1, 2, 3]) if outputs == 4 else None)


@generates("RotaryEmbedding")
def rotary(g):
    g.schema("RotaryEmbedding")
    heads, width, length = g.choice([1, 2]), 8, g.choice([1, 5])
    batch = g.choice([1, 2])
    part = g.choice([None, 4])
    flat = g.coin()
    x = g.add_input([batch, length, heads * width] if flat else [batch, heads, length, width], F32, False)
    by_place = g.coin()
    half = (part or width) // 2
    caches = [g.constant(g.rng.uniform(-1, 1, [9, half] if by_place else [batch, length, half]), F32) for _ in range(2)]
    places = g.constant(g.rng.integers(0, 9, [batch, length]), I64) if by_place else None
    g.emit("RotaryEmbedding", [x, *caches, places], interleaved=g.choice([None, 0, 1]),
           num_heads=heads if flat else g.choice([None, heads]), rotary_embedding_dim=part)


@generates("LSTM", "GRU", "RNN", weight=2)
def recurrent(g):
    op = g.choice(["LSTM", "GRU", "RNN"])
    v = g.pick((F32,), rank=3, test=lambda v: v.full and v.finite and isinstance(v.dims()[2], int),
               make=lambda: ["S", "N", 4], wild=False)
    gates, hidden = {"LSTM": 4, "GRU": 3, "RNN": 1}[op], g.choice([1, 4, 5, 8])
    direction = g.choice([None, "forward", "reverse", "bidirectional"])
    count = 2 if direction == "bidirectional" else 1
    inputs = [v, g.weight([count, gates * hidden, v.dims()[2]]), g.weight([count, gates * hidden, hidden]),
              g.weight([count, 2 * gates * hidden]) if g.coin(0.6) else None, None, None, None, None]
    batch = v.dims()[1]
    if isinstance(batch, int):
        if g.coin(0.3):
            inputs[4] = g.constant(g.rng.integers(1, v.shortest(0) + 1, [batch]), I32)
        if g.coin(0.4):
            inputs[5] = g.weight([count, batch, hidden])
            if op == "LSTM":
                inputs[6] = g.weight([count, batch, hidden])
    if op == "LSTM" and g.coin(0.3):
        inputs[7] = g.weight([count, 3 * hidden])
    choices = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}[op]
    activations = [g.choice([a, "Relu", "HardSigmoid" if a == "Sigmoid" else "Tanh"]) for a in choices * count]
    attributes = {"hidden_size": hidden, "direction": direction, "clip": g.choice([None, None, 1.5]),
                  "activations": activations if g.coin(0.3) else None}
    if attributes["activations"] and g.coin(0.4):  # HardSigmoid's alone has them; others pass none
        attributes["activations"] = ["HardSigmoid"] * (len(choices) * count)
        attributes["activation_alpha"] = [0.25] * (len(choices) * count)
        attributes["activation_beta"] = [0.5] * (len(choices) * count)
    if g.opset >= 14 and inputs[4] is None and inputs[5] is None and g.coin(0.2):
        attributes["layout"] = 0
    if op == "GRU":
        attributes["linear_before_reset"] = g.choice([None, 0, 1])
    if op == "LSTM" and g.coin(0.2):
        attributes["input_forget"] = g.choice([0, 1])
    outputs = 3 if op == "LSTM" and g.coin() else 2
    g.emit(op, inputs if op == "LSTM" else inputs[:6], outputs, unused=g.choice([(), (0,), ()]), **attributes)


@generates("Det")
def det(g):
    if g.opset < 11:
        return None
    n = g.choice([0, 1, 2, 3, 5, 8, 9])
    dims = g.choice([[n, n], ["N", n, n], [2, "S", n, n], ["N", "N"]])
    # (float16 and bfloat16, which ONNX Runtime lacks, are numpy's in onnx.reference, which knows neither.)
    v = g.add_input(dims, g.choice([F32, F32, F64]), False, wild=False)
    g.emit("Det", [v])


@generates("DFT", weight=2)
def dft(g):
    g.schema("DFT")
    inverse, onesided = g.choice([None, 0, 1]), g.choice([None, 0, 1])
    parts = (2 if inverse else 1) if onesided else g.choice([1, 2])
    n = g.choice([1, 2, 4, 7, 16, 131, 144])
    dims, axis = g.choice([([2, n, parts], 1), (["N", n, parts], 1), (["N", n, 3, parts], 1),
                           (["N", "S", n, parts], 2), ([2, "S", parts], 1)])
    if n > 16:
        dims, axis = [2, n, parts], 1
    by_length = g.coin(0.4) or dims[axis] == "S" and (onesided and inverse or g.coin())
    if (onesided and inverse and n == 1 or g.opset < 20 and "S" in dims) and not by_length:
        return None
    v = g.add_input(dims, g.choice([F32, F32, F64]), False, wild=False)
    length = g.constant(g.choice([n, n + 3, max(1, n - 2)]), I64) if by_length else None
    if not v.full or onesided and inverse and length is not None and length.arrays[0] == 1:
        return None  # (of two bins ONNX Runtime takes the second, of which one number has none)
    if g.opset < 20:
        return g.emit("DFT", [v, length], axis=axis, inverse=inverse, onesided=onesided)
    g.emit("DFT", [v, length, g.constant(g.choice([axis, axis - len(dims)]), I64)], inverse=inverse, onesided=onesided)


@generates("MelWeightMatrix")
def mel_weights(g):
    g.schema("MelWeightMatrix")
    rate = g.choice([8000, 16000])
    inputs = [g.constant(np.array(v), I64) for v in (g.integer(1, 9), g.choice([16, 17, 64, 256]), rate)]
    edges = [g.constant(np.array(v), F32) for v in (g.choice([0.0, 125.0]), rate / g.choice([2.0, 2.5]))]
    g.emit("MelWeightMatrix", inputs + edges, output_datatype=g.choice([None, 1, 11]))


@generates("STFT")
def stft(g):
    g.schema("STFT")
    n, step = g.choice([4, 6, 8]), g.choice([1, 2, 3])
    v = g.add_input([g.choice(["N", 2]), g.choice([9, 16]), 1], F32, False, wild=False)
    window = g.weight([n], whole=False, scale=1) if g.coin(0.6) else None
    if window is not None:
        window.kind = "constant"
    length = g.constant(n, I64) if window is None or g.coin() else None
    g.emit("STFT", [v, g.constant(step, I64), window, length], onesided=g.choice([None, 0, 1]))
