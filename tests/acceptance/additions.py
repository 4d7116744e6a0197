"""Additions that the pages show, and copies of the tree to apply them to: what the tests additions_*.py share."""
import re
import shutil
import subprocess
import tempfile
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
