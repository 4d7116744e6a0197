"""ai.onnx.ml beside ONNX Runtime: drawn trees, linear models and steps of pipelines, at two sizes of the batch; and
what is malformed or not supported is refused by its name.

usage: ml_ops.py BIN_DIR    exits 77 (skipped) without numpy, onnx and onnxruntime"""
import itertools
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

onnxruntime.set_default_logger_severity(4)
BIN = pathlib.Path(sys.argv.pop(1)).resolve()
ML, UNSUPPORTED, BAD = "ai.onnx.ml", 8, (1, 3)
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]
COLUMNS = 6


def model_of(op, outputs=("y",), inputs=None, columns=COLUMNS, batch="N", **attributes):
    """A model of one node of x [batch, columns]; inputs: (element type, dims) by name of more of them."""
    inputs = {"x": (TensorProto.FLOAT, [batch, columns]), **(inputs or {})}
    node = helper.make_node(op, list(inputs), list(outputs), domain=ML, name="n", **attributes)
    graph = helper.make_graph([node], "one", [helper.make_tensor_value_info(n, *kind) for n, kind in inputs.items()],
                              [onnx.ValueInfoProto(name=name) for name in outputs])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, ir_version=9, opset_imports=opsets)


def runtime(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def draw_trees(rng, width, trees=5, deepest=5, modes=MODES, prefix="target", one_id=None):
    """The attributes of an ensemble. Thresholds are halves, which x hits at times."""
    nodes = {name: [] for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                                   "falsenodeids", "missing_value_tracks_true")}
    weights = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}

    def grow(tree, depth):
        at = len([t for t in nodes["treeids"] if t == tree])
        is_leaf = depth == deepest or depth > 0 and rng.random() < 0.2 or tree == 3
        row = dict(treeids=tree, nodeids=at, featureids=0 if is_leaf else int(rng.integers(COLUMNS)),
                   values=float(rng.integers(-4, 5)) / 2, modes="LEAF" if is_leaf else str(rng.choice(modes)),
                   truenodeids=0, falsenodeids=0, missing_value_tracks_true=int(rng.integers(2)))
        for name, value in row.items():
            nodes[name].append(value)
        place = len(nodes["treeids"]) - 1
        if is_leaf:
            for i in range(width) if one_id is None else [one_id]:
                for name, value in zip(weights, (tree, at, i, float(np.float32(rng.random() / trees)))):
                    weights[name].append(value)
            return at
        nodes["truenodeids"][place] = grow(tree, depth + 1)
        nodes["falsenodeids"][place] = grow(tree, depth + 1)
        return at

    for tree in range(trees):
        grow(tree, 0)
    return {**{"nodes_" + n: v for n, v in nodes.items()}, **{f"{prefix}_{n}": v for n, v in weights.items()}}


def draw_ensemble(rng, targets, trees=4, deepest=4, modes=range(6)):
    """The attributes of an ensemble of ai.onnx.ml 5: branches and leaves in lists of their own."""
    names = ("featureids", "splits", "modes", "truenodeids", "falsenodeids", "trueleafs", "falseleafs",
             "missing_value_tracks_true")
    nodes = {name: [] for name in names}
    leaves, members, roots = {"targetids": [], "weights": []}, {}, []

    def grow(depth):
        """(place, whether that is a leaf) of a subtree."""
        if depth == deepest or depth > 0 and rng.random() < 0.2:
            leaves["targetids"].append(int(rng.integers(targets)))
            leaves["weights"].append(float(rng.random()))
            return len(leaves["weights"]) - 1, 1
        at = len(nodes["modes"])
        row = (int(rng.integers(COLUMNS)), rng.integers(-4, 5) / 2, int(rng.choice(modes)), 0, 0, 0, 0,
               int(rng.integers(2)))
        for name, value in zip(names, row):
            nodes[name].append(value)
        if row[2] == 6:
            members[at] = (rng.choice(7, rng.integers(1, 4), replace=False) - 3.0).tolist() + [float("nan")]
        nodes["truenodeids"][at], nodes["trueleafs"][at] = grow(depth + 1)
        nodes["falsenodeids"][at], nodes["falseleafs"][at] = grow(depth + 1)
        return at, 0

    for _ in range(trees):
        roots.append(grow(0)[0])
    tensor = lambda a, dtype: onnx.numpy_helper.from_array(np.array(a, dtype))
    nodes["splits"], nodes["modes"] = tensor(nodes["splits"], np.float32), tensor(nodes["modes"], np.uint8)
    values = {f"leaf_{n}": v for n, v in leaves.items()} | {"leaf_weights": tensor(leaves["weights"], np.float32)}
    if members:
        values["membership_values"] = tensor(sum((members[at] for at in sorted(members)), []), np.float32)
    return {"tree_roots": roots, "n_targets": targets, **{f"nodes_{n}": v for n, v in nodes.items()}, **values}


def walk(attributes, x):
    """What an ensemble gives, as the specification says it."""
    a = {n: onnx.numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for n, v in attributes.items()}
    ask = [np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal]
    sets, values = {}, iter(a.get("membership_values", ()))
    for at in np.flatnonzero(a["nodes_modes"] == 6):
        sets[at] = set(itertools.takewhile(lambda v: not np.isnan(v), values))
    y = np.zeros([len(x), a["n_targets"]])
    for row, root in itertools.product(range(len(x)), a["tree_roots"]):
        at, is_leaf = root, 0
        while not is_leaf:
            value, mode = x[row, a["nodes_featureids"][at]], a["nodes_modes"][at]
            is_yes = value in sets[at] if mode == 6 else ask[mode](value, a["nodes_splits"][at])
            is_yes |= np.isnan(value) and a["nodes_missing_value_tracks_true"][at] == 1
            side = "true" if is_yes else "false"
            at, is_leaf = a[f"nodes_{side}nodeids"][at], a[f"nodes_{side}leafs"][at]
        y[row, a["leaf_targetids"][at]] += a["leaf_weights"][at]
    return y


def draw_rows(rng, rows, columns=COLUMNS, with_nan=True):
    x = (rng.integers(-6, 7, [rows, columns]) / 2).astype(np.float32)
    if with_nan:
        x[rng.random(x.shape) < 0.1] = np.nan
    return x


class MlOps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.rng = np.random.default_rng(7)

    def compile(self, model):
        onnx.save(model, self.folder / "model.onnx")
        return subprocess.run([BIN / "vm-compile", self.folder / "model.onnx", "-o", self.folder / "model.ingot"],
                              capture_output=True, text=True, timeout=240)

    def run_vm(self, feeds, *options):
        np.savez(self.folder / "in.npz", **feeds)
        ran = subprocess.run([BIN / "vm-run", self.folder / "model.ingot", self.folder / "in.npz", "--output",
                              f"@{self.folder / 'out.npz'}", *options], capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return np.load(self.folder / "out.npz")

    def compare(self, model, draws, tolerance=1e-5, of_oracle=None):
        """of_oracle: the model that ONNX Runtime is given, where that is another one."""
        made = self.compile(model)
        self.assertEqual(made.returncode, 0, made.stderr)
        oracle = runtime(of_oracle or model)
        for feeds in draws:
            got = self.run_vm(feeds)
            for output, value in zip(oracle.get_outputs(), oracle.run(None, feeds)):
                self.assertEqual(got[output.name].shape, value.shape)
                self.assertEqual(got[output.name].dtype, value.dtype)
                np.testing.assert_allclose(got[output.name], value, rtol=tolerance, atol=tolerance)

    def check(self, op, outputs=("y",), with_nan=False, **attributes):
        """With a free batch at two sizes, with a free number of features, and with a static batch."""
        rows = [{"x": draw_rows(self.rng, n, with_nan=with_nan)} for n in (1, 37)]
        self.compare(model_of(op, outputs, **attributes), rows)
        self.compare(model_of(op, outputs, columns="F", **attributes), rows)
        self.compare(model_of(op, outputs, batch=37, **attributes), rows[1:])

    def test_trees_give_numbers(self):
        for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
            with self.subTest(aggregate):
                self.check("TreeEnsembleRegressor", with_nan=True, n_targets=2, aggregate_function=aggregate,
                           base_values=[0.5, -0.25], **draw_trees(self.rng, 2))
        for mode in MODES:
            with self.subTest(mode):
                self.check("TreeEnsembleRegressor", with_nan=True, n_targets=1,
                           **draw_trees(self.rng, 1, modes=[mode]))

    def test_trees_give_classes(self):
        for post in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
            with self.subTest(post):
                self.check("TreeEnsembleClassifier", ("label", "scores"), with_nan=True, post_transform=post,
                           classlabels_int64s=[3, -7, 10, 4], **draw_trees(self.rng, 4, prefix="class"))
        for one_id, base in ((0, {}), (1, {}), (0, {"base_values": [-0.75]})):
            for post in ("NONE", "LOGISTIC"):
                with self.subTest(one_id=one_id, post=post, base=base):
                    attributes = draw_trees(self.rng, 2, prefix="class", one_id=one_id)
                    self.check("TreeEnsembleClassifier", ("label", "scores"), classlabels_int64s=[5, 2],
                               post_transform=post, **base, **attributes)
                    attributes["class_weights"] = [w - 0.1 for w in attributes["class_weights"]]
                    self.check("TreeEnsembleClassifier", ("label", "scores"), classlabels_int64s=[5, 2],
                               post_transform=post, **base, **attributes)

    def test_two_classes_of_which_the_leaves_know_both(self):
        """The label is the greater score's, as the specification has it; ONNX Runtime gives 1 or 0 here."""
        model = model_of("TreeEnsembleClassifier", ("label", "scores"), classlabels_int64s=[5, 2],
                         **draw_trees(self.rng, 2, prefix="class"))
        x = draw_rows(self.rng, 37)
        self.assertEqual(self.compile(model).returncode, 0)
        got, scores = self.run_vm({"x": x}), runtime(model).run(["scores"], {"x": x})[0]
        np.testing.assert_allclose(got["scores"], scores, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(got["label"], np.array([5, 2])[scores.argmax(1)])
        self.assertEqual(len(set(got["label"])), 2)

    def check_ensemble(self, attributes):
        """The specification numbers SOFTMAX 1 and LOGISTIC 2; ONNX Runtime takes them the other way round."""
        theirs = {**attributes, "post_transform": [0, 2, 1, 3][attributes.get("post_transform", 0)]}
        for rows, dims in ((1, ["N", COLUMNS]), (37, ["N", COLUMNS]), (37, ["N", "F"])):
            models = [model_of("TreeEnsemble", inputs={"x": (TensorProto.FLOAT, dims)}, **a)
                      for a in (attributes, theirs)]
            for model in models:
                model.opset_import[1].version = 5
            self.compare(models[0], [{"x": draw_rows(self.rng, rows)}], of_oracle=models[1])

    def test_ensembles_of_branches_and_leaves(self):
        for targets in (1, 3):
            for aggregate in (0, 1) + ((2, 3) if targets == 1 else ()):
                for post in (0,) if targets == 1 else (0, 1, 2, 3):
                    with self.subTest(targets=targets, aggregate=aggregate, post=post):
                        self.check_ensemble({**draw_ensemble(self.rng, targets), "aggregate_function": aggregate,
                                             "post_transform": post})
        for mode in range(6):
            with self.subTest(mode=mode):
                self.check_ensemble(draw_ensemble(self.rng, 1, modes=[mode]))

    def test_trees_of_float64(self):
        """Thresholds that float32 does not tell apart; features lie on them and beside them."""
        tensor = lambda a: onnx.numpy_helper.from_array(np.array(a, np.float64))
        apart = lambda values: np.array(values) + self.rng.integers(-1, 2, len(values)) * 1e-12
        rows = [{"x": draw_rows(self.rng, n).astype(np.float64) + self.rng.integers(-1, 2, [n, COLUMNS]) * 1e-12}
                for n in (1, 200)]
        inputs = {"x": (TensorProto.DOUBLE, ["N", COLUMNS])}
        for op, outputs, prefix, more in (
                ("TreeEnsembleRegressor", ("y",), "target", {"n_targets": 3, "base_values": [0.5, -0.25, 0.125]}),
                ("TreeEnsembleClassifier", ("label", "scores"), "class", {"classlabels_int64s": [3, -7, 10]})):
            attributes = {**more, **draw_trees(self.rng, 3, prefix=prefix)}
            with self.subTest(op):
                self.compare(model_of(op, outputs, inputs, **attributes), rows)
                for name in ("nodes_values", f"{prefix}_weights", "base_values"):
                    if name in attributes:
                        attributes[f"{name}_as_tensor"] = tensor(apart(attributes.pop(name)))
                self.compare(model_of(op, outputs, inputs, **attributes), rows)
                self.compare(model_of(op, outputs, {"x": (TensorProto.DOUBLE, ["N", "F"])}, **attributes), rows)
        for post in (0, 3):
            attributes = {**draw_ensemble(self.rng, 3), "post_transform": post}
            splits = onnx.numpy_helper.to_array(attributes["nodes_splits"])
            attributes["nodes_splits"] = tensor(apart(splits))
            attributes["leaf_weights"] = tensor(onnx.numpy_helper.to_array(attributes["leaf_weights"]))
            model = model_of("TreeEnsemble", inputs=inputs, **attributes)
            model.opset_import[1].version = 5
            with self.subTest("TreeEnsemble", post=post):
                self.compare(model, rows, tolerance=1e-12 if post == 0 else 1e-5)

    def test_one_target_is_transformed_too(self):
        """ONNX Runtime leaves it as it is."""
        attributes = draw_ensemble(self.rng, 1)
        model = model_of("TreeEnsemble", **attributes, post_transform=2)
        model.opset_import[1].version = 5
        self.assertEqual(self.compile(model).returncode, 0)
        x = draw_rows(self.rng, 9)
        np.testing.assert_allclose(self.run_vm({"x": x})["y"], 1 / (1 + np.exp(-walk(attributes, x))), rtol=1e-5)

    def test_ensembles_of_sets_of_members(self):
        """ONNX Runtime takes small positive members alone."""
        for modes in ([6], range(7)):
            attributes = draw_ensemble(self.rng, 2, modes=modes)
            model = model_of("TreeEnsemble", **attributes)
            model.opset_import[1].version = 5
            self.assertEqual(self.compile(model).returncode, 0)
            x = draw_rows(self.rng, 200)
            np.testing.assert_allclose(self.run_vm({"x": x})["y"], walk(attributes, x), rtol=1e-5, atol=1e-5)

    def test_ensembles_that_are_malformed(self):
        good = draw_ensemble(np.random.default_rng(1), 2)
        tensor = lambda a, dtype: onnx.numpy_helper.from_array(np.array(a, dtype))
        for text, name, value in [
            ("999 of ", "nodes_truenodeids", [999] * len(good["nodes_truenodeids"])),
            ("child is the node -1", "tree_roots", [-1]),
            ("reads the feature 6 of 6", "nodes_featureids", [6] * len(good["nodes_featureids"])),
            ("reads the feature -1", "nodes_featureids", [-1] * len(good["nodes_featureids"])),
            ("leaf_targetids", "leaf_targetids", [2] * len(good["leaf_targetids"])),
            ("expected a list for each", "nodes_modes", tensor([6] * len(good["nodes_featureids"]), np.uint8)),
            ("nodes_splits", "nodes_splits", tensor([1], np.float32)),
            ("nodes_trueleafs", "nodes_trueleafs", [0]),
            ("aggregate_function", "aggregate_function", 4),
        ]:
            with self.subTest(text):
                made = self.compile(model_of("TreeEnsemble", **{**good, name: value}))
                self.assertIn(made.returncode, BAD, made.stderr)
                self.assertIn(text, made.stderr)
        cycle = {**good, "nodes_truenodeids": [0] * len(good["nodes_truenodeids"]),
                 "nodes_trueleafs": [0] * len(good["nodes_trueleafs"])}
        self.assertIn("cycle", self.compile(model_of("TreeEnsemble", **cycle)).stderr)
        wide = {**good, "nodes_splits": tensor(np.zeros(len(good["nodes_featureids"])), np.float64)}
        made = self.compile(model_of("TreeEnsemble", **wide))  # features are float32
        self.assertEqual(made.returncode, UNSUPPORTED, made.stderr)
        self.assertIn("float64", made.stderr)

    def test_linear_models(self):
        draw = lambda n: self.rng.standard_normal(n).astype(np.float32).tolist()
        for targets in (1, 3):
            self.check("LinearRegressor", coefficients=draw(targets * COLUMNS), intercepts=draw(targets),
                       targets=targets)
        for post in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
            for classes in (2, 4):
                with self.subTest(post, classes=classes):
                    self.check("LinearClassifier", ("label", "scores"), coefficients=draw(classes * COLUMNS),
                               intercepts=draw(classes), classlabels_ints=list(range(5, 5 + classes)),
                               post_transform=post)

    def draw_svm(self, kernel, vectors, coefficients, scores):
        draw = lambda n: self.rng.standard_normal(n).astype(np.float32).tolist()
        return dict(kernel_type=kernel, kernel_params=[0.125, 0.5, self.rng.choice([2.0, 3.0, 4.0])],
                    support_vectors=draw(vectors * COLUMNS), coefficients=draw(coefficients), rho=draw(scores))

    def test_support_vectors_give_numbers(self):
        for kernel in KERNELS:
            for one_class in (0, 1):
                with self.subTest(kernel, one_class=one_class):
                    self.check("SVMRegressor", n_supports=9, one_class=one_class, **self.draw_svm(kernel, 9, 9, 1))
        self.check("SVMRegressor", coefficients=[0.5] * COLUMNS, rho=[0.25], kernel_params=[0.0] * 3)

    def test_support_vectors_give_classes(self):
        for kernel in KERNELS:
            for counts in ([3, 5], [2, 4, 3, 1]):
                classes, vectors = len(counts), sum(counts)
                pairs = classes * (classes - 1) // 2
                more = dict(classlabels_ints=[7, -2, 5, 3][:classes], vectors_per_class=counts,
                            **self.draw_svm(kernel, vectors, (classes - 1) * vectors, pairs))
                odds = dict(prob_a=[-0.5 - p / 8 for p in range(pairs)], prob_b=[p / 8 - 0.25 for p in range(pairs)])
                with self.subTest(kernel, classes=classes):
                    self.check("SVMClassifier", ("label", "scores"), **more)
                    self.check("SVMClassifier", ("label", "scores"), **more, **odds)
        labels = dict(classlabels_ints=[4, 9, 1], rho=[0.25], kernel_params=[0.0] * 3)
        for post in ("NONE", "SOFTMAX", "LOGISTIC"):
            self.check("SVMClassifier", ("label", "scores"), **labels, post_transform=post,
                       coefficients=self.rng.standard_normal(3 * COLUMNS).astype(np.float32).tolist())

    def test_support_vectors_of_nan_and_infinities(self):
        more = dict(classlabels_ints=[7, -2, 5], vectors_per_class=[2, 1, 2], prob_a=[-0.5] * 3, prob_b=[0.25] * 3,
                    **self.draw_svm("RBF", 5, 10, 3))
        model = model_of("SVMClassifier", ("label", "scores"), **more)
        x = np.zeros([4, COLUMNS], np.float32)
        x[0, 1], x[1, 2], x[2, 3] = np.nan, np.inf, -np.inf
        self.compare(model, [{"x": x}])
        self.assertEqual(self.run_vm({"x": x[:0]})["scores"].shape, (0, 3))

    def test_steps_of_pipelines(self):
        numbers = [0.5, -1.0, 2.0, 0.0, 3.5, 1.0]
        self.check("Scaler", offset=numbers, scale=numbers[::-1])
        self.check("Scaler", offset=[0.5], scale=[3.0])
        for norm in ("MAX", "L1", "L2"):
            with self.subTest(norm):
                zeros = np.zeros([3, COLUMNS], np.float32)
                self.check("Normalizer", norm=norm)
                self.compare(model_of("Normalizer", norm=norm), [{"x": zeros}])
        self.check("Binarizer", threshold=0.5)
        self.check("Imputer", with_nan=True, imputed_value_floats=numbers, replaced_value_float=float("nan"))
        self.check("Imputer", with_nan=True, imputed_value_floats=[7.0], replaced_value_float=1.0)
        which = {"which": (TensorProto.INT64, [3])}
        self.compare(model_of("ArrayFeatureExtractor", inputs=which),
                     [{"x": draw_rows(self.rng, n), "which": np.array([4, 0, 4])} for n in (1, 9)])
        more = {"z": (TensorProto.FLOAT, ["N", 2])}
        self.compare(model_of("FeatureVectorizer", inputs=more, inputdimensions=[COLUMNS, 2]),
                     [{"x": draw_rows(self.rng, n), "z": draw_rows(self.rng, n, 2)} for n in (1, 9)])

    def test_labels_are_looked_up(self):
        kinds = {"int64s": (TensorProto.INT64, np.int64), "floats": (TensorProto.FLOAT, np.float32)}
        lists = {"int64s": [4, -1, 4, 2**40, 0], "floats": [0.5, float("nan"), 0.5, float("inf"), 0.0]}
        x = {"int64s": np.array([[0, 4, 2**40], [-1, 7, 1]]),
             "floats": np.array([[0.5, np.nan, -0.0], [np.inf, -np.inf, 1]], np.float32)}
        for keys, (element, dtype) in kinds.items():
            for values in kinds:
                for more in ({}, {"default_int64": 9, "default_float": 2.5}):
                    given = {f"keys_{keys}": lists[keys], f"values_{values}": lists[values][::-1], **more}
                    for dims in (["N", 3], ["N", "M"], [2, 3]):
                        with self.subTest(keys, values=values, dims=dims):
                            model = model_of("LabelEncoder", inputs={"x": (element, dims)}, **given)
                            model.opset_import[1].version = 4  # before, ONNX Runtime finds no NaN
                            self.compare(model, [{"x": x[keys].astype(dtype)}])

    def test_tables_of_labels_may_be_tensors(self):
        for dtype, values in ((np.int16, np.float64), (np.float64, np.int16), (np.int64, np.float32)):
            with self.subTest(dtype, values=values):
                tables = {"keys_tensor": onnx.numpy_helper.from_array(np.array([3, 1, 2], dtype)),
                          "values_tensor": onnx.numpy_helper.from_array(np.array([5, 6, 7], values)),
                          "default_tensor": onnx.numpy_helper.from_array(np.array([42], values))}
                element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
                model = model_of("LabelEncoder", inputs={"x": (element, ["N"])}, **tables)
                model.opset_import[1].version = 4
                self.assertEqual(self.compile(model).returncode, 0)
                got = self.run_vm({"x": np.array([1, 2, 4, 3], dtype)})["y"]
                np.testing.assert_array_equal(got, np.array([6, 7, 42, 5], values))
                self.assertEqual(got.dtype, values)

    def test_categories_have_columns(self):
        kinds = {"x": (TensorProto.INT64, ["N", 3])}
        for element, dtype in ((TensorProto.INT64, np.int64), (TensorProto.FLOAT, np.float32)):
            for dims, x in ((["N", 3], [[1, 5, -2], [7, 0, 5]]), (["N"], [5, 1]), (["N", "M", 1], [[[5], [2]]])):
                with self.subTest(dtype, dims=dims):
                    model = model_of("OneHotEncoder", inputs={"x": (element, dims)}, cats_int64s=[5, -2, 7])
                    self.compare(model, [{"x": np.array(x, dtype)}])
        model = model_of("OneHotEncoder", inputs=kinds, cats_int64s=[5, -2, 7], zeros=0)
        self.compare(model, [{"x": np.array([[5, 7, -2], [5, 5, 5]])}])
        np.savez(self.folder / "in.npz", x=np.array([[5, 7, -2], [5, 6, 5]]))
        ran = subprocess.run([BIN / "vm-run", self.folder / "model.ingot", self.folder / "in.npz"],
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 3, ran.stderr)

    def test_a_map_of_probabilities_is_a_tensor_of_a_column_for_each_class(self):
        model = model_of("ZipMap", classlabels_int64s=[2, 1, 7, 5, 4, 9])
        element = model.graph.output[0].type.sequence_type.elem_type.map_type
        element.key_type, element.value_type.tensor_type.elem_type = TensorProto.INT64, TensorProto.FLOAT
        made = self.compile(model)
        self.assertEqual(made.returncode, 0, made.stderr)
        x = draw_rows(self.rng, 4, with_nan=False)
        maps = runtime(model).run(None, {"x": x})[0]
        columns = [2, 1, 7, 5, 4, 9]
        np.testing.assert_array_equal(self.run_vm({"x": x})["y"], [[row[c] for c in columns] for row in maps])

    def test_what_is_malformed_is_refused_by_name(self):
        trees = draw_trees(np.random.default_rng(1), 1)
        branch = next(i for i, mode in enumerate(trees["nodes_modes"]) if mode != "LEAF")
        changes = [
            ("reads the feature 6 of 6", "nodes_featureids", branch, 6),
            ("reads the feature -1", "nodes_featureids", branch, -1),
            ("child 999 is not in the tree", "nodes_truenodeids", branch, 999),
            ("cycle", "nodes_truenodeids", branch, 0),
            ("which is no leaf", "target_nodeids", 0, 999),
            ('"target_ids": 1 of 1', "target_ids", 0, 1),
            ("two nodes", "nodes_nodeids", 1, 0),
        ]
        for text, name, place, value in changes:
            with self.subTest(text):
                changed = {**trees, name: [value if i == place else v for i, v in enumerate(trees[name])]}
                made = self.compile(model_of("TreeEnsembleRegressor", n_targets=1, **changed))
                self.assertIn(made.returncode, BAD, made.stderr)
                self.assertIn(text, made.stderr)
        machine = dict(classlabels_ints=[1, 2, 3], vectors_per_class=[1, 2, 1], support_vectors=[1.0] * 4 * COLUMNS,
                       coefficients=[1.0] * 8, rho=[1.0] * 3, prob_a=[1.0] * 3, prob_b=[1.0] * 3,
                       kernel_params=[1.0] * 3, kernel_type="RBF")
        for name in set(machine) - {"kernel_type"}:
            with self.subTest("one element less", name=name):
                made = self.compile(model_of("SVMClassifier", ("l", "s"), **{**machine, name: machine[name][:-1]}))
                self.assertIn(made.returncode, BAD, made.stderr)
        for name in trees:
            with self.subTest("one element less", name=name):
                made = self.compile(model_of("TreeEnsembleRegressor", n_targets=1, **{**trees, name: trees[name][:-1]}))
                self.assertIn(made.returncode, BAD, made.stderr)

    def test_another_number_of_features_is_refused_at_run_time(self):
        trees = draw_trees(np.random.default_rng(1), 1)
        numbers = [0.5] * COLUMNS
        for op, attributes, accepted in [
            ("TreeEnsembleRegressor", {"n_targets": 1, **trees}, [COLUMNS, COLUMNS + 1]),
            ("LinearRegressor", {"coefficients": numbers}, [COLUMNS]),
            ("Scaler", {"offset": numbers, "scale": numbers}, [COLUMNS]),
            ("Imputer", {"imputed_value_floats": numbers}, [COLUMNS]),
            ("ZipMap", {"classlabels_int64s": list(range(COLUMNS))}, [COLUMNS]),
        ]:
            self.assertEqual(self.compile(model_of(op, columns="F", **attributes)).returncode, 0)
            for columns in (1, COLUMNS - 1, COLUMNS, COLUMNS + 1):
                with self.subTest(op, columns=columns):
                    np.savez(self.folder / "in.npz", x=draw_rows(self.rng, 3, columns, with_nan=False))
                    ran = subprocess.run([BIN / "vm-run", self.folder / "model.ingot", self.folder / "in.npz"],
                                         capture_output=True, text=True, timeout=60)
                    self.assertEqual(ran.returncode, 0 if columns in accepted else 3, ran.stderr)

    def test_what_is_not_supported_is_refused_by_name(self):
        trees = draw_trees(np.random.default_rng(1), 2, prefix="class")
        for text, model in [
            ("less than two classes", model_of("TreeEnsembleClassifier", ("l", "s"), classlabels_int64s=[1], **trees)),
            ('"PROBIT"', model_of("LinearRegressor", coefficients=[1.0] * COLUMNS, post_transform="PROBIT")),
            ("less than three classes", model_of("SVMClassifier", ("l", "s"), classlabels_ints=[1, 2], rho=[0.0],
                                                 coefficients=[1.0] * 2 * COLUMNS)),
            ("scores of pairs", model_of("SVMClassifier", ("l", "s"), classlabels_ints=[1, 2], rho=[0.0],
                                         coefficients=[1.0] * 2, vectors_per_class=[1, 1], post_transform="LOGISTIC",
                                         support_vectors=[1.0] * 2 * COLUMNS)),
        ]:
            with self.subTest(text):
                made = self.compile(model)
                self.assertEqual(made.returncode, UNSUPPORTED, made.stderr)
                self.assertIn(text, made.stderr)


if __name__ == "__main__":
    unittest.main()
