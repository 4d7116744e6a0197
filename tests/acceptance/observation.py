"""What vm-run and vm-bench print about invocations, and how they stop them: --profile, --trace, --check-finite, --fuel,
--deadline, --repeat, Ctrl-C. Programs are assembled from text, so that this needs the tools and Python alone.

usage: observation.py BIN_DIR [TEST ...]"""
import json, pathlib, shutil, signal, subprocess, sys, tempfile, time, unittest

from tools import Tools

BIN = pathlib.Path(sys.argv.pop(1)).resolve()

PROGRAM = """ingot 1
function @main export (x: float32[4], w: float32[4]) -> (y: float32[4]) {
  register r2: float32[4]
  register r3: float32[4]
  note "Mul /scale"
  alloc r2, [4]
  call_builtin [], mul, [r2, r0, r1]
  note "Div /normalise"
  alloc_output r3, 0, [4]
  call_builtin [], div, [r3, r0, r2]
  return [r3]
}
function @forever export () -> () {
  note "Loop /loop"
loop:
  jump loop
}
function @quick export () -> () {
  return []
}
"""
X, W = "x=4xf32=1 2 3 4", "w=4xf32=1 1 1 2"


tool = Tools(BIN)

class Observation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-observation-"))
        (cls.dir / "m.ingotasm").write_text(PROGRAM)
        cls.exe = cls.dir / "m.ingot"
        made = tool("vm-inspect", "--assemble", cls.dir / "m.ingotasm", "-o", cls.exe)
        assert made.returncode == 0, made.stderr

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def run_main(self, *args):
        return tool("vm-run", self.exe, "--input", X, "--input", W, *args)

    def check(self, result, code, *messages):
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for message in messages:
            self.assertIn(message, result.stderr)

    # ---- profile and trace

    def test_profile_table(self):
        result = self.run_main("--profile", "--repeat", 11)
        self.check(result, 0)
        self.assertIn("GFLOP/s", result.stdout)
        for row in ("builtin mul <- Mul /scale (main, instruction 1)",
                    "builtin div <- Div /normalise (main, instruction 3)",
                    "instruction alloc_output", "between instructions", "10 invocations"):
            self.assertIn(row, result.stdout)

    def test_profile_json(self):
        result = self.run_main("--profile", "--repeat", 5, "--json", "-")
        self.check(result, 0)
        profile = json.loads(result.stdout)["profile"]
        self.assertEqual(profile["invocations"], 4)
        times = [row["total_ns"] for row in profile["rows"]]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertLessEqual(sum(times), profile["total_ns"])
        mul = next(row for row in profile["rows"] if row["name"] == "mul")
        self.assertEqual((mul["kind"], mul["operation"], mul["instruction"], mul["calls"]),
                         ("builtin", "Mul /scale", 1, 4))
        self.assertEqual(mul["bytes"], 4 * 3 * 16)

    def test_trace(self):
        trace = self.dir / "trace.json"
        self.check(self.run_main("--trace", trace, "--repeat", 3), 0)
        events = json.loads(trace.read_text())["traceEvents"]
        self.assertEqual(sum(e["name"] == "invocation" for e in events), 2)
        named = [e for e in events if e["name"] == "Div /normalise"]
        self.assertEqual(len(named), 2)
        for event in named:
            self.assertEqual(event["ph"], "X")
            self.assertEqual(event["args"]["name"], "div")
            self.assertGreaterEqual(event["dur"], 0)
        outer = next(e for e in events if e["name"] == "invocation")
        inner = [e for e in events if e is not outer and outer["ts"] <= e["ts"] <= outer["ts"] + outer["dur"]]
        self.assertEqual(len(inner), 4)

    def test_a_trace_that_cannot_be_written_is_an_error(self):
        self.check(self.run_main("--trace", self.dir / "nowhere" / "t.json"), 3, "cannot write")

    def test_bench_profile(self):
        result = tool("vm-bench", self.exe, "--input", X, "--input", W, "--iters", 20, "--warmup", "1ms", "--profile")
        self.check(result, 0)
        self.assertIn("builtin mul <- Mul /scale", result.stdout)
        result = tool("vm-bench", self.exe, "--input", X, "--input", W, "--iters", 20, "--warmup", "1ms", "--profile",
                      "--json", "-")
        self.check(result, 0)
        self.assertGreater(json.loads(result.stdout)["benchmarks"][0]["profile"]["invocations"], 0)

    # ---- NaN and infinity

    def test_check_finite(self):
        self.check(self.run_main("--check-finite"), 0)
        bad = tool("vm-run", self.exe, "--input", X, "--input", "w=4xf32=1 0 1 1", "--check-finite")
        self.check(bad, 1, 'Div /normalise, instruction 3: builtin "div", output "out": element [1] is infinite')
        bad = tool("vm-run", self.exe, "--input", X, "--input", "w=4xf32=1 nan 1 1", "--check-finite")
        self.check(bad, 3, 'parameter "w": element [1] is NaN')

    # ---- what stops a run

    def test_fuel_and_deadline(self):
        self.check(tool("vm-run", self.exe, "--entry", "forever", "--fuel", 1000), 7,
                   "Loop /loop, instruction 0: the fuel of 1000")
        self.check(tool("vm-run", self.exe, "--entry", "forever", "--deadline", 0.05), 7, "the deadline has passed")
        self.check(tool("vm-run", self.exe, "--entry", "quick", "--deadline", 10, "--repeat", 1000), 0)

    def interrupt(self, *args):
        process = subprocess.Popen([BIN / "vm-run", self.exe, *map(str, args)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(0.4)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        return process.returncode, errors

    def test_ctrl_c(self):
        code, errors = self.interrupt("--entry", "forever")
        self.assertEqual(code, 130, errors)
        self.assertIn("cancelled", errors)

    def test_ctrl_c_between_short_runs(self):
        code, errors = self.interrupt("--entry", "quick", "--repeat", 10**12)
        self.assertEqual(code, 130, errors)


if __name__ == "__main__":
    unittest.main(verbosity=1)
