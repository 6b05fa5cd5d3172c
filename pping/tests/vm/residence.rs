//! Residence times: with qdiscs that this machine's kernel lacks, and on kernels that cannot tell when packets are
//! queued.

use std::{fs, time::Duration};

use pping::kernel::residence;
use pping_lab::{Process, Topology, run, traffic::Pace};

use super::{
    http::{Exposition, LISTEN, scrape},
    monitor::{ENDING, interrupt, ok, ping, pping, wait_until, watch},
    net::{Family, Net},
    report,
};

const PINGS: u32 = 20;
const OF_WAN: [(&str, &str); 1] = [("interface", Topology::WAN)];

/// Bytes of a ping's payload and of its frame.
const PAYLOAD: u32 = 1000;
const FRAME: u32 = PAYLOAD + 8 + 20 + 14;

/// The rate of the shapers, in bytes per second.
const RATE: u32 = 125_000;

fn mean(metrics: &Exposition, part: &str) -> f64 {
    let of = |what: &str| metrics.sum(&format!("pping_{part}_seconds_{what}"), &OF_WAN).unwrap();
    of("sum") / of("count")
}

/// Sets the root qdisc of the router's `wan0`. Each line is a set of arguments for `tc`.
fn shape(net: &Net, lines: &[String]) {
    for line in lines {
        ok(run(net.router.command("tc").args(line.split_whitespace())));
    }
}

/// True if this kernel can tell when packets are queued. If it cannot, pping must say so.
fn has_queues(net: &Net) -> bool {
    let Err(error) = residence::offsets() else { return true };
    let said = error.to_string();
    assert!(said.contains("qdisc_enqueue") && said.contains("Linux 5.15"), "{said}");
    let mut refused = ok(Process::spawn(pping(&net.router, "-i wan0 --residence")));
    ok(refused.wait_for_output("--residence-every 0", ENDING));
    for (options, is_fit) in [("--residence", false), ("--residence --residence-every 0", true), ("", true)] {
        let checked = run(&mut pping(&net.router, &format!("check -i wan0 {options}")));
        let said = checked.as_ref().map_or_else(ToString::to_string, Clone::clone);
        assert_eq!(checked.is_ok(), is_fit, "{options}: {said}");
    }
    report::skip("this kernel lacks a tracepoint, as pping says");
    false
}

/// Sends all pings with these options while pping follows them through `wan0`. Returns the metrics once all have left.
fn follow(net: &Net, options: &str, queued: u32) -> Exposition {
    // Packets of the router itself would count in the mean. So the router resolves its neighbour now, once and for all,
    // and does not use IPv6.
    let ipv6_is_off = format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", Topology::WAN);
    ok(net.router.enter(|| fs::write(ipv6_is_off, "1"))).unwrap();
    ping(&net.client, Topology::SERVER_IPV4, "-c1");
    let neighbour = format!("neigh change {} dev {} nud permanent", Topology::SERVER_IPV4, Topology::WAN);
    ok(run(net.router.command("ip").args(neighbour.split(' '))));
    let arguments =
        format!("-i {} {LISTEN} --residence --residence-every 1 --group-by /24,/48", Topology::LAN);
    let pping = watch(&net.router, Topology::WAN, &arguments);
    ping(&net.client, Topology::SERVER_IPV4, options);
    let sent = [OF_WAN[0], ("direction", "egress"), ("protocol", "icmp")];
    // The counts of groups are published in the same second or the next.
    wait_until("all pings are in the metrics", || {
        let metrics = scrape(&net.router);
        let timed = metrics.sum("pping_queue_seconds_count", &OF_WAN);
        metrics.sum("pping_packets_total", &sent) >= Some(PINGS.into())
            && timed >= Some(queued.into())
            && (queued == 0 || metrics.sum("pping_group_queue_seconds_count", &OF_WAN) == timed)
    });
    let metrics = scrape(&net.router);
    interrupt(pping);
    assert_eq!(metrics.sum("pping_queue_seconds_count", &OF_WAN), Some(queued.into()), "and nothing else");
    metrics
}

#[test]
fn a_queue_that_holds_packets_for_20_ms_is_measured_as_such() {
    let net = Net::new();
    if !has_queues(&net) {
        return;
    }
    net.netem_ahead("delay 20ms");
    let metrics = follow(&net, &format!("-c{PINGS} -i0.05"), PINGS);
    let mean = mean(&metrics, "queue");
    println!("{:.3} ms in a queue of 20 ms", mean * 1e3);
    assert!((mean - 0.020).abs() < 0.001, "{mean}");
    assert_eq!(metrics.sum("pping_queue_lost_packets_total", &OF_WAN), Some(0.0));
}

#[test]
fn packets_that_fq_codel_lets_past_have_no_time() {
    let net = Net::new();
    if !has_queues(&net) {
        return;
    }
    shape(&net, &["qdisc replace dev wan0 root fq_codel".to_owned()]);
    let metrics = follow(&net, &format!("-c{PINGS} -i0.05"), 0);
    assert_eq!(metrics.sum("pping_queue_seconds_count", &OF_WAN), Some(0.0));
}

/// Sends all pings at once through a shaper, and compares how long they wait with the computed time.
fn is_shaped(net: &Net, name: &str, lines: &[String], burst: u32) {
    shape(net, lines);
    let metrics = follow(net, &format!("-c{PINGS} -l{PINGS} -s{PAYLOAD}"), PINGS);
    let wait = |number: u32| (f64::from(number * FRAME) - f64::from(burst)).max(0.0) / f64::from(RATE);
    // The first packet leaves at once.
    let expected = (1..=PINGS).map(wait).sum::<f64>() / f64::from(PINGS);
    let mean = mean(&metrics, "queue");
    println!("{name}: {:.2} ms, by arithmetic {:.2} ms", mean * 1e3, expected * 1e3);
    assert!((mean / expected - 1.0).abs() < 0.05, "{name}: {mean} s, by arithmetic {expected} s");
    assert_eq!(metrics.sum("pping_queue_lost_packets_total", &OF_WAN), Some(0.0));
}

#[test]
fn shapers_make_packets_wait_as_long_as_arithmetic_says() {
    let net = Net::new();
    if !has_queues(&net) {
        return;
    }
    let bits = 8 * RATE;
    let burst = 2 * FRAME;
    let bucket = format!("qdisc replace dev wan0 root tbf rate {bits}bit burst {burst} limit 1000000");
    is_shaped(&net, "tbf", &[bucket], burst);
    shape(&net, &["qdisc delete dev wan0 root".to_owned()]);
    let fair = [
        "qdisc replace dev wan0 root handle 1: htb default 1".to_owned(),
        format!("class add dev wan0 parent 1: classid 1:1 htb rate {bits}bit burst {burst} cburst {burst}"),
        "qdisc add dev wan0 parent 1:1 fq_codel target 5s interval 10s".to_owned(),
    ];
    // HTB sends as long as it has any tokens, and subtracts the excess of a packet from later tokens.
    is_shaped(&net, "fq_codel in htb", &fair, burst + FRAME);
}

#[test]
fn forwarding_is_measured_on_every_kernel_at_both_hooks() {
    let net = Net::new();
    let pace = Pace { chunks: 30, bytes: 500, pause: Duration::from_millis(10) };
    for ingress in ["tc", "xdp"] {
        let arguments = format!(
            "-i {} {LISTEN} --ingress {ingress} --rate-limit 0 --residence --residence-every 0",
            Topology::LAN
        );
        let pping = watch(&net.router, Topology::WAN, &arguments);
        for family in [Family::Ipv4, Family::Ipv6] {
            net.converse(family, pace);
        }
        wait_until("the segments are in the metrics", || {
            scrape(&net.router).sum("pping_forwarding_seconds_count", &OF_WAN) >= Some(50.0)
        });
        let metrics = scrape(&net.router);
        interrupt(pping);
        let mean = mean(&metrics, "forwarding");
        println!("{ingress}: {:.1} us from lan0 to wan0", mean * 1e6);
        assert!(mean > 0.0 && mean < 0.002, "{ingress}: {mean}");
        assert_eq!(metrics.sum("pping_queue_seconds_count", &OF_WAN), None, "no queue is looked at");
    }
}
