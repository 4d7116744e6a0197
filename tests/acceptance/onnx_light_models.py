"""The nine light models inside PyPI's onnx, whose weights are constants: each compiles as it is; and with its weights
replaced by random ones of sensible scale, each gives ONNX Runtime's values within 1e-3.

usage: onnx_light_models.py BIN_DIR [--short] [NAME ...]    exits 77 (skipped) without numpy, onnx and onnxruntime

--short: the smallest ones alone, unless INGOT_LONG_TESTS is set."""
import os, pathlib, sys, tempfile, time

from tools import Tools

try:
    import numpy as np, onnx, onnxruntime
    from onnx import numpy_helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

onnxruntime.set_default_logger_severity(3)
LIGHT = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
SHORT = ["squeezenet", "shufflenet"]
TOLERANCE = 1e-3


def consumers(graph):
    found = {}
    for node in graph.node:
        for place, name in enumerate(node.input):
            found.setdefault(name, []).append((node, place))
    return found


def weight(shape, uses, rng):
    """Variances and scales are positive and near 1; matrices and filters keep the size of what passes through."""
    kinds = {(node.op_type, place) for node, place in uses}
    if kinds & {("BatchNormalization", 1), ("BatchNormalization", 4)}:
        return rng.uniform(0.5, 1.5, shape)
    if len(shape) < 2:
        return rng.normal(0, 0.1, shape)
    transposed = any(n.op_type == "Gemm" and any(a.name == "transB" and a.i == 1 for a in n.attribute) for n, _ in uses)
    rows_in = any(n.op_type in ("Gemm", "MatMul") for n, _ in uses) and not transposed
    fan_in = shape[0] if rows_in else np.prod(shape[1:])
    return rng.normal(0, (2 / fan_in) ** 0.5, shape)


def with_random_weights(model):
    """Every float weight that a ConstantOfShape makes becomes a random initialiser."""
    rng = np.random.default_rng(0)
    graph = model.graph
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    uses = consumers(graph)
    kept = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in shapes:
            kept.append(node)
            continue
        shape = [int(d) for d in shapes[node.input[0]]]
        value = weight(shape, uses.get(node.output[0], []), rng).astype(np.float32)
        graph.initializer.append(numpy_helper.from_array(value, node.output[0]))
    del graph.node[:]
    graph.node.extend(kept)
    return model


def check(path, dir):
    """None, or what went wrong."""
    for option in (["--check"], ["-o", dir / "light.ingot"]):
        made = tool("vm-compile", path, *option)
        if made.returncode != 0:
            return "as it is: " + made.stderr.strip()[-400:]
    (dir / "light.ingot").unlink()
    model = with_random_weights(onnx.load(path))
    random = dir / "random.onnx"
    onnx.save(model, random)
    names = {tensor.name for tensor in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in names]
    rng = np.random.default_rng(1)
    feeds = {i.name: rng.normal(0, 1, [d.dim_value or 1 for d in i.type.tensor_type.shape.dim]).astype(np.float32)
             for i in inputs}
    np.savez(dir / "in.npz", **feeds)
    session = onnxruntime.InferenceSession(random, providers=["CPUExecutionProvider"])
    np.savez(dir / "out.npz", **dict(zip([o.name for o in model.graph.output], session.run(None, feeds))))
    del session
    made = tool("vm-compile", random, "-o", dir / "random.ingot")
    if made.returncode != 0:
        return "with random weights: " + made.stderr.strip()[-400:]
    ran = tool("vm-run", dir / "random.ingot", dir / "in.npz", "--expect", f"@{dir / 'out.npz'}", "--rtol", TOLERANCE,
               "--atol", TOLERANCE)
    return None if ran.returncode == 0 else "with random weights: " + ran.stderr.strip()[-400:]


def main():
    global tool
    tool = Tools(sys.argv[1])
    names = [name for name in sys.argv[2:] if name != "--short"]
    if "--short" in sys.argv and not os.environ.get("INGOT_LONG_TESTS"):
        names += SHORT
    paths = sorted(p for p in LIGHT.glob("light_*.onnx") if not names or any(name in p.name for name in names))
    failures = 0
    for path in paths:
        begin = time.time()
        with tempfile.TemporaryDirectory(prefix="ingot-light-") as dir:
            problem = check(path, pathlib.Path(dir))
        failures += problem is not None
        print(f"{'FAILED' if problem else 'ok':6} {path.stem} ({time.time() - begin:.1f} s)"
              f"{': ' + problem if problem else ''}", flush=True)
    print(f"{len(paths) - failures} of {len(paths)} passed")
    return 1 if failures or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
