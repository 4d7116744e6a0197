"""vm-compile's cache of kernels: the file is the same with a cold, a warm, a damaged and no cache, for several models
and for processes side by side; other builds and options miss; folders that are not the user's alone are refused; and
whatever is wrong with the cache, the compilation goes on and says so once.

usage: kernel_cache.py BIN_DIR    exits 77 (skipped) without numpy and onnx"""

import json, os, pathlib, re, shutil, subprocess, sys, tempfile, unittest

try:
    from networks import Network
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
MODELS = [DATA / "digits.onnx", DATA / "mlp.py", *(DATA / f"onnx/{name}.onnx" for name in
          ("conv", "control_flow", "quantized", "recurrent_symbolic", "pools", "softmax_13", "resize"))]


def network(path, channels):
    """A few convolutions; networks of other numbers of blocks share their kernels."""
    net = Network("image", 13)
    x = net.relu(net.norm(net.conv(net.input, 32, 3, 8)))
    for count in channels:
        x = net.relu(net.norm(net.conv(x, count, 3)))
    net.save(x, path)


class KernelCache(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-kernel-cache-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.cache = self.dir / "cache"
        self.environment = {k: v for k, v in os.environ.items() if k not in ("INGOT_CACHE", "XDG_CACHE_HOME", "HOME")}

    def compile(self, model, *options, tool=BIN / "vm-compile", **environment):
        """The bytes of the file, what the cache did (or None), and the notes about it."""
        out = self.dir / "out.ingot"
        result = subprocess.run([tool, model, "-o", out, "--json", "-", *map(str, options)],
                                capture_output=True, text=True, env={**self.environment, **environment})
        self.assertEqual(result.returncode, 0, result.stderr)
        notes = [line for line in result.stderr.splitlines() if "cached" in line]
        return out.read_bytes(), json.loads(result.stdout).get("cache"), notes

    def entries(self, cache=None):
        return sorted((cache or self.cache).glob("*.entry"))

    def disk_bytes(self):
        return sum((path.stat().st_size + 4095) // 4096 * 4096 for path in self.cache.iterdir())

    def test_same_bytes_cold_warm_and_without(self):
        for model in MODELS:
            without, figures, notes = self.compile(model, "--no-cache")
            self.assertIsNone(figures)
            cold, first, cold_notes = self.compile(model, "--cache", self.cache, "--threads", 2)
            warm, second, warm_notes = self.compile(model, "--cache", self.cache)
            self.assertTrue(cold == without and warm == without, model)
            self.assertEqual(notes + cold_notes + warm_notes, [])
            self.assertEqual(first["stored"], first["misses"], model)
            self.assertEqual(second, {"hits": first["hits"] + first["misses"], "misses": 0, "damaged": 0, "stored": 0,
                                      "evicted": 0}, model)
        self.assertEqual({path.suffix for path in self.cache.iterdir() if path.name != "blocks"}, {".entry"})
        for options in ("-O1",), ("--target", "cpu:x86-64-v2"), ("--strict-math",), ("--keep-prepare",):
            without, _, _ = self.compile(MODELS[0], "--no-cache", *options)
            for _ in range(2):
                self.assertTrue(self.compile(MODELS[0], "--cache", self.cache, *options)[0] == without, options)

    def test_other_options_miss(self):
        self.compile(MODELS[0], "--cache", self.cache)
        for options in ("-O0",), ("--target", "cpu:x86-64-v2"), ("--target", "cpu:aarch64"):
            _, figures, _ = self.compile(MODELS[0], "--cache", self.cache, *options)
            self.assertEqual(figures["hits"], 0, options)

    def test_a_similar_model_compiles_what_is_new_in_it(self):
        small, large = self.dir / "small.onnx", self.dir / "large.onnx"
        network(small, [32, 32])
        network(large, [32, 32, 32, 64])
        _, first, _ = self.compile(small, "--cache", self.cache)
        with_cache, second, _ = self.compile(large, "--cache", self.cache)
        self.assertGreater(second["hits"], second["misses"])
        self.assertGreater(second["misses"], 0)
        self.assertTrue(self.compile(large, "--no-cache")[0] == with_cache)

    def test_processes_side_by_side(self):
        expected = [self.compile(model, "--no-cache")[0] for model in MODELS[:3]]
        started = []
        for i in range(9):
            out = self.dir / f"out{i}.ingot"
            started.append((i % 3, out, subprocess.Popen(
                [BIN / "vm-compile", MODELS[i % 3], "-o", out, "--cache", self.cache, "--threads", "2"],
                env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)))
        for model, out, process in started:
            _, messages = process.communicate()
            self.assertEqual(process.returncode, 0, messages)
            self.assertNotIn("cached", messages)
            self.assertTrue(out.read_bytes() == expected[model])
        self.assertEqual({path.suffix for path in self.cache.iterdir() if path.name != "blocks"}, {".entry"})
        for model in MODELS[:3]:
            self.assertEqual(self.compile(model, "--cache", self.cache)[1]["misses"], 0)

    def test_damaged_entries_are_compiled_anew(self):
        expected, first, _ = self.compile(MODELS[0], "--cache", self.cache)
        whole = {path: path.read_bytes() for path in self.entries()}
        self.assertGreater(len(whole), 2)
        others = list(whole.values())

        def link(path):
            path.unlink()
            path.symlink_to("/etc/hostname")

        damages = {
            "empty": lambda path, i: path.write_bytes(b""),
            "cut short": lambda path, i: path.write_bytes(whole[path][:-1 - i]),
            "a changed byte": lambda path, i: path.write_bytes(
                whole[path][:-100 - i] + bytes([whole[path][-100 - i] ^ 1]) + whole[path][len(whole[path]) - 99 - i:]),
            "another key": lambda path, i: path.write_bytes(others[(i + 1) % len(others)]),
            "no entry at all": lambda path, i: path.write_bytes(b"#!/bin/sh\n" * 1000),
            "a link": lambda path, i: link(path),
            "open to others": lambda path, i: path.chmod(0o666),
        }
        for name, damage in damages.items():
            for i, path in enumerate(whole):
                damage(path, i)
            again, figures, notes = self.compile(MODELS[0], "--cache", self.cache)
            self.assertTrue(again == expected, name)
            self.assertEqual((figures["damaged"], figures["stored"], notes), (len(whole), len(whole), []), name)
            self.assertEqual({path: path.read_bytes() for path in self.entries()}, whole, name)

    def test_another_build_misses(self):
        notes = subprocess.run(["readelf", "-n", BIN / "vm-compile"], capture_output=True, text=True, check=True).stdout
        build_id = bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)", notes).group(1))
        code = (BIN / "vm-compile").read_bytes()
        self.assertEqual(code.count(build_id), 1)
        at = code.index(build_id)
        tool = self.dir / "vm-compile"
        _, first, _ = self.compile(MODELS[0], "--cache", self.cache)
        for changed, misses in ((code, False), (code[:at] + b"0" + code[at + 1:], True)):
            tool.write_bytes(changed)
            tool.chmod(0o700)
            _, figures, _ = self.compile(MODELS[0], "--cache", self.cache, tool=tool)
            self.assertEqual(figures["hits"] == 0, misses)
        tool.unlink()
        tool.write_bytes(code[:at - 4] + b"XYZ\0" + code[at:])  # without an id of its own it is no build that is known
        tool.chmod(0o700)
        _, figures, notes = self.compile(MODELS[0], "--cache", self.cache, tool=tool)
        self.assertIsNone(figures)
        self.assertEqual(len(notes), 1, notes)

    def test_the_folder_keeps_its_bound(self):
        bound = 1 << 20
        evicted = 0
        for model in MODELS:
            for target in "x86-64-v2", "x86-64-v3", "aarch64":
                options = ("--cache", self.cache, "--cache-size", 1, "--target", f"cpu:{target}")
                _, figures, _ = self.compile(model, *options)
                evicted += figures["evicted"]
                self.assertLessEqual(self.disk_bytes(), bound)
        self.assertGreater(evicted, 0)

    def test_folders_that_are_not_the_users_alone(self):
        expected, _, _ = self.compile(MODELS[0], "--no-cache")
        self.cache.mkdir()
        for mode in 0o755, 0o770, 0o701, 0o777:
            self.cache.chmod(mode)
            bytes_, figures, notes = self.compile(MODELS[0], "--cache", self.cache)
            self.assertTrue(bytes_ == expected)
            self.assertIsNone(figures)
            self.assertEqual(len(notes), 1, notes)
            self.assertIn("open to other users", notes[0])
        self.cache.chmod(0o700)
        foreign = pathlib.Path("/usr")
        if os.geteuid() == 0:
            foreign = self.cache
            os.chown(foreign, 12345, 12345)
        bytes_, figures, notes = self.compile(MODELS[0], "--cache", foreign)
        self.assertTrue(bytes_ == expected and figures is None)
        self.assertIn("another user's", notes[0])
        self.assertEqual(self.entries(), [])

    def test_where_the_folder_is(self):
        home = self.dir / "home"
        _, figures, notes = self.compile(MODELS[0], HOME=str(home))
        self.assertGreater(figures["stored"], 0)
        default = home / ".cache/ingot"
        self.assertEqual(default.stat().st_mode & 0o777, 0o700)
        count = len(self.entries(default))
        self.assertEqual(count, figures["stored"])
        for options, environment in (((), {"XDG_CACHE_HOME": str(home / ".cache")}),
                                     ((), {"INGOT_CACHE": str(default)}),
                                     (("--cache", default), {"INGOT_CACHE": "off"})):
            self.assertEqual(self.compile(MODELS[0], *options, **environment)[1]["hits"], count)
        for options, environment in ((("--no-cache",), {"HOME": str(home)}),
                                     ((), {"HOME": str(home), "INGOT_CACHE": "off"})):
            self.assertEqual(self.compile(MODELS[0], *options, **environment)[1:], (None, []))
        _, figures, notes = self.compile(MODELS[0])
        self.assertIsNone(figures)
        self.assertEqual(len(notes), 1)
        self.assertIn("neither XDG_CACHE_HOME nor HOME", notes[0])

    def test_a_folder_that_cannot_be_made(self):
        (self.dir / "file").write_text("")
        for place in self.dir / "file", self.dir / "file/cache", "/proc/cache":
            _, figures, notes = self.compile(MODELS[0], "--cache", place)
            self.assertIsNone(figures)
            self.assertEqual(len(notes), 1, notes)

    def on_a_disk(self, options):
        self.cache.mkdir(exist_ok=True)
        mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", self.cache]
        if subprocess.run(mount, capture_output=True).returncode != 0:
            print("SKIP: no mounting")
            self.skipTest("no mounting")
        self.addCleanup(lambda: subprocess.run(["umount", self.cache], check=True))

    def test_a_full_disk_is_said_once(self):
        expected, _, _ = self.compile(MODELS[0], "--no-cache")
        self.on_a_disk("size=16k,mode=0700")
        bytes_, figures, notes = self.compile(MODELS[0], "--cache", self.cache)
        self.assertTrue(bytes_ == expected)
        self.assertEqual(len(notes), 1, notes)
        self.assertIn("No space left", notes[0])
        self.assertEqual({path.suffix for path in self.cache.iterdir() if path.name != "blocks"} - {".entry"}, set())

    def test_a_disk_that_is_only_read(self):
        expected, first, _ = self.compile(MODELS[0], "--no-cache")
        self.on_a_disk("mode=0700")
        _, first, _ = self.compile(MODELS[0], "--cache", self.cache)
        subprocess.run(["mount", "-o", "remount,ro", self.cache], check=True)
        bytes_, figures, notes = self.compile(MODELS[0], "--cache", self.cache)
        self.assertTrue(bytes_ == expected)
        self.assertEqual((figures["hits"], notes), (first["stored"], []))
        _, figures, notes = self.compile(MODELS[0], "--cache", self.cache, "-O0")
        self.assertEqual((figures["stored"], len(notes)), (0, 1), notes)


if __name__ == "__main__":
    unittest.main(verbosity=2)
