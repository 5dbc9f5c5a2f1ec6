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
from oracle.sealed_rows import CLASSES, Place, attachments, message_key, seal, unseal

from zanon_net import _core
from zanon_net.errors import ConfigError

NONE = bytes(12)
MESSAGE = Place(probe=0x0123456789ABCDEF, shard=7, sequence=99, index=0)
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


def place_of(index: int) -> Place:
    return MESSAGE._replace(index=index)


def sealed_by(reader: Path, rows: list[bytes | None]) -> bytes:
    sealer = _core.RowSealer(public_key(reader))
    return sealer.seal(MESSAGE.probe, MESSAGE.shard, MESSAGE.sequence, rows)


def opened_by(reader: Path, key: bytes, place: Place, sealed: bytes) -> bytes | None:
    opener = _core.RowOpener(reader)
    return opener.unseal(key, place.probe, place.shard, place.sequence, place.index, sealed)


def test_the_files_are_those_of_other_programs(reader: Path) -> None:
    public = load_pem_public_key(reader.with_suffix(".pub").read_bytes())
    assert public == private_key(reader).public_key()
    assert public_key(reader) == private_key(reader).public_key().public_bytes_raw()


@pytest.mark.parametrize("n", [0, 1, 126, 127, 254, 255, 1000, 4094])
def test_another_implementation_opens_what_is_sealed(reader: Path, n: int) -> None:
    row = os.urandom(n)
    section = sealed_by(reader, [None, row, row])
    first, second, third = attachments(section)
    key = message_key(private_key(reader), section[:32], public_key(reader), MESSAGE)
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
    section = sealed_by(reader, [ROW])
    (sealed,) = attachments(section)
    assert opened_by(reader, section[:32], MESSAGE, sealed) == ROW
    moved = MESSAGE._replace(**{field: getattr(MESSAGE, field) + 1})
    assert opened_by(reader, section[:32], moved, sealed) is None


def test_each_interval_has_a_key_of_its_own(reader: Path) -> None:
    sealer = _core.RowSealer(public_key(reader))
    first = sealer.seal(*MESSAGE[:3], [ROW])
    again = sealer.seal(*MESSAGE[:3], [ROW])
    sealer.renew()
    later = sealer.seal(*MESSAGE[:3], [ROW])
    assert first == again
    assert first[:32] != later[:32]
    assert attachments(first) != attachments(later)


@given(data=st.data())
def test_a_changed_row_does_not_open(reader: Path, data: st.DataObject) -> None:
    section = sealed_by(reader, [ROW])
    (sealed,) = attachments(section)
    what = data.draw(st.sampled_from(["flip", "cut", "longer", "key"]))
    key = bytearray(section[:32])
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
    section = sealed_by(reader, [ROW])
    assert opened_by(other, section[:32], MESSAGE, attachments(section)[0]) is None


def test_a_row_that_is_too_long_is_refused(reader: Path) -> None:
    with pytest.raises(ConfigError, match="4095 bytes"):
        sealed_by(reader, [bytes(4095)])


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
    with pytest.raises(ConfigError, match=r"secret key: give the file beside it that ends in \.pub"):
        _core.reader_public_key(reader.read_bytes())


def test_points_of_small_order_are_refused() -> None:
    for point in (bytes(32), b"\1" + bytes(31)):
        with pytest.raises(ConfigError, match="usable point"):
            _core.RowSealer(point)


def test_a_secret_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "open"
    path.write_bytes(_core.reader_key_new()[0])
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="reader key file .* is open to other users"):
        _core.RowOpener(path)


def test_other_files_are_no_secret_key(reader: Path, tmp_path: Path) -> None:
    path = tmp_path / "wrong"
    for content in (b"", reader.with_suffix(".pub").read_bytes(), b"\xff" * 2000):
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(ConfigError, match="does not hold a reader's secret key"):
            _core.RowOpener(path)
