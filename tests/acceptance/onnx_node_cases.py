"""ONNX's own node cases (onnx.backend.test.loader, kind="node"), each compiled by vm-compile and run by vm-run.

usage: onnx_node_cases.py BIN_DIR [--filter REGEX] [--jobs N] [--show STATE] [--markdown FILE] [--json FILE]
                          [--minimum N] [--short]

A case passes when the values are within its own tolerances. It is refused when vm-compile says that the model uses
something unsupported (exit code 8); every other deviation is a failure, and a bug. Strings, which no tensor file holds,
are given and compared by the Python module, everything else by vm-run. Sequences are given and compared by their elements
(x.0, x.1), and an optional value is a sequence of at most one. Node cases pass everything as an input; where an integer
input decides a shape (the target of Reshape), or numbers are parameters in all but name (the scales of Resize),
vm-compile cannot know them. Such a case is compiled again with these inputs bound by --params, as a model's exporter
would write them, and counts as passed "bound".

--short runs a fixed part, one case of every operator, unless INGOT_LONG_TESTS is set. Exit code 1: a failure, or fewer
passed than --minimum; 77 (skipped) without numpy and onnx."""
import argparse, collections, json, multiprocessing, os, pathlib, re, shutil, struct, subprocess, sys, tempfile
import warnings

from tools import Tools, python_module

try:
    import numpy as np, onnx
    from onnx.backend.test.loader import load_model_tests
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

SAFETENSORS = {"bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32",
               "int32": "I32",
               "uint64": "U64", "int64": "I64", "float16": "F16", "bfloat16": "BF16", "float32": "F32",
               "float64": "F64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
               "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0",
               "float4_e2m1fn": "F4",
               # Integers of less than a byte have one each in tensor files.
               "int2": "I8", "int4": "I8", "uint2": "U8", "uint4": "U8"}
TIMEOUT = 120
UNSUPPORTED = 8


class NotATensor(Exception):
    """The value cannot be written to a tensor file."""


def save(path, tensors):
    header, data = {}, b""
    for name, value in tensors.items():
        value = value if isinstance(value, np.ndarray) else np.asarray(value)
        kind = SAFETENSORS.get(value.dtype.name)
        if kind is None:
            raise NotATensor(f"a value of type {value.dtype}")
        if value.dtype.name in ("int2", "int4"):
            value = value.astype(np.int8)  # their sign bits are undefined
        raw = np.ascontiguousarray(value).tobytes()
        if kind == "F4":
            codes = np.frombuffer(raw + b"\0" * (len(raw) % 2), np.uint8)
            raw = (codes[::2] | codes[1::2] << 4).tobytes()
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def flat(name, type, value):
    """The tensors by which vm-run knows a value; None stands for a sequence without elements."""
    kind = type.WhichOneof("value")
    if kind == "optional_type":
        return {name: None} if value is None else flat(name + ".0", type.optional_type.elem_type, value)
    if kind == "sequence_type":
        parts = [flat(f"{name}.{i}", type.sequence_type.elem_type, part) for i, part in enumerate(value)]
        return {k: v for part in parts for k, v in part.items()} or {name: None}
    if isinstance(value, (list, dict)):
        raise NotATensor("a value that is no tensor")
    return {name: onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)}


def tensors(infos, values):
    """(by name, names of sequences without elements)"""
    every = {k: v for info, value in zip(infos, values) for k, v in flat(info.name, info.type, value).items()}
    return {k: v for k, v in every.items() if v is not None}, [k for k, v in every.items() if v is None]


def relative_tolerance(case, outputs):
    """Its own, but of sixteen-bit floats two units in the last place: how intermediate results round is left open."""
    units = {"bfloat16": 2**-6, "float16": 2**-9}
    return max([case.rtol] + [units.get(value.dtype.name, 0) for value in outputs.values()])


def absolute_tolerance(case, outputs):
    """Its own, but of transforms, whose sums cancel, a few units in the last place of the greatest element."""
    if not any(node.op_type in ("DFT", "STFT") for node in case.model.graph.node):
        return case.atol
    return max([case.atol] + [4 * 2**-23 * float(np.abs(value).max(initial=0)) for value in outputs.values()])


def last_line(result):
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    return (lines[-1] if lines else f"exit code {result.returncode}")[:300]


# Of what these draw, shape and dtype are compared (tests/acceptance/random_numbers.py looks at the numbers).
RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")


def draws(case, given):
    """Are its results drawn at random? Dropout's are in training, unless nothing is dropped."""
    return any(node.op_type in RANDOM or node.op_type == "Dropout" and len(node.input) > 2
               and given[node.input[2]] and given[node.input[1]] for node in case.model.graph.node)


def differs_in_python(path, given, expected, case):
    """What the Python module gives otherwise than expected; None: nothing."""
    results = ingot.load(path)(**given)
    results = results if isinstance(results, tuple) else (results,)
    for (name, wanted), got in zip(expected.items(), map(np.asarray, results), strict=True):
        is_text = wanted.dtype == object
        if got.shape != wanted.shape or not is_text and got.dtype != wanted.dtype:
            return f"{name}: {got.dtype}{got.shape}, expected {wanted.dtype}{wanted.shape}"
        if not (np.array_equal(got.astype(str), wanted.astype(str)) if is_text
                else np.allclose(got, wanted, relative_tolerance(case, expected), case.atol, equal_nan=True)):
            return f"{name}: {got.tolist()}, expected {wanted.tolist()}"
    return None


def attempt(case, dir, bound):
    """(state, why) of one case; bound names the inputs that become constants."""
    graph = case.model.graph
    compiled = ["--target", "cpu:x86-64-v3", dir / "m.onnx", "-o", dir / "m.ingot"]
    if bound:
        first, _ = tensors(graph.input, case.data_sets[0][0])
        save(dir / "params.safetensors", {name: first[name] for name in bound})
        compiled += ["--params", dir / "params.safetensors"]
    made = tool("vm-compile", *compiled)
    if made.returncode != 0:
        return "refused" if made.returncode == UNSUPPORTED else "failed", "vm-compile: " + last_line(made)
    for inputs, outputs in case.data_sets:
        given, empty = tensors(graph.input, inputs)
        is_drawn = draws(case, given)
        given = {k: v for k, v in given.items() if k not in bound}
        expected, without = tensors(graph.output, outputs)
        if without:
            raise NotATensor("an expected sequence without elements")
        if any(value.dtype == object for value in (*given.values(), *expected.values())):
            why = differs_in_python(dir / "m.ingot", given, expected, case)
            if why:
                return "failed", why
            continue
        save(dir / "in.safetensors", given)
        save(dir / "out.safetensors", expected)
        arguments = [dir / "in.safetensors"] if given else []
        arguments += [word for name in empty for word in ("--input", name + "=()")]
        if is_drawn:
            ran = tool("vm-run", dir / "m.ingot", *arguments, "--output", f"@{dir / 'drawn.npz'}")
            if ran.returncode != 0:
                return "failed", "vm-run: " + last_line(ran)
            with np.load(dir / "drawn.npz") as drawn:
                if {k: (v.shape, v.dtype) for k, v in drawn.items()} != {k: (v.shape, v.dtype) for k, v in expected.items()}:
                    return "failed", "other shapes or dtypes are drawn"
            continue
        ran = tool("vm-run", dir / "m.ingot", *arguments, "--expect", f"@{dir / 'out.safetensors'}", "--rtol",
                   relative_tolerance(case, expected), "--atol", absolute_tolerance(case, expected))
        if ran.returncode != 0:
            return "failed", "vm-run: " + last_line(ran)
    return "passed", ""


def run(index):
    case = CASES[index]
    dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-node-case-"))
    try:
        onnx.save(case.model, dir / "m.onnx")
        state, why = attempt(case, dir, ())
        values, _ = tensors(case.model.graph.input, case.data_sets[0][0])
        inputs = {i.name for i in case.model.graph.input}
        small = [k for k, v in values.items() if k in inputs and v.ndim <= 1]
        integers = [k for k in small if values[k].dtype in (np.int64, np.int32)]
        # Resize has its scales and regions as floats, MelWeightMatrix its frequencies.
        for reason, wanted in ("not a constant", integers), ("are not constant", small), ("not a constant", small):
            if state == "refused" and wanted and reason in why:
                state, why = attempt(case, dir, tuple(wanted))
                state = "bound" if state == "passed" else state
        return index, state, why
    except NotATensor as error:
        return index, "refused", str(error)
    except subprocess.TimeoutExpired as error:
        return index, "failed", f"more than {TIMEOUT} s: {pathlib.Path(error.cmd[0]).name}"
    finally:
        shutil.rmtree(dir)


def operator_of(case, plain):
    """The operator that a case tests: of its plain form where ONNX expanded it into its function's body."""
    model = plain.get(re.sub(r"_expanded.*$", "", case.name), case.model)
    node = max(model.graph.node, key=lambda n: n.op_type not in ("Constant", "Identity", "Cast"))
    return (node.domain + "." if node.domain not in ("", "ai.onnx") else "") + node.op_type


def table(rows):
    head = ["operator", "cases", "passed", "of these bound", "refused", "failed"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    total = collections.Counter()
    for name in sorted(rows):
        total.update(rows[name])
        lines.append(line(name, rows[name]))
    return "\n".join(lines + [line("**all**", total)])


def line(name, count):
    passed = count["passed"] + count["bound"]
    cells = [name, sum(count.values()), passed, count["bound"], count["refused"], count["failed"]]
    return "| " + " | ".join(str(cell) if cell != 0 else "" for cell in cells) + " |"


def main():
    global tool, ingot, CASES
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--filter", default="", help="only cases whose name or operator matches")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", choices=["passed", "bound", "refused", "failed"], action="append", default=["failed"])
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--minimum", type=int, default=0)
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    ingot = python_module(options.bin_dir)
    tool = Tools(options.bin_dir, timeout=TIMEOUT, errors="replace")
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    CASES = load_model_tests(kind="node")
    plain = {case.name: case.model for case in CASES}
    operators = [operator_of(case, plain) for case in CASES]
    chosen = [i for i, case in enumerate(CASES) if re.search(options.filter, case.name)
              or re.search(options.filter, operators[i])]
    if options.short and not os.environ.get("INGOT_LONG_TESTS"):
        first = {}
        for i in chosen:
            first.setdefault(operators[i], i)
        chosen = sorted(first.values())
    rows, states, results = collections.defaultdict(collections.Counter), collections.Counter(), {}
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        for index, state, why in pool.imap_unordered(run, chosen, chunksize=1):
            rows[operators[index]][state] += 1
            states[state] += 1
            results[CASES[index].name] = {"operator": operators[index], "state": state, "why": why}
            if state in options.show:
                print(f"{state}: {CASES[index].name}: {why}", flush=True)
    text = table(rows)
    print(text)
    passed = states["passed"] + states["bound"]
    print(f"{passed} of {len(chosen)} passed ({states['bound']} with bound inputs), "
          f"{states['refused']} refused, {states['failed']} failed")
    if options.markdown:
        options.markdown.write_text(text + "\n")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1, sort_keys=True))
    return 1 if states["failed"] or passed < options.minimum else 0


if __name__ == "__main__":
    sys.exit(main())
