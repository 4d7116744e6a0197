"""The classification walk (apps/examples/classify.py) end to end, beside ONNX Runtime: a picture that the test draws,
and ResNet-50 version 2 (networks.py's, or resnet50_v2 in the folder of models that INGOT_MODELS names).

usage: classification.py BIN_DIR    exits 77 (skipped) without numpy, onnx, onnxruntime and Pillow"""

import ast, os, pathlib, re, shutil, subprocess, sys, tempfile, unittest

from tools import Tools

try:
    import numpy as np, onnx, onnxruntime
    from onnx import TensorProto, helper, numpy_helper
    from PIL import Image, ImageDraw

    import networks
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def draw(path):
    image = Image.new("RGB", (320, 260), (90, 120, 60))
    pen = ImageDraw.Draw(image)
    pen.ellipse((90, 60, 230, 210), fill=(200, 140, 80))
    pen.polygon([(105, 90), (120, 30), (150, 75)], fill=(180, 120, 60))
    pen.polygon([(215, 90), (200, 30), (170, 75)], fill=(180, 120, 60))
    for x in (135, 185):
        pen.ellipse((x - 12, 105, x + 12, 130), fill=(30, 200, 60))
    for i in range(8):
        pen.line((60 + 5 * i, 150 + 3 * i, 260 - 5 * i, 165 + 3 * i), fill=(250, 250, 250))
    image.save(path)


def small_network(path):
    """Convolution, pooling and a layer of 50 classes."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.normal(0, 0.2, (16, 3, 7, 7)),
        "b": rng.normal(0, 0.1, 16),
        "f": rng.normal(0, 1, (50, 16)),
        "fb": rng.normal(0, 1, 50),
    }
    nodes = [
        helper.make_node("Conv", ["data", "w", "b"], ["c"], strides=[4, 4], pads=[3, 3, 3, 3]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["g"]),
        helper.make_node("Gemm", ["g", "f", "fb"], ["scores"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 3, 224, 224])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 50])],
        [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 7)], ir_version=8), path)


class Classification(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-classification-"))

    def tearDown(self):
        shutil.rmtree(self.dir)

    def walk(self, model):
        draw(self.dir / "cat.png")
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        output, input_ = session.get_outputs()[0], session.get_inputs()[0]
        labels = [f"class number {i}" for i in range(output.shape[-1])]
        (self.dir / "labels.txt").write_text("\n".join(labels) + "\n")
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "apps/python"),
            "INGOT_LIBRARY": str(BIN.parent / "vm/libingot.so"),
        }
        executable, picture = self.dir / "model.ingot", self.dir / "cat.npy"
        walk = subprocess.run(
            [
                sys.executable,
                ROOT / "apps/examples/classify.py",
                model,
                self.dir / "cat.png",
                "--labels",
                self.dir / "labels.txt",
                "--bin",
                BIN,
                "--input",
                input_.name,
                "--output",
                output.name,
                "--save",
                picture,
                "--executable",
                executable,
                "--number",
                os.environ.get("INGOT_NUMBER", "2"),
                "--repeat",
                "3",
            ],
            capture_output=True,
            text=True,
            env=environment,
        )
        self.assertEqual(walk.returncode, 0, walk.stderr)
        Tools(BIN).check_round_trips([executable])
        print(walk.stdout)
        statistics, *lines = walk.stdout.splitlines()
        self.assertEqual(set(ast.literal_eval(statistics)), {"mean", "median", "std"})

        scores = session.run(None, {input_.name: np.load(picture)})[0][0].astype(np.float64)
        probabilities = np.exp(scores - scores.max())
        probabilities /= probabilities.sum()
        best = np.argsort(-probabilities, kind="stable")[:5]
        found = [re.fullmatch(r"class='(.*)' with probability=([0-9.]+)", line).groups() for line in lines]
        self.assertEqual([name for name, _ in found], [labels[i] for i in best])
        np.testing.assert_allclose([float(p) for _, p in found], probabilities[best], atol=2e-5)
        # The tools say the same of the same file.
        tool = subprocess.run(
            [BIN / "vm-run", executable, picture, "--top-k", "5"], capture_output=True, text=True, check=True
        )
        self.assertEqual(tool.stdout.splitlines(), lines)

    def test_the_walk(self):
        folder = os.environ.get("INGOT_MODELS", "")
        model = pathlib.Path(folder, "resnet50_v2/model.onnx")
        if not folder or not model.exists():
            model = self.dir / "model.onnx"
            networks.resnet50_v2(model)
        self.walk(str(model))

    def test_a_wrong_output_has_a_suggestion(self):
        small_network(self.dir / "model.onnx")
        wrong = subprocess.run(
            [BIN / "vm-compile", self.dir / "model.onnx", "--softmax", "score", "-o", self.dir / "x.ingot"],
            capture_output=True,
            text=True,
        )
        self.assertEqual(wrong.returncode, 2)
        self.assertIn('there is no output "score"; did you mean "scores"', wrong.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
