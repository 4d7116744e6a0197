"""Legal models on which Ingot once was wrong, crashed, hung or refused: each gives what ONNX Runtime gives.

usage: legal_models.py BIN_DIR [NAME ...]    exits 77 (skipped) without numpy, onnx and onnxruntime

A recipe is a function without parameters, of a module in MODULES, that makes a model and inputs; its name says what it
is about. Recipes that are still wrong stand in KNOWN_WRONG. That list only shrinks: the test fails when a recipe of it
works, and when another does not."""
import inspect
import pathlib
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

import legal_numbers
import legal_recipes
import legal_resizes

onnxruntime.set_default_logger_severity(4)
TIMEOUT = 60
FAILED_CALL, BAD_INPUT = 1, 3
MODULES = (legal_recipes, legal_numbers, legal_resizes)

# What is still wrong, by the recipe's name: one line each.
KNOWN_WRONG = []


def recipes():
    """By name."""
    found = {}
    for module in MODULES:
        for name, value in vars(module).items():
            is_own = inspect.isfunction(value) and value.__module__ == module.__name__
            if is_own and not inspect.signature(value).parameters:
                assert name not in found, f"two recipes are called {name}"
                found[name] = value
    return found


def expected(recipe):
    """The recipe's result, or ONNX Runtime's first output; None where it refuses."""
    if recipe.want is not None:
        return recipe.want
    try:
        return onnxruntime.InferenceSession(recipe.model.SerializeToString()).run(None, recipe.inputs)[0]
    except Exception:
        return None


def outcome(bin_dir, recipe, directory):
    """(state, detail): same, wrong, refused, error, crash or hang"""
    model, executable = directory / "recipe.onnx", directory / "recipe.ingot"
    onnx.save(recipe.model, model)
    np.savez(directory / "in.npz", **recipe.inputs)
    want = expected(recipe)
    for command in ([bin_dir / "vm-compile", model, "-o", executable],
                    [bin_dir / "vm-run", executable, directory / "in.npz", "--output", f"@{directory / 'out.npz'}"]):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, errors="replace")
        except subprocess.TimeoutExpired:
            return "hang", f"{command[0].name}: more than {TIMEOUT} s"
        if done.returncode != 0:
            text = f"{command[0].name} exit {done.returncode}: {done.stderr.strip()[-300:]}"
            if recipe.refusal and done.returncode == BAD_INPUT and recipe.refusal in text:
                return "same", text
            if want is None and done.returncode in (FAILED_CALL, BAD_INPUT, 8):
                return "same", text
            state = "crash" if done.returncode < 0 or done.returncode > 8 else "error"
            return "refused" if command[0].name == "vm-compile" and done.returncode == 8 else state, text
    got = np.load(directory / "out.npz")[recipe.output]
    if want is None or recipe.refusal:
        return "wrong", f"gave {got.shape}, expected a refusal"
    if want.dtype.kind == "f":
        tolerance = {2: 4e-3, 4: 1e-3, 8: 1e-12}[want.dtype.itemsize]
    else:
        tolerance = 0
    if got.shape == want.shape and got.dtype == want.dtype and np.allclose(got, want, tolerance, tolerance,
                                                                           equal_nan=True):
        return "same", ""
    return "wrong", f"{got.shape} {got.ravel()[:4]}, expected {want.shape} {want.ravel()[:4]}"


def main():
    bin_dir, chosen = pathlib.Path(sys.argv[1]).resolve(), set(sys.argv[2:])
    unknown = sorted((chosen | set(KNOWN_WRONG)) - set(recipes()))
    assert not unknown, f"no such recipe: {', '.join(unknown)}"
    failures = []
    for name, recipe in recipes().items():
        if chosen and name not in chosen:
            continue
        with tempfile.TemporaryDirectory() as directory:
            begin = time.perf_counter()
            state, detail = outcome(bin_dir, recipe(), pathlib.Path(directory))
            seconds = time.perf_counter() - begin
        known, same = name in KNOWN_WRONG, state == "same"
        if known == same:
            failures.append(name)
        note = (" (works: take it out of KNOWN_WRONG)" if same else " (known)") if known else ""
        print(f"{state:8}{name}{note}  {seconds:.1f} s  {detail if state != 'same' else ''}", flush=True)
    print(f"{len(failures)} failures, {len(KNOWN_WRONG)} recipes known to be wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
