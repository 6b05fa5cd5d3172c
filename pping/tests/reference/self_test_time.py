"""Rules 11 to 16."""

from rules import samples
from rules_base import Limits, Packet
from rules_tcp import ACK, FIN, RST, SYN, Segment
from self_test_packets import (
    HANDSHAKE,
    HANDSHAKEN,
    MS,
    back,
    check,
    from_a,
    reply,
    request,
    there,
)


def run():
    check_idle_flows()
    check_setbacks()


def check_idle_flows():
    """Rules 11 to 13. If a flow was forgotten, its pending recordings no longer match."""

    def check_limit(what, packets, answer, seconds):
        """Checks that `answer` matches up to `seconds` after the last of `packets`, and not later."""
        last = packets[-1].time // MS

        def at(time):
            return answer._replace(time=time * MS)

        sample = ("b", answer.content.tsecr if isinstance(answer.content, Segment) else answer.content.sequence)
        begin, limits = Packet(0), Limits(methods=("tcp-ts", "icmp-echo"))
        before = list(samples([begin, *packets], limits))
        for pause, is_forgotten in ((seconds * 1000 + 999, False), (seconds * 1000 + 1000, True)):
            end = last - last % 1000 + pause
            found = list(samples([begin, *packets, at(end)], limits))[len(before) :]
            found = [(sample["src_ip"], sample["id"]) for sample in found]
            expected = [] if is_forgotten else [sample]
            assert found == expected, f"{what}, {pause} ms: expected {expected}, found {found}"

    data = there(30, ACK, 9, 40, 500)
    late = back(0, ACK, 0, 600, 40)
    check_limit("open both ways", [*HANDSHAKE, data], late, 300)
    check_limit("one end has closed", [*HANDSHAKE, back(25, FIN | ACK, 0, 550, 30), data], late, 300)
    closed = [*HANDSHAKE, back(25, FIN | ACK, 0, 550), there(30, FIN | ACK, 0, 40)]
    check_limit("both ends have closed", closed, late, 10)
    check_limit("reset", [*HANDSHAKE, data, back(31, RST, 0, None)], late, 10)
    check_limit("reset, then data", [*HANDSHAKE, data, back(31, RST, 0, 9), there(5_000, ACK, 9, 9)], late, 10)
    check_limit("an unanswered SYN", [there(0, SYN, 0, 10)], back(0, SYN | ACK, 0, 500, 10), 30)
    check_limit("an unanswered FIN", [there(0, SYN, 0, 10), there(9, FIN | ACK, 0, 11)], back(0, ACK, 0, 5, 11), 10)
    check_limit("in the middle, one way", [there(0, ACK, 9, 39), data], late, 30)
    check_limit("in the middle, answered", [there(0, ACK, 9, 39), back(9, ACK, 0, 500, 1), data], late, 300)
    check_limit("answered without timestamps", [there(0, SYN, 0, 40), back(9, ACK, 0, None)], late, 300)
    check_limit("closed without timestamps", [there(0, SYN, 0, 40), there(9, FIN | ACK, 0, None)], late, 10)
    check_limit("echoes", [request(0, 1, 1), reply(9, 1, 1), request(10, 1, 2)], reply(0, 1, 2), 30)
    check(
        "any packet of a flow keeps it",
        [request(0, 1, 1), reply(20_000, 1, 9), there(30_000, SYN, 0, 10), there(49_000, ACK, 0, None)]
        + [reply(50_000, 1, 1), back(79_999, ACK, 0, 5, 10)],
        ("b", 1, 50_000),
        ("b", 10, 49_999),
    )
    check(
        "the seconds are those since the first packet of the file",
        [Packet(500 * MS), request(1_499, 1, 1), request(1_500, 2, 1), reply(32_499, 2, 1), reply(31_500, 1, 1)],
        ("b", 1, 30_999),
    )
    check(
        "packets that are not measured move the clock",
        [request(0, 1, 1), Packet(31_000 * MS), reply(30_900, 1, 1)],
    )


def check_setbacks():
    """Rules 2 and 14 to 16."""
    check(
        "an echo before its recording is no sample, and removes it",
        [request(100, 1, 1), reply(99, 1, 1), reply(110, 1, 1), request(120, 1, 2), reply(120, 1, 2)],
        ("b", 2, 0),
    )
    waiting = [request(1_900, 1, 1), reply(1_950, 1, 9)]
    check("a second back changes nothing", waiting + [request(950, 1, 2), reply(1_960, 1, 1)], ("b", 1, 60))
    check("more makes the flow forget what waits", waiting + [request(949, 1, 2), reply(1_960, 1, 1)])
    check(
        "time goes on from there",
        waiting + [request(100, 1, 2), request(101, 1, 3), reply(110, 1, 2), reply(111, 1, 3)],
        ("b", 2, 10),
        ("b", 3, 10),
    )
    later_handshake = [packet._replace(time=packet.time + 5_000 * MS) for packet in HANDSHAKE]
    check(
        "TSvals that wait are forgotten, too",
        [*later_handshake, there(5_030, ACK, 9, 40, 500), there(1_000, ACK, 0, 40), back(5_050, ACK, 0, 560, 40)],
        *HANDSHAKEN,
    )
    check(
        "after it, each direction leaves out its first newer TSval",
        later_handshake
        + [there(5_030, ACK, 9, 40, 500), back(5_040, ACK, 9, 560, 30)]
        + [there(1_000, ACK, 9, 39, 500), there(1_001, ACK, 9, 41, 500), there(1_002, ACK, 9, 42, 500)]
        + [back(1_010, ACK, 9, 570, 40), back(1_011, ACK, 9, 580, 41), back(1_012, ACK, 0, 581, 42)]
        + [there(1_020, ACK, 0, 50, 570), there(1_021, ACK, 0, 50, 580)],
        *HANDSHAKEN,
        ("b", 42, 10),
        ("a", 580, 10),
    )
    check(
        "the packet that went back may be the one that is left out",
        later_handshake
        + [there(1_000, ACK, 9, 40, 500), there(1_001, ACK, 9, 41, 500), back(1_010, ACK, 0, 570, 40)]
        + [back(1_011, ACK, 0, 580, 41)],
        *HANDSHAKEN,
        ("b", 41, 10),
    )
    check(
        "a SYN that begins a connection is recorded, whatever its time",
        later_handshake
        + [there(5_030, RST, 0, 60), from_a(1_000, SYN, 777, tsval=7, tsecr=0), back(1_010, SYN | ACK, 0, 8, 7)],
        *HANDSHAKEN,
        ("b", 7, 10),
    )
    check(
        "rate limits start again",
        [request(5_000, 1, 1), request(1_000, 1, 2), reply(1_010, 1, 2)],
        ("b", 2, 10),
        rate=100 * MS,
    )
    early = [Packet(0), request(100_000, 1, 1)]
    check(
        "a minute back, the clock stands until time is there again",
        early + [Packet(40_000 * MS), Packet(130_999 * MS), reply(130_100, 1, 1)],
        ("b", 1, 30_100),
    )
    check(
        "more, and it goes on with the seconds that it has",
        early + [Packet(39_999 * MS), Packet(70_998 * MS), reply(100_001, 1, 1)],
    )
    check(
        "fractions of seconds start again with it",
        [Packet(0), Packet(100_900 * MS), request(30_900, 1, 1), reply(61_899, 1, 1)],
        ("b", 1, 30_999),
    )
