"""`torch.distributed._shard.sharded_tensor`: tensors of which each process has some shards."""

from ....compat.missing import package_names

__all__, __getattr__ = package_names(
    __name__,
    {
        "_creation": "empty full init_from_local_shards ones rand randn zeros",
        "_module_hooks": "pre_load_state_dict_hook state_dict_hook",
        "_ops": "custom_sharded_op_impl",
        "api": "Shard ShardedTensor ShardedTensorBase ShardedTensorMetadata TensorProperties",
        "metadata": "ShardMetadata",
        "reshard": "",
        "shard": "",
        "utils": "",
    },
)
