"""One infinity or NaN alone among finite inputs spreads to those elements of the results that depend on its element,
and to no other: operators neither hide values by a product with 0 nor build matrices of zeros around windows.

usage: lone_values.py BIN_DIR [--seed S] [--rounds N] [--only OP,OP] [--places N]

Each round is a small graph of every generator's (operators.py) with finite inputs. At drawn places of its float inputs
an element takes several finite values, small and as large as its dtype holds: what no such value changes does not
depend on it. Then it takes infinities and NaN. A result that did not depend on it and is not finite now is a failure,
unless ONNX Runtime, onnx.reference or the definitions (definitions.py) say so, too. SPREADS lists operators that
are defined so. --seed left out: from the commit's hash. INGOT_LONG_TESTS=1 makes 20 rounds of one. Exit code 1: a
failure; 77 (skipped) without numpy, onnx and onnxruntime."""
import argparse
import os
import pathlib
import sys
import tempfile
import traceback
import warnings

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx.reference import ReferenceEvaluator
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

import operators
from definitions import evaluate_model
from graph import Graph, Skip
from graph_fuzz import commit_seed
from oracle import name_of, session
from registry import GENERATORS
from running import Runner, in_own_process
from tensors import is_float, read_safetensors, write_safetensors

# Operators of which an element may spread further than finite ones of it show, and why.
SPREADS = {
    "Conv ConvTranspose ConvInteger com.microsoft.FusedConv com.microsoft.NhwcConv CausalConvWithState DeformConv":
        "an infinite weight meets the zeros that the data is padded with",
    "LSTM GRU RNN com.microsoft.DynamicQuantizeLSTM": "ONNX Runtime's activations are clamped: NaN becomes a number",
    "com.microsoft.GroupQueryAttention":
        "a key that the mask hides is met by -inf, as Attention's formula has it: inf - inf is NaN; ONNX Runtime "
        "leaves hidden keys out",
    "DynamicQuantizeLinear com.microsoft.DynamicQuantizeMatMul":
        "all elements have a part in the scale, and a scale of NaN meets sums of 0; ONNX Runtime leaves NaN out",
    "ai.onnx.ml.Normalizer": "no order is defined for its greatest element",
}

# Operators of which only these inputs, by place, are tried, for the same reason: the others are parts of scores. A row
# that sees one key alone does not depend on its finite scores, and is NaN where the score is infinite.
VALUES = {"com.microsoft.MultiHeadAttention": {2, 7}}


def results_with(runner, inputs):
    """What the compiled model gives; None where it says an error, as for a data-dependent shape."""
    given, results = runner.directory / "in.safetensors", runner.directory / "out.safetensors"
    write_safetensors(given, inputs)
    results.unlink(missing_ok=True)
    ran = runner.tool("vm-run", runner.directory / "model.ingot", given, "--output", f"@{results}")
    return read_safetensors(results) if ran.returncode == 0 else None


def with_element(inputs, name, place, value):
    array = inputs[name].copy()
    array.reshape(-1)[place] = value
    return {**inputs, name: array}


def finite_values(dtype, rng):
    greatest = 3e38 if dtype.name == "bfloat16" else float(np.finfo(dtype).max)
    return [greatest, -greatest, 0.0, float(rng.uniform(1, 2)), -1e-3, float(greatest) ** 0.25]


def expected_with(model, inputs, name):
    """A result by each oracle that evaluates the model."""
    names = [output.name for output in model.graph.output]
    for evaluate in (lambda: dict(zip(names, session(model).run(None, inputs))),
                     lambda: dict(zip(names, ReferenceEvaluator(model).run(None, inputs))),
                     lambda: evaluate_model(model, inputs)):
        try:
            values = evaluate()
        except Exception:
            continue
        if name in values:
            yield np.asarray(values[name])


def problem_at(runner, case, inputs, name, place, rng):
    """(what is wrong or None, how many elements were found independent)"""
    base = results_with(runner, inputs)
    if base is None:
        return None, 0
    depends = {n: ~np.isfinite(y.astype(np.float64)) for n, y in base.items() if is_float(y.dtype)}
    for value in finite_values(inputs[name].dtype, rng):
        other = results_with(runner, with_element(inputs, name, place, value))
        if other is None or any(other[n].shape != base[n].shape for n in base):
            return None, 0
        for n in depends:
            depends[n] |= ~((other[n] == base[n]) & np.isfinite(other[n].astype(np.float64)))
    for value in (np.inf, -np.inf, np.nan):
        moved = with_element(inputs, name, place, value)
        got = results_with(runner, moved)
        for n in depends if got is not None else ():
            if got[n].shape != base[n].shape:  # (a branch that is taken for it)
                continue
            spread = ~depends[n] & ~np.isfinite(got[n].astype(np.float64))
            if not spread.any():
                continue
            said = [y for y in expected_with(case.model, moved, n) if y.shape == spread.shape]
            if not any((~np.isfinite(y.astype(np.float64)))[spread].all() for y in said):
                at = tuple(int(i) for i in np.argwhere(spread)[0])
                return (f"{value} at {place} of {name} {inputs[name].shape}: {int(spread.sum())} of {spread.size} "
                        f"elements of {n} that do not depend on it are not finite, first {at}: {got[n][at]}"), 0
    return None, sum(int((~d).sum()) for d in depends.values())


def try_graph(seed, rows, options, directory):
    """(operators of the graph, problem or None, elements found independent)"""
    rng = np.random.default_rng(seed)
    # (Some operators are of late opsets alone, and some draws are no nodes.)
    graphs = (Graph(seed * 100 + draw, rows, wild=False) for draw in range(30))
    graph = next((g for g in graphs if g.attempt(rows[0][0]) and g.nodes), None)
    if graph is None:
        return [], None, 0
    case = graph.case(graph.choose_outputs(), functions=False)
    names = [name_of(node) for node in graph.nodes]
    if any(name in key.split() for name in names for key in SPREADS):
        return names, None, 0
    runner = Runner(options.bin_dir, directory, options=["--strict-math"])
    onnx.save(case.model, runner.directory / "model.onnx")
    made = runner.tool("vm-compile", *runner.options, runner.directory / "model.onnx", "-o",
                       runner.directory / "model.ingot")
    if made.returncode:
        return names, f"vm-compile: {made.stderr[-200:]}", 0
    inputs, independent = case.inputs[0], 0
    scores = {name for node in graph.nodes for i, name in enumerate(node.input)
              if i not in VALUES.get(name_of(node), {i})}
    for name, array in inputs.items():
        if not is_float(array.dtype) or name in scores:
            continue
        for place in rng.choice(array.size, min(options.places, array.size), replace=False) if array.size else ():
            problem, count = problem_at(runner, case, inputs, name, int(place), rng)
            independent += count
            if problem:
                return names, problem, independent
    return names, None, independent


def try_apart(*arguments):
    """The same in a process of its own."""
    def run():
        try:
            return try_graph(*arguments)
        except Skip:  # what was drawn has no outputs that an oracle computes
            return [], None, 0
        except Exception:
            return [], traceback.format_exc(), 0
    return in_own_process(run, lambda _: ([], None, 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--rounds", type=int, default=20 if os.environ.get("INGOT_LONG_TESTS") else 1)
    parser.add_argument("--places", type=int, default=2)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    seed = options.seed if options.seed is not None else commit_seed()
    print(f"seed {seed}, {options.rounds} rounds")
    tried, problems, independent = set(), 0, 0
    with tempfile.TemporaryDirectory(prefix="ingot-lone-") as directory:
        for number in range(seed, seed + options.rounds):
            for generator, made, _ in GENERATORS:
                if options.only and not set(options.only) & set(made):
                    continue
                names, problem, count = try_apart(number, [(generator, 1)], options, directory)
                tried |= set(names)
                independent += count
                if problem:
                    problems += 1
                    print(f"seed {number} --only {','.join(made[:1])}: {' '.join(names)}: {problem}", flush=True)
    print(f"{len(tried)} operators, {independent} elements that do not depend on a place, {problems} problems")
    return 1 if problems or (not independent and not options.only) else 0


if __name__ == "__main__":
    sys.exit(main())
