//! A server with made-up groups: those of a gateway, and hostile ones.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use pping::{
    groups::{GroupName, Levels, NETWORK, Networks, SeriesName, roll_up},
    history::Archive,
    http::{Access, Contents, Readiness, Server},
    metrics::Metrics,
    quality,
    recent::{self, CELL, CELLS, Reading, RecentHistory},
    snapshot::{InterfaceCounters, Place, Snapshot},
};
use pping_common::{
    abi::Counters,
    group::{GroupKey, Side},
    method::Method,
    parse::Direction,
    series::SeriesCounts,
};
use pping_lab::Namespace;

use crate::agent::{every_second::EverySecond, http::PORT, monitor::ok};

/// Labels that contain markup, move the cursor, or reverse the direction of text.
pub(super) const HOSTILE: [&str; 4] = [
    "<img src=x onerror=document.title='owned'>",
    "\u{1b}[2J\u{1b}]0;owned\u{7}red",
    "exe.\u{202e}gpj.\u{2066}x\u{2069}\u{200b}",
    "\"><script>document.title='owned'</script>",
];

const INTERFACE: &str = "wan0";

/// The levels of the tree of groups.
const LEVELS: [&str; 2] = ["site", "ap"];

/// The other interface, if sides are told apart.
const INNER: &str = "lan0";

/// A server that ends on drop.
pub(super) struct FedServer {
    recent: RecentHistory,
    /// Makes what each series has in the latest cell.
    present: Box<dyn Fn() -> Vec<(SeriesName, SeriesCounts)>>,
    _counting: EverySecond,
    _server: Server,
}

impl FedServer {
    /// Serves 15 minutes of `groups` groups, the hostile ones, and one with a label of 10 kB.
    pub(super) fn start(host: &Namespace, groups: u64) -> Self {
        Self::start_with(host, groups, None, series)
    }

    /// Does the same with a history in a directory.
    pub(super) fn start_with_history(host: &Namespace, groups: u64, directory: &Path) -> Self {
        let fed = Self::start_with(host, groups, Some(directory), series);
        fed.recent.tell_of_history(true);
        fed
    }

    /// Does the same at a gateway that tells sides apart.
    pub(super) fn start_with_sides(host: &Namespace, groups: u64) -> Self {
        let fed = Self::start_with(host, groups, None, series_of_sides);
        fed.recent.tell_sides_apart(true);
        fed
    }

    /// Does the same with a tree of groups: two sites, and access points at each.
    pub(super) fn start_with_tree(host: &Namespace, groups: u64) -> Self {
        let fed = Self::start_with(host, groups, None, series_in_tree);
        fed.recent.list_levels(Levels::new(&LEVELS.map(ToOwned::to_owned)));
        fed.recent.score_by(quality::load(None).unwrap());
        fed
    }

    fn start_with<const N: usize>(
        host: &Namespace,
        groups: u64,
        history: Option<&Path>,
        series: fn(&str, u64, u64) -> [(SeriesName, SeriesCounts); N],
    ) -> Self {
        let recent = RecentHistory::new(recent::MEMORY);
        let long = "long-".repeat(2000);
        let labels: Vec<String> = (0..groups)
            .map(|number| format!("customer-{number:02}"))
            .chain(HOSTILE.map(ToOwned::to_owned))
            .chain([long])
            .collect();
        let all_counts = move |cell| -> Vec<_> {
            let mut all: Vec<_> =
                labels.iter().zip(1_u64..).flat_map(|(label, rank)| series(label, rank, cell)).collect();
            all.extend(roll_up(&all));
            all
        };
        let now = now();
        for cell in (0..CELLS).rev() {
            recent.add(&all_counts(cell), now - cell * CELL);
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
        let metrics = Metrics::new(100, Duration::from_mins(10));
        let archive = history.map(|directory| Archive::new(directory.to_owned()));
        let serve = || {
            Server::start(
                address,
                Access::default(),
                Contents::new(metrics, recent.clone(), Readiness::default()).with_archive(archive),
            )
        };
        let server = ok(host.enter(serve)).unwrap();
        let (counted, mut counters) = (recent.clone(), Counters::ZERO);
        let counting = EverySecond::start(move || count(&counted, &mut counters));
        Self { recent, present: Box::new(move || all_counts(0)), _counting: counting, _server: server }
    }

    /// Adds to all groups what they had in the latest cell, at the present time, so that none of them has been silent for a minute.
    pub(super) fn go_on(&self) {
        self.recent.add(&(self.present)(), now());
    }

    /// Adds 15 minutes of a group whose percentiles span as many decades.
    pub(super) fn add_decades(&self, label: &str, decades: u32) {
        let longest = 2_000 * 10_u64.pow(decades);
        for cell in (0..CELLS).rev() {
            let rtts: Vec<u64> = (0..20).map(|number| if number < 12 { 2_000 } else { longest }).collect();
            self.recent.add(&[counts_of(label, Direction::Ingress, &rtts)], now() - cell * CELL);
        }
    }

    /// Adds samples of a network at the other end, at the present time.
    pub(super) fn add_network(&self, number: u32, label: &str, rtts: &[u64]) {
        self.recent.name_networks(Networks::of_prefixes(&Vec::new()));
        let (name, counts) = counts_of(label, Direction::Ingress, rtts);
        let key = GroupKey::of_network(number);
        let columns = vec![("asn".into(), number.to_string().into())];
        let group = GroupName { level: Some(NETWORK.into()), key, columns, ..GroupName::named(label) };
        self.recent.add(&[(SeriesName { group: group.into(), ..name }, counts)], now());
    }

    /// Adds samples of a group, at the present time.
    pub(super) fn add(&self, label: &str, rtts: &[u64]) {
        self.recent.add(&[counts_of(label, Direction::Ingress, rtts)], now());
    }
}

/// Ends a second in which some packets passed.
fn count(recent: &RecentHistory, counters: &mut Counters) {
    for traffic in counters.traffic.iter_mut().flatten() {
        traffic.by_ecn[0] += 250;
        traffic.bytes += 900_000;
    }
    let interface = InterfaceCounters {
        name: INTERFACE.into(),
        attach_points: vec!["tcx"],
        is_up: true,
        counters: *counters,
        place: Place::Alone,
    };
    recent.take_reading(
        Reading { snapshot: Snapshot { interfaces: vec![interface] }, ..Reading::default() },
        now(),
    );
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// Returns both sides of a group in a cell. No two groups have the same RTTs.
fn series(label: &str, rank: u64, cell: u64) -> [(SeriesName, SeriesCounts); 2] {
    let beyond = 1_000_000 * rank * (10 + cell % 7);
    let spread = |first: u64| [first, first + first / 5, 2 * first, 3 * first];
    [
        counts_of(label, Direction::Ingress, &spread(beyond)),
        counts_of(label, Direction::Egress, &spread(beyond / 50)),
    ]
}

/// Returns both sides of a group in a cell: each sample is beyond one interface, and behind the other one.
fn series_of_sides(label: &str, rank: u64, cell: u64) -> [(SeriesName, SeriesCounts); 4] {
    let [outside, inside] = series(label, rank, cell).map(|(_, counts)| counts);
    [(Side::Inside, INNER, inside), (Side::Outside, INTERFACE, outside)]
        .map(|(side, beyond, counts)| {
            [INNER, INTERFACE].map(|interface| {
                let matched = if interface == beyond { Direction::Ingress } else { Direction::Egress };
                let (name, _) = counts_of(label, matched, &[]);
                let name = SeriesName { interface: Some(interface.into()), side: Some(side), ..name };
                (name, counts)
            })
        })
        .concat()
        .try_into()
        .unwrap()
}

/// Returns both sides of a group in a cell, with enough samples for a score. Its site and its access point depend on its rank.
fn series_in_tree(label: &str, rank: u64, cell: u64) -> [(SeriesName, SeriesCounts); 2] {
    let site = if rank.is_multiple_of(2) { "berlin" } else { "<b>Lund" };
    let (ap, path) = if rank % 4 < 2 { ("ap-1", "ap-1") } else { ("x/y", "x\\/y") };
    let columns = [("site".into(), site.into()), ("ap".into(), ap.into())];
    let node = |level: &str, columns: &[_], path: &str, above: &[Arc<GroupName>]| {
        let (level, columns, above) = (Some(level.into()), columns.to_vec(), above.to_vec());
        Arc::new(GroupName { level, columns, above, ..GroupName::named(path) })
    };
    let outer = node("site", &columns[..1], site, &[]);
    let inner = node("ap", &columns, &format!("{site}/{path}"), &[Arc::clone(&outer)]);
    let group = GroupName { columns: columns.to_vec(), above: vec![outer, inner], ..GroupName::named(label) };
    let group = Arc::new(group);
    series(label, rank, cell).map(|(name, mut counts)| {
        for count in &mut counts.bins {
            *count *= 100;
        }
        // What is bad is bad by its round-trip times.
        counts.received.retransmissions = 0;
        (SeriesName { group: Arc::clone(&group), ..name }, counts)
    })
}

fn counts_of(label: &str, matched: Direction, rtts: &[u64]) -> (SeriesName, SeriesCounts) {
    let mut counts = SeriesCounts::EMPTY;
    for &rtt in rtts {
        counts.sample(rtt, 0);
    }
    counts.sent.packets = 100;
    counts.sent.bytes = 70_000;
    counts.received.packets = 50;
    counts.received.retransmissions = 3;
    let group = GroupName { columns: vec![("site".into(), "<b>Lund".into())], ..GroupName::named(label) };
    let name = SeriesName {
        interface: Some(INTERFACE.into()),
        method: Method::TcpTs,
        matched: Some(matched),
        side: None,
        group: group.into(),
    };
    (name, counts)
}
