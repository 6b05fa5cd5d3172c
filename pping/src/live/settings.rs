//! What the programs are loaded with.

use crate::{
    Error,
    config::{Config, Live},
    source::{features::Without, load::Settings},
};

impl Settings {
    /// What this configuration asks for.
    ///
    /// # Errors
    /// [`Error::Usage`] when the environment asks for what there is not.
    pub(crate) fn of(config: &Config, live: &Live) -> Result<Self, Error> {
        Ok(Self {
            rules: config.rules,
            max_flows: config.max_flows,
            decap: config.decap,
            emit: config.emit(),
            grouping: config.aggregation.grouping,
            max_groups: config.aggregation.max_groups,
            excludes: !config.aggregation.exclude.is_empty(),
            log: live.bpf_log,
            max_series: None,
            without: Without::from_environment()?,
        })
    }
}
