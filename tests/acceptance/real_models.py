"""Real models end to end, against ONNX Runtime: each is compiled once, and one executable serves every length.

usage: real_models.py BIN_DIR [MODELS_DIR [NAME ...]]    exits 77 (skipped) without numpy, onnx and onnxruntime

Without MODELS_DIR: small models with random weights, made here: an encoder with a mask and its normalisations spelled
out, a decoder with a cache, a decoder with rotated positions and grouped heads, and a convolutional network.
With it: its models (MODELS_DIR/NAME/model.onnx, inputs.npz, outputs.npz, as scripts/bench_peers takes them), and the
dynamic ones at further lengths; prints the time that each takes to compile and to run, and ONNX Runtime's."""
import json, pathlib, sys, tempfile, time

from tools import Tools

try:
    import numpy as np, onnx, onnxruntime
    from onnx import TensorProto as T, helper as h, numpy_helper as nh
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv[1]).resolve()
MODELS = ["mlp", "matmul1024", "resnet50", "resnet50_v2", "mobilenet_v2", "densenet121", "efficientnet_b0", "vit_b_16",
          "shufflenet", "convnext_tiny", "bert_base", "bert_base_dyn", "gpt2_prefill", "gpt2_decode", "gpt2_decode_dyn",
          "lstm", "tiny_chain"]
DYNAMIC = {"bert_base_dyn": ("seq", [2, 17, 128, 512]), "gpt2_decode_dyn": ("past", [1, 63, 500])}
failures = []


tool = Tools(BIN)


def session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def compiled(model, out):
    result = tool("vm-compile", model, "-o", out, "--progress", "never")
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines()
        failures.append(f"{out.stem}: {lines[-1] if lines else result.returncode}")
        print(f"FAIL {out.stem}: not compiled: {lines[-1] if lines else ''}")
        return None
    seconds = tool.seconds
    check_zeroed(out)
    return seconds


def check_zeroed(executable):
    """The compiler's code writes all memory before it reads it, and the VM can prove that: nothing is zeroed."""
    described = json.loads(tool("vm-inspect", executable, "--json", "-").stdout)
    zeroed = [f'{row["type"]} at {function["name"]}, {row["instruction"]}' for function in described["functions"]
              for row in function.get("zeroed", [])]
    if zeroed:
        failures.append(f"{executable.stem}: zeroes {', '.join(zeroed)}")
        print(f"FAIL {executable.stem}: zeroes {', '.join(zeroed)}")


def compare(name, executable, inputs, outputs, directory):
    """Runs the executable on inputs and compares with outputs; both are dicts or files."""
    files = []
    for what, tensors in (("inputs", inputs), ("outputs", outputs)):
        if isinstance(tensors, dict):
            np.savez(directory / f"{what}.npz", **tensors)
            tensors = directory / f"{what}.npz"
        files.append(tensors)
    result = tool("vm-run", executable, files[0], "--expect", f"@{files[1]}", "--rtol", "1e-3", "--atol", "1e-4")
    if result.returncode != 0:
        lines = (result.stdout + result.stderr).strip().splitlines()
        failures.append(f"{name}: {lines[-1] if lines else result.returncode}")
        print(f"FAIL {name}: {lines[-1] if lines else ''}")
    return result.returncode == 0


def random_inputs(model_inputs, dims, rng, vocabulary):
    """Values for every input; symbolic dims take their number from dims."""
    tensors = {}
    for info in model_inputs:
        shape = [d if isinstance(d, int) else dims[d] for d in info.shape]
        if info.type == "tensor(int64)" and "mask" in info.name:
            tensors[info.name] = (np.arange(shape[-1]) < max(shape[-1] * 3 // 4,
                                                             1)).astype(np.int64) * np.ones(shape, np.int64)
        elif info.type == "tensor(int64)":
            tensors[info.name] = rng.integers(0, vocabulary, shape)
        else:
            tensors[info.name] = rng.standard_normal(shape).astype(np.float32)
    return tensors


def measured(executable, inputs):
    """The least time of an invocation in milliseconds, one thread."""
    result = tool("vm-bench", executable, "--input", f"@{inputs}", "--threads", 1, "--min-time", "1s", "--json", "-")
    if result.returncode != 0:
        return float("nan")
    return json.loads(result.stdout)["benchmarks"][0]["min_time"] / 1e6


def measured_peer(peer, tensors):
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < 1:
        start = time.perf_counter()
        peer.run(None, tensors)
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def check_folder(models, names, directory):
    print(f"{'model':18} {'compile s':>9} {'MB':>7} {'run ms':>9} {'ort ms':>9} {'ratio':>6}")
    for name in names:
        folder = models / name
        if not (folder / "model.onnx").exists():
            print(f"SKIP {name}: not in {models}")
            continue
        executable = directory / f"{name}.ingot"
        seconds = compiled(folder / "model.onnx", executable)
        if seconds is None:
            continue
        good = compare(name, executable, folder / "inputs.npz", folder / "outputs.npz", directory)
        peer = session(folder / "model.onnx")
        ours = measured(executable, folder / "inputs.npz")
        theirs = measured_peer(peer, dict(np.load(folder / "inputs.npz")))
        print(f"{name:18} {seconds:9.1f} {executable.stat().st_size / 1e6:7.1f} {ours:9.3f} {theirs:9.3f} "
              f"{ours / theirs:6.2f}{'' if good else '  WRONG'}", flush=True)
        symbol, lengths = DYNAMIC.get(name, (None, []))
        for length in lengths:
            tensors = random_inputs(peer.get_inputs(), {symbol: length}, np.random.default_rng(length), 30000)
            expected = dict(zip([o.name for o in peer.get_outputs()], peer.run(None, tensors)))
            if compare(f"{name} {symbol}={length}", executable, tensors, expected, directory):
                ours, theirs = measured(executable, directory / "inputs.npz"), measured_peer(peer, tensors)
                print(f"  {symbol}={length:<12} {'':9} {'':7} {ours:9.3f} {theirs:9.3f} {ours / theirs:6.2f}",
                      flush=True)
        executable.unlink()


class Graph:
    """Nodes in the order they are made; every call returns the name of its result."""

    def __init__(self, seed):
        self.nodes, self.weights, self.rng = [], [], np.random.default_rng(seed)

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"{kind.lower()}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(h.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def const(self, value, dtype=np.float32):
        name = f"const_{len(self.weights)}"
        self.weights.append(nh.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape):
        return self.const(self.rng.normal(0, shape[0] ** -0.5, shape))

    def shape(self, *dims):
        return self.const(dims, np.int64)

    def layer_norm(self, x, width):  # as exporters without the operator spell it
        distance = self.op("Sub", x, self.op("ReduceMean", x, self.shape(-1)))
        variance = self.op("ReduceMean", self.op("Pow", distance, self.const(2.0)), self.shape(-1))
        root = self.op("Sqrt", self.op("Add", variance, self.const(1e-5)))
        scaled = self.op("Mul", self.op("Div", distance, root), self.const(self.rng.normal(1, 0.1, width)))
        return self.op("Add", scaled, self.const(self.rng.normal(0, 0.1, width)))

    def rms_norm(self, x, width):
        mean = self.op("ReduceMean", self.op("Pow", x, self.const(2.0)), self.shape(-1))
        root = self.op("Sqrt", self.op("Add", mean, self.const(1e-6)))
        return self.op("Mul", self.const(self.rng.normal(1, 0.1, width)), self.op("Div", x, root))

    def linear(self, x, rows, columns):
        return self.op("Add", self.op("MatMul", x, self.weight(rows, columns)),
                       self.const(self.rng.normal(0, 0.1, columns)))

    def heads(self, x, num_heads, depth, perm=(0, 2, 1, 3)):
        return self.op("Transpose", self.op("Reshape", x, self.shape(0, -1, num_heads, depth)), perm=list(perm))

    def join_heads(self, x, width):
        return self.op("Reshape", self.op("Transpose", x, perm=[0, 2, 1, 3]), self.shape(0, -1, width))

    def gelu(self, x):
        erf = self.op("Erf", self.op("Div", x, self.const(2**0.5)))
        return self.op("Mul", x, self.op("Mul", self.const(0.5), self.op("Add", erf, self.const(1.0))))

    def gelu_tanh(self, x):
        cube = self.op("Mul", self.op("Pow", x, self.const(3.0)), self.const(0.044715))
        tanh = self.op("Tanh", self.op("Mul", self.op("Add", x, cube), self.const((2 / np.pi) ** 0.5)))
        return self.op("Mul", self.op("Mul", x, self.const(0.5)), self.op("Add", tanh, self.const(1.0)))

    def causal_mask(self, length, past):
        """[1, 1, length, past + length], 0 or the lowest number, from shapes alone."""
        total = self.op("Add", length, past)
        keys = self.op("Range", self.const(0, np.int64), total, self.const(1, np.int64))
        queries = self.op("Range", past, total, self.const(1, np.int64))
        seen = self.op("LessOrEqual", self.op("Unsqueeze", keys, self.shape(0)),
                       self.op("Unsqueeze", queries, self.shape(1)))
        mask = self.op("Where", seen, self.const(0.0), self.const(np.finfo(np.float32).min))
        return self.op("Unsqueeze", mask, self.shape(0, 1))

    def model(self, inputs, outputs):
        """outputs: graph names by the names they get."""
        for name, source in outputs.items():
            self.nodes.append(h.make_node("Identity", [source], [name]))
        graph = h.make_graph(self.nodes, "g", [h.make_tensor_value_info(n, t, s) for n, (t, s) in inputs.items()],
                             [h.make_tensor_value_info(n, T.FLOAT, None) for n in outputs], self.weights)
        return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=10)


def encoder(width=48, num_heads=3, layers=2, vocabulary=97):
    g = Graph(1)
    depth = width // num_heads
    length = g.op("Squeeze", g.op("Shape", "ids", start=1, end=2))
    positions = g.op("Unsqueeze", g.op("Range", g.const(0, np.int64), length, g.const(1, np.int64)), g.shape(0))
    x = g.op("Add", g.op("Gather", g.weight(vocabulary, width), "ids"), g.op("Gather", g.weight(256, width), positions))
    x = g.layer_norm(x, width)
    keep = g.op("Cast", g.op("Unsqueeze", "attention_mask", g.shape(1, 2)), to=T.FLOAT)
    mask = g.op("Mul", g.op("Sub", g.const(1.0), keep), g.const(-10000.0))
    for _ in range(layers):
        q, k, v = (g.linear(x, width, width) for _ in range(3))
        scores = g.op("MatMul", g.heads(q, num_heads, depth), g.heads(k, num_heads, depth, (0, 2, 3, 1)))
        scores = g.op("Add", g.op("Div", scores, g.const(depth**0.5)), mask)
        mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), g.heads(v, num_heads, depth))
        x = g.layer_norm(g.op("Add", g.linear(g.join_heads(mixed, width), width, width), x), width)
        x = g.layer_norm(g.op("Add", g.linear(g.gelu(g.linear(x, width, 4 * width)), 4 * width, width), x), width)
    return g.model({"ids": (T.INT64, ["batch", "length"]), "attention_mask": (T.INT64, ["batch", "length"])},
                   {"hidden": x})


def decoder(width=48, num_heads=3, layers=2, vocabulary=97):
    g = Graph(2)
    depth = width // num_heads
    past = g.op("Squeeze", g.op("Shape", "k0", start=2, end=3))
    length = g.op("Squeeze", g.op("Shape", "ids", start=1, end=2))
    positions = g.op("Range", past, g.op("Add", past, length), g.const(1, np.int64))
    table = g.weight(vocabulary, width)
    x = g.op("Add", g.op("Gather", table, "ids"),
             g.op("Gather", g.weight(256, width), g.op("Unsqueeze", positions, g.shape(0))))
    mask, outputs = g.causal_mask(length, past), {}
    for i in range(layers):
        q, k, v = g.op("Split", g.linear(g.layer_norm(x, width), width, 3 * width), outputs=3, axis=-1, num_outputs=3)
        outputs[f"k{i}_out"] = k = g.op("Concat", f"k{i}", g.heads(k, num_heads, depth), axis=2)
        outputs[f"v{i}_out"] = v = g.op("Concat", f"v{i}", g.heads(v, num_heads, depth), axis=2)
        scores = g.op("MatMul", g.heads(q, num_heads, depth), g.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = g.op("Add", g.op("Mul", scores, g.const(depth**-0.5)), mask)
        mixed = g.join_heads(g.op("MatMul", g.op("Softmax", scores, axis=-1), v), width)
        x = g.op("Add", x, g.linear(mixed, width, width))
        x = g.op("Add", x, g.linear(g.gelu_tanh(g.linear(g.layer_norm(x, width), width, 4 * width)), 4 * width, width))
    outputs["logits"] = g.op("MatMul", g.layer_norm(x, width), g.op("Transpose", table, perm=[1, 0]))
    caches = {f"{n}{i}": (T.FLOAT, [1, num_heads, "past", depth]) for i in range(layers) for n in "kv"}
    return g.model({"ids": (T.INT64, [1, "length"]), **caches}, outputs)


def rotary_decoder(width=64, num_heads=4, key_heads=2, vocabulary=97):
    g = Graph(3)
    depth = width // num_heads
    length = g.op("Squeeze", g.op("Shape", "ids", start=1, end=2))
    zero = g.const(0, np.int64)
    positions = g.op("Cast", g.op("Range", zero, length, g.const(1, np.int64)), to=T.FLOAT)
    angles = g.op("Mul", g.op("Unsqueeze", positions, g.shape(1)),
                  g.const(10000.0 ** -(np.arange(0, depth, 2) / depth)))
    angles = g.op("Concat", angles, angles, axis=-1)
    cosine, sine = g.op("Cos", angles), g.op("Sin", angles)

    def rotated(x):
        first = g.op("Slice", x, g.shape(0), g.shape(depth // 2), g.shape(-1))
        second = g.op("Slice", x, g.shape(depth // 2), g.shape(depth), g.shape(-1))
        turned = g.op("Concat", g.op("Neg", second), first, axis=-1)
        return g.op("Add", g.op("Mul", x, cosine), g.op("Mul", turned, sine))

    x = g.op("Gather", g.weight(vocabulary, width), "ids")
    normed = g.rms_norm(x, width)
    q = rotated(g.heads(g.op("MatMul", normed, g.weight(width, width)), num_heads, depth))
    k = rotated(g.heads(g.op("MatMul", normed, g.weight(width, key_heads * depth)), key_heads, depth))
    v = g.heads(g.op("MatMul", normed, g.weight(width, key_heads * depth)), key_heads, depth)
    group = num_heads // key_heads
    grouped = g.op("Reshape", q, g.shape(0, key_heads, group, -1, depth))
    keys = g.op("Unsqueeze", g.op("Transpose", k, perm=[0, 1, 3, 2]), g.shape(2))
    scores = g.op("Mul", g.op("MatMul", grouped, keys), g.const(depth**-0.5))
    mask = g.op("Unsqueeze", g.causal_mask(length, zero), g.shape(0))
    mixed = g.op("MatMul", g.op("Softmax", g.op("Add", scores, mask), axis=-1), g.op("Unsqueeze", v, g.shape(2)))
    mixed = g.join_heads(g.op("Reshape", mixed, g.shape(0, num_heads, -1, depth)), width)
    x = g.op("Add", x, g.op("MatMul", mixed, g.weight(width, width)))
    normed = g.rms_norm(x, width)
    gate = g.op("MatMul", normed, g.weight(width, 3 * width))
    gate = g.op("Mul", gate, g.op("Sigmoid", gate))
    gated = g.op("Mul", gate, g.op("MatMul", normed, g.weight(width, 3 * width)))
    x = g.op("Add", x, g.op("MatMul", gated, g.weight(3 * width, width)))
    return g.model({"ids": (T.INT64, [1, "length"])}, {"hidden": g.rms_norm(x, width)})


def convolutional():
    g = Graph(4)

    def conv(x, out, into, size, **attributes):
        y = g.op("Conv", x, g.const(g.rng.normal(0, (into * size * size) ** -0.5, (out, into, size, size))),
                 pads=[size // 2] * 4, **attributes)
        positive = g.const(g.rng.uniform(0.5, 1.5, out))
        return g.op("BatchNormalization", y, positive, g.const(g.rng.normal(0, 0.1, out)),
                    g.const(g.rng.normal(0, 0.1, out)), g.const(g.rng.uniform(0.5, 1.5, out)))

    x = g.op("Relu", conv("image", 16, 3, 3, strides=[2, 2]))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = conv(g.op("Relu", conv(x, 16, 16, 3)), 16, 16, 3)
    x = g.op("Relu", g.op("Add", x, y))
    y = conv(x, 32, 16, 1)
    y = g.op("Mul", y, g.op("Sigmoid", y))
    y = conv(y, 32, 1, 3, group=32)
    y = g.op("Mul", y, g.op("HardSigmoid", y, alpha=1 / 6, beta=0.5))
    gate = conv(g.op("Relu", conv(g.op("GlobalAveragePool", y), 8, 32, 1)), 32, 8, 1)
    y = g.op("Mul", y, g.op("Sigmoid", gate))
    y = g.op("Reshape", y, g.shape(0, 2, 16, 8, 8))  # channels shuffled
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3, 4]), g.shape(0, 32, 8, 8))
    left, right = g.op("Split", y, outputs=2, axis=1, num_outputs=2)
    x = g.op("Concat", x, conv(left, 16, 16, 1), right, axis=1)
    x = g.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = g.op("Flatten", g.op("ReduceMean", x, g.shape(2, 3)))
    return g.model({"image": (T.FLOAT, ["batch", 3, 32, 32])}, {"logits": g.linear(x, 48, 10)})


SMALL = {
    "encoder": (encoder, [{"batch": 1, "length": 2}, {"batch": 2, "length": 17}, {"batch": 1, "length": 128}]),
    "decoder": (decoder, [{"length": 1, "past": 1}, {"length": 1, "past": 63}, {"length": 7, "past": 9}]),
    "rotary_decoder": (rotary_decoder, [{"length": 1}, {"length": 17}, {"length": 64}]),
    "convolutional": (convolutional, [{"batch": 1}, {"batch": 3}]),
}


def check_small(directory):
    for name, (make, sizes) in SMALL.items():
        model = make()
        onnx.save(model, directory / f"{name}.onnx")
        executable = directory / f"{name}.ingot"
        if compiled(directory / f"{name}.onnx", executable) is None:
            continue
        peer = session(model.SerializeToString())
        for dims in sizes:
            tensors = random_inputs(peer.get_inputs(), dims, np.random.default_rng(5), 97)
            expected = dict(zip([o.name for o in peer.get_outputs()], peer.run(None, tensors)))
            label = f"{name} " + " ".join(f"{k}={v}" for k, v in dims.items())
            if compare(label, executable, tensors, expected, directory):
                print("ok", label)


def main():
    with tempfile.TemporaryDirectory(prefix="ingot-models-") as directory:
        directory = pathlib.Path(directory)
        if len(sys.argv) < 3:
            check_small(directory)
        elif not pathlib.Path(sys.argv[2]).is_dir():
            print("SKIP: there is no folder", sys.argv[2])
            return 77
        else:
            check_folder(pathlib.Path(sys.argv[2]), sys.argv[3:] or MODELS, directory)
    print(f"{len(failures)} failed" if failures else "all good")
    for failure in failures:
        print(" ", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
