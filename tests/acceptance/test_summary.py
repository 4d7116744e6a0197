"""scripts/summarize_tests: what it counts, names and refuses, on results that ctest itself wrote (of a project of a few
tests that pass, fail, skip all or a part of themselves) and on logs. And the list in the tree is well formed.

usage: test_summary.py"""
import pathlib, subprocess, sys, tempfile, unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(results LANGUAGES NONE)
enable_testing()
add_test(NAME good COMMAND printf "all good\\n")
add_test(NAME partly COMMAND printf "a.cc:3: MESSAGE: SKIP: no moon tonight\\n")
add_test(NAME whole COMMAND sh -c "echo SKIP: no sun; exit 77")
set_tests_properties(whole PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME silent COMMAND sh -c "exit 77")
set_tests_properties(silent PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME of_unittest COMMAND printf "Ran 3 tests\\nOK (skipped=2)\\n")
add_test(NAME behind_marks COMMAND printf ".SKIP: no wind\\nsSKIP: no wind\\ns\\nOK (skipped=2)\\n")
add_test(NAME gone COMMAND /nowhere/at/all)
add_test(NAME bad COMMAND sh -c "exit 1")
"""


def ctest(folder, *names):
    """The JUnit file of these tests of the project above."""
    (folder / "CMakeLists.txt").write_text(PROJECT)
    subprocess.run(["cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build"], check=True, capture_output=True)
    result = folder / "made.xml"
    subprocess.run(["ctest", "--test-dir", folder / "build", "--output-junit", result, "-R", f"^({'|'.join(names)})$"],
                   capture_output=True)
    return result


class Summary(unittest.TestCase):
    def setUp(self):
        self.made = tempfile.TemporaryDirectory(prefix="ingot-summary-")
        self.dir = pathlib.Path(self.made.name)
        self.list = self.dir / "list.txt"
        self.list.write_text("# none\n")

    def tearDown(self):
        self.made.cleanup()

    def check(self, code, results, *messages):
        told = subprocess.run([sys.executable, ROOT / "scripts/summarize_tests", self.list, *results],
                              capture_output=True, text=True)
        self.assertEqual(told.returncode, code, told.stdout + told.stderr)
        for message in messages:
            self.assertIn(message, told.stdout + told.stderr)

    def test_what_passed_is_counted(self):
        self.check(0, [ctest(self.dir, "good")], "1 passed, 0 failed, 0 skipped")

    def test_a_failure_is_named(self):
        self.check(1, [ctest(self.dir, "good", "bad")], "FAILED  made/bad", "1 passed, 1 failed, 0 skipped")

    def test_a_program_that_is_not_there_is_no_success(self):
        self.check(1, [ctest(self.dir, "good", "gone")], "made/gone")

    def test_a_run_without_tests_is_no_success(self):
        self.check(1, [ctest(self.dir, "no_such_test")], "FAILED  made", "0 passed, 1 failed, 0 skipped")

    def test_skips_fail_unless_the_list_names_them(self):
        for name, reason, count in (("partly", "no moon", "1 passed, 0 failed, 0 skipped"),
                                    ("whole", "no sun", "0 passed, 0 failed, 1 skipped"),
                                    ("silent", "the whole test, which gives no reason", "0 passed, 0 failed, 1 skipped"),
                                    ("behind_marks", "no wind", "1 passed, 0 failed, 0 skipped"),
                                    ("of_unittest", "2 tests of unittest", "1 passed, 0 failed, 0 skipped")):
            with self.subTest(name):
                self.list.write_text("# none\n")
                made = ctest(self.dir, name)
                self.check(1, [made], f"SKIPPED, WHICH NO LIST ALLOWS:  made/{name}: {reason}", count)
                self.list.write_text(f"made/{name} | {reason} | it is day\n")
                self.check(0, [made], f"skipped  made/{name}: {reason}", count)
                self.list.write_text(f"made/{name}er | {reason} | another test\nmade/{name} | night | another reason\n")
                self.check(1, [made], "WHICH NO LIST ALLOWS")

    def test_logs_are_entries(self):
        log, failure = self.dir / "packages.log", self.dir / "sizes.failed"
        log.write_text("- wheel\nSKIP: no rustc\n")
        failure.write_text("too large\n")
        self.check(1, [log], "packages: no rustc")
        self.list.write_text("packages | no rustc | nobody has Rust\n")
        self.check(0, [log], "1 passed, 0 failed, 0 skipped")
        self.check(1, [log, failure], "FAILED  sizes", "1 passed, 1 failed, 0 skipped")

    def test_lists_give_a_reason_for_each_line(self):
        self.list.write_text("made/good | no sun\n")
        self.check(1, [ctest(self.dir, "good")], "list.txt:1: expected ENTRY | REASON | WHY")
        self.list = ROOT / "tests/allowed_skips.txt"
        self.check(0, [ctest(self.dir, "good")])
        self.check(1, [ctest(self.dir, "whole")], "WHICH NO LIST ALLOWS")


if __name__ == "__main__":
    unittest.main()
