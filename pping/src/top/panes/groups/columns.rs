//! The columns of the table of groups, as many as fit.

use crate::{
    foreign_text::sanitized,
    recent::{Column, Order, View},
    top::{
        table::{Row, titles},
        text::{padded, right, side_width, width},
    },
};

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// The label or the prefix of the group.
    Group,
    Interface,
    Method,
    Side,
    /// The number of a node's groups.
    Members,
    /// The number of these that are active.
    Active,
    /// The number of these that are bad.
    Bad,
    /// One of the figures of the view: its number among the titles.
    Figure(usize),
}

/// The columns of a view that name a row, in their order. Its figures follow.
const fn names(view: View) -> &'static [Field] {
    match view {
        View::Series => &[Field::Group, Field::Interface, Field::Method, Field::Side],
        View::Sides => &[Field::Group],
    }
}

/// The columns of a view that are left out in this order if not all fit. Of series: packets, the minimum, the 99th percentile,
/// the score, samples, retransmissions, the median, the method and the interface. Where there are several interfaces, their
/// rows would look alike without it. Of sides: the trends, bytes, the score, the medians and retransmissions.
const fn spare(view: View) -> &'static [Field] {
    match view {
        View::Series => &[
            Field::Figure(6),
            Field::Figure(2),
            Field::Figure(5),
            Field::Figure(8),
            Field::Figure(1),
            Field::Figure(7),
            Field::Figure(3),
            Field::Method,
            Field::Interface,
        ],
        View::Sides => &[
            Field::Figure(9),
            Field::Figure(8),
            Field::Figure(7),
            Field::Figure(6),
            Field::Figure(3),
            Field::Figure(1),
            Field::Figure(5),
        ],
    }
}

/// The least width of the group's column.
const GROUP: usize = 12;

/// The columns, with their positions on the line.
#[derive(Debug)]
pub(super) struct Columns {
    placed: Vec<Placed>,
    view: View,
    shows_prefixes: bool,
    /// The level of the rows, if they are nodes of the tree of groups.
    level: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct Placed {
    field: Field,
    start: usize,
    width: usize,
}

impl Columns {
    /// Chooses the columns that fit beside the mark of the chosen row. The column of the sort order is always one of them.
    pub(super) fn new(rows: &[Row], room: usize, (view, sort): (View, Column), shows_prefixes: bool) -> Self {
        let room = room.saturating_sub(1);
        let mut interfaces = rows.iter().map(|row| &row.series.0);
        let first = interfaces.next();
        let has_interfaces = interfaces.any(|it| Some(it) != first);
        let is_there = |field: &Field| has_interfaces || *field != Field::Interface;
        let figures = (1..titles(view).len()).map(Field::Figure);
        let mut fields: Vec<Field> = names(view).iter().copied().chain(figures).filter(is_there).collect();
        if rows.iter().any(|row| row.node.as_ref().is_some_and(|node| node.members.is_some())) {
            fields.splice(1..1, [Field::Members, Field::Active, Field::Bad]);
        }
        let widest = rows.iter().map(|row| width(row.name(shows_prefixes))).max().unwrap_or(0);
        let side = side_width(rows.iter().map(|row| row.side));
        let width_of = |field: Field| if field == Field::Side { side } else { field.width(view) };
        let others = |fields: &[Field], gap: usize| {
            let widths = fields.iter().map(|&field| width_of(field) + gap);
            widths.sum::<usize>() - gap
        };
        let below = rows.iter().filter(|row| view == View::Sides && !row.is_of_group);
        let below = below.map(|row| width(row.name(false))).max().unwrap_or(0);
        let least = GROUP.min(widest.max(6)).max(below);
        let gap =
            [3, 2].into_iter().find(|gap| others(&fields, *gap) + GROUP.max(widest) <= room).unwrap_or(1);
        for &spare in spare(view) {
            if others(&fields, gap) + least <= room {
                break;
            }
            if spare.sort(view) != Some(sort) {
                fields.retain(|field| *field != spare);
            }
        }
        let group = room.saturating_sub(others(&fields, gap)).min(widest.max(GROUP));
        let mut start = 1;
        let mut columns = Vec::new();
        for field in fields {
            let width = if field == Field::Group { group } else { width_of(field) };
            columns.push(Placed { field, start, width });
            start += width + gap;
        }
        Self { placed: columns, view, shows_prefixes, level: None }
    }

    /// Whether the rows are nodes of the tree of groups.
    pub(super) fn has_nodes(&self) -> bool {
        self.placed.iter().any(|placed| placed.field == Field::Members)
    }

    /// Names the level of the rows.
    pub(super) fn with_level(self, level: Option<&str>) -> Self {
        Self { level: level.map(sanitized), ..self }
    }

    /// Returns the titles, with an arrow at the column of the sort order.
    pub(super) fn titles(&self, sort: Column, order: Order) -> String {
        let arrow = if order == Order::Desc { "▼" } else { "▲" };
        self.line(' ', |field| {
            let title = match field {
                Field::Group if self.level.is_some() => self.level.as_deref().unwrap_or_default(),
                Field::Group if self.shows_prefixes => "prefix",
                field => field.title(self.view),
            };
            if field.sort(self.view) == Some(sort) { format!("{title}{arrow}") } else { title.to_owned() }
        })
    }

    /// Returns a row. The group is left out if it is that of the row above.
    pub(super) fn row(&self, row: &Row, mark: char, has_group: bool) -> String {
        self.line(mark, |field| match field {
            // Below a row of both sides, this column names the series.
            Field::Group if !has_group && self.view == View::Series => String::new(),
            Field::Group => row.name(self.shows_prefixes).to_owned(),
            Field::Interface => row.interface.clone(),
            Field::Method => row.method.clone(),
            Field::Side => row.side.to_owned(),
            Field::Members | Field::Active | Field::Bad if !row.is_of_group => String::new(),
            Field::Members => number(row.node.as_ref().and_then(|node| node.members)),
            Field::Active => number(row.node.as_ref().and_then(|node| node.active)),
            Field::Bad => number(row.node.as_ref().and_then(|node| node.bad)),
            Field::Figure(number) => row.cells[number].clone(),
        })
    }

    fn line(&self, mark: char, text: impl Fn(Field) -> String) -> String {
        let mut line = String::from(mark);
        let mut end = 1;
        for Placed { field, start, width } in self.placed.iter().copied() {
            line.push_str(&" ".repeat(start - end));
            let text = text(field);
            let is_number = matches!(field, Field::Figure(_) | Field::Members | Field::Active | Field::Bad);
            line.push_str(&if is_number { right(&text, width) } else { padded(&text, width) });
            end = start + width;
        }
        line
    }

    /// Returns what a click at `x` on the line sorts by.
    pub(super) fn at(&self, x: usize) -> Option<Column> {
        let is_there = |it: &&Placed| (it.start..it.start + it.width).contains(&x);
        self.placed.iter().find(is_there).and_then(|it| it.field.sort(self.view))
    }
}

fn number(number: Option<usize>) -> String {
    number.map_or(String::new(), |number| number.to_string())
}

impl Field {
    const fn width(self, view: View) -> usize {
        match self {
            Self::Group => 0,
            Self::Interface => 9,
            Self::Method => 14,
            Self::Side => 6,
            Self::Members => 8,
            Self::Active => 7,
            Self::Bad => 5,
            Self::Figure(number) => titles(view)[number].width,
        }
    }

    const fn title(self, view: View) -> &'static str {
        match self {
            Self::Group => titles(view)[0].name,
            Self::Interface => "interface",
            Self::Method => "method",
            Self::Side => "side",
            Self::Members => "members",
            Self::Active => "active",
            Self::Bad => "bad",
            Self::Figure(number) => titles(view)[number].name,
        }
    }

    const fn sort(self, view: View) -> Option<Column> {
        match self {
            Self::Group => Some(Column::Group),
            Self::Members => Some(Column::Members),
            Self::Active => Some(Column::Active),
            Self::Bad => Some(Column::Bad),
            Self::Figure(number) => titles(view)[number].sort,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::{
        ask::Answers,
        table,
        tests::{answers, series, with_sides},
    };

    const BY_P95: (View, Column) = (View::Series, Column::P95);

    fn rows_of(answers: &Answers) -> Vec<Row> {
        table::rows(&answers.groups.groups, |_| true)
    }

    fn rows() -> Vec<Row> {
        rows_of(&answers(&[("customer-7", 23_000_000)]))
    }

    /// The rows of both sides of a group, with that of a series below.
    fn rows_of_sides() -> Vec<Row> {
        rows_of(&with_sides(answers(&[("customer-7", 23_000_000)])))
    }

    #[test]
    fn the_more_room_the_more_columns_and_no_line_is_wider() {
        let rows = rows();
        let mut before = 0;
        for room in 0..200 {
            let columns = Columns::new(&rows, room, BY_P95, false);
            let titles = columns.titles(Column::P95, Order::Desc);
            if room >= 40 {
                assert!(width(&titles) <= room && titles.contains(" p95▼"), "{room}: {titles}");
            }
            assert!(columns.placed.len() >= before, "{room}: {titles}");
            before = columns.placed.len();
        }
        assert_eq!(before, 11, "all but the interface, of which there is one");
        let rows = rows_of_sides();
        for room in 60..200 {
            let sort = (View::Sides, Column::OutsideP95);
            let columns = Columns::new(&rows, room, sort, false);
            let titles = columns.titles(Column::OutsideP95, Order::Desc);
            assert!(width(&titles) <= room && titles.contains(" outside p95▼"), "{room}: {titles}");
            assert!(titles.contains(" inside p95 "), "{room}: {titles}");
            assert!(room >= 100 || !titles.contains(" 15 min"), "{room}: {titles}");
            assert!(room < 130 || titles.contains(" outside 15 min"), "{room}: {titles}");
            // The names of series below a group are whole.
            assert!(columns.row(&rows[1], ' ', false).contains(" wan0 tcp-ts "), "{room}: {titles}");
        }
    }

    #[test]
    fn what_is_sorted_by_is_always_there() {
        for (view, rows) in [(View::Series, rows()), (View::Sides, rows_of_sides())] {
            for title in titles(view) {
                let Some(column) = title.sort else { continue };
                let titles = Columns::new(&rows, 60, (view, column), false).titles(column, Order::Asc);
                assert!(titles.contains(&format!("{}▲", title.name)), "{titles}");
            }
        }
    }

    #[test]
    fn several_interfaces_are_told_apart() {
        let mut answers = answers(&[("a", 1_000_000)]);
        let other = rows_of(&answers);
        assert!(
            !Columns::new(&other, 100, BY_P95, false)
                .titles(Column::P95, Order::Desc)
                .contains(" interface ")
        );
        let mut lan = series(2_000_000);
        lan.interface = Some("lan0".into());
        answers.groups.groups[0].series.push(lan);
        let rows = rows_of(&answers);
        let columns = Columns::new(&rows, 100, BY_P95, false);
        assert!(columns.titles(Column::P95, Order::Desc).contains(" interface "));
        assert!(columns.row(rows.last().unwrap(), ' ', true).contains(" lan0 "));
        // Rows would look alike without it, so it is the last to be left out.
        for room in 45..100 {
            let titles = Columns::new(&rows, room, BY_P95, false).titles(Column::P95, Order::Desc);
            assert!(titles.contains(" interface "), "{room}: {titles}");
        }
    }

    #[test]
    fn a_click_on_a_title_finds_its_column() {
        let columns = Columns::new(&rows(), 80, BY_P95, false);
        let titles = columns.titles(Column::P95, Order::Desc);
        let at = |title: &str| columns.at(titles.find(title).unwrap());
        assert_eq!((at("group"), at("p50"), at("method")), (Some(Column::Group), Some(Column::P50), None));
    }
}
