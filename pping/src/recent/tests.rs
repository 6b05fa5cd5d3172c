mod sides;
mod tree;

use std::time::Duration;

use pping_common::{
    abi::{Counters, Residence},
    hist,
    method::Method,
    parse::Direction,
};
use proptest::prelude::*;

use std::net::{IpAddr, Ipv4Addr};

use pping_common::{group::Grouping, parse::IpAddress};

use super::{model::Group, *};
use crate::{
    groups::{Directory, GroupName, Labels, QueueName},
    residence::Times,
    snapshot::{InterfaceCounters, Place, Snapshot, Usage},
};

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
/// A time at the start of a cell.
const START: u64 = 1_800_000_000 * SECOND;

fn name(group: &str, columns: &[(&str, &str)], matched: Direction) -> SeriesName {
    let columns = columns.iter().map(|&(column, value)| (column.into(), value.into())).collect();
    let group = GroupName { columns, ..GroupName::named(group) };
    SeriesName {
        interface: Some("wan0".into()),
        method: Method::TcpTs,
        matched: Some(matched),
        side: None,
        group: Arc::new(group),
    }
}

fn counts(rtts: impl IntoIterator<Item = u64>) -> SeriesCounts {
    let mut counts = SeriesCounts::EMPTY;
    rtts.into_iter().for_each(|rtt| counts.sample(rtt, 0));
    counts.sent.packets = 10;
    counts.received.bytes = 1000;
    counts
}

fn slice(group: &str, rtts: impl IntoIterator<Item = u64>) -> (SeriesName, SeriesCounts) {
    (name(group, &[], Direction::Ingress), counts(rtts))
}

fn labels_of(answer: &GroupsAnswer) -> Vec<&str> {
    answer.groups.iter().map(|group| &*group.group).collect()
}

fn reading(packets: u64, samples: u64) -> Reading {
    let mut counters = Counters::ZERO;
    for _ in 0..packets {
        counters.packet(Direction::Ingress, 0, 125, 0);
    }
    counters.samples[1][0] = samples;
    counters.no_pending = 3;
    counters.lost[0] = 2;
    // Slower than packets ever are, for round numbers.
    counters.timed_packets[0] = packets;
    counters.timed_ns[0] = 50_000 * packets;
    let interface = InterfaceCounters {
        name: "wan0".into(),
        attach_points: vec!["tcx"],
        is_up: true,
        counters,
        place: Place::Alone,
    };
    let usage = Usage { cpu: Duration::from_millis(packets), memory: 20 << 20 };
    Reading {
        snapshot: Snapshot { interfaces: vec![interface] },
        lines_lost: 0,
        usage,
        warnings: vec!["mind the gap".to_owned()],
    }
}

#[test]
fn summary_has_rates_of_a_second_and_rtts_of_a_minute() {
    let recent = RecentHistory::new(MEMORY);
    recent.take_reading(reading(100, 7), START);
    recent.add(&[slice("a", [5 * MS, 6 * MS]), slice("b", [90 * MS])], START);
    assert!(recent.summary().interfaces[0].rates.samples <= 0.0, "one time gives no rate");
    recent.take_reading(Reading { lines_lost: 4, ..reading(300, 17) }, START + 2 * SECOND);
    let summary = recent.summary();
    let [interface] = &summary.interfaces[..] else { panic!("{summary:?}") };
    assert_eq!((interface.rates.ingress.packets, interface.rates.ingress.bits), (100.0, 100_000.0));
    assert_eq!((interface.rates.egress.packets, interface.rates.samples), (0.0, 5.0));
    let rtt = interface.series[0].rtt.unwrap();
    assert_eq!((interface.series.len(), rtt.count, rtt.min, rtt.max), (1, 3, 5 * MS, 90 * MS));
    assert_eq!((summary.losses.recordings_skipped, summary.losses.events_lost), (3, 6));
    assert_eq!(summary.warnings, ["mind the gap"]);
    assert_eq!((summary.groups, summary.time), (2, START + 2 * SECOND));
    let Cost { cpu, memory, programs } = summary.cost;
    assert_eq!((cpu, memory), (0.1, 20 << 20));
    let thousandths = programs.map(|share| (1e3 * share).round());
    assert_eq!(thousandths, Some(5.0), "100 packets a second of 50 us each");
    // Later, no samples of the last minute are left.
    recent.take_reading(reading(300, 17), START + 90 * SECOND);
    assert_eq!(recent.summary().interfaces[0].series[0].rtt, None);
}

#[test]
fn a_sequence_goes_up_with_each_change_and_not_without() {
    let recent = RecentHistory::new(MEMORY);
    recent.add(&[slice("a", [MS])], START);
    let before = recent.summary().sequence;
    assert_eq!(recent.groups(&Query::default()).sequence, before);
    recent.add(&[], START + SECOND);
    assert!(recent.summary().sequence > before);
    recent.take_reading(reading(1, 1), START + SECOND);
    recent.clear();
    assert_eq!(recent.summary().sequence, recent.sequence());
}

#[test]
fn groups_sort_by_worst_series_and_filter_by_text() {
    let recent = RecentHistory::new(MEMORY);
    let slices = [
        (name("fast", &[("site", "Berlin")], Direction::Ingress), counts([2 * MS])),
        (name("fast", &[("site", "Berlin")], Direction::Egress), counts([80 * MS])),
        (name("slow", &[("site", "Bergen")], Direction::Ingress), counts([50 * MS; 9])),
        (name("idle", &[], Direction::Ingress), counts([])),
    ];
    recent.add(&slices, START);
    let ask = |query| recent.groups(&query);
    assert_eq!(labels_of(&ask(Query::default())), ["fast", "slow", "idle"], "those without RTTs come last");
    let ascending = Query { order: Order::Asc, ..Query::default() };
    assert_eq!(labels_of(&ask(ascending)), ["slow", "fast", "idle"]);
    let ingress = Query { matched: Some("ingress".to_owned()), ..Query::default() };
    assert_eq!(labels_of(&ask(ingress)), ["slow", "fast", "idle"]);
    let busiest = Query { sort: Some(Column::Count), limit: 1, ..Query::default() };
    let answer = ask(busiest);
    assert_eq!((labels_of(&answer), answer.known, answer.found), (vec!["slow"], 3, 3));
    let second = Query { sort: Some(Column::Group), order: Order::Asc, offset: 1, ..Query::default() };
    assert_eq!(labels_of(&ask(second)), ["idle", "slow"]);
    let berlin = Query { filter: "BERL".to_owned(), ..Query::default() };
    let answer = ask(berlin);
    assert_eq!((labels_of(&answer), answer.known, answer.found), (vec!["fast"], 3, 1));
    let nowhere = Query { interface: Some("eth7".to_owned()), ..Query::default() };
    assert_eq!(ask(nowhere).groups.len(), 0);
}

#[test]
fn a_filter_by_address_finds_the_group_of_its_longest_prefix() {
    let mut labels = Labels::default();
    let [outer, inner, many] = ["outer", "inner 10.1.2.3", "many"].map(|it| labels.number(it, Vec::new()));
    let listed = [("10.0.0.0/8", outer), ("10.1.0.0/16", inner), ("10.1.1.0/24", outer)];
    let mut prefixes: Vec<_> =
        listed.into_iter().map(|(prefix, label)| (prefix.parse().unwrap(), label)).collect();
    prefixes.extend((0..1500).map(|host| (IpAddr::from(Ipv4Addr::from_bits(20 << 24 | host)).into(), many)));
    let recent = RecentHistory::new(MEMORY);
    let idle = labels.number("idle", Vec::new());
    prefixes.push(("30.0.0.0/8".parse().unwrap(), idle));
    recent.list_groups(Directory::new(prefixes, &labels));
    let file = Grouping { by_source: 1, by_label: 1, ..Grouping::NONE };
    let nowhere = IpAddress([0; 2]);
    let slices: Vec<_> = [outer, inner, many, 0]
        .into_iter()
        .map(|label| {
            let group = GroupName::new(&file.key(nowhere, nowhere, 0, |_| label), &labels);
            let (name, counts) = slice("", [MS]);
            (SeriesName { group: Arc::new(group), ..name }, counts)
        })
        .collect();
    recent.add(&slices, START);
    let groups = |filter: &str| {
        let query = Query {
            filter: filter.to_owned(),
            sort: Some(Column::Group),
            order: Order::Asc,
            ..Query::default()
        };
        recent.groups(&query)
    };
    for (filter, found) in [
        ("10.7.0.1", &["outer"][..]),
        ("10.1.1.7", &["outer"]),
        ("10.1.7.7", &["inner 10.1.2.3"]),
        ("10.1.2.3", &["inner 10.1.2.3"]),
        ("10.1.2.0/28", &["inner 10.1.2.3"]),
        ("10.1.0.0/16", &["inner 10.1.2.3", "outer"]),
        ("20.0.5.219", &["many"]),
        ("20.0.5.220", &["unlisted"]),
        // Any other text is a part of what is shown.
        ("10.1.", &["inner 10.1.2.3", "outer"]),
        ("20.0.0.15", &["many"]),
        ("0/8", &["outer"]),
    ] {
        assert_eq!(labels_of(&groups(filter)), found, "{filter}");
    }
    let matched = |filter: &str| {
        let answer = groups(filter).longest_match.expect(filter);
        (answer.group.to_string(), answer.prefix)
    };
    assert_eq!(matched("10.1.7.7"), ("inner 10.1.2.3".to_owned(), Some("10.1.0.0/16".to_owned())));
    assert_eq!(matched("20.0.5.220"), ("unlisted".to_owned(), None));
    assert!(groups("10.1.7.7").note.is_none() && groups("10.1.").longest_match.is_none());
    // A group without traffic, and an address with a typing error, are no empty lists without a word.
    assert_eq!(matched("30.1.2.3"), ("idle".to_owned(), Some("30.0.0.0/8".to_owned())));
    let (idle, mistyped) = (groups("30.1.2.3"), groups("10.99.0.300"));
    assert_eq!((idle.found, mistyped.found), (0, 0));
    let idle = idle.note.unwrap();
    assert!(
        idle.contains("is in the group idle (30.0.0.0/8), for which nothing was measured recently; "),
        "{idle}"
    );
    assert!(idle.contains("groups are by the host that replies"), "{idle}");
    assert!(mistyped.note.unwrap().starts_with("10.99.0.300 is no valid address"));
    assert!(mistyped.longest_match.is_none());
    for (filter, note) in [
        ("30.1.2.3:443", "30.1.2.3:443 is no address or prefix; look for 30.1.2.3"),
        ("fd90:1::2%eth0", "fd90:1::2%eth0 is no address or prefix; look for fd90:1::2"),
        ("nobody", "no group with nobody in its label, prefixes or columns was measured recently"),
    ] {
        assert_eq!(groups(filter).note.as_deref(), Some(note));
    }
    let narrow = Query { filter: "10.1.7.7".to_owned(), method: Some("dns".to_owned()), ..Query::default() };
    let narrow = recent.groups(&narrow).note.unwrap();
    assert!(
        narrow.contains("nothing was measured recently with this interface, method and direction"),
        "{narrow}"
    );
    recent.clear();
    recent.add(&slices, START);
    let found = groups("many").groups.remove(0);
    assert_eq!(
        (found.prefix.as_deref(), found.prefixes.len(), found.prefix_count),
        (Some("20.0.0.0/32"), 16, 1500)
    );
    assert_eq!(recent.group(&found.id).unwrap().group.prefixes.len(), 1000);
}

#[test]
fn a_query_for_too_many_groups_is_rejected() {
    let limit = |limit: usize| {
        let query: Result<Query, _> = serde_json::from_str(&format!("{{\"limit\": {limit}}}"));
        query.map(|query| query.limit)
    };
    assert_eq!(limit(1000).unwrap(), 1000);
    let rejection = limit(1001).unwrap_err().to_string();
    assert!(rejection.contains("at most 1000") && rejection.contains("offset"), "{rejection}");
}

#[test]
fn a_group_is_found_by_its_id_with_its_past() {
    let recent = RecentHistory::new(MEMORY);
    // Texts of a groups file may be hostile.
    let label = "\u{1b}[31m<script>\u{202e}".repeat(400);
    for second in 0..25 {
        recent.add(&[slice(&label, [MS * (1 + second)])], START + second * SECOND);
    }
    let id = &recent.groups(&Query::default()).groups[0].id;
    assert!(id.len() == 32 && id.bytes().all(|it| it.is_ascii_hexdigit()), "{id}");
    let detail = recent.group(id).unwrap();
    assert_eq!(*detail.group.group, *label);
    let cells: Vec<_> =
        detail.history.series[0].cells.iter().map(|it| (it.time, it.rtt.unwrap().count)).collect();
    assert_eq!(cells, [(START, 10), (START + CELL, 10), (START + 2 * CELL, 5)]);
    assert!(recent.group("0").is_none());
}

#[test]
fn the_history_of_an_interface_is_that_of_all_its_groups() {
    let recent = RecentHistory::new(MEMORY);
    recent.add(&[slice("a", [MS]), slice("b", [3 * MS])], START);
    let history = recent.history(&SeriesQuery::default());
    let [series] = &history.series[..] else { panic!("{history:?}") };
    let [cell] = &series.cells[..] else { panic!("{history:?}") };
    assert_eq!((cell.rtt.unwrap().count, cell.sent.packets, cell.received.bytes), (2, 20, 2000));
    assert_eq!(cell.histogram.iter().map(|&(_, count)| count).sum::<u32>(), 2);
    let other = SeriesQuery { method: Some("dns".to_owned()), ..SeriesQuery::default() };
    assert!(recent.history(&other).series.is_empty());
}

#[test]
fn expired_and_quiet_groups_are_forgotten() {
    let recent = RecentHistory::new(MEMORY);
    recent.add(&[slice("a", [MS]), slice("b", [MS])], START);
    recent.forget(&slice("a", []).0);
    assert_eq!(labels_of(&recent.groups(&Query::default())), ["b"]);
    recent.add(&[], START + (CELLS - 1) * CELL);
    assert_eq!(recent.summary().groups, 1);
    recent.add(&[], START + CELLS * CELL);
    assert_eq!(recent.summary().groups, 0);
}

#[test]
fn a_group_has_the_last_minute_of_its_queues_until_they_expire() {
    let recent = RecentHistory::new(MEMORY);
    let (slice, queue) = (slice("a", [MS]), |interface: &str| QueueName {
        interface: Some(interface.into()),
        group: name("a", &[], Direction::Ingress).group,
    });
    recent.add(&[slice], START);
    recent.add_queues(&[(queue("wan0"), counts([3 * MS, 5 * MS])), (queue("lan0"), counts([MS]))], START);
    let queues = |at: u64| {
        recent.add(&[], at);
        let groups = recent.groups(&Query::default()).groups;
        let queues = groups.into_iter().flat_map(|it| it.queues);
        queues
            .map(|it| (it.interface.unwrap().to_string(), it.times.count, it.times.mean))
            .collect::<Vec<_>>()
    };
    let (lan, wan) = (("lan0".to_owned(), 1, MS), ("wan0".to_owned(), 2, 4 * MS));
    assert_eq!(queues(START), [lan, wan.clone()]);
    recent.forget_queue(&queue("lan0"));
    assert_eq!(queues(START + 5 * CELL), [wan]);
    assert_eq!(queues(START + 6 * CELL), []);
    // A group is kept as long as it has a series or a queue, but with queues alone it is not listed and does not count.
    let counts = || {
        let answer = recent.groups(&Query::default());
        assert_eq!((answer.known, answer.groups.len()), (recent.summary().groups, answer.known));
        (answer.known, recent.0.model.lock().groups.len())
    };
    assert_eq!(counts(), (1, 1));
    recent.forget(&self::slice("a", []).0);
    assert_eq!(counts(), (0, 1));
    recent.forget_queue(&queue("wan0"));
    assert_eq!(counts(), (0, 0));
}

/// Returns the times of packets that all waited in the queue of `wan0` for 5 ms.
fn queued(packets: u64) -> Vec<InterfaceTimes> {
    let mut queue = Residence { sum: packets * 5 * MS, followed: packets, ..Residence::ZERO };
    queue.bins[hist::bin(5 * MS)] = packets;
    let times = Box::new(Times::new(Residence::ZERO, queue, 1));
    vec![InterfaceTimes { interface: "wan0".into(), times, sent: packets }]
}

#[test]
fn the_own_queue_is_compared_with_the_methods_that_show_queues() {
    let recent = RecentHistory::new(MEMORY);
    recent.set_residence(queued(0), START);
    recent.set_residence(queued(100), START + SECOND);
    recent.take_reading(reading(1, 1), START + SECOND);
    let add = |method, rtts: &[u64]| {
        let name = SeriesName { method, ..name("a", &[], Direction::Ingress) };
        recent.add(&[(name, counts(rtts.iter().copied()))], START + SECOND);
    };
    let own = || recent.summary().interfaces[0].residence.unwrap().beyond;
    add(Method::QuicSpin, &[MS, 900 * MS, 900 * MS, 900 * MS, 900 * MS]);
    add(Method::Dns, &[MS, 300 * MS, 300 * MS, 300 * MS, 300 * MS]);
    assert_eq!(own(), None, "pauses and resolvers are no queues");
    add(Method::IcmpEcho, &[20 * MS]);
    add(Method::TcpTs, &[20 * MS, 30 * MS, 30 * MS]);
    let own = own().unwrap();
    assert!(own.inflation.abs_diff(10 * MS) < 2 * MS, "{own:?}");
    assert!((own.share.unwrap() - 0.5).abs() < 0.1, "{own:?}");
}

/// Returns a recent history of this memory after some minutes of 200 groups, the last of them the busiest.
fn filled(memory: usize, minutes: u64) -> RecentHistory {
    let recent = RecentHistory::new(memory);
    for second in 0..60 * minutes {
        let slices: Vec<_> = (0..200_u64)
            .map(|group| slice(&group.to_string(), (0..=group / 10).map(|rtt| (rtt + 1) * MS)))
            .collect();
        recent.add(&slices, START + second * SECOND);
    }
    // Memory is checked when a cell begins.
    recent.add(&[], START + 60 * minutes * SECOND);
    recent
}

fn past(recent: &RecentHistory, group: &str) -> usize {
    let found = recent.groups(&Query { filter: group.to_owned(), limit: usize::MAX, ..Query::default() });
    let id = found.groups.into_iter().find(|it| &*it.group == group).map(|it| it.id);
    id.and_then(|id| recent.group(&id)).map_or(0, |detail| detail.history.series[0].cells.len())
}

#[test]
fn the_least_busy_groups_lose_their_past_first_and_then_leave() {
    let size = |recent: &RecentHistory| recent.0.model.lock().groups.values().map(Group::size).sum::<usize>();
    let all = filled(MEMORY, 5);
    assert_eq!((past(&all, "3"), past(&all, "199")), (30, 30));
    let (minute, half) = (size(&filled(MEMORY, 1)), size(&all) / 2);
    assert!(minute < half);
    let recent = filled(half, 5);
    assert!(size(&recent) <= half && size(&recent) > half / 2, "{} of {half}", size(&recent));
    assert_eq!((recent.summary().groups, past(&recent, "3"), past(&recent, "199")), (200, 5, 30));
    let few = minute / 2;
    let recent = filled(few, 5);
    assert!(size(&recent) <= few && size(&recent) > few / 2, "{} of {few}", size(&recent));
    assert_eq!((past(&recent, "3"), past(&recent, "199")), (0, 5));
    recent.limit(0);
    recent.add(&[], START + 320 * SECOND);
    assert_eq!(recent.summary().groups, 0, "the limit changes while it runs");
}

#[test]
fn what_comes_while_an_answer_is_made_is_added_later() {
    let recent = RecentHistory::new(MEMORY);
    let busy = recent.0.model.lock();
    let before = recent.sequence();
    recent.add(&[slice("a", [MS])], START);
    recent.take_reading(reading(1, 1), START);
    recent.forget(&slice("b", []).0);
    let sequence = recent.sequence();
    assert!(sequence > before, "streams learn of a change while an answer is being made");
    drop(busy);
    let summary = recent.summary();
    assert_eq!((summary.groups, summary.interfaces.len()), (1, 1));
    assert_eq!(summary.sequence, sequence);
}

proptest! {
    #[test]
    fn small_clock_steps_back_lose_no_samples(
        steps in prop::collection::vec((-10_i64..25, 0_usize..5), 1..35),
    ) {
        let recent = RecentHistory::new(usize::MAX);
        let (mut at, mut count) = (START, 0);
        for &(step, samples) in &steps {
            at = at.saturating_add_signed(step * SECOND as i64);
            recent.add(&[slice("a", vec![MS; samples])], at);
            count += samples as u64;
        }
        let history = recent.history(&SeriesQuery::default());
        let found: u64 = history.series.iter().flat_map(|it| &it.cells).filter_map(|it| it.rtt).map(|it| it.count).sum();
        prop_assert_eq!(found, count);
    }
}

#[test]
fn too_few_packets_give_no_retransmission_share() {
    let recent = RecentHistory::new(MEMORY);
    recent.add(&[slice("a", [MS; 30])], START);
    let share = || recent.worst(&WorstQuery::default()).groups[0].retransmissions;
    assert_eq!(share(), None, "there are only 10 packets");
    recent.set_min_samples(10);
    assert_eq!(share(), Some(0.0));
}

#[test]
fn a_clock_that_is_set_back_further_begins_a_new_past() {
    let recent = RecentHistory::new(MEMORY);
    let hour = 3600 * SECOND;
    let newest = || {
        let rtt = recent.groups(&Query::default()).groups[0].series[0].rtt.unwrap();
        (rtt.count, rtt.max)
    };
    recent.add(&[slice("a", [90 * MS]), slice("b", [90 * MS])], START);
    recent.add(&[slice("a", [5 * MS])], START - hour);
    assert_eq!((newest(), recent.summary().groups), ((1, 5 * MS), 1));
    recent.add(&[slice("a", [7 * MS])], START - hour + 60 * SECOND);
    assert_eq!(newest(), (1, 7 * MS), "a minute passes as ever");
    assert_eq!(recent.history(&SeriesQuery::default()).series[0].cells.len(), 2);
    // A reading may be the first to have the new time.
    recent.take_reading(reading(1, 1), START - 2 * hour);
    recent.add(&[slice("a", [6 * MS])], START - 2 * hour);
    assert_eq!(newest(), (1, 6 * MS));
}

#[test]
fn ranked_rtt_needs_enough_hosts() {
    let recent = RecentHistory::new(MEMORY);
    let of_hosts = |hosts: std::ops::Range<u32>, samples: usize, rtt: u64| {
        let mut counts = SeriesCounts::EMPTY;
        hosts.for_each(|host| (0..samples).for_each(|_| counts.sample(rtt, 1 << host)));
        counts
    };
    let (busy, steady) = (name("busy", &[], Direction::Ingress), name("steady", &[], Direction::Ingress));
    let add = |slow: u32, at: u64| {
        let slices = [
            (busy.clone(), of_hosts(0..slow, 1000, 500 * MS)),
            (busy.clone(), of_hosts(slow..20, 2, 20 * MS)),
            (steady.clone(), of_hosts(0..20, 2, 80 * MS)),
        ];
        recent.add(&slices, at);
    };
    let worst = || recent.worst(&WorstQuery::default()).groups;
    add(1, START);
    let groups = worst();
    let found: Vec<_> = groups.iter().map(|it| (&*it.group, it.hosts.unwrap())).collect();
    assert_eq!(found, [("steady", 24), ("busy", 24)]);
    let [steady, busy] =
        [0, 1].map(|at| (groups[at].series.rtt.unwrap().p95, groups[at].ranked_rtt.unwrap()));
    assert_eq!(steady.0, steady.1);
    assert!(busy.0 > 450 * MS && busy.1 < 30 * MS, "{busy:?}");
    assert_eq!(groups[1].inflation, Some(busy.1 - 20 * MS));
    // Much later, three hosts are slow.
    add(3, START + 200 * SECOND);
    assert_eq!(&*worst()[0].group, "busy");
    // Later, only one of them is, and the slow minute is forgotten.
    add(1, START + 400 * SECOND);
    assert_eq!(&*worst()[0].group, "steady");
}
