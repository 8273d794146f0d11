"""`torch._inductor.config`: settings of PyTorch's compiler, which are kept and have no effect."""

from __future__ import annotations

from weft.compiler.settings import install

install(
    __name__,
    """
    add_pre_grad_passes autotune_remote_cache bucket_all_gathers_fx_bucket_size_determinator: None
    bucket_all_reduces_fx_bucket_size_determinator bucket_reduce_scatters_fx_bucket_size_determinator: None
    bundled_autotune_remote_cache combo_kernel_peak_memory_increase_gb cudagraph_policy: None
    custom_partitioner_fn fx_graph_remote_cache global_cache_dir inductor_choices_class inter_node_bw: None
    intra_node_bw joint_custom_post_pass joint_custom_pre_pass max_fusion_unique_io_buffers: None
    post_grad_custom_post_pass post_grad_custom_pre_pass pre_grad_custom_pass profile_bandwidth_output: None
    realize_acc_reads_size_threshold realize_acc_reads_threshold realize_opcount_threshold: None
    remove_pre_grad_passes reorder_prefetch_limit sleep_sec_TESTING_ONLY triton.autotune_at_compile_time: None
    triton.cudagraph_capture_sizes triton.inject_relu_bug_TESTING_ONLY triton.max_tiles: None
    triton.mix_order_reduction_split_size triton.proton_output_dir worker_log_path: None
    aggressive_fusion align_random_eager always_keep_tensor_constants annotate_training: False
    assume_32bit_indexing assume_aligned_inputs assume_unaligned_fallback_output: False
    autotune_fallback_to_aten autotune_in_subproc autotune_multi_device b2b_gemm_pass batch_invariant: False
    benchmark_combo_kernel benchmark_fusion benchmark_kernel cache_sdpa_constraint: False
    can_inplace_pad_graph_input check_stack_no_cycles_TESTING_ONLY combo_kernel_per_subkernel_blocks: False
    combo_kernels combo_kernels_pointwise_only comment_origin compute_all_bounds conv_1x1_as_mm: False
    coordinate_descent_check_all_directions coordinate_descent_tuning cpp_wrapper: False
    cpp_wrapper_build_separate cutedsl_enable_autotuning dce debug debug_fusion debug_index_asserts: False
    debug_ir_traceback decompose_mem_bound_mm dedup_reduce_scatters deterministic developer_warnings: False
    disable_cpp_codegen distributed_max_autotune_gemm do_not_emit_runtime_assertions: False
    efficient_conv_bn_eval_fx_passes emulate_precision_casts enable_autograd_for_aot: False
    enable_linear_binary_folding epilogue_fusion_first epilogue_fusion_user_defined_triton_kernel: False
    epilogue_fusion_with_atomic_add expand_dimension_for_pointwise_nodes fallback_by_default: False
    fallback_embedding_bag_byte_unpack fallback_random force_disable_cudagraph_TESTING_ONLY: False
    force_fuse_int_mm_with_mul force_layout_optimization force_pointwise_cat force_shape_pad freezing: False
    freezing_discard_parameters fx_wrapper generate_intermediate_hooks group_fusion incremental_autotune: False
    is_nightly_or_source is_predispatch keep_static_cubin_raw log_tlparse max_autotune: False
    max_autotune_allow_flexible_layouts max_autotune_gemm max_autotune_pointwise: False
    max_autotune_prune_choices_based_on_shared_mem memory_planning nan_asserts nvgemm_supplement_configs: False
    pad_channels_last pad_dynamic_shapes pad_outputs partitioned_scatter_enabled permute_fusion: False
    pipeline_max_autotune_gemm profile_bandwidth profile_bandwidth_with_do_bench_using_profiling: False
    profiler_mark_wrapper_call remote_gemm_autotune_cache reorder_for_compute_comm_overlap: False
    reorder_for_peak_memory_debug run_jit_post_compile_hook runtime_estimations_mms_benchmark: False
    runtime_triton_nan_asserts save_args search_autotune_cache selective_decompose: False
    static_launch_user_defined_triton_kernels strict_static_cuda_launcher: False
    triton.autotune_with_sample_inputs triton.cooperative_reductions triton.cudagraph_or_error: False
    triton.cudagraph_skip_dynamic_graphs triton.cudagraph_trees_history_recording: False
    triton.cudagraph_trees_objgraph triton.cudagraphs triton.debug_sync_graph triton.debug_sync_kernel: False
    triton.decompose_sort_ops triton.dense_indexing: False
    triton.disallow_failing_autotune_kernels_TESTING_ONLY triton.enable_pdl: False
    triton.enable_persistent_tma_matmul triton.enable_template_tma_store: False
    triton.enable_tma_load_for_template_epilogue triton.fast_path_cudagraph_asserts: False
    triton.force_cooperative_reductions triton.force_cudagraph_sync triton.force_cudagraphs_warmup: False
    triton.mix_order_reduction_autotune_split_size triton.mix_order_reduction_non_strict_mode: False
    triton.native_matmul triton.nested_reduction triton.prefer_nd_tiling triton.proton_profiling: False
    triton.skip_cudagraph_warmup triton.skip_l1_cache triton.store_cubin triton.tile_reductions: False
    triton.unique_user_kernel_names triton.use_block_ptr triton.use_tensor_descriptor: False
    triton_disable_device_detection unsafe_ignore_unsupported_triton_autotune_args: False
    unsafe_skip_cache_dynamic_shape_guards use_fast_math use_torch_profiler_benchmarker verbose_progress: False
    warn_mix_layout wrap_inductor_compiled_regions: False
    alignment_asserts allow_buffer_reuse apply_gumbel_max_trick assert_indirect_indexing: True
    autotune_local_cache batch_fusion benchmark_epilogue_fusion benchmark_harness: True
    bundle_triton_into_fx_graph_cache bw_outputs_user_visible combo_kernel_autotune_grouping: True
    combo_kernel_foreach_dynamic_shapes comprehensive_padding constant_and_index_propagation: True
    cpp_cache_precompile_headers delay_realize_cheap_outputs disable_padding_cpu disable_progress: True
    dynamic_scale_rblock emulate_precision_casts_on_saved_tensors enable_auto_functionalized_v2: True
    enable_caching_generated_triton_templates epilogue_fusion fx_graph_cache graph_partition: True
    implicit_fallbacks inplace_buffers inplace_padding joint_graph_constant_folding: True
    keep_addmm_fused_for_half_dtypes keep_output_stride layout_optimization: True
    loop_index_inversion_in_fusion loop_ordering_after_fusion loop_reindexing_after_fusion: True
    max_autotune_report_choices_stats non_blocking_remote_cache_write online_softmax: True
    optimize_scatter_upon_const_tensor pattern_matcher pick_loop_orders prologue_fusion: True
    quiesce_async_compile_pool reorder_for_locality reorder_for_peak_memory scalar_asserts shape_padding: True
    size_asserts split_cat_fx_passes split_reductions static_weight_shapes triton.autotune_cublasLt: True
    triton.autotune_pointwise triton.coalesce_tiling_analysis triton.codegen_upcast_to_fp32: True
    triton.cudagraph_support_input_mutation triton.cudagraph_trees triton.divisible_by_16: True
    triton.dynamic_disable_pipelining triton.emit_pointer_range_32 triton.mix_order_reduction: True
    triton.mix_order_reduction_allow_multi_stages triton.persistent_reductions triton.proton_group_by_sm: True
    triton.proton_per_cta_occupancy triton.proton_split_invocations: True
    triton.reorder_for_reducing_graph_partitions triton.slow_path_cudagraph_asserts: True
    triton.tiling_prevents_pointwise_fusion triton.tiling_prevents_reduction_fusion: True
    triton.transpose_discontiguous_tensor_descriptor triton.unique_kernel_names use_dce: True
    use_experimental_benchmarker use_fast_triton_launcher use_joint_graph_passes: True
    use_launch_metadata_schema use_mixed_mm use_post_grad_passes use_pre_grad_passes: True
    use_static_cuda_launcher worker_suppress_logging write_are_deterministic_algorithms_enabled: True
    autotune_lookup_table post_grad_fusion_options pre_grad_fusion_options triton.debug_dump_kernel_inputs: {}
    unsafe_marked_cacheable_functions: {}
    autotune_num_choices_displayed kernel_name_max_ops score_fusion_memory_threshold: 10
    triton.mix_order_reduction_max_reads triton.num_decompose_k_splits: 10
    collective_benchmark_nruns realize_cpu_opcount_threshold: 50
    collective_benchmark_timeout: 30.0
    combo_kernel_allow_mixed_sizes combo_kernels_autotune coordinate_descent_search_radius: 1
    max_epilogue_benchmarked_choices triton.mix_order_reduction_initial_xblock: 1
    combo_kernel_max_distance: -1
    combo_kernel_max_num_args: 250
    combo_kernel_max_num_nodes max_complex_pointwise_cat_inputs max_pointwise_cat_inputs: 8
    triton.cudagraph_dynamic_shape_warn_limit unroll_reductions_threshold: 8
    combo_kernel_peak_memory_pct_threshold: 0.05
    compile_threads partitioned_scatter_min_partitions: 2
    compile_worker_wait_timeout min_num_split size_threshold_for_succ_based_strategy: 0
    triton.cudagraph_min_partition_size triton.multi_kernel: 0
    cpu_gpu_bw: 50.0
    cudagraph_unsafe_unbacked_ops custom_should_partition_ops external_matmul multi_kernel_hints: []
    reorder_for_compute_comm_overlap_passes: []
    file_lock_timeout: 600
    inductor_default_autotune_rep: 100
    inductor_default_autotune_warmup: 25
    max_autotune_subproc_graceful_timeout_seconds max_autotune_subproc_terminate_timeout_seconds: 0.0
    max_autotune_subproc_result_timeout_seconds: 60.0
    max_fusion_buffer_group_pairwise_attempts max_fusion_size: 64
    min_overlap_ratio triton.cudagraph_partition_memory_budget: 1.1
    nvgemm_max_profiling_configs: 5
    padding_alignment_bytes partitioned_scatter_max_partitions triton.cudagraph_unexpected_rerecord_limit: 128
    padding_stride_threshold triton.use_two_step_variance_min_numel: 1024
    partitioned_scatter_memory_budget: 0.1
    precompilation_timeout_seconds: 300
    quiesce_async_compile_time: 60
    realize_cpu_acc_reads_threshold: 12
    realize_reads_threshold: 4
    small_memory_access_threshold: 16777216
    triton.decompose_k_threshold: 32
    triton.max_kernel_dump_occurrences: 3
    triton.min_split_scan_rblock: 256
    triton.spill_threshold: 16
    triton.use_two_step_variance_threshold: 32768
    unbacked_symint_fallback: 8192
    """,
)
