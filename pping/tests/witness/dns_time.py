#!/usr/bin/env python3
"""Whether the samples of DNS that the rules give are the times that tshark tells.

    dns_time.py FILE    how many samples there are

tshark tells the time from a query to its response (`dns.time`) of each response to a query that it has seen, also where
the query was repeated: from its first. So each sample has to be one of its times, and those beyond belong to queries
that were sent again before they were answered.
"""

import subprocess
import sys
from collections import Counter

# No compiled copies of the modules beside the sources.
sys.dont_write_bytecode = True

import capture
import rules
from rules_base import Limits
from rules_dns import Message


def times_of_tshark(file):
    """The time of each response, with all that tells it from others."""
    command = ["tshark", "-n", "-r", file, "-Y", "udp && dns.time && !mdns && !llmnr && !vxlan && !gtp && !gre"]
    command += ["-T", "fields", "-E", "occurrence=f"]
    for field in ("frame.time_epoch", "udp.dstport", "dns.id", "dns.time"):
        command += ["-e", field]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    for line in lines:
        time, port, identifier, rtt = line.split("\t")
        yield capture.nanoseconds(time), int(port), int(identifier, 0), capture.nanoseconds(rtt)


def main(file):
    packets = list(capture.read(file))
    found = rules.samples(packets, Limits(methods=("dns",)))
    found = Counter((it["matched_at"], it["dest_port"], it["id"], it["rtt"]) for it in found)
    told = Counter(times_of_tshark(file))
    assert not found - told, f"{file}: tshark does not tell of {found - told}"
    for at, port, identifier, rtt in told - found:
        asked = [
            packet
            for packet in packets
            if isinstance(packet.content, Message)
            and not packet.content.is_response
            and (packet.source[1], packet.content.identifier) == (port, identifier)
            and at - rtt <= packet.time <= at
        ]
        assert len(asked) > 1, f"{file}: no sample at {at} of {identifier}, which was asked once"
    print(found.total())


if __name__ == "__main__":
    main(sys.argv[1])
