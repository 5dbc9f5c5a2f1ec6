# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Logs of Zeek through `filter --preset zeek-*`: what a row may say, and headers."""

import ipaddress

import pytest
from support.filter import faults, open_row_filter
from support.logs import (
    FIELDS,
    NAMES,
    START,
    anonymize,
    json_rows,
    row_of,
    tsv_header,
    tsv_rows,
    zeek_json,
    zeek_tsv,
)

from zanon_net._core import LOG_PRESETS
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.config.log_rules import PRESETS
from zanon_net.errors import ConfigError, FormatError
from zanon_net.rows.report import FilterReport, RowTotals, build_filter_manifest

NAMED = [preset for preset in FIELDS if preset != "zeek-conn"]
SERVERS = dict.fromkeys(NAMED, "popular.example") | {"zeek-conn": "203.0.113.5"}


def shared(preset: str, **more: str) -> list[dict[str, str]]:
    """Two rows of two users with one name."""
    clients = ("10.0.0.1", "10.0.0.2")
    return [row_of(preset, i, client, SERVERS[preset], **more) for i, client in enumerate(clients)]


def test_the_presets_are_the_presets_of_the_core() -> None:
    assert tuple(LOG_PRESETS) == PRESETS


@pytest.mark.parametrize("preset", FIELDS)
@pytest.mark.parametrize("make", [zeek_tsv, zeek_json])
def test_a_name_that_z_users_share_leaves_with_its_row(preset: str, make: object) -> None:
    rows = shared(preset)
    rows.append(row_of(preset, 3, "10.0.0.3", "rare.example" if preset in NAMED else "192.0.2.9"))
    out, row_filter = anonymize(make(preset, rows), preset)  # type: ignore[operator]
    assert faults(row_filter) == {}
    left = tsv_rows(out) if make is zeek_tsv else json_rows(out)
    assert [row[NAMES[preset]] for row in left] == [SERVERS[preset]]
    assert left[0]["ts"] in (f"{START + 1}.500000", START + 1.5)
    assert left[0]["id.orig_p"] in ("0", 0)
    assert ipaddress.ip_address(left[0]["id.orig_h"]) != ipaddress.ip_address("10.0.0.2")
    assert "uid" not in left[0] or left[0]["uid"] == "-"
    assert row_filter.table_stats["released"] == 1
    assert row_filter.table_stats["below_z"] == 2


@pytest.mark.parametrize("preset", FIELDS)
def test_the_header_is_written_again(preset: str) -> None:
    data = zeek_tsv(preset, shared(preset))
    out, _row_filter = anonymize(data, preset)
    given = [line for line in data.decode().splitlines() if line.startswith("#")]
    assert [line for line in out.splitlines() if line.startswith("#")] == given
    assert out.splitlines()[-1].startswith("#close")
    empty, _row_filter = anonymize(zeek_tsv(preset, []), preset)
    assert empty.splitlines() == given


@pytest.mark.parametrize("separator", ["\t", ",", "|", ";", " "])
def test_other_separators(separator: str) -> None:
    data = zeek_tsv("zeek-dns", shared("zeek-dns"), separator)
    out, _row_filter = anonymize(data, "zeek-dns")
    assert [row["query"] for row in tsv_rows(out, separator)] == ["popular.example"]


def test_a_concatenated_log_has_its_header_once_and_a_new_header_again() -> None:
    data = zeek_tsv("zeek-dns", shared("zeek-dns"))
    out, _row_filter = anonymize(data + data, "zeek-dns")
    assert out.count("#fields") == out.count("#close") == 1
    other = tsv_header(("query", "rcode", "id.orig_h", "id.resp_h", "ts"), "dns")
    other += f"popular.example\t0\t10.0.0.9\t-\t{START + 5}.0\n"
    out, _row_filter = anonymize(data + other.encode() + data, "zeek-dns")
    assert out.count("#fields") == 3
    assert out.count("#close") == 2
    assert [row["query"] for row in tsv_rows(out)] == ["popular.example"] * 2
    out, _row_filter = anonymize([data, other.encode()], "zeek-dns")
    assert [row["query"] for row in tsv_rows(out)] == ["popular.example"] * 2


def test_columns_that_are_not_known_are_unset() -> None:
    fields = ("ts", "id.orig_h", "id.resp_h", "query", "rcode", "community_id", "secret", "vlan")
    rows = "".join(
        f"{START}.0\t10.0.0.{i}\t-\ta.example\t0\t1:secret\tsecret\t17\n" for i in (1, 2)
    )
    out, _row_filter = anonymize((tsv_header(fields, "dns") + rows).encode(), "zeek-dns")
    assert "secret" not in out.splitlines()[-1]
    assert tsv_rows(out)[0]["vlan"] == "-"
    json_row = (
        '{"ts":1.5,"id.orig_h":"10.0.0.%d","query":"a.example","rcode":0,"x":{"y":["secret"]}}'
    )
    out, _row_filter = anonymize("\n".join(json_row % i for i in (1, 2)).encode(), "zeek-dns")
    assert sorted(json_rows(out)[0]) == ["id.orig_h", "query", "rcode", "ts"]


def test_a_log_may_have_more_columns_than_the_preset_knows() -> None:
    more = [f"x{i}" for i in range(150)]
    fields = ("ts", "id.orig_h", *more, "query", "rcode")
    values = "\t".join("secret" for _ in more)
    rows = "".join(f"{START}.0\t10.0.0.{i}\t{values}\ta.example\t0\n" for i in (1, 2))
    out, _row_filter = anonymize((tsv_header(fields, "dns") + rows).encode(), "zeek-dns")
    (row,) = tsv_rows(out)
    assert row["query"] == "a.example"
    assert {row[name] for name in more} == {"-"}


def test_a_header_without_end_is_refused() -> None:
    """Lines of a header are kept until the rows come, so their number has a bound."""
    head = tsv_header(("ts", "id.orig_h", "query", "rcode"), "dns").encode()
    with pytest.raises(FormatError, match="the header is longer than 1 MiB"):
        anonymize(head + b"#set_separator\t,\n" * 80_000, "zeek-dns")


@pytest.mark.parametrize("name", ["-", "(empty)"])
def test_marks_of_no_value_are_no_names(name: str) -> None:
    rows = [row_of("zeek-ssl", i, f"10.0.0.{i}", name) for i in range(1, 5)]
    out, row_filter = anonymize(zeek_tsv("zeek-ssl", rows), "zeek-ssl", strict=True)
    assert tsv_rows(out) == []
    assert row_filter.reasons["no_attribute"] == 4


@pytest.mark.parametrize(
    ("preset", "field", "value"),
    [
        ("zeek-dns", "rcode", "-"),
        ("zeek-ssl", "established", "F"),
        ("zeek-ssl", "established", "-"),
        ("zeek-http", "status_code", "-"),
        ("zeek-quic", "history", "IS"),
        ("zeek-quic", "history", "IH"),
        ("zeek-conn", "conn_state", "S0"),
        ("zeek-conn", "conn_state", "OTH"),
    ],
)
def test_a_row_without_evidence_does_not_vote(preset: str, field: str, value: str) -> None:
    rows = shared(preset, **{field: value}) + shared(preset)[1:]
    out, row_filter = anonymize(zeek_tsv(preset, rows), preset)
    assert tsv_rows(out) == []
    assert row_filter.reasons["unconfirmed"] == 2
    out, _row_filter = anonymize(zeek_tsv(preset, rows), preset, evidence="any")
    assert len(tsv_rows(out)) == 2


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("1.0.0.10.in-addr.arpa", "home"),
        ("printer.local", "home"),
        ("192.0.2.1", "invalid"),
        ("a\\x09b.example", "invalid"),
        ("*", "invalid"),
        ("www.clinic.example", "never"),
    ],
)
def test_names_that_are_never_released(name: str, reason: str) -> None:
    rows = [row_of("zeek-dns", i, f"10.0.0.{i}", name) for i in range(1, 5)]
    out, row_filter = anonymize(zeek_tsv("zeek-dns", rows), "zeek-dns", never=["clinic.example"])
    assert tsv_rows(out) == []
    assert row_filter.reasons[reason] == 4


def test_names_are_counted_in_one_form() -> None:
    rows = [
        row_of("zeek-http", 1, "10.0.0.1", "WWW.Example.com:8080"),
        row_of("zeek-http", 2, "10.0.0.2", "www.example.com."),
    ]
    out, _row_filter = anonymize(zeek_tsv("zeek-http", rows), "zeek-http")
    assert [row["host"] for row in tsv_rows(out)] == ["www.example.com"]


def test_a_server_is_shown_only_if_z_users_share_its_address() -> None:
    rows = shared("zeek-ssl")
    rows[1]["id.resp_h"] = "198.51.100.8"
    rows.append(row_of("zeek-ssl", 3, "10.0.0.3", "popular.example"))
    left = tsv_rows(anonymize(zeek_tsv("zeek-ssl", rows), "zeek-ssl")[0])
    assert [row["id.resp_h"] for row in left] == ["-", "198.51.100.7"]


def test_addresses_of_clients_and_of_internal_servers_leave_as_pseudonyms() -> None:
    rows = [row_of("zeek-ssl", i, f"10.0.0.{i}", "intra.example") for i in range(1, 4)]
    for row in rows:
        row["id.resp_h"] = "10.9.9.9"
    left = tsv_rows(anonymize(zeek_tsv("zeek-ssl", rows), "zeek-ssl")[0])
    assert len(left) == 2
    assert len({row["id.resp_h"] for row in left}) == 1
    assert "10.9.9.9" not in {row["id.resp_h"] for row in left}
    external = [
        row_of("zeek-ssl", 9, "203.0.113.9", "popular.example", **{"id.resp_h": "192.0.2.1"})
    ]
    for i in (1, 2):
        external.append(
            row_of(
                "zeek-ssl",
                9 + i,
                f"203.0.113.{i}",
                "popular.example",
                **{"id.resp_h": "203.0.113.9"},
            )
        )
    left = tsv_rows(anonymize(zeek_tsv("zeek-ssl", external), "zeek-ssl")[0])
    assert len(left) == 2
    assert "203.0.113.9" not in {row["id.resp_h"] for row in left}


def test_a_client_from_outside_does_not_vote_for_an_internal_server() -> None:
    rows = [row_of("zeek-http", i, f"203.0.113.{i}", "intra.example") for i in range(1, 5)]
    for row in rows:
        row["id.resp_h"] = "10.0.0.1"
    out, row_filter = anonymize(zeek_tsv("zeek-http", rows), "zeek-http", suppressed="blank")
    assert tsv_rows(out) == []
    assert row_filter.reasons["outside"] == 4


def test_with_internal_networks_other_clients_are_no_users() -> None:
    rows = [row_of("zeek-http", i, f"203.0.113.{i}", "a.example") for i in range(1, 5)]
    data = zeek_tsv("zeek-http", rows)
    assert len(tsv_rows(anonymize(data, "zeek-http")[0])) == 3
    assert len(tsv_rows(anonymize(data, "zeek-http", internal="203.0.113.0/24")[0])) == 3
    assert tsv_rows(anonymize(data, "zeek-http", internal="10.0.0.0/8")[0]) == []


def test_one_user_has_one_prefix() -> None:
    rows = [row_of("zeek-dns", i, f"2001:db8::{i}", "a.example") for i in range(1, 4)]
    data = zeek_tsv("zeek-dns", rows)
    assert tsv_rows(anonymize(data, "zeek-dns")[0]) == []
    left = tsv_rows(anonymize(data, "zeek-dns", user_prefix="32,128")[0])
    assert len(left) == 2
    assert ":" in left[0]["id.orig_h"]


def test_user_agents_and_certificates_vote_for_themselves() -> None:
    rows = shared("zeek-http", user_agent="Mozilla/5.0")
    rows.append(row_of("zeek-http", 3, "10.0.0.3", "popular.example", user_agent="Rare/1"))
    left = tsv_rows(anonymize(zeek_tsv("zeek-http", rows), "zeek-http")[0])
    assert [row["user_agent"] for row in left] == ["Mozilla/5.0", "-"]
    rows = shared("zeek-ssl", subject="CN=popular")
    left = tsv_rows(anonymize(zeek_tsv("zeek-ssl", rows), "zeek-ssl")[0])
    assert [row["subject"] for row in left] == ["CN=popular"]


@pytest.mark.parametrize("make", [zeek_tsv, zeek_json])
def test_a_blanked_row_is_coarse(make: object) -> None:
    rows = [row_of("zeek-http", 50, "10.0.0.1", "rare.example", response_body_len="1025")]
    rows[0]["user_agent"], rows[0]["uri"] = "Rare/1", "/secret"
    data = make("zeek-http", rows)  # type: ignore[operator]
    out, _row_filter = anonymize(data, "zeek-http", suppressed="blank")
    left = tsv_rows(out) if make is zeek_tsv else json_rows(out)
    minute = (START + 50) // 60 * 60
    shown = {key: value for key, value in left[0].items() if value != "-"}
    expected = {
        "ts": f"{minute}.000000",
        "id.orig_p": "0",
        "id.resp_p": "443",
        "response_body_len": "4096",
    }
    if make is zeek_json:
        expected = {key: float(value) for key, value in expected.items()}
    assert shown == expected


@pytest.mark.parametrize("size", [0, 1, 2, 4, 5, 16, 17, 4**16, 4**16 + 1, 2**64 - 1])
def test_counts_are_rounded_up_to_a_power_of_4(size: int) -> None:
    power = 0 if size == 0 else 1
    while 0 < power < size:
        power *= 4
    rows = [row_of("zeek-http", 50, "10.0.0.1", "rare.example", response_body_len=str(size))]
    out, _row_filter = anonymize(zeek_tsv("zeek-http", rows), "zeek-http", suppressed="blank")
    assert tsv_rows(out)[0]["response_body_len"] == str(min(power, 2**64 - 1))


def test_a_time_in_iso_8601_keeps_its_form() -> None:
    row = '{"ts":"2026-01-02T03:04:05.678901+01:30","id.orig_h":"10.0.0.%d",'
    row += '"query":"a.example","rcode":0}'
    data = "\n".join(row % i for i in (1, 2)).encode()
    out, _row_filter = anonymize(data, "zeek-dns", suppressed="blank")
    times = [member["ts"] for member in json_rows(out)]
    assert times == ["2026-01-02T03:04:05.678901+01:30", "2026-01-02T03:04:00.000000+01:30"]


def test_coarse_rows_leave_after_their_minute_in_an_order_of_their_own() -> None:
    first = START // 60 * 60 + 60 - START  # seconds from the start to a full minute
    rows = [row_of("zeek-ssl", first + i, f"10.0.0.{i}", "popular.example") for i in (1, 9, 59)]
    for i, (size, name) in enumerate([("443", "x.example"), ("80", "y.example")] * 2):
        rows.append(row_of("zeek-ssl", first + 2 * i + 2, "10.0.0.7", name, **{"id.resp_p": size}))
    rows.append(row_of("zeek-ssl", first + 61, "10.0.0.1", "popular.example"))
    rows.append(row_of("zeek-ssl", first + 62, "10.0.0.7", "z.example"))
    rows.sort(key=lambda row: row["ts"])
    out, _row_filter = anonymize(zeek_tsv("zeek-ssl", rows), "zeek-ssl", suppressed="blank")
    left = [(row["server_name"], row["id.resp_p"], row["ts"][:10]) for row in tsv_rows(out)]
    minute = START + first
    assert left == [
        ("popular.example", "443", str(minute + 9)),
        ("popular.example", "443", str(minute + 59)),
        ("-", "443", str(minute)),
        ("-", "443", str(minute)),
        ("-", "443", str(minute)),
        ("-", "80", str(minute)),
        ("-", "80", str(minute)),
        ("popular.example", "443", str(minute + 61)),
        ("-", "443", str(minute + 60)),
    ]


@pytest.mark.parametrize(("most", "width"), [(1 << 18, 1), (65, (1 << 20) - 200)])
def test_too_many_coarse_rows_leave_at_once_and_are_counted(most: int, width: int) -> None:
    row = row_of("zeek-dns", 0, "10.0.0.7", "secret.example", proto="u" * width)
    *head, line, _close = zeek_tsv("zeek-dns", [row]).splitlines(keepends=True)
    row_filter = open_row_filter(preset="zeek-dns", z=2, suppressed="blank", time_unit="iso")
    row_filter.feed(b"".join(head) + line * most)
    assert row_filter.stats["hold_full"] == 0
    assert row_filter.take() == b"".join(head)
    row_filter.feed(line)
    assert row_filter.take().count(b"\n") == most
    row_filter.finish()
    assert row_filter.take().count(b"\n") == 1
    totals = RowTotals.of(row_filter)
    manifest = build_filter_manifest(FilterConfig(), totals, [], interrupted=False)
    assert manifest["rows"]["hold_full"] == most
    assert manifest["rows"]["written"] == most + 1
    line = f"{most:,}  coarse rows that left before their minute ended"
    assert line in FilterReport(manifest, totals, 1.0).summary()


def test_no_user_leaves_out_the_client() -> None:
    left = tsv_rows(
        anonymize(zeek_tsv("zeek-ssl", shared("zeek-ssl")), "zeek-ssl", no_user=True)[0]
    )
    assert left[0]["id.orig_h"] == "-"


def test_z_1_writes_every_row_with_pseudonyms() -> None:
    rows = [*shared("zeek-ssl"), row_of("zeek-ssl", 9, "10.0.0.7", "-", version="TLSv13")]
    left = tsv_rows(anonymize(zeek_tsv("zeek-ssl", rows), "zeek-ssl", z=1)[0])
    assert [row["server_name"] for row in left] == ["popular.example"] * 2 + ["-"]
    assert [row["version"] for row in left][2] == "TLSv13"
    assert not {row["id.orig_h"] for row in left} & {row["id.orig_h"] for row in rows}


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("a\tb", "columns"),
        (f"{START}.0\tC\tnot an address\t1\t-\t1\tudp\ta.example\tA\t0\t-", "address"),
        (f"{START}.0\tC\t-\t1\t-\t1\tudp\ta.example\tA\t0\t-", "address"),
        ("XXXXXXXXXX.XXXXXX\tC\t10.0.0.1\t1\t-\t1\tudp\ta.example\tA\t0\t-", "time"),
        ("-\tC\t10.0.0.1\t1\t-\t1\tudp\ta.example\tA\t0\t-", "missing"),
        (f"{START}.0\tC\t10.0.0.1\t1\t-\t1\tudp\ta\x01.example\tA\t0\t-", "control"),
    ],
)
def test_rows_that_cannot_be_read_are_counted(line: str, fault: str) -> None:
    data = zeek_tsv("zeek-dns", shared("zeek-dns")) + line.encode() + b"\n"
    out, row_filter = anonymize(data, "zeek-dns")
    assert faults(row_filter) == {fault: 1}
    assert len(tsv_rows(out)) == 1
    with pytest.raises(FormatError, match="line 12: "):
        anonymize(data, "zeek-dns", strict=True)


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("#separator \\x41\n", "the separator is not a tab"),
        ("#separator \\x01\n", "the separator is not a tab"),
        ("#separator \\x09\n1\t2\n", "rows come before a line of #fields"),
        ("#fields\tts\tts\tid.orig_h\n", "the header has a column twice"),
        (tsv_header(("ts", "id.orig_h", "query"), "dns") + "#types\tx\n", "as many types"),
        ("#separator \\x09\n#unset_field\t" + "x" * 33 + "\n", "the mark of unset"),
        ("ts\tquery\n", "rows come before a line of #fields"),
    ],
)
def test_a_broken_header_is_refused(head: str, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        anonymize(head.encode(), "zeek-dns")


def test_the_log_of_another_preset_is_refused() -> None:
    data = zeek_tsv("zeek-conn", shared("zeek-conn"))
    with pytest.raises(ConfigError, match=r"line 5: this is another log of Zeek; .*zeek-conn"):
        anonymize(data, "zeek-dns")
    with pytest.raises(ConfigError, match="line 7: the header has no column 'query'"):
        anonymize(data.replace(b"#path\tconn", b"#path\tmine"), "zeek-dns")


def test_tsv_and_json_are_not_mixed() -> None:
    rows = shared("zeek-dns")
    with pytest.raises(FormatError, match="TSV and JSON Lines"):
        anonymize([zeek_tsv("zeek-dns", rows), zeek_json("zeek-dns", rows)], "zeek-dns")


@pytest.mark.parametrize("size", [1, 7, 64])
def test_portions_do_not_matter(size: int) -> None:
    from support.filter import open_row_filter

    data = zeek_tsv("zeek-dns", shared("zeek-dns") * 3)
    options = {"no_user": True, "suppressed": "blank"}
    whole, _row_filter = anonymize(data, "zeek-dns", **options)
    row_filter = open_row_filter(preset="zeek-dns", z=2, time_unit="iso", **options)
    for at in range(0, len(data), size):
        row_filter.feed(data[at : at + size])
    row_filter.end()
    row_filter.finish()
    assert row_filter.take().decode() == whole


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"preset": "zeek-dns", "attribute": "query"}, "^attribute: --preset zeek-dns fixes"),
        ({"preset": "zeek-dns", "passed": ["uid"]}, "^pass: --preset"),
        ({"preset": "zeek-dns", "null": ["-"]}, "^null: --preset"),
        ({"evidence": "any"}, "^evidence: is for logs of other tools"),
        ({"internal": "any"}, "^internal: is for logs of other tools"),
        ({"preset": "zeek"}, "^preset: must be one of zeek-conn, "),
    ],
)
def test_settings_that_contradict_a_preset_are_refused(
    options: dict[str, object], problem: str
) -> None:
    from zanon_net.config.filter_settings import FilterConfig

    with pytest.raises(ConfigError, match=problem):
        FilterConfig(**options)  # type: ignore[arg-type]
