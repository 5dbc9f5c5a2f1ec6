# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/output

cdef extern from "output/event_log.h" nogil:
    ctypedef struct zn_event_field:
        const char *name
        const char *format
        size_t offset
    const zn_event_field *zn_event_record_fields(size_t *count, size_t *row_bytes)
    const zn_event_field *zn_event_observation_fields(size_t *count, size_t *row_bytes)
