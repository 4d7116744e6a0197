"""Deploying executables, through the tools: golden cases and self-tests, signatures, policies and files that were
tampered with, compression, the differences between two files, and the needs of a file on a machine.

usage: deploying.py BIN_DIR [TEST ...]    exits 77 (skipped) without numpy; parts print SKIP without what they need"""
import hashlib, json, pathlib, re, shutil, struct, subprocess, sys, tempfile, unittest

from tools import Tools

try:
    import numpy as np
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "tests/data"
sys.path.insert(0, str(ROOT / "scripts"))


def run(*args, **more):
    result = subprocess.run([str(a) for a in args], capture_output=True, text=True, **more)
    if result.returncode == 0:
        Tools(BIN).check_written(args)
    return result


class Deploying(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-deploying-"))
        test = np.load(DATA / "digits_test.npz")
        cls.image, cls.expected = test["image"][:2], test["probabilities"][:2]
        np.save(cls.dir / "image.npy", cls.image)
        np.savez(cls.dir / "inputs.npz", image=cls.image)
        np.savez(cls.dir / "both.npz", image=cls.image, probabilities=cls.expected)
        np.savez(cls.dir / "wrong.npz", image=cls.image, probabilities=cls.expected + 1)
        np.savez(cls.dir / "outputs.npz", probabilities=cls.expected)
        np.savez(cls.dir / "bad.npz", probabilities=cls.expected + 1)
        cls.plain = cls.dir / "plain.ingot"
        assert cls.compile(cls.plain).returncode == 0

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    @classmethod
    def compile(cls, out, *args):
        return run(BIN / "vm-compile", DATA / "digits.onnx", "-o", out, *args)

    def check(self, result, code, *messages):
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for message in messages:
            self.assertIn(message, result.stdout + result.stderr)

    def second_reader(self, path):
        try:
            import xxhash  # noqa: F401, which the reader needs

            import read_executable as reader
        except ImportError as error:
            print("SKIP: the second reader:", error)
            return None
        return reader

    def test_golden_cases(self):
        path = self.dir / "golden.ingot"
        golden = ["--golden", self.dir / "inputs.npz", "--golden", self.dir / "both.npz"]
        self.check(self.compile(path, *golden), 0)
        self.check(run(BIN / "vm-run", path, "--self-test"), 0, "self-test: 2 of 2 golden cases passed")
        told = json.loads(run(BIN / "vm-run", path, "--self-test", "--json", "-").stdout)
        self.assertEqual([(c["origin"], c["passed"]) for c in told["cases"]], [("reference", True), ("file", True)])
        self.check(run(BIN / "vm-inspect", path, "--verify"), 0)
        if reader := self.second_reader(path):
            cases = reader.Program(reader.read_sections(path.read_bytes())).json["golden_cases"]
            self.assertEqual([(c["function"], c["origin"], c["relative"]) for c in cases],
                             [("main", "reference", 1e-4), ("main", "file", 1e-4)])
            self.assertEqual(cases[1]["inputs"][0]["sha256"], hashlib.sha256(self.image.tobytes()).hexdigest())
            self.assertEqual(cases[1]["outputs"][0]["sha256"], hashlib.sha256(self.expected.tobytes()).hexdigest())
        # Thinned, stripped and compressed they stay.
        self.check(run(BIN / "vm-inspect", path, "--strip", "--thin", "-o", self.dir / "thin.ingot"), 0)
        self.check(run(BIN / "vm-run", self.dir / "thin.ingot", "--self-test"), 0, "2 of 2")

        wrong = self.dir / "wrong.ingot"
        self.check(self.compile(wrong, "--golden", self.dir / "wrong.npz"), 0)
        self.check(run(BIN / "vm-run", wrong, "--self-test"), 1, "self-test: 0 of 1")
        self.check(self.compile(wrong, "--golden", self.dir / "wrong.npz", "--golden-atol", "2"), 0)
        self.check(run(BIN / "vm-run", wrong, "--self-test"), 0)
        self.check(run(BIN / "vm-run", self.plain, "--self-test"), 2, "holds no golden cases")

    def test_golden_cases_that_do_not_fit(self):
        out = self.dir / "x.ingot"
        np.savez(self.dir / "x.npz", image=self.image, imagee=self.image)
        self.check(self.compile(out, "--golden", self.dir / "x.npz"), 3, "\"imagee\" is neither", "did you mean")
        self.check(self.compile(out, "--golden", self.dir / "outputs.npz"), 3, "there are no inputs")
        np.savez(self.dir / "x.npz", image=self.image.astype(np.float64))
        self.check(self.compile(out, "--golden", self.dir / "x.npz"), 3, "input \"image\": float64[2, 1, 8, 8] is not")
        self.assertFalse(out.exists())

    def test_programs_test_themselves(self):
        program = self.dir / "program"
        self.check(self.compile(program, "--emit=program", "--golden", self.dir / "both.npz"), 0)
        self.check(run(program, "--self-test"), 0, "self-test: 1 of 1")
        self.check(run(BIN / "vm-run", program, "--self-test"), 0, "self-test: 1 of 1")
        expect = lambda file, *more: run(program, self.dir / "image.npy", "--expect", f"@{self.dir / file}", *more)
        self.check(expect("outputs.npz", "--rtol", "1e-4", "--atol", "1e-5"), 0, "equal: largest error")
        self.check(expect("bad.npz"), 1, "elements differ")
        self.check(expect("inputs.npz"), 3, "holds none of the outputs")
        self.check(run(program, "--help"), 0, "--self-test", "--expect", "--weights")

    def test_compiling_in_c(self):
        """The C API to compile: golden cases and a signature that every tool understands."""
        if not (BIN / "compile_c").exists():
            self.skipTest("compile_c is not built")
        folder = self.dir / "in_c"
        folder.mkdir()
        signs = run(BIN / "vm-inspect", "--make-key", folder / "key").returncode == 0
        self.check(run(BIN / "compile_c", DATA / "digits.onnx", "program", *["key"][:signs], cwd=folder), 0)
        self.check(run(BIN / "vm-run", folder / "golden.ingot", "--self-test"), 0, "1 of 1 golden cases passed")
        if reader := self.second_reader(folder / "golden.ingot"):
            told = reader.Program(reader.read_sections((folder / "golden.ingot").read_bytes())).json
            self.assertEqual([(c["origin"], c["relative"]) for c in told["golden_cases"]], [("reference", 1e-3)])
        if signs:
            self.check(self.run_signed(folder / "golden.ingot", folder / "key.pub"), 0)
        else:
            print("SKIP: signing in C: no libsodium")
        for name in "zstd.ingot", "outside.ingot", "program":
            self.check(run(BIN / "vm-run", folder / name, self.dir / "image.npy", "--expect",
                           f"@{self.dir / 'outputs.npz'}", "--rtol", "1e-4", "--atol", "1e-5"), 0)

    # ---- Trust
    def keys(self):
        made = run(BIN / "vm-inspect", "--make-key", self.dir / "key")
        if made.returncode != 0 and "no libsodium" in made.stderr:
            print("SKIP: signatures:", made.stderr.strip())
            self.skipTest("no libsodium")
        if made.returncode == 0:
            run(BIN / "vm-inspect", "--make-key", self.dir / "other")
        return self.dir / "key", self.dir / "key.pub", self.dir / "other.pub"

    def run_signed(self, path, key):
        return run(BIN / "vm-run", path, self.dir / "image.npy", "--require-signature", key)

    def test_signatures(self):
        secret, public, other = self.keys()
        self.check(run(BIN / "vm-inspect", "--make-key", secret), 3, "File exists")
        self.assertEqual(secret.stat().st_mode & 0o777, 0o600)
        signed = self.dir / "signed.ingot"
        self.check(self.compile(signed, "--sign", secret, "--golden", self.dir / "both.npz"), 0)
        self.check(self.run_signed(signed, public), 0)
        self.check(self.run_signed(signed, public.read_text().strip()), 0)
        self.check(self.run_signed(signed, other), 5, "none of the trusted keys")
        self.check(self.run_signed(self.plain, public), 5, "not signed")
        self.check(self.run_signed(signed, secret), 3, "expected a public key")
        self.check(run(BIN / "vm-inspect", signed, "--require-signature", public), 0)
        self.check(run(BIN / "vm-inspect", signed, "--require-signature", other), 5)
        self.check(run(BIN / "vm-inspect", signed, "--doctor"), 0, "signed by " + public.read_text().strip())
        # Signing what is there, and a program; stripping gives the signature up.
        later, program = self.dir / "later.ingot", self.dir / "signed"
        self.check(run(BIN / "vm-inspect", self.plain, "--sign", secret, "-o", later), 0)
        self.check(self.run_signed(later, public), 0)
        self.check(run(BIN / "vm-inspect", later, "--sign", self.dir / "other", "-o", self.dir / "twice.ingot"), 0)
        for key in public, other:
            self.check(self.run_signed(self.dir / "twice.ingot", key), 0)
        self.check(self.compile(program, "--emit=program", "--sign", secret), 0)
        self.check(self.run_signed(program, public), 0)
        self.check(run(program, self.dir / "image.npy"), 0)
        self.check(run(BIN / "vm-inspect", signed, "--strip", "-o", self.dir / "stripped.ingot"), 0)
        self.check(self.run_signed(self.dir / "stripped.ingot", public), 5, "not signed")
        if reader := self.second_reader(signed):
            digest, pairs = reader.signed_digest(signed.read_bytes())
            self.assertEqual([key for key, _ in pairs], [public.read_text().strip()])
            try:
                from nacl.signing import VerifyKey
            except ImportError:
                print("SKIP: the second reader's check of signatures: no nacl")
            else:
                VerifyKey(bytes.fromhex(pairs[0][0])).verify(bytes.fromhex(digest), bytes.fromhex(pairs[0][1]))

    def test_tampering(self):
        secret, public, _ = self.keys()
        signed = self.dir / "tampered.ingot"
        self.check(self.compile(signed, "--sign", secret), 0)
        reader = self.second_reader(signed)
        if reader is None:
            self.skipTest("no xxhash")
        import xxhash
        whole = signed.read_bytes()
        count = struct.unpack("<I", whole[12:16])[0]
        marks = {}
        for i in range(count):
            at = 64 + 64 * i
            kind, _, offset, stored = struct.unpack("<IIQQ", whole[at:at + 24])
            for place in {0, stored // 2, stored - 1}:
                damaged = bytearray(whole)
                damaged[offset + place] ^= 1
                digest = xxhash.xxh3_64_intdigest(bytes(damaged[offset:offset + stored]))
                damaged[at + 32:at + 40] = struct.pack("<Q", digest)
                damaged[32:40] = bytes(8)
                table = xxhash.xxh3_64_intdigest(bytes(damaged[:64 + 64 * count]))
                damaged[32:40] = struct.pack("<Q", table)
                signed.write_bytes(damaged)
                self.check(self.run_signed(signed, public), 5)
                marks[reader.KINDS[kind]] = marks.get(reader.KINDS[kind], 0) + 1
        print("tampered with:", ", ".join(f"{name} {n}" for name, n in sorted(marks.items())))
        self.assertIn("constant_data", marks)
        self.assertIn("kernel_image", marks)

    def test_lists_of_digests(self):
        digest = hashlib.sha256(self.plain.read_bytes()).hexdigest()
        run_listed = lambda *digests: run(BIN / "vm-run", self.plain, self.dir / "image.npy",
                                          *(a for d in digests for a in ("--allow-sha256", d)))
        self.check(run_listed(digest), 0)
        self.check(run_listed("0" * 64, digest.upper()), 0)
        self.check(run_listed("0" * 64), 5, digest, "is not in the list")
        self.check(run_listed("12"), 2, "expected 64 hex digits")
        # vm-bench holds the same policies.
        bench = lambda *more: run(BIN / "vm-bench", self.plain, "--iters", "2", "--warmup", "0ms", *more)
        self.check(bench("--allow-sha256", digest), 0)
        self.check(bench("--allow-sha256", "0" * 64), 5, digest, "is not in the list")
        self.check(bench("--require-signature", "0" * 64), 5, "not signed")

    # ---- Compression
    def test_compressed_constants(self):
        path = self.dir / "zstd.ingot"
        self.check(self.compile(path, "--compress", "zstd:3", "--golden", self.dir / "both.npz"), 0)
        self.check(run(BIN / "vm-run", path, "--self-test"), 0, "1 of 1")
        self.check(run(BIN / "vm-inspect", path, "--verify"), 0)
        self.assertLess(path.stat().st_size, self.plain.stat().st_size)
        self.check(run(BIN / "vm-inspect", self.plain, "--diff", path), 0, "no differences")
        try:
            import zstandard  # noqa: F401
        except ImportError as error:
            print("SKIP: the second reader of zstd:", error)
            return
        if reader := self.second_reader(path):
            ours, theirs = (reader.Program(reader.read_sections(p.read_bytes())).json for p in (self.plain, path))
            self.assertEqual(ours["constants"], theirs["constants"])

    # ---- Targets
    def test_targets_in_one_file_share_weights(self):
        def compile(name, *targets):
            path = self.dir / name
            self.check(self.compile(path, *(a for t in targets for a in ("--target", t))), 0)
            told = run(BIN / "vm-inspect", path, "--json", "-")
            self.check(told, 0)
            told = json.loads(told.stdout)
            hashes = {s["section"]: s["hash"] for s in told["sections"]}
            shared = told["constants"], told["functions"], hashes["constant_data"], hashes["memory_plans"]
            return path, told["images"], shared

        alone, _, expected = compile("v3.ingot", "cpu:x86-64-v3")
        for name, targets, archs in (("levels.ingot", ("cpu:x86-64-v3", "cpu:x86-64-v4"), ["x86_64"] * 2),
                                     ("machines.ingot", ("cpu", "cpu:aarch64"), ["aarch64", "x86_64", "x86_64"])):
            path, images, shared = compile(name, *targets)
            self.assertEqual([image["arch"] for image in images], archs)
            self.assertEqual(shared, expected)  # weights, code and plans are those of one target
            # 190,144 bytes of weights do not fit into what images and their alignment add.
            added = sum(image["size"] for image in images if image["name"] != "x86-64-v3") + 2 * 65536
            self.assertLess(path.stat().st_size, alone.stat().st_size + added)
            self.check(run(BIN / "vm-run", path, self.dir / "image.npy", "--expect", f"@{self.dir / 'outputs.npz'}",
                           "--rtol", "1e-4", "--atol", "1e-5"), 0)
        thin = self.dir / "thin_arm.ingot"
        self.check(run(BIN / "vm-inspect", self.dir / "machines.ingot", "--thin", "aarch64", "-o", thin), 0)
        self.check(run(BIN / "vm-run", thin, self.dir / "image.npy"), 4, "needs aarch64 with neon")
        both = ("--target", "cpu:x86-64-v3", "--target", "cuda:sm_90")
        self.check(self.compile(thin, *both, "--emit=bytecode"), 2, "for one kind of device")
        self.check(self.compile(thin, *both, "--external-weights", self.dir / "w.safetensors"), 2, "one kind of device")
        self.check(self.compile(thin, "--target", "cpu", "--target", "cpu:haswell"), 2, "have the same features")

    # ---- Differences and needs
    def test_differences(self):
        other = self.dir / "other.ingot"
        self.check(self.compile(other, "-O0", "--target", "cpu:x86-64-v3"), 0)
        told = run(BIN / "vm-inspect", self.plain, "--diff", other)
        self.check(told, 1, 'metadata "opt_level": "2" -> "0"', 'image "x86-64-v4": only in the first')
        whole = json.loads(run(BIN / "vm-inspect", self.plain, "--diff", other, "--json", "-").stdout)
        self.assertEqual((whole["equal"], len(whole["differences"])), (False, len(told.stdout.splitlines())))
        self.check(run(BIN / "vm-inspect", self.plain, "--diff", self.plain), 0, "no differences")
        self.check(run(BIN / "vm-inspect", self.plain, "--diff", self.dir / "none"), 3)
        (self.dir / "text").write_text("no executable")
        self.check(run(BIN / "vm-inspect", self.plain, "--diff", self.dir / "text"), 4)

    def test_doctor(self):
        doctor = lambda path, *more: run(BIN / "vm-inspect", path, "--doctor", *more)
        self.check(doctor(self.plain, "--dim", "batch=8"), 0, "cpu: needs x86_64", "memory of \"main\"", "at batch=8",
                   "trust: needs not signed")
        self.check(doctor(self.plain, "--dim", "batch=900000000"), 6, "MISSING  memory of \"main\"")
        told = json.loads(doctor(self.plain, "--input-shape", "image=3,1,8,8", "--json", "-").stdout)
        self.assertTrue(told["fine"])
        self.assertTrue(any("batch=3" in finding["needs"] for finding in told["findings"]))
        features = pathlib.Path("/proc/cpuinfo").read_text()
        modern = self.dir / "v4.ingot"
        self.check(self.compile(modern, "--target", "cpu:x86-64-v4"), 0)
        if "avx512f" in features:
            print("SKIP: a CPU that is too old: this one has AVX-512")
        else:
            self.check(doctor(modern), 4, "MISSING  cpu", "without", "avx512f")
            self.check(run(BIN / "vm-run", modern, self.dir / "image.npy"), 4, "avx512f")
        # Weights are looked for, not read.
        outside = self.dir / "outside.ingot"
        self.check(self.compile(outside, "--external-weights", self.dir / "w.safetensors"), 0)
        self.check(doctor(outside), 0, "weights: needs w.safetensors")
        (self.dir / "w.safetensors").write_bytes(b"")
        self.check(doctor(outside), 4, "MISSING  weights", "here: 0 bytes")
        (self.dir / "w.safetensors").unlink()
        self.check(doctor(outside), 3, "MISSING  weights", "there is no such file")

    # ---- Around the tools
    def test_statistics_of_runs(self):
        if not (BIN / "vm-bench").exists():
            self.skipTest("vm-bench is not built")
        bench = lambda *more: run(BIN / "vm-bench", self.plain, "--input", f"@{self.dir / 'image.npy'}", "--number", 5,
                                  "--repeat", 4, "--warmup", "0ms", *more)
        told = bench("--json", "-")
        self.check(told, 0)
        figures, = json.loads(told.stdout)["benchmarks"]
        self.assertEqual(figures["iterations"], 20)
        self.assertLessEqual(figures["min_time"], figures["real_time"])
        self.assertLessEqual(figures["min_time"], figures["mean_time"])
        self.assertLessEqual(0, figures["stddev_time"])
        self.check(bench(), 0, "mean_ms", "median_ms", "std_ms")

    def test_completion_knows_every_option(self):
        for tool in "vm-run", "vm-inspect", "vm-bench", "vm-compile":
            if not (BIN / tool).exists():
                print("SKIP:", tool, "is not built")
                continue
            described = set(re.findall(r"^ +(?:-\w,)?(--[a-z0-9-]+)", run(BIN / tool, "--help").stdout, re.MULTILINE))
            self.assertGreater(len(described), 20)
            for shell, option in ("bash", r"--[a-z0-9-]+"), ("zsh", r"--[a-z0-9-]+"), ("fish", r"(?<=-l )[a-z0-9-]+"):
                script = run(BIN / tool, "--completion", shell)
                self.check(script, 0, tool)
                found = {"--" + name.removeprefix("--") for name in re.findall(option, script.stdout)}
                self.assertEqual(described - found, set(), (tool, shell))
            completed = run("bash", "-c", f'eval "$("$0" --completion bash)"; complete -p {tool}', BIN / tool)
            self.check(completed, 0, "--json")
        self.check(run(BIN / "vm-run", "--completion", "tcsh"), 2, "bash", "zsh", "fish")

    def test_man_pages(self):
        for tool in "vm-run", "vm-inspect", "vm-bench", "vm-compile":
            if not (BIN / tool).exists():
                print("SKIP:", tool, "is not built")
                continue
            page = run(BIN / tool, "--man-page")
            self.check(page, 0, f'.TH "{tool}" 1', ".SH OPTIONS", "\\-\\-json", ".SH EXAMPLES")
            if shutil.which("man"):
                self.check(run("man", "-l", "-P", "cat", "-", input=page.stdout), 0, "--json", "EXAMPLES")


if __name__ == "__main__":
    unittest.main()
