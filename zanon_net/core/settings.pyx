# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Made by scripts/make_settings.py from zanon_net/config/schema.py.

cdef int fill_engine_config(zn_engine_config *config, dict settings) except -1:
    expect_settings(settings, (
        "z",
        "window_ns",
        "established",
        "dns_votes",
        "exact",
        "dn_hunter",
        "z_max",
        "keep_client_port",
        "rotate_ns",
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
    config.exact = settings["exact"]
    config.dn_hunter = settings["dn_hunter"]
    config.z_max = settings["z_max"]
    config.keep_client_port = settings["keep_client_port"]
    config.rotate_ns = settings["rotate_ns"]
    config.split_ns = settings["split_ns"]
    config.popularity = settings["popularity"]
    config.max_flows = settings["max_flows"]
    config.max_tuples = settings["max_tuples"]
    config.max_attributes = settings["max_attributes"]
    config.workers = settings["workers"]
    return 0


cdef int fill_row_filter_config(zn_row_filter_config *config, dict settings) except -1:
    expect_settings(settings, (
        "z",
        "window_ns",
        "keep_suppressed",
        "with_user",
        "rotate_ns",
        "strict",
        "popularity",
        "max_tuples",
        "max_attributes",
    ))
    config.gate.z = settings["z"]
    config.gate.window_ns = settings["window_ns"]
    config.gate.keep_suppressed = settings["keep_suppressed"]
    config.gate.with_user = settings["with_user"]
    config.gate.rotate_ns = settings["rotate_ns"]
    config.strict = settings["strict"]
    config.gate.popularity = settings["popularity"]
    config.gate.max_tuples = settings["max_tuples"]
    config.gate.max_attributes = settings["max_attributes"]
    return 0
