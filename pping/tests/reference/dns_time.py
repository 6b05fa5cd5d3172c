#!/usr/bin/env python3
"""Checks that the DNS samples of the rules are the times that tshark reports.

    dns_time.py FILE    prints the number of samples

tshark reports the time from a query to its response (`dns.time`). For a repeated query it counts from the first one. So
each sample must be one of tshark's times, and the other times belong to queries that were repeated before the response.
"""

import subprocess
import sys
from collections import Counter

# Writes no compiled modules next to the sources.
sys.dont_write_bytecode = True

import capture
import rules
from rules_base import Limits
from rules_dns import Message


def times_of_tshark(file):
    """Yields the time of each response, with the values that identify the response."""
    command = ["tshark", "-n", "-r", file, "-Y", "udp && dns.time && !mdns && !llmnr && !vxlan && !gtp && !gre && !tzsp"]
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
    reported = Counter(times_of_tshark(file))
    assert not found - reported, f"{file}: tshark does not report {found - reported}"
    for at, port, identifier, rtt in reported - found:
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
