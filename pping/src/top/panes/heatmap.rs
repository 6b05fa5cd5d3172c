//! Round-trip times over time, on one side of an interface by one method.

use ratatui::{
    Frame,
    crossterm::event::KeyCode,
    layout::{Position, Rect},
    style::{Modifier, Style},
    text::Line,
    widgets::Paragraph,
};

use super::{Effect, PaneData, scrolled};
use crate::{
    foreign_text::sanitized,
    recent::{HistoryAnswer, SeriesAnswer, SeriesQuery},
    top::{
        plot::{self, Plot},
        table::{self, SeriesKey},
        text::{padded, right, side, side_width, time, width},
    },
};

/// The pane.
#[derive(Debug, Default)]
pub(in crate::top) struct Heatmap {
    /// The series that was chosen.
    chosen: Option<SeriesKey>,
    /// The first series on the list.
    first: usize,
    history: Option<HistoryAnswer>,
}

impl Heatmap {
    /// Returns the query for the series that is shown, since the history of all series is long.
    pub(in crate::top) fn query(&self, shown: &PaneData) -> Option<SeriesQuery> {
        let all = all(shown);
        let series = *all.get(self.at(&all))?;
        Some(SeriesQuery {
            interface: series.interface.as_deref().map(ToOwned::to_owned),
            method: Some(series.method.to_string()),
            matched: series.matched.as_deref().map(ToOwned::to_owned),
            side: series.side.as_deref().map(ToOwned::to_owned),
        })
    }

    /// Takes an answer.
    pub(in crate::top) fn take(&mut self, history: Option<HistoryAnswer>) {
        if history.is_some() {
            self.history = history;
        }
    }

    /// Handles a key.
    pub(in crate::top) fn key(&mut self, code: KeyCode, shown: &PaneData, area: Rect) -> Effect {
        let all = all(shown);
        let at = self.at(&all);
        let to = match code {
            KeyCode::Char('j') | KeyCode::Down => at + 1,
            KeyCode::Char('k') | KeyCode::Up => at.saturating_sub(1),
            KeyCode::PageDown => at + room(area, all.len()),
            KeyCode::PageUp => at.saturating_sub(room(area, all.len())),
            KeyCode::Char('g') | KeyCode::Home => 0,
            KeyCode::Char('G') | KeyCode::End => usize::MAX,
            _ => return Effect::Draw,
        };
        self.choose(to, &all, area)
    }

    /// Handles a click: on the list it chooses a series.
    pub(in crate::top) fn click(&mut self, at: Position, shown: &PaneData, area: Rect) -> Effect {
        let all = all(shown);
        let room = room(area, all.len());
        if at.y <= area.y || usize::from(at.y - area.y) > room {
            return Effect::Draw;
        }
        let first = scrolled(self.first, self.at(&all), room);
        self.choose(first + usize::from(at.y - area.y - 1), &all, area)
    }

    fn choose(&mut self, number: usize, all: &[&SeriesAnswer], area: Rect) -> Effect {
        let number = number.min(all.len().saturating_sub(1));
        self.first = scrolled(self.first, number, room(area, all.len()));
        self.chosen = all.get(number).map(|series| table::key(series));
        Effect::Ask
    }

    /// Returns the number of the series that is shown: the chosen one, or else the one with the most samples.
    fn at(&self, all: &[&SeriesAnswer]) -> usize {
        let chosen = self.chosen.as_ref();
        let chosen = chosen.and_then(|chosen| all.iter().position(|it| table::key(it) == *chosen));
        chosen.unwrap_or_else(|| {
            let count = |number: &usize| all[*number].rtt.map_or(0, |rtt| rtt.count);
            // Of several with the same number of samples, the first.
            (0..all.len()).rev().max_by_key(count).unwrap_or(0)
        })
    }

    /// Draws the list, and below it the chosen series.
    pub(in crate::top) fn draw(&self, frame: &mut Frame<'_>, area: Rect, given: &PaneData) {
        let all = all(given);
        if all.is_empty() {
            return frame.render_widget(Line::raw("nothing was measured in the last 15 min"), area);
        }
        let (at, room) = (self.at(&all), room(area, all.len()));
        let names = all.iter().map(|it| width(&name(it))).max().unwrap_or(0).clamp(9, 15);
        let sides = side_width(all.iter().map(|it| side(it.matched.as_deref(), it.side.as_deref())));
        let widths = (names, sides);
        let mut lines = vec![titles(widths, area.width.into())];
        for (number, series) in all.iter().enumerate().skip(scrolled(self.first, at, room)).take(room) {
            lines.push(line(series, widths, number == at, area.width.into()));
        }
        let height = (lines.len() as u16).min(area.height);
        frame.render_widget(Paragraph::new(lines), Rect { height, ..area });
        let body = Rect { y: area.y + height, height: area.height - height, ..area };
        if body.is_empty() {
            return;
        }
        let key = table::key(all[at]);
        let found = self.history.as_ref().and_then(|history| {
            let series = history.series.iter().find(|it| {
                (it.interface.as_ref(), &*it.method, it.matched.as_deref(), it.side.as_deref())
                    == (key.0.as_ref(), &*key.1, key.2.as_deref(), key.3.as_deref())
            })?;
            Some((history, series))
        });
        let Some((history, series)) = found else { return frame.render_widget(Line::raw("..."), body) };
        let title = format!("{} min", given.range.minutes());
        let plots = [Plot { title, cells: &series.cells }];
        plot::draw(frame, body, &plots, history, (given.range, given.colors));
    }

    /// Returns the hints on the last line.
    pub(in crate::top) fn foot() -> Vec<String> {
        ["? help", "j k other series", "+ - time", "space freeze", "q end"].map(str::to_owned).to_vec()
    }
}

/// Returns all series of interfaces.
fn all(shown: &PaneData) -> Vec<&SeriesAnswer> {
    let latest = shown.latest.iter();
    latest.flat_map(|latest| &latest.summary.interfaces).flat_map(|it| &it.series).collect()
}

/// Returns the number of lines of the list, without its title: at most a quarter of the pane, so that the plot gets
/// most of it.
fn room(area: Rect, all: usize) -> usize {
    all.min(usize::from(area.height / 4).max(1))
}

fn name(series: &SeriesAnswer) -> String {
    sanitized(series.interface.as_deref().unwrap_or("-"))
}

fn titles((names, sides): (usize, usize), width: usize) -> Line<'static> {
    let mut line =
        format!(" {} {} {}", padded("interface", names), padded("method", 14), padded("side", sides));
    for title in ["samples", "min", "p50", "p95", "p99"] {
        line.push_str(&right(title, if title == "samples" { 8 } else { 9 }));
    }
    Line::styled(padded(&line, width), Style::new().add_modifier(Modifier::UNDERLINED))
}

/// Returns the line of a series, with figures of the last minute.
fn line(
    series: &SeriesAnswer,
    (names, sides): (usize, usize),
    is_chosen: bool,
    width: usize,
) -> Line<'static> {
    let (mark, style) =
        if is_chosen { ('>', Modifier::BOLD | Modifier::REVERSED) } else { (' ', Modifier::empty()) };
    let mut line = format!(
        "{mark}{} {} {}",
        padded(&name(series), names),
        padded(&sanitized(&series.method), 14),
        padded(side(series.matched.as_deref(), series.side.as_deref()), sides),
    );
    line.push_str(&right(&series.rtt.map_or(0, |rtt| rtt.count).to_string(), 8));
    let times = series.rtt.map(|rtt| [rtt.min, rtt.p50, rtt.p95, rtt.p99].map(time));
    for text in times.unwrap_or_else(|| std::array::from_fn(|_| "-".to_owned())) {
        line.push(' ');
        line.push_str(&right(&text, 8));
    }
    Line::styled(padded(&line, width), Style::new().add_modifier(style))
}
