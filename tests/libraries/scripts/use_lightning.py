"""lightning: a Trainer over a LightningModule, callbacks, checkpoints, and Fabric."""

import logging
import warnings
from pathlib import Path

import lightning
import torch
from checks import check, main, weights
from lightning.fabric import Fabric
from lightning.pytorch.callbacks import (
    Callback,
    EarlyStopping,
    GradientAccumulationScheduler,
    LearningRateMonitor,
    ModelCheckpoint,
    StochasticWeightAveraging,
)
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
logging.getLogger("lightning.fabric").setLevel(logging.ERROR)


class Classifier(lightning.LightningModule):
    def __init__(self, width=8, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.network = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 3))
        self.example_input_array = torch.zeros(1, 4)

    def forward(self, x):
        return self.network(x)

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log_dict(
            {
                "val_loss": nn.functional.cross_entropy(self(x), y),
                "val_acc": (self(x).argmax(1) == y).float().mean(),
            }
        )

    def test_step(self, batch, index):
        x, y = batch
        self.log("test_loss", nn.functional.cross_entropy(self(x), y))

    def predict_step(self, batch, index):
        return self(batch[0]).softmax(1)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        return [optimizer], [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)]


class Data(lightning.LightningDataModule):
    def setup(self, stage):
        generator = torch.Generator().manual_seed(5)
        x = torch.randn(48, 4, generator=generator)
        y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
        self.parts = TensorDataset(x[:32], y[:32]), TensorDataset(x[32:], y[32:])

    def train_dataloader(self):
        return DataLoader(self.parts[0], batch_size=8, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.parts[1], batch_size=8)

    test_dataloader = predict_dataloader = val_dataloader


def trainer(**changes):
    quiet = dict(
        accelerator="cpu", devices=1, enable_progress_bar=False, logger=False, enable_checkpointing=False,
        enable_model_summary=False, max_epochs=2, default_root_dir=".",
    )  # fmt: skip
    return lightning.Trainer(**{**quiet, **changes})


def metrics(trainer):
    return {name: value for name, value in sorted(trainer.callback_metrics.items())}


@check
def fit():
    lightning.seed_everything(3)
    model, run, data = Classifier(), trainer(), Data()
    run.fit(model, data)
    values = metrics(run)
    tested = run.test(model, data, verbose=False)
    return {
        "metrics": values,
        "tested": tested,
        "predicted": torch.cat(run.predict(model, data)),
        "weights": weights(model),
        "steps": run.global_step,
    }


@check
def checkpoints():
    lightning.seed_everything(3)
    model, data = Classifier(width=6), Data()
    saver = ModelCheckpoint(
        dirpath="checkpoints", monitor="val_loss", save_top_k=1, save_last=True, filename="best"
    )
    run = trainer(callbacks=[saver], enable_checkpointing=True, max_epochs=3)
    run.fit(model, data)
    again = Classifier.load_from_checkpoint(saver.best_model_path)
    content = torch.load("checkpoints/last.ckpt", weights_only=False)
    more = trainer(max_epochs=4)
    more.fit(Classifier(width=6), data, ckpt_path="checkpoints/last.ckpt", weights_only=False)
    return {
        "files": sorted(path.name for path in Path("checkpoints").iterdir()),
        "best": saver.best_model_score,
        "width": again.hparams.width,
        "weights": weights(again),
        "content": sorted(content),
        "epoch": content["epoch"],
        "continued": [more.current_epoch, more.global_step],
        "metrics": metrics(more),
    }


@check
def callbacks():
    lightning.seed_everything(3)

    class Count(Callback):
        seen = []

        def on_train_batch_end(self, trainer, module, outputs, batch, index):
            self.seen.append(outputs["loss"].item())

    count = Count()
    run = trainer(
        callbacks=[
            count, EarlyStopping("val_loss", patience=1), GradientAccumulationScheduler({0: 2}),
            LearningRateMonitor(), StochasticWeightAveraging(1e-2, swa_epoch_start=1),
        ],
        logger=CSVLogger("logs"), max_epochs=4, gradient_clip_val=0.5, log_every_n_steps=1,
    )  # fmt: skip
    model = Classifier()
    run.fit(model, Data())
    summary = lightning.pytorch.utilities.model_summary.summarize(model, max_depth=2)
    return {"losses": count.seen, "metrics": metrics(run), "weights": weights(model), "summary": str(summary)}


@check
def options():
    lightning.seed_everything(3)
    model = Classifier()
    run = trainer(precision="bf16-mixed", max_steps=3, limit_val_batches=1, val_check_interval=2)
    run.fit(model, Data())
    double = Classifier()
    trainer(precision="64-true", max_epochs=1).fit(double, Data())
    fast = trainer(fast_dev_run=True)
    fast.fit(Classifier(), Data())
    return {
        "steps": run.global_step,
        "dtype": str(next(double.parameters()).dtype),
        "double": weights(double),
        "fast": fast.global_step,
        "overfit": _overfit(),
    }


def _overfit():
    lightning.seed_everything(4)
    model = Classifier()
    run = trainer(overfit_batches=1, detect_anomaly=True, max_epochs=3)
    run.fit(model, Data())
    return metrics(run)


@check
def manual_optimization():
    class Pair(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False
            self.a, self.b = nn.Linear(4, 2), nn.Linear(4, 2)

        def training_step(self, batch, index):
            first, second = self.optimizers()
            for optimizer, layer in ((first, self.a), (second, self.b)):
                self.toggle_optimizer(optimizer)
                loss = layer(batch[0]).square().mean()
                optimizer.zero_grad()
                self.manual_backward(loss)
                self.clip_gradients(optimizer, gradient_clip_val=0.1, gradient_clip_algorithm="norm")
                optimizer.step()
                self.untoggle_optimizer(optimizer)

        def configure_optimizers(self):
            return torch.optim.SGD(self.a.parameters(), 0.1), torch.optim.Adam(self.b.parameters(), 0.1)

    lightning.seed_everything(3)
    model = Pair()
    trainer(limit_val_batches=0).fit(model, Data())
    return {"weights": weights(model)}


@check
def fabric():
    lightning.seed_everything(3)
    fabric = Fabric(accelerator="cpu", devices=1)
    fabric.launch()
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model, optimizer = fabric.setup(model, optimizer)
    loader = fabric.setup_dataloaders(
        DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), batch_size=4)
    )
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        fabric.backward(loss)
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()
        losses.append(loss.item())
    state = {"model": model, "optimizer": optimizer, "step": 4}
    fabric.save("fabric.ckpt", state)
    state["step"] = 0
    fabric.load("fabric.ckpt", state)
    return {"losses": losses, "step": state["step"], "device": str(fabric.device), "weights": weights(model)}


if __name__ == "__main__":
    main("lightning", "torchmetrics")
