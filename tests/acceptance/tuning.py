"""vm-tune on the digit classifier, end to end: tasks, records, runs that are killed anywhere and go on, databases, and
what vm-compile --tuning-db takes of them.

usage: tuning.py BIN_DIR    INGOT_LONG_TESTS=1: twenty kills instead of three"""
import json, os, pathlib, random, re, shutil, signal, subprocess, sys, tempfile, time, unittest
from xml.etree import ElementTree

from tools import Tools

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
KILLS = 20 if os.environ.get("INGOT_LONG_TESTS") == "1" else 3
MODEL = (DATA / "digits.onnx", "--dim", "batch=1", "--target", "cpu:native")
QUICK = ("--hot", "--progress=never", "--only=schedules")
GRAPH = ("--progress=never", "--only=graph")


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def identity(record):
    """What no two records of a database may have in common."""
    return (record["kind"], record["target"], record.get("task"), record.get("trace"), record.get("model"),
            json.dumps(record.get("tasks")), json.dumps(record.get("graph")))


def with_times(record, ratio):
    """The record as if all pairs of its times had this ratio."""
    pairs = 20
    return {**record, "outcome": "ok", "error": "", "seconds": [ratio] * pairs, "default_seconds": [1.0] * pairs,
            "verdict": {"ratio": ratio, "lower": ratio, "upper": ratio}}


class Tuning(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-tuning-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.db = self.dir / "records.jsonl"
        self.tool = Tools(BIN)

    def run_tool(self, *args, code=0):
        result = self.tool(*args)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def tune(self, *args, code=0):
        result = self.run_tool("vm-tune", *MODEL, *QUICK, "--db", self.db, "--json", "-", *args, code=code)
        return json.loads(result.stdout) if code == 0 else result

    def start(self):
        """A run that takes longer than anybody waits."""
        command = (BIN / "vm-tune", *MODEL, *QUICK, "--db", self.db, "--trials", 500)
        return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for_lines(self, process, count):
        end = time.time() + 60
        while process.poll() is None and time.time() < end:
            if self.db.exists() and self.db.read_bytes().count(b"\n") >= count:
                break
            time.sleep(0.01)

    def write(self, lines):
        self.db.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))

    def test_tasks(self):
        document = json.loads(self.run_tool("vm-tune", *MODEL, "--list-tasks", "--json", "-").stdout)
        tasks = {task["kernels"][0]: task for task in document["tasks"]}
        self.assertEqual(len({task["task"] for task in document["tasks"]}), len(tasks))
        convolutions = [task for name, task in tasks.items() if "conv2d" in name]
        self.assertEqual(len(convolutions), 3)
        for task in convolutions:
            self.assertEqual(task["weight"], 1)
            self.assertGreater(task["flops"], 1000)
            self.assertIn("conv.strip", [choice["name"] for choice in task["choices"]])
        listed = self.run_tool("vm-tune", *MODEL, "--list-tasks").stdout
        for task in tasks.values():
            self.assertIn(task["task"], listed)
        named = convolutions[0]["task"]
        alone = json.loads(self.run_tool("vm-tune", *MODEL, "--list-tasks", "--task", named, "--json", "-").stdout)
        self.assertEqual([task["task"] for task in alone["tasks"]], [named])
        said = self.run_tool("vm-tune", *MODEL, "--list-tasks", "--task", named[:-1] + "x", code=2).stderr
        self.assertIn(f'did you mean "{named}"', said)

    def test_runs_that_are_killed_go_on(self):
        defaults = sum(bool(task["choices"]) for task in
                       json.loads(self.run_tool("vm-tune", *MODEL, "--list-tasks", "--json", "-").stdout)["tasks"])
        draw = random.Random(22)
        kept = 0
        for kill in range(KILLS):
            process = self.start()
            self.wait_for_lines(process, kept + 1 + draw.randrange(4))
            time.sleep(draw.random() * 0.1)
            process.kill()
            process.communicate()
            self.assertEqual(process.returncode, -signal.SIGKILL)
            before = self.db.read_bytes()
            whole = before[:before.rfind(b"\n") + 1]
            if kill == 0:  # as if the write had been cut
                self.db.write_bytes(whole + whole[:whole.find(b"\n")])
            shown = self.run_tool("vm-tune", "db", "show", self.db)
            self.assertEqual(len(shown.stdout.splitlines()), whole.count(b"\n"))
            self.assertEqual("was cut off" in shown.stderr, not self.db.read_bytes().endswith(b"\n"))
            kept = whole.count(b"\n")
        before = whole.decode()
        document = self.tune("--trials", 4, "--report", self.dir / "report.html")
        page = (self.dir / "report.html").read_text()
        for task in document["tasks"]:
            self.assertIn(task["task"], page)
        for picture in re.findall("<svg.*?</svg>", page, re.S):
            ElementTree.fromstring(picture)
        self.assertEqual(page.count('class="fastest"'), sum(task["trials"] > 0 for task in document["tasks"]))
        after = self.db.read_text()
        self.assertTrue(after.startswith(before))
        self.assertEqual(sum(task["new_trials"] for task in document["tasks"]), 4)
        lines = records(self.db)
        self.assertEqual(len({identity(line) for line in lines}), len(lines))
        trials = [line for line in lines if line["kind"] == "trial"]
        self.assertEqual(sum(task["trials"] for task in document["tasks"]), len(trials) - defaults)
        self.assertEqual(sum(not line["choices"] for line in trials), defaults)
        self.assertEqual({line["outcome"] for line in lines}, {"ok"})

    def test_repeats(self):
        self.tune("--trials", 1, "--repeats", 7, "--repeat-time", "10us")
        trials = [line for line in records(self.db) if line["kind"] == "trial"]
        self.assertEqual({len(line["seconds"]) for line in trials}, {7})
        self.tune("--trials", 1, "--repeats", 0, code=2)

    def test_cost_models(self):
        document = self.tune("--trials", 30, "--trials-per-task", 14)
        self.assertEqual(sum(task["new_trials"] for task in document["tasks"]), 30)
        lines = records(self.db)
        self.assertEqual(len({identity(line) for line in lines}), len(lines))
        result = self.tool("vm-tune", *MODEL, *QUICK, "--db", self.db, "--trials", 2, "--cost-model", "xgb")
        if result.returncode == 2 and "libxgboost" in result.stderr:
            said = self.run_tool("vm-tune", *MODEL, *QUICK, "--db", self.db, "--trials", 2).stderr
            self.assertIn("without a cost model", said)
        else:
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotIn("cost model", result.stderr)
        self.tune("--trials", 2, "--cost-model", "none")
        # What was measured is searched again, by the times of the records.
        runs = json.loads(self.run_tool("tune_replay", self.db, 4, 1).stdout)
        self.assertEqual({run["search"] for run in runs} - {"xgboost"}, {"random", "evolution"})
        self.assertGreater(sum(len(run["curve"]) for run in runs), 0)
        for run in runs:
            curve = run["curve"]
            self.assertEqual(curve, sorted(curve, reverse=True))
            self.assertLessEqual(len(curve), 4)
            self.assertTrue(all(run["least"] * 0.9999 <= ratio for ratio in curve))

    def test_kernels_that_differ_in_a_sum_alone_are_tuned_one_by_one(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "sums.py"
            model.write_text("""
from tvm.script import ir as I
from tvm.script import relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((64, 9, 40), "float32"), y: R.Tensor((64, 10, 40), "float32")):
        with R.dataflow():
            a = R.sum(x, axis=[1, 2])
            b = R.sum(y, axis=[1, 2])
            R.output(a, b)
        return (a, b)
""")
            target = ("--target", "cpu:native")
            functions = self.run_tool("vm-compile", model, *target, "--emit=tir").stdout.count("def sum")
            listed = json.loads(self.run_tool("vm-tune", model, *target, "--list-tasks", "--json", "-").stdout)["tasks"]
        self.assertEqual((functions, [task["symbolic"] for task in listed]), (1, [False, False]))

    def test_symbolic_dimensions(self):
        model = (DATA / "digits.onnx", "--target", "cpu:native")
        listed = json.loads(self.run_tool("vm-tune", *model, "--list-tasks", "--json", "-").stdout)["tasks"]
        symbolic = {task["task"] for task in listed if task["symbolic"]}
        self.assertGreater(len(symbolic), 3)

        def tune(*args):
            command = ("vm-tune", *model, *QUICK, "--db", self.db, "--json", "-", *args)
            return {task["task"]: task for task in json.loads(self.run_tool(*command).stdout)["tasks"]}

        for task in tune("--trials", 2).values():
            self.assertEqual("(--sizes)" in task["note"], task["task"] in symbolic and bool(task["choices"]))
        self.assertFalse(self.db.exists() and [line for line in records(self.db) if line["task"] in symbolic])
        sizes = ("--sizes", "batch=1:3", "--sizes", "batch=9", "--trials", 3)
        one, nine = [{task["task"]: task["flops"] for task in json.loads(self.run_tool(
            "vm-tune", *model, "--list-tasks", "--json", "-", "--sizes", f"batch={n}").stdout)["tasks"]} for n in (1, 9)]
        for key, task in tune(*sizes).items():
            self.assertAlmostEqual(task["flops"], (3 * one[key] + nine[key]) / 4, delta=1)
            self.assertNotIn("size", task["note"])
        lines = [line for line in records(self.db) if line.get("task") in symbolic]
        self.assertEqual({json.dumps(line["sizes"]) for line in lines}, {'["batch=1:3", "batch=9"]'})
        self.assertEqual(sum(line["kind"] == "trial" and bool(line["choices"]) for line in lines), 3)
        # What was measured with the same sizes counts, what was measured with others does not.
        self.assertEqual(sum(task["trials"] for task in tune(*sizes[:-1], 0).values()), 3)
        other = tune("--sizes", "batch=2", "--trials", 0)
        self.assertEqual(sum(task["trials"] for task in other.values()), 0)
        self.assertTrue(any(task["default_seconds"] > 0 for task in other.values()))
        for task in tune("--sizes", "steps=2", "--trials", 0).values():
            self.assertEqual(task["note"].startswith("there is no size for its symbol batch"),
                             task["task"] in symbolic and bool(task["choices"]))
        # The whole model at these sizes, as if a comparison had found a kernel faster.
        trial = next(line for line in lines if line["kind"] == "trial" and line["choices"])
        self.write([with_times({**trial, "kind": "comparison"}, 0.5)])
        tune(*sizes[:-1], 0)
        model_line = records(self.db)[-1]
        self.assertEqual((model_line["kind"], model_line["outcome"]), ("model", "ok"))
        self.assertEqual(model_line["sizes"], ["batch=1:3", "batch=9"])
        self.write(records(self.db)[:-1] + [with_times(model_line, 0.9)])
        result = self.run_tool("vm-compile", *model, "--tuning-db", self.db, "-o", self.dir / "symbolic.ingot")
        self.assertIn("tuned schedules for native: 1 of", result.stderr)
        said = self.run_tool("vm-tune", *model, "--list-tasks", "--sizes", "batch", code=2).stderr
        self.assertIn("expected NAME=SIZE", said)

    def test_interrupted(self):
        process = self.start()
        self.wait_for_lines(process, 8)
        busy = subprocess.run([BIN / "vm-tune", *MODEL, "--db", self.db], capture_output=True, text=True)
        self.assertEqual(busy.returncode, 3)
        self.assertIn("another process appends to it", busy.stderr)
        process.send_signal(signal.SIGINT)
        table, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("fused_conv2d", table)
        self.assertTrue(self.db.read_text().endswith("\n"))
        self.assertFalse([line for line in records(self.db) if line["kind"] != "trial"])

    def compile(self, name, *args, code=0):
        output = self.dir / f"{name}.ingot"
        result = self.run_tool("vm-compile", *MODEL, *args, "-o", output, code=code)
        return output.read_bytes() if code == 0 else None, result.stderr

    def test_compilations_take_what_is_faster_as_a_whole(self):
        self.tune("--trials", 12)
        trials = [line for line in records(self.db) if line["kind"] == "trial" and line["choices"]]
        by_task = {line["task"]: line for line in trials}
        # As if comparisons had found these faster: the next run compares the whole model, and keeps what comes of it.
        base = [line for line in records(self.db) if line["kind"] in ("trial", "screening")]
        compared = [with_times({**line, "kind": "comparison"}, 0.5) for line in by_task.values()]
        self.write(base + compared)
        document = self.tune("--trials", 0)
        self.assertIn("model_comparison", document)
        model = records(self.db)[-1]
        self.assertEqual(model["kind"], "model")
        self.assertEqual(model["outcome"], "ok")
        self.assertEqual(model["tasks"], {task: line["choices"] for task, line in by_task.items()})
        count = len(records(self.db))
        self.tune("--trials", 0)
        self.assertEqual(len(records(self.db)), count)  # nothing is compared twice

        default, _ = self.compile("default")
        self.write(base + compared + [with_times(model, 0.99)])
        slow, note = self.compile("slow", "--tuning-db", self.db)
        self.assertEqual(slow, default)
        self.assertIn("tuned schedules for native: 0 of", note)
        self.assertIn("no record says that this model is faster", note)

        self.write(base + compared + [with_times(model, 0.9)])
        tuned, note = self.compile("tuned", "--tuning-db", self.db)
        self.assertIn(f"tuned schedules for native: {len(by_task)} of", note)
        self.assertIn("0.900 [0.900, 0.900]", note)
        self.assertNotEqual(tuned, default)
        self.assertEqual(self.compile("again", "--tuning-db", self.db, "--threads", 1)[0], tuned)
        for name in "default", "tuned":
            self.run_tool("vm-run", self.dir / f"{name}.ingot", "--input", "rand", "--seed", 3, "--output",
                          f"@{self.dir / name}.npz")
        self.run_tool("vm-run", self.dir / "tuned.ingot", "--input", "rand", "--seed", 3, "--expect",
                      f"@{self.dir / 'default'}.npz", "--rtol", "1e-4", "--atol", "1e-5")
        # Another model, or another level, is not this one.
        self.assertIn("0 of", self.compile("other", "--tuning-db", self.db, "-O1")[1])

        # What is wrong with a database is an error.
        missing = base + compared[1:] + [with_times(model, 0.9)]
        self.write(missing)
        said = self.compile("x", "--tuning-db", self.db, code=3)[1]
        self.assertIn("no comparison says that its choices are faster", said)
        stale = [{**line, "trace": line["trace"] + "#"} for line in compared]
        self.write(base + stale + [with_times(model, 0.9)])
        self.assertIn("another schedule than was measured", self.compile("x", "--tuning-db", self.db, code=3)[1])
        lied = {**with_times(model, 0.99), "verdict": {"ratio": 0.5, "lower": 0.5, "upper": 0.5}}
        self.write(base + compared + [lied])
        self.assertIn("its times do not give", self.compile("x", "--tuning-db", self.db, code=3)[1])
        self.db.write_bytes((DATA / "digits.onnx").read_bytes())
        self.compile("x", "--tuning-db", self.db, code=3)
        self.compile("x", "--tuning-db", self.dir / "absent.jsonl", code=3)
        self.compile("x", "--tuning-db", self.db, "--emit=asm", code=2)
        self.check_databases(base, compared, with_times(model, 0.9))

    def test_choices_of_the_file(self):
        listed = json.loads(self.run_tool("vm-tune", *MODEL, "--only=graph", "--list-tasks", "--json", "-").stdout)
        self.assertEqual(listed["tasks"], [])
        names = [choice["name"] for choice in listed["choices"]]
        self.assertIn("layout", names)
        self.assertIn("winograd:1x16x8x8:32x16x3x3:1x1x1x1", names)
        self.assertIn("pack_weights", names)
        shown = self.run_tool("vm-tune", *MODEL, "--only=graph", "--list-tasks").stdout
        for name in names:
            self.assertIn(name, shown)

        # A run that is killed goes on; each choice is measured once, and all of them compute the same.
        command = ("vm-tune", *MODEL, *GRAPH, "--db", self.db)
        process = subprocess.Popen(list(map(str, (BIN / command[0], *command[1:]))), stdout=subprocess.DEVNULL)
        self.wait_for_lines(process, 2)
        process.kill()
        process.wait()
        kept = self.db.read_text()
        page = self.dir / "report.html"
        document = json.loads(self.run_tool(*command, "--json", "-", "--report", page).stdout)
        self.assertTrue(self.db.read_text().startswith(kept[:kept.rfind("\n") + 1]))
        lines = records(self.db)
        self.assertEqual({line["outcome"] for line in lines}, {"ok"})
        self.assertEqual(len({identity(line) for line in lines}), len(lines))
        alone = [line for line in lines if line["kind"] == "graph screening" and len(line["graph"]) == 1]
        self.assertGreater(len(alone), 3)
        self.assertEqual(len(document["alternatives"]), len(lines))
        self.assertIn("Choices of the file", page.read_text())
        self.run_tool(*command)
        self.assertEqual(len(records(self.db)), len(lines))

        # As if two of them had been compared and found faster, more than any is: the faster one is taken, and said.
        self.write(alone)  # what was only screened is not taken
        default, _ = self.compile("default", "--tuning-db", self.db)
        plain = with_times({**next(line for line in alone if "layout" in line["graph"]), "kind": "graph"}, 0.1)
        other = with_times({**next(line for line in alone if "layout" not in line["graph"]), "kind": "graph"}, 0.2)
        self.write(alone + [other, plain])
        taken, note = self.compile("plain", "--tuning-db", self.db)
        name, value = next(iter(plain["graph"].items()))
        self.assertIn(f"tuned choices for native: {name}={value}; the model took 0.100 [0.100, 0.100]", note)
        self.assertNotEqual(taken, default)
        self.assertEqual(self.compile("again", "--tuning-db", self.db, "--threads", 1)[0], taken)
        for name in "default", "plain":
            self.run_tool("vm-run", self.dir / f"{name}.ingot", "--input", "rand", "--seed", 3, "--output",
                          f"@{self.dir / name}.npz")
        self.run_tool("vm-run", self.dir / "plain.ingot", "--input", "rand", "--seed", 3, "--expect",
                      f"@{self.dir / 'default'}.npz", "--rtol", "1e-4", "--atol", "1e-5")
        document = json.loads(self.run_tool("vm-tune", *MODEL, "--hot", "--progress=never", "--db", self.db, "--trials", 0,
                                            "--json", "-").stdout)
        self.assertEqual(document["choices_taken"], f"{next(iter(plain['graph']))}={value}")
        chosen = {task["task"] for task in document["tasks"]}
        usual = {task["task"] for task in json.loads(
            self.run_tool("vm-tune", *MODEL, "--list-tasks", "--json", "-").stdout)["tasks"]}
        self.assertNotEqual(chosen, usual)  # the kernels that are tuned are those of the choices
        best = self.run_tool("vm-tune", "db", "best", self.db).stdout.splitlines()
        self.assertEqual({line.split()[0] for line in best}, {"graph"})
        self.assertGreaterEqual(len(best), 2)  # and what that run found, if anything

        # Of another model, level or CPU, or of another build's passes: not taken, or refused.
        for args in (["-O1"], ["--target", "cpu:x86-64-v3"], ["--strict-math"], ["--disable-pass", "convert_layout"]):
            self.assertNotIn("tuned choices", self.compile("other", "--tuning-db", self.db, *args)[1])
        self.write([{**plain, "result": "1-0000000000000000"}])
        self.assertIn("give another module than was measured", self.compile("x", "--tuning-db", self.db, code=3)[1])

    def test_choices_of_a_file_for_several_cpus(self):
        family = (DATA / "digits.onnx", "--dim", "batch=1", "--target", "cpu:x86-64-v2,x86-64-v3")
        said = self.run_tool("vm-tune", *family, "--only=schedules", "--db", self.db, code=2).stderr
        self.assertIn("names several CPUs", said)
        self.run_tool("vm-tune", *family, *GRAPH, "--db", self.db)
        screened = [line for line in records(self.db) if line["kind"] == "graph screening"]
        both = {line["target"].split()[1]: line for line in screened if "layout" in line["graph"]}
        self.assertEqual(sorted(both), ["x86-64-v2", "x86-64-v3"])
        self.assertEqual({line["outcome"] for line in screened}, {"ok"})

        def note_of(*ratios):
            self.write([with_times({**line, "kind": "graph"}, ratio) for line, ratio in zip(both.values(), ratios)])
            return self.run_tool("vm-compile", *family, "--tuning-db", self.db, "-o", self.dir / "x.ingot").stderr

        self.assertNotIn("tuned choices", note_of(0.5))  # nothing is known of the other one
        self.assertNotIn("tuned choices", note_of(0.5, 0.99))
        taken = note_of(0.5, 0.9)
        for cpu in both:
            self.assertIn(f"tuned choices for {cpu}: layout=", taken)

    def check_databases(self, base, compared, model):
        other = self.dir / "other.jsonl"
        merged, pruned = self.dir / "merged.jsonl", self.dir / "pruned.jsonl"
        self.write(base + compared)
        self.run_tool("vm-tune", "db", "prune", self.db, "-o", other)
        self.assertEqual(records(other), compared)
        other.write_text(other.read_text() + json.dumps(model, separators=(",", ":")) + "\n")
        self.run_tool("vm-tune", "db", "merge", self.db, other, "-o", merged)
        self.assertEqual(records(merged), base + compared + [model])
        self.run_tool("vm-tune", "db", "prune", merged, "-o", pruned)
        self.assertEqual(records(pruned), compared + [model])
        self.assertEqual(self.compile("pruned", "--tuning-db", pruned), self.compile("merged", "--tuning-db", merged))
        best = self.run_tool("vm-tune", "db", "best", merged).stdout.splitlines()
        self.assertEqual([line.split()[0] for line in best], ["comparison"] * len(compared) + ["model"])
        shown = json.loads(self.run_tool("vm-tune", "db", "show", merged, "--json", "-").stdout)["records"]
        self.assertEqual([line["kind"] for line in shown], [line["kind"] for line in records(merged)])
        self.assertIn("did you mean", self.run_tool("vm-tune", "db", "shew", merged, code=2).stderr)


if __name__ == "__main__":
    unittest.main()
