"""Weights that are kept as they are, through the tools: in a file beside the executable (`--external-weights`) or
inside of it (`--keep-prepare`), and replaced when it is opened (`--weights`), against ONNX Runtime with the same
weights.

usage: weights.py BIN_DIR [MODELS_DIR]    exits 77 (skipped) without numpy, onnx and onnxruntime

With MODELS_DIR, a folder as scripts/bench_peers takes it: its models give the same outputs with their weights in
files."""
import json, os, pathlib, re, shutil, struct, subprocess, sys, tempfile, threading

from tools import Tools

try:
    import numpy as np, onnx, onnxruntime
    from onnx import TensorProto as T, helper as h, numpy_helper as nh
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODELS = ("mobilenet_v2", "shufflenet", "gpt2_decode", "efficientnet_b0")
tool = Tools(BIN)
failures = []


def check(name, good, detail=""):
    print(f"{'ok  ' if good else 'FAIL'} {name}{'' if good else ': ' + str(detail).strip()}", flush=True)
    if not good:
        failures.append(name)


def fails(name, result, code, *parts):
    check(name, result.returncode == code and all(part in result.stderr for part in parts),
          f"{result.returncode}: {result.stderr}")


def works(name, result):
    check(name, result.returncode == 0, f"{result.returncode}: {result.stdout} {result.stderr}")


def network(weights):
    """Two layers whose biases and scales are equal at first, a table by indices, and a scalar with a name."""
    n = h.make_node
    nodes = [n("MatMul", ["x", "w1"], ["a0"]), n("Add", ["a0", "b1"], ["a1"]), n("Mul", ["a1", "s1"], ["a2"]),
             n("Relu", ["a2"], ["a3"]), n("MatMul", ["a3", "w2"], ["c0"]), n("Add", ["c0", "b2"], ["c1"]),
             n("Mul", ["c1", "s2"], ["c2"]), n("Div", ["c2", "two"], ["c3"]),
             n("Gather", ["c3", "order"], ["y"], axis=1)]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", 16])],
                         [h.make_tensor_value_info("y", T.FLOAT, ["n", 16])],
                         [nh.from_array(v, k) for k, v in weights.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=10)


def run_onnx(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def write_safetensors(path, tensors):
    names = {np.dtype(np.float32): "F32", np.dtype(np.float64): "F64", np.dtype(np.int64): "I64"}
    header, offset = {}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": names[value.dtype], "shape": list(value.shape),
                        "data_offsets": [offset, offset + value.nbytes]}
        offset += value.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(v.tobytes() for v in tensors.values()))


def test_network(folder):
    rng = np.random.default_rng(5)
    random = lambda *shape: rng.normal(0, 1, shape).astype(np.float32)
    weights = {"w1": random(16, 16), "w2": random(16, 16), "b1": np.zeros(16, np.float32),
               "b2": np.zeros(16, np.float32), "s1": np.ones(16, np.float32), "s2": np.ones(16, np.float32),
               "two": np.float32(2), "order": np.arange(15, -1, -1)}
    x = random(3, 16)
    np.save(folder / "x.npy", x)
    onnx.save(network(weights), folder / "m.onnx")

    def expect(name, weights, *args, close=True):
        np.savez(folder / "want.npz", y=run_onnx(network(weights), {"x": x})[0])
        result = tool("vm-run", *args, folder / "x.npy", "--expect", f"@{folder}/want.npz", "--rtol", "1e-4", "--atol",
                      "1e-5")
        check(name, result.returncode == (0 if close else 1), f"{result.returncode}: {result.stderr}")

    beside = folder / "w" / "weights.safetensors"
    beside.parent.mkdir()
    works("weights go into a file of their own",
          tool("vm-compile", folder / "m.onnx", "--external-weights", beside, "-o", folder / "outside.ingot"))
    works("weights stay in the file",
          tool("vm-compile", folder / "m.onnx", "--keep-prepare", "-o", folder / "kept.ingot"))
    works("weights are packed", tool("vm-compile", folder / "m.onnx", "-o", folder / "packed.ingot"))
    expect("weights outside give the model's results", weights, folder / "outside.ingot")
    expect("weights kept inside give the model's results", weights, folder / "kept.ingot")
    works("everything is verified", tool("vm-inspect", folder / "outside.ingot", "--verify"))
    shown = json.loads(tool("vm-inspect", folder / "outside.ingot", "--json", "-", "--constants").stdout)
    outside = {c["name"]: c["file"] for c in shown["constants"] if "file" in c}
    check("every weight is in the file", outside == dict.fromkeys(("w1", "w2", "b1", "b2", "s1", "s2"),
                                                                  "w/weights.safetensors"), outside)
    reader = subprocess.run([sys.executable, ROOT / "scripts/read_executable.py", folder / "outside.ingot"],
                            capture_output=True, text=True)
    second = json.loads(reader.stdout) if reader.returncode == 0 else {}
    check("the second reader finds the same", [(c["name"], c.get("file"), c.get("offset"), c.get("replaceable"))
                                               for c in shown["constants"]]
          == [(c["name"], c.get("file"), c.get("offset"), c.get("replaceable")) for c in second.get("constants", [])],
          reader.stderr)

    # Weights that were equal are replaced one by one; scale and bias of one layer leave the other alone.
    new = {name: random(*value.shape) for name, value in weights.items() if value.size > 1 and name != "order"}
    write_safetensors(folder / "new.safetensors", new)
    write_safetensors(folder / "one.safetensors", {"b2": new["b2"]})
    for file in "outside", "kept":
        expect(f"{file}: all weights replaced", {**weights, **new}, folder / f"{file}.ingot", "--weights",
               folder / "new.safetensors")
        expect(f"{file}: one weight replaced", {**weights, "b2": new["b2"]}, folder / f"{file}.ingot", "--weights",
               folder / "one.safetensors")
    expect("other weights, other results", weights, folder / "kept.ingot", "--weights", folder / "new.safetensors",
           close=False)
    np.savez(folder / "new.npz", **new)
    if (BIN / "vm-bench").exists():
        works("vm-bench takes weights", tool("vm-bench", folder / "kept.ingot", "--input", f"@{folder / 'x.npy'}",
                                             "--weights", folder / "new.npz", "--iters", "2"))
    else:
        print("SKIP: vm-bench is not built")

    def refuses(name, file, tensors, *parts):
        write_safetensors(folder / "bad.safetensors", tensors)
        fails(name, tool("vm-run", folder / file, folder / "x.npy", "--weights", folder / "bad.safetensors"), 3, *parts)

    refuses("another name", "kept.ingot", {"b3": new["b2"]}, "no weight \"b3\"", "did you mean")
    refuses("another shape", "kept.ingot", {"b2": new["w2"]},
            "weight \"b2\": expected float32[16], got float32[16, 16]")
    refuses("another dtype", "outside.ingot", {"b2": new["b2"].astype(np.float64)},
            "expected float32[16], got float64[16]")
    fixed = "scalars and tables of integers stay as they were compiled"
    refuses("a table of indices", "kept.ingot", {"order": weights["order"]}, "no weight \"order\"", fixed)
    refuses("a scalar", "kept.ingot", {"two": weights["two"].reshape(())}, "no weight \"two\"", fixed)
    refuses("packed weights", "packed.ingot", {"b2": new["b2"]}, "weight \"b2\" cannot be replaced", "--keep-prepare")

    # What is shown of the module holds the weights, not what passes see in their place.
    dumps = folder / "dumps"
    works("the module is shown pass by pass", tool("vm-compile", folder / "m.onnx", "--keep-prepare", "--dump-dir",
                                                   dumps, "-o", folder / "x.ingot"))
    shown = {path.name: set(re.findall(r'metadata\["(\w+)"\]', path.read_text()))
             for path in sorted(dumps.glob("*.py"))}
    imported = shown["00_import.py"]
    check("dumps show weights", len(shown) > 5 and len(imported) == 2 and all(s <= imported for s in shown.values()),
          shown)

    # The file of weights is not what it was.
    whole = beside.read_bytes()
    run = lambda: tool("vm-run", folder / "outside.ingot", folder / "x.npy")
    beside.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    fails("a changed byte", run(), 4, "w/weights.safetensors", "another hash")
    beside.write_bytes(whole + b"\0")
    fails("another size", run(), 4, "another size")
    beside.unlink()
    fails("no file", run(), 3, "weights.safetensors")
    fails("no file, said by vm-inspect", tool("vm-inspect", folder / "outside.ingot", "--verify"), 3,
          "weights.safetensors")
    works("looking needs no weights", tool("vm-inspect", folder / "outside.ingot"))
    expect("no file is needed where all of it is replaced", {**weights, **new}, folder / "outside.ingot", "--weights",
           folder / "new.safetensors")
    elsewhere = folder / "elsewhere"
    elsewhere.write_bytes(whole)
    beside.symlink_to("../elsewhere")
    works("a link inside of the folder", run())
    beside.unlink()
    beside.symlink_to(elsewhere)
    fails("a link by an absolute path", run(), 3, "leads outside of the folder")
    beside.unlink()
    os.link(elsewhere, beside)
    fails("a second hard link", run(), 3, "hard links")
    beside.unlink()
    elsewhere.rename(beside)
    works("the file is back", run())
    text = folder / "outside.ingotasm"
    tool("vm-inspect", folder / "outside.ingot", "--disasm", "-o", text)
    for path in "../weights.safetensors", "/etc/passwd", "w/../../x":
        text.write_text(text.read_text().replace('"w/weights.safetensors"', f'"{path}"'))
        works(f"assembled with {path}", tool("vm-inspect", "--assemble", text, "-o", folder / "path.ingot"))
        fails(f"{path} is refused", tool("vm-run", folder / "path.ingot", folder / "x.npy"), 3, path)
        text.write_text(text.read_text().replace(f'"{path}"', '"w/weights.safetensors"'))

    # Where the file may be, and what it is.
    compile = lambda path, *more: tool("vm-compile", folder / "m.onnx", "--external-weights", path, "-o",
                                       folder / "x.ingot", *more)
    fails("a file outside of the folder", compile(folder.parent / "w.safetensors"), 2, "in or beneath")
    fails("another format", compile(folder / "w.npz"), 2, ".safetensors")
    fails("text has no file", compile(folder / "w.safetensors", "--emit=bytecode"), 2, "goes with a file")
    program = folder / "program"
    works("a program with weights outside", tool("vm-compile", folder / "m.onnx", "--external-weights",
                                                 folder / "p.safetensors", "--emit=program", "-o", program))
    for args in [], ["--weights", folder / "new.safetensors"]:
        result = subprocess.run([program, folder / "x.npy", *args], capture_output=True, text=True)
        works(f"the program runs {'with others' if args else ''}", result)
    test_replaced_under_it(folder, program)


def test_replaced_under_it(folder, program):
    """While programs run, their file of weights is renamed over by others: whole ones, damaged ones, shorter ones."""
    beside = folder / "p.safetensors"
    whole = beside.read_bytes()
    stop = threading.Event()

    def replace():
        contents = whole, whole[:-1] + bytes([whole[-1] ^ 1]), whole[:100], b"", whole + bytes(8192)
        for i in range(1 << 30):
            if stop.is_set():
                return
            other = folder / "p.new"
            other.write_bytes(contents[i % len(contents)])
            other.rename(beside)
            if i % 7 == 0:
                beside.unlink()

    writer = threading.Thread(target=replace)
    writer.start()
    outputs, codes = set(), {}
    for _ in range(60):
        result = subprocess.run([program, folder / "x.npy"], capture_output=True, text=True)
        codes[result.returncode] = codes.get(result.returncode, 0) + 1
        if result.returncode == 0:
            outputs.add(result.stdout)
    stop.set()
    writer.join()
    beside.write_bytes(whole)
    print("exit codes while weights were replaced:", dict(sorted(codes.items())))
    check("a program whose weights are replaced runs with the right ones or refuses",
          set(codes) <= {0, 3, 4} and len(codes) > 1 and len(outputs) <= 1, codes)


def test_models(folder, models):
    for name in MODELS:
        source = models / name
        if not (source / "model.onnx").exists():
            print("SKIP: there is no", source)
            continue
        works(f"{name}: compiles", tool("vm-compile", source / "model.onnx", "--external-weights",
                                        folder / "m.safetensors", "-o", folder / "m.ingot"))
        works(f"{name}: gives its outputs", tool("vm-run", folder / "m.ingot", source / "inputs.npz", "--expect",
                                                 f"@{source}/outputs.npz", "--rtol", "1e-3", "--atol", "1e-3"))


with tempfile.TemporaryDirectory(prefix="ingot-weights-") as directory:
    test_network(pathlib.Path(directory))
    if len(sys.argv) > 2:
        test_models(pathlib.Path(directory), pathlib.Path(sys.argv[2]))
print(f"{len(failures)} failures")
sys.exit(bool(failures))
