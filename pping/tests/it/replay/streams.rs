//! Long captures that arrive through a pipe.

use super::{
    made::{MILLISECOND, Packet, START, connection, pcap_header, pcap_packet},
    program::{Reader, wait_until},
};

const RTT: u64 = 20 * MILLISECOND;

/// The most memory in bytes that a run may take besides the flow table.
const MOST_MEMORY: u64 = 64 << 20;

fn bytes(packets: &[Packet]) -> Vec<u8> {
    packets.iter().flat_map(pcap_packet).collect()
}

#[test]
fn stalled_pipe_delays_samples_and_a_signal_ends() {
    for signal in ["-INT", "-TERM"] {
        let mut reader = Reader::start("");
        reader.write(&pcap_header(1));
        let packets = bytes(&connection(40_000, START, 5, RTT));
        // The last packet is incomplete.
        reader.write(&packets[..packets.len() - 1]);
        wait_until("samples", || reader.written().matches("\"rtt\":").count() == 5);
        reader.signal(signal);
        let (status, said) = reader.wait();
        assert_eq!(status, Some(0), "{said}");
        assert!(said.contains(" 9 packets, 5 samples"), "{said}");
    }
}

#[test]
fn memory_depends_on_flows_not_packets() {
    let mut reader = Reader::start("--format none");
    reader.write(&pcap_header(1));
    let mut packets: Vec<Packet> =
        (0..1000).flat_map(|port| connection(port, START + u64::from(port), 50, RTT)).collect();
    packets.sort_by_key(|packet| packet.at);
    for round in 0..10 {
        let later = |packet: &Packet| Packet { at: packet.at + round * 50 * 1_000_000_000, ..packet.clone() };
        reader.write(&bytes(&packets.iter().map(later).collect::<Vec<_>>()));
    }
    let memory = reader.peak_memory();
    let (status, said) = reader.finish();
    assert!(status == Some(0) && said.contains(" 1000000 packets"), "{said}");
    assert!(memory < MOST_MEMORY, "{memory} bytes");
}
