//! The kernel's aggregates are the sums of the samples of the same run, and equal the aggregates of a capture of the
//! same packets.

use std::{collections::BTreeMap, fs, process::Command, thread, time::Duration};

use pping_common::hist;
use pping_lab::{
    Capture, Process, Signal, Topology,
    traffic::{self, Behaviour, Pace, Server},
};
use serde_json::Value;

use super::{Family, iperf::iperf, ok, ping::ping, topology};

const PATIENCE: Duration = Duration::from_mins(1);

const CONVERSATION: Pace = Pace { chunks: 200, bytes: 500, pause: Duration::from_millis(7) };

/// Group, method, and the direction of the echo if it is known.
type Series = (String, String, Option<bool>);

/// The values of a series, over all intervals.
#[derive(Debug, Default, PartialEq)]
struct Sum {
    /// Samples by the upper bound of their bin, in ns.
    bins: BTreeMap<u64, u64>,
    min: Option<u64>,
    max: Option<u64>,
    /// The bounds of the sum of the RTTs. Records round the mean down to a whole number.
    sums: (u128, u128),
    /// Packets and bytes each way.
    traffic: [u64; 4],
}

impl Sum {
    fn count(&self) -> u64 {
        self.bins.values().sum()
    }

    fn add_sample(&mut self, rtt: u64) {
        *self.bins.entry(hist::upper_bound(hist::bin(rtt))).or_default() += 1;
        self.add_range(rtt, rtt);
        self.sums.0 += u128::from(rtt);
        self.sums.1 += u128::from(rtt);
    }

    fn add_range(&mut self, min: u64, max: u64) {
        self.min = Some(self.min.map_or(min, |it| it.min(min)));
        self.max = Some(self.max.map_or(max, |it| it.max(max)));
    }

    fn add_record(&mut self, record: &Value) {
        for (sum, field) in
            self.traffic.iter_mut().zip(["sent_packets", "sent_bytes", "rec_packets", "rec_bytes"])
        {
            *sum += record[field].as_u64().unwrap();
        }
        let count = record["count"].as_u64().unwrap();
        let mut in_bins = 0;
        for bin in record["histogram"].as_array().unwrap() {
            in_bins += bin[1].as_u64().unwrap();
            *self.bins.entry(bin[0].as_u64().unwrap()).or_default() += bin[1].as_u64().unwrap();
        }
        assert_eq!(in_bins, count, "{record}");
        if count > 0 {
            let ns = |field: &str| record[field].as_u64().unwrap();
            self.add_range(ns("min"), ns("max"));
            self.sums.0 += u128::from(ns("mean") * count);
            self.sums.1 += u128::from((ns("mean") + 1) * count);
            assert!(ns("min") <= ns("p50") && ns("p50") <= ns("p90") && ns("p90") <= ns("p95"), "{record}");
            assert!(ns("p95") <= ns("p99") && ns("p99") <= ns("max"), "{record}");
        }
    }
}

/// The aggregates and the single samples, by series.
struct Reported {
    aggregates: BTreeMap<Series, Sum>,
    samples: BTreeMap<Series, Sum>,
    intervals: usize,
}

impl Reported {
    /// Parses JSON lines. `group` returns the group of a sample.
    fn parse(lines: &str, group: impl Fn(&Value) -> String) -> Self {
        let mut reported = Self { aggregates: BTreeMap::new(), samples: BTreeMap::new(), intervals: 0 };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut ends = std::collections::BTreeSet::new();
        for line in lines.lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            let series = |group| (group, text(&record["method"]), record["match_on_egress"].as_bool());
            if record.get("histogram").is_some() {
                ends.insert(record["timestamp"].as_u64());
                reported.aggregates.entry(series(text(&record["group"]))).or_default().add_record(&record);
            } else if record.get("rtt").is_some() {
                let rtt = record["rtt"].as_u64().unwrap();
                reported.samples.entry(series(group(&record))).or_default().add_sample(rtt);
            }
        }
        reported.intervals = ends.len();
        reported
    }

    /// Asserts that the aggregates and the samples of each series agree.
    fn assert_agreement(&self) {
        let with_samples: Vec<_> = self.aggregates.iter().filter(|(_, sum)| sum.count() > 0).collect();
        let names = |series: &[&Series]| format!("{series:#?}");
        let (aggregated, single): (Vec<_>, Vec<_>) =
            (with_samples.iter().map(|it| it.0).collect(), self.samples.keys().collect());
        assert_eq!(names(&aggregated), names(&single));
        for (series, aggregate) in with_samples {
            let samples = &self.samples[series];
            assert_eq!(aggregate.count(), samples.count(), "{series:?}");
            assert_eq!(aggregate.bins, samples.bins, "{series:?}");
            assert_eq!((aggregate.min, aggregate.max), (samples.min, samples.max), "{series:?}");
            let sum = samples.sums.0;
            assert!(aggregate.sums.0 <= sum && sum < aggregate.sums.1, "{series:?}: {sum} {aggregate:?}");
        }
    }
}

fn watching(topology: &Topology, arguments: &str) -> Process {
    let mut command = topology.router().command(env!("CARGO_BIN_EXE_pping"));
    command.args(["-v", "-i", Topology::WAN, "--format", "jsonl"]).args(arguments.split_whitespace());
    let mut pping = ok(Process::spawn(command));
    ok(pping.wait_for_output(&format!("watching {}", Topology::WAN), PATIENCE));
    ok(pping.wait_for_output("measuring round-trip times", PATIENCE));
    pping
}

/// Returns the group of a sample, by both of its hosts.
fn by_hosts(record: &Value) -> String {
    let net = |field: &str| {
        let address = record[field].as_str().unwrap();
        format!("{address}/{}", if address.contains(':') { 128 } else { 32 })
    };
    format!("{}+{}", net("src_ip"), net("dest_ip"))
}

/// Runs iperf3 connections both ways, conversations over both families, and pings, on both CPUs.
fn traffic(topology: &Topology) {
    let server = &ok(Server::start(topology.server(), 0, Behaviour::Echo));
    thread::scope(|scope| {
        for family in [Family::Ipv4, Family::Ipv6] {
            let address = family.address_of(server);
            scope.spawn(move || ok(traffic::echo(topology.client(), address, CONVERSATION)));
            scope.spawn(move || ping(topology.client(), family.server()));
        }
        let arguments = "--parallel 8 --bidir --bitrate 4M --time 3";
        scope.spawn(move || iperf(topology, Family::Ipv4.server(), arguments));
    });
}

fn aggregates_agree(ingress: &str) {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let grouping = "--rate-limit 0 --group-by /32,/128,both";
    let mut pping =
        watching(&topology, &format!("--ingress {ingress} --aggregate 1s --with-samples {grouping}"));
    let capture =
        ok(Capture::start(topology.router(), Topology::WAN, &directory.path().join("packets.pcap")));
    traffic(&topology);
    let captured = ok(capture.finish());
    ok(pping.stop(Signal::SIGINT, PATIENCE));
    let summary = ok(pping.stderr());
    assert!(summary.contains("lost: 0 events, 0 lines"), "{summary}");
    let reported = Reported::parse(&ok(pping.stdout()), by_hosts);
    reported.assert_agreement();
    assert!(reported.intervals >= 4, "{} intervals", reported.intervals);
    assert!(reported.samples.values().map(Sum::count).sum::<u64>() > 2_000, "{summary}");

    // A replay of the same packets has the same bytes each way, but perhaps more packets: a segment at tc egress may be
    // one that the network card will split.
    let output = Command::new(env!("CARGO_BIN_EXE_pping"))
        .args(["--format", "jsonl", "--aggregate", "1h", "-r"])
        .arg(&captured.file)
        .args(grouping.split_whitespace())
        .output()
        .unwrap();
    let replayed = Reported::parse(&String::from_utf8(output.stdout).unwrap(), by_hosts);
    let traffic = |reported: &Reported| -> BTreeMap<(String, String), [u64; 4]> {
        let of = |((group, method, _), sum): (&Series, &Sum)| ((group.clone(), method.clone()), sum.traffic);
        reported.aggregates.iter().map(of).collect()
    };
    let (live, replayed) = (traffic(&reported), traffic(&replayed));
    assert!(live.keys().eq(replayed.keys()), "{live:?} {replayed:?}");
    for (series, [sent_packets, sent_bytes, rec_packets, rec_bytes]) in live {
        let in_file = replayed[&series];
        if series.1 == "tcp-handshake" {
            // A flow's traffic is reported with the method that measures most of it.
            assert_eq!([sent_packets, sent_bytes, rec_packets, rec_bytes], [0; 4], "{series:?}");
            continue;
        }
        assert_eq!([sent_bytes, rec_bytes], [in_file[1], in_file[3]], "{series:?}");
        assert!(sent_packets > 0 && sent_packets <= in_file[0], "{series:?}: {sent_packets} of {in_file:?}");
        assert!(rec_packets > 0 && rec_packets <= in_file[2], "{series:?}: {rec_packets} of {in_file:?}");
        if series.1 == "icmp-echo" {
            assert_eq!([sent_packets, rec_packets], [in_file[0], in_file[2]], "{series:?}");
        }
    }
}

#[test]
fn aggregates_are_the_sum_of_the_samples_at_tc() {
    aggregates_agree("tc");
}

#[test]
fn aggregates_are_the_sum_of_the_samples_at_xdp() {
    aggregates_agree("xdp");
}

#[test]
fn reloading_groups_loses_no_samples() {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("groups.csv");
    let write = |text: &str| fs::write(&file, text).unwrap();
    let (client, server) = (Family::Ipv4.client(), Family::Ipv4.server());
    let first = format!("prefix,group\n{server}/32,the server\n0.0.0.0/0,the rest\n");
    let second =
        format!("prefix,group\n{server}/32,somebody else\n{client}/32,the client\n::/0,version six\n");
    write(&first);
    let mut pping = watching(
        &topology,
        &format!("--aggregate 1s --with-samples --rate-limit 0 --groups {}", file.display()),
    );
    thread::scope(|scope| {
        let busy = scope.spawn(|| traffic(&topology));
        for round in 0.. {
            if busy.is_finished() {
                break;
            }
            match round % 3 {
                0 => write(&second),
                1 => write("prefix,group\n192.0.2.0/24,fine\n192.0.2.300/24,not a prefix\n"),
                _ => write(&first),
            }
            ok(pping.signal(Signal::SIGHUP));
            thread::sleep(Duration::from_millis(130));
        }
    });
    ok(pping.stop(Signal::SIGINT, PATIENCE));
    let summary = ok(pping.stderr());
    assert!(summary.contains("lost: 0 events, 0 lines"), "{summary}");
    // pping names the invalid file with its line number, and changes nothing.
    assert!(summary.contains("groups.csv:3:") || summary.contains("line 3"), "{summary}");
    assert!(summary.contains("192.0.2.300/24"), "{summary}");
    let label = |record: &Value| record["group"].as_str().unwrap_or("unlisted").to_owned();
    let reported = Reported::parse(&ok(pping.stdout()), label);
    reported.assert_agreement();
    let groups: std::collections::BTreeSet<&str> =
        reported.samples.keys().map(|(group, ..)| group.as_str()).collect();
    let expected = ["somebody else", "the client", "the rest", "the server", "unlisted", "version six"];
    assert_eq!(groups.into_iter().collect::<Vec<_>>(), expected, "{summary}");
}

/// Returns the endpoints of a flow in a fixed order, and what each sent: packets, bytes, retransmitted segments.
fn flow(record: &Value) -> (String, [(u64, u64, u64); 2]) {
    let end = |ip: &str, port: &str| format!("{}|{}", record[ip].as_str().unwrap(), record[port]);
    let sent = |way: &str| {
        let number = |field: &str| record[format!("{way}_{field}")].as_u64().unwrap();
        (number("packets"), number("bytes"), number("retransmissions"))
    };
    let (src, dest) = (end("src_ip", "src_port"), end("dest_ip", "dest_port"));
    let protocol = record["protocol"].as_str().unwrap();
    if src < dest {
        (format!("{protocol} {src} {dest}"), [sent("rec"), sent("sent")])
    } else {
        (format!("{protocol} {dest} {src}"), [sent("sent"), sent("rec")])
    }
}

/// Returns the flow summaries among JSON lines.
fn summaries(lines: &str) -> Vec<Value> {
    let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter(|record| record["flow_event"] == "summary").collect()
}

#[test]
fn flows_are_summed_up_when_they_or_pping_end() {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let mut pping = watching(&topology, "--flow-summary --with-samples --rate-limit 0");
    let capture =
        ok(Capture::start(topology.router(), Topology::WAN, &directory.path().join("packets.pcap")));
    let server = ok(Server::start(topology.server(), 0, Behaviour::Echo));
    for family in [Family::Ipv4, Family::Ipv6] {
        let address = family.address_of(&server);
        let short = Pace { chunks: 30, ..CONVERSATION };
        thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| ok(traffic::echo(topology.client(), address, short)));
            }
        });
        ping(topology.client(), family.server());
    }
    let captured = ok(capture.finish());
    ok(pping.stop(Signal::SIGINT, PATIENCE));
    let live = ok(pping.stdout());
    let output = Command::new(env!("CARGO_BIN_EXE_pping"))
        .args(["--format", "jsonl", "--flow-summary", "--rate-limit", "0", "-r"])
        .arg(&captured.file)
        .output()
        .unwrap();
    let flows = |summaries: &[Value]| -> BTreeMap<_, _> { summaries.iter().map(flow).collect() };
    let (reported, replayed) = (summaries(&live), summaries(&String::from_utf8(output.stdout).unwrap()));
    assert_eq!(flows(&reported), flows(&replayed));
    assert_eq!((reported.len(), flows(&reported).len()), (12, 12), "each flow once");

    // The summary of each direction has as many samples as the direction has records.
    let mut samples: BTreeMap<(String, String), u64> = BTreeMap::new();
    let ends = |record: &Value, ip: [&str; 2], port: [&str; 2]| {
        let end = |at: usize| format!("{}|{}", record[ip[at]], record[port[at]]);
        (end(0), end(1))
    };
    let (ips, ports) = (["src_ip", "dest_ip"], ["src_port", "dest_port"]);
    for line in live.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        if record.get("smoothed_rtt").is_some() {
            *samples.entry(ends(&record, ips, ports)).or_default() += 1;
        }
    }
    for summary in &reported {
        let back = (["dest_ip", "src_ip"], ["dest_port", "src_port"]);
        for (rtt, ends) in
            [("src_rtt", ends(summary, ips, ports)), ("dest_rtt", ends(summary, back.0, back.1))]
        {
            let count = summary[rtt]["samples"].as_u64().unwrap_or(0);
            assert_eq!(count, samples.remove(&ends).unwrap_or(0), "{rtt} of {summary}");
        }
        assert!(summary["start"].as_u64() <= summary["end"].as_u64(), "{summary}");
        let reason = summary["reason"].as_str().unwrap();
        let expected = if summary["protocol"] == "TCP" { "FIN" } else { "end of observation" };
        assert_eq!(reason, expected, "{summary}");
    }
    assert!(samples.is_empty(), "{samples:?}");
}
