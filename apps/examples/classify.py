"""The classification walk: a model with raw scores and a picture in, the five best classes and the time of a run out.

    classify.py MODEL.onnx IMAGE --labels labels.txt --bin BIN_DIR --output NAME [--input NAME] [--number 10]

It resizes and crops the picture and normalises it as ImageNet's networks expect, compiles the model at -O3 with softmax
on its output and the labels in the file, runs it by set_input, run and get_output, and prints what the VM's tools and a
packed program print too: class='tabby' with probability=0.621104. Needs NumPy and Pillow; the module `ingot` is this
repository's apps/python or an installed wheel."""

import argparse, pathlib, statistics, subprocess, sys, time

import numpy as np
from PIL import Image

MEAN, DEVIATION = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


def preprocess(path, size):
    """float32[1, 3, size, size]: the short side to size * 8 / 7, the middle cut out, per-channel normalisation."""
    image = Image.open(path).convert("RGB")
    scale = size * 8 / 7 / min(image.size)
    image = image.resize([max(size, round(extent * scale)) for extent in image.size], Image.Resampling.BILINEAR)
    left, top = (image.width - size) // 2, (image.height - size) // 2
    pixels = np.asarray(image.crop((left, top, left + size, top + size)), np.float32) / 255
    return np.ascontiguousarray(((pixels - MEAN) / DEVIATION).transpose(2, 0, 1)[None])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("image")
    parser.add_argument("--labels", required=True)
    parser.add_argument("--bin", required=True, help="the folder of vm-compile")
    parser.add_argument("--input", default="data")
    parser.add_argument("--output", required=True, help="the model's output of scores")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--number", type=int, default=10, help="runs per measurement")
    parser.add_argument("--repeat", type=int, default=10, help="measurements")
    parser.add_argument("--save", help="keep the preprocessed picture here (.npy)")
    parser.add_argument("--executable", default="classifier.ingot", help="where the compiled model goes")
    options = parser.parse_args()

    import ingot

    picture = preprocess(options.image, options.size)
    if options.save:
        np.save(options.save, picture)
    subprocess.run(
        [
            pathlib.Path(options.bin) / "vm-compile",
            options.model,
            "-O3",
            "--softmax",
            options.output,
            "--labels",
            options.labels,
            "-o",
            options.executable,
            "--progress=never",
        ],
        check=True,
    )

    module = ingot.load(options.executable)
    module.set_input(options.input, picture)
    module.run()
    scores = np.asarray(module.get_output(0))[0]

    times = []
    for _ in range(options.repeat):
        start = time.perf_counter()
        for _ in range(options.number):
            module.run()
        times.append((time.perf_counter() - start) * 1e3 / options.number)
    print(
        {
            "mean": statistics.mean(times),
            "median": statistics.median(times),
            "std": statistics.stdev(times) if len(times) > 1 else 0.0,
        }
    )

    labels = module.metadata["labels"].splitlines()
    for index in np.argsort(-scores, kind="stable")[:5]:
        print(f"class='{labels[index]}' with probability={scores[index]:f}")


if __name__ == "__main__":
    sys.exit(main())
