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
        (["--interface", "eth0/1"], "--interface"),
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
fn interfaces_may_be_separated_by_commas() {
    let given = ["-i", "lan0,wan0", "-i", "ppp*"];
    assert_eq!(config(&given).live.interfaces, ["eth0", "lan0", "wan0", "ppp*"]);
}

#[test]
fn options_without_the_one_that_they_belong_to_are_refused() {
    let load = |given: &[&str]| {
        let typed = ["pping", "-i", "eth0"].iter().chain(given);
        Loader::typed(typed).unwrap().load().map(drop).map_err(|error| error.to_string())
    };
    for (given, needed) in [
        (&["--otlp-interval", "5s"][..], "--otlp;"),
        (&["--worst-min-samples", "7"], "--worst or --listen;"),
        (&["--baseline", "5m"], "--listen or --otlp;"),
        (&["--history-memory", "7"], "--listen;"),
        (&["--quality", "quality.toml"], "--aggregate or --listen or --otlp;"),
        (&["--max-groups", "7"], "--group-by or --groups;"),
        (&["--otlp-temporality", "delta"], "--otlp;"),
        (&["--residence-every", "8"], "--residence;"),
        (&["--rtt-type", "min"], "--rtt-rate;"),
        (&["--with-samples"], "--aggregate or --flow-summary;"),
        (&["--prometheus-groups", "7"], "--listen or --otlp;"),
        (&["--join"], "--read;"),
    ] {
        let message = load(given).unwrap_err();
        assert!(message.starts_with(&format!("{}: ", given.join(" "))), "{message}");
        let reason = format!("this has no effect without {needed} set that too, or leave this out");
        assert!(message.ends_with(&reason), "{message}");
    }
    for given in [
        &["--otlp", "http://[::1]:4318", "--otlp-interval", "5s", "--prometheus-groups", "7"][..],
        &["--residence", "--residence-every", "8"],
        &["--rtt-rate", "1", "--rtt-type", "min"],
        &["--flow-summary", "--with-samples"],
        &["--aggregate", "10s", "--worst", "5", "--worst-min-samples", "7", "--quality", "quality.toml"],
        &["--listen", "[::1]:9464", "--worst-min-samples", "7", "--history-memory", "7", "--baseline", "5m"],
        &["--group-by", "dscp", "--max-groups", "7"],
    ] {
        assert_eq!(load(given), Ok(()));
    }
    // A screen shows all of these without an output.
    #[cfg(feature = "top")]
    {
        let given =
            ["--max-groups=7", "--quality=quality.toml", "--worst-min-samples=7", "--history-memory=7"];
        let typed = Loader::typed(["pping", "-ieth0"].into_iter().chain(given)).unwrap();
        assert!(typed.for_viewing().load().is_ok());
    }
    // What a capture cannot have is no advice for one.
    let typed = Loader::typed(["pping", "-rtrace.pcap", "--worst-min-samples=7"]).unwrap();
    let message = typed.load().unwrap_err().to_string();
    assert!(message.starts_with("--worst-min-samples 7: this has no effect without --worst; "), "{message}");
}

#[test]
fn a_refused_value_is_shown_as_it_was_written() {
    let environment = [("PPING_QUALITY".into(), "my file".into()), ("PPING_INTERFACE".into(), "eth0".into())];
    let matches = <Arguments as clap::CommandFactory>::command().get_matches_from(["pping"]);
    let message = Loader::new(matches, environment).load().unwrap_err().to_string();
    assert!(message.starts_with("PPING_QUALITY=my file: this has no effect"), "{message}");
}

#[test]
fn web_config_without_listen_is_rejected() {
    let given = arguments(&["--web-config", "web.yml"]).unwrap();
    let message = Config::try_from(given).unwrap_err().to_string();
    assert!(message.starts_with("--web-config web.yml: ") && message.contains("--listen"), "{message}");
}
