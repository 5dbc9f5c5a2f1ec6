# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# DNS and the names of hosts: csrc/proto/dns*.h, csrc/analyzer/hostname.h.

def parse_dns(bytes data not None, *, bint whole=True):
    """Returns (state, name, response?, id, type). The state is malformed, too, if the name has no
    text form."""
    cdef _Copy copy = _Copy(data)
    cdef zn_dns_question question
    memset(&question, 0, sizeof(question))
    state = zn_dns_question_parse(copy.span, whole, &question)
    if state == ZN_DONE and question.name_odd:
        state = ZN_MALFORMED
    if state != ZN_DONE:
        return PARSE_STATES[state], b"", False, 0, 0
    name = PyBytes_FromStringAndSize(<const char *>question.name, question.name_bytes)
    return "done", name, bool(question.response), question.id, question.type


def parse_dns_answers(bytes data not None, *, bint whole=True):
    """Returns (state, addresses of the answers)."""
    cdef _Copy copy = _Copy(data)
    cdef zn_dns_addresses addresses
    state = zn_dns_read_addresses(copy.span, whole, &addresses)
    return PARSE_STATES[state], [str(address_from(&addresses.at[i])) for i in range(addresses.n)]


def normalize_host(bytes name not None):
    """Returns (kind, text): kind is name, home, address, empty or invalid."""
    cdef _Copy copy = _Copy(name)
    cdef zn_hostname host
    kind = zn_hostname_normalize(copy.span, &host)
    text = PyBytes_FromStringAndSize(<const char *>host.text, host.n)
    return HOST_KINDS[kind], text.decode("ascii")
