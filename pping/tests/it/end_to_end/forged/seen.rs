//! What pping wrote while an attacker sent, and what it has to be.

use std::{collections::BTreeMap, iter, net::IpAddr, path::Path, thread, time::Duration};

use pping_lab::{Process, Signal, Topology};
use serde_json::Value;

use super::{
    super::{ROUND_TRIP, ok, records::Records, watch},
    CHUNKS, FAMILY, INTERFACES, LONG, PACE, PATIENCE,
    network::Network,
};

const METRICS: &str = "http://127.0.0.1:9464/metrics";

/// Runs pping with these arguments while something happens.
pub(super) fn watch(network: &Network, arguments: &str, meanwhile: impl FnOnce()) -> Seen {
    let mut command = network.topology.router().command(env!("CARGO_BIN_EXE_pping"));
    command.args(["-v", "-i", Topology::LAN, "-i", Topology::WAN, "--rate-limit", "0", "--format", "jsonl"]);
    command.args(["--flow-summary", "--with-samples", "--listen", "127.0.0.1:9464"]);
    let mut pping = ok(Process::spawn({
        command.args(arguments.split_whitespace());
        command
    }));
    ok(pping.wait_for_output("measuring round-trip times", PATIENCE));
    meanwhile();
    // Counters are read once a second.
    thread::sleep(Duration::from_secs(3));
    let mut curl = network.topology.router().command("curl");
    let metrics = ok(pping_lab::run(curl.args(["-s", METRICS])));
    ok(pping.stop(Signal::SIGINT, PATIENCE));
    let records = ok(pping.stdout()).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Seen { records, metrics, summary: ok(pping.stderr()) }
}

/// What pping wrote.
pub(super) struct Seen {
    pub(super) records: Vec<Value>,
    metrics: String,
    summary: String,
}

impl Seen {
    pub(super) fn samples<'a>(
        &'a self,
        interface: &'a str,
        replier: IpAddr,
        port: u16,
    ) -> impl Iterator<Item = Duration> + 'a {
        self.records.iter().filter_map(move |record| {
            let is_it = record["type"] == "rtt"
                && record["interface"] == interface
                && record["src_ip"] == replier.to_string()
                && (record["dest_port"] == port || record["src_port"] == port);
            is_it.then(|| Duration::from_nanos(record["rtt"].as_u64().unwrap()))
        })
    }

    pub(super) fn untracked(&self, reason: &str) -> u64 {
        self.sum("pping_untracked_packets_total", &format!("reason=\"{reason}\"")) as u64
    }

    /// When a connection closed at an interface, in ns since the epoch. `port` is the client's.
    pub(super) fn closed_at(&self, interface: &str, port: u16) -> u64 {
        let closings = self.records.iter().filter(|record| {
            record["flow_event"] == "closing"
                && record["interface"] == interface
                && (record["src_port"] == port || record["dest_port"] == port)
        });
        closings.map(|record| record["timestamp"].as_u64().unwrap()).max().unwrap()
    }

    /// Asserts that the samples of these connections at an interface are those of a capture without forged segments.
    #[track_caller]
    pub(super) fn assert_agreement(&self, interface: &str, ports: impl Iterator<Item = u16>, honest: &Path) {
        let closed: BTreeMap<_, _> =
            ports.map(|port| (u64::from(port), self.closed_at(interface, port))).collect();
        // Once a connection is closed, a forged SYN and SYN-ACK are another one.
        let is_forged = |sample: &Value| {
            let ports = [&sample["src_port"], &sample["dest_port"]].map(|port| port.as_u64().unwrap());
            let closed_at = ports.iter().find_map(|port| closed.get(port)).unwrap();
            sample["method"] == "tcp-handshake" && sample["timestamp"].as_u64().unwrap() > *closed_at
        };
        let samples = self
            .records
            .iter()
            .filter(|record| record["type"] == "rtt" && record["interface"] == interface)
            .filter(|sample| !is_forged(sample));
        let lines: Vec<_> = samples.map(Value::to_string).collect();
        watch::Seen::new(Records::parse(&lines.join("\n")), honest, "", &self.summary).assert_agreement();
    }

    /// Asserts that a connection was measured as without forged segments. `port` is the client's. Returns how many of its
    /// segments seemed to be sent again at each of [`INTERFACES`].
    #[track_caller]
    pub(super) fn assert_connection(&self, port: u16) -> [u64; 2] {
        let replies: Vec<_> = self.samples(Topology::WAN, FAMILY.server(), port).collect();
        assert!(!replies.is_empty(), "{port}");
        for rtt in replies {
            assert!(rtt >= ROUND_TRIP && rtt < LONG, "{rtt:?} of {port}");
        }
        // The client is near the router. It may delay its ACKs.
        for rtt in self.samples(Topology::LAN, FAMILY.client(), port) {
            assert!(rtt < LONG, "{rtt:?} of {port}");
        }
        let of_flow = |record: &&Value| {
            record["type"] == "flow" && (record["src_port"] == port || record["dest_port"] == port)
        };
        let events: Vec<&Value> = self.records.iter().filter(of_flow).collect();
        assert!(events.iter().all(|event| event["reason"] != "RST"), "{events:#?}");
        INTERFACES.map(|interface| {
            let events = events.iter().filter(|event| event["interface"] == interface);
            let (summaries, events): (Vec<&Value>, Vec<&Value>) =
                events.partition(|event| event["flow_event"] == "summary");
            assert_eq!(summaries.len(), 1, "{port} at {interface}: {summaries:#?}");
            // Each direction opens once and closes once. After that, a forged SYN may seem to begin another one, and a FIN that is
            // sent again to end it.
            let mut kinds = events.iter().map(|event| event["flow_event"].as_str().unwrap()).peekable();
            let mut count = |kind| iter::from_fn(|| kinds.next_if_eq(&kind)).count();
            assert_eq!((count("opening"), count("closing")), (2, 2), "{port}: {events:#?}");
            let of_ways = ["sent", "rec"].map(|way| {
                let again = summaries[0][format!("{way}_retransmissions")].as_u64().unwrap();
                let bytes = summaries[0][format!("{way}_bytes")].as_u64().unwrap();
                let most = u64::from(CHUNKS) * PACE.bytes as u64 + 1500 * again;
                assert!(bytes <= most, "{}", summaries[0]);
                again
            });
            of_ways.iter().sum()
        })
    }

    /// The sum of the series of a metric with this label.
    pub(super) fn sum(&self, metric: &str, label: &str) -> f64 {
        let is_it = |line: &&str| {
            line.split_once('{').is_some_and(|(name, _)| name == metric) && line.contains(label)
        };
        let values = self.metrics.lines().filter(is_it).map(|line| line.rsplit_once(' ').unwrap().1);
        values.map(|value| value.parse::<f64>().unwrap()).sum()
    }
}
