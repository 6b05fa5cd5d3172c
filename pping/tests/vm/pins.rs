//! `--pin`: measuring goes on while pping is away.

use pping_lab::{Signal, Topology, run};

use super::{
    features,
    http::{LISTEN, scrape},
    monitor::{ENDING, interrupt, ok, ping, wait_until, watch},
    net::Net,
};

/// The pin directory, in the guest's bpffs.
const PINS: &str = "/sys/fs/bpf/pping";

/// Returns the samples of pings.
fn samples(net: &Net) -> Option<f64> {
    scrape(&net.router).sum("pping_samples_total", &[("method", "icmp-echo"), ("matched", "ingress")])
}

#[test]
fn a_restart_loses_no_sample() {
    let net = Net::new();
    let arguments = format!("{LISTEN} --rate-limit 0 --format none --pin {PINS}");
    let mut expected = 0.0;
    for end in [Signal::SIGKILL, Signal::SIGTERM] {
        let mut pping = watch(&net.router, Topology::WAN, &arguments);
        if !features::has_tcx() {
            let said = ok(pping.stderr());
            assert!(said.contains("continuing without --pin"), "{said}");
            interrupt(pping);
            return super::report::skip(
                "links at tc, without which nothing can be pinned, came with Linux 6.6",
            );
        }
        ping(&net.client, Topology::SERVER_IPV4, "-c3 -i0.1");
        ok(pping.signal(end));
        ok(pping.wait_timeout(ENDING));
        ping(&net.client, Topology::SERVER_IPV4, "-c3 -i0.1");
        expected += 6.0;
    }
    let pping = watch(&net.router, Topology::WAN, &arguments);
    wait_until("all of them, including those between the runs", || samples(&net) == Some(expected));
    interrupt(pping);
    ok(run(&mut super::monitor::pping(&net.router, &format!("unpin {PINS}"))));
    let left = std::fs::read_dir("/sys/fs/bpf").unwrap().count();
    assert_eq!(left, 0);
}
