#!/usr/bin/env python3
"""Which round-trip times a capture holds, computed without any of pping's own code.

    expected_samples.py FILE           one JSON object per sample, in the order in which they match
    expected_samples.py --self-test    the rules below on packets made by hand

tshark takes the packets apart (capture.py); the rules of `tcp-ts` and `icmp-echo`, as the chapter on matching states
them, are applied to what it says (rules.py). Where pping and these files differ, one of them misreads that chapter.

A flow is a pair of addresses and ports on one interface. An ICMP identifier takes the place of both ports. The
interface is that of a pcapng file, by its number and its name, in whatever section (tshark 4.0 only knows the names
of the first); with Linux cooked capture v2 also the interface index. VLAN identifiers, labels and keys of tunnels
are no part of a flow. Each direction of a flow has eight slots, each with an identifier that waits for its echo and
the time it was seen.

In general
 1. A packet is first matched against the slots of the other direction, then recorded in those of its own.
 2. A match yields one sample and frees the slot. If the echo is older than the recording, there is no sample.
 3. If all slots are taken, the one that has waited longest is overwritten if that is 10 s or more; else
    nothing is recorded. A rate limit is on recordings: one per direction in that time.

tcp-ts
 4. Only segments with the timestamps option count, and no segment with RST.
 5. A TSval is recorded if the segment consumes sequence space (payload, SYN or FIN) and the TSval is newer, modulo
    2^32, than every one before it in its direction. Pure ACKs count among those before it.
 6. The first TSval of a direction is recorded only if the segment has SYN: without it, earlier segments of the same
    tick may have passed unseen.
 7. With ACK set, the TSecr matches the slot of the other direction that holds it. Whether one does or not, older
    slots of that direction are freed.
 8. A SYN without ACK begins a new connection if its sender has sent a segment without SYN before, or is closed:
    nothing of the old one is kept.

icmp-echo
 9. An echo request is recorded, in place of an earlier one with the same identifier and sequence number. An echo
    reply matches the request with the same two. Packets quoted in ICMP errors count for nothing.

Beginning and end of a flow
10. A flow begins with an echo request, or with a segment that has timestamps and no RST. Once there is one, all its
    segments and replies are packets of the flow: those without timestamps, too.
11. A direction of a TCP flow is unseen, unanswered from its first segment, open as soon as a segment without RST
    comes the other way after that, and closed after its own FIN or a RST of either.
12. A flow is forgotten once it has been idle for more than 300 s if a direction is open, 10 s if both are closed or
    unseen, and else (and for echoes) 30 s.
13. Idle times are those between the seconds of a clock that shows how far the newest packet so far, of any kind, is
    from the first of the file, without fractions.

Time that goes backwards
14. If a packet is more than 1 s older than the newest of its flow, all that waits in the flow is forgotten, its time
    is the newest from then on, and rate limits start anew.
15. After that, a direction whose newest TSval is known does not record the first that is newer: the packet itself may
    be the one that has it.
16. If a packet is more than 60 s older than the newest of the file, the clock of rule 13 goes on from there: it keeps
    the whole seconds that it shows, and that packet takes the place of both the first and the newest.

What is measured
17. VLAN tags and MPLS labels (up to four each) and PPPoE are looked through. What is in a tunnel is measured if the
    tunnel's kind is listed with --decap and nothing in it is another of those kinds, listed or not. Else it is not
    measured, nor is the tunnel itself. GRE is that of version 0 without routing, VXLAN has its I bit set, Geneve is
    of version 0 and no control packet, and of GTP-U version 1 G-PDUs are looked into.
18. Of an IP packet in fragments, the first is measured and the others are not. Lengths are those of the IP header,
    except that length 0 in IPv4 stands for what the frame has.
19. A segment is measured if its data offset is at least 5 and within the IP length, and if the capture holds its 20
    octets of fixed header. The first timestamps option counts. The search for it ends where the end is marked, and
    at a bad length: less than 2, beyond the header, or other than 10 for the timestamps themselves. If the capture
    ends before the search does, the segment is not measured.

Where time is counted in more than 2^34 units a second, tshark 4.0 gets it wrong, and so does this.

The output has `method`, `src_ip`, `src_port`, `dest_ip`, `dest_port` (of the packet that matched, so the source is
the host that replied), `id` (the TSecr, or the ICMP sequence number), `rtt` in nanoseconds, and `recorded_at` and
`matched_at` in nanoseconds since 1970. For ICMP both ports are the ICMP identifier.
"""

import argparse
import json
import sys

# No compiled copies of the modules beside the sources.
sys.dont_write_bytecode = True

import capture
import rules
import self_test


def kinds_of_tunnels(text):
    kinds = [kind for kind in text.split(",") if kind]
    for kind in kinds:
        if kind not in capture.TUNNELS:
            raise argparse.ArgumentTypeError(f"{kind} is none of {', '.join(capture.TUNNELS)}")
    return kinds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", help="a pcap or pcapng file")
    parser.add_argument("--self-test", action="store_true", help="check the rules instead")
    parser.add_argument("--slots", type=int, default=rules.SLOTS, help="recordings that may wait per direction")
    parser.add_argument("--rate-limit", type=int, default=0, metavar="MS", help="time between recordings")
    parser.add_argument("--decap", type=kinds_of_tunnels, default=[], metavar="LIST", help=",".join(capture.TUNNELS))
    arguments = parser.parse_args()
    limits = rules.Limits(slots=arguments.slots, rate=arguments.rate_limit * 10**6)
    if arguments.self_test:
        self_test.run()
    elif arguments.file is None:
        parser.error("a FILE is needed")
    else:
        for sample in rules.samples(capture.read(arguments.file, arguments.decap), limits):
            json.dump(sample, sys.stdout, separators=(",", ":"))
            sys.stdout.write("\n")


if __name__ == "__main__":
    main()
