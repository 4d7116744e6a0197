"""States of a context, through the tools: inputs and outputs that `vm-compile --state` joins, kept between the calls of
one context and in files between runs, against the same models fed by hand with ONNX Runtime.

usage: states.py BIN_DIR [MODELS_DIR]    exits 77 (skipped) without numpy, onnx and onnxruntime

With MODELS_DIR, a folder as scripts/bench_peers takes it: its gpt2_decode_dyn as well, 64 steps with the cache kept in
the context."""
import pathlib, sys, tempfile

from tools import Tools

try:
    import numpy as np, onnx, onnxruntime
    from onnx import TensorProto as T, helper as h, numpy_helper as nh
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv[1]).resolve()
failures = []


tool = Tools(BIN)


def check(name, good, detail=""):
    print(f"{'ok  ' if good else 'FAIL'} {name}{'' if good else ': ' + str(detail).strip()}", flush=True)
    if not good:
        failures.append(name)


def expect_error(name, result, code, *parts):
    check(name, result.returncode == code and all(part in result.stderr for part in parts),
          f"{result.returncode}: {result.stderr}")


def model(nodes, inputs, outputs, weights):
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info(n, t, s) for n, (t, s) in inputs.items()],
                         [h.make_tensor_value_info(n, t, s) for n, (t, s) in outputs.items()],
                         [nh.from_array(np.asarray(v), n) for n, v in weights.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=10)


def session(source):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def attention(batch=1, heads=2, depth=8, seq="seq"):
    """One layer whose keys and values grow along axis 2; positions come from the past."""
    width, rng, n = heads * depth, np.random.default_rng(3), h.make_node
    weights = {f"w{x}": rng.normal(0, 0.3, (width, width)).astype(np.float32) for x in "qkvo"}
    weights |= {"split": np.array([batch, -1, heads, depth]), "join": np.array([batch, -1, width]),
                "positions": rng.normal(0, 1, (64, width)).astype(np.float32), "one": np.int64(1)}
    nodes = [n("Shape", ["past_k"], ["past"], start=2, end=3), n("Shape", ["x"], ["new"], start=1, end=2),
             n("Squeeze", ["past"], ["first"]), n("Add", ["past", "new"], ["end"]), n("Squeeze", ["end"], ["last"]),
             n("Range", ["first", "last", "one"], ["places"]), n("Gather", ["positions", "places"], ["embedded"]),
             n("Add", ["x", "embedded"], ["y"])]
    for name in "qkv":
        nodes += [n("MatMul", ["y", f"w{name}"], [f"{name}0"]), n("Reshape", [f"{name}0", "split"], [f"{name}1"]),
                  n("Transpose", [f"{name}1"], [f"{name}2"], perm=[0, 2, 1, 3])]
    nodes += [n("Concat", ["past_k", "k2"], ["present_k"], axis=2),
              n("Concat", ["past_v", "v2"], ["present_v"], axis=2),
              n("Transpose", ["present_k"], ["kt"], perm=[0, 1, 3, 2]), n("MatMul", ["q2", "kt"], ["scores"]),
              n("Softmax", ["scores"], ["p"], axis=-1), n("MatMul", ["p", "present_v"], ["mixed"]),
              n("Transpose", ["mixed"], ["mixed_t"], perm=[0, 2, 1, 3]), n("Reshape", ["mixed_t", "join"], ["joined"]),
              n("MatMul", ["joined", "wo"], ["out"])]
    cache, grown = [batch, heads, "past", depth], [batch, heads, None, depth]
    return model(nodes, {"x": (T.FLOAT, [batch, seq, width]), "past_k": (T.FLOAT, cache), "past_v": (T.FLOAT, cache)},
                 {"out": (T.FLOAT, [batch, None, width]), "present_k": (T.FLOAT, grown), "present_v": (T.FLOAT, grown)},
                 weights)


def recurrent(width=6):
    """h := tanh(x W + h U); an output that reads the old value, and another state that counts."""
    rng, n = np.random.default_rng(4), h.make_node
    weights = {"w": rng.normal(0, 0.5, (width, width)).astype(np.float32),
               "u": rng.normal(0, 0.5, (width, width)).astype(np.float32), "one": np.ones(1, np.float32)}
    nodes = [n("MatMul", ["x", "w"], ["a"]), n("MatMul", ["h", "u"], ["b"]), n("Add", ["a", "b"], ["c"]),
             n("Tanh", ["c"], ["h_out"]), n("Sub", ["h_out", "h"], ["change"]),
             n("Add", ["count", "one"], ["count_out"])]
    return model(nodes, {"x": (T.FLOAT, [1, width]), "h": (T.FLOAT, [1, width]), "count": (T.FLOAT, [1])},
                 {"change": (T.FLOAT, [1, width]), "h_out": (T.FLOAT, [1, width]), "count_out": (T.FLOAT, [1])},
                 weights)


def sliding(width=4):
    """A window that shifts, and an accumulator that is rewritten whole while it grows."""
    n = h.make_node
    weights = {"first": np.array([1]), "all": np.array([2**40]), "axis": np.array([0]), "two": np.float32(2)}
    nodes = [n("Slice", ["window", "first", "all", "axis"], ["kept"]),
             n("Concat", ["kept", "x"], ["window_out"], axis=0),
             n("Mul", ["seen", "two"], ["doubled"]), n("Concat", ["doubled", "x"], ["seen_out"], axis=0),
             n("ReduceSum", ["seen"], ["sum"], keepdims=0)]
    return model(nodes, {"x": (T.FLOAT, [1, width]), "window": (T.FLOAT, [3, width]),
                         "seen": (T.FLOAT, ["past", width])},
                 {"sum": (T.FLOAT, []), "window_out": (T.FLOAT, [3, width]), "seen_out": (T.FLOAT, [None, width])},
                 weights)


def run_steps(directory, executable, steps, inputs_of, expected_of, names, first_state=None):
    """Each step a run of the tool; states travel in a file. Returns the worst error."""
    states, worst = directory / "states.safetensors", 0.0
    states.unlink(missing_ok=True)
    for step in range(steps):
        np.savez(directory / "inputs.npz", **inputs_of(step))
        load = ["--state-load", states] if step > 0 else []
        result = tool("vm-run", executable, directory / "inputs.npz", *load, "--state-save", states, "--output",
                      f"@{directory / 'outputs.npz'}")
        if result.returncode != 0:
            return result.stderr
        got, expected = dict(np.load(directory / "outputs.npz")), expected_of(step)
        for name in names:
            worst = max(worst, float(np.max(np.abs(got[name] - expected[name]))))
    return worst


def check_model(directory, name, onnx_model, state_args, pairs, first, inputs_of, outputs, steps):
    """pairs: state input -> output; first: their values before step 0."""
    path, executable = directory / f"{name}.onnx", directory / f"{name}.ingot"
    path.write_bytes(onnx_model.SerializeToString())
    result = tool("vm-compile", path, *state_args, "-o", executable)
    check(f"{name}: compiled", result.returncode == 0, result.stderr)
    if result.returncode != 0:
        return None
    peer, values = session(onnx_model.SerializeToString()), dict(first)

    def expected_of(step):
        results = dict(zip([o.name for o in peer.get_outputs()], peer.run(None, {**inputs_of(step), **values})))
        values.update({inner: results[outer] for inner, outer in pairs.items()})
        return results

    worst = run_steps(directory, executable, steps, inputs_of, expected_of, outputs)
    check(f"{name}: {steps} runs with states in a file", not isinstance(worst, str) and worst < 1e-4, worst)
    module = directory / f"{name}.py"
    tool("vm-compile", path, *state_args, "--emit=relax", "-o", module)
    result = tool("vm-compile", module, "-o", directory / "again.ingot")
    check(f"{name}: its text compiles to the same bytes",
          (directory / "again.ingot").read_bytes() == executable.read_bytes(), result.stderr)
    return executable


def check_repeat(directory, name, executable, onnx_model, inputs, pairs, first, output, steps):
    """One context, the same inputs so many times."""
    peer, values = session(onnx_model), dict(first)
    for _ in range(steps):
        results = dict(zip([o.name for o in peer.get_outputs()], peer.run(None, {**inputs, **values})))
        values.update({inner: results[outer] for inner, outer in pairs.items()})
    np.savez(directory / "inputs.npz", **inputs)
    np.savez(directory / "expected.npz", **{output: results[output]})
    result = tool("vm-run", executable, directory / "inputs.npz", "--repeat", steps, "--expect",
                  f"@{directory / 'expected.npz'}", "--rtol", "1e-3", "--atol", "1e-3", "--state-save",
                  directory / "final.npz")
    check(f"{name}: {steps} steps in one context", result.returncode == 0, result.stdout + result.stderr)
    saved = dict(np.load(directory / "final.npz"))
    worst = max(float(np.max(np.abs(saved[inner] - value))) for inner, value in values.items())
    check(f"{name}: states after {steps} steps", worst < 1e-3, worst)


def check_caches(directory):
    rng = np.random.default_rng(5)
    x = [rng.normal(0, 1, (1, 1 + step % 3, 16)).astype(np.float32) for step in range(12)]
    pairs, first = {"past_k": "present_k", "past_v": "present_v"}, {}
    first = {name: np.zeros((1, 2, 0, 8), np.float32) for name in pairs}
    args = ["--state", "past_k=present_k", "--state", "past_v=present_v", "--dim", "past=0..30", "--dim", "seq=1..3"]
    decoder = attention()
    executable = check_model(directory, "cache", decoder, args, pairs, first, lambda step: {"x": x[step]}, ["out"], 12)
    if executable is None:
        return
    check_repeat(directory, "cache", executable, decoder.SerializeToString(), {"x": x[1]}, pairs, first, "out", 10)
    text = tool("vm-inspect", executable, "--disasm", "main").stdout
    check("cache: appended in place, and read in place",
          text.count("cache_append") == 2 and "concat" not in text and "cache_view" not in text, text)
    np.savez(directory / "x.npz", x=x[2])
    result = tool("vm-run", executable, directory / "x.npz", "--repeat", 12)
    expect_error("cache: full", result, 3, 'state "past"', "past is 33, expected 0..30")
    np.savez(directory / "bad.npz", past=np.int64(2), past_k=np.zeros((1, 2, 3, 8), np.float32),
             past_v=np.zeros((1, 2, 2, 8), np.float32))
    expect_error("cache: a file whose length differs", tool("vm-run", executable, directory / "x.npz", "--state-load",
                 directory / "bad.npz"), 3, 'state "past_k": expected float32[1, 2, 2, 8], got float32[1, 2, 3, 8]')
    np.savez(directory / "bad.npz", past=np.int64(2), past_k=np.zeros((1, 2, 2, 8), np.float32))
    expect_error("cache: a file that lacks a state", tool("vm-run", executable, directory / "x.npz", "--state-load",
                 directory / "bad.npz"), 3, 'the state "past_v" is missing')
    np.savez(directory / "bad.npz", past=np.int64(2), past_q=np.zeros((1, 2, 2, 8), np.float32))
    expect_error("cache: a file with an unknown state", tool("vm-run", executable, directory / "x.npz", "--state-load",
                 directory / "bad.npz"), 3, 'there is no state "past_q"; did you mean "past_k"?')


def check_fixed(directory):
    rng = np.random.default_rng(6)
    x = [rng.normal(0, 1, (1, 6)).astype(np.float32) for _ in range(8)]
    pairs = {"h": "h_out", "count": "count_out"}
    first = {"h": np.zeros((1, 6), np.float32), "count": np.zeros(1, np.float32)}
    args = ["--state", "h=h_out", "--state", "count=count_out"]
    executable = check_model(directory, "recurrent", recurrent(), args, pairs, first, lambda step: {"x": x[step]},
                             ["change"], 8)
    if executable is not None:
        check_repeat(directory, "recurrent", executable, recurrent().SerializeToString(), {"x": x[0]}, pairs, first,
                     "change", 9)
    pairs = {"window": "window_out", "seen": "seen_out"}
    first = {"window": np.zeros((3, 4), np.float32), "seen": np.zeros((0, 4), np.float32)}
    args = ["--state", "window=window_out", "--state", "seen=seen_out", "--dim", "past=0..20"]
    check_model(directory, "sliding", sliding(), args, pairs, first, lambda step: {"x": x[step][:, :4]}, ["sum"], 8)


def check_mistakes(directory):
    path = directory / "mistakes.onnx"
    path.write_bytes(attention().SerializeToString())
    compile_with = lambda *args: tool("vm-compile", path, *args, "-o", directory / "mistakes.ingot")
    expect_error("no bound", compile_with("--state", "past_k=present_k", "--dim", "seq=1"), 2, "past without a bound",
                 "--dim past=0..1023")
    expect_error("unknown input", compile_with("--state", "pask_k=present_k"), 2, 'no input "pask_k"',
                 'did you mean "past_k"?')
    expect_error("unknown output", compile_with("--state", "past_k=presentk"), 2, 'no output "presentk"',
                 'did you mean "present_k"?')
    expect_error("unlike types", compile_with("--state", "x=present_k"), 2, "state x=present_k")
    expect_error("twice", compile_with("--state", "past_k=present_k", "--state", "past_k=present_v", "--dim",
                                       "past=0..9",
                 "--dim", "seq=1"), 2, "part of another state")
    expect_error("no pair", compile_with("--state", "past_k"), 2, "expected INPUT=OUTPUT")


def check_gpt2(directory, models):
    folder = models / "gpt2_decode_dyn"
    if not (folder / "model.onnx").exists():
        print("SKIP gpt2_decode_dyn: not in", models)
        return
    names = [f"{x}{layer}" for layer in range(12) for x in "kv"]
    executable = directory / "gpt2.ingot"
    args = [arg for name in names for arg in ("--state", f"{name}={name}_out")]
    result = tool("vm-compile", folder / "model.onnx", *args, "--dim", "past=0..1023", "-o", executable)
    check("gpt2_decode_dyn: compiled", result.returncode == 0, result.stderr)
    if result.returncode != 0:
        return
    text = tool("vm-inspect", executable, "--disasm", "main").stdout
    check("gpt2_decode_dyn: every cache is appended to in place", text.count("cache_append") == 24
          and "concat" not in text)
    first = {name: np.zeros((1, 12, 0, 64), np.float32) for name in names}
    check_repeat(directory, "gpt2_decode_dyn", executable, str(folder / "model.onnx"), {"ids": np.array([[464]])},
                 {name: f"{name}_out" for name in names}, first, "logits", 64)


with tempfile.TemporaryDirectory() as temporary:
    check_caches(pathlib.Path(temporary))
    check_fixed(pathlib.Path(temporary))
    check_mistakes(pathlib.Path(temporary))
    if len(sys.argv) > 2:
        check_gpt2(pathlib.Path(temporary), pathlib.Path(sys.argv[2]))
print(f"{len(failures)} failures" if failures else "all good")
sys.exit(1 if failures else 0)
