//! Options in the environment.

use std::ffi::{OsStr, OsString};

use super::{
    definition::{Definition, Kind, nearest},
    error::{Origin, SettingError},
    facts::AllowedIn,
    setting::Setting,
};

/// The prefix of variables.
const PREFIX: &str = "PPING_";

/// The variables with the prefix, as they were when pping started.
#[derive(Clone, Debug, Default)]
pub(super) struct Environment {
    variables: Vec<(String, OsString)>,
}

impl Environment {
    /// Keeps the variables with the prefix. An empty one counts as not set, for scripts and units.
    pub(super) fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let named = variables.into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let ours = named.filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty());
        Self { variables: ours.collect() }
    }

    /// The value of the variable of an option.
    pub(super) fn get(&self, definition: &Definition) -> Option<&OsStr> {
        let variable = definition.variable();
        self.variables.iter().find(|(name, _)| *name == variable).map(|(_, value)| value.as_os_str())
    }

    /// The setting of an option in the environment, if there is one.
    ///
    /// # Errors
    /// If the value is invalid, or the option cannot be set in the environment.
    pub(super) fn setting(&self, definition: &Definition) -> Result<Option<Setting>, SettingError> {
        let Some(value) = self.get(definition) else { return Ok(None) };
        let variable = definition.variable();
        let error = |value: &OsStr, reason: String| {
            let assignment = Some((definition.key.clone(), value.to_string_lossy().into_owned()));
            SettingError { origin: Origin::Variable(variable.clone()), assignment, reason }
        };
        if let AllowedIn::CommandLine(reason) = definition.facts.allowed_in {
            return Err(error(value, reason.to_owned()));
        }
        let values = match (definition.kind, value.to_str()) {
            (Kind::Switch, Some("1" | "true")) => vec!["true".into()],
            (Kind::Switch, Some("0" | "false")) => vec!["false".into()],
            (Kind::List, Some(list)) => {
                list.split(definition.delimiter()).map(|value| value.trim().into()).collect()
            }
            _ => vec![value.to_owned()],
        };
        for value in &values {
            definition.check(value).map_err(|reason| error(value, reason))?;
        }
        let origin = Origin::Variable(variable);
        Ok(Some(Setting { definition: definition.clone(), values: Some(values), origin }))
    }

    /// Warns of variables that look like a misspelt option. Others with the prefix may belong to another program.
    pub(super) fn warn_of_unknown(&self, definitions: &[Definition]) {
        for (name, _) in &self.variables {
            let key = name.trim_start_matches(PREFIX);
            let is_known = definitions.iter().any(|definition| definition.variable() == *name);
            if !is_known && let Some(known) = nearest(key, definitions) {
                tracing::warn!("{name} is not known and does nothing; did you mean {}?", known.variable());
            }
        }
    }
}
