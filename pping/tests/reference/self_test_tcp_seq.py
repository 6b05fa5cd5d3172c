"""Rules S1 to S5, and 1 to 3, 8 and 14 by tcp-seq."""

from functools import partial

from rules_tcp import ACK, FIN, RST, SYN
from self_test_packets import MS, check_all, from_a, from_b

TOP = 2**32

check = partial(check_all, methods=("tcp-seq",), tcp_method="seq")


def a(time, sequence, length=10, flags=ACK, **fields):
    return from_a(time, flags, sequence, length, 500, **fields)


def b(time, acknowledgment, flags=ACK, **fields):
    return from_b(time, flags, 500, 0, acknowledgment, **fields)


def sample(identifier, rtt, host="b"):
    return ("tcp-seq", host, identifier, rtt)


# Sets the highest end to 100.
BEGIN = a(0, 90)


def run():
    check_recording()
    check_repetition()
    check_acknowledgment()
    check_limits()
    check_time()
    check_new_connections()


def check_recording():
    """Rules S1 and S3."""
    check("the first segment that is seen is not recorded without SYN", [BEGIN, b(20, 100)])
    check("the next is", [BEGIN, a(1, 100), b(21, 110)], sample(110, 20))
    check(
        "a SYN is recorded, if tcp-handshake does not measure it",
        [from_a(0, SYN, 99), from_b(20, SYN | ACK, 499, 0, 100), from_a(21, ACK, 100, 0, 500)],
        sample(100, 20),
        sample(500, 1, "a"),
    )
    check("a SYN without tcp-handshake has its payload in its end", [a(0, 99, 10, SYN), b(20, 110)], sample(110, 20))
    check("FIN consumes sequence space", [BEGIN, a(1, 100, 0, FIN | ACK), b(21, 101)], sample(101, 20))
    check("a pure ACK does not", [BEGIN, a(1, 105, 0), b(21, 105)])
    check("nor does it move the highest end", [BEGIN, a(1, 200, 0), a(2, 100), b(21, 110)], sample(110, 19))
    check("the first pure ACK sets it", [a(0, 100, 0), a(1, 100), b(21, 110)], sample(110, 20))
    check("a hole moves it", [BEGIN, a(1, 150), b(21, 160)], sample(160, 20))
    check("RST moves it not", [BEGIN, a(1, 100, 10, RST), a(2, 100), b(22, 110)], sample(110, 20))
    check(
        "numbers wrap",
        [a(0, TOP - 30), a(1, TOP - 20, 15), a(2, TOP - 5), b(20, TOP - 5), b(22, 5)],
        sample(TOP - 5, 19),
        sample(5, 20),
    )
    check(
        "each direction has a highest end",
        [BEGIN, from_b(1, ACK, 4000, 10, 100), from_b(2, ACK, 4010, 10, 100), a(3, 100), from_a(4, ACK, 110, 0, 4020)],
        sample(4020, 2, "a"),
    )


def check_repetition():
    """Rule S2."""
    two = [BEGIN, a(1, 100), a(2, 110)]
    check("what is repeated is not measured", [*two, a(3, 100, 20), b(22, 120)])
    check("nor what is repeated in part", [*two, a(3, 119, 1), b(22, 110), b(23, 120)])
    check("what is before it goes", [*two, a(3, 110), b(22, 110), b(23, 120)])
    check("what comes after it is measured", [*two, a(3, 110), a(4, 120), b(22, 130)], sample(130, 18))
    check("what is behind it goes", [*two, a(3, 100), b(22, 120)])
    check("a repetition with more is recorded", [BEGIN, a(1, 100), a(2, 105), b(22, 115)], sample(115, 20))
    check("and its first part is not measured", [BEGIN, a(1, 100), a(2, 105), b(22, 110)])
    check("a keep-alive with a byte repeats it", [*two, a(3, 119, 1), b(22, 120)])
    check("one without does not", [*two, a(3, 119, 0), b(22, 120)], sample(120, 20))
    check("what fills a hole makes all behind it doubtful", [BEGIN, a(1, 110), a(2, 100), b(22, 120)])
    check("a repeated FIN", [BEGIN, a(1, 100, 0, FIN | ACK), a(2, 100, 0, FIN | ACK), b(22, 101)])
    check("a RST repeats nothing", [*two, a(3, 100, 20, RST), b(22, 120)], sample(120, 20))
    check("what is repeated across the wrap", [a(0, TOP - 15), a(1, TOP - 5), a(2, TOP - 5), b(22, 5)])
    check(
        "a repeated SYN",
        [from_a(0, SYN, 99), from_a(1000, SYN, 99), from_b(1020, SYN | ACK, 499, 0, 100)],
    )


def check_acknowledgment():
    """Rules 1, 2 and S4."""
    three = [BEGIN, a(1, 100), a(2, 110), a(3, 120)]
    check(
        "the newest that is acknowledged matches, the others are freed, and a repeated ACK finds nothing",
        [*three, b(30, 120), b(31, 110), b(32, 120), b(40, 130)],
        sample(120, 28),
        sample(130, 37),
    )
    check("an ACK may end between", [*three, b(30, 115)], sample(110, 29))
    check("an older ACK changes nothing", [*three, b(30, 90), b(31, 130)], sample(130, 28))
    check(
        "the greatest is not that of the greatest value",
        [a(0, TOP - 30), a(1, TOP - 20, 15), a(2, TOP - 5), b(9, 7)],
        sample(5, 7),
    )
    check("without ACK the number means nothing", [*three, b(30, 130, 0), b(31, 130)], sample(130, 28))
    check("RST is no echo", [*three, b(30, 130, RST | ACK), b(31, 130)], sample(130, 28))
    check(
        "an ACK with a SACK block frees, but is no sample",
        [*three, b(30, 120, has_sack_block=True), b(31, 120), b(32, 130)],
        sample(130, 29),
    )
    check(
        "one packet matches and is recorded",
        [BEGIN, from_b(1, ACK, 490, 10, 100), a(2, 100), from_b(22, ACK, 500, 10, 110), from_a(27, ACK, 110, 0, 510)],
        sample(110, 20),
        sample(510, 5, "a"),
    )
    check("an echo before its recording is no sample, but frees", [BEGIN, a(100, 100), b(99, 110), b(101, 110)])
    check("nor is there another instead", [BEGIN, a(100, 100), a(103, 110), b(102, 120), b(104, 120)])


def check_limits():
    """Rule 3."""
    nine = [BEGIN] + [a(100 + count, 100 + 10 * count) for count in range(9)]
    check("a ninth recording has no room", [*nine, b(200, 190), b(201, 200)], sample(180, 93))
    check(
        "after 10 s the oldest makes room",
        [*nine, a(10_100, 190), b(10_110, 110), b(10_120, 120), b(10_130, 200)],
        sample(120, 10_019),
        sample(200, 30),
    )
    check("a recording younger than 10 s stays", [*nine, a(10_099, 190), b(10_110, 110)], sample(110, 10_010))
    check(
        "a rate limit is on recordings",
        [BEGIN, a(1, 100), a(100, 110), b(105, 120), a(110, 120), b(115, 130)],
        sample(110, 104),
        sample(130, 5),
        rate=100 * MS,
    )


def check_time():
    """Rules 14 and S5."""
    later = [a(5_000, 90), a(5_001, 100)]
    check("a second back changes nothing", [*later, a(4_001, 110, 0), b(5_021, 110)], sample(110, 20))
    check("more makes the flow forget what waits", [*later, a(4_000, 110, 0), b(5_021, 110)])
    check("the packet that goes back is recorded", [*later, a(1_000, 110), b(1_020, 120)], sample(120, 20))
    check("the highest end stays", [*later, a(1_000, 100), b(1_020, 110)])
    check("rate limits start again", [*later, a(1_000, 110), b(1_020, 120)], sample(120, 20), rate=100 * MS)


def check_new_connections():
    """Rule 8."""
    old = [BEGIN, a(1, 100), from_b(2, ACK, 490, 10, 100), from_b(3, RST, 500)]
    check("nothing that waits is kept", [*old, from_a(10, SYN, 5000), b(20, 110)])
    check("a SYN sets the highest end back", [*old, from_a(10, SYN, 50), b(20, 51)], sample(51, 10))
    check("and ahead", [*old, from_a(10, SYN, 5000), b(20, 5001)], sample(5001, 10))
    check("and is recorded where that is already", [*old, from_a(10, SYN, 109), b(20, 110)], sample(110, 10))
    check(
        "highest ends are not kept",
        [*old, from_a(10, SYN, 50), from_b(20, ACK, 700, 10, 51), from_a(25, ACK, 51, 0, 710)],
        sample(51, 10),
    )
    check("rate limits are not", [*old, from_a(10, SYN, 50), b(20, 51)], sample(51, 10), rate=100 * MS)
