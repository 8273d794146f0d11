"""`torch.ao.pruning`: weights that are set to 0 while a model is trained, more of them with time."""

from ...compat.missing import package_names

__all__, __getattr__ = package_names(
    __name__,
    {
        "scheduler.base_scheduler": "BaseScheduler",
        "scheduler.cubic_scheduler": "CubicSL",
        "scheduler.lambda_scheduler": "LambdaSL",
        "sparsifier.base_sparsifier": "BaseSparsifier",
        "sparsifier.nearly_diagonal_sparsifier": "NearlyDiagonalSparsifier",
        "sparsifier.utils": "FakeSparsity fqn_to_module get_arg_info_from_tensor_fqn module_to_fqn",
        "sparsifier.weight_norm_sparsifier": "WeightNormSparsifier",
    },
)
