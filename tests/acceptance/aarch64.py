"""Executables for aarch64, run under qemu-user: they give what x86-64 gives, one file serves both, and a machine that
no variant fits is told so.

usage: aarch64.py BIN_DIR [MODELS_DIR NAME ...]    exits 77 (skipped) without numpy, qemu-aarch64, or a build of the VM
half for aarch64 (the preset `aarch64`: launcher and vm-run; INGOT_AARCH64_BUILD=DIR says where it is)

With MODELS_DIR, a folder of models as scripts/bench_peers takes it (MODELS_DIR/NAME/model.onnx, inputs.npz), these are
compared besides the digit classifier, MobileNetV2, and a network of attention, normalisation and activations."""
import json, os, pathlib, shutil, subprocess, sys, tempfile, unittest

from tools import Tools

try:
    import numpy as np
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "tests/data"
BIN = pathlib.Path(sys.argv.pop(1)).resolve()
MODELS = [pathlib.Path(sys.argv[1]) / name for name in sys.argv[2:]]
del sys.argv[1:]
BUILD = pathlib.Path(os.environ.get("INGOT_AARCH64_BUILD", ROOT / "build/aarch64")).resolve()
LAUNCHER = BUILD / "libexec/ingot/launcher-aarch64"
QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
for what, there in (("qemu-aarch64 is not installed", QEMU),
                    (f"{BUILD} holds no build for aarch64", LAUNCHER.exists())):
    if not there:
        print("SKIP:", what)
        sys.exit(77)


def run(*args):
    result = subprocess.run([str(a) for a in args], capture_output=True, text=True)
    if result.returncode == 0:
        Tools(BIN).check_written(args)
    return result


def emulated(*args):
    return run(QEMU, *args)


class Aarch64(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-aarch64-"))
        test = np.load(DATA / "digits_test.npz")
        np.save(cls.dir / "images.npy", test["image"][:8])

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def check(self, result, code, *messages):
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for message in messages:
            self.assertIn(message, result.stdout + result.stderr)
        return result

    def compile(self, model, target, name, *options):
        out = self.dir / name
        self.check(run(BIN / "vm-compile", model, "--target", target, "-o", out, *options), 0)
        return out

    def compare(self, model, inputs):
        here = self.compile(model, "cpu:x86-64-v3", "here.ingot")
        there = self.compile(model, "cpu:aarch64", "there", "--emit=program", "--launcher", LAUNCHER)
        self.check(run(BIN / "vm-run", here, inputs, "--output", f"@{self.dir}/here.npz"), 0)
        self.check(emulated(there, inputs, "--output", f"@{self.dir}/there.npz"), 0)
        expected, got = np.load(self.dir / "here.npz"), np.load(self.dir / "there.npz")
        self.assertEqual(set(expected.files), set(got.files))
        worst = 0.0
        for name in expected.files:
            np.testing.assert_allclose(got[name], expected[name], rtol=1e-4, atol=1e-4, err_msg=name)
            worst = max(worst, float(np.max(np.abs(got[name] - expected[name]), initial=0)))
        print(f"{model.parent.name}/{model.name}: largest difference {worst:.3g}")

    def test_the_digit_program_gives_what_x86_gives(self):
        self.compare(DATA / "digits.onnx", self.dir / "images.npy")

    def test_mobilenet_v2_gives_what_x86_gives(self):
        try:
            import networks
        except ImportError as error:
            print("SKIP:", error)
            self.skipTest(str(error))
        networks.mobilenet_v2(self.dir / "mobilenet_v2.onnx")
        image = np.random.default_rng(0).normal(0, 1, (1, 3, 224, 224)).astype(np.float32)
        np.save(self.dir / "image.npy", image)
        self.compare(self.dir / "mobilenet_v2.onnx", self.dir / "image.npy")

    def test_models_give_what_x86_gives(self):
        for model in MODELS:
            with self.subTest(model.name):
                self.compare(model / "model.onnx", model / "inputs.npz")

    def test_attention_and_activations_give_what_x86_gives(self):
        try:
            import onnx
            from onnx import TensorProto as T, helper as h, numpy_helper as nh
        except ImportError as error:
            self.skipTest(str(error))
        rng = np.random.default_rng(0)
        weight = lambda name, *shape: nh.from_array(rng.standard_normal(shape).astype(np.float32) / 4, name)
        nodes = [
            h.make_node("MatMul", ["x", "q"], ["xq"]), h.make_node("MatMul", ["x", "k"], ["xk"]),
            h.make_node("MatMul", ["x", "v"], ["xv"]), h.make_node("Transpose", ["xk"], ["kt"], perm=[0, 2, 1]),
            h.make_node("MatMul", ["xq", "kt"], ["scores"]), h.make_node("Softmax", ["scores"], ["p"], axis=-1),
            h.make_node("MatMul", ["p", "xv"], ["mixed"]), h.make_node("Add", ["x", "mixed"], ["sum"]),
            h.make_node("LayerNormalization", ["sum", "g", "b"], ["normal"], axis=-1),
            h.make_node("Erf", ["normal"], ["erf"]), h.make_node("Tanh", ["erf"], ["tanh"]),
            h.make_node("Sigmoid", ["tanh"], ["sigmoid"]), h.make_node("Exp", ["sigmoid"], ["y"]),
            h.make_node("ArgMax", ["y"], ["best"], axis=-1, keepdims=0)]
        inputs = [h.make_tensor_value_info("x", T.FLOAT, ["batch", "length", 40])]
        outputs = [h.make_tensor_value_info("y", T.FLOAT, ["batch", "length", 40]),
                   h.make_tensor_value_info("best", T.INT64, ["batch", "length"])]
        weights = [weight(n, 40, 40) for n in "qkv"] + [weight(n, 40) for n in "gb"]
        graph = h.make_graph(nodes, "attention", inputs, outputs, weights)
        onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), self.dir / "model.onnx")
        np.savez(self.dir / "x.npz", x=rng.standard_normal((2, 13, 40)).astype(np.float32))
        self.compare(self.dir / "model.onnx", self.dir / "x.npz")

    def test_one_file_serves_both_with_the_same_weights(self):
        both = self.compile(DATA / "digits.onnx", "cpu:x86-64-v3,aarch64", "both.ingot")
        alone = self.compile(DATA / "digits.onnx", "cpu:x86-64-v3", "alone.ingot")
        sections = self.check(run(BIN / "vm-inspect", both, "--sections"), 0).stdout
        self.assertEqual(sections.count("kernel_image"), 2)
        self.assertEqual(sections.count("constant_data"), 1)
        size = lambda path: next(line for line in run(BIN / "vm-inspect", path, "--sections").stdout.splitlines()
                                 if "constant_data" in line).split()[-1]
        self.assertEqual(size(both), size(alone))
        images = self.dir / "images.npy"
        self.check(run(BIN / "vm-run", both, images, "--output", f"@{self.dir}/x86.npz"), 0)
        self.check(emulated(BUILD / "bin/vm-run", both, images, "--expect", f"@{self.dir}/x86.npz", "--rtol", "1e-4",
                            "--atol", "1e-4"), 0)
        # The better variant is taken where the machine has it, and only there.
        levels = self.compile(DATA / "digits.onnx", "cpu:aarch64,neoverse-v1", "levels.ingot")
        for cpu in "cortex-a72", "max":
            self.check(run(QEMU, "-cpu", cpu, BUILD / "bin/vm-run", levels, images, "--expect", f"@{self.dir}/x86.npz",
                           "--rtol", "1e-4", "--atol", "1e-4"), 0)

    def test_a_machine_that_no_variant_fits_is_told_so(self):
        images = self.dir / "images.npy"
        arm = self.compile(DATA / "digits.onnx", "cpu:neoverse-v1", "arm.ingot")
        self.check(run(BIN / "vm-run", arm, images), 4,
                   "needs aarch64 with neon,dotprod,fullfp16,i8mm,bf16; this is x86_64")
        self.check(run(QEMU, "-cpu", "cortex-a72", BUILD / "bin/vm-run", arm, images), 4, "this is aarch64 with neon")
        x86 = self.compile(DATA / "digits.onnx", "cpu", "x86.ingot")
        self.check(emulated(BUILD / "bin/vm-run", x86, images), 4, "needs x86_64 with", "; or x86_64 with",
                   "this is aarch64")
        thin = self.dir / "thin.ingot"
        both = self.compile(DATA / "digits.onnx", "cpu:x86-64-v3,aarch64", "both.ingot")
        self.check(run(BIN / "vm-inspect", both, "--thin", "aarch64", "-o", thin), 0)
        self.check(run(BIN / "vm-run", thin, images), 4, "needs aarch64 with neon")
        self.check(emulated(BUILD / "bin/vm-run", thin, images), 0)

    def test_a_program_is_of_one_architecture(self):
        made = run(BIN / "vm-compile", DATA / "digits.onnx", "--target", "cpu:x86-64-v3,aarch64", "--emit=program",
                   "-o", self.dir / "mixed")
        self.check(made, 2, "one architecture")

    def test_images_begin_on_the_largest_pages(self):
        """Kernels of aarch64 may have pages of 64 KiB, and map an image only from the start of one."""
        program = self.compile(DATA / "digits.onnx", "cpu:aarch64", "pages", "--emit=program", "--launcher", LAUNCHER)
        thin = self.dir / "pages_thin"
        self.check(run(BIN / "vm-inspect", program, "--strip", "-o", thin), 0)
        for path in program, thin:
            container = path.read_bytes().find(b"\x89INGOT\r\n", LAUNCHER.stat().st_size)
            shown = self.check(run(BIN / "vm-inspect", path, "--json", "-"), 0).stdout
            offset = next(s["offset"] for s in json.loads(shown)["sections"] if s["section"] == "kernel_image")
            self.assertGreater(container, 0)
            self.assertEqual((container + offset) % 65536, 0)

    def test_an_object_is_of_the_target(self):
        self.compile(DATA / "digits.onnx", "cpu:aarch64", "digits.o", "--emit=object")
        self.assertEqual((self.dir / "digits.o").read_bytes()[18:20], (183).to_bytes(2, "little"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
