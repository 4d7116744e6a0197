"""The tutorial programs of apps/examples/tutorials, run as a reader of them would, and their results beside NumPy's.

usage: tutorials.py BIN_DIR [TEST ...]    exits 77 (skipped) without numpy"""
import json, pathlib, shutil, subprocess, sys, tempfile, unittest

from tools import Tools

try:
    import numpy as np
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
# What each primitive must leave in the printed function.
LOOPS = {
    "split": "for i_0, i_1, j, k in T.grid(T.int64(5), T.int64(8), ",
    "tile": "for i_0, j_0, i_1, j_1, k in T.grid(",
    "fuse": "for i_j_fused, k in T.grid(T.int64(1110), ",
    "reorder": "for k, j, i in T.grid(",
    "compute_at": "for ax0, ax1 in T.grid(T.int64(1), T.int64(23))",
    "compute_inline": "(A[v_i, v_k] + T.float32(1.0))",
    "compute_root": 'sblock("shifted")',
    "parallel": "T.parallel(T.int64(37))",
    "vectorize": "T.vectorized(T.int64(8))",
    "unroll": "T.unroll(T.int64(4))",
    "bind": 'T.thread_binding(T.int64(16), thread="threadIdx.x")',
}


class Tutorials(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-tutorials-"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def run_program(self, name, *args):
        result = subprocess.run([BIN / f"tutorial_{name}", *map(str, args)], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        Tools(BIN).check_round_trips(map(str, args))
        return result.stdout

    def test_vector_add(self):
        module, results = self.dir / "add.ingot", self.dir / "add.npz"
        printed = self.run_program("vector_add", module)
        self.assertIn("myadd: ", printed)
        for function, lengths in {"matrix_add": [1, 1024, 1000003], "myadd": [1024, 1023]}.items():
            for length in lengths:
                printed = self.run_program("call_saved", module, function, length, results)
                self.assertIn("refused: ", printed)
                self.assertIn("expected float32[n], got float64", printed)
                saved = np.load(results)
                self.assertEqual(saved["c"].shape, (length,))
                np.testing.assert_allclose(saved["c"], saved["a"] + saved["b"], rtol=1e-7)

    def check_matmul(self, n, m, k):
        results = self.dir / "matmul.npz"
        print(f"\n{n} x {m} x {k}\n" + self.run_program("matmul", n, m, k, results))
        saved = np.load(results)
        expected = saved["a"].astype(np.float64) @ saved["b"].astype(np.float64)
        for step in ["parallel", "tiled", "vectorised", "cached", "default"]:
            np.testing.assert_allclose(saved[step], expected, rtol=1e-5, err_msg=step)

    def test_matmul(self):
        self.check_matmul(1024, 1024, 1024)

    def test_matmul_of_odd_sizes(self):
        self.check_matmul(17, 31, 29)
        self.check_matmul(1, 1, 1)

    def check_template(self, name, size, trials, runs, expected_of):
        records, results = self.dir / f"{name}.jsonl", self.dir / f"{name}.npz"
        lines = []
        for _ in range(runs):
            printed = self.run_program("tune_templates", name, size, trials, records, results)
            self.assertIn(f"{name}: {trials} schedules measured", printed)
            saved = np.load(results)
            expected = expected_of(saved["a"].astype(np.float64), saved["b"].astype(np.float64))
            for version in "naive", "tuned", "default":
                self.assertRegex(printed, rf"{version} +[0-9.]+ ms, [0-9.]+ \[.*\] of the default schedule's speed")
                np.testing.assert_allclose(saved[version], expected, rtol=1e-4, atol=1e-4, err_msg=version)
            lines.append(records.read_text().splitlines())
        self.assertEqual(lines[0], lines[-1])  # what was measured is not measured again
        trial_lines = [record for record in map(json.loads, lines[0]) if record["kind"] == "trial"]
        self.assertEqual(len(trial_lines), trials + 1)
        self.assertEqual(trial_lines[0]["choices"], {})
        for record in trial_lines:
            self.assertTrue(record["task"].endswith(":" + name))
            self.assertEqual(record["outcome"], "ok")
            self.assertIn("sample_perfect_tile", record["trace"])
            self.assertIn("sample_categorical", record["trace"])
        self.assertEqual(len({record["trace"] for record in trial_lines}), trials + 1)
        print(f"\n{printed}")

    def test_templates_with_knobs(self):
        self.check_template("matmul", 48, 6, 2, np.matmul)

        def convolve(x, w):
            padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
            windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
            return np.einsum("nchwvu,dcvu->ndhw", windows, w, optimize=True)

        self.check_template("conv2d", 8, 4, 1, convolve)

    def test_primitives(self):
        for name in LOOPS:
            with self.subTest(name):
                results = self.dir / f"{name}.npz"
                printed = self.run_program("primitives", name, results)
                self.assertIn(LOOPS[name], printed)
                saved = np.load(results)
                np.testing.assert_allclose(saved["c"], (saved["a"] + 1) @ saved["b"], rtol=1e-5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
