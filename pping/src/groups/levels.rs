//! The levels of the tree of groups: columns of the groups file, and the paths of their nodes.

use std::sync::Arc;

use super::{joined, labels::Columns};

/// The value of groups that have none in a column, such as `unlisted` and `other`.
pub const NO_VALUE: &str = "(none)";

/// The path of nodes that have no labels of metrics to themselves.
pub const OTHER_NODES: &str = "(other)";

/// Stands between the values of a path.
const SEPARATOR: char = '/';

/// The columns of the groups file by which groups are added up, the outermost level first. Cloning gives another handle to
/// the same ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels(Arc<[Arc<str>]>);

impl Levels {
    /// The levels of these columns, no two of which are equal.
    pub fn new(columns: &[String]) -> Self {
        Self(columns.iter().map(|column| column.as_str().into()).collect())
    }

    /// Whether there is no tree.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their names, the outermost first.
    pub fn names(&self) -> &[Arc<str>] {
        &self.0
    }

    /// Describes the levels that `columns`, those of a groups file, do not have; `None` if they have all.
    pub fn missing_in(&self, columns: &[Arc<str>]) -> Option<String> {
        let missing: Vec<_> = self.0.iter().filter(|level| !columns.contains(level)).map(quoted).collect();
        if missing.is_empty() {
            return None;
        }
        let known: Vec<_> = columns.iter().map(quoted).collect();
        let known = if known.is_empty() {
            "it has none beside the prefix and the label".to_owned()
        } else {
            format!("it has {}", known.join(", "))
        };
        let columns = if missing.len() == 1 { "column" } else { "columns" };
        Some(format!("the groups file has no {columns} {}; {known}", missing.join(", ")))
    }

    /// The level of the nodes that have paths of this many values, from 1.
    fn of_depth(&self, depth: usize) -> Option<&Arc<str>> {
        self.0.get(depth.checked_sub(1)?)
    }

    /// Says why no nodes of a level can be under the node with a path; `None` if they can.
    pub fn why_not_under(&self, level: &str, path: &str) -> Option<String> {
        let depth = joined::split(path, SEPARATOR).len();
        if self.0.iter().skip(depth).any(|below| **below == *level) {
            return None;
        }
        let of_path = self.of_depth(depth)?;
        let below = self.0.get(depth).map_or_else(String::new, |below| format!("ask for `{below}`, or "));
        Some(format!(
            "`{path}` is a node of `{of_path}`, which has no `{level}` under it; {below}leave this out for its groups"
        ))
    }

    /// The paths of the nodes of a group with these columns, the outermost first.
    pub(super) fn paths(&self, columns: &Columns) -> Vec<String> {
        let mut path = String::new();
        let add = |(_, value): (Arc<str>, Arc<str>)| {
            add_to_path(&mut path, &value);
            path.clone()
        };
        self.values(columns).map(add).collect()
    }

    /// The values of a group at each level, the outermost first.
    pub(super) fn values<'a>(&'a self, columns: &'a Columns) -> impl Iterator<Item = (Arc<str>, Arc<str>)> {
        self.0.iter().map(|level| {
            let value = columns.iter().find(|(column, _)| column == level);
            (Arc::clone(level), value.map_or_else(|| NO_VALUE.into(), |(_, value)| Arc::clone(value)))
        })
    }
}

/// Adds a value to the end of a path. A `/` in a value becomes `\/`, so that no two nodes have the same path.
pub(super) fn add_to_path(path: &mut String, value: &str) {
    joined::add(path, value, SEPARATOR);
}

fn quoted(name: &Arc<str>) -> String {
    format!("`{name}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(columns: &[&str]) -> Levels {
        Levels::new(&columns.iter().map(|&column| column.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_path_tells_values_with_separators_apart() {
        let path = |values: &[&str]| {
            let mut path = String::new();
            for value in values {
                add_to_path(&mut path, value);
            }
            path
        };
        assert_eq!(path(&["berlin", "ap-3"]), "berlin/ap-3");
        let paths = [&["a/b", "c"][..], &["a", "b/c"], &["a", "b", "c"], &["a\\", "b", "c"], &["a\\/b", "c"]];
        let paths: std::collections::HashSet<_> = paths.into_iter().map(path).collect();
        assert_eq!(paths.len(), 5, "{paths:?}");
    }

    #[test]
    fn nodes_of_a_level_are_under_those_of_a_level_above() {
        let levels = levels(&["site", "ap", "sector"]);
        assert_eq!(levels.why_not_under("ap", "berlin"), None);
        assert_eq!(levels.why_not_under("sector", "berlin"), None);
        assert_eq!(
            levels.why_not_under("site", "a\\/b").unwrap(),
            "`a\\/b` is a node of `site`, which has no `site` under it; ask for `ap`, or leave this out for its groups"
        );
        let innermost = levels.why_not_under("ap", "berlin/ap-3/1").unwrap();
        assert!(innermost.ends_with("no `ap` under it; leave this out for its groups"), "{innermost}");
        let columns = vec![("ap".into(), "x/y".into()), ("site".into(), "berlin".into())];
        assert_eq!(levels.paths(&columns), ["berlin", "berlin/x\\/y", "berlin/x\\/y/(none)"]);
    }

    #[test]
    fn a_column_that_the_file_lacks_is_named_with_those_it_has() {
        let columns = ["site", "plan"].map(Arc::from);
        assert_eq!(levels(&["site"]).missing_in(&columns), None);
        assert_eq!(levels(&[]).missing_in(&[]), None);
        assert_eq!(
            levels(&["site", "ap"]).missing_in(&columns).unwrap(),
            "the groups file has no column `ap`; it has `site`, `plan`"
        );
        assert_eq!(
            levels(&["city", "ap"]).missing_in(&[]).unwrap(),
            "the groups file has no columns `city`, `ap`; it has none beside the prefix and the label"
        );
    }
}
