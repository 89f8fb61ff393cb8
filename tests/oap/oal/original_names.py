"""Every metric name the original defines in these files, by file."""

from __future__ import annotations

NAMES = {
    "core.oal": """
        service_resp_time service_sla service_cpm service_percentile service_apdex
        service_mq_consume_count service_mq_consume_latency service_relation_client_cpm
        service_relation_server_cpm service_relation_client_call_sla
        service_relation_server_call_sla service_relation_client_resp_time
        service_relation_server_resp_time service_relation_client_percentile
        service_relation_server_percentile service_instance_relation_client_cpm
        service_instance_relation_server_cpm service_instance_relation_client_call_sla
        service_instance_relation_server_call_sla service_instance_relation_client_resp_time
        service_instance_relation_server_resp_time service_instance_relation_client_percentile
        service_instance_relation_server_percentile service_instance_sla service_instance_resp_time
        service_instance_cpm endpoint_cpm endpoint_resp_time endpoint_sla endpoint_percentile
        endpoint_mq_consume_latency endpoint_relation_cpm endpoint_relation_resp_time
        endpoint_relation_sla endpoint_relation_percentile database_access_resp_time
        database_access_sla database_access_cpm database_access_percentile cache_read_resp_time
        cache_read_sla cache_read_cpm cache_read_percentile cache_write_resp_time cache_write_sla
        cache_write_cpm cache_write_percentile cache_access_resp_time cache_access_sla
        cache_access_cpm cache_access_percentile mq_service_consume_cpm mq_service_consume_sla
        mq_service_consume_latency mq_service_consume_percentile mq_service_produce_cpm
        mq_service_produce_sla mq_endpoint_consume_cpm mq_endpoint_consume_latency
        mq_endpoint_consume_percentile mq_endpoint_consume_sla mq_endpoint_produce_cpm
        mq_endpoint_produce_sla
    """,
    "java-agent.oal": """
        instance_jvm_cpu instance_jvm_memory_heap instance_jvm_memory_noheap
        instance_jvm_memory_heap_max instance_jvm_memory_noheap_max
        instance_jvm_memory_pool_code_cache instance_jvm_memory_pool_newgen
        instance_jvm_memory_pool_oldgen instance_jvm_memory_pool_survivor
        instance_jvm_memory_pool_permgen instance_jvm_memory_pool_metaspace
        instance_jvm_memory_pool_zheap instance_jvm_memory_pool_compressed_class_space
        instance_jvm_memory_pool_codeheap_non_nmethods
        instance_jvm_memory_pool_codeheap_profiled_nmethods
        instance_jvm_memory_pool_codeheap_non_profiled_nmethods instance_jvm_young_gc_time
        instance_jvm_old_gc_time instance_jvm_normal_gc_time instance_jvm_young_gc_count
        instance_jvm_old_gc_count instance_jvm_normal_gc_count instance_jvm_thread_live_count
        instance_jvm_thread_daemon_count instance_jvm_thread_peak_count
        instance_jvm_thread_runnable_state_thread_count
        instance_jvm_thread_blocked_state_thread_count
        instance_jvm_thread_waiting_state_thread_count
        instance_jvm_thread_timed_waiting_state_thread_count instance_jvm_class_loaded_class_count
        instance_jvm_class_total_unloaded_class_count instance_jvm_class_total_loaded_class_count
    """,
    "dotnet-agent.oal": """
        instance_clr_cpu instance_clr_gen0_collect_count instance_clr_gen1_collect_count
        instance_clr_gen2_collect_count instance_clr_heap_memory
        instance_clr_available_completion_port_threads instance_clr_available_worker_threads
        instance_clr_max_completion_port_threads instance_clr_max_worker_threads
    """,
    "browser.oal": """
        browser_app_pv browser_app_error_rate browser_app_error_sum browser_app_single_version_pv
        browser_app_single_version_error_rate browser_app_single_version_error_sum
        browser_app_page_pv browser_app_page_error_rate browser_app_page_error_sum
        browser_app_page_ajax_error_sum browser_app_page_resource_error_sum
        browser_app_page_js_error_sum browser_app_page_unknown_error_sum
        browser_app_page_redirect_avg browser_app_page_dns_avg browser_app_page_ttfb_avg
        browser_app_page_tcp_avg browser_app_page_trans_avg browser_app_page_dom_analysis_avg
        browser_app_page_fpt_avg browser_app_page_dom_ready_avg browser_app_page_load_page_avg
        browser_app_page_res_avg browser_app_page_ssl_avg browser_app_page_ttl_avg
        browser_app_page_first_pack_avg browser_app_page_fmp_avg browser_app_page_fpt_percentile
        browser_app_page_ttl_percentile browser_app_page_dom_ready_percentile
        browser_app_page_load_page_percentile browser_app_page_first_pack_percentile
        browser_app_page_fmp_percentile browser_app_resource_duration_avg
        browser_app_resource_size_avg browser_app_resource_protocol_count
        browser_app_resource_type_count browser_app_web_vitals_fmp_avg
        browser_app_web_vitals_cls_avg browser_app_web_vitals_lcp_avg
        browser_app_web_interaction_inp_percentile
    """,
    "mesh.oal": """
        service_sidecar_internal_req_latency_nanos service_sidecar_internal_resp_latency_nanos
        service_instance_sidecar_internal_req_latency_nanos
        service_instance_sidecar_internal_resp_latency_nanos
        endpoint_sidecar_internal_req_latency_nanos endpoint_sidecar_internal_resp_latency_nanos
        service_client_sidecar_internal_req_latency_nanos
        service_server_sidecar_internal_req_latency_nanos
        service_client_sidecar_internal_resp_latency_nanos
        service_server_sidecar_internal_resp_latency_nanos
        instance_client_sidecar_internal_req_latency_nanos
        instance_server_sidecar_internal_req_latency_nanos
        instance_client_sidecar_internal_resp_latency_nanos
        instance_server_sidecar_internal_resp_latency_nanos
    """,
    "histograms.oal": """
        meter_instance_golang_gc_heap_allocs_by_size meter_instance_golang_gc_heap_frees_by_size
        meter_instance_golang_gc_pauses meter_instance_golang_sched_latencies
        meter_sw_go_tracing_context_execution_time_percentile
        meter_java_agent_tracing_context_execution_time_percentile
    """,
    "meters.oal": """
        meter_instance_pvm_gc_time meter_instance_golang_gc_pause_time
        meter_instance_golang_gc_count meter_instance_pvm_process_cpu_utilization
        meter_instance_pvm_process_mem_utilization
        meter_instance_pvm_total_cpu_utilization meter_instance_pvm_total_mem_utilization
        meter_instance_pvm_gc_g0 meter_instance_pvm_gc_g1 meter_instance_pvm_gc_g2
        meter_instance_pvm_thread_active_count meter_instance_nodejs_process_cpu
        meter_instance_nodejs_heap_used meter_instance_nodejs_heap_total
        meter_instance_nodejs_heap_limit meter_instance_nodejs_rss
        meter_instance_nodejs_external_memory meter_instance_golang_heap_alloc
        meter_instance_golang_stack_used meter_instance_golang_os_threads_num
        meter_instance_golang_live_goroutines_num meter_instance_host_cpu_used_rate
        meter_instance_host_mem_used_rate
    """,
    "satellite.oal": """
        satellite_service_receive_event_count satellite_service_fetch_event_count
        satellite_service_queue_input_count satellite_service_send_event_count
        satellite_service_queue_total_capacity satellite_service_queue_used_count
        satellite_service_server_cpu_utilization satellite_service_grpc_connect_count
    """,
    "tcp.oal": """
        service_throughput_received service_throughput_sent service_relation_client_received
        service_relation_client_sent service_relation_server_received service_relation_server_sent
        service_instance_throughput_received service_instance_throughput_sent
        service_instance_relation_client_received service_instance_relation_client_sent
        service_instance_relation_server_received service_instance_relation_server_sent
    """,
    "virtual-gen-ai.oal": """
        gen_ai_provider_resp_time gen_ai_provider_sla gen_ai_provider_cpm
        gen_ai_provider_latency_percentile gen_ai_provider_input_tokens_sum
        gen_ai_provider_input_tokens_avg gen_ai_provider_output_tokens_sum
        gen_ai_provider_output_tokens_avg gen_ai_provider_total_estimated_cost
        gen_ai_provider_avg_estimated_cost gen_ai_model_call_cpm gen_ai_model_sla
        gen_ai_model_latency_avg gen_ai_model_latency_percentile gen_ai_model_ttft_avg
        gen_ai_model_ttft_percentile gen_ai_model_input_tokens_sum gen_ai_model_input_tokens_avg
        gen_ai_model_output_tokens_sum gen_ai_model_output_tokens_avg
        gen_ai_model_total_estimated_cost gen_ai_model_avg_estimated_cost
    """,
}
