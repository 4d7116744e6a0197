"""The pages that a user reads are executed, in the order of PAGES: their shell blocks, one after another in one shell as
a reader would, in a folder that looks like the checkout with a finished build; and their blocks of C, C++, CMake and
Python are compiled and run on what the shell blocks made (the Rust program is a file, which scripts/test_packages
builds). The first block, which builds and tests everything, is what led here and is only looked at; so are blocks of
`text` and `diff`, which show something. What all pages link to in the checkout must be there: CONTRIBUTING.md and
tests/README.md, which are about building and running tests, are not executed.

usage: readme.py BIN_DIR"""
import os, pathlib, re, shutil, subprocess, sys, tempfile, textwrap, unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INDENTED = re.compile(r"(?:^    .*\n(?:\n(?=    ))*)+", re.MULTILINE)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
KNOWN = {"sh", "c", "cpp", "cmake", "python"}
SHOWN = {"text", "diff"}
PAGES = "README.md", "apps/README.md", "vm/README.md", "compiler/README.md"


def blocks(text):
    """Pairs of language and text; an indented block is one for the shell."""
    found = [(match.start(), match[1], match[2]) for match in FENCED.finditer(text)]
    # What a fence holds may be indented, too.
    prose = FENCED.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), text)
    found += [(match.start(), "sh", textwrap.dedent(match[0])) for match in INDENTED.finditer(prose)]
    return [(language, block) for _, language, block in sorted(found)]


class Readme(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-readme-"))
        for entry in ROOT.iterdir():
            if entry.name not in ("build", ".git", ".venv"):
                (cls.dir / entry.name).symlink_to(entry)
        (cls.dir / "build").mkdir()
        (cls.dir / "build/release").symlink_to(BIN.parent)
        cls.blocks = [block for page in PAGES for block in blocks((ROOT / page).read_text())]
        cls.prefix = cls.dir / "build/installed"

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def of(self, language):
        found = [block for known, block in self.blocks if known == language]
        self.assertTrue(found, f"no block of {language}")
        return found

    def good(self, *command, **options):
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, **options)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def environment(self, **more):
        library, = {path.parent for path in self.prefix.rglob("libingot.so")}
        return os.environ | {"LD_LIBRARY_PATH": str(library)} | more

    def test_0_every_block_has_a_language(self):
        self.assertEqual({language for language, _ in self.blocks} - KNOWN - SHOWN, set())

    def test_0_links_lead_somewhere(self):
        folders = [ROOT / name for name in ("runtime", "formats", "vm", "compiler", "apps", "tests")]
        pages = [*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))]
        for page in pages:
            for target in LINK.findall(FENCED.sub("", page.read_text())):
                self.assertTrue((page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}")

    def test_1_shell_blocks(self):
        first, *others = self.of("sh")
        commands = [line.split()[0] for line in first.splitlines()]
        self.assertEqual(commands, ["scripts/demo", "scripts/test"])
        for command in commands:
            self.assertTrue(os.access(ROOT / command, os.X_OK), command)
        self.assertGreater(len(others), 1)
        self.assertNotIn("&&", "".join(others))  # bash -e overlooks what fails in front of it
        told = self.good("bash", "-euxo", "pipefail", "-c", "\n".join(others), cwd=self.dir)
        for expected in "class='7'", "no differences", "this is a 7", "probabilities: float32[450, 10]":
            self.assertIn(expected, told)
        shutil.copy(self.dir / "build/try/model.ingot", self.dir / "digits.ingot")

    def test_2_c_with_the_cmake_block(self):
        program, = self.of("c")
        cmake, = self.of("cmake")
        folder = self.dir / "app"
        folder.mkdir()
        (folder / "main.c").write_text(program)
        (folder / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.25)\nproject(app LANGUAGES C)\nadd_executable(app main.c)\n{cmake}")
        self.good("cmake", "-G", "Ninja", "-S", folder, "-B", folder / "made", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.good("cmake", "--build", folder / "made")
        self.assertIn("this is a 7", self.good(folder / "made/app", "digits.ingot", cwd=self.dir))

    def test_3_cpp(self):
        library = self.environment()["LD_LIBRARY_PATH"]
        for block in self.of("cpp"):
            (self.dir / "block.cc").write_text(block)
            self.good("c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{self.prefix}/include", "block.cc",
                      f"-L{library}", "-lingot", "-o", "block_cc", cwd=self.dir)
            self.assertEqual(self.good("./block_cc", cwd=self.dir, env=self.environment()), "2 dims\n")

    def test_4_python(self):
        more = {"PYTHONPATH": str(ROOT / "apps/python"), "INGOT_LIBRARY": str(BIN.parent / "vm/libingot.so")}
        for block in self.of("python"):
            self.assertIn(self.good(sys.executable, "-c", block, cwd=self.dir, env=self.environment(**more)).strip(),
                          map(str, range(10)))


if __name__ == "__main__":
    unittest.main(failfast=True)
