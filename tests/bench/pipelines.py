"""What ONNX Runtime's own tools make of exported models: its optimiser at every level, its fusions for transformers,
its quantisers; each file compiled and beside ONNX Runtime at several sizes of every free dim.

usage: pipelines.py make FOLDER [NAME ...]            with onnx, onnxruntime and, for some forms, torch
       pipelines.py check BIN_DIR FOLDER [NAME ...]   with numpy, onnxruntime
FOLDER is exported_models.py's, whose exports these are made of; NAME is a model, or MODEL.FORM. Flags and resuming are
as there; results stand in FOLDER/pipelines.jsonl.

What is right: model_check.py. tests/acceptance/quantised_networks.py judges a quantised file node by node."""
import pathlib
import sys
import tempfile

from exported_architectures import HEADS, TABLE, WIDTH
from exported_models import apart, calls_of, main

FORMS, MODELS = {}, {}


def form(make):
    FORMS[make.__name__] = make
    return make


# ---- Forms: functions of (source path, target path, name of the model)
def level(name, **_):
    def make(source, target, model):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{name}")
        options.optimized_model_filepath = str(target)
        onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])

    FORMS[f"ort_{name.lower()}"] = make


for name in "BASIC", "EXTENDED", "ALL":
    level(name)


def prepared(source, folder):
    from onnxruntime.quantization import quant_pre_process
    path = pathlib.Path(folder, "prepared.onnx")
    quant_pre_process(str(source), str(path), skip_symbolic_shape=True)
    return path


def dynamic(name, **options):
    def make(source, target, model):
        from onnxruntime.quantization import QuantType, quantize_dynamic
        given = {key: getattr(QuantType, value) if key == "weight_type" else value for key, value in options.items()}
        with tempfile.TemporaryDirectory() as folder:
            quantize_dynamic(str(prepared(source, folder)), str(target), **given)

    FORMS[name] = make


dynamic("dynamic", weight_type="QUInt8")
dynamic("dynamic_i8", weight_type="QInt8")
dynamic("dynamic_channel", weight_type="QInt8", per_channel=True, reduce_range=True)


class Calls:
    """Calibration by the calls of an architecture."""
    def __init__(self, source, model):
        import model_check as check
        self.feeds = list(calls_of(TABLE[model])(check.session(source)).values())[:2]

    def get_next(self):
        return self.feeds.pop() if self.feeds else None


def static(name, kind="QDQ", activations="QUInt8", weights="QInt8", **options):
    def make(source, target, model):
        from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
        with tempfile.TemporaryDirectory() as folder:
            path = prepared(source, folder)
            quantize_static(str(path), str(target), Calls(path, model), quant_format=getattr(QuantFormat, kind),
                            activation_type=getattr(QuantType, activations), weight_type=getattr(QuantType,
                                                                                                 weights), **options)

    FORMS[name] = make


static("qdq")
static("qdq_u8", weights="QUInt8")
static("qdq_channel", per_channel=True)
static("qdq_i8", activations="QInt8", per_channel=True,
       extra_options={"ActivationSymmetric": True, "WeightSymmetric": True})
static("qdq_i16", activations="QUInt16", weights="QInt8")
static("qdq_int4", weights="QInt4")
static("qdq_pairs", extra_options={"DedicatedQDQPair": True, "AddQDQPairToWeight": True})
static("qop", kind="QOperator", weights="QUInt8")
static("qop_i8", kind="QOperator", activations="QInt8", weights="QInt8", per_channel=True)


def blocks(name, bits=4, block=32, symmetric=True, level=None, kind="QOperator", operators=("MatMul", )):
    def make(source, target, model):
        import onnx
        from onnxruntime.quantization import QuantFormat
        from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
        config = DefaultWeightOnlyQuantConfig(block_size=block, is_symmetric=symmetric, accuracy_level=level, bits=bits,
                                              quant_format=getattr(QuantFormat, kind), op_types_to_quantize=operators)
        quantizer = MatMulNBitsQuantizer(onnx.load(str(source)), algo_config=config)
        quantizer.process()
        quantizer.model.save_model_to_file(str(target))

    FORMS[name] = make


blocks("int4")
blocks("int4_zeros", symmetric=False, block=16)
blocks("int4_level4", level=4, block=64)
blocks("int4_gather", operators=("MatMul", "Gather"))
blocks("int4_qdq", kind="QDQ")
blocks("int8_blocks", bits=8, block=128, symmetric=False)


@form
def bnb4(source, target, model):
    import onnx
    from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer
    quantizer = MatMulBnb4Quantizer(onnx.load(str(source)), quant_type=MatMulBnb4Quantizer.NF4, block_size=32)
    quantizer.process()
    quantizer.model.save_model_to_file(str(target))


@form
def float16(source, target, model):
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16
    onnx.save(convert_float_to_float16(onnx.load(str(source)), keep_io_types=True), str(target))


@form
def pure_float16(source, target, model):
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16
    onnx.save(convert_float_to_float16(onnx.load(str(source)), keep_io_types=False), str(target))


def fused(name, then=None, opt_level=None, **fusions):
    """onnxruntime.transformers.optimizer, and at times a quantiser behind it, as optimum's pipelines have it."""
    def make(source, target, model):
        from onnxruntime.transformers.fusion_options import FusionOptions
        from onnxruntime.transformers.optimizer import optimize_model
        kind = MODELS[model].kind
        options = FusionOptions(kind)
        for key, value in fusions.items():
            setattr(options, key, value)
        optimised = optimize_model(str(source), model_type=kind, num_heads=HEADS, hidden_size=WIDTH,
                                   opt_level=opt_level, optimization_options=options)
        if then == "float16":
            optimised.convert_float_to_float16(keep_io_types=True)
        if then in (None, "float16"):
            optimised.save_model_to_file(str(target))
            return
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "optimised.onnx")
            optimised.save_model_to_file(str(path))
            if then == "dynamic":
                import onnx
                from onnxruntime.quantization import QuantType, quantize_dynamic
                quantize_dynamic(str(path), str(target), weight_type=QuantType.QInt8,
                                 extra_options={"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT})
            else:
                FORMS[then](path, target, model)

    FORMS[name] = make


fused("fused")
fused("fused_python", opt_level=0)
fused("fused_heads", use_multi_head_attention=True)
fused("fused_level2", opt_level=2, enable_gelu_approximation=True)
fused("fused_dynamic", then="dynamic")
fused("fused_int4", then="int4")
fused("fused_float16", then="float16")


# ---- Which forms of which models
class Made:
    """kind: the name that onnxruntime.transformers has for such models."""
    def __init__(self, forms, kind="bert", exporters=("classic", )):
        self.forms, self.kind, self.exporters = forms, kind, exporters


LEVELS = ["ort_basic", "ort_extended", "ort_all"]
DYNAMIC = ["dynamic", "dynamic_i8", "dynamic_channel"]
STATIC = ["qdq", "qdq_u8", "qdq_channel", "qdq_i8", "qdq_i16", "qdq_pairs", "qop", "qop_i8"]
BLOCKS = ["int4", "int4_zeros", "int4_level4", "int4_gather", "int4_qdq", "int8_blocks", "bnb4"]
FUSED = ["fused", "fused_python", "fused_heads", "fused_level2", "fused_dynamic", "fused_int4", "fused_float16"]
HALVES = ["float16", "pure_float16"]
BOTH = ("classic", "dynamo")
for model, kind in {"bert": "bert", "gpt2": "gpt2", "vit": "vit"}.items():
    MODELS[model] = Made(LEVELS + DYNAMIC + STATIC + BLOCKS + FUSED + HALVES, kind, BOTH)
for model, kind in {
        "gpt2_past": "gpt2", "distilbert": "bert", "roberta": "bert", "electra": "bert", "deit": "vit", "t5": "t5",
        "bart": "bart", "whisper_encoder": "bart", "whisper_decoder": "bart", "clip": "clip", "swin": "swin",
        "phi": "phi", "qwen3": "qwen3", "gpt_neox": "gpt_neox"
}.items():
    MODELS[model] = Made(["ort_extended", "dynamic_i8", "qdq", "int4_level4", "fused", "fused_dynamic", "fused_int4"],
                         kind)
for model in "llama_past", "qwen2_past", "mistral", "gemma2", "mixtral":
    MODELS[model] = Made(["ort_extended", "ort_all", "dynamic", "pure_float16"] + BLOCKS)
for model in ("resnet18", "mobilenet_v2", "unet_transpose", "unet_bilinear"):
    MODELS[model] = Made(LEVELS + ["dynamic", "dynamic_channel"] + STATIC + HALVES, exporters=BOTH)
for model in ("efficientnet_b0", "mobilenet_v3_small", "shufflenet_v2_x0_5", "densenet121", "convnextv2", "segformer",
              "mobilevit", "lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large", "squeezenet1_1", "googlenet",
              "ssdlite320_mobilenet_v3_large", "r3d_18", "temporal", "wav2vec2"):
    MODELS[model] = Made(["ort_extended", "ort_all", "dynamic", "qdq", "qdq_i8", "qop", "float16"])
for model in "lstm_tagger", "gru_tagger":
    MODELS[model] = Made(LEVELS + DYNAMIC + ["qdq", "qop", "float16"])


def wanted(names):
    """(model, exporter, form) of what is asked for."""
    for model, made in MODELS.items():
        for exporter in made.exporters:
            for name in made.forms:
                label = f"{model}.{exporter}.{name}"
                if not names or any(asked in (name, f"{model}.{name}") or f"{label}.".startswith(asked + ".")
                                    for asked in names):
                    yield model, exporter, name


def make_all(folder, names, again):
    for model, exporter, name in wanted(names):
        source = folder / f"{model}.{exporter}.onnx"
        path, log, partial = (folder / f"{model}.{exporter}.{name}.{end}" for end in ("onnx", "log", "partial"))
        if source.exists() and (not (path.exists() or log.exists()) or again):
            said = apart(FORMS[name], source, partial, model, log=log)
            if said is None:
                partial.replace(path)
            print(f"{'FAIL' if said else 'ok  '} {path.stem} {said or ''}", flush=True)


def check_all(bin_dir, folder, names, again, timed):
    import model_check as check
    rows = ((f"{model}.{exporter}.{name}", calls_of(TABLE[model])) for model, exporter, name in wanted(names))
    check.check_files(bin_dir, folder, "pipelines.jsonl", rows, again, timed)


if __name__ == "__main__":
    sys.exit(main(__doc__, "make", make_all, check_all))
