"""Tensors of strings beside ONNX Runtime, through the Python module: what copies, compares and looks up strings, with
strings that the model knows and others; and what computes with them is refused by name.

usage: strings.py BIN_DIR    exits 77 (skipped) without numpy, onnx and onnxruntime"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

from tools import python_module

onnxruntime.set_default_logger_severity(4)
BIN = pathlib.Path(sys.argv.pop(1)).resolve()
ingot = python_module(BIN)

ML, UNSUPPORTED, BAD = "ai.onnx.ml", 8, 3
S, I64, F32, BOOL = TensorProto.STRING, TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL
WORDS = ["red", "green", "blue", "", "a\nb", 'a "c"', "\\", "gr\u00fcn", "unknown", "red "]


def model_of(nodes, inputs, outputs=(("y", S),), constants=None, ml=3):
    """inputs: (element type, dims) by name; constants: arrays by name."""
    nodes = nodes if isinstance(nodes, list) else [nodes]
    tensors = []
    for name, array in (constants or {}).items():
        array = np.asarray(array)
        if array.dtype.kind in "OU":
            tensors.append(helper.make_tensor(name, S, array.shape, [text.encode() for text in array.ravel()]))
        else:
            tensors.append(onnx.numpy_helper.from_array(array, name))
    infos = [helper.make_tensor_value_info(n, *kind) for n, kind in inputs.items()]
    results = [helper.make_tensor_value_info(name, element, None) for name, element in outputs]
    graph = helper.make_graph(nodes, "strings", infos, results, tensors)
    return helper.make_model(graph, ir_version=9,
                             opset_imports=[helper.make_opsetid("", 19), helper.make_opsetid(ML, ml)])


def node(op, inputs="x", outputs="y", domain="", **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name="n", domain=domain, **attributes)


class Strings(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(5)
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def words(self, *shape):
        return np.array(self.rng.choice(WORDS, shape), dtype=object).reshape(shape)

    def compile(self, model):
        onnx.save(model, self.folder / "model.onnx")
        return subprocess.run([BIN / "vm-compile", self.folder / "model.onnx", "-o", self.folder / "model.ingot"],
                              capture_output=True, text=True, timeout=240)

    def compare(self, model, *draws):
        made = self.compile(model)
        self.assertEqual(made.returncode, 0, made.stderr)
        module = ingot.load(self.folder / "model.ingot")
        oracle = onnxruntime.InferenceSession(model.SerializeToString())
        for feeds in draws:
            got = module(**feeds)
            got = got if isinstance(got, tuple) else (got,)
            for ours, theirs in zip(got, oracle.run(None, feeds), strict=True):
                ours = np.asarray(ours)
                self.assertEqual((ours.shape, ours.dtype), (theirs.shape, theirs.dtype))
                np.testing.assert_array_equal(ours, theirs)

    def test_what_moves_strings(self):
        x, shape = self.words(3, 4), {"x": (S, ["a", 4])}
        ints = lambda *values: np.array(values, np.int64)
        for case, constants in [
            (node("Identity"), {}),
            (node("Concat", "x k x", axis=0), {"k": self.words(2, 4)}),
            (node("Concat", "x k", axis=1), {"k": np.array([["new"]] * 3, object)}),
            (node("Gather", "x i", axis=1), {"i": ints(3, 0, 0)}),
            (node("Gather", "k i"), {"k": self.words(5), "i": ints(4, 1)}),
            (node("GatherElements", "x i"), {"i": np.array([[0, 2, 1, 0]], np.int64)}),
            (node("GatherND", "x i"), {"i": np.array([[0, 2], [2, 3]], np.int64)}),
            (node("Reshape", "x i"), {"i": ints(2, -1)}),
            (node("Flatten"), {}),
            (node("Transpose"), {}),
            (node("Slice", "x b e a"), {"b": ints(1), "e": ints(9), "a": ints(0)}),
            (node("Unsqueeze", "x i"), {"i": ints(0)}),
            (node("Expand", "x i"), {"i": ints(2, 3, 4)}),
            (node("Tile", "x i"), {"i": ints(2, 1)}),
            (node("ScatterElements", "x i u"), {"i": np.array([[0, 1]], np.int64), "u": self.words(1, 2)}),
            (node("Where", "c x k"), {"c": np.array([[True], [False], [True]]), "k": self.words(4)}),
            (node("ArrayFeatureExtractor", "x i", domain=ML), {"i": ints(2, 0)}),
            (node("Cast", to=S), {}),
        ]:
            with self.subTest(case.op_type):
                self.compare(model_of(case, shape if "x" in case.input else {}, constants=constants),
                             *([{"x": x}, {"x": self.words(3, 4)}] if "x" in case.input else [{}]))
        self.compare(model_of(node("Split", "x", "y z", axis=1, num_outputs=2), shape, (("y", S), ("z", S))), {"x": x})
        self.compare(model_of(node("Shape"), shape, (("y", I64),)), {"x": x}, {"x": self.words(1, 4)})
        self.compare(model_of([node("Constant", "", "k", value_strings=["a", "red"]), node("Concat", "k x", axis=0)],
                              {"x": (S, ["a"])}), {"x": self.words(3)}, {"x": self.words(1)})

    def test_strings_are_compared(self):
        x = self.words(3, 4)
        equal = (("y", BOOL),)
        self.compare(model_of(node("Equal", "x k"), {"x": (S, ["a", 4])}, equal, {"k": self.words(4)}), {"x": x})
        self.compare(model_of(node("Equal", "x z"), {"x": (S, ["a", 4]), "z": (S, ["a", 4])}, equal),
                     {"x": x, "z": self.words(3, 4)}, {"x": x, "z": x})

    def test_an_if_chooses_strings(self):
        branches = [helper.make_graph([node("Identity", text, f"{text}_out")], text, [],
                                      [helper.make_tensor_value_info(f"{text}_out", S, [None])]) for text in ("x", "z")]
        model = model_of(node("If", "c", then_branch=branches[0], else_branch=branches[1]),
                         {"c": (BOOL, []), "x": (S, ["a"]), "z": (S, ["a"])})
        feeds = {"x": self.words(3), "z": self.words(3)}
        self.compare(model, {"c": np.array(True), **feeds}, {"c": np.array(False), **feeds})

    def test_labels_are_looked_up(self):
        words, numbers = WORDS[:4], [3, -1, 7, 0]
        x, n = self.words(3, 4), np.array([[3, 7, 8, -1]], np.int64)
        for keys, values, given, element in [
            ("strings", "int64s", x, I64), ("strings", "floats", x, F32), ("strings", "strings", x, S),
            ("int64s", "strings", n, S), ("floats", "strings", n.astype(np.float32), S),
        ]:
            lists = {"strings": words, "int64s": numbers, "floats": [float(v) for v in numbers]}
            named = {f"keys_{keys}": lists[keys], f"values_{values}": lists[values][::-1]}
            kind = {"strings": S, "int64s": I64, "floats": F32}[keys]
            for default in ({}, {"default_string": "none", "default_int64": 5, "default_float": 0.5}):
                with self.subTest(keys, values=values, default=default):
                    self.compare(model_of(node("LabelEncoder", domain=ML, **named, **default),
                                          {"x": (kind, ["a", 4])}, (("y", element),)), {"x": given})
        tensor = helper.make_tensor("t", S, [2], [b"one", b"two"])
        default = helper.make_tensor("d", S, [1], [b"?"])
        self.compare(model_of(node("LabelEncoder", domain=ML, keys_int64s=[1, 2], values_tensor=tensor,
                                   default_tensor=default), {"x": (I64, ["a"])}, ml=4), {"x": np.array([2, 5, 1])})
        self.compare(model_of(node("LabelEncoder", domain=ML, keys_int64s=[1, 2], values_tensor=tensor),
                              {"x": (I64, ["a"])}, ml=4), {"x": np.array([2, 5, 1])})
        twice = {"cats_strings": ["red", "", "red", "blue"], "cats_int64s": [3, 4, 5, 4]}  # the last one counts
        for lists, given, element in (twice, x, I64), (twice, np.array([[3, 4, 5, 6]]), S):
            kind = S if element == I64 else I64
            self.compare(model_of(node("CategoryMapper", domain=ML, **lists), {"x": (kind, ["a", 4])},
                                  (("y", element),)), {"x": given})
        for op, lists, ml in (("LabelEncoder", {"classes_strings": words}, 1),
                              ("LabelEncoder", {"classes_strings": ["red", "red", "green", "blue", "red"]}, 1),
                              ("CategoryMapper", {"cats_strings": words, "cats_int64s": numbers}, 3)):
            with self.subTest(op):
                self.compare(model_of(node(op, domain=ML, **lists), {"x": (S, ["a", 4])}, (("y", I64),), ml=ml),
                             {"x": x})
                self.compare(model_of(node(op, domain=ML, **lists), {"x": (I64, ["a", 4])}, ml=ml), {"x": n})

    def test_categories_and_words_are_counted(self):
        x = self.words(3, 4)
        self.compare(model_of(node("OneHotEncoder", domain=ML, cats_strings=WORDS[:4]), {"x": (S, ["a", 4])},
                              (("y", F32),)), {"x": x}, {"x": self.words(1, 4)})
        self.compare(model_of(node("TfIdfVectorizer", mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=0,
                                   ngram_counts=[0, 2], ngram_indexes=[0, 1, 2],
                                   pool_strings=["red", "", "red", "blue"]),
                              {"x": (S, ["a", 4])}, (("y", F32),)), {"x": x},
                     {"x": np.array([["red", "blue", "red", ""]], object)})

    def test_stopwords_are_left_out(self):
        row = {"x": (S, ["a"])}
        stop = {"is_case_sensitive": 1, "stopwords": ["red", "unknown"]}
        for case, inputs, draws in [
            (node("StringNormalizer"), row, [self.words(5), self.words(1)]),
            (node("StringNormalizer", case_change_action="NONE"), {"x": (S, [1, "a"])}, [self.words(1, 5)]),
            (node("StringNormalizer", **stop), row,
             [self.words(9), np.array(["red", "new", "red", "Red", "x"], object), np.array(["red", "unknown"], object)]),
            (node("StringNormalizer", **stop), {"x": (S, [1, "a"])},
             [self.words(1, 6), np.array([["red", "red"]], object)]),
        ]:
            self.compare(model_of(case, inputs), *({"x": words} for words in draws))

    def test_what_a_sparse_tensor_leaves_out_is_empty(self):
        sparse = helper.make_sparse_tensor(helper.make_tensor("s", S, [2], [b"red", b"blue"]),
                                           helper.make_tensor("i", I64, [2], [1, 3]), [5])
        model = model_of([node("Constant", "", "s", sparse_value=sparse), node("Concat", "k s x", axis=0)],
                         {"x": (S, ["a"])}, constants={"k": np.array(["first"], object)})
        self.assertEqual(self.compile(model).returncode, 0)  # ONNX Runtime has no such tensors
        got = ingot.load(self.folder / "model.ingot")(x=np.array(["x"]))
        self.assertEqual(list(got), ["first", "", "red", "", "blue", "", "x"])

    def test_numbers_stand_for_strings(self):
        """vm-run takes and writes places among the strings, and prints strings."""
        model = model_of(node("LabelEncoder", domain=ML, keys_int64s=[1, 2], values_strings=["one", "two"]),
                         {"x": (I64, ["a"])})
        self.assertEqual(self.compile(model).returncode, 0)
        ran = subprocess.run([BIN / "vm-run", self.folder / "model.ingot", "--input", "x=3xi64=2 1 7"],
                             capture_output=True, text=True)
        self.assertEqual(ran.stdout, "y: strings[3]\n['two' 'one' '_Unused']\n")
        module = ingot.load(self.folder / "model.ingot")
        self.assertEqual(module.metadata["strings"], '["one", "two", "_Unused"]')
        self.assertEqual(module.metadata["string_tensors"], '["y"]')

    def test_inputs_that_are_set_are_strings(self):
        equal = node("Equal", "x z", "same")
        model = model_of([node("Concat", "x z k", axis=0), equal], {"x": (S, ["a"]), "z": (S, ["a"])},
                         (("y", S), ("same", BOOL)), {"k": np.array(["red"], object)})
        self.assertEqual(self.compile(model).returncode, 0)
        module = ingot.load(self.folder / "model.ingot")
        z = np.array(["new", "red"], object)
        module.set_input("z", z)
        z[:] = "changed later"
        for x, same in ([["other", "red"], [False, True]], [["new", "new"], [True, False]]):
            module.set_input("x", np.array(x))
            module.run()
            expected = [*x, "new", "red", "red"]
            np.testing.assert_array_equal(module.get_output(0), np.array(expected, object))
            np.testing.assert_array_equal(np.asarray(module.get_output(1)), same)
            module.set_input("z", ["new", "red"])  # changes nothing, nor what was computed
            np.testing.assert_array_equal(module.get_output(0), np.array(expected, object))

    def test_results_are_arrays_whatever_their_numbers(self):
        self.assertEqual(self.compile(model_of(node("Identity"), {"x": (S, [])})).returncode, 0)
        module = ingot.load(self.folder / "model.ingot")
        for given, text in ("text", "text"), (np.int64(-1), "<string -1>"), (np.int64(7), "<string 7>"):
            got = module(np.array(given))
            self.assertIsInstance(got, np.ndarray)
            self.assertEqual((got.shape, got.dtype, got[()]), ((), object, text))

    def test_what_is_not_supported_is_refused_by_name(self):
        x = {"x": (S, ["a", 4])}
        trees = dict(nodes_treeids=[0], nodes_nodeids=[0], nodes_featureids=[0], nodes_values=[0.0],
                     nodes_modes=["LEAF"], nodes_truenodeids=[0], nodes_falsenodeids=[0], class_treeids=[0, 0],
                     class_nodeids=[0, 0], class_ids=[0, 1], class_weights=[1.0, 0.5])
        for text, code, model in [
            ("strings", UNSUPPORTED, model_of(node("Less", "x x"), x, (("y", BOOL),))),
            ("strings", UNSUPPORTED, model_of(node("Add", "x x"), x)),
            ("strings as numbers", UNSUPPORTED, model_of(node("Cast", to=F32), x, (("y", F32),))),
            ("string", UNSUPPORTED, model_of(node("Cast", to=S), {"x": (F32, [3])})),
            ("strings", UNSUPPORTED, model_of(node("Unique"), x)),
            *((f'reduction "{how}" of strings', UNSUPPORTED,
               model_of(node(f"Scatter{op}", "x i x", reduction=how), x, constants={"i": np.zeros(dims, np.int64)}))
              for how in ("add", "max") for op, dims in (("Elements", (1, 4)), ("ND", (1, 4, 2)))),
            ("no operator of this name", UNSUPPORTED, model_of(node("StringConcat", "x x"), x)),
            ("strings of another case", UNSUPPORTED, model_of(node("StringNormalizer", case_change_action="LOWER"),
                                                              {"x": (S, ["a"])})),
            ("compared without their case", UNSUPPORTED, model_of(node("StringNormalizer", stopwords=["red"]),
                                                                  {"x": (S, ["a"])})),
            ('case_change_action is "TITLE"', BAD, model_of(node("StringNormalizer", case_change_action="TITLE"),
                                                            {"x": (S, ["a"])})),
            ("expected strings", BAD, model_of(node("StringNormalizer"), {"x": (I64, ["a"])}, (("y", I64),))),
            ("or one row of them", BAD, model_of(node("StringNormalizer"), {"x": (S, [2, "a"])})),
            ("keys of numbers", BAD, model_of(node("LabelEncoder", domain=ML, keys_int64s=[1], values_int64s=[1]), x)),
            ("keys of strings", BAD, model_of(node("LabelEncoder", domain=ML, keys_strings=["a"], values_int64s=[1]),
                                              {"x": (I64, [3])})),
            ("categories of numbers", BAD, model_of(node("OneHotEncoder", domain=ML, cats_int64s=[1]), x)),
            ("categories of strings", BAD, model_of(node("OneHotEncoder", domain=ML, cats_strings=["a"]),
                                                    {"x": (I64, [3])})),
            ("none", BAD, model_of(node("Concat", "x k", axis=0), x, constants={"k": np.zeros((1, 4), np.int64)})),
            ("none", BAD, model_of(node("Where", "c x k"), x, constants={"c": np.array([True]), "k": np.int64(1)})),
            ("declared as", BAD, model_of(node("Identity"), x, (("y", I64),))),
            ("labels that are integers and labels that are strings", BAD,
             model_of(node("TreeEnsembleClassifier", "x", "y s", domain=ML, classlabels_int64s=[1, 2],
                           classlabels_strings=["a", "b"], **trees), {"x": (F32, ["a", 1])})),
        ]:
            with self.subTest(text, op=model.graph.node[0].op_type):
                made = self.compile(model)
                self.assertEqual(made.returncode, code, made.stderr)
                self.assertIn(text, made.stderr)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
