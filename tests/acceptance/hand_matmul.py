"""The hand-scheduled 1024 x 1024 x 1024 product of apps/examples/tutorials/hand_matmul.cc beside ONNX Runtime, on one
thread: equal numbers, then the ratio of the minima of interleaved runs (above 1: Ingot is faster). Exits 1 below the
limit, 77 (skipped) without onnxruntime.

usage: hand_matmul.py BIN_DIR [--rounds N] [--limit RATIO]"""
import argparse, json, pathlib, subprocess, sys, tempfile, time

from tools import Tools

try:
    import numpy as np, onnx, onnxruntime
    from onnx import TensorProto, helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

SIZE = 1024


def make_session(path):
    def info(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [SIZE, SIZE])

    node = helper.make_node("MatMul", ["a", "b"], ["c"])
    graph = helper.make_graph([node], "product", [info("a"), info("b")], [info("c")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def measure_peer(session, binding, seconds):
    best, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        session.run_with_iobinding(binding)
        best = min(best, time.perf_counter() - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--limit", type=float, default=0.9)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder_name:
        folder = pathlib.Path(folder_name)
        program, inputs, result = folder / "matmul.ingot", folder / "inputs.npz", folder / "c.npz"
        made = subprocess.run([arguments.bin / "tutorial_hand_matmul", program], capture_output=True, text=True)
        if made.returncode != 0:
            sys.exit(made.stderr)
        Tools(arguments.bin).check_round_trips([program])
        print(made.stdout)
        rng = np.random.default_rng(1)
        feeds = {name: rng.random((SIZE, SIZE), dtype=np.float32) for name in ("a", "b")}
        session = make_session(folder / "product.onnx")
        expected = session.run(None, feeds)[0]
        np.savez(inputs, A=feeds["a"], B=feeds["b"], C=np.zeros_like(expected))
        run = [arguments.bin / "vm-run", program, inputs, "--entry", "matmul", "--output", f"C=@{result}"]
        done = subprocess.run(run, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        np.testing.assert_allclose(np.load(result)["C"], expected, rtol=1e-5)
        binding = session.io_binding()
        for name, value in feeds.items():
            binding.bind_cpu_input(name, value)
        binding.bind_output("c", "cpu")
        bench = [arguments.bin / "vm-bench", program, "--entry", "matmul", "--input", f"@{inputs}", "--json", "-"]
        bench += ["--threads", "1", "--warmup", "50ms", "--min-time", f"{arguments.seconds}s"]
        peer = ours = float("inf")
        for _ in range(arguments.rounds):
            peer = min(peer, measure_peer(session, binding, arguments.seconds))
            timed = subprocess.run(bench, check=True, capture_output=True)
            ours = min(ours, json.loads(timed.stdout)["benchmarks"][0]["min_time"] * 1e-9)
    ratio = peer / ours
    print(f"ONNX Runtime {peer * 1e3:.2f} ms, by hand {ours * 1e3:.2f} ms: {ratio:.2f} of its speed")
    return 0 if ratio >= arguments.limit else 1


if __name__ == "__main__":
    sys.exit(main())
