"""Makes a failing case smaller while it fails in the same way: fewer outputs and nodes, nodes replaced by what they
read, attributes and optional inputs dropped, fewer assignments of the symbols, shorter dims.

It works on a model and its inputs alone, so that a kept case (--keep) can be made smaller later. The values and error
bounds of each trial are computed anew, node by node, as when a graph grows; a trial that an oracle rejects is none."""
import random
import re
import time

import numpy as np
import onnx
import onnx.inliner
import onnx.printer
from onnx import numpy_helper

import oracle
from graph import Case, Graph, Skip, Value, build_case
from tensors import read_safetensors, write_safetensors


def names_read(node):
    """The names that a node reads from its graph, those that its subgraphs capture included."""
    read = [n for n in node.input if n]
    for attribute in node.attribute:
        for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            made = {i.name for i in body.input} | {i.name for i in body.initializer}
            for inner in body.node:
                read += [n for n in names_read(inner) if n not in made]
                made |= set(inner.output)
            read += [o.name for o in body.output if o.name not in made]
    return list(dict.fromkeys(read))


def objects_of(model):
    """The names of values that are sequences or optional values."""
    infos = onnx.shape_inference.infer_shapes(model).graph.value_info
    return {i.name for i in infos if i.type.WhichOneof("value") in ("sequence_type", "optional_type")}


def groups_of(nodes, objects):
    """Nodes by themselves, and nodes that pass such objects to their neighbours as one group."""
    groups = []
    for node in nodes:
        if groups and objects & set(names_read(node)) & {name for n in groups[-1] for name in n.output}:
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups


def declared_dims(info):
    return [d.dim_param or d.dim_value for d in info.type.tensor_type.shape.dim]


def without_numbers(text):
    """A model's text, its long constants shortened."""
    return re.sub(r"\{([^{}]{100})[^{}]*\}", r"{\1...}", text)


class Trial:
    """A case taken apart: groups of nodes, values that are given, names of outputs."""

    def __init__(self, groups, values, outputs, opset, seed=1):
        self.groups, self.values, self.outputs, self.opset, self.seed = groups, values, outputs, opset, seed
        self.made = {}  # all values, once case() has evaluated them

    @staticmethod
    def of_case(case):
        model = onnx.inliner.inline_local_functions(case.model) if case.model.functions else case.model
        graph, count = model.graph, len(case.inputs)
        zeros = [np.zeros(())] * count
        values = {i.name: Value(i.name, [given[i.name] for given in case.inputs], zeros, "input", declared_dims(i))
                  for i in graph.input if i.name in case.inputs[0]}
        for tensor in graph.initializer:
            values[tensor.name] = Value(tensor.name, [numpy_helper.to_array(tensor)] * count, zeros, "constant")
        return Trial(groups_of(graph.node, objects_of(model)), values, [o.name for o in graph.output],
                     model.opset_import[0].version)

    def changed(self, **changes):
        known = {k: getattr(self, k) for k in ("groups", "values", "outputs", "opset", "seed")}
        return Trial(**{**known, **changes})

    def live(self):
        """Without groups that no output needs, and without values that these do not read."""
        needed, kept = set(self.outputs), []
        for group in reversed(self.groups):
            if needed & {name for node in group for name in node.output}:
                kept.insert(0, group)
                needed |= {name for node in group for name in names_read(node)}
        values = {n: v for n, v in self.values.items() if n in needed}
        return self.changed(groups=kept, values=values or dict(list(self.values.items())[:1]))

    def case(self):
        """Evaluates everything; None where an oracle does not."""
        count = len(next(iter(self.values.values())).arrays) if self.values else 1
        graph = Graph.__new__(Graph)
        graph.symbols, graph.opset, graph.seed = [{}] * count, self.opset, self.seed
        graph.values, graph.nodes, graph.captured = dict(self.values), [], {}
        graph.random, graph.rng = random.Random(0), np.random.default_rng(0)
        graph.wild, graph.rejections = True, []
        try:
            for group in self.groups:
                inside = {name for node in group for name in node.output}
                used = {n: graph.values[n] for node in group for n in names_read(node) if n not in inside}
                passed = {n for node in group for n in names_read(node)} if len(group) > 1 else set()
                outputs = [n for node in group for n in node.output if n and n not in passed]
                for value in graph.evaluate(group, used, outputs):
                    graph.values[value.name] = value
                for node in group:
                    graph.nodes.append(node)
                    graph.captured[node.output[0] or node.output[-1]] = [
                        n for n in names_read(node) if n not in node.input]
            if not all(name in graph.values for name in self.outputs):
                return None
            self.made = graph.values
            return build_case(graph, graph.nodes, self.outputs, functions=False)
        except (Skip, KeyError):
            return None


class Minimiser:
    """fails(case) says whether a case fails in the way that is looked for."""

    def __init__(self, case, fails, seconds=120):
        self.fails, self.end = fails, time.time() + seconds
        self.trial, self.best = None, case
        first = Trial.of_case(case)
        # Where no oracle evaluates some part by itself, another one may hold what differs.
        (self.accept(first) or self.accept(first, all_values=True)
         or any(self.accept(first.changed(outputs=[name])) for name in first.outputs))

    def accept(self, trial, all_values=False):
        """Goes on from the trial if it fails in the same way."""
        if time.time() > self.end:
            return False
        trial = trial if all_values else trial.live()
        case = trial.case() if trial.groups else None
        if case is None or not self.fails(case):
            return False
        self.trial, self.best = trial, case
        return True

    def run(self):
        if self.trial is None:
            return self.best
        shrunk = True
        while shrunk and time.time() < self.end:
            shrunk = False
            for step in (self.outputs, self.cut, self.bypass, self.attributes, self.inputs, self.dims,
                         self.assignments):
                shrunk |= step()
        return self.best

    def outputs(self):
        shrunk = False
        for name in list(self.trial.outputs):
            if len(self.trial.outputs) > 1 and self.accept(self.trial.changed(outputs=[name])):
                return True
        for name in list(self.trial.outputs):
            rest = [o for o in self.trial.outputs if o != name]
            shrunk |= bool(rest) and self.accept(self.trial.changed(outputs=rest))
        return shrunk

    def assignments(self):
        for i in range(len(next(iter(self.trial.values.values())).arrays) if self.trial.values else 0):
            values = {n: Value(n, [v.arrays[i]], [v.bounds[i]], v.kind, v.declared)
                      for n, v in self.trial.values.items()}
            if len(next(iter(self.trial.values.values())).arrays) > 1 and self.accept(
                    self.trial.changed(values=values)):
                return True
        return False

    def cut(self):
        """A group goes, and what it made is given; halves of the graph first."""
        shrunk, size = False, max(1, len(self.trial.groups) // 2)
        while size:
            at = 0
            while at < len(self.trial.groups) and len(self.trial.groups) > 1:
                trial = self.trial
                gone, kept = trial.groups[at:at + size], trial.groups[:at] + trial.groups[at + size:]
                read = {n for group in kept for node in group for n in names_read(node)}
                names = [n for group in gone for node in group for n in node.output if n in read and n in trial.made]
                given = {n: Value(n, trial.made[n].arrays, [np.zeros(())] * len(trial.made[n].arrays), "input",
                                  self.dims_of(trial.made[n])) for n in names}
                left = [o for o in trial.outputs if any(o in node.output for group in kept for node in group)]
                smaller = kept and left and self.accept(
                    trial.changed(groups=kept, values={**trial.values, **given}, outputs=left))
                shrunk |= bool(smaller)
                at += 0 if smaller else size
            size //= 2
        return shrunk

    def dims_of(self, value):
        """A made value's dims, by the names that inputs of the same lengths have."""
        known = {d: name for v in self.trial.values.values() if v.declared for d, name in zip(v.dims(), v.declared)}
        return [d if isinstance(d, int) else known.get(d, "d_" + "_".join(map(str, d))) for d in value.dims()]

    def bypass(self):
        """Readers of a node read its input instead."""
        shrunk = False
        for at in reversed(range(len(self.trial.groups))):
            if at >= len(self.trial.groups) or len(self.trial.groups[at]) > 1:
                continue
            node = self.trial.groups[at][0]
            made = self.trial.made.get(node.output[0])
            for name in [n for n in node.input if n in self.trial.made and made is not None]:
                source = self.trial.made[name]
                if source.dtype != made.dtype or source.rank != made.rank or node.output[0] in self.trial.outputs:
                    continue
                groups = [[renamed(n, node.output[0], name) for n in group]
                          for i, group in enumerate(self.trial.groups) if i != at]
                if self.accept(self.trial.changed(groups=groups)):
                    shrunk = True
                    break
        return shrunk

    def each_node(self, change):
        """Tries what `change` yields of a node: other nodes in its place."""
        shrunk = False
        for at in range(len(self.trial.groups)):
            for place in range(len(self.trial.groups[at]) if at < len(self.trial.groups) else 0):
                for other in change(self.trial.groups[at][place]):
                    groups = [list(group) for group in self.trial.groups]
                    groups[at][place] = other
                    if self.accept(self.trial.changed(groups=groups)):
                        shrunk = True
                        break
                if at >= len(self.trial.groups) or place >= len(self.trial.groups[at]):
                    break
        return shrunk

    def attributes(self):
        def change(node):
            for i in range(len(node.attribute)):
                other = copy_of(node)
                del other.attribute[i]
                yield other
        return self.each_node(change)

    def inputs(self):
        def change(node):
            for i in range(1, len(node.input)):
                other = copy_of(node)
                if i == len(node.input) - 1:
                    del other.input[i]
                else:
                    other.input[i] = ""
                if node.input[i]:
                    yield other
        return self.each_node(change)

    def dims(self):
        """A length goes to 1, or to its half, in all that is given."""
        shrunk = False
        lengths = {a.shape[i] for v in self.trial.values.values() for a in v.arrays for i in range(a.ndim)}
        for length in sorted(lengths, reverse=True):
            for shorter in dict.fromkeys([1, 2, length // 2, length - 1]):
                if 0 < shorter < length and self.accept(self.trial.changed(values={
                        n: Value(n, [cut_to(a, length, shorter) for a in v.arrays], v.bounds, v.kind,
                                 [shorter if d == length else d for d in v.declared] if v.declared else None)
                        for n, v in self.trial.values.items()})):
                    shrunk = True
                    break
        return shrunk


def copy_of(node):
    other = onnx.NodeProto()
    other.CopyFrom(node)
    return other


def renamed(node, old, new):
    other = copy_of(node)
    for i, name in enumerate(other.input):
        if name == old:
            other.input[i] = new
    return other


def cut_to(array, length, shorter):
    """Dims of that length become shorter; lengths that stand in small tables of integers, too."""
    places = tuple(slice(0, shorter) if d == length else slice(None) for d in array.shape)
    array = array[places]
    if array.dtype.kind == "i" and array.ndim == 1 and array.size <= 8:
        array = np.where(array == length, shorter, array).astype(array.dtype)
    return array


def save_case(directory, case, state, detail):
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("inputs.*.safetensors"):
        old.unlink()
    onnx.save(case.model, directory / "model.onnx")
    for i, inputs in enumerate(case.inputs):
        write_safetensors(directory / f"inputs.{i}.safetensors", inputs)
    (directory / "what.txt").write_text(f"{state}: {detail}\n{without_numbers(onnx.printer.to_text(case.model))}\n")


def load_case(directory):
    model = onnx.load(directory / "model.onnx")
    inputs = [read_safetensors(path) for path in sorted(directory.glob("inputs.*.safetensors"))]
    case = Trial.of_case(Case(model, inputs, [])).case()
    if case is None:
        raise SystemExit(f"{directory}: no oracle evaluates this model")
    case.model = model
    return case
