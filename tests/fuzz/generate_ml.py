"""ai.onnx.ml's operators: what scikit-learn's converters write."""
import numpy as np

from oracle import MACHINE_LEARNING
from registry import generates
from tensors import F32, F64, I64

ML = MACHINE_LEARNING + "."
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
POSTS = [None, "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]


def machine_learning(*names, weight=1):
    return generates(*(ML + name for name in names), weight=weight)


def table(g, wild=None, dtype=F32):
    """Rows of a known number of features; without NaN and infinities if wild is False."""
    return g.pick((dtype,), rank=2,
                  test=lambda v: isinstance(v.dims()[1], int) and v.dims()[1] > 0 and (wild is None or v.finite),
                  make=lambda: ["N", g.choice([1, 3, 6])], wild=wild)


def trees(g, columns, prefix, ids):
    """Trees of two levels, one of which is a leaf alone."""
    nodes = {name: [] for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                                   "falsenodeids", "missing_value_tracks_true", "hitrates")}
    weights = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(g.integer(1, 4)):
        branches = 0 if tree == 2 else 3
        for node in range(2 * branches + 1):
            is_leaf = node >= branches
            row = (tree, node, 0 if is_leaf else g.integer(0, columns - 1), g.integer(-4, 4) / 2,
                   "LEAF" if is_leaf else g.choice(MODES), 0 if is_leaf else 2 * node + 1,
                   0 if is_leaf else 2 * node + 2, g.integer(0, 1), 1.0)
            for name, value in zip(nodes, row):
                nodes[name].append(value)
            for i in ids if is_leaf else []:
                for name, value in zip(weights, (tree, node, i, g.integer(-8, 8) / 8)):
                    weights[name].append(value)
    missing = nodes.pop("missing_value_tracks_true")
    return {**{f"nodes_{n}": v for n, v in nodes.items()}, **{f"{prefix}_{n}": v for n, v in weights.items()},
            "nodes_missing_value_tracks_true": g.choice([None, missing])}


def floats(g, count):
    return (g.rng.integers(-8, 9, count) / 4).tolist()


@machine_learning("TreeEnsembleRegressor", weight=2)
def tree_regressor(g):
    v = table(g, dtype=g.choice([F32, F64]))
    targets = g.choice([1, 2])
    g.emit(ML + "TreeEnsembleRegressor", [v], n_targets=targets,
           aggregate_function=g.choice([None, "SUM", "AVERAGE", "MIN", "MAX"]),
           base_values=floats(g, targets) if g.coin() else None, post_transform=g.choice([None, "NONE"]),
           **trees(g, v.dims()[1], "target", range(targets)))


@machine_learning("TreeEnsembleClassifier", weight=2)
def tree_classifier(g):
    v = table(g, dtype=g.choice([F32, F64]))
    classes = g.choice([2, 3, 4])
    one = classes == 2
    ids = [g.choice([0, 1])] if one else range(classes)
    g.emit(ML + "TreeEnsembleClassifier", [v], results=2, classlabels_int64s=[7, -2, 5, 3][:classes],
           base_values=floats(g, classes) if g.coin() and not one else None,
           post_transform=g.choice([None, "NONE", "LOGISTIC"] if one else POSTS),
           **trees(g, v.dims()[1], "class", ids))


@machine_learning("LinearRegressor")
def linear_regressor(g):
    v = table(g, wild=False)
    targets = g.choice([1, 3])
    g.emit(ML + "LinearRegressor", [v], targets=targets, coefficients=floats(g, targets * v.dims()[1]),
           intercepts=floats(g, targets) if g.coin(0.7) else None, post_transform=g.choice([None, "NONE"]))


@machine_learning("LinearClassifier")
def linear_classifier(g):
    v = table(g, wild=False)
    classes = g.choice([2, 4])
    g.emit(ML + "LinearClassifier", [v], results=2, coefficients=floats(g, classes * v.dims()[1]),
           intercepts=floats(g, classes) if g.coin(0.7) else None, classlabels_ints=[7, -2, 5, 3][:classes],
           multi_class=g.choice([None, 0]), post_transform=g.choice(POSTS))


@machine_learning("Scaler")
def scaler(g):
    v = table(g)
    count = g.choice([1, v.dims()[1]])
    g.emit(ML + "Scaler", [v], offset=floats(g, count), scale=floats(g, count))


@machine_learning("Normalizer")
def normalizer(g):
    g.emit(ML + "Normalizer", [table(g, wild=False)], norm=g.choice([None, "MAX", "L1", "L2"]))


@machine_learning("Binarizer")
def binarizer(g):
    g.emit(ML + "Binarizer", [table(g, wild=False)], threshold=g.choice([None, 0.5, -1.0]))


@machine_learning("Imputer")
def imputer(g):
    v = table(g)
    g.emit(ML + "Imputer", [v], imputed_value_floats=floats(g, g.choice([1, v.dims()[1]])),
           replaced_value_float=g.choice([1.0, float("nan")]))


@machine_learning("ArrayFeatureExtractor")
def array_feature_extractor(g):
    v = table(g)
    which = g.constant(g.rng.integers(0, v.dims()[1], 3), I64)
    g.emit(ML + "ArrayFeatureExtractor", [v, which])


@machine_learning("FeatureVectorizer")
def feature_vectorizer(g):
    v = table(g)
    g.emit(ML + "FeatureVectorizer", [v, v], inputdimensions=[v.dims()[1]] * 2)


def svm(g, columns, vectors, coefficients, scores):
    kernel = g.choice([None, "LINEAR", "POLY", "RBF", "SIGMOID"])
    return dict(kernel_type=kernel, kernel_params=[g.choice([0.25, 0.5]), g.choice([0.0, 0.5]), g.choice([2.0, 3.0])],
                support_vectors=floats(g, vectors * columns), coefficients=floats(g, coefficients),
                rho=floats(g, scores))


@machine_learning("SVMRegressor")
def svm_regressor(g):
    v = table(g, wild=False)
    vectors = g.integer(1, 7)
    g.emit(ML + "SVMRegressor", [v], n_supports=vectors, one_class=g.choice([None, 0, 1]),
           post_transform=g.choice([None, "NONE"]), **svm(g, v.dims()[1], vectors, vectors, 1))


@machine_learning("SVMClassifier", weight=2)
def svm_classifier(g):
    v = table(g, wild=False)
    classes = g.choice([2, 3, 4])
    counts, pairs = [g.integer(1, 3) for _ in range(classes)], classes * (classes - 1) // 2
    with_probabilities = g.coin()
    g.emit(ML + "SVMClassifier", [v], results=2, classlabels_ints=[7, -2, 5, 3][:classes], vectors_per_class=counts,
           prob_a=[-0.5 - p / 4 for p in range(pairs)] if with_probabilities else None,
           prob_b=floats(g, pairs) if with_probabilities else None, post_transform=g.choice([None, "NONE"]),
           **svm(g, v.dims()[1], sum(counts), (classes - 1) * sum(counts), pairs))


@machine_learning("LabelEncoder", weight=2)
def label_encoder(g):
    """Keys of which some are drawn twice, the first one counts; none is NaN, which ONNX Runtime finds from version 4 on."""
    keys = g.choice(["int64s", "floats"])
    v = g.pick((I64,) if keys == "int64s" else (F32,))
    values = g.choice(["int64s", "floats"])
    draw = {"int64s": lambda n: g.rng.integers(-4, 5, n).tolist(),
            "floats": lambda n: floats(g, n)}
    of_keys = draw[keys](g.integer(1, 6))
    defaults = {"default_int64": g.choice([None, 7]) if values == "int64s" else None,
                "default_float": g.choice([None, 0.5]) if values == "floats" else None}
    g.emit(ML + "LabelEncoder", [v], **{f"keys_{keys}": of_keys, f"values_{values}": draw["int64s"](len(of_keys))
                                        if values == "int64s" else floats(g, len(of_keys))}, **defaults)


@machine_learning("OneHotEncoder")
def one_hot_encoder(g):
    v = g.pick((I64,), test=lambda v: v.rank > 0)
    g.emit(ML + "OneHotEncoder", [v], cats_int64s=g.rng.permutation(7)[:g.integer(1, 7)].tolist(),
           zeros=g.choice([None, 1]))
