#!/usr/bin/env python3
"""Sets the times of kernels that vm-compile predicts (--explain) beside those that vm-bench measures (--profile), and
prints the quotients: how many lie within a factor of two, and those farthest away. Nothing fails on a time: the clock
and the caches of the machine are not those that predictions assume, so that the quotients are also given relative to
their median.

usage: predicted_rates.py BIN_DIR [MODEL.onnx ...] [--seed S] [--filter TEXT] [--target cpu:x86-64-v3] [--show 20]
                          [--rounds 3] [--json FILE]
models: by default the operators of acceptance/sweep.py, static"""
import argparse, json, math, pathlib, statistics, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "acceptance"))


def measured(tools, executable, arguments):
    """Of each kernel, the least of some rounds' mean times."""
    rounds = [measured_once(tools, executable, arguments) for _ in range(arguments.rounds)]
    return {name: min(times[name] for times in rounds) for name in rounds[0]}


def measured_once(tools, executable, arguments):
    ran = subprocess.run([tools / "vm-bench", executable, "--min-time", arguments.min_time, "--warmup", "20ms",
                          "--profile", "--json", "-"], capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(ran.stderr.strip())
    times = {}
    for row in json.loads(ran.stdout)["benchmarks"][0]["profile"]["rows"]:
        if row["kind"] == "kernel":
            calls, total = times.get(row["name"], (0, 0))
            times[row["name"]] = calls + row["calls"], total + row["total_ns"]
    return {name: total / calls for name, (calls, total) in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--filter", default="")
    parser.add_argument("--target", default="cpu:native")
    parser.add_argument("--min-time", default="60ms")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--show", type=int, default=20)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def written():
            import onnx, sweep
            for case, model in sweep.cases(arguments.seed, "static"):
                if arguments.filter in case:
                    onnx.save(model, folder / "model.onnx")
                    yield case, folder / "model.onnx"

        for case, model in [(path.stem, path) for path in arguments.models] or written():
            made = subprocess.run([arguments.bin / "vm-compile", model, "-o", folder / "m.ingot", "--target",
                                   arguments.target, "--explain", "--json", "-"], capture_output=True, text=True)
            if made.returncode != 0:
                print(f"{case}: vm-compile exit {made.returncode}: {made.stderr.strip()}")
                continue
            try:
                times = measured(arguments.bin, folder / "m.ingot", arguments)
            except RuntimeError as error:
                print(f"{case}: {error}")
                continue
            for kernel in json.loads(made.stdout)["kernels"]:
                if kernel["name"] in times:
                    rules = sorted({part["rule"] or "none" for part in kernel["parts"] if part["stores"]})
                    predicted, real = kernel["predicted_ns"] / 1e3, times[kernel["name"]] / 1e3
                    rows.append({"model": case, "kernel": kernel["name"], "rules": rules, "bound": kernel["bound"],
                                 "predicted_us": predicted, "measured_us": real, "quotient": real / predicted})
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    if not rows:
        return
    median = statistics.median(row["quotient"] for row in rows)
    within = lambda center: sum(abs(math.log2(row["quotient"] / center)) <= 1 for row in rows) / len(rows)
    rows.sort(key=lambda row: -abs(math.log(row["quotient"] / median)))
    print(f"{'measured us':>12} {'predicted us':>12} {'quotient':>9}  kernel")
    for row in rows[:arguments.show]:
        print(f"{row['measured_us']:12.2f} {row['predicted_us']:12.2f} {row['quotient']:9.2f}  {row['model']}: "
              f"{row['kernel']} ({', '.join(row['rules'])}; {row['bound']})")
    print(f"{len(rows)} kernels: measured over predicted {median:.2f} in the median; within a factor of two of the "
          f"prediction {within(1):.0%}, of {median:.2f} times it {within(median):.0%}")


main()
