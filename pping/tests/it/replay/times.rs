//! The only clock is the time of the packets.

use super::{
    made::{MILLISECOND, Packet, SECOND, START, connection, pcap},
    program::{read, rtts, samples},
};

const RTT: u64 = 20 * MILLISECOND;

/// Returns the number of flow directions that closed because they were idle.
fn timeouts(packets: &[Packet]) -> usize {
    let output = read(&pcap(packets), "");
    samples(&output);
    String::from_utf8_lossy(&output.stdout).matches("flow timeout").count()
}

/// The same packets with other sequence numbers of the client.
fn renumbered(mut packets: Vec<Packet>) -> Vec<Packet> {
    /// Where a made frame has its TCP ports, sequence number and acknowledgement.
    const PORTS: usize = 34;
    for Packet { bytes, .. } in &mut packets {
        let is_from_server = bytes[PORTS..][..2] == 443_u16.to_be_bytes();
        // This byte is 0 in a sequence number of the client, and in what acknowledges it.
        bytes[if is_from_server { PORTS + 8 } else { PORTS + 4 }] = 7;
    }
    packets
}

#[test]
fn time_that_goes_backwards_breaks_nothing() {
    // Two captures, an hour apart, in the wrong order.
    let later = connection(40_000, START + 3600 * SECOND, 5, RTT);
    let earlier = connection(40_000, START, 5, RTT);
    // The same packets again are copies, whatever their times. Another connection between the same ports is measured from
    // its SYN-ACK on, because the first was not closed.
    for (earlier, expected) in [(earlier.clone(), 6), (renumbered(earlier), 10)] {
        let packets = [later.clone(), earlier].concat();
        let samples = samples(&read(&pcap(&packets), ""));
        assert_eq!(samples.len(), expected, "{samples:?}");
        assert!(rtts(&samples).iter().all(|&rtt| rtt == RTT || rtt == SECOND - RTT), "{samples:?}");
    }
}

#[test]
fn an_echo_before_its_original_gives_no_sample() {
    let mut packets = connection(40_000, START, 5, RTT);
    packets[4].at += 2 * RTT;
    let samples = samples(&read(&pcap(&packets), "--rate-limit 0"));
    assert_eq!(samples.len(), 5, "{samples:?}");
}

#[test]
fn flows_expire_by_the_time_of_the_packets() {
    let mut packets = connection(40_000, START, 2, RTT);
    packets.extend(connection(40_001, START + 200 * SECOND, 2, RTT));
    assert_eq!(timeouts(&packets), 0);
    packets.extend(connection(40_001, START + 310 * SECOND, 2, RTT));
    assert_eq!(timeouts(&packets), 2, "both directions of the first");
    // This also holds without packets in between that would cause a sweep.
    let mut packets = connection(40_000, START, 2, RTT);
    packets.extend(connection(40_000, START + 400 * SECOND, 2, RTT));
    assert_eq!(timeouts(&packets), 2);
}

#[test]
fn a_clock_set_back_makes_no_flow_older() {
    let mut packets = connection(40_000, START + 1000 * SECOND, 2, RTT);
    packets.extend(connection(40_001, START, 200, RTT));
    assert_eq!(timeouts(&packets), 0);
}

#[test]
fn flows_expire_however_far_the_time_jumps() {
    // The range of the times that a pcap file can have.
    const LATEST: u64 = (u32::MAX as u64 - 10) * SECOND;
    const JUMPS: u16 = 20;
    let at = |jump: u16| if jump.is_multiple_of(2) { 0 } else { LATEST };
    let packets = (0..JUMPS).flat_map(|jump| connection(40_000 + jump, at(jump), 2, RTT));
    // All but the last connection were followed by a jump of 136 years.
    assert_eq!(timeouts(&packets.collect::<Vec<_>>()), 2 * usize::from(JUMPS - 1));
}
