//! The health of pping itself: its interfaces, losses, untracked packets, its cost, and the age of its figures.

use std::time::Instant;

use ratatui::{
    Frame,
    crossterm::event::KeyCode,
    layout::Rect,
    style::{Modifier, Style},
    text::Line,
    widgets::Paragraph,
};

use super::{Latest, PaneData};
use crate::{
    foreign_text::sanitized,
    reasons::{LOSSES, Reason, UNTRACKED},
    recent::{Cost, Interface, Rate},
    top::text::{self, amount, bytes, padded, percent, right, wrapped},
};

/// The width of the name of a reason, and of a number after it.
const NAME: usize = 18;
const NUMBER: usize = 12;

/// Stands for a reason that only another version knows.
const UNKNOWN: Reason = Reason {
    key: "",
    name: "",
    what: "a reason that this version does not know",
    advice: "ask a pping top of the other version",
};

/// The pane.
#[derive(Debug, Default)]
pub(in crate::top) struct Health {
    /// The first line on the screen.
    first: usize,
}

impl Health {
    /// Handles a key.
    pub(in crate::top) fn key(&mut self, code: KeyCode, shown: &PaneData, area: Rect) {
        let page = usize::from(area.height).max(1);
        let first = match code {
            KeyCode::Char('j') | KeyCode::Down => self.first + 1,
            KeyCode::Char('k') | KeyCode::Up => self.first.saturating_sub(1),
            KeyCode::PageDown => self.first + page,
            KeyCode::PageUp => self.first.saturating_sub(page),
            KeyCode::Char('g') | KeyCode::Home => 0,
            KeyCode::Char('G') | KeyCode::End => usize::MAX,
            _ => return,
        };
        self.first = first.min(last(shown, area));
    }

    /// Scrolls by this many lines.
    pub(in crate::top) fn scroll(&mut self, lines: isize, shown: &PaneData, area: Rect) {
        self.first = self.first.saturating_add_signed(lines).min(last(shown, area));
    }

    /// Draws the lines that fit.
    pub(in crate::top) fn draw(&self, frame: &mut Frame<'_>, area: Rect, shown: &PaneData, now: Instant) {
        let first = self.first.min(last(shown, area));
        let lines: Vec<_> = all(shown, area, now).into_iter().skip(first).collect();
        frame.render_widget(Paragraph::new(lines), area);
    }

    /// Returns the hints on the last line.
    pub(in crate::top) fn foot() -> Vec<String> {
        ["? help", "j k scroll", "space freeze", "q end"].map(str::to_owned).to_vec()
    }
}

/// Returns the last line that can be the first on the screen.
fn last(shown: &PaneData, area: Rect) -> usize {
    all(shown, area, Instant::now()).len().saturating_sub(area.height.into())
}

fn all(shown: &PaneData, area: Rect, now: Instant) -> Vec<Line<'static>> {
    let Some(latest) = &shown.latest else { return Vec::new() };
    let width = usize::from(area.width);
    let mut lines = vec![age(latest, now), Line::raw("")];
    lines.extend(interfaces(&latest.summary.interfaces, width));
    lines.extend(warnings(&latest.summary.warnings, width));
    let losses = &latest.summary.losses;
    lines.push(Line::raw(""));
    lines.push(title("lost since the start", "what it is, and what to do", width));
    let counts = [losses.recordings_skipped, losses.unaggregated, losses.events_lost];
    for (loss, count) in LOSSES.iter().zip(counts) {
        lines.extend(reason(loss.name, count, loss, width));
    }
    lines.push(Line::raw(""));
    let some = if losses.untracked.is_empty() { "none since the start" } else { "since the start" };
    lines.push(title("untracked packets", some, width));
    let mut untracked: Vec<_> = losses.untracked.iter().collect();
    untracked.sort_by_key(|(_, packets)| std::cmp::Reverse(**packets));
    for (name, &packets) in untracked {
        let known = UNTRACKED.iter().find(|it| it.key == name).unwrap_or(&UNKNOWN);
        lines.extend(reason(&sanitized(name), packets, known, width));
    }
    lines.push(Line::raw(""));
    lines.push(title("what pping takes", "in the last second", width));
    lines.extend(cost(&latest.summary.cost, width));
    lines
}

fn age(latest: &Latest, now: Instant) -> Line<'static> {
    let seconds = now.saturating_duration_since(latest.since).as_secs();
    let age = if seconds == 0 { "less than a second".to_owned() } else { format!("{seconds} s") };
    let groups = text::counted(latest.summary.groups, "group");
    Line::raw(format!("the latest figures came {age} ago, of {groups}"))
}

fn title(what: &str, about: &str, width: usize) -> Line<'static> {
    let line = format!("{}  {about}", padded(what, NAME + NUMBER));
    Line::styled(padded(&line, width), Style::new().add_modifier(Modifier::UNDERLINED))
}

/// Returns a table of interfaces, with a line for each direction, so that it fits into a narrow screen.
fn interfaces(interfaces: &[Interface], width: usize) -> Vec<Line<'static>> {
    let points =
        |it: &Interface| it.attach_points.iter().map(|it| sanitized(it)).collect::<Vec<_>>().join(",");
    let widest = |of: &dyn Fn(&Interface) -> usize, least| {
        interfaces.iter().map(of).max().unwrap_or(0).clamp(least, 19)
    };
    let (name_width, points_width) =
        (widest(&|it| text::width(&sanitized(&it.interface)), 9), widest(&|it| text::width(&points(it)), 11));
    let row = |cells: [&str; 8]| {
        let [name, state, points, direction, packets, bits, retransmissions, samples] = cells;
        format!(
            "{} {} {} {} {} {} {} {}",
            padded(name, name_width),
            padded(state, 5),
            padded(points, points_width),
            padded(direction, 3),
            right(packets, 9),
            right(bits, 7),
            right(retransmissions, 7),
            right(samples, 9)
        )
    };
    let titles = row(["interface", "state", "attached at", "", "packets/s", "bit/s", "retx/s", "samples/s"]);
    let mut lines =
        vec![Line::styled(padded(&titles, width), Style::new().add_modifier(Modifier::UNDERLINED))];
    for interface in interfaces {
        let name = sanitized(&interface.interface);
        let rates = |rate: &Rate| [rate.packets, rate.bits, rate.retransmissions].map(amount);
        let ([packets, bits, retransmissions], samples) =
            (rates(&interface.rates.ingress), amount(interface.rates.samples));
        let state = if interface.is_up { "up" } else { "gone" };
        lines.push(Line::raw(row([
            &name,
            state,
            &points(interface),
            "in",
            &packets,
            &bits,
            &retransmissions,
            &samples,
        ])));
        let [packets, bits, retransmissions] = rates(&interface.rates.egress);
        lines.push(Line::raw(row(["", "", "", "out", &packets, &bits, &retransmissions, ""])));
    }
    lines
}

/// Returns what is wrong with the place of measurement, below a title; nothing if nothing is.
fn warnings(warnings: &[String], width: usize) -> Vec<Line<'static>> {
    if warnings.is_empty() {
        return Vec::new();
    }
    let title = Line::styled(padded("warnings", width), Style::new().add_modifier(Modifier::UNDERLINED));
    let sentences = warnings.iter().flat_map(|warning| wrapped(&sanitized(warning), width.max(20)));
    [Line::raw(""), title].into_iter().chain(sentences.map(Line::raw)).collect()
}

/// Returns a number with its meaning, and with the advice unless the number is zero.
fn reason(name: &str, count: u64, of: &Reason, width: usize) -> Vec<Line<'static>> {
    let Reason { what, advice, .. } = of;
    let about = if count == 0 { (*what).to_owned() } else { format!("{what}; {advice}") };
    figure(name, &count.to_string(), &about, width)
}

/// Returns a figure with its name and its description, in as many lines as needed.
fn figure(name: &str, figure: &str, about: &str, width: usize) -> Vec<Line<'static>> {
    let room = width.saturating_sub(NAME + NUMBER + 2).max(20);
    let mut lines = Vec::new();
    for (number, part) in wrapped(about, room).into_iter().enumerate() {
        let (name, figure) = if number == 0 { (name, figure) } else { ("", "") };
        lines.push(Line::raw(format!("{}{}  {part}", padded(name, NAME), right(figure, NUMBER))));
    }
    lines
}

fn cost(cost: &Cost, width: usize) -> Vec<Line<'static>> {
    let (programs, about) = match cost.programs {
        Some(share) => (percent(share), "of a core"),
        None => ("-".to_owned(), "one packet in 65,536 is timed: too few yet"),
    };
    [
        figure("process", &percent(cost.cpu), "of a core", width),
        figure("kernel programs", &programs, about, width),
        figure("memory", &bytes(cost.memory), "resident", width),
    ]
    .concat()
}
