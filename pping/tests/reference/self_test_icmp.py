"""Rules 9 and 10."""

from rules_base import COPY_WITHIN, Packet
from rules_icmp import Echo
from self_test_packets import MS, check, reply, request


def run():
    check(
        "echo replies match by identifier and sequence number, once",
        [request(0, 1, 1), request(5, 2, 1), reply(20, 2, 1), reply(21, 1, 1), reply(22, 1, 1), reply(23, 1, 2)],
        ("b", 1, 15),
        ("b", 1, 21),
    )
    check(
        "and by their data",
        [request(0, 1, 1, "first"), reply(10, 1, 1, "second"), reply(11, 1, 1), reply(20, 1, 1, "first")],
        ("b", 1, 20),
    )
    check(
        "a repeated echo request makes both ambiguous",
        [request(0, 1, 1), request(5, 1, 1), reply(20, 1, 1), request(30, 1, 1), reply(50, 1, 1)],
        ("b", 1, 20),
    )
    copy = request(0, 1, 1)._replace(time=COPY_WITHIN - 1)
    check("a copy changes nothing", [request(0, 1, 1), copy, reply(20, 1, 1)], ("b", 1, 20))
    both = [request(0, 1, 1, "first"), request(5, 1, 1, "second"), reply(20, 1, 1, "second"), reply(30, 1, 1, "first")]
    check("with other data it is another one", both, ("b", 1, 15), ("b", 1, 30))
    check("a moment later it is none", [request(0, 1, 1), copy._replace(time=COPY_WITHIN), reply(20, 1, 1)])
    check(
        "a request is no reply to a request",
        [request(0, 1, 1), Packet(1 * MS, "", ("b", 1), ("a", 1), Echo(1, True)), reply(20, 1, 1)],
        ("b", 1, 20),
    )
    check_room()
    check_limit()


def check_room():
    """Rules E1 to E3."""

    def requests(count, interval=1):
        return [request(interval * sequence, 1, sequence) for sequence in range(count)]

    check(
        "the latest eight and eight that are kept",
        requests(20) + [reply(30, 1, sequence) for sequence in range(20)],
        *[("b", sequence, 30 - sequence) for sequence in (*range(8), *range(12, 20))],
    )
    check(
        "lost requests leave room for later ones",
        requests(100) + [reply(110, 1, 99), request(120, 1, 100), reply(125, 1, 100), reply(126, 1, 98)],
        ("b", 99, 11),
        ("b", 100, 5),
        ("b", 98, 28),
    )
    check(
        "what is older than a sample gives way",
        [*requests(16), reply(16, 1, 5), request(17, 1, 16), request(18, 1, 17)]
        + [reply(30, 1, sequence) for sequence in (0, 1, 8, 9)],
        ("b", 5, 11),
        ("b", 1, 29),
        ("b", 8, 22),
        ("b", 9, 21),
    )
    check(
        "and what has waited for 10 s",
        [*requests(16), request(9_999, 1, 16), request(10_000, 1, 17)]
        + [reply(10_002, 1, sequence) for sequence in (0, 1, 8, 9, 17)],
        ("b", 1, 10_001),
        ("b", 9, 9_993),
        ("b", 17, 2),
    )


def check_limit():
    """Rule E4, and the second half of rule E2."""
    check(
        "the limit is between requests that give samples",
        [request(0, 1, 0), request(90, 1, 1), reply(95, 1, 1), request(180, 1, 2), reply(185, 1, 2), reply(186, 1, 0)]
        + [request(190, 1, 3), reply(192, 1, 3)],
        ("b", 1, 5),
        ("b", 3, 2),
        rate=100 * MS,
    )
    check(
        "requests are kept as far apart",
        [request(10 * sequence, 1, sequence) for sequence in range(40)] + [reply(500, 1, s) for s in range(40)],
        ("b", 0, 500),
        ("b", 10, 400),
        ("b", 20, 300),
        ("b", 30, 200),
        rate=100 * MS,
    )
