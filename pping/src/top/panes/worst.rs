//! The worst flows and groups, by one of their figures.

use std::{collections::BTreeSet, net::SocketAddr};

use ratatui::{
    Frame,
    crossterm::event::KeyCode,
    layout::Rect,
    style::{Modifier, Style},
    text::Line,
    widgets::Paragraph,
};

use super::{Effect, PaneData};
use crate::{
    foreign_text::sanitized,
    recent::{WorstAnswer, WorstFlowAnswer, WorstGroupAnswer, WorstQuery},
    top::text::{self, amount, padded, percent, right, side, side_width, time},
    worst::By,
};

/// The least width of a screen that has room for methods beside whole flows.
const ROOM_FOR_METHODS: usize = 100;

/// The greatest width of the names of interfaces, and the title above short ones.
const INTERFACE: usize = 15;
const NARROW: &str = "iface";

/// How many are asked for: more than fit on most screens.
const LIMIT: usize = 50;

/// The pane.
#[derive(Debug)]
pub(in crate::top) struct Worst {
    query: WorstQuery,
    answer: Option<WorstAnswer>,
    /// The first line on the screen.
    first: usize,
}

impl Default for Worst {
    fn default() -> Self {
        Self { query: WorstQuery { limit: LIMIT, ..WorstQuery::default() }, answer: None, first: 0 }
    }
}

impl Worst {
    /// Returns the query.
    pub(in crate::top) fn query(&self) -> WorstQuery {
        self.query.clone()
    }

    /// Takes an answer, if there is one.
    pub(in crate::top) fn take(&mut self, answer: Option<WorstAnswer>) {
        if answer.is_some() {
            self.answer = answer;
        }
    }

    /// Handles a key.
    pub(in crate::top) fn key(&mut self, code: KeyCode, area: Rect) -> Effect {
        let page = usize::from(area.height).max(1);
        let first = match code {
            KeyCode::Char('s') => return self.rank_by(1),
            KeyCode::Char('S') => return self.rank_by(By::ALL.len() - 1),
            KeyCode::Char('j') | KeyCode::Down => self.first + 1,
            KeyCode::Char('k') | KeyCode::Up => self.first.saturating_sub(1),
            KeyCode::PageDown => self.first + page,
            KeyCode::PageUp => self.first.saturating_sub(page),
            KeyCode::Char('g') | KeyCode::Home => 0,
            KeyCode::Char('G') | KeyCode::End => usize::MAX,
            _ => return Effect::Draw,
        };
        self.first = first.min(self.last(area));
        Effect::Draw
    }

    /// Ranks by the figure this many steps further on. The first one follows the last.
    fn rank_by(&mut self, steps: usize) -> Effect {
        self.query.by = By::ALL[(self.query.by as usize + steps) % By::ALL.len()];
        self.first = 0;
        Effect::Ask
    }

    /// Scrolls by this many lines.
    pub(in crate::top) fn scroll(&mut self, lines: isize, area: Rect) {
        self.first = self.first.saturating_add_signed(lines).min(self.last(area));
    }

    /// Draws the lines that fit.
    pub(in crate::top) fn draw(&self, frame: &mut Frame<'_>, area: Rect, shown: &PaneData) {
        let first = self.first.min(self.last(area));
        let lines = self.lines(area.width.into(), shown.is_capture);
        let lines: Vec<_> = lines.into_iter().skip(first).collect();
        frame.render_widget(Paragraph::new(lines), area);
    }

    /// Returns the hints on the last line.
    pub(in crate::top) fn foot() -> Vec<String> {
        ["? help", "s rank by another figure", "j k scroll", "space freeze", "q end"]
            .map(str::to_owned)
            .to_vec()
    }

    /// Returns the last line that can be the first on the screen.
    fn last(&self, area: Rect) -> usize {
        self.lines(area.width.into(), false).len().saturating_sub(area.height.into())
    }

    fn lines(&self, width: usize, is_capture: bool) -> Vec<Line<'static>> {
        let Some(answer) = &self.answer else { return Vec::new() };
        let min_samples = answer.min_samples;
        let mut lines = vec![Line::raw(format!(
            "of those with {min_samples} packets each way, or {min_samples} samples"
        ))];
        lines.push(Line::raw(""));
        let passage = Passage::new(answer, width);
        lines.push(titles("flows, 10 to 20 s", answer.by, width, &passage));
        lines.extend(answer.flows.iter().map(|it| flow(it, &passage)));
        if answer.flows.is_empty() {
            let why = if is_capture { "flows of a capture are ranked by --worst" } else { "none" };
            lines.push(Line::raw(format!("  {why}")));
        }
        lines.push(Line::raw(""));
        lines.push(titles("groups, a minute", answer.by, width, &passage));
        lines.extend(answer.groups.iter().map(|it| group(it, &passage)));
        if answer.groups.is_empty() {
            lines.push(Line::raw("  none"));
        }
        lines
    }
}

/// Which columns say where packets passed.
struct Passage {
    /// The width of interfaces; 0 if there is only one.
    interface: usize,
    has_methods: bool,
    /// The width of sides.
    side: usize,
}

impl Passage {
    fn new(answer: &WorstAnswer, width: usize) -> Self {
        let flows = answer.flows.iter().map(|it| &it.interface);
        let all = flows.chain(answer.groups.iter().map(|it| &it.series.interface));
        let names: BTreeSet<String> = all.map(|it| name(it.as_deref())).collect();
        let widest = names.iter().map(|it| text::width(it)).max().unwrap_or(0);
        let interface = if names.len() > 1 { widest.clamp(NARROW.len(), INTERFACE) } else { 0 };
        let flows = answer.flows.iter().map(|it| side(it.matched.as_deref(), it.side.as_deref()));
        let groups =
            answer.groups.iter().map(|it| side(it.series.matched.as_deref(), it.series.side.as_deref()));
        let side = side_width(flows.chain(groups));
        Self { interface, has_methods: width >= ROOM_FOR_METHODS, side }
    }

    /// Returns the interface, the side of the timed packets, and the method, as far as they are shown.
    fn columns(&self, interface: &str, side: &str, method: &str) -> String {
        let mut columns = String::new();
        if self.interface > 0 {
            columns = format!("{} ", padded(interface, self.interface));
        }
        columns.push_str(&padded(side, self.side));
        if self.has_methods {
            columns = format!("{columns} {}", padded(&sanitized(method), 14));
        }
        columns
    }
}

/// Returns the name of an interface, fit for the screen.
fn name(interface: Option<&str>) -> String {
    sanitized(interface.unwrap_or("-"))
}

/// Returns the titles of the columns, with an arrow at the figure that ranks.
fn titles(of: &str, ranked: By, width: usize, passage: &Passage) -> Line<'static> {
    let title = |by: By, title: &str| if by == ranked { format!("{title}▼") } else { title.to_owned() };
    let cells = [
        title(By::Rtt, "rtt"),
        title(By::Inflation, "above"),
        title(By::Retransmissions, "retx"),
        title(By::Bytes, "bytes"),
    ];
    let interface = if passage.interface < "interface".len() { NARROW } else { "interface" };
    let line = format!("{} {} {of}", figures(&cells), passage.columns(interface, "side", "method"));
    Line::styled(padded(&line, width), Style::new().add_modifier(Modifier::UNDERLINED))
}

fn figures([rtt, above, retransmissions, bytes]: &[String; 4]) -> String {
    format!("{} {} {} {}", right(rtt, 9), right(above, 9), right(retransmissions, 8), right(bytes, 7))
}

fn or_dash(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), time)
}

fn flow(flow: &WorstFlowAnswer, passage: &Passage) -> Line<'static> {
    let end = |ip, port| SocketAddr::new(ip, port);
    let (source, destination) = (end(flow.src_ip, flow.src_port), end(flow.dest_ip, flow.dest_port));
    let names: Vec<_> = flow.group.as_deref().into_iter().chain(network(flow)).collect();
    let names = names.join(" ");
    let cells = [
        or_dash(flow.smoothed_rtt),
        or_dash(flow.inflation),
        percent(flow.retransmissions),
        amount(flow.bytes as f64),
    ];
    let passed = passage.columns(
        &name(flow.interface.as_deref()),
        side(flow.matched.as_deref(), flow.side.as_deref()),
        &flow.method,
    );
    let line = format!("{} {passed} {source}+{destination} {}", figures(&cells), sanitized(&names));
    Line::raw(line.trim_end().to_owned())
}

/// Returns the network at the other end of a flow: that of the host outside, if sides are told apart, or else that of the host that
/// replies.
fn network(flow: &WorstFlowAnswer) -> Option<&str> {
    let is_inside = flow.side.as_deref() == Some("inside");
    if is_inside { flow.dest_network.as_deref() } else { flow.src_network.as_deref() }
}

fn group(group: &WorstGroupAnswer, passage: &Passage) -> Line<'static> {
    let series = &group.series;
    let cells = [
        or_dash(group.ranked_rtt),
        or_dash(group.inflation),
        group.retransmissions.map_or_else(|| "-".to_owned(), percent),
        amount((series.sent.bytes + series.received.bytes) as f64),
    ];
    let passed = passage.columns(
        &name(series.interface.as_deref()),
        side(series.matched.as_deref(), series.side.as_deref()),
        &series.method,
    );
    Line::raw(format!("{} {passed} {}", figures(&cells), sanitized(&group.group)))
}
