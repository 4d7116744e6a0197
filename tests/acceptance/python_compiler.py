"""The compiler from Python (apps/python/ingot/compiler.py, over the C API): compiling in memory, tasks, tuning with
records, interruptions and failures.

usage: python_compiler.py BIN_DIR [TEST ...]    exits 77 (skipped) without numpy"""
import json, os, pathlib, shutil, signal, sys, tempfile, threading, time, unittest

try:
    import numpy as np
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "apps/python"))
os.environ.setdefault("INGOT_LIBRARY", str(BIN.parent / "vm/libingot.so"))
os.environ.setdefault("INGOT_COMPILER_LIBRARY", str(BIN.parent / "compiler/libingot-compiler.so"))
import ingot, ingot.compiler

MODEL = ROOT / "tests/data/digits.onnx"
QUICK = {"dims": {"batch": 1}, "hot": True, "only": "schedules"}


class PythonCompiler(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-python-compiler-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.db = self.dir / "records.jsonl"

    def check(self, module, count):
        test = np.load(ROOT / "tests/data/digits_test.npz")
        got = np.asarray(module(test["image"][:count]))
        np.testing.assert_allclose(got, test["probabilities"][:count], atol=1e-5)

    def test_compile(self):
        compiled = ingot.compiler.compile(MODEL, dims={"batch": (1, 64)})
        self.check(ingot.load(compiled.bytes), 3)
        compiled.write(self.dir / "digits.ingot")
        self.assertEqual((self.dir / "digits.ingot").read_bytes(), compiled.bytes)
        fixed = ingot.compiler.compile(MODEL, input_shapes={"image": (2, 1, 8, 8)})
        self.check(ingot.load(fixed.bytes), 2)

    def test_tune(self):
        tasks = ingot.compiler.tasks(MODEL, dims={"batch": 1})
        convolutions = [task for task in tasks if "conv2d" in task.kernel]
        self.assertEqual([task.weight for task in convolutions], [1, 1, 1])
        for task in convolutions:
            self.assertGreater(task.num_schedules, 10)
            self.assertGreater(task.flops, 1000)
            self.assertEqual((task.trials, task.default_seconds, task.comparison), (0, 0, None))
        steps, notes = [], []
        found = ingot.compiler.tune(
            MODEL, self.db, trials=4, progress=lambda step, done, total: steps.append(step), log=notes.append, **QUICK
        )
        self.assertEqual([task.key for task in found.tasks], [task.key for task in tasks])
        self.assertEqual(sum(task.new_trials for task in found.tasks), 4)
        self.assertTrue([step for step in steps if step.startswith("trials: ")])
        for task in found.tasks:
            self.assertLessEqual(task.best_seconds, task.default_seconds)
            self.assertEqual(task.default_seconds > 0, task.note == "")
            if task.comparison:
                self.assertEqual(task.comparison.is_faster, task.comparison.upper < 0.98)
        lines = [json.loads(line) for line in self.db.read_text().splitlines()]
        self.assertEqual(sum(line["kind"] == "trial" and bool(line["choices"]) for line in lines), 4)
        is_faster = any(line["kind"] == "comparison" and line["verdict"]["upper"] < 0.98 for line in lines)
        self.assertEqual(found.model is not None, is_faster)
        self.assertEqual(found.note, "" if is_faster else "no task was found faster")
        again = ingot.compiler.tune(MODEL, self.db, trials=0, **QUICK)
        self.assertEqual(sum(task.trials for task in again.tasks), 4)
        compiled = ingot.compiler.compile(
            MODEL, target="cpu:native", dims={"batch": 1}, tuning_db=self.db, log=notes.append
        )
        self.assertTrue([note for note in notes if note.startswith("tuned schedules for native: ")], notes)
        self.check(ingot.load(compiled.bytes), 1)

    def test_choices_of_the_file(self):
        found = ingot.compiler.tune(MODEL, self.db, dims={"batch": 1}, only="graph")
        self.assertEqual(found.tasks, [])
        lines = [json.loads(line) for line in self.db.read_text().splitlines()]
        self.assertEqual({line["kind"] for line in lines} - {"graph"}, {"graph screening"})
        self.assertEqual(found.graph is not None, any(line["kind"] == "graph" for line in lines))
        self.assertEqual(bool(found.choices), found.graph is not None and found.graph.is_faster)
        with self.assertRaisesRegex(ValueError, "only: expected graph or schedules"):
            ingot.compiler.tune(MODEL, self.db, only="luck")

    def test_sizes(self):
        sizes = ["batch=1", "batch=4:0.5"]
        found = ingot.compiler.tune(MODEL, self.db, trials=1, hot=True, only="schedules", sizes=sizes)
        self.assertEqual(sum(task.new_trials for task in found.tasks), 1)
        lines = [json.loads(line) for line in self.db.read_text().splitlines()]
        self.assertTrue([line for line in lines if line.get("sizes") == sizes and line["choices"]])

    def test_interruptions(self):
        def interrupt(step, done, total):
            if step.startswith("trials: ") and done == 2:
                raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            ingot.compiler.tune(MODEL, self.db, trials=500, progress=interrupt, **QUICK)
        lines = self.db.read_text().splitlines(keepends=True)
        self.assertTrue(all(line.endswith("\n") for line in lines))
        trials = [line for line in map(json.loads, lines) if line["choices"]]
        self.assertIn(len(trials), (2, 3))
        self.assertEqual({line["kind"] for line in trials}, {"trial"})

    def test_control_c(self):
        before = signal.default_int_handler  # which a shell's background commands do not have
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, before))
        timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        start = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            ingot.compiler.tune(MODEL, self.db, trials=100000, trials_per_task=100000, early_stop=100000, **QUICK)
        self.assertLess(time.monotonic() - start, 60)
        self.assertIs(signal.getsignal(signal.SIGINT), before)

    def test_failures(self):
        with self.assertRaisesRegex(ingot.IngotError, "no-such-model"):
            ingot.compiler.compile(self.dir / "no-such-model.onnx")
        with self.assertRaisesRegex(ValueError, "search: expected evolution, random or grid"):
            ingot.compiler.tune(MODEL, self.db, search="luck", **QUICK)
        with self.assertRaisesRegex(ValueError, "names several CPUs"):
            ingot.compiler.tasks(MODEL, target="cpu")
        with self.assertRaisesRegex(ValueError, "number of trials is negative"):
            ingot.compiler.tune(MODEL, self.db, trials=-1, **QUICK)
        self.db.write_text("no records\n")
        with self.assertRaisesRegex(ValueError, "records.jsonl:1"):
            ingot.compiler.compile(MODEL, target="cpu:native", tuning_db=self.db)


if __name__ == "__main__":
    unittest.main(verbosity=2)
