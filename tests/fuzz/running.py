"""Compiles a case by vm-compile, runs it under each assignment by vm-run, and says what came of it.

States: ok; refused (vm-compile says that the model uses something unsupported); crash (a signal, or an exit code that
is none of the documented ones); error (a documented error code for a legal model); hang (more than 60 s of the processor,
or much longer than that by the clock: a machine may do other things); wrong (a result further from the oracle's than its
error bound). Everything but ok is a failure."""
import os
import pathlib
import pickle
import re
import resource
import signal
import subprocess

import numpy as np
import onnx

from oracle import apart
from tensors import IN_BYTES, is_float, read_safetensors, write_safetensors

PROCESSOR_SECONDS, PATIENCE = 60, 600
UNSUPPORTED = 8


class Runner:
    """standin: a folder with a vm-run for the device cuda, and the driver that is loaded in place of a GPU's."""

    def __init__(self, bin_dir, directory, target="cpu:x86-64-v3", options=(), standin=None):
        self.bin, self.directory = pathlib.Path(bin_dir).resolve(), pathlib.Path(directory)
        self.options, self.standin = ["--target", target, *options], standin

    @property
    def is_strict(self):
        return "--strict-math" in self.options

    def strict(self):
        return Runner(self.bin, self.directory, self.options[1], [*self.options[2:], "--strict-math"], self.standin)

    def tool(self, name, *arguments):
        folder, environment = self.bin, None
        if self.standin and name == "vm-run":
            folder = pathlib.Path(self.standin).resolve()
            environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), "INGOT_STANDIN_QUIET": "1"}
        limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS + 1))
        ran = subprocess.run([folder / name, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE,
                             errors="replace", env=environment, preexec_fn=limit)
        if ran.returncode == -signal.SIGXCPU:
            raise subprocess.TimeoutExpired(ran.args, PROCESSOR_SECONDS)
        return ran

    def attempt(self, case):
        """(state, detail)"""
        try:
            return self.attempt_within_limits(case)
        except subprocess.TimeoutExpired as error:
            return "hang", f"{pathlib.Path(error.cmd[0]).name}: more than {error.timeout} s"

    def attempt_within_limits(self, case):
        model, executable = self.directory / "model.onnx", self.directory / "model.ingot"
        onnx.save(case.model, model)
        executable.unlink(missing_ok=True)
        made = self.tool("vm-compile", *self.options, model, "-o", executable)
        if made.returncode != 0:
            state = "refused" if made.returncode == UNSUPPORTED else failure_of(made.returncode)
            return state, f"vm-compile exit {made.returncode}: {last_lines(made.stderr)}"
        given, given_file = self.directory / "in.safetensors", []
        results = self.directory / "out.safetensors"
        for number, (inputs, expected) in enumerate(zip(case.inputs, case.expected)):
            if inputs:
                write_safetensors(given, inputs)
                given_file = [given]
            results.unlink(missing_ok=True)
            ran = self.tool("vm-run", executable, *given_file, "--output", f"@{results}")
            if ran.returncode != 0:
                return failure_of(ran.returncode), (f"vm-run exit {ran.returncode}, assignment {number}: "
                                                    f"{last_lines(ran.stderr)}")
            problem = compare(read_safetensors(results), expected)
            if problem:
                return "wrong", f"assignment {number}: {problem}"
        return "ok", ""


def failure_of(exit_code):
    return "error" if 0 < exit_code <= 8 else "crash"


def last_lines(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-3:])[-400:]


def compare(results, expected):
    """None, or what differs first."""
    for name, (want, bound) in expected.items():
        if name not in results:
            return f"output {name} is missing"
        problem = differs(results[name], want, bound)
        if problem:
            return f"output {name}: {problem}"
    return None


def differs(got, want, bound):
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if want.dtype in IN_BYTES and got.dtype == IN_BYTES[want.dtype]:
        got = got.astype(want.dtype)
    if got.dtype != want.dtype:
        return f"dtype {got.dtype}, expected {want.dtype}"
    if not want.size:
        return None
    if not is_float(want.dtype):
        bad = got != want
    else:
        bad = apart(got, want) > np.broadcast_to(bound, want.shape)
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    within = f" within {float(np.broadcast_to(bound, want.shape)[at]):.3g}" if is_float(want.dtype) else ""
    return f"{int(bad.sum())} of {bad.size} elements, first {at}: {got[at]}, expected {want[at]}{within}"


def in_own_process(run, crashed):
    """What run() gives, in a process of its own: an oracle that crashes takes one graph with it, not all. Where it
    crashed, crashed(exit code)."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        result = run()
        with os.fdopen(write, "wb") as file:
            pickle.dump(result, file)
        os._exit(0)  # in any case: at a normal exit ONNX Runtime waits for threads that a fork has left behind
    os.close(write)
    with os.fdopen(read, "rb") as file:
        data = file.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(data) if data else crashed(os.waitstatus_to_exitcode(status))


def what_differs(detail):
    """Of a wrong result: its shape, its dtype or its elements; a smaller case has to differ in the same."""
    return next((word for word in ("missing", "shape", "dtype", "elements") if word in detail), None)


def kind_of(state, detail):
    """What two failures of one kind share: the message without names, numbers and shapes."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "_", detail)
    text = re.sub(r"\(.*?\)|\[.*?\]", "()", text) if state == "wrong" else text
    text = re.sub(r"\bn\d+_(\w+)", r"\1", text)
    text = re.sub(r"\b[a-z]{1,3}\d+\w*|-?\d[\d.e+-]*|\bnan\b|-?\binf\b", "#", text)
    return f"{state}: {text[:160]}"
