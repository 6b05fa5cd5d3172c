//! Takes over a configuration that a reload has read.

use super::{
    definition::Definition,
    model::Config,
    reload::{Change, Reload},
};

/// The changes of a reload.
#[derive(Debug, Default)]
pub struct Changes {
    /// The changes for the agent.
    pub followed: Vec<Change>,
    /// The options whose value differs, and changes only at a restart.
    pub restart: Vec<String>,
}

impl Config {
    /// Takes over from `new` the values that a reload can change.
    pub fn follow(&mut self, new: &Self) -> Changes {
        let mut changes = Changes::default();
        for definition in Definition::all() {
            let change = match definition.facts.reload {
                Reload::Follow(change, follow) => follow(self, new).then_some(change),
                Reload::FollowWhileSet(change, set, follow) if set(self) == set(new) => {
                    follow(self, new).then_some(change)
                }
                Reload::Restart(differs) if !differs(self, new) => None,
                Reload::FollowWhileSet(..) | Reload::Restart(_) => {
                    changes.restart.push(definition.key);
                    None
                }
            };
            changes.followed.extend(change.filter(|change| !changes.followed.contains(change)));
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Loader;

    fn config(arguments: &[&str]) -> Config {
        let typed = ["pping", "-i", "eth0"].iter().chain(arguments);
        Loader::typed(typed.copied()).unwrap().load().unwrap().config
    }

    #[test]
    fn a_reload_takes_over_each_option_that_it_follows() {
        let new = config(&[
            "-i",
            "eth1",
            "--wait",
            "--groups",
            "b.csv",
            "--inside",
            "192.0.2.0/24",
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
            "--listen-name",
            "pping.example",
            "--otlp",
            "http://127.0.0.1:4318",
            "-w",
            "records",
            "-v",
        ]);
        let mut current = config(&["--groups", "a.csv", "--inside", "198.51.100.0/24"]);
        let Changes { followed, restart } = current.follow(&new);
        assert_eq!(restart, [""; 0]);
        assert_eq!(
            followed,
            [
                Change::Interfaces,
                Change::Inside,
                Change::Groups,
                Change::GroupTimeout,
                Change::Output,
                Change::Listen,
                Change::WebConfig,
                Change::Metrics,
                Change::Otlp,
                Change::Verbosity
            ]
        );
        assert_eq!(format!("{current:?}"), format!("{new:?}"));
        let Changes { followed, restart } = current.follow(&new);
        assert!(followed.is_empty() && restart.is_empty());
    }

    #[test]
    fn reload_names_and_keeps_restart_options() {
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
            (&["--inside", "192.0.2.0/24"], &["inside"]),
            (&["--max-interfaces", "5"], &["max-interfaces"]),
            (&["--group-by", "/24,/48", "--max-groups", "7"], &["group-by", "max-groups"]),
            (&["--flow-summary"], &["flow-summary"]),
            (&["--hdr-log", "log"], &["hdr-log"]),
            (&["--format", "none"], &["format"]),
            (&["--pin", "/sys/fs/bpf/pping"], &["pin"]),
            (&["--bpf-log"], &["bpf-log"]),
        ] {
            // A reload follows the verbosity, and --bpf-log raises it.
            let (mut current, mut expected) = (old.clone(), old.clone());
            expected.verbosity = config(arguments).verbosity;
            assert_eq!(current.follow(&config(arguments)).restart, named, "{arguments:?}");
            assert_eq!(format!("{current:?}"), format!("{expected:?}"), "{arguments:?}");
        }
    }
}
