"""scripts/check_includes on this tree and on trees with wrong includes, each of which it must name; scripts/check_units
on folders whose files do not go together; and the table of the compiler's stages beside the page that explains them.

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

    def refuses(self, file, lines, message):
        """With these lines at the top of a file of the copy the check fails, names each of them, and says why."""
        path = self.tree / file
        before = path.read_text()
        path.write_text("".join(line + "\n" for line in lines) + before)
        try:
            result = check(self.tree)
            self.assertEqual(result.returncode, 1, file)
            for number, line in enumerate(lines, 1):
                self.assertIn(f"{file}:{number}:{line}", result.stdout)
            self.assertIn(message, result.stderr)
        finally:
            path.write_text(before)

    def refuses_each_later(self, prefix, order):
        """The first file of each folder may include none of the folders after it."""
        for place, folder in enumerate(order[:-1]):
            file = min((self.tree / prefix / folder).rglob("*.cc")).relative_to(self.tree).as_posix()
            later = [f'#include "{prefix}{name}/x.h"' for name in order[place + 1:]]
            self.refuses(file, later, f"{prefix}{folder}/ comes before")

    def test_this_tree_is_in_order(self):
        result = check(self.tree)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_each_folder_against_all_after_it(self):
        self.refuses_each_later("", FOLDERS)
        for outer in ["compiler", "vm"]:
            self.refuses_each_later(outer + "/", order_of(outer))

    def test_headers_of_llvm_and_protobuf_have_one_folder_each(self):
        self.refuses("compiler/driver/compile.cc", ["#include <llvm/IR/Module.h>"], "neither LLVM nor protobuf")
        self.refuses("compiler/importer/onnx.cc", ["#include <llvm-c/Core.h>"], "may not include LLVM")
        self.refuses("compiler/codegen/codegen.cc", ["#include <onnx/onnx_pb.h>"], "neither protobuf nor ONNX")

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


class Stages(unittest.TestCase):
    """The table at the top of compiler/driver/compile.h."""
    def rows(self):
        table = (ROOT / "compiler/driver/compile.h").read_text().split("#pragma once")[0]
        rows = re.findall(r"^//     (\d)  (\w+(?: \w+)?) +((?:[\w/]+/,? )+) *\w", table, re.M)
        self.assertEqual([int(number) for number, _, _ in rows], list(range(1, len(rows) + 1)))
        return [(name, re.findall(r"[\w/]+", folders)) for _, name, folders in rows]

    def test_folders_are_there(self):
        folders = [folder for _, own in self.rows() for folder in own]
        self.assertGreater(len(folders), 8)
        for folder in folders:
            self.assertTrue((ROOT / "compiler" / folder).is_dir() or (ROOT / folder).is_dir(), folder)

    def test_the_page_has_the_same_stages(self):
        page = (ROOT / "compiler/README.md").read_text()
        table = re.search(r"^\| stage \|.*\n\|[-|]+\n((?:\|.*\n)+)", page, re.M)[1]
        cells = [line.strip("|").split(" | ") for line in table.splitlines()]
        self.assertEqual([row[0].strip() for row in cells], [name for name, _ in self.rows()])
        for row, (name, folders) in zip(cells, self.rows()):
            for folder in folders:
                self.assertIn(f"`{folder}", row[-1], name)


class Units(unittest.TestCase):
    def check(self, *texts, header=""):
        with tempfile.TemporaryDirectory() as folder:
            for number, text in enumerate(texts):
                (Path(folder) / f"file{number}.cc").write_text(text)
            (Path(folder) / "names.h").write_text("#pragma once\n" + header)
            return subprocess.run([ROOT / "scripts/check_units", folder], capture_output=True, text=True)

    def test_files_that_go_together(self):
        result = self.check("namespace { [[maybe_unused]] int One() { return 1; } }\n",
                            "namespace { [[maybe_unused]] int Two() { return 2; } }\n")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_name_of_two_files(self):
        result = self.check("namespace { constexpr int kRows = 1; }\n", "namespace { constexpr int kRows = 2; }\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn("redefinition of", result.stderr)

    def test_a_name_that_a_header_declares(self):
        result = self.check('#include "names.h"\nint F(Names names) { return names.count; }\n',
                            "namespace { [[maybe_unused]] int Names() { return 1; } }\n",
                            header="struct Names { int count; };\nint F(Names names);\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn("Names", result.stderr)

    def test_a_warning(self):
        result = self.check("int F(int x) { int unused; return x; }\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn("unused", result.stderr)


if __name__ == "__main__":
    unittest.main()
