//! One group: its measurements on both sides of an interface by one method, over time and by length.

use std::sync::Arc;

use ratatui::{
    Frame,
    crossterm::event::KeyCode,
    layout::Rect,
    style::{Modifier, Style},
    text::Line,
};

use super::PaneData;
use crate::{
    foreign_text::sanitized,
    recent::{GroupDetail, GroupQueue, SeriesHistory},
    top::{
        plot::{self, Plot},
        table::Row,
        text::{side, time, width},
    },
};

/// The lines beyond which there is room for one about queues.
const LEAST_WITH_QUEUES: u16 = 8;

/// The interface and the method whose sides are shown.
type Choice = (Option<Arc<str>>, String);

/// A group that is shown alone.
#[derive(Debug)]
pub(super) struct Detail {
    /// The row that was opened.
    row: Row,
    /// Its past, if there is any.
    past: Option<GroupDetail>,
    /// Whether there was an answer since it was opened.
    is_known: bool,
    /// The interface and the method that are shown.
    choice: Choice,
}

impl Detail {
    /// Opens the group of a row, without its past.
    pub(super) fn new(row: Row) -> Self {
        let choice = (row.series.0.clone(), row.series.1.clone());
        Self { row, past: None, is_known: false, choice }
    }

    pub(super) fn id(&self) -> &str {
        &self.row.id
    }

    /// Takes an answer.
    pub(super) fn take(&mut self, past: Option<GroupDetail>) {
        self.is_known = true;
        self.past = past.filter(|past| past.group.id == self.row.id);
    }

    /// Chooses another interface or method of the group.
    pub(super) fn key(&mut self, code: KeyCode) {
        let choices = self.choices();
        let at = choices.iter().position(|choice| *choice == self.choice).unwrap_or(0);
        let to = match code {
            KeyCode::Char('j') | KeyCode::Down => at + 1,
            KeyCode::Char('k') | KeyCode::Up => at.saturating_sub(1),
            _ => return,
        };
        if let Some(choice) = choices.into_iter().nth(to) {
            self.choice = choice;
        }
    }

    /// Returns all choices.
    fn choices(&self) -> Vec<Choice> {
        let series = self.past.iter().flat_map(|past| &past.history.series);
        let mut choices: Vec<Choice> =
            series.map(|it| (it.interface.clone(), it.method.to_string())).collect();
        choices.dedup();
        choices
    }

    /// Draws both sides, or the only one.
    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, given: &PaneData) {
        if area.is_empty() {
            return;
        }
        let mut body = area;
        let mut line = || {
            let line = Rect { height: 1, ..body };
            (body.y, body.height) = (body.y + 1, body.height - 1);
            line
        };
        let bold = Style::new().add_modifier(Modifier::BOLD);
        frame.render_widget(Line::styled(self.title(area.width.into()), bold), line());
        if area.height > LEAST_WITH_QUEUES
            && let Some(queues) = self.queues()
        {
            frame.render_widget(Line::raw(queues), line());
        }
        let series = self.sides();
        let plots: Vec<Plot<'_>> = series
            .iter()
            .map(|it| Plot {
                title: side(it.matched.as_deref(), it.side.as_deref()).to_owned(),
                cells: &it.cells,
            })
            .collect();
        match &self.past {
            Some(past) if !plots.is_empty() => {
                plot::draw(frame, body, &plots, &past.history, (given.range, given.colors));
            }
            _ if self.is_known => frame.render_widget(Line::raw("nothing in the last 15 min"), body),
            _ => frame.render_widget(Line::raw("..."), body),
        }
    }

    /// Returns the group, the method and its number among all, and the prefix and the labels that fit.
    fn title(&self, room: usize) -> String {
        let mut title = format!("{}  {}", self.row.label, sanitized(&self.choice.1));
        let choices = self.choices();
        if choices.iter().any(|(interface, _)| *interface != self.choice.0) {
            title = format!("{title} on {}", sanitized(self.choice.0.as_deref().unwrap_or("-")));
        }
        if choices.len() > 1 {
            let at = choices.iter().position(|choice| *choice == self.choice).unwrap_or(0);
            title = format!("{title} ({} of {})", at + 1, choices.len());
        }
        let prefix = self.row.prefix.as_ref().map(|prefix| ("prefix".to_owned(), prefix.clone()));
        let labels = self.past.iter().flat_map(|past| &past.group.labels);
        let labels = labels.map(|(column, value)| (sanitized(column), sanitized(value)));
        for (column, value) in prefix.into_iter().chain(labels) {
            let longer = format!("{title}   {column} {value}");
            if width(&longer) > room {
                break;
            }
            title = longer;
        }
        title
    }

    /// Returns how long packets of the group waited in the queues of this host, if that is measured.
    fn queues(&self) -> Option<String> {
        let queues = self.past.iter().flat_map(|past| &past.group.queues);
        let words = queues.map(|GroupQueue { interface, times }| {
            let interface = sanitized(interface.as_deref().unwrap_or("-"));
            format!("{interface}: p50 {} p95 {}", time(times.p50), time(times.p95))
        });
        let words: Vec<_> = words.collect();
        (!words.is_empty()).then(|| format!("own queue at {}", words.join(", ")))
    }

    /// Returns the chosen series, with the side of the row first.
    fn sides(&self) -> Vec<&SeriesHistory> {
        let series = self.past.iter().flat_map(|past| &past.history.series);
        let mut sides: Vec<_> =
            series.filter(|it| it.interface == self.choice.0 && it.method == self.choice.1).collect();
        let (.., matched, side) = &self.row.series;
        sides.sort_by_key(|it| {
            (it.side.as_deref(), it.matched.as_deref()) != (side.as_deref(), matched.as_deref())
        });
        sides.truncate(2);
        sides
    }

    /// Returns the hints on the last line.
    pub(super) fn foot(&self) -> Vec<String> {
        let mut hints = vec!["Esc back", "? help", "+ - time", "space freeze", "q end"];
        if self.choices().len() > 1 {
            hints.insert(2, "j k other methods");
        }
        hints.into_iter().map(str::to_owned).collect()
    }
}
