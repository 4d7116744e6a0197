"""Compile times, and what the cache of kernels makes of them: for each model the processor time of one thread without a
cache, the elapsed time of all threads, and then with a cache: cold, warm (the same model again), and similar (what the
models before it left). The sizes are those of the folder. Files with and without the cache must be equal.

usage: compile_times.py BIN_DIR [MODEL.onnx | NAME]...    NAME: one of tests/acceptance/networks.py; default: all of
them. Needs numpy and onnx for these."""
import filecmp, json, os, pathlib, resource, subprocess, sys, tempfile, time

ACCEPTANCE = pathlib.Path(__file__).resolve().parent.parent / "acceptance"
sys.path.insert(0, str(ACCEPTANCE))
from networks import NETWORKS

BIN = pathlib.Path(sys.argv[1]).resolve()


def compile(model, out, *options):
    """Elapsed and processor seconds, and the figures of the cache."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [BIN / "vm-compile", model, "-o", out, "--json", "-", *options]
    result = subprocess.run(command, capture_output=True, text=True)
    elapsed, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode != 0:
        sys.exit(f"{model}: {result.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return elapsed, cpu, json.loads(result.stdout).get("cache")


def main():
    names = sys.argv[2:] or list(NETWORKS)
    print(f"{os.cpu_count()} processors; seconds: processor time of one thread, elapsed with all threads, and processor\n"
          "time of one thread with a cold cache, a warm one, and one that the models above it filled")
    print(f"{'model':20} {'cpu':>7} {'elapsed':>8} {'cold':>7} {'warm':>7} {'similar':>8}   objects, found of the "
          "similar, KiB of the cold cache")
    with tempfile.TemporaryDirectory(prefix="ingot-compile-times-") as directory:
        folder = pathlib.Path(directory)
        for name in names:
            model = pathlib.Path(name)
            if name in NETWORKS:
                model = folder / f"{name}.onnx"
                NETWORKS[name](str(model))
            without, out = folder / "without.ingot", folder / "out.ingot"
            one, cache = ("--threads", "1"), ("--cache", folder / f"cache-{model.stem}")
            _, cpu, _ = compile(model, without, "--no-cache", *one)
            elapsed, _, _ = compile(model, without, "--no-cache")
            row = []
            for options in cache, cache, ("--cache", folder / "shared"):
                _, seconds, figures = compile(model, out, *options, *one)
                row.append((seconds, figures))
                assert filecmp.cmp(without, out, shallow=False), f"{name}: the cache changes the file"
            size = sum(path.stat().st_size for path in cache[1].iterdir()) / 1024
            (cold, kernels), (warm, _), (similar, found) = row
            print(f"{model.stem:20} {cpu:7.2f} {elapsed:8.2f} {cold:7.2f} {warm:7.2f} {similar:8.2f}   "
                  f"{kernels['misses']:4} {found['hits']:4} {size:8.0f}", flush=True)
            if name in NETWORKS:
                model.unlink()


main()
