//! The state of the screen, and how keys and clicks change it. Nothing here draws, asks or waits.

use std::time::Instant;

use ratatui::{
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind},
    layout::{Position, Rect},
};

use super::{
    ask::{Answers, Question},
    colors::Colors,
    layout::Areas,
    panes::{Effect, Latest, Pane, PaneData, groups::Groups, health::Health, heatmap::Heatmap, worst::Worst},
};

/// The rows by which one step of the wheel moves a table.
const WHEEL: isize = 3;

/// The state of the screen.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) pane: Pane,
    pub(super) groups: Groups,
    pub(super) worst: Worst,
    pub(super) heatmap: Heatmap,
    pub(super) health: Health,
    shown: PaneData,
    pub(super) is_frozen: bool,
    /// Whether the user asked for something else while the screen is frozen. It then shows the next answer, and no later one.
    takes_next_answer: bool,
    pub(super) has_help: bool,
    /// Since when pping does not answer, and why.
    pub(super) failure: Option<(Instant, String)>,
}

impl State {
    /// Creates an empty state, for a terminal with these colours.
    pub(super) fn new(colors: Colors) -> Self {
        Self { shown: PaneData { colors, ..PaneData::default() }, ..Self::default() }
    }

    /// Sets whether a capture is played.
    pub(super) fn set_capture(&mut self, is_capture: bool) {
        self.shown.is_capture = is_capture;
    }

    /// Returns the question for what the pane shows, and no more.
    pub(super) fn question(&self) -> Question {
        let groups = self.groups.query().clone();
        let nothing = Question { groups, ..Question::default() };
        match self.pane {
            Pane::Groups => Question { past: self.groups.past(), ..nothing },
            Pane::Worst => Question { worst: Some(self.worst.query()), ..nothing },
            Pane::Heatmap => Question { history: self.heatmap.query(&self.shown), ..nothing },
            Pane::Health => nothing,
        }
    }

    /// Returns what the panes show.
    pub(super) fn shown(&self) -> &PaneData {
        &self.shown
    }

    /// Whether letters are text rather than commands.
    pub(super) fn takes_text(&self) -> bool {
        self.groups.is_typing()
    }

    /// Takes answers.
    pub(super) fn take(&mut self, answers: Answers) {
        self.take_at(answers, Instant::now());
    }

    fn take_at(&mut self, Answers { summary, groups, past, worst, history }: Answers, now: Instant) {
        self.failure = None;
        if self.is_frozen && !self.takes_next_answer {
            return;
        }
        self.takes_next_answer = false;
        self.groups.set_levels(&summary.levels, summary.networks);
        self.groups.take(&groups, past);
        self.worst.take(worst);
        self.heatmap.take(history);
        // An unchanged summary keeps its age.
        let before = self.shown.latest.as_ref().filter(|it| it.summary.sequence == summary.sequence);
        let since = before.map_or(now, |it| it.since);
        self.shown.latest = Some(Latest { summary, groups, since });
    }

    /// Notes that there was no answer.
    pub(super) fn fail(&mut self, reason: String, now: Instant) {
        let since = self.failure.take().map_or(now, |(since, _)| since);
        self.failure = Some((since, reason));
    }

    /// Handles a key, on a screen of this size.
    pub(super) fn key(&mut self, key: KeyEvent, screen: Rect) -> Effect {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Effect::Quit;
        }
        let effect = self.handle_key(key, screen);
        self.asked(effect)
    }

    fn handle_key(&mut self, key: KeyEvent, screen: Rect) -> Effect {
        let area = Areas::new(screen, &self.shown).body;
        if self.groups.is_typing() {
            return self.groups.key(key, area);
        }
        if self.has_help {
            self.has_help = false;
            return Effect::Draw;
        }
        match key.code {
            KeyCode::Char('q') => return Effect::Quit,
            KeyCode::Char('?' | 'h') => self.has_help = true,
            KeyCode::Tab => return self.show(self.pane.after(1)),
            KeyCode::BackTab => return self.show(self.pane.after(Pane::ALL.len() - 1)),
            KeyCode::Char('1') => return self.show(Pane::Groups),
            KeyCode::Char('2') => return self.show(Pane::Worst),
            KeyCode::Char('3') => return self.show(Pane::Heatmap),
            KeyCode::Char('4') => return self.show(Pane::Health),
            KeyCode::Char('+' | '=') => self.shown.range = self.shown.range.longer(),
            KeyCode::Char('-') => self.shown.range = self.shown.range.shorter(),
            KeyCode::Char(' ') => {
                self.is_frozen = !self.is_frozen;
                return if self.is_frozen { Effect::Draw } else { Effect::Ask };
            }
            KeyCode::Char('/') => {
                self.groups.begin_filter();
                return self.show(Pane::Groups);
            }
            code => match self.pane {
                Pane::Groups => return self.groups.key(key, area),
                Pane::Worst => return self.worst.key(code, area),
                Pane::Heatmap => return self.heatmap.key(code, &self.shown, area),
                Pane::Health => self.health.key(code, &self.shown, area),
            },
        }
        Effect::Draw
    }

    /// Handles an event of the mouse, on a screen of this size.
    pub(super) fn mouse(&mut self, event: MouseEvent, screen: Rect) -> Effect {
        let effect = self.handle_mouse(event, screen);
        self.asked(effect)
    }

    fn handle_mouse(&mut self, event: MouseEvent, screen: Rect) -> Effect {
        let areas = Areas::new(screen, &self.shown);
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) if self.has_help => self.has_help = false,
            _ if self.has_help || self.groups.is_typing() => {}
            MouseEventKind::Down(MouseButton::Left) => {
                if let Some(pane) = areas.tab(at) {
                    return self.show(pane);
                }
                return match self.pane {
                    Pane::Groups => self.groups.click(at, areas.body),
                    Pane::Heatmap => self.heatmap.click(at, &self.shown, areas.body),
                    Pane::Worst | Pane::Health => Effect::Draw,
                };
            }
            MouseEventKind::ScrollDown => return self.wheel(1, areas.body),
            MouseEventKind::ScrollUp => return self.wheel(-1, areas.body),
            _ => {}
        }
        Effect::Draw
    }

    fn wheel(&mut self, turns: isize, area: Rect) -> Effect {
        match self.pane {
            Pane::Groups => self.groups.scroll(turns * WHEEL, area),
            Pane::Worst => self.worst.scroll(turns * WHEEL, area),
            Pane::Heatmap => {
                let code = if turns > 0 { KeyCode::Down } else { KeyCode::Up };
                return self.heatmap.key(code, &self.shown, area);
            }
            Pane::Health => self.health.scroll(turns * WHEEL, &self.shown, area),
        }
        Effect::Draw
    }

    /// Shows a pane, and asks for what only that pane needs.
    fn show(&mut self, pane: Pane) -> Effect {
        self.pane = pane;
        Effect::Ask
    }

    fn asked(&mut self, effect: Effect) -> Effect {
        self.takes_next_answer |= self.is_frozen && effect == Effect::Ask;
        effect
    }
}

#[cfg(test)]
pub(super) mod tests;
#[cfg(test)]
mod tree_tests;
