"""Files are written whole or not at all: the disk is full, a system call fails, or the process is killed, at every
system call on the way (strace's fault injection). Afterwards the old file is there or the new one, whole, and, unless
the process was killed by SIGKILL, no temporary. Several files of one command change together, or none does.

usage: atomic_writes.py BIN_DIR    exits 77 (skipped) without strace, or where it may not trace"""

import os, pathlib, re, shutil, signal, subprocess, sys, tempfile, unittest

from tools import Tools

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
CALLS = "openat,write,pwrite64,fsync,fchmod,rename,close,fstat,newfstatat"

if (
    not shutil.which("strace")
    or subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode != 0
):
    print("SKIP: no strace, or it may not trace")
    sys.exit(77)


class AtomicWrites(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-atomic-"))
        self.source = self.dir / "digits.ingot"
        Tools(BIN, check=True)("vm-compile", DATA / "digits.onnx", "-o", self.source)
        program = self.dir / "program"
        Tools(BIN, check=True)("vm-compile", DATA / "digits.onnx", "--emit=program", "-o", program)
        # The same writer as vm-compile's, behind less that is not its matter: executables and packed programs.
        self.cases = {"executable": (self.source, self.dir / "e/x.ingot"), "program": (program, self.dir / "p/x")}
        for _, target in self.cases.values():
            target.parent.mkdir()

    def tearDown(self):
        shutil.rmtree(self.dir)

    def write(self, source, target, *strace):
        return subprocess.run(
            [*strace, BIN / "vm-inspect", source, "--strip", "-o", target], capture_output=True, text=True
        )

    def calls_on_the_way(self, source, target):
        """The numbers, per call, of those made from opening the temporary to the end."""
        log = self.dir / "log"
        self.assertEqual(self.write(source, target, "strace", "-f", "-o", log, "-e", f"trace={CALLS}").returncode, 0)
        seen, chosen, started = {}, [], False
        for line in log.read_text().splitlines():
            call = re.match(r"(?:\d+ +)?(\w+)\(", line)
            if call is None:
                continue
            name = call.group(1)
            seen[name] = seen.get(name, 0) + 1
            started = started or (name == "openat" and ".tmp" in line)
            if started:
                chosen.append((name, seen[name]))
        self.assertGreater(len(chosen), 5)
        return chosen

    def each_fault(self, case, faults):
        source, target = self.cases[case]
        self.assertEqual(self.write(source, target).returncode, 0)
        new = target.read_bytes()
        outcomes = {"old": 0, "new": 0}
        for name, number in self.calls_on_the_way(source, target):
            for fault in faults:
                old = b"the old file"
                target.write_bytes(old)
                result = self.write(
                    source, target, "strace", "-f", "-o", "/dev/null", "-e", f"inject={name}:{fault}:when={number}"
                )
                found = target.read_bytes()
                where = f"{case}: {name} number {number}, {fault}: {result.stderr}"
                self.assertIn(found, (old, new), where)
                outcomes["old" if found == old else "new"] += 1
                rest = [p for p in target.parent.iterdir() if p != target]
                if fault != "signal=KILL":
                    self.assertEqual(rest, [], where)
                    if found == old:
                        self.assertNotEqual(result.returncode, 0, where)
                    if fault.startswith("signal"):
                        self.assertIn(result.returncode, (0, -signal.Signals["SIG" + fault[7:]]), where)
                for path in rest:
                    path.unlink()
        print(case, outcomes)
        self.assertGreater(outcomes["old"], 0)
        self.assertGreater(outcomes["new"], 0)

    def test_calls_that_fail(self):
        for case in self.cases:
            self.each_fault(case, ["error=ENOSPC", "error=EIO"])

    def test_killed_at_every_call(self):
        for case in self.cases:
            self.each_fault(case, ["signal=KILL"])

    def test_signals_at_every_call(self):
        self.each_fault("executable", ["signal=TERM", "signal=INT", "signal=HUP"])

    def test_several_files_change_together(self):
        """Each command writes several files. Every write and every fsync of one of them fails; then both are the old ones."""
        model, both = DATA / "digits.onnx", self.dir / "both"
        both.mkdir()
        a, b = both / "a.ingot", both / "b.safetensors"
        commands = [
            (["vm-compile", model, "-o", a, "--external-weights", b], [a, b]),
            (["vm-compile", model, "--emit=relax", "-o", both / "m.py"],
             [both / "m.py", both / "m.constants.safetensors"]),
            (["vm-compile", model, "--emit=object", "-o", both / "m.o"], [both / "m.o", both / "m.h"]),
            (["vm-inspect", self.source, "--disasm", "--blobs", "-o", both / "t"], [both / "t", both / "t.blobs"]),
            (["vm-compile", model, "-o", a, "--json", both / "j"], [a, both / "j"]),
            (["vm-run", self.source, "--input", "zeros", "--output", f"@{both}/o.npz", "--json", both / "j", "--trace",
              both / "tr"], [both / "o.npz", both / "j", both / "tr"]),
        ]
        log = self.dir / "log"
        for (tool, *args), files in commands:
            command = [BIN / tool, *args]
            subprocess.run(["strace", "-f", "-y", "-o", log, "-e", "trace=write,fsync", *command], check=True,
                           capture_output=True)
            self.assertEqual(sorted(both.iterdir()), sorted(files), args)
            calls, seen = [], {}
            for line in log.read_text().splitlines():
                call = re.match(r"(?:\d+ +)?(\w+)\(\d+<([^>]*)>", line)
                if call is None:
                    continue
                seen[call[1]] = seen.get(call[1], 0) + 1
                if call[2].endswith(".tmp"):
                    calls.append((call[1], seen[call[1]]))
            self.assertGreaterEqual(len(calls), 2 * len(files), args)
            for file in files:
                file.write_bytes(b"the old file")
            for name, number in calls[:3] + calls[-8:]:
                result = subprocess.run(
                    ["strace", "-f", "-o", "/dev/null", "-e", f"inject={name}:error=ENOSPC:when={number}", *command],
                    capture_output=True, text=True)
                where = f"{args}: {name} number {number}: {result.stderr}"
                self.assertEqual(result.returncode, 3, where)
                self.assertEqual(sorted(both.iterdir()), sorted(files), where)
                for file in files:
                    self.assertEqual(file.read_bytes(), b"the old file", where)
            for file in files:
                file.unlink()

    def test_a_rename_that_fails_takes_back_those_before_it(self):
        """Whether there were files before or not."""
        a, b = self.dir / "t", self.dir / "t.blobs"
        command = [BIN / "vm-inspect", self.source, "--disasm", "--blobs", "-o", a]
        for old in {}, {a: b"the old text", b: b"the old blobs"}, {a: b"the old text"}, {b: b"the old blobs"}:
            for file, content in old.items():
                file.write_bytes(content)
            result = subprocess.run(
                ["strace", "-f", "-o", "/dev/null", "-e", "inject=renameat2:error=EIO:when=2", "-e",
                 f"inject=rename:error=EIO:when={1 if b in old else 2}", *command], capture_output=True, text=True)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn("cannot rename", result.stderr)
            found = {file: file.read_bytes() for file in self.dir.glob("*t*") if file.name.startswith((".t", "t"))}
            self.assertEqual(found, old)
            for file in old:
                file.unlink()

    def test_a_failing_close_stops_nothing(self):
        """Of any descriptor that the compiler closes, those of LLVM and lld among them; the loader's come first."""
        log, target = self.dir / "log", self.dir / "x.ingot"
        command = [BIN / "vm-compile", DATA / "mlp.py", "--threads", "1", "-o", target]
        subprocess.run(["strace", "-f", "-o", log, "-e", "trace=close,openat,memfd_create", *command], check=True,
                       capture_output=True)
        lines = log.read_text().splitlines()
        model = next(i for i, line in enumerate(lines) if "mlp.py" in line and "openat" in line)
        closes = [i for i, line in enumerate(lines) if re.match(r"(?:\d+ +)?close\(", line)]
        chosen = [number for number, i in enumerate(closes, 1) if i > model]
        self.assertGreater(len(chosen), 5)
        for number in chosen:
            result = subprocess.run(
                ["strace", "-f", "-o", "/dev/null", "-e", f"inject=close:error=EIO:when={number}", *command],
                capture_output=True, text=True, timeout=60)
            self.assertIn(result.returncode, (0, 3), f"close number {number}: {result.stderr}")
            self.assertFalse([p for p in self.dir.iterdir() if p.name.endswith(".tmp")])

    def test_a_full_disk(self):
        """A real one, where mounting is allowed."""
        disk = self.dir / "disk"
        disk.mkdir()
        if (
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True).returncode
            != 0
        ):
            print("SKIP: no mounting")
            self.skipTest("no mounting")
        try:
            target = disk / "x"
            target.write_bytes(b"the old file")
            full = self.write(self.cases["program"][0], target)
            self.assertEqual(full.returncode, 3, full.stderr)
            self.assertIn("No space left on device", full.stderr)
            self.assertEqual(target.read_bytes(), b"the old file")
            self.assertEqual([p.name for p in disk.iterdir()], ["x"])
        finally:
            subprocess.run(["umount", disk], check=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
