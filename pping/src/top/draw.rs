//! Draws the screen: the lines around all panes.

use std::time::Instant;

use ratatui::{
    Frame,
    style::{Modifier, Style},
    text::{Line, Span},
    widgets::Paragraph,
};

use super::{
    help,
    layout::{Areas, head, tab},
    panes::{Latest, Pane, health::Health, heatmap::Heatmap, worst::Worst},
    state::State,
    text,
};
use crate::foreign_text::sanitized;

/// The smallest screen that has room for anything.
const LEAST: (u16, u16) = (20, 3);

/// The part of the first line that is not in the state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Status<'a> {
    /// The source of the figures, and the position in a capture.
    pub(super) source: &'a str,
    pub(super) now: Instant,
}

/// Draws the screen.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State, status: &Status<'_>) {
    let screen = frame.area();
    if screen.width < LEAST.0 || screen.height < LEAST.1 {
        let text = format!("needs {}x{}", LEAST.0, LEAST.1);
        let lines = text::wrapped(&text, screen.width.into()).into_iter().map(Line::raw);
        return frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), screen);
    }
    let shown = state.shown();
    let areas = Areas::new(screen, shown);
    frame.render_widget(first_line(state, status), areas.status);
    frame.render_widget(tabs(state.pane), areas.tabs);
    let head = head(shown, (areas.head.width.into(), areas.head.height.into()));
    frame.render_widget(Paragraph::new(head.into_iter().map(Line::raw).collect::<Vec<_>>()), areas.head);
    let foot = match state.pane {
        Pane::Groups => {
            state.groups.draw(frame, areas.body, shown);
            state.groups.foot(shown)
        }
        Pane::Worst => {
            state.worst.draw(frame, areas.body, shown);
            Worst::foot()
        }
        Pane::Heatmap => {
            state.heatmap.draw(frame, areas.body, shown);
            Heatmap::foot()
        }
        Pane::Health => {
            state.health.draw(frame, areas.body, shown, status.now);
            Health::foot()
        }
    };
    frame.render_widget(Line::raw(fitting(&foot, screen.width.into())), areas.foot);
    if state.has_help {
        help::draw(frame);
    }
}

/// Joins as many of these hints as fit. Only the first may be cut.
fn fitting(hints: &[String], room: usize) -> String {
    let (first, others) = hints.split_first().map_or(("", &[][..]), |(first, others)| (first, others));
    let mut line = first.to_owned();
    for hint in others {
        let longer = format!("{line}   {hint}");
        if text::width(&longer) > room {
            break;
        }
        line = longer;
    }
    line
}

/// Returns the first line: the version, the source, and its state.
fn first_line(state: &State, status: &Status<'_>) -> Line<'static> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let reversed = Style::new().add_modifier(Modifier::REVERSED);
    let version = |latest: &Latest| sanitized(&latest.summary.version);
    let version = state.shown().latest.as_ref().map(version).unwrap_or_default();
    let mut spans =
        vec![Span::styled(format!("pping {version} "), bold), Span::raw(sanitized(status.source))];
    if let Some((since, reason)) = &state.failure {
        let seconds = status.now.saturating_duration_since(*since).as_secs();
        let text = format!(" no answer for {seconds} s: {} ", sanitized(reason));
        spans.extend([Span::raw(" "), Span::styled(text, reversed)]);
    } else if state.is_frozen {
        spans.extend([Span::raw("  "), Span::styled(" frozen ", reversed)]);
    }
    Line::from(spans)
}

/// Returns the names of the panes: the chosen one is in brackets.
fn tabs(chosen: Pane) -> Line<'static> {
    let span = |pane| {
        let is_chosen = pane == chosen;
        let style = if is_chosen { Modifier::BOLD } else { Modifier::empty() };
        Span::styled(tab(pane, chosen), Style::new().add_modifier(style))
    };
    Line::from_iter(Pane::ALL.map(span))
}
