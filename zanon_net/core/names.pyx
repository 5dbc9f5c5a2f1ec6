# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Words for the enumerations of the C core, in its order.

OUTPUTS = tuple([zn_outputs_name(i).decode() for i in range(ZN_OUTPUT_TEXTS)
                 if not zn_outputs_is_rows(i)])
ROWS = tuple([zn_outputs_name(i).decode() for i in range(ZN_OUTPUT_TEXTS)
              if zn_outputs_is_rows(i)])
TABLES = tuple([zn_outputs_name(i).decode() for i in range(ZN_OUTPUT_TEXTS, ZN_OUTPUTS)])
FULL_ROWS = ZN_OUTPUTS_ROWS
LIMITS = {"z": ZN_ZTABLE_Z_MAX, "workers": ZN_POOL_MAX, "interfaces": ZN_LIVE_MAX,
          "rings": ZN_LIVE_RINGS, "snaplen": ZN_FRAME_MAX}
ALL_TEXTS = OUTPUTS + ROWS
OUTPUT_BITS = {zn_outputs_name(i).decode(): 1 << i for i in range(ZN_OUTPUTS)}
FILE_NAMES = {zn_outputs_name(i).decode(): (zn_outputs_stem(i).decode(),
                                            zn_outputs_suffix(i).decode())
              for i in range(ZN_OUTPUTS) if zn_outputs_stem(i) != NULL}
FIELD_TYPES = ("bool", "uint8", "uint16", "uint32", "uint64", "int64", "ms", "s", "time", "text")
SETS = {"core": 0, "e2e": 1, "layer7": 2, "p2p": 4, "options": 8, "levels": 32}
ATTRIBUTES = {zn_attribute_word(i).decode(): 1 << i for i in range(ZN_ATTRIBUTE_COUNT)}
LEVELS = {"domain": 1, "category": 2, "as": 4, "country": 8}
PARSE_STATES = ("done", "need_more", "malformed", "other")
HOST_KINDS = ("name", "home", "address", "empty", "invalid")
QUIC_TYPES = ("initial", "0-rtt", "handshake", "retry", "negotiation", "foreign")
STREAM_RESULTS = ("grew", "stored", "nothing", "conflict", "outside")
ROW_FORMATS = ("auto", "csv", "jsonl")
TUNNEL_KINDS = ("vxlan", "geneve", "gtp-u", "teredo", "l2tp", "ayiya", "capwap", "lisp", "mpls",
                "tzsp", "hp-erm", "gre")
UNKNOWN = ("error", "suppress", "top")
LADDER_STEPS_MAX = ZN_LADDER_STEPS_MAX
TIME_UNITS = ("s", "ms", "us", "ns", "iso")
Column = namedtuple("Column", "group name type unit missing disclosure description")
ClosedWindow = namedtuple("ClosedWindow", "start_ns end_ns whole users bins")
ClosedLevels = namedtuple("ClosedLevels", "exposures rows")
DECISIONS = ("release", "below_z", "too_late", "late_deep", "no_room")


cdef list describe_stats():
    cdef zn_stat_info info
    entries = []
    for i in range(<int>ZN_STAT_COUNT):
        info = zn_stat_describe(i)
        entries.append((info.name.decode().lower(), info.group.decode(), info.text.decode()))
    return entries


cdef dict describe_aliases():
    cdef zn_stat_info info
    aliases = {}
    for i in range(<int>ZN_STAT_COUNT):
        info = zn_stat_describe(i)
        if info.old_name != NULL:
            aliases[info.name.decode().lower()] = info.old_name.decode().lower()
    return aliases


STAT_INFO = describe_stats()
STAT_ALIASES = describe_aliases()
cdef dict STAT_PLACES = {entry[0]: i for i, entry in enumerate(STAT_INFO)}
STAGES = tuple(zn_profile_stage_name(<zn_profile_stage>stage).decode()
               for stage in range(<int>ZN_PROFILE_STAGE_COUNT))
ROW_FAULTS = {
    zn_row_fault_name(<zn_row_fault>fault).decode().lower():
        zn_row_fault_text(<zn_row_fault>fault).decode()
    for fault in range(1, <int>ZN_FAULT_COUNT)
}
LOG_REASONS = {
    zn_log_reason_name(<zn_log_reason>reason).decode().lower():
        zn_log_reason_text(<zn_log_reason>reason).decode()
    for reason in range(<int>ZN_LOG_NO_ATTRIBUTE, <int>ZN_LOG_REASON_COUNT)
}


def describe_log_presets():
    """Returns the columns of each preset of logs: {preset: ((column, role, disclosure), ...)}."""
    cdef size_t count
    cdef const zn_log_preset *presets = zn_log_presets(&count)
    cdef const zn_log_column *column
    found = {}
    for i in range(count):
        columns = []
        for j in range(presets[i].count):
            column = &presets[i].columns[j]
            name = column.name.p[:column.name.n].decode()
            role = zn_log_role_name(column.role).decode()
            columns.append((name, role, zn_log_role_disclosure(column.role).decode()))
        found[presets[i].name.decode()] = tuple(columns)
    return found


LOG_PRESETS = describe_log_presets()
