//! Playing a capture: its keys, and its position.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::replay::{Command, Position};

/// How far the arrow keys move, s: alone, and with shift.
const STEPS: [i64; 2] = [10, 60];

/// Returns the player's command for a key, if it has one.
pub(super) fn command(key: KeyEvent) -> Option<Command> {
    let step = STEPS[usize::from(key.modifiers.contains(KeyModifiers::SHIFT))];
    match key.code {
        KeyCode::Char(' ') => Some(Command::Pause),
        KeyCode::Char('<' | ',') => Some(Command::Slower),
        KeyCode::Char('>' | '.') => Some(Command::Faster),
        KeyCode::Left => Some(Command::Seek(-step)),
        KeyCode::Right => Some(Command::Seek(step)),
        _ => None,
    }
}

/// Returns the position of the player, in words.
pub(super) fn shown(position: &Position) -> String {
    let seconds = position.time.as_secs();
    let time = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let share = position.share.map_or(String::new(), |share| format!(" {}", bar(share)));
    let speed = match position.speed {
        slow if slow < 1.0 => format!(" 1/{:.0}x", 1.0 / slow),
        fast if fast > 1.0 => format!(" {fast:.0}x"),
        _ => String::new(),
    };
    let state = match &position.fault {
        Some(fault) => format!("  {fault}"),
        None if position.is_over => "  the end".to_owned(),
        None if position.is_paused => "  paused".to_owned(),
        None => String::new(),
    };
    format!("  {time}{share}{speed}{state}")
}

/// Returns a bar for how much of the file was read.
fn bar(share: f64) -> String {
    const WIDTH: usize = 10;
    let filled = ((share * WIDTH as f64).round() as usize).min(WIDTH);
    format!("[{}{}]", "=".repeat(filled), "-".repeat(WIDTH - filled))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn position() -> Position {
        Position { time: Duration::from_secs(3725), share: Some(0.42), speed: 1.0, ..Position::default() }
    }

    #[test]
    fn where_it_is_has_the_time_the_share_and_what_is_not_as_usual() {
        assert_eq!(shown(&position()), "  01:02:05 [====------]");
        assert_eq!(shown(&Position { speed: 0.25, ..position() }), "  01:02:05 [====------] 1/4x");
        assert_eq!(
            shown(&Position { speed: 8.0, is_paused: true, ..position() }),
            "  01:02:05 [====------] 8x  paused"
        );
        assert_eq!(shown(&Position { share: None, is_over: true, ..position() }), "  01:02:05  the end");
    }

    #[test]
    fn keys_pause_change_the_speed_and_go_elsewhere() {
        let press = |code| command(KeyEvent::new(code, KeyModifiers::NONE));
        assert_eq!(press(KeyCode::Char(' ')), Some(Command::Pause));
        assert_eq!(press(KeyCode::Char('>')), Some(Command::Faster));
        assert_eq!(press(KeyCode::Char('<')), Some(Command::Slower));
        assert_eq!(press(KeyCode::Left), Some(Command::Seek(-10)));
        let shift = KeyEvent::new(KeyCode::Right, KeyModifiers::SHIFT);
        assert_eq!(command(shift), Some(Command::Seek(60)));
        assert_eq!(press(KeyCode::Char('q')), None);
    }
}
