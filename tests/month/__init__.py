# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A month of packet time on a virtual cable, into a real `zanon-net run`, in an hour.

`python -m month` (with `tests` on the path; `make soak-month`) sends traffic of days into one end
of a cable in a network namespace. At the other end a process runs as an operator would start it,
and a day of packet time goes by in two minutes. Events come in turn (see events.py); after each,
checks.py and releases.py compare what was sent with what was read, lost, written and said.

How time passes: the kernel stamps frames by the machine's clock, which nobody can move for one
process alone. So each frame carries its packet time in its MAC addresses, which a run of logs does
not read, and stamps.c, loaded before libpcap, puts it in the place of the kernel's stamp. All else
is as in any run: the cable, the ring and its losses, signals, disks, and the time by which the run
flushes, reports and waits. So what goes by the machine's clock does not go faster: a link that is
away for 5 s is away for an hour of packets.
"""
