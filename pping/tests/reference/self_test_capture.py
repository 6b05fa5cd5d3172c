"""Rules 17 to 19."""

from capture import FIELDS, Line, nanoseconds, packet_of
from capture_tcp import options_in
from rules_tcp import ACK

GENEVE = {"udp_dstport": "6081", "geneve_version": "0", "geneve_flags": "0x00"}

ERSPAN = {"gre_flags__and__version": "0x1000"}
TZSP = {"udp_dstport": "37008", "tzsp_version": "1", "tzsp_type": "0", "tzsp_encap": "1", "tzsp_option__tag": "1"}


def run():
    check_layers()
    check_segments()


def line(protocols, **fields):
    """Returns a line of tshark. An underscore in a name stands for a dot, and two for an underscore."""
    known = {"frame.time_epoch": "1.5", "frame.protocols": protocols, "ip.src": "a,c", "ip.dst": "b,d"}
    known |= {"ipv6.src": "e,g", "ipv6.dst": "f,h", "udp.dstport": "7"}
    known |= {"icmp.type": "8", "icmp.code": "0", "icmp.ident": "1", "icmp.seq": "1"}
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
    for labels, length, expected in (
        ("1,2,3,4", "130", "a"),
        ("1,2,3,4,5", "134", None),
        ("1", "118", "a"),
        ("1", "164", "a"),
        ("1", "165", None),
        ("1", "117", None),
    ):
        fields = {"mpls_label": labels, "frame_len": length, "ip_len": "100"}
        check_source(expected, "", ethernet + "mpls:ip:icmp", **fields)
    snap = {"llc_dsap": "0xaa", "llc_ssap": "0xaa", "llc_control": "0x0003", "llc_oui": "0"}
    check_source("a", "", "eth:llc:ip:icmp", **snap)
    check_source("a", "", ethernet + "vlan:llc:ip:icmp", **snap)
    check_source(None, "", "eth:llc:ip:icmp", **(snap | {"llc_oui": "248"}))
    check_source(None, "", "eth:llc:ip:icmp", **(snap | {"llc_dsap": "0x06", "llc_ssap": "0x06"}))
    check_source(None, "", ethernet + "ip:icmp", icmp_code="1")
    for link in ("sll:ethertype", "raw", "null", "ppp", "ppp_hdlc:ppp"):
        check_source("a", "", link + ":ip:icmp")
    for elsewhere in ("eth:llc:ip:icmp", "ethertype:arp", "raw:ip:data", "raw:ip:udp:data", "raw:ip:icmpv6"):
        check_source(None, "", elsewhere)
    echo = {"icmpv6_type": "128", "icmpv6_code": "0", "icmpv6_echo_identifier": "0x1", "icmpv6_echo_sequence__number": "1"}
    check_source("e", "", ethernet + "ipv6:ipv6.hopopts:ipv6.fraghdr:icmpv6", **echo)
    check_source(None, "", ethernet + "ipv6:icmp", **echo)
    for protocols, source in (("ip:ip", "c"), ("ip:ipv6", "e"), ("ipv6:ip", "a"), ("ipv6:ipv6.dstopts:ipv6", "g")):
        inner = protocols.rsplit(":", 1)[1]
        protocols = f"{ethernet}{protocols}:{'icmp' if inner == 'ip' else 'icmpv6'}"
        check_source(source, "ipip", protocols, **echo)
        check_source(None, "gre,vxlan,geneve,gtp-u,erspan,tzsp", protocols, **echo)
    in_ethernet = ethernet + tag + "ip:icmp"
    for kind, protocols, fields in (
        ("gre", "gre:ip:icmp", {"gre_flags__and__version": "0xb000", "gre_proto": "0x0800"}),
        ("gre", "gre:" + in_ethernet, {"gre_flags__and__version": "0x0000", "gre_proto": "0x6558"}),
        ("vxlan", "udp:vxlan:" + in_ethernet, {"udp_dstport": "4789", "vxlan_flags": "0x0800"}),
        ("vxlan", "udp:vxlan:" + in_ethernet, {"udp_dstport": "8472,1", "vxlan_flags": "0x0800"}),
        ("geneve", "udp:geneve:" + in_ethernet, GENEVE | {"geneve_proto__type": "0x6558"}),
        ("geneve", "udp:geneve:ip:icmp", GENEVE | {"geneve_proto__type": "0x0800"}),
        ("gtp-u", "udp:gtp:ip:icmp", {"udp_dstport": "2152", "gtp_flags_version": "1", "gtp_message": "0xff"}),
        ("erspan", "gre:erspan:" + in_ethernet, {"gre_flags__and__version": "0x0000", "gre_proto": "0x88be"}),
        ("erspan", "gre:erspan:" + in_ethernet, ERSPAN | {"gre_proto": "0x88be", "erspan_version": "1"}),
        ("erspan", "gre:erspan:" + in_ethernet, ERSPAN | {"gre_proto": "0x22eb", "erspan_version": "2"}),
        ("tzsp", "udp:tzsp:" + in_ethernet, TZSP),
        ("tzsp", "udp:tzsp:" + in_ethernet, TZSP | {"tzsp_option__tag": "0,10,10,10,10,10,10,10,1"}),
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
            ("erspan_version", "3"),
            ("tzsp_version", "2"),
            ("tzsp_type", "4"),
            ("tzsp_encap", "18"),
            ("tzsp_option__tag", "0,10,10,10,10,10,10,10,10,1"),
        ):
            if name in fields:
                check_source(None, kind, protocols, **(fields | {name: text}))
    mirrored = ethernet + "ip:gre:eth:ethertype:ip:icmp"
    check_source(None, "gre", mirrored, gre_flags__and__version="0x1000", gre_proto="0x88be")
    mirrored = mirrored.replace("gre:", "gre:erspan:")
    check_source(None, "gre", mirrored, gre_proto="0x88be", erspan_version="1", **ERSPAN)
    check_source("c", "ipip", ethernet + "ip:ip:icmp:ip:ip:tcp")
    assert packet_of(line("eth", frame_time__epoch=""), ()) is None
    assert nanoseconds("1700000000.123456789") == 1_700_000_000_123_456_789
    assert nanoseconds("1700000000.000001") == 1_700_000_000_000_001_000


def check_segments():
    """Rule 19."""
    whole = {"tcp_srcport": "1", "tcp_dstport": "2", "tcp_flags": "0x0010", "tcp_hdr__len": "20", "tcp_len": "9"}
    whole |= {"tcp_urgent__pointer": "0", "tcp_seq__raw": "4294967295", "tcp_ack__raw": "5"}
    numbers = (2**32 - 1, 5)

    def segment(**fields):
        packet = packet_of(line("eth:ethertype:ip:tcp", **(whole | fields)), ())
        return packet.content and tuple(packet.content)

    assert segment() == (ACK, 9, None, None, *numbers, False, None)
    for name, text in (("hdr__len", "16"), ("hdr__len", ""), ("len", ""), ("urgent__pointer", "")):
        assert segment(**{"tcp_" + name: text}) is None, name
    assert segment(tcp_len="", ip_len="47", ip_hdr__len="20") == (ACK, 7, None, None, *numbers, False, None)
    assert segment(tcp_len="", ip_len="39", ip_hdr__len="20") is None
    stamps = "080a" + "0000000700000009"
    assert segment(tcp_hdr__len="32", tcp_options="0101" + stamps) == (ACK, 9, 7, 9, *numbers, False, None)
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
        found = options_in(options, len(options) + missing)
        found = None if found is None else (found.get("tsval"), found.get("tsecr"))
        assert found == expected, f"timestamps {what}: expected {expected}, found {found}"
    one_block = "050a" + "0000000100000002"
    for what, options, missing, expected in (
        ("one block", one_block, 0, (None, None, True)),
        ("two blocks", "0512" + 2 * one_block[4:], 0, (None, None, True)),
        ("none", "0502", 0, (None, None, False)),
        ("permitted", "0402", 0, (None, None, False)),
        ("behind timestamps", stamps + one_block, 0, (7, 9, True)),
        ("before timestamps", one_block + stamps, 0, (7, 9, True)),
        ("behind the end", "00" + one_block, 0, (None, None, False)),
        ("beyond the header", one_block[:-2], 0, (None, None, False)),
        ("behind other timestamps of the wrong length", "08080000000700000000" + one_block, 0, (None, None, False)),
        ("not captured, behind timestamps", stamps, 10, (7, 9, False)),
        ("captured, and more is not", one_block, 10, None),
        ("captured to its kind, behind timestamps", stamps + "05", 9, (7, 9, False)),
        ("captured to its kind", "05", 9, None),
        ("behind an empty option", "0402" + one_block, 0, (None, None, True)),
    ):
        options = bytes.fromhex(options)
        found = options_in(options, len(options) + missing)
        if found is not None:
            found = (found.get("tsval"), found.get("tsecr"), found.get("has_sack_block", False))
        assert found == expected, f"SACK {what}: expected {expected}, found {found}"
    for what, options, missing, expected in (
        ("at its place", "020405b4" + "01030307", 0, 7),
        ("too large", "030312", 0, 14),
        ("behind the end", "00030307", 0, None),
        ("the last of two", "030301" + "030302", 0, 2),
        ("beyond the header", "0303", 0, None),
        ("behind timestamps, and not captured", stamps + "0303", 1, None),
    ):
        options = bytes.fromhex(options)
        found = options_in(options, len(options) + missing).get("window_shift")
        assert found == expected, f"window scale {what}: expected {expected}, found {found}"
