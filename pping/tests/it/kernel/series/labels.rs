//! Labels of prefixes, and excluded prefixes.

use std::collections::BTreeMap;

use pping::kernel::{labels, load, load_options::LoadOptions, loaded::Kernel};
use pping_common::{
    abi::Emit,
    group::{End, Grouping, Side},
    parse::{LinkType, Untracked},
};

use super::{Program, SETTINGS, Sums, echo, rig, run, v4, v6};

const BY_LABEL: LoadOptions = LoadOptions {
    grouping: Grouping { by_source: 1, by_label: 1, ..Grouping::NONE },
    max_groups: 100,
    emit: Emit::NOTHING,
    ..SETTINGS
};

fn kernel(settings: &LoadOptions) -> (Kernel, u16) {
    let mut kernel = load::load(settings, false).unwrap();
    let interface_id = rig::loopback(LinkType::Ethernet).register(&mut kernel).unwrap();
    (kernel, interface_id)
}

/// Replaces the labelled prefixes.
fn put(kernel: &mut Kernel, prefixes: &[(&str, u32)], old: &[(&str, u32)]) {
    let parse = |list: &[(&str, u32)]| -> Vec<_> {
        list.iter().map(|(prefix, label)| (prefix.parse().unwrap(), *label)).collect()
    };
    let generation = kernel.series.generation();
    let next = labels::next(generation);
    labels::add(kernel.labels.as_mut().unwrap(), next, parse(prefixes).into_iter()).unwrap();
    kernel.series.set_generation(next);
    labels::remove(kernel.labels.as_mut().unwrap(), generation, parse(old).into_iter());
}

/// Returns the samples by label number.
fn samples(sums: &Sums) -> Vec<(u32, u64)> {
    let mut samples: Vec<(u32, u64)> = sums
        .0
        .iter()
        .filter(|(_, series)| series.count() > 0)
        .map(|(key, series)| match key.group.source() {
            End::Label(number) => (number, series.count()),
            end => panic!("{end:?}"),
        })
        .collect();
    samples.sort_unstable();
    samples
}

fn ping(kernel: &mut Kernel, [a, b]: [std::net::IpAddr; 2], sequence: u16) {
    run(kernel, Program::Egress, &echo(a, b, 7, sequence, false));
    run(kernel, Program::Ingress, &echo(b, a, 7, sequence, true));
}

#[test]
fn the_longest_prefix_wins_and_a_reload_takes_effect_at_once() {
    let (mut kernel, _) = kernel(&BY_LABEL);
    let pairs = [[v4(1), v4(2)], [v4(1), v4(3)], [v6(1), v6(2)]];
    let all = |kernel: &mut Kernel, sequence| pairs.map(|pair| ping(kernel, pair, sequence));
    let mut sums = Sums::default();
    let host = format!("{}/32", v4(2));
    let first = [("0.0.0.0/0", 1), (&host, 2), ("::/0", 3)];
    put(&mut kernel, &first, &[]);
    all(&mut kernel, 1);
    sums.rotate(&mut kernel);
    assert_eq!(samples(&sums), [(1, 1), (2, 1), (3, 1)]);

    // The same flows again, in the middle of an epoch.
    all(&mut kernel, 2);
    let second = [("0.0.0.0/0", 5), ("128.0.0.0/1", 6)];
    put(&mut kernel, &second, &first);
    all(&mut kernel, 3);
    sums.rotate(&mut kernel);
    assert_eq!(samples(&sums), [(0, 1), (1, 2), (2, 2), (3, 2), (6, 2)]);

    put(&mut kernel, &[], &second);
    all(&mut kernel, 4);
    sums.rotate(&mut kernel);
    assert_eq!(samples(&sums)[0], (0, 1 + 3), "without prefixes there is no label");
    assert_eq!(kernel.labels.as_ref().unwrap().iter().count(), 0, "the old labels are gone");
}

#[test]
fn sides_are_those_of_listed_prefixes_and_of_labels() {
    for (inside, expected) in [
        (0, [(Side::UNKNOWN, 5), (0, 0)]),
        (Grouping::INSIDE_LISTED, [(Side::Inside as u32, 2), (Side::Outside as u32, 3)]),
        (Grouping::INSIDE_LABELLED, [(Side::Inside as u32, 1), (Side::Outside as u32, 4)]),
        (
            Grouping::INSIDE_LISTED | Grouping::INSIDE_LABELLED,
            [(Side::Inside as u32, 3), (Side::Outside as u32, 2)],
        ),
    ] {
        let grouping = Grouping { inside, ..Grouping::NONE };
        let (mut kernel, _) = kernel(&LoadOptions { grouping, ..SETTINGS });
        let listed = [format!("{}/32", v4(2)), format!("{}/128", v6(2))];
        let listed: Vec<_> = listed.iter().map(|prefix| (prefix.parse().unwrap(), 0)).collect();
        labels::add(&mut kernel.inside, 0, listed.iter().copied()).unwrap();
        put(&mut kernel, &[(&format!("{}/32", v4(3)), 7)], &[]);
        let mut sums = Sums::default();
        // The second address replies.
        for pair in [[v4(1), v4(2)], [v4(1), v4(3)], [v4(1), v4(4)], [v6(1), v6(2)], [v6(1), v6(3)]] {
            ping(&mut kernel, pair, 1);
        }
        sums.rotate(&mut kernel);
        let expected: BTreeMap<u32, u64> = expected.into_iter().filter(|(_, count)| *count > 0).collect();
        let mut found = BTreeMap::new();
        for (key, series) in sums.0.iter().filter(|(_, series)| series.count() > 0) {
            *found.entry(key.side).or_default() += series.count();
        }
        assert_eq!(found, expected, "{inside}");
    }
}

#[test]
fn excluded_traffic_is_not_followed() {
    let (mut kernel, interface_id) = kernel(&LoadOptions { excludes: true, ..SETTINGS });
    let prefixes = [format!("{}/32", v4(3)), format!("{}/128", v6(2))];
    let prefixes: Vec<_> = prefixes.iter().map(|prefix| (prefix.parse().unwrap(), 0)).collect();
    labels::add(&mut kernel.excluded, 0, prefixes.iter().copied()).unwrap();
    let mut sums = Sums::default();
    for pair in [[v4(1), v4(2)], [v4(1), v4(3)], [v4(3), v4(1)], [v6(1), v6(2)], [v6(1), v6(3)]] {
        ping(&mut kernel, pair, 1);
    }
    sums.rotate(&mut kernel);
    assert_eq!(sums.total(), 2);
    let counted = rig::counters(&kernel, interface_id);
    assert_eq!(counted.untracked[Untracked::Excluded as usize], 6);
    assert_eq!(counted.entries_made, [1, 1]);
}
