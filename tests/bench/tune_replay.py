#!/usr/bin/env python3
"""Searches of the tuner beside each other on equal times: records every schedule of small spaces once, then replays
random search, evolution, and evolution with XGBoost over the records (tune_replay.cc), and prints their curves: the
fastest time so far as a part of the fastest recorded one's, the mean over seeds, and the geometric mean over spaces.

    python tests/bench/tune_replay.py BIN_DIR --records records.jsonl [--measure DURATION] [--trials N] [NAME ...]

--measure: for each space, measure schedules that the file lacks, for so long (vm-tune --time-budget); without it, only
what the file has is replayed. Names are of the table below; all of them by default. Needs numpy and onnx to measure. A
figure, never a test."""
import argparse, json, math, pathlib, subprocess, sys, tempfile

# name: an image's channels, height and width, channels out, window, stride; or a product's rows, depth, columns
SPACES = {
    "dense_64": (64, 256, 1024),
    "conv_128_7": (128, 7, 7, 128, 3, 1),
    "dense_32": (32, 512, 512),
    "dense_96": (96, 256, 256),
    "conv_256_7": (256, 7, 7, 256, 3, 1),
    "dense_128": (128, 768, 768),
    "conv_64_8": (64, 8, 8, 64, 3, 1),
    "dense_256": (256, 256, 256),
    "conv_stride_14": (128, 14, 14, 128, 3, 2),
    "dense_384": (384, 384, 384),
}
POINTS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)


def save_model(path, shape):
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(1)
    if len(shape) == 3:
        rows, depth, columns = shape
        x, y, weight = [rows, depth], [rows, columns], [depth, columns]
        node = helper.make_node("MatMul", ["x", "w"], ["y"])
    else:
        channels, height, width, out, window, stride = shape
        pad = window // 2
        x, weight = [1, channels, height, width], [out, channels, window, window]
        y = [1, out, (height + 2 * pad - window) // stride + 1, (width + 2 * pad - window) // stride + 1]
        node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[pad] * 4, strides=[stride] * 2)
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in (("x", x), ("y", y))]
    values = (rng.standard_normal(weight) / math.sqrt(math.prod(weight[1:]))).astype(np.float32)
    graph = helper.make_graph([node], "space", infos[:1], infos[1:], [numpy_helper.from_array(values, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def measure(tools, records, duration, names):
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            model = pathlib.Path(folder) / f"{name}.onnx"
            save_model(model, SPACES[name])
            command = [tools / "vm-tune", model, "--db", records, "--search", "grid", "--hot", "--progress=never"]
            command += ["--repeats", 30, "--repeat-time", "100us"]
            command += ["--time-budget", duration, "--run-timeout", "5s"]
            for limit in "--trials", "--trials-per-task", "--early-stop":
                command += [limit, 100000]
            print(f"{name}:", flush=True)
            subprocess.run([str(part) for part in command], check=True)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def replay(tools, records, trials, seeds):
    done = subprocess.run([tools / "tune_replay", records, str(trials), str(seeds)], check=True, capture_output=True)
    sys.stderr.buffer.write(done.stderr)
    runs = [run for run in json.loads(done.stdout) if run["curve"]]
    points = [point for point in POINTS if point <= trials]
    spaces = sorted({run["task"] for run in runs})
    searches = list(dict.fromkeys(run["search"] for run in runs))
    # At each number of trials the fastest time so far by the fastest recorded one; a search that ran out stays there.
    reached = {}
    for run in runs:
        curve = run["curve"]
        for point in points:
            key = run["task"], run["search"], point
            reached.setdefault(key, []).append(curve[min(point, len(curve)) - 1] / run["least"])
    mean = {key: sum(values) / len(values) for key, values in reached.items()}
    header = f"{'search':<12}" + "".join(f"{point:>8}" for point in points)
    for space in spaces:
        run = next(run for run in runs if run["task"] == space)
        print(f"\n{space}: {run['recorded']} of {run['schedules']:.0f} schedules recorded, the fastest one takes "
              f"{run['least']:.3f} of the default's time\n{header}")
        for search in searches:
            print(f"{search:<12}" + "".join(f"{mean[space, search, point]:8.3f}" for point in points))
    print(f"\ngeometric mean over {len(spaces)} spaces, {seeds} seeds\n{header}")
    for search in searches:
        values = [geometric_mean([mean[space, search, point] for space in spaces]) for point in points]
        print(f"{search:<12}" + "".join(f"{value:8.3f}" for value in values))
    for search in searches[1:]:
        pairs = [(mean[space, search, points[-1]], mean[space, "random", points[-1]]) for space in spaces]
        better, worse = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
        print(f"{search} against random after {points[-1]} trials: better in {better} spaces, worse in {worse}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=list(SPACES), metavar="NAME")
    parser.add_argument("--records", type=pathlib.Path, required=True)
    parser.add_argument("--measure", metavar="DURATION")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.bin.resolve(), arguments.records, arguments.measure, arguments.names)
    replay(arguments.bin.resolve(), arguments.records, arguments.trials, arguments.seeds)


if __name__ == "__main__":
    main()
