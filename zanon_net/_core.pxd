# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Declarations of the C core: only what the binding uses.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "<stdbool.h>" nogil:
    ctypedef bint c_bool "bool"

include "core/c/base.pxi"
include "core/c/proto.pxi"
include "core/c/state.pxi"
include "core/c/crypto.pxi"
include "core/c/anon.pxi"
include "core/c/io.pxi"
include "core/c/engine.pxi"
