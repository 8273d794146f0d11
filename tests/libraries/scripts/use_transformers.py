"""transformers: BERT, GPT-2, Llama, T5, ViT and a few more, of random weights: forward, training, generation, files."""

import torch
import transformers
from checks import check, gradients, main, seed, train, weights
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    CLIPConfig,
    CLIPModel,
    GenerationConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTForImageClassification,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

transformers.logging.set_verbosity_error()

SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=99)
TOKENS = dict(bos_token_id=1, eos_token_id=2, pad_token_id=0)


def ids(*shape, least=3, most=99):
    return torch.randint(least, most, shape)


def saved(model, *inputs, **named):
    """Save the model, load it again with its class, and say if it computes the same."""
    model.eval()
    model.save_pretrained("saved")
    again = type(model).from_pretrained("saved").eval()
    with torch.no_grad():
        a, b = model(*inputs, **named)[0], again(*inputs, **named)[0]
    same = {k: torch.equal(v, again.state_dict()[k]) for k, v in model.state_dict().items()}
    return {"saved": torch.equal(a, b), "all weights": all(same.values()), "count": len(same)}


@check
def bert():
    model = BertForMaskedLM(BertConfig(**SMALL)).eval()
    x = ids(2, 11)
    mask = torch.ones_like(x)
    mask[1, 7:] = 0
    labels = torch.where(torch.rand(2, 11) < 0.3, x, -100)
    found = model(x, attention_mask=mask, labels=labels, output_hidden_states=True)
    found.loss.backward()
    eager = BertForMaskedLM(BertConfig(**SMALL, attn_implementation="eager")).eval()
    attentions = eager(x, attention_mask=mask, output_attentions=True).attentions
    return {
        "loss": found.loss,
        "logits": found.logits,
        "hidden": found.hidden_states[1],
        "attention": attentions[0],
        "gradients": gradients(model),
        **saved(model, x, attention_mask=mask),
    }


@check
def bert_training():
    model = BertForSequenceClassification(BertConfig(**SMALL, num_labels=3)).train()
    x, y = ids(4, 9), torch.tensor([0, 1, 2, 1])
    losses = train(model, lambda model: model(x, labels=y).loss)
    return {"losses": losses, "weights": weights(model)}


@check
def gpt2():
    model = GPT2LMHeadModel(
        GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=64, **TOKENS)
    ).eval()
    x = ids(2, 7)
    found = model(x, labels=x)
    found.loss.backward()
    new = dict(max_new_tokens=8, attention_mask=torch.ones_like(x))
    return {
        "loss": found.loss,
        "logits": found.logits,
        "gradients": gradients(model),
        "greedy": model.generate(x, do_sample=False, **new),
        "beams": model.generate(x, do_sample=False, num_beams=3, **new),
        "penalty": model.generate(x, do_sample=False, repetition_penalty=1.3, no_repeat_ngram_size=2, **new),
        **saved(model, x),
    }


@check
def gpt2_sampling():
    model = GPT2LMHeadModel(
        GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=64, **TOKENS)
    ).eval()
    x = ids(2, 7)
    new = dict(max_new_tokens=8, attention_mask=torch.ones_like(x), do_sample=True)
    scores = model.generate(x, **new, return_dict_in_generate=True, output_scores=True)
    return {
        "plain": model.generate(x, **new),
        "top k": model.generate(x, top_k=5, temperature=0.7, **new),
        "top p": model.generate(x, top_p=0.8, top_k=0, **new),
        "min p": model.generate(x, min_p=0.1, num_return_sequences=2, **new),
        "sequences": scores.sequences,
        "scores": scores.scores[-1],
    }


@check
def gpt2_training():
    model = GPT2LMHeadModel(
        GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=64, **TOKENS)
    ).train()
    x = ids(3, 12)
    losses = train(model, lambda model: model(x, labels=x).loss)
    model.gradient_checkpointing_enable()
    more = train(model, lambda model: model(x, labels=x).loss, steps=2)
    return {"losses": losses, "checkpointed": more, "weights": weights(model)}


@check
def llama():
    config = LlamaConfig(**SMALL, num_key_value_heads=2, max_position_embeddings=64, **TOKENS)
    model = LlamaForCausalLM(config).eval()
    x = ids(2, 9)
    mask = torch.ones_like(x)
    mask[0, :3] = 0
    found = model(x, attention_mask=mask, labels=x)
    found.loss.backward()
    first = model(x[:, :5], use_cache=True)
    second = model(x[:, 5:], past_key_values=first.past_key_values)
    return {
        "loss": found.loss,
        "logits": found.logits,
        "gradients": gradients(model),
        "cached": second.logits,
        "greedy": model.generate(x, attention_mask=mask, max_new_tokens=8, do_sample=False),
        "static": model.generate(
            x, attention_mask=mask, max_new_tokens=6, do_sample=False, cache_implementation="static",
            disable_compile=True,
        ),
        "sampled": model.generate(
            x, attention_mask=mask, generation_config=GenerationConfig(max_new_tokens=6, do_sample=True, **TOKENS)
        ),
        **saved(model, x, attention_mask=mask),
    }  # fmt: skip


@check
def llama_training():
    config = LlamaConfig(**SMALL, num_key_value_heads=2, max_position_embeddings=64, num_labels=2, **TOKENS)
    model = LlamaForSequenceClassification(config).train()
    x, y = ids(4, 8), torch.tensor([0, 1, 1, 0])
    losses = train(model, lambda model: model(x, labels=y).loss)
    half = LlamaForCausalLM(config).to(torch.bfloat16).eval()
    seed(1)
    x = ids(1, 6)
    with torch.no_grad():
        logits = half(x).logits
    scaled = LlamaForCausalLM(
        LlamaConfig(**SMALL, rope_scaling={"rope_type": "dynamic", "factor": 2.0})
    ).eval()
    return {
        "losses": losses,
        "weights": weights(model),
        "bfloat16": str(logits.dtype),
        "scaled": scaled(x).logits,
    }


@check
def t5():
    config = T5Config(
        vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    model = T5ForConditionalGeneration(config).eval()
    x, y = ids(2, 8), ids(2, 5)
    found = model(x, labels=y)
    found.loss.backward()
    return {
        "loss": found.loss,
        "logits": found.logits,
        "gradients": gradients(model),
        "greedy": model.generate(x, max_new_tokens=7, do_sample=False),
        "beams": model.generate(x, max_new_tokens=7, num_beams=2, num_return_sequences=2, do_sample=False),
        **saved(model, x, labels=y),
    }


@check
def vit():
    config = ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=16, patch_size=4,
        num_labels=3,
    )  # fmt: skip
    model = ViTForImageClassification(config).eval()
    x, y = torch.randn(2, 3, 16, 16), torch.tensor([0, 2])
    found = model(x, labels=y)
    found.loss.backward()
    larger = model(torch.randn(1, 3, 24, 24), interpolate_pos_encoding=True).logits
    files = saved(model, x)
    losses = train(model.train(), lambda model: model(x, labels=y).loss)
    return {"loss": found.loss, "logits": found.logits, "larger": larger, "losses": losses, **files}


@check
def whisper():
    config = WhisperConfig(
        vocab_size=99, num_mel_bins=8, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, d_model=16, max_source_positions=15,
        max_target_positions=20, decoder_start_token_id=1, **TOKENS,
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config).eval()
    x, y = torch.randn(2, 8, 30), ids(2, 5)
    found = model(x, labels=y)
    found.loss.backward()
    return {
        "loss": found.loss,
        "logits": found.logits,
        "gradients": gradients(model),
        **saved(model, x, labels=y),
    }


@check
def clip():
    part = dict(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, projection_dim=8
    )
    config = CLIPConfig(
        text_config=dict(part, vocab_size=99, max_position_embeddings=16, eos_token_id=98),
        vision_config=dict(part, image_size=16, patch_size=8),
        projection_dim=8,
    )
    model = CLIPModel(config).eval()
    found = model(input_ids=ids(2, 6), pixel_values=torch.randn(3, 3, 16, 16))
    found.logits_per_image.sum().backward()
    return {"image": found.logits_per_image, "text": found.text_embeds, "gradients": gradients(model)}


@check
def more_language_models():
    found = {}
    common = dict(SMALL, num_key_value_heads=2, max_position_embeddings=64, **TOKENS)
    models = {
        "mistral": (MistralForCausalLM, MistralConfig(**common, sliding_window=4)),
        "qwen2": (Qwen2ForCausalLM, Qwen2Config(**common)),
        "mixtral": (MixtralForCausalLM, MixtralConfig(**common, num_local_experts=4)),
        "mamba": (MambaForCausalLM, MambaConfig(hidden_size=16, num_hidden_layers=2, vocab_size=99, state_size=4, **TOKENS)),
    }  # fmt: skip
    for name, (kind, config) in models.items():
        seed()
        model = kind(config).eval()
        x = ids(1, 7)
        out = model(x, labels=x)
        out.loss.backward()
        found[f"{name} loss"] = out.loss
        found[f"{name} gradients"] = gradients(model)
        found[f"{name} tokens"] = model.generate(x, max_new_tokens=5, do_sample=False)
    return found


@check
def files():
    config = LlamaConfig(**SMALL, num_key_value_heads=2, max_position_embeddings=64, **TOKENS)
    model = LlamaForCausalLM(config)
    model.save_pretrained("sharded", max_shard_size="20KB")
    again = AutoModelForCausalLM.from_pretrained("sharded")
    half = AutoModelForCausalLM.from_pretrained("sharded", dtype=torch.bfloat16)
    base = AutoModel.from_pretrained("sharded")
    torch.save(model.state_dict(), "pytorch_model.bin")
    state = torch.load("pytorch_model.bin", weights_only=True)
    model.resize_token_embeddings(105)
    return {
        "class": type(again).__name__,
        "weights": weights(again),
        "half": str(half.dtype),
        "base": type(base).__name__,
        "state": len(state),
        "resized": list(model.get_input_embeddings().weight.shape),
        "parameters": model.num_parameters(),
        "memory": model.get_memory_footprint(),
    }


if __name__ == "__main__":
    main("transformers", "tokenizers", "safetensors")
