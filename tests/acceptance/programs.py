"""Programs that vm-compile packs, and executables inside of other programs: they run with nothing installed, take the
arguments of vm-run, open with every tool, and report when they were stripped or thinned too far.

usage: programs.py BIN_DIR [TEST ...]    exits 77 (skipped) without numpy; parts that need root, a C compiler or a
Debian tree (INGOT_CHROOT=DIR, as debootstrap makes) print SKIP without"""

import hashlib, os, pathlib, re, shutil, subprocess, sys, tempfile, time, unittest

from tools import Tools

try:
    import numpy as np
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "tests/data"
NO_TOOLS = {"PATH": "/nonexistent"}

APPLICATION = """
#include <stdio.h>
#include "model.h"
#include "vm/include/ingot/ingot.h"
static int check(ingot_status* status) {
  if (status != NULL) fprintf(stderr, "%s\\n", ingot_status_message(status));
  return status != NULL;
}
int main(void) {
  ingot_instance* instance;
  ingot_executable* executable;
  ingot_open_options options = INGOT_OPEN_OPTIONS_INIT;
  const ingot_function* function;
  options.trust = INGOT_TRUST_FILE;
  if (check(ingot_instance_create(NULL, &instance))) return 1;
  if (check(ingot_executable_open_memory(instance, model.data, model.size, "model", &options, &executable))) return 1;
  if (check(ingot_executable_find_function(executable, "main", &function))) return 1;
  printf("%s\\n", ingot_function_signature(function));
  ingot_executable_release(executable);
  ingot_instance_release(instance);
  return 0;
}
"""


def run(*args, **more):
    result = subprocess.run([str(a) for a in args], capture_output=True, text=True, **more)
    if result.returncode == 0:
        Tools(BIN).check_written(args, more.get("cwd"))
    return result


def skip(test, reason):
    print("SKIP:", reason)
    test.skipTest(reason)


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-programs-"))
        cls.program = cls.dir / "digits"
        (cls.dir / "labels.txt").write_text("".join(f"digit {i}\n" for i in range(10)))
        made = cls.compile("--emit=program", "-o", cls.program)
        assert made.returncode == 0, made.stderr
        test = np.load(DATA / "digits_test.npz")
        cls.label = int(test["label"][0])
        np.save(cls.dir / "image.npy", test["image"][:1])

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    @classmethod
    def compile(cls, *args):  # with no compiler or linker in reach
        return Tools(BIN)("vm-compile", DATA / "digits.onnx", *args, env=NO_TOOLS)

    def check(self, result, code, *messages):
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for message in messages:
            self.assertIn(message, result.stdout + result.stderr)

    def test_it_is_one_static_file_of_the_promised_size(self):
        sections = run(BIN / "vm-inspect", self.program, "--sections").stdout.splitlines()
        weights = next(int(line.split()[2]) for line in sections if line.startswith("constant_data"))
        size = self.program.stat().st_size
        print(f"program without its weights: {size - weights} bytes")
        self.assertLessEqual(size - weights, 2.5e6)
        if shutil.which("readelf"):
            self.assertNotIn("NEEDED", run("readelf", "-d", self.program).stdout)
            self.assertNotIn("INTERP", run("readelf", "-l", self.program).stdout)

    def test_help_shows_the_typed_signature(self):
        self.check(
            run(self.program, "--help"),
            0,
            "image: float32[batch, 1, 8, 8]",
            "probabilities: float32[batch, 10]",
            "batch is 0 or more",
        )
        self.check(run(self.program, "--version"), 0, "digits: a program of Ingot")

    def test_it_computes_what_vm_run_computes(self):
        self.check(run(self.program, self.dir / "image.npy", "--output", f"@{self.dir}/own.npy"), 0)
        self.check(run(BIN / "vm-run", self.program, self.dir / "image.npy", "--output", f"@{self.dir}/tool.npy"), 0)
        own, tool = np.load(self.dir / "own.npy"), np.load(self.dir / "tool.npy")
        np.testing.assert_array_equal(own, tool)
        self.assertEqual(own.argmax(), self.label)
        self.check(run(self.program, self.dir / "image.npy"), 0, "probabilities: float32[1, 10]")
        npz = DATA / "digits_test.npz"
        self.check(
            run(self.program, "--input", f"image=@{npz}:image", "--output", f"@{self.dir}/all.npz", "--threads", "2"), 0
        )
        np.testing.assert_allclose(
            np.load(self.dir / "all.npz")["probabilities"], np.load(npz)["probabilities"], atol=1e-5
        )

    def test_every_tool_opens_it(self):
        self.check(run(BIN / "vm-inspect", self.program, "--verify"), 0, "every check and every hash passed")
        self.check(run(BIN / "run_digits", self.program), 0, "this is a 7")

    def test_wrong_arguments_have_messages_and_codes(self):
        self.check(run(self.program, "--lables", "x"), 2, "unknown option --lables", "--labels")
        self.check(run(self.program, "--threads", "many"), 2, "--threads: expected N")
        self.check(run(self.program), 2, "no value for input", "image")
        self.check(run(self.program, "--input", "imagee=zeros"), 2, "imagee", 'did you mean "image"')
        self.check(run(self.program, self.dir / "none.npy"), 3, "none.npy")
        self.check(run(self.program, "--entry", "mian", self.dir / "image.npy"), 2, "mian")
        np.save(self.dir / "wrong.npy", np.zeros((1, 1, 8, 8)))
        self.check(run(self.program, self.dir / "wrong.npy"), 3, "float32[batch, 1, 8, 8]")

    def test_labels_in_the_file_name_the_classes(self):
        named = self.dir / "named"
        self.check(self.compile("--emit=program", "--labels", self.dir / "labels.txt", "-o", named), 0)
        first = f"class='digit {self.label}' with probability=0."
        best = run(named, self.dir / "image.npy")
        self.check(best, 0, first)
        self.assertEqual(len(best.stdout.splitlines()), 5)
        self.assertTrue(best.stdout.startswith(first))
        self.check(run(BIN / "vm-run", named, self.dir / "image.npy", "--top-k", "1"), 0, first)
        (self.dir / "binary.txt").write_bytes(b"\xff\xfe")
        self.check(self.compile("--labels", self.dir / "binary.txt", "-o", self.dir / "x.ingot"), 3, "no UTF-8")

    def test_stripped_programs_say_so(self):
        if not shutil.which("strip"):
            skip(self, "no strip")
        stripped = self.dir / "stripped"
        self.check(run("strip", "-o", stripped, self.program), 0)
        self.check(run(stripped, self.dir / "image.npy"), 4, "the model behind this program is gone", "strip")

    def test_thin_programs_stay_programs(self):
        thin = self.dir / "thin"
        self.check(run(BIN / "vm-inspect", self.program, "--thin", "--strip", "-o", thin), 0)
        self.assertLess(thin.stat().st_size, self.program.stat().st_size)
        self.check(run(thin, self.dir / "image.npy", "--output", f"@{self.dir}/thin.npy"), 0)
        self.assertEqual(np.load(self.dir / "thin.npy").argmax(), self.label)
        sections = run(BIN / "vm-inspect", thin, "--sections").stdout
        self.assertNotIn("debug_map", sections)
        self.assertNotIn("kernel_image[1]", sections)
        self.check(
            run(BIN / "vm-inspect", self.program, "--thin", "sse4.2", "-o", thin), 4, "has no variant for a CPU with"
        )
        self.check(run(BIN / "vm-inspect", self.program, "--thin", "sse9", "-o", thin), 2, "sse9")

    def test_the_launcher_is_found_or_named(self):
        self.check(
            self.compile("--emit=program", "--launcher", self.dir / "image.npy", "-o", self.dir / "x"),
            3,
            "no ELF program",
        )
        self.check(self.compile("--emit=program", "--launcher", self.dir / "none", "-o", self.dir / "x"), 3, "none")
        alone = self.dir / "alone"
        alone.mkdir()
        shutil.copy(BIN / "vm-compile", alone)
        made = run(alone / "vm-compile", DATA / "digits.onnx", "--emit=program", "-o", self.dir / "x")
        self.check(made, 3, "there is no launcher-x86_64", "libexec/ingot/launcher-x86_64")
        self.assertFalse((self.dir / "x").exists())

    def test_the_launcher_for_drivers_needs_the_c_library_alone(self):
        launcher = BIN.parent / "libexec/ingot/launcher-x86_64-dynamic"
        dynamic = self.dir / "dynamic"
        self.check(self.compile("--emit=program", "--launcher", launcher, "-o", dynamic), 0)
        self.check(run(dynamic, self.dir / "image.npy", "--output", f"@{self.dir}/dynamic.npy"), 0)
        self.assertEqual(np.load(self.dir / "dynamic.npy").argmax(), self.label)
        if shutil.which("readelf"):
            needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", dynamic).stdout)
            self.assertLessEqual(set(needed), {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"})

    def test_from_exec_to_result_in_ten_milliseconds(self):
        times = []
        while len(times) < 20 or (min(times) > 0.010 and len(times) < 200):  # other work only adds to them
            start = time.perf_counter()
            subprocess.run([self.program, self.dir / "image.npy"], stdout=subprocess.DEVNULL, check=True)
            times.append(time.perf_counter() - start)
        print(f"exec to result: best {min(times) * 1e3:.1f} ms, median {sorted(times)[len(times) // 2] * 1e3:.1f} ms")
        self.assertLessEqual(min(times), 0.010)

    # ---- Elsewhere

    def in_root(self, root, folder):
        work = root / folder
        work.mkdir(exist_ok=True)
        shutil.copy(self.program, work)
        shutil.copy(self.dir / "image.npy", work)
        at = "/" + folder
        result = run("chroot", root, f"{at}/digits", f"{at}/image.npy", "--output", f"@{at}/out.npy")
        self.check(result, 0)
        self.assertEqual(np.load(work / "out.npy").argmax(), self.label)
        self.check(run("chroot", root, f"{at}/digits", "--help"), 0, "image: float32[batch, 1, 8, 8]")
        shutil.rmtree(work)

    def test_in_an_empty_directory_as_root_directory(self):
        if os.geteuid() != 0:
            skip(self, "chroot needs root")
        empty = self.dir / "empty"
        empty.mkdir()
        self.in_root(empty, "here")  # no libraries, no /proc, no /tmp

    def test_in_a_debian_without_anything_installed(self):
        root = os.environ.get("INGOT_CHROOT", "")
        if os.geteuid() != 0 or not pathlib.Path(root, "etc/debian_version").exists():
            skip(self, "needs root and INGOT_CHROOT, a tree that debootstrap made")
        self.in_root(pathlib.Path(root), "ingot-program-test")

    def test_the_machines_policy(self):
        """/etc/ingot/policy of a root directory of its own: what it does not allow does not start, a program too."""
        if os.geteuid() != 0:
            skip(self, "chroot needs root")
        root = self.dir / "guarded"
        policy = root / "etc/ingot/policy"
        policy.parent.mkdir(parents=True)
        shutil.copy(self.program, root / "digits")
        shutil.copy(self.dir / "image.npy", root)
        digest = hashlib.sha256(self.program.read_bytes()).hexdigest()
        start = lambda name="digits": run("chroot", root, f"/{name}", "/image.npy")
        self.check(start(), 0)
        policy.write_text(f"# the release\nallow-sha256 {digest}\n")
        self.check(start(), 0, "probabilities")
        policy.write_text("allow-sha256 " + "0" * 64)
        self.check(start(), 5, "/etc/ingot/policy", digest, "is not in the list")
        policy.write_text(f"allow-sha256 {digest}\nallow-everything\n")
        self.check(start(), 5, "/etc/ingot/policy, line 2: expected")
        key = self.dir / "key"
        if run(BIN / "vm-inspect", "--make-key", key).returncode != 0:
            skip(self, "no libsodium")
        policy.write_text("require-signature " + (self.dir / "key.pub").read_text())
        self.check(start(), 5, "/etc/ingot/policy", "not signed")
        self.check(self.compile("--emit=program", "--sign", key, "-o", root / "signed"), 0)
        self.check(start("signed"), 0, "probabilities")

    # ---- Inside of an application

    def embedded(self, kind, extension):
        if not shutil.which("cc"):
            skip(self, "no C compiler")
        folder = self.dir / kind
        folder.mkdir()
        self.check(self.compile(f"--emit={kind}", "-o", folder / f"model.{extension}"), 0)
        (folder / "main.c").write_text(APPLICATION)
        library = BIN.parent / "vm"
        built = run(
            "cc",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            f"-I{ROOT}",
            "main.c",
            f"./model.{extension}",
            f"-L{library}",
            "-lingot",
            f"-Wl,-rpath,{library}:{folder}",
            "-o",
            "application",
            cwd=folder,
        )
        self.check(built, 0)
        self.check(run(folder / "application"), 0, "(image: float32[batch, 1, 8, 8])")

    def test_an_object_in_an_application(self):
        self.embedded("object", "o")

    def test_a_shared_library_beside_an_application(self):
        self.embedded("shared", "so")


if __name__ == "__main__":
    unittest.main(verbosity=2)
