//! What the user asked for, checked.
//!
//! [`Config`] is what the rest of the program knows. It is made of [`crate::cli::Arguments`], and those of what was
//! typed, of the environment and of a file, by `settings`. [`Reload`] does all that again, as often as one likes.

mod check;
mod decisions;
mod environment;
mod error;
mod file;
mod grouping;
mod methods;
mod offline;
pub(crate) mod option;
mod reload;
mod settings;
mod show;
#[cfg(test)]
mod tests;

use std::{io::IsTerminal, net::SocketAddr, path::PathBuf, time::Duration};

use ipnet::IpNet;
use pping_common::{
    abi::Emit,
    group::Grouping,
    limits::MAX_DNS_PORTS,
    parse::Decap,
    rtt::{Basis, Methods, Rules},
};

pub use self::{
    check::check,
    decisions::unchangeable,
    error::{Error, Mistake, Origin},
    reload::{Loaded, Reload},
    settings::Settings,
};
use self::{decisions::on_reload, grouping::grouping};
use crate::cli::{Arguments, Format, Ingress, RttType, TcpMethod, Tunnel};

/// The file that is read where none is named.
pub const DEFAULT_FILE: &str = "/etc/pping/pping.toml";

/// Everything [`crate::run()`] needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where packets come from.
    pub source: Source,
    /// Flows per address family.
    pub max_flows: u32,
    /// How to measure, and how often to record.
    pub rules: Rules,
    /// The methods that were asked for, of which `rules` has what [`Self::tcp_method`] leaves.
    pub methods: Methods,
    /// Which of them measures a TCP flow.
    pub tcp_method: TcpMethod,
    /// Ports that DNS servers listen at, in order; 0 is none.
    pub dns_ports: [u16; MAX_DNS_PORTS],
    /// The tunnels of which the inside is measured.
    pub decap: Decap,
    /// What is aggregated, and how.
    pub aggregation: Aggregation,
    /// How records are written.
    pub format: Format,
    /// Where records are written; standard output if nowhere.
    pub output: Option<PathBuf>,
    /// How much is said on standard error: 0 for warnings alone, up to 3.
    pub verbosity: u8,
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
    /// Names of the interfaces to watch, and patterns of such names, each once.
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

    /// The configuration that options on the command line alone make.
    fn try_from(arguments: Arguments) -> Result<Self, Error> {
        let flag = |Contradiction { option, value, reason }: Contradiction| Mistake {
            origin: Origin::Flag,
            assignment: Some((option.to_owned(), value)),
            reason: reason.to_owned(),
        };
        Self::new(arguments).map_err(|found| Error::Invalid(found.into_iter().map(flag).collect()))
    }
}

/// An option that does not go with the others.
#[derive(Debug)]
struct Contradiction {
    option: &'static str,
    value: String,
    reason: &'static str,
}

impl Contradiction {
    fn new(option: &'static str, value: impl Into<String>, reason: &'static str) -> Self {
        Self { option, value: value.into(), reason }
    }
}

impl Config {
    /// Checks how values go together, each of which was checked by itself when it was parsed.
    fn new(arguments: Arguments) -> Result<Self, Vec<Contradiction>> {
        let source = source(&arguments);
        let mut found = Vec::new();
        let grouping = grouping(&arguments.group_by, arguments.groups.is_some());
        let grouping = grouping.unwrap_or_else(|error| {
            found.push(error);
            Grouping::NONE
        });
        let methods = methods::listed(&arguments.methods);
        let methods_in_force = methods::wanted(methods, arguments.tcp_method).unwrap_or_else(|error| {
            found.push(error);
            methods
        });
        let dns_ports = methods::dns_ports(&arguments.dns_ports, methods).unwrap_or_else(|error| {
            found.push(error);
            [0; MAX_DNS_PORTS]
        });
        let is_aggregate = arguments.aggregate.is_some() || arguments.flow_summary;
        if arguments.format == Some(Format::Ppviz) && is_aggregate && !arguments.with_samples {
            let reason = "it has lines for samples only; add --with-samples";
            found.push(Contradiction::new("format", "ppviz", reason));
        }
        if let (Some(file), None) = (&arguments.web_config, arguments.listen) {
            let reason = "nothing is served without --listen; give an address there";
            found.push(Contradiction::new("web-config", file.display().to_string(), reason));
        }
        if !found.is_empty() {
            return Err(found);
        }
        let on_terminal = arguments.output.is_none() && std::io::stdout().is_terminal();
        Ok(Self {
            source,
            max_flows: arguments.max_flows,
            rules: Rules {
                rate_limit: arguments.rate_limit.as_nanos() as u64,
                rtt_rate: (arguments.rtt_rate * 65_536.0).round() as u64,
                rtt_basis: match arguments.rtt_type {
                    RttType::Smoothed => Basis::Smoothed,
                    RttType::Min => Basis::Min,
                },
                include_local: arguments.include_local,
                reserved: 0,
                methods: methods_in_force,
            },
            methods,
            tcp_method: arguments.tcp_method,
            dns_ports,
            decap: arguments.decap.iter().fold(Decap::NONE, |decap, &tunnel| decap.and(tunnel.into())),
            aggregation: Aggregation {
                interval: arguments.aggregate,
                grouping,
                groups: arguments.groups,
                max_groups: arguments.max_groups,
                group_timeout: arguments.group_timeout,
                exclude: arguments.exclude,
                flow_summary: arguments.flow_summary,
                individual: arguments.with_samples || !is_aggregate,
                hdr_log: arguments.hdr_log,
            },
            format: arguments.format.unwrap_or(if on_terminal { Format::Standard } else { Format::Jsonl }),
            output: arguments.output,
            verbosity: if arguments.bpf_log { arguments.verbose.max(2) } else { arguments.verbose },
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

fn source(arguments: &Arguments) -> Source {
    if let Some(file) = &arguments.read {
        return Source::Capture(file.clone());
    }
    let mut interfaces: Vec<String> = Vec::new();
    for name in &arguments.interfaces {
        if !interfaces.contains(name) {
            interfaces.push(name.clone());
        }
    }
    Source::Interfaces(Live {
        interfaces,
        wait: arguments.wait,
        ingress: arguments.ingress,
        listen: arguments.listen,
        web_config: arguments.web_config.clone(),
        pin: arguments.pin.clone(),
        prometheus_groups: arguments.prometheus_groups,
        baseline: arguments.baseline,
        bpf_log: arguments.bpf_log,
    })
}
