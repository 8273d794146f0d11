"""`torch.distributed._shard`: ShardedTensors, the older way to divide tensors among processes. DTensors have more operations."""

from ...compat.missing import package_names

__all__, __getattr__ = package_names(
    __name__,
    {
        "api": "_shard_tensor load_with_process_group shard_module shard_parameter",
        "metadata": "",
        "sharded_optim": "",
        "sharded_tensor": "",
        "sharder": "",
        "sharding_plan": "",
        "sharding_spec": "",
    },
)
