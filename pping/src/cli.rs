//! The command line, as typed.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use clap::{ArgAction, ArgGroup, Parser, ValueEnum};
use ipnet::IpNet;
use pping_common::limits::{DEFAULT_MAX_FLOWS, DEFAULT_MAX_GROUPS};

const EXAMPLES: &str = "\
Examples:
  pping -i eth0                          samples of every TCP flow and ping that passes eth0
  pping -i eth0 --rate-limit 0           every sample there is
  pping -i eth0 --format jsonl | jq .rtt one JSON record a line
  pping -r trace.pcapng                  the same of a capture, without root
  ssh gw tcpdump -w - | pping -r -       of one that is being made
  pping -i eth0 --aggregate 10s --group-by /24,/48
                                         percentiles of each network every ten seconds
  pping -i eth0 -i eth1 --format none --groups customers.csv --listen 127.0.0.1:9464
                                         nothing but metrics for Prometheus, by customer";

/// Continuous passive round-trip times of every flow that passes, without sending a packet.
#[derive(Clone, Debug, Parser)]
#[command(version, after_long_help = EXAMPLES)]
#[command(group(ArgGroup::new("source").required(true).args(["interfaces", "read"])))]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Arguments {
    /// Watch this interface (may be given several times)
    #[arg(short, long = "interface", value_name = "INTERFACE", help_heading = "Source")]
    pub interfaces: Vec<String>,

    /// Read this capture instead (`-` is standard input)
    ///
    /// A pcap or pcapng file, as it is or compressed by gzip or zstd. This takes no privileges.
    #[arg(short, long, value_name = "FILE", help_heading = "Source")]
    pub read: Option<PathBuf>,

    /// Wait for interfaces that are not there yet, in place of an error
    #[arg(long, help_heading = "Source")]
    pub wait: bool,

    /// Where packets coming in are seen [default: tc]
    ///
    /// Attaching XDP makes some drivers reset their queues, so `tc` is the default. `auto` takes XDP where
    /// the driver runs it natively and nobody else has a program there, else tc.
    #[arg(long, value_enum, value_name = "HOOK", help_heading = "Source")]
    pub ingress: Option<Ingress>,

    /// Flows of each address family that are followed at the same time
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_FLOWS, value_parser = max_flows,
        help_heading = "Source")]
    pub max_flows: u32,

    /// Time packets to this host itself too, which measures little but its own processing
    #[arg(long, help_heading = "Measuring")]
    pub include_local: bool,

    /// At most one recording per flow direction in this time (`0` is no limit)
    #[arg(long, value_name = "TIME", default_value = "100ms", help_heading = "Measuring")]
    pub rate_limit: String,

    /// At most one recording per flow direction in this many of its RTTs (`0` is no limit)
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = rtt_rate, help_heading = "Measuring")]
    pub rtt_rate: f64,

    /// Which RTT of a flow direction `--rtt-rate` counts in
    #[arg(long, value_enum, value_name = "RTT", default_value = "smoothed", help_heading = "Measuring")]
    pub rtt_type: RttType,

    /// Measure the flows inside these tunnels, separated by commas
    ///
    /// One level of tunnel is looked into. VLAN tags, PPPoE sessions and MPLS labels always are.
    #[arg(long, value_enum, value_name = "TUNNELS", value_delimiter = ',', help_heading = "Measuring")]
    pub decap: Vec<Tunnel>,

    /// Leave out traffic of these networks (may be given several times, or separated by commas)
    #[arg(long, value_name = "PREFIX", value_delimiter = ',', value_parser = prefix, help_heading = "Measuring")]
    pub exclude: Vec<IpNet>,

    /// Report percentiles of each group in place of samples, once in this time (`10s`)
    #[arg(short, long, value_name = "TIME", help_heading = "Aggregating")]
    pub aggregate: Option<String>,

    /// Make groups of networks, hosts or classes of service: `/24,/48`, `destination`, `both`, `dscp`
    ///
    /// A list, separated by commas. `/24,/48` makes a group of each IPv4 network of 24 bits and each IPv6 network of
    /// 48. They are those of the host that replied (`source`, the default), of the host whose packets are timed
    /// (`destination`), or of the two (`both`). `dscp` tells classes of service apart, with or without the rest.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Aggregating")]
    pub group_by: Vec<String>,

    /// Make the groups that this file lists: `prefix,group` lines (CSV), or TOML; SIGHUP reads it again
    ///
    /// The longest prefix wins. Hosts in none of them are in the group `unlisted`.
    #[arg(long, value_name = "FILE", help_heading = "Aggregating")]
    pub groups: Option<PathBuf>,

    /// Groups that are told apart; the rest is `other`
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_GROUPS, value_parser = max_groups,
        help_heading = "Aggregating")]
    pub max_groups: u32,

    /// Forget a group that had no packet for this time, and make room for another
    #[arg(long, value_name = "TIME", default_value = "5m", help_heading = "Aggregating")]
    pub group_timeout: String,

    /// Report each flow once, at its end, in place of its samples
    #[arg(long, help_heading = "Aggregating")]
    pub flow_summary: bool,

    /// With --aggregate or --flow-summary: report samples, and flows that open and close, as well
    #[arg(long, help_heading = "Aggregating")]
    pub with_samples: bool,

    /// Write the distribution of each group and interval to this file, as an interval log of `HdrHistogram`, version 2
    #[arg(long, value_name = "FILE", help_heading = "Aggregating")]
    pub hdr_log: Option<PathBuf>,

    /// How records are written: `standard` on a terminal and `jsonl` elsewhere, unless given
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    pub format: Option<Format>,

    /// Write records to this file instead of standard output; SIGHUP opens it again
    #[arg(short = 'w', long = "write", value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,

    /// Serve Prometheus metrics at this address, for instance 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS", value_parser = address, help_heading = "Output")]
    pub listen: Option<SocketAddr>,

    /// TLS and passwords for --listen, as in Prometheus' web configuration files
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub web_config: Option<PathBuf>,

    /// Groups that metrics tell apart: those with the most samples; the rest is `other` [default: 100]
    #[arg(long, value_name = "N", value_parser = prometheus_groups,
        help_heading = "Output")]
    pub prometheus_groups: Option<u32>,

    /// The lowest RTT of this time is what metrics of inflation compare with [default: 10m]
    #[arg(long, value_name = "TIME", help_heading = "Output")]
    pub baseline: Option<String>,

    /// Keep measuring while pping is stopped or upgraded: pin programs, links and maps in this directory of a bpffs
    #[arg(long, value_name = "DIR", help_heading = "Service")]
    pub pin: Option<PathBuf>,

    /// Say more on standard error (`-vv`: even more)
    #[arg(short, long, action = ArgAction::Count, help_heading = "Diagnosis")]
    pub verbose: u8,

    /// Have the kernel programs log what they do (implies `-vv`)
    #[arg(long, help_heading = "Diagnosis")]
    pub bpf_log: bool,
}

// The standard library's errors say what is wrong with the text; these say what would be right.

fn max_flows(text: &str) -> Result<u32, &'static str> {
    text.parse().map_err(|_| "give a number from 1 to 16777216")
}

fn max_groups(text: &str) -> Result<u32, &'static str> {
    text.parse().map_err(|_| "give a number from 1 to 262144")
}

fn prometheus_groups(text: &str) -> Result<u32, &'static str> {
    text.parse().map_err(|_| "give a number, and 0 for no groups at all")
}

fn prefix(text: &str) -> Result<IpNet, &'static str> {
    text.parse::<IpNet>()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| "give an address or a prefix, like 192.0.2.0/24 or 2001:db8::/32")
}

fn rtt_rate(text: &str) -> Result<f64, &'static str> {
    text.parse().map_err(|_| "give a number from 0 to 255")
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "give an address and a port, like 127.0.0.1:9464")
}

/// Where packets coming in are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ingress {
    /// As the network stack gets them
    Tc,
    /// As the driver hands them over
    Xdp,
    /// XDP where the driver runs it natively, else tc
    Auto,
}

/// Which RTT of a flow direction `--rtt-rate` counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RttType {
    /// The smoothed RTT
    Smoothed,
    /// The lowest RTT
    Min,
}

/// A kind of tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tunnel {
    /// IP in IP, of either version in either
    Ipip,
    /// GRE, with IP or Ethernet inside
    Gre,
    /// VXLAN, to UDP port 4789 or 8472
    Vxlan,
    /// Geneve, to UDP port 6081
    Geneve,
    /// GTP-U, to UDP port 2152
    GtpU,
}

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A line for people
    Standard,
    /// A JSON object a line
    Jsonl,
    /// All of them in one JSON array
    Json,
    /// A line per sample, in seconds, for ppviz
    Ppviz,
    /// Nothing
    None,
}
