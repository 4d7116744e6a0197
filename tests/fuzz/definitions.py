"""Operators by their definition, in float64: a third opinion where Ingot and ONNX Runtime differ.

A model is evaluated node by node. Every float is widened before it is read, so that no rounding of float32 or float16
shows. The operators of DEFINITIONS are formulas in numpy, written after the specification's text: those of which ONNX
Runtime's or onnx.reference's kernel takes a short cut that shows beside NaN and infinities (a sliding sum, a padding
of NaN, products with a padding of zeros), or is less exact than its dtype (Erf and Gelu in float64). All others are
onnx.reference's, given float64; those of other domains than ONNX's own are ONNX Runtime's, given float32, where their
nodes stand behind one that is disputed. Bodies are evaluated in the same way."""
import itertools
import math

import numpy as np
from onnx import inliner, numpy_helper
from onnx.reference import ReferenceEvaluator

from oracle import name_of, session, small_model
from tensors import is_float


def attributes(node):
    """By name: a number, a list of numbers, or a string."""
    return {a.name: {1: a.f, 2: a.i, 3: a.s.decode(errors="replace"), 7: list(a.ints)}.get(a.type)
            for a in node.attribute}


def windows(node, x, kernel):
    """(strides, dilations, pads before each axis, lengths of the result) of a window over the spatial axes of x."""
    given, rank = attributes(node), len(kernel)
    strides = given.get("strides") or [1] * rank
    dilations = given.get("dilations") or [1] * rank
    pads = list(given.get("pads") or [0] * (2 * rank))
    mode = given.get("auto_pad", "NOTSET")
    lengths = []
    for i, (size, stride) in enumerate(zip(x.shape[2:], strides)):
        reach = (kernel[i] - 1) * dilations[i] + 1
        if mode.startswith("SAME"):
            length = -(-size // stride)
            total = max((length - 1) * stride + reach - size, 0)
            pads[i] = total // 2 if mode == "SAME_UPPER" else total - total // 2
            pads[i + rank] = total - pads[i]
        room = size + pads[i] + pads[i + rank] - reach
        length = room // stride + 1
        if given.get("ceil_mode"):
            length = -(-room // stride) + 1
            if (length - 1) * stride >= size + pads[i]:
                length -= 1
        lengths.append(length)
    return strides, dilations, pads, lengths


def taps(place, kernel, strides, dilations, pads, sizes):
    """(place in the kernel, place in the data) of a window's taps that hit data."""
    for tap in itertools.product(*map(range, kernel)):
        at = [p * s + t * d - b for p, s, t, d, b in zip(place, strides, tap, dilations, pads)]
        if all(0 <= a < size for a, size in zip(at, sizes)):
            yield tap, tuple(at)


def average_pool(node, x):
    kernel = attributes(node)["kernel_shape"]
    strides, dilations, pads, lengths = windows(node, x, kernel)
    y = np.zeros(x.shape[:2] + tuple(lengths))
    rank = len(kernel)
    for place in itertools.product(*map(range, lengths)):
        hit = [at for _, at in taps(place, kernel, strides, dilations, pads, x.shape[2:])]
        total = sum(x[(slice(None), slice(None)) + at] for at in hit)
        count = len(hit)
        if attributes(node).get("count_include_pad"):
            count = 1  # the taps that hit data or its padding, but nothing behind that
            for i in range(rank):
                first = place[i] * strides[i] - pads[i]
                end = x.shape[2 + i] + pads[i + rank]
                count *= sum(first + t * dilations[i] < end for t in range(kernel[i]))
        y[(slice(None), slice(None)) + place] = total / max(count, 1)
    return [y]


def conv(node, x, weight, bias=None):
    kernel, groups = weight.shape[2:], attributes(node).get("group", 1)
    strides, dilations, pads, lengths = windows(node, x, kernel)
    y = np.zeros((x.shape[0], weight.shape[0]) + tuple(lengths))
    x = x.reshape((x.shape[0], groups, -1) + x.shape[2:])
    weight = weight.reshape((groups, -1) + weight.shape[1:])
    for place in itertools.product(*map(range, lengths)):
        for tap, at in taps(place, kernel, strides, dilations, pads, x.shape[3:]):
            data, part = x[(Ellipsis,) + at], weight[(Ellipsis,) + tap]  # [n, groups, c], [groups, m, c]
            products = (data[:, :, None, :] * part[None]).sum(axis=-1)
            y[(slice(None), slice(None)) + place] += products.reshape(y.shape[:2])
    return [y if bias is None else y + bias.reshape((1, -1) + (1,) * len(kernel))]


def conv_transpose(node, x, weight, bias=None):
    given, rank = attributes(node), x.ndim - 2
    kernel, groups = weight.shape[2:], given.get("group", 1)
    strides = given.get("strides") or [1] * rank
    dilations = given.get("dilations") or [1] * rank
    pads = list(given.get("pads") or [0] * (2 * rank))
    extra = given.get("output_padding") or [0] * rank
    mode, asked = given.get("auto_pad", "NOTSET"), given.get("output_shape")
    reach = [s * (n - 1) + e + (k - 1) * d + 1
             for s, n, e, k, d in zip(strides, x.shape[2:], extra, kernel, dilations)]
    lengths = [r - a - b for r, a, b in zip(reach, pads, pads[rank:])]
    if asked or mode.startswith("SAME"):
        lengths = (list(asked)[-rank:] if asked else [n * s for n, s in zip(x.shape[2:], strides)])
        for i, total in enumerate(max(r - n, 0) for r, n in zip(reach, lengths)):
            pads[i] = total // 2 if mode == "SAME_UPPER" else total - total // 2
    out = np.zeros((x.shape[0], weight.shape[1] * groups, *lengths))
    share, made = x.shape[1] // groups, weight.shape[1]
    for tap in itertools.product(*map(range, kernel)):
        for place in itertools.product(*map(range, x.shape[2:])):
            at = [p * s + t * d - b for p, s, t, d, b in zip(place, strides, tap, dilations, pads)]
            if not all(0 <= a < n for a, n in zip(at, lengths)):
                continue
            for group in range(groups):
                data = x[(slice(None), slice(group * share, (group + 1) * share), *place)]
                taken = weight[(slice(group * share, (group + 1) * share), slice(None), *tap)]
                out[(slice(None), slice(group * made, (group + 1) * made), *at)] += data @ taken
    return [out if bias is None else out + bias.reshape(-1, *[1] * rank)]


def lrn(node, x):
    given = attributes(node)
    size, total = given["size"], np.zeros_like(x)
    for c in range(x.shape[1]):
        first, last = max(0, c - (size - 1) // 2), min(x.shape[1] - 1, c + size // 2)
        total[:, c] = np.square(x[:, first:last + 1]).sum(axis=1)
    return [x / (given.get("bias", 1.0) + given.get("alpha", 1e-4) / size * total) ** given.get("beta", 0.75)]


def batch_normalization(node, x, scale, bias, mean, variance):
    given = attributes(node)
    if given.get("training_mode") or len([name for name in node.output if name]) > 1:
        raise NotImplementedError("training")
    column = (1, -1) + (1,) * (x.ndim - 2)
    factor = scale / np.sqrt(variance + given.get("epsilon", 1e-5))
    return [(x - mean.reshape(column)) * factor.reshape(column) + bias.reshape(column)]


def lp_pool(node, x):
    kernel, p = attributes(node)["kernel_shape"], attributes(node).get("p", 2)
    strides, dilations, pads, lengths = windows(node, x, kernel)
    y = np.zeros(x.shape[:2] + tuple(lengths))
    for place in itertools.product(*map(range, lengths)):
        hit = [at for _, at in taps(place, kernel, strides, dilations, pads, x.shape[2:])]
        y[(slice(None), slice(None)) + place] = sum(np.abs(x[(slice(None), slice(None)) + at]) ** p for at in hit)
    return [y ** (1 / p)]


def hard_swish(_, x):
    return [x * np.clip(x / 6 + 0.5, 0, 1)]


def erf(_, x):
    return [np.vectorize(math.erf, otypes=[float])(x)]


def gelu(node, x):
    if attributes(node).get("approximate") == "tanh":
        return [0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))]
    return [0.5 * x * (1 + erf(node, x / math.sqrt(2))[0])]


def mean_variance_normalization(node, x):
    axes = tuple(attributes(node).get("axes", [0, 2, 3]))
    centred = x - x.mean(axis=axes, keepdims=True)
    return [centred / (np.sqrt(np.square(centred).mean(axis=axes, keepdims=True)) + 1e-9)]


def exponentials(node, x, opset):
    """(x less its greatest, the sum of its exponentials) along the axis; until opset 13 it began a matrix's rows."""
    axis = attributes(node).get("axis", 1 if opset < 13 else -1)
    if opset < 13:
        x, axis = x.reshape(int(np.prod(x.shape[:axis])), -1), 1
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted, np.exp(shifted).sum(axis=axis, keepdims=True)


def softmax(node, x, opset):
    shifted, total = exponentials(node, x, opset)
    return [(np.exp(shifted) / total).reshape(x.shape)]


def log_softmax(node, x, opset):
    shifted, total = exponentials(node, x, opset)
    return [(shifted - np.log(total)).reshape(x.shape)]


ACTIVATIONS = {"Sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)), "Tanh": lambda x, a, b: np.tanh(x),
               "Relu": lambda x, a, b: np.maximum(x, 0),
               "HardSigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1)}


def recurrent(gates, defaults, step):
    """An operator over sequences whose steps compute `gates` rows each: step(f, x, state, cell, weights, options)."""
    def evaluate(node, x, weight, repeat, bias=None, lengths=None, initial=None, initial_cell=None, peepholes=None):
        given = attributes(node)
        if given.get("layout"):
            raise NotImplementedError("layout 1")
        count, hidden = weight.shape[0], given["hidden_size"]
        names = [a.strings for a in node.attribute if a.name == "activations"]
        names = [n.decode() for n in names[0]] if names else defaults * count
        alphas = next((list(a.floats) for a in node.attribute if a.name == "activation_alpha"), [0.2] * len(names))
        betas = next((list(a.floats) for a in node.attribute if a.name == "activation_beta"), [0.5] * len(names))
        steps, batch = x.shape[:2]
        ends = np.full(batch, steps) if lengths is None else lengths
        clip = given.get("clip")
        out, lasts, cells = np.zeros((steps, count, batch, hidden)), [], []
        for d in range(count):
            at = slice(d * len(defaults), (d + 1) * len(defaults))
            # (What leaves the cell, by the third one, is not clipped in ONNX Runtime.)
            f = [lambda v, name=n, a=a, b=b, ends=None if i == 2 else clip:
                 ACTIVATIONS[name](v if ends is None else np.clip(v, -ends, ends), a, b)
                 for i, (n, a, b) in enumerate(zip(names[at], alphas[at], betas[at]))]
            both = np.zeros(2 * gates * hidden) if bias is None else bias[d]
            weights = (weight[d], repeat[d], both[:gates * hidden], both[gates * hidden:],
                       np.zeros(3 * hidden) if peepholes is None else peepholes[d])
            state = np.zeros((batch, hidden)) if initial is None else initial[d].copy()
            cell = np.zeros((batch, hidden)) if initial_cell is None else initial_cell[d].copy()
            back = given.get("direction", "forward") == "reverse" or d == 1
            for i in range(steps):
                places = np.where(back, ends - 1 - i, i)
                alive = i < ends
                rows = x[np.where(alive, places, 0), np.arange(batch)]
                new_state, new_cell = step(f, rows, state, cell, weights, given)
                state = np.where(alive[:, None], new_state, state)
                cell = np.where(alive[:, None], new_cell, cell)
                for b in np.flatnonzero(alive):
                    out[places[b], d, b] = state[b]
            lasts.append(state)
            cells.append(cell)
        return [out, np.stack(lasts), np.stack(cells)]
    return evaluate


def rnn_step(f, x, state, cell, weights, _):
    w, r, wb, rb, _ = weights
    return f[0](x @ w.T + state @ r.T + wb + rb), cell


def gru_step(f, x, state, cell, weights, given):
    (wz, wr, wh), (rz, rr, rh), (bz, br, bh), (cz, cr, ch) = (np.split(a, 3) for a in weights[:4])
    z = f[0](x @ wz.T + state @ rz.T + bz + cz)
    r = f[0](x @ wr.T + state @ rr.T + br + cr)
    inner = r * (state @ rh.T + ch) if given.get("linear_before_reset") else (r * state) @ rh.T + ch
    return (1 - z) * f[1](x @ wh.T + inner + bh) + z * state, cell


def lstm_step(f, x, state, cell, weights, given):
    w, r, wb, rb, p = weights
    i, o, g, c = np.split(x @ w.T + state @ r.T + wb + rb, 4, axis=1)
    pi, po, pf = np.split(p, 3)
    i = f[0](i + pi * cell)
    forget = 1 - i if given.get("input_forget") else f[0](g + pf * cell)
    cell = forget * cell + i * f[1](c)
    return f[0](o + po * cell) * f[2](cell), cell


def cubic_weights(t):
    """Keys' kernel with a = -0.75 at -1, 0, 1 and 2 from the pixel before a place; t: the place's fraction."""
    a = -0.75
    def near(d):
        return ((a + 2) * d - (a + 3)) * d * d + 1
    def far(d):
        return a * (d - 1) * (d - 2) ** 2
    return [far(1 + t), near(t), near(1 - t), far(2 - t)]


def reflected(place, low, high):
    if low == high:
        return 0
    place = abs(place - low) % (2 * (high - low))
    return low + min(place, 2 * (high - low) - place)


def grid_sample(node, x, grid):
    """Cubic alone: the weights of onnx.reference and ONNX Runtime lose their digits where they are nearly 0."""
    given = attributes(node)
    if given.get("mode") not in ("cubic", "bicubic"):
        raise NotImplementedError(given.get("mode"))
    corners, padding = given.get("align_corners", 0), given.get("padding_mode", "zeros")
    def pixel(image, place):
        at = []
        for position, length in zip(place, image.shape[1:]):
            if padding == "reflection":
                position = int(reflected(position, *((0, length - 1) if corners else (-0.5, length - 0.5))))
            if padding == "zeros" and not 0 <= position < length:
                return np.zeros(len(image))
            at.append(min(max(position, 0), length - 1))
        return image[(slice(None), *at)]
    y = np.zeros(x.shape[:2] + grid.shape[1:-1])
    for n, *out in np.ndindex(grid.shape[:-1]):
        places = [(g + 1) / 2 * (length - 1) if corners else ((g + 1) * length - 1) / 2
                  for g, length in zip(grid[(n, *out)][::-1], x.shape[2:])]
        if padding == "reflection":
            places = [reflected(p, *((0, length - 1) if corners else (-0.5, length - 0.5)))
                      for p, length in zip(places, x.shape[2:])]
        whole = [math.floor(p) for p in places]
        weights = [cubic_weights(p - first) for p, first in zip(places, whole)]
        for taps_at in itertools.product(range(4), repeat=len(places)):
            weight = math.prod(w[k] for w, k in zip(weights, taps_at))
            y[(n, slice(None), *out)] += weight * pixel(x[n], [first + k - 1 for first, k in zip(whole, taps_at)])
    return [y]


def attention(node, q, k, v, mask=None, past_key=None, past_value=None, lengths=None):
    """softmax(q k^T * scale + bias) v with a bias of 0 at visible keys and of -inf at hidden ones. Scores are
    [B, H, S, T]; a row without a visible key is 0."""
    given = attributes(node)
    flat = q.ndim == 3
    if flat:
        counts = given["q_num_heads"], given["kv_num_heads"], given["kv_num_heads"]
        q, k, v = (x.reshape(*x.shape[:2], n, -1).transpose(0, 2, 1, 3) for x, n in zip((q, k, v), counts))
    if past_key is not None:
        k, v = np.concatenate((past_key, k), axis=2), np.concatenate((past_value, v), axis=2)
    rows, total = q.shape[2], k.shape[2]
    keys, values = (x.repeat(q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    products = q @ keys.swapaxes(2, 3) * (given.get("scale") or 1 / math.sqrt(q.shape[3]))
    capped = products if not given.get("softcap") else np.tanh(products / given["softcap"]) * given["softcap"]
    offset = 0 if past_key is None else past_key.shape[2]
    if lengths is not None:
        offset = (lengths - rows).reshape(-1, 1, 1, 1)
    row, key = offset + np.arange(rows).reshape(-1, 1), np.arange(total)
    visible = np.full((1, 1, rows, total), True)
    for width, far in ((given.get("left_window_size", -1), row - key), (given.get("right_window_size", -1), key - row),
                       (0 if given.get("is_causal") else -1, key - row)):
        visible = visible & (far <= width if width >= 0 else True)
    if lengths is not None:
        visible = visible & (key < lengths.reshape(-1, 1, 1, 1))
    added = 0.0
    if mask is not None and mask.shape[-1] < total:  # keys behind the mask's end are hidden
        raise NotImplementedError
    if mask is not None and mask.dtype == bool:
        visible = visible & mask
    elif mask is not None:
        added = mask
    biased = capped + added + np.where(visible, 0.0, -np.inf)
    weights = np.exp(biased - biased.max(axis=3, keepdims=True))
    weights = np.where(visible.any(axis=3, keepdims=True), weights / weights.sum(axis=3, keepdims=True), 0.0)
    y = weights @ values if total else np.zeros(q.shape[:3] + v.shape[3:])
    if flat:
        y = y.transpose(0, 2, 1, 3).reshape(y.shape[0], rows, -1)
    return [y, k, v, (products, capped, biased, weights)[given.get("qk_matmul_output_mode", 0)]][:len(node.output)]


def optional(_, x=None):
    return [x]


def has_element(_, x=None):
    return [np.bool_(x is not None)]


DEFINITIONS = {"Attention": attention, "AveragePool": average_pool, "BatchNormalization": batch_normalization,
               "Conv": conv, "ConvTranspose": conv_transpose,
               "RNN": recurrent(1, ["Tanh"], rnn_step), "GRU": recurrent(3, ["Sigmoid", "Tanh"], gru_step),
               "LSTM": recurrent(4, ["Sigmoid", "Tanh", "Tanh"], lstm_step), "LRN": lrn, "LpPool": lp_pool,
               "HardSwish": hard_swish, "Erf": erf, "Gelu": gelu, "GridSample": grid_sample,
               "MeanVarianceNormalization": mean_variance_normalization, "Optional": optional,
               "OptionalGetElement": optional, "OptionalHasElement": has_element}
DEFINITIONS_BY_OPSET = {"Softmax": softmax, "LogSoftmax": log_softmax}


def widened(array):
    return array.astype(np.float64) if is_float(array.dtype) else array


def renamed(node):
    """As onnx.reference knows it: GridSample's modes had other names until opset 19."""
    if node.op_type == "GridSample":
        names = {"bilinear": b"linear", "bicubic": b"cubic"}
        result = type(node)()
        result.CopyFrom(node)
        for a in result.attribute:
            if a.name == "mode":
                a.s = names.get(a.s.decode(), a.s)
        return result
    return node


def evaluate_node(node, given, opset, outer):
    if node.op_type in BODIES:
        return BODIES[node.op_type](node, given, opset, outer)
    if name_of(node) in DEFINITIONS:
        try:
            return DEFINITIONS[name_of(node)](node, *given)
        except NotImplementedError:  # a form that onnx.reference defines as well
            pass
    if node.op_type in DEFINITIONS_BY_OPSET:
        return DEFINITIONS_BY_OPSET[node.op_type](node, *given, opset)
    node = renamed(node)
    arrays = {name: array for name, array in zip(node.input, given) if name}
    if node.domain:
        arrays = {name: array.astype(np.float32) if is_float(array.dtype) else array for name, array in arrays.items()}
        model = small_model([node], [name for name in node.output if name], arrays, opset)
        results = dict(zip(filter(None, node.output), session(model).run(None, arrays)))
        return [results.get(name) for name in node.output]
    model = small_model([node], list(node.output), arrays, opset)
    return ReferenceEvaluator(model).run(None, {i.name: arrays[i.name] for i in model.graph.input})


def evaluate_graph(graph, given, opset, outer):
    """Every tensor that the graph sees by name, floats in float64; without those that only onnx.reference could
    evaluate and does not."""
    values = dict(outer)
    values.update({t.name: widened(numpy_helper.to_array(t)) for t in graph.initializer})
    values.update({name: widened(array) for name, array in given.items()})
    for node in graph.node:
        try:
            results = evaluate_node(node, [values[name] if name else None for name in node.input], opset, values)
            values.update({name: widened(np.asarray(y)) for name, y in zip(node.output, results) if name})
        except Exception:
            continue
    return values


def body_results(graph, given, opset, outer):
    values = evaluate_graph(graph, dict(zip([i.name for i in graph.input], given)), opset, outer)
    return [values[o.name] for o in graph.output]


def graph_attribute(node, name):
    return next(a.g for a in node.attribute if a.name == name)


def branch(node, given, opset, outer):
    return body_results(graph_attribute(node, "then_branch" if given[0] else "else_branch"), [], opset, outer)


def loop(node, given, opset, outer):
    body, (trips, goes_on, *carried) = graph_attribute(node, "body"), given + [None] * (2 - len(given))
    goes_on, rows, i = True if goes_on is None else bool(goes_on), [], 0
    while goes_on and (trips is None or i < trips):
        goes_on, *results = body_results(body, [np.int64(i), np.bool_(goes_on), *carried], opset, outer)
        carried, row = results[:len(carried)], results[len(carried):]
        rows.append(row)
        i += 1
    return carried + [np.stack(part) for part in zip(*rows)]  # (of no trips, rows have no known shape)


def scan(node, given, opset, outer):
    body, options = graph_attribute(node, "body"), attributes(node)
    states, scanned = given[:-options["num_scan_inputs"]], given[-options["num_scan_inputs"]:]
    axes = options.get("scan_input_axes") or [0] * len(scanned)
    directions = options.get("scan_input_directions") or [0] * len(scanned)
    trips, rows = scanned[0].shape[axes[0]], []
    for i in range(trips):
        parts = [np.take(x, trips - 1 - i if back else i, axis) for x, axis, back in zip(scanned, axes, directions)]
        results = body_results(body, states + parts, opset, outer)
        states, row = results[:len(states)], results[len(states):]
        rows.append(row)
    stacked = list(zip(*rows))
    backwards = options.get("scan_output_directions") or [0] * len(stacked)
    places = options.get("scan_output_axes") or [0] * len(stacked)
    return states + [np.stack(part[::-1] if back else part, axis)
                     for part, axis, back in zip(stacked, places, backwards)]


BODIES = {"If": branch, "Loop": loop, "Scan": scan}


def evaluate_model(model, inputs):
    """Every tensor of the model by name, as evaluate_graph gives them; those inside of its functions have other names."""
    model = inliner.inline_local_functions(model)
    opset = next(o.version for o in model.opset_import if o.domain == "")
    return evaluate_graph(model.graph, inputs, opset, {})
