//! Scores of a running pping: metrics and API agree, and a reload changes the profiles.

use std::{fs, path::Path};

use pping_lab::{Namespace, Signal, Topology};
use serde_json::Value;

use super::{
    http::{LISTEN, PORT, get, scrape},
    monitor::{endless_ping, interrupt, ok, topology, wait_until, watch},
};

/// Writes a profile by which the pings' latency, with each way held back, is between optimal and unacceptable.
fn profile(path: &Path, name: &str, unacceptable: &str) {
    let text = format!(
        "[[profile]]\nname = \"{name}\"\nsamples = 5\n\
         latency = [{{ percentile = 90, optimal = \"1us\", unacceptable = \"{unacceptable}\" }}]\n"
    );
    fs::write(path, text).unwrap();
}

/// Returns the API's score of the pings, in percent.
fn score(host: &Namespace, profile: &str) -> Option<u64> {
    let answer = get(host, PORT, "/api/v1/groups?sort=quality&order=asc&matched=ingress", "*/*")?;
    let answer: Value = serde_json::from_str(&answer.body).unwrap();
    answer["groups"][0]["series"][0]["quality"][profile].as_u64()
}

/// Returns the metrics' score of the pings.
fn ratio(host: &Namespace, profile: &str) -> Option<f64> {
    scrape(host).sum("pping_quality_ratio", &[("profile", profile), ("matched", "ingress")])
}

#[test]
fn scores_agree_and_reload_takes_new_profiles() {
    let (topology, directory) = (topology(), tempfile::tempdir().unwrap());
    let (router, path) = (topology.router(), directory.path().join("quality.toml"));
    profile(&path, "slow", "10s");
    let arguments = format!("--rate-limit 0 {LISTEN} --quality {}", path.display());
    let mut pping = watch(router, Topology::WAN, &arguments);
    assert_eq!((score(router, "slow"), ratio(router, "slow")), (None, None), "there is no sample yet");
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    wait_until("a score", || score(router, "slow").is_some());
    wait_until("the same score in metrics", || {
        let score = score(router, "slow").map(|score| score as f64 / 100.0);
        score.is_some_and(|score| score > 0.0) && ratio(router, "slow") == score
    });

    profile(&path, "strict", "2us");
    ok(pping.signal(Signal::SIGHUP));
    wait_until("no round trip is as fast as that", || {
        score(router, "strict") == Some(0) && ratio(router, "strict") == Some(0.0)
    });
    assert_eq!((score(router, "slow"), ratio(router, "slow")), (None, None));

    fs::write(&path, "[[profile]]\n").unwrap();
    ok(pping.signal(Signal::SIGHUP));
    wait_until("the error is named", || {
        let said = ok(pping.stderr());
        said.contains("quality.toml:1:1: ") && said.contains("the profiles stay as they were")
    });
    assert_eq!(score(router, "strict"), Some(0));
    interrupt(pping);
}
