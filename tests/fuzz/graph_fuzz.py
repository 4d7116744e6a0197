"""Random ONNX graphs, each compiled by vm-compile, run by vm-run under several assignments of its symbols, and compared
with ONNX Runtime node by node.

usage: graph_fuzz.py BIN_DIR [--seed S] [--count N] [--resume FILE] [--jobs N] [--target SPEC] [--keep DIR]
                     [--only OP,OP] [--without OP,OP] [--nodes N] [--no-minimise] [--strict-math] [--standin DIR]
       graph_fuzz.py BIN_DIR --coverage           does every operator that vm-compile lists have a generator, and does
                                                  the importer know the attributes of each?
       graph_fuzz.py BIN_DIR --definitions        do definitions.py and ONNX Runtime agree where nothing is disputed?
       graph_fuzz.py BIN_DIR --minimise CASE      makes a kept case (a folder) smaller, in CASE/small
       graph_fuzz.py BIN_DIR --replay SEED        one graph again

--seed S      the first graph's seed; graph i has seed S + i. Left out: from the hash of the commit; printed.
--resume FILE keeps the number of graphs that are done and their counts there, and goes on from it
--keep DIR    where failing cases go: SEED/model.onnx, SEED/inputs.K.safetensors, SEED/what.txt; SEED/small minimised
--standin DIR kernels are for CUDA and run on the GPU that is not there, which vm-run finds in this folder
              (tests/cuda_standin)
--only        operators, each of which some generator of every graph makes

Half of the graphs have NaN and infinities among their inputs. What a failure is: running.py; how far results may
differ: oracle.py. What is not mended yet: known.py. INGOT_LONG_TESTS=1 makes --count 50,000. Exit code 1: a
failure; 77 (skipped) without numpy, onnx and onnxruntime."""
import argparse
import collections
import hashlib
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

try:
    import numpy as np
    import onnx
    import onnx.printer
    import onnxruntime
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

import operators
from definitions import DEFINITIONS, evaluate_model
from disputes import DECIDED, is_bounded, settled
from graph import ONNX_RUNTIMES, OPSETS, Graph, Skip
from known import known
from minimise import Minimiser, load_case, save_case, without_numbers
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
from oracle import name_of
from running import Runner, differs, in_own_process, kind_of, what_differs
from tensors import read_safetensors

HERE = pathlib.Path(__file__).resolve().parent
MANY = 50000


def commit_seed():
    """From the commit's hash, so that each commit tries other graphs; without git from the sources' bytes."""
    try:
        text = subprocess.run(["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        text = "".join(path.read_text() for path in sorted(HERE.glob("*.py")))
    return int(hashlib.sha256(text.strip().encode()).hexdigest()[:7], 16)


def graph_of(seed, options):
    graph = Graph(seed, options.operators, options.nodes)
    graph.grow()
    return graph, graph.choose_outputs()


def minimised(runner, case, state, detail, seconds=90):
    kind, what = kind_of(state, detail), what_differs(detail)
    def fails(smaller):
        other, text = runner.attempt(smaller)
        return other == state and (what_differs(text) == what if state == "wrong" else kind_of(other, text) == kind)
    return Minimiser(case, fails, seconds).run()


def without_forms(runner, graph, outputs):
    """The case without functions and what else forms.py makes of it, and the state that it ends in."""
    plain = graph.case(outputs, functions=False)
    return plain, runner.attempt(plain)[0]


def explained(runner, case, detail):
    """The state of a wrong case, and why it is explained."""
    results = results_of(runner, case)
    if settled(case, results):
        return "explained", detail + " (the definitions say so)"
    if not runner.is_strict and runner.strict().attempt(case)[0] == "ok" and is_bounded(case, results):
        return "explained", detail + " (rounding of a bounded rewrite)"
    return "wrong", detail


def results_of(runner, case):
    """What vm-run gives by assignment, after an attempt whose executable lies there."""
    results = []
    for i, inputs in enumerate(case.inputs):
        runner.attempt(type(case)(case.model, [inputs], [case.expected[i]]))
        results.append(read_safetensors(runner.directory / "out.safetensors"))
    return results


def fuzz_one(seed):
    def run():
        try:
            return fuzz_here(seed)
        except Exception:
            return seed, "generator", traceback.format_exc(), [], []
    return in_own_process(run, lambda code: (seed, "oracle", f"an oracle ended by signal {code}", [], []))


def fuzz_here(seed):
    """(seed, state, detail, operators of the graph, minimised operators)"""
    options = OPTIONS
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory(prefix="ingot-fuzz-") as directory:
        try:
            graph, outputs = graph_of(seed, options)
            case = graph.case(outputs)
        except Skip:
            return seed, "empty", "", [], []
        except Exception:
            return seed, "generator", traceback.format_exc(), [], []
        names = [node.op_type for node in graph.nodes]
        strict = ["--strict-math"] if options.strict_math or graph.wild and options.has_strict_math else []
        runner = Runner(options.bin_dir, directory, options.target, strict, options.standin)
        state, detail = runner.attempt(case)
        if state == "ok":
            return seed, state, detail, names, []
        small = case
        try:
            if options.keep:
                save_case(options.keep / str(seed), case, state, detail)
            if not options.no_minimise and state != "hang":
                plain, plain_state = without_forms(runner, graph, outputs)
                if state == "refused" and "symbolic" in detail and plain_state == "ok":
                    # Of what a branch gives no dim is a number, and the list of operators says which have to be.
                    return seed, "explained", detail + " (a form hides a dim)", names, []
                case = plain if plain_state == state else case
                small = minimised(runner, case, state, detail)
                _, detail = runner.attempt(small)
                if state == "wrong":
                    state, detail = explained(runner, small, detail)
                if options.keep:
                    save_case(options.keep / str(seed) / "small", small, state, detail)
        except Exception:
            detail += "\n" + traceback.format_exc()
        return seed, state, detail, names, [node.op_type for node in small.model.graph.node]


def listed_operators(bin_dir):
    """The operators that vm-compile imports."""
    text = subprocess.run([bin_dir / "vm-compile", "--list-ops"], capture_output=True, text=True, check=True).stdout
    return {line.split(" | ")[0] for line in text.split("operators of ONNX that are imported\n")[1].splitlines()[1:]}


def attributes_of(op_type):
    """All attributes that the operator has in an opset that graphs are made of; ONNX Runtime says those of its own."""
    domain, _, name = op_type.rpartition(".")
    if domain.startswith("ai.onnx.preview"):
        return set(onnx.defs.get_schema(name, domain=domain).attributes)
    if domain or op_type in ONNX_RUNTIMES:
        return next(set(s.attributes) for s in get_all_operator_schema() if (s.domain, s.name) == (domain, name))
    schemas = {(s.name, s.since_version): s for s in onnx.defs.get_all_schemas_with_history() if s.domain == ""}
    versions = sorted(version for name, version in schemas if name == op_type)
    current = {max([v for v in versions if v <= opset], default=None) for opset in OPSETS} - {None}
    return {name for version in current for name in schemas[op_type, version].attributes}


def unread_attributes(listed):
    """(operator, attribute) of ai.onnx from opset 7 on whose name no source of the importer has: it cannot be read, and
    is not refused either."""
    sources = "".join(path.read_text() for path in (HERE.parent.parent / "compiler/importer").rglob("*.cc"))
    without_effect = {("Dropout", "ratio"), ("Optional", "type"), ("Split", "num_outputs")}  # told by types and results
    found = {(s.name, attribute) for s in onnx.defs.get_all_schemas_with_history()
             if s.domain == "" and s.since_version > 6 and s.name in listed for attribute in s.attributes}
    return sorted(pair for pair in found - without_effect if f'"{pair[1]}"' not in sources)


def check_coverage(options, rounds=60):
    """Every listed operator is made by a generator, every generator's operator appears, and so does each attribute."""
    listed, problems = listed_operators(options.bin_dir), []
    for name in sorted(listed - operators.generated() - set(operators.NOT_GENERATED)):
        problems.append(f"{name}: no generator makes it, and operators.NOT_GENERATED does not say why")
    for name in sorted(set(operators.NOT_GENERATED) & operators.generated()):
        problems.append(f"{name}: operators.NOT_GENERATED names it, but a generator makes it")
    for name in sorted(operators.generated() - listed):
        problems.append(f"{name}: vm-compile does not list it")
    seen = collections.defaultdict(set)
    for name in sorted(listed & operators.generated()):
        rows = operators.chosen([name])
        wanted = attributes_of(name) - operators.ATTRIBUTES_NOT_GENERATED.get(name, {}).keys()
        for seed in range(rounds * 50):
            if name in seen and wanted <= seen[name]:
                break
            graph = Graph(seed, rows, 3)
            for generator, _ in rows:
                graph.attempt(generator)
            for node in graph.nodes:
                seen[name_of(node)] |= {a.name for a in node.attribute}
        if name not in seen:
            problems.append(f"{name}: its generators made none")
        elif wanted - seen[name]:
            problems.append(f"{name}: no node has {', '.join(sorted(wanted - seen[name]))}")
    problems += [f"{name}: no source of the importer reads the attribute {attribute}"
                 for name, attribute in unread_attributes(listed)]
    for problem in problems:
        print(problem)
    print(f"{len(listed)} operators listed, {len(operators.NOT_GENERATED)} of them not generated, "
          f"{len(problems)} problems")
    return 1 if problems else 0


def check_definitions(rounds=600, enough=50):
    """Every definition gives what ONNX Runtime gives for finite inputs, to within the bound: the judge is judged."""
    problems, compared = 0, collections.Counter()
    for name in {name for names, _ in DECIDED for name in names.split()} - operators.generated():
        print(f"{name}: disputes.DECIDED names it, but no generator makes it")
        problems += 1
    for name in sorted(set(DEFINITIONS) & operators.generated()):
        rows = operators.chosen([name])
        for seed in range(rounds):
            if compared[name] >= enough:
                break
            graph = Graph(seed, rows, 3, wild=False)
            try:
                graph.grow()
                case = graph.case(graph.choose_outputs())
            except Skip:
                continue
            made = {output for node in case.model.graph.node if node.op_type == name for output in node.output}
            for inputs, expected in zip(case.inputs, case.expected):
                values = evaluate_model(case.model, inputs)
                for output in made & expected.keys() & values.keys():
                    want, bound = expected[output]
                    if want.dtype == np.float64:  # (a kernel's float32 constants show there)
                        continue
                    problem = differs(values[output].astype(want.dtype), want, bound)
                    compared[name] += 1
                    problems += bool(problem)
                    if problem:
                        print(f"{name}, seed {seed}: {output}: {problem}")
        if not compared[name] and name not in ("Optional", "OptionalGetElement"):  # (their results are no tensors)
            print(f"{name}: nothing was compared")
            problems += 1
    print(f"{len(compared)} definitions, {sum(compared.values())} results compared, {problems} problems")
    return 1 if problems else 0


def report(done, counts, num_nodes, used, kinds, seconds):
    print(f"{done} graphs, {num_nodes} nodes, {len(used)} operators, {seconds:.0f} s: "
          + ", ".join(f"{k} {v}" for k, v in sorted(counts.items())))
    for kind, seeds in sorted(kinds.items(), key=lambda row: -len(row[1])):
        print(f"  {len(seeds)}x {kind}   seeds {' '.join(map(str, seeds[:8]))}")


def run(options):
    seed = options.seed if options.seed is not None else commit_seed()
    done, counts, used, kinds, num_nodes = 0, collections.Counter(), collections.Counter(), {}, 0
    if options.resume and options.resume.exists():
        kept = json.loads(options.resume.read_text())
        seed, done, num_nodes = kept["seed"], kept["done"], kept["nodes"]
        counts, used, kinds = collections.Counter(kept["counts"]), collections.Counter(kept["used"]), kept["kinds"]
    print(f"seed {seed}, {options.count} graphs, target {options.target}"
          + (f", {done} done before" if done else ""), flush=True)
    begin = time.time()
    with multiprocessing.get_context("fork").Pool(options.jobs, maxtasksperchild=200) as pool:
        for number, state, detail, names, small in pool.imap(fuzz_one, range(seed + done, seed + options.count)):
            done += 1
            num_nodes += len(names)
            used.update(names)
            reason = known(f"{state}: {detail} [{' '.join(small)}]") if state not in ("ok", "empty", "oracle") else None
            if reason:
                counts["known"] += 1
                kinds.setdefault(f"known: {reason}", []).append(number)
                print(f"seed {number}: known: {reason}", flush=True)
                continue
            counts[state] += 1
            if state not in ("ok", "empty", "oracle"):
                kind = kind_of(state, detail) + (f" [{' '.join(small)}]" if 0 < len(small) < 4 else "")
                kinds.setdefault(kind, []).append(number)
                print(f"seed {number}: {state}: {detail}\n    nodes: {' '.join(small or names)}", flush=True)
            if options.resume and done % 50 == 0:
                options.resume.write_text(json.dumps({
                    "seed": seed, "done": done, "nodes": num_nodes, "counts": counts, "used": used, "kinds": kinds}))
    report(done, counts, num_nodes, used, kinds, time.time() - begin)
    return 1 if counts.keys() - {"ok", "empty", "oracle", "explained", "known"} else 0


def replay(options, case=None):
    """One graph, or one kept case: its text, what comes of it, and the minimised form."""
    with tempfile.TemporaryDirectory(prefix="ingot-fuzz-") as directory:
        strict = options.strict_math
        if case is None:
            graph, outputs = graph_of(options.replay, options)
            case, strict = graph.case(outputs), strict or graph.wild and options.has_strict_math
            print(without_numbers(onnx.printer.to_text(case.model)))
        strict = ["--strict-math"] if strict else []
        runner = Runner(options.bin_dir, directory, options.target, strict, options.standin)
        state, detail = runner.attempt(case)
        print(f"{state}: {detail}")
        if state == "ok" or options.no_minimise:
            return 0 if state == "ok" else 1
        small = minimised(runner, case, state, detail)
        state, detail = runner.attempt(small)
        print(f"{state}: {detail}\n{without_numbers(onnx.printer.to_text(small.model))}")
        if options.minimise:
            save_case(options.minimise / "small", small, state, detail)
        return 1


def main():
    global OPTIONS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int, default=MANY if os.environ.get("INGOT_LONG_TESTS") else 500)
    parser.add_argument("--resume", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--target")
    parser.add_argument("--standin", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--without", type=lambda text: text.split(","), default=[])
    parser.add_argument("--nodes", type=int, default=12)
    parser.add_argument("--no-minimise", action="store_true")
    parser.add_argument("--strict-math", action="store_true")
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--definitions", action="store_true")
    parser.add_argument("--minimise", type=pathlib.Path)
    parser.add_argument("--replay", type=int)
    options = OPTIONS = parser.parse_args()
    options.bin_dir = options.bin_dir.resolve()
    options.target = options.target or ("cuda:sm_80" if options.standin else "cpu:x86-64-v3")
    options.operators = operators.chosen(options.only, options.without)
    help_text = subprocess.run([options.bin_dir / "vm-compile", "--help"], capture_output=True, text=True).stdout
    options.has_strict_math = "--strict-math" in help_text
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    if options.coverage:
        sys.exit(check_coverage(options))
    if options.definitions:
        sys.exit(check_definitions())
    if options.minimise:
        sys.exit(replay(options, load_case(options.minimise)))
    sys.exit(replay(options) if options.replay is not None else run(options))


if __name__ == "__main__":
    main()
