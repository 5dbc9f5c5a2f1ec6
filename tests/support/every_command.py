# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""One use of every command, for tests of packages and containers."""

from collections.abc import Callable

import click

from zanon_net.cli.entry import cli

# Each is a line for the shell, in a folder with demo.pcap in it that only these commands write to.
USES = {
    "key": "zanon-net key new zanon.key && zanon-net key check zanon.key",
    "inspect": "zanon-net inspect demo.pcap",
    "config": "zanon-net config > zanon.toml && grep -q '^\\[anonymity\\]' zanon.toml",
    "run": "zanon-net run demo.pcap --internal 10.0.0.0/8 --z 5 --window 10m --target-p 0.9"
    " --popularity popularity.json --format parquet --format observations --compress zstd"
    " --metrics 127.0.0.1:0 --metrics-file run.prom --out logs"
    " && grep -q '^zanon_packets_total' run.prom",
    "report": "zanon-net report logs > facts && grep -q '^Names released' facts"
    " && zanon-net report logs --popularity popularity.json --html report.html"
    " && grep -q '</html>' report.html",
    # Packages of Debian have no DuckDB.
    "audit": "{ zanon-net audit logs --for internal > risk 2> said && grep -q 'Three risks' risk; }"
    " || grep -q 'the audit needs DuckDB' said",
    "packets": "zanon-net packets demo.pcap shared.pcapng --internal 10.0.0.0/8",
    "filter": "printf 'time,user,name\\n1,a,x\\n2,b,x\\n' > rows.csv"
    " && zanon-net filter rows.csv --user user --attribute name --z 2 --time-unit s > names.csv"
    " && grep -q '^2,' names.csv",
    "publish": "printf 'time,who,age\\n1,a,30\\n2,b,31\\n' > ages.csv"
    " && zanon-net publish ages.csv --user who --quasi age --round age=10 --clip age=0..99"
    " --k 2 --time-unit s > classes.csv"
    " && grep -q '30-39' classes.csv",
    "table": "zanon-net table anonymize ages.csv --quasi age --round age=10 --clip age=0..99"
    " --k 2 > table.csv"
    " && zanon-net table check table.csv --quasi age --k 2",
    "count": "zanon-net key new state.key && mkdir votes"
    " && { zanon-net count file:votes --z 5 --expect-probes 1 --until-done"
    " --state state --state-key-file state.key --metrics 127.0.0.1:0 & }"
    " && zanon-net run -q demo.pcap --internal 10.0.0.0/8 --z 5 --key-file zanon.key"
    " --probe north --count-at file:votes --out counted && wait $!",
    "unseal": "zanon-net key new --reader reader.key && mkdir sealed"
    " && { zanon-net count file:sealed --z 5 --expect-probes 1 --until-done"
    " --mode sealed --sealed-out released & }"
    " && zanon-net run -q demo.pcap --internal 10.0.0.0/8 --z 5 --key-file zanon.key --probe north"
    " --count-at file:sealed --count-mode sealed --reader-key reader.key.pub"
    " --format jsonl --out rows && wait $!"
    " && zanon-net unseal --reader-key reader.key released --out unsealed.jsonl"
    " && test -s unsealed.jsonl",
    "model": "zanon-net model --popularity popularity.json --z 5",
    "tune": "zanon-net tune --users 50 --attributes 20 --rate 0.3 --target 0.5",
    "bench": "zanon-net bench --traffic isp --bytes 1M --repeat 1",
    # These two end with one line, because no run serves metrics and no package has Flink.
    "top": "! zanon-net top 127.0.0.1:1 2> said && grep -q 'no answer: Connection refused' said",
    "flink": "! zanon-net flink job --votes votes --z 5 2> said && grep -q 'Flink jobs need' said",
}


def commands_of(group: click.Group) -> dict[str, click.Command]:
    """The commands of a group by name, imported."""
    found = {name: group.get_command(click.Context(group), name) for name in group.commands}
    return {name: command for name, command in found.items() if command is not None}


def use_every_command(shell: Callable[[str], object]) -> None:
    """Uses each command once. shell: runs a line, and raises an exception if the line fails."""
    assert sorted(USES) == sorted(cli.list_commands(click.Context(cli)))
    for line in USES.values():
        shell(line)
