"""Rules 24 to 26."""

from rules_tcp import ACK, FIN, SYN
from self_test_packets import back, check_all, from_a, from_b, reply, request, there

IN, OUT = False, True


def both(packets, first=IN):
    """Passes each packet through both hooks."""
    return [packet._replace(is_outgoing=hook) for packet in packets for hook in (first, not first)]


def at(hook, packet):
    return packet._replace(is_outgoing=hook)


def run():
    check_copies()
    check_moves()
    check_arms()


def check_copies():
    """Rule 24."""
    stamped = [there(0, SYN, 0, 10), back(20, SYN | ACK, 0, 500, 10), there(21, ACK, 0, 30, 500)]
    stamped += [there(30, ACK, 9, 40, 500), back(60, ACK, 0, 600, 40)]
    legs = [("tcp-handshake", "b", 1, 20), ("tcp-handshake", "a", 1, 1)]
    stamped[0] = stamped[0]._replace(content=stamped[0].content._replace(sequence=0))
    stamped[1] = stamped[1]._replace(content=stamped[1].content._replace(sequence=0, acknowledgment=1))
    stamped[2] = stamped[2]._replace(content=stamped[2].content._replace(sequence=1, acknowledgment=1))
    for first in (IN, OUT):
        check_all("copies of a connection", both(stamped, first), *legs, ("tcp-ts", "b", 40, 30))
    unstamped = [from_a(0, ACK, 90, 10, 500), from_a(1, ACK, 100, 10, 500), from_a(2, ACK, 110, 10, 500)]
    unstamped += [from_b(22, ACK, 500, 0, 120)]
    seq = {"methods": ("tcp-seq",), "tcp_method": "seq"}
    check_all("copies repeat nothing", both(unstamped), ("tcp-seq", "b", 120, 20), **seq)
    repeated = [*unstamped[:3], from_a(3, ACK, 110, 10, 500), unstamped[3]]
    check_all("what is sent again is no copy", both(repeated), **seq)
    check_all(
        "copies of echoes",
        both([request(0, 1, 1), reply(20, 1, 1), reply(21, 1, 1)]),
        ("icmp-echo", "b", 1, 20),
    )
    check_all(
        "a packet without direction is no copy, and ends what is bound",
        [at(IN, request(0, 1, 1)), request(2, 1, 2), at(OUT, request(4, 1, 1)), at(IN, reply(22, 1, 1))],
    )
    check_all(
        "each sender has a hook",
        [at(IN, request(0, 1, 1)), at(OUT, reply(20, 1, 1))],
        ("icmp-echo", "b", 1, 20),
    )
    check_all(
        "a connection that begins anew keeps its hooks",
        [*both(stamped), at(IN, there(70, FIN | ACK, 0, 50)), at(OUT, from_a(80, SYN, 900))],
        *legs,
        ("tcp-ts", "b", 40, 30),
    )


def check_moves():
    """Rule 25."""
    check_all(
        "after a second with copies only, the sender is there",
        [at(IN, request(0, 1, 0)), at(OUT, request(1_000, 1, 1)), at(IN, reply(1_020, 1, 1))]
        + [at(OUT, request(2_000, 1, 2)), at(IN, reply(2_020, 1, 2)), at(IN, reply(2_021, 1, 0))],
        ("icmp-echo", "b", 2, 20),
    )
    check_all(
        "not while it also is where it was",
        [at(IN, request(0, 1, 0)), at(OUT, request(1_000, 1, 1)), at(IN, request(1_001, 1, 2))]
        + [at(OUT, request(2_000, 1, 3)), at(IN, reply(2_020, 1, 3)), at(IN, reply(2_021, 1, 2))],
        ("icmp-echo", "b", 2, 1_020),
    )
    apart = [at(OUT, request(0, 1, 0)), at(IN, reply(20, 1, 0))]
    sample = ("icmp-echo", "b", 0, 20)
    forged = [at(IN, request(1_000 * second, 1, 9)) for second in range(1, 5)]
    later = [at(OUT, request(5_000, 1, 1)), at(IN, reply(5_030, 1, 1))]
    check_all("one end alone does not move to the other's side", [*apart, *forged, *later], sample, ("icmp-echo", "b", 1, 30))
    moved = [at(IN, request(1_000, 1, 1)), at(OUT, reply(2_020, 1, 1))]
    there = [at(IN, request(3_000, 1, 2)), at(OUT, reply(3_040, 1, 2))]
    check_all("both do, not in the same second", [*apart, *moved, *there], sample, ("icmp-echo", "b", 2, 40))


def check_arms():
    """Rule 26."""
    two = {"arms": "two"}
    asked, answered = request(0, 1, 1), reply(20, 1, 1)
    sample = ("icmp-echo", "b", 1, 20)
    check_all("each end on its side", [at(OUT, asked), at(IN, answered)], sample, **two)
    check_all("question and answer from one side", [at(IN, asked), at(IN, answered)], **two)
    check_all("that is right with one arm", [at(IN, asked), at(IN, answered)], sample)
    check_all("without directions there are no sides", [asked, answered], sample, **two)
    check_all(
        "two hosts on one side, once a copy of each was seen",
        both([asked, answered, request(30, 1, 2), reply(50, 1, 2)]),
        ("icmp-echo", "b", 2, 20),
        **two,
    )
    connection = [there(0, SYN, 0, 10), back(20, SYN | ACK, 0, 500, 10), there(21, ACK, 0, 30, 500)]
    check_all("both ends of a handshake from one side", [at(IN, segment) for segment in connection], **two)
