//! The other columns of labels, as the groups file gives them, and as they are with those of the sources of the socket.

use std::sync::Arc;

use super::{
    chunks::{Chunks, Keyed},
    labels::Columns,
};

/// The columns that a groups file gives its labels. Cloning is cheap, and the clone stays as it is.
#[derive(Clone, Debug, Default)]
pub struct FileColumns(Chunks<OfLabel>);

/// The columns of a label.
#[derive(Clone, Debug)]
struct OfLabel {
    /// The number of the label.
    label: u32,
    columns: Arc<Columns>,
}

impl Keyed for OfLabel {
    type Key = u32;

    fn key(&self) -> u32 {
        self.label
    }
}

impl FileColumns {
    /// The columns of labels, by their numbers. Those of labels that have none are left out.
    pub fn new(columns: impl IntoIterator<Item = (u32, Arc<Columns>)>) -> Self {
        let some = columns.into_iter().filter(|(_, columns)| !columns.is_empty());
        Self(Chunks::new(some.map(|(label, columns)| OfLabel { label, columns }).collect()))
    }

    /// The columns of a label, if the file gives it any.
    pub fn get(&self, label: u32) -> Option<&Arc<Columns>> {
        self.0.get(&label).map(|known| &known.columns)
    }

    /// The labels that have columns, in the order of their numbers.
    pub fn labels(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|known| known.label)
    }
}

/// The columns that a label has: those of the groups file, with those that sources `given` it in their place. Of several sources
/// that give a column, the last one counts.
#[cfg(feature = "live")]
pub fn merged<'a, I>(file: Option<&Arc<Columns>>, given: I) -> Arc<Columns>
where
    I: IntoIterator<Item = &'a Arc<Columns>>,
{
    let mut all = file.cloned().unwrap_or_default();
    for columns in given {
        if all.is_empty() {
            all = Arc::clone(columns);
            continue;
        }
        let all = Arc::make_mut(&mut all);
        for (name, value) in columns.iter() {
            match all.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => *known = Arc::clone(value),
                None => all.push((Arc::clone(name), Arc::clone(value))),
            }
        }
    }
    all
}

#[cfg(all(test, feature = "live"))]
mod tests {
    use super::*;

    fn columns(columns: &[(&str, &str)]) -> Arc<Columns> {
        Arc::new(columns.iter().map(|&(name, value)| (name.into(), value.into())).collect())
    }

    #[test]
    fn columns_of_sources_replace_those_of_the_file_one_by_one() {
        let file = columns(&[("site", "berlin"), ("ap", "ap-3")]);
        let [radius, cli] = [&[("nas", "bng-1")][..], &[("ap", "ap-4"), ("nas", "bng-2")]].map(columns);
        assert_eq!(merged(Some(&file), []), file);
        assert_eq!(merged(None, [&radius]), radius);
        let both = columns(&[("site", "berlin"), ("ap", "ap-3"), ("nas", "bng-1")]);
        assert_eq!(merged(Some(&file), [&radius]), both);
        let all = columns(&[("site", "berlin"), ("ap", "ap-4"), ("nas", "bng-2")]);
        assert_eq!(merged(Some(&file), [&radius, &cli]), all);
        let all = columns(&[("site", "berlin"), ("ap", "ap-4"), ("nas", "bng-1")]);
        assert_eq!(merged(Some(&file), [&cli, &radius]), all);
        assert_eq!(merged(None, []), columns(&[]));
        assert_eq!(file, columns(&[("site", "berlin"), ("ap", "ap-3")]), "the file's stay as they are");
    }
}
