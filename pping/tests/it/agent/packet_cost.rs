//! Metrics, API and summary show what packets cost in the kernel programs, once enough packets have been timed.

use std::net::UdpSocket;

use aya::{
    programs::{LinkOrder, SchedClassifier, TcAttachType, tc::TcAttachOptions},
    sys::{Stats, enable_stats},
};
use pping::kernel::{load, load_options::LoadOptions};
use pping_bench_programs::BASELINE;
use pping_common::limits::TIMED_EVERY;
use pping_lab::{Namespace, PacketSocket, Signal, Topology, run, stay_on};

use super::{
    api::answer,
    http::{Exposition, LISTEN, scrape},
    monitor::{ENDING, ok, topology, wait_until, watch},
};
use crate::frames::{ACK, Ip, TCP, Tcp, echo, v4, v6};

/// Enough packets for twelve to be timed.
const PACKETS: u64 = 12 * TIMED_EVERY + TIMED_EVERY / 2;

#[test]
fn what_packets_take_is_shown_once_enough_were_timed() {
    let topology = topology();
    let router = topology.router();
    let mut pping = watch(router, Topology::LAN, LISTEN);
    let shown = || answer(router, "/summary", "Summary")["cost"]["programs"].as_f64();
    assert_eq!(shown(), None, "nothing was timed yet");
    let send = || {
        stay_on(0).unwrap();
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        for _ in 0..PACKETS {
            // No socket has to listen there.
            socket.send_to(&[0; 32], (Topology::LAN_IPV4, 9)).unwrap();
        }
    };
    ok(topology.client().enter(send));
    let program = [("interface", Topology::LAN), ("program", "pping_ingress")];
    let name = |what| format!("pping_packet_cost_seconds_{what}");
    wait_until("enough packets are timed", || scrape(router).sum(&name("count"), &program) >= Some(10.0));
    let page = scrape(router);
    let (count, sum) =
        (page.sum(&name("count"), &program).unwrap(), page.sum(&name("sum"), &program).unwrap());
    assert!(count <= (PACKETS / TIMED_EVERY) as f64 + 2.0, "{count}");
    let mean = sum / count;
    assert!((5e-9..1e-3).contains(&mean), "{mean} s");
    assert_eq!(page.sum(&name("count"), &[("program", "pping_xdp")]), Some(0.0), "it is not attached");
    let share = shown().unwrap();
    assert!((0.0..2.0).contains(&share), "{share}");

    ok(pping.stop(Signal::SIGINT, ENDING));
    let said = ok(pping.stderr());
    let cost =
        said.lines().find_map(|line| line.strip_prefix("pping took ")).unwrap_or_else(|| panic!("{said}"));
    let (ns, rest) = cost.split_once(" ns for a packet, ").unwrap();
    assert!(ns.parse::<f64>().unwrap() >= 5.0, "{cost}");
    assert!(rest.strip_suffix(" % of a core").unwrap().parse::<f64>().unwrap() > 0.0, "{cost}");
}

/// How far the programs' own figure may be from the kernel's statistics, as a share. Here each packet comes from a
/// system call of its own, and the statistics include the way from there to the program. In `kernel::cost`, packets
/// follow each other without pauses, and the two figures agree within 15 %.
const TOLERANCE: f64 = 0.35;

/// The machine has other work, and few packets are timed.
const ATTEMPTS: usize = 16;

/// Packets of an attempt. This must not be a multiple of `TIMED_EVERY`: then the first packet of the next attempt would
/// be timed, and the first packet after a pause takes as long as forty others.
const COMPARED: u64 = 16 * TIMED_EVERY + 12_345;

/// Returns what the metrics say of the ingress program: runs and their time by the kernel's statistics, then timed
/// packets and their time by the program itself.
fn in_metrics(page: &Exposition) -> [f64; 4] {
    let names = [
        "pping_bpf_runs_total",
        "pping_bpf_run_seconds_total",
        "pping_packet_cost_seconds_count",
        "pping_packet_cost_seconds_sum",
    ];
    names.map(|name| page.sum(name, &[("program", "pping_ingress")]).unwrap_or(0.0))
}

#[test]
fn packets_on_an_interface_take_what_the_kernels_statistics_say() {
    let host = ok(Namespace::new("cost"));
    for pair in [["here", "there"], ["bare", "away"]] {
        ok(run(host.command("ip").args(["link", "add", pair[0], "type", "veth", "peer", pair[1]])));
        for interface in pair {
            ok(run(host.command("ip").args(["link", "set", interface, "up"])));
        }
    }
    let _statistics = enable_stats(Stats::RunTime).unwrap();
    let _pping = watch(&host, "here", &format!("{LISTEN} --ingress tc"));
    // An empty program at the same attach point of another interface shows what the statistics add to each run.
    let mut empty = load::open(BASELINE, &LoadOptions { max_flows: 16, ..LoadOptions::DEFAULT }).unwrap();
    let empty: &mut SchedClassifier =
        empty.programs.program_mut("baseline_empty").unwrap().try_into().unwrap();
    empty.load().unwrap();
    let last = || TcAttachOptions::TcxOrder(LinkOrder::last());
    ok(host.enter(|| empty.attach_with_options("bare", TcAttachType::Ingress, last()))).unwrap();
    let of_empty = |empty: &SchedClassifier| {
        let info = empty.info().unwrap();
        (info.run_count(), info.run_time())
    };

    let segment = Tcp { flags: ACK, payload: 0, ..Tcp::stamped(1, 2) }.bytes();
    for (what, frame) in [
        ("segments on the fast path", Ip::between(v4(1), v4(2)).frame(TCP, &segment)),
        ("the same over IPv6", Ip::between(v6(1), v6(2)).frame(TCP, &segment)),
        ("echo requests, by the stages slow and step4", echo(v4(1), v4(2), 1, 1, false)),
    ] {
        let mut found = Vec::new();
        let is_same = (0..ATTEMPTS).any(|_| {
            let (before, before_empty) = (in_metrics(&scrape(&host)), of_empty(empty));
            let send = || {
                stay_on(0).unwrap();
                for (interface, packets) in [("there", COMPARED), ("away", COMPARED / 2)] {
                    let socket = PacketSocket::sender(interface).unwrap();
                    for _ in 0..packets {
                        // If the kernel has no room for a packet, the packet is missing from the count.
                        socket.send(&frame).ok();
                    }
                }
            };
            ok(host.enter(send));
            let enough = before[2] + (COMPARED / TIMED_EVERY) as f64 * 0.75;
            let mut after = before;
            wait_until("most packets are counted", || {
                after = in_metrics(&scrape(&host));
                after[2] >= enough
            });
            let after_empty = of_empty(empty);
            let [runs, seconds, count, sum] = [0, 1, 2, 3].map(|it| after[it] - before[it]);
            let nothing = after_empty.1.saturating_sub(before_empty.1).as_secs_f64()
                / (after_empty.0 - before_empty.0) as f64;
            let (own, kernels) = (sum / count, seconds / runs - nothing);
            found.push(format!("{:.1} ns of {:.1}", own * 1e9, kernels * 1e9));
            (own / kernels - 1.0).abs() <= TOLERANCE
        });
        eprintln!("{what}: {}", found.join(", "));
        assert!(is_same, "{what}: {found:?}");
    }
}
