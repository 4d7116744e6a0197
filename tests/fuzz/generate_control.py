"""Control flow (If, Loop, Scan, nested and with captured values), sequences and optional values. Nodes of the latter
two stand in groups that begin and end with tensors."""
import numpy as np
from onnx import TensorProto, helper

from registry import generates
from tensors import BOOL, F32, F64, I32, I64, NUMBERS, onnx_type


def info(name, dtype, rank):
    return helper.make_tensor_value_info(name, onnx_type(dtype), [None] * rank)


def condition(g):
    """A truth value that data decide, or at times a constant."""
    if g.coin(0.1):
        return g.scalar(g.coin(), BOOL)
    if g.coin(0.3):
        return g.add_input([], BOOL, True)
    v = g.pick((F32, I64), test=lambda v: v.full and v.exact and v.finite)
    total = g.emit("ReduceMax", [v], keepdims=0)
    limit = g.scalar(g.choice([-9, 2, 3, 4]), v.dtype)
    return g.emit("Greater", [total, limit])


def branch_nodes(g, kind, x, out):
    """Nodes that make `out` of the captured value x."""
    node = helper.make_node
    if kind == "same":
        return [node("Identity", [x.name], [out])]
    if kind == "twice":
        return [node("Add", [x.name, x.name], [out])]
    if kind == "two":
        return [node("Relu", [x.name], [out + "r"]), node("Neg", [out + "r"], [out])]
    if kind == "longer":  # the result's first dim differs between the branches
        return [node("Concat", [x.name, x.name], [out], axis=0)]
    inner = lambda name, op: helper.make_graph([node(op, [x.name], [out + name])], name, [],
                                               [info(out + name, x.dtype, x.rank)])
    return [node("If", [kind], [out], then_branch=inner("t", "Neg"), else_branch=inner("e", "Abs"))]


@generates("If", weight=3)
def if_(g):
    c = condition(g)
    x = g.pick((F32, F32, I64, F64) if g.opset >= 14 else (F32,))
    tag, captured = g.fresh("b"), {x.name: x}
    two = g.coin(0.3)
    other = g.pick((F32,)) if two else None
    if other is not None:
        captured[other.name] = other
    def branch(name):
        kind = g.choice(["same", "twice", "two"] + (["longer"] if x.rank else []) + ["nested"])
        if kind == "nested":
            kind_name = condition(g)
            captured[kind_name.name] = kind_name
            kind = kind_name.name
        out = f"{tag}_{name}"
        nodes = branch_nodes(g, kind, x, out)
        outputs = [info(out, x.dtype, x.rank)]
        if other is not None:
            nodes.append(helper.make_node(g.choice(["Abs", "Identity", "Neg"]), [other.name], [out + "o"]))
            outputs.append(info(out + "o", F32, other.rank))
        return helper.make_graph(nodes, name, [], outputs)
    g.emit("If", [c], 2 if two else 1, captured=list(captured.values()), then_branch=branch("then"),
           else_branch=branch("else"))


@generates("Loop", weight=3)
def loop(g):
    """x = x + i for a number of trips that may be 0, stacking what it sees; a condition may end it."""
    x = g.pick((F32, F32, I64), rank=(0, 1, 2, 3), test=lambda v: v.largest() < 50)
    rows = g.integer(0, 2)
    trips = g.choice([1, 3] if rows else [0, 1, 3])  # ONNX Runtime gives no dims to rows that no trip made
    count = g.scalar(trips, I64)
    if g.coin(0.4):
        count = g.emit("Gather", [g.emit("Shape", [g.pick(rank=(1, 2, 3))]), g.scalar(0, I64)])
        if any(a > 20 or (a == 0 and rows) for a in count.arrays):
            return None
    tag = g.fresh("l")
    ends = g.coin(0.3)
    stop = [helper.make_node("Less", [tag + "i", "limit" + tag], [tag + "co"])] if ends else [
        helper.make_node("Identity", [tag + "c"], [tag + "co"])]
    captured = [x]
    if ends:
        limit = g.scalar(g.choice([0, 1, 7]), I64)
        stop = [helper.make_node("Less", [tag + "i", limit.name], [tag + "co"])]
        captured.append(limit)
    nodes = stop + [helper.make_node("Cast", [tag + "i"], [tag + "f"], to=onnx_type(x.dtype)),
                    helper.make_node("Add", [tag + "x", tag + "f"], [tag + "xo"]),
                    helper.make_node("Sub", [tag + "x", x.name], [tag + "s"])]
    outputs = [info(tag + "co", BOOL, 0), info(tag + "xo", x.dtype, x.rank)]
    for row in range(rows):
        nodes.append(helper.make_node("Identity", [tag + "s"], [f"{tag}o{row}"]))
        outputs.append(info(f"{tag}o{row}", x.dtype, x.rank))
    body = helper.make_graph(nodes, "body", [info(tag + "i", I64, 0), info(tag + "c", BOOL, 0),
                                             info(tag + "x", x.dtype, x.rank)], outputs)
    first = g.scalar(True, BOOL) if g.coin(0.3) or (ends and g.coin()) else None
    g.emit("Loop", [count, first, x], 1 + rows, captured=captured, body=body)


@generates("Scan", weight=2)
def scan(g):
    if g.opset < 9:
        return None
    x = g.pick((F32, F32, F64), rank=(1, 2, 3), test=lambda v: v.full and v.largest() < 100)
    axis = g.random.randrange(x.rank)
    tag, rest = g.fresh("s"), [d for i, d in enumerate(x.dims()) if i != axis]
    if not all(isinstance(d, int) for d in rest):
        return None
    two = g.coin(0.3)
    state = g.constant(np.zeros(rest), x.dtype)
    typed = lambda n: info(tag + n, x.dtype, len(rest))
    node = helper.make_node
    nodes = [node("Add", [tag + "a", tag + "e"], [tag + "b"]), node("Identity", [tag + "b"], [tag + "y"]),
             node("Add", [tag + "a", tag + "e2"], [tag + "z"]) if two else node("Neg", [tag + "a"], [tag + "z"])]
    given = [typed("a"), typed("e")] + ([typed("e2")] if two else [])
    body = helper.make_graph(nodes, "body", given, [typed("b"), typed("y"), typed("z")])
    scans = 2 if two else 1
    attributes = {"scan_input_axes": [g.choice([axis, axis - x.rank] if g.opset >= 11 else [axis])] * scans,
                  "scan_input_directions": [g.choice([0, 1]) for _ in range(scans)],
                  "scan_output_directions": [g.choice([0, 1]), 0],
                  "scan_output_axes": [g.integer(0, len(rest)), 0]}
    dropped = [k for k in attributes if g.coin(0.3) and (k != "scan_input_axes" or axis == 0)]
    g.emit("Scan", [state] + [x] * scans, 3, body=body, num_scan_inputs=scans,
           **{k: v for k, v in attributes.items() if k not in dropped})


def place(g, count):
    return g.scalar(g.integer(-count, count - 1), g.choice([I64, I32]))


@generates("SequenceConstruct", "SequenceAt", "SequenceInsert", "SequenceErase", "SequenceLength", "SequenceEmpty",
           "ConcatFromSequence", weight=2)
def sequence(g):
    if g.opset < 11:
        return None
    node = helper.make_node
    parts = [g.pick((F32,), rank=(1, 2, 3))]
    same = [v for v in g.values.values() if v.dtype == F32 and v.rank == parts[0].rank]
    parts += [g.choice(same) for _ in range(g.integer(1, 3))]
    tag, used, nodes, count = g.fresh("q"), list(parts), [], len(parts)
    if g.coin(0.7):
        nodes.append(node("SequenceConstruct", [p.name for p in parts], [tag]))
    else:
        nodes.append(node("SequenceEmpty", [], [tag + "0"], dtype=g.choice([TensorProto.FLOAT])))
        nodes.append(node("SequenceInsert", [tag + "0", parts[0].name], [tag]))
        used, count = parts[:1], 1
    current = tag
    for step in range(g.integer(0, 2)):
        made = f"{tag}s{step}"
        if g.coin() and count > 1:
            at = place(g, count) if g.coin(0.8) else None
            nodes.append(node("SequenceErase", [current] + ([at.name] if at else []), [made]))
            count -= 1
        else:
            at, new = place(g, count) if g.coin(0.8) else None, g.choice(parts)
            nodes.append(node("SequenceInsert", [current, new.name] + ([at.name] if at else []), [made]))
            used.append(new)
            count += 1
        used += [at] if at is not None else []
        current = made
    # (Of empty parts among others: disputes.py.)
    end = g.choice(["at", "length"] + ["concat"] * all(v.full for v in used if v.dtype == F32))
    if end == "at":
        at = place(g, count)
        used.append(at)
        nodes.append(node("SequenceAt", [current, at.name], [tag + "y"]))
    elif end == "length":
        nodes.append(node("SequenceLength", [current], [tag + "y"]))
    else:
        new_axis = g.choice([None, 0, 1])
        attributes = {} if new_axis is None else {"new_axis": new_axis}
        nodes.append(node("ConcatFromSequence", [current], [tag + "y"], axis=g.choice([0, -1]), **attributes))
    g.emit_group(nodes, used, [tag + "y"])


@generates("SplitToSequence", "SequenceAt", "SequenceMap", "ConcatFromSequence", weight=2)
def split_to_sequence(g):
    if g.opset < 11:
        return None
    node = helper.make_node
    v = g.pick((F32,), rank=(1, 2, 3), test=lambda v: v.full)
    axis, tag, used = g.axis(v), g.fresh("q"), [v]
    d = v.dims()[axis]
    given = []
    if g.coin(0.4) and isinstance(d, int):
        first = g.integer(0, d)
        lengths = g.ints(first, d - first)
        used, given = used + [lengths], [lengths.name]
    elif g.coin(0.4):
        length = g.scalar(g.integer(1, 3), I64)
        used, given = used + [length], [length.name]
    keep = {} if given else {"keepdims": g.choice([0, 1])}
    nodes = [node("SplitToSequence", [v.name] + given, [tag], axis=axis, **keep)]
    rank = v.rank - 1 if keep.get("keepdims") == 0 else v.rank
    current = tag
    if g.coin(0.4) and g.opset >= 17:
        body = helper.make_graph([node("Neg", [tag + "i"], [tag + "o"])], "body", [info(tag + "i", F32, rank)],
                                 [info(tag + "o", F32, rank)])
        nodes.append(node("SequenceMap", [current], [tag + "m"], body=body))
        current = tag + "m"
    if g.coin() and rank:
        # Parts of given lengths may be unlike along the axis that was split.
        nodes.append(node("ConcatFromSequence", [current], [tag + "y"], axis=axis if given else 0))
    else:
        at = g.scalar(0, I64)
        used.append(at)
        nodes.append(node("SequenceAt", [current, at.name], [tag + "y"]))
    g.emit_group(nodes, used, [tag + "y"])


@generates("Optional", "OptionalHasElement", "OptionalGetElement")
def optional(g):
    if g.opset < 15 or g.opset > 25:  # (onnx.reference's optional value, which is a list, has a dim more)
        return None
    v, tag, node = g.pick((F32, I64)), g.fresh("q"), helper.make_node
    nodes = [node("Optional", [v.name], [tag])]
    nodes.append(node(g.choice(["OptionalHasElement", "OptionalGetElement"]), [tag], [tag + "y"]))
    g.emit_group(nodes, [v], [tag + "y"])
