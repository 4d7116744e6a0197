"""Operators that move elements and compute none: reshapes, transposes, slices, gathers, scatters, pads, tiles. Targets,
bounds and indexes are constants, computed from shapes, or data."""
import math

import numpy as np

from registry import generates
from tensors import BOOL, DTYPES, F16, F32, F64, I32, I64, I8, NUMBERS, U8, BFLOAT16, is_float, onnx_type

HUGE = (2**31 - 1, 2**63 - 1)


def ints_or_attribute(g, v, op, since, name, values, **attributes):
    """Axes and the like: an input from an opset on, an attribute before."""
    if g.opset >= since:
        return g.emit(op, [v, g.given_ints(*values)], **attributes)
    return g.emit(op, [v], **{name: list(values)}, **attributes)


def signed(g, axis, rank):
    return axis - rank if g.coin(0.3) and g.opset >= 11 else axis


@generates("Concat", weight=3)
def concat(g):
    v = g.pick(rank=(1, 2, 3, 4))
    axis = g.axis(v)
    at = axis % v.rank
    def fits(o):
        return o.dtype == v.dtype and o.rank == v.rank and all(
            a == b for i, (a, b) in enumerate(zip(o.dims(), v.dims())) if i != at)
    others = [o for o in g.values.values() if fits(o)]
    parts = [v] + [g.choice(others) for _ in range(g.choice([0, 1, 1, 2, 3, 12]))]
    g.random.shuffle(parts)
    g.emit("Concat", parts, axis=axis)


@generates("Split", weight=2)
def split(g):
    v = g.pick(rank=(1, 2, 3, 4), test=lambda v: any(isinstance(d, int) for d in v.dims()))
    at = g.choice(i for i, d in enumerate(v.dims()) if isinstance(d, int))
    d, axis = v.dims()[at], signed(g, at, v.rank)
    parts = g.integer(1, min(4, max(1, d)))
    cuts = sorted(g.integer(0, d) for _ in range(parts - 1))
    lengths = [b - a for a, b in zip([0] + cuts, cuts + [d])]
    if g.coin(0.3) and (d % parts == 0 or g.opset >= 18):
        return g.emit("Split", [v], parts, axis=axis, num_outputs=parts if g.opset >= 18 else None)
    if g.opset >= 13:
        return g.emit("Split", [v, g.given_ints(*lengths)], parts, axis=axis if at or g.coin() else None)
    return g.emit("Split", [v], parts, split=lengths, axis=axis)


@generates("Slice", weight=4)
def slice_(g):
    v = g.pick(rank=(1, 2, 3, 4, 5))
    axes = g.random.sample(range(v.rank), g.integer(1, v.rank))
    starts, ends, steps = [], [], []
    for axis in axes:
        step = g.choice([1, 1, 1, 2, 3, -1, -2]) if g.opset >= 10 else 1
        # Where a negative step begins below -dim, and what a huge end means to it: `disputes.py`.
        starts.append(g.integer(-6, 6) if step > 0 else g.choice([-1, HUGE[0], g.integer(0, 6)]))
        ends.append(g.choice([g.integer(-6, 9), *HUGE, -(2**31)]) if step > 0 else
                    g.choice([-(2**63) + 1, -(2**31), g.integer(-9, 9)]))
        steps.append(step)
    axes = [signed(g, a, v.rank) for a in axes]
    if g.opset < 10:
        return g.emit("Slice", [v], starts=starts, ends=ends, axes=axes)
    dtype = I64 if max(map(abs, ends)) > 2**31 or g.coin(0.7) else I32
    inputs = [v, g.ints(*starts, dtype=dtype), g.ints(*ends, dtype=dtype)]
    are_given = g.coin(0.1)
    if axes != list(range(v.rank)) or g.coin() or steps != [1] * len(axes):
        inputs += [g.ints(*axes, dtype=dtype)] + ([g.ints(*steps, dtype=dtype)] if steps != [1] * len(axes) else [])
    for place, bound in enumerate(inputs[1:]):
        # Axes that a call decides may be so in 64 ways.
        if are_given and (place != 2 or math.perm(v.rank, len(axes)) <= 64 and g.coin()):
            bound.kind = "input"
    return g.emit("Slice", inputs)


@generates("Slice", "Shape", "Gather")
def last_or_first(g):
    """x[:, -1:] or x[:, :1] of a symbolic axis, or up to another tensor's length; read on together with x."""
    v = g.pick(NUMBERS, rank=(1, 2, 3))
    if g.opset < 10:
        return None
    axis = g.axis(v)
    kind = g.choice(["last", "first", "length"])
    if kind == "length":
        other = g.pick(rank=(1, 2, 3))
        length = g.emit("Gather", [g.emit("Shape", [other]), g.ints(g.random.randrange(other.rank))])
        return g.emit("Slice", [v, g.ints(0), length, g.ints(axis)])
    part = g.emit("Slice", [v, g.ints(-1), g.ints(2**63 - 1), g.ints(axis)] if kind == "last" else
                  [v, g.ints(0), g.ints(1), g.ints(axis)])
    if g.coin() and all(a.shape[axis] == 1 for a in part.arrays):
        return ints_or_attribute(g, part, "Squeeze", 13, "axes", [axis])
    return g.emit("Add", [v, part])


@generates("Transpose", weight=3)
def transpose(g):
    v = g.pick(rank=(1, 2, 3, 4, 5))
    perm = list(range(v.rank))
    g.random.shuffle(perm)
    g.emit("Transpose", [v], perm=perm if g.coin(0.85) else None)


@generates("Reshape", "Shape", "Gather", "Mul", "Concat", weight=4)
def reshape(g):
    v = g.pick(rank=(1, 2, 3, 4), test=lambda v: v.full or g.coin(0.2))
    dims = v.dims()
    kind = g.choice(["join", "part", "flat", "computed", "zeros"])
    if kind == "join":
        target = [0] * g.random.randrange(len(dims)) + [-1]
    elif kind == "part":
        i = g.choice(i for i, d in enumerate(dims) if isinstance(d, int) and d > 0)
        part = g.choice(p for p in range(1, dims[i] + 1) if dims[i] % p == 0)
        target = [0] * i + [part, dims[i] // part] + ([-1] if i + 1 < len(dims) else [])
    elif kind == "flat":
        target = [-1]
    elif kind == "zeros":
        target = [d if isinstance(d, int) and g.coin() else 0 for d in dims]
        if g.opset >= 14 and all(isinstance(d, int) for d in dims) and g.coin():
            return g.emit("Reshape", [v, g.ints(*dims)], allowzero=g.choice([0, 1]))
    else:
        # A size of 0 where the data has another one: it must not be copied.
        keeps_zero = any(a.ndim >= 2 and a.shape[-1] == 0 < a.shape[-2] for a in v.arrays)
        if keeps_zero and g.opset < 14:
            return None
        shape = g.emit("Shape", [v])
        parts = [g.ints(d) if isinstance(d, int) and g.coin(0.3) else g.emit("Gather", [shape, g.ints(i)])
                 for i, d in enumerate(dims)]
        if len(parts) >= 2:
            parts[-2:] = [g.emit("Mul", parts[-2:])]
        return g.emit("Reshape", [v, g.emit("Concat", parts, axis=0)], allowzero=1 if keeps_zero else None)
    return g.emit("Reshape", [v, g.ints(*target)])


@generates("Flatten")
def flatten(g):
    v = g.pick(rank=(1, 2, 3, 4))
    g.emit("Flatten", [v], axis=g.choice([None, g.integer(-v.rank if g.opset >= 11 else 0, v.rank)]))


@generates("Unsqueeze", weight=2)
def unsqueeze(g):
    v = g.pick(rank=(0, 1, 2, 3, 4))
    axes = g.random.sample(range(v.rank + 2), 2) if g.coin(0.3) else [g.integer(0, v.rank)]
    ints_or_attribute(g, v, "Unsqueeze", 13, "axes", [signed(g, a, v.rank + len(axes)) for a in axes])


@generates("Squeeze", weight=2)
def squeeze(g):
    v = g.pick(rank=(1, 2, 3, 4, 5), test=lambda v: 1 in v.dims(), make=lambda: [1, "N", 3])
    ones = [i for i, d in enumerate(v.dims()) if d == 1]
    # (Without axes the rank of a computed tensor may depend on data, or on a symbol that is 1.)
    always = all(sorted(i for i, d in enumerate(a.shape) if d == 1) == ones for a in v.arrays)
    if v.kind != "node" and always and g.coin(0.2):
        return g.emit("Squeeze", [v])
    return ints_or_attribute(g, v, "Squeeze", 13, "axes", [signed(g, g.choice(ones), v.rank)])


@generates("Expand", "Shape", weight=2)
def expand(g):
    v = g.pick(rank=(0, 1, 2, 3))
    if g.opset < 8:
        return None
    if g.coin():
        def fits(o):
            return all(all(x == y or x == 1 or y == 1 for x, y in zip(a.shape[::-1], b.shape[::-1]))
                       for a, b in zip(v.arrays, o.arrays))
        other = g.pick(test=fits, make=lambda: [2] + [d if isinstance(d, int) else 1 for d in v.dims()])
        return g.emit("Expand", [v, g.emit("Shape", [other])])
    target = [1 if not isinstance(d, int) else g.choice([1, 3]) if d == 1 else g.choice([1, d]) for d in v.dims()]
    return g.emit("Expand", [v, g.ints(*[g.choice([1, 2])] * g.choice([0, 0, 1]), *target)])


@generates("Tile")
def tile(g):
    v = g.pick(rank=(1, 2, 3))
    g.emit("Tile", [v, g.ints(*[g.choice([1, 1, 2, 3, 0] if g.coin(0.1) else [1, 1, 2, 3]) for _ in range(v.rank)])])


@generates("Pad", weight=2)
def pad(g):
    v = g.pick(NUMBERS + (U8, I8, BOOL), rank=(1, 2, 3, 4), test=lambda v: v.full)
    mode = g.choice([None, "constant", "constant", "reflect", "edge"] + (["wrap"] if g.opset >= 19 else []))
    axes = list(range(v.rank))
    if g.opset >= 18 and g.coin(0.3):
        axes = g.random.sample(axes, g.integer(1, v.rank))
    most = [v.shortest(a) - 1 if mode == "reflect" else min(v.shortest(a), 2) for a in axes]
    pads = [g.integer(0, min(2, max(m, 0))) for m in most * 2]
    if mode in (None, "constant") and g.coin(0.3):
        i = g.random.randrange(len(pads))
        there = v.shortest(axes[i % len(axes)]) + pads[(i + len(axes)) % len(pads)]
        pads[i] = -g.integer(min(1, there), there)  # maybe more than the data have, where the other end is padded
    if g.opset < 11:
        if not is_float(v.dtype):
            return None
        return g.emit("Pad", [v], pads=pads, mode=mode, value=g.choice([None, 1.0]) if mode != "edge" else None)
    value = g.scalar(g.choice([0, 1, 2]), v.dtype) if mode in (None, "constant") and g.coin(0.6) else None
    names = g.given_ints(*[signed(g, a, v.rank) for a in axes]) if len(axes) < v.rank else None
    return g.emit("Pad", [v, g.given_ints(*pads), value, names], mode=mode)


@generates("Gather", weight=2)
def gather(g):
    v = g.pick(rank=(1, 2, 3, 4))
    axis = g.axis(v)
    shortest = v.shortest(axis)
    shape = g.choice([[], [1], [3], [2, 2], [0], [5]])
    if shortest == 0 and shape != [0]:
        return None
    low = -shortest if g.opset >= 11 else 0
    dtype = g.choice([I64, I32])
    if g.coin(0.3) and shortest:  # data decide, of a symbolic number
        index = g.add_input([g.choice(["N", "S", 2])], dtype, True, 0, min(4, shortest) - 1)
        return g.emit("Gather", [v, index], axis=axis)
    index = g.rng.integers(low, shortest, shape) if shortest else np.zeros(shape)
    return g.emit("Gather", [v, g.constant(index, dtype)], axis=axis if axis or g.coin() else None)


@generates("GatherElements")
def gather_elements(g):
    v = g.pick(rank=(1, 2, 3), test=lambda v: v.full)
    axis = g.axis(v)
    dims = [g.integer(1, v.shortest(i)) for i in range(v.rank)]
    dims[axis] = g.integer(0, 5) if g.coin(0.2) else g.integer(1, 5)
    index = g.rng.integers(-v.shortest(axis), v.shortest(axis), dims)
    g.emit("GatherElements", [v, g.constant(index, g.choice([I64, I32]))], axis=axis)


@generates("GatherND")
def gather_nd(g):
    v = g.pick(rank=(2, 3, 4), test=lambda v: v.full)
    batch = 1 if g.opset >= 12 and isinstance(v.dims()[0], int) and v.rank > 2 and g.coin(0.4) else 0
    depth = g.integer(1, v.rank - batch)
    shortest = [v.shortest(i + batch) for i in range(depth)]
    leading = [v.dims()[0]] if batch else []
    index = np.stack([g.rng.integers(-s, s, leading + [4]) for s in shortest], -1) if batch else (
        np.stack([g.rng.integers(-s, s, [4]) for s in shortest], -1))
    g.emit("GatherND", [v, g.constant(index, I64)], batch_dims=batch or None)


@generates("ScatterElements", "Scatter", "ScatterND", weight=2)
def scatter(g):
    v = g.pick((F32, I64, F64, I32, F16), rank=(1, 2, 3),
               test=lambda v: all(isinstance(d, int) and d for d in v.dims()), make=lambda: [4, 3])
    op = g.choice(["ScatterElements", "ScatterND"]) if g.opset >= 11 else "Scatter"
    choices = ["none", "none", "add", "mul"] + (["max", "min"] if g.opset >= 18 else [])
    reduction = g.choice(choices) if g.opset >= 16 and v.dtype != F16 else None
    dims = v.dims()
    if op != "ScatterND":
        axis = g.axis(v)
        at = axis % v.rank
        part = [g.integer(1, d) for d in dims]
        if reduction in (None, "none"):  # no place twice
            index = np.argsort(g.rng.random(part[:at] + [dims[at]] + part[at + 1:]), axis=at)
            index = np.take(index, range(part[at]), axis=at)
        else:
            index = g.rng.integers(-dims[at], dims[at], part)
        return g.emit(op, [v, g.constant(index, I64), g.weight(part, v.dtype)], axis=axis if at or g.coin() else None,
                      reduction=reduction)
    depth = g.integer(1, v.rank)
    places = list(np.ndindex(*dims[:depth]))
    chosen = g.random.sample(places, min(len(places), 3))
    if reduction not in (None, "none"):
        chosen += chosen[:1]
    index = np.asarray(chosen, np.int64).reshape(len(chosen), depth)
    return g.emit(op, [v, g.constant(index, I64), g.weight([len(chosen)] + dims[depth:], v.dtype)],
                  reduction=reduction)


@generates("TensorScatter")
def tensor_scatter(g):
    g.schema("TensorScatter")
    past = g.pick((F32, F16), rank=(3, 4), test=lambda v: all(isinstance(d, int) and d for d in v.dims()),
                  make=lambda: [2, 3, 8, 4])
    dims = past.dims()
    length = g.integer(1, dims[-2])
    update = g.weight(dims[:-2] + [length, dims[-1]], past.dtype)
    mode = g.choice([None, "linear", "circular"])
    top = dims[-2] - 1 if mode == "circular" else dims[-2] - length
    places = g.constant(g.rng.integers(0, top + 1, [dims[0]]), I64) if g.coin(0.8) else None
    g.emit("TensorScatter", [past, update, places], mode=mode, axis=g.choice([None, -2]))


@generates("Trilu", weight=2)
def trilu(g):
    v = g.pick((F32, I64, F64, I32, F16, BOOL), rank=(2, 3, 4))
    k = g.ints(g.integer(-3, 3)) if g.coin() else None
    k = g.constant(k.arrays[0][0]) if k is not None else None
    if k is not None and g.coin(0.2):
        k.kind = "input"
    g.emit("Trilu", [v, k], upper=g.choice([None, 0, 1]))


@generates("DepthToSpace", "SpaceToDepth")
def blocks(g):
    block = g.choice([1, 2])
    if g.coin():
        v = g.pick((F32, F64), rank=4, test=lambda v: isinstance(v.dims()[1], int) and v.dims()[1] % block**2 == 0,
                   make=lambda: ["N", 8, 3, "S"])
        return g.emit("DepthToSpace", [v], blocksize=block, mode=g.choice([None, "DCR", "CRD"]) if g.opset >= 11
                      else None)
    v = g.pick((F32, F64), rank=4, test=lambda v: all(isinstance(d, int) and d % block == 0 for d in v.dims()[2:]),
               make=lambda: ["N", 3, 4, 6])
    return g.emit("SpaceToDepth", [v], blocksize=block, mode=g.choice([None, "DCR", "CRD"]) if g.opset >= 28 else None)


@generates("ReverseSequence")
def reverse_sequence(g):
    v = g.pick((F32, I64, I32), rank=(2, 3), test=lambda v: v.full and isinstance(v.dims()[1], int),
               make=lambda: [5, 3])
    time, batch = g.choice([(0, 1), (1, 0)])
    if not isinstance(v.dims()[batch], int):
        return None
    lengths = g.rng.integers(1, v.shortest(time) + 1, [v.dims()[batch]])
    return g.emit("ReverseSequence", [v, g.constant(lengths, I64)], time_axis=time, batch_axis=batch)


@generates("OneHot")
def one_hot(g):
    v = g.pick((I64, I32, F32), rank=(0, 1, 2, 3), test=lambda v: v.whole)
    dtype = g.choice([F32, I64, F64, I32])
    depth = g.choice([g.scalar(5, I64), g.scalar(5, I32), g.ints(4)])
    axis = g.choice([None, -1, 0])
    g.emit("OneHot", [v, depth, g.constant([g.choice([0, 2]), g.choice([1, 5])], dtype)], axis=axis)


@generates("CenterCropPad")
def center_crop_pad(g):
    v = g.pick((F32, I64), rank=(2, 3))
    g.schema("CenterCropPad")
    axes = g.random.sample(range(v.rank), g.integer(1, v.rank))
    sizes = g.given_ints(*[g.integer(1, 6) for _ in axes])
    g.emit("CenterCropPad", [v, sizes], axes=[signed(g, a, v.rank) for a in axes])


@generates("Identity", "Shape", "Size", "Cast", weight=2)
def shapes(g):
    v = g.pick(rank=(1, 2, 3, 4))
    if g.coin(0.3):
        return g.emit("Size", [v])
    if g.opset >= 15 and g.coin():
        return g.emit("Shape", [v], start=g.choice([None, 0, 1, -1]), end=g.choice([None, 1, 2, -1, 9]))
    s = g.emit("Shape", [v])
    return g.emit("Cast", [s], to=onnx_type(g.choice([F32, I32]))) if g.coin() else s


@generates("Range", "ConstantOfShape", "Shape", "Gather", "Reshape", "Max", weight=2)
def shape_arithmetic(g):
    import onnx
    v = g.pick(rank=(1, 2, 3, 4))
    n = g.emit("Gather", [g.emit("Shape", [v]), g.scalar(g.random.randrange(v.rank), I64)])
    op = g.choice(["Add", "Mul", "Sub", "Div"] + (["Max", "Min"] if g.opset >= 12 else []))
    n = g.emit(op, [n, g.scalar(g.choice([1, 2, 3]), I64)])
    if g.coin() and g.opset >= 11:
        return g.emit("Range", [g.scalar(g.choice([0, 1, -2]), I64), n, g.scalar(g.choice([1, 2, -1]), I64)])
    if g.opset < 9:
        return None
    one = g.emit("Reshape", [n, g.ints(-1)])
    if min(int(a.min()) for a in one.arrays) < 0:
        return None
    dtype = g.choice([F32, I64, BOOL, I32, F64])
    value = onnx.numpy_helper.from_array(np.asarray([1]).astype(dtype)) if g.coin(0.8) else None
    return g.emit("ConstantOfShape", [one], value=value)


@generates("Range")
def range_of_numbers(g):
    if g.opset < 11:
        return None
    dtype = g.choice([F32, F64, I32, I64])
    start, stop, step = (g.integer(-3, 3), g.integer(-3, 9), g.choice([1, 2, -1]))
    numbers = [g.scalar(n, dtype) if g.coin(0.8) else g.constant(np.asarray(n, dtype)) for n in (start, stop, step)]
    return g.emit("Range", numbers)


@generates("EyeLike")
def eye_like(g):
    v = g.pick((F32, I64, I32, F64), rank=2, test=lambda v: all(isinstance(d, int) for d in v.dims()),
               make=lambda: [3, 5])
    if g.opset >= 9:
        g.emit("EyeLike", [v], k=g.choice([None, 1, -2]), dtype=g.choice([None, onnx_type(F32), onnx_type(I64)]))


@generates("Col2Im")
def columns_to_image(g):
    g.schema("Col2Im")
    rank = g.choice([1, 2, 2, 3])
    draw = lambda low, high: [g.integer(low, high) for _ in range(rank)]
    image, block, strides, pads = draw(3, 6), draw(1, 3), draw(1, 3), draw(0, 1) + draw(0, 1)
    dilations = draw(1, 2) if rank == 2 else [1] * rank
    room = [n + a + b - d * (k - 1) - 1
            for n, a, b, d, k in zip(image, pads[:rank], pads[rank:], dilations, block)]
    image = [n - min(r, 0) for n, r in zip(image, room)]
    room = [max(r, 0) for r in room]
    count = int(np.prod([r // s + 1 for r, s in zip(room, strides)]))
    v = g.add_input(["N", g.choice([1, 3]) * int(np.prod(block)), count], F32)
    g.emit("Col2Im", [v, g.given_ints(*image), g.constant(np.array(block), I64)],
           strides=strides, pads=pads, dilations=dilations)


@generates("TfIdfVectorizer")
def ngrams(g):
    dtype = g.choice([I32, I64])
    v = g.add_input(g.choice([["N", 7], [6], ["N", 1], [3, 4]]), dtype, low=0, high=3)
    ones, twos, threes = [[g.integer(0, 3) for _ in range(n * count)] for n, count in ((1, 3), (2, 4), (3, 2))]
    shortest = g.integer(1, 3)
    count = 9
    g.emit("TfIdfVectorizer", [v], mode=g.choice(["TF", "IDF", "TFIDF"]), min_gram_length=shortest,
           max_gram_length=g.integer(shortest, 3), max_skip_count=g.integer(0, 4),
           ngram_counts=[0, 3, 11], pool_int64s=list(range(3)) + distinct(twos, 2) + distinct(threes, 3),
           ngram_indexes=g.rng.permutation(count + g.integer(0, 3))[:count].tolist(),
           weights=g.choice([None, (np.arange(count) / 4).tolist()]))


def distinct(numbers, length):
    """N-grams of this length that begin with their own numbers, so that no two are equal."""
    return [n if i % length else i // length for i, n in enumerate(numbers)]
