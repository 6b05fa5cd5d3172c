//! The prefixes that came by the socket, and the columns of their labels, each with its source. They are kept apart from those of
//! the groups file.

use std::sync::Arc;

use ipnet::IpNet;

use super::{
    chunks::{Chunks, Keyed},
    labels::{Columns, Labels},
    protocol::{self, DEFAULT_SOURCE, Effect, MAX_COLUMNS},
};

/// The highest number of sources.
pub const MAX_SOURCES: usize = 64;

/// The highest number of prefixes by the socket. Several sources may list the same prefix.
pub const MAX_PREFIXES: usize = 1 << 21;

/// The bytes of requests that are written at a time.
const PIECE: usize = 64 << 10;

/// A prefix from one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The prefix.
    pub prefix: IpNet,
    /// The index of its source.
    pub source: u16,
    /// The number of its label.
    pub label: u32,
    /// Counts changes: of several sources, the last one wins.
    change: u64,
}

impl Keyed for Held {
    type Key = (IpNet, u16);

    fn key(&self) -> Self::Key {
        (self.prefix, self.source)
    }
}

/// A label that a source lists.
#[derive(Clone, Debug)]
struct Use {
    /// The number of the label.
    label: u32,
    /// The index of the source.
    source: u16,
    /// The prefixes that have the label from this source. There is at least one.
    prefixes: u32,
    /// The other columns that this source gives the label; none are not kept.
    columns: Option<Arc<Columns>>,
    /// Counts changes: of several sources that give a column, the last one wins.
    change: u64,
}

impl Keyed for Use {
    type Key = (u32, u16);

    fn key(&self) -> Self::Key {
        (self.label, self.source)
    }
}

/// A source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name.
    pub name: Arc<str>,
    /// The prefixes that it lists.
    pub prefixes: usize,
    /// The changes that it made since the start: prefixes that were added, moved to another label, and removed, and labels that
    /// got other columns.
    pub changes: [u64; 4],
}

/// The prefixes that came by the socket. Cloning is cheap, and the clone stays as it is.
#[derive(Clone, Debug, Default)]
pub struct Overlay {
    held: Chunks<Held>,
    sources: Arc<Vec<Source>>,
    /// The labels of these, by source.
    labels: Chunks<Use>,
    changes: u64,
}

impl Overlay {
    /// The number of prefixes, of all sources.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether there are no prefixes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All prefixes, in the order of addresses.
    pub fn iter(&self) -> impl Iterator<Item = &Held> + Clone {
        self.held.iter()
    }

    /// The sources. Those without prefixes stay.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The name of a source.
    pub fn name(&self, source: u16) -> Arc<str> {
        let known = self.sources.get(usize::from(source));
        known.map_or_else(|| DEFAULT_SOURCE.into(), |source| Arc::clone(&source.name))
    }

    /// The index of a source, which may be new.
    ///
    /// # Errors
    /// If there are too many.
    pub fn source(&mut self, name: &Arc<str>) -> Result<u16, String> {
        if let Some(known) = self.known_source(name) {
            return Ok(known);
        }
        let sources = Arc::make_mut(&mut self.sources);
        let new = Source { name: Arc::clone(name), prefixes: 0, changes: [0; 4] };
        if sources.len() < MAX_SOURCES {
            sources.push(new);
            return Ok((sources.len() - 1) as u16);
        }
        // One that lists nothing any more makes room.
        let unused = sources.iter_mut().enumerate().find(|(_, source)| source.prefixes == 0);
        let Some((index, source)) = unused else {
            return Err(format!(
                "there are {MAX_SOURCES} sources already; use one of them, or remove all of one"
            ));
        };
        *source = new;
        Ok(index as u16)
    }

    /// The index of a source that there is.
    pub fn known_source(&self, name: &str) -> Option<u16> {
        self.sources.iter().position(|source| *source.name == *name).map(|index| index as u16)
    }

    /// Whether there is room for another prefix.
    pub fn has_room(&self) -> bool {
        self.len() < MAX_PREFIXES
    }

    /// What a source says of exactly this prefix.
    pub fn of_source(&self, prefix: IpNet, source: u16) -> Option<&Held> {
        self.held.get(&(prefix, source))
    }

    /// All that is said of exactly this prefix.
    pub fn all_of(&self, prefix: IpNet) -> impl Iterator<Item = &Held> {
        self.held.iter_from(&(prefix, 0)).take_while(move |held| held.prefix == prefix)
    }

    /// What counts for exactly this prefix.
    pub fn current(&self, prefix: IpNet) -> Option<&Held> {
        self.all_of(prefix).max_by_key(|held| held.change)
    }

    /// Whether a prefix has this label.
    pub fn uses(&self, label: u32) -> bool {
        self.uses_of(label).next().is_some()
    }

    /// The use of a label by each source.
    fn uses_of(&self, label: u32) -> impl Iterator<Item = &Use> {
        self.labels.iter_from(&(label, 0)).take_while(move |known| known.label == label)
    }

    /// Moves a prefix of a source to a label. Returns the label that it had from this source.
    pub fn set(&mut self, prefix: IpNet, source: u16, label: u32) -> Option<u32> {
        self.changes += 1;
        let before = self.held.insert(Held { prefix, source, label, change: self.changes });
        let known = self.labels.get(&(label, source)).cloned();
        let known = known.unwrap_or(Use { label, source, prefixes: 0, columns: None, change: 0 });
        self.labels.insert(Use { prefixes: known.prefixes + 1, ..known });
        match before {
            Some(before) => self.release(before.label, source),
            None => self.count(source, 1),
        }
        before.map(|held| held.label)
    }

    /// Removes a prefix of a source. Returns the label that it had.
    pub fn unset(&mut self, prefix: IpNet, source: u16) -> Option<u32> {
        let before = self.held.remove(&(prefix, source))?;
        self.count(source, -1);
        self.release(before.label, source);
        Some(before.label)
    }

    /// Counts a change that a source made.
    pub fn count_change(&mut self, source: u16, effect: Effect) {
        let kind = match effect {
            Effect::Added => 0,
            Effect::Moved => 1,
            Effect::Removed => 2,
            Effect::Columns => 3,
            Effect::Unchanged => return,
        };
        if let Some(source) = Arc::make_mut(&mut self.sources).get_mut(usize::from(source)) {
            source.changes[kind] += 1;
        }
    }

    /// Makes the counts of changes begin.
    pub fn begin_counting(&mut self) {
        for source in Arc::make_mut(&mut self.sources) {
            source.changes = [0; 4];
        }
    }

    fn count(&mut self, source: u16, more: isize) {
        if let Some(source) = Arc::make_mut(&mut self.sources).get_mut(usize::from(source)) {
            source.prefixes = source.prefixes.saturating_add_signed(more);
        }
    }

    /// Takes a prefix away from a label of a source. With the last one go the columns that the source gave it.
    fn release(&mut self, label: u32, source: u16) {
        match self.labels.get(&(label, source)).cloned() {
            Some(known) if known.prefixes > 1 => {
                self.labels.insert(Use { prefixes: known.prefixes - 1, ..known });
            }
            _ => {
                self.labels.remove(&(label, source));
            }
        }
    }

    /// Whether a source lists a label.
    pub fn lists(&self, label: u32, source: u16) -> bool {
        self.labels.get(&(label, source)).is_some()
    }

    /// Replaces the other columns that a source gives a label which it lists. From now on they win over those of other sources.
    /// Returns whether they are others than before.
    pub fn set_columns(&mut self, label: u32, source: u16, columns: &Columns) -> bool {
        let Some(known) = self.labels.get(&(label, source)).cloned() else { return false };
        let is_other = known.columns.as_ref().map_or(!columns.is_empty(), |known| **known != *columns);
        let columns = match known.columns.filter(|_| !is_other) {
            Some(same) => Some(same),
            None => Some(Arc::new(columns.clone())).filter(|columns| !columns.is_empty()),
        };
        self.changes += 1;
        self.labels.insert(Use { columns, change: self.changes, ..known });
        is_other
    }

    /// Says why a label has no room for these columns of a source, beside those of other sources.
    ///
    /// # Errors
    /// If the sources would give it more than [`MAX_COLUMNS`] together.
    pub fn check_columns(&self, label: u32, source: u16, columns: &Columns) -> Result<(), String> {
        let others = self.uses_of(label).filter(|known| known.source != source);
        let others = others.filter_map(|known| known.columns.as_deref()).flatten();
        let mut names: Vec<&str> = others.chain(columns).map(|(name, _)| &**name).collect();
        names.sort_unstable();
        names.dedup();
        if names.len() > MAX_COLUMNS {
            return Err(format!(
                "with those of other sources the label would have {} columns, but at most {MAX_COLUMNS} fit; leave some out",
                names.len()
            ));
        }
        Ok(())
    }

    /// The columns that a source gives a label; none are `None`.
    pub fn columns_of(&self, label: u32, source: u16) -> Option<&Columns> {
        self.labels.get(&(label, source))?.columns.as_deref()
    }

    /// The columns that each source gives a label. Of several that give the same one, the last counts.
    pub fn columns(&self, label: u32) -> Vec<(u16, &Arc<Columns>)> {
        let mut given: Vec<_> =
            self.uses_of(label).filter_map(|known| Some((known, known.columns.as_ref()?))).collect();
        given.sort_unstable_by_key(|(known, _)| known.change);
        given.into_iter().map(|(known, columns)| (known.source, columns)).collect()
    }

    /// Writes everything as requests, which make the same overlay again. `write` takes the requests of some prefixes or labels at a
    /// time.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn write<E>(&self, labels: &Labels, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        self.write_prefixes(labels, &mut write)?;
        // A column needs a prefix of its label.
        self.write_columns(labels, &mut write)
    }

    fn write_prefixes<E>(
        &self,
        labels: &Labels,
        write: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut lines = Vec::new();
        let mut of_prefix: Vec<&Held> = Vec::new();
        let mut all = self.held.iter().peekable();
        while let Some(held) = all.next() {
            of_prefix.push(held);
            if all.peek().is_some_and(|next| next.prefix == held.prefix) {
                continue;
            }
            of_prefix.sort_by_key(|held| held.change);
            for held in of_prefix.drain(..) {
                let label = labels.get(held.label).0;
                protocol::write_addition(held.prefix, &label, None, &self.name(held.source), &mut lines);
            }
            if lines.len() >= PIECE {
                write(&lines)?;
                lines.clear();
            }
        }
        write(&lines)
    }

    fn write_columns<E>(
        &self,
        labels: &Labels,
        write: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut lines, mut last) = (Vec::new(), None);
        for Use { label, .. } in self.labels.iter().filter(|known| known.columns.is_some()) {
            if last.replace(*label) == Some(*label) {
                continue;
            }
            let text = labels.get(*label).0;
            for (source, columns) in self.columns(*label) {
                protocol::write_columns(&text, columns, &self.name(source), &mut lines);
            }
            if lines.len() >= PIECE {
                write(&lines)?;
                lines.clear();
            }
        }
        write(&lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn the_source_that_spoke_last_wins_and_its_end_gives_way() {
        let mut overlay = Overlay::default();
        let [cli, radius] = ["cli", "radius"].map(|name| overlay.source(&name.into()).unwrap());
        let prefix = net("10.0.0.7/32");
        assert_eq!(overlay.set(prefix, cli, 1), None);
        assert_eq!(overlay.set(prefix, radius, 2), None);
        overlay.set(net("10.0.0.8/32"), cli, 9);
        assert_eq!(overlay.current(prefix).map(|held| held.label), Some(2));
        assert_eq!(overlay.set(prefix, cli, 3), Some(1));
        assert_eq!(overlay.current(prefix).map(|held| held.label), Some(3));
        assert!(!overlay.uses(1) && overlay.uses(2) && overlay.uses(3));
        assert_eq!(overlay.unset(prefix, cli), Some(3));
        assert_eq!(overlay.unset(prefix, cli), None);
        assert_eq!(overlay.current(prefix).map(|held| held.label), Some(2));
        overlay.unset(prefix, radius);
        assert_eq!((overlay.current(prefix), overlay.len()), (None, 1));
    }

    fn columns(columns: &[(&str, &str)]) -> Columns {
        columns.iter().map(|&(name, value)| (name.into(), value.into())).collect()
    }

    /// The sources that give a label columns, the one that counts last.
    fn given(overlay: &Overlay, label: u32) -> Vec<(u16, String)> {
        let text = |columns: &Columns| {
            columns.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        overlay.columns(label).into_iter().map(|(source, columns)| (source, text(columns))).collect()
    }

    #[test]
    fn each_source_has_its_columns_of_a_label() {
        let mut overlay = Overlay::default();
        let [cli, radius] = ["cli", "radius"].map(|name| overlay.source(&name.into()).unwrap());
        let prefixes = ["10.0.0.7/32", "10.0.0.8/32"].map(net);
        assert!(!overlay.set_columns(1, cli, &columns(&[("site", "x")])), "it lists no such label");
        for prefix in prefixes {
            overlay.set(prefix, radius, 1);
        }
        overlay.set(prefixes[0], cli, 1);
        assert!(overlay.set_columns(1, radius, &columns(&[("nas", "bng-1"), ("site", "r")])));
        assert!(overlay.set_columns(1, cli, &columns(&[("site", "c")])));
        let both = [(radius, "nas=bng-1 site=r".to_owned()), (cli, "site=c".to_owned())];
        assert_eq!(given(&overlay, 1), both);
        // The same once more is no change, but it counts from now on.
        assert!(!overlay.set_columns(1, radius, &columns(&[("nas", "bng-1"), ("site", "r")])));
        assert_eq!(given(&overlay, 1), [both[1].clone(), both[0].clone()]);
        assert!(overlay.set_columns(1, radius, &columns(&[("nas", "bng-2")])));
        assert_eq!(given(&overlay, 1)[1], (radius, "nas=bng-2".to_owned()));
        // They stay until the last prefix of this source goes.
        overlay.unset(prefixes[0], radius);
        assert_eq!(given(&overlay, 1).len(), 2);
        overlay.set(prefixes[1], radius, 2);
        assert_eq!(given(&overlay, 1), [both[1].clone()]);
        assert!(overlay.set_columns(1, cli, &Columns::new()));
        assert_eq!((given(&overlay, 1), overlay.columns_of(1, cli)), (vec![], None));
        assert!(overlay.uses(1) && overlay.lists(1, cli) && !overlay.lists(1, radius));
    }

    #[test]
    fn the_columns_of_all_sources_of_a_label_are_bounded() {
        let mut overlay = Overlay::default();
        let [cli, radius] = ["cli", "radius"].map(|name| overlay.source(&name.into()).unwrap());
        let many = |first: usize| -> Columns {
            (first..first + 9).map(|number| (format!("c{number}").into(), "x".into())).collect()
        };
        for source in [cli, radius] {
            overlay.set(net("10.0.0.7/32"), source, 1);
        }
        overlay.set_columns(1, cli, &many(0));
        assert_eq!(overlay.check_columns(1, radius, &many(7)), Ok(()));
        let refused = overlay.check_columns(1, radius, &many(8)).unwrap_err();
        assert!(refused.contains("17 columns, but at most 16 fit"), "{refused}");
        assert_eq!(overlay.check_columns(1, cli, &many(8)), Ok(()), "its own are replaced");
    }

    #[test]
    fn sources_are_bounded_and_unused_ones_make_room() {
        let mut overlay = Overlay::default();
        for number in 0..MAX_SOURCES {
            let source = overlay.source(&format!("source-{number}").into()).unwrap();
            overlay.set(net("10.0.0.7/32"), source, 1);
        }
        assert!(overlay.source(&"one-more".into()).unwrap_err().contains("use one of them"));
        overlay.unset(net("10.0.0.7/32"), 5);
        assert_eq!(overlay.source(&"one-more".into()), Ok(5));
        assert_eq!(&*overlay.name(5), "one-more");
    }
}
