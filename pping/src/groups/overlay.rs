//! The prefixes that came by the socket, each with its source. They are kept apart from those of the groups file.

use std::sync::Arc;

use ipnet::IpNet;

use super::{
    chunks::{Chunks, Keyed},
    labels::{Columns, Labels},
    protocol::{self, DEFAULT_SOURCE, Effect},
};

/// The highest number of sources.
pub const MAX_SOURCES: usize = 64;

/// The highest number of prefixes by the socket. Several sources may list the same prefix.
pub const MAX_PREFIXES: usize = 1 << 21;

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

/// The use of a label.
#[derive(Clone, Debug)]
struct Use {
    /// The number of the label.
    label: u32,
    /// The prefixes that have it.
    prefixes: u32,
    /// The other columns, if they came by the socket.
    columns: Option<Arc<Columns>>,
}

impl Keyed for Use {
    type Key = u32;

    fn key(&self) -> u32 {
        self.label
    }
}

/// A source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name.
    pub name: Arc<str>,
    /// The prefixes that it lists.
    pub prefixes: usize,
    /// The changes that it made since the start: prefixes that were added, moved to another label, and removed.
    pub changes: [u64; 3],
}

/// The prefixes that came by the socket. Cloning is cheap, and the clone stays as it is.
#[derive(Clone, Debug, Default)]
pub struct Overlay {
    held: Chunks<Held>,
    sources: Arc<Vec<Source>>,
    /// The labels of these.
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
        let new = Source { name: Arc::clone(name), prefixes: 0, changes: [0; 3] };
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
        self.labels.get(&label).is_some()
    }

    /// Moves a prefix of a source to a label. Returns the label that it had from this source.
    pub fn set(&mut self, prefix: IpNet, source: u16, label: u32) -> Option<u32> {
        self.changes += 1;
        let before = self.held.insert(Held { prefix, source, label, change: self.changes });
        let known = self.labels.get(&label).cloned();
        let known = known.unwrap_or(Use { label, prefixes: 0, columns: None });
        self.labels.insert(Use { prefixes: known.prefixes + 1, ..known });
        match before {
            Some(before) => self.release(before.label),
            None => self.count(source, 1),
        }
        before.map(|held| held.label)
    }

    /// Removes a prefix of a source. Returns the label that it had.
    pub fn unset(&mut self, prefix: IpNet, source: u16) -> Option<u32> {
        let before = self.held.remove(&(prefix, source))?;
        self.count(source, -1);
        self.release(before.label);
        Some(before.label)
    }

    /// Counts a change that a source made.
    pub fn count_change(&mut self, source: u16, effect: Effect) {
        let kind = match effect {
            Effect::Added => 0,
            Effect::Moved => 1,
            Effect::Removed => 2,
            Effect::Unchanged => return,
        };
        if let Some(source) = Arc::make_mut(&mut self.sources).get_mut(usize::from(source)) {
            source.changes[kind] += 1;
        }
    }

    /// Makes the counts of changes begin.
    pub fn begin_counting(&mut self) {
        for source in Arc::make_mut(&mut self.sources) {
            source.changes = [0; 3];
        }
    }

    fn count(&mut self, source: u16, more: isize) {
        if let Some(source) = Arc::make_mut(&mut self.sources).get_mut(usize::from(source)) {
            source.prefixes = source.prefixes.saturating_add_signed(more);
        }
    }

    fn release(&mut self, label: u32) {
        match self.labels.get(&label).cloned() {
            Some(known) if known.prefixes > 1 => {
                self.labels.insert(Use { prefixes: known.prefixes - 1, ..known });
            }
            _ => {
                self.labels.remove(&label);
            }
        }
    }

    /// Keeps the other columns of a label that a prefix has. They win over those of the file.
    pub fn set_columns(&mut self, label: u32, columns: Columns) {
        if let Some(known) = self.labels.get(&label).cloned() {
            self.labels.insert(Use { columns: Some(Arc::new(columns)), ..known });
        }
    }

    /// The other columns of a label, if they came by the socket.
    fn columns_of(&self, label: u32) -> Option<&Columns> {
        self.labels.get(&label)?.columns.as_deref()
    }

    /// The other columns of labels that came by the socket.
    pub fn columns(&self) -> impl Iterator<Item = (u32, &Columns)> {
        self.labels.iter().filter_map(|known| Some((known.label, known.columns.as_deref()?)))
    }

    /// Writes all prefixes as requests, which make the same overlay again. `write` takes the requests of some at a time.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn write<E>(&self, labels: &Labels, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
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
                let (label, columns) = (labels.get(held.label).0, self.columns_of(held.label));
                protocol::write_addition(held.prefix, &label, columns, &self.name(held.source), &mut lines);
            }
            if lines.len() >= 64 << 10 {
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
