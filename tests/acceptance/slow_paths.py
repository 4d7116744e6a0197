"""No kernel falls to a slow path unseen: in none of the operators of sweep.py, static and symbolic, and in none of the
networks of networks.py does a kernel store more than 10,000 elements one by one on one thread, as `vm-compile
--explain` reports it for each CPU of the default target. Exceptions stand in KNOWN with their reasons; one that does
not occur any more fails, too.

usage: slow_paths.py BIN_DIR [--seed S] [--filter TEXT] [MODEL.onnx ...]    models: these, in place of the sweep and the
networks; exits 77 (skipped) without numpy and onnx"""
import argparse, collections, json, pathlib, sys, tempfile

from tools import Tools

try:
    import networks, onnx, sweep
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

MOST_ELEMENTS = 10_000
# Case and block, to why it may be so.
SCAN = "each element adds to the one before it; the other axes are not vectors or tasks yet"
SELECTION = "a heap for each row, which chooses by comparisons; rows are no tasks yet"
SORTING = "a sort of each row by the bytes of its keys, where each count is of those before it; rows are no tasks yet"
SCATTER = "two updates may meet at one place, and the later one counts, so that they run one after the other"
PRODUCT = ("in another order of its factors a product may overflow, or meet a zero before it would overflow, so that a "
           "row is not cut into lanes; rows are neither tasks nor vectors yet")
KNOWN = {("summed_0", "scan"): SCAN, ("summed_1", "scan"): SCAN, ("summed_2", "scan"): SCAN,
         ("ordered_1", "top"): SELECTION, ("ordered_10", "top"): SELECTION, ("ordered_300", "sort"): SORTING,
         ("scattered_elements", "scatter"): SCATTER,
         ("reduced_reduceprod.last", "x_red"): PRODUCT, ("reduced_reduceprod.two", "x_red"): PRODUCT}


def explained(tool, model, folder):
    """What --explain says of each kernel of a model, for each CPU of the default target."""
    made = tool("vm-compile", model, "--emit=schedule", "-o", folder / "schedules.txt", "--explain", "--json", "-")
    if made.returncode != 0:
        raise RuntimeError(f"vm-compile exit {made.returncode}: {made.stderr.strip()}")
    return json.loads(made.stdout)["kernels"]


def slow_parts(kernels):
    """(block, text) of what runs element by element on one thread, each once."""
    found = {}
    for kernel in kernels:
        for part in kernel["parts"]:
            if part["serial_scalar"] and part["stores"] > MOST_ELEMENTS:
                reasons = {}  # what is said, to the rules that say it
                for said in part["declined"]:
                    if not said["other_kind"]:
                        reasons.setdefault(said["why"], []).append(said["rule"])
                reasons = "; ".join(f"not {', '.join(rules)}: {why}" for why, rules in reasons.items())
                rule = "rule " + part["rule"] if part["rule"] else "no rule"
                found.setdefault(part["block"], f"{kernel['name']} for {kernel['target']}: {part['block']}, {rule}, "
                                 f"{part['stores']:.0f} stores ({kernel['left_alone'] or reasons})")
    return found.items()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--filter", default="")
    arguments = parser.parse_args()
    tool, failures, used, rules, count = Tools(arguments.bin), [], set(), collections.Counter(), 0
    with tempfile.TemporaryDirectory(prefix="ingot-slow-paths-") as name:
        folder = pathlib.Path(name)

        def written():
            for form in "static", "symbolic":
                for case, model in sweep.cases(arguments.seed, form):
                    if arguments.filter in case:
                        onnx.save(model, folder / "model.onnx")
                        yield case, f"{case} ({form})", folder / "model.onnx"
            for network, make in networks.NETWORKS.items():
                if arguments.filter in network:
                    make(folder / "model.onnx")
                    yield network, network, folder / "model.onnx"

        given = ((path.stem, str(path), path) for path in arguments.models)
        for case, title, model in given if arguments.models else written():
            kernels = explained(tool, model, folder)
            count += 1
            rules.update(part["rule"] or "none" for kernel in kernels for part in kernel["parts"] if part["stores"])
            for block, text in slow_parts(kernels):
                used.add((case, block))
                if (case, block) not in KNOWN:
                    failures.append(f"{title}: {text}")
    print(f"{count} models; parts by rule: " + ", ".join(f"{rule} {n}" for rule, n in rules.most_common()))
    if not arguments.models and not arguments.filter:
        failures += [f"{case}, {block}: it is listed as known, and does not occur" for case, block in KNOWN
                     if (case, block) not in used]
    for failure in failures:
        print("FAILED:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
