//! The values of options.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use clap::{ValueEnum, builder::PossibleValue};
use ipnet::IpNet;
use pping_common::{copies::MAX_COPIES_WITHIN, limits::HIGHEST_MAX_INTERFACES, method::Method};

use super::joined;
use crate::spelling::{JOINT, pattern};

/// The longest alternative name of an interface: `ALTIFNAMSIZ` without its NUL.
const MAX_ALTERNATIVE_NAME: usize = 127;

/// The longest name of a host, without a dot at its end (RFC 1035, 2.3.4).
const MAX_NAME: usize = 253;

/// The longest part of such a name.
const MAX_NAME_LABEL: usize = 63;

/// The most flows per family: beyond that a map would take more than 6 GB.
const MAX_FLOWS: u32 = 16_777_216;

/// The largest `--residence-every`.
const MAX_RESIDENCE_EVERY: u32 = 65_536;

/// The most groups: beyond that they would take more than 1 GB.
const MAX_GROUPS: u32 = 262_144;

/// The most networks at the other end.
const MAX_NETWORKS: u32 = 16_384;

/// The largest `--worst`: each candidate is compared with all of the worst.
const MAX_WORST: u32 = 1000;

/// The most memory for history, MiB.
const MAX_HISTORY: u32 = 4096;

/// The shortest `--aggregate`: each interval ends with a pass over all series.
const MIN_INTERVAL: Duration = Duration::from_millis(10);

/// The shortest `--otlp-interval`: the metrics change once a second.
const MIN_EXPORT: Duration = Duration::from_secs(1);

/// The largest `--rtt-rate`.
const MAX_RTT_RATE: f64 = 255.0;

// The standard library's errors say what is wrong with the text; these say what to write instead.

pub(crate) fn interface(text: &str) -> Result<String, String> {
    if text.contains(JOINT) {
        return joined::check(text, |name| interface(name).map(drop)).map(|()| text.to_owned());
    }
    if text == "any" {
        return Err(
            "`any` is no interface here; for all interfaces give '*', and for one that is called any \
                    '[a]ny', in quotes"
                .to_owned(),
        );
    }
    if let Some(pattern) = pattern(text) {
        return match pattern {
            Ok(_) => Ok(text.to_owned()),
            Err(error) => {
                Err(format!("this is not a pattern ({}); give one like ppp* or eth[0-3]", error.msg))
            }
        };
    }
    if text.is_empty() || text.len() > MAX_ALTERNATIVE_NAME || text.contains(['/', ' ']) {
        return Err(
            "an interface name has 1 to 15 characters (an alternative name up to 127), none of them a space \
                    or a slash"
                .to_owned(),
        );
    }
    Ok(text.to_owned())
}

pub(super) fn max_flows(text: &str) -> Result<u32, &'static str> {
    number(text, 1..=MAX_FLOWS).ok_or("give a number from 1 to 16777216")
}

pub(super) fn max_pending(text: &str) -> Result<u32, &'static str> {
    max_flows(text)
}

pub(super) fn max_interfaces(text: &str) -> Result<u32, &'static str> {
    number(text, 1..=HIGHEST_MAX_INTERFACES).ok_or("give a number from 1 to 16384")
}

pub(super) fn max_groups(text: &str) -> Result<u32, &'static str> {
    number(text, 1..=MAX_GROUPS).ok_or("give a number from 1 to 262144")
}

pub(super) fn max_networks(text: &str) -> Result<u32, &'static str> {
    number(text, 1..=MAX_NETWORKS).ok_or("give a number from 1 to 16384")
}

pub(super) fn worst(text: &str) -> Result<u32, &'static str> {
    number(text, 1..=MAX_WORST).ok_or("give a number from 1 to 1000")
}

pub(super) fn min_samples(text: &str) -> Result<u32, &'static str> {
    number(text, 1..=u32::MAX).ok_or("give a number of 1 or more")
}

pub(super) fn residence_every(text: &str) -> Result<u32, &'static str> {
    number(text, 0..=MAX_RESIDENCE_EVERY).ok_or("give a number from 0 to 65536")
}

pub(super) fn history_memory(text: &str) -> Result<u32, &'static str> {
    number(text, 0..=MAX_HISTORY).ok_or("give a number of MiB from 0 to 4096")
}

/// For how long intervals of each length are kept: of 1 min, 5 min and 1 h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryKeep(pub [Duration; 3]);

pub(crate) fn history_disk(text: &str) -> Result<u64, &'static str> {
    const UNITS: [(&str, u32); 3] = [("TiB", 40), ("GiB", 30), ("MiB", 20)];
    let size = |(unit, shift): (&str, u32)| {
        let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        number.checked_mul(1 << shift)
    };
    UNITS.into_iter().find_map(size).filter(|&bytes| bytes > 0).ok_or("give a size like 4GiB or 500MiB")
}

pub(crate) fn history_keep(text: &str) -> Result<HistoryKeep, &'static str> {
    const FORM: &str = "give three times like 3d,60d,2y: for intervals of 1 min, 5 min and 1 h, none shorter than the one \
                        before";
    let times: Result<Vec<Duration>, _> = text.split(',').map(humantime::parse_duration).collect();
    let times = times.ok().filter(|times| times.is_sorted() && times.iter().all(|time| !time.is_zero()));
    times.and_then(|times| times.try_into().ok()).map(HistoryKeep).ok_or(FORM)
}

pub(super) fn prometheus_groups(text: &str) -> Result<u32, &'static str> {
    text.parse().map_err(|_| "give a number; 0 means no groups")
}

fn number(text: &str, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
    text.parse().ok().filter(|number| range.contains(number))
}

pub(super) fn rtt_rate(text: &str) -> Result<f64, &'static str> {
    let rate = text.parse().ok().filter(|rate| (0.0..=MAX_RTT_RATE).contains(rate));
    rate.ok_or("give a number from 0 to 255")
}

pub(super) fn port(text: &str) -> Result<u16, &'static str> {
    text.parse().ok().filter(|&port| port != 0).ok_or("give a port from 1 to 65535")
}

pub(super) fn prefix(text: &str) -> Result<IpNet, String> {
    let unknown = || "give an address or a prefix, like 192.0.2.0/24 or 2001:db8::/32".to_owned();
    without_host_bits(network(text).ok_or_else(|| leading_zero(text).unwrap_or_else(unknown))?)
}

/// The network of a prefix, or of an address alone. A decimal number with a leading zero is none: some programs take it
/// for octal.
pub(crate) fn network(text: &str) -> Option<IpNet> {
    let Some((address, len)) = text.split_once('/') else {
        return text.parse::<IpAddr>().map(IpNet::from).ok();
    };
    let is_number = len.bytes().all(|byte| byte.is_ascii_digit()) && (len == "0" || !len.starts_with('0'));
    let len = len.parse().ok().filter(|_| is_number)?;
    IpNet::new(address.parse().ok()?, len).ok()
}

/// The reason to refuse what would be a prefix without its leading zeros.
pub(crate) fn leading_zero(text: &str) -> Option<String> {
    let (address, len) = text.split_once('/').map_or((text, None), |(address, len)| (address, Some(len)));
    let plain = |number: &str| match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0".to_owned(),
        digits => digits.to_owned(),
    };
    // The groups of IPv6 are hexadecimal for everybody.
    let address = if address.contains(':') {
        address.to_owned()
    } else {
        address.split('.').map(plain).collect::<Vec<_>>().join(".")
    };
    let meant = len.map_or_else(|| address.clone(), |len| format!("{address}/{}", plain(len)));
    (meant != text && network(&meant).is_some())
        .then(|| format!("`{text}` has a number with a leading zero, which may be octal; write {meant}"))
}

/// Rejects a prefix with bits set beyond its length: was the network meant, or the host?
pub(crate) fn without_host_bits(prefix: IpNet) -> Result<IpNet, String> {
    let (network, address, len) = (prefix.trunc(), prefix.addr(), prefix.prefix_len());
    if network == prefix {
        return Ok(prefix);
    }
    Err(format!(
        "{prefix} has bits set beyond the first {len}; write {network}, or {address} for that host alone"
    ))
}

/// An address of this host, and a port. A port alone could mean this host alone, or everybody.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse::<u16>().ok()),
        None => ("", text.parse::<u16>().ok()),
    };
    Err(match (host, port) {
        ("localhost", Some(port)) => return Ok((Ipv4Addr::LOCALHOST, port).into()),
        ("" | "*", Some(port)) => format!(
            "say who can connect: like 127.0.0.1:{port} for this host alone, or [::]:{port} for all hosts"
        ),
        (name, Some(port)) if !name.contains([':', '[', '/']) => format!(
            "{name} is not an address; give one of this host, like 127.0.0.1:{port}, or [::]:{port} for all of \
             them"
        ),
        _ => "give an address and a port, like 127.0.0.1:9464".to_owned(),
    })
}

/// A host name in lower case, as clients write it into `Host`.
pub(super) fn listen_name(text: &str) -> Result<String, &'static str> {
    if text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
        return Err("addresses are accepted anyway; list names only");
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_label = |label: &str| !label.is_empty() && label.bytes().all(is_in_name);
    if !name.split('.').all(is_label) {
        return Err("give a host name without scheme and port, like gateway.example");
    }
    let has_room = name.len() <= MAX_NAME && name.split('.').all(|label| label.len() <= MAX_NAME_LABEL);
    let is_hyphenated = |label: &str| label.starts_with('-') || label.ends_with('-');
    if !has_room || name.split('.').any(is_hyphenated) {
        return Err(
            "no host has this name: one has up to 253 characters, up to 63 between two dots, and no hyphen \
                    beside a dot or at an end",
        );
    }
    Ok(name)
}

/// A time, or 0 for none.
pub(super) fn rate_limit(text: &str) -> Result<Duration, &'static str> {
    duration(text).ok_or("give a number with its unit, like 100ms or 2s, or 0")
}

/// A time within which a packet that passes again is a copy.
pub(super) fn copies_within(text: &str) -> Result<Duration, &'static str> {
    let is_possible = |time: &Duration| !time.is_zero() && *time <= Duration::from_nanos(MAX_COPIES_WITHIN);
    duration(text).filter(is_possible).ok_or("give a number with its unit, up to 1s, like 500us or 2ms")
}

/// A time that is not 0.
pub(super) fn time(text: &str) -> Result<Duration, &'static str> {
    duration(text).filter(|time| !time.is_zero()).ok_or("give a number with its unit, like 10s or 5m")
}

/// An interval of reports.
pub(super) fn aggregate(text: &str) -> Result<Duration, &'static str> {
    time(text)
        .and_then(|time| if time < MIN_INTERVAL { Err("give 10ms or more, like 10s") } else { Ok(time) })
}

/// An interval of exports.
pub(super) fn otlp_interval(text: &str) -> Result<Duration, &'static str> {
    time(text).and_then(|time| if time < MIN_EXPORT { Err("give 1s or more, like 15s") } else { Ok(time) })
}

/// A time whose nanoseconds fit into 64 bits.
fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    humantime::parse_duration(text).ok().filter(|time| u64::try_from(time.as_nanos()).is_ok())
}

/// The sizes that pping has by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// For routers and servers: all maps take 140 MiB of kernel memory, or some more with groups
    Default,
    /// For boxes with little memory: all maps take less than 16 MiB of kernel memory
    Small,
}

#[cfg(feature = "live")]
impl Profile {
    /// Bytes of the ring buffer of events.
    pub(crate) fn ring_bytes(self) -> u32 {
        match self {
            Self::Default => pping_common::limits::RING_BYTES,
            Self::Small => pping_common::limits::SMALL_RING_BYTES,
        }
    }
}

/// The attach point for incoming packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ingress {
    /// As the network stack gets them
    Tc,
    /// As the driver hands them over
    Xdp,
    /// XDP where the driver runs it natively, else tc
    Auto,
}

/// A value of `--methods`: a way to measure round-trip times, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodName {
    /// One.
    One(Method),
    /// All.
    All,
}

impl MethodName {
    /// Each method.
    pub(super) const EACH: [Self; Method::ALL.len()] = Self::first();

    /// The first values: the methods, then [`MethodName::All`].
    const fn first<const N: usize>() -> [Self; N] {
        let (mut values, mut at) = ([Self::All; N], 0);
        while at < Method::ALL.len() {
            values[at] = Self::One(Method::ALL[at]);
            at += 1;
        }
        values
    }
}

impl ValueEnum for MethodName {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [MethodName; Method::ALL.len() + 1] = MethodName::first();
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match *self {
            Self::One(method) => (method.name(), help_of(method)),
            Self::All => ("all", "All of them"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

/// What a method is, in the help.
fn help_of(method: Method) -> &'static str {
    match method {
        Method::TcpTs => "TCP: timestamps and their echo",
        Method::TcpSeq => "TCP: sequence numbers and the ACK that covers them",
        Method::TcpHandshake => "TCP: SYN and SYN-ACK, and SYN-ACK and the ACK that completes the handshake",
        Method::IcmpEcho => "ICMP and ICMPv6: echo request and reply",
        Method::Dns => "DNS over UDP: query and response",
        Method::QuicSpin => "QUIC: the spin bit, where a connection has it",
        Method::QuicHandshake => "QUIC: the client's first Initial and the server's answer",
    }
}

/// Which method measures a TCP flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TcpMethod {
    /// The best enabled one for each flow: timestamps where it has them, else sequence numbers
    Auto,
    /// Timestamps only; flows without them are not measured
    Ts,
    /// Sequence numbers only, with or without timestamps
    Seq,
    /// Sequence numbers always, and timestamps where there are any, for comparison
    Both,
}

/// On how many sides of an interface the hosts of a flow are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arms {
    /// Detect it for each interface from its traffic; for a capture the same as `one`
    Auto,
    /// Both hosts may be on the same side, as at a one-armed router or a mirror port
    One,
    /// The hosts are on different sides: an answer that comes in where its request did is forged
    Two,
}

/// Which RTT of a flow direction `--rtt-rate` multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RttType {
    /// The smoothed RTT
    Smoothed,
    /// The lowest RTT
    Min,
}

/// What networks at the other end are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RemoteBy {
    /// The number of the autonomous system (AS)
    Asn,
    /// The country
    Country,
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
    /// ERSPAN (types I to III): what switches mirror
    Erspan,
    /// TZSP, to UDP port 37008: what routers mirror
    Tzsp,
}

/// Aggregation temporality (OpenTelemetry).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Temporality {
    /// Totals since pping started, as Prometheus wants them: a lost export loses no counts
    Cumulative,
    /// Changes since the previous export
    Delta,
}

/// The format of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Readable lines
    Standard,
    /// One JSON object per line
    Jsonl,
    /// One JSON array
    Json,
    /// One line per sample, in seconds, for ppviz
    Ppviz,
    /// Nothing
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_is_told_what_all_interfaces_are() {
        let said = interface("any").unwrap_err();
        assert!(said.contains("'*'") && said.contains("'[a]ny'"), "{said}");
        assert_eq!(interface("*").as_deref(), Ok("*"));
        assert_eq!(interface("[a]ny").as_deref(), Ok("[a]ny"));
        assert_eq!(interface("anything").as_deref(), Ok("anything"));
    }

    #[test]
    fn what_listens_is_an_address_and_a_port() {
        for (text, expected) in [
            ("127.0.0.1:9464", "127.0.0.1:9464"),
            ("[::]:9464", "[::]:9464"),
            ("localhost:9464", "127.0.0.1:9464"),
        ] {
            assert_eq!(address(text).unwrap().to_string(), expected);
        }
        for (text, parts) in [
            (":9464", ["127.0.0.1:9464 for this host alone", "[::]:9464 for all hosts"]),
            ("*:80", ["127.0.0.1:80 for this host alone", "[::]:80 for all hosts"]),
            ("9464", ["127.0.0.1:9464 for this host alone", "[::]:9464 for all hosts"]),
            ("gw.example:9464", ["gw.example is not an address", "127.0.0.1:9464"]),
            ("localhost", ["a port", "like 127.0.0.1:9464"]),
            ("127.0.0.1", ["a port", "like 127.0.0.1:9464"]),
            ("::1", ["a port", "like 127.0.0.1:9464"]),
            ("http://127.0.0.1:9464", ["a port", "like 127.0.0.1:9464"]),
            ("127.0.0.1:99999", ["a port", "like 127.0.0.1:9464"]),
        ] {
            let said = address(text).unwrap_err();
            assert!(parts.iter().all(|part| said.contains(part)), "{text}: {said}");
        }
    }

    #[test]
    fn a_name_to_listen_for_has_no_scheme_or_port() {
        for (text, name) in
            [("gw7", "gw7"), ("PPing.example.", "pping.example"), ("a_b-1.example", "a_b-1.example")]
        {
            assert_eq!(listen_name(text).as_deref(), Ok(name));
        }
        for text in ["gw7:9464", "http://gw7", "gw..example", "*.example", "", "g\u{fc}.example"] {
            assert!(listen_name(text).unwrap_err().contains("without scheme and port"), "{text}");
        }
        let label = "a".repeat(63);
        assert!(listen_name(&format!("{label}.example")).is_ok());
        let long = [format!("{label}a.example"), [&*label; 4].join("."), "a".repeat(300)];
        for text in ["-x", "x-", "a.-b.example"].into_iter().chain(long.iter().map(String::as_str)) {
            assert!(listen_name(text).unwrap_err().contains("no host has this name"), "{text}");
        }
        for text in ["192.0.2.1", "2001:db8::1", "[::1]"] {
            assert!(listen_name(text).unwrap_err().contains("addresses are accepted anyway"), "{text}");
        }
    }

    #[test]
    fn a_prefix_with_host_bits_is_told_both_that_it_could_mean() {
        for (text, parts) in [
            ("10.0.0.1/8", ["write 10.0.0.0/8", "or 10.0.0.1 for that host alone"]),
            ("2001:db8::1/32", ["write 2001:db8::/32", "or 2001:db8::1 for that host alone"]),
            ("10.0.0.0/33", ["an address or a prefix", "192.0.2.0/24"]),
            ("010.0.0.0/8", ["leading zero", "write 10.0.0.0/8"]),
            ("10.0.0.0/08", ["leading zero", "write 10.0.0.0/8"]),
            ("10.00.0.1", ["leading zero", "write 10.0.0.1"]),
            ("2001:db8::/032", ["leading zero", "write 2001:db8::/32"]),
            ("10.0.0.0/+8", ["an address or a prefix", "192.0.2.0/24"]),
        ] {
            let said = prefix(text).unwrap_err();
            assert!(parts.iter().all(|part| said.contains(part)), "{text}: {said}");
        }
        for (text, prefix_of_it) in
            [("10.0.0.1", "10.0.0.1/32"), ("0.0.0.0/0", "0.0.0.0/0"), ("2001:0db8::/32", "2001:db8::/32")]
        {
            assert_eq!(prefix(text).unwrap().to_string(), prefix_of_it);
        }
    }
}
