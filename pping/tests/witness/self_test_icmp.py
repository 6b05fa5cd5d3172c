"""Rules 9 and 10."""

from rules_base import Packet
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
        "a repeated echo request replaces the first",
        [request(0, 1, 1), request(5, 1, 1), reply(20, 1, 1)],
        ("b", 1, 15),
    )
    check(
        "a repeated echo request needs no room",
        [request(sequence, 1, sequence) for sequence in range(8)] + [request(15, 1, 0), reply(20, 1, 0)],
        ("b", 0, 5),
    )
    check(
        "a request is no reply to a request",
        [request(0, 1, 1), Packet(1 * MS, "", ("b", 1), ("a", 1), Echo(1, True)), reply(20, 1, 1)],
        ("b", 1, 20),
    )
    check(
        "eight unanswered requests leave no room for 10 s",
        [request(1000 * sequence, 1, sequence) for sequence in range(12)] + [reply(11_000, 1, s) for s in range(12)],
        *[("b", sequence, 11_000 - 1000 * sequence) for sequence in (2, 3, 4, 5, 6, 7, 10, 11)],
    )
