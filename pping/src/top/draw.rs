//! Drawing the screen.

use std::time::Instant;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Modifier, Style},
    text::{Line, Span},
    widgets::{Clear, Paragraph},
};

use super::{
    past,
    state::State,
    table::{self, COLUMNS, padded},
};
use crate::view::Order;

/// The width of what stands before the columns: method and side.
const WHAT: usize = 22;

const HELP: [&str; 12] = [
    "j k, arrows, PgUp PgDn, g G   move",
    "Enter, Esc                    the last 15 minutes of a row, and back",
    "s                             sort by the next column",
    "S                             the other way round",
    "/                             filter by part of a group, prefix or label",
    "Esc                           all groups again",
    "space                         freeze, and go on",
    "? h                           this help",
    "q, Ctrl-C                     end",
    "",
    "beyond: the path beyond the interface; behind: this host, and the path behind it",
    "again: segments sent again, of all packets",
];

/// The rows of groups that a screen of this height has room for.
pub(super) fn page(height: u16, state: &State) -> usize {
    let head = state.latest().map_or(0, |(summary, _)| table::head(summary).len());
    usize::from(height).saturating_sub(head + 3).max(1)
}

/// Draws the screen.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State, url: &str, now: Instant) {
    let head = state.latest().map(|(summary, _)| table::head(summary)).unwrap_or_default();
    let [top, middle, title, body, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(head.len() as u16),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(status(state, url, now)), top);
    frame.render_widget(Paragraph::new(head.into_iter().map(Line::raw).collect::<Vec<_>>()), middle);
    frame.render_widget(Paragraph::new(titles(state)), title);
    match state.open() {
        Some((row, past)) => past::draw(frame, body, row, past.as_ref()),
        None => rows(frame, body, state),
    }
    frame.render_widget(Paragraph::new(foot(state)), bottom);
    if state.has_help {
        help(frame);
    }
}

/// The first line: what is looked at, and how it is.
fn status(state: &State, url: &str, now: Instant) -> Line<'static> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let version = state.latest().map_or_else(String::new, |(summary, _)| table::shown(&summary.version));
    let mut spans = vec![Span::styled(format!("pping {version} "), bold), Span::raw(url.to_owned())];
    if let Some((since, reason)) = &state.failure {
        let seconds = now.saturating_duration_since(*since).as_secs();
        let text = format!("  no answer for {seconds} s: {}", table::shown(reason));
        spans.push(Span::styled(text, Style::new().add_modifier(Modifier::REVERSED)));
    } else if state.is_frozen {
        spans.push(Span::styled("  frozen", Style::new().add_modifier(Modifier::REVERSED)));
    }
    Line::from(spans)
}

/// The titles of the columns, with an arrow at what is sorted by.
fn titles(state: &State) -> Line<'static> {
    let arrow = if state.query().order == Order::Desc { "▼" } else { "▲" };
    let mut line = padded("method side", WHAT);
    for (title, width, column) in COLUMNS {
        let title = if column == state.query().sort { format!("{title}{arrow}") } else { title.to_owned() };
        line.push(' ');
        line.push_str(&padded(&title, width.into()));
    }
    Line::styled(line, Style::new().add_modifier(Modifier::REVERSED))
}

fn rows(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let room = usize::from(area.height);
    let first = (state.selected + 1).saturating_sub(room);
    let lines = state.rows().iter().enumerate().skip(first).take(room).map(|(number, row)| {
        let mut line = padded(&row.what, WHAT);
        for ((_, width, _), cell) in COLUMNS.iter().zip(&row.cells) {
            line.push(' ');
            line.push_str(&padded(cell, usize::from(*width)));
        }
        // A mark, and not only brightness.
        let (mark, style) =
            if number == state.selected { (">", Modifier::BOLD) } else { (" ", Modifier::empty()) };
        Line::styled(format!("{mark}{line}"), Style::new().add_modifier(style))
    });
    let lines: Vec<Line<'_>> = lines.collect();
    if lines.is_empty() {
        frame.render_widget(Paragraph::new("nothing was measured in the last minute"), area);
    } else {
        frame.render_widget(Paragraph::new(lines), area);
    }
}

/// The last line: the filter, how many groups there are, and the most important keys.
fn foot(state: &State) -> Line<'static> {
    if let Some(typed) = &state.typed {
        return Line::raw(format!("/{}_   Enter filters, Esc leaves it", table::shown(typed)));
    }
    let Some((_, groups)) = state.latest() else { return Line::raw("") };
    let filter = &state.query().filter;
    let of = if filter.is_empty() {
        format!("{} groups", groups.known)
    } else {
        format!("{} of {} groups with {}", groups.found, groups.known, table::shown(filter))
    };
    Line::raw(format!("{of}   ? help   s sort   / filter   space freeze   q end"))
}

fn help(frame: &mut Frame<'_>) {
    let area = frame.area();
    let width = HELP.iter().map(|line| line.chars().count()).max().unwrap_or(0) as u16;
    let [area] = Layout::vertical([Constraint::Length(HELP.len() as u16)])
        .flex(ratatui::layout::Flex::Center)
        .areas(area);
    let [area] =
        Layout::horizontal([Constraint::Length(width)]).flex(ratatui::layout::Flex::Center).areas(area);
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(HELP.map(Line::raw).to_vec()).style(Modifier::REVERSED), area);
}

#[cfg(test)]
mod tests {
    use ratatui::{Terminal, backend::TestBackend, crossterm::event::KeyCode};

    use super::*;
    use crate::top::state::tests::answers;

    fn screen(state: &State, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state, "http://gateway:9464", Instant::now())).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    fn state(groups: &[(&str, u64)]) -> State {
        let mut state = State::default();
        state.take(answers(groups));
        state
    }

    #[test]
    fn a_screen_has_interfaces_losses_and_groups() {
        let lines = screen(&state(&[("customer-7", 23_000_000), ("\u{1b}[2J", 4_000_000)]), 120, 10);
        assert_eq!(lines[0], "pping 0.1.0 http://gateway:9464");
        let rates = "1.2k packets/s 9.9M bit/s";
        assert_eq!(lines[1], format!("wan0: in {rates}, out {rates}, 12 samples/s"));
        assert_eq!(lines[2], "since the start: 5 records lost");
        assert!(lines[3].starts_with("method side") && lines[3].contains(" p95▼ "), "{}", lines[3]);
        assert!(lines[4].starts_with(">tcp-ts beyond") && lines[4].contains("customer-7"), "{}", lines[4]);
        assert!(lines[4].contains("900 us") && lines[4].contains("23.0 ms") && lines[4].ends_with("3.0 %"));
        assert!(lines[5].starts_with(" tcp-ts beyond") && lines[5].contains("?[2J"), "{}", lines[5]);
        assert!(lines[9].starts_with("2 groups   ? help"), "{}", lines[9]);
    }

    #[test]
    fn no_size_is_too_small_or_too_large() {
        let mut state = state(&[("a", 1), ("b", 2)]);
        for help in [false, true] {
            state.has_help = help;
            for (width, height) in [(1, 1), (10, 3), (80, 24), (400, 120)] {
                assert_eq!(screen(&state, width, height).len(), usize::from(height));
            }
        }
    }

    #[test]
    fn the_row_with_the_cursor_is_always_there() {
        let labels: Vec<String> = (0..50).map(|number| format!("group-{number:02}")).collect();
        let groups: Vec<_> = labels.iter().map(|label| (label.as_str(), 1_000_000)).collect();
        let mut state = state(&groups);
        state.key(KeyCode::Char('G').into(), 10);
        let lines = screen(&state, 100, 12);
        assert!(lines.iter().any(|line| line.starts_with('>') && line.contains("group-49")), "{lines:#?}");
        assert_eq!(page(12, &state), 7);
    }

    #[test]
    fn a_pping_that_went_away_is_said_and_what_it_said_last_stays() {
        let mut state = state(&[("a", 1_000_000)]);
        state.fail("connection refused".to_owned(), Instant::now());
        let lines = screen(&state, 100, 8);
        assert!(lines[0].contains("no answer for 0 s: connection refused"), "{}", lines[0]);
        assert!(lines[4].contains('a'));
    }
}
