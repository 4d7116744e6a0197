"""Every allocation of a tool fails once, then that one and all after it (tests/faults/fail_allocation.c). The tool ends
with exit code 6 and says so, or does without; it never ends by a signal or hangs, and leaves no temporary file.

usage: tool_faults.py BIN_DIR PRELOAD [--long] [TEST ...]    --long: each allocation of vm-compile, too"""
import os, pathlib, shutil, subprocess, sys, tempfile, unittest

LONG = "--long" in sys.argv
if LONG:
    sys.argv.remove("--long")
BIN, PRELOAD = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(sys.argv.pop(1)).resolve()
DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
OUT_OF_MEMORY = 6
MOST = 400  # allocations that fail per command in the short form, evenly spread; the first ones all do

PROGRAM = """ingot 1
function @main export (x: float32[4]) -> (y: float32[4]) {
  register r1: float32[4]
  alloc_output r1, 0, [4]
  call_builtin [], add, [r1, r0, r0]
  return [r1]
}
"""


class ToolFaults(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-faults-"))
        self.out = self.dir / "out"
        self.out.mkdir()
        (self.dir / "m.txt").write_text(PROGRAM)
        self.run_tool("vm-inspect", "--assemble", self.dir / "m.txt", "-o", self.dir / "m.ingot", check=True)

    def tearDown(self):
        shutil.rmtree(self.dir)

    def run_tool(self, name, *args, check=False, **variables):
        return subprocess.run([BIN / name, *map(str, args)], capture_output=True, text=True, timeout=60, check=check,
                              env={**os.environ, **{k: str(v) for k, v in variables.items()}})

    def sweep(self, name, *args, most=MOST):
        count = self.dir / "count"
        self.run_tool(name, *args, check=True, LD_PRELOAD=PRELOAD, INGOT_FAIL_COUNT=count)
        total = int(count.read_text())
        self.assertGreater(total, 100)
        step = 1 if LONG else max(1, total // most)
        chosen = sorted(set(range(1, min(total, 50))) | set(range(1, total + 1, step)))
        failed = 0
        for k in chosen:
            for ever in ({}, {"INGOT_FAIL_FOR_EVER": 1}):
                result = self.run_tool(name, *args, LD_PRELOAD=PRELOAD, INGOT_FAIL_AT=k, **ever)
                where = f"{name}, allocation {k} of {total} {ever}: {result.returncode}\n{result.stderr}"
                self.assertIn(result.returncode, (0, OUT_OF_MEMORY), where)
                if result.returncode != 0:
                    failed += 1
                    self.assertIn("out of memory", result.stderr, where)
                self.assertEqual([p.name for p in self.out.iterdir() if p.name.endswith(".tmp")], [], where)
        print(f"{name}: {2 * len(chosen)} runs, {failed} ended out of memory", flush=True)
        self.assertGreater(failed, len(chosen) // 2)

    def test_vm_run(self):
        self.sweep("vm-run", self.dir / "m.ingot", "--input", "4xf32=1 2 3 4", "--output", f"@{self.out}/y.npz",
                   "--json", self.out / "j")

    def test_vm_inspect(self):
        self.sweep("vm-inspect", self.dir / "m.ingot", "--disasm", "--blobs", "-o", self.out / "t")

    def test_vm_bench(self):
        self.sweep("vm-bench", self.dir / "m.ingot", "--input", "4xf32=1 2 3 4", "--min-time", "1us", "--warmup", "1us",
                   "--threads", "1", most=150)

    def test_vm_compile(self):
        if not (BIN / "vm-compile").exists():
            print("SKIP: no vm-compile")
            self.skipTest("no vm-compile")
        self.sweep("vm-compile", DATA / "mlp.py", "--threads", "1", "-o", self.out / "m.ingot", most=60)


if __name__ == "__main__":
    unittest.main(verbosity=1)
