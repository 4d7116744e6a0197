"""Floats of eight bits and less, and integers of two and four: conversions to them from numbers that they have, inputs
of them, what moves their elements, bit casts, and the way back to numbers that other operators take."""
import ml_dtypes
import numpy as np

from graph import Skip
from registry import generates
from tensors import BOOL, F16, F32, FLOAT4, FLOAT8, I32, INT2, INT4, SMALL, UINT2, UINT4, bits_of, onnx_type

SINCE = {INT4: 21, UINT4: 21, FLOAT4: 23, INT2: 25, UINT2: 25, **{dtype: 19 for dtype in FLOAT8}}
INTEGERS = (INT2, UINT2, INT4, UINT4)


def drawn(g, dtype, dims):
    """An input of all codes that stand for numbers."""
    arrays = []
    for row in g.symbols:
        codes = g.rng.integers(0, 2**bits_of(dtype), [row.get(d, d) for d in dims]).astype(np.uint8)
        array = codes.astype(dtype) if dtype in (INT2, INT4) else codes.view(dtype)
        finite = np.isfinite(array.astype(np.float64))
        arrays.append(np.where(finite, array, np.zeros((), dtype)).astype(dtype))
    return g.keep_input(arrays)


def has_numbers(v, dtype):
    limits = ml_dtypes.iinfo(dtype) if dtype in INTEGERS else ml_dtypes.finfo(dtype)
    low, high = float(limits.min), float(limits.max)
    return v.exact and v.finite and all(not a.size or (a.astype(np.float64).min() >= low and
                                                       a.astype(np.float64).max() <= high) for a in v.arrays)


def source(g, dtype):
    if g.coin(0.4):
        return drawn(g, dtype, g.new_dims(g.choice([0, 1, 2, 3])))
    v = g.pick((F32, F16, I32), test=lambda v: v.exact and v.finite)
    if not has_numbers(v, dtype):
        if v.dtype == I32:
            raise Skip
        limit = 1.0 if dtype in (INT2, UINT2) else 5.0
        v = g.emit("Clip", [v, g.scalar(0.0 if dtype in (UINT2, UINT4) else -limit, v.dtype), g.scalar(limit, v.dtype)])
    if g.coin(0.3):
        like = g.constant(np.zeros([2], dtype))
        return g.emit("CastLike", [v, like], saturate=g.choice([None, 1]))
    if dtype not in FLOAT8 and v.dtype == F32 and g.coin(0.4):
        scale = g.scalar(g.choice([0.5, 1.0, 2.0]))
        zero = g.constant(np.zeros([], dtype)) if g.coin() else None
        output = {} if zero is not None else {"output_dtype": onnx_type(dtype)}
        return g.emit("QuantizeLinear", [v, scale, zero], **output)
    return g.emit("Cast", [v], to=onnx_type(dtype), saturate=g.choice([None, 0, 1]))


def moved(g, v):
    """By the operators that ONNX has for such elements."""
    way = g.choice(["Transpose", "Identity", "Flatten", "Reshape", "BitCast", "Unsqueeze"])
    if way == "Transpose":
        return g.emit("Transpose", [v], perm=list(range(v.rank))[::-1] if v.rank and g.coin() else None)
    if way == "Flatten":
        return g.emit("Flatten", [v], axis=g.choice([0, 1]) if v.rank else 0)
    if way == "Reshape":
        return g.emit("Reshape", [v, g.ints(-1)])
    if way == "Unsqueeze":
        return g.emit("Unsqueeze", [v, g.ints(g.choice([0, -1]))])
    if way == "BitCast" and g.opset >= 26:
        others = [d for d in SMALL if bits_of(d) == bits_of(v.dtype) and d != v.dtype]
        return g.emit("BitCast", [v], to=onnx_type(g.choice(others)))
    return g.emit("Identity", [v])


@generates("Cast", "CastLike", "QuantizeLinear", "DequantizeLinear", "BitCast", "Transpose", "Flatten", "Reshape",
           "Identity", "Unsqueeze", weight=3)
def small_elements(g):
    dtypes = [dtype for dtype, opset in SINCE.items() if g.opset >= opset]
    v = source(g, g.choice(dtypes))
    for _ in range(g.choice([0, 1, 1, 2])):
        v = moved(g, v)
    if g.coin(0.3):
        return v
    if g.coin(0.4):
        return g.emit("DequantizeLinear", [v, g.scalar(g.choice([0.5, 2.0]))])
    return g.emit("Cast", [v], to=onnx_type(g.choice([F32, F32, F16] + ([I32, BOOL] if v.dtype in INTEGERS else []))))
