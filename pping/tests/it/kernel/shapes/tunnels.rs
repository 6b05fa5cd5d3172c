//! Packets in tunnels.

mod mirrored;

use self::mirrored::{erspan, erspan_header, tzsp};
use super::{
    super::frames::{
        ARP, ESP, Extension, HOP_BY_HOP, IPV4, Ip, LLDP, MPLS, SERVICE_VLAN, TCP, Tcp, UDP, VLAN, dns,
        ethernet, icmp, mpls, udp, udp_to, v4, v6,
    },
    Shape,
    Treatment::{self, Echo, Stamped, Unstamped},
};
use pping_common::parse::Untracked;

const IPV4_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;

const GENEVE: u16 = 6081;
const GTP_U: u16 = 2152;

const ETHERNET: u16 = 0x6558;

const NON_IP: Treatment = Treatment::Untracked(Untracked::NonIp);
const MALFORMED: Treatment = Treatment::Untracked(Untracked::Malformed);
const NESTED: Treatment = Treatment::Untracked(Untracked::NestedTunnel);
const TRUNCATED: Treatment = Treatment::Untracked(Untracked::Truncated);
const UNSUPPORTED: Treatment = Treatment::Untracked(Untracked::Unsupported);

/// Returns all shapes, with their treatment when their kind of tunnel is parsed.
pub(in super::super) fn tunnels() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for (name, protocol, tunnel, treatment) in
        [ip_in_ip(), gre(), vxlan(), geneve(), gtp_u(), erspan(), tzsp(), nested()].into_iter().flatten()
    {
        for outer in [Ip::between(v4(101), v4(102)), Ip::between(v6(101), v6(102))] {
            let name = format!("{name}, in {:#06x}", outer.ethertype());
            shapes.push(Shape { name, frame: outer.frame(protocol, &tunnel), treatment });
        }
    }
    let outer = Ip {
        extensions: vec![Extension::of(HOP_BY_HOP, 2)],
        options: vec![1; 12],
        fragment: 0x2000,
        ..Ip::between(v4(101), v4(102))
    };
    let tags = [(SERVICE_VLAN, 7), (VLAN, 8)];
    let packet = outer.packet(UDP, &vxlan_frame(4789, 8, &inner_frame(&Ip::v6())));
    let frame = ethernet(&tags, IPV4, &packet);
    shapes.push(Shape { name: "a first fragment with options and tags".into(), frame, treatment: Stamped });
    shapes
}

/// A name, the protocol number and the bytes behind the outer IP header, and the expected treatment.
type Entry = (String, u8, Vec<u8>, Treatment);

fn entry(name: &str, protocol: u8, bytes: Vec<u8>, treatment: Treatment) -> Entry {
    (name.to_owned(), protocol, bytes, treatment)
}

fn stamped() -> Vec<u8> {
    Tcp::stamped(1000, 2000).bytes()
}

fn inner(ip: &Ip) -> Vec<u8> {
    ip.packet(TCP, &stamped())
}

fn inner_frame(ip: &Ip) -> Vec<u8> {
    ip.frame(TCP, &stamped())
}

/// Contents of tunnels: a name, an IP packet with its header, and the expected treatment.
fn insides() -> Vec<(&'static str, Ip, Vec<u8>, Treatment)> {
    let later = Ip { fragment: 7, ..Ip::v4() };
    let unstamped = Tcp::with_options([]).bytes();
    vec![
        ("TCP", Ip::v4(), inner(&Ip::v4()), Stamped),
        ("TCP", Ip::v6(), inner(&Ip::v6()), Stamped),
        ("TCP without timestamps", Ip::v4(), Ip::v4().packet(TCP, &unstamped), Unstamped),
        ("a ping", Ip::v4(), Ip::v4().packet(1, &icmp(8, 0, 5, 6, 8)), Echo),
        ("UDP", Ip::v6(), Ip::v6().packet(UDP, &udp(8)), UNSUPPORTED),
        ("DNS", Ip::v4(), Ip::v4().packet(UDP, &dns((4000, 53), 7, [1, 0], 12)), Treatment::Dns),
        ("ESP", Ip::v4(), Ip::v4().packet(ESP, &[9; 40]), UNSUPPORTED),
        (
            "a later fragment",
            Ip::v4(),
            later.packet(TCP, &stamped()),
            Treatment::Untracked(Untracked::Fragment),
        ),
    ]
}

fn number(ip: &Ip) -> u8 {
    if ip.ethertype() == IPV4 { IPV4_IN_IP } else { IPV6_IN_IP }
}

fn ip_in_ip() -> Vec<Entry> {
    let mut entries: Vec<Entry> = insides()
        .into_iter()
        .map(|(name, ip, packet, treatment)| entry(&format!("{name} in IP"), number(&ip), packet, treatment))
        .collect();
    entries.push(entry("no IP in IP", IPV4_IN_IP, vec![0; 40], NON_IP));
    entries.push(entry("nothing in IP", IPV6_IN_IP, vec![], TRUNCATED));
    entries
}

fn gre_header(flags: u16, ethertype: u16, words: usize) -> Vec<u8> {
    let mut header = Vec::from(flags.to_be_bytes());
    header.extend(ethertype.to_be_bytes());
    header.resize(4 + 4 * words, 0x5a);
    header
}

fn gre() -> Vec<Entry> {
    let mut entries = Vec::new();
    for (flags, words) in
        [(0x0000, 0), (0x8000, 1), (0x2000, 1), (0x1000, 1), (0xa000, 2), (0x3000, 2), (0xb000, 3)]
    {
        for (name, ip, packet, treatment) in insides() {
            let bytes = [gre_header(flags, ip.ethertype(), words), packet].concat();
            entries.push(entry(&format!("{name} in GRE with flags {flags:#06x}"), GRE, bytes, treatment));
        }
    }
    let packet = inner(&Ip::v4());
    let frame = ethernet(&[(VLAN, 3)], IPV4, &packet);
    for (name, flags, ethertype, inside, treatment) in [
        ("Ethernet in GRE", 0x0000, ETHERNET, frame, Stamped),
        ("NVGRE", 0x2000, ETHERNET, inner_frame(&Ip::v6()), Stamped),
        ("MPLS in GRE", 0, MPLS, mpls(2, &packet), Stamped),
        ("ARP in GRE", 0, ETHERNET, ethernet(&[], ARP, &[0; 28]), NON_IP),
        ("GRE of PPTP", 0x2001, 0x880b, packet.clone(), UNSUPPORTED),
        ("GRE with routing", 0x4000, IPV4, packet.clone(), UNSUPPORTED),
        ("LLDP in GRE", 0, LLDP, packet, UNSUPPORTED),
    ] {
        let bytes = [gre_header(flags, ethertype, usize::from(flags & 0x2000 != 0)), inside].concat();
        entries.push(entry(name, GRE, bytes, treatment));
    }
    entries
}

/// A VXLAN datagram.
fn vxlan_frame(port: u16, flags: u8, frame: &[u8]) -> Vec<u8> {
    udp_to(port, &[&[flags, 0, 0, 0, 0, 0, 42, 0], frame].concat())
}

fn vxlan() -> Vec<Entry> {
    let mut entries = Vec::new();
    for port in [4789, 8472] {
        for (name, ip, packet, treatment) in insides() {
            let frame = ethernet(&[], ip.ethertype(), &packet);
            let bytes = vxlan_frame(port, 8, &frame);
            entries.push(entry(&format!("{name} in VXLAN to port {port}"), UDP, bytes, treatment));
        }
    }
    let tags = [(SERVICE_VLAN, 1), (VLAN, 2), (VLAN, 3), (VLAN, 4)];
    let tagged = ethernet(&tags, IPV4, &inner(&Ip::v4()));
    entries.push(entry("4 tags in VXLAN", UDP, vxlan_frame(4789, 8, &tagged), Stamped));
    let labelled = ethernet(&tags[..1], MPLS, &mpls(4, &inner(&Ip::v6())));
    entries.push(entry("MPLS in VXLAN", UDP, vxlan_frame(4789, 8, &labelled), Stamped));
    let arp = ethernet(&[], ARP, &[0; 28]);
    entries.push(entry("ARP in VXLAN", UDP, vxlan_frame(4789, 8, &arp), NON_IP));
    let plain = inner_frame(&Ip::v4());
    entries.push(entry("VXLAN without identifier", UDP, vxlan_frame(4789, 0, &plain), UNSUPPORTED));
    entries.push(entry("VXLAN to another port", UDP, vxlan_frame(4790, 8, &plain), UNSUPPORTED));
    entries
}

fn geneve_header(start: u8, flags: u8, ethertype: u16, options: usize) -> Vec<u8> {
    let mut header = vec![start, flags];
    header.extend(ethertype.to_be_bytes());
    header.extend([0, 0, 42, 0]);
    header.resize(8 + options, 0x77);
    header
}

fn geneve() -> Vec<Entry> {
    let mut entries = Vec::new();
    for words in [0, 1, 7, 63] {
        let frame = inner_frame(&Ip::v4());
        let bytes = [geneve_header(words, 0, ETHERNET, 4 * usize::from(words)), frame].concat();
        entries.push(entry(
            &format!("Geneve, {words} words of options"),
            UDP,
            udp_to(GENEVE, &bytes),
            Stamped,
        ));
    }
    for (name, start, flags, ethertype, treatment) in [
        ("critical options", 0, 0x40, IPV4, Stamped),
        ("a control packet", 0, 0x80, IPV4, UNSUPPORTED),
        ("version 1", 0x40, 0, IPV4, UNSUPPORTED),
        ("LLDP", 0, 0, LLDP, UNSUPPORTED),
    ] {
        let bytes = [geneve_header(start, flags, ethertype, 0), inner(&Ip::v4())].concat();
        entries.push(entry(&format!("Geneve, {name}"), UDP, udp_to(GENEVE, &bytes), treatment));
    }
    entries
}

/// A GTP-U message: flags, type, and everything after the first 8 bytes.
fn gtp(flags: u8, message: u8, rest: &[u8]) -> Vec<u8> {
    udp_to(GTP_U, &[&[flags, message, 0, 60, 0, 0, 0, 9], rest].concat())
}

fn gtp_u() -> Vec<Entry> {
    let mut entries: Vec<Entry> = insides()
        .into_iter()
        .map(|(name, _, packet, treatment)| {
            entry(&format!("{name} in GTP-U"), UDP, gtp(0x30, 255, &packet), treatment)
        })
        .collect();
    let packet = inner(&Ip::v4());
    let extension = |units: u8, next: u8| {
        let mut bytes = vec![units; 4 * usize::from(units)];
        if let Some(last) = bytes.last_mut() {
            *last = next;
        }
        bytes
    };
    for (name, flags, message, headers, treatment) in [
        ("a sequence number", 0x32, 255, vec![0, 1, 0, 0], Stamped),
        ("an N-PDU number", 0x31, 255, vec![0, 0, 9, 0], Stamped),
        ("a sequence number, and a type that does not count", 0x32, 255, vec![0, 1, 0, 0x85], Stamped),
        ("no extension header", 0x34, 255, vec![0, 1, 0, 0], Stamped),
        ("an extension header", 0x34, 255, [vec![0, 1, 0, 0x85], extension(1, 0)].concat(), Stamped),
        (
            "four extension headers",
            0x36,
            255,
            [
                vec![0, 1, 0, 0x85],
                extension(1, 0xc0),
                extension(2, 0x85),
                extension(1, 0x40),
                extension(9, 0),
            ]
            .concat(),
            Stamped,
        ),
        (
            "five extension headers",
            0x34,
            255,
            [vec![0, 1, 0, 0x85], extension(1, 0x85).repeat(4), extension(1, 0)].concat(),
            UNSUPPORTED,
        ),
        ("an extension header of no length", 0x34, 255, vec![0, 1, 0, 0x85, 0, 0, 0, 0], MALFORMED),
        ("an echo", 0x32, 1, vec![0, 1, 0, 0], UNSUPPORTED),
        ("an end marker", 0x30, 254, vec![], UNSUPPORTED),
        ("GTP'", 0x20, 255, vec![], UNSUPPORTED),
        ("version 2", 0x50, 255, vec![], UNSUPPORTED),
    ] {
        let bytes = gtp(flags, message, &[headers, packet.clone()].concat());
        entries.push(entry(&format!("GTP-U with {name}"), UDP, bytes, treatment));
    }
    entries
}

/// The parser follows one level of tunnel, not two.
fn nested() -> Vec<Entry> {
    let outer = Ip::v4();
    let packet = inner(&Ip::v6());
    let within = |protocol, bytes: &[u8]| outer.packet(protocol, bytes);
    let ip_in_ip = within(IPV6_IN_IP, &packet);
    let gre = within(GRE, &[gre_header(0, IPV4, 0), packet.clone()].concat());
    let vxlan = within(UDP, &vxlan_frame(4789, 8, &inner_frame(&Ip::v4())));
    let gtp_u = within(UDP, &gtp(0x30, 255, &packet));
    vec![
        entry("IP in IP in IP", IPV4_IN_IP, ip_in_ip.clone(), NESTED),
        entry("GRE in IP", IPV4_IN_IP, gre.clone(), NESTED),
        entry("GRE in GRE", GRE, [gre_header(0, IPV4, 0), gre].concat(), NESTED),
        entry("VXLAN in VXLAN", UDP, vxlan_frame(4789, 8, &ethernet(&[], IPV4, &vxlan)), NESTED),
        entry("VXLAN in GTP-U", UDP, gtp(0x30, 255, &vxlan), NESTED),
        entry("GTP-U in IP", IPV4_IN_IP, gtp_u, NESTED),
        entry(
            "IP in IP in Geneve",
            UDP,
            udp_to(GENEVE, &[geneve_header(0, 0, IPV4, 0), ip_in_ip].concat()),
            NESTED,
        ),
        entry("VXLAN in ERSPAN", GRE, [erspan_header(1), ethernet(&[], IPV4, &vxlan)].concat(), NESTED),
        entry(
            "ERSPAN in IP",
            IPV4_IN_IP,
            within(GRE, &[erspan_header(1), inner_frame(&Ip::v4())].concat()),
            NESTED,
        ),
    ]
}
