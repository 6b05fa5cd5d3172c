//! What becomes of an option that is different when the configuration is made anew.

use std::path::Path;

use super::{Config, Live, Source};

/// Whether two configurations agree about something.
type Agree = fn(&Config, &Config) -> bool;

/// What is decided about an option.
#[derive(Clone, Copy)]
enum Decision {
    /// It is followed.
    Followed,
    /// It cannot be: it is what the kernel programs, their maps or the files that are open were made for.
    Fixed(Agree),
    /// It is followed except from nothing to something and back.
    Kept(Agree),
}

use Decision::{Fixed, Followed, Kept};

/// One for each option there is.
const DECISIONS: &[(&str, Decision)] = &[
    ("interface", Followed),
    ("read", Fixed(|one, other| capture(one) == capture(other))),
    ("wait", Followed),
    ("ingress", Fixed(|one, other| live(one).map(|it| it.ingress) == live(other).map(|it| it.ingress))),
    ("max-flows", Fixed(|one, other| one.max_flows == other.max_flows)),
    ("methods", Fixed(|one, other| one.methods == other.methods)),
    ("tcp-method", Fixed(|one, other| one.tcp_method == other.tcp_method)),
    ("dns-ports", Fixed(|one, other| one.dns_ports == other.dns_ports)),
    ("include-local", Fixed(|one, other| one.rules.include_local == other.rules.include_local)),
    ("rate-limit", Fixed(|one, other| one.rules.rate_limit == other.rules.rate_limit)),
    ("rtt-rate", Fixed(|one, other| one.rules.rtt_rate == other.rules.rtt_rate)),
    ("rtt-type", Fixed(|one, other| one.rules.rtt_basis == other.rules.rtt_basis)),
    ("decap", Fixed(|one, other| one.decap == other.decap)),
    ("exclude", Fixed(|one, other| one.aggregation.exclude == other.aggregation.exclude)),
    ("aggregate", Fixed(|one, other| one.aggregation.interval == other.aggregation.interval)),
    ("group-by", Fixed(grouped_alike)),
    ("groups", Kept(|one, other| one.aggregation.groups.is_some() == other.aggregation.groups.is_some())),
    ("max-groups", Fixed(|one, other| one.aggregation.max_groups == other.aggregation.max_groups)),
    ("group-timeout", Followed),
    ("flow-summary", Fixed(|one, other| one.aggregation.flow_summary == other.aggregation.flow_summary)),
    ("with-samples", Fixed(|one, other| with_samples(one) == with_samples(other))),
    ("hdr-log", Fixed(|one, other| one.aggregation.hdr_log == other.aggregation.hdr_log)),
    ("format", Fixed(|one, other| one.format == other.format)),
    ("write", Followed),
    ("listen", Followed),
    ("web-config", Followed),
    ("prometheus-groups", Followed),
    ("baseline", Followed),
    // The process has the command line and the environment that it was started with.
    ("config", Fixed(|_, _| true)),
    ("pin", Fixed(|one, other| live(one).map(|it| &it.pin) == live(other).map(|it| &it.pin))),
    ("verbose", Followed),
    ("bpf-log", Fixed(|one, other| live(one).map(|it| it.bpf_log) == live(other).map(|it| it.bpf_log))),
];

fn live(config: &Config) -> Option<&Live> {
    match &config.source {
        Source::Interfaces(live) => Some(live),
        Source::Capture(_) => None,
    }
}

fn capture(config: &Config) -> Option<&Path> {
    match &config.source {
        Source::Interfaces(_) => None,
        Source::Capture(file) => Some(file),
    }
}

/// Whether both make the same groups, whatever a groups file adds: whether there is one is another option.
fn grouped_alike(one: &Config, other: &Config) -> bool {
    let (one, mut other_grouping) = (one.aggregation.grouping, other.aggregation.grouping);
    if one.by_label != other_grouping.by_label {
        return true;
    }
    other_grouping.by_label = one.by_label;
    one == other_grouping
}

/// Whether samples were asked for beside what is there in their place, if there is something in their place.
fn with_samples(config: &Config) -> bool {
    let aggregation = &config.aggregation;
    aggregation.individual && (aggregation.interval.is_some() || aggregation.flow_summary)
}

/// The options that differ, and that nothing can be done about while pping runs.
pub fn unchangeable(old: &Config, new: &Config) -> Vec<&'static str> {
    let differs = |decision: &Decision| match decision {
        Followed => false,
        Fixed(agree) | Kept(agree) => !agree(old, new),
    };
    DECISIONS.iter().filter(|(_, decision)| differs(decision)).map(|(key, _)| *key).collect()
}

/// What a reload makes of an option, in words.
pub(crate) fn on_reload(key: &str) -> Option<&'static str> {
    let (_, decision) = DECISIONS.iter().find(|(known, _)| *known == key)?;
    Some(match decision {
        Followed => "A reload changes it.",
        Fixed(_) => "A change takes a restart.",
        Kept(_) => "A reload changes it if there was one before and still is, else a change takes a restart.",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Reload, option::Definition};

    fn config(arguments: &[&str]) -> Config {
        let typed = ["pping", "-i", "eth0"].iter().chain(arguments);
        Reload::typed(typed.copied()).unwrap().again().unwrap()
    }

    #[test]
    fn there_is_one_decision_about_each_option() {
        let mut decided: Vec<&str> = DECISIONS.iter().map(|(key, _)| *key).collect();
        let mut options: Vec<String> =
            Definition::all().into_iter().map(|definition| definition.key).collect();
        decided.sort_unstable();
        options.sort_unstable();
        assert_eq!(decided, options, "say in DECISIONS what a reload makes of each option");
    }

    #[test]
    fn what_can_be_followed_is_not_named() {
        let old = config(&["--groups", "a.csv"]);
        let new = config(&[
            "-i",
            "eth1",
            "--wait",
            "--groups",
            "b.csv",
            "--group-timeout",
            "1m",
            "--prometheus-groups",
            "5",
            "--baseline",
            "1m",
            "--listen",
            "127.0.0.1:9464",
            "--web-config",
            "web.yml",
            "-w",
            "records",
            "-v",
        ]);
        assert_eq!(unchangeable(&old, &new), [""; 0]);
    }

    #[test]
    fn what_cannot_be_followed_is_named_and_nothing_else() {
        let old = config(&[]);
        for (arguments, named) in [
            (&["--ingress", "auto"][..], &["ingress"][..]),
            (&["--max-flows", "5"], &["max-flows"]),
            (&["--methods", "dns,tcp-ts"], &["methods"]),
            (&["--tcp-method", "seq"], &["tcp-method"]),
            (&["--dns-ports", "53,5353"], &["dns-ports"]),
            (&["--include-local"], &["include-local"]),
            (&["--rate-limit", "0"], &["rate-limit"]),
            (&["--rtt-rate", "2", "--rtt-type", "min"], &["rtt-rate", "rtt-type"]),
            (&["--decap", "gre"], &["decap"]),
            (&["--exclude", "192.0.2.0/24"], &["exclude"]),
            (&["--aggregate", "1s"], &["aggregate"]),
            (&["--aggregate", "1s", "--with-samples"], &["aggregate", "with-samples"]),
            (&["--group-by", "/24,/48"], &["group-by"]),
            (&["--groups", "a.csv"], &["groups"]),
            (&["--max-groups", "7"], &["max-groups"]),
            (&["--flow-summary"], &["flow-summary"]),
            (&["--hdr-log", "log"], &["hdr-log"]),
            (&["--format", "none"], &["format"]),
            (&["--pin", "/sys/fs/bpf/pping"], &["pin"]),
            (&["--bpf-log"], &["bpf-log"]),
        ] {
            assert_eq!(unchangeable(&old, &config(arguments)), named, "{arguments:?}");
        }
    }
}
