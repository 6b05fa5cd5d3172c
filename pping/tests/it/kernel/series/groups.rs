//! Groups are separate up to their maximum number, and each keeps its own counts.

use std::collections::HashMap;

use pping::kernel::{load, load_options::LoadOptions, loaded::Kernel};
use pping_common::{
    abi::Counters,
    group::Grouping,
    method::Method,
    parse::{Direction, LinkType},
};

use super::{Ip, Program, SETTINGS, Sums, TCP, Tcp, echo, rig, run, v4, v6};
use crate::kernel::{
    frames::{ACK, SYN},
    rig::{Rig, samples},
};

const BY_HOST: LoadOptions = LoadOptions {
    grouping: Grouping { by_source: 1, v4_len: 32, v6_len: 128, ..Grouping::NONE },
    max_groups: 4,
    ..SETTINGS
};

fn kernel(settings: &LoadOptions) -> (Kernel, u16) {
    let mut kernel = load::load(settings, false).unwrap();
    let interface_id = rig::loopback(LinkType::Ethernet).register(&mut kernel).unwrap();
    (kernel, interface_id)
}

/// Pings a host, which replies: one sample of the group of `host`.
fn ping(kernel: &mut Kernel, host: u8, sequence: u16) {
    run(kernel, Program::Egress, &echo(v4(1), v4(host), 7, sequence, false));
    run(kernel, Program::Ingress, &echo(v4(host), v4(1), 7, sequence, true));
}

fn counted(kernel: &Kernel, interface_id: u16) -> Counters {
    rig::counters(kernel, interface_id)
}

fn labels<const N: usize>(samples: [(&str, u64); N]) -> HashMap<String, u64> {
    samples.into_iter().map(|(label, count)| (label.to_owned(), count)).collect()
}

#[test]
fn groups_beyond_the_limit_are_other_and_counted() {
    let (mut kernel, interface_id) = kernel(&BY_HOST);
    let mut sums = Sums::default();
    for sequence in 0..10 {
        for host in 2..10 {
            ping(&mut kernel, host, sequence);
        }
        sums.rotate(&mut kernel);
    }
    let samples = sums.samples();
    assert_eq!(samples.len(), 5, "{samples:?}");
    assert_eq!(samples["other"], 40);
    for host in 2..6 {
        assert_eq!(samples[&format!("{}/32", v4(host))], 10, "{samples:?}");
    }
    let counters = counted(&kernel, interface_id);
    // Each of the four flows counts once, as it remembers its group.
    assert_eq!((counters.groups_refused, counters.unaggregated), (4, 0));
    assert_eq!(kernel.series.fill().groups, 4 + 1, "{:?}", kernel.series.fill());
}

#[test]
fn quiet_group_makes_room_and_keeps_its_counts() {
    let (mut kernel, interface_id) = kernel(&BY_HOST);
    let mut sums = Sums::default();
    for host in 2..6 {
        ping(&mut kernel, host, 0);
    }
    let mut others = 0;
    for round in 1..60_u16 {
        // Host 2 stays active, hosts 3, 4 and 5 are quiet, and new hosts need groups.
        ping(&mut kernel, 2, round);
        for host in 6..9 {
            ping(&mut kernel, host, round);
        }
        sums.rotate(&mut kernel);
        kernel.series.expire(5).unwrap();
        if counted(&kernel, interface_id).groups_refused > others {
            kernel.series.resolve_again();
            others = counted(&kernel, interface_id).groups_refused;
        }
    }
    // Traffic of a quiet host counts for its own group again or for `other`, but never for the group that replaced its
    // own.
    for host in 3..6 {
        ping(&mut kernel, host, 99);
    }
    sums.rotate(&mut kernel);
    let samples = sums.samples();
    let total: u64 = samples.values().sum();
    assert_eq!(total, 4 + 59 * 4 + 3);
    assert_eq!(samples[&format!("{}/32", v4(2))], 60);
    for host in 3..6 {
        assert_eq!(samples[&format!("{}/32", v4(host))], 1, "{samples:?}");
    }
    for host in 6..9 {
        let own = samples[&format!("{}/32", v4(host))];
        assert!((40..60).contains(&own), "{samples:?}");
    }
    assert_eq!(
        samples["other"],
        total - 60 - 3 - (6..9).map(|it| samples[&format!("{}/32", v4(it))]).sum::<u64>()
    );
}

#[test]
fn one_series_index_serves_one_series_after_another() {
    // Over time there are more groups than series indices.
    let (mut kernel, interface_id) = kernel(&LoadOptions { max_groups: 2, ..BY_HOST });
    let mut sums = Sums::default();
    for round in 0..30_u16 {
        for host in 2..250 {
            if host % 30 == round as u8 % 30 {
                ping(&mut kernel, host, round);
            }
        }
        for _ in 0..4 {
            sums.rotate(&mut kernel);
            kernel.series.expire(1).unwrap();
        }
        kernel.series.resolve_again();
    }
    assert_eq!(sums.total(), 248);
    assert_eq!(counted(&kernel, interface_id).unaggregated, 0);
    let samples = sums.samples();
    assert!(samples.iter().all(|(label, &count)| label == "other" || count == 1), "{samples:?}");
    let fill = kernel.series.fill();
    assert!(fill.series <= 2 * Method::ALL.len() + 2, "indices are given back: {fill:?}");
}

#[test]
fn networks_hosts_and_classes_make_groups_of_either_end() {
    let by = |grouping| LoadOptions { grouping, max_groups: 100, ..SETTINGS };
    let nets = Grouping { v4_len: 24, v6_len: 64, ..Grouping::NONE };
    for (grouping, expected) in [
        (Grouping { by_source: 1, ..nets }, 2),
        (Grouping { by_destination: 1, ..nets }, 2),
        (Grouping { by_source: 1, by_destination: 1, ..nets }, 2),
        (Grouping { by_dscp: 1, ..Grouping::NONE }, 1),
        (Grouping::NONE, 1),
    ] {
        let (mut kernel, _) = kernel(&by(grouping));
        let mut sums = Sums::default();
        for [a, b] in [[v4(1), v4(2)], [v6(1), v6(2)]] {
            for id in 0..5 {
                run(&mut kernel, Program::Egress, &echo(a, b, id, 1, false));
                run(&mut kernel, Program::Xdp, &echo(b, a, id, 1, true));
            }
        }
        sums.rotate(&mut kernel);
        let samples = sums.samples();
        assert_eq!(samples.len(), expected, "{grouping:?}: {samples:?}");
        assert_eq!(sums.total(), 10);
        assert!(sums.0.keys().all(|key| key.direction == Direction::Ingress as u8));
    }
}

#[test]
fn traffic_of_flows_is_part_of_their_series() {
    let (mut kernel, _) = kernel(&BY_HOST);
    let mut sums = Sums::default();
    for sequence in 0..7 {
        ping(&mut kernel, 2, sequence);
        if sequence % 3 == 0 {
            sums.sweep_and_rotate(&mut kernel);
        }
    }
    // This request is not answered.
    run(&mut kernel, Program::Egress, &echo(v4(1), v4(2), 7, 99, false));
    sums.sweep_and_rotate(&mut kernel);
    sums.sweep_and_rotate(&mut kernel);
    let sent = sums.by_label(|series| series.sent.packets);
    let received = sums.by_label(|series| series.received.packets);
    // Replies are not echoed, so they have no series.
    let host = format!("{}/32", v4(2));
    assert_eq!(sent, labels([(&host, 8)]));
    assert_eq!(received, labels([(&host, 7)]));
}

/// Sends a SYN to a host, and its SYN-ACK.
fn begin(rig: &mut Rig, host: u8, port: u16) {
    let [here, there] = [v4(1), v4(host)];
    let mut send = |program, from, to, ports, flags, sequence, acknowledgement| {
        let segment = Tcp { ports, flags, sequence, acknowledgement, ..Tcp::with_options([]) };
        rig.send(program, &Ip::between(from, to).frame(TCP, &segment.bytes()));
    };
    send(Program::Egress, here, there, (port, 443), SYN, 999, 0);
    send(Program::Ingress, there, here, (443, port), SYN | ACK, 4_999, 1_000);
}

/// Sends data to the host, which acknowledges it.
fn talk(rig: &mut Rig, host: u8, port: u16) {
    let [here, there] = [v4(1), v4(host)];
    let data = Tcp {
        ports: (port, 443),
        flags: ACK,
        sequence: 1_000,
        acknowledgement: 5_000,
        payload: 10,
        ..Tcp::with_options([])
    };
    rig.send(Program::Egress, &Ip::between(here, there).frame(TCP, &data.bytes()));
    let reply = Tcp {
        ports: (443, port),
        flags: ACK,
        sequence: 5_000,
        acknowledgement: 1_010,
        payload: 0,
        ..Tcp::with_options([])
    };
    rig.send(Program::Ingress, &Ip::between(there, here).frame(TCP, &reply.bytes()));
}

#[test]
fn hosts_that_only_answer_a_syn_use_up_few_groups() {
    let mut rig = Rig::with(LoadOptions { max_groups: 128, ..BY_HOST }, LinkType::Ethernet);
    for host in 100..200 {
        begin(&mut rig, host, 1_000);
    }
    rig.agree("a flood");
    rig.agree_on_series("a flood");
    assert_eq!(rig.kernel.series.fill().groups, 16 + 1, "an eighth, and the others");
    for host in 2..15 {
        begin(&mut rig, host, 1_000);
        talk(&mut rig, host, 1_000);
        // The flow is proved, and what it adds counts for its own group, which was of no flood.
        rig.agree_on_series("a connection");
        assert_eq!(rig.kernel.series.fill().groups, 16 + 1 + usize::from(host), "{host}");
    }
    assert_eq!(samples(&rig.agree("connections")).len(), 13 * 2);
    // Groups of the flood that are proved leave room for others.
    talk(&mut rig, 100, 1_000);
    rig.agree_on_series("one of the flood");
    rig.agree("the end");
}
