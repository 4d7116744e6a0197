"""ai.onnx.ml's operators: what scikit-learn's converters write."""
import numpy as np

from oracle import MACHINE_LEARNING
from registry import generates
from tensors import F32, I64

ML = MACHINE_LEARNING + "."
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
POSTS = [None, "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]


def machine_learning(*names, weight=1):
    return generates(*(ML + name for name in names), weight=weight)


def table(g, wild=None):
    """Rows of a known number of features."""
    return g.pick((F32,), rank=2, test=lambda v: isinstance(v.dims()[1], int) and v.dims()[1] > 0,
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
    v = table(g)
    targets = g.choice([1, 2])
    g.emit(ML + "TreeEnsembleRegressor", [v], n_targets=targets,
           aggregate_function=g.choice([None, "SUM", "AVERAGE", "MIN", "MAX"]),
           base_values=floats(g, targets) if g.coin() else None, post_transform=g.choice([None, "NONE"]),
           **trees(g, v.dims()[1], "target", range(targets)))


@machine_learning("TreeEnsembleClassifier", weight=2)
def tree_classifier(g):
    v = table(g)
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
