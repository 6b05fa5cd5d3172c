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
            InsideItem::Prefix(prefix) => {
                let other = inside.prefixes.iter().find(|it| it.contains(&prefix) || prefix.contains(*it));
                if let Some(other) = other {
                    let [wide, narrow] =
                        if other.contains(&prefix) { [*other, prefix] } else { [prefix, *other] };
                    let reason = if wide == narrow {
                        "it is listed twice; leave one out".to_owned()
                    } else {
                        format!("{wide} contains {narrow}; leave {narrow} out")
                    };
                    return refused(&prefix.to_string(), &reason);
                }
                inside.prefixes.push(prefix);
            }
        }
    }
    Ok(inside)
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
