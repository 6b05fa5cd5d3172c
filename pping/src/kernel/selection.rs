//! Which interfaces are to be watched: names, and patterns of names.

use glob::Pattern;

use super::interfaces::Link;
use crate::kernel::Error;

/// Names that are like enough to what was typed to be what was meant.
const LIKENESS: f64 = 0.6;

/// Names and patterns, as in `eth0` and `ppp*`.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    names: Vec<String>,
    patterns: Vec<Pattern>,
}

impl Wanted {
    /// Takes names and patterns.
    ///
    /// # Errors
    /// [`Error::InterfacePattern`] when a pattern is malformed.
    pub fn new(texts: &[String]) -> Result<Self, Error> {
        let mut wanted = Self::default();
        for text in texts {
            if text.contains(['*', '?', '[']) {
                let pattern =
                    Pattern::new(text).map_err(|_| Error::InterfacePattern { pattern: text.clone() })?;
                wanted.patterns.push(pattern);
            } else {
                wanted.names.push(text.clone());
            }
        }
        Ok(wanted)
    }

    /// Whether an interface of this name is to be watched.
    pub fn has(&self, name: &str) -> bool {
        self.has_name(name) || self.patterns.iter().any(|pattern| pattern.matches(name))
    }

    /// Whether it is to be watched by its very name, and not only since it is like others.
    pub fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|wanted| wanted == name)
    }

    /// The names that none of `links` has.
    pub fn missing(&self, links: &[Link]) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).filter(|name| links.iter().all(|link| link.name != *name))
    }

    /// Says that there is no interface of this name, but some that are called alike.
    pub fn unknown(name: &str, links: &[Link]) -> Error {
        Error::UnknownInterface {
            name: name.to_owned(),
            hint: nearest(name, links.iter().map(|link| link.name.as_str())),
        }
    }
}

fn nearest<'a>(name: &'a str, names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<(f64, &str)> =
        names.map(|other| (strsim::normalized_damerau_levenshtein(name, other), other)).collect();
    names.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let like: Vec<&str> =
        names.iter().take_while(|(likeness, _)| *likeness >= LIKENESS).map(|(_, name)| *name).collect();
    if like.is_empty() {
        let all: Vec<&str> = names.iter().take(8).map(|(_, name)| *name).collect();
        format!("there are {}", all.join(", "))
    } else {
        format!("did you mean {}?", like.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_are_offered_and_else_those_there_are() {
        let names = ["lo", "eth0", "eth1", "wlan0"];
        assert_eq!(nearest("eht0", names.into_iter()), "did you mean eth0?");
        assert_eq!(nearest("ppp7", names.into_iter()).matches(", ").count(), 3);
    }

    #[test]
    fn names_are_taken_as_they_are_and_patterns_as_a_shell_does() {
        let wanted = Wanted::new(&["eth0".into(), "ppp*".into(), "wan[0-3]".into()]).unwrap();
        for (name, is_wanted) in [
            ("eth0", true),
            ("eth01", false),
            ("ppp", true),
            ("ppp17", true),
            ("wan3", true),
            ("wan4", false),
            ("xppp0", false),
        ] {
            assert_eq!(wanted.has(name), is_wanted, "{name}");
        }
        assert!(wanted.has_name("eth0") && !wanted.has_name("ppp0"));
        let message = Wanted::new(&["wan[0-".into()]).unwrap_err().to_string();
        assert!(message.contains("--interface wan[0-") && message.contains("'ppp*'"), "{message}");
    }
}
