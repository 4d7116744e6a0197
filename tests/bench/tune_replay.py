#!/usr/bin/env python3
"""Searches of the tuner beside each other on equal times: records schedules of spaces once, drawn at random, then replays
random search, evolution, and evolution with XGBoost over the records (tune_replay.cc), and prints their curves: the
fastest time so far as a part of the fastest recorded one's, the mean over seeds, and the geometric mean over spaces.
"area" is the mean of the curve over all trials.

    python tests/bench/tune_replay.py BIN_DIR --records records.jsonl [--measure N] [--trials N] [NAME ...]

--measure: for each space, measure schedules until the file has so many of it (or all there are); without it, only what
the file has is replayed. Names are of the table below; all of them by default. Needs numpy and onnx to measure. A
figure, never a test."""
import argparse, json, math, pathlib, subprocess, sys, tempfile

# A template of the tutorials and its size; or an image's channels, height and width, channels out, window, stride and
# groups; or a product's rows, depth, columns.
SPACES = {
    "template_matmul_128": ("matmul", 128),
    "template_matmul_100": ("matmul", 100),
    "template_conv2d_14": ("conv2d", 14),
    "template_conv2d_28": ("conv2d", 28),
    "conv_64_56": (64, 56, 56, 64, 3, 1, 1),
    "conv_stride_28": (128, 28, 28, 128, 3, 2, 1),
    "conv_512_7": (512, 7, 7, 512, 3, 1, 1),
    "conv_first_224": (3, 224, 224, 64, 7, 2, 1),
    "grouped_14": (256, 14, 14, 256, 3, 1, 8),
    "pointwise_14": (256, 14, 14, 1024, 1, 1, 1),
    "dense_128": (128, 768, 3072),
    "dense_32": (32, 1024, 1024),
}
POINTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


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
        channels, height, width, out, window, stride, groups = shape
        pad = window // 2
        x, weight = [1, channels, height, width], [out, channels // groups, window, window]
        y = [1, out, (height + 2 * pad - window) // stride + 1, (width + 2 * pad - window) // stride + 1]
        node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[pad] * 4, strides=[stride] * 2, group=groups)
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in (("x", x), ("y", y))]
    values = (rng.standard_normal(weight) / math.sqrt(math.prod(weight[1:]))).astype(np.float32)
    graph = helper.make_graph([node], "space", infos[:1], infos[1:], [numpy_helper.from_array(values, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def measure(tools, records, count, names):
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            print(f"{name}:", flush=True)
            shape = SPACES[name]
            if isinstance(shape[0], str):
                subprocess.run([tools / "tune_replay", "--measure", *map(str, shape), str(count), records], check=True)
                continue
            model = pathlib.Path(folder) / f"{name}.onnx"
            save_model(model, shape)
            # The kernel with the largest space; others of the model convert its operands.
            listed = json.loads(subprocess.run([tools / "vm-tune", model, "--list-tasks", "--json", "-"], check=True,
                                               capture_output=True).stdout)["tasks"]
            task = max(listed, key=lambda task: math.prod(len(choice["candidates"]) for choice in task["choices"]))
            command = [tools / "vm-tune", model, "--task", task["task"], "--db", records, "--search", "random", "--hot"]
            command += ["--progress=never", "--repeats", 10, "--repeat-time", "200us", "--run-timeout", "5s"]
            for limit in "--trials", "--trials-per-task", "--early-stop":
                command += [limit, count]
            subprocess.run([str(part) for part in command], check=True)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def replay(tools, records, trials, seeds, fewest):
    done = subprocess.run([tools / "tune_replay", records, str(trials), str(seeds), str(fewest)], check=True,
                          capture_output=True)
    sys.stderr.buffer.write(done.stderr)
    runs = [run for run in json.loads(done.stdout) if run["curve"]]
    points = [point for point in POINTS if point <= trials]
    columns = [*points, "area"]
    spaces = sorted({run["task"] for run in runs})
    searches = list(dict.fromkeys(run["search"] for run in runs))
    # At each number of trials the fastest time so far by the fastest recorded one; a search that ran out stays there.
    reached = {}
    for run in runs:
        curve = [value / run["least"] for value in run["curve"]]
        curve += curve[-1:] * (trials - len(curve))
        for column in columns:
            value = sum(curve) / trials if column == "area" else curve[column - 1]
            reached.setdefault((run["task"], run["search"], column), []).append(value)
    mean = {key: sum(values) / len(values) for key, values in reached.items()}
    header = f"{'search':<12}" + "".join(f"{column:>8}" for column in columns)
    for space in spaces:
        run = next(run for run in runs if run["task"] == space)
        print(f"\n{space}: {run['recorded']} of {run['schedules']:.0f} schedules recorded, the fastest one takes "
              f"{run['least']:.3f} of the default's time\n{header}")
        for search in searches:
            print(f"{search:<12}" + "".join(f"{mean[space, search, column]:8.3f}" for column in columns))
    print(f"\ngeometric mean over {len(spaces)} spaces, {seeds} seeds\n{header}")
    for search in searches:
        values = [geometric_mean([mean[space, search, column] for space in spaces]) for column in columns]
        print(f"{search:<12}" + "".join(f"{value:8.3f}" for value in values))
    for search in searches[1:]:
        for column in columns[3:]:
            pairs = [(mean[space, search, column], mean[space, "random", column]) for space in spaces]
            better, worse = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
            print(f"{search} against random, {column}: better in {better} spaces, worse in {worse}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=list(SPACES), metavar="NAME")
    parser.add_argument("--records", type=pathlib.Path, required=True)
    parser.add_argument("--measure", metavar="N", type=int)
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--fewest", type=int, default=500, help="schedules of a space that is replayed")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.bin.resolve(), arguments.records, arguments.measure, arguments.names)
    replay(arguments.bin.resolve(), arguments.records, arguments.trials, arguments.seeds, arguments.fewest)


if __name__ == "__main__":
    main()
