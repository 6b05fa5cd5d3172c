//! `pping report`: its figures are those of the history, and its page needs nothing else.

use std::{
    fs,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use pping::{
    config::{HistoryKeep, HistoryLimits},
    groups::{GroupName, SeriesName},
    history::{HistoryWriter, Settings},
    quality,
};
use pping_common::{limits::SECOND, method::Method, parse::Direction, series::SeriesCounts};
use pping_lab::{Namespace, Signal, Topology};
use serde_json::{Value, json};

use super::{Browser, HOSTILE};
use crate::agent::{
    http::{LISTEN, scrape},
    monitor::{ENDING, PPING, ok, ping, repository, tool, topology, wait_until, watch},
};

/// A midnight, seconds since the Unix epoch.
const MIDNIGHT: u64 = 1_795_651_200;

const HOUR: u64 = 3600;

/// Two weeks.
const HOURS: u64 = 14 * 24;

fn name(label: &str, site: &str) -> SeriesName {
    let columns = vec![("site".into(), site.into())];
    let group = Arc::new(GroupName { columns, ..GroupName::named(label) });
    SeriesName {
        interface: Some("wan0".into()),
        method: Method::TcpTs,
        matched: Some(Direction::Ingress),
        side: None,
        group,
    }
}

/// What a group measures in an hour: around `ms`, more in the evening, and with two packets in 100 retransmitted.
fn counts(ms: u64, hour: u64) -> SeriesCounts {
    let evening = if (18..22).contains(&(hour % 24)) { 2 } else { 1 };
    let mut counts = SeriesCounts::EMPTY;
    for number in 0..50 {
        counts.sample((ms * evening * 1_000_000) + number * 10_000, 0);
    }
    counts.sent.packets = 100;
    counts.sent.retransmissions = 2;
    counts.received.packets = 100;
    counts.received.bytes = 1_000_000 * evening;
    counts
}

/// Writes two weeks, a minute in each hour. `slower` is fast in the first week only, and nothing is measured in an hour of the
/// second.
fn write(directory: &Path) {
    let keep = HistoryKeep([3, 60, 730].map(|days| Duration::from_hours(days * 24)));
    let settings =
        Settings { directory: directory.to_owned(), limits: HistoryLimits { disk: 1 << 30, keep } };
    let profiles = quality::load(None).unwrap();
    let mut writer = HistoryWriter::start(settings, profiles, MIDNIGHT * SECOND).unwrap();
    for hour in 0..HOURS {
        let slower = if hour < HOURS / 2 { 20 } else { 60 };
        let groups = [
            (HOSTILE[0], "west", 90),
            ("slower", "west", slower),
            ("fast", "east", 5),
            ("middle", "east", 30),
        ];
        let slices: Vec<_> =
            groups.into_iter().map(|(label, site, ms)| (name(label, site), counts(ms, hour))).collect();
        let is_quiet = hour == HOURS - 30;
        if !is_quiet {
            writer.add(&slices);
        }
        let before = writer.state().rows.load(Ordering::Relaxed);
        writer.tick((MIDNIGHT + hour * HOUR + 60) * SECOND);
        writer.tick((MIDNIGHT + (hour + 1) * HOUR) * SECOND);
        let rows = if is_quiet { 0 } else { slices.len() as u64 };
        wait_until("the minute is written", || writer.state().rows.load(Ordering::Relaxed) >= before + rows);
    }
    assert_eq!(writer.stop(), 0);
}

/// Runs pping, in the zone of Greenwich.
fn pping(arguments: &[&str]) -> Result<String, String> {
    let output = std::process::Command::new(PPING).args(arguments).env("TZ", "UTC").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn as_json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn labels(rows: &Value) -> Vec<&str> {
    rows.as_array().unwrap().iter().map(|row| row["group"].as_str().unwrap()).collect()
}

#[test]
fn the_report_of_a_week_agrees_with_the_history_and_needs_no_network() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let history = directory.path().join("history");
    write(&history);
    let end = (MIDNIGHT + HOURS * HOUR).to_string();
    let fixed = ["--history", history.to_str().unwrap(), "--to", &end];
    let run = |arguments: &[&str]| pping(&[arguments, &fixed].concat());
    let report = as_json(&run(&["report", "--week", "--json"]).unwrap());

    // Its sums are those that the history has of the same week.
    let from = (MIDNIGHT + HOURS / 2 * HOUR).to_string();
    let kept = as_json(&run(&["history", "--json", "--step", "1h", "--from", &from]).unwrap());
    let cells = kept["series"][0]["cells"].as_array().unwrap();
    assert_eq!(report["hours"].as_array().unwrap().len(), cells.len());
    assert_eq!(cells.len() as u64, HOURS / 2 - 1, "without the hour in which nothing was measured");
    for (hour, cell) in report["hours"].as_array().unwrap().iter().zip(cells) {
        assert_eq!(
            (&hour["time"], &hour["rtt"], &hour["sent"]),
            (&cell["time"], &cell["rtt"], &cell["sent"])
        );
    }
    let counts = cells.iter().map(|cell| cell["rtt"]["count"].as_u64().unwrap());
    assert_eq!(report["places"][0]["rtt"]["count"], counts.sum::<u64>());
    let worst = as_json(&run(&["history", "--json", "--worst", "4", "--from", &from]).unwrap());
    assert_eq!(labels(&report["worst"]), labels(&worst));
    assert_eq!(labels(&report["worst"]), [HOSTILE[0], "slower", "middle", "fast"]);
    assert_eq!(labels(&report["best"])[0], "fast");
    assert_eq!((labels(&report["worse"]), labels(&report["better"])), (vec!["slower"], vec![]));
    let evening = &report["hours_of_day"][19];
    let morning = &report["hours_of_day"][7];
    assert_eq!(evening["hour"], 19);
    assert!(evening["bits_per_second"].as_f64() > morning["bits_per_second"].as_f64(), "{evening} {morning}");

    // A site has its groups only, and an unknown one is answered with those that there are.
    let east = as_json(&run(&["report", "--day", "--json", "--site", "east"]).unwrap());
    assert_eq!(labels(&east["worst"]), ["middle", "fast"]);
    let refusal = run(&["report", "--site", "north"]).unwrap_err();
    assert!(refusal.contains("the site `north`") && refusal.contains("there are east, west"), "{refusal}");
    let refusal = run(&["report", "--to", "2020-01-01"]);
    assert!(refusal.is_err(), "an option given twice");

    is_explained(&history);

    let page = directory.path().join("report.html");
    fs::write(&page, run(&["report", "--week"]).unwrap()).unwrap();
    is_complete(&page, "week");
    fs::write(&page, run(&["report", "--day"]).unwrap()).unwrap();
    is_complete(&page, "day");
}

/// A time that is not kept, or not as finely, is answered with what there is.
fn is_explained(history: &Path) {
    let directory = history.to_str().unwrap();
    let day = (MIDNIGHT + 24 * HOUR).to_string();
    let fixed = ["history", "--history", directory, "--csv", "--to", &day, "--from"];
    let from = MIDNIGHT.to_string();
    let run = |arguments: &[&str]| {
        let output = std::process::Command::new(PPING).args(arguments).env("TZ", "UTC").output().unwrap();
        [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap())
    };
    let [csv, said] = run(&[&fixed[..], &[&from, "--step", "1m"]].concat());
    assert!(said.contains("not kept in intervals of 1m; these are of 5m"), "{said}");
    assert!(csv.lines().skip(1).all(|line| line.contains(",300000000000,")), "{csv}");
    let [_, said] = run(&[&fixed[..], &[&from]].concat());
    assert_eq!(said, "", "the step was not asked for");
    // Sorted into an hour, so that there are measurements in the minutes before it.
    let at = (MIDNIGHT + HOURS / 2 * HOUR + 300).to_string();
    let [screen, said] = run(&["top", "--history", directory, "--once", "--at", &at]);
    assert!(screen.starts_with("the past, until 2026-12-03 00:05\n"), "{screen}{said}");
    let [screen, said] = run(&["top", "--history", directory, "--once", "--at", "2020-01-01"]);
    assert_eq!(screen, "");
    assert!(
        said.contains("before 2020-01-01 00:00; the history is of 2026-11-26 00:00 to 2026-12-1"),
        "{said}"
    );
}

/// Opens a page in a browser without a network: it requests nothing, runs nothing, and axe finds nothing.
fn is_complete(page: &Path, name: &str) {
    let host = ok(Namespace::new("report"));
    let browser = Browser::start(&host);
    browser.protocol("Network.enable", &json!({}));
    browser.open(&format!("file://{}", page.display()));
    browser.wait_for("document.querySelectorAll('svg path').length === 3");
    assert_eq!(browser.value("performance.getEntriesByType('resource').length"), 0, "{name}");
    let active =
        "document.querySelectorAll('script, img, link, iframe, [onerror], [onload], a[href]').length";
    assert_eq!(browser.value(active), 0, "{name}");
    let text = browser.value("document.body.textContent");
    assert!(text.as_str().unwrap().contains(HOSTILE[0]), "{name}: labels stay text: {text}");
    let axe = repository("pping/page/vendor/axe.min.js");
    let axe = fs::read_to_string(axe).expect("`cargo xtask setup --tests` fetches axe-core");
    for width in [360, 1280] {
        browser.resize(width);
        let found = browser.run(
            &axe,
            "axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations.map((it) => \
             `${it.impact} ${it.id}: ${it.nodes.map((node) => node.target.join(' ')).join(', ')}`))",
        );
        assert_eq!(found, json!([]), "{name} at {width}");
    }
    assert_eq!(browser.console(), [""; 0], "{name}");
}

#[test]
fn a_report_counts_what_was_not_measured() {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let history = directory.path().join("history");
    let arguments = format!("{LISTEN} --format none --history {}", history.display());
    let mut pping = watch(topology.router(), Topology::WAN, &arguments);
    let untracked = |reason: &str| {
        scrape(topology.router()).sum("pping_untracked_packets_total", &[("reason", reason)]).unwrap_or(0.0)
            as u64
    };
    wait_until("counters are served", || scrape(topology.router()).sum("pping_packets_total", &[]).is_some());
    ping(topology.client(), Topology::SERVER_IPV4, "-c120 -i0.002");
    // The later two fragments of a packet have no ports.
    ping(topology.client(), Topology::SERVER_IPV4, "-c20 -i0.002 -s3000");
    let counted = 20 * 2 * 2;
    wait_until("fragments", || untracked("fragment") == counted);
    ok(pping.stop(Signal::SIGTERM, ENDING));
    let (succeeded, text) =
        tool(PPING, &["report", "--day", "--json", "--history", history.to_str().unwrap()]);
    assert!(succeeded, "{text}");
    let report = as_json(&text);
    let counts = &report["counts"];
    assert!(counts["untracked.fragment"] == counted, "{counted}: {counts}");
    assert!(
        counts["packets"].as_u64().unwrap() >= 240 && counts["seconds"].as_u64().unwrap() > 0,
        "{counts}"
    );
    assert_eq!(counts["samples"], report["places"][0]["rtt"]["count"], "{report}");
}
