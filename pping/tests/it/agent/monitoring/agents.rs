//! Serves metrics as pping does, computed from made-up samples.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use pping::{
    groups::{GroupName, QueueName, SeriesName},
    http::{Access, Contents, Readiness, Server},
    metrics::{Fill, Metrics},
    quality,
    recent::{self, RecentHistory},
    residence::{InterfaceTimes, Times},
    snapshot::{InterfaceCounters, Place, ProgramRuns, Snapshot},
};
use pping_common::{
    abi::{Counters, Residence},
    hist,
    method::Method,
    parse::Direction,
    series::SeriesCounts,
};
use pping_lab::Namespace;

use crate::agent::{every_second::EverySecond, monitor::ok};

/// The interfaces of each agent.
pub(super) const LAN: &str = "lan0";
pub(super) const WAN: &str = "wan0";

/// How long packets take to each interface, and in its queue, ns.
pub(super) const FORWARDING: [(&str, u64); 2] = [(LAN, 40_000), (WAN, 700_000)];
pub(super) const QUEUES: [(&str, u64); 2] = [(LAN, 300_000), (WAN, 21_000_000)];

/// What one series measured in a second.
pub(super) type SeriesSecond = (SeriesName, SeriesCounts);

/// A metrics server that adds one second's samples every second, until dropped.
pub(super) struct Agent {
    _feeding: EverySecond,
    _server: Server,
}

impl Agent {
    /// Serves on a loopback port. Calls `second` once a second for new samples.
    pub(super) fn start(
        host: &Namespace,
        port: u16,
        mut second: impl FnMut() -> Vec<SeriesSecond> + Send + 'static,
    ) -> Self {
        let metrics = Metrics::new(100, Duration::from_mins(10));
        metrics.score_by(quality::load(None).unwrap());
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let serve = || {
            Server::start(
                address,
                Access::default(),
                Contents::new(metrics.clone(), RecentHistory::new(recent::MEMORY), Readiness::default()),
            )
        };
        let server = ok(host.enter(serve)).unwrap();
        let mut counters = Counters::ZERO;
        let mut seconds = 0;
        let feeding = EverySecond::start(move || {
            metrics.add(&second(), Instant::now());
            count(&metrics, &mut counters);
            seconds += 1;
            stay(&metrics, seconds);
        });
        Self { _feeding: feeding, _server: server }
    }
}

/// Adds to every counter.
fn count(metrics: &Metrics, counters: &mut Counters) {
    for direction in Direction::ALL.map(|direction| direction as usize) {
        for packets in &mut counters.traffic[direction] {
            packets.by_ecn.iter_mut().for_each(|packets| *packets += 250);
            packets.bytes += 900_000;
        }
        counters.retransmissions[direction] += 7;
        counters.reordered[direction] += 2;
        counters.dns_queries[direction] += 50;
    }
    counters.dns_responses[..4].iter_mut().for_each(|responses| *responses += 20);
    counters.dns_unanswered += 5;
    counters.evicted += 4;
    counters.opened.iter_mut().chain(&mut counters.closed).for_each(|flows| *flows += 3);
    counters.entries_made.iter_mut().for_each(|flows| *flows += 3);
    for (timed, ns) in counters.timed_packets.iter_mut().zip(&mut counters.timed_ns) {
        (*timed, *ns) = (*timed + 3, *ns + 120);
    }
    let interface = |name: &str| InterfaceCounters {
        name: name.into(),
        attach_points: vec!["tcx"],
        is_up: true,
        counters: *counters,
        place: Place::Alone,
    };
    let fill =
        Fill { max_flows: 1000, groups: 2, max_groups: 100, series: 4, max_series: 200, ..Fill::default() };
    metrics.set_counters(Snapshot { interfaces: [LAN, WAN].map(interface).into() }, fill);
    let runs = counters.traffic[0][0].packets();
    let time = Duration::from_nanos(45 * runs);
    metrics.set_program_runs(vec![ProgramRuns { program: "pping_ingress".to_owned(), runs, time }]);
}

/// Adds ten packets a second that were forwarded, and ten that were queued, at each interface.
fn stay(metrics: &Metrics, seconds: u64) {
    let residence = |time: u64| {
        let (count, mut bins) = (10 * seconds, [0; hist::BINS]);
        bins[hist::bin(time)] = count;
        let (followed, dropped, replaced) = (count * 12 / 10, count / 10, count / 10);
        Residence { sum: time * count, followed, dropped, replaced, bins }
    };
    let times = FORWARDING.iter().zip(QUEUES).map(|(&(interface, forwarding), (_, queue))| InterfaceTimes {
        interface: interface.into(),
        times: Box::new(Times::new(residence(forwarding), residence(queue), 64)),
        sent: 1_000 * seconds,
    });
    metrics.set_residence(times.collect());
    let queue = |(interface, time): (&str, u64)| {
        let group = group("customer-7", &[]);
        let mut counts = SeriesCounts::EMPTY;
        (0..10).for_each(|_| counts.sample(time, 0));
        (QueueName { interface: Some(interface.into()), group: group.into() }, counts)
    };
    metrics.add_queues(&QUEUES.map(queue));
}

fn group(label: &str, columns: &[(&str, &str)]) -> GroupName {
    GroupName {
        columns: columns.iter().map(|&(column, value)| (column.into(), value.into())).collect(),
        ..GroupName::named(label)
    }
}

/// Returns what a series of a group measured at `wan0` in one second: these RTTs in ns, and a few packets.
pub(super) fn counts_of(
    label: &str,
    columns: &[(&str, &str)],
    matched: Direction,
    rtts: &[u64],
) -> SeriesSecond {
    counts_at(WAN, label, columns, matched, rtts)
}

/// Like [`tally_of`], at another interface.
pub(super) fn counts_at(
    interface: &str,
    label: &str,
    columns: &[(&str, &str)],
    matched: Direction,
    rtts: &[u64],
) -> SeriesSecond {
    let mut counts = SeriesCounts::EMPTY;
    for &rtt in rtts {
        counts.sample(rtt, 0);
    }
    for (traffic, packets) in [(&mut counts.sent, 3), (&mut counts.received, 2)] {
        traffic.packets = packets * rtts.len() as u64;
        traffic.bytes = 700 * traffic.packets;
        traffic.retransmissions = traffic.packets / 50;
    }
    let name = SeriesName {
        interface: Some(interface.into()),
        method: Method::TcpTs,
        matched: Some(matched),
        side: None,
        group: group(label, columns).into(),
    };
    (name, counts)
}
