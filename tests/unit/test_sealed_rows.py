# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rows sealed to a reader, beside X25519, HKDF and AES-GCM of `cryptography`."""

import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from hypothesis import given
from hypothesis import strategies as st
from oracle.sealed_rows import CLASSES, Place, message_key, seal, unseal

from zanon_net import _core
from zanon_net.errors import ConfigError, FormatError

NONE = bytes(12)
MESSAGE = Place(probe=0x0123456789ABCDEF, shard=7, sequence=99, number=0)
ROW = b'{"t_ns":1,"client":"10.0.0.1","name":"canary.example","name_source":"tls"}'


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a reader's secret key, with the public one beside it."""
    path = tmp_path_factory.mktemp("reader") / "reader"
    secret, public = _core.reader_key_new()
    path.write_bytes(secret)
    path.chmod(0o600)
    path.with_suffix(".pub").write_bytes(public)
    return path


def public_key(reader: Path) -> bytes:
    return _core.reader_public_key(reader.with_suffix(".pub").read_bytes())


def private_key(reader: Path) -> X25519PrivateKey:
    key = load_pem_private_key(reader.read_bytes(), None)
    assert isinstance(key, X25519PrivateKey)
    return key


def place_of(number: int) -> Place:
    return MESSAGE._replace(number=number)


def message_of(votes: int) -> bytes:
    """A plain message with so many votes, at MESSAGE."""
    writer = _core.VoteWriter(MESSAGE.probe, MESSAGE.shard, 1, sequence=MESSAGE.sequence)
    for user in range(votes):
        writer.add(1, 1000, user, 2, 3)
    return writer.finish(2000)


def sealed_by(reader: Path, rows: list[bytes | None]) -> tuple[bytes, list[bytes]]:
    """The probe's key, and the sealed rows."""
    sealer = _core.RowSealer(public_key(reader))
    rows_of = _core.VoteRows(sealer.attach(message_of(len(rows)), rows))
    assert rows_of.flag == _core.VOTE_ROWS["sealed"]
    assert rows_of.key == MESSAGE[:3]
    return rows_of.prefix, rows_of.attachments()


def opened_by(reader: Path, key: bytes, place: Place, sealed: bytes) -> bytes | None:
    opener = _core.RowOpener(reader)
    return opener.unseal(key, place.probe, place.shard, place.sequence, place.number, sealed)


def test_the_files_are_those_of_other_programs(reader: Path) -> None:
    public = load_pem_public_key(reader.with_suffix(".pub").read_bytes())
    assert public == private_key(reader).public_key()
    assert public_key(reader) == private_key(reader).public_key().public_bytes_raw()


@pytest.mark.parametrize("n", [0, 1, 126, 127, 254, 255, 1000, 4094])
def test_another_implementation_opens_what_is_sealed(reader: Path, n: int) -> None:
    row = os.urandom(n)
    probe_key, (first, second, third) = sealed_by(reader, [None, row, row])
    key = message_key(private_key(reader), probe_key, public_key(reader), MESSAGE)
    assert (first, len(second)) == (b"", min(size for size in CLASSES if size >= n + 2) + 16)
    assert unseal(key, NONE, place_of(1), second) == row
    assert unseal(key, NONE, place_of(2), third) == row
    assert second != third


def test_rows_of_another_implementation_open(reader: Path) -> None:
    own = X25519PrivateKey.generate()
    public = own.public_key().public_bytes_raw()
    key = message_key(own, public_key(reader), public_key(reader), MESSAGE)
    assert opened_by(reader, public, place_of(5), seal(key, NONE, place_of(5), ROW)) == ROW


def test_names_of_usual_lengths_have_one_length() -> None:
    rows = [ROW.replace(b"canary.example", b"a" * n) for n in range(1, 64)]
    sizes = {_core.sealed_row_bytes(len(row)) for row in rows}
    assert sizes == {144}


@pytest.mark.parametrize("field", Place._fields)
def test_a_row_opens_in_its_place_only(reader: Path, field: str) -> None:
    probe_key, (sealed,) = sealed_by(reader, [ROW])
    assert opened_by(reader, probe_key, MESSAGE, sealed) == ROW
    moved = MESSAGE._replace(**{field: getattr(MESSAGE, field) + 1})
    assert opened_by(reader, probe_key, moved, sealed) is None


def test_each_interval_has_a_key_of_its_own(reader: Path) -> None:
    sealer = _core.RowSealer(public_key(reader))
    first, again = (_core.VoteRows(sealer.attach(message_of(1), [ROW])) for _ in range(2))
    sealer.renew()
    later = _core.VoteRows(sealer.attach(message_of(1), [ROW]))
    assert first.message == again.message
    assert first.prefix != later.prefix
    assert first.attachments() != later.attachments()


@given(data=st.data())
def test_a_changed_row_does_not_open(reader: Path, data: st.DataObject) -> None:
    probe_key, (sealed,) = sealed_by(reader, [ROW])
    what = data.draw(st.sampled_from(["flip", "cut", "longer", "key"]))
    key = bytearray(probe_key)
    changed = bytearray(sealed)
    if what == "flip":
        changed[data.draw(st.integers(0, len(sealed) - 1))] ^= data.draw(st.integers(1, 255))
    elif what == "cut":
        del changed[data.draw(st.integers(0, len(sealed) - 1)) :]
    elif what == "longer":
        changed += data.draw(st.binary(min_size=1, max_size=300))
    else:
        key[data.draw(st.integers(0, 30))] ^= data.draw(st.integers(1, 255))
    assert opened_by(reader, bytes(key), MESSAGE, bytes(changed)) is None


@given(noise=st.binary(max_size=5000), key=st.binary(min_size=32, max_size=32))
def test_noise_does_not_open(reader: Path, noise: bytes, key: bytes) -> None:
    assert opened_by(reader, key, MESSAGE, noise) is None


def test_another_reader_opens_nothing(reader: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(_core.reader_key_new()[0])
    other.chmod(0o600)
    probe_key, (sealed,) = sealed_by(reader, [ROW])
    assert opened_by(other, probe_key, MESSAGE, sealed) is None


def test_a_row_that_is_too_long_is_refused(reader: Path) -> None:
    with pytest.raises(ConfigError, match="4095 bytes"):
        sealed_by(reader, [bytes(4095)])


# ---- messages -----------------------------------------------------------------------------------


def test_the_message_without_its_rows_is_the_plain_one(reader: Path) -> None:
    plain = message_of(3)
    sealer = _core.RowSealer(public_key(reader))
    with_rows = sealer.attach(plain, [ROW, None, b""])
    assert _core.VoteRows.are_in(with_rows)
    assert not _core.VoteRows.are_in(plain)
    assert _core.VoteRows(with_rows).plain() == plain
    with pytest.raises(FormatError):
        _core.read_votes(with_rows)  # who does not know rows refuses them


def test_a_message_of_no_votes_may_have_a_section(reader: Path) -> None:
    rows = _core.VoteRows(_core.RowSealer(public_key(reader)).attach(message_of(0), []))
    assert (rows.attachments(), rows.plain()) == ([], message_of(0))


def test_rows_must_be_as_many_as_votes(reader: Path) -> None:
    with pytest.raises(ValueError, match="2 rows for 1 votes"):
        _core.RowSealer(public_key(reader)).attach(message_of(1), [ROW, ROW])


@given(data=st.data())
def test_a_changed_message_is_refused(reader: Path, data: st.DataObject) -> None:
    message = bytearray(_core.RowSealer(public_key(reader)).attach(message_of(2), [ROW, None]))
    if data.draw(st.booleans()):
        del message[data.draw(st.integers(0, len(message) - 1)) :]
    else:
        message[data.draw(st.integers(0, len(message) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(FormatError):
        _core.VoteRows(bytes(message))


# ---- key files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "does not hold a reader's public key"),
        (b"x" * 511, "does not hold a reader's public key"),
        (b"x" * 5000, "does not hold a reader's public key"),
        (b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "public key"),
    ],
)
def test_other_texts_are_no_public_key(content: bytes, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        _core.reader_public_key(content)


def test_a_secret_key_in_place_of_the_public_one_is_named(reader: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"secret key: give the file beside it that ends in \.pub"
    ):
        _core.reader_public_key(reader.read_bytes())


def test_points_of_small_order_are_refused() -> None:
    for point in (bytes(32), b"\1" + bytes(31)):
        with pytest.raises(ConfigError, match="usable point"):
            _core.RowSealer(point)


def test_a_secret_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "open"
    path.write_bytes(_core.reader_key_new()[0])
    path.chmod(0o640)
    with pytest.raises(ConfigError, match=r"reader key file .* is open to other users"):
        _core.RowOpener(path)


def test_other_files_are_no_secret_key(reader: Path, tmp_path: Path) -> None:
    path = tmp_path / "wrong"
    for content in (b"", reader.with_suffix(".pub").read_bytes(), b"\xff" * 2000):
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(ConfigError, match="does not hold a reader's secret key"):
            _core.RowOpener(path)
