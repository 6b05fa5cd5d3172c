//! `--listen`: the metrics have their documented names and agree with the traffic.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use pping_lab::{Fate, Leg, Signal, Topology, run};

use super::{
    formats::{records, samples},
    http::{Exposition, LISTEN, PORT, get, is_ready, scrape},
    monitor::{
        ENDING, HOLD, converse, endless_ping, interrupt, ok, ping, repository, topology, wait_until, watch,
    },
};

const INTERFACE: (&str, &str) = ("interface", Topology::WAN);

/// Name, type and labels of the documented metrics that appear in this run.
const CONTRACT: [(&str, &str, &[&str]); 39] = [
    ("pping_rtt_seconds", "histogram", &["interface", "method", "matched", "group"]),
    ("pping_min_rtt_seconds", "gauge", &["interface", "method", "matched", "group"]),
    ("pping_rtt_baseline_seconds", "gauge", &["interface", "method", "matched", "group"]),
    ("pping_rtt_inflation_seconds", "gauge", &["interface", "method", "matched", "group", "percentile"]),
    ("pping_group_packets_total", "counter", &["interface", "method", "matched", "group", "sender"]),
    ("pping_group_bytes_total", "counter", &["interface", "method", "matched", "group", "sender"]),
    (
        "pping_group_tcp_retransmissions_total",
        "counter",
        &["interface", "method", "matched", "group", "sender"],
    ),
    ("pping_samples_total", "counter", &["interface", "method", "matched"]),
    ("pping_packets_total", "counter", &["interface", "direction", "protocol"]),
    ("pping_bytes_total", "counter", &["interface", "direction", "protocol"]),
    ("pping_ecn_packets_total", "counter", &["interface", "direction", "codepoint"]),
    ("pping_tcp_retransmissions_total", "counter", &["interface", "direction"]),
    ("pping_tcp_out_of_order_segments_total", "counter", &["interface", "direction"]),
    ("pping_dns_queries_total", "counter", &["interface", "direction"]),
    ("pping_dns_responses_total", "counter", &["interface", "rcode"]),
    ("pping_dns_unanswered_total", "counter", &["interface"]),
    ("pping_dns_given_up_total", "counter", &["interface"]),
    ("pping_echo_requests_total", "counter", &["interface"]),
    ("pping_echo_replies_total", "counter", &["interface"]),
    ("pping_echo_requests_not_awaited_total", "counter", &["interface"]),
    ("pping_untimed_local_packets_total", "counter", &["interface"]),
    ("pping_untracked_packets_total", "counter", &["interface", "reason"]),
    ("pping_groups_refused_total", "counter", &["interface"]),
    ("pping_unaggregated_samples_total", "counter", &["interface"]),
    ("pping_flows", "gauge", &["interface", "family"]),
    ("pping_flows_opened_total", "counter", &["interface", "reason"]),
    ("pping_flows_closed_total", "counter", &["interface", "reason"]),
    ("pping_flows_pushed_out_total", "counter", &["interface"]),
    ("pping_map_entries", "gauge", &["map"]),
    ("pping_map_capacity", "gauge", &["map"]),
    ("pping_events_lost_total", "counter", &["kind"]),
    ("pping_packet_cost_seconds", "summary", &["interface", "program"]),
    ("pping_interface_up", "gauge", &["interface", "hook"]),
    ("pping_interface_expected", "gauge", &["interface"]),
    ("pping_build_info", "gauge", &["version", "revision"]),
    ("process_cpu_seconds_total", "counter", &[]),
    ("process_resident_memory_bytes", "gauge", &[]),
    ("process_open_fds", "gauge", &[]),
    ("process_start_time_seconds", "gauge", &[]),
];

/// Scrapes until `has` is true of the counters, which pping reads once a second.
fn scrape_when(topology: &Topology, what: &str, has: impl Fn(&Exposition) -> bool) -> Exposition {
    wait_until(what, || has(&scrape(topology.router())));
    scrape(topology.router())
}

/// Asserts that `promtool check metrics` accepts a page in the text format without any complaint.
pub(super) fn assert_promtool_accepts(page: &str) {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this test needs promtool, which `cargo xtask setup --tests` installs");
    promtool.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let said = promtool.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
    assert!(said.status.success() && text.is_empty(), "promtool says:\n{text}");
}

#[test]
fn promtool_finds_no_fault() {
    let topology = topology();
    let _pping = watch(topology.router(), Topology::WAN, &format!("{LISTEN} --rate-limit 0"));
    converse(&topology, 5);
    ping(topology.client(), Topology::SERVER_IPV6, "-c3 -i0.1");
    let exposition = scrape_when(&topology, "samples of both methods", |metrics| {
        ["tcp-ts", "icmp-echo"]
            .iter()
            .all(|method| metrics.sum("pping_rtt_seconds_count", &[("method", method)]) > Some(0.0))
    });
    assert_promtool_accepts(&exposition.0);
}

#[test]
fn names_types_and_labels_of_metrics_are_as_documented() {
    let topology = topology();
    let _pping = watch(topology.router(), Topology::WAN, LISTEN);
    ping(topology.client(), Topology::SERVER_IPV4, "-c1");
    let metrics =
        scrape_when(&topology, "a sample", |metrics| metrics.sum("pping_rtt_seconds_count", &[]).is_some());
    for (name, kind, labels) in CONTRACT {
        assert!(
            metrics.0.contains(&format!("\n# TYPE {name} {kind}\n"))
                || metrics.0.starts_with(&format!("# TYPE {name} {kind}\n")),
            "no {kind} {name}"
        );
        let value =
            if ["histogram", "summary"].contains(&kind) { format!("{name}_count") } else { name.to_owned() };
        let mut of_name = metrics.series().filter(|series| series.name == value).peekable();
        assert!(of_name.peek().is_some(), "no series of {name}");
        let labels: BTreeSet<&str> = labels.iter().copied().collect();
        for series in of_name {
            assert_eq!(series.labels.keys().copied().collect::<BTreeSet<_>>(), labels, "{series:?}");
        }
    }
    assert_label_values(&metrics);
    assert_buckets(&metrics);
    let page = fs::read_to_string(repository("docs/metrics.md")).unwrap();
    let families = metrics.0.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    for name in families.filter(|name| name.starts_with("pping_")) {
        assert!(page.contains(&format!("`{name}`")), "docs/metrics.md has no {name}");
    }
}

/// Dashboards and alerts select by these label values.
fn assert_label_values(metrics: &Exposition) {
    let has = |name: &str, key: &str, values: &[&str]| {
        for value in values {
            assert!(metrics.sum(name, &[(key, value)]).is_some(), "no {name}{{{key}=\"{value}\"}}");
        }
    };
    let methods = ["tcp-ts", "tcp-seq", "tcp-handshake", "icmp-echo", "dns", "quic-spin", "quic-handshake"];
    has("pping_samples_total", "method", &methods);
    has("pping_samples_total", "matched", &["ingress", "egress"]);
    has("pping_packets_total", "direction", &["ingress", "egress"]);
    has("pping_packets_total", "protocol", &["tcp", "udp", "icmp", "icmpv6", "other", "non_ip"]);
    has("pping_ecn_packets_total", "codepoint", &["not_ect", "ect0", "ect1", "ce"]);
    let reasons = ["non_ip", "fragment", "truncated", "unsupported", "no_timestamp", "map_full"];
    has("pping_untracked_packets_total", "reason", &reasons);
    let codes = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];
    has("pping_dns_responses_total", "rcode", &codes);
    has("pping_flows", "family", &["ipv4", "ipv6"]);
    has("pping_rtt_inflation_seconds", "percentile", &["50", "95"]);
    has("pping_group_bytes_total", "sender", &["timed", "replying"]);
    has("pping_packet_cost_seconds_sum", "program", &["pping_ingress", "pping_egress", "pping_xdp"]);
    has("pping_events_lost_total", "kind", &["rtt", "flow", "end", "output", "hdr_log"]);
    has("pping_build_info", "version", &[env!("CARGO_PKG_VERSION")]);
}

/// The histogram's bounds are powers of two of a second from 2^-20 to 2^6, and its buckets are cumulative.
fn assert_buckets(metrics: &Exposition) {
    let mut buckets: Vec<(f64, f64)> = metrics
        .series()
        .filter(|series| series.name == "pping_rtt_seconds_bucket")
        .map(|series| (series.labels["le"].parse().unwrap(), series.value))
        .collect();
    buckets.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let bounds: Vec<f64> = (-20..=6).map(|octave| 2_f64.powi(octave)).chain([f64::INFINITY]).collect();
    assert_eq!(buckets.iter().map(|(bound, _)| *bound).collect::<Vec<_>>(), bounds);
    assert!(buckets.iter().map(|(_, count)| *count).is_sorted(), "{buckets:?}");
    assert_eq!(buckets.last().map(|(_, count)| *count), metrics.sum("pping_rtt_seconds_count", &[]));
}

#[test]
fn counters_agree_with_the_traffic() {
    const PINGS: f64 = 5.0;
    /// Ethernet, IPv4 and ICMP headers, and ping's default payload.
    const FRAME: f64 = 14.0 + 20.0 + 8.0 + 56.0;
    let topology = topology();
    let pping = watch(topology.router(), Topology::WAN, &format!("{LISTEN} --rate-limit 0"));
    ping(topology.client(), Topology::SERVER_IPV4, &format!("-c{PINGS} -i0.1"));
    ping(topology.client(), Topology::SERVER_IPV6, &format!("-c{PINGS} -i0.1"));
    let echo = [INTERFACE, ("method", "icmp-echo"), ("matched", "ingress")];
    let metrics = scrape_when(&topology, "ten samples", |metrics| {
        metrics.sum("pping_samples_total", &echo) == Some(2.0 * PINGS)
    });
    for direction in ["ingress", "egress"] {
        let icmp = [INTERFACE, ("direction", direction), ("protocol", "icmp")];
        assert_eq!(metrics.sum("pping_packets_total", &icmp), Some(PINGS), "{direction}");
        assert_eq!(metrics.sum("pping_bytes_total", &icmp), Some(PINGS * FRAME), "{direction}");
        // Neighbour discovery is ICMPv6 too.
        let icmpv6 = [INTERFACE, ("direction", direction), ("protocol", "icmpv6")];
        assert!(metrics.sum("pping_packets_total", &icmpv6) >= Some(PINGS), "{direction}");
        let tcp = [INTERFACE, ("direction", direction), ("protocol", "tcp")];
        assert_eq!(metrics.sum("pping_packets_total", &tcp), Some(0.0), "{direction}");
    }
    assert_eq!(metrics.sum("pping_samples_total", &[]), Some(2.0 * PINGS));
    assert_eq!(metrics.sum("pping_rtt_seconds_count", &echo), Some(2.0 * PINGS));
    let round_trip = 2.0 * HOLD.as_secs_f64();
    assert!(metrics.sum("pping_rtt_seconds_sum", &echo) >= Some(2.0 * PINGS * round_trip));
    let below = [echo[0], echo[1], ("le", "0.0078125")];
    assert_eq!(metrics.sum("pping_rtt_seconds_bucket", &below), Some(0.0), "faster than the wire");
    let lowest = metrics.sum("pping_min_rtt_seconds", &echo).unwrap();
    assert!((round_trip..10.0).contains(&lowest), "{lowest}");
    assert_eq!(metrics.sum("pping_events_lost_total", &[]), Some(0.0));
    let capacity = metrics.sum("pping_map_capacity", &[("map", "FLOWS_V4")]);
    assert_eq!(capacity, Some(131_072.0));

    let stderr_then = ok(pping.stderr());
    let records = records(&interrupt(pping));
    assert_eq!(samples(&records), 10, "{stderr_then}");
}

#[test]
fn flows_open_are_followed_and_close() {
    /// Two conversations, each with a handshake, three segments with their echoes, and the end.
    const SEGMENTS: f64 = 2.0 * (3.0 + 6.0 + 3.0);
    let topology = topology();
    let _pping = watch(topology.router(), Topology::WAN, &format!("{LISTEN} --max-flows 1000"));
    converse(&topology, 3);
    // The last segments may still be on the wire.
    let metrics = scrape_when(&topology, "two flows close", |metrics| {
        metrics.sum("pping_flows_closed_total", &[INTERFACE, ("reason", "fin")]) >= Some(2.0)
            && metrics.sum("pping_packets_total", &[INTERFACE, ("protocol", "tcp")]) >= Some(SEGMENTS)
    });
    let opened = |reason| metrics.sum("pping_flows_opened_total", &[INTERFACE, ("reason", reason)]);
    assert!(opened("syn") >= Some(2.0), "{:?}", opened("syn"));
    for (family, map) in [("ipv4", "FLOWS_V4"), ("ipv6", "FLOWS_V6")] {
        let flows = metrics.sum("pping_flows", &[INTERFACE, ("family", family)]);
        assert!(flows >= Some(1.0), "{flows:?} of {family}");
        assert_eq!(metrics.sum("pping_map_entries", &[("map", map)]), flows);
        assert_eq!(metrics.sum("pping_map_capacity", &[("map", map)]), Some(1000.0));
    }
}

#[test]
fn openmetrics_is_served_on_request() {
    let topology = topology();
    let _pping = watch(topology.router(), Topology::WAN, LISTEN);
    // The header that Prometheus sends.
    let accept = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                  text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    let open = get(topology.router(), PORT, "/metrics", accept).unwrap();
    assert_eq!(
        (open.status, open.content_type.split(';').next()),
        (200, Some("application/openmetrics-text"))
    );
    assert!(open.content_type.contains("version=1.0.0"), "{}", open.content_type);
    assert!(open.body.ends_with("\n# EOF\n"), "{}", open.body);
    assert!(open.body.contains("\n# TYPE pping_samples counter\n"), "{}", open.body);
    for accept in ["text/plain", "*/*", "text/html,*/*;q=0.8"] {
        let classic = get(topology.router(), PORT, "/metrics", accept).unwrap();
        assert_eq!(classic.content_type.split(';').next(), Some("text/plain"), "{accept}");
        assert!(classic.content_type.contains("version=0.0.4"), "{}", classic.content_type);
        assert!(!classic.body.contains("# EOF"), "{accept}");
        assert!(classic.body.contains("\n# TYPE pping_samples_total counter\n"), "{}", classic.body);
    }
}

#[test]
fn health_readiness_and_a_start_page_are_served() {
    let topology = topology();
    let mut pping = watch(topology.router(), Topology::WAN, LISTEN);
    wait_until("it is ready", || is_ready(topology.router()));
    let page = |path| get(topology.router(), PORT, path, "text/html,*/*").unwrap();
    assert_eq!(page("/healthz").status, 200);
    let start = page("/");
    assert_eq!((start.status, start.content_type.split(';').next()), (200, Some("text/html")));
    for link in ["href=\"/metrics\"", "href=\"/healthz\"", "href=\"/readyz\""] {
        assert!(start.body.contains(link), "no {link} in {}", start.body);
    }
    assert_eq!(page("/nothing-here").status, 404);
    ok(pping.stop(Signal::SIGTERM, ENDING));
    assert!(get(topology.router(), PORT, "/healthz", "*/*").is_none(), "it listens on after its end");
}

#[test]
fn many_clients_can_scrape_at_once() {
    let topology = topology();
    let _pping = watch(topology.router(), Topology::WAN, &format!("{LISTEN} --rate-limit 0"));
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    let ask = || {
        let mut last = 0.0;
        for _ in 0..10 {
            let metrics = scrape(topology.router());
            let count = metrics.sum("pping_rtt_seconds_count", &[]).unwrap_or(0.0);
            assert!(count >= last, "a counter went back from {last} to {count}");
            last = count;
            let names: BTreeMap<&str, usize> = metrics.series().fold(BTreeMap::new(), |mut names, series| {
                *names.entry(series.name).or_default() += 1;
                names
            });
            assert_eq!(names.get("process_start_time_seconds"), Some(&1), "cut short: {}", metrics.0);
        }
    };
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(ask);
        }
    });
}

#[test]
fn a_full_map_is_counted_and_warned_of_at_most_once_a_minute() {
    let topology = topology();
    let start = Instant::now();
    let mut pping = watch(topology.router(), Topology::WAN, &format!("{LISTEN} --max-flows 1"));
    let warnings = |stderr: &str| stderr.lines().filter(|line| line.contains("a flow table is full")).count();
    while start.elapsed() < Duration::from_secs(3) {
        // Each ping process has its own identifier, so each is a separate flow.
        ping(topology.client(), Topology::SERVER_IPV4, "-c1");
    }
    wait_until("a warning", || {
        ping(topology.client(), Topology::SERVER_IPV4, "-c1");
        warnings(&ok(pping.stderr())) >= 1
    });
    let full = [INTERFACE, ("reason", "map_full")];
    let metrics = scrape_when(&topology, "the refusals are counted", |metrics| {
        metrics.sum("pping_untracked_packets_total", &full) >= Some(10.0)
    });
    assert_eq!(metrics.sum("pping_map_entries", &[("map", "FLOWS_V4")]), Some(1.0));
    ok(pping.stop(Signal::SIGINT, ENDING));
    let stderr = ok(pping.stderr());
    let warned = warnings(&stderr) as u64;
    assert!(warned <= start.elapsed().as_secs() / 60 + 1, "{stderr}");
    assert!(stderr.contains("raise --max-flows"), "{stderr}");
}

#[test]
fn recordings_skipped_for_want_of_room_are_warned_of_once() {
    let topology = topology();
    // Neighbours are resolved before replies are lost.
    ping(topology.client(), Topology::SERVER_IPV4, "-c2 -i0.2");
    topology.wire().set_fate(Leg::Backward, |_| Fate::Drop);
    let mut pping = watch(topology.router(), Topology::WAN, &format!("{LISTEN} --rate-limit 0"));
    let full = [INTERFACE, ("reason", "slots_full")];
    let is_counted = |least: f64| {
        // More requests than can be under way at a time. No reply comes, so ping fails.
        let mut ping = topology.client().command("ping");
        ping.args(["-c40", "-i0.01", "-W1"]).arg(Topology::SERVER_IPV4.to_string());
        assert!(run(&mut ping).is_err());
        scrape(topology.router()).sum("pping_recordings_skipped_total", &full) >= Some(least)
    };
    let warnings = |stderr: &str| {
        stderr.lines().filter(|line| line.contains("WARN") && line.contains("slots_full")).count()
    };
    wait_until("requests are given up", || is_counted(20.0));
    wait_until("the warning", || warnings(&ok(pping.stderr()).clone()) == 1);
    wait_until("more are given up", || is_counted(60.0));
    ok(pping.stop(Signal::SIGINT, ENDING));
    let stderr = ok(pping.stderr());
    assert_eq!(warnings(&stderr), 1, "{stderr}");
    assert!(stderr.contains("look for what is not answered: loss, or flows of which only one"), "{stderr}");
}

#[test]
fn an_exhausted_pool_is_warned_of_once() {
    let topology = topology();
    let options = format!("{LISTEN} --rate-limit 0 --max-pending 1");
    let mut pping = watch(topology.router(), Topology::WAN, &options);
    // Each ping is a flow, and only one of them finds room.
    let pings = [(); 3].map(|()| endless_ping(topology.client(), Topology::SERVER_IPV4));
    let skipped = || {
        let labels = [INTERFACE, ("reason", "no_pending")];
        scrape(topology.router()).sum("pping_recordings_skipped_total", &labels).unwrap_or(0.0)
    };
    wait_until("requests are not recorded", || skipped() > 0.0);
    let start = Instant::now();
    wait_until("more are not recorded, seconds later", || {
        start.elapsed() > Duration::from_secs(3) && skipped() > 5.0
    });
    drop(pings);
    ok(pping.stop(Signal::SIGINT, ENDING));
    let stderr = ok(pping.stderr());
    assert_eq!(stderr.matches("no_pending").count() - 1, 1, "the summary says it too: {stderr}");
}
