"""The tools end to end, as a user runs them: the digit classifier and the MLP 784-256-10, from ONNX and from text,
every text form on the way back in, equal bytes, and the exit code and message of everything that can be given wrong.

usage: first_light.py BIN_DIR [TEST ...]    exits 77 (skipped) without numpy, onnx and onnxruntime"""
import json, os, pathlib, shutil, subprocess, sys, tempfile, unittest

from tools import Tools

try:
    import numpy as np, onnx, onnxruntime
    from onnx import helper, numpy_helper, TensorProto
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
DATA = pathlib.Path(__file__).resolve().parent.parent / "data"


tool = Tools(BIN)


def mlp_weights():
    rng = np.random.default_rng(0)
    return {"w0": rng.normal(0, 784**-0.5, (256, 784)).astype(np.float32),
            "b0": rng.normal(0, 0.1, 256).astype(np.float32),
            "w1": rng.normal(0, 256**-0.5, (10, 256)).astype(np.float32),
            "b1": rng.normal(0, 0.1, 10).astype(np.float32)}


def write_mlp(path):
    weights = mlp_weights()
    nodes = [helper.make_node("Gemm", ["x", "w0", "b0"], ["h"], name="fc0", transB=1),
             helper.make_node("Relu", ["h"], ["r"], name="relu"),
             helper.make_node("Gemm", ["r", "w1", "b1"], ["logits"], name="fc1", transB=1)]
    graph = helper.make_graph(nodes, "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 784])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 10])],
                              [numpy_helper.from_array(v, k) for k, v in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return weights


class FirstLight(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-acceptance-"))
        cls.digits = cls.dir / "digits.ingot"
        made = tool("vm-compile", DATA / "digits.onnx", "-o", cls.digits)
        assert made.returncode == 0, made.stderr
        cls.mlp_onnx = cls.dir / "mlp.onnx"
        cls.weights = write_mlp(cls.mlp_onnx)
        cls.mlp = cls.dir / "mlp.ingot"
        made = tool("vm-compile", cls.mlp_onnx, "-o", cls.mlp)
        assert made.returncode == 0, made.stderr
        np.savez(cls.dir / "inputs.npz", x=np.random.default_rng(1).normal(size=(1, 784)).astype(np.float32))
        x = dict(np.load(cls.dir / "inputs.npz"))
        session = onnxruntime.InferenceSession(cls.mlp_onnx, providers=["CPUExecutionProvider"])
        np.savez(cls.dir / "outputs.npz", logits=session.run(None, x)[0])

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def check(self, result, code, *messages):
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for message in messages:
            self.assertIn(message, result.stderr)

    # ---- right answers

    def test_digits_match_the_reference(self):
        npz = DATA / "digits_test.npz"
        self.check(tool("vm-run", self.digits, "--input", f"image=@{npz}:image", "--expect", f"@{npz}", "--atol",
                        "1e-5"), 0)

    def test_a_changed_weight_is_noticed(self):
        model = onnx.load(DATA / "digits.onnx")
        weight = next(t for t in model.graph.initializer if len(t.dims) == 4)
        values = numpy_helper.to_array(weight).copy()
        values.flat[0] += 0.5
        weight.CopyFrom(numpy_helper.from_array(values, weight.name))
        onnx.save(model, self.dir / "changed.onnx")
        self.check(tool("vm-compile", self.dir / "changed.onnx", "-o", self.dir / "changed.ingot"), 0)
        npz = DATA / "digits_test.npz"
        self.check(tool("vm-run", self.dir / "changed.ingot", "--input", f"image=@{npz}:image", "--expect", f"@{npz}",
                        "--atol", "1e-5"), 1)

    def test_any_batch_runs(self):
        images = np.load(DATA / "digits_test.npz")["image"]
        session = onnxruntime.InferenceSession(DATA / "digits.onnx", providers=["CPUExecutionProvider"])
        for batch in (1, 2, 3, 7, 16, 65):
            np.save(self.dir / "batch.npy", images[:batch])
            np.savez(self.dir / "expected.npz", probabilities=session.run(None, {"image": images[:batch]})[0])
            self.check(tool("vm-run", self.digits, self.dir / "batch.npy", "--expect", f"@{self.dir}/expected.npz",
                            "--atol", "1e-5"), 0)

    def test_threads_give_the_same_bits(self):
        npz, outs = DATA / "digits_test.npz", []
        for threads in (1, 2, 5):
            out = self.dir / f"t{threads}.npy"
            self.check(tool("vm-run", self.digits, "--input", f"image=@{npz}:image", "--threads", threads, "--output",
                            f"@{out}"), 0)
            outs.append(out.read_bytes())
        self.assertEqual(outs[0], outs[1])
        self.assertEqual(outs[0], outs[2])

    def test_mlp_matches_onnx_runtime(self):
        self.check(tool("vm-run", self.mlp, self.dir / "inputs.npz", "--expect", f"@{self.dir}/outputs.npz", "--rtol",
                        "1e-4", "--atol", "1e-5"), 0)

    def test_mlp_as_text_gives_equal_results(self):
        np.savez(self.dir / "weights.npz", **self.weights)
        self.check(tool("vm-compile", DATA / "mlp.py", "--params", self.dir / "weights.npz", "-o",
                        self.dir / "text.ingot"), 0)
        self.check(tool("vm-run", self.dir / "text.ingot", "--input", f"x=@{self.dir}/inputs.npz:x", "--output",
                        f"@{self.dir}/y.npy"), 0)
        y, expected = np.load(self.dir / "y.npy"), np.load(self.dir / "outputs.npz")["logits"]
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)

    def test_numbers_below_0_of_a_tensor_function(self):
        text = (DATA.parent / "golden/transform/split_signed_scalars.txt").read_text()
        text = text.split("# EXPECT")[0].split("\n", 1)[1]
        (self.dir / "signed.py").write_text(text)
        self.check(tool("vm-compile", self.dir / "signed.py", "-o", self.dir / "signed.ingot"), 0)
        for n in (1, 4, 6, 9):
            x = np.arange(1, n + 1, dtype=np.float32)
            np.save(self.dir / "x.npy", x)
            self.check(tool("vm-run", self.dir / "signed.ingot", self.dir / "x.npy", "--output",
                            f"@{self.dir}/y.npy"), 0)
            i = np.arange(n)
            expected = np.where((i + n - 6 >= 0) & (i >= 2), x, np.float32(-1))
            np.testing.assert_array_equal(np.load(self.dir / "y.npy"), expected)

    # ---- texts and bytes

    def test_compiling_the_relax_text_gives_the_same_bytes(self):
        for name, model in (("digits", DATA / "digits.onnx"), ("mlp", self.mlp_onnx)):
            self.check(tool("vm-compile", model, "--emit=relax", "-o", self.dir / f"{name}_text.py"), 0)
            self.check(tool("vm-compile", self.dir / f"{name}_text.py", "-o", self.dir / f"{name}_text.ingot"), 0)
            self.assertEqual((self.dir / f"{name}_text.ingot").read_bytes(), (self.dir / f"{name}.ingot").read_bytes())

    def test_every_pass_prints_what_compiles_to_the_same_results(self):
        self.check(tool("vm-compile", self.mlp_onnx, "--dump-dir", self.dir / "dump", "-o", self.dir / "x.ingot"), 0)
        texts = sorted((self.dir / "dump").glob("*.py"))
        self.assertGreater(len(texts), 5)
        for text in texts[:1] + texts[2:3]:
            self.check(tool("vm-compile", text, "-o", self.dir / "pass.ingot"), 0)
            self.check(tool("vm-run", self.dir / "pass.ingot", self.dir / "inputs.npz", "--expect",
                            f"@{self.dir}/outputs.npz", "--rtol", "1e-4", "--atol", "1e-5"), 0)

    def test_folders_and_threads_do_not_change_the_bytes(self):
        other = self.dir / "a" / "b"
        other.mkdir(parents=True)
        shutil.copy(DATA / "digits.onnx", other / "renamed.onnx")
        self.check(tool("vm-compile", "renamed.onnx", "-o", "out.ingot", "--threads", "1", cwd=other), 0)
        self.assertEqual((other / "out.ingot").read_bytes(), self.digits.read_bytes())
        self.check(tool("vm-compile", "renamed.onnx", "-o", "out3.ingot", "--threads", "3", cwd=other), 0)
        self.assertEqual((other / "out3.ingot").read_bytes(), self.digits.read_bytes())

    def test_disassembly_assembles_to_the_same_bytes(self):
        for exe in (self.digits, self.mlp):
            text = tool("vm-inspect", exe, "--disasm")
            self.check(text, 0)
            (self.dir / "text.ingotasm").write_text(text.stdout)
            self.check(tool("vm-inspect", "--assemble", self.dir / "text.ingotasm", "-o", self.dir / "again.ingot"), 0)
            self.assertEqual((self.dir / "again.ingot").read_bytes(), exe.read_bytes())

    def test_disassembly_beside_its_bytes(self):
        text, blobs, again = (self.dir / name for name in ("m.ingotasm", "m.ingotasm.blobs", "beside.ingot"))
        self.check(tool("vm-inspect", self.digits, "--disasm", "--blobs"), 2, "--blobs: no -o FILE was given")
        self.check(tool("vm-inspect", self.digits, "--blobs"), 2, "--blobs requires --disasm")
        self.check(tool("vm-inspect", self.digits, "--disasm", "--blobs", "-o", text), 0)
        self.assertIn('\nblobs "m.ingotasm.blobs" size ', text.read_text())
        self.assertLess(text.stat().st_size, self.digits.stat().st_size)
        self.check(tool("vm-inspect", "--assemble", text, "-o", again), 0)
        self.assertEqual(again.read_bytes(), self.digits.read_bytes())
        again.unlink()
        blobs.write_bytes(blobs.read_bytes()[:-1] + b"?")
        self.check(tool("vm-inspect", "--assemble", text, "-o", again), 3, "m.ingotasm:2:",
                   "is not the one that belongs to")
        self.assertFalse(again.exists())

    def test_emitted_forms_have_contents(self):
        for form, needle in (("tir", "@T.prim_func"), ("llvm", "define"), ("asm", "ret"), ("bytecode", "call_kernel"),
                             ("relax", "R.matmul")):
            result = tool("vm-compile", self.mlp_onnx, f"--emit={form}")
            self.check(result, 0)
            self.assertIn(needle, result.stdout)

    def test_extracted_image_is_an_import_free_elf(self):
        listing = tool("vm-inspect", self.mlp, "--json", "-")
        self.check(listing, 0)
        images = json.loads(listing.stdout)["images"]
        self.assertEqual(len(images), 2)
        for image in images:
            self.check(tool("vm-inspect", self.mlp, "--extract", image["name"], "-o", self.dir / "k.so"), 0)
            elf = subprocess.run(["readelf", "-W", "-d", "--dyn-syms", "-r", self.dir / "k.so"], capture_output=True,
                                 text=True).stdout
            undefined = [line for line in elf.splitlines() if " UND " in line and line.split()[0] != "0:"]
            self.assertEqual(undefined, [])
            self.assertIn("There are no relocations", elf)
            self.assertNotIn("NEEDED", elf)

    def test_size_beyond_weights(self):
        weights = sum(v.nbytes for v in self.weights.values())
        beyond = self.mlp.stat().st_size - weights
        print(f"\nMLP: {self.mlp.stat().st_size} bytes, {beyond} beyond its weights")
        self.assertLessEqual(beyond, 40 << 10)

    def test_stub_kernels_run(self):
        self.check(tool("vm-run", self.mlp, self.dir / "inputs.npz", "--kernels=stub"), 0)

    def test_top_k(self):
        npz = DATA / "digits_test.npz"
        image = np.load(npz)["image"][:1]
        np.save(self.dir / "one.npy", image)
        result = tool("vm-run", self.digits, self.dir / "one.npy", "--top-k", 3)
        self.check(result, 0)
        self.assertEqual(result.stdout.count("probability"), 3)

    def test_bench_prints_json(self):
        result = tool("vm-bench", self.mlp, "--min-time", "50ms", "--warmup", "10ms", "--json", "-")
        self.check(result, 0)
        benchmark = json.loads(result.stdout)["benchmarks"][0]
        self.assertGreater(benchmark["real_time"], 0)
        self.assertEqual(benchmark["time_unit"], "ns")

    def test_bench_sets_kernels_beside_the_machine(self):
        """No time is judged; the figures have to agree with each other."""
        result = tool("vm-bench", self.mlp, "--min-time", "50ms", "--threads", "1,2", "--roofline", "--json", "-")
        self.check(result, 0)
        for benchmark in json.loads(result.stdout)["benchmarks"]:
            peaks, kernels = benchmark["roofline"]["peaks"], benchmark["roofline"]["kernels"]
            self.assertEqual(peaks["threads"], benchmark["threads"])
            self.assertGreater(peaks["gflops_per_s"], 0.1)
            self.assertEqual([read["working_set_bytes"] >> 10 for read in peaks["reads"]],
                             [64, 512, 4096, 32768, 131072])
            self.assertTrue(kernels)
            for kernel in kernels:
                self.assertAlmostEqual(kernel["of_peak_flops"], kernel["gflops_per_s"] / peaks["gflops_per_s"], 6)
                self.assertAlmostEqual(kernel["gflops_per_s"] * kernel["total_ns"], kernel["flops"] * kernel["calls"],
                                       delta=1)
                self.assertEqual(kernel["of_roof"], max(kernel["of_peak_flops"], kernel["of_peak_bytes"]))
            self.assertEqual(kernels, sorted(kernels, key=lambda kernel: -kernel["total_ns"]))
        table = tool("vm-bench", self.mlp, "--min-time", "50ms", "--roofline").stdout
        self.assertRegex(table, r"peaks: [0-9.]+ GFLOP/s")
        self.assertRegex(table, r"(core|memory) +\w+matmul")

    def test_bench_does_not_copy_inputs_in_every_call(self):
        """Tensors in a .npz begin at any byte; a copy of 16 MB would take milliseconds."""
        graph = helper.make_graph(
            [helper.make_node("Slice", ["x", "start", "end"], ["head"]), helper.make_node("Exp", ["head"], ["y"])], "head",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1 << 22])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
            [numpy_helper.from_array(np.array([at], np.int64), name) for at, name in ((0, "start"), (4, "end"))])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
                  self.dir / "head.onnx")
        self.check(tool("vm-compile", self.dir / "head.onnx", "-o", self.dir / "head.ingot"), 0)
        np.savez(self.dir / "head.npz", x=np.ones(1 << 22, np.float32))
        result = tool("vm-bench", self.dir / "head.ingot", "--input", f"@{self.dir / 'head.npz'}", "--min-time", "50ms",
                      "--json", "-")
        self.check(result, 0)
        self.assertLess(json.loads(result.stdout)["benchmarks"][0]["min_time"], 200_000)

    # ---- wrong input: exit code and message

    def save(self, name, array):
        np.save(self.dir / name, array)
        return self.dir / name

    def test_wrong_dtype(self):
        self.check(tool("vm-run", self.digits, self.save("d.npy", np.zeros((1, 1, 8, 8), np.float64))), 3,
                   'function "main", parameter "image": expected float32[batch, 1, 8, 8], got float64[1, 1, 8, 8]')

    def test_wrong_rank(self):
        self.check(tool("vm-run", self.digits, self.save("r.npy", np.zeros((1, 8, 8), np.float32))), 3,
                   "expected float32[batch, 1, 8, 8], got float32[1, 8, 8]")

    def test_wrong_dimension(self):
        self.check(tool("vm-run", self.digits, self.save("s.npy", np.zeros((1, 1, 8, 9), np.float32))), 3,
                   "expected float32[batch, 1, 8, 8], got float32[1, 1, 8, 9]")

    def test_wrong_name(self):
        self.check(tool("vm-run", self.digits, "--input",
                        f"imgae=@{self.save('n.npy', np.zeros((1, 1, 8, 8), np.float32))}"), 2,
                   '"imgae"', 'did you mean "image"?')

    def test_wrong_entry(self):
        self.check(tool("vm-run", self.digits, "--entry", "mian"), 2, '"mian"', 'did you mean "main"?')

    def test_missing_input(self):
        self.check(tool("vm-run", self.digits), 2, '"image"')

    def test_wrong_file(self):
        self.check(tool("vm-run", self.digits, self.dir / "nothing.npy"), 3, "nothing.npy")
        self.check(tool("vm-run", self.dir / "nothing.ingot"), 3, "nothing.ingot")
        (self.dir / "garbage.npy").write_bytes(b"garbage")
        self.check(tool("vm-run", self.digits, self.dir / "garbage.npy"), 3, "garbage.npy")
        (self.dir / "garbage.ingot").write_bytes(b"garbage" * 100)
        self.check(tool("vm-run", self.dir / "garbage.ingot"), 4, "garbage.ingot")

    def test_unknown_option(self):
        self.check(tool("vm-run", self.digits, "--entri", "main"), 2, "--entri", 'did you mean "--entry"?')

    def test_unsupported_operators_are_reported_at_once(self):
        nodes = [helper.make_node("Frobnicate", ["x"], ["a"], name="first"),
                 helper.make_node("Relu", ["a"], ["b"], name="second"),
                 helper.make_node("Twiddle", ["b"], ["y"], name="third")]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10),
                  self.dir / "odd.onnx")
        result = tool("vm-compile", self.dir / "odd.onnx", "-o", self.dir / "odd.ingot")
        self.check(result, 8, "Frobnicate", "first", "Twiddle", "third", "18")
        self.assertFalse((self.dir / "odd.ingot").exists())

    def test_malformed_models(self):
        (self.dir / "bad.onnx").write_bytes((DATA / "digits.onnx").read_bytes()[:1000])
        self.check(tool("vm-compile", self.dir / "bad.onnx", "-o", self.dir / "bad.ingot"), 3, "bad.onnx")
        (self.dir / "bad.py").write_text(
            "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((1,), \"float32\")):\n"
            "        y = R.ad(x, x)\n        return y\n")
        self.check(tool("vm-compile", self.dir / "bad.py", "-o", self.dir / "bad.ingot"), 3, "bad.py:5", "^",
                   'did you mean')


if __name__ == "__main__":
    unittest.main(verbosity=1)
