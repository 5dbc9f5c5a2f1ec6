# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Lists of hostname suffixes: their files, and the look-up in the core against brute force."""

import hashlib
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import EVERY_CASE, each, examples

from zanon_net._core import ConfigError as CoreConfigError
from zanon_net._core import NameLists
from zanon_net.config.list_rules import ONLY, SKIP, core_categories, core_suffixes
from zanon_net.config.name_lists import (
    DEBIAN_SUFFIXES,
    EXCEPTION,
    INCLUDED,
    INCLUDED_FILE,
    PUBLIC,
    WILDCARD,
    NameList,
    default_suffixes,
    read_categories,
    read_only,
    read_skip,
    read_suffixes,
)
from zanon_net.config.settings import Config
from zanon_net.errors import ConfigError

RULES = b"com org uk co.uk io github.io jp *.kobe.jp !city.kobe.jp *.ck !www.ck"


def psl(rules: bytes = RULES) -> list[tuple[bytes, int, int]]:
    bits = {b"!": EXCEPTION, b"*": WILDCARD}
    return [(rule.lstrip(b"!*."), bits.get(rule[:1], PUBLIC), 0) for rule in rules.split()]


# ---- the registered domain -----------------------------------------------------------------------

DOMAINS = {
    b"com": None,
    b"example.com": b"example.com",
    b"a.b.example.com": b"example.com",
    b"co.uk": None,
    b"uk": None,
    b"example.uk": b"example.uk",
    b"a.example.co.uk": b"example.co.uk",
    b"github.io": None,
    b"alice.github.io": b"alice.github.io",
    b"a.alice.github.io": b"alice.github.io",
    b"kobe.jp": None,
    b"b.kobe.jp": None,
    b"a.b.kobe.jp": b"a.b.kobe.jp",
    b"x.a.b.kobe.jp": b"a.b.kobe.jp",
    b"city.kobe.jp": b"city.kobe.jp",
    b"a.city.kobe.jp": b"city.kobe.jp",
    b"ck": None,
    b"www.ck": b"www.ck",
    b"a.www.ck": b"www.ck",
    b"b.ck": None,
    b"a.b.ck": b"a.b.ck",
    b"example.test": None,
    b"test": None,
    b"xcom": None,
}


def test_the_domain_follows_the_rules() -> None:
    lists = NameLists(psl())
    assert {name: lists.look_up(name)[0] for name in DOMAINS} == DOMAINS
    assert NameLists([]).look_up(b"a.example.com") == (None, None, False, False)


def test_a_long_name_ends_the_walk_in_time() -> None:
    lists = NameLists(psl())
    deep = b".".join([b"a"] * 123) + b".com"
    assert len(deep) == 249
    assert lists.look_up(deep)[0] == b"a.com"
    assert lists.look_up(b"x" * 63 + b"." + b"y" * 63 + b".kobe.jp")[0] is not None


def suffix_file() -> Path:
    try:
        return default_suffixes().files[0].path
    except ConfigError:
        pytest.skip("needs publicsuffixlist or Debian's publicsuffix")


def test_the_lists_own_test_vectors() -> None:
    """The vectors are in the public domain; publicsuffixlist has the file."""
    package = pytest.importorskip("publicsuffixlist")
    folder = Path(package.__file__).parent
    text = (folder / "test_psl.txt").read_text("utf-8")
    lists = NameLists(core_suffixes(of(suffixes=read_suffixes("suffixes", Path(package.PSLFILE)))))
    vectors = re.findall(r"^checkPublicSuffix\('([^.'].*?)', (null|'.*?')\);", text, re.MULTILINE)
    tried = 0
    for name, wanted in vectors:
        wire = name.encode("idna").lower()
        if wire.rpartition(b".")[2] in (b"example", b"unlisted"):
            continue  # below no listed suffix: the core knows no domain
        domain = None if wanted == "null" else wanted[1:-1].encode("idna").lower()
        assert lists.look_up(wire)[0] == domain, name
        tried += 1
    assert tried > 60


def random_names(rules: list[str], number: int) -> Iterator[str]:
    source = random.Random(7)
    words = ["a", "b", "www", "example", "xn--p1ai", "city", "ck", "kobe", "x1"]
    for _ in range(number):
        labels = [source.choice(words) for _ in range(source.randrange(4))]
        rule = source.choice(rules).lstrip("!*.")
        cut = source.randrange(4)
        tail = rule.split(".")[1:] if cut == 0 else rule.split(".")
        yield ".".join([*labels, *tail]) or "a"


def test_the_domains_are_those_of_publicsuffixlist() -> None:
    package = pytest.importorskip("publicsuffixlist")
    listed = read_suffixes("suffixes", Path(package.PSLFILE))
    lists = NameLists(core_suffixes(of(suffixes=listed)))
    oracle = package.PublicSuffixList(accept_unknown=False)
    names = list(random_names(list(listed.values), 1_000_000 if EVERY_CASE else 50_000))
    found = lists.domains([name.encode() for name in names])
    known = 0
    for name, domain in zip(names, found, strict=True):
        wanted = oracle.privatesuffix(name)
        assert domain == (None if wanted is None else wanted.encode()), name
        known += wanted is not None
    assert len(names) // 2 < known < len(names)


# ---- lists and categories ------------------------------------------------------------------------

LABELS = st.sampled_from([b"a", b"b", b"c", b"com", b"org", b"co", b"uk"])
NAMES = st.lists(LABELS, min_size=1, max_size=5).map(b".".join)
ROWS = st.lists(
    st.tuples(
        NAMES, st.sampled_from([0, PUBLIC, WILDCARD, EXCEPTION, ONLY, SKIP]), st.integers(0, 2)
    )
)


def suffixes_of(name: bytes) -> list[bytes]:
    labels = name.split(b".")
    return [b".".join(labels[i:]) for i in range(len(labels))]


def brute_domain(rows: dict[bytes, int], name: bytes) -> bytes | None:
    """The domain by the algorithm on publicsuffix.org, with the suffix above a wildcard public."""
    endings = suffixes_of(name)
    for ending in reversed(endings):
        if rows.get(ending, 0) & EXCEPTION:
            # The shortest exception: everything below it is of the domain it begins.
            return ending
    public = [
        i
        for i, ending in enumerate(endings)
        if rows.get(ending, 0) & (PUBLIC | WILDCARD)
        or (i + 1 < len(endings) and rows.get(endings[i + 1], 0) & WILDCARD)
    ]
    return endings[min(public) - 1] if public and min(public) > 0 else None


def brute(rows: list[tuple[bytes, int, int]], skipped: list[bool], name: bytes) -> object:
    bits: dict[bytes, int] = {}
    category: dict[bytes, int] = {}
    for suffix, bit, number in rows:
        bits[suffix] = bits.get(suffix, 0) | bit
        if number:
            category[suffix] = number
    domain = brute_domain(bits, name)
    listed = [bits.get(suffix, 0) for suffix in suffixes_of(name)]
    numbers = [category[s] for s in suffixes_of(domain or name) if s in category]
    number = numbers[0] if numbers else 0
    skip = any(bit & SKIP for bit in listed) or (number != 0 and skipped[number - 1])
    named = [None, b"news", b"cdn"][number]
    return domain, named, any(bit & ONLY for bit in listed), skip


@settings(max_examples=examples(2000, 8))
@given(ROWS, st.lists(st.booleans(), min_size=2, max_size=2), st.lists(NAMES, min_size=1))
def test_look_up_is_brute_force(
    rows: list[tuple[bytes, int, int]], skipped: list[bool], names: list[bytes]
) -> None:
    lists = NameLists(rows, list(zip([b"news", b"cdn"], skipped, strict=True)))
    for name in names:
        assert lists.look_up(name) == brute(rows, skipped, name)


def test_a_category_below_its_domain_is_ignored_and_counted() -> None:
    rows = [(b"ads.example.com", 0, 2), (b"example.com", 0, 1), (b"cdn.test", 0, 2)]
    categories = [(b"news", False), (b"advertising", False)]
    lists = NameLists([*psl(), *rows], categories)
    assert lists.look_up(b"x.ads.example.com")[:2] == (b"example.com", b"news")
    assert lists.look_up(b"x.cdn.test")[:2] == (None, b"advertising")
    assert lists.ignored_categories == 1
    without = NameLists(rows, categories)
    assert without.look_up(b"x.ads.example.com")[:2] == (None, b"advertising")
    assert without.ignored_categories == 0


@each(
    "suffixes, categories",
    [
        ([(b"", 0, 0)], []),
        ([(b"x" * 254, 0, 0)], []),
        ([(b"a.test", 0, 1)], []),
        ([(b"a.test", 0, 1)], [(b"", False)]),
        ([(b"a.test", 0, 1)], [(b"x" * 65, False)]),
    ],
)
def test_the_core_refuses(suffixes: list[object], categories: list[object]) -> None:
    with pytest.raises(CoreConfigError):
        NameLists(suffixes, categories)


# ---- files ---------------------------------------------------------------------------------------


def of(**lists: NameList | None) -> dict[str, NameList | None]:
    return {"only": None, "skip": NameList(), "suffixes": None, "categories": NameList()} | lists


FORMATS = {
    "plain.txt": "# comment\nexample.com\n*.Example.org.  # another\n\n.example.net\n",
    "top.csv": "1,example.com\n2,example.org\r\n3,example.net\n",
    "hosts": "127.0.0.1 example.com example.org\n::1\texample.net ::1\n0.0.0.0 0.0.0.0\n",
    "domains": "example.com\n192.0.2.1\nexample.org\nexample.net\n",
}


@each("name", FORMATS)
def test_every_format_of_names(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(FORMATS[name])
    for listed in (read_only("only", str(path)), read_skip("skip", [str(path)])):
        assert set(listed.places) == {"example.com", "example.org", "example.net"}
        assert listed.shown() == [
            {"name": name, "rows": 3, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        ]
        assert listed.where("example.org").startswith(f"{path} line ")
    path.write_text(FORMATS[name] + "not a name\n")
    line = len(path.read_text().splitlines())
    with pytest.raises(ConfigError, match=f"^only: .*{name} line {line} is not a hostname suffix"):
        read_only("only", path)


def test_every_format_of_categories(tmp_path: Path) -> None:
    (tmp_path / "ut1/press").mkdir(parents=True)
    (tmp_path / "ut1/press/domains").write_text("example.com\n192.0.2.1\n")
    (tmp_path / "ut1/press/urls").write_text("example.com/path\n")
    (tmp_path / "ut1/social").mkdir()
    (tmp_path / "ut1/social/domains").write_text("example.org\n")
    (tmp_path / "ndpi").mkdir()
    (tmp_path / "ndpi/107_gambling.list").write_text("# nDPI\nexample.net\n")
    (tmp_path / "own.tsv").write_text("a.test\tnews\nb.test\tnews\n")
    places = [tmp_path / part for part in ("ut1", "ndpi", "own.tsv")]
    listed = read_categories("categories", places)
    assert listed.values == {
        "example.com": "press",
        "example.org": "social",
        "example.net": "gambling",
        "a.test": "news",
        "b.test": "news",
    }
    names = [entry["name"] for entry in listed.shown()]
    assert names == ["press/domains", "social/domains", "107_gambling.list", "own.tsv"]
    alone = read_categories("categories", [tmp_path / "ut1/press"])
    assert alone.values == {"example.com": "press"}
    assert core_categories(of(categories=alone, skip=NameList(categories=("press",)))) == [
        (b"press", True)
    ]


def test_the_included_list_is_well_formed() -> None:
    listed = read_categories("categories", [INCLUDED])
    kinds = {"advertising", "analytics", "cdn", "cloud", "news", "social", "video"}
    assert set(listed.values.values()) == kinds
    lines = INCLUDED_FILE.read_text("ascii").splitlines()[3:]
    assert lines == sorted(lines, key=lambda line: line.split("\t")[::-1])
    assert listed.shown()[0]["name"] == INCLUDED
    suffixes = read_suffixes("suffixes", suffix_file())
    lists = NameLists(core_suffixes(of(categories=listed, suffixes=suffixes)), [(b"x", False)] * 7)
    assert lists.ignored_categories == 0


def test_rules_are_a_labels(tmp_path: Path) -> None:
    path = tmp_path / "rules.dat"
    path.write_text("// a comment\ncom\nbücher extra words\n*.ck // wild\n!www.ck\nkö.bücher\n")
    listed = read_suffixes("suffixes", path)
    assert listed.values == {
        "com": PUBLIC,
        "xn--bcher-kva": PUBLIC,
        "ck": WILDCARD,
        "www.ck": EXCEPTION,
        "xn--k-1ga.xn--bcher-kva": PUBLIC,
    }
    assert listed.files[0].rows == 5


def test_the_default_list_is_the_packages_and_then_debians(monkeypatch: pytest.MonkeyPatch) -> None:
    found = suffix_file()
    if DEBIAN_SUFFIXES.exists():
        monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
        assert default_suffixes().files[0].path == DEBIAN_SUFFIXES
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    monkeypatch.setattr("zanon_net.config.name_lists.DEBIAN_SUFFIXES", Path("/nowhere"))
    assert found.exists()
    with pytest.raises(
        ConfigError, match=r"^levels: no suffix list found; install zanon-net\[suff"
    ):
        default_suffixes()


def test_errors_name_the_lines(tmp_path: Path) -> None:
    def file(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    top, skip = file("top", "1,a.test\n2,b.test\n"), file("skip", "x.test\nb.test\n")
    tabs, more = file("tabs", "a.test\tnews\n"), file("more", "x.test\tcdn\na.test\tcdn\n")
    cases: list[tuple[dict[str, object], str]] = [
        ({"only": top, "skip": [skip]}, "only: .*top line 2 is also .*skip line 2 of --skip"),
        ({"only": file("empty", "# none\n")}, "only: holds no hostname suffix"),
        ({"only": ["not a name"]}, "only: entry 1 is not a hostname suffix"),
        ({"only": str(tmp_path / "none")}, "only: cannot read .*none: No such file"),
        ({"skip": ["category:cdn"]}, "skip: category:cdn needs --categories"),
        (
            {"skip": ["category:new"], "categories": [tabs]},
            "skip: no suffix of --categories is in category:new; did you mean 'news'",
        ),
        ({"skip": ["category:a b"]}, "skip: a category is 1 to 64 printable"),
        ({"categories": [tabs, more]}, "categories: .*tabs line 1 and .*more line 2 give one"),
        ({"categories": [file("no-tab", "a.test news\n")]}, "categories: .*no-tab line 1 is not"),
        ({"categories": [file("bad", "a.test\tne:ws\n")]}, "categories: .*bad line 1: a category"),
        ({"categories": [file("quote", 'a.test\t"\n')]}, "categories: .*quote line 1: a category"),
        ({"categories": [str(tmp_path)]}, "categories: .* is a folder without"),
        ({"suffixes": file("rules", "com\na b c\n*.*.x\n")}, "suffixes: .*rules line 3 is not"),
        ({"suffixes": file("nothing", "// com\n")}, "suffixes: .*nothing holds no rule"),
    ]
    for given_settings, message in cases:
        with pytest.raises(ConfigError, match=message):
            Config(**given_settings)  # type: ignore[arg-type]


def test_paths_in_a_configuration_file_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "top").write_text("a.test\n")
    (tmp_path / "kinds").write_text("b.test\tcdn\n")
    (tmp_path / "run.toml").write_text(
        '[anonymity]\nonly = "top"\nskip = ["category:cdn"]\ncategories = ["kinds", "included"]\n'
    )
    config = Config.load(tmp_path / "run.toml")
    shown = config.to_dict()["anonymity"]
    assert shown["only"]["suffixes"] == 1
    assert shown["skip"]["categories"] == ["cdn"]
    assert [entry["name"] for entry in shown["categories"]] == ["kinds", "included"]
    assert "a.test" not in str(shown)
    assert Config().to_dict()["anonymity"]["only"] is None
