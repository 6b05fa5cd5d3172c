use ratatui::crossterm::event::KeyEventKind;

use super::*;
use crate::top::{
    plot::Range,
    tests::{answers, screen},
};
use crate::worst::By;

const SCREEN: Rect = Rect::new(0, 0, 80, 24);

fn state() -> State {
    let mut state = State::default();
    state.take(answers(&[("a", 9_000_000), ("b", 8_000_000), ("c", 7_000_000)]));
    state
}

fn press(state: &mut State, code: KeyCode) -> Effect {
    state.key(KeyEvent::new(code, KeyModifiers::NONE), SCREEN)
}

fn mouse(state: &mut State, kind: MouseEventKind, column: u16, row: u16) -> Effect {
    state.mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }, SCREEN)
}

fn click(state: &mut State, column: u16, row: u16) -> Effect {
    mouse(state, MouseEventKind::Down(MouseButton::Left), column, row)
}

/// Returns the column and the row of a text on the screen.
fn place(state: &State, text: &str) -> (u16, u16) {
    let screen = screen(state, SCREEN.width, SCREEN.height);
    let found = screen.lines().zip(0..).find_map(|(line, row)| Some((line.find(text)? as u16, row)));
    found.unwrap_or_else(|| panic!("no {text} on {screen}"))
}

/// Returns the column and the row of a title of the table.
fn title(state: &State, text: &str) -> (u16, u16) {
    let (_, row) = place(state, " group ");
    let screen = screen(state, SCREEN.width, SCREEN.height);
    let found = screen.lines().nth(row.into()).and_then(|line| line.find(text));
    (found.unwrap_or_else(|| panic!("no {text} on {screen}")) as u16, row)
}

/// Returns the row with the cursor.
fn chosen(state: &State) -> String {
    let screen = screen(state, SCREEN.width, SCREEN.height);
    let line = screen.lines().find(|line| line.starts_with('>')).unwrap_or_default();
    line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

#[test]
fn panes_are_chosen_by_numbers_and_go_round_by_tab() {
    let mut state = state();
    for (code, pane) in [
        (KeyCode::Char('4'), Pane::Health),
        (KeyCode::Tab, Pane::Groups),
        (KeyCode::BackTab, Pane::Health),
        (KeyCode::Char('3'), Pane::Heatmap),
        (KeyCode::Char('2'), Pane::Worst),
        (KeyCode::Char('1'), Pane::Groups),
        (KeyCode::Char('5'), Pane::Groups),
    ] {
        press(&mut state, code);
        assert_eq!(state.pane, pane, "{code:?}");
    }
}

#[test]
fn only_what_is_on_the_screen_is_asked_for() {
    let mut state = state();
    assert!(state.question().history.is_none() && state.question().past.is_none());
    assert_eq!(press(&mut state, KeyCode::Enter), Effect::Ask);
    assert_eq!(state.question().past, Some(format!("{:032x}", 0)));
    assert_eq!(press(&mut state, KeyCode::Char('3')), Effect::Ask);
    let question = state.question();
    let history = question.history.unwrap();
    assert_eq!((history.interface.as_deref(), history.method.as_deref()), (Some("wan0"), Some("tcp-ts")));
    assert!(history.matched.as_deref() == Some("ingress") && question.past.is_none());
    press(&mut state, KeyCode::Char('1'));
    assert!(state.question().past.is_some(), "what was open is open again");
}

#[test]
fn a_time_range_has_ends() {
    let mut state = state();
    for (code, range) in [
        ('-', Range::FiveMinutes),
        ('-', Range::Minute),
        ('-', Range::Minute),
        ('+', Range::FiveMinutes),
        ('=', Range::QuarterHour),
        ('+', Range::QuarterHour),
    ] {
        press(&mut state, KeyCode::Char(code));
        assert_eq!(state.shown.range, range);
    }
}

#[test]
fn frozen_screen_changes_only_on_request() {
    let mut state = state();
    assert_eq!(press(&mut state, KeyCode::Char(' ')), Effect::Draw);
    state.take(answers(&[("z", 1)]));
    assert_eq!(chosen(&state), ">a tcp-ts");
    assert_eq!(press(&mut state, KeyCode::Char('s')), Effect::Ask);
    state.take(answers(&[("y", 1)]));
    assert_eq!(chosen(&state), ">y tcp-ts");
    state.take(answers(&[("x", 1)]));
    assert_eq!(chosen(&state), ">y tcp-ts", "one answer, and no more");
    assert_eq!(press(&mut state, KeyCode::Char(' ')), Effect::Ask);
    state.take(answers(&[("x", 1)]));
    assert_eq!(chosen(&state), ">x tcp-ts");
}

#[test]
fn a_filter_may_be_typed_from_any_pane() {
    let mut state = state();
    press(&mut state, KeyCode::Char('4'));
    press(&mut state, KeyCode::Char('/'));
    for character in "q2".chars() {
        assert_eq!(press(&mut state, KeyCode::Char(character)), Effect::Draw, "no command while typing");
    }
    assert_eq!(press(&mut state, KeyCode::Enter), Effect::Ask);
    assert_eq!((state.pane, &*state.question().groups.filter), (Pane::Groups, "q2"));
}

#[test]
fn a_failure_counts_from_when_it_began_until_there_is_an_answer() {
    let mut state = state();
    let now = Instant::now();
    state.fail("gone".to_owned(), now);
    state.fail("still gone".to_owned(), now + std::time::Duration::from_secs(5));
    assert_eq!(state.failure, Some((now, "still gone".to_owned())));
    state.take(answers(&[]));
    assert_eq!(state.failure, None);
}

#[test]
fn figures_that_do_not_change_grow_old() {
    let mut state = State::default();
    let now = Instant::now();
    let later = now + std::time::Duration::from_secs(7);
    state.take_at(answers(&[]), now);
    state.take_at(answers(&[]), later);
    assert_eq!(state.shown.latest.as_ref().map(|it| it.since), Some(now));
    let mut changed = answers(&[]);
    changed.summary.sequence += 1;
    state.take_at(changed, later);
    assert_eq!(state.shown.latest.as_ref().map(|it| it.since), Some(later));
}

#[test]
fn keys_end_it_and_any_key_ends_the_help() {
    let mut state = state();
    press(&mut state, KeyCode::Char('?'));
    assert!(state.has_help);
    assert_eq!(press(&mut state, KeyCode::Char('q')), Effect::Draw);
    assert!(!state.has_help);
    assert_eq!(press(&mut state, KeyCode::Char('q')), Effect::Quit);
    let mut control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    control_c.kind = KeyEventKind::Press;
    press(&mut state, KeyCode::Char('/'));
    assert_eq!(state.key(control_c, SCREEN), Effect::Quit, "also while typing");
}

#[test]
fn a_click_on_a_name_shows_its_pane() {
    let mut state = state();
    for (name, pane) in [
        ("4 Health", Pane::Health),
        ("3 Heatmap", Pane::Heatmap),
        ("2 Worst", Pane::Worst),
        ("1 Groups", Pane::Groups),
    ] {
        let (column, row) = place(&state, name);
        assert_eq!(click(&mut state, column, row), Effect::Ask);
        assert_eq!(state.pane, pane);
    }
    let (_, row) = place(&state, "1 Groups");
    click(&mut state, 70, row);
    assert_eq!(state.pane, Pane::Groups, "there is nothing");
}

#[test]
fn a_click_selects_a_row_and_another_one_opens_it() {
    let mut state = state();
    let (column, row) = place(&state, " c ");
    assert_eq!(click(&mut state, column, row), Effect::Draw);
    assert_eq!(chosen(&state), ">c tcp-ts");
    assert!(state.question().past.is_none());
    assert_eq!(click(&mut state, column, row), Effect::Ask);
    assert_eq!(state.question().past, Some(format!("{:032x}", 2)));
}

#[test]
fn first_click_selects_without_opening() {
    let mut state = state();
    let (column, row) = place(&state, ">a ");
    click(&mut state, column, row);
    assert!(state.question().past.is_none());
    // A key is pressed between the two clicks.
    press(&mut state, KeyCode::Down);
    click(&mut state, column, row);
    assert!(state.question().past.is_none());
    for _ in 0..2 {
        click(&mut state, column, row + 10);
    }
    assert!(state.question().past.is_none());
}

#[test]
fn rows_that_changed_between_two_clicks_open_nothing() {
    let mut state = state();
    let (column, row) = place(&state, " c ");
    click(&mut state, column, row);
    let mut changed = answers(&[("a", 1), ("c", 2), ("b", 3)]);
    changed.groups.groups.swap(1, 2);
    changed.groups.groups[1].id = "7".repeat(32);
    state.take(changed);
    click(&mut state, column, row);
    let opened = state.question().past;
    assert!(opened.is_none(), "{opened:?}");
}

#[test]
fn a_click_on_a_title_sorts_and_another_one_the_other_way_round() {
    let mut state = state();
    for expected in [crate::recent::Order::Desc, crate::recent::Order::Asc] {
        let (column, row) = title(&state, "p50");
        assert_eq!(click(&mut state, column, row), Effect::Ask);
        let query = state.question().groups;
        assert_eq!((query.sort, query.order), (Some(crate::recent::Column::P50), expected));
    }
    let (column, row) = title(&state, "method");
    assert_eq!(click(&mut state, column, row), Effect::Draw, "there is no order by methods");
}

#[test]
fn the_wheel_moves_and_a_click_ends_the_help() {
    let mut state = State::default();
    let labels: Vec<String> = (0..50).map(|number| format!("g{number:02}")).collect();
    let groups: Vec<_> = labels.iter().map(|label| (label.as_str(), 1_000_000)).collect();
    state.take(answers(&groups));
    mouse(&mut state, MouseEventKind::ScrollDown, 5, 10);
    assert_eq!(chosen(&state), ">g03 tcp-ts");
    mouse(&mut state, MouseEventKind::ScrollUp, 5, 10);
    assert_eq!(chosen(&state), ">g00 tcp-ts");
    press(&mut state, KeyCode::Char('?'));
    mouse(&mut state, MouseEventKind::ScrollDown, 5, 10);
    assert!(state.has_help);
    click(&mut state, 0, 0);
    assert!(!state.has_help);
    assert_eq!(chosen(&state), ">g00 tcp-ts");
}

#[test]
fn worst_are_requested_only_where_shown() {
    let mut state = State::default();
    assert_eq!(state.question().worst, None);
    press(&mut state, KeyCode::Char('2'));
    let mut ranked = Vec::new();
    for _ in 0..5 {
        ranked.push(state.question().worst.unwrap().by);
        assert_eq!(press(&mut state, KeyCode::Char('s')), Effect::Ask);
    }
    assert_eq!(ranked, [By::Rtt, By::Inflation, By::Retransmissions, By::Bytes, By::Rtt]);
    press(&mut state, KeyCode::Char('S'));
    assert_eq!(state.question().worst.unwrap().by, By::Rtt);
}
