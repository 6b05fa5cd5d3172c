//! The answer to `list`.

use std::{io, time::Duration};

use indexmap::IndexMap;
use ipnet::IpNet;
use tokio::{io::AsyncWriteExt as _, net::unix::OwnedWriteHalf, task::yield_now, time::timeout};

use super::state::State;
use crate::groups::{
    Directory, Labels,
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
    overlay: Overlay,
    labels: Labels,
}

/// A prefix, as one source lists it.
struct Row {
    prefix: IpNet,
    label: u32,
    /// What came by the socket; `None` is the file.
    held: Option<Held>,
}

impl List {
    pub(super) fn new(state: &State) -> Self {
        Self { file: state.file().clone(), overlay: state.overlay().clone(), labels: state.labels().clone() }
    }

    /// Sends the lines for which a filter holds, after those that wait in `answers`. Returns how many.
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
        for (index, row) in self.rows().enumerate() {
            if index % AT_A_TIME == AT_A_TIME - 1 {
                yield_now().await;
            }
            let Some(listed) = self.listed(&row, filter) else { continue };
            protocol::write(&listed, answers);
            found += 1;
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
            _ => file.next().map(|(prefix, label)| Row { prefix, label, held: None }),
        })
    }

    /// The line of a prefix, if the filter holds.
    fn listed(&self, row: &Row, filter: &Filter) -> Option<Listed> {
        let Row { prefix, label: number, held } = row;
        if filter.prefix.is_some_and(|wanted| !wanted.contains(prefix) && !prefix.contains(&wanted)) {
            return None;
        }
        let source = held.map_or_else(|| FILE_SOURCE.into(), |held| self.overlay.name(held.source));
        if filter.source.as_ref().is_some_and(|wanted| **wanted != *source) {
            return None;
        }
        let (label, columns) = self.labels.get(*number);
        if filter.label.as_ref().is_some_and(|wanted| **wanted != *label) {
            return None;
        }
        let columns: IndexMap<String, String> =
            columns.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Some(Listed {
            prefix: prefix.to_string(),
            label: label.to_string(),
            source: source.to_string(),
            current: self.overlay.current(*prefix) == held.as_ref(),
            columns,
        })
    }
}

fn of_socket(held: &Held) -> Row {
    Row { prefix: held.prefix, label: held.label, held: Some(*held) }
}
