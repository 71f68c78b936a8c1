"""What ctypes must know of the library. Made by tools/python-binding from include/tutti; not to be
edited."""
# pylint: skip-file
import ctypes as c

ENUMS = {
    "TUTTI_OK": 0,
    "TUTTI_ARGUMENT": 1,
    "TUTTI_PARSE": 2,
    "TUTTI_SHAPE": 3,
    "TUTTI_MEMORY": 4,
    "TUTTI_IO": 5,
    "TUTTI_DATA": 6,
    "TUTTI_UNSUPPORTED": 7,
    "TUTTI_COMM": 8,
    "TUTTI_PEER": 9,
    "TUTTI_DIVERGED": 10,
    "TUTTI_STALL": 11,
    "TUTTI_MISMATCH": 12,
    "TUTTI_CHECKPOINT": 13,
    "TUTTI_OTHER_RUN": 14,
    "TUTTI_IN_USE": 15,
    "TUTTI_DISK_FULL": 16,
    "TUTTI_INTERRUPTED": 17,
    "TUTTI_LOG_ERROR": 0,
    "TUTTI_LOG_WARNING": 1,
    "TUTTI_LOG_INFO": 2,
    "TUTTI_LOG_DEBUG": 3,
    "TUTTI_SPLIT_TRAIN": 0,
    "TUTTI_SPLIT_TEST": 1,
    "TUTTI_SPLIT_VAL": 2,
    "TUTTI_SPLITS": 3,
    "TUTTI_FLOAT": 0,
    "TUTTI_BYTE": 1,
    "TUTTI_CHW": 0,
    "TUTTI_HWC": 1,
    "TUTTI_BLOCKED": 2,
}


class tutti_log(c.Structure):
    _fields_ = [
        ("sink", c.c_void_p),
        ("user", c.c_void_p),
        ("level", c.c_int),
        ("rank", c.c_int),
    ]


class tutti_shape(c.Structure):
    _fields_ = [
        ("c", c.c_int),
        ("h", c.c_int),
        ("w", c.c_int),
    ]


class tutti_layer_info(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("kind", c.c_char_p),
        ("activation", c.c_char_p),
        ("precision", c.c_char_p),
        ("in", tutti_shape),
        ("out", tutti_shape),
        ("parameters", c.c_uint64),
        ("trained", c.c_uint64),
        ("macs", c.c_uint64),
        ("train_flops", c.c_uint64),
        ("weight_bytes", c.c_uint64),
        ("activation_bytes", c.c_uint64),
    ]


class tutti_memory(c.Structure):
    _fields_ = [
        ("passes", c.c_int),
        ("parameters", c.c_uint64),
        ("momentum", c.c_uint64),
        ("average", c.c_uint64),
        ("gradients", c.c_uint64),
        ("activations", c.c_uint64),
        ("data", c.c_uint64),
        ("snapshot", c.c_uint64),
        ("program", c.c_uint64),
        ("peak", c.c_uint64),
        ("separate", c.c_uint64),
    ]


class tutti_own_data(c.Structure):
    _fields_ = [
        ("number", c.c_int),
        ("layout", c.c_int),
        ("shape", tutti_shape),
        ("classes", c.c_int),
        ("class_names", c.c_void_p),
        ("mean", c.c_void_p),
        ("std", c.c_void_p),
        ("means", c.c_int),
        ("count", c.c_int * 3),
        ("read", c.c_void_p),
        ("user", c.c_void_p),
        ("identity", c.c_char_p),
    ]


class tutti_arrays(c.Structure):
    _fields_ = [
        ("samples", c.c_void_p * 3),
        ("labels", c.c_void_p * 3),
        ("bytes", c.c_uint64),
    ]


class tutti_loss_call(c.Structure):
    _fields_ = [
        ("first", c.c_int),
        ("count", c.c_int),
        ("outputs", c.c_int),
        ("stride", c.c_size_t),
        ("values", c.c_void_p),
        ("labels", c.c_void_p),
        ("losses", c.c_void_p),
        ("gradients", c.c_void_p),
    ]


class tutti_own_loss(c.Structure):
    _fields_ = [
        ("find", c.c_void_p),
        ("user", c.c_void_p),
    ]


class tutti_ranks_options(c.Structure):
    _fields_ = [
        ("threads", c.c_int),
        ("comm_core", c.c_int),
        ("no_thread", c.c_bool),
        ("stall_warn", c.c_double),
        ("stall_abort", c.c_double),
        ("log", tutti_log),
        ("mpi_comm", c.c_void_p),
        ("mpi_comm_bytes", c.c_size_t),
    ]


class tutti_import_options(c.Structure):
    _fields_ = [
        ("model", c.c_char_p),
        ("output", c.c_char_p),
        ("input", tutti_shape),
        ("classes", c.c_char_p),
        ("mean", c.c_char_p),
        ("std", c.c_char_p),
        ("log", tutti_log),
    ]


class tutti_import_result(c.Structure):
    _fields_ = [
        ("layers", c.c_int),
        ("tensors", c.c_int),
    ]


class tutti_operator_info(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("becomes", c.c_char_p),
        ("limits", c.c_char_p),
    ]


class tutti_export_options(c.Structure):
    _fields_ = [
        ("net", c.c_char_p),
        ("weights", c.c_char_p),
        ("onnx", c.c_char_p),
    ]


class tutti_export_result(c.Structure):
    _fields_ = [
        ("nodes", c.c_int),
        ("tensors", c.c_int),
    ]


class tutti_machine_options(c.Structure):
    _fields_ = [
        ("threads", c.c_int),
        ("seconds", c.c_double),
        ("net", c.c_char_p),
        ("batch_size", c.c_int),
    ]


class tutti_part_options(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("count", c.c_size_t),
        ("cuts", c.c_void_p),
        ("terms", c.c_int),
        ("priority", c.c_int),
    ]


class tutti_planner_options(c.Structure):
    _fields_ = [
        ("net", c.c_char_p),
        ("platform", c.c_char_p),
        ("nodes", c.c_char_p),
        ("plan", c.c_char_p),
        ("freeze", c.c_char_p),
        ("precision", c.c_char_p),
        ("batch_size", c.c_int),
        ("micro_batch", c.c_int),
        ("overlap", c.c_bool),
        ("priority", c.c_bool),
        ("samples", c.c_double),
        ("epochs", c.c_double),
        ("deadline", c.c_double),
        ("node_hours", c.c_double),
        ("json", c.c_bool),
        ("save", c.c_char_p),
        ("plot", c.c_char_p),
        ("html", c.c_char_p),
        ("show", c.c_void_p),
    ]


class tutti_calibrate_options(c.Structure):
    _fields_ = [
        ("nets", c.c_void_p),
        ("net_count", c.c_int),
        ("threads", c.c_int),
        ("seconds", c.c_double),
        ("precision", c.c_char_p),
        ("output", c.c_char_p),
        ("show", c.c_void_p),
        ("log", tutti_log),
    ]


class tutti_simulate_options(c.Structure):
    _fields_ = [
        ("net", c.c_char_p),
        ("platform", c.c_char_p),
        ("nodes", c.c_char_p),
        ("plan", c.c_char_p),
        ("precision", c.c_char_p),
        ("batch_size", c.c_int),
        ("micro_batch", c.c_int),
        ("steps", c.c_int),
        ("overlap", c.c_bool),
        ("priority", c.c_bool),
        ("jitter", c.c_double),
        ("straggler", c.c_double),
        ("json", c.c_bool),
        ("plot", c.c_char_p),
        ("html", c.c_char_p),
        ("trace", c.c_char_p),
        ("show", c.c_void_p),
        ("progress", c.c_void_p),
    ]


class tutti_train_news(c.Structure):
    _fields_ = [
        ("step", c.c_int64),
        ("steps", c.c_int64),
        ("epoch", c.c_double),
        ("phase", c.c_char_p),
        ("loss", c.c_double),
        ("top1", c.c_double),
        ("top5", c.c_double),
        ("lr", c.c_double),
        ("gradient_norm", c.c_double),
        ("seconds", c.c_double),
        ("samples_per_s", c.c_double),
    ]


class tutti_train_options(c.Structure):
    _fields_ = [
        ("net", c.c_char_p),
        ("data", c.c_char_p),
        ("run", c.c_char_p),
        ("overwrite", c.c_bool),
        ("batch_size", c.c_int),
        ("epochs", c.c_double),
        ("steps", c.c_int64),
        ("lr", c.c_double),
        ("weight_decay", c.c_double),
        ("decay_all", c.c_int),
        ("optimizer", c.c_char_p),
        ("momentum", c.c_double),
        ("nesterov", c.c_int),
        ("lr_schedule", c.c_char_p),
        ("warmup", c.c_char_p),
        ("clip", c.c_double),
        ("label_smoothing", c.c_double),
        ("class_weights", c.c_char_p),
        ("ema", c.c_double),
        ("eval_weights", c.c_char_p),
        ("seed", c.c_int64),
        ("grains", c.c_int),
        ("bn_group", c.c_char_p),
        ("conv", c.c_char_p),
        ("precision", c.c_char_p),
        ("shuffle", c.c_int),
        ("augment", c.c_int),
        ("dropout", c.c_int),
        ("skip_bad", c.c_int),
        ("init", c.c_char_p),
        ("resume", c.c_char_p),
        ("weights", c.c_char_p),
        ("rename", c.c_char_p),
        ("freeze", c.c_char_p),
        ("lr_scale", c.c_char_p),
        ("plan", c.c_char_p),
        ("micro_batch", c.c_int),
        ("overlap", c.c_bool),
        ("priority", c.c_bool),
        ("threads", c.c_int),
        ("data_threads", c.c_int),
        ("comm_core", c.c_int),
        ("stall_warn", c.c_double),
        ("stall_abort", c.c_double),
        ("part_reduce", c.c_char_p),
        ("part_broadcast", c.c_char_p),
        ("checkpoint_every", c.c_char_p),
        ("checkpoint_sync", c.c_bool),
        ("keep", c.c_int),
        ("eval_every", c.c_char_p),
        ("patience", c.c_int),
        ("trace", c.c_char_p),
        ("tensorboard", c.c_bool),
        ("json", c.c_bool),
        ("ranks", c.c_void_p),
        ("own_data", c.c_void_p),
        ("own_loss", c.c_void_p),
        ("watch", c.c_void_p),
        ("user", c.c_void_p),
        ("epoch_samples", c.c_int64),
        ("show", c.c_void_p),
        ("log", tutti_log),
    ]


class tutti_train_result(c.Structure):
    _fields_ = [
        ("rank", c.c_int),
        ("ranks", c.c_int),
        ("steps", c.c_int64),
        ("loss", c.c_double),
        ("top1", c.c_double),
        ("top5", c.c_double),
        ("seconds", c.c_double),
        ("samples_per_s", c.c_double),
        ("exit_code", c.c_int),
        ("was_said", c.c_bool),
    ]


class tutti_question(c.Structure):
    _fields_ = [
        ("files", c.c_void_p),
        ("count", c.c_int),
        ("top", c.c_int),
        ("json", c.c_bool),
        ("output", c.c_char_p),
    ]


class tutti_watch_options(c.Structure):
    _fields_ = [
        ("runs", c.c_void_p),
        ("count", c.c_int),
        ("port", c.c_int),
        ("bind", c.c_char_p),
        ("token", c.c_char_p),
        ("show", c.c_void_p),
        ("log", tutti_log),
    ]


class tutti_step_news(c.Structure):
    _fields_ = [
        ("step", c.c_int64),
        ("loss", c.c_double),
        ("top1", c.c_double),
        ("gradient_norm", c.c_double),
        ("lr", c.c_double),
    ]


class tutti_session_score(c.Structure):
    _fields_ = [
        ("samples", c.c_int64),
        ("loss", c.c_double),
        ("top1", c.c_double),
        ("top5", c.c_double),
    ]


class tutti_parameter(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("dim_count", c.c_int),
        ("dims", c.c_int * 4),
        ("count", c.c_size_t),
        ("is_trained", c.c_bool),
    ]


# name: (what it gives, what it takes)
FUNCTIONS = {
    "tutti_status_name": (c.c_char_p, [c.c_int]),
    "tutti_status_text": (c.c_char_p, [c.c_int]),
    "tutti_status_exit_code": (c.c_int, [c.c_int]),
    "tutti_message": (c.c_char_p, []),
    "tutti_log_stderr": (tutti_log, [c.c_int]),
    "tutti_net_load": (c.c_int, [c.c_void_p, c.c_char_p]),
    "tutti_net_parse": (c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p]),
    "tutti_net_destroy": (None, [c.c_void_p]),
    "tutti_net_known": (c.c_char_p, [c.c_int]),
    "tutti_net_name": (c.c_char_p, [c.c_void_p]),
    "tutti_net_input": (tutti_shape, [c.c_void_p]),
    "tutti_net_classes": (c.c_int, [c.c_void_p]),
    "tutti_net_answers": (c.c_char_p, [c.c_void_p]),
    "tutti_net_layer_count": (c.c_int, [c.c_void_p]),
    "tutti_net_layer_info": (tutti_layer_info, [c.c_void_p, c.c_int]),
    "tutti_net_total": (tutti_layer_info, [c.c_void_p]),
    "tutti_net_print": (c.c_int, [c.c_void_p, c.c_void_p]),
    "tutti_net_freeze": (c.c_int, [c.c_void_p, c.c_char_p]),
    "tutti_net_scale_lr": (c.c_int, [c.c_void_p, c.c_char_p]),
    "tutti_net_set_precision": (c.c_int, [c.c_void_p, c.c_char_p]),
    "tutti_net_default": (c.c_int, [c.c_void_p, c.c_int, c.c_void_p, c.c_void_p, c.c_void_p]),
    "tutti_net_batch_size": (c.c_int, [c.c_void_p, c.c_void_p]),
    "tutti_net_memory": (c.c_int, [c.c_void_p, c.c_int, c.c_int, c.c_int, c.c_double, c.c_void_p]),
    "tutti_own_data_fail": (c.c_int, [c.c_int, c.c_char_p]),
    "tutti_arrays_read": (c.c_int, [c.c_void_p, c.c_int, c.c_int64, c.c_void_p, c.c_void_p]),
    "tutti_ranks_defaults": (tutti_ranks_options, []),
    "tutti_ranks_open": (c.c_int, [c.c_void_p, c.c_void_p]),
    "tutti_ranks_close": (None, [c.c_void_p]),
    "tutti_ranks_rank": (c.c_int, [c.c_void_p]),
    "tutti_ranks_size": (c.c_int, [c.c_void_p]),
    "tutti_ranks_threads": (c.c_int, [c.c_void_p]),
    "tutti_ranks_agree": (c.c_int, [c.c_void_p, c.c_int]),
    "tutti_import": (c.c_int, [c.c_void_p, c.c_void_p]),
    "tutti_import_operator": (c.c_bool, [c.c_int, c.c_void_p]),
    "tutti_export": (c.c_int, [c.c_void_p, c.c_void_p]),
    "tutti_machine_defaults": (tutti_machine_options, []),
    "tutti_machine_create": (c.c_int, [c.c_void_p, c.c_void_p]),
    "tutti_machine_destroy": (None, [c.c_void_p]),
    "tutti_machine_print": (None, [c.c_void_p, c.c_void_p]),
    "tutti_machine_print_json": (c.c_int, [c.c_void_p, c.c_void_p]),
    "tutti_machine_finding": (c.c_char_p, [c.c_void_p, c.c_int]),
    "tutti_machine_remedy": (c.c_char_p, [c.c_void_p, c.c_int]),
    "tutti_build_print": (None, [c.c_void_p]),
    "tutti_part_reduce_create": (c.c_int, [c.c_void_p, c.c_void_p, c.c_void_p]),
    "tutti_part_broadcast_create": (c.c_int, [c.c_void_p, c.c_void_p, c.c_void_p, c.c_void_p]),
    "tutti_part_destroy": (None, [c.c_void_p]),
    "tutti_part_share": (None, [c.c_void_p, c.c_void_p, c.c_void_p]),
    "tutti_part_term": (c.c_void_p, [c.c_void_p]),
    "tutti_part_start": (c.c_int, [c.c_void_p]),
    "tutti_part_wait": (c.c_int, [c.c_void_p]),
    "tutti_part_is_done": (c.c_bool, [c.c_void_p]),
    "tutti_part_strip": (c.c_void_p, [c.c_void_p, c.c_void_p, c.c_void_p]),
    "tutti_planner_defaults": (tutti_planner_options, []),
    "tutti_plan_show": (c.c_int, [c.c_void_p]),
    "tutti_calibrate_defaults": (tutti_calibrate_options, []),
    "tutti_calibrate": (c.c_int, [c.c_void_p]),
    "tutti_plan_platform": (c.c_char_p, [c.c_int]),
    "tutti_simulate_defaults": (tutti_simulate_options, []),
    "tutti_simulate_show": (c.c_int, [c.c_void_p]),
    "tutti_train_defaults": (tutti_train_options, []),
    "tutti_train_data_kind": (c.c_char_p, [c.c_int]),
    "tutti_train": (c.c_int, [c.c_void_p, c.c_void_p]),
    "tutti_test": (c.c_int, [c.c_void_p, c.c_void_p]),
    "tutti_predict": (c.c_int, [c.c_void_p, c.c_void_p]),
    "tutti_version": (c.c_char_p, []),
    "tutti_run_state_word": (c.c_char_p, [c.c_int]),
    "tutti_run_state_exit_code": (c.c_int, [c.c_int]),
    "tutti_run_status": (c.c_int, [c.c_char_p, c.c_bool, c.c_bool, c.c_void_p, c.c_void_p]),
    "tutti_report_write": (c.c_int, [c.c_void_p, c.c_int, c.c_char_p]),
    "tutti_watch": (c.c_int, [c.c_void_p]),
    "tutti_session_create": (c.c_int, [c.c_void_p, c.c_void_p]),
    "tutti_session_destroy": (None, [c.c_void_p]),
    "tutti_session_rank": (c.c_int, [c.c_void_p]),
    "tutti_session_ranks": (c.c_int, [c.c_void_p]),
    "tutti_session_net": (c.c_void_p, [c.c_void_p]),
    "tutti_session_batch_size": (c.c_int, [c.c_void_p]),
    "tutti_session_steps": (c.c_int64, [c.c_void_p]),
    "tutti_session_share": (None, [c.c_void_p, c.c_void_p, c.c_void_p]),
    "tutti_session_stride": (c.c_size_t, [c.c_void_p]),
    "tutti_session_step": (c.c_int, [c.c_void_p, c.c_void_p, c.c_void_p, c.c_double, c.c_void_p]),
    "tutti_session_step_data": (c.c_int, [c.c_void_p, c.c_double, c.c_void_p]),
    "tutti_session_settle": (c.c_int, [c.c_void_p, c.c_void_p]),
    "tutti_session_rate": (c.c_double, [c.c_void_p]),
    "tutti_session_forward": (c.c_int, [c.c_void_p, c.c_void_p, c.c_void_p, c.c_int, c.c_void_p, c.c_void_p]),
    "tutti_session_is_split": (c.c_bool, [c.c_void_p]),
    "tutti_session_evaluate": (c.c_int, [c.c_void_p, c.c_int, c.c_void_p]),
    "tutti_session_parameter_count": (c.c_int, [c.c_void_p]),
    "tutti_session_parameter": (tutti_parameter, [c.c_void_p, c.c_int]),
    "tutti_session_find": (c.c_int, [c.c_void_p, c.c_char_p]),
    "tutti_session_read": (c.c_int, [c.c_void_p, c.c_int, c.c_void_p]),
    "tutti_session_write": (c.c_int, [c.c_void_p, c.c_int, c.c_void_p]),
    "tutti_session_save": (c.c_int, [c.c_void_p]),
}
