"""What `vm-compile --list-ops` says of ONNX's operators is true: the element types that it lists for each type
parameter of an operator are those that are taken, and all others that ONNX (or ONNX Runtime, of its own domain) allows
are refused.

usage: listed_ops.py BIN_DIR [--only REGEX] [--part N] [--compile] [--update]

An operator's forms are those of ONNX's own node cases and of the fuzzer's generators; each is asked for again with
other element types, by models of all of them for --check. A type is taken if any form with it is. --part N: every N-th
operator alone, from one on that the commit's hash chooses (all of them where INGOT_LONG_TESTS is set); --compile: what
is taken compiles, too. --update writes what was found into the table, compiler/importer/op_forms.def, where it keeps
the limits, and the list as it is built into OPERATORS.md. Exit code 1: the list or the page is false; 77 (skipped)
without numpy, onnx and onnxruntime."""
import argparse, collections, multiprocessing.pool, os, pathlib, pickle, re, sys, tempfile, warnings

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent / "fuzz"))
try:
    import numpy as np, onnx, onnxruntime
    from onnx import TensorProto, helper, numpy_helper
    from onnx.backend.test.loader import load_model_tests
    from onnxruntime.capi._pybind_state import get_all_operator_schema
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

import operators
from graph import ONNX_RUNTIMES, Graph, Skip
from graph_fuzz import commit_seed
from registry import GENERATORS
from tools import Tools

UNSUPPORTED = 8
ELEMENTS = {"float16": "FLOAT16", "bfloat16": "BFLOAT16", "float32": "FLOAT", "float64": "DOUBLE", "int8": "INT8",
            "int16": "INT16", "int32": "INT32", "int64": "INT64", "uint8": "UINT8", "uint16": "UINT16",
            "uint32": "UINT32", "uint64": "UINT64", "bool": "BOOL", "string": "STRING", "complex64": "COMPLEX64",
            "complex128": "COMPLEX128", "float8e4m3fn": "FLOAT8E4M3FN", "float8e4m3fnuz": "FLOAT8E4M3FNUZ",
            "float8e5m2": "FLOAT8E5M2", "float8e5m2fnuz": "FLOAT8E5M2FNUZ", "float8e8m0": "FLOAT8E8M0",
            "int2": "INT2", "uint2": "UINT2", "int4": "INT4", "uint4": "UINT4", "float4e2m1": "FLOAT4E2M1"}
IN_SCHEMAS = {"float": "float32", "double": "float64"}
# The names of sets that the list has, in the order in which they are tried.
SETS = {"floats": ["float16", "bfloat16", "float32", "float64"],
        "integers": ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"],
        "float8": ["float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0"],
        "packed": ["int2", "uint2", "int4", "uint4", "float4e2m1"]}
ORDER = list(ELEMENTS)
FORMS_PER_OPERATOR = 6
IMPORTER = pathlib.Path(__file__).resolve().parent.parent.parent / "compiler/importer"
TABLE, PAGE = IMPORTER / "op_forms.def", IMPORTER / "OPERATORS.md"


def shortened(names):
    """Element types as the list has them."""
    left, words = [n for n in ORDER if n in names], []
    for word, members in SETS.items():
        if all(m in left for m in members):
            words.append((ORDER.index(members[0]), word))
            left = [n for n in left if n not in members]
    return " ".join(w for _, w in sorted(words + [(ORDER.index(n), n) for n in left]))


def full_name(node):
    return ("" if node.domain in ("", "ai.onnx") else node.domain + ".") + node.op_type


class Schemas:
    def __init__(self):
        self.by_name = {}
        for schema in get_all_operator_schema():  # ONNX Runtime's own
            if schema.domain.startswith("com.microsoft") or schema.name in ONNX_RUNTIMES:
                self.keep(schema)
        for schema in onnx.defs.get_all_schemas_with_history():
            self.keep(schema)

    def keep(self, schema):
        name = full_name(onnx.NodeProto(op_type=schema.name, domain=schema.domain))
        if name not in self.by_name or schema.since_version >= self.by_name[name].since_version:
            self.by_name[name] = schema

    def parameters(self, name):
        """The element types that each type parameter of tensors allows."""
        schema, allowed = self.by_name[name], {}
        for constraint in schema.type_constraints:
            found = [re.fullmatch(r"tensor\((\w+)\)", text) for text in constraint.allowed_type_strs]
            types = [IN_SCHEMAS.get(m[1], m[1]) for m in found if m]
            if types:
                allowed[constraint.type_param_str] = [t for t in types if t in ELEMENTS]
        return allowed

    def of_inputs(self, node):
        """The type parameter of each input of a node (None: a fixed type)."""
        formal = self.by_name[full_name(node)].inputs
        result = []
        for i in range(len(node.input)):
            which = formal[min(i, len(formal) - 1)]
            text = getattr(which, "type_str", None) or getattr(which, "typeStr", None)
            result.append(text)
        return result


def node_case_forms():
    forms = collections.defaultdict(list)
    for case in load_model_tests(kind="node"):
        nodes = case.model.graph.node
        if len(nodes) == 1 and len(forms[full_name(nodes[0])]) < 8:
            forms[full_name(nodes[0])].append((case.model, case.data_sets[0][0]))
    return forms


def generated_forms(name):
    """Graphs of one node, as the fuzzer draws them."""
    forms = []
    for generator, made, _ in GENERATORS:
        if name not in made:
            continue
        for seed in range(60):
            graph = Graph(seed, [(generator, 1)], wild=False)
            if len(forms) >= FORMS_PER_OPERATOR:
                break
            try:
                if not graph.attempt(generator):
                    continue
            except Skip:
                continue
            node = next((n for n in graph.nodes if full_name(n) == name), None)
            if node is None or any(n and n not in graph.values for n in node.input):
                continue
            infos, values, arrays = [], [], []
            for given in dict.fromkeys(n for n in node.input if n):
                value = graph.values[given]
                kind = helper.np_dtype_to_tensor_dtype(value.dtype)
                if value.kind == "constant":
                    values.append(numpy_helper.from_array(np.ascontiguousarray(value.arrays[0]), given))
                else:
                    infos.append(helper.make_tensor_value_info(given, kind, value.arrays[0].shape))
            proto = helper.make_graph([node], "form", infos, [onnx.ValueInfoProto(name=n) for n in node.output if n],
                                      values)
            imports = [helper.make_opsetid("", graph.opset)]
            if node.domain not in ("", "ai.onnx"):
                imports.append(helper.make_opsetid(node.domain, 5 if node.domain == "ai.onnx.ml" else 1))
            forms.append((helper.make_model(proto, ir_version=11, opset_imports=imports), []))
    return forms


def is_plain(model):
    """Are all inputs tensors, and is there no graph inside?"""
    return all(i.type.HasField("tensor_type") for i in model.graph.input) and not any(
        a.HasField("g") for node in model.graph.node for a in node.attribute)


def written_forms(name):
    """Forms that neither the node cases nor the fuzzer have, by hand."""
    kinds = {"ai.onnx.ml.CategoryMapper": ([(TensorProto.STRING, ["N"])],
                                           {"cats_int64s": [1, 2], "cats_strings": ["a", "b"]}),
             "ai.onnx.ml.FeatureVectorizer": ([(TensorProto.FLOAT, ["N", 2]), (TensorProto.FLOAT, ["N", 3])],
                                              {"inputdimensions": [2, 3]})}
    bias, sequence, picture = [(TensorProto.FLOAT, dims) for dims in ([8], ["N", 3, 8], ["N", 3, 3, 8])]
    number, flags = (TensorProto.INT64, []), (TensorProto.BOOL, [])
    scores = (TensorProto.FLOAT, [1, 2, 3, 3])
    kinds |= {f"com.microsoft.{op}": form for op, form in {
        "BiasAdd": ([sequence, bias, sequence], {}), "BiasSplitGelu": ([sequence, bias], {}),
        "BiasDropout": ([sequence, bias, sequence, (TensorProto.FLOAT, []), flags], {}),
        "BiasSoftmax": ([sequence, bias], {"axis": 2, "is_inner_broadcast": 0}),
        "FusedMatMulActivation": ([sequence, (TensorProto.FLOAT, [8, 4])], {"activation": "Relu"}),
        "GatedRelativePositionBias": ([sequence, bias, scores, (TensorProto.FLOAT, [4, 8]), bias,
                                       (TensorProto.FLOAT, [1, 2, 1, 1])], {"num_heads": 2}),
        "RelativePositionBias": ([(TensorProto.FLOAT, [8, 2]), number, number], {"max_distance": 20}),
        "SwiGLU": ([sequence, sequence], {}),
        "TorchEmbedding": ([(TensorProto.FLOAT, [9, 4]), (TensorProto.INT64, ["N"])], {}),
        "GemmFastGelu": ([sequence, (TensorProto.FLOAT, [8, 4])], {}),
        "GroupNorm": ([picture, bias, bias], {"groups": 2, "activation": 0}),
        "SkipGroupNorm": ([picture, bias, bias, picture], {"groups": 2, "activation": 1})}.items()}
    first = (TensorProto.FLOAT, ["N", 2, 5, 6])
    kinds |= {op: ([first], form) for op, form in {
        "Affine": {}, "Crop": {"border": [1, 1, 1, 1]}, "ImageScaler": {"bias": [1.0, 2.0]},
        "ParametricSoftplus": {"alpha": 1.0, "beta": 2.0}, "Scale": {}, "ScaledTanh": {"alpha": 1.0, "beta": 2.0}}.items()}
    if name not in kinds:
        return []
    infos = [helper.make_tensor_value_info(f"x{i}", *kind) for i, kind in enumerate(kinds[name][0])]
    domain, _, op_type = name.rpartition(".")
    node = helper.make_node(op_type, [i.name for i in infos], ["y"], domain=domain, **kinds[name][1])
    graph = helper.make_graph([node], "form", infos, [onnx.ValueInfoProto(name="y")])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(domain, 1)] if domain else [helper.make_opsetid("", 9)]
    return [(helper.make_model(graph, ir_version=11, opset_imports=imports), [])]


def with_attribute(model, name, value):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    node = copy.graph.node[0]
    kept = [a for a in node.attribute if a.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])
    return copy


def bound(model, data):
    """The same model, its small inputs constants."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    values = {i.name: v for i, v in zip(model.graph.input, data)}
    kept = []
    for info in copy.graph.input:
        value = values.get(info.name)
        value = numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
        value = np.asarray(value) if isinstance(value, (np.ndarray, np.generic, int, float)) else None
        if value is not None and value.ndim <= 1:
            copy.graph.initializer.append(numpy_helper.from_array(value, info.name))
        else:
            kept.append(info)
    del copy.graph.input[:]
    copy.graph.input.extend(kept)
    return copy


def converted(tensor, element):
    """A constant of the same numbers; None where the element type has none of them."""
    try:
        array = numpy_helper.to_array(tensor)
        if element == "string" or array.dtype == object:
            array = array.astype(str).astype(object)
            return helper.make_tensor(tensor.name, TensorProto.STRING, tensor.dims, list(array.reshape(-1)))
        dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, ELEMENTS[element]))
        return numpy_helper.from_array(array.astype(np.float32).astype(dtype).reshape(tensor.dims), tensor.name)
    except Exception:
        return None


def with_elements(model, parameter, element, schemas, together):
    """The model with another element type of a type parameter; None: it has no such input. together: other parameters
    that had the same one change, too."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    node = copy.graph.node[0]
    names = {name for name, text in zip(node.input, schemas.of_inputs(node)) if text == parameter and name}
    if not names:
        return None
    if together:
        types = {i.name: i.type.tensor_type.elem_type for i in copy.graph.input}
        types |= {t.name: t.data_type for t in copy.graph.initializer}
        before = {types[name] for name in names}
        allowed = schemas.parameters(full_name(node))
        others = {name for name, text in zip(node.input, schemas.of_inputs(node))
                  if name and types[name] in before and element in allowed.get(text, [])}
        if others <= names:
            return None  # the same as without
        names |= others
    for info in copy.graph.input:
        if info.name in names:
            info.type.tensor_type.elem_type = getattr(TensorProto, ELEMENTS[element])
    for i, tensor in enumerate(copy.graph.initializer):
        if tensor.name in names:
            changed = converted(tensor, element)
            if changed is None:
                return None
            copy.graph.initializer[i].CopyFrom(changed)
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    del copy.graph.output[:]
    copy.graph.output.extend(outputs)
    return copy


class Prober:
    def __init__(self, bin_dir, compiles):
        self.tool, self.schemas = Tools(bin_dir, timeout=240, errors="replace"), Schemas()
        self.cases, self.compiles = node_case_forms(), compiles

    def is_taken(self, folder, model):
        onnx.save(model, folder / "m.onnx")
        if not self.compiles:
            return self.tool("vm-compile", "--check", folder / "m.onnx").returncode == 0
        return self.tool("vm-compile", "-O0", folder / "m.onnx", "-o", folder / "m.ingot").returncode == 0

    def joined(self, probes):
        """One model of all probes, whose names get their number."""
        nodes, inputs, outputs, values = [], [], [], []
        for i, model in probes.items():
            rename = lambda name: f"p{i}_{name}" if name else ""
            node = onnx.NodeProto()
            node.CopyFrom(model.graph.node[0])
            node.name = f"probe{i}."
            node.input[:] = [rename(n) for n in node.input]
            node.output[:] = [rename(n) for n in node.output]
            nodes.append(node)
            for info in model.graph.input:
                inputs.append(onnx.ValueInfoProto())
                inputs[-1].CopyFrom(info)
                inputs[-1].name = rename(info.name)
                for dim in inputs[-1].type.tensor_type.shape.dim:
                    if dim.dim_param:
                        dim.dim_param = rename(dim.dim_param)
            outputs += [onnx.ValueInfoProto(name=n) for n in node.output if n]
            for tensor in model.graph.initializer:
                values.append(onnx.TensorProto())
                values[-1].CopyFrom(tensor)
                values[-1].name = rename(tensor.name)
        proto = helper.make_graph(nodes, "probes", inputs, outputs, values)
        first = next(iter(probes.values()))
        return helper.make_model(proto, ir_version=first.ir_version, opset_imports=first.opset_import)

    def taken(self, folder, probes):
        """Which of these models are taken: asked for at once, and again without the one at which the import ends."""
        if self.compiles:
            return [self.is_taken(folder, model) for model in probes]
        left, refused = dict(enumerate(probes)), set()
        while left:
            onnx.save(self.joined(left), folder / "m.onnx")
            made = self.tool("vm-compile", "--check", folder / "m.onnx")
            if made.returncode == 0:
                break
            said = made.stderr + made.stdout
            named = {int(n) for n in re.findall(r'(?:node "probe|(?:input|tensor) "p)(\d+)[._]', said)}
            if not named:
                raise RuntimeError(made.stderr[-300:] or f"exit code {made.returncode}")
            refused |= named
            left = {i: model for i, model in left.items() if i not in refused}
        return [i not in refused for i in range(len(probes))]

    def found(self, name):
        """{type parameter: element types that are taken}; None: it has graphs or sequences, which have any."""
        parameters = self.schemas.parameters(name)
        forms = list(self.cases.get(name, [])) + written_forms(name)
        if not forms or name.startswith("ai.onnx.ml.") and not written_forms(name):
            forms += generated_forms(name)
        if name == "BitCast":  # one form for each width
            forms = [(with_attribute(forms[0][0], "to", getattr(TensorProto, to)), [])
                     for to in ("UINT8", "UINT16", "UINT32", "UINT64")]
        forms = [(model, data) for model, data in forms if is_plain(model)]
        if not forms:
            return None
        with tempfile.TemporaryDirectory(prefix="ingot-listed-") as folder:
            folder = pathlib.Path(folder)
            models = [model for model, _ in forms]
            good = self.taken(folder, models) if name != "BitCast" else [True] * len(models)
            if not all(good):
                models = [m if ok else bound(m, data) for (m, data), ok in zip(forms, good)]
                good = self.taken(folder, models)
            models = [m for m, ok in zip(models, good) if ok]
            # Few forms, of as many inputs as there are.
            models.sort(key=lambda m: -len([n for n in m.graph.node[0].input if n]))
            chosen = models[:FORMS_PER_OPERATOR // 2] + models[FORMS_PER_OPERATOR // 2:][::-1][:FORMS_PER_OPERATOR // 2]
            result = {}
            for parameter, allowed in parameters.items():
                probes = [(element, with_elements(model, parameter, element, self.schemas, together))
                          for element in allowed for model in chosen for together in (False, True)]
                probes = [(element, model) for element, model in probes if model is not None]
                if not probes:
                    continue
                answers = self.taken(folder, [model for _, model in probes])
                result[parameter] = {element for (element, _), ok in zip(probes, answers) if ok}
            return result


def text_of(found):
    if not found:
        return ""
    return "; ".join(f"{parameter}: {shortened(types)}" for parameter, types in found.items())


def page_of(listed):
    """The list as a page shows it."""
    lines = ["| operator | versions | element types | limits |", "|---|---|---|---|"]
    return "\n".join(lines + [f"| `{name}` | {' | '.join(cells)} |" for name, cells in sorted(listed.items())]) + "\n"


def read_list(bin_dir):
    """{operator: (versions, element types, limits)} as vm-compile prints it."""
    text = Tools(bin_dir)("vm-compile", "--list-ops").stdout.split("operators of ONNX that are imported")[1]
    cells = [line.split(" | ") for line in text.splitlines() if line.count(" | ") == 3]
    return {row[0]: tuple(cell.strip() for cell in row[1:]) for row in cells[1:]}


def probe(name):
    """(the element types that are taken, what went wrong), found in a process of its own: an oracle may crash."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = (text_of(PROBER.found(name)), "")
        except Exception as error:
            result = ("", f"{type(error).__name__}: {error}")
        with os.fdopen(write, "wb") as file:
            pickle.dump(result, file)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        data = file.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else ("", "the process crashed")


def introduced(name):
    """The first version of its domain that has the operator; ONNX Runtime's own are of version 1."""
    domain, _, op_type = name.rpartition(".")
    versions = [s.since_version for s in onnx.defs.get_all_schemas_with_history()
                if (s.domain, s.name) == (domain, op_type)]
    return min(versions, default=1)


def row_of(name, types, limits):
    row = f'INGOT_OP_FORMS("{name}", {introduced(name)}, "{types}", "{limits}")'
    if len(row) <= 120:
        return row
    lines, line = [], ""  # the words of both texts, in lines of 120 columns
    for part, end in ((types, ","), (limits, ")")):
        words, line = part.split(" "), '               "'
        for i, word in enumerate(words):
            text = word + (" " if i + 1 < len(words) else "")
            if len(line) + len(text) > 116:
                lines.append(line + '"')
                line = '               "'
            line += text
        lines.append(line + '"' + end)
    return f'INGOT_OP_FORMS("{name}", {introduced(name)},\n' + "\n".join(lines)


def main():
    global PROBER
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--part", type=int, default=1)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    PROBER = Prober(options.bin_dir, options.compile)
    listed = read_list(options.bin_dir)
    names = sorted(name for name in listed if re.search(options.only, name))
    if options.part > 1 and not os.environ.get("INGOT_LONG_TESTS"):
        names = names[commit_seed() % options.part::options.part]
    wrong, rows = 0, {}
    with multiprocessing.pool.ThreadPool(2) as pool:
        for name, (types, error) in zip(names, pool.imap(probe, names)):
            rows[name] = types
            said, version = listed[name][1], listed[name][0].split(" ")[0]
            late = introduced(name) >= 7 or "." in name
            if error or types != said or (version != str(introduced(name)) if late else not 1 <= int(version) <= 7):
                wrong += 1
                print(f"{name} {version}: listed {said!r}, found {types!r} {error}", flush=True)
    if options.update:
        text = TABLE.read_text()
        head = text[:text.index("\nINGOT_OP_FORMS(") + 1]
        TABLE.write_text(head + "\n".join(row_of(name, rows.get(name, listed[name][1]), listed[name][2])
                                          for name in sorted(listed)) + "\n")
    title, words, page = PAGE.read_text().split("\n\n", 2)
    if page != page_of(listed):
        wrong += 1
        print(f"{PAGE.name} is not what vm-compile lists")
        if options.update:
            PAGE.write_text("\n\n".join([title, words, page_of(listed)]))
    print(f"{len(names)} of {len(listed)} operators: {wrong} wrong")
    return 1 if wrong or not names else 0


if __name__ == "__main__":
    sys.exit(main())
