//! The answer to `list`.

use std::{io, time::Duration};

use indexmap::IndexMap;
use ipnet::IpNet;
use tokio::{io::AsyncWriteExt as _, net::unix::OwnedWriteHalf, task::yield_now, time::timeout};

use super::state::State;
use crate::groups::{
    Columns, Directory, FileColumns, Labels,
    overlay::{Held, Overlay},
    protocol::{self, FILE_SOURCE, Filter, Listed},
};

/// How long a client may take to read a piece.
const PATIENCE: Duration = Duration::from_secs(10);

/// The bytes that are sent at a time.
const PIECE: usize = 64 << 10;

/// The prefixes that are looked at before others get their turn.
const AT_A_TIME: usize = 4096;

/// All prefixes at one moment. The groups may change while they are being sent.
pub(super) struct List {
    file: Directory,
    file_columns: FileColumns,
    overlay: Overlay,
    labels: Labels,
}

/// A prefix, as one source lists it.
struct Row {
    /// `None` for a label that the file has without a prefix.
    prefix: Option<IpNet>,
    label: u32,
    /// What came by the socket; `None` is the file.
    held: Option<Held>,
}

impl List {
    pub(super) fn new(state: &State) -> Self {
        Self {
            file: state.file().clone(),
            file_columns: state.file_columns().clone(),
            overlay: state.overlay().clone(),
            labels: state.labels().clone(),
        }
    }

    /// Sends the lines for which a filter holds, after those that wait in `answers`. Returns how many prefixes they have.
    ///
    /// # Errors
    /// If the client does not read them, or is gone.
    pub(super) async fn write(
        &self,
        filter: &Filter,
        answers: &mut Vec<u8>,
        writer: &mut OwnedWriteHalf,
    ) -> io::Result<usize> {
        let mut found = 0;
        for (index, row) in self.rows().chain(self.labels_alone()).enumerate() {
            if index % AT_A_TIME == AT_A_TIME - 1 {
                yield_now().await;
            }
            let Some(listed) = self.listed(&row, filter) else { continue };
            protocol::write(&listed, answers);
            found += usize::from(listed.prefix.is_some());
            if answers.len() >= PIECE {
                timeout(PATIENCE, writer.write_all(answers)).await.map_err(|_| io::ErrorKind::TimedOut)??;
                answers.clear();
            }
        }
        Ok(found)
    }

    /// All prefixes of the file and of the socket, in the order of addresses.
    fn rows(&self) -> impl Iterator<Item = Row> {
        let mut file = self.file.prefixes().peekable();
        let mut held = self.overlay.iter().peekable();
        std::iter::from_fn(move || match (file.peek(), held.peek()) {
            (Some(&(prefix, _)), Some(next)) if prefix > next.prefix => held.next().map(of_socket),
            (None, Some(_)) => held.next().map(of_socket),
            _ => file.next().map(|(prefix, label)| Row { prefix: Some(prefix), label, held: None }),
        })
    }

    /// The labels that have columns, but no prefix, in the file.
    fn labels_alone(&self) -> impl Iterator<Item = Row> {
        let alone = self.file_columns.labels().filter(|&label| !self.file.has_label(label));
        alone.map(|label| Row { prefix: None, label, held: None })
    }

    /// The line of a prefix, if the filter holds.
    fn listed(&self, row: &Row, filter: &Filter) -> Option<Listed> {
        let Row { prefix, label: number, held } = row;
        let is_near = |wanted: IpNet| prefix.is_some_and(|it| wanted.contains(&it) || it.contains(&wanted));
        if filter.prefix.is_some_and(|wanted| !is_near(wanted)) {
            return None;
        }
        let source = held.map_or_else(|| FILE_SOURCE.into(), |held| self.overlay.name(held.source));
        if filter.source.as_ref().is_some_and(|wanted| **wanted != *source) {
            return None;
        }
        let (label, current_columns) = self.labels.get(*number);
        if filter.label.as_ref().is_some_and(|wanted| **wanted != *label) {
            return None;
        }
        let columns = match held {
            Some(held) => self.overlay.columns_of(held.label, held.source),
            None => self.file_columns.get(*number).map(|columns| &**columns),
        };
        Some(Listed {
            prefix: prefix.map(|prefix| prefix.to_string()),
            label: label.to_string(),
            source: source.to_string(),
            current: prefix.is_none_or(|prefix| self.overlay.current(prefix) == held.as_ref()),
            columns: columns.map(texts).unwrap_or_default(),
            current_columns: texts(current_columns),
        })
    }
}

fn texts(columns: &Columns) -> IndexMap<String, String> {
    columns.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn of_socket(held: &Held) -> Row {
    Row { prefix: Some(held.prefix), label: held.label, held: Some(*held) }
}
