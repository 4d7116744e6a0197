"""Convolutions and matrix products of bytes are exact: ConvInteger over rows, images and volumes, and MatMulInteger of any
number of rows, columns and summands, beside arithmetic in int64, at the ends of the ranges of bytes and between them,
with zero points that are numbers or inputs, for CPUs with instructions for bytes and without.

Where the kernel does not permit AMX, kernels without it run: the default target's results are checked so, too.

usage: integer_products.py BIN_DIR [--seed N] [--count N] [--targets cpu,...]    exits 77 without numpy and onnx

All draws of a seed are nodes of one model. ONNX Runtime is no judge: on CPUs without such instructions its sums
saturate."""
import argparse
import ctypes
import os
import pathlib
import platform
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)


def convolution(x, w, strides, pads, dilations, groups):
    """The sums of products, x and w being int64 and pads [before, after] per axis."""
    spatial = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *map(tuple, pads)])
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    places = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(2, 2 + spatial)))
    steps = tuple(slice(None, None, s) for s in (*strides, *dilations))
    places = places[(slice(None), slice(None), *steps)]
    places = places.reshape(x.shape[0], groups, -1, *places.shape[2:])
    w = w.reshape(groups, -1, *w.shape[1:])
    out, taps = "xyz"[:spatial], "ijk"[:spatial]
    sums = np.einsum(f"ngc{out}{taps},goc{taps}->ngo{out}", places, w, optimize=True)
    return sums.reshape(x.shape[0], -1, *sums.shape[3:])


def numbers(rng, dtype, dims):
    """Numbers of the whole range, or of its ends alone, which sums of products feel most."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    kind = rng.integers(4)
    if kind < 2:
        return np.full(dims, (low, high)[kind], dtype)
    return (rng.choice([low, high, 0], dims) if kind == 2 else rng.integers(low, high + 1, dims)).astype(dtype)


def without_tiles():
    """In a process about to start: the system call that asks for AMX fails from now on (seccomp: of arch_prctl with
    ARCH_REQ_XCOMP_PERM)."""
    ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, EPERM = 158, 0x1023, 1
    LOAD, EQUAL, RETURN, ALLOW, FAIL = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000
    NUMBER_AT, FIRST_ARGUMENT_AT = 0, 16
    steps = [(LOAD, 0, 0, NUMBER_AT), (EQUAL, 0, 3, ARCH_PRCTL), (LOAD, 0, 0, FIRST_ARGUMENT_AT),
             (EQUAL, 0, 1, ARCH_REQ_XCOMP_PERM), (RETURN, 0, 0, FAIL | EPERM), (RETURN, 0, 0, ALLOW)]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(buffer))
    prctl, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = ctypes.CDLL(None).prctl, 38, 22, 2
    if prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or prctl(PR_SET_SECCOMP, FILTER, program, 0, 0) != 0:
        raise OSError("no seccomp filter can be set")


class Draws:
    def __init__(self, seed, count):
        self.nodes, self.infos, self.constants, self.feed, self.expected = [], [], [], {}, {}
        for i in range(count):
            (self.add_product if i % 3 == 2 else self.add_convolution)(np.random.default_rng([seed, i]), i)

    def operand(self, name, value, is_input, free=()):
        if not is_input:
            self.constants.append(numpy_helper.from_array(value, name))
            return name
        dims = [f"{name}_{axis}" if axis in free else size for axis, size in enumerate(value.shape)]
        self.infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), dims))
        self.feed[name] = value
        return name

    def add_product(self, rng, i):
        rows, depth, columns = (int(rng.choice([rng.integers(1, most), n])) for most, n in ((100, 32), (400, 128), (150, 64)))
        x = numbers(rng, rng.choice([np.uint8, np.int8]), [*map(int, rng.integers(1, 3, rng.integers(0, 3))), rows, depth])
        w = numbers(rng, rng.choice([np.int8, np.int8, np.uint8]), [depth, columns])
        x_zero = numbers(rng, x.dtype, [])
        w_zero = (np.zeros([], w.dtype), numbers(rng, w.dtype, []), numbers(rng, w.dtype, [columns]))[rng.integers(3)]
        free = [axis for axis in range(x.ndim - 1)] if rng.random() < 0.5 else []
        names = [self.operand(f"x{i}", x, True, free), self.operand(f"w{i}", w, False),
                 self.operand(f"xz{i}", x_zero, rng.random() < 0.3), self.operand(f"wz{i}", w_zero, False)]
        self.nodes.append(helper.make_node("MatMulInteger", names, [f"y{i}"]))
        self.expected[f"y{i}"] = ((x.astype(np.int64) - int(x_zero)) @ (w.astype(np.int64) - w_zero)).astype(np.int32)

    def add_convolution(self, rng, i):
        spatial = (2, 3, 1, 2)[i % 4]
        each = lambda low, high: [int(n) for n in rng.integers(low, high, spatial)]
        groups = int(rng.choice([1, 1, 2]))
        own, outputs = int(rng.choice([2, 9, 16, 33])), int(rng.choice([3, 16, 17]))
        kernel, dilations, strides = each(1, 4), each(1, 3), each(1, 3)
        pads = [each(0, 3), each(0, 3)]
        size = [(k - 1) * d + 1 + n for k, d, n in zip(kernel, dilations, each(0, 7))]
        x = numbers(rng, rng.choice([np.uint8, np.int8]), [int(rng.integers(1, 3)), own * groups, *size])
        w = numbers(rng, rng.choice([np.int8, np.int8, np.uint8]), [outputs * groups, own, *kernel])
        # The definition wants the data's dtype; the other one is taken, too.
        x_zero = numbers(rng, x.dtype if rng.random() < 0.8 else rng.choice([np.uint8, np.int8]), [])
        w_zero = numbers(rng, w.dtype, []) if rng.random() < 0.3 else np.zeros([], w.dtype)
        free = [axis for axis in range(x.ndim) if axis != 1] if rng.random() < 0.5 else []
        names = [self.operand(f"x{i}", x, True, free), self.operand(f"w{i}", w, False),
                 self.operand(f"xz{i}", x_zero, rng.random() < 0.3), self.operand(f"wz{i}", w_zero, False)]
        self.nodes.append(helper.make_node("ConvInteger", names, [f"y{i}"], kernel_shape=kernel, strides=strides,
                                           dilations=dilations, pads=pads[0] + pads[1], group=groups))
        self.expected[f"y{i}"] = convolution(x.astype(np.int64) - int(x_zero), w.astype(np.int64) - int(w_zero),
                                             strides, list(zip(*pads)), dilations, groups).astype(np.int32)

    def model(self):
        outputs = [helper.make_tensor_value_info(name, TensorProto.INT32, None) for name in self.expected]
        graph = helper.make_graph(self.nodes, "draws", self.infos, outputs, self.constants)
        return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--targets", default="cpu,cpu:x86-64-v3")
    options = parser.parse_args()
    draws, wrong = Draws(options.seed, options.count), 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        onnx.save(draws.model(), folder / "model.onnx")
        np.savez(folder / "inputs.npz", **draws.feed)
        runs = [(target, None) for target in options.targets.split(",")]
        if platform.machine() == "x86_64":
            runs.append((runs[0][0], without_tiles))
        for target, prepare in runs:
            validate = ["--validate"] if target == runs[0][0] else []  # which runs each variant that can run here
            for command in (["vm-compile", folder / "model.onnx", "-o", folder / "model.ingot", "--target", target,
                             *validate],
                            ["vm-run", folder / "model.ingot", folder / "inputs.npz", "--output",
                             f"@{folder}/outputs.npz"]):
                process = subprocess.run([options.bin / command[0], *map(str, command[1:])], capture_output=True,
                                         text=True, env={**os.environ, "INGOT_CACHE": "off"}, preexec_fn=prepare)
                if process.returncode != 0:
                    sys.exit(f"{target}: {command[0]} exits with {process.returncode}: {process.stderr[-500:]}")
            results = np.load(folder / "outputs.npz")
            for node, (name, expected) in zip(draws.nodes, draws.expected.items()):
                if not np.array_equal(results[name], expected):
                    wrong += 1
                    print(f"{target}: {name} differs: {draws.feed.get(node.input[0]).shape} {node}")
    print(f"{options.count} products for {options.targets}: {wrong} differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
