"""transformers' Trainer with accelerate, and accelerate on its own."""

import json
from pathlib import Path

import accelerate
import torch
import transformers
from accelerate import Accelerator
from accelerate.utils import set_seed
from checks import check, main, seed, weights
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

transformers.logging.set_verbosity_error()


class Sentences(Dataset):
    def __init__(self, count=24):
        self.x = torch.randint(3, 99, (count, 8))
        self.y = torch.randint(0, 2, (count,))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"input_ids": self.x[i], "labels": self.y[i]}


def bert():
    return BertForSequenceClassification(
        BertConfig(
            hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, vocab_size=99
        )
    )


def arguments(**changes):
    common = dict(
        output_dir="out", per_device_train_batch_size=4, num_train_epochs=2, logging_steps=2, report_to=[], use_cpu=True,
        learning_rate=1e-3, seed=7, disable_tqdm=True, save_strategy="no",
    )  # fmt: skip
    return TrainingArguments(**{**common, **changes})


def history(trainer):
    """The log, without what depends on the machine's speed."""
    keys = ("loss", "grad_norm", "learning_rate", "epoch", "eval_loss", "eval_accuracy", "train_loss", "step")
    return [[[key, float(entry[key])] for key in keys if key in entry] for entry in trainer.state.log_history]


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


@check
def trainer():
    model, data = bert(), Sentences()
    trainer = Trainer(
        model=model, args=arguments(eval_strategy="epoch"), train_dataset=data, eval_dataset=Sentences(8),
        compute_metrics=accuracy,
    )  # fmt: skip
    done = trainer.train()
    predictions = trainer.predict(Sentences(6))
    return {
        "steps": done.global_step,
        "loss": done.training_loss,
        "history": history(trainer),
        "evaluation": trainer.evaluate()["eval_loss"],
        "predictions": predictions.predictions,
        "weights": weights(model),
    }


@check
def options():
    class Count(TrainerCallback):
        steps = 0

        def on_step_end(self, args, state, control, **others):
            self.steps += 1

    count = Count()
    trainer = Trainer(
        model=bert(), train_dataset=Sentences(), callbacks=[count],
        args=arguments(
            gradient_accumulation_steps=2, lr_scheduler_type="cosine", warmup_steps=2, weight_decay=0.1,
            max_grad_norm=0.5, label_smoothing_factor=0.1, max_steps=5, gradient_checkpointing=True,
        ),
    )  # fmt: skip
    trainer.train()
    return {"steps": count.steps, "history": history(trainer), "weights": weights(trainer.model)}


@check
def bfloat16():
    trainer = Trainer(model=bert(), train_dataset=Sentences(), args=arguments(bf16=True, max_steps=3))
    done = trainer.train()
    return {"steps": done.global_step, "finite": bool(torch.isfinite(torch.tensor(done.training_loss)))}


@check
def resume():
    data = Sentences()
    seed(1)
    whole = Trainer(
        model=bert(),
        train_dataset=data,
        args=arguments(output_dir="a", save_strategy="steps", save_steps=4, max_steps=8),
    )
    whole.train()
    seed(1)
    rest = Trainer(model=bert(), train_dataset=data, args=arguments(output_dir="a", max_steps=8))
    rest.train(resume_from_checkpoint="a/checkpoint-4")
    state = json.loads(Path("a/checkpoint-8/trainer_state.json").read_text())
    return {
        "files": sorted(path.name for path in Path("a/checkpoint-4").iterdir()),
        "same": weights(whole.model) == weights(rest.model),
        "weights": weights(rest.model),
        "step": state["global_step"],
    }


@check
def accelerator():
    set_seed(3)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randn(32, 1)), batch_size=4, shuffle=True)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    losses = []
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.mse_loss(model(x), y)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses.append(accelerator.gather(loss).item())
    accelerator.save_state("state")
    before = weights(model)
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    accelerator.load_state("state")
    return {
        "losses": losses,
        "rate": schedule.get_last_lr(),
        "processes": accelerator.num_processes,
        "main": accelerator.is_main_process,
        "device": str(accelerator.device),
        "type": str(accelerator.distributed_type),
        "restored": before == weights(accelerator.unwrap_model(model)),
        "weights": before,
        "files": sorted(path.name for path in Path("state").iterdir()),
    }


@check
def large_models():
    with accelerate.init_empty_weights():
        empty = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 8))
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 8))
    accelerate.Accelerator().save_model(model, "large")
    device_map = accelerate.infer_auto_device_map(empty, max_memory={"cpu": 10**6})
    loaded = accelerate.load_checkpoint_and_dispatch(empty, "large", device_map={"": "cpu"})
    offloaded = accelerate.cpu_offload(
        nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 8)), execution_device="cpu"
    )
    x = torch.randn(2, 64)
    return {
        "meta": str(next(accelerate_meta().parameters()).device),
        "map": {str(k): str(v) for k, v in device_map.items()},
        "same": torch.equal(loaded(x), model(x)),
        "out": loaded(x),
        "offloaded": offloaded(x),
        "sizes": accelerate.utils.compute_module_sizes(model)[""],
    }


def accelerate_meta():
    with accelerate.init_empty_weights():
        return nn.Linear(3, 3)


if __name__ == "__main__":
    main("transformers", "accelerate")
