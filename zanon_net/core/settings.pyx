# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Made by scripts/make_settings.py from zanon_net/config/schema.py.

cdef int fill_engine_config(zn_engine_config *config, dict settings, _Kept kept) except -1:
    expect_settings(settings, (
        "z",
        "window_ns",
        "established",
        "dns_votes",
        "never",
        "exact",
        "dn_hunter",
        "z_max",
        "internal",
        "user_prefix",
        "keep_client_port",
        "rotate_ns",
        "key_file",
        "outputs",
        "columns",
        "split_ns",
        "popularity",
        "max_flows",
        "max_tuples",
        "max_attributes",
        "workers",
    ))
    config.z = settings["z"]
    config.window_ns = settings["window_ns"]
    config.established = settings["established"]
    config.dns_votes = settings["dns_votes"]
    config.never = kept.texts(settings["never"], &config.never_count)
    config.exact = settings["exact"]
    config.dn_hunter = settings["dn_hunter"]
    config.z_max = settings["z_max"]
    config.internal = kept.networks(settings["internal"], &config.internal_count)
    config.user_v4_bits, config.user_v6_bits = settings["user_prefix"]
    config.keep_client_port = settings["keep_client_port"]
    config.rotate_ns = settings["rotate_ns"]
    config.key_file = kept.path(settings["key_file"])
    config.outputs = bits_of(OUTPUT_BITS, settings["outputs"])
    config.sets = bits_of(SETS, settings["columns"])
    config.split_ns = settings["split_ns"]
    config.popularity = settings["popularity"]
    config.max_flows = settings["max_flows"]
    config.max_tuples = settings["max_tuples"]
    config.max_attributes = settings["max_attributes"]
    config.workers = settings["workers"]
    return 0


cdef int fill_row_filter_config(zn_row_filter_config *config, dict settings, _Kept kept) except -1:
    expect_settings(settings, (
        "z",
        "window_ns",
        "keep_suppressed",
        "columns",
        "with_user",
        "rotate_ns",
        "key_file",
        "format",
        "to",
        "unit",
        "delimiter",
        "header",
        "strict",
        "popularity",
        "max_tuples",
        "max_attributes",
    ))
    config.gate.z = settings["z"]
    config.gate.window_ns = settings["window_ns"]
    config.gate.keep_suppressed = settings["keep_suppressed"]
    kept.columns(settings["columns"], &config.columns)
    config.gate.with_user = settings["with_user"]
    config.gate.rotate_ns = settings["rotate_ns"]
    config.gate.key_file = kept.path(settings["key_file"])
    config.format = ROW_FORMATS.index(settings["format"])
    config.to = ROW_FORMATS.index(settings["to"])
    config.unit = TIME_UNITS.index(settings["unit"])
    config.delimiter = settings["delimiter"]
    config.header = kept.text(settings["header"])
    config.strict = settings["strict"]
    config.gate.popularity = settings["popularity"]
    config.gate.max_tuples = settings["max_tuples"]
    config.gate.max_attributes = settings["max_attributes"]
    return 0
