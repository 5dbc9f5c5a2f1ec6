# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of a run that is one of several probes: its rows of the table in `schema`."""

from functools import partial

from zanon_net.config import probe_rules
from zanon_net.config.setting import Setting
from zanon_net.config.types import (
    COUNTER,
    DURATION,
    FLAG,
    PEM_FILE,
    PROBE_NAME,
    one_of,
    whole_number,
)

_count = partial(
    Setting, commands=("run", "packets"), section="count", heading="Counter of all probes"
)

ROWS = (
    _count(
        name="count_at",
        type=COUNTER,
        default=None,
        help="Let the counter at this place decide, which counts for all probes; names stay here.",
        usual="this run counts alone",
        about="where the counter of all probes is; left out: this run counts alone",
        example="tls://counter.example:9470",
        check=probe_rules.check_counter,
        manifest="nothing",
    ),
    _count(
        name="probe",
        type=PROBE_NAME,
        default=None,
        help="The name of this probe, unique among the probes of a counter.",
        about="the name of this probe, unique among the probes of a counter",
        example="north",
        check=probe_rules.check_counter,
        manifest="as it is",
        core="count_probe",
        core_value=probe_rules.core_probe,
        core_kind="path",
    ),
    _count(
        name="count_mode",
        type=one_of(probe_rules.MODES, "must be ask, sealed or threshold"),
        default=None,
        usual="ask",
        help="Content of a vote to the counter: nothing that names a host, or the observation,"
        " sealed to a reader, or under a key that z users' shares give.",
        about="ask, or observations go with votes: sealed to a reader, or under a threshold key",
        example="sealed",
        check=probe_rules.check_mode,
        core="count_rows",
        core_value=probe_rules.core_rows,
        manifest=probe_rules.shown_mode,
    ),
    _count(
        name="reader_key",
        type=PEM_FILE,
        default=None,
        help="The public key of the reader that rows are sealed to, of 'zanon-net key new"
        " --reader'.",
        example="reader.key.pub",
        check=probe_rules.check_mode,
        manifest="nothing",
    ),
    _count(
        name="threshold_epochs",
        type=whole_number("epochs", 1, 16),
        default=4,
        help="With threshold: the number of epochs that overlap; equal on the counter.",
        check=probe_rules.check_mode,
        manifest=probe_rules.shown_epochs,
    ),
    _count(
        name="count_tls_cert",
        type=PEM_FILE,
        default=None,
        help="The certificate by which the counter knows this probe; PEM.",
        about="the certificate by which the counter knows this probe, in PEM",
        example="probe.pem",
        check=probe_rules.check_counter,
        manifest="nothing",
    ),
    _count(
        name="count_tls_key",
        type=PEM_FILE,
        default=None,
        help="The private key of that certificate.",
        example="probe.key",
        check=probe_rules.check_counter,
        manifest="nothing",
    ),
    _count(
        name="count_tls_ca",
        type=PEM_FILE,
        default=None,
        help="The authority that signed the counter's certificate.",
        example="ca.pem",
        check=probe_rules.check_counter,
        manifest="nothing",
    ),
    _count(
        name="count_rotate",
        type=DURATION,
        default=None,
        usual="never",
        help="The lifetime of the key of the counter's hashes; at least a window and two epochs,"
        " and equal on the counter.",
        about="the lifetime of the key of the hashes for the counter; equal on the counter",
        example="7d",
        check=probe_rules.check_rotation,
        manifest=probe_rules.shown_rotation,
        core="count_rotate_ns",
        core_kind="optional number",
    ),
    _count(
        name="count_hold",
        type=DURATION,
        default="5s",
        help="The time that names and records of an interface wait for the counter before they are"
        " suppressed. They wait at least twice as long as the counter takes between two answers."
        " Captures wait for a counter that is away for up to this time.",
        about="how long names and records wait for a counter; then they are suppressed. They wait"
        " at least twice as long as it takes between two answers",
        manifest="nothing",
        core="count_hold_ns",
    ),
    _count(
        name="count_leases",
        type=FLAG,
        default=True,
        help="Release names that enough users of this probe share without a query;"
        " the counter learns of it. With --count-mode ask and a z of at most 64.",
        about="release names that enough users of this probe share without a query",
        manifest="nothing",
        core="count_leases",
    ),
    _count(
        name="count_wait",
        type=DURATION,
        default="1m",
        help="The time that captures wait for an answer of a counter that is there, and every run"
        " waits for the counter at its start.",
        about="how long captures wait for an answer of a counter that is there",
        manifest="nothing",
    ),
)
