"""What converters of other frameworks' models wrote: com.microsoft's operators for TensorFlow's graphs, and operators that
ONNX had until opset 9."""
import numpy as np

from generate_contrib import MS, microsoft
from graph import Skip
from registry import generates
from tensors import F16, F32, F64, I16, I32, I64

UNTIL_9 = 9


def picture(g, dtype=F32, sizes=(4, 7, "S")):
    v = g.add_input(["N", g.choice([1, 3]), g.choice(sizes), g.choice([5, 8])], dtype, wild=False)
    if not v.full:
        raise Skip
    return v


@microsoft("CropAndResize", weight=2)
def crop_and_resize(g):
    x = picture(g)
    count = g.choice([1, 3])
    boxes = g.constant(g.rng.uniform(-0.2, 1.2, [count, 4]), F32)
    boxes.kind = g.choice(["constant", "input"])
    places = g.constant(g.rng.integers(0, x.shortest(0), [count]), I32)
    size = g.given_ints(g.choice([1, 2, 5]), g.choice([1, 3, 4]))
    size.arrays = [array.astype(I32) for array in size.arrays]
    g.emit(MS + "CropAndResize", [x, boxes, places, size], mode=g.choice([None, "bilinear", "nearest"]),
           extrapolation_value=g.choice([None, 0.5]))


@microsoft("ConvTransposeWithDynamicPads", weight=2)
def conv_transpose(g):
    x = g.add_input(["N", 4, g.choice([4, "S"]), 5], F32, True, wild=False)
    group = g.choice([None, 1, 2])
    w = g.weight([4, 3, 3, g.choice([2, 3])])
    pads = g.given_ints(*(g.choice([0, 1]) for _ in range(4))) if g.coin(0.8) else None
    bias = g.weight([3 * (group or 1)]) if g.coin() else None
    g.emit(MS + "ConvTransposeWithDynamicPads", [x, w, pads, bias], group=group, strides=g.choice([None, [2, 1]]),
           dilations=g.choice([None, [1, 2]]), output_padding=g.choice([None, [1, 0]]) if g.coin(0.3) else None,
           kernel_shape=w.dims()[2:] if g.coin() else None, auto_pad=g.choice([None, "NOTSET"]))


@microsoft("ExpandDims")
def expand_dims(g):
    v = g.pick(rank=(0, 1, 2, 3))
    g.emit(MS + "ExpandDims", [v, g.constant(g.integer(-v.rank - 1, v.rank), I32)])


@microsoft("Pad", weight=2)
def pad(g):
    v = g.pick((F32, F64), rank=(1, 2, 3), test=lambda v: v.full)
    mode = g.choice([None, "constant", "edge", "reflect"])
    most = [min(2, v.shortest(axis) - 1) if mode == "reflect" else 2 for axis in range(v.rank)]
    widths = [g.integer(0, most[i % v.rank]) for i in range(2 * v.rank)]
    pads = g.given_ints(*widths) if g.coin(0.6) else g.constant([widths], I64)
    value = g.constant(np.full(g.choice([[], [1]]), 3), v.dtype) if mode in (None, "constant") and g.coin() else None
    g.emit(MS + "Pad", [v, pads, value], mode=mode)


@microsoft("Range")
def numbers(g):
    dtype = g.choice([F32, F64, I16, I32, I64])
    dims = g.choice([[], [1]])
    step = g.choice([None, 1, 2, -1])
    start, limit = g.integer(-3, 3), g.integer(-3, 9)
    values = [g.constant(np.full(dims, value), dtype) for value in (start, limit, step) if value is not None]
    for value in values:
        value.kind = g.choice(["constant", "constant", "input"])
    g.emit(MS + "Range", values)


@microsoft("Unique")
def unique(g):
    g.emit(MS + "Unique", [g.add_input([g.choice(["N", 9])], F32, True, 0, 3, wild=False)], 3)


@microsoft("UnfoldTensor")
def unfold(g):
    v = g.pick(rank=(1, 2, 3))
    axis = g.integer(0, v.rank - 1)
    if v.shortest(axis) < 1:
        raise Skip
    g.emit(MS + "UnfoldTensor", [v], dim=g.choice([axis, axis - v.rank]) if axis < v.rank - 1 or g.coin() else None,
           size=g.integer(1, min(4, v.shortest(axis))), step=g.choice([None, 1, 2, 3]))


@microsoft("MatMulInteger16")
def product_of_sixteen_bits(g):
    k, n = g.choice([3, 17]), g.choice([1, 4, 16])
    a = g.add_input(g.choice([["N", k], [2, "S", k]]), I16, True, -300, 300)
    g.emit(MS + "MatMulInteger16", [a, g.constant(g.rng.integers(-300, 300, [k, n]), I16)])


# ---- until opset 9

@generates("Affine", "ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh", "Crop", weight=2)
def early(g):
    if g.opset > UNTIL_9:
        raise Skip
    kind = g.integer(0, 5)
    # (ONNX Runtime's kernels are of float32.)
    v = picture(g) if kind > 3 else g.pick((F32,), rank=(1, 2, 3), test=lambda v: v.finite)
    factor = lambda: g.choice([0.5, 1.0, -2.0])
    if kind == 0:
        return g.emit("Affine", [v], alpha=g.choice([None, factor()]), beta=g.choice([None, factor()]))
    if kind == 1:
        return g.emit("Scale", [v], scale=g.choice([None, factor()]))
    if kind in (2, 3):
        return g.emit(["ParametricSoftplus", "ScaledTanh"][kind - 2], [v], alpha=factor(), beta=factor())
    if kind == 4:
        return g.emit("ImageScaler", [v], scale=g.choice([None, factor()]),
                      bias=[float(n) for n in g.rng.integers(-3, 4, [v.dims()[1]])])
    border = [g.choice([0, 1]) for _ in range(4)]
    if v.shortest(2) < 4:
        raise Skip
    return g.emit("Crop", [v], border=border, scale=[g.integer(1, 3), g.integer(1, 3)] if g.coin(0.4) else None)
