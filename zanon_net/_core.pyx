# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled core: thin handles over csrc/. No parsing, no policy, no loop over packets."""

import ipaddress
import os
import struct
from collections import namedtuple
from importlib import import_module

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals
from cpython.number cimport PyNumber_Index
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from cython cimport embedsignature, no_gc_clear
from libc.errno cimport EINTR, ENOMEM
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from zanon_net.errors import CapacityError, CaptureError, ConfigError, FormatError, ZanonError

# One module in pieces: the C core is linked once, and its objects are shared directly. The pieces
# have names of modules because cython-lint reads nothing else.
include "core/names.pyx"
include "core/calls.pyx"
include "core/convert.pyx"
include "core/settings.pyx"
include "core/capture.pyx"
include "core/outputs.pyx"
include "core/arrow.pyx"
include "core/engine.pyx"
include "core/live.pyx"
include "core/packet_sender.pyx"
include "core/cells.pyx"
include "core/ztable.pyx"
include "core/levels.pyx"
include "core/vote_message.pyx"
include "core/vote_shard.pyx"
include "core/vote_watch.pyx"
include "core/vote_rings.pyx"
include "core/vote_rows.pyx"
include "core/own_votes.pyx"
include "core/taxonomy.pyx"
include "core/row_filter.pyx"
include "core/frame_filter.pyx"
include "core/groups.pyx"
include "core/tuple_gate.pyx"
include "core/publisher.pyx"
include "core/crypto.pyx"
include "core/sealed_rows.pyx"
include "core/threshold.pyx"
include "core/parse_tls.pyx"
include "core/parse_quic.pyx"
include "core/parse_http.pyx"
include "core/parse_dns.pyx"
include "core/parse_results.pyx"
include "core/parse_attributes.pyx"
include "core/reassembly.pyx"
