"""diffusers: pipelines of random weights, schedulers, training of a denoiser, autoencoders, files."""

import logging
import warnings

import diffusers
import torch
import transformers
from checks import check, gradients, main, seed, train, weights
from diffusers import (
    AutoencoderKL,
    DDIMPipeline,
    DDIMScheduler,
    DDPMPipeline,
    DDPMScheduler,
    DiffusionPipeline,
    StableDiffusionImg2ImgPipeline,
    StableDiffusionPipeline,
    UNet2DConditionModel,
    UNet2DModel,
)
from diffusers.training_utils import EMAModel
from transformers import CLIPTextConfig, CLIPTextModel

warnings.simplefilter("ignore")
diffusers.utils.logging.set_verbosity_error()
diffusers.utils.logging.disable_progress_bar()
transformers.logging.set_verbosity_error()
logging.disable(logging.WARNING)


def small_unet():
    return UNet2DModel(
        sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )  # fmt: skip


@check
def denoiser():
    model = small_unet()
    x, t = torch.randn(2, 3, 16, 16), torch.tensor([3, 500])
    out = model(x, t).sample
    out.square().mean().backward()
    scheduler, noise = DDPMScheduler(num_train_timesteps=100), torch.randn(2, 3, 16, 16)

    def loss_of(model):
        steps = torch.randint(0, 100, (2,))
        return torch.nn.functional.mse_loss(model(scheduler.add_noise(x, noise, steps), steps).sample, noise)

    found = {"out": out, "gradients": gradients(model)}
    average = EMAModel(model.parameters(), decay=0.9)
    losses = train(model, loss_of)
    average.step(model.parameters())
    return {**found, "losses": losses, "average": [float(p.sum()) for p in average.shadow_params[:8]]}


@check
def unconditional_pipelines():
    model = small_unet().eval()
    ddpm = DDPMPipeline(model, DDPMScheduler(num_train_timesteps=20))
    ddpm.set_progress_bar_config(disable=True)
    ddim = DDIMPipeline(model, DDIMScheduler(num_train_timesteps=20))
    ddim.set_progress_bar_config(disable=True)
    generator = torch.Generator().manual_seed(3)
    return {
        "ddpm": ddpm(batch_size=1, generator=generator, num_inference_steps=4, output_type="np").images,
        "ddim": ddim(batch_size=2, generator=generator, num_inference_steps=4, output_type="np").images,
    }


SCHEDULERS = (
    "DDPMScheduler", "DDIMScheduler", "PNDMScheduler", "LMSDiscreteScheduler", "EulerDiscreteScheduler",
    "EulerAncestralDiscreteScheduler", "DPMSolverMultistepScheduler", "DPMSolverSinglestepScheduler",
    "HeunDiscreteScheduler", "UniPCMultistepScheduler", "DEISMultistepScheduler", "KDPM2DiscreteScheduler",
    "FlowMatchEulerDiscreteScheduler", "LCMScheduler", "EDMEulerScheduler",
)  # fmt: skip


@check
def schedulers():
    found = {}
    for name in SCHEDULERS:
        seed()
        scheduler = getattr(diffusers, name)()
        scheduler.set_timesteps(5)
        x = torch.randn(1, 2, 4, 4) * getattr(scheduler, "init_noise_sigma", 1.0)
        generator = torch.Generator().manual_seed(1)
        takes = "generator" in scheduler.step.__code__.co_varnames
        for t in scheduler.timesteps:
            scaled = scheduler.scale_model_input(x, t) if hasattr(scheduler, "scale_model_input") else x
            options = {"generator": generator} if takes else {}
            x = scheduler.step(0.3 * scaled.tanh(), t, x, **options).prev_sample
        found[name] = {"timesteps": scheduler.timesteps, "sample": x}
    return found


class Tokenizer:
    """Words to numbers, as far as a pipeline asks."""

    model_max_length = 8
    added_tokens_encoder = {}

    def __call__(self, text, **options):
        texts = [text] if isinstance(text, str) else text
        rows = [[1, *(3 + sum(word.encode()) % 90 for word in line.split())][:7] + [2] for line in texts]
        ids = torch.tensor([row + [2] * (8 - len(row)) for row in rows])
        return transformers.BatchEncoding({"input_ids": ids, "attention_mask": torch.ones_like(ids)})

    def tokenize(self, text):
        return text.split()

    def batch_decode(self, ids):
        return [str(row) for row in ids.tolist()]


def parts():
    seed()
    unet = UNet2DConditionModel(
        sample_size=16, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=8,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16, attention_head_dim=8,
    )  # fmt: skip
    vae = AutoencoderKL(
        in_channels=3, out_channels=3, latent_channels=4, block_out_channels=(16, 16), norm_num_groups=8, sample_size=32,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip
    text = CLIPTextModel(
        CLIPTextConfig(
            hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, vocab_size=99,
            max_position_embeddings=8, bos_token_id=1, eos_token_id=2, pad_token_id=0,
        )
    )  # fmt: skip
    return dict(unet=unet.eval(), vae=vae.eval(), text_encoder=text.eval())


def pipeline(kind, scheduler):
    made = kind(
        **parts(), tokenizer=None, scheduler=scheduler, safety_checker=None, feature_extractor=None,
        requires_safety_checker=False,
    )  # fmt: skip
    made.tokenizer = Tokenizer()
    made.set_progress_bar_config(disable=True)
    return made


@check
def text_to_image():
    made = pipeline(StableDiffusionPipeline, DDIMScheduler(clip_sample=False))
    options = dict(num_inference_steps=3, height=32, width=32, output_type="np")
    generator = torch.Generator().manual_seed(5)
    image = made("a red square", generator=generator, **options).images
    latents = made("a red square", generator=generator, **{**options, "output_type": "latent"}).images
    batch = made(
        ["a", "b c"], negative_prompt=["x", "y"], guidance_scale=4.0, generator=generator, **options
    ).images
    return {"image": image, "latents": latents, "batch": batch}


@check
def image_to_image():
    made = pipeline(StableDiffusionImg2ImgPipeline, DDIMScheduler(clip_sample=False))
    image = torch.rand(1, 3, 32, 32)
    out = made(
        "a",
        image=image,
        strength=0.7,
        num_inference_steps=4,
        generator=torch.Generator().manual_seed(2),
        output_type="np",
    )
    return {"image": out.images}


@check
def autoencoder():
    vae, x = parts()["vae"], torch.randn(1, 3, 32, 32)
    posterior = vae.encode(x).latent_dist
    loss = (vae.decode(posterior.sample()).sample - x).square().mean() + posterior.kl().mean()
    loss.backward()
    vae.enable_tiling()
    vae.enable_slicing()
    with torch.no_grad():
        sliced = vae.decode(torch.randn(2, 4, 8, 8)).sample
    return {"mean": posterior.mean, "loss": loss, "gradients": gradients(vae), "sliced": sliced}


@check
def files():
    model = small_unet().eval()
    made = DDPMPipeline(model, DDPMScheduler(num_train_timesteps=10))
    made.save_pretrained("pipeline")
    again = DiffusionPipeline.from_pretrained("pipeline")
    half = UNet2DModel.from_pretrained("pipeline/unet", torch_dtype=torch.bfloat16)
    x = torch.randn(1, 3, 16, 16)
    with torch.no_grad():
        same = torch.allclose(model(x, 1).sample, again.unet(x, 1).sample, atol=1e-6)
    return {
        "class": type(again).__name__,
        "same": same,
        "half": str(half.dtype),
        "weights": weights(again.unet),
    }


@check
def newer_models():
    from diffusers import DiTTransformer2DModel, SD3Transformer2DModel, VQModel

    seed()
    dit = DiTTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=8,
        in_channels=4,
        num_layers=2,
        sample_size=8,
        num_embeds_ada_norm=10,
    )
    sd3 = SD3Transformer2DModel(
        sample_size=8, patch_size=2, in_channels=4, num_layers=2, attention_head_dim=8, num_attention_heads=2,
        joint_attention_dim=16, caption_projection_dim=16, pooled_projection_dim=16, out_channels=4,
    )  # fmt: skip
    vq = VQModel(
        block_out_channels=(16,),
        down_block_types=("DownEncoderBlock2D",),
        up_block_types=("UpDecoderBlock2D",),
        norm_num_groups=8,
        latent_channels=3,
    )
    x = torch.randn(2, 4, 8, 8)
    a = dit.eval()(x, timestep=torch.tensor([1, 5]), class_labels=torch.tensor([1, 2])).sample
    b = sd3.eval()(
        x,
        encoder_hidden_states=torch.randn(2, 6, 16),
        pooled_projections=torch.randn(2, 16),
        timestep=torch.tensor([3, 4]),
    ).sample
    c = vq.eval()(torch.randn(1, 3, 16, 16)).sample
    (a.square().mean() + b.square().mean()).backward()
    return {"dit": a, "sd3": b, "vq": c, "gradients": gradients(sd3)}


if __name__ == "__main__":
    main("diffusers", "transformers")
