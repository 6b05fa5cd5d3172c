//! What the programs are loaded with.

use pping_common::limits::{MAX_QUERIES, UNANSWERED_SHARE};

use crate::{
    Error,
    config::{Config, Live},
    source::{
        features::{Feature, Features, Without},
        load::Settings,
    },
};

impl Settings {
    /// What this configuration asks for.
    ///
    /// # Errors
    /// [`Error::Usage`] when the environment asks for what there is not.
    pub(crate) fn of(config: &Config, live: &Live) -> Result<Self, Error> {
        let without = Without::from_environment()?;
        let settings = Self {
            rules: config.rules,
            dns_ports: config.dns_ports,
            max_flows: config.max_flows,
            max_unanswered: config.max_flows / UNANSWERED_SHARE,
            max_queries: MAX_QUERIES.min(config.max_flows),
            decap: config.decap,
            emit: config.emit(),
            grouping: config.aggregation.grouping,
            max_groups: config.aggregation.max_groups,
            excludes: !config.aggregation.exclude.is_empty(),
            log: live.bpf_log,
            max_series: None,
            without,
        };
        // Who may not find out may not load programs either, and is told then.
        if !Features::probe(without).is_ok_and(|features| !features.has(Feature::Fetch)) {
            return Ok(settings);
        }
        let older = settings.for_older();
        if older.rules.methods != settings.rules.methods {
            tracing::warn!(
                "before Linux 5.12 the kernel does not take all methods together with groups, tunnels, exclusions or \
                 --bpf-log: of the methods, tcp-ts and icmp-echo are left"
            );
        }
        Ok(older)
    }
}
