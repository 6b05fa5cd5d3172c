"""The rules on packets made by hand."""

from capture import FIELDS, Line, nanoseconds, packet_of, timestamps_in
from rules import ACK, FIN, RST, SYN, Echo, Limits, Packet, Segment, samples

MS = 10**6
GENEVE = {"udp_dstport": "6081", "geneve_version": "0", "geneve_flags": "0x00"}


def there(time, flags, length, tsval, tsecr=0):
    """A segment from a to b; times are in milliseconds."""
    return Packet(time * MS, "", ("a", 1000), ("b", 80), Segment(flags, length, tsval, tsecr))


def back(time, flags, length, tsval, tsecr=0):
    return Packet(time * MS, "", ("b", 80), ("a", 1000), Segment(flags, length, tsval, tsecr))


def request(time, identifier, sequence):
    return Packet(time * MS, "", ("a", identifier), ("b", identifier), Echo(sequence, True))


def reply(time, identifier, sequence):
    return Packet(time * MS, "", ("b", identifier), ("a", identifier), Echo(sequence, False))


def check(rule, packets, *expected, limits=Limits()):
    """Expects samples, each as the host that replied, the identifier and the RTT."""
    found = [(sample["src_ip"], sample["id"], sample["rtt"] // MS) for sample in samples(packets, limits)]
    assert found == list(expected), f"{rule}: expected {list(expected)}, found {found}"


HANDSHAKE = [there(0, SYN, 0, 10), back(20, SYN | ACK, 0, 500, 10), there(21, ACK, 0, 30, 500)]
HANDSHAKEN = [("b", 10, 20), ("a", 500, 1)]


def run():
    check_matching()
    check_new_connections()
    check_idle_flows()
    check_setbacks()
    check_layers()
    check_segments()


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
    check("without ACK there is no echo", [there(0, SYN, 0, 10), back(1, SYN, 0, 500, 10)])
    check("RST is no echo", [there(0, SYN, 0, 10), back(1, RST | ACK, 0, 500, 10)])
    check(
        "a newer TSecr frees older slots, an old one changes nothing",
        HANDSHAKE
        + [there(30, ACK, 9, 40, 500), there(40, ACK, 9, 50, 500), there(50, ACK, 9, 60, 500)]
        + [back(60, ACK, 0, 550, 5), back(70, ACK, 0, 560, 50), back(71, ACK, 0, 561, 40)]
        + [back(80, ACK, 0, 570, 60)],
        *HANDSHAKEN,
        ("b", 50, 30),
        ("b", 60, 30),
    )
    check(
        "a TSecr that was not recorded frees older slots too",
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
        nine + [there(10_100, ACK, 9, 10_100, 500), back(10_120, ACK, 0, 550, 101)]
        + [back(10_130, ACK, 0, 551, 10_100)],
        *HANDSHAKEN,
        ("b", 101, 10_019),
        ("b", 10_100, 30),
    )
    check(
        "a slot that waited less than 10 s stays",
        nine + [there(10_099, ACK, 9, 10_099, 500), back(10_120, ACK, 0, 550, 100)]
        + [back(10_130, ACK, 0, 551, 10_099)],
        *HANDSHAKEN,
        ("b", 100, 10_020),
    )
    check(
        "a SYN after the handshake is a new connection, whatever its TSval",
        HANDSHAKE
        + [there(30, ACK, 9, 40, 500), there(1000, SYN, 0, 7), back(1020, SYN | ACK, 0, 3, 7)]
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
        "unanswered requests take up eight slots for 10 s",
        [request(1000 * sequence, 1, sequence) for sequence in range(12)] + [reply(11_000, 1, s) for s in range(12)],
        *[("b", sequence, 11_000 - 1000 * sequence) for sequence in (2, 3, 4, 5, 6, 7, 10, 11)],
    )


def check_new_connections():
    """Rules 8 and 10."""
    check(
        "a SYN of the other side begins no connection before that side has sent anything else",
        [there(0, SYN, 0, 10), back(1, SYN, 0, 500), there(2, SYN | ACK, 0, 10, 500), back(3, SYN | ACK, 0, 500, 10)],
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
        limits=Limits(rate=100 * MS),
    )


def check_idle_flows():
    """Rules 11 to 13. Whether a flow was forgotten shows in whether what waited in it is still matched."""

    def check_limit(what, packets, answer, seconds):
        """`answer` is of the last packet that passes before a pause, and ends one that goes beyond `seconds`."""
        last = packets[-1].time // MS

        def at(time):
            return answer._replace(time=time * MS)

        sample = ("b", answer.content.tsecr if isinstance(answer.content, Segment) else answer.content.sequence)
        begin = Packet(0)
        before = list(samples([begin, *packets]))
        for pause, is_forgotten in ((seconds * 1000 + 999, False), (seconds * 1000 + 1000, True)):
            end = last - last % 1000 + pause
            found = list(samples([begin, *packets, at(end)]))[len(before) :]
            found = [(sample["src_ip"], sample["id"]) for sample in found]
            expected = [] if is_forgotten else [sample]
            assert found == expected, f"{what}, {pause} ms: expected {expected}, found {found}"

    data = there(30, ACK, 9, 40, 500)
    late = back(0, ACK, 0, 600, 40)
    check_limit("open both ways", [*HANDSHAKE, data], late, 300)
    check_limit("one end has closed", [*HANDSHAKE, back(25, FIN | ACK, 0, 550, 30), data], late, 300)
    closed = [*HANDSHAKE, back(25, FIN | ACK, 0, 550), there(30, FIN | ACK, 0, 40)]
    check_limit("both ends have closed", closed, late, 10)
    check_limit("reset", [*HANDSHAKE, data, back(31, RST, 0, None)], late, 10)
    check_limit("reset, then data", [*HANDSHAKE, data, back(31, RST, 0, 9), there(5_000, ACK, 9, 9)], late, 10)
    check_limit("an unanswered SYN", [there(0, SYN, 0, 10)], back(0, SYN | ACK, 0, 500, 10), 30)
    check_limit("an unanswered FIN", [there(0, SYN, 0, 10), there(9, FIN, 0, 11)], back(0, ACK, 0, 5, 11), 10)
    check_limit("in the middle, one way", [there(0, ACK, 9, 39), data], late, 30)
    check_limit("in the middle, answered", [there(0, ACK, 9, 39), back(9, ACK, 0, 500, 1), data], late, 300)
    check_limit("answered without timestamps", [there(0, SYN, 0, 40), back(9, ACK, 0, None)], late, 300)
    check_limit("closed without timestamps", [there(0, SYN, 0, 40), there(9, FIN, 0, None)], late, 10)
    check_limit("echoes", [request(0, 1, 1), reply(9, 1, 1), request(10, 1, 2)], reply(0, 1, 2), 30)
    check(
        "any packet of a flow keeps it",
        [request(0, 1, 1), reply(20_000, 1, 9), there(30_000, SYN, 0, 10), there(49_000, ACK, 0, None)]
        + [reply(50_000, 1, 1), back(79_999, ACK, 0, 5, 10)],
        ("b", 1, 50_000),
        ("b", 10, 49_999),
    )
    check(
        "the seconds are those since the first packet of the file",
        [Packet(500 * MS), request(1_499, 1, 1), request(1_500, 2, 1), reply(32_499, 2, 1), reply(31_500, 1, 1)],
        ("b", 1, 30_999),
    )
    check(
        "packets that are not measured move the clock",
        [request(0, 1, 1), Packet(31_000 * MS), reply(30_900, 1, 1)],
    )


def check_setbacks():
    """Rules 2 and 14 to 16."""
    check(
        "an echo before its recording is no sample, and frees the slot",
        [request(100, 1, 1), reply(99, 1, 1), reply(110, 1, 1), request(120, 1, 2), reply(120, 1, 2)],
        ("b", 2, 0),
    )
    waiting = [request(1_900, 1, 1), reply(1_950, 1, 9)]
    check("a second back changes nothing", waiting + [request(950, 1, 2), reply(1_960, 1, 1)], ("b", 1, 60))
    check("more makes the flow forget what waits", waiting + [request(949, 1, 2), reply(1_960, 1, 1)])
    check(
        "time goes on from there",
        waiting + [request(100, 1, 2), request(101, 1, 3), reply(110, 1, 2), reply(111, 1, 3)],
        ("b", 2, 10),
        ("b", 3, 10),
    )
    later_handshake = [packet._replace(time=packet.time + 5_000 * MS) for packet in HANDSHAKE]
    check(
        "after it, each direction leaves out its first newer TSval",
        later_handshake
        + [there(5_030, ACK, 9, 40, 500), back(5_040, ACK, 9, 560, 30)]
        + [there(1_000, ACK, 9, 39, 500), there(1_001, ACK, 9, 41, 500), there(1_002, ACK, 9, 42, 500)]
        + [back(1_010, ACK, 9, 570, 40), back(1_011, ACK, 9, 580, 41), back(1_012, ACK, 0, 580, 42)]
        + [there(1_020, ACK, 0, 50, 570), there(1_021, ACK, 0, 50, 580)],
        *HANDSHAKEN,
        ("b", 42, 10),
        ("a", 580, 10),
    )
    check(
        "the packet that went back may be the one that is left out",
        later_handshake
        + [there(1_000, ACK, 9, 40, 500), there(1_001, ACK, 9, 41, 500), back(1_010, ACK, 0, 570, 40)]
        + [back(1_011, ACK, 0, 580, 41)],
        *HANDSHAKEN,
        ("b", 41, 10),
    )
    check(
        "a SYN that begins a connection is recorded, whatever its time",
        later_handshake + [there(1_000, SYN, 0, 7), back(1_010, SYN | ACK, 0, 8, 7)],
        *HANDSHAKEN,
        ("b", 7, 10),
    )
    check(
        "rate limits start anew",
        [request(5_000, 1, 1), request(1_000, 1, 2), reply(1_010, 1, 2)],
        ("b", 2, 10),
        limits=Limits(rate=100 * MS),
    )
    early = [Packet(0), request(100_000, 1, 1)]
    check(
        "a minute back, the clock stands until time is there again",
        early + [Packet(40_000 * MS), Packet(130_999 * MS), reply(130_100, 1, 1)],
        ("b", 1, 30_100),
    )
    check(
        "more, and it goes on with the seconds that it has",
        early + [Packet(39_999 * MS), Packet(70_998 * MS), reply(100_001, 1, 1)],
    )
    check(
        "fractions of seconds begin anew with it",
        [Packet(0), Packet(100_900 * MS), request(30_900, 1, 1), reply(61_899, 1, 1)],
        ("b", 1, 30_999),
    )


def line(protocols, **fields):
    """A line of tshark; an underscore in a name stands for a dot, two for an underscore."""
    known = {"frame.time_epoch": "1.5", "frame.protocols": protocols, "ip.src": "a,c", "ip.dst": "b,d"}
    known |= {"ipv6.src": "e,g", "ipv6.dst": "f,h", "udp.dstport": "7"}
    known |= {"icmp.type": "8", "icmp.ident": "1", "icmp.seq": "1"}
    known |= {name.replace("__", "-").replace("_", ".").replace("-", "_"): text for name, text in fields.items()}
    return Line("\t".join(known.get(name, "") for name in FIELDS))


def check_layers():
    """Rules 17 and 18."""

    def check_source(expected, decap, protocols, **fields):
        packet = packet_of(line(protocols, **fields), decap.split(","))
        found = packet.source and packet.source[0]
        assert found == expected, f"{protocols} with {decap or 'nothing'}: expected {expected}, found {found}"

    ethernet = "eth:ethertype:"
    tag = "vlan:ethertype:"
    check_source("a", "", ethernet + "ip:icmp:data")
    check_source("a", "", ethernet + "ip:ah:icmp:ip:tcp")
    check_source("a", "", ethernet + 4 * tag + "ip:icmp")
    check_source(None, "", ethernet + 5 * tag + "ip:icmp")
    check_source("a", "", ethernet + 2 * tag + "pppoes:ppp:ip:icmp")
    check_source("a", "", ethernet + "mpls:ip:icmp", mpls_label="1,2,3,4")
    check_source(None, "", ethernet + "mpls:ip:icmp", mpls_label="1,2,3,4,5")
    for link in ("sll:ethertype", "raw", "null", "ppp", "ppp_hdlc:ppp"):
        check_source("a", "", link + ":ip:icmp")
    for elsewhere in ("eth:llc:ip:icmp", "ethertype:arp", "raw:ip:data", "raw:ip:udp:data", "raw:ip:icmpv6"):
        check_source(None, "", elsewhere)
    echo = {"icmpv6_type": "128", "icmpv6_echo_identifier": "0x1", "icmpv6_echo_sequence__number": "1"}
    check_source("e", "", ethernet + "ipv6:ipv6.hopopts:ipv6.fraghdr:icmpv6", **echo)
    check_source(None, "", ethernet + "ipv6:icmp", **echo)
    for protocols, source in (("ip:ip", "c"), ("ip:ipv6", "e"), ("ipv6:ip", "a"), ("ipv6:ipv6.dstopts:ipv6", "g")):
        inner = protocols.rsplit(":", 1)[1]
        protocols = f"{ethernet}{protocols}:{'icmp' if inner == 'ip' else 'icmpv6'}"
        check_source(source, "ipip", protocols, **echo)
        check_source(None, "gre,vxlan,geneve,gtp-u", protocols, **echo)
    in_ethernet = ethernet + tag + "ip:icmp"
    for kind, protocols, fields in (
        ("gre", "gre:ip:icmp", {"gre_flags__and__version": "0xb000", "gre_proto": "0x0800"}),
        ("gre", "gre:" + in_ethernet, {"gre_flags__and__version": "0x0000", "gre_proto": "0x6558"}),
        ("vxlan", "udp:vxlan:" + in_ethernet, {"udp_dstport": "4789", "vxlan_flags": "0x0800"}),
        ("vxlan", "udp:vxlan:" + in_ethernet, {"udp_dstport": "8472,1", "vxlan_flags": "0x0800"}),
        ("geneve", "udp:geneve:" + in_ethernet, GENEVE | {"geneve_proto__type": "0x6558"}),
        ("geneve", "udp:geneve:ip:icmp", GENEVE | {"geneve_proto__type": "0x0800"}),
        ("gtp-u", "udp:gtp:ip:icmp", {"udp_dstport": "2152", "gtp_flags_version": "1", "gtp_message": "0xff"}),
    ):
        protocols = ethernet + "ip:" + protocols
        check_source("c", kind, protocols, **fields)
        check_source(None, "", protocols, **fields)
        check_source(None, f"ipip,{kind}", protocols.replace("ip:icmp", "ip:ip:icmp"), **fields)
        for name, text in (
            ("udp_dstport", "4790"),
            ("gre_flags__and__version", "0x4000"),
            ("vxlan_flags", "0x0000"),
            ("geneve_version", "1"),
            ("geneve_flags", "0x80"),
            ("gtp_flags_version", "2"),
            ("gtp_message", "0x01"),
        ):
            if name in fields:
                check_source(None, kind, protocols, **(fields | {name: text}))
    mirrored = ethernet + "ip:gre:eth:ethertype:ip:icmp"
    check_source(None, "gre", mirrored, gre_flags__and__version="0x1000", gre_proto="0x88be")
    check_source("c", "ipip", ethernet + "ip:ip:icmp:ip:ip:tcp")
    assert packet_of(line("eth", frame_time__epoch=""), ()) is None
    assert nanoseconds("1700000000.123456789") == 1_700_000_000_123_456_789
    assert nanoseconds("1700000000.000001") == 1_700_000_000_000_001_000


def check_segments():
    """Rule 19."""
    whole = {"tcp_srcport": "1", "tcp_dstport": "2", "tcp_flags": "0x0010", "tcp_hdr__len": "20", "tcp_len": "9"}
    whole |= {"tcp_urgent__pointer": "0"}

    def segment(**fields):
        packet = packet_of(line("eth:ethertype:ip:tcp", **(whole | fields)), ())
        return packet.content and tuple(packet.content)

    assert segment() == (ACK, 9, None, None)
    for name, text in (("hdr__len", "16"), ("hdr__len", ""), ("len", ""), ("urgent__pointer", "")):
        assert segment(**{"tcp_" + name: text}) is None, name
    assert segment(tcp_len="", ip_len="47", ip_hdr__len="20") == (ACK, 7, None, None)
    assert segment(tcp_len="", ip_len="39", ip_hdr__len="20") is None
    stamps = "080a" + "0000000700000009"
    assert segment(tcp_hdr__len="32", tcp_options="0101" + stamps) == (ACK, 9, 7, 9)
    assert segment(tcp_hdr__len="32", tcp_options="0101" + stamps[:-2]) is None
    for what, options, missing, expected in (
        ("at the very end", "020405b40101" + stamps, 0, (7, 9)),
        ("the first of two", stamps + "080a0000000800000008", 0, (7, 9)),
        ("behind an unknown option", "fd03ff" + stamps, 0, (7, 9)),
        ("behind the end", "00" + stamps, 0, (None, None)),
        ("the capture ends behind the end", "0000", 2, (None, None)),
        ("behind a length of 0", "0500" + stamps, 0, (None, None)),
        ("behind a length of 1", "0501" + stamps, 0, (None, None)),
        ("behind a length that goes too far", "050d" + stamps, 0, (None, None)),
        ("beyond the header", "0101" + stamps[:-2], 0, (None, None)),
        ("of the wrong length", "080800000007" + "0000" + stamps, 0, (None, None)),
        ("without a length", "010108", 0, (None, None)),
        ("behind the end of the capture", "0101", 10, None),
        ("captured in part", stamps[:-2], 1, None),
        ("captured, and more is not", stamps, 4, (7, 9)),
    ):
        options = bytes.fromhex(options)
        found = timestamps_in(options, len(options) + missing)
        assert found == expected, f"timestamps {what}: expected {expected}, found {found}"
