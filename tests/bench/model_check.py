"""What scripts that compile whole ONNX files share: compile one, draw inputs for sizes of its free dims, run it beside
ONNX Runtime, say how far apart results are and how long both take, and keep a line for each in a file, so that a run
goes on where another stopped. It knows no model.

A result is right when it is as near to ONNX Runtime's as float32 arithmetic in another order brings it, or no further
than twice what ONNX Runtime is from itself: between its levels of optimisation and, where the model rounds to few bits,
when its floats move by a part of their last bits. Such networks turn a last bit of an activation into a step, and
only that says how large steps are."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

onnxruntime.set_default_logger_severity(4)
ROUNDING = 2e-3  # of the greatest number of a result
LEAST = 1e-4  # the greatest number of a result counts for no less: activations have absolute errors
OWN_STEPS = 2.0  # times how far ONNX Runtime is from itself
ROUNDED = re.compile("Quant|Integer|QLinear|QGemm|QMoE|NBits|Bnb4")  # operators that round to few bits
# Parts of an element: an order of summation moves float32 so far; rounding moves float16 so far, at each operator of
# which ONNX Runtime keeps the result in float32.
NUDGES = {"float32": 1e-6, "float16": 5e-4}
SEEDS = 3  # of nudged copies
SHORT = 1.0  # milliseconds
LEVELS = onnxruntime.GraphOptimizationLevel
DTYPES = {"float": np.float32, "double": np.float64, "float16": np.float16, "bool": np.bool_, "string": np.object_}


class Refused(Exception):
    """The model was not compiled, or the executable did not run; says why in one line."""


def session(model, level=LEVELS.ORT_ENABLE_ALL, threads=1):
    """Of a file or of a model's bytes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level, options.log_severity_level = level, 4
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def nudged(array, rng):
    """An array as other orders of summation and other elementary functions might have given it."""
    part = NUDGES.get(array.dtype.name)
    if part is None:
        return array
    with np.errstate(over="ignore"):
        moved = (array * (1 + part * rng.standard_normal(array.shape))).astype(array.dtype)
    return np.where(np.isfinite(moved), moved, array)


def graphs_of(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graphs_of(attribute.g)


def without_permissions(model):
    """Takes from a model what lets ONNX Runtime compute in fewer bits than it says (accuracy_level); was there any?"""
    found = False
    for graph in graphs_of(model.graph):
        for node in graph.node:
            for attribute in [attribute for attribute in node.attribute if attribute.name == "accuracy_level"]:
                node.attribute.remove(attribute)
                found = True
    return found


def rounds(model):
    """Does it round to few bits or to float16?"""
    return any(ROUNDED.search(node.op_type) for graph in graphs_of(model.graph) for node in graph.node) or any(
        tensor.data_type == onnx.TensorProto.FLOAT16 for tensor in model.graph.initializer)


def nudged_model(model, rng):
    """The bytes of a copy with each float weight nudged, but those that are sizes."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    sizes = {name for graph in graphs_of(copy.graph) for node in graph.node if node.op_type in ("Resize", "Upsample")
             for name in node.input[1:]}
    for graph in graphs_of(copy.graph):
        for tensor in graph.initializer:
            array = onnx.numpy_helper.to_array(tensor)
            if array.dtype.name in NUDGES and tensor.name not in sizes:
                tensor.CopyFrom(onnx.numpy_helper.from_array(nudged(array, rng), tensor.name))
    return copy.SerializeToString()


def legal(call, *arguments):
    """What a call of ONNX Runtime gives; None where it refuses, as it does where a nudged number was a size."""
    try:
        return call(*arguments)
    except Exception:
        return None


class Peers:
    """ONNX Runtime on a model: what it gives at each level of optimisation and, of a model that rounds, when floats
    move a little."""
    def __init__(self, path):
        model = onnx.load(path)
        source = model.SerializeToString() if without_permissions(model) else path
        self.plain, self.fast = session(source, LEVELS.ORT_DISABLE_ALL), session(source)
        self.timed = self.fast if source is path else session(path)
        self.names = [info.name for info in self.plain.get_outputs()]
        nudges = (nudged_model(model, np.random.default_rng(seed)) for seed in range(SEEDS if rounds(model) else 0))
        self.moved = list(filter(None, (legal(session, nudge, LEVELS.ORT_DISABLE_ALL) for nudge in nudges)))

    def results(self, feeds):
        """A list of results by name for each of them, the plain one first."""
        rng = np.random.default_rng(0)
        results = [self.plain.run(None, feeds), self.fast.run(None, feeds)]
        moved = ({name: nudged(array, rng) for name, array in feeds.items()} for _ in self.moved)
        results += filter(None, (legal(peer.run, None, values) for peer, values in zip(self.moved, moved)))
        return [dict(zip(self.names, values)) for values in results]


def free_dims(peer):
    """The names of the dims of inputs that have no size; those without a name are called INPUT:AXIS."""
    names = []
    for info in peer.get_inputs():
        names += [name for name in dims_of(info) if isinstance(name, str) and name not in names]
    return names


def dims_of(info):
    named = [
        d if isinstance(d, str) and d or isinstance(d, int) and d > 0 else f"{info.name}:{axis}"
        for axis, d in enumerate(info.shape)
    ]
    return named


def draw(peer, sizes, seed=0, made=None, default=1):
    """Inputs by name. sizes: by the name of a free dim; made: by the name of an input, an array or a function of its
    shape and a generator. Others: numbers around 0, integers below 32, masks of ones."""
    rng, feeds = np.random.default_rng(seed), {}
    for info in peer.get_inputs():
        shape = [d if isinstance(d, int) else sizes.get(d, default) for d in dims_of(info)]
        kind = info.type[len("tensor("):-1]
        dtype = np.dtype(DTYPES.get(kind, kind))
        given = (made or {}).get(info.name)
        if given is not None:
            array = given(shape, rng) if callable(given) else given
        elif "mask" in info.name.lower() or dtype == np.bool_:
            array = np.ones(shape)
        elif dtype.kind == "O":
            array = np.full(shape, "a", object)
        elif dtype.kind == "f":
            array = rng.standard_normal(shape)
        else:
            array = rng.integers(0, 32, shape)
        feeds[info.name] = np.asarray(array, dtype)
    return feeds


def last_line(result):
    lines = [line for line in (result.stdout + "\n" + result.stderr).splitlines() if line.strip()]
    said = [line for line in lines if "error" in line.lower()]
    return (said or lines or [f"exit code {result.returncode}"])[-1].strip()[:300]


def call(*command, timeout):
    try:
        result = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace",
                                timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Refused(f"{pathlib.Path(command[0]).name} took more than {timeout} s") from None
    if result.returncode != 0:
        raise Refused(last_line(result))
    return result.stdout


def compiled(bin_dir, model, executable, timeout=150, options=()):
    """Compiles; gives the seconds that it took."""
    begin = time.perf_counter()
    call(bin_dir / "vm-compile", model, "-o", executable, "--progress", "never", *options, timeout=timeout)
    return time.perf_counter() - begin


def run(bin_dir, executable, feeds, timeout=150):
    with tempfile.TemporaryDirectory() as folder:
        given, results = pathlib.Path(folder, "in.npz"), pathlib.Path(folder, "out.npz")
        np.savez(given, **feeds)
        call(bin_dir / "vm-run", executable, given, "--output", f"@{results}", timeout=timeout)
        with np.load(results, allow_pickle=False) as file:
            return dict(file)


def distance(got, want):
    """How far two results are apart, as a part of the greatest number; infinite for unlike shapes, types or NaNs; of
    integers and strings the part that differs."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    if want.dtype.kind not in "fc":
        return float((got != want).mean()) if want.size else 0.0
    got, want = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(all="ignore"):
        apart = np.where((got == want) | (np.isnan(got) & np.isnan(want)), 0, np.abs(got - want))
    greatest = np.abs(want[np.isfinite(want)]).max(initial=0)
    apart = np.where(np.isnan(apart), np.inf, apart).max(initial=0)
    return 0.0 if apart == 0 else float(apart / max(greatest, LEAST))


def judge(got, results):
    """(right, distance of the furthest result, how far ONNX Runtime is from itself, what is wrong), of results by name
    and of what Peers gave."""
    furthest, own, wrong = 0.0, 0.0, ""
    plain = results[0]
    for name, want in plain.items():
        if not isinstance(want, np.ndarray):
            continue  # a sequence or a map
        if name not in got:
            return False, float("inf"), own, f"{name} is missing"
        near = min(distance(got[name], other[name]) for other in results[:2])
        apart = max(distance(other[name], want) for other in results[1:])
        if not near <= max(ROUNDING, OWN_STEPS * apart) and near >= furthest:
            wrong = f"{name} {got[name].dtype}{list(got[name].shape)}, expected {want.dtype}{list(want.shape)}: {near:.2g}"
        furthest, own = max(furthest, near), max(own, apart)
    return not wrong, furthest, own, wrong


def times(bin_dir, executable, peer, feeds, seconds=0.4):
    """(ours, theirs) in milliseconds of the processor, one thread: least of calls in turns, both from Python here, so
    that other work on the machine falls on both alike; ours also by vm-bench where it is short, and what Python adds
    counts."""
    os.environ.setdefault("INGOT_LIBRARY", str(bin_dir.parent / "vm/libingot.so"))
    module_path = str(pathlib.Path(__file__).resolve().parent.parent.parent / "apps/python")
    if module_path not in sys.path:
        sys.path.insert(0, module_path)
    import ingot
    model = ingot.load(executable, threads=1)
    least, begin, rounds = [float("inf")] * 2, time.perf_counter(), 0
    while rounds < 3 or time.perf_counter() - begin < 2 * seconds:
        for i, invoke in enumerate((lambda: model(**feeds), lambda: peer.run(None, feeds))):
            invoke()  # what the other one left in caches is no part of it
            start = time.process_time()
            invoke()
            least[i] = min(least[i], (time.process_time() - start) * 1e3)
        rounds += 1
    if least[0] < SHORT:
        with tempfile.TemporaryDirectory() as folder:
            given = pathlib.Path(folder, "in.npz")
            np.savez(given, **feeds)
            said = call(bin_dir / "vm-bench", executable, "--input", f"@{given}", "--warmup", "20ms", "--min-time",
                        f"{int(seconds * 1000)}ms", "--json", "-", timeout=60)
        least[0] = min(least[0], json.loads(said)["benchmarks"][0]["min_time"] * 1e-6)
    return tuple(least)


def check(bin_dir, model, calls, directory, timeout=150, timed=True):
    """A row of what came of a model: calls are feeds by a label, or a function of a session that gives them."""
    row = {"compile_s": None, "calls": {}, "problem": ""}
    executable = pathlib.Path(directory, "checked.ingot")
    try:
        row["compile_s"] = round(compiled(bin_dir, model, executable, timeout), 1)
        peers = Peers(model)
        for label, feeds in (calls(peers.plain) if callable(calls) else calls).items():
            right, furthest, own, wrong = judge(run(bin_dir, executable, feeds), peers.results(feeds))
            row["calls"][label] = entry = {"right": right, "apart": furthest, "own": own}
            if not right:
                row["problem"] = row["problem"] or f"{label}: {wrong}"
            if timed:
                entry["ours"], entry["theirs"] = times(bin_dir, executable, peers.timed, feeds)
                entry["ratio"] = entry["ours"] / entry["theirs"]
    except Refused as reason:
        row["problem"] = str(reason)
    except OSError:
        raise
    except Exception as error:  # of ONNX Runtime: a model that it does not run is no case
        row["problem"] = f"no case: {type(error).__name__} {str(error).splitlines()[0][:200]}"
    finally:
        executable.unlink(missing_ok=True)
    return row


def check_files(bin_dir, folder, table, wanted, again, timed):
    """Checks FOLDER/LABEL.onnx for each (label, calls) that is wanted, but those whose row is good. Gives the table."""
    table = Table(folder / table)
    for label, calls in wanted:
        path = folder / f"{label}.onnx"
        if not path.exists() or table.good(label) and not again:
            continue
        with tempfile.TemporaryDirectory() as directory:
            table.add(label, check(bin_dir, path, calls, directory, timed=timed))
    table.summary()
    return table


class Table:
    """Rows by name, kept in a file of JSON lines; the last line of a name counts."""
    def __init__(self, path):
        self.path, self.rows = pathlib.Path(path), {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                row = json.loads(line)
                self.rows[row["name"]] = row

    def good(self, name):
        return name in self.rows and not self.rows[name]["problem"]

    def add(self, name, row):
        self.rows[name] = row = {"name": name, **row}
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(self.line(row), flush=True)

    @staticmethod
    def line(row):
        ratios = [call["ratio"] for call in row["calls"].values() if "ratio" in call]
        apart = max((call["apart"] for call in row["calls"].values()), default=0)
        took = "      " if row["compile_s"] is None else f"{row['compile_s']:6.1f}"
        return (f"{row['name']:44} {took} s  {len(row['calls'])} calls  {apart:8.1e}  "
                f"{'/'.join(f'{ratio:.2f}' for ratio in ratios):24} {row['problem']}")

    def summary(self):
        rows = list(self.rows.values())
        ratios = [call["ratio"] for row in rows for call in row["calls"].values() if "ratio" in call]
        good = sum(not row["problem"] for row in rows)
        print(f"{good} of {len(rows)} models are right", end="")
        print(
            f"; {np.exp(np.mean(np.log(ratios))):.2f} of ONNX Runtime's time (geometric mean of {len(ratios)} calls), "
            f"{max(ratios):.2f} at worst, {sum(r > 1.3 for r in ratios)} beyond 1.3" if ratios else "")
