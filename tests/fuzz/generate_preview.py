"""ONNX's preview domains: FlexAttention with graphs that change its scores, and the optimizers of training; attention
by a state instead of keys and values."""
import numpy as np
from onnx import helper, numpy_helper

from graph import Skip
from oracle import MICROSOFT, PREVIEW, TRAINING
from registry import generates
from tensors import BFLOAT16, F16, F32, F64, I64, onnx_type

LINEAR = "LinearAttention"


def linear_attention_of(g, name, dtypes):
    dtype = g.choice(dtypes)
    heads, group = g.choice([1, 2, 3]), g.choice([1, 1, 2, 3])
    depth, width = g.choice([1, 3, 4, 8]), g.choice([1, 2, 5, 8, 16, 33])
    batch, steps = g.choice([1, 2, "N"]), g.choice([1, 3, "S"])
    rule = g.choice([None, "linear", "gated", "delta", "gated_delta"])
    gated, corrected = rule in (None, "gated", "gated_delta"), rule in (None, "delta", "gated_delta")

    def operand(columns, scale=0.5, shift=0.0):
        v = g.add_input([batch, steps, columns], dtype, False, wild=False)
        v.arrays = [(np.tanh(a.astype(np.float64)) * scale + shift).astype(dtype) for a in v.arrays]
        return v
    inputs = [operand(heads * group * depth), operand(heads * depth), operand(heads * width), None, None, None]
    if g.coin():
        inputs[3] = g.add_input([batch, heads, depth, width], dtype, False, wild=False)
    if gated:  # the logarithm of a factor below 1
        inputs[4] = operand(g.choice([heads, heads * depth]), 0.5, -0.5)
    if corrected:
        inputs[5] = operand(g.choice([heads, 1]), 0.25, 0.5)
    g.emit(name, inputs, 2, q_num_heads=heads * group, kv_num_heads=heads, update_rule=rule,
           scale=g.choice([None, 0.0, 0.75]), chunk_size=g.choice([None, 16]))


@generates(LINEAR)
def linear_attention(g):
    g.schema(LINEAR)
    linear_attention_of(g, LINEAR, (F32, F32, F16, BFLOAT16))


@generates(f"{MICROSOFT}.{LINEAR}")
def linear_attention_of_runtime(g):
    linear_attention_of(g, f"{MICROSOFT}.{LINEAR}", (F32,))


def modification(g, name, dtype):
    """A graph of one value [batch, heads, queries, keys], of its dims. (onnx.reference's graphs see nothing of what is
    around them.)"""
    kind = g.choice(["scale", "cap", "none"])
    x, y, number = name + "_x", name + "_y", name + "_c"
    info = [helper.make_tensor_value_info(n, onnx_type(dtype), [None] * 4) for n in (x, y)]
    half = [numpy_helper.from_array(np.array(0.5, dtype), number)]
    nodes = {"scale": [helper.make_node("Mul", [x, number], [y])],
             "cap": [helper.make_node("Tanh", [x], [name + "_t"]), helper.make_node("Mul", [name + "_t", number], [y])],
             "none": [helper.make_node("Identity", [x], [y])]}[kind]
    return helper.make_graph(nodes, name, info[:1], info[1:], half if kind != "none" else [])


@generates(PREVIEW + ".FlexAttention", weight=2)
def flex_attention(g):
    if g.opset < 13:
        raise Skip
    dtype = g.choice([F32, F32, F64])
    heads, group, depth, width = g.choice([1, 2]), g.choice([1, 1, 2]), g.choice([1, 4, 8]), g.choice([3, 8])
    batch, queries, keys = g.choice([1, "N"]), g.choice([1, 3, "S"]), g.choice([1, 4, "S"])
    inputs = [g.add_input(dims, dtype, False, wild=False)
              for dims in ([batch, heads * group, queries, depth], [batch, heads, keys, depth],
                           [batch, heads, keys, width])]
    if not all(v.full for v in inputs):
        raise Skip
    precision = g.choice([None, F64])
    used = precision or (F64 if dtype == F64 else F32)
    graphs = {name: modification(g, g.fresh(name), used) for name in ("score_mod", "prob_mod") if g.coin(0.6)}
    g.emit(PREVIEW + ".FlexAttention", inputs, scale=g.choice([None, 0.5]),
           softmax_precision=None if precision is None else int(onnx_type(precision)), **graphs)


def optimizer(g, name, lists, positive, **attributes):
    count = g.choice([1, 1, 2])
    dtype = g.choice([F32, F32, F64]) if count == 1 else F32  # (onnx.reference rounds several to float32)
    rate = g.scalar(g.choice([0.0, 0.125, 0.01]), g.choice([F32, dtype]))
    steps = g.constant(g.choice([0, 1, 7]), I64)
    for v in (rate, steps):
        v.kind = g.choice(["input", "input", "constant"])
    dims = [g.new_dims(g.choice([0, 1, 2, 3])) for _ in range(count)]
    inputs = [rate, steps]
    for number in range(lists):
        for one in dims:
            v = g.add_input(one, dtype, False, wild=False)
            if number in positive:
                v.arrays = [np.abs(a) + a.dtype.type(0.25) for a in v.arrays]
            inputs.append(v)
    g.emit(f"{TRAINING}.{name}", inputs, len(dims) * (lists - 1), **attributes)


@generates(TRAINING + ".Adagrad")
def adagrad(g):
    optimizer(g, "Adagrad", 3, (2,), decay_factor=g.choice([0.0, 0.25]), epsilon=g.choice([1e-6, 0.25]),
              norm_coefficient=g.choice([0.0, 0.5]))


@generates(TRAINING + ".Adam")
def adam(g):
    optimizer(g, "Adam", 4, (3,), alpha=g.choice([0.9, 0.5]), beta=g.choice([0.999, 0.75]),
              epsilon=g.choice([1e-6, 0.25]), norm_coefficient=g.choice([0.0, 0.5]),
              norm_coefficient_post=g.choice([0.0, 0.25]))


@generates(TRAINING + ".Momentum")
def momentum(g):
    optimizer(g, "Momentum", 3, (), alpha=g.choice([0.9, 0.0]), beta=g.choice([0.5, 1.0]),
              mode=g.choice(["standard", "nesterov"]), norm_coefficient=g.choice([0.0, 0.5]))
