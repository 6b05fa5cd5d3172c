"""Rules H1 to H5, and rules 2, 8, 14 and S4 for handshakes."""

from rules_tcp import ACK, RST, SYN
from self_test_packets import MS, check_all, from_a, from_b


def leg(host, identifier, rtt):
    return ("tcp-handshake", host, identifier, rtt)


def syn(time, length=0, sequence=99, **fields):
    return from_a(time, SYN, sequence, length, **fields)


def syn_ack(time, acknowledgment=100, **fields):
    return from_b(time, SYN | ACK, 499, 0, acknowledgment, **fields)


def ack(time, acknowledgment=500, **fields):
    return from_a(time, ACK, 100, 0, acknowledgment, **fields)


HANDSHAKE = [syn(0), syn_ack(20), ack(21)]
HANDSHAKEN = [leg("b", 100, 20), leg("a", 500, 1)]


def run():
    check_legs()
    check_answers()
    check_ends()
    check_other_methods()


def check_legs():
    """Rule H1."""
    check_all("a handshake times both ways", HANDSHAKE, *HANDSHAKEN)
    check_all("by itself too", HANDSHAKE, *HANDSHAKEN, methods=("tcp-handshake",))
    check_all("not if it is off", HANDSHAKE, methods=("tcp-ts", "tcp-seq"), tcp_method="ts")
    check_all("a repeated SYN is void", [syn(0), syn(1000), syn_ack(1020), ack(1021)], leg("a", 500, 1))
    check_all("and stays so", [syn(0), syn(1000), syn(2000), syn_ack(2020)])
    check_all("a repeated SYN-ACK is void", [syn(0), syn_ack(20), syn_ack(1020), ack(1021)], leg("b", 100, 20))
    check_all(
        "a SYN with another number begins again",
        [syn(0), syn(1000, sequence=199), syn_ack(1020, 200), ack(1021)],
        leg("b", 200, 20),
        leg("a", 500, 1),
    )
    check_all("also if the last was void", [syn(0), syn(1), syn(5, sequence=199), syn_ack(9, 200)], leg("b", 200, 4))
    check_all("repetitions after the end change nothing", [*HANDSHAKE, syn_ack(30), ack(31)], *HANDSHAKEN)
    check_all("numbers wrap", [syn(0, sequence=2**32 - 1), syn_ack(20, 0)], leg("b", 0, 20))
    wrapping = syn(0, 10, sequence=2**32 - 5)
    check_all("so do those behind payload", [wrapping, syn_ack(20, 6)], leg("b", 2**32 - 4, 20))
    check_all(
        "both may begin: the SYN-ACK of the first to answer repeats its SYN",
        [syn(0), from_b(1, SYN, 499), from_a(11, SYN | ACK, 99, 0, 500), syn_ack(12), ack(13)],
        leg("a", 500, 10),
    )
    check_all(
        "a new connection has new legs, even of the same numbers",
        [*HANDSHAKE, from_a(50, RST, 100), syn(11000), syn_ack(11030), ack(11032)],
        *HANDSHAKEN,
        leg("b", 100, 30),
        leg("a", 500, 2),
    )


def check_answers():
    """Rule H2."""
    check_all("an ACK is no answer to a SYN", [syn(0), from_b(5, ACK, 499, 0, 100), syn_ack(20)], leg("b", 100, 20))
    check_all("nor is a SYN", [syn(0), from_b(5, SYN, 499, 0, 100), syn_ack(20)], leg("b", 100, 20))
    check_all(
        "a SYN-ACK is none to a SYN-ACK", [syn_ack(0), from_a(5, SYN | ACK, 99, 0, 500), ack(20)], leg("a", 500, 20)
    )
    check_all(
        "data without ACK is none to a SYN-ACK", [syn_ack(0), from_a(5, 0, 100, 9, 500), ack(20)], leg("a", 500, 20)
    )
    check_all("data with ACK is one", [syn_ack(0), from_a(5, ACK, 100, 9, 500)], leg("a", 500, 5))
    check_all("an older number changes nothing", [syn(0), syn_ack(5, 99), syn_ack(20)], leg("b", 100, 20))
    check_all("for a SYN-ACK neither", [syn_ack(0), ack(5, 499), ack(20)], leg("a", 500, 20))
    check_all("a newer one ends it", [syn(0), syn_ack(5, 101), syn_ack(20)])
    check_all("for a SYN-ACK too", [syn_ack(0), ack(5, 501), ack(20)])
    for answered in (100, 110):
        check_all(f"payload in a SYN, answered with {answered}", [syn(0, 10), syn_ack(20, answered)], leg("b", 100, 20))
    check_all("half of it is no answer", [syn(0, 10), syn_ack(5, 105), syn_ack(20, 110)], leg("b", 100, 20))
    check_all("less than nothing is none", [syn(0, 10), syn_ack(5, 99), syn_ack(20)], leg("b", 100, 20))
    check_all("more than all ends it", [syn(0, 10), syn_ack(5, 111), syn_ack(20, 110)])
    check_all("an endpoint does not answer itself", [syn(0), from_a(5, SYN | ACK, 199, 0, 100)])


def check_ends():
    """Rules 2, 14 and H3."""
    check_all("an answer comes once", [syn(0), syn_ack(20), syn_ack(25)], leg("b", 100, 20))
    for host in (from_a, from_b):
        reset = host(5, RST | ACK, 100, 0, 100)
        check_all("a RST ends the leg of a SYN", [syn(0), reset, syn_ack(20)])
        check_all("and that of a SYN-ACK", [syn_ack(0), reset, ack(20)])
    check_all("a RST is no answer", [syn(0), from_b(5, RST | SYN | ACK, 499, 0, 100)])
    check_all("a SYN with RST begins none", [from_a(0, SYN | RST, 99), syn_ack(20)])
    check_all("an answer may come at once", [syn(0), syn_ack(0)], leg("b", 100, 0))
    check_all("an answer before its SYN is no sample, but ends it", [syn(100), syn_ack(99), syn_ack(101)])
    check_all("a second back changes nothing", [syn(5_000), ack(4_000), syn_ack(5_020)], leg("b", 100, 20))
    check_all("more ends what waits", [syn(5_000), ack(3_999), syn_ack(5_020)])
    check_all(
        "the packet that goes back begins a leg",
        [syn(5_000), syn_ack(1_000), ack(1_001)],
        leg("a", 500, 1),
    )
    check_all("but not again", [syn(5_000), syn(1_000), syn_ack(1_020)])
    data = [from_a(30, ACK, 100, 9, 500), from_b(50, ACK, 500, 0, 109)]
    check_all(
        "legs neither obey rate limits nor count for them",
        [syn(0, sequence=98), syn(1), syn_ack(21), ack(22), *data],
        leg("b", 100, 20),
        leg("a", 500, 1),
        ("tcp-seq", "b", 109, 20),
        rate=10_000 * MS,
    )
    full = [from_b(0, ACK, 470, 9, 1), from_b(1, ACK, 479, 9, 1), from_b(2, ACK, 488, 11, 1)]
    check_all("legs need no room", [*full, syn_ack(20), ack(21)], leg("a", 500, 1), pending=1)
    check_all("nor do they take one", HANDSHAKE + data, *HANDSHAKEN, ("tcp-seq", "b", 109, 20), pending=1)


def check_other_methods():
    """Rules S4, H4 and H5."""
    stamped = [syn(0, tsval=10), syn_ack(20, tsval=700, tsecr=10), ack(21, tsval=30, tsecr=700)]
    check_all("SYNs are left to tcp-handshake", stamped, *HANDSHAKEN)
    check_all("in whatever mode", stamped, *HANDSHAKEN, tcp_method="both")

    def data(tsval):
        return [
            from_a(30, ACK, 100, 9, 500, tsval=tsval, tsecr=700),
            from_b(50, ACK, 500, 0, 109, tsval=710, tsecr=tsval),
        ]

    check_all("the TSval of a SYN is seen", stamped[:2] + data(10), HANDSHAKEN[0], leg("a", 500, 10))
    check_all(
        "so that the next is the first of its tick",
        stamped[:2] + data(11),
        HANDSHAKEN[0],
        leg("a", 500, 10),
        ("tcp-ts", "b", 11, 20),
    )
    check_all(
        "a repeated SYN-ACK with a newer TSval is recorded by no method",
        [*stamped[:2], syn_ack(1020, tsval=1700, tsecr=10), ack(1021, tsval=1030, tsecr=1700)],
        HANDSHAKEN[0],
    )
    early = [from_a(1, ACK, 100, 9, tsval=11, tsecr=0), from_b(25, ACK, 500, 0, 109, tsval=705, tsecr=11)]
    check_all(
        "what the answer echoes besides is freed without a sample",
        [stamped[0], early[0], syn_ack(20, tsval=700, tsecr=11), early[1]],
        leg("b", 100, 20),
    )
    check_all(
        "an answer that ends a leg without a sample leaves it to tcp-ts",
        [stamped[0], early[0], syn_ack(20, 109, tsval=700, tsecr=11)],
        ("tcp-ts", "b", 11, 19),
    )
    check_all(
        "so does one before its SYN",
        [syn(100, tsval=10), early[0], syn_ack(99, tsval=700, tsecr=11)],
        ("tcp-ts", "b", 11, 98),
    )
    check_all(
        "so does one to a void leg",
        [stamped[0], syn(2, tsval=10), early[0]._replace(time=3 * MS), syn_ack(20, tsval=700, tsecr=11)],
        ("tcp-ts", "b", 11, 17),
    )
    before = [from_b(0, ACK, 470, 10, 1), from_b(1, ACK, 480, 10, 1), from_b(2, ACK, 490, 5, 1)]
    check_all("nothing that tcp-seq knows from before", [*before, syn_ack(20), ack(21)], leg("a", 500, 1))
    check_all("nor if the leg is void", [*before, syn_ack(20), syn_ack(22), ack(23)])
    check_all(
        "a number beyond the leg's is of tcp-seq",
        [syn(0), syn_ack(20), from_b(21, ACK, 500, 10, 100), ack(30, 510)],
        leg("b", 100, 20),
        ("tcp-seq", "a", 510, 9),
    )
