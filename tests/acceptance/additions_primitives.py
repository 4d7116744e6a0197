"""What compiler/schedule/README.md says that a new schedule primitive takes is all that it takes: the lines that the page
shows are added to a copy of the compiler, which compiles with them and gives Schedule the method; a row whose types are
not those of the function does not compile.

usage: additions_primitives.py
"""
import os
import subprocess
import unittest

from additions import Tree, additions_of

ROW = "compiler/schedule/primitives.def"
TABLE = "compiler/schedule/schedule.cc"
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I.", "-Ivm/include"]
USE = """
#include "compiler/schedule/schedule.h"

using namespace ingot::schedule;

BlockRVs Use(Schedule& s) { return s.GetConsumers(s.GetBlock("A")); }
static_assert(static_cast<int>(Primitive::kGetConsumers) == static_cast<int>(Primitive::kGetProducers) + 1);
"""


class Primitive(unittest.TestCase):
    def setUp(self):
        self.tree = Tree(["runtime", "formats", "vm", "compiler"])
        self.addCleanup(self.tree.close)
        self.additions = additions_of("compiler/schedule/README.md", "Adding a primitive")
        self.assertIn(ROW, [file for file, _, _ in self.additions])
        self.tree.add(self.additions)

    def compile(self, *files):
        for file in files:
            result = subprocess.run([os.environ.get("CXX", "c++"), *FLAGS, file], cwd=self.tree.path, capture_output=True,
                                    text=True)
            if result.returncode != 0:
                return result.stderr
        return ""

    def test_what_the_page_shows_is_enough(self):
        (self.tree.path / "use.cc").write_text(USE)
        changed = [file for file, _, _ in self.additions if file.endswith(".cc")]
        self.assertEqual(self.compile(*changed, TABLE, "use.cc"), "")
        self.assertNotIn(TABLE, changed)

    def test_a_row_of_other_types_than_the_function(self):
        row = 'INGOT_PRIMITIVE(GetConsumers, "get_consumers", BlockRVs, (BlockRV block), block)'
        for right, wrong in [("BlockRVs", "LoopRVs"), ("(BlockRV", "(LoopRV")]:
            with self.subTest(wrong):
                self.tree.replace(ROW, row, row.replace(right, wrong))
                self.assertIn("error", self.compile(TABLE))
                self.tree.replace(ROW, row.replace(right, wrong), row)


if __name__ == "__main__":
    unittest.main()
