"""Rules 1 to 8, by tcp-ts."""

from rules_tcp import ACK, FIN, RST, SYN
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
    check_matching()
    check_new_connections()


def check_matching():
    check("a handshake times both ways", HANDSHAKE, *HANDSHAKEN)
    check(
        "only the first segment of a tick is timed, and only the first echo counts",
        HANDSHAKE
        + [there(30, ACK, 9, 40, 500), there(31, ACK, 9, 40, 500)]
        + [back(50, ACK, 0, 550, 40), back(51, ACK, 0, 551, 40)],
        *HANDSHAKEN,
        ("b", 40, 20),
    )
    check(
        "a pure ACK is not recorded, but uses up its TSval",
        HANDSHAKE + [there(30, ACK, 0, 40, 500), there(31, ACK, 9, 40, 500), back(50, ACK, 0, 550, 40)],
        *HANDSHAKEN,
    )
    check(
        "FIN consumes sequence space",
        HANDSHAKE + [there(30, FIN | ACK, 0, 40, 500), back(50, ACK, 0, 550, 40)],
        *HANDSHAKEN,
        ("b", 40, 20),
    )
    check(
        "in the middle of a stream, the first change is the first TSval to trust",
        [there(0, ACK, 9, 10, 1), there(1, ACK, 9, 11, 1), back(20, ACK, 0, 500, 10), back(21, ACK, 0, 501, 11)],
        ("b", 11, 20),
    )
    check(
        "an older TSval is not recorded",
        HANDSHAKE + [there(30, ACK, 9, 29, 500), back(50, ACK, 0, 550, 29)],
        *HANDSHAKEN,
    )
    check(
        "TSval wraps",
        [there(0, ACK, 9, 2**32 - 1), there(1, ACK, 9, 0), back(21, ACK, 0, 500, 0)],
        ("b", 0, 20),
    )
    check("half way round is not newer", [there(0, ACK, 9, 0), there(1, ACK, 9, 2**31), back(21, ACK, 0, 500, 2**31)])
    check("without ACK there is no echo", [there(0, SYN, 0, 10), back(1, SYN, 0, 500, 10)])
    check("RST is no echo", [there(0, SYN, 0, 10), back(1, RST | ACK, 0, 500, 10)])
    check(
        "a newer TSecr removes older recordings, an old one changes nothing",
        HANDSHAKE
        + [there(30, ACK, 9, 40, 500), there(40, ACK, 9, 50, 500), there(50, ACK, 9, 60, 500)]
        + [back(60, ACK, 0, 550, 5), back(70, ACK, 0, 560, 50), back(71, ACK, 0, 561, 40)]
        + [back(80, ACK, 0, 570, 60)],
        *HANDSHAKEN,
        ("b", 50, 30),
        ("b", 60, 30),
    )
    check(
        "a TSecr that was not recorded removes older ones too",
        HANDSHAKE + [there(30, ACK, 9, 40, 500), back(60, ACK, 0, 550, 45), back(61, ACK, 0, 551, 40)],
        *HANDSHAKEN,
    )
    check(
        "one packet matches and is recorded",
        HANDSHAKE + [there(30, ACK, 9, 40, 500), back(50, ACK, 9, 550, 40), there(55, ACK, 0, 60, 550)],
        *HANDSHAKEN,
        ("b", 40, 20),
        ("a", 550, 5),
    )
    nine = HANDSHAKE + [there(100 + tick, ACK, 9, 100 + tick, 500) for tick in range(9)]
    check(
        "a ninth recording has no room",
        nine + [back(200, ACK, 0, 550, 107), back(201, ACK, 0, 551, 108)],
        *HANDSHAKEN,
        ("b", 107, 93),
    )
    check(
        "after 10 s the oldest makes room",
        nine
        + [there(10_100, ACK, 9, 10_100, 500), back(10_120, ACK, 0, 550, 101)]
        + [back(10_130, ACK, 0, 551, 10_100)],
        *HANDSHAKEN,
        ("b", 101, 10_019),
        ("b", 10_100, 30),
    )
    check(
        "a recording younger than 10 s stays",
        nine
        + [there(10_099, ACK, 9, 10_099, 500), back(10_120, ACK, 0, 550, 100)]
        + [back(10_130, ACK, 0, 551, 10_099)],
        *HANDSHAKEN,
        ("b", 100, 10_020),
    )
    check(
        "a SYN with another number is a new connection, whatever its TSval",
        HANDSHAKE
        + [there(30, ACK, 9, 40, 500), there(40, RST, 0, 50)]
        + [from_a(1000, SYN, 777, tsval=7, tsecr=0), back(1020, SYN | ACK, 0, 3, 7)]
        + [there(1021, ACK, 0, 8, 3), back(1022, ACK, 0, 4, 40)],
        *HANDSHAKEN,
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
        HANDSHAKE + [there(30, ACK, 9, None, None), back(31, ACK, 0, None, None)],
        *HANDSHAKEN,
    )


def check_new_connections():
    """Rules 8, 10 and T3."""
    check(
        "a SYN of the other endpoint begins no connection before that has sent anything else",
        [there(0, SYN, 0, 10), back(1, SYN, 0, 500), there(2, SYN | ACK, 0, 12, 500), back(3, SYN | ACK, 0, 500, 10)],
        ("a", 500, 1),
        ("b", 10, 3),
    )
    check(
        "a SYN after a RST is a new connection",
        [there(0, SYN, 0, 10), back(1, RST | ACK, 0, None), there(2, SYN, 0, 5), back(9, SYN | ACK, 0, 500, 5)],
        ("b", 5, 7),
    )
    check(
        "a SYN with ACK begins nothing",
        HANDSHAKE + [there(30, ACK, 9, 40, 500), there(31, SYN | ACK, 0, 41, 500), back(50, ACK, 0, 550, 40)],
        *HANDSHAKEN,
        ("b", 40, 20),
    )
    check(
        "a SYN with RST begins nothing and ends what there was",
        HANDSHAKE + [there(30, ACK, 9, 40, 500), there(31, SYN | RST, 0, 41), back(50, ACK, 0, 550, 40)],
        *HANDSHAKEN,
        ("b", 40, 20),
    )
    check(
        "neither RST nor reply nor a segment without timestamps begins a flow",
        [there(0, RST, 0, 10), there(1, ACK, 0, None), reply(2, 1, 1)]
        + [there(20_000, SYN, 0, 20), back(20_020, SYN | ACK, 0, 500, 20), request(20_100, 1, 2), reply(20_105, 1, 2)],
        ("b", 20, 20),
        ("b", 2, 5),
    )
    check(
        "a rate limit is on recordings, and takes the first of the tick after it",
        HANDSHAKE
        + [there(30, ACK, 9, 40, 500), there(100, ACK, 9, 50, 500), there(101, ACK, 9, 50, 500)]
        + [back(120, ACK, 0, 550, 40), back(130, ACK, 0, 560, 50)]
        + [there(199, ACK, 9, 60, 500), back(210, ACK, 0, 570, 60)],
        *HANDSHAKEN,
        ("b", 50, 30),
        rate=100 * MS,
    )
