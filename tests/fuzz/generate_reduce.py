"""Operators that reduce, order or count: reductions, cumulative sums, softmax, arg-operators, TopK, and those whose
results' sizes depend on data (NonZero, Unique, Compress, NonMaxSuppression)."""
import numpy as np

from registry import generates
from tensors import BOOL, DTYPES, F16, F32, F64, I32, I64, I8, NUMBERS, U8, is_float, onnx_type

REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceL1", "ReduceSumSquare",
              "ReduceLogSumExp", "ReduceLogSum", "ReduceProd")


@generates(*REDUCTIONS, weight=5)
def reduce(g):
    op = g.choice(REDUCTIONS)
    dtypes = (F32, F32, F64, F16)
    if op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare", "ReduceProd"):
        dtypes += (I32, I64)  # what the others round to is not defined
    if op in ("ReduceMax", "ReduceMin") and g.opset >= 12:
        dtypes += (U8, I8)
    v = g.pick(dtypes, rank=(1, 2, 3, 4),
               test=lambda v: v.full and (op not in ("ReduceMax", "ReduceMin") or v.finite))
    axes = g.random.sample(range(v.rank), g.integer(1, v.rank))
    axes = [a - v.rank if g.coin(0.3) and g.opset >= 11 else a for a in axes]
    if op == "ReduceLogSum":
        v = g.emit("Add", [g.emit("Abs", [v]), g.scalar(1, v.dtype)])
    if op == "ReduceProd" and is_float(v.dtype):
        v = g.emit("Tanh", [v])
    keep = g.choice([None, 0, 1])
    as_input = g.opset >= 18 or (op == "ReduceSum" and g.opset >= 13)
    if not as_input:
        return g.emit(op, [v], axes=axes if g.coin(0.85) else None, keepdims=keep)
    if g.coin(0.15):
        no_axes = g.ints() if g.coin() else None
        return g.emit(op, [v, no_axes], keepdims=keep, noop_with_empty_axes=g.choice([None, 0, 1]))
    return g.emit(op, [v, g.given_ints(*axes)], keepdims=keep)


@generates("ArgMax", "ArgMin")
def arg(g):
    v = g.pick((F32, F64, I32, I8, U8), rank=(1, 2, 3, 4), test=lambda v: v.full and v.exact and v.finite)
    axis = g.axis(v)
    last = g.choice([None, 0, 1]) if g.opset >= 12 else None
    g.emit(g.choice(["ArgMax", "ArgMin"]), [v], axis=axis if axis or g.coin() else None,
           keepdims=g.choice([None, 0, 1]), select_last_index=last)


@generates("CumSum", "CumProd", weight=2)
def cumulative(g):
    op = g.choice(["CumSum", "CumProd", "CumSum"])
    v = g.pick((F32, F64, I32, I64), rank=(1, 2, 3))
    if op == "CumProd":
        g.schema(op)
        v = g.emit("Tanh", [v]) if is_float(v.dtype) else v
    axis = g.scalar(g.axis(v), g.choice([I64, I32]))
    if g.coin(0.2):
        axis.kind = "input"
    g.emit(op, [v, axis], exclusive=g.choice([None, 0, 1]),
           reverse=g.choice([None, 0, 1]))


@generates("Softmax", "LogSoftmax", "Hardmax", weight=3)
def softmax(g):
    op = g.choice(["Softmax", "Softmax", "LogSoftmax", "Hardmax"])
    v = g.pick((F32, F64, F16), rank=(1, 2, 3, 4), test=lambda v: v.full and (op != "Hardmax" or v.finite))
    axis = g.axis(v)
    g.emit(op, [v], axis=axis if v.rank > 1 and g.coin(0.8) else None)


@generates("TopK")
def top_k(g):
    v = g.pick((F32, F64, I64, I32), rank=(1, 2, 3), test=lambda v: v.full and v.exact and v.finite)
    axis = g.axis(v)
    k = g.integer(0 if g.coin(0.1) else 1, v.shortest(axis))
    if g.opset < 10:
        return g.emit("TopK", [v], 2, k=k, axis=axis) if k and axis >= 0 else None
    extra = {} if g.opset < 11 else {"largest": g.choice([None, 0, 1]), "sorted": g.choice([None, 1])}
    return g.emit("TopK", [v, g.given_ints(k)], 2, axis=axis if axis != -1 or g.coin() else None, **extra)


@generates("NonZero", "Compress", "Unique", weight=2)
def counted(g):
    op = g.choice(["NonZero", "Compress", "Unique"])
    if op == "NonZero":
        return g.emit(op, [g.pick((F32, I64, I32, BOOL, U8), rank=(1, 2, 3), test=lambda v: v.exact)])
    if op == "Unique":
        v = g.pick((F32, I64, F64), rank=(1, 2, 3), test=lambda v: v.full and v.exact and v.finite)
        return g.emit(op, [v], 4, unused=g.choice([(), (), (1,), (1, 2, 3)]) or (), sorted=g.choice([None, 0, 1]),
                      axis=g.choice([None, g.axis(v)]))
    v = g.pick(rank=(1, 2, 3), test=lambda v: v.full)
    axis = g.choice([None, g.axis(v)])
    length = v.shortest(axis) if axis is not None else min(a.size for a in v.arrays)
    size = g.integer(0, min(length, 6))
    condition = g.constant(g.rng.integers(0, 2, [size]), BOOL) if g.coin() else g.add_input([size], BOOL, True)
    return g.emit(op, [v, condition], axis=axis)


@generates("NonMaxSuppression")
def non_max_suppression(g):
    if g.opset < 10:
        return None
    batch, boxes, classes = g.integer(1, 2), g.choice([1, 5, 12]), g.integer(1, 3)
    corners = np.sort(g.rng.integers(0, 20, [batch, boxes, 2, 2]), axis=2).reshape(batch, boxes, 4) / 4 + (
        np.asarray([0, 0, 0.5, 0.5]))
    order = g.rng.permutation(batch * classes * boxes).reshape(batch, classes, boxes) / 64
    inputs = [g.constant(corners, F32), g.constant(order, F32)]
    most = g.choice([None, 0, 1, 5])
    if most is not None:
        inputs += [g.ints(most), g.constant([g.choice([0.3125, 0.7])], F32)]
        inputs += [g.constant([0.125], F32)] if g.coin() else []
    for v in inputs[:2]:
        v.kind = "input"
    return g.emit("NonMaxSuppression", inputs, center_point_box=g.choice([None, 0, 1]))


@generates("BlackmanWindow", "HammingWindow", "HannWindow")
def window(g):
    op = g.choice(["BlackmanWindow", "HammingWindow", "HannWindow"])
    g.schema(op)
    g.emit(op, [g.scalar(g.choice([1, 2, 8, 9]), g.choice([I64, I32]))], periodic=g.choice([None, 0, 1]),
           output_datatype=g.choice([None, onnx_type(F32), onnx_type(F16)]))


@generates("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def losses(g):
    if g.opset < 13:
        return None
    op = g.choice(["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
    classes, rest = g.integer(2, 5), g.choice([[], [3], [2, 3]])
    batch = g.choice([1, 4])
    scores = g.pick((F32,), test=lambda v: v.dims() == [batch, classes] + rest, make=[batch, classes] + rest)
    ignore = g.choice([None, 1, -1])
    targets = g.add_input([batch] + rest, g.choice([I64, I32]), True, -1 if ignore == -1 else 0, classes - 1)
    weights = g.positive([classes]) if g.coin() else None
    outputs = g.choice([1, 2]) if op[0] == "S" else 1
    g.emit(op, [scores, targets, weights], outputs, reduction=g.choice([None, "none", "sum", "mean"]),
           ignore_index=ignore)
