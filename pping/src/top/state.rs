//! What is on the screen, and what keys do to it. Nothing here draws, asks or waits.

use std::time::Instant;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    ask::{Answers, Question},
    table::{self, COLUMNS, Row},
};
use crate::view::{GroupDetail, GroupsAnswer, Order, Query, Summary};

/// The groups that are asked for: more than on any screen.
const LIMIT: usize = 500;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Draw again.
    Draw,
    /// Ask again, now.
    Ask,
    /// End.
    Quit,
}

/// What is on the screen.
#[derive(Debug)]
pub(super) struct State {
    query: Query,
    latest: Option<(Summary, GroupsAnswer)>,
    rows: Vec<Row>,
    /// The row that the cursor is on.
    pub(super) selected: usize,
    /// The row that is looked at alone, and the past of its group once it is known.
    open: Option<(Row, Option<GroupDetail>)>,
    /// The filter as it is being typed.
    pub(super) typed: Option<String>,
    pub(super) is_frozen: bool,
    pub(super) has_help: bool,
    /// Since when pping does not answer, and why.
    pub(super) failure: Option<(Instant, String)>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            query: Query { limit: LIMIT, ..Query::default() },
            latest: None,
            rows: Vec::new(),
            selected: 0,
            open: None,
            typed: None,
            is_frozen: false,
            has_help: false,
            failure: None,
        }
    }
}

impl State {
    /// What is to be asked.
    pub(super) fn question(&self) -> Question {
        let past = self.open.as_ref().map(|(row, _)| row.id.clone());
        Question { groups: self.query.clone(), past }
    }

    /// Which groups are asked for.
    pub(super) fn query(&self) -> &Query {
        &self.query
    }

    /// Whether letters are text rather than commands.
    pub(super) fn takes_text(&self) -> bool {
        self.typed.is_some()
    }

    /// The latest answers.
    pub(super) fn latest(&self) -> Option<&(Summary, GroupsAnswer)> {
        self.latest.as_ref()
    }

    /// The rows of the table.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Takes answers.
    pub(super) fn take(&mut self, Answers { summary, groups, past }: Answers) {
        self.failure = None;
        if self.is_frozen {
            return;
        }
        if let Some((row, known)) = &mut self.open {
            // An answer from before the row was opened has none.
            if past.as_ref().is_none_or(|past| past.group.id == row.id) {
                *known = past;
            }
        }
        self.rows = table::rows(&groups.groups);
        self.latest = Some((summary, groups));
        self.select(self.selected);
    }

    /// The row that is looked at alone.
    pub(super) fn open(&self) -> Option<&(Row, Option<GroupDetail>)> {
        self.open.as_ref()
    }

    /// Takes note that there was no answer.
    pub(super) fn fail(&mut self, reason: String, now: Instant) {
        let since = self.failure.take().map_or(now, |(since, _)| since);
        self.failure = Some((since, reason));
    }

    fn select(&mut self, row: usize) {
        self.selected = row.min(self.rows.len().saturating_sub(1));
    }

    /// Does what a key asks for; `page` is the number of rows on the screen.
    pub(super) fn key(&mut self, key: KeyEvent, page: usize) -> Effect {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Effect::Quit;
        }
        if let Some(typed) = &mut self.typed {
            return match key.code {
                KeyCode::Enter => {
                    self.query.filter = self.typed.take().unwrap_or_default();
                    self.selected = 0;
                    Effect::Ask
                }
                KeyCode::Esc => {
                    self.typed = None;
                    Effect::Draw
                }
                KeyCode::Backspace => {
                    typed.pop();
                    Effect::Draw
                }
                KeyCode::Char(character) => {
                    typed.push(character);
                    Effect::Draw
                }
                _ => Effect::Draw,
            };
        }
        if self.has_help {
            self.has_help = false;
            return Effect::Draw;
        }
        match key.code {
            KeyCode::Char('q') => return Effect::Quit,
            KeyCode::Char('?' | 'h') => self.has_help = true,
            KeyCode::Char('j') | KeyCode::Down => self.select(self.selected + 1),
            KeyCode::Char('k') | KeyCode::Up => self.select(self.selected.saturating_sub(1)),
            KeyCode::PageDown => self.select(self.selected + page),
            KeyCode::PageUp => self.select(self.selected.saturating_sub(page)),
            KeyCode::Char('g') | KeyCode::Home => self.selected = 0,
            KeyCode::Char('G') | KeyCode::End => self.select(usize::MAX),
            KeyCode::Char(' ') => {
                self.is_frozen = !self.is_frozen;
                return if self.is_frozen { Effect::Draw } else { Effect::Ask };
            }
            KeyCode::Enter if self.open.is_none() => {
                self.open = self.rows.get(self.selected).map(|row| (row.clone(), None));
                return Effect::Ask;
            }
            KeyCode::Esc | KeyCode::Enter if self.open.is_some() => self.open = None,
            KeyCode::Char('/') => self.typed = Some(self.query.filter.clone()),
            KeyCode::Esc if !self.query.filter.is_empty() => {
                self.query.filter.clear();
                return Effect::Ask;
            }
            KeyCode::Char('s') => {
                self.query.sort = self.next_column();
                return Effect::Ask;
            }
            KeyCode::Char('S') => {
                self.query.order = if self.query.order == Order::Desc { Order::Asc } else { Order::Desc };
                return Effect::Ask;
            }
            _ => {}
        }
        Effect::Draw
    }

    fn next_column(&self) -> crate::view::Column {
        let at = COLUMNS.iter().position(|(_, _, column)| *column == self.query.sort).unwrap_or(0);
        COLUMNS[(at + 1) % COLUMNS.len()].2
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::view::{
        Column, Cost, GroupAnswer, Interface, InterfaceRates, Losses, Rate, RttAnswer, SeriesAnswer,
        TrafficAnswer,
    };

    fn series(p95: u64) -> SeriesAnswer {
        let traffic = TrafficAnswer { packets: 100, bytes: 5000, retransmissions: 3 };
        SeriesAnswer {
            interface: Some("wan0".into()),
            method: "tcp-ts".into(),
            matched: Some("ingress".into()),
            rtt: Some(RttAnswer {
                count: 7,
                min: 900_000,
                mean: p95,
                p50: p95 / 2,
                p90: p95,
                p95,
                p99: 2 * p95,
                max: 3 * p95,
            }),
            sent: traffic,
            received: traffic,
        }
    }

    pub(in super::super) fn answers(groups: &[(&str, u64)]) -> Answers {
        let rate = Rate { packets: 1234.0, bits: 9_876_543.0, retransmissions: 1.0 };
        let interface = Interface {
            interface: "wan0".into(),
            is_up: true,
            attach_points: vec!["tcx".into()],
            rates: InterfaceRates { ingress: rate, egress: rate, samples: 12.0 },
            series: vec![series(9_000_000)],
        };
        let losses = Losses { events_lost: 5, ..Losses::default() };
        let summary = Summary {
            version: "0.1.0".into(),
            sequence: 1,
            time: 0,
            interfaces: vec![interface],
            groups: groups.len(),
            losses,
            cost: Cost::default(),
        };
        let group = |&(label, p95): &(&str, u64)| GroupAnswer {
            id: "0".repeat(32),
            group: label.into(),
            prefix: None,
            dscp: None,
            labels: BTreeMap::new(),
            series: vec![series(p95)],
        };
        let groups: Vec<GroupAnswer> = groups.iter().map(group).collect();
        let (known, found) = (groups.len(), groups.len());
        let groups = GroupsAnswer { sequence: 1, time: 0, known, found, groups };
        Answers { summary, groups, past: None }
    }

    fn state() -> State {
        let mut state = State::default();
        state.take(answers(&[("a", 9_000_000), ("b", 8_000_000), ("c", 7_000_000)]));
        state
    }

    fn press(state: &mut State, code: KeyCode) -> Effect {
        state.key(KeyEvent::new(code, KeyModifiers::NONE), 2)
    }

    #[test]
    fn the_cursor_stays_on_the_table() {
        let mut state = state();
        for (code, selected) in [
            (KeyCode::Up, 0),
            (KeyCode::Char('j'), 1),
            (KeyCode::PageDown, 2),
            (KeyCode::Down, 2),
            (KeyCode::PageUp, 0),
            (KeyCode::Char('G'), 2),
            (KeyCode::Char('k'), 1),
            (KeyCode::Char('g'), 0),
            (KeyCode::End, 2),
        ] {
            assert_eq!(press(&mut state, code), Effect::Draw);
            assert_eq!(state.selected, selected, "{code:?}");
        }
        // Fewer rows than before.
        state.take(answers(&[("a", 1)]));
        assert_eq!(state.selected, 0);
    }

    #[test]
    fn a_filter_counts_once_it_is_entered_and_escape_clears_it() {
        let mut state = state();
        press(&mut state, KeyCode::Char('/'));
        for character in "qx".chars() {
            assert_eq!(press(&mut state, KeyCode::Char(character)), Effect::Draw, "no command while typing");
        }
        press(&mut state, KeyCode::Backspace);
        assert_eq!((state.typed.as_deref(), &*state.query.filter), (Some("q"), ""));
        assert_eq!(press(&mut state, KeyCode::Enter), Effect::Ask);
        assert_eq!((state.typed.as_deref(), &*state.query.filter), (None, "q"));
        press(&mut state, KeyCode::Char('/'));
        press(&mut state, KeyCode::Char('z'));
        assert_eq!(press(&mut state, KeyCode::Esc), Effect::Draw);
        assert_eq!(&*state.query.filter, "q", "as it was");
        assert_eq!(press(&mut state, KeyCode::Esc), Effect::Ask);
        assert_eq!(&*state.query.filter, "");
    }

    #[test]
    fn columns_are_sorted_by_in_their_order_and_either_way() {
        let mut state = state();
        let mut seen = vec![state.query.sort];
        for _ in 1..COLUMNS.len() {
            assert_eq!(press(&mut state, KeyCode::Char('s')), Effect::Ask);
            seen.push(state.query.sort);
        }
        assert_eq!(seen[..3], [Column::P95, Column::P99, Column::Packets]);
        seen.sort_by_key(|column| *column as u8);
        seen.dedup();
        assert_eq!(seen.len(), COLUMNS.len(), "each of them once");
        press(&mut state, KeyCode::Char('S'));
        assert_eq!(state.query.order, Order::Asc);
    }

    #[test]
    fn a_frozen_screen_stays_as_it_is() {
        let mut state = state();
        assert_eq!(press(&mut state, KeyCode::Char(' ')), Effect::Draw);
        state.take(answers(&[("z", 1)]));
        assert_eq!(state.rows().len(), 3);
        assert_eq!(press(&mut state, KeyCode::Char(' ')), Effect::Ask);
    }

    #[test]
    fn a_row_is_opened_and_closed_before_the_filter_is_cleared() {
        let mut state = state();
        state.query.filter = "a".to_owned();
        press(&mut state, KeyCode::Down);
        assert_eq!(press(&mut state, KeyCode::Enter), Effect::Ask);
        assert_eq!(state.open().map(|(row, _)| row.cells[0].as_str()), Some("b"));
        assert_eq!(press(&mut state, KeyCode::Esc), Effect::Draw);
        assert!(state.open().is_none() && state.query.filter == "a");
        press(&mut state, KeyCode::Esc);
        assert_eq!(state.query.filter, "");
    }

    #[test]
    fn a_failure_counts_from_when_it_began_until_there_is_an_answer() {
        let mut state = state();
        let now = Instant::now();
        state.fail("gone".to_owned(), now);
        state.fail("still gone".to_owned(), now + std::time::Duration::from_secs(5));
        assert_eq!(state.failure, Some((now, "still gone".to_owned())));
        state.take(answers(&[]));
        assert_eq!(state.failure, None);
    }

    #[test]
    fn keys_end_it_and_any_key_ends_the_help() {
        let mut state = state();
        press(&mut state, KeyCode::Char('?'));
        assert!(state.has_help);
        assert_eq!(press(&mut state, KeyCode::Char('q')), Effect::Draw);
        assert!(!state.has_help);
        assert_eq!(press(&mut state, KeyCode::Char('q')), Effect::Quit);
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        press(&mut state, KeyCode::Char('/'));
        assert_eq!(state.key(control_c, 2), Effect::Quit, "also while typing");
    }
}
