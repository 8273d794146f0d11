"""What programs look for in a module that neither weft nor PyTorch has there, and what to use instead."""

# The module in which programs look -> the module that has the names -> the names. "" is the root.
_ELSEWHERE = {
    "": {
        "nn": "BCELoss BCEWithLogitsLoss BatchNorm1d BatchNorm2d Conv1d Conv2d Conv3d CrossEntropyLoss DataParallel Dropout Embedding Flatten "
        "GELU GRU L1Loss LSTM LayerNorm LeakyReLU Linear MSELoss MaxPool2d Module ModuleDict ModuleList MultiheadAttention NLLLoss "
        "Parameter RNN ReLU Sequential Sigmoid SiLU Softmax Tanh Transformer init",
        "nn.functional": "adaptive_avg_pool2d binary_cross_entropy cross_entropy elu gelu interpolate l1_loss leaky_relu linear mse_loss nll_loss "
        "normalize one_hot pad relu6 scaled_dot_product_attention silu smooth_l1_loss softplus unfold",
        "optim": "Adagrad Adam AdamW LBFGS Optimizer RMSprop SGD lr_scheduler",
        "utils.data": "ConcatDataset DataLoader Dataset Sampler Subset TensorDataset random_split",
        "autograd": "Function Variable backward grad gradcheck",
        "distributions": "Bernoulli Categorical Distribution",
        "utils": "checkpoint tensorboard",
        "distributed": "all_reduce barrier init_process_group",
    },
    "nn": {
        "nn.functional": "binary_cross_entropy conv2d cross_entropy dropout gelu interpolate leaky_relu linear log_softmax max_pool2d mse_loss "
        "normalize one_hot pad relu sigmoid silu softmax tanh",
        "optim": "Adam AdamW Optimizer SGD",
        "utils.data": "DataLoader Dataset",
    },
    "nn.functional": {"nn": "CrossEntropyLoss Linear MSELoss Module ReLU"},
    "optim": {"optim.lr_scheduler": "CosineAnnealingLR LRScheduler OneCycleLR ReduceLROnPlateau StepLR"},
    "utils": {
        "utils.data": "DataLoader Dataset TensorDataset random_split",
        "utils.tensorboard": "SummaryWriter",
        "nn.utils": "clip_grad_norm_ parameters_to_vector",
    },
}
_PACKAGE = "{0} is a package of its own: install it beside weft (docs/libraries.md), import it as {0}, and start the program by `weft run`"
# (module, name) -> what to do.
_ADVICE = {
    **{("", name): _PACKAGE.format(name) for name in ("torchvision", "torchaudio", "torchtext", "torchmetrics")},
    ("", "vision"): _PACKAGE.format("torchvision"),
    ("", "audio"): _PACKAGE.format("torchaudio"),
    ("", "text"): _PACKAGE.format("torchtext"),
    ("", "models"): _PACKAGE.format("torchvision") + "; the models are in torchvision.models",
    ("", "gpu"): "use weft.cuda, weft.xpu or weft.accelerator",
    ("", "rocm"): "GPUs of AMD are devices of weft.cuda",
    ("", "legacy"): "PyTorch removed it in version 0.4; layers are in weft.nn",
    ("", "data"): "datasets and loaders are in weft.utils.data",
    ("", "load_state_dict"): "use model.load_state_dict(weft.load(path))",
    ("", "save_model"): "use weft.save(model.state_dict(), path)",
    ("", "array"): "use weft.tensor, or weft.asarray, which shares memory",
    ("", "ndarray"): "the class is weft.Tensor",
    ("", "astype"): "use tensor.to(dtype)",
    ("", "expand_dims"): "use weft.unsqueeze",
    ("", "np"): "import numpy; weft.from_numpy and tensor.numpy() share memory",
    ("", "numpy"): "import numpy; weft.from_numpy and tensor.numpy() share memory",
    ("nn", "Dense"): "use weft.nn.Linear(in_features, out_features)",
    ("nn", "Activation"): "use weft.nn.ReLU, weft.nn.Tanh and other layers",
    ("utils", "ffi"): "PyTorch removed it in version 1.0; call C through ctypes",
    ("utils", "bottleneck"): "PyTorch's is a script; use weft.profiler or cProfile",
    ("export", "onnx"): "use weft.onnx.export",
}  # fmt: skip


def instead(module: str, name: str) -> str:
    """What to use in place of a name that a module does not have, "" if this is not known.

    Args:
        module: The name of the module, "weft" or "torch" for the root.

    >>> instead("weft.nn", "relu")
    'use weft.nn.functional.relu'
    >>> instead("torch", "DataLoader"), instead("torch", "anything")
    ('use torch.utils.data.DataLoader', '')
    """
    root, _, path = module.partition(".")
    advice = _ADVICE.get((path, name), "")
    for home, names in _ELSEWHERE.get(path, {}).items():
        if name in names.split():
            advice = f"use weft.{home}.{name}"
    return advice.replace("weft.", f"{root}.")
