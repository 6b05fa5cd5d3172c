use pping_common::{method::Method, parse::Direction, series::SeriesCounts};
use ratatui::{crossterm::event::KeyModifiers, layout::Rect};

use super::*;
use crate::{
    groups::{Levels, SeriesName, group_in_tree, roll_up},
    quality,
    recent::{MEMORY, RecentHistory},
    top::{
        once,
        tests::{asked, screen},
    },
};

const SCREEN: Rect = Rect::new(0, 0, 120, 24);
const START: u64 = 1_800_000_000_000_000_000;

/// Groups at two sites; one of them is bad.
fn recent() -> RecentHistory {
    let recent = RecentHistory::new(MEMORY);
    recent.list_levels(Levels::new(&["site".to_owned(), "ap".to_owned()]));
    recent.score_by(quality::load(None).unwrap());
    let groups = [
        ("a", "berlin", "ap-1", 10),
        ("b", "berlin", "ap-3", 20),
        ("c", "lund", "ap-3", 900),
        ("d", "lund", "ap-3", 5),
    ];
    let series = groups.map(|(label, site, ap, ms)| {
        let mut counts = SeriesCounts::EMPTY;
        (0..2000).for_each(|_| counts.sample(ms * 1_000_000, 0));
        let name = SeriesName {
            interface: Some("wan0".into()),
            method: Method::TcpTs,
            matched: Some(Direction::Ingress),
            side: None,
            group: group_in_tree(label, &[("site", site), ("ap", ap)]),
        };
        (name, counts)
    });
    let mut series = Vec::from(series);
    series.extend(roll_up(&series));
    recent.add(&series, START);
    recent
}

/// Presses keys, with an answer after each.
fn press(state: &mut State, recent: &RecentHistory, keys: &[KeyCode]) {
    for &code in keys {
        state.key(KeyEvent::new(code, KeyModifiers::NONE), SCREEN);
        state.take(asked(recent, &state.question()));
    }
}

fn opened(recent: &RecentHistory, keys: &[KeyCode]) -> State {
    let mut state = State::default();
    state.take(asked(recent, &state.question()));
    press(&mut state, recent, keys);
    state
}

/// The first words of the rows, that with the cursor after `>`.
fn rows(state: &State) -> Vec<String> {
    let screen = screen(state, SCREEN.width, SCREEN.height);
    let table = screen.lines().skip_while(|line| !line.contains(" samples ")).skip(1);
    let rows = table.take_while(|line| line.contains("tcp-ts"));
    rows.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

const T: KeyCode = KeyCode::Char('t');

#[test]
fn the_tree_is_walked_down_to_groups_and_back() {
    let recent = recent();
    let mut state = opened(&recent, &[]);
    assert_eq!(rows(&state), [">c", "b", "a", "d"]);
    press(&mut state, &recent, &[T]);
    assert_eq!(rows(&state), [">lund", "berlin"]);
    press(&mut state, &recent, &[KeyCode::Down, KeyCode::Enter]);
    assert_eq!(rows(&state), [">ap-3", "ap-1"]);
    press(&mut state, &recent, &[KeyCode::Down, KeyCode::Right]);
    assert_eq!(rows(&state), [">a"], "the groups of berlin/ap-1");
    // Enter opens a group alone, as it always does.
    press(&mut state, &recent, &[KeyCode::Enter]);
    assert!(screen(&state, 120, 24).contains("beyond  2000 samples"), "{}", screen(&state, 120, 24));
    press(&mut state, &recent, &[KeyCode::Esc, KeyCode::Left]);
    assert_eq!(rows(&state), ["ap-3", ">ap-1"], "the cursor is where it was");
    press(&mut state, &recent, &[KeyCode::Backspace]);
    assert_eq!(rows(&state), ["lund", ">berlin"]);
    press(&mut state, &recent, &[KeyCode::Backspace]);
    assert_eq!(rows(&state), ["lund", ">berlin"], "nothing is above the first level");
    press(&mut state, &recent, &[T]);
    assert_eq!(rows(&state).len(), 4);
}

#[test]
fn nodes_say_how_many_members_are_bad() {
    let recent = recent();
    let shown = screen(&opened(&recent, &[T]), 120, 24);
    let row = |name: &str| {
        let line = shown.lines().find(|line| line.contains(name)).unwrap();
        line.split_whitespace().map(|word| word.trim_start_matches('>')).take(4).collect::<Vec<_>>().join(" ")
    };
    let titles = "site members active bad".to_owned();
    assert_eq!((row(" members "), row("lund")), (titles, "lund 2 2 1".to_owned()));
    assert_eq!(row("berlin"), "berlin 2 2 0");
    assert!(shown.contains("2 site   ? help"), "{shown}");
    let inner = screen(&opened(&recent, &[T, KeyCode::Enter]), 120, 24);
    assert!(inner.contains("1 ap under lund"), "{inner}");
    // `s` goes on to the columns of nodes after the others.
    let mut state = opened(&recent, &[T]);
    for _ in 0..20 {
        if screen(&state, 120, 24).contains(" bad▼") {
            return;
        }
        press(&mut state, &recent, &[KeyCode::Char('s')]);
    }
    panic!("nothing sorts by bad: {}", screen(&state, 120, 24));
}

#[test]
fn a_key_before_the_answer_opens_no_other_level() {
    let recent = recent();
    let mut state = opened(&recent, &[T]);
    for _ in 0..3 {
        state.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE), SCREEN);
    }
    state.take(asked(&recent, &state.question()));
    assert_eq!(rows(&state), [">ap-3"]);
}

#[test]
fn a_tree_that_goes_away_leaves_the_groups() {
    let recent = recent();
    let mut state = opened(&recent, &[T, KeyCode::Enter]);
    recent.list_levels(Levels::default());
    state.take(asked(&recent, &state.question()));
    assert_eq!(rows(&state).len(), 4);
    press(&mut state, &recent, &[T]);
    assert_eq!(rows(&state).len(), 4, "there is no tree to open");
    assert!(!screen(&state, 120, 24).contains("t tree"));
}

#[test]
fn text_of_a_level_has_whole_paths() {
    let mut question = State::default().question();
    question.groups.by = Some("ap".to_owned());
    let Answers { summary, groups, .. } = asked(&recent(), &question);
    let text = once::text(&summary, &groups, Some("ap")).unwrap();
    assert!(text.contains(" berlin/ap-3 ") && text.contains(" lund/ap-3 "), "{text}");
    let unknown = once::text(&summary, &groups, Some("city")).unwrap_err().to_string();
    assert!(unknown.contains("give one of site, ap"), "{unknown}");
}
