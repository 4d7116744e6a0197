"""What vm/README.md says that an opcode costs is all that it costs: the additions that it shows are applied to a copy of
the VM, which compiles with them, and does not when a part is left out.

usage: additions_opcodes.py [TEST ...]
"""
import importlib.util
import unittest
from pathlib import Path

from additions import Tree, additions_of


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
        spec.loader.exec_module(reader)
        rows = reader.opcode_table()
        self.assertEqual(rows[max(rows)], ("is_empty", [("Def", "dst"), ("Use", "tensor")]))


if __name__ == "__main__":
    unittest.main()
