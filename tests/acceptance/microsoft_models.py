"""What the tests of com.microsoft's operators share: models of one node, compiled and run. The scripts' one argument is
the folder of the tools; they exit with 77 (skipped) without numpy, onnx and onnxruntime."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

onnxruntime.set_default_logger_severity(4)
BIN = pathlib.Path(sys.argv.pop(1)).resolve()
FAILED, BAD_INPUT, UNSUPPORTED = 1, 3, 8
F32, U8, I32 = TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT32
DOMAIN = "com.microsoft"


def model_of(op, inputs, outputs=("y",), constants=None, domain=DOMAIN, **attributes):
    """A model of one node. inputs: (element type, dims) by name, in the node's order; "" leaves one out."""
    infos = [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items() if kind is not None]
    names = [name if kind is not None or name in (constants or {}) else "" for name, kind in inputs.items()]
    node = helper.make_node(op, names, list(outputs), domain=domain, name="n", **attributes)
    graph = helper.make_graph([node], "one", infos, [onnx.ValueInfoProto(name=name) for name in outputs if name],
                              [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()])
    return helper.make_model(graph, ir_version=9,
                             opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(domain or DOMAIN, 1)])


def matrix(*dims):
    return F32, list(dims)


def normal(seed, *dims):
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32)


def free(name, array, is_free=True):
    """An input whose first axis is free."""
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return kind, [name if is_free else array.shape[0], *array.shape[1:]]


def by_onnx_runtime(model, given):
    """Its results, by name."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, given)))


class Compiled(unittest.TestCase):
    options = ()  # of vm-compile

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compile(self, model):
        onnx.save(model, self.folder / "model.onnx")
        return subprocess.run([BIN / "vm-compile", self.folder / "model.onnx", "-o", self.folder / "model.ingot",
                               *self.options], capture_output=True, text=True, timeout=120)

    def run_model(self, model, given):
        made = self.compile(model)
        self.assertEqual(made.returncode, 0, made.stderr)
        np.savez(self.folder / "in.npz", **given)
        ran = subprocess.run([BIN / "vm-run", self.folder / "model.ingot", self.folder / "in.npz", "--output",
                              f"@{self.folder / 'out.npz'}"], capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return np.load(self.folder / "out.npz")

    def assert_given_is_refused(self, given, code=BAD_INPUT):
        """By the model that was run last."""
        np.savez(self.folder / "in.npz", **given)
        ran = subprocess.run([BIN / "vm-run", self.folder / "model.ingot", self.folder / "in.npz"], capture_output=True,
                             text=True, timeout=60)
        self.assertEqual(ran.returncode, code, ran.stderr)

    def assert_refused(self, text, model, code=UNSUPPORTED):
        made = self.compile(model)
        self.assertEqual(made.returncode, code, made.stderr)
        self.assertIn(text, made.stderr)

    def assert_same(self, model, given, name, expected=None, rtol=1e-4, atol=1e-5):
        """The results are those that are expected, or ONNX Runtime's."""
        got = self.run_model(model, given)
        for output, array in (expected or by_onnx_runtime(model, given)).items():
            np.testing.assert_allclose(got[output], array, rtol=rtol, atol=atol, err_msg=f"{name}: {output}")
