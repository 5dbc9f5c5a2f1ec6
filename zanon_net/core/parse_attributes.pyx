# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# The readers of the attributes besides names (csrc/proto/attribute_readers.h).

def read_attribute(str word not None, bytes message not None):
    """Returns (state, text, bytes as sent, their offset) of an attribute in a message; text is None
    if it is too long."""
    cdef _Copy copy = _Copy(message)
    cdef zn_attribute_text text
    cdef unsigned attribute = ATTRIBUTES[word].bit_length() - 1
    memset(&text, 0, sizeof(text))
    state = PARSE_STATES[<int>zn_attribute_row_of(attribute).read(copy.span, &text)]
    if state != "done":
        return state, "", b"", None
    shown = None if text.is_cut else text.text[:text.n].decode("ascii")
    raw = <bytes>(<const char *>text.place.p)[:text.place.n] if text.place.n != 0 else b""
    return state, shown, raw, offset_in(copy.span, text.place)
