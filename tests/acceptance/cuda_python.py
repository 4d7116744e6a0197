#!/usr/bin/env python3
"""Tensors on the GPU through the Python module: in and out without a copy, with the stream that DLPack asks for.

usage: cuda_python.py BIN_DIR STANDIN_DIR DIGITS.onnx DIGITS.npz    exits 77 (skipped) without numpy

STANDIN_DIR has a libcuda.so.1 that executes PTX on the host, and a libingot.so with the device cuda. What another
library of GPU arrays would do, a class here does with the driver."""
import ctypes as c
import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

BIN, STANDIN, MODEL, DATA = (pathlib.Path(argument).resolve() for argument in sys.argv[1:5])
del sys.argv[1:5]
driver = c.CDLL(str(STANDIN / "libcuda.so.1"))  # loaded by its name, so that the library finds it
os.environ["INGOT_LIBRARY"] = str(STANDIN / "libingot.so")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "apps/python"))
import ingot
from ingot import _capi, _dlpack


class PoolProperties(c.Structure):
    _fields_ = [("allocation", c.c_int), ("handles", c.c_int), ("location", c.c_int), ("device", c.c_int),
                ("rest", c.c_char * 72)]


def check(result):
    if result != 0:
        raise RuntimeError(f"the driver: {result}")


class Gpu:
    """A library's own context and pool of memory."""

    def __init__(self):
        self.context, self.pool = c.c_void_p(), c.c_void_p()
        check(driver.cuInit(0))
        check(driver.cuDevicePrimaryCtxRetain(c.byref(self.context), 0))
        check(driver.cuCtxPushCurrent_v2(self.context))
        check(driver.cuMemPoolCreate(c.byref(self.pool), c.byref(PoolProperties(1, 0, 1, 0))))

    def allocate(self, size):
        address = c.c_uint64()
        check(driver.cuMemAllocFromPoolAsync(c.byref(address), c.c_size_t(size), self.pool, None))
        return address.value

    def read(self, tensor):
        interface = tensor.__cuda_array_interface__
        array = np.empty(interface["shape"], interface["typestr"])
        check(driver.cuMemcpyDtoHAsync_v2(c.c_void_p(array.ctypes.data), c.c_uint64(interface["data"][0]),
                                          c.c_size_t(array.nbytes), None))
        check(driver.cuStreamSynchronize(None))
        return array


gpu = Gpu()


class GpuArray:
    """What another library hands over by DLPack: float32 elements on the GPU."""

    def __init__(self, array):
        array = np.ascontiguousarray(array, np.float32)
        self.shape = (c.c_int64 * array.ndim)(*array.shape)
        self.address = gpu.allocate(array.nbytes)
        check(driver.cuMemcpyHtoDAsync_v2(c.c_uint64(self.address), c.c_void_p(array.ctypes.data),
                                          c.c_size_t(array.nbytes), None))
        self.streams, self.released, self.kept = [], 0, []

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        managed = _capi.Managed()
        managed.dl_tensor = _capi.DLTensor(self.address, _capi.Device(2, 0), len(self.shape),
                                           _capi.DataType(2, 32, 1), self.shape, None, 0)
        deleter = c.CFUNCTYPE(None, c.c_void_p)(lambda _managed: self.release())
        managed.deleter = c.cast(deleter, c.c_void_p)
        self.kept.append((managed, deleter))
        return _dlpack.capsule_of(c.addressof(managed), _dlpack.LEGACY)

    def release(self):
        self.released += 1


class TableArray(GpuArray):
    """The same by DLPack's table of functions, as later libraries have it."""

    stream, refuses = None, False

    @c.CFUNCTYPE(c.c_int, c.py_object, c.POINTER(_capi.DLTensor))
    def borrow(array, out):
        if array.refuses:
            return -1
        out[0] = _capi.DLTensor(array.address, _capi.Device(2, 0), len(array.shape), _capi.DataType(2, 32, 1),
                                array.shape, None, 0)
        return 0

    @c.CFUNCTYPE(c.c_int, c.c_int32, c.c_int32, c.POINTER(c.c_void_p))
    def current_stream(kind, device, out):
        assert (kind, device) == (2, 0)
        out[0] = TableArray.stream
        return 0

    # The version 1.3, no table of an older one, and three functions for other ways.
    words = (c.c_uint64 * 7)(1 | 3 << 32, 0, 0, 0, 0, c.cast(borrow, c.c_void_p).value,
                             c.cast(current_stream, c.c_void_p).value)
    __dlpack_c_exchange_api__ = _dlpack._api.PyCapsule_New(c.addressof(words), b"dlpack_exchange_api", None)


class CudaPython(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = pathlib.Path(cls.folder.name) / "digits.ingot"
        subprocess.run([BIN / "vm-compile", MODEL, "--target", "cuda:sm_80", "-o", cls.file], check=True,
                       capture_output=True, env=dict(os.environ, INGOT_CACHE="off"))
        with np.load(DATA) as arrays:
            cls.images, cls.expected = arrays["image"][:4], arrays["probabilities"][:4]

    def test_in_and_out_without_a_copy(self):
        m = ingot.load(self.file, device="cuda:0")
        x = GpuArray(self.images)
        y = m(x)
        self.assertEqual(x.streams, [1])  # the default stream, as DLPack numbers it
        gc.collect()
        self.assertEqual(x.released, 1)
        self.assertEqual(y.__dlpack_device__(), (2, 0))
        self.assertEqual((y.shape, y.dtype), ((4, 10), "float32"))
        np.testing.assert_allclose(gpu.read(y), self.expected, atol=1e-3)
        for stream in (None, 1, 2, -1):  # complete, so that it is ready for every stream
            y.__dlpack__(stream=stream, max_version=(1, 1))
        del m
        gc.collect()
        np.testing.assert_allclose(gpu.read(y), self.expected, atol=1e-3)  # which outlives its module

    def test_a_table_of_functions(self):
        m = ingot.load(self.file, device="cuda:0")
        x = TableArray(self.images)
        # What another stream computes, and what the table refuses, comes by __dlpack__.
        for stream, refuses, streams in ((None, False, []), (1, False, []), (2, False, [1]), (1 << 40, False, [1, 1]),
                                         (None, True, [1, 1, 1])):
            TableArray.stream, x.refuses = stream, refuses
            np.testing.assert_allclose(gpu.read(m(x)), self.expected, atol=1e-3)
            self.assertEqual(x.streams, streams)

    def test_what_is_elsewhere(self):
        m = ingot.load(self.file)
        with self.assertRaisesRegex(ingot.BadInput, "on cpu, and the parameter is on cuda"):
            m(self.images)
        y = m(GpuArray(self.images))
        with self.assertRaisesRegex(BufferError, "copy=True"):
            y.numpy()
        with self.assertRaisesRegex(TypeError, "on a GPU"):
            np.asarray(y)
        copying = ingot.load(self.file, device="cuda", copy=True)
        for x in (self.images, GpuArray(self.images)):
            self.assertEqual(copying(x).__dlpack_device__(), (1, 0))
            np.testing.assert_allclose(copying(x).numpy(), self.expected, atol=1e-3)
        np.testing.assert_allclose(copying.new_context()(self.images).numpy(), self.expected, atol=1e-3)
        copying.set_input("image", self.images)
        copying.run()
        np.testing.assert_allclose(copying.get_output().numpy(), self.expected, atol=1e-3)

    def test_a_call_that_fails_leaves_a_cache_as_it_was(self):
        try:
            import onnx
            from onnx import TensorProto, helper
        except ImportError as error:
            self.skipTest(str(error))
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in (
            ("x", [2, 1, 8]), ("past", [2, "p", 8]), ("y", [2, 8]), ("present", [2, "q", 8]))]
        nodes = [helper.make_node("Concat", ["past", "x"], ["present"], axis=1),
                 helper.make_node("ReduceSum", ["present", "axes"], ["y"], keepdims=0)]
        axes = onnx.numpy_helper.from_array(np.array([1]), "axes")
        model, file = (pathlib.Path(self.folder.name) / name for name in ("cache.onnx", "cache.ingot"))
        onnx.save(helper.make_model(helper.make_graph(nodes, "cache", infos[:2], infos[2:], [axes]),
                                    opset_imports=[helper.make_opsetid("", 20)], ir_version=9), model)
        subprocess.run([BIN / "vm-compile", model, "--target", "cuda:sm_80", "-o", file, "--state", "past=present",
                        "--dim", "p=0..15"], check=True, capture_output=True, env=dict(os.environ, INGOT_CACHE="off"))
        x, failed, fail = GpuArray(np.ones((2, 1, 8))), 0, driver.standin_fail_call
        for call in range(1, 14):
            m = ingot.load(file, device="cuda:0")
            m(x)
            fail(c.c_int64(call), 2, 0)  # out of memory
            try:
                kept = m(x) is not None
            except ingot.IngotError:
                kept, failed = False, failed + 1
            fail(c.c_int64(0), 0, 0)
            np.testing.assert_array_equal(gpu.read(m(x)), np.full((2, 8), 3.0 if kept else 2.0), f"call {call}")
        self.assertGreaterEqual(failed, 4)

    def test_devices(self):
        with self.assertRaisesRegex(ingot.NotFound, "cuda:7: no such device; there is 1"):
            ingot.load(self.file, device="cuda:7")
        with self.assertRaisesRegex(ingot.IngotError, "no kernels for cpu"):
            ingot.load(self.file, device="cpu")
        for wrong in ("gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:2147483648", "cuda:4294967296"):
            with self.assertRaises(ValueError):
                ingot.load(self.file, device=wrong)


if __name__ == "__main__":
    unittest.main()
