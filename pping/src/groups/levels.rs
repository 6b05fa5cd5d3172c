//! The levels of the tree of groups: columns of the groups file, and the paths of their nodes.

use std::sync::Arc;

use super::labels::Columns;

/// The value of groups that have none in a column, such as `unlisted` and `other`.
pub const NO_VALUE: &str = "(none)";

/// Stands between the values of a path.
const SEPARATOR: char = '/';

/// Comes before a separator, or another one of it, that is part of a value.
const ESCAPE: char = '\\';

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
    if !path.is_empty() {
        path.push(SEPARATOR);
    }
    for character in value.chars() {
        if [SEPARATOR, ESCAPE].contains(&character) {
            path.push(ESCAPE);
        }
        path.push(character);
    }
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
