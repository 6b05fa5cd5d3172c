use super::*;
use crate::top::tests::{answers, series, with_sides};

/// Room for two rows.
const AREA: Rect = Rect::new(0, 0, 80, 3);

fn groups(labels: &[(&str, u64)]) -> Groups {
    let mut groups = Groups::default();
    groups.take(&answers(labels).groups, None);
    groups
}

fn three() -> Groups {
    groups(&[("a", 9_000_000), ("b", 8_000_000), ("c", 7_000_000)])
}

fn press(groups: &mut Groups, code: KeyCode) -> Effect {
    groups.key(code.into(), AREA)
}

#[test]
fn the_cursor_stays_on_the_table() {
    let mut groups = three();
    for (code, selected) in [
        (KeyCode::Up, 0),
        (KeyCode::Char('j'), 1),
        (KeyCode::PageDown, 2),
        (KeyCode::Down, 2),
        (KeyCode::PageUp, 0),
        (KeyCode::Char('G'), 2),
        (KeyCode::Char('k'), 1),
        (KeyCode::Char('g'), 0),
        (KeyCode::End, 2),
    ] {
        assert_eq!(press(&mut groups, code), Effect::Draw);
        assert_eq!(groups.selected, selected, "{code:?}");
        assert!((groups.first(AREA)..groups.first(AREA) + 2).contains(&selected), "in view");
    }
    // Fewer rows than before.
    groups.take(&answers(&[("a", 1)]).groups, None);
    assert_eq!(groups.selected, 0);
}

#[test]
fn the_cursor_goes_with_its_row_and_stays_on_the_first() {
    let mut groups = three();
    press(&mut groups, KeyCode::Down);
    let mut other = answers(&[("a", 9), ("b", 8), ("c", 7)]).groups;
    other.groups.swap(1, 2);
    groups.take(&other, None);
    assert_eq!((groups.selected, &*groups.rows[2].cells[0]), (2, "b"));
    press(&mut groups, KeyCode::Char('g'));
    other.groups.swap(0, 1);
    groups.take(&other, None);
    assert_eq!((groups.selected, &*groups.rows[0].cells[0]), (0, "c"));
}

#[test]
fn a_filter_counts_once_it_is_entered_and_escape_clears_it() {
    let mut groups = three();
    groups.begin_filter();
    for character in "qx".chars() {
        assert_eq!(press(&mut groups, KeyCode::Char(character)), Effect::Draw);
    }
    press(&mut groups, KeyCode::Backspace);
    assert_eq!((groups.typed.as_deref(), &*groups.query.filter), (Some("q"), ""));
    assert_eq!(press(&mut groups, KeyCode::Enter), Effect::Ask);
    assert_eq!((groups.typed.as_deref(), &*groups.query.filter), (None, "q"));
    groups.begin_filter();
    press(&mut groups, KeyCode::Char('z'));
    assert_eq!(press(&mut groups, KeyCode::Esc), Effect::Draw);
    assert_eq!(&*groups.query.filter, "q", "as it was");
    assert_eq!(press(&mut groups, KeyCode::Esc), Effect::Ask);
    assert_eq!(&*groups.query.filter, "");
}

#[test]
fn columns_are_sorted_by_in_their_order_and_either_way() {
    let mut groups = three();
    let mut seen = vec![groups.sort()];
    for _ in 1..titles(View::Series).len() {
        assert_eq!(press(&mut groups, KeyCode::Char('s')), Effect::Ask);
        seen.push(groups.sort());
    }
    assert_eq!(seen[..3], [Column::P95, Column::P99, Column::Packets]);
    seen.sort_by_key(|column| *column as u8);
    seen.dedup();
    assert_eq!(seen.len(), titles(View::Series).len(), "each of them once");
    press(&mut groups, KeyCode::Char('S'));
    assert_eq!(groups.query.order, Order::Asc);
}

#[test]
fn quality_sorts_ascending_others_descending() {
    let mut groups = three();
    while groups.sort() != Column::Quality {
        assert_eq!(groups.query.order, Order::Desc);
        press(&mut groups, KeyCode::Char('s'));
    }
    assert_eq!(groups.query.order, Order::Asc);
    press(&mut groups, KeyCode::Char('S'));
    assert_eq!(groups.query.order, Order::Desc);
    for (column, order) in [
        (Column::P50, Order::Desc),
        (Column::Quality, Order::Asc),
        (Column::Quality, Order::Desc),
        (Column::P99, Order::Desc),
    ] {
        // As by a click on its title.
        assert_eq!(groups.sort_by(column), Effect::Ask);
        assert_eq!((groups.sort(), groups.query.order), (column, order));
    }
}

#[test]
fn a_row_is_opened_and_closed_before_the_filter_is_cleared() {
    let mut groups = three();
    groups.query.filter = "a".to_owned();
    press(&mut groups, KeyCode::Down);
    assert_eq!(press(&mut groups, KeyCode::Enter), Effect::Ask);
    assert_eq!(groups.past(), Some(format!("{:032x}", 1)));
    assert_eq!(press(&mut groups, KeyCode::Esc), Effect::Draw);
    assert!(groups.past().is_none() && groups.query.filter == "a");
    press(&mut groups, KeyCode::Esc);
    assert_eq!(groups.query.filter, "");
}

#[test]
fn a_group_is_named_by_its_prefix_where_that_is_another_name() {
    let mut answers = answers(&[("customer-7", 1), ("10.2.0.0/16", 2), ("other", 3)]).groups;
    answers.groups[0].prefix = Some("10.1.0.0/16".into());
    answers.groups[1].prefix = Some("10.2.0.0/16".into());
    answers.groups[0].series.push(series(5));
    let mut groups = Groups::default();
    groups.take(&answers, None);
    groups.fold_all();
    let names = |groups: &Groups| {
        let columns = groups.columns(Rect::new(0, 0, 80, 9));
        let rows = groups.rows.iter().map(|row| columns.row(row, ' ', true));
        rows.map(|row| row.split_whitespace().next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&groups), ["customer-7", "customer-7", "10.2.0.0/16", "other"]);
    press(&mut groups, KeyCode::Char('i'));
    assert_eq!(names(&groups), ["10.1.0.0/16", "10.1.0.0/16", "10.2.0.0/16", "other"]);
    assert!(groups.columns(AREA).titles(Column::P95, Order::Desc).contains("prefix"));
}

/// Two groups, the first with a second series that is the busiest, and one without samples.
fn several() -> Groups {
    let mut answers = answers(&[("a", 9_000_000), ("b", 8_000_000)]).groups;
    let mut busy = series(5_000_000);
    (busy.interface, busy.rtt.as_mut().unwrap().count) = (Some("lan0".into()), 70);
    let mut idle = series(4_000_000);
    (idle.interface, idle.rtt) = (Some("ppp0".into()), None);
    answers.groups[0].series.extend([busy, idle]);
    let mut groups = Groups::default();
    groups.take(&answers, None);
    groups
}

/// Returns the mark, the interface and the group of each row.
fn shown(groups: &Groups) -> Vec<(char, &str, &str)> {
    groups.rows.iter().map(|row| (groups.mark(row), &*row.interface, &*row.label)).collect()
}

#[test]
fn a_group_is_one_row_until_it_is_unfolded() {
    let mut groups = several();
    let folded = [('+', "lan0", "a"), (' ', "wan0", "b")];
    assert_eq!(shown(&groups), folded, "the busiest series, and none without samples");
    assert_eq!(press(&mut groups, KeyCode::Char('o')), Effect::Draw);
    let unfolded = [('-', "lan0", "a"), (' ', "wan0", "a"), (' ', "wan0", "b")];
    assert_eq!(shown(&groups), unfolded);
    // The row that is folded away leaves the cursor to its group.
    press(&mut groups, KeyCode::Down);
    assert_eq!(groups.selected, 1);
    press(&mut groups, KeyCode::Left);
    assert_eq!((groups.selected, shown(&groups)), (0, folded.to_vec()));
    press(&mut groups, KeyCode::Right);
    press(&mut groups, KeyCode::Right);
    assert_eq!(shown(&groups), unfolded);
    press(&mut groups, KeyCode::Char('O'));
    press(&mut groups, KeyCode::Char('o'));
    assert_eq!(shown(&groups), folded);
    press(&mut groups, KeyCode::Char('O'));
    assert_eq!(shown(&groups), folded, "all are folded, those of before too");
}

#[test]
fn sides_have_their_columns_and_their_order() {
    let mut groups = Groups::default();
    groups.take(&with_sides(answers(&[("a", 9_000_000), ("b", 8_000_000)])).groups, None);
    assert_eq!((groups.sort(), groups.rows.len()), (Column::InsideP95, 2));
    assert_eq!(press(&mut groups, KeyCode::Char('s')), Effect::Ask);
    assert_eq!(groups.query.sort, Some(Column::OutsideP50));
    press(&mut groups, KeyCode::Char('o'));
    let names: Vec<_> = groups.rows.iter().map(|row| row.name(false)).collect();
    assert_eq!(names, ["a", "  wan0 tcp-ts", "b"]);
    // Its figures are in the columns of its side.
    assert_eq!(groups.rows[1].cells[1..5], ["4.50 ms", "9.00 ms", "", ""]);
    // A pping that no longer tells sides apart has no such column.
    groups.take(&answers(&[("a", 9_000_000)]).groups, None);
    assert_eq!((groups.query.sort, groups.sort()), (None, Column::P95));
}
