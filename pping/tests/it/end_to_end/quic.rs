//! Connections of a real QUIC stack, with and without a spinning spin bit.

use std::{fs, time::Duration};

use pping_lab::{Process, Topology, run};

use super::{
    Family, ROUND_TRIP, ok,
    records::Sample,
    topology,
    watch::{Seen, Watch},
};
use crate::python::python_with;

const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/end_to_end/quic/peer.py");
const PORT: u16 = 4433;
/// How many connections run at the same time.
const CONNECTIONS: usize = 2;
/// The least number of samples in each direction if the bit spins. A connection gives about 90.
const MANY: usize = 40 * CONNECTIONS;
/// The most samples from random bits, which may look for a while as if they spun. Mostly they give none.
const FEW: usize = 25 * CONNECTIONS;
const PATIENCE: Duration = Duration::from_mins(1);

/// How an endpoint sets the spin bit.
#[derive(Clone, Copy, Debug)]
enum Spin {
    On,
    Off,
    Random,
    /// On, while the QUIC bit is random (RFC 9287).
    Greased,
}

impl Spin {
    fn argument(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Random => "random",
            Self::Greased => "greased",
        }
    }
}

/// Lets two ends talk with these spin bits. Returns what pping and tcpdump saw, including the handshakes.
fn talk(ingress: &str, family: Family, client: Spin, server: Spin) -> Seen {
    let python = python_with("aioquic").unwrap_or_else(|| {
        panic!(
            "neither PPING_PYTHON nor python3 is a Python with the package aioquic; `cargo xtask setup --tests` gets it"
        )
    });
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["server".to_owned()]).unwrap();
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| directory.path().join(name));
    fs::write(&certificate, cert.pem()).unwrap();
    fs::write(&key, signing_key.serialize_pem()).unwrap();

    let port = PORT.to_string();
    let mut command = topology.server().command(&python);
    command.arg(PEER).arg("server").args([certificate, key]).args([&port, server.argument()]);
    let mut listening = ok(Process::spawn(command));
    ok(listening.wait_for_output("listening", PATIENCE));
    let watch =
        Watch::start(topology.router(), Topology::WAN, &format!("--ingress {ingress} --rate-limit 0"));
    let mut command = topology.client().command(&python);
    command.args([PEER, "client", &family.server().to_string(), &port, client.argument()]);
    ok(run(command.arg(CONNECTIONS.to_string())));
    let seen = watch.finish();

    for sample in &seen.records.samples {
        assert_eq!(
            (sample.protocol.as_str(), sample.interface.as_str()),
            ("QUIC", Topology::WAN),
            "{sample:?}"
        );
    }
    assert_handshakes(&seen, family);
    seen
}

/// Returns the samples of a method.
fn of<'a>(seen: &'a Seen, method: &str) -> Vec<&'a Sample> {
    seen.records.samples.iter().filter(|sample| sample.method == method).collect()
}

/// Asserts one handshake sample for each connection, with the server as the replying host.
#[track_caller]
fn assert_handshakes(seen: &Seen, family: Family) {
    let handshakes = of(seen, "quic-handshake");
    assert_eq!(handshakes.len(), CONNECTIONS, "{handshakes:#?}");
    assert_ne!(handshakes[0].tuple.dest_port, handshakes[1].tuple.dest_port);
    for sample in handshakes {
        let (source, destination) = (family.server(), family.client());
        assert_eq!((sample.tuple.src_ip, sample.tuple.src_port), (source, PORT), "{sample:?}");
        assert_eq!(sample.tuple.dest_ip, destination, "{sample:?}");
        assert!(!sample.match_on_egress && sample.rtt() >= ROUND_TRIP, "{sample:?}");
        assert_eq!(sample.side_rtt, None, "{sample:?}");
    }
}

/// Asserts that each sample covers the whole path, and attributes the wire's delay to the server's side.
fn a_spin_bit_that_spins_is_timed(ingress: &str, family: Family, spin: Spin) {
    let seen = talk(ingress, family, spin, spin);
    seen.assert_agreement();
    let spins = of(&seen, "quic-spin");
    let (from_client, from_server): (Vec<&Sample>, Vec<&Sample>) =
        spins.iter().copied().partition(|sample| sample.tuple.src_ip == family.client());
    for (sender, samples) in [("client", &from_client), ("server", &from_server)] {
        assert!(samples.len() > MANY, "{} samples of the {sender}", samples.len());
    }
    for sample in spins {
        let is_from_client = sample.tuple.src_ip == family.client();
        assert_eq!(sample.match_on_egress, is_from_client, "{sample:?}");
        let side = sample.side_rtt.map(Duration::from_nanos);
        let side = side.unwrap_or_else(|| panic!("without its side: {sample:?}"));
        assert!(side <= sample.rtt(), "{sample:?}");
        let with_wire = if is_from_client { sample.rtt().saturating_sub(side) } else { side };
        assert!(with_wire >= ROUND_TRIP, "{sample:?}");
    }
}

/// Asserts that a bit that does not spin gives at most `most` samples.
fn a_spin_bit_that_does_not_spin_is_not_timed(ingress: &str, client: Spin, server: Spin, most: usize) {
    let mut seen = talk(ingress, Family::Ipv4, client, server);
    let spins = of(&seen, "quic-spin");
    eprintln!("{} samples of {client:?} and {server:?}", spins.len());
    assert!(spins.len() <= most, "{} samples: {spins:#?}", spins.len());

    // Which random bits are edges depends on the order of both directions' packets, and tcpdump and pping may see
    // different orders from two CPUs.
    seen.records.samples.retain(|sample| sample.method == "quic-handshake");
    seen.assert_nothing_unjustified();
}

#[test]
fn tc_times_a_spin_bit_that_spins_over_ipv4() {
    a_spin_bit_that_spins_is_timed("tc", Family::Ipv4, Spin::On);
}

#[test]
fn tc_times_a_spin_bit_beside_a_greased_quic_bit() {
    a_spin_bit_that_spins_is_timed("tc", Family::Ipv6, Spin::Greased);
}

#[test]
fn xdp_times_a_spin_bit_beside_a_greased_quic_bit() {
    a_spin_bit_that_spins_is_timed("xdp", Family::Ipv4, Spin::Greased);
}

#[test]
fn xdp_times_a_spin_bit_that_spins_over_ipv6() {
    a_spin_bit_that_spins_is_timed("xdp", Family::Ipv6, Spin::On);
}

#[test]
fn a_spin_bit_that_is_off_is_not_timed() {
    a_spin_bit_that_does_not_spin_is_not_timed("tc", Spin::Off, Spin::Off, 0);
}

#[test]
fn a_spin_bit_that_only_the_server_would_spin_is_not_timed() {
    a_spin_bit_that_does_not_spin_is_not_timed("xdp", Spin::Off, Spin::On, 0);
}

#[test]
fn random_spin_bits_are_not_timed() {
    a_spin_bit_that_does_not_spin_is_not_timed("tc", Spin::Random, Spin::Random, FEW);
}

#[test]
fn a_random_spin_bit_that_the_server_passes_on_is_not_timed() {
    a_spin_bit_that_does_not_spin_is_not_timed("xdp", Spin::Random, Spin::On, FEW);
}
