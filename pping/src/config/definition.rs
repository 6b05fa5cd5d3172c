//! An option as the environment, the file and the pages see it.

use std::{
    any::TypeId,
    ffi::{OsStr, OsString},
};

use clap::{
    Arg, ArgAction, Command, CommandFactory as _,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{
    facts::{AllowedIn, Capture, Facts},
    options::{Arguments, FACTS},
};
use crate::spelling::similar;

/// The highest useful number of `-v`.
const MAX_VERBOSITY: u8 = 3;

/// The kind of value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The option is given, or not.
    Switch,
    /// The option may be given several times, and their number counts.
    Count,
    /// A number.
    Number,
    /// A text.
    Text,
    /// Any number of texts.
    List,
}

/// An option, as defined in [`super::options`].
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    arg: Arg,
    /// The name: on the command line without its two dashes, and in the file.
    pub(crate) key: String,
    /// The kind of its value.
    pub(crate) kind: Kind,
    pub(super) facts: &'static Facts,
}

impl Definition {
    /// All options, in the order of the help.
    pub(crate) fn all() -> Vec<Self> {
        Arguments::command().get_arguments().filter_map(Self::new).collect()
    }

    fn new(arg: &Arg) -> Option<Self> {
        let parser = arg.get_value_parser().type_id();
        let kind = match arg.get_action() {
            ArgAction::SetTrue => Kind::Switch,
            ArgAction::Count => Kind::Count,
            ArgAction::Append => Kind::List,
            ArgAction::Set if parser == TypeId::of::<u32>() || parser == TypeId::of::<f64>() => Kind::Number,
            ArgAction::Set => Kind::Text,
            _ => return None,
        };
        let (_, facts) = FACTS.iter().find(|(field, _)| arg.get_id() == field)?;
        Some(Self { arg: arg.clone(), key: arg.get_long()?.to_owned(), kind, facts })
    }

    /// Its name in the parser.
    pub(crate) fn id(&self) -> &str {
        self.arg.get_id().as_str()
    }

    /// Its name in the environment.
    pub(crate) fn variable(&self) -> String {
        format!("PPING_{}", self.key.to_uppercase().replace('-', "_"))
    }

    /// The letter it has on the command line, if any.
    pub(crate) fn short(&self) -> Option<char> {
        self.arg.get_short()
    }

    /// The name of its value, if it takes one.
    pub(crate) fn value_name(&self) -> Option<&str> {
        let takes_value = !matches!(self.kind, Kind::Switch | Kind::Count);
        let name = self.arg.get_value_names().and_then(|names| names.first()).map(clap::builder::Str::as_str);
        name.filter(|_| takes_value)
    }

    /// The title it is listed under.
    pub(crate) fn heading(&self) -> &str {
        self.arg.get_help_heading().unwrap_or("Options")
    }

    /// Its help, as paragraphs. The first is short.
    pub(crate) fn help(&self) -> Vec<String> {
        let long = self.arg.get_long_help().or_else(|| self.arg.get_help());
        let text = long.map(ToString::to_string).unwrap_or_default();
        text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect()
    }

    /// The possible values with their meanings, if they are few.
    pub(crate) fn possible_values(&self) -> Vec<(String, String)> {
        if matches!(self.kind, Kind::Switch | Kind::Count) {
            return Vec::new();
        }
        let meaning = |value: &clap::builder::PossibleValue| {
            value.get_help().map(ToString::to_string).unwrap_or_default()
        };
        let values = self.arg.get_possible_values();
        values.iter().map(|value| (value.get_name().to_owned(), meaning(value))).collect()
    }

    /// The default as texts. Most lists have none.
    pub(crate) fn default(&self) -> Option<Vec<String>> {
        match self.kind {
            Kind::Switch => Some(vec!["false".to_owned()]),
            Kind::Count => Some(vec!["0".to_owned()]),
            Kind::List => {
                let values = self.arg.get_default_values().iter();
                Some(values.filter_map(|value| value.to_str().map(ToOwned::to_owned)).collect())
            }
            Kind::Number | Kind::Text => {
                let default = self.arg.get_default_values().first()?;
                Some(vec![default.to_str()?.to_owned()])
            }
        }
    }

    /// Whether it has a default.
    pub(crate) fn has_default(&self) -> bool {
        self.default().is_some_and(|values| !values.is_empty())
    }

    /// The separator of values in a list.
    pub(crate) fn delimiter(&self) -> char {
        self.arg.get_value_delimiter().unwrap_or(',')
    }

    /// Whether a configuration file can set the option.
    pub(crate) fn is_for_files(&self) -> bool {
        matches!(self.facts.allowed_in, AllowedIn::Everywhere)
    }

    /// The effect of a reload, in words.
    pub(crate) fn on_reload(&self) -> &'static str {
        self.facts.reload.words()
    }

    /// A value as written in a file: an example, or the default.
    pub(crate) fn example(&self) -> String {
        let default = || self.to_toml(&self.default().unwrap_or_default());
        self.facts.example.map_or_else(default, ToOwned::to_owned)
    }

    /// Whether the option applies to captures.
    pub(super) fn applies_to_captures(&self) -> bool {
        matches!(self.facts.capture, Capture::Applies | Capture::AppliesWithDefault(_))
    }

    /// The default for a capture, if that is another.
    pub(super) fn capture_default(&self) -> Option<&'static str> {
        match self.facts.capture {
            Capture::AppliesWithDefault(default) => Some(default),
            Capture::Applies | Capture::Ignored | Capture::Rejected(_) => None,
        }
    }

    /// Whether the texts of a list are numbers.
    pub(crate) fn has_numbers(&self) -> bool {
        self.arg.get_value_parser().type_id() == TypeId::of::<u16>()
    }

    /// Writes a value as in a file.
    pub(crate) fn to_toml(&self, values: &[impl AsRef<str>]) -> String {
        let quoted = |value: &str| serde_json::Value::from(value).to_string();
        match (self.kind, values) {
            (Kind::List, values) => {
                let plain = |value: &str| if self.has_numbers() { value.to_owned() } else { quoted(value) };
                let values: Vec<String> = values.iter().map(|value| plain(value.as_ref())).collect();
                format!("[{}]", values.join(", "))
            }
            (Kind::Text, [value]) => quoted(value.as_ref()),
            (_, [value]) => value.as_ref().to_owned(),
            _ => String::new(),
        }
    }

    /// Checks that the option can have this value.
    ///
    /// # Errors
    /// If the option cannot. The text says what to write instead.
    pub(crate) fn check(&self, value: &OsStr) -> Result<(), String> {
        match self.kind {
            Kind::Switch => match value.to_str() {
                Some("true" | "false") => Ok(()),
                _ => Err("give true or false".to_owned()),
            },
            Kind::Count => match value.to_str().map(str::parse) {
                Some(Ok(0..=MAX_VERBOSITY)) => Ok(()),
                _ => Err(format!("give a number from 0 to {MAX_VERBOSITY}")),
            },
            _ if value.is_empty() => Err("it is empty; give a value, or leave the option out".to_owned()),
            _ => self.parse(value),
        }
    }

    /// Checks a value by the parser of the command line.
    fn parse(&self, value: &OsStr) -> Result<(), String> {
        let mut text = OsString::from(format!("--{}=", self.key));
        text.push(value);
        let command = Command::new("pping").no_binary_name(true).arg(self.arg.clone());
        command.try_get_matches_from([text]).map(|_| ()).map_err(|error| reason(&error))
    }

    /// Writes the option with these values as arguments of the command line.
    pub(crate) fn to_arguments(&self, values: &[OsString]) -> Vec<OsString> {
        let name = || OsString::from(format!("--{}", self.key));
        let count = |value: &OsString| value.to_str().and_then(|count| count.parse().ok()).unwrap_or(0);
        match (self.kind, values) {
            (Kind::Switch, [value]) => {
                if value == "true" {
                    vec![name()]
                } else {
                    Vec::new()
                }
            }
            (Kind::Count, [value]) => vec![name(); count(value)],
            _ => values
                .iter()
                .map(|value| {
                    let mut text = name();
                    text.push("=");
                    text.push(value);
                    text
                })
                .collect(),
        }
    }
}

/// Takes the reason from an error of the command line's parser, without the sentence about the command line around it.
fn reason(error: &clap::Error) -> String {
    if let Some(source) = std::error::Error::source(error) {
        return source.to_string();
    }
    match (error.kind(), error.get(ContextKind::ValidValue)) {
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(valid))) => {
            format!("give one of {}", valid.join(", "))
        }
        (ErrorKind::InvalidUtf8, _) => "this is not UTF-8".to_owned(),
        _ => error.kind().as_str().unwrap_or("this is not a valid value").to_owned(),
    }
}

/// Finds the option whose name is most like an unknown key, if it is similar enough.
pub(crate) fn nearest<'a>(key: &str, definitions: &'a [Definition]) -> Option<&'a Definition> {
    let key = key.to_lowercase().replace('_', "-");
    let (similar, _) = similar(&key, definitions.iter().map(|definition| definition.key.as_str()));
    let nearest = similar.first()?;
    definitions.iter().find(|definition| definition.key == *nearest)
}
