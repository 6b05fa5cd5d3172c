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

fn loaded(given: &[&str]) -> Loaded {
    let typed = ["pping", "-i", "eth0"].iter().chain(given);
    Loader::typed(typed).unwrap().load().unwrap()
}

#[test]
fn the_small_profile_has_other_defaults_and_what_is_set_wins() {
    let sizes = |given: &[&str]| {
        let Config { max_flows, live, aggregation, .. } = loaded(given).config;
        let HistoryLimits { disk, keep: HistoryKeep(keep) } = live.history_limits;
        let numbers = [max_flows, live.max_pending, live.max_interfaces, aggregation.max_groups];
        let days = keep.map(|time| time.as_secs() / 86_400);
        (numbers, [live.history_memory >> 20, (disk >> 20) as usize], days, live.profile)
    };
    let default = ([131_072, 131_072, 256, 16_384], [16, 4096], [3, 60, 730], Profile::Default);
    assert_eq!(sizes(&[]), default);
    assert_eq!(sizes(&["--profile", "default"]), default);
    let small = ([8192, 4096, 32, 1024], [4, 64], [1, 14, 365], Profile::Small);
    assert_eq!(sizes(&["--profile", "small"]), small);
    // Also if it is the default of the other profile.
    let given = ["--profile", "small", "--max-flows", "131072", "--history", "d", "--history-disk", "1GiB"];
    assert_eq!(sizes(&given), ([131_072, 4096, 32, 1024], [4, 1024], small.2, Profile::Small));
    let history = loaded(&["--profile", "small"]).config.live.history;
    assert_eq!(history, None);
}

#[test]
fn help_lists_what_the_small_profile_stands_for() {
    let all = definition::Definition::all();
    let profile = all.iter().find(|definition| definition.key == "profile").unwrap();
    let help = profile.help().join(" ");
    let small: Vec<_> = all
        .iter()
        .filter_map(|definition| Some(format!("`--{} {}`", definition.key, definition.facts.small?)))
        .collect();
    assert_eq!(small.len(), 7);
    assert!(small.iter().all(|option| help.contains(option)), "{help} lacks some of {small:?}");
    assert_eq!(help.matches("`--").count(), small.len(), "{help}");
}

#[test]
fn the_origin_of_a_default_of_the_profile_is_shown() {
    let shown = |given: &[&str]| {
        let typed = ["pping", "-i", "eth0"].iter().chain(given);
        let text = Loader::typed(typed).unwrap().show().unwrap();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().map(words).collect::<Vec<_>>()
    };
    let lines = shown(&["--profile", "small", "--max-pending", "7"]);
    for line in [
        "profile = \"small\" # command line",
        "max-flows = 8192 # default of --profile small",
        "max-pending = 7 # command line",
        "baseline = \"10m\" # default",
    ] {
        assert!(lines.iter().any(|it| it == line), "no `{line}` in {lines:#?}");
    }
}

#[test]
fn a_reload_names_the_profile_and_the_sizes_that_take_a_restart() {
    let mut current = loaded(&[]).config;
    let Changes { followed, restart } = current.follow(&loaded(&["--profile", "small"]).config);
    assert_eq!(restart, ["profile", "max-flows", "max-pending", "max-interfaces", "max-groups"]);
    assert_eq!(followed, [Change::HistoryMemory, Change::HistoryLimits]);
    assert_eq!((current.max_flows, current.live.profile), (131_072, Profile::Default));
}

#[cfg(feature = "live")]
#[test]
fn a_configuration_can_be_made_small() {
    let loader = Loader::typed(["pping", "-ieth0", "--max-groups=7", "--group-by=dscp"]).unwrap();
    let small = loader.load_small().unwrap();
    assert_eq!((small.max_flows, small.aggregation.max_groups), (8192, 7));
    assert_eq!(small.live.profile, Profile::Small);
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
        (&["--max-groups", "7"], "--group-by or --groups or --groups-socket;"),
        (&["--otlp-temporality", "delta"], "--otlp;"),
        (&["--residence-every", "8"], "--residence;"),
        (&["--rtt-type", "min"], "--rtt-rate;"),
        (&["--with-samples"], "--aggregate or --flow-summary;"),
        (&["--prometheus-groups", "7"], "--listen or --otlp;"),
        (&["--join"], "--read;"),
        (&["--groups-state", "groups.journal"], "--groups-socket;"),
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
