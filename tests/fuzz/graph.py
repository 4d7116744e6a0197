"""A graph while it grows: values under several assignments of the symbols at once, nodes that are evaluated as they are
added, and what becomes of them, a model with inputs and expected outputs (`Case`).

Each value is held as one array per assignment, so that a dim is symbolic where its lengths differ. N and M have the
same length in every assignment, which no compiler can know; P is 1 in one assignment and N in others, so that what
broadcasts differs from run to run. Generators (generate_*.py) read and add values through `Graph`; a node that an
oracle rejects, that jumps (oracle.py) or that grows too large is taken back by raising `Skip`."""
import dataclasses
import random
import re

import numpy as np
import onnx
from onnx import helper, numpy_helper

import oracle
from forms import in_graphs, neighbours, respelled, with_attributes
from tensors import (BFLOAT16, BOOL, DTYPES, F16, F32, F64, I32, I64, SMALL, U8, draw, is_float, is_whole, largest,
                     onnx_type)

OPSETS = (7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 17, 18, 18, 19, 20, 21, 21, 22, 23, 23, 23, 24, 24, 25, 26, 28)
SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 17, 1)
LARGEST = 20000  # elements of a value
# What ONNX Runtime has in ONNX's own domain, and ONNX has not.
ONNX_RUNTIMES = ("Affine", "Crop", "ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh",
                 "SimplifiedLayerNormalization")


class Skip(Exception):
    """This node cannot be made of what there is."""


@dataclasses.dataclass
class Value:
    """What a name stands for under each assignment: elements and their error bounds (oracle.py)."""
    name: str
    arrays: list
    bounds: list
    kind: str  # input, constant or node
    declared: list | None = None  # an input's dims as the model declares them: lengths and names

    dtype = property(lambda self: self.arrays[0].dtype)
    rank = property(lambda self: self.arrays[0].ndim)
    exact = property(lambda self: not any(np.any(b) for b in self.bounds))
    whole = property(lambda self: self.exact and all(is_whole(a) for a in self.arrays))
    finite = property(lambda self: all(np.all(np.isfinite(a.astype(np.float64))) for a in self.arrays))
    full = property(lambda self: all(a.size for a in self.arrays))

    def dims(self):
        """An int where it is the same under all assignments, else the tuple of lengths."""
        return [d[0] if len(set(d)) == 1 else d for d in zip(*(a.shape for a in self.arrays))]

    def shortest(self, axis):
        return min(a.shape[axis] for a in self.arrays)

    def largest(self):
        return max(largest(a) for a in self.arrays)


@dataclasses.dataclass
class Case:
    """A model, what it is given under each assignment, and what it must give: [{name: (array, bound)}]."""
    model: onnx.ModelProto
    inputs: list
    expected: list


class Graph:
    def __init__(self, seed, operators, max_nodes=14, wild=None, opset=None):
        """operators: [(generator, weight)]; wild: NaN and infinities among the inputs, a coin where None"""
        self.random, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.seed, self.operators = seed, operators
        self.opset = opset or self.random.choice(OPSETS)
        self.wild = self.coin() if wild is None else wild
        self.max_nodes, self.counter = max_nodes, 0
        self.values, self.nodes, self.captured = {}, [], {}
        self.rejections = []
        self.symbols = self.draw_symbols()

    def draw_symbols(self):
        """One dict of lengths per assignment."""
        n, s = self.random.choice([2, 3, 4, 8]), self.random.choice([2, 5, 9, 17])
        rows = [{"N": n, "M": n, "S": s, "P": n}, {"N": 1, "M": 1, "S": 1, "P": 1},
                {"N": self.random.choice([5, 6]), "S": self.random.choice([3, 7]), "P": 1}]
        if self.coin(0.3):
            rows.append({"N": 0, "S": self.random.choice([0, 2]), "P": 1})
        for row in rows:
            row["M"] = row["N"]
        return rows

    # ---- chances
    def coin(self, chance=0.5):
        return self.random.random() < chance

    def choice(self, options):
        options = list(options)
        if not options:
            raise Skip
        return self.random.choice(options)

    def integer(self, low, high):
        return self.random.randint(low, high)

    # ---- values
    def fresh(self, stem="v"):
        self.counter += 1
        return f"{stem}{self.counter}"

    def zeros(self):
        return [np.zeros(())] * len(self.symbols)

    def new_dims(self, rank, sizes=SIZES):
        dims = [self.choice(list(sizes) + ["N", "S", "N", "M", "P"]) for _ in range(rank)]
        if rank and self.coin(0.03):
            dims[self.random.randrange(rank)] = 0
        return dims

    def add_input(self, dims, dtype, whole=None, low=-4, high=4, wild=None):
        """dims: ints and names of symbols"""
        whole = self.coin() if whole is None else whole
        wild = self.wild and self.coin(0.7) if wild is None else wild
        arrays = [draw(self.rng, [row.get(d, d) for d in dims], dtype, whole, low, high, wild) for row in self.symbols]
        return self.keep(Value(self.fresh("x"), arrays, self.zeros(), "input"))

    def keep_input(self, arrays):
        """One that is given as it is, an array for each assignment."""
        return self.keep(Value(self.fresh("x"), arrays, self.zeros(), "input"))

    def keep(self, value):
        self.values[value.name] = value
        return value

    def constant(self, array, dtype=None):
        array = np.asarray(array, dtype)
        return self.keep(Value(self.fresh("c"), [array] * len(self.symbols), self.zeros(), "constant"))

    def ints(self, *values, dtype=I64):
        return self.constant(np.asarray(values, dtype))

    def given_ints(self, *values):
        """Integers that decide a shape: mostly a constant, at times an input."""
        value = self.ints(*values)
        if self.coin(0.2):
            value.kind = "input"
        return value

    def scalar(self, value, dtype=F32):
        return self.constant(np.asarray(value).astype(dtype))

    def weight(self, dims, dtype=F32, whole=None, low=-2, high=2, scale=None):
        """A parameter: mostly a constant, at times an input."""
        whole = self.coin(0.4) if whole is None else whole
        array = draw(self.rng, dims, dtype, whole, low, high)
        if not whole and is_float(array.dtype) and scale is None:
            array = (array.astype(np.float64) / np.sqrt(max(1, np.prod(dims[1:])))).astype(dtype)
        value = self.constant(array)
        if self.coin(0.15):
            value.kind = "input"
        return value

    def positive(self, dims, dtype=F32):
        return self.constant((np.abs(self.rng.standard_normal(dims)) + 0.5).astype(dtype))

    def pick(self, dtypes=DTYPES, rank=None, test=lambda v: True, make=None, constants=False, **options):
        """A value that fits, later ones more often; else a new input of the dims that `make` gives (rank: an int or a
        collection). whole, low, high of options are the new input's."""
        ranks = (rank,) if isinstance(rank, int) else rank
        found = [v for v in self.values.values() if (v.kind != "constant" or constants) and v.dtype in dtypes
                 and (ranks is None or v.rank in ranks) and test(v)]
        if found and self.coin(0.9):
            return self.choice(found[-6:]) if self.coin(0.6) else self.choice(found)
        if make is None:
            for _ in range(3):
                size = self.choice(ranks if ranks is not None else (0, 1, 2, 3, 4))
                value = self.add_input(self.new_dims(size), self.favoured(dtypes), **options)
                if test(value):
                    return value
                del self.values[value.name]
            raise Skip
        value = self.add_input(make() if callable(make) else make, self.favoured(dtypes), **options)
        if not test(value):
            del self.values[value.name]
            raise Skip
        return value

    def favoured(self, dtypes):
        """float32 is what most models are made of."""
        return F32 if F32 in dtypes and self.coin(0.6) else self.choice(dtypes)

    def partner(self, v, constants=True):
        """A value of v's dtype that broadcasts with it."""
        def fits(other):
            return other.dtype == v.dtype and all(broadcasts(a.shape, b.shape) for a, b in zip(v.arrays, other.arrays))
        found = [o for o in self.values.values() if fits(o) and (constants or o.kind != "constant")]
        if found and self.coin(0.6):
            return self.choice(found)
        dims = [d if isinstance(d, int) and self.coin(0.6) else 1 for d in v.dims()]
        dims = dims[self.random.randrange(len(dims) + 1):]
        if self.coin(0.3):
            return self.add_input(dims, v.dtype, v.whole)
        return self.constant(draw(self.rng, dims, v.dtype, v.whole, -3, 3))

    def axis(self, v, test=lambda axis: True):
        axis = self.choice(a for a in range(v.rank) if test(a))
        return axis - v.rank if self.coin(0.4) and self.opset >= 11 else axis

    # ---- nodes
    def schema(self, op):
        """Of an operator of ONNX's own domain; all others stay as they are."""
        if op.startswith(tuple(domain + "." for domain in oracle.DOMAINS)) or op in ONNX_RUNTIMES:
            return None
        try:
            return onnx.defs.get_schema(op, self.opset)
        except onnx.defs.SchemaError as error:
            raise Skip from error

    def emit(self, op, inputs, results=1, captured=(), unused=(), **attributes):
        """inputs: Values, or None for one left out; unused: places of outputs that get no name. Gives the outputs."""
        schema = self.schema(op)
        if schema is not None and schema.deprecated:
            raise Skip
        domain, _, op_type = op.rpartition(".")
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        names = [v.name if v is not None else "" for v in inputs]
        outputs = ["" if i in unused else self.fresh() for i in range(results)]
        attributes = {k: v for k, v in attributes.items() if v is not None}
        proto = helper.make_node(op_type, names, outputs, name=f"n{len(self.nodes)}_{op_type}", domain=domain,
                                 **attributes)
        used = {v.name: v for v in [*inputs, *captured] if v is not None}
        made = self.evaluate([proto], used, [name for name in outputs if name])
        self.add(proto, used, made)
        return made[0] if results == 1 else made

    def emit_group(self, nodes, inputs, outputs):
        """Nodes that pass what is no tensor between them; all that goes in and comes out is tensors."""
        for node in nodes:
            if self.schema(node.op_type).deprecated:
                raise Skip
        used = {v.name: v for v in inputs}
        for value in self.evaluate(nodes, used, outputs):
            self.values[value.name] = value
        for node in nodes:
            self.nodes.append(node)
            self.captured[node.output[0]] = []

    def evaluate(self, nodes, used, outputs):
        arrays = [{name: v.arrays[i] for name, v in used.items()} for i in range(len(self.symbols))]
        bounds = [{name: v.bounds[i] for name, v in used.items()} for i in range(len(self.symbols))]
        try:
            outcome = oracle.evaluate(nodes, outputs, arrays, bounds, self.opset, self.rng)
        except oracle.Unstable as error:
            raise Skip from error
        except oracle.Rejected as error:
            self.rejections.append(f"{nodes[0].op_type}: {error}")
            raise Skip from error
        made = [Value(name, [r[name] for r, _ in outcome], [b[name] for _, b in outcome], "node")
                for name in outputs]
        if not all(self.fits(v) for v in made):
            raise Skip
        return made

    def fits(self, v):
        if v.dtype not in DTYPES + SMALL or v.rank > 6 or any(a.size > LARGEST or a.ndim != v.rank for a in v.arrays):
            return False
        limit = {F16: 2000.0}.get(v.dtype, 1e6) if is_float(v.dtype) else 2.0**31
        return (self.wild and is_float(v.dtype) or v.finite) and v.largest() <= limit

    def add(self, proto, used, made):
        for value in made:
            self.values[value.name] = value
        self.nodes.append(proto)
        self.captured[proto.output[0] or proto.output[-1]] = [n for n in used if n not in proto.input]

    def grow(self):
        """Adds nodes until there are enough; each generator is undone as a whole where it skips."""
        dtypes = [F32] * 8 + [F64, F16, I64, I32, BOOL, BFLOAT16, U8]
        for _ in range(self.integer(1, 3)):
            self.add_input(self.new_dims(self.choice([0, 1, 2, 2, 3, 3, 4, 4, 5])), self.choice(dtypes))
        wanted, generators = self.integer(2, self.max_nodes), [f for f, _ in self.operators]
        weights = [w for _, w in self.operators]
        for _ in range(6 * wanted):
            if len(self.nodes) >= wanted:
                break
            self.attempt(self.random.choices(generators, weights)[0])
        if not self.nodes:
            raise Skip

    def attempt(self, generator):
        values, nodes = dict(self.values), len(self.nodes)
        try:
            generator(self)
            return True
        except Skip:
            self.values = values
            del self.nodes[nodes:]
            return False

    # ---- the whole
    def reads(self, proto):
        """The names that a node reads, those of its subgraphs included."""
        return [n for n in proto.input if n] + self.captured[proto.output[0] or proto.output[-1]]

    def choose_outputs(self):
        """What nobody reads, some of what is read, at times an input or a constant, or a value under two names."""
        made = [v.name for v in self.values.values() if v.kind == "node"]
        read = {name for node in self.nodes for name in self.reads(node)}
        outputs = [n for n in made if n not in read] + [n for n in made if n in read and self.coin(0.15)]
        if self.coin(0.1):
            outputs.append(self.choice(self.values))
        if self.coin(0.1) and self.opset >= 7:
            source = self.values[self.choice(outputs)]
            for _ in range(2):
                outputs.append(self.emit("Identity", [source]).name)
        return list(dict.fromkeys(outputs))

    def case(self, outputs, nodes=None, functions=True):
        return build_case(self, self.nodes if nodes is None else nodes, outputs, functions)


def broadcasts(a, b):
    return all(x == y or x == 1 or y == 1 for x, y in zip(reversed(a), reversed(b)))


def dim_names(graph, value):
    """The dims of an input as the model declares them: lengths and names, of N and M by chance."""
    if value.declared is None:
        symbols = {tuple(row[s] for row in graph.symbols): s for s in ("S", "P", "N")}
        names = [d if isinstance(d, int) else symbols.get(d, "d_" + "_".join(map(str, d))) for d in value.dims()]
        value.declared = ["M" if n == "N" and graph.random.random() < 0.3 else n for n in names]
    return value.declared


def value_info(value, dims):
    return helper.make_tensor_value_info(value.name, onnx_type(value.dtype), dims)


def build_case(graph, nodes, outputs, functions=True):
    """The model of these nodes; what they read and no node makes is an input, or a constant where it was one."""
    made = {name for node in nodes for name in node.output}
    wanted = [name for node in nodes for name in graph.reads(node)] + list(outputs)
    read = [graph.values[name] for name in dict.fromkeys(wanted) if name not in made]
    if len(nodes) == len(graph.nodes):  # inputs that nothing reads stay
        read += [v for v in graph.values.values() if v.kind == "input" and v not in read]
    protos, bodies, needs = list(nodes), [], []
    rng = random.Random(graph.seed)
    if functions and graph.seed % 5 == 0:
        protos, bodies = with_functions(graph, protos, outputs, rng)
    elif functions and graph.seed % 5 in (1, 2):
        protos, needs = in_graphs(graph, protos, outputs, graph.reads, rng)
    count = len(graph.symbols)
    read += [Value(name, [array] * count, graph.zeros(), "input" if is_input else "constant")
             for name, array, is_input in needs]
    inputs = [v for v in read if v.kind != "constant"]
    infos = [value_info(v, dim_names(graph, v)) for v in inputs]
    # A result is declared with its dtype and rank, or by its name alone.
    declared = [value_info(graph.values[n], [None] * graph.values[n].rank) if graph.seed % 3 else
                onnx.ValueInfoProto(name=n) for n in outputs]
    proto = helper.make_graph(protos, f"fuzz_{graph.seed}", infos, declared,
                              initializer=[numpy_helper.from_array(v.arrays[0], v.name)
                                           for v in read if v.kind == "constant"])
    given = [{v.name: v.arrays[i] for v in inputs} for i in range(count)]
    expected = [{n: (graph.values[n].arrays[i], graph.values[n].bounds[i]) for n in outputs} for i in range(count)]
    model = oracle.make_model(proto, graph.opset, bodies)
    if functions:
        given, expected = respelled(model, given, expected, graph, rng)
    return Case(model, given, expected)


def with_functions(graph, nodes, outputs, rng):
    """One to three neighbours among the nodes become a call of a function of the model, which may call another one."""
    bodies = []
    reads = lambda node: list(node.input) if node.domain == "local" else graph.reads(node)
    for index in range(1 + graph.seed % 2):
        found = neighbours(nodes, rng, reads, outputs, lambda node: node.domain in ("", "local"), most=3)
        if found is None or any("" in node.output for node in found[1]):
            continue
        start, group, gives = found
        inside = {name for node in group for name in node.output}
        read = list(dict.fromkeys(n for node in group for n in reads(node) if n not in inside))
        name, imports = f"body{index}", [helper.make_opsetid("", graph.opset)]
        if any(node.domain for node in group):
            imports.append(helper.make_opsetid("local", 1))
        bodies.append(helper.make_function("local", name, read, gives, group, imports))
        nodes = nodes[:start] + [helper.make_node(name, read, gives, domain="local")] + nodes[start + len(group):]
        if graph.seed % 3 == 0:
            with_attributes(bodies[-1], nodes[start], graph.opset >= 19, rng)
    return nodes, bodies


def message_kind(text):
    """A message without the names and numbers that differ from graph to graph."""
    return re.sub(r"\b(n\d+_|[vxc]\d+\b)|\d+", "#", text)
