"""What the pages say that an addition costs is all that it costs: the additions that they show are applied to a copy of
the tree, which compiles with them, and does not when a part is left out.

usage: additions.py [TEST ...]
"""
import importlib.util
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {".h", ".cc", ".c", ".def", ".inc"}


def additions_of(page, heading):
    """The blocks of type diff in a section of a page, as (file, lines that are there, lines with the addition)."""
    section = (ROOT / page).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    additions = []
    for block in re.findall(r"^```diff\n\+\+\+ (.*?)^```", section, re.M | re.S):
        file, *lines = block.splitlines()
        before = [line[1:] for line in lines if line[0] == " "]
        additions.append((file, "\n".join(before) + "\n", "\n".join(line[1:] for line in lines) + "\n"))
    return additions


class Tree:
    """A copy of some folders of the tree, with what scripts/check_units needs."""

    def __init__(self, folders):
        self.scratch = tempfile.TemporaryDirectory(prefix="ingot-additions-")
        self.path = Path(self.scratch.name)
        for folder in folders:
            for file in (ROOT / folder).rglob("*"):
                if file.suffix in SOURCES:
                    self.copy(file.relative_to(ROOT))
        self.copy("scripts/check_units")

    def copy(self, file):
        (self.path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, self.path / file)

    def replace(self, file, before, after):
        text = (self.path / file).read_text()
        if text.count(before) != 1:
            raise AssertionError(f"{file}: {text.count(before)} places have these lines:\n{before}")
        (self.path / file).write_text(text.replace(before, after))

    def add(self, additions):
        for file, before, after in additions:
            self.replace(file, before, after)

    def check(self, *folders):
        """Compiles each folder as one unit, with warnings as errors."""
        return subprocess.run([self.path / "scripts/check_units", *folders], capture_output=True, text=True, check=False)

    def close(self):
        self.scratch.cleanup()


class Opcode(unittest.TestCase):
    """vm/README.md, "Adding an opcode": a row of the table, a rule and a handler."""
    FOLDERS = ["vm/program", "vm/text", "vm/verify", "vm/link", "vm/run", "vm/tools", "vm/api"]
    ROW, RULE, HANDLER = "vm/program/opcodes.def", "vm/verify/function_verifier.cc", "vm/run/instruction_steps.cc"

    def setUp(self):
        self.tree = Tree(["runtime", "formats", "vm"])
        self.addCleanup(self.tree.close)
        self.additions = additions_of("vm/README.md", "Adding an opcode")
        self.assertEqual([addition[0] for addition in self.additions], [self.ROW, self.RULE, self.HANDLER])

    def without(self, file):
        return [addition for addition in self.additions if addition[0] != file]

    def refuses(self, folder, message):
        result = self.tree.check(folder)
        self.assertEqual(result.returncode, 1, "compiles")
        self.assertIn(message, result.stderr)

    def test_a_row_a_rule_and_a_handler_are_enough(self):
        self.tree.add(self.additions)
        result = self.tree.check(*self.FOLDERS)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_rule_or_a_handler_that_is_left_out(self):
        for file in [self.RULE, self.HANDLER]:
            with self.subTest(file):
                self.tree.close()
                self.tree = Tree(["runtime", "formats", "vm"])
                self.tree.add(self.without(file))
                self.refuses(str(Path(file).parent), "enumeration value \u2018kIsEmpty\u2019 not handled in switch")
                self.tree.close()

    def test_a_column_that_is_left_out(self):
        self.tree.add(self.additions)
        self.tree.replace(self.ROW, '"is_empty", Next, None, Nothing, Dims,', '"is_empty", Next, None, Nothing,')
        self.refuses("vm/program", "error")

    def test_a_column_that_the_operands_contradict(self):
        self.tree.add(self.additions)
        self.tree.replace(self.ROW, '"is_empty", Next,', '"is_empty", Jump,')
        self.refuses("vm/program", "ColumnsAgree")

    def test_the_second_reader_knows_it(self):
        self.tree.add(self.additions)
        self.tree.copy("scripts/read_executable.py")
        spec = importlib.util.spec_from_file_location("reader", self.tree.path / "scripts/read_executable.py")
        reader = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(reader)
        except ImportError as error:
            self.skipTest(str(error))
        rows = reader.opcode_table()
        self.assertEqual(rows[max(rows)], ("is_empty", [("Def", "dst"), ("Use", "tensor")]))


if __name__ == "__main__":
    unittest.main()
