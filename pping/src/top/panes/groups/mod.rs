//! The table of groups, the slowest first.

mod columns;
mod folds;
mod tree;

use std::sync::Arc;

use ratatui::{
    Frame,
    crossterm::event::{KeyCode, KeyEvent},
    layout::{Position, Rect},
    style::{Modifier, Style},
    text::Line,
    widgets::Paragraph,
};

use self::{columns::Columns, folds::Folds, tree::Tree};
use super::{Effect, PaneData, detail::Detail, scrolled};
use crate::{
    foreign_text::sanitized,
    recent::{Column, GroupAnswer, GroupDetail, GroupsAnswer, NodeAnswer, Order, Query, View},
    top::{
        table::{self, Row, titles},
        text,
    },
};

/// How many groups are asked for: more than fit on any screen.
const LIMIT: usize = 500;

/// The table of groups.
#[derive(Debug)]
pub(in crate::top) struct Groups {
    query: Query,
    /// The latest answer.
    answered: Vec<GroupAnswer>,
    /// Whether groups have both sides in one row.
    view: View,
    rows: Vec<Row>,
    folds: Folds,
    tree: Tree,
    /// Why the filter found no group.
    note: Option<String>,
    /// The row that the cursor is on.
    selected: usize,
    /// The first row on the screen.
    first: usize,
    /// The row that was clicked on last: a second click opens it.
    clicked: Option<Row>,
    /// The row that is shown alone.
    open: Option<Detail>,
    /// The filter as it is being typed.
    typed: Option<String>,
    shows_prefixes: bool,
}

impl Default for Groups {
    fn default() -> Self {
        Self {
            query: Query { limit: LIMIT, ..Query::default() },
            answered: Vec::new(),
            view: View::default(),
            rows: Vec::new(),
            folds: Folds::default(),
            tree: Tree::default(),
            note: None,
            selected: 0,
            first: 0,
            clicked: None,
            open: None,
            typed: None,
            shows_prefixes: false,
        }
    }
}

impl Groups {
    /// Returns the query for the groups.
    pub(in crate::top) fn query(&self) -> &Query {
        &self.query
    }

    /// Returns the id of the group whose past is asked for.
    pub(in crate::top) fn past(&self) -> Option<String> {
        self.open.as_ref().map(|detail| detail.id().to_owned())
    }

    /// Whether letters are text of a filter rather than commands.
    pub(in crate::top) fn is_typing(&self) -> bool {
        self.typed.is_some()
    }

    /// Takes the levels of the tree of groups, and whether there are networks at the other end.
    pub(in crate::top) fn set_levels(&mut self, levels: &[Arc<str>], has_networks: bool) {
        self.tree.set_levels(levels, has_networks);
        self.tree.choose(&mut self.query);
    }

    /// Takes answers. The cursor follows its row. On the first row it stays there, since that is the worst group.
    pub(in crate::top) fn take(&mut self, groups: &GroupsAnswer, past: Option<GroupDetail>) {
        if let Some(detail) = &mut self.open {
            detail.take(past);
        }
        if !groups.groups.is_empty() {
            let has_sides = groups.groups.iter().any(|group| group.sides.is_some());
            self.query = self.query.clone().fitted(has_sides);
            self.view = self.query.view;
        }
        self.note.clone_from(&groups.note);
        self.answered.clone_from(&groups.groups);
        self.arrange();
    }

    /// Makes the rows anew.
    fn arrange(&mut self) {
        let rows = table::rows(&self.answered, |id| self.folds.is_unfolded(id));
        let before = self.rows.get(self.selected).filter(|_| self.selected > 0);
        let of_group = |row: &Row, id: &str| row.is_of_group && row.id == id;
        // A row that was folded away leaves the cursor to its group.
        let found = before.and_then(|before| {
            let same = rows.iter().position(|row| row.key() == before.key());
            same.or_else(|| rows.iter().position(|row| of_group(row, &before.id)))
        });
        let at_path = |path: &str| {
            rows.iter().position(|row| row.node.as_ref().is_some_and(|node| *node.path == *path))
        };
        let left = self.tree.take_left(|path| at_path(path).is_some());
        let found = left.and_then(|path| at_path(&path)).or(found);
        self.selected = found.unwrap_or(self.selected).min(rows.len().saturating_sub(1));
        self.rows = rows;
    }

    /// Shows or hides the other rows of the group that the cursor is on; `None` changes it.
    fn fold(&mut self, is_unfolded: Option<bool>) {
        if let Some(row) = self.rows.get(self.selected) {
            self.folds.fold(&row.id, is_unfolded);
            self.arrange();
        }
    }

    /// Shows or hides the other rows of all groups.
    fn fold_all(&mut self) {
        self.folds.fold_all();
        self.arrange();
    }

    /// Returns the column that the table is sorted by.
    fn sort(&self) -> Column {
        self.query.column()
    }

    /// Begins to type a filter.
    pub(in crate::top) fn begin_filter(&mut self) {
        self.open = None;
        self.typed = Some(self.query.filter.clone());
    }

    /// Handles a key, where the pane has this area.
    pub(in crate::top) fn key(&mut self, key: KeyEvent, area: Rect) -> Effect {
        if self.typed.is_some() {
            return self.typed_key(key.code);
        }
        self.clicked = None;
        if let Some(detail) = &mut self.open {
            match key.code {
                KeyCode::Esc | KeyCode::Enter | KeyCode::Backspace => self.open = None,
                code => detail.key(code),
            }
            return Effect::Draw;
        }
        let page = page(area);
        match key.code {
            KeyCode::Char('j') | KeyCode::Down => self.select(self.selected + 1, page),
            KeyCode::Char('k') | KeyCode::Up => self.select(self.selected.saturating_sub(1), page),
            KeyCode::PageDown => self.select(self.selected + page, page),
            KeyCode::PageUp => self.select(self.selected.saturating_sub(page), page),
            KeyCode::Char('g') | KeyCode::Home => self.select(0, page),
            KeyCode::Char('G') | KeyCode::End => self.select(usize::MAX, page),
            KeyCode::Char('i') => self.shows_prefixes = !self.shows_prefixes,
            KeyCode::Char('o') => self.fold(None),
            KeyCode::Char('t') if self.tree.exists() => {
                self.tree.switch();
                return self.walked();
            }
            KeyCode::Char('n') if self.tree.has_networks() => {
                self.tree.switch_networks();
                return self.walked();
            }
            KeyCode::Right if self.selected_node().is_some() => return self.open_selected(),
            KeyCode::Right => self.fold(Some(true)),
            KeyCode::Left if !self.is_unfolded() && self.tree.leave() => return self.walked(),
            KeyCode::Left => self.fold(Some(false)),
            KeyCode::Char('O') => self.fold_all(),
            KeyCode::Enter => return self.open_selected(),
            KeyCode::Esc if !self.query.filter.is_empty() => {
                self.query.filter.clear();
                return Effect::Ask;
            }
            KeyCode::Backspace | KeyCode::Esc if self.tree.leave() => return self.walked(),
            KeyCode::Char('s') => {
                return self.sort_by(self.next_column());
            }
            KeyCode::Char('S') => {
                self.query.order = reversed(self.query.order);
                return Effect::Ask;
            }
            _ => {}
        }
        Effect::Draw
    }

    fn typed_key(&mut self, code: KeyCode) -> Effect {
        match code {
            KeyCode::Enter => {
                self.query.filter = self.typed.take().unwrap_or_default();
                self.select(0, 1);
                return Effect::Ask;
            }
            KeyCode::Esc => self.typed = None,
            KeyCode::Backspace => {
                self.typed.as_mut().and_then(String::pop);
            }
            KeyCode::Char(character) => self.typed.get_or_insert_default().push(character),
            _ => {}
        }
        Effect::Draw
    }

    /// Handles a click: on a title it sorts, on a row it selects, and a second click on the row opens it.
    pub(in crate::top) fn click(&mut self, at: Position, area: Rect) -> Effect {
        if self.open.is_some() || !area.contains(at) {
            return Effect::Draw;
        }
        if at.y == area.y {
            let column = self.columns(area).at(usize::from(at.x - area.x));
            return column.map_or(Effect::Draw, |column| self.sort_by(column));
        }
        let row = self.first(area) + usize::from(at.y - area.y - 1);
        let Some(clicked) = self.rows.get(row) else { return Effect::Draw };
        if self.clicked.as_ref().is_some_and(|before| before.key() == clicked.key()) {
            self.clicked = None;
            self.select(row, page(area));
            return self.open_selected();
        }
        self.clicked = Some(clicked.clone());
        self.select(row, page(area));
        Effect::Draw
    }

    /// Moves the cursor by this many rows.
    pub(in crate::top) fn scroll(&mut self, rows: isize, area: Rect) {
        match &mut self.open {
            Some(detail) => detail.key(if rows > 0 { KeyCode::Down } else { KeyCode::Up }),
            None => self.select(self.selected.saturating_add_signed(rows), page(area)),
        }
    }

    fn select(&mut self, row: usize, page: usize) {
        self.selected = row.min(self.rows.len().saturating_sub(1));
        self.first = scrolled(self.first, self.selected, page);
    }

    /// Returns the node that the cursor is on, if it is on one. Networks have nothing below them.
    fn selected_node(&self) -> Option<&NodeAnswer> {
        self.rows.get(self.selected)?.node.as_ref().filter(|node| node.members.is_some())
    }

    /// Whether the group that the cursor is on has its other rows shown.
    fn is_unfolded(&self) -> bool {
        self.rows.get(self.selected).is_some_and(|row| row.below > 0 && self.folds.is_unfolded(&row.id))
    }

    /// Asks for another part of the tree, or for all groups.
    fn walked(&mut self) -> Effect {
        self.tree.choose(&mut self.query);
        (self.selected, self.first) = (0, 0);
        Effect::Ask
    }

    /// Opens the row that the cursor is on: the children of a node, or a group alone.
    fn open_selected(&mut self) -> Effect {
        if let Some(node) = self.selected_node().cloned() {
            return if self.tree.enter(&node) { self.walked() } else { Effect::Draw };
        }
        self.open = self.rows.get(self.selected).map(|row| Detail::new(row.clone()));
        if self.open.is_some() { Effect::Ask } else { Effect::Draw }
    }

    fn next_column(&self) -> Column {
        let of_nodes = [Column::Members, Column::Active, Column::Bad]
            .into_iter()
            .filter(|_| self.tree.is_open() && self.query.by.is_some());
        let columns: Vec<_> =
            titles(self.view).iter().filter_map(|title| title.sort).chain(of_nodes).collect();
        let at = columns.iter().position(|column| *column == self.sort()).unwrap_or(0);
        columns[(at + 1) % columns.len()]
    }

    /// Sorts by a column. Reverses the order if the table is sorted by it already.
    fn sort_by(&mut self, column: Column) -> Effect {
        if self.sort() == column {
            self.query.order = reversed(self.query.order);
        } else {
            self.query.sort = Some(column);
            self.query.order = first_order(column);
        }
        Effect::Ask
    }

    fn columns(&self, area: Rect) -> Columns {
        let columns =
            Columns::new(&self.rows, area.width.into(), (self.view, self.sort()), self.shows_prefixes);
        let has_level = columns.has_nodes() || self.tree.shows_networks();
        let level = self.tree.level().filter(|_| has_level);
        columns.with_level(level)
    }

    /// Returns the first row on the screen, so that the cursor is in view.
    fn first(&self, area: Rect) -> usize {
        scrolled(self.first.min(self.rows.len().saturating_sub(1)), self.selected, page(area))
    }

    /// Draws the table, or the row that is shown alone.
    pub(in crate::top) fn draw(&self, frame: &mut Frame<'_>, area: Rect, shown: &PaneData) {
        if let Some(detail) = &self.open {
            return detail.draw(frame, area, shown);
        }
        let columns = self.columns(area);
        let titles = columns.titles(self.sort(), self.query.order);
        let titles = text::padded(&titles, area.width.into());
        let mut lines = vec![Line::styled(titles, Style::new().add_modifier(Modifier::UNDERLINED))];
        let first = self.first(area);
        for (number, row) in self.rows.iter().enumerate().skip(first).take(page(area)) {
            let is_selected = number == self.selected;
            let is_repeated = number > first && self.rows[number - 1].id == row.id;
            // The row has a mark, and not only brightness.
            let (mark, style) = if is_selected {
                ('>', Modifier::BOLD | Modifier::REVERSED)
            } else {
                (self.mark(row), Modifier::empty())
            };
            let line = columns.row(row, mark, is_selected || !is_repeated);
            let line = text::padded(&line, area.width.into());
            lines.push(Line::styled(line, Style::new().add_modifier(style)));
        }
        if self.rows.is_empty() {
            lines.extend(self.note.iter().map(|note| Line::raw(sanitized(note))));
            lines.push(Line::raw(if self.query.filter.is_empty() || !self.answered.is_empty() {
                "no round-trip times in the last minute"
            } else {
                "no group has this; Esc shows all"
            }));
        }
        frame.render_widget(Paragraph::new(lines), area);
    }

    /// Returns the mark of a row without the cursor: whether rows below it can be shown or hidden.
    fn mark(&self, row: &Row) -> char {
        match row.below {
            0 => ' ',
            _ if self.folds.is_unfolded(&row.id) => '-',
            _ => '+',
        }
    }

    /// Returns the last line: the filter, the number of groups, and the most important keys.
    pub(in crate::top) fn foot(&self, given: &PaneData) -> Vec<String> {
        if let Some(typed) = &self.typed {
            return [
                format!("/{}_", sanitized(typed)),
                "Enter filters".to_owned(),
                "Esc leaves it".to_owned(),
            ]
            .to_vec();
        }
        if let Some(detail) = &self.open {
            return detail.foot();
        }
        let Some(latest) = &given.latest else { return Vec::new() };
        let (groups, filter) = (&latest.groups, &self.query.filter);
        let known = text::counted(groups.known, if self.tree.shows_networks() { "network" } else { "group" });
        let of = match &**filter {
            "" if self.tree.is_open() || self.tree.shows_networks() => self.tree.describe(groups.found),
            "" => known,
            filter => format!("{} of {known} with {}", groups.found, sanitized(filter)),
        };
        let escape = if filter.is_empty() { &[][..] } else { &["Esc all"] };
        let rows = if self.rows.iter().any(|row| row.below > 0) { &["o rows"][..] } else { &[] };
        let tree = match (self.tree.exists(), self.tree.is_open()) {
            (false, _) => &[][..],
            (true, false) => &["t tree"],
            (true, true) => &["Backspace back", "t groups"],
        };
        let networks = match (self.tree.has_networks(), self.tree.shows_networks()) {
            (false, _) => &[][..],
            (true, false) => &["n networks"],
            (true, true) => &["n groups"],
        };
        let hints = ["s sort", "/ filter", "space freeze", "q end"];
        let hints = escape
            .iter()
            .chain(&["? help", "Enter open"])
            .chain(tree)
            .chain(networks)
            .chain(rows)
            .chain(&hints);
        let hints = hints.map(|&hint| hint.to_owned());
        [of].into_iter().chain(hints).collect()
    }
}

/// Returns the number of rows that fit into an area.
fn page(area: Rect) -> usize {
    usize::from(area.height).saturating_sub(1).max(1)
}

/// Returns the order in which a column is sorted first. The lowest score is the worst, and of all other figures the
/// highest.
const fn first_order(column: Column) -> Order {
    match column {
        Column::Quality => Order::Asc,
        Column::Group
        | Column::Count
        | Column::Min
        | Column::P50
        | Column::P90
        | Column::P95
        | Column::P99
        | Column::Packets
        | Column::Bytes
        | Column::Retransmissions
        | Column::Members
        | Column::Active
        | Column::Bad
        | Column::InsideP50
        | Column::InsideP95
        | Column::OutsideP50
        | Column::OutsideP95 => Order::Desc,
    }
}

fn reversed(order: Order) -> Order {
    if order == Order::Desc { Order::Asc } else { Order::Desc }
}

#[cfg(test)]
mod tests;
