# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Epoch keys: the derivation by the formula, the ratchet, and who may hold a key file."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from oracle.epochs import Scope
from oracle.pseudonyms import OraclePseudonyms

from zanon_net import _core
from zanon_net.errors import CaptureError, ConfigError

HOUR_NS = 3_600_000_000_000
MASTER = bytes(range(100, 132))
LINE = base64.b64encode(MASTER)
CLIENT = "10.1.2.3"


def write_key(path: Path, content: bytes = LINE + b"\n", mode: int = 0o600) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def expected_pseudonym(scope: Scope, epoch: int, digest: bytes = bytes(32)) -> str:
    """CLIENT's, by the formula: cryptography's HKDF, then the oracle."""
    numbers = b"".join(n.to_bytes(8) for n in (scope.rotate_ns, scope.z, scope.window_ns))

    def key(label: bytes, n: int) -> bytes:
        info = b"zanon-net/2/" + label + numbers + digest + epoch.to_bytes(8)
        return HKDF(algorithm=SHA256(), length=n, salt=None, info=info).derive(MASTER)

    oracle = OraclePseudonyms(
        key(b"cryptopan", 32),
        key(b"host", 16),
        scope.pseudonyms,
        user=(32, 56),
        internal=[],
    )
    return str(oracle.pseudonym(CLIENT))


# ---- derived ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rotate_ns", [1, 1_000_000_000, HOUR_NS, 2**63 - 1])
@pytest.mark.parametrize("t_ns", [0, 1, HOUR_NS - 1, HOUR_NS, 1_700_000_000 * 10**9, 2**63 - 1])
def test_derived_key_is_hkdf_of_the_master(tmp_path: Path, rotate_ns: int, t_ns: int) -> None:
    keys = _core.Keys(rotate_ns, write_key(tmp_path / "key"))
    epoch = t_ns // rotate_ns
    assert keys.pseudonym(t_ns, CLIENT) == (expected_pseudonym(Scope(rotate_ns), epoch), epoch)


def test_derived_is_the_same_whatever_was_seen_before(tmp_path: Path) -> None:
    path = write_key(tmp_path / "key")
    walked = _core.Keys(HOUR_NS, path)
    for epoch in [5, 6, 5, 9, 6, 5, 0, 9]:
        fresh = _core.Keys(HOUR_NS, path)
        expected = expected_pseudonym(Scope(HOUR_NS), epoch), epoch
        assert walked.pseudonym(epoch * HOUR_NS, CLIENT) == expected
        assert fresh.pseudonym((epoch + 1) * HOUR_NS - 1, CLIENT) == expected
    walked.rebase(3 * HOUR_NS)
    assert walked.pseudonym(3 * HOUR_NS, CLIENT) == (expected_pseudonym(Scope(HOUR_NS), 3), 3)


@pytest.mark.parametrize(
    "other",
    [{"rotate_ns": 2 * HOUR_NS}, {"z": 21}, {"window_ns": 1}, {"digest": bytes([1] * 32)}],
)
def test_derived_depends_on_each_setting(tmp_path: Path, other: dict[str, Any]) -> None:
    """Two outputs that were made with other settings share no pseudonyms."""
    path = write_key(tmp_path / "key")
    chosen = {"rotate_ns": HOUR_NS, "z": 20, "window_ns": HOUR_NS, "digest": bytes(32)}
    clients = [f"10.0.0.{i}" for i in range(4)]
    one, two = (_core.Keys(**settings, key_file=path) for settings in (chosen, chosen | other))
    assert [one.pseudonym(0, c) for c in clients] != [two.pseudonym(0, c) for c in clients]
    again = _core.Keys(**chosen, key_file=path)
    assert [one.pseudonym(0, c) for c in clients] == [again.pseudonym(0, c) for c in clients]


# ---- ephemeral ----------------------------------------------------------------------------------


def test_ephemeral_keeps_a_pseudonym_within_its_epoch() -> None:
    keys = _core.Keys(HOUR_NS)
    assert keys.pseudonym(HOUR_NS, CLIENT) == keys.pseudonym(2 * HOUR_NS - 1, CLIENT)


def test_ephemeral_differs_between_epochs_and_objects() -> None:
    one, two = _core.Keys(HOUR_NS), _core.Keys(HOUR_NS)
    clients = [f"10.0.0.{i}" for i in range(4)]
    seen = [
        tuple(keys.pseudonym(epoch * HOUR_NS, client)[0] for client in clients)
        for keys in (one, two)
        for epoch in (1, 2, 7, 8)
    ]
    assert len(set(seen)) == len(seen)


def test_ephemeral_epoch_never_goes_back() -> None:
    keys = _core.Keys(HOUR_NS)
    before = keys.pseudonym(3 * HOUR_NS, CLIENT)
    now = keys.pseudonym(4 * HOUR_NS, CLIENT)
    assert (before[1], now[1]) == (3, 4)
    assert keys.pseudonym(3 * HOUR_NS, CLIENT) == now
    assert keys.pseudonym(0, CLIENT) == now
    assert keys.pseudonym(4 * HOUR_NS, CLIENT) == now


def test_ephemeral_rebase_draws_afresh() -> None:
    keys = _core.Keys(HOUR_NS)
    first = keys.pseudonym(4 * HOUR_NS, CLIENT)
    keys.rebase(4 * HOUR_NS)
    second = keys.pseudonym(4 * HOUR_NS, CLIENT)
    assert second[1] == 4
    assert second != first
    keys.rebase(HOUR_NS)
    assert keys.pseudonym(HOUR_NS, CLIENT)[1] == 1
    assert keys.pseudonym(HOUR_NS, CLIENT) != first


@pytest.mark.parametrize("key_file", [True, False])
def test_both_families_have_pseudonyms(tmp_path: Path, key_file: bool) -> None:
    keys = _core.Keys(HOUR_NS, write_key(tmp_path / "key") if key_file else None)
    v4, _ = keys.pseudonym(0, CLIENT)
    v6, _ = keys.pseudonym(0, "2001:db8::1")
    assert "." in v4
    assert ":" in v6


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("rotate_ns", [0, -1])
def test_epoch_length_must_be_positive(rotate_ns: int) -> None:
    with pytest.raises(ConfigError):
        _core.Keys(rotate_ns)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o601, 0o620, 0o666, 0o610])
def test_key_file_of_others_is_refused(tmp_path: Path, mode: int) -> None:
    path = write_key(tmp_path / "key", mode=mode)
    with pytest.raises(ConfigError, match="chmod 600") as caught:
        _core.Keys(HOUR_NS, path)
    assert path in str(caught.value)


def test_key_file_of_another_owner_is_refused(tmp_path: Path) -> None:
    path = write_key(tmp_path / "key")
    if os.geteuid() != 0:  # only root can make such a file; what follows is all others can check
        assert _core.Keys(HOUR_NS, path).pseudonym(0, CLIENT)[1] == 0
        return
    os.chown(path, 12345, 12345)
    with pytest.raises(ConfigError, match="another user"):
        _core.Keys(HOUR_NS, path)


@pytest.fixture
def credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A unit's folder for what LoadCredential= brings, as systemd makes it."""
    if os.geteuid() != 0:
        pytest.skip("credentials are root's")
    folder = tmp_path / "credentials"
    folder.mkdir()
    folder.chmod(0o550)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    return folder


def test_a_credential_of_systemd_is_taken(credentials: Path) -> None:
    """Its mode says 0440 where an ACL lets the unit's user read it."""
    keys = _core.Keys(HOUR_NS, write_key(credentials / "key", mode=0o440))
    assert keys.pseudonym(0, CLIENT) == (expected_pseudonym(Scope(HOUR_NS), 0), 0)


@pytest.mark.parametrize("mode", [0o460, 0o450, 0o444, 0o404, 0o441])
def test_a_credential_that_is_open_is_refused(credentials: Path, mode: int) -> None:
    with pytest.raises(ConfigError, match="open to other users"):
        _core.Keys(HOUR_NS, write_key(credentials / "key", mode=mode))


def test_what_is_no_credential_of_this_unit_is_refused(
    credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (credentials / "below").mkdir()
    path = write_key(credentials / "key", mode=0o440)
    elsewhere = [credentials.with_name("key"), credentials.with_name("credentials-key")]
    for other in (*elsewhere, credentials / "below" / "key", credentials / "below/../key"):
        if not other.exists():
            write_key(other, mode=0o440)
        with pytest.raises(ConfigError, match="open to other users"):
            _core.Keys(HOUR_NS, str(other))
    for mode in (0o551, 0o554, 0o570):
        credentials.chmod(mode)
        with pytest.raises(ConfigError, match="open to other users"):
            _core.Keys(HOUR_NS, path)
    credentials.chmod(0o550)
    os.chown(path, 0, 12345)
    with pytest.raises(ConfigError, match="open to other users"):
        _core.Keys(HOUR_NS, path)
    os.chown(path, 0, 0)
    assert _core.Keys(HOUR_NS, path).pseudonym(0, CLIENT)[1] == 0
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    with pytest.raises(ConfigError, match="open to other users"):
        _core.Keys(HOUR_NS, path)


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o700])
def test_key_file_of_its_owner_is_taken(tmp_path: Path, mode: int) -> None:
    keys = _core.Keys(HOUR_NS, write_key(tmp_path / "key", mode=mode))
    assert keys.pseudonym(0, CLIENT) == (expected_pseudonym(Scope(HOUR_NS), 0), 0)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        LINE[:-1],
        LINE + b"\n\n",
        LINE + b" ",
        b" " + LINE[:-1],
        LINE + b"\n" + LINE + b"\n",
        base64.b64encode(MASTER[:31]) + b"\n",
        base64.b64encode(MASTER + b"!") + b"\n",
        LINE[:-1] + b"A\n",
        LINE[:-2] + b"==\n",
        LINE[:10] + b"=" + LINE[11:],
        LINE[:10] + b"-" + LINE[11:],
        LINE[:10] + b"\0" + LINE[11:],
        LINE[:-2] + bytes([LINE[-2] + 1]) + b"=\n",  # bits set beyond the 32 bytes
        b"    " + LINE[:40],
        bytes(range(32)),
        b"\xff" * 44,
        b"k" * 100_000,
    ],
    ids=range(19),
)
def test_key_file_must_be_one_line_of_32_bytes(tmp_path: Path, content: bytes) -> None:
    path = write_key(tmp_path / "key", content)
    with pytest.raises(ConfigError, match="zanon-net key new") as caught:
        _core.Keys(HOUR_NS, path)
    message = str(caught.value)
    assert path in message
    secret = content.decode("latin-1").strip()
    assert not any(secret[i : i + 6] in message for i in range(len(secret) - 5))


def test_key_line_may_lack_its_newline(tmp_path: Path) -> None:
    keys = _core.Keys(HOUR_NS, write_key(tmp_path / "key", LINE))
    assert keys.pseudonym(0, CLIENT) == (expected_pseudonym(Scope(HOUR_NS), 0), 0)


def test_key_file_must_be_a_regular_file(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o600)
    for path in (tmp_path, fifo):
        with pytest.raises(ConfigError, match="not a regular file") as caught:
            _core.Keys(HOUR_NS, str(path))
        assert str(path) in str(caught.value)


def test_missing_key_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="cannot be opened") as caught:
        _core.Keys(HOUR_NS, str(tmp_path / "nowhere"))
    assert str(tmp_path / "nowhere") in str(caught.value)
