//! `--inside`.

use ipnet::IpNet;

use super::{error::SettingError, values::prefix};

/// An item of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsideItem {
    /// All prefixes of the groups file.
    Groups,
    /// A prefix.
    Prefix(IpNet),
}

/// Which hosts are inside the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// The prefixes of the network.
    pub prefixes: Vec<IpNet>,
    /// Whether the hosts of all groups of the groups file are inside.
    pub groups: bool,
}

impl Inside {
    /// Nothing is inside: sides are not told apart.
    pub const UNKNOWN: Self = Self { prefixes: Vec::new(), groups: false };

    /// Whether the sides of the network are told apart.
    pub fn is_known(&self) -> bool {
        self.groups || !self.prefixes.is_empty()
    }
}

/// Parses an item.
pub(super) fn inside_item(text: &str) -> Result<InsideItem, String> {
    if text == "groups" {
        return Ok(InsideItem::Groups);
    }
    prefix(text).map(InsideItem::Prefix).map_err(|reason| match text.parse::<std::net::IpAddr>() {
        Err(_) if !text.contains(['.', ':', '/']) => {
            format!("{reason}, or `groups` for all that --groups lists")
        }
        _ => reason,
    })
}

/// Checks that the items go together. With a groups file (`has_file`), its groups can be inside.
pub(super) fn inside(items: &[InsideItem], has_file: bool) -> Result<Inside, SettingError> {
    let refused = |value: &str, reason: &str| Err(SettingError::contradiction("inside", value, reason));
    let mut inside = Inside::UNKNOWN;
    for item in items {
        match *item {
            InsideItem::Groups if !has_file => {
                return refused("groups", "there is no groups file; add --groups FILE, or list prefixes");
            }
            InsideItem::Groups => inside.groups = true,
            InsideItem::Prefix(prefix) => inside.prefixes.push(prefix),
        }
    }
    match overlap(&inside.prefixes) {
        None => Ok(inside),
        Some((wide, narrow)) if wide == narrow => {
            refused(&wide.to_string(), "it is listed twice; leave one out")
        }
        Some((wide, narrow)) => {
            refused(&narrow.to_string(), &format!("{wide} contains {narrow}; leave {narrow} out"))
        }
    }
}

/// Finds a prefix that contains another one, or is the same.
fn overlap(prefixes: &[IpNet]) -> Option<(IpNet, IpNet)> {
    let mut sorted = prefixes.to_vec();
    // A prefix comes right before the first that it contains.
    sorted.sort_unstable();
    sorted.array_windows().find(|[one, next]| one.contains(next)).map(|&[one, next]| (one, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(list: &[&str], has_file: bool) -> Result<Inside, String> {
        let items: Vec<_> = list.iter().map(|text| inside_item(text)).collect::<Result<_, _>>()?;
        inside(&items, has_file).map_err(|error| error.to_string())
    }

    #[test]
    fn prefixes_and_groups_can_both_be_inside() {
        let found = parsed(&["192.0.2.0/24", "groups", "2001:db8::/32"], true).unwrap();
        assert!(found.groups && found.is_known());
        assert_eq!(found.prefixes, ["192.0.2.0/24", "2001:db8::/32"].map(|it| it.parse().unwrap()));
        assert!(!parsed(&[], true).unwrap().is_known());
    }

    #[test]
    fn as_many_prefixes_as_there_is_room_for_take_no_time() {
        let prefixes: Vec<IpNet> = (0..65_536_u32)
            .map(|number| format!("10.{}.{}.0/24", number >> 8, number & 255).parse().unwrap())
            .collect();
        assert_eq!(overlap(&prefixes), None);
        let all: Vec<IpNet> = prefixes.iter().copied().chain(["10.0.0.0/8".parse().unwrap()]).collect();
        assert_eq!(overlap(&all), Some((all[65_536], prefixes[0])));
    }

    #[test]
    fn errors_say_what_to_write_instead() {
        for (list, hint) in [
            (&["groups"][..], "add --groups FILE"),
            (&["group"], "or `groups` for all that --groups lists"),
            (&["10.0.0.1/8"], "10.0.0.0/8"),
            (&["10.0.0.0/8", "10.1.0.0/16"], "10.0.0.0/8 contains 10.1.0.0/16; leave 10.1.0.0/16 out"),
            (&["10.1.0.0/16", "10.0.0.0/8"], "10.0.0.0/8 contains 10.1.0.0/16; leave 10.1.0.0/16 out"),
            (&["::/0", "::/0"], "listed twice"),
        ] {
            let error = parsed(list, false).unwrap_err();
            assert!(error.contains(hint), "{list:?}: {error}");
        }
    }
}
