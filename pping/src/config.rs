//! What the user asked for, checked.

use std::{io::IsTerminal, net::SocketAddr, path::PathBuf, time::Duration};

use ipnet::IpNet;
use pping_common::{
    abi::Emit,
    group::Grouping,
    parse::Decap,
    rtt::{Basis, Rules},
};

use crate::{
    Error,
    cli::{Arguments, Format, Ingress, RttType, Tunnel},
};

/// Longest name an interface can have: `IFNAMSIZ` without its NUL.
const MAX_INTERFACE_NAME: usize = 15;

/// Flows per family that a map can be asked to hold: beyond that it would take more than 6 GB.
const MAX_FLOWS: u32 = 16_777_216;

/// Groups that the kernel can be asked to tell apart: beyond that they would take more than 1 GB.
const MAX_GROUPS: u32 = 262_144;

/// Groups that metrics tell apart, unless `--prometheus-groups` says otherwise.
const DEFAULT_PROMETHEUS_GROUPS: u32 = 100;

/// The time of the lowest RTT, unless `--baseline` says otherwise.
const DEFAULT_BASELINE: &str = "10m";

/// Shortest `--aggregate`: at the end of an interval all flows are looked at.
const MIN_INTERVAL: Duration = Duration::from_millis(10);

/// Largest `--rtt-rate`.
const MAX_RTT_RATE: f64 = 255.0;

/// Everything [`crate::run()`] needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where packets come from.
    pub source: Source,
    /// Flows per address family.
    pub max_flows: u32,
    /// How often to record.
    pub rules: Rules,
    /// The tunnels of which the inside is measured.
    pub decap: Decap,
    /// What is aggregated, and how.
    pub aggregation: Aggregation,
    /// How records are written.
    pub format: Format,
    /// Where records are written; standard output if nowhere.
    pub output: Option<PathBuf>,
}

/// What is aggregated, and how.
#[derive(Clone, Debug)]
pub struct Aggregation {
    /// How often to report, if at all.
    pub interval: Option<Duration>,
    /// What groups there are.
    pub grouping: Grouping,
    /// Where their labels are, if they have any.
    pub groups: Option<PathBuf>,
    /// How many are told apart.
    pub max_groups: u32,
    /// How long one without traffic is kept.
    pub group_timeout: Duration,
    /// Networks whose traffic is left out.
    pub exclude: Vec<IpNet>,
    /// Whether flows are reported at their end.
    pub flow_summary: bool,
    /// Whether samples are reported one by one, and openings and closings of flows.
    pub individual: bool,
    /// Where distributions are logged, if anywhere.
    pub hdr_log: Option<PathBuf>,
}

impl Aggregation {
    /// One group, of which nothing is reported but samples.
    pub const NONE: Self = Self {
        interval: None,
        grouping: Grouping::NONE,
        groups: None,
        max_groups: 1,
        group_timeout: Duration::from_mins(5),
        exclude: Vec::new(),
        flow_summary: false,
        individual: true,
        hdr_log: None,
    };
}

impl Config {
    /// Which events that takes.
    pub fn emit(&self) -> Emit {
        let Aggregation { individual, flow_summary, .. } = self.aggregation;
        if self.format == Format::None {
            return Emit::NOTHING;
        }
        let individual = if individual { Emit::SAMPLES.and(Emit::FLOWS) } else { Emit::NOTHING };
        let ends = if flow_summary { Emit::SAMPLES.and(Emit::ENDS) } else { Emit::NOTHING };
        individual.and(ends)
    }

    /// Whether no records go to standard output while that is a terminal.
    pub(crate) fn is_quiet_on_terminal(&self) -> bool {
        self.output.is_some() || self.format == Format::None || !std::io::stdout().is_terminal()
    }
}

/// Where packets come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Interfaces of this host.
    Interfaces(Live),
    /// A capture; `-` is standard input.
    Capture(PathBuf),
}

impl Default for Source {
    fn default() -> Self {
        Self::Capture("-".into())
    }
}

/// What matters only where packets are watched as they pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// Names of the interfaces to watch, each once.
    pub interfaces: Vec<String>,
    /// Whether those that are not there yet are waited for.
    pub wait: bool,
    /// Where packets coming in are seen.
    pub ingress: Ingress,
    /// Where metrics are served, if anywhere.
    pub listen: Option<SocketAddr>,
    /// TLS and passwords for that, if any.
    pub web_config: Option<PathBuf>,
    /// Where programs, links and maps are pinned, if anywhere.
    pub pin: Option<PathBuf>,
    /// Groups that metrics tell apart.
    pub prometheus_groups: u32,
    /// The time of whose lowest RTT metrics take the distance.
    pub baseline: Duration,
    /// Whether the kernel programs log what they do.
    pub bpf_log: bool,
}

impl TryFrom<Arguments> for Config {
    type Error = Error;

    fn try_from(arguments: Arguments) -> Result<Self, Error> {
        let source = source(&arguments)?;
        if !(1..=MAX_FLOWS).contains(&arguments.max_flows) {
            let value = arguments.max_flows.to_string();
            return Err(invalid("--max-flows", &value, "give a number from 1 to 16777216"));
        }
        if !(0.0..=MAX_RTT_RATE).contains(&arguments.rtt_rate) {
            let value = arguments.rtt_rate.to_string();
            return Err(invalid("--rtt-rate", &value, "give a number from 0 to 255"));
        }
        let aggregation = aggregation(&arguments)?;
        if arguments.format == Some(Format::Ppviz) && !aggregation.individual {
            return Err(invalid("--format", "ppviz", "it has lines for samples only; add --with-samples"));
        }
        let on_terminal = arguments.output.is_none() && std::io::stdout().is_terminal();
        Ok(Self {
            source,
            max_flows: arguments.max_flows,
            rules: Rules {
                rate_limit: nanoseconds("--rate-limit", &arguments.rate_limit)?,
                rtt_rate: (arguments.rtt_rate * 65_536.0).round() as u64,
                rtt_basis: match arguments.rtt_type {
                    RttType::Smoothed => Basis::Smoothed,
                    RttType::Min => Basis::Min,
                },
                include_local: arguments.include_local,
                reserved: [0; 3],
            },
            decap: arguments.decap.iter().fold(Decap::NONE, |decap, &tunnel| decap.and(tunnel.into())),
            aggregation,
            format: arguments.format.unwrap_or(if on_terminal { Format::Standard } else { Format::Jsonl }),
            output: arguments.output,
        })
    }
}

impl From<Tunnel> for Decap {
    fn from(tunnel: Tunnel) -> Self {
        match tunnel {
            Tunnel::Ipip => Self::IPIP,
            Tunnel::Gre => Self::GRE,
            Tunnel::Vxlan => Self::VXLAN,
            Tunnel::Geneve => Self::GENEVE,
            Tunnel::GtpU => Self::GTP_U,
        }
    }
}

fn source(arguments: &Arguments) -> Result<Source, Error> {
    if let Some(file) = &arguments.read {
        return offline(arguments).map(|()| Source::Capture(file.clone()));
    }
    let mut interfaces: Vec<String> = Vec::new();
    for name in &arguments.interfaces {
        if name.is_empty() || name.len() > MAX_INTERFACE_NAME || name.contains(['/', ' ']) {
            return Err(invalid("--interface", name, "an interface name has 1 to 15 characters"));
        }
        if !interfaces.contains(name) {
            interfaces.push(name.clone());
        }
    }
    Ok(Source::Interfaces(Live {
        interfaces,
        wait: arguments.wait,
        ingress: arguments.ingress.unwrap_or(Ingress::Tc),
        listen: arguments.listen,
        web_config: arguments.web_config.clone(),
        pin: arguments.pin.clone(),
        prometheus_groups: arguments.prometheus_groups.unwrap_or(DEFAULT_PROMETHEUS_GROUPS),
        baseline: time("--baseline", arguments.baseline.as_deref().unwrap_or(DEFAULT_BASELINE))?,
        bpf_log: arguments.bpf_log,
    }))
}

fn aggregation(arguments: &Arguments) -> Result<Aggregation, Error> {
    if !(1..=MAX_GROUPS).contains(&arguments.max_groups) {
        let value = arguments.max_groups.to_string();
        return Err(invalid("--max-groups", &value, "give a number from 1 to 262144"));
    }
    let interval = arguments.aggregate.as_deref().map(|value| time("--aggregate", value)).transpose()?;
    if interval.is_some_and(|interval| interval < MIN_INTERVAL) {
        let value = arguments.aggregate.as_deref().unwrap_or_default();
        return Err(invalid("--aggregate", value, "give 10ms or more"));
    }
    let is_aggregate = interval.is_some() || arguments.flow_summary;
    Ok(Aggregation {
        interval,
        grouping: grouping(&arguments.group_by, arguments.groups.is_some())?,
        groups: arguments.groups.clone(),
        max_groups: arguments.max_groups,
        group_timeout: time("--group-timeout", &arguments.group_timeout)?,
        exclude: arguments.exclude.clone(),
        flow_summary: arguments.flow_summary,
        individual: arguments.with_samples || !is_aggregate,
        hdr_log: arguments.hdr_log.clone(),
    })
}

/// What groups a list of networks, ends and classes makes, and a file that has their prefixes if there is one.
fn grouping(list: &[String], has_file: bool) -> Result<Grouping, Error> {
    let refused = |value: &str, hint| Err(invalid("--group-by", value, hint));
    let mut grouping = Grouping { by_label: u8::from(has_file), ..Grouping::NONE };
    let (mut lens, mut has_end) = (Vec::new(), false);
    for item in list {
        match item.as_str() {
            "source" => (grouping.by_source, has_end) = (1, true),
            "destination" => (grouping.by_destination, has_end) = (1, true),
            "both" => (grouping.by_source, grouping.by_destination, has_end) = (1, 1, true),
            "dscp" => grouping.by_dscp = 1,
            item => match item.strip_prefix('/').and_then(|len| len.parse::<u8>().ok()) {
                Some(_) if has_file => {
                    return refused(item, "the prefixes are those of --groups; leave this out");
                }
                Some(len) => lens.push(len),
                None => {
                    return refused(item, "give `/24,/48`, `source`, `destination`, `both` or `dscp`");
                }
            },
        }
    }
    match *lens {
        [] if !has_file && has_end => {
            return refused(&list.join(","), "say how long the prefixes are too, as in `/24,/48,both`");
        }
        [] => {}
        [v4_len @ ..=32, v6_len @ ..=128] => (grouping.v4_len, grouping.v6_len) = (v4_len, v6_len),
        _ => {
            return refused(
                &list.join(","),
                "give the bits of IPv4 prefixes, then those of IPv6 prefixes: `/24,/48`",
            );
        }
    }
    if !has_end && (has_file || !lens.is_empty()) {
        grouping.by_source = 1;
    }
    Ok(grouping)
}

/// Refuses what makes no sense with a capture.
fn offline(arguments: &Arguments) -> Result<(), Error> {
    let refused = [
        (arguments.ingress.is_some(), "--ingress", "the packets of a capture pass no hook"),
        (
            arguments.include_local,
            "--include-local",
            "a capture does not tell which addresses were local, so all its packets are timed",
        ),
        (
            arguments.listen.is_some(),
            "--listen",
            "a capture is over before anybody can scrape it; see the summary at the end, or --format jsonl",
        ),
        (arguments.prometheus_groups.is_some(), "--prometheus-groups", "a capture has no metrics"),
        (arguments.baseline.is_some(), "--baseline", "a capture has no metrics"),
        (arguments.bpf_log, "--bpf-log", "no kernel program is involved"),
    ];
    match refused.into_iter().find(|(is_given, ..)| *is_given) {
        Some((_, option, reason)) => Err(Error::NotOffline { option, reason }),
        None => Ok(()),
    }
}

fn nanoseconds(option: &'static str, value: &str) -> Result<u64, Error> {
    if value == "0" {
        return Ok(0);
    }
    humantime::parse_duration(value)
        .ok()
        .and_then(|duration| u64::try_from(duration.as_nanos()).ok())
        .ok_or_else(|| invalid(option, value, "give a number with its unit, like 100ms or 2s, or 0"))
}

/// A time that is not nothing.
fn time(option: &'static str, value: &str) -> Result<Duration, Error> {
    match nanoseconds(option, value) {
        Ok(nanoseconds @ 1..) => Ok(Duration::from_nanos(nanoseconds)),
        _ => Err(invalid(option, value, "give a number with its unit, like 10s or 5m")),
    }
}

fn invalid(option: &'static str, value: &str, hint: &'static str) -> Error {
    Error::InvalidOption { option, value: value.to_owned(), hint }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn config(arguments: &[&str]) -> Result<Config, Error> {
        let arguments = ["pping", "-i", "eth0"].iter().chain(arguments);
        Config::try_from(Arguments::try_parse_from(arguments).unwrap())
    }

    #[test]
    fn durations_take_units_and_zero_is_off() {
        assert_eq!(config(&[]).unwrap().rules.rate_limit, 100_000_000);
        assert_eq!(config(&["--rate-limit", "2s"]).unwrap().rules.rate_limit, 2_000_000_000);
        assert_eq!(config(&["--rate-limit", "1500us"]).unwrap().rules.rate_limit, 1_500_000);
        assert_eq!(config(&["--rate-limit", "0"]).unwrap().rules.rate_limit, 0);
    }

    #[test]
    fn wrong_values_name_the_option_and_what_would_be_right() {
        for (arguments, option) in [
            (["--rate-limit", "100"], "--rate-limit"),
            (["--rate-limit", "fast"], "--rate-limit"),
            (["--rtt-rate", "256"], "--rtt-rate"),
            (["--rtt-rate", "NaN"], "--rtt-rate"),
            (["--max-flows", "0"], "--max-flows"),
            (["--interface", "a-name-that-is-too-long"], "--interface"),
        ] {
            let error = config(&arguments).unwrap_err();
            let message = error.to_string();
            assert!(message.contains(option) && message.contains(arguments[1]), "{message}");
            assert!(message.contains("give") || message.contains("has 1 to 15"), "{message}");
        }
    }

    #[test]
    fn an_interface_given_twice_is_watched_once() {
        let Source::Interfaces(live) = config(&["-i", "eth1", "-i", "eth0"]).unwrap().source else {
            panic!("no interfaces")
        };
        assert_eq!(live.interfaces, ["eth0", "eth1"]);
    }

    #[test]
    fn the_rtt_rate_is_a_fixed_point_number() {
        assert_eq!(config(&["--rtt-rate", "0.5"]).unwrap().rules.rtt_rate, 32_768);
    }
}
