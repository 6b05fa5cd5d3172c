//! Screens of a made-up network. `INSTA_UPDATE=always` writes the snapshots again.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use pping_common::{
    abi::{Candidate, Counters, Endpoints},
    group::{Grouping, Side},
    method::Method,
    parse::{Direction, IpAddress, Protocol, Untracked},
    series::{SeriesCounts, SeriesRef},
};
use ratatui::{
    Terminal, backend::TestBackend, buffer::Buffer, crossterm::event::KeyCode, layout::Rect, style::Color,
};
use unicode_width::UnicodeWidthStr as _;

use super::{
    ask::{Answers, Question},
    colors::Colors,
    draw::{self, Status},
    once,
    state::State,
    text,
};
use crate::{
    groups::{Directory, GroupName, Labels, QueueName, SeriesName},
    membership::Membership,
    quality::{self, Scores},
    recent::{
        CELL, CellAnswer, Cost, GroupAnswer, GroupsAnswer, Interface, InterfaceRates, Losses, MEMORY, Rate,
        Reading, RecentHistory, RttAnswer, SeriesAnswer, SideAnswer, SidesAnswer, Summary, TrafficAnswer,
    },
    snapshot::{InterfaceCounters, Place, Snapshot, Usage},
    worst::WorstFlow,
};

const SECOND: u64 = 1_000_000_000;
/// A time in the middle of a cell.
const END: u64 = 1_800_000_000 * SECOND + CELL / 2;

pub(super) fn series(p95: u64) -> SeriesAnswer {
    let traffic = TrafficAnswer { packets: 100, bytes: 5000, retransmissions: 3 };
    let (p50, p99, max) = (p95 / 2, 2 * p95, 3 * p95);
    SeriesAnswer {
        interface: Some("wan0".into()),
        method: "tcp-ts".into(),
        matched: Some("ingress".into()),
        side: None,
        rtt: Some(RttAnswer { count: 7, min: 900_000, mean: p95, p50, p90: p95, p95, p99, max }),
        sent: traffic,
        received: traffic,
        quality: Scores::from([("video-call".into(), Some(87)), ("game".into(), None)]),
    }
}

/// Answers with a series for each of these groups.
pub(super) fn answers(groups: &[(&str, u64)]) -> Answers {
    let rate = Rate { packets: 1234.0, bits: 9_876_543.0, retransmissions: 1.0 };
    let interface = Interface {
        interface: "wan0".into(),
        is_up: true,
        attach_points: vec!["tcx".into()],
        rates: InterfaceRates { ingress: rate, egress: rate, samples: 12.0 },
        residence: None,
        series: vec![series(9_000_000)],
    };
    let summary = Summary {
        networks: false,
        version: "0.1.0".into(),
        sequence: 1,
        time: 0,
        sides: false,
        history: false,
        levels: Vec::new(),
        interfaces: vec![interface],
        groups: groups.len(),
        losses: Losses { events_lost: 5, ..Losses::default() },
        warnings: Vec::new(),
        cost: Cost::default(),
    };
    let group = |(number, &(label, p95)): (usize, &(&str, u64))| GroupAnswer {
        id: format!("{number:032x}"),
        group: label.into(),
        node: None,
        prefix: None,
        prefixes: Vec::new(),
        prefix_count: 0,
        dscp: None,
        labels: BTreeMap::new(),
        series: vec![series(p95)],
        queues: Vec::new(),
        sides: None,
    };
    let groups: Vec<GroupAnswer> = groups.iter().enumerate().map(group).collect();
    let (known, found) = (groups.len(), groups.len());
    let groups = GroupsAnswer { sequence: 1, time: 0, known, found, longest_match: None, note: None, groups };
    Answers { summary, groups, past: None, worst: None, history: None }
}

/// Gives each group of some answers an inside, that of its series.
pub(super) fn with_sides(mut answers: Answers) -> Answers {
    answers.summary.sides = true;
    for group in &mut answers.groups.groups {
        let series = &mut group.series[0];
        series.side = Some("inside".into());
        let SeriesAnswer { interface, matched, rtt, sent, received, quality, .. } = series.clone();
        let methods = vec![series.method.clone()];
        let trend = vec![None; 90];
        let inside = SideAnswer { interface, matched, methods, rtt, sent, received, quality, trend };
        let (traffic, quality) = (inside.sent, inside.quality.clone());
        group.sides = Some(SidesAnswer { inside: Some(inside), outside: None, traffic, quality });
    }
    answers
}

pub(super) fn cell(number: u64, histogram: &[(u64, u32)]) -> CellAnswer {
    let none = TrafficAnswer::default();
    let count = histogram.iter().map(|&(_, count)| u64::from(count)).sum();
    let rtt =
        histogram.iter().map(|it| it.0).min().zip(histogram.iter().map(|it| it.0).max()).map(|(min, max)| {
            RttAnswer { count, min, mean: min, p50: min, p90: max, p95: max, p99: max, max }
        });
    CellAnswer { time: number * CELL, rtt, histogram: histogram.to_vec(), sent: none, received: none }
}

/// Returns two interfaces, four groups with labels of all kinds, and a quarter of an hour in which one of them became slow.
fn network() -> RecentHistory {
    static NETWORK: LazyLock<RecentHistory> = LazyLock::new(measured);
    NETWORK.clone()
}

/// Returns a gateway that tells sides apart: each sample is beyond one of two interfaces, and behind the other one. A quarter of
/// an hour, in which the inside of one customer became slow.
fn gateway() -> RecentHistory {
    let recent = RecentHistory::new(MEMORY);
    recent.score_by(quality::load(None).unwrap());
    recent.tell_sides_apart(true);
    let (groups, directory) = groups();
    recent.list_groups(directory);
    // The group, the method, the side, the time of a round trip in us, and the samples of a second.
    let all = [
        (0, Method::TcpTs, Side::Inside, 1_200, 20),
        (0, Method::TcpHandshake, Side::Inside, 1_900, 1),
        (0, Method::IcmpEcho, Side::Inside, 1_100, 1),
        (0, Method::TcpTs, Side::Outside, 18_000, 20),
        (1, Method::TcpSeq, Side::Inside, 236_000, 4),
        (2, Method::Dns, Side::Outside, 9_000, 3),
    ];
    for second in 0..900 {
        let slices = all.iter().flat_map(|&(group, method, side, time, samples)| {
            let is_slow = group == 0 && side == Side::Inside && (520..760).contains(&second);
            let queue = if is_slow { 12_000 - u64::abs_diff(second, 640) * 90 } else { 0 };
            let mut counts = SeriesCounts::EMPTY;
            (0..samples).for_each(|number| counts.sample((time + queue + time * number / 60) * 1000, 0));
            (counts.sent.packets, counts.sent.bytes) = (samples * 3, samples * 4000);
            counts.received.packets = samples * 2;
            counts.received.retransmissions = u64::from(second % 4 == 0);
            let inner = if side == Side::Inside { "lan0" } else { "wan0" };
            ["lan0", "wan0"].map(|interface| {
                let matched = if interface == inner { Direction::Ingress } else { Direction::Egress };
                let name = SeriesName {
                    interface: Some(interface.into()),
                    method,
                    matched: Some(matched),
                    side: Some(side),
                    group: Arc::clone(&groups[group]),
                };
                (name, counts)
            })
        });
        recent.add(&slices.collect::<Vec<_>>(), END - (899 - second) * SECOND);
    }
    let reading = Reading { snapshot: counters(1), ..Reading::default() };
    recent.take_reading(reading, END);
    recent
}

/// Returns groups of a file, with labels of all kinds, and their prefixes.
fn groups() -> ([Arc<GroupName>; 4], Directory) {
    let (mut labels, mut prefixes) = (Labels::default(), Vec::new());
    let by_file = Grouping { by_source: 1, by_label: 1, ..Grouping::NONE };
    let mut group = |label: &str, prefix: Option<&str>, columns: &[(&str, &str)]| {
        let columns = columns.iter().map(|&(column, value)| (column.into(), value.into())).collect();
        let number = labels.number(label, columns);
        prefixes.extend(prefix.map(|prefix| (prefix.parse().unwrap(), number)));
        let nowhere = IpAddress([0; 2]);
        Arc::new(GroupName::new(&by_file.key(nowhere, nowhere, 0, |_| number), &labels))
    };
    let groups = [
        group("customer-7", Some("10.11.2.0/24"), &[("site", "Åre")]),
        group("東京 office", Some("fd00:7::/48"), &[]),
        group("10.11.9.0/24", Some("10.11.9.0/24"), &[]),
        group("\u{1b}[2J\u{202e}evil\nlabel", None, &[]),
    ];
    (groups, Directory::new(prefixes, &labels))
}

fn measured() -> RecentHistory {
    let recent = RecentHistory::new(MEMORY);
    recent.score_by(quality::load(None).unwrap());
    let (groups, directory) = groups();
    recent.list_groups(directory);
    let (tcp, dns, ping) = (Method::TcpTs, Method::Dns, Method::IcmpEcho);
    let (beyond, behind) = (Direction::Ingress, Direction::Egress);
    // The group, the interface, the method, the side, the time of a fast round trip in us, and the most samples of a second.
    let all = [
        (0, "wan0", tcp, beyond, 18_000, 30),
        (0, "wan0", tcp, behind, 60, 20),
        (0, "wan0", ping, beyond, 17_500, 1),
        (1, "wan0", tcp, beyond, 236_000, 4),
        (2, "wan0", tcp, beyond, 9_000, 9),
        (2, "lan0", dns, behind, 700, 2),
        (3, "wan0", dns, beyond, 4_000, 1),
    ];
    let mut random = 1_u64;
    let mut next = move |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for second in 0..900 {
        let slices = all.map(|(group, interface, method, matched, fast, samples)| {
            let mut counts = SeriesCounts::EMPTY;
            // A queue that fills, and drains again.
            let is_slow = group == 0 && matched == beyond && (520..760).contains(&second);
            let queue = if is_slow { 120_000 - u64::abs_diff(second, 640) * 900 } else { 1 };
            for _ in 0..=next(samples) {
                counts.sample((fast + next(fast / 3) + next(queue)) * 1000, 0);
            }
            counts.sent.packets = samples * 3;
            counts.received.packets = samples * 2;
            counts.sent.retransmissions = u64::from(is_slow);
            let name = SeriesName {
                interface: Some(interface.into()),
                method,
                matched: Some(matched),
                side: None,
                group: Arc::clone(&groups[group]),
            };
            (name, counts)
        });
        recent.add(&slices, END - (899 - second) * SECOND);
    }
    let mut queue = SeriesCounts::EMPTY;
    (0..40).for_each(|number| queue.sample(11_800_000 + number * 200_000, 0));
    recent.add_queues(
        &[(QueueName { interface: Some("wan0".into()), group: Arc::clone(&groups[0]) }, queue)],
        END,
    );
    let flow = |interface: &str, port: u16, smoothed: u64, retransmissions: u64| {
        let [source, destination] =
            [[10, 11, 2, 7], [192, 0, 2, 44]].map(|it| Ipv4Addr::from(it).to_ipv6_mapped().octets());
        let endpoints = Endpoints {
            source,
            destination,
            source_port: port,
            destination_port: 443,
            interface: 0,
            protocol: Protocol::Tcp as u8,
            reserved: 0,
        };
        let min = 18_000_000;
        let figures = [smoothed, smoothed - min, retransmissions, 1_400_000 / u64::from(port)];
        let (series, method, direction) = (SeriesRef::NONE, Method::TcpTs as u8, Direction::Ingress as u8);
        let candidate = Candidate {
            endpoints,
            figures,
            min_rtt: min,
            packets: 500,
            series,
            method,
            direction,
            reserved: [0; 6],
        };
        let of = Membership { group: Some("customer-7".into()), side: None };
        WorstFlow { candidate, interface: Some(interface.into()), of }
    };
    let flows = [
        flow("wan0", 1, 31_000_000, 0),
        flow("wan0", 2, 141_000_000, 21_000),
        flow("wan0", 40_000, 58_400_000, 400),
        flow("lan0", 3, 18_900_000, 0),
    ];
    recent.rank(&flows, END);
    for (seconds, factor) in [(1, 1), (0, 2)] {
        let usage = Usage { cpu: Duration::from_millis(13) * factor as u32, memory: 85 << 20 };
        let reading = Reading { snapshot: counters(factor), lines_lost: 0, usage, warnings: Vec::new() };
        recent.take_reading(reading, END - seconds * SECOND);
    }
    recent
}

fn counters(factor: u64) -> Snapshot {
    let interface = |name: &str, points: &[&'static str], is_up, packets: u64| {
        let mut counters = Counters::ZERO;
        for number in 0..packets * factor {
            counters.packet(Direction::Ingress, 0, 900, 0);
            if number % 3 > 0 {
                counters.packet(Direction::Egress, 0, 300, 0);
            }
        }
        counters.samples[0][0] = 41 * factor;
        counters.retransmissions[1] = 3 * factor;
        counters.contended = 2;
        // 4 ms for the packets of a second.
        (counters.timed_packets[0], counters.timed_ns[0]) = (10 * factor, 12_630 * factor);
        counters.untracked[Untracked::Unsupported as usize] = 48_211;
        counters.untracked[Untracked::NoFlow as usize] = 77;
        InterfaceCounters {
            name: name.into(),
            attach_points: points.to_vec(),
            is_up,
            counters,
            place: Place::Alone,
        }
    };
    Snapshot {
        interfaces: vec![
            interface("lan0", &["xdp-native", "tcx"], true, 700),
            interface("ppp7", &["clsact"], false, 0),
            interface("wan0", &["tcx"], true, 1200),
        ],
    }
}

/// Returns what a server would answer.
pub(super) fn asked(recent: &RecentHistory, question: &Question) -> Answers {
    let summary = recent.summary();
    Answers {
        groups: recent.groups(&question.groups_for(&summary)),
        summary,
        past: question.past.as_ref().and_then(|id| recent.group(id)),
        worst: question.worst.as_ref().map(|query| recent.worst(query)),
        history: question.history.as_ref().map(|query| recent.history(query)),
    }
}

/// Returns the state after these keys, with an answer after each.
fn after(recent: &RecentHistory, keys: &[KeyCode]) -> State {
    let mut state = State::new(Colors::None);
    state.take(asked(recent, &state.question()));
    for key in keys {
        state.key((*key).into(), Rect::new(0, 0, 80, 24));
        state.take(asked(recent, &state.question()));
    }
    state
}

fn drawn(state: &State, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let status = Status { source: "http://gateway:9464", now: Instant::now() };
    terminal.draw(|frame| draw::draw(frame, state, &status)).unwrap();
    terminal.backend().buffer().clone()
}

/// Returns the screen as text.
pub(super) fn screen(state: &State, width: u16, height: u16) -> String {
    let buffer = drawn(state, width, height);
    let mut text = String::new();
    for y in 0..height {
        let mut line = String::new();
        let mut x = 0;
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            // A wide character covers the next cell.
            x += symbol.width().max(1) as u16;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Compares the screen in two sizes with its snapshots.
fn assert_screen(name: &str, state: &State) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (width, height) in [(80, 24), (160, 40)] {
            insta::assert_snapshot!(format!("{name}-{width}x{height}"), screen(state, width, height));
        }
    });
}

const DOWN: KeyCode = KeyCode::Down;

const fn letter(letter: char) -> KeyCode {
    KeyCode::Char(letter)
}

#[test]
fn each_pane_as_it_is_at_first() {
    let recent = network();
    assert_screen("groups", &after(&recent, &[]));
    assert_screen("worst", &after(&recent, &[letter('2'), letter('s')]));
    assert_screen("heatmap", &after(&recent, &[letter('3')]));
    assert_screen("health", &after(&recent, &[letter('4')]));
}

#[test]
fn a_gateway_that_tells_sides_apart_has_one_row_a_group() {
    let recent = gateway();
    assert_screen("sides", &after(&recent, &[]));
    assert_screen("sides-unfolded", &after(&recent, &[letter('s'), letter('o')]));
    let detail = screen(&after(&recent, &[DOWN, KeyCode::Enter]), 80, 24);
    assert!(detail.contains("customer-7  tcp-ts on lan0") && detail.contains("inside  "), "{detail}");
    let unfolded = after(&recent, &[letter('o')]);
    for width in 1..200 {
        assert_eq!(screen(&unfolded, width, 10).lines().count(), 10);
    }

    let Answers { summary, groups, .. } = asked(&recent, &Question::default());
    let shown = once::text(&summary, &groups, None).unwrap();
    let rows: Vec<_> = shown.lines().filter(|line| line.starts_with("customer-7 ")).collect();
    let [row] = rows[..] else { panic!("{shown}") };
    let group = groups.groups.iter().find(|group| &*group.group == "customer-7").unwrap();
    let sides = group.sides.as_ref().unwrap();
    let rtts = [&sides.inside, &sides.outside].map(|side| side.as_ref().unwrap().rtt.unwrap());
    let rtts = rtts.map(|rtt| format!("{} {}", text::time(rtt.p50), text::time(rtt.p95))).join(" ");
    let words = row.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.starts_with(&format!("customer-7 {rtts} ")), "{rtts} in {shown}");
    assert!(row.ends_with("██████████████") && row.contains('▁'), "{shown}");
    assert!(shown.contains("inside p95") && !shown.contains("wan0 tcp-ts"), "{shown}");
}

#[test]
fn warnings_are_on_the_health_pane() {
    let recent = RecentHistory::new(MEMORY);
    let shown = |warnings: &[&str]| {
        let warnings = warnings.iter().map(ToString::to_string).collect();
        recent.take_reading(Reading { warnings, ..Reading::default() }, END);
        screen(&after(&recent, &[letter('4')]), 80, 24)
    };
    let text = shown(&["tap0: the other direction of 97 % of the flows was not seen"]);
    assert!(text.contains("warnings") && text.contains("tap0: the other direction of 97 %"), "{text}");
    assert!(!shown(&[]).contains("warning"));
}

#[test]
fn the_worst_flows_of_a_capture_are_elsewhere() {
    let recent = RecentHistory::new(MEMORY);
    let mut state = after(&recent, &[letter('2')]);
    let hint = "flows of a capture are ranked by --worst";
    let text = screen(&state, 80, 24);
    assert!(text.contains("none") && !text.contains(hint), "{text}");
    state.set_capture(true);
    let text = screen(&state, 80, 24);
    assert!(text.contains(hint), "{text}");
}

#[test]
fn a_group_without_packets_has_no_share_of_retransmitted_ones() {
    let recent = RecentHistory::new(MEMORY);
    let columns = Vec::new();
    let name = SeriesName {
        interface: Some("wan0".into()),
        method: Method::Dns,
        matched: Some(Direction::Ingress),
        side: None,
        group: Arc::new(GroupName { columns, ..GroupName::named("resolver") }),
    };
    let mut counts = SeriesCounts::EMPTY;
    (0..30).for_each(|_| counts.sample(4_000_000, 0));
    recent.add(&[(name, counts)], END);
    let text = screen(&after(&recent, &[letter('2')]), 80, 24);
    let row = text.lines().find(|line| line.ends_with("resolver")).unwrap_or_default();
    assert!(row.contains("0 us        -       0 beyond "), "{text}");
}

#[test]
fn a_group_in_detail_has_both_sides_where_both_exist() {
    let recent = network();
    let both = after(&recent, &[DOWN, KeyCode::Enter]);
    let text = screen(&both, 80, 24);
    assert!(text.contains("beyond  ") && text.contains("behind  ") && text.contains("site Åre"), "{text}");
    assert_screen("detail", &both);
    assert_screen("detail-of-one-side", &after(&recent, &[KeyCode::Enter, letter('-')]));
}

#[test]
fn a_heatmap_of_other_ranges_and_series() {
    let recent = network();
    let chosen = [letter('3'), letter('G'), KeyCode::Up, letter('-')];
    assert_screen("heatmap-5-min", &after(&recent, &chosen));
    let chosen = [&chosen[..], &[letter('-')]].concat();
    assert_screen("heatmap-1-min", &after(&recent, &chosen));
}

#[test]
fn groups_by_prefix_sorted_by_packets_with_filter() {
    let recent = network();
    let keys = [letter('i'), letter('s'), letter('s'), letter('/'), letter('e')];
    assert_screen("groups-by-prefix", &after(&recent, &keys));
}

#[test]
fn the_help_is_over_any_pane() {
    assert_screen("help", &after(&network(), &[letter('?')]));
}

#[test]
fn a_pping_that_went_away_is_said_and_what_it_said_last_stays() {
    let mut state = after(&network(), &[]);
    state.fail("connection refused".to_owned(), Instant::now());
    assert_screen("failure", &state);
}

#[test]
fn labels_of_others_are_harmless_on_every_pane() {
    let recent = network();
    let evil = [letter('/'), letter('v'), letter('i'), letter('l'), KeyCode::Enter, KeyCode::Enter];
    for state in [
        after(&recent, &[]),
        after(&recent, &evil),
        after(&recent, &[letter('2')]),
        after(&recent, &[letter('4')]),
    ] {
        let text = screen(&state, 160, 40);
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\r', '\t']), "{text}");
    }
    let text = screen(&after(&recent, &evil), 80, 24);
    assert!(text.contains("?[2J?evil?label"), "{text}");
}

#[test]
fn colours_are_where_a_terminal_has_them_and_nowhere_else() {
    let recent = network();
    for (colors, is_colour) in [
        (Colors::None, (|color| color == Color::Reset) as fn(Color) -> bool),
        (Colors::Indexed, |color| matches!(color, Color::Reset | Color::Indexed(_))),
        (Colors::True, |color| matches!(color, Color::Reset | Color::Rgb(..))),
    ] {
        let mut state = State::new(colors);
        state.take(asked(&recent, &state.question()));
        state.key(letter('3').into(), Rect::new(0, 0, 80, 24));
        state.take(asked(&recent, &state.question()));
        let buffer = drawn(&state, 80, 24);
        let found: Vec<Color> = buffer.content().iter().flat_map(|cell| [cell.fg, cell.bg]).collect();
        assert!(found.iter().all(|color| is_colour(*color)), "{colors:?}");
        assert_eq!(found.iter().all(|color| *color == Color::Reset), colors == Colors::None, "{colors:?}");
    }
}

#[test]
fn no_size_is_too_small_or_too_large() {
    let recent = network();
    let keys: [&[KeyCode]; 7] = [
        &[],
        &[letter('2')],
        &[DOWN, KeyCode::Enter],
        &[letter('3')],
        &[letter('4')],
        &[letter('?')],
        &[letter('/'), letter('x')],
    ];
    let widths = (1..=3).chain(9..=11).chain(19..=22).chain([40, 59, 80, 119, 120, 250]);
    let sizes: Vec<(u16, u16)> =
        widths.flat_map(|width| (1..=10).chain([14, 24, 80]).map(move |height| (width, height))).collect();
    let others = [KeyCode::PageDown, KeyCode::PageUp, letter('G'), letter('j'), letter('s')];
    for keys in keys {
        let mut state = after(&recent, keys);
        state.fail("gone".to_owned(), Instant::now());
        for &(width, height) in &sizes {
            assert_eq!(screen(&state, width, height).lines().count(), usize::from(height));
            state.key(
                others[usize::from(width + height) % others.len()].into(),
                Rect::new(0, 0, width, height),
            );
        }
    }
    let empty = State::new(Colors::True);
    for &(width, height) in &sizes {
        assert_eq!(screen(&empty, width, height).lines().count(), usize::from(height));
    }
}

#[test]
fn the_manual_has_the_screens_as_they_are() {
    const MANUAL: &str = include_str!("../../../docs/top.md");
    let filter: Vec<KeyCode> = "/10.11".chars().map(letter).chain([KeyCode::Enter]).collect();
    let detail = [&filter[..], &[KeyCode::Enter]].concat();
    let screens = [
        (network(), filter),
        (network(), detail),
        (network(), vec![letter('2'), letter('s')]),
        (network(), vec![letter('3')]),
        (gateway(), vec![letter('s'), letter('o')]),
    ];
    let mut missing = String::new();
    for (number, (recent, keys)) in screens.iter().enumerate() {
        let text = screen(&after(recent, keys), 80, 24);
        // The first lines are the same on every pane.
        let first = if number == 0 {
            0
        } else {
            text.lines().position(|line| line.starts_with("pping: ")).unwrap() + 1
        };
        let lines = text.lines().skip(first).filter(|line| !line.is_empty());
        let text: String = lines.flat_map(|line| [line, "\n"]).collect();
        if !MANUAL.contains(&text) {
            missing.extend(["\n", &text]);
        }
    }
    assert!(missing.is_empty(), "docs/top.md does not have:\n{missing}");
}
