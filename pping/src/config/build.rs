//! Checks that the values of options go together, and makes the configuration from them.

use std::{
    io::IsTerminal as _,
    path::{Path, PathBuf},
    time::Duration,
};

use indexmap::IndexSet;
use pping_common::{
    group::Grouping,
    limits::{COPY_WITHIN, MAX_DNS_PORTS, STILL_CLOCK},
    parse::Decap,
    rtt::{RttBasis, Rules},
};

use super::{
    endpoint::Endpoint,
    error::{Error, SettingError},
    grouping,
    inside::{self, Inside},
    joined, methods,
    model::{Aggregation, Config, HistoryLimits, Live, Otlp},
    options::Arguments,
    overwritten::overwritten,
    values::{Arms, Format, RttType, Temporality, Tunnel},
};

impl TryFrom<Arguments> for Config {
    type Error = Error;

    /// Makes the configuration from the command line alone.
    fn try_from(arguments: Arguments) -> Result<Self, Error> {
        Self::new(arguments).map_err(Error::Invalid)
    }
}

impl Config {
    /// Checks that the values go together. Each value was checked by itself when it was parsed.
    #[expect(clippy::too_many_lines, reason = "a list of options, none of which may be left out")]
    pub(super) fn new(arguments: Arguments) -> Result<Self, Vec<SettingError>> {
        // Without `..`, so that an option that does nothing does not compile.
        let Arguments {
            interfaces,
            read,
            join,
            wait,
            mirror,
            copies_within,
            ingress,
            profile,
            max_flows,
            max_pending,
            max_interfaces,
            methods,
            tcp_method,
            arms,
            dns_ports,
            include_local,
            rate_limit,
            rtt_rate,
            rtt_type,
            decap,
            exclude,
            inside,
            aggregate,
            group_by,
            groups,
            groups_socket,
            groups_state,
            roll_up,
            remote_groups,
            remote_by,
            max_networks,
            max_groups,
            group_timeout,
            quality,
            flow_summary,
            with_samples,
            hdr_log,
            worst,
            worst_min_samples,
            format,
            output,
            listen,
            web_config,
            listen_names,
            prometheus_groups,
            baseline,
            history_memory,
            history,
            history_disk,
            history_keep,
            otlp,
            otlp_interval,
            otlp_headers,
            otlp_ca,
            otlp_temporality,
            config,
            pin,
            verbose,
            bpf_log,
            residence,
            residence_every,
        } = arguments;
        let mut found = Vec::new();
        found.extend(joined::conflict(&interfaces));
        let has_list = groups.is_some() || groups_socket.is_some();
        let group_by = value_or_note(grouping::group_by(&group_by, has_list), Grouping::NONE, &mut found);
        let inside = value_or_note(inside::inside(&inside, has_list), Inside::UNKNOWN, &mut found);
        found.extend(grouping::roll_up_error(&roll_up, has_list));
        if mirror {
            let place = MirrorPlace {
                is_live: read.is_none(),
                has_sides: inside.is_known() || !found.is_empty(),
                arms,
                has_residence: residence,
            };
            found.extend(place.contradiction());
        }
        let methods = methods::listed(&methods);
        let measured = value_or_note(methods::wanted(methods, tcp_method), methods, &mut found);
        let dns_ports =
            value_or_note(methods::dns_ports(&dns_ports, methods), [0; MAX_DNS_PORTS], &mut found);
        let is_aggregate = aggregate.is_some() || flow_summary;
        found.extend(without_samples(format, is_aggregate && !with_samples));
        found.extend(worst.filter(|_| aggregate.is_none()).map(without_interval));
        let is_stdin = read.as_deref() == Some(Path::new("-"));
        let inputs = [
            ("read", if is_stdin { Some(Path::new("/dev/stdin")) } else { read.as_deref() }),
            ("groups", groups.as_deref()),
            ("remote-groups", remote_groups.as_deref()),
            ("quality", quality.as_deref()),
            ("web-config", web_config.as_deref()),
            ("otlp-headers", otlp_headers.as_deref()),
            ("otlp-ca", otlp_ca.as_deref()),
            ("config", config.as_deref()),
        ];
        // Where records of a capture go without `--write`.
        let has_stdout = read.is_some() && format != Some(Format::None);
        let written = output.as_deref().or(has_stdout.then_some(Path::new("/dev/stdout")));
        let outputs =
            [("write", written), ("hdr-log", hdr_log.as_deref()), ("groups-state", groups_state.as_deref())];
        found.extend(overwritten(&inputs, &outputs));
        found.extend(web_config.as_deref().filter(|_| listen.is_none()).map(without_listen));
        let otlp = pushing(otlp, otlp_interval, otlp_headers, otlp_ca, otlp_temporality);
        let otlp = value_or_note(otlp, None, &mut found);
        if !found.is_empty() {
            return Err(found);
        }
        Ok(Self {
            capture: read,
            join,
            live: Live {
                profile,
                interfaces: IndexSet::<String>::from_iter(interfaces).into_iter().collect(),
                wait,
                mirror,
                ingress,
                listen,
                web_config,
                listen_names,
                pin,
                prometheus_groups,
                baseline,
                history_memory: (history_memory as usize) << 20,
                history,
                history_limits: HistoryLimits { disk: history_disk, keep: history_keep },
                otlp,
                bpf_log,
                max_pending,
                max_interfaces,
                residence: residence.then_some(residence_every),
            },
            max_flows,
            rules: Rules {
                rate_limit: rate_limit.as_nanos() as u64,
                rtt_rate: (rtt_rate * 65_536.0).round() as u64,
                copy_within: COPY_WITHIN,
                still_clock: STILL_CLOCK,
                rtt_basis: rtt_type.into(),
                include_local,
                reserved: 0,
                methods: measured,
            },
            methods,
            tcp_method,
            // Both hosts of a flow send by a mirror port.
            arms: if mirror { Arms::One } else { arms },
            dns_ports,
            copies_within: if mirror { copies_within.as_nanos() as u64 } else { 0 },
            decap: decap.into_iter().fold(Decap::NONE, |decap, tunnel| decap.with(tunnel.into())),
            aggregation: Aggregation {
                interval: aggregate,
                group_by,
                groups,
                groups_socket,
                groups_state,
                roll_up,
                remote_groups,
                remote_by,
                max_networks,
                max_groups,
                group_timeout,
                exclude,
                inside,
                flow_summary,
                with_samples: with_samples && is_aggregate,
                hdr_log,
                worst: worst.map(|worst| worst as usize),
                worst_min_samples: worst_min_samples.into(),
            },
            quality,
            format: format.unwrap_or_else(|| format_for(output.as_deref())),
            output,
            verbosity: if bpf_log { verbose.max(2) } else { verbose },
        })
    }
}

/// The format without `--format`: lines for people on a terminal, else JSON lines.
fn format_for(output: Option<&Path>) -> Format {
    let is_terminal = output.is_none() && std::io::stdout().is_terminal();
    if is_terminal { Format::Standard } else { Format::Jsonl }
}

/// Returns the value. If there is an error instead, notes it and returns `otherwise`.
fn value_or_note<T>(value: Result<T, SettingError>, otherwise: T, found: &mut Vec<SettingError>) -> T {
    value.unwrap_or_else(|error| {
        found.push(error);
        otherwise
    })
}

/// The error of a format that has only samples, if samples are not reported.
fn without_samples(format: Option<Format>, has_none: bool) -> Option<SettingError> {
    let reason = "it shows samples only; add --with-samples";
    (format == Some(Format::Ppviz) && has_none)
        .then(|| SettingError::contradiction("format", "ppviz", reason))
}

/// The error of `--worst` without `--aggregate`.
fn without_interval(worst: u32) -> SettingError {
    let reason = "the worst are ranked for each interval; give its length with --aggregate";
    SettingError::contradiction("worst", worst.to_string(), reason)
}

/// What goes with `--mirror`, or does not.
struct MirrorPlace {
    is_live: bool,
    has_sides: bool,
    arms: Arms,
    has_residence: bool,
}

impl MirrorPlace {
    /// The error of `--mirror` with options that contradict it.
    fn contradiction(&self) -> Option<SettingError> {
        let refused = |option, value: &str, reason| Some(SettingError::contradiction(option, value, reason));
        if self.is_live && !self.has_sides {
            return refused(
                "mirror",
                "",
                "all packets come in by a mirror port, so only their addresses tell the sides of the network apart; add \
                 --inside PREFIX,..., the addresses of your network",
            );
        }
        if self.arms == Arms::Two {
            return refused(
                "arms",
                "two",
                "both hosts of a flow send by a mirror port; leave this out, or --mirror",
            );
        }
        if self.is_live && self.has_residence {
            let reason =
                "no packet passes this host from one mirror port to another; leave this out, or --mirror";
            return refused("residence", "", reason);
        }
        None
    }
}

/// The error of `--web-config` without `--listen`.
fn without_listen(web_config: &Path) -> SettingError {
    let reason = "nothing is served without --listen; give an address there";
    SettingError::contradiction("web-config", web_config.display().to_string(), reason)
}

/// The settings for pushing metrics, if there is a receiver.
///
/// # Errors
/// If a file is given that has no use.
fn pushing(
    endpoint: Option<Endpoint>,
    interval: Duration,
    headers: Option<PathBuf>,
    ca: Option<PathBuf>,
    temporality: Temporality,
) -> Result<Option<Otlp>, SettingError> {
    let useless = |option, file: &Path, reason| {
        Err(SettingError::contradiction(option, file.display().to_string(), reason))
    };
    let Some(endpoint) = endpoint else {
        let files = [("otlp-headers", headers), ("otlp-ca", ca)];
        let given = files.into_iter().find_map(|(option, file)| Some((option, file?)));
        return given.map_or(Ok(None), |(option, file)| {
            useless(option, &file, "nothing is pushed without --otlp; give a URL there")
        });
    };
    match ca {
        Some(file) if !endpoint.is_tls => {
            useless("otlp-ca", &file, "--otlp has no https URL, so there is no certificate to check")
        }
        authorities => Ok(Some(Otlp { endpoint, interval, headers, authorities, temporality })),
    }
}

impl From<RttType> for RttBasis {
    fn from(rtt_type: RttType) -> Self {
        match rtt_type {
            RttType::Smoothed => Self::Smoothed,
            RttType::Min => Self::Min,
        }
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
            Tunnel::Erspan => Self::ERSPAN,
            Tunnel::Tzsp => Self::TZSP,
        }
    }
}
