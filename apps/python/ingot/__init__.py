"""Ingot from Python: runs executables by the C API, with tensors of NumPy, PyTorch or any library of DLPack, in and out
without a copy.

    import ingot, numpy
    m = ingot.load("model.ingot")
    y = m(image=array)                # or m(array); an ingot.Tensor
    numpy.asarray(y), torch.from_dlpack(y)

Inputs and results of a model that are strings, such as the labels of a classifier, are NumPy's arrays of strings.

Loading a file is trust in its native code, as with any program; trust=False refuses it. A Module is for one thread at a
time; m.new_context() gives another thread its own over the same weights. Failures are ingot.IngotError, and ValueError,
KeyError, MemoryError or TimeoutError where that fits."""

import ctypes as c
import json
import operator

from . import _capi
from ._capi import BadInput, DeadlineExceeded, Handle, IngotError, NotFound, OutOfMemory, c_path, c_text, lib
from ._dlpack import Borrowed, Tensor

__all__ = ["load", "Module", "Tensor", "IngotError", "BadInput", "NotFound", "OutOfMemory", "DeadlineExceeded"]
__version__ = lib.ingot_version().decode()


def load(path_or_bytes, *, threads=0, trust=True, max_memory=0, deadline=0, log=None, device=None, copy=False):
    """Opens an executable: a path (mapped), or its bytes, which must not change. threads=0: all processors. deadline:
    seconds for creating a context, then for each call; 0: none. log: called with each message. device: "cpu", "cuda:0";
    None: what the file is for. On a GPU, arguments and results are on the GPU; with copy=True arguments may be anywhere,
    and results are on the host."""
    chosen = _device(device)
    instance = Handle(lib.ingot_instance_release)
    options = _capi.InstanceOptions(c.sizeof(_capi.InstanceOptions), threads)
    if log is not None:
        options.log = _capi.LogFunction(lambda _user, message: log(message.decode()))
    instance.keep = options
    lib.ingot_instance_create(c.byref(options), c.byref(instance.value))
    executable = Handle(lib.ingot_executable_release)
    opening = _capi.OpenOptions(c.sizeof(_capi.OpenOptions), 1 if trust else 0)
    if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
        view = memoryview(path_or_bytes).cast("B")
        data = (c.c_char * len(view)).from_buffer(view) if not view.readonly else c.c_char_p(bytes(view))
        executable.keep = (instance, view, data)
        lib.ingot_executable_open_memory(
            instance.value, c.cast(data, c.c_void_p), len(view), b"<bytes>", c.byref(opening), c.byref(executable.value)
        )
    else:
        executable.keep = instance
        lib.ingot_executable_open(
            instance.value, c_path(path_or_bytes), c.byref(opening), c.byref(executable.value)
        )
    return Module(executable, max_memory, deadline, chosen, copy)


def _device(text):
    if text is None:
        return _capi.Device()
    kind, colon, index = text.partition(":")
    kinds = {"cpu": _capi.CPU, "cuda": _capi.CUDA}
    if kind not in kinds or (colon and not index.isdecimal()):
        raise ValueError(f'device {text!r}: expected "cpu", "cuda" or "cuda:INDEX"')
    if int(index or 0) > 2**31 - 1:  # which the C API's field does not hold
        raise ValueError(f"device {text!r}: there is no device of that index")
    return _capi.Device(kinds[kind], int(index or 0))


def _text(value):
    return None if value is None else value.decode()


class Function:
    """One function of an executable: .name, .signature, .inputs and .outputs (names to types, as text)."""

    def __init__(self, pointer):
        self._pointer = pointer
        self.name = _text(lib.ingot_function_name(pointer))
        self.signature = _text(lib.ingot_function_signature(pointer))
        self._types = [
            lib.ingot_function_input_type(pointer, i) for i in range(lib.ingot_function_input_count(pointer))
        ]
        self._written = [lib.ingot_function_input_is_written(pointer, i) for i in range(len(self._types))]
        names = [_text(lib.ingot_function_input_name(pointer, i)) for i in range(len(self._types))]
        self.inputs = dict(zip(names, (_text(lib.ingot_type_text(t)) for t in self._types)))
        self._input_names = names
        self.outputs = [
            _text(lib.ingot_function_output_name(pointer, i)) for i in range(lib.ingot_function_output_count(pointer))
        ]

    def __repr__(self):
        return self.name + self.signature


class Module:
    def __init__(self, executable, max_memory=0, deadline=0, device=_capi.Device(), copy=False):
        self._executable, self._max_memory, self._deadline = executable, max_memory, deadline
        self._device, self._copy = device, copy
        self._context = Handle(lib.ingot_context_release)
        options = _capi.ContextOptions(
            c.sizeof(_capi.ContextOptions),
            device,
            max_memory_bytes=max_memory,
            deadline_seconds=deadline,
            copy_tensors=1 if copy else 0,
        )
        lib.ingot_context_create(executable.value, c.byref(options), c.byref(self._context.value))
        self._functions = {}
        metadata = self.metadata
        self._strings = json.loads(metadata.get("strings", "[]"))
        self._string_tensors = set(json.loads(metadata.get("string_tensors", "[]")))
        self._texts = {}  # inputs of the stateful way that are strings
        self._places, self._ran = _Places(self._strings), None  # theirs; what the last run was of

    def new_context(self):
        """For another thread: the same weights and threads, memory of its own."""
        return Module(self._executable, self._max_memory, self._deadline, self._device, self._copy)

    def function(self, name="main"):
        if name not in self._functions:
            found = c.c_void_p()
            lib.ingot_executable_find_function(self._executable.value, c_text(name), c.byref(found))
            self._functions[name] = Function(found)
        return self._functions[name]

    @property
    def functions(self):
        count = lib.ingot_executable_function_count(self._executable.value)
        return [
            _text(lib.ingot_function_name(lib.ingot_executable_function(self._executable.value, i)))
            for i in range(count)
        ]

    @property
    def metadata(self):
        e = self._executable.value
        return {
            _text(lib.ingot_executable_metadata_key(e, i)): _text(lib.ingot_executable_metadata_value(e, i))
            for i in range(lib.ingot_executable_metadata_count(e))
        }

    def __call__(self, *inputs, **named):
        return self.call("main", *inputs, **named)

    def call(self, function, *inputs, **named):
        """The result, or a tuple of them when the function has several."""
        f = self.function(function)
        values = list(inputs) + [None] * (len(f._input_names) - len(inputs))
        if len(inputs) > len(f._input_names):
            raise TypeError(f"{f}: {len(inputs)} inputs given")
        for name, value in named.items():
            if name not in f.inputs:
                raise TypeError(f"{f}: there is no input {name!r}")
            at = f._input_names.index(name)
            if at < len(inputs):
                raise TypeError(f"{f}: input {name!r} is given twice")
            values[at] = value
        missing = [name for name, value in zip(f._input_names, values) if value is None]
        if missing:
            raise TypeError(f"{f}: no value for {', '.join(missing)}")
        places = _Places(self._strings)
        for i, name in enumerate(f._input_names):
            if self._is_text(function, name) and (texts := _texts_of(values[i])) is not None:
                values[i] = places.of(texts)
        keep = []
        arguments = (_capi.Value * len(values))()
        for argument, value, declared, is_written in zip(arguments, values, f._types, f._written):
            keep.append(_fill(argument, value, lib.ingot_type_kind(declared), is_written))
        results = (_capi.Value * len(f.outputs))()
        lib.ingot_invoke(self._context.value, f._pointer, arguments, len(values), results, len(f.outputs))
        try:
            taken = [_take(result) for result in results]
        finally:
            for result in results:  # what was not taken
                lib.ingot_value_clear(c.byref(result))
        for i, name in enumerate(f.outputs):
            if self._is_text(function, name):
                taken[i] = places.strings_at(taken[i])
        return taken[0] if len(taken) == 1 else tuple(taken)

    def _is_text(self, function, name):
        return function == "main" and name in self._string_tensors

    # ---- The stateful way: set_input, run, get_output.

    def set_input(self, name, value, function="main"):
        """A tensor (copied), number, text, shape or tuple, as the input's type says."""
        if self._is_text(function, name):
            self._texts.pop(name, None)
            if (texts := _texts_of(value)) is None:
                return self._set_input(name, value, function)
            self._texts[name] = texts
            self._places = _Places(self._strings)  # of what all inputs are now
            for each, texts in self._texts.items():
                self._set_input(each, self._places.of(texts), function)
        else:
            self._set_input(name, value, function)

    def _set_input(self, name, value, function):
        f = self.function(function)
        declared = dict(zip(f._input_names, f._types)).get(name)
        argument = _capi.Value()
        keep = _fill(argument, value, _capi.KIND_TENSOR if declared is None else lib.ingot_type_kind(declared))
        lib.ingot_context_set_input_value(self._context.value, f._pointer, c_text(name), c.byref(argument))
        del keep  # what the argument points to lived until here

    def run(self, function="main"):
        f = self.function(function)
        lib.ingot_context_run(self._context.value, f._pointer)
        self._ran = f, function, self._places

    def get_output(self, index=0):
        result = _capi.Value()
        lib.ingot_context_get_output(self._context.value, index, c.byref(result))
        taken = _take(result)
        f, function, places = self._ran
        return places.strings_at(taken) if self._is_text(function, f.outputs[index]) else taken

    def set_deadline(self, seconds):
        lib.ingot_context_set_deadline(self._context.value, seconds)

    def cancel(self):
        """Stops the call that runs now; from another thread."""
        lib.ingot_context_cancel(self._context.value)

    @property
    def memory_peak(self):
        return lib.ingot_context_memory_peak(self._context.value)

    def __repr__(self):
        return f"ingot.Module({', '.join(self.functions)})"


def _texts_of(value):
    """A copy of strings as an array of them; None for numbers."""
    import numpy

    array = numpy.asarray(value)
    if array.dtype.kind not in "OUST":
        return None
    texts = numpy.empty(array.shape, object)
    texts.ravel()[:] = [text.decode() if isinstance(text, bytes) else str(text) for text in array.ravel()]
    return texts


class _Places:
    """Strings as numbers: their places among the model's, and the next ones for others."""

    def __init__(self, known):
        self._strings = list(known)
        self._numbers = {text: i for i, text in enumerate(known)}

    def of(self, texts):
        import numpy

        for text in texts.ravel():
            if text not in self._numbers:
                self._numbers[text] = len(self._strings)
                self._strings.append(text)
        return numpy.array([self._numbers[text] for text in texts.ravel()], numpy.int64).reshape(texts.shape)

    def strings_at(self, tensor):
        """Those of numbers that stand for none are named by the number, as vm-run does."""
        import numpy

        places = numpy.asarray(tensor)
        known = lambda place: 0 <= place < len(self._strings)
        texts = numpy.empty(places.shape, object)
        texts.ravel()[:] = [self._strings[at] if known(at) else f"<string {at}>" for at in places.ravel()]
        return texts


def _fill(argument, value, kind, is_written=False):
    """Fills an argument; returns what must live as long as the call."""
    argument.kind = kind
    if kind == _capi.KIND_TENSOR:
        borrowed = Borrowed(value, is_written)
        argument.as_.tensor = c.pointer(borrowed.tensor)
        return borrowed
    if kind == _capi.KIND_INT:
        argument.as_.i = operator.index(value)  # of ints, NumPy's too; a float would lose something
    elif kind == _capi.KIND_FLOAT:
        argument.as_.f = float(value)
    elif kind == _capi.KIND_BOOL:
        if type(value).__name__ not in ("bool", "bool_"):  # Python's or NumPy's
            raise TypeError(f"expected a bool, got {value!r}")
        argument.as_.b = bool(value)
    elif kind == _capi.KIND_STRING:
        argument.as_.string = c_text(value)
    elif kind == _capi.KIND_SHAPE:
        extents = (c.c_int64 * len(value))(*value)
        argument.as_.shape.extents, argument.as_.shape.rank = extents, len(value)
        return extents
    elif kind == _capi.KIND_TUPLE:
        elements = (_capi.Value * len(value))()
        kept = [_fill(element, part, _kind_of(part)) for element, part in zip(elements, value)]
        argument.as_.tuple.elements, argument.as_.tuple.count = elements, len(value)
        return elements, kept
    else:
        raise TypeError("values of this kind cannot be passed")
    return value


def _kind_of(value):
    if isinstance(value, bool):
        return _capi.KIND_BOOL
    for type_, kind in (
        (int, _capi.KIND_INT),
        (float, _capi.KIND_FLOAT),
        (str, _capi.KIND_STRING),
        (tuple, _capi.KIND_TUPLE),
    ):
        if isinstance(value, type_):
            return kind
    return _capi.KIND_TENSOR


def _take(result):
    """A result as Python has it; what it held is released, or belongs to the Tensor."""
    kind, value = result.kind, result.as_
    if kind == _capi.KIND_TENSOR:
        managed = value.owned_tensor
        result.kind = _capi.KIND_INT
        return Tensor(managed)
    try:
        if kind == _capi.KIND_INT:
            return value.i
        if kind == _capi.KIND_FLOAT:
            return value.f
        if kind == _capi.KIND_BOOL:
            return bool(value.b)
        if kind == _capi.KIND_STRING:
            return value.string.decode()
        if kind == _capi.KIND_SHAPE:
            return tuple(value.shape.extents[i] for i in range(value.shape.rank))
        if kind == _capi.KIND_TUPLE:
            return tuple(_take(value.tuple.elements[i]) for i in range(value.tuple.count))
        raise TypeError("a result of this kind has no form in Python")
    finally:
        lib.ingot_value_clear(c.byref(result))
