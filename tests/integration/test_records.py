# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What a flow record may say beside each kind of name, column by column."""

import pytest
from support.engine import (
    UDP_COMPLETE,
    rounded,
    run,
)
from support.examples import each
from support.packets import (
    MINUTE,
    MS,
    SECOND,
    SERVER,
    SERVER_ADDRESS,
    START,
    Frame,
    Tcp,
    Udp,
    crowd,
    dns,
    hello,
    merged,
    request,
    user,
)
from support.record import (
    FLOW_SECONDS,
    LATER,
    LENGTHS,
    NAME,
    PORTS,
    PROTOCOLS,
    SECRET,
    STATUSES,
    WITHHELD,
    opening,
    outcome_with,
    popular_server,
    record,
    tstat_line,
)

# ---- the columns --------------------------------------------------------------------------------

ROUNDED = {"pkts", "bytes", "pkts_all", "pkts_data", "bytes_all", "bytes_uniq"}
TIMES = {"t_start_ns", "t_end_ns", "first", "last", "durat"}
# What says nothing of the site beyond the protocol.
KEPT = {"proto", "client", "client_port", "server_port", "epoch", "name_source", "name_status"}
KEPT |= {"c_isint", "s_isint", "c_iscrypto", "s_iscrypto"}
MISSING = (0, 0.0, None, "-", "---", "none")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", ["released", "none"])
def test_with_nothing_to_hide_a_record_is_exact(status: str, protocol: str) -> None:
    outcome = outcome_with(status, protocol)
    told = record(outcome)
    end = LATER + 10 * MS + (5 + FLOW_SECONDS) * SECOND - MS
    assert told["name"] == (NAME.decode() if status == "released" else None)
    assert told["name_status"] == status
    assert (told["server"], told["server_port"]) == (SERVER_ADDRESS, PORTS[1])
    assert (told["t_start_ns"], told["t_end_ns"]) == (LATER, end)
    assert (told["c_pkts"], told["s_pkts"]) == (6, 4)
    host = NAME if status == "released" else None
    assert told["c_bytes"] == 2 * LENGTHS[0] + len(opening(host, protocol))
    assert told["s_bytes"] == LENGTHS[1]
    assert told["c_bytes_uniq"] == told["c_bytes"] - LENGTHS[0]
    assert (told["c_pkts_retx"], told["c_bytes_retx"]) == (1, LENGTHS[0])
    assert told["ech"] == ("offered" if protocol == "tls" else "none")
    line = tstat_line(outcome)
    assert (line["s_ip"], line["s_port"]) == (SERVER_ADDRESS, str(PORTS[1]))
    assert line["first"] == f"{LATER // MS}.{LATER % MS:06}"
    assert line["durat"] == f"{(end - LATER) // MS}.000000"
    assert (line["con_t"], line["http_t"]) == (("8192", "0") if protocol == "tls" else ("1", "2"))
    shown = {"tls": "c_tls_SNI", "http": "http_hostname"}
    for source, column in shown.items():
        named = status == "released" and source == protocol
        assert line[column] == (NAME.decode() if named else "-")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", WITHHELD)
def test_a_withheld_name_takes_its_correlates_along(status: str, protocol: str) -> None:
    """Nothing of the flow is left but pseudonym, epoch, coarse times and rounded volumes."""
    outcome = outcome_with(status, protocol)
    exact, told = record(outcome_with(status, protocol, exact=True)), record(outcome)
    assert told["name_status"] == status
    assert (told["name"], told["server"], told["server_port"]) == (None, None, 0)
    assert set(told) == set(exact)
    for column, value in told.items():
        if column in TIMES:
            assert float(value) % (MINUTE if column.startswith("t_") else 60_000) == 0
        elif column[2:] in ROUNDED:
            assert value == rounded(exact[column])
        elif column not in KEPT:
            assert value in MISSING, column
    assert told["t_start_ns"] == LATER - LATER % MINUTE
    line = tstat_line(outcome)
    assert (line["s_ip"], line["s_port"], line["c_port"]) == ("-", "0", "0")
    for name, text in line.items():
        if name in told and name not in ("c_ip", "s_ip"):
            missing = told[name] is None and text in ("-", "---", "0.0", "0.000000")
            assert missing or text == told[name] or float(text) == told[name]
    hidden = [SECRET, b"two words", SERVER_ADDRESS.encode(), str(PORTS[1]).encode()]
    last_lines = [text.splitlines()[-1] for text in outcome.text.values()]
    assert not any(what in text for what in hidden for text in last_lines if b"c_ip" not in text)


@pytest.mark.parametrize("status", WITHHELD)
def test_exact_keeps_measurements_and_nothing_else(status: str) -> None:
    outcome = outcome_with(status, "tls", exact=True)
    told = record(outcome)
    assert (told["name"], told["server"], told["server_port"]) == (None, None, 0)
    assert told["t_start_ns"] == LATER
    assert (told["c_pkts"], told["s_pkts"], told["s_bytes"]) == (6, 4, LENGTHS[1])
    assert told["c_pkts_retx"] == 1
    assert tstat_line(outcome)["s_ip"] == "-"


@each("status", WITHHELD)
@each("rotate_ns", [SECOND, 61 * SECOND, MINUTE, 3 * MINUTE])
def test_an_epoch_tells_no_time_that_is_withheld(rotate_ns: int, status: str) -> None:
    epoch = LATER // rotate_ns
    coarse = record(outcome_with(status, "tls", rotate_ns=rotate_ns))
    assert coarse["epoch"] == (epoch if rotate_ns % MINUTE == 0 else 0)
    assert record(outcome_with(status, "tls", rotate_ns=rotate_ns, exact=True))["epoch"] == epoch


@pytest.mark.parametrize("exact", [False, True])
def test_common_server_ports_stay(exact: bool) -> None:
    """They tell the protocol, which the record says anyway."""
    for port in (80, 443):
        talk = Tcp(user(1), ports=(41234, port)).handshake().say(hello(SECRET)).close()
        outcome = run(talk.frames, z=2, exact=exact)
        assert outcome.flow["server_port"] == port
    assert run(Udp(user(1)).lookup(SECRET).frames, z=2, exact=exact).flow["server_port"] == 53


def test_z_1_hides_no_measurement() -> None:
    for status in STATUSES:
        outcome = outcome_with(status, "tls", z=1)
        told = record(outcome)
        assert told["t_start_ns"] == LATER
        assert (told["c_pkts"], told["s_bytes"], told["server_port"]) == (6, LENGTHS[1], PORTS[1])
        released = {"released": NAME.decode(), "suppressed": SECRET.decode()}
        assert told["name"] == released.get(status)
        assert told["client"] != user(77)


def test_a_name_in_a_quic_initial_is_withheld() -> None:
    initial = b"\xc3\x00\x00\x00\x01\x08" + bytes(8) + b"\x00\x00\x44\xd0" + bytes(1200)
    talk = Udp(ports=(40000, 443), t_ns=LATER).send(initial).send(initial, SERVER)
    outcome = run([*popular_server(), *talk.frames], z=2)
    told = record(outcome)
    assert (told["name_source"], told["name_status"]) == ("quic", "suppressed")
    assert (told["server"], told["c_bytes"]) == (None, rounded(len(initial)))
    line = outcome.log(UDP_COMPLETE)[-1]
    assert (line["s_ip"], line["quic_SNI"], line["c_durat"]) == ("-", "-", "0.000000")
    assert line["c_first_abs"] == f"{(LATER - LATER % MINUTE) // MS}.000000"


@pytest.mark.parametrize("answered", [True, False])
def test_names_of_homes_are_withheld(answered: bool) -> None:
    for name in (b"printer.local", b"1.0.0.10.in-addr.arpa", b"a.ip6.arpa", b"router.home.arpa"):
        talks = [
            (Udp(user(i), t_ns=START + i * SECOND).lookup(name)).frames[: 1 + answered]
            for i in range(4)
        ]
        outcome = run(merged(talks), z=2)
        assert not outcome.seen()
        assert {flow["name_status"] for flow in outcome.flows} == {"suppressed"}
        assert outcome.stats["suppressed_home_name"] == 4
        assert bool(run(merged(talks), z=1).seen()) is answered


def test_the_never_list_goes_by_labels() -> None:
    names = (b"example.org", b"www.example.org", b"badexample.org", b"example.org.test")
    frames = merged(crowd(name, 3, START + i * SECOND) for i, name in enumerate(names))
    outcome = run(frames, z=2, never=[b"example.org"])
    assert outcome.released() == {"badexample.org", "example.org.test"}
    assert outcome.stats["suppressed_never_list"] == 6
    hidden = [flow for flow in outcome.flows if flow["name_status"] == "suppressed"]
    assert all(flow["server"] is None for flow in hidden)


# ---- several names on one flow ------------------------------------------------------------------


def keep_alive(
    *hosts: bytes, client: str = user(77), t_ns: int = LATER, port: int = 41234
) -> list[Frame]:
    """One connection with a request to each host."""
    talk = Tcp(client, ports=(port, 80), t_ns=t_ns).handshake()
    for host in hosts:
        talk.say(request(host)).say(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", SERVER)
    return talk.close().frames


def test_two_hosts_on_one_connection() -> None:
    other = b"img.example.org"
    public = merged([crowd(NAME, 2, LATER - MINUTE), crowd(other, 2, LATER - MINUTE, first=10)])
    outcome = run([*public, *keep_alive(NAME, other)], z=2)
    assert [o["name"] for o in outcome.observations[-2:]] == [NAME.decode(), other.decode()]
    told = record(outcome)
    assert (told["name"], told["server"]) == (NAME.decode(), SERVER_ADDRESS)
    assert told["t_start_ns"] == LATER


def test_a_second_name_that_is_withheld_coarsens_the_record() -> None:
    outcome = run([*popular_server(), *keep_alive(NAME, SECRET)], z=2, keep_client_port=True)
    told = record(outcome)
    assert told["client_port"] == 0
    assert SECRET not in outcome.everything()
    assert (told["name"], told["server"]) == (NAME.decode(), None)
    assert told["t_start_ns"] == LATER - LATER % MINUTE
    assert outcome.observations[-1]["name"] == NAME.decode()


def test_a_first_name_that_is_withheld_is_not_replaced_by_the_second() -> None:
    outcome = run([*popular_server(), *keep_alive(SECRET, NAME)], z=2)
    told = record(outcome)
    assert SECRET not in outcome.everything()
    assert (told["name"], told["name_status"], told["server"]) == (None, "suppressed", None)
    assert tstat_line(outcome)["http_hostname"] == "-"
    assert outcome.observations[-1]["name"] == NAME.decode()


@pytest.mark.parametrize("z", [1, 2])
@pytest.mark.parametrize("answers", [(3, 2), (3, 2, 1), (2, 3), (1, 2)])
def test_the_first_name_is_told_whichever_of_its_questions_was_answered(
    z: int, answers: tuple[int, ...]
) -> None:
    """It was asked twice, for two types; between them the socket asked for a popular name."""
    asked = {1: SECRET, 2: NAME, 3: SECRET}
    talk = Udp(user(77), t_ns=LATER)
    for ident, name in asked.items():
        talk.send(dns(name, ident=ident, kind=ident))
    for ident in answers:
        talk.send(dns(asked[ident], ident=ident, kind=ident, response=True), SERVER)
    outcome = run([*popular_server(), *talk.frames], z=z)
    told = record(outcome)
    assert told["name"] == told["fqdn"] == (SECRET.decode() if z == 1 else None)
    assert told["name_status"] == ("released" if z == 1 else "suppressed")
    assert outcome.stats["names_repeated"] == 1


def test_more_names_than_a_flow_has_room_for() -> None:
    hosts = [b"h%d.example.org" % i for i in range(40)]
    before = LATER - MINUTE
    public = [
        keep_alive(*hosts[i : i + 10], client=user(78), t_ns=before, port=50000 + i)
        for i in range(0, 40, 10)
    ]
    outcome = run([*merged(public), *keep_alive(*hosts)], z=2)
    seen = [o["name"].encode() for o in outcome.observations]
    assert seen == hosts[:32]
    assert outcome.stats["suppressed_capacity"] == 8
    told = record(outcome)
    assert (told["name"], told["server"]) == ("h0.example.org", None)
    assert told["c_bytes"] == rounded(sum(len(request(host)) for host in hosts))
