"""Recipes of legal models whose numbers do not survive another type: integers that no double holds, fractions beside
integers, lengths that no int32 holds, scales that underflow."""
import math

import numpy as np
from onnx import TensorProto

from legal_recipe import Recipe, ints, node


def padding_by(value):
    value = np.asarray(value)
    return Recipe([node("Pad", ["x", "p", "v"], ["y"])], {"x": (["N"], np.array([1, 2], value.dtype))},
                  {"p": ints(1, 1), "v": value}, opset=21)


def padding_by_an_integer_beyond_doubles():
    return padding_by(np.int64(2**60 + 1))


def padding_by_the_greatest_integer():
    return padding_by(np.int64(2**63 - 1))


def padding_by_the_greatest_unsigned_integer():
    return padding_by(np.uint64(2**64 - 1))


def long_unsigned_constants():
    """Signs, orders and shifts of constants beyond the greatest signed integer, each as an integer of the result."""
    names = ("abs", "sign", "order", "shifted", "place", "least")
    nodes = [node("Abs", ["a"], ["abs"]), node("Sign", ["a"], ["sign"]), node("Less", ["b", "a"], ["less"]),
             node("Cast", ["less"], ["order"], to=TensorProto.UINT64),
             node("BitShift", ["a", "b"], ["shifted"], direction="RIGHT"),
             node("ArgMax", ["a"], ["at"], axis=0, keepdims=1), node("Cast", ["at"], ["place"], to=TensorProto.UINT64),
             node("Min", ["a", "b"], ["least"]), node("Concat", names, ["c"], axis=0), node("Add", ["c", "x"], ["y"])]
    a, b = np.uint64([1, 2**64 - 1, 2**63 + 1, 0]), np.uint64([3, 3, 3, 3])
    order = (b < a).astype(np.uint64)
    want = np.concatenate([a, (a != 0).astype(np.uint64), order, a >> b, np.uint64([1]), np.minimum(a, b)])
    return Recipe(nodes, {"x": (["N"], np.uint64([0]))}, {"a": a, "b": b}, want=want)


def long_integers_that_are_unlike():
    """Of constants, and which no double tells apart."""
    a = np.uint64([2**53 + 1, 2**53, 2**64 - 1, 2**53 + 1, 2**64 - 2, 7])
    nodes = [node("Unique", ["a"], ["u", "f", "i", "n"]), node("Unique", ["a"], ["v"], sorted=0),
             *(node("Cast", [name], ["long_" + name], to=TensorProto.UINT64) for name in "fin"),
             node("Concat", ["u", "v", "long_f", "long_i", "long_n"], ["c"], axis=0), node("Add", ["c", "x"], ["y"])]
    values, firsts, inverse, counts = np.unique(a, True, True, True)
    want = np.concatenate([part.astype(np.uint64) for part in (values, a[np.sort(firsts)], firsts, inverse, counts)])
    return Recipe(nodes, {"x": (["N"], np.uint64([0]))}, {"a": a}, want=want)


def long_integers_beside_a_view():
    nodes = [node("Neg", ["x"], ["n"]), node("Reshape", ["n", "s"], ["v"]), node("Add", ["v", "c"], ["y"])]
    return Recipe(nodes, {"x": ([2, 3], np.arange(6).reshape(2, 3))}, {"s": ints(3, 2), "c": ints(2**53 + 1)})


def gelu_of_float64(root):
    nodes = [node("Div", ["x", "r"], ["q"]), node("Erf", ["q"], ["e"]), node("Add", ["e", "one"], ["f"]),
             node("Mul", ["x", "half"], ["h"]), node("Mul", ["h", "f"], ["y"])]
    x = np.linspace(-4, 4, 33)
    erf = np.array([math.erf(value / float(root)) for value in x])
    return Recipe(nodes, {"x": (["N"], x)}, {"r": np.float64(root), "one": np.float64(1), "half": np.float64(0.5)},
                  want=x * 0.5 * (erf + 1))


def gelu_by_the_root_of_float32():
    """Of float64, where the root that float32 rounded is another number."""
    return gelu_of_float64(np.sqrt(np.float32(2)))


def gelu_by_the_root_of_float64():
    return gelu_of_float64(np.sqrt(2))


def hard_swish_by_the_sixth_of_float32():
    """Of float64, whose slope is an attribute of float32."""
    x = np.linspace(-4, 4, 33)
    nodes = [node("HardSigmoid", ["x"], ["s"], alpha=1 / 6, beta=0.5), node("Mul", ["x", "s"], ["y"])]
    return Recipe(nodes, {"x": (["N"], x)}, want=x * np.clip(x * np.float64(np.float32(1 / 6)) + 0.5, 0, 1))


def integers_to_float32_round_once():
    nodes = [node("Cast", ["a"], ["f"], to=TensorProto.FLOAT), node("Cast", ["f"], ["c"], to=TensorProto.INT64),
             node("Add", ["c", "x"], ["y"])]
    a = ints(2**54 + 2**30 + 1, 2**60 + 2**36 + 1, 2**62 + 3 * 2**38 - 1, -(2**54 + 2**30 + 1))
    return Recipe(nodes, {"x": (["N"], ints(0))}, {"a": a})


def dynamic_quantisation(*values):
    return Recipe([node("DynamicQuantizeLinear", ["x"], ["q", "s", "y"])], {"x": (["N"], np.float32(values))},
                  outputs=("y", "q", "s"))


def zero_point_where_the_scale_underflows():
    return dynamic_quantisation(1e-45, 0)


def zero_point_of_both_signs_where_the_scale_underflows():
    return dynamic_quantisation(-1e-44, 1e-44)


def shrink_of(dtype, lambd, bias):
    x = np.arange(0 if np.dtype(dtype).kind == "u" else -4, 5).astype(dtype)
    return Recipe([node("Shrink", ["x"], ["y"], lambd=lambd, bias=bias)], {"x": (["N"], x)})


def shrink_of_integers():
    return shrink_of(np.int32, 1.5, 1.0)


def shrink_of_bytes_by_fractions():
    return shrink_of(np.int8, 0.5, 1.5)


def shrink_of_unsigned_bytes():
    return shrink_of(np.uint8, 2.5, 0.5)


def gemm_of_integers(alpha, beta, want, dtype=np.int32):
    """ONNX Runtime has no kernel; the specification multiplies by floats, and the result's dtype cuts the fraction off."""
    inputs = {"a": (["N", 2], np.array([[3, 3]], dtype)), "b": ([2, 1], np.array([[1], [2]], dtype)),
              "c": ([1], np.array([3], dtype))}
    return Recipe([node("Gemm", ["a", "b", "c"], ["y"], alpha=alpha, beta=beta)], inputs,
                  want=np.array([[want]], dtype))


def gemm_of_integers_by_halves():
    return gemm_of_integers(0.5, 1.5, 9)


def gemm_of_integers_whose_sum_has_a_fraction():
    return gemm_of_integers(1.5, 0.5, 15)


def gemm_of_long_integers_by_an_integer():
    return gemm_of_integers(2.0, -1.0, 15, np.int64)


def gemm_of_unsigned_integers_without_a_bias():
    return gemm_of_integers(0.5, 0.0, 4, np.uint32)


def number_of_rows(count, dtype, nodes, refusal, constants=None):
    """n, the number of empty rows, in a dtype that may not hold it."""
    first = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["rows"]),
             node("Cast", ["rows"], ["n"], to=dtype)]
    return Recipe(first + nodes, {"x": (["N", 0], np.zeros((count, 0), np.float32))},
                  {"zero": np.int64(0), **(constants or {})}, refusal=refusal)


def rows_that_no_int32_counts():
    return number_of_rows(3_000_000_000, TensorProto.INT32, [node("Div", ["n", "two"], ["y"])],
                          "N is 3000000000, expected 0..2147483647", {"two": np.int32(2)})


def quotient_of_a_product_that_int64_holds():
    return number_of_rows(2**31 - 1, TensorProto.INT64, [node("Mul", ["n", "n"], ["m"]), node("Div", ["m", "n"], ["y"])],
                          None)


def quotient_of_a_product_that_no_int64_holds():
    """n * n / n is n without limits, and 0 of integers that wrap around."""
    return number_of_rows(2**40, TensorProto.INT64, [node("Mul", ["n", "n"], ["m"]), node("Div", ["m", "n"], ["y"])],
                          "N is 1099511627776, expected 0..2147483647")


def product_of_rows_that_wraps_around():
    return number_of_rows(2**32 + 5, TensorProto.INT64, [node("Mul", ["n", "n"], ["y"])], None)


def rows_that_float64_counts():
    return number_of_rows(3_000_000_001, TensorProto.DOUBLE, [node("Cast", ["n"], ["y"], to=TensorProto.INT64)], None)


def as_many_rows_as_float32_does_not_count():
    nodes = [node("Cast", ["n"], ["m"], to=TensorProto.INT64), node("Reshape", ["m", "one"], ["d"]),
             node("ConstantOfShape", ["d"], ["y"])]
    return number_of_rows(2**24 + 1, TensorProto.FLOAT, nodes, "expected min(N, 16777216)", {"one": ints(1)})


def large_numbers_of_float16(op_type, want, *values, opset=13, **attributes):
    """ONNX Runtime computes in float32: no step overflows where the result does not."""
    inputs = {f"x{i}": (["n"], np.full(3, value, np.float16)) for i, value in enumerate(values)}
    return Recipe([node(op_type, list(inputs), ["y"], **attributes)], inputs, opset=opset,
                  want=np.full(3, want, np.float16))


def mean_of_large_numbers_of_float16():
    return large_numbers_of_float16("Mean", 60000, 60000, 60000, 60000)


def sum_that_leaves_float16_and_returns():
    return large_numbers_of_float16("Sum", 60000, 60000, 60000, -60000)


def channels_that_leave_float32_where_they_fill_a_block():
    """40 channels fill three blocks of 16; exp(0 + 100) is no number of float32."""
    rng = np.random.default_rng(2)
    around = (-100 + rng.standard_normal((40, 1, 1, 1))).astype(np.float32) / 16
    nodes = [node("Conv", ["x", "w"], ["h"]), node("Add", ["h", "hundred"], ["a"]), node("Exp", ["a"], ["e"]),
             node("Conv", ["e", "v"], ["y"], pads=[1, 1, 1, 1])]
    weights = {"w": np.broadcast_to(around, (40, 16, 1, 1)).copy(), "hundred": np.float32(100),
               "v": (rng.standard_normal((64, 40, 3, 3)) / 40).astype(np.float32)}
    return Recipe(nodes, {"x": ([1, 16, 30, 30], np.ones((1, 16, 30, 30), np.float32))}, weights)


def ranges_over_all_integers():
    """Constant ends whose distance no int64 holds."""
    least, greatest = -2**63, 2**63 - 1
    ends = [(0, least, least), (5, least, least), (greatest, least, least), (least, greatest, 2**62),
            (least, greatest, greatest), (greatest, least, -2**61), (least, least + 3, 1), (greatest, least, 1)]
    names = [f"r{i}" for i in range(len(ends))]
    nodes = [node("Range", [f"{name}_{part}" for part in range(3)], [name]) for name in names]
    constants = {f"{name}_{part}": np.int64(value) for name, of_one in zip(names, ends)
                 for part, value in enumerate(of_one)}
    want = np.array([0] + [i for of_one in ends for i in range(*of_one)])
    return Recipe([*nodes, node("Concat", ["x", *names], ["y"], axis=0)], {"x": (["N"], ints(0))}, constants, want=want)


def thirds_of_a_dim(dim, **outcome):
    """dim * 3 // 3, of a tensor without elements."""
    nodes = [node("Shape", ["x"], ["n"], end=1), node("Mul", ["n", "three"], ["a"]), node("Div", ["a", "three"], ["y"])]
    return Recipe(nodes, {"x": (["N", 0], np.zeros((dim, 0), bool))}, {"three": ints(3)}, **outcome)


def thirds_of_the_greatest_dim():
    return thirds_of_a_dim(2**60)


def thirds_of_a_greater_dim():
    """The product wraps around, the formula of the dim would not."""
    return thirds_of_a_dim(2**62, refusal="N is 4611686018427387904, expected 0..1152921504606846976")


def a_shape_of_the_greatest_dim():
    return Recipe([node("ConstantOfShape", ["s"], ["t"]), node("Shape", ["t"], ["y"])], {"s": ([2], ints(2**60, 0))})
