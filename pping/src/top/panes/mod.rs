//! The panes: each knows what is chosen on it, draws itself, and returns the effect of a key or a click.

pub(super) mod detail;
pub(super) mod groups;
pub(super) mod health;
pub(super) mod heatmap;
pub(super) mod worst;

use std::time::Instant;

use super::{colors::Colors, plot::Range};
use crate::recent::{GroupsAnswer, Summary};

/// The effect of a key or a click.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Draw again.
    Draw,
    /// Ask again, now.
    Ask,
    /// Quit.
    Quit,
}

/// A pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pane {
    /// The table of groups.
    #[default]
    Groups,
    /// The worst flows and groups.
    Worst,
    /// Round-trip times over time, of an interface.
    Heatmap,
    /// Interfaces, and what was not measured.
    Health,
}

impl Pane {
    pub(super) const ALL: [Self; 4] = [Self::Groups, Self::Worst, Self::Heatmap, Self::Health];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Groups => "Groups",
            Self::Worst => "Worst",
            Self::Heatmap => "Heatmap",
            Self::Health => "Health",
        }
    }

    /// Returns the pane this many steps further on. The first one follows the last.
    pub(super) fn after(self, steps: usize) -> Self {
        Self::ALL[(self as usize + steps) % Self::ALL.len()]
    }
}

/// What all panes show.
#[derive(Debug, Default)]
pub(super) struct PaneData {
    pub(super) latest: Option<Latest>,
    /// Whether a capture is played.
    pub(super) is_capture: bool,
    pub(super) range: Range,
    pub(super) colors: Colors,
}

/// The latest answers.
#[derive(Debug)]
pub(super) struct Latest {
    pub(super) summary: Summary,
    pub(super) groups: GroupsAnswer,
    /// When this pping first had them. The clock of the other pping may be wrong.
    pub(super) since: Instant,
}

/// Returns the first line to show, so that the chosen one is in view and lines move as little as possible.
fn scrolled(first: usize, chosen: usize, room: usize) -> usize {
    first.clamp((chosen + 1).saturating_sub(room.max(1)), chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrolling_keeps_the_chosen_line_visible() {
        for (first, chosen, room, expected) in
            [(0, 3, 5, 0), (0, 5, 5, 1), (4, 5, 5, 4), (4, 2, 5, 2), (9, 0, 5, 0), (0, 7, 0, 7)]
        {
            assert_eq!(scrolled(first, chosen, room), expected);
        }
    }

    #[test]
    fn panes_go_round() {
        assert_eq!(Pane::Groups.after(1), Pane::Worst);
        assert_eq!(Pane::Health.after(1), Pane::Groups);
        assert_eq!(Pane::Groups.after(3), Pane::Health);
    }
}
