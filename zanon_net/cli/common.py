# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The options that people need of each command, with the lines about them in `--help`.

A command with more options than fit on a screen is here. `--help-all` has all its options.
"""

LINES = {
    "purpose": "Reader of the output",
    "z": "Users needed for a release",
    "window": "Time for which an exposure counts",
    "evidence": "Proof that a client is real",
    "never": "File of suffixes never to release",
    "target_p": "Adapt z to the traffic (0 to 1)",
    "internal": "Networks of your users",
    "rotate": "Life of a key of pseudonyms",
    "key_file": "Key for the same pseudonyms in each run",
    "filter": "Read only these packets, as in tcpdump",
    "config_file": "Settings from a TOML file",
    "workers": "Threads that share the work",
    "status": "Interval of progress reports",
    "drop_to": "Continue as this user instead of root",
    "metrics": "Serve metrics for Prometheus",
    "time": "Column of the time",
    "user": "Column of the user",
    "quasi": "Columns that together can identify",
    "sensitive": "Columns that must stay unknown",
    "passed": "Column to write unprotected",
    "k": "Users in each class",
    "l": "Different values in each class",
    "max_share": "Largest share of a sensitive value",
    "t": "Largest distance from the whole table",
    "hierarchy": "File of a column's hierarchy",
    "round": "Numbers as ranges of this width",
    "clip": "Limits of the ranges of --round",
    "format": "Format of the input",
    "time_unit": "Unit of the times",
    "expect_probes": "Number of probes to wait for",
    "as_json": "Print the manifest, not the summary",
    "quiet": "Print no summary",
}
RUN = "purpose z window never internal rotate key_file filter config_file workers status drop_to"
ROWS = "time user format time_unit passed hierarchy as_json quiet"
TABLE = "quasi sensitive hierarchy round format config_file as_json quiet"
FLINK = {
    "votes": "Folder that the probes share",
    "answers": "Folder of the answers",
    "ends": "Read the files that are there and end",
    "parallelism": "Tasks that share the work",
    "checkpoint_every": "Time between two checkpoints",
    "checkpoints": "Folder of the checkpoints",
    "savepoint": "Savepoint to resume from",
}


def _common(names: str, **own: str) -> dict[str, str]:
    """Returns the lines of shared options and of a command's own options."""
    return {name: LINES[name] for name in names.split()} | own


COMMON = {
    "run": _common(
        f"{RUN} evidence target_p metrics",
        out="New folder, or - for standard output",
        format="Output format; can be repeated",
        split="New files at multiples of this time",
        max_disk="Remove old parts above this size",
        count_at="Counter that several probes share",
    ),
    "packets": _common(
        RUN,
        to="Interface to send the packets through",
        dry_run="Count only, and write nothing",
        payload="Replacement of hidden payload",
        encapsulation="Tunnels and tags around packets",
        fingerprint="TLS fingerprints of clients",
        suppressed="Packets of suppressed flows",
        view="Further output that shows less",
    ),
    "filter": _common(
        f"{ROWS} z window rotate key_file",
        suppressed="Rows with a suppressed attribute",
        attribute="Column of the attribute",
        levels="Release rare rows as coarser rows",
        no_user="Leave out the user's column",
        to="Format of the output",
        delimiter="Character between CSV's columns",
        preset="Read a log of this tool",
        strict="End at the first bad row",
    ),
    "publish": _common(
        f"{ROWS} quasi sensitive k l max_share round clip config_file",
        to="Format of the output",
        rows="Rows that are released together",
        delay="Longest wait of a row",
        pseudonym="Pseudonym in the user's column",
    ),
    "count": _common(
        "z window rotate expect_probes metrics quiet",
        out="Folder of the answers for file:DIR",
        tls_cert="Certificate of the counter",
        tls_key="Private key of the counter",
        tls_ca="Authority of the probes' certificates",
        until_done="End when all probes have ended",
        probe_timeout="Silence after which a probe is left out",
        state="Folder of the sealed state",
        state_key_file="Key of the state",
        mode="Content of a vote",
        shards="Parts that the names are divided among",
        max_users_per_probe="Most users of a probe in a window",
        as_json="Print the counts at the end as JSON",
    ),
    "tune": _common(
        "z time user time_unit window hierarchy",
        as_json="Print JSON instead of a table",
        popularity="Counts of 'run' or 'filter', to fit a stream",
        users="Number of users",
        attributes="Number of names",
        rate="Hourly rate of the most popular name",
        exponent="Exponent of the rates by rank",
        target="Chance that k - 1 others share the names",
        k="Users who share all released names",
        periods="Windows that an attacker collects",
        plot="Draw the result, too",
        steps="Search steps of filter, on these rows",
        sample="Rows to read for --steps",
        out="New file for the best steps",
        attribute="Columns of the attributes",
    ),
    "table check": _common(f"{TABLE} user k l max_share t"),
    "table risk": _common(f"{TABLE} time clip", original="Table before it was generalized"),
    "table anonymize": _common(
        f"{TABLE} user passed k l max_share t clip",
        method="Way to generalize",
        level="Level of a column, for --method fixed",
        suppress="Largest share of rows to leave out",
        out="New .csv, .jsonl or .parquet file",
        curve="Draw the loss against k into a file",
    ),
    "flink job": _common("z window rotate expect_probes", **FLINK),
    "flink submit": _common(
        "z window rotate expect_probes", cluster="Address of the job manager", **FLINK
    ),
}
"""The names of a command's options, each with its line."""
