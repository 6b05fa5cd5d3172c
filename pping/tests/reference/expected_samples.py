#!/usr/bin/env python3
"""Computes the round-trip times in a capture without any of pping's own code.

    expected_samples.py FILE           prints one JSON object per sample, in the order in which they match
    expected_samples.py --dns FILE     prints the counts of DNS (rule D5)
    expected_samples.py --self-test    tests the rules below on packets made by hand

tshark dissects the packets (capture.py and its parts); the rules of each method, as docs/methods.md states them, are
applied to the result (rules.py and its parts). If pping and these files differ, one of them misreads that page.

A flow is a pair of addresses and ports on one interface. An ICMP identifier stands for both ports. In a pcapng file an
interface is known by its number and its name, in any section (tshark 4.0 knows only the names of the first section). In
Linux cooked capture v2, the interface index counts too. VLAN identifiers, labels and keys of tunnels are no part of a
flow. In each direction of a flow up to eight identifiers can be pending, with the times when they were seen.

Each rule has a number, and is stated at the head of the file that applies it:
  rules_base.py            1 to 3, 12 to 14, 16,   pending recordings, the end of flows, time that goes backwards,
                           24 to 26                hooks
  rules_tcp.py             8, 11, T1 to T3         flows of TCP, and which method measures them
  rules_tcp_ts.py          4 to 7, 15              tcp-ts
  rules_tcp_seq.py         S1 to S5                tcp-seq
  rules_tcp_handshake.py   H1 to H5                tcp-handshake
  rules_icmp.py            9, 10, E1 to E4         icmp-echo
  rules_dns.py             D1 to D5                dns
  rules_quic.py            Q1 to Q15               quic-handshake, quic-spin
  capture_layers.py        17, 18                  the measured header of a packet
  capture_tcp.py           19                      the measured segments
  capture_quic.py          20 to 23                the measured QUIC packets

With a time resolution of more than 2^34 units a second, tshark 4.0 gives wrong times, and so does this script.

The output has `method`, `src_ip`, `src_port`, `dest_ip`, `dest_port` (of the packet that matched, so the source is
the host that replied), `id`, `rtt` in nanoseconds, and `recorded_at` and `matched_at` in nanoseconds since 1970. For
ICMP both ports are the ICMP identifier. The `id` is the TSecr (tcp-ts), the sequence number (icmp-echo), the end of the
segment (tcp-seq), the number after that of the SYN (tcp-handshake), the ID of the query (dns), the version of the reply
(quic-handshake) or the spin bit (quic-spin).
"""

import argparse
import json
import sys

# Writes no compiled modules next to the sources.
sys.dont_write_bytecode = True

import capture
import capture_layers
import rules
import rules_base
import self_test
from rules_dns import Message


def list_of(known):
    """Returns an argument type: known names, separated by commas."""

    def parse(text):
        named = tuple(name for name in text.split(",") if name)
        for name in named:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(known)}")
        return named

    parse.__name__ = "list"
    return parse


def counts_of_dns(found, families):
    """Yields the counts, after all samples have been consumed."""
    for _ in found:
        pass
    yield families[Message].counts


def main():
    tunnels, methods, tcp_methods = capture_layers.TUNNELS, rules_base.METHODS, rules_base.TCP_METHODS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", help="a pcap or pcapng file")
    parser.add_argument("--self-test", action="store_true", help="check the rules instead")
    parser.add_argument("--dns", action="store_true", help="report what is counted of DNS instead")
    parser.add_argument("--pending", type=int, default=rules_base.PENDING, help="pending recordings per direction")
    parser.add_argument("--rate-limit", type=int, default=0, metavar="MS", help="time between recordings")
    parser.add_argument("--methods", type=list_of(methods), default=methods, metavar="LIST", help=",".join(methods))
    parser.add_argument("--tcp-method", choices=tcp_methods, default="auto", help="what measures TCP (rule T2)")
    parser.add_argument("--arms", choices=("one", "two"), default="one", help="whether both ends may be on one side")
    parser.add_argument("--decap", type=list_of(tunnels), default=(), metavar="LIST", help=",".join(tunnels))
    arguments = parser.parse_args()
    limits = rules_base.Limits(
        pending=arguments.pending,
        rate=arguments.rate_limit * 10**6,
        methods=arguments.methods,
        tcp_method=arguments.tcp_method,
        arms=arguments.arms,
    )
    if arguments.self_test:
        self_test.run()
    elif arguments.file is None:
        parser.error("a FILE is needed")
    else:
        families = rules.families_of(limits)
        found = rules.samples(capture.read(arguments.file, arguments.decap), limits, families)
        for result in counts_of_dns(found, families) if arguments.dns else found:
            json.dump(result, sys.stdout, separators=(",", ":"))
            sys.stdout.write("\n")


if __name__ == "__main__":
    main()
