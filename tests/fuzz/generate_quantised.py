"""Quantised forms: QuantizeLinear and DequantizeLinear (by tensor, by axis, in blocks), QLinearConv and QLinearMatMul,
the integer products, DynamicQuantizeLinear, and graphs that a quantiser writes: a convolution or a product between
DequantizeLinear and QuantizeLinear."""
import numpy as np

from registry import generates
from tensors import F32, I32, I64, I8, U8, onnx_type

SCALES = (0.5, 0.25, 0.125, 0.0625)


def scale_and_zero(g, dtype, axis_length=None, signed_zero=True):
    """Powers of two, so that products are exact and nothing lies between two numbers by rounding."""
    shape = [] if axis_length is None else [axis_length]
    scale = g.constant(g.rng.choice(SCALES, shape), F32)
    low, high = (0, 6) if dtype == U8 else (-3, 3)
    zero = g.constant(g.rng.integers(low, high + 1, shape), dtype)
    return scale, zero


def quantised(g, dims, dtype):
    return g.pick((dtype,), test=lambda v: v.dims() == dims, make=dims) if g.coin(0.3) else g.add_input(
        dims, dtype, True, -9, 9)


@generates("QuantizeLinear", "DequantizeLinear", weight=3)
def quantise(g):
    if g.opset < 10:
        return None
    dtype = g.choice([U8, I8])
    v = g.pick((F32,), rank=(1, 2, 3, 4), test=lambda v: v.exact and v.finite)
    axis = g.choice([a for a in range(v.rank)])
    by_axis = g.opset >= 13 and isinstance(v.dims()[axis], int) and v.dims()[axis] > 0 and g.coin(0.4)
    scale, zero = scale_and_zero(g, dtype, v.dims()[axis] if by_axis else None)
    attributes = {"axis": g.choice([axis, axis - v.rank])} if by_axis else {}
    if g.coin(0.3) and dtype == U8:
        zero = None
    output = {"output_dtype": onnx_type(dtype)} if g.opset >= 21 and zero is None and g.coin() else {}
    saturate = {"saturate": g.choice([0, 1])} if g.opset >= 19 and g.coin(0.2) else {}
    q = g.emit("QuantizeLinear", [v, scale, zero], **attributes, **output, **saturate)
    wide = {"output_dtype": onnx_type(F32)} if g.opset >= 23 and g.coin() else {}
    g.emit("DequantizeLinear", [q, scale, zero], **attributes, **wide)


@generates("DequantizeLinear", "QuantizeLinear")
def in_blocks(g):
    if g.opset < 21:
        return None
    dtype = g.choice([U8, I8])
    rows, columns, block = 4, g.choice([4, 8]), g.choice([2, 4])
    scale = g.constant(g.rng.choice(SCALES, [rows, columns // block]), F32)
    zero = g.constant(g.rng.integers(0, 4, [rows, columns // block]), dtype)
    q = quantised(g, [rows, columns], dtype)
    x = g.emit("DequantizeLinear", [q, scale, zero], axis=g.choice([1, -1]), block_size=block)
    if g.coin():
        g.emit("QuantizeLinear", [x, scale, zero], axis=1, block_size=block)


@generates("DynamicQuantizeLinear")
def dynamic(g):
    if g.opset >= 11:
        v = g.pick((F32,), rank=(1, 2, 3), test=lambda v: v.full and v.exact and v.finite)
        g.emit("DynamicQuantizeLinear", [v], 3)


@generates("MatMulInteger", weight=2)
def matmul_integer(g):
    if g.opset < 10:
        return None
    k, n = g.choice([3, 8, 17]), g.choice([1, 4, 16])
    dtype, other = g.choice([U8, I8]), g.choice([U8, I8])
    a = quantised(g, g.choice([["N", k], [4, k], [2, 3, k]]), dtype)
    b = g.constant(g.rng.integers(0 if other == U8 else -9, 9, [k, n]), other)
    a_zero = g.scalar(2, dtype) if g.coin() else None
    b_zero = (g.scalar(1, other) if g.coin() or a_zero is None else
              g.constant(g.rng.integers(0, 4, [n]), other)) if g.coin() else None
    return g.emit("MatMulInteger", [a, b, a_zero, b_zero])


def convolved(g, x_dtype, w_dtype):
    x = quantised(g, [g.choice([1, "N"]), g.choice([2, 4, 20]), g.choice([5, 8]), g.choice([5, "S"])], x_dtype)
    c = x.dims()[1]
    group = g.choice([1, 1, 2])
    kernel = [g.choice([1, 3]), g.choice([1, 2])]
    w = g.constant(g.rng.integers(0 if w_dtype == U8 else -5, 6, [4, c // group, *kernel]), w_dtype)
    attributes = {"group": group, "kernel_shape": g.choice([None, kernel]), "strides": g.choice([None, [1, 2]]),
                  "dilations": g.choice([None, [1, 1], [2, 1]])}
    if g.coin(0.7):
        attributes["pads"] = [g.choice([0, 1]) for _ in range(4)]
    else:
        attributes.update(auto_pad=g.choice(["SAME_UPPER", "VALID"]), dilations=None)
    return x, w, attributes


@generates("ConvInteger", weight=2)
def conv_integer(g):
    if g.opset < 10:
        return None
    dtype, w_dtype = U8, g.choice([U8, U8])
    x, w, attributes = convolved(g, dtype, w_dtype)
    x_zero = g.scalar(g.choice([0, 3]), dtype) if g.coin() else None
    w_zero = g.scalar(g.choice([0, 2]), w_dtype) if x_zero is not None and g.coin() else None
    return g.emit("ConvInteger", [x, w, x_zero, w_zero], **attributes)


@generates("QLinearConv", weight=2)
def qlinear_conv(g):
    if g.opset < 10:
        return None
    dtype = g.choice([U8, I8])
    w_dtype = I8 if dtype == I8 else g.choice([U8, I8])
    x, w, attributes = convolved(g, dtype, w_dtype)
    x_scale, x_zero = scale_and_zero(g, dtype)
    w_scale = g.constant(g.rng.choice(SCALES, g.choice([[], [4]])), F32)
    w_zero = g.constant(np.zeros(w_scale.arrays[0].shape), w_dtype)
    y_scale, y_zero = g.scalar(g.choice([1.0, 2.0, 4.0])), g.scalar(g.choice([0, 5]), dtype)
    bias = g.constant(g.rng.integers(-20, 20, [4]), I32) if g.coin() else None
    return g.emit("QLinearConv", [x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias], **attributes)


@generates("QLinearMatMul", weight=2)
def qlinear_matmul(g):
    if g.opset < 10:
        return None
    dtype = g.choice([U8, I8])
    k, n = g.choice([3, 8, 17]), g.choice([1, 4, 16])
    a = quantised(g, g.choice([["N", k], [4, k], [2, 3, k]]), dtype)
    b = g.constant(g.rng.integers(0 if dtype == U8 else -9, 9, [k, n]), dtype)
    a_scale, a_zero = scale_and_zero(g, dtype)
    b_scale, b_zero = scale_and_zero(g, dtype)
    y_scale, y_zero = g.scalar(g.choice([1.0, 2.0, 4.0])), g.scalar(g.choice([0, 5]), dtype)
    return g.emit("QLinearMatMul", [a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero])


@generates("QuantizeLinear", "DequantizeLinear", "Conv", "MatMul", weight=3)
def between_quantisers(g):
    """What a quantiser writes: each operand dequantised, the result quantised and dequantised."""
    if g.opset < 13:
        return None
    dtype = g.choice([U8, I8])
    if g.coin():
        x, w, attributes = convolved(g, dtype, I8)
        op = "Conv"
    else:
        k = g.choice([4, 8])
        x, attributes, op = quantised(g, g.choice([["N", k], [3, k]]), dtype), {}, "MatMul"
        w = g.constant(g.rng.integers(-9, 9, [k, 8]), I8)
    x_scale, x_zero = scale_and_zero(g, dtype)
    if g.coin(0.4):
        w_scale, w_zero, axis = *scale_and_zero(g, I8, w.dims()[0 if op == "Conv" else 1]), 0 if op == "Conv" else 1
    else:
        w_scale, w_zero, axis = *scale_and_zero(g, I8), None
    y = g.emit(op, [g.emit("DequantizeLinear", [x, x_scale, x_zero]),
                    g.emit("DequantizeLinear", [w, w_scale, w_zero], axis=axis)], **attributes)
    if g.coin(0.4):
        y = g.emit("Relu", [y])
    y_scale, y_zero = g.scalar(g.choice([1.0, 0.5])), g.scalar(g.choice([0, 5]), dtype)
    q = g.emit("QuantizeLinear", [y, y_scale, y_zero])
    g.emit("DequantizeLinear", [q, y_scale, y_zero])
