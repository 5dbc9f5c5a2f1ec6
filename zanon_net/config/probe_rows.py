# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The settings of a run that is one of several probes: its rows of the table in `schema`."""

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

_count = partial(Setting, command="run", section="count", heading="Counter of all probes")

ROWS = (
    _count(
        name="count_at",
        type=COUNTER,
        default=None,
        help="Have the counter at this place decide, which counts for all probes; names stay here.",
        usual="this run counts by itself",
        about="where the counter of all probes is; left out: this run counts by itself",
        example="tls://counter.example:9470",
        check=probe_rules.check_counter,
        manifest="nothing",
    ),
    _count(
        name="probe",
        type=PROBE_NAME,
        default=None,
        help="The name of this probe, of which each has another.",
        about="the name of this probe, of which each has another",
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
        help="What goes to the counter with a vote: nothing that tells a name, or the observation,"
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
        help="With threshold, how many epochs overlap; as the counter has it.",
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
        help="How often the key of what the counter gets changes; a window and two epochs at least,"
        " and as the counter has it.",
        about="how often the key of what the counter gets changes, as the counter has it",
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
        help="How long names and records of an interface wait for the counter; then they are"
        " suppressed. They wait at least twice as long as the counter takes between two answers."
        " Captures wait where it is away for so long.",
        about="how long names and records wait for a counter; then they are suppressed. They wait"
        " at least twice as long as it takes between two answers",
        manifest="nothing",
        core="count_hold_ns",
    ),
    _count(
        name="count_leases",
        type=FLAG,
        default=True,
        help="Whether names that this probe's own users suffice for are released without asking,"
        " and the counter told so; with --count-mode ask and a z of at most 64.",
        about="whether names that this probe's own users suffice for are released without asking",
        manifest="nothing",
        core="count_leases",
    ),
    _count(
        name="count_wait",
        type=DURATION,
        default="1m",
        help="How long captures wait for an answer of a counter that is there, and every run for"
        " the counter at its start.",
        about="how long captures wait for an answer of a counter that is there",
        manifest="nothing",
    ),
)
