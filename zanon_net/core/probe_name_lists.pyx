# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Tests read csrc/analyzer/name_lists.h and csrc/release/networks.h with these.

cdef class NameLists:
    """Lists of names, as PacketEngine takes them."""

    cdef zn_name_lists lists

    def __init__(self, suffixes, categories=()):
        cdef zn_error err
        cdef _Kept kept = _Kept()
        cdef size_t suffix_count = 0, category_count = 0
        cdef zn_suffix *at = kept.suffixes(suffixes, &suffix_count)
        cdef zn_category *named = kept.categories(categories, &category_count)
        memset(&err, 0, sizeof(err))
        zn_name_lists_fini(&self.lists)
        check(zn_name_lists_init(&self.lists, at, suffix_count, named, category_count, &err), &err)

    def __dealloc__(self):
        zn_name_lists_fini(&self.lists)

    @property
    def ignored_categories(self):
        """Number of suffixes with a category that are below their own domain."""
        return self.lists.ignored_categories

    def look_up(self, bytes name not None):
        """Returns the registered domain, the category, and whether the name is in ONLY and SKIP."""
        cdef _Copy copy = _Copy(name)
        cdef zn_name_facts facts
        zn_name_lists_look_up(&self.lists, copy.span, &facts)
        domain = None if facts.domain == ZN_NO_DOMAIN else name[facts.domain:]
        category = None
        if facts.category != 0:
            category = span_bytes(zn_name_lists_category(&self.lists, facts.category))
        return domain, category, bool(facts.only), bool(facts.skipped)

    def domains(self, list names not None):
        """Returns the registered domain of each name; None: no domain."""
        cdef zn_name_facts facts
        cdef zn_span span
        found = []
        for name in names:
            span.p = <const uint8_t *><const char *>name
            span.n = len(name)
            zn_name_lists_look_up(&self.lists, span, &facts)
            found.append(None if facts.domain == ZN_NO_DOMAIN else name[facts.domain:])
        return found


cdef class Networks:
    """A table of networks, as PacketEngine takes it."""

    cdef zn_networks networks

    def __init__(self, bytes rows not None):
        cdef zn_error err
        cdef _Kept kept = _Kept()
        cdef size_t count = 0
        cdef zn_network *at = kept.network_table(rows, &count)
        memset(&err, 0, sizeof(err))
        zn_networks_fini(&self.networks)
        check(zn_networks_init(&self.networks, at, count, &err), &err)

    def __dealloc__(self):
        zn_networks_fini(&self.networks)

    def find(self, bytes address not None):
        """Returns the AS and the country of an address of 16 bytes; 0 and empty outside the
        table."""
        cdef zn_addr addr = addr_of(address)
        cdef const zn_network *row = zn_networks_find(&self.networks, &addr)
        if row == NULL:
            return 0, ""
        return row.as_number, row.country[:2].rstrip(b"\0").decode()
