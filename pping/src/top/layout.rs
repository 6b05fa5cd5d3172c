//! The areas of a screen, for drawing and for clicks.

use ratatui::layout::{Constraint, Layout, Position, Rect};

use super::{
    header,
    panes::{Pane, PaneData},
};

/// The areas of a screen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Areas {
    pub(super) status: Rect,
    pub(super) tabs: Rect,
    pub(super) head: Rect,
    /// The pane.
    pub(super) body: Rect,
    pub(super) foot: Rect,
}

impl Areas {
    /// Divides a screen. On a screen with few lines, the areas around the pane are left out first.
    pub(super) fn new(screen: Rect, shown: &PaneData) -> Self {
        let height = usize::from(screen.height);
        let head = if height < 8 { 0 } else { head(shown, (screen.width.into(), height / 4)).len() as u16 };
        // On a high screen, empty lines set the pane off.
        let gap = u16::from(height >= 30);
        let [status, tabs, head, _, body, _, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(u16::from(height > 5)),
            Constraint::Length(head),
            Constraint::Length(gap),
            Constraint::Min(0),
            Constraint::Length(gap),
            Constraint::Length(u16::from(height > 4)),
        ])
        .areas(screen);
        Self { status, tabs, head, body, foot }
    }

    /// Returns the pane whose name is at a position.
    pub(super) fn tab(&self, at: Position) -> Option<Pane> {
        if !self.tabs.contains(at) {
            return None;
        }
        let x = usize::from(at.x - self.tabs.x);
        let mut start = 0;
        Pane::ALL.into_iter().find(|pane| {
            let width = tab(*pane, Pane::Groups).len();
            start += width;
            (start - width..start).contains(&x)
        })
    }
}

/// Returns the lines above the pane that fit.
pub(super) fn head(shown: &PaneData, room: (usize, usize)) -> Vec<String> {
    shown.latest.as_ref().map(|it| header::fitting(&it.summary, room)).unwrap_or_default()
}

/// Returns the name of a pane as it is written: the chosen one is in brackets.
pub(super) fn tab(pane: Pane, chosen: Pane) -> String {
    let (number, title) = (pane as usize + 1, pane.title());
    if pane == chosen { format!("[{number} {title}] ") } else { format!(" {number} {title}  ") }
}
