"""Rules T1 to T3."""

from rules_tcp import ACK, RST, SYN
from self_test_packets import MS, check_all, from_a, from_b, reply, request

TCP = ("tcp-ts", "tcp-seq")


def a(time, sequence, tsval=None, flags=ACK, length=10):
    """Data from a to b. With a TSval it has the option."""
    return from_a(time, flags, sequence, length, 500, tsval=tsval, tsecr=tsval and 700)


def b(time, acknowledgment, tsecr=None, flags=ACK):
    return from_b(time, flags, 500, 0, acknowledgment, tsval=tsecr and 700 + time, tsecr=tsecr)


def seq(identifier, rtt, host="b"):
    return ("tcp-seq", host, identifier, rtt)


def ts(identifier, rtt, host="b"):
    return ("tcp-ts", host, identifier, rtt)


# Flows whose kind is known, with 110 as the highest end of a.
WITH = [a(0, 90, 10), a(1, 100, 11)]
WITHOUT = [from_a(0, SYN, 99), from_a(1, ACK, 100, 10)]


def run():
    check_settling()
    check_changes()
    check_methods()
    check_both()
    check_beginnings()


def check_settling():
    """Rule T1."""

    def check(what, packets, *expected):
        check_all(what, packets, *expected, methods=TCP)

    check("flows with timestamps are left to tcp-ts", [*WITH, b(21, 110, 11)], ts(11, 20))
    check("even where those are not echoed", [*WITH, b(21, 110, 5)])
    check("a SYN without is enough", [*WITHOUT, b(21, 110)], seq(110, 20))
    check(
        "so is a SYN-ACK, whatever the SYN had",
        [from_a(0, SYN, 99, tsval=10), from_b(5, SYN | ACK, 499, 0, 100), a(6, 100), b(26, 110)],
        seq(500, 1, "a"),
        seq(110, 20),
    )
    check("else the third segment", [a(0, 90), a(1, 100), a(2, 110), b(22, 120)], seq(120, 20))
    check("and not the second", [a(0, 90), a(1, 100), b(22, 110)])
    check("of both sides together", [a(0, 90), b(1, 100), a(2, 100), b(22, 110)], seq(110, 20))
    check("which may be a pure ACK", [a(0, 90), b(1, 100), b(2, 100), a(3, 100), b(23, 110)], seq(110, 20))
    check("but not a RST", [a(0, 90), b(1, 100), b(2, 100, flags=RST), a(3, 100), b(23, 110)], seq(110, 20))
    check("a RST is none of the three", [a(0, 90), b(1, 100, flags=RST), a(2, 100), b(22, 110)])
    check("one with the option among them settles it", [a(0, 90), a(1, 100, 10), a(2, 110), a(3, 120), b(23, 130)])
    check("two are no reason against timestamps", [*WITH, a(2, 110), a(3, 120), b(24, 130)])
    check("three are (T1a)", [*WITH, a(2, 110), a(3, 120), a(4, 130), b(24, 140)], seq(140, 20))
    check("the highest end is known before", [a(0, 90), a(1, 190), a(2, 100), b(22, 200)])


def check_changes():
    """Pending recordings when the kind changes: rule T1."""
    to_with = [*WITHOUT, a(2, 110, 10, length=0), b(21, 110)]
    check_all("from without to with", to_with, methods=TCP)
    check_all("also with seq", to_with, methods=TCP, tcp_method="seq")
    check_all("not with both", to_with, seq(110, 20), methods=TCP, tcp_method="both")
    to_without = [*WITH, b(2, 100, flags=SYN | ACK), b(21, 100, 11)]
    check_all("from with to without", to_without, methods=TCP)
    check_all("also with ts", to_without, methods=TCP, tcp_method="ts")
    check_all("not with both", to_without, ts(11, 20), methods=("tcp-ts",), tcp_method="both")
    check_all(
        "of both sides",
        [from_b(0, ACK, 4000, 10, 90), from_b(1, SYN | ACK, 4010, 0, 90)]
        + [from_b(2, ACK, 4011, 9, 90), a(3, 90, 10, length=0), from_a(9, ACK, 90, 0, 4020)],
        methods=TCP,
    )
    check_all(
        "what waits while the kind is unknown stays",
        [a(0, 90), a(1, 100), a(2, 110, 10, length=0), b(21, 110)],
        seq(110, 20),
        methods=TCP,
        tcp_method="seq",
    )
    check_all(
        "what waits in a handshake stays",
        [
            from_a(0, SYN, 99, tsval=10),
            from_b(20, SYN | ACK, 499, 0, 100),
            from_a(21, ACK, 100, 0, 500, tsval=1, tsecr=1),
        ],
        ("tcp-handshake", "b", 100, 20),
        ("tcp-handshake", "a", 500, 1),
    )


def check_methods():
    """Rule T2."""
    with_both = [*WITH, b(21, 110, 11)]
    without = [*WITHOUT, b(21, 110)]
    for tcp_method, of_with, of_without in (
        ("auto", [ts(11, 20)], [seq(110, 20)]),
        ("ts", [ts(11, 20)], []),
        ("seq", [seq(110, 20)], [seq(110, 20)]),
        ("both", [ts(11, 20), seq(110, 20)], [seq(110, 20)]),
    ):
        check_all(f"{tcp_method}, with", with_both, *of_with, tcp_method=tcp_method)
        check_all(f"{tcp_method}, without", without, *of_without, tcp_method=tcp_method)
        for methods in (("tcp-ts",), ("tcp-seq",), ("icmp-echo",)):
            limits = {"methods": methods, "tcp_method": tcp_method}
            # The sample of the SYN does not matter here.
            for what, packets, expected in (("with", with_both, of_with), ("without", without, of_without)):
                expected = [sample for sample in expected if sample[0] in methods]
                check_all(f"{tcp_method} of {methods}, {what}", packets, *expected, **limits)
    check_all("seq and both do not wait for a kind", [a(0, 90), a(1, 100), b(21, 110)], seq(110, 20), tcp_method="both")
    echo = [request(0, 1, 1), reply(20, 1, 1)]
    check_all("echoes are a method, too", echo, ("icmp-echo", "b", 1, 20))
    check_all("that can be off", echo, methods=TCP)
    check_all("off, all that there is", [*with_both, *without, *echo], methods=())


def check_both():
    """How the two methods share the room: rules T2 and 3."""
    six = [a(0, 90, 10)] + [a(1 + count, 100 + 10 * count, 11 + count) for count in range(6)]

    def check(what, packets, *expected, **limits):
        check_all(what, packets, *expected, tcp_method="both", **limits)

    last = b(30, 160, 16)
    check("four of each have room", [*six, b(30, 140, 14)], ts(14, 26), seq(140, 26))
    check("no more", [*six, last], seq(140, 26))
    check("half of what there is", [*six, b(30, 120, 12), last], ts(12, 28), seq(120, 28), pending=5)
    check_all("one alone has all", [*six, last], ts(16, 24), methods=TCP)
    check_all("so has the other", [*six, last], seq(160, 24), methods=TCP, tcp_method="seq")
    check("each has a rate limit", [*six, b(30, 110, 11), last], ts(11, 29), seq(110, 29), rate=100 * MS)
    check("a repetition is of tcp-ts only", [*WITH, a(2, 100, 12), b(22, 110, 12)], ts(12, 20))


def check_beginnings():
    """Rule T3: if the flow began earlier, its kind would differ, or more would be known about it."""
    late = [a(1, 90), a(2, 100), a(3, 110), b(23, 120)]
    check_all("tcp-seq begins none with the option", [a(0, 80, 10), *late], seq(120, 20), methods=("tcp-seq",))
    apart = [a(1, 90), b(2, 100), a(3, 100), b(23, 110)]
    check_all("but tcp-ts does", [a(0, 80, 10), *apart], methods=TCP)
    check_all("or else there would be samples", apart, seq(110, 20), methods=TCP)
    check_all("and tcp-seq for all", [a(0, 90, 9), a(1, 100, 9), b(21, 110)], seq(110, 20), tcp_method="seq")
    check_all(
        "tcp-handshake begins one with SYN",
        [from_a(0, SYN, 99, tsval=10), a(1, 100), a(2, 110), a(3, 120), b(23, 130)],
        methods=("tcp-seq", "tcp-handshake"),
    )
    check_all(
        "and with no other",
        [a(0, 90, 10), *late],
        seq(120, 20),
        methods=("tcp-seq", "tcp-handshake"),
    )
    # If a RST began a flow, the flow would be closed, and forgotten after 10 s.
    reset = [a(0, 90, None, RST), a(1, 90), a(2, 100), b(20_000, 110)]
    check_all("RST begins none", reset, seq(110, 19_998), tcp_method="seq")
    # If the flow began with the first of these, it would be open, and kept for more than 30 s.
    for what, flags in (("segment", ACK), ("SYN", SYN)):
        first = from_b(1, ACK, 500, 9, 90, tsval=701, tsecr=10)
        second = from_b(2, ACK, 509, 9, 90, tsval=702, tsecr=10)
        late_echo = from_a(40_000, ACK, 100, 0, 500, tsval=99, tsecr=702)
        check_all(
            f"tcp-ts begins none with a {what} without the option",
            [a(0, 90, None, flags), first, second, late_echo],
            methods=("tcp-ts",),
        )
