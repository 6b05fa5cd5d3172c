"""Rules W0 to W2: numbers that do not fit, and the way back after packets were missed. And TSvals that leap (T1a)."""

from rules_tcp import ACK, FIN, SYN
from self_test_packets import check_all, from_a, from_b

HALF = 2**31
SHIFT = 7
WINDOW = 65_536 << SHIFT
MOST_AHEAD = 2**20


def shake(shift_a=SHIFT, shift_b=SHIFT):
    return [
        from_a(0, SYN, 1000, window_shift=shift_a),
        from_b(3, SYN | ACK, 5000, 0, 1001, window_shift=shift_b),
        from_a(4, ACK, 1001, 0, 5001),
    ]


SHAKEN = [("tcp-handshake", "b", 1001, 3), ("tcp-handshake", "a", 5001, 1)]
DATA, ECHO = from_a(20, ACK, 1001, 100, 5001), from_b(28, ACK, 5001, 0, 1101)
MEASURED = [*SHAKEN, ("tcp-seq", "b", 1101, 8)]


def numbered(number, length=100):
    return from_a(24, ACK, number % 2**32, length, 5001)


def acknowledging(number):
    return from_b(24, ACK, 5001, 0, number % 2**32)


def run():
    check_refused()
    check_way_back()
    check_confirmation()
    check_stamps()
    check_leaps()


def check_refused():
    for what, shifts, ahead, behind in (
        ("a window that is known", (7, 7), MOST_AHEAD, WINDOW),
        ("one that is not", (None, None), MOST_AHEAD, 2**26),
        ("one that the receiver does not scale", (7, None), MOST_AHEAD, 2**26),
        ("one that only the receiver scales", (None, 7), MOST_AHEAD, WINDOW),
        ("the smallest", (0, 0), 65_536, 65_536),
        ("the largest", (14, 14), MOST_AHEAD, 2**30),
        ("that of the receiver", (3, 7), MOST_AHEAD, WINDOW),
    ):
        for number in (1101 + ahead + 1, 1101 - behind - 1, 1101 + HALF):
            forged = numbered(number)
            check_all(f"{what}: data at {number}", [*shake(*shifts), DATA, forged, ECHO], *MEASURED)
        # Data that is sent again makes ambiguous what is pending. New data ends within the window, and has no ACK yet.
        again, new = numbered(1101 - behind), numbered(1101 + ahead - 100)
        check_all(f"{what}: the earliest that is sent again", [*shake(*shifts), DATA, again, ECHO], *SHAKEN)
        check_all(f"{what}: the latest that is new", [*shake(*shifts), DATA, new, ECHO], *MEASURED)
    for number in (1101 + HALF, 1101 + MOST_AHEAD + 1, 1101 - WINDOW - 1):
        check_all(f"an ACK for {number}", [*shake(), DATA, acknowledging(number), ECHO], *MEASURED)
    many = [numbered(number * 2**26) for number in range(1, 63)]
    check_all("many of them", [*shake(), DATA, *many, ECHO], *MEASURED)
    one_way = [from_a(20 + number, ACK, number * 2**28, 100) for number in range(9)]
    check_all("nobody to confirm it", [*one_way, from_b(40, ACK, 5001, 0, 8 * 2**28 + 100)])
    gaps = [from_a(20 + number, ACK, number * 2**23, 100) for number in range(9)]
    check_all("gaps", [*gaps, from_b(40, ACK, 5001, 0, 8 * 2**23 + 100)], ("tcp-seq", "b", 8 * 2**23 + 100, 12))


def check_way_back():
    far = 1101 + 100_000_000
    away = [*shake(), DATA, ECHO, from_a(1000, ACK, far, 100, 5001), from_a(1001, ACK, far + 100, 100, 5001)]
    back = [from_a(1020, ACK, far + 200, 100, 5001), from_b(1029, ACK, 5001, 0, far + 300)]
    check_all("nobody confirms it", [*away, *back[:1]], *MEASURED)
    confirmed = [*away, from_b(1010, ACK, 5001, 0, far + 100), *back]
    check_all("an ACK confirms it", confirmed, *MEASURED, ("tcp-seq", "b", far + 300, 9))
    forged = from_b(1010, ACK, 5001 + HALF, 0, far + 100)
    check_all("an ACK that does not fit does not", [*away, forged, *back[:1]], *MEASURED)
    near = from_b(1010, ACK, 5001 + 65_537, 0, far + 100)
    check_all("nor does one that would fit a large window only", [*away, near, *back[:1]], *MEASURED)
    other = from_b(1010, ACK, 5001, 0, (far + HALF) % 2**32)
    check_all("an ACK for something else does not", [*away, other, *back[:1]], *MEASURED)
    # The answer to a segment that was missed, and a place that nobody reached.
    forged, missed = from_a(1000, ACK, 1101 + 300 * 2**20, 10, 5001), from_b(1010, ACK, 5001, 0, 1201)
    later = [from_a(1100, ACK, 1201 + 100 * number, 100, 5001) for number in range(3)]
    answered = from_b(1120, ACK, 5001, 0, 1501)
    check_all("the ACK decides", [*shake(), DATA, ECHO, forged, missed, *later, answered], *MEASURED, ("tcp-seq", "b", 1501, 20))


    for shift in (0, 4, 7, 10):
        # Guesses that fit move the highest end more than a window ahead. The ACK that comes next moves it back.
        window = 65_536 << shift
        step = min(MOST_AHEAD, window)
        lies = [from_a(40, ACK, 1101 + step * turn - 50, 50, 5001) for turn in range(1, window // step + 3)]
        later = [from_a(50, ACK, 1101, 100, 5001), from_b(58, ACK, 5001, 0, 1201)]
        latest = [from_a(70, ACK, 1201, 100, 5001), from_b(79, ACK, 5001, 0, 1301)]
        packets = [*shake(shift, shift), DATA, ECHO, *lies, *later, *latest]
        check_all("guesses that fit", packets, *MEASURED, ("tcp-seq", "b", 1301, 9))


def check_confirmation():
    def seen(start, acknowledgment=1101):
        return [from_a(10, ACK, 1001, 100, 5001), from_b(20, ACK, 5001, 50, acknowledgment), from_a(30, ACK, *start)]

    later = [from_b(45, ACK, 5051, 0, 1201), from_a(50, ACK, 1201, 100, 5051), from_b(65, ACK, 5051, 0, 1301)]
    next_one, far = (1101, 100, 5051), (1101 + HALF, 100, 5051)
    check_all("an ACK confirms a connection in the middle", [*seen(far), *later[:1]])
    samples = [("tcp-seq", "b", 1201, 15), ("tcp-seq", "b", 1301, 15)]
    check_all("which is measured from there on", [*seen(next_one), *later], *samples)
    forged = from_a(5, ACK, 1001 + HALF, 10, 77)
    check_all("what came first is replaced", [forged, *seen(next_one), *later], *samples)
    forged = from_b(5, ACK, 5001 + HALF, 10, 77)
    check_all("from either end", [forged, *seen(next_one), *later], *samples[1:])
    for flags in (0, FIN):
        foreign = [from_a(5, flags, 1001 + HALF, 10, 0), from_a(35, flags, 1101, 10, 0)]
        check_all("without ACK nothing belongs to a connection", [*foreign, *seen(next_one), *later], *samples)


    three = [from_b(5 + turn, ACK, 0x3000_0000 + 1000 * turn, 100, 7) for turn in range(3)]
    for number in (0x4000_0000, 0x7000_0000, 0xC000_0000):
        check_all("nobody confirmed it", [*three, from_a(300, ACK, 1001, 0, number)])


def check_stamps():
    """Rule W0a."""
    syn = from_a(0, SYN, 1000, tsval=100, tsecr=0)
    answers = [
        from_b(3, SYN | ACK, 5000, 0, 1001, tsval=500, tsecr=100),
        from_a(4, ACK, 1001, 0, 5001, tsval=101, tsecr=500),
        from_a(20, ACK, 1001, 100, 5001, tsval=120, tsecr=500),
        from_b(28, ACK, 5001, 50, 1101, tsval=528, tsecr=120),
        from_a(29, ACK, 1101, 0, 5051, tsval=130, tsecr=528),
    ]
    measured = [*SHAKEN, ("tcp-ts", "b", 120, 8), ("tcp-ts", "a", 528, 1)]
    for tsval in (2**21 + 501, 2**30, 3 * 2**30):
        for flags in (ACK, FIN | ACK, SYN | ACK):
            forged = from_b(1, flags, 0x7000_0000, 0, 0x5000_0000, tsval=tsval, tsecr=7)
            check_all("a forged timestamp", [syn, forged, *answers], *measured)
        lies = [from_b(1, ACK, 0x7000_0000, 0, 0x5000_0000, tsval=tsval + turn * 2**23, tsecr=7) for turn in range(9)]
        check_all("many of them", [syn, *lies, *answers], *measured)


def check_leaps():
    syn = [
        from_a(0, SYN, 1000, tsval=100, tsecr=0),
        from_b(3, SYN | ACK, 5000, 0, 1001, tsval=500, tsecr=100),
        from_a(4, ACK, 1001, 0, 5001, tsval=101, tsecr=500),
    ]
    first = [
        from_a(20, ACK, 1001, 100, 5001, tsval=120, tsecr=500),
        from_b(28, ACK, 5001, 0, 1101, tsval=528, tsecr=120),
    ]
    then = [
        from_a(60, ACK, 1101, 100, 5001, tsval=160, tsecr=528),
        from_b(69, ACK, 5001, 0, 1201, tsval=569, tsecr=160),
    ]
    shaken = [*SHAKEN, ("tcp-ts", "b", 120, 8)]
    measured = [*shaken, ("tcp-ts", "b", 160, 9)]
    closing = from_a(40, FIN | ACK, 1101, 0, 5001, tsval=0x4000_0000, tsecr=528)
    check_all("a FIN that leaps", [*syn, *first, closing, *then], *measured)
    for what, stamps in (("one", [0x4000_0000]), ("two", [0x4000_0000, 0xC000_0000]), ("two ticks", [2**21 + 10**6] * 2)):
        forged = [from_a(40 + number, ACK, 1101, 0, 5001, tsval=tsval, tsecr=528) for number, tsval in enumerate(stamps)]
        # A TSval of more than half of the numbers ahead is old, and says nothing.
        check_all(f"{what} that leaps", [*syn, *first, *forged, *then], *measured)
    # The data was recorded at 20 ms, so 20 ms later 39,062 ticks more may have passed.
    taken = from_a(40, ACK, 1101, 0, 5001, tsval=120 + 2**21 + 39_062, tsecr=528)
    check_all("a clock as fast as may be", [*syn, *first, taken, *then], *shaken)
    leap = from_a(40, ACK, 1101, 0, 5001, tsval=120 + 2**21 + 39_063, tsecr=528)
    check_all("and one tick faster", [*syn, *first, leap, *then], *measured)
    # Three in a row are another clock: sequence numbers measure the connection from then on.
    moved = [
        from_a(100 + 20 * turn, ACK, 1201 + 100 * turn, 100, 5001, tsval=0x4000_0000 + turn, tsecr=569) for turn in range(4)
    ]
    echoes = [
        from_b(109 + 20 * turn, ACK, 5001, 0, 1301 + 100 * turn, tsval=600 + turn, tsecr=0x4000_0000 + turn)
        for turn in range(4)
    ]
    talk = sorted([*moved, *echoes], key=lambda packet: packet.time)
    check_all("another clock", [*syn, *first, *then, *talk], *measured, ("tcp-seq", "b", 1501, 9), ("tcp-seq", "b", 1601, 9))
