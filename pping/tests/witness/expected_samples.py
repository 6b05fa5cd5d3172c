#!/usr/bin/env python3
"""Which round-trip times a capture holds, computed without any of pping's own code.

    expected_samples.py FILE           one JSON object per sample, in the order in which they match
    expected_samples.py --self-test    the rules below on packets made by hand

tshark takes the packets apart; this file only applies the rules of `tcp-ts` and `icmp-echo` as the chapter on
matching states them, for `--rate-limit 0`. Where pping and this file differ, one of them misreads that chapter.

A flow is a pair of addresses and ports on one interface. An ICMP identifier takes the place of both ports. Each
direction of a flow has eight slots, each with an identifier that waits for its echo and the time it was seen.

In general
 1. A packet is first matched against the slots of the other direction, then recorded in those of its own.
 2. A match yields one sample and frees the slot.
 3. If all slots are taken, the one that has waited longest is overwritten if that is 10 s or more; else
    nothing is recorded.

tcp-ts
 4. Only segments with the timestamps option count, and no segment with RST.
 5. A TSval is recorded if the segment consumes sequence space (payload, SYN or FIN) and the TSval is newer, modulo
    2^32, than every one before it in its direction. Pure ACKs count among those before it.
 6. The first TSval of a direction is recorded only if the segment has SYN: without it, earlier segments of the same
    tick may have passed unseen.
 7. With ACK set, the TSecr matches the slot of the other direction that holds it. Whether one does or not, older
    slots of that direction are freed.
 8. A SYN without ACK on a flow that has got past its handshake (a segment with ACK and without SYN was seen)
    begins a new connection: nothing of the old one is kept.

icmp-echo
 9. An echo request is recorded, in place of an earlier one with the same identifier and sequence number. An echo
    reply matches the request with the same two. Packets quoted in ICMP errors count for nothing.

The output has `method`, `src_ip`, `src_port`, `dest_ip`, `dest_port` (of the packet that matched, so the source is
the host that replied), `id` (the TSecr, or the ICMP sequence number), `rtt` in nanoseconds, and `recorded_at` and
`matched_at` in nanoseconds since 1970. For ICMP both ports are the ICMP identifier.
"""

import argparse
import json
import subprocess
import sys

SLOTS = 8
OVERWRITE_AFTER = 10 * 10**9
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
ECHO_REQUEST, ECHO_REPLY = (8, 128), (0, 129)

FIELDS = [
    "frame.time_epoch",
    "frame.interface_id",
    "frame.protocols",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.flags",
    "tcp.len",
    "tcp.options.timestamp.tsval",
    "tcp.options.timestamp.tsecr",
    "icmp.type",
    "icmp.ident",
    "icmp.seq",
    "icmpv6.type",
    "icmpv6.echo.identifier",
    "icmpv6.echo.sequence_number",
]
# Each packet for itself: nothing put together from several, nothing guessed from those before.
PREFERENCES = [
    "ip.defragment:FALSE",
    "ipv6.defragment:FALSE",
    "tcp.desegment_tcp_streams:FALSE",
    "tcp.analyze_sequence_numbers:FALSE",
]


class Direction:
    """One direction of a flow."""

    def __init__(self):
        self.newest = None
        self.slots = {}

    def record(self, identifier, now):
        if identifier not in self.slots and len(self.slots) == SLOTS:
            oldest = min(self.slots, key=self.slots.get)
            if now - self.slots[oldest] < OVERWRITE_AFTER:
                return
            del self.slots[oldest]
        self.slots[identifier] = now


class Flow:
    """Both directions of a flow, found by the source they come from."""

    def __init__(self):
        self.past_handshake = False
        self.directions = {}

    def direction(self, source):
        return self.directions.setdefault(source, Direction())


def is_newer(value, than):
    """Whether one 32-bit timestamp is later than another (RFC 7323, section 5.2)."""
    return 0 < (value - than) % 2**32 < 2**31


def samples(packets):
    """Yields the samples in an iterable of packets, see `tcp` and `icmp` below for what a packet is."""
    flows = {}
    for packet in packets:
        source = (packet["src_ip"], packet["src_port"])
        target = (packet["dest_ip"], packet["dest_port"])
        key = (packet["interface"], packet["method"], frozenset([source, target]))
        visit = visit_tcp if packet["method"] == "tcp-ts" else visit_icmp
        found = visit(flows, key, packet, source, target)
        if found is not None:
            identifier, recorded_at = found
            yield {
                "method": packet["method"],
                "src_ip": packet["src_ip"],
                "src_port": packet["src_port"],
                "dest_ip": packet["dest_ip"],
                "dest_port": packet["dest_port"],
                "id": identifier,
                "rtt": packet["time"] - recorded_at,
                "recorded_at": recorded_at,
                "matched_at": packet["time"],
            }


def visit_tcp(flows, key, packet, source, target):
    flags, now = packet["flags"], packet["time"]
    if flags & RST:
        return None
    is_first_syn = flags & (SYN | ACK) == SYN
    if is_first_syn and key in flows and flows[key].past_handshake:
        del flows[key]
    flow = flows.setdefault(key, Flow())
    if flags & (SYN | ACK) == ACK:
        flow.past_handshake = True
    tsval, tsecr = packet["tsval"], packet["tsecr"]
    if tsval is None:
        return None

    found = None
    if flags & ACK:
        waiting = flow.direction(target).slots
        if tsecr in waiting:
            found = (tsecr, waiting.pop(tsecr))
        for older in [identifier for identifier in waiting if is_newer(tsecr, identifier)]:
            del waiting[older]

    own = flow.direction(source)
    if own.newest is None:
        is_first_of_tick = bool(flags & SYN)
        own.newest = tsval
    elif is_newer(tsval, own.newest):
        is_first_of_tick = True
        own.newest = tsval
    else:
        is_first_of_tick = False
    if is_first_of_tick and (packet["length"] > 0 or flags & (SYN | FIN)):
        own.record(tsval, now)
    return found


def visit_icmp(flows, key, packet, source, target):
    flow = flows.setdefault(key, Flow())
    sequence, now = packet["sequence"], packet["time"]
    if packet["is_request"]:
        flow.direction(source).record(sequence, now)
        return None
    recorded_at = flow.direction(target).slots.pop(sequence, None)
    return None if recorded_at is None else (sequence, recorded_at)


def read(file):
    """Yields the packets of a capture that the rules speak of."""
    command = ["tshark", "-n", "-r", file, "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a"]
    for preference in PREFERENCES:
        command += ["-o", preference]
    for field in FIELDS:
        command += ["-e", field]
    # What tshark has to say besides (that it runs as root, say) matters only if it fails.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tshark:
        for line in tshark.stdout:
            values = line.rstrip("\n").split("\t")
            packet = packet_of(dict(zip(FIELDS, values)))
            if packet is not None:
                yield packet
        complaint = tshark.stderr.read()
    # In a capture that is cut short in the middle of a packet those before it are fine.
    if tshark.returncode != 0 and "cut short" not in complaint:
        raise SystemExit(f"tshark failed on {file}: {complaint.strip()}")


def packet_of(fields):
    """What a line of tshark says, or None if no rule speaks of it."""

    def innermost(name):
        value = fields[name].split(",")[-1]
        return value or None

    def number(name):
        value = innermost(name)
        return None if value is None else int(value, 0)

    packet = {"time": nanoseconds(fields["frame.time_epoch"]), "interface": fields["frame.interface_id"]}
    protocols = fields["frame.protocols"].split(":")
    families = [protocol for protocol in protocols if protocol in ("ip", "ipv6")]
    if not families:
        return None
    packet["src_ip"], packet["dest_ip"] = innermost(families[-1] + ".src"), innermost(families[-1] + ".dst")

    types = [int(value) for name in ("icmp.type", "icmpv6.type") for value in fields[name].split(",") if value]
    if types:
        # An error quotes a packet, whose fields are those of a line like any other.
        if any(value not in ECHO_REQUEST + ECHO_REPLY for value in types):
            return None
        is_v4 = fields["icmp.type"] != ""
        identifier = number("icmp.ident" if is_v4 else "icmpv6.echo.identifier")
        sequence = number("icmp.seq" if is_v4 else "icmpv6.echo.sequence_number")
        if identifier is None or sequence is None:
            return None
        return packet | icmp(identifier, sequence, types[-1] in ECHO_REQUEST)

    flags, source, target = number("tcp.flags"), number("tcp.srcport"), number("tcp.dstport")
    if flags is None or source is None or target is None:
        return None
    tsval, tsecr = number("tcp.options.timestamp.tsval"), number("tcp.options.timestamp.tsecr")
    return packet | tcp(source, target, flags, number("tcp.len") or 0, tsval, tsecr)


def tcp(source, target, flags, length, tsval, tsecr):
    """The part of a packet that is special to TCP."""
    return {
        "method": "tcp-ts",
        "src_port": source,
        "dest_port": target,
        "flags": flags,
        "length": length,
        "tsval": tsval,
        "tsecr": tsecr,
    }


def icmp(identifier, sequence, is_request):
    """The part of a packet that is special to ICMP."""
    return {
        "method": "icmp-echo",
        "src_port": identifier,
        "dest_port": identifier,
        "sequence": sequence,
        "is_request": is_request,
    }


def nanoseconds(seconds):
    """A decimal number of seconds as whole nanoseconds; a float would lose the last three digits."""
    whole, _, fraction = seconds.partition(".")
    return int(whole) * 10**9 + int((fraction + "000000000")[:9])


def self_test():
    """Applies each rule to packets made by hand; times are in milliseconds."""

    def between(names, time, part):
        source, target = names
        place = {"time": time * 10**6, "interface": "0", "src_ip": source, "dest_ip": target}
        return place | part

    def there(time, flags, length, tsval, tsecr=0):
        return between("ab", time, tcp(1000, 80, flags, length, tsval, tsecr))

    def back(time, flags, length, tsval, tsecr=0):
        return between("ba", time, tcp(80, 1000, flags, length, tsval, tsecr))

    def request(time, identifier, sequence):
        return between("ab", time, icmp(identifier, sequence, True))

    def reply(time, identifier, sequence):
        return between("ba", time, icmp(identifier, sequence, False))

    def check(rule, packets, *expected):
        found = [(sample["src_ip"], sample["id"], sample["rtt"] // 10**6) for sample in samples(packets)]
        assert found == list(expected), f"{rule}: expected {list(expected)}, found {found}"

    handshake = [there(0, SYN, 0, 10), back(20, SYN | ACK, 0, 500, 10), there(21, ACK, 0, 30, 500)]
    handshaken = [("b", 10, 20), ("a", 500, 1)]
    check("a handshake times both ways", handshake, *handshaken)
    check(
        "only the first segment of a tick is timed, and only the first echo counts",
        handshake
        + [there(30, ACK, 9, 40, 500), there(31, ACK, 9, 40, 500)]
        + [back(50, ACK, 0, 550, 40), back(51, ACK, 0, 551, 40)],
        *handshaken,
        ("b", 40, 20),
    )
    check(
        "a pure ACK is not recorded, but uses up its TSval",
        handshake + [there(30, ACK, 0, 40, 500), there(31, ACK, 9, 40, 500), back(50, ACK, 0, 550, 40)],
        *handshaken,
    )
    check(
        "FIN consumes sequence space",
        handshake + [there(30, FIN | ACK, 0, 40, 500), back(50, ACK, 0, 550, 40)],
        *handshaken,
        ("b", 40, 20),
    )
    check(
        "in the middle of a stream, the first change is the first TSval to trust",
        [there(0, ACK, 9, 10, 1), there(1, ACK, 9, 11, 1), back(20, ACK, 0, 500, 10), back(21, ACK, 0, 501, 11)],
        ("b", 11, 20),
    )
    check(
        "an older TSval is not recorded",
        handshake + [there(30, ACK, 9, 29, 500), back(50, ACK, 0, 550, 29)],
        *handshaken,
    )
    check(
        "TSval wraps",
        [there(0, ACK, 9, 2**32 - 1), there(1, ACK, 9, 0), back(21, ACK, 0, 500, 0)],
        ("b", 0, 20),
    )
    check("without ACK there is no echo", [there(0, SYN, 0, 10), back(1, SYN, 0, 500, 10)])
    check("RST is no echo", [there(0, SYN, 0, 10), back(1, RST | ACK, 0, 500, 10)])
    check(
        "a newer TSecr frees older slots, an old one changes nothing",
        handshake
        + [there(30, ACK, 9, 40, 500), there(40, ACK, 9, 50, 500), there(50, ACK, 9, 60, 500)]
        + [back(60, ACK, 0, 550, 5), back(70, ACK, 0, 560, 50), back(71, ACK, 0, 561, 40)]
        + [back(80, ACK, 0, 570, 60)],
        *handshaken,
        ("b", 50, 30),
        ("b", 60, 30),
    )
    check(
        "a TSecr that was not recorded frees older slots too",
        handshake + [there(30, ACK, 9, 40, 500), back(60, ACK, 0, 550, 45), back(61, ACK, 0, 551, 40)],
        *handshaken,
    )
    check(
        "one packet matches and is recorded",
        handshake + [there(30, ACK, 9, 40, 500), back(50, ACK, 9, 550, 40), there(55, ACK, 0, 60, 550)],
        *handshaken,
        ("b", 40, 20),
        ("a", 550, 5),
    )
    nine = handshake + [there(100 + tick, ACK, 9, 100 + tick, 500) for tick in range(9)]
    check(
        "a ninth recording has no room",
        nine + [back(200, ACK, 0, 550, 107), back(201, ACK, 0, 551, 108)],
        *handshaken,
        ("b", 107, 93),
    )
    check(
        "after 10 s the oldest makes room",
        nine + [there(10_100, ACK, 9, 10_100, 500), back(10_120, ACK, 0, 550, 101)]
        + [back(10_130, ACK, 0, 551, 10_100)],
        *handshaken,
        ("b", 101, 10_019),
        ("b", 10_100, 30),
    )
    check(
        "a slot that waited less than 10 s stays",
        nine + [there(10_099, ACK, 9, 10_099, 500), back(10_120, ACK, 0, 550, 100)]
        + [back(10_130, ACK, 0, 551, 10_099)],
        *handshaken,
        ("b", 100, 10_020),
    )
    check(
        "a SYN after the handshake is a new connection, whatever its TSval",
        handshake
        + [there(30, ACK, 9, 40, 500), there(1000, SYN, 0, 7), back(1020, SYN | ACK, 0, 3, 7)]
        + [there(1021, ACK, 0, 8, 3), back(1022, ACK, 0, 4, 40)],
        *handshaken,
        ("b", 7, 20),
        ("a", 3, 1),
    )
    check(
        "a SYN before the end of the handshake is a retransmission",
        [there(0, SYN, 0, 10), there(1000, SYN, 0, 1010), back(1020, SYN | ACK, 0, 500, 10)]
        + [back(1021, SYN | ACK, 0, 500, 1010)],
        ("b", 10, 1020),
        ("b", 1010, 21),
    )
    check(
        "segments without timestamps change nothing",
        handshake + [there(30, ACK, 9, None, None), back(31, ACK, 0, None, None)],
        *handshaken,
    )
    check(
        "echo replies match by identifier and sequence number, once",
        [request(0, 1, 1), request(5, 2, 1), reply(20, 2, 1), reply(21, 1, 1), reply(22, 1, 1), reply(23, 1, 2)],
        ("b", 1, 15),
        ("b", 1, 21),
    )
    check(
        "a repeated echo request replaces the first",
        [request(0, 1, 1), request(5, 1, 1), reply(20, 1, 1)],
        ("b", 1, 15),
    )
    check(
        "a repeated echo request needs no room",
        [request(sequence, 1, sequence) for sequence in range(8)] + [request(15, 1, 0), reply(20, 1, 0)],
        ("b", 0, 5),
    )
    check(
        "a request is no reply to a request",
        [request(0, 1, 1), between("ba", 1, icmp(1, 1, True)), reply(20, 1, 1)],
        ("b", 1, 20),
    )
    check(
        "unanswered requests take up eight slots for 10 s",
        [request(1000 * sequence, 1, sequence) for sequence in range(12)] + [reply(11_000, 1, s) for s in range(12)],
        *[("b", sequence, 11_000 - 1000 * sequence) for sequence in (2, 3, 4, 5, 6, 7, 10, 11)],
    )
    assert nanoseconds("1700000000.123456789") == 1_700_000_000_123_456_789
    assert nanoseconds("1700000000.000001") == 1_700_000_000_000_001_000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", help="a pcap or pcapng file")
    parser.add_argument("--self-test", action="store_true", help="check the rules instead")
    parser.add_argument("--slots", type=int, default=SLOTS, help="recordings that may wait per direction")
    arguments = parser.parse_args()
    globals()["SLOTS"] = arguments.slots
    if arguments.self_test:
        self_test()
    elif arguments.file is None:
        parser.error("a FILE is needed")
    else:
        for sample in samples(read(arguments.file)):
            json.dump(sample, sys.stdout)
            sys.stdout.write("\n")


if __name__ == "__main__":
    main()
