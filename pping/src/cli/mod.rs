//! The command line, as typed.
//!
//! [`Arguments`] is the only list of options there is: the file and the environment, the man pages, the completions and
//! the example file are made from it.

mod commands;
mod values;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgAction, ArgGroup, Parser};
use ipnet::IpNet;
use pping_common::limits::{DEFAULT_MAX_FLOWS, DEFAULT_MAX_GROUPS, DNS_PORT};

use self::values::{
    address, aggregate, interface, max_flows, max_groups, port, prefix, prometheus_groups, rate_limit,
    rtt_rate, time,
};
pub use self::{
    commands::{CheckArguments, Command, ConfigCommand, Page},
    values::{Format, Ingress, MethodName, RttType, TcpMethod, Tunnel},
};

/// What is typed for what.
pub(crate) const EXAMPLES: &str = "\
Examples:
  pping -i eth0                            samples of all flows, pings and DNS queries that pass eth0
  pping -i eth0 --rate-limit 0             every sample there is
  pping -i eth0 --format jsonl | jq .rtt   one JSON record a line
  pping -i eth0 --methods tcp-handshake,dns
                                           how long connections and names take to begin with
  pping -r trace.pcapng                    samples of a capture, without root
  ssh gw tcpdump -w - | pping -r -         samples of a capture that is being made
  pping -i eth0 --aggregate 10s --group-by /24,/48
                                           percentiles of each network every ten seconds
  pping -i eth0 -i eth1 --format none --groups customers.csv --listen 127.0.0.1:9464
                                           nothing but metrics for Prometheus, by customer
  pping check -i eth0                      whether pping can run here, and what keeps it from measuring well
  pping config show                        what is set, and where: by an option, a PPING_* variable or
                                           /etc/pping/pping.toml, which is read without -i and -r";

/// Continuous passive round-trip times of every flow that passes, without sending a packet.
#[derive(Clone, Debug, Parser)]
#[command(name = "pping", version, after_long_help = EXAMPLES, args_conflicts_with_subcommands = true)]
#[command(disable_help_subcommand = true)]
pub struct Cli {
    /// The options.
    #[command(flatten)]
    pub arguments: Arguments,

    /// What to do instead of measuring.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Continuous passive round-trip times of every flow that passes, without sending a packet.
///
/// The options by themselves, without what else pping can do.
#[derive(Clone, Debug, Parser)]
#[command(name = "pping", group(ArgGroup::new("source").args(["interfaces", "read"])))]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Arguments {
    /// Watch this interface, or those of this pattern (may be given several times)
    ///
    /// A pattern has `*` for anything, `?` for a character, or `[0-3]` for one of several: `ppp*`.
    #[arg(short, long = "interface", value_name = "INTERFACE", value_parser = interface, help_heading = "Source")]
    pub interfaces: Vec<String>,

    /// Read this capture instead (`-` is standard input)
    ///
    /// A pcap or pcapng file, as it is or compressed by gzip or zstd. This takes no privileges.
    #[arg(short, long, value_name = "FILE", help_heading = "Source")]
    pub read: Option<PathBuf>,

    /// Wait for interfaces that are not there yet, in place of an error
    #[arg(long, help_heading = "Source")]
    pub wait: bool,

    /// Where packets coming in are seen
    ///
    /// Attaching XDP makes some drivers reset their queues, so `tc` is the default. `auto` takes XDP where
    /// the driver runs it natively and nobody else has a program there, else tc.
    #[arg(long, value_enum, value_name = "HOOK", default_value = "tc", help_heading = "Source")]
    pub ingress: Ingress,

    /// Flows of each address family that are followed at the same time
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_FLOWS, value_parser = max_flows,
        help_heading = "Source")]
    pub max_flows: u32,

    /// Measure in these ways alone, separated by commas; in all of them, unless given
    ///
    /// What is left out is not in the kernel programs, and costs nothing.
    #[arg(long, value_enum, value_name = "METHODS", value_delimiter = ',', default_values_t = MethodName::ALL,
        hide_default_value = true, help_heading = "Measuring")]
    pub methods: Vec<MethodName>,

    /// Which of `tcp-ts` and `tcp-seq` measures a TCP flow
    #[arg(long, value_enum, value_name = "METHOD", default_value = "auto", help_heading = "Measuring")]
    pub tcp_method: TcpMethod,

    /// UDP ports that DNS servers listen at, separated by commas; up to seven
    #[arg(long, value_name = "PORTS", value_delimiter = ',', default_values_t = [DNS_PORT], value_parser = port,
        help_heading = "Measuring")]
    pub dns_ports: Vec<u16>,

    /// Time packets to this host itself too, which measures little but its own processing
    #[arg(long, help_heading = "Measuring")]
    pub include_local: bool,

    /// At most one recording per flow direction in this time (`0` is no limit)
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = rate_limit, help_heading = "Measuring")]
    pub rate_limit: Duration,

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
    #[arg(short, long, value_name = "TIME", value_parser = aggregate, help_heading = "Aggregating")]
    pub aggregate: Option<Duration>,

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
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = time, help_heading = "Aggregating")]
    pub group_timeout: Duration,

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

    /// Groups that metrics tell apart: those with the most samples; the rest is `other`
    #[arg(long, value_name = "N", default_value = "100", value_parser = prometheus_groups, help_heading = "Output")]
    pub prometheus_groups: u32,

    /// The lowest RTT of this time is what metrics of inflation compare with
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time, help_heading = "Output")]
    pub baseline: Duration,

    /// Take options that are not given here from this file, unless the environment has them
    ///
    /// A file named here or by `PPING_CONFIG` is always read. Without one, /etc/pping/pping.toml is read if it is there
    /// and neither -i nor -r is given. SIGHUP reads it again.
    #[arg(long, value_name = "FILE", help_heading = "Service")]
    pub config: Option<PathBuf>,

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
