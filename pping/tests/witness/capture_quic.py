"""The QUIC packets in a capture.

20. Only the first packet of a datagram counts, and of it only the first byte and the invariants of RFC 8999. Datagrams
    from or to port 53 are left to DNS. A packet has at least 21 bytes by the length of the IP header (RFC 9001, section
    5.4.2). A short header has 0x80 clear and 0x40 set; its spin bit is 0x20.
21. A long header has 0x80 set, and 0x40 unless its version is 0 (version negotiation). Both connection IDs have at most
    20 bytes, and there are at least 20 bytes from where the source ID begins. Drafts 17 to 21 have both lengths in
    one byte, each either 0 or less by 3.
22. Known versions are 1, 2 (RFC 9369), drafts 17 to 34, and those of the pattern 0x?a?a?a?a. An Initial has type 0 in
    them, but 1 in version 2.
23. If the capture ends before the 8th byte, or in a long header before the 20 bytes of the source ID, the packet is
    not measured.
"""

from rules_quic import INITIAL, LONG, NEGOTIATION, SHORT, QuicPacket

FIELDS = ["udp.srcport", "udp.payload"]
UDP_HEADER = 8
DNS_PORT = 53
LONG_BIT, FIXED_BIT, SPIN_BIT = 0x80, 0x40, 0x20
FEWEST_BYTES, LONGEST_ID, FEWEST_CAPTURED = 21, 20, 8
VERSION_2 = 0x6B3343CF
PACKED = range(0xFF000011, 0xFF000016)
DRAFTS = range(0xFF000011, 0xFF000023)


def quic_of(line, header):
    """Returns the ports and the packet."""
    # The UDP header of a tunnel around it has fields with the same names.
    which = line.text("frame.protocols").split(":").count("udp") - header.inside.count("udp")
    source, destination = line.number("udp.srcport", which), line.number("udp.dstport", which)
    if source is None or destination is None or DNS_PORT in (source, destination):
        return None
    captured = bytes.fromhex(line.text("udp.payload", which))
    packet = packet_in(captured, header.payload - UDP_HEADER)
    return packet and (source, destination, packet)


def packet_in(captured, size):
    """Returns the packet at the beginning of a payload of `size` bytes, of which `captured` was captured, or None."""
    if size < FEWEST_BYTES or len(captured) < FEWEST_CAPTURED:
        return None
    first = captured[0]
    if not first & LONG_BIT:
        return QuicPacket(SHORT, spin=bool(first & SPIN_BIT)) if first & FIXED_BIT else None
    version = int.from_bytes(captured[1:5], "big")
    if not first & FIXED_BIT and version != 0:
        return None
    if version in PACKED:
        lengths = [bits + 3 if bits else 0 for bits in divmod(captured[5], 16)]
        destination_at, source_at = 6, 6 + lengths[0]
    else:
        destination_at, source_at = 6, 7 + captured[5]
        # If this length was not captured, the last check below fails anyway.
        lengths = [captured[5], captured[source_at - 1] if source_at <= len(captured) else 0]
    if lengths[0] > LONGEST_ID or size < source_at + LONGEST_ID:
        return None
    if len(captured) < source_at + LONGEST_ID or lengths[1] > LONGEST_ID:
        return None
    is_known = version in (1, VERSION_2) or version in DRAFTS or version & 0x0F0F0F0F == 0x0A0A0A0A
    kind = first >> 4 & 3
    if version == 0:
        form = NEGOTIATION
    elif not is_known or kind == (1 if version == VERSION_2 else 0):
        form = INITIAL
    else:
        form = LONG
    return QuicPacket(
        form,
        version=version,
        is_known=is_known,
        destination_id=captured[destination_at : destination_at + lengths[0]],
        source_id=captured[source_at : source_at + lengths[1]],
    )
