"""All generators, and the operators that no generator makes, with the reason. `check_coverage` compares both with the
list of operators that vm-compile imports."""
import generate_contrib
import generate_control
import generate_converted
import generate_elementwise
import generate_gates
import generate_layers
import generate_linear
import generate_ml
import generate_movement
import generate_packed
import generate_preview
import generate_quantised
import generate_reduce
import generate_vision
from registry import GENERATORS

MODULES = (generate_contrib, generate_control, generate_converted, generate_elementwise, generate_gates, generate_layers,
           generate_linear, generate_ml, generate_movement, generate_packed, generate_preview, generate_quantised,
           generate_reduce, generate_vision)

# Operators that vm-compile imports and no generator makes: why.
RANDOM = "its numbers are drawn (tests/acceptance/random_numbers.py)"
STRINGS = "graphs have no tensors of strings (tests/acceptance/strings.py)"
NOT_GENERATED = {**dict.fromkeys(["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
                                  "RandomUniformLike"], RANDOM),
                 "StringNormalizer": STRINGS,
                 "ai.onnx.ml.CategoryMapper": STRINGS,
                 "ai.onnx.ml.TreeEnsemble": "of ai.onnx.ml 5, which lacks other operators (tests/acceptance/ml_ops.py)",
                 "ai.onnx.ml.ZipMap": "its result is no tensor in ONNX Runtime (tests/acceptance/ml_ops.py)"}

ON_GPUS = "ONNX Runtime has it on GPUs alone (tests/acceptance/microsoft_layers.py, microsoft_parts.py)"
NOT_GENERATED |= dict.fromkeys(["com.microsoft." + name for name in (
    "BiasAdd", "BiasDropout", "BiasSoftmax", "BiasSplitGelu", "FusedMatMulActivation", "GatedRelativePositionBias",
    "GemmFastGelu", "GroupNorm", "RelativePositionBias", "SkipGroupNorm", "SwiGLU", "TorchEmbedding")], ON_GPUS)

# Attributes that no generator gives: why.
POWERS = "of casts to powers of two alone (tests/acceptance/packed_elements.py)"
REFUSED = "refused by name (tests/acceptance/microsoft_ops.py)"
SHARED = {"do_rotary": REFUSED, "past_present_share_buffer": REFUSED}
EXPERTS = {"use_sparse_mixer": REFUSED, "swiglu_limit_after_activation": REFUSED}
FORMS_OF_CONVOLUTIONS = ("input_channel_offset", "input_channels", "state_channels_last", "state_length",
                         "state_update_capacity", "state_window")
BY_HAND = "in tests/acceptance/microsoft_ops.py or microsoft_parts.py"
FORMS_OF_GROUPS = ("causal", "k_norm_epsilon", "k_quant_type", "kv_cache_bit_width", "q_norm_epsilon",
                   "qk_norm_epsilon", "qk_output", "v_quant_type")
ATTRIBUTES_NOT_GENERATED = {
    "Cast": {"round_mode": POWERS}, "CastLike": {"round_mode": POWERS},
    "Constant": {"value_string": STRINGS, "value_strings": STRINGS,
                 "sparse_value": "ONNX Runtime takes none"},
    "TfIdfVectorizer": {"pool_strings": STRINGS},
    "Range": {"stash_type": "of float16 and bfloat16 alone"},
    "Optional": {"type": "an optional value without an element is no tensor of vm-run"},
    "com.microsoft.Attention": SHARED | {"rotary_embedding_dim": REFUSED},
    "com.microsoft.CausalConvWithState": dict.fromkeys(FORMS_OF_CONVOLUTIONS, REFUSED),
    "com.microsoft.GroupQueryAttention": {"sliding_window_cache": REFUSED} | dict.fromkeys(FORMS_OF_GROUPS, BY_HAND),
    "com.microsoft.LinearAttention": {"state_window": REFUSED},
    "com.microsoft.MRotaryEmbedding": {"is_packed_batching": REFUSED},
    "com.microsoft.MatMulNBits": {"weight_prepacked": REFUSED},
    "com.microsoft.MoE": EXPERTS,
    "com.microsoft.QMoE": EXPERTS | {"quant_type": REFUSED, "weights_prepacked": REFUSED} | dict.fromkeys(
        [f"fc{i}_expert_weight_bits" for i in (1, 2, 3)], "as expert_weight_bits"),
    "com.microsoft.QAttention": SHARED,
    "com.microsoft.RotaryEmbedding": {"is_packed_batching": REFUSED},
    **{f"ai.onnx.ml.{name}": {attribute: STRINGS if "string" in attribute else "refused by name"
                              for attribute in attributes.split()}
       for name, attributes in {
        "Imputer": "imputed_value_int64s replaced_value_int64",
        "LinearClassifier": "classlabels_strings",
        "LabelEncoder": "classes_strings keys_strings values_strings default_string",
        "OneHotEncoder": "cats_strings",
        "SVMClassifier": "classlabels_strings",
        "TreeEnsembleClassifier": "classlabels_strings base_values_as_tensor class_weights_as_tensor "
                                  "nodes_hitrates_as_tensor nodes_values_as_tensor",
        "TreeEnsembleRegressor": "base_values_as_tensor nodes_hitrates_as_tensor nodes_values_as_tensor "
                                 "target_weights_as_tensor"}.items()},
    "QuantizeLinear": {"precision": "float32 is the one precision of what is drawn"},
}


def chosen(only=(), without=()):
    """[(generator, weight)] of those that make one of the operators `only` (all where empty) and none of `without`."""
    rows = [(f, weight) for f, names, weight in GENERATORS
            if (not only or set(names) & set(only)) and not set(names) & set(without)]
    if not rows:
        raise SystemExit(f"no generator makes {', '.join(only)}")
    return rows


def generated():
    return {name for _, names, _ in GENERATORS for name in names}
