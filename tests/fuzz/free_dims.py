"""Every operator with all dims of its inputs free: it is compiled, unless its line in `vm-compile --list-ops` says what has
to be known; it gives what ONNX Runtime gives; and an input that is longer along an axis than the others allow is refused
when the model runs. (Not the other way round: ONNX Runtime does not compare all that the specification has as equal.)

usage: free_dims.py BIN_DIR [--seed S] [--rounds N] [--only OP,OP] [--places N]

Each round is a small graph of every generator's (operators.py), of which each input has a symbol of its own for each
axis; in every second round what would be a constant is an input, too. An input that is longer is taken where the
oracle of each node takes it (oracle.py), and then gives what that gives. --seed left out: from the commit's
hash. INGOT_LONG_TESTS=1 makes 20 rounds of one. Exit code 1: a failure; 77 (skipped) without numpy, onnx and
onnxruntime."""
import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
import warnings

try:
    import numpy as np
    import onnx  # noqa: F401 (asked for here)
    import onnxruntime
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

import operators
import oracle
from disputes import settled
from graph import Graph, Skip
from graph_fuzz import commit_seed
from oracle import name_of
from registry import GENERATORS
from running import Runner, compare, failure_of, in_own_process, last_lines
from tensors import is_float, read_safetensors, write_safetensors


# Of whose results an element may jump: states that are rounded to bytes.
JUMPS = {"com.microsoft.DynamicQuantizeLSTM"}


def limits_by_operator(bin_dir):
    """What vm-compile says of each operator that is refused by name."""
    text = subprocess.run([bin_dir / "vm-compile", "--list-ops"], capture_output=True, text=True, check=True).stdout
    rows = text.split("operators of ONNX that are imported\n")[1].splitlines()[1:]
    return {row.split(" | ")[0]: row.split(" | ")[-1] for row in rows}


def freed(graph, are_weights_inputs):
    """The graph's case, of which every input has a symbol of its own for each axis."""
    for value in graph.values.values():
        if are_weights_inputs and value.kind == "constant" and value.rank and is_float(value.dtype):
            value.kind = "input"
        if value.kind == "input":
            value.declared = [f"{value.name}_{axis}" for axis in range(value.rank)]
    return graph.case(graph.choose_outputs(), functions=False)


def longer(array, axis):
    """The array with its last slice along the axis twice."""
    end = np.take(array, [-1], axis) if array.shape[axis] else np.zeros(
        [1 if i == axis else n for i, n in enumerate(array.shape)], array.dtype)
    return np.concatenate([array, end], axis)


def expected_with(graph, case, inputs, rng):
    """Results of these inputs with their bounds; "refused" where a node does not take them; None where no oracle says
    it."""
    names = [output.name for output in case.model.graph.output]
    values = {v.name: (v.arrays[0], v.bounds[0]) for v in graph.values.values() if v.kind == "constant"}
    values |= {name: (array, np.zeros(())) for name, array in inputs.items()}
    try:
        for node in graph.nodes:
            read = list(dict.fromkeys(graph.reads(node)))
            if any(name and name not in graph.values for name in [*read, *node.output]):
                return None  # what is no tensor
            results, bounds = oracle.evaluate([node], [name for name in node.output if name],
                                              [{name: values[name][0] for name in read}],
                                              [{name: values[name][1] for name in read}], graph.opset, rng)[0]
            values |= {name: (results[name], bounds[name]) for name in results}
        return {name: values[name] for name in names}
    except oracle.Rejected:
        return "refused"
    except Exception:  # a bound that says nothing
        return None


def has_no_part(graph, name):
    """Is it what Gemm adds 0 times, or beside that?"""
    scaled = [node for node in graph.nodes if node.op_type == "Gemm" and name in node.input]
    return any(a.name == "beta" and a.f == 0 for node in scaled for a in node.attribute)


def problem_of(runner, graph, case, limits, places, rng):
    """(what is wrong or None, what was seen: known, taken, refused)"""
    seen = collections.Counter()
    state, detail = runner.attempt(case)
    if state == "refused" and any("known" in limits.get(name_of(node), "") for node in graph.nodes):
        return None, collections.Counter(known=1)
    if state == "wrong" and settled(case, results_of(runner, case)):
        state = "ok"
    if state != "ok":
        return f"{state}: {detail}", seen
    given, results = runner.directory / "in.safetensors", runner.directory / "out.safetensors"
    inputs = case.inputs[0]
    axes = [(name, axis) for name, array in inputs.items() for axis in range(array.ndim)]
    for at in rng.choice(len(axes), min(places, len(axes)), replace=False) if axes else ():
        name, axis = axes[at]
        wrong = {**inputs, name: longer(inputs[name], axis)}
        write_safetensors(given, wrong)
        results.unlink(missing_ok=True)
        ran = runner.tool("vm-run", runner.directory / "model.ingot", given, "--output", f"@{results}")
        expected = expected_with(graph, case, wrong, rng)
        where = f"{name} {inputs[name].shape} longer along axis {axis}"
        if ran.returncode:
            seen["refused"] += 1
            if failure_of(ran.returncode) != "error":
                return f"{where}: vm-run exit {ran.returncode}: {last_lines(ran.stderr)}", seen
            continue
        seen["taken"] += 1
        if expected == "refused" and not has_no_part(graph, name):
            return f"{where} is taken, which no oracle takes", seen
        jumps = any(name_of(node) in JUMPS for node in graph.nodes)
        problem = isinstance(expected, dict) and not jumps and compare(read_safetensors(results), expected)
        if problem and not settled(type(case)(case.model, [wrong], [expected]), [read_safetensors(results)]):
            return f"{where}: {problem}", seen
    return None, seen


def results_of(runner, case):
    """What vm-run gives by assignment, after an attempt whose executable lies there."""
    results = []
    for inputs in case.inputs:
        write_safetensors(runner.directory / "in.safetensors", inputs)
        runner.tool("vm-run", runner.directory / "model.ingot", runner.directory / "in.safetensors", "--output",
                    f"@{runner.directory / 'out.safetensors'}")
        results.append(read_safetensors(runner.directory / "out.safetensors"))
    return results


def try_graph(seed, generator, options, limits, directory):
    """(operators of the graph, problem or None, what was seen)"""
    graphs = (Graph(seed * 100 + draw, [(generator, 1)], wild=False) for draw in range(30))
    graph = next((g for g in graphs if g.attempt(generator) and g.nodes), None)
    if graph is None:
        return [], None, collections.Counter()
    case = freed(graph, seed % 2 == 1)
    runner = Runner(options.bin_dir, directory, options=["--strict-math"])
    return [name_of(node) for node in graph.nodes], *problem_of(
        runner, graph, case, limits, options.places, np.random.default_rng(seed))


def try_apart(*arguments):
    """The same in a process of its own."""
    def run():
        try:
            return try_graph(*arguments)
        except Skip:  # what was drawn has no outputs that an oracle computes
            return [], None, collections.Counter()
        except Exception:
            return [], traceback.format_exc(), collections.Counter()
    return in_own_process(run, lambda _: ([], None, collections.Counter(crashed=1)))


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
    onnxruntime.set_default_logger_severity(4)
    seed = options.seed if options.seed is not None else commit_seed()
    print(f"seed {seed}, {options.rounds} rounds")
    limits, tried, problems, seen = limits_by_operator(options.bin_dir), set(), 0, collections.Counter()
    with tempfile.TemporaryDirectory(prefix="ingot-free-") as directory:
        for number in range(seed, seed + options.rounds):
            for generator, made, _ in GENERATORS:
                if options.only and not set(options.only) & set(made):
                    continue
                names, problem, counts = try_apart(number, generator, options, limits, directory)
                tried |= set(names)
                seen += counts
                if problem:
                    problems += 1
                    print(f"seed {number} --only {made[0]}: {' '.join(names)}: {problem}", flush=True)
    print(f"{len(tried)} operators, of longer inputs {seen['refused']} refused and {seen['taken']} taken, {seen['known']} "
          f"graphs of what has to be known, {seen['crashed']} crashes of oracles, {problems} problems")
    return 1 if problems or not (seen["refused"] or options.only) else 0


if __name__ == "__main__":
    sys.exit(main())
