"""peft: LoRA and its relatives on a transformer and on a plain module, merged, saved and loaded."""

import warnings

import peft
import torch
import transformers
from checks import check, main, seed, train, weights
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

warnings.simplefilter("ignore")
transformers.logging.set_verbosity_error()


def llama():
    return LlamaForCausalLM(
        LlamaConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, intermediate_size=64,
            vocab_size=99, max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0,
        )
    )  # fmt: skip


def adapted(config):
    """A few steps of training of the adapter, then what it has become."""
    seed()
    model = get_peft_model(llama(), config)
    model.train()
    x = torch.randint(3, 99, (2, 8))
    losses = train(model, lambda model: model(input_ids=x, labels=x).loss, lr=1e-2)
    model.eval()
    with torch.no_grad():
        logits = model(input_ids=x).logits
    return {"losses": losses, "logits": logits, "trainable": list(model.get_nb_trainable_parameters())}


@check
def lora():
    return adapted(LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))


@check
def lora_dropout_and_bias():
    config = LoraConfig(
        r=4,
        lora_dropout=0.2,
        bias="lora_only",
        target_modules="all-linear",
        use_rslora=True,
        task_type="CAUSAL_LM",
    )
    return adapted(config)


@check
def dora():
    return adapted(
        LoraConfig(r=4, use_dora=True, target_modules=["q_proj", "down_proj"], task_type="CAUSAL_LM")
    )


@check
def pissa_and_orthogonal():
    values = {}
    for start in ("gaussian", "orthogonal", "olora"):
        config = LoraConfig(r=4, init_lora_weights=start, target_modules=["q_proj"], task_type="CAUSAL_LM")
        values.update({f"{start} {key}": value for key, value in adapted(config).items()})
    return values


@check
def other_methods():
    choices = {
        "ia3": peft.IA3Config(task_type="CAUSAL_LM", target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"]),
        "prompt": peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
        "prefix": peft.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
        "p-tuning": peft.PromptEncoderConfig(task_type="CAUSAL_LM", num_virtual_tokens=3, encoder_hidden_size=8),
        "adalora": peft.AdaLoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], init_r=4, target_r=2, total_step=20),
        "loha": peft.LoHaConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], r=2),
        "lokr": peft.LoKrConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], r=2),
        "oft": peft.OFTConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], r=4, oft_block_size=0),
        "boft": peft.BOFTConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], boft_block_size=4),
        "vera": peft.VeraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], r=4),
        "hra": peft.HRAConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], r=4),
        "ln": peft.LNTuningConfig(task_type="CAUSAL_LM", target_modules=["input_layernorm"]),
        "fourier": peft.FourierFTConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], n_frequency=20),
        "vblora": peft.VBLoRAConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], r=2, num_vectors=8, vector_length=8, topk=2),
    }  # fmt: skip
    values = {}
    for name, config in choices.items():
        values[name] = adapted(config)
    return values


@check
def merging():
    seed()
    model = get_peft_model(llama(), LoraConfig(r=4, target_modules=["q_proj"], init_lora_weights=False))
    model.add_adapter("second", LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False))
    x = torch.randint(3, 99, (1, 6))
    model.eval()
    with torch.no_grad():
        first = model(input_ids=x).logits
        model.set_adapter("second")
        second = model(input_ids=x).logits
        model.add_weighted_adapter(["default", "second"], [0.5, 0.5], "both", combination_type="cat")
        model.set_adapter("both")
        both = model(input_ids=x).logits
        with model.disable_adapter():
            none = model(input_ids=x).logits
        model.set_adapter("default")
        merged = model.merge_and_unload()
        after = merged(input_ids=x).logits
    return {
        "first": first,
        "second": second,
        "both": both,
        "none": none,
        "merged": after,
        "close": torch.allclose(first, after, atol=1e-5),
        "class": type(merged).__name__,
    }


@check
def files():
    seed()
    base = llama()
    model = get_peft_model(
        base,
        LoraConfig(
            r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False, modules_to_save=["lm_head"]
        ),
    )
    model.save_pretrained("adapter")
    x = torch.randint(3, 99, (1, 6))
    seed()
    again = PeftModel.from_pretrained(llama(), "adapter").eval()
    model.eval()
    with torch.no_grad():
        same = torch.equal(model(input_ids=x).logits, again(input_ids=x).logits)
    return {
        "same": same,
        "state": sorted(get_peft_model_state_dict(model)),
        "weights": weights(again),
        "generated": again.generate(input_ids=x, max_new_tokens=5, do_sample=False),
    }


@check
def plain_modules():
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = nn.Conv2d(3, 4, 3)
            self.embedding = nn.Embedding(10, 4)
            self.linear = nn.Linear(4, 2)

        def forward(self, x, i):
            return self.linear(self.convolution(x).mean((2, 3)) + self.embedding(i))

    model = get_peft_model(Network(), LoraConfig(r=2, target_modules=["convolution", "embedding", "linear"]))
    x, i, y = torch.randn(4, 3, 6, 6), torch.arange(4), torch.tensor([0, 1, 0, 1])
    losses = train(model, lambda model: nn.functional.cross_entropy(model(x, i), y), lr=1e-2)
    gpt = get_peft_model(
        GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=50)),
        LoraConfig(r=2, fan_in_fan_out=True),
    )
    tokens = torch.randint(0, 50, (2, 5))
    more = train(gpt, lambda model: model(input_ids=tokens, labels=tokens).loss, lr=1e-2)
    return {"losses": losses, "weights": weights(model), "gpt": more}


if __name__ == "__main__":
    main("peft", "transformers")
