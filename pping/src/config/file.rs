//! Reading a configuration file.

use std::{
    borrow::Cow,
    ffi::OsString,
    fs,
    io::{self, Read as _},
    path::Path,
};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    option::{Definition, Kind, nearest},
    settings::{Origin, Setting},
};
use crate::{Error, error::Fault, groups};

/// What no configuration is longer than, bytes: there is an end to reading what is none, like a device.
const MAX_BYTES: u64 = 1 << 20;

/// What a file says, and what is wrong with it.
#[derive(Debug, Default)]
pub(super) struct File {
    /// The options it has values for that can be.
    pub(super) settings: Vec<Setting>,
    /// Everything else.
    pub(super) faults: Vec<Fault>,
}

impl File {
    /// Reads a file.
    ///
    /// # Errors
    /// That there is none to be read. What is wrong with its text is in `faults`.
    pub(super) fn read(path: &Path, definitions: &[Definition]) -> Result<Self, Error> {
        let bytes = read(path).map_err(|source| Error::OpenConfig { path: path.to_owned(), source })?;
        Ok(match std::str::from_utf8(&bytes) {
            Ok(text) => Self::parse(path, text, definitions),
            Err(error) => {
                let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                let place = Reader { path, text: &valid }.place(valid.len());
                let reason = "this is no UTF-8; save the file as such".to_owned();
                Self { settings: Vec::new(), faults: vec![Fault { place, reason }] }
            }
        })
    }

    fn parse(path: &Path, text: &str, definitions: &[Definition]) -> Self {
        let reader = Reader { path, text };
        let (table, errors) = DeTable::parse_recoverable(text);
        // A line that is no TOML may still look like a value. One complaint of it is enough.
        let mut faults: Vec<(usize, String)> = Vec::new();
        for error in errors {
            let offset = error.span().map_or(0, |span| span.start);
            faults.push((offset, error.message().trim_end().to_owned()));
        }
        let spoiled: Vec<usize> = faults.iter().map(|(offset, _)| reader.line(*offset)).collect();
        let mut settings = Vec::new();
        for (key, value) in table.get_ref() {
            let (mut found, setting) = reader.setting(key, value, definitions);
            found.retain(|(offset, _)| !spoiled.contains(&reader.line(*offset)));
            faults.append(&mut found);
            settings.extend(setting);
        }
        faults.sort();
        faults.dedup_by_key(|(offset, _)| *offset);
        let fault = |(offset, reason)| Fault { place: reader.place(offset), reason };
        Self { settings, faults: faults.into_iter().map(fault).collect() }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than 1 MiB, and so is none"));
    }
    Ok(bytes)
}

/// A text that is being read. Faults of it are where, by byte, and what.
struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    fn line(&self, offset: usize) -> usize {
        groups::place(self.text, offset).0
    }

    fn place(&self, offset: usize) -> String {
        let (line, column) = groups::place(self.text, offset);
        format!("{}:{line}:{column}", self.path.display())
    }

    fn setting(
        &self,
        key: &Spanned<Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        definitions: &[Definition],
    ) -> (Vec<(usize, String)>, Option<Setting>) {
        let name = key.get_ref().as_ref();
        let refuse = |reason| (vec![(key.span().start, reason)], None);
        if let Some(reason) = refused(name) {
            return refuse(format!("{name} cannot be in a file: {reason}"));
        }
        let Some(definition) = definitions.iter().find(|definition| definition.key == name) else {
            return refuse(unknown(name, definitions));
        };
        let mut faults = Vec::new();
        let mut values = Vec::new();
        for (value, text) in texts(definition, value) {
            match text.and_then(|text| definition.check(&text).map(|()| text)) {
                Ok(text) => values.push(text),
                Err(reason) => {
                    let written = self.text.get(value.span()).unwrap_or_default();
                    faults.push((value.span().start, format!("{name} = {written}: {reason}")));
                }
            }
        }
        if !faults.is_empty() {
            return (faults, None);
        }
        let (line, column) = groups::place(self.text, value.span().start);
        let origin = Origin::File { path: self.path.to_owned(), line, column };
        (faults, Some(Setting { definition: definition.clone(), values: Some(values), origin }))
    }
}

fn refused(key: &str) -> Option<&'static str> {
    if key == "config" { Some("it is what names the file") } else { Definition::refused(key) }
}

fn unknown(key: &str, definitions: &[Definition]) -> String {
    match nearest(key, definitions) {
        Some(known) if known.is_for_files() => {
            format!("`{key}` is not known; did you mean {}?", known.key)
        }
        _ => format!("`{key}` is not known; options are named as on the command line, see pping.toml(5)"),
    }
}

/// The values of an option as the command line would have them, each with what it is made from.
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
        (Kind::List, _) => vec![(value, Err("give a list of texts: [\"...\", \"...\"]".to_owned()))],
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
        DeValue::Array(_) => Err("it has one value only; leave the brackets out".to_owned()),
        DeValue::Table(_) => Err("it has a value, and is no table".to_owned()),
        DeValue::Boolean(_) | DeValue::Datetime(_) => Err("put the value in quotation marks".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn faults(text: &str) -> Vec<String> {
        let file = File::parse(Path::new("f"), text, &Definition::all());
        file.faults.iter().map(Fault::to_string).collect()
    }

    fn values(text: &str) -> Vec<(String, Vec<OsString>)> {
        let File { settings, faults } = File::parse(Path::new("f"), text, &Definition::all());
        assert_eq!(faults, []);
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
    fn each_mistake_is_told_once_and_in_order() {
        let found = faults("wait = 1\nwait = true\nlisten =\naggregate = \"5ms\"\nwrite = \"\"\n");
        let places: Vec<&str> = found.iter().filter_map(|fault| fault.split(": ").next()).collect();
        assert_eq!(places, ["f:1:8", "f:2:1", "f:3:9", "f:4:13", "f:5:9"], "{found:?}");
    }

    #[test]
    fn columns_are_characters_and_a_mark_of_byte_order_is_none() {
        let found = faults("exclude = [\"é\", 1]\n");
        assert!(found[0].starts_with("f:1:12: exclude = \"é\": "), "{found:?}");
        assert!(found[1].starts_with("f:1:17: exclude = 1: "), "{found:?}");
        assert!(faults("\u{feff}no-option = 1\n")[0].starts_with("f:1:1: "));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            faults(&text);
        }

        #[test]
        fn nothing_like_a_configuration_makes_it_panic(
            lines in prop::collection::vec("(wait|write|decap|\\[a|é) ?=? ?(\"é|\\[1,|true|\\{a=1}|1e9|\\]|0x)", 0..8)
        ) {
            faults(&lines.join("\n"));
        }
    }
}
