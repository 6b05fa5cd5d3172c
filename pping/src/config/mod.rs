//! The configuration, from the command line, the environment and a file.
//!
//! [`options`] defines each option. [`Loader`] makes a [`Config`] of what is set, as often as needed: [`layered`] decides
//! between the three places, and [`Config`] is what the rest of the program knows. [`reload`] is what changes while pping
//! runs.

mod check;
pub(crate) mod definition;
mod environment;
mod error;
mod file;
mod grouping;
mod layered;
mod loader;
mod methods;
mod options;
mod reload;
mod show;
#[cfg(test)]
mod tests;
mod values;

use std::{io::IsTerminal, net::SocketAddr, path::PathBuf, time::Duration};

use indexmap::IndexSet;
use ipnet::IpNet;
use pping_common::{
    abi::Emit,
    group::Grouping,
    limits::MAX_DNS_PORTS,
    parse::Decap,
    rtt::{Methods, RttBasis, Rules},
};

pub(crate) use self::values::interface;
pub use self::{
    check::check,
    error::{Error, Mistake, Origin},
    layered::Layered,
    loader::{Loaded, Loader},
    options::Arguments,
    reload::{Change, Changes},
    values::{Format, Ingress, MethodName, RttType, TcpMethod, Tunnel},
};

/// The file of the service, which is read if none is named.
pub const DEFAULT_FILE: &str = "/etc/pping/pping.toml";

/// Everything that [`crate::run()`] needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// The capture to read; `-` is standard input. Without one, interfaces are watched.
    pub capture: Option<PathBuf>,
    /// What matters only where interfaces are watched.
    pub live: Live,
    /// The number of flows of each address family.
    pub max_flows: u32,
    /// How to measure, and how often to record.
    pub rules: Rules,
    /// The listed methods, of which `rules` has those that [`Self::tcp_method`] leaves.
    pub methods: Methods,
    /// The method for TCP flows.
    pub tcp_method: TcpMethod,
    /// The ports of DNS servers, in order; 0 is none.
    pub dns_ports: [u16; MAX_DNS_PORTS],
    /// The tunnels to decapsulate.
    pub decap: Decap,
    /// How to aggregate.
    pub aggregation: Aggregation,
    /// The format of records.
    pub format: Format,
    /// The file of records; standard output without one.
    pub output: Option<PathBuf>,
    /// The verbosity of the log: from 0 for warnings alone to 3.
    pub verbosity: u8,
}

/// How to aggregate.
#[derive(Clone, Debug)]
pub struct Aggregation {
    /// The interval of reports, if there are any.
    pub interval: Option<Duration>,
    /// The groups of `--group-by`. Those of a file are in [`Self::grouping`] too.
    pub group_by: Grouping,
    /// The file that lists groups.
    pub groups: Option<PathBuf>,
    /// The number of groups that are kept apart.
    pub max_groups: u32,
    /// The time for which a group without traffic is kept.
    pub group_timeout: Duration,
    /// Networks whose traffic is ignored.
    pub exclude: Vec<IpNet>,
    /// Whether each flow is reported at its end.
    pub flow_summary: bool,
    /// Whether samples and flows are reported beside aggregates or summaries; false without either.
    pub with_samples: bool,
    /// The log of distributions.
    pub hdr_log: Option<PathBuf>,
}

impl Aggregation {
    /// No aggregation: samples of one group.
    pub const NONE: Self = Self {
        interval: None,
        group_by: Grouping::NONE,
        groups: None,
        max_groups: 1,
        group_timeout: Duration::from_mins(5),
        exclude: Vec::new(),
        flow_summary: false,
        with_samples: false,
        hdr_log: None,
    };

    /// Whether samples are reported one by one, and flows that open and close.
    pub fn reports_individual(&self) -> bool {
        self.with_samples || (self.interval.is_none() && !self.flow_summary)
    }
}

impl Config {
    /// The events that the kernel programs have to report for it.
    pub fn emit(&self) -> Emit {
        let mut emit = Emit::NOTHING;
        if self.format == Format::None {
            return emit;
        }
        if self.aggregation.reports_individual() {
            emit = emit.and(Emit::SAMPLES).and(Emit::FLOWS);
        }
        if self.aggregation.flow_summary {
            emit = emit.and(Emit::SAMPLES).and(Emit::ENDS);
        }
        emit
    }

    /// Whether standard output is not a terminal that records go to.
    pub(crate) fn is_quiet_on_terminal(&self) -> bool {
        self.output.is_some() || self.format == Format::None || !std::io::stdout().is_terminal()
    }
}

/// What matters only where interfaces are watched.
#[derive(Clone, Debug)]
pub struct Live {
    /// Names and patterns of the interfaces to watch, each once.
    pub interfaces: Vec<String>,
    /// Whether to wait for interfaces that do not exist yet.
    pub wait: bool,
    /// The attach point for incoming packets.
    pub ingress: Ingress,
    /// The address that serves metrics.
    pub listen: Option<SocketAddr>,
    /// The file with TLS and passwords for it.
    pub web_config: Option<PathBuf>,
    /// The directory to pin programs, links and maps in.
    pub pin: Option<PathBuf>,
    /// The number of groups in metrics.
    pub prometheus_groups: u32,
    /// The time whose lowest RTT is the baseline of inflation.
    pub baseline: Duration,
    /// Whether the kernel programs log what they do.
    pub bpf_log: bool,
}

impl TryFrom<Arguments> for Config {
    type Error = Error;

    /// The configuration that options on the command line alone make.
    fn try_from(arguments: Arguments) -> Result<Self, Error> {
        Self::new(arguments).map_err(Error::Invalid)
    }
}

impl Config {
    /// Checks how values go together, each of which was checked by itself when it was parsed.
    fn new(arguments: Arguments) -> Result<Self, Vec<Mistake>> {
        // Without `..`: an option that does nothing does not compile.
        let Arguments {
            interfaces,
            read,
            wait,
            ingress,
            max_flows,
            methods,
            tcp_method,
            dns_ports,
            include_local,
            rate_limit,
            rtt_rate,
            rtt_type,
            decap,
            exclude,
            aggregate,
            group_by,
            groups,
            max_groups,
            group_timeout,
            flow_summary,
            with_samples,
            hdr_log,
            format,
            output,
            listen,
            web_config,
            prometheus_groups,
            baseline,
            config: _,
            pin,
            verbose,
            bpf_log,
        } = arguments;
        let mut found = Vec::new();
        let group_by = or_note(grouping::group_by(&group_by, groups.is_some()), Grouping::NONE, &mut found);
        let methods = methods::listed(&methods);
        let in_force = or_note(methods::wanted(methods, tcp_method), methods, &mut found);
        let dns_ports = or_note(methods::dns_ports(&dns_ports, methods), [0; MAX_DNS_PORTS], &mut found);
        let is_aggregate = aggregate.is_some() || flow_summary;
        if format == Some(Format::Ppviz) && is_aggregate && !with_samples {
            let reason = "it has lines for samples only; add --with-samples";
            found.push(Mistake::contradiction("format", "ppviz", reason));
        }
        if let (Some(file), None) = (&web_config, listen) {
            let reason = "nothing is served without --listen; give an address there";
            found.push(Mistake::contradiction("web-config", file.display().to_string(), reason));
        }
        if !found.is_empty() {
            return Err(found);
        }
        let on_terminal = output.is_none() && std::io::stdout().is_terminal();
        Ok(Self {
            capture: read,
            live: Live {
                interfaces: IndexSet::<String>::from_iter(interfaces).into_iter().collect(),
                wait,
                ingress,
                listen,
                web_config,
                pin,
                prometheus_groups,
                baseline,
                bpf_log,
            },
            max_flows,
            rules: Rules {
                rate_limit: rate_limit.as_nanos() as u64,
                rtt_rate: (rtt_rate * 65_536.0).round() as u64,
                rtt_basis: match rtt_type {
                    RttType::Smoothed => RttBasis::Smoothed,
                    RttType::Min => RttBasis::Min,
                },
                include_local,
                reserved: 0,
                methods: in_force,
            },
            methods,
            tcp_method,
            dns_ports,
            decap: decap.into_iter().fold(Decap::NONE, |decap, tunnel| decap.and(tunnel.into())),
            aggregation: Aggregation {
                interval: aggregate,
                group_by,
                groups,
                max_groups,
                group_timeout,
                exclude,
                flow_summary,
                with_samples: with_samples && is_aggregate,
                hdr_log,
            },
            format: format.unwrap_or(if on_terminal { Format::Standard } else { Format::Jsonl }),
            output,
            verbosity: if bpf_log { verbose.max(2) } else { verbose },
        })
    }
}

/// A value, or another in its place once the mistake is noted.
fn or_note<T>(value: Result<T, Mistake>, otherwise: T, found: &mut Vec<Mistake>) -> T {
    value.unwrap_or_else(|mistake| {
        found.push(mistake);
        otherwise
    })
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
