"""Rules 8b and 8c: RSTs and SYNs that anybody can send, and those of the endpoints."""

from rules_tcp import ACK, FIN, RST, RST_WITHIN, SYN
from self_test_packets import MS, check_all, from_a, from_b

SHAKE = [
    from_a(0, SYN, 1000, tsval=100, tsecr=0),
    from_b(3, SYN | ACK, 5000, 0, 1001, tsval=500, tsecr=100),
    from_a(4, ACK, 1001, 0, 5001, tsval=101, tsecr=500),
]
SHAKEN = [("tcp-handshake", "b", 1001, 3), ("tcp-handshake", "a", 5001, 1)]
DATA = [
    from_a(20, ACK, 1001, 100, 5001, tsval=120, tsecr=500),
    from_b(28, ACK, 5001, 0, 1101, tsval=528, tsecr=120),
]
ECHOED = [("tcp-ts", "b", 120, 8)]


def later(ms, packets):
    return [packet._replace(time=packet.time + ms * MS) for packet in packets]


def run():
    check_syns()
    check_resets()


def check_syns():
    for flags, number in ((SYN, 77), (SYN, 0x9000_0000), (SYN | ACK, 77)):
        what = f"a forged segment with flags {flags:#x} and number {number}"
        for end in (from_a, from_b):
            forged = end(24, flags, number, 0, 4711, tsval=1, tsecr=0)
            check_all(what, SHAKE + DATA[:1] + [forged] + DATA[1:], *SHAKEN, *ECHOED)
    syns = [from_a(5 + number, SYN, 77 * number, tsval=number, tsecr=0) for number in range(1, 10)]
    check_all("many of them", SHAKE + syns + DATA, *SHAKEN, *ECHOED)
    again = later(5000, SHAKE + DATA)
    moved = [again[0]._replace(content=again[0].content._replace(sequence=900_000))]
    moved.append(again[1]._replace(content=again[1].content._replace(acknowledgment=900_001)))
    for packet in again[2:]:
        segment = packet.content
        by = 899_000
        segment = (
            segment._replace(sequence=segment.sequence + by)
            if packet.source[0] == "a"
            else segment._replace(acknowledgment=segment.acknowledgment + by)
        )
        moved.append(packet._replace(content=segment))
    check_all("a SYN of an endpoint, from its SYN-ACK on", SHAKE + DATA + moved, *SHAKEN, *ECHOED, SHAKEN[1], *ECHOED)
    first = from_a(24, SYN, 900_000, tsval=1, tsecr=0)
    reply = from_b(40, SYN | ACK, 7000, 0, 900_001, tsval=1, tsecr=1)
    rest = [
        from_a(60, ACK, 1101, 100, 5001, tsval=160, tsecr=528),
        from_b(69, ACK, 5001, 0, 1201, tsval=560, tsecr=160),
    ]
    measured = [*SHAKEN, *ECHOED, ("tcp-ts", "b", 160, 9)]
    check_all("an echo of data ends the wait", SHAKE + DATA[:1] + [first, DATA[1], reply, *rest], *measured)
    second = from_a(29, SYN, 910_000, tsval=2, tsecr=0)
    wrong = SHAKE + DATA + [first._replace(time=28 * MS), second, reply, *rest]
    check_all("only the latest SYN is waited for", wrong, *measured)


def check_resets():
    shaken = SHAKE + DATA
    more = [
        from_a(60, ACK, 1101, 100, 5001, tsval=160, tsecr=528),
        from_b(69, ACK, 5001, 0, 1201, tsval=560, tsecr=160),
    ]
    again = later(1000, SHAKE[:2])
    again[0] = again[0]._replace(content=again[0].content._replace(sequence=3000))
    again[1] = again[1]._replace(content=again[1].content._replace(acknowledgment=3001))
    anew = ("tcp-handshake", "b", 3001, 3)
    for what, forged in (
        ("a RST far ahead", from_a(40, RST, 1101 + RST_WITHIN + 1)),
        ("a RST far behind", from_a(40, RST, (1101 - RST_WITHIN - 1) % 2**32)),
        ("a RST of the other end", from_b(40, RST, 0x9000_0000)),
        ("a RST that only acknowledges", from_b(40, RST | ACK, 0x9000_0000, 0, 1101)),
        ("a RST that acknowledges something else", from_b(40, RST | ACK, 0x9000_0000, 0, 0x7000_0000)),
    ):
        # The new SYN would have a leg of its own if the connection were closed.
        expected = [*SHAKEN, *ECHOED, ("tcp-ts", "b", 160, 9)]
        check_all(what, shaken + [forged] + more + again, *expected)
    for what, reset in (
        ("a RST at the number", from_a(40, RST, 1101)),
        ("one as far as may be", from_a(40, RST, 1101 + RST_WITHIN)),
        ("one in reply to data", from_b(40, RST, 5001)),
        ("one a bit behind", from_a(40, RST, 1001)),
    ):
        check_all(what, shaken + [reset] + again, *SHAKEN, *ECHOED, anew)
    refused = [SHAKE[0], from_b(1, RST | ACK, 0, 0, 1001), *later(500, SHAKE)]
    check_all("a RST that refuses a SYN", refused, *SHAKEN)
    forged = [SHAKE[0], from_b(1, RST | ACK, 0, 0, 10_001_001), *SHAKE[1:]]
    check_all("and one that refuses another", forged, *SHAKEN)
    forged = [SHAKE[0], from_b(1, RST, 0x9000_0000), *SHAKE[1:]]
    check_all("one that acknowledges no SYN", forged, *SHAKEN)
    lies = [from_b(1, ACK, 0x9000_0000, 9, 0x7000_0000), from_b(2, RST, 0x9000_0009)]
    check_all("one whose number its sender has just made known", [SHAKE[0], *lies, *SHAKE[1:]], *SHAKEN)
    fins = [
        from_a(40, FIN | ACK, 1101, 0, 5001, tsval=140, tsecr=528),
        from_b(41, FIN | ACK, 5001, 0, 1102, tsval=541, tsecr=140),
    ]
    check_all("a SYN after both FINs", shaken + fins + again, *SHAKEN, *ECHOED, ("tcp-ts", "b", 140, 1), anew)
