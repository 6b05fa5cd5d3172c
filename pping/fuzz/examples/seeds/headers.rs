//! Headers, built byte by byte around their content.

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;

/// A segment with these options and little payload.
pub(crate) fn tcp(flags: u8, options: &[u8]) -> Vec<u8> {
    let words = 5 + options.len().div_ceil(4);
    let mut segment = vec![0x9c, 0x40, 0x01, 0xbb, 0, 0, 0, 1, 0, 0, 0, 2];
    segment.extend([(words << 4) as u8, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend(options);
    segment.resize(4 * words, 0);
    segment.extend(b"data");
    segment
}

/// The usual segment, with timestamps.
pub(crate) fn stamped_segment() -> Vec<u8> {
    tcp(0x18, b"\x01\x01\x08\x0a\0\0\x10\0\0\0\x20\0")
}

pub(crate) fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0xc0, 0x01];
    datagram.extend(port.to_be_bytes());
    datagram.extend((8 + payload.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    datagram
}

pub(crate) fn echo(kind: u8) -> Vec<u8> {
    [&[kind, 0, 0, 0, 0x12, 0x34, 0, 7][..], b"ping"].concat()
}

/// An IPv4 packet with these options.
pub(crate) fn v4(options: &[u8], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header_len = 20 + options.len();
    let mut packet = vec![0x40 | (header_len / 4) as u8, 0x02];
    packet.extend(((header_len + payload.len()) as u16).to_be_bytes());
    packet.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    packet.extend(options);
    packet.extend(payload);
    packet
}

/// An IPv6 packet with this next header.
pub(crate) fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x6b, 0x8a, 0xbc, 0xde];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    for host in [1, 2] {
        packet.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    packet.extend(payload);
    packet
}

/// An IPv6 extension header of `8 * units` bytes.
pub(crate) fn extension(next: u8, units: usize, payload: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 8 * units];
    header[..2].copy_from_slice(&[next, (units - 1) as u8]);
    header.extend(payload);
    header
}

/// An authentication header.
pub(crate) fn authentication(next: u8, payload: &[u8]) -> Vec<u8> {
    [&[next, 4][..], &[0; 22], payload].concat()
}

/// A fragment header, with the offset in units of 8 bytes.
pub(crate) fn fragment(next: u8, offset: u16, payload: &[u8]) -> Vec<u8> {
    [&[next, 0][..], &(offset << 3 | 1).to_be_bytes(), &[0, 0, 0, 9], payload].concat()
}

/// An Ethernet frame. Tags are pairs of ethertype and tag control information.
pub(crate) fn ethernet(tags: &[(u16, u16)], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    for (identifier, control) in tags {
        frame.extend(identifier.to_be_bytes());
        frame.extend(control.to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame
}

pub(crate) fn pppoe(protocol: u16, payload: &[u8]) -> Vec<u8> {
    [&[0x11, 0, 0, 1, 0, 0][..], &protocol.to_be_bytes(), payload].concat()
}

/// A stack of `labels` MPLS labels.
pub(crate) fn mpls(labels: usize, payload: &[u8]) -> Vec<u8> {
    let mut packet = [0, 0x01, 0, 64].repeat(labels);
    packet[4 * labels - 2] |= 1;
    packet.extend(payload);
    packet
}

/// Returns an IPv4 packet without options in the opposite direction.
pub(crate) fn returned(packet: &[u8]) -> Vec<u8> {
    let (addresses, ports) = (&packet[12..20], &packet[20..24]);
    let mut returned = packet[..12].to_vec();
    returned.extend([&addresses[4..], &addresses[..4], &ports[2..], &ports[..2], &packet[24..]].concat());
    returned
}

/// LLC and SNAP before an ethertype.
pub(crate) fn snap(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut header = vec![0xaa, 0xaa, 3, 0, 0, 0];
    header.extend(ethertype.to_be_bytes());
    header.extend(payload);
    header
}

/// A QUIC packet with a long header and these IDs, in a payload of `len` bytes.
pub(crate) fn quic_long(first: u8, version: u32, ids: [&[u8]; 2], len: usize) -> Vec<u8> {
    let mut packet = vec![first];
    packet.extend(version.to_be_bytes());
    for id in ids {
        packet.push(id.len() as u8);
        packet.extend(id);
    }
    packet.resize(len, 0x55);
    packet
}
