# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of a run in words, from the `configuration` of its manifest. No network is in them."""

from collections.abc import Iterator, Mapping
from typing import Any

Manifest = Mapping[str, Any]

_EVIDENCE = {
    "established": "Only clients that proved to be real count as users.",
    "any": "Every client counts as a user, also without evidence: forged packets can release a"
    " name.",
}
_DNS = {
    "own": "Names in DNS questions are counted separately, for records of DNS.",
    "all": "Names in DNS questions count like all other names.",
    "no": "Names in DNS questions are not counted.",
}
_READERS = {
    "internal": "The settings are those for readers inside the organisation.",
    "partner": "The settings are those for partners.",
    "public": "The settings are those for the public.",
}
_PSEUDONYMS = {
    "networks": "They keep which of the users' networks an address lies in.",
    "crypto-pan": "They keep the prefixes of addresses, so pseudonyms of two keys can be joined.",
    "random": "They keep nothing of an address.",
}
_LEVELS = {
    "domain": "domain",
    "category": "category",
    "as": "autonomous system",
    "country": "country",
}
_STEPS = {"sqrt2": "the square root of 2", "4": "4", "16": "16"}


def settings_words(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yields subjects, each with sentences about the settings. Raises KeyError or TypeError for a
    manifest that is not of a run."""
    configuration = manifest["configuration"]
    yield "Release", " ".join(_release(configuration["anonymity"]))
    yield "Users", " ".join(_users(configuration["addresses"], configuration["anonymity"]))
    yield "Pseudonyms", " ".join(_pseudonyms(configuration["addresses"]))
    yield "Suppressed names", _coarse(configuration["anonymity"], configuration["output"])
    yield "Readers", " ".join(_readers(configuration["output"], manifest["weaker_than"]))


def _release(anonymity: Manifest) -> Iterator[str]:
    z, window = anonymity["z"], anonymity["window"]
    if z == 1:
        yield "Every name is released, also a name that a single user visited (z = 1)."
    else:
        yield f"A name is released only if at least {z:,} users exposed it within {window}."
    if levels := anonymity.get("levels"):
        words = " or ".join(_LEVELS[level] for level in levels)
        yield f"Other names and servers are shown as their {words} if {z:,} users are behind it."
    if "target_p" in anonymity:
        yield f"z follows the traffic, from {z:,} to {anonymity['z_max']:,}."
    if suffixes := anonymity["never_suffixes"]:
        ends = "1 suffix is" if suffixes == 1 else f"{suffixes:,} suffixes are"
        yield f"{ends} never released."
    if only := anonymity.get("only"):
        yield f"Only names below {only['suffixes']:,} listed suffixes are released."
    if skip := anonymity.get("skip"):
        yield from _skipped(skip)
    yield _DNS.get(anonymity["dns_votes"], "")


def _skipped(skip: Manifest) -> Iterator[str]:
    if skip["suffixes"]:
        yield f"Names below {skip['suffixes']:,} listed suffixes are not released."
    if skip["categories"]:
        yield f"Names of these categories are not released: {', '.join(skip['categories'])}."


def _users(addresses: Manifest, anonymity: Manifest) -> Iterator[str]:
    v4, v6 = addresses["user_prefix"]
    yield f"A user is an IPv4 {_prefix(v4, 32)} or an IPv6 {_prefix(v6, 128)}."
    internal = addresses["internal"]
    if internal == "any":
        yield "Every address can be a user."
    elif isinstance(internal, Mapping):
        networks = len(internal["networks"]) + internal["not_shown"]
        yield f"Users are in {networks:,} {'network' if networks == 1 else 'networks'}."
    else:
        yield "Users are in the private address ranges."
    yield _EVIDENCE.get(anonymity["evidence"], "")


def _prefix(bits: int, address_bits: int) -> str:
    return "address" if bits == address_bits else f"prefix of {bits} bits"


def _pseudonyms(addresses: Manifest) -> Iterator[str]:
    yield f"Addresses of users are pseudonyms under a key that changes every {addresses['rotate']}."
    yield _PSEUDONYMS.get(str(addresses["pseudonyms"]).partition(":")[0], "")
    if addresses["key_mode"] == "derived":
        yield "The key comes from a key file."
    else:
        yield "The key was random, and it was never stored."
    if addresses["keep_client_port"]:
        yield "Ports of clients are kept."


def _coarse(anonymity: Manifest, output: Manifest) -> str:
    if anonymity["exact"]:
        return (
            "A record of a flow with a suppressed name has no server and no ports. Its times and"
            " sizes are exact, which can give the name away."
        )
    client = (
        "shows the pseudonym of its client"
        if output["coarse_client"] == "pseudonym"
        else "has no client"
    )
    times = (
        "the minutes of its first and last packet"
        if output["coarse_end"] == "floored"
        else "the minute in which the flow closed"
    )
    steps = _STEPS.get(output["coarse_steps"], "a constant")
    return (
        f"A record of a flow with a suppressed name {client}, no server and no uncommon port. It"
        f" has {times}, and packets and bytes rounded up to a power of {steps}."
    )


def _readers(output: Manifest, weaker: Manifest) -> Iterator[str]:
    yield _READERS.get(output["for"], "")
    if options := weaker["options"]:
        listed = ", ".join(f"--{name.replace('_', '-')}" for name in options)
        yield f"These options disclose more: {listed}."
    if output["times"] != "exact":
        yield f"Times of all records are rounded to {output['times']}."
    if output["sizes"] != "exact":
        yield f"Sizes of all records keep {output['sizes']} digits."
