"""Counts samples by the network at their other end: joins the records of samples with a file of networks.

    join_networks.py NETWORKS.csv [INSIDE,...] < SAMPLES.jsonl

NETWORKS.csv has the columns network, asn and name. INSIDE are the prefixes of `--inside`: the other end is the host outside, or else
the host that replied. Prints an object with the number of samples by network, side and method.
"""

import collections
import csv
import ipaddress
import json
import sys


def longest(prefixes, address):
    """Returns what the longest prefix has that contains the address; None if there is none."""
    found = [(prefix.prefixlen, of) for prefix, of in prefixes if prefix.version == address.version and address in prefix]
    return max(found, key=lambda it: it[0])[1] if found else None


def main():
    with open(sys.argv[1], newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = {}
    for row in rows:
        names.setdefault(row["asn"], f"AS{row['asn']} {row['name']}".strip())
    networks = [(ipaddress.ip_network(row["network"]), names[row["asn"]]) for row in rows]
    inside = [(ipaddress.ip_network(prefix), True) for prefix in sys.argv[2].split(",")] if len(sys.argv) > 2 else []
    counts = collections.Counter()
    for line in sys.stdin:
        record = json.loads(line)
        if record["type"] != "rtt":
            continue
        source, destination = (ipaddress.ip_address(record[end]) for end in ("src_ip", "dest_ip"))
        is_source_inside, is_destination_inside = (bool(longest(inside, it)) for it in (source, destination))
        end = destination if is_source_inside and not is_destination_inside else source
        side = ("inside" if is_source_inside else "outside") if inside else "-"
        counts["\t".join((longest(networks, end) or "unlisted", side, record["method"]))] += 1
    json.dump(counts, sys.stdout)


main()
