"""Rules 20 to 23, and Q1 to Q15."""

from capture_quic import packet_in
from rules_base import Packet
from rules_quic import INITIAL, LONG, NEGOTIATION, RETRY, SHORT, QuicPacket
from self_test_packets import MS, check_all

UNKNOWN = 0xF0F0F1F2
METHODS = ("quic-spin", "quic-handshake")
A, B = ("a", 1000), ("b", 443)


def check(rule, packets, *expected, methods=METHODS, **limits):
    check_all(rule, packets, *expected, methods=methods, **limits)


def long(time, source_id, destination_id, form=INITIAL, version=1, source=A):
    content = QuicPacket(
        form,
        version=version,
        is_known=version == 1,
        is_first=form == INITIAL,
        destination_id=destination_id,
        source_id=source_id,
    )
    return Packet(time * MS, "", source, B if source == A else A, content)


def asks(time, source_id=b"a", destination_id=b"x", **fields):
    return long(time, source_id, destination_id, **fields)


def replies(time, source_id=b"b", destination_id=b"a", **fields):
    return long(time, source_id, destination_id, source=B, **fields)


def greased(packet):
    """The same packet without the QUIC bit."""
    return packet._replace(content=packet.content._replace(has_quic_bit=False, is_first=False))


def from_a(time, spin):
    return Packet(time * MS, "", A, B, QuicPacket(SHORT, spin == 1))


def from_b(time, spin):
    return Packet(time * MS, "", B, A, QuicPacket(SHORT, spin == 1))


def handshake(rtt, version=1):
    return ("quic-handshake", "b", version, rtt)


def spin(host, value, rtt):
    return ("quic-spin", host, value, rtt)


def wave(start, edges, there=5, back=15):
    """Returns edges of a and b in turn, those of b `there` ms later."""
    times = [start + (there + back) * (index // 2) + there * (index % 2) for index in range(edges)]
    return [(from_b if index % 2 else from_a)(time, 1 - index // 2 % 2) for index, time in enumerate(times)]


# The flow is recognised, and both values are 0.
BEFORE = [asks(0), replies(10), from_a(20, 0), from_b(20, 0)]
# The flow has the most trust. The last edges are those of a at 260 and of b at 265, both to 1.
BELIEVED = BEFORE + wave(100, 18)
BELIEVED_SAMPLES = [handshake(10)]
BELIEVED_SAMPLES += [spin("b" if edge % 2 else "a", 1 - edge // 2 % 2, 20) for edge in range(6, 18)]


def check_believed(rule, packets, *expected, **limits):
    check(rule, BELIEVED + packets, *BELIEVED_SAMPLES, *expected, **limits)


def run():
    check_packets()
    check_recognition()
    check_handshakes()
    check_trust()
    check_disorder()
    check_intervals()
    check_forgetting()


def check_packets():
    """Rules 20 to 23."""
    ids = bytes([4, *b"dest", 2, *b"so"]) + bytes(30)

    def check_form(expected, bytes, size=None):
        found = packet_in(bytes, len(bytes) if size is None else size)
        assert (found and found.form) == expected, f"{bytes.hex()}: expected {expected}, found {found}"

    check_form(SHORT, b"\x60" + bytes(20))
    check_form(None, b"\x60" + bytes(19))
    check_form(SHORT, b"\x20" + bytes(20))
    assert packet_in(b"\x60" + bytes(20), 21).has_quic_bit
    assert not packet_in(b"\x20" + bytes(20), 21).has_quic_bit
    check_form(SHORT, b"\x60" + bytes(7), 21)
    check_form(None, b"\x60" + bytes(6), 21)
    for first, version, form in (
        (0xC0, "00000001", INITIAL),
        (0xD0, "00000001", LONG),
        (0xF0, "00000001", RETRY),
        (0xC0, "6b3343cf", RETRY),
        (0xE0, "6b3343cf", LONG),
        (0xD0, "6b3343cf", INITIAL),
        (0xE0, "ff00001d", LONG),
        (0xE0, "1a2a3a4a", LONG),
        (0xE0, "f0f0f1f2", INITIAL),
        (0x80, "00000001", INITIAL),
        (0x90, "6b3343cf", INITIAL),
        (0x80, "f0f0f1f2", None),
    ):
        check_form(form, bytes([first]) + bytes.fromhex(version) + ids)
    for destination, source, versions, form in (
        (b"", b"eight by", 4, NEGOTIATION),
        (b"dest", b"eight by", 8, NEGOTIATION),
        (b"eight by", b"eight by", 4, NEGOTIATION),
        (bytes(20), bytes(20), 12, NEGOTIATION),
        (b"eight by", b"eight by", 0, None),
        (b"eight by", b"eight by", 6, None),
        (b"eight by", b"seven b", 8, None),
    ):
        packet = bytes([0x80, 0, 0, 0, 0, len(destination)]) + destination
        packet += bytes([len(source)]) + source + bytes(versions)
        check_form(form, packet)
        # 8 or 20 bytes of the destination ID, and the first of the source ID, are captured.
        captured = max(6 + (20 if len(packet) >= 26 else 8), 8 + len(destination))
        check_form(form, packet[:captured], len(packet))
        check_form(None, packet[: captured - 1], len(packet))
    head = b"\xc0\x00\x00\x00\x01"
    found = packet_in(head + ids, 100)
    assert (found.destination_id, found.source_id) == (b"dest", b"so")
    for is_first, packet, size in (
        (True, head + bytes([8]) + bytes(40), 1200),
        (False, head + bytes([8]) + bytes(40), 1199),
        (False, head + bytes([7]) + bytes(40), 1200),
        (False, b"\x80" + head[1:] + bytes([8]) + bytes(40), 1200),
        (False, b"\xe0" + head[1:] + bytes([8]) + bytes(40), 1200),
        (True, b"\xd0\x6b\x33\x43\xcf" + bytes([8]) + bytes(40), 1200),
        (False, b"\xc0\x6b\x33\x43\xcf" + bytes([8]) + bytes(40), 1200),
        (True, b"\xe0\xf0\xf0\xf1\xf2" + bytes([20]) + bytes(60), 1252),
        (False, b"\xc0\0\0\0\0" + bytes([8]) + bytes(8) + bytes([8]) + bytes(40), 1203),
        (False, b"\xd6\x1a\x2a\x3a\0\0\0\1" + bytes(40), 1200),
    ):
        assert packet_in(packet, size).is_first == is_first, packet.hex()
    found = packet_in(b"\xc0\xff\x00\x00\x12\x15destsource.." + bytes(20), 100)
    assert (found.destination_id, found.source_id) == (b"dest", b"source..")
    whole = head + ids
    check_form(INITIAL, whole[:31])
    check_form(None, whole[:30])
    check_form(None, whole[:30], 100)
    check_form(None, head + bytes([21]) + bytes(60))
    check_form(None, head + bytes([4, *b"dest", 21]) + bytes(60))


def check_recognition():
    """Rules Q1 and Q2."""
    edges = wave(100, 8)
    samples = [spin("a", 0, 20), spin("b", 0, 20)]

    def unknown(*packets):
        return [*packets, from_a(30, 0), from_b(30, 0), *edges]

    version = {"version": UNKNOWN}
    check("a known version tells", [asks(0), *BEFORE[2:], *edges], *samples)
    check("no long header", [*BEFORE[2:], *edges])
    check(
        "an unknown version whose ID comes back",
        unknown(asks(0, **version), replies(10, **version)),
        handshake(10, UNKNOWN),
        *samples,
    )
    check(
        "not another version",
        unknown(asks(0, **version), replies(10, version=UNKNOWN + 1)),
        handshake(10, UNKNOWN + 1),
    )
    check(
        "not an empty ID",
        unknown(asks(0, b"", **version), replies(10, b"b", b"", **version)),
    )
    check(
        "but the server's, used by the client",
        unknown(asks(0, b"", **version), replies(10, b"b", b"", **version), asks(20, b"", b"b", **version)),
        *samples,
    )
    check("not another ID", unknown(asks(0, **version), replies(10, b"b", b"x", **version)))
    check(
        "not without the QUIC bit",
        unknown(asks(0, **version), greased(replies(10)), replies(20, version=UNKNOWN + 1)),
        handshake(20, UNKNOWN + 1),
    )
    check(
        "then the QUIC bit does not matter",
        [asks(0), greased(replies(10)), greased(asks(20, b"a", b"b", form=LONG)), *map(greased, BEFORE[2:])]
        + [greased(edge) if index % 3 else edge for index, edge in enumerate(edges)],
        handshake(10),
        *samples,
    )
    check("without it begins no flow", [greased(asks(0)), *BEFORE[2:], *edges])
    check("version negotiation begins no flow", [replies(0, form=NEGOTIATION, version=0), *BEFORE[2:], *edges])


def check_handshakes():
    """Rules Q3 to Q5."""
    check("the reply is to the source", [asks(0), replies(5, b"b", b"x"), replies(20), replies(21)], handshake(20))
    check("a Retry, too", [asks(0), replies(20, form=RETRY)], handshake(20))
    check("but no Handshake packet", [asks(0), replies(20, form=LONG), replies(21)])
    check("version negotiation, too", [asks(0), replies(20, form=NEGOTIATION, version=0)], handshake(20, 0))
    check("empty IDs are equal", [asks(0, b""), replies(20, b"b", b"")], handshake(20))
    check("nothing else begins a flow", [asks(0, form=LONG), asks(1, form=RETRY), asks(2), replies(20)], handshake(18))
    check("only what begins it waits", [asks(0), replies(20), asks(30, b"a", b"b"), replies(40)], handshake(20))
    check("the flight may go on", [asks(0), asks(1), asks(50), replies(60)], handshake(60))
    check("but not be repeated", [asks(0), asks(51), replies(60)])
    check("can be off", [asks(0), replies(20)], methods=("quic-spin",))
    check("a reply before what it replies to ends the wait", [asks(10), replies(9), replies(20)])
    check("limits do not matter", [asks(0), replies(20)], handshake(20), rate=1000 * MS)


def check_trust():
    """Rules Q6, Q9, Q10 and Q13."""
    check("samples from the seventh edge on", BELIEVED, *BELIEVED_SAMPLES)
    check("can be off", BELIEVED, handshake(10), methods=("quic-handshake",))
    check(
        "after a breach from the eleventh on, where the first two set values",
        BEFORE + [from_a(50, 1), from_a(55, 0)] + wave(98, 1) + wave(100, 14)[1:],
        handshake(10),
        spin("a", 1, 20),
        spin("b", 1, 20),
    )
    greased = [from_a(100 + time, (time * time // 7 + time // 3) % 2) for time in range(0, 900, 2)]
    check("one side greases", BEFORE + greased + [from_b(2000, 0)], handshake(10))
    check(
        "limits are on the edges that begin intervals",
        BEFORE + wave(100, 24),
        handshake(10),
        *[spin("a", 0, 20), spin("b", 0, 20)] * 2,
        rate=80 * MS,
    )


def check_disorder():
    """Rules Q7 and Q8."""
    samples = [spin("a", 0, 20), spin("b", 0, 20), spin("a", 1, 20)]
    regular = [from_a(280, 0), from_b(285, 0), from_a(300, 1)]
    check_believed("in order", regular, *samples)
    check_believed("early", [regular[0], from_a(282, 1), from_a(282, 0), *regular[1:]], *samples)
    check_believed(
        "out of turn",
        [regular[0], from_a(283, 1), from_a(284, 0), *regular[1:], from_b(305, 1), from_a(320, 0)],
        spin("a", 0, 20),
        spin("b", 1, 20),
        spin("a", 0, 20),
    )
    check_believed(
        "an edge missed",
        [regular[0], regular[2], from_b(305, 1), from_a(320, 0), from_b(325, 0), from_a(340, 1), from_b(345, 1)],
        spin("a", 0, 20),
        spin("b", 1, 20),
    )
    fast = [(from_b if index % 2 else from_a)(284 + index, index // 2 % 2) for index in range(8)]
    check_believed(
        "both early: the next set values, then come edges, then samples",
        [regular[0], from_b(281, 0), from_a(282, 1), from_b(282, 1), *fast],
        spin("a", 0, 20),
        spin("b", 0, 16),
        spin("a", 0, 2),
        spin("b", 0, 2),
        spin("a", 1, 2),
        spin("b", 1, 2),
    )


def check_intervals():
    """Rules Q11 and Q12."""
    check_believed("10 s", [from_a(10_260, 0)], spin("a", 0, 10_000))
    check_believed("more", [from_a(10_261, 0)])
    check_believed(
        "less than half, which costs 8 of trust each",
        [from_a(269, 0), from_b(274, 0), *wave(278, 10, back=4)],
        spin("b", 0, 9),
        spin("a", 1, 9),
        spin("b", 1, 9),
    )
    check_believed(
        "a pause does not matter",
        [from_a(1260, 0), from_b(1265, 0), from_a(1280, 1)],
        spin("a", 0, 1000),
        spin("b", 0, 1000),
        spin("a", 1, 20),
    )


def check_forgetting():
    """Rules Q14 and Q15, and 14."""
    check_believed("the same source ID", [asks(270), from_a(280, 0)], spin("a", 0, 20))
    check_believed(
        "another",
        [asks(270, b"n"), from_a(280, 0), from_b(285, 1)]
        + [from_a(300, 1), from_b(305, 0), from_a(320, 0), from_b(325, 1)],
        spin("a", 0, 20),
        spin("b", 1, 20),
    )
    check_believed("idle for more than 60 s", [from_a(61_260, 0), *wave(61_300, 8)])
    back = [from_a(5_000, 0), from_a(3_000, 1), from_b(3_005, 1)]
    back += [from_a(3_020, 0), from_b(3_025, 0), from_a(3_040, 1), from_b(3_045, 1)]
    check_believed("time is set back", back, spin("a", 0, 4740), spin("a", 1, 20), spin("b", 1, 20))
