"""Rules 8a, 9 and H1: what is sent again, and copies."""

from rules_base import METHODS
from rules_tcp import ACK, FIN, RST, SYN
from self_test_packets import MS, check_all, from_a, from_b

US = MS // 1000


def a(time, sequence, tsval, length=100, flags=ACK):
    return from_a(time, flags, sequence, length, 5001, tsval=tsval, tsecr=500)


def b(time, tsecr, acknowledgment=0, flags=ACK):
    return from_b(time, flags, 5001, 0, acknowledgment, tsval=500 + time, tsecr=tsecr)


def after(packet, microseconds):
    """A copy of a packet."""
    return packet._replace(time=packet.time + microseconds * US)


def ts(identifier, rtt, host="b"):
    return ("tcp-ts", host, identifier, rtt)


def leg(identifier, rtt, host="b"):
    return ("tcp-handshake", host, identifier, rtt)


SHAKE = [
    from_a(0, SYN, 1000, tsval=100, tsecr=0),
    from_b(3, SYN | ACK, 5000, 0, 1001, tsval=500, tsecr=100),
    from_a(4, ACK, 1001, 0, 5001, tsval=101, tsecr=500),
]
SHAKEN = [leg(1001, 3), leg(5001, 1, "a")]


def late(time, packets):
    """Copies of packets, with 6 us in between."""
    return [packet._replace(time=time * MS + 6 * US * number) for number, packet in enumerate(packets)]


def run():
    check_sent_again()
    check_copies()
    check_connections()


def check_sent_again():
    check_all("within the tick", SHAKE + [a(20, 1001, 120), a(25, 1001, 120), b(28, 120)], *SHAKEN)
    check_all("another one of the tick", SHAKE + [a(20, 1001, 120), a(20, 1101, 120), a(25, 1101, 120), b(28, 120)], *SHAKEN)
    check_all("in part", SHAKE + [a(20, 1001, 120), a(25, 1050, 120), b(28, 120)], *SHAKEN)
    check_all("a keep-alive", SHAKE + [a(20, 1001, 120), a(25, 1100, 120, 0), b(28, 120)], *SHAKEN)
    check_all("an ACK is none", SHAKE + [a(20, 1001, 120), a(25, 1101, 120, 0), b(28, 120)], *SHAKEN, ts(120, 8))
    check_all("in another tick", SHAKE + [a(20, 1001, 120), a(25, 1001, 125), b(28, 125)], *SHAKEN, ts(125, 3))
    check_all("an older tick", SHAKE + [a(20, 1001, 120), a(22, 1101, 125), a(25, 1001, 125), b(28, 120)], *SHAKEN, ts(120, 8))
    check_all("a FIN", SHAKE + [a(20, 1001, 120, 0, ACK | FIN), a(25, 1001, 120, 0, ACK | FIN), b(28, 120)], *SHAKEN)
    only_ts = [SHAKE[0], SHAKE[0]._replace(time=300 * MS), SHAKE[1]._replace(time=303 * MS)]
    check_all("a SYN", only_ts, methods=("tcp-ts",))


def check_copies():
    sent = a(20, 1001, 120)
    check_all("a copy is no retransmission", SHAKE + [sent, after(sent, 900), b(28, 120)], *SHAKEN, ts(120, 8))
    check_all("but not 2^20 ns later", SHAKE + [sent, after(sent, 1049), b(28, 120)], *SHAKEN)
    quick = SHAKE + [a(10, 1001, 110), after(b(10, 110), 200), sent]
    check_all("nor the lowest RTT later", quick + [after(sent, 200), b(28, 120)], *SHAKEN, ts(110, 0))
    check_all("just before", quick + [after(sent, 199), b(28, 120)], *SHAKEN, ts(110, 0), ts(120, 8))
    doubled = [packet for each in SHAKE for packet in (each, after(each, 5))]
    check_all("a SYN and a SYN-ACK have copies, too", doubled, *SHAKEN)
    check_all("also for tcp-ts", doubled, ts(100, 3), ts(500, 1, "a"), methods=("tcp-ts",))


def check_connections():
    data = [a(2020, 1001, 2120), b(2025, 2120, 1101)]
    for time in (6, 30, 2010):
        what = f"a handshake once more after {time} ms"
        check_all(what, SHAKE + late(time, SHAKE) + data, *SHAKEN, ts(2120, 5))
    over = SHAKE + [a(20, 1001, 120, 0, ACK | FIN)]
    check_all("also after the end", over + late(30, SHAKE), *SHAKEN)
    bare = [packet._replace(content=packet.content._replace(tsval=None, tsecr=None)) for packet in SHAKE]
    seq = [from_a(20, ACK, 1001, 100, 5001), *late(30, bare), from_b(40, ACK, 5001, 0, 1101)]
    check_all("also without timestamps", bare + seq, *SHAKEN, ("tcp-seq", "b", 1101, 20))
    closed = [*bare, from_a(50, RST, 1001)]
    check_all("but not 10 s later", closed + [after(packet, 10_000_000) for packet in bare], *SHAKEN, *SHAKEN)
    low = [
        from_a(0, SYN, 900_000, tsval=1_852_516_352, tsecr=0),
        from_a(1000, SYN, 900_000, tsval=1_852_517_352, tsecr=0),
    ]
    again = [after(packet, 5_000_000) for packet in SHAKE + [a(20, 1001, 120), b(28, 120)]]
    check_all("a SYN after an unanswered one, with a lower TSval", low + again, *SHAKEN, ts(120, 8))
    refused = [SHAKE[0], from_b(1, RST | ACK, 0, 0, 1001), *[after(packet, 500_000) for packet in SHAKE]]
    check_all("a SYN again after it was refused", refused, *SHAKEN)
    other = from_b(0, ACK, 4000, 100, 1, tsval=1_852_516_352, tsecr=1)
    check_all("a SYN after data of the other end", [other, *again], *SHAKEN, ts(120, 8))
    twice = SHAKE[:1] + [after(packet, 1_000_000) for packet in SHAKE]
    check_all("a SYN again before its answer", twice, *SHAKEN[1:], methods=METHODS)
