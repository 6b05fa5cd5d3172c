//! The interfaces to watch: names, patterns of names, and names joined by `+`.

use std::sync::Arc;

use glob::Pattern;

use super::{
    Error,
    interface_names::{escape, unescape},
    interfaces::Link,
};
use crate::spelling::{JOINT, pattern, similar};

/// Names and patterns, as in `eth0` and `ppp*`, and joined interfaces, as in `eth1+eth2`.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    names: Vec<String>,
    patterns: Vec<Pattern>,
    joined: Vec<Joined>,
}

/// Interfaces that count as one, because each direction of a flow may pass another of them.
#[derive(Clone, Debug)]
struct Joined {
    /// As in `eth1+eth2`.
    name: Arc<str>,
    /// The names of the interfaces. They are also among [`Selection::names`].
    ports: Vec<String>,
}

impl Selection {
    /// Selects the interfaces that one of `texts` names or matches.
    ///
    /// # Errors
    /// [`Error::InterfacePattern`] for a malformed pattern.
    pub fn new(texts: &[String]) -> Result<Self, Error> {
        let mut selection = Self::default();
        for text in texts {
            if text.contains(JOINT) {
                let ports: Vec<_> = text.split(JOINT).map(ToOwned::to_owned).collect();
                selection.names.extend(ports.iter().cloned());
                selection.joined.push(Joined { name: text.as_str().into(), ports });
                continue;
            }
            match pattern(text) {
                Some(Ok(pattern)) => selection.patterns.push(pattern),
                Some(Err(_)) => return Err(Error::InterfacePattern { pattern: text.clone() }),
                None => selection.names.push(text.clone()),
            }
        }
        Ok(selection)
    }

    /// Whether an interface is selected, by any of its names.
    pub fn includes(&self, link: &Link) -> bool {
        link.names().any(|name| self.includes_name(name))
    }

    /// Whether an interface of this name is selected.
    pub fn includes_name(&self, name: &str) -> bool {
        self.names_name(name) || self.patterns.iter().any(|pattern| matches(pattern, name))
    }

    /// The joined interfaces that an interface is one of, by any of its names.
    pub fn joined(&self, link: &Link) -> Option<&Arc<str>> {
        let has = |joined: &&Joined| link.names().any(|name| joined.ports.iter().any(|port| is(port, name)));
        self.joined.iter().find(has).map(|joined| &joined.name)
    }

    /// Checks that joined interfaces are different ones, and have frames that begin in the same way, as far as they exist.
    ///
    /// # Errors
    /// [`Error::JoinedTwice`] or [`Error::JoinedLinkTypes`].
    pub fn check_joined(&self, links: &[Link]) -> Result<(), Error> {
        for Joined { name, ports } in &self.joined {
            let mut known: Vec<(&String, &Link)> = Vec::new();
            for port in ports {
                let Some(link) = links.iter().find(|link| link.names().any(|name| is(port, name))) else {
                    continue;
                };
                if let Some((one, _)) = known.iter().find(|(_, other)| other.ifindex == link.ifindex) {
                    let (one, other) = ((*one).clone(), port.clone());
                    return Err(Error::JoinedTwice { name: name.to_string(), one, other });
                }
                if let Some((_, first)) = known.first() {
                    check_link_types(name, first, link)?;
                }
                known.push((port, link));
            }
        }
        Ok(())
    }

    /// The names of all joined interfaces.
    pub fn all_joined(&self) -> impl Iterator<Item = &Arc<str>> {
        self.joined.iter().map(|joined| &joined.name)
    }

    /// Whether an interface is selected by a full name, not only by a pattern.
    pub fn names(&self, link: &Link) -> bool {
        link.names().any(|name| self.names_name(name))
    }

    /// Whether a full name is selected.
    pub fn names_name(&self, name: &str) -> bool {
        self.names.iter().any(|selected| is(selected, name))
    }

    /// The selected names that none of `links` has.
    pub fn missing(&self, links: &[Link]) -> impl Iterator<Item = &str> {
        let exists = |selected: &&str| links.iter().flat_map(Link::names).any(|name| is(selected, name));
        self.names.iter().map(String::as_str).filter(move |selected| !exists(selected))
    }

    /// The names of the interfaces that are selected by a full name; as they were typed where none of `links` has them.
    pub fn expected<'a>(&'a self, links: &'a [Link]) -> impl Iterator<Item = &'a str> {
        self.names.iter().map(|selected| {
            let link = links.iter().find(|link| link.names().any(|name| is(selected, name)));
            link.map_or(selected.as_str(), |link| &link.name)
        })
    }

    /// The error for a name that none of `links` has. It suggests similar names.
    pub fn unknown(name: &str, links: &[Link]) -> Error {
        Error::UnknownInterface {
            name: name.to_owned(),
            hint: suggestion(name, links.iter().flat_map(Link::names)),
        }
    }
}

/// Checks that the frames of an interface begin as those of another one that it is joined with do. A link type that is not
/// supported is found when pping attaches to it.
///
/// # Errors
/// [`Error::JoinedLinkTypes`] if they do not.
pub fn check_link_types(joined: &str, one: &Link, other: &Link) -> Result<(), Error> {
    match (one.link_type(), other.link_type()) {
        (Ok(first), Ok(second)) if first != second => Err(Error::JoinedLinkTypes {
            name: joined.to_owned(),
            one: one.name.clone(),
            other: other.name.clone(),
        }),
        _ => Ok(()),
    }
}

/// Whether a pattern matches a name, which is escaped, in that form or as it is.
fn matches(pattern: &Pattern, name: &str) -> bool {
    pattern.matches(name) || name.contains('\\') && pattern.matches(&String::from_utf8_lossy(&unescape(name)))
}

/// Whether a user means this name, which is escaped. Both forms of it will do.
fn is(selected: &str, name: &str) -> bool {
    selected == name || escape(selected.as_bytes()) == name
}

fn suggestion<'a>(name: &'a str, names: impl Iterator<Item = &'a str>) -> String {
    let (similar, others) = similar(name, names);
    if similar.is_empty() {
        format!("there are {}", others[..others.len().min(8)].join(", "))
    } else {
        format!("did you mean {}?", similar.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested_or_else_all_names() {
        let names = ["lo", "eth0", "eth1", "wlan0"];
        assert_eq!(suggestion("eht0", names.into_iter()), "did you mean eth0?");
        assert_eq!(suggestion("ppp7", names.into_iter()).matches(", ").count(), 3);
    }

    #[test]
    fn joined_interfaces_are_different_and_have_the_same_frames() {
        let link = |name: &str, ifindex, hardware_type| Link {
            name: name.into(),
            ifindex,
            hardware_type,
            alternative_names: vec![format!("{name}-alias")],
            ..Link::default()
        };
        let links = [
            link("eth0", 1, libc::ARPHRD_ETHER),
            link("eth1", 2, libc::ARPHRD_ETHER),
            link("tun0", 3, libc::ARPHRD_NONE),
        ];
        let check = |text: &str| {
            let selection = Selection::new(&[text.to_owned()]).unwrap();
            selection.check_joined(&links).map_err(|error| error.to_string())
        };
        assert_eq!((check("eth0+eth1"), check("eth0+later0")), (Ok(()), Ok(())));
        let twice = check("eth1+eth1-alias").unwrap_err();
        assert!(twice.contains("eth1 and eth1-alias are names of the same interface"), "{twice}");
        let types = check("eth0+eth1+tun0").unwrap_err();
        assert!(types.contains("the frames of tun0 begin otherwise than those of eth0"), "{types}");
    }

    #[test]
    fn alternative_names_select_an_interface_too() {
        let alternative_names = vec!["enp1s0".into(), "lan\\\\x".into()];
        let link = Link { name: "eth0".into(), alternative_names, ..Link::default() };
        let links = [link];
        for (text, is_named) in [
            ("eth0", true),
            ("enp1s0", true),
            ("enp*", false),
            ("lan\\\\x", true),
            ("lan\\x", true),
            ("lan?x", false),
        ] {
            let selection = Selection::new(&[text.into()]).unwrap();
            assert!(selection.includes(&links[0]), "{text}");
            assert_eq!(
                (selection.names(&links[0]), selection.missing(&links).next()),
                (is_named, None),
                "{text}"
            );
        }
        let other = Selection::new(&["enp1".into()]).unwrap();
        assert!(!other.includes(&links[0]));
        assert_eq!(other.missing(&links).collect::<Vec<_>>(), ["enp1"]);
    }

    #[test]
    fn joined_interfaces_are_selected_by_the_name_of_each() {
        let selection = Selection::new(&["eth1+enp2s0".into(), "wan0".into()]).unwrap();
        let link = |name: &str, alternative: &[&str]| Link {
            name: name.into(),
            alternative_names: alternative.iter().map(|&name| name.into()).collect(),
            ..Link::default()
        };
        let joined = |link: &Link| selection.joined(link).map(ToString::to_string);
        assert_eq!(joined(&link("eth1", &[])).as_deref(), Some("eth1+enp2s0"));
        assert_eq!(joined(&link("eth2", &["enp2s0"])).as_deref(), Some("eth1+enp2s0"));
        assert_eq!(joined(&link("wan0", &[])), None);
        assert!(selection.includes_name("enp2s0") && !selection.includes_name("eth1+enp2s0"));
        let missing: Vec<_> = selection.missing(&[link("eth1", &[])]).collect();
        assert_eq!(missing, ["enp2s0", "wan0"]);
    }

    #[test]
    fn names_match_exactly_and_patterns_as_in_a_shell() {
        let selection = Selection::new(&["eth0".into(), "ppp*".into(), "wan[0-3]".into()]).unwrap();
        for (name, is_included) in [
            ("eth0", true),
            ("eth01", false),
            ("ppp", true),
            ("ppp17", true),
            ("wan3", true),
            ("wan4", false),
            ("xppp0", false),
        ] {
            assert_eq!(selection.includes_name(name), is_included, "{name}");
        }
        assert!(selection.names_name("eth0") && !selection.names_name("ppp0"));
        let message = Selection::new(&["wan[0-".into()]).unwrap_err().to_string();
        assert!(message.contains("--interface wan[0-") && message.contains("'ppp*'"), "{message}");
    }
}
