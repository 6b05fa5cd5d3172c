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

/// The file that is read where none is named.
pub const DEFAULT_FILE: &str = "/etc/pping/pping.toml";

/// Everything that [`crate::run()`] needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// The capture to read; `-` is standard input. Without one, interfaces are watched.
    pub capture: Option<PathBuf>,
    /// What matters only where interfaces are watched.
    pub live: Live,
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
    /// Networks whose traffic is left out.
    pub exclude: Vec<IpNet>,
    /// Whether flows are reported at their end.
    pub flow_summary: bool,
    /// Whether samples and flows are reported beside what is reported in their place; false if nothing is.
    pub with_samples: bool,
    /// Where distributions are logged, if anywhere.
    pub hdr_log: Option<PathBuf>,
}

impl Aggregation {
    /// One group, of which nothing is reported but samples.
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

    /// Whether no records go to standard output while that is a terminal.
    pub(crate) fn is_quiet_on_terminal(&self) -> bool {
        self.output.is_some() || self.format == Format::None || !std::io::stdout().is_terminal()
    }
}

/// What matters only where interfaces are watched.
#[derive(Clone, Debug)]
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
