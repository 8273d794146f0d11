"""`torch.compiler.config`: settings of PyTorch's compiler, which are kept."""

from __future__ import annotations

from .settings import install

# The settings by their default. `disable` and `recompile_limit` of torch._dynamo.config have an effect.
install(
    __name__,
    """
    job_id pgo_extra_read_key pgo_extra_write_key log_file_name: None
    cache_key_tag dynamic_sources dynamic_values unbacked_sources: ''
    force_disable_caches force_cudagraph_gc verbose capture_scalar_outputs: False
    capture_dynamic_output_shape_ops fail_on_recompile_limit_hit allow_unspec_int_on_nn_module: False
    enable_cpp_symbolic_shape_guards wrap_top_frame: False
    dynamic_shapes assume_static_by_default automatic_dynamic_shapes: True
    skip_tensor_guards_with_matching_dict_tags: True
    recompile_limit: 8
    accumulated_recompile_limit: 256
    reorderable_logging_functions: []
    """,
)
