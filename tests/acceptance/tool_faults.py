"""What the system gives a tool fails, at every place. The tool ends with a documented exit code and says why, or does
without; it never ends by a signal or hangs, and leaves either all of its outputs, whole, or none, and no temporary.

- Allocations: every one fails once, then that one and all after it (tests/faults/fail_allocation.c).
- System calls: every one fails once, with each error that it may have, from the start of main on (strace).
- Reads and writes that move few bytes, and interrupted ones (tests/faults/short_calls.c) change nothing.

usage: tool_faults.py BIN_DIR FAIL_ALLOCATION SHORT_CALLS [--long] [TEST ...]    --long, or INGOT_LONG_TESTS=1: no place
is left out"""
import collections, os, pathlib, re, shutil, subprocess, sys, tempfile, unittest

LONG = "--long" in sys.argv or "INGOT_LONG_TESTS" in os.environ
if "--long" in sys.argv:
    sys.argv.remove("--long")
BIN, FAIL_ALLOCATION, SHORT_CALLS = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(3))
DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
BAD_INPUT, CORRUPT, NOT_TRUSTED, OUT_OF_MEMORY = 3, 4, 5, 6

PROGRAM = """ingot 1
function @main export (x: float32[4]) -> (y: float32[4]) {
  register r1: float32[4]
  alloc_output r1, 0, [4]
  call_builtin [], add, [r1, r0, r0]
  return [r1]
}
"""


NPY = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }".ljust(117) + b"\n" + bytes(16)


class Faults(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-faults-"))
        self.out = self.dir / "out"
        self.out.mkdir()
        (self.dir / "m.txt").write_text(PROGRAM)
        self.run_tool("vm-inspect", "--assemble", self.dir / "m.txt", "-o", self.dir / "m.ingot", check=True)

    def tearDown(self):
        shutil.rmtree(self.dir)

    def run_tool(self, name, *args, before=(), check=False, **variables):
        return subprocess.run([*map(str, before), BIN / name, *map(str, args)], capture_output=True, text=True,
                              timeout=60, check=check, env={**os.environ, **{k: str(v) for k, v in variables.items()}})

    def vm_run(self):
        return ("vm-run", self.dir / "m.ingot", "--input", "4xf32=1 2 3 4", "--output", f"@{self.out}/y.npz", "--json",
                self.out / "j")

    def vm_inspect(self):
        return "vm-inspect", self.dir / "m.ingot", "--disasm", "--blobs", "-o", self.out / "t"

    def vm_bench(self):
        return ("vm-bench", self.dir / "m.ingot", "--input", "4xf32=1 2 3 4", "--min-time", "1us", "--warmup", "1us",
                "--threads", "1")

    def vm_compile(self):
        if not (BIN / "vm-compile").exists():
            print("SKIP: no vm-compile")
            self.skipTest("no vm-compile")
        return "vm-compile", DATA / "mlp.py", "--threads", "1", "-o", self.out / "m.ingot"

    def outputs(self):
        return {path.name: path.read_bytes() for path in self.out.iterdir()}

    def remove_outputs(self):
        for path in self.out.iterdir():
            path.unlink()


class AllocationFaults(Faults):
    def sweep(self, name, *args, most=400):
        """The first allocations fail, then `most` of the others, evenly spread."""
        count = self.dir / "count"
        self.run_tool(name, *args, check=True, LD_PRELOAD=FAIL_ALLOCATION, INGOT_FAIL_COUNT=count)
        total = int(count.read_text())
        self.assertGreater(total, 100)
        step = 1 if LONG else max(1, total // most)
        chosen = sorted(set(range(1, min(total, 50))) | set(range(1, total + 1, step)))
        failed = 0
        for k in chosen:
            for ever in ({}, {"INGOT_FAIL_FOR_EVER": 1}):
                result = self.run_tool(name, *args, LD_PRELOAD=FAIL_ALLOCATION, INGOT_FAIL_AT=k, **ever)
                where = f"{name}, allocation {k} of {total} {ever}: {result.returncode}\n{result.stderr}"
                self.assertIn(result.returncode, (0, OUT_OF_MEMORY), where)
                if result.returncode != 0:
                    failed += 1
                    self.assertIn("out of memory", result.stderr, where)
                self.assertEqual([p.name for p in self.out.iterdir() if p.name.endswith(".tmp")], [], where)
        print(f"allocations of {name}: {2 * len(chosen)} runs, {failed} ended out of memory", flush=True)
        self.assertGreater(failed, len(chosen) // 2)

    def test_vm_run(self):
        self.sweep(*self.vm_run())

    def test_vm_inspect(self):
        self.sweep(*self.vm_inspect())

    def test_vm_bench(self):
        self.sweep(*self.vm_bench(), most=150)

    def test_vm_compile(self):
        self.sweep(*self.vm_compile(), most=60)


# The errors that each system call fails with.
ERRORS = {
    "openat": ["EIO", "EMFILE", "ENOMEM", "EINTR"],
    "openat2": ["EIO", "EMFILE", "EINTR"],
    "newfstatat": ["EIO"],
    "readlink": ["EIO"],
    "read": ["EIO", "EINTR"],
    "pread64": ["EIO", "EINTR"],
    "mmap": ["ENOMEM"],
    "mprotect": ["ENOMEM"],
    "write": ["EIO", "ENOSPC", "EINTR"],
    "fsync": ["EIO", "EINTR"],
    "ftruncate": ["EIO", "EINTR"],
    "rename": ["EIO"],
    "close": ["EIO", "EINTR"],
    "memfd_create": ["EMFILE"],
    "clone3": ["EAGAIN"],
}
STARTS_MAIN = "rt_sigaction"  # the tools' first call


class SystemCallFaults(Faults):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("strace") or subprocess.run(["strace", "-o", "/dev/null", "true"],
                                                        capture_output=True).returncode != 0:
            print("SKIP: no strace, or it may not trace")
            raise unittest.SkipTest("no strace")

    def calls_of(self, command):
        """For each system call: the numbers of the first one of main and of the last one of any thread."""
        log = self.dir / "log"
        self.remove_outputs()
        self.run_tool(*command, before=["strace", "-f", "-o", log, "-e", f"trace={','.join(ERRORS)},{STARTS_MAIN}"],
                      check=True)
        made, first, main = collections.defaultdict(collections.Counter), None, None
        for line in log.read_text().splitlines():
            call = re.match(r"(\d+) +(\w+)\(", line)
            if call is None:
                continue
            main = main or call[1]
            if call[2] == STARTS_MAIN and first is None:
                first = dict(made[main])
            made[call[1]][call[2]] += 1
        last = {name: max(thread[name] for thread in made.values()) for name in ERRORS}
        return {name: (first.get(name, 0) + 1, last[name]) for name in ERRORS if last[name] > first.get(name, 0)}

    def sweep(self, *command, most=60, same_outputs=True):
        """Up to `most` of the calls of one name fail, evenly spread."""
        shown = self.run_tool(*command, check=True).stdout
        whole = self.outputs()
        runs, ended, wrong = 0, collections.Counter(), []
        for name, (first, last) in self.calls_of(command).items():
            for k in range(first, last + 1, 1 if LONG else max(1, (last - first) // most)):
                for error in ERRORS[name]:
                    self.remove_outputs()
                    result = self.run_tool(*command, before=["strace", "-f", "-o", "/dev/null", "-e",
                                                             f"inject={name}:error={error}:when={k}"])
                    where = f"{command[0]}: {name} number {k}, {error}: {result.returncode}\n{result.stderr}"
                    found = self.outputs()
                    runs += 1
                    ended[result.returncode] += 1
                    if result.returncode not in (0, BAD_INPUT, CORRUPT, NOT_TRUSTED, OUT_OF_MEMORY):
                        wrong.append(f"not a code of a fault: {where}")
                    elif result.returncode != 0 and not re.search(f"(?m)^{command[0]}: error: .", result.stderr):
                        wrong.append(f"no message: {where}")
                    elif result.returncode == 0 and result.stdout != shown and same_outputs:
                        wrong.append(f"printed something else: {where}")
                    # All of the outputs are there after a success, and after a failure that came when they were.
                    if (found or result.returncode == 0) and (
                            found != whole if same_outputs else found.keys() != whole.keys()):
                        wrong.append(f"outputs {sorted(found)}: {where}")
        print(f"system calls of {command[0]}: {runs} runs, ended with {dict(sorted(ended.items()))}", flush=True)
        self.assertEqual(wrong, [], "\n".join([f"{len(wrong)} of {runs}", *wrong[:20]]))
        self.assertGreater(ended[BAD_INPUT], 0)
        self.assertGreater(ended[0], 0)

    def test_vm_run(self):
        self.sweep(*self.vm_run())

    def test_vm_run_that_prints(self):
        self.sweep("vm-run", self.dir / "m.ingot", "--input", "4xf32=1 2 3 4", most=10)

    def test_vm_inspect(self):
        self.sweep(*self.vm_inspect())

    def test_vm_bench(self):
        self.sweep(*self.vm_bench(), "--json", self.out / "j", most=20, same_outputs=False)

    def test_vm_compile(self):
        self.sweep(*self.vm_compile(), most=12)

    def test_two_files_of_vm_compile(self):
        self.vm_compile()
        self.sweep("vm-compile", DATA / "onnx/gemm.onnx", "--threads", "1", "-o", self.out / "m.ingot", "--external-weights",
                   self.out / "w.safetensors", most=1)

    def test_program(self):
        self.sweep(*self.vm_compile(), "--emit=program", most=1)

    def test_files_that_are_read(self):
        (self.dir / "x.npy").write_bytes(NPY)
        self.sweep("vm-run", self.dir / "m.ingot", self.dir / "x.npy", "--output", f"@{self.out}/y.safetensors", most=10)

    def test_make_key(self):
        self.sweep("vm-inspect", "--make-key", self.out / "key", same_outputs=False)


class ShortCalls(Faults):
    def test_make_key(self):
        result = self.run_tool("vm-inspect", "--make-key", self.out / "key", LD_PRELOAD=SHORT_CALLS)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual({name: len(data) for name, data in self.outputs().items()},
                         {"key": len("ingot-secret-key ") + 129, "key.pub": 65})

    def test_tools(self):
        for make in self.vm_run, self.vm_inspect, self.vm_compile:
            command = make()
            self.run_tool(*command, check=True)
            whole = self.outputs()
            self.remove_outputs()
            result = self.run_tool(*command, LD_PRELOAD=SHORT_CALLS)
            self.assertEqual(result.returncode, 0, f"{command[0]}: {result.stderr}")
            self.assertEqual(self.outputs(), whole, command[0])
            self.remove_outputs()


if __name__ == "__main__":
    unittest.main(verbosity=1)
