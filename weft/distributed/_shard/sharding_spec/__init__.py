"""`torch.distributed._shard.sharding_spec`: how a tensor is divided among processes."""

from ....compat.missing import package_names

__all__, __getattr__ = package_names(
    __name__,
    {
        "_internals": "",
        "api": "DevicePlacementSpec EnumerableShardingSpec PlacementSpec ShardingSpec ShardMetadata "
        "_infer_sharding_spec_from_shards_metadata",
        "chunk_sharding_spec": "ChunkShardingSpec",
    },
)
