"""The tools withstand files that ask for too much and text with terminal control characters, and report output that
cannot be written. Programs are assembled from text, so that this needs the tools and Python alone.

usage: hostile_tools.py BIN_DIR [TEST ...]"""
import json, os, pathlib, resource, shutil, subprocess, sys, tempfile, unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
USAGE, BAD_INPUT, OUT_OF_MEMORY, DEADLINE = 2, 3, 6, 7

QUICK = "ingot 1\nfunction @main export () -> () {\n  return []\n}\n"
PRODUCTS = """
  register r0: float32[1500, 1500]
  register r1: float32[1500, 1500]
  alloc r0, [1500, 1500]
  alloc r1, [1500, 1500]
""" + "  call_builtin [], matmul, [r1, r0, r0]\n" * 10 + "  return [r1]\n}\n"


def processor_seconds():
    """What the tools have had so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class HostileTools(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-hostile-"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def run_tool(self, name, *args, space=8 << 30, **options):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (space, space))

        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.run([BIN / name, *map(str, args)], preexec_fn=limit, **options)

    def assemble(self, text, **options):
        (self.dir / "m.ingotasm").write_text(text)
        return self.run_tool("vm-inspect", "--assemble", self.dir / "m.ingotasm", "-o", self.dir / "m.ingot", **options)

    def make(self, text):
        made = self.assemble(text)
        self.assertEqual(made.returncode, 0, made.stderr)
        return self.dir / "m.ingot"

    # ---- text

    def test_json_of_a_file_whose_name_is_no_text(self):
        exe = self.make('ingot 1\nfunction @main export (x: int) -> (n: int) {\n  return [r0]\n}\n')
        name = os.fsencode(self.dir) + b"/m\xff.ingot"
        os.rename(exe, name)
        result = subprocess.run([BIN / "vm-inspect", name, "--doctor", "--format", "json"], capture_output=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("findings", json.loads(result.stdout))

    def test_what_is_zeroed_is_counted_where_it_is_not_listed(self):
        for count, listed in ((99, 99), (100, 100), (250, 100)):
            body = "  alloc r0, [4]\n  load_int r1, r0, r2\n" * count
            exe = self.make("ingot 1\nfunction @main export () -> (n: int) {\n  register r0: int64[4]\n"
                            "  register r1: int\n  register r2: int\n  const_int r2, 0\n" + body + "  return [r1]\n}\n")
            result = self.run_tool("vm-inspect", exe, "--json", "-")
            function = json.loads(result.stdout)["functions"][0]
            self.assertEqual((len(function["zeroed"]), function["zeroed_in_all"]), (listed, count))
            shown = self.run_tool("vm-inspect", exe).stdout.decode()
            self.assertEqual(shown.count("zeroed at each call"), listed)
            self.assertEqual(f"and {count - listed} more that are zeroed" in shown, count > listed)

    def test_control_characters_are_escaped(self):
        exe = self.make('ingot 1\nmetadata "k\\x1b[2J" = "\\x1b]0;title\\x07\\x7f"\n'
                        'function @"ma\\x1b[31min" export (x: int) -> (n: int) {\n  register r1: string\n'
                        '  const_string r1, "\\x1b[1mprinted"\n  call_builtin [], print, [r1]\n  return [r0]\n}\n')
        for name, *args in (("vm-inspect", exe), ("vm-inspect", exe, "--disasm"), ("vm-inspect", exe, "--sections"),
                            ("vm-inspect", exe, "--json", "-"), ("vm-inspect", exe, "--format", "json"),
                            ("vm-inspect", exe, "--doctor"), ("vm-run", exe), ("vm-run", exe, "--entry", "x"),
                            ("vm-run", exe, "--entry", "ma\x1b[31min", "--input", "1"),
                            ("vm-inspect", exe, "--dim", "n\x1b=1")):
            result = self.run_tool(name, *args)
            shown = result.stdout + result.stderr
            self.assertTrue(shown)
            self.assertFalse([b for b in shown if b < 0x20 and b not in b"\n\t" or b == 0x7F], f"{args}: {shown}")
            if "json" in "".join(map(str, args[1:])):
                self.assertIn("k\x1b[2J", json.loads(result.stdout)["metadata"])

    # ---- what is asked for

    def test_limits_are_numbers(self):
        exe = self.make(QUICK)
        for option in "--fuel", "--max-memory", "--deadline":
            for value in "-1", "nan", "-inf", "x":
                result = self.run_tool("vm-run", exe, f"{option}={value}")
                self.assertEqual(result.returncode, USAGE, f"{option}={value}: {result.stderr}")
        for option in "--fuel", "--max-memory", "--repeat":
            result = self.run_tool("vm-run", exe, option, 10**20)
            self.assertEqual(result.returncode, USAGE, result.stderr)
            self.assertIn(b"does not fit", result.stderr)
        self.assertEqual(self.run_tool("vm-run", exe, "--fuel", 5, "--max-memory", 10**6, "--deadline", 9).returncode, 0)

    def test_deadlines_hold_inside_of_builtins_and_before_the_call(self):
        run = "ingot 1\nfunction @main export () -> (y: float32[1500, 1500]) {" + PRODUCTS
        prepare = ('ingot 1\nconstant "w" float32[1500, 1500] = prepared @p 0\n'
                   "function @p () -> (y: float32[1500, 1500]) {" + PRODUCTS + QUICK.partition("\n")[2])
        for text in run, prepare:
            exe = self.make(text)
            start = processor_seconds()
            result = self.run_tool("vm-run", exe, "--deadline", 0.2, "--output", self.dir / "y.npy")
            self.assertEqual(result.returncode, DEADLINE, result.stderr)
            self.assertLess(processor_seconds() - start, 5)

    def test_short_texts_that_ask_for_much_memory(self):
        zeros = 'constant "w" int8[1073741824] = zeros\n'
        made = self.assemble(QUICK.replace("\n", "\n" + zeros * 2, 1), space=1 << 30)
        self.assertEqual(made.returncode, BAD_INPUT, made.stderr)
        slots = "function @f (x: int) -> () {\n" + "  dim r0, r1048575\n" * 200 + "  return []\n}\n"
        made = self.assemble(QUICK + slots, space=1 << 28)
        self.assertEqual(made.returncode, BAD_INPUT, made.stderr)

    def test_out_of_memory_is_an_exit_code(self):
        text = QUICK.replace("{\n", "{\n" + "".join(f"  register r{i}: int\n" for i in range(900_000)))
        self.assertEqual(self.assemble(QUICK, space=1 << 27).returncode, 0)
        made = self.assemble(text, space=1 << 27)
        self.assertEqual(made.returncode, OUT_OF_MEMORY, made.stderr)
        self.assertIn(b"out of memory", made.stderr)

    # ---- output

    def test_a_full_standard_output_is_a_failure(self):
        exe = self.make("ingot 1\nfunction @main export () -> (n: int) {\n  register r0: int\n  const_int r0, 7\n"
                        "  return [r0]\n}\n")
        for name, *args in (("vm-run", exe), ("vm-inspect", exe), ("vm-inspect", exe, "--sections"),
                            ("vm-inspect", exe, "--json", "-"), ("vm-run", "--help"), ("vm-run", "--version"),
                            ("vm-run", "--man-page"), ("vm-run", "--completion=bash")):
            with open("/dev/full", "wb") as full:
                result = self.run_tool(name, *args, stdout=full)
            self.assertEqual(result.returncode, BAD_INPUT, f"{name} {args}: {result.stderr}")
            self.assertIn(b"standard output", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
