//! What the programs are loaded with.

use pping_common::limits::{MAX_QUERIES, UNANSWERED_SHARE};

use crate::{
    Error,
    config::Config,
    kernel::{features::Without, load::LoadOptions},
};

impl LoadOptions {
    /// What this configuration asks for.
    ///
    /// # Errors
    /// [`Error::Usage`] when the environment asks for what there is not.
    pub(crate) fn of(config: &Config) -> Result<Self, Error> {
        Ok(Self {
            rules: config.rules,
            dns_ports: config.dns_ports,
            max_flows: config.max_flows,
            max_unanswered: config.max_flows / UNANSWERED_SHARE,
            max_queries: MAX_QUERIES.min(config.max_flows),
            decap: config.decap,
            emit: config.emit(),
            grouping: config.aggregation.grouping(),
            max_groups: config.aggregation.max_groups,
            excludes: !config.aggregation.exclude.is_empty(),
            log: config.live.bpf_log,
            max_series: None,
            without: Without::from_environment()?,
        })
    }
}
