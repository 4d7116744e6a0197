"""scikit-learn's estimators, trained on its digits, as skl2onnx writes them: labels are scikit-learn's, and
probabilities and numbers within 1e-5 of scikit-learn's and of ONNX Runtime's, at two sizes of the batch. Labels that
are strings come out as strings of the Python module.

usage: sklearn_models.py BIN_DIR    exits 77 (skipped) without numpy, onnx, onnxruntime, sklearn and skl2onnx"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    import onnxruntime
    import skl2onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn import datasets, ensemble, linear_model, naive_bayes, neighbors, neural_network, pipeline
    from sklearn import calibration, cluster, compose, decomposition, discriminant_analysis, feature_selection
    from sklearn import preprocessing, svm, tree
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

from tools import python_module

onnxruntime.set_default_logger_severity(4)
BIN = pathlib.Path(sys.argv.pop(1)).resolve()
ingot = python_module(BIN)
TRAINED, TOLERANCE = 600, 1e-5
NAMES = np.array(["null", "eins", "zwei", "drei", "vier", "f\u00fcnf", "sechs", "sieben", 'a "b"\\c', "neun\n"])
steps = pipeline.make_pipeline


def attribute(key, value, *rest, make=onnx.helper.make_attribute, **more):
    """skl2onnx gives bools among integers, which onnx refuses from 1.19 on."""
    if isinstance(value, list) and any(isinstance(v, (bool, np.bool_)) for v in value):
        value = [int(v) for v in value]
    return make(key, value, *rest, **more)


onnx.helper.make_attribute = attribute

CLASSIFIERS = {
    "logistic": lambda: linear_model.LogisticRegression(max_iter=100),
    "ridge": linear_model.RidgeClassifier,
    "linear svc": svm.LinearSVC,
    "svc": svm.SVC,
    "svc, probabilities": lambda: svm.SVC(probability=True),
    "svc, polynomials": lambda: svm.SVC(kernel="poly", probability=True),
    "svc, linear": lambda: svm.SVC(kernel="linear", decision_function_shape="ovo"),
    "svc, sigmoid": lambda: svm.SVC(kernel="sigmoid", gamma=0.001),
    "nu svc": lambda: svm.NuSVC(nu=0.1),
    "neighbours": neighbors.KNeighborsClassifier,
    "gaussian bayes": naive_bayes.GaussianNB,
    "bernoulli bayes": lambda: naive_bayes.BernoulliNB(binarize=5),
    "perceptrons": lambda: neural_network.MLPClassifier((32,), max_iter=40),
    "tree": tree.DecisionTreeClassifier,
    "forest": lambda: ensemble.RandomForestClassifier(20),
    "extra trees": lambda: ensemble.ExtraTreesClassifier(20),
    "gradient boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=5),
    "boosting of histograms": lambda: ensemble.HistGradientBoostingClassifier(max_iter=5),
    "ada boost": lambda: ensemble.AdaBoostClassifier(n_estimators=5),
    "bagging": lambda: ensemble.BaggingClassifier(n_estimators=4),
    "stacking": lambda: ensemble.StackingClassifier([("a", naive_bayes.GaussianNB()),
                                                     ("b", tree.DecisionTreeClassifier())]),
    "discriminants": discriminant_analysis.LinearDiscriminantAnalysis,
    "calibrated": lambda: calibration.CalibratedClassifierCV(naive_bayes.GaussianNB(), cv=2),
    "scaled": lambda: steps(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
    "scaled svc": lambda: steps(preprocessing.MinMaxScaler(), svm.SVC(probability=True)),
    "one-hot": lambda: steps(preprocessing.OneHotEncoder(handle_unknown="ignore"), linear_model.LogisticRegression()),
    "ordinal": lambda: steps(preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
                             tree.DecisionTreeClassifier()),
    "bins": lambda: steps(preprocessing.KBinsDiscretizer(4, encode="ordinal"), naive_bayes.GaussianNB()),
    "one-hot bins": lambda: steps(preprocessing.KBinsDiscretizer(4, encode="onehot-dense"),
                                  linear_model.LogisticRegression()),
    "components": lambda: steps(decomposition.PCA(16), neighbors.KNeighborsClassifier(3)),
}
REGRESSORS = {
    "linear": linear_model.LinearRegression,
    "svr": svm.SVR,
    "nu svr": svm.NuSVR,
    "forest": lambda: ensemble.RandomForestRegressor(10),
    "boosting of histograms": lambda: ensemble.HistGradientBoostingRegressor(max_iter=10),
    "neighbours": neighbors.KNeighborsRegressor,
}


class SklearnModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.x, cls.y = datasets.load_digits(return_X_y=True)
        cls.x = cls.x.astype(np.float32)

    def run_both(self, estimator, x, **options):
        """What vm-run and ONNX Runtime give for x, and for its first row: [(got, expected)] by name."""
        model = skl2onnx.to_onnx(estimator, x[:1], target_opset={"": 21, "ai.onnx.ml": 3}, **options)
        name, oracle = model.graph.input[0].name, onnxruntime.InferenceSession(model.SerializeToString())
        outputs = [output.name for output in oracle.get_outputs()]
        results = []
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            onnx.save(model, folder / "model.onnx")
            made = subprocess.run([BIN / "vm-compile", folder / "model.onnx", "-o", folder / "model.ingot"],
                                  capture_output=True, text=True, timeout=240)
            self.assertEqual(made.returncode, 0, made.stderr)
            for rows in (x, x[:1]):
                np.savez(folder / "in.npz", **{name: rows})
                ran = subprocess.run([BIN / "vm-run", folder / "model.ingot", folder / "in.npz", "--output",
                                      f"@{folder / 'out.npz'}"], capture_output=True, text=True, timeout=120)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                got = np.load(folder / "out.npz")
                results.append(([got[o] for o in outputs], oracle.run(outputs, {name: rows})))
        return results

    def close(self, got, expected):
        np.testing.assert_allclose(got, expected, rtol=TOLERANCE, atol=TOLERANCE)

    def check_classifier(self, estimator, y):
        np.random.seed(7)
        estimator.fit(self.x[:TRAINED], y[:TRAINED])
        x = self.x[TRAINED:TRAINED + 300]
        has_map = not isinstance(estimator, (svm.LinearSVC, linear_model.RidgeClassifier))
        more = {"options": {id(estimator): {"zipmap": False}}} if has_map else {}
        for (label, scores), (expected, expected_scores) in self.run_both(estimator, x, **more):
            rows = x[:len(label)]
            self.close(scores, expected_scores)
            decided = np.ones(len(rows), bool)
            if hasattr(estimator, "predict_proba"):
                probabilities = estimator.predict_proba(rows)
                self.close(scores, probabilities)
                best = np.sort(probabilities)[:, -2:]
                decided = best[:, 1] - best[:, 0] > TOLERANCE  # equal ones are ordered by what rounds
            np.testing.assert_array_equal(label[decided], expected[decided])
            np.testing.assert_array_equal(label[decided], estimator.predict(rows)[decided])

    def test_classifiers_of_ten_classes(self):
        for name, make in CLASSIFIERS.items():
            with self.subTest(name):
                self.check_classifier(make(), self.y)

    def test_classifiers_of_two_classes(self):
        for name in ("logistic", "linear svc", "svc", "svc, probabilities", "forest", "gradient boosting",
                     "boosting of histograms"):
            with self.subTest(name):
                self.check_classifier(CLASSIFIERS[name](), (self.y > 4).astype(int))

    def test_labels_that_are_strings(self):
        names = ("logistic", "linear svc", "svc, probabilities", "ridge", "neighbours", "gaussian bayes", "tree",
                 "ada boost", "scaled")
        x, labels = self.x[TRAINED:TRAINED + 100], NAMES[self.y]
        for name, with_map in [(name, False) for name in names] + [("tree", True), ("logistic", True)]:
            with self.subTest(name, with_map=with_map), tempfile.TemporaryDirectory() as folder:
                np.random.seed(7)
                estimator = CLASSIFIERS[name]().fit(self.x[:TRAINED], labels[:TRAINED])
                has_map = not isinstance(estimator, (svm.LinearSVC, linear_model.RidgeClassifier))
                options = {"options": {id(estimator): {"zipmap": with_map}}} if has_map else {}
                model = skl2onnx.to_onnx(estimator, x[:1], target_opset={"": 21, "ai.onnx.ml": 3}, **options)
                folder = pathlib.Path(folder)
                onnx.save(model, folder / "model.onnx")
                subprocess.run([BIN / "vm-compile", folder / "model.onnx", "-o", folder / "model.ingot"], check=True,
                               capture_output=True)
                module = ingot.load(folder / "model.ingot")
                for rows in (x, x[:1]):
                    label, scores = module(rows)
                    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"X": rows})
                    np.testing.assert_array_equal(label, expected[0])
                    np.testing.assert_array_equal(label, estimator.predict(rows))
                    if with_map:
                        expected[1] = [[row[name] for name in estimator.classes_] for row in expected[1]]
                    self.close(np.asarray(scores), expected[1])
                np.save(folder / "x.npy", x[:1])
                ran = subprocess.run([BIN / "vm-run", folder / "model.ingot", folder / "x.npy"], capture_output=True,
                                     text=True, timeout=120)
                self.assertIn(f"strings[1]\n['{label[0]}']", ran.stdout)

    def test_columns_of_strings(self):
        """A table of categories and numbers, as pipelines of scikit-learn take it; unknown categories too."""
        rng = np.random.default_rng(3)
        colours, sizes = np.array(["red", "green", "blue"]), np.array(["s", "m", "l", "xl"])
        texts = np.stack([rng.choice(colours, 200), rng.choice(sizes, 200)], 1)
        numbers = rng.standard_normal((200, 3)).astype(np.float32)
        labels = np.where((texts[:, 0] == "red") ^ (numbers[:, 0] > 0), "yes", "no")
        table = np.concatenate([texts.astype(object), numbers.astype(object)], 1)
        for encoder in (preprocessing.OneHotEncoder(handle_unknown="ignore"),
                        preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)):
            with self.subTest(type(encoder).__name__), tempfile.TemporaryDirectory() as folder:
                columns = compose.ColumnTransformer([("t", encoder, [0, 1]),
                                                     ("n", preprocessing.StandardScaler(), [2, 3, 4])])
                estimator = steps(columns, tree.DecisionTreeClassifier(random_state=0)).fit(table, labels)
                model = skl2onnx.to_onnx(estimator, initial_types=[("texts", StringTensorType([None, 2])),
                                                                   ("numbers", FloatTensorType([None, 3]))],
                                         target_opset={"": 21, "ai.onnx.ml": 3},
                                         options={id(estimator): {"zipmap": False}})
                folder = pathlib.Path(folder)
                onnx.save(model, folder / "model.onnx")
                made = subprocess.run([BIN / "vm-compile", folder / "model.onnx", "-o", folder / "model.ingot"],
                                      capture_output=True, text=True)
                self.assertEqual(made.returncode, 0, made.stderr)
                module = ingot.load(folder / "model.ingot")
                oracle = onnxruntime.InferenceSession(model.SerializeToString())
                for rows in (200, 1, 5):
                    some = texts[:rows].copy()
                    some[0] = ["violet", "xxl"][:2] if rows == 5 else some[0]
                    given = {"texts": some.astype(object), "numbers": numbers[:rows]}
                    label, scores = module(**given)
                    expected = oracle.run(None, given)
                    np.testing.assert_array_equal(label, expected[0])
                    self.close(np.asarray(scores), expected[1])

    def test_pipelines_of_float64(self):
        x = self.x.astype(np.float64)[TRAINED:TRAINED + 200]
        for name, make in {
            "scaled": lambda: steps(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
            "forest": lambda: ensemble.RandomForestClassifier(10),
            "gaussian bayes": naive_bayes.GaussianNB,
            "selected": lambda: steps(feature_selection.SelectKBest(k=20), naive_bayes.GaussianNB()),
            "perceptrons": lambda: neural_network.MLPClassifier((32,), max_iter=40),
        }.items():
            with self.subTest(name):
                np.random.seed(7)
                estimator = make().fit(self.x.astype(np.float64)[:TRAINED], self.y[:TRAINED])
                for (label, scores), (expected, expected_scores) in self.run_both(
                        estimator, x, options={id(estimator): {"zipmap": False}}):
                    np.testing.assert_array_equal(label, expected)
                    self.close(scores, expected_scores)
                    np.testing.assert_array_equal(label, estimator.predict(x[:len(label)]))
                    self.close(scores, estimator.predict_proba(x[:len(label)]))

    def test_regressors(self):
        x = self.x[TRAINED:TRAINED + 300]
        for name, make in REGRESSORS.items():
            with self.subTest(name):
                np.random.seed(7)
                estimator = make().fit(self.x[:TRAINED], self.y[:TRAINED])
                for got, expected in self.run_both(estimator, x):
                    self.close(got[0], expected[0])
                    np.testing.assert_allclose(got[0].ravel(), estimator.predict(x[:len(got[0])]), rtol=1e-4, atol=1e-4)

    def test_clusters_and_outliers(self):
        x = self.x[TRAINED:TRAINED + 300]
        for name, make in (("means", lambda: cluster.KMeans(10, n_init=1)), ("one class", svm.OneClassSVM),
                           ("isolation", lambda: ensemble.IsolationForest(n_estimators=10))):
            with self.subTest(name):
                np.random.seed(7)
                estimator = make().fit(self.x[:TRAINED])
                for got, expected in self.run_both(estimator, x):
                    np.testing.assert_array_equal(got[0], expected[0])
                    np.testing.assert_array_equal(got[0].ravel(), estimator.predict(x[:len(got[0])]))
                    np.testing.assert_allclose(got[1], expected[1], rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
