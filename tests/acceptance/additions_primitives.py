"""What compiler/schedule/README.md says that a new schedule primitive takes is all that it takes: the lines that the page
shows are added to a copy of the compiler, which compiles with them and gives Schedule the method; a row whose types are
not those of the function does not compile.

usage: additions_primitives.py
"""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "compiler/schedule/README.md"
ROW = "compiler/schedule/primitives.def"
TABLE = "compiler/schedule/schedule.cc"
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I.", "-Ivm/include"]
USE = """
#include "compiler/schedule/schedule.h"

using namespace ingot::schedule;

std::vector<BlockRV> Use(Schedule& s) { return s.GetConsumers(s.GetBlock("A")); }
static_assert(static_cast<int>(Primitive::kGetConsumers) == static_cast<int>(Primitive::kGetProducers) + 1);
"""


def additions():
    """The blocks of type diff of the page, as (file, lines that are there, lines with the addition)."""
    for block in re.findall(r"^```diff\n\+\+\+ (.*?)^```", PAGE.read_text(), re.M | re.S):
        file, *lines = block.splitlines()
        before = [line[1:] for line in lines if line[0] == " "]
        yield file, "\n".join(before) + "\n", "\n".join(line[1:] for line in lines) + "\n"


class Primitive(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ingot-additions-")
        self.addCleanup(scratch.cleanup)
        self.tree = Path(scratch.name)
        for folder in ["runtime", "formats", "vm", "compiler"]:
            for file in (ROOT / folder).rglob("*"):
                of_schedule = file.is_relative_to(ROOT / "compiler/schedule")
                if file.suffix in {".h", ".def", ".inc"} or (of_schedule and file.suffix == ".cc"):
                    copy = self.tree / file.relative_to(ROOT)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, copy)
        self.additions = list(additions())
        self.assertIn(ROW, [file for file, _, _ in self.additions])
        for file, before, after in self.additions:
            self.replace(file, before, after)

    def replace(self, file, before, after):
        path = self.tree / file
        text = path.read_text()
        self.assertEqual(text.count(before), 1, f"{file} has these lines once:\n{before}")
        path.write_text(text.replace(before, after))

    def compile(self, *files):
        for file in files:
            result = subprocess.run([os.environ.get("CXX", "c++"), *FLAGS, file], cwd=self.tree, capture_output=True,
                                    text=True)
            if result.returncode != 0:
                return result.stderr
        return ""

    def test_what_the_page_shows_is_enough(self):
        (self.tree / "use.cc").write_text(USE)
        changed = [file for file, _, _ in self.additions if file.endswith(".cc")]
        self.assertEqual(self.compile(*changed, TABLE, "use.cc"), "")
        self.assertNotIn(TABLE, changed)

    def test_a_row_of_other_types_than_the_function(self):
        row = 'INGOT_PRIMITIVE(GetConsumers, "get_consumers", BlockRVs, (BlockRV block), block)'
        for right, wrong in [("BlockRVs", "LoopRVs"), ("(BlockRV", "(LoopRV")]:
            with self.subTest(wrong):
                self.replace(ROW, row, row.replace(right, wrong))
                self.assertIn("error", self.compile(TABLE))
                self.replace(ROW, row.replace(right, wrong), row)


if __name__ == "__main__":
    unittest.main()
