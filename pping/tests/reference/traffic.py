#!/usr/bin/env python3
"""Compares packets, bytes and retransmissions of pping's flow summaries with what tshark finds in a capture.

Reads records of `pping --format jsonl --flow-summary -r CAPTURE`. Prints the number of TCP flow
directions compared.

Reordered segments, if the summaries count them, are compared with what disorder.py finds.

tshark tells reordered segments from retransmissions by time, and pping by their timestamps, which are equal within one
tick of the sender's clock. So pping may count more retransmissions, up to the number of segments that tshark finds
reordered.
"""

import json
import subprocess
import sys
from collections import defaultdict

# Writes no compiled modules next to the sources.
sys.dont_write_bytecode = True

import disorder

FIELDS = [
    "ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport", "tcp.len",
    "tcp.options.timestamp.tsval", "tcp.analysis.retransmission", "tcp.analysis.out_of_order",
    "tcp.analysis.keep_alive", "ip.dsfield.ecn", "ipv6.tclass.ecn",
]  # fmt: skip
CE = "3"


def seen_by_tshark(capture):
    """Returns packets, bytes, retransmissions, reordered segments and congestion marks by sender and receiver. Returns
    `None` if some segments have no timestamps, or are in a tunnel."""
    command = ["tshark", "-n", "-r", capture, "-Y", "tcp", "-T", "fields", *(f"-e{field}" for field in FIELDS)]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    seen = defaultdict(lambda: [0] * 5)
    for line in lines.splitlines():
        ip, ip6, port, to, to6, to_port, length, tsval, again, disorder, keep_alive, ecn, ecn6 = line.split("\t")
        ends = (ip or ip6, port, to or to6, to_port)
        if not tsval or any("," in end for end in ends) or seen[ends] is None:
            seen[ends] = None
            continue
        marked = (ecn or ecn6) in (CE, "0x03")
        counts = [1, int(length), int(again != "" and keep_alive == ""), int(disorder != ""), int(marked)]
        seen[ends] = [sum(pair) for pair in zip(seen[ends], counts)]
    return seen


def in_numbers(ends):
    source, port, destination, to_port = ends
    return source, int(port), destination, int(to_port)


def main():
    seen = seen_by_tshark(sys.argv[1])
    disordered = disorder.count_in(sys.argv[1])
    reported = defaultdict(lambda: [0] * 4)
    reported_disordered = {}
    for line in sys.stdin:
        record = json.loads(line)
        if record.get("flow_event") != "summary" or record["protocol"] != "TCP":
            continue
        source = (record["src_ip"], str(record["src_port"]))
        destination = (record["dest_ip"], str(record["dest_port"]))
        for way, ends in [("sent", destination + source), ("rec", source + destination)]:
            names = ["packets", "bytes", "retransmissions", "ce_packets"]
            counts = [record[f"{way}_{name}"] for name in names]
            reported[ends] = [sum(pair) for pair in zip(reported[ends], counts)]
            if f"{way}_out_of_order" in record:
                reported_disordered[ends] = reported_disordered.get(ends, 0) + record[f"{way}_out_of_order"]
    compared = 0
    for ends, (packets, bytes, again, marked) in reported.items():
        back = ends[2:] + ends[:2]
        if seen.get(ends) is None or seen.get(back, 0) is None:
            continue
        expected = seen[ends]
        assert [packets, bytes] == expected[:2], f"{ends}: {packets} packets, {bytes} bytes instead of {expected}"
        assert expected[2] <= again <= expected[2] + expected[3], f"{ends}: {again} sent again instead of {expected}"
        out_of_order, there_are = reported_disordered.get(ends), disordered[in_numbers(ends)]
        assert out_of_order in (None, there_are), f"{ends}: {out_of_order} out of order instead of {there_are}"
        assert marked == expected[4], f"{ends}: {marked} marked instead of {expected}"
        compared += packets > 0
    print(compared)


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        sys.exit(f"{error}")
