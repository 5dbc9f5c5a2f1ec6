# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Declarations of the C core: only what the binding uses.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "<stdbool.h>" nogil:
    ctypedef bint c_bool "bool"

include "core/c/util.pxd"
include "core/c/capture.pxd"
include "core/c/packet.pxd"
include "core/c/proto.pxd"
include "core/c/build.pxd"
include "core/c/flow.pxd"
include "core/c/anonymity.pxd"
include "core/c/count.pxd"
include "core/c/microdata.pxd"
include "core/c/crypto.pxd"
include "core/c/analyzer.pxd"
include "core/c/release.pxd"
include "core/c/output.pxd"
include "core/c/arrow.pxd"
include "core/c/engine.pxd"
include "core/c/rows.pxd"
