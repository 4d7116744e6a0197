"""Models that exporters write: torch.onnx, classic and dynamo, of architectures of torchvision, transformers and timm
with random weights and free dims, compiled and beside ONNX Runtime at several sizes of every free dim.

usage: exported_models.py export FOLDER [NAME ...]           with torch, torchvision, transformers, timm, onnxscript
       exported_models.py check BIN_DIR FOLDER [NAME ...]    with numpy, onnxruntime
NAME is an architecture of exported_architectures.py, or ARCHITECTURE.EXPORTER. Both go on where they stopped: what was
exported, and what was right (FOLDER/results.jsonl), is not done again without --again. --untimed leaves times out.

Weights are drawn so that activations keep their scale and attention is not uniform."""
import multiprocessing
import os
import pathlib
import sys

from exported_architectures import TABLE

OPSETS = {"classic": 17, "dynamo": 18}
TIMEOUT = 900  # seconds for one export


# ---- Exports
def settle(module, inputs):
    """Draws weights so that activations keep their scale, and lets normalisations of batches learn what comes."""
    import torch
    torch.manual_seed(0)
    normalisations = [m for m in module.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    with torch.no_grad():
        for name, weight in module.named_parameters():
            if not weight.dtype.is_floating_point:
                continue
            if weight.ndim >= 2:
                fan_in = weight[0].numel() if weight.ndim > 2 or "embed" not in name else weight.shape[-1]
                weight.normal_(0, max(fan_in, 1)**-0.5)
            elif name.endswith("bias"):
                weight.add_(torch.randn_like(weight) * 0.05)
            elif name.endswith("weight"):
                weight.mul_(1 + 0.1 * torch.randn_like(weight))
        module.eval()
        for m in normalisations:
            m.train().momentum = None
        try:
            if normalisations:
                module(*inputs.values())
        except ValueError:  # one pixel of one image has no variance
            pass
        for m in normalisations:  # what hardly varies here would be made too large elsewhere
            m.running_var.clamp_(min=0.2 * float(m.running_var.mean()))
    module.eval()


def export(name, exporter, path):
    import torch
    torch.manual_seed(0)
    architecture = TABLE[name]
    module, inputs = architecture.make()
    settle(module, inputs)
    named = dict(input_names=list(inputs), opset_version=OPSETS[exporter])
    with torch.no_grad():
        if exporter == "classic":
            torch.onnx.export(module, tuple(inputs.values()), str(path), dynamo=False, dynamic_axes=architecture.axes,
                              do_constant_folding=True, **named)
        else:
            shapes = tuple({axis: dim for axis, dim in architecture.axes.get(name, {}).items()} for name in inputs)
            try:
                torch.onnx.export(module, tuple(inputs.values()), str(path), dynamo=True, dynamic_shapes=shapes,
                                  external_data=False, **named)
            except Exception:  # a dim that the module fixes: leave the choice to torch
                automatic = tuple({axis: torch.export.Dim.AUTO for axis in axes} for axes in shapes)
                torch.onnx.export(module, tuple(inputs.values()), str(path), dynamo=True, dynamic_shapes=automatic,
                                  external_data=False, **named)


def wanted(names):
    """(architecture, exporter) of each name, in their order, or of all."""
    for asked in names or TABLE:
        name, _, only = asked.partition(".")
        for exporter in TABLE[name].exporters:
            if only in ("", exporter):
                yield name, exporter


def apart(function, *arguments, log, timeout=TIMEOUT):
    """Calls in a process of its own: one that dies or hangs takes no other along. Gives the last line that it said, or
    None where all went well."""
    def child():
        with log.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        function(*arguments)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(timeout)
    if process.is_alive():
        process.kill()
        process.join()
        log.write_text(f"took more than {timeout} s")
    if process.exitcode == 0:
        log.unlink(missing_ok=True)
        return None
    return (log.read_text(errors="replace").strip().splitlines() or ["died"])[-1][:150]


def export_all(folder, names, again):
    import timm, torch, torchvision, transformers  # once, not in every process
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    for name, exporter in wanted(names):
        path, log, partial = (folder / f"{name}.{exporter}.{end}" for end in ("onnx", "log", "partial"))
        if not (path.exists() or log.exists()) or again:
            said = apart(export, name, exporter, partial, log=log)
            if said is None:
                partial.replace(path)
            print(f"{'FAIL' if said else 'ok  '} {name}.{exporter} {said or ''}", flush=True)


# ---- Checks
def calls_of(architecture):
    """Feeds by a label: the free dims of a file may have names of the exporter's own."""
    import model_check as check

    def calls(peer):
        made = {}
        for info in peer.get_inputs():
            names = architecture.axes.get(info.name, {})
            free = {
                dim: names[axis] for axis, dim in enumerate(check.dims_of(info))
                if isinstance(dim, str) and axis in names
            }
            made.update(free)
        feeds = {}
        for sizes in architecture.sizes:
            label = ",".join(f"{name}={size}" for name, size in sizes.items())
            feeds[label] = check.draw(peer, {dim: sizes[name] for dim, name in made.items()})
        return feeds

    return calls


def check_all(bin_dir, folder, names, again, timed):
    import model_check as check
    rows = ((f"{name}.{exporter}", calls_of(TABLE[name])) for name, exporter in wanted(names))
    check.check_files(bin_dir, folder, "results.jsonl", rows, again, timed)


def main(usage, verb, make, check):
    """VERB FOLDER [NAME ...] or check BIN_DIR FOLDER [NAME ...], with flags anywhere."""
    flags = [argument for argument in sys.argv[1:] if argument.startswith("--")]
    mode, *words = [argument for argument in sys.argv[1:] if not argument.startswith("--")] or ["help"]
    if mode == verb and words:
        return make(pathlib.Path(words[0]), words[1:], "--again" in flags)
    if mode == "check" and len(words) > 1:
        bin_dir, folder = pathlib.Path(words[0]).resolve(), pathlib.Path(words[1])
        return check(bin_dir, folder, words[2:], "--again" in flags, "--untimed" not in flags)
    print(usage)
    return 1


if __name__ == "__main__":
    sys.exit(main(__doc__, "export", export_all, check_all))
