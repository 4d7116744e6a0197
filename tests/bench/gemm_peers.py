#!/usr/bin/env python3
"""Matrix products beside ONNX Runtime: makes one small model per shape, checks the numbers, and prints the ratio of the
minima of interleaved runs (above 1: Ingot is faster).

    python tests/bench/gemm_peers.py build/release/bin [--threads N] [--rounds N] [NAME ...]

Names are of the table below; all of them by default. Needs numpy, onnx and onnxruntime. A figure, never a test.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

# name: (dims of x, dims of the right-hand side, is it a weight, value of the symbolic dimension "s" or None)
SHAPES = {
    "matmul1024": ([1024, 1024], [1024, 1024], False, None),
    "matmul1024_weight": ([1024, 1024], [1024, 1024], True, None),
    "bert_768_768": ([1, 128, 768], [768, 768], True, None),
    "bert_768_3072": ([1, 128, 768], [768, 3072], True, None),
    "bert_3072_768": ([1, 128, 3072], [3072, 768], True, None),
    "bert_qk": ([12, 128, 64], [12, 64, 128], False, None),
    "bert_pv": ([12, 128, 128], [12, 128, 64], False, None),
    "gpt2_prefill": ([1, 64, 768], [768, 2304], True, None),
    "gpt2_decode": ([1, 1, 768], [768, 2304], True, None),
    "gpt2_head": ([1, 1, 768], [768, 50257], True, None),
    "classifier_8": ([8, 100], [100, 1000], True, None),
    "rows_1": (["s", 768], [768, 768], True, 1),
    "rows_17": (["s", 768], [768, 768], True, 17),
    "rows_128": (["s", 768], [768, 768], True, 128),
    "qk_100": ([12, "s", 64], [12, 64, "s"], False, 100),
    "pv_100": ([12, "s", "s"], [12, "s", 64], False, 100),
}


def save_model(path, left, right, is_weight, rng):
    def info(name, dims):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)

    out = [*left[:-1], right[-1]]
    weight = []
    if is_weight:
        values = rng.standard_normal(right) / np.sqrt(right[0])
        weight = [numpy_helper.from_array(values.astype(np.float32), "w")]
    inputs = [info("x", left)] + ([] if is_weight else [info("w", right)])
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "product", inputs, [info("y", out)],
                              weight)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


def measure_peer(session, feeds, seconds):
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, value)
    binding.bind_output("y", "cpu")
    best, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        session.run_with_iobinding(binding)
        best = min(best, time.perf_counter() - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=pathlib.Path, help="the folder of vm-compile, vm-run and vm-bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SHAPES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.4, help="of each measurement")
    arguments = parser.parse_intermixed_args()
    unknown = [name for name in arguments.names if name not in SHAPES]
    if unknown:
        parser.error(f"unknown names {unknown}; known: {', '.join(SHAPES)}")
    failed = False
    with tempfile.TemporaryDirectory() as folder_name:
        folder = pathlib.Path(folder_name)
        model, executable = folder / "product.onnx", folder / "product.ingot"
        inputs, outputs = folder / "inputs.npz", folder / "outputs.npz"
        print(f"{'name':20} {'onnxruntime':>12} {'ingot':>12} {'ratio':>6}")
        for name in arguments.names or SHAPES:
            left, right, is_weight, size = SHAPES[name]
            rng = np.random.default_rng(1)
            save_model(model, left, right, is_weight, rng)
            subprocess.run([arguments.tools / "vm-compile", model, "-o", executable], check=True,
                           stderr=subprocess.DEVNULL)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = arguments.threads
            session = onnxruntime.InferenceSession(str(model), options)
            feeds = {
                i.name: rng.standard_normal([d if isinstance(d, int) else size for d in i.shape]).astype(np.float32)
                for i in session.get_inputs()
            }
            np.savez(inputs, **feeds)
            np.savez(outputs, y=session.run(None, feeds)[0])
            check = [arguments.tools / "vm-run", executable, inputs, "--expect", f"@{outputs}", "--rtol", "1e-3"]
            if subprocess.run([*check, "--atol", "1e-4"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode != 0:
                print(f"{name:20} other numbers than ONNX Runtime")
                failed = True
                continue
            bench = [arguments.tools / "vm-bench", executable, "--input", f"@{inputs}", "--json", "-"]
            bench += ["--threads", str(arguments.threads), "--warmup", "50ms", "--min-time", f"{arguments.seconds}s"]
            peer = ours = float("inf")
            for _ in range(arguments.rounds):
                peer = min(peer, measure_peer(session, feeds, arguments.seconds))
                result = subprocess.run(bench, check=True, capture_output=True)
                ours = min(ours, json.loads(result.stdout)["benchmarks"][0]["min_time"] * 1e-9)
            print(f"{name:20} {peer * 1e3:9.4f} ms {ours * 1e3:9.4f} ms {peer / ours:6.2f}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
