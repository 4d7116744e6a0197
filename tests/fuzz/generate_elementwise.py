"""Operators that work element by element: arithmetic, comparisons, logic, bits, activations, casts. Discontinuous
ones (Floor, comparisons, casts to integers) need no guard here: `Graph.emit` leaves out a node whose result changes
within its inputs' error bounds; halves of integers are drawn so that discontinuities meet exact operands."""
import numpy as np

from registry import generates
from tensors import (BFLOAT16, BOOL, DTYPES, F16, F32, F64, FLOATS, I16, I32, I64, I8, INTEGERS, NUMBERS, U16, U32, U64,
                     U8, is_float, largest, onnx_type)

SIGNED = FLOATS + (I64, I32, I8, I16)
UNSIGNED = (U8, U16, U32, U64)
BITS = (U8, U32, U64, U16, I32, I64, I8, I16)


@generates("Add", "Sub", "Mul", weight=6)
def arithmetic(g):
    v = g.pick(NUMBERS + (BFLOAT16, U8, I8))
    other = g.partner(v)
    op = g.choice(["Add", "Mul"] if v.dtype == U8 else ["Add", "Sub", "Mul"])
    g.emit(op, [v, other] if g.coin() else [other, v])


@generates("Add", "Mul", "Sub", weight=2)
def same_twice(g):
    v = g.pick(FLOATS)
    g.emit(g.choice(["Add", "Mul", "Sub"]), [v, v])


@generates("Add", "Mul", weight=1)
def chains_of_constants(g):
    """(x * a) * b and (x + a) + b, whose constants a rewrite may join only where nothing overflows or rounds away."""
    v = g.pick(FLOATS)
    op = g.choice(["Add", "Mul"])
    for _ in range(2):
        number = g.choice([0.5, 3.0, 300.0, 1e-3, 65504.0, 12582912.0, -12582912.0, 1e30, 1e-30, -1.0, 2.0])
        v = g.emit(op, [v, g.scalar(number, v.dtype)])


@generates("Max", "Min", "Sum", "Mean", weight=2)
def of_many(g):
    op = g.choice(["Max", "Min", "Sum", "Mean"])
    v = g.pick(NUMBERS + (BFLOAT16, U8) if op in ("Max", "Min") and g.opset >= 12 else FLOATS)
    inputs = [v] + [g.partner(v) for _ in range(g.choice([0, 1, 1, 2, 3]))]
    g.random.shuffle(inputs)
    g.emit(op, inputs)


@generates("Div", weight=2)
def divide(g):
    v = g.pick(NUMBERS + (BFLOAT16,))
    if not is_float(v.dtype):
        return g.emit("Div", [v, g.scalar(g.choice([1, 2, 3, -2, 7]), v.dtype)])
    bottom = g.emit("Add", [g.emit("Abs", [g.partner(v)]), g.scalar(1.5, v.dtype)])
    return g.emit("Div", [v, bottom])


@generates("Mod")
def modulo(g):
    fmod = g.choice([None, 0, 1])
    v = g.pick(FLOATS if fmod == 1 and g.coin() else INTEGERS)
    by = g.scalar(g.choice([2, 3, 5] + ([] if v.dtype in UNSIGNED else [-3])), v.dtype)
    g.emit("Mod", [v, by], fmod=fmod)


UNARY = {  # operator: (dtypes, attributes: choices)
    "Abs": (SIGNED, {}), "Neg": (SIGNED, {}), "Relu": (FLOATS + (I32, I64, I8), {}), "Identity": (DTYPES, {}),
    "LeakyRelu": (FLOATS, {"alpha": [None, 0.1, 0.0, -0.5]}), "Sigmoid": (FLOATS, {}), "Tanh": (FLOATS, {}),
    "Erf": (FLOATS, {}), "Softplus": (FLOATS, {}), "Softsign": (FLOATS, {}), "Elu": (FLOATS, {"alpha": [None, 0.5]}),
    "Selu": (FLOATS, {"alpha": [None, 1.5], "gamma": [None, 0.7]}), "Celu": ((F32,), {"alpha": [None, 0.5, 2.0]}),
    "HardSigmoid": (FLOATS, {"alpha": [None, 0.25], "beta": [None, 0.4]}), "HardSwish": (FLOATS, {}),
    "Gelu": (FLOATS, {"approximate": [None, "none", "tanh"]}), "Mish": (FLOATS, {}),
    "ThresholdedRelu": (FLOATS, {"alpha": [None, 0.5, 2.0]}), "Swish": (FLOATS, {"alpha": [None, 0.5]}),
    "Shrink": (FLOATS, {"bias": [None, 0.5], "lambd": [None, 1.0]}), "Sin": (FLOATS, {}), "Cos": (FLOATS, {}),
    "Tan": ((F32, F64), {}), "Atan": (FLOATS, {}), "Sinh": (FLOATS, {}), "Cosh": (FLOATS, {}), "Asinh": (FLOATS, {}),
}


@generates(*UNARY, weight=6)
def unary(g):
    op = g.choice(UNARY)
    dtypes, attributes = UNARY[op]
    g.schema(op)
    v = g.pick(dtypes)
    g.emit(op, [v], **{name: g.choice(options) for name, options in attributes.items()})


@generates("Exp", "Log", "Sqrt", "Reciprocal", "Acos", "Asin", "Acosh", "Atanh", "Tanh", weight=2)
def of_a_range(g):
    """Functions of positive or small numbers, behind what makes them so; of wild graphs they take anything."""
    op = g.choice(["Exp", "Log", "Sqrt", "Reciprocal", "Acos", "Asin", "Acosh", "Atanh"])
    v = g.pick(FLOATS)
    if g.wild and g.coin(0.3):
        return g.emit(op, [v])
    if op in ("Exp", "Acos", "Asin", "Atanh"):
        return g.emit(op, [g.emit("Mul", [g.emit("Tanh", [v]), g.scalar(0.75, v.dtype)])])
    return g.emit(op, [g.emit("Add", [g.emit("Abs", [v]), g.scalar(1.25, v.dtype)])])


@generates("Pow", weight=2)
def power(g):
    v = g.pick((F32, F64, F16, I32, I64) if g.opset >= 12 else FLOATS)
    if not is_float(v.dtype):
        number, dtype = g.choice([0, 1, 2, 3]), g.choice([v.dtype, I32, F32])
        if dtype == F32 and any(largest(a) ** number > np.iinfo(v.dtype).max for a in v.arrays):
            number = 1
        return g.emit("Pow", [v, g.scalar(number, dtype)])
    dtype = g.choice([v.dtype, F32, I64]) if g.opset >= 12 else v.dtype
    exponents = [0, 1, 2, 3, 4] + ([0.5, -1, -0.5, 1.5, -2] if is_float(dtype) else [])
    positive = g.emit("Add", [g.emit("Abs", [v]), g.scalar(0.5, v.dtype)])
    if g.coin(0.4):
        exponent = g.constant(g.rng.choice(exponents, [d if isinstance(d, int) else 1 for d in v.dims()][-1:]), dtype)
        return g.emit("Pow", [positive, exponent])
    number = g.choice(exponents)
    return g.emit("Pow", [v if g.wild or number in (0, 1, 2, 3, 4) else positive, g.scalar(number, dtype)])


@generates("Floor", "Ceil", "Round", "Sign", weight=2)
def jump(g):
    v = g.pick(FLOATS, test=lambda v: v.exact)
    if g.coin(0.8):
        v = g.emit("Mul", [v, g.scalar(0.5, v.dtype)])
    g.emit(g.choice(["Floor", "Ceil", "Round", "Sign"]), [v])


@generates("Clip", weight=2)
def clip(g):
    v = g.pick(FLOATS + (I32, I64, I8, U8))
    low, high = g.choice([(-1, 2), (None, 2), (-1, None), (None, None), (0, 6), (1, 1), (2, 1)])
    if v.dtype in UNSIGNED and low == -1:
        low = 1
    if g.opset < 11:
        bounds = {k: float(b) for k, b in (("min", low), ("max", high)) if b is not None}
        if low == 2:
            return None  # min > max is defined from opset 12 on
        return g.emit("Clip", [v], **bounds)
    if low == 2 and g.opset < 12:
        return None
    judged = v.dtype == F32 or v.dtype == F64 and g.opset >= 12  # by ONNX Runtime
    if None in (low, high) and is_float(v.dtype) and not v.finite and not judged:
        return None
    bound = lambda b: None if b is None else g.scalar(b, v.dtype) if g.coin(0.8) else g.add_input([], v.dtype, True)
    return g.emit("Clip", [v, bound(low), bound(high)])


def within(v, dtype):
    """May the value be cast to the dtype? What does not fit is not defined."""
    if is_float(dtype) or dtype == BOOL:
        return True
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return v.finite and all(not a.size or (a.astype(np.float64).min() >= low and a.astype(np.float64).max() <= high)
                            for a in v.arrays)


@generates("Cast", weight=3)
def cast(g):
    v = g.pick()
    to = g.choice([F32, F32, F64, I64, I32, F16, BOOL, I8, U8, BFLOAT16, I16, U16, U32, U64])
    if (BFLOAT16 in (to, v.dtype) and g.opset < 13) or not within(v, to):
        return None
    # round_mode and saturate concern 8-bit floats; saturate may stand at any Cast.
    return g.emit("Cast", [v], to=onnx_type(to), saturate=g.choice([None, None, 0, 1]) if g.opset >= 19 else None)


@generates("CastLike")
def cast_like(g):
    v = g.pick(tuple(d for d in DTYPES if d != BFLOAT16))
    like = g.pick(tuple(d for d in DTYPES if d != BFLOAT16))
    if within(v, like.dtype):
        g.emit("CastLike", [v, like])


COMPARISONS = ("Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual")


@generates(*COMPARISONS, weight=2)
def compare(g):
    v = g.pick(NUMBERS + (U8, I8, BFLOAT16), test=lambda v: v.exact)
    op = g.choice(COMPARISONS)
    g.emit(op, [v, g.partner(v)])


@generates("Equal", "And", "Or", "Xor", "Not", weight=2)
def logic(g):
    v = g.pick((BOOL,))
    op = g.choice(["Equal", "And", "Or", "Xor", "Not"])
    g.emit(op, [v] if op == "Not" else [v, g.partner(v)])


@generates("Where", weight=3)
def where(g):
    """Among the operands often such as hide masked scores."""
    v = g.pick(NUMBERS + (BFLOAT16, U8, BOOL))
    def fits(c):
        return all(all(x == y or x == 1 or y == 1 for x, y in zip(a.shape[::-1], b.shape[::-1]))
                   for a, b in zip(v.arrays, c.arrays))
    c = g.pick((BOOL,), test=fits, make=lambda: [d if isinstance(d, int) else 1 for d in v.dims()])
    other = g.partner(v)
    if is_float(v.dtype) and g.coin(0.3):
        other = g.scalar(g.choice([-1e4, -np.inf, 0.0, -3e38 if v.dtype in (F32, F64) else -6e4]), v.dtype)
    g.emit("Where", [c, v, other] if g.coin() else [c, other, v])


@generates("IsNaN", "IsInf")
def tests_of_floats(g):
    if g.coin():
        return g.emit("IsNaN", [g.pick((F32, F64, F16))])
    return g.emit("IsInf", [g.pick((F32, F64))], detect_negative=g.choice([None, 0, 1]),
                  detect_positive=g.choice([None, 0, 1]))


@generates("BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot")
def bits(g):
    op = g.choice(["BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"])
    g.schema(op)
    if op == "BitShift":
        v = g.pick(UNSIGNED)
        by = g.constant(g.rng.integers(0, 8, [d if isinstance(d, int) else 1 for d in v.dims()][-1:]), v.dtype)
        return g.emit(op, [v, by], direction=g.choice(["LEFT", "RIGHT"]))
    v = g.pick(BITS)
    return g.emit(op, [v] if op == "BitwiseNot" else [v, g.partner(v)])


@generates("PRelu")
def prelu(g):
    v = g.pick(FLOATS, rank=(1, 2, 3, 4))
    dims = [d if isinstance(d, int) and g.coin() else 1 for d in v.dims()]
    g.emit("PRelu", [v, g.weight(dims[g.random.randrange(len(dims)):], v.dtype)])


@generates("Dropout")
def dropout(g):
    v = g.pick((F32, F64, F16))
    two = g.choice([1, 2]) if g.opset >= 10 else 1
    if g.opset < 12:
        return g.emit("Dropout", [v], two, ratio=g.choice([None, 0.3]))
    ratio = g.scalar(0.3) if g.coin() else None
    training = g.scalar(False, BOOL) if g.coin() else None
    return g.emit("Dropout", [v, ratio, training], two, seed=g.choice([None, 5]))


@generates("SwiGLU")
def swiglu(g):
    g.schema("SwiGLU")
    v = g.pick(FLOATS)
    g.emit("SwiGLU", [v, g.partner(v)], alpha=g.choice([None, 1.5]))


@generates("Constant", "Add")
def constant_node(g):
    """A constant as a node, of each kind of attribute, read by a sum."""
    import onnx
    kinds = {"value_float": 1.5, "value_floats": [1.0, 2.0, 3.0], "value_int": 3, "value_ints": [1, 2, 3],
             "value": None, "sparse_value": None} if g.opset >= 12 else {"value": None}
    if g.opset == 11:
        kinds = {"value": None, "sparse_value": None}
    kind = g.choice(kinds)
    value = kinds[kind]
    tensor = onnx.numpy_helper.from_array(np.asarray([1, 0, 2], np.float32))
    if kind == "value":
        value = tensor
    elif kind == "sparse_value":
        places = onnx.numpy_helper.from_array(np.asarray([0, 2], np.int64))
        values = onnx.numpy_helper.from_array(np.asarray([1.5, 2], np.float32))
        values.name = "s"
        value = onnx.helper.make_sparse_tensor(values, places, [3])
    c = g.emit("Constant", [], **{kind: value})
    if c.dtype == F32:
        g.emit("Add", [g.pick((F32,), test=lambda v: v.rank == 0 or v.dims()[-1] in (1, 3)), c])
