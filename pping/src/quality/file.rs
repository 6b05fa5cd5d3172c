//! Reading profiles.

use std::{path::Path, sync::Arc};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::profile::{Latency, Profile, Profiles, Threshold};
use crate::text::{self, FileError, TextError};

/// The profiles that apply without a file.
const BUILT_IN: &str = include_str!("../../../deploy/quality.toml");

/// The longest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The most profiles: each is a metric of each series.
const MAX_PROFILES: usize = 16;

/// The longest name, in characters.
const MAX_NAME_CHARS: usize = 40;

const EXAMPLE: &str = "write `[[profile]]`, `name = \"game\"` and `latency = [{ percentile = 99, optimal = \"50ms\", \
                       unacceptable = \"150ms\" }]`";

type Value<'a> = Spanned<DeValue<'a>>;

/// Reads the profiles of a file, or the built-in ones.
///
/// # Errors
/// If the file cannot be read or has an error, with its position.
pub fn load(path: Option<&Path>) -> Result<Profiles, FileError> {
    match path {
        Some(path) => text::parse(path, MAX_BYTES, read),
        None => text::parse_text(Path::new("quality.toml"), BUILT_IN, read),
    }
}

fn read(text: &str) -> Result<Profiles, TextError> {
    let document = DeTable::parse(text).map_err(|error| TextError::of_toml(&error))?;
    let mut read: Vec<Profile> = Vec::new();
    for (key, value) in document.get_ref() {
        let profiles = match (key.get_ref().as_ref(), value.get_ref()) {
            ("profile", DeValue::Array(profiles)) => profiles,
            (key, _) => return Err(TextError::at(value, format!("`{key}` is not known here; {EXAMPLE}"))),
        };
        for value in profiles {
            let new = profile(value)?;
            if read.iter().any(|other| other.name == new.name) {
                let reason = format!("there is a profile `{}` already; give this one another name", new.name);
                return Err(TextError::at(value, reason));
            }
            if read.len() == MAX_PROFILES {
                return Err(TextError::at(
                    value,
                    format!("there are more than {MAX_PROFILES} profiles; remove some"),
                ));
            }
            read.push(new);
        }
    }
    Ok(read.into())
}

fn profile(value: &Value<'_>) -> Result<Profile, TextError> {
    let fields = Fields::of(value, &["name", "latency", "loss", "throughput", "samples"], EXAMPLE)?;
    let latency = fields.get("latency")?;
    let latency = list(latency)?.iter().map(latency_at).collect::<Result<Vec<_>, _>>()?;
    let needed = latency.iter().map(Latency::samples).max();
    let needed =
        needed.ok_or_else(|| TextError::at(value, format!("the profile has no latency; {EXAMPLE}")))?;
    Ok(Profile {
        name: name(fields.get("name")?)?,
        latency,
        loss: fields.find("loss").map(|it| threshold(it, share)).transpose()?,
        throughput: fields.find("throughput").map(throughput).transpose()?,
        samples: fields.find("samples").map(samples).transpose()?.unwrap_or(needed),
    })
}

fn latency_at(value: &Value<'_>) -> Result<Latency, TextError> {
    let fields = Fields::of(value, &["percentile", "optimal", "unacceptable"], EXAMPLE)?;
    let given = fields.get("percentile")?;
    let percentile = number(given).filter(|it| (0.0..=100.0).contains(it));
    let percentile =
        percentile.ok_or_else(|| TextError::at(given, "give a percentile from 0 to 100, like 99.9"))?;
    Ok(Latency { percentile, threshold: fields.threshold(value, time)? })
}

fn threshold(
    value: &Value<'_>,
    parse: fn(&Value<'_>) -> Result<f64, TextError>,
) -> Result<Threshold, TextError> {
    let example = "write `{ optimal = \"1%\", unacceptable = \"5%\" }`";
    Fields::of(value, &["optimal", "unacceptable"], example)?.threshold(value, parse)
}

fn name(value: &Value<'_>) -> Result<Arc<str>, TextError> {
    match value.get_ref() {
        // JavaScript moves numeric keys to the front of an object: the page would take another profile for the first.
        DeValue::String(name)
            if (1..=MAX_NAME_CHARS).contains(&name.chars().count())
                && name.contains(char::is_alphabetic)
                && !name.contains(char::is_control) =>
        {
            Ok(Arc::from(&**name))
        }
        _ => Err(TextError::at(
            value,
            format!("give a quoted name of 1 to {MAX_NAME_CHARS} characters with a letter, like \"game\""),
        )),
    }
}

/// Parses a round-trip time, ns.
fn time(value: &Value<'_>) -> Result<f64, TextError> {
    let time = string(value).and_then(|text| humantime::parse_duration(text).ok());
    time.map(|time| time.as_nanos() as f64)
        .ok_or_else(|| TextError::at(value, "give a time with its unit, like \"200ms\" or \"1s\""))
}

/// Parses a share, from 0 to 1.
fn share(value: &Value<'_>) -> Result<f64, TextError> {
    let percent = string(value).and_then(|text| text.strip_suffix('%')?.trim().parse::<f64>().ok());
    let percent = percent.filter(|it| (0.0..=100.0).contains(it));
    percent
        .map(|it| it / 100.0)
        .ok_or_else(|| TextError::at(value, "give a share of packets, like \"1%\" or \"0.1%\""))
}

/// Parses a rate, bits per second.
fn throughput(value: &Value<'_>) -> Result<f64, TextError> {
    let units = [("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)];
    let parse = |text: &str| {
        let (number, unit) = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
        number.trim().parse::<f64>().ok().filter(|it| it.is_finite() && *it > 0.0).map(|it| it * unit)
    };
    string(value).and_then(parse).ok_or_else(|| {
        TextError::at(value, "give a rate with its unit: \"4Mbit/s\"; kbit/s and Gbit/s are known too")
    })
}

fn samples(value: &Value<'_>) -> Result<u64, TextError> {
    let samples = number(value).filter(|it| *it >= 1.0 && it.fract() == 0.0 && *it < 1e15);
    samples.map(|it| it as u64).ok_or_else(|| TextError::at(value, "give a number of samples, like 1000"))
}

fn number(value: &Value<'_>) -> Option<f64> {
    match value.get_ref() {
        DeValue::Integer(number) => number.as_str().parse().ok(),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    }
}

fn string<'a>(value: &'a Value<'_>) -> Option<&'a str> {
    match value.get_ref() {
        DeValue::String(text) => Some(text),
        _ => None,
    }
}

fn list<'a, 'b>(value: &'a Value<'b>) -> Result<&'a [Value<'b>], TextError> {
    match value.get_ref() {
        DeValue::Array(values) => Ok(values),
        _ => Err(TextError::at(value, format!("this is not a list; {EXAMPLE}"))),
    }
}

/// The fields of a table.
struct Fields<'a, 'b> {
    table: &'a DeTable<'b>,
    /// The table as a whole.
    value: &'a Value<'b>,
    example: &'static str,
}

impl<'a, 'b> Fields<'a, 'b> {
    /// Takes the fields of a table, all of which must be known.
    fn of(value: &'a Value<'b>, known: &[&str], example: &'static str) -> Result<Self, TextError> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(TextError::at(value, format!("this is not a table; {example}")));
        };
        match table.iter().find(|(key, _)| !known.contains(&key.get_ref().as_ref())) {
            Some((key, _)) => {
                let reason = format!("`{}` is not known here; there are {}", key.get_ref(), known.join(", "));
                Err(TextError::at(key, reason))
            }
            None => Ok(Self { table, value, example }),
        }
    }

    fn find(&self, name: &str) -> Option<&'a Value<'b>> {
        self.table.get(name)
    }

    fn get(&self, name: &str) -> Result<&'a Value<'b>, TextError> {
        self.find(name)
            .ok_or_else(|| TextError::at(self.value, format!("there is no `{name}`; {}", self.example)))
    }

    fn threshold(
        &self,
        value: &Value<'_>,
        parse: fn(&Value<'_>) -> Result<f64, TextError>,
    ) -> Result<Threshold, TextError> {
        let (optimal, unacceptable) = (parse(self.get("optimal")?)?, parse(self.get("unacceptable")?)?);
        if optimal < unacceptable {
            Ok(Threshold { optimal, unacceptable })
        } else {
            Err(TextError::at(value, "`unacceptable` has to be more than `optimal`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profiles_of_the_example_are_those_without_a_file() {
        let profiles = load(None).unwrap();
        let names: Vec<&str> = profiles.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["video-call", "game", "web"]);
        let game = &profiles[1];
        assert_eq!(game.latency[0].threshold, Threshold { optimal: 50e6, unacceptable: 150e6 });
        assert_eq!((game.loss, game.samples), (Some(Threshold { optimal: 0.005, unacceptable: 0.03 }), 100));
    }

    #[test]
    fn all_fields_are_read() {
        let text = "[[profile]]\nname = \"a\"\nthroughput = \"4Mbit/s\"\nsamples = 7\nlatency = [{ percentile = 99.9, \
                    optimal = \"100us\", unacceptable = \"1ms\" }]\n";
        let profiles = read(text).unwrap();
        let Profile { throughput, samples, loss, latency, .. } = &profiles[0];
        assert_eq!((*throughput, *samples, *loss), (Some(4e6), 7, None));
        assert_eq!((latency[0].percentile, latency[0].threshold.optimal), (99.9, 100e3));
        assert!(read("").unwrap().is_empty());
    }

    #[test]
    fn errors_are_reported_with_line_and_column() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("quality.toml");
        let latency = "latency = [{ percentile = 99, optimal = \"50ms\", unacceptable = \"150ms\" }]";
        let with = |line: &str| format!("[[profile]]\nname = \"a\"\n{latency}\n{line}\n");
        for (text, position, part) in [
            ("[[profiles]]\n".to_owned(), "1:1", "`profiles` is not known"),
            ("[[profile]]\nname = \n".to_owned(), "2:8", "must be quoted"),
            ("[[profile]]\nname = \"a\"\n".to_owned(), "1:1", "there is no `latency`"),
            ("[[profile]]\nlatency = []\n".to_owned(), "1:1", "no latency"),
            (format!("[[profile]]\n{latency}\n"), "1:1", "there is no `name`"),
            (format!("[[profile]]\nname = \"\"\n{latency}\n"), "2:8", "1 to 40 characters"),
            (format!("[[profile]]\nname = \"2026\"\n{latency}\n"), "2:8", "with a letter, like \"game\""),
            (with("samples = 9").repeat(2), "5:1", "`a` already"),
            (with("colour = 1"), "4:1", "`colour` is not known here"),
            (with("loss = 1"), "4:8", "unacceptable = \"5%\""),
            (with("loss = { optimal = \"1\", unacceptable = \"5%\" }"), "4:20", "like \"1%\""),
            (with("loss = { optimal = \"5%\", unacceptable = \"5%\" }"), "4:8", "more than `optimal`"),
            (with("loss = { optimal = \"5%\", unacceptable = \"500%\" }"), "4:41", "like \"1%\""),
            (with("throughput = 4"), "4:14", "4Mbit/s"),
            (with("throughput = \"-4Mbit/s\""), "4:14", "4Mbit/s"),
            (with("samples = 0"), "4:11", "like 1000"),
            (with("").replace("99,", "101,"), "3:27", "from 0 to 100"),
            (with("").replace("\"50ms\"", "50"), "3:41", "\"200ms\""),
            (with("").replace("\"50ms", "\"5years"), "3:12", "more than `optimal`"),
        ] {
            std::fs::write(&path, &text).unwrap();
            let message = load(Some(&path)).expect_err(&text).to_string();
            assert!(
                message.contains(&format!("quality.toml:{position}: ")) && message.contains(part),
                "{text}: {message}"
            );
        }
    }
}
