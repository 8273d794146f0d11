"""Functions of which ShardedTensors with a ChunkShardingSpec may be the weight."""
