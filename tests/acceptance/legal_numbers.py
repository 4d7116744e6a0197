"""Recipes of legal models whose numbers do not survive another type: lengths that no int32 holds."""
import numpy as np
from onnx import TensorProto

from legal_recipe import Recipe, ints, node


def number_of_rows(count, dtype, nodes, refusal, constants=None):
    """n, the number of empty rows, in a dtype that may not hold it."""
    first = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["rows"]),
             node("Cast", ["rows"], ["n"], to=dtype)]
    return Recipe(first + nodes, {"x": (["N", 0], np.zeros((count, 0), np.float32))},
                  {"zero": np.int64(0), **(constants or {})}, refusal=refusal)


def rows_that_no_int32_counts():
    return number_of_rows(3_000_000_000, TensorProto.INT32, [node("Div", ["n", "two"], ["y"])],
                          "N is 3000000000, expected 0..2147483647", {"two": np.int32(2)})


def rows_that_float64_counts():
    return number_of_rows(3_000_000_001, TensorProto.DOUBLE, [node("Cast", ["n"], ["y"], to=TensorProto.INT64)], None)


def as_many_rows_as_float32_does_not_count():
    nodes = [node("Cast", ["n"], ["m"], to=TensorProto.INT64), node("Reshape", ["m", "one"], ["d"]),
             node("ConstantOfShape", ["d"], ["y"])]
    return number_of_rows(2**24 + 1, TensorProto.FLOAT, nodes, "expected min(N, 16777216)", {"one": ints(1)})
