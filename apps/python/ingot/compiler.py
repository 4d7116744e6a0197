"""Compiling and tuning models from Python, by the compiler's C API (ingot/compiler.h), which needs LLVM. The library
libingot-compiler is found by INGOT_COMPILER_LIBRARY or where the system's loader finds it; ingot itself needs none of
it.

    import ingot, ingot.compiler
    m = ingot.load(ingot.compiler.compile("model.onnx", dims={"batch": 1}).bytes)

    found = ingot.compiler.tune("model.onnx", "records.jsonl", trials=200, dims={"batch": 1})
    for task in found.tasks:
        print(task.kernel, task.default_seconds, task.best_seconds, task.comparison)
    ingot.compiler.compile("model.onnx", target="cpu:native", dims={"batch": 1}, tuning_db="records.jsonl").write("m")

dims: a number or a pair of least and largest size for each name; input_shapes: a tuple of sizes and names for each
input. log: called with each message; progress: with step, done and total. Failures are ingot.IngotError and its
kinds."""

import collections
import ctypes as c
import os
import signal
import threading

from . import _capi
from ._capi import Handle, c_path, c_text

__all__ = ["compile", "tasks", "tune", "Compiled", "Task", "Tuning", "Ratio"]

P, TEXT, TEXTS = c.c_void_p, c.c_char_p, c.POINTER(c.c_char_p)
LogFunction = c.CFUNCTYPE(None, P, TEXT)
ProgressFunction = c.CFUNCTYPE(None, P, TEXT, c.c_int64, c.c_int64)
StopFunction = c.CFUNCTYPE(c.c_int32, P)
FORMS = {"executable": 0, "program": 1, "object": 2, "shared": 3}


class _CompileOptions(_capi.Options):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("target", TEXT),
        ("opt_level", c.c_int32),
        ("num_threads", c.c_int32),
        ("input_shapes", TEXTS),
        ("num_input_shapes", c.c_size_t),
        ("dims", TEXTS),
        ("num_dims", c.c_size_t),
        ("params_path", TEXT),
        ("labels", TEXT),
        ("keep_prepare", c.c_int32),
        ("log", LogFunction),
        ("progress", ProgressFunction),
        ("user", P),
        ("softmax_output", TEXT),
        ("states", TEXTS),
        ("num_states", c.c_size_t),
        ("fast_math", TEXT),
        ("strict_math", c.c_int32),
        ("cache", TEXT),
        ("cache_max_bytes", c.c_int64),
        ("tuning_db", TEXT),
    ]


class _TuneOptions(_capi.Options):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("database", TEXT),
        ("trials", c.c_int64),
        ("trials_per_task", c.c_int64),
        ("early_stop", c.c_int64),
        ("seconds", c.c_double),
        ("search", TEXT),
        ("learn", c.c_int32),
        ("seed", c.c_uint64),
        ("runners", TEXTS),
        ("num_runners", c.c_size_t),
        ("worker", TEXT),
        ("num_threads", c.c_int32),
        ("trial_seconds", c.c_double),
        ("hot", c.c_int32),
        ("should_stop", StopFunction),
        ("user", P),
        ("sizes", TEXTS),
        ("num_sizes", c.c_size_t),
        ("only", TEXT),
    ]


class _Ratio(c.Structure):
    _fields_ = [("median", c.c_double), ("lower", c.c_double), ("upper", c.c_double), ("is_faster", c.c_int32)]


class _TunedTask(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("key", TEXT),
        ("kernel", TEXT),
        ("note", TEXT),
        ("weight", c.c_int64),
        ("flops", c.c_double),
        ("bytes", c.c_double),
        ("roofline_seconds", c.c_double),
        ("predicted_seconds", c.c_double),
        ("num_schedules", c.c_double),
        ("is_symbolic", c.c_int32),
        ("trials", c.c_int64),
        ("new_trials", c.c_int64),
        ("failed", c.c_int64),
        ("default_seconds", c.c_double),
        ("best_seconds", c.c_double),
        ("comparison", _Ratio),
    ]


# Of the tuned time by the default's: the median of paired ratios and its 95% interval; what they say of it.
Ratio = collections.namedtuple("Ratio", "median lower upper is_faster")
# As ingot_tuned_task; comparison is a Ratio, or None.
Task = collections.namedtuple("Task", [name for name, _ in _TunedTask._fields_[1:]])
# Of all tasks, and of the whole model: a Ratio, or None and a note that says why; of the choices of the file: those that
# are taken, as text, and the Ratio of the fastest that were tried.
Tuning = collections.namedtuple("Tuning", "tasks model note choices graph")

FUNCTIONS = {
    "ingot_compile": (_capi.STATUS, [TEXT, c.POINTER(_CompileOptions), c.POINTER(P)]),
    "ingot_compiled_data": (P, [P]),
    "ingot_compiled_size": (c.c_size_t, [P]),
    "ingot_compiled_write": (_capi.STATUS, [P, c.c_int, TEXT]),
    "ingot_compiled_release": (None, [P]),
    "ingot_tuning_run": (_capi.STATUS, [TEXT, c.POINTER(_CompileOptions), c.POINTER(_TuneOptions), c.POINTER(P)]),
    "ingot_tuning_task_count": (c.c_size_t, [P]),
    "ingot_tuning_task": (_capi.STATUS, [P, c.c_size_t, c.POINTER(_TunedTask)]),
    "ingot_tuning_choices": (TEXT, [P]),
    "ingot_tuning_graph": (_Ratio, [P]),
    "ingot_tuning_model": (_Ratio, [P]),
    "ingot_tuning_note": (TEXT, [P]),
    "ingot_tuning_release": (None, [P]),
}
lib = _capi.bind(c.CDLL(os.environ.get("INGOT_COMPILER_LIBRARY") or "libingot-compiler.so.0"), FUNCTIONS)


class Compiled:
    """An executable in memory."""

    def __init__(self, handle):
        self._handle = handle

    @property
    def bytes(self):
        """For ingot.load."""
        return c.string_at(lib.ingot_compiled_data(self._handle.value), lib.ingot_compiled_size(self._handle.value))

    def write(self, path, form="executable"):
        """form: executable, program, object or shared. The file is written whole or not at all."""
        lib.ingot_compiled_write(self._handle.value, FORMS[form], c_path(path))


def compile(model, **options):
    """Compiles model.onnx, or a module as TVMScript. options: target, opt_level, threads (0: all processors), dims,
    input_shapes, tuning_db, cache, log, progress."""
    compiled = Handle(lib.ingot_compiled_release)
    with _Options(**options) as given:
        lib.ingot_compile(c_path(model), c.byref(given.value), c.byref(compiled.value))
    return Compiled(compiled)


def tasks(model, **options):
    """What there is to tune: a list of Task for the one CPU of target (by default this one's). options: as compile's."""
    return _run(model, None, options).tasks


def tune(
    model,
    database,
    *,
    trials=64,
    trials_per_task=256,
    early_stop=64,
    seconds=0,
    search="evolution",
    learn=True,
    seed=1,
    runners=(),
    worker=None,
    kernel_threads=1,
    trial_seconds=10,
    hot=False,
    sizes=(),
    only=None,
    **options,
):
    """Looks for faster schedules and appends what it measures to the file `database`, which compile takes as tuning_db.
    Control-C ends the run after the schedule that is being measured. The arguments are those of ingot_tune_options:
    sizes are texts such as "batch=32:0.5". options: as compile's."""
    given = _TuneOptions(c.sizeof(_TuneOptions), c_path(database), trials, trials_per_task, early_stop, seconds)
    given.search, given.learn, given.seed = c_text(search), learn, seed
    given.runners, given.num_runners = _texts(runners), len(runners)
    given.worker = None if worker is None else c_path(worker)
    given.num_threads, given.trial_seconds, given.hot = kernel_threads, trial_seconds, hot
    given.sizes, given.num_sizes = _texts(sizes), len(sizes)
    given.only = None if only is None else c_text(only)
    return _run(model, given, options)


def _run(model, tune_options, options):
    tuning = Handle(lib.ingot_tuning_release)
    with _Options(**options) as given:
        if tune_options is not None:
            tune_options.should_stop = StopFunction(lambda _user: given.failure is not None)
        lib.ingot_tuning_run(
            c_path(model),
            c.byref(given.value),
            None if tune_options is None else c.byref(tune_options),
            c.byref(tuning.value),
        )
    found = []
    for i in range(lib.ingot_tuning_task_count(tuning.value)):
        task = _TunedTask(c.sizeof(_TunedTask))
        lib.ingot_tuning_task(tuning.value, i, c.byref(task))
        values = [getattr(task, name) for name in Task._fields]
        values = [value.decode() if isinstance(value, bytes) else value for value in values]
        found.append(Task(*values)._replace(comparison=_ratio(task.comparison), is_symbolic=bool(task.is_symbolic)))
    return Tuning(
        found,
        _ratio(lib.ingot_tuning_model(tuning.value)),
        lib.ingot_tuning_note(tuning.value).decode(),
        lib.ingot_tuning_choices(tuning.value).decode(),
        _ratio(lib.ingot_tuning_graph(tuning.value)),
    )


def _ratio(ratio):
    return Ratio(ratio.median, ratio.lower, ratio.upper, bool(ratio.is_faster)) if ratio.median else None


def _range(size):
    return f"{size[0]}..{size[1]}" if isinstance(size, tuple) else str(size)


def _texts(texts):
    return (c.c_char_p * len(texts))(*[c_text(text) for text in texts])


class _Options:
    """Options of a compilation. An exception in a callback, Control-C too, is raised where the call returns."""

    def __init__(
        self,
        *,
        target=None,
        opt_level=2,
        threads=0,
        dims=None,
        input_shapes=None,
        tuning_db=None,
        cache=None,
        log=None,
        progress=None,
    ):
        self.failure = None
        self.value = given = _CompileOptions(c.sizeof(_CompileOptions), target and c_text(target), opt_level, threads)
        ranges = [f"{name}={_range(size)}" for name, size in (dims or {}).items()]
        shapes = [f"{name}={','.join(map(str, shape))}" for name, shape in (input_shapes or {}).items()]
        given.dims, given.num_dims = _texts(ranges), len(ranges)
        given.input_shapes, given.num_input_shapes = _texts(shapes), len(shapes)
        given.tuning_db = None if tuning_db is None else c_path(tuning_db)
        given.cache = None if cache is None else c_path(cache)
        if log is not None:
            given.log = LogFunction(lambda _user, message: self._call(log, message.decode()))
        # Also without the caller's, so that Python sees Control-C between steps.
        given.progress = ProgressFunction(
            lambda _user, step, done, total: self._call(progress or (lambda *_: None), step.decode(), done, total)
        )

    def _call(self, function, *arguments):
        try:
            if self.failure is None:
                function(*arguments)
        except BaseException as failure:
            self.failure = failure

    def __enter__(self):
        # An exception that a signal raises where Python enters a callback would be lost: Control-C is a note here.
        self.handler = None
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self.handler = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def _interrupt(self, *_):
        self.failure = self.failure or KeyboardInterrupt()

    def __exit__(self, *_):
        if self.handler is not None:
            signal.signal(signal.SIGINT, self.handler)
        if self.failure is not None:
            raise self.failure
