"""`torch.distributed.fsdp`: parameters that are divided among processes. `fully_shard` and `FullyShardedDataParallel`, with policies of wrapping."""

from ...compat.missing import package_names

__all__, __getattr__ = package_names(
    __name__,
    {
        "_fsdp_module": "FSDPModule UnshardHandle share_comm_ctx",
        "_fully_shard": "CPUOffloadPolicy MixedPrecisionPolicy OffloadPolicy fully_shard register_fsdp_forward_method",
        "fully_sharded_data_parallel": "FullyShardedDataParallel OptimStateKeyType",
        "api": "",
        "wrap": "",
    },
)
