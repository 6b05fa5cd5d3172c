//! An option with its value.

use std::ffi::OsString;

use clap::ArgMatches;

use super::{
    definition::{Definition, Kind},
    error::{Origin, SettingError},
};

/// An option, its value, and the origin of the value.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) definition: Definition,
    /// Texts as the command line would have them; `None` for an option that is not set and has no default.
    pub(crate) values: Option<Vec<OsString>>,
    pub(crate) origin: Origin,
}

impl Setting {
    pub(super) fn default(definition: Definition) -> Self {
        let values = definition.default().map(|values| values.into_iter().map(OsString::from).collect());
        Self { definition, values, origin: Origin::Default }
    }

    /// The default for a capture.
    pub(super) fn capture_default(definition: Definition) -> Self {
        match definition.capture_default() {
            Some(value) => Self { definition, values: Some(vec![value.into()]), origin: Origin::Default },
            None => Self::default(definition),
        }
    }

    /// Takes the default of `--profile small`, if the option is not set and has one.
    pub(super) fn take_small_default(&mut self) {
        if let (Origin::Default, Some(value)) = (&self.origin, self.definition.facts.small) {
            (self.values, self.origin) = (Some(vec![value.into()]), Origin::Profile);
        }
    }

    /// Whether it is set, and has not just a default.
    pub(super) fn is_set(&self) -> bool {
        !matches!(self.origin, Origin::Default | Origin::Profile)
    }

    /// Whether it has the value that the parser of the command line gives an option that is not there.
    pub(super) fn has_parser_default(&self) -> bool {
        let default = self.definition.default();
        self.values == default.map(|values| values.into_iter().map(OsString::from).collect())
    }

    pub(super) fn typed(definition: Definition, matches: &ArgMatches) -> Self {
        let id = definition.id();
        let values = match definition.kind {
            Kind::Switch => vec![matches.get_flag(id).to_string().into()],
            Kind::Count => vec![matches.get_count(id).to_string().into()],
            _ => matches.get_raw(id).into_iter().flatten().map(ToOwned::to_owned).collect(),
        };
        Self { definition, values: Some(values), origin: Origin::Flag }
    }

    /// The value as a file would have it.
    pub(crate) fn to_toml(&self) -> Option<String> {
        let texts: Vec<_> = self.values.as_ref()?.iter().map(|value| value.to_string_lossy()).collect();
        Some(self.definition.to_toml(&texts))
    }

    /// Makes an error at this setting.
    pub(super) fn error(&self, reason: impl Into<String>) -> SettingError {
        SettingError {
            origin: self.origin.clone(),
            assignment: Some(self.assignment()),
            reason: reason.into(),
        }
    }

    /// The option, and its value as it is written where it is set.
    pub(super) fn assignment(&self) -> (String, String) {
        let value = match self.origin {
            Origin::File { .. } => self.to_toml().unwrap_or_default(),
            // On the command line, a switch has no value.
            Origin::Flag if matches!(self.definition.kind, Kind::Switch | Kind::Count) => String::new(),
            _ => {
                let values = self.values.iter().flatten();
                values.map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(",")
            }
        };
        (self.definition.key.clone(), value)
    }
}
