# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Check `format` of cells: names of columns, and the form of values that no other check reads."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.names import column_of
from zanon_net.audit.raw.shown import BROKEN, OBSERVATIONS, Row

OF_SIDES = (
    "ack_cnt ack_cnt_p appdataB appdataT bytes bytes_all bytes_retx bytes_uniq cwin_ini"
    " cwin_max cwin_min durat f1323_opt fin_cnt first first_abs first_ack iscrypto isint last"
    " last_handshakeT mss mss_max mss_min npnalpn pkts pkts_all pkts_data pkts_dup pkts_fc"
    " pkts_fs pkts_ooo pkts_push pkts_reor pkts_retx pkts_rto pkts_unfs pkts_unk pkts_unrto"
    " port rst_cnt rtt_avg rtt_cnt rtt_max rtt_min rtt_std sack_cnt sack_opt syn_cnt syn_retx"
    " tm_opt ttl_max ttl_min type win_0 win_max win_min win_scl"
)
OF_FLOWS = (
    "client_port complete con_t dns_enc durat early ed2k_c2c ed2k_c2s ed2k_chat ed2k_data"
    " ed2k_sig epoch first http_req_cnt http_res_cnt http_t last midstream p2p_st p2p_t proto"
    " quic_ech quic_zero_rtt req_tm res_tm server_port t_end_ns t_ns t_start_ns"
    " tls_session_stat"
)
NUMBERS = {f"{side}_{word}" for side in "cs" for word in OF_SIDES.split()} | {*OF_FLOWS.split()}
NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,9})?|true|false|True|False")
ADDRESS = re.compile("[0-9a-f.:]+")
VERSIONS, QUIC_VERSION = re.compile("[0-9a-f]{4}(,[0-9a-f]{4})*"), re.compile("0x[0-9a-f]{8}")
WORD = re.compile("[a-z0-9]{1,11}")
FORMS = {
    **dict.fromkeys(NUMBERS, NUMBER),
    **dict.fromkeys(("client", "c_ip", "server", "s_ip", "dns_rslv"), ADDRESS),
    **dict.fromkeys(("c_TLSvers", "s_TLSvers"), VERSIONS),
    **dict.fromkeys(("quic_c_vers", "quic_s_vers"), QUIC_VERSION),
    **dict.fromkeys(("name_source", "name_status", "ech", "http_res"), WORD),
    **dict.fromkeys(("name_level", "server_level"), WORD),
}
"""The form of the values of each column, except columns whose values other checks look up."""
LOOKED_UP = {
    *("name", "c_tls_SNI", "s_tls_SCN", "fqdn", "http_hostname", "quic_SNI", "quic_UA"),
    "server_label",
}
OF_OBSERVATIONS = {"t_ns", "client", "name", "name_source", "name_level", "namespace"}


def columns_of(form: str, attributes: Sequence[str]) -> set[str]:
    """Returns the columns that rows of a form may have. attributes: of the run, by their words."""
    if form == OBSERVATIONS:
        return OF_OBSERVATIONS
    return {*FORMS, *LOOKED_UP, *map(column_of, attributes)}


@lru_cache(maxsize=1 << 16)
def fits(column: str, value: str) -> bool:
    """Returns whether a text has the form of its column."""
    form = FORMS.get(column)
    return form is None or form.fullmatch(value) is not None


class ColumnCheck:
    """The columns of one file, of which an unknown one is a finding once."""

    def __init__(self, attributes: Sequence[str]) -> None:
        self._attributes = attributes
        self._seen: set[str] = set()

    def of_row(self, row: Row) -> Iterator[Finding]:
        """Yields the columns that no run writes, and the values that are not of their column."""
        if row.form == BROKEN:
            return
        new = row.cells.keys() - self._seen
        if new:
            self._seen |= new
            strange = new - columns_of(row.form, self._attributes)
            if strange:
                yield Finding("format", row.file, row.number, "columns", len(strange), 0)
        for column, value in row.cells.items():
            if isinstance(value, str) and not fits(column, value):
                yield Finding("format", row.file, row.number, column, 1, 0)
