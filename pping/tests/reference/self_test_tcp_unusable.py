"""Rule T1a: timestamps that stop, stand still or are zero."""

from rules_tcp import ACK, SYN
from self_test_packets import MS, from_a, from_b
from rules import samples
from rules_base import Limits

TURNS = 30


def ticking(time):
    return 70_000 + time


def zero(time):
    return 0


def constant(time):
    return 4711


def stops(time):
    return 70_000 + time if time < 3000 else None


def handshake_only(time):
    return 70_000 + time if time < 500 else None


def syn_only(time):
    return 70_000 + min(time, 21)


def turns_zero(time):
    return 70_000 + time if time < 3000 else 0


def turns_zero_from_high(time):
    return 3_000_000_000 + time if time < 3000 else 0


def slow(time):
    return 7 + time // 500


def gaps(time):
    return 70_000 + time if time % 600 < 400 else None


class Talk:
    """Two hosts that send in turn. The answer comes after 20 ms, and its ACK after 1 ms."""

    def __init__(self, *clocks):
        self.clocks, self.numbers, self.heard = clocks, [1000, 5000], [0, 0]
        self.packets = []
        self.send(0, 0, SYN, 0)
        self.send(1, 20, SYN | ACK, 0)
        self.send(0, 21, ACK, 0)
        for time in range(1000, 1000 + TURNS * 200, 200):
            self.send(0, time, ACK, 100)
            self.send(1, time + 20, ACK, 500)
            self.send(0, time + 21, ACK, 0)

    def send(self, host, time, flags, length):
        make = from_b if host else from_a
        tsval = self.clocks[host](time)
        stamps = {"tsval": tsval, "tsecr": None if tsval is None else self.heard[host]}
        packet = make(time, flags, self.numbers[host], length, self.numbers[1 - host], **stamps)
        if tsval is not None:
            self.heard[1 - host] = tsval
        self.numbers[host] = packet.content.end()
        self.packets.append(packet)


def counts(packets, methods=("tcp-ts", "tcp-seq")):
    """Returns for a and for b, and by each method, how many of their segments gave a sample."""
    found = [[0, 0], [0, 0]]
    for sample in samples(packets, Limits(methods=methods)):
        is_of_b = sample["src_ip"] == "a"
        assert sample["rtt"] == (1 if is_of_b else 20) * MS, sample
        found[is_of_b][("tcp-ts", "tcp-seq").index(sample["method"])] += 1
    return found


def run():
    for clocks, expected in [
        ((ticking, ticking), [[31, 0], [31, 0]]),
        ((slow, slow), None),
        ((handshake_only, handshake_only), [[1, 29], [1, 29]]),
        ((stops, stops), [[11, 19], [11, 19]]),
        ((zero, zero), [[0, 30], [0, 31]]),
        ((constant, constant), [[1, 25], [1, 25]]),
        ((syn_only, syn_only), [[1, 25], [2, 25]]),
        ((turns_zero, ticking), [[11, 18], [13, 18]]),
        ((turns_zero_from_high, turns_zero_from_high), [[11, 19], [11, 19]]),
        ((gaps, gaps), None),
    ]:
        found = counts(Talk(*clocks).packets)
        if expected is None:
            assert found[0][1] == found[1][1] == 0, f"{clocks}: {found}"
        else:
            assert found == expected, f"{clocks}: expected {expected}, found {found}"
    found = counts(Talk(ticking, zero).packets, methods=("tcp-ts",))
    assert found == [[31, 0], [1, 0]], f"without tcp-seq: {found}"
    check_keep_alives()


def check_keep_alives():
    talk = Talk(ticking, ticking)
    ours = [packet for packet in talk.packets if packet.time < 2000 * MS]
    end = max(packet.content.end() for packet in ours if packet.source[0] == "a")
    keep_alives = [from_a(1900 + number, ACK, end - 1, number % 2, 0) for number in range(20)]
    found = counts(sorted(talk.packets + keep_alives, key=lambda packet: packet.time))
    assert found == [[31, 0], [31, 0]], f"keep-alives: {found}"
