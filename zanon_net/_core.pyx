# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled core: thin handles over csrc/. No parsing, no policy, no loop over packets."""

import ipaddress
import os
from collections import namedtuple

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from cpython.number cimport PyNumber_Index
from libc.errno cimport EINTR
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from zanon_net.errors import CapacityError, CaptureError, ConfigError, FormatError, ZanonError

# One module in pieces: the C core is linked once, and its objects are shared without a detour.
include "core/names.pxi"
include "core/calls.pxi"
include "core/values.pxi"
include "core/capture.pxi"
include "core/outputs.pxi"
include "core/engine.pxi"
include "core/live.pxi"
include "core/ztable.pxi"
include "core/sieve.pxi"
include "core/crypto.pxi"
include "core/parse_tls.pxi"
include "core/parse_quic.pxi"
include "core/parse_http.pxi"
include "core/parse_dns.pxi"
include "core/probes.pxi"
