//! Colours for numbers of samples. They go from dark to bright, through blue, green and yellow, so that people who
//! distinguish few colours see the same order. Shades show the same order without any colour.

use std::ffi::OsStr;

use ratatui::style::{Color, Style};

/// The shades, from few samples to many.
pub(super) const SHADES: [char; 5] = ['.', '░', '▒', '▓', '█'];

/// The same scale in true colours. Colours in between are mixed.
const SCALE: [(u8, u8, u8); 6] =
    [(70, 72, 148), (50, 108, 160), (34, 144, 150), (56, 180, 116), (150, 212, 66), (253, 231, 37)];

/// The same scale in the 256 colours of xterm: the foreground and the background for each shade.
const INDEXED: [(u8, u8); 5] = [(62, 18), (31, 23), (36, 29), (113, 64), (220, 178)];

/// The colours that a terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Colors {
    /// Shades only.
    #[default]
    None,
    /// 256 colours.
    Indexed,
    /// 24-bit colours.
    True,
}

impl Colors {
    /// Reads from the environment what the terminal can show.
    pub(super) fn of_environment() -> Self {
        Self::new(|name| std::env::var_os(name))
    }

    /// `NO_COLOR` follows <https://no-color.org>: any value counts but an empty one.
    fn new<T: AsRef<OsStr>>(variable: impl Fn(&str) -> Option<T>) -> Self {
        let text = |name| {
            let value = variable(name);
            value.map_or(String::new(), |value| value.as_ref().to_string_lossy().into_owned())
        };
        let term = text("TERM");
        if !text("NO_COLOR").is_empty() {
            Self::None
        } else if matches!(&*text("COLORTERM"), "truecolor" | "24bit") || term.ends_with("-direct") {
            Self::True
        } else if term.contains("256color") {
            Self::Indexed
        } else {
            Self::None
        }
    }

    /// Returns the shade and the colours for a part of the most samples, from 0 to 1.
    pub(super) fn heat(self, part: f64) -> (char, Style) {
        let part = part.clamp(0.0, 1.0);
        let shade = (part * (SHADES.len() - 1) as f64).round() as usize;
        let style = match self {
            Self::None => Style::new(),
            Self::Indexed => {
                let (foreground, background) = INDEXED[shade];
                Style::new().fg(Color::Indexed(foreground)).bg(Color::Indexed(background))
            }
            Self::True => {
                let (red, green, blue) = mixed(part);
                let darker = |it: u8| (u16::from(it) * 2 / 3) as u8;
                Style::new().fg(Color::Rgb(red, green, blue)).bg(Color::Rgb(
                    darker(red),
                    darker(green),
                    darker(blue),
                ))
            }
        };
        (SHADES[shade], style)
    }

    /// Returns the colour of bars.
    pub(super) fn bar(self) -> Style {
        match self {
            Self::None => Style::new(),
            Self::Indexed => Style::new().fg(Color::Indexed(INDEXED[2].0)),
            Self::True => Style::new().fg(Color::Rgb(SCALE[2].0, SCALE[2].1, SCALE[2].2)),
        }
    }
}

fn mixed(part: f64) -> (u8, u8, u8) {
    let at = part * (SCALE.len() - 1) as f64;
    let first = (at as usize).min(SCALE.len() - 2);
    let (from, to) = (SCALE[first], SCALE[first + 1]);
    let mix = |from: u8, to: u8| {
        (f64::from(from) + (f64::from(to) - f64::from(from)) * (at - first as f64)).round() as u8
    };
    (mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colors(variables: &[(&str, &'static str)]) -> Colors {
        Colors::new(|name| variables.iter().find(|(known, _)| *known == name).map(|&(_, value)| value))
    }

    #[test]
    fn the_environment_says_what_a_terminal_can_show() {
        for (variables, expected) in [
            (&[("TERM", "xterm-256color")][..], Colors::Indexed),
            (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")], Colors::True),
            (&[("TERM", "xterm"), ("COLORTERM", "24bit")], Colors::True),
            (&[("TERM", "xterm-direct")], Colors::True),
            (&[("TERM", "linux")], Colors::None),
            (&[], Colors::None),
            (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("NO_COLOR", "1")], Colors::None),
            (&[("TERM", "xterm-256color"), ("NO_COLOR", "")], Colors::Indexed),
        ] {
            assert_eq!(colors(variables), expected, "{variables:?}");
        }
    }

    #[test]
    fn more_is_brighter_in_every_scale_and_always_a_fuller_shade() {
        // The brightness as the eye perceives it.
        let light = |red: u8, green: u8, blue: u8| {
            0.2126 * f64::from(red) + 0.7152 * f64::from(green) + 0.0722 * f64::from(blue)
        };
        let all: Vec<_> = (0..=20).map(|part| f64::from(part) / 20.0).collect();
        let lights: Vec<_> = all.iter().map(|&part| mixed(part)).map(|(r, g, b)| light(r, g, b)).collect();
        assert!(lights.is_sorted(), "{lights:?}");
        for colors in [Colors::None, Colors::Indexed, Colors::True] {
            let shades = all.iter().map(|&part| colors.heat(part).0);
            let shades: Vec<_> = shades.map(|shade| SHADES.iter().position(|it| *it == shade)).collect();
            assert!(shades.is_sorted() && shades[0] == Some(0) && shades[20] == Some(4), "{shades:?}");
        }
        assert_eq!(Colors::None.heat(0.5), ('▒', Style::new()));
    }
}
