//! The options, each defined once.
//!
//! The parser of the command line, the environment, the file, `pping config show`, the man pages, the completions, the
//! example file and reloads all use this definition, most of them through [`super::definition`].

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgAction, ArgGroup, Parser};
use ipnet::IpNet;
use pping_common::limits::{
    DEFAULT_MAX_FLOWS, DEFAULT_MAX_GROUPS, DEFAULT_MAX_INTERFACES, DEFAULT_MAX_NETWORKS, DNS_PORT,
};

use super::{
    endpoint::{Endpoint, endpoint},
    facts::{
        AllowedIn,
        Capture::{AppliesWithDefault, Ignored, Rejected},
        Facts, SCREEN,
    },
    inside::{InsideItem, inside_item},
    reload::{Change, Reload, follow, follow_while_set, replace, restart},
    values::{
        Arms, Format, HistoryKeep, Ingress, MethodName, Profile, RemoteBy, RttType, TcpMethod, Temporality,
        Tunnel, address, aggregate, copies_within, history_disk, history_keep, history_memory, interface,
        listen_name, max_flows, max_groups, max_interfaces, max_networks, max_pending, min_samples,
        otlp_interval, port, prefix, prometheus_groups, rate_limit, residence_every, rtt_rate, time, worst,
    },
};
/// The reason why captures reject options of metrics.
const NO_METRICS: &str = "a capture has no metrics";
/// The reason why captures reject options of the history.
const NO_HISTORY: &str = "a capture has no history";
/// The reason why captures reject options of the kernel programs.
const NO_PROGRAM: &str = "no kernel program is involved";

/// Defines the struct that the command line is parsed into, and [`FACTS`]. Each option has to say what a reload does.
macro_rules! options {
    ($(
        $(#[$attribute:meta])*
        $field:ident: $type:ty {
            $(allowed_in: $allowed_in:expr,)?
            $(capture: $capture:expr,)?
            reload: $reload:expr,
            $(small: $small:literal,)?
            $(example: $example:literal,)?
            $(needs: $needs:expr,)?
        }
    )*) => {
        /// Continuous passive round-trip times of every flow that passes, without sending a packet.
        ///
        /// The options by themselves, without the commands.
        #[derive(Clone, Debug, Parser)]
        #[command(name = "pping", group(ArgGroup::new("source").args(["interfaces", "read"])))]
        pub struct Arguments {
            $($(#[$attribute])* pub $field: $type,)*
        }

        /// The facts of each option, by the name of its field.
        pub(super) static FACTS: &[(&str, Facts)] = &[$((stringify!($field), Facts {
            $(allowed_in: $allowed_in,)?
            $(capture: $capture,)?
            reload: $reload,
            $(small: Some($small),)?
            $(example: Some($example),)?
            $(needs: &$needs,)?
            ..Facts::DEFAULT
        })),*];
    };
}

options! {
    /// Watch this interface, or all that match this pattern (may be given several times, or separated by commas)
    ///
    /// A pattern has `*` for anything, `?` for one character, or `[0-3]` for one of several: `ppp*`. `eth1+eth2` joins two or
    /// more: they count as one, because each direction of a flow may pass another of them, as with a TAP or two uplinks.
    #[arg(short, long = "interface", value_name = "INTERFACE", value_delimiter = ',', value_parser = interface,
        help_heading = "Source")]
    interfaces: Vec<String> {
        capture: Ignored,
        reload: follow!(Interfaces, live.interfaces),
        example: r#"["eth0"]"#,
    }

    /// Read this capture file instead of watching interfaces (`-` is standard input)
    ///
    /// This takes a pcap or pcapng file, plain or compressed by gzip or zstd, and no privileges.
    #[arg(short, long, value_name = "FILE", help_heading = "Source")]
    read: Option<PathBuf> {
        allowed_in: AllowedIn::CommandLine("a capture is read once; give it with -r on the command line"),
        reload: restart!(capture),
    }

    /// Take all interfaces of the capture for one: each direction of a flow may be at another, as with a TAP
    ///
    /// Records then have no interface, and no direction in which echoes were matched.
    #[arg(long, help_heading = "Source")]
    join: bool {
        allowed_in: AllowedIn::CommandLine("a capture is read once; give it with -r on the command line"),
        reload: restart!(join),
        needs: ["read"],
    }

    /// Wait for interfaces that do not exist yet, instead of failing
    #[arg(long, help_heading = "Source")]
    wait: bool {
        capture: Rejected("pping does not wait for captures"),
        reload: follow!(Interfaces, live.wait),
        example: "true",
    }

    /// Measure at a mirror port: what comes in only, with both sides of the network by --inside
    ///
    /// pping keeps the port in promiscuous mode while it runs, takes no address for its own, and leaves out copies: packets
    /// that a mirror of several ports shows more than once. A capture has its copies left out, too.
    #[arg(long, help_heading = "Source")]
    mirror: bool {
        reload: restart!(live.mirror),
        example: "false",
    }

    /// Leave out packets that pass a mirror port again within this time
    ///
    /// A copy has the same addresses, ports, numbers, timestamps, length and IPv4 identification. MAC addresses, VLAN tags, TTL
    /// and checksums may differ. Copies count as `pping_untracked_packets_total{reason="duplicate"}`.
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = copies_within, help_heading = "Source")]
    copies_within: Duration {
        reload: restart!(copies_within),
        needs: ["mirror"],
    }

    /// Attach here for incoming packets
    ///
    /// Attaching XDP makes some drivers reset their queues, so `tc` is the default. `auto` takes XDP where the driver runs
    /// it natively and the interface has no other XDP program, else tc.
    #[arg(long, value_enum, value_name = "POINT", default_value = "tc", help_heading = "Source")]
    ingress: Ingress {
        capture: Rejected("the packets of a capture pass through no attach point"),
        reload: restart!(live.ingress),
    }

    /// Take the defaults of all sizes from this profile
    ///
    /// `small` stands for `--max-flows 8192`, `--max-pending 4096`, `--max-interfaces 32`, `--max-groups 1024`, `--history-memory 4`,
    /// `--history-disk 64MiB` and `--history-keep 1d,14d,1y`. Each of these options wins over it.
    #[arg(long, value_enum, value_name = "PROFILE", default_value = "default", help_heading = "Source")]
    profile: Profile {
        capture: Rejected("it is for boxes that measure what passes; give --max-flows or --max-groups"),
        reload: restart!(live.profile),
    }

    /// Track at most this many flows per address family
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_FLOWS, value_parser = max_flows,
        help_heading = "Source")]
    max_flows: u32 {
        reload: restart!(max_flows),
        small: "8192",
    }

    /// Limit the flows per address family that have pending timestamps, at most --max-flows
    ///
    /// A flow takes one of these when it records something, and gives it back after two seconds without packets if nothing is
    /// pending. What is not recorded for want of one is counted as `pping_recordings_skipped_total{reason="no_pending"}`.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_FLOWS, value_parser = max_pending,
        help_heading = "Source")]
    max_pending: u32 {
        capture: Rejected("each flow of a capture has room for its own pending timestamps"),
        reload: restart!(live.max_pending),
        small: "4096",
    }

    /// Watch at most this many interfaces, those included that went away a moment ago
    ///
    /// A server of dial-in links has thousands. Each takes memory for its counters and series, whether it exists or not.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_INTERFACES, value_parser = max_interfaces,
        help_heading = "Source")]
    max_interfaces: u32 {
        capture: Rejected("a capture may have any number of interfaces"),
        reload: restart!(live.max_interfaces),
        small: "32",
    }

    /// Measure by these methods only, separated by commas (default: `all`)
    ///
    /// Methods that are left out are not in the kernel programs, and cost nothing.
    #[arg(long, value_enum, value_name = "METHODS", value_delimiter = ',', default_values_t = MethodName::EACH,
        hide_default_value = true, help_heading = "Measuring")]
    methods: Vec<MethodName> {
        reload: restart!(methods),
    }

    /// Choose between `tcp-ts` and `tcp-seq` for a TCP flow
    #[arg(long, value_enum, value_name = "METHOD", default_value = "auto", help_heading = "Measuring")]
    tcp_method: TcpMethod {
        reload: restart!(tcp_method),
    }

    /// Declare whether both hosts of a flow may be on the same side of an interface
    ///
    /// In the path, a packet and its answer come in by different interfaces. With `two`, what comes in by one interface together
    /// with its answer is taken for forged and gives no sample.
    #[arg(long, value_enum, value_name = "ARMS", default_value = "auto", help_heading = "Measuring")]
    arms: Arms {
        reload: restart!(arms),
    }

    /// Expect DNS servers at these UDP ports, separated by commas (at most seven)
    #[arg(long, value_name = "PORTS", value_delimiter = ',', default_values_t = [DNS_PORT], value_parser = port,
        help_heading = "Measuring")]
    dns_ports: Vec<u16> {
        reload: restart!(dns_ports),
    }

    /// Also measure packets to this host itself, which shows little but its own processing time
    #[arg(long, help_heading = "Measuring")]
    include_local: bool {
        capture: Rejected("a capture does not tell which addresses were local, so all its packets are timed"),
        reload: restart!(rules.include_local),
    }

    /// Record at most one timestamp per flow direction in this time; `0` is no limit, and the default with -r
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = rate_limit, help_heading = "Measuring")]
    rate_limit: Duration {
        capture: AppliesWithDefault("0"),
        reload: restart!(rules.rate_limit),
    }

    /// Record at most one timestamp per flow direction in this many of its RTTs (`0` is no limit)
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = rtt_rate, help_heading = "Measuring")]
    rtt_rate: f64 {
        reload: restart!(rules.rtt_rate),
    }

    /// Choose the RTT that `--rtt-rate` multiplies
    #[arg(long, value_enum, value_name = "RTT", default_value = "smoothed", help_heading = "Measuring")]
    rtt_type: RttType {
        reload: restart!(rules.rtt_basis),
        needs: ["rtt-rate"],
    }

    /// Measure the flows inside these tunnels, separated by commas
    ///
    /// One level of tunnel is decoded. VLAN tags, PPPoE sessions and MPLS labels always are.
    #[arg(long, value_enum, value_name = "TUNNELS", value_delimiter = ',', help_heading = "Measuring")]
    decap: Vec<Tunnel> {
        reload: restart!(decap),
        example: r#"["gre", "vxlan"]"#,
    }

    /// Ignore traffic from and to these networks (may be given several times, or separated by commas)
    #[arg(long, value_name = "PREFIX", value_delimiter = ',', value_parser = prefix, help_heading = "Measuring")]
    exclude: Vec<IpNet> {
        reload: restart!(aggregation.exclude),
        example: r#"["192.0.2.0/24", "2001:db8::/32"]"#,
    }

    /// Tell the two sides of your network apart: hosts of these networks are inside, all others outside
    ///
    /// May be given several times, or separated by commas. `groups` stands for all networks that `--groups` lists. The side of the
    /// host that replied is `side` in records and in labels of metrics. See docs/placement.md.
    #[arg(long, value_name = "PREFIX", value_delimiter = ',', value_parser = inside_item,
        help_heading = "Measuring")]
    inside: Vec<InsideItem> {
        reload: Reload::FollowWhileSet(
            Change::Inside,
            |config| config.aggregation.grouping().inside,
            |config, new| replace(&mut config.aggregation.inside, &new.aggregation.inside),
        ),
        example: r#"["192.0.2.0/24", "2001:db8::/32"]"#,
    }

    /// Measure the time that packets spend in this host: between two watched interfaces, and in the queue of each
    ///
    /// The queue is that of the root qdisc. See docs/residence.md. Queues need Linux 5.15 or newer.
    #[arg(long, help_heading = "Measuring")]
    residence: bool {
        capture: Rejected("the packets of a capture pass through no queue"),
        reload: restart!(live.residence),
        example: "true",
    }

    /// Sample 1 in N packets per CPU (at random) for queueing delay; `0` disables it
    ///
    /// With `0`, `--residence` measures only the time between two watched interfaces, which works on any kernel.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = residence_every,
        help_heading = "Measuring")]
    residence_every: u32 {
        capture: Rejected("the packets of a capture pass through no queue"),
        reload: restart!(live.residence),
        needs: ["residence"],
    }

    /// Report percentiles of each group at this interval (`10s`), instead of samples
    #[arg(short, long, value_name = "TIME", value_parser = aggregate, help_heading = "Aggregating")]
    aggregate: Option<Duration> {
        reload: restart!(aggregation.interval),
        example: r#""10s""#,
    }

    /// Group by network, host or class of service: `/24,/48`, `destination`, `both`, `dscp`
    ///
    /// A list, separated by commas. `/24,/48` makes a group of each IPv4 network of 24 bits and each IPv6
    /// network of 48 bits. The network is that of the host that replied (`source`, the default), of the host whose packets
    /// are timed (`destination`), or of the two (`both`). `dscp` separates classes of service, alone or beside the others.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Aggregating")]
    group_by: Vec<String> {
        reload: restart!(aggregation.group_by),
        example: r#"["dscp"]"#,
    }

    /// Make the groups that this file lists: `prefix,group` lines (CSV), or TOML; SIGHUP reads it again
    ///
    /// The longest matching prefix wins. A host that matches none is in the group `unlisted`. With --groups-socket, which gives
    /// labels prefixes, the file may have labels and their other columns alone: `group,site,ap`.
    #[arg(long, value_name = "FILE", help_heading = "Aggregating")]
    groups: Option<PathBuf> {
        reload: follow_while_set!(Groups, aggregation.groups),
        example: r#""/etc/pping/groups.csv""#,
    }

    /// Take changes of single prefixes at this Unix socket, from `pping groups` and other programs, as JSON lines
    ///
    /// A change takes effect within milliseconds, and touches no other prefix. The socket is for its owner and its group (mode
    /// 0660). It works with `--groups` and without: then the groups begin empty. See docs/groups.md.
    #[arg(long, value_name = "PATH", help_heading = "Aggregating")]
    groups_socket: Option<PathBuf> {
        capture: Rejected("a capture ends before its groups change; use --groups"),
        reload: restart!(aggregation.groups_socket),
        example: r#""/run/pping-groups/pping/groups.sock""#,
    }

    /// Keep what comes by --groups-socket in this file, also across restarts
    ///
    /// Without it, a service keeps it in its directory of state (`STATE_DIRECTORY` of systemd), and others forget it when they stop.
    #[arg(long, value_name = "FILE", help_heading = "Aggregating")]
    groups_state: Option<PathBuf> {
        capture: Rejected("a capture ends before its groups change; use --groups"),
        reload: restart!(aggregation.groups_state),
        example: r#""/var/lib/pping/groups.journal""#,
        needs: ["groups-socket"],
    }

    /// Add groups up by these columns of the groups file, the outermost first: `site,ap`
    ///
    /// A list, separated by commas. Each column is a level of a tree: records, metrics, `/api/v1/groups?by=ap`, `pping top`
    /// and the page have the sums of all groups with the same site, and of those with the same access point at a site.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Aggregating")]
    roll_up: Vec<String> {
        reload: follow!(Groups, aggregation.roll_up),
        example: r#"["site", "ap"]"#,
    }

    /// Count samples by the network at the other end, too: by a database of AS numbers (`.mmdb`) or CSV; SIGHUP reads it again
    ///
    /// The other end is the host outside of your network (`--inside`) or without a group (`--groups`), else the one that replied. Networks
    /// have their own records, metrics and table on the screens, whatever the groups. See docs/groups.md.
    #[arg(long, value_name = "FILE", help_heading = "Aggregating")]
    remote_groups: Option<PathBuf> {
        reload: follow_while_set!(Networks, aggregation.remote_groups),
        example: r#""/var/lib/GeoIP/GeoLite2-ASN.mmdb""#,
    }

    /// Tell these networks apart by AS number or by country
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = RemoteBy::Asn, help_heading = "Aggregating")]
    remote_by: RemoteBy {
        reload: restart!(aggregation.remote_by),
        needs: ["remote-groups"],
    }

    /// Keep at most this many of these networks; the rest is `other`
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_NETWORKS, value_parser = max_networks,
        help_heading = "Aggregating")]
    max_networks: u32 {
        reload: restart!(aggregation.max_networks),
        needs: ["remote-groups"],
    }

    /// Keep at most this many groups; the rest is `other`
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_GROUPS, value_parser = max_groups,
        help_heading = "Aggregating")]
    max_groups: u32 {
        reload: restart!(aggregation.max_groups),
        small: "1024",
        needs: ["group-by", "groups", "groups-socket", SCREEN],
    }

    /// Forget a group after this time without packets, to make room for another
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = time, help_heading = "Aggregating")]
    group_timeout: Duration {
        reload: follow!(GroupTimeout, aggregation.group_timeout),
    }

    /// Score latency and loss by the quality profiles in this file, from 0 to 100; SIGHUP reads it again
    ///
    /// Without it there are profiles of a video call, a game and the web. In a file without any, nothing is scored.
    #[arg(long, value_name = "FILE", help_heading = "Aggregating")]
    quality: Option<PathBuf> {
        reload: follow!(Quality, quality),
        example: r#""/etc/pping/quality.toml""#,
        needs: ["aggregate", "listen", "otlp", SCREEN],
    }

    /// Report each flow once, at its end, instead of its samples
    #[arg(long, help_heading = "Aggregating")]
    flow_summary: bool {
        reload: restart!(aggregation.flow_summary),
    }

    /// Also report samples, and flows that open and close, with --aggregate or --flow-summary
    #[arg(long, help_heading = "Aggregating")]
    with_samples: bool {
        reload: restart!(aggregation.with_samples),
        needs: ["aggregate", "flow-summary"],
    }

    /// Write the distribution of each group and interval to this file, as an interval log of `HdrHistogram`, version 2
    #[arg(long, value_name = "FILE", help_heading = "Aggregating")]
    hdr_log: Option<PathBuf> {
        reload: restart!(aggregation.hdr_log),
        example: r#""/var/lib/pping/rtt.hlog""#,
    }

    /// With each interval of --aggregate, also report the worst N flows and groups by RTT, inflation, retransmissions and bytes
    ///
    /// Flows are ranked once a second, by their smoothed RTT, its distance from their lowest, the share of packets that were retransmitted,
    /// and the bytes since the second before. Groups are ranked by the 95th percentile in place of the smoothed RTT.
    #[arg(long, value_name = "N", value_parser = worst, help_heading = "Aggregating")]
    worst: Option<u32> {
        reload: restart!(aggregation.worst),
        example: "20",
    }

    /// Rank only flows with this many packets from each end, and groups with this many samples or packets
    #[arg(long, value_name = "N", default_value = "20", value_parser = min_samples, help_heading = "Aggregating")]
    worst_min_samples: u32 {
        reload: restart!(aggregation.worst_min_samples),
        needs: ["worst", "listen", SCREEN],
    }

    /// Write records in this format (default: `standard` on a terminal, else `jsonl`)
    ///
    /// Times of `standard` are local, with their offset from UTC; those of `ppviz` and JSON count from 1970 in UTC.
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    format: Option<Format> {
        reload: restart!(format),
        example: r#""none""#,
    }

    /// Write records to this file instead of standard output; SIGHUP reopens it
    #[arg(short = 'w', long = "write", value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf> {
        reload: follow!(Output, output),
        example: r#""/var/lib/pping/records.jsonl""#,
    }

    /// Serve Prometheus metrics at this address, for instance 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS", value_parser = address, help_heading = "Output")]
    listen: Option<SocketAddr> {
        capture: Rejected(
            "a capture ends before Prometheus can scrape it; see the summary at the end, or use \
             --format jsonl"
        ),
        reload: follow!(Listen, live.listen),
        example: r#""127.0.0.1:9464""#,
    }

    /// Read TLS certificates and passwords for --listen from this file, in the format of Prometheus' web configuration
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    web_config: Option<PathBuf> {
        capture: Rejected(NO_METRICS),
        reload: follow!(WebConfig, live.web_config),
        example: r#""/etc/pping/web.yml""#,
    }

    /// Also accept requests for this host name (may be given several times, or separated by commas)
    ///
    /// Without passwords or TLS, --listen answers only requests for an address, for `localhost` and for the host's own
    /// name. Else a web site could have its name resolve to this host, and its scripts could read what pping measures.
    #[arg(long = "listen-name", value_name = "NAME", value_delimiter = ',', value_parser = listen_name,
        help_heading = "Output")]
    listen_names: Vec<String> {
        capture: Rejected(NO_METRICS),
        reload: follow!(WebConfig, live.listen_names),
        example: r#"["pping.example"]"#,
        needs: ["listen"],
    }

    /// Export at most this many groups in metrics: those with the most samples; the rest is `other`
    #[arg(long, value_name = "N", default_value = "100", value_parser = prometheus_groups, help_heading = "Output")]
    prometheus_groups: u32 {
        capture: Rejected(NO_METRICS),
        reload: follow!(Metrics, live.prometheus_groups),
        needs: ["listen", "otlp"],
    }

    /// Compare RTTs with the lowest one of this window, in metrics of inflation
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time, help_heading = "Output")]
    baseline: Duration {
        capture: Rejected(NO_METRICS),
        reload: follow!(Metrics, live.baseline),
        needs: ["listen", "otlp"],
    }

    /// Limit memory for the last 15 minutes of groups in `pping top`, the page and /api/v1, in MiB
    ///
    /// Where that is too little, the groups with the fewest samples are left out.
    #[arg(long, value_name = "MIB", default_value = "16", value_parser = history_memory, help_heading = "Output")]
    history_memory: u32 {
        capture: Rejected("a capture ends before anyone can look at it; use pping top -r"),
        reload: follow!(HistoryMemory, live.history_memory),
        small: "4",
        needs: ["listen", SCREEN],
    }

    /// Keep months of measurements in this directory, in files that `pping history`, the page and other programs read
    ///
    /// Each minute is a Parquet file, with a row for each series of each group. Files of hours and days with intervals of
    /// 1 min, 5 min and 1 h are made of them. Measuring never waits for the disk.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    history: Option<PathBuf> {
        capture: Rejected("a capture is no part of what passed here; use --aggregate with --format jsonl"),
        reload: restart!(live.history),
        example: r#""/var/lib/pping/history""#,
    }

    /// Let the history take this much of the disk: beyond that, the oldest files of the shortest intervals are removed
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = history_disk, help_heading = "Output")]
    history_disk: u64 {
        capture: Rejected(NO_HISTORY),
        reload: follow!(HistoryLimits, live.history_limits.disk),
        small: "64MiB",
        needs: ["history"],
    }

    /// Keep intervals of 1 min, 5 min and 1 h for this long, in days with measurements
    #[arg(long, value_name = "TIMES", default_value = "3d,60d,2y", value_parser = history_keep,
        help_heading = "Output")]
    history_keep: HistoryKeep {
        capture: Rejected(NO_HISTORY),
        reload: follow!(HistoryLimits, live.history_limits.keep),
        small: "1d,14d,1y",
        needs: ["history"],
    }

    /// Push metrics to this receiver of OTLP/HTTP, for instance `http://127.0.0.1:4318`
    ///
    /// This may be an OpenTelemetry collector, or a database that takes OTLP. `/v1/metrics` is added to a URL without a path.
    /// Measuring never waits for the receiver. While it does not answer, exports are kept, up to 16 MiB, and sent later.
    #[arg(long, value_name = "URL", value_parser = endpoint, help_heading = "Output")]
    otlp: Option<Endpoint> {
        capture: Rejected(NO_METRICS),
        reload: follow!(Otlp, live.otlp),
        example: r#""https://collector.example:4318""#,
    }

    /// Push at this interval
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = otlp_interval, help_heading = "Output")]
    otlp_interval: Duration {
        capture: Rejected(NO_METRICS),
        reload: follow!(Otlp, live.otlp),
        needs: ["otlp"],
    }

    /// Send the headers in this file with each push: lines like `Authorization: Bearer ...`; SIGHUP reads it again
    ///
    /// The file must not be accessible to others (mode 0640 or stricter).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    otlp_headers: Option<PathBuf> {
        capture: Rejected(NO_METRICS),
        reload: follow!(Otlp, live.otlp),
        example: r#""/etc/pping/otlp-headers""#,
    }

    /// Trust the authorities in this file (PEM) and no others to certify the receiver; SIGHUP reads it again
    ///
    /// Without it those of the system are trusted.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    otlp_ca: Option<PathBuf> {
        capture: Rejected(NO_METRICS),
        reload: follow!(Otlp, live.otlp),
        example: r#""/etc/pping/otlp-ca.pem""#,
    }

    /// Choose the aggregation temporality of pushed metrics
    #[arg(long, value_enum, value_name = "KIND", default_value = "cumulative", help_heading = "Output")]
    otlp_temporality: Temporality {
        capture: Rejected(NO_METRICS),
        reload: follow!(Otlp, live.otlp),
        needs: ["otlp"],
    }

    /// Read options from this file; the command line and the environment take precedence
    ///
    /// A file named here or by `PPING_CONFIG` is always read. Without one, /etc/pping/pping.toml is read if it exists and
    /// neither -i nor -r is given. SIGHUP reads it again.
    #[arg(long, value_name = "FILE", help_heading = "Service")]
    config: Option<PathBuf> {
        allowed_in: AllowedIn::NotInFiles("it names the file itself"),
        // The process keeps the command line and the environment that it was started with.
        reload: Reload::NEVER,
    }

    /// Keep measuring while pping is stopped or upgraded: pin programs, links and maps in this directory of a bpffs
    #[arg(long, value_name = "DIR", help_heading = "Service")]
    pin: Option<PathBuf> {
        capture: Rejected(NO_PROGRAM),
        reload: restart!(live.pin),
        example: r#""/sys/fs/bpf/pping""#,
    }

    /// Log more to standard error (`-vv`: even more), with times in UTC
    #[arg(short, long, action = ArgAction::Count, help_heading = "Diagnosis")]
    verbose: u8 {
        reload: follow!(Verbosity, verbosity),
    }

    /// Log what the kernel programs do (implies `-vv`)
    #[arg(long, help_heading = "Diagnosis")]
    bpf_log: bool {
        capture: Rejected(NO_PROGRAM),
        reload: restart!(live.bpf_log),
    }
}
