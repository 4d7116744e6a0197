"""scripts/check_includes on this tree and on trees with one wrong include each.

usage: include_order.py
"""
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["runtime", "formats", "vm", "compiler", "apps", "tests"]
SOURCES = {".h", ".cc", ".c", ".def"}


def check(tree):
    return subprocess.run([ROOT / "scripts/check_includes", tree], capture_output=True, text=True)


def order_of(folder):
    """The folders inside of compiler or vm, as the script lists them."""
    text = (ROOT / "scripts/check_includes").read_text()
    return re.search(rf"^{folder}=\((.*?)\)", text, re.M | re.S).group(1).split()


class IncludeOrder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.tree = Path(cls.scratch.name) / "tree"
        for folder in FOLDERS:
            for file in (ROOT / folder).rglob("*"):
                if file.suffix in SOURCES:
                    copy = cls.tree / file.relative_to(ROOT)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, copy)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def refuses(self, file, line, message):
        """With this line added to a file of the copy the check fails and names the file and the reason."""
        path = self.tree / file
        before = path.read_text()
        path.write_text(line + "\n" + before)
        try:
            result = check(self.tree)
            self.assertEqual(result.returncode, 1, file)
            self.assertIn(f"{file}:1:{line}", result.stdout)
            self.assertIn(message, result.stderr)
        finally:
            path.write_text(before)

    def test_this_tree_is_in_order(self):
        result = check(self.tree)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_each_inner_folder_against_each_after_it(self):
        for outer in ["compiler", "vm"]:
            order = order_of(outer)
            for place, folder in enumerate(order):
                file = min((self.tree / outer / folder).rglob("*.cc")).relative_to(self.tree).as_posix()
                for later in order[place + 1:]:
                    self.refuses(file, f'#include "{outer}/{later}/x.h"', f"{outer}/{folder}/ comes before")

    def test_top_level_folders(self):
        for place, folder in enumerate(FOLDERS[:-1]):
            file = min((self.tree / folder).rglob("*.cc")).relative_to(self.tree).as_posix()
            for later in FOLDERS[place + 1:]:
                self.refuses(file, f'#include "{later}/x.h"', f"{folder}/ comes before")

    def test_headers_of_llvm_and_protobuf_have_one_folder_each(self):
        self.refuses("compiler/driver/compile.cc", "#include <llvm/IR/Module.h>", "neither LLVM nor protobuf")
        self.refuses("compiler/importer/onnx.cc", "#include <llvm-c/Core.h>", "may not include LLVM")
        self.refuses("compiler/codegen/codegen.cc", "#include <onnx/onnx_pb.h>", "neither protobuf nor ONNX")

    def test_a_folder_without_a_place(self):
        for outer in ["compiler", "vm"]:
            folder = self.tree / outer / "nowhere"
            folder.mkdir()
            (folder / "x.cc").write_text("")
            try:
                result = check(self.tree)
                self.assertEqual(result.returncode, 1)
                self.assertIn(f"{outer}/nowhere/ has no place", result.stderr)
            finally:
                shutil.rmtree(folder)

    def test_libraries_are_built_in_the_same_order(self):
        text = (ROOT / "compiler/CMakeLists.txt").read_text()
        libraries = re.search(r"set\(INGOT_COMPILER_FOLDERS (.*?)\)", text, re.S).group(1).split()
        self.assertEqual(libraries, order_of("compiler"))


if __name__ == "__main__":
    unittest.main()
