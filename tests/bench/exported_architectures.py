"""Architectures of torchvision, transformers, timm and torch.nn for exported_models.py: small, with random weights.

An architecture is a function that makes a module and example inputs by name, the names of the free dims of those, by
axis, and the sizes that these dims are given. It imports torch when it is called, so that the table is read without."""
import inspect

EXPORTERS = "classic", "dynamo"
IMAGES = [{"batch": 1, "height": 64, "width": 96}, {"batch": 2, "height": 97, "width": 75},
          {"batch": 1, "height": 224, "width": 224}]
BATCHES = [{"batch": 1}, {"batch": 2}, {"batch": 5}]
TEXTS = [{"batch": 1, "length": 8}, {"batch": 2, "length": 33}, {"batch": 1, "length": 128}]
WIDTH, HEADS, LAYERS, HIDDEN, WORDS = 128, 4, 2, 256, 512
TABLE = {}


class Architecture:
    def __init__(self, make, axes, sizes, exporters=EXPORTERS):
        self.make, self.axes, self.sizes, self.exporters = make, axes, sizes, exporters


def add(name, make, axes, sizes, exporters=EXPORTERS):
    """make gives (module, example inputs by name); axes: names of free dims by input, then axis."""
    assert name not in TABLE, name
    TABLE[name] = Architecture(make, axes, sizes, exporters)


IMAGE_AXES = {"image": {0: "batch", 2: "height", 3: "width"}}
TEXT_AXES = {"ids": {0: "batch", 1: "length"}}
MASKED_AXES = {**TEXT_AXES, "mask": {0: "batch", 1: "length"}}


# ---- torchvision
def images(height, width, batch=2, channels=3):
    import torch
    return torch.randn(batch, channels, height, width)


def first(pick):
    """A module whose result is what pick takes of a model's."""
    import torch

    class Picked(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, image):
            return pick(self.model(image))

    return Picked


def vision(name, height=64, width=64, pick=None, sizes=None, axes=None, exporters=EXPORTERS, label=None, **options):
    def make():
        import torchvision
        model = torchvision.models.get_model(name, weights=None, **options)
        return (first(pick)(model) if pick else model), {"image": images(height, width)}

    add(label or name, make, axes or IMAGE_AXES, sizes or IMAGES, exporters)


for network in ("resnet18", "resnext50_32x4d", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5", "mnasnet0_5",
                "squeezenet1_1", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "regnet_y_400mf",
                "regnet_x_400mf", "convnext_tiny", "wide_resnet50_2"):
    vision(network)
vision("googlenet", pick=None, init_weights=False, aux_logits=False)
vision("inception_v3", 128, 128, init_weights=False, aux_logits=False,
       sizes=[{"batch": 1, "height": 128, "width": 140}, {"batch": 2, "height": 151, "width": 129}])
vision("alexnet", 96, 96, sizes=[{"batch": 1, "height": 96, "width": 96}, {"batch": 2, "height": 129, "width": 100}])
vision("vgg11_bn", sizes=IMAGES[:2])
vision("vit_b_16", axes={"image": {0: "batch"}}, sizes=BATCHES[:2], image_size=64)
vision("swin_t", sizes=[{"batch": 1, "height": 64, "width": 96}, {"batch": 2, "height": 97, "width": 75}])
vision("swin_v2_t", sizes=[{"batch": 1, "height": 64, "width": 96}, {"batch": 2, "height": 97, "width": 75}])
vision("maxvit_t", 224, 224, axes={"image": {0: "batch"}}, sizes=BATCHES[:2])
SEGMENTED = [{"batch": 1, "height": 64, "width": 96}, {"batch": 2, "height": 97, "width": 75},
             {"batch": 1, "height": 160, "width": 160}]
for network in ("fcn_resnet50", "deeplabv3_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"):
    vision(network, pick=lambda result: result["out"], sizes=SEGMENTED, weights_backbone=None)


def detector(name, sizes, **options):
    def make():
        import torch, torchvision

        class Detector(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = torchvision.models.get_model(name, weights=None, weights_backbone=None, **options)

            def forward(self, image):
                found = self.model([image])[0]
                return tuple(found[key] for key in ("boxes", "scores", "labels", "keypoints", "masks") if key in found)

        return Detector(), {"image": torch.rand(3, 96, 128)}

    add(name, make, {"image": {1: "height", 2: "width"}}, sizes, ("classic", ))


PICTURES = [{"height": 96, "width": 128}, {"height": 120, "width": 90}]
SMALL = dict(min_size=128, max_size=160)
detector("fasterrcnn_mobilenet_v3_large_320_fpn", PICTURES, box_score_thresh=0.02)
for network in "fasterrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn":
    detector(network, PICTURES, box_score_thresh=0.02, **SMALL)
detector("keypointrcnn_resnet50_fpn", PICTURES, box_score_thresh=0.5, **SMALL)
for network in "retinanet_resnet50_fpn", "fcos_resnet50_fpn":
    detector(network, PICTURES, score_thresh=0.3, **SMALL)
for network in "ssdlite320_mobilenet_v3_large", "ssd300_vgg16":
    detector(network, PICTURES, score_thresh=0.02)


def video(name, frames, height, width, sizes):
    def make():
        import torch, torchvision
        return torchvision.models.get_model(name, weights=None), {"video": torch.randn(1, 3, frames, height, width)}

    add(name, make, {"video": {0: "batch", 2: "frames", 3: "height", 4: "width"}}, sizes)


CLIPS = [{"batch": 1, "frames": 8, "height": 64, "width": 64}, {"batch": 2, "frames": 9, "height": 48, "width": 71}]
for network in "r3d_18", "mc3_18", "r2plus1d_18", "s3d", "swin3d_t":
    if network == "s3d":
        video(network, 16, 224, 224, [{"batch": 1, "frames": 16, "height": 224, "width": 224}])
    else:
        video(network, 8, 64, 64, CLIPS)


# ---- transformers
def tokens(batch=2, length=12):
    import torch
    return torch.randint(0, 32, (batch, length))


def returning(model, pick, call=None):
    """A module of the named inputs of `call` (a function of the model and these), which gives what `pick` takes."""
    import torch

    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *inputs):
            return pick(call(self.model, *inputs))

    # The names of inputs of torch.onnx's dynamic shapes are those of the signature.
    names = list(inspect.signature(call).parameters)[1:]
    scope = {"call": call, "pick": pick}
    exec(f"def forward(self, {', '.join(names)}):\n    return pick(call(self.model, {', '.join(names)}))", scope)
    Wrapped.forward = scope["forward"]
    return Wrapped()


def made(kind, config, **options):
    """A model of transformers by the name of its class and its configuration's."""
    import transformers
    configuration = getattr(transformers, config)(**options)
    configuration._attn_implementation, configuration._experts_implementation = "eager", "batched_mm"
    return getattr(transformers, kind)(configuration)


def plain(result):
    """The tensors of a result that name what the model says: no caches, no list of hidden states."""
    for key in ("logits", "last_hidden_state", "prediction_logits", "reconstruction", "predicted_depth", "audio_values",
                "text_embeds"):
        value = getattr(result, key, None)
        if value is not None:
            return value
    return result[0]


def encoder(name, kind, config, masked=True, sizes=TEXTS, exporters=EXPORTERS, **options):
    def make():
        import torch
        model = made(kind, config, **options)
        if masked:
            call = lambda model, ids, mask: model(input_ids=ids, attention_mask=mask)
            return returning(model, plain, call), {"ids": tokens(), "mask": torch.ones(2, 12, dtype=torch.int64)}
        return returning(model, plain, lambda model, ids: model(input_ids=ids)), {"ids": tokens()}

    add(name, make, MASKED_AXES if masked else TEXT_AXES, sizes, exporters)


BERT = dict(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=HIDDEN,
            vocab_size=WORDS, max_position_embeddings=256)
encoder("bert", "BertModel", "BertConfig", **BERT)
encoder("roberta", "RobertaForTokenClassification", "RobertaConfig", **BERT)
encoder("electra", "ElectraForSequenceClassification", "ElectraConfig", embedding_size=64, **BERT)
encoder("albert", "AlbertModel", "AlbertConfig", embedding_size=64, **BERT)
encoder("deberta_v2", "DebertaV2Model", "DebertaV2Config", relative_attention=True, position_buckets=16,
        pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm", share_att_key=True, position_biased_input=False, **BERT)
encoder("deberta", "DebertaModel", "DebertaConfig", sizes=TEXTS[:2], relative_attention=True, pos_att_type=["p2c", "c2p"],
        max_relative_positions=64, position_biased_input=False, **BERT)
encoder("mpnet", "MPNetModel", "MPNetConfig", **BERT)
encoder("fnet", "FNetModel", "FNetConfig", masked=False, hidden_size=WIDTH, num_hidden_layers=LAYERS,
        intermediate_size=HIDDEN, vocab_size=WORDS, max_position_embeddings=256)
encoder("longformer", "LongformerModel", "LongformerConfig", attention_window=8,
        sizes=[{"batch": 1, "length": 16}, {"batch": 2, "length": 64}], **BERT)
encoder("big_bird", "BigBirdModel", "BigBirdConfig", attention_type="original_full", **BERT)
encoder("squeezebert", "SqueezeBertModel", "SqueezeBertConfig", embedding_size=WIDTH, **BERT)
encoder("nystromformer", "NystromformerModel", "NystromformerConfig", num_landmarks=8, segment_means_seq_len=16,
        sizes=[{"batch": 1, "length": 16}, {"batch": 3, "length": 16}], **BERT)
encoder("modernbert", "ModernBertModel", "ModernBertConfig", global_attn_every_n_layers=2, local_attention=16,
        pad_token_id=0, **BERT)
encoder("distilbert", "DistilBertForSequenceClassification", "DistilBertConfig", dim=WIDTH, n_layers=LAYERS,
        n_heads=HEADS, hidden_dim=HIDDEN, vocab_size=WORDS, max_position_embeddings=256)
encoder("xlnet", "XLNetModel", "XLNetConfig", d_model=WIDTH, n_layer=LAYERS, n_head=HEADS, d_inner=HIDDEN,
        vocab_size=WORDS)
encoder("funnel", "FunnelModel", "FunnelConfig", d_model=WIDTH, block_sizes=[1, 1], num_decoder_layers=1, n_head=HEADS,
        d_head=32, d_inner=HIDDEN, vocab_size=WORDS)

DECODER = dict(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=HIDDEN,
               vocab_size=WORDS, max_position_embeddings=256, use_cache=False)
GROUPED = dict(num_key_value_heads=2, head_dim=32, **DECODER)


def decoder(name, kind, config, **options):
    encoder(name, kind, config, **options)


decoder("gpt2", "GPT2LMHeadModel", "GPT2Config", n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, vocab_size=WORDS,
        n_positions=256, use_cache=False)
decoder("gpt_neo", "GPTNeoForCausalLM", "GPTNeoConfig", hidden_size=WIDTH, num_layers=2, num_heads=HEADS,
        intermediate_size=HIDDEN, vocab_size=WORDS, max_position_embeddings=256, window_size=16, use_cache=False,
        attention_types=[[["global", "local"], 1]])
decoder("gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXConfig", **DECODER)
decoder("gptj", "GPTJForCausalLM", "GPTJConfig", n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, vocab_size=WORDS,
        n_positions=256, rotary_dim=16, use_cache=False)
decoder("opt", "OPTForCausalLM", "OPTConfig", hidden_size=WIDTH, num_hidden_layers=LAYERS, ffn_dim=HIDDEN,
        num_attention_heads=HEADS, vocab_size=WORDS, max_position_embeddings=256, word_embed_proj_dim=WIDTH,
        use_cache=False)
decoder("bloom", "BloomForCausalLM", "BloomConfig", hidden_size=WIDTH, n_layer=LAYERS, n_head=HEADS, vocab_size=WORDS,
        use_cache=False)
decoder("llama", "LlamaForCausalLM", "LlamaConfig", **GROUPED)
decoder("mistral", "MistralForCausalLM", "MistralConfig", sliding_window=16, **GROUPED)
decoder("qwen2", "Qwen2ForCausalLM", "Qwen2Config", **{k: v for k, v in GROUPED.items() if k != "head_dim"})
decoder("qwen3", "Qwen3ForCausalLM", "Qwen3Config", **GROUPED)
decoder("gemma", "GemmaForCausalLM", "GemmaConfig", **GROUPED)
decoder("gemma2", "Gemma2ForCausalLM", "Gemma2Config", sliding_window=16, **GROUPED)
decoder("phi", "PhiForCausalLM", "PhiConfig", **DECODER)
decoder("phi3", "Phi3ForCausalLM", "Phi3Config", pad_token_id=0, **DECODER)
decoder("falcon", "FalconForCausalLM", "FalconConfig", hidden_size=WIDTH, num_hidden_layers=LAYERS, alibi=False,
        num_attention_heads=HEADS, vocab_size=WORDS, use_cache=False)
decoder("stablelm", "StableLmForCausalLM", "StableLmConfig", **DECODER)
decoder("olmo2", "Olmo2ForCausalLM", "Olmo2Config", **DECODER)
decoder("mixtral", "MixtralForCausalLM", "MixtralConfig", num_local_experts=4, num_experts_per_tok=2, **GROUPED)
decoder("mamba", "MambaForCausalLM", "MambaConfig", hidden_size=WIDTH, num_hidden_layers=LAYERS, vocab_size=WORDS,
        state_size=8, use_cache=False)
decoder("rwkv", "RwkvForCausalLM", "RwkvConfig", hidden_size=WIDTH, num_hidden_layers=LAYERS, vocab_size=WORDS,
        attention_hidden_size=WIDTH, intermediate_size=HIDDEN, context_length=256, use_cache=False)


def with_past(name, kind, config, heads, depth, **options):
    """A decoder that takes keys and values of earlier tokens and gives them with the new ones, as pipelines use it."""
    def make():
        import torch
        from transformers import DynamicCache
        model = made(kind, config, **options)

        def call(model, ids, k0, v0, k1, v1):
            cache = DynamicCache()
            for layer, (keys, values) in enumerate(((k0, v0), (k1, v1))):
                cache.update(keys, values, layer)
            result = model(input_ids=ids, past_key_values=cache, use_cache=True)
            kept = result.past_key_values
            layers = [(layer.keys, layer.values) for layer in kept.layers] if hasattr(kept, "layers") else list(
                zip(kept.key_cache, kept.value_cache))
            return (result.logits, *[tensor for pair in layers for tensor in pair])

        caches = {f"{what}{layer}": torch.randn(2, heads, 5, depth) for layer in range(2) for what in "kv"}
        return returning(model, lambda result: result, call), {"ids": tokens(2, 3), **caches}

    axes = {
        "ids": TEXT_AXES["ids"], **{f"{what}{layer}": {0: "batch", 2: "past"} for layer in range(2) for what in "kv"}
    }
    add(name, make, axes, [{"batch": 1, "length": 1, "past": 7}, {"batch": 2, "length": 4, "past": 33},
                           {"batch": 1, "length": 1, "past": 128}])


with_past("gpt2_past", "GPT2LMHeadModel", "GPT2Config", HEADS, WIDTH // HEADS, n_embd=WIDTH, n_layer=LAYERS,
          n_head=HEADS, vocab_size=WORDS, n_positions=256)
with_past("llama_past", "LlamaForCausalLM", "LlamaConfig", 2, 32, **{**GROUPED, "use_cache": True})
with_past("qwen2_past", "Qwen2ForCausalLM", "Qwen2Config", 2, 32,
          **{k: v for k, v in GROUPED.items() if k not in ("head_dim", "use_cache")})

PAIRED_AXES = {**MASKED_AXES, "target": {0: "batch", 1: "target_length"}}
PAIRS = [{"batch": 1, "length": 8, "target_length": 1}, {"batch": 2, "length": 33, "target_length": 7},
         {"batch": 1, "length": 64, "target_length": 20}]


def translator(name, kind, config, **options):
    def make():
        import torch
        call = lambda model, ids, mask, target: model(input_ids=ids, attention_mask=mask, decoder_input_ids=target,
                                                      use_cache=False)
        return (returning(made(kind, config, **options), plain, call),
                {"ids": tokens(), "mask": torch.ones(2, 12, dtype=torch.int64), "target": tokens(2, 5)})

    add(name, make, PAIRED_AXES, PAIRS)


SEQ2SEQ = dict(d_model=WIDTH, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_attention_heads=HEADS,
               decoder_attention_heads=HEADS, encoder_ffn_dim=HIDDEN, decoder_ffn_dim=HIDDEN, vocab_size=WORDS)
translator("t5", "T5ForConditionalGeneration", "T5Config", d_model=WIDTH, d_kv=32, d_ff=HIDDEN, num_layers=LAYERS,
           num_heads=HEADS, vocab_size=WORDS)
translator("bart", "BartForConditionalGeneration", "BartConfig", max_position_embeddings=256, **SEQ2SEQ)
translator("marian", "MarianMTModel", "MarianConfig", max_position_embeddings=256, pad_token_id=0,
           decoder_start_token_id=0, **SEQ2SEQ)
translator("m2m_100", "M2M100ForConditionalGeneration", "M2M100Config", max_position_embeddings=256, **SEQ2SEQ)


def heard(name, kind, config, shape, axes, sizes, **options):
    def make():
        import torch
        return (returning(made(kind, config, **options), plain,
                          lambda model, sound: model(sound)), {"sound": torch.randn(*shape)})

    add(name, make, {"sound": axes}, sizes)


SOUNDS = [{"batch": 1, "samples": 4000}, {"batch": 2, "samples": 5371}]
WAVES = dict(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=HIDDEN,
             conv_dim=(64, ) * 5, conv_kernel=(10, 3, 3, 2, 2), conv_stride=(5, 2, 2, 2, 2), num_conv_pos_embeddings=16,
             num_conv_pos_embedding_groups=4, vocab_size=32, num_feat_extract_layers=5)
heard("wav2vec2", "Wav2Vec2ForCTC", "Wav2Vec2Config", (2, 4000), {0: "batch", 1: "samples"}, SOUNDS, **WAVES)
heard("hubert", "HubertModel", "HubertConfig", (2, 4000), {0: "batch", 1: "samples"}, SOUNDS, **WAVES)
heard("encodec", "EncodecModel", "EncodecConfig", (1, 1, 4000), {2: "samples"}, [{"samples": 4000}, {"samples": 6210}],
      num_filters=8, hidden_size=32, codebook_size=64, codebook_dim=32, target_bandwidths=[1.5])
heard("audio_spectrogram", "ASTForAudioClassification", "ASTConfig", (2, 128, 64), {0: "batch"}, BATCHES,
      hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=HIDDEN, max_length=128,
      num_mel_bins=64)


def whisper(name, part):
    def make():
        import torch
        model = made("WhisperForConditionalGeneration", "WhisperConfig", num_mel_bins=40, max_source_positions=64,
                     max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
                     **SEQ2SEQ)
        if part == "encoder":
            return (returning(model, plain,
                              lambda model, sound: model.model.encoder(sound)), {"sound": torch.randn(2, 40, 128)})
        call = lambda model, target, hidden: model(decoder_input_ids=target, encoder_outputs=(hidden, ), use_cache=
                                                   False, decoder_attention_mask=torch.ones_like(target))
        return returning(model, plain, call), {"target": tokens(2, 5), "hidden": torch.randn(2, 64, WIDTH)}

    if part == "encoder":
        add(name, make, {"sound": {0: "batch"}}, BATCHES)
    else:
        add(name, make, {"target": {0: "batch", 1: "length"}, "hidden": {0: "batch"}},
            [{"batch": 1, "length": 1}, {"batch": 2, "length": 17}, {"batch": 1, "length": 60}])


whisper("whisper_encoder", "encoder")
whisper("whisper_decoder", "decoder")


def seen(name, kind, config, height=64, width=64, axes=None, sizes=BATCHES, keywords=None, pick=plain, **options):
    def make():
        model = made(kind, config, **options)
        return (returning(model, pick, lambda model, image: model(pixel_values=image, **(keywords or {}))),
                {"image": images(height, width)})

    add(name, make, {"image": axes or {0: "batch"}}, sizes)


FREE = {0: "batch", 2: "height", 3: "width"}
FREE_IMAGES = [{"batch": 1, "height": 64, "width": 96}, {"batch": 2, "height": 128, "width": 64},
               {"batch": 1, "height": 224, "width": 224}]
BLOCKS_OF_64 = [{"batch": 1, "height": 64, "width": 128}, {"batch": 2, "height": 128, "width": 64},
                {"batch": 1, "height": 192, "width": 192}]
VIT = dict(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=HIDDEN,
           image_size=64, patch_size=8)
seen("vit", "ViTForImageClassification", "ViTConfig", **VIT)
seen("vit_free", "ViTModel", "ViTConfig", axes=FREE, sizes=FREE_IMAGES, keywords={"interpolate_pos_encoding": True},
     **VIT)
seen("deit", "DeiTForImageClassificationWithTeacher", "DeiTConfig", **VIT)
seen("beit", "BeitForImageClassification", "BeitConfig", use_relative_position_bias=True, **VIT)
seen("dinov2", "Dinov2Model", "Dinov2Config", axes=FREE, sizes=FREE_IMAGES, **VIT)
seen("yolos", "YolosForObjectDetection", "YolosConfig", num_detection_tokens=10, **{**VIT, "image_size": [64, 64]})
seen("swin", "SwinForImageClassification", "SwinConfig", axes=FREE, sizes=FREE_IMAGES, image_size=64, embed_dim=32,
     depths=[2, 2], num_heads=[2, 4], window_size=4)
seen("swinv2", "Swinv2Model", "Swinv2Config", image_size=64, embed_dim=32, depths=[2, 2], num_heads=[2, 4],
     window_size=4)
seen("convnextv2", "ConvNextV2ForImageClassification", "ConvNextV2Config", axes=FREE, sizes=IMAGES,
     hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 2, 1])
seen("mobilevit", "MobileViTForImageClassification", "MobileViTConfig", axes=FREE, sizes=BLOCKS_OF_64, image_size=64,
     hidden_sizes=[48, 64, 80], neck_hidden_sizes=[16, 32, 48, 64, 64, 80, 96])
seen("mobilevitv2", "MobileViTV2ForImageClassification", "MobileViTV2Config", axes=FREE, sizes=BLOCKS_OF_64,
     image_size=64)
seen("segformer", "SegformerForSemanticSegmentation", "SegformerConfig", axes=FREE, sizes=IMAGES,
     hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 1, 1], decoder_hidden_size=64)
seen("poolformer", "PoolFormerForImageClassification", "PoolFormerConfig", axes=FREE, sizes=FREE_IMAGES,
     hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 1, 1])
seen("levit", "LevitForImageClassification", "LevitConfig", image_size=64, hidden_sizes=[64, 96, 128], key_dim=[16] * 3,
     num_attention_heads=[2, 3, 4], depths=[1, 1, 1])
seen("pvt_v2", "PvtV2ForImageClassification", "PvtV2Config", axes=FREE, sizes=FREE_IMAGES,
     hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 1, 1])
seen("cvt", "CvtForImageClassification", "CvtConfig", axes=FREE, sizes=FREE_IMAGES, embed_dim=[32, 64, 96],
     num_heads=[1, 2, 3], depth=[1, 1, 1])
seen("regnet_hf", "RegNetForImageClassification", "RegNetConfig", axes=FREE, sizes=IMAGES, embedding_size=16,
     hidden_sizes=[32, 64, 96, 128], depths=[1, 1, 2, 1], groups_width=16)
seen("dpt", "DPTForDepthEstimation", "DPTConfig", backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 32, 64, 64],
     fusion_hidden_size=32, **{**VIT, "num_hidden_layers": 4})
seen("glpn", "GLPNForDepthEstimation", "GLPNConfig", axes=FREE, sizes=FREE_IMAGES, hidden_sizes=[16, 32, 64, 64],
     depths=[1, 1, 1, 1], decoder_hidden_size=32)
seen("vit_mae", "ViTMAEModel", "ViTMAEConfig", mask_ratio=0.0, **VIT)


def detr(name):
    def make():
        import transformers
        backbone = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64, 128], depths=[1, 1, 1, 1],
                                             out_features=["stage4"])
        model = made("DetrForObjectDetection", "DetrConfig", use_timm_backbone=False, backbone_config=backbone,
                     use_pretrained_backbone=False, backbone=None, d_model=WIDTH, encoder_layers=LAYERS,
                     decoder_layers=LAYERS, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
                     encoder_ffn_dim=HIDDEN, decoder_ffn_dim=HIDDEN, num_queries=20)
        pick = lambda result: (result.logits, result.pred_boxes)
        return returning(model, pick, lambda model, image: model(pixel_values=image)), {"image": images(96, 128)}

    add(name, make, {"image": FREE},
        [{"batch": 1, "height": 96, "width": 128}, {"batch": 2, "height": 128, "width": 97}])


detr("detr")


def clip(name, kind, config, **options):
    def make():
        import torch
        small = dict(hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=HIDDEN)
        model = made(kind, config, text_config=dict(vocab_size=WORDS, max_position_embeddings=77, eos_token_id=2,
                                                    **small), vision_config=dict(image_size=64, patch_size=16, **small),
                     **options)
        call = lambda model, ids, image, mask: model(input_ids=ids, pixel_values=image, attention_mask=mask)
        pick = lambda result: (result.logits_per_image, result.logits_per_text, result.text_embeds, result.image_embeds)
        return (returning(model, pick, call),
                {"ids": tokens(2, 12), "image": images(64, 64, batch=3), "mask": torch.ones(2, 12, dtype=torch.int64)})

    add(name, make, {"ids": {0: "texts", 1: "length"}, "image": {0: "images"}, "mask": {0: "texts", 1: "length"}},
        [{"texts": 1, "length": 9, "images": 1}, {"texts": 3, "length": 77, "images": 2}])


clip("clip", "CLIPModel", "CLIPConfig", projection_dim=64)
clip("siglip", "SiglipModel", "SiglipConfig")


# ---- timm
def timm_model(name, height=64, width=64, axes=None, sizes=IMAGES, **options):
    def make():
        import timm
        return timm.create_model(name, pretrained=False, **options), {"image": images(height, width)}

    add("timm_" + name, make, {"image": axes or FREE}, sizes)


timm_model("ghostnet_100")
timm_model("mobileone_s0")
timm_model("repvgg_a0")
timm_model("edgenext_xx_small", sizes=FREE_IMAGES)
timm_model("fastvit_t8", sizes=FREE_IMAGES)
timm_model("tf_efficientnet_lite0", sizes=IMAGES)
timm_model("resmlp_12_224", 64, 64, {0: "batch"}, BATCHES[:2], img_size=64)
timm_model("xcit_nano_12_p16_224", axes={0: "batch"}, sizes=BATCHES[:2], img_size=64)
timm_model("coat_tiny", axes={0: "batch"}, sizes=BATCHES[:2], img_size=64)
timm_model("hrnet_w18_small", sizes=FREE_IMAGES)
timm_model("nfnet_l0", sizes=IMAGES)


# ---- Networks of torch.nn alone, as people write them
def unet(name, up):
    def make():
        import torch
        from torch import nn

        def block(inside, outside):
            return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside),
                                 nn.ReLU(True), nn.Conv2d(outside, outside, 3, padding=1, bias=False),
                                 nn.BatchNorm2d(outside), nn.ReLU(True))

        class UNet(nn.Module):
            def __init__(self, widths=(16, 32, 64, 128)):
                super().__init__()
                pairs = list(zip(widths, widths[1:]))
                self.start = block(3, widths[0])
                self.downs = nn.ModuleList(block(a, b) for a, b in pairs)
                self.ups = nn.ModuleList(
                    nn.ConvTranspose2d(b, a, 2, 2) if up == "transpose" else nn.
                    Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(b, a, 1))
                    for a, b in reversed(pairs))
                self.joins = nn.ModuleList(block(2 * a, a) for a, _ in reversed(pairs))
                self.end = nn.Conv2d(widths[0], 2, 1)

            def forward(self, image):
                x = self.start(image)
                kept = []
                for down in self.downs:
                    kept.append(x)
                    x = down(nn.functional.max_pool2d(x, 2))
                for rise, join in zip(self.ups, self.joins):
                    x, skip = rise(x), kept.pop()
                    missing = [skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]]
                    x = nn.functional.pad(
                        x,
                        [missing[1] // 2, missing[1] - missing[1] // 2, missing[0] // 2, missing[0] - missing[0] // 2])
                    x = join(torch.cat([skip, x], 1))
                return self.end(x)

        return UNet(), {"image": images(64, 96)}

    add(name, make, IMAGE_AXES, IMAGES)


unet("unet_transpose", "transpose")
unet("unet_bilinear", "bilinear")


def tagger(name, kind):
    def make():
        import torch
        from torch import nn

        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding = nn.Embedding(WORDS, 64)
                self.layers = getattr(nn, kind)(64, 96, 2, batch_first=True, bidirectional=True)
                self.head = nn.Linear(192, 17)

            def forward(self, ids):
                return self.head(self.layers(self.embedding(ids))[0]).log_softmax(-1)

        return Tagger(), {"ids": tokens()}

    add(name, make, TEXT_AXES, TEXTS)


tagger("lstm_tagger", "LSTM")
tagger("gru_tagger", "GRU")


def temporal(name):
    """Dilated convolutions over a sound, with gates and weight norms."""
    def make():
        import torch
        from torch import nn

        class Temporal(nn.Module):
            def __init__(self, width=32):
                super().__init__()
                self.start = nn.Conv1d(1, width, 7, stride=2, padding=3)
                norm = nn.utils.parametrizations.weight_norm
                self.gates = nn.ModuleList(
                    norm(nn.Conv1d(width, 2 * width, 3, padding=2**i, dilation=2**i)) for i in range(4))
                self.end = nn.ConvTranspose1d(width, 1, 8, stride=2, padding=3)

            def forward(self, sound):
                x = self.start(sound)
                for gate in self.gates:
                    x = x + nn.functional.glu(gate(x), 1)
                return torch.tanh(self.end(x))

        return Temporal(), {"sound": torch.randn(2, 1, 400)}

    add(name, make, {"sound": {0: "batch", 2: "samples"}},
        [{"batch": 1, "samples": 400}, {"batch": 2, "samples": 1031}, {"batch": 1, "samples": 16000}])


temporal("temporal")
