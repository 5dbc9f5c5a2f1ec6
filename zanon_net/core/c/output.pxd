# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/output

cdef extern from "output/event_log.h" nogil:
    ctypedef struct zn_event_field:
        const char *name
        const char *format
        size_t offset
    ctypedef struct zn_event_row:
        zn_event_field field[1]
        size_t count, bytes
    void zn_event_record_row(zn_event_row *out)
    void zn_event_observation_row(zn_event_row *out)


cdef extern from "output/packet_file.h" nogil:
    c_bool zn_packet_file_next(zn_span records, size_t *at, zn_frame *out)


cdef extern from "output/columns.h" nogil:
    ctypedef enum zn_field_type:
        ZN_FIELD_TEXT
        ZN_FIELD_TSTAT_ONLY
    ctypedef struct zn_column:
        const char *name
        zn_field_type type
        const char *unit
        const char *missing
        const char *disclosure
        const char *description
    ctypedef struct zn_column_group:
        const char *name
        const zn_column *at
        size_t n
    ctypedef enum zn_column_group_id:
        ZN_COLUMN_GROUP_COUNT
    const zn_column_group *zn_column_group_of(zn_column_group_id id)


cdef extern from "output/packet_sender.h" nogil:
    ctypedef struct zn_packet_sender:
        pass
    ctypedef struct zn_packet_sender_counts:
        uint64_t sent, bytes, full, oversize, error
    int zn_packet_sender_open(zn_packet_sender **out, const char *interface, int64_t patience_ns,
                              zn_error *err)
    void zn_packet_sender_close(zn_packet_sender *s)
    int zn_packet_sender_send(zn_packet_sender *s, zn_span records, zn_error *err)
    zn_packet_sender_counts zn_packet_sender_get_counts(const zn_packet_sender *s)
    bint zn_packet_sender_has_address(const zn_packet_sender *s)
