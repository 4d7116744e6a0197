"""The Python module: calls by name and in order, NumPy, PyTorch and DLPack in and out without a copy (pointers are
equal), the stateful way, contexts in threads, and what failures raise.

usage: python_module.py BIN_DIR [TEST ...]    exits 77 (skipped) without numpy; parts that need torch print
SKIP without. The module is apps/python, or the installed one when INGOT_WHEEL is set."""

import copy, ctypes, gc, os, pathlib, shutil, sys, tempfile, threading, unittest

from tools import Tools

try:
    import numpy as np
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)
try:
    import torch
except ImportError:
    torch = None

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
if not os.environ.get("INGOT_WHEEL"):
    sys.path.insert(0, str(ROOT / "apps/python"))
    os.environ.setdefault("INGOT_LIBRARY", str(BIN.parent / "vm/libingot.so"))
import ingot
from ingot import _capi, _dlpack

PARTS = """ingot 1
function @scalars export (x: float32[2], i: int, f: float, b: bool) -> (y: float32[2], i: int, f: float, b: bool) {
  register r4: float32[2]
  copy r4, r0
  return [r4, r1, r2, r3]
}
function @fill export (x: borrowed_mut int64[4]) -> () {
  register r1: int
  const_int r1, 7
  call_builtin [], store_int, [r0, r1]
  return []
}
function @kinds export () -> (d: dtype, y: float32[262144]) {
  register r0: dtype
  register r1: float32[262144]
  const_dtype r0, float32
  alloc r1, [262144]
  return [r0, r1]
}
function @halves export (x: int4[4]) -> (y: int4[4]) {
  register r1: int4[4]
  copy r1, r0
  return [r1]
}
function @same export (t: tuple(int64[4])) -> (y: tuple(int64[4])) {
  return [r0]
}
"""


class PythonModule(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="ingot-python-"))
        cls.path = cls.dir / "digits.ingot"
        tool = Tools(BIN, check=True)
        tool("vm-compile", ROOT / "tests/data/digits.onnx", "-o", cls.path)
        (cls.dir / "parts.txt").write_text(PARTS)
        tool("vm-inspect", "--assemble", cls.dir / "parts.txt", "-o", cls.dir / "parts.ingot")
        cls.test = np.load(ROOT / "tests/data/digits_test.npz")
        cls.image, cls.expected = cls.test["image"], cls.test["probabilities"]
        cls.m = ingot.load(cls.path)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def test_numpy_in_and_out(self):
        y = self.m(image=self.image)
        np.testing.assert_allclose(np.asarray(y), self.expected, atol=1e-5)
        np.testing.assert_array_equal(np.asarray(self.m(self.image)), y.numpy())
        self.assertEqual((y.shape, y.dtype), ((450, 10), "float32"))

    def test_results_share_their_memory(self):
        y = self.m(self.image[:3])
        a, b = np.asarray(y), np.from_dlpack(y)
        self.assertEqual(a.__array_interface__["data"][0], y.data_ptr)
        self.assertEqual(b.__array_interface__["data"][0], y.data_ptr)
        kept = a.copy()
        del y, b
        gc.collect()
        np.testing.assert_array_equal(a, kept)  # the memory lives as long as what was made from it

    def test_unconsumed_capsules_release_what_they_hold(self):
        y = self.m(self.image[:1])
        for version in (None, (1, 1)):
            for _ in range(100):
                y.__dlpack__(max_version=version)
        self.assertEqual(np.asarray(y).shape, (1, 10))
        with self.assertRaises(BufferError):
            y.__dlpack__(copy=True)

    def test_copies_of_results_share_them(self):
        y = self.m(self.image[:3])
        other = copy.copy(y)
        kept = np.asarray(y).copy()
        del y
        gc.collect()
        np.testing.assert_array_equal(np.asarray(other), kept)
        for each in other, self.m:
            with self.assertRaises(TypeError):
                copy.deepcopy(each)

    def test_memory_is_given_back(self):
        m = self.m.new_context()
        for _ in range(20):
            m(self.image)
        peak = m.memory_peak
        for _ in range(100):
            np.from_dlpack(m(self.image))
        self.assertEqual(m.memory_peak, peak)

    def test_memory_is_given_back_where_a_result_has_no_form(self):
        m = ingot.load(self.dir / "parts.ingot")
        peaks = set()
        for _ in range(3):
            with self.assertRaises(TypeError):
                m.call("kinds")
            peaks.add(m.memory_peak)
        self.assertEqual(len(peaks), 1)

    def test_torch_in_and_out(self):
        if torch is None:
            print("SKIP: no torch")
            self.skipTest("no torch")
        x = torch.from_numpy(self.image[:5].copy())
        y = self.m(x)
        t = torch.from_dlpack(y)
        self.assertEqual(t.data_ptr(), y.data_ptr)
        np.testing.assert_allclose(t.numpy(), self.expected[:5], atol=1e-5)
        np.testing.assert_allclose(
            torch.from_dlpack(self.m(x.expand(5, 1, 8, 8).transpose(2, 3).contiguous().transpose(2, 3))).numpy(),
            t.numpy(),
            atol=1e-6,
        )

    def test_strided_and_read_only_inputs(self):
        backwards = self.image[::-1]
        np.testing.assert_allclose(np.asarray(self.m(backwards)), self.expected[::-1], atol=1e-5)
        fortran = np.asfortranarray(self.image[:7])
        fortran.flags.writeable = False
        np.testing.assert_allclose(np.asarray(self.m(fortran)), self.expected[:7], atol=1e-5)

    def test_inputs_that_are_written(self):
        m = ingot.load(self.dir / "parts.ingot")
        written = np.zeros(8, np.int64)
        self.assertEqual(m.call("fill", written[::2]), ())
        self.assertEqual(written.tolist(), [7, 0] * 4)
        frozen = np.zeros(4, np.int64)
        frozen.flags.writeable = False

        class Exported:  # by DLPack alone
            def __init__(self, array):
                self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

        class Older:  # before DLPack 1.0
            def __init__(self, array):
                self.array = array

            def __dlpack__(self):
                return self.array.__dlpack__()

        m.call("fill", Exported(written[:4]))
        self.assertEqual(written.tolist(), [7] * 4 + [7, 0] * 2)
        m.call("fill", Older(written[4:]))
        self.assertEqual(written.tolist(), [7] * 8)
        for refused in frozen, Exported(frozen), written[6::-2], [0, 0, 0, 0]:
            with self.assertRaisesRegex(TypeError, "written"):
                m.call("fill", refused)
        self.assertEqual(frozen.tolist(), [0] * 4)

    def test_what_a_tensor_of_dlpack_says_of_itself_is_heard(self):
        m = ingot.load(self.dir / "parts.ingot")
        exported, deleted = [], []
        deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleted.append)

        class Exported:
            def __init__(self, elements, shape, dtype, flags=0, version=(1, 1), device=1, strides=None):
                self.kept = (ctypes.c_uint8 * 64)(*elements), (ctypes.c_int64 * len(shape))(*shape)
                self.strides = strides and (ctypes.c_int64 * len(shape))(*strides)
                self.managed = _capi.ManagedVersioned(*version, None, ctypes.cast(deleter, ctypes.c_void_p), flags)
                self.managed.dl_tensor = _capi.DLTensor(
                    ctypes.addressof(self.kept[0]), _capi.Device(device, 0), len(shape), _capi.DataType(*dtype, 1),
                    self.kept[1], self.strides, 0)

                exported.append(self)  # until all are deleted

            def __dlpack__(self, **_):
                return _dlpack.capsule_of(ctypes.addressof(self.managed), _dlpack.VERSIONED)

        read_only, padded, int4, int64 = 1, 4, (0, 4), (0, 64)
        y = m.call("halves", Exported((0x21, 0x43), (4,), int4))
        self.assertEqual(ctypes.string_at(y.data_ptr, 2), bytes((0x21, 0x43)))
        for call in lambda x: m.call("halves", x), lambda x: m.set_input("x", x, "halves"):
            for refused, said in (
                (Exported((1, 2, 3, 4), (4,), int4, flags=padded), "padded"),
                (Exported((0x21, 0x43), (4,), int4, version=(2, 0)), "version 2.0"),
                (Exported((0x21, 0x43), (4,), int4, device=77), "device"),
                (Exported((0x21, 0x43), (4,), int4, strides=(-1,)), "stride"),
                (Exported((0x21, 0x43), (-4,), int4), "-4"),
            ):
                with self.assertRaisesRegex(ingot.BadInput, said):
                    call(refused)
        with self.assertRaisesRegex(TypeError, "read-only"):
            m.call("fill", Exported(bytes(32), (4,), int64, flags=read_only))
        gc.collect()
        self.assertEqual(len(deleted), 12)  # each once

    def test_results_that_are_read_only(self):
        m = ingot.load(self.dir / "parts.ingot")
        m.set_input("t", (np.int64([1, 2, 3, 4]),), "same")
        m.run("same")
        (frozen,) = m.get_output()
        for array in np.asarray(frozen), frozen.numpy(), np.from_dlpack(frozen):
            self.assertEqual(array.tolist(), [1, 2, 3, 4])
            self.assertFalse(array.flags.writeable)
        with self.assertRaisesRegex(TypeError, "written"):
            m.call("fill", frozen)
        with self.assertRaisesRegex(ingot.IngotError, "read-only"):
            frozen.__dlpack__()  # the older form cannot say it
        self.assertTrue(np.asarray(m.call("same", (np.int64([5, 6, 7, 8]),))[0]).flags.writeable)

    def test_arrays_whose_interface_has_no_address(self):
        m = ingot.load(self.dir / "parts.ingot")

        class Picture:  # as PIL's: the elements are bytes, made for the occasion
            def __init__(self, data):
                self.__array_interface__ = {"shape": (2,), "typestr": "<f4", "version": 3, **data}

        elements = np.float32([1, 2])
        for data in {"data": elements.tobytes()}, {"data": memoryview(elements).cast("B"), "offset": 0}:
            y = m.call("scalars", Picture(data), 3, 0.5, True)[0]
            self.assertEqual(np.asarray(y).tolist(), [1, 2])

    def test_the_stateful_way(self):
        self.m.set_input("image", self.image[:2])
        self.m.run()
        np.testing.assert_allclose(np.asarray(self.m.get_output(0)), self.expected[:2], atol=1e-5)

    def test_scalars_and_several_results(self):
        y, i, f, b = ingot.load(self.dir / "parts.ingot").call("scalars", np.float32([1, 2]), 3, f=0.5, b=True)
        self.assertEqual((np.asarray(y).tolist(), i, f, b), ([1, 2], 3, 0.5, True))
        m = ingot.load(self.dir / "parts.ingot")
        numbers = m.call("scalars", np.float32([1, 2]), np.int64(4), np.float32(0.5), np.bool_(False))[1:]
        self.assertEqual(numbers, (4, 0.5, False))
        for i, f, b in ((2.5, 0.5, True), (2, "x", True), (2, 0.5, 1)):
            with self.assertRaises((TypeError, ValueError)):
                m.call("scalars", np.float32([1, 2]), i, f, b)

    def test_from_bytes(self):
        m = ingot.load(self.path.read_bytes(), threads=1)
        np.testing.assert_allclose(m(self.image[:1]).numpy(), self.expected[:1], atol=1e-5)

    def test_text_is_taken_whole_or_not_at_all(self):
        path = str(self.path)
        for call in (
            lambda: ingot.load(path + "\0.txt"),
            lambda: self.m.call("main\0", self.image),
            lambda: self.m.set_input("image\0", self.image),
        ):
            with self.assertRaisesRegex(ValueError, "NUL"):
                call()

    def test_numbers_are_taken_whole_or_not_at_all(self):
        for options in ({"threads": 2**40}, {"max_memory": 2**64}):
            with self.assertRaisesRegex(ValueError, "does not fit"):
                ingot.load(self.path, **options)

    def test_what_it_says_of_itself(self):
        main = self.m.function()
        self.assertEqual(main.inputs, {"image": "float32[batch, 1, 8, 8]"})
        self.assertEqual(main.outputs, ["probabilities"])
        self.assertIn("main", self.m.functions)
        self.assertIn("producer", self.m.metadata)

    def test_threads_have_contexts_of_their_own(self):
        serial = ingot.load(self.path, threads=1)
        expected = {rows: serial(self.image[:rows]).numpy().tobytes() for rows in (1, 3, 450)}
        for size in 1, 2, 5:  # of the pool
            m = ingot.load(self.path, threads=size)
            for rows, bits in expected.items():
                self.assertEqual(m(self.image[:rows]).numpy().tobytes(), bits, f"{rows} rows, a pool of {size}")
        right = [0] * 16
        shared = ingot.load(self.path, threads=3)

        def work(i):
            m = shared.new_context()
            for k in range(1000):
                rows = 450 if k % 50 == 0 else (1, 3)[k % 2]
                right[i] += m(self.image[:rows]).numpy().tobytes() == expected[rows]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(right))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        print(f"{sum(right)} invocations of the digit classifier by {len(right)} threads gave the serial run's bits")
        self.assertEqual(right, [1000] * len(right))

    def test_failures(self):
        with self.assertRaisesRegex(ValueError, r"expected float32\[batch, 1, 8, 8\]"):
            self.m(self.image.astype(np.float64))
        with self.assertRaisesRegex(TypeError, "no input 'imagee'"):
            self.m(imagee=self.image)
        with self.assertRaisesRegex(TypeError, "no value for image"):
            self.m()
        with self.assertRaises(KeyError):
            self.m.call("mian", self.image)
        with self.assertRaisesRegex(ingot.IngotError, "none.ingot"):
            ingot.load("none.ingot")
        with self.assertRaises(ingot.IngotError) as refused:
            ingot.load(self.path, trust=False)
        self.assertEqual(refused.exception.code, 6)
        with self.assertRaises(MemoryError):
            ingot.load(self.path, max_memory=1000)(self.image)
        prepared = self.dir / "prepared.ingot"
        Tools(BIN, check=True)("vm-inspect", "--assemble", ROOT / "tests/data/hostile/prep.txt", "-o", prepared)
        with self.assertRaises(TimeoutError):
            ingot.load(prepared, deadline=0.05)
        np.testing.assert_allclose(self.m(self.image[:1]).numpy(), self.expected[:1], atol=1e-5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
