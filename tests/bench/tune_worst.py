#!/usr/bin/env python3
"""What tuning finds where the default schedules are worst: measures the default schedules of networks, picks the tasks
that are furthest from the roofline, tunes them, and prints a table.

    python tests/bench/tune_worst.py BIN_DIR --records DIR [--count N] [--trials N] [--least SHARE] MODEL ...

MODEL: a file that vm-tune takes, and behind "@" options for it, such as bert.onnx@--dim=batch=1. A network's records
stay in DIR, so that another run goes on. --least: a task counts if its network spends such a share of its measured time
in it (0.01): what takes a few microseconds is worst in ratio and matters to nobody. A figure, never a test."""
import argparse, json, pathlib, subprocess


class Network:
    def __init__(self, text, folder, tools):
        path, *options = text.split("@")
        self.name = pathlib.Path(path).parent.name if pathlib.Path(path).stem == "model" else pathlib.Path(path).stem
        self.command = [tools / "vm-tune", path, *options, "--db", folder / f"{self.name}.jsonl", "--progress=never",
                        "--only=schedules"]

    def tune(self, *options):
        command = [str(part) for part in (*self.command, "--json", "-", *options)]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["tasks"]


def worst_tasks(networks, least, count):
    """The worst ones: (times its roofline, network, task), each kernel once."""
    found = {}
    for network in networks:
        tasks = [task for task in network.tune("--trials", 0) if task["default_seconds"] > 0 and task["weight"] > 0]
        total = sum(task["weight"] * task["default_seconds"] for task in tasks)
        for task in tasks:
            if task["weight"] * task["default_seconds"] >= least * total:
                found.setdefault(task["task"], (task["default_seconds"] / task["roofline_seconds"], network, task))
    return sorted(found.values(), key=lambda one: -one[0])[:count]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--records", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--least", type=float, default=0.01)
    arguments = parser.parse_args()
    arguments.records.mkdir(parents=True, exist_ok=True)
    networks = [Network(text, arguments.records, arguments.bin.resolve()) for text in arguments.models]
    picked = worst_tasks(networks, arguments.least, arguments.count)
    print("| network | kernel | task | roofline us | default us | of the roofline | fastest trial | gain | trials |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for times, network, task in picked:
        limits = ["--trials", arguments.trials, "--trials-per-task", arguments.trials, "--early-stop", arguments.trials]
        tuned, = network.tune("--task", task["task"], *limits)
        found = tuned.get("best") or tuned.get("comparison")
        gain = "no faster trial"
        if found:
            gain = f"{1 / found['ratio']:.3f}x [{1 / found['upper']:.3f}, {1 / found['lower']:.3f}]"
            gain += "" if "best" in tuned else ", default stays"
        print(f"| {network.name} | {task['kernels'][0]} | {task['task']} | {task['roofline_seconds'] * 1e6:.1f} | "
              f"{tuned['default_seconds'] * 1e6:.1f} | {times:.1f}x | {tuned['best_trial_seconds'] * 1e6:.1f} us, "
              f"{tuned['best_trial_seconds'] / task['roofline_seconds']:.1f}x | {gain} | {tuned['trials']} |", flush=True)


if __name__ == "__main__":
    main()
