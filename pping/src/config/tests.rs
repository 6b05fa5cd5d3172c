//! Arguments, and the configuration that they make.

use clap::Parser as _;

use super::*;

fn arguments(arguments: &[&str]) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(["pping", "-i", "eth0"].iter().chain(arguments))
}

fn config(given: &[&str]) -> Config {
    Config::try_from(arguments(given).unwrap()).unwrap()
}

#[test]
fn durations_take_units_and_zero_is_off() {
    assert_eq!(config(&[]).rules.rate_limit, 100_000_000);
    assert_eq!(config(&["--rate-limit", "2s"]).rules.rate_limit, 2_000_000_000);
    assert_eq!(config(&["--rate-limit", "1500us"]).rules.rate_limit, 1_500_000);
    assert_eq!(config(&["--rate-limit", "0"]).rules.rate_limit, 0);
}

#[test]
fn invalid_values_are_rejected_with_the_option_and_a_suggestion() {
    for (given, option) in [
        (["--rate-limit", "100"], "--rate-limit"),
        (["--rate-limit", "fast"], "--rate-limit"),
        (["--rtt-rate", "256"], "--rtt-rate"),
        (["--rtt-rate", "NaN"], "--rtt-rate"),
        (["--max-flows", "0"], "--max-flows"),
        (["--methods", "tcp"], "--methods"),
        (["--dns-ports", "0"], "--dns-ports"),
        (["--dns-ports", "65536"], "--dns-ports"),
        (["--interface", "a-name-that-is-too-long"], "--interface"),
        (["--interface", "eth[0"], "--interface"),
        (["--interface", "ppp***"], "--interface"),
    ] {
        let message = arguments(&given).unwrap_err().to_string();
        assert!(message.contains(option) && message.contains(given[1]), "{message}");
        assert!(
            message.contains("give")
                || message.contains("possible values")
                || message.contains("has 1 to 15"),
            "{message}"
        );
    }
}

#[test]
fn an_interface_given_twice_is_watched_once() {
    let given = ["-i", "eth1", "-i", "eth0", "-i", "a-pattern-is-longer-[0-3]"];
    assert_eq!(config(&given).live.interfaces, ["eth0", "eth1", "a-pattern-is-longer-[0-3]"]);
}

#[test]
fn the_rtt_rate_is_a_fixed_point_number() {
    assert_eq!(config(&["--rtt-rate", "0.5"]).rules.rtt_rate, 32_768);
}

#[test]
fn web_config_without_listen_is_rejected() {
    let given = arguments(&["--web-config", "web.yml"]).unwrap();
    let message = Config::try_from(given).unwrap_err().to_string();
    assert!(message.starts_with("--web-config web.yml: ") && message.contains("--listen"), "{message}");
}
