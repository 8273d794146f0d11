"""`torch._dynamo.config`: settings of PyTorch's compiler, which are kept."""

from __future__ import annotations

from .settings import install

# The settings by their default. `disable` and `recompile_limit` of torch._dynamo.config have an effect.
install(
    __name__,
    """
    log_file_name dead_code_elimination _shapes_spec repro_after automatic_dynamic_remote_pgo: None
    pt2_compile_id_prefix _custom_ops_profile invalidate_compile_context_weakrefs: None
    verbose verify_correctness leaf_function_validate_outputs leaf_function_check_escaped_gradients: False
    generate_pycode fail_on_recompile_limit_hit fail_on_cache_limit_hit specialize_int specialize_float: False
    automatic_dynamic_exclusion_guard log_graph_in_out_metadata allow_ignore_mark_dynamic: False
    prepare_freezing suppress_errors replay_record_enabled disable cprofile dynamo_profiler: False
    repro_forward_only repro_ignore_non_fp capture_scalar_outputs capture_dynamic_output_shape_ops: False
    prefer_deferred_runtime_asserts_over_guards force_unspec_int_unbacked_size_like_on_torchrec_kjt: False
    allow_unspec_int_on_nn_module do_not_emit_runtime_asserts dont_skip_tracing: False
    optimize_ddp_lazy_compile skip_guards_on_constant_func_defaults use_recursive_dict_tags_for_guards: False
    raise_on_unsafe_aot_autograd force_compile_during_fx_trace allow_rnn error_on_recompile: False
    trace_autograd_ops use_numpy_random_stream enable_cpp_symbolic_shape_guards enable_trace_unittest: False
    enable_trace_load_build_class nested_graph_breaks: False
    error_on_dynamo_callback_in_fullgraph_compiled_code install_free_tensors use_graph_deduplication: False
    track_nodes_for_deduplication graph_deduplication_lint allow_empty_graphs debug_force_nested_calls: False
    debug_force_graph_break_on_leaf_return debug_disable_compile_counter: False
    record_compile_time_instruction_count cudagraph_backend_keep_input_mutation: False
    cudagraph_backend_support_input_mutation only_allow_pt2_compliant_ops: False
    capture_profiler_record_function inject_BUILD_SET_unimplemented_TESTING_ONLY: False
    fake_tensor_cache_crosscheck_enabled caching_precompile strict_precompile compiled_autograd: False
    skip_fwd_side_effects_in_bwd_under_checkpoint enable_compiler_collectives enable_p2p_compilation: False
    _unsafe_skip_fsdp_module_guards constant_fold_autograd_profiler_enabled wrap_top_frame: False
    enable_invoke_subgraph_regional_compile inline_invoke_subgraph: False
    debug_backend_override debug_inductor_config_override debug_dynamo_config_override: ''
    minimum_call_count: 1
    replay_side_effects skip_code_recursive_on_recompile_limit_hit: True
    skip_code_recursive_on_cache_limit_hit dynamic_shapes use_lazy_graph_module assume_static_by_default: True
    automatic_dynamic_shapes force_parameter_static_shapes force_nn_module_property_static_shapes: True
    guard_nn_modules guard_nn_modules_using_dict_tags rewrite_assert_with_torch_assert: True
    same_two_models_use_fp64 optimize_ddp skip_torchrec use_lamba_guard_for_object_aliasing: True
    skip_fsdp_guards skip_nnmodule_hook_guards skip_no_tensor_aliasing_guards_on_parameters: True
    skip_tensor_guards_with_matching_dict_tags assume_dunder_attributes_remain_unchanged: True
    raise_on_ctx_manager_usage error_on_nested_jit_trace error_on_nested_fx_trace capture_sparse_compute: True
    report_guard_failures trace_numpy enable_cpp_guard_manager enable_trace_contextlib: True
    enable_faithful_generator_behavior inline_inbuilt_nn_modules install_free_tensors_for_export: True
    enable_cpp_framelocals_guard_eval issue_3_13_0_warning capture_autograd_function: True
    capture_func_transforms log_compilation_metrics fake_tensor_cache_enabled: True
    fake_tensor_disable_inference_mode enable_dynamo_decompositions graph_break_on_nn_param_ctor: True
    inline_torch_dispatch_torch_compile automatic_dynamic_local_pgo run_gc_after_compile: True
    record_runtime_overhead enable_aot_compile inline_single_use_invoke_subgraph: True
    side_effect_replay_policy: 'info'
    recompile_limit cache_size_limit: 8
    accumulated_recompile_limit accumulated_cache_size_limit: 256
    max_saved_pointers_for_recursive_dict_tags_check: 256
    automatic_dynamic_shapes_mark_as: 'dynamic'
    traceable_tensor_subclasses nontraceable_tensor_subclasses reorderable_logging_functions: []
    ignore_logging_functions ignore_logger_methods: []
    skipfiles_inline_module_allowlist compiled_autograd_kwargs_override: {}
    repro_level: 2
    repro_tolerance: 0.001
    numpy_default_float: 'float64'
    numpy_default_complex: 'complex128'
    numpy_default_int: 'int64'
    """,
)
