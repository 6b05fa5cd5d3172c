//! The configuration as the rest of the program knows it.

use std::{io::IsTerminal as _, net::SocketAddr, path::PathBuf, time::Duration};

use ipnet::IpNet;
use pping_common::{
    abi::Emit,
    group::Grouping,
    limits::{DEFAULT_MAX_NETWORKS, MAX_DNS_PORTS},
    method::Methods,
    parse::Decap,
    rtt::Rules,
};

use super::{
    endpoint::Endpoint,
    inside::Inside,
    values::{Arms, Format, HistoryKeep, Ingress, Profile, RemoteBy, TcpMethod, Temporality},
};
use crate::worst::DEFAULT_MIN_SAMPLES;

/// The groups of `pping top` unless others are configured: `/24,/48`.
#[cfg(feature = "top")]
const NETWORKS: Grouping = Grouping { by_source: 1, v4_len: 24, v6_len: 48, ..Grouping::NONE };

/// Everything that [`crate::run()`] needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// The capture to read; `-` is standard input. Without one, interfaces are watched.
    pub capture: Option<PathBuf>,
    /// Whether all interfaces of the capture count as one.
    pub join: bool,
    /// The settings for watching interfaces.
    pub live: Live,
    /// The highest number of flows of each address family.
    pub max_flows: u32,
    /// The methods, and the limits of recording.
    pub rules: Rules,
    /// The methods of `--methods`. `rules` has those that are left after [`Self::tcp_method`].
    pub methods: Methods,
    /// The method for TCP flows.
    pub tcp_method: TcpMethod,
    /// On how many sides of an interface the hosts of a flow are.
    pub arms: Arms,
    /// The ports of DNS servers, in order; unused entries are 0.
    pub dns_ports: [u16; MAX_DNS_PORTS],
    /// Nanoseconds within which a packet that passes a mirror port again is a copy; 0 leaves no copies out.
    pub copies_within: u64,
    /// The tunnels to decapsulate.
    pub decap: Decap,
    /// The aggregation.
    pub aggregation: Aggregation,
    /// The file with the profiles for scores, if one is given.
    pub quality: Option<PathBuf>,
    /// The format of records.
    pub format: Format,
    /// The file of records; standard output without one.
    pub output: Option<PathBuf>,
    /// The verbosity of the log: from 0 for warnings alone to 3.
    pub verbosity: u8,
}

/// The settings of aggregation.
#[derive(Clone, Debug)]
pub struct Aggregation {
    /// The interval of reports, if there are any.
    pub interval: Option<Duration>,
    /// The groups of `--group-by`. [`Self::grouping`] adds those of a file.
    pub group_by: Grouping,
    /// The file that lists groups.
    pub groups: Option<PathBuf>,
    /// The socket that takes changes of them.
    pub groups_socket: Option<PathBuf>,
    /// The file that keeps what came by it.
    pub groups_state: Option<PathBuf>,
    /// The columns of the file by which groups are added up, the outermost level first.
    pub roll_up: Vec<String>,
    /// The file of networks at the other end.
    pub remote_groups: Option<PathBuf>,
    /// What they are told apart by.
    pub remote_by: RemoteBy,
    /// The highest number of these networks; the rest is `other`.
    pub max_networks: u32,
    /// The highest number of groups; the rest is `other`.
    pub max_groups: u32,
    /// The time for which a group without traffic is kept.
    pub group_timeout: Duration,
    /// Networks whose traffic is ignored.
    pub exclude: Vec<IpNet>,
    /// Which hosts are inside the network.
    pub inside: Inside,
    /// Whether each flow is reported at its end.
    pub flow_summary: bool,
    /// Whether samples and flows are reported beside aggregates or summaries; false if neither is on.
    pub with_samples: bool,
    /// The log of distributions.
    pub hdr_log: Option<PathBuf>,
    /// How many of the worst flows and groups are reported at the end of each interval, if any.
    pub worst: Option<usize>,
    /// The minimum to be ranked among the worst: packets of both ends of a flow, samples or packets of a group.
    pub worst_min_samples: u64,
}

impl Aggregation {
    /// No aggregation: samples of one group.
    pub const NONE: Self = Self {
        interval: None,
        group_by: Grouping::NONE,
        groups: None,
        groups_socket: None,
        groups_state: None,
        roll_up: Vec::new(),
        remote_groups: None,
        remote_by: RemoteBy::Asn,
        max_networks: DEFAULT_MAX_NETWORKS,
        max_groups: 1,
        group_timeout: Duration::from_mins(5),
        exclude: Vec::new(),
        inside: Inside::UNKNOWN,
        flow_summary: false,
        with_samples: false,
        hdr_log: None,
        worst: None,
        worst_min_samples: DEFAULT_MIN_SAMPLES,
    };

    /// Whether samples are reported one by one, and flows that open and close.
    pub fn reports_individual(&self) -> bool {
        self.with_samples || (self.interval.is_none() && !self.flow_summary)
    }
}

impl Config {
    /// The events that the kernel programs have to emit for this configuration.
    pub fn emit(&self) -> Emit {
        let mut emit = Emit::NOTHING;
        if self.format == Format::None {
            return emit;
        }
        if self.aggregation.reports_individual() {
            emit = emit.with(Emit::SAMPLES).with(Emit::FLOWS);
        }
        if self.aggregation.flow_summary {
            emit = emit.with(Emit::SAMPLES).with(Emit::ENDS);
        }
        emit
    }

    /// Changes the configuration for looking on only: no records, no metrics, no pins, and groups of networks unless others
    /// are configured.
    #[cfg(feature = "top")]
    pub(crate) fn for_viewing(mut self) -> Self {
        // The socket belongs to the pping that measures all the time.
        if self.aggregation.groups_socket.take().is_some() && self.aggregation.groups.is_none() {
            self.aggregation.group_by = Grouping::NONE;
        }
        let has_groups = self.aggregation.grouping() != Grouping::NONE;
        Self {
            format: Format::None,
            output: None,
            live: Live { listen: None, web_config: None, otlp: None, history: None, pin: None, ..self.live },
            aggregation: Aggregation {
                interval: None,
                group_by: if has_groups { self.aggregation.group_by } else { NETWORKS },
                flow_summary: false,
                with_samples: false,
                hdr_log: None,
                worst: None,
                groups_state: None,
                ..self.aggregation
            },
            ..self
        }
    }

    /// True unless records go to a terminal on standard output.
    pub(crate) fn keeps_terminal_free(&self) -> bool {
        self.output.is_some() || self.format == Format::None || !std::io::stdout().is_terminal()
    }
}

/// The settings for watching interfaces.
#[derive(Clone, Debug)]
pub struct Live {
    /// The defaults of sizes, and the size of what has no option.
    pub profile: Profile,
    /// The highest number of flows of each address family with pending timestamps.
    pub max_pending: u32,
    /// The highest number of interfaces.
    pub max_interfaces: u32,
    /// Names and patterns of the interfaces to watch, each once.
    pub interfaces: Vec<String>,
    /// Whether to wait for interfaces that do not exist yet.
    pub wait: bool,
    /// Whether the interfaces are mirror ports: nothing goes out by them, and no packet there is for this host.
    pub mirror: bool,
    /// The attach point for incoming packets.
    pub ingress: Ingress,
    /// The address that serves metrics.
    pub listen: Option<SocketAddr>,
    /// The file with TLS and passwords for [`Self::listen`].
    pub web_config: Option<PathBuf>,
    /// Names of this host beside those that it knows itself, for clients of [`Self::listen`].
    pub listen_names: Vec<String>,
    /// The directory to pin programs, links and maps in.
    pub pin: Option<PathBuf>,
    /// The highest number of groups in metrics; the rest is `other`.
    pub prometheus_groups: u32,
    /// The period whose lowest RTT is the baseline of inflation.
    pub baseline: Duration,
    /// The memory for the last 15 minutes of groups, bytes.
    pub history_memory: usize,
    /// The directory of the history.
    pub history: Option<PathBuf>,
    /// How much of it is kept.
    pub history_limits: HistoryLimits,
    /// The receiver that metrics are pushed to.
    pub otlp: Option<Otlp>,
    /// If times in this host are measured, one packet in this many is followed through its queue, on average. With 0 none is, and
    /// only forwarding is measured.
    pub residence: Option<u32>,
    /// Whether the kernel programs log what they do.
    pub bpf_log: bool,
}

/// How much of a history is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimits {
    /// The bytes that all files may take.
    pub disk: u64,
    /// For how long.
    pub keep: HistoryKeep,
}

/// The settings for pushing metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otlp {
    /// The receiver.
    pub endpoint: Endpoint,
    /// The time between two exports.
    pub interval: Duration,
    /// The file with headers of each request.
    pub headers: Option<PathBuf>,
    /// The file with the authorities that may certify the receiver; those of the system without one.
    pub authorities: Option<PathBuf>,
    /// Whether an export counts since the start of pping, or since the export before.
    pub temporality: Temporality,
}
