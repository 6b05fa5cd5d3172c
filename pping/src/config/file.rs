//! Reading a configuration file.

use std::{borrow::Cow, ffi::OsString, path::Path};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    definition::{Definition, Kind, nearest},
    error::{Error, Origin, SettingError},
    facts::AllowedIn,
    setting::Setting,
};
use crate::text::{self, Position, ReadError};

/// The longest configuration that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The settings of a file, and its errors.
#[derive(Debug, Default)]
pub(super) struct File {
    /// The options with valid values.
    pub(super) settings: Vec<Setting>,
    /// The errors that were found.
    pub(super) errors: Vec<SettingError>,
}

/// An error: its offset in the text, bytes; the option and its value, if one is set there; and the reason.
type Found = (usize, Option<(String, String)>, String);

impl File {
    /// Reads a file.
    ///
    /// # Errors
    /// If the file cannot be read. Errors in its text are in `errors`.
    pub(super) fn read(path: &Path, definitions: &[Definition]) -> Result<Self, Error> {
        match text::read(path, MAX_BYTES) {
            Ok(text) => Ok(Self::parse(path, &text, definitions)),
            Err(ReadError::Io(source)) => Err(Error::Open { path: path.to_owned(), source }),
            Err(ReadError::NotUtf8(position)) => {
                let (origin, reason) = (origin(path, position), ReadError::NOT_UTF8.to_owned());
                let errors = vec![SettingError { origin, assignment: None, reason }];
                Ok(Self { settings: Vec::new(), errors })
            }
        }
    }

    fn parse(path: &Path, text: &str, definitions: &[Definition]) -> Self {
        let reader = Reader { path, text };
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut found: Vec<Found> = Vec::new();
        for error in errors {
            let offset = error.span().map_or(0, |span| span.start);
            found.push((offset, None, error.message().trim_end().to_owned()));
        }
        // A line that is not TOML may still look like a value. One complaint about it is enough.
        let line = |offset| Position::new(text, offset).line;
        let spoiled: Vec<usize> = found.iter().map(|(offset, ..)| line(*offset)).collect();
        let mut settings = Vec::new();
        for (key, value) in table.get_ref() {
            match reader.setting(key, value, definitions) {
                Ok(setting) => settings.push(setting),
                Err(more) => {
                    found.extend(more.into_iter().filter(|(offset, ..)| !spoiled.contains(&line(*offset))));
                }
            }
        }
        found.sort();
        found.dedup_by_key(|(offset, ..)| *offset);
        let error = |(offset, assignment, reason)| SettingError {
            origin: origin(path, Position::new(text, offset)),
            assignment,
            reason,
        };
        Self { settings, errors: found.into_iter().map(error).collect() }
    }
}

fn origin(path: &Path, Position { line, column }: Position) -> Origin {
    Origin::File { path: path.to_owned(), line, column }
}

/// A file being read.
struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    fn setting(
        &self,
        key: &Spanned<Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        definitions: &[Definition],
    ) -> Result<Setting, Vec<Found>> {
        let name = key.get_ref().as_ref();
        let refuse = |reason| Err(vec![(key.span().start, None, reason)]);
        let Some(definition) = definitions.iter().find(|definition| definition.key == name) else {
            let is_section = matches!(value.get_ref(), DeValue::Table(_));
            return refuse(unknown(name, is_section, definitions));
        };
        if let AllowedIn::NotInFiles(reason) | AllowedIn::CommandLine(reason) = definition.facts.allowed_in {
            return refuse(format!("{name} cannot be in a file: {reason}"));
        }
        let (mut found, mut values) = (Vec::new(), Vec::new());
        for (value, text) in texts(definition, value) {
            match text.and_then(|text| definition.check(&text).map(|()| text)) {
                Ok(text) => values.push(text),
                Err(reason) => {
                    let written = self.text.get(value.span()).unwrap_or_default();
                    found.push((value.span().start, Some((name.to_owned(), written.to_owned())), reason));
                }
            }
        }
        if !found.is_empty() {
            return Err(found);
        }
        let origin = origin(self.path, Position::new(self.text, value.span().start));
        Ok(Setting { definition: definition.clone(), values: Some(values), origin })
    }
}

fn unknown(key: &str, is_section: bool, definitions: &[Definition]) -> String {
    match nearest(key, definitions) {
        _ if ["help", "version"].contains(&key) => {
            format!("{key} cannot be in a file: it is for the command line alone")
        }
        _ if is_section => {
            format!("`{key}` is a section, but options stand without sections, see pping.toml(5)")
        }
        Some(known) if known.is_for_files() => {
            format!("`{key}` is not known; did you mean {}?", known.key)
        }
        _ => format!("`{key}` is not known; options are named as on the command line, see pping.toml(5)"),
    }
}

/// Converts the value of an option to texts as on the command line, each with the TOML value that it comes from.
fn texts<'a, 'v>(
    definition: &Definition,
    value: &'a Spanned<DeValue<'v>>,
) -> Vec<(&'a Spanned<DeValue<'v>>, Result<OsString, String>)> {
    match (definition.kind, value.get_ref()) {
        (Kind::List, DeValue::Array(values)) if values.is_empty() && definition.has_default() => {
            vec![(value, Err("it is empty; give a value, or leave the option out".to_owned()))]
        }
        (Kind::List, DeValue::Integer(_)) if definition.has_numbers() => vec![(value, scalar(value))],
        (Kind::List, DeValue::Array(values)) => values.iter().map(|value| (value, scalar(value))).collect(),
        (Kind::List, DeValue::String(_)) => vec![(value, scalar(value))],
        (Kind::List, _) if definition.has_numbers() => {
            vec![(value, Err("give a list of numbers: [1, 2]".to_owned()))]
        }
        (Kind::List, _) => vec![(value, Err("give a list of strings: [\"...\", \"...\"]".to_owned()))],
        (Kind::Switch, DeValue::Boolean(is_on)) => vec![(value, Ok(is_on.to_string().into()))],
        (Kind::Switch, _) => vec![(value, Err("give true or false, without quotation marks".to_owned()))],
        _ => vec![(value, scalar(value))],
    }
}

fn scalar(value: &Spanned<DeValue<'_>>) -> Result<OsString, String> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.as_ref().into()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Ok(number.to_string().into()),
            Err(_) => Ok(number.as_str().into()),
        },
        DeValue::Float(number) => Ok(number.as_str().into()),
        DeValue::Array(_) => Err("it takes one value; leave out the brackets".to_owned()),
        DeValue::Table(_) => Err("it takes a value, not a table".to_owned()),
        DeValue::Boolean(_) | DeValue::Datetime(_) => Err("put the value in quotation marks".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn errors(text: &str) -> Vec<String> {
        let file = File::parse(Path::new("f"), text, &Definition::all());
        file.errors.iter().map(SettingError::to_string).collect()
    }

    fn values(text: &str) -> Vec<(String, Vec<OsString>)> {
        let File { settings, errors } = File::parse(Path::new("f"), text, &Definition::all());
        assert_eq!(errors, []);
        settings.into_iter().map(|it| (it.definition.key, it.values.unwrap_or_default())).collect()
    }

    #[test]
    fn values_become_what_the_command_line_would_have() {
        for (text, key, expected) in [
            ("max-flows = 0x1_000", "max-flows", &["4096"][..]),
            ("rtt-rate = 1_0.5", "rtt-rate", &["10.5"]),
            ("rate-limit = 0", "rate-limit", &["0"]),
            ("max-groups = \"7\"", "max-groups", &["7"]),
            ("interface = \"eth0\"", "interface", &["eth0"]),
            ("interface = []", "interface", &[]),
            ("dns-ports = [53, 0x15_1d]", "dns-ports", &["53", "5405"]),
            ("dns-ports = 53", "dns-ports", &["53"]),
            ("methods = \"dns\"", "methods", &["dns"]),
            ("write = 'a b'\r\n", "write", &["a b"]),
        ] {
            assert_eq!(values(text), [(key.to_owned(), expected.iter().map(Into::into).collect())]);
        }
    }

    #[test]
    fn each_error_is_reported_once_and_in_order() {
        let found = errors("wait = 1\nwait = true\nlisten =\naggregate = \"5ms\"\nwrite = \"\"\n");
        let positions: Vec<&str> = found.iter().filter_map(|fault| fault.split(": ").next()).collect();
        assert_eq!(positions, ["f:1:8", "f:2:1", "f:3:9", "f:4:13", "f:5:9"], "{found:?}");
    }

    #[test]
    fn columns_are_characters_and_a_byte_order_mark_is_none() {
        let found = errors("exclude = [\"é\", 1]\n");
        assert!(found[0].starts_with("f:1:12: exclude = \"é\": "), "{found:?}");
        assert!(found[1].starts_with("f:1:17: exclude = 1: "), "{found:?}");
        assert!(errors("\u{feff}no-option = 1\n")[0].starts_with("f:1:1: "));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            errors(&text);
        }

        #[test]
        fn nothing_like_a_configuration_makes_it_panic(
            lines in prop::collection::vec("(wait|write|decap|\\[a|é) ?=? ?(\"é|\\[1,|true|\\{a=1}|1e9|\\]|0x)", 0..8)
        ) {
            errors(&lines.join("\n"));
        }
    }
}
