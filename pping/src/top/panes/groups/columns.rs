//! The columns of the table of groups, as many as fit.

use crate::{
    recent::{Column, Order},
    top::{
        table::{COLUMNS, Row},
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
    /// One of the figures that groups are sorted by: its number in [`COLUMNS`].
    Figure(usize),
}

/// All columns, in their order.
const FIELDS: [Field; 12] = [
    Field::Group,
    Field::Interface,
    Field::Method,
    Field::Side,
    Field::Figure(1),
    Field::Figure(2),
    Field::Figure(3),
    Field::Figure(4),
    Field::Figure(5),
    Field::Figure(6),
    Field::Figure(7),
    Field::Figure(8),
];

/// The columns that are left out in this order if not all fit: packets, the minimum, the 99th percentile, the score,
/// samples, retransmissions, the median, the method and the interface. Where there are several interfaces, their rows
/// would look alike without it.
const SPARE: [Field; 9] = [
    Field::Figure(6),
    Field::Figure(2),
    Field::Figure(5),
    Field::Figure(8),
    Field::Figure(1),
    Field::Figure(7),
    Field::Figure(3),
    Field::Method,
    Field::Interface,
];

/// The least width of the group's column.
const GROUP: usize = 12;

/// The columns, with their positions on the line.
#[derive(Debug)]
pub(super) struct Columns {
    columns: Vec<Placed>,
    shows_prefixes: bool,
}

#[derive(Clone, Copy, Debug)]
struct Placed {
    field: Field,
    start: usize,
    width: usize,
}

impl Columns {
    /// Chooses the columns that fit beside the mark of the chosen row. The column of the sort order is always one of them.
    pub(super) fn new(rows: &[Row], room: usize, sort: Column, shows_prefixes: bool) -> Self {
        let room = room.saturating_sub(1);
        let mut interfaces = rows.iter().map(|row| &row.series.0);
        let first = interfaces.next();
        let has_interfaces = interfaces.any(|it| Some(it) != first);
        let is_there = |field: &Field| has_interfaces || *field != Field::Interface;
        let mut fields: Vec<Field> = FIELDS.into_iter().filter(is_there).collect();
        let widest = rows.iter().map(|row| width(name(row, shows_prefixes))).max().unwrap_or(0);
        let side = side_width(rows.iter().map(|row| row.side));
        let width_of = |field: Field| if field == Field::Side { side } else { field.width() };
        let others = |fields: &[Field], gap: usize| {
            let widths = fields.iter().map(|&field| width_of(field) + gap);
            widths.sum::<usize>() - gap - Field::Group.width()
        };
        let least = GROUP.min(widest.max(6));
        let gap =
            [3, 2].into_iter().find(|gap| others(&fields, *gap) + GROUP.max(widest) <= room).unwrap_or(1);
        for spare in SPARE {
            if others(&fields, gap) + least <= room {
                break;
            }
            if spare.sort() != Some(sort) {
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
        Self { columns, shows_prefixes }
    }

    /// Returns the titles, with an arrow at the column of the sort order.
    pub(super) fn titles(&self, sort: Column, order: Order) -> String {
        let arrow = if order == Order::Desc { "▼" } else { "▲" };
        self.line(' ', |field| {
            let title = match field {
                Field::Group if self.shows_prefixes => "prefix",
                field => field.title(),
            };
            if field.sort() == Some(sort) { format!("{title}{arrow}") } else { title.to_owned() }
        })
    }

    /// Returns a row. The group is left out if it is that of the row above.
    pub(super) fn row(&self, row: &Row, mark: char, has_group: bool) -> String {
        self.line(mark, |field| match field {
            Field::Group if !has_group => String::new(),
            Field::Group => name(row, self.shows_prefixes).to_owned(),
            Field::Interface => row.interface.clone(),
            Field::Method => row.method.clone(),
            Field::Side => row.side.to_owned(),
            Field::Figure(number) => row.cells[number].clone(),
        })
    }

    fn line(&self, mark: char, text: impl Fn(Field) -> String) -> String {
        let mut line = String::from(mark);
        let mut end = 1;
        for Placed { field, start, width } in self.columns.iter().copied() {
            line.push_str(&" ".repeat(start - end));
            let text = text(field);
            let is_number = matches!(field, Field::Figure(_));
            line.push_str(&if is_number { right(&text, width) } else { padded(&text, width) });
            end = start + width;
        }
        line
    }

    /// Returns what a click at `x` on the line sorts by.
    pub(super) fn at(&self, x: usize) -> Option<Column> {
        let is_there = |it: &&Placed| (it.start..it.start + it.width).contains(&x);
        self.columns.iter().find(is_there).and_then(|it| it.field.sort())
    }
}

/// Returns the name of the group of a row.
fn name(row: &Row, shows_prefixes: bool) -> &str {
    match &row.prefix {
        Some(prefix) if shows_prefixes => prefix,
        _ => &row.cells[0],
    }
}

impl Field {
    const fn width(self) -> usize {
        match self {
            Self::Group => 0,
            Self::Method => 14,
            Self::Side => 6,
            Self::Figure(7) => 7,
            Self::Interface | Self::Figure(6) => 9,
            Self::Figure(_) => 8,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Group => COLUMNS[0].0,
            Self::Interface => "interface",
            Self::Method => "method",
            Self::Side => "side",
            Self::Figure(number) => COLUMNS[number].0,
        }
    }

    const fn sort(self) -> Option<Column> {
        match self {
            Self::Group => Some(Column::Group),
            Self::Figure(number) => Some(COLUMNS[number].2),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::{
        table,
        tests::{answers, series},
    };

    fn rows() -> Vec<Row> {
        table::rows(&answers(&[("customer-7", 23_000_000)]).groups.groups)
    }

    #[test]
    fn the_more_room_the_more_columns_and_no_line_is_wider() {
        let rows = rows();
        let mut before = 0;
        for room in 0..200 {
            let columns = Columns::new(&rows, room, Column::P95, false);
            let titles = columns.titles(Column::P95, Order::Desc);
            if room >= 40 {
                assert!(width(&titles) <= room && titles.contains(" p95▼"), "{room}: {titles}");
            }
            assert!(columns.columns.len() >= before, "{room}: {titles}");
            before = columns.columns.len();
        }
        assert_eq!(before, FIELDS.len() - 1, "all but the interface, of which there is one");
    }

    #[test]
    fn what_is_sorted_by_is_always_there() {
        let rows = rows();
        for (title, _, column) in COLUMNS {
            let titles = Columns::new(&rows, 60, column, false).titles(column, Order::Asc);
            assert!(titles.contains(&format!("{title}▲")), "{titles}");
        }
    }

    #[test]
    fn several_interfaces_are_told_apart() {
        let mut answers = answers(&[("a", 1_000_000)]);
        let other = table::rows(&answers.groups.groups);
        assert!(
            !Columns::new(&other, 100, Column::P95, false)
                .titles(Column::P95, Order::Desc)
                .contains(" interface ")
        );
        let mut lan = series(2_000_000);
        lan.interface = Some("lan0".into());
        answers.groups.groups[0].series.push(lan);
        let rows = table::rows(&answers.groups.groups);
        let columns = Columns::new(&rows, 100, Column::P95, false);
        assert!(columns.titles(Column::P95, Order::Desc).contains(" interface "));
        assert!(columns.row(rows.last().unwrap(), ' ', true).contains(" lan0 "));
        // Rows would look alike without it, so it is the last to be left out.
        for room in 45..100 {
            let titles = Columns::new(&rows, room, Column::P95, false).titles(Column::P95, Order::Desc);
            assert!(titles.contains(" interface "), "{room}: {titles}");
        }
    }

    #[test]
    fn a_click_on_a_title_finds_its_column() {
        let columns = Columns::new(&rows(), 80, Column::P95, false);
        let titles = columns.titles(Column::P95, Order::Desc);
        let at = |title: &str| columns.at(titles.find(title).unwrap());
        assert_eq!((at("group"), at("p50"), at("method")), (Some(Column::Group), Some(Column::P50), None));
    }
}
