//! `--history`, read by the command, by the API and by another engine.

use std::{net::SocketAddr, path::Path, process::Command, thread, time::Duration};

use jiff::Timestamp;
use pping_lab::{Signal, Topology};
use serde_json::Value;

use super::{
    api,
    http::{LISTEN, PORT, get, scrape},
    monitor::{ENDING, PPING, converse, ok, ping, tool, topology, wait_until, watch},
};
use crate::{
    clickhouse::{Engine, Parameters},
    end_to_end::dns,
    engines::{self, reference::Reference},
};

/// The samples of all cells of an answer.
fn samples(answer: &Value) -> u64 {
    let series = answer["series"].as_array().unwrap();
    let cells = series.iter().flat_map(|it| it["cells"].as_array().unwrap());
    cells.filter_map(|cell| cell["rtt"]["count"].as_u64()).sum()
}

/// What `pping history` prints as JSON.
fn kept(directory: &Path, arguments: &[&str]) -> Value {
    let directory = directory.to_str().unwrap();
    let fixed = ["history", "--json", "--from", "-1h", "--history", directory];
    let (succeeded, text) = tool(PPING, &[&fixed, arguments].concat());
    assert!(succeeded, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Measures until there are some samples, ends pping, and returns how many there were.
fn measure(topology: &Topology, directory: &Path, end: Signal) -> u64 {
    let arguments = format!(
        "{LISTEN} --format none --rate-limit 0 --group-by /32,/128 --history {}",
        directory.display()
    );
    let mut pping = watch(topology.router(), Topology::WAN, &arguments);
    let counted = || scrape(topology.router()).sum("pping_samples_total", &[]).unwrap_or(0.0) as u64;
    let before = counted();
    let ping_both = |how: &str| {
        ping(topology.client(), Topology::SERVER_IPV4, how);
        ping(topology.client(), Topology::SERVER_IPV6, how);
    };
    ping_both("-c20 -i0.01");
    wait_until("the samples are counted", || {
        // On a busy machine `ping` sends bursts, of which some are skipped.
        let is_enough = counted() >= before + 40;
        if !is_enough {
            ping_both("-c2 -i0.05");
        }
        is_enough
    });
    let measured = counted();
    let stopped = pping.stop(end, ENDING);
    assert_eq!(stopped.is_ok(), end != Signal::SIGKILL, "{stopped:?}");
    measured
}

#[test]
fn what_was_measured_is_kept_for_each_reader() {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let history = directory.path().join("history");
    let first = measure(&topology, &history, Signal::SIGTERM);
    // Without the present minute, which a kill loses, and nothing else.
    measure(&topology, &history, Signal::SIGKILL);
    let second = measure(&topology, &history, Signal::SIGTERM);
    let all = kept(&history, &[]);
    assert!(samples(&all) >= first + second, "{first} + {second}: {all}");
    let host = kept(&history, &["--group", &format!("{}/32", Topology::SERVER_IPV4)]);
    assert!(samples(&host) >= 40 && samples(&host) < samples(&all), "{host}");

    let engine = Engine::with_tables(None);
    let files = format!("{}/1m/**/*.parquet", history.display());
    let sum = engine.run(&format!("SELECT sum(count) FROM file('{files}', Parquet)"), &Parameters::new());
    assert_eq!(sum.trim().parse(), Ok(samples(&all)), "{sum}");

    // Another pping on the same directory answers for the earlier ones.
    let arguments = format!("{LISTEN} --format none --history {}", history.display());
    let mut pping = watch(topology.router(), Topology::WAN, &arguments);
    let ask = |query: &str| get(topology.router(), PORT, &format!("/api/v1/history?{query}"), "*/*").unwrap();
    let answer = ask("from=-1h&method=icmp-echo");
    assert_eq!((answer.status, answer.content_type.as_str()), (200, "application/json"));
    assert_eq!(samples(&serde_json::from_str(&answer.body).unwrap()), samples(&all));
    for (query, text) in [
        ("from=yesterday", "from: `yesterday` is no time; write `now`"),
        ("from=now&to=-1h", "from is not before to"),
        ("step=90s", "step: `90s` is no length that is kept; give whole minutes"),
        ("group=nobody&since=-1h", "unknown parameter `since`"),
    ] {
        let refusal = ask(query);
        assert!(refusal.status == 400 && refusal.body.contains(text), "{query}: {}", refusal.body);
    }
    let router = topology.router();
    let worst = api::answer(router, "/history/worst?from=-1h&method=icmp-echo", "WorstOfRange");
    let groups = worst["groups"].as_array().unwrap();
    let counted: u64 = groups.iter().map(|it| it["series"]["rtt"]["count"].as_u64().unwrap()).sum();
    assert_eq!((groups.len(), counted), (2, samples(&all)), "{worst}");
    let refusal = api::request(router, "/history/worst?limit=101");
    assert!(refusal.status == 400 && refusal.body.contains("limit: at most 100"), "{}", refusal.body);
    // The API answers before pping is ready; counters are served from then on.
    wait_until("counters are served", || {
        let lost = scrape(topology.router()).sum("pping_history_rows_total", &[("outcome", "lost")]);
        assert!(matches!(lost, None | Some(0.0)), "{lost:?}");
        lost.is_some()
    });
    // A second writer is refused, and measures all the same.
    let arguments = format!("--format none --history {}", history.display());
    let mut other = watch(topology.router(), Topology::LAN, &arguments);
    wait_until("the other one names the first", || {
        ok(other.stderr()).contains("another pping writes to the history in")
    });
    ok(other.stop(Signal::SIGTERM, ENDING));
    ok(pping.stop(Signal::SIGTERM, ENDING));
}

#[test]
fn without_a_history_the_api_says_how_to_get_one() {
    let topology = topology();
    let mut pping = watch(topology.router(), Topology::WAN, &format!("{LISTEN} --format none"));
    let answer = get(topology.router(), PORT, "/api/v1/history?from=-24h", "*/*").unwrap();
    assert_eq!(answer.status, 400);
    assert!(
        answer.body.contains("this pping keeps no history; start it with --history DIR"),
        "{}",
        answer.body
    );
    ok(pping.stop(Signal::SIGTERM, ENDING));
    let read = Command::new(PPING).args(["history", "--history", "/nonexistent"]).output().unwrap();
    assert_eq!(read.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&read.stderr).contains("there is no history in /nonexistent"));
}

/// The present, seconds since the epoch.
fn now() -> u64 {
    Timestamp::now().as_second().try_into().unwrap()
}

#[test]
fn engines_answer_questions_about_real_packets() {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let history = directory.path().join("host=gw1");
    let arguments =
        format!("--format none --rate-limit 0 --group-by /32,/128 --history {}", history.display());
    let mut pping = watch(topology.router(), Topology::WAN, &arguments);
    let _resolver = dns::resolver(topology.server(), 53);
    let traffic = || {
        converse(&topology, 40);
        ping(topology.client(), Topology::SERVER_IPV4, "-c20 -i0.01");
        ping(topology.client(), Topology::SERVER_IPV6, "-c20 -i0.01");
        dns::ask(topology.client(), SocketAddr::new(Topology::SERVER_IPV4.into(), 53), 1, 5);
    };
    traffic();
    let begun = now();
    // The change is at the end of a minute, so that there is traffic in minutes before it and after it.
    let change = (begun / 60 + 1) * 60;
    thread::sleep(Duration::from_secs(change.saturating_sub(now()) + 1));
    traffic();
    ok(pping.stop(Signal::SIGTERM, ENDING));

    let server = format!("{}/32", Topology::SERVER_IPV4);
    let groups = [
        server.clone(),
        format!("{}/128", Topology::SERVER_IPV6),
        format!("{}/32", Topology::CLIENT_IPV4),
        format!("{}/128", Topology::CLIENT_IPV6),
    ];
    let asked = Parameters::from([
        // The night lasts from yesterday evening to midnight, so it includes the present.
        ("night", engines::text(begun - 24 * 3600)[..10].to_owned()),
        ("hours", "31".to_owned()),
        ("least", "5".to_owned()),
        ("customer", server),
        ("month", engines::text(begun)[..10].to_owned()),
        ("change", engines::text(change)),
        ("from", engines::text(begun - 3600)),
        ("until", engines::text(begun + 3600)),
        ("times", "1.0001".to_owned()),
    ]);
    let range = (begun - 3600, begun + 3600);
    let reference = Reference::read(&[(Some("gw1"), &history)], &groups, "1m", range);
    let files = format!("{}/host=*/1m/**/*.parquet", directory.path().display());
    engines::assert_answers(&files, 1, &reference, &asked);
}
