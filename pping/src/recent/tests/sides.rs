//! Both sides of groups in one row.

use pping_common::group::Side;

use super::*;
use crate::quality;

/// A place: an interface, and the direction in which echoes pass it.
type Place = (&'static str, Direction);

const INNER: Place = ("lan0", Direction::Ingress);
const INNER_OUT: Place = ("lan0", Direction::Egress);
const OUTER: Place = ("wan0", Direction::Ingress);
const OUTER_OUT: Place = ("wan0", Direction::Egress);

fn gateway() -> RecentHistory {
    let recent = RecentHistory::new(MEMORY);
    recent.tell_sides_apart(true);
    recent
}

/// The measurements of a series of the group `a`: RTTs in ms, and packets in both flow directions.
fn measured(
    side: Side,
    (interface, matched): Place,
    method: Method,
    rtts: &[u64],
    packets: u64,
) -> (SeriesName, SeriesCounts) {
    let mut counts = SeriesCounts::EMPTY;
    for rtt in rtts {
        counts.sample(rtt * MS, 0);
    }
    (counts.sent.packets, counts.sent.bytes) = (packets, 100 * packets);
    counts.received.packets = packets;
    counts.sent.retransmissions = packets / 10;
    let name =
        SeriesName { interface: Some(interface.into()), method, side: Some(side), ..name("a", &[], matched) };
    (name, counts)
}

fn query() -> Query {
    Query { view: View::Sides, ..Query::default() }
}

fn sides(recent: &RecentHistory) -> SidesAnswer {
    recent.groups(&query()).groups.remove(0).sides.unwrap()
}

fn place(side: Option<&SideAnswer>) -> (&str, &str, Vec<&str>, u64) {
    let side = side.unwrap();
    let methods = side.methods.iter().map(|method| &**method).collect();
    let count = side.rtt.map_or(0, |rtt| rtt.count);
    (side.interface.as_deref().unwrap(), side.matched.as_deref().unwrap(), methods, count)
}

#[test]
fn a_side_is_from_the_interface_that_it_is_beyond() {
    let recent = gateway();
    let tcp = Method::TcpTs;
    // Behind the other interface there are more samples: some packets took another path.
    recent.add(
        &[
            measured(Side::Inside, INNER, tcp, &[1, 2, 3], 30),
            measured(Side::Inside, OUTER_OUT, tcp, &[1, 2, 3, 4, 5], 50),
            measured(Side::Outside, OUTER, tcp, &[20; 4], 30),
            measured(Side::Outside, INNER_OUT, tcp, &[20; 9], 30),
        ],
        START,
    );
    let found = sides(&recent);
    assert_eq!(place(found.inside.as_ref()), ("lan0", "ingress", vec!["tcp-ts"], 3));
    assert_eq!(place(found.outside.as_ref()), ("wan0", "ingress", vec!["tcp-ts"], 4));
    // Of several that it is beyond, the busiest; their samples are not added.
    let second = ("wan1", Direction::Ingress);
    recent.add(&[measured(Side::Outside, second, tcp, &[30; 5], 1)], START);
    assert_eq!(place(sides(&recent).outside.as_ref()), ("wan1", "ingress", vec!["tcp-ts"], 5));
    // Only what is asked for counts.
    let of_wan0 = Query { interface: Some("wan0".to_owned()), ..query() };
    let found = recent.groups(&of_wan0).groups.remove(0).sides.unwrap();
    assert_eq!(place(found.inside.as_ref()), ("wan0", "egress", vec!["tcp-ts"], 5));
    assert_eq!(place(found.outside.as_ref()), ("wan0", "ingress", vec!["tcp-ts"], 4));
    let inside = Query { side: Some("inside".to_owned()), ..query() };
    assert!(recent.groups(&inside).groups.remove(0).sides.unwrap().outside.is_none());
}

#[test]
fn a_side_beyond_no_interface_is_from_the_busiest() {
    let recent = gateway();
    recent.add(
        &[
            measured(Side::Inside, OUTER_OUT, Method::TcpTs, &[1; 5], 1),
            measured(Side::Inside, ("wan1", Direction::Egress), Method::TcpTs, &[1; 6], 1),
            // Without round-trip times of the path, an interface is not chosen though the side is beyond it.
            measured(Side::Inside, INNER, Method::Dns, &[1; 90], 90),
        ],
        START,
    );
    let found = sides(&recent);
    assert_eq!(place(found.inside.as_ref()), ("wan1", "egress", vec!["tcp-ts"], 6));
    assert_eq!(found.outside, None);
}

#[test]
fn methods_that_time_the_same_are_joined_and_no_others() {
    let recent = gateway();
    let add = |method, rtts: &[u64]| recent.add(&[measured(Side::Inside, INNER, method, rtts, 0)], START);
    let found = || {
        let inside = sides(&recent).inside.unwrap();
        let (.., methods, count) = place(Some(&inside));
        (methods.join(" "), count)
    };
    add(Method::Dns, &[500; 50]);
    add(Method::QuicSpin, &[900; 50]);
    assert_eq!(found(), (String::new(), 0), "resolvers and applications take their time");
    add(Method::QuicHandshake, &[70; 3]);
    add(Method::IcmpEcho, &[60; 2]);
    assert_eq!(found(), ("quic-handshake".to_owned(), 3));
    add(Method::IcmpEcho, &[60; 2]);
    assert_eq!(found(), ("icmp-echo".to_owned(), 4));
    add(Method::TcpHandshake, &[40]);
    assert_eq!(found(), ("tcp-handshake".to_owned(), 1), "TCP first, however few");
    add(Method::TcpSeq, &[10; 2]);
    add(Method::TcpTs, &[20; 2]);
    assert_eq!(found(), ("tcp-ts tcp-seq tcp-handshake".to_owned(), 5));
    let rtt = sides(&recent).inside.unwrap().rtt.unwrap();
    assert_eq!((rtt.min, rtt.max, rtt.mean), (10 * MS, 40 * MS, 20 * MS));
    assert!(rtt.p50.abs_diff(20 * MS) < MS, "{rtt:?}");
}

#[test]
fn traffic_is_counted_once() {
    let recent = gateway();
    let at_all = |side, [beyond, behind]: [Place; 2], packets| {
        [beyond, behind].map(|place| {
            let tcp = measured(side, place, Method::TcpTs, &[5], packets);
            // The packets of another flow, which has no samples.
            [tcp, measured(side, place, Method::Dns, &[], packets / 10)]
        })
    };
    let inside = at_all(Side::Inside, [INNER, OUTER_OUT], 100);
    let outside = at_all(Side::Outside, [OUTER, INNER_OUT], 90);
    recent.add(&[inside, outside].concat().concat(), START);
    let SidesAnswer { inside, outside, traffic, .. } = sides(&recent);
    let packets = |side: Option<SideAnswer>| side.map(|side| (side.sent.packets, side.received.packets));
    assert_eq!((packets(inside), packets(outside)), (Some((110, 110)), Some((99, 99))));
    assert_eq!(traffic, TrafficAnswer { packets: 220, bytes: 11_000, retransmissions: 11 });
    let all: u64 = recent.groups(&query()).groups[0].series.iter().map(|it| it.sent.packets).sum();
    assert_eq!(all, 2 * (110 + 99), "the series have all of them");
}

#[test]
fn quality_is_that_of_the_joined_samples_and_the_lower_of_both_sides() {
    let recent = gateway();
    recent.score_by(quality::load(None).unwrap());
    // Neither method alone has enough samples for a score.
    let few = |side, place, rtt: u64| {
        [Method::TcpTs, Method::TcpHandshake].map(|method| measured(side, place, method, &[rtt; 99], 0))
    };
    recent.add(&few(Side::Inside, INNER, 1), START);
    let score = |quality: &quality::Scores| quality.first().and_then(|(_, score)| *score);
    let alone = &recent.groups(&query()).groups[0].series[0].quality;
    assert_eq!(score(alone), None);
    let found = sides(&recent);
    assert_eq!((score(&found.quality), score(&found.inside.unwrap().quality)), (Some(100), Some(100)));
    recent.add(&few(Side::Outside, OUTER, 5000), START);
    let found = sides(&recent);
    assert_eq!((score(&found.quality), score(&found.inside.unwrap().quality)), (Some(0), Some(100)));
}

#[test]
fn a_trend_has_a_value_or_a_gap_for_each_cell() {
    let recent = gateway();
    let add = |method, rtt, at| recent.add(&[measured(Side::Inside, INNER, method, &[rtt; 20], 1)], at);
    add(Method::TcpTs, 7, START);
    add(Method::TcpSeq, 9, START + 2 * CELL);
    add(Method::IcmpEcho, 90, START + 2 * CELL);
    recent.add(&[], START + 3 * CELL);
    let trend = sides(&recent).inside.unwrap().trend;
    let (before, last) = trend.split_at(CELLS as usize - 4);
    assert_eq!((trend.len(), last), (90, &[Some(7 * MS), None, Some(9 * MS), None][..]));
    assert!(before.iter().all(Option::is_none));
    // The past of a group that is quiet now is still there.
    recent.add(&[], START + 60 * CELL);
    let inside = sides(&recent).inside.unwrap();
    assert_eq!((inside.rtt, inside.trend[31]), (None, Some(9 * MS)));
}

#[test]
fn groups_sort_by_the_columns_of_their_sides() {
    let recent = gateway();
    let add = |group: &str, side, place, rtt: u64| {
        let (of_a, counts) = measured(side, place, Method::TcpTs, &[rtt], 1);
        let group = Arc::new(GroupName::named(group));
        recent.add(&[(SeriesName { group, ..of_a }, counts)], START);
    };
    add("near", Side::Inside, INNER, 2);
    add("near", Side::Outside, OUTER, 90);
    add("far", Side::Inside, INNER, 30);
    add("beyond", Side::Outside, OUTER, 50);
    let sorted = |sort| {
        let answer = recent.groups(&Query { sort, ..query() });
        labels_of(&answer).join(" ")
    };
    assert_eq!(sorted(None), "far near beyond", "those without an inside come last");
    assert_eq!(sorted(Some(Column::OutsideP50)), "near beyond far");
    let second = Query { order: Order::Asc, limit: 1, offset: 1, ..query() };
    assert_eq!(labels_of(&recent.groups(&second)), ["far"]);
    let filtered = Query { filter: "ar".to_owned(), ..query() };
    assert_eq!(labels_of(&recent.groups(&filtered)), ["far", "near"]);
    assert!(recent.groups(&Query::default()).groups.iter().all(|group| group.sides.is_none()));
}

#[test]
fn each_view_has_its_columns() {
    let of = |view, sort| Query { view, sort, ..Query::default() };
    for (view, sort, has_sides, said) in [
        (View::Series, Some(Column::P99), false, None),
        (
            View::Series,
            Some(Column::InsideP95),
            true,
            Some("`inside_p95` is no column of view=series, expected"),
        ),
        (View::Sides, None, true, None),
        (View::Sides, Some(Column::Bytes), true, None),
        (
            View::Sides,
            Some(Column::Count),
            true,
            Some("sort: `count` is no column of view=sides, expected one of `group`, `inside_p50`, "),
        ),
        (
            View::Sides,
            None,
            false,
            Some("view: this pping does not tell sides apart; start it with --inside"),
        ),
    ] {
        let checked = of(view, sort).check(has_sides, &Levels::default(), false);
        match said {
            None => assert_eq!(checked, Ok(())),
            Some(said) => assert!(checked.as_ref().is_err_and(|it| it.contains(said)), "{checked:?}"),
        }
    }
    // A client that is told whether there are sides asks for what it gets.
    for has_sides in [false, true] {
        for sort in Column::ALL.map(Some) {
            assert_eq!(
                of(View::Series, sort).fitted(has_sides).check(has_sides, &Levels::default(), false),
                Ok(()),
                "{sort:?}"
            );
        }
    }
    // The names are those of queries.
    for column in Column::ALL {
        assert_eq!(serde_json::to_value(column).unwrap(), column.name());
    }
}
