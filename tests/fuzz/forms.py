"""The same graph in another form of file, which means the same: neighbours among its nodes are the body of a function of
the model, whose attributes the call may give, of a branch or of a loop whose trips are alike, or what they give passes a
sequence; constants are nodes, or defaults of inputs; what lies between is declared; names are those that no other
language takes. All of it is drawn by the graph's seed, and no oracle looks at it: results stay what they are."""
import itertools

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tensors import BFLOAT16, BOOL, DTYPES, F32, I64, IN_BYTES, onnx_type

ODD = ("class", "R", "T", "x:0", "a/b.c", "for", "1", "_", "n n", "None", "é", "int64", "main", "lambda", "self.w[0]",
       "%3", "-x", "true", "I", "shape", "matched")
ODD_SYMBOLS = ("batch size", "n/2", "?x", "None_1", "class", "d-1x", "seq:len", "é", "unk__12", "floor(h)", "T", "x1")


# What ONNX has sequences of.
IN_SEQUENCES = [dtype for dtype in DTYPES if dtype != BFLOAT16]


# ---- what nodes stand in

def neighbours(nodes, rng, reads, outputs, is_usable, most=4):
    """(where they begin, some nodes beside each other, what others read of them); None where there is nothing to be had
    of them."""
    start = rng.randrange(len(nodes))
    group = list(itertools.takewhile(is_usable, nodes[start:start + rng.randint(1, most)]))
    later = {n for node in nodes if node not in group for n in reads(node)} | set(outputs)
    gives = [name for node in group for name in node.output if name in later]
    return (start, group, gives) if gives else None


def renamed(node, names):
    """A copy of the node, also of the graphs in it, which captures and gives values by other names."""
    copy = type(node)()
    copy.CopyFrom(node)
    def rename(part):
        for field in (part.input, part.output):
            field[:] = [names.get(n, n) for n in field]
        for attribute in part.attribute:
            for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                for inner in body.node:
                    rename(inner)
                for output in body.output:
                    output.name = names.get(output.name, output.name)
    rename(copy)
    return copy


def in_graphs(graph, nodes, outputs, reads, rng):
    """(nodes of which some stand in a branch or in a loop of one trip, what these are given: [(name, array, is it an
    input)])"""
    def is_tensors(node):
        return all(not n or n in graph.values for n in [*reads(node), *node.output])
    given = []
    for index in range(rng.choice([1, 1, 2])):
        found = neighbours(nodes, rng, reads, outputs, is_tensors)
        if found is None:
            continue
        start, group, gives = found
        tag = f"held{index}"
        names = {name: f"{tag}_{name}" for node in group for name in node.output if name}
        body, values = [renamed(node, names) for node in group], [graph.values[name] for name in gives]
        if any(v.dtype in IN_BYTES for v in values):
            continue
        typed = [typed_info(names[v.name], v) for v in values]
        zeros = [numpy_helper.from_array(np.zeros(other_dims(v, rng), v.dtype), f"{tag}_zero{i}")
                 for i, v in enumerate(values)]
        ways = [in_branch, in_branch, in_loop] + [in_rows] * (graph.opset >= 11)
        # (The dims of what a sequence holds are not known where the place is no constant.)
        if graph.opset >= 11 and all(v.dtype in IN_SEQUENCES and not may_be_shape(v) for v in values):
            ways.append(in_sequence)
        made, needs = rng.choice(ways)(tag, body, typed, values, gives, zeros, rng)
        inside = {name for part in group for name in part.output}
        captured = list(dict.fromkeys(n for part in group for n in reads(part) if n not in inside))
        for node in made:
            graph.captured[node.output[0]] = captured
        nodes, given = nodes[:start] + made + nodes[start + len(group):], given + needs
    return nodes, given


def typed_info(name, value, dims=None):
    return helper.make_tensor_value_info(name, onnx_type(value.dtype), [None] * value.rank if dims is None else dims)


def in_branch(tag, body, typed, values, gives, zeros, rng):
    is_then = rng.random() < 0.5
    other = [helper.make_node("Identity", [z.name], [f"{tag}_else{i}"]) for i, z in enumerate(zeros)]
    infos = [typed_info(f"{tag}_else{i}", v) for i, v in enumerate(values)]
    taken = helper.make_graph(body, f"{tag}_taken", [], typed)
    left = helper.make_graph(other, f"{tag}_left", [], infos, initializer=zeros)
    branches = {"then_branch": taken, "else_branch": left} if is_then else {"then_branch": left, "else_branch": taken}
    return ([helper.make_node("If", [f"{tag}_c"], gives, name=tag, **branches)],
            [(f"{tag}_c", np.asarray(is_then, BOOL), rng.random() < 0.8)])


def may_be_shape(value):
    return value.rank == 1 and value.dtype.kind == "i"


def other_dims(value, rng):
    """Of what stands in the value's place where it is not computed. Integers may be shapes: they keep their number."""
    same = [d if isinstance(d, int) else 1 for d in value.dims()]
    return same if rng.random() < 0.4 or may_be_shape(value) else [1] * value.rank


def scalar(name, dtype):
    return helper.make_tensor_value_info(name, dtype, [])


def in_loop(tag, body, typed, values, gives, zeros, rng):
    """By a count of trips, which all compute the same, or by a condition that the first trip ends."""
    counts = rng.random() < 0.6
    states = [typed_info(f"{tag}_s{i}", v) for i, v in enumerate(values)]
    ends = helper.make_node("Identity" if counts else "Not", [f"{tag}_go"], [f"{tag}_on"])
    graph = helper.make_graph([ends, *body], f"{tag}_body",
                              [scalar(f"{tag}_i", TensorProto.INT64), scalar(f"{tag}_go", TensorProto.BOOL), *states],
                              [scalar(f"{tag}_on", TensorProto.BOOL), *typed])
    count = f"{tag}_n" if counts else ""
    node = helper.make_node("Loop", [count, f"{tag}_c", *[z.name for z in zeros]], gives, name=tag, body=graph)
    given = [(f"{tag}_c", np.asarray(True, BOOL), rng.random() < 0.5),
             *[(z.name, numpy_helper.to_array(z), False) for z in zeros]]
    return [node], given + ([(count, np.asarray(rng.choice([1, 1, 2, 3]), I64), rng.random() < 0.5)] if counts else [])


def in_rows(tag, body, typed, values, gives, zeros, rng):
    """The last of the rows that a Loop or a Scan makes."""
    trips, is_scan = rng.choice([1, 2, 3]), rng.random() < 0.5
    rows = [f"{tag}_rows{i}" for i in range(len(gives))]
    picks = [helper.make_node("Gather", [row, f"{tag}_last"], [name], axis=0) for row, name in zip(rows, gives)]
    needs = [(f"{tag}_last", np.asarray(rng.choice([-1, trips - 1]), I64), False)]
    if is_scan:
        graph = helper.make_graph(body, f"{tag}_body", [scalar(f"{tag}_e", TensorProto.FLOAT)], typed)
        node = helper.make_node("Scan", [f"{tag}_x"], rows, name=tag, body=graph, num_scan_inputs=1)
        return [node, *picks], [*needs, (f"{tag}_x", np.zeros([trips], F32), rng.random() < 0.5)]
    on = helper.make_node("Identity", [f"{tag}_go"], [f"{tag}_on"])
    graph = helper.make_graph([on, *body], f"{tag}_body",
                              [scalar(f"{tag}_i", TensorProto.INT64), scalar(f"{tag}_go", TensorProto.BOOL)],
                              [scalar(f"{tag}_on", TensorProto.BOOL), *typed])
    node = helper.make_node("Loop", [f"{tag}_n", ""], rows, name=tag, body=graph)
    return [node, *picks], [*needs, (f"{tag}_n", np.asarray(trips, I64), rng.random() < 0.5)]


def in_sequence(tag, body, typed, values, gives, zeros, rng):
    """Each result passes a sequence of several."""
    nodes, needs = list(body), [(f"{tag}_at", np.asarray(rng.choice([0, -2]), I64), rng.random() < 0.3)]
    for i, (name, made, zero) in enumerate(zip(gives, typed, zeros)):
        if rng.random() < 0.5:
            nodes.append(helper.make_node("SequenceConstruct", [made.name, zero.name], [f"{tag}_q{i}"]))
        else:
            nodes.append(helper.make_node("SequenceEmpty", [], [f"{tag}_p{i}"], dtype=made.type.tensor_type.elem_type))
            nodes.append(helper.make_node("SequenceInsert", [f"{tag}_p{i}", zero.name], [f"{tag}_o{i}"]))
            nodes.append(helper.make_node("SequenceInsert", [f"{tag}_o{i}", made.name, f"{tag}_0"], [f"{tag}_q{i}"]))
        nodes.append(helper.make_node("SequenceAt", [f"{tag}_q{i}", f"{tag}_at"], [name]))
        needs.append((zero.name, numpy_helper.to_array(zero), False))
    return nodes, [*needs, (f"{tag}_0", np.asarray(0, I64), False)]


def with_attributes(body, call, has_defaults, rng):
    """Some attributes of the function's nodes become its own, given by the call or by default."""
    plain = (onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT, onnx.AttributeProto.INTS, onnx.AttributeProto.STRING,
             onnx.AttributeProto.FLOATS)
    for node in body.node:
        for attribute in node.attribute:
            if attribute.type not in plain or attribute.ref_attr_name or rng.random() < 0.4:
                continue
            own, kind, name = onnx.AttributeProto(), attribute.type, attribute.name
            own.CopyFrom(attribute)
            own.name = f"a{len(body.attribute) + len(body.attribute_proto)}_{name}"
            is_default = has_defaults and rng.random() < 0.4
            if is_default:
                body.attribute_proto.append(own)
            else:
                body.attribute.append(own.name)
            if not is_default or rng.random() < 0.5:
                call.attribute.append(own)
            attribute.Clear()
            attribute.name, attribute.type, attribute.ref_attr_name = name, kind, own.name


# ---- how a file says it

def respelled(model, inputs, expected, graph, rng):
    """Changes constants, declarations and names of the model; inputs and expected results by their names then."""
    if rng.random() < 0.4:
        declare(model, graph, rng)
    if rng.random() < 0.4:
        spell_constants(model, rng)
    if rng.random() < 0.25:
        inputs, expected = rename_all(model, inputs, expected, rng)
    return inputs, expected


def dims_of(graph, value, rng):
    symbols = {tuple(row[s] for row in graph.symbols): s for s in ("S", "P", "N")}
    dims = [d if isinstance(d, int) else symbols.get(d) for d in value.dims()]
    return [None if rng.random() < 0.2 else d for d in dims]


def declare(model, graph, rng):
    """Values between nodes, and results, with the dims that they have under all assignments."""
    taken = {o.name for o in model.graph.output} | {i.name for i in model.graph.input}
    made = [n for node in model.graph.node for n in node.output]
    for name in made:
        value = graph.values.get(name)
        if value is not None and name not in taken and rng.random() < 0.6:
            model.graph.value_info.append(typed_info(name, value, dims_of(graph, value, rng)))
    for output in model.graph.output:
        value = graph.values.get(output.name)
        if value is not None and output.name in made and rng.random() < 0.7:
            output.CopyFrom(typed_info(output.name, value, dims_of(graph, value, rng)))


TYPED = {TensorProto.FLOAT: "float_data", TensorProto.INT32: "int32_data", TensorProto.INT64: "int64_data",
         TensorProto.DOUBLE: "double_data", TensorProto.BOOL: "int32_data", TensorProto.INT8: "int32_data",
         TensorProto.UINT8: "int32_data", TensorProto.UINT64: "uint64_data", TensorProto.UINT32: "uint64_data"}


def spell_constants(model, rng):
    """Constants in typed fields instead of bytes, as nodes, or as defaults of inputs that nobody gives."""
    kept, nodes = [], []
    results = {o.name for o in model.graph.output}
    for tensor in model.graph.initializer:
        how = rng.choice(["bytes", "typed", "node", "default"])
        array = numpy_helper.to_array(tensor)
        if how == "typed" and tensor.data_type in TYPED:
            whole = array.astype(np.int64) if array.dtype.kind in "bi" else array
            getattr(tensor, TYPED[tensor.data_type]).extend(whole.reshape(-1).tolist())
            tensor.ClearField("raw_data")
        if how == "default" and tensor.name not in results:
            model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
        if how != "node":
            kept.append(tensor)
            continue
        attributes = {"value": tensor}
        opset = next(o.version for o in model.opset_import if o.domain == "")
        kind = {TensorProto.FLOAT: "float", TensorProto.INT64: "int"}.get(tensor.data_type)
        if kind and array.ndim <= 1 and array.size and opset >= 12 and rng.random() < 0.7:
            plain = array.tolist()
            attributes = {f"value_{kind}" + ("s" if array.ndim else ""): plain}
        nodes.append(helper.make_node("Constant", [], [tensor.name], **attributes))
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    rest = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(nodes + rest)


def rename_all(model, inputs, expected, rng):
    """Names of values, nodes and symbols that are words elsewhere, or no identifiers."""
    used = {n for node in model.graph.node for n in [*node.input, *node.output]} | {
        i.name for field in (model.graph.input, model.graph.output, model.graph.initializer) for i in field}
    odd = rng.sample(ODD, len(ODD))
    names = {name: f"{odd[i % len(odd)]}{'' if i < len(odd) else i}" for i, name in enumerate(
        rng.sample(sorted(used - {""}), min(len(used - {""}), 12)))}
    if set(names.values()) & used:
        return inputs, expected
    nodes = [renamed(node, names) for node in model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    for node in model.graph.node:
        node.name = rng.choice([node.name, "", "same", node.op_type])
    symbols = dict(zip(("N", "M", "S", "P"), rng.sample(ODD_SYMBOLS, 4)))
    for field in (model.graph.input, model.graph.output, model.graph.value_info):
        for info in field:
            info.name = names.get(info.name, info.name)
            for dim in info.type.tensor_type.shape.dim:
                if dim.dim_param in symbols:
                    dim.dim_param = symbols[dim.dim_param]
    for tensor in model.graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    rename = lambda row: {names.get(n, n): value for n, value in row.items()}
    return [rename(row) for row in inputs], [rename(row) for row in expected]
