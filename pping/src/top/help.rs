//! The help screen, drawn over everything else.

use ratatui::{
    Frame,
    layout::{Constraint, Flex, Layout},
    style::{Modifier, Style},
    text::Line,
    widgets::{Block, Clear, Paragraph},
};

const HELP: [&str; 22] = [
    "1 2 3 4, Tab, Shift-Tab  groups, worst, heatmap, health",
    "j k, arrows, PgUp PgDn   move; g G to the first and the last",
    "Enter                    a group: RTT over time, and how many there",
    "                         were of each length; j k other methods",
    "Esc                      back; all groups, without the filter",
    "o O, right left          the other rows of a group (+), or of all",
    "s S                      sort by the next column; the other way;",
    "                         rank the worst by another figure",
    "/                        filter by address, or part of a group or label",
    "i                        names or prefixes of groups",
    "t n                      the tree of groups (Enter, Backspace); networks",
    "+ -                      a longer or a shorter time: 1, 5, 15 min",
    "space                    freeze, and go on",
    "                         of a capture: space pauses; < > speed;",
    "                         left right 10 s, with Shift 60 s",
    "mouse                    click a row, again to open, a title, a pane;",
    "                         with Shift the terminal selects text as ever",
    "? h                      this help;  q Ctrl-C  end",
    "",
    "beyond: the path beyond the interface; behind: this host, and the path",
    "behind it; retx: segments retransmitted, of all packets; above: the RTT",
    "above the lowest, or above what is expected of a group",
];

/// Draws the keys.
pub(super) fn draw(frame: &mut Frame<'_>) {
    let width = HELP.iter().map(|line| line.len()).max().unwrap_or(0) as u16 + 4;
    let height = Constraint::Length(HELP.len() as u16 + 2);
    let [area] = Layout::vertical([height]).flex(Flex::Center).areas(frame.area());
    let [area] = Layout::horizontal([Constraint::Length(width)]).flex(Flex::Center).areas(area);
    let block = Block::bordered()
        .title(Line::styled(" keys ", Style::new().add_modifier(Modifier::BOLD)))
        .padding(ratatui::widgets::Padding::horizontal(1));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(HELP.map(Line::raw).to_vec()).block(block), area);
}
