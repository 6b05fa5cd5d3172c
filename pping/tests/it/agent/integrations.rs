//! The configurations in `docs/integrations.md` work.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    path::Path,
};

use pping_lab::{Namespace, Process, Topology};
use serde_json::Value;

use super::{
    documents::{block, replaced},
    http::{LISTEN, get},
    monitor::{converse, endless_ping, interrupt, ok, ping, repository, tool, topology, wait_until, watch},
};

const PAGE: &str = "docs/integrations.md";

/// The port of Zabbix's agent.
const ZABBIX: u16 = 10050;

/// Parts of the blocks that these tests run. Other tests run the blocks about `ClickHouse` and OTLP.
const TRIED: [&str; 7] = [
    "scrape_interval: 15s",
    "prometheus --config.file",
    "victoria-metrics -promscrape.config",
    "pping -i wan0 --aggregate",
    "pping -r trace.pcap",
    "UserParameter=",
    "otlp-interval =",
];

#[test]
fn each_block_is_tried_or_marked() {
    let page = fs::read_to_string(repository(PAGE)).unwrap();
    let parts: Vec<&str> = page.split("```").collect();
    assert!(parts.len() > 2 * TRIED.len() && parts.len() % 2 == 1, "a fence of {PAGE} is open");
    for pair in parts[1..].chunks(2) {
        let [block, after] = pair else { panic!("a fence of {PAGE} is open") };
        let is_tried = TRIED.iter().any(|part| block.contains(part));
        let is_marked = after.trim_start().starts_with("Not tried");
        assert!(is_tried != is_marked, "tried: {is_tried}, marked: {is_marked}: {block}");
    }
}

/// Whether a metrics database at this port knows a histogram of pping.
fn knows_histograms(host: &Namespace, port: u16) -> bool {
    let path = "/api/v1/series?match%5B%5D=pping_rtt_seconds_bucket";
    get(host, port, path, "application/json").is_some_and(|answer| {
        let answer: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        answer["data"].as_array().is_some_and(|series| series.iter().any(|it| it["job"] == "pping"))
    })
}

/// Starts the command from a block of the page in a folder.
fn start(host: &Namespace, part: &str, directory: &Path) -> Process {
    let mut shell = host.command("sh");
    shell.current_dir(directory).args(["-c", &format!("exec {}", block(PAGE, "sh", part))]);
    ok(Process::spawn(shell))
}

#[test]
fn prometheus_and_victoria_metrics_scrape_as_the_page_says() {
    let topology = topology();
    let router = topology.router();
    let _pping = watch(router, Topology::WAN, &format!("--rate-limit 0 --format none {LISTEN}"));
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    for (part, port) in [("prometheus --config.file", 9090), ("victoria-metrics -promscrape", 8428)] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("prometheus.yml");
        let configuration = block(PAGE, "yaml", "scrape_interval: 15s");
        fs::write(&file, replaced(&configuration, "15s", "1s")).unwrap();
        let (is_valid, said) = tool("promtool", &["check", "config", file.to_str().unwrap()]);
        assert!(is_valid, "{said}");
        let mut store = start(router, part, directory.path());
        wait_until(part, || {
            assert!(ok(store.status()).is_none(), "{part}: {}", ok(store.stderr()));
            knows_histograms(router, port)
        });
    }
}

/// Asks an agent of Zabbix for the value of a key, as its server does. `None` if it does not listen yet.
///
/// # Panics
/// If the agent has no value.
#[track_caller]
fn zabbix_value(host: &Namespace, key: &str) -> Option<String> {
    /// What begins a message: its name and version, before the length of what follows.
    const MAGIC: &[u8] = b"ZBXD\x01";
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ZABBIX));
    let mut stream = ok(host.enter(|| TcpStream::connect(address))).ok()?;
    let length = (key.len() as u64).to_le_bytes();
    stream.write_all(&[MAGIC, &length, key.as_bytes()].concat()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let value = answer.strip_prefix(MAGIC).unwrap_or_else(|| panic!("{key}: {answer:?}"));
    let value = String::from_utf8_lossy(&value[size_of_val(&length)..]).into_owned();
    assert!(!value.starts_with("ZBX_NOTSUPPORTED"), "{key}: {value}");
    Some(value)
}

#[test]
fn zabbix_finds_each_series_and_its_percentile() {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let options = format!("--aggregate 1s --group-by /24,/48 --rate-limit 0 -w {}", at("records.jsonl"));
    let pping = watch(router, Topology::WAN, &format!("-i {} {options}", Topology::LAN));
    converse(&topology, 20);
    for server in [IpAddr::from(Topology::SERVER_IPV4), Topology::SERVER_IPV6.into()] {
        ping(topology.client(), server, "-c5 -i0.1");
    }
    interrupt(pping);
    // The side is part of a series too, and so is the method.
    let mut expected = BTreeMap::new();
    let records = fs::read_to_string(at("records.jsonl")).unwrap();
    // pping may be writing a line at the moment.
    fs::write(at("records.jsonl"), format!("{records}{{\"schema_version\":1,\"type\":\"aggr")).unwrap();
    for line in records.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        if record["count"].as_u64() > Some(0) {
            let text = |name: &str| record[name].as_str().unwrap().to_owned();
            let side = if record["match_on_egress"] == true { "behind" } else { "beyond" };
            let series = [text("group"), text("interface"), text("method"), side.to_owned()];
            expected.insert(series, record["p95"].as_f64().unwrap() / 1e9);
        }
    }
    let values = |part: usize| expected.keys().map(|series| &series[part]).collect::<BTreeSet<_>>().len();
    assert!([0, 1, 2, 3].iter().all(|&part| values(part) > 1), "{expected:#?}");

    let block = block(PAGE, "ini", "UserParameter=");
    fs::write(at("pping.conf"), replaced(&block, "/var/log/pping/records.jsonl", &at("records.jsonl")))
        .unwrap();
    let configuration = format!(
        "Server=127.0.0.1\nListenIP=127.0.0.1\nAllowRoot=1\nLogType=console\nTimeout=10\nPidFile={}\nInclude={}\n",
        at("pid"),
        at("pping.conf")
    );
    fs::write(at("agentd.conf"), configuration).unwrap();
    let mut zabbix = router.command("zabbix_agentd");
    zabbix.args(["--foreground", "--config", &at("agentd.conf")]);
    let zabbix = Process::spawn(zabbix);
    let mut zabbix = zabbix.expect("zabbix_agentd, which `cargo xtask setup --tests` installs");
    let mut found = String::new();
    wait_until("the agent answers", || {
        assert!(ok(zabbix.status()).is_none(), "{}{}", ok(zabbix.stdout()), ok(zabbix.stderr()));
        zabbix_value(router, "pping.series").is_some_and(|value| {
            found = value;
            true
        })
    });
    let found: Vec<BTreeMap<String, String>> = serde_json::from_str(&found).unwrap();
    let found: BTreeSet<[String; 4]> = found
        .into_iter()
        .map(|series| ["{#GROUP}", "{#INTERFACE}", "{#METHOD}", "{#SIDE}"].map(|name| series[name].clone()))
        .collect();
    assert_eq!(found, expected.keys().cloned().collect());
    for ([group, interface, method, side], p95) in &expected {
        let key = format!(r#"pping.p95["{group}",{interface},{method},{side}]"#);
        let value: f64 = zabbix_value(router, &key).unwrap().parse().unwrap();
        assert!((value - p95).abs() < 1e-9, "{key}: {value}, not {p95}");
    }
}
